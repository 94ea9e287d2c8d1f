"""The calculations of a worked answer without its words, as the replies to short questions have them."""

from __future__ import annotations

import ast
import re
from fractions import Fraction

from short.expressions import Tree, evaluate
from short.numbers import Reject, Value, show

_MARK = re.compile(r"<<([^<>=]+)=([\d.]+)>>")
_OPERATOR = re.compile(r"(?<=[\d.)])([+*/-])")
_SPACED = r" \1 "
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_LIMIT = 10_000_000


def as_marked(answer: str) -> str | None:
    """Each mark is a line, as the generator has already taken large steps apart; one of several kinds of operations is
    more lines. None without marks.
    """
    lines: list[str] = []
    for expression, result in _MARK.findall(answer):
        if len(_OPERATOR.findall(expression)) > 1 and set(_OPERATOR.findall(expression)) != {"+"}:
            lines += evaluate(_parsed(expression), limit=_LIMIT).lines
        else:
            lines.append(f"{_OPERATOR.sub(_SPACED, expression)} = {result}")
    return "\n".join(lines) or None


def worked_out(answer: str) -> str | None:
    """Each mark's operations are lines, with the steps that short questions show. None if a mark is wrong, or if the last
    result is not the answer.
    """
    lines: list[str] = []
    value: Value = 0
    for expression, result in _MARK.findall(answer):
        try:
            worked = evaluate(_parsed(expression), limit=_LIMIT)
        except (Reject, SyntaxError, ValueError, KeyError, AttributeError):
            return None
        if not worked.lines or worked.value != Fraction(result.rstrip(".")):
            return None
        lines += worked.lines
        value = worked.value
    return "\n".join(lines) if lines and show(value) == answer.rpartition("#### ")[2].replace(",", "") else None


def _parsed(expression: str) -> Tree:
    return _tree(ast.parse(expression.strip(), mode="eval").body)


def _tree(node: ast.expr) -> Tree:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)], _tree(node.left), _tree(node.right)
    value = Fraction(str(node.value))  # type: ignore[attr-defined]  Anything else is no expression of numbers.
    return value.numerator if value.denominator == 1 else value

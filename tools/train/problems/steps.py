"""Lines that come before a step which is too large to be done at once: a product, a quotient, a long sum."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

_MARK = re.compile(r"<<([^<>=]+)=[^<>]+>>")
_TERM = re.compile(r"\d+(?:\.\d+)?|[+*/-]")


def worked_out(line: str) -> Iterator[str]:
    """The line, after the lines that lead to its result."""
    mark = _MARK.search(line)
    terms = _TERM.findall(mark[1]) if mark else []
    operators = set(terms[1::2])
    if operators == {"+"} and len(terms) >= 7:
        yield from _running_sums(terms[::2])
    elif operators == {"*"} and len(terms) == 3:
        yield from _partial_products(*map(Fraction, terms[::2]))
    elif operators == {"/"} and len(terms) == 3:
        yield from _long_division(*map(Fraction, terms[::2]))
    yield line


def counted_out(total: int, per: int) -> list[str]:
    """The lines that show how often `per` fits into `total`, by the digits of that number; none if it is below ten."""
    if total // per < 10:
        return []
    lines, rest, count = [], total, 0
    for part in _parts(total // per):
        taken = per * part
        lines += [_step(Fraction(per), "*", Fraction(part), Fraction(taken)),
                  _step(Fraction(rest), "-", Fraction(taken), Fraction(rest - taken))]
        if count:
            lines.append(_step(Fraction(count), "+", Fraction(part), Fraction(count + part)))
        rest, count = rest - taken, count + part
    return lines


def _running_sums(terms: list[str]) -> Iterator[str]:
    total = Fraction(terms[0])
    for term in terms[1:-1]:
        yield _step(total, "+", Fraction(term), total + Fraction(term))
        total += Fraction(term)


def _partial_products(a: Fraction, b: Fraction) -> Iterator[str]:
    """By the digits of the shorter whole factor."""
    if a.denominator == 1 and (b.denominator > 1 or _significant(a) < _significant(b)):
        a, b = b, a
    if b.denominator > 1 or min(_significant(a), _significant(b)) < 2 or a * b <= 400:
        return
    total = Fraction(0)
    for part in _parts(int(b)):
        yield _step(a, "*", Fraction(part), a * part)
        if total:
            yield _step(total, "+", a * part, total + a * part)
        total += a * part


def _long_division(a: Fraction, b: Fraction) -> Iterator[str]:
    if a.denominator > 1 or b.denominator > 1 or a % b or b <= 12 or a / b < 10 or _significant(b) < 2:
        return
    rest = a
    for part in _parts(int(a / b)):
        yield _step(b, "*", Fraction(part), b * part)
        yield _step(rest, "-", b * part, rest - b * part)
        rest -= b * part


def _parts(number: int) -> list[int]:
    """346: 300, 40, 6."""
    digits = str(number)
    return [int(digit) * 10 ** (len(digits) - 1 - i) for i, digit in enumerate(digits) if digit != "0"]


def _significant(value: Fraction) -> int:
    return len(_shown(value).replace(".", "").strip("0"))


def _shown(value: Fraction) -> str:
    return f"{float(value):.4f}".rstrip("0").rstrip(".")


def _step(left: Fraction, operator: str, right: Fraction, result: Fraction) -> str:
    a, b, c = _shown(left), _shown(right), _shown(result)
    return f"{a} {operator} {b} = <<{a}{operator}{b}={c}>>{c}"

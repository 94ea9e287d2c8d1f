"""Exact arithmetic with the steps that a small model needs in order to be exact.

Small calculations are one line, `3 + 4 = 7`. Large ones are taken apart first: sums by thousands, products by the
digits of a factor, quotients by the digits of the quotient.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Value = int | Fraction

_SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
          "seventeen eighteen nineteen").split()
_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
_LIMIT = 10_000_000


class Reject(Exception):
    """The drawn numbers make no sensible question; draw again."""


def require(condition: bool) -> None:
    if not condition:
        raise Reject


@dataclass(frozen=True)
class Line:
    """One calculation: `left` without its result."""

    left: str
    result: str

    def __str__(self) -> str:
        return f"{self.left} = {self.result}"

    def marked(self, sign: str = "") -> str:
        """With GSM8K's calculator mark: `4 * 6 = <<4*6=24>>24`."""
        return f"{self.left} = {sign}<<{self.left.replace(' ', '')}={self.result}>>{self.result}"


@dataclass(frozen=True)
class Worked:
    """The last line's result is the value."""

    lines: tuple[Line, ...]
    value: Value


def simplest(value: Value) -> Value:
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def places_of(value: Value) -> int | None:
    """The decimals that write the value exactly; None if there are more than four."""
    return next((places for places in range(5) if 10**places % Fraction(value).denominator == 0), None)


def show(value: Value) -> str:
    """The shortest decimal of a value that has at most four places."""
    if isinstance(value, int):
        return str(value)
    places = places_of(value)
    require(places is not None)
    digits = str(int(abs(value) * 10**places)).rjust(places + 1, "0")
    return ("-" if value < 0 else "") + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def in_words(number: int) -> str:
    """0 to 999: `two hundred and five`."""
    if number < 20:
        return _SMALL[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_SMALL[number % 10]}" if number % 10 else "")
    return f"{_SMALL[number // 100]} hundred" + (f" and {in_words(number % 100)}" if number % 100 else "")


def apply(operator: str, left: Value, right: Value) -> Worked:
    left, right = simplest(left), simplest(right)
    if operator == "/":
        require(right != 0)
        value = Fraction(left) / Fraction(right)
    else:
        value = left + right if operator == "+" else left - right if operator == "-" else left * right
    value = simplest(value)
    require(abs(value) < _LIMIT)
    is_whole = isinstance(left, int) and isinstance(right, int)
    steps = _WORK[operator](abs(left), abs(right)) if is_whole else _decimal_work(operator, left, right)
    return Worked((*steps, _line(left, operator, right, value)), value)


def chain(first: Value, rest: Sequence[tuple[str, Value]]) -> Worked:
    """Each operation on the result of the one before it; a sum of three is one line."""
    if len(rest) == 2 and all(operator == "+" for operator, _ in rest):
        value = simplest(first + rest[0][1] + rest[1][1])
        return Worked((Line(" + ".join(map(show, (first, *(term for _, term in rest)))), show(value)),), value)
    lines: tuple[Line, ...] = ()
    value = first
    for operator, right in rest:
        step = apply(operator, value, right)
        lines, value = lines + step.lines, step.value
    return Worked(lines, value)


def _line(left: Value, operator: str, right: Value, result: Value) -> Line:
    shown = f"({show(right)})" if right < 0 else show(right)
    return Line(f"{show(left)} {operator} {shown}", show(result))


def _sum_work(a: int, b: int) -> list[Line]:
    if max(a, b) < 10_000:
        return []
    low = a % 1000 + b % 1000
    carry = f" + {low // 1000}" if low >= 1000 else ""
    return [_line(a % 1000, "+", b % 1000, low),
            Line(f"{a // 1000} + {b // 1000}{carry}", str(a // 1000 + b // 1000 + low // 1000))]


def _difference_work(a: int, b: int) -> list[Line]:
    a, b = max(a, b), min(a, b)
    if a < 10_000:
        return []
    borrow = a % 1000 < b % 1000
    low = a % 1000 + 1000 * borrow
    return [_line(low, "-", b % 1000, low - b % 1000),
            Line(f"{a // 1000}{' - 1' if borrow else ''} - {b // 1000}", str(a // 1000 - borrow - b // 1000))]


def _product_work(a: int, b: int) -> list[Line]:
    """Nothing if a factor has one digit that is not zero; else the products with the digits of the shorter one."""
    if min(_significant(a), _significant(b)) < 2 or a * b <= 144:
        return []
    if _significant(b) > _significant(a):
        a, b = b, a
    lines, total = [], 0
    for part in _parts(b):
        lines.append(_line(a, "*", part, a * part))
        if total:
            lines.append(_line(total, "+", a * part, total + a * part))
        total += a * part
    return lines


def _quotient_work(a: int, b: int) -> list[Line]:
    """Takes away multiples of b by the digits of the quotient; then the part below one."""
    quotient, rest = divmod(a, b)
    is_power_of_ten = str(b).strip("0") == "1"
    if a < b or is_power_of_ten or not rest and (b <= 12 and a < 1000 or quotient < 10 and b < 20 or
                                                  b <= 12 and _significant(quotient) == 1) or a <= 144 and b in (2, 4, 5):
        return []
    lines, left = [], a
    for part in _parts(quotient):
        lines += [_line(b, "*", part, b * part), _line(left, "-", b * part, left - b * part)]
        left -= b * part
    return lines + ([_line(rest, "/", b, Fraction(rest, b))] if rest else [])


def _decimal_work(operator: str, a: Value, b: Value) -> list[Line]:
    """As whole numbers first; then the point is set. Nothing if one decimal at most is easily kept in mind."""
    places = [places_of(a), places_of(b)]
    require(None not in places)
    if operator in "+-":
        scale = 10 ** max(places)
        if min(a, b) < 0 or a < b or scale == 10 and max(a, b) < 10 or max(a, b) * scale > 10_000:
            return []
        return list(apply(operator, int(a * scale), int(b * scale)).lines)
    if operator == "*":
        a, b = int(a * 10 ** places[0]), int(b * 10 ** places[1])
        return list(apply("*", a, b).lines) if min(a, b) > 1 and a * b > 20 else []
    scale = 10 ** (places[0] if isinstance(b, int) else max(places))
    return list(apply("/", int(a * scale), b if isinstance(b, int) else int(b * scale)).lines)


_WORK = {"+": _sum_work, "-": _difference_work, "*": _product_work, "/": _quotient_work}


def _parts(number: int) -> list[int]:
    """346: 300, 40, 6."""
    digits = str(number)
    return [int(digit) * 10 ** (len(digits) - 1 - i) for i, digit in enumerate(digits) if digit != "0"]


def _significant(number: int) -> int:
    return len(str(number).strip("0"))


def whole(rng: random.Random, digits: int) -> int:
    """A number of at most `digits` digits; short ones are as likely as long ones."""
    return rng.randint(0, 10 ** rng.randint(1, digits) - 1)

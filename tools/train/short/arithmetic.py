"""Exact arithmetic with the steps that a small model needs in order to be exact, one a line.

Small calculations are one line, `3 + 4 = 7`. Large ones are taken apart first: sums by thousands,
products by the digits of a factor, quotients by the digits of the quotient.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .numbers import Reject, Value, operand, places_of, require, rounded, show


@dataclass(frozen=True)
class Worked:
    """The last line shows the value after its last `=`."""

    lines: tuple[str, ...]
    value: Value


def apply(operator: str, left: Value, right: Value) -> Worked:
    left, right = _simplest(left), _simplest(right)
    return _OPERATIONS[operator](left, right)


def chain(first: Value, *rest: tuple[str, Value]) -> Worked:
    """`chain(a, ("*", b), ("+", c))`: from the left, each step on the result before it."""
    lines: tuple[str, ...] = ()
    value = first
    for operator, right in rest:
        step = apply(operator, value, right)
        lines, value = lines + step.lines, step.value
    return Worked(lines, value)


def _simplest(value: Value) -> Value:
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def _line(left: Value, operator: str, right: Value, result: Value) -> str:
    return f"{show(left)} {operator} {operand(right)} = {show(result)}"


def _add(a: Value, b: Value) -> Worked:
    work = _as_whole_numbers(a, "+", b)
    if min(a, b) >= 0 and max(a, b) >= 10_000 and isinstance(a, int) and isinstance(b, int):
        low = a % 1000 + b % 1000
        carry = f" + {low // 1000}" if low >= 1000 else ""
        high = a // 1000 + b // 1000 + low // 1000
        work = (f"{a % 1000} + {b % 1000} = {low}", f"{a // 1000} + {b // 1000}{carry} = {high}")
    return Worked((*work, _line(a, "+", b, a + b)), _simplest(a + b))


def _as_whole_numbers(a: Value, operator: str, b: Value) -> tuple[str, ...]:
    """`17.5 - 2.75` is first `1750 - 275`; nothing if one decimal at most is easily kept in mind."""
    places = max(places_of(a) or 0, places_of(b) or 0)
    if not places or min(a, b) < 0 or a < b and operator == "-" or places == 1 and max(a, b) < 10:
        return ()
    left, right = int(a * 10**places), int(b * 10**places)
    if max(left, right) > 10_000:
        return ()
    return (_line(left, operator, right, left + right if operator == "+" else left - right),)


def _subtract(a: Value, b: Value) -> Worked:
    work = _as_whole_numbers(a, "-", b)
    if min(a, b) >= 0 and max(a, b) >= 10_000 and isinstance(a, int) and isinstance(b, int):
        large, small = max(a, b), min(a, b)
        borrow = large % 1000 < small % 1000
        low = large % 1000 + 1000 * borrow
        high = large // 1000 - borrow
        work = (f"{low} - {small % 1000} = {low - small % 1000}",
                f"{large // 1000}{' - 1' if borrow else ''} - {small // 1000} = {high - small // 1000}")
        if a < b:
            work += (_line(b, "-", a, b - a),)
    return Worked((*work, _line(a, "-", b, a - b)), _simplest(a - b))


def _multiply(a: Value, b: Value) -> Worked:
    result = _simplest(a * b)
    if isinstance(a, Fraction) or isinstance(b, Fraction):
        return _multiply_decimals(a, b, result)
    work = _partial_products(abs(a), abs(b))
    require(abs(result) < 10_000_000)
    return Worked((*work, _line(a, "*", b, result)), result)


def _multiply_decimals(a: Value, b: Value, result: Value) -> Worked:
    """As whole numbers first; then the point is set."""
    places_a, places_b = places_of(a), places_of(b)
    if places_a is None or places_b is None or places_of(result) is None:
        raise Reject
    whole_a, whole_b = abs(int(a * 10**places_a)), abs(int(b * 10**places_b))
    work: tuple[str, ...] = ()
    if min(whole_a, whole_b) > 1 and whole_a * whole_b > 20:
        work = (*_partial_products(whole_a, whole_b), f"{whole_a} * {whole_b} = {whole_a * whole_b}")
    return Worked((*work, _line(a, "*", b, result)), result)


def _partial_products(a: int, b: int) -> tuple[str, ...]:
    """Nothing if a factor has one digit that is not zero; else the products with the digits of b."""
    if len(str(a).strip("0")) <= 1 or len(str(b).strip("0")) <= 1 or a * b <= 144:
        return ()
    if len(str(b).strip("0")) > len(str(a).strip("0")):
        a, b = b, a
    parts = [int(digit) * 10**place for place, digit in enumerate(reversed(str(b)))]
    lines, total = [], 0
    for part in reversed([part for part in parts if part]):
        lines.append(f"{a} * {part} = {a * part}")
        if total:
            lines.append(f"{total} + {a * part} = {total + a * part}")
        total += a * part
    return tuple(lines)


def _divide(a: Value, b: Value) -> Worked:
    require(b != 0)
    result = _simplest(Fraction(a) / Fraction(b))
    if isinstance(a, Fraction) or isinstance(b, Fraction):
        places_a, places_b = places_of(a), places_of(b)
        if places_a is None or places_b is None or (places_of(result) or 9) > 2 and places_of(result) != 0:
            raise Reject
        # A whole divisor stays as it is: 27.6 / 4 is first 276 / 4.
        scale = 10**places_a if isinstance(b, int) else 10 ** max(places_a, places_b)
        whole = _divide(int(a * scale), b if isinstance(b, int) else int(b * scale))
        return Worked((*whole.lines, _line(a, "/", b, result)), result)
    lines = _long_division(abs(a), abs(b))
    return Worked((*lines, _line(a, "/", b, _shortened(result))), _simplest(_shortened(result)))


def _shortened(value: Value) -> Value:
    """The value if it ends within four decimals, as 5/8 does; otherwise two decimals of it."""
    return value if places_of(value) is not None else rounded(value)


def _long_division(a: int, b: int) -> tuple[str, ...]:
    """Takes away multiples of b by the digits of the quotient; then the part below one."""
    quotient, remainder = divmod(a, b)
    if b == 1 or not a or set(str(b)) <= {"0", "1"} and str(b).count("1") == 1:
        return ()
    if a <= 144 and b <= 12 and (not remainder or a < b or b in (2, 5)):
        return ()
    if b <= 12 and not remainder and len(str(quotient).strip("0")) == 1:
        return ()
    if not remainder and (quotient < 10 and b < 20 or b < 10 and a < 1000):
        return ()
    lines, rest = [], a
    for place in reversed(range(len(str(quotient)))):
        part = quotient // 10**place % 10 * 10**place
        if part:
            lines.append(f"{b} * {part} = {b * part}")
            lines.append(f"{rest} - {b * part} = {rest - b * part}")
            rest -= b * part
    if remainder:
        require(b <= 20 or b in (25, 40, 50, 60))
        if quotient:
            lines.append(f"{remainder} / {b} = {show(_shortened(Fraction(remainder, b)))}")
    return tuple(lines)


def remainder(a: int, b: int) -> Worked:
    """`17 / 5 = 3 remainder 2`; the value is the remainder."""
    require(b > 0)
    quotient, rest = divmod(a, b)
    work = () if a <= 144 and b <= 12 else tuple(_remainder_steps(a, b, quotient))
    return Worked((*work, f"{a} / {b} = {quotient} remainder {rest}"), rest)


def _remainder_steps(a: int, b: int, quotient: int) -> list[str]:
    lines = []
    for place in reversed(range(len(str(quotient)))):
        part = quotient // 10**place % 10 * 10**place
        if part:
            lines += [f"{b} * {part} = {b * part}", f"{a} - {b * part} = {a - b * part}"]
            a -= b * part
    return lines


def power(base: Value, exponent: int) -> Worked:
    """By repeated multiplication."""
    require(0 <= exponent <= 10)
    result = _simplest(Fraction(base) ** exponent)
    last = f"{operand(base)}^{exponent} = {show(result)}"
    if exponent < 2 or abs(base) <= 1:
        return Worked((last,), result)
    require(abs(result) < 2_000_000)
    if exponent == 2:
        return Worked((*apply("*", base, base).lines, last), result)
    lines: tuple[str, ...] = ()
    value = base
    for reached in range(2, exponent + 1):  # Every line says how far it is, so that none is left out.
        step = apply("*", value, base)
        lines += (*step.lines[:-1], f"{operand(base)}^{reached} = {step.lines[-1]}")
        value = step.value
    return Worked(lines, result)


_OPERATIONS = {"+": _add, "-": _subtract, "*": _multiply, "/": _divide}


# Fractions ------------------------------------------------------------------------------------

Ratio = tuple[int, int]  # as written: 2/4 is not 1/2


def fraction_apply(operator: str, left: Ratio, right: Ratio) -> Worked:
    """`1/2 + 1/4 = 2/4 + 1/4 = 3/4`, in one line."""
    (a, b), (c, d) = left, right
    shown = f"{a}/{b} {operator} {c}/{d}"
    if operator in "+-":
        lines, raw = _over_common_denominator(operator, left, right, shown)
    else:
        require(operator == "*" or c != 0)
        flipped = f" = {a}/{b} * {d}/{c}" if operator == "/" else ""
        raw = (a * c, b * d) if operator == "*" else (a * d, b * c)
        lines = shown + flipped + f" = {raw[0]}/{raw[1]}"
    value = Fraction(*raw)
    if str(value) != f"{raw[0]}/{raw[1]}":
        lines += f" = {value}"
    return Worked((lines,), value)


def _over_common_denominator(operator: str, left: Ratio, right: Ratio, shown: str) -> tuple[str, Ratio]:
    (a, b), (c, d) = left, right
    common = Fraction(1, b).denominator * d // _gcd(b, d)
    top = a * common // b + (1 if operator == "+" else -1) * (c * common // d)
    if b != d:
        shown += f" = {a * common // b}/{common} {operator} {c * common // d}/{common}"
    return f"{shown} = {top}/{common}", (top, common)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a

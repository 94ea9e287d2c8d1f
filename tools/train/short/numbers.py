"""Numbers: how they are drawn, how people write them, how a reply shows them."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

Value = int | Fraction

_SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
          "sixteen seventeen eighteen nineteen").split()
_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()


class Reject(Exception):
    """The drawn numbers make no sensible question; draw again."""


def require(condition: bool) -> None:
    if not condition:
        raise Reject


def whole(rng: random.Random, digits: int, low: int = 0) -> int:
    """A number of at most `digits` digits; short ones are as likely as long ones."""
    return rng.randint(low, 10 ** rng.randint(1, digits) - 1)


def decimal(rng: random.Random, limit: int, places: int) -> Fraction:
    """At least one decimal is not zero."""
    scale = 10 ** rng.randint(1, places)
    value = Fraction(rng.randint(1, limit * scale), scale)
    require(value.denominator != 1)
    return value


def places_of(value: Value) -> int | None:
    """The decimals needed to write the value exactly; None if it has no end or more than four."""
    if isinstance(value, int):
        return 0
    for places in range(5):
        if 10**places % value.denominator == 0:
            return places
    return None


def rounded(value: Value, places: int = 2) -> Fraction:
    """Half away from zero."""
    scaled = abs(Fraction(value)) * 10**places
    nearest = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Fraction(nearest if value >= 0 else -nearest, 10**places)


def show(value: Value) -> str:
    """The shortest decimal; two places if it has no end."""
    if isinstance(value, int):
        return str(value)
    places = places_of(value)
    if places == 0:
        return str(value.numerator)
    if places is None:
        return show(rounded(value))
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def relation(left: Value, right: Value) -> str:
    """`3.20 > 3.19`: both with the same number of decimals, so that they are compared digit by digit."""
    sign = "<" if left < right else ">" if left > right else "="
    places = max(places_of(left) or 0, places_of(right) or 0)
    return f"{_padded(left, places)} {sign} {_padded(right, places)}"


def _padded(value: Value, places: int) -> str:
    text = show(value)
    missing = places - (places_of(value) or 0)
    return text + ("." if "." not in text and missing else "") + "0" * missing


def operand(value: Value) -> str:
    """As the right-hand side of an operator: a negative number has brackets."""
    return f"({show(value)})" if value < 0 else show(value)


def fraction(value: Fraction) -> str:
    """`3/4`, or `2` if it is whole."""
    return str(value)


def dollars(value: Value) -> str:
    """Whole dollars without cents, anything else with two places."""
    if Fraction(value).denominator == 1:
        return str(int(value))
    cents = Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)
    return str(cents.quantize(Decimal("0.01"), ROUND_HALF_UP))


def in_words(number: int, joiner: str = " and ") -> str:
    """Up to 999,999: `two hundred and five`."""
    if number < 0:
        return f"minus {in_words(-number, joiner)}"
    if number < 20:
        return _SMALL[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_SMALL[number % 10]}" if number % 10 else "")
    if number < 1000:
        rest = number % 100
        return f"{_SMALL[number // 100]} hundred" + (joiner + in_words(rest) if rest else "")
    rest = number % 1000
    if not rest:
        tail = ""
    else:
        tail = (joiner if rest < 100 else " ") + in_words(rest, joiner)
    return f"{in_words(number // 1000, joiner)} thousand{tail}"


def ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


class Hand:
    """How one person writes numbers: in digits, with commas, in words. One hand per question."""

    def __init__(self, rng: random.Random) -> None:
        style = rng.random()
        self._in_words = style < 0.12
        self._small_in_words = style < 0.2
        self._commas = rng.random() < 0.5
        self._hyphen = rng.random() < 0.6
        self._joiner = rng.choice((" and ", " "))
        self._a_hundred = rng.random() < 0.3

    def write(self, value: Value) -> str:
        if isinstance(value, Fraction) and value.denominator != 1:
            text = show(value)
            return text[1:] if self._in_words and text.startswith("0.") else text
        number = int(value)
        if self._in_words and abs(number) < 10_000 or self._small_in_words and 0 <= number <= 12:
            return self._words(number)
        return f"{number:,}" if self._commas else str(number)

    def _words(self, number: int) -> str:
        text = in_words(number, self._joiner)
        if not self._hyphen:
            text = text.replace("-", " ")
        if self._a_hundred and text.startswith(("one hundred", "one thousand")):
            text = "a" + text[3:]
        return text

"""Holidays, months counted, days of several years, dates with their year: what `time_and_age` leaves out of the calendar."""

from __future__ import annotations

import random

from .arithmetic import Worked, apply, chain, remainder
from .grammar import Patterns
from .measures import LENGTHS, MONTHS
from .numbers import Hand, require
from .question import Short, computed, said, topic
from .time_and_age import days_backward, days_forward, shown_date, typed_date

_HOLIDAYS = (("Christmas", (11, 25)), ("Christmas Eve", (11, 24)), ("New Year's Eve", (11, 31)), ("Halloween", (9, 31)),
             ("Valentine's Day", (1, 14)), ("the 4th of July", (6, 4)), ("April Fools' Day", (3, 1)), ("St. Patrick's Day", (2, 17)))
_UNTIL_HOLIDAY = Patterns("""
    [How many days|how many days are there|How long|How many days is it] [until|till|to|before] {h} [from|on|if it is|if today is] {d}[?|]
    [Today is|It is|It's] {d}. [How many days|How long] [until|till|to|before] {h}[?|]
    [days|Days] [until|till|to|from {d} to] {h} [from|on|if it is|counted from] {d}[?|]
    how many [days|sleeps] [till|until|to] {h} [on|if it's|counting from] {d}[?|]
    from {d} to {h}[, how many days|: days|, days][?|]
""")


@topic(1.2)
def until_a_holiday(rng: random.Random) -> Short:
    name, (month, day) = rng.choice(_HOLIDAYS)
    back = rng.choice((0, 0, 1))
    start_month = month - back
    require(start_month >= 0 and not (start_month == 1 and back))
    start = rng.randint(1, LENGTHS[start_month]) if back else rng.randint(1, day)
    lines = [f"{name[0].upper()}{name[1:]} is {shown_date((month, day))}"]
    if back:
        rest = apply("-", LENGTHS[start_month], start)
        total = apply("+", rest.value, day)
        lines += [f"{MONTHS[start_month]} has {LENGTHS[start_month]} days", *rest.lines, *total.lines]
    else:
        total = apply("-", day, start)
        lines += total.lines
    question = _UNTIL_HOLIDAY.expand(rng, h=name, d=typed_date(rng, (start_month, start)))
    return computed(question, Worked(tuple(lines), total.value))


_MONTHS_BETWEEN = Patterns("""
    [How many months|how many months is it|How many months are there|How many months pass] [from|between] {a} [to|until|till|and] {b}[?|]
    {a} to {b}[, how many months|: how many months|: months|, months between][?|]
    [months|number of months] from {a} to {b}[?|]
    [It is|It's] {a}. How many months [until|till|to] {b}[?|]
""")


@topic(1)
def months_between(rng: random.Random) -> Short:
    """Across the year's end where the second month is the earlier one."""
    a, b = rng.sample(range(12), 2)
    lines = [f"{MONTHS[a]} is month {a + 1}, {MONTHS[b]} is month {b + 1}"]
    if b > a:
        worked = apply("-", b + 1, a + 1)
    else:
        worked = chain(12, ("-", a + 1), ("+", b + 1))
    return computed(_MONTHS_BETWEEN.expand(rng, a=MONTHS[a], b=MONTHS[b]), Worked((*lines, *worked.lines), worked.value))


_DAYS_OF_YEARS = Patterns("""
    [How many days|how many days] [are|are there|are in|have|is] [in |]{n} years[ without a leap year| (no leap year)|, no leap years| if none is a leap year|][?|]
    {n} years [in days|are how many days|= how many days][?|]
    days in {n} years [without leap years|(not leap years)|][?|]
""")
_WEEKS_OF_YEARS = Patterns("""
    [How many weeks|how many weeks] [are|are there|are in|have|is] [in |]{n} years[?|]
    {n} years [in weeks|are how many weeks][?|]
""")
_HALF_YEARS = Patterns("""
    [How many months|how many months] [are|are there|are in|is] [in |]{n} [and a half years|1/2 years|.5 years][?|]
    {n} [and a half|.5] years [in months|are how many months][?|]
""")


@topic(0.8)
def several_years(rng: random.Random) -> Short:
    n, kind = rng.randint(2, 10), rng.randrange(3)
    if kind == 0:
        return computed(_DAYS_OF_YEARS.expand(rng, n=Hand(rng).write(n)), apply("*", 365, n))
    if kind == 1:
        return computed(_WEEKS_OF_YEARS.expand(rng, n=Hand(rng).write(n)), apply("*", 52, n))
    return computed(_HALF_YEARS.expand(rng, n=n).replace(" .5", ".5"), chain(12, ("*", n), ("+", 6)))


_FEBRUARY = Patterns("""
    [How many days|how many days] [does|did|will|are in|were in|in|has|had] February {y}[ have|][?|]
    [number of |]days in [February|Feb] [of |]{y}[?|]
    how long is February {y}[?|]
    [What is|what's] the last day of February {y}[?|]
""")
_YEAR_LENGTH = Patterns("""
    [How many days|how many days] [does|did|will|are in|were in|in|has|had] [the year |]{y}[ have|][?|]
    [number of |]days in [the year |]{y}[?|]
""")


def _leap_lines(year: int) -> tuple[list[str], bool]:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    divisor = 400 if year % 400 == 0 else 100 if year % 100 == 0 else 4
    verb = "can" if year % 4 == 0 else "cannot"
    return [f"{year} {verb} be divided by {divisor}", f"{year} is {'a' if leap else 'no'} leap year"], leap


@topic(1)
def lengths_of_years(rng: random.Random) -> Short:
    year = rng.choice((rng.randint(1900, 2100), 4 * rng.randint(475, 525), 1900, 2000, 2100))
    lines, leap = _leap_lines(year)
    if rng.random() < 0.65:
        days = 29 if leap else 28
        return said(_FEBRUARY.expand(rng, y=year), "\n".join([*lines, f"February {year} has {days} days: {days}"]), days)
    days = 366 if leap else 365
    return said(_YEAR_LENGTH.expand(rng, y=year), "\n".join([*lines, f"{year} has {days} days: {days}"]), days)


_ENDS_OF_FEBRUARY = Patterns("""
    [What|Which] [date|day] [is|comes|was] [the day |right |one day |just |]{w} {d}[?|]
    [the day|one day] {w} {d}[?| is?]
    [which|what] date [comes|is] right {w} {d}[?|]
""")


@topic(0.7)
def around_the_leap_day(rng: random.Random) -> Short:
    """The only dates whose neighbour depends on the year; and others with a year, for which it does not matter."""
    year = rng.choice((rng.randint(1980, 2040), 4 * rng.randint(495, 510)))
    is_after = rng.random() < 0.5
    if rng.random() < 0.6:
        lines, leap = _leap_lines(year)
        start = (1, 28) if is_after else (2, 1)
        end = ((1, 29) if leap else (2, 1)) if is_after else ((1, 29) if leap else (1, 28))
    else:
        month = rng.choice([m for m in range(12) if m not in (1, 2) and (m < 11 or not is_after) and (m or is_after)])
        start = (month, LENGTHS[month] if is_after else 1)
        lines, end = (days_forward if is_after else days_backward)(start, 1)
        lines = lines[:-1]
    question = _ENDS_OF_FEBRUARY.expand(rng, w="after" if is_after else "before", d=f"{typed_date(rng, start)}, {year}")
    return said(question, "\n".join([*lines, f"It is {shown_date(end)}, {year}"]), shown_date(end))


_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_FAR_DAY = Patterns("""
    [If|When] today is {a}, [what|which] day [is it|will it be] [in {n} days|{n} days from now|{n} days later|after {n} days][?|]
    [Today is|It is|It's] {a}. [What|Which] day [is it|will it be] [in {n} days|{n} days from now|after {n} days][?|]
    {a} [plus|+|and] {n} days[?| is what day?| is which day?]
    if today's {a} what day is it in {n} days
    [what|which] day is {n} days after {a}[?|]
    {n} days [after|from] {a} [is|is what|is which] [day|weekday][?|]
""")
_TURNED = Patterns("""
    [If|When] today is {a}, [what|which] day [is|will it be] {t}[?|]
    [Today is|It is|It's] {a}. [What|Which] day [is|is it|comes] {t}[?|]
    [what|which] day [is|will it be] {t} if today is {a}[?|]
""")
_STEPS = (("two days after tomorrow", 3), ("three days after tomorrow", 4), ("the day after tomorrow", 2), ("two days before yesterday", -3),
          ("the day before yesterday", -2), ("one day before yesterday", -2), ("a day after tomorrow", 2), ("a week from tomorrow", 8))
_SHIFTED = Patterns("""
    [If |When |]{w} is {a}[, what|. What|, which] [day |][is|was] {t}[?|]
    {w} is {a}. {t}[?| was?| is?]
    {w} is {a}[.|;|,] what [day is |is |was ]{t}[?|]
""")
_NEAR = (("tomorrow", 1), ("yesterday", -1), ("today", 0), ("the day after tomorrow", 2), ("the day before yesterday", -2))


@topic(2)
def weekdays_far(rng: random.Random) -> Short:
    at, kind = rng.randrange(7), rng.random()
    if kind < 0.45:
        n = rng.randint(3, 120)
        listed = ", ".join(_DAYS[(at + i) % 7] for i in range(1, n % 7 + 1))
        weeks = remainder(n, 7).lines if n >= 7 else ()
        lines = [*weeks, *([listed] if listed else [])]
        return said(_FAR_DAY.expand(rng, a=_DAYS[at], n=n), "\n".join([*lines, f"It is {_DAYS[(at + n) % 7]}."]), _DAYS[(at + n) % 7])
    if kind < 0.65:
        text, n = rng.choice(_STEPS)
        step = 1 if n > 0 else -1
        listed = ", ".join(_DAYS[(at + step * i) % 7] for i in range(1, abs(n) + 1))
        return said(_TURNED.expand(rng, a=_DAYS[at], t=text), f"{listed}\nIt is {_DAYS[(at + n) % 7]}.", _DAYS[(at + n) % 7])
    (known, shift), (asked, wanted) = rng.sample(_NEAR, 2)
    today = (at - shift) % 7
    n = wanted - shift
    answer = _DAYS[(today + wanted) % 7]
    step = 1 if n > 0 else -1
    listed = ", ".join(_DAYS[(at + step * i) % 7] for i in range(1, abs(n) + 1))
    return said(_SHIFTED.expand(rng, w=known, a=_DAYS[at], t=asked), f"{listed}\nIt is {answer}.", answer)

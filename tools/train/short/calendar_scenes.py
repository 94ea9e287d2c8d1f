"""Weekdays, dates and years as plans, bills and riddles have them."""

from __future__ import annotations

import random

from .arithmetic import Worked, apply, remainder
from .composing import some_people
from .grammar import Patterns
from .measures import LENGTHS, MONTHS
from .numbers import ordinal, require
from .question import Short, computed, said, topic
from .time_and_age import days_backward, days_forward, shown_date, typed_date

_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def _tidy(question: str) -> str:
    text = " ".join(question.split())
    return text[0].upper() + text[1:]


# Weekdays ----------------------------------------------------------------------------------------

_DAY_LATER = Patterns("""
    [today|Today] [is|=|:] {a}. [what|which] [day|weekday] [is it|will it be|do we have] [in {n} days|{n} days from now|in {n} days' time|{n} days later][?|]
    [It's|It is|Today's|We have] {a} [today|]. {n} [days|nights|sleeps] [from now|later|more] [it's what day|is which day|will be what weekday|what day is it][?|]
    [My|The|Our] [parcel|package|order|letter|pizza oven|book] was [sent|shipped|ordered|posted] on [a |]{a} and [takes|needs|arrives after|is here after] {n} days. [When does it come|On which weekday does it arrive|Arrival day|What day does it arrive][?|]
    [The|A|My] [antibiotic|diet|trial|fast|rental|pass] [starts|started|begins] on {a} and [ends|is over] {n} days later. [On which weekday|What day is the end|Which day is that][?|]
    [{x}|My aunt|Grandma] [comes|arrives|lands] on {a} and [leaves|flies home|goes] {n} days later. [Which weekday is that|On what day does the visit end|Departure day|On which day of the week][?|]
    [The|Our] [meeting|match|test|exam] [from|of|on] {a} is [pushed back|postponed|delayed|moved back] by {n} days. [New day|On which day is it now|So it's on|What day is it now][?|]
    [We|They] [leave|set sail|start hiking] on {a} and [arrive|are there|reach the hut] after {n} days. What [day of the week|weekday|day] is [it then|that][?|]
    [The|A] [milk|yogurt|cheese|salad] bought on {a} keeps [for |]{n} days. [Until which day|What's the last day|Good until][?|]
    [If|When] [the|my] [exam|birthday|race|trip] is in {n} days and today is {a}, [what|which] day [of the week |]is it on[?|]
    [Suppose|Say|Imagine] it's {a}. [What|Which] [day|weekday] [comes|is it] {n} days [on|later|after that][?|]
    [count|go|Count|Go] {n} days [on|forward|ahead] from {a}[: what day?|. Which day is it?|. Where do you land?|: which weekday?]
    [what|What] weekday [do you land on|do you get|is it] {n} days after [a |]{a}[?|]
    {a}, {n} days later[?|: what day?| = ?| is?]
    [rent|Rent|The bill|The invoice] came on {a}, due in {n} days. [Due on which weekday|What day is it due|Weekday][?|]
    [Eggs|Chicks|Seeds|The sourdough] need {n} days. [Started|Set|Begun] on [a |]{a}, [ready on|done on|so they are ready on] which [day|weekday][?|]
    [I water|{x} waters] the [plant|cactus|fern] every {n} days, last on {a}. [When next|Which day is next|Next time on][?|]
""")
_DAY_EARLIER = Patterns("""
    [today|Today] [is|=|:] {a}. [what|which] [day|weekday] was [it |]{n} days ago[?|]
    [what|which] [day|weekday] [comes|is|was|lies] {n} days before [a |]{a}[?|]
    [The|My|Our] [exam|party|flight|wedding|race] is on [a |]{a}. [Invitations go out|I pack|I must register|Tickets go on sale|We rehearse] {n} days before. [Which day|On what day is that|Which weekday][?|]
    [It's|It is|Today is] {a} and [{x} left|the rain began|the parcel was sent|the shop closed|I caught a cold] {n} days ago. [What day was that|Which day of the week was it|On which weekday][?|]
    {a} was {n} days after [the test|the storm|the game|my birthday]. [On what day was it|What weekday was that|Which day was it][?|]
    [The letter|A parcel|The order] arrived on [a |]{a} after {n} days. [When was it sent|On which day was it sent|Posted on which day][?|]
    [{x} has|I have|The dog has] been [ill|away|home] for {n} days, and today is {a}. [Since which day|Since what day|It began on][?|]
    [count|go|Count|Go] back {n} days from {a}[: what day?|. Which day is it?|. Where do you land?|: which weekday?]
    {n} days earlier than {a}[?|: what day?| = ?| is?]
    In {n} days it [is|will be] {a}. [What day is it today|What's today|Which day is today|Today is][?|]
    [If|When] {a} is {n} days [away|off|from now], [what|which] day is [it |]today[?|]
    {a} is still {n} days [away|off]. [What day is it now|What is today|Today is which day][?|]
""")


def _typed_day(rng: random.Random, day: int) -> str:
    return _DAYS[day][: rng.choice((3, 3, 3 + (day in (1, 3))))] if rng.random() < 0.12 else _DAYS[day]


def _weekday_lines(day: int, n: int, forward: bool) -> tuple[list[str], str]:
    lines = [f"{n} / 7 = {n // 7} remainder {n % 7}"] if n >= 7 else []
    step = 1 if forward else -1
    if n % 7 > 1:
        lines.append(", ".join(_DAYS[(day + step * i) % 7] for i in range(1, n % 7 + 1)))
    return lines, _DAYS[(day + step * n) % 7]


@topic(2.5)
def weekday_scenes(rng: random.Random) -> Short:
    day, n, forward = (
        rng.randrange(7),
        rng.choice((rng.randint(2, 10), rng.randint(2, 6), rng.randint(2, 30), 7, 10, 14, 20)),
        rng.random() < 0.6,
    )
    lines, answer = _weekday_lines(day, n, forward)
    question = _tidy(
        (_DAY_LATER if forward else _DAY_EARLIER).expand(rng, a=_typed_day(rng, day), n=n, x=some_people(rng, 1)[0])
    )
    require(n < 15 or "nights" not in question and "sleeps" not in question)
    is_past = "was" in question.rsplit(".", 1)[-1] or "ago" in question
    lines.append(f"It {'was' if is_past and not forward else 'is'} {answer}.")
    return said(question, "\n".join(lines), answer)


_CHAINED = tuple((words, int(n)) for words, _, n in (line.rpartition(" ") for line in """
the day after the day after {} 2
the day before the day before {} -2
two days after {} 2
two days before {} -2
the day after tomorrow if today is {} 2
the day before yesterday if today is {} -2
three days after {} 3
three days before {} -3
a week after {} 7
a week before {} -7
eight days after {} 8
tomorrow if today is {} 1
tomorrow if yesterday was {} 2
yesterday if tomorrow is {} -2
today if tomorrow is {} -1
today if yesterday was {} 1
today if the day after tomorrow is {} -2
today if the day before yesterday was {} 2
the day after tomorrow if yesterday was {} 3
the day before yesterday if tomorrow is {} -3
the day after tomorrow if tomorrow is {} 1
""".strip().splitlines()))
_CHAINED_ASK = Patterns("""
    [what|which] [day|weekday] is {c}[?|]
    [What|Which] day of the week is {c}[?|]
    [What's|what is] {c}[?|]
    {c}[?| is what day?| is which day?| is?| = ?|: ]
""")
_SAID = Patterns("""
    [yesterday|Yesterday] was {y}. [So |]what['s| is] [today|the day today][?|]
    [tomorrow|Tomorrow] [is|will be] {t}. [So |]what['s| is| day is] today[?|]
    [If|When] [the day before was|yesterday was] {y}, [what|which] day is it [now|today][?|]
    [the|The] day after tomorrow [is|will be] {o}. [What day is it today|What is today|Today is][?|]
    [two days ago|The day before yesterday] it was {b}. [What day is it today|What's today|Today][?|]
    [I thought|{x} thought] it was {y}, but it's [one|a] day later. [What day is it|Which day is it really][?|]
    [{x}'s|My] [party|exam|match] is tomorrow, and tomorrow is {t}. [What day is it today|Today is][?|]
    [They|We] met yesterday, on [a |]{y}. [What day is it today|Which day is today][?|]
""")


@topic(1.2)
def weekdays_told(rng: random.Random) -> Short:
    day = rng.randrange(7)
    if rng.random() < 0.4:
        question = _SAID.expand(
            rng,
            y=_DAYS[day - 1],
            t=_DAYS[(day + 1) % 7],
            o=_DAYS[(day + 2) % 7],
            b=_DAYS[day - 2],
            x=some_people(rng, 1)[0],
        )
        return said(_tidy(question), f"It is {_DAYS[day]}.", _DAYS[day])
    words, n = rng.choice(_CHAINED)
    question = _CHAINED_ASK.expand(rng, c=words.format(_DAYS[day]))
    step = 1 if n > 0 else -1
    lines = [", ".join(_DAYS[(day + step * i) % 7] for i in range(1, abs(n) + 1))] if 1 < abs(n) < 7 else []
    answer = _DAYS[(day + n) % 7]
    return said(_tidy(question), "\n".join((*lines, f"It is {answer}.")), answer)


# a day, a later one, and the days between them
_APART = (
    ("Christmas Day", "New Year's Day", 7),
    ("Christmas Eve", "New Year's Eve", 7),
    ("Christmas Eve", "Christmas Day", 1),
    ("Christmas Eve", "New Year's Day", 8),
    ("July 1", "July 4", 3),
    ("December 1", "Christmas Eve", 23),
    ("October 1", "Halloween", 30),
    ("February 1", "Valentine's Day", 13),
    ("May 1", "May 31", 30),
    ("New Year's Eve", "New Year's Day", 1),
)
_FROM_DAY = Patterns("""
    [What|Which] [day|weekday] is {b} [if|when] {a} is [on |]a {w}[?|]
    [If|When] {a} [is|falls on|is on] a {w}, [what|which] day is {b}[?|]
    {a} [is|falls on] a {w} this year. [And {b}|{b} is a|Which weekday is {b}][?|]
    {a}: {w}. {b}[?|: ?]
""")
_DAY_OF_OTHER = Patterns("""
    [What|Which] [day|weekday] [was|is] {a} [if|when] {b} is [on |]a {w}[?|]
    [If|When] {b} [is|falls on|is on] a {w}, [what|which] day [was|is] {a}[?|]
    {b} is a {w}. [So {a} was a|Which weekday was {a}][?|]
""")
_A_YEAR_LATER = Patterns("""
    [My birthday|The party|Christmas|The holiday|July 4] is on a {w} this year. [Which day is it|What weekday is it|On what day is it] {n} days later, next year[?|]
    {n} days after a {w} is [what|which] [day|weekday][?|]
    [If|When] it is {w}, [what|which] day is it {n} days later[?|]
""")


@topic(0.8)
def weekdays_apart(rng: random.Random) -> Short:
    day = rng.randrange(7)
    if rng.random() < 0.25:
        n = rng.choice((365, 364, 366, 100, 90, 60, 180, 200, 70))
        question = _A_YEAR_LATER.expand(rng, w=_DAYS[day], n=n)
        require(n > 363 or "next year" not in question)
        forward = True
    else:
        first, second, n = rng.choice(_APART)
        forward = rng.random() < 0.7
        question = (_FROM_DAY if forward else _DAY_OF_OTHER).expand(rng, a=first, b=second, w=_DAYS[day])
    known, answer = _weekday_lines(day, n, forward)
    between = [f"{n} day{'' if n == 1 else 's'} {'later' if forward else 'earlier'}"] if n < 60 else []
    return said(_tidy(question), "\n".join((*between, *known, f"It is {answer}.")), answer)


_SAME_DAY_NEXT = Patterns("""
    [If|When] the {o} [of this month|of the month|] is a {w}, what's the date of the next {w}[?|]
    The {o} is a {w}. [What date is the {w} after that|Which date is the next {w}|The next {w} is on the][?|]
    [We meet every {w}|The trash goes out every {w}|Choir is on {w}s|Football is every {w}]. Today is {w} the {o}. [What's the date of the next one|Next date|On which date is the next][?|]
    {w} the {o}. [date|Date] of the next {w}[?|]
""")
_NTH_WEEKDAY = Patterns("""
    [If|When] the first {w} of [a|the] month is the {o}, [what date is|which date has|what is the date of] the {k} {w}[?|]
    The first {w} [of the month |]is on the {o}. [When is the {k}|Date of the {k} {w}|What date is the {k} {w}|On which date is the {k} one][?|]
    [A|The|Our] club meets on the {k} {w} of the month. The first {w} is the {o}. [On which date do they meet|When is the meeting|What date is that][?|]
    first {w}: {o}. {k} {w}[?|: ?]
""")
_NEXT_AFTER = Patterns("""
    The {o} is a {w}. [What date is|What's the date of|When is] the next {v}[?|]
    [If|When] {w} is the {o}, what date is the [following|next] {v}[?|]
    [Today is|It's] {w} the {o}. [What's the date on {v}|What date is {v}|Which date has the coming {v}][?|]
    {w} [is the|=|the] {o}, so {v} is the[?| ...?]
""")


@topic(1)
def dates_by_weekday(rng: random.Random) -> Short:
    kind, day = rng.randrange(3), rng.randrange(7)
    w = _DAYS[day]
    if kind == 0:
        a = rng.randint(1, 21)
        return computed(_tidy(_SAME_DAY_NEXT.expand(rng, o=ordinal(a), w=w)), apply("+", a, 7))
    if kind == 1:
        a, k = rng.randint(1, 7), rng.randint(2, 4)
        worked = Worked((), a)
        lines: tuple[str, ...] = ()
        for _ in range(k - 1):
            worked = apply("+", worked.value, 7)
            lines += worked.lines
        return computed(
            _tidy(_NTH_WEEKDAY.expand(rng, o=ordinal(a), w=w, k=("second", "third", "fourth")[k - 2])),
            Worked(lines, worked.value),
        )
    a, n = rng.randint(1, 22), rng.randint(1, 6)
    listed = ", ".join(f"{_DAYS[(day + i) % 7]} {a + i}" for i in range(1, n + 1))
    question = _NEXT_AFTER.expand(rng, o=ordinal(a), w=w, v=_DAYS[(day + n) % 7])
    return said(_tidy(question), f"{listed}\n{a} + {n} = {a + n}", a + n)


# Dates -----------------------------------------------------------------------------------------

_DATE_LATER = Patterns("""
    [what|which] date [is|comes|do we have|will it be] {n} after {d}[?|]
    [The|This|A] [library book|loan|DVD|trial|form|tax bill|invoice] [is due|must be back|must be paid|ends|expires] {n} after {d}. [When|When is that|Which date is that|Due date][?|]
    [Invoice|Bill|Letter] [of|from|dated] {d}, [payable within|due in|to be paid in] {n}. [Due date|Pay by|By what date|Last day to pay][?|]
    [I|We|They] [fly|leave|set off|check in] on {d} and [come back|return|check out|are home] {n} later. [When are we back|On which date|Return date|Date of return][?|]
    [My|{x}'s|The baby's] [cast|stitches|braces|test] [went on|was done|came] on {d} and [the result comes|it comes off|they come out] {n} later. [When is that|Which date|On what date][?|]
    [It's|It is|Today is|If it's] {d}. [When is|What date is it in|What's the date in] {n}[?|]
    [The|A] [hen|goose|turtle] sits on her eggs from {d}; they hatch {n} later. [On what date|When|Date][?|]
    [Planted|Sown|Started|Bought|Opened] on {d}, [ripe|ready|finished|expires|bad] {n} later. [Date|When is that|What date|On which day][?|]
    [My|The] [visa|ticket|pass|warranty] [starts|was issued|begins] on {d} and runs out {n} later. [When does it run out|On what date|End date][?|]
    [The|Our] [next|following] [meeting|check-up|lesson|payment] is {n} after the one on {d}. [What date is it|When is it|On which date][?|]
    [add|Add|Count|count on] {n} [to|from] {d}[: which date?|. What date is it?|: date?|]
    {d} [and|plus|+] {n} [is|gives|=|makes] what date[?|]
    {x} said on {d}: "I'll be back in {n}." [What date is that|When is {x} back|On which date][?|]
""")
_DATE_EARLIER = Patterns("""
    [what|which] date [is|was|lies] {n} before {d}[?|]
    [The|Our|My] [wedding|exam|flight|party|move] is on {d}. [Invitations must go out|I have to register|The form is due|Booking closes|We must order] {n} before. [When is that|By what date|Which date is that|Date][?|]
    [It's|It is|Today is] {d}. [The parcel was sent|{x} moved in|School began|I started the job|We met] {n} ago. [On what date|When was that|Which date was that|Date][?|]
    {d} is {n} [away|from now|off]. [What's today's date|What date is it today|Today's date|The date today][?|]
    [In|If in] {n} it [is|will be] {d}[. What|, what] is [today's date|the date today|the date now][?|]
    [The|A] [baby|book|report|rent] is due on {d}; [we pack|I start|they remind us|we must pay a part] {n} earlier. [Which date|When|On what date][?|]
    [The|A] trip ended on {d} after {n}. [When did it start|Start date|On which date did it begin][?|]
    [count|go|Count|Go] back {n} from {d}[: which date?|. What date is it?|: date?]
    {d} [minus|less|-] {n} [is|gives|=|was] what date[?|]
""")


@topic(1.8)
def date_scenes(rng: random.Random) -> Short:
    month = rng.randrange(12)
    date, forward = (month, rng.randint(1, LENGTHS[month])), rng.random() < 0.6
    weeks = rng.random() < 0.35
    n = (
        rng.randint(1, 6)
        if weeks
        else rng.choice((rng.randint(2, 30), rng.randint(2, 20), rng.randint(20, 75), 10, 14, 30))
    )
    lines, end = (days_forward if forward else days_backward)(date, 7 * n if weeks else n)
    require(not _meets_february_end(date, end, forward))
    if weeks and n > 1:
        lines.insert(0, f"{n} * 7 = {7 * n}")
    amount = (
        f"{n} {'week' if weeks else 'day'}{'' if n == 1 else 's'}"
        if n > 1 or rng.random() < 0.5
        else f"a {'week' if weeks else 'day'}"
    )
    question = (_DATE_LATER if forward else _DATE_EARLIER).expand(
        rng, n=amount, d=typed_date(rng, date), x=some_people(rng, 1)[0]
    )
    return said(_tidy(question), "\n".join(lines), shown_date(end))


def _meets_february_end(start: tuple[int, int], end: tuple[int, int], forward: bool) -> bool:
    """Then the date depends on the year."""
    first, last = (start, end) if forward else (end, start)
    months = {(first[0] + i) % 12 for i in range((last[0] - first[0]) % 12)}
    return 1 in months or first == (1, 28)


_LAST_DAY = Patterns("""
    [A|The|Our] {n}-day [trip|camp|fair|cure|cruise] [starts|begins] on {d}, which is day 1. [What date is the last day|On which date is the last day|Date of day {n}|Last day][?|]
    [What date|Which date] is the last day of a {n}-day [trip|course|festival|hike] [starting|that starts|beginning] [on |]{d}, [if|when] the first day counts[?|]
    [Day 1|The first day] is {d}. [What date is day {n}|Which date is day {n}|Date of day {n}][?|]
    [if|If|When] day 1 is {d}, what date is day {n}[?|]
    {n} days of [vacation|camp|school], {d} is the first. [What date is the last|The last one is on what date|Last one][?|]
""")


@topic(0.5)
def last_days(rng: random.Random) -> Short:
    """The first day counts."""
    month = rng.randrange(12)
    date, n = (month, rng.randint(1, LENGTHS[month])), rng.choice(
        (3, 4, 5, 6, 7, 7, 9, 10, 10, 12, 13, 14, 14, 15, 20, 21)
    )
    first = apply("-", n, 1)
    lines, end = days_forward(date, n - 1)
    require(not _meets_february_end(date, end, True))
    question = _LAST_DAY.expand(rng, n=n, d=typed_date(rng, date))
    return said(_tidy(question), "\n".join((*first.lines, *lines)), shown_date(end))


_BETWEEN_DATES = Patterns("""
    [How many days|how many days] [lie|pass|is it|are there] [from|between] {d} [to|and|until] {e}[?|]
    [days|Days|number of days] [between|from] {d} [and|to|until] {e}[?|: ?| =]
    [My|{x}'s|The baby's|Our] [birthday|party|due date|exam|flight|match] is [on |]{e} and [today is|it's|it is] {d}. How many days [until|till|to|is it until] [then|that day|the big day][?|]
    [today|Today|now|It's] {d}, [trip|exam|birthday|holiday|party|deadline] [on |]{e}[. |, |: ][how many days left|days to go|days left|how many more days|how many sleeps][?|]
    [I|We] [borrowed it on {d} and brought it back|rented it on {d} and returned it|ordered it on {d} and got it] on {e}. [How many days later|How many days was that|After how many days][?|]
    [The|A] [strike|storm|voyage|siege|job] [began|started] on {d} and [ended|was over] on {e}. [How many days later|How many days after the start was that|How many days lie between][?|]
    [If|When] [school ends|I leave|the seeds go in] on {d} and [camp starts|I return|they sprout] on {e}, how many days [lie between the two dates|are there from the first to the second date|later is that][?|]
    [It's|Today is] {d}. [How long in days|How many days] [must I wait|do I wait|is it|to go] [till|until] {e}[?|]
    [How many days after|How many days later than] {d} is {e}[?|]
    [How many days before] {e} is {d}[?|]
    [How far apart in days are|How many days apart are] {d} and {e}[?|]
    {d}. {e}. [How many days apart|Days between][?|]
""")


@topic(1.2)
def days_counted(rng: random.Random) -> Short:
    month = rng.randrange(12)
    start, n = (month, rng.randint(1, LENGTHS[month])), rng.choice(
        (rng.randint(1, 28), rng.randint(2, 20), rng.randint(10, 50), 7, 14)
    )
    _, (end_month, day) = days_forward(start, n)
    require((end_month - month) % 12 < 3 and not (month <= 1 < end_month))
    if end_month == month:
        lines = [f"{day} - {start[1]} = {n}"]
    else:
        total = LENGTHS[month] - start[1]
        lines = [f"{MONTHS[month]} has {LENGTHS[month]} days", f"{LENGTHS[month]} - {start[1]} = {total}"]
        for passed in (*((month + i) % 12 for i in range(1, (end_month - month) % 12)), None):
            more = day if passed is None else LENGTHS[passed]
            lines.append(f"{total} + {more} = {total + more}")
            total += more
        require(1 not in {(month + i) % 12 for i in range((end_month - month) % 12)})
    question = _BETWEEN_DATES.expand(
        rng, d=typed_date(rng, start), e=typed_date(rng, (end_month, day)), x=some_people(rng, 1)[0]
    )
    return said(_tidy(question), "\n".join(lines), n)


_TWO_MONTHS = Patterns("""
    [How many days|how many days] [are there in|have|are in|do you get with|make up] {m} and {k} together[?|]
    [How many days|how many days] do {m} and {k} [have [together|in total|altogether]|add up to][?|]
    [total|sum of the|Total] days [in|of] {m} and {k}[?|]
    {m} + {k}: how many days[?|]
    [camp|The course|The job|A project] [runs|lasts|goes on] [all of|through the whole of] {m} and {k}. [How many days is that|How many days][?|]
    days in {m} plus days in {k}[?|]
""")
_MONTH_LENGTH = Patterns("""
    [How long is|How many days long is] {m} in days[?|]
    [number of |]days of {m}[?|]
    {m}[: how many days?| has how many days?|, number of days?|: days?]
    [What is|What's] the last [day|date] of {m}[?|]
    [Does|does] {m} have 30 or 31 days[?|]
    [30|31] or [31|30] days in {m}[?|]
    [{m} goes|{m} runs] from the 1st to which day[?|]
""")
_FEBRUARY = Patterns("""
    [How many days|how many days] [has|does|are in|in] [February|Feb|the month of February] [have |]in {y}[?|]
    [February|Feb] in {y}[: how many days?| has how many days?|, days?]
    [number of |]days [in|of] [February|Feb] in {y}[?|]
    [What|Which] is the last day of February in {y}[?|]
    [How long is|Length of] February in {y}[?|]
""")
# unit: what it is counted in, and how many
_KNOWN = tuple((unit, *known.rsplit(" ", 1)) for unit, _, rest in (line.partition(": ") for line in """
days: a leap year 366; a normal year 365; a week 7; a fortnight 14; a year 365; a weekend 2
months: a year 12
hours: a day 24
minutes: an hour 60
seconds: a minute 60
years: a decade 10; a century 100; a millennium 1000
weeks: a year 52
seasons: a year 4
quarters: a year 4; a dollar 4
decades: a century 10
centuries: a millennium 10
millimeters: a centimeter 10; a meter 1000
centimeters: a meter 100
meters: a kilometer 1000
grams: a kilogram 1000
milliliters: a liter 1000
kilograms: a tonne 1000
inches: a foot 12; a yard 36
feet: a yard 3; a mile 5280
ounces: a pound 16
pints: a quart 2
quarts: a gallon 4
cups: a pint 2
cents: a dollar 100
dimes: a dollar 10
nickels: a dollar 20
eggs: a dozen 12
bits: a byte 8
yards: a mile 1760
milligrams: a gram 1000
sheets: a ream of paper 500
items: a gross 144
""".strip().splitlines()) for known in rest.split("; "))
_FACT_ASK = Patterns("""
    [How many|how many] {u} [are in|are there in|has|does it take to make|make up|fit in|in|make|go into] {w}[?|]
    {u} in {w}[?|: ?| is?]
    [number of|total|amount of] {u} in {w}[?|]
    {w} [has|is|=|equals|contains|means] how many {u}[?|]
    {w} in {u}[?|: ?| = ?]
    [What is|What's|How much is] {w} in {u}[?|]
    [do you know |]how many {u} there are in {w}[?|]
    {w}: how many {u}[?|]
""")


@topic(1.2)
def lengths_known(rng: random.Random) -> Short:
    kind = rng.randrange(6)
    if kind == 0:
        a, b = rng.sample([m for m in range(12) if m != 1], 2)
        worked = apply("+", LENGTHS[a], LENGTHS[b])
        lines = (f"{MONTHS[a]} has {LENGTHS[a]} days", f"{MONTHS[b]} has {LENGTHS[b]} days", *worked.lines)
        return computed(_tidy(_TWO_MONTHS.expand(rng, m=MONTHS[a], k=MONTHS[b])), Worked(lines, worked.value))
    if kind == 1:
        month = rng.choice([m for m in range(12) if m != 1])
        return said(
            _tidy(_MONTH_LENGTH.expand(rng, m=MONTHS[month])),
            f"{MONTHS[month]} has {LENGTHS[month]} days.",
            LENGTHS[month],
        )
    if kind == 2:
        year, days = rng.choice(
            (
                ("a leap year", 29),
                ("leap years", 29),
                ("a normal year", 28),
                ("a year that is not a leap year", 28),
                ("a common year", 28),
            )
        )
        return said(_tidy(_FEBRUARY.expand(rng, y=year)), f"In {year} February has {days} days.", days)
    u, w, n = rng.choice(_KNOWN)
    shown = w.replace("a ", "1 ", 1) if w.startswith("a ") and len(w.split()) == 2 else w
    return said(_tidy(_FACT_ASK.expand(rng, u=u, w=w)), f"{shown} = {n} {u}", int(n))


# Months and years --------------------------------------------------------------------------------

_MONTH_LATER = Patterns("""
    [which|what] month [comes|is|is it] {n} months [after|from|later than] {m}[?|]
    [It's|It is|Now it's] {m}. [The baby is due|The contract ends|We move|School ends|The exam is] in {n} months. [Which month is that|In what month|Month][?|]
    [A|The|My] [lease|course|warranty|contract|magazine] [starts|began|begins] in {m} and [ends|is over|stops] {n} months later. [In which month|What month is that|End month][?|]
    {m} [+|plus] {n} months[?|: which month?| = ?]
    [go|count|Count|Go] {n} months [on|forward] from {m}[: which month?|. What month is it?]
    {n} months [after|from] {m}[?|: what month?| is?]
    [Planted|Ordered|Born|Begun] in {m}, [ready|delivered|walking|finished] {n} months later[: in which month?|. Which month?|. What month is that?]
""")
_MONTH_EARLIER = Patterns("""
    [which|what] month [comes|is|was] {n} months before {m}[?|]
    [It's|It is|Now it's] {m}. [I started here|We moved|The baby was born|The shop opened] {n} months ago. [Which month was that|In what month|Month][?|]
    {m} [-|minus] {n} months[?|: which month?| = ?]
    [go|count|Count|Go] {n} months back from {m}[: which month?|. What month is it?]
    [The|A] [wedding|trip|exam] is in {m}. [Booking starts|We pay|I must apply] {n} months earlier. [In which month|What month][?|]
    In {n} months it [is|will be] {m}. [What month is it now|Which month is it][?|]
""")
_MONTH_PLACE = Patterns("""
    [Which|What] number [is|has] {m}[?| in the year?| among the months?]
    {m} is [month number what|which month of the year][?|]
    {m} as a number[?|]
    [What|Which] month number is {m}[?|]
    [the|The] number of the month {m}[?|]
""")
_MONTH_OF_NUMBER = Patterns("""
    [What|Which] [is month|month is number|month has the number|month is month] {n}[?|]
    month [number |no. |]{n}[?| is?|: which?]
    [If|When] the date says {n} for the month, which month is it[?|]
    [the|The] {o} month of the year[?| is?| is which?]
""")


@topic(1)
def month_scenes(rng: random.Random) -> Short:
    month, kind = rng.randrange(12), rng.random()
    if kind < 0.15:
        return said(
            _tidy(_MONTH_PLACE.expand(rng, m=MONTHS[month])), f"{MONTHS[month]} is month {month + 1}", month + 1
        )
    if kind < 0.3:
        return said(
            _tidy(_MONTH_OF_NUMBER.expand(rng, n=month + 1, o=ordinal(month + 1))),
            f"It is {MONTHS[month]}.",
            MONTHS[month],
        )
    forward, n = rng.random() < 0.6, rng.choice((rng.randint(2, 11), rng.randint(2, 6), rng.randint(12, 20)))
    lines = list(remainder(n, 12).lines) if n >= 12 else []
    step = 1 if forward else -1
    if n % 12:
        lines.append(", ".join(MONTHS[(month + step * i) % 12] for i in range(1, n % 12 + 1)))
    answer = MONTHS[(month + step * n) % 12]
    question = (_MONTH_LATER if forward else _MONTH_EARLIER).expand(rng, m=MONTHS[month], n=n)
    return said(_tidy(question), "\n".join((*lines, f"It is {answer}.")), answer)


_QUARTER = Patterns("""
    [Which|which|what] quarter [of the year |]is {m} in[?|]
    {m}[: which quarter?|, which quarter of the year?| is in which quarter?| belongs to which quarter?]
    [In|in] [which|what] quarter [of the year |]does {m} [fall|lie][?|]
""")
_HOLIDAY_MONTHS = Patterns("""
    [How many months|how many months] [until|till|to] {h} [if|when] it['s| is] {m}[?|]
    it's {m}. [How many months|How long in months] [until|till|to] {h}[?|]
    {m} now, [months to|how many months to|how many months until] {h}[?|]
""")
_RENEWED = Patterns("""
    [My|The|A] [subscription|ticket|rent|insurance] [renews|is paid|comes up] every {n} months, the first time in {m}. [In which month is the {k} time|Month of the {k} time|When is the {k} time][?|]
    [starting|Starting|Beginning] in {m}, [a bill comes|they meet|there is a check] every {n} months. In [which|what] month is the {k} one[?|]
    every {n} months from {m} on: month number {j} of the row[?|]
""")
_MONTHS_COMPARED = Patterns("""
    [Is|is] {m} longer than {k}[?|]
    [Has|Does] {m} [got |have |]more days than {k}[?|]
    [Which|which] [month |]is longer[: |, ]{m} or {k}[?|]
    [Which|which] has more days, {m} or {k}[?|]
    {m} or {k}: which [has more days|is longer][?|]
""")
_DECADE = Patterns("""
    [Which|what|What] decade is {y} in[?|]
    [Which|which] decade does {y} belong to[?|]
    {y}[: which decade?| belongs to which decade?|, decade?]
    [The|A] [song|car|photo] is from {y}. [Which decade is that|What decade][?|]
""")
_NEXT_LEAP = Patterns("""
    [What is|When is|Which is|What's] the [next|first] leap year after {y}[?|]
    next leap year after {y}[?|]
    {y} [has passed|is over]. [When is the next leap year|Next leap year][?|]
    [which|Which] leap year comes [right |]after {y}[?|]
""")
_IS_LEAP = Patterns("""
    [Is|Was|Will] {y} [be |]a leap year or not[?|]
    [leap year or not|Leap year]: {y}[?|]
    {y}[: leap year?| - a leap year?|, leap year or not?]
    [Does|Did] {y} have a February 29[th|][?|]
    [Did|Does] February [of |]{y} have 29 days[?|]
""")


@topic(1.3)
def facts_of_years(rng: random.Random) -> Short:
    month, kind = rng.randrange(12), rng.randrange(7)
    name = MONTHS[month]
    if kind == 0:
        quarter = ordinal(month // 3 + 1)
        return said(
            _tidy(_QUARTER.expand(rng, m=name)),
            f"{name} is month {month + 1}\nIt is in the {quarter} quarter",
            f"{quarter} quarter",
        )
    if kind == 1:
        holiday, at = rng.choice(
            (
                ("Christmas", 12),
                ("Halloween", 10),
                ("Valentine's Day", 2),
                ("New Year's Eve", 12),
                ("the 4th of July", 7),
            )
        )
        require(month + 1 < at)
        worked = apply("-", at, month + 1)
        lines = (
            f"{holiday[0].upper()}{holiday[1:]} is in {MONTHS[at - 1]}, month {at}",
            f"{name} is month {month + 1}",
            *worked.lines,
        )
        return computed(_tidy(_HOLIDAY_MONTHS.expand(rng, h=holiday, m=name)), Worked(lines, worked.value))
    if kind == 2:
        n, k = rng.choice((2, 3, 4, 6)), rng.randint(2, 5)
        require(n * (k - 1) <= 12)
        at = [MONTHS[(month + n * i) % 12] for i in range(k)]
        question = _RENEWED.expand(rng, n=n, m=name, k=("second", "third", "fourth", "fifth")[k - 2], j=k)
        return said(_tidy(question), f"{', '.join(at)}\nIt is {at[-1]}.", at[-1])
    if kind == 3:
        other = rng.choice([m for m in range(12) if LENGTHS[m] != LENGTHS[month]])
        question = _tidy(_MONTHS_COMPARED.expand(rng, m=name, k=MONTHS[other]))
        a, b = LENGTHS[month], LENGTHS[other]
        lines = f"{name} has {a} days\n{MONTHS[other]} has {b} days\n{a} {'>' if a > b else '<'} {b}"
        if "hich" in question:
            winner = name if a > b else MONTHS[other]
            return said(question, f"{lines}\nIt is {winner}.", winner)
        return said(question, f"{lines}\n{'Yes' if a > b else 'No'}", "Yes" if a > b else "No")
    year = rng.choice((rng.randint(1900, 2060), 4 * rng.randint(475, 520), 100 * rng.randint(17, 24)))
    if kind == 4:
        decade = f"{year // 10 * 10}s"
        return said(_tidy(_DECADE.expand(rng, y=year)), f"{year} is in the {decade}", decade)
    if kind == 5:
        following = next(y for y in range(year + 1, year + 9) if y % 4 == 0 and (y % 100 or y % 400 == 0))
        passed = ", ".join(map(str, range(year + 1, following + 1)))
        return said(
            _tidy(_NEXT_LEAP.expand(rng, y=year)),
            f"{passed}\n{following} can be divided by 4\nIt is {following}",
            following,
        )
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    divisor = 400 if year % 400 == 0 else 100 if year % 100 == 0 else 4
    reason = f"{year} can be divided by {divisor}" if year % 4 == 0 else f"{year} cannot be divided by 4"
    if year % 100 == 0 and not leap:
        reason += " and not by 400"
    return said(_tidy(_IS_LEAP.expand(rng, y=year)), f"{'Yes' if leap else 'No'}, {reason}.", "Yes" if leap else "No")


_LEFT_IN_MONTH = Patterns("""
    [How many days|how many days] [are left|remain|are there] in {m} after [the |]{o}[?|]
    [How many days|Days] [until|to|till] the end of {m} [from|after|if it is|if today is] [{m} {a}|the {o}][?|]
    [It's|Today is] {m} {a}. [How many days are left in the month|How many days of {m} are left after today|Days left in {m} after today][?|]
    [If|When] {m} has {l} days and today is the {o}, how many days [are left after today|come after today][?|]
    {m} {a}[: |, ]days left in the month[?|]
    [rent|Pay day|the bill] is due on the last day of {m}; it's {m} {a}. [In how many days|How many days to go|Days to go][?|]
""")
_OF_MONTH_LENGTH = Patterns("""
    [The|A|This] month has {l} days [and today is|and it's] the {o}. [How many days are left after today|How many days come after today|Days left][?|]
    [If|When] [a|the] month has {l} days, how many days are left after the {o}[?|]
    {l} days in the month, {a} gone[: |. |, ][how many left|days left|left][?|]
""")
_COUNTED_DAYS = Patterns("""
    [How many days|how many days] [is it |are there |]from {v} to {w}, both [included|days included|counted][?|]
    [open|Open|The shop is open|I work] {v} to {w}. [How many days is that|How many days a week][?|]
    [How many days|How many school days] are {v} through {w}[?|]
    [from|From] {v} through {w}[: how many days?|, how many days?| is how many days?]
    [count|Count] the days from {v} to {w}, both included[.|]
""")
_DAY_OF_YEAR = Patterns("""
    [what|What|which] date is [the |]day [number |]{n} of a [year that is not a leap year|normal year|common year][?|]
    [the|The] {o} day of a [normal year|year without a leap day][?| is which date?| is?]
    [in|In] which month is the {o} day of a normal year[?|]
    [on|On] what date [is|comes] the {o} day of a [normal|common] year[?|]
""")


@topic(1.3)
def days_of_spans(rng: random.Random) -> Short:
    month, kind = rng.choice([m for m in range(12) if m != 1]), rng.randrange(4)
    if kind == 0:
        length = LENGTHS[month]
        a = rng.randint(1, length - 1)
        worked = apply("-", length, a)
        slots = {"m": MONTHS[month], "o": ordinal(a), "a": a}
        if rng.random() < 0.3:
            length = rng.choice((28, 30, 31))
            require(a < length)
            return computed(_tidy(_OF_MONTH_LENGTH.expand(rng, l=length, o=ordinal(a), a=a)), apply("-", length, a))
        known = (f"{MONTHS[month]} has {length} days",)
        return computed(
            _tidy(_LEFT_IN_MONTH.expand(rng, l=length, **slots)), Worked((*known, *worked.lines), worked.value)
        )
    if kind < 3:
        first, n = rng.randrange(7), rng.randint(2, 6)
        names = [_DAYS[(first + i) % 7] for i in range(n)]
        question = _COUNTED_DAYS.expand(rng, v=names[0], w=names[-1])
        return said(_tidy(question), f"{', '.join(names)}\n{n} days", n)
    n = rng.randint(32, 200)
    at, rest, lines = 0, n, []
    while rest > LENGTHS[at]:
        lines += [f"{MONTHS[at]} has {LENGTHS[at]} days", f"{rest} - {LENGTHS[at]} = {rest - LENGTHS[at]}"]
        rest, at = rest - LENGTHS[at], at + 1
    return said(
        _tidy(_DAY_OF_YEAR.expand(rng, n=n, o=ordinal(n))),
        "\n".join((*lines, f"{MONTHS[at]} {rest}")),
        f"{MONTHS[at]} {rest}",
    )


_CENTURY = Patterns("""
    [Which|What] century [is|was] [the year |]{y} in[?|]
    [The year |]{y} [is|was|lies] in [which|what] century[?|]
    {y}: which century[?|]
    [In which|What] century was [somebody|a king|a painter] born whose birth year is {y}[?|]
    [A|The] [castle|church|book|painting] is from {y}. [Which century is that|What century][?|]
""")


@topic(0.5)
def centuries(rng: random.Random) -> Short:
    year = rng.randint(1101, 2040)
    require(year % 100)
    century = year // 100 + 1
    worked = apply("+", year // 100, 1)
    return said(
        _tidy(_CENTURY.expand(rng, y=year)),
        f"{worked.lines[-1]}\n{year} is in the {ordinal(century)} century",
        ordinal(century),
    )


# Weekdays counted ------------------------------------------------------------------------------------

_UNTIL_DAY = Patterns("""
    [How many days|how many days] [until|till|to|is it until] {b} [if|when] [today is|it's|it is] {a}[?|]
    [Today is|It's] {a}. [How many days [until|till|to] {b}|In how many days is {b}|How long until {b}][?|]
    [How many days|Days] from {a} to [the next |]{b}[?|]
    {a} [today|now], {b} [is |]in how many days[?|]
    [The|My] [party|exam|trip|match] is on {b} and today is {a}. [How many days to go|How many days do I wait|Days left][?|]
    how many [nights|sleeps] from {a} to {b}[?|]
    [In|in] how many days is it {b}, counted from {a}[?|]
""")
_SINCE_DAY = Patterns("""
    [How many days ago|how many days ago] was {b} [if|when] [today is|it's] {a}[?|]
    [Today is|It's] {a}. [How many days ago was {b}|{b} was how many days ago|How long ago was {b}][?|]
    [It|The rain|My cold|The strike] began on {b}; today is {a}. [How many days ago was that|How many days later is it now][?|]
""")
_COUNT_DAYS = Patterns("""
    [How many|how many] {b}s [are there|are|fall] in a month of {l} days [that starts on|if the 1st is|when the 1st is] a {a}[?|]
    [A|The] month has {l} days and [starts|begins] on a {a}. [How many {b}s are there|How many {b}s does it have|Number of {b}s][?|]
    [If|When] {m} 1 is a {a}, how many {b}s [are there in|does it have|has] {m}[?|]
""")
_MONTHS_LEFT = Patterns("""
    [How many months|how many months] [are left|remain] in the year after {m}[?|]
    {m} is over. [How many months of the year are left|Months left in the year][?|]
    [How many months|how many months] come after {m} in a year[?|]
""")
_BY_BIRTH = Patterns("""
    {x} was born in {a}, {y} in {b}. [Who is {w}|Who's {w}|The {w} one][?|]
    [Who is|Who's] {w}: {x}, born in {a}, or {y}, born in {b}[?|]
    {x} (born {a}) or {y} (born {b}): who is {w}[?|]
    [Born|year of birth]: {x} {a}, {y} {b}. [Who is {w}|{w}][?|]
""")
_WITH_MONTH = Patterns("""
    [Today is|It's] {w}, {m} {a}. [What's the date on|What date is|Which date has] the [next|coming] {v}[?|]
    {m} {a} is a {w}. [What date is the {v} after that|When is the next {v}|Date of the next {v}][?|]
    [If|When] {w} is {m} {a}, [what date is|what's the date of] the next {v}[?|]
""")


@topic(1.8)
def weekdays_counted(rng: random.Random) -> Short:
    day, n, kind = rng.randrange(7), rng.randint(1, 6), rng.randrange(7)
    month = rng.choice([m for m in range(12) if m != 1])
    if kind < 2:
        step = 1 if kind == 0 or rng.random() < 0.4 else -1
        listed = ", ".join(_DAYS[(day + step * i) % 7] for i in range(1, n + 1))
        question = (_UNTIL_DAY if step == 1 else _SINCE_DAY).expand(rng, a=_DAYS[day], b=_DAYS[(day + step * n) % 7])
        return said(_tidy(question), f"{listed}\n{n} day{'' if n == 1 else 's'}", n)
    if kind == 2:
        length, b = LENGTHS[month], rng.randrange(7)
        dates = list(range((b - day) % 7 + 1, length + 1, 7))
        question = _COUNT_DAYS.expand(rng, a=_DAYS[day], b=_DAYS[b], l=length, m=MONTHS[month])
        known = [f"{MONTHS[month]} has {length} days"] if f"{length} days" not in question else []
        return said(
            _tidy(question), "\n".join((*known, ", ".join(map(str, dates)), f"{len(dates)} {_DAYS[b]}s")), len(dates)
        )
    if kind == 3:
        require(month < 11)
        worked = apply("-", 12, month + 1)
        lines = (f"{MONTHS[month]} is month {month + 1}", *worked.lines)
        return computed(_tidy(_MONTHS_LEFT.expand(rng, m=MONTHS[month])), Worked(lines, worked.value))
    if kind < 6:
        a, b = rng.sample(range(1930, 2020), 2)
        x, y = (str(who) for who in some_people(rng, 2))
        older = rng.random() < 0.55
        winner = x if (a < b) == older else y
        word = "older" if older else "younger"
        question = _BY_BIRTH.expand(rng, x=x, y=y, a=a, b=b, w=word)
        shown = winner[0].upper() + winner[1:]
        return said(_tidy(question), f"{a} {'<' if a < b else '>'} {b}\n{shown} is {word}.", shown)
    a = rng.randint(1, LENGTHS[month] - n)
    listed = ", ".join(f"{_DAYS[(day + i) % 7]} {a + i}" for i in range(1, n + 1))
    question = _WITH_MONTH.expand(rng, w=_DAYS[day], m=MONTHS[month], a=a, v=_DAYS[(day + n) % 7])
    return said(_tidy(question), f"{listed}\n{MONTHS[month]} {a + n}", f"{MONTHS[month]} {a + n}")

"""Times of day, dates and ages in free phrasing: the facts and the question are composed."""

from __future__ import annotations

import random

from .arithmetic import Worked, apply, chain, remainder
from .composing import Who, compose, named_again, some_people, who
from .grammar import Patterns
from .measures import _DAYS, LENGTHS, MONTHS, clock, span, typed_clock, typed_span
from .numbers import Hand, in_words, ordinal, require
from .question import Short, computed, said, topic

_DAY = 24 * 60


class Dial:
    """How one question writes the time: with am and pm, without, or in 24 hours."""

    def __init__(self, rng: random.Random, casual: bool = False) -> None:
        """`casual`: a full hour may be a bare number, `from 9 to 5`; the wording must have it after a word such as `at`."""
        self._rng = rng
        self._style = rng.choice(("half", "half", "half", "bare", "bare", "24", "words"))
        self._is_short = casual and rng.random() < 0.5
        self._joint = rng.choice((":", ":", ":", ":", ".", "h")) if casual else ":"
        self._in_words = rng.random() < (0.3 if self._is_short else 0.5)

    @property
    def turns_at_noon(self) -> bool:
        """The same time stands for a morning and an evening."""
        return self._style in ("bare", "words")

    def typed(self, time: int) -> str:
        hour, minute = time % _DAY // 60, time % 60
        if self._style == "half":
            if self._rng.random() < 0.15:
                part = "morning" if hour < 12 else "afternoon" if hour < 18 else "evening"
                return f"{(hour - 1) % 12 + 1}{f':{minute:02}' if minute else ''} in the {part}"
            return typed_clock(self._rng, time)
        if self._style == "24":
            if self._joint == "h":
                return f"{hour}h{minute:02}" if minute else f"{hour}h"
            return f"{hour:02}{self._rng.choice((':', ':', '.'))}{minute:02}" if hour < 13 else f"{hour}:{minute:02}"
        hour = (hour - 1) % 12 + 1
        if self._style == "words" and minute % 5 == 0:
            return spoken_time(hour, minute, self._in_words)
        if self._is_short and not minute:
            return in_words(hour) if self._in_words else str(hour)
        return f"{hour}:{minute:02}"

    def shown(self, time: int) -> str:
        if self._style == "half":
            return clock(time)
        hour, minute = time % _DAY // 60, time % 60
        return f"{hour:02}:{minute:02}" if self._style == "24" else f"{(hour - 1) % 12 + 1}:{minute:02}"

    def steps(self, start: int, minutes: int) -> list[str]:
        """Hours first, then minutes up to the full hour, then the rest."""
        lines, now, forward = [], start, minutes >= 0
        hours, rest = divmod(abs(minutes), 60)
        for part in (hours * 60, rest):
            if part:
                following = now + part if forward else now - part
                lines.append(f"{self.shown(now)} {'+' if forward else '-'} {span(part)} = {self.shown(following)}")
                now = following
        return lines


def spoken_time(hour: int, minute: int, in_letters: bool) -> str:
    """`half past 3`, `twenty to four`."""
    write = in_words if in_letters else str
    following = write(hour % 12 + 1)
    if minute == 0:
        return f"{write(hour)} o'clock"
    if minute == 30:
        return f"half past {write(hour)}"
    rest = minute if minute < 30 else 60 - minute
    part = "quarter" if rest == 15 else write(rest)
    return f"{part} past {write(hour)}" if minute < 30 else f"{part} to {following}"


def some_time(rng: random.Random) -> int:
    return rng.choice((60 * rng.randint(5, 22), 30 * rng.randint(12, 44), 15 * rng.randint(24, 88), 5 * rng.randint(72, 270),
                       rng.randint(0, _DAY - 1), rng.randint(360, 1300)))


def some_minutes(rng: random.Random) -> int:
    return rng.choice((5 * rng.randint(1, 11), 60 * rng.randint(1, 11), 15 * rng.randint(1, 20), rng.randint(2, 59),
                       rng.randint(61, 299), 30, 45, 90, 20, 30 * rng.randint(10, 23), 5 * rng.randint(60, 140)))


EVENTS = ("film movie meeting lesson class concert game match show party lecture test exam play flight call interview ride "
          "race trip tour workout rehearsal ceremony festival journey walk nap dinner recipe shift speech webinar drive ferry "
          "broadcast training service program performance appointment surgery hike swim bus trip parade storm blackout "
          "download laundry cycle song contest break").split()
_STARTS = Patterns("[starts|begins|started|began|opens|is due to start|will start|is scheduled] at {t}")
_ENDS = Patterns("[ends|ended|finishes|finished|stops|is over|was over|will end|closes|is done] at {t}")
_LASTS = Patterns("[lasts|lasted|takes|took|goes on for|runs for|ran for|will take|needs|has a length of|is going to last] {d}")
_EVENT_NAME = Patterns("[the|the|the|a|my|our|this|that|today's] {e}")
_WHEN_END = Patterns("[when does {it} [end|finish|stop]|what time does {it} [end|finish|get over]|at what time is {it} over|when is {it} over|what time will it be [then|at the end|afterwards]|when will {it} be over|at what time will {it} end|by when is {it} done]")
_WHEN_START = Patterns("[when did {it} [start|begin]|what time did {it} [start|begin]|at what time does {it} [start|begin]|when must {it} have started|what time was it at the start|when does {it} start]")
_HOW_LONG = Patterns("[how long [is|was] {it}|how long [does|did] {it} [last|take]|how much time [does|did] {it} take|what length has {it}|how long does it go on|for how long does {it} last]")
_GO_AT = Patterns("{x} [leave{x.s}|set{x.s} off|depart{x.s}|start{x.s} walking|head{x.s} out|get{x.s} on the bus|start{x.s} driving|left|set off|departed] [home |]at {t}")
_ARRIVE_AT = Patterns("{x} [arrive{x.s}|get{x.s} there|arrived|got there|reach{x.es} the [station|office|school|airport|city]|come{x.s} home] at {t}")
_WAY = Patterns("[the [way|trip|drive|journey|walk|ride] [takes|is|lasts|needs|took]|it takes {x.me}|{x} need{x.s}|{x} [travel{x.s}|drive{x.s}|walk{x.s}] for] {d}")
_ASK_ARRIVE = Patterns("[when {x.do} {x} arrive|what time {x.do} {x} [get there|arrive]|at what time will {x} [be there|arrive]|when will {x} be there]")
_ASK_LEAVE = Patterns("[when did {x} leave|what time did {x} [leave|set off]|when {x.do} {x} [have to|need to] leave|when must {x} go|at what time should {x} leave|what is the latest time to leave]")
_ASK_TRAVEL = Patterns("[how long [was|is] the [way|trip|journey]|how long did it take|how long {x.do} {x} travel|how much time did {x} need]")


class _Mover(Who):
    @property
    def me(self) -> str:
        return {"I": "me", "we": "us"}.get(self.name, self.name)


def _mover(rng: random.Random) -> _Mover:
    return _Mover(**who(rng).__dict__)


@topic(5)
def clock_stories(rng: random.Random) -> Short:
    """Start, end and length; one of them is asked for."""
    dial, start, minutes = Dial(rng), some_time(rng), some_minutes(rng)
    end = start + minutes
    t, u, d = dial.typed(start), dial.typed(end), typed_span(rng, minutes)
    asked = rng.choice(("end", "end", "start", "length"))
    if rng.random() < 0.6:
        name = _EVENT_NAME.expand(rng, e=rng.choice(EVENTS))
        it = rng.choice(("it", name.replace("a ", "the ", 1) if name.startswith("a ") else name))
        first, second, third = (f"{name} {_STARTS.expand(rng, t=t)}", f"{name} {_ENDS.expand(rng, t=u)}",
                                f"{rng.choice(('it', name))} {_LASTS.expand(rng, d=d)}")
        asks = {"end": _WHEN_END, "start": _WHEN_START, "length": _HOW_LONG}[asked].expand(rng, it=it)
        nouns = {"end": ("the end time", "the time of the end", "the end", "when it ends", "the finishing time"),
                 "start": ("the start time", "the beginning", "the start", "the time of the start"),
                 "length": ("the length", "the duration", "how long", "the time it takes", "the total time")}[asked]
        if asked == "length" and rng.random() < 0.5:
            second = f"it {_ENDS.expand(rng, t=u)}"
    else:
        x = _mover(rng)
        first, second, third = (_GO_AT.expand(rng, x=x, t=t), _ARRIVE_AT.expand(rng, x=x, t=u), _WAY.expand(rng, x=x, d=d))
        asks = {"end": _ASK_ARRIVE, "start": _ASK_LEAVE, "length": _ASK_TRAVEL}[asked].expand(rng, x=x)
        nouns = {"end": ("the arrival time", "the time of arrival", "arrival"),
                 "start": ("the departure time", "the time of departure", "departure"),
                 "length": ("the travel time", "the duration", "the length of the trip")}[asked]
    facts = {"end": [first, third], "start": [second, third], "length": [first, second]}[asked]
    question = compose(rng, facts, asks, rng.choice(nouns))
    return clock_reply(question, dial, start, minutes, asked)


def clock_reply(question: str, dial: Dial, start: int, minutes: int, asked: str) -> Short:
    if asked == "length":
        lines = dial.steps(start, minutes)
        return said(question, "\n".join((*lines, span(minutes)) if len(lines) > 1 else (span(minutes),)), span(minutes))
    if asked == "start":
        return said(question, "\n".join(dial.steps(start + minutes, -minutes)), dial.shown(start))
    return said(question, "\n".join(dial.steps(start, minutes)), dial.shown(start + minutes))


_UNTIL = Patterns("""
    [How many minutes|how many min|How many more minutes] [are there|is it|are left|remain|] [until|till|to|before] {u}[,| if| when] [it is|it's|the time is|the clock shows|now it is] {t}[?|]
    [It is|It's|Now it is|The clock says|The time now is|My watch shows] {t}[.|,] [How many minutes|How many minutes is it] [until|till|to|before] {u}[?|]
    [The|My|Our] {e} [is|starts|leaves|begins] at {u}[.|;|,] [it is now|now it is|it is] {t}[.|,] [How many minutes [are left|do I have|remain|do we have to wait]|Minutes left][?|]
    {t} now, {e} at {u}, [how many minutes to go|minutes left|how many minutes][?|]
    [from|between] {t} [to|and|until|till] {u}[: | - |, ][how many minutes|minutes][?|]
    [How many minutes [pass|passed|go by|elapse|lie]|Number of minutes|Minutes] [from|between] {t} [to|and] {u}[?|]
""")
_LATE = Patterns("""
    [The|A|My] [train|bus|plane|ferry|taxi|tram] [was|is] [due|expected|supposed to come|scheduled] at {t} [and|but] [came|arrived|arrives|comes|showed up] at {u}. [How many minutes late [was it|is it|is that]|By how many minutes was it late|How many minutes of delay|Delay in minutes][?|]
    [How many minutes late is] [somebody|a bus|a train|{x}] [coming|arriving|that comes|who comes] at {u} [instead of|rather than] {t}[?|]
    {x} [should be|had to be|was expected] [there|at work|at school|here] at {t} [but|and] [came|arrived|got there] at {u}. How many minutes late[?| was that?| is this?]
""")


@topic(2)
def minutes_between(rng: random.Random) -> Short:
    dial, start = Dial(rng), some_time(rng)
    minutes = rng.choice((rng.randint(2, 59), 5 * rng.randint(1, 24), rng.randint(61, 150)))
    patterns = _LATE if minutes < 60 and rng.random() < 0.4 else _UNTIL
    question = patterns.expand(rng, t=dial.typed(start), u=dial.typed(start + minutes), e=rng.choice(EVENTS),
                               x=some_people(rng, 1)[0])
    to_hour = -start % 60
    if minutes < 60 and 0 < to_hour < minutes:
        full = start + to_hour
        lines = [f"{dial.shown(start)} + {to_hour} minutes = {dial.shown(full)}",
                 f"{dial.shown(full)} + {minutes - to_hour} minutes = {dial.shown(start + minutes)}",
                 f"{to_hour} + {minutes - to_hour} = {minutes}"]
        return said(question, "\n".join(lines), minutes)
    if minutes < 60:
        return said(question, "\n".join((*dial.steps(start, minutes), f"{minutes} minutes")), minutes)
    hours, rest = divmod(minutes, 60)
    total = f"{hours} * 60 = {hours * 60}" + (f"\n{hours * 60} + {rest} = {minutes}" if rest else "")
    return said(question, "\n".join((*dial.steps(start, minutes), total)), minutes)


_FORWARD = Patterns("""
    {d} [ago|earlier|before now] [it was|the clock said|the time was] {t}[.|;|,] [What time is it|What time is it now|What's the time|The time now|now][?|]
    [if|If|When|Suppose] it was {t} {d} ago, [what time is it [now|]|what is the time now|what does the clock say now][?|]
    {t} [plus|and|+|and then] {d}[?|=| is what time?| is when?| gives?| makes?|: time?]
    [add|Add|Count|Go] {d} [to|from|on from|forward from|past] {t}[.|?|: what time?|]
    {d} [after|past|from|later than|on from] {t} [is|is what time|will be|it will be|it is|is when|is which time|makes|comes to][?|]
    [If|When] it's {t} [now|], what [time will it be|will the time be|will the clock show|does the clock show] [in {d}|{d} from now|{d} later|after {d}|after {d} have passed|when {d} have passed][?|]
    [the|The|my|My|a|A] [cake|bread|pizza|roast|chicken|pie|lasagna] [goes in|went in|goes into the oven|is put in] at {t} and [bakes|cooks|stays in|needs|takes] [for |]{d}. [When is it done|When is it ready|When do I take it out|Done when|Ready at what time][?|]
    I [set|start|started|put on] a timer [of|for] {d} at {t}. When does it [ring|go off|end|beep][?|]
    {x} [starts|begins|started|began] [reading|work|working|walking|cooking|a nap|the race|homework|practice] at {t} and [goes on for|continues for|works for|is busy for|needs|takes|keeps going for] {d}. [When is {x} done|When does {x} finish|At what time is it over|Finished when|What time is it then][?|]
    the [train|bus|plane|ship|ferry] [leaves|departs|sets off|is to leave] at {t} [and|but] [is|runs|leaves] {d} late. When does it [really |actually |][leave|depart|set off][?|]
    the [train|bus|plane|ship|ferry] [leaves|departs|sets off] at {t} and [the ride|the trip|it] takes {d}. [When does it arrive|Arrival|When is it there|What's the arrival time][?|]
    {t}, {d} later[?| what time?| -> time?| =?|: ]
    [the|our|my] [store|museum|shop|office|gym|pool] opens at {t} and [stays open for|is open] {d}. [When does it close|Closing time|What time does it close][?|]
    [I|We] have to [wait|stay|drive|walk] {d} [from|starting at|as of] {t}. Until when[?|]
    at {t} there are {d} [left|to go|until the end|remaining]. When is the end[?|]
    [my|the] [nap|lesson|shift|flight|game] of {d} [starts|begins] at {t}[.|, so when does it end| and ends when| and ends at][?|]
""")
_BACKWARD = Patterns("""
    {d} [before|prior to|ahead of|earlier than] {t} [is|is what time|was|it was|is when|is which time][?|]
    [if|If|When] it['s| is] {t} [now|], what time was it {d} [ago|before|earlier|back][?|]
    [subtract|take|Subtract|Take] {d} from {t}[.|?|]
    [count|go|Go] back {d} from {t}[.|?|: what time?|]
    [school|work|class|the game|the show|the exam] [starts|begins|is] at {t} and I need {d} to get there. When [should|must|do] I [have to |need to |]leave[?|]
    I [have to|must|want to|need to] be [there|at work|at school|home|at the airport] [by|at] {t}. [It takes me|The drive is|The way takes|I need] {d}. [When should I leave|When do I leave|When must I go|Leave when|When to leave][?|]
    dinner is at {t} and [cooking|the roast|the soup] takes {d}. When [do I start|should I begin|must I start|to start][?|]
    [the|a|my] [movie|show|class|shift|game|flight] ends at {t} and lasted {d}. When did it [start|begin][?|]
    {x} [woke up|got up|arrived|came home|was done|finished] at {t} after {d} [of sleep|of work|on the road|of reading|underway]. When did {x} [start|begin|set off|go to bed][?|]
    [set|Set] the alarm {d} before {t}. [To what time|What time is that|When does it ring][?|]
    the [train|bus] came {d} late at {t}. When was it [due|supposed to come|scheduled|planned][?|]
    {t} [minus|less|-] {d}[?|=| is what time?|: time?]
""")
_LASTED = Patterns("""
    I [went to bed|fell asleep] at {t} and [got up|woke up] at {u}. How [long|many hours] did I sleep[?|]
    {x} [worked|read|slept|drove|played|studied|waited] from {t} [to|till|until] {u}. [How long|How long was that|How much time is that|For how long][?|]
    [how long|How long|how much time] [passes|passed|is it|elapses|goes by|lies] [from|between] {t} [to|and|until] {u}[?|]
    [train|Train|The bus|A ferry|The plane] [leaves|departs] {t}, arrives {u}[.|,|;] [How long is the ride|How long is the trip|Duration|Travel time|How long does it take][?|]
    [the|The] [shop|pool|library|museum|office] is open {t} [to|-|until|till] {u}. [How long|How long is that|How long is it open|Opening time in all][?|]
    it [started|began] at {t} and [ended|stopped|was over] at {u}. [How long did it last|How long was it|Duration|How long|It lasted][?|]
    it's {t} [now|]. How long [until|till|to|is it until|do I wait until] {u}[?|]
    {t} to {u} [is|are|makes] [how long|what time span|how much time][?|]
    what's the [time|difference|time difference|time span] between {t} and {u}[?|]
    [starting|Starting] at {t} and [stopping|ending|finishing] at {u} [takes|lasts|is] how long[?|]
""")


@topic(5)
def clock_phrases(rng: random.Random) -> Short:
    dial, start, minutes = Dial(rng), some_time(rng), some_minutes(rng)
    asked = rng.choice(("end", "end", "start", "length"))
    slots = {"t": dial.typed(start + minutes if asked == "start" else start), "u": dial.typed(start + minutes), "d": typed_span(rng, minutes),
             "x": some_people(rng, 1)[0]}
    if rng.random() < 0.15 and minutes % 60 == 0 and minutes:
        hours = minutes // 60
        slots["d"] = f"{in_words(hours)} hour{'' if hours == 1 else 's'}"
    question = {"end": _FORWARD, "start": _BACKWARD, "length": _LASTED}[asked].expand(rng, **slots)
    return clock_reply(" ".join(question.split()).replace(" ,", ",").replace(" .", "."), dial, start, minutes, asked)


_WRONG = Patterns("""
    [A|My|The] [clock|watch|wall clock] is {d} {w} [and|.|. It|, it] shows {t}. [What is the [right|real|true|correct|actual] time|What time is it really][?|]
    [What is the [right|real|correct] time|What time is it] if a [clock|watch] that is {d} {w} [shows|says|reads] {t}[?|]
    [My|The] watch [says|shows] {t} but it is {d} {w}. [The real time|What time is it|Real time|Correct time][?|]
""")
_ZONE = Patterns("""
    [It is|It's] {t} in {p}. {q} is {n} hours {w}. [What time is it|What is the time] in {q}[?|]
    {q} is {n} hours {w} [of |]{p}. [When|If] it is {t} in {p}, [what time is it|what is the time] in {q}[?|]
    [What time is it|What is the time] in {q} [when|if] it is {t} in {p} and {q} is {n} hours {w}[?|]
    {p} {t}, {q} {n} [h|hours] {w}[: time in {q}?|, what time in {q}?]
""")
_CITIES = "London Paris Tokyo Delhi Cairo Lima Rome Oslo Boston Dubai Sydney Madrid Seoul Athens Lagos Moscow".split()


@topic(1)
def clocks_apart(rng: random.Random) -> Short:
    dial, time, ahead = Dial(rng), some_time(rng), rng.random() < 0.5
    if rng.random() < 0.5:
        minutes = rng.choice((5, 10, 15, 20, 3, 12, rng.randint(2, 40)))
        change = -minutes if ahead else minutes
        question = _WRONG.expand(rng, d=f"{minutes} {rng.choice(('minutes', 'min', 'minutes'))}", t=dial.typed(time),
                                 w=rng.choice(("fast", "ahead", "too fast") if ahead else ("slow", "behind", "too slow")))
    else:
        hours = rng.randint(2, 11)
        change = 60 * hours if ahead else -60 * hours
        p, q = rng.sample(_CITIES, 2)
        question = _ZONE.expand(rng, t=dial.typed(time), p=p, q=q, n=hours, w="ahead" if ahead else "behind")
    return said(question, "\n".join(dial.steps(time, change)), dial.shown(time + change))


_TWO_SPANS = Patterns("""
    {x} [work{x.s}|read{x.s}|practice{x.s}|run{x.s}|sleep{x.s}|exercise{x.s}|cook{x.s}|draw{x.s}] for {a} minutes [in the morning|first|today|on Monday] and {b} minutes [in the evening|later|tomorrow|on Tuesday]. {q}
    [One|The first] {e} [takes|lasts] {a} minutes[, the other| and the next| and the second] {b} minutes. {q}
    {a} minutes [and|plus|then|+] {b} minutes[: |. |, ]{q}
    {x} [need{x.s}|spend{x.s}] {a} min [on|for] [homework|the dishes|the garden|the car|math] and {b} min [on|for] [piano|reading|lunch|the dog|cleaning]. {q}
""")
_TWO_ASK = Patterns("[How many minutes [in all|altogether|in total|is that|together]|Total minutes|how many minutes]?")
_TWO_ASK_HOURS = Patterns("[How [long|much time] [in all|altogether|in total|is that|together] in hours and minutes|How many hours and minutes [is that|in total]]?")
_PER_DAY = Patterns("""
    {x} [work{x.s}|sleep{x.s}|read{x.s}|train{x.s}|practice{x.s}|study{x.s}|watch{x.es} TV|walk{x.s}|play{x.s}] {a} {u} [a|per|each|every] day. [How many {u} [is that |]in {n} days|How many {u} in {n} days][?|]
    [How many {u}|How much time in {u}] [does one work|do I sleep|do you spend|is it] in {n} days [at|with|when it is|of] {a} {u} [a|per|each] day[?|]
    {n} [lessons|songs|laps|rounds|episodes|shifts|classes] of {a} {u} [each|][: | |, ][how many {u}|total {u}|how long in {u}|total time in {u}][?|]
    [Each|One|Every] [lesson|lap|episode|shift|session|class] [lasts|takes|is] {a} {u}. [How many {u}|How long in {u}] [are|for|do] {n} of them[?| take?]
""")


@topic(1.5)
def spans_of_time(rng: random.Random) -> Short:
    x = who(rng)
    if rng.random() < 0.5:
        a, b = 5 * rng.randint(2, 18), 5 * rng.randint(2, 18)
        if rng.random() < 0.3:
            a, b = rng.randint(5, 99), rng.randint(5, 99)
        total = apply("+", a, b)
        slots = {"x": x, "a": a, "b": b, "e": rng.choice(EVENTS)}
        if rng.random() < 0.5 or a + b <= 60:
            return computed(_TWO_SPANS.expand(rng, q=_TWO_ASK.expand(rng), **slots), total)
        lines = (*total.lines, f"{a + b} minutes = {span(a + b)}")
        return said(_TWO_SPANS.expand(rng, q=_TWO_ASK_HOURS.expand(rng), **slots), "\n".join(lines), span(a + b))
    unit = rng.choice(("minutes", "hours", "minutes"))
    a, n = rng.randint(2, 12) if unit == "hours" else 5 * rng.randint(1, 12), rng.randint(2, 30)
    return computed(_PER_DAY.expand(rng, x=x, a=a, n=n, u=unit), apply("*", n, a))


_PERIODS = Patterns("""
    [A|The|Our] {e} [starts|begins] at {t}. [It has|There are] {n} [parts|rounds|lessons|halves] of {m} minutes [each|]. [When|What time] does it end[?|]
    {n} [lessons|sessions|parts|episodes] of {m} minutes [each |]start at {t}[. When are they over?|: end?|, when is the end?|. What time do they finish?]
    [A|The|My] [bus|train|tram|ferry] [comes|leaves|goes|runs] every {m} minutes. [The first [one |]is|It starts] at {t}. [When is the {k} one|What time does the {k} one come|Time of the {k}][?|]
    [Starting|Beginning] at {t}, [a bell rings|a bus leaves|a pill is taken] every {m} minutes. When is the {k} [time|one][?|]
""")
_BREAK = Patterns("""
    [A|The] {e} [starts|begins] at {t}, [lasts|takes|goes on for] {d} and [has|includes] a break of {m} minutes [on top|extra]. [When|What time] [does it end|is it over][?|]
    {x} [start{x.s}|begin{x.s}] at {t}, [work{x.s}|read{x.s}|cook{x.s}|clean{x.s}] for {d}, then [rest{x.s}|wait{x.s}|chat{x.s}|nap{x.s}] for {m} minutes. [What time is it|What is the time] [then|now|after that][?|]
    [It is|It's] {t}. {x} [walk{x.s}|drive{x.s}|ride{x.s}] {d}, then {m} minutes more. [What time is it then|When {x.do} {x} arrive][?|]
""")


@topic(1.2)
def clock_in_steps(rng: random.Random) -> Short:
    dial, start, e = Dial(rng), some_time(rng), rng.choice(EVENTS)
    if rng.random() < 0.5:
        n, m = rng.randint(2, 6), rng.choice((5, 10, 15, 20, 30, 40, 45, 50, 12, 25))
        text = _PERIODS.expand(rng, e=e, t=dial.typed(start), n=n, m=m, k=ordinal(n))
        times = n - 1 if ordinal(n) in text else n
        lines = list(apply("*", times, m).lines) if times > 1 else []
        if times * m >= 120:
            lines += remainder(times * m, 60).lines
        return said(text, "\n".join((*lines, *dial.steps(start, times * m))), dial.shown(start + times * m))
    minutes, more = some_minutes(rng), 5 * rng.randint(1, 9)
    text = _BREAK.expand(rng, e=e, t=dial.typed(start), d=typed_span(rng, minutes), m=more, x=who(rng))
    lines = (*dial.steps(start, minutes), *dial.steps(start + minutes, more))
    return said(text, "\n".join(lines), dial.shown(start + minutes + more))


# Dates -----------------------------------------------------------------------------------------

Date = tuple[int, int]  # month from 0, day from 1; no leap year


def _date(rng: random.Random) -> Date:
    month = rng.randrange(12)
    return month, rng.randint(1, LENGTHS[month])


def typed_date(rng: random.Random, date: Date) -> str:
    name, day = MONTHS[date[0]], date[1]
    return rng.choice((f"{name} {day}", f"{name} {day}", f"{name} {ordinal(day)}", f"{day} {name}",
                       f"the {ordinal(day)} of {name}", f"{name[:3]} {day}"))


def shown_date(date: Date) -> str:
    return f"{MONTHS[date[0]]} {date[1]}"


def days_forward(date: Date, days: int) -> tuple[list[str], Date]:
    """Through the ends of the months."""
    (month, day), lines = date, []
    while day + days > LENGTHS[month]:
        left = LENGTHS[month] - day
        lines.append(f"{MONTHS[month]} has {LENGTHS[month]} days")
        if left:
            lines += [f"{LENGTHS[month]} - {day} = {left}", f"{days} - {left} = {days - left}"]
        days, day, month = days - left, 0, (month + 1) % 12
    if day:
        lines.append(f"{day} + {days} = {day + days}")
    return [*lines, shown_date((month, day + days))], (month, day + days)


def days_backward(date: Date, days: int) -> tuple[list[str], Date]:
    (month, day), lines = date, []
    while days >= day:
        month = (month - 1) % 12
        if days - day:
            lines.append(f"{days} - {day} = {days - day}")
        lines.append(f"{MONTHS[month]} has {LENGTHS[month]} days")
        days, day = days - day, LENGTHS[month]
    if days:
        lines.append(f"{day} - {days} = {day - days}")
    return [*lines, shown_date((month, day - days))], (month, day - days)


_DATE_AFTER = Patterns("""
    [What date is|What is the date|Which date is|What day is it|What's the date|which day comes|what date will it be|give the date] {n} [after|from|past|later than] {d}[?|]
    [Today is|It is|If today is|Today's date is|It's|Suppose today is] {d}[.|,|;] [what is the date|What date is it|what date will it be|Which date is it|the date] [in {n}|{n} from now|after {n}|{n} later][?|]
    {d} [plus|+|and] {n}[?|=|: date?| is which date?]
    {n} after {d}[?|: what date?| is what date?]
    [A|The|My|Our] {e} [starts|begins|opens|leaves] on {d} and [lasts|ends|is over] [exactly |]{n} later. [On which date does it end|When is the end|What is the end date][?|]
    [A|The|My] [bill|rent|book|loan|report|task] is due {n} after {d}. [When is it due|What is the due date|Due date][?|]
    {x} [order{x.s}|plant{x.s}|start{x.s}|send{x.s}] something on {d}. It [comes|grows|ends|arrives] {n} later. [When|On what date|Date][?|]
""")
_DATE_BEFORE = Patterns("""
    [What date is|What is the date|Which date is|What date was|which day is|What date falls] {n} [before|prior to|earlier than] {d}[?|]
    [Today is|It is|If today is|It's] {d}[.|,] [what date was it|What was the date|which date was it] {n} [ago|earlier|before][?|]
    {d} [minus|-|less] {n}[?|=|: date?]
    {n} before {d}[?|: what date?| is what date?]
    [A|The|My] {e} is on {d}. [{x} must [book|pay|start|apply]|Tickets go on sale|It must be booked] {n} before. [On which date|When is that|What date][?|]
""")


@topic(2.2)
def dates_moved(rng: random.Random) -> Short:
    date, forward = _date(rng), rng.random() < 0.65
    weeks = rng.random() < 0.3
    n = rng.randint(1, 6) if weeks else rng.choice((rng.randint(1, 30), rng.randint(1, 30), rng.randint(1, 75), 10, 30))
    hand = Hand(rng)
    amount = f"{hand.write(n)} {'week' if weeks else 'day'}{'' if n == 1 else 's'}"
    lines, end = (days_forward if forward else days_backward)(date, 7 * n if weeks else n)
    require(not (date[0] == 1 and date[1] > 27))
    if weeks and n > 1:
        lines.insert(0, f"{n} * 7 = {7 * n}")
    question = (_DATE_AFTER if forward else _DATE_BEFORE).expand(
        rng, n=amount, d=typed_date(rng, date), e=rng.choice(EVENTS), x=who(rng, False))
    return said(question, "\n".join(lines), shown_date(end))


_NEAR_AFTER = Patterns("""
    [If today is|Today is|Today's date is|It is|If it's] {d}[, what's|. What's|, what is|. What is|; what will be|: ] [tomorrow's date|the date tomorrow|the next day's date][?|]
    [What|Which] [date|day] [is|comes] [after|right after|the day after|one day after|next after|following] {d}[?|]
    the day after {d}[?| is?]
    {d} was yesterday[.|;|,] [What's today's date|Today's date|What is the date][?|]
    [If|When] yesterday was {d}, what is [today's date|the date today][?|]
""")
_NEAR_BEFORE = Patterns("""
    [If today is|Today is|Today's date is|It is|If it's] {d}[, what was|. What was] [yesterday's date|the date yesterday|the previous day's date][?|]
    [What|Which] [date|day] [is|comes|was] [before|right before|the day before|one day before|just before] {d}[?|]
    the day before {d}[?| is?]
    {d} is tomorrow[.|;|,] [What's today's date|Today's date|What is the date][?|]
    [If|When] tomorrow is {d}, what is [today's date|the date today][?|]
""")
_WEEK_AFTER = Patterns("""
    [What date is|What is the date|Which date is] {n} [after|from|later than] {d}[?|]
    {n} [after|from|later than] {d}[?| is which date?| is?]
    [Today is|It is|If today is] {d}[.|,] [What is the date in|what date is it in] {n}[?|]
    [the|my] {e} is {n} after {d}. [Which date is that|On what date|Date][?|]
""")


@topic(1)
def near_dates(rng: random.Random) -> Short:
    """The day before and after, and weeks in words."""
    date = _date(rng)
    if rng.random() < 0.4:
        date = date[0], rng.choice((1, LENGTHS[date[0]], LENGTHS[date[0]] - 1, 2))
    kind = rng.randrange(3)
    require(not (date[0] == 1 and date[1] > 21) and not (date == (2, 1) and kind == 1))
    if kind == 2:
        weeks, text = rng.choice(((1, "a week"), (1, "one week"), (2, "two weeks"), (2, "a fortnight"), (3, "three weeks"), (1, "exactly a week")))
        lines, end = days_forward(date, 7 * weeks)
        if weeks > 1:
            lines.insert(0, f"{weeks} * 7 = {7 * weeks}")
        return said(_WEEK_AFTER.expand(rng, d=typed_date(rng, date), n=text, e=rng.choice(EVENTS)), "\n".join(lines), shown_date(end))
    lines, end = (days_forward if kind == 0 else days_backward)(date, 1)
    question = (_NEAR_AFTER if kind == 0 else _NEAR_BEFORE).expand(rng, d=typed_date(rng, date))
    return said(question, "\n".join(lines), shown_date(end))


_DATE_GAP = Patterns("""
    [How many days|How many days are there|How many days is it|How long in days|Number of days|how many days pass|how many nights are] [from|between] {d} [to|and|until|till] {e}[?|]
    [How many days|How long in days] [after|from] {d} is {e}[?|]
    [Today is|It is|If today is] {d}[.|,] [how many days [until|till|to|are left until|before]|How many days is it to] {e}[?|]
    [How many days [until|till|to|before]|days to] {e} [if|when] [today is|it is] {d}[?|]
    {x} [leave{x.s}|travel{x.s}|check{x.s} in] on {d} and [return{x.s}|come{x.s} back|check{x.s} out] on {e}. [How many [days|nights] [is that|later|away]|How many nights][?|]
    [A|The|My] {w} [is|falls] on {e}[.|,] [today is|now it is|it is] {d}[.|,] [How many days [to go|left|remain|must I wait]|days left][?|]
    {d} [to|-|until|->] {e}[: | |, ][how many days|days][?|]
""")
_INCLUSIVE = Patterns("""
    [How many days|How long in days] [is|does] [it|a course last|a festival last|a fair last] from {d} [to|through|until] {e}[, | ][both [days |]included|inclusive|including both|counting both days][?|]
    [A|The] [fair|festival|sale|camp|course|show] [runs|goes|lasts|is open] from {d} [to|through|until] {e}, [both [days |]included|inclusive|first and last day included]. [How many days is that|How many days|How long][?|]
""")


@topic(2)
def days_between(rng: random.Random) -> Short:
    start = _date(rng)
    n = rng.choice((rng.randint(1, 28), rng.randint(1, 28), rng.randint(10, 60), 7, 14))
    month, day = days_forward(start, n)[1]
    require(month >= start[0] and not (start[0] <= 1 < month))  # the days of February would depend on the year
    lines = []
    if month == start[0]:
        lines.append(f"{day} - {start[1]} = {n}")
    else:
        total = LENGTHS[start[0]] - start[1]
        lines += [f"{MONTHS[start[0]]} has {LENGTHS[start[0]]} days", f"{LENGTHS[start[0]]} - {start[1]} = {total}"]
        for passed in (*range(start[0] + 1, month), None):
            more = day if passed is None else LENGTHS[passed]
            lines.append(f"{total} + {more} = {total + more}")
            total += more
    slots = {"d": typed_date(rng, start), "e": typed_date(rng, (month, day)), "x": who(rng),
             "w": rng.choice(("birthday", "exam", "wedding", "concert", "party", "trip", "vacation", "deadline", "holiday"))}
    if rng.random() < 0.2:
        lines.append(f"{n} + 1 = {n + 1}")
        return said(_INCLUSIVE.expand(rng, **slots), "\n".join(lines), n + 1)
    return said(_DATE_GAP.expand(rng, **slots), "\n".join(lines), n)


_WEEKDAY_ON = Patterns("""
    [If|When|Suppose|Say] {m} {a} is [a |]{w}[, what|, which] day [of the week |][is|will be] {m} {b}[?|]
    {m} {a} [is|falls on|was] a {w}. [What day [of the week |]is {m} {b}|Which weekday is {m} {b}|On which day does {m} {b} fall|And {m} {b}][?|]
    [What|Which] [day|weekday|day of the week] is [the |]{p} [if|when] the {o} is a {w}[?|]
    The {o} is a {w}. [What|Which] [day|weekday] is the {p}[?|]
""")
_MOVED_DAY = Patterns("""
    [The|A|My|Our] {e} is [on |]{w} [and|but] [is moved|was postponed|gets delayed|is put off|moves] [by |]{n} days. [What day is it now|Which day is it then|On which day is it|New day][?|]
    {x} [start{x.s}|order{x.s}|plant{x.s}|get{x.s} sick] on [a |]{w}[. It takes| and it takes| and needs] {n} days. [On which day [of the week |]is it over|What day is it then|Which weekday is the end][?|]
    [Today is|It's|it is|Since today is|As today is] {w}[.|,] [and |]the {e} is in {n} days[. |, ][What day is that|Which weekday is that|what day is the {e}|On what day is it][?|]
    [Which day|What weekday|What day] [comes|follows|is it] {n} days after {w}[?|]
    {w} [+|plus] {n} days[?|=|: which day?| is?]
    {n} days [from|after|past] {w}[?|: | is which day?| falls on?]
    [What day|Which day] [is it|will it be] [in {n} days|{n} days from now|after {n} days] [if|when] [today is|it is|it's] {w}[?|]
    [If yesterday was|Yesterday was] {v}[, what|. What|, which] day is it [in {n} days|{n} days from today][?|]
""")
_BACK_DAY = Patterns("""
    [Today is|It's|it is|Since today is] {w}[.|,] [The|My] {e} was {n} days ago[. |, ][What day was that|Which weekday was it|on what day was it][?|]
    {w} [-|minus] {n} days[?|=|: which day?]
    [What|Which] day was it {n} days ago[, if|, when| if] [today is|it is|it's] {w}[?|]
    {n} days [before|earlier than|prior to] {w}[?| is?| was?|: which day?]
    [The|A|My] {e} is on {w}. {x} must [pay|register|pack|call|start] {n} days [before|earlier|in advance]. [Which day is that|On what day|What day][?|]
""")


@topic(2.5)
def weekday_stories(rng: random.Random) -> Short:
    day = rng.randrange(7)
    if rng.random() < 0.3:
        a = rng.randint(1, 20)
        b = rng.randint(a + 1, 28)
        n, forward = b - a, True
        question = _WEEKDAY_ON.expand(rng, m=rng.choice(MONTHS), a=a, b=b, w=_DAYS[day], o=ordinal(a), p=ordinal(b))
        lines = [f"{b} - {a} = {n}"]
    else:
        n, forward = rng.choice((rng.randint(2, 9), rng.randint(2, 16), rng.randint(2, 50), 7, 10, 30)), rng.random() < 0.65
        slots = {"n": Hand(rng).write(n), "w": _DAYS[day], "e": rng.choice(EVENTS), "v": _DAYS[(day - 1) % 7]}
        question = (_MOVED_DAY if forward else _BACK_DAY).expand(rng, x=who(rng, forward), **slots)
        lines = []
        if "esterday was" in question:
            lines.append(f"Today is {_DAYS[day]}.")
    if n >= 7:
        lines.append(f"{n} / 7 = {n // 7} remainder {n % 7}")
    step = 1 if forward else -1
    if n % 7 > 1:
        lines.append(", ".join(_DAYS[(day + step * i) % 7] for i in range(1, n % 7 + 1)))
    answer = _DAYS[(day + step * n) % 7]
    return said(question, "\n".join((*lines, f"It {'is' if forward else 'was'} {answer}.")), answer)


_RELATIVE = (("the day after tomorrow", 2), ("the day before yesterday", -2), ("tomorrow", 1), ("yesterday", -1),
             ("today", 0), ("in three days", 3), ("three days ago", -3))
_RELATIVE_ASK = Patterns("""
    [If|When|Suppose] {a} {b} {w}, [what|which] day {c} {d}[?|]
    {A} {b} {w}. [What|Which] day {c} {d}[?|]
    [What|Which] [day|weekday] {c} {d} [if|when] {a} {b} {w}[?|]
""")


@topic(0.8)
def relative_days(rng: random.Random) -> Short:
    (a, p), (d, q) = rng.sample(_RELATIVE, 2)
    day = rng.randrange(7)
    verb = {-1: "was", 0: "is", 1: "is"}
    then, asked = (verb[(k > 0) - (k < 0)] for k in (p, q))
    question = _RELATIVE_ASK.expand(rng, a=a, A=a[0].upper() + a[1:], b=then, w=_DAYS[day], c=asked, d=d)
    answer = _DAYS[(day - p + q) % 7]
    today = f"Today is {_DAYS[(day - p) % 7]}.\n" if p and q else ""
    return said(question, f"{today}It {asked} {answer}.", answer)


_MONTHS_LATER = Patterns("""
    [What|Which] month [is|comes] {n} months {w} {m}[?|]
    [It is|It's|Now it is|If it is] {m}[.|,] [what|which] month [{z}][?|]
    {n} months {w} {m}[?|: which month?| is what month?]
""")
_YEARS = Patterns("""
    [How many years|How many years are there|How many years passed|how long in years] [from|between] {a} [to|and|until] {b}[?|]
    [A|The|Our|This] {h} was [built|founded|opened|planted|started|made|bought] in {a}. [How old [is|was] it in {b}|How many years [is|was] that before {b}|Age in {b}][?|]
    {x} [moved|married|retired|graduated|started work] in {a}. [How many years ago is that in {b}|How many years is it in {b}][?|]
    {a} [to|-|until] {b}[: |, ]how many years[?|]
""")
_YEAR_AFTER = Patterns("""
    [What|Which] year [is|was|comes|will it be] {n} years {w} {a}[?|]
    [A|The|Our|This] {h} was [built|founded|opened|planted|made] {n} years {w} {a}. [In what year|Which year][?|]
    {n} years {w} {a}[?|: which year?| is what year?]
""")
_WEEKS = Patterns("""
    [How many days are|How many days is|How many days] [in |]{n} weeks[ and {k} days|][?|]
    {n} weeks[ and {k} days| {k} days|] [in days|= how many days|is how many days][?|]
    [The|A|My|Our] [trip|course|vacation|holiday|job|diet|project|voyage] [lasts|takes|is] {n} weeks[ and {k} days|]. [How many days is [that|it]|How long in days|In days][?|]
""")
_TO_WEEKS = Patterns("""
    [How many [full |whole |]weeks] [are|is|are in|fit in|do you get from] {d} days[?|]
    {d} days [in weeks|= how many weeks|is how many weeks][?|]
    [The|A|My] [trip|course|holiday|camp|cruise] [lasts|takes|is] {d} days. [How many weeks is that|In weeks|How long in weeks][?|]
""")


@topic(1.5)
def calendar_spans(rng: random.Random) -> Short:
    kind = rng.randrange(5)
    forward = rng.random() < 0.6
    if kind == 0:
        month, n = rng.randrange(12), rng.randint(2, 11)
        answer = MONTHS[(month + (n if forward else -n)) % 12]
        z = f"will it be in {n} months" if forward else f"was it {n} months ago"
        step = 1 if forward else -1
        line = ", ".join(MONTHS[(month + step * i) % 12] for i in range(1, n + 1))
        question = _MONTHS_LATER.expand(rng, n=n, m=MONTHS[month], w="after" if forward else "before", z=z)
        return said(question, f"{line}\nIt is {answer}.", answer)
    first, n = rng.randint(1850, 2020), rng.randint(3, 99)
    h = rng.choice("house bridge school tree church tower company club town shop car boat castle museum".split())
    if kind == 1:
        return computed(_YEARS.expand(rng, a=first, b=first + n, h=h, x=who(rng)), apply("-", first + n, first))
    if kind == 2:
        return computed(_YEAR_AFTER.expand(rng, a=first, n=n, h=h, w="after" if forward else "before"),
                        apply("+" if forward else "-", first, n))
    n, k = rng.randint(2, 20), rng.randint(2, 6)
    if kind == 3:
        text = _WEEKS.expand(rng, n=n, k=k)
        days = chain(n, ("*", 7), ("+", k)) if f"{k} days" in text.replace(f"{n} weeks", "") else apply("*", n, 7)
        return computed(text, days)
    return computed(_TO_WEEKS.expand(rng, d=7 * n), apply("/", 7 * n, 7))


# Ages ------------------------------------------------------------------------------------------

_IS = Patterns("{x} {x.be} [{a}|{a} years old|{a}|{a} years of age|now {a}|{a} now|currently {a}|{a} this year|aged {a}]")
_WAS = Patterns("{x} [{x.was} [{a}|{a} years old] {n} years ago|turned {a} {n} years ago]")
_WILL = Patterns("[in {n} years {x} will be {a}|{x} will be {a} in {n} years|{n} years from now {x} will be {a}]")
_OLDER = Patterns("[{y} {y.be} {n} years {w} than {x}|{y} {y.be} {w} than {x} by {n} years|{y} {y.be} {n} {w} than {x}|{y} {y.be} {n} years {w}]")
_HOW_OLD = Patterns("[how old {x.be} {x}|what age {x.be} {x}|how many years old {x.be} {x}|what is {x.of} age|how old {x.be} {x} now]")
_HOW_OLD_IN = Patterns("[how old will {x} be in {n} years|what age will {x} be {n} years from now|how old {x.be} {x} in {n} years|how old will {x} be {n} years later|in {n} years how old will {x} be|what will {x.of} age be in {n} years|after {n} years how old {x.be} {x}]")
_HOW_OLD_AGO = Patterns("[how old {x.was} {x} {n} years ago|what age {x.was} {x} {n} years ago|what was {x.of} age {n} years ago|{n} years ago how old {x.was} {x}|how old {x.was} {x} {n} years earlier|how old {x.was} {x} {n} years before]")
_AGE_NOUN = Patterns("{x.of} age")


@topic(4)
def age_stories(rng: random.Random) -> Short:
    x, y = some_people(rng, 2, first_person=True)
    hand, kind = Hand(rng), rng.randrange(10)
    a, n = rng.randint(2, 75), rng.randint(2, 30)
    older = rng.random() < 0.5
    slots = {"x": x, "y": y, "a": hand.write(a), "n": hand.write(n), "w": "older" if older else "younger"}
    is_a, noun = _IS.expand(rng, **slots), _AGE_NOUN.expand(rng, **slots)
    if kind in (0, 1, 4):
        fact = _WAS if older else _WILL
        known = fact.expand(rng, **slots)
        slots["x"] = named_again(rng, x)
        noun = _AGE_NOUN.expand(rng, **slots)
    if kind == 0:
        question = compose(rng, [is_a], _HOW_OLD_IN.expand(rng, **slots), f"{noun} in {slots['n']} years")
        return computed(question, apply("+", a, n))
    if kind == 1:
        require(n < a)
        question = compose(rng, [is_a], _HOW_OLD_AGO.expand(rng, **slots), f"{noun} {slots['n']} years ago")
        return computed(question, apply("-", a, n))
    if kind in (2, 3):
        require(older or n < a)
        other = slots | {"x": y}
        question = compose(rng, [is_a, _OLDER.expand(rng, **slots)], _HOW_OLD.expand(rng, **other),
                           _AGE_NOUN.expand(rng, **other))
        return computed(question, apply("+" if older else "-", a, n))
    if kind == 4:
        require(older or a > n)
        question = compose(rng, [known], _HOW_OLD.expand(rng, **slots), noun)
        return computed(question, apply("+" if older else "-", a, n))
    if kind == 5:
        return _two_ages(rng, x, y)
    if kind == 6:
        return _birth(rng, x)
    if kind == 7:
        until = rng.randint(a + 1, a + 50)
        ask = Patterns("[in how many years will {x} be|how many years until {x} {x.be}|how many years before {x} turn{x.s}|how many more years until {x} {x.be}|how long in years until {x} {x.be}|when, in how many years, will {x} be] {b}[| years old]")
        question = compose(rng, [is_a], ask.expand(rng, x=x, b=until), f"the years until {x} {x.be} {until}")
        return computed(question, apply("-", until, a))
    if kind == 8:
        return _parent(rng)
    operator, b, words = rng.choice((("*", 2, ("twice", "two times", "2 times", "double")), ("*", 3, ("three times", "3 times")),
                                     ("/", 2, ("half",)), ("*", 4, ("four times", "4 times")), ("/", 3, ("a third",))))
    require(a % b == 0 if operator == "/" else a * b < 110)
    times = rng.choice(words)
    if operator == "/" or times == "double":
        fact = rng.choice((f"{y} {y.be} {times} {x.of} age", f"{y} {y.be} {times} the age of {x}"))
    else:
        fact = rng.choice((f"{y} {y.be} {times} as old as {x}", f"{y} {y.be} {times} {x.of} age", f"{y} {y.be} {times} as old"))
    other = slots | {"x": y}
    question = compose(rng, [is_a, fact], _HOW_OLD.expand(rng, **other), _AGE_NOUN.expand(rng, **other))
    return computed(question, apply(operator, a, b))


def _two_ages(rng: random.Random, x: Who, y: Who) -> Short:
    a, b = rng.sample(range(2, 90), 2)
    facts = [_IS.expand(rng, x=x, a=a), _IS.expand(rng, x=y, a=b)]
    kind = rng.randrange(4)
    if kind == 0:
        if a < b:
            a, b, x, y = b, a, y, x
        older, ask = rng.random() < 0.6, Patterns("[how much {w} {x.be} {x} than {y}|by how many years {x.be} {x} {w}|how many years {w} {x.be} {x}|how many years {w} than {y} {x.be} {x}|what is the age difference|how many years are between them|what is the difference of their ages]")
        first, second = (x, y) if older else (y, x)
        question = compose(rng, facts, ask.expand(rng, x=first, y=second, w="older" if older else "younger"),
                           rng.choice(("the age difference", "the difference in age", "the age gap", "the difference")), free=True)
        return computed(question, apply("-", a, b))
    total = apply("+", a, b)
    if kind == 1:
        ask = Patterns("[how old are they together|what is the sum of their ages|how old are both together|how many years are they together|what do their ages add up to|what is their combined age]")
        return computed(compose(rng, facts, ask.expand(rng), rng.choice(("the sum of their ages", "their total age", "the total"))), total)
    if kind == 2:
        n = rng.randint(2, 15)
        ask = Patterns("[what will be the sum of their ages in {n} years|how old will they be together in {n} years|what do their ages add up to in {n} years]")
        first, second = apply("+", a, n), apply("+", b, n)
        end = apply("+", first.value, second.value)
        return computed(compose(rng, facts, ask.expand(rng, n=n), f"the sum of their ages in {n} years"),
                        Worked(first.lines + second.lines + end.lines, end.value))
    known = f"{rng.choice(('together they are', 'the sum of their ages is', 'their ages add up to', 'in total they are'))} {a + b}"
    pair = rng.choice((f"{x} and {y} are {a + b} years old together", f"the ages of {x} and {y} add up to {a + b}", known))
    question = compose(rng, [facts[0], pair], _HOW_OLD.expand(rng, x=y), _AGE_NOUN.expand(rng, x=y))
    return computed(question, apply("-", a + b, a))


def _birth(rng: random.Random, x: Who) -> Short:
    born, age = rng.randint(1925, 2018), rng.randint(2, 85)
    year = born + age
    fact = rng.choice((f"{x} {x.was} born in {born}", f"{x} came into the world in {born}", f"{x.of} year of birth is {born}",
                       f"{x.of} birth year is {born}", f"the year {x} {x.was} born is {born}"))
    kind = rng.randrange(3)
    if kind == 0:
        ask = Patterns("[how old {x.be} {x} in {y}|what age {x.be} {x} in {y}|how old will {x} be in {y}|how old {x.was} {x} in {y}|what age does {x} reach in {y}|how many years old {x.be} {x} in {y}|how old did {x} turn in {y}|how old {x.be} {x} at the end of {y}]")
        return computed(compose(rng, [fact], ask.expand(rng, x=x, y=year), f"{x.of} age in {year}"), apply("-", year, born))
    if kind == 1:
        known = rng.choice((f"{x} {x.be} {age} in {year}", f"{x} turn{x.s} {age} in {year}", f"in {year} {x} {x.was} {age} years old",
                            f"it is {year} and {x} {x.be} {age}", f"{x} turned {age} in {year}", f"{x} died in {year} at the age of {age}"
                            if x.name != "I" else f"in {year} I am {age}"))
        ask = Patterns("[in which year {x.was} {x} born|what year {x.was} {x} born|when {x.was} {x} born|in what year {x.was} {x} born|what is {x.of} year of birth|which year {x.was} {x} born in]")
        noun = rng.choice((f"{x.of} birth year", f"the year of {x.of} birth", "the year of birth"))
        return computed(compose(rng, [known], ask.expand(rng, x=x), noun), apply("-", year, age))
    ask = Patterns("[in which year {x.do} {x} turn {a}|when will {x} be {a}|in what year will {x} be {a}|what year {x.do} {x} turn {a}|in which year {x.be} {x} {a} years old|when {x.do} {x} turn {a}]")
    return computed(compose(rng, [fact], ask.expand(rng, x=x, a=age), f"the year {x} turn{x.s} {age}"), apply("+", born, age))


def _parent(rng: random.Random) -> Short:
    """A parent's age at a birth."""
    parent, child = rng.choice(("mother", "father", "mom", "dad")), rng.choice(("son", "daughter", "child"))
    a, b = rng.randint(18, 42), rng.randint(1, 40)
    at = rng.choice((f"a {parent} was {a} when the {child} was born", f"the {parent} was {a} at the birth of the {child}",
                     f"the {child} was born when the {parent} was {a}"))
    kind = rng.randrange(3)
    if kind == 0:
        return computed(compose(rng, [at, f"the {child} is {b} now"], f"how old is the {parent} now", f"the {parent}'s age now"),
                        apply("+", a, b))
    if kind == 1:
        return computed(compose(rng, [at, f"the {parent} is now {a + b}"], f"how old is the {child}", f"the {child}'s age"),
                        apply("-", a + b, a))
    return computed(compose(rng, [f"the {parent} is {a + b}", f"the {child} is {b}"],
                            f"how old was the {parent} when the {child} was born", f"the {parent}'s age at the birth", free=True),
                    apply("-", a + b, b))


_THREE = Patterns("""
    {x} is {a}. {y} is {n} years {v} than {x} and {z} is {m} years {w} than {y}. [How old is {z}|What is the age of {z}|{z}'s age][?|]
    [How old is {z}|What age is {z}] if {x} is {a}, {y} is {n} years {v} than {x} and {z} {m} years {w} than {y}[?|]
    {z} is {m} years {w} than {y}, who is {n} years {v} than {x}. {x} is {a}. [How old is {z}|Age of {z}][?|]
""")


@topic(0.8)
def ages_in_steps(rng: random.Random) -> Short:
    x, y, z = some_people(rng, 3)
    a, n, m = rng.randint(5, 60), rng.randint(2, 15), rng.randint(2, 15)
    p, q = rng.choice("+-"), rng.choice("+-")
    worked = chain(a, (p, n), (q, m))
    require(worked.value > 0 and apply(p, a, n).value > 0)
    words = {"+": "older", "-": "younger"}
    return computed(_THREE.expand(rng, x=x, y=y, z=z, a=a, n=n, m=m, v=words[p], w=words[q]), worked)

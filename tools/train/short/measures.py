"""Units, time of day, dates, ages, speeds, and shapes."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply, chain
from .grammar import Patterns
from .numbers import Hand, Value, in_words, ordinal, places_of, require, show
from .question import Short, computed, said, topic, with_unit
from .things import person, subject, two_people

# kind -> unit -> (size, names as written). The first name is the reply's.
_UNITS: dict[str, dict[str, tuple[Fraction, tuple[str, ...]]]] = {
    "length": {
        "km": (Fraction(1_000_000), ("km", "kilometers", "kilometres", "kms")),
        "m": (Fraction(1000), ("m", "meters", "metres", "m")),
        "cm": (Fraction(10), ("cm", "centimeters", "centimetres", "cm")),
        "mm": (Fraction(1), ("mm", "millimeters", "millimetres")),
    },
    "imperial length": {
        "mi": (Fraction(63360), ("miles", "miles", "mi")),
        "yd": (Fraction(36), ("yards", "yards", "yd")),
        "ft": (Fraction(12), ("feet", "feet", "ft")),
        "in": (Fraction(1), ("inches", "inches", "in")),
    },
    "weight": {
        "t": (Fraction(1_000_000_000), ("tonnes", "tons", "tonnes", "t", "metric tons")),
        "kg": (Fraction(1_000_000), ("kg", "kilograms", "kilos", "kgs", "kilogrammes")),
        "g": (Fraction(1000), ("g", "grams", "g", "grammes")),
        "mg": (Fraction(1), ("mg", "milligrams")),
    },
    "imperial weight": {
        "lb": (Fraction(16), ("pounds", "pounds", "lb", "lbs")),
        "oz": (Fraction(1), ("ounces", "ounces", "oz")),
    },
    "volume": {
        "l": (Fraction(1000), ("liters", "liters", "litres", "l", "L")),
        "dl": (Fraction(100), ("dl", "deciliters", "dl")),
        "cl": (Fraction(10), ("cl", "centiliters", "cl")),
        "ml": (Fraction(1), ("ml", "milliliters", "millilitres", "mL")),
    },
    "imperial volume": {
        "gal": (Fraction(128), ("gallons", "gallons")),
        "qt": (Fraction(32), ("quarts", "quarts")),
        "pt": (Fraction(16), ("pints", "pints")),
        "cup": (Fraction(8), ("cups", "cups")),
        "fl oz": (Fraction(1), ("fluid ounces", "fluid ounces", "fl oz")),
    },
    "spoons": {
        "cup": (Fraction(48), ("cups", "cups")),
        "tbsp": (Fraction(3), ("tablespoons", "tablespoons", "tbsp")),
        "tsp": (Fraction(1), ("teaspoons", "teaspoons", "tsp")),
    },
    "money": {
        "dollar": (Fraction(100), ("dollars", "dollars")),
        "quarter": (Fraction(25), ("quarters", "quarters")),
        "dime": (Fraction(10), ("dimes", "dimes")),
        "nickel": (Fraction(5), ("nickels", "nickels")),
        "cent": (Fraction(1), ("cents", "cents", "pennies")),
    },
    "time": {
        "wk": (Fraction(604800), ("weeks", "weeks")),
        "d": (Fraction(86400), ("days", "days")),
        "h": (Fraction(3600), ("hours", "hours", "h", "hrs")),
        "min": (Fraction(60), ("minutes", "minutes", "min", "mins")),
        "s": (Fraction(1), ("seconds", "seconds", "s", "sec")),
    },
    "long time": {
        "century": (Fraction(1200), ("centuries", "centuries")),
        "decade": (Fraction(120), ("decades", "decades")),
        "year": (Fraction(12), ("years", "years", "yrs")),
        "month": (Fraction(1), ("months", "months")),
    },
    "data": {
        "TB": (Fraction(10**12), ("TB", "terabytes", "TB")),
        "GB": (Fraction(10**9), ("GB", "gigabytes", "GB", "gigs")),
        "MB": (Fraction(10**6), ("MB", "megabytes", "MB")),
        "KB": (Fraction(1000), ("KB", "kilobytes", "kB")),
        "byte": (Fraction(1), ("bytes", "bytes")),
    },
    "bits": {"byte": (Fraction(8), ("bytes", "bytes")), "bit": (Fraction(1), ("bits", "bits"))},
    "space": {"m3": (Fraction(1000), ("m³", "cubic meters", "cubic metres")), "l": (Fraction(1), ("liters", "liters", "litres"))},
    "land": {"km2": (Fraction(1_000_000), ("km²", "square kilometers")), "ha": (Fraction(10_000), ("hectares", "hectares", "ha")),
             "m2": (Fraction(1), ("m²", "square meters"))},
    "area": {"m2": (Fraction(10_000), ("m²", "square meters", "m²", "square metres")),
             "cm2": (Fraction(1), ("cm²", "square centimeters", "cm²"))},
}
_SINGULAR = {"pennies": "penny", "feet": "foot", "inches": "inch", "centuries": "century", "metric tons": "metric ton"}
_ABBREVIATIONS = {"km", "m", "cm", "mm", "mi", "yd", "ft", "in", "t", "kg", "g", "mg", "lb", "oz", "l", "L", "dl", "cl",
                  "ml", "mL", "fl oz", "tbsp", "tsp", "ha", "km²", "m³", "h", "min", "s", "sec", "TB", "GB", "MB", "KB", "kB", "m²", "cm²"}


def named(name: str, count: Value) -> str:
    if count != 1 or name in _ABBREVIATIONS:
        return name
    return _SINGULAR.get(name, name.removesuffix("s"))


_CONVERT = Patterns("""
    [Convert|convert|Change|Express|Turn|Please convert] {a} {u} [to|into|in] {v}[.|]
    [How many|how many|HOW MANY] {v} [are|is|are in|are there in|in|make|make up|equal|do you get from|fit in|does it take to make] {a} {u}[?|]
    {a} {u} [in|to|into|as|=|is how many|equals how many|= ?|->|=>] {v}[?|]
    [What is|what's|whats] {a} {u} in {v}[?|]
    [What is|How much is] {a} {u} [expressed|converted|] [to|in|into] {v}[?|]
    [How long|How much|What] [is|are] {a} {u} in {v}[?|]
    {a} {u}[,|:] how many {v}[?|]
    [Something|It] [takes|measures|is] {a} {u}. [How many {v} is that|How much is that in {v}][?|]
    {v} in {a} {u}[: how many?| is?|: ? | =]
    {v} in {a} {u}[?|]
    [number of|amount of|total|no. of] {v} in {a} {u}[?|]
    [{u} to {v}|{u} -> {v}|from {u} to {v}|{u} into {v}|{u} in {v}]: {a}[?| {u}|]
    {a} {u}[, {v}|: {v}|; in {v}|, in {v}][?|]
    {a} {u} =[ ? {v}|... {v}| __ {v}| how many {v}?|{v}?]
    [How many {v}|how many {v}] [go into|are contained in|make up|have we got in] {a} {u}[?|]
    [I have|There is|We measured|The label says|It says|The recipe says|Given:] {a} {u}[.|,|;] [and need it in {v}|but I need {v}|In {v}?|What's that in {v}?|How many {v}?|Put that in {v}.]
    [I need|Give me|I want|write|rewrite|state|say|put] {a} {u} in {v}[.|, please.|]
    [Which number of|What number of|What amount of] {v} [equals|corresponds to|is the same as] {a} {u}[?|]
    {a} {u} [corresponds to|equals|is the same as|amounts to|comes to|is worth] [how many|what number of] {v}[?|]
    [Fill in|Complete|Fill the gap|Complete the line]: {a} {u} = [_|__|...|?] {v}[.|]
    [If|When] [something|it|a thing] [is|measures|has|comes to] {a} {u}, how many {v} is [it|that][?|]
""")


@topic(3)
def convert(rng: random.Random) -> Short:
    kind = rng.choice(list(_UNITS))
    units = _UNITS[kind]
    source, target = rng.sample(list(units), 2)
    (size, names), (other, targets) = units[source], units[target]
    factor = size / other
    require(factor <= 1_000_000 and factor >= Fraction(1, 1_000_000))
    value = _to_convert(rng, factor)
    result = value * factor
    require((places_of(result) if places_of(result) is not None else 9) <= 3 and result < 100_000_000)
    a, u = Hand(rng).write(value), _unit(rng, names, value)
    if Fraction(value).denominator == 2 and "time" not in kind and len(u) > 3 and rng.random() < 0.5:
        a, u = _and_a_half(rng, value, names[1] if len(names[1]) > 3 else u)
    question = _CONVERT.expand(rng, a=a, u=u, v=rng.choice(targets))
    if "length" not in kind and "time" not in kind:
        question = question.replace("How long", "How much")
    return with_unit(question, *_conversion(value, factor, names[0], targets[0]))


def _and_a_half(rng: random.Random, value: Value, unit: str) -> tuple[str, str]:
    """`two and a half meters`, `half a meter`: the number, and the unit."""
    whole = int(value)
    if whole == 0:
        return rng.choice(("half a", "1/2")), unit.removesuffix("s") if unit not in _SINGULAR else _SINGULAR[unit]
    return rng.choice((f"{whole} and a half", f"{in_words(whole)} and a half", f"{whole} 1/2")), unit


def _to_convert(rng: random.Random, factor: Fraction) -> Value:
    if factor >= 1:
        kind = rng.random()
        if kind < 0.65:
            return rng.choice((rng.randint(1, 12), rng.randint(1, 60), 1, 2, 3, 5, 10, 100))
        return Fraction(rng.randint(1, rng.choice((12, 200))), rng.choice((2, 2, 4, 10, 10, 10, 100)))
    steps = 1 / factor
    unit = rng.choice((1, 1, 1, Fraction(1, 2), Fraction(1, 10) if steps % 10 == 0 else 1))
    return _whole(steps * unit * rng.randint(1, rng.choice((5, 12, 40))))


def _whole(value: Fraction) -> Value:
    return int(value) if value.denominator == 1 else value


def _unit(rng: random.Random, names: tuple[str, ...], value: Value) -> str:
    name = rng.choice(names)
    return named(name, value) if rng.random() < 0.9 else name


def _conversion(value: Value, factor: Fraction, source: str, target: str) -> tuple[Worked, str]:
    worked = apply("*", value, factor.numerator) if factor >= 1 else apply("/", value, factor.denominator)
    line = f"{show(value)} {named(source, value)} = {show(worked.value)} {named(target, worked.value)}"
    return worked, line


_MIXED = (("hours", 60, "minutes"), ("minutes", 60, "seconds"), ("feet", 12, "inches"), ("weeks", 7, "days"),
          ("years", 12, "months"), ("pounds", 16, "ounces"), ("days", 24, "hours"), ("kg", 1000, "g"), ("m", 100, "cm"),
          ("km", 1000, "m"), ("hours", 60, "min"), ("dollars", 100, "cents"))
_MIXED_ASK = Patterns("""
    [How many|how many] {v} [are|is|are in|in|make] {a} {u} [and |]{b} {v}[?|]
    {a} {u} [and |]{b} {v} in {v}[?|]
    [Convert|Express|Change] {a} {u} [and |]{b} {v} [to|in|into] {v}[.|]
    [A|The] [film|job|trip|thing] [is|lasts|takes|measures] {a} {u} and {b} {v}. [How many|How much in] {v} is [that|it][?|]
""")


@topic(0.6)
def mixed_units(rng: random.Random) -> Short:
    unit, factor, small = rng.choice(_MIXED)
    a, b = rng.randint(1, 12), rng.randint(1, min(factor - 1, 99))
    first = apply("*", a, factor)
    end = apply("+", first.value, b)
    lines = (*first.lines, *end.lines[:-1], f"{end.lines[-1]} {named(small, end.value)}")
    question = _MIXED_ASK.expand(rng, a=a, u=named(unit, a), b=b, v=small)
    return Short(question, "\n".join(lines), str(end.value), end.value)


_FAHRENHEIT = Patterns("""
    [How many|how many] [degrees Fahrenheit|degrees F] [is|are] {a} [degrees Celsius|°C|degrees C][?|]
    {a}°C [->|=|= ?|to|as|into] °F[?|]
    [It's|It is|The forecast says|Water at|The oven is at] {a}°C[ outside|]. [What is that in Fahrenheit|In Fahrenheit|How many °F][?|]
    [celsius to fahrenheit|C to F|°C to °F|°C -> °F]: {a}[?|]
    Americans would say how many degrees [at|for] {a} degrees Celsius[?|]
    {a} [Celsius|C] [is|equals|are] how many [degrees |]Fahrenheit[?|]
    [Convert|convert|Change] {a}[°C| degrees Celsius| C| celsius|° C] to [Fahrenheit|°F|F|degrees Fahrenheit|fahrenheit][.|]
    [What is|How much is|what's] {a}[°C| degrees Celsius| celsius| C] in [Fahrenheit|°F|F|degrees Fahrenheit][?|]
    {a}[°C| C| celsius| degrees C] in [F|°F|Fahrenheit][?|]
""")
_CELSIUS = Patterns("""
    [How many|how many] [degrees Celsius|degrees C] [is|are] {a} [degrees Fahrenheit|°F|degrees F][?|]
    {a}°F [->|=|= ?|to|as|into] °C[?|]
    [It's|It is|The forecast says|The recipe says|The oven is at] {a}°F. [What is that in Celsius|In Celsius|How many °C][?|]
    [fahrenheit to celsius|F to C|°F to °C|°F -> °C]: {a}[?|]
    {a} [Fahrenheit|F] [is|equals|are] how many [degrees |]Celsius[?|]
    [Convert|convert|Change] {a}[°F| degrees Fahrenheit| F| fahrenheit] to [Celsius|°C|C|degrees Celsius|celsius][.|]
    [What is|How much is|what's] {a}[°F| degrees Fahrenheit| fahrenheit| F] in [Celsius|°C|C|degrees Celsius][?|]
    {a}[°F| F| fahrenheit| degrees F] in [C|°C|Celsius][?|]
""")


@topic(0.8)
def temperature(rng: random.Random) -> Short:
    c = rng.choice((5 * rng.randint(-8, 24), rng.randint(-10, 45), 0, 100, 37, 20))
    scaled = c * 9
    f = Fraction(scaled, 5) + 32
    if rng.random() < 0.6:
        worked = chain(c, ("*", 9), ("/", 5), ("+", 32))
        return with_unit(_FAHRENHEIT.expand(rng, a=c), worked, f"{c}°C = {show(worked.value)}°F")
    require(f.denominator == 1)
    worked = chain(int(f), ("-", 32), ("*", 5), ("/", 9))
    return with_unit(_CELSIUS.expand(rng, a=int(f)), worked, f"{int(f)}°F = {c}°C")


_DEGREES = Patterns("""
    [It is|The temperature is|It was|Temperature:] {a} degrees and [{w} by|{w}] {b} degrees. [What is it now|What is the temperature now|New temperature|How warm is it][?|]
    [In the morning it|At noon it|Outside it] was {a}°C[, then it {w}|. It {w}] {b} degrees. [How many degrees now|What is the temperature][?|]
""")


@topic(0.5)
def temperature_change(rng: random.Random) -> Short:
    a, b, rises = rng.randint(-15, 30), rng.randint(1, 20), rng.random() < 0.5
    verb = rng.choice(("rises", "goes up", "warms up", "climbs") if rises else ("falls", "drops", "goes down", "cools"))
    return computed(_DEGREES.expand(rng, a=a, b=b, w=verb), apply("+" if rises else "-", a, b))


# Time ----------------------------------------------------------------------------------------

_DAY = 24 * 60


def clock(minute: int) -> str:
    hour, minute = minute % _DAY // 60, minute % 60
    return f"{(hour - 1) % 12 + 1}:{minute:02} {'am' if hour < 12 else 'pm'}"


def typed_clock(rng: random.Random, time: int) -> str:
    hour, minute = time % _DAY // 60, time % 60
    half = "am" if hour < 12 else "pm"
    text = f"{(hour - 1) % 12 + 1}" + (f":{minute:02}" if minute or rng.random() < 0.5 else "")
    if hour in (0, 12) and not minute and rng.random() < 0.5:
        return "noon" if hour else "midnight"
    return text + rng.choice((f" {half}", f" {half}", half, f" {half.upper()}", half.upper(), f" {half[0]}.m."))


def span(minutes: int) -> str:
    """`2 hours 15 minutes`, `45 minutes`."""
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours} hour{'' if hours == 1 else 's'}"] if hours else []
    if rest or not hours:
        parts.append(f"{rest} minute{'' if rest == 1 else 's'}")
    return " ".join(parts)


_SPOKEN_SPANS = {30: ("half an hour", "a half hour", "half hour"), 15: ("a quarter of an hour", "quarter of an hour"),
                 45: ("three quarters of an hour", "3/4 of an hour"), 60: ("an hour", "one hour"), 75: ("an hour and a quarter",),
                 90: ("an hour and a half", "1.5 hours", "one and a half hours", "1 1/2 hours"), 120: ("two hours",),
                 105: ("an hour and three quarters",), 10: ("ten minutes",), 20: ("twenty minutes",), 180: ("three hours",)}


def typed_span(rng: random.Random, minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    if minutes in _SPOKEN_SPANS and rng.random() < 0.3:
        return rng.choice(_SPOKEN_SPANS[minutes])
    if rng.random() < 0.06 and (not hours and minutes % 5 == 0 or hours > 1 and not rest):
        return f"{in_words(hours or minutes)} {'hours' if hours else 'minutes'}"
    if hours > 1 and rest == 30 and rng.random() < 0.3:
        return rng.choice((f"{hours}.5 hours", f"{hours} and a half hours", f"{in_words(hours)} and a half hours", f"{hours} 1/2 hours",
                           f"{hours}.5h"))
    if not hours or minutes < 240 and rng.random() < 0.2:
        return f"{minutes} {rng.choice(('minutes', 'minutes', 'min', 'mins'))}"
    if not rest:
        return rng.choice((f"{hours} hour{'' if hours == 1 else 's'}", f"{hours} h", f"{hours}h"))
    return rng.choice((f"{hours} hour{'' if hours == 1 else 's'} and {rest} minutes",
                       f"{hours} hour{'' if hours == 1 else 's'} {rest} minutes", f"{hours}h {rest}min", f"{hours} h {rest} min",
                       f"{hours}h{rest:02}", f"{hours}h{rest}m", f"{hours} hr{'' if hours == 1 else 's'} {rest}",
                       f"{hours} hour{'' if hours == 1 else 's'} {rest}"))


def _span(rng: random.Random) -> int:
    return rng.choice((5 * rng.randint(1, 11), 60 * rng.randint(1, 8), 15 * rng.randint(1, 24), rng.randint(1, 59),
                       rng.randint(61, 300), 30, 45, 90, 20, 30 * rng.randint(10, 24)))


def _moment(rng: random.Random) -> int:
    return rng.choice((60 * rng.randint(0, 23), 15 * rng.randint(0, 95), 5 * rng.randint(0, 287), rng.randrange(_DAY)))


def clock_steps(start: int, minutes: int) -> list[str]:
    """Hours first, then minutes: `9:15 am + 2 hours = 11:15 am`."""
    lines, now = [], start
    sign = "+" if minutes >= 0 else "-"
    hours, rest = divmod(abs(minutes), 60)
    for part in (hours * 60, rest):
        if part:
            following = now + part if minutes >= 0 else now - part
            lines.append(f"{clock(now)} {sign} {span(part)} = {clock(following)}")
            now = following
    return lines


_LATER = Patterns("""
    [What time is it|What time will it be|What is the time|Which time is|what's the time] {d} after {t}[?|]
    [What time is|What is] {d} [later than|after|past|from] {t}[?|]
    [It is|It's|its|Now it is] {t}[ now|]. [What time will it be|What time is it|What will the clock show] in {d}[?|]
    [A|The|My] {e} [starts|begins] at {t} and [lasts|takes|goes on for|is long] {d}. [When|At what time|What time] does it [end|finish|stop][?|]
    [I|{x}] [leave|left|start|go] at {t} [and|. It] [need|take|takes|walk|drive] {d}. [When|What time] [do I|is the] arriv[e|al][?|]
    {t} [plus|+|and] {d}[?|=|]
    {d} [after|past] {t}[?|]
    [What time is it|When is it] if it was {t} and {d} [have passed|passed|go by][?|]
""")
_EARLIER = Patterns("""
    [What time is it|What time was it|What is the time|When is] {d} before {t}[?|]
    [It is|It's|Now it is] {t}. [What time was it|What was the time] {d} ago[?|]
    {t} [minus|-|less] {d}[?|]
    {d} before {t}[?|]
    [A|The] {e} [ended|ends|is over|finishes] at {t} [and|after it] lasted {d}. [When|What time] did it [start|begin][?|]
    [I|{x}] must be there at {t} and the [way|trip|walk] takes {d}. When [should I|do I have to] leave[?|]
""")
_BETWEEN = Patterns("""
    [How long is it|How long|How much time is it|How much time is there|What is the time|How many hours and minutes] [from|between] {t} [to|and|until] {u}[?|]
    [A|The|My] {e} [starts|begins] at {t} and [ends|finishes|stops|is over] at {u}. How long [is it|does it last|does it take|did it take][?|]
    from {t} to {u}[?|, how long?| is how long?]
    [{x} works|{x} sleeps|I work|{x} walks|The shop is open] from {t} [to|until|till] {u}. How long is that[?|]
    [How many hours] [from|between] {t} [to|and] {u}[?|]
""")
_EVENTS = "film movie meeting lesson class concert game match show train party lecture test play trip flight".split()


@topic(1.25)
def later(rng: random.Random) -> Short:
    start, minutes = _moment(rng), _span(rng)
    slots = {"d": typed_span(rng, minutes), "t": typed_clock(rng, start), "e": rng.choice(_EVENTS), "x": person(rng)}
    if rng.random() < 0.65:
        return said(_LATER.expand(rng, **slots), "\n".join(clock_steps(start, minutes)), clock(start + minutes))
    return said(_EARLIER.expand(rng, **slots), "\n".join(clock_steps(start, -minutes)), clock(start - minutes))


@topic(0.9)
def between(rng: random.Random) -> Short:
    start = _moment(rng)
    minutes = _span(rng) + rng.choice((0, 0, 60, 120))
    question = _BETWEEN.expand(rng, t=typed_clock(rng, start), u=typed_clock(rng, start + minutes),
                               e=rng.choice(_EVENTS), x=subject(rng))
    hours, rest = divmod(minutes, 60)
    lines = clock_steps(start, minutes)
    if question.startswith("How many hours from") or question.startswith("How many hours between"):
        require(rest in (0, 30, 15, 45))
        value = Fraction(minutes, 60)
        return said(question, "\n".join([*lines, f"{span(minutes)} = {show(value)} hours" if rest else span(minutes)]),
                    _whole(value))
    return said(question, "\n".join([*lines, span(minutes)]) if hours and rest else span(minutes), span(minutes))


_HALF_PAST = Patterns("""
    [What time is|Write|What is] {w} [in digits|as digits|on a digital clock][?|]
    {w} in digits[?|]
""")


@topic(0.3)
def clock_words(rng: random.Random) -> Short:
    names = "one two three four five six seven eight nine ten eleven twelve".split()
    hour, (words, minute) = rng.randint(1, 12), rng.choice((("half past", 30), ("quarter past", 15), ("quarter to", 45)))
    at = hour if minute != 45 else (hour - 2) % 12 + 1
    spoken = f"{words} {rng.choice((names[hour - 1], str(hour)))}"
    return said(_HALF_PAST.expand(rng, w=spoken), f"{spoken} is {at}:{minute}", f"{at}:{minute}")


_CLOCK_24 = Patterns("""
    [What is|Convert|Write] {a} in {k} [time|format|form][?|]
    {a} in {k} [time|format][?|]
""")


@topic(0.4)
def clock_24(rng: random.Random) -> Short:
    time = _moment(rng)
    long = f"{time // 60:02}:{time % 60:02}"
    if rng.random() < 0.6:
        return said(_CLOCK_24.expand(rng, a=long, k=rng.choice(("12-hour", "am/pm", "12 hour"))),
                    f"{long} = {clock(time)}", clock(time))
    return said(_CLOCK_24.expand(rng, a=clock(time), k=rng.choice(("24-hour", "24 hour"))), f"{clock(time)} = {long}", long)


_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DAY_AFTER = Patterns("""
    [What day is|What day of the week is|which day is|What weekday is] [it |]{n} days [after|from|past] [a |]{d}[?|]
    [Today is|If today is|It is|Suppose it is] {d}[.|,] [What|what|Which] day [is it|will it be|of the week is it] in {n} days[?|]
    {n} days after {d}[?| is what day?]
    [Today is|If today is] {d}[.|,] [what|which] day is [it |]{n} days from now[?|]
""")
_DAY_BEFORE = Patterns("""
    [What day is|What day of the week is|which day was] {n} days before {d}[?|]
    [Today is|If today is] {d}[.|,] [what|What|which] day was it {n} days ago[?|]
""")
_TOMORROW = Patterns("""
    [If today is|Today is] {d}[, what|. What|, which] day [is tomorrow|will it be tomorrow][?|]
    [What|Which] day [comes after|follows|is after] {d}[?|]
    [Which day is|What is] the day after {d}[?|]
""")
_YESTERDAY = Patterns("""
    [If today is|Today is] {d}[, what|. What|, which] day was yesterday[?|]
    [What|Which] day [comes before|is before|is right before] {d}[?|]
    [Which day is|What is] the day before {d}[?|]
""")


@topic(0.75)
def weekdays(rng: random.Random) -> Short:
    day, kind = rng.randrange(7), rng.random()
    if kind < 0.3:
        later_day = kind < 0.15
        answer = _DAYS[(day + (1 if later_day else -1)) % 7]
        patterns = _TOMORROW if later_day else _YESTERDAY
        return said(patterns.expand(rng, d=_DAYS[day]), f"It is {answer}." if later_day else f"It was {answer}.", answer)
    n = rng.choice((rng.randint(2, 10), rng.randint(2, 10), rng.randint(2, 40), 7, 14, 100))
    forward = kind < 0.75
    patterns = _DAY_AFTER if forward else _DAY_BEFORE
    rest = n % 7
    lines = [f"{n} / 7 = {n // 7} remainder {rest}"] if n >= 7 else []
    step = 1 if forward else -1
    if rest > 1:
        lines.append(", ".join(_DAYS[(day + step * i) % 7] for i in range(1, rest + 1)))
    answer = _DAYS[(day + step * n) % 7]
    lines.append(f"It {'is' if forward else 'was'} {answer}.")
    return said(patterns.expand(rng, n=n, d=_DAYS[day]), "\n".join(lines), answer)


MONTHS = ("January February March April May June July August September October November December").split()
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_IN = Patterns("""
    [How many|how many] days [are in|does|are there in|has|in] {m}[ have|][?|]
    days in {m}[?|]
""")
_MONTH_ORDER = Patterns("""
    [What|Which] [month|is the month that] [comes|is] {w} {m}[?|]
    [Which|What] is the month {w} {m}[?|]
""")
_NTH_MONTH = Patterns("""
    [What|Which] [month is the {n}|is the {n} month|is the {n} month of the year][?|]
    the {n} month[?| is?]
""")
_LEAP = Patterns("""
    [Is|Was|is] {y} a leap year[?|]
    [Is|was] [the year |]{y} [a |]leap[ year|][?|]
""")


@topic(0.5)
def months(rng: random.Random) -> Short:
    month, kind = rng.randrange(12), rng.randrange(4)
    name = MONTHS[month]
    if kind == 0:
        extra = " It has 29 in a leap year; otherwise 28." if month == 1 else ""
        return said(_DAYS_IN.expand(rng, m=name), f"{name} has {LENGTHS[month]} days.{extra}", LENGTHS[month])
    if kind == 1:
        forward = rng.random() < 0.5
        answer = MONTHS[(month + (1 if forward else -1)) % 12]
        return said(_MONTH_ORDER.expand(rng, w="after" if forward else "before", m=name), f"It is {answer}.", answer)
    if kind == 2:
        nth = rng.choice((ordinal(month + 1), ("first second third fourth fifth sixth seventh eighth ninth tenth "
                                               "eleventh twelfth").split()[month]))
        return said(_NTH_MONTH.expand(rng, n=nth), f"It is {name}.", name)
    year = rng.choice((rng.randint(1900, 2100), 4 * rng.randint(475, 525)))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    divisor = 400 if year % 400 == 0 else 100 if year % 100 == 0 else 4
    reason = f"{year} can be divided by {divisor}" if year % 4 == 0 else f"{year} cannot be divided by 4"
    return said(_LEAP.expand(rng, y=year), f"{'Yes' if leap else 'No'}, {reason}.", "Yes" if leap else "No")


# Ages, speeds, shapes ------------------------------------------------------------------------

_AGE_LATER = Patterns("""
    {x} is {a}[ years old|]. [How old will {x} be|How old is {x}|What age will {x} be] in {n} years[?|]
    {x} is {a} now. [How old in {n} years?|Age in {n} years?]
    [If I am|I am|I'm] {a}[, how|. How] old will I be in {n} years[?|]
    {y} is {n} years older than {x}, who is {a}. How old is {y}[?|]
    {x} is {a} and {y} is {n} years older. How old is {y}[?|]
    {x} is {a}. [Her|His|My|Their] [sister|brother|friend|cousin] is {n} years older. How old is [she|he|the other][?|]
""")
_AGE_BEFORE = Patterns("""
    {x} is {a}[ years old|]. How old was {x} {n} years ago[?|]
    {y} is {n} years younger than {x}, who is {a}. How old is {y}[?|]
    {x} is {a} and {y} is {n} years younger. How old is {y}[?|]
    [I am|I'm] {a}. How old was I {n} years ago[?|]
    {x} is {a} years old and {y} is {n}. [How much older is {x}|What is the difference in age|How many years older is {x}][?|]
""")
_AGE_TIMES = Patterns("""
    {x} is {a}[ years old|]. {y} is {m} as old. How old is {y}[?|]
    {y} is {m} as old as {x}, who is {a}. How old is {y}[?|]
""")
_BORN = Patterns("""
    [{x} was born in|I was born in|Someone was born in|Born in] {b}. How old [is {x}|am I|is that person|will that be] in {y}[?|]
    [How old is|What is the age of] [somebody|someone|a person] born in {b} in [the year |]{y}[?|]
""")
_BIRTH_YEAR = Patterns("""
    {x} [is|turns|turned] {a} in {y}. [What year was {x} born|In which year was {x} born|Birth year][?|]
    [In which|What] year was [someone|a person|{x}] born who [is|turns] {a} in {y}[?|]
""")


@topic(1)
def ages(rng: random.Random) -> Short:
    x, y = two_people(rng)
    kind = rng.randrange(5)
    a, n = rng.randint(3, 70), rng.randint(2, 30)
    if kind == 0:
        return computed(_AGE_LATER.expand(rng, x=x, y=y, a=a, n=n), apply("+", a, n))
    if kind == 1:
        require(n < a)
        return computed(_AGE_BEFORE.expand(rng, x=x, y=y, a=a, n=n), apply("-", a, n))
    if kind == 2:
        operator, b, words = rng.choice((("*", 2, "twice"), ("*", 3, "three times"), ("/", 2, "half"), ("*", 4, "4 times")))
        require(operator == "*" or a % 2 == 0)
        return computed(_AGE_TIMES.expand(rng, x=x, y=y, a=a, m=words), apply(operator, a, b))
    born, age = rng.randint(1930, 2015), rng.randint(3, 80)
    if kind == 3:
        return computed(_BORN.expand(rng, x=x, b=born, y=born + age), apply("-", born + age, born))
    return computed(_BIRTH_YEAR.expand(rng, x=x, a=age, y=born + age), apply("-", born + age, age))


_DISTANCE = Patterns("""
    [A|The] {v} [travels|drives|goes|moves|runs] [at |]{s} {u}[/h| per hour| an hour|ph] for {t} hours. [How far|What distance|How many {u}][?| does it go?| is that?]
    [How far|How many {u}] [do you go|is it|does a {v} go|does it travel] in {t} hours at {s} {u}[/h| per hour| an hour][?|]
    {t} hours at {s} {u} per hour[, how far?|?|: distance?]
""")
_SPEED = Patterns("""
    [A|The] {v} [travels|drives|goes|covers] {d} {u} in {t} hours. [What is its speed|How fast is it|What is the speed|What is the average speed][?|]
    [What is the speed|How fast is it] if {d} {u} take {t} hours[?|]
    {d} {u} in {t} hours[, what speed?|: speed?|, how many {u} per hour?]
""")
_DURATION = Patterns("""
    [How long|How many hours] [does it take|do you need|is it] to [go|drive|travel|cover] {d} {u} at {s} {u}[/h| per hour| an hour][?|]
    [A|The] {v} goes {s} {u} per hour. [How many hours for|How long does it take for|How long for] {d} {u}[?|]
""")


@topic(0.75)
def speeds(rng: random.Random) -> Short:
    s, t = rng.choice((5 * rng.randint(1, 24), 10 * rng.randint(1, 12), rng.randint(2, 99))), rng.randint(2, 9)
    slots = {"s": s, "t": t, "d": s * t, "u": rng.choice(("km", "miles", "km", "kilometers", "mi")),
             "v": rng.choice("car bus train bike truck boat plane cyclist runner horse van".split())}
    kind = rng.randrange(3)
    if kind == 0:
        return computed(_DISTANCE.expand(rng, **slots), apply("*", s, t))
    if kind == 1:
        return computed(_SPEED.expand(rng, **slots), apply("/", s * t, t))
    return computed(_DURATION.expand(rng, **slots), apply("/", s * t, s))


_RATE = Patterns("""
    [A|The|One] {m} [makes|prints|produces|fills|packs|uses] {a} {o} [per|a|every|each] {t}. How many [{o} |][in|after|does it make in] {n} {t}s[?|]
    [If|When] {n} {t}s give {b} {o}, how many {o} is that per {t}[?|]
    {b} {o} in {n} {t}s. How many per {t}[?|]
    {x} [reads|types|writes|does|counts] {a} {o} [per|a|every|in one] {t}. How many in {n} {t}s[?|]
""")


@topic(0.5)
def rates(rng: random.Random) -> Short:
    a, n = rng.randint(2, 60), rng.randint(2, 12)
    question = _RATE.expand(rng, m=rng.choice(("machine", "printer", "factory", "robot", "worker", "tap", "pump")),
                            o=rng.choice(("pages", "toys", "bottles", "words", "boxes", "liters", "items", "parts")),
                            t=rng.choice(("minute", "hour", "day", "week")), a=a, b=a * n, n=n, x=subject(rng))
    is_per = f"{a * n} " in question and ("per" in question.split(".")[-1] or "give" in question)
    return computed(question, apply("/", a * n, n) if is_per else apply("*", a, n))


_RECTANGLE = Patterns("""
    [What is|Find|Calculate|what's|Work out|How big is] the {k} of a [rectangle|field|garden|room|rectangular table|floor] [that is |]{a} [by|x|×|times] {b}[ {u}|][?|]
    [What is|Find|Calculate] the {k} of a rectangle with [sides|length and width|side lengths] {a} and {b}[?|]
    [A|The] [rectangle|garden|room|field|yard] is {a} {u} long and {b} {u} wide. What is [its|the] {k}[?|]
    {k} of a {a} [by|x] {b} rectangle[?|]
    {k} of a rectangle[,|:|] length {a}[,| and] width {b}[?|]
""")
_SQUARE = Patterns("""
    [What is|Find|Calculate|what's] the {k} of a square [with side|with sides of|of side|with side length] {a}[ {u}|][?|]
    [A|The] square has [a side of|sides of] {a} {u}. What is [its|the] {k}[?|]
    {k} of a square with side {a}[?|]
""")
_TRIANGLE = Patterns("""
    [What is|Find|Calculate] the area of a triangle with base {a} and height {b}[?|]
    area of a triangle[,|:|] base {a}[,| and] height {b}[?|]
    [A|The] triangle has a base of {a} {u} and a height of {b} {u}. What is its area[?|]
""")
_SIDES = Patterns("""
    [What is|Find] the perimeter of a triangle with sides {a}, {b} and {c}[?|]
    [perimeter of|What is the perimeter of] a triangle[:|,| with sides] {a}, {b}, {c}[?|]
""")
_BOX = Patterns("""
    [What is|Find|Calculate] the volume of a [box|cuboid|tank] [that is|with sides|measuring|of] {a} [by|x] {b} [by|x] {c}[ {u}|][?|]
    volume of a {a} x {b} x {c} box[?|]
""")
_CUBE = Patterns("""
    [What is|Find|Calculate] the volume of a cube with [side|edge|sides of] {a}[ {u}|][?|]
    volume of a cube with [side|edge] {a}[?|]
""")


@topic(1)
def shapes(rng: random.Random) -> Short:
    a, b, c = (rng.randint(1, rng.choice((12, 30))) for _ in range(3))
    slots = {"a": a, "b": b, "c": c, "u": rng.choice(("m", "cm", "meters", "feet", "cm", "inches"))}
    kind = rng.randrange(8)
    if kind < 3:
        area = rng.random() < 0.5
        worked = apply("*", a, b) if area else chain(a, ("+", b), ("*", 2))
        return computed(_RECTANGLE.expand(rng, k="area" if area else "perimeter", **slots), worked)
    if kind == 3:
        area = rng.random() < 0.5
        return computed(_SQUARE.expand(rng, k="area" if area else "perimeter", **slots), apply("*", a, a if area else 4))
    if kind == 4:
        return computed(_TRIANGLE.expand(rng, **slots), chain(a, ("*", b), ("/", 2)))
    if kind == 5:
        require(a + b > c and a + c > b and b + c > a)
        return computed(_SIDES.expand(rng, **slots), chain(a, ("+", b), ("+", c)))
    if kind == 6:
        return computed(_BOX.expand(rng, **slots), chain(a, ("*", b), ("*", c)))
    return computed(_CUBE.expand(rng, **slots), chain(a, ("*", a), ("*", a)))

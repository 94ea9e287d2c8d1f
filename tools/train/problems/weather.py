"""Temperature, rain, snow and wind."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import TIMES, capital, nouns, story, tell
from .wordings import person


@family
def temperature_rises(d: Draw) -> Story:
    city = d.pick(things.CITIES)
    n, up = d.int(1, 80), d.int(2, 25)
    d.require(n > 1)
    end = calc(n, "+", up)
    return story(
        tell(d, (
            f"In the morning it is {n} degrees in {city}. By noon it gets {up} degrees warmer. What is the temperature at noon?",
            f"{city} has {n} degrees at dawn and {up} degrees more at noon. How many degrees is that?",
            f"It is {n} degrees in {city}, and the temperature rises by {up} degrees. How warm is it then?",
            f"How many degrees does {city} have after a rise of {up} from {n} degrees?")),
        [f"It is {end} degrees."], end)


@family
def temperature_falls(d: Draw) -> Story:
    city = d.pick(things.CITIES)
    n, down = d.int(10, 100), d.int(2, 40)
    end = calc(n, "-", down)
    d.require(end.value > 1)
    return story(
        tell(d, (
            f"It is {n} degrees in {city} during the day and {down} degrees colder at night. What is the temperature at night?",
            f"From {n} degrees the temperature in {city} drops by {down}. How many degrees is it now?",
            f"How cold is it in {city} if {n} degrees fall by {down} degrees?",
            f"After a warm day of {n} degrees, {city} cools down by {down} degrees. How many degrees are left?")),
        [f"It is {end} degrees."], end)


@family
def up_and_down(d: Draw) -> Story:
    city = d.pick(things.CITIES)
    n, up, down = d.int(5, 70), d.int(2, 25), d.int(2, 30)
    high = calc(n, "+", up)
    end = calc(high, "-", down)
    d.require(end.value > 1)
    return story(
        tell(d, (f"At 6 a.m. it is {n} degrees in {city}.", f"{city} wakes up to {n} degrees.", f"The day begins with {n} degrees in {city}."),
             (f"By noon the temperature rises {up} degrees, and by night it falls {down}.", f"Until noon it gets {up} degrees warmer. Then it cools down by {down}.",
              f"It climbs by {up} degrees before it drops by {down} in the evening."),
             ("What is the temperature at the end?", "How many degrees is it at night?", "How warm is it in the end?")),
        [f"At noon it is {high} degrees.", f"At the end it is {end} degrees."], end)


@family
def hourly_change(d: Draw) -> Story:
    city = d.pick(things.CITIES)
    n, rate, hours = d.int(20, 90), d.int(2, 6), d.int(2, 9)
    change = calc(rate, "*", hours)
    end = calc(n, "-", change)
    d.require(end.value > 1)
    return story(
        tell(d, [(f"At sunset it is {n} degrees in {city}.", f"{city} has {n} degrees when the sun sets.", f"The temperature in {city} is {n} degrees in the evening."),
                 (f"Each hour of the night it gets {rate} degrees colder.", f"Overnight {city} loses {rate} degrees an hour.", f"Every hour the night takes {rate} degrees away.")],
             (f"What is the temperature after {hours} hours?", f"How many degrees is it {hours} hours later?", f"After {hours} hours, how cold is it?")),
        [f"It gets {change} degrees colder.", f"Then it is {end} degrees."], end)


@family
def difference_of_cities(d: Draw) -> Story:
    c, e = d.pick_two(things.CITIES)
    low, gap = d.int(2, 80), d.int(2, 40)
    high = low + gap
    result = calc(high, "-", low)
    return story(
        tell(d, (
            f"{c} has {high} degrees and {e} {low}. How many degrees warmer is it in {c}?",
            f"It is {high} degrees in {c} but only {low} in {e}. What is the difference?",
            f"Today {e} has {low} degrees. In {c} it is {high}. How much colder is {e}?",
            f"How many degrees colder is {e} with {low} degrees than {c} with {high}?")),
        [f"The difference is {result} degrees."], result)


@family
def average_temperature(d: Draw) -> Story:
    city = d.pick(things.CITIES)
    n = [d.int(5, 95) for _ in range(d.pick((3, 4, 5)))]
    count = len(n)
    d.require(sum(n) % count == 0)
    total = calc(*[t for i, v in enumerate(n) for t in (("+", v) if i else (v,))])
    mean = calc(total, "/", count)
    listed = ", ".join(map(str, n[:-1])) + f" and {n[-1]}"
    return story(
        tell(d, (
            f"On {count} days {city} has {listed} degrees. What is the average temperature?",
            f"The temperatures of {count} days in {city} are {listed} degrees. What is their mean?",
            f"What is the average of {listed} degrees, measured on {count} days in {city}?",
            f"In {city} somebody notes {listed} degrees on {count} days. How many degrees is that on average?")),
        [f"The sum is {total} degrees.", f"The average is {mean} degrees."], mean)


@family
def rain_of_days(d: Draw) -> Story:
    city, unit = d.pick(things.CITIES), d.pick(["millimeters", "inches", "liters"])
    n, k, less = d.int(3, 40), d.number_from((2, 3)), d.int(2, 20)
    second = calc(n, "*", k)
    third = calc(second, "-", less)
    total = calc(n, "+", second, "+", third)
    d.require(third.value > 1)
    return story(
        tell(d, (f"On Monday {n} {unit} of rain fall in {city}.", f"{city} gets {n} {unit} of rain on Monday.", f"Monday brings {n} {unit} of rain to {city}."),
             [(f"Tuesday has {TIMES[k]} as much as Monday.", f"On Tuesday it is {TIMES[k]} as much as on Monday.", f"The rain of Tuesday is {k} times that of Monday."),
              (f"Wednesday has {less} {unit} less than Tuesday.", f"On Wednesday it is {less} {unit} less than on Tuesday.")],
             (f"How many {unit} fall in the three days?", f"How much rain is that in all, in {unit}?", f"What is the total for the three days in {unit}?")),
        [f"Tuesday has {second} {unit}.", f"Wednesday has {third} {unit}.", f"In all it is {total} {unit}."], total)


@family
def snow_melts(d: Draw) -> Story:
    place, unit = d.pick(["the mountain", "the roof", "the field", "the village square", "the meadow"]), d.pick(["centimeters", "inches"])
    n, new, hours, rate = d.int(5, 80), d.int(2, 9), d.int(2, 9), d.int(2, 40)
    fallen = calc(new, "*", hours)
    high = calc(n, "+", fallen)
    end = calc(high, "-", rate)
    d.require(end.value > 1)
    return story(
        tell(d, (f"{n} {unit} of snow lie on {place}.", f"On {place} there are {n} {unit} of snow.", f"The snow on {place} is {n} {unit} deep."),
             (f"For {hours} hours it snows {new} {unit} an hour.", f"Then {new} {unit} fall every hour for {hours} hours.", f"A storm of {hours} hours adds {new} {unit} per hour."),
             (f"The next day {rate} {unit} melt.", f"After that the sun melts {rate} {unit}.", f"Then {rate} {unit} of it melt away."),
             ("How deep is the snow now?", f"How many {unit} of snow are left?", f"What is the depth of the snow in {unit}?")),
        [f"The storm brings {fallen} {unit}.", f"Then the snow is {high} {unit} deep.", f"In the end it is {end} {unit} deep."], end)


@family
def rain_barrel(d: Draw) -> Story:
    a, x = person(d), d.pick(nouns("barrel, tank, bucket, tub, cistern"))
    start, rate, hours, use = d.int(5, 90), d.int(3, 30), d.int(2, 10), d.int(5, 60)
    added = calc(rate, "*", hours)
    full = calc(start, "+", added)
    end = calc(full, "-", use)
    d.require(end.value > 1)
    return story(
        tell(d, (f"{a}'s {x.one} holds {start} liters of rain water.", f"There are {start} liters in {a}'s {x.one}.", f"{a} has {start} liters of rain water in a {x.one}."),
             (f"It rains for {hours} hours, and {rate} liters flow in per hour.", f"In a rain of {hours} hours, every hour adds {rate} liters.", f"Rain brings {rate} liters an hour for {hours} hours."),
             (f"Then {a.they} takes out {use} liters for the garden.", f"{a} uses {use} liters after that.", f"Later {use} liters go to {a.their} flowers."),
             ("How many liters are in it now?", f"How many liters does the {x.one} hold then?", "How much water is left in liters?")),
        [f"The rain brings {added} liters.", f"Then there are {full} liters.", f"In the end there are {end} liters."], end)


@family
def sunny_days(d: Draw) -> Story:
    city, days, sunny, k = d.pick(things.CITIES), d.int(20, 120), d.int(2, 30), d.number_from((2, 3))
    cloudy = calc(sunny, "*", k)
    both = calc(sunny, "+", cloudy)
    rainy = calc(days, "-", both)
    d.require(rainy.value > 1)
    return story(
        tell(d, (f"A weather station in {city} reports on {days} days.", f"In {city} the weather of {days} days is noted.", f"A class in {city} watches the weather for {days} days."),
             [(f"{sunny} of the days are sunny.", f"The sun shines on {sunny} of the days.", f"There are {sunny} sunny days among them."),
              (f"{capital(TIMES[k])} as many are cloudy as sunny.", f"The cloudy days are {TIMES[k]} as many as the sunny ones.")],
             ("On all other days it rains. How many rainy days are there?", "The rest are rainy. How many days is that?", "On how many days does it rain, if all others are rainy?")),
        [f"The number of cloudy days is {cloudy}.", f"Sunny and cloudy days are {both}.", f"The number of rainy days is {rainy}."], rainy)


@family
def wind_speeds(d: Draw) -> Story:
    c, e = d.pick_two(things.CITIES)
    n, k, more, unit = d.int(5, 40), d.number_from((2, 3, 4)), d.int(2, 30), d.pick(["miles per hour", "kilometers per hour", "knots"])
    times = calc(n, "*", k)
    second = calc(times, "+", more)
    gap = calc(second, "-", n)
    return story(
        tell(d, [(f"In {c} the wind blows at {n} {unit}.", f"The wind in {c} reaches {n} {unit}.", f"{c} has a wind of {n} {unit}."),
                 (f"In {e} it is {more} {unit} more than {TIMES[k]} the speed in {c}.", f"{e} measures {TIMES[k]} the speed of {c} and {more} {unit} more.")],
             (f"By how many {unit} is the wind stronger in {e}?", f"What is the difference between {e} and {c} in {unit}?", f"How much faster is the wind in {e} than in {c}?")),
        [f"{capital(TIMES[k])} the speed is {times} {unit}.", f"In {e} it is {second} {unit}.", f"The difference is {gap} {unit}."], gap)


@family
def river_level(d: Draw) -> Story:
    river, unit = d.pick(["river", "lake", "canal", "reservoir", "dam"]), d.pick(["centimeters", "inches"])
    n, rate, days, limit = d.int(50, 400), d.int(3, 30), d.int(2, 9), d.int(100, 700, 10)
    rise = calc(rate, "*", days)
    level = calc(n, "+", rise)
    left = calc(limit, "-", level)
    d.require(left.value > 1)
    return story(
        tell(d,
             (f"The {river} is {n} {unit} deep and rises {rate} {unit} a day.", f"Every day the level of the {river} climbs {rate} {unit}. It starts at {n} {unit}.",
              f"A {river} stands at {n} {unit}, and each day of rain adds {rate} {unit}."),
             (f"There is a flood at {limit} {unit}.", f"The bank is {limit} {unit} high.", f"At {limit} {unit} it flows over."),
             (f"How many {unit} are missing to that after {days} days?", f"After {days} days, how far is it below that mark, in {unit}?", f"How many {unit} are left up to that mark after {days} days?")),
        [f"In {days} days it rises {rise} {unit}.", f"Then the level is {level} {unit}.", f"So {left} {unit} are missing."], left)


@family
def lightning_distance(d: Draw) -> Story:
    a = person(d)
    seconds, second, meters = d.int(2, 20), d.int(2, 20), d.number_from((330, 340, 343, 350))
    d.require(second < seconds)
    first, later = calc(seconds, "*", meters), calc(second, "*", meters)
    result = calc(first, "-", later)
    return story(
        tell(d, (f"Sound travels {meters} meters per second.", f"In a second, sound covers {meters} meters.", f"Thunder moves {meters} meters each second."),
             (f"{a} hears the thunder {seconds} seconds after a flash and, later, {second} seconds after another one.",
              f"After the first flash {a} counts {seconds} seconds until the thunder, after the next one only {second}.",
              f"Between flash and thunder {a} counts {seconds} seconds; with the next flash it is {second}."),
             ("How many meters nearer was the second flash?", "By how many meters has the storm come closer?", "What is the difference of the two distances in meters?")),
        [f"The first flash was {first} meters away.", f"The second was {later} meters away.", f"The difference is {result} meters."], result)


@family
def colder_with_height(d: Draw) -> Story:
    a = person(d)
    base, per, steps = d.int(15, 95), d.int(2, 8), d.int(2, 9)
    unit, block = d.pick([("meters", 1000), ("meters", 500), ("feet", 1000), ("meters", 200)])
    height = block * steps
    count = calc(height, "/", block)
    loss = calc(count, "*", per)
    end = calc(base, "-", loss)
    d.require(end.value > 1)
    return story(
        tell(d, [(f"In the valley it is {base} degrees.", f"The valley has {base} degrees.", f"Down in the valley {a} measures {base} degrees."),
                 (f"For every {block} {unit} of height it gets {per} degrees colder.", f"The temperature falls {per} degrees per {block} {unit} of height.",
                  f"Each {block} {unit} upward cost {per} degrees.")],
             (f"{a} climbs {height} {unit} up. How many degrees is it there?", f"How warm is it {height} {unit} higher?", f"What is the temperature {height} {unit} above the valley?")),
        [f"The way up has {count} such parts.", f"It gets {loss} degrees colder.", f"There it is {end} degrees."], end)


@family
def decimal_rain(d: Draw) -> Story:
    city, unit = d.pick(things.CITIES), d.pick(["inches", "centimeters", "liters"])
    n, m = d.decimal(1, 15), d.decimal(1, 15)
    d.require(n % 1 != 0 and n > m > 1)
    gap = calc(n, "-", m)
    d.require(gap.value > 1)
    return story(
        tell(d, (
            f"{city} gets {n} {unit} of rain in May and {m} {unit} in June. How much more rain falls in May?",
            f"In May {n} {unit} of rain fall in {city}, in June only {m}. What is the difference in {unit}?",
            f"How many {unit} less rain does {city} have in June with {m} {unit} than in May with {n}?",
            f"June brings {m} {unit} of rain to {city}; in May it was {n}. By how many {unit} was May wetter?")),
        [f"The difference is {gap} {unit}."], gap)

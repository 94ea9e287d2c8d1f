"""Ages, minutes and schedules."""

from . import words
from .problem import Draw, Story, calc, family


@family
def age_chain(d: Draw) -> Story:
    a, b, c = d.person(), d.person(), d.person()
    n, k, more, years = d.int(4, 20), d.number_from((2, 3)), d.int(2, 15), d.int(2, 12)
    second = calc(n, "*", k)
    third = calc(second, "+", more)
    later = calc(third, "+", years)
    return Story(
        d.tell(
            (f"{a} is {n} years old.", f"{a}'s age is {n}."),
            (f"{b} is {words.MULTIPLES[k]} as old as {a}, and {c} is {more} years older than {b}.",
             f"{b} is {words.MULTIPLES[k]} as old. {c} is {more} years older than {b}."),
            (f"How old will {c} be in {years} years?", f"What will {c}'s age be {years} years from now?")),
        [f"{b} is {second} years old.", f"{c} is {third} years old.", f"In {years} years {c} will be {later}."],
        later)


@family
def age_sum(d: Draw) -> Story:
    a, b = d.person(), d.person()
    n, more, years = d.int(5, 40), d.int(2, 25), d.int(2, 12)
    second = calc(n, "+", more)
    now = calc(n, "+", second)
    added = calc(2, "*", years)
    later = calc(now, "+", added)
    return Story(
        d.tell(
            (f"{a} is {n} and {b} is {more} years older.", f"{b} is {more} years older than {a}, who is {n}."),
            (f"What will the sum of their ages be in {years} years?",
             f"In {years} years, how old will they be together?")),
        [f"{b} is {second}.", f"Now their ages make {now}.", f"In {years} years they gain {added} years.",
         f"Then the sum is {later}."],
        later)


@family
def age_in_the_past(d: Draw) -> Story:
    a, b, relative = d.person(), d.person(), d.pick(words.RELATIVES)
    young, k, years, more = d.int(3, 12), d.number_from((2, 3, 4, 5)), d.int(2, 9), d.int(2, 15)
    b_now = young + years
    past = calc(b_now, "-", years)
    a_past = calc(past, "*", k)
    a_now = calc(a_past, "+", years)
    answer = calc(a_now, "+", more)
    return Story(
        d.tell(
            (f"{b}, who is {a}'s {relative}, is {b_now} years old.", f"{a} has a {relative}, {b}, who is {b_now}."),
            (f"{years} years ago {a} was {words.MULTIPLES[k]} as old as {b}.",
             f"{years} years back, {a} was {words.MULTIPLES[k]} as old as {b} was."),
            (f"How old will {a} be in {more} years?", f"What will {a}'s age be after {more} years?")),
        [f"{years} years ago {b} was {past}.", f"{a} was {a_past}.", f"Now {a} is {a_now}.",
         f"In {more} years {a} will be {answer}."],
        answer)


@family
def movie_evening(d: Draw) -> Story:
    a = d.person()
    films, minutes, breaks, pause, hours = d.int(2, 4), d.int(70, 150, 5), d.int(2, 4), d.int(5, 25, 5), d.int(6, 12)
    watching = calc(films, "*", minutes)
    pausing = calc(breaks, "*", pause)
    used = calc(watching, "+", pausing)
    available = calc(hours, "*", 60)
    left = calc(available, "-", used)
    return Story(
        d.tell(
            (f"{a} has {hours} hours free and watches {films} movies of {minutes} minutes each.",
             f"In {a.their} {hours} free hours, {a} watches {films} movies that last {minutes} minutes each."),
            (f"{a.They} takes {breaks} breaks of {pause} minutes.", f"There are {breaks} pauses of {pause} minutes each."),
            ("How many minutes are left?", f"How many free minutes does {a} have left?")),
        [f"The movies take {watching} minutes.", f"The breaks take {pausing} minutes.",
         f"Together that is {used} minutes.", f"{a} has {available} minutes.", f"So {left} minutes are left."],
        left)


@family
def practice_schedule(d: Draw) -> Story:
    a = d.person()
    thing = d.pick(["the piano", "the violin", "the drums", "the flute", "chess", "dancing"])
    short, n, long, weeks = d.int(10, 45, 5), d.int(2, 5), d.int(30, 90, 5), d.int(2, 9)
    d.require(long > short)
    weekdays = calc(short, "*", n)
    weekly = calc(weekdays, "+", long)
    total = calc(weekly, "*", weeks)
    return Story(
        d.tell(
            (f"{a} practices {thing} {short} minutes on {n} weekdays and {long} minutes on Sunday.",
             f"Each week {a} practices {thing} on {n} days for {short} minutes, and on Sunday for {long} minutes."),
            (f"How many minutes does {a.they} practice in {weeks} weeks?",
             f"How many minutes of practice is that in {weeks} weeks?")),
        [f"The weekdays make {weekdays} minutes.", f"A week has {weekly} minutes of practice.",
         f"In {weeks} weeks it is {total} minutes."],
        total)


@family
def sleep_and_work(d: Draw) -> Story:
    a = d.person()
    sleep, work, way, days = d.int(6, 9), d.int(4, 9), d.int(2, 4), d.int(3, 10)
    busy = calc(sleep, "+", work, "+", way)
    free = calc(24, "-", busy)
    total = calc(free, "*", days)
    d.require(free.value > 1)
    return Story(
        d.tell(
            (f"Each day {a} sleeps {sleep} hours, works {work} hours and spends {way} hours on the road.",
             f"{a} sleeps {sleep} hours a day, works {work} hours and travels {way} hours."),
            (f"How many hours does {a.they} have for other things in {days} days?",
             f"How many free hours is that in {days} days?")),
        [f"{a} is busy for {busy} hours.", f"A day leaves {free} hours.", f"In {days} days it is {total} hours."],
        total)

"""Distances, speeds, passengers and fuel."""

from . import words
from .problem import Draw, Story, calc, family


@family
def two_legs(d: Draw) -> Story:
    a, v = d.person(), d.pick(words.VEHICLES)
    fast, t1, slow, t2 = d.int(30, 90, 5), d.int(2, 6), d.int(20, 70, 5), d.int(2, 6)
    d.require(fast != slow)
    first, second = calc(fast, "*", t1), calc(slow, "*", t2)
    total = calc(first, "+", second)
    return Story(
        d.tell(
            (f"A {v} goes {fast} miles per hour for {t1} hours and then {slow} miles per hour for {t2} hours.",
             f"{a} travels for {t1} hours at {fast} miles an hour, then for {t2} hours at {slow} miles an hour.",
             f"On the way to {d.pick(words.PLACES)}, {a} drives {t1} hours at {fast} mph and {t2} hours at {slow} mph."),
            ("How many miles is that in total?", "How long is the whole trip in miles?")),
        [f"The first part is {first} miles.", f"The second part is {second} miles.",
         f"In total it is {total} miles."],
        total)


@family
def trip_with_breaks(d: Draw) -> Story:
    a = d.person()
    speed, hours, breaks, minutes = d.int(20, 80, 5), d.int(2, 9), d.int(2, 6), d.int(5, 30, 5)
    distance = speed * hours
    driving = calc(distance, "/", speed)
    in_minutes = calc(driving, "*", 60)
    resting = calc(breaks, "*", minutes)
    total = calc(in_minutes, "+", resting)
    return Story(
        d.tell(
            (f"{a} drives {distance} miles at {speed} miles per hour.",
             f"The drive to {d.pick(words.PLACES)} is {distance} miles, and {a} goes {speed} miles per hour."),
            (f"{a.They} takes {breaks} breaks of {minutes} minutes.",
             f"On the way there are {breaks} stops of {minutes} minutes each."),
            ("How many minutes does the trip take?", f"After how many minutes does {a} arrive?")),
        [f"The driving takes {driving} hours.", f"That is {in_minutes} minutes.",
         f"The breaks take {resting} minutes.", f"The trip takes {total} minutes."],
        total)


@family
def commute(d: Draw) -> Story:
    a = d.person()
    one_way, days, weeks = d.int(3, 25), d.int(3, 6), d.int(2, 8)
    daily = calc(one_way, "*", 2)
    weekly = calc(daily, "*", days)
    total = calc(weekly, "*", weeks)
    return Story(
        d.tell(
            (f"{a} lives {one_way} miles from work and rides there and back {days} days a week.",
             f"{a}'s school is {one_way} miles away. {a.They} goes there and back {days} days each week."),
            (f"How many miles is that in {weeks} weeks?", f"How far does {a} travel in {weeks} weeks?")),
        [f"A day is {daily} miles.", f"A week is {weekly} miles.", f"In {weeks} weeks it is {total} miles."],
        total)


@family
def bus_passengers(d: Draw) -> Story:
    v = d.pick(["bus", "train", "tram", "ferry"])
    start, off1, on1, off2, on2 = d.int(20, 60), d.int(2, 15), d.int(2, 20), d.int(2, 15), d.int(2, 20)
    s1 = calc(start, "-", off1)
    s2 = calc(s1, "+", on1)
    s3 = calc(s2, "-", off2)
    s4 = calc(s3, "+", on2)
    return Story(
        d.tell(
            (f"A {v} leaves with {start} passengers.", f"There are {start} people on a {v}."),
            (f"At the first stop {off1} get off and {on1} get on.",
             f"First {off1} people leave and {on1} board."),
            (f"At the second stop {off2} get off and {on2} get on.",
             f"Then {off2} leave and {on2} board."),
            (f"How many people are on the {v} now?", f"How many passengers does the {v} have then?")),
        [f"After the first {off1} leave there are {s1}.", f"With {on1} more there are {s2}.",
         f"After the next {off2} leave there are {s3}.", f"With {on2} more there are {s4}."],
        s4)


@family
def fuel_cost(d: Draw) -> Story:
    a, v = d.person(), d.pick(["car", "truck", "van", "motorcycle"])
    per_gallon, gallons, price = d.int(12, 40), d.int(3, 15), d.int(2, 6)
    miles = per_gallon * gallons
    used = calc(miles, "/", per_gallon)
    cost = calc(used, "*", price)
    back = calc(cost, "*", 2)
    return Story(
        d.tell(
            (f"{a}'s {v} goes {per_gallon} miles on a gallon of gas, and gas costs ${price} a gallon.",
             f"Gas costs ${price} per gallon, and {a} has a {v} that gets {per_gallon} miles per gallon."),
            (f"How much does the gas cost for a trip of {miles} miles each way, there and back?",
             f"{a} drives {miles} miles to {d.pick(words.PLACES)} and the same way back. How much is the gas?")),
        [f"One way takes {used} gallons.", f"They cost {cost:$}.", f"There and back it is {back:$}."],
        back)


@family
def remaining_distance(d: Draw) -> Story:
    a = d.person()
    speed, h1, h2, rest = d.int(3, 15), d.int(2, 5), d.int(2, 5), d.int(5, 40)
    total = speed * (h1 + h2) + rest
    hours = calc(h1, "+", h2)
    done = calc(speed, "*", hours)
    left = calc(total, "-", done)
    return Story(
        d.tell(
            (f"{a} is on a hike of {total} miles and walks {speed} miles an hour.",
             f"A trail is {total} miles long. {a} covers {speed} miles of it every hour."),
            (f"{a.They} walks {h1} hours before lunch and {h2} hours after it.",
             f"{a.They} goes {h1} hours in the morning and {h2} hours in the afternoon."),
            ("How many miles are left?", f"How far does {a} still have to go?")),
        [f"{a} walks {hours} hours.", f"{a.They} covers {done} miles.", f"So {left} miles are left."],
        left)


@family
def toward_each_other(d: Draw) -> Story:
    a, b = d.person(), d.person()
    u, v, t = d.int(4, 40), d.int(4, 40), d.int(2, 9)
    distance = (u + v) * t
    closing = calc(u, "+", v)
    hours = calc(distance, "/", closing)
    first = calc(u, "*", hours)
    return Story(
        d.tell(
            (f"{a} and {b} are {distance} miles apart and ride toward each other.",
             f"Two towns are {distance} miles apart. {a} starts in one and {b} in the other, toward each other."),
            (f"{a} goes {u} miles an hour and {b} goes {v} miles an hour.",
             f"{a}'s speed is {u} mph and {b}'s is {v} mph."),
            (f"How many miles has {a} gone when they meet?", f"How far is {a} from the start when they meet?")),
        [f"Together they cover {closing} miles an hour.", f"They meet after {hours} hours.",
         f"By then {a} has gone {first} miles."],
        first)

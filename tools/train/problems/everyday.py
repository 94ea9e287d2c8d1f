"""Short problems of one or two steps, in the few words in which people ask them."""

from decimal import Decimal

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import cost, people, person, several, tell

THINGS = nouns(words.GROCERIES) + nouns(words.FRUITS) + nouns(words.COLLECTIBLES) + nouns(words.SUPPLY_LIST)
GOODS = nouns(words.SMALL_GOODS) + nouns(words.CLOTHING) + nouns(words.MEALS)
SHARED = nouns(words.BAKED_GOODS) + nouns(words.FRUITS) + nouns(words.COLLECTIBLES)


@family
def have_and_get(d: Draw) -> Story:
    a, x, n, m = person(d), d.pick(THINGS), d.int(2, 99), d.int(2, 99)
    total = calc(n, "+", m)
    return Story(
        tell(d, (
            f"I have {n} {x}. I buy {m} more. How many do I have now?",
            f"{a} has {n} {x} and gets {m} more. How many?",
            f"{a}: {n} {x}. Then {m} more. How many in total?",
            f"If I have {n} {x} and {a} gives me {m}, how many {x} do I have?",
            f"{n} {x} and another {m} {x}: how many is that?",
            f"{a} had {n} {x}, then bought {m}. How many {x} does {a.they} have?")),
        [f"That is {total} {x}."],
        total)


@family
def have_and_lose(d: Draw) -> Story:
    (a, b), x, n, m = people(d, 2), d.pick(THINGS), d.int(4, 120), d.int(2, 110)
    left = calc(n, "-", m)
    several(d, left)
    return Story(
        tell(d, (
            f"I have {n} {x} and give away {m}. How many are left?",
            f"{a} has {n} {x}. {a.They} gives {b} {m}. How many left?",
            f"{n} {x}, {m} are eaten or lost. How many remain?",
            f"{a} had {n} {x} but lost {m}. How many does {a.they} have now?",
            f"If {a} takes {m} of my {n} {x}, how many do I keep?",
            f"There were {n} {x}. {b} took {m}. What is left?")),
        [f"There are {left} {x} left."],
        left)


@family
def spend_from_money(d: Draw) -> Story:
    a, x, n, p = person(d), d.pick(GOODS), d.int(5, 200), cost(d, 1, 150)
    left = calc(n, "-", p)
    d.require(left.value > 1)
    return Story(
        tell(d, (
            f"I have ${n} and spend ${p}. How much is left?",
            f"{a} has ${n}. {x.A} costs ${p}. How much money is left after buying it?",
            f"{a} had ${n} and paid ${p} for {x.a}. How much does {a.they} have now?",
            f"I paid ${p} for {x.a} out of ${n}. What is left?",
            f"How much is left of ${n} after spending ${p}?",
            f"${n} minus a purchase of ${p}: how much money remains?")),
        [f"There is {left:$} left."],
        left)


@family
def add_two_prices(d: Draw) -> Story:
    a, (x, y), p, q = person(d), d.pick_two(GOODS), cost(d, 1, 90), cost(d, 1, 90)
    total = calc(p, "+", q)
    return Story(
        tell(d, (
            f"I buy {x.a} for ${p} and {y.a} for ${q}. How much is that?",
            f"{x.a} costs ${p}, {y.a} costs ${q}. How much together?",
            f"{a} pays ${p} for {x.a} and ${q} for {y.a}. What is the total?",
            f"What do {x.a} (${p}) and {y.a} (${q}) cost in all?",
            f"{a} spends ${p} on {x.a}. Then {a.they} spends ${q} on {y.a}. How much did {a.they} spend?")),
        [f"Together it is {total:$}."],
        total)


@family
def add_three_prices(d: Draw) -> Story:
    a, (x, y), z = person(d), d.pick_two(GOODS), d.pick(nouns(words.LARGE_GOODS))
    p, q, r = cost(d, 1, 60), cost(d, 1, 60), cost(d, 10, 300)
    total = calc(p, "+", q, "+", r)
    return Story(
        tell(d, (
            f"{x.a} costs ${p}, {y.a} ${q} and {z.a} ${r}. How much do all three cost?",
            f"{a} buys {x.a} for ${p}, {y.a} for ${q} and {z.a} for ${r}. What is the total?",
            f"My receipt says: {x.one} ${p}, {y.one} ${q}, {z.one} ${r}. How much did I pay?",
            f"How much money does {a} need for {x.a} (${p}), {y.a} (${q}) and {z.a} (${r})?")),
        [f"All three cost {total:$}."],
        total)


@family
def share_among(d: Draw) -> Story:
    a, x, n, each = person(d), d.pick(SHARED), d.int(2, 20), d.int(2, 30)
    total = n * each
    answer = calc(total, "/", n)
    who = d.pick(("children", "friends", "people", "students", "neighbors", "dogs", "teams", "guests"))
    return Story(
        tell(d, (
            f"{total} {x} for {n} {who}. How many {x} does each get?",
            f"{a} divides {total} {x} equally among {n} {who}. How many {x} for each?",
            f"If {total} {x} are shared by {n} {who}, how many does each one get?",
            f"I have {total} {x} and want to give {n} {who} the same number. How many {x} can each have?",
            f"Share {total} {x} equally between {n} {who}. How many {x} is that for each?")),
        [f"Each gets {answer} {x}."],
        answer)


@family
def groups_of(d: Draw) -> Story:
    a, x, per, count = person(d), d.pick(SHARED), d.int(2, 24), d.int(2, 30)
    total = per * count
    answer = calc(total, "/", per)
    box = d.pick(("boxes", "bags", "jars", "packs", "baskets", "drawers", "rows", "piles"))
    return Story(
        tell(d, (
            f"{a} has {total} {x} and makes {box} of {per}. How many {box}?",
            f"How many {box} of {per} {x} can I make from {total} {x}?",
            f"{total} {x}, {per} in each of the {box}. How many {box} are there?",
            f"I need {box} for {total} {x}; {per} fit in one. How many {box} do I need?")),
        [f"That makes {answer} {box}."],
        answer)


@family
def boxes_times(d: Draw) -> Story:
    a, x, per, count = person(d), d.pick(SHARED), d.int(2, 40), d.int(2, 40)
    total = calc(count, "*", per)
    box = d.pick(("boxes", "bags", "jars", "packs", "baskets", "drawers", "rows", "shelves"))
    return Story(
        tell(d, (
            f"{a} has {count} {box} with {per} {x} in each. How many {x}?",
            f"{count} {box} of {per} {x}: how many {x} is that?",
            f"There are {per} {x} in each of my {count} {box}. How many {x} do I have?",
            f"How many {x} are in {count} {box} if each has {per}?",
            f"{a} fills {count} {box} and puts {per} {x} in every one. What is the number of {x}?")),
        [f"There are {total} {x}."],
        total)


@family
def tip_amount(d: Draw) -> Story:
    a, p = person(d), d.int(12, 200)
    percent = d.number_from((10, 12, 15, 18, 20, 25))
    tip = calc(Decimal(p), "*", percent, "/", 100)
    ask = d.pick((True, False))
    total = calc(p, "+", tip)
    return Story(
        tell(d, (
            f"My bill is ${p} and I want to tip {percent}%. How much do I pay in total?",
            f"{a} leaves a {percent}% tip on a ${p} bill. What is the total?",
            f"${p} dinner plus {percent} percent tip: how much altogether?",
            f"What is ${p} with a tip of {percent}% added?") if ask else (
            f"How much is a {percent}% tip on ${p}?",
            f"The bill is ${p}. {a} tips {percent} percent. How much is the tip?",
            f"What tip is {percent}% of a ${p} bill?",
            f"I want to leave a {percent}% tip on ${p}. How many dollars is the tip?")),
        [f"The tip is {tip:$}."] + ([f"The total is {total:$}."] if ask else []),
        total if ask else tip)


@family
def percent_off_quick(d: Draw) -> Story:
    x, p, percent = d.pick(GOODS + nouns(words.LARGE_GOODS)), d.int(8, 400, 2), d.percent()
    off = calc(Decimal(p), "*", percent, "/", 100)
    ask = d.pick((True, False))
    price = calc(p, "-", off)
    return Story(
        tell(d, (
            f"{x.a} is ${p} with {percent}% off. What do I pay?",
            f"${p} minus {percent}%: what is the price of the {x.one}?",
            f"How much is {x.a} for ${p} after a {percent} percent discount?",
            f"I get {percent}% off {x.a} that costs ${p}. How much is it then?") if ask else (
            f"How much do I save with {percent}% off {x.a} for ${p}?",
            f"{x.a} costs ${p}. With {percent} percent off, how many dollars are saved?",
            f"What is the discount in dollars when {x.a} at ${p} is {percent}% off?")),
        [f"The discount is {off:$}."] + ([f"The price is {price:$}."] if ask else []),
        price if ask else off)


@family
def quick_distance(d: Draw) -> Story:
    v, speed = d.pick(words.VEHICLES), d.int(6, 90, 2)
    half = d.pick((True, False))
    n = d.int(2, 9)
    hours = Decimal(n) + Decimal("0.5") if half else n
    way = calc(speed, "*", hours)
    unit, short = d.pick((("miles", "mph"), ("kilometers", "km/h")))
    return Story(
        tell(d, (
            f"A {v} drives {speed} {short} for {hours} hours. How many {unit} is that?",
            f"I go {speed} {unit} an hour for {hours} hours. How far do I get in {unit}?",
            f"How many {unit} in {hours} hours at {speed} {short}?",
            f"Speed {speed} {short}, time {hours} hours. How many {unit}?",
            f"How far does a {v} go in {hours} hours at {speed} {unit} per hour? Answer in {unit}.")),
        [f"The way is {way} {unit}."],
        way)


@family
def quick_duration(d: Draw) -> Story:
    a, speed, half, n = person(d), d.int(4, 90, 2), d.pick((True, False)), d.int(2, 12)
    way = speed * n + (speed // 2 if half else 0)
    time = calc(Decimal(way), "/", speed)
    unit, short = d.pick((("miles", "mph"), ("kilometers", "km/h")))
    return Story(
        tell(d, (
            f"How many hours do I need for {way} {unit} at {speed} {short}?",
            f"{a} drives {way} {unit} at {speed} {unit} an hour. How many hours does it take?",
            f"{way} {unit} at {speed} {short}: how many hours?",
            f"A trip is {way} {unit} long, the speed {speed} {short}. How long is it in hours?")),
        [f"It takes {time} hours."],
        time)


@family
def pay_for_hours(d: Draw) -> Story:
    a, rate, hours = person(d), cost(d, 8, 40), d.int(2, 50)
    half = d.pick((True, False, False))
    time = Decimal(hours) + Decimal("0.5") if half else hours
    pay = calc(time, "*", rate)
    return Story(
        tell(d, (
            f"I earn ${rate} an hour and work {time} hours. How much do I earn?",
            f"{time} hours at ${rate} per hour: how much money is it?",
            f"{a} works {time} hours for ${rate} an hour. What is the pay?",
            f"How much does {a} get for {time} hours if an hour pays ${rate}?",
            f"At ${rate} per hour, what do {time} hours of work bring?")),
        [f"The pay is {pay:$}."],
        pay)


@family
def who_has_more(d: Draw) -> Story:
    (a, b), x, n, m = people(d, 2), d.pick(SHARED), d.int(3, 150), d.int(2, 140)
    gap = calc(n, "-", m)
    several(d, gap)
    return Story(
        tell(d, (
            f"{a} has {n} {x}, {b} has {m}. How many more does {a} have?",
            f"How many more {x} has {a} with {n} than {b} with {m}?",
            f"{b} has {m} {x} and {a} has {n}. How many fewer does {b} have?",
            f"What is the difference between {a}'s {n} {x} and {b}'s {m}?",
            f"How many more {x} does {b} need to have as many as {a}, if {b} has {m} and {a} has {n}?")),
        [f"The difference is {gap} {x}."],
        gap)


@family
def twice_as_many_quick(d: Draw) -> Story:
    (a, b), x, n, k = people(d, 2), d.pick(SHARED), d.int(2, 90), d.int(2, 6)
    other = calc(n, "*", k)
    ask = d.pick((True, False))
    total = calc(n, "+", other)
    return Story(
        tell(d, (
            f"{a} has {n} {x}. {b} has {words.TIMES[k]} as many. How many do they have together?",
            f"{b} has {words.TIMES[k]} as many {x} as {a}, who has {n}. How many in total?",
            f"{a} has {n} {x} and {b} {words.TIMES[k]} that number. What is the sum?",
            f"How many {x} do {a} and {b} have, if {a} has {n} and {b} {words.TIMES[k]} as many?") if ask else (
            f"{a} has {n} {x}. {b} has {words.TIMES[k]} as many. How many does {b} have?",
            f"{b} has {words.TIMES[k]} as many {x} as {a}. {a} has {n}. How many has {b}?",
            f"How many {x} does {b} have if that is {words.TIMES[k]} {a}'s {n}?")),
        [f"{b} has {other} {x}."] + ([f"Together it is {total} {x}."] if ask else []),
        total if ask else other)


@family
def half_of_things(d: Draw) -> Story:
    (a, b), x, k, part = people(d, 2), d.pick(SHARED), d.number_from((2, 3, 4, 5, 6, 8, 10)), d.int(2, 40)
    n = k * part
    answer = calc(n, "/", k)
    ask = d.pick((True, False))
    left = calc(n, "-", answer)
    f = d.pick((words.PARTS[k], f"1/{k}"))
    return Story(
        tell(d, (
            f"I eat {f} of {n} {x}. How many are left?" if x in nouns(words.FRUITS) else f"I sell {f} of {n} {x}. How many are left?",
            f"{a} gives {b} {f} of {n} {x}. How many does {a} keep?",
            f"{f} of the {n} {x} are gone. How many remain?",
            f"How many {x} are left when {f} of {n} are given away?") if ask else (
            f"What is {f} of {n} {x}?", f"{a} takes {f} of {n} {x}. How many is that?",
            f"How many {x} are {f} of {n}?", f"{b} gets {f} of the {n} {x}. How many {x} does {b} get?")),
        [f"The part is {answer} {x}."] + ([f"So {left} {x} are left."] if ask else []),
        left if ask else answer)


@family
def each_day_for_days(d: Draw) -> Story:
    a, daily, days = person(d), d.int(2, 60), d.int(2, 31)
    verb, verbs, x = d.pick((("read", "reads", "pages"), ("walk", "walks", "miles"),
                             ("drink", "drinks", "glasses of water"), ("write", "writes", "letters"),
                             ("do", "does", "push-ups"), ("learn", "learns", "words"), ("pick", "picks", "apples"),
                             ("swim", "swims", "laps"),
                             ("save", "saves", "cents"), ("bake", "bakes", "rolls")))
    total = calc(daily, "*", days)
    return Story(
        tell(d, (
            f"I {verb} {daily} {x} a day. How many {x} in {days} days?",
            f"{a} {verbs} {daily} {x} every day. How many {x} is that in {days} days?",
            f"{daily} {x} a day for {days} days: how many {x}?",
            f"In {days} days, how many {x} does {a} {verb} at {daily} a day?")),
        [f"In {days} days it is {total} {x}."],
        total)


@family
def price_per_unit_quick(d: Draw) -> Story:
    a, x, n = person(d), d.pick(GOODS), d.number_from((2, 4, 5, 8, 10, 20, 3, 6))
    total = d.int(3, 90)
    each = calc(Decimal(total), "/", n)
    d.require(each.value >= 1)
    return Story(
        tell(d, (
            f"{n} {x} cost ${total}. How much is one?",
            f"I paid ${total} for {n} {x}. What did each cost?",
            f"{a} buys {n} {x} for ${total} in all. What is the price of one {x.one}?",
            f"What does one {x.one} cost if {n} cost ${total}?")),
        [f"One {x.one} costs {each:$}."],
        each)


@family
def average_quick(d: Draw) -> Story:
    a, n = person(d), d.int(2, 4)
    values = [d.int(2, 90) for _ in range(n)]
    total = calc(*[term for value in values for term in (Decimal(value), "+")][:-1])
    average = calc(total, "/", n)
    listed = ", ".join(map(str, values[:-1])) + f" and {values[-1]}"
    x = d.pick(("miles", "points", "pages", "minutes", "dollars", "goals", "visitors", "hours"))
    return Story(
        tell(d, (
            f"{a} had {listed} {x} on {d.number_words(n)} days. What is the average?",
            f"What is the average of {listed} {x}?",
            f"{n} results: {listed} {x}. What is the mean?",
            f"On average, how many {x} are {listed} {x}?")),
        [f"The sum is {total}.", f"The average is {average}."],
        average)


@family
def legs_and_wheels(d: Draw) -> Story:
    x, wheels = d.pick((("cars", 4), ("bicycles", 2), ("tricycles", 3), ("spiders", 8), ("dogs", 4), ("ducks", 2),
                        ("ants", 6), ("chairs", 4), ("horses", 4), ("beetles", 6)))
    what = "wheels" if x in ("cars", "bicycles", "tricycles") else "legs"
    place = d.pick(("in a yard", "at a school", "on a farm", "in front of a house", "in a picture", "in a park"))
    n = d.int(2, 60)
    d.number_from((wheels,))
    back = d.pick((True, False))
    answer = calc(n * wheels, "/", wheels) if back else calc(n, "*", wheels)
    return Story(
        tell(d, (
            f"The {x} {place} have {n * wheels} {what}, {wheels} each. How many {x} are there?",
            f"I count {n * wheels} {what} of {x}. Each has {wheels}. How many {x} is that?",
            f"How many {x} have {n * wheels} {what} together, with {wheels} {what} each?") if back else (
            f"There are {n} {x} {place}. Each has {wheels} {what}. How many {what}?",
            f"How many {what} do {n} {x} have, with {wheels} each?",
            f"{n} {x}, {wheels} {what} each: how many {what}?")),
        [f"There are {answer} {x}." if back else f"There are {answer} {what}."],
        answer)


@family
def dollars_left_for_others(d: Draw) -> Story:
    a, x, budget, p, n = person(d), d.pick(GOODS), d.int(20, 200), cost(d, 1, 20), d.int(2, 9)
    spent = calc(n, "*", p)
    left = calc(budget, "-", spent)
    d.require(left.value > 1)
    return Story(
        tell(d, (
            f"I have ${budget} and buy {n} {x} for ${p} each. How much is left?",
            f"{n} {x} at ${p} each, paid from ${budget}. How much money remains?",
            f"{a} has ${budget}. {a.They} gets {n} {x} at ${p} apiece. How many dollars are left?",
            f"How much of ${budget} is left after buying {n} {x} for ${p} each?")),
        [f"The {x} cost {spent:$}.", f"So {left:$} is left."],
        left)


@family
def bus_and_people(d: Draw) -> Story:
    v, n, off, on = d.pick(("bus", "train", "tram", "ferry", "boat")), d.int(5, 80), d.int(2, 60), d.int(2, 40)
    first = calc(n, "-", off)
    several(d, first)
    total = calc(first, "+", on)
    return Story(
        tell(d, (
            f"A {v} has {n} people. {off} get off, {on} get on. How many now?",
            f"{n} people are on a {v}. {off} leave and {on} come. How many people are on it?",
            f"How many people are on a {v} with {n} after {off} get off and {on} get on?",
            f"I count {n} people on the {v}. At the stop {off} get off and {on} get on. How many are there then?")),
        [f"After {off} leave there are {first} people.", f"Then there are {total} people."],
        total)

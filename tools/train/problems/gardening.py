"""Gardens, fields and farms."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, SHARES, amount, capital, maybe, nouns, share, spelled, story, tell
from .wordings import people, person


@family
def plants_in_rows(d: Draw) -> Story:
    a, x, place = person(d), d.pick(things.SEEDLINGS + things.TREES), d.pick(things.PLANTED_PLACES)
    rows, per = amount(d, (2, 12), (10, 60)), amount(d, (2, 12), (10, 60))
    total = calc(rows, "*", per)
    return story(
        tell(d, (
            f"{a} plants {rows} rows of {x} with {per} in each row. How many {x} are planted?",
            f"In {a}'s {place} there are {spelled(d, rows)} rows with {per} {x} each. How many {x} grow there?",
            f"How many {x} stand in {rows} rows of {per}?",
            f"Each row of the {place} has {per} {x}, and there are {rows} rows. How many {x} is that?")),
        [f"There are {total} {x}."], total)


@family
def rows_needed(d: Draw) -> Story:
    a, x = person(d), d.pick(things.SEEDLINGS + things.FLOWERS)
    per, rows = amount(d, (2, 12), (10, 40)), d.int(2, 25)
    n = per * rows
    result = calc(n, "/", per)
    return story(
        tell(d, (
            f"{a} has {n} {x} and puts {per} into each row. How many rows does that make?",
            f"{n} {x} are planted in rows of {per}. How many rows are there?",
            f"How many rows does {a} need for {n} {x} with {per} per row?",
            f"A row has room for {per} {x}. {a} wants to plant {n}. How many rows are needed?")),
        [f"It makes {result} rows."], result)


@family
def harvest_in_baskets(d: Draw) -> Story:
    a, x, s = person(d), d.pick(things.VEGETABLES + things.FOODS[:7]), d.pick(nouns("basket, crate, box, sack, bucket"))
    n, per, eaten = d.int(3, 40), d.int(5, 60), d.int(2, 60)
    total = calc(n, "*", per)
    left = calc(total, "-", eaten)
    d.require(left.value > 1)
    return story(
        tell(d, (f"{a} harvests {n} {s} with {per} {x} in each.", f"The harvest of {a} fills {n} {s}, each with {per} {x}.",
                 f"{a} picks {x} and fills {s(n)}. There are {per} in every {s.one}."),
             (f"The family eats {eaten} of them.", f"{eaten} of the {x} are eaten at home.", f"Of these, {eaten} go to neighbors."),
             maybe(d, f"The {x} took {d.int(40, 120)} days to grow."),
             (f"How many {x} are left?", f"How many {x} can {a} sell?", f"What number of {x} remains?")),
        [f"There are {total} {x}.", f"Then {left} are left."], left)


@family
def seeds_that_grow(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FLOWERS + things.VEGETABLES)
    (p, q), part, lost = share(d), d.int(4, 40), d.int(2, 20)
    n = q * part
    one = calc(n, "/", q)
    lines = [f"One part of {q} is {one}."]
    grown = one
    if p > 1:
        grown = calc(one, "*", p)
        lines.append(f"The number that sprout is {grown}.")
    end = calc(grown, "-", lost)
    d.require(end.value > 1)
    return story(
        tell(d, (f"{a} sows {n} seeds of {x}.", f"{n} seeds of {x} are sown in {a}'s garden.", f"A packet of {x} gives {a} {n} seeds, and all are sown."),
             (f"{capital(SHARES[(p, q)])} of them sprout.", f"Only {SHARES[(p, q)]} of the seeds come up.", f"Of the seeds, {SHARES[(p, q)]} grow."),
             (f"Snails eat {lost} of the young plants.", f"Then {lost} plants are eaten by snails.", f"Later {lost} of the plants dry out."),
             ("How many plants are left?", "How many plants survive?", f"How many plants does {a} have in the end?")),
        [*lines, f"The number of plants left is {end}."], end)


@family
def flowers_in_vases(d: Draw) -> Story:
    a = person(d)
    x, y = d.pick_two(things.FLOWERS)
    n, m, vases = d.int(5, 80), d.int(5, 80), d.int(2, 12)
    total = calc(n, "+", m)
    each = calc(total, "/", vases)
    d.require(each.value > 1)
    return story(
        tell(d, (f"{a} cuts {n} {x} and {m} {y}.", f"{n} {x} and {m} {y} come from {a}'s garden.", f"There are {n} {x} on {a}'s table. There are also {m} {y}."),
             (f"All flowers are divided equally among {vases} vases.", f"{a} puts the same number of flowers into each of {vases} vases.",
              f"They fill {vases} vases with equal numbers of flowers."),
             ("How many flowers are in each vase?", "How many flowers does one vase hold?", "How many flowers go into a vase?")),
        [f"There are {total} flowers.", f"Each vase gets {each} flowers."], each)


@family
def watering_cans(d: Draw) -> Story:
    a, x = person(d), d.pick(things.SEEDLINGS)
    n, liters, can = d.int(4, 60), d.int(2, 6), d.number_from((4, 5, 6, 8, 10, 12, 15, 20))
    d.require(n * liters % can == 0)
    total = calc(n, "*", liters)
    trips = calc(total, "/", can)
    d.require(trips.value > 1)
    return story(
        tell(d, [(f"{a} waters {n} {x}.", f"{n} {x} grow in {a}'s garden.", f"{a} has {n} {x} to water."),
                 (f"Each of the {x} needs {liters} liters.", f"{capital(spelled(d, liters))} liters go to each {x.one}.", f"One {x.one} gets {liters} liters of water."),
                 (f"A watering can holds {can} liters.", f"{can} liters fit into the watering can.", f"The can of {a} takes {can} liters.")],
             ("How many full cans are needed?", f"How many times does {a} have to fill the can?", "How many cans of water is that?")),
        [f"The plants need {total} liters.", f"Those are {trips} cans."], trips)


@family
def trees_over_years(d: Draw) -> Story:
    x = d.pick(things.TREES)
    n, per, years, felled = d.int(20, 400, 10), d.int(5, 60), d.int(2, 12), d.int(5, 150)
    new = calc(per, "*", years)
    high = calc(n, "+", new)
    end = calc(high, "-", felled)
    return story(
        tell(d, [(f"A park has {n} {x}.", f"There are {n} {x} in a park.", f"In a park grow {n} {x}."),
                 (f"Every year {per} more {x} are planted.", f"Gardeners plant {per} new {x} each year.", f"{per} {x} are added per year.")],
             (f"After {years} years a storm fells {felled} of them.", f"In a storm, {years} years later, {felled} of the trees fall.", f"{years} years pass, then {felled} are cut down."),
             (f"How many {x} does the park have then?", f"How many {x} are left?", f"What is the number of {x} after that?")),
        [f"In {years} years {new} are planted.", f"Then there are {high} {x}.", f"In the end there are {end} {x}."], end)


@family
def growth_of_a_plant(d: Draw) -> Story:
    a, x = person(d), d.pick(["sunflower", "bamboo plant", "bean", "vine", "cactus", "young oak", "hedge", "tomato plant"])
    start, rate, weeks, cut = d.int(2, 60), d.int(2, 20), d.int(2, 20), d.int(2, 40)
    unit, t = d.pick(["centimeters", "inches", "millimeters"]), d.pick(["week", "month"])
    grown = calc(rate, "*", weeks)
    high = calc(start, "+", grown)
    end = calc(high, "-", cut)
    d.require(end.value > start)
    return story(
        tell(d, (f"{a}'s {x} is {start} {unit} tall.", f"The height of {a}'s {x} is {start} {unit}.", f"{a} plants a {x} with a height of {start} {unit}."),
             (f"It grows {rate} {unit} per {t}.", f"Each {t} it gets {rate} {unit} taller.", f"A {t} adds {rate} {unit}."),
             (f"After {weeks} {t}s {a} cuts off {cut} {unit}.", f"{weeks} {t}s later {cut} {unit} are cut off at the top.", f"In {weeks} {t}s' time {a} shortens it by {cut} {unit}."),
             ("How tall is it then?", f"How many {unit} tall is it after the cut?", f"What is its height then, in {unit}?")),
        [f"It grows {grown} {unit}.", f"Then it is {high} {unit} tall.", f"After the cut it is {end} {unit} tall."], end)


@family
def eggs_of_a_week(d: Draw) -> Story:
    a, x = person(d), d.pick(["hens", "ducks", "geese", "chickens", "quails"])
    n, per, days, dozen, full = d.int(3, 40), d.int(2, 3), d.int(2, 14), d.number_from((6, 10, 12)), d.int(2, 25)
    eaten = n * per * days - dozen * full
    d.require(1 < eaten < 300)
    daily = calc(n, "*", per)
    laid = calc(daily, "*", days)
    rest = calc(laid, "-", eaten)
    boxes = calc(rest, "/", dozen)
    d.require(boxes.value > 1)
    return story(
        tell(d, (f"Each of {a}'s {n} {x} lays {per} eggs a day.", f"{a} keeps {n} {x}, and each lays {per} eggs per day.", f"Per day {a} gets {per} eggs from each of {n} {x}."),
             (f"In {days} days {a.their} family eats {eaten} of the eggs.", f"Over {days} days {eaten} eggs are eaten at home.", f"{eaten} of the eggs of {days} days break."),
             (f"The rest go into boxes of {dozen}.", f"All others are packed in boxes, {dozen} in each.", f"{capital(spelled(d, dozen))} of the remaining eggs fill a box."),
             ("How many boxes are there?", f"How many boxes can {a} fill?", "How many boxes is that?")),
        [f"Per day there are {daily} eggs.", f"In {days} days there are {laid} eggs.", f"The rest is {rest} eggs.", f"They fill {boxes} boxes."], boxes)


@family
def field_yield(d: Draw) -> Story:
    a, b = people(d, 2)
    x = d.pick(["corn", "wheat", "rice", "oats", "barley", "beans", "cotton"])
    acres, per, more, price = d.int(4, 60), d.int(5, 60), d.int(2, 20), d.int(2, 9)
    first = calc(acres, "*", per)
    second_acres = calc(acres, "+", more)
    second = calc(second_acres, "*", per)
    total = calc(first, "+", second)
    return story(
        tell(d, [(f"{a} grows {x} on {acres} acres.", f"The field of {a} has {acres} acres of {x}.", f"On {acres} acres {a} plants {x}."),
                 (f"{b} has {more} more acres of {x} than {a}.", f"The {x} of {b} covers {more} acres more than that of {a}.")],
             (f"An acre yields {per} sacks.", f"Each acre brings {per} sacks.", f"They harvest {per} sacks from every acre."),
             maybe(d, f"A sack sells for ${price}."),
             ("How many sacks do both harvest together?", f"How many sacks of {x} do {a} and {b} get in all?", "What is the total harvest in sacks?")),
        [f"{a} harvests {first} sacks.", f"{b} has {second_acres} acres.", f"{b} harvests {second} sacks.", f"Together they have {total} sacks."], total)


@family
def compost_mix(d: Draw) -> Story:
    a = person(d)
    x, y = d.pick_two(["soil", "sand", "compost", "bark", "peat", "gravel", "clay"])
    p, q, k = d.int(2, 7), d.int(1, 6), d.int(2, 25)
    d.require(p != q)
    total = (p + q) * k
    parts = calc(p, "+", q)
    one = calc(total, "/", parts)
    need = calc(one, "*", p)
    d.require(q > 1)
    return story(
        tell(d, (f"{a} mixes {p} parts of {x} with {q} parts of {y}.", f"For the flower pots {a} takes {p} parts of {x} and {q} parts of {y}.",
                 f"{capital(x)} and {y} are mixed by {a} in the ratio {p} to {q}."),
             (f"In all {a.they} needs {total} liters.", f"The mix should have {total} liters.", f"It makes {total} liters of mix."),
             (f"How many liters of {x} does it take?", f"How many liters of {x} are in it?", f"What amount of {x} is needed, in liters?")),
        [f"There are {parts} parts.", f"One part is {one} liters.", f"It takes {need} liters of {x}."], need)


@family
def vegetable_stand(d: Draw) -> Story:
    a = person(d)
    x, y = d.pick_two(things.VEGETABLES)
    n, p, m, q, fee = d.int(5, 60), d.int(2, 5), d.int(5, 60), d.int(2, 6), d.int(5, 40)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    left = calc(total, "-", fee)
    return story(
        tell(d, (f"{a} sells {n} {x} at ${p} each and {m} {y} at ${q} each.", f"At a stand {a} sells {n} {x} for ${p} apiece. {m} {y} go for ${q} apiece.",
                 f"A {x.one} costs ${p} and a {y.one} ${q} at {a}'s stand. {a.They} sells {n} {x} and {m} {y}." if x.one[0] not in "aeiou" and y.one[0] not in "aeiou"
                 else f"{a}'s stand sells {n} {x} and {m} {y}. The {x} are ${p} each, the {y} ${q} each."),
             (f"The stand costs ${fee}.", f"{a} pays ${fee} for the place.", f"A fee of ${fee} has to be paid."),
             (f"How much does {a} have left?", "How many dollars remain after that?", f"What does {a} earn in the end?")),
        [f"The {x} bring {first:$}.", f"The {y} bring {second:$}.", f"Together it is {total:$}.", f"After the fee it is {left:$}."], left)


@family
def plants_per_meter(d: Draw) -> Story:
    a, x = person(d), d.pick(things.SEEDLINGS + things.FLOWERS)
    w, h, per, have = d.int(2, 15), d.int(2, 12), d.int(2, 12), d.int(2, 60)
    area = calc(w, "*", h)
    need = calc(area, "*", per)
    buy = calc(need, "-", have)
    d.require(buy.value > 1)
    return story(
        tell(d, (f"A bed in {a}'s garden is {w} meters long and {h} meters wide.", f"{a} has a flower bed of {w} by {h} meters.", f"The sides of {a}'s bed are {w} and {h} meters."),
             [(f"On a square meter there is room for {per} {x}.", f"{per} {x} fit on each square meter.", f"Each square meter takes {per} {x}."),
              (f"{a} already has {have} {x}.", f"{have} {x} stand ready in pots.", f"A neighbor gives {a} {have} {x}.")],
             (f"How many {x} must {a} buy to fill the bed?", f"How many more {x} does {a} need for the whole bed?", f"How many {x} are missing if the bed is to be full?")),
        [f"The bed has {area} square meters.", f"It takes {need} {x}.", f"{a} needs {buy} more."], buy)


@family
def pickers_and_pounds(d: Draw) -> Story:
    a, b, c = people(d, 3)
    x = d.pick(["strawberries", "cherries", "grapes", "olives", "apples", "blueberries", "tomatoes", "nuts"])
    k, part, less = d.number_from((2, 3, 4)), d.int(4, 40), d.int(2, 15)
    n = k * part
    second = calc(n, "/", k)
    third = calc(second, "+", less)
    total = calc(n, "+", second, "+", third)
    return story(
        tell(d, [(f"{a} picks {n} pounds of {x}.", f"{n} pounds of {x} are picked by {a}."),
                 (f"{b} picks {PARTS[k]} as much as {a}.", f"{b}'s bucket has {PARTS[k]} as many pounds as {a}'s."),
                 (f"{c} picks {less} pounds more than {b}.", f"Compared with {b}, {c} has {less} pounds more.")],
             ("How many pounds do the three pick together?", f"How many pounds of {x} are there in all?", f"What is the total in pounds for {a}, {b} and {c}?")),
        [f"{b} picks {second} pounds.", f"{c} picks {third} pounds.", f"Together they pick {total} pounds."], total)

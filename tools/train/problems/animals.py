"""Animals at home, in the zoo and in nature."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, SHARES, TIMES, amount, capital, maybe, nouns, share, spelled, story, tell
from .wordings import person

_LEGS = {2: things.BIRDS, 4: things.ANIMALS[:10], 6: things.INSECTS, 8: nouns("spider, scorpion")}


@family
def birds_on_a_branch(d: Draw) -> Story:
    x, place = d.pick(things.BIRDS), d.pick(["the lake", "the pond", "the river", "the harbor", "the mill", "the old tower"])
    n, came, left = amount(d, (3, 20), (20, 150)), d.int(2, 60), d.int(2, 60)
    high = calc(n, "+", came)
    end = calc(high, "-", left)
    d.require(end.value > 1)
    return story(
        tell(d, (f"There are {n} {x} at {place}.", f"{capital(spelled(d, n))} {x} rest at {place}.", f"A child counts {n} {x} near {place}."),
             (f"Then {came} more arrive and {left} fly away.", f"{came} others join them, but later {left} leave.",
              f"After {came} more have come, {left} of them go."),
             (f"How many {x} are there now?", f"How many {x} remain?", f"What is the number of {x} at the end?")),
        [f"With the new ones there are {x(high)}.", f"Then {x(end)} remain."], end)


@family
def legs_of_animals(d: Draw) -> Story:
    legs = d.number_from((2, 4, 6, 8))
    x, n = d.pick(_LEGS[legs]), amount(d, (2, 12), (10, 60), (60, 250))
    total = calc(n, "*", legs)
    return story(
        tell(d, (
            f"{x.a.capitalize()} has {spelled(d, legs)} legs. How many legs do {spelled(d, n)} {x} have?",
            f"How many legs do {n} {x} have together if each has {legs}?",
            f"There are {n} {x}, each with {legs} legs. How many legs is that?",
            f"{capital(spelled(d, n))} {x} walk by, and each of them has {legs} legs. What is the number of legs?")),
        [f"The {x} have {total} legs."], total)


@family
def two_kinds_of_legs(d: Draw) -> Story:
    a = person(d)
    p, q = d.pick([(2, 4), (6, 8), (2, 6), (4, 8), (4, 6)])
    x, y = d.pick(_LEGS[p]), d.pick(_LEGS[q])
    n, m = d.int(2, 30), d.int(2, 30)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return story(
        tell(d, (f"{a} sees {n} {x} and {m} {y}.", f"In a picture there are {n} {x}. There are also {m} {y}.",
                 f"{n} {x} and {m} {y} are in {a}'s drawing."),
             (f"{x.Many} have {p} legs and {y} have {q}.", f"Each of the {x} has {p} legs, each of the {y} {q}.",
              f"Remember that {x} have {p} legs each, but {y} have {q}."),
             ("How many legs are there in all?", "What is the total number of legs?", "How many legs do all of them have?")),
        [f"The {x} have {first} legs.", f"The {y} have {second} legs.", f"In all there are {total} legs."], total)


@family
def zoo_numbers(d: Draw) -> Story:
    x, y = d.pick_two(things.ANIMALS)
    z = d.pick(things.BIRDS)
    n, k, fewer = d.int(3, 40), d.number_from((2, 3, 4, 5)), d.int(2, 20)
    second = calc(n, "*", k)
    third = calc(second, "-", fewer)
    total = calc(n, "+", second, "+", third)
    d.require(third.value > 1)
    return story(
        tell(d, [(f"A zoo has {n} {x}.", f"In a zoo live {n} {x}.", f"There are {n} {x} in the zoo."),
                 (f"The zoo has {TIMES[k]} as many {y} as {x}.", f"The number of {y} is {k} times the number of {x}.",
                  f"For each of the {x} there are {k} {y}."),
                 (f"There are {fewer} fewer {z} than {y}.", f"The {z} are {fewer} fewer than the {y}.")],
             (f"How many {x}, {y} and {z} are there together?", "How many of these animals live in the zoo?",
              "What is the total number of animals?")),
        [f"There are {second} {y}.", f"There are {third} {z}.", f"Together there are {total} animals."], total)


@family
def pet_food_days(d: Draw) -> Story:
    a, x = person(d), d.pick(things.PETS)
    n, grams, days = d.int(2, 9), d.int(20, 200, 10), d.int(3, 20)
    daily = calc(n, "*", grams)
    total = daily.value * days
    result = calc(total, "/", daily)
    return story(
        tell(d, [(f"{a} has {n} {x}.", f"{n} {x} live with {a}.", f"{a} takes care of {n} {x}."),
                 (f"Each {x.one} eats {grams} grams of food per day.", f"Every day each of the {x} gets {grams} grams of food.",
                  f"One of the {x} eats {grams} grams of food a day.")],
             (f"A bag contains {total} grams.", f"{a} buys a bag of {total} grams.", f"There are {total} grams of food in the house."),
             ("How many days does the food last?", "For how many days is that enough?", "After how many days is the food gone?")),
        [f"They eat {daily} grams per day.", f"The food lasts {result} days."], result)


@family
def litters(d: Draw) -> Story:
    x = d.pick(things.ANIMALS[10:] + things.PETS[:4])
    mothers, young, given = d.int(2, 12), d.int(2, 8), d.int(2, 30)
    babies = calc(mothers, "*", young)
    rest = calc(babies, "-", given)
    everyone = calc(rest, "+", mothers)
    d.require(rest.value > 0)
    return story(
        tell(d, (f"A park has {mothers} female {x}, and each has {young} babies.", f"Each of {mothers} female {x} gets {young} babies.",
                 f"{capital(spelled(d, mothers))} female {x} have {young} babies each."),
             (f"Then {given} of the babies move to another park.", f"{given} babies are given away.", f"Later {given} of the young ones leave."),
             (f"How many {x} are there now, mothers and babies together?", f"Counting the mothers too, how many {x} are left?",
              f"How many {x} remain in all, with the mothers?")),
        [f"The mothers have {babies} babies.", f"The number of babies that stay is {rest}.",
         f"With the mothers there are {everyone} {x}."], everyone)


@family
def aquarium(d: Draw) -> Story:
    a = person(d)
    x, y = d.pick_two(things.FISHES)
    tanks, n, m = d.int(2, 9), d.int(2, 20), d.int(2, 20)
    each = calc(n, "+", m)
    total = calc(tanks, "*", each)
    return story(
        tell(d, [(f"{a} has {tanks} tanks.", f"There are {tanks} fish tanks in {a}'s house.", f"{tanks} tanks stand in {a}'s room."),
                 (f"In each tank swim {n} {x} and {m} {y}.", f"Every tank holds {n} {x} and {m} {y}.",
                  f"{n} {x} and {m} {y} live in every tank.")],
             maybe(d, f"A tank holds {d.int(40, 200, 10)} liters of water."),
             (f"How many fish does {a} have?", "How many fish are there altogether?", "What is the number of fish in all tanks?")),
        [f"A tank has {each} fish.", f"In all there are {total} fish."], total)


@family
def fish_caught(d: Draw) -> Story:
    a, b, c = d.person(), d.person(), d.person()
    n, more, k = d.int(3, 30), d.int(2, 15), d.number_from((2, 3))
    second = calc(n, "+", more)
    third = calc(second, "*", k)
    result = calc(third, "-", n)
    return story(
        tell(d, [(f"{a} caught {n} fish.", f"{n} fish went into {a}'s bucket."),
                 (f"{b} caught {more} more than {a}.", f"Compared with {a}, {b} caught {more} more.", f"{b} has {more} fish more than {a}."),
                 (f"{c} caught {TIMES[k]} as many as {b}.", f"{c} got {TIMES[k]} as many fish as {b}.")],
             (f"How many more fish than {a} did {c} catch?", f"By how many fish did {c} beat {a}?",
              f"How many fewer fish did {a} catch than {c}?")),
        [f"{b} caught {second} fish.", f"{c} caught {third} fish.", f"The difference is {result} fish."], result)


@family
def growing_herd(d: Draw) -> Story:
    x = d.pick(things.ANIMALS)
    n, born, years, sold = d.int(10, 200), d.int(3, 40), d.int(2, 8), d.int(5, 80)
    new = calc(born, "*", years)
    herd = calc(n, "+", new)
    end = calc(herd, "-", sold)
    d.require(end.value > 1)
    return story(
        tell(d, (f"A reserve starts with {n} {x}.", f"In the first year there are {n} {x} in a reserve.", f"{n} {x} are brought to a reserve."),
             (f"Each year {born} are born.", f"Every year the herd gains {born} young ones.", f"Their number grows by {born} per year."),
             (f"After {years} years, {sold} are moved away.", f"{years} years later the reserve gives {sold} to a zoo."),
             (f"How many {x} are in the reserve then?", f"How many {x} stay?", f"What is the number of {x} after that?")),
        [f"In {years} years {new} are born.", f"Then there are {x(herd)}.", f"After the move {x(end)} stay."], end)


@family
def eggs_in_nests(d: Draw) -> Story:
    x = d.pick(things.BIRDS)
    nests, eggs, k = d.int(3, 30), d.int(2, 8), d.number_from((2, 3, 4, 5))
    laid = calc(nests, "*", eggs)
    broken = calc(laid, "/", k)
    hatched = calc(laid, "-", broken)
    return story(
        tell(d, (f"{nests} {x} lay {eggs} eggs each.", f"On an island there are {nests} nests of {x} with {eggs} eggs per nest.",
                 f"Each of {nests} {x} lays {eggs} eggs."),
             (f"{capital(PARTS[k])} of the eggs do not hatch.", f"Of all eggs, {PARTS[k]} break.", f"A storm destroys {PARTS[k]} of the eggs."),
             ("How many chicks hatch from the rest?", "All the others hatch. How many chicks are there?",
              "If all the others hatch, how many chicks are born?")),
        [f"There are {laid} eggs.", f"The number of lost eggs is {broken}.", f"The number of chicks is {hatched}."], hatched)


@family
def share_of_animals(d: Draw) -> Story:
    x = d.pick(things.ANIMALS + things.PETS)
    (p, q), part = share(d, 2), d.int(3, 40)
    n = q * part
    c1, c2 = d.pick_two(["brown", "white", "black", "gray", "spotted"])
    one = calc(n, "/", q)
    some = calc(one, "*", p)
    rest = calc(n, "-", some)
    named = SHARES[(p, q)]
    return story(
        tell(d, (f"There are {n} {x} on a farm.", f"A shelter cares for {n} {x}.", f"A farmer owns {n} {x}."),
             (f"{capital(named)} of them are {c1} and the rest are {c2}.", f"Of these, {named} are {c1}; all others are {c2}.",
              f"They are either {c1} or {c2}, and {named} are {c1}."),
             (f"How many are {c2}?", f"How many {c2} {x} are there?", f"What is the number of {c2} {x}?")),
        [f"One part of {q} is {one}.", f"The number of {c1} {x} is {some}.",
         f"The number of {c2} {x} is {rest}."], rest)


@family
def cages_needed(d: Draw) -> Story:
    x, home = d.pick(things.PETS), d.pick(nouns("cage, kennel, pen, room, basket"))
    per, count, dogs = d.int(2, 8), d.int(3, 20), d.int(3, 20)
    n = per * count
    d.require(dogs < n)
    total = n - dogs
    everyone = calc(total, "+", dogs)
    result = calc(everyone, "/", per)
    return story(
        tell(d, (f"A shelter has {total} {x}, and {dogs} more arrive.", f"{dogs} new {x} come to a shelter that already has {total}.",
                 f"There are {total} {x} in a shelter. Then {dogs} others are brought in."),
             (f"{capital(spelled(d, per))} {x} share one {home.one}.", f"Each {home.one} holds {per}.", f"They live in groups of {per}, one {home.one} per group."),
             (f"How many {home} are needed?", f"How many {home} does the shelter need?", f"What number of {home} is necessary?")),
        [f"There are {x(everyone)}.", f"They need {result} {home}."], result)


@family
def animal_weights(d: Draw) -> Story:
    x, y = d.pick_two(things.ANIMALS)
    light, k, extra = d.int(5, 90), d.number_from((2, 3, 4, 5)), d.int(2, 40)
    heavy = calc(light, "*", k)
    more = calc(heavy, "+", extra)
    total = calc(light, "+", more)
    return story(
        tell(d, [(f"{x.a.capitalize()} weighs {light} kilograms.", f"The weight of {x.a} is {light} kilograms."),
                 (f"{y.a.capitalize()} weighs {extra} kilograms more than {TIMES[k]} as much as the {x.one}.",
                  f"The {y.one} is {extra} kilograms heavier than {k} of the {x} together.",
                  f"Take {k} times the weight of the {x.one} and add {extra} kilograms: that is the weight of {y.a}.")],
             ("How much do both weigh together, in kilograms?", f"What do the {x.one} and the {y.one} weigh together?",
              "How many kilograms are the two animals in all?")),
        [f"The {x.one}'s weight {k} times is {heavy} kilograms.",
         f"The {y.one} weighs {more} kilograms.", f"Together they weigh {total} kilograms."], total)


@family
def food_chain(d: Draw) -> Story:
    x, y, z = d.pick([("owl", "mice", "seeds"), ("fox", "rabbits", "carrots"), ("cat", "birds", "worms"),
                      ("heron", "frogs", "flies"), ("snake", "frogs", "crickets"), ("hawk", "squirrels", "nuts"),
                      ("seal", "salmon", "shrimps"), ("wolf", "hares", "roots")])
    n, p, q = d.int(2, 12), d.int(2, 9), d.int(2, 15)
    hunters = {"wolf": "wolves", "fox": "foxes"}.get(x, x + "s")
    eaten = calc(n, "*", p)
    total = calc(eaten, "*", q)
    return story(
        tell(d, [(f"Each {x} eats {p} {y} a week.", f"Per week, one {x} eats {p} {y}."),
                 (f"Each of the {y} had eaten {q} {z} before.", f"In the stomach of each of the {y} were {q} {z}.")],
             (f"How many {z} were eaten by the {y} that {n} {hunters} eat in a week?",
              f"There are {n} {hunters}. How many {z} were in the {y} that they eat in a week?",
              f"In one week {n} {hunters} hunt. How many {z} did their {y} eat?")),
        [f"The {hunters} eat {eaten} {y}.", f"Those had eaten {total} {z}."], total)


@family
def bees_and_flowers(d: Draw) -> Story:
    x = d.pick(things.INSECTS)
    n, flowers, trips = d.int(3, 40), d.int(3, 30), d.int(2, 9)
    each = calc(flowers, "*", trips)
    total = calc(n, "*", each)
    return story(
        tell(d,
             (f"On every trip {x.a} visits {flowers} flowers, and it makes {trips} trips a day.",
              f"{x.a.capitalize()} makes {trips} trips a day with {flowers} flowers per trip.",
              f"Each day {x.a} flies out {trips} times, and each time it lands on {flowers} flowers."),
             (f"How many flowers do {n} {x} visit in a day?", f"How many visits to flowers do {n} {x} make per day?",
              f"There are {n} {x}. What is the number of their visits each day?")),
        [f"One of them makes {each} visits.", f"All {n} make {total} visits."], total)

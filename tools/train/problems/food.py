"""Baking, cooking, eating."""

from . import words
from .problem import Draw, Story, calc, family


@family
def trays_and_boxes(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.BAKED)
    per_box, boxes, eaten, trays = d.int(4, 12), d.int(3, 12), d.int(2, 20), d.int(2, 9)
    count = per_box * boxes + eaten
    d.require(count % trays == 0)
    baked = calc(trays, "*", count // trays)
    left = calc(baked, "-", eaten)
    filled = calc(left, "/", per_box)
    return Story(
        d.tell(
            (f"{a} bakes {trays} trays of {x} with {count // trays} on each.",
             f"{a} makes {trays} trays of {count // trays} {x}."),
            (f"The family eats {eaten} of them, and the rest goes into boxes of {per_box}.",
             f"After {eaten} are eaten, {a.they} packs the rest, {per_box} to a box."),
            (f"How many boxes does {a} fill?", "How many boxes are there?")),
        [f"{a} bakes {baked} {x}.", f"Then {left} are left.", f"They fill {filled} boxes."],
        filled)


@family
def pizza_party(d: Draw) -> Story:
    a = d.person()
    pizzas, slices, guests, each = d.int(3, 15), d.number_from((6, 8, 10, 12)), d.int(4, 20), d.int(2, 4)
    total, eaten = calc(pizzas, "*", slices), calc(guests, "*", each)
    left = calc(total, "-", eaten)
    return Story(
        d.tell(
            (f"{a} orders {pizzas} pizzas that are cut into {slices} slices each.",
             f"For a party {a} buys {pizzas} pizzas with {slices} slices each."),
            (f"{guests} guests eat {each} slices each.", f"Each of the {guests} guests has {each} slices."),
            ("How many slices are left?", "How many slices remain?")),
        [f"There are {total} slices.", f"The guests eat {eaten} slices.", f"So {left} slices are left."],
        left)


@family
def scale_a_recipe(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.INGREDIENTS)
    serves, factor, cups, have = d.int(2, 8), d.int(2, 9), d.int(2, 9), d.int(1, 9)
    people = serves * factor
    times = calc(people, "/", serves)
    needed = calc(cups, "*", times)
    missing = calc(needed, "-", have)
    d.require(missing.value > 0)
    return Story(
        d.tell(
            (f"A recipe for {serves} people needs {cups} cups of {x}.",
             f"To cook for {serves} people, {a} uses {cups} cups of {x}."),
            (f"{a} cooks for {people} people and has {have} cups of {x} at home.",
             f"{a} has {have} cups of {x} and expects {people} people."),
            (f"How many more cups of {x} does {a.they} need?", f"How many cups of {x} must {a} buy?")),
        [f"The recipe is made {times} times.", f"That needs {needed} cups.", f"So {missing} cups are missing."],
        missing)


@family
def dozens_of_eggs(d: Draw) -> Story:
    a, birds = d.person(), d.pick(["hens", "ducks", "geese"])
    each, dozens, days, price = d.int(2, 6), d.int(2, 20), d.int(2, 7), d.int(2, 6)
    eggs = dozens * 12
    d.require(eggs % (each * days) == 0 and eggs // (each * days) > 1)
    count = eggs // (each * days)
    daily = calc(count, "*", each)
    total = calc(daily, "*", days)
    packs = calc(total, "/", 12)
    money = calc(packs, "*", price)
    return Story(
        d.tell(
            (f"{a} has {count} {birds}, and each lays {each} eggs a day.",
             f"Each of {a}'s {count} {birds} lays {each} eggs every day."),
            (f"{a.They} sells the eggs of {days} days for ${price} a dozen.",
             f"After {days} days {a.they} sells all the eggs, a dozen for ${price}."),
            (f"How much money does {a.they} get?", f"How many dollars does {a} earn?")),
        [f"There are {daily} eggs a day.", f"In {days} days that is {total} eggs.",
         f"They make {packs} dozen.", f"{a} gets {money:$}."],
        money)


@family
def restaurant_tables(d: Draw) -> Story:
    big, seats, small, few, guests = d.int(3, 15), d.int(5, 10), d.int(3, 15), d.int(2, 4), d.int(10, 90)
    first, second = calc(big, "*", seats), calc(small, "*", few)
    total = calc(first, "+", second)
    free = calc(total, "-", guests)
    return Story(
        d.tell(
            (f"A restaurant has {big} tables for {seats} people and {small} tables for {few} people.",
             f"In a restaurant there are {big} tables with {seats} seats each and {small} tables with {few} seats each."),
            (f"There are {guests} guests tonight.", f"{guests} people have come to eat."),
            ("How many seats are free?", "How many seats stay empty?")),
        [f"The large tables have {first} seats.", f"The small tables have {second} seats.",
         f"There are {total} seats.", f"So {free} seats are free."],
        free)


@family
def soup_vegetables(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.VEGETABLES)
    pots, per_pot, salad, have = d.int(2, 9), d.int(5, 25), d.int(2, 40), d.int(2, 30)
    soup = calc(pots, "*", per_pot)
    total = calc(soup, "+", salad)
    missing = calc(total, "-", have)
    d.require(missing.value > 0)
    return Story(
        d.tell(
            (f"{a} cooks {pots} pots of soup, each with {per_pot} {x}, and a salad with {salad} {x}.",
             f"A pot of soup takes {per_pot} {x} and a salad takes {salad}. {a} makes {pots} pots and one salad."),
            (f"{a.They} has {have} {x} in the kitchen.", f"There are already {have} {x} at home."),
            (f"How many {x} does {a} have to buy?", f"How many more {x} does {a.they} need?")),
        [f"The soup takes {soup} {x}.", f"With the salad it is {total} {x}.", f"{a} buys {missing} {x}."],
        missing)


@family
def bowls_of_soup(d: Draw) -> Story:
    a, b = d.person(), d.person()
    pots, bowls, guests, each = d.int(3, 9), d.int(8, 25), d.int(3, 12), d.int(2, 4)
    total, eaten = calc(pots, "*", bowls), calc(guests, "*", each)
    rest = calc(total, "-", eaten)
    half = calc(rest, "/", 2)
    return Story(
        d.tell(
            (f"{a} cooks {pots} pots of soup, and every pot fills {bowls} bowls.",
             f"One pot of soup fills {bowls} bowls, and {a} makes {pots} pots."),
            (f"{guests} guests eat {each} bowls each.", f"Each of {guests} guests eats {each} bowls."),
            (f"Half of what remains goes to {b}.", f"{b} takes home half of the rest."),
            (f"How many bowls does {b} get?", f"How many bowls of soup go to {b}?")),
        [f"The pots fill {total} bowls.", f"The guests eat {eaten} bowls.", f"Then {rest} bowls remain.",
         f"{b} gets {half} bowls."],
        half)


@family
def ice_cream_sales(d: Draw) -> Story:
    a, day1 = d.person(), d.pick(words.DAYS[:6])
    day2 = words.DAYS[words.DAYS.index(day1) + 1]
    n, k, price = d.int(15, 80), d.number_from((2, 3)), d.int(2, 6)
    second = calc(n, "*", k)
    total = calc(n, "+", second)
    money = calc(total, "*", price)
    return Story(
        d.tell(
            (f"{a} sells {n} ice cream cones on {day1} and {words.MULTIPLES[k]} as many on {day2}.",
             f"On {day1}, {a} sold {n} cones of ice cream. On {day2} it was {words.MULTIPLES[k]} as many."),
            (f"A cone costs ${price}.", f"Each cone is ${price}."),
            (f"How much money does {a} take in on the two days?", "How many dollars is that for both days?")),
        [f"On {day2} it is {second} cones.", f"Together it is {total} cones.", f"They bring {money:$}."],
        money)

"""Animals, orchards and gardens."""

from . import words
from .problem import Draw, Story, calc, family


@family
def legs_on_a_farm(d: Draw) -> Story:
    a, x, y = d.person(), d.pick(words.TWO_LEGGED), d.pick(words.FOUR_LEGGED)
    n, m, sold = d.int(5, 60), d.int(5, 40), d.int(2, 20)
    d.require(sold < m)
    two, rest = calc(n, "*", 2), calc(m, "-", sold)
    four = calc(rest, "*", 4)
    total = calc(two, "+", four)
    return Story(
        d.tell(
            (f"{a}'s farm has {n} {x} and {m} {y}.", f"There are {n} {x} and {m} {y} on a farm."),
            (f"The farmer sells {sold} of the {y}.", f"Then {sold} {y} are sold."),
            ("How many legs do the animals have now?", "How many legs are left on the farm?")),
        [f"The {x} have {two} legs.", f"There are {rest} {y} left.", f"They have {four} legs.",
         f"Together it is {total} legs."],
        total)


@family
def orchard_harvest(d: Draw) -> Story:
    a, tree = d.person(), d.pick(words.TREES)
    rows, per_row, fruit, rate = d.int(2, 12), d.int(3, 12), d.int(5, 40), d.int(2, 5)
    trees = calc(rows, "*", per_row)
    picked = calc(trees, "*", fruit)
    money = calc(picked, "*", rate)
    return Story(
        d.tell(
            (f"{a} has {rows} rows of {tree} trees with {per_row} trees in each row.",
             f"An orchard has {rows} rows, and each row has {per_row} {tree} trees."),
            (f"Every tree gives {fruit} pounds of fruit, and a pound sells for ${rate}.",
             f"A tree yields {fruit} pounds, which sell for ${rate} a pound."),
            ("How many dollars does the whole harvest bring?", "How much is the harvest worth?")),
        [f"There are {trees} trees.", f"They give {picked} pounds.", f"The harvest brings {money:$}."],
        money)


@family
def milk_for_sale(d: Draw) -> Story:
    a, x = d.person(), d.pick(["cows", "goats"])
    n, liters, kept, price = d.int(3, 25), d.int(4, 25), d.int(3, 20), d.int(2, 5)
    daily = calc(n, "*", liters)
    sold = calc(daily, "-", kept)
    money = calc(sold, "*", price)
    d.require(sold.value > 0)
    return Story(
        d.tell(
            (f"{a} milks {n} {x}, and each gives {liters} liters a day.",
             f"Each of {a}'s {n} {x} gives {liters} liters of milk a day."),
            (f"{a.They} keeps {kept} liters and sells the rest for ${price} a liter.",
             f"The family uses {kept} liters, and {a.they} sells the others at ${price} per liter."),
            (f"How much does {a} earn in a day?", f"How many dollars is that each day?")),
        [f"The {x} give {daily} liters.", f"{a} sells {sold} liters.", f"That brings {money:$}."],
        money)


@family
def animal_feed(d: Draw) -> Story:
    a = d.person()
    x, y = d.pick_two(words.FEED_ANIMALS)
    n, p, m, q, days = d.int(2, 12), d.int(3, 15), d.int(2, 12), d.int(2, 9), d.int(3, 10)
    first, second = calc(n, "*", p), calc(m, "*", q)
    daily = calc(first, "+", second)
    total = calc(daily, "*", days)
    return Story(
        d.tell(
            (f"{a} feeds {n} {x} and {m} {y}.", f"On {a}'s farm there are {n} {x} and {m} {y}."),
            (f"Each of the {x} eats {p} pounds a day and each of the {y} eats {q} pounds a day.",
             f"Every day the {x} get {p} pounds each and the {y} get {q} pounds each."),
            (f"How many pounds of feed are needed for {days} days?",
             f"How much food do they eat in {days} days, in pounds?")),
        [f"The {x} eat {first} pounds a day.", f"The {y} eat {second} pounds a day.",
         f"Together they eat {daily} pounds a day.", f"In {days} days it is {total} pounds."],
        total)


@family
def flower_bed(d: Draw) -> Story:
    a = d.person()
    x, y = d.pick_two(words.FLOWERS)
    rows, per_row, k = d.int(3, 15), d.int(4, 20), d.number_from((2, 3, 4, 5))
    d.require(rows * per_row % k == 0)
    more = d.int(5, 40)
    total = calc(rows, "*", per_row)
    first = calc(total, "/", k)
    rest = calc(total, "-", first)
    after = calc(rest, "+", more)
    return Story(
        d.tell(
            (f"{a} plants {rows} rows of flowers with {per_row} in each row.",
             f"{a}'s garden has {rows} rows, with {per_row} flowers a row."),
            (f"{words.FRACTIONS[k].capitalize()} of them are {x} and the rest are {y}.",
             f"Of these, {words.FRACTIONS[k]} are {x}, and the others are {y}."),
            (f"Later {a.they} adds {more} more {y}.", f"In spring {a.they} plants {more} {y} more."),
            (f"How many {y} are there now?", f"How many {y} does the garden have in the end?")),
        [f"There are {total} flowers.", f"The {x} are {first}.", f"The {y} are {rest}.",
         f"Now there are {after} {y}."],
        after)


@family
def growing_fish(d: Draw) -> Story:
    a = d.person()
    x, y = d.pick_two(words.FISH)
    n, k, m, gone = d.int(5, 40), d.number_from((2, 3, 4)), d.int(4, 50), d.int(2, 15)
    grown = calc(n, "*", k)
    both = calc(grown, "+", m)
    left = calc(both, "-", gone)
    return Story(
        d.tell(
            (f"{a} puts {n} {x} and {m} {y} into an aquarium.", f"An aquarium has {n} {x} and {m} {y}."),
            (f"After a year there are {words.MULTIPLES[k]} as many {x}, and as many {y} as before.",
             f"A year later the {x} are {words.MULTIPLES[k]} as many. The number of {y} is the same."),
            (f"{a} gives {gone} fish to a neighbor.", f"Then {a.they} sells {gone} fish."),
            ("How many fish are left?", f"How many fish does {a} have now?")),
        [f"There are {grown} {x}.", f"With the {y} there are {both} fish.", f"Then {left} fish are left."],
        left)

"""Recipes, cooking and meals."""

from decimal import Decimal

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, capitalized, cost, people, person, several, shuffled, tell

BAKED = nouns(words.BAKED_GOODS)
FRUIT = nouns(words.FRUITS)
MEALS = nouns(words.MEALS)


@family
def baked_in_batches(d: Draw) -> Story:
    a, x, n, m = person(d), d.pick(BAKED), d.int(2, 15), d.int(4, 48)
    total = calc(n, "*", m)
    return Story(
        tell(d, (
            f"{a} bakes {n} batches of {m} {x}. How many {x} is that?",
            f"A batch makes {m} {x}. How many {x} does {a} get from {d.number_words(n)} batches?",
            f"There are {m} {x} on each tray, and {a} fills {n} trays. How many {x} are there in all?",
            f"How many {x} are on {n} trays with {m} on each?",
            f"{n} trays, {m} {x} per tray. How many {x}?")),
        [f"There are {total} {x}."],
        total)


@family
def eaten_from_plate(d: Draw) -> Story:
    (a, b), x, n, m, k = people(d, 2), d.pick(BAKED + FRUIT), d.int(8, 80), d.int(2, 30), d.int(2, 30)
    left = calc(n, "-", m, "-", k)
    several(d, left)
    return Story(
        tell(d, (
            f"There are {n} {x} on a plate. {a} eats {m} and {b} eats {k}. How many are left?",
            f"{a} took {m} {x} and {b} took {k} from a bowl with {n}. How many {x} remain in the bowl?",
            f"Out of {n} {x}, {m} go to {a} and {k} to {b}. How many {x} are still there?",
            f"How many of {n} {x} are left after {a} has eaten {m} of them and {b} another {k}?")),
        [f"There are {left} {x} left."],
        left)


@family
def ingredient_ratio(d: Draw) -> Story:
    a, (x, y), p, q, k = person(d), d.pick_two(words.INGREDIENTS), d.int(2, 9), d.int(2, 9), d.int(2, 12)
    d.require(p != q)
    unit = d.pick(("cups", "spoons", "grams", "ounces"))
    have = p * k
    times = calc(have, "/", p)
    need = calc(q, "*", times)
    return Story(
        tell(d,
             (f"A recipe needs {p} {unit} of {x} for every {q} {unit} of {y}.",
              f"For {p} {unit} of {x}, {a} always takes {q} {unit} of {y}.",
              f"{x} and {y} are mixed in the ratio {p} to {q}."),
             (f"How many {unit} of {y} go with {have} {unit} of {x}?",
              f"If {a} uses {have} {unit} of {x}, how many {unit} of {y} are needed?",
              f"{a} has taken {have} {unit} of {x}. How many {unit} of {y} does {a.they} need?")),
        [f"The amount is {times} times as large.", f"So {need} {unit} of {y} are needed."],
        need)


@family
def mixture_total_ratio(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(words.INGREDIENTS)
    p, q, k = d.int(1, 9), d.int(1, 9), d.int(2, 15)
    d.require(p != q)
    parts = calc(p, "+", q)
    total = parts.value * k
    one = calc(total, "/", parts)
    answer = calc(one, "*", q)
    return Story(
        tell(d, (
            f"{a} mixes {x} and {y} in the ratio {p}:{q}. The mix has {total} ounces. How many ounces of {y} does it "
            "contain?",
            f"A mix of {total} ounces is made of {x} and {y} in the ratio {p} to {q}. How many ounces of {y} are in it?",
            f"How many ounces of {y} are in {total} ounces of a mix that has {x} and {y} in the ratio {p}:{q}?")),
        [f"There are {parts} parts.", f"One part is {one} ounces.", f"So it contains {answer} ounces of {y}."],
        answer)


@family
def recipe_for_more_people(d: Draw) -> Story:
    a, dish, x = adult(d), d.pick(words.DISHES), d.pick(words.INGREDIENTS)
    serves, grams, guests = d.int(2, 8), d.int(20, 90, 5), d.int(6, 40)
    d.require(guests != serves)
    amount = serves * grams
    each = calc(amount, "/", serves)
    total = calc(each, "*", guests)
    return Story(
        tell(d, (
            f"To make {dish} for {serves} people, {a} uses {amount} grams of {x}. How many grams are needed for "
            f"{guests} people?",
            f"A recipe for {dish} serves {serves} and takes {amount} grams of {x}. {a} cooks for {guests}. "
            f"How many grams of {x} does {a.they} use?",
            f"How many grams of {x} does {a} need for {guests} servings of {dish}, when {serves} servings take "
            f"{amount} grams?",
            f"{amount} grams of {x} are enough for {serves} servings of {dish}. {a} wants {guests} servings. How "
            "many grams must there be?")),
        [f"One serving takes {each} grams.", f"{guests} servings take {total} grams."],
        total)


@family
def doubled_recipe(d: Draw) -> Story:
    a, dish, (x, y) = person(d), d.pick(words.DISHES), d.pick_two(words.INGREDIENTS)
    p, q, k = d.int(2, 9), d.int(2, 9), d.number_from((2, 3, 4))
    verb = {2: "doubles", 3: "triples", 4: "quadruples"}[k]
    first, second = calc(p, "*", k), calc(q, "*", k)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             (f"The recipe for {dish} asks for {p} cups of {x} and {q} cups of {y}.",
              f"For {dish}, {a} needs {p} cups of {x} and {q} cups of {y}.",
              f"{p} cups of {x} and {q} cups of {y} go into {dish}."),
             (f"{a} {verb} the recipe.", f"{a} {verb} everything.", f"To feed more people, {a} {verb} all of it."),
             d.maybe((f"It takes {d.int(20, 90)} minutes in the oven.", f"{d.int(3, 12)} people will eat it.")),
             (f"How many cups of {x} and {y} are used in total?", "How many cups is that altogether?",
              f"What is the total number of cups of {x} and {y}?")),
        [f"{a} uses {first} cups of {x}.", f"{a} uses {second} cups of {y}.", f"In total it is {total} cups."],
        total)


@family
def fruit_in_pies(d: Draw) -> Story:
    a, x, y = person(d), d.pick(FRUIT), d.pick(("pies", "cakes", "jars of jam", "bowls of salad"))
    per, count, left = d.int(3, 12), d.int(2, 15), d.int(2, 11)
    d.require(left < per)
    have = per * count + left
    used = calc(have, "-", left)
    answer = calc(used, "/", per)
    return Story(
        tell(d,
             (f"{a} picked {have} {x}.", f"There are {have} {x} in {a}'s kitchen.", f"{a} starts with {have} {x}."),
             (f"{a.They} makes {y}, each of which takes {per} {x}, and {left} {x} remain.",
              f"After making {y} with {per} {x} each, {a.they} has {left} {x}.",
              f"Every one of the {y} needs {per} {x}. In the end {left} {x} are left."),
             d.maybe((f"That takes {d.int(30, 120)} minutes.", f"{a} has {d.int(2, 9)} helpers.")),
             (f"How many {y} does {a} make?", f"How many {y} are there?", f"What number of {y} did {a} make?")),
        [f"{a} uses {used} {x}.", f"That makes {answer} {y}."],
        answer)


@family
def pitchers_and_glasses(d: Draw) -> Story:
    a, drink = person(d), d.pick(words.DRINKS)
    pitchers, glasses, guests, each = d.int(2, 12), d.int(4, 15), d.int(3, 25), d.int(2, 4)
    have, drunk = calc(pitchers, "*", glasses), calc(guests, "*", each)
    left = calc(have, "-", drunk)
    several(d, left)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} makes {pitchers} pitchers of {drink}, and a pitcher fills {glasses} glasses.",
                       f"A pitcher of {drink} holds {glasses} glasses, and {a} has {pitchers} pitchers.",
                       f"There are {pitchers} pitchers of {drink} with {glasses} glasses in each."),
                      (f"{guests} guests drink {each} glasses each.",
                       f"Each of the {guests} guests has {each} glasses.",
                       f"Every one of {guests} people drinks {d.number_words(each)} glasses."),
                      stray=(f"{d.int(2, 9)} of the guests are children.", f"The party starts at {d.int(2, 8)} pm.")),
             (f"How many glasses of {drink} are left?", f"How many glasses of {drink} remain?",
              f"How many glasses of {drink} can still be poured?")),
        [f"There are {have} glasses.", f"The guests drink {drunk} glasses.", f"So {left} glasses are left."],
        left)


@family
def pizza_slices_shared(d: Draw) -> Story:
    a, n, slices = person(d), d.int(2, 12), d.number_from((6, 8, 10, 12))
    friends = d.int(2, 12)
    total = calc(n, "*", slices)
    eaters = calc(friends, "+", 1)
    each = calc(total, "/", eaters)
    several(d, each)
    return Story(
        tell(d, (
            f"{a} and {friends} friends share {n} pizzas equally. Each pizza has {slices} slices. How many slices "
            "does each of them get?",
            f"{n} pizzas are cut into {slices} slices each. {a} eats with {d.number_words(friends)} friends, and all "
            "get the same. "
            f"How many slices does {a} get?",
            f"{a} has {friends} friends over and orders {n} pizzas of {slices} slices. If everybody, with {a}, gets "
            "the same number, "
            "how many slices is that for each?")),
        [f"There are {total} slices.", f"There are {eaters} people.", f"Each gets {each} slices."],
        each)


@family
def cake_fraction_left(d: Draw) -> Story:
    (a, b), x, k, m = people(d, 2), d.pick(BAKED), d.number_from((2, 3, 4, 5)), d.number_from((2, 3, 4))
    n = d.int(1, 12) * k * m
    first = calc(n, "/", k)
    rest = calc(n, "-", first)
    second = calc(rest, "/", m)
    left = calc(rest, "-", second)
    several(d, first, second, left)
    return Story(
        tell(d,
             (f"{a} bakes {n} {x}.", f"There are {n} {x} on the table.", f"A basket holds {n} {x}."),
             (f"{a} eats {words.PARTS[k]} of them and {b} eats {words.PARTS[m]} of the rest.",
              f"First {a} takes {words.PARTS[k]} of them. Then {b} takes {words.PARTS[m]} of what is left.",
              f"{words.PARTS[k]} of them go to {a}, and {b} gets {words.PARTS[m]} of the remaining {x}."),
             (f"How many {x} are left?", f"How many {x} are there in the end?", "How many remain after that?")),
        [f"{a} gets {first} {x}.", f"Then {rest} {x} remain.", f"{b} gets {second} {x}.", f"So {left} {x} are left."],
        left)


@family
def cooking_minutes(d: Draw) -> Story:
    a = person(d)
    (x,
        y) = d.pick_two(["the soup", "the rice", "the fish", "the cake", "the potatoes", "the sauce", "the bread",
                         "the roast"])
    n, k, prep = d.int(5, 40), d.number_from((2, 3)), d.int(5, 40, 5)
    second = calc(n, "*", k)
    total = calc(prep, "+", n, "+", second)
    v = "takes" if not x.endswith("potatoes") else "take"
    w = "takes" if not y.endswith("potatoes") else "take"
    return Story(
        tell(d,
             (f"{a} needs {prep} minutes to prepare a meal.", f"Preparing a meal takes {a} {prep} minutes.",
              f"First {a} chops and washes for {prep} minutes."),
             (f"Then {x} {v} {n} minutes and {y} {w} {words.TIMES[k]} as long.",
              f"{x} {v} {n} minutes. {capitalized(y)} {w} {words.TIMES[k]} as long as {x}.",
              f"After that, {y} {w} {words.TIMES[k]} as long as {x}, which {v} {n} minutes."),
             ("One thing is done after the other. How many minutes does everything take?",
              "How many minutes is that in all if nothing is cooked at the same time?",
              f"If {a} does one after the other, how many minutes are needed altogether?")),
        [f"{capitalized(y)} {w} {second} minutes.", f"Everything takes {total} minutes."],
        total)


@family
def eggs_per_cake(d: Draw) -> Story:
    a, eggs, cakes, broken = person(d), d.int(2, 6), d.int(2, 15), d.int(2, 10)
    need = calc(eggs, "*", cakes)
    total = calc(need, "+", broken)
    cartons = d.pick((True, False))
    boxes = calc(total, "/", 12) if cartons else total
    if cartons:
        several(d, boxes)
    return Story(
        tell(d,
             (f"A cake needs {eggs} eggs. {a} bakes {cakes} cakes and drops {broken} eggs on the floor.",
              f"{a} bakes {cakes} cakes with {eggs} eggs each. {broken} more eggs are broken.",
              f"For each of {cakes} cakes {a} takes {eggs} eggs, and {broken} eggs fall down."),
             ("There are 12 eggs in a carton. How many full cartons are used up?",
              "How many cartons of a dozen eggs is that?",
              "If a carton holds 12 eggs, how many cartons are gone?") if cartons else
             ("How many eggs are gone in all?", "How many eggs is that altogether?",
              f"How many eggs did {a} use or lose?")),
        [f"The cakes need {need} eggs.",
         f"In all it is {total} eggs."] + ([f"That is {boxes} cartons."] if cartons else []),
        boxes)


@family
def calories_counted(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(MEALS)
    n, p, m, q, limit = d.int(2, 5), d.int(50, 400, 10), d.int(2, 5), d.int(50, 400, 10), d.int(1200, 3000, 100)
    first, second = calc(n, "*", p), calc(m, "*", q)
    eaten = calc(first, "+", second)
    left = calc(limit, "-", eaten)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} wants to eat at most {limit} calories a day.", f"{a}'s limit for a day is {limit} calories.",
              f"A day's food for {a} may have {limit} calories."),
             (f"Today {a.they} had {n} {x} of {p} calories each and {m} {y} of {q} calories each.",
              f"One {x.one} has {p} calories and one {y.one} has {q}. {a} has eaten {n} {x} and {m} {y}.",
              f"So far it was {n} {x} with {p} calories each, and {m} {y} with {q} calories each."),
             (f"How many more calories can {a} have?", "How many calories are left for the day?",
              "How many calories remain?")),
        [f"The {x} have {first} calories.", f"The {y} have {second} calories.", f"Together it is {eaten} calories.",
         f"So {left} calories are left."],
        left)


@family
def menu_for_table(d: Draw) -> Story:
    a, (x, y) = adult(d), d.pick_two(MEALS)
    n, p, m, q, k = d.int(2, 6), cost(d, 4, 20), d.int(2, 6), cost(d, 3, 15), d.int(2, 9)
    first, second = calc(n, "*", p), calc(m, "*", q)
    bill = calc(first, "+", second)
    total = calc(bill, "+", k)
    return Story(
        tell(d,
             shuffled(d,
                      (f"In this restaurant {x.a} costs ${p}.", f"The menu says ${p} for {x.a}.",
                       f"The price of {x.a} is ${p}."),
                      (f"A guest pays ${q} for {y.a}.", f"{y.a} is ${q}.", f"For {y.a} the menu says ${q}."),
                      stray=(f"The restaurant has {d.int(10, 40)} tables.",)),
             (f"{a} orders {n} {x} and {m} {y} for the family and leaves a tip of ${k}.",
              f"At {a}'s table they have {n} {x} and {m} {y}. {a} adds a ${k} tip.",
              f"{a} pays for {n} {x} and {m} {y} and gives ${k} as a tip."),
             (f"How much does {a} pay?", "How many dollars is that with the tip?", "What is the total?")),
        [f"The {x} cost {first:$}.", f"The {y} cost {second:$}.", f"The bill is {bill:$}.",
         f"With the tip it is {total:$}."],
        total)


@family
def water_evaporates(d: Draw) -> Story:
    a, start, gone, k, cup = person(d), d.int(8, 60), d.int(2, 30), d.number_from((2, 3, 4)), d.int(2, 20)
    rest = calc(start, "-", gone)
    several(d, rest)
    more = calc(rest, "*", k)
    total = calc(more, "+", cup)
    return Story(
        tell(d,
             (f"{a} puts {start} cups of water into a pot, and {gone} cups boil away.",
              f"A pot has {start} cups of water. While it boils, {gone} cups are lost.",
              f"From {start} cups of water in {a}'s pot, {gone} turn to steam."),
             (f"Then {a} makes the water {words.TIMES[k]} as much and adds {cup} cups of broth.",
              f"{a} pours in water until there is {words.TIMES[k]} as much as was left. Then {cup} cups of broth are "
              "added.",
              f"After that, {a} brings the water to {words.TIMES[k]} that amount, and {cup} cups of broth come in."),
             ("How many cups are in the pot now?", "How many cups of liquid is that?",
              "How much liquid does the pot hold then, in cups?")),
        [f"Then {rest} cups are left.", f"The water becomes {more} cups.", f"With the broth it is {total} cups."],
        total)


@family
def cups_in_gallons(d: Draw) -> Story:
    a, drink, gallons, size = person(d), d.pick(words.DRINKS), d.int(1, 8), d.number_from((4, 8, 16))
    guests = d.int(3, 40)
    ounces = calc(gallons, "*", 128)
    cups = calc(ounces, "/", size)
    left = calc(cups, "-", guests)
    several(d, left)
    g = "1 gallon" if gallons == 1 else f"{gallons} gallons"
    return Story(
        tell(d,
             (f"{a} makes {g} of {drink}. A gallon has 128 ounces.",
              f"A gallon is 128 ounces. There is {g} of {drink}." if gallons == 1 else
              f"A gallon is 128 ounces. There are {g} of {drink}.",
              f"{a} has {g} of {drink}, and each gallon has 128 ounces."),
             (f"It is poured into cups of {size} ounces, and {guests} people take a cup.",
              f"{a} fills cups of {size} ounces. {guests} cups are taken.",
              f"Each cup holds {size} ounces. {guests} guests get one cup each."),
             ("How many cups are left?", "How many full cups remain?", "How many more cups are there?")),
        [f"There are {ounces} ounces.", f"They fill {cups} cups.", f"So {left} cups are left."],
        left)


@family
def harvest_to_jars(d: Draw) -> Story:
    a, x, days = adult(d), d.pick(("berries", "cherries", "plums", "peaches", "tomatoes", "beans", "figs")), d.int(2, 9)
    daily, per, price = d.int(3, 20), d.int(2, 6), cost(d, 2, 9)
    pounds = calc(daily, "*", days)
    jars = calc(pounds, "/", per)
    several(d, jars)
    money = calc(jars, "*", price)
    return Story(
        tell(d,
             (f"For {days} days {a} picks {daily} pounds of {x} a day.",
              f"{a} picks {daily} pounds of {x} on each of {days} days.",
              f"Each day {a} brings home {daily} pounds of {x}, and that for {d.number_words(days)} days."),
             (f"A jar takes {per} pounds and is sold for ${price}.",
              f"{per} pounds fill one jar, which sells for ${price}.",
              f"{a} fills jars with {per} pounds each and sells them at ${price} apiece."),
             d.maybe((f"The garden has {d.int(4, 40)} trees.", f"{a} works {d.int(3, 9)} hours each day.")),
             ("How much money do all the jars bring?", f"How much does {a} get for all of them?",
              "How many dollars is that when all jars are sold?")),
        [f"There are {pounds} pounds.", f"They fill {jars} jars.", f"The jars bring {money:$}."],
        money)


@family
def lunch_over_weeks(d: Draw) -> Story:
    a, x, p, days, weeks, q = adult(d), d.pick(MEALS), d.int(5, 15), d.int(2, 5), d.int(2, 10), d.int(2, 4)
    saved = calc(p, "-", q)
    several(d, saved)
    weekly = calc(saved, "*", days)
    total = calc(weekly, "*", weeks)
    return Story(
        tell(d,
             (f"On {days} days a week {a} buys {x.a} for ${p}.",
              f"{a} eats {x.a} for ${p} on {d.number_words(days)} days of the week.",
              f"{x.a} costs {a} ${p} on each of {days} days a week."),
             (f"Bringing lunch from home would cost only ${q} a day.", f"A lunch from home costs ${q}.",
              f"{a.They} could bring food from home for ${q} a day."),
             (f"How much would {a} save in {weeks} weeks by bringing lunch?",
              f"How many dollars would that save over {weeks} weeks?",
              f"How much less would {a} spend in {d.number_words(weeks)} weeks with lunch from home?")),
        [f"A day saves {saved:$}.", f"A week saves {weekly:$}.", f"In {weeks} weeks it is {total:$}."],
        total)


@family
def half_pounds_of_meat(d: Draw) -> Story:
    a, x = adult(d), d.pick(("beef", "chicken", "fish", "turkey", "tofu"))
    part, guests = d.number_from((Decimal("0.25"), Decimal("0.5"), Decimal("0.75"))), d.int(4, 40, 2)
    price = d.int(3, 14)
    pounds = calc(guests, "*", part)
    d.require(pounds.value > 1)
    money = calc(pounds, "*", price)
    words_of = {"0.25": "a quarter of a pound", "0.5": "half a pound", "0.75": "three quarters of a pound"}[str(part)]
    return Story(
        tell(d,
             (f"{a} plans {words_of} of {x} for each of {guests} guests.",
              f"Each of {guests} guests gets {words_of} of {x} from {a}.",
              f"{a} has {guests} guests and cooks {words_of} of {x} per person."),
             (f"A pound costs ${price}.", f"One pound of {x} is ${price}.", f"The price is ${price} a pound."),
             (f"How much does the {x} cost?", f"How many dollars does {a} pay for the {x}?",
              f"What is the price of all the {x}?")),
        [f"That is {pounds} pounds.", f"They cost {money:$}."],
        money)

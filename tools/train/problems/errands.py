"""Shopping lists: what is bought, how much of it, and what it costs together."""

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, cost, people, person, several, shuffled, tell

FOOD = nouns(words.GROCERIES)
GOODS = nouns(words.SMALL_GOODS)
CLOTHES = nouns(words.CLOTHING)


@family
def bought_more(d: Draw) -> Story:
    a, x, n, m = person(d), d.pick(FOOD + GOODS), d.int(2, 90), d.int(2, 90)
    total = calc(n, "+", m)
    return Story(
        tell(d, (
            f"{a} has {n} {x} and buys {m} more. How many {x} does {a} have now?",
            f"{a} has {d.number_words(n)} {x} and buys {d.number_words(m)}. How many?",
            f"At home {a} has {n} {x}. {a.They} comes back from {d.pick(words.STORES)} with {m} more. How many are "
            "there now?",
            f"How many {x} does {a} have after buying {m} {x}, if {a.they} had {n} before?",
            f"{a} buys {n} {x} on {d.pick(words.WEEK[:3])} and {m} on {d.pick(words.WEEK[3:])}. How many {x} is that?")),
        [f"{a} has {total} {x}."],
        total)


@family
def used_some(d: Draw) -> Story:
    a, x, n, m = person(d), d.pick(FOOD + GOODS), d.int(4, 150), d.int(2, 120)
    left = calc(n, "-", m)
    several(d, left)
    return Story(
        tell(d, (
            f"{a} buys {n} {x} and uses {m}. How many are left?",
            f"Of the {n} {x} that {a} bought, {a.they} has used {m}. How many {x} remain?",
            f"{a} had {n} {x}. {m} are gone. How many does {a} still have?",
            f"How many {x} are left if {a} bought {n} and gave away {m}?",
            f"There were {n} {x} in {a}'s kitchen, but {a.they} has taken {m} of them to a friend. How many are "
            "still there?")),
        [f"There are {left} {x} left."],
        left)


@family
def shopping_for_two(d: Draw) -> Story:
    (a, b), x, n, more = people(d, 2), d.pick(FOOD + GOODS), d.int(2, 60), d.int(2, 40)
    other = calc(n, "+", more)
    total = calc(n, "+", other)
    return Story(
        tell(d,
             (f"{a} buys {n} {x}, and {b} buys {more} more than {a}.",
              f"{b} buys {more} more {x} than {a}, who buys {n}.",
              f"{a} put {n} {x} into the cart. {b} put in {more} more {x} than {a}."),
             ("How many do they buy together?", f"How many {x} is that in total?",
              f"How many {x} do {a} and {b} have altogether?")),
        [f"{b} buys {other} {x}.", f"Together it is {total} {x}."],
        total)


@family
def fewer_and_times(d: Draw) -> Story:
    (a, b, c), x = people(d, 3), d.pick(FOOD + GOODS)
    n, fewer, k = d.int(8, 70), d.int(2, 40), d.int(2, 5)
    second = calc(n, "-", fewer)
    several(d, second)
    third = calc(k, "*", second)
    total = calc(n, "+", second, "+", third)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} bought {n} {x}.", f"The bag of {a} holds {n} {x}.", f"{n} {x} are in {a}'s cart."),
                      (f"{b} got {fewer} fewer {x} than {a}.",
                       f"The number of {x} of {b} is {fewer} less than that of {a}.",
                       f"{a} has {fewer} {x} more than {b}."),
                      (f"{c} bought {words.TIMES[k]} as many {x} as {b}.",
                       f"The bag of {c} holds {words.TIMES[k]} as many {x} as that of {b}.",
                       f"{c} has {words.TIMES[k]} the number of {b}'s {x}.")),
             ("How many do all three have?", f"How many {x} are there altogether?", "What is the total number?")),
        [f"{b} has {second} {x}.", f"{c} has {third} {x}.", f"Altogether there are {total} {x}."],
        total)


@family
def price_by_weight(d: Draw) -> Story:
    a, x, unit = person(d), d.pick(words.BY_WEIGHT), d.pick(("pound", "kilogram"))
    n, p = d.int(2, 20), cost(d, 2, 25)
    total = calc(n, "*", p)
    return Story(
        tell(d, (
            f"{x} cost ${p} per {unit}. How much do {n} {unit}s cost?" if x.endswith("s") else
            f"{x} costs ${p} per {unit}. How much do {n} {unit}s cost?",
            f"{a} buys {n} {unit}s of {x} at ${p} a {unit}. What does {a} pay?",
            f"How much must {a} pay for {n} {unit}s of {x} if one {unit} is ${p}?",
            f"A {unit} of {x} is sold for ${p}. {a} needs {n} {unit}s. How many dollars is that?")),
        [f"The {n} {unit}s cost {total:$}."],
        total)


@family
def two_weights(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(words.BY_WEIGHT)
    n, p, m, q, money = d.int(2, 9), cost(d, 2, 12), d.int(2, 9), cost(d, 2, 12), d.number_from((50, 60, 80, 100, 150))
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    left = calc(money, "-", total)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} goes to {d.pick(words.STORES[:4])} with ${money}.", f"{a} has ${money} for the shopping.",
              f"In {a}'s purse there is ${money}."),
             (f"{a.They} buys {n} pounds of {x} at ${p} a pound and {m} pounds of {y} at ${q} a pound.",
              f"A pound of {x} costs ${p} and a pound of {y} costs ${q}. {a} buys {n} pounds of {x} and {m} pounds "
              f"of {y}.",
              f"{n} pounds of {x} for ${p} each and {m} pounds of {y} for ${q} each go into the basket."),
             ("How much money is left?", f"How much does {a} bring home?", f"What does {a} have left after paying?")),
        [f"The {x} cost {first:$}." if x.endswith("s") else f"The {x} costs {first:$}.",
         f"The {y} cost {second:$}." if y.endswith("s") else f"The {y} costs {second:$}.",
         f"Together it is {total:$}.", f"So {left:$} is left."],
        left)


@family
def three_goods_from_list(d: Draw) -> Story:
    a, (x, y) = adult(d), d.pick_two(FOOD)
    z = d.pick(GOODS)
    n, p, m, q, r = d.int(2, 9), cost(d, 1, 9), d.int(2, 9), cost(d, 1, 9), cost(d, 3, 30)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second, "+", r)
    return Story(
        tell(d,
             (f"{a} writes a shopping list: {n} {x}, {m} {y} and {z.a}.",
              f"On {a}'s list are {n} {x}, {m} {y} and {z.a}.",
              f"{a} needs {d.number_words(n)} {x}, {d.number_words(m)} {y} and {z.a}."),
             shuffled(d,
                      (f"One {x.one} costs ${p}.", f"The {x} are ${p} each.", f"The price of {x.a} is ${p}."),
                      (f"One {y.one} costs ${q}.", f"The {y} are ${q} each.", f"For {y.a} the shop asks ${q}."),
                      (f"The {z.one} costs ${r}.", f"For the {z.one}, {a} pays ${r}.",
                       f"The price of the {z.one} is ${r}."),
                      stray=(f"The shop is {d.int(2, 15)} miles away.", f"There are {d.int(3, 12)} people in line.")),
             (f"How much does {a} spend?", "What does everything cost?", "How many dollars is that in all?")),
        [f"The {x} cost {first:$}.", f"The {y} cost {second:$}.", f"Everything costs {total:$}."],
        total)


@family
def money_short(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(CLOTHES)
    p, q, have = cost(d, 10, 90), cost(d, 10, 90), d.int(5, 120)
    total = calc(p, "+", q)
    missing = calc(total, "-", have)
    several(d, missing)
    return Story(
        tell(d, (
            f"{a} wants {x.a} for ${p} and {y.a} for ${q}, but has only ${have}. How much more money does {a} need?",
            f"{x.a} costs ${p} and {y.a} costs ${q}. {a} has ${have}. How many dollars are missing to buy both?",
            f"With ${have}, {a} goes to buy {x.a} (${p}) and {y.a} (${q}). How much is {a} short?",
            f"How much more must {a} save to buy {x.a} at ${p} and {y.a} at ${q} if {a.they} already has ${have}?")),
        [f"Both cost {total:$}.", f"So {missing:$} is missing."],
        missing)


@family
def packs_with_leftover(d: Draw) -> Story:
    a, x = adult(d), d.pick(GOODS)
    size, guests, each = d.int(4, 24), d.int(5, 40), d.int(2, 6)
    need = calc(guests, "*", each)
    packs = -(-need.value // size)
    bought = calc(packs, "*", size)
    over = calc(bought, "-", need)
    several(d, over, packs)
    return Story(
        tell(d,
             (f"{x} are sold in packs of {size}.", f"A pack holds {size} {x}.",
              f"The shop sells {x} only in packs of {size}."),
             (f"{a} needs {each} for each of {guests} guests and buys {packs} packs.",
              f"{a} buys {packs} packs for {guests} guests, who get {each} {x} each.",
              f"There are {guests} guests, and each of them gets {each}. {a} has bought {packs} packs."),
             (f"How many {x} are left over?", f"How many {x} does {a} keep?", f"How many {x} will not be used?")),
        [f"The guests need {need} {x}.", f"The packs hold {bought} {x}.", f"So {over} {x} are left over."],
        over)


@family
def packs_cost(d: Draw) -> Story:
    a, x = adult(d), d.pick(GOODS + FOOD)
    size, packs, p = d.int(3, 24), d.int(2, 12), cost(d, 2, 20)
    need = size * packs
    number = calc(need, "/", size)
    total = calc(number, "*", p)
    return Story(
        tell(d,
             (f"{a} needs {need} {x}.", f"For a party {a} has to buy {need} {x}.", f"{need} {x} are on {a}'s list."),
             (f"They come in packs of {size} that cost ${p}.", f"A pack of {size} costs ${p}.",
              f"The shop sells them by the pack: {size} for ${p}."),
             (f"How much does {a} pay?", "What will it cost?", f"How many dollars does {a} spend on them?")),
        [f"That is {number} packs.", f"They cost {total:$}."],
        total)


@family
def dozens_bought(d: Draw) -> Story:
    a, x = adult(d), d.pick(nouns("egg, roll, bagel, donut, lemon, orange, muffin, rose, candle, pencil"))
    n, p, used = d.int(2, 15), d.int(2, 9), d.int(3, 40)
    total = calc(n, "*", 12)
    left = calc(total, "-", used)
    price = calc(n, "*", p)
    ask = d.pick((True, False))
    several(d, left)
    return Story(
        tell(d,
             (f"{a} buys {n} dozen {x} at ${p} a dozen and uses {used} of them.",
              f"A dozen {x} costs ${p}. {a} buys {d.number_words(n)} dozen and then uses {used} {x}.",
              f"From {n} dozen {x}, which cost ${p} per dozen, {a} takes {used} for a party."),
             (f"How many {x} are left?", f"How many {x} does {a} still have?",
              f"What number of {x} remains?") if ask else
             (f"How much did {a} pay?", f"What did all the {x} cost?", f"How many dollars did {a} spend on the {x}?")),
        [f"There are {total} {x}.", f"So {left} {x} are left."] if ask else [f"The price is {price:$}."],
        left if ask else price)


@family
def bags_carried_home(d: Draw) -> Story:
    (a, b), (x, y) = people(d, 2), d.pick_two(FOOD)
    n, per, m, also = d.int(2, 8), d.int(2, 12), d.int(2, 8), d.int(2, 12)
    first, second = calc(n, "*", per), calc(m, "*", also)
    more = calc(first, "-", second)
    several(d, more)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} carries {n} bags with {per} {x} in each.",
                       f"In each of {a}'s {n} bags there are {per} {x}.",
                       f"{a} puts {x} into {n} bags, {per} to a bag."),
                      (f"{b} carries {m} bags with {also} {y} in each.", f"{b} has {m} bags that hold {also} {y} each.",
                       f"Every one of {b}'s {m} bags contains {also} {y}."),
                      stray=(f"Each of them walks {d.int(2, 9)} blocks.",)),
             (f"How many more {x} than {y} do they bring home?", f"By how many are the {x} more than the {y}?",
              f"What is the difference between the numbers of {x} and {y}?")),
        [f"There are {first} {x}.", f"There are {second} {y}.", f"There are {more} more {x}."],
        more)


@family
def same_number_of_each(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(FOOD + GOODS)
    n, p, q = d.int(2, 20), d.int(1, 9), d.int(2, 12)
    d.require(p != q)
    pair = calc(p, "+", q)
    money = n * pair.value
    count = calc(money, "/", pair)
    return Story(
        tell(d, (
            f"{x.a} costs ${p} and {y.a} costs ${q}. {a} buys as many {x} as {y} and pays ${money}. How many {x} "
            f"does {a} get?",
            f"{a} spends ${money} on an equal number of {x} and {y}. The {x} cost ${p} each and the {y} ${q} each. "
            f"How many {x} are there?",
            f"For ${money}, {a} gets the same number of {x} at ${p} and of {y} at ${q}. How many {x} is that?")),
        [f"One of each costs {pair:$}.", f"So {a} gets {count} {x}."],
        count)


@family
def return_and_exchange(d: Draw) -> Story:
    a, (x, y) = adult(d), d.pick_two(CLOTHES)
    n, p, m, q = d.int(2, 6), d.int(8, 60), d.int(2, 6), d.int(8, 60)
    back, price = calc(n, "*", p), calc(m, "*", q)
    pay = calc(price, "-", back)
    several(d, pay)
    return Story(
        tell(d,
             (f"{a} returns {n} {x} that cost ${p} each and takes {m} {y} for ${q} each instead.",
              f"{a} exchanges {n} {x} (${p} each) for {m} {y} (${q} each).",
              f"At the shop {a} gives back {d.number_words(n)} {x}, which were ${p} apiece, and picks "
              f"{d.number_words(m)} {y} at ${q} apiece."),
             (f"How much does {a} have to pay on top?", "How much more must be paid?",
              f"After the exchange, how many dollars does {a} still owe the shop?")),
        [f"The {x} were worth {back:$}.", f"The {y} cost {price:$}.", f"So {a} pays another {pay:$}."],
        pay)


@family
def delivery_fee(d: Draw) -> Story:
    a, x = adult(d), d.pick(FOOD + GOODS)
    n, p, fee, free = d.int(2, 20), cost(d, 2, 15), cost(d, 2, 12), d.int(2, 8)
    goods = calc(n, "*", p)
    total = calc(goods, "+", fee)
    return Story(
        tell(d, (
            f"{a} orders {n} {x} online at ${p} each. The delivery costs ${fee}. How much is it in total?",
            f"An online shop charges ${fee} for delivery and ${p} for {x.a}. What does {a} pay for {n} {x}?",
            f"{n} {x} at ${p} apiece are delivered to {a} for a fee of ${fee}. What is the total cost?",
            f"How much does {a} pay for {n} {x} at ${p} each with a shipping cost of ${fee}? They arrive after "
            f"{free} days.")),
        [f"The {x} cost {goods:$}.", f"With delivery it is {total:$}."],
        total)


@family
def coupons_per_item(d: Draw) -> Story:
    a, x = adult(d), d.pick(FOOD)
    n, p, off, m = d.int(4, 20), d.int(3, 15), d.int(1, 6), d.int(2, 10)
    d.require(off < p and m < n)
    full, saved = calc(n, "*", p), calc(m, "*", off)
    total = calc(full, "-", saved)
    return Story(
        tell(d,
             (f"{a} buys {n} {x} at ${p} each.", f"{n} {x} are in {a}'s basket. Each one costs ${p}.",
              f"The price of {x.a} is ${p}, and {a} takes {n}."),
             (f"For {m} of them {a.they} has coupons that take off ${off} each.",
              f"{a} has {m} coupons, and each of them makes one {x.one} ${off} cheaper.",
              f"With {d.number_words(m)} coupons, {m} of the {x} are ${off} cheaper each."),
             (f"What does {a} pay?", "How much is the bill?", "How many dollars does that make?")),
        [f"Without coupons it is {full:$}.", f"The coupons save {saved:$}.", f"So the bill is {total:$}."],
        total)


@family
def stock_for_days(d: Draw) -> Story:
    a, x = adult(d), d.pick(FOOD)
    boxes, per, daily = d.int(2, 12), d.int(4, 24), d.int(2, 9)
    left = -(boxes * per) % daily
    first = calc(boxes, "*", per)
    have = calc(first, "+", left) if left else first
    days = calc(have, "/", daily)
    several(d, days)
    d.require(left != 1)
    return Story(
        tell(d,
             (f"{a} buys {boxes} boxes of {per} {x}" + (f" and has {left} at home." if left else "."),
              f"There are {per} {x} in a box. {a} buys {boxes} boxes" + (f" and still has {left} {x}." if left else "."),
              (f"With {left} {x} at home, " if left else "") + f"{a} gets {boxes} boxes that hold {per} {x} each."),
             (f"The family uses {daily} a day.", f"Every day {daily} of them are used.",
              f"{daily} {x} are used up each day."),
             ("For how many days are they enough?", f"How many days do the {x} last?",
              f"After how many days are all the {x} gone?")),
        [f"The boxes hold {first} {x}."] + ([f"With the others there are {have} {x}."] if left else [])
        + [f"They last {days} days."],
        days)


@family
def basket_weight(d: Draw) -> Story:
    a = adult(d)
    (x,
        y) = d.pick_two(nouns(
            "melon, pineapple, cabbage, bag of rice/bags of rice, can of paint/cans of paint, "
            "bag of flour/bags of flour, bottle of oil/bottles of oil, pumpkin"))
    n, p, m, q, basket = d.int(2, 9), d.int(2, 8), d.int(2, 9), d.int(2, 8), d.int(2, 9)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second, "+", basket)
    return Story(
        tell(d,
             (f"{a} puts {n} {x} and {m} {y} into a cart that weighs {basket} kilograms.",
              f"A cart of {basket} kg is loaded with {n} {x} and {m} {y}.",
              f"In a cart there are {m} {y} and {n} {x}. Empty, the cart weighs {basket} kg."),
             shuffled(d,
                      (f"One {x.one} weighs {p} kilograms.", f"The {x} weigh {p} kg each.",
                       f"The weight of {x.a} is {p} kg."),
                      (f"One {y.one} weighs {q} kilograms.", f"The {y} weigh {q} kg each.",
                       f"The weight of {y.a} is {q} kg.")),
             ("How much does the full cart weigh in kilograms?", "How many kilograms is that in total?",
              "What is the weight of the loaded cart in kilograms?")),
        [f"The {x} weigh {first} kilograms.", f"The {y} weigh {second} kilograms.", f"The total is {total} kilograms."],
        total)

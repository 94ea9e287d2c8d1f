"""Profit, sales and running a business."""

from decimal import Decimal

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, cost, grouped, people, several, shuffled, tell

PRODUCTS = nouns(words.PRODUCTS)
BAKED = nouns(words.BAKED_GOODS)
GOODS = nouns(words.LARGE_GOODS)
FRUIT = nouns(words.FRUITS)
STANDS = ["lemonade", "juice", "ice cream", "popcorn", "hot chocolate", "cookies", "flowers", "pretzels", "corn"]


@family
def profit_per_item(d: Draw) -> Story:
    a, x, n, p, q = adult(d), d.pick(PRODUCTS), d.int(3, 90), cost(d, 2, 30), cost(d, 5, 60)
    each = calc(q, "-", p)
    d.require(each.value > 1)
    total = calc(n, "*", each)
    return Story(
        tell(d, (
            f"{a} buys {x} for ${p} each and sells them for ${q} each. What is the profit on {n} {x}?",
            f"It costs {a} ${p} to make {x.a}, which sells for ${q}. How much profit do {n} {x} bring?",
            f"{a} makes {x.a} for ${p} and gets ${q} for it. How much does {a} gain with {n} of them?",
            f"How much profit does {a} make by selling {n} {x} at ${q} apiece if each costs {a.them} ${p}?")),
        [f"One brings {each:$} of profit.", f"The profit is {total:$}."],
        total)


@family
def revenue_minus_costs(d: Draw) -> Story:
    a, x, n, p, rent = adult(d), d.pick(PRODUCTS + BAKED), d.int(20, 300), cost(d, 2, 25), d.int(10, 300, 5)
    other = d.int(5, 200, 5)
    revenue = calc(n, "*", p)
    costs = calc(rent, "+", other)
    profit = calc(revenue, "-", costs)
    d.require(profit.value > 1)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} sells {n} {x} at ${p} each.", f"For ${p} apiece, {a} sold {n} {x}.",
                       f"{n} {x} were sold by {a} for ${p} each."),
                      (f"The rent for the stall is ${rent}.", f"{a} pays ${rent} for the stall.",
                       f"Renting a stall cost {a} ${rent}."),
                      (f"The materials cost ${other}.", f"{a} spent ${other} on materials.",
                       f"For materials {a} paid ${other}."),
                      stray=(f"{a} has done this for {d.int(2, 12)} years.",
                             f"The market is open for {d.int(4, 10)} hours.")),
             ("What is the profit?", f"How much profit does {a} make?", f"How many dollars does {a} gain?",
              "How much money remains as profit?")),
        [f"The sales bring {revenue:$}.", f"The costs are {costs:$}.", f"The profit is {profit:$}."],
        profit)


@family
def stand_for_days(d: Draw) -> Story:
    a, x, cups, p, days, start = adult(d), d.pick(STANDS), d.int(10, 60), d.int(1, 5), d.int(2, 14), d.int(10, 90)
    daily = calc(cups, "*", p)
    total = calc(daily, "*", days)
    profit = calc(total, "-", start)
    several(d, profit)
    unit = d.pick(("servings", "portions", "orders"))
    return Story(
        tell(d,
             (f"{a} opens a stand for {x} and spends ${start} to begin.",
              f"To set up a stand with {x}, {a} pays ${start}.",
              f"A stand that sells {x} costs {a} ${start} to set up."),
             (f"Each day {a} sells {cups} {unit} for ${p} each.", f"{a.They} sells {cups} {unit} a day at ${p} apiece.",
              f"On every day, {cups} {unit} are sold for ${p} each."),
             d.maybe((f"The stand is open {d.int(3, 9)} hours a day.", f"{a} is {d.int(9, 16)} years old.")),
             (f"How much profit is there after {days} days?", f"What is {a}'s profit in {d.number_words(days)} days?",
              f"How many dollars has {a} gained after {days} days?")),
        [f"A day brings {daily:$}.", f"In {days} days it is {total:$}.", f"The profit is {profit:$}."],
        profit)


@family
def flip_a_house(d: Draw) -> Story:
    a = adult(d)
    x = d.pick(nouns("house, boat, car, van, piano, motorcycle, cabin, old truck, workshop, " "apartment"))
    p, fix, q = d.int(1000, 90000, 500), d.int(100, 9000, 100), d.int(1500, 130000, 500)
    paid = calc(p, "+", fix)
    profit = calc(q, "-", paid)
    several(d, profit)
    return Story(
        tell(d, (
            f"{a} buys {x.a} for ${grouped(d, p)}, repairs it for ${grouped(d, fix)} and sells it for "
            f"${grouped(d, q)}. How much profit does {a} make?",
            f"For {x.a} that cost ${p}, {a} spends another ${fix} on repairs. The sale brings ${q}. What is the profit?",
            f"{a} sold {x.a} for ${grouped(d, q)}. Buying it had cost ${grouped(d, p)} and repairing it "
            f"${grouped(d, fix)}. How much did {a} gain?")),
        [f"The {x.one} cost {paid:$} in all.", f"The profit is {profit:$}."],
        profit)


@family
def profit_percent_price(d: Draw) -> Story:
    a, x, p = adult(d), d.pick(PRODUCTS + GOODS), d.int(10, 400, 10)
    percent, n = d.number_from((10, 20, 25, 30, 40, 50, 60, 80)), d.int(2, 30)
    gain = calc(p, "*", percent, "/", 100)
    price = calc(p, "+", gain)
    total = calc(price, "*", n)
    return Story(
        tell(d,
             (f"{a} buys {x} for ${p} each and wants a profit of {percent}% on each.",
              f"Each {x.one} costs {a}'s shop ${p}, and the shop adds {percent} percent.",
              f"{a} adds {percent}% to the ${p} that {x.a} costs in production."),
             (f"How much money do {n} of them bring?", f"What do {n} {x} cost a customer?",
              f"How many dollars does {a} take in by selling {n} {x}?")),
        [f"The profit on one is {gain:$}.", f"The price of one is {price:$}.", f"For {n} it is {total:$}."],
        total)


@family
def break_even_count(d: Draw) -> Story:
    a, x, make, more, count = adult(d), d.pick(PRODUCTS), d.int(2, 20), d.int(2, 20), d.int(5, 80)
    machine = more * count
    price = make + more
    gain = calc(price, "-", make)
    answer = calc(machine, "/", gain)
    return Story(
        tell(d,
             (f"{a} pays ${machine} for a machine that makes {x}.", f"A machine for making {x} costs {a} ${machine}.",
              f"To make {x}, {a} gets a machine for ${machine}."),
             (f"Making one costs ${make}, and it sells for ${price}.",
              f"Each {x.one} takes ${make} of material and is sold for ${price}.",
              f"The material for {x.a} costs ${make}, and the price of one is ${price}."),
             (f"How many {x} must {a} sell to get the price of the machine back?",
              f"After how many {x} is the machine paid for?",
              f"How many sales of {x} cover the cost of the machine?")),
        [f"One brings {gain:$}.", f"So {answer} {x} are needed."],
        answer)


@family
def sold_over_three_days(d: Draw) -> Story:
    a, x, n, k = adult(d), d.pick(BAKED + PRODUCTS), d.int(10, 90), d.number_from((2, 3, 4))
    fewer, p = d.int(3, 60), d.int(2, 9)
    i = d.pick(range(5))
    day1, day2, day3 = words.WEEK[i:i + 3]
    second = calc(n, "*", k)
    third = calc(second, "-", fewer)
    several(d, third)
    total = calc(n, "+", second, "+", third)
    money = calc(total, "*", p)
    shop = d.pick(words.SHOP_KINDS[:1]) if x in BAKED else "shop"
    return Story(
        tell(d,
             (f"On {day1}, {a}'s {shop} sold {n} {x}.", f"{n} {x} were sold at {a}'s {shop} on {day1}.",
              f"{a} has a {shop} and sold {n} {x} on {day1}."),
             (f"On {day2} it was {words.TIMES[k]} as many, and on {day3} {fewer} fewer than on {day2}.",
              f"{day2} brought {words.TIMES[k]} that number. {day3} brought {fewer} less than {day2}.",
              f"On {day3} it was {fewer} less than on {day2}, and on {day2} {words.TIMES[k]} as many as on {day1}."),
             (f"One costs ${p}. How much did the three days bring?",
              f"What was the income of the three days at ${p} each?",
              f"If each of them costs ${p}, how many dollars were taken in over the three days?")),
        [f"On {day2} it was {second} {x}.", f"On {day3} it was {third} {x}.", f"In all it was {total} {x}.",
         f"They brought {money:$}."],
        money)


@family
def wholesale_boxes(d: Draw) -> Story:
    a, x, boxes, per, p = adult(d), d.pick(FRUIT + PRODUCTS), d.int(2, 20), d.int(6, 40), d.int(10, 90)
    q = cost(d, 2, 9)
    number = calc(boxes, "*", per)
    income = calc(number, "*", q)
    paid = calc(boxes, "*", p)
    profit = calc(income, "-", paid)
    d.require(profit.value > 1)
    return Story(
        tell(d,
             (f"{a} buys {boxes} boxes of {x} for ${p} a box. There are {per} in each box.",
              f"A box of {per} {x} costs ${p}, and {a} buys {boxes} boxes.",
              f"{boxes} boxes with {per} {x} each cost {a} ${p} per box."),
             (f"All of them are sold for ${q} each.", f"{a} sells every one for ${q}.",
              f"The price for customers is ${q} apiece, and nothing is left over."),
             d.maybe((f"A box weighs {d.int(5, 20)} pounds.", f"The shop is open {d.int(5, 7)} days a week.")),
             (f"What is {a}'s profit?", f"How much does {a} gain?", "How many dollars of profit does that make?")),
        [f"There are {number} {x}.", f"They bring {income:$}.", f"The boxes cost {paid:$}.",
         f"The profit is {profit:$}."],
        profit)


@family
def loss_from_spoiled(d: Draw) -> Story:
    a, x, n, p, bad, q = adult(d), d.pick(FRUIT), d.int(20, 200), d.int(1, 4), d.int(3, 40), d.int(3, 9)
    good = calc(n, "-", bad)
    several(d, good)
    income, paid = calc(good, "*", q), calc(n, "*", p)
    profit = calc(income, "-", paid)
    several(d, profit)
    return Story(
        tell(d,
             (f"{a} buys {n} {x} at ${p} each, but {bad} of them are bad.",
              f"Of {n} {x} that {a} bought for ${p} apiece, {bad} went bad.",
              f"{n} {x} cost {a} ${p} each. {bad} of them spoil."),
             (f"The good ones are sold for ${q} each.", f"All the others sell at ${q} apiece.",
              f"{a} gets ${q} for each of the rest."),
             ("What is the profit?", f"How much does {a} gain in the end?",
              f"How much more money does {a} get than {a.they} paid?")),
        [f"There are {good} good {x}.", f"They bring {income:$}.", f"All of them cost {paid:$}.",
         f"The profit is {profit:$}."],
        profit)


@family
def two_shops_income(d: Draw) -> Story:
    (a, b), x, n, p, m, q = people(d, 2), d.pick(PRODUCTS), d.int(5, 80), d.int(3, 30), d.int(5, 80), d.int(3, 30)
    first, second = calc(n, "*", p), calc(m, "*", q)
    gap = calc(first, "-", second)
    several(d, gap)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} sells {n} {x} for ${p} each.", f"In {a}'s shop {n} {x} are sold at ${p}.",
                       f"{a} gets ${p} for each of {n} {x}."),
                      (f"{b} sells {m} {x} for ${q} each.", f"In {b}'s shop {m} {x} are sold at ${q}.",
                       f"{b} gets ${q} for each of {m} {x}."),
                      stray=(f"The shops are {d.int(2, 30)} meters apart.",
                             f"Both shops opened {d.int(2, 30)} years ago.")),
             (f"How much more does {a} take in than {b}?", f"By how many dollars is {a}'s income higher than {b}'s?",
              f"How much less does {b} get than {a}?")),
        [f"{a} takes in {first:$}.", f"{b} takes in {second:$}.", f"The difference is {gap:$}."],
        gap)


@family
def partners_share_profit(d: Draw) -> Story:
    (a, b), p, q, k = people(d, 2), d.int(2, 9), d.int(2, 9), d.int(5, 200)
    d.require(p != q)
    parts = calc(p, "+", q)
    total = parts.value * k
    one = calc(total, "/", parts)
    share = calc(one, "*", p)
    return Story(
        tell(d, (
            f"{a} and {b} share a profit of ${total} in the ratio {p}:{q}. How much does {a} get?",
            f"The profit of a business is ${grouped(d, total)}. {a} gets {p} parts and {b} gets {q} parts of it. "
            f"What is {a}'s share?",
            f"For every ${p} that {a} gets from a profit of ${total}, {b} gets ${q}. How many dollars does {a} get?")),
        [f"There are {parts} parts.", f"One part is {one:$}.", f"{a} gets {share:$}."],
        share)


@family
def workers_paid(d: Draw) -> Story:
    a, n, hours, rate, income = adult(d), d.int(2, 15), d.int(4, 12), d.int(8, 30), d.int(500, 8000, 50)
    daily = calc(hours, "*", rate)
    pay = calc(n, "*", daily)
    left = calc(income, "-", pay)
    several(d, left)
    shop = d.pick(words.SHOP_KINDS)
    return Story(
        tell(d,
             (f"{a} runs a {shop} with {n} workers, who work {hours} hours a day for ${rate} an hour.",
              f"In {a}'s {shop}, {n} workers earn ${rate} per hour and work {hours} hours a day.",
              f"The {n} workers in the {shop} of {a} get ${rate} an hour. A day has {hours} working hours."),
             (f"The {shop} takes in ${grouped(d, income)} a day.", f"Every day ${income} comes in.",
              f"The income of one day is ${income}."),
             ("How much is left each day after the workers are paid?",
              f"What remains of it when {a} has paid the workers?",
              f"How many dollars a day does {a} keep after paying them?")),
        [f"A worker gets {daily:$} a day.", f"All of them get {pay:$}.", f"So {left:$} is left."],
        left)


@family
def orders_per_week(d: Draw) -> Story:
    a, x, daily, days = adult(d), d.pick(BAKED + PRODUCTS), d.int(5, 60), d.number_from((5,))
    weekend, p = d.int(5, 90), d.int(2, 12)
    d.require(weekend != daily)
    first = calc(daily, "*", days)
    second = calc(weekend, "*", 2)
    total = calc(first, "+", second)
    money = calc(total, "*", p)
    ask = d.pick((True, False))
    return Story(
        tell(d,
             (f"{a} sells {daily} {x} on each weekday and {weekend} on each day of the weekend.",
              f"From Monday to Friday, {a} sells {daily} {x} a day. On Saturday and Sunday it is {weekend} a day.",
              f"On Saturdays and Sundays {a} sells {weekend} {x} each day. On each of the five other days it is "
              f"{daily}."),
             (f"How much money is that in a week at ${p} each?",
              f"If they cost ${p} each, how much does {a} take in per week?",
              f"The price is ${p} apiece. How many dollars does a week bring?") if ask else
             ("How many is that in a week?", f"How many {x} does {a} sell per week?",
              f"How many {x} are sold from Monday to Sunday?")),
        [f"The weekdays make {first} {x}.", f"The weekend makes {second} {x}.",
         f"A week makes {total} {x}."] + ([f"They bring {money:$}."] if ask else []),
        money if ask else total)


@family
def raw_material_cost(d: Draw) -> Story:
    a, n, per, p, q = adult(d), d.int(3, 40), d.int(2, 8), d.int(1, 9), d.int(20, 90)
    product, unit_one, unit = d.pick((
        ("bag", "meter of cloth", "meters of cloth"), ("pillow", "meter of cloth", "meters of cloth"),
        ("vase", "pound of clay", "pounds of clay"),
        ("bowl", "pound of clay", "pounds of clay"), ("bracelet", "bead", "beads"), ("necklace", "pearl", "pearls"),
        ("birdhouse", "board", "boards"),
        ("table", "board", "boards"), ("kite", "sheet of paper", "sheets of paper"),
        ("sweater", "ball of yarn", "balls of yarn"),
        ("candle", "pound of wax", "pounds of wax"), ("lamp", "piece of glass", "pieces of glass")))
    (x,) = nouns(product)
    need = calc(n, "*", per)
    paid = calc(need, "*", p)
    income = calc(n, "*", q)
    profit = calc(income, "-", paid)
    several(d, profit)
    return Story(
        tell(d,
             (f"For {x.a}, {a} needs {per} {unit}. A {unit_one} costs ${p}.",
              f"A {unit_one} costs ${p}, and {per} {unit} go into each {x.one} that {a} makes.",
              f"Each of {a}'s {x} takes {per} {unit}, and {a.they} pays ${p} for one {unit_one}."),
             (f"{a} makes {n} {x} and sells them for ${q} each.", f"{n} {x} are made and sold for ${q} each.",
              f"{a.They} sells {n} {x} at a price of ${q}."),
             (f"How much profit does {a} make?", "What is the profit?",
              f"How many dollars are left after paying for the {unit}?")),
        [f"That takes {need} {unit}.", f"They cost {paid:$}.", f"The {x} bring {income:$}.",
         f"The profit is {profit:$}."],
        profit)


@family
def landlord_income(d: Draw) -> Story:
    a, n, rent, empty, costs = adult(d), d.int(4, 30), d.int(300, 1500, 50), d.int(2, 6), d.int(200, 3000, 100)
    used = calc(n, "-", empty)
    several(d, used)
    income = calc(used, "*", rent)
    left = calc(income, "-", costs)
    several(d, left)
    x = d.pick(("apartments", "offices", "garages", "rooms", "shops", "studios"))
    return Story(
        tell(d,
             (f"{a} owns {n} {x} and rents each for ${rent} a month.",
              f"Each of {a}'s {n} {x} brings ${rent} a month when it is rented.",
              f"{a} has {n} {x}. The rent for one is ${rent} per month."),
             (f"{empty} of them are empty this month, and {a} pays ${costs} for repairs.",
              f"This month {empty} stand empty. Repairs cost ${costs}.",
              f"Repairs cost ${costs} this month, and {empty} of the {x} are not rented."),
             (f"How much does {a} have from them this month?", "How much money is left this month?",
              "How many dollars remain after the repairs?")),
        [f"There are {used} rented {x}.", f"They bring {income:$}.", f"After the repairs {left:$} is left."],
        left)


@family
def author_royalties(d: Draw) -> Story:
    a, copies, rate, percent = adult(d), d.int(200, 9000, 100), d.int(1, 6), d.number_from((5, 10, 15, 20))
    x = d.pick(("copies of a book", "prints of a painting", "downloads of a game", "records", "copies of a song",
                "tickets"))
    helper = d.pick(("agent", "manager", "publisher"))
    gross = calc(copies, "*", rate)
    fee = calc(gross, "*", percent, "/", 100)
    net = calc(gross, "-", fee)
    return Story(
        tell(d,
             (f"{a} gets ${rate} for each of {grouped(d, copies)} {x}.",
              f"{grouped(d, copies)} {x} are sold, and {a} receives ${rate} for each.",
              f"Each sale pays {a} ${rate}. There are sales of {copies} {x}."),
             (f"The {helper} takes {percent}% of that.", f"{percent} percent of this money goes to the {helper}.",
              f"{a}'s {helper} gets {percent}% of it."),
             d.maybe((f"The work took {d.int(2, 9)} months.", f"{a} began it {d.int(2, 9)} years ago.")),
             (f"How much does {a} keep?", f"How much is left for {a}?", f"How many dollars remain with {a}?")),
        [f"The sales bring {gross:$}.", f"The {helper} gets {fee:$}.", f"So {a} keeps {net:$}."],
        net)


@family
def inventory_after_sales(d: Draw) -> Story:
    x, start, sold = d.pick(PRODUCTS + GOODS), d.int(100, 900, 20), d.int(10, 400, 10)
    more, percent = d.int(20, 400, 20), d.number_from((10, 20, 25, 50))
    first = calc(start, "-", sold)
    second = calc(first, "+", more)
    gone = calc(second, "*", percent, "/", 100)
    left = calc(second, "-", gone)
    several(d, first, gone, left)
    return Story(
        tell(d,
             (f"A store has {start} {x} in stock and sells {sold}.",
              f"Out of a stock of {start} {x}, a store sells {sold}.",
              f"{sold} of the {start} {x} in a store are sold."),
             (f"Then {more} new ones come in, and {percent}% of all that are there are sold in a sale.",
              f"After a delivery of {more}, the store sells {percent} percent of what it has then.",
              f"A truck brings {more} more. In the next week {percent}% of the stock is sold."),
             ("How many are left?", f"How many {x} does the store have now?", f"How many {x} remain in stock?")),
        [f"After the first sales there are {first} {x}.", f"With the new ones there are {second} {x}.",
         f"Then {gone} are sold.", f"So {left} {x} are left."],
        left)


@family
def half_price_leftovers(d: Draw) -> Story:
    a, x, n, p, sold = adult(d), d.pick(BAKED), d.int(12, 120), d.int(2, 12, 2), d.int(6, 100)
    full = calc(sold, "*", p)
    rest = calc(n, "-", sold)
    several(d, rest)
    half = calc(p, "/", 2)
    low = calc(rest, "*", half)
    total = calc(full, "+", low)
    return Story(
        tell(d,
             (f"{a} bakes {n} {x} and sells {sold} of them for ${p} each.",
              f"{sold} of {a}'s {n} {x} are sold at ${p} each.", f"At ${p} apiece {a} sells {sold} out of {n} {x}."),
             ("The rest is sold at half the price.", "In the evening all others go for half the price.",
              "For the ones that are left, people pay half of that."),
             (f"How much money does {a} take in?", f"How much does {a} get for all of them?",
              "How many dollars is that in all?")),
        [f"The first ones bring {full:$}.", f"There are {rest} {x} left.", f"Half the price is {half:$}.",
         f"They bring {low:$}.", f"In all it is {total:$}."],
        total)


@family
def electricity_of_shop(d: Draw) -> Story:
    a, lamps, hours, days = adult(d), d.int(3, 30), d.int(4, 14), d.int(5, 31)
    price = d.number_from((Decimal("0.1"), Decimal("0.2"), Decimal("0.25"), Decimal("0.5")))
    daily = calc(lamps, "*", hours)
    total = calc(daily, "*", days)
    money = calc(total, "*", price)
    shop = d.pick(words.SHOP_KINDS)
    x = d.pick(("lamps", "ovens", "heaters", "machines", "coolers", "fans"))
    shown = f"${price:.2f}"
    return Story(
        tell(d,
             (f"{a}'s {shop} has {lamps} {x} that run {hours} hours a day.",
              f"In a {shop}, {lamps} {x} are on for {hours} hours each day.",
              f"Each day {lamps} {x} run for {hours} hours in the {shop} of {a}."),
             (f"Running one for an hour costs {shown}.", f"One of them costs {shown} an hour.",
              f"The power for one is {shown} per hour."),
             (f"What does that cost in {days} days?", f"How much is the power for {days} days?",
              f"How many dollars is that in {days} days?")),
        [f"A day has {daily} hours of use.", f"In {days} days it is {total} hours.", f"They cost {money:$}."],
        money)

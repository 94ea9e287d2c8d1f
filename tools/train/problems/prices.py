"""Prices, discounts, tips, taxes and change."""

from decimal import Decimal

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, cost, grouped, people, person, several, shuffled, tell

GOODS = nouns(words.SMALL_GOODS)
CLOTHES = nouns(words.CLOTHING)
LARGE = nouns(words.LARGE_GOODS)
MEALS = nouns(words.MEALS)


@family
def price_of_several(d: Draw) -> Story:
    a, x, n, p = person(d), d.pick(GOODS + CLOTHES), d.int(2, 30), cost(d, 2, 25)
    total = calc(n, "*", p)
    return Story(
        tell(d, (
            f"{a} buys {n} {x} at ${p} each. How much does {a} pay?",
            f"How much do {n} {x} cost if one {x.one} costs ${p}?",
            f"One {x.one} is ${p}. What do {n} {x} cost?",
            f"{x.a} costs ${p}. {a} wants {n} {x}. How much money does {a.they} need?",
            f"A shop sells {x} for ${p} apiece. What is the price of {d.number_words(n)} {x}?",
            f"{n} {x}, ${p} each. How much altogether?")),
        [f"The {x} cost {total:$}."],
        total)


@family
def change_from_one_item(d: Draw) -> Story:
    a, x = person(d), d.pick(GOODS + MEALS + CLOTHES)
    p, bill = cost(d, 2, 95), d.number_from((5, 10, 20, 50, 100))
    change = calc(bill, "-", p)
    several(d, change)
    return Story(
        tell(d, (
            f"{a} buys {x.a} for ${p} and pays with a ${bill} bill. How much change does {a} get?",
            f"{x.a} costs ${p}. {a} gives the cashier ${bill}. How much change should {a.they} get back?",
            f"{a} has ${bill} and spends ${p} on {x.a}. How much money is left?",
            f"How much change is there from ${bill} when {a} pays for {x.a} that costs ${p}?",
            f"With ${bill} in {a.their} pocket, {a} bought {x.a} for ${p}. How many dollars does {a.they} have now?")),
        [f"{a} has {change:$} left."],
        change)


@family
def change_from_several(d: Draw) -> Story:
    a, x = person(d), d.pick(GOODS + MEALS)
    n, p, bill = d.int(2, 9), cost(d, 1, 20), d.number_from((10, 20, 50, 100, 200))
    total = calc(n, "*", p)
    change = calc(bill, "-", total)
    several(d, p, change)
    return Story(
        tell(d,
             (f"{a} buys {d.number_words(n)} {x} at ${p} each and pays with ${bill}.",
              f"{a} hands over ${bill} for {n} {x}, which cost ${p} each.",
              f"{x.a} costs ${p}. {a} takes {d.number_words(n)} of them and gives the cashier ${bill}.",
              f"At ${p} apiece, {a} gets {n} {x}. {a.They} pays with a ${bill} note."),
             (f"How much change does {a} get?", f"What is {a}'s change?",
              "How much money should the cashier give back?", "How many dollars come back?")),
        [f"The {x} cost {total:$}.", f"The change is {change:$}."],
        change)


@family
def two_goods_total(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(GOODS + MEALS)
    n, p, m, q = d.int(2, 12), cost(d, 2, 15), d.int(2, 12), cost(d, 2, 15)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             (f"{a} buys {n} {x} and {m} {y}. One {x.one} costs ${p} and one {y.one} costs ${q}.",
              f"{a} buys {n} {x} at ${p} each as well as {m} {y} at ${q} each.",
              f"{x.a} is ${p}, while {y} are ${q} each. {a} takes {n} {x} and {m} {y}.",
              f"The {x} cost ${p} apiece, the {y} ${q}. {a} picks up {d.number_words(n)} {x} and {d.number_words(m)} "
              f"{y}."),
             d.maybe((f"The shop closes at {d.int(5, 9)} pm.", f"{d.int(2, 9)} people are waiting in line.")),
             (f"How much does {a} pay in total?", f"What does {a} spend altogether?",
              "What is the total cost?", "How much is the bill?")),
        [f"The {x} cost {first:$}.", f"The {y} cost {second:$}.", f"Together they cost {total:$}."],
        total)


@family
def two_goods_difference(d: Draw) -> Story:
    (a, b), (x, y) = people(d, 2), d.pick_two(CLOTHES)
    n, p, m, q = d.int(2, 9), cost(d, 5, 40), d.int(2, 9), cost(d, 5, 40)
    first, second = calc(n, "*", p), calc(m, "*", q)
    more = calc(first, "-", second)
    several(d, more)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} buys {n} {x} for ${p} each.", f"{a} pays ${p} for each of {n} {x}.",
                       f"At ${p} each, {a} gets {n} {x}."),
                      (f"{b} buys {m} {y} for ${q} each.", f"{b} takes {m} {y} that cost ${q} apiece.",
                       f"For {m} {y}, {b} pays ${q} each."),
                      stray=(f"They were in the shop for {d.int(20, 90)} minutes.",
                             f"The shop has {d.int(3, 40)} other customers."),),
             (f"How much more does {a} spend than {b}?", f"By how many dollars does {a} outspend {b}?",
              f"{a} spends more than {b}. How much more?", f"How much less does {b} pay than {a}?")),
        [f"{a} spends {first:$}.", f"{b} spends {second:$}.", f"The difference is {more:$}."],
        more)


@family
def find_unit_price(d: Draw) -> Story:
    a, x, n, p = person(d), d.pick(GOODS + MEALS + CLOTHES), d.int(2, 24), d.int(2, 45)
    total = n * p
    each = calc(total, "/", n)
    return Story(
        tell(d, (
            f"{n} {x} cost ${total}. How much does one {x.one} cost?",
            f"{a} paid ${total} for {n} {x}. What was the price of each {x.one}?",
            f"If {d.number_words(n)} {x} cost ${total} in all, what is the price of one?",
            f"For {n} {x} of the same price {a} pays ${total}. How much is {x.a}?",
            f"{a} spent ${total} on {n} identical {x}. How many dollars did each one cost?")),
        [f"One {x.one} costs {each:$}."],
        each)


@family
def unit_price_then_more(d: Draw) -> Story:
    a, x = person(d), d.pick(GOODS + MEALS)
    n, p, m = d.int(2, 12), d.int(2, 25), d.int(3, 25)
    d.require(n != m)
    each = calc(n * p, "/", n)
    total = calc(m, "*", each)
    return Story(
        tell(d, (
            f"If {n} {x} cost ${n * p}, how much do {m} {x} cost?",
            f"{a} paid ${n * p} for {n} {x}. How much would {m} {x} cost at the same price?",
            f"{d.number_words(n)} {x} are sold for ${n * p}. At that rate, what is the price of {d.number_words(m)}?",
            f"What do {m} {x} cost when {n} of them cost ${n * p}?",
            f"The price of {n} {x} is ${n * p}. {a} needs {m} {x}. How many dollars must {a.they} pay?")),
        [f"One {x.one} costs {each:$}.", f"So {m} {x} cost {total:$}."],
        total)


@family
def how_many_can_be_bought(d: Draw) -> Story:
    a, x = person(d), d.pick(GOODS + MEALS)
    n, p, rest = d.int(2, 25), d.int(2, 15), d.int(1, 14)
    d.require(rest < p)
    money = n * p
    count = calc(money, "/", p)
    return Story(
        tell(d, (
            f"{a} has ${money}. How many {x} can {a.they} buy at ${p} each?",
            f"{x.a} costs ${p}. How many {x} can {a} buy with ${money}?",
            f"How many {x} does {a} get for ${money} if one costs ${p}?",
            f"With ${money}, how many ${p} {x} can be bought?",
            f"{a} spends all of {a.their} ${money} on {x} that cost ${p} apiece. How many does {a.they} get?")),
        [f"The money is enough for {count} {x}."],
        count)


@family
def sale_price(d: Draw) -> Story:
    a = person(d)
    p, percent = d.int(20, 900, 20), d.number_from((5, 10, 15, 20, 25, 30, 40, 50, 60, 75))
    x = d.pick(CLOTHES if p < 100 else LARGE)
    off = calc(p, "*", percent, "/", 100)
    price = calc(p, "-", off)
    return Story(
        tell(d, (
            f"{x.a} costs ${p}. It is on sale for {percent}% off. What is the sale price?",
            f"{a} buys {x.a} that normally costs ${p} with a discount of {percent} percent. How much does {a.they} pay?",
            f"How much is {x.a} after {percent}% off, if the regular price is ${p}?",
            f"There is a {percent}% discount on {x.a} with a price tag of ${p}. What does {a} have to pay?",
            f"What is the price of a ${p} {x.one} after a {percent}% discount?")),
        [f"The discount is {off:$}.", f"The sale price is {price:$}."],
        price)


@family
def original_price_from_sale(d: Draw) -> Story:
    a = person(d)
    percent, full = d.number_from((10, 20, 25, 30, 40, 50, 60)), d.int(20, 600, 10)
    d.require(full * percent % 100 == 0)
    x = d.pick(CLOTHES if full < 100 else LARGE)
    paid = full * (100 - percent) // 100
    part = calc(100, "-", percent)
    price = calc(paid, "*", 100, "/", part)
    return Story(
        tell(d,
             (f"After a discount of {percent}%, {x.a} costs ${paid}.",
              f"{a} paid ${paid} for {x.a} that was {percent}% off.",
              f"{x.a} is on sale for {percent} percent off, and {a} pays ${paid} for it.",
              f"The price of {x.a} was lowered by {percent}%. Now it is ${paid}."),
             ("What was the original price?", "How much did it cost before?",
              f"What was the price of the {x.one} before the discount?",
              "How many dollars was it at first?")),
        [f"The price is now {part} percent of the original.", f"The original price was {price:$}."],
        price)


@family
def discount_then_coupon(d: Draw) -> Story:
    a, x = adult(d), d.pick(LARGE)
    p, percent, coupon = d.int(60, 900, 20), d.number_from((5, 10, 15, 20, 25, 30, 50)), d.int(5, 40, 5)
    off = calc(p, "*", percent, "/", 100)
    reduced = calc(p, "-", off)
    price = calc(reduced, "-", coupon)
    several(d, price)
    return Story(
        tell(d,
             (f"{a} buys {x.a} with a regular price of ${p}.", f"The {x.one} that {a} wants has a price of ${p}.",
              f"{a} found {x.a} for ${p}."),
             (f"The shop takes {percent}% off, and a coupon takes off another ${coupon} after that.",
              f"First it is discounted by {percent} percent. Then {a} uses a ${coupon} coupon.",
              f"There is a {percent}% discount, and {a} has a coupon for ${coupon} off the reduced price."),
             (f"How much does {a} pay?", "What is the final price?", f"What does the {x.one} cost {a} in the end?")),
        [f"The discount is {off:$}.", f"The reduced price is {reduced:$}.", f"With the coupon it is {price:$}."],
        price)


@family
def two_discounts(d: Draw) -> Story:
    a, x = adult(d), d.pick(LARGE)
    p, first, second = d.int(100, 2000, 100), d.int(10, 50, 10), d.int(10, 50, 10)
    off = calc(p, "*", first, "/", 100)
    once = calc(p, "-", off)
    again = calc(once, "*", second, "/", 100)
    price = calc(once, "-", again)
    return Story(
        tell(d,
             (f"{x.a} costs ${p}. First its price is cut by {first}%, and later the new price is cut by {second}%.",
              f"A store lowers the price of a ${p} {x.one} by {first}%. A week later it takes {second}% off the new "
              "price.",
              f"The price of {x.a} was ${p}. It went down by {first} percent in {d.pick(words.YEAR[:6])} "
              f"and by another {second} percent of the new price in {d.pick(words.YEAR[6:])}."),
             ("What does it cost now?", "What is the price in the end?", f"How much does {a} pay for it now?")),
        [f"The first cut is {off:$}.", f"Then the price is {once:$}.", f"The second cut is {again:$}.",
         f"Now the price is {price:$}."],
        price)


@family
def price_rise(d: Draw) -> Story:
    p, percent = d.int(20, 1200, 20), d.number_from((5, 10, 15, 20, 25, 30, 40, 50))
    x = d.pick(CLOTHES if p < 100 else LARGE)
    rise = calc(p, "*", percent, "/", 100)
    price = calc(p, "+", rise)
    return Story(
        tell(d, (
            f"The price of {x.a} was ${p}. It goes up by {percent}%. What is the new price?",
            f"{x.a} that used to cost ${p} becomes {percent} percent more expensive. How much does it cost now?",
            f"Last year {x.a} cost ${p}. Since then its price has risen {percent}%. What does it cost today?",
            f"How much is a ${p} {x.one} after its price increases by {percent}%?")),
        [f"The price rises by {rise:$}.", f"The new price is {price:$}."],
        price)


@family
def percent_of_price_change(d: Draw) -> Story:
    x, down = d.pick(LARGE + CLOTHES), d.pick((True, False))
    old, percent = d.int(20, 400, 10), d.number_from((5, 10, 15, 20, 25, 30, 40, 50, 60, 75))
    d.require(old * percent % 100 == 0)
    new = old - old * percent // 100 if down else old + old * percent // 100
    change = calc(old, "-", new) if down else calc(new, "-", old)
    answer = calc(change, "*", 100, "/", old)
    way, noun = ("drop", "decrease") if down else ("rise", "increase")
    return Story(
        tell(d, (
            f"The price of {x.a} changed from ${old} to ${new}. By how many percent did it {way}?",
            f"{x.a} cost ${old} last year and costs ${new} now. What is the percent {noun} in the price?",
            f"A store used to sell {x.a} for ${old}. Now it asks ${new}. What percentage {noun} is that?",
            f"By what percent did the price of {x.a} {way} when it went from ${old} to ${new}?")),
        [f"The change is {change:$}.", f"That is {answer} percent."],
        answer)


@family
def tip_on_a_meal(d: Draw) -> Story:
    a, p, percent = adult(d), d.int(20, 200), d.number_from((10, 15, 18, 20, 25))
    tip = calc(Decimal(p), "*", percent, "/", 100)
    total = calc(p, "+", tip)
    return Story(
        tell(d, (
            f"{a}'s meal costs ${p}. {a} leaves a {percent}% tip. How much does {a} pay in total?",
            f"The bill at a restaurant is ${p}. With a tip of {percent} percent, what does {a} pay altogether?",
            f"{a} adds a {percent}% tip to a restaurant bill of ${p}. What is the total?",
            f"How much does {a} spend on a ${p} dinner including a tip of {percent}%?")),
        [f"The tip is {tip:$}.", f"The total is {total:$}."],
        total)


@family
def bill_with_tip_shared(d: Draw) -> Story:
    a = person(d)
    friends, p, percent = d.int(2, 8), d.int(40, 400, 20), d.number_from((10, 15, 20, 25))
    tip = calc(p, "*", percent, "/", 100)
    total = calc(p, "+", tip)
    persons = calc(friends, "+", 1)
    share = calc(total, "/", persons)
    return Story(
        tell(d,
             (f"{a} and {d.number_words(friends)} friends eat out, and the bill is ${p}.",
              f"The bill for dinner comes to ${p}. {a} shares it with {friends} friends.",
              f"{a} goes to a restaurant with {friends} friends. Their food costs ${p}."),
             (f"They add a {percent}% tip and split everything equally.",
              f"All of them pay the same, and they leave {percent} percent as a tip.",
              f"Including a tip of {percent}%, the cost is divided evenly."),
             ("How much does each of them pay?", f"What is {a}'s share?", "How much is it per person?")),
        [f"The tip is {tip:$}.", f"With the tip it is {total:$}.", f"There are {persons} people.",
         f"Each pays {share:$}."],
        share)


@family
def sales_tax(d: Draw) -> Story:
    a, x = adult(d), d.pick(LARGE)
    p, percent = d.int(40, 1500, 5), d.int(4, 12)
    tax = calc(Decimal(p), "*", percent, "/", 100)
    total = calc(p, "+", tax)
    return Story(
        tell(d, (
            f"{x.a} costs ${p} plus {percent}% sales tax. What is the total price?",
            f"{a} buys {x.a} for ${p}. The sales tax is {percent} percent. How much does {a} pay with tax?",
            f"How much does a ${p} {x.one} cost when a tax of {percent}% is added?",
            f"The price tag of {x.a} says ${p}, but a tax of {percent}% comes on top. What does {a} have to pay?")),
        [f"The tax is {tax:$}.", f"With tax it is {total:$}."],
        total)


@family
def discount_and_tax_on_two(d: Draw) -> Story:
    a, (x, y) = adult(d), d.pick_two(LARGE)
    p, q, off, tax = d.int(50, 500, 50), d.int(50, 500, 50), d.int(10, 50, 10), d.number_from((5, 10))
    both = calc(p, "+", q)
    discount = calc(both, "*", off, "/", 100)
    reduced = calc(both, "-", discount)
    added = calc(reduced, "*", tax, "/", 100)
    total = calc(reduced, "+", added)
    return Story(
        tell(d,
             (f"{a} buys {x.a} for ${p} and {y.a} for ${q}.", f"{x.a} costs ${p} and {y.a} ${q}. {a} buys both.",
              f"{a} puts {x.a} that costs ${p} and another thing, {y.a}, that costs ${q} into the cart."),
             (f"Everything is {off}% off, and a tax of {tax}% is added after the discount.",
              f"There is a discount of {off}% on the whole purchase. Then {tax}% sales tax comes on top.",
              f"The shop takes {off} percent off the total and adds {tax} percent tax to the reduced price."),
             (f"How much does {a} pay?", "What is the final amount?", "How many dollars is it in the end?")),
        [f"The goods cost {both:$}.", f"The discount is {discount:$}.", f"That leaves {reduced:$}.",
         f"The tax is {added:$}.", f"The final amount is {total:$}."],
        total)


@family
def buy_some_get_one(d: Draw) -> Story:
    a, x = person(d), d.pick(GOODS + MEALS + CLOTHES)
    buy, sets, p = d.int(2, 5), d.int(2, 8), cost(d, 2, 30)
    group = calc(buy, "+", 1)
    wanted = sets * group.value
    groups = calc(wanted, "/", group)
    paid = calc(groups, "*", buy)
    total = calc(paid, "*", p)
    return Story(
        tell(d,
             (f"A shop has an offer: buy {buy} {x} and get one free.",
              f"For every {buy} {x} you pay for, one more is free.",
              f"At a sale, whoever buys {d.number_words(buy)} {x} gets another one for free."),
             (f"One {x.one} costs ${p}, and {a} takes {wanted} {x} home.",
              f"{a} wants {wanted} {x}. The price is ${p} each.",
              f"{a} leaves with {wanted} {x}, which normally cost ${p} each."),
             (f"How much does {a} pay?", f"What does {a} spend?", "How much money is that?")),
        [f"A group is {group} {x}.", f"There are {groups} groups.", f"{a} pays for {paid} {x}.",
         f"That costs {total:$}."],
        total)


@family
def cheaper_pack(d: Draw) -> Story:
    x = d.pick(GOODS)
    n, p, m, q = d.int(3, 12), d.int(2, 9), d.int(3, 12), d.int(2, 9)
    d.require(n != m and p < q)
    first, second = calc(n * p, "/", n), calc(m * q, "/", m)
    more = calc(second, "-", first)
    return Story(
        tell(d,
             shuffled(d,
                      (f"One store sells a pack of {n} {x} for ${n * p}.",
                       f"At the first store, {n} {x} cost ${n * p}.",
                       f"For ${n * p} you get {n} {x} at one store."),
                      (f"Another store sells a pack of {m} {x} for ${m * q}.",
                       f"At a second store, {m} {x} cost ${m * q}.",
                       f"A second store asks ${m * q} for {m} {x}.")),
             (f"How much cheaper is one {x.one} in the cheaper pack?",
              f"By how many dollars do the prices of one {x.one} differ?",
              f"What is the difference in the price of a single {x.one}?")),
        [f"With {n} {x} one costs {first:$}.", f"With {m} {x} one costs {second:$}.", f"The difference is {more:$}."],
        more)


@family
def bills_and_coins_in_wallet(d: Draw) -> Story:
    a, x = person(d), d.pick(CLOTHES)
    (low, high) = d.pick(((1, 5), (1, 10), (5, 10), (5, 20), (10, 20), (10, 50), (20, 50)))
    n, m, p = d.int(2, 9), d.int(2, 9), cost(d, 8, 150)
    first, second = calc(n, "*", high), calc(m, "*", low)
    total = calc(first, "+", second)
    left = calc(total, "-", p)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} has {d.number_words(n)} ${high} bills and {d.number_words(m)} ${low} bills.",
              f"In {a}'s wallet are {n} ${high} bills and {m} ${low} bills.",
              f"{a} counts {a.their} money: {n} bills of ${high} and {m} bills of ${low}."),
             (f"{a.They} buys {x.a} for ${p}.", f"{a} pays ${p} for {x.a}.", f"Then {x.a} costs {a.them} ${p}."),
             ("How much money is left?", f"How much does {a} have after that?", "How many dollars remain?")),
        [f"The ${high} bills make {first:$}.", f"The ${low} bills make {second:$}.", f"{a} has {total:$}.",
         f"After buying the {x.one}, {left:$} is left."],
        left)


@family
def price_of_the_other(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(CLOTHES + LARGE)
    p, q = cost(d, 10, 400), cost(d, 10, 400)
    d.require(p != q)
    rest = calc(calc(p, "+", q).value, "-", p)
    total = calc(p, "+", q).value
    return Story(
        tell(d, (
            f"{a} pays ${total} for {x.a} and {y.a}. The {x.one} costs ${p}. How much is the {y.one}?",
            f"{x.a} and {y.a} cost ${total} together. If the {x.one} is ${p}, what does the {y.one} cost?",
            f"{a} bought {x.a} for ${p} and {y.a}. Altogether {a.they} spent ${total}. What was the price of the "
            f"{y.one}?",
            f"What does {y.a} cost if {x.a} costs ${p} and both together cost ${total}?")),
        [f"The {y.one} costs {rest:$}."],
        rest)


@family
def times_as_expensive(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(CLOTHES + LARGE)
    p, k = cost(d, 5, 150), d.int(2, 6)
    second = calc(k, "*", p)
    total = calc(p, "+", second)
    return Story(
        tell(d,
             (f"{x.a} costs ${p}. {y.A} costs {words.TIMES[k]} as much.",
              f"{a} buys {x.a} for ${p} and {y.a} that is {words.TIMES[k]} as expensive.",
              f"The price of {y.a} is {words.TIMES[k]} the price of {x.a}, which is ${p}."),
             (f"How much do the {x.one} and the {y.one} cost together?", "What do both of them cost?",
              f"How much does {a} pay for both?")),
        [f"The {y.one} costs {second:$}.", f"Together they cost {total:$}."],
        total)


@family
def dearer_by(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(CLOTHES + LARGE)
    p, more, bill = cost(d, 5, 90), cost(d, 2, 60), d.int(100, 300, 50)
    second = calc(p, "+", more)
    total = calc(p, "+", second)
    left = calc(bill, "-", total)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} has ${bill} and buys {x.a} for ${p} and {y.a} that costs ${more} more than the {x.one}.",
              f"{x.a} costs ${p}, and {y.a} costs ${more} more. {a} has ${bill} and buys both.",
              f"With ${bill}, {a} goes shopping: {x.a} for ${p} and {y.a}, which is ${more} dearer than the {x.one}."),
             (f"How much money does {a} have left?", f"How many dollars does {a} keep?",
              "What is left of the money?")),
        [f"The {y.one} costs {second:$}.", f"Together they cost {total:$}.", f"So {left:$} is left."],
        left)


@family
def installments(d: Draw) -> Story:
    a, x = adult(d), d.pick(LARGE)
    down, months, rate = d.int(20, 300, 10), d.number_from((6, 8, 10, 12, 18, 24)), d.int(10, 90, 5)
    cash = d.int(10, 150)
    payments = calc(months, "*", rate)
    total = calc(down, "+", payments)
    price = total.value - cash
    d.require(price > cash)
    more = calc(total, "-", price)
    return Story(
        tell(d,
             (f"{x.a} costs ${grouped(d, price)} in cash.", f"The cash price of {x.a} is ${price}.",
              f"Paid at once, {x.a} costs ${price}."),
             (f"{a} pays ${down} down and then ${rate} a month for {months} months instead.",
              f"{a} chooses to pay ${down} first and {months} monthly payments of ${rate}.",
              f"Instead, {a} makes a down payment of ${down} and pays ${rate} in each of the next {months} months."),
             (f"How much more does {a} pay than the cash price?", f"How much would {a} save by paying cash?",
              "How many dollars more is that?")),
        [f"The monthly payments make {payments:$}.", f"In all {a} pays {total:$}.", f"That is {more:$} more."],
        more)

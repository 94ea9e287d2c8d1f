"""Buying things: totals, change, discounts, packs."""

from . import words
from .problem import Draw, Story, calc, family


@family
def two_kinds_of_clothes(d: Draw) -> Story:
    a = d.person()
    x, y = d.pick_two(words.CLOTHES)
    n, p, m, q = d.int(2, 9), d.int(5, 30), d.int(2, 9), d.int(5, 30)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return Story(
        d.tell(
            (f"{a} buys {n} {x} for ${p} each and {m} {y} for ${q} each.",
             f"At {d.pick(words.SHOPS)}, {a} picks {n} {x} and {m} {y}. The {x} cost ${p} each and the {y} cost ${q} each.",
             f"A store sells {x} for ${p} and {y} for ${q}. {a} takes {n} {x} and {m} {y}."),
            (f"How much does {a.they} pay in total?", f"How many dollars does {a} spend altogether?",
             "What is the total cost?")),
        [f"The {x} cost {first:$}.", f"The {y} cost {second:$}.", f"In total {a} pays {total:$}."],
        total)


@family
def change_from_a_bill(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.SUPPLIES)
    n, p, extra, bill = d.int(2, 9), d.int(2, 9), d.int(2, 15), d.number_from((20, 50, 100))
    cost = calc(n, "*", p)
    total = calc(cost, "+", extra)
    change = calc(bill, "-", total)
    return Story(
        d.tell(
            (f"{a} buys {n} {x} at ${p} each and a bag for ${extra}.",
             f"{a} needs {n} {x}, which cost ${p} each, and also takes a ${extra} bag."),
            (f"{a.They} pays with a ${bill} bill.", f"{a.They} hands the cashier ${bill}."),
            (f"How much change does {a.they} get?", f"How many dollars does {a} get back?",
             "How much change is that?")),
        [f"The {x} cost {cost:$}.", f"With the bag that is {total:$}.", f"{a} gets {change:$} back."],
        change)


@family
def percent_discount(d: Draw) -> Story:
    a, thing = d.person(), d.pick(words.GADGETS)
    price, percent = d.int(40, 400, 20), d.number_from((5, 10, 15, 20, 25, 30, 40))
    shipping = d.int(3, 25)
    hundredfold = calc(price, "*", percent)
    off = calc(hundredfold, "/", 100)
    reduced = calc(price, "-", off)
    total = calc(reduced, "+", shipping)
    return Story(
        d.tell(
            (f"{a} orders {thing} that costs ${price}.", f"{a} finds {thing} priced at ${price}.",
             f"The price of {thing} that {a} wants is ${price}."),
            (f"There is a {percent}% discount, and shipping costs ${shipping}.",
             f"The store takes {percent}% off and charges ${shipping} for delivery."),
            (f"How much does {a} pay in all?", f"What does {a.they} pay in the end?",
             f"How many dollars does {a} pay in total?")),
        [f"For {percent}%, first take {hundredfold}.", f"The discount is {off:$}.",
         f"The reduced price is {reduced:$}.", f"In all {a} pays {total:$}."],
        total)


@family
def coupon_on_many(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.CLOTHES)
    n, price, off = d.int(3, 12), d.int(12, 60), d.int(2, 10)
    reduced = calc(price, "-", off)
    total = calc(n, "*", reduced)
    return Story(
        d.tell(
            (f"{x.capitalize()} normally cost ${price} each.", f"A shop asks ${price} for each of its {x}."),
            (f"{a} has a coupon that takes ${off} off every one of them and buys {n}.",
             f"Today each is ${off} cheaper, and {a} buys {n} of them.",
             f"With a member card, {a} saves ${off} on each and takes {n}."),
            (f"How much does {a} pay?", f"How many dollars does {a.they} spend?")),
        [f"Each one costs {reduced:$}.", f"{a} pays {total:$}."],
        total)


@family
def packs_needed(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.PACKED)
    per_pack, packs, price = d.int(4, 15), d.int(3, 20), d.int(2, 12)
    needed = per_pack * packs
    count = calc(needed, "/", per_pack)
    cost = calc(count, "*", price)
    return Story(
        d.tell(
            (f"{a} needs {needed} {x} for a party.", f"For a school event, {a} has to buy {needed} {x}.",
             f"{a} wants to have {needed} {x}."),
            (f"They come in packs of {per_pack} that cost ${price} each.",
             f"A pack of {per_pack} costs ${price}."),
            (f"How much will {a} spend?", f"How many dollars will all the {x} cost?")),
        [f"{a} needs {count} packs.", f"They cost {cost:$}."],
        cost)


@family
def split_the_bill(d: Draw) -> Story:
    a = d.person()
    people, share, tip = d.int(3, 9), d.int(8, 40), d.int(5, 30)
    bill = people * share - tip
    d.require(bill > tip)
    total, each = calc(bill, "+", tip), calc(bill + tip, "/", people)
    return Story(
        d.tell(
            (f"{a} and {people - 1} friends have dinner together.",
             f"{people} people, {a} among them, eat at a restaurant."),
            (f"The bill is ${bill} and they leave a tip of ${tip}.",
             f"The meal costs ${bill}, and they add ${tip} for the waiter."),
            (f"All {people} of them pay the same. How much does each pay?",
             f"They split everything equally among the {people} of them. How many dollars is one share?")),
        [f"Together they pay {total:$}.", f"Each of the {people} pays {each:$}."],
        each)


@family
def three_item_list(d: Draw) -> Story:
    a = d.person()
    x, y = d.pick_two(words.FRUIT)
    n, p, m, q, z = d.int(2, 9), d.int(2, 6), d.int(2, 9), d.int(2, 6), d.int(3, 20)
    first, second = calc(n, "*", p), calc(m, "*", q)
    fruit = calc(first, "+", second)
    total = calc(fruit, "+", z)
    return Story(
        d.tell(
            (f"{a}'s shopping list has {n} bags of {x}, {m} bags of {y} and a ${z} cake.",
             f"{a} puts {n} bags of {x}, {m} bags of {y} and a cake for ${z} into the cart."),
            (f"A bag of {x} is ${p} and a bag of {y} is ${q}.",
             f"One bag of {x} costs ${p}, one bag of {y} costs ${q}."),
            (f"What does {a} pay for everything?", "How much is everything together?",
             f"How many dollars does {a} need?")),
        [f"The {x} cost {first:$}.", f"The {y} cost {second:$}.", f"The fruit costs {fruit:$}.",
         f"With the cake it is {total:$}."],
        total)

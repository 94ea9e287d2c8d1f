"""Pairs, dozens, doubling, sequences, conversions and working backwards."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, TIMES, amount, capital, maybe, nouns, spelled, story, tell
from .wordings import people, person

_PAIRED = nouns("sock, shoe, glove, boot, sandal, earring, mitten, slipper, skate, ski, drumstick, chopstick")
_TIMES_UP = nouns("page, push-up, marble, dollar/dollars, meter, seed, leaf/leaves, visitor, ticket, cell")


@family
def pairs_of_things(d: Draw) -> Story:
    a, x = person(d), d.pick(_PAIRED)
    n, lost = amount(d, (2, 20), (15, 90)), d.int(2, 9)
    single = calc(n, "*", 2)
    left = calc(single, "-", lost)
    d.require(left.value > 1)
    return story(
        tell(d, (
            f"{a} has {n} pairs of {x}. {a.They} loses {lost} single {x}. How many single {x} are left?",
            f"From {n} pairs of {x}, {lost} {x} get lost. How many {x} does {a} still have?",
            f"{lost} {x} out of {a}'s {n} pairs are torn. How many good {x} are there?",
            f"How many single {x} does {a} have if {a.their} drawer holds {n} pairs and {lost} {x} are taken out?")),
        [f"The pairs are {single} {x}.", f"Then {left} {x} are left."], left)


@family
def dozens_of_things(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FOODS + things.FLOWERS + things.DESK)
    n, used = d.int(2, 30), amount(d, (2, 20), (10, 120))
    total = calc(n, "*", 12)
    left = calc(total, "-", used)
    d.require(left.value > 1)
    return story(
        tell(d, (f"{a} buys {spelled(d, n)} dozen {x}.", f"There are {n} dozen {x} in {a}'s basket.", f"{a} gets {n} boxes with a dozen {x} in each."),
             (f"{a.They} uses {used} of them.", f"{used} of the {x} are given away.", f"After a day {used} {x} are gone."),
             (f"How many {x} are left?", f"How many {x} does {a} still have?", f"How many {x} remain?")),
        [f"There are {total} {x}.", f"Then {left} are left."], left)


@family
def doubles_every_day(d: Draw) -> Story:
    a, x = person(d), d.pick(_TIMES_UP)
    n, k = d.int(2, 150), d.number_from((2, 2, 3))
    t = d.pick(["day", "week", "month", "year"])
    second = calc(n, "*", k)
    third = calc(second, "*", k)
    fourth = calc(third, "*", k)
    return story(
        tell(d, (
            f"In the first {t} there are {n} {x}. Every {t} the number is {TIMES[k]} that of the {t} before. How many {x} are there in the fourth {t}?",
            f"{a} counts {x}: {n} at first, and each {t} {TIMES[k]} as many as the {t} before. How many is it in the fourth {t}?",
            f"The number of {x} grows to {TIMES[k]} its size each {t}. It starts with {n} in the first {t}. What is it in the fourth?",
            f"With {n} {x} in {t} 1 and {TIMES[k]} as many in each {t} as in the one before, how many {x} are there in {t} 4?")),
        [f"The second {t} has {second} {x}.", f"The third {t} has {third} {x}.", f"The fourth {t} has {fourth} {x}."], fourth)


@family
def halves_again(d: Draw) -> Story:
    a, x = person(d), d.pick(things.COLLECTED + things.FOODS)
    part = d.int(2, 200)
    n = part * 8
    first = calc(n, "/", 2)
    second = calc(first, "/", 2)
    third = calc(second, "/", 2)
    t = d.pick(["day", "morning", "week", "evening"])
    return story(
        tell(d, (
            f"{a} has {n} {x}. Each {t} {a.they} gives away half of those that are left. How many {x} does {a} have after three {t}s?",
            f"On each of three {t}s, half of {a}'s {x} are eaten or lost. {a.They} began with {n}. How many are left?",
            f"From {n} {x}, half disappear every {t}. How many {x} does {a} have after the third {t}?",
            f"After three {t}s, how many of {a}'s {n} {x} are left if half of the rest goes each {t}?")),
        [f"After one {t} it is {first}.", f"After two it is {second}.", f"After three it is {third}."], third)


@family
def back_from_the_end(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(things.COLLECTED + things.FOODS)
    k, plus, end = d.number_from((2, 3, 4, 5)), d.int(2, 40), d.int(3, 90)
    d.require(end > plus + 1)
    rest = calc(end, "-", plus)
    n = calc(rest, "*", k)
    return story(
        tell(d, (f"{a} kept {PARTS[k]} of {a.their} {x} and gave the others to {b}.", f"Of {a}'s {x}, {b} got all but {PARTS[k]}.",
                 f"{b} received {a}'s {x} except for {PARTS[k]} of them."),
             (f"Then {a} found {plus} more and had {end}.", f"After {a} had bought {plus} new ones there were {end}.", f"With {plus} new ones {a} has {end} now."),
             (f"How many {x} did {a} have at first?", f"With how many {x} did {a} begin?", f"How many {x} were there before {b} got any?")),
        [f"Without the new ones {a} had {rest}.", f"At first {a} had {n} {x}."], n)


@family
def think_of_a_number(d: Draw) -> Story:
    a = person(d)
    n, k, more, less = d.int(2, 60), d.int(2, 9), d.int(2, 50), d.int(2, 50)
    kind = d.pick(["plus", "minus"])
    times = n * k
    d.require(kind == "plus" or times > less + 1)
    if kind == "plus":
        end = times + more
        back = calc(end, "-", more)
        did = (f"adds {more}", f"add {more}", f"{more} is added")
    else:
        end = times - less
        back = calc(end, "+", less)
        did = (f"subtracts {less}", f"subtract {less}", f"{less} is subtracted")
    result = calc(back, "/", k)
    return story(
        tell(d, (
            f"{a} thinks of a number, multiplies it by {k} and {did[0]}. The result is {end}. What is the number?",
            f"A number is multiplied by {k}, then {did[2]}. That gives {end}. Which number is it?",
            f"If you multiply {a}'s number by {k} and {did[1]}, you get {end}. What is {a}'s number?",
            f"What number did {a} think of if {k} times the number gives {end} after {did[2]}?")),
        [f"Before that it was {back}.", f"The number is {result}."], result)


@family
def money_spent_backwards(d: Draw) -> Story:
    a, x, y = person(d), *d.pick_two(things.READABLE + things.GOODS)
    left, p, q = d.int(2, 60), d.int(2, 40), d.int(2, 40)
    cost = calc(p, "+", q)
    start = calc(left, "+", cost)
    return story(
        tell(d, (f"{a} paid ${p} for {x.a} and ${q} for {y.a}.", f"{x.a.capitalize()} for ${p} and {y.a} for ${q} were bought by {a}.", f"{a} bought {x.a} for ${p}. {a.They} also bought {y.a} for ${q}."),
             maybe(d, f"The shop is {d.int(2, 9)} blocks away."),
             (f"Now {a.they} has ${left} left.", f"Then ${left} were left.", f"After that there were ${left} in {a.their} wallet."),
             (f"How much money did {a} have before?", f"With how many dollars did {a} start?", f"How much did {a} have at first?")),
        [f"{a} paid {cost:$}.", f"Before it was {start:$}."], start)


@family
def weeks_and_days(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FOODS + things.HANDMADE + things.READABLE)
    weeks, per, given = d.int(2, 12), d.int(2, 20), d.int(2, 60)
    days = calc(weeks, "*", 7)
    total = calc(days, "*", per)
    left = calc(total, "-", given)
    d.require(left.value > 1)
    return story(
        tell(d, (f"{a} gets {per} {x} every day.", f"Each day brings {a} {per} {x}.", f"A day's work gives {a} {per} {x}."),
             (f"This goes on for {spelled(d, weeks)} weeks.", f"It lasts {weeks} weeks without a break.", f"{a.They} keeps this up for {weeks} weeks."),
             (f"{a.They} gives away {given} of them.", f"{given} of all these go to friends.", f"In that time {given} of the {x} are used."),
             (f"How many {x} does {a} have left?", f"How many {x} are left?", f"What number of {x} remains?")),
        [f"It lasts {days} days.", f"That brings {total} {x}.", f"Then {left} are left."], left)


@family
def hours_and_minutes(d: Draw) -> Story:
    a, verb = person(d), d.pick(["works", "drives", "studies", "practices", "walks", "plays", "paints"])
    h, m, n = d.int(1, 9), d.int(5, 55, 5), d.int(2, 7)
    hours = calc(h, "*", 60)
    minutes = calc(hours, "+", m)
    total = calc(minutes, "*", n)
    word = "hour" if h == 1 else "hours"
    return story(
        tell(d, (
            f"{a} {verb} {h} {word} and {m} minutes a day. How many minutes is that in {n} days?",
            f"Every day {a} {verb} for {h} {word} and {m} minutes. How many minutes does {a.they} spend in {n} days?",
            f"How many minutes are {n} days if {a} {verb} {h} {word} and {m} minutes on each?",
            f"On each of {n} days {a} {verb} {h} {word} {m} minutes. What is the total in minutes?")),
        [f"The hours are {hours} minutes.", f"A day has {minutes} minutes.", f"In {n} days it is {total} minutes."], total)


@family
def feet_and_inches(d: Draw) -> Story:
    a, x = person(d), d.pick(things.MATERIALS)
    big, small, f = d.pick([("feet", "inches", 12), ("yards", "feet", 3), ("meters", "centimeters", 100), ("kilometers", "meters", 1000)])
    n, piece = d.int(2, 40), d.number_from((2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 18, 20, 25, 40, 50))
    total = calc(n, "*", f)
    d.require(total.value % piece == 0 and total.value > piece)
    result = calc(total, "/", piece)
    return story(
        tell(d, (
            f"{a} has {n} {big} of {x} and cuts pieces of {piece} {small}. How many pieces are there?",
            f"How many pieces of {piece} {small} come from {n} {big} of {x}?",
            f"Pieces of {x} should be {piece} {small} long. {a} has {n} {big}. How many pieces is that?",
            f"A length of {n} {big} of {x} is cut into parts of {piece} {small} each. What is the number of parts?")),
        [f"It is {total} {small}.", f"The number of pieces is {result}."], result)


@family
def arithmetic_rows(d: Draw) -> Story:
    x, n, step = d.pick(nouns("can, seat, brick, card, cup, box, log, tile, block, pipe")), d.int(2, 40), d.int(2, 12)
    second = calc(n, "+", step)
    third = calc(second, "+", step)
    fourth = calc(third, "+", step)
    total = calc(n, "+", second, "+", third, "+", fourth)
    return story(
        tell(d, (
            f"Four rows of {x} form a pattern. The first row has {n}, and each row has {step} more than the one before. How many {x} are there?",
            f"The first of four rows has {n} {x}. Every next row has {step} more. How many {x} are in all four rows?",
            f"How many {x} are in four rows if the first has {n} and each row after it {step} more than the last?",
            f"{capital(x.many)} are laid in four rows: {n} in the first, and {step} more in each following row. What is the total?")),
        [f"The second row has {second}.", f"The third row has {third}.", f"The fourth row has {fourth}.", f"In all there are {total} {x}."], total)


@family
def two_fractions_gone(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FOODS + things.GOODS + things.DESK)
    k, j, part = d.number_from((2, 3, 4, 5)), d.number_from((2, 3, 4)), d.int(2, 30)
    n = k * j * part
    first = calc(n, "/", k)
    rest = calc(n, "-", first)
    d.require(rest.value % j == 0)
    second = calc(rest, "/", j)
    left = calc(rest, "-", second)
    d.require(left.value > 1)
    return story(
        tell(d, (f"{a} has {n} {x} for sale.", f"A stand of {a} offers {n} {x}.", f"In the morning {a} brings {n} {x} to the market."),
             (f"{capital(PARTS[k])} of them are sold before noon, and {PARTS[j]} of the rest after noon.",
              f"First {a.they} sells {PARTS[k]} of them, later {PARTS[j]} of those that remain.",
              f"Before lunch {PARTS[k]} of the {x} are sold. After lunch it is {PARTS[j]} of the remaining ones."),
             (f"How many {x} are not sold?", f"How many {x} are left in the evening?", f"How many {x} does {a} take home?")),
        [f"First {first} are sold.", f"Then {rest} are left.", f"Later {second} are sold.", f"In the evening {left} are left."], left)


@family
def budget_for_gifts(d: Draw) -> Story:
    a, x = person(d), d.pick(things.GOODS + things.READABLE)
    n, p, spare = d.int(2, 15), d.int(3, 30), d.int(2, 29)
    d.require(spare < p)
    money = n * p + spare
    cost = calc(n, "*", p)
    left = calc(money, "-", cost)
    return story(
        tell(d, [(f"{a} has ${money}.", f"There are ${money} in {a}'s wallet.", f"{a} may spend ${money}."),
                 (f"{x.a.capitalize()} costs ${p}.", f"The price of {x.a} is ${p}.", f"A shop sells {x} at ${p} each.")],
             (f"{a} buys as many {x} as possible. How many dollars are left?", f"How much is left if {a} buys as many {x} as {a.they} can?",
              f"How many dollars remain when {a} has bought all the {x} that the money allows?")),
        [f"{n} {x} cost {cost:$}.", f"The rest is {left:$}."], left)


@family
def decimal_unit_price(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FOODS + things.DESK + things.READABLE)
    price, n, bill = d.price(1, 12), d.int(2, 12), d.number_from((10, 20, 50, 100))
    cost = calc(price, "*", n)
    change = calc(bill, "-", cost)
    d.require(cost.value < bill)
    return story(
        tell(d, [(f"{x.a.capitalize()} costs ${price}.", f"The price of {x.a} is ${price}.", f"At a shop {x} are ${price} each."),
                 (f"{a} pays with ${bill}.", f"{a} hands over ${bill}.", f"{a} has ${bill}.")],
             (f"How much change does {a} get for {n} {x}?", f"{a} takes {n} {x}. How many dollars come back?", f"How much is left after {a} has bought {n} {x}?")),
        [f"The {x} cost {cost:$}.", f"The change is {change:$}."], change)


@family
def decimal_parts(d: Draw) -> Story:
    a, x, unit = person(d), d.pick(things.MATERIALS), d.pick(["meters", "feet", "yards"])
    piece, n = d.decimal(1, 9), d.int(2, 15)
    d.require(piece % 1 != 0)
    total = calc(piece, "*", n)
    extra = d.decimal(1, 20)
    whole = calc(total, "+", extra)
    d.require(extra > 1 and piece > 1)
    return story(
        tell(d, (f"{a} needs {n} pieces of {x}, each {piece} {unit} long, and one of {extra} {unit}.",
                 f"{n} pieces of {piece} {unit} and one piece of {extra} {unit} are cut from {a}'s {x}.",
                 f"From a roll of {x} {a} takes one piece of {extra} {unit} and {n} pieces of {piece} {unit} each."),
             (f"How many {unit} of {x} is that?", f"How much {x} does {a} need in all, in {unit}?", f"What is the total length in {unit}?")),
        [f"The {n} pieces are {total} {unit}.", f"With the other one it is {whole} {unit}."], whole)


@family
def profit_per_piece(d: Draw) -> Story:
    a, x = person(d), d.pick(things.HANDMADE + things.GOODS)
    cost, more, n, fee = d.int(2, 30), d.int(2, 25), d.int(3, 60), d.int(5, 80)
    price = cost + more
    gain = calc(price, "-", cost)
    total = calc(gain, "*", n)
    end = calc(total, "-", fee)
    d.require(end.value > 1)
    return story(
        tell(d, [(f"It costs {a} ${cost} to make {x.a}.", f"For {x.a} {a} spends ${cost}.", f"The material of {x.a} costs {a} ${cost}."),
                 (f"{a} sells {x} for ${price} each.", f"A customer pays {a} ${price} for {x.a}.", f"The price of {x.a} at {a}'s shop is ${price}.")],
             (f"The stand costs ${fee}, and {n} {x} are sold.", f"{a} sells {n} {x} and pays ${fee} for the place.", f"With ${fee} of rent to pay, {a} sells {n}."),
             (f"What is {a}'s profit?", "How many dollars is the profit?", f"How much does {a} earn after all costs?")),
        [f"One brings {gain:$}.", f"{n} bring {total:$}.", f"The profit is {end:$}."], end)


@family
def every_third_thing(d: Draw) -> Story:
    a, x = person(d), d.pick(nouns("ticket, card, egg, visitor, page, box, bottle, customer, balloon, tile"))
    k, n, worth = d.int(3, 12), d.int(3, 40), d.int(2, 15)
    ordinal = {3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth", 10: "tenth", 11: "eleventh", 12: "twelfth"}[k]
    total = k * n
    count = calc(total, "/", k)
    value = calc(count, "*", worth)
    return story(
        tell(d, (
            f"Every {ordinal} {x.one} of {total} brings {worth} points. How many points is that?",
            f"There are {total} {x}. Each {ordinal} one is worth {worth} points and the others nothing. How many points does {a} get for all?",
            f"{a} counts {total} {x} and gets {worth} points for every {ordinal} one. What is the score?",
            f"How many points do {total} {x} bring {a} if every {ordinal} one gives {worth}?")),
        [f"The number of such {x} is {count}.", f"They bring {value} points."], value)


@family
def three_kinds_in_total(d: Draw) -> Story:
    a, x = person(d), d.pick(things.GOODS + things.COLLECTED)
    c1, c2 = d.pick_two(things.COLORS[:5])
    c3 = d.pick(things.COLORS[5:])
    n, k, third = d.int(4, 60), d.number_from((2, 3, 4)), d.int(3, 90)
    second = calc(n, "*", k)
    both = calc(n, "+", second)
    total = both.value + third
    rest = calc(total, "-", both)
    return story(
        tell(d, (f"{a} has {total} {x} in {c1}, {c2} and {c3}.", f"Of {a}'s {total} {x} some are {c1}, some {c2} and some {c3}.", f"There are {total} {x} in {a}'s shop, all {c1}, {c2} or {c3}."),
             [(f"{n} of them are {c1}.", f"The number of {c1} ones is {n}."),
              (f"There are {TIMES[k]} as many {c2} ones as {c1} ones.", f"The {c2} ones are {k} times the {c1} ones in number.")],
             (f"How many are {c3}?", f"How many {c3} {x} are there?", f"What is the number of {c3} {x}?")),
        [f"There are {second} {c2} ones.", f"These two kinds are {both}.", f"The number of {c3} {x} is {rest}."], rest)

"""Events, tickets and parties."""

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, cost, grouped, people, person, several, shuffled, tell

GOODS = nouns(words.SMALL_GOODS)
MEALS = nouns(words.MEALS)


@family
def tickets_total(d: Draw) -> Story:
    a, show, n, p = person(d), d.pick(words.SHOWS), d.int(2, 40), cost(d, 4, 60)
    total = calc(n, "*", p)
    return Story(
        tell(d, (
            f"A ticket for a {show} costs ${p}. How much do {n} tickets cost?",
            f"{a} buys {n} tickets for a {show} at ${p} each. What does {a} pay?",
            f"{n} people go to a {show}. Everybody pays ${p}. How many dollars is that?",
            f"How much are {d.number_words(n)} tickets for a {show} if one ticket is ${p}?")),
        [f"The {n} tickets cost {total:$}."],
        total)


@family
def child_and_adult_entry(d: Draw) -> Story:
    n, p, m, q, place = d.int(2, 60), cost(d, 5, 40), d.int(2, 60), cost(d, 2, 25), d.pick(words.ADMISSIONS)
    d.require(p > q)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             shuffled(d,
                      (f"At {place} an adult pays ${p} and a child pays ${q}.",
                       f"Entry to {place} is ${p} for adults and ${q} for children.",
                       f"Tickets for {place} cost ${q} for a child and ${p} for an adult."),
                      (f"A group has {n} adults and {m} children.",
                       f"There are {m} children and {n} adults in a group.", f"{n} adults come with {m} children."),
                      stray=(f"The bus ride takes {d.int(20, 90)} minutes.",)),
             ("How much does the whole group pay?", "What is the cost for all of them?",
              "How many dollars do they pay altogether?")),
        [f"The adults pay {first:$}.", f"The children pay {second:$}.", f"Together they pay {total:$}."],
        total)


@family
def family_saves_with_pass(d: Draw) -> Story:
    a, visits, p, n = adult(d), d.int(3, 20), d.int(5, 30), d.int(2, 6)
    each = calc(n, "*", p)
    single = calc(each, "*", visits)
    price = d.int(50, 600, 10)
    saved = calc(single, "-", price)
    several(d, saved)
    place = d.pick(words.ADMISSIONS)
    return Story(
        tell(d,
             (f"A ticket for {place} costs ${p}. A year's pass for the whole family costs ${price}.",
              f"The family pass for {place} is ${price} a year, and a single ticket is ${p}.",
              f"{place} asks ${p} for one ticket or ${price} for a yearly pass for a family."),
             (f"{a}'s family of {n} goes there {visits} times in a year.",
              f"There are {n} people in {a}'s family, and all of them go {visits} times that year.",
              f"In one year all {n} members of {a}'s family visit it {visits} times."),
             d.maybe((f"It is {d.int(3, 60)} miles away.", f"It is open {d.int(5, 7)} days a week.")),
             ("How much does the pass save?", f"How many dollars does {a}'s family save with the pass?",
              "How much cheaper is the pass than single tickets?")),
        [f"One visit costs {each:$}.", f"All visits cost {single:$}.", f"The pass saves {saved:$}."],
        saved)


@family
def seats_sold_rows(d: Draw) -> Story:
    show, rows, seats = d.pick(words.SHOWS), d.int(5, 40), d.int(8, 30)
    percent, p = d.number_from((10, 20, 25, 40, 50, 60, 75, 80, 90)), d.int(3, 30)
    total = calc(rows, "*", seats)
    sold = calc(total, "*", percent, "/", 100)
    money = calc(sold, "*", p)
    return Story(
        tell(d,
             (f"A theater has {rows} rows with {seats} seats each.",
              f"There are {rows} rows in a theater, and every row has {seats} seats.",
              f"In each of the {rows} rows of a theater there are {seats} seats."),
             (f"For a {show}, {percent}% of the seats are sold at ${p} each.",
              f"{percent} percent of the seats for a {show} are sold. A seat costs ${p}.",
              f"At a price of ${p}, {percent}% of all seats are sold for a {show}."),
             d.maybe((f"It begins at {d.int(5, 9)} pm.", f"It lasts {d.int(60, 180)} minutes.")),
             ("How much money does that bring?", "What is the income from the tickets?",
              "How many dollars are taken in?")),
        [f"There are {total} seats.", f"Of these {sold} are sold.", f"They bring {money:$}."],
        money)


@family
def tickets_left_over_days(d: Draw) -> Story:
    show, n, first, k = d.pick(words.SHOWS), d.int(100, 2000, 10), d.int(10, 200), d.number_from((2, 3))
    second = calc(first, "*", k)
    sold = calc(first, "+", second)
    left = calc(n, "-", sold)
    several(d, left)
    i = d.pick(range(6))
    day1, day2 = words.WEEK[i:i + 2]
    return Story(
        tell(d,
             (f"There are {grouped(d, n)} tickets for a {show}.", f"For a {show} {n} tickets are printed.",
              f"A {show} has {n} tickets to sell."),
             (f"{first} are sold on {day1} and {words.TIMES[k]} as many on {day2}.",
              f"On {day1} people buy {first}, and on {day2} {words.TIMES[k]} as many.",
              f"{day2} brings {words.TIMES[k]} as many sales as {day1}, when {first} are sold."),
             d.maybe((f"It begins at {d.int(5, 9)} pm.", f"A ticket costs ${d.int(5, 50)}.")),
             ("How many tickets are left?", "How many tickets can still be sold?",
              "How many tickets remain after both days?")),
        [f"On {day2} it is {second} tickets.", f"Both days make {sold} tickets.", f"So {left} tickets are left."],
        left)


@family
def money_raised_goal(d: Draw) -> Story:
    a, cause, x, n, p, goal = adult(d), d.pick(words.CAUSES), d.pick(nouns(words.BAKED_GOODS) + nouns(words.PRODUCTS)), d.int(10, 150), d.int(2, 9), d.int(100, 2000, 50)
    raised = calc(n, "*", p)
    left = calc(goal, "-", raised)
    several(d, left)
    return Story(
        tell(d,
             (f"A group wants to collect ${goal} for {cause}.", f"The goal of a sale is ${goal} for {cause}.",
              f"For {cause}, {a}'s group needs ${grouped(d, goal)}."),
             (f"They sell {n} {x} at ${p} each.", f"{n} {x} are sold for ${p} each.",
              f"People buy {n} {x} from them at ${p} apiece."),
             ("How much money is still missing?", "How much more do they need?",
              "How many dollars are left to collect?")),
        [f"The sale brings {raised:$}.", f"So {left:$} is still missing."],
        left)


@family
def donations_matched(d: Draw) -> Story:
    (a, b, c), cause, n, more = people(d, 3), d.pick(words.CAUSES), d.int(10, 200), d.int(5, 100)
    k = d.number_from((2, 3))
    second = calc(n, "+", more)
    third = calc(k, "*", n)
    total = calc(n, "+", second, "+", third)
    doubled = calc(total, "*", 2)
    ask = d.pick((True, False))
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} gives ${n} for {cause}.", f"For {cause}, {a} donates ${n}.",
                       f"The gift of {a} for {cause} is ${n}."),
                      (f"{b} gives ${more} more than {a}.", f"{a} gives ${more} less than {b}.",
                       f"{b}'s gift is ${more} higher than that of {a}."),
                      (f"{c} gives {words.TIMES[k]} as much as {a}.",
                       f"The gift of {c} is {words.TIMES[k]} that of {a}.",
                       f"{c} donates {words.TIMES[k]} the amount of {a}.")),
             ("A bank doubles the sum. How much is there in the end?",
              "Then a company doubles the total. How much money is that?",
              "With a bank that doubles the total, how many dollars are collected?") if ask else
             ("How much do they give together?", "What is the sum of the three gifts?",
              "How many dollars is that in all?")),
        [f"{b} gives {second:$}.", f"{c} gives {third:$}.",
         f"Together it is {total:$}."] + ([f"Doubled it is {doubled:$}."] if ask else []),
        doubled if ask else total)


@family
def party_costs_per_guest(d: Draw) -> Story:
    a, party, n, food, gift = adult(d), d.pick(words.PARTIES), d.int(8, 150), d.int(4, 40), d.int(2, 10)
    hall = d.int(100, 1500, 50)
    each = calc(food, "+", gift)
    guests = calc(n, "*", each)
    total = calc(guests, "+", hall)
    return Story(
        tell(d,
             (f"{a} plans a {party} for {n} guests.", f"{n} guests will come to {a}'s {party}.",
              f"For a {party}, {a} invites {n} guests."),
             shuffled(d,
                      (f"The food costs ${food} per guest.", f"Each guest eats for ${food}.",
                       f"For food, {a} pays ${food} a guest."),
                      (f"Every guest gets a small gift for ${gift}.", f"A gift of ${gift} is bought for each guest.",
                       f"For each guest there is a ${gift} gift."),
                      (f"The room costs ${hall}.", f"Renting the room takes ${hall}.",
                       f"${hall} must be paid for the room."),
                      stray=(f"The party lasts {d.int(3, 8)} hours.",)),
             (f"How much does {a} pay in all?", "What is the total cost?", "How many dollars does everything cost?")),
        [f"A guest costs {each:$}.", f"All guests cost {guests:$}.", f"In all it is {total:$}."],
        total)


@family
def guests_who_come(d: Draw) -> Story:
    a, party, n = adult(d), d.pick(words.PARTIES), d.int(20, 300, 10)
    percent, more = d.number_from((10, 20, 25, 30, 40, 60, 70, 75, 80, 90)), d.int(2, 25)
    came = calc(n, "*", percent, "/", 100)
    total = calc(came, "+", more)
    return Story(
        tell(d, (
            f"{a} invites {n} people to a {party}. {percent}% of them come, and they bring {more} others. How many "
            "people are there?",
            f"Of {n} people invited to {a}'s {party}, {percent} percent arrive. {more} people come without an "
            f"invitation. How many are at the {party}?",
            f"How many guests are at a {party} when {percent}% of {n} invited people come along with {more} more?")),
        [f"Of the invited people {came} come.", f"In all there are {total} people."],
        total)


@family
def tables_needed(d: Draw) -> Story:
    party, n, seats, count = d.pick(words.PARTIES), d.int(10, 150), d.int(4, 12), d.int(4, 30)
    m = seats * count - n
    d.require(m > 4)
    total = calc(n, "+", m)
    tables = calc(total, "/", seats)
    several(d, tables)
    x, y = d.pick((("adults", "children"), ("friends", "relatives"), ("men", "women"),
                   ("guests from town", "guests from abroad")))
    p = d.int(3, 30)
    ask = d.pick((True, False))
    money = calc(tables, "*", p)
    return Story(
        tell(d,
             (f"{n} {x} and {m} {y} come to a {party}.", f"At a {party} there are {n} {x} and {m} {y}.",
              f"A {party} has {n} {x} and {m} {y} as guests."),
             (f"They sit at tables of {seats}, and each table is decorated for ${p}. How much does the decoration cost?",
              f"Each table has {seats} seats and gets flowers for ${p}. What do all the flowers cost?",
              f"{seats} guests sit at a table. Renting a table costs ${p}. How many dollars is that for all tables?") if ask else
             (f"How many tables of {seats} do they fill?",
              f"If {seats} people sit at each table, how many tables are needed?",
              f"Tables have {seats} seats. How many tables is that?")),
        [f"There are {total} guests.", f"They need {tables} tables."] + ([f"That costs {money:$}."] if ask else []),
        money if ask else tables)


@family
def gift_bags(d: Draw) -> Story:
    a, (x, y), bags, n, m = adult(d), d.pick_two(GOODS), d.int(5, 40), d.int(2, 6), d.int(2, 6)
    p, q = d.int(1, 4), d.int(1, 5)
    first, second = calc(n, "*", p), calc(m, "*", q)
    each = calc(first, "+", second)
    total = calc(each, "*", bags)
    return Story(
        tell(d,
             (f"For a party {a} fills {bags} bags with {n} {x} and {m} {y} each.",
              f"{a} makes {bags} gift bags. In each of them are {n} {x} and {m} {y}.",
              f"Each of {bags} gift bags from {a} gets {n} {x} and {m} {y}."),
             shuffled(d, (f"One {x.one} costs ${p}.", f"The {x} are ${p} each.", f"{x.a} costs ${p}."),
                      (f"One {y.one} costs ${q}.", f"The {y} are ${q} each.", f"{y.a} costs ${q}.")),
             ("How much do all the bags cost?", f"What does {a} pay in total?",
              "How many dollars is that for all bags?")),
        [f"The {x} in a bag cost {first:$}.", f"The {y} in a bag cost {second:$}.", f"A bag costs {each:$}.",
         f"All bags cost {total:$}."],
        total)


@family
def rides_and_tokens(d: Draw) -> Story:
    a, tokens, ride, n, game, m = person(d), d.int(20, 90), d.int(2, 8), d.int(2, 6), d.int(1, 5), d.int(2, 8)
    first, second = calc(n, "*", ride), calc(m, "*", game)
    used = calc(first, "+", second)
    left = calc(tokens, "-", used)
    several(d, left)
    token = "1 token" if game == 1 else f"{game} tokens"
    return Story(
        tell(d,
             (f"At a fair {a} has {tokens} tokens.", f"{a} buys {tokens} tokens at a fair.",
              f"{a} comes to the fair with {tokens} tokens."),
             (f"A ride takes {ride} tokens and a game takes {token}.",
              f"For a game you need {token}, for a ride {ride} tokens.",
              f"It takes {ride} tokens to ride and {token} to play a game."),
             (f"{a} goes on {n} rides and plays {m} games. How many tokens are left?",
              f"How many tokens does {a} have after {n} rides and {m} games?",
              f"After {m} games and {n} rides, how many tokens remain?")),
        [f"The rides take {first} tokens.", f"The games take {second} tokens.", f"Together it is {used} tokens.",
         f"So {left} tokens are left."],
        left)


@family
def visitors_by_day(d: Draw) -> Story:
    place, n, k, more = d.pick(words.ADMISSIONS), d.int(20, 400), d.number_from((2, 3)), d.int(10, 200)
    i = d.pick(range(5))
    day1, day2, day3 = words.WEEK[i:i + 3]
    second = calc(n, "*", k)
    third = calc(second, "+", more)
    total = calc(n, "+", second, "+", third)
    return Story(
        tell(d,
             shuffled(d,
                      (f"On {day1}, {n} people visited {place}.", f"{n} visitors came to {place} on {day1}.",
                       f"The number of people at {place} on {day1} was {n}."),
                      (f"On {day2} it was {words.TIMES[k]} as many as on {day1}.",
                       f"{day2} had {words.TIMES[k]} as many visitors as {day1}.",
                       f"{words.TIMES[k]} as many people as on {day1} came on {day2}."),
                      (f"On {day3} there were {more} more than on {day2}.",
                       f"{day3} had {more} more visitors than {day2}.",
                       f"{more} more people came on {day3} than on {day2}.")),
             ("How many visitors came in the three days?", "How many people is that in all?",
              "What is the total number of visitors?")),
        [f"On {day2} it was {second} people.", f"On {day3} it was {third} people.", f"In all it was {total} people."],
        total)


@family
def equal_remaining_days(d: Draw) -> Story:
    n, k, days, each = d.int(20, 150), d.number_from((2, 3)), d.int(3, 5), d.int(20, 200)
    place = d.pick(("a museum", "a pool", "a fair", "an exhibition", "a tower", "a toll road"))
    double = calc(n, "*", k)
    two = calc(n, "+", double)
    total = two.value + days * each
    rest = calc(total, "-", two)
    answer = calc(rest, "/", days)
    return Story(
        tell(d,
             (f"In {days + 2} days {total} people came to {place}.",
              f"{place} had {total} visitors in {days + 2} days.",
              f"The number of visitors of {place} in {days + 2} days was {total}."),
             (f"On the first day it was {n}, on the second day {words.TIMES[k]} as many.",
              f"{n} came on the first day and {words.TIMES[k]} as many on the second.",
              f"The second day had {words.TIMES[k]} as many as the first, when {n} came."),
             (f"On the other {days} days equally many came. How many were there on each of these days?",
              f"All the other {days} days had the same number of visitors. How many visitors did each of them have?",
              f"How many came on each of the remaining {days} days, if it was the same number each day?")),
        [f"On the second day it was {double}.", f"The first two days had {two}.", f"The others had {rest}.",
         f"Each of them had {answer}."],
        answer)


@family
def ticket_price_unknown(d: Draw) -> Story:
    a, show, n, p, snack = person(d), d.pick(words.SHOWS), d.int(2, 9), d.int(4, 40), d.int(3, 60)
    total = n * p + snack
    tickets = calc(total, "-", snack)
    each = calc(tickets, "/", n)
    return Story(
        tell(d, (
            f"{a} buys {n} tickets for a {show} and snacks for ${snack}. {a} pays ${total} in all. How much is one "
            "ticket?",
            f"{a} spent ${total} at a {show}: ${snack} for snacks and the rest for {n} tickets. What did a ticket cost?",
            f"What is the price of a ticket for a {show} if {n} tickets and ${snack} for snacks make ${total}?",
            f"{n} tickets for a {show} together with snacks cost ${total}. The snacks were ${snack}. How many "
            "dollars was each ticket?")),
        [f"The tickets cost {tickets:$}.", f"One ticket costs {each:$}."],
        each)


@family
def early_bird_tickets(d: Draw) -> Story:
    show, p, off, n, m = d.pick(words.SHOWS), d.int(10, 60), d.int(2, 9), d.int(5, 200), d.int(5, 200)
    low = calc(p, "-", off)
    first, second = calc(n, "*", low), calc(m, "*", p)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             (f"A ticket for a {show} costs ${p}, but early buyers pay ${off} less.",
              f"Early buyers get ${off} off the ${p} that a ticket for a {show} costs.",
              f"The price of a ticket for a {show} is ${p}. Those who buy early save ${off} on each."),
             (f"{n} tickets are sold early and {m} later.", f"There are {n} early buyers and {m} later ones.",
              f"{m} people pay the full price and {n} buy early."),
             ("How much money do the tickets bring?", "What is the total income?", "How many dollars are taken in?")),
        [f"An early ticket costs {low:$}.", f"The early tickets bring {first:$}.",
         f"The later tickets bring {second:$}.", f"In all it is {total:$}."],
        total)


@family
def performers_on_stage(d: Draw) -> Story:
    x, y, z = d.pick((("dancers", "singers", "drummers"), ("clowns", "acrobats", "jugglers"),
                      ("violins", "flutes", "trumpets"), ("actors", "dancers", "musicians")))
    n, fewer, k = d.int(8, 60), d.int(2, 30), d.number_from((2, 3))
    second = calc(n, "-", fewer)
    several(d, second)
    third = calc(k, "*", second)
    total = calc(n, "+", second, "+", third)
    show = d.pick(words.SHOWS)
    return Story(
        tell(d,
             shuffled(d,
                      (f"In a {show} there are {n} {x}.", f"A {show} has {n} {x}.", f"{n} {x} take part in a {show}."),
                      (f"There are {fewer} fewer {y} than {x}.",
                       f"The number of {y} is {fewer} less than that of the {x}.",
                       f"The {x} are {fewer} more than the {y}."),
                      (f"There are {words.TIMES[k]} as many {z} as {y}.",
                       f"The {z} are {words.TIMES[k]} as many as the {y}.",
                       f"For the {z}, the number is {words.TIMES[k]} that of the {y}.")),
             (f"How many {x}, {y} and {z} are there in all?", "How many is that altogether?",
              f"What is the total number of {x}, {y} and {z}?")),
        [f"There are {second} {y}.", f"There are {third} {z}.", f"In all there are {total}."],
        total)


@family
def group_discount_tickets(d: Draw) -> Story:
    a, n, p, percent = adult(d), d.int(10, 80), d.int(5, 40), d.number_from((5, 10, 15, 20, 25, 30))
    place = d.pick(words.ADMISSIONS)
    full = calc(n, "*", p)
    off = calc(full, "*", percent, "/", 100)
    total = calc(full, "-", off)
    return Story(
        tell(d,
             (f"A ticket for {place} costs ${p}. Groups get {percent}% off.",
              f"Groups pay {percent} percent less than the usual ${p} per person at {place}.",
              f"At {place} there is a discount of {percent}% for groups. The usual price is ${p} a person."),
             (f"How much does a group of {n} pay?",
              f"{a} goes there with a group; they are {n} people. What do they pay?",
              f"What is the price for {a}'s group of {n} people?")),
        [f"Without the discount it is {full:$}.", f"The discount is {off:$}.", f"The group pays {total:$}."],
        total)


@family
def food_stall_at_event(d: Draw) -> Story:
    show, (x, y), n, p = d.pick(words.SHOWS), d.pick_two(MEALS), d.int(10, 150), d.int(2, 9)
    k, q = d.number_from((2, 3)), d.int(2, 9)
    count = calc(n, "*", k)
    first, second = calc(n, "*", p), calc(count, "*", q)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             (f"At a {show}, a stall sells {x} for ${p} and {y} for ${q}.",
              f"A stall at a {show} has two things: {x} at ${p} each and {y} at ${q} each.",
              f"{x} cost ${p} and {y} cost ${q} at the stall of a {show}."),
             (f"{n} {x} and {words.TIMES[k]} as many {y} are sold.",
              f"People buy {n} {x}. They buy {words.TIMES[k]} as many {y}.",
              f"The stall sells {words.TIMES[k]} as many {y} as {x}, of which {n} are sold."),
             ("How much does the stall take in?", "What is the income of the stall?",
              "How many dollars is that in all?")),
        [f"There are {count} {y}.", f"The {x} bring {first:$}.", f"The {y} bring {second:$}.",
         f"In all it is {total:$}."],
        total)

"""Chains of comparisons between people, things and numbers."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, TIMES, amount, capital, nouns, spelled, story, tell
from .wordings import people, person

_OWNED = things.COLLECTED + things.DESK + things.FOODS + things.READABLE


@family
def times_and_more(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(_OWNED)
    n, k = amount(d, (2, 20), (10, 150)), d.number_from((2, 3, 4, 5, 6))
    result = calc(n, "*", k)
    return story(
        tell(d, (
            f"{a} has {n} {x}. {b} has {TIMES[k]} as many. How many {x} does {b} have?",
            f"{b} has {TIMES[k]} as many {x} as {a}, who has {n}. How many does {b} have?",
            f"How many {x} does {b} have if {a} has {n} and {b} {TIMES[k]} as many?",
            f"{b}'s number of {x} is {k} times {a}'s. {a} has {spelled(d, n)}. How many {x} are {b}'s?")),
        [f"{b} has {result} {x}."], result)


@family
def more_or_fewer(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(_OWNED)
    n, m = amount(d, (3, 20), (20, 300)), amount(d, (2, 10), (10, 150))
    more = d.pick([True, False])
    word, other = ("more", "fewer") if more else ("fewer", "more")
    result = calc(n, "+" if more else "-", m)
    d.require(result.value > 1)
    return story(
        tell(d, (
            f"{a} has {n} {x}. {b} has {m} {word} than {a}. How many {x} does {b} have?",
            f"{b} has {m} {word} {x} than {a}, who has {n}. How many is that?",
            f"How many {x} does {b} have if {a} has {n} and {b} has {m} {word}?",
            f"{a} has {x(n)}, which is {m} {other} than {b} has. How many {x} does {b} have?")),
        [f"{b} has {result} {x}."], result)


@family
def twice_and_three_more(d: Draw) -> Story:
    (a, b, c), x = people(d, 3), d.pick(_OWNED)
    n, more, k = d.int(2, 60), d.int(2, 30), d.number_from((2, 3, 4, 5))
    second = calc(n, "+", more)
    first = calc(second, "*", k)
    return story(
        tell(d, (f"{a} has {TIMES[k]} as many {x} as {b}, who has {more} more than {c}.", f"{b} has {more} more {x} than {c}, and {a} has {TIMES[k]} as many as {b}.",
                 f"Compare the {x}: {b} has {more} more than {c}. {a} has {k} times the number of {b}."),
             (f"{c} has {n}.", f"There are {n} {x} in {c}'s bag.", f"{c}'s number is {n}."),
             (f"How many {x} does {a} have?", f"How many {x} are {a}'s?", f"What is {a}'s number of {x}?")),
        [f"{b} has {second} {x}.", f"{a} has {first} {x}."], first)


@family
def chain_of_four(d: Draw) -> Story:
    (a, b, c, e), x = people(d, 4), d.pick(_OWNED)
    n, k, more, less = d.int(3, 40), d.number_from((2, 3, 4)), d.int(2, 25), d.int(2, 25)
    second = calc(n, "*", k)
    third = calc(second, "+", more)
    fourth = calc(third, "-", less)
    total = calc(n, "+", second, "+", third, "+", fourth)
    d.require(fourth.value > 1)
    return story(
        tell(d, [(f"{a} has {n} {x}.", f"There are {n} {x} in {a}'s room."),
                 (f"{b} has {TIMES[k]} as many as {a}.", f"{b}'s number is {k} times {a}'s."),
                 (f"{c} has {more} more than {b}.", f"{b} has {more} fewer than {c}."),
                 (f"{e} has {less} fewer than {c}.", f"{c} has {less} more than {e}.")],
             (f"How many {x} do the four have together?", f"How many {x} do {a}, {b}, {c} and {e} have in all?", f"What is the total number of {x}?")),
        [f"{b} has {second} {x}.", f"{c} has {third} {x}.", f"{e} has {fourth} {x}.", f"Together they have {total} {x}."], total)


@family
def difference_of_ends(d: Draw) -> Story:
    (a, b, c), x = people(d, 3), d.pick(_OWNED)
    n, p, q = d.int(10, 200), d.int(2, 60), d.int(2, 60)
    second = calc(n, "+", p)
    third = calc(second, "+", q)
    gap = calc(third, "-", n)
    return story(
        tell(d, [(f"{a} has {n} {x}.", f"{n} {x} belong to {a}."),
                 (f"{b} has {p} more than {a}.", f"{a} has {p} fewer than {b}."),
                 (f"{c} has {q} more than {b}.", f"{b} has {q} fewer than {c}.")],
             (f"How many more {x} than {a} does {c} have?", f"By how many {x} does {c} beat {a}?", f"What is the difference between {c} and {a}?")),
        [f"{b} has {second} {x}.", f"{c} has {third} {x}.", f"The difference is {gap} {x}."], gap)


@family
def part_of_the_other(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(_OWNED)
    k, part, less = d.number_from((2, 3, 4, 5)), d.int(5, 60), d.int(2, 20)
    n = k * part
    share = calc(n, "/", k)
    second = calc(share, "-", less)
    total = calc(n, "+", second)
    d.require(second.value > 1)
    return story(
        tell(d, (f"{a} has {n} {x}.", f"There are {n} {x} on {a}'s desk.", f"{a} owns {n} {x}."),
             (f"{b} has {less} fewer than {PARTS[k]} as many.", f"{b} has {PARTS[k]} as many as {a}, less {less}.", f"Take {PARTS[k]} of that and subtract {less}: {b} has this number."),
             (f"How many {x} do they have together?", f"How many {x} do {a} and {b} have in all?", f"What is the sum of their {x}?")),
        [f"{capital(PARTS[k])} of {a}'s {x} is {share}.", f"{b} has {second} {x}.", f"Together they have {total} {x}."], total)


@family
def total_of_unequal_parts(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(_OWNED)
    k, small = d.number_from((2, 3, 4, 5)), amount(d, (2, 20), (10, 100))
    n = (k + 1) * small
    parts = calc(k, "+", 1)
    one = calc(n, "/", parts)
    result = calc(one, "*", k)
    return story(
        tell(d, (f"{a} and {b} have {n} {x} together.", f"Together {a} and {b} own {n} {x}.", f"There are {n} {x}, and they belong to {a} and {b}."),
             (f"{a} has {TIMES[k]} as many as {b}.", f"{a}'s share is {k} times {b}'s share.", f"For every one of {b}'s {x}, {a} has {k}."),
             (f"How many {x} does {a} have?", f"How many {x} are {a}'s?", f"What is {a}'s number of {x}?")),
        [f"There are {parts} parts.", f"{b} has {one} {x}.", f"{a} has {result} {x}."], result)


@family
def sum_and_difference(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(_OWNED)
    small, gap = amount(d, (2, 20), (10, 150)), d.int(2, 60)
    n = 2 * small + gap
    twice = calc(n, "-", gap)
    low = calc(twice, "/", 2)
    high = calc(low, "+", gap)
    return story(
        tell(d, (f"{a} and {b} have {n} {x} together.", f"Together {a} and {b} own {n} {x}.", f"The {x} of {a} and {b} are {n} in all."),
             (f"{a} has {gap} more than {b}.", f"{b} has {gap} fewer than {a}.", f"The difference is {gap}, and {a} has more."),
             (f"How many {x} does {a} have?", f"How many {x} are {a}'s?", f"What is {a}'s number of {x}?")),
        [f"Without the difference it is {twice} {x}.", f"{b} has {low} {x}.", f"{a} has {high} {x}."], high)


@family
def heights_of_children(d: Draw) -> Story:
    a, b, c = people(d, 3)
    n, p, q, unit = d.int(40, 170), d.int(2, 25), d.int(2, 25), d.pick(["centimeters", "inches"])
    second = calc(n, "+", p)
    third = calc(second, "-", q)
    return story(
        tell(d, [(f"{a} is {n} {unit} tall.", f"The height of {a} is {n} {unit}.", f"{a} measures {n} {unit}."),
                 (f"{b} is {p} {unit} taller than {a}.", f"{a} is {p} {unit} shorter than {b}."),
                 (f"{c} is {q} {unit} shorter than {b}.", f"{b} is {q} {unit} taller than {c}.")],
             (f"How tall is {c}?", f"What is the height of {c} in {unit}?", f"How many {unit} does {c} measure?")),
        [f"{b} is {second} {unit} tall.", f"{c} is {third} {unit} tall."], third)


@family
def weights_balanced(d: Draw) -> Story:
    x, y, z = d.pick([("melon", "cabbage", "lemon"), ("brick", "stone", "shell"), ("dog", "cat", "mouse"), ("suitcase", "bag", "book"),
                      ("chair", "stool", "cushion"), ("barrel", "bucket", "bottle"), ("pumpkin", "melon", "pear"), ("sofa", "desk", "lamp")])
    light, k, j = d.int(2, 90), d.number_from((2, 3, 4, 5)), d.number_from((2, 3, 4, 5, 6))
    mid = calc(light, "*", k)
    heavy = calc(mid, "*", j)
    unit = d.pick(["grams", "ounces", "pounds"])
    return story(
        tell(d, [(f"A {x} weighs {TIMES[j]} as much as a {y}.", f"{capital(spelled(d, j))} of the {y}s weigh as much as one {x}." if y != "cabbage" else f"One {x} is {j} times as heavy as a {y}."),
                 (f"A {y} weighs {TIMES[k]} as much as a {z}.", f"One {y} is {k} times as heavy as a {z}.", f"The weight of a {y} is {k} times that of a {z}."),
                 (f"A {z} weighs {light} {unit}.", f"The weight of a {z} is {light} {unit}.")],
             (f"How much does a {x} weigh?", f"How many {unit} does a {x} weigh?", f"What is the weight of a {x} in {unit}?")),
        [f"A {y} weighs {mid} {unit}.", f"A {x} weighs {heavy} {unit}."], heavy)


@family
def letters_in_names(d: Draw) -> Story:
    (a, b, c), x = people(d, 3), d.pick(nouns("letter, question, email, card, recipe, joke, riddle, poem, postcard, drawing, story, song"))
    n, more, k = d.int(3, 50), d.int(2, 20), d.number_from((2, 3, 4))
    verb = d.pick(["wrote", "collected", "received", "sent", "shared"])
    first = calc(n, "+", more)
    second = calc(first, "*", k)
    total = calc(n, "+", first, "+", second)
    mean = calc(total, "/", 3)
    return story(
        tell(d, (f"{a} {verb} {n} {x}.", f"{n} {x} came from {a}."),
             [(f"{b} {verb} {more} more {x} than {a}.", f"The number for {b} is {more} higher than for {a}."),
              (f"{c} {verb} {TIMES[k]} as many as {b}.", f"The number for {c} is {k} times that for {b}.")],
             (f"How many {x} is that per person on average?", f"What is the average number of {x} for the three?", f"On average, how many {x} did each of them have?")),
        [f"For {b} it is {first} {x}.", f"For {c} it is {second} {x}.", f"In all it is {total} {x}.", f"The average is {mean} {x}."], mean)


@family
def collections_catching_up(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(_OWNED)
    n, p, q, times = d.int(5, 60), d.int(2, 12), d.int(4, 25), d.int(2, 20)
    d.require(q > p + 1)
    lead = (q - p) * times
    start = n + lead
    gap = calc(start, "-", n)
    rate = calc(q, "-", p)
    result = calc(gap, "/", rate)
    return story(
        tell(d, [(f"{a} has {start} {x} and gets {p} more each week.", f"Each week {a} adds {p} to {a.their} {start} {x}.", f"{a} starts with {start} {x} and buys {p} a week."),
                 (f"{b} has {n} {x} and gets {q} more each week.", f"{b} adds {q} a week to {b.their} {n} {x}.", f"{b} starts with {n} {x} and buys {q} a week.")],
             ("After how many weeks do they have the same number?", f"In how many weeks does {b} catch up with {a}?", f"How many weeks does it take until {b} has as many as {a}?")),
        [f"The difference is {gap} {x}.", f"Per week it shrinks by {rate}.", f"It takes {result} weeks."], result)


@family
def same_after_giving(d: Draw) -> Story:
    (a, b), x = people(d, 2), d.pick(_OWNED)
    low, move = d.int(3, 100), d.int(2, 60)
    high = low + 2 * move
    gap = calc(high, "-", low)
    result = calc(gap, "/", 2)
    return story(
        tell(d, (
            f"{a} has {high} {x} and {b} has {low}. How many must {a} give to {b} so that both have the same number?",
            f"{b} has {low} {x}, {a} has {high}. They want equal numbers. How many {x} does {a} hand over to {b}?",
            f"How many of {a}'s {high} {x} must go to {b}, who has {low}, to make both equal?",
            f"{a} owns {high} {x}, {b} only {low}. To have equally many, how many {x} does {b} need from {a}?")),
        [f"The difference is {gap} {x}.", f"{a} gives {result} {x}."], result)


@family
def lengths_compared(d: Draw) -> Story:
    a, x = person(d), d.pick(things.MATERIALS)
    c1, c2 = d.pick_two(things.COLORS[:5])
    c3 = d.pick(things.COLORS[5:])
    n, k, less = d.int(3, 60), d.number_from((2, 3, 4)), d.int(2, 20)
    unit = d.pick(["meters", "feet", "inches", "centimeters"])
    second = calc(n, "*", k)
    third = calc(second, "-", less)
    total = calc(n, "+", second, "+", third)
    d.require(third.value > 1)
    return story(
        tell(d, (f"{a} has three pieces of {x}.", f"There are three pieces of {x} on {a}'s table.", f"Three pieces of {x} belong to {a}."),
             [(f"The {c1} one is {n} {unit} long.", f"The length of the {c1} one is {n} {unit}."),
              (f"The {c2} one is {TIMES[k]} as long as the {c1} one.", f"The {c1} one fits {k} times into the {c2} one."),
              (f"The {c3} one is {less} {unit} shorter than the {c2} one.", f"The {c2} one is {less} {unit} longer than the {c3} one.")],
             ("How long are all three together?", f"How many {unit} are the three pieces in all?", f"What is the total length in {unit}?")),
        [f"The {c2} one is {second} {unit} long.", f"The {c3} one is {third} {unit} long.", f"Together they are {total} {unit} long."], total)


@family
def three_prices(d: Draw) -> Story:
    x, y, z = [i.one for i in (d.pick(things.GOODS), *d.pick_two(things.READABLE))]
    n, k, less = d.int(3, 80), d.number_from((2, 3, 4, 5)), d.int(2, 30)
    second = calc(n, "*", k)
    third = calc(second, "-", less)
    total = calc(n, "+", second, "+", third)
    d.require(third.value > 1)
    return story(
        tell(d, [(f"The {x} costs ${n}.", f"One pays ${n} for the {x}.", f"The price of the {x} is ${n}."),
                 (f"The {y} costs {TIMES[k]} as much as the {x}.", f"For the {y} one pays {TIMES[k]} the price of the {x}."),
                 (f"The {z} is ${less} cheaper than the {y}.", f"The {y} costs ${less} more than the {z}.")],
             (f"How much do the {x}, the {y} and the {z} cost together?", "How many dollars do all three cost?", "What is the price of all three?")),
        [f"The {y} costs {second:$}.", f"The {z} costs {third:$}.", f"Together it is {total:$}."], total)


@family
def ages_in_a_chain(d: Draw) -> Story:
    a, b, c = people(d, 3)
    n, k, more, years = d.int(2, 15), d.number_from((2, 3)), d.int(2, 12), d.int(2, 20)
    second = calc(n, "*", k)
    third = calc(second, "+", more)
    future = calc(third, "+", years)
    return story(
        tell(d, [(f"{a} is {n} years old.", f"The age of {a} is {n}."),
                 (f"{b} is {TIMES[k]} as old as {a}.", f"{b}'s age is {k} times {a}'s age."),
                 (f"{c} is {more} years older than {b}.", f"{b} is {more} years younger than {c}.")],
             (f"How old is {c} in {years} years?", f"What will {c}'s age be {years} years from now?", f"In {years} years, how old will {c} be?")),
        [f"{b} is {second} years old.", f"{c} is {third} years old.", f"In {years} years {c} is {future}."], future)

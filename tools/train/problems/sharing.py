"""Having, giving, sharing and comparing."""

from . import words
from .problem import Draw, Story, calc, family


@family
def give_away_a_fraction(d: Draw) -> Story:
    a, b, x = d.person(), d.person(), d.pick(words.TOYS)
    k, part, more = d.number_from((2, 3, 4, 5)), d.int(5, 60), d.int(3, 40)
    start = k * part
    given = calc(start, "/", k)
    left = calc(start, "-", given)
    after = calc(left, "+", more)
    return Story(
        d.tell(
            (f"{a} has {start} {x} and gives {words.FRACTIONS[k]} of them to {b}.",
             f"{a} owns {start} {x}. {b} gets {words.FRACTIONS[k]} of them."),
            (f"Then {a} buys {more} more.", f"Later {a} finds {more} more {x}."),
            (f"How many {x} does {a} have now?", f"How many {x} does {a} have in the end?")),
        [f"{b} gets {given} {x}.", f"{a} keeps {left} {x}.", f"Now {a} has {after} {x}."],
        after)


@family
def times_as_many(d: Draw) -> Story:
    a, b, c, x = d.person(), d.person(), d.person(), d.pick(words.TOYS)
    n, k, fewer = d.int(8, 60), d.number_from((2, 3, 4, 5)), d.int(2, 30)
    second = calc(n, "*", k)
    third = calc(second, "-", fewer)
    pair = calc(n, "+", second)
    total = calc(pair, "+", third)
    d.require(third.value > 0)
    return Story(
        d.tell(
            (f"{a} has {n} {x}.", f"{a} collected {n} {x}."),
            (f"{b} has {words.MULTIPLES[k]} as many as {a}, and {c} has {fewer} fewer than {b}.",
             f"{b} has {words.MULTIPLES[k]} as many {x} as {a}. {c} has {fewer} less than {b}."),
            (f"How many {x} do they have together?", f"How many {x} do the three of them have?")),
        [f"{b} has {second} {x}.", f"{c} has {third} {x}.", f"{a} and {b} have {pair} {x}.",
         f"Together they have {total} {x}."],
        total)


@family
def more_than(d: Draw) -> Story:
    a, b, x = d.person(), d.person(), d.pick(words.TOYS + words.FRUIT)
    n, more, lost = d.int(10, 150), d.int(5, 90), d.int(2, 40)
    second = calc(n, "+", more)
    total = calc(n, "+", second)
    left = calc(total, "-", lost)
    return Story(
        d.tell(
            (f"{a} has {n} {x}, and {b} has {more} more than {a}.",
             f"{b} has {more} more {x} than {a}, who has {n}."),
            (f"Together they lose {lost} of them.", f"They give {lost} of them away."),
            (f"How many {x} are left?", f"How many {x} do {a} and {b} have now?")),
        [f"{b} has {second} {x}.", f"Together they have {total} {x}.", f"Then {left} are left."],
        left)


@family
def share_equally(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.TOYS + words.BAKED)
    children, each, kept = d.int(3, 12), d.int(3, 25), d.int(2, 30)
    bags = d.number_from((2, 3, 4, 5, 6))
    total_count = children * each + kept
    d.require(total_count % bags == 0)
    total = calc(bags, "*", total_count // bags)
    rest = calc(total, "-", kept)
    share = calc(rest, "/", children)
    return Story(
        d.tell(
            (f"{a} has {bags} bags with {total_count // bags} {x} in each.",
             f"{a} opens {bags} bags of {total_count // bags} {x}."),
            (f"{a.They} keeps {kept} and shares the rest equally among {children} children.",
             f"{a.They} puts {kept} aside. {children} children share the others equally."),
            (f"How many {x} does each child get?", f"How many does every child get?")),
        [f"There are {total} {x}.", f"The children share {rest} {x}.", f"Each child gets {share} {x}."],
        share)


@family
def boxes_and_left_over(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.FRUIT)
    per_box, boxes, rest, rotten = d.int(6, 24), d.int(4, 20), d.int(1, 5), d.int(2, 30)
    picked = per_box * boxes + rest + rotten
    good = calc(picked, "-", rotten)
    packed = calc(boxes, "*", per_box)
    over = calc(good, "-", packed)
    return Story(
        d.tell(
            (f"{a} picks {picked} {x}, but {rotten} of them are rotten.",
             f"Of the {picked} {x} that {a} picked, {rotten} have to be thrown away."),
            (f"{a.They} packs {boxes} boxes with {per_box} {x} each.",
             f"The good ones fill {boxes} boxes of {per_box}."),
            (f"How many {x} are left over?", f"How many good {x} do not go into a box?")),
        [f"There are {good} good {x}.", f"The boxes hold {packed} {x}.", f"So {over} {x} are left over."],
        over)


@family
def chain_of_friends(d: Draw) -> Story:
    a, b, c, x = d.person(), d.person(), d.person(), d.pick(words.TOYS)
    n, k, more = d.int(4, 40), d.number_from((2, 4)), d.int(2, 20)
    start = n * k
    second = calc(start, "/", k)
    third = calc(second, "+", more)
    total = calc(start, "+", second, "+", third)
    part = words.FRACTIONS[k]
    return Story(
        d.tell(
            (f"{a} found {start} {x} at {d.pick(words.PLACES)}.", f"{a} bought {start} {x}."),
            (f"{b} found {part} as many as {a}, and {c} found {more} more than {b}.",
             f"{b} got {part} as many. {c} got {more} more than {b}."),
            (f"How many {x} do they have in all?", f"What is the total number of {x}?")),
        [f"{b} has {second} {x}.", f"{c} has {third} {x}.", f"In all they have {total} {x}."],
        total)


@family
def rounds_of_a_game(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.TOYS)
    start, wins, per_win, losses, per_loss = d.int(20, 90), d.int(2, 9), d.int(2, 9), d.int(2, 6), d.int(2, 6)
    won, lost = calc(wins, "*", per_win), calc(losses, "*", per_loss)
    high = calc(start, "+", won)
    end = calc(high, "-", lost)
    return Story(
        d.tell(
            (f"{a} starts a game with {start} {x}.", f"Before the game {a} has {start} {x}."),
            (f"A win brings {per_win} {x} and a loss costs {per_loss}.",
             f"For every win {a.they} gets {per_win}, for every loss {a.they} gives {per_loss}."),
            (f"{a.They} wins {wins} times and loses {losses} times.",
             f"There are {wins} wins and {losses} losses."),
            (f"How many {x} does {a} have at the end?", f"With how many {x} does {a.they} finish?")),
        [f"{a} wins {won} {x}.", f"{a.They} loses {lost} {x}.", f"The wins make it {high} {x}.",
         f"At the end {a} has {end} {x}."],
        end)

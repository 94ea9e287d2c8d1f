"""Percentages and fractions of groups."""

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import grouped, people, person, several, tell

GROUPS = nouns(words.GROUPS)
THINGS = nouns(words.COLLECTIBLES)
FRUIT = nouns(words.FRUITS)
COLORS = ["red", "blue", "green", "yellow", "white", "black"]
TRAITS = ["red", "green", "yellow", "small", "large", "round", "very old", "heavy", "light"]
# (numerator, denominator): the fraction in words
FRACTIONS = {
    (1, 2): "half", (1, 3): "one third", (2, 3): "two thirds", (1, 4): "one fourth", (3, 4): "three fourths",
    (1, 5): "one fifth", (2, 5): "two fifths", (3, 5): "three fifths", (4, 5): "four fifths", (3, 8): "three eighths",
    (5, 8): "five eighths", (3, 10): "three tenths", (7, 10): "seven tenths"}
PERCENTAGES = (10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 90)


def said_fraction(d: Draw, top: int, bottom: int) -> str:
    return d.pick((FRACTIONS[top, bottom], f"{top}/{bottom}"))


def fraction(d: Draw) -> tuple[int, int]:
    top, bottom = d.pick(tuple(FRACTIONS))
    d.number_from((top,))
    d.number_from((bottom,))
    return top, bottom


@family
def percent_of_group(d: Draw) -> Story:
    g, n, percent, place = d.pick(GROUPS), d.int(20, 1000, 10), d.number_from(PERCENTAGES), d.pick(words.SIGHTS)
    part = calc(n, "*", percent, "/", 100)
    trait = d.pick(("wear glasses", "speak French", "have a dog", "come by bus", "are left-handed", "like tea",
                    "own a bicycle", "are over 40"))
    return Story(
        tell(d, (
            f"{percent}% of {n} {g} {trait}. How many {g} is that?",
            f"There are {n} {g} at {place}, and {percent} percent of them {trait}. How many of the {g} {trait}?",
            f"Of {n} {g}, {percent}% {trait}. How many {g} are these?",
            f"How many {g} {trait} if {percent} percent of a group of {n} {g} do so?" if trait[:3] != "are" else
            f"In a group of {n} {g}, {percent} percent {trait}. What number of {g} is that?")),
        [f"That is {part} {g}."],
        part)


@family
def percent_rest_of_group(d: Draw) -> Story:
    g, n, percent = d.pick(GROUPS), d.int(20, 1200, 10), d.number_from(PERCENTAGES)
    part = calc(n, "*", percent, "/", 100)
    rest = calc(n, "-", part)
    x, y = d.pick((("arrive early", "late"), ("are women", "men"), ("come from abroad", "nearby"), ("stand", "seated"),
                   ("are new", "not new")))
    ends = {"late": "arrive late", "men": "are men", "nearby": "live nearby", "seated": "are seated",
            "not new": "are not new"}[y]
    return Story(
        tell(d, (
            f"{percent}% of {n} {g} {x}. The others {ends}. How many {ends}?",
            f"Of {n} {g}, {percent} percent {x} and the rest {ends}. How many {g} {ends}?",
            f"There are {n} {g}. {percent}% of them {x}, and all others {ends}. What is the number of {g} who {ends}?")),
        [f"There are {part} {g} who {x}.", f"So {rest} {ends}."],
        rest)


@family
def whole_from_percent(d: Draw) -> Story:
    g, percent, whole = d.pick(GROUPS), d.number_from((5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 80)), d.int(20, 900, 10)
    d.require(whole * percent % 100 == 0)
    part = whole * percent // 100
    several(d, part)
    answer = calc(part, "*", 100, "/", percent)
    place = d.pick(words.TOWNS)
    return Story(
        tell(d, (
            f"{part} {g} are {percent}% of all {g} in {place}. How many {g} are there in {place}?",
            f"{percent} percent of the {g} in {place} came to a meeting. That was {part} people. How many {g} does "
            f"{place} have?",
            f"If {percent}% of the {g} of {place} are {part} people, how many {g} are there in all?",
            f"In {place}, {part} {g} make up {percent} percent of all {g}. What is the number of all {g}?")),
        [f"There are {answer} {g}."],
        answer)


@family
def share_in_percent(d: Draw) -> Story:
    g, whole = d.pick(GROUPS), d.number_from((20, 25, 40, 50, 60, 80, 120, 150, 200, 250, 300, 400, 500))
    percent = d.int(4, 96)
    d.require(whole * percent % 100 == 0)
    part = whole * percent // 100
    several(d, part)
    answer = calc(part, "*", 100, "/", whole)
    what = d.pick(("are at home", "voted", "have arrived", "are asleep", "agree", "bought a ticket",
                   "are waiting outside"))
    return Story(
        tell(d, (
            f"{part} of {whole} {g} {what}. What percentage of the {g} is that?",
            f"Of {whole} {g}, {part} {what}. How many percent is that?",
            f"In a group of {whole} {g}, {part} {what}. What percent of the {g} {what}?",
            f"What percent of {whole} {g} are {part} {g}?")),
        [f"It is {answer} percent."],
        answer)


@family
def group_grows_by_percent(d: Draw) -> Story:
    place, n, percent, more = d.pick(words.TOWNS), d.int(100, 9000, 100), d.number_from(PERCENTAGES), d.int(5, 400)
    added = calc(n, "*", percent, "/", 100)
    now = calc(n, "+", added)
    later = calc(now, "+", more)
    x = d.pick(("inhabitants", "members", "readers", "visitors", "followers", "trees", "books"))
    return Story(
        tell(d,
             (f"A club in {place} had {grouped(d, n)} {x} last year." if x in ("members", "readers", "followers",
                                                                               "visitors") else f"{place} had {grouped(d, n)} {x} last year.",
              f"Last year there were {n} {x} in {place}.", f"The number of {x} in {place} was {n} a year ago."),
             (f"Since then the number has grown by {percent}%, and {more} more will come next year.",
              f"It has gone up {percent} percent since then. Next year it will rise by another {more}.",
              f"This year it is {percent}% higher. In the coming year {more} are added."),
             (f"How many {x} will there be next year?", f"What is the number of {x} next year?",
              f"How many {x} is that then?")),
        [f"The growth is {added}.", f"Now there are {now} {x}.", f"Next year there will be {later} {x}."],
        later)


@family
def fraction_of_things(d: Draw) -> Story:
    a, x, (top, bottom), k = person(d), d.pick(THINGS + FRUIT), fraction(d), d.int(2, 40)
    n = bottom * k
    part = calc(n, "*", top, "/", bottom)
    f, color = said_fraction(d, top, bottom), d.pick(TRAITS)
    several(d, part)
    return Story(
        tell(d, (
            f"{a} has {n} {x}, and {f} of them are {color}. How many {x} are {color}?",
            f"{f} of {a}'s {n} {x} are {color}. How many {color} {x} is that?",
            f"Of {n} {x}, {f} are {color}. How many of the {x} are {color}?",
            f"How many {x} are {color} if {a} has {n} and {f} of them are {color}?")),
        [f"There are {part} {color} {x}."],
        part)


@family
def fraction_rest_of_things(d: Draw) -> Story:
    (a, b), x, (top, bottom), k = people(d, 2), d.pick(THINGS + FRUIT), fraction(d), d.int(2, 40)
    n = bottom * k
    part = calc(n, "*", top, "/", bottom)
    rest = calc(n, "-", part)
    several(d, part, rest)
    f = said_fraction(d, top, bottom)
    return Story(
        tell(d, (
            f"{a} gives {f} of {a.their} {n} {x} to {b}. How many {x} does {a} keep?",
            f"{a} has {n} {x}. {f} of them go to {b}. How many does {a} have left?",
            f"Of the {n} {x} that {a} has, {b} gets {f}. What number of {x} remains with {a}?",
            f"How many {x} does {a} still have after giving {f} of {n} to {b}?")),
        [f"{b} gets {part} {x}.", f"{a} keeps {rest} {x}."],
        rest)


@family
def two_fractions_of_whole(d: Draw) -> Story:
    (a, b), x, k = people(d, 2), d.pick(THINGS + FRUIT), d.int(1, 12)
    p, q = d.number_from((2, 3, 4, 5)), d.number_from((3, 4, 5, 6))
    d.require(p != q)
    n = p * q * k
    first, second = calc(n, "/", p), calc(n, "/", q)
    left = calc(n, "-", first, "-", second)
    several(d, left, first, second)
    name_p, name_q = words.PARTS[p], words.PARTS[q]
    giver = person(d)
    d.require(giver.name not in (a.name, b.name))
    return Story(
        tell(d, (
            f"{giver} gives {name_p} of {giver.their} {n} {x} to {a} and {name_q} of the {n} to {b}.",
            f"There are {n} {x}. {giver} lets {a} take {name_p} of all and {b} {name_q} of all.",
            f"Of {giver}'s {n} {x}, {a} gets 1/{p} and {b} gets 1/{q}."),
             (f"How many {x} are left for {giver}?", f"How many {x} does {giver} keep?",
              f"What number of {x} remains for {giver}?")),
        [f"{a} gets {first} {x}.", f"{b} gets {second} {x}.", f"So {giver} keeps {left} {x}."],
        left)


@family
def fraction_then_percent(d: Draw) -> Story:
    g, (top, bottom), percent = d.pick(GROUPS), fraction(d), d.number_from((10, 20, 25, 40, 50, 75))
    n = d.int(40, 1200, 20)
    first = calc(n, "*", top, "/", bottom)
    answer = calc(first, "*", percent, "/", 100)
    several(d, first, answer)
    f = said_fraction(d, top, bottom)
    x, y = d.pick((("come from the city", "walk"), ("are young", "play an instrument"),
                   ("take part in a race", "win a prize"),
                   ("order a meal", "want soup"), ("stay overnight", "need a ride"), ("answer a survey", "say yes")))
    return Story(
        tell(d, (
            f"{f} of {n} {g} {x}, and {percent}% of these {y}. How many of them {y}?",
            f"There are {n} {g}. {f} of them {x}. Of those, {percent} percent {y}. How many {y}?",
            f"Of {n} {g}, {f} {x}. How many is {percent}% of those, who also {y}?")),
        [f"There are {first} {g} who {x}.", f"Of them {answer} {y}."],
        answer)


@family
def three_color_shares(d: Draw) -> Story:
    x, n, p = d.pick(THINGS), d.int(20, 400, 20), d.number_from((10, 20, 25, 30, 40))
    q = d.number_from((15, 20, 25, 30, 35))
    c1, c2 = d.pick_two(COLORS[:4])
    c3 = d.pick(COLORS[4:6])
    first, second = calc(n, "*", p, "/", 100), calc(n, "*", q, "/", 100)
    rest = calc(n, "-", first, "-", second)
    several(d, first, second, rest)
    box = d.pick(("box", "bag", "jar", "basket", "drawer"))
    return Story(
        tell(d,
             (f"A {box} holds {n} {x}.", f"There are {n} {x} in a {box}.", f"Somebody counts {n} {x} in a {box}."),
             (f"{p}% are {c1}, {q}% are {c2}, and the rest are {c3}.",
              f"Of these, {p} percent are {c1} and {q} percent {c2}. All others are {c3}.",
              f"{c1.capitalize()} are {p}% of them, {c2} are {q}%, and the remaining ones are {c3}."),
             (f"How many {c3} {x} are there?", f"How many of the {x} are {c3}?", f"What is the number of {c3} {x}?")),
        [f"There are {first} {c1} {x}.", f"There are {second} {c2} {x}.", f"So {rest} {x} are {c3}."],
        rest)


@family
def percent_more_than(d: Draw) -> Story:
    (a, b), x, n = people(d, 2), d.pick(THINGS), d.int(20, 400, 10)
    percent = d.number_from((10, 20, 25, 30, 40, 50, 60, 75))
    fewer = d.pick((True, False))
    part = calc(n, "*", percent, "/", 100)
    other = calc(n, "-", part) if fewer else calc(n, "+", part)
    total = calc(n, "+", other)
    word = "fewer" if fewer else "more"
    ask = d.pick((True, False))
    return Story(
        tell(d,
             (f"{a} has {n} {x}. {b} has {percent}% {word} {x} than {a}.",
              f"{b} owns {percent} percent {word} {x} than {a}, who has {n}.",
              f"{a}'s collection has {n} {x}, and {b}'s has {percent}% {word}."),
             ("How many do they have together?", f"How many {x} do both have?",
              "What is the total of both?") if ask else
             (f"How many {x} does {b} have?", f"How many {x} are there in {b}'s collection?",
              f"What number of {x} does {b} own?")),
        [f"The difference is {part} {x}.",
         f"{b} has {other} {x}."] + ([f"Together they have {total} {x}."] if ask else []),
        total if ask else other)


@family
def whole_from_fraction(d: Draw) -> Story:
    a, x, (top, bottom), k = person(d), d.pick(THINGS + FRUIT), fraction(d), d.int(2, 40)
    part = top * k
    f = said_fraction(d, top, bottom)
    one = calc(part, "/", top)
    whole = calc(one if top > 1 else part, "*", bottom)
    ways = (f"{a} has sold {part} {x}, which are {f} of all {a.their} {x}. How many {x} did {a} have at first?",
            f"{f} of {a}'s {x} are {part}. How many {x} does {a} have in all?",
            f"If {part} {x} are {f} of what {a} has, how many {x} are there altogether?",
            f"How many {x} does {a} own if {f} of them are {part} {x}?")
    return Story(
        tell(d, ways),
        ([f"One part of {bottom} is {one} {x}."] if top > 1 else []) + [f"All of them are {whole} {x}."],
        whole)


@family
def fraction_backwards_two_steps(d: Draw) -> Story:
    a, x, k, left, eaten = person(d), d.pick(THINGS + FRUIT), d.number_from((2, 3, 4, 5)), d.int(2, 30), d.int(2, 40)
    before = calc(left, "+", eaten)
    d.require(before.value % (k - 1) == 0)
    part = calc(before, "/", k - 1)
    whole = calc(part, "*", k)
    if k == 2:
        lines = [f"Before that there were {before} {x}.", f"At first there were {calc(before, '*', 2)} {x}."]
        whole = calc(before, "*", 2)
    else:
        lines = [f"Before that there were {before} {x}.", f"One of {k} equal parts is {part} {x}.",
                 f"At first there were {whole} {x}."]
    several(d, part)
    return Story(
        tell(d,
             (f"{a} gave away {words.PARTS[k]} of {a.their} {x} and then lost {eaten} more.",
              f"First {words.PARTS[k]} of {a}'s {x} were sold. Then {eaten} were lost.",
              f"After {a} had given {words.PARTS[k]} of {a.their} {x} to a friend, {eaten} others broke or got lost."),
             (f"Now {left} {x} are left. How many did {a} have at first?",
              f"In the end {a} has {left}. How many {x} were there in the beginning?",
              f"How many {x} did {a} start with, if {left} remain?")),
        lines,
        whole)


@family
def votes_in_election(d: Draw) -> Story:
    a, b, c = people(d, 3)
    n, p, q = d.int(100, 3000, 100), d.int(20, 60, 5), d.int(10, 39, 1)
    d.require(p + q < 95)
    first, second = calc(n, "*", p, "/", 100), calc(n, "*", q, "/", 100)
    third = calc(n, "-", first, "-", second)
    gap = calc(first, "-", third)
    several(d, gap)
    return Story(
        tell(d,
             (f"In an election {n} people voted for {a}, {b} or {c}.",
              f"{a}, {b} and {c} shared {n} votes in an election.",
              f"There were {n} votes for {a}, {b} and {c} together."),
             (f"{a} got {p}% and {b} got {q}% of the votes.",
              f"{p} percent of the votes went to {a} and {q} percent to {b}.",
              f"{b} received {q}% of them and {a} {p}%."),
             (f"{c} got the rest. How many more votes than {c} did {a} get?",
              f"By how many votes did {a} beat {c}, who got all the others?",
              f"All others were for {c}. How many votes was {a} ahead of {c}?")),
        [f"{a} got {first} votes.", f"{b} got {second} votes.", f"{c} got {third} votes.",
         f"{a} was ahead by {gap} votes."],
        gap)


@family
def battery_and_tank_percent(d: Draw) -> Story:
    thing, unit, scale = d.pick((("tank", "gallons", 20), ("barrel", "liters", 50), ("pool", "cubic meters", 100),
                                 ("fuel truck", "gallons", 500),
                                 ("silo", "tons", 100), ("water tower", "cubic meters", 200)))
    size, percent, used = d.int(1, 20) * scale, d.number_from((20, 25, 40, 50, 60, 75, 80, 90)), d.int(2, 60)
    have = calc(size, "*", percent, "/", 100)
    left = calc(have, "-", used)
    free = calc(size, "-", left)
    several(d, left)
    ask = d.pick((True, False))
    return Story(
        tell(d,
             (f"A {thing} that holds {size} {unit} is {percent}% full.",
              f"A {thing} has room for {size} {unit}. It is filled to {percent} percent.",
              f"{percent}% of a {thing} with room for {size} {unit} is filled."),
             (f"Then {used} {unit} are taken out.", f"{used} {unit} are used.", f"After that it loses {used} {unit}."),
             (f"How many {unit} would now fill it up?", f"How many {unit} are missing until it is full?",
              f"How many {unit} can be added now?") if ask else
             (f"How many {unit} are in it now?", f"How many {unit} are left?",
              f"How many {unit} does it contain then?")),
        [f"It holds {have} {unit}.",
         f"Then {left} {unit} are left."] + ([f"So {free} {unit} are missing."] if ask else []),
        free if ask else left)


@family
def animals_in_shelter(d: Draw) -> Story:
    n, (top, bottom) = d.int(20, 400, 20), d.pick(((1, 2), (1, 4), (3, 4), (1, 5), (2, 5), (3, 5)))
    percent = d.number_from((10, 20, 25, 40, 50, 75))
    x, y = d.pick_two(("dogs", "cats", "rabbits", "birds", "turtles", "hamsters"))
    d.number_from((top,)), d.number_from((bottom,))
    first = calc(n, "*", top, "/", bottom)
    rest = calc(n, "-", first)
    adopted = calc(rest, "*", percent, "/", 100)
    left = calc(rest, "-", adopted)
    several(d, adopted, left)
    f = said_fraction(d, top, bottom)
    return Story(
        tell(d,
             (f"A shelter has {n} animals. {f} of them are {x} and the rest are {y}.",
              f"Of the {n} animals in a shelter, {f} are {x}. All others are {y}.",
              f"In a shelter there are {x} and {y}, {n} animals in all. {f} are {x}."),
             (f"{percent}% of the {y} find a home.", f"Then {percent} percent of the {y} are adopted.",
              f"Families take {percent}% of the {y} with them."),
             (f"How many {y} stay in the shelter?", f"How many {y} are left?",
              f"What is the number of {y} that remain?")),
        [f"There are {first} {x}.", f"There are {rest} {y}.", f"Of these {adopted} are adopted.",
         f"So {left} {y} stay."],
        left)


@family
def solution_strength(d: Draw) -> Story:
    a, amount, percent = person(d), d.int(20, 400, 20), d.number_from((5, 10, 15, 20, 25, 30, 40, 50))
    water = d.int(20, 400, 20)
    x = d.pick(("syrup", "salt", "juice", "vinegar", "sugar", "alcohol"))
    pure = calc(amount, "*", percent, "/", 100)
    total = calc(amount, "+", water)
    answer = calc(pure, "*", 100, "/", total)
    return Story(
        tell(d, (
            f"{a} has {amount} grams of a mix with {percent}% {x} and adds {water} grams of water. What percent of "
            f"the new mix is {x}?",
            f"{water} grams of water are added to {amount} grams of a drink that is {percent} percent {x}. What "
            f"percentage of {x} does it have now?",
            f"A mix of {amount} grams contains {percent}% {x}. {a} pours in {water} grams of pure water. How many "
            f"percent {x} is it then?")),
        [f"There are {pure} grams of {x}.", f"The new mix has {total} grams.", f"That is {answer} percent."],
        answer)


@family
def complete_to_goal(d: Draw) -> Story:
    a, x, goal = person(d), d.pick(THINGS), d.int(40, 800, 20)
    percent, rate = d.number_from((10, 20, 25, 30, 40, 50, 60, 70, 75, 80)), d.int(2, 12)
    have = calc(goal, "*", percent, "/", 100)
    left = calc(goal, "-", have)
    weeks = calc(left, "/", rate)
    several(d, weeks)
    return Story(
        tell(d,
             (f"{a} wants to collect {goal} {x} and has {percent}% of them.",
              f"{a}'s goal is {goal} {x}. {percent} percent of that is already done.",
              f"A full collection has {goal} {x}. {a} owns {percent}% of it."),
             (f"Every week {rate} more are added.", f"{a.They} gets {rate} more each week.",
              f"Each week brings {rate} new ones."),
             ("How many weeks will it take to get the rest?", f"After how many weeks does {a} have all of them?",
              "How many weeks are needed until it is complete?")),
        [f"{a} has {have} {x}.", f"So {left} {x} are missing.", f"That takes {weeks} weeks."],
        weeks)


@family
def survey_counts(d: Draw) -> Story:
    (x, y), n = d.pick_two(("tea", "coffee", "cocoa", "juice", "water", "milk", "soda")), d.int(40, 600, 20)
    p, more = d.number_from((20, 25, 30, 40, 45)), d.int(2, 60)
    g = d.pick(GROUPS)
    first = calc(n, "*", p, "/", 100)
    second = calc(first, "+", more)
    neither = calc(n, "-", first, "-", second)
    several(d, neither)
    return Story(
        tell(d,
             (f"{n} {g} are asked which drink they like best.", f"In a survey, {n} {g} name the drink they like best.",
              f"Somebody asks {n} {g} for the drink they like best."),
             (f"{p}% say {x}, and {more} more than that say {y}.",
              f"{x} is named by {p} percent. {y.capitalize()} is named by {more} more {g} than {x}.",
              f"{p}% of them choose {x}. {more} more {g} than that choose {y}."),
             (f"How many {g} name something else?", f"All others name something else. How many {g} are they?",
              f"How many of the {g} choose neither of the two?")),
        [f"There are {first} {g} for {x}.", f"There are {second} {g} for {y}.",
         f"So {neither} {g} name something else."],
        neither)

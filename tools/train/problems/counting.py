"""Collections: gaining, losing, giving and finding things."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, TIMES, amount, capital, maybe, spelled, story, tell
from .wordings import person


@family
def gain_some(d: Draw) -> Story:
    a, x = person(d), d.pick(things.COLLECTED + things.FOODS + things.DESK)
    n, m = [amount(d, (2, 12), (10, 99), (100, 900), (1000, 5000)) for _ in range(2)]
    verb, verbed = d.pick([("buys", "bought"), ("gets", "got"), ("finds", "found"), ("receives", "received")])
    total = calc(n, "+", m)
    return story(
        tell(d, (
            f"{a} has {x(n)} and {verb} {m} more. How many {x} does {a.they} have?",
            f"{a} has {spelled(d, n)} {x}. {a.They} {verb} {spelled(d, m)} more. How many {x} does {a} have now?",
            f"{a} had {n} {x}. Then {a.they} {verbed} {m} more {x}. How many {x} did {a} have then?",
            f"How many {x} does {a} have in all if {a.they} starts with {n} and {verb} another {m}?",
            f"{a} {verbed} {x(m)} today. {a.They} already had {n}. How many {x} are there now?",
            f"If {a} has {x(n)} and {verb} {x(m)}, how many {x} does {a.they} have altogether?")),
        [f"{a} has {x(total)}."], total)


@family
def lose_some(d: Draw) -> Story:
    a, x = person(d), d.pick(things.COLLECTED + things.DESK + things.FOODS)
    n, m = amount(d, (4, 20), (20, 99), (100, 990), (1000, 9000)), amount(d, (2, 12), (10, 80), (100, 800))
    verb, verbed = d.pick([("loses", "lost"), ("gives away", "gave away"), ("sells", "sold"), ("drops", "dropped")])
    left = calc(n, "-", m)
    return story(
        tell(d, (
            f"{a} has {x(n)} and {verb} {m}. How many {x} are left?",
            f"{a} had {spelled(d, n)} {x} but {verbed} {spelled(d, m)} of them. How many does {a.they} still have?",
            f"If {a} {verb} {m} of {a.their} {n} {x}, how many {x} remain?",
            f"Out of {x(n)}, {a} {verbed} {m}. How many {x} does {a.they} have now?",
            f"How many {x} does {a} have left after {a.they} {verb} {m} of {a.their} {n}?")),
        [f"{a} has {x(left)} left."], left)


@family
def my_own_things(d: Draw) -> Story:
    x = d.pick(things.FOODS + things.COLLECTED)
    n, m, k = amount(d, (2, 12), (10, 90)), amount(d, (2, 12), (10, 90)), amount(d, (2, 9), (5, 60))
    high = calc(n, "+", m)
    left = calc(high, "-", k)
    d.require(left.value > 0)
    return story(
        tell(d, (
            f"I have {n} {x}, buy {m} more and give {k} to my friend. How many {x} do I have?",
            f"I had {spelled(d, n)} {x}. I got {spelled(d, m)} more, then I lost {spelled(d, k)}. How many do I have now?",
            f"I start with {n} {x}. My sister gives me {m} and I give {k} to my brother. How many {x} are mine in the end?",
            f"How many {x} do I have left if I have {n}, find {m} and hand out {k}?")),
        [f"With the new ones you have {x(high)}.", f"You have {x(left)} left."], left)


@family
def my_own_rest(d: Draw) -> Story:
    x = d.pick(things.FOODS + things.DESK)
    n, m = amount(d, (3, 20), (20, 99), (100, 500)), amount(d, (2, 10), (10, 80))
    left = calc(n, "-", m)
    return story(
        tell(d, (
            f"I have {n} {x} and give away {m}. How many {x} do I have left?",
            f"I had {spelled(d, n)} {x} and used {spelled(d, m)}. How many are left?",
            f"If I take {m} of my {n} {x} to school, how many {x} stay at home?",
            f"There were {n} {x} on my table. I took {m}. How many {x} are still there?")),
        [f"There are {x(left)} left."] if left.value != 1 else [f"There is {x(left)} left."], left)


@family
def two_gifts(d: Draw) -> Story:
    a, b, c, x = d.person(), d.person(), d.person(), d.pick(things.COLLECTED)
    n, p, q = d.int(5, 120), d.int(2, 60), d.int(2, 60)
    first = calc(n, "+", p)
    total = calc(first, "+", q)
    return story(
        tell(d, (f"{a} has {n} {x}.", f"There are {n} {x} in {a}'s box.", f"{a} owned {n} {x} at first."),
             (f"{b} gives {a.them} {p} more.", f"From {b}, {a} gets {p}.", f"{a} receives {p} {x} from {b}."),
             (f"{c} gives {a} {q}.", f"A present from {c} adds {q} {x}.", f"{a} also gets {q} from {c}."),
             (f"How many {x} does {a} have now?", f"How many {x} is that in total?",
              f"What is the number of {a}'s {x} in the end?")),
        [f"With the first present it is {first} {x}.", f"With the second it is {total}."], total)


@family
def found_on_walks(d: Draw) -> Story:
    a, x, place = person(d), d.pick(things.FOUND), d.pick(things.PLACES)
    n, m, k = d.int(3, 60), d.int(3, 60), d.int(2, 30)
    found = calc(n, "+", m)
    rest = calc(found, "-", k)
    d.require(rest.value > 0)
    return story(
        tell(d,
             (f"{a} found {n} {x} in the morning and {m} in the afternoon at {place}.",
              f"At {place}, {a} picked up {n} {x} before lunch. After lunch {a.they} picked up {m} more.",
              f"In the morning {a} collected {n} {x} near {place}. Another {m} followed in the afternoon."),
             maybe(d, f"The walk took {d.int(2, 5)} hours.", f"{a} is {d.int(6, 14)} years old."),
             (f"{a.They} threw {k} of them back.", f"{capital(spelled(d, k))} of them were broken.",
              f"{a.They} gave {k} to a child."),
             (f"How many {x} did {a} bring home?", f"How many {x} were left for {a}?",
              f"With how many good {x} did {a} end up?")),
        [f"{a} found {x(found)}.", f"Without the {k} it is {rest}."], rest)


@family
def colors_in_a_box(d: Draw) -> Story:
    a, x, s = person(d), d.pick(things.COLLECTED + things.DESK + things.GOODS), d.pick(things.STORES)
    c1, c2 = d.pick_two(things.COLORS)
    n, m = d.int(3, 150), d.int(3, 150)
    total = n + m
    rest = calc(total, "-", n)
    return story(
        tell(d, (
            f"{a}'s {s.one} holds {total} {x}, {n} of them {c1} and the rest {c2}. How many are {c2}?",
            f"There are {total} {x} in a {s.one}. {n} of them are {c1}, all others are {c2}. How many {c2} {x} are there?",
            f"In a {s.one} there are only {c1} and {c2} {x}. Of the {total} {x}, {n} are {c1}. How many are {c2}?",
            f"How many {c2} {x} are in a {s.one} of {total} {x} if {n} are {c1} and the others are {c2}?")),
        [f"The number of {c2} {x} is {rest}."], rest)


@family
def three_colors(d: Draw) -> Story:
    x, s = d.pick(things.GOODS + things.COLLECTED), d.pick(things.STORES)
    c1, c2 = d.pick_two(things.COLORS[:5])
    c3 = d.pick(things.COLORS[5:])
    n, more, k = d.int(4, 60), d.int(2, 40), d.number_from((2, 3, 4))
    second = calc(n, "+", more)
    third = calc(second, "*", k)
    total = calc(n, "+", second, "+", third)
    return story(
        tell(d, (f"A {s.one} contains {n} {c1} {x}.", f"There are {n} {c1} {x} in a {s.one}.",
                 f"In the {s.one} lie {n} {c1} {x}."),
             [(f"There are {more} more {c2} {x} than {c1} ones.", f"The {c2} {x} are {more} more than the {c1} ones."),
              (f"The {c3} {x} number {TIMES[k]} as many as the {c2} ones.",
               f"There are {TIMES[k]} as many {c3} {x} as {c2} {x}.")],
             (f"How many {x} are in the {s.one}?", f"How many {c1}, {c2} and {c3} {x} are there altogether?",
              f"Find the total number of {x}.")),
        [f"There are {second} {c2} {x}.", f"There are {third} {c3} {x}.", f"In all there are {x(total)}."], total)


@family
def boxes_of_things(d: Draw) -> Story:
    a, x, s = person(d), d.pick(things.GOODS + things.DESK), d.pick(things.STORES)
    n, m = amount(d, (2, 12), (5, 40)), amount(d, (2, 12), (5, 60))
    total = calc(n, "*", m)
    return story(
        tell(d, (
            f"{a} has {s(n)} with {m} {x} each. How many {x} is that?",
            f"There are {m} {x} in every {s.one}. How many {x} are in {s(n)}?",
            f"{a} fills {spelled(d, n)} {s}. Each holds {spelled(d, m)} {x}. How many {x} does {a.they} have?",
            f"How many {x} are there in {s(n)} if each {s.one} holds {m}?",
            f"{capital(spelled(d, n))} {s} stand on a shelf, and {spelled(d, m)} {x} are in each of them. How many {x} are there?")),
        [f"The {s} hold {x(total)}."], total)


@family
def equal_heaps(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FOUND + things.COLLECTED + things.FOODS)
    heaps, each = amount(d, (2, 12), (5, 30)), amount(d, (2, 12), (5, 40))
    total = heaps * each
    result = calc(total, "/", heaps)
    return story(
        tell(d, (
            f"{a} sorts {total} {x} into {heaps} equal heaps. How many {x} are in each heap?",
            f"{total} {x} are divided equally into {heaps} heaps. How many go into one heap?",
            f"How many {x} are in a heap when {a} makes {heaps} equal heaps of {a.their} {total} {x}?",
            f"{a} has {total} {x}. {a.They} puts the same number on each of {heaps} heaps. How many {x} does each heap have?")),
        [f"Each heap has {x(result)}."], result)


@family
def share_with_friends(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FOODS + things.COLLECTED)
    friends, each = d.int(2, 11), amount(d, (2, 12), (10, 40))
    people = calc(friends, "+", 1)
    result = calc(people.value * each, "/", people)
    n = people.value * each
    return story(
        tell(d,
             (f"{a} shares {n} {x} equally with {friends} friends.",
              f"{a} and {a.their} {friends} friends share {n} {x} equally.",
              f"There are {n} {x} for {a} and {spelled(d, friends)} friends, and everybody gets the same number."),
             maybe(d, f"The party lasts {d.int(2, 5)} hours."),
             (f"How many {x} does each of them get?", f"How many {x} does {a} get?", "What is each person's share?")),
        [f"There are {people} people.", f"Each gets {x(result)}."], result)


@family
def before_and_after(d: Draw) -> Story:
    a, b, x = d.person(), d.person(), d.pick(things.COLLECTED)
    left, given = d.int(5, 200), d.int(2, 100)
    result = calc(left, "+", given)
    return story(
        tell(d, (
            f"After {a} gave {given} {x} to {b}, {a.they} had {left} left. How many {x} did {a} have at first?",
            f"{a} gives {b} {given} {x} and keeps {left}. How many {x} did {a.they} have before?",
            f"{b} got {given} of {a}'s {x}. Now {a} has {left}. With how many {x} did {a} start?",
            f"How many {x} did {a} have in the beginning if {a.they} has {left} after giving {given} away to {b}?")),
        [f"{a} had {x(result)} at first."], result)


@family
def unknown_gain(d: Draw) -> Story:
    a, x, day = person(d), d.pick(things.COLLECTED + things.FOUND), d.pick(things.WEEKDAYS)
    n, gain = amount(d, (3, 20), (20, 300)), amount(d, (2, 20), (20, 200))
    end = n + gain
    result = calc(end, "-", n)
    return story(
        tell(d, (
            f"{a} had {n} {x} on {day}. A week later {a.they} has {end}. How many {x} did {a} get in that week?",
            f"{a}'s collection of {x} grew from {n} to {end}. By how many {x} did it grow?",
            f"With {n} {x}, {a} began to collect. Now there are {end}. How many {x} were added?",
            f"{a} wants {end} {x} and has {n}. How many more {x} does {a.they} need?")),
        [f"The difference is {x(result)}."], result)


@family
def losses_undone(d: Draw) -> Story:
    a, b, x = d.person(), d.person(), d.pick(things.COLLECTED)
    end, found, given = d.int(5, 90), d.int(2, 40), d.int(2, 60)
    before = calc(end, "-", found)
    start = calc(before, "+", given)
    d.require(before.value > 1)
    return story(
        tell(d,
             (f"{a} gave {given} {x} to {b} and then found {found} more.",
              f"First {b} got {given} of {a}'s {x}. Then {a} found another {found}.",
              f"{a} lost {given} {x} to {b} in a game, and later bought {found} new ones."),
             (f"Now {a.they} has {end} {x}.", f"In the end there are {end} {x} in {a}'s box.",
              f"After that {a} counted {end} {x}."),
             (f"How many {x} did {a} have at the beginning?", f"With how many {x} did {a} start?",
              f"How many {x} did {a} own before all this?")),
        [f"Before the {found} new ones {a} had {x(before)}.", f"At the beginning {a} had {x(start)}."], start)


@family
def half_then_some(d: Draw) -> Story:
    a, b, x = d.person(), d.person(), d.pick(things.COLLECTED + things.FOODS)
    k, part, more = d.number_from((2, 3, 4, 5, 10)), d.int(4, 60), d.int(2, 40)
    n = k * part
    given = calc(n, "/", k)
    rest = calc(n, "-", given)
    end = calc(rest, "-", more)
    d.require(end.value > 0)
    return story(
        tell(d,
             (f"{a} has {n} {x}.", f"A bag with {n} {x} belongs to {a}.", f"{a} bought {n} {x}."),
             (f"{a.They} gives {PARTS[k]} of them to {b} and then loses {more}.",
              f"{b} gets {PARTS[k]} of the {x}. After that {a} drops {more} on the way home.",
              f"First {PARTS[k]} of the {x} go to {b}, then {more} more are given to a neighbor."),
             (f"How many {x} are left?", f"How many {x} does {a} still have?", f"What is the number of {x} that {a} keeps?")),
        [f"{b} gets {x(given)}.", f"{a} has {x(rest)} then.", f"In the end {a} has {x(end)}."], end)


@family
def daily_collection(d: Draw) -> Story:
    a, x = person(d), d.pick(things.FOUND + things.COLLECTED)
    start, per_day, days = d.int(5, 200), d.int(2, 20), d.int(3, 14)
    gained = calc(per_day, "*", days)
    total = calc(start, "+", gained)
    return story(
        tell(d,
             [(f"{a} already has {start} {x}.", f"The collection of {a} starts with {start} {x}.",
               f"{a}'s jar contains {start} {x}."),
              (f"Every day {a} adds {spelled(d, per_day)} {x}.", f"{a} collects {per_day} new {x} a day.",
               f"Each day brings {a} {per_day} more {x}.")],
             (f"How many {x} does {a} have after {days} days?", f"How many {x} will there be in {days} days?",
              f"After {days} days, how many {x} are in the collection?")),
        [f"In {days} days {a} adds {x(gained)}.", f"Then there are {x(total)}."], total)


@family
def days_to_a_goal(d: Draw) -> Story:
    a, x = person(d), d.pick(things.COLLECTED + things.HANDMADE)
    per_day, days, start = d.int(2, 20), d.int(3, 30), d.int(5, 100)
    goal = start + per_day * days
    missing = calc(goal, "-", start)
    result = calc(missing, "/", per_day)
    return story(
        tell(d,
             [(f"{a} wants to have {goal} {x}.", f"The goal of {a} is a collection of {goal} {x}.",
               f"A full set for {a} has {goal} {x}."),
              (f"{a} has {start} {x} so far.", f"So far {start} {x} are there.", f"{start} of the {x} are already there.")],
             (f"{a.They} gets {per_day} more each day.", f"Every day {per_day} more are added.",
              f"{a} adds {per_day} a day."),
             (f"How many days does it take {a.them}?", "In how many days is the goal reached?",
              "How many days are needed for the rest?")),
        [f"{a} needs {missing} more {x}.", f"It takes {result} days."], result)


@family
def album_pages(d: Draw) -> Story:
    a, x = person(d), d.pick(things.ALBUM)
    pages, per_page, filled = d.int(5, 40), d.int(3, 20), d.int(10, 200)
    room = calc(pages, "*", per_page)
    free = calc(room, "-", filled)
    d.require(free.value > 0)
    return story(
        tell(d,
             (f"{a}'s album has {pages} pages with room for {per_page} {x} on each.",
              f"An album has {pages} pages, and {per_page} {x} fit on a page.",
              f"Each page of {a}'s album holds {per_page} {x}. It has {pages} pages."),
             (f"{a} has {filled} {x}.", f"So far {filled} {x} are in it.", f"{filled} places are taken."),
             (f"How many more {x} fit into the album?", f"How many {x} are missing until the album is full?",
              f"For how many {x} is there still room?")),
        [f"The album holds {x(room)}.", f"There is room for {free} more."], free)


@family
def trade_things(d: Draw) -> Story:
    a, b = d.person(), d.person()
    x, y = d.pick_two(things.COLLECTED)
    n, swap, rate = d.int(20, 120), d.int(2, 12), d.int(2, 5)
    given = calc(swap, "*", rate)
    left = calc(n, "-", given)
    d.require(left.value > 0)
    return story(
        tell(d,
             [(f"{a} has {n} {x}.", f"There are {n} {x} in {a}'s bag.", f"{a} comes with {n} {x}."),
              (f"For {y.a} one has to give {rate} {x}.", f"{b} wants {rate} {x} for each {y.one}.",
               f"{y.a.capitalize()} is worth {rate} {x}.")],
             (f"{a} trades for {y(swap)}.", f"{a} takes {y(swap)} from {b}.", f"{b} hands over {y(swap)} to {a}."),
             (f"How many {x} does {a} have left?", f"How many {x} remain with {a}?", f"How many {x} does {a} keep?")),
        [f"{a} gives {x(given)}.", f"{a} keeps {x(left)}."], left)


@family
def missing_pieces(d: Draw) -> Story:
    a, x = person(d), d.pick(["puzzle", "mosaic", "model castle", "jigsaw"])
    pieces, first, k = d.int(20, 100, 5) * 10, d.int(20, 120), d.number_from((2, 3))
    second = calc(first, "*", k)
    done = calc(first, "+", second)
    left = calc(pieces, "-", done)
    return story(
        tell(d,
             (f"A {x} has {pieces} pieces.", f"{a} builds a {x} of {pieces} pieces.", f"{a}'s new {x} consists of {pieces} pieces."),
             (f"On the first day {a} places {first} pieces, on the second day {TIMES[k]} as many.",
              f"{a} places {first} pieces on Saturday and {TIMES[k]} as many on Sunday.",
              f"On Sunday {a} places {TIMES[k]} as many pieces as on Saturday, when it was {first}."),
             ("How many pieces are left?", f"How many pieces does {a} still have to place?", "How many pieces are missing now?")),
        [f"On the second day it is {second} pieces.", f"In two days it is {done} pieces.", f"So {left} pieces are left."], left)

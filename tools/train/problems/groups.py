"""Groups, seats, rows, teams and packing, with and without a remainder."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .steps import counted_out
from .telling import PARTS, SHARES, TIMES, amount, capital, maybe, nouns, share, spelled, story, tell
from .wordings import people, person

_PACKS = nouns("box, bag, carton, crate, packet, basket, tray, case")


@family
def packs_filled(d: Draw) -> Story:
    a, x, s = person(d), d.pick(things.GOODS + things.FOODS), d.pick(_PACKS)
    per, n = amount(d, (2, 12), (10, 50)), amount(d, (2, 12), (10, 40))
    total = per * n
    result = calc(total, "/", per)
    return story(
        tell(d, (
            f"{a} packs {total} {x} into {s} of {per}. How many {s} does {a.they} fill?",
            f"{per} {x} fit into {s.a}. How many {s} are needed for {total} {x}?",
            f"How many {s} can be filled with {total} {x} if {per} go into each?",
            f"There are {total} {x}. Each {s.one} holds {per}. How many {s} is that?")),
        [f"It makes {result} {s}."], result)


@family
def packs_and_rest(d: Draw) -> Story:
    a, x, s = person(d), d.pick(things.GOODS + things.FOODS), d.pick(_PACKS)
    per, n, rest = d.int(3, 30), d.int(2, 30), d.int(1, 29)
    d.require(1 < rest < per)
    total = per * n + rest
    packed = calc(n, "*", per)
    left = calc(total, "-", packed)
    return story(
        tell(d, (
            f"{a} packs {total} {x} into {s} of {per}. How many {x} are left over?",
            f"{total} {x} are put into {s}, {per} in each. How many {x} do not fill a {s.one}?",
            f"How many {x} remain when {a} fills as many {s} of {per} as possible from {total} {x}?",
            f"{capital(s.a)} holds {per} {x}. {a} has {total} and fills only whole {s}. How many {x} are not packed?")),
        [*counted_out(total, per), f"{n} full {s} hold {packed} {x}.", f"The number left over is {left}."], left)


@family
def enough_for_everybody(d: Draw) -> Story:
    x, s, p = d.pick(things.GOODS + things.FOODS + things.DESK), d.pick(_PACKS), d.pick(things.PUPILS)
    per, full, rest, each = d.int(4, 30), d.int(2, 15), d.int(1, 29), d.int(2, 6)
    d.require(1 < rest < per and (per * full + rest) % each == 0)
    n = (per * full + rest) // each
    need = calc(n, "*", each)
    held = calc(full, "*", per)
    missing = calc(need, "-", held)
    result = calc(full, "+", 1)
    return story(
        tell(d, [(f"Each of {n} {p} gets {each} {x}.", f"{n} {p} get {each} {x} each.", f"There are {n} {p}, and all of them need {each} {x}."),
                 (f"{x.Many} are sold in {s} of {per}.", f"One {s.one} contains {per} {x}.", f"A shop sells {x} in {s} with {per} in each.")],
             (f"How many {s} must be bought?", f"How many {s} are needed?", f"What is the smallest number of {s} that is enough?")),
        [f"They need {need} {x}.", *counted_out(n * each, per), f"{full} {s} hold {held}.", f"Then {missing} are missing.", f"So it takes {result} {s}."], result)


@family
def rows_of_seats(d: Draw) -> Story:
    hall = d.pick(nouns("theater, cinema, hall, stadium, circus, church, arena, concert hall"))
    rows, per, taken, price = d.int(4, 40), d.int(5, 40), d.int(10, 600), d.int(4, 25)
    seats = calc(rows, "*", per)
    free = calc(seats, "-", taken)
    d.require(free.value > 1)
    return story(
        tell(d, (f"{capital(hall.a)} has {rows} rows of {per} seats.", f"There are {per} seats in each of the {rows} rows of {hall.a}.", f"In {hall.a}, {rows} rows have {per} seats each."),
             (f"{taken} people have sat down.", f"{taken} seats are taken.", f"So far {taken} tickets are sold."),
             maybe(d, f"A ticket costs ${price}.", f"The show lasts {d.int(60, 180, 10)} minutes."),
             ("How many seats are free?", "How many seats are still empty?", "How many more people find a seat?")),
        [f"There are {seats} seats.", f"The number of free seats is {free}."], free)


@family
def teams_from_classes(d: Draw) -> Story:
    x = d.pick(things.PUPILS)
    classes, per, size = d.int(2, 10), d.int(6, 40), d.int(2, 12)
    total = calc(classes, "*", per)
    teams = calc(total, "/", size)
    d.require(teams.value > 1)
    group = d.pick(["classes", "clubs", "groups", "villages", "schools", "troops"])
    return story(
        tell(d, (f"There are {classes} {group} with {per} {x} each.", f"{classes} {group} come, and each has {per} {x}.", f"From each of {classes} {group} come {per} {x}."),
             (f"They form teams of {size}.", f"All together are split into teams of {size}.", f"{capital(spelled(d, size))} of them make a team."),
             ("How many teams are there?", "How many teams can be formed?", "What is the number of teams?")),
        [f"There are {total} {x}.", f"They form {teams} teams."], teams)


@family
def absent_members(d: Draw) -> Story:
    x = d.pick(things.PUPILS)
    absent, groups, per = d.int(2, 20), d.int(2, 12), d.int(2, 12)
    n = groups * per + absent
    here = calc(n, "-", absent)
    result = calc(here, "/", groups)
    return story(
        tell(d, (f"A club has {n} {x}, and {absent} of them are sick.", f"Of the {n} {x} of a club, {absent} stay at home.", f"{n} {x} are invited, but {absent} do not come."),
             (f"The others form {groups} equal groups.", f"Those who are there split into {groups} groups of the same size.", f"The rest are divided equally into {groups} groups."),
             ("How many are in each group?", f"How many {x} does a group have?", "What is the size of a group?")),
        [f"The number who come is {here}.", f"Each group has {result}."], result)


@family
def tables_with_chairs(d: Draw) -> Story:
    a, x = person(d), d.pick(["guests", "children", "visitors", "friends", "relatives", "students"])
    t1, s1, t2, s2, n = d.int(2, 15), d.int(4, 12), d.int(2, 15), d.int(2, 10), d.int(10, 150)
    d.require(s1 != s2)
    first, second = calc(t1, "*", s1), calc(t2, "*", s2)
    seats = calc(first, "+", second)
    free = calc(seats, "-", n)
    d.require(free.value > 1)
    return story(
        tell(d, (f"{a} has {t1} large tables for {s1} people each and {t2} small ones for {s2} each.",
                 f"In a room are {t1} large tables with {s1} chairs each. There are also {t2} small tables with {s2} chairs each.",
                 f"A large table has {s1} seats, a small one {s2}. {a} sets up {t1} large and {t2} small tables."),
             (f"{n} {x} take a seat.", f"{n} {x} come and sit down.", f"For {n} {x} chairs are needed."),
             ("How many seats stay empty?", "How many chairs are not used?", f"How many more {x} could sit down?")),
        [f"The large tables have {first} seats.", f"The small tables have {second} seats.", f"In all there are {seats} seats.",
         f"The number of empty seats is {free}."], free)


@family
def two_kinds_of_members(d: Draw) -> Story:
    p, q = d.pick([("boys", "girls"), ("girls", "boys"), ("women", "men"), ("men", "women"), ("adults", "children"), ("beginners", "experts")])
    place = d.pick(["a class", "a choir", "a camp", "a club", "a course", "an orchestra", "a group"])
    n, fewer = d.int(10, 200), d.int(2, 60)
    d.require(fewer < n)
    second = calc(n, "-", fewer)
    total = calc(n, "+", second)
    return story(
        tell(d, [(f"There are {n} {p} in {place}.", f"{capital(place)} has {n} {p}.", f"{n} {p} belong to {place}."),
                 (f"The number of {q} is {fewer} less than the number of {p}.", f"There are {fewer} fewer {q} than {p}.", f"There are {fewer} more {p} than {q}.")],
             (f"How many {p} and {q} are there together?", "How many people is that in all?", "What is the total number of members?")),
        [f"There are {second} {q}.", f"Together there are {total} people."], total)


@family
def ratio_of_members(d: Draw) -> Story:
    p, q = d.pick([("boys", "girls"), ("girls", "boys"), ("women", "men"), ("teachers", "students"), ("adults", "children"), ("guides", "tourists")])
    place = d.pick(["a school", "a choir", "a camp", "a club", "a course", "a trip", "a dance group"])
    r, s, k = d.int(2, 7), d.int(2, 9), d.int(2, 30)
    d.require(r != s)
    n = (r + s) * k
    parts = calc(r, "+", s)
    one = calc(n, "/", parts)
    result = calc(one, "*", s)
    return story(
        tell(d, [(f"In {place} the ratio of {p} to {q} is {r} to {s}.", f"For every {r} {p} there are {s} {q} in {place}.", f"{capital(place)} has {s} {q} for every {r} {p}."),
                 (f"In all there are {n} members.", f"The members are {n} people.", f"The total is {n} people.")],
             (f"How many {q} are there?", f"How many of them are {q}?", f"What is the number of {q}?")),
        [f"There are {parts} parts.", f"One part is {one} people.", f"The number of {q} is {result}."], result)


@family
def share_of_a_group(d: Draw) -> Story:
    x = d.pick(things.PUPILS)
    (p, q), part, more = share(d, 2), d.int(3, 40), d.int(2, 30)
    n = q * part
    y = d.pick(["wear glasses", "play chess", "come by bus", "like tea", "have a pet", "can swim", "speak Spanish", "walk to work"])
    one = calc(n, "/", q)
    yes = calc(one, "*", p)
    end = calc(yes, "+", more)
    return story(
        tell(d, (f"{capital(SHARES[(p, q)])} of {n} {x} {y}.", f"Of {n} {x}, {SHARES[(p, q)]} {y}.", f"There are {n} {x}, and {SHARES[(p, q)]} of them {y}."),
             (f"Then {more} more join who {y}.", f"{more} new ones come, and all of these {y}.", f"Later the group gains {more} others who {y}."),
             (f"How many {x} {y} now?", f"How many of them {y} in the end?", f"What is the number of {x} who {y} after that?")),
        [f"One part of {q} is {one}.", f"At first {yes} {y}.", f"Then {end} {y}."], end)


@family
def percent_of_a_group(d: Draw) -> Story:
    x, n, percent = d.pick(things.PUPILS), d.int(1, 15) * 20, d.number_from((5, 10, 15, 20, 25, 30, 35, 40, 45, 60, 65, 70, 75, 80, 85, 90))
    y, no = d.pick([("pass a test", "do not pass"), ("vote yes", "do not vote yes"), ("stay for lunch", "do not stay"), ("have a bike", "have none"),
                    ("sing in the choir", "do not sing"), ("take the train", "do not take it")])
    yes = calc(n, "*", percent, "/", 100)
    rest = calc(n, "-", yes)
    d.require(yes.value > 1 and rest.value > 1)
    return story(
        tell(d, (
            f"Of {n} {x}, {percent}% {y}. How many {no}?",
            f"{percent}% of {n} {x} {y}. How many of them {no}?",
            f"There are {n} {x}, and {percent}% of them {y}. How many {x} {no}?",
            f"How many of {n} {x} {no} if {percent}% {y}?")),
        [f"The number who {y} is {yes}.", f"The number who {no} is {rest}."], rest)


@family
def two_rooms(d: Draw) -> Story:
    x = d.pick(things.PUPILS)
    a, b = d.pick_two(["hall", "library", "garden", "gym", "kitchen", "yard", "museum", "studio"])
    n, m, moved = d.int(10, 150), d.int(10, 150), d.int(2, 60)
    d.require(moved < n)
    left = calc(n, "-", moved)
    now = calc(m, "+", moved)
    gap = calc(now, "-", left)
    d.require(gap.value > 1)
    return story(
        tell(d, [(f"There are {n} {x} in the {a}.", f"{n} {x} are in the {a}.", f"The {a} has {n} {x} in it."),
                 (f"There are {m} {x} in the {b}.", f"In the {b} are {m} {x}.", f"The {b} has {m} {x}.")],
             (f"Then {moved} move from the {a} to the {b}.", f"{moved} of them go from the {a} to the {b}.", f"From the {a}, {moved} walk over to the {b}."),
             (f"How many more {x} are in the {b} than in the {a} now?", f"By how many {x} is the {b} fuller than the {a} then?",
              f"How many {x} more does the {b} have than the {a} after that?")),
        [f"The {a} has {left} {x}.", f"The {b} has {now} {x}.", f"The difference is {gap}."], gap)


@family
def growing_line(d: Draw) -> Story:
    per, minutes, served, n = d.int(3, 15), d.int(3, 30), d.int(2, 12), d.int(5, 60)
    place = d.pick(["a ticket office", "a bakery", "an ice cream stand", "a museum", "a bank", "a ride", "a post office"])
    d.require(served < per)
    more = calc(per, "-", served)
    gained = calc(more, "*", minutes)
    total = calc(n, "+", gained)
    return story(
        tell(d, (f"{n} people stand in line at {place}.", f"At {place} there is a line of {n} people.", f"In front of {place}, {n} people are waiting."),
             (f"Every minute {per} more come and {served} are served and leave.", f"Each minute {served} of them are served and leave while {per} others join.",
              f"Per minute {per} people join, and {served} go away with what they wanted."),
             (f"How many people are in line after {minutes} minutes?", f"How long is the line in {minutes} minutes?", f"After {minutes} minutes, how many are waiting?")),
        [f"Per minute the line grows by {more}.", f"In {minutes} minutes it grows by {gained}.", f"Then there are {total} people."], total)


@family
def marching_band(d: Draw) -> Story:
    x = d.pick(["trumpets", "drums", "flutes", "clarinets", "violins", "horns"])
    rows, per, k = d.int(4, 30), d.int(3, 15), d.number_from((2, 3, 4, 5))
    total = calc(rows, "*", per)
    part = calc(total, "/", k)
    rest = calc(total, "-", part)
    d.require(part.value > 1)
    group = d.pick(["band", "symphony orchestra", "parade", "school band", "brass band"])
    return story(
        tell(d, (f"The players of a {group} stand in {rows} rows of {per}.", f"{rows} rows with {per} players each make up a {group}.",
                 f"A {group} has {rows} rows of {per} players."),
             (f"{capital(PARTS[k])} of them play {x}.", f"Of these, {PARTS[k]} play {x}.", f"{x.capitalize()} are played by {PARTS[k]} of the players."),
             (f"How many do not play {x}?", "How many play something else?", f"How many players have no {x}?")),
        [f"There are {total} players.", f"The number who play {x} is {part}.", f"The number of the others is {rest}."], rest)


@family
def cards_dealt(d: Draw) -> Story:
    a = person(d)
    x = d.pick(["cards", "tiles", "chips", "tokens", "dominoes"])
    players, each, rest, used = d.int(2, 9), d.int(2, 15), d.int(2, 30), d.int(2, 12)
    n = players * each + rest
    dealt = calc(players, "*", each)
    left = calc(n, "-", dealt)
    end = calc(left, "-", used)
    d.require(end.value > 1)
    return story(
        tell(d, (f"{a} deals {each} {x} to each of {players} players.", f"Each of {players} players gets {each} {x} from {a}.", f"{players} players get {each} {x} each; {a} deals."),
             (f"There are {n} {x} in the game.", f"The game has {n} {x}.", f"The whole set has {n} {x}."),
             (f"Then {used} more are turned over.", f"After that the players draw {used} more.", f"{used} others are laid on the table."),
             (f"How many {x} are left in the pile?", f"How many {x} remain?", f"What number of {x} is not in use?")),
        [f"The players get {dealt} {x}.", f"Then {left} are left.", f"In the end {end} are left."], end)


@family
def guests_times(d: Draw) -> Story:
    a, b = people(d, 2)
    n, k, more, away = d.int(5, 60), d.number_from((2, 3, 4)), d.int(2, 20), d.int(2, 15)
    event = d.pick(["party", "wedding", "concert", "talk", "picnic", "dinner", "reading"])
    times = calc(n, "*", k)
    second = calc(times, "+", more)
    end = calc(second, "-", away)
    d.require(end.value > 1)
    return story(
        tell(d, (f"{n} people came to {a}'s {event}.", f"{a} had {n} people at a {event}.", f"At {a}'s {event} there were {n} people."),
             (f"{b} invited {more} more than {TIMES[k]} as many.", f"To {b}'s {event}, {more} more than {TIMES[k]} that number were invited.",
              f"{b} sent out invitations to {TIMES[k]} as many people and {more} more."),
             (f"Of those, {away} did not come.", f"{away} of these stayed away.", f"But {away} of them were ill."),
             (f"How many people came to {b}'s {event}?", f"How many people did {b} have at the {event}?", f"What was the number of people with {b}?")),
        [f"{capital(TIMES[k])} as many is {times}.", f"{b} invited {second} people.", f"The number who came is {end}."], end)

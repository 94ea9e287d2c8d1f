"""Games, training and tickets."""

from . import words
from .problem import Draw, Story, calc, family


@family
def basketball_points(d: Draw) -> Story:
    a, team = d.person(), d.pick(words.TEAMS)
    twos, threes, free, others = d.int(3, 15), d.int(2, 9), d.int(2, 12), d.int(20, 60)
    p2, p3 = calc(twos, "*", 2), calc(threes, "*", 3)
    field = calc(p2, "+", p3)
    own = calc(field, "+", free)
    total = calc(own, "+", others)
    return Story(
        d.tell(
            (f"{a} plays for the {team} and makes {twos} two-point shots, {threes} three-point shots and {free} free throws.",
             f"In a game of the {team}, {a} scores {twos} two-point shots, {threes} three-point shots and {free} free throws of one point."),
            (f"The rest of the team scores {others} points.", f"{a.Their} teammates add {others} points."),
            (f"How many points do the {team} have?", "How many points does the team score?")),
        [f"The two-point shots make {p2} points.", f"The three-point shots make {p3} points.",
         f"Together that is {field} points.", f"With the free throws {a} has {own} points.",
         f"The {team} have {total} points."],
        total)


@family
def laps_in_training(d: Draw) -> Story:
    a, b = d.person(), d.person()
    laps, meters, days, more = d.int(3, 15), d.int(100, 400, 50), d.int(2, 6), d.int(100, 900, 100)
    daily = calc(laps, "*", meters)
    total = calc(daily, "*", days)
    other = calc(total, "+", more)
    return Story(
        d.tell(
            (f"{a} runs {laps} laps of {meters} meters on each of {days} days.",
             f"A lap is {meters} meters. {a} runs {laps} laps a day for {days} days."),
            (f"{b} runs {more} meters more than {a} in total.", f"In all {b} runs {more} meters more."),
            (f"How many meters does {b} run?", f"What distance does {b} run in meters?")),
        [f"{a} runs {daily} meters a day.", f"In {days} days it is {total} meters.", f"{b} runs {other} meters."],
        other)


@family
def season_points(d: Draw) -> Story:
    team = d.pick(words.TEAMS)
    games, wins, draws, per_win = d.int(15, 40), d.int(4, 20), d.int(2, 10), d.int(2, 4)
    d.require(games - wins - draws > 1)
    played = calc(wins, "+", draws)
    losses = calc(games, "-", played)
    points = calc(wins, "*", per_win)
    total = calc(points, "+", draws)
    net = calc(total, "-", losses)
    return Story(
        d.tell(
            (f"The {team} play {games} games, win {wins} and draw {draws}. They lose the rest.",
             f"Out of {games} games the {team} win {wins}, draw {draws} and lose all the others."),
            (f"A win is {per_win} points, a draw is one point, and a loss takes one point away.",
             f"They get {per_win} points for a win and one for a draw, and lose one point for a loss."),
            ("How many points do they have?", f"How many points do the {team} end with?")),
        [f"They win or draw {played} games.", f"They lose {losses} games.", f"The wins bring {points} points.",
         f"With the draws it is {total} points.", f"After the losses it is {net} points."],
        net)


@family
def adult_and_child_tickets(d: Draw) -> Story:
    show = d.pick(["a concert", "a play", "a football game", "the circus", "a movie", "a puppet show"])
    n, p, m, q, cost = d.int(10, 90), d.int(6, 20), d.int(10, 90), d.int(2, 5), d.int(50, 400, 10)
    adults, children = calc(n, "*", p), calc(m, "*", q)
    total = calc(adults, "+", children)
    profit = calc(total, "-", cost)
    d.require(profit.value > 0)
    return Story(
        d.tell(
            (f"For {show}, {n} adults pay ${p} each and {m} children pay ${q} each.",
             f"Tickets for {show} cost ${p} for adults and ${q} for children. {n} adults and {m} children come."),
            (f"The hall costs ${cost}.", f"Renting the hall costs ${cost}."),
            ("How many dollars are left after paying for the hall?", "How much money remains?")),
        [f"The adults pay {adults:$}.", f"The children pay {children:$}.", f"Together it is {total:$}.",
         f"After the hall {profit:$} is left."],
        profit)


@family
def empty_seats(d: Draw) -> Story:
    sections, rows, seats, k = d.int(2, 6), d.int(4, 20), d.int(5, 25), d.number_from((2, 3, 4, 5))
    d.require(sections * rows * seats % k == 0)
    per_section = calc(rows, "*", seats)
    total = calc(sections, "*", per_section)
    taken = calc(total, "/", k)
    empty = calc(total, "-", taken)
    return Story(
        d.tell(
            (f"A stadium has {sections} sections, each with {rows} rows of {seats} seats.",
             f"There are {sections} sections in a stadium. Each section has {rows} rows, and each row has {seats} seats."),
            (f"{words.FRACTIONS[k].capitalize()} of the seats are taken.", f"Today {words.FRACTIONS[k]} of the seats are sold."),
            ("How many seats are empty?", "How many seats are still free?")),
        [f"A section has {per_section} seats.", f"The stadium has {total} seats.", f"There are {taken} taken.",
         f"So {empty} seats are empty."],
        empty)


@family
def team_uniforms(d: Draw) -> Story:
    team = d.pick(words.TEAMS)
    players, shirt, shorts, sponsor = d.int(8, 25), d.int(8, 30), d.int(5, 20), d.int(50, 200, 10)
    each = calc(shirt, "+", shorts)
    total = calc(players, "*", each)
    rest = calc(total, "-", sponsor)
    d.require(rest.value > 0)
    return Story(
        d.tell(
            (f"The {team} buy a shirt for ${shirt} and shorts for ${shorts} for each of their {players} players.",
             f"Each of the {players} players of the {team} gets a ${shirt} shirt and ${shorts} shorts."),
            (f"A sponsor pays ${sponsor} of it.", f"They get ${sponsor} from a sponsor."),
            ("How much does the team pay?", "How many dollars does the team have to pay itself?")),
        [f"A player's clothes cost {each:$}.", f"For all it is {total:$}.", f"The team pays {rest:$}."],
        rest)


@family
def step_counter(d: Draw) -> Story:
    a = d.person()
    day1, k, more, goal = d.int(200, 900, 10), d.number_from((2, 3)), d.int(50, 500, 10), d.int(3000, 7000, 100)
    second = calc(day1, "*", k)
    third = calc(second, "+", more)
    pair = calc(day1, "+", second)
    total = calc(pair, "+", third)
    left = calc(goal, "-", total)
    x = d.pick(["steps", "jumps", "strokes"])
    return Story(
        d.tell(
            (f"{a} wants to reach {goal} {x} in a few days.", f"{a}'s goal is {goal} {x}."),
            (f"On the first day {a.they} does {day1}, on the second {words.MULTIPLES[k]} as many, and on the third {more} more than on the second.",
             f"The first day brings {day1}, the second {words.MULTIPLES[k]} as many, the third {more} more than the second."),
            (f"How many {x} are left to the goal?", f"How many {x} does {a} still need?")),
        [f"The second day has {second} {x}.", f"The third day has {third} {x}.",
         f"The first two days make {pair} {x}.", f"All three make {total} {x}.", f"So {left} {x} are left."],
        left)

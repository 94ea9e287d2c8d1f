"""Points, laps, matches and scores."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, TIMES, amount, capital, maybe, spelled, story, tell
from .wordings import person


@family
def points_of_two_rounds(d: Draw) -> Story:
    a, game = person(d), d.pick(things.GAMES)
    n, m = amount(d, (2, 20), (20, 300)), amount(d, (2, 20), (20, 300))
    total = calc(n, "+", m)
    return story(
        tell(d, (
            f"{a} plays {game} and scores {n} points in the first round and {m} in the second. How many points is that?",
            f"In {game}, {a} gets {n} points, then {m} more. What is {a}'s score?",
            f"After {n} points in round one, {a} adds {m} in round two. How many points does {a} have?",
            f"How many points does {a} have after two rounds of {game} with {n} and {m} points?")),
        [f"{a} has {total} points."], total)


@family
def winning_margin(d: Draw) -> Story:
    t, u = d.pick_two(things.TEAMS)
    low, margin = d.int(5, 110), d.int(2, 40)
    high = low + margin
    result = calc(high, "-", low)
    return story(
        tell(d, (
            f"The {t} beat the {u} {high} to {low}. By how many points did they win?",
            f"The {t} scored {high} points and the {u} {low}. How many more points did the {t} score?",
            f"At the end the {u} had {low} points, the {t} {high}. How many points were the {u} behind?",
            f"How large is the lead of the {t} over the {u} at a score of {high} to {low}?")),
        [f"The difference is {result} points."], result)


@family
def goals_and_behinds(d: Draw) -> Story:
    t, game = d.pick(things.TEAMS), d.pick(["basketball", "rugby", "football", "a video game", "a dart league"])
    p, q = d.pick_two([1, 2, 3, 5, 6, 7, 10])
    p, q = max(p, q), min(p, q)
    n, m = d.int(2, 30), d.int(2, 30)
    d.require(q > 1)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return story(
        tell(d, (f"In {game} the {t} make {n} shots for {p} points and {m} for {q} points.",
                 f"The {t} play {game}. {n} of their hits count {p} points each and {m} count {q} points each.",
                 f"{n} shots worth {p} points and {m} shots worth {q} points: that is what the {t} manage in {game}."),
             maybe(d, f"The game lasts {d.int(40, 90, 5)} minutes.", f"{d.int(100, 900, 10)} people watch."),
             (f"How many points do the {t} score?", "How many points is that in all?", "What is their final score?")),
        [f"The first shots bring {first} points.", f"The others bring {second} points.", f"In all it is {total} points."], total)


@family
def laps_of_a_track(d: Draw) -> Story:
    a, length = person(d), d.number_from((200, 250, 300, 400, 500, 800))
    days, laps = d.int(2, 7), d.int(3, 12)
    each = calc(laps, "*", length)
    total = calc(days, "*", each)
    verb = d.pick(["runs", "walks", "cycles", "skates"])
    return story(
        tell(d, [(f"A lap of the track is {length} meters.", f"The track is {length} meters long.", f"One lap measures {length} meters."),
                 (f"{a} {verb} {laps} laps a day for {days} days.", f"On each of {days} days {a} {verb} {laps} laps.",
                  f"For {days} days {a} {verb} {spelled(d, laps)} laps per day.")],
             (f"How many meters does {a} cover?", "How many meters is that in total?", "What is the whole distance in meters?")),
        [f"In a day it is {each} meters.", f"In {days} days it is {total} meters."], total)


@family
def laps_left(d: Draw) -> Story:
    a, laps, length = person(d), d.int(10, 60), d.number_from((25, 50, 100, 200, 400))
    done = d.int(2, 50)
    rest = calc(laps, "-", done)
    meters = calc(rest, "*", length)
    d.require(rest.value > 0)
    return story(
        tell(d, (f"A race has {laps} laps of {length} meters.", f"{a} must do {laps} laps, each {length} meters long.",
                 f"{laps} laps of {length} meters are on {a}'s plan."),
             (f"{a} has done {done} of them.", f"So far {a} has finished {done} laps.", f"{capital(spelled(d, done))} laps are already behind {a}."),
             ("How many meters are left?", f"How many meters does {a} still have to go?", "How far is it to the end, in meters?")),
        [f"The number of laps left is {rest}.", f"They are {meters} meters."], meters)


@family
def team_table(d: Draw) -> Story:
    t, game = d.pick(things.TEAMS), d.pick(things.BALL_GAMES)
    win, wins, draws, losses = d.number_from((2, 3, 4)), d.int(2, 20), d.int(2, 12), d.int(2, 10)
    won = calc(wins, "*", win)
    total = calc(won, "+", draws)
    return story(
        tell(d, (f"In a {game} league a win brings {win} points, a draw 1 point and a loss nothing.",
                 f"A {game} team gets {win} points for a win, 1 for a draw and none for a loss.",
                 f"For a win in {game} there are {win} points, for a draw there is 1 and for a loss there is none."),
             (f"The {t} have {wins} wins, {draws} draws and {losses} losses.",
              f"The {t} win {wins} games, lose {losses} and draw {draws}.",
              f"After {losses} losses, {draws} draws and {wins} wins the season of the {t} ends."),
             (f"How many points do the {t} have?", "How many points is that?", f"What is the score of the {t} in the table?")),
        [f"The wins bring {won} points.", f"With the draws it is {total} points."], total)


@family
def games_of_a_season(d: Draw) -> Story:
    t, game = d.pick(things.TEAMS), d.pick(things.BALL_GAMES)
    lost, more, draws = d.int(2, 30), d.int(2, 30), d.int(2, 12)
    won = calc(lost, "+", more)
    pair = calc(lost, "+", won)
    total = calc(pair, "+", draws)
    return story(
        tell(d, [(f"The {t} lost {lost} games.", f"The number of games that the {t} lost is {lost}."),
                 (f"The {t} won {more} more than they lost.", f"Compared with their losses, the {t} have {more} more wins."),
                 (f"{draws} of their {game} games ended in a draw.", f"There were {draws} draws in their {game} season.")],
             (f"How many games did the {t} play?", "How many games were there in the season?", "What is the number of games in all?")),
        [f"They won {won} games.", f"Wins and losses are {pair} games.", f"With the draws it is {total} games."], total)


@family
def average_of_three_games(d: Draw) -> Story:
    a, game = person(d), d.pick(things.GAMES + things.BALL_GAMES)
    n, m, k = d.int(5, 90), d.int(5, 90), d.int(5, 90)
    d.require((n + m + k) % 3 == 0)
    total = calc(n, "+", m, "+", k)
    result = calc(total, "/", 3)
    return story(
        tell(d, (
            f"{a} scores {n}, {m} and {k} points in three games of {game}. What is the average?",
            f"In {game}, {a} gets {n} points in the first game, {m} in the second and {k} in the third. How many points per game is that on average?",
            f"Three rounds of {game} bring {a} {n}, {m} and {k} points. What is {a}'s mean score?",
            f"What is {a}'s average score in {game} if the three results are {n}, {m} and {k}?")),
        [f"The sum is {total} points.", f"The average is {result} points."], result)


@family
def needed_for_average(d: Draw) -> Story:
    a, game = person(d), d.pick(things.GAMES)
    mean, games = d.int(10, 60), d.int(3, 8)
    wanted = calc(mean, "*", games)
    so_far = d.int(10, 300)
    rest = calc(wanted, "-", so_far)
    d.require(5 < rest.value < 2 * mean)
    before = games - 1
    return story(
        tell(d, (f"{a} wants an average of {mean} points in {games} games of {game}.",
                 f"The goal of {a} in {game} is {mean} points per game over {games} games.",
                 f"Over {games} games of {game}, {a} hopes for a mean of {mean} points."),
             (f"The first {before} games brought {so_far} points in total.", f"After {before} games {a} has {so_far} points altogether.",
              f"{a} has played {before} of them and collected {so_far} points in all."),
             ("How many points are needed in the last game?", f"How many points must {a} score in the last game?",
              "What does the last game have to bring?")),
        [f"All {games} games need {wanted} points.", f"The last game must bring {rest} points."], rest)


@family
def three_players(d: Draw) -> Story:
    a, b, c, game = d.person(), d.person(), d.person(), d.pick(things.GAMES + things.BALL_GAMES)
    n, k, less = d.int(5, 60), d.number_from((2, 3, 4)), d.int(2, 20)
    second = calc(n, "*", k)
    third = calc(second, "-", less)
    total = calc(n, "+", second, "+", third)
    d.require(third.value > 1)
    return story(
        tell(d, maybe(d, f"They play {game} for {d.int(2, 5)} hours.", f"It is a game of {game}.") or f"Three friends play {game}.",
             [(f"{a} scores {n} points.", f"The score of {a} is {n} points."),
              (f"{b} scores {TIMES[k]} as many points as {a}.", f"{b}'s points are {k} times {a}'s points."),
              (f"{c} has {less} points fewer than {b}.", f"{b} is {less} points ahead of {c}.")],
             ("How many points do the three have together?", f"How many points do {a}, {b} and {c} score in all?",
              "What is the sum of their points?")),
        [f"{b} has {second} points.", f"{c} has {third} points.", f"Together they have {total} points."], total)


@family
def quiz_with_penalty(d: Draw) -> Story:
    a = person(d)
    questions, wrong, plus, minus = d.int(10, 60), d.int(2, 15), d.int(3, 10), d.int(2, 5)
    right = calc(questions, "-", wrong)
    gained, lost = calc(right, "*", plus), calc(wrong, "*", minus)
    result = calc(gained, "-", lost)
    d.require(right.value > wrong)
    return story(
        tell(d, [(f"A quiz has {questions} questions.", f"There are {questions} questions in a quiz.", f"{a} answers all {questions} questions of a quiz."),
                 (f"A right answer brings {plus} points and a wrong one costs {minus}.",
                  f"Players get {plus} points for each right answer and lose {minus} for each wrong one.",
                  f"For every mistake {minus} points are taken away; every right answer counts {plus} points.")],
             (f"{a} makes {wrong} mistakes and has the rest right.", f"{wrong} of {a}'s answers are wrong, all others are right.",
              f"Except for {wrong} mistakes, {a} has everything right."),
             (f"What is {a}'s score?", f"How many points does {a} get?", f"With how many points does {a} finish?")),
        [f"The number of right answers is {right}.", f"They bring {gained} points.",
         f"The mistakes cost {lost} points.", f"The score is {result} points."], result)


@family
def levels_of_a_game(d: Draw) -> Story:
    a, x = person(d), d.pick(["coins", "gems", "stars", "crystals", "points", "keys"])
    levels, per, bonus, price = d.int(3, 15), d.int(5, 40), d.int(10, 100, 5), d.int(10, 150, 5)
    found = calc(levels, "*", per)
    total = calc(found, "+", bonus)
    left = calc(total, "-", price)
    d.require(left.value > 0)
    return story(
        tell(d, (f"In a video game {a} finishes {levels} levels and finds {per} {x} in each.",
                 f"{a} plays {levels} levels of a video game, with {per} {x} per level.",
                 f"Each level of a game gives {a} {per} {x}. {a.They} finishes {levels} levels."),
             [(f"There is a bonus of {bonus} {x}.", f"A bonus adds {bonus} {x}.", f"{bonus} more {x} come from a bonus."),
              (f"A magic sword costs {a} {price} {x}.", f"{a} spends {price} {x} on a shield.", f"{a} pays {price} {x} for an extra life.")],
             (f"How many {x} does {a} have left?", f"How many {x} remain?", f"With how many {x} does {a} end?")),
        [f"The levels bring {found} {x}.", f"With the bonus it is {total} {x}.", f"In the end {a} has {left} {x}."], left)


@family
def missed_shots(d: Draw) -> Story:
    a, game = person(d), d.pick(["free throws", "penalty kicks", "arrows", "darts", "serves", "throws", "shots"])
    k, part, m = d.number_from((2, 3, 4, 5, 6)), d.int(3, 30), d.int(2, 40)
    n = k * part
    d.require(m < n)
    missed = calc(n, "/", k)
    hits = calc(n, "-", missed)
    return story(
        tell(d, (f"{a} tries {n} {game} and misses {PARTS[k]} of them.", f"Of {a}'s {n} {game}, {PARTS[k]} miss.",
                 f"{capital(PARTS[k])} of {n} {game} by {a} go wrong."),
             maybe(d, f"A friend of {a} tries {m}.", f"The training takes {d.int(20, 90, 5)} minutes."),
             (f"How many {game} hit?", f"How many of the {game} are good?", f"What is the number of hits for {a}?")),
        [f"{a} misses {missed} {game}.", f"The number of hits is {hits}."], hits)


@family
def relay_times(d: Draw) -> Story:
    team = [d.person() for _ in range(4)]
    a, b, c, e = team
    n, slower, faster = d.int(40, 90), d.int(2, 12), d.int(2, 12)
    second = calc(n, "+", slower)
    third = calc(second, "-", faster)
    sum3 = calc(n, "+", second, "+", third)
    total = sum3.value + d.int(40, 95)
    last = calc(total, "-", sum3)
    return story(
        tell(d, (f"{a}, {b}, {c} and {e} run a relay in {total} seconds.", f"A relay of {a}, {b}, {c} and {e} takes {total} seconds.",
                 f"The four runners {a}, {b}, {c} and {e} need {total} seconds together."),
             [(f"{a} needs {n} seconds.", f"The part of {a} takes {n} seconds."),
              (f"{b} is {slower} seconds slower than {a}.", f"{b} needs {slower} seconds more than {a}."),
              (f"{c} is {faster} seconds faster than {b}.", f"{c} needs {faster} seconds less than {b}.")],
             (f"How many seconds does {e} need?", f"How many seconds are left for {e}?", f"What is the time of {e} in seconds?")),
        [f"{b} needs {second} seconds.", f"{c} needs {third} seconds.", f"These three need {sum3} seconds.", f"{e} needs {last} seconds."], last)


@family
def tournament_games(d: Draw) -> Story:
    game, groups, teams = d.pick(things.BALL_GAMES), d.int(2, 20), d.int(3, 12)
    pairs = calc(teams, "*", teams - 1)
    half = calc(pairs, "/", 2)
    total = calc(half, "*", groups)
    return story(
        tell(d, (f"A {game} tournament has {groups} groups of {teams} teams.", f"In a {game} cup there are {groups} groups, each with {teams} teams.",
                 f"{groups} groups with {teams} teams each play {game}."),
             ("In each group every team plays once against every other team.", "All teams of a group meet once.",
              "Within a group each pair of teams plays one game."),
             ("How many games are played?", "How many games is that in all groups?", "What is the number of group games?")),
        [f"In a group {pairs} counts every game twice.", f"So a group has {half} games.", f"All groups have {total} games."], total)


@family
def bowling_difference(d: Draw) -> Story:
    a, b, game = d.person(), d.person(), d.pick(things.GAMES)
    n, m, p, q = d.int(20, 150), d.int(20, 150), d.int(20, 150), d.int(20, 150)
    first, second = calc(n, "+", m), calc(p, "+", q)
    d.require(first.value > second.value + 1)
    result = calc(first, "-", second)
    return story(
        tell(d, [(f"In two rounds of {game} {a} gets {n} and {m} points.", f"{a}'s two rounds of {game} bring {n} and {m} points.",
                  f"{a} scores {n} points in one round of {game} and {m} in another."),
                 (f"{b} gets {p} and {q} points.", f"The rounds of {b} bring {p} and {q} points.", f"{b} scores {p} points first and then {q}.")],
             (f"By how many points does {a} beat {b}?", f"How many points more than {b} does {a} have?", f"How many points is {b} behind {a}?")),
        [f"{a} has {first} points.", f"{b} has {second} points.", f"The difference is {result} points."], result)

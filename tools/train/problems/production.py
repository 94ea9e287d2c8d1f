"""Work and production: rates of people and machines."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, TIMES, amount, capital, maybe, nouns, spelled, story, tell
from .wordings import person


@family
def machine_output(d: Draw) -> Story:
    m, x = d.pick(things.MACHINES), d.pick(things.MADE)
    rate, hours = amount(d, (2, 20), (20, 300)), d.int(2, 24)
    total = calc(rate, "*", hours)
    return story(
        tell(d, (
            f"{m.a.capitalize()} makes {rate} {x} per hour. How many {x} does it make in {hours} hours?",
            f"How many {x} come from {m.a} in {hours} hours if it makes {rate} an hour?",
            f"In one hour {m.a} produces {rate} {x}. How many is that in {hours} hours?",
            f"{m.a.capitalize()} runs for {hours} hours and makes {rate} {x} every hour. How many {x} are made?")),
        [f"In {hours} hours it makes {total} {x}."], total)


@family
def time_for_an_order(d: Draw) -> Story:
    m, x, t = d.pick(things.MACHINES), d.pick(things.MADE), d.pick(["hour", "minute", "day", "week"])
    rate, times = amount(d, (2, 20), (20, 120)), d.int(2, 30)
    total = rate * times
    result = calc(total, "/", rate)
    return story(
        tell(d, (
            f"A factory makes {rate} {x} per {t}. How many {t}s does it need for {total} {x}?",
            f"An order of {total} {x} comes in. The {m.one} makes {rate} each {t}. How many {t}s does the order take?",
            f"How many {t}s does it take to make {total} {x} at {rate} per {t}?",
            f"{total} {x} must be made, and {rate} are finished every {t}. In how many {t}s is the work done?")),
        [f"It takes {result} {t}s."], result)


@family
def many_machines(d: Draw) -> Story:
    m, x = d.pick(things.MACHINES), d.pick(things.MADE)
    n, rate, hours = d.int(2, 15), d.int(2, 40), d.int(2, 12)
    each = calc(n, "*", rate)
    total = calc(each, "*", hours)
    return story(
        tell(d, [(f"A company has {n} {m}.", f"There are {n} {m} in a town.", f"{n} {m} work side by side."),
                 (f"Each {m.one} makes {rate} {x} per hour.", f"One {m.one} produces {rate} {x} an hour.",
                  f"Every hour {rate} {x} come out of each {m.one}.")],
             maybe(d, f"The company is {d.int(3, 40)} years old.", f"{d.int(3, 30)} people work there."),
             (f"How many {x} are made in {hours} hours?", f"How many {x} do all the {m} make in {hours} hours?",
              f"What is the number of {x} after {hours} hours?")),
        [f"Per hour they make {each} {x}.", f"In {hours} hours they make {total} {x}."], total)


@family
def same_rate_scaled(d: Draw) -> Story:
    w, x = d.pick(things.WORKERS), d.pick(things.HANDMADE)
    n, each, m = d.int(2, 9), d.int(2, 15), d.int(2, 30)
    made = n * each
    d.require(m != n)
    one = calc(made, "/", n)
    total = calc(one, "*", m)
    return story(
        tell(d, (
            f"{n} {w} make {made} {x} in a day. How many {x} do {m} {w} make in a day at the same rate?",
            f"In a day {n} {w} finish {made} {x}. All work equally fast. How many {x} would {m} {w} finish?",
            f"How many {x} can {m} {w} make in a day if {n} of them make {made}?",
            f"A group of {n} {w} makes {made} {x} per day. What number of {x} does a group of {m} make?")),
        [f"One of them makes {one} {x}.", f"{m} of them make {total} {x}."], total)


@family
def minutes_per_piece(d: Draw) -> Story:
    a, x = person(d), d.pick(things.HANDMADE)
    n, each, hours = d.int(2, 12), d.int(3, 30), d.number_from((1, 2, 3, 4, 5, 6))
    minutes = calc(hours, "*", 60)
    d.require(minutes.value % each == 0 and minutes.value > 60)
    per_day = calc(minutes, "/", each)
    total = calc(per_day, "*", n)
    return story(
        tell(d, [(f"{a} needs {each} minutes for {x.a}.", f"It takes {a} {each} minutes to make {x.a}.", f"{x.a.capitalize()} takes {a} {each} minutes."),
                 (f"{a} works {hours} hours a day.", f"A working day of {a} has {hours} hours.", f"{hours} hours a day are free for {a}'s work.")],
             (f"How many {x} can {a} make in {n} days?", f"How many {x} are finished after {n} days?", f"What number of {x} is that in {n} days?")),
        [f"A day has {minutes} minutes of work.", f"In a day {a} makes {per_day} {x}.", f"In {n} days it is {total} {x}."], total)


@family
def faulty_pieces(d: Draw) -> Story:
    x = d.pick(things.MADE)
    boxes, per, bad = d.int(3, 40), d.int(4, 30), d.int(2, 4)
    total = calc(boxes, "*", per)
    faulty = calc(boxes, "*", bad)
    good = calc(total, "-", faulty)
    d.require(bad < per)
    return story(
        tell(d, (f"A factory packs {boxes} boxes with {per} {x} each.", f"{boxes} boxes leave a factory, each with {per} {x}.",
                 f"There are {per} {x} in every box, and a factory fills {boxes} boxes."),
             (f"In each box {bad} are faulty.", f"{capital(spelled(d, bad))} {x} per box do not work.", f"A check finds {bad} faulty {x} in every box."),
             (f"How many good {x} are there?", f"How many {x} are without a fault?", f"What is the number of {x} that work?")),
        [f"There are {total} {x}.", f"The number of faulty {x} is {faulty}.", f"The number of good {x} is {good}."], good)


@family
def wages_of_a_week(d: Draw) -> Story:
    a, w = person(d), d.pick(things.WORKERS)
    rate, hours, days, tax = d.int(8, 40), d.int(3, 10), d.int(2, 6), d.int(10, 150, 5)
    daily = calc(rate, "*", hours)
    weekly = calc(daily, "*", days)
    left = calc(weekly, "-", tax)
    return story(
        tell(d, (f"{a} works as {w.a} for ${rate} an hour.", f"As {w.a}, {a} earns ${rate} per hour.", f"{a} is {w.a} and gets ${rate} an hour."),
             (f"{a.They} works {hours} hours a day, {days} days a week.", f"A week has {days} working days of {hours} hours.",
              f"There are {days} working days in {a.their} week, each with {hours} hours."),
             (f"Each week ${tax} goes to taxes.", f"The tax is ${tax} per week.", f"From the week's pay ${tax} is taken for tax."),
             (f"How much does {a} keep per week?", "How many dollars are left in a week?", f"What is left of {a}'s weekly pay?")),
        [f"A day brings {daily:$}.", f"A week brings {weekly:$}.", f"After tax it is {left:$}."], left)


@family
def overtime_in_a_week(d: Draw) -> Story:
    a = person(d)
    rate, extra, normal, over = d.int(8, 30), d.int(2, 15), d.number_from((20, 30, 35, 38, 40)), d.int(2, 15)
    hours = normal + over
    more = calc(hours, "-", normal)
    base, high = calc(normal, "*", rate), calc(rate, "+", extra)
    plus = calc(more, "*", high)
    total = calc(base, "+", plus)
    return story(
        tell(d, (f"{a} earns ${rate} per hour for the first {normal} hours of a week.", f"Up to {normal} hours a week {a} is paid ${rate} an hour.",
                 f"The first {normal} hours of {a}'s week are paid at ${rate} each."),
             (f"Every further hour is paid ${extra} better.", f"For each hour above that {a.they} gets ${extra} more.",
              f"Overtime brings ${extra} more per hour."),
             (f"This week {a.they} works {hours} hours.", f"{a} has worked {hours} hours this week.", f"The week had {hours} hours of work."),
             (f"How much does {a} earn this week?", f"What is {a}'s pay for the week?", "How many dollars is that?")),
        [f"The overtime is {more} hours.", f"The first hours bring {base:$}.", f"An hour of overtime is paid {high:$}.",
         f"The overtime brings {plus:$}.", f"In all it is {total:$}."], total)


@family
def two_workers_together(d: Draw) -> Story:
    a, b, x = d.person(), d.person(), d.pick(things.HANDMADE + things.MADE)
    p, q, hours = d.int(2, 25), d.int(2, 25), d.int(2, 10)
    each = calc(p, "+", q)
    order = each.value * hours
    result = calc(order, "/", each)
    return story(
        tell(d, (f"{a} makes {p} {x} per hour and {b} makes {q}.", f"In an hour {a} finishes {p} {x} and {b} finishes {q}.",
                 f"{a} and {b} make {x}, {a} {p} per hour and {b} {q}."),
             maybe(d, f"A {d.pick(['shop', 'hotel'])} has paid ${d.int(20, 200, 10)} in advance."),
             (f"They need {order} {x}.", f"An order asks for {order} {x}.", f"Together they want to make {order} of them."),
             ("How many hours do they have to work together?", "How many hours does it take them together?",
              "Working together, how many hours do they need?")),
        [f"Together they make {each} {x} per hour.", f"They need {result} hours."], result)


@family
def faster_worker(d: Draw) -> Story:
    a, b, x = d.person(), d.person(), d.pick(things.HANDMADE + things.MADE)
    p, k, hours = d.int(2, 20), d.number_from((2, 3, 4)), d.int(2, 10)
    fast = calc(p, "*", k)
    gap = calc(fast, "-", p)
    total = calc(gap, "*", hours)
    return story(
        tell(d, [(f"{a} makes {p} {x} an hour.", f"In an hour {a} finishes {p} {x}.", f"The speed of {a} is {p} {x} per hour."),
                 (f"{b} works {TIMES[k]} as fast as {a}." if k > 2 else f"{b} is twice as fast as {a}.",
                  f"{b} makes {TIMES[k]} as many {x} per hour as {a}.")],
             (f"How many more {x} than {a} does {b} make in {hours} hours?",
              f"After {hours} hours, how many {x} is {b} ahead of {a}?", f"How large is the difference after {hours} hours?")),
        [f"{b} makes {fast} {x} an hour.", f"The difference per hour is {gap} {x}.", f"After {hours} hours it is {total} {x}."], total)


@family
def person_days(d: Draw) -> Story:
    w, job = d.pick(things.WORKERS), d.pick(["a wall", "a barn", "a fence", "a field", "a road", "a hall", "a roof", "a ship"])
    n, days, m = d.int(2, 15), d.int(2, 20), d.int(2, 20)
    d.require(n * days % m == 0 and m != n)
    work = calc(n, "*", days)
    result = calc(work, "/", m)
    return story(
        tell(d, (
            f"{n} {w} finish {job} in {days} days. How many days do {m} {w} need?",
            f"It takes {n} {w} {days} days to finish {job}. How long would {m} {w} take, in days?",
            f"If {n} {w} need {days} days for {job}, in how many days can {m} of them do it?",
            f"The work on {job} lasts {days} days with {n} {w}. How many days does it last with {m}?")),
        [f"The work is {work} days for one of them.", f"{m} of them need {result} days."], result)


@family
def two_shifts(d: Draw) -> Story:
    x = d.pick(things.MADE)
    p, h, q, g, days = d.int(3, 40), d.int(4, 10), d.int(3, 40), d.int(4, 10), d.int(2, 7)
    first, second = calc(p, "*", h), calc(q, "*", g)
    each = calc(first, "+", second)
    total = calc(each, "*", days)
    return story(
        tell(d, [(f"The day shift makes {p} {x} per hour for {h} hours.", f"For {h} hours the day shift makes {p} {x} an hour."),
                 (f"The night shift makes {q} {x} per hour for {g} hours.", f"At night it is {q} {x} per hour, for {g} hours.",
                  f"The night shift lasts {g} hours and makes {q} {x} an hour.")],
             (f"How many {x} does the factory make in {days} days?", f"How many {x} are made in {days} days?",
              f"What is the output of {days} days?")),
        [f"The day shift makes {first} {x}.", f"The night shift makes {second} {x}.", f"A day brings {each} {x}.",
         f"In {days} days it is {total} {x}."], total)


@family
def stock_and_sales(d: Draw) -> Story:
    x, days = d.pick(things.MADE), d.int(2, 20)
    stock, made, sold = d.int(100, 900, 10), d.int(5, 60), d.int(5, 60)
    d.require(made < sold)
    loss = calc(sold, "-", made)
    gone = calc(loss, "*", days)
    left = calc(stock, "-", gone)
    return story(
        tell(d, [(f"A workshop has {stock} {x} in stock.", f"{stock} {x} are in the store room of a workshop.", f"The stock of a workshop is {stock} {x}."),
                 (f"Each day the workshop makes {made} {x} and sells {sold}.", f"Per day {made} new {x} are made and {sold} are sold.",
                  f"The daily sales are {sold} {x}, and {made} are made per day.")],
             (f"How many {x} are in stock after {days} days?", f"How large is the stock in {days} days?", f"What is left of the stock after {days} days?")),
        [f"The stock falls by {loss} {x} per day.", f"In {days} days it falls by {gone}.", f"Then there are {x(left)}."], left)


@family
def material_for_goods(d: Draw) -> Story:
    a, x = person(d), d.pick(things.HANDMADE)
    unit = d.pick(["beads", "buttons", "sheets of paper", "sticks", "shells", "feathers", "pins", "grams of clay"])
    per, have, n = d.int(3, 25), d.int(5, 120), d.int(5, 40)
    need = calc(n, "*", per)
    missing = calc(need, "-", have)
    d.require(missing.value > 1)
    return story(
        tell(d, [(f"For {x.a} {a} needs {per} {unit}.", f"{x.a.capitalize()} takes {per} {unit}.", f"{per} {unit} go into {x.a}."),
                 (f"{a} has {have} {unit}.", f"There are {have} {unit} in {a}'s drawer.", f"{have} {unit} are already there.")],
             (f"How many more {unit} does {a} need for {x(n)}?", f"{a} wants to make {x(n)}. How many {unit} are missing?",
              f"How many {unit} must {a} buy to make {x(n)}?")),
        [f"The {x} take {need} {unit}.", f"{a} needs {missing} more."], missing)


@family
def part_done(d: Draw) -> Story:
    a, x = person(d), d.pick(things.HANDMADE + things.MADE)
    k, part, per_day = d.number_from((2, 3, 4, 5)), d.int(4, 40), d.int(2, 15)
    n = k * part
    d.require((n - part) % per_day == 0)
    done = calc(n, "/", k)
    rest = calc(n, "-", done)
    days = calc(rest, "/", per_day)
    d.require(days.value > 1)
    return story(
        tell(d, (f"{a} has to make {n} {x}.", f"An order of {n} {x} reaches {a}.", f"{a}'s customers want {n} {x}."),
             [(f"{capital(PARTS[k])} of the {x} are finished.", f"{a} has finished {PARTS[k]} of the {x}."),
              (f"{a} makes {per_day} a day.", f"Each day {a} makes {per_day} {x}.", f"A day's work of {a} is {per_day} {x}.")],
             ("How many days does the rest take?", f"How many more days does {a} need?", "In how many days is the order done?")),
        [f"The number of finished {x} is {done}.", f"The rest is {rest} {x}.", f"It takes {days} days."], days)


@family
def typing_speed(d: Draw) -> Story:
    a, b = d.person(), d.person()
    unit = d.pick(nouns("word, character, letter, number, digit"))
    p, q, minutes = d.int(3, 60), d.int(3, 60), d.int(3, 40)
    d.require(p != q)
    first, second = calc(p, "*", minutes), calc(q, "*", minutes)
    total = calc(first, "+", second)
    return story(
        tell(d, [(f"{a} types {p} {unit} per minute.", f"In a minute {a} types {p} {unit}."),
                 (f"{b} types {q} {unit} per minute.", f"Per minute {b} types {q} {unit}.", f"{q} {unit} a minute is {b}'s speed.")],
             (f"How many {unit} do {a} and {b} type in {minutes} minutes?", f"In {minutes} minutes, how many {unit} do {a} and {b} type together?",
              f"{a} and {b} work for {minutes} minutes. How many {unit} are that in all?")),
        [f"{a} types {first} {unit}.", f"{b} types {second} {unit}.", f"Together they type {total} {unit}."], total)

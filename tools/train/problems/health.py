"""Exercise, sleep, food and health."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import capital, maybe, nouns, spelled, story, tell
from .wordings import person


@family
def exercise_sets(d: Draw) -> Story:
    a, x = person(d), d.pick(things.EXERCISES)
    sets, per, days = d.int(2, 8), d.int(5, 40), d.int(2, 14)
    daily = calc(sets, "*", per)
    total = calc(daily, "*", days)
    return story(
        tell(d, (f"{a} does {sets} sets of {per} {x} a day.", f"Each day {a} does {sets} sets with {per} {x}.", f"{a}'s plan for a day is {sets} sets, each of {per} {x}."),
             maybe(d, f"Between the sets {a} rests {d.int(20, 90, 10)} seconds."),
             (f"How many {x} is that in {days} days?", f"How many {x} does {a} do in {days} days?", f"After {days} days, how many {x} has {a} done?")),
        [f"Per day it is {daily} {x}.", f"In {days} days it is {total} {x}."], total)


@family
def more_each_day(d: Draw) -> Story:
    a, x = person(d), d.pick([str(e) for e in things.EXERCISES] + ["laps", "minutes", "stairs", "jumps"])
    n, step = d.int(5, 60), d.int(2, 15)
    second = calc(n, "+", step)
    third = calc(second, "+", step)
    total = calc(n, "+", second, "+", third)
    verb = d.pick(["trains", "practices", "exercises"])
    return story(
        tell(d, (f"{a} {verb} for three days.", f"For three days {a} {verb} with a plan.", f"{a}'s plan covers three days."),
             (f"The first day has {n} {x}, and each day adds {step}.", f"On the first day it is {n} {x}. Every following day it is {step} more than the day before.",
              f"Starting with {n} {x}, {a.they} does {step} more every day."),
             (f"How many {x} are that in three days?", f"How many {x} does {a} do altogether?", f"What is the total number of {x}?")),
        [f"The second day has {second} {x}.", f"The third day has {third} {x}.", f"In three days it is {total} {x}."], total)


@family
def calories_of_a_day(d: Draw) -> Story:
    a = person(d)
    goal, n, more = d.int(1500, 3000, 50), d.int(150, 500, 10), d.int(50, 300, 10)
    second = calc(n, "+", more)
    third = calc(n, "*", 2)
    eaten = calc(n, "+", second, "+", third)
    left = calc(goal, "-", eaten)
    return story(
        tell(d, (f"{a} wants to eat {goal} calories a day.", f"The goal of {a} is {goal} calories per day.", f"{goal} calories a day are on {a}'s plan."),
             [(f"The breakfast of {a} has {n} calories.", f"For breakfast {a} eats {n} calories."),
              (f"The lunch has {more} calories more than the breakfast.", f"For lunch it is {more} calories more than for breakfast."),
              ("The dinner has twice as many calories as the breakfast.", "For dinner it is twice as much as for breakfast.")],
             ("How many calories are left?", f"How many calories may {a} still eat?", "How many calories are missing to the goal?")),
        [f"The lunch has {second} calories.", f"The dinner has {third} calories.", f"The meals have {eaten} calories.", f"So {left} calories are left."], left)


@family
def weight_lost(d: Draw) -> Story:
    a = person(d)
    start, per, weeks, back = d.int(120, 300), d.int(1, 4), d.int(3, 20), d.int(2, 12)
    d.require(per > 1)
    lost = calc(per, "*", weeks)
    low = calc(start, "-", lost)
    end = calc(low, "+", back)
    return story(
        tell(d, (f"{a} weighs {start} pounds.", f"The scale shows {start} pounds for {a}.", f"{a} starts a diet at {start} pounds."),
             (f"For {weeks} weeks {a.they} loses {per} pounds a week.", f"{a.They} loses {per} pounds per week over {weeks} weeks.", f"Each of the next {weeks} weeks takes {per} pounds off."),
             (f"On vacation {a.they} gains {back} pounds.", f"Then {back} pounds come back.", f"After that the weight goes up by {back} pounds."),
             (f"How much does {a} weigh now?", "What does the scale show in the end?", f"How many pounds does {a} weigh then?")),
        [f"{a} loses {lost} pounds.", f"Then {a} weighs {low} pounds.", f"In the end {a} weighs {end} pounds."], end)


@family
def glasses_of_water(d: Draw) -> Story:
    a = person(d)
    n, ml, days = d.int(3, 12), d.number_from((150, 200, 250, 300, 400, 500)), d.int(2, 14)
    daily = calc(n, "*", ml)
    total = calc(daily, "*", days)
    liters = calc(total, "/", 1000)
    d.require(liters.value > 1)
    return story(
        tell(d, (f"{a} drinks {n} glasses of water a day.", f"Each day {a} has {spelled(d, n)} glasses of water.", f"Per day {a} empties {n} glasses of water."),
             (f"A glass holds {ml} milliliters.", f"{ml} milliliters fit into a glass.", f"One glass is {ml} milliliters."),
             (f"How many liters is that in {days} days?", f"How many liters of water does {a} drink in {days} days?", f"After {days} days, how many liters has {a} drunk?")),
        [f"Per day it is {daily} milliliters.", f"In {days} days it is {total} milliliters.", f"Those are {liters} liters."], liters)


@family
def pills_in_a_bottle(d: Draw) -> Story:
    a, x = person(d), d.pick(nouns("pill, tablet, capsule, vitamin, spoonful/spoonfuls, lozenge"))
    morning, evening, days, spare = d.int(1, 4), d.int(1, 4), d.int(3, 40), d.int(2, 30)
    n = (morning + evening) * days + spare
    daily = calc(morning, "+", evening)
    used = calc(daily, "*", days)
    left = calc(n, "-", used)
    return story(
        tell(d, [(f"{a}'s bottle contains {n} {x}.", f"There are {n} {x} in a bottle.", f"A bottle of medicine has {n} {x}."),
                 (f"{a} takes {x(morning)} in the morning and {evening} in the evening.", f"Each morning {a} takes {x(morning)}, each evening {evening}.",
                  f"A day's dose for {a} is {x(morning)} in the morning plus {evening} at night.")],
             (f"How many {x} are left after {days} days?", f"After {days} days, how many {x} remain?", f"What number of {x} is in the bottle {days} days later?")),
        [f"Per day it is {daily} {x}.", f"In {days} days it is {used} {x}.", f"Then {left} are left."], left)


@family
def heartbeats(d: Draw) -> Story:
    a = person(d)
    x, rest, k, minutes = d.pick(["running", "cycling", "dancing", "climbing", "rowing"]), d.int(50, 80), 2, d.int(2, 30)
    fast = calc(rest, "*", k)
    gap = calc(fast, "-", rest)
    total = calc(gap, "*", minutes)
    return story(
        tell(d,
             (f"At rest {a}'s heart beats {rest} times per minute.", f"The pulse of {a} at rest is {rest} beats a minute.", f"Sitting still, {a} counts {rest} heartbeats a minute."),
             (f"When {x}, {a} has twice that pulse.", f"{capital(x)} doubles the pulse.", f"While {x}, the heart beats twice as fast."),
             (f"How many more beats than at rest are there in {minutes} minutes of {x}?", f"In {minutes} minutes of {x}, how many beats more than at rest is that?",
              f"How many additional beats do {minutes} minutes of {x} cause?")),
        [f"When {x} it is {fast} beats per minute.", f"That is {gap} more per minute.", f"In {minutes} minutes it is {total} more."], total)


@family
def hours_of_sleep(d: Draw) -> Story:
    a = person(d)
    p, q, need, weeks = d.int(5, 8), d.int(7, 11), d.int(7, 10), d.int(2, 9)
    week, end = calc(5, "*", p), calc(2, "*", q)
    total = calc(week, "+", end)
    wanted = calc(7, "*", need)
    gap = calc(wanted, "-", total)
    total_gap = calc(gap, "*", weeks)
    d.require(gap.value > 1 and p != q)
    return story(
        tell(d, (f"{a} sleeps {p} hours on each of 5 school nights and {q} hours on each of 2 other nights.",
                 f"On 5 nights of the week {a} sleeps {p} hours each; on the other 2 it is {q} hours each.",
                 f"{a}'s nights: 5 nights of {p} hours and 2 nights of {q} hours in a week."),
             (f"The doctor wants {need} hours every night.", f"{a.They} needs {need} hours per night.", f"For {a}'s age {need} hours per night are right."),
             (f"How many hours are missing in {weeks} weeks?", f"How many hours of sleep does {a} lack in {weeks} weeks?", f"If {weeks} weeks are like this, how many hours of sleep are missing?")),
        [f"The 5 nights have {week} hours.", f"The 2 nights have {end} hours.", f"The week has {total} hours.", f"It should have {wanted} hours.",
         f"So a week lacks {gap} hours.", f"In {weeks} weeks {total_gap} hours are missing."], total_gap)


@family
def miles_toward_a_goal(d: Draw) -> Story:
    a, verb, unit = person(d), d.pick(["runs", "walks", "cycles", "swims", "hikes"]), d.pick(["miles", "kilometers"])
    per, days, weeks, rest = d.int(2, 15), d.int(2, 6), d.int(2, 10), d.int(5, 80)
    weekly = calc(per, "*", days)
    done = calc(weekly, "*", weeks)
    goal = done.value + rest
    left = calc(goal, "-", done)
    return story(
        tell(d, [(f"The goal of {a} is {goal} {unit}.", f"{a} wants to reach {goal} {unit}.", f"{goal} {unit} are {a}'s aim for the year."),
                 (f"{a} {verb} {per} {unit} on {days} days of each week.", f"On {days} days a week {a} {verb} {per} {unit}.", f"{days} times a week {a} {verb} {per} {unit}.")],
             (f"How many {unit} are left after {weeks} weeks?", f"After {weeks} weeks, how many {unit} does {a} still need?", f"How far is {a} from the goal after {weeks} weeks, in {unit}?")),
        [f"A week has {weekly} {unit}.", f"In {weeks} weeks it is {done} {unit}.", f"So {left} {unit} are left."], left)


@family
def average_minutes(d: Draw) -> Story:
    a, x = person(d), d.pick(["exercise", "yoga", "swimming", "dancing", "stretching", "piano practice", "jogging"])
    n, m, k, j = d.int(5, 60, 5), d.int(5, 60, 5), d.int(5, 60, 5), d.int(5, 60, 5)
    d.require((n + m + k + j) % 4 == 0)
    total = calc(n, "+", m, "+", k, "+", j)
    result = calc(total, "/", 4)
    return story(
        tell(d, (
            f"On four days {a} does {n}, {m}, {k} and {j} minutes of {x}. How many minutes is that per day on average?",
            f"{a} logs {n} minutes of {x} on Monday, {m} on Tuesday, {k} on Wednesday and {j} on Thursday. What is the average?",
            f"What is {a}'s average time of {x} per day if four days have {n}, {m}, {k} and {j} minutes?",
            f"Four days of {x} take {a} {n}, {m}, {k} and {j} minutes. What is the mean?")),
        [f"The sum is {total} minutes.", f"The average is {result} minutes."], result)


@family
def gym_membership(d: Draw) -> Story:
    a, x = person(d), d.pick(["gym", "swimming club", "tennis club", "yoga studio", "climbing hall", "dance school"])
    fee, months, entry, cut = d.int(15, 90), d.int(3, 24), d.int(10, 120, 5), d.int(5, 60, 5)
    total = calc(fee, "*", months)
    high = calc(total, "+", entry)
    end = calc(high, "-", cut)
    return story(
        tell(d, (f"A {x} costs ${fee} per month and ${entry} to join.", f"To join a {x} {a} pays ${entry}, and each month costs ${fee}.",
                 f"The monthly fee of a {x} is ${fee}. Joining costs ${entry} once."),
             (f"{a} has a voucher for ${cut}.", f"A voucher saves {a} ${cut}.", f"There is ${cut} off for new members like {a}."),
             (f"How much does {a} pay for {months} months?", f"What do {months} months cost {a} in all?", f"How many dollars are {months} months for {a}?")),
        [f"The months cost {total:$}.", f"With the fee for joining it is {high:$}.", f"{a} pays {end:$}."], end)


@family
def burned_calories(d: Draw) -> Story:
    a = person(d)
    x, y = d.pick_two(["running", "cycling", "swimming", "rowing", "dancing", "hiking", "skating", "boxing"])
    p, h, q, g = d.int(5, 15), d.int(10, 60, 5), d.int(4, 14), d.int(10, 60, 5)
    first, second = calc(p, "*", h), calc(q, "*", g)
    total = calc(first, "+", second)
    return story(
        tell(d, (f"{capital(x)} burns {p} calories per minute and {y} {q}.", f"In a minute {x} burns {p} calories; {y} burns {q}.",
                 f"{a} burns {p} calories a minute by {x} and {q} a minute by {y}."),
             (f"{a} does {h} minutes of {x} and {g} minutes of {y}.", f"{a}'s plan is {h} minutes of {x} and then {g} minutes of {y}.", f"First {a} spends {h} minutes {x}, then {g} minutes {y}."),
             ("How many calories is that?", f"How many calories does {a} burn in all?", "What is the sum in calories?")),
        [f"The {x} burns {first} calories.", f"The {y} burns {second} calories.", f"In all it is {total} calories."], total)


@family
def doctors_patients(d: Draw) -> Story:
    a = person(d)
    minutes, hours, days = d.number_from((5, 6, 10, 12, 15, 20, 30)), d.int(2, 9), d.int(2, 6)
    x = d.pick(nouns("doctor, dentist, nurse, vet, therapist"))
    per = calc(60, "/", minutes)
    daily = calc(per, "*", hours)
    total = calc(daily, "*", days)
    return story(
        tell(d, (f"As {x.a}, {a} needs {minutes} minutes for a patient.", f"{a} is {x.a} who spends {minutes} minutes on each patient.", f"Each patient takes {minutes} minutes of {a}'s time as {x.a}."),
             (f"{a.They} works {hours} hours a day.", f"A working day has {hours} hours.", f"The office is open {hours} hours a day."),
             (f"How many patients is that in {days} days?", f"How many patients can {a} see in {days} days?", f"In {days} days, how many patients are seen?")),
        [f"In an hour there are {per} patients.", f"In a day there are {daily} patients.", f"In {days} days there are {total} patients."], total)


@family
def decimal_distance(d: Draw) -> Story:
    a, verb, unit = person(d), d.pick(["runs", "walks", "cycles", "hikes"]), d.pick(["miles", "kilometers"])
    n, m = d.decimal(1, 20), d.decimal(1, 20)
    d.require(n % 1 != 0 and n > 1 and m > 1)
    total = calc(n, "+", m)
    return story(
        tell(d, (
            f"{a} {verb} {n} {unit} on Saturday and {m} {unit} on Sunday. How many {unit} is that?",
            f"On one day {a} {verb} {n} {unit}, on the next {m}. How many {unit} are that together?",
            f"How far does {a} get in two days if {a.they} {verb} {n} {unit} and then {m} {unit}?",
            f"After {n} {unit} in the morning {a} {verb} another {m} {unit} in the evening. What is the distance in {unit}?")),
        [f"Together it is {total} {unit}."], total)


@family
def decimal_laps(d: Draw) -> Story:
    a, unit = person(d), d.pick(["miles", "kilometers"])
    lap, n, done = d.decimal(1, 6), d.int(2, 15), d.decimal(1, 12)
    d.require(lap % 1 != 0 and lap > 1)
    route = calc(lap, "*", n)
    left = calc(route, "-", done)
    d.require(left.value > 1 and done > 1)
    return story(
        tell(d, (f"A path is {lap} {unit} long, and {a} wants to do it {n} times.", f"{a} plans {n} rounds of a path that is {lap} {unit} long.",
                 f"{n} rounds of {lap} {unit} each are {a}'s plan."),
             (f"So far {a.they} has done {done} {unit}.", f"{done} {unit} are already behind {a}.", f"After {done} {unit} {a} takes a break."),
             (f"How many {unit} are left?", f"How many {unit} does {a} still have to go?", f"What distance remains, in {unit}?")),
        [f"The plan is {route} {unit}.", f"The rest is {left} {unit}."], left)

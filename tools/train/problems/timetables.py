"""Time, schedules and what is done in it."""

from decimal import Decimal

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, capitalized, grouped, people, person, several, shuffled, tell

PRODUCTS = nouns(words.PRODUCTS)


@family
def minutes_of_hours(d: Draw) -> Story:
    a, hours, minutes, x = person(d), d.int(2, 9), d.int(2, 58), d.pick(words.ACTIVITIES)
    first = calc(hours, "*", 60)
    total = calc(first, "+", minutes)
    return Story(
        tell(d, (
            f"{a} practices {x} for {hours} hours and {minutes} minutes. How many minutes is that?",
            f"How many minutes are {hours} hours and {minutes} minutes?",
            f"A film lasts {hours} hours and {minutes} minutes. How many minutes long is it?",
            f"{a} slept {hours} hours and {minutes} minutes. What is that in minutes?")),
        [f"The hours have {first} minutes.", f"Together it is {total} minutes."],
        total)


@family
def weeks_to_days(d: Draw) -> Story:
    a, weeks, days = person(d), d.int(2, 30), d.int(2, 6)
    first = calc(weeks, "*", 7)
    total = calc(first, "+", days)
    return Story(
        tell(d, (
            f"{a}'s holidays last {weeks} weeks and {days} days. How many days is that?",
            f"How many days are {weeks} weeks and {days} days?",
            f"In {weeks} weeks and {days} days, {a} will fly to {d.pick(words.TOWNS)}. How many days must {a.they} "
            "wait?",
            f"A ship is at sea for {weeks} weeks and {days} more days. How many days does the voyage take?")),
        [f"The weeks have {first} days.", f"Together it is {total} days."],
        total)


@family
def practice_total(d: Draw) -> Story:
    a, x, minutes, days, weeks = person(d), d.pick(words.ACTIVITIES), d.int(10, 90, 5), d.int(2, 7), d.int(2, 10)
    weekly = calc(minutes, "*", days)
    total = calc(weekly, "*", weeks)
    hours = d.pick((True, False))
    answer = calc(total, "/", 60) if hours else total
    if hours:
        several(d, answer)
    return Story(
        tell(d,
             (f"{a} practices {x} {minutes} minutes a day, {days} days a week.",
              f"On {days} days of each week, {a} spends {minutes} minutes on {x}.",
              f"Each week {a} has {d.number_words(days)} lessons of {minutes} minutes in {x}." if not x.startswith("the ") else
              f"Each week {a} has {d.number_words(days)} lessons of {minutes} minutes for {x}."),
             (f"How many hours is that in {weeks} weeks?", f"How many hours does {a} practice in {weeks} weeks?",
              f"After {d.number_words(weeks)} weeks, how many hours has it been?") if hours else
             (f"How many minutes is that in {weeks} weeks?", f"How many minutes does {a} practice in {weeks} weeks?",
              f"After {d.number_words(weeks)} weeks, how many minutes has it been?")),
        [f"A week has {weekly} minutes.",
         f"In {weeks} weeks it is {total} minutes."] + ([f"That is {answer} hours."] if hours else []),
        answer)


@family
def longer_days(d: Draw) -> Story:
    a, x, n, more, k = person(d), d.pick(words.ACTIVITIES), d.int(10, 60, 5), d.int(5, 40, 5), d.number_from((2, 3))
    i = d.pick(range(5))
    day1, day2, day3 = words.WEEK[i:i + 3]
    second = calc(n, "+", more)
    third = calc(k, "*", n)
    total = calc(n, "+", second, "+", third)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} practices {x} for {n} minutes on {day1}.", f"On {day1}, {a} spends {n} minutes on {x}.",
                       f"For {x}, {a} takes {n} minutes on {day1}."),
                      (f"On {day2} it is {more} minutes more than on {day1}.",
                       f"{day2}'s time is {more} minutes longer than {day1}'s.",
                       f"The time on {day2} is that of {day1} and {more} more minutes."),
                      (f"On {day3} it is {words.TIMES[k]} as long as on {day1}.",
                       f"{day3} has {words.TIMES[k]} as many minutes as {day1}.",
                       f"The time on {day3} is {words.TIMES[k]} that of {day1}.")),
             ("How many minutes is that in the three days?", f"What is {a}'s total in minutes?",
              "How many minutes are there altogether?")),
        [f"On {day2} it is {second} minutes.", f"On {day3} it is {third} minutes.", f"In all it is {total} minutes."],
        total)


@family
def free_time_left(d: Draw) -> Story:
    a, hours = person(d), d.int(2, 6)
    (x, p), (y,
             q) = d.pick_two((("homework", d.int(10, 80, 5)), ("dinner", d.int(20, 60, 5)),
                              ("a walk", d.int(10, 70, 5)), ("the dishes", d.int(5, 30)),
                                 ("a phone call", d.int(5, 40)), ("shopping", d.int(20, 90, 5))))
    have = calc(hours, "*", 60)
    used = calc(p, "+", q)
    left = calc(have, "-", used)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} comes home {hours} hours before bedtime.", f"There are {hours} hours until {a} goes to bed.",
              f"This evening {a} has {hours} hours."),
             shuffled(d,
                      (f"{a} needs {p} minutes for {x}.", f"{x} takes {p} minutes.",
                       f"{p} minutes go into {x}.") if x != "the dishes" else
                      (f"{a} needs {p} minutes for {x}.", f"{x} take {p} minutes.", f"{p} minutes go into {x}."),
                      (f"{a} needs {q} minutes for {y}.", f"{y} takes {q} minutes.",
                       f"{q} minutes go into {y}.") if y != "the dishes" else
                      (f"{a} needs {q} minutes for {y}.", f"{y} take {q} minutes.", f"{q} minutes go into {y}.")),
             ("How many minutes are left for a book?", f"For how many minutes can {a} play?",
              "How many minutes remain?")),
        [f"There are {have} minutes.", f"{capitalized(x)} and {y} take {used} minutes.",
         f"So {left} minutes are left."],
        left)


@family
def work_rate_time(d: Draw) -> Story:
    a, x, per, hours = adult(d), d.pick(PRODUCTS), d.int(2, 30), d.int(2, 20)
    total = per * hours
    time = calc(total, "/", per)
    return Story(
        tell(d, (
            f"{a} makes {per} {x} an hour. How many hours does {a} need for {total} {x}?",
            f"How many hours does it take {a} to make {total} {x} at {per} per hour?",
            f"In one hour {a} finishes {per} {x}. {total} {x} have been ordered. After how many hours are they done?",
            f"{total} {x} must be made. {a} can make {per} each hour. How many hours is that?")),
        [f"It takes {time} hours."],
        time)


@family
def rate_per_hour_rest(d: Draw) -> Story:
    a, x = adult(d), d.pick(("envelopes", "boxes", "letters", "forms", "bags", "photos"))
    n, first, second, hours = d.int(200, 2000, 10), d.int(20, 150), d.int(20, 150), d.int(4, 10)
    d.require((n - first - second) % (hours - 2) == 0)
    left = calc(n, "-", first, "-", second)
    rest = calc(hours, "-", 2)
    answer = calc(left, "/", rest)
    several(d, answer)
    return Story(
        tell(d,
             (f"{a} has {hours} hours to sort {grouped(d, n)} {x}.",
              f"{n} {x} have to be sorted by {a} in {hours} hours.",
              f"Within {hours} hours, {a} must sort {n} {x}."),
             (f"In the first hour it is {first}, in the second {second}.",
              f"{a} does {first} in the first hour and {second} in the second hour.",
              f"After one hour {first} are done, and the second hour adds {second}."),
             ("How many per hour must be done in the remaining time?",
              f"How many must {a} do in each hour that is left?",
              f"How many {x} per hour are needed to finish in time?")),
        [f"There are {left} {x} left.", f"There are {rest} hours left.", f"That is {answer} {x} per hour."],
        answer)


@family
def faster_together(d: Draw) -> Story:
    (a, b), x, p, q, hours = people(d, 2), d.pick(PRODUCTS), d.int(2, 20), d.int(2, 20), d.int(2, 12)
    both = calc(p, "+", q)
    total = both.value * hours
    time = calc(total, "/", both)
    ask = d.pick((True, False))
    made = calc(both, "*", hours)
    return Story(
        tell(d,
             (f"{a} makes {p} {x} an hour and {b} makes {q}.", f"In an hour, {a} finishes {p} {x} and {b} {q}.",
              f"{b} can make {q} {x} per hour, and {a} can make {p} per hour."),
             (f"How many hours do they need for {total} {x} together?",
              f"They work together on {total} {x}. How many hours does it take?",
              f"If both work, after how many hours are {total} {x} ready?") if ask else
             (f"How many {x} do they make together in {hours} hours?",
              f"They work side by side for {hours} hours. How many {x} is that?",
              f"If both work for {hours} hours, how many {x} are there?")),
        [f"In an hour it is {both} {x}.",
         f"So it takes {time} hours." if ask else f"In {hours} hours it is {made} {x}."],
        time if ask else made)


@family
def meeting_schedule(d: Draw) -> Story:
    n, minutes, pause = d.int(3, 10), d.int(10, 60, 5), d.int(5, 20, 5)
    x = d.pick(("meetings", "lessons", "speeches", "interviews", "exams", "rounds"))
    talks = calc(n, "*", minutes)
    gaps = calc(n, "-", 1)
    pauses = calc(gaps, "*", pause)
    total = calc(talks, "+", pauses)
    return Story(
        tell(d,
             (f"There are {n} {x} of {minutes} minutes each, with a break of {pause} minutes between one and the next.",
              f"A day has {n} {x}, each {minutes} minutes long. Between two of them there is a break of {pause} "
              "minutes.",
              f"Between {n} {x} of {minutes} minutes there are breaks of {pause} minutes."),
             ("How many minutes pass from the beginning of the first to the end of the last?",
              "How long does everything take in minutes?",
              "How many minutes is that from start to finish?")),
        [f"The {x} take {talks} minutes.", f"There are {gaps} breaks.", f"The breaks take {pauses} minutes.",
         f"In all it is {total} minutes."],
        total)


@family
def seasons_of_a_show(d: Draw) -> Story:
    a, seasons, episodes = person(d), d.int(2, 8), d.int(4, 24)
    minutes, days = d.number_from((20, 24, 25, 30, 40, 45, 50, 60)), d.int(2, 20)
    total = calc(seasons, "*", episodes)
    time = calc(total, "*", minutes)
    ask = d.pick((True, False))
    answer = calc(time, "/", 60) if ask else calc(time, "/", days)
    several(d, answer)
    return Story(
        tell(d,
             (f"A series has {seasons} seasons of {episodes} episodes. An episode lasts {minutes} minutes.",
              f"{a} watches a show with {seasons} seasons. Each season has {episodes} episodes of {minutes} minutes.",
              f"Each of the {seasons} seasons of a show has {episodes} episodes, and each episode takes {minutes} "
              "minutes."),
             ("How many hours does the whole show last?", "How many hours does it take to see all of it?",
              "What is the length of everything in hours?") if ask else
             (f"{a} wants to see all of it in {days} days. How many minutes a day is that?",
              f"How many minutes a day must {a} watch to see everything in {days} days?",
              f"If {a} sees all of it in {days} days, how many minutes is that per day?")),
        [f"There are {total} episodes.", f"They last {time} minutes.",
         f"That is {answer} hours." if ask else f"That is {answer} minutes a day."],
        answer)


@family
def length_of_last_part(d: Draw) -> Story:
    a, hours = person(d), d.int(2, 6)
    x = d.pick(("episodes", "concerts", "chapters", "matches", "lessons", "stages"))
    parts = [d.int(15, 75) for _ in range(3)]
    whole = calc(hours, "*", 60)
    three = calc(parts[0], "+", parts[1], "+", parts[2])
    last = calc(whole, "-", three)
    several(d, last)
    return Story(
        tell(d, (
            f"Four {x} last {hours} hours in all. The first three are {parts[0]}, {parts[1]} and {parts[2]} minutes "
            "long. How many minutes does the fourth last?",
            f"{a} has {hours} hours for four {x}. Three of them take {parts[0]}, {parts[1]} and {parts[2]} minutes. "
            "How many minutes are left for the fourth?",
            f"How many minutes long is the last of four {x}, if together they take {hours} hours and the others take "
            f"{parts[0]}, {parts[1]} and {parts[2]} minutes?")),
        [f"In all there are {whole} minutes.", f"The first three take {three} minutes.",
         f"The fourth takes {last} minutes."],
        last)


@family
def calls_late(d: Draw) -> Story:
    a, late, n, more = person(d), d.int(3, 30), d.int(2, 9), d.int(2, 20)
    each = calc(late, "+", more)
    others = calc(n, "*", each)
    total = calc(late, "+", others)
    place = d.pick(("school", "the meeting", "practice", "the rehearsal", "work"))
    return Story(
        tell(d,
             (f"{a} is {late} minutes late for {place}, and {n} others are each {more} minutes later than {a}.",
              f"{n} people come to {place} {more} minutes after {a}, who is {late} minutes late.",
              f"For {place}, {a} comes {late} minutes late. {capitalized(d.number_words(n))} friends of {a} come "
              f"{more} minutes after {a.them}."),
             ("How many minutes are all of them late together?",
              "What is the total of everybody's lateness in minutes?",
              "Added up, how many minutes late are they?")),
        [f"Each of the others is {each} minutes late.", f"They are {others} minutes late together.",
         f"With {a} it is {total} minutes."],
        total)


@family
def medicine_days(d: Draw) -> Story:
    a, times, pills, days, price = adult(d), d.int(2, 4), d.int(2, 3), d.int(3, 30), d.int(2, 5)
    daily = calc(times, "*", pills)
    total = calc(daily, "*", days)
    bottle = d.pick((True, False))
    answer = calc(total, "*", price) if bottle else total
    when = {2: "twice", 3: "three times", 4: "four times"}[times]
    return Story(
        tell(d,
             (f"{a} has to take {pills} pills {when} a day for {days} days.",
              f"For {days} days, {a} takes medicine {when} a day, {pills} pills each time.",
              f"The doctor tells {a} to take {d.number_words(pills)} pills {when} every day. This goes on for {days} "
              "days."),
             (f"A pill costs ${price}. How much do all of them cost?",
              f"How many dollars is that if each pill costs ${price}?",
              f"What does {a} pay for the pills at ${price} each?") if bottle else
             ("How many pills is that?", f"How many pills does {a} need?", "How many pills are taken in all?")),
        [f"A day takes {daily} pills.",
         f"In {days} days it is {total} pills."] + ([f"They cost {answer:$}."] if bottle else []),
        answer)


@family
def parking_hours(d: Draw) -> Story:
    a, first, rate, hours = adult(d), d.int(2, 9), d.int(1, 5), d.int(3, 12)
    later = calc(hours, "-", 1)
    extra = calc(later, "*", rate)
    total = calc(first, "+", extra)
    x = d.pick(("a parking place", "a boat", "a bicycle", "a scooter", "a tennis court"))
    return Story(
        tell(d,
             (f"{x} costs ${first} for the first hour and ${rate} for each hour after that.",
              f"For {x}, the first hour is ${first} and every further hour is ${rate}.",
              f"The price of {x} is ${first} for one hour. Each additional hour costs ${rate}."),
             (f"How much does {a} pay for {hours} hours?", f"{a} takes it for {hours} hours. What does that cost?",
              f"What is the price for {d.number_words(hours)} hours?")),
        [f"There are {later} further hours.", f"They cost {extra:$}.", f"The price is {total:$}."],
        total)


@family
def days_until_done(d: Draw) -> Story:
    a = person(d)
    x = d.pick(("pages", "puzzles", "exercises", "worksheets", "drawings", "pushups", "translations"))
    daily, k, days = d.int(3, 30), d.int(2, 20), d.int(3, 25)
    rest = daily * days
    total = rest + k
    left = calc(total, "-", k)
    answer = calc(left, "/", daily)
    return Story(
        tell(d,
             (f"{a} has to do {total} {x} and has done {k}.", f"Of {total} {x}, {a} has finished {k}.",
              f"{k} of the {total} {x} on {a}'s list are done."),
             (f"{a.They} does {daily} a day. How many more days does it take?",
              f"With {daily} a day, after how many days will {a} be ready?",
              f"If {a} does {daily} per day, for how many days does the rest last?")),
        [f"There are {left} {x} left.", f"That takes {answer} days."],
        answer)


@family
def typing_side_by_side(d: Draw) -> Story:
    (a, b), p, less, minutes = people(d, 2), d.int(20, 90), d.int(2, 18), d.int(2, 30)
    q = calc(p, "-", less)
    first, second = calc(p, "*", minutes), calc(q, "*", minutes)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             (f"{a} types {p} words a minute, and {b} types {less} words a minute fewer.",
              f"{b} writes {less} words per minute less than {a}, who writes {p} words per minute.",
              f"In a minute {a} types {p} words. {b} types {less} fewer."),
             (f"How many words do both type in {minutes} minutes?",
              f"Both type for {minutes} minutes. How many words is that together?",
              f"What is the number of words that they type together in {minutes} minutes?")),
        [f"{b} types {q} words a minute.", f"{a} types {first} words.", f"{b} types {second} words.",
         f"Together it is {total} words."],
        total)


@family
def half_hours(d: Draw) -> Story:
    a, half, n, days = person(d), d.pick((True, False)), d.int(2, 9), d.int(2, 12)
    hours = Decimal(n) + (Decimal("0.5") if half else 0)
    d.require(half or n > 2)
    total = calc(hours, "*", days)
    x = d.pick(("sleeps", "works", "reads", "paints", "trains", "studies"))
    shown = f"{n} and a half" if half else str(n)
    return Story(
        tell(d, (
            f"{a} {x} {shown} hours a day. How many hours is that in {days} days?",
            f"Each day {a} {x} for {shown} hours. How many hours does that make in {d.number_words(days)} days?",
            f"How many hours are {days} days with {shown} hours each?",
            f"For {days} days, {a} {x} {shown} hours daily. What is the total number of hours?")),
        [f"In {days} days it is {total} hours."],
        total)


@family
def monthly_subscription(d: Draw) -> Story:
    a, monthly, months, fee = adult(d), d.int(5, 60), d.int(1, 5), d.int(10, 90, 5)
    x = d.pick(("a gym", "a music service", "a film service", "a magazine", "a language course", "a phone plan"))
    all_months = calc(months, "*", 12) if months > 1 else calc(monthly, "*", 12)
    if months == 1:
        paid = all_months
        lines = [f"The months cost {paid:$}."]
        time = "one year"
    else:
        paid = calc(all_months, "*", monthly)
        lines = [f"That is {all_months} months.", f"The months cost {paid:$}."]
        time = f"{months} years"
    total = calc(paid, "+", fee)
    return Story(
        tell(d,
             (f"{x} costs {a} ${monthly} a month and ${fee} once at the beginning.",
              f"{a} signs up for {x}: ${fee} to start and then ${monthly} a month.",
              f"For {x}, {a} pays a first fee of ${fee} and ${monthly} every month."),
             (f"How much does {a} pay in {time}?", f"What is the cost for {time}?",
              f"How many dollars is that in {time}?")),
        [*lines, f"With the fee it is {total:$}."],
        total)

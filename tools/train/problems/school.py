"""Classes, tests, books."""

from . import words
from .problem import Draw, Story, calc, family


@family
def boys_and_girls(d: Draw) -> Story:
    classes, size, girls, away = d.int(3, 12), d.int(15, 32), d.int(20, 180), d.int(2, 20)
    total = calc(classes, "*", size)
    boys = calc(total, "-", girls)
    present = calc(boys, "-", away)
    d.require(present.value > 5)
    return Story(
        d.tell(
            (f"A school has {classes} classes of {size} students.",
             f"There are {classes} classes with {size} students each."),
            (f"{girls} of the students are girls.", f"Of all the students, {girls} are girls."),
            (f"Today {away} boys are sick.", f"{away} boys are on a trip."),
            ("How many boys are at school today?", "How many boys are in class?")),
        [f"There are {total} students.", f"There are {boys} boys.", f"Today there are {present} boys."],
        present)


@family
def average_score(d: Draw) -> Story:
    a, subject = d.person(), d.pick(words.SUBJECTS)
    s1, s2, s3, average = d.int(50, 99), d.int(50, 99), d.int(50, 99), d.int(55, 95)
    last = 4 * average - s1 - s2 - s3
    d.require(30 <= last <= 100)
    first = calc(s1, "+", s2)
    three = calc(first, "+", s3)
    total = calc(three, "+", last)
    mean = calc(total, "/", 4)
    return Story(
        d.tell(
            (f"{a} scores {s1}, {s2}, {s3} and {last} points on four {subject} tests.",
             f"On {a.their} four {subject} tests {a} got {s1}, {s2}, {s3} and {last} points."),
            (f"What is {a.their} average score?", "What is the average of the four tests?")),
        [f"Two tests make {first} points.", f"Three make {three} points.", f"All four make {total} points.",
         f"The average is {mean}."],
        mean)


@family
def needed_score(d: Draw) -> Story:
    a, subject = d.person(), d.pick(words.SUBJECTS)
    s1, s2, average = d.int(50, 99), d.int(50, 99), d.int(55, 95)
    total = calc(3, "*", average)
    have = calc(s1, "+", s2)
    need = calc(total, "-", have)
    d.require(20 <= need.value <= 100)
    return Story(
        d.tell(
            (f"{a} has {s1} and {s2} points on the first two {subject} tests.",
             f"In {subject}, {a} scored {s1} on the first test and {s2} on the second."),
            (f"What must {a.they} score on the third test for an average of {average}?",
             f"How many points does {a.they} need on the third test to reach an average of {average}?")),
        [f"An average of {average} takes {total} points.", f"{a} has {have} points.",
         f"{a.They} needs {need} points."],
        need)


@family
def reading_a_book(d: Draw) -> Story:
    a, book = d.person(), d.pick(words.BOOKS)
    d1, p1, p2, d2 = d.int(2, 9), d.int(8, 40), d.int(8, 40), d.int(2, 9)
    pages = d1 * p1 + d2 * p2
    read = calc(d1, "*", p1)
    left = calc(pages, "-", read)
    days = calc(left, "/", p2)
    return Story(
        d.tell(
            (f"{a} reads a {book} of {pages} pages.", f"{a}'s {book} has {pages} pages."),
            (f"For {d1} days {a.they} reads {p1} pages a day.",
             f"In the first {d1} days {a.they} reads {p1} pages each day."),
            (f"How many more days does {a.they} need at {p2} pages a day?",
             f"After that {a.they} reads {p2} pages a day. How many more days does it take?")),
        [f"{a} has read {read} pages.", f"There are {left} pages left.", f"It takes {days} more days."],
        days)


@family
def homework_time(d: Draw) -> Story:
    a = d.person()
    x, y = d.pick_two(words.SUBJECTS)
    n, t, m, u, pause = d.int(3, 15), d.int(2, 9), d.int(3, 15), d.int(2, 9), d.int(5, 30, 5)
    first, second = calc(n, "*", t), calc(m, "*", u)
    work = calc(first, "+", second)
    total = calc(work, "+", pause)
    return Story(
        d.tell(
            (f"{a} has {n} {x} problems and {m} {y} problems to do.",
             f"For homework {a} gets {n} {x} problems and {m} {y} problems."),
            (f"A {x} problem takes {t} minutes and a {y} problem takes {u} minutes.",
             f"{a.They} needs {t} minutes for each {x} problem and {u} minutes for each {y} problem."),
            (f"{a.They} also takes a break of {pause} minutes.", f"In between there is a {pause} minute break."),
            (f"How many minutes does it all take?", f"After how many minutes is {a} done?")),
        [f"The {x} takes {first} minutes.", f"The {y} takes {second} minutes.",
         f"The work takes {work} minutes.", f"With the break it is {total} minutes."],
        total)


@family
def buses_for_a_trip(d: Draw) -> Story:
    seats, buses, teachers, price = d.int(20, 55, 5), d.int(2, 9), d.int(4, 20), d.int(50, 200, 10)
    students = seats * buses - teachers
    total = calc(students, "+", teachers)
    count = calc(total, "/", seats)
    cost = calc(count, "*", price)
    place = d.pick(words.PLACES)
    return Story(
        d.tell(
            (f"{students} students and {teachers} teachers go to {place}.",
             f"A school takes {students} students and {teachers} teachers to {place}."),
            (f"A bus has {seats} seats and costs ${price}.", f"They rent buses with {seats} seats for ${price} each."),
            ("How much do the buses cost?", "What do they pay for the buses?")),
        [f"There are {total} people.", f"They need {count} buses.", f"The buses cost {cost:$}."],
        cost)


@family
def class_supplies(d: Draw) -> Story:
    a = d.person()
    x, y = d.pick_two(words.SUPPLIES)
    students, n, m, have = d.int(8, 32), d.int(2, 6), d.int(2, 5), d.int(5, 50)
    each = calc(n, "+", m)
    total = calc(students, "*", each)
    missing = calc(total, "-", have)
    d.require(missing.value > 0)
    return Story(
        d.tell(
            (f"{a} teaches {students} students. Each of them needs {n} {x} and {m} {y}.",
             f"Each of the {students} students in {a}'s class gets {n} {x} and {m} {y}."),
            (f"There are already {have} items in the cupboard.", f"{a} already has {have} of these things."),
            (f"How many items does {a} still need?", f"How many more things must {a} get?")),
        [f"Each student gets {each} items.", f"All together that is {total} items.",
         f"{a} still needs {missing} items."],
        missing)

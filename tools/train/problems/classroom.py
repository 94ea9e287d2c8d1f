"""School: classes, tests, books and clubs."""

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, person, several, tell

SUPPLIES = nouns(words.SUPPLY_LIST)


@family
def absent_students(d: Draw) -> Story:
    n, m, a = d.int(12, 40), d.int(2, 11), adult(d)
    here = calc(n, "-", m)
    several(d, here)
    return Story(
        tell(d, (
            f"There are {n} students in {a}'s class. {m} are absent today. How many students are here?",
            f"{m} of the {n} students in a class are ill. How many students come to school?",
            f"A class has {n} students, and {m} stay at home. How many are in the classroom?",
            f"How many students are present if {a} teaches {n} students and {m} of them are missing?")),
        [f"There are {here} students in class."],
        here)


@family
def classes_in_school(d: Draw) -> Story:
    n, m, k = d.int(3, 30), d.int(12, 35), d.int(2, 30)
    total = calc(n, "*", m)
    everybody = calc(total, "+", k)
    return Story(
        tell(d, (
            f"A school has {n} classes with {m} students each and {k} teachers. How many people are at the school?",
            f"There are {m} students in each of {n} classes of a school. The school also has {k} teachers. How many "
            "people is that?",
            f"How many students and teachers are there in a school with {n} classes of {m} students and with {k} "
            "teachers?")),
        [f"There are {total} students.", f"With the teachers there are {everybody} people."],
        everybody)


@family
def desks_in_rows(d: Draw) -> Story:
    n, m, k = d.int(3, 15), d.int(3, 12), d.int(2, 30)
    place = d.pick(("classroom", "hall", "gym", "library", "auditorium"))
    seat = d.pick(("desks", "chairs", "seats"))
    total = calc(n, "*", m)
    free = calc(total, "-", k)
    several(d, free)
    return Story(
        tell(d,
             (f"The {place} has {n} rows of {m} {seat}.",
              f"In the {place} the {seat} stand in {n} rows with {m} in each.",
              f"There are {n} rows in the {place}, and each row has {m} {seat}."),
             (f"{k} of them are taken. How many are free?", f"If {k} students sit down, how many {seat} stay empty?",
              f"How many {seat} are left when {k} people have sat down?")),
        [f"There are {total} {seat}.", f"So {free} {seat} are free."],
        free)


@family
def pencils_per_student(d: Draw) -> Story:
    a, x, n, m, have = adult(d), d.pick(SUPPLIES), d.int(8, 36), d.int(2, 9), d.int(5, 150)
    need = calc(n, "*", m)
    buy = calc(need, "-", have)
    several(d, buy)
    return Story(
        tell(d,
             (f"{a} wants to give {m} {x} to each of {n} students.",
              f"Each of the {n} students in {a}'s class needs {m} {x}.",
              f"{a} has a class of {n}, and everybody in it should get {m} {x}."),
             (f"There are {have} {x} in the cupboard.", f"{a} already has {have} {x}.",
              f"{have} {x} are left from last year."),
             d.maybe((f"The lesson begins at {d.int(8, 11)} am.", f"The school has {d.int(10, 40)} rooms.")),
             (f"How many {x} must {a} buy?", f"How many more {x} are needed?", f"How many {x} are missing?")),
        [f"The class needs {need} {x}.", f"So {buy} more {x} are needed."],
        buy)


@family
def divide_into_teams(d: Draw) -> Story:
    a, size, teams, rest = adult(d), d.int(3, 9), d.int(2, 12), d.int(0, 6)
    d.require(rest != 1)
    total = size * teams + rest
    playing = calc(total, "-", rest)
    answer = calc(playing, "/", size)
    if not rest:
        answer = calc(total, "/", size)
    group = d.pick(("teams", "groups"))
    first = ((f"{a} divides {total} students into {group} of {size}.",
              f"{total} students form {group} of {size} for {a}'s lesson.",
              f"In {a}'s lesson, {total} students work in {group} with {size} members each.") if not rest else
             (f"Of {total} students in {a}'s course, {rest} are away. The others form {group} of {size}.",
              f"{a} has {total} students. {rest} of them only watch, and the rest are put into {group} of {size}.",
              f"There are {total} students with {a}, but {rest} help as judges. All others are in {group} of {size}."))
    return Story(
        tell(d, first,
             (f"How many {group} are there?", f"How many {group} does that make?", f"What is the number of {group}?")),
        ([f"There are {playing} students for the {group}."] if rest else []) + [f"They form {answer} {group}."],
        answer)


@family
def girls_and_boys_difference(d: Draw) -> Story:
    more, boys = d.int(2, 12), d.int(5, 150)
    total = 2 * boys + more
    girls_first = d.pick((True, False))
    many, few = ("girls", "boys") if girls_first else ("boys", "girls")
    rest = calc(total, "-", more)
    less = calc(rest, "/", 2)
    place = d.pick(("school", "camp", "club", "summer school"))
    return Story(
        tell(d, (
            f"There are {total} children in a {place}. There are {more} more {many} than {few}. How many {few} are "
            "there?",
            f"A {place} has {total} children, with {more} {few} fewer than {many}. What is the number of {few}?",
            f"How many {few} are in a {place} of {total} children that has {more} more {many} than {few}?")),
        [f"Without the {more} more {many} there are {rest} children.", f"So there are {less} {few}."],
        less)


@family
def ratio_of_students(d: Draw) -> Story:
    p, q, k = d.int(2, 7), d.int(2, 7), d.int(2, 30)
    d.require(p != q)
    x, y = d.pick((("boys", "girls"), ("girls", "boys"), ("students", "teachers"),
                   ("sixth graders", "seventh graders")))
    parts = calc(p, "+", q)
    total = parts.value * k
    one = calc(total, "/", parts)
    answer = calc(one, "*", p)
    place = d.pick(("school", "club", "choir", "camp"))
    return Story(
        tell(d, (
            f"The ratio of {x} to {y} in a {place} is {p} to {q}. There are {total} {x} and {y} in all. How many {x} "
            "are there?",
            f"In a {place} of {total} people, {x} and {y} are in the ratio {p}:{q}. What is the number of {x}?",
            f"There are {p} {x} for every {q} {y} in a {place}. Together they are {total}. How many are {x}?")),
        [f"There are {parts} parts.", f"One part is {one} people.", f"So there are {answer} {x}."],
        answer)


@family
def pages_left_in_book(d: Draw) -> Story:
    a, daily, days, rest = person(d), d.int(5, 45), d.int(2, 14), d.int(5, 200)
    pages = daily * days + rest
    read = calc(daily, "*", days)
    left = calc(pages, "-", read)
    kind = d.pick(("book", "novel", "biography", "textbook", "comic book", "story collection"))
    return Story(
        tell(d,
             (f"{a} reads a {kind} of {pages} pages, {daily} pages a day.",
              f"A {kind} has {pages} pages. {a} reads {daily} of them every day.",
              f"Each day {a} reads {daily} pages of a {kind} with {pages} pages."),
             d.maybe((f"The {kind} has {d.int(5, 30)} chapters.", f"It was printed in {d.int(1950, 2020)}.")),
             (f"How many pages are left after {days} days?",
              f"After {d.number_words(days)} days, how many pages remain?",
              f"How many pages does {a} still have to read when {days} days are over?")),
        [f"{a} has read {read} pages.", f"So {left} pages are left."],
        left)


@family
def reading_goal_per_day(d: Draw) -> Story:
    a, done, days, daily = person(d), d.int(10, 200), d.int(2, 15), d.int(4, 40)
    pages = done + days * daily
    left = calc(pages, "-", done)
    answer = calc(left, "/", days)
    return Story(
        tell(d, (
            f"{a} has read {done} of the {pages} pages of a book and wants to finish it in {days} days. How many "
            f"pages must {a} read a day?",
            f"A book has {pages} pages. {a} has finished {done} pages and has {days} days left. How many pages a day "
            "is that?",
            f"How many pages per day does {a} need to read to finish a book of {pages} pages in {days} days, with "
            f"{done} pages already done?")),
        [f"There are {left} pages left.", f"That is {answer} pages a day."],
        answer)


@family
def pages_three_days(d: Draw) -> Story:
    a, n, k, fewer = person(d), d.int(10, 60), d.number_from((2, 3)), d.int(3, 50)
    i = d.pick(range(5))
    day1, day2, day3 = words.WEEK[i:i + 3]
    second = calc(n, "*", k)
    third = calc(second, "-", fewer)
    several(d, third)
    total = calc(n, "+", second, "+", third)
    return Story(
        tell(d,
             (f"{a} read {n} pages on {day1}.", f"On {day1}, {a} got through {n} pages.",
              f"{day1} was the day {a} began to read, with {n} pages."),
             (f"On {day2} it was {words.TIMES[k]} as many, and on {day3} it was {fewer} fewer than on {day2}.",
              f"{a} read {words.TIMES[k]} that number on {day2} and {fewer} pages less on {day3} than on {day2}.",
              f"On {day3} {a.they} read {fewer} pages less than on {day2}, when it was {words.TIMES[k]} as many as "
              f"on {day1}."),
             (f"How many pages did {a} read in the three days?", "How many pages is that altogether?",
              "What is the total number of pages?")),
        [f"On {day2} it was {second} pages.", f"On {day3} it was {third} pages.", f"In all it was {total} pages."],
        total)


@family
def test_points(d: Draw) -> Story:
    a, n, p, m, q = person(d), d.int(5, 30), d.int(2, 4), d.int(2, 12), d.int(5, 10)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             (f"A test has {n} short questions of {p} points each and {m} long questions of {q} points each.",
              f"In {a}'s {d.pick(words.SCHOOL_SUBJECTS)} test, a short question gives {p} points and a long one {q}. "
              f"There are {n} short and {m} long ones.",
              f"{n} short questions with {p} points each and {m} long ones with {q} points each make up a test."),
             d.maybe((f"There are {d.int(30, 90)} minutes for it.", f"{d.int(12, 30)} students take the test.")),
             ("How many points can be reached?", "What is the highest possible score?",
              f"How many points does {a} get if every answer is right?")),
        [f"The short questions give {first} points.", f"The long questions give {second} points.",
         f"Together it is {total} points."],
        total)


@family
def points_with_penalty(d: Draw) -> Story:
    a, n, plus, minus, right = person(d), d.int(10, 60), d.int(3, 6), d.int(1, 2), d.int(6, 55)
    wrong = calc(n, "-", right)
    several(d, wrong)
    gained, lost = calc(right, "*", plus), calc(wrong, "*", minus)
    score = calc(gained, "-", lost)
    several(d, score)
    point = "1 point" if minus == 1 else f"{minus} points"
    return Story(
        tell(d,
             (f"A quiz has {n} questions. A right answer gives {plus} points, and a wrong one costs {point}.",
              f"For every right answer in a quiz of {n} questions there are {plus} points. Each wrong answer takes "
              f"away {point}.",
              f"In a contest with {n} questions you get {plus} points for each correct answer and lose {point} for "
              "each wrong one."),
             (f"{a} answers all of them and gets {right} right. What is {a}'s score?",
              f"{a} has {right} right answers, and all others are wrong. How many points is that?",
              f"How many points does {a} have with {right} right answers and the rest wrong?")),
        [f"There are {wrong} wrong answers.", f"The right answers give {gained} points.",
         f"The wrong ones cost {lost} points.",
         f"The score is {score} points."],
        score)


@family
def percent_correct(d: Draw) -> Story:
    a, n, percent = person(d), d.number_from((20, 25, 40, 50, 60, 80, 100, 120, 200)), d.int(5, 95, 5)
    d.require(n * percent % 100 == 0)
    right = n * percent // 100
    several(d, right, n - right)
    back = d.pick((True, False))
    wrong = calc(n, "-", right)
    answer = calc(wrong if back else right, "*", 100, "/", n)
    return Story(
        tell(d,
             (f"{a} answered {right} of {n} questions correctly.",
              f"A test has {n} questions, and {a} got {right} of them right.",
              f"Out of {n} answers on {a}'s test, {right} were correct."),
             ("What percent of the answers were wrong?", "What percentage was wrong?",
              f"How many percent did {a} get wrong?") if back else
             ("What percent of the answers were correct?", "What percentage is that?",
              f"How many percent did {a} get right?")),
        ([f"There were {wrong} wrong answers."] if back else []) + [f"That is {answer} percent."],
        answer)


@family
def average_of_grades(d: Draw) -> Story:
    a, n = person(d), d.int(3, 5)
    grades = [d.int(50, 100) for _ in range(n)]
    total = calc(*[term for value in grades for term in (value, "+")][:-1])
    average = calc(total, "/", n)
    listed = ", ".join(map(str, grades[:-1])) + f" and {grades[-1]}"
    subject = d.pick(words.SCHOOL_SUBJECTS)
    return Story(
        tell(d, (
            f"{a} got {listed} points on {n} tests. What is {a}'s average?",
            f"The grades of {a} in {subject} are {listed}. What is the average grade?",
            f"In {d.number_words(n)} {subject} tests, {a} scored {listed}. How many points is that on average?",
            f"What is the mean of {a}'s test scores {listed}?")),
        [f"The sum is {total}.", f"The average is {average}."],
        average)


@family
def grade_needed_for_average(d: Draw) -> Story:
    a, first, second, goal = person(d), d.int(60, 98), d.int(60, 98), d.int(70, 95)
    needed_sum = calc(goal, "*", 3)
    have = calc(first, "+", second)
    answer = calc(needed_sum, "-", have)
    d.require(40 <= answer.value <= 100)
    return Story(
        tell(d, (
            f"{a} scored {first} and {second} on two tests. What must {a} score on the third for an average of {goal}?",
            f"After two tests with {first} and {second} points, {a} wants an average of {goal} over three tests. How "
            "many points does the last one need?",
            f"To have an average of {goal} on three tests, how many points does {a} need on the last one after "
            f"{first} and {second}?")),
        [f"The three tests need {needed_sum} points.", f"{a} has {have} points.",
         f"So the third needs {answer} points."],
        answer)


@family
def buses_and_vans(d: Draw) -> Story:
    n, seats, m, small, empty = d.int(2, 8), d.int(30, 60), d.int(2, 8), d.int(6, 15), d.int(2, 25)
    first, second = calc(n, "*", seats), calc(m, "*", small)
    total = calc(first, "+", second)
    riders = calc(total, "-", empty)
    return Story(
        tell(d,
             (f"For a trip a school uses {n} buses with {seats} seats each and {m} vans with {small} seats each.",
              f"A bus has {seats} seats and a van has {small}. A school goes on a trip with {n} buses and {m} vans.",
              f"{n} buses of {seats} seats and {m} vans of {small} seats take a school to {d.pick(words.SIGHTS)}."),
             (f"{empty} seats stay empty. How many people ride along?",
              f"How many people are there if {empty} seats are not used?",
              f"Only {empty} seats are free. How many seats are taken?")),
        [f"The buses have {first} seats.", f"The vans have {second} seats.", f"There are {total} seats.",
         f"So {riders} are taken."],
        riders)


@family
def trip_money_collected(d: Draw) -> Story:
    a, students, price, bus, adults = adult(d), d.int(12, 35), d.int(6, 25), d.int(100, 400, 10), d.int(2, 5)
    everybody = calc(students, "+", adults)
    tickets = calc(everybody, "*", price)
    total = calc(tickets, "+", bus)
    return Story(
        tell(d,
             (f"{students} students and {adults} adults go on a class trip with {a}'s bus.",
              f"A class trip of {students} students and {adults} adults is planned by {a}.",
              f"{a} plans a trip for {students} students, and {adults} adults come along."),
             (f"A ticket costs ${price} for each of them, and the bus costs ${bus}.",
              f"The bus is ${bus}, and everybody needs a ticket for ${price}.",
              f"Everybody pays ${price} for a ticket. Renting the bus costs ${bus}."),
             ("How much does the trip cost in all?", "What is the total cost of the trip?",
              "How many dollars are needed?")),
        [f"There are {everybody} people.", f"The tickets cost {tickets:$}.", f"In all it is {total:$}."],
        total)


@family
def homework_problems(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(words.SCHOOL_SUBJECTS)
    n, m, minutes, done = d.int(4, 25), d.int(4, 25), d.int(2, 6), d.int(2, 20)
    total = calc(n, "+", m)
    left = calc(total, "-", done)
    several(d, left)
    time = calc(left, "*", minutes)
    ask = d.pick((True, False))
    return Story(
        tell(d,
             (f"{a} has {n} {x} problems and {m} {y} problems for homework.",
              f"For homework there are {n} problems in {x} and {m} in {y}. {a} has to do all.",
              f"{a}'s teachers gave {n} {x} problems and {m} {y} problems."),
             (f"At school {a.they} finished {done} of them.", f"{done} are done already.",
              f"{a} has already solved {done} problems."),
             (f"How long do the others take at {minutes} minutes each, in minutes?",
              f"If each of the others takes {minutes} minutes, how many minutes are needed?",
              f"{a} needs {minutes} minutes for each problem. How many minutes does the rest take?") if ask else
             ("How many problems are left?", f"How many problems does {a} still have to do?",
              "How many more problems are there?")),
        [f"There are {total} problems.",
         f"Then {left} problems are left."] + ([f"They take {time} minutes."] if ask else []),
        time if ask else left)


@family
def clubs_overlap(d: Draw) -> Story:
    (x, y), n, m, both, neither = d.pick_two(words.CLUBS), d.int(8, 60), d.int(8, 60), d.int(2, 20), d.int(2, 40)
    d.require(both < min(n, m))
    summed = calc(n, "+", m)
    either = calc(summed, "-", both)
    total = calc(either, "+", neither)
    return Story(
        tell(d,
             (f"{n} students are in {x} and {m} are in {y}. {both} of them are in both.",
              f"{x} has {n} members and {y} has {m}. {both} students belong to both.",
              f"There are {n} students in {x}, {m} in {y} and {both} in both of them."),
             (f"{neither} students are in neither. How many students are there?",
              f"How many students are there, if {neither} are in neither of the two?",
              f"Another {neither} students belong to neither. What is the number of students in all?")),
        [f"Counted separately there are {summed} members.",
         f"Without counting anyone twice there are {either} students.",
         f"In all there are {total} students."],
        total)


@family
def library_books(d: Draw) -> Story:
    start, out, back, new = d.int(60, 2000, 5), d.int(10, 300), d.int(5, 200), d.int(5, 200)
    d.require(back < out < start)
    day1, day2 = d.pick((("Monday", "Tuesday"), ("Wednesday", "Thursday"), ("Friday", "Saturday")))
    one = calc(start, "-", out)
    two = calc(one, "+", back)
    three = calc(two, "+", new)
    return Story(
        tell(d,
             (f"A school library has {start} books.", f"There are {start} books in the school library.",
              f"On the shelves of the library stand {start} books."),
             (f"On {day1}, {out} books are borrowed. On {day2}, {back} of them come back.",
              f"Students take {out} of them on {day1} and return {back} on {day2}.",
              f"{out} books go out on {day1}, and {back} are returned on {day2}."),
             (f"Then {new} new books arrive.", f"The library also buys {new} new ones.",
              f"{new} new books are put there."),
             d.maybe((f"The library has {d.int(5, 40)} shelves.", f"{d.int(3, 20)} students sit there and read.")),
             ("How many books are in the library now?", "How many books does the library have on its shelves then?",
              "How many books are there in the end?")),
        [f"On {day1} there are {one} books left.", f"On {day2} there are {two} books.",
         f"With the new ones there are {three} books."],
        three)


@family
def spelling_practice(d: Draw) -> Story:
    a, n, daily = person(d), d.int(2, 8), d.int(5, 30)
    known = calc(n, "*", daily)
    x = d.pick(("words", "vocabulary cards", "flags", "capital cities", "verbs", "poem lines", "spelling rules"))
    forgot = d.int(2, 25)
    left = calc(known, "-", forgot)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} learns {daily} {x} a day for {n} days.",
              f"For {d.number_words(n)} days, {a} learns {daily} {x} every day.",
              f"In each of {n} days {a} learns {daily} {x}."),
             (f"Later {a.they} forgets {forgot} of them.", f"{forgot} of them are forgotten.",
              f"{a} cannot remember {forgot} of them."),
             (f"How many {x} does {a} know now?", f"How many {x} does {a} still know?",
              f"How many {x} remain in {a}'s memory?")),
        [f"{a} learned {known} {x}.", f"So {a} still knows {left} {x}."],
        left)

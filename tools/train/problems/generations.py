"""Ages and families."""

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import capitalized, people, person, several, shuffled, tell

PETS = nouns(words.PETS)


@family
def age_in_years(d: Draw) -> Story:
    a, age, years = person(d), d.int(2, 70), d.int(2, 30)
    later = calc(age, "+", years)
    return Story(
        tell(d, (
            f"{a} is {age} years old. How old will {a.they} be in {years} years?",
            f"{a} is {age} now. What will {a}'s age be {years} years from now?",
            f"In {years} years, how old is {a}, who is {age} today?",
            f"How old will {a} be after {years} years if {a.they} is {age} now?")),
        [f"{a} will be {later} years old."],
        later)


@family
def age_years_ago(d: Draw) -> Story:
    a, age, years = person(d), d.int(10, 90), d.int(2, 60)
    before = calc(age, "-", years)
    several(d, before)
    return Story(
        tell(d, (
            f"{a} is {age} years old. How old was {a.they} {years} years ago?",
            f"{years} years ago, how old was {a}, who is now {age}?",
            f"{a} turned {age} today. What was {a}'s age {years} years before?",
            f"How old was {a} {years} years ago if {a.they} is {age}?")),
        [f"{a} was {before} years old."],
        before)


@family
def difference_of_ages(d: Draw) -> Story:
    (a, b), x, y = people(d, 2), d.int(3, 80), d.int(2, 70)
    gap = calc(x, "-", y)
    several(d, gap)
    r = d.pick(words.RELATIVES)
    return Story(
        tell(d, (
            f"{a} is {x} and {b} is {y}. How many years older is {a}?",
            f"{b} is {y} years old. {a}, {b}'s {r}, is {x}. How much younger is {b}?",
            f"What is the difference between the ages of {a} ({x}) and {b} ({y})?",
            f"By how many years is {a} older than {b}, if {a} is {x} and {b} is {y}?")),
        [f"The difference is {gap} years."],
        gap)


@family
def age_at_birth_of_child(d: Draw) -> Story:
    a, x, gap, later = person(d), d.int(2, 30), d.int(19, 40), d.int(2, 20)
    y = x + gap
    parent = d.pick(("mother", "father", "aunt", "uncle"))
    difference = calc(y, "-", x)
    future = calc(x, "+", later)
    answer = calc(future, "+", difference)
    return Story(
        tell(d, (
            f"{a} is {x} years old and {a.their} {parent} is {y}. How old will the {parent} be when {a} is {later} "
            "years older than now?",
            f"{a}'s {parent} is {y}, and {a} is {x}. In {later} years, {a} will have another age. How old will the "
            f"{parent} be then?",
            f"Today {a} is {x} and {a.their} {parent} {y}. When {later} more years have passed, how old will the "
            f"{parent} be?")),
        [f"The difference is always {difference} years.", f"{a} will be {future}.",
         f"The {parent} will be {answer} years old."],
        answer)


@family
def parent_times_as_old(d: Draw) -> Story:
    a, x, k, years = person(d), d.int(4, 16), d.number_from((2, 3, 4, 5)), d.int(2, 15)
    parent = d.pick(words.ELDERS)
    d.require(20 < x * k < 90)
    older = calc(k, "*", x)
    later = calc(older, "+", years)
    return Story(
        tell(d,
             (f"{a} is {x} years old.", f"{a}'s age is {x}.", f"This year {a} turned {x}."),
             (f"{a.Their} {parent} is {words.TIMES[k]} as old.", f"The age of {a}'s {parent} is {words.TIMES[k]} that.",
              f"{a} has a {parent} who is {words.TIMES[k]} as old as {a.they} is." if parent[0] not in "au" else
              f"{a} has an {parent} who is {words.TIMES[k]} as old as {a.they} is."),
             (f"How old will the {parent} be in {years} years?",
              f"What will be the {parent}'s age {years} years from now?",
              f"In {years} years, how old is {a}'s {parent}?")),
        [f"The {parent} is {older}.", f"In {years} years the age will be {later}."],
        later)


@family
def three_ages_chain(d: Draw) -> Story:
    a, b, c = people(d, 3)
    x, older, k = d.int(4, 20), d.int(2, 15), d.number_from((2, 3))
    second = calc(x, "+", older)
    third = calc(k, "*", second)
    total = calc(x, "+", second, "+", third)
    ask = d.pick((True, False))
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} is {x} years old.", f"The age of {a} is {x}.", f"{a} had {a.their} {x}th birthday."),
                      (f"{b} is {older} years older than {a}.", f"{a} is {older} years younger than {b}.",
                       f"{a} was born {older} years after {b}."),
                      (f"{c} is {words.TIMES[k]} as old as {b}.", f"{c}'s age is {words.TIMES[k]} that of {b}.",
                       f"The age of {c} is {words.TIMES[k]} the age of {b}."),
                      stray=(f"They live in a house with {d.int(4, 12)} rooms.",)),
             ("What is the sum of their ages?", "How old are the three together?",
              f"What do the ages of {a}, {b} and {c} add up to?") if ask else
             (f"How old is {c}?", f"What is {c}'s age?", f"How many years old is {c}?")),
        [f"{b} is {second}.", f"{c} is {third}."] + ([f"Together they are {total}."] if ask else []),
        total if ask else third)


@family
def sum_and_difference_ages(d: Draw) -> Story:
    (a, b), young, gap = people(d, 2), d.int(3, 45), d.int(2, 30)
    total = 2 * young + gap
    rest = calc(total, "-", gap)
    answer = calc(rest, "/", 2)
    old = calc(answer, "+", gap)
    ask = d.pick((True, False))
    return Story(
        tell(d,
             (f"{a} and {b} are {total} years old together. {a} is {gap} years older than {b}.",
              f"The sum of the ages of {a} and {b} is {total}. {b} is {gap} years younger.",
              f"{a} is older than {b} by {gap} years. Added up, their ages make {total}."),
             d.maybe((f"They live {d.int(2, 90)} miles apart.", f"They have been friends for {d.int(2, 3)} years.")),
             (f"How old is {a}?", f"What is {a}'s age?", f"How many years old is {a}?") if ask else
             (f"How old is {b}?", f"What is {b}'s age?", f"How many years old is {b}?")),
        [f"Without the difference the sum is {rest}.", f"{b} is {answer}."] + ([f"{a} is {old}."] if ask else []),
        old if ask else answer)


@family
def sum_and_times_ages(d: Draw) -> Story:
    (a, b), young, k = people(d, 2), d.int(3, 25), d.number_from((2, 3, 4, 5))
    d.require(young * k < 95)
    total = young * (k + 1)
    parts = calc(k, "+", 1)
    answer = calc(total, "/", parts)
    old = calc(answer, "*", k)
    ask = d.pick((True, False))
    return Story(
        tell(d, (
            f"{a} is {words.TIMES[k]} as old as {b}. Together they are {total} years old.",
            f"The ages of {a} and {b} add up to {total}, and {a} is {words.TIMES[k]} as old as {b}.",
            f"{a} and {b} are {total} years old in all. {a}'s age is {words.TIMES[k]} that of {b}."),
             (f"How old is {a}?", f"What is the age of {a}?", f"How many years old is {a}?") if ask else
             (f"How old is {b}?", f"What is the age of {b}?", f"How many years old is {b}?")),
        [f"The sum is {parts} times the age of {b}.", f"{b} is {answer}."] + ([f"{a} is {old}."] if ask else []),
        old if ask else answer)


@family
def future_multiple(d: Draw) -> Story:
    (a, b), x, years, k = people(d, 2), d.int(3, 20), d.int(2, 12), d.number_from((2, 3))
    later = calc(x, "+", years)
    old = calc(k, "*", later)
    now = calc(old, "-", years)
    relation = d.pick(("in {} years", "{} years from now"))
    when = relation.format(years)
    return Story(
        tell(d, (
            f"{a} is {x} years old. {capitalized(when)}, {b} will be {words.TIMES[k]} as old as {a}. How old is {b} "
            "now?",
            f"{when}, {b} will be {words.TIMES[k]} as old as {a}, who is {x} today. What is {b}'s age now?",
            f"How old is {b} if {when} {b.they} will be {words.TIMES[k]} as old as {a}, and {a} is now {x}?")),
        [f"{a} will be {later}.", f"{b} will be {old}.", f"Now {b} is {now}."],
        now)


@family
def past_multiple(d: Draw) -> Story:
    (a, b), x, years, k = people(d, 2), d.int(6, 30), d.int(2, 20), d.number_from((2, 3))
    before = calc(x, "-", years)
    several(d, before)
    old = calc(k, "*", before)
    now = calc(old, "+", years)
    total = calc(x, "+", now)
    ask = d.pick((True, False))
    return Story(
        tell(d, (
            f"{years} years ago, {b} was {words.TIMES[k]} as old as {a}. Today {a} is {x}.",
            f"{a} is {x} years old. {years} years ago {b}'s age was {words.TIMES[k]} that of {a}.",
            f"{a}, who is {x}, remembers that {years} years ago {b} was {words.TIMES[k]} as old as {a}."),
             ("What is the sum of their ages now?", "How old are both together today?",
              "What do their ages add up to today?") if ask else
             (f"How old is {b} now?", f"What is {b}'s age today?", f"How many years old is {b} today?")),
        [f"{a} was {before}.", f"{b} was {old}.", f"Now {b} is {now}."] + ([f"The sum is {total}."] if ask else []),
        total if ask else now)


@family
def average_age(d: Draw) -> Story:
    n = d.int(3, 5)
    group = people(d, n)
    ages = [d.int(4, 60) for _ in range(n)]
    total = calc(*[term for value in ages for term in (value, "+")][:-1])
    average = calc(total, "/", n)
    names = ", ".join(p.name for p in group[:-1]) + f" and {group[-1]}"
    listed = ", ".join(map(str, ages[:-1])) + f" and {ages[-1]}"
    each = ", ".join(f"{p} is {age}" for p, age in zip(group[:-1], ages)) + f" and {group[-1]} is {ages[-1]}"
    return Story(
        tell(d, (
            f"{names} are {listed} years old. What is their average age?",
            f"{each}. What is the average of their ages?",
            f"The ages of {names} are {listed}. How old are they on average?")),
        [f"The sum of the ages is {total}.", f"The average is {average}."],
        average)


@family
def missing_age_from_average(d: Draw) -> Story:
    (a, b, c), x, y, average = people(d, 3), d.int(4, 60), d.int(4, 60), d.int(8, 60)
    total = calc(average, "*", 3)
    two = calc(x, "+", y)
    third = calc(total, "-", two)
    several(d, third)
    d.require(third.value < 90)
    return Story(
        tell(d, (
            f"The average age of {a}, {b} and {c} is {average}. {a} is {x} and {b} is {y}. How old is {c}?",
            f"{a} is {x}, {b} is {y}, and the average age of the two and {c} is {average}. What is {c}'s age?",
            f"On average {a}, {b} and {c} are {average} years old. If {a} is {x} and {b} is {y}, how old must {c} be?")),
        [f"The ages of all three sum to {total}.", f"{a} and {b} have {two} years.", f"{c} is {third}."],
        third)


@family
def born_in_year(d: Draw) -> Story:
    a, year, age = person(d), d.int(1920, 2015), d.int(3, 85)
    later = year + age
    d.require(later < 2060)
    answer = calc(later, "-", year)
    ask = d.pick(("age", "birth", "when"))
    if ask == "birth":
        answer = calc(later, "-", age)
        return Story(
            tell(d,
                 (f"{a} turned {age} in {later}. In which year was {a} born?",
                  f"In {later}, {a} celebrates birthday number {age}. What is the year of {a}'s birth?",
                     f"In which year was {a} born, if {a.they} became {age} in {later}?")),
            [f"{a} was born in {answer}."], answer)
    if ask == "when":
        answer = calc(year, "+", age)
        return Story(
            tell(d,
                 (f"{a} was born in {year}. In which year does {a} turn {age}?",
                  f"In what year will {a}, born in {year}, become {age} years old?",
                     f"The year of {a}'s birth is {year}. When is birthday number {age}?")),
            [f"It is the year {answer}."], answer)
    return Story(
        tell(d,
             (f"{a} was born in {year}. How old does {a} turn in {later}?",
              f"How many years old is {a} on {a.their} birthday in {later}, if {a.they} was born in {year}?",
                 f"In {year}, {a} came into the world. What age did {a} reach in {later}?")),
        [f"{a} turns {answer}."], answer)


@family
def grandparent_and_children(d: Draw) -> Story:
    a, kids, each, out = person(d), d.int(2, 7), d.int(2, 5), d.int(2, 4)
    elder = d.pick(("grandmother", "grandfather"))
    grand = calc(kids, "*", each)
    everybody = calc(kids, "+", grand)
    total = calc(everybody, "*", out)
    x = d.pick(("presents", "cards", "cookies", "letters"))
    return Story(
        tell(d,
             (f"{a}'s {elder} has {kids} children, and each of them has {each} children.",
              f"Each of the {kids} children of {a}'s {elder} has {each} children.",
              f"The {elder} of {a} has {d.number_words(kids)} children with {each} children each."),
             (f"All these children and grandchildren get {out} {x} each.",
              f"The {elder} sends {out} {x} to every child and grandchild.",
              f"Every child and every grandchild receives {out} {x}."),
             (f"How many {x} is that?", f"How many {x} are there in all?", f"How many {x} does the {elder} need?")),
        [f"There are {grand} grandchildren.", f"With the children there are {everybody} people.",
         f"That is {total} {x}."],
        total)


@family
def siblings_ages_steps(d: Draw) -> Story:
    a, gap, youngest, n = person(d), d.int(2, 5), d.int(2, 15), d.int(3, 4)
    ages, steps = [youngest], []
    for _ in range(n - 1):
        step = calc(ages[-1], "+", gap)
        steps.append(step)
        ages.append(step.value)
    total = calc(*[term for value in ages for term in (value, "+")][:-1])
    order = ("second", "third", "fourth")
    return Story(
        tell(d,
             (f"{a}'s family has {n} children. Each is {gap} years older than the next younger one.",
              f"There are {n} children in {a}'s family, born {gap} years apart.",
              f"{a}'s parents got {d.number_words(n)} children, one every {gap} years."),
             (f"The youngest is {youngest}.", f"The youngest child is {youngest} years old.",
              f"{youngest} is the age of the youngest."),
             ("How old are all of them together?", "What is the sum of their ages?", "What do their ages add up to?")),
        [f"The {name} child is {step}." for name, step in zip(order, steps)] + [f"Together they are {total}."],
        total)


@family
def pet_years(d: Draw) -> Story:
    a, x, age, factor, older = person(d), d.pick(PETS), d.int(2, 14), d.number_from((5, 6, 7, 8)), d.int(2, 20)
    human = calc(age, "*", factor)
    other = calc(human, "-", older)
    several(d, other)
    return Story(
        tell(d,
             (f"One year of {x.a} counts like {factor} human years.",
              f"For {x.a}, {factor} human years pass in one year.",
              f"A year in the life of {x.a} is like {factor} human years."),
             (f"{a} has {x.a} that is {age} years old.", f"{a}'s {x.one} is {age}.",
              f"The {x.one} of {a} has its birthday number {age}."),
             (f"In human years, it is {older} years older than {a}. How old is {a}?",
              f"How old is {a}, who is {older} years younger than the {x.one} in human years?",
              f"{a} is {older} years younger than that in human years. What is {a}'s age?")),
        [f"In human years the {x.one} is {human}.", f"{a} is {other}."],
        other)


@family
def family_chores_shared(d: Draw) -> Story:
    (a, b, c), n, k, more = people(d, 3), d.int(2, 12), d.number_from((2, 3)), d.int(2, 9)
    verb, x = d.pick((("washes", "plates"), ("cleans", "windows"), ("folds", "shirts"), ("rakes up", "bags of leaves"),
                      ("scrubs", "pots"),
                      ("peels", "potatoes"), ("paints", "fence boards"), ("waters", "plants"), ("dusts", "shelves"),
                      ("carries", "boxes")))
    second = calc(n, "*", k)
    third = calc(second, "+", more)
    total = calc(n, "+", second, "+", third)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} {verb} {n} {x}.", f"{n} {x} are {a}'s share of the work.",
                       f"At home {a} {verb} {n} {x} on {d.pick(words.WEEK)}."),
                      (f"{b} {verb} {words.TIMES[k]} as many {x} as {a}.",
                       f"Compared with {a}, {b} {verb} {words.TIMES[k]} as many {x}.",
                       f"The number of {x} that {b} {verb} is {words.TIMES[k]} that of {a}."),
                      (f"{c} {verb} {more} more {x} than {b}.", f"{b} {verb} {more} fewer {x} than {c}.",
                       f"Compared with {b}, {c} {verb} {more} {x} more.")),
             (f"How many {x} is that together?", f"How many {x} do {a}, {b} and {c} get done?",
              f"What is the total number of {x}?")),
        [f"{b} does {second} {x}.", f"{c} does {third} {x}.", f"Together it is {total} {x}."],
        total)


@family
def height_growth(d: Draw) -> Story:
    a, start, per, years, b = person(d), d.int(70, 130), d.int(3, 8), d.int(2, 8), d.int(2, 20)
    grown = calc(per, "*", years)
    now = calc(start, "+", grown)
    other = calc(now, "+", b)
    r = d.pick(words.RELATIVES)
    return Story(
        tell(d,
             (f"At the age of 6, {a} was {start} centimeters tall and then grew {per} centimeters a year.",
              f"{a} was {start} cm tall and has grown {per} cm each year since then.",
              f"{a}'s height was {start} cm. Every year {a.they} has become {per} cm taller."),
             (f"{a.Their} {r} is {b} cm taller than {a} after these {years} years.",
              f"After {years} years, {a}'s {r} is {b} cm taller than {a}.",
              f"When {years} years have passed, {a} is {b} cm shorter than {a.their} {r}."),
             (f"How tall is the {r}, in centimeters?", f"What is the {r}'s height in cm?",
              f"How many centimeters tall is the {r} then?")),
        [f"{a} has grown {grown} centimeters.", f"{a} is {now} centimeters tall.",
         f"The {r} is {other} centimeters tall."],
        other)


@family
def saved_birthday_money(d: Draw) -> Story:
    a, n, k, more, spent = person(d), d.int(5, 60), d.number_from((2, 3)), d.int(5, 40), d.int(5, 80)
    second = calc(n, "*", k)
    third = calc(n, "+", more)
    total = calc(n, "+", second, "+", third)
    left = calc(total, "-", spent)
    several(d, left)
    r, s, t = d.pick((("aunt", "uncle", "cousin"), ("mother", "father", "grandmother"),
                      ("brother", "sister", "neighbor")))
    return Story(
        tell(d,
             (f"For {a.their} birthday {a} gets ${n} from {a.their} {r}, {words.TIMES[k]} as much from {a.their} {s} "
              f"and ${more} more than from the {r} from {a.their} {t}.",
              f"{a}'s {r} gives {a} ${n}. The {s} gives {words.TIMES[k]} as much as the {r}, and the {t} gives "
              f"${more} more than the {r}.",
              f"The {r} puts ${n} into {a}'s birthday card. From the {s} comes {words.TIMES[k]} that amount, and the "
              f"{t} adds ${more} more than the {r}."),
             (f"{a} spends ${spent} of it.", f"Then ${spent} of the money is spent.",
              f"{a} buys something for ${spent}."),
             ("How much is left?", f"How much birthday money does {a} still have?", "How many dollars remain?")),
        [f"The {s} gives {second:$}.", f"The {t} gives {third:$}.", f"Altogether it is {total:$}.",
         f"So {left:$} is left."],
        left)

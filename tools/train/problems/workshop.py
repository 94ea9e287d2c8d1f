"""People and machines at work."""

from . import words
from .problem import Draw, Story, calc, family


@family
def team_output(d: Draw) -> Story:
    x = d.pick(words.PARTS)
    workers, each, days, faulty = d.int(3, 15), d.int(4, 20), d.int(2, 9), d.int(3, 40)
    daily = calc(workers, "*", each)
    total = calc(daily, "*", days)
    good = calc(total, "-", faulty)
    d.require(good.value > 0)
    return Story(
        d.tell(
            (f"{workers} workers each make {each} {x} a day.", f"In a workshop, each of {workers} workers makes {each} {x} a day."),
            (f"After {days} days {faulty} of the {x} turn out to be faulty.",
             f"They work {days} days, and {faulty} of the {x} are broken."),
            (f"How many good {x} are there?", f"How many of the {x} are fine?")),
        [f"They make {daily} {x} a day.", f"In {days} days they make {total} {x}.", f"So {good} are good."],
        good)


@family
def two_machines(d: Draw) -> Story:
    x = d.pick(words.PARTS)
    u, v, hours, order = d.int(5, 40), d.int(5, 40), d.int(2, 12), d.int(200, 900, 50)
    both = calc(u, "+", v)
    made = calc(both, "*", hours)
    left = calc(order, "-", made)
    d.require(left.value > 0 and u != v)
    return Story(
        d.tell(
            (f"One machine makes {u} {x} an hour and another makes {v} an hour.",
             f"A factory has an old machine that makes {u} {x} an hour and a new one that makes {v}."),
            (f"Both run for {hours} hours to fill an order of {order}.",
             f"There is an order for {order} {x}, and both machines run {hours} hours."),
            (f"How many {x} are still missing?", f"How many {x} remain to be made?")),
        [f"Together they make {both} an hour.", f"In {hours} hours they make {made}.", f"So {left} are missing."],
        left)


@family
def print_job(d: Draw) -> Story:
    a = d.person()
    copies, pages, speed, minutes = d.int(4, 40), d.int(3, 20), d.int(5, 30), d.int(4, 40)
    blank = speed * minutes - copies * pages
    d.require(1 < blank <= 60)
    text = calc(copies, "*", pages)
    total = calc(text, "+", blank)
    time = calc(total, "/", speed)
    return Story(
        d.tell(
            (f"{a} prints {copies} copies of a report with {pages} pages, and {blank} cover sheets.",
             f"{a} needs {blank} cover sheets and {copies} copies of a {pages} page report."),
            (f"The printer does {speed} pages a minute.", f"In a minute {speed} pages come out of the printer."),
            ("How many minutes does it take?", "How long does the printing take in minutes?")),
        [f"The copies have {text} pages.", f"With the covers it is {total} pages.", f"It takes {time} minutes."],
        time)


@family
def deliveries(d: Draw) -> Story:
    a, b = d.person(), d.person()
    n, more, days, pay = d.int(10, 50), d.int(3, 25), d.int(2, 6), d.int(2, 5)
    other = calc(n, "+", more)
    daily = calc(n, "+", other)
    total = calc(daily, "*", days)
    money = calc(total, "*", pay)
    return Story(
        d.tell(
            (f"{a} delivers {n} packages a day, and {b} delivers {more} more than that.",
             f"Every day {a} brings {n} packages to customers. {b} brings {more} more than {a}."),
            (f"A package pays ${pay}.", f"They are paid ${pay} per package."),
            (f"How much do they earn together in {days} days?", f"How many dollars do both earn in {days} days?")),
        [f"{b} delivers {other} packages a day.", f"Together they deliver {daily} a day.",
         f"In {days} days it is {total} packages.", f"They earn {money:$}."],
        money)


@family
def wheels_in_a_shop(d: Draw) -> Story:
    a = d.person()
    bikes, trikes, price = d.int(5, 50), d.int(3, 40), d.int(3, 9)
    two, three = calc(bikes, "*", 2), calc(trikes, "*", 3)
    total = calc(two, "+", three)
    cost = calc(total, "*", price)
    return Story(
        d.tell(
            (f"{a}'s shop has {bikes} bicycles and {trikes} tricycles.",
             f"{a} repairs {bikes} bicycles and {trikes} tricycles."),
            (f"Every wheel gets a new tire for ${price}.", f"{a.They} puts a ${price} tire on every wheel."),
            ("How much do all the tires cost?", f"How many dollars does {a} pay for the tires?")),
        [f"The bicycles have {two} wheels.", f"The tricycles have {three} wheels.",
         f"There are {total} wheels.", f"The tires cost {cost:$}."],
        cost)


@family
def typing_pages(d: Draw) -> Story:
    a = d.person()
    speed, minutes, per_page, days = d.int(20, 90, 5), d.int(10, 60, 10), d.number_from((50, 100, 150, 200, 250, 300)), d.int(2, 6)
    d.require(speed * minutes % per_page == 0 and speed * minutes > per_page)
    typed = calc(speed, "*", minutes)
    pages = calc(typed, "/", per_page)
    total = calc(pages, "*", days)
    return Story(
        d.tell(
            (f"{a} types {speed} words a minute for {minutes} minutes every day.",
             f"For {minutes} minutes a day, {a} types {speed} words a minute."),
            (f"A page has {per_page} words.", f"{per_page} words fill a page."),
            (f"How many pages does {a.they} type in {days} days?", f"How many pages are there after {days} days?")),
        [f"In a day {a} types {typed} words.", f"That is {pages} pages.", f"In {days} days it is {total} pages."],
        total)


@family
def shelves_of_books(d: Draw) -> Story:
    a = d.person()
    shelves, each, lent, new = d.int(4, 20), d.int(8, 30), d.int(5, 50), d.int(5, 60)
    total = calc(shelves, "*", each)
    left = calc(total, "-", lent)
    after = calc(left, "+", new)
    d.require(left.value > 0)
    return Story(
        d.tell(
            (f"{a}'s library has {shelves} shelves with {each} books on each.",
             f"There are {shelves} shelves in the library of {a}, and each holds {each} books."),
            (f"{lent} books are lent out and {new} new ones arrive.",
             f"Readers borrow {lent} books, and {a} buys {new} new ones."),
            ("How many books are in the library now?", "How many books are there in the end?")),
        [f"There are {total} books.", f"Then {left} are left.", f"With the new ones there are {after} books."],
        after)


@family
def percent_of_stock(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.PARTS)
    stock, percent, sold = d.int(40, 600, 20), d.number_from((5, 10, 15, 20, 25, 30, 40, 50, 60)), d.int(3, 40)
    hundredfold = calc(stock, "*", percent)
    part = calc(hundredfold, "/", 100)
    rest = calc(stock, "-", part)
    left = calc(rest, "-", sold)
    d.require(left.value > 0)
    return Story(
        d.tell(
            (f"{a} has {stock} {x} in the warehouse.", f"There are {stock} {x} in {a}'s warehouse."),
            (f"{percent}% of them go to another city and {sold} are sold.",
             f"{a.They} sends {percent}% of them away and sells {sold}."),
            (f"How many {x} are left?", f"How many {x} remain in the warehouse?")),
        [f"For {percent}%, first take {hundredfold}.", f"That makes {part} {x}.", f"Then {rest} are left.",
         f"After the sale {left} are left."],
        left)

"""Wages, savings, loans and what becomes of the money."""

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .telling import nouns
from .wordings import adult, cost, grouped, people, person, several, shuffled, tell

GOODS = nouns(words.LARGE_GOODS)
CLOTHES = nouns(words.CLOTHING)


@family
def hourly_pay(d: Draw) -> Story:
    a, job, rate, hours = adult(d), d.pick(words.JOBS), cost(d, 8, 40), d.int(3, 60)
    pay = calc(hours, "*", rate)
    return Story(
        tell(d, (
            f"{a} earns ${rate} an hour. How much does {a} earn in {hours} hours?",
            f"The wage of one {job} is ${rate} per hour. What is the pay for {hours} hours?",
            f"How much money does {a} make by working {hours} hours at ${rate} an hour?",
            f"{a} worked for {hours} hours. Each hour brings {a.them} ${rate}. How many dollars did {a.they} earn?")),
        [f"The pay is {pay:$}."],
        pay)


@family
def weekly_pay(d: Draw) -> Story:
    a = adult(d)
    rate, hours, days, weeks = cost(d, 9, 35), d.int(3, 10), d.int(3, 6), d.int(2, 12)
    weekly = calc(hours, "*", days)
    pay = calc(weekly, "*", rate)
    total = calc(pay, "*", weeks)
    return Story(
        tell(d,
             (f"{a} works {hours} hours a day, {days} days a week, and earns ${rate} an hour.",
              f"At work {a} gets ${rate} per hour. {a.They} works {hours} hours on each of {days} days a week.",
              f"{a} is paid ${rate} for each hour of work. Every week has {days} working days of {hours} hours."),
             (f"How much does {a} earn in {weeks} weeks?", f"What is {a}'s pay for {d.number_words(weeks)} weeks?",
              f"How many dollars does {a.they} make in {weeks} weeks?",
              f"How much money is that after {weeks} weeks?")),
        [f"A week has {weekly} hours of work.", f"The weekly pay is {pay:$}.", f"In {weeks} weeks it is {total:$}."],
        total)


@family
def hours_needed_for_goal(d: Draw) -> Story:
    a, x, task = person(d), d.pick(GOODS), d.pick(words.TASKS)
    rate, hours, have = d.int(4, 25), d.int(3, 40), d.int(5, 150)
    price = rate * hours + have
    missing = calc(price, "-", have)
    answer = calc(missing, "/", rate)
    return Story(
        tell(d,
             (f"{a} wants to buy {x.a} that costs ${price}, and {a.they} has saved ${have}.",
              f"{x.a} costs ${price}. {a} already has ${have}.",
              f"To buy {x.a} for ${price}, {a} has put aside ${have} so far."),
             (f"{a.They} earns ${rate} an hour by {task}.", f"By {task}, {a} makes ${rate} per hour.",
              f"{a} is {task} for ${rate} an hour."),
             (f"How many hours does {a} have to work?", f"For how many hours must {a.they} work to afford it?",
              f"After how many hours of work can {a} buy the {x.one}?")),
        [f"{a} needs another {missing:$}.", f"That takes {answer} hours."],
        answer)


@family
def two_jobs(d: Draw) -> Story:
    a, (job, other) = person(d), d.pick_two(words.TASKS)
    n, p, m, q = d.int(2, 25), cost(d, 5, 25), d.int(2, 25), cost(d, 5, 25)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return Story(
        tell(d,
             shuffled(d,
                      (f"For {job}, {a} gets ${p} an hour.", f"{job} pays {a} ${p} an hour.",
                       f"{a} earns ${p} per hour for {job}."),
                      (f"For {other}, {a} gets ${q} an hour.", f"{a} makes ${q} an hour by {other}.",
                       f"{other} brings {a} ${q} per hour.")),
             (f"This month {a.they} spends {n} hours {job} and {m} hours {other}.",
              f"{a} does {n} hours of {job} and {m} hours of {other}.",
              f"In one month {a} is {job} for {n} hours and {other} for {m} hours."),
             d.maybe((f"{a} is {d.int(15, 60)} years old.", f"The month has {d.int(28, 31)} days.")),
             (f"How much does {a} earn in all?", "How much money is that altogether?",
              f"What are {a}'s total earnings?")),
        [f"By {job}, {a} earns {first:$}.", f"By {other}, {a} earns {second:$}.", f"In all it is {total:$}."],
        total)


@family
def wages_compared(d: Draw) -> Story:
    a, b = people(d, 2)
    p, q, n, m = d.int(8, 40), d.int(8, 40), d.int(10, 50), d.int(10, 50)
    first, second = calc(n, "*", p), calc(m, "*", q)
    more = calc(first, "-", second)
    several(d, more)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} works {n} hours a week for ${p} an hour.",
                       f"{a} gets ${p} per hour and works {n} hours a week.",
                       f"Each week {a} spends {n} hours at work, at ${p} an hour."),
                      (f"{b} works {m} hours a week for ${q} an hour.",
                       f"{b} is paid ${q} an hour for {m} hours a week.",
                       f"The week of {b} has {m} working hours that pay ${q} each."),
                      stray=(f"They have known each other for {d.int(2, 20)} years.",)),
             (f"How much more does {a} earn in a week than {b}?",
              f"By how many dollars is {a}'s weekly pay higher than {b}'s?",
              f"How much less does {b} earn per week than {a}?")),
        [f"{a} earns {first:$}.", f"{b} earns {second:$}.", f"The difference is {more:$}."],
        more)


@family
def overtime_after_limit(d: Draw) -> Story:
    a = adult(d)
    limit, rate, more, extra = d.number_from((30, 35, 38, 40)), d.int(8, 30), d.int(2, 20), d.int(2, 15)
    hours = limit + extra
    normal = calc(limit, "*", rate)
    over = calc(hours, "-", limit)
    high = calc(rate, "+", more)
    bonus = calc(over, "*", high)
    total = calc(normal, "+", bonus)
    return Story(
        tell(d,
             (f"{a} earns ${rate} an hour for the first {limit} hours of a week and ${more} more for each hour after "
              "that.",
              f"Up to {limit} hours a week {a} is paid ${rate} per hour. Every additional hour pays ${more} more "
              "than that.",
              f"The hourly wage of {a} is ${rate}. Hours beyond {limit} in a week are paid with ${more} extra each."),
             (f"This week {a} works {hours} hours.", f"{a} worked {hours} hours last week.",
              f"One week {a.they} has {hours} hours."),
             (f"How much does {a} earn in this week?", "How much money is that?", f"What is {a}'s pay for the week?")),
        [f"The first {limit} hours pay {normal:$}.", f"There are {over} more hours.", f"Each of them pays {high:$}.",
         f"They pay {bonus:$}.", f"The week pays {total:$}."],
        total)


@family
def salary_and_commission(d: Draw) -> Story:
    a, base, sales = adult(d), d.int(300, 3000, 50), d.int(1000, 30000, 100)
    percent = d.number_from((2, 3, 5, 8, 10, 12, 15))
    extra = calc(sales, "*", percent, "/", 100)
    total = calc(base, "+", extra)
    return Story(
        tell(d,
             (f"{a} has a monthly salary of ${grouped(d, base)} and gets {percent}% of {a.their} sales on top.",
              f"Each month {a} is paid ${base} plus a commission of {percent} percent of what {a.they} sells.",
              f"As a sales agent {a} earns ${base} a month, and in addition {percent}% of the sales."),
             (f"Last month {a} sold goods for ${grouped(d, sales)}.",
              f"The sales of {d.pick(words.YEAR)} were ${sales}.",
              f"This month {a.they} sells ${grouped(d, sales)} worth of goods."),
             (f"How much did {a} get for that month?", "What is the total pay for the month?",
              f"How many dollars does {a} earn in that month?")),
        [f"The commission is {extra:$}.", f"Together with the salary it is {total:$}."],
        total)


@family
def commission_to_savings(d: Draw) -> Story:
    a, base, sales, percent = adult(d), d.int(500, 3000, 100), d.int(1000, 20000, 500), d.number_from((4, 5, 10, 20))
    saved = d.number_from((10, 20, 25, 30))
    extra = calc(sales, "*", percent, "/", 100)
    total = calc(base, "+", extra)
    kept = calc(total, "*", saved, "/", 100)
    rest = calc(total, "-", kept)
    return Story(
        tell(d,
             (f"{a} gets a salary of ${base} a month and a commission of {percent}% on all sales.",
              f"A month's work pays {a} ${base} and {percent} percent of the sales.",
              f"The pay of {a} has two parts: ${base} a month and {percent}% of the month's sales."),
             (f"In {d.pick(words.YEAR)} the sales were ${sales}.", f"This month {a} has sold for ${grouped(d, sales)}.",
              f"The last month's sales came to ${sales}."),
             (f"{a} saves {saved}% of the earnings and spends the rest. How much does {a.they} spend?",
              f"If {a} puts {saved} percent of all {a.their} earnings in the bank, how much is left to live on?",
              f"{saved}% of the total goes into savings. How many dollars remain?")),
        [f"The commission is {extra:$}.", f"{a} earns {total:$}.", f"The savings are {kept:$}.",
         f"That leaves {rest:$}."],
        rest)


@family
def pay_after_tax(d: Draw) -> Story:
    a, pay, percent, rent = adult(d), d.int(1000, 8000, 100), d.number_from((10, 15, 20, 25, 30)), d.int(200, 1500, 50)
    tax = calc(pay, "*", percent, "/", 100)
    net = calc(pay, "-", tax)
    left = calc(net, "-", rent)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} earns ${grouped(d, pay)} a month, and {percent}% of it goes to taxes.",
              f"The taxes take {percent} percent of {a}'s monthly pay of ${pay}.",
              f"{a} has a salary of ${pay} per month and pays {percent}% tax on it."),
             (f"The rent is ${rent}.", f"{a.They} pays ${rent} for rent.", f"After taxes {a} pays a rent of ${rent}."),
             d.maybe((f"The apartment has {d.int(2, 6)} rooms.", f"{a} works {d.int(30, 45)} hours a week.")),
             ("How much is left each month?", f"How much money remains for {a}?",
              f"What does {a} have left after tax and rent?")),
        [f"The tax is {tax:$}.", f"After tax {net:$} remains.", f"After the rent {left:$} is left."],
        left)


@family
def raise_in_percent(d: Draw) -> Story:
    a, pay, percent = adult(d), d.int(10, 60, 2) if d.pick((True, False)) else d.int(800, 6000, 100), d.percent()
    more = calc(pay, "*", percent, "/", 100)
    new = calc(pay, "+", more)
    unit = "an hour" if pay < 100 else "a month"
    return Story(
        tell(d, (
            f"{a} earns ${pay} {unit} and gets a raise of {percent}%. How much does {a} earn {unit} now?",
            f"After a {percent} percent raise, what does somebody earn who used to get ${pay} {unit}?",
            f"{a}'s pay was ${grouped(d, pay)} {unit}. It goes up by {percent}%. What is the new pay?",
            f"What is a pay of ${pay} {unit} after an increase of {percent}%?")),
        [f"The raise is {more:$}.", f"The new pay is {new:$}."],
        new)


@family
def yearly_raises(d: Draw) -> Story:
    a, pay, step, years = adult(d), d.int(1500, 6000, 50), d.int(20, 300, 10), d.int(2, 8)
    gained = calc(years, "*", step)
    new = calc(pay, "+", gained)
    total = calc(new, "*", 12)
    return Story(
        tell(d,
             (f"{a} starts a job with ${pay} a month. Each year the monthly pay rises by ${step}.",
              f"At first {a} gets ${pay} a month. Every year {a.they} gets ${step} a month more.",
              f"The pay of {a} is ${pay} per month at the start and grows by ${step} per month each year."),
             (f"How much does {a} earn in a whole year after {d.number_words(years)} raises?",
              f"What is {a}'s pay for twelve months after {years} raises?",
              f"How many dollars does {a} get per year once {a.they} has had {d.number_words(years)} raises?")),
        [f"The raises add {gained:$} a month.", f"The monthly pay is then {new:$}.", f"In a year it is {total:$}."],
        total)


@family
def saving_each_week(d: Draw) -> Story:
    a, start, weekly, weeks = person(d), d.int(5, 300), cost(d, 2, 60), d.int(3, 40)
    saved = calc(weeks, "*", weekly)
    total = calc(start, "+", saved)
    return Story(
        tell(d, (
            f"{a} has ${start} and saves ${weekly} a week. How much money does {a} have after {weeks} weeks?",
            f"There is ${start} in {a}'s piggy bank. Every week {a.they} adds ${weekly}. How much is in it after "
            f"{weeks} weeks?",
            f"{a} puts ${weekly} into an account each week for {weeks} weeks. At the start the account had ${start}. "
            "What is in it at the end?",
            f"How much has {a} after {weeks} weeks of saving ${weekly} per week, if {a.they} starts with ${start}?")),
        [f"The savings are {saved:$}.", f"With the start it is {total:$}."],
        total)


@family
def weeks_until_purchase(d: Draw) -> Story:
    a, x = person(d), d.pick(GOODS)
    gift, weekly, spent, weeks = d.int(10, 100), d.int(6, 40), d.int(2, 20), d.int(3, 30)
    d.require(spent < weekly - 1)
    net = calc(weekly, "-", spent)
    price = gift + net.value * weeks
    missing = calc(price, "-", gift)
    answer = calc(missing, "/", net)
    return Story(
        tell(d,
             (f"{a} wants {x.a} for ${price}.", f"{x.a} costs ${price}, and {a} wants to buy it.",
              f"{a} saves for {x.a} that costs ${price}."),
             shuffled(d,
                      (f"{a} gets an allowance of ${weekly} a week and spends ${spent} of it.",
                       f"Out of a weekly allowance of ${weekly}, {a} spends ${spent} and saves the rest.",
                       f"Each week {a} receives ${weekly}, but ${spent} of it goes for snacks."),
                      (f"{a}'s grandmother has given {a.them} ${gift}.", f"{a} already has ${gift}.",
                       f"{a} got ${gift} as a gift to begin with.")),
             (f"After how many weeks can {a} buy the {x.one}?", f"How many weeks does {a} have to save?",
              f"How many weeks will it take until {a} has enough?")),
        [f"{a} saves {net:$} a week.", f"The missing money is {missing:$}.", f"It takes {answer} weeks."],
        answer)


@family
def saving_in_rising_amounts(d: Draw) -> Story:
    a, first, k = person(d), d.int(4, 90), d.number_from((2, 3))
    day1, day2, day3 = d.pick((words.YEAR[:3], words.YEAR[4:7], words.YEAR[8:11], words.WEEK[:3], words.WEEK[3:6]))
    second = calc(first, "*", k)
    fewer = d.int(2, 60)
    third = calc(second, "-", fewer)
    several(d, third)
    total = calc(first, "+", second, "+", third)
    prep = "on" if day1 in words.WEEK else "in"
    return Story(
        tell(d,
             (f"{a} saved ${first} {prep} {day1}.", f"{prep} {day1}, {a} put ${first} aside.",
              f"{a}'s savings {prep} {day1} were ${first}."),
             (f"{prep} {day2} it was {words.TIMES[k]} as much, and {prep} {day3} ${fewer} less than {prep} {day2}.",
              f"{prep} {day2} {a.they} saved {words.TIMES[k]} as much. {prep.capitalize()} {day3} it was ${fewer} "
              f"less than {prep} {day2}.",
              f"{a} saved {words.TIMES[k]} that amount {prep} {day2}. {prep.capitalize()} {day3} the amount was "
              f"${fewer} "
              f"lower than {prep} {day2}."),
             (f"How much did {a} save in all?", "What is the total?", "How much money is that altogether?")),
        [f"The amount of {day2} is {second:$}.", f"The amount of {day3} is {third:$}.", f"The total is {total:$}."],
        total)


@family
def simple_interest(d: Draw) -> Story:
    a, money, percent, years = adult(d), d.int(100, 9000, 100), d.int(2, 12), d.int(2, 10)
    yearly = calc(money, "*", percent, "/", 100)
    interest = calc(yearly, "*", years)
    total = calc(money, "+", interest)
    return Story(
        tell(d, (
            f"{a} lends ${money} at {percent}% simple interest per year. How much is owed after {years} years?",
            f"{a} puts ${grouped(d, money)} into an account with {percent} percent simple interest a year. "
            f"How much is in it after {years} years?",
            f"What must be paid back after {years} years on a loan of ${grouped(d, money)} with a simple interest of "
            f"{percent}% a year?",
            f"Each year a deposit of ${money} earns {percent}% of the deposit. What is it worth with interest after "
            f"{years} years?")),
        [f"The interest of a year is {yearly:$}.", f"In {years} years it is {interest:$}.", f"The total is {total:$}."],
        total)


@family
def compound_two_years(d: Draw) -> Story:
    a, money, percent = adult(d), d.int(100, 5000, 100), d.number_from((5, 10, 20, 30, 50))
    first = calc(money, "*", percent, "/", 100)
    one = calc(money, "+", first)
    second = calc(one, "*", percent, "/", 100)
    two = calc(one, "+", second)
    return Story(
        tell(d, (
            f"{a} invests ${grouped(d, money)}. Each year the value grows by {percent}%. What is it worth after two "
            "years?",
            f"An account pays {percent}% interest a year, and the interest stays in the account. "
            f"{a} puts in ${money}. How much is there after 2 years?",
            f"The value of a painting is ${money} and rises by {percent} percent every year. What will its value be "
            "in two years?")),
        [f"The first year adds {first:$}.", f"Then it is {one:$}.", f"The second year adds {second:$}.",
         f"After two years it is {two:$}."],
        two)


@family
def paying_back_a_loan(d: Draw) -> Story:
    a, b = people(d, 2)
    months, monthly, percent = d.int(4, 24), d.int(10, 200, 10), d.number_from((5, 10, 20))
    owed = months * monthly
    d.require(owed * 100 % (100 + percent) == 0)
    money = owed * 100 // (100 + percent)
    interest = calc(money, "*", percent, "/", 100)
    total = calc(money, "+", interest)
    answer = calc(total, "/", months)
    return Story(
        tell(d,
             (f"{a} borrows ${money} from {b} and has to pay {percent}% interest on it.",
              f"{b} lends {a} ${money}. {a} agrees to give back {percent} percent more than that.",
              f"{a} owes {b} ${money} and an interest of {percent}% of that sum."),
             (f"{a} pays it back in {months} equal monthly payments. How much is each payment?",
              f"If all of it is paid back in {months} equal monthly parts, how much does {a} pay per month?",
              f"It will be paid in equal amounts over {months} months. How many dollars is that each month?")),
        [f"The interest is {interest:$}.", f"Together it is {total:$}.", f"A month's payment is {answer:$}."],
        answer)


@family
def debt_left(d: Draw) -> Story:
    a, b = people(d, 2)
    debt, paid, n = d.int(100, 2000, 10), d.int(5, 100, 5), d.int(2, 15)
    back = calc(n, "*", paid)
    left = calc(debt, "-", back)
    several(d, left)
    return Story(
        tell(d, (
            f"{a} owes {b} ${debt} and pays back ${paid} a month. How much does {a} still owe after {n} months?",
            f"{b} lent {a} ${debt}. {a} has paid back ${paid} in each of {n} months. What is still owed?",
            f"After {n} payments of ${paid}, how much is left of a debt of ${debt}?",
            f"A debt of ${grouped(d, debt)} is paid off with ${paid} each month. How many dollars remain after {n} "
            "months?")),
        [f"The payments make {back:$}.", f"Still owed is {left:$}."],
        left)


@family
def spend_a_fraction_then_amount(d: Draw) -> Story:
    a, x, k = person(d), d.pick(CLOTHES), d.number_from((2, 3, 4, 5, 6, 8, 10))
    part, spent = d.int(6, 90), d.int(3, 200)
    money = k * part
    first = calc(money, "/", k)
    left = calc(money, "-", first)
    rest = calc(left, "-", spent)
    several(d, rest)
    return Story(
        tell(d,
             (f"{a} has ${money} and spends {words.PARTS[k]} of it on {x.a}.",
              f"Out of ${money}, {a} uses 1/{k} for {x.a}.",
              f"{a} pays {words.PARTS[k]} of {a.their} ${money} for {x.a}."),
             (f"Then {a.they} pays ${spent} for a present.", f"After that, a present costs {a.them} ${spent}.",
              f"Later {a} spends another ${spent} on a present."),
             (f"How much does {a} have left?", "How much money remains?", f"What is left of {a}'s money?")),
        [f"The {x.one} costs {first:$}.", f"Then {left:$} is left.", f"After the present it is {rest:$}."],
        rest)


@family
def money_worked_backwards(d: Draw) -> Story:
    a, spent, left = person(d), d.int(5, 80), d.int(5, 80)
    place, x = d.pick(words.STORES), d.pick(GOODS)
    half = calc(left, "+", spent)
    start = calc(half, "*", 2)
    return Story(
        tell(d,
             (f"At {place}, {a} spent half of {a.their} money on {x.a}.",
              f"{a} used half of {a.their} money to buy {x.a} at {place}.",
              f"{x.a} from {place} cost {a} half of {a.their} money."),
             (f"Then {a.they} spent ${spent} on a gift and had ${left} left.",
              f"After another ${spent} for a gift, ${left} was left.",
              f"A gift cost ${spent} more. In the end {a} had ${left}."),
             (f"How much money did {a} have at first?", f"With how many dollars did {a} start?",
              "How much was it in the beginning?")),
        [f"Before the gift {a} had {half:$}.", f"At first it was {start:$}."],
        start)


@family
def combine_and_share_money(d: Draw) -> Story:
    a, b = people(d, 2)
    more, money = d.int(2, 100, 2), d.int(30, 400)
    other = calc(money, "-", more)
    several(d, other)
    both = calc(money, "+", other)
    each = calc(both, "/", 2)
    return Story(
        tell(d, (
            f"{a} has ${more} more than {b}. {a} has ${money}. They put their money together and share it equally. "
            "How much does each get?",
            f"{a} has ${money}, which is ${more} more than {b} has. If they share all the money equally, how much "
            "does each have?",
            f"{b} has ${more} less than {a}, who has ${money}. What does each of them get when they combine and "
            "split their money evenly?")),
        [f"{b} has {other:$}.", f"Together they have {both:$}.", f"Each gets {each:$}."],
        each)


@family
def pay_docked(d: Draw) -> Story:
    a, rate, hours, fine, times = adult(d), d.int(9, 40), d.int(8, 50), d.int(3, 20), d.int(2, 6)
    pay, lost = calc(hours, "*", rate), calc(times, "*", fine)
    left = calc(pay, "-", lost)
    return Story(
        tell(d,
             (f"{a} makes ${rate} an hour and works {hours} hours a week.",
              f"{a}'s week has {hours} hours of work at ${rate} per hour.",
              f"For {hours} hours of work a week, {a} gets ${rate} an hour."),
             (f"Each time {a.they} is late, ${fine} is taken off.", f"The boss keeps ${fine} for every late arrival.",
              f"Being late costs ${fine} each time."),
             (f"{a} was late {times} times this week. How much is {a} paid?",
              f"How much does {a} get in a week with {times} late arrivals?",
              f"What is the pay for a week in which {a} came late {d.number_words(times)} times?")),
        [f"The work pays {pay:$}.", f"Being late costs {lost:$}.", f"So {a} gets {left:$}."],
        left)


@family
def pay_per_piece(d: Draw) -> Story:
    a, rate, fast, hours = adult(d), d.int(2, 9), d.int(3, 20), d.int(3, 12)
    x = d.pick(nouns(words.PRODUCTS))
    pieces = calc(fast, "*", hours)
    pay = calc(pieces, "*", rate)
    hourly = calc(fast, "*", rate)
    ask = d.pick((True, False))
    lines = [f"In {hours} hours {a} makes {pieces} {x}.",
             f"They bring {pay:$}."] if ask else [f"An hour brings {hourly:$}."]
    question = ((f"How much does {a} earn in {hours} hours?", f"What does {a} get after {hours} hours?",
                 f"How many dollars does {a} make if {a.they} works for {hours} hours?") if ask else
                (f"How much does {a} earn in one hour?", f"What is that per hour for {a}?",
                 f"How many dollars does {a} get for an hour's work?"))
    return Story(
        tell(d,
             (f"{a} is paid ${rate} for every {x.one} and makes {fast} {x} an hour.",
              f"In one hour {a} finishes {fast} {x}, each of which pays ${rate}.",
              f"Making {x} pays ${rate} apiece, and {a} can make {fast} per hour."),
             question),
        lines,
        pay if ask else hourly)


@family
def budget_remaining(d: Draw) -> Story:
    a = adult(d)
    pay, rent, food, car = d.int(1500, 5000, 50), d.int(400, 1500, 10), d.int(100, 600, 10), d.int(50, 400, 10)
    costs = calc(rent, "+", food, "+", car)
    left = calc(pay, "-", costs)
    several(d, left)
    return Story(
        tell(d,
             (f"{a} earns ${grouped(d, pay)} a month.", f"The monthly income of {a} is ${pay}.",
              f"Each month {a} gets ${pay}."),
             shuffled(d, (f"The rent is ${rent}.", f"{a} pays ${rent} for rent.", f"${rent} goes to the landlord."),
                      (f"Food costs ${food}.", f"{a} spends ${food} on food.", f"${food} is for food."),
                      (f"The car costs ${car}.", f"{a} needs ${car} for the car.", f"${car} is spent on the car."),
                      stray=(f"{a} has worked there for {d.int(2, 20)} years.",)),
             ("How much is left at the end of the month?", f"How much can {a} save?", "How many dollars remain?")),
        [f"The costs are {costs:$}.", f"So {left:$} is left."],
        left)


@family
def average_daily_spending(d: Draw) -> Story:
    a, n = person(d), d.int(3, 5)
    spent = [d.int(4, 60) for _ in range(n)]
    days = words.WEEK[:n]
    total = calc(*[term for value in spent for term in (value, "+")][:-1])
    average = calc(total, "/", n)
    listed = ", ".join(f"${value} on {day}" for value, day in zip(spent[:-1], days))
    last = f"${spent[-1]} on {days[-1]}"
    return Story(
        tell(d,
             (f"{a} spent {listed} and {last}.", f"{a}'s lunches cost {listed} and {last}.",
              f"This week {a} paid {listed}, and finally {last}."),
             ("How much is that per day on average?", f"What is the average per day for these {n} days?",
              f"What did {a} spend on an average day?")),
        [f"Altogether it is {total:$}.", f"The average is {average:$}."],
        average)

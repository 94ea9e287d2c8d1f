"""Earning, saving and counting money."""

from . import words
from .problem import Draw, Story, calc, family


@family
def weekly_savings(d: Draw) -> Story:
    a = d.person()
    start, weekly, weeks, spent = d.int(10, 120), d.int(5, 40), d.int(3, 12), d.int(5, 60)
    saved = calc(weekly, "*", weeks)
    total = calc(start, "+", saved)
    left = calc(total, "-", spent)
    return Story(
        d.tell(
            (f"{a} has ${start} in {a.their} piggy bank and adds ${weekly} every week.",
             f"{a} starts with ${start} and saves ${weekly} a week."),
            (f"After {weeks} weeks {a.they} spends ${spent} on a gift.",
             f"{weeks} weeks later {a.they} takes out ${spent}."),
            (f"How much money does {a} have left?", f"How many dollars are left?",
             f"How much does {a.they} have then?")),
        [f"In {weeks} weeks {a} saves {saved:$}.", f"That makes {total:$}.", f"After spending, {left:$} is left."],
        left)


@family
def overtime_pay(d: Draw) -> Story:
    a = d.person()
    hours, rate, extra_hours, extra_rate = d.int(20, 40), d.int(9, 25), d.int(2, 9), d.int(12, 40)
    d.require(extra_rate > rate)
    normal, extra = calc(hours, "*", rate), calc(extra_hours, "*", extra_rate)
    total = calc(normal, "+", extra)
    return Story(
        d.tell(
            (f"{a} earns ${rate} an hour, and ${extra_rate} for each hour of overtime.",
             f"{a}'s job pays ${rate} per hour and ${extra_rate} per overtime hour."),
            (f"This week {a.they} worked {hours} regular hours and {extra_hours} hours of overtime.",
             f"{a.They} works {hours} normal hours plus {extra_hours} overtime hours."),
            (f"How much does {a} earn?", f"What is {a.their} pay for the week?",
             f"How many dollars does {a.they} make?")),
        [f"The regular hours pay {normal:$}.", f"The overtime pays {extra:$}.", f"{a} earns {total:$}."],
        total)


@family
def weeks_to_goal(d: Draw) -> Story:
    a, thing = d.person(), d.pick(words.GADGETS)
    have, weekly, weeks = d.int(10, 90), d.int(4, 30), d.int(3, 15)
    price = have + weekly * weeks
    missing = calc(price, "-", have)
    answer = calc(missing, "/", weekly)
    return Story(
        d.tell(
            (f"{a} wants to buy {thing} for ${price} and already has ${have}.",
             f"{a} is saving for {thing} that costs ${price}. So far {a.they} has ${have}."),
            (f"{a.They} earns ${weekly} a week by {d.pick(words.CHORES)}.",
             f"Each week {a.they} can put aside ${weekly}."),
            (f"How many weeks will it take to have enough?", f"In how many weeks can {a} buy it?")),
        [f"{a} still needs {missing:$}.", f"That takes {answer} weeks."],
        answer)


@family
def drink_stand_profit(d: Draw) -> Story:
    a, drink = d.person(), d.pick(words.DRINKS)
    cups, price, ingredients, stand = d.int(12, 90), d.int(2, 6), d.int(5, 30), d.int(3, 25)
    revenue = calc(cups, "*", price)
    costs = calc(ingredients, "+", stand)
    profit = calc(revenue, "-", costs)
    d.require(profit.value > 0)
    return Story(
        d.tell(
            (f"{a} sells {cups} cups of {drink} for ${price} each.",
             f"At {a.their} stand {a} sold {cups} cups of {drink} at ${price} a cup."),
            (f"The ingredients cost ${ingredients} and the stand costs ${stand}.",
             f"{a.They} spent ${ingredients} on ingredients and ${stand} on the stand."),
            (f"How much profit does {a} make?", f"What is {a}'s profit in dollars?")),
        [f"{a} takes in {revenue:$}.", f"The costs are {costs:$}.", f"The profit is {profit:$}."],
        profit)


@family
def sales_commission(d: Draw) -> Story:
    a, vehicle = d.person(), d.pick(words.VEHICLES[:5])
    base, per_sale, sold, months = d.int(200, 900, 50), d.int(20, 90, 5), d.int(3, 12), d.int(2, 6)
    bonus = calc(per_sale, "*", sold)
    monthly = calc(base, "+", bonus)
    total = calc(monthly, "*", months)
    return Story(
        d.tell(
            (f"A dealer pays {a} ${base} a month plus ${per_sale} for each {vehicle} sold.",
             f"{a} gets a monthly salary of ${base} and ${per_sale} for every {vehicle} {a.they} sells."),
            (f"{a.They} sells {sold} each month.", f"Every month {a.they} sells {sold} of them."),
            (f"How much does {a} earn in {months} months?", f"What does {a.they} make over {months} months?")),
        [f"The sales bring {bonus:$} a month.", f"A month pays {monthly:$}.",
         f"In {months} months {a} earns {total:$}."],
        total)


@family
def coins_in_a_jar(d: Draw) -> Story:
    a = d.person()
    quarters, dimes, nickels = d.int(2, 20), d.int(2, 30), d.int(2, 30)
    q, t, n = calc(quarters, "*", 25), calc(dimes, "*", 10), calc(nickels, "*", 5)
    silver = calc(q, "+", t)
    total = calc(silver, "+", n)
    return Story(
        d.tell(
            (f"{a} finds {quarters} quarters, {dimes} dimes and {nickels} nickels in a jar.",
             f"There are {quarters} quarters, {dimes} dimes and {nickels} nickels in {a}'s pocket."),
            ("How many cents is that?", f"How many cents does {a} have?", "What are they worth in cents?")),
        [f"The quarters are worth {q} cents.", f"The dimes are worth {t} cents.",
         f"The nickels are worth {n} cents.", f"Quarters and dimes make {silver} cents.",
         f"All the coins make {total} cents."],
        total)


@family
def fundraiser(d: Draw) -> Story:
    a, b, c, cause = d.person(), d.person(), d.person(), d.pick(words.CAUSES)
    first, k, more = d.int(15, 90), d.number_from((2, 3, 4)), d.int(5, 60)
    second = calc(first, "*", k)
    third = calc(second, "+", more)
    goal = d.int(400, 900, 10)
    pair = calc(first, "+", second)
    total = calc(pair, "+", third)
    missing = calc(goal, "-", total)
    d.require(missing.value > 0)
    return Story(
        d.tell(
            (f"{a}, {b} and {c} raise money for {cause}. Their goal is ${goal}.",
             f"Three friends want to collect ${goal} for {cause}."),
            (f"{a} raises ${first}, {b} raises {words.MULTIPLES[k]} as much as {a}, and {c} raises ${more} more than {b}.",
             f"{a} brings ${first}. {b} brings {words.MULTIPLES[k]} as much as {a}. {c} brings ${more} more than {b}."),
            ("How much is still missing?", "How many dollars do they still need?")),
        [f"{b} raises {second:$}.", f"{c} raises {third:$}.", f"{a} and {b} have {pair:$}.",
         f"All three have {total:$}.", f"They still need {missing:$}."],
        missing)


@family
def rent_and_food(d: Draw) -> Story:
    a = d.person()
    income, rent, weekly, months = d.int(1200, 3000, 100), d.int(400, 900, 50), d.int(40, 90, 5), d.int(2, 6)
    food = calc(weekly, "*", 4)
    costs = calc(rent, "+", food)
    left = calc(income, "-", costs)
    total = calc(left, "*", months)
    return Story(
        d.tell(
            (f"{a} earns ${income} a month. The rent is ${rent} a month and food costs ${weekly} a week.",
             f"Each month {a} is paid ${income}. {a.They} pays ${rent} rent, and ${weekly} for food every week."),
            (f"Counting four weeks in a month, how much can {a.they} save in {months} months?",
             f"If a month has 4 weeks, how many dollars are left after {months} months?")),
        [f"Food costs {food:$} a month.", f"Rent and food cost {costs:$}.", f"Each month {left:$} is left.",
         f"In {months} months that is {total:$}."],
        total)

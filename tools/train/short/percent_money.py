"""Percentages, prices, change, coins, pay, and the price of one or of many."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply, chain
from .grammar import Patterns
from .numbers import Hand, Value, dollars, places_of, relation, require, show
from .question import Short, computed, said, topic
from .things import person, plural, subject

_USUAL = (1, 2, 3, 4, 5, 5, 6, 7, 8, 10, 10, 12, 15, 15, 18, 20, 20, 25, 25, 30, 35, 40, 45, 50, 50, 60, 65, 70, 75, 80,
          85, 90, 95, 99, 100, 110, 120, 125, 150, 200)
_SIGN = Patterns("{p}[%|%|%|%| %| percent| percent| per cent| pct]")


def percentage(rng: random.Random) -> int:
    return rng.choice(_USUAL) if rng.random() < 0.8 else rng.randint(1, 99)


def percent_text(rng: random.Random, value: int) -> str:
    if rng.random() < 0.06:
        return f"{Hand(rng).write(value)} percent"
    return _SIGN.expand(rng, p=value)


def share_of(value: Value, percent: int) -> Worked:
    """`80 * 15 / 100` in two lines; at most two decimals."""
    worked = chain(value, ("*", percent), ("/", 100))
    require((places_of(worked.value) or 0) <= 2)
    return Worked((*apply("*", value, percent).lines, f"{show(value * percent)} / 100 = {show(worked.value)}"),
                  worked.value)


def amount(rng: random.Random, percent: int) -> int:
    return rng.choice((rng.randint(1, 20) * 10, rng.randint(1, 40) * 5, rng.randint(1, 10) * 100, rng.randint(1, 99),
                       rng.randint(1, 100) * 20, rng.randint(1, 300) if percent % 5 == 0 else 50))


_PERCENT_OF = Patterns("""
    [What is|what is|What's|whats|How much is|Find|Calculate|calculate|Compute|Tell me|Give me|WHAT IS] {p} of {n}[?|?|]
    {p} of {n}[?|=| =|]
    {p} of {n} [is|equals] [what|how much][?|]
    [If|When] [I take|you take] {p} of {n}, [what do I get|how much is it][?|]
    [How much|What] [do you get|is it] if you take {p} of {n}[?|]
    [I need|Work out|take] {p} of {n}[.|]
""")


@topic(2)
def percent_of(rng: random.Random) -> Short:
    p = percentage(rng)
    n = amount(rng, p)
    worked = share_of(n, p)
    mark = rng.choice(("", "", "", "", "$", "€"))
    return computed(_PERCENT_OF.expand(rng, p=percent_text(rng, p), n=mark + Hand(rng).write(n)), worked)


_WHAT_PERCENT = Patterns("""
    [What|Which|what] [percent|percentage|%] [of {n} is {m}|is {m} of {n}|of {n} does {m} make][?|]
    {m} is what [percent|percentage|%] of {n}[?|]
    {m} [out of|of] {n} [as a percentage|in percent|as a percent|is what percent][?|]
    [Express|Write] {m}[/| out of ]{n} as a [percentage|percent][.|]
    {x} [got|scored|answered] {m} [out of|of] {n} [questions|points|] [right|]. What [percent|percentage] is that[?|]
""")


@topic(1.5)
def what_percent(rng: random.Random) -> Short:
    p = percentage(rng)
    n = rng.choice((rng.randint(1, 20) * 10, rng.randint(1, 40) * 5, 4, 8, 20, 25, 50, 80, 100, 200))
    require(p * n % 100 == 0 and p <= 100)
    m = p * n // 100
    require(m > 0)
    worked = Worked((f"{m} / {n} = {show(Fraction(m, n))}", f"{show(Fraction(m, n))} * 100 = {p}"), p)
    return computed(_WHAT_PERCENT.expand(rng, m=m, n=n, x=person(rng)), worked)


_OF_WHAT = Patterns("""
    {m} is {p} of [what|what number|which number][?|]
    {p} of [what|which number|what number|a number] is {m}[?|]
    [If|When] {p} of a number is {m}, what is the number[?|]
""")


@topic(0.7)
def percent_of_what(rng: random.Random) -> Short:
    p = percentage(rng)
    n = rng.choice((rng.randint(1, 20) * 10, rng.randint(1, 40) * 5, rng.randint(1, 10) * 100))
    require(p * n % 100 == 0)
    m = p * n // 100
    return computed(_OF_WHAT.expand(rng, m=m, p=percent_text(rng, p)), chain(m, ("*", 100), ("/", p)))


_DISCOUNT = Patterns("""
    [A|The] {t} costs ${n}[ and is|. It is|, now| but is] {p} off. [What is the new price|How much does it cost now|What do I pay|What is the sale price][?|]
    [What is|How much is|whats] ${n} [with|after|minus|less] [a |]{p} [discount|off|reduction][?|]
    ${n} [with|after] {p} off[?|]
    {p} off [of |]${n}[?|]
    [How much|What] do I pay for a ${n} {t} [at|with] {p} [off|discount][?|]
    [A|My] ${n} {t} is [on sale for|reduced by|discounted by] {p}[ off|]. [New price?|What does it cost now?|Final price?]
    [Decrease|Reduce] {n} by {p}[.|]
""")
_RAISE = Patterns("""
    [Increase|Raise] {n} by {p}[.|]
    [What is|How much is] {n} [plus|increased by|raised by|and] {p}[?|]
    {n} [plus|+|increased by] {p}[?|]
    [A|The] price of ${n} [rises|goes up|increases|is raised] by {p}. [What is the new price|How much is it now][?|]
    {x} earns ${n} and gets a {p} raise. [What is the new salary|How much is it now|What does {x} earn now][?|]
    [A|The] ${n} [meal|dinner|bill] with a {p} tip[?|. Total?| costs how much?]
    [The|A] [bill|check|meal] is ${n} [and I|, I] [tip|add a tip of|leave] {p}. [What is the total|How much do I pay in total|Total][?|]
    ${n} plus {p} [tax|VAT|tip][?|]
""")
_TIP = Patterns("""
    [What is|How much is|Calculate|whats] a {p} tip on [a |]${n}[ bill| dinner| meal| check|][?|]
    {p} tip on ${n}[?|]
    [The|My] [bill|check|dinner] [is|was|comes to] ${n}. [How much is|What is] a {p} tip[?|]
    [How much|What] tax is {p} on ${n}[?|]
    [How much|What] do I save with {p} off ${n}[?|]
    [How much is the|What is the] discount if ${n} is reduced by {p}[?|]
""")
_GOODS = "shirt jacket lamp phone bike book bag chair ticket toy game hat coat skirt table pen camera scooter".split()  # plurals in -s


@topic(1.5)
def percent_change(rng: random.Random) -> Short:
    p = percentage(rng)
    n = amount(rng, p)
    kind = rng.randrange(3)
    share = share_of(n, p)
    slots = {"p": percent_text(rng, p), "n": n, "t": rng.choice(_GOODS), "x": person(rng)}
    if kind == 0:
        return computed(_TIP.expand(rng, **slots), share)
    require(p <= 100)
    end = apply("+" if kind == 1 else "-", n, share.value)
    patterns = _RAISE if kind == 1 else _DISCOUNT
    return computed(patterns.expand(rng, **slots), Worked(share.lines + end.lines, end.value))


_CHANGED_BY = Patterns("""
    [A|The] price [goes|went|rises|changes] from ${a} to ${b}. [By what percent|What is the percent change|What percentage is that][?|]
    [What is the|Find the] [percent|percentage] [change|{w}] from {a} to {b}[?|]
    [By what|How many] percent [does|did] {a} [change|{v}] to become {b}[?|]
""")


@topic(0.5)
def changed_by(rng: random.Random) -> Short:
    a, p = rng.randint(1, 20) * 10, rng.choice((5, 10, 20, 25, 30, 40, 50, 75, 100))
    require(a * p % 100 == 0)
    change, grows = a * p // 100, rng.random() < 0.6 or p == 100
    b = a + change if grows else a - change
    high, low = max(a, b), min(a, b)
    question = _CHANGED_BY.expand(rng, a=a, b=b, w="increase" if grows else "decrease", v="grow" if grows else "fall")
    lines = (f"{high} - {low} = {change}", f"{change} / {a} = {show(Fraction(change, a))}",
             f"{show(Fraction(change, a))} * 100 = {p}")
    return computed(question, Worked(lines, p))


_CONVERT = Patterns("""
    [Write|Express|Convert|Change|Turn|Give] {a} [as|to|into] a {k}[.|]
    [What is|what's] {a} [as|in the form of|written as] a {k}[?|]
    {a} [as|to|in] [a |]{k}[?|]
    [Convert|Turn] the {j} {a} [to|into] a {k}[.|]
""")


@topic(1.5)
def forms_of_parts(rng: random.Random) -> Short:
    """Between decimals, fractions and percentages."""
    bottom = rng.choice((2, 4, 5, 8, 10, 20, 25, 50, 100))
    value = Fraction(rng.randint(1, bottom - 1), bottom)
    forms = {"decimal": show(value), "fraction": str(value), "percentage": f"{show(value * 100)}%"}
    source, target = rng.sample(list(forms), 2)
    question = _CONVERT.expand(rng, a=forms[source], k=target, j=source)
    if target == "percentage" and rng.random() < 0.5:
        question = question.replace("percentage", "percent")
    answer = forms[target].rstrip("%")
    reply = f"{forms[source]} = {forms[target]}"
    if (source, target) == ("decimal", "fraction") and len(forms["decimal"]) < 5:
        scale = 10 ** (len(forms["decimal"]) - 2)
        raw = f"{int(value * scale)}/{scale}"
        reply = f"{forms['decimal']} = {raw}" + ("" if raw == forms["fraction"] else f" = {forms['fraction']}")
    return Short(question, reply, answer)


_SIMPLIFY = Patterns("""
    [Simplify|Reduce|Simplify the fraction|Reduce the fraction|simplify] {f}[.|]
    [What is|Write] {f} in [lowest|its lowest|simplest] [terms|form][?|.|]
    {f} simplified[?|]
""")


@topic(0.6)
def simplify(rng: random.Random) -> Short:
    value, k = Fraction(rng.randint(1, 11), rng.randint(2, 12)), rng.randint(2, 9)
    require(value.denominator > 1)
    raw = f"{value.numerator * k}/{value.denominator * k}"
    return Short(_SIMPLIFY.expand(rng, f=raw), f"{raw} = {value}", str(value))


# Money ---------------------------------------------------------------------------------------


def price(rng: random.Random, limit: int) -> Value:
    if rng.random() < 0.45:
        return rng.randint(1, limit)
    cents = rng.choice((50, 50, 25, 75, 99, 95, 49, 10, 20, 80, 5, rng.randint(1, 99)))
    return rng.randint(0, limit - 1) + Fraction(cents, 100)


def money(rng: random.Random, value: Value) -> str:
    text = dollars(value)
    kind = rng.random()
    if kind < 0.75:
        return f"${text}"
    if kind < 0.85:
        return f"{text} dollars"
    if value < 1:
        return f"{int(value * 100)} cents"
    return rng.choice(("€{}", "£{}", "{} euros", "{} bucks", "{}$", "{} USD", "{}€")).format(text)


def paid(question: str, worked: Worked) -> Short:
    """The reply's last line shows dollars with their cents."""
    *lines, last = worked.lines
    left, _, _ = last.rpartition(" = ")
    shown = dollars(worked.value)
    return Short(question, "\n".join((*lines, f"{left} = {shown}")), shown, worked.value)


_CHANGE = Patterns("""
    [I pay|I paid|{x} pays|You pay] [with a {b} bill|with {b}|{b}] for [something that costs|a {t} that costs|a {t} at|a {t} of] {c}. [How much change|What change|What is the change][?| do I get?| is due?]
    [A|The] {t} costs {c}. [I pay with|{x} gives|You hand over|I give the clerk] {b}. [How much change do I get|What is the change|How much comes back|Change][?|]
    change from {b} for {c}[?|]
    [How much|What] change [from|out of] {b} [for|if I buy|after spending] [a {t} at |something for |]{c}[?|]
    [How much|what] is left [of|from] {b} [after|if I] [spending|spend|paying|pay] {c}[?|]
    {x} has {b} and [spends|pays|uses] {c}. How much [is left|money is left|does {x} have left|remains][?|]
    [I have|{x} has] {b}. [A|The] {t} costs {c}. [How much is left|What remains] after buying it[?|]
""")


@topic(1)
def change(rng: random.Random) -> Short:
    cost = price(rng, rng.choice((5, 10, 20, 50)))
    bill = next(b for b in rng.choice(((1, 5, 10, 20, 50, 100), (10, 20, 50, 100), (100,))) if b >= cost)
    return paid(_CHANGE.expand(rng, b=money(rng, bill), c=money(rng, cost), t=rng.choice(_GOODS), x=person(rng)),
                apply("-", bill, cost))


_ITEMS = Patterns("""
    {n} {t} at {c} each[?|, what is the total?|: how much?|. Total?| cost how much?]
    [How much|What] [do|would|will] {n} {t} [cost|come to] [at|if each costs|if one costs|for] {c}[ each| apiece|][?|]
    [One|Each] of the {t} costs {c}. [How much|What] do {n} [{t} |]cost[?|]
    {x} buys {n} {t} [at|for] {c} [each|apiece|per piece]. [How much does {x} pay|What is the total|How much is that|Total cost][?|]
    [If|Suppose] [one costs|each costs] {c}, [how much|what] do {n} {t} cost[?|]
    [Price of|Cost of|Total for] {n} {t} at {c} each[?|]
""")
_TOGETHER = Patterns("""
    [A|One] {t} costs {a} and a {u} costs {b}. [How much do both cost|How much together|What is the total|How much is it for both|Total][?|]
    [I|{x}] [spent|paid|spend] {a} [on|for] a {t} and {b} [on|for] a {u}. [How much in total|How much altogether|What was the total][?|]
    [What is|How much is] {a} plus {b}[?|]
    [I earn|{x} earns|{x} gets] {a} [today|on Monday] and {b} [tomorrow|on Tuesday]. [How much in all|How much together|Total][?|]
    {a} and {b}[, total?| together?| how much?]
""")
_EACH = Patterns("""
    {n} {t} cost {c}. [How much|What] [is|does] [one|each|one of them] [cost|][?|]
    [If|When] {n} {t} [cost|are] {c}, [how much|what] [is the price of|does] [one|each|one of them] [cost|][?|]
    {c} for {n} {t}[, how much is one?|: price of one?|, what does each cost?]
    {n} [friends|people|kids] [share|split] [a bill of |]{c} [equally|evenly]. [How much|What] does each [pay|get][?|]
    [Split|Divide] {c} [between|among|by] {n} [people|friends|][.|]
""")


@topic(1.25)
def prices(rng: random.Random) -> Short:
    kind = rng.randrange(3)
    things, name, n = plural(rng), person(rng), rng.randint(2, 12)
    if kind == 0:
        c = price(rng, rng.choice((3, 10, 20)))
        return paid(_ITEMS.expand(rng, n=Hand(rng).write(n), t=things, c=money(rng, c), x=name), apply("*", n, c))
    if kind == 1:
        a, b = price(rng, 20), price(rng, 20)
        first, second = rng.sample(_GOODS, 2)
        return paid(_TOGETHER.expand(rng, a=money(rng, a), b=money(rng, b), t=first, u=second, x=name),
                    apply("+", a, b))
    each = price(rng, 12)
    return paid(_EACH.expand(rng, n=n, t=things, c=money(rng, each * n)), apply("/", each * n, n))


_TWO_KINDS = Patterns("""
    [I buy|{x} buys|What do I pay for|How much are|Total for] {n} {t} at {a} and {m} {u} at {b}[ each|]. [How much is that|Total|What is the total|][?|]
    {n} {t} for {a} each and {m} {u} for {b} each[: total?|, how much?|. What is the total cost?]
    [If|When] [a|one] {t} costs {a} and {u} {b}, what do {n} and {m} of them cost[?|]
""")


@topic(0.35)
def two_kinds(rng: random.Random) -> Short:
    n, m, a, b = rng.randint(2, 6), rng.randint(2, 6), price(rng, 8), price(rng, 8)
    first, second = apply("*", n, a), apply("*", m, b)
    end = apply("+", first.value, second.value)
    question = _TWO_KINDS.expand(rng, n=n, m=m, t=plural(rng), u=plural(rng), a=money(rng, a), b=money(rng, b), x=person(rng))
    return paid(question, Worked(first.lines + second.lines + end.lines, end.value))


_COINS = {"penny": 1, "nickel": 5, "dime": 10, "quarter": 25}
_PLURAL_COINS = {"penny": "pennies", "nickel": "nickels", "dime": "dimes", "quarter": "quarters"}
_IN_COINS = Patterns("""
    [How many|how many] {p} [are in|make|are there in|in|are|do I need for|make up] [${n}|{n} dollar{s}][?|]
    ${n} in {p}[?|]
""")
_WORTH = Patterns("""
    [How much|What|How many cents] [is|are] {a} {p} and {b} {q} [worth|in cents|together][?|]
    {a} {p} and {b} {q}[, how many cents?| is how many cents?| in cents?]
    [I have|{x} has] {a} {p} and {b} {q}. How [many cents|much money in cents] is that[?|]
""")


@topic(0.8)
def coins(rng: random.Random) -> Short:
    coin, other = rng.sample(list(_COINS), 2)
    if rng.random() < 0.4:
        n = rng.choice((1, 1, 2, 3, 4, 5, 10, rng.randint(1, 20)))
        worked = chain(n, ("*", 100), ("/", _COINS[coin])) if coin != "penny" else apply("*", n, 100)
        return computed(_IN_COINS.expand(rng, p=_PLURAL_COINS[coin], n=n, s="" if n == 1 else "s"), worked)
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    first, second = apply("*", a, _COINS[coin]), apply("*", b, _COINS[other])
    end = apply("+", first.value, second.value)
    lines = (*first.lines, *second.lines, *end.lines[:-1], end.lines[-1] + " cents")
    question = _WORTH.expand(rng, a=a, b=b, p=_PLURAL_COINS[coin], q=_PLURAL_COINS[other], x=person(rng))
    return Short(question, "\n".join(lines), str(end.value), end.value)


_CENTS = Patterns("""
    [How many|how many] cents [are|is|are in|are there in|in] {d}[?|]
    {d} in cents[?|]
    [Convert|Change] {d} to cents[.|]
""")
_TO_DOLLARS = Patterns("""
    [How many|how many] dollars [are|is|make] {c} cents[?|]
    {c} cents in dollars[?|]
    [Convert|Change] {c} cents [to|into] dollars[.|]
""")


@topic(0.3)
def cents(rng: random.Random) -> Short:
    value = price(rng, 20)
    in_cents = int(value * 100)
    if rng.random() < 0.5:
        name = rng.choice((f"${dollars(value)}", f"{dollars(value)} dollars"))
        return Short(_CENTS.expand(rng, d=name), f"{show(value)} * 100 = {in_cents} cents", str(in_cents), in_cents)
    return paid(_TO_DOLLARS.expand(rng, c=in_cents), Worked((f"{in_cents} / 100 = {show(value)}",), value))


_EARNS = Patterns("""
    {x} [earns|makes|gets|is paid] ${a} [an hour|per hour|a day|per day|each week|every month] and works {n} [hours|days|of them|]. [How much does {x} earn|How much is that|What is the pay|Total][?|]
    [At|For] ${a} an hour, [how much|what] [do you earn|is the pay] for {n} hours[?|]
    {x} saves ${a} [a week|every week|per month|each day]. How much [after|in] {n} [weeks|of them|months|days][?|]
    [How much|What] do I [earn|make|get] in {n} hours at ${a} [an hour|per hour|/hour][?|]
""")
_HOW_LONG = Patterns("""
    {x} [saves|earns|puts aside] ${a} [a week|per week|a day|a month] and [needs|wants|is saving for] ${b}. How many [weeks|days|months|of them] does it take[?|]
    [How many|In how many] [hours|weeks] [at|of] ${a} [does it take to earn|make|give] ${b}[?|]
""")


@topic(0.5)
def pay(rng: random.Random) -> Short:
    a, n = rng.randint(2, 40), rng.randint(2, 12)
    if rng.random() < 0.7:
        return computed(_EARNS.expand(rng, x=subject(rng), a=a, n=n), apply("*", a, n))
    return computed(_HOW_LONG.expand(rng, x=subject(rng), a=a, b=a * n), apply("/", a * n, a))


_AFFORD = Patterns("""
    [I have|{x} has] ${b}. [A|One] {t} costs ${a}. How many [can I buy|can be bought|{t}s is that][?|]
    How many {t}s [at|for|costing] ${a} [each |]can [I|{x}|you] [buy|get|afford] [with|for] ${b}[?|]
""")
_ENOUGH = Patterns("""
    [Is|Are] ${b} enough [for|to buy|to pay for] {n} {t}s at ${a} each[?|]
    [Can I|Can {x}|Can you] [buy|afford] {n} {t}s at ${a} each with ${b}[?|]
""")


@topic(0.35)
def afford(rng: random.Random) -> Short:
    a, n, t = rng.randint(2, 20), rng.randint(2, 12), rng.choice(_GOODS)
    if rng.random() < 0.6:
        b = a * n + rng.choice((0, 0, rng.randrange(a)))
        rest = f"{b} / {a} = {n}" + (f" remainder {b % a}" if b % a else "")
        reply = rest if b % a == 0 else f"{rest}\nSo it is enough for {n}."
        return said(_AFFORD.expand(rng, x=person(rng), a=a, b=b, t=t), reply, n)
    total = a * n
    b = max(1, total + rng.randint(-20, 20))
    if b >= total:
        return said(_ENOUGH.expand(rng, x=person(rng), a=a, b=b, n=n, t=t),
                    f"{n} * {a} = {total}\n{relation(b, total)}\nYes, {b} is enough for {total}.", "Yes")
    return said(_ENOUGH.expand(rng, x=person(rng), a=a, b=b, n=n, t=t),
                f"{n} * {a} = {total}\n{relation(b, total)}\nNo, {b} is less than {total}.", "No")

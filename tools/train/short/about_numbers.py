"""Comparing, ordering, averaging, counting, rounding; factors and primes; digits and words."""

from __future__ import annotations

import random
from fractions import Fraction
from math import gcd, lcm

from .arithmetic import Worked, apply, chain, power
from .expressions import enumerated
from .grammar import Patterns
from .numbers import Hand, Value, decimal, in_words, ordinal, relation, require, rounded, show, whole
from .question import Short, computed, said, topic
from .things import person, plural, two_people

_WHICH = Patterns("""
    [What|Which|which|what|Which number|which one|Which one|Which of these|What number] is [{w}|the {w} number|{w} number|the {w} one|{w} one]: {a} or {b}[?|]
    [What|Which|which|what|Which number|which one] is {w}[,|:|] {a} or {b}[?|]
    [{a} or {b}|{a} vs {b}|{a} and {b}|{a} versus {b}][, which is {w}?|: which is {w}?|, what is {w}?| which one is {w}?]
    {w}: {a} or {b}[?|]
    [Compare|compare] {a} and {b}. Which is {w}[?|]
    [Is|is] {a} or {b} {w}[?|]
    [Of|Out of] {a} and {b}, which [one |number |]is {w}[?|]
    [Tell me|Pick|Give me|Name] the {w} [one |number |]of {a} and {b}[.|]
    [Do you know|Tell me] which is {w}, {a} or {b}[?|]
""")
_IS_IT = Patterns("""
    [Is|is|IS] {a} {w} than {b}[?|]
    {a} [is|isn't it] {w} than {b}[?|, right?|, yes or no?|, true or false?]
    [True or false:|Yes or no:|Is it true that|is it correct that] {a} is {w} than {b}[?|]
    [Is|is] {a} {s} {b}[?|]
    {a} {s} {b}[?| true?|, right?]
""")
_GREATER = ("greater", "bigger", "larger", "higher", "more")
_LESS = ("less", "smaller", "lower")


def _comparable(rng: random.Random) -> tuple[tuple[Value, str], tuple[Value, str]]:
    """Two numbers of one kind, with how they are typed."""
    kind = rng.random()
    if kind < 0.5:
        digits = rng.choice((1, 2, 2, 3, 4, 6))
        a, b = whole(rng, digits), whole(rng, digits)
        if rng.random() < 0.3:
            b = a + rng.choice((-1, 1, 9, 10, -10))
            require(b >= 0)
        hand = Hand(rng)
        return (a, hand.write(a)), (b, hand.write(b))
    if kind < 0.65:
        first, second = ((v := rng.randint(-30, 20), str(v)) for _ in range(2))
        return first, second
    if kind < 0.82:
        c, d = decimal(rng, 3, 1), decimal(rng, 3, rng.choice((1, 2)))
        if rng.random() < 0.4:
            c, d = int(c) + Fraction(rng.randint(1, 9), 10), int(c) + Fraction(rng.randint(1, 99), 100)
        return (c, show(c)), (d, show(d))
    e, f = (Fraction(rng.randint(1, 9), rng.randint(2, 10)) for _ in range(2))
    require(e.denominator > 1 and f.denominator > 1)
    return (e, str(e)), (f, str(f))


def _plainly(value: Value, typed: str) -> str:
    """As the reply names it: fractions stay fractions."""
    return typed if "/" in typed else show(value)


def _fraction_work(first: tuple[Value, str], second: tuple[Value, str]) -> list[str]:
    """Both over the common denominator."""
    lines = []
    common = lcm(*(Fraction(value).denominator for value, _ in (first, second)))
    for value, typed in (first, second):
        if "/" in typed and not typed.endswith(f"/{common}"):
            lines.append(f"{typed} = {int(value * common)}/{common}")
    return lines


def _related(first: tuple[Value, str], second: tuple[Value, str]) -> str:
    """`824 > 426`, of fractions over their common denominator."""
    (a, typed), (b, _) = first, second
    if "/" not in typed:
        return relation(a, b)
    common = lcm(Fraction(a).denominator, Fraction(b).denominator)
    sign = "<" if a < b else ">" if a > b else "="
    return f"{int(a * common)}/{common} {sign} {int(b * common)}/{common}"


@topic(4)
def which_is_more(rng: random.Random) -> Short:
    first, second = _comparable(rng)
    require(first[0] != second[0])
    more = rng.random() < 0.7
    word = rng.choice(_GREATER if more else _LESS)
    winner = max(first, second) if more else min(first, second)
    lines = _fraction_work(first, second) if "/" in first[1] else []
    name = _plainly(*winner)
    shown = "greater" if more else "less"
    question = _WHICH.expand(rng, w=word, a=first[1], b=second[1])
    lines.append(_related(first, second))
    return said(question, "\n".join([*lines, f"{name} is {shown}."]), name)


@topic(3.5)
def is_it_more(rng: random.Random) -> Short:
    first, second = _comparable(rng)
    word, sign = rng.choice((*((w, ">") for w in _GREATER), *((w, "<") for w in _LESS)))
    a, b = first[0], second[0]
    if rng.random() < 0.1:
        a, first, second = b, second, second
    is_true = a > b if sign == ">" else a < b
    compared = "greater than" if a > b else "less than" if a < b else "equal to"
    lines = _fraction_work(first, second) if "/" in first[1] and a != b else []
    lines.append(_related(first, second))
    reply = f"{'Yes' if is_true else 'No'}, {_plainly(*first)} is {compared} {_plainly(*second)}."
    question = _IS_IT.expand(rng, a=first[1], b=second[1], w=word, s=sign)
    return said(question, "\n".join([*lines, reply]), "Yes" if is_true else "No")


_IS_RIGHT = Patterns("""
    [Is|is] {e} [equal to|=|the same as|really] {r}[?|]
    [Is it true that|True or false:|Is it right that|Check:|Yes or no:] {e} [=|is|equals] {r}[?|]
    {e} = {r}[, right?|, true?|, correct?|?! Is that right?|, yes or no?]
    [Does|does] {e} [equal|make|give] {r}[?|]
""")


@topic(1.8)
def is_it_right(rng: random.Random) -> Short:
    operator = rng.choice("++-*")
    a, b = rng.randint(1, 12 if operator == "*" else 60), rng.randint(1, 12)
    worked = apply(operator, a, b)
    claim = worked.value if rng.random() < 0.5 else worked.value + rng.choice((-10, -2, -1, 1, 2, 10))
    text = _IS_RIGHT.expand(rng, e=f"{a}{rng.choice((operator, f' {operator} '))}{b}", r=claim)
    verdict = "Yes" if claim == worked.value else "No"
    return said(text, f"{worked.lines[-1]}\n{verdict}, {worked.lines[-1]}.", verdict)


_EXTREME = Patterns("""
    [What is|Which is|Find|what's|Give me|Tell me|whats] the {w} [number |]of {l}[?|]
    [Which|What] number is [the |]{w}[:|,| in] {l}[?|]
    {w} [of|number of|in|:] {l}[?|]
    [{l}: which is the {w}?|{l}. {w}?|{m}({l})]
    [Of|From|Out of] {l}, which is the {w}[?|]
""")


@topic(2)
def extremes(rng: random.Random) -> Short:
    values = _some(rng, 3, 6)
    largest = rng.random() < 0.55
    word = rng.choice(("largest", "biggest", "greatest", "highest", "maximum") if largest
                      else ("smallest", "lowest", "least", "minimum"))
    answer = max(values) if largest else min(values)
    text = _EXTREME.expand(rng, w=word, l=enumerated(rng, values), m="max" if largest else "min")
    return said(text, f"The {'largest' if largest else 'smallest'} is {show(answer)}", answer)


def _some(rng: random.Random, fewest: int, most: int) -> list[Value]:
    count, kind = rng.randint(fewest, most), rng.random()
    if kind < 0.15:
        return [Fraction(rng.randint(1, 99), 10) for _ in range(count)]
    low, high = rng.choice(((1, 9), (1, 20), (1, 99), (1, 99), (1, 999), (-20, 20)))
    return list(rng.sample(range(low, high + 1), count))


_SORT = Patterns("""
    [Sort|sort|Order|Arrange|Put|Rank|List|Please sort] [these numbers:|the numbers|] {l} [from smallest to largest|in ascending order|in increasing order|from low to high|in order|from least to greatest|ascending][.|]
    [Sort|sort|Order|Put in order]: {l}
    {l} [sorted|in ascending order|from smallest to largest|in order][?|]
""")
_SORT_DOWN = Patterns("""
    [Sort|sort|Order|Arrange|List|Put] {l} [from largest to smallest|in descending order|in decreasing order|from high to low|descending|from greatest to least|from biggest to smallest][.|]
    {l} [in descending order|from largest to smallest][?|]
""")


@topic(2.5)
def sorting(rng: random.Random) -> Short:
    values = _some(rng, 3, 6)
    down = rng.random() < 0.35
    answer = ", ".join(show(v) for v in sorted(values, reverse=down))
    return said((_SORT_DOWN if down else _SORT).expand(rng, l=enumerated(rng, values)), answer, answer)


_AVERAGE = Patterns("""
    [What is|Find|Calculate|what's|whats|Compute|Tell me] the [average|mean|arithmetic mean|avg] of {l}[?|]
    [average|mean|avg|Average] [of|:] {l}[?|]
    {l}[: average?|, what is the mean?|. What is the average?| average]
    [My|{x}'s|The] [scores|grades|marks|points] are {l}. What is the average[?|]
    [What|How much] is the average [of the numbers|of these numbers:|if the values are] {l}[?|]
""")
_MEDIAN = Patterns("""
    [What is|Find|what's] the median of {l}[?|]
    median [of|:] {l}[?|]
""")
_RANGE = Patterns("""
    [What is|Find|what's] the range of {l}[?|]
    range [of|:] {l}[?|]
""")


@topic(2.5)
def averages(rng: random.Random) -> Short:
    kind = rng.random()
    if kind < 0.7:
        values: list[Value] = [rng.randint(1, rng.choice((12, 30, 100))) for _ in range(rng.choice((2, 2, 3, 3, 4, 5)))]
        total = chain(values[0], *(("+", v) for v in values[1:]))
        end = apply("/", total.value, len(values))
        return computed(_AVERAGE.expand(rng, l=enumerated(rng, values), x=person(rng)),
                        Worked(total.lines + end.lines, end.value))
    values = list(rng.sample(range(1, 60), rng.choice((3, 5, 5, 7))))
    text = enumerated(rng, values)
    if kind < 0.85:
        middle = sorted(values)[len(values) // 2]
        ordered = ", ".join(map(str, sorted(values)))
        return said(_MEDIAN.expand(rng, l=text), f"{ordered}\nThe median is {middle}", middle)
    return computed(_RANGE.expand(rng, l=text), apply("-", max(values), min(values)))


_NEXT = Patterns("""
    [What comes next|What is next|What comes next in the sequence|Next number|What number comes next|Which number is next|Continue]: {l}[?|, ?|, ...|, ...?|]
    {l}, [?|_|__|...|what comes next?|what's next?|next?|what is the next number?]
    {l}[|...| ...| ?| -> ?| _| and then?| next?| next| and so on. Next?| next one please| - what's next]
    [What|Which] number [follows|comes after|is next after|goes on the list after] {l}[?|]
    [whats|what is|what's] the [pattern|next one|next]: {l}[?| next?| next|]
    [go on|continue|keep going|carry on|extend][:| with|] {l}
    [the sequence|sequence|series|pattern|numbers]: {l}. [next|Next|What is next|The next number|Then][?|]
    [Find|Give|What is] the next [number|term] [in|of|in the sequence|after]: {l}[?|, ...|]
    [Complete|Continue] the [pattern|sequence|series]: {l}, [...|_|?]
    [What number follows|what comes after] {l}[?|]
""")


def rule(values: list[Value]) -> Worked:
    """The next number, by the last two differences; where these grow, by how much."""
    falls = values[-1] < values[-2]
    lines = tuple(apply("-", max(pair), min(pair)).lines[-1] for pair in ((values[-3], values[-2]), (values[-2], values[-1])))
    before, step = abs(values[-2] - values[-3]), abs(values[-1] - values[-2])
    if step != before:
        growth = apply("+" if step > before else "-", step, abs(step - before))
        lines, step = (*lines, *growth.lines), growth.value
    end = apply("-" if falls else "+", values[-1], step)
    return Worked((*lines, end.lines[-1]), end.value)


def sum_rule(values: list[Value]) -> Worked:
    """Each number is the sum of the two before it."""
    end = apply("+", values[-2], values[-1])
    return Worked((apply("+", values[-3], values[-2]).lines[-1], end.lines[-1]), end.value)


def _progression(rng: random.Random, count: int) -> list[Value]:
    """Up or down in equal steps, also below zero and by decimals."""
    ups, downs = (1, 2, 3, 4, 5, 10, rng.randint(2, 15), rng.randint(2, 60)), (-rng.randint(1, 10), -rng.choice((5, 10, 25)))
    step: Value = rng.choice((*ups, *downs))
    start: Value = rng.randint(0, rng.choice((10, 30, 100)))
    if step < 0:
        start = -step * (count if rng.random() < 0.8 else 1) + rng.randint(0, 60)
    elif rng.random() < 0.12:
        start = -rng.randint(1, 20)
    if rng.random() < 0.12:
        step, start = Fraction(rng.choice((5, 5, 2, 1, 25, 15)), 10), Fraction(rng.randint(0, 30), 10)
    return [_simple(start + step * i) for i in range(count)]


def _simple(value: Value) -> Value:
    return int(value) if value == int(value) else value


def _next_in(rng: random.Random, count: int) -> tuple[list[Value], Worked]:
    """A sequence of some kind, and how its next number is found."""
    kind = rng.random()
    if kind < 0.5:
        values = _progression(rng, max(count, 3))
        return values, rule(values)
    if kind < 0.66:
        ratio = rng.choice((2, 2, 2, 3, 3, 4, 5, 10))
        values = [rng.randint(1, 7) * ratio**0] * count
        values = [values[0] * ratio**i for i in range(count)]
        if rng.random() < 0.35:  # downwards, to a whole number
            values = [v * ratio for v in reversed(values)]
            return values, Worked(apply("/", values[-2], values[-1]).lines[-1:] + apply("/", values[-1], ratio).lines[-1:], values[-1] // ratio)
        return values, Worked(apply("/", values[-1], values[-2]).lines[-1:] + apply("*", values[-1], ratio).lines, values[-1] * ratio)
    if kind < 0.84:  # squares, triangular numbers and others whose differences grow evenly
        growth = rng.choice((1, 1, 2, 2, 2, 3, 4))
        step, value = rng.choice((1, 2, 3, rng.randint(1, 9))), rng.choice((0, 1, 1, 2, rng.randint(1, 20)))
        values = []
        for i in range(max(count, 4)):
            values.append(value)
            value, step = value + step, step + growth
        if rng.random() < 0.25:
            first = rng.randint(1, 8)
            values = [n * n for n in range(first, first + max(count, 4))]
        return values, rule(values)
    if kind < 0.9:
        first = rng.randint(1, 3)
        values = [n**3 for n in range(first, first + max(count, 3))]
        n = first + len(values)
        return values, Worked((f"{n - 1}^3 = {values[-1]}", *power(n, 3).lines), n**3)
    if kind < 0.96:
        values = [rng.choice((1, 1, rng.randint(1, 9))), rng.choice((1, 1, 2, rng.randint(2, 9)))]
        while len(values) < max(count, 4) + 1:
            values.append(values[-1] + values[-2])
        return values, sum_rule(values)
    primes = [n for n in range(2, 60) if all(n % d for d in range(2, n))]
    first = rng.choice((0, 0, 0, 1, 2, 3))
    length = max(count, 4)
    return primes[first:first + length], Worked((f"{primes[first + length - 1]} is prime", f"The next prime is {primes[first + length]}"),
                                                primes[first + length])


@topic(6)
def sequences(rng: random.Random) -> Short:
    values, worked = _next_in(rng, rng.choice((3, 4, 4, 4, 5, 5, 6)))
    separator = rng.choice((", ", ", ", ", ", ", ", " ", ",", "; ", " , "))  # "9 - 6 - 3" is a calculation
    question = _NEXT.expand(rng, l=separator.join(map(show, values)))
    return Short(question, "\n".join(worked.lines), show(worked.value), worked.value)


_GAP = Patterns("""
    {l}[|?|: what is missing?|, what number is missing?| - missing number?]
    [Find|What is|Which is|whats|Fill in|Give] the [missing number|missing term|number that is missing|gap|blank][:| in| in:| of:] {l}[?|]
    [What|Which] number [is missing|should replace the {g}|belongs in the gap|goes in the blank|stands for {g}][:|?|? -|: in] {l}[?|]
    [Fill in|Complete][ the blank|]: {l}
""")


@topic(1.5)
def missing_in_sequences(rng: random.Random) -> Short:
    """Equal steps with one number left out in the middle."""
    values = _progression(rng, rng.choice((5, 5, 6)))
    at = rng.randrange(1, len(values) - 1)
    gap = rng.choice(("?", "?", "_", "__", "___", "x", "...", "[ ]"))
    shown = [gap if i == at else show(v) for i, v in enumerate(values)]
    first = at + 1 if at + 2 < len(values) else at - 2  # two neighbours that are both known
    pair = values[first:first + 2]
    step = apply("-", max(pair), min(pair))
    end = apply("+" if pair[1] > pair[0] else "-", values[at - 1], step.value)
    lines = (step.lines[-1], end.lines[-1])
    question = _GAP.expand(rng, l=", ".join(shown), g="question mark" if gap == "?" else "gap")
    return Short(question, "\n".join(lines), show(end.value), end.value)


_NTH = Patterns("""
    [What is|Find|what's|Which is|Give|whats|Tell me] the {n} [term|number|element|member] [of|in] [the sequence |]{l}[, ...|...| ...|][?|]
    [the |]{n} [term|number] of {l}[, ...|...|][?|]
    {l}, ... [what|which] is the {n} [number|term][?|]
    [A|The|One] [sequence|list|row of numbers] starts [at|with] {a} and goes up by {k}[ each time| every time| each step|]. [What|Which] is the {n} [term|number][?|]
    [Start|Starting|Begin] [at|with] {a} and [add|count up by|keep adding] {k}[ each time|]. [What|Which] is the {n} number[?|]
    [Count|count] by {k}s [starting|beginning] [at|from|with] {a}. [What|Which] is the {n} number[?|]
    [first number|starts with] {a}, [step|difference|then always +] {k}[.|;|,] [the |]{n} [term|number][?|]
""")
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()


@topic(1.5)
def nth_terms(rng: random.Random) -> Short:
    a, k, n = rng.randint(1, 30), rng.randint(2, 12), rng.choice((rng.randint(3, 12), rng.randint(3, 40)))
    listed = ", ".join(str(a + k * i) for i in range(rng.choice((3, 4, 4, 5))))
    name = _ORDINALS[n] if n <= 12 and rng.random() < 0.4 else ordinal(n)
    question = _NTH.expand(rng, a=a, k=k, l=listed, n=name)
    steps = chain(n, ("-", 1), ("*", k))
    end = apply("+", a, steps.value)
    lines = (*steps.lines, *end.lines)
    if listed in question:
        lines = (f"{a + k} - {a} = {k}", *lines)
    return computed(question, Worked(lines, end.value))


_COUNT = Patterns("""
    [Count|count|Please count] [from |]{a} [to|up to] {b}[.|]
    [Count|count] backwards from {c} to {d}[.|]
    [List|Name|Write] the numbers from {a} to {b}[.|]
""")
_COUNT_BY = Patterns("""
    [Count|Skip count|count] by {k}s [from {k} |]to {n}[.|]
    [List|Name] the first {m} multiples of {k}[.|]
    [Count|count] in {k}s [up |]to {n}[.|]
""")
_AFTER = Patterns("""
    [What|Which|what] [number |]comes [right |]{w} {n}[?|]
    [What is|Which is|what's] the number [right |]{w} {n}[?|]
    [number|the number] {w} {n}[?|]
""")
_HOW_MANY_NUMBERS = Patterns("""
    [How many|how many] [whole numbers|numbers|integers] are there from {a} to {b}[?|]
    [How many|how many] [whole numbers|numbers|integers] from {a} to {b}, [both included|inclusive][?|]
""")
_SUM_TO = Patterns("""
    [What is|Find|Calculate] the sum of [the numbers|all numbers|the integers] from 1 to {n}[?|]
    [add|Add] [all numbers|the numbers] from 1 to {n}[.|]
    1 + 2 + ... + {n}[?|]
""")


@topic(1.5)
def counting(rng: random.Random) -> Short:
    kind = rng.randrange(5)
    a = rng.randint(0, 20)
    b = a + rng.randint(3, 12)
    if kind == 0:
        text = _COUNT.expand(rng, a=a, b=b, c=b, d=a)
        numbers = range(b, a - 1, -1) if "backwards" in text else range(a, b + 1)
        listed = ", ".join(map(str, numbers))
        return said(text, listed, listed)
    if kind == 1:
        k, m = rng.choice((2, 3, 4, 5, 10, rng.randint(2, 12))), rng.randint(3, 10)
        listed = ", ".join(str(k * i) for i in range(1, m + 1))
        return said(_COUNT_BY.expand(rng, k=k, m=m, n=k * m), listed, listed)
    if kind == 2:
        n, after = whole(rng, 4, 1), rng.random() < 0.5
        text = _AFTER.expand(rng, w="after" if after else "before", n=Hand(rng).write(n))
        return computed(text, apply("+" if after else "-", n, 1))
    if kind == 3:
        b = a + rng.randint(2, 80)
        return computed(_HOW_MANY_NUMBERS.expand(rng, a=a, b=b), chain(b, ("-", a), ("+", 1)))
    n = rng.choice((10, 100, rng.randint(3, 30)))
    return computed(_SUM_TO.expand(rng, n=n), chain(n, ("*", n + 1), ("/", 2)))


_IS_KIND = Patterns("""
    [Is|is|IS] {n} {a} [number|number|][?|]
    [Is|is] the number {n} {b}[?|]
    [Is|is] {n} {b} or not[?|]
    [Tell me if|I wonder if|Do you know if|Check whether] {n} is {b}[.|?|]
    {n}[: {b}?|, is it {b}?| {b}?]
""")
_EVEN_OR_ODD = Patterns("""
    [Is|is|IS] [the number |]{n} [even or odd|odd or even|an even or an odd number][?|]
    {n}[: even or odd?|, odd or even?| even or odd|: odd or even]
    [Even or odd|Odd or even]: {n}[?|]
""")


@topic(1.5)
def kinds_of_numbers(rng: random.Random) -> Short:
    n, kind = whole(rng, 4), rng.random()
    if kind < 0.35:
        answer = "odd" if n % 2 else "even"
        return said(_EVEN_OR_ODD.expand(rng, n=n), f"{n} is {answer}.", answer)
    if kind < 0.65:
        asked = rng.choice(("even", "odd"))
        answer = "odd" if n % 2 else "even"
        verdict = "Yes" if asked == answer else "No"
        text = _IS_KIND.expand(rng, n=n, a=f"an {asked}", b=asked)
        return said(text, f"{n} is {answer}\n{verdict}, {n} is {answer}.", verdict)
    n = rng.randint(1, 120)
    divisor = next((d for d in (2, 3, 5, 7) if n % d == 0 and n != d), None)
    is_prime = n > 1 and divisor is None
    reason = f"{n} is prime" if is_prime else f"{n} is not prime"
    if divisor and n > 1:
        reason = f"{n} = {divisor} * {n // divisor}"
    verdict = "Yes" if is_prime else "No"
    text = _IS_KIND.expand(rng, n=n, a="a prime", b="prime")
    return said(text, f"{reason}\n{verdict}, {reason}.", verdict)


_DIVISIBLE = Patterns("""
    [Is|is] {n} [divisible by|a multiple of|evenly divisible by] {d}[?|]
    [Can|can] {n} be divided [evenly |]by {d}[?| without a remainder?]
    [Does|does] {d} [divide|go into] {n}[?| evenly?]
    [Is|is] {d} a [factor|divisor] of {n}[?|]
""")
_FACTORS = Patterns("""
    [What are|List|Name|Find|Give] [all |]the [factors|divisors] of {n}[?|.|]
    [factors|divisors] of {n}[?|]
""")
_PRIMES = Patterns("""
    [What is|Find|Give me|Do] the prime [factorization|factors|factorisation] of {n}[?|]
    [Factor|Factorize] {n} [into primes|][.|]
    prime factors of {n}[?|]
""")
_COMMON = Patterns("""
    [What is|Find|Calculate|what's] the {w} of {a} and {b}[?|]
    {w} of {a} and {b}[?|]
    {s}({a}, {b})[?|]
""")


@topic(1.8)
def factors(rng: random.Random) -> Short:
    kind = rng.randrange(4)
    if kind == 0:
        d = rng.randint(2, 12)
        n = d * rng.randint(2, 30) + (0 if rng.random() < 0.5 else rng.randrange(d))
        rest = n % d
        reply = f"{n} / {d} = {n // d}" + (f" remainder {rest}" if rest else "")
        verdict = "No" if rest else "Yes"
        return said(_DIVISIBLE.expand(rng, n=n, d=d), f"{reply}\n{verdict}, {reply}.", verdict)
    if kind == 1:
        n = rng.randint(2, 60)
        listed = ", ".join(str(d) for d in range(1, n + 1) if n % d == 0)
        return said(_FACTORS.expand(rng, n=n), listed, listed)
    if kind == 2:
        n = rng.randint(4, 120)
        rest, parts = n, []
        while rest > 1:
            parts.append(next(d for d in range(2, rest + 1) if rest % d == 0))
            rest //= parts[-1]
        product = " * ".join(map(str, parts))
        return said(_PRIMES.expand(rng, n=n), f"{n} = {product}", product)
    a, b, k = rng.randint(1, 12), rng.randint(1, 12), rng.choice((1, 2, 3, 4, 5, 6, 10))
    a, b = a * k, b * k
    if rng.random() < 0.5:
        divisor = gcd(a, b)
        word = rng.choice(("greatest common divisor", "gcd", "GCD", "greatest common factor", "gcf", "highest common factor"))
        return computed(_COMMON.expand(rng, a=a, b=b, w=word, s="gcd"),
                        Worked((f"{a} = {divisor} * {a // divisor}", f"{b} = {divisor} * {b // divisor}",
                                f"gcd({a}, {b}) = {divisor}"), divisor))
    multiple = lcm(a, b)
    word = rng.choice(("least common multiple", "lcm", "LCM", "lowest common multiple", "smallest common multiple"))
    return computed(_COMMON.expand(rng, a=a, b=b, w=word, s="lcm"),
                    Worked((f"{multiple} = {a} * {multiple // a}", f"{multiple} = {b} * {multiple // b}",
                            f"lcm({a}, {b}) = {multiple}"), multiple))


_ROUND = Patterns("""
    [Round|round|Please round|Can you round] {n} [to the nearest {p}|to {q}][.|]
    {n} [rounded |rounded off ]to [the nearest {p}|{q}][?|]
    [What is|what's] {n} [rounded |rounded off ]to [the nearest {p}|{q}][?|]
""")


@topic(1.5)
def rounding(rng: random.Random) -> Short:
    place = rng.choice((-3, -2, -1, -1, 0, 0, 1, 2))
    if place < 0:
        n: Value = rng.randint(1, 10 ** (2 - place))
    else:
        scale = 10 ** (place + rng.choice((1, 1, 2)))
        n = Fraction(rng.randint(1, 50 * scale), scale)
        require(n.denominator != 1)
    names = {-3: ("thousand", "thousands"), -2: ("hundred", "hundreds"), -1: ("ten", "tens"),
             0: (rng.choice(("whole number", "integer", "one")), "a whole number"), 1: ("tenth", "one decimal place"),
             2: ("hundredth", "two decimal places")}[place]
    if place == 1 and rng.random() < 0.3:
        names = ("0.1", "1 decimal")
    if place == 2 and rng.random() < 0.3:
        names = ("cent", "2 decimals")
    if place < 0 and rng.random() < 0.4:
        names = (str(10**-place), f"the nearest {10**-place}")
    elif place < 0:
        names = (names[0], f"the nearest {names[0]}")
    result = rounded(n, place) if place >= 0 else Fraction(int(rounded(Fraction(n, 10**-place), 0)) * 10**-place)
    shown = show(result)
    return said(_ROUND.expand(rng, n=show(n), p=names[0], q=names[1]), f"{show(n)} rounds to {shown}", result)


_TO_DIGITS = Patterns("""
    [Write|write|Give|Show] {w} [in digits|as a number|in numerals|in figures][.|]
    {w} [in digits|as a number|in figures][?|]
    [What is|what's] {w} [in digits|as a number|in numbers][?|]
""")
_TO_WORDS = Patterns("""
    [Write|write|Spell|Say] {n} [in words|as words|out in words][.|]
    {n} in words[?|]
    [How do you|How do I] [write|spell|say] {n} in words[?|]
""")


@topic(0.8)
def numerals(rng: random.Random) -> Short:
    n = rng.choice((whole(rng, 3), whole(rng, 4), whole(rng, 2)))
    if rng.random() < 0.5:
        text = in_words(n, rng.choice((" and ", " ")))
        return said(_TO_DIGITS.expand(rng, w=text), str(n), n)
    words = in_words(n)
    return said(_TO_WORDS.expand(rng, n=n), words, words)


_DIGITS = Patterns("""
    [How many|how many] digits [does|are in|has] {n}[ have|][?|]
    number of digits in {n}[?|]
""")
_DIGIT_SUM = Patterns("""
    [What is|Find|Calculate] the [sum of the digits|digit sum] of {n}[?|]
    [Add|add] [up |]the digits of {n}[.|]
    sum of digits of {n}[?|]
""")
_LAST_DIGIT = Patterns("""
    [What is|which is|what's] the {w} digit of {n}[?|]
    {w} digit of {n}[?|]
""")
_ROMAN = Patterns("""
    [What is|what's|Convert|Write] {r} [as a number|in digits|in arabic numerals][?|.|]
    [What number is|Which number is] [the Roman numeral |]{r}[?|]
    roman numeral {r}[?|]
""")
_TO_ROMAN = Patterns("""
    [What is|Write|Convert] {n} [in|as a|to] Roman numeral[s|s|][?|.|]
    {n} in roman numerals[?|]
""")


@topic(1)
def digits(rng: random.Random) -> Short:
    n, kind = whole(rng, rng.choice((2, 3, 4, 5))) + 10, rng.randrange(5)
    text = str(n)
    if kind == 0:
        return said(_DIGITS.expand(rng, n=n), f"{n} has {len(text)} digits: {len(text)}", len(text))
    if kind == 1:
        values = [int(c) for c in text]
        return computed(_DIGIT_SUM.expand(rng, n=n), chain(values[0], *(("+", v) for v in values[1:])))
    if kind == 2:
        first = rng.random() < 0.5
        digit = int(text[0] if first else text[-1])
        return said(_LAST_DIGIT.expand(rng, w="first" if first else "last", n=n), f"It is {digit}", digit)
    n = rng.choice((rng.randint(1, 20), rng.randint(1, 100), 5 * rng.randint(1, 40)))
    roman = _roman(n)
    if kind == 3:
        return said(_ROMAN.expand(rng, r=roman), f"{roman} = {n}", n)
    return said(_TO_ROMAN.expand(rng, n=n), f"{n} = {roman}", roman)


def _roman(number: int) -> str:
    text = ""
    for value, letters in ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
                           (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        while number >= value:
            text, number = text + letters, number - value
    return text


_FACTS: tuple[tuple[str, str, int], ...] = (
    ("days", "a week", 7), ("hours", "a day", 24), ("minutes", "an hour", 60), ("seconds", "a minute", 60),
    ("months", "a year", 12), ("days", "a year", 365), ("weeks", "a year", 52), ("seconds", "an hour", 3600),
    ("years", "a decade", 10), ("years", "a century", 100), ("years", "a millennium", 1000), ("cents", "a dollar", 100),
    ("minutes", "a day", 1440), ("eggs", "a dozen", 12), ("hours", "a week", 168), ("quarters", "a dollar", 4),
    ("dimes", "a dollar", 10), ("nickels", "a dollar", 20), ("pennies", "a dollar", 100), ("inches", "a foot", 12),
    ("feet", "a yard", 3), ("meters", "a kilometer", 1000), ("centimeters", "a meter", 100), ("grams", "a kilogram", 1000),
    ("millimeters", "a centimeter", 10), ("milliliters", "a liter", 1000), ("degrees", "a circle", 360),
    ("degrees", "a right angle", 90), ("degrees", "a triangle", 180), ("sides", "a triangle", 3), ("sides", "a square", 4),
    ("sides", "a pentagon", 5), ("sides", "a hexagon", 6), ("sides", "an octagon", 8), ("corners", "a square", 4),
    ("faces", "a cube", 6), ("edges", "a cube", 12), ("corners", "a cube", 8),
    ("degrees", "a quadrilateral", 360), ("degrees", "a full turn", 360), ("degrees", "a straight line", 180),
    ("degrees", "a half circle", 180), ("faces", "a pyramid with a square base", 5), ("faces", "a die", 6),
    ("corners", "a pentagon", 5), ("corners", "a hexagon", 6), ("corners", "a triangle", 3), ("sides", "a rectangle", 4),
    ("sides", "a heptagon", 7), ("sides", "a decagon", 10), ("sides", "a nonagon", 9), ("sides", "a dodecagon", 12), ("bits", "a byte", 8),
    ("legs", "a spider", 8), ("legs", "a dog", 4), ("legs", "a bee", 6), ("wheels", "a car", 4), ("wheels", "a bicycle", 2),
    ("letters", "the alphabet", 26), ("players", "a football team", 11), ("cards", "a deck", 52), ("items", "a pair", 2),
    ("seasons", "a year", 4), ("days", "a leap year", 366), ("ounces", "a pound", 16), ("cups", "a pint", 2),
    ("pints", "a quart", 2), ("quarts", "a gallon", 4), ("feet", "a mile", 5280), ("months", "half a year", 6),
    ("minutes", "half an hour", 30), ("minutes", "a quarter of an hour", 15), ("days", "two weeks", 14),
    ("wheels", "a tricycle", 3), ("legs", "a chicken", 2), ("strings", "a violin", 4), ("keys", "a piano", 88))
_FACT = Patterns("""
    [How many|how many|HOW MANY] {u} [are in|are there in|does|has|in|make|make up] {x}[ have|][?|]
    {u} in {x}[?|]
    [What is the number of|Number of|Tell me the number of] {u} in {x}[?|]
    how many {u} [there are|you find] in {x}[?|]
""")
_ANGLES = Patterns("""
    [What is|what's|whats|] [the |][sum of [the |all |]angles|angle sum|sum of the interior angles] [in|of] {x}[?|]
    [what|how much] do the angles [of|in] {x} [add up to|sum to|make][?|]
    all angles of {x} together[?|]
""")


@topic(1)
def facts(rng: random.Random) -> Short:
    unit, whole_thing, count = rng.choice(_FACTS)
    if unit == "degrees" and whole_thing in ("a triangle", "a quadrilateral"):
        return said(_ANGLES.expand(rng, x=rng.choice((whole_thing, whole_thing.replace("a ", "any ")))),
                    f"The angles of {whole_thing} are {count} degrees together: {count}", count)
    return said(_FACT.expand(rng, u=unit, x=whole_thing), f"There are {count} {unit} in {whole_thing}.", count)


_LEGS = {"dogs": 4, "cats": 4, "cows": 4, "horses": 4, "spiders": 8, "chickens": 2, "ducks": 2, "ants": 6, "bees": 6,
         "birds": 2, "people": 2, "chairs": 4, "sheep": 4, "pigs": 4, "octopuses": 8}
_WHEELS = {"cars": 4, "bicycles": 2, "tricycles": 3, "motorcycles": 2, "bikes": 2, "unicycles": 1}
_PARTS_OF = Patterns("""
    [How many|how many] {p} do {n} {t} have[?|]
    [How many|how many] {p} [are on|are there on|have] {n} {t}[?|]
    {n} {t}[, how many {p}?|: how many {p}?]
    {p} on {n} {t}[?|]
""")


@topic(0.6)
def parts_of_things(rng: random.Random) -> Short:
    part, table = rng.choice((("legs", _LEGS), ("wheels", _WHEELS)))
    thing, count = rng.choice(list(table.items()))
    n = rng.randint(2, 20)
    return computed(_PARTS_OF.expand(rng, p=part, n=Hand(rng).write(n), t=thing), apply("*", n, count))


_PLACE = Patterns("""
    [A|In the] race[:|,] {x} is {n} and {y} is {m}. Who [is ahead|is faster|is in front][?|]
""")
_WHO = Patterns("""
    {x} [has|owns|collects|got] {a} {t}[, | and ]{y} [has|owns|collects|got] {b}. [Who has more|Who has the most|Who owns more|who has more {t}][?|]
    [Who has more {t}|Who has more]: {x} with {a} or {y} with {b}[?|]
""")
_WHO_LESS = Patterns("""
    {x} has {a} {t}[, | and ]{y} has {b}. [Who has fewer|Who has less|Who has fewer {t}][?|]
""")
_WHO_IS = Patterns("""
    {x} is {a} and {y} is {b}. Who is {w}[?|]
    Who is {w}, {x} [who is|at] {a} or {y} [who is|at] {b}[?|]
""")


@topic(1)
def who(rng: random.Random) -> Short:
    x, y = two_people(rng)
    a, b = rng.sample(range(1, 100), 2)
    kind = rng.randrange(4)
    if kind == 0:
        first, second = rng.sample(range(1, 13), 2)
        answer = x if first < second else y
        return said(_PLACE.expand(rng, x=x, y=y, n=ordinal(first), m=ordinal(second)), f"It is {answer}.", answer)
    if kind == 3:
        older = rng.random() < 0.6
        answer = x if (a > b) == older else y
        text = _WHO_IS.expand(rng, x=x, y=y, a=a, b=b, w="older" if older else "younger")
        return said(text, f"It is {answer}.", answer)
    more = kind == 1
    answer = x if (a > b) == more else y
    text = (_WHO if more else _WHO_LESS).expand(rng, x=x, y=y, a=a, b=b, t=plural(rng))
    return said(text, f"It is {answer}.", answer)


_ABSOLUTE = Patterns("""
    [What is|what's|Find|] the absolute value of {n}[?|]
    [abs|Abs]({n})[?|=|]
    |{n}|[?|=| =|]
    how far is {n} from zero[?|]
""".replace("|{n}|[", "{bar}{n}{bar}["))
_MODE = Patterns("""
    [What is|Find|what's|] the mode of {l}[?|]
    mode [of|:] {l}[?|]
    [Which|What] number [appears|occurs|comes up] [most often|most|most frequently] in {l}[?|]
    the most [common|frequent] number in {l}[?|]
""")


@topic(0.5)
def absolute_values(rng: random.Random) -> Short:
    n = whole(rng, 3) * rng.choice((1, -1, -1, -1))
    return said(_ABSOLUTE.expand(rng, n=n, bar="|"), f"The absolute value of {n} is {abs(n)}", abs(n))


@topic(0.5)
def modes(rng: random.Random) -> Short:
    values = rng.sample(range(1, 20), rng.randint(3, 5))
    answer = rng.choice(values)
    times = rng.choice((1, 1, 2))
    values += [answer] * times
    rng.shuffle(values)
    return said(_MODE.expand(rng, l=enumerated(rng, values)), f"{answer} occurs {times + 1} times\nThe mode is {answer}", answer)

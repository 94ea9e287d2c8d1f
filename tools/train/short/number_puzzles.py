"""Powers among other operations, factorials, comparisons of calculations, neighbours of a kind (the next prime, the 7th even number)."""

from __future__ import annotations

import random
from math import isqrt

from .arithmetic import Worked, apply, chain, power
from .grammar import Patterns
from .numbers import Hand, Value, ordinal, relation, require, show
from .question import Short, computed, said, topic

_ASK = Patterns("""
    {e}
    {e}[=|?| =| = ?| is?| equals?]
    [What is|what's|whats|How much is|Calculate|Compute|Work out|Find|Evaluate|Tell me|what does] {e}[?||.]
    [What do you get for|The value of|Result of|I need|give me] {e}[?|.|]
""")


def _power_text(rng: random.Random, base: int, exponent: int) -> str:
    spoken = {2: ("{b} squared", "{b} squared", "the square of {b}", "{b} to the second power", "{b} to the power of 2"),
              3: ("{b} cubed", "{b} cubed", "the cube of {b}", "{b} to the third power", "{b} to the power of 3")}
    written = ("{b}^{e}", "{b}^{e}", "{b}**{e}", "{b} ^ {e}", "{b}²" if exponent == 2 else "{b}³" if exponent == 3 else "{b}^{e}")
    options = (*written, *spoken.get(exponent, ("{b} to the power of {e}", "{b} to the {e}th", "{b} to the {e}th power")))
    return rng.choice(options).format(b=base, e=exponent)


def _term(rng: random.Random) -> tuple[str, Worked]:
    """A power, a root, a product or a number, as text and worked out."""
    kind = rng.random()
    if kind < 0.55:
        exponent = rng.choice((2, 2, 2, 3, 3, 4))
        base = rng.randint(1, {2: 20, 3: 10, 4: 5}[exponent])
        return _power_text(rng, base, exponent), power(base, exponent)
    if kind < 0.75:
        root = rng.randint(1, 20)
        text = rng.choice(("sqrt({n})", "√{n}", "the square root of {n}", "square root of {n}", "the root of {n}")).format(n=root * root)
        return text, Worked((f"{root} * {root} = {root * root}", f"sqrt({root * root}) = {root}"), root)
    n = rng.randint(1, rng.choice((10, 50, 100)))
    return Hand(rng).write(n), Worked((), n)


_OPERATORS = {"+": (" + ", "+", " plus "), "-": (" - ", "-", " minus "), "*": (" * ", " times ", " x ")}


@topic(3)
def powers_among_others(rng: random.Random) -> Short:
    """`4^3 - 4`, `2 cubed plus 3 cubed`, `√64 + 1`."""
    (left, a), (right, b) = _term(rng), _term(rng)
    require(bool(a.lines or b.lines))
    operator = rng.choice("++--*")
    require(operator != "*" or a.value * b.value <= 2000)
    end = apply(operator, a.value, b.value)
    return computed(_ASK.expand(rng, e=f"{left}{rng.choice(_OPERATORS[operator])}{right}"), Worked(a.lines + b.lines + end.lines, end.value))


_FACTORIAL = Patterns("""
    {n}![?|=| =| = ?|]
    [What is|what's|Calculate|Compute|Find|whats] [{n}!|the factorial of {n}|{n} factorial|factorial {n}][?|]
    factorial [of |]{n}[?|]
    [In how many ways can|how many ways can] {n} [books|people|letters|cards] be [arranged|ordered|put in a row][?|]
""")


@topic(0.6)
def factorials(rng: random.Random) -> Short:
    n = rng.randint(2, 8)
    return computed(_FACTORIAL.expand(rng, n=n), chain(n, *(("*", k) for k in range(n - 1, 0, -1) if k > 1 or n == 2)))


_SAME_POWER = Patterns("""
    [What|Which] [number|positive number] [squared|times itself|multiplied by itself] [is|gives|makes|equals] {n}[?|]
    [what|which number] squared is {n}[?|]
    {n} is the square of [what|which number][?|]
""")
_IS_SQUARE = Patterns("""
    [Is|is] {n} a [perfect square|square number|perfect square number|square][?|, yes or no?|]
    [Is|is] {n} the square of a [whole number|integer][?|]
    {n}[: a perfect square?|, is it a square number?]
""")


@topic(1)
def squares_recognized(rng: random.Random) -> Short:
    if rng.random() < 0.35:
        root = rng.randint(1, 20)
        return computed(_SAME_POWER.expand(rng, n=root * root), Worked((f"{root} * {root} = {root * root}", f"sqrt({root * root}) = {root}"), root))
    n = rng.choice((rng.randint(2, 14) ** 2, rng.randint(2, 200)))
    root = isqrt(n)
    question = _IS_SQUARE.expand(rng, n=n)
    if root * root == n:
        return said(question, f"{root} * {root} = {n}\nYes, {n} is the square of {root}.", "Yes")
    below, above = f"{root} * {root} = {root * root}", f"{root + 1} * {root + 1} = {(root + 1) ** 2}"
    return said(question, f"{below}\n{above}\nNo, {n} is between {root * root} and {(root + 1) ** 2}.", "No")


_NEXT_OF_KIND = Patterns("""
    [What is|what's|Which is|Find|whats|give me] the [next|following] {k} [number |][after|following|above|bigger than] {n}[?|]
    [next|the next|the smallest] {k} [number |][after|above|bigger than|greater than] {n}[?|]
""")
_LAST_OF_KIND = Patterns("""
    [What is|what's|Which is|Find|whats] the [last|nearest|largest|biggest] {k} [number |][before|below|smaller than|less than] {n}[?|]
    [the last|previous|largest] {k} [number |][before|below|under] {n}[?|]
""")


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))


@topic(1)
def nearest_of_kind(rng: random.Random) -> Short:
    n, kind, forward = rng.randint(2, 100), rng.choice(("prime", "prime", "even", "odd")), rng.random() < 0.7
    step = 1 if forward else -1
    has_kind = {"prime": _is_prime, "even": lambda m: m % 2 == 0, "odd": lambda m: m % 2 == 1}[kind]
    lines, found = [], n + step
    while not has_kind(found):
        if kind == "prime":
            divisor = next((d for d in range(2, found) if found % d == 0), 1)
            require(found > 1)
            lines.append(f"{found} = {divisor} * {found // divisor}")
        found += step
    require(found > 1 or kind != "prime")
    question = (_NEXT_OF_KIND if forward else _LAST_OF_KIND).expand(rng, k=kind, n=n)
    return said(question, "\n".join([*lines, f"It is {found}"]), found)


# Comparisons of calculations -------------------------------------------------------------------


def _side(rng: random.Random) -> tuple[str, Worked]:
    """One side of a comparison."""
    kind = rng.randrange(8)
    if kind == 0:
        n = rng.randint(1, 100)
        return Hand(rng).write(n), Worked((), n)
    if kind == 1:
        part, words = rng.choice(((2, "half of"), (2, "half of"), (4, "a quarter of"), (3, "a third of"), (5, "a fifth of"), (10, "a tenth of")))
        n = part * rng.randint(1, 30)
        return f"{words} {n}", apply("/", n, part)
    if kind == 2:
        a, b = rng.randint(2, 12), rng.randint(2, 12)
        return rng.choice(("{a} times {b}", "{a} * {b}", "{a}x{b}", "{a} x {b}")).format(a=a, b=b), apply("*", a, b)
    if kind == 3:
        a, b = rng.randint(1, 60), rng.randint(1, 60)
        return rng.choice(("{a} plus {b}", "{a} + {b}", "{a}+{b}", "the sum of {a} and {b}")).format(a=a, b=b), apply("+", a, b)
    if kind == 4:
        b = rng.randint(1, 60)
        a = b + rng.randint(1, 60)
        return rng.choice(("{a} minus {b}", "{a} - {b}", "{a}-{b}")).format(a=a, b=b), apply("-", a, b)
    if kind == 5:
        exponent = rng.choice((2, 2, 3, 4, 5))
        base = rng.randint(2, {2: 12, 3: 6, 4: 4, 5: 3}[exponent])
        return _power_text(rng, base, exponent), power(base, exponent)
    if kind == 6:
        times, word = rng.choice(((2, "twice"), (2, "double"), (3, "three times")))
        n = rng.randint(2, 40)
        return f"{word} {n}", apply("*", times, n)
    percent, n = rng.choice((10, 20, 25, 50)), 20 * rng.randint(1, 15)
    product = apply("*", n, percent)
    result = apply("/", product.value, 100)
    return f"{percent}% of {n}", Worked(product.lines + result.lines, result.value)


_COMPARE = Patterns("""
    [Is|is] {a} {w} {b}[?|, yes or no?|, right?| or not?|]
    [Is it true that|True or false:|Yes or no:|Is it right that] {a} is {w} {b}[?|]
    [Tell me if|I wonder if|Check if|Do you know if] {a} is {w} {b}[.|?|]
    {a} is {w} {b}[, true or false?|, right?|, is that so?|, true?]
""")
_COMPARE_SIGN = Patterns("""
    [True or false:|true or false|Is it true:|Right or wrong:|Check:] {a} {s} {b}[?|]
    [Is|is] {a} {s} {b}[?|]
    {a} {s} {b}[? true or false|, true?|, right?| true or false?]
""")
_WHICH = Patterns("""
    [Which is|what is|what's|Which one is|which is] {w}[:|,| -|?] {a} or {b}[?|]
    {w}: {a} or {b}[?|]
    {a} or {b}[, which is {w}|: which is {w}|; {w}][?|]
""")
_WORDS = {">": ("more than", "greater than", "bigger than", "larger than", "above", "higher than"),
          "<": ("less than", "smaller than", "below", "lower than", "under"), "=": ("equal to", "the same as", "as much as", "exactly")}


def _verdict(value: bool, question: str) -> str:
    """True or False only where the question says so alone."""
    asked = question.lower()
    if "true or false" in asked:
        return "True" if value else "False"
    if "right or wrong" in asked:
        return "Right" if value else "Wrong"
    return "Yes" if value else "No"


@topic(5)
def calculations_compared(rng: random.Random) -> Short:
    (left, a), (right, b) = _side(rng), _side(rng)
    if rng.random() < 0.2:  # one side is the other's value, or nearly
        value = int(a.value) if a.value == int(a.value) else 0
        b = Worked((), max(0, value + rng.choice((0, 0, 0, 1, -1, 10))))
        right = show(b.value)
    if rng.random() < 0.12:
        numbers: list[Value] = [rng.randint(1, 100) for _ in range(2)]
        (left, a), (right, b) = ((show(n), Worked((), n)) for n in numbers)
    lines = a.lines + b.lines
    fact = relation(a.value, b.value)
    if rng.random() < 0.2 and a.value != b.value:
        largest = rng.random() < 0.6
        wins = (a.value > b.value) == largest
        word = rng.choice(("bigger", "more", "larger", "greater", "higher")) if largest else rng.choice(("smaller", "less", "lower"))
        answer = left if wins else right
        return said(_WHICH.expand(rng, a=left, b=right, w=word), "\n".join([*lines, fact, f"It is {answer}"]), answer)
    sign = rng.choice("><=") if a.value != b.value else rng.choice("=>=<")
    is_true = eval_sign(a.value, sign, b.value)
    if rng.random() < 0.3:
        question = _COMPARE_SIGN.expand(rng, a=left, b=right, s=sign)
    else:
        question = _COMPARE.expand(rng, a=left, b=right, w=rng.choice(_WORDS[sign]))
    verdict = _verdict(is_true, question)
    return said(question, "\n".join([*lines, f"{fact}", f"{verdict}, {fact}."]), verdict)


def eval_sign(a: Value, sign: str, b: Value) -> bool:
    return a > b if sign == ">" else a < b if sign == "<" else a == b


_NTH_OF_KIND = Patterns("""
    [What is|what's|Which is|Find|whats|] the {n} {k} number[?|]
    the {n} {k} number is[?| what?]
""")


@topic(0.5)
def nth_of_kind(rng: random.Random) -> Short:
    n, kind = rng.randint(1, 50), rng.choice(("even", "odd"))
    worked = apply("*", 2, n)
    if kind == "odd":
        end = apply("-", worked.value, 1)
        worked = Worked(worked.lines + end.lines, end.value)
    return computed(_NTH_OF_KIND.expand(rng, n=ordinal(n), k=kind), worked)

"""Bare and phrased calculations: one operation in every spelling, and expressions with brackets."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply, chain, fraction_apply, power, remainder
from .grammar import Patterns
from .numbers import Hand, Value, decimal, require, show, whole
from .question import Short, computed, topic

_SIGNS = {"+": "+++++++", "-": "------−–", "*": "****xxXx×··", "/": "/////÷÷:"}
_SPACES = ((" ", " "),) * 5 + (("", ""),) * 5 + (("", " "), (" ", ""), ("  ", " "))
_SPOKEN = {
    "+": ("plus", "plus", "plus", "and", "added to", "PLUS", "add", "with another"),
    "-": ("minus", "minus", "take away", "less", "MINUS", "subtract", "reduced by"),
    "*": ("times", "times", "multiplied by", "TIMES", "x", "by", "multiply by", "multiplied with"),
    "/": ("divided by", "divided by", "over", "split into", "divide by", "DIVIDED BY"),
}

# How a written expression is asked for.
_ASK = Patterns("""
    {e}
    {e}
    {e}[=|= | =| = |?| ?|=?| = ?|= ?| =?|.|!|...|==| equals| equals?| is| is?| gives]
    [What is|what is|What's|what's|whats|Whats|WHAT IS|wat is|what does] {e}[?||??| ?|.]
    [How much is|how much is|How much does|how much's|How many is] {e}[?||.]
    [Calculate|calculate|Compute|compute|Evaluate|Solve|solve|Work out|work out|Find|calc|Calc|Simplify|Do|eval][:|] {e}[.||?]
    [What does|what does] {e} [equal|come to|make|give|come out to|add up to][?|]
    [Tell me|Give me|I need|Find|Get me|Show me|gimme] [|the answer to |the result of |the value of ]{e}[.||!]
    [The result of|Result of|The value of|Value of|Answer to|The answer to] {e}[?|:|.|]
    {e} [equals what|is what|makes what|comes to what|is how much|is equal to|is equal to what|gives what|makes][?|]
    [Could you|Can you|Would you|can u|Will you] [calculate|compute|work out|do|solve|figure out|tell me|add up] {e}[?||, please?| for me?]
    [So|Ok,|Okay|Well,|Now|Q:|Question:|Math:|Exercise:|1)|a)|Problem 3.|Next:] {e}[?|=| = ?|]
    [What do you get|What do I get|What comes out|What is the result] [if you compute|for|from|when you work out|of] {e}[?|]
    [Do you know|do you know|Any idea|I wonder|Guess|Tell me quickly] what {e} is[?|.|]
    [x|y|n|result|ans|?|answer] = {e}
    [print|echo|bc <<<|>>>|=|let x =] {e}
    [My calculator is broken.|I am bad at math.|Quick one.|Homework:] [What is|How much is|] {e}[?|]
""")


def written(rng: random.Random, left: str, operator: str, right: str) -> str:
    before, after = rng.choice(_SPACES)
    return f"{left}{before}{rng.choice(_SIGNS[operator])}{after}{right}"


def spoken(rng: random.Random, left: str, operator: str, right: str) -> str:
    return f"{left} {rng.choice(_SPOKEN[operator])} {right}"


def operands(rng: random.Random, operator: str) -> tuple[int, int]:
    """Whole, not negative; results are whole but for some divisions."""
    if operator in "+-":
        digits = rng.choice((1, 2, 2, 3, 3, 4, 6))
        a, b = whole(rng, digits), whole(rng, digits)
        return (max(a, b), min(a, b)) if operator == "-" and rng.random() < 0.75 else (a, b)
    if operator == "*":
        digits = rng.choice(((1, 1), (1, 1), (2, 1), (2, 1), (1, 2), (2, 2), (2, 2), (3, 1), (3, 2), (1, 3), (4, 1)))
        return whole(rng, digits[0]), whole(rng, digits[1])
    b = rng.choice((whole(rng, 1, 1), rng.randint(1, 12), rng.randint(1, 30), rng.randint(1, 99)))
    if rng.random() < 0.75:
        return b * rng.choice((rng.randint(0, 12), rng.randint(0, 40), rng.randint(0, 250))), b
    return rng.randint(1, 20 * b), b


def _draw(rng: random.Random) -> tuple[int, str, int, Worked]:
    operator = rng.choice("++--***//")
    a, b = operands(rng, operator)
    return a, operator, b, apply(operator, a, b)


@topic(9)
def bare(rng: random.Random) -> Short:
    a, operator, b, worked = _draw(rng)
    hand = Hand(rng)
    make = spoken if rng.random() < 0.3 else written
    return computed(_ASK.expand(rng, e=make(rng, hand.write(a), operator, hand.write(b))), worked)


@topic(3)
def only_digits(rng: random.Random) -> Short:
    """The least that one can type; nothing is added to it."""
    a, operator, b, worked = _draw(rng)
    text = written(rng, str(a), operator, str(b)) + rng.choice(("", "", "=", " =", "?", " = ?", "=?", " = "))
    return Short(text, "\n".join(worked.lines), show(worked.value), worked.value, is_fixed=True)


_NOUNS = {
    "+": Patterns("""
        [the|The|] [sum|total] of {a} and {b}
        {a} [increased by|plus|raised by|added to|and then|together with|combined with] {b}
        {b} more than {a}
        {b} greater than {a}
        {b} added to {a}
        {a} and {b} [together|combined|in total|added together|added up|summed]
        the number that is {b} [more|bigger|larger|greater|higher] than {a}
    """),
    "-": Patterns("""
        [the|The|] difference [between|of] {a} and {b}
        {a} [decreased by|minus|reduced by|take away|less|lowered by|without] {b}
        {b} less than {a}
        {b} [subtracted|taken away|taken] from {a}
        {b} fewer than {a}
        the number that is {b} [less|smaller|lower] than {a}
        [what is left|what remains] of {a} after taking away {b}
    """),
    "*": Patterns("""
        [the|The|] product of {a} and {b}
        {a} [multiplied by|times|multiplied with|lots of|groups of|sets of] {b}
        {a} times as [much|many|big|large] as {b}
        {a} and {b} multiplied [together|]
        {b} taken {a} times
    """),
    "/": Patterns("""
        [the|The|] quotient of {a} and {b}
        {a} [divided by|over|split into {b} equal parts, that is divided by|shared equally among|split among] {b}
        how many times {b} goes into {a}
        {a} [shared|split|divided] [by|into|between|among] {b}
    """),
}
_ORDERS = {
    "+": Patterns("""
        [add|Add|sum|Sum] [{a} and {b}|{b} to {a}|up {a} and {b}|together {a} and {b}|{a} with {b}]
        [increase|raise] {a} by {b}
        [take|start with|begin with] {a} and add {b}
        put {a} and {b} together
        [combine|total] {a} and {b}
    """),
    "-": Patterns("""
        [subtract|Subtract|take|Take|take away|remove|deduct] {b} from {a}
        [decrease|reduce|lower] {a} by {b}
        [start with|begin with] {a} and [subtract|take away|remove] {b}
        [take|Take] {a} and [subtract|take away] {b}
    """),
    "*": Patterns("""
        [multiply|Multiply] [{a} by {b}|{a} and {b}|{a} with {b}|{a} times {b}|together {a} and {b}]
        [take|start with] {a} and multiply it by {b}
        multiply {b} {a} times, I mean {a} times {b}
    """),
    "/": Patterns("""
        [divide|Divide] [{a} by {b}|{a} into {b} equal parts]
        [split|share] {a} [into {b} equal parts|into {b} equal groups|equally among {b}|between {b}|by {b}]
        [take|start with] {a} and divide it by {b}
    """),
}
_ASK_NOUN = Patterns("""
    [What is|what is|What's|what's|whats|Whats|How much is|how much is] {n}[?||.]
    [Find|find|Calculate|calculate|Compute|Give me|give me|Tell me|tell me|Determine|Work out|State|Write down|Name] {n}[.|]
    [Can you|Could you] [tell me|find|give me|work out] {n}[?|, please?|]
    {n}
    {n}[?|=|.|:| =| is?| equals| equals what?| is what?]
    [I need|I want|I'd like|I am looking for|I am trying to find] {n}[.|]
    [Do you know|Any idea|I want to know|Please tell me] what {n} is[?||.]
    [What number is|Which number is|What would be|what will be|What would you get for] {n}[?|]
""")
_ASK_ORDER = Patterns("""
    {n}[.|!|?||]
    [Please|please|Now|Can you|could you|Could you please|I want you to|Let's|let us|You should] {n}[.||?]
    [What do you get|What do I get|What happens|What is the result|what do u get|What comes out|What number results] [if|when] [you|I|we] {n}[?|]
    [If|When] [you|I|we] {n}, what [do you get|is the result|is it|is left|comes out|number is that|do I have][?|]
    {n}. [What do you get?|Result?|What is it?|Answer?|How much is it?]
    {n} [and tell me the result|and give me the answer|and say what it is|for me][.|]
""")


@topic(7)
def phrased(rng: random.Random) -> Short:
    a, operator, b, worked = _draw(rng)
    hand = Hand(rng)
    nouns = rng.random() < 0.6
    phrase = (_NOUNS if nouns else _ORDERS)[operator].expand(rng, a=hand.write(a), b=hand.write(b))
    return computed((_ASK_NOUN if nouns else _ASK_ORDER).expand(rng, n=phrase), worked)


_LISTED = Patterns("""
    [add|Add|sum|Sum|Add up|total|Total|Please add] {l}[.|]
    [What is|Find|Calculate|what's|Tell me|How much is] the [sum|total] of {l}[?||.]
    [How much|What] [is|are|do] {l} [together|in total|altogether|combined|in all|added up][?|]
    {l}: [sum?|total?|what is the sum?|add them]
    [What do you get if you add|If you add] {l}[?|, what is the sum?|, what do you get?]
""")


@topic(1.5)
def listed_sum(rng: random.Random) -> Short:
    digits = rng.choice((1, 2, 2, 3))
    values = [whole(rng, digits) for _ in range(rng.choice((3, 3, 4, 5, 6)))]
    worked = chain(values[0], *(("+", value) for value in values[1:]))
    return computed(_LISTED.expand(rng, l=enumerated(rng, values, Hand(rng))), worked)


def enumerated(rng: random.Random, values: list[Value], hand: Hand | None = None) -> str:
    """`3, 4 and 5`; without commas inside numbers."""
    texts = [hand.write(v).replace(",", "") if hand else show(v) for v in values]
    separator = rng.choice((", ", ", ", ", ", ",", " "))
    if separator == " " or rng.random() < 0.35:
        return separator.join(texts)
    return ", ".join(texts[:-1]) + rng.choice((" and ", ", and ", " and ", " & ")) + texts[-1]


# Expressions with several operators ------------------------------------------------------------

Tree = Value | tuple[str, "Tree", "Tree"]
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def random_tree(rng: random.Random, num_operators: int, largest: int) -> Tree:
    if not num_operators:
        return rng.randint(0 if rng.random() < 0.1 else 1, largest if rng.random() < 0.6 else min(largest, 12))
    left = rng.choice((0, num_operators - 1, num_operators - 1, rng.randrange(num_operators)))
    operator = rng.choice("+++---***/")
    return operator, random_tree(rng, left, largest), random_tree(rng, num_operators - 1 - left, largest)


def evaluate(tree: Tree, top: bool = True, limit: int = 100_000) -> Worked:
    """Every operation is a line, with a result below the limit. Only the last may be a division that does not come out."""
    if not isinstance(tree, tuple):
        return Worked((), tree)
    operator, left, right = tree
    a, b = evaluate(left, False, limit), evaluate(right, False, limit)
    step = apply(operator, a.value, b.value)
    require(abs(step.value) < limit)
    is_exact = operator != "/" or step.value * b.value == a.value
    require(is_exact or top and not isinstance(a.value, Fraction))
    return Worked(a.lines + b.lines + step.lines, step.value)


def _operator_written(rng: random.Random, tight: bool) -> dict[str, str]:
    """One person writes an operator in one way."""
    signs = {operator: rng.choice(options) for operator, options in _SIGNS.items()}
    return signs if tight else {operator: f" {sign} " for operator, sign in signs.items()}


def render(tree: Tree, signs: dict[str, str], rank: int = 0, right: bool = False) -> str:
    """With the brackets that are needed."""
    if not isinstance(tree, tuple):
        return f"({show(tree)})" if tree < 0 and rank else show(tree)
    operator, left, right_tree = tree
    own = _RANK[operator]
    text = render(left, signs, own) + signs[operator] + render(right_tree, signs, own, True)
    return f"({text})" if own < rank or (own == rank and right) else text


@topic(6)
def several_operators(rng: random.Random) -> Short:
    num_operators = rng.choice((2, 2, 2, 3, 3, 4))
    tree = random_tree(rng, num_operators, rng.choice((9, 12, 20, 50, 100)))
    worked = evaluate(tree)
    if rng.random() < 0.15:
        signs = {"+": " plus ", "-": " minus ", "*": " times ", "/": " divided by "}
    else:
        signs = _operator_written(rng, rng.random() < 0.45)
    text = render(tree, signs)
    if rng.random() < 0.1 and "(" in text and signs["*"].strip() in "*x":
        text = text.replace("(", "[").replace(")", "]") if rng.random() < 0.4 else text.replace("(", "( ").replace(")", " )")
    return computed(_ASK.expand(rng, e=text), worked)


@topic(1)
def implicit_product(rng: random.Random) -> Short:
    """`3(4 + 5)` and `(2 + 3)(4 + 1)`."""
    a, b, c = (rng.randint(1, 15) for _ in range(3))
    operator = rng.choice("+-")
    require(operator == "+" or b > c)
    if rng.random() < 0.5:
        worked = evaluate(("*", a, (operator, b, c)))
        text = f"{a}({b}{operator}{c})" if rng.random() < 0.5 else f"{a}({b} {operator} {c})"
    else:
        d = rng.randint(1, 9)
        worked = evaluate(("*", (operator, b, c), ("+", a, d)))
        text = f"({b} {operator} {c})({a} + {d})"
    return computed(_ASK.expand(rng, e=text), worked)


@topic(1)
def spoken_steps(rng: random.Random) -> Short:
    """`Start with 5, add 3, then double it.`"""
    value: Value = rng.randint(1, 50)
    steps, words = [], []
    for _ in range(rng.choice((2, 2, 3))):
        operator = rng.choice("+-*")
        b = rng.randint(2, 9) if operator == "*" else rng.randint(1, 30)
        if operator == "*" and b in (2, 3) and rng.random() < 0.6:
            words.append({2: "double it", 3: "triple it"}[b])
        else:
            words.append(_STEP[operator].expand(rng, b=b))
        steps.append((operator, b))
    worked = chain(value, *steps)
    require(worked.value >= 0)
    return computed(_STEPS.expand(rng, a=value, first=words[0], rest=_then(rng, words[1:])), worked)


_STEP = {"+": Patterns("[add|plus|then add] {b}"), "-": Patterns("[subtract|take away|minus|remove] {b}"),
         "*": Patterns("[multiply by|times|multiply it by|multiply the result by] {b}")}
_STEPS = Patterns("""
    [Start with|Take|Begin with|I think of the number|Start at|take] {a}, {first}, {rest}. [What do you get?|What is the result?|Where do I end up?|]
    {a}, {first}, {rest}[?|. Result?|]
    [If I|When you] [take|start with] {a}, {first}, {rest}, what [do I get|is the result][?|]
""")


def _then(rng: random.Random, words: list[str]) -> str:
    joiner = rng.choice((", then ", ", and ", " and then ", ", "))
    return rng.choice(("then ", "and ", "")) + joiner.join(words)


# Negative numbers, decimals, fractions, powers -------------------------------------------------


@topic(3.5)
def negative(rng: random.Random) -> Short:
    operator = rng.choice("++--*/")
    limit = 12 if operator in "*/" else rng.choice((10, 20, 100, 500))
    a, b = (rng.randint(1, limit) * rng.choice((1, -1, -1)) for _ in range(2))
    require(a < 0 or b < 0)
    if operator == "/":
        a *= b
        require(b != 0)
    worked = apply(operator, a, b)
    if rng.random() < 0.25:
        minus = rng.choice(("minus", "negative"))
        left, right = (f"{minus} {-v}" if v < 0 else str(v) for v in (a, b))
        return computed(_ASK.expand(rng, e=spoken(rng, left, operator, right)), worked)
    left = f"({a})" if a < 0 and rng.random() < 0.2 else str(a)
    right = f"({b})" if b < 0 and rng.random() < 0.6 else str(b)
    return computed(_ASK.expand(rng, e=_spaced(rng, left, operator, right)), worked)


def _spaced(rng: random.Random, left: str, operator: str, right: str) -> str:
    sign = {"*": rng.choice("*x×"), "/": rng.choice("/÷")}.get(operator, operator)
    tight = rng.random() < 0.4 and not right.startswith("-")
    return f"{left}{sign}{right}" if tight else f"{left} {sign} {right}"


@topic(6)
def with_decimals(rng: random.Random) -> Short:
    operator = rng.choice("++--**/")
    if operator in "+-":
        places = rng.choice((1, 1, 2, 2, 3))
        limit = rng.choice((1, 10, 10, 100))
        a: Value = decimal(rng, limit, places)
        b: Value = decimal(rng, limit, places) if rng.random() < 0.75 else rng.randint(1, limit * 2)
        if operator == "-" and a < b:
            a, b = b, a
    elif operator == "*":
        a = decimal(rng, rng.choice((1, 10, 10, 30)), rng.choice((1, 1, 2)))
        b = decimal(rng, 10, 1) if rng.random() < 0.4 else rng.choice((rng.randint(2, 12), 10, 100))
        if rng.random() < 0.3:
            a, b = b, a
    else:
        b = decimal(rng, 10, 1) if rng.random() < 0.5 else rng.choice((2, 4, 5, 10, rng.randint(2, 12)))
        a = b * decimal(rng, 20, 1) if rng.random() < 0.5 else b * rng.randint(1, 12)
        require(Fraction(a).denominator != 1 or Fraction(b).denominator != 1)
    worked = apply(operator, a, b)
    hand = Hand(rng)
    text = written if rng.random() < 0.7 else spoken
    return computed(_ASK.expand(rng, e=text(rng, hand.write(a), operator, hand.write(b))), worked)


@topic(4)
def with_fractions(rng: random.Random) -> Short:
    operator = rng.choice("+++--**/")
    (a, b), (c, d) = _proper(rng), _proper(rng)
    if operator == "-" and Fraction(a, b) < Fraction(c, d):
        a, b, c, d = c, d, a, b
    worked = fraction_apply(operator, (a, b), (c, d))
    if operator == "/" or rng.random() < 0.25:
        texts = [f"({n}/{m})" if rng.random() < 0.3 else f"{n}/{m}" for n, m in ((a, b), (c, d))]
        sign = {"*": rng.choice(("times", "*", "x")), "/": rng.choice(("divided by", "÷", ":"))}.get(operator, operator)
        text = f"{texts[0]} {sign} {texts[1]}"
    elif rng.random() < 0.3:
        text = spoken(rng, _fraction_words(a, b), operator, _fraction_words(c, d))
    else:
        text = _spaced(rng, f"{a}/{b}", operator, f"{c}/{d}")
    return Short(_ASK.expand(rng, e=text), "\n".join(worked.lines), str(worked.value))


@topic(1.5)
def wholes_and_fractions(rng: random.Random) -> Short:
    """`1 - 2/7`, `3 * 2/5`."""
    operator, n, (a, b) = rng.choice("+--**"), rng.choice((1, 1, 2, rng.randint(1, 12))), _proper(rng)
    if operator == "*":
        first = rng.random() < 0.6
        left, right, raw = (str(n), f"{a}/{b}", n * a) if first else (f"{a}/{b}", str(n), n * a)
        line = f"{left} * {right} = {raw}/{b}"
    else:
        first = operator == "-" or rng.random() < 0.5
        raw = n * b + (a if operator == "+" else -a)
        left, right = (str(n), f"{a}/{b}") if first else (f"{a}/{b}", str(n))
        over = (f"{n * b}/{b}", f"{a}/{b}") if first else (f"{a}/{b}", f"{n * b}/{b}")
        line = f"{left} {operator} {right} = {over[0]} {operator} {over[1]} = {raw}/{b}"
    value = Fraction(raw, b)
    if str(value) != f"{raw}/{b}":
        line += f" = {value}"
    text = _spaced(rng, left, operator, right) if rng.random() < 0.7 else spoken(rng, left, operator, right)
    return Short(_ASK.expand(rng, e=text), line, str(value))


_SORT_FRACTIONS = Patterns("""
    [order|sort|Order|Sort|Arrange|put in order:] {l} [from small to large|from smallest to largest|in ascending order|by size|increasing][.|?|]
    [Which order|What is the order] [from small to large|from smallest to largest|in ascending order][:|] {l}[?|]
    {l} [from small to large|in ascending order|smallest first][?|.|]
""")
_WHICH_FRACTION = Patterns("""
    [Which|What] is the [{w}|{w} fraction|{w} one][:|,| of|] {l}[?|]
    [{w}|the {w}] of {l}[?|]
    {l}: [which is the {w}|{w} one][?|]
""")


_WORDED_SUM = Patterns("""
    [How much|What] is {p} [plus|and|added to|minus] {q}[?|]
    {p} [plus|and|minus] {q}[?|=| make what?|]
    [add|Add] {p} [and|to] {q}[.|]
    [What do you get|What is it] if you add {p} and {q}[?|]
    the sum of {p} and {q}[?|]
    [subtract|Subtract|take] {q} from {p}[.|?|]
    {p} [less|without|minus] {q}[?|]
""")
_MIXED = Patterns("""
    [Write|Express|Give|Turn] {p} as a mixed number[.|]
    {p} as a mixed number[?|]
    what mixed number is {p}[?|]
""")
_FRACTION_OF = Patterns("""
    [What|Which] [fraction|part] of {b} is {a}[?|]
    {a} is [what|which] [fraction|part] of {b}[?|]
    [Express|Write] {a} [out of|of] {b} as a fraction[.| in lowest terms.|]
    {a} of {b} [as|is what] [a |]fraction[?|]
""")


@topic(2)
def fractions_in_words(rng: random.Random) -> Short:
    """A third plus a sixth; a mixed number; what fraction of 20 is 5."""
    kind = rng.random()
    (a, b), (c, d) = _proper(rng), _proper(rng)
    if kind < 0.55:
        texts = [_spoken_fraction(rng, *f) for f in ((a, b), (c, d))]
        question = _WORDED_SUM.expand(rng, p=texts[0], q=texts[1])
        lower = question.lower()
        is_difference = any(word in lower for word in ("minus", "less", "without", "subtract", "take"))
        require(not is_difference or Fraction(a, b) > Fraction(c, d))
        worked = fraction_apply("-" if is_difference else "+", (a, b), (c, d))
        return Short(question, "\n".join(worked.lines), str(worked.value))
    if kind < 0.7:
        whole_part = rng.randint(1, 9)
        require(Fraction(a, b).denominator == b)
        top = whole_part * b + a
        return Short(_MIXED.expand(rng, p=f"{top}/{b}"), f"{top} / {b} = {whole_part} remainder {a}\n{top}/{b} = {whole_part} {a}/{b}",
                     f"{a}/{b}")
    k = rng.randint(1, 12)
    n, m = a * k, b * k
    reduced = f" = {Fraction(n, m)}" if str(Fraction(n, m)) != f"{n}/{m}" else ""
    return Short(_FRACTION_OF.expand(rng, a=n, b=m), f"{n}/{m}{reduced}", str(Fraction(n, m)))


def _spoken_fraction(rng: random.Random, top: int, bottom: int) -> str:
    text = _fraction_words(top, bottom)
    if top == 1 and rng.random() < 0.7:
        return ("an " if bottom == 8 else "a ") + text.removeprefix("one ")
    return text if rng.random() < 0.8 else f"{top}/{bottom}"


@topic(0.8)
def several_fractions(rng: random.Random) -> Short:
    """Three fractions over a common denominator."""
    common = rng.choice((6, 8, 8, 10, 12, 12, 20))
    tops = rng.sample(range(1, common), 3)
    values = [Fraction(top, common) for top in tops]
    listed = enumerated_texts(rng, [str(v) for v in values])
    lines = [f"{v} = {top}/{common}" for v, top in zip(values, tops, strict=True) if v.denominator != common]
    lines.append(" < ".join(f"{top}/{common}" for top in sorted(tops)))
    if rng.random() < 0.6:
        answer = ", ".join(map(str, sorted(values)))
        return Short(_SORT_FRACTIONS.expand(rng, l=listed), "\n".join((*lines, answer)), answer)
    largest = rng.random() < 0.5
    word = rng.choice(("largest", "greatest", "biggest") if largest else ("smallest", "least"))
    answer = str(max(values) if largest else min(values))
    reply = f"The {'largest' if largest else 'smallest'} is {answer}"
    return Short(_WHICH_FRACTION.expand(rng, l=listed, w=word), "\n".join((*lines, reply)), answer)


def enumerated_texts(rng: random.Random, texts: list[str]) -> str:
    return ", ".join(texts[:-1]) + rng.choice((", ", " and ", ", and ")) + texts[-1]


_PART_OF_WHOLE = Patterns("""
    [What|Which] [fraction|part] of {w} [is|are] {n} {u}[?|]
    {n} {u} [is|are] [what|which] [fraction|part] of {w}[?|]
    [Express|Write] {n} {u} as a fraction of {w}[.|]
""")
_WHOLES = (("an hour", 60, "minutes"), ("a minute", 60, "seconds"), ("a day", 24, "hours"), ("a year", 12, "months"),
           ("a dozen", 12, "eggs"), ("a dollar", 100, "cents"), ("a kilogram", 1000, "grams"), ("a meter", 100, "cm"),
           ("a week", 7, "days"), ("a foot", 12, "inches"), ("a kilometer", 1000, "meters"))


@topic(0.5)
def part_of_whole(rng: random.Random) -> Short:
    whole_name, size, unit = rng.choice(_WHOLES)
    value = Fraction(*_proper(rng))
    require(size % value.denominator == 0)
    n = int(size * value)
    return Short(_PART_OF_WHOLE.expand(rng, w=whole_name, n=n, u=unit), f"{n}/{size} = {value}", str(value))


def _proper(rng: random.Random) -> tuple[int, int]:
    bottom = rng.choice((2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12))
    return rng.randint(1, bottom - 1), bottom


_PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth",
          10: "tenth", 12: "twelfth"}
_TOPS = "zero one two three four five six seven eight nine ten eleven".split()


def _fraction_words(top: int, bottom: int) -> str:
    """`three quarters`, `a half`."""
    part = _PARTS[bottom]
    plural = {"half": "halves"}.get(part, part + "s")
    return f"one {part}" if top == 1 else f"{_TOPS[top]} {plural}"


_PART_OF = Patterns("""
    [What is|How much is|what's|whats|Find|Calculate|what is|How many is] {f} of {n}[?|]
    {f} of {n}[?|=|]
    {f} of {n} is [what|how much|?]
    [If you take|Take] {f} of {n}[, what do you get?|.]
    [Tell me|Give me|I need] {f} of {n}[.|]
""")


@topic(2)
def part_of(rng: random.Random) -> Short:
    top, bottom = (1, rng.choice((2, 2, 3, 4, 4, 5, 10))) if rng.random() < 0.5 else _proper(rng)
    n = bottom * rng.choice((rng.randint(1, 12), rng.randint(1, 60)))
    if rng.random() < 0.12 and bottom == 2 and top == 1:
        n += 1
    first = apply("/", n, bottom)
    worked = first if top == 1 else chain(n, ("/", bottom), ("*", top))
    named = _fraction_words(top, bottom).removeprefix("one ") if top == 1 else _fraction_words(top, bottom)
    article = "an" if named.startswith("eigh") else "a"
    options = (f"{top}/{bottom}", "half" if (top, bottom) == (1, 2) else f"{article} {named}" if top == 1 else named)
    if top == 1 and bottom != 2:
        options += (f"one {named}", f"1 {named}")
    return computed(_PART_OF.expand(rng, f=rng.choice(options), n=Hand(rng).write(n)), worked)


_MULTIPLE = Patterns("""
    [What is|How much is|what's|Find|calculate|whats] [{m} {n}|{m} of {n}][?|]
    {m} {n}[?|=|]
    [{v} {n}|{v} the number {n}|Please {v} {n}][.|]
    [If I|When you] {v} {n}, what [do I get|is it|is the result][?|]
    [What do you get when you|What happens when you|Can you] {v} {n}[?|]
""")


@topic(1.5)
def doubled(rng: random.Random) -> Short:
    operator, b, noun, verb = rng.choice((
        ("*", 2, "double", "double"), ("*", 2, "twice", "double"), ("*", 3, "triple", "triple"),
        ("*", 3, "three times", "triple"), ("*", 4, "four times", "quadruple"), ("/", 2, "half of", "halve"),
        ("*", 12, "a dozen times", "multiply by a dozen"), ("*", 10, "ten times", "multiply by ten")))
    n = whole(rng, 3, 1)
    question = _MULTIPLE.expand(rng, m=noun, v=verb, n=Hand(rng).write(n))
    return computed(question.replace("of of", "of"), apply(operator, n, b))


_DOZENS = Patterns("""
    [How many|how many] [is|are in|are|make] {n} dozen[?| {x}?|]
    [How many {x} are|How many {x} are there] in {n} dozen[?|]
    {n} dozen {x} [is how many|are how many|makes how many|in numbers][?|]
    [I buy|I have|There are|She bakes] {n} dozen {x}. How many [is that|{x}|are there][?|]
""")


@topic(0.4)
def dozens(rng: random.Random) -> Short:
    things = rng.choice(("eggs", "roses", "donuts", "cookies", "pencils", "rolls", "muffins", "bottles"))
    n = rng.choice((rng.randint(1, 12), rng.randint(1, 40), Fraction(1, 2)))
    if n == Fraction(1, 2):
        return computed(_DOZENS.expand(rng, n="half a", x=things), apply("/", 12, 2))
    name = rng.choice(("a", "one")) if n == 1 else Hand(rng).write(n)
    return computed(_DOZENS.expand(rng, n=name, x=things), apply("*", n, 12))


_SQUARE = Patterns("""
    [What is|what's|Find|Calculate|How much is|whats|compute] [the square of {n}|{n} squared|the {n} square][?|]
    {n} squared[?|=|]
    [square|Square] {n}[.|]
    {n}[²|^2|**2| ^ 2| ** 2| to the power of 2| to the second power][?|=| =|]
    [What is|what's|Calculate] {n}[²|^2|**2| to the power of 2][?|]
""")
_CUBE = Patterns("""
    [What is|what's|Find|Calculate|How much is] [the cube of {n}|{n} cubed][?|]
    {n} cubed[?|]
    {n}[³|^3|**3| ^ 3| to the third power][?|=|]
    [What is|Calculate] {n}[³|^3|**3| to the power of 3][?|]
""")
_POWER = Patterns("""
    [What is|what's|Calculate|How much is|Compute] {n}[ to the power of |^|**| ^ | ** | to the power ]{k}[?|]
    {n}[^|**| ^ | ** | to the power of | to the ]{k}[?|=| =|]
    [raise|Raise] {n} to the power [of |]{k}[.|]
    [What is|Find] {n} to the {th} power[?|]
    the {th} power of {n}[?|]
""")


@topic(2)
def powers(rng: random.Random) -> Short:
    kind = rng.random()
    if kind < 0.5:
        n, k, patterns = rng.choice((rng.randint(0, 12), rng.randint(1, 30), rng.randint(10, 99))), 2, _SQUARE
    elif kind < 0.7:
        n, k, patterns = rng.randint(1, 12), 3, _CUBE
    else:
        n, k = rng.choice(((2, rng.randint(0, 10)), (10, rng.randint(1, 6)), (3, rng.randint(0, 6)),
                           (5, rng.randint(0, 4)), (rng.randint(2, 9), rng.randint(2, 4))))
        patterns = _POWER
    ordinal = {0: "zeroth", 1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh",
               8: "eighth", 9: "ninth", 10: "tenth"}[k]
    return computed(patterns.expand(rng, n=n, k=k, th=ordinal), power(n, k))


_ROOT = Patterns("""
    [What is|what's|Find|Calculate|whats|How much is|Compute|tell me] [the|] square root of {n}[?|]
    [sqrt|Sqrt|SQRT|root of ][({n})| {n}|({n}) = ?]
    √{n}[?|=| = ?|]
    [square root of|the square root of|root] {n}[?|]
    [Which|What] [positive |]number [squared|times itself] [is|gives|equals|makes] {n}[?|]
""")
_CUBE_ROOT = Patterns("""
    [What is|Find|Calculate|what's] the cube root of {n}[?|]
    [cube root of|∛] {n}[?|]
    [What|Which] number cubed is {n}[?|]
""")


@topic(1.2)
def roots(rng: random.Random) -> Short:
    if rng.random() < 0.15:
        n = rng.randint(1, 10)
        lines = power(n, 3).lines
        return computed(_CUBE_ROOT.expand(rng, n=n**3), Worked((*lines, f"cube root of {n**3} = {n}"), n))
    n = rng.choice((rng.randint(0, 12), rng.randint(1, 30), 10 * rng.randint(1, 10)))
    square = n * n
    text = f"{square:,}" if rng.random() < 0.1 else str(square)
    return computed(_ROOT.expand(rng, n=text), Worked((f"{n} * {n} = {square}", f"sqrt({square}) = {n}"), n))


_REMAINDER = Patterns("""
    [What is|what's|Find|Calculate|Give me|tell me] the remainder [of|when|if] {a} [is divided by|divided by|over|/] {b}[?|]
    {a} [mod|modulo|%|MOD|remainder] {b}[?|=| =|]
    {a}%{b}[?|=|]
    [What is|Compute|what's] {a} [mod|modulo|%] {b}[?|]
    [What remains|What is left over|How much is left over|What is left|whats left over] [when|if|after] [you divide|dividing|we divide] {a} by {b}[?|]
    {a} divided by {b}[, what is the remainder?|: remainder?| leaves what remainder?|, remainder?]
    [Divide {a} by {b}|{a} / {b}] with [a |]remainder[.|]
    [How much|What] [remains|is left] of {a} [if|when] [it is|] [divided|split] [into groups of|by] {b}[?|]
""")


@topic(1.5)
def remainders(rng: random.Random) -> Short:
    b = rng.choice((rng.randint(2, 10), rng.randint(2, 20), rng.randint(2, 60)))
    a = rng.choice((rng.randint(1, 12 * b), rng.randint(1, 60), rng.randint(b, 999)))
    return computed(_REMAINDER.expand(rng, a=a, b=b), remainder(a, b))


_UNKNOWN = Patterns("""
    [Solve|solve|Find x:|Solve for x:|What is x if|Solve the equation|If|Work out x:|find x when] {e}[.|?|]
    {e}[, what is x?|. What is x?|. Find x.|, x = ?|. Solve for x.|, find x| what's x]
""")
_BLANK = Patterns("""
    {e}
    [Fill in the blank:|What goes in the blank?|What number is missing?|Complete:|Find the missing number:] {e}
    [Which|What] number makes {e} true[?|]
""")
_WHICH = Patterns("""
    [What|Which] number {c} {r}[?|]
    [I think of a number.|A number|Some number|A mystery number] {c} {r}. [What is it?|What is the number?|Which number is it?|Find it.]
    [What|Which number] do I have to {v} to get {r}[?|]
""")


@topic(2.5)
def unknowns(rng: random.Random) -> Short:
    """`x + 3 = 7`, blanks, and numbers to guess. The reply undoes the operation."""
    operator = rng.choice("+-*/")
    x = rng.randint(0, 12) if operator in "*/" else rng.randint(0, rng.choice((12, 30, 100)))
    b = rng.randint(2, 12) if operator in "*/" else rng.randint(1, rng.choice((12, 30, 100)))
    if operator == "/":
        x *= b
    result = apply(operator, x, b).value
    undo = {"+": "-", "-": "+", "*": "/", "/": "*"}[operator]
    require(result >= 0 and x > 0)
    worked = apply(undo, result, b)
    kind = rng.random()
    if kind < 0.45:
        letter = rng.choice("xxxxynabz")
        left = f"{b}{letter}" if operator == "*" and rng.random() < 0.6 else _spaced(rng, letter, operator, str(b))
        text = _UNKNOWN.expand(rng, e=rng.choice((f"{left} = {result}", f"{left}={result}", f"{result} = {left}")))
        text = text.replace("x", letter) if letter != "x" and "ex" not in text else text.replace(" x", f" {letter}")
        return computed(text, Worked((*worked.lines[:-1], f"{letter} = {worked.lines[-1]}"), worked.value))
    if kind < 0.75:
        blank = rng.choice(("?", "_", "__", "___", "□", "...", "[ ]", "?"))
        return computed(_BLANK.expand(rng, e=_spaced(rng, blank, operator, str(b)) + f" = {result}"), worked)
    return computed(_WHICH.expand(rng, c=_CLAUSES[operator].expand(rng, b=b), r=result,
                                  v=_TASKS[operator].expand(rng, b=b)), worked)


_CLAUSES = {"+": Patterns("[plus|increased by|and|added to] {b} [is|equals|makes|gives]"),
            "-": Patterns("[minus|decreased by|less|take away] {b} [is|equals|leaves|gives]"),
            "*": Patterns("[times|multiplied by] {b} [is|equals|makes|gives]"),
            "/": Patterns("divided by {b} [is|equals|makes|gives]")}
_TASKS = {"+": Patterns("add to {b}"), "-": Patterns("take {b} away from"), "*": Patterns("multiply by {b}"),
          "/": Patterns("divide by {b}")}

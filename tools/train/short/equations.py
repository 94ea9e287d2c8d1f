"""Equations of two steps, gaps at any place, letters with given values, and long rows of operations."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply, chain
from .expressions import Tree, evaluate, render
from .grammar import Patterns
from .numbers import Value, require, show
from .question import Short, computed, topic

_LETTERS = "xxxxxxynabkmtpz"

_SOLVE = Patterns("""
    {e}
    {e}[?|, {v}?| {v}?| solve|: {v} = ?|. {v}?|, find {v}|; {v} =|, {v} is]
    {e}[, what is {v}?|. What is {v}?|. Find {v}.|, what's {v}|. Solve for {v}.| solve for {v}|, so {v} is?|, then {v} is what]
    [Solve|solve|Solve:|Solve for {v}:|Find {v}:|Find {v}.|Work out {v}:|Solve the equation|Solution of|Equation:|Determine {v}:|What is {v}?] {e}[.|]
    [What is {v} if|What's {v} if|what is {v} when|What must {v} be if|What does {v} equal if|Find {v} if|find {v} when|For which {v} is|What value of {v} makes|which {v} solves|What {v} fits] {e}[?|]
    [If|When|Given|Given that|Suppose|Let] {e}, [what is {v}|then {v} is|what's {v}|find {v}|what does {v} equal|how big is {v}|what is the value of {v}|{v} =][?|]
    [Can you|Could you|Please|help me] solve {e}[ for {v}|][?|.|]
    [What is the|Find the|the] [value of {v}|solution|unknown] in {e}[?|.|]
    [My kid's|Today's|The] [homework|sheet|book|test] [says|has|asks] {e}[. What is {v}?|, {v}?|; find {v}]
""")


def _spaced(rng: random.Random) -> str:
    return rng.choice((" ", " ", ""))


def _solved(rng: random.Random, left: str, right: str, letter: str, lines: tuple[str, ...], value: Value) -> Short:
    """Either side may come first."""
    gap = _spaced(rng)
    sides = (left, right) if rng.random() < 0.85 else (right, left)
    text = _SOLVE.expand(rng, e=f"{sides[0]}{gap}={gap}{sides[1]}", v=letter)
    return Short(text, "\n".join(lines), show(value), value)


def _product(rng: random.Random, factor: int, letter: str) -> str:
    return f"{factor}{letter}" if rng.random() < 0.75 else rng.choice((f"{factor} * {letter}", f"{factor}*{letter}", f"{factor} {letter}"))


@topic(4)
def two_step_equations(rng: random.Random) -> Short:
    """`2x + 5 = 17`: first `2x = 17 - 5 = 12`, then `x = 12 / 2 = 6`."""
    letter = rng.choice(_LETTERS)
    x, a, b = rng.randint(1, rng.choice((10, 10, 20))), rng.randint(2, 9), rng.randint(1, rng.choice((10, 20, 40)))
    gap, kind = _spaced(rng), rng.randrange(9)
    if kind < 4:  # ax + b = c, ax - b = c, b + ax = c
        sign = rng.choice("+-")
        total = a * x + b if sign == "+" else a * x - b
        require(total >= 0 or rng.random() < 0.2)
        text = f"{_product(rng, a, letter)}{gap}{sign}{gap}{b}"
        if sign == "+" and rng.random() < 0.25:
            text = f"{b}{gap}+{gap}{a}{letter}"
        first = f"{a}{letter} = {total} {'-' if sign == '+' else '+'} {b} = {a * x}"
        return _solved(rng, text, str(total), letter, (first, f"{letter} = {a * x} / {a} = {x}"), x)
    if kind == 4:  # x/a + b = c
        sign = rng.choice("+-")
        total = x + b if sign == "+" else x - b
        require(total >= 0)
        first = f"{letter}/{a} = {total} {'-' if sign == '+' else '+'} {b} = {x}"
        text = f"{letter}{rng.choice(('/', ' / '))}{a}{gap}{sign}{gap}{b}"
        return _solved(rng, text, str(total), letter, (first, f"{letter} = {x} * {a} = {x * a}"), x * a)
    if kind == 5:  # a(x + b) = c
        sign = rng.choice("+-")
        inner = x + b if sign == "+" else x - b
        require(inner > 0)
        text = f"{a}({letter}{gap}{sign}{gap}{b})"
        lines = (f"{letter} {sign} {b} = {a * inner} / {a} = {inner}", f"{letter} = {inner} {'-' if sign == '+' else '+'} {b} = {x}")
        return _solved(rng, text, str(a * inner), letter, lines, x)
    if kind == 6:  # (x + b) / a = c
        x = a * rng.randint(1, 12) - b
        require(x > 0)
        c = (x + b) // a
        text = f"({letter}{gap}+{gap}{b}){rng.choice(('/', ' / '))}{a}"
        return _solved(rng, text, str(c), letter, (f"{letter} + {b} = {c} * {a} = {c * a}", f"{letter} = {c * a} - {b} = {x}"), x)
    if kind == 7:  # b - ax = c
        c = rng.randint(0, 30)
        total = a * x + c
        text = f"{total}{gap}-{gap}{a}{letter}"
        return _solved(rng, text, str(c), letter, (f"{a}{letter} = {total} - {c} = {a * x}", f"{letter} = {a * x} / {a} = {x}"), x)
    d = rng.randint(1, a - 1)  # ax = dx + c
    rest = a - d
    right = f"{d if d > 1 else ''}{letter}{gap}+{gap}{rest * x}"
    left = f"{rest if rest > 1 else ''}{letter}"
    lines = (f"{a}{letter} - {d if d > 1 else ''}{letter} = {left}", f"{left} = {rest * x}")
    if rest > 1:
        lines += (f"{letter} = {rest * x} / {rest} = {x}",)
    return _solved(rng, f"{a}{letter}", right, letter, lines, x)


@topic(2)
def letters_last(rng: random.Random) -> Short:
    """The letter is the second operand: `20 - x = 12`, `7 + x = 15`, `24 / x = 6`."""
    letter, operator = rng.choice(_LETTERS), rng.choice("+--*/")
    x = rng.randint(1, 12 if operator in "*/" else rng.choice((12, 50)))
    other = rng.randint(2, 12) if operator in "*/" else rng.randint(1, rng.choice((12, 60)))
    gap = _spaced(rng)
    if operator == "+":
        return _solved(rng, f"{other}{gap}+{gap}{letter}", str(other + x), letter, (f"{letter} = {other + x} - {other} = {x}",), x)
    if operator == "-":
        return _solved(rng, f"{other + x}{gap}-{gap}{letter}", str(other), letter, (f"{letter} = {other + x} - {other} = {x}",), x)
    if operator == "*":
        return _solved(rng, f"{other}{gap}{rng.choice('*·×')}{gap}{letter}", str(other * x), letter, (f"{letter} = {other * x} / {other} = {x}",), x)
    return _solved(rng, f"{other * x}{gap}/{gap}{letter}", str(other), letter, (f"{letter} = {other * x} / {other} = {x}",), x)


_THEN_ASKED = Patterns("""
    [If|When|Given that|Given] {e}[, then |, ][what is|what's|how much is|find] {f}[?|]
    [If|When] {e}[, then |, then ]{f} [is|=|equals] [?|what|what?]
    {e}. [What is|How much is|Find|And what is] {f}[?|]
    [What is|Find|How much is] {f} [if|when|given that] {e}[?|]
    {e}, so {f} [= ?|is what?|is?]
""")


@topic(1)
def used_after_solving(rng: random.Random) -> Short:
    """`If 4x = 20, what is x + 1?`"""
    letter, x = rng.choice(_LETTERS), rng.randint(2, 12)
    a, b, gap = rng.randint(2, 9), rng.randint(1, 12), _spaced(rng)
    text, first = rng.choice((
        (f"{a}{letter}{gap}={gap}{a * x}", f"{letter} = {a * x} / {a} = {x}"),
        (f"{letter}{gap}+{gap}{b}{gap}={gap}{x + b}", f"{letter} = {x + b} - {b} = {x}"),
        (f"{letter}{gap}-{gap}{b}{gap}={gap}{x - b}" if x > b else f"{b}{letter}{gap}={gap}{b * x}",
         f"{letter} = {x - b} + {b} = {x}" if x > b else f"{letter} = {b * x} / {b} = {x}")))
    k = rng.randint(1, 10)
    asked, end = rng.choice(((f"{letter}{gap}+{gap}{k}", apply("+", x, k)), (f"{k + 1}{letter}", apply("*", k + 1, x)),
                             (f"{letter}{gap}-{gap}1", apply("-", x, 1)), (f"{letter}²", apply("*", x, x)),
                             (f"2{letter}{gap}+{gap}{k}", chain(2, ("*", x), ("+", k)))))
    return Short(_THEN_ASKED.expand(rng, e=text, f=asked), "\n".join((first, *end.lines)), show(end.value), end.value)


@topic(1)
def letters_repeated(rng: random.Random) -> Short:
    """`x + x = 14`, `x + 2x = 15`: the same letter more than once on one side."""
    letter, x, gap = rng.choice(_LETTERS), rng.randint(1, 20), _spaced(rng)
    factors = rng.choice(([1, 1], [1, 1], [1, 1, 1], [1, 2], [2, 1], [2, 3], [1, 3], [4, 1], [5, 2]))
    parts = [letter if k == 1 else f"{k}{letter}" for k in factors]
    total = sum(factors)
    lines = (f"{' + '.join(parts)} = {total}{letter}", f"{letter} = {total * x} / {total} = {x}")
    return _solved(rng, f"{gap}+{gap}".join(parts), str(total * x), letter, lines, x)


_GAP = Patterns("""
    {e}
    {e}
    {e}[. What is missing?|, what number is missing?| - missing number?|: fill in the blank|, which number goes in the gap?|, what is {g}?]
    [Fill in the blank:|Fill in:|What goes in the blank?|What number is missing?|Complete:|Find the missing number:|Missing number:|What does {g} stand for?|Which number belongs in the gap?] {e}
    [Which|What] number [makes {e} true|fits in {e}|belongs into {e}|completes {e}][?|]
""")
_GAP_SAID = {
    "+": Patterns("""
        {a} plus [what|what number|which number] [is|makes|gives|equals] {c}[?|]
        [What|What number|Which number] plus {a} [is|makes|gives|equals] {c}[?|]
        [What|Which number|What number] [do I add|must I add|should I add|has to be added] to {a} [to get|to make|to reach|for a total of] {c}[?|]
        [What|Which number|What number] added to {a} [gives|makes|is|equals] {c}[?|]
        {a} and [what|how many more|how much] [make|makes|is|are] {c}[?|]
        {a} plus a [mystery|hidden|secret|certain] number is {c}. [What is it?|The number?|Find it.|Which one?|How big is it?]
    """),
    "-": Patterns("""
        {c} minus [what|what number|which number] [is|gives|leaves|equals|makes] {a}[?|]
        {c} take away [what|how many] [is|leaves|makes|gives] {a}[?|]
        {c} minus a [mystery|hidden|secret|certain] number is {a}. [What is it?|The number?|Find it.|Which one?|How big is it?]
        [What|Which number] [taken|subtracted] from {c} [leaves|gives|makes] {a}[?|]
        from {c} I took [something|a number|some] and {a} [was|is|were|are] left. [What did I take|How much did I take|How many|How big was it][?|]
    """),
    "*": Patterns("""
        {a} times [what|what number|which number] [is|makes|gives|equals] {c}[?|]
        [What|What number|Which number] times {a} [is|makes|gives|equals] {c}[?|]
        {a} multiplied by [what|which number|what number] [is|makes|gives|equals] {c}[?|]
        [a|some|a certain] number of {a}s make {c}. [How many|What number][?|]
        {a} times a [mystery|hidden|secret|certain] number is {c}. [What is it?|The number?|Find it.|Which one?|How big is it?]
    """),
    "/": Patterns("""
        {c} divided by [what|what number|which number] [is|makes|gives|equals] {a}[?|]
        {c} [split|shared] [by|among|into] how many [is|gives|makes] {a}[| each][?|]
        [What|Which number] do I divide {c} by to get {a}[?|]
        {c} over [what|what number] [is|equals|gives] {a}[?|]
        {c} divided by a [mystery|hidden|secret|certain] number is {a}. [What is it?|The number?|Find it.|Which one?|How big is it?]
    """),
}


@topic(2.5)
def gaps_anywhere(rng: random.Random) -> Short:
    """`7 + ? = 15`, `15 = ? + 7`, `20 minus what is 12`."""
    operator = rng.choice("++--*/")
    x = rng.randint(1, 12 if operator in "*/" else rng.choice((12, 30, 100)))
    a = rng.randint(2, 12) if operator in "*/" else rng.randint(1, rng.choice((12, 30, 100)))
    c = a + x if operator in "+-" else a * x
    worked = apply("-" if operator in "+-" else "/", c, a)
    if rng.random() < 0.4:
        return computed(_GAP_SAID[operator].expand(rng, a=a, c=c), worked)
    blank = rng.choice(("?", "?", "?", "_", "__", "___", "...", "[ ]", "□", "( )"))
    gap, last = _spaced(rng), rng.random() < 0.3 and operator in "+*"
    first, second, result = (a, blank, c) if operator in "+*" else (c, blank, a)
    if last:
        first, second = second, first
    equation = f"{first}{gap}{operator}{gap}{second}"
    text = f"{equation}{gap}={gap}{result}" if rng.random() < 0.75 else f"{result}{gap}={gap}{equation}"
    return computed(_GAP.expand(rng, e=text, g=blank if blank == "?" else "the blank"), worked)


_VALUE = Patterns("""
    [What is|what's|Find|Calculate|Evaluate|Compute|Work out|How much is|] {e} [if|when|for|where|with] {v}[?|]
    [If|When|For|Given|Let|With|Suppose] {v}, [what is|find|how much is|calculate|evaluate|then] {e}[?|]
    {v}[. |; |, ]{e}[ = ?|?| =|]
    [Substitute|Put in|Plug in] {v} [in|into] {e}[.|: result?|, what do you get?]
    {e}, {v}[: value?|. Value?|, result?|?|]
    [The|What is the] value of {e} [at|for|when] {v}[?|]
""")
_FUNCTION = Patterns("""
    [If|Given|Let|Suppose|For|] f({v}) = {e}[, |; |. |, then ][what is|find|calculate|how much is|] f({n})[?|]
    f({v}) = {e}[. |, |; ]f({n})[?| =| = ?| is what]
    [What is|Find] f({n}) [if|when|for] f({v}) = {e}[?|]
""")
_FORMULA = Patterns("""
    [If|Given|When|With|] {y} = {e} and {v} = {n}[, what is| then what is|, find|, how much is|:] {y}[?|]
    {y} = {e}[, |; |. ]{v} = {n}[, |; |. ][{y}?|{y} = ?|what is {y}?|find {y}|then {y}?]
    [What is|Find] {y} [if|when] {y} = {e} [and|with|for] {v} = {n}[?|]
    {v} is {n} and {y} is {e}. [What is {y}|{y}|Find {y}|How much is {y}][?|]
""")


@topic(2.5)
def letters_replaced(rng: random.Random) -> Short:
    """`3x + 1` for x = 4, a function's value, two letters."""
    v = rng.choice(_LETTERS)
    n, a, b = rng.randint(1, rng.choice((10, 12, 20))), rng.randint(2, 12), rng.randint(1, 20)
    gap, kind = _spaced(rng), rng.randrange(8)
    if kind < 4:
        sign = rng.choice("++-")
        expression, worked = f"{a}{v}{gap}{sign}{gap}{b}", chain(a, ("*", n), (sign, b))
    elif kind == 4:
        expression, worked = f"{a}{v}", apply("*", a, n)
    elif kind == 5:
        require(n <= 12)
        sign = rng.choice("+-")
        expression, worked = f"{v}{rng.choice(('^2', '²'))}{gap}{sign}{gap}{b}", chain(n, ("*", n), (sign, b))
    elif kind == 6:
        expression, worked = f"{a}({v}{gap}+{gap}{b})", evaluate(("*", a, ("+", n, b)))
    else:
        w = rng.choice([letter for letter in "abxymnpq" if letter != v])
        m = rng.randint(1, 12)
        shapes: tuple[tuple[str, Tree], ...] = (
            (f"{v}{gap}+{gap}{w}", ("+", n, m)), (f"{v}{w}", ("*", n, m)), (f"{v}{gap}-{gap}{w}", ("-", n, m)),
            (f"{a}{v}{gap}+{gap}{w}", ("+", ("*", a, n), m)), (f"{v}{gap}+{gap}{a}{w}", ("+", n, ("*", a, m))),
            (f"{v}{gap}*{gap}{w}{gap}+{gap}{b}", ("+", ("*", n, m), b)), (f"{a}({v}{gap}+{gap}{w})", ("*", a, ("+", n, m))))
        expression, tree = rng.choice(shapes)
        values = rng.choice(("{v}{g}={g}{n} and {w}{g}={g}{m}", "{v}{g}={g}{n}, {w}{g}={g}{m}", "{v} is {n} and {w} is {m}"))
        return computed(_VALUE.expand(rng, e=expression, v=values.format(v=v, w=w, n=n, m=m, g=gap)), evaluate(tree))
    how = rng.random()
    if how < 0.55:
        text = _VALUE.expand(rng, e=expression, v=rng.choice((f"{v}{gap}={gap}{n}", f"{v} = {n}", f"{v} is {n}")))
    elif how < 0.75:
        text = _FUNCTION.expand(rng, e=expression, v=v, n=n)
    else:
        text = _FORMULA.expand(rng, e=expression, v=v, n=n, y=rng.choice([letter for letter in "yycpz" if letter != v]))
    return computed(text, worked)


_NUMBER_SOUGHT = Patterns("""
    [I think of a number|I have a number in mind|Think of a number|A number is chosen|My secret number]. [I |]{v} and [then |]{w}[. I get|, and get|. The result is|. Now it is|. That gives] {c}. [What was it?|What is the number?|My number?|What did I start with?|Which number did I think of?|Find it.]
    [When|If] [a number|some number|my number] is {d} and {p}, [the result is|you get|it gives|it becomes] {c}. [What is the number?|The number?|Find the number.|Which number was it?|Find it.]
    {t}[ a number| some number| my number| what number][, | ]{s} [is|gives|equals|makes|comes to] {c}[. What is it?|. Find the number.|. What's the number?|. The number?|. Which number?|?]
    [What|Which] number {d} and {p} [gives|is|makes] {c}[?|]
    {c} is {t} a number[, | ]{s}. [What is it?|Which number?|The number?|Find it.]
""")


@topic(2)
def numbers_sought(rng: random.Random) -> Short:
    """Two operations on a number that is not known; the reply undoes them."""
    x, (a, verb, done, times) = rng.randint(1, 20), rng.choice((
        (2, "double it", "doubled", "twice"), (2, "double it", "doubled", "two times"), (3, "triple it", "tripled", "three times"),
        (4, "multiply it by 4", "multiplied by 4", "4 times"), (5, "multiply it by 5", "multiplied by 5", "five times"),
        (10, "multiply it by 10", "multiplied by 10", "ten times"), (6, "multiply it by 6", "multiplied by six", "6 times")))
    b, plus = rng.randint(1, 20), rng.random() < 0.6
    require(plus or a * x > b)
    c = a * x + b if plus else a * x - b
    word = rng.choice(("add", "add", "plus")) if plus else rng.choice(("subtract", "take away"))
    part = rng.choice(("increased by", "then raised by") if plus else ("decreased by", "then lowered by"))
    text = _NUMBER_SOUGHT.expand(rng, v=verb, w=f"{word if word != 'plus' else 'add'} {b}", d=done, p=f"{part} {b}", t=times, c=c,
                                 s=f"{rng.choice(('plus', 'increased by')) if plus else rng.choice(('minus', 'less'))} {b}")
    first = apply("-" if plus else "+", c, b)
    end = apply("/", a * x, a)
    return computed(" ".join(text.split()), Worked(first.lines + end.lines, x))


@topic(4)
def long_rows(rng: random.Random) -> Short:
    """`100 - 20 - 30`, `48 / 6 / 2`, `5 + 5 + 5 + 5`: from the left, with signs and nothing else."""
    kind, count = rng.randrange(6), rng.choice((2, 2, 2, 3, 3, 4))
    size = rng.choice((9, 20, 50, 100, 300))
    terms: list[Value] = [rng.randint(1, size) for _ in range(count)]
    if kind < 4 and rng.random() < 0.2:  # as prices are written
        terms = [Fraction(rng.randint(1, 40), rng.choice((2, 4, 10))) for _ in terms[:2]]
        terms = [term.numerator if term.denominator == 1 else term for term in terms]
    if kind < 2:
        first: Value = int(sum(terms)) + rng.choice((1, rng.randint(1, size), rng.randint(1, 9)))
        if rng.random() < 0.4:
            first = next((n for n in (20, 50, 100, 200, 500, 1000) if n >= sum(terms)), first)
        steps = [("-", n) for n in terms]
    elif kind == 2:
        first, steps = rng.randint(1, size), [(rng.choice("+-"), n) for n in terms]
    elif kind == 3:
        first = terms[0] if rng.random() < 0.4 else rng.randint(1, size)
        steps = [("+", first if first == terms[0] else n) for n in terms]
    elif kind == 4:
        divisors = [rng.choice((2, 2, 3, 4, 5, 6, 10)) for _ in range(2)]
        first, steps = rng.randint(1, 12) * divisors[0] * divisors[1], [("/", d) for d in divisors]
    else:
        first, steps = rng.randint(1, 12), [("*", rng.randint(2, 9)), (rng.choice("+-*"), rng.randint(1, 12))]
        if rng.random() < 0.4:
            first, steps = first * steps[0][1], [("/", steps[0][1]), (rng.choice("+-*"), rng.randint(1, 12))]
    worked = chain(first, *steps)
    require(-100 <= worked.value)
    tree: Tree = first
    for operator, b in steps:
        tree = (operator, tree, b)
    gap = rng.choice((" ", " ", ""))
    signs = {"+": "+", "-": rng.choice("---−–"), "*": rng.choice("**xx×"), "/": rng.choice("///÷:")}
    text = render(tree, {operator: f"{gap}{sign}{gap}" for operator, sign in signs.items()})
    text = rng.choice(("", "", "", "what is ", "What is ", "whats ", "calc ", "Calculate ", "solve ", "how much is ")) + text
    text += rng.choice(("", "", "", "=", " =", "?", " = ?", "=?", " equals", " is"))
    return Short(text, "\n".join(worked.lines), show(worked.value), worked.value, is_fixed=True)


_ALL_TIMES = Patterns("""
    {a} {o} {b}[,|] [all|everything|all that|that all|the whole thing|the whole lot|the result|all of it|all together] [{m}|then {m}|and then {m}] {c}[?|]
    {a} {o} {b}[, then|. Then| and then|; then] [the whole|all of that|everything|the result|that] {m} {c}[?|]
    [Take|Work out|Compute|First do] {a} {o} {b}[, then|, and| and then|. Then|;] {k} [it |that |the result |what you get |]{l} {c}[.|?|. What is it?|. Result?]
    {k} [the result of|what you get from|the value of] {a} {o} {b} {l} {c}[.|?|]
    ({a} {o} {b}) {m} {c}[?|]
    [what is|what's|how much is] {a} {o} {b}[, all| all|, everything|, the total] {m} {c}[?|]
    {c} {n} ({a} {o} {b})[?|]
""")


@topic(2)
def whole_first(rng: random.Random) -> Short:
    """`8 plus 2 all times 5`: what is said of the whole comes last."""
    a, b, c = rng.randint(1, 30), rng.randint(1, 20), rng.randint(2, 12)
    operator, times = rng.choice("++-"), rng.random() < 0.7
    require(operator == "+" or a > b)
    inner = a + b if operator == "+" else a - b
    if not times:
        require(inner % c == 0)
    word = rng.choice(("plus", "plus", "+") if operator == "+" else ("minus", "minus", "less", "-"))
    text = _ALL_TIMES.expand(rng, a=a, b=b, c=c, o=word, k="multiply" if times else "divide", l="by",
                             m=rng.choice(("times", "multiplied by", "x") if times else ("divided by", "over")),
                             n="times" if times else "goes how many times into")
    return computed(text[0].upper() + text[1:], evaluate(("*" if times else "/", (operator, a, b), c)))


_FEWER = Patterns("""
    {o} [both |]{p}[ and| plus] {q} from {n}[.|?|. What is left?|]
    {n} [minus|less|without|take away] [the sum of|both|the total of] {p} and {q}[?|]
    [take|Take|subtract|remove] {p} from {n}[, then| and then|, and] [take|subtract|remove|another] {q}[ too| as well| from that|][.|?|]
    from {n} [take|subtract|you take|remove] {p}, [then|and|later] {q}[?|. Left?|. What remains?|]
    {n} minus {p} minus {q}[?| is| equals|]
    [what's|what is|how much is] left of {n} [after|when|if] {p} and {q} [are gone|are taken away|are subtracted|go away][?|]
    {n}, minus {p}, minus {q}[?|...|]
    {n} less {p} [and less|less|, less] {q}[?|]
""")


@topic(1.2)
def taken_twice(rng: random.Random) -> Short:
    p, q = rng.randint(1, 60), rng.randint(1, 60)
    n = p + q + rng.randint(0, 60)
    if rng.random() < 0.4:
        n = next(m for m in (20, 50, 100, 150, 200) if m >= p + q)
    text = _FEWER.expand(rng, n=n, p=p, q=q, o=rng.choice(("Subtract", "Take", "Remove", "Deduct", "take away")))
    sums = "sum of" in text or "both" in text and "from" not in text or "total of" in text
    return computed(text[0].upper() + text[1:], evaluate(("-", n, ("+", p, q))) if sums else chain(n, ("-", p), ("-", q)))



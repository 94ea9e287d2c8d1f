"""Short questions of a chat: arithmetic in many wordings, turns that go on from a result, greetings, and what the model
refuses. All that it says of itself is that it calculates and solves word problems.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from arithmetic import Reject, Value, Worked, apply, chain, in_words, require, show, simplest, whole
from problems import choose, made_up

Turn = tuple[str, str]  # the user's message and the reply

SYSTEM_PROMPTS = (
    "You are a helpful assistant.", "You are a helpful assistant that solves math problems.", "Be brief.",
    "Solve the problem step by step.", "You are a calculator.", "Answer in one line.", "You are a math tutor.", "Be exact.",
)
REFUSAL = "I do not know that: I only calculate and solve word problems."
_SELF = "I am a small model that calculates and solves word problems."
_GREETING = "Hello! I calculate and solve word problems. What shall I work out?"
_NUM_BUCKETS = 50  # one of them is held out


@dataclass(frozen=True)
class Question:
    """A question and its reply; `value` is what a next turn can go on with."""

    text: str
    reply: str
    value: Value | None = None
    is_fixed: bool = False  # spelled as it must be: no typing errors, no politeness


def _reply(worked: Worked) -> str:
    return "\n".join(map(str, worked.lines))


# Numbers and signs as people write them --------------------------------------------------------------------------------

_SIGNS = {"+": "+++++", "-": "-----−", "*": "****xx×·", "/": "////÷:"}
_SPOKEN = {"+": ("plus", "and", "added to"), "-": ("minus", "less", "take away"),
           "*": ("times", "multiplied by", "x"), "/": ("divided by", "over", "split by")}
_NAMED = {
    "+": ("the sum of {a} and {b}", "{b} more than {a}", "{a} and {b} together", "add {b} to {a}", "the total of {a} and {b}"),
    "-": ("the difference between {a} and {b}", "{b} less than {a}", "subtract {b} from {a}", "take {b} away from {a}"),
    "*": ("the product of {a} and {b}", "{a} multiplied by {b}", "multiply {a} by {b}", "{a} lots of {b}"),
    "/": ("the quotient of {a} and {b}", "divide {a} by {b}", "{a} shared by {b}"),
}
_ASK = (
    "{e}", "{e}", "{e}[=| =|?| = ?|=?|.|]", "[What is|what is|What's|what's|whats] {e}[?|??| ?|]", "[What is|what is] {e}?",
    "[How much is|how much is|How many is] {e}[?|]", "[Calculate|calculate|Compute|Evaluate|Solve|Work out|Find|calc][:|] {e}[.|]",
    "What does {e} [equal|come to|make|give][?|]", "[Tell me|Give me|I need|Show me] [|the result of ]{e}[.|!|]",
    "[The result of|Answer to] {e}[?|:]", "{e} [equals what|is what|is how much|makes what][?|]",
    "[Could you|Can you|Please] [calculate|compute|work out|do|tell me] {e}[?|, please?|]",
    "[So|Ok,|Well,|Now|Q:|Question:|Math:|1)] {e}[?|=]", "[Do you know|I wonder] what {e} is[?|.]", "x = {e}",
)
_BY_NAME = ("[What is|what's|Tell me|Find|I need|] {e}[?||.]", "[Calculate|Compute|Give me|Please find] {e}[.||]",
            "[Can you|Could you] [find|tell me|work out] {e}[?|]", "{e}[?|.|]")


def _written(rng: random.Random, value: Value) -> str:
    if isinstance(value, int):
        style = rng.random()
        if style < 0.07 and 0 <= value < 1000:
            return in_words(value)
        if style < 0.2:
            return f"{value:,}"
    return show(value)


def _expression(rng: random.Random, first: Value, rest: list[tuple[str, Value]]) -> str:
    space = rng.choice((" ", " ", ""))
    spoken = rng.random() < 0.2
    text = _written(rng, first)
    for operator, value in rest:
        sign = f" {rng.choice(_SPOKEN[operator])} " if spoken else f"{space}{rng.choice(_SIGNS[operator])}{space}"
        text += sign + _written(rng, value)
    return text


def _asked(rng: random.Random, expression: str) -> str:
    return choose(rng, rng.choice(_ASK)).replace("{e}", expression).strip()


# Topics ----------------------------------------------------------------------------------------------------------------

Topic = Callable[[random.Random], Question]
_TOPICS: dict[Topic, float] = {}


def _topic(weight: float) -> Callable[[Topic], Topic]:
    def register(function: Topic) -> Topic:
        _TOPICS[function] = weight
        return function

    return register


def _operands(rng: random.Random, operator: str) -> tuple[int, int]:
    """Whole, not negative; results are whole but for some divisions."""
    if operator in "+-":
        digits = rng.choice((1, 2, 2, 3, 3, 4, 6))
        a, b = whole(rng, digits), whole(rng, digits)
        return (max(a, b), min(a, b)) if operator == "-" and rng.random() < 0.8 else (a, b)
    if operator == "*":
        digits = rng.choice(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (2, 2), (3, 1), (3, 2), (1, 3), (4, 1)))
        return whole(rng, digits[0]), whole(rng, digits[1])
    b = rng.choice((rng.randint(1, 12), rng.randint(1, 30), rng.randint(1, 99)))
    if rng.random() < 0.8:
        return b * rng.choice((rng.randint(0, 12), rng.randint(0, 40), rng.randint(0, 250))), b
    b = rng.choice((2, 4, 5, 8, 10, 20, 25))
    return rng.randint(1, 20 * b), b


@_topic(10)
def _one_operation(rng: random.Random) -> Question:
    operator = rng.choice("++--***//")
    a, b = _operands(rng, operator)
    worked = apply(operator, a, b)
    if rng.random() < 0.25:
        text = rng.choice(_NAMED[operator]).format(a=_written(rng, a), b=_written(rng, b))
        text = choose(rng, rng.choice(_BY_NAME)).replace("{e}", text).strip()
        text = text[:1].upper() + text[1:]
    else:
        text = _asked(rng, _expression(rng, a, [(operator, b)]))
    return Question(text, _reply(worked), worked.value)


@_topic(4)
def _only_digits(rng: random.Random) -> Question:
    """The least that one can type; nothing is added to it."""
    operator = rng.choice("++--***//")
    a, b = _operands(rng, operator)
    space = rng.choice((" ", ""))
    text = f"{a}{space}{rng.choice(_SIGNS[operator])}{space}{b}" + rng.choice(("", "", "=", " =", "?", " = ?"))
    worked = apply(operator, a, b)
    return Question(text, _reply(worked), worked.value, is_fixed=True)


@_topic(3)
def _chains(rng: random.Random) -> Question:
    operators = rng.choice(("++", "+-", "-+", "--", "**", "+++", "++-"))
    first, *rest = (rng.randint(2, 12 if "*" in operators else rng.choice((20, 99))) for _ in range(len(operators) + 1))
    terms = list(zip(operators, rest))
    worked = chain(first, terms)
    require(worked.value >= 0)
    return Question(_asked(rng, _expression(rng, first, terms)), _reply(worked), worked.value)


@_topic(3)
def _precedence(rng: random.Random) -> Question:
    """A product first, or brackets."""
    a, b, c = rng.randint(2, 50), rng.randint(2, 20), rng.randint(2, 12)
    operator = rng.choice("+-")
    sign = rng.choice(("*", "*", "x", "×"))
    kind = rng.randrange(3)
    if kind == 0:
        inner = apply("*", b, c)
        outer, text = apply(operator, a, inner.value), f"{a} {operator} {b} {sign} {c}"
    elif kind == 1:
        inner = apply("*", b, c)
        outer, text = apply(operator, inner.value, a), f"{b} {sign} {c} {operator} {a}"
    else:
        inner = apply(operator, a, b)
        outer, text = apply("*", inner.value, c), f"({a} {operator} {b}) {sign} {c}"
    require(inner.value >= 0)
    if rng.random() < 0.3:
        text = text.replace(" ", "")
    return Question(_asked(rng, text), _reply(Worked(inner.lines + outer.lines, outer.value)), outer.value)


@_topic(3)
def _decimals(rng: random.Random) -> Question:
    operator = rng.choice("+-*/")
    scale = rng.choice((10, 100))
    a: Value = simplest(Fraction(rng.randint(1, 50 * scale), scale))
    b: Value = rng.randint(2, 12) if operator in "*/" else simplest(Fraction(rng.randint(1, 30 * scale), scale))
    worked = apply(operator, max(a, b) if operator == "-" else a, min(a, b) if operator == "-" else b)
    first, second = (max(a, b), min(a, b)) if operator == "-" else (a, b)
    sign = "$" if scale == 100 and rng.random() < 0.3 and operator in "+-" else ""
    text = f"{sign}{show(first)} {operator} {sign}{show(second)}"
    return Question(_asked(rng, text), _reply(worked), worked.value)


@_topic(4)
def _percent(rng: random.Random) -> Question:
    q = rng.choice((1, 5, 10, 10, 12, 15, 15, 20, 20, 25, 30, 40, 50, 60, 75, 80, 90, rng.randint(1, 100)))
    n = rng.choice((rng.randint(1, 99), 10 * rng.randint(1, 100), 100 * rng.randint(1, 50)))
    part = chain(n, [("*", q), ("/", 100)])
    kind = rng.random()
    if kind < 0.6:
        text = rng.choice(("[What is|what is|How much is|Calculate|whats|] {q}[%| percent] of {n}[?||.]",
                           "[Find|Tell me|I need] {q}% of {n}[.|]", "{q}% of {n}", "[What's|What is] {q} percent from {n}?"))
        worked = part
    else:
        sign = "-" if rng.random() < 0.6 else "+"
        last = apply(sign, n, part.value)
        worked = Worked(part.lines + last.lines, last.value)
        text = ("[What is|How much is|] {n} [minus|less|reduced by] {q}%[?|]|{q}% off [of |]{n}[?|]" if sign == "-" else
                "[What is|How much is|] {n} [plus|increased by|and] {q}%[?|]|[Add|add] {q}% to {n}[.|]")
        text = rng.choice(re.split(r"\|(?![^\[]*\])", text))
    return Question(choose(rng, text).format(q=q, n=n).strip(), _reply(worked), worked.value)


@_topic(3)
def _parts_and_multiples(rng: random.Random) -> Question:
    n = rng.randint(2, rng.choice((20, 100, 500)))
    name, operator, k = rng.choice((
        ("[half|one half] of", "/", 2), ("[a|one] third of", "/", 3), ("a quarter of", "/", 4), ("a fifth of", "/", 5),
        ("a tenth of", "/", 10), ("[double|twice]", "*", 2), ("[triple|three times]", "*", 3), ("four times", "*", 4),
        ("ten times", "*", 10), ("a dozen times", "*", 12)))
    worked = apply(operator, n * k if operator == "/" and rng.random() < 0.9 else n, k)
    shown = worked.lines[-1].left.partition(" ")[0]
    text = choose(rng, f"[What is|what's|How much is|Find|] {name} {shown}[?||.]").strip()
    return Question(text[:1].upper() + text[1:] if rng.random() < 0.5 else text, _reply(worked), worked.value)


@_topic(2)
def _squares(rng: random.Random) -> Question:
    n = rng.randint(2, 25)
    if rng.random() < 0.35:
        text = choose(rng, f"[What is|] [the square root of {n * n}|sqrt({n * n})|√{n * n}][?|]").strip()
        return Question(text, f"{n} * {n} = {n * n}\nThe square root of {n * n} is {n}", n)
    exponent = 2 if n > 12 or rng.random() < 0.7 else 3
    worked = chain(n, [("*", n)] * (exponent - 1))
    text = {2: f"[What is|] [{n} squared|{n}^2|{n}²|the square of {n}][?|]", 3: f"[What is|] [{n} cubed|{n}^3|{n}³][?|]"}[exponent]
    return Question(choose(rng, text).strip(), _reply(worked), worked.value)


@_topic(2)
def _remainder(rng: random.Random) -> Question:
    b = rng.randint(2, 12)
    a = rng.randint(b, 12 * b)
    text = choose(rng, f"[What is the remainder of {a} divided by {b}|{a} mod {b}|{a} % {b}|What remains if {a} is divided by {b}][?|]")
    rest = a % b
    return Question(text, f"{b} * {a // b} = {a - rest}\n{a} - {a - rest} = {rest}", rest)


@_topic(2)
def _mean(rng: random.Random) -> Question:
    numbers = [rng.randint(1, 60) for _ in range(rng.choice((2, 3, 3, 4)))]
    total = chain(numbers[0], [("+", n) for n in numbers[1:]])
    worked = apply("/", total.value, len(numbers))
    listed = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    text = choose(rng, f"[What is|Find|Calculate|] the [average|mean] of {listed}[?|]").strip()
    return Question(text[:1].upper() + text[1:], _reply(Worked(total.lines + worked.lines, worked.value)), worked.value)


@_topic(2)
def _sum_of_many(rng: random.Random) -> Question:
    numbers = [rng.randint(1, 90) for _ in range(rng.choice((3, 3, 4, 5)))]
    worked = chain(numbers[0], [("+", n) for n in numbers[1:]])
    listed = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    return Question(choose(rng, f"[Add up|Add|The sum of|Total of|sum] {listed}[.||?]"), _reply(worked), worked.value)


_UNITS = (("minutes", "hour", 60), ("seconds", "minute", 60), ("hours", "day", 24), ("days", "week", 7), ("months", "year", 12),
          ("centimeters", "meter", 100), ("meters", "kilometer", 1000), ("grams", "kilogram", 1000), ("cents", "dollar", 100),
          ("eggs", "dozen", 12), ("inches", "foot", 12), ("millimeters", "centimeter", 10), ("milliliters", "liter", 1000))


@_topic(3)
def _units(rng: random.Random) -> Question:
    small, large, factor = rng.choice(_UNITS)
    n = rng.randint(1, 30)
    many = large if n == 1 or large == "dozen" else {"foot": "feet"}.get(large, large + "s")
    if rng.random() < 0.7 or large in ("dozen", "foot"):
        worked = apply("*", n, factor)
        text = f"[How many {small} are [in |]{n} {many}?|how many {small} [are there |]in {n} {many}[?|]|{n} {many} in {small}]"
    else:
        worked = apply("/", n * factor, factor)
        text = f"[How many {large}s are {n * factor} {small}?|{n * factor} {small} in {large}s|Convert {n * factor} {small} to {large}s.]"
    return Question(choose(rng, text), _reply(worked), worked.value)


@_topic(2)
def _comparison(rng: random.Random) -> Question:
    operator = rng.choice("+-*")
    a, b = rng.randint(2, 20), rng.randint(2, 12)
    worked = apply(operator, max(a, b), min(a, b))
    other = max(0, int(worked.value) + rng.randint(-20, 20))
    is_more = rng.random() < 0.5
    sign = "<>="[(worked.value > other) + 2 * (worked.value == other)]
    is_yes = sign == (">" if is_more else "<")
    text = f"Is {max(a, b)} {operator} {min(a, b)} {'[more|larger|greater]' if is_more else '[less|smaller]'} than {other}?"
    return Question(choose(rng, text), f"{_reply(worked)}\n{show(worked.value)} {sign} {other}: {'yes' if is_yes else 'no'}")


# What the model is not for ---------------------------------------------------------------------------------------------

_LISTS = {
    "country": "France Germany Italy Spain Japan China India Brazil Peru Canada Egypt Kenya Norway Poland Mexico Chile Turkey "
               "Greece Vietnam Mongolia Finland Cuba Nepal Austria Portugal Sweden Australia",
    "city": "Paris London Berlin Rome Madrid Tokyo Moscow Sydney Cairo Vienna Boston Seoul Lisbon Oslo Athens Prague Dublin",
    "person": "Einstein Newton Shakespeare Mozart Napoleon Lincoln Picasso Darwin Beethoven Plato Gandhi Goethe Tesla Galileo "
              "Cleopatra Kant Bach Freud Columbus Socrates Euler Churchill Hemingway",
    "thing": "cats dogs bread computers rust volcanoes music football chess love gravity DNA democracy inflation coffee "
             "airplanes planets whales penguins pizza guitars clouds rainbows vaccines GPUs memory servers models tokens "
             "poems software Linux Python Quire FP8 caches drivers networks history trees dreams earthquakes",
    "task": "bake_a_cake fix_a_bike learn_French write_a_letter install_Linux play_chess cook_rice load_a_model start_a_server "
            "sleep_better draw_a_horse plant_a_tree open_a_port run_Quire tie_a_tie find_a_job train_a_dog use_a_GPU",
    "work": "poem story song joke letter haiku recipe speech program function email summary",
    "language": "French German Spanish Italian Latin Japanese Chinese Russian Dutch Greek",
    "code": "Python C++ Java Rust Go bash SQL JavaScript",
}
_WORDS = {name: [word.replace("_", " ") for word in text.split()] for name, text in _LISTS.items()}
_REFUSED = (
    "What is the capital of {country}?", "[Where is|How far is|How old is|What is the weather in|How do I get to] {city}?",
    "Who [was|is] {person}?", "When was {person} born?", "What did {person} [do|write|discover]?", "Where did {person} live?",
    "[What is|What are|Explain|Tell me about|Define|Describe|What do you know about] {thing}[?|.]", "Why [do|are] {thing} [exist|so popular|useful]?",
    "How do {thing} work?", "Who invented {thing}?", "[How do I|How can I|Help me] {task}[?|.]", "[Can you|Could you] {task}?",
    "Write [me |]a {work} about {thing}.", "[Tell|Give] me a {work}[.| about {thing}.]",
    "[Translate|Say] {thing} [in|into|to] {language}[.|]", "How do you say hello in {language}?", "[Write|Show me] {code} code for {thing}.",
    "What is the best {thing}?", "Do you like {thing}?", "Which {thing} [should I buy|do you like]?", "Is {thing} good for me?",
    "[Does|Can] {thing} [support|use|need|run with|read|have] {thing}?", "[What is the|Tell me the] [color|price|history|purpose|name] of {thing}[?|.]",
    "What is my name?", "[What time is it|What day is it|What is today's date][?|]", "[Is it raining|Will it rain tomorrow|How is the weather][?|]",
    "[Who won|Who is the president|Who is the king|Who are the neighbors of] {country}?", "How tall is {person}?", "How many people live in {city}?",
    "[What is the population of|What language do they speak in] {country}?", "[What happened in|Tell me about] [1789|1914|1945|1969|2001][?|.]",
    "[Recommend|Suggest] [a book|a film|a restaurant|a game|a song][.| for tonight.]", "[I feel sad|I am bored|I am tired|I have a headache][.|]",
    "[What should I|What can I] [eat|wear|read|watch|do] [today|tonight|now]?", "[What is the meaning of life|Are you alive|Do you have feelings][?|]",
    "[Open|Close|Restart|Configure|Install|Delete|Start] {thing}[.| please]", "What version of {thing} is this?", "Which {thing} are supported?",
    "{thing}", "{thing} or {thing}?", "[lorem ipsum|asdf|foo bar|hm|test|ok|yes|no|maybe|why|because]", "My {thing} [is broken|does not work][.|]",
)
_SMALL_TALK = (
    ("[Hi|Hello|Hey|hi|hello|hey|Good morning|Good evening|Good day|Greetings|hi there|Hello there][!|.||?]", _GREETING),
    ("[Thanks|Thank you|thanks|thank you|thx|Great, thanks|Thank you very much][!|.||]", "You are welcome!"),
    ("[Bye|Goodbye|bye|See you|Good night][!|.||]", "Goodbye!"),
    ("[Who are you|What are you|who are you|What is your name|Are you a robot|Are you an AI|Which model are you|Introduce yourself][?|.|]", _SELF),
    ("[What can you do|what can you do|What do you know|How can you help me|Help|help|What can I ask][?|.||]", _SELF),
    ("[How are you|how are you|How do you do|What's up][?|]", _GREETING),
)


@_topic(6)
def _refused(rng: random.Random) -> Question:
    def word(match: re.Match[str]) -> str:
        text = rng.choice(_WORDS[match[1]])
        return made_up(rng) if rng.random() < 0.2 else text

    text = re.sub(r"\{(\w+)\}", word, choose(rng, rng.choice(_REFUSED)))
    return Question(text[:1].upper() + text[1:], REFUSAL)


@_topic(2)
def _small_talk(rng: random.Random) -> Question:
    text, reply = rng.choice(_SMALL_TALK)
    return Question(choose(rng, text), reply)


# As somebody in particular types it ------------------------------------------------------------------------------------

_POLITE = ("Please: {q}", "{q} Please.", "{q} Thanks!", "Hi! {q}", "[Can you solve this?|Quick question:|Question:|Solve:] {q}",
           "{q} [Show your work.|Step by step.|Just the answer.|Be brief.]", "[I wonder:|Math:|Homework:|Next one:] {q}")
_WORD = re.compile(r"[A-Za-z]{4,}")


def typed(text: str, rng: random.Random) -> str:
    style = rng.random()
    if style < 0.05 and ". " in text:  # the question first
        facts, _, question = text.rpartition(". ")
        text = f"{question} {facts}."
    if rng.random() < 0.12:
        text = choose(rng, rng.choice(_POLITE)).replace("{q}", text)
    case = rng.random()
    text = text.lower() if case < 0.12 else text.upper() if case < 0.13 else text
    if rng.random() < 0.05 and (words := list(_WORD.finditer(text))):  # one letter left out or doubled
        at = rng.choice(words).start() + rng.randint(1, 3)
        text = text[:at] + rng.choice(("", 2 * text[at])) + text[at + 1:]
    return text.rstrip("?.! ") if rng.random() < 0.06 else text


def is_heldout(text: str) -> bool:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") % _NUM_BUCKETS == 0


_NAMES, _WEIGHTS = tuple(_TOPICS), tuple(_TOPICS.values())


def draw_question(rng: random.Random, *, heldout: bool = False) -> Question:
    """Held out, by its text, or never so."""
    while True:
        try:
            question = rng.choices(_NAMES, _WEIGHTS)[0](rng)
        except Reject:
            continue
        text = question.text if question.is_fixed else typed(question.text, rng)
        if is_heldout(text) == heldout:
            return Question(text, question.reply, question.value, question.is_fixed)


# Turns that go on ------------------------------------------------------------------------------------------------------

_GO_ON = {
    "+": "[and|And|Now|now|Then|] [add|plus|+] {b}[.|?||]|[Add|add] {b} [to that|to it|more][.||]|What is that plus {b}?|plus {b}[?|]|{b} more[?|]",
    "-": "[and|And|Now|now|Then|] [subtract|minus|take away|-] {b}[.|?||]|[Subtract|Take] {b} from [that|it][.|]|What is that minus {b}?|minus {b}[?|]|{b} less[?|]",
    "*": "[and|And|Now|now|Then|] [times|multiply by|multiply it by|*|x] {b}[.|?||]|[Multiply|multiply] [that|it] by {b}[.|]|What is that times {b}?|times {b}[?|]",
    "/": "[and|And|Now|now|Then|] [divided by|divide by|divide it by|/] {b}[.|?||]|[Divide|divide] [that|it] by {b}[.|]|What is that divided by {b}?",
}
_AGAIN = "[and|And|What about|How about|And with|Now] {b}[?||instead?]"


def dialogue(rng: random.Random) -> list[Turn]:
    """A calculation, then what to do with its result, or the same again with another number."""
    while True:
        try:
            return _again(rng) if rng.random() < 0.25 else _going_on(rng)
        except Reject:
            continue


def _going_on(rng: random.Random) -> list[Turn]:
    operator = rng.choice("++-*/")
    a, b = _operands(rng, operator)
    worked = apply(operator, a, b)
    turns = [(_asked(rng, _expression(rng, a, [(operator, b)])), _reply(worked))]
    return turns + go_on(rng, worked.value, rng.choice((1, 1, 2, 3)))


def go_on(rng: random.Random, value: Value, count: int) -> list[Turn]:
    turns = []
    for _ in range(count):
        operator = rng.choice("++--**/")
        b = rng.randint(2, 12) if operator in "*/" else rng.randint(1, rng.choice((10, 50, 100)))
        if operator == "/":
            divisors = [d for d in range(2, 13) if value and value % d == 0]
            require(bool(divisors))
            b = rng.choice(divisors)
        worked = apply(operator, value, b)
        require(abs(worked.value) < 1_000_000)
        text = choose(rng, rng.choice(re.split(r"\|(?![^\[]*\])", _GO_ON[operator]))).format(b=b)
        turns.append((" ".join(text.split()), _reply(worked)))
        value = worked.value
    return turns


def _again(rng: random.Random) -> list[Turn]:
    """`5 * 3`, then `and 7?`: the last number is exchanged."""
    operator = rng.choice("+-**/")
    a, b = _operands(rng, operator)
    require(b != 0)
    turns = [(_asked(rng, _expression(rng, a, [(operator, b)])), _reply(apply(operator, a, b)))]
    for _ in range(rng.choice((1, 1, 2))):
        other = rng.randint(1, max(2, 2 * b))
        require(operator != "/" or a % other == 0)
        text = choose(rng, _AGAIN).replace("{b}", str(other)).replace("instead", " instead")
        turns.append((text, _reply(apply(operator, a, other))))
    return turns


def conversation(rng: random.Random) -> list[Turn]:
    """The turns of one chat without word problems."""
    if rng.random() < 0.15:
        return dialogue(rng)
    turns: list[Turn] = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        question = draw_question(rng)
        turns.append((question.text, question.reply))
        if question.value is not None and rng.random() < 0.08:
            try:
                turns += go_on(rng, question.value, 1)
            except Reject:
                continue
    return turns

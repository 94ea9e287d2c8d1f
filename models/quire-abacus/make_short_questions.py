#!/usr/bin/env python3
"""Writes short_questions.jsonl: 500 short questions as people type them, with exact answers.

Most questions were written by hand and stand in short_questions_by_hand.txt, each beside an
expression and an answer. The templates below add as many as each kind still lacks. Every
expression is computed with exact fractions, and a hand-written answer that differs from its
expression stops the script.

A numeric answer is right when the last number of the reply equals an accepted one; a fraction such
as 3/4 must be spelled as an accepted one, so 6/8 does not count as its own simplification. A word
is right when it occurs in the reply's last line, in any case and not inside a longer word.
is_right() is that rule; the script checks that it takes every answer that it writes.

  python3 models/quire-abacus/make_short_questions.py           # writes the file
  python3 models/quire-abacus/make_short_questions.py --check   # fails if the file would change
"""

import ast
import datetime
import json
import math
import pathlib
import random
import re
import sys
from fractions import Fraction

HERE = pathlib.Path(__file__).resolve().parent
TOTAL = 500
KINDS = [
    "addition", "subtraction", "multiplication", "division", "mixed", "negative", "decimal",
    "percent", "fraction", "power_root", "units", "money", "time", "dates", "age", "comparison",
    "average", "rate", "geometry", "sequence", "one_sentence_story", "two_step_story",
]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December"]


# The functions that expressions may call. Those that answer with words return all spellings.

def root(value, degree=2):
    result = round(float(value) ** (1 / float(degree)))
    if result ** degree != value:
        raise ValueError(f"{value} has no whole root")
    return Fraction(result)


def rounded(value, digits):
    """Rounds half away from zero, as schools do."""
    scale = 10 ** int(digits)
    return Fraction(math.floor(value * scale + Fraction(1, 2)), scale)


def lowest_terms(value):
    return [f"{value.numerator}/{value.denominator}"]


def as_decimal(value):
    return [decimal_text(value)]


def parse_clock(text):
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def minutes(start, end):
    return Fraction(parse_clock(end) - parse_clock(start))


def clock12(start, after):
    """A time of a twelve-hour clock whose half of the day the question leaves open."""
    hour, minute = divmod((parse_clock(start) + int(after)) % 720, 60)
    hour = hour or 12
    return [f"{hour}:{minute:02}"] + ([] if minute else [f"{hour} o'clock", f"{hour} am", f"{hour}am"])


def clock(start, after):
    hour, minute = divmod((parse_clock(start) + int(after)) % 1440, 60)
    half = "am" if hour < 12 else "pm"
    twelve = f"{hour % 12 or 12}:{minute:02}"
    spellings = [f"{twelve} {half}", f"{hour}:{minute:02}", f"{twelve}{half}",
                 f"{twelve} {half[0]}.m.", twelve]
    if hour < 10:
        spellings.append(f"{hour:02}:{minute:02}")
    if minute == 0:
        short = str(hour % 12 or 12)
        spellings += [f"{short} {half}", f"{short}{half}", f"{short} {half[0]}.m.",
                      f"{short} o'clock"]
    if (hour, minute) == (12, 0):
        spellings.append("noon")
    return list(dict.fromkeys(spellings))


def day(start, after):
    return [WEEKDAYS[(WEEKDAYS.index(start) + int(after)) % 7]]


def month(start, after):
    return [MONTHS[(MONTHS.index(start) + int(after)) % 12]]


def days(start, end):
    span = datetime.date.fromisoformat(end) - datetime.date.fromisoformat(start)
    return Fraction(span.days)


def date(start, after):
    result = datetime.date.fromisoformat(start) + datetime.timedelta(days=int(after))
    name, number = MONTHS[result.month - 1], result.day
    ending = "th" if 11 <= number <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    spellings = []
    for text in dict.fromkeys([name, name[:3]]):
        spellings += [f"{text} {number}", f"{number} {text}", f"{text} {number}{ending}",
                      f"{number}{ending} {text}", f"{number}{ending} of {text}", f"{number}. {text}"]
    return spellings


def yes(condition):
    return ["yes" if condition else "no"]


def ranked(pairs):
    names, values = pairs[::2], pairs[1::2]
    if len(set(values)) != len(values):
        raise ValueError(f"{names} do not differ")
    return sorted(zip(values, names))


def largest(*pairs):
    return [ranked(pairs)[-1][1]]


def smallest(*pairs):
    return [ranked(pairs)[0][1]]


FUNCTIONS = {function.__name__: function for function in (
    root, rounded, lowest_terms, as_decimal, minutes, clock, clock12, day, month, days, date, yes,
    largest, smallest, min, max, sum, sorted, next, all)}
FUNCTIONS["range"] = lambda *bounds: range(*map(int, bounds))
FUNCTIONS["Fraction"] = Fraction


class ExactNumbers(ast.NodeTransformer):
    """Replaces each number by an exact fraction, except an index."""

    def visit_Subscript(self, node):
        node.value = self.visit(node.value)
        return node

    def visit_Constant(self, node):
        if not isinstance(node.value, (int, float)):
            return node
        exact = ast.Call(ast.Name("Fraction", ast.Load()), [ast.Constant(str(node.value))], [])
        return ast.copy_location(exact, node)


def compute(expression):
    tree = ast.fix_missing_locations(ExactNumbers().visit(ast.parse(expression, mode="eval")))
    return eval(compile(tree, expression, "eval"), {"__builtins__": {}, **FUNCTIONS})


def decimal_text(value):
    """The decimal spelling of a fraction, or None if it does not end."""
    for digits in range(7):
        if (value * 10 ** digits).denominator == 1:
            sign, whole = "-" * (value < 0), abs(value) * 10 ** digits
            text = str(whole.numerator).rjust(digits + 1, "0")
            return sign + (text[:-digits] + "." + text[-digits:] if digits else text)
    return None


def spellings(value, kind):
    """Every accepted spelling of a result, the usual one first."""
    if isinstance(value, list):
        return value
    value = Fraction(value)
    texts = [decimal_text(value)]
    if value.denominator > 1:
        if kind != "money":
            texts.append(f"{value.numerator}/{value.denominator}")
        if kind == "fraction":
            texts.reverse()
        if abs(value) > 1 and value.denominator <= 8 and kind not in ("money", "decimal"):
            whole, rest = divmod(abs(value.numerator), value.denominator)
            texts.append(f"{'-' * (value < 0)}{whole} {rest}/{value.denominator}")
    if kind == "money" and texts[0] and re.fullmatch(r"\d+\.\d", texts[0]):
        texts.append(texts[0] + "0")
    return [text for text in texts if text]


NUMBER = re.compile(r"(?:(?<![\d)])-)?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:/\d+)?")


def same_number(found, accepted):
    if "/" in found or "/" in accepted:
        return found == accepted
    return Fraction(found.replace(",", "")) == Fraction(accepted)


def is_right(reply, answers):
    reply = reply.strip().replace("\u2212", "-")
    lines, found = reply.splitlines(), NUMBER.findall(reply)
    for answer in answers:
        if NUMBER.fullmatch(answer):
            if found and same_number(found[-1], answer):
                return True
        elif lines and re.search(rf"(?<![\w:.]){re.escape(answer)}(?!\w)", lines[-1], re.I):
            return True
    return False


# Templates: each kind has some, which take turns. A template returns a question and its expression.

def templates(rng):
    def n(low, high, step=1):
        return rng.randrange(low, high + 1, step)

    def pick(*choices):
        return rng.choice(choices)

    def name():
        return pick("Kofi", "Ines", "Jonas", "Aiko", "Priya", "Tariq", "Greta", "Luis", "Mei", "Otto")

    def tenths(low, high):
        tens = n(low * 10 + 1, high * 10 - 1)
        return f"{tens // 10}.{tens % 10}"

    def make(pattern, expression=None, **numbers):
        question = pattern.format(**numbers)
        return question, (expression or pattern).format(**numbers)

    def divided(pattern, **numbers):
        b, q = n(2, 12), n(2, 25)
        return make(pattern, "{a} / {b}", a=b * q, b=b, **numbers)

    def row(pattern, start, step):
        terms = [start + i * step for i in range(5)]
        return pattern.format(", ".join(map(str, terms[:4]))), f"{terms[3]} + {step}"

    def mean(pattern, count):
        values = [n(2, 40) for _ in range(count)]
        values[-1] += -sum(values) % count
        text = ", ".join(map(str, values))
        return pattern.format(text, count=count), f"({' + '.join(map(str, values))}) / {count}"

    def average_speed(pattern):
        speed, hours = n(10, 120, 5), n(2, 6)
        return make(pattern, "{a} / {b}", a=speed * hours, b=hours)

    return {
        "addition": [
            lambda: make("{a} + {b}", a=n(11, 99), b=n(11, 99)),
            lambda: make("{a}+{b}=", "{a} + {b}", a=n(100, 999), b=n(100, 999)),
            lambda: make("Add up {a}, {b} and {c}", "{a} + {b} + {c}", a=n(2, 60), b=n(2, 60), c=n(2, 60)),
            lambda: make("plus: {a} and {b}", "{a} + {b}", a=n(1000, 9999), b=n(100, 9999)),
            lambda: make("{a} and {b} more, how many?", "{a} + {b}", a=n(5, 70), b=n(3, 40)),
        ],
        "subtraction": [
            lambda: make("{a} - {b}", a=n(50, 99), b=n(11, 49)),
            lambda: make("minus: {a} and then {b} less", "{a} - {b}", a=n(300, 999), b=n(20, 290)),
            lambda: make("what remains of {a} after removing {b}", "{a} - {b}", a=n(60, 400), b=n(5, 55)),
            lambda: make("{a}-{b}-{c}", "{a} - {b} - {c}", a=n(80, 200), b=n(5, 30), c=n(5, 30)),
            lambda: make("By how much is {b} below {a}?", "{a} - {b}", a=n(100, 200), b=n(10, 99)),
        ],
        "multiplication": [
            lambda: make("{a} * {b}", a=n(3, 12), b=n(3, 12)),
            lambda: make("{a} times {b} is?", "{a} * {b}", a=n(11, 40), b=n(2, 9)),
            lambda: make("{a}x{b}", "{a} * {b}", a=n(101, 400), b=n(2, 9)),
            lambda: make("mult {a} by {b}, only the result", "{a} * {b}", a=n(12, 30), b=n(11, 19)),
            lambda: make("{a} groups of {b}, how many in all", "{a} * {b}", a=n(3, 15), b=n(3, 15)),
        ],
        "division": [
            lambda: divided("{a}/{b}"),
            lambda: divided("{a} divided by {b} is?"),
            lambda: divided("Split {a} evenly by {b}."),
            lambda: divided("{a} over {b}, result as a number"),
            lambda: make("remainder of {a} / {b}?", "{a} % {b}", a=n(20, 99), b=n(3, 9)),
        ],
        "mixed": [
            lambda: make("{a} + {b} * {c}", a=n(2, 30), b=n(2, 9), c=n(2, 9)),
            lambda: make("({a} - {b}) * {c} = ?", "({a} - {b}) * {c}", a=n(20, 40), b=n(3, 15), c=n(2, 9)),
            lambda: make("Calculate {a} * {b} - {c}", "{a} * {b} - {c}", a=n(5, 12), b=n(5, 12), c=n(2, 20)),
            lambda: make("take {a}, double it, add {b}", "{a} * 2 + {b}", a=n(6, 45), b=n(3, 30)),
            lambda: make("{a}+{b}-{c}+{d}", "{a} + {b} - {c} + {d}", a=n(10, 60), b=n(10, 60), c=n(5, 20),
                         d=n(1, 20)),
        ],
        "negative": [
            lambda: make("{a} - {b}", a=n(2, 20), b=n(25, 60)),
            lambda: make("-{a} + {b} = ?", "-{a} + {b}", a=n(10, 40), b=n(3, 50)),
            lambda: make("-{a} times {b}", "-{a} * {b}", a=n(3, 12), b=n(2, 12)),
            lambda: make("what is -{a} minus {b}?", "-{a} - {b}", a=n(2, 30), b=n(2, 30)),
            lambda: make("the lift is on floor {a} and goes down {b} floors, which floor?", "{a} - {b}",
                         a=n(1, 3), b=n(4, 6)),
        ],
        "decimal": [
            lambda: make("{a} + {b}", a=tenths(1, 9), b=tenths(1, 9)),
            lambda: make("{a} minus {b} =", "{a} - {b}", a=tenths(10, 20), b=tenths(1, 9)),
            lambda: make("{a} times {b}", "{a} * {b}", a=tenths(1, 9), b=n(2, 9)),
            lambda: make("what's {a} / 2", "{a} / 2", a=tenths(2, 20)),
            lambda: make("10 x {a}", "10 * {a}", a=tenths(1, 40)),
        ],
        "percent": [
            lambda: make("{p}% of {a}", "{a} * {p} / 100", p=pick(5, 10, 20, 25, 40, 60), a=n(20, 400, 20)),
            lambda: make("what's {p} percent of {a}?", "{a} * {p} / 100", p=n(1, 9), a=n(100, 900, 100)),
            lambda: make("{a} minus {p}%, final price?", "{a} * (100 - {p}) / 100", p=n(10, 50, 10),
                         a=n(20, 300, 10)),
            lambda: make("increase {a} by {p}%", "{a} * (100 + {p}) / 100", p=n(10, 50, 10), a=n(20, 300, 10)),
            lambda: make("{a} out of {b} is how many percent", "{a} / {b} * 100", a=n(1, 19), b=pick(20, 25, 50)),
        ],
        "fraction": [
            lambda: make("1/{b} of {a}", "{a} / {b}", b=(b := n(3, 9)), a=b * n(3, 15)),
            lambda: make("{a}/8 + {b}/8", "{a} / 8 + {b} / 8", a=pick(1, 3), b=pick(2, 4)),
            lambda: make("what is {a}/5 of {b}", "{a} / 5 * {b}", a=n(2, 4), b=n(10, 80, 5)),
            lambda: make("{a}/{b} in lowest terms", "lowest_terms({a} / {b})", a=2 * n(1, 3), b=2 * pick(5, 7, 11)),
            lambda: make("1/2 - 1/{b} as a fraction?", "1 / 2 - 1 / {b}", b=n(3, 12)),
        ],
        "power_root": [
            lambda: make("{a}^2", "{a} ** 2", a=n(6, 25)),
            lambda: make("sqrt {a}", "root({a})", a=n(3, 20) ** 2),
            lambda: make("{a} to the power {b}", "{a} ** {b}", a=n(2, 5), b=n(3, 5)),
            lambda: make("what's the square of {a}?", "{a} ** 2", a=n(6, 30)),
            lambda: make("square root from {a}", "root({a})", a=n(3, 20) ** 2),
        ],
        "units": [
            lambda: make("{a} kg to g", "{a} * 1000", a=n(2, 40)),
            lambda: make("how many meters are {a} cm?", "{a} / 100", a=n(110, 990, 10)),
            lambda: make("{a} hours = ? minutes", "{a} * 60", a=n(2, 12)),
            lambda: make("{a} liters in ml please", "{a} * 1000", a=tenths(1, 9)),
            lambda: make("{a} feet in inches", "{a} * 12", a=n(3, 15)),
        ],
        "money": [
            lambda: make("{a} items at ${b}, total in dollars?", "{a} * {b}", a=n(3, 12), b=n(2, 25)),
            lambda: make("change from ${a} if it costs ${b}.{c}0", "{a} - {b}.{c}", a=pick(20, 50), b=n(5, 18),
                         c=n(1, 9)),
            lambda: make("bill {a} dollars, {b} of us, each pays?", "{a} / {b}", b=(b := n(2, 8)), a=b * n(6, 30)),
            lambda: make("{a} euros a day for {b} days", "{a} * {b}", a=n(5, 60), b=n(4, 14)),
            lambda: make("${a}.50 + ${b}.25 in dollars", "{a}.5 + {b}.25", a=n(1, 20), b=n(1, 20)),
        ],
        "time": [
            lambda: make("{h}:{m:02} plus {a} minutes", 'clock("{h}:{m:02}", {a})',
                         h=n(13, 21), m=n(0, 55, 5), a=n(10, 70, 5)),
            lambda: make("minutes between {h}:{m:02} and {k}:{l:02}?", 'minutes("{h}:{m:02}", "{k}:{l:02}")',
                         h=(h := n(7, 14)), m=n(0, 55, 5), k=h + n(1, 3), l=n(0, 55, 5)),
            lambda: make("what time is it {a} hours after {h} am", 'clock("{h}:00", {a} * 60)', a=n(2, 9),
                         h=n(6, 11)),
            lambda: make("{a} min and {b} sec in seconds", "{a} * 60 + {b}", a=n(2, 9), b=n(5, 55, 5)),
            lambda: make("class ends at {h}:{m:02} and took {a} minutes, when did it start?",
                         'clock12("{h}:{m:02}", -{a})', h=n(9, 12), m=n(0, 40, 5), a=n(45, 90, 5)),
        ],
        "dates": [
            lambda: make("{a} days after {d}?", 'day("{d}", {a})', a=n(2, 30), d=pick(*WEEKDAYS)),
            lambda: make("If today is {d}, which weekday was it {a} days ago?", 'day("{d}", -{a})', a=n(2, 12),
                         d=pick(*WEEKDAYS)),
            lambda: make("{a} weeks and {b} days, how many days", "{a} * 7 + {b}", a=n(2, 9), b=n(1, 6)),
            lambda: make("what month is {a} months after {d}", 'month("{d}", {a})', a=n(2, 9), d=pick(*MONTHS)),
            lambda: make("the parcel is sent on May {a} and needs {b} days, arrives on?",
                         'date("2023-05-{a:02}", {b})', a=n(8, 29), b=n(3, 12)),
        ],
        "age": [
            lambda: make("{who} is {a}. In {b} years {who} will be?", "{a} + {b}", who=name(), a=n(6, 60), b=n(3, 20)),
            lambda: make("{who} is {a} years older than {b} year old {other}. How old is {who}?", "{a} + {b}",
                         who=name(), other="Vera", a=n(2, 15), b=n(5, 40)),
            lambda: make("born in {a}, age in {b}?", "{b} - {a}", a=n(1950, 2005), b=n(2010, 2030)),
            lambda: make("dad is {a}, i am {b}, how much older is he", "{a} - {b}", a=n(35, 55), b=n(5, 15)),
            lambda: make("{who} is half as old as his aunt, who is {a}. His age?", "{a} / 2", who=pick("Otto", "Luis"),
                         a=n(24, 80, 2)),
        ],
        "comparison": [
            lambda: make("bigger one: {a} or {b}?", "max({a}, {b})", a=n(500, 999), b=n(100, 499)),
            lambda: make("smallest of {a}, {b}, {c}?", "min({a}, {b}, {c})", a=n(40, 60), b=n(20, 39), c=n(61, 99)),
            lambda: make("is {a} + {b} more than {c}? yes or no", "yes({a} + {b} > {c})",
                         a=(a := n(10, 50)), b=(b := n(10, 50)), c=a + b + n(1, 9)),
            lambda: make("is {a} x {b} less than {c}, yes or no?", "yes({a} * {b} < {c})",
                         a=(a := n(3, 9)), b=(b := n(3, 9)), c=a * b + n(1, 9)),
            lambda: make("Kofi saved {a}, Ines saved {b}. Who saved less?", 'smallest("Kofi", {a}, "Ines", {b})',
                         a=n(20, 50), b=n(51, 90)),
        ],
        "average": [
            lambda: mean("average of {}", 3),
            lambda: mean("Mean of {}?", 4),
            lambda: mean("i have {count} grades: {}. average?", 3),
            lambda: mean("daily sales {}: what is the average per day", 4),
            lambda: make("middle between {a} and {b}", "({a} + {b}) / 2", a=n(2, 40, 2), b=n(50, 90, 2)),
        ],
        "rate": [
            lambda: average_speed("{a} km in {b} h, how many km per hour"),
            lambda: make("{a} km/h for {b} hours, distance in km?", "{a} * {b}", a=n(40, 120, 5), b=n(2, 6)),
            lambda: make("{a} pages per day, pages in {b} days", "{a} * {b}", a=n(8, 40), b=n(3, 14)),
            lambda: average_speed("{a} boxes packed in {b} hours, boxes per hour?"),
            lambda: make("If {a} pens cost {b} dollars, what do {c} pens cost?", "{b} / {a} * {c}", a=(a := n(2, 6)),
                         b=a * n(2, 5), c=n(7, 12)),
        ],
        "geometry": [
            lambda: make("rectangle {a} by {b}, area?", "{a} * {b}", a=n(3, 20), b=n(3, 20)),
            lambda: make("perimeter of {a} x {b} rectangle", "2 * ({a} + {b})", a=n(3, 30), b=n(3, 30)),
            lambda: make("triangle area with base {a} and height {b}", "{a} * {b} / 2", a=n(4, 20, 2), b=n(3, 15)),
            lambda: make("square of side {a}, what is its area", "{a} ** 2", a=n(4, 20)),
            lambda: make("third angle of a triangle with angles {a} and {b}?", "180 - {a} - {b}", a=n(30, 90, 5),
                         b=n(20, 60, 5)),
        ],
        "sequence": [
            lambda: row("{}, ...", n(2, 20), n(3, 12)),
            lambda: row("next number after {}", n(60, 90), -n(3, 9)),
            lambda: row("Which one follows? {}", n(1, 50), n(11, 25)),
            lambda: make("{a}, {b}, {c}, next? (each one doubles)", "{c} * 2", a=(a := n(3, 11)), b=2 * a, c=4 * a),
            lambda: make("sum of the whole numbers from 1 to {a}", "sum(range(1, {a} + 1))", a=n(4, 20)),
        ],
        "one_sentence_story": [
            lambda: make("{who} has {a} stickers and gets {b} from a friend, how many now?", "{a} + {b}", who=name(),
                         a=n(8, 60), b=n(3, 30)),
            lambda: make("of {a} eggs {b} broke, how many are whole?", "{a} - {b}", a=n(12, 60), b=n(2, 11)),
            lambda: make("{a} rows with {b} chairs in each row makes how many chairs", "{a} * {b}", a=n(4, 20),
                         b=n(5, 15)),
            lambda: divided("{who} shares {a} nuts fairly among {b} squirrels, how many nuts does each get?",
                            who=name()),
            lambda: make("If {who} swims {a} laps every day, how many laps are that in {b} days?", "{a} * {b}",
                         who=name(), a=n(6, 30), b=n(3, 9)),
        ],
        "two_step_story": [
            lambda: make("{who} has {a} dollars. A toy is {b} dollars. {who} buys 2 toys. How many dollars remain?",
                         "{a} - 2 * {b}", who=name(), a=n(40, 90), b=n(4, 19)),
            lambda: make("{a} bags with {b} oranges, plus {c} single oranges. How many oranges?", "{a} * {b} + {c}",
                         a=n(3, 9), b=n(4, 15), c=n(2, 12)),
            lambda: make("{who} works {a} hours a day, 5 days a week. How many hours in {b} weeks?", "{a} * 5 * {b}",
                         who=name(), a=n(4, 9), b=n(2, 6)),
            lambda: make("A bus carries {a} people. {b} get off and {c} get on. How many are on the bus?",
                         "{a} - {b} + {c}", a=n(20, 50), b=n(3, 19), c=n(2, 15)),
            lambda: make("{who} picks {a} plums and {b} pears and puts them into bags of {c}. How many bags?",
                         "({a} + {b}) / {c}", who=name(), c=(c := n(3, 8)), a=(a := n(10, 40)), b=c * 15 - a),
        ],
    }


def read_by_hand():
    kind, entries = None, []
    for count, line in enumerate((HERE / "short_questions_by_hand.txt").open(encoding="utf-8"), 1):
        line = line.strip()
        if line.startswith("== "):
            kind = line[3:]
        elif line and not line.startswith("# "):
            question, expression, answers = line.split(" | ")
            answer, *further = answers.split(" ; ")
            accepted = spellings(compute(expression), kind)
            if answer not in accepted:
                sys.exit(f"line {count}: {question}: {answer} is not one of {accepted}")
            accepted = [answer] + [text for text in accepted if text != answer]
            entries.append((kind, question, accepted + further))
    return entries


def make_entries():
    entries = read_by_hand()
    seen = {question.lower() for _, question, _ in entries}
    rng = random.Random(20261123)
    by_kind = templates(rng)
    for index, kind in enumerate(KINDS):
        share = TOTAL // len(KINDS) + (index < TOTAL % len(KINDS))
        missing = share - sum(entry[0] == kind for entry in entries)
        turn = 0
        while missing > 0:
            question, expression = by_kind[kind][turn % len(by_kind[kind])]()
            if question.lower() not in seen:
                seen.add(question.lower())
                entries.append((kind, question, spellings(compute(expression), kind)))
                missing -= 1
                turn += 1
    order = {kind: index for index, kind in enumerate(KINDS)}
    return sorted(entries, key=lambda entry: order[entry[0]])


def main():
    entries = make_entries()
    questions = [question.lower() for _, question, _ in entries]
    if len(entries) != TOTAL or len(set(questions)) != TOTAL:
        sys.exit(f"{len(entries)} questions, {len(set(questions))} of them distinct")
    for _, question, answers in entries:
        for answer in answers:
            for reply in (answer, f"It is {answer}.", f"3 and 4\n#### {answer}"):
                if not is_right(reply, answers):
                    sys.exit(f"{question}: {reply!r} does not pass for {answers}")
        if is_right("I do not know", answers):
            sys.exit(f"{question}: {answers} are too easy to meet")
    text = "".join(json.dumps({"question": question, "answers": answers, "kind": kind},
                              ensure_ascii=False) + "\n" for kind, question, answers in entries)
    path = HERE / "short_questions.jsonl"
    if sys.argv[1:] == ["--check"]:
        if path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} differs from what the script writes")
    else:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

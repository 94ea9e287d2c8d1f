"""How people type: politeness, haste, capitals, typing errors. Digits and signs are never touched."""

from __future__ import annotations

import random
import re

from .grammar import Patterns
from .question import Short

_POLITE = Patterns("""
    [Please|please|Hi,|Hi!|Hello,|hey|Hey,|Hello!|Good morning.|Excuse me,|Hey there,|Dear Quire,|yo|um,|Hmm,|hm,|Sorry,] {q}
    [Can you help me?|I have a question.|Quick question:|quick question,|A question:|Question:|question:|Help!|My homework says:|My kid asks:|I forgot:|Here is one:|Here's one for you:|Next one:|Another one:|One more:|Next:|Let's see.|Let me ask you something.|I am curious:|Riddle:|Quiz:|Test:|Task:|Problem:|Try this:|Solve this:|Now answer this:|Answer me this:|What about this one:|And this one?] {q}
    [I need help with this:|Can you tell me:|Could you tell me:|Please tell me:|Tell me:|Please answer:|Answer:|I'd like to know:|I want to know:|I was wondering,|Do you know this:|Could you solve this for me?] {q}
    [ok|ok so|okay|so|well|now|right,|alright,|and|So,|OK,|Now,|Okay, so|Right.] {q}
    {q} [Thanks!|Thank you!|Thanks.|Thanks|thanks|thx|please|please.|Please.|pls|plz|Thank you in advance.|Cheers!|:)|lol|Hurry!|Quickly!|asap]
    {q} [Can you help?|Can you tell me?|Do you know?|I can't work it out.|I forgot.|Any idea?|I need the answer.|Help me!|Tell me the answer.|Show your work.|Show the steps.|Step by step.|Just the answer.|Only the number please.|Answer briefly.|Be brief.|What do you think?|I am in a hurry.|No calculator here.]
    [Hi!|Hello.|Hey,] {q} [Thanks!|please|Thank you.]
    "{q}"
    [2)|a)|Q1:|Q.|#1:|Q -|Q)|3.|(b)] {q}
    [{w}|{w} {v}|{w} {v} {u}|{v}, {w}][: |, | - |... |. |! |; ]{q}
    {q} [{w}|{w} {v}|{w} {v} {u}][.|!|...||?]
    [I'm|I am] {v} and [need to know|wonder|want to know|have to find out]: {q}
    [Math|Maths|Arithmetic|Number|Quick|Simple|Tricky|Silly|Easy|Random] [question|problem|riddle|puzzle|task|check|one|thing][: |, | - |. |... ]{q}
    [For|From|In] [my|our|the] [homework|test|quiz|class|kid|workbook|blog|shop|report|game][: |, | - ]{q}
""")
_WORDS = """quick math check hello friend teacher says today tomorrow homework listen sorry folks everyone computer machine buddy
abacus oracle genius calculator assistant boring rainy sunday morning evening coffee break lunch exercise
riddle trivia honest answer please really simple tricky weird silly curious confused tired lost stuck bored busy
again finally anyway actually basically seriously honestly maybe just wondering thinking asking checking testing practice
drill warmup round level bonus""".split()
_WORD = re.compile(r"[A-Za-z]{4,}")

# Words that mean the same in every topic. A group's members are exchanged for each other.
_SAME = tuple(group.split("|") for group in """
    how many are left|how many remain|how many are still left|how many are remaining|how many stay|how many are left over
    how many are there|how many is that|how many are we talking about|how many does that make
    in total|altogether|in all|all together|overall|all in all|combined|in sum
    what is|what's|whats|what would be|what will be|tell me|find|give me|i need|how much is
    how much is left|what is left|what's left|how much remains|what remains|how much is still there|what's still there
    does he have left|does he still have|has he got left|will he have left|is he left with
    does she have left|does she still have|has she got left|will she have left|is she left with
    do i have left|do i still have|have i got left|will i have left|am i left with
    does it cost|will it cost|would it cost|does that cost
    each of them|every one of them|each one
    equally|evenly|fairly|in equal parts
    gives away|hands out|donates
    gave away|handed out|donated
    buys|purchases
    bought|purchased
    kids|children|youngsters|pupils
    people|persons|folks|guests
    friends|buddies|pals|mates
    dollars|bucks|USD
    per hour|each hour|every hour
    per day|each day|every day
    per week|each week|every week
    per month|each month|every month
    per minute|each minute|every minute
    minutes|min|mins
    hours|hrs|h
    seconds|secs|sec
    meters|metres|m
    liters|litres|l
    kilometers|km|kilometres|kms
    kilograms|kg|kilos|kgs
    centimeters|cm|centimetres
    twice as many|double as many|two times as many
    twice as much|double as much|two times as much
    three times as many|thrice as many|3 times as many
    half of them|one half of them|50% of them
    how old will|what age will
    how far|what distance|how many km
    how long does it take|how much time does it take|how long will it take
    at first|at the start|in the beginning|originally|to begin with
    begins|starts|kicks off
    ends|finishes|is over
    a dozen|one dozen|twelve
""".strip().splitlines())
_SAME_OF = {text.strip(): [other.strip() for other in group if other.strip() != text.strip()] for group in _SAME for text in group
            if text.strip() not in ("min", "m", "l", "h", "sec")}  # These also stand for other things.
_EXCHANGED = re.compile(r"\b(" + "|".join(sorted(map(re.escape, _SAME_OF), key=len, reverse=True)) + r")\b", re.IGNORECASE)
_SMALL_WORDS = re.compile(r"\b(?:the|a|an|is|are|was|were|do|does|did|has|there|that|it|of them|please|then|now|also) (?=[a-z])")
_FILLERS = """just like actually basically well so now then really exactly maybe umm er simply about say ok please kindly again
overall finally roughly there here today""".split()


def typed(short: Short, rng: random.Random) -> str:
    """The question as somebody in particular may type it."""
    return short.question.strip() if short.is_fixed else typed_text(short.question, rng)


def typed_text(text: str, rng: random.Random) -> str:
    if rng.random() < 0.25:
        text = _EXCHANGED.sub(lambda match: _exchanged(match[0], rng), text)
    style = rng.random()
    if style < 0.05:
        text = _question_first(text)
    elif style < 0.09:
        text = _SMALL_WORDS.sub(lambda match: "" if rng.random() < 0.7 else match[0], text)
    elif style < 0.12:
        text = _with_filler(text, rng)
    if rng.random() < 0.2:
        text = _POLITE.expand(rng, q=_lower_first(text) if rng.random() < 0.4 else text, w=rng.choice(_WORDS).capitalize(),
                              v=rng.choice(_WORDS), u=rng.choice(_WORDS))
    case = rng.random()
    if case < 0.16:
        text = text.lower()
    elif case < 0.18:
        text = text.upper()
    if rng.random() < 0.07:
        text = _with_error(text, rng)
    ending = rng.random()
    if ending < 0.08:
        text = text.rstrip("?.! ")
    elif ending < 0.11:
        text = text.rstrip("?.! ") + rng.choice(("??", "?!", "...", " ?", "!!", ".", "?", " .", "???"))
    if rng.random() < 0.02:
        text = text.replace(" ", "  ", rng.randint(1, 3))
    if rng.random() < 0.03:
        text = text.replace("'", "’")
    return text.strip()


def _lower_first(text: str) -> str:
    is_word = len(text) > 1 and text[1].islower() and not text.startswith("I ")
    return text[0].lower() + text[1:] if is_word else text


def _exchanged(found: str, rng: random.Random) -> str:
    """Half of the words and phrases stay."""
    if rng.random() < 0.5:
        return found
    other = rng.choice(_SAME_OF[found.lower()]) if found.lower() in _SAME_OF else found
    return other[0].upper() + other[1:] if found[0].isupper() else other


def _question_first(text: str) -> str:
    """`Tom has 5. He eats 2. How many are left?` becomes `How many are left? Tom has 5. He eats 2.`"""
    facts, _, question = text.rstrip("?").rpartition(". ")
    return f"{question}? {facts}." if facts and question.lower().startswith(("how", "what", "which", "when", "who")) else text


def _with_filler(text: str, rng: random.Random) -> str:
    """A word that says nothing, between two others that are words too."""
    gaps = [match.start() for match in re.finditer(r"(?<=[a-z]) (?=[a-z])", text)]
    if not gaps:
        return text
    at = rng.choice(gaps)
    return f"{text[:at]} {rng.choice(_FILLERS)}{text[at:]}"


def _with_error(text: str, rng: random.Random) -> str:
    """One letter left out, doubled, changed with its neighbour, or replaced."""
    words = list(_WORD.finditer(text))
    if not words:
        return text
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    before, letter, following, after = text[:at], text[at], text[at + 1], text[at + 2:]
    changed = rng.choice((following, letter + letter + following, following + letter,
                          rng.choice("aeiourtnsl") + following))
    return before + changed + after

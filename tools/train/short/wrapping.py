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


def typed(short: Short, rng: random.Random) -> str:
    """The question as somebody in particular may type it."""
    text = short.question
    if short.is_fixed:
        return text.strip()
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

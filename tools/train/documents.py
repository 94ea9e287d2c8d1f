"""Training documents: problems as plain questions, few-shot prompts and chats, with loss weights.

A document is a list of segments. Segments meet only where the pre-tokenizer splits anyway, so their ids, joined, are
the ids of the joined text (`check_data.py` verifies it).
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import IntEnum

from problems import draw_problem
from questions import SYSTEM_PROMPTS, Turn, conversation, draw_question, go_on, typed
from arithmetic import Reject

BOS, EOS, PAD = "<|begin|>", "<|end|>", "<|pad|>"
SYSTEM, USER, ASSISTANT = "<|system|>", "<|user|>", "<|assistant|>"
_SUM = re.compile(r"[\d. +*/-]+ = -?[\d.]+")


class Loss(IntEnum):
    """How much a segment's tokens count, as targets. An index into `LOSS_WEIGHTS`."""

    NONE = 0
    PROMPT = 1
    ANSWER = 2


# Questions are mostly unpredictable; a little weight keeps the model a language model. The blank line between shots has
# none: after an answer the only thing ever learned is to end.
LOSS_WEIGHTS = (0.0, 0.1, 1.0)


@dataclass(frozen=True)
class Segment:
    text: str
    loss: Loss


@dataclass(frozen=True)
class Mix:
    """Shares of the kinds of documents, and how many shots a few-shot document may have."""

    problem: float  # one word problem as `Question: ...\nAnswer:`
    chat: float
    short_text: float  # short questions as text; the rest are few-shot prompts
    max_shots: int


def document(mix: Mix, rng: random.Random) -> list[Segment]:
    kind = rng.random()
    if kind < mix.problem:
        return _few_shot(rng, 0)
    if kind < mix.problem + mix.chat:
        return _chat(rng)
    if kind < mix.problem + mix.chat + mix.short_text:
        return _short_text(rng)
    return _few_shot(rng, rng.randint(1, mix.max_shots))


def _few_shot(rng: random.Random, num_shots: int) -> list[Segment]:
    """SGLang's GSM8K prompt with `num_shots` solved problems, then one more and the end token."""
    segments = [Segment(BOS, Loss.NONE)]
    for shot in range(num_shots + 1):
        problem = draw_problem(rng)
        segments.append(Segment(f"Question: {problem.question}\nAnswer:", Loss.PROMPT))
        if shot < num_shots:
            segments += [Segment(f" {problem.answer}", Loss.ANSWER), Segment("\n\n", Loss.NONE)]
        else:
            segments.append(Segment(f" {problem.answer}{EOS}", Loss.ANSWER))
    return segments


def _chat(rng: random.Random) -> list[Segment]:
    """One conversation, as the chat template writes it."""
    segments = [Segment(BOS, Loss.NONE)]
    if rng.random() < 0.25:
        segments.append(Segment(f"{SYSTEM}{rng.choice(SYSTEM_PROMPTS)}{EOS}", Loss.NONE))
    for user, reply in _turns(rng):
        segments.append(Segment(f"{USER}{user.strip()}{EOS}{ASSISTANT}", Loss.PROMPT))
        segments.append(Segment(f"{reply}{EOS}", Loss.ANSWER))
    return segments


def _turns(rng: random.Random) -> list[Turn]:
    kind = rng.random()
    if kind < 0.06:  # a change of the subject
        return [*_turns(rng)[:2], *_turns(rng)[:2]]
    if kind < 0.62:
        return conversation(rng)
    turns = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        problem = draw_problem(rng)
        turns.append((typed(problem.question, rng), problem.reply))
        if rng.random() < 0.06:
            try:
                turns += go_on(rng, problem.result, 1)
            except Reject:
                continue
    return turns


def _short_text(rng: random.Random) -> list[Segment]:
    """Without the chat's tokens: after `Question:`, after a line break, or going on after `=`."""
    question = draw_question(rng)
    reply, kind = question.reply, rng.random()
    if kind < 0.6:
        prompt, reply = f"Question: {question.text}\nAnswer:", f" {reply}"
    elif kind < 0.8 or not _SUM.fullmatch(reply):
        prompt = f"{question.text}\n"
    else:
        left, _, right = reply.partition(" = ")
        prompt, reply = f"{left} =", f" {right}"
    return [Segment(BOS, Loss.NONE), Segment(prompt, Loss.PROMPT), Segment(f"{reply}{EOS}", Loss.ANSWER)]

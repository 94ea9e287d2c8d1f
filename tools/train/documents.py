"""Training documents: problems as plain questions, few-shot prompts and chats, with loss weights.

A document is a list of segments. Segments meet only where the pre-tokenizer splits anyway, so
their ids, joined, are the ids of the joined text (`check_data.py` verifies it).
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from enum import IntEnum

import bare
import quire_questions
import short
from gsm8k import Gsm8k
from problems import draw_problem

Turn = tuple[str, str]  # the user's message and the reply

BOS, EOS, PAD = "<|begin|>", "<|end|>", "<|pad|>"
SYSTEM, USER, ASSISTANT = "<|system|>", "<|user|>", "<|assistant|>"
SPECIAL_TOKENS = (PAD, BOS, EOS, SYSTEM, USER, ASSISTANT)

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('Roles are system, user and assistant; got ' + message['role']) }}{% endif %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] | trim + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


class Loss(IntEnum):
    """How much a segment's tokens count, as targets. An index into `LOSS_WEIGHTS`."""

    NONE = 0
    PROMPT = 1
    ANSWER = 2


# Questions are mostly unpredictable; a little weight keeps the model a language model. The blank
# line between shots has none: after an answer the only thing ever learned is to end.
LOSS_WEIGHTS = (0.0, 0.1, 1.0)


@dataclass(frozen=True)
class Segment:
    text: str
    loss: Loss


@dataclass(frozen=True)
class Mix:
    """Shares of the kinds of documents, and how many shots a few-shot document may have."""

    problem: float  # one word problem as `Question: ...\nAnswer:`
    chat: float  # the rest are few-shot prompts
    short_text: float  # short questions and questions about Quire, as text
    max_shots: int


class Source:
    """Draws documents. GSM8K's problems, if there are any, come among the generated ones."""

    def __init__(self, mix: Mix, gsm8k: Gsm8k | None = None, gsm8k_share: float = 0.3) -> None:
        self._mix, self._gsm8k, self._gsm8k_share = mix, gsm8k, gsm8k_share

    def document(self, rng: random.Random) -> list[Segment]:
        kind = rng.random()
        if kind < self._mix.problem:
            return self._few_shot(rng, 0)
        if kind < self._mix.problem + self._mix.chat:
            return self._chat(rng)
        if kind < self._mix.problem + self._mix.chat + self._mix.short_text:
            return _short_text(rng)
        return self._few_shot(rng, rng.randint(1, self._mix.max_shots))

    def _problem(self, rng: random.Random) -> tuple[str, str]:
        if self._gsm8k and rng.random() < self._gsm8k_share:
            return self._gsm8k.sample(rng)
        problem = draw_problem("train", rng)
        return problem.question, problem.answer

    def _few_shot(self, rng: random.Random, num_shots: int) -> list[Segment]:
        """SGLang's GSM8K prompt with `num_shots` solved problems, then one more and the end token."""
        segments = [Segment(BOS, Loss.NONE)]
        for shot in range(num_shots + 1):
            question, answer = self._problem(rng)
            segments.append(Segment(f"Question: {question}\nAnswer:", Loss.PROMPT))
            if shot < num_shots:
                segments.append(Segment(f" {answer}", Loss.ANSWER))
                segments.append(Segment("\n\n", Loss.NONE))
            else:
                segments.append(Segment(f" {answer}{EOS}", Loss.ANSWER))
        return segments

    def _chat(self, rng: random.Random) -> list[Segment]:
        """One conversation, as the chat template writes it."""
        segments = [Segment(BOS, Loss.NONE)]
        if rng.random() < 0.25:
            segments.append(Segment(f"{SYSTEM}{rng.choice(_SYSTEM_PROMPTS)}{EOS}", Loss.NONE))
        for user, reply in self._conversation(rng):
            segments.append(Segment(f"{USER}{user.strip()}{EOS}{ASSISTANT}", Loss.PROMPT))
            segments.append(Segment(f"{reply}{EOS}", Loss.ANSWER))
        return segments

    def _conversation(self, rng: random.Random) -> list[Turn]:
        kind = rng.random()
        if kind < 0.04:  # a change of the subject
            return [*self._conversation(rng)[:2], *self._conversation(rng)[:2]]
        if kind < 0.67:
            return short.conversation(rng)
        if kind < 0.89:
            return quire_questions.sample(rng)
        return [self._story_turn(rng) for _ in range(rng.choice((1, 1, 1, 2)))]

    def _story_turn(self, rng: random.Random) -> Turn:
        """A word problem. If it is short, its reply has bare calculations, as the replies to short questions have."""
        if self._gsm8k and rng.random() < 0.6:
            return self._gsm8k_turn(rng)
        problem = draw_problem("train", rng)
        reply = bare.as_marked(problem.answer)
        if reply and reply.count("\n") < _MAX_BARE_LINES:
            return short.typed_text(problem.question, rng), reply
        question = problem.question
        if rng.random() < 0.25:
            question = rng.choice(_REQUESTS).replace("{}", question)
        return question, problem.answer

    def _gsm8k_turn(self, rng: random.Random) -> Turn:
        """The calculations alone: the loose reasoning around them would be a bad example for short stories."""
        while True:
            question, answer = self._gsm8k.sample(rng, renumbered_share=0.7)
            reply = bare.worked_out(answer)
            if reply and reply.count("\n") < 2 * _MAX_BARE_LINES:
                return short.typed_text(question, rng), reply


def _short_text(rng: random.Random) -> list[Segment]:
    """Without the chat's tokens: after `Question:`, after a line break, or going on after `=`."""
    if rng.random() < 0.2:
        user, reply = quire_questions.sample(rng)[0]
    else:
        question = short.draw_short(rng)
        user, reply = question.question, question.reply
    kind = rng.random()
    if kind < 0.6:
        prompt, reply = f"Question: {user}\nAnswer:", f" {reply}"
    elif kind < 0.8 or "\n" in reply or not _SUM.fullmatch(reply):
        prompt, reply = f"{user}\n", reply
    else:
        left, _, right = reply.partition(" = ")
        prompt, reply = f"{left} =", f" {right}"
    return [Segment(BOS, Loss.NONE), Segment(prompt, Loss.PROMPT), Segment(f"{reply}{EOS}", Loss.ANSWER)]


_MAX_BARE_LINES = 4  # of a generated problem in a chat; more steps are told in words
_SUM = re.compile(r"[\d. +*/-]+ = -?[\d.]+")
_SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful assistant that solves math problems.",
    "Solve the problem step by step.",
    "Answer the question. End with #### and the number.",
    "You are Quire.",
    "Be brief.",
    "You are a calculator.",
    "Answer in one line.",
    "You are a math tutor.",
    "You answer questions about arithmetic and about Quire.",
)
_REQUESTS = (
    "Please solve this problem: {}", "{} Please show your work.", "Can you solve this? {}", "{} Think step by step.",
    "Here is a problem. {}", "{}\nEnd with #### and the answer.", "Question: {}", "Solve: {}", "Hi! {}", "{} Thanks!",
)

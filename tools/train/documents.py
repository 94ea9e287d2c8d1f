"""Training documents: problems as plain questions, few-shot prompts and chats, with loss weights.

A document is a list of segments. Segments meet only where the pre-tokenizer splits anyway, so
their ids, joined, are the ids of the joined text (`check_data.py` verifies it).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import IntEnum

from problems import draw_problem

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

    plain: float
    chat: float
    max_shots: int


def sample_document(rng: random.Random, mix: Mix) -> list[Segment]:
    kind = rng.random()
    if kind < mix.plain:
        return few_shot_document(rng, 0)
    if kind < mix.plain + mix.chat:
        return chat_document(rng)
    return few_shot_document(rng, rng.randint(1, mix.max_shots))


def few_shot_document(rng: random.Random, num_shots: int) -> list[Segment]:
    """SGLang's GSM8K prompt with `num_shots` solved problems, then one more and the end token."""
    segments = [Segment(BOS, Loss.NONE)]
    for shot in range(num_shots + 1):
        problem = draw_problem("train", rng)
        segments.append(Segment(f"Question: {problem.question}\nAnswer:", Loss.PROMPT))
        if shot < num_shots:
            segments.append(Segment(f" {problem.answer}", Loss.ANSWER))
            segments.append(Segment("\n\n", Loss.NONE))
        else:
            segments.append(Segment(f" {problem.answer}{EOS}", Loss.ANSWER))
    return segments


def chat_document(rng: random.Random) -> list[Segment]:
    """One to three turns, as the chat template writes them."""
    segments = [Segment(BOS, Loss.NONE)]
    if rng.random() < 0.25:
        segments.append(Segment(f"{SYSTEM}{rng.choice(_SYSTEM_PROMPTS)}{EOS}", Loss.NONE))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        user, reply = _chat_turn(rng)
        segments.append(Segment(f"{USER}{user}{EOS}{ASSISTANT}", Loss.PROMPT))
        segments.append(Segment(f"{reply}{EOS}", Loss.ANSWER))
    return segments


def _chat_turn(rng: random.Random) -> tuple[str, str]:
    kind = rng.random()
    if kind < 0.04:
        users, reply = rng.choice(_SMALL_TALK)
        return _informal(rng.choice(users), rng), reply
    if kind < 0.12:
        return _sum_turn(rng)
    problem = draw_problem("train", rng)
    question = problem.question
    if kind < 0.3:
        question = rng.choice(_REQUESTS).replace("{}", question)
    return question, problem.answer


def _sum_turn(rng: random.Random) -> tuple[str, str]:
    """A bare calculation."""
    operator = rng.choice("+-*/")
    b = rng.randint(2, 30) if operator in "*/" else rng.randint(2, 999)
    a = rng.randint(2, 99) if operator in "*/" else rng.randint(2, 999)
    if operator == "-":
        a, b = max(a, b), min(a, b)
    if operator == "/":
        a *= b
    result = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[operator]
    asked = rng.choice((f"What is {a} {operator} {b}?", f"{a} {operator} {b}", f"How much is {a}{operator}{b}?",
                        f"{a}{operator}{b}=?", f"Calculate {a} {operator} {b}."))
    return asked, f"{a} {operator} {b} = <<{a}{operator}{b}={result}>>{result}\n#### {result}"


def _informal(text: str, rng: random.Random) -> str:
    if rng.random() < 0.3:
        text = text.lower()
    if rng.random() < 0.3:
        text = text.rstrip("!.?")
    return text


_SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful assistant that solves math problems.",
    "Solve the problem step by step.",
    "Answer the question. End with #### and the number.",
    "You are Quire.",
    "Be brief.",
)
_REQUESTS = (
    "Please solve this problem: {}", "{} Please show your work.", "Can you solve this? {}", "{} Think step by step.",
    "Here is a problem. {}", "{}\nEnd with #### and the answer.", "Question: {}", "Solve: {}", "Hi! {}", "{} Thanks!",
)
_PURPOSE = "I solve grade-school word problems."
_SMALL_TALK = (
    (("Hello!", "Hi!", "Hey!", "Hello there!", "Good morning!", "Good evening!", "Hi, how are you?", "How are you?"),
     f"Hello! {_PURPOSE} Tell me one, with its numbers, and I will work it out step by step."),
    (("Who are you?", "What are you?", "What can you do?", "What do you do?", "What is your name?", "Help!",
      "Can you help me?", "How do you work?", "Tell me about yourself."),
     f"I am a small model that comes with Quire. {_PURPOSE}"),
    (("Thanks!", "Thank you!", "Thank you very much!", "Great!", "Well done!", "Nice!", "Good job!", "OK."),
     "You are welcome! Tell me another problem whenever you like."),
    (("Bye!", "Goodbye!", "See you!", "Good night!"), "Goodbye!"),
    (("Write a poem.", "Tell me a joke.", "What is the weather like?", "Who is the president?", "Tell me a story.",
      "What is the capital of France?", "Write a program.", "Translate this.", "What do you think about life?"),
     f"I cannot do that: {_PURPOSE} Tell me one, with its numbers."),
)

"""Short questions and their replies: bare and phrased arithmetic, units, money, time, and the like."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from itertools import accumulate

from . import about_numbers, calendar_questions, calendar_scenes, compared, compared_scenes, equations, expressions  # noqa: F401  They register topics.
from . import fraction_kinds, measures, number_puzzles, parts_and_money, percent_money, phrases, series_rules  # noqa: F401
from . import shape_facts, shapes_and_series, situations, stories, story_kinds, time_and_age, time_scenes, unit_scenes  # noqa: F401
from .dialogue import Turn, continued, dialogue
from .question import TOPICS, WEIGHTS, Short, draw_topic
from .wrapping import typed, typed_text

__all__ = ["TOPICS", "Short", "conversation", "draw_short", "is_heldout", "typed_text"]

_NAMES = tuple(TOPICS)
_STORY_SHARE = 0.2  # of all short questions, whatever the weights of the other topics
_STORIES = frozenset(name for name in _NAMES if TOPICS[name].__module__ in (stories.__name__, story_kinds.__name__))
_STORY_WEIGHT = sum(WEIGHTS[name] for name in _STORIES)
_OTHER_WEIGHT = sum(WEIGHTS.values()) - _STORY_WEIGHT
_CUMULATED = tuple(accumulate(
    WEIGHTS[name] * (_STORY_SHARE / _STORY_WEIGHT if name in _STORIES else (1 - _STORY_SHARE) / _OTHER_WEIGHT)
    for name in _NAMES))
_NUM_BUCKETS = 50  # one bucket of the questions' texts is held out


def is_heldout(question: str) -> bool:
    digest = hashlib.blake2b(question.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % _NUM_BUCKETS == 0


def draw_short(rng: random.Random, heldout: bool = False, name: str | None = None) -> Short:
    """A question of the named topic, or of any, as somebody types it; held out, or never so."""
    while True:
        chosen = name or rng.choices(_NAMES, cum_weights=_CUMULATED)[0]
        short = draw_topic(chosen, rng)
        short = replace(short, question=typed(short, rng))
        if is_heldout(short.question) == heldout:
            return short


def conversation(rng: random.Random) -> list[Turn]:
    """The turns of one chat."""
    kind = rng.random()
    if kind < 0.13:
        return dialogue(rng)
    turns: list[Turn] = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        short = draw_short(rng)
        turns.append((short.question, short.reply))
        if rng.random() < 0.08:
            turns += continued(rng, short)
    return turns

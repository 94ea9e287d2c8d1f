"""The phrasebooks as topics."""

from __future__ import annotations

import random

from .phrasebook import Phrasebook
from .phrases_daily import DAILY
from .phrases_numbers import NUMBERS
from .phrases_stories import STORIES
from .phrases_world import WORLD
from .question import Short, topic

BOOKS = _NUMBERS, _STORIES, _WORLD, _DAILY = tuple(map(Phrasebook, (NUMBERS, STORIES, WORLD, DAILY)))


@topic(20)
def numbers_in_phrases(rng: random.Random) -> Short:
    return _NUMBERS.draw(rng)


@topic(26)
def world_in_phrases(rng: random.Random) -> Short:
    return _WORLD.draw(rng)


@topic(32)
def stories_in_phrases(rng: random.Random) -> Short:
    return _STORIES.draw(rng)


@topic(44)
def daily_life_in_phrases(rng: random.Random) -> Short:
    return _DAILY.draw(rng)

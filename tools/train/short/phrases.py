"""The phrasebooks as topics."""

from __future__ import annotations

import random

from .phrasebook import Phrasebook
from .phrases_daily import DAILY
from .phrases_numbers import NUMBERS
from .phrases_rates import RATES
from .phrases_shapes import SHAPES
from .phrases_situations import SITUATIONS
from .phrases_stories import STORIES
from .phrases_time import TIME
from .phrases_world import WORLD
from .question import Short, topic

BOOKS = tuple(map(Phrasebook, (NUMBERS, STORIES, WORLD, DAILY, TIME, SITUATIONS, RATES, SHAPES)))
_NUMBERS, _STORIES, _WORLD, _DAILY, _TIME, _SITUATIONS, _RATES, _SHAPES = BOOKS


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


@topic(30)
def time_and_units_in_phrases(rng: random.Random) -> Short:
    return _TIME.draw(rng)


@topic(36)
def situations_in_phrases(rng: random.Random) -> Short:
    return _SITUATIONS.draw(rng)


@topic(28)
def rates_in_phrases(rng: random.Random) -> Short:
    return _RATES.draw(rng)


@topic(28)
def shapes_and_parts_in_phrases(rng: random.Random) -> Short:
    return _SHAPES.draw(rng)

"""The phrasebooks as topics."""

from __future__ import annotations

import random

from .phrasebook import Phrasebook
from .phrases_numbers import NUMBERS
from .phrases_stories import STORIES
from .phrases_world import WORLD
from .question import Short, topic

_NUMBERS, _STORIES, _WORLD = Phrasebook(NUMBERS), Phrasebook(STORIES), Phrasebook(WORLD)


@topic(20)
def numbers_in_phrases(rng: random.Random) -> Short:
    return _NUMBERS.draw(rng)


@topic(26)
def world_in_phrases(rng: random.Random) -> Short:
    return _WORLD.draw(rng)


@topic(32)
def stories_in_phrases(rng: random.Random) -> Short:
    return _STORIES.draw(rng)

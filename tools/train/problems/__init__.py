"""Word problems in GSM8K's format. Importing the themes registers their families."""

from . import (  # noqa: F401
    business, classroom, earnings, errands, everyday, generations, journeys, kitchen, occasions,
    portions, prices, timetables)
from . import (  # noqa: F401
    farm, food, home, money, school, sharing, shopping, sports, time_and_age, travel, workshop)
from . import animals, building, comparing, counting, games, gardening  # noqa: F401
from . import groups, health, media, patterns, production, transport, weather  # noqa: F401
from .problem import FAMILIES, Problem, make_problem
from .splits import SPLITS, NoProblem, draw_problem, split_of

__all__ = ["FAMILIES", "SPLITS", "NoProblem", "Problem", "draw_problem", "make_problem", "split_of"]

"""Names, nouns and verbs for one-sentence stories; some are made up, so that words must be copied."""

from __future__ import annotations

import random

from problems import words

from .names import NAMES

_COUNTED = (
    *words.FRUIT, *words.BAKED, *words.TOYS, *words.SUPPLIES, *words.CLOTHES, *words.FLOWERS, *words.VEGETABLES,
    *words.FISH, *words.PACKED, *words.FOUR_LEGGED, *words.TWO_LEGGED,
    *("candies sweets chocolates books cards dollars euros balls dolls cars bikes trees birds cats kittens puppies "
      "rabbits fish eggs cakes pies pizzas sandwiches burgers tacos grapes berries strawberries nuts almonds keys "
      "chairs tables boxes bags bottles cups plates bowls spoons forks glasses cans jars tickets coins pennies dimes "
      "photos pictures posters paintings songs games videos movies emails messages letters stamps points goals "
      "shoes socks gloves rings necklaces buttons bricks blocks stones rocks leaves feathers seeds plants bees ants "
      "spiders snails frogs turtles students children kids friends guests people workers players chapters pages "
      "stories poems magazines newspapers crayons paints brushes ropes nails screws tools lamps phones laptops "
      "computers batteries toys robots drones kites tents maps flags hats caps coats pillows blankets towels "
      "onions peppers olives pickles sausages steaks wheels tires windows doors rooms houses shops trains "
      "buses planes boats ships stars planets dinosaurs dragons unicorns slices pieces cubes marbles").split())
_ENDINGS = ("s", "s", "ers", "ies", "lets", "oons")
_ONSETS = "b bl br c ch cl d dr f fl g gl gr h j k l m n p pl qu r s sk sl sn sp st t tr tw v w z".split()
_RIMES = "ab ack ad ag am ap at eb eck ed eg en ep et ib ick id ig im in ip it ob ock od og om op ot ub uck ug um up".split()
_SUBJECTS = ("My sister", "My brother", "My mom", "My dad", "My friend", "A farmer", "A teacher", "A shop", "A baker",
             "The boy", "The girl", "A student", "Grandma", "Someone", "My neighbor", "A man", "A woman", "The cook",
             "Mr. Smith", "Mrs. Lee", "Ms. Diaz", "The class", "Our team", "The dog", "A pirate", "The king")


def person(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.25:
        return rng.choice(words.PEOPLE)[1]
    if kind < 0.8:
        return rng.choice(NAMES)
    return "".join(rng.choices(words.SYLLABLES, k=rng.randint(2, 3))).capitalize()


def two_people(rng: random.Random) -> tuple[str, str]:
    first, second = person(rng), person(rng)
    while second == first:
        second = person(rng)
    return first, second


def subject(rng: random.Random) -> str:
    """Third person singular: a name, mostly."""
    return person(rng) if rng.random() < 0.75 else rng.choice(_SUBJECTS)


def plural(rng: random.Random) -> str:
    if rng.random() < 0.08:
        return rng.choice(_ONSETS) + rng.choice(_RIMES) + rng.choice(_ENDINGS)
    return rng.choice(_COUNTED)

"""Stories from tables of what happens to things: of whatever verbs, with numbers of no use, in any order."""

from __future__ import annotations

import random
from dataclasses import replace

from . import stories, story_kinds
from .arithmetic import Worked, apply, chain, remainder
from .composing import compose
from .grammar import Patterns
from .numbers import Hand, require, show
from .phrases import stories_in_phrases
from .question import TOPICS, Short, computed, topic
from .story_kinds import tidied
from .things import person

# What becomes of some of them; what is said of the others.
_GONE = tuple(tuple(part.strip() for part in row.split(";")) for row in """
jars of jam; went moldy; are still good
light bulbs; burned out; still work
balloons; popped; are still whole
tulip bulbs; never sprouted; came up
seeds; did not sprout; sprouted
pupils; fell ill; are in class
students; failed the test; passed
flowerpots; toppled over; are still standing
bowling pins; fell; are still standing
candles; went out; are still burning
windows; were smashed; are still whole
tents; blew down; are still up
tomatoes; rotted; can still be eaten
peaches; were bruised; look fine
socks; have holes; have no holes
plates; cracked in the dishwasher; are whole
umbrellas; were forgotten on the train; came home
sheep; jumped over the fence; stayed in the field
hens; stopped laying; still lay eggs
cows; have been milked; still have to be milked
horses; were ridden out; stayed in the stable
snowmen; melted; are still there
ice cubes; melted; are still frozen
cupcakes; burned; turned out well
pancakes; stuck to the pan; came out fine
eggs; hatched; have not hatched
chicks; were taken by a fox; were safe
boats; sank; are still afloat
ships; left the harbor; are still in port
planes; have landed; are still in the air
trains; were delayed; were on time
buses; broke down; are still running
cars; failed the check; passed it
bikes; have flat tires; can be ridden
tires; are worn out; are still good
batteries; are dead; still have power
phones; were stolen; are still there
parcels; were delivered; still have to be delivered
letters; came back; arrived
emails; went to spam; reached the inbox
photos; came out blurry; are sharp
files; were deleted; are still on the disk
passwords; expired; are still valid
tickets; were refunded; are still valid
seats; are taken; are free
rooms; are booked; are free
tables; are reserved; are free
lockers; are locked; are open
doors; were repainted; still need paint
walls; have been painted; still need paint
chairs; wobble; are steady
lamps; flicker; are fine
keys; do not fit; fit
shirts; shrank in the wash; kept their size
dresses; were altered; fit as they were
buttons; came off; are still on
books; were borrowed; are on the shelf
pages; were torn out; are still in the book
library books; are overdue; are not overdue
pencils; need sharpening; are sharp
markers; dried up; still write
pens; leak; do not leak
puzzle pieces; are missing; are in the box
dominoes; fell; are still standing
marbles; rolled under the sofa; were not lost
cards; were dealt; are still in the deck
chess pieces; were captured; are still on the board
darts; missed the board; hit the board
shots; were saved; went in
free throws; missed; went in
penalties; were saved; went in
runners; dropped out; finished
cyclists; crashed; reached the finish
swimmers; gave up; reached the shore
players; were sent off; are still on the pitch
guests; canceled; came
visitors; went home early; stayed to the end
campers; went home; stayed
passengers; missed the flight; were on board
patients; went home cured; are still in the ward
workers; are on strike; are at work
soldiers; deserted; stayed
sailors; went ashore; stayed on board
singers; lost their voices; can sing
dancers; sprained an ankle; can dance
trees; were struck by lightning; are still standing
branches; snapped; are still on the tree
leaves; fell off; are still on the tree
roses; wilted; are still fresh
plants; froze; survived the winter
cabbages; were eaten by snails; can be sold
pumpkins; were carved; are whole
apples; fell from the tree; still hang on it
oranges; were squeezed; are whole
sandwiches; went stale; are fresh
cookies; crumbled; are whole
pizzas; arrived cold; were hot
bottles; shattered; are whole
glasses; got chipped; are perfect
mugs; lost their handles; have handles
boxes; got wet; stayed dry
matches; are damp; will light
stamps; were used; are unused
coins; turned out to be fake; are real
paintings; were sold at the auction; were not sold
vases; were broken by the cat; are whole
birds; flew south; stayed
bees; left the hive; are in the hive
fish; slipped through the net; were caught
frogs; hopped into the pond; stayed on the bank
rabbits; escaped through a hole; are in the hutch
kittens; found a new home; still need a home
puppies; were adopted; still need a home
ducks; waddled away; stayed by the pond
lions; are asleep; are awake
kids; have been vaccinated; still have to be
babies; are asleep; are awake
questions; were skipped; were answered
sums; were wrong; were right
words; were misspelled; were right
votes; were invalid; counted
voters; stayed at home; voted
jokes; fell flat; got a laugh
songs; were skipped; were played
videos; failed to load; played
levels; have been cleared; are still to be cleared
lights; were switched off; are on
alarms; were false; were real
houses; lost their roofs; kept their roofs
bricks; crumbled; are solid
nails; bent; went in straight
screws; are rusty; are clean
planks; are rotten; are sound
fence posts; fell over; are upright
stairs; creak; are silent
lifts; are out of order; work
printers; ran out of paper; can print
computers; crashed; are still running
servers; are down; are up
robots; malfunctioned; work
drones; crashed; came back
rockets; exploded; reached space
fireworks; failed to go off; went off
lottery tickets; lost; won
cans of paint; dried up; can be used
packs of milk; went sour; are fine
yogurts; are past their date; are in date
""".strip().split("\n"))
_GONE_FACTS = Patterns("""
    {b} of [the|the|my|our|her|his] {a} {n} {p}
    [of|out of|from] [the |]{a} {n}, {b} {p}
    {b} out of {a} {n} {p}
    [not all|only some] of the {a} {n} {f}, as {b} {p}
    {x} [checked|counted] {a} {n}, of which {b} {p}
    {a} {n}, {b} of [them|which] {p}
""")
_GONE_BEFORE = Patterns("""
    there were {a} {n}
    there used to be {a} {n}
    {x} started with {a} {n}
    {x} had {a} {n}
    {x} was in charge of {a} {n}
    at first there were {a} {n}
    once there were {a} {n}
    we began with {a} {n}
    {x} looked after {a} {n}
""")
_GONE_THEN = Patterns("""
    {b} of them {p}
    then {b} {p}
    {b} {p}
    but {b} {p}
    overnight {b} {p}
    sadly {b} {p}
    in the end {b} {p}
    by evening {b} {p}
    after a while {b} {p}
    {b} of these {p}
    since then {b} {p}
""")
_FINE_FACTS = Patterns("""
    of {a} {n} only {b} {f}
    only {b} of the {a} {n} {f}
    {b} of {a} {n} {f}
    out of {a} {n} just {b} {f}
    no more than {b} of the {a} {n} {f}
    {a} {n} and only {b} {f}
""")
_IDLE = Patterns("""
    at {h}[ am| pm| o'clock|:30|:15|:45 pm]
    on [{month} {d}|{d} {month}|the {th} of {month}|{month} {d}, {year}|{day}, {month} {d}]
    in [room|class|hall|building|house|garage|office|tent] {d}
    on [floor|deck|line|track|bus|platform|day] {d}
    at {d} [Mill Road|Park Street|Oak Avenue|Station Road|Main Street]
""")
_IDLE_PAST = Patterns("""
    in {year}
    {d} [days|weeks|years|hours|minutes] ago
    after {d} [minutes|hours|days|weeks]
""")
_IDLE_SENTENCES = Patterns("""
    It is {h}[ am| pm| o'clock|:30|:15].
    [Today is|It's|It is] {month} {d}.
    I am {age} years old.
    [Exercise|Question|Task|Problem|No.] {d}[.|:]
    [On page|Page] {age}[:| of my book:| says:]
    [It's|It is] week {d} of the year.
    [It was|This was] in {year}.
    We [live|are] on floor {d}.
    Our house is number {age}.
    Bus {d} is late.
    My class has number {d} on the door.
    [The film|Class|The show] starts at {h}.
    [The trip|The drive] takes {d} hours.
    Grandpa is {old}.
    My teacher, who is {old}, [asks|wrote this]:
    I have {d} minutes[ for this|].
    {n} is {age}[ years old|]. Now the question:
""")
_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def _idle_slots(rng: random.Random) -> dict[str, object]:
    day = rng.randint(1, 28)
    ending = "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return {
        "h": rng.randint(1, 12),
        "d": rng.randint(2, 28),
        "month": rng.choice(_MONTHS),
        "day": rng.choice(_DAYS),
        "th": f"{day}{ending}",
        "year": rng.randint(1950, 2026),
        "age": rng.randint(6, 60),
        "old": rng.randint(55, 95),
        "n": person(rng),
    }


def _idle(rng: random.Random, share: float, past: bool = False) -> str:
    if rng.random() > share:
        return ""
    return (_IDLE_PAST if past and rng.random() < 0.3 else _IDLE).expand(rng, **_idle_slots(rng)) + ", "


def _someone(rng: random.Random) -> str:
    """Somebody, perhaps with an age that does not matter."""
    has_name = rng.random() < 0.7
    name = (
        person(rng)
        if has_name
        else rng.choice(("grandma", "grandpa", "my uncle", "the teacher", "dad", "mom", "our neighbor"))
    )
    if rng.random() < 0.15:
        name += (
            rng.choice((" ({}),", ", {},", ", who is {},", ", aged {},", ", {} years old,"))
            .format(rng.randint(6 if has_name else 50, 90))
            .replace("),", ")")
        )
    return name


def _composed(rng: random.Random, facts: list[str], ask: str, noun: str, free: bool = False) -> str:
    return tidied(compose(rng, facts, ask, noun, free))


def _limit(rng: random.Random) -> int:
    return rng.choice((12, 20, 30, 60, 100, 300))


@topic(6)
def some_are_gone(rng: random.Random) -> Short:
    """So many of so many: the others, the missing ones, all of them, a part of them."""
    hand, (noun, happened, fine), x = Hand(rng), rng.choice(_GONE), _someone(rng)
    a = rng.randint(6, _limit(rng))
    b = rng.randint(2, a - 2)
    slots = {
        "a": hand.write(a),
        "b": hand.write(b),
        "c": hand.write(a - b),
        "n": noun,
        "p": happened,
        "f": fine,
        "x": x,
    }
    kind, begins = rng.random(), _idle(rng, 0.25, past=True)
    if kind < 0.45:
        facts = [begins + _GONE_FACTS.expand(rng, **slots)]
        if rng.random() < 0.4:
            facts = [begins + _GONE_BEFORE.expand(rng, **slots), _GONE_THEN.expand(rng, **slots)]
        return computed(
            _composed(rng, facts, _asked(rng, noun, fine), f"the number of {noun} that {fine}"), apply("-", a, b)
        )
    if kind < 0.6:
        return computed(
            _composed(
                rng,
                [begins + _FINE_FACTS.expand(rng, **slots)],
                _asked(rng, noun, happened),
                f"the number of {noun} that {happened}",
            ),
            apply("-", a, b),
        )
    if kind < 0.68:
        fact = begins + rng.choice(
            ("all but {b} of the {a} {n} {p}", "all {a} {n} except {b} {p}", "of {a} {n} all but {b} {p}")
        ).format(**slots)
        return computed(
            _composed(rng, [fact], _asked(rng, noun, happened), f"the number of {noun} that {happened}"),
            apply("-", a, b),
        )
    if kind < 0.78:
        facts = rng.choice(
            (
                ["{b} {n} {p}", "{c} {f}"],
                ["{b} {n} {p}", "the other {c} {f}"],
                ["{c} {n} {f}", "{b} {p}"],
                ["after {b} {n} {p}, {c} were left"],
            )
        )
        asked = rng.choice(
            (
                f"how many {noun} were there",
                f"how many {noun} were there at first",
                "how many were there before",
                "how many are there in all",
                f"how many {noun} is that altogether",
            )
        )
        first, second = (a - b, b) if facts[0].startswith("{c}") else (b, a - b)
        return computed(
            _composed(
                rng,
                [begins + facts[0].format(**slots), *(f.format(**slots) for f in facts[1:])],
                asked,
                f"the number of {noun} at first",
            ),
            apply("+", first, second),
        )
    if kind < 0.88:
        d = rng.randint(1, a - b)
        end, more = rng.choice(
            (
                ("+", "{d} new ones were brought"),
                ("+", "{d} new ones were added"),
                ("-", "{d} more {p}"),
                ("-", "later {d} more {p}"),
            )
        )
        facts = [begins + _GONE_FACTS.expand(rng, **slots), more.format(d=hand.write(d), p=happened)]
        require("as {" not in facts[0] and not facts[0].startswith(("not", "only")))
        asked = (
            _asked(rng, noun, fine)
            if end == "-"
            else rng.choice((f"how many good {noun} are there now", f"how many {noun} are there now without those"))
        )
        require(end == "-" or not fine.endswith(("free", "open", "awake")))
        return computed(
            _composed(
                rng,
                facts,
                asked,
                f"the number of {noun} that {fine}" if end == "-" else f"the number of {noun} now, without those",
            ),
            chain(a, ("-", b), (end, d)),
        )
    part, words = rng.choice(
        ((2, "half"), (2, "half"), (3, "a third"), (4, "a quarter"), (5, "a fifth"), (10, "a tenth"))
    )
    total = part * rng.randint(2, 30)
    fact = begins + rng.choice(
        ("{w} of the {a} {n} {p}", "there were {a} {n} and {w} of them {p}", "of {a} {n} {w} {p}")
    ).format(w=words, a=hand.write(total), n=noun, p=happened)
    if part == 2 or rng.random() < 0.4:
        asks = happened if rng.random() < 0.5 else fine
        if part > 2:
            asks = happened
        return computed(
            _composed(rng, [fact], _asked(rng, noun, asks), f"the number of {noun} that {asks}"),
            apply("/", total, part),
        )
    gone = apply("/", total, part)
    left = apply("-", total, gone.value)
    return computed(
        _composed(rng, [fact], _asked(rng, noun, fine), f"the number of {noun} that {fine}"),
        Worked(gone.lines + left.lines, left.value),
    )


def _asked(rng: random.Random, noun: str, what: str) -> str:
    return rng.choice(
        (
            f"how many {noun} {what}",
            f"how many {what}",
            f"how many of them {what}",
            f"how many {noun} {what}",
            f"how many of the {noun} {what}",
        )
    )


# Those that hold; one of them; what is in them.
_HOLDERS = tuple(tuple(part.strip() for part in row.split(";")) for row in """
rows of lanterns; row; lanterns
cartons; carton; eggs
carriages; carriage; seats
vans; van; children
taxis; taxi; passengers
rowing boats; boat; people
elevators; elevator; guests
cable cars; cable car; skiers
tents; tent; scouts
cabins; cabin; campers
tables; table; diners
benches; bench; spectators
classrooms; classroom; desks
shelves; shelf; jars
album pages; page; photos
trays; tray; muffins
egg boxes; box; eggs
crates; crate; bottles
barrels; barrel; apples
baskets; basket; plums
buckets; bucket; crabs
nests; nest; chicks
hives; hive; frames
stables; stable; ponies
cages; cage; mice
aquariums; aquarium; fish
flower beds; bed; tulips
vases; vase; lilies
pots; pot; herbs
bouquets; bouquet; roses
garlands; garland; flags
necklaces; necklace; beads
bracelets; bracelet; pearls
shirts; shirt; buttons
coats; coat; pockets
drawers; drawer; spoons
boxes of chocolates; box; chocolates
bags; bag; marbles
packets; packet; seeds
parcels; parcel; books
envelopes; envelope; stickers
folders; folder; sheets
notebooks; notebook; pages
chapters; chapter; pages
racks; rack; bikes
garages; garage; cars
ferries; ferry; trucks
trucks; truck; pallets
wagons; wagon; logs
rafts; raft; barrels
teams; team; players
choirs; choir; singers
orchestras; orchestra; violins
houses; house; windows
floors; floor; rooms
towers; tower; blocks
walls; wall; tiles
ladders; ladder; rungs
cakes; cake; candles
pizzas; pizza; slices
sandwiches; sandwich; slices of cheese
pies; pie; pears
jars; jar; pickles
hot dog stands; stand; sausages
trees; tree; birds
ponds; pond; ducks
fields; field; cows
pens; pen; lambs
spreadsheets; spreadsheet; rows
racks of servers; rack; servers
circuit boards; board; chips
remotes; remote; batteries
toy cars; toy car; wheels
guitars; guitar; strings
dominoes; domino; dots
dance groups; group; dancers
""".strip().split("\n"))
_EACH = Patterns("""
    [each|every|one|a] {one} [has|holds|takes|is for|fits] {b} {t}
    there are {b} {t} [in [each|every|a|one]|to a|per] {one}
    {b} {t} [go with|belong to|are in|make up|come with] [each|every|one] {one}
    {b} {t} per {one}
""")
_MANY = Patterns("""
    there are {a} {ns}
    {x} has {a} {ns}
    {x} sees {a} {ns}
    {x} counts {a} {ns}
    we have {a} {ns}
    {a} {ns} are ready
    I look after {a} {ns}
""")
_HAVE_CONTENTS = Patterns("""
    there are {a} {t}
    {x} has {a} {t}
    we have {a} {t}
    {x} is left with {a} {t}
    I count {a} {t}
    {x} brings {a} {t}
    {a} {t} are there
    there are {a} {t} in all
""")


@topic(7)
def holders(rng: random.Random) -> Short:
    """Things that hold others: how many in all, how many holders are full or needed, what is left over."""
    hand, (several, one, contents), x = Hand(rng), rng.choice(_HOLDERS), _someone(rng)
    a, b = rng.randint(2, rng.choice((9, 12, 20))), rng.randint(2, rng.choice((9, 12, 20)))
    slots: dict[str, object] = {"ns": several, "one": one, "t": contents, "x": x, "b": hand.write(b)}
    begins, kind = _idle(rng, 0.2), rng.random()
    each = _EACH.expand(rng, **slots)
    if kind < 0.36:
        return _held(rng, hand, begins, a, b, slots, each)
    rest = rng.randrange(b)
    total = a * b + rest
    facts = [begins + _HAVE_CONTENTS.expand(rng, a=hand.write(total), **slots), each]
    ways = rng.random()
    rest_lines = remainder(total, b).lines if rest else apply("/", total, b).lines
    if ways < 0.4:
        asked = rng.choice(
            (
                f"how many {several} can be filled completely",
                f"how many full {several} is that",
                f"how many {several} get full",
                f"how many complete {several} are there at most",
                f"what is the largest number of full {several}",
                f"how many whole {several} can be made",
                f"how many {several} at most",
            )
        )
        reply = "\n".join((*rest_lines, *((f"So it is {a}.",) if rest else ())))
        return Short(_composed(rng, facts, asked, f"the number of full {several}", free=True), reply, show(a), a)
    if ways < 0.75:
        asked = rng.choice(
            (
                f"how many {several} are needed",
                f"how many {several} are needed for all",
                f"what is the smallest number of {several} for all of them",
                f"how many {several} do we need at least",
                f"how many {several} must there be for all {contents}",
            )
        )
        need = a + (rest > 0)
        reply = "\n".join((*rest_lines, *((f"{a} + 1 = {need}",) if rest else ())))
        return Short(
            _composed(rng, facts, asked, f"the number of {several} needed", free=True), reply, show(need), need
        )
    asked = rng.choice(
        (
            f"how many {contents} are left over",
            f"how many {contents} do not fill a {one}",
            f"how many {contents} are too many for full {several}",
            f"how many {contents} remain when all {several} are full",
            f"how many {contents} are in none of the full {several}",
        )
    )
    return computed(_composed(rng, facts, asked, f"the {contents} left over", free=True), remainder(total, b))


def _held(rng: random.Random, hand: Hand, begins: str, a: int, b: int, slots: dict[str, object], each: str) -> Short:
    """The sum of what is held, perhaps after a change, or with holders of another size."""
    several, one, contents = slots["ns"], slots["one"], slots["t"]
    facts, kind = [begins + _MANY.expand(rng, a=hand.write(a), **slots), each], rng.random()
    asked = rng.choice(
        (
            f"how many {contents} are there",
            f"how many {contents} is that",
            f"how many {contents} are there in all",
            f"how many {contents} altogether",
            f"how many {contents} are needed",
        )
    )
    noun = f"the number of {contents}"
    if kind < 0.35:
        return computed(_composed(rng, facts, asked, noun, free=True), apply("*", a, b))
    c = rng.randint(1, max(1, a * b // 2))
    if kind < 0.55:
        facts.append(
            rng.choice(
                (
                    f"{hand.write(c)} {contents} are missing",
                    f"{hand.write(c)} of the {contents} get lost",
                    f"{hand.write(c)} of all {contents} are taken away",
                )
            )
        )
        require(c > 1)
        asked = rng.choice(
            (f"how many {contents} are left", f"how many {contents} are there then", f"how many {contents} remain")
        )
        return computed(_composed(rng, facts, asked, f"the {contents} that are left"), chain(a, ("*", b), ("-", c)))
    if kind < 0.7:
        require(c > 1)
        facts.append(
            rng.choice(
                (
                    f"there are {hand.write(c)} more {contents} besides",
                    f"{hand.write(c)} {contents} are added",
                    f"{hand.write(c)} single {contents} come on top",
                )
            )
        )
        return computed(_composed(rng, facts, asked, noun), chain(a, ("*", b), ("+", c)))
    if kind < 0.85:
        require(c > 1)
        facts = [
            begins + f"there are {hand.write(a)} {several} with {hand.write(b)} {contents} each",
            rng.choice(
                (
                    f"{hand.write(c)} other {several} have none",
                    f"{hand.write(c)} more {several} are empty",
                    f"{hand.write(c)} {several} without any {contents}",
                )
            ),
        ]
        return computed(
            _composed(rng, facts, asked.replace("are needed", "are there"), noun, free=True), apply("*", a, b)
        )
    d, e = rng.randint(2, 12), rng.randint(2, 12)
    require(e != b)
    facts = [
        begins + f"{hand.write(a)} {several} have {hand.write(b)} {contents} each",
        rng.choice(
            (
                f"{hand.write(d)} {several} have {hand.write(e)}",
                f"another {hand.write(d)} have {hand.write(e)} each",
                f"{hand.write(d)} other {several} have {hand.write(e)} {contents} each",
            )
        ),
    ]
    first, second = apply("*", a, b), apply("*", d, e)
    total = apply("+", first.value, second.value)
    return computed(
        _composed(rng, facts, asked.replace("are needed", "are there"), noun),
        Worked(first.lines + second.lines + total.lines, total.value),
    )


# What is made; one of it; what it takes.
_MADE = tuple(tuple(part.strip() for part in row.split(";")) for row in """
cakes; cake; eggs
necklaces; necklace; beads
sandwiches; sandwich; slices of bread
bouquets; bouquet; tulips
tables; table; planks
stools; stool; legs
carts; cart; wheels
kites; kite; sheets of paper
omelets; omelet; eggs
pizzas; pizza; tomatoes
pies; pie; apples
salads; salad; cucumbers
smoothies; smoothie; bananas
wreaths; wreath; branches
snowmen; snowman; snowballs
sweaters; sweater; balls of wool
quilts; quilt; patches
curtains; curtain; meters of cloth
birdhouses; birdhouse; boards
fences; fence; posts
flashlights; flashlight; batteries
alarm clocks; clock; batteries
walls; wall; buckets of paint
doors; door; hinges
bookcases; bookcase; screws
bikes; bike; spokes
skateboards; skateboard; wheels
lampshades; lampshade; strips of paper
paper planes; plane; sheets
puppets; puppet; buttons
teams; team; players
quartets; quartet; musicians
jars of jam; jar; oranges
glasses of juice; glass; oranges
bread rolls; roll; spoons of flour
potions; potion; herbs
free coffees; coffee; stamps
prizes; prize; tickets
badges; badge; points
""".strip().split("\n"))
_TAKES = Patterns("""
    [each|every|one|a] {one} [takes|needs|requires|uses up|is made from] {b} {t}
    it takes {b} {t} to [make|get] [one|a] {one}
    for [each|every|one|a] {one} you need {b} {t}
    {b} {t} make [one|a] {one}
    {b} {t} per {one}
""")
_HAS = Patterns("""
    {x} has {a} {t}
    there are {a} {t}
    I have {a} {t}
    we have {a} {t}
    {x} bought {a} {t}
    {a} {t} are there
    {x} found {a} {t}
    we were given {a} {t}
""")


@topic(4)
def made_from(rng: random.Random) -> Short:
    """So many for one, so many there: how many can be made, what is left, what is missing."""
    hand, (several, one, parts), x = Hand(rng), rng.choice(_MADE), _someone(rng)
    b, n = rng.randint(2, 12), rng.randint(2, rng.choice((6, 12, 20)))
    rest = rng.choice((0, rng.randrange(b), rng.randrange(b), rng.randrange(b)))
    total = b * n + rest
    takes = _TAKES.expand(rng, one=one, b=hand.write(b), t=parts)
    begins, kind = _idle(rng, 0.2), rng.random()
    if kind < 0.5:
        facts = [begins + _HAS.expand(rng, x=x, a=hand.write(total), t=parts), takes]
        asked = rng.choice(
            (
                f"how many {several} can be made",
                f"how many {several} at most",
                f"how many {several} is that enough for",
                f"how many whole {several} are possible",
                f"for how many {several} is that enough",
                f"what is the greatest number of {several}",
                f"how many {several} can {x.split(',')[0].split(' (')[0]} make",
            )
        )
        lines = remainder(total, b).lines if rest else apply("/", total, b).lines
        reply = "\n".join((*lines, *((f"So it is {n}.",) if rest else ())))
        return Short(_composed(rng, facts, asked, f"the number of {several} at most", free=True), reply, show(n), n)
    if kind < 0.65:
        facts = [begins + _HAS.expand(rng, x=x, a=hand.write(total), t=parts), takes]
        asked = rng.choice(
            (
                f"how many {parts} are left when as many {several} as possible are made",
                f"how many {parts} stay unused after the last {one}",
                f"how many {parts} are left over in the end",
            )
        )
        return computed(_composed(rng, facts, asked, f"the {parts} left over", free=True), remainder(total, b))
    if kind < 0.82:
        facts = [
            begins
            + rng.choice(
                (
                    f"{x} wants to make {hand.write(n)} {several}",
                    f"{x} plans {hand.write(n)} {several}",
                    f"{hand.write(n)} {several} are wanted",
                    f"we need {hand.write(n)} {several}",
                )
            ),
            takes,
        ]
        asked = rng.choice(
            (
                f"how many {parts} are needed",
                f"how many {parts} does it take",
                f"how many {parts} is that",
                f"how many {parts} must there be",
            )
        )
        return computed(_composed(rng, facts, asked, f"the number of {parts}", free=True), apply("*", n, b))
    c = rng.randint(1, b * n - 1)
    facts = [
        begins + rng.choice((f"{x} wants to make {hand.write(n)} {several}", f"{hand.write(n)} {several} are planned")),
        takes,
        f"{hand.write(c)} {parts} are already there",
    ]
    require(c > 1)
    asked = rng.choice(
        (f"how many {parts} are missing", f"how many more {parts} are needed", f"how many {parts} are still missing")
    )
    return computed(_composed(rng, facts, asked, f"the {parts} that are missing"), chain(n, ("*", b), ("-", c)))


_FIRST_WORDS = frozenset(
    "the a an my our his her their there some after before of from out once on in at grandma grandpa mom dad".split()
)
_PLAIN = tuple(
    name
    for name, function in TOPICS.items()
    if function.__module__ in (stories.__name__, story_kinds.__name__)
    and name not in ("days", "every_day", "saved", "money_changes", "bought", "unknown")
)


@topic(5)
def with_idle_numbers(rng: random.Random) -> Short:
    """A story that also has a time, a date, an age or a house's number."""
    short = TOPICS[rng.choice(_PLAIN)](rng) if rng.random() < 0.6 else stories_in_phrases(rng)
    require(
        not short.is_fixed
        and len(short.question) < 200
        and "degrees" not in short.question
        and "floor" not in short.question
    )
    text = short.question
    first = text.split(" ", 1)[0]
    if (
        rng.random() < 0.45
        and ". " in text
        and not text.lower().startswith(("how", "what", "if", "suppose", "say", "when", "given", "let", "tell", "find"))
    ):
        begin = _IDLE.expand(rng, **_idle_slots(rng))
        text = f"{begin[0].upper()}{begin[1:]}, {text[0].lower() + text[1:] if first.lower() in _FIRST_WORDS else text}"
    else:
        text = f"{_IDLE_SENTENCES.expand(rng, **_idle_slots(rng))} {text}"
    return replace(short, question=text)

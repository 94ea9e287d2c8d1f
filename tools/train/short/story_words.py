"""The lexicon of stories: verbs and their forms, who acts, and classes of things with the verbs that fit them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from problems import words

from . import things

# Verbs ----------------------------------------------------------------------------------------

# base past participle; regular verbs are formed by rule
_IRREGULAR = {base: (past, participle) for base, past, participle in (line.split() for line in """
be was been|have had had|get got got|buy bought bought|find found found|give gave given|take took taken|win won won
make made made|catch caught caught|steal stole stolen|bring brought brought|draw drew drawn|lose lost lost|eat ate eaten
sell sold sold|deal dealt dealt|spin spun spun|ride rode ridden|break broke broken|throw threw thrown|spend spent spent|hide hid hidden|burn burned burned
drink drank drunk|lend lent lent|put put put|leave left left|come came come|fly flew flown|run ran run|go went gone
grow grew grown|lay laid laid|build built built|write wrote written|read read read|keep kept kept|send sent sent
pay paid paid|sew sewed sewn|knit knitted knitted|swim swam swum|fall fell fallen|hold held held|cut cut cut
blow blew blown|tear tore torn|feed fed fed|dig dug dug|swap swapped swapped|shoot shot shot|do did done
hang hung hung|melt melted melted|begin began begun|set set set|drive drove driven|score scored scored|see saw seen
sink sank sunk|hatch hatched hatched|die died died|show showed shown|let let let|sweep swept swept|wear wore worn
fill filled filled|spill spilled spilled|shut shut shut|split split split|bet bet bet|ship shipped shipped
drop dropped dropped|pop popped popped|trap trapped trapped|step stepped stepped|chop chopped chopped
plan planned planned|grab grabbed grabbed|trim trimmed trimmed|stop stopped stopped|rip ripped ripped|hop hopped hopped
download downloaded downloaded|check checked checked|scrap scrapped scrapped|tip tipped tipped""".strip().replace("\n", "|").split("|"))}
_VOWELS = "aeiou"


def form(verb: str, which: str) -> str:
    """`which`: base, s, past, part or ing. Only the first word changes: `give away`, `gives away`."""
    first, _, rest = verb.partition(" ")
    return _FORMS[which](first) + (f" {rest}" if rest else "")


def _third(base: str) -> str:
    if base in ("be", "have"):
        return {"be": "is", "have": "has"}[base]
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def _past(base: str) -> str:
    if base in _IRREGULAR:
        return _IRREGULAR[base][0]
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")


def _ing(base: str) -> str:
    past = _past(base)
    doubled = past.endswith("ed") and len(past) > len(base) + 2
    if doubled or base in ("get", "win", "put", "run", "swim", "cut", "dig", "set", "let", "shut", "split", "bet"):
        return base + base[-1] + "ing"
    return (base[:-1] if base.endswith("e") and base not in ("be", "see") else base) + "ing"


_FORMS = {"base": lambda base: base, "s": _third, "past": _past,
          "part": lambda base: _IRREGULAR[base][1] if base in _IRREGULAR else _past(base), "ing": _ing}

_SHARED_VERBS = {
    "@get": "get, receive, be given, find, win, collect, take, bring home, borrow, be handed, accept",
    "@buy": "buy, order, purchase, pick up, get",
    "@stock": "order, buy, get, receive, take in, stock up on",
    "@lose": "lose, misplace, drop, leave behind, forget",
    "@give": "give away, donate, hand out, share, lend, pass on, give to a friend, give back, trade away, return, send away",
    "@sell": "sell, sell, trade away, auction off",
    "@bin": "throw away, throw out, get rid of, discard, toss, scrap",
}
TAILS = {
    "buy": "at the market|at the store|online|from a friend|in town|at the mall|on sale",
    "get": "for a birthday|as a gift|from a friend|from grandma|at school|from an uncle",
    "receive": "as a present|in the mail|from an aunt|from a friend",
    "find": "on the street|under the bed|in the attic|in the park|behind the sofa|in a drawer",
    "win": "at the fair|in a game|in a contest|in a raffle", "sell": "at the fair|online|to a neighbor|at the market|to a customer",
    "lose": "on the way home|in the park|in a game|at school|on the bus", "eat": "for lunch|for breakfast|after dinner|on the way|at once",
    "donate": "to charity|to the school|to a shelter", "lend": "to a friend|to a neighbor|to a classmate",
    "give away": "to friends|for free|to the neighbors", "pick": "in the garden|after school|in the orchard",
    "borrow": "from a friend|from the library|from a neighbor", "use": "at work|for a project|for a recipe|at school",
    "hand out": "to friends|in class|at a party", "share": "with friends|with a brother|with the team", "order": "online|from a catalog",
    "drop": "on the floor|on the way|into the river", "throw away": "because they are old|after a week",
    "spend": "on food|on a gift|on a book|on lunch|on the bus|at the fair|on games", "earn": "at work|by washing cars|for chores|as a tip",
}
# How verbs of movement are said of those who move.
ARRIVE = {
    "people": "come, arrive, join, walk in, come in, enter, show up, turn up, come along, step in",
    "riders": "get on, board, hop on, climb in, get in, step on",
    "birds": "fly in, land, arrive, come, join them, settle there",
    "animals": "come, arrive, run in, join them, wander in, show up, be born, be brought in",
    "water": "swim by, join them, come, arrive, be added, swim over",
    "cars": "drive in, arrive, pull in, come, park there, stop there",
    "things": "be added, be put there, be delivered, be brought, arrive, be placed there, be dropped off",
}
LEAVE = {
    "people": "leave, go home, go away, walk out, go out, run off, fall asleep and go, be sent home, be called away",
    "riders": "get off, leave, hop off, climb out, get out, step off",
    "birds": "fly away, leave, fly off, take off, be scared away, go away",
    "animals": "run away, leave, escape, wander off, be sold, go away, hop away",
    "water": "swim away, be caught, leave, be sold, dive away",
    "cars": "drive away, leave, drive off, pull out, depart, be towed away",
    "things": "be taken away, be removed, disappear, be sold, be used, be stolen, fall down, break, get lost, be picked up, go missing, be taken",
}


# They can be counted, but leave the number of what somebody has as it is.
NEUTRAL = frozenset("""wash water sharpen decorate tune unwrap dry fold clean light paint repair fix charge iron read peel slice
chop grate boil answer open skip type see spot meet juice publish feed try fold assemble connect crack squash fill
install copy print unload pack load visit drop off""".split()) - {"drop", "off", "pack", "load", "print", "unload"} | {
    "hang up", "try on and keep", "set up", "switch off", "take down", "chase away", "scare off", "block", "drop off", "deliver"}


def verbs(text: str) -> tuple[str, ...]:
    for name, shared in _SHARED_VERBS.items():
        text = text.replace(name, shared)
    return tuple(verb.strip() for verb in text.split(","))


# Things ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thing:
    noun: str  # plural: "apples", "liters of milk"
    gains: tuple[str, ...]
    losses: tuple[str, ...]
    containers: tuple[str, ...]  # plural
    kinds: tuple[str, ...]
    cost: tuple[int, int]  # dollars, from and to

    @property
    def short(self) -> str:
        """How the noun is said again: "liters"."""
        return self.noun.split(" of ")[0]


# nouns; verbs that gain; verbs that lose; containers; kinds; cost
_CLASSES = """
apples, oranges, pears, peaches, plums, mangoes, lemons, bananas, figs; pick, harvest, gather, @get, @buy; eat, peel, squeeze, slice, juice, @give, @sell, @bin; baskets, crates, bags, bowls, boxes; red, green, ripe, rotten, small; 1-5
cherries, grapes, strawberries, blueberries, raspberries, olives; pick, gather, @get, wash; eat, freeze, squash, @give, @bin; bowls, cups, baskets, bags; sweet, ripe, sour, big; 1-4
carrots, potatoes, onions, tomatoes, cucumbers, peppers, pumpkins, radishes; dig up, grow, harvest, pull up, @buy; cook, peel, chop, grate, eat, @give, @sell, @bin; sacks, crates, bags, rows; big, small, fresh, old; 1-6
eggs; collect, buy, gather, find, get; break, crack, boil, fry, use, eat, sell, drop; cartons, boxes, nests, trays; brown, white, fresh, cracked; 1-4
cookies, muffins, cupcakes, brownies, donuts, rolls, scones, pancakes, waffles; bake, make, decorate, @buy, be given; eat, burn, serve, @give, @sell, drop; trays, plates, boxes, tins, bags; plain, chocolate, warm, burnt; 1-4
cakes, pies, pizzas, loaves, pastries, sandwiches, burgers, tacos; bake, make, prepare, order, buy, deliver; eat, serve, sell, burn, deliver, share, give away; boxes, trays, tables; large, small, hot, vegetarian; 4-20
candies, sweets, chocolates, lollipops, gummy bears, mints, toffees; @get, @buy, unwrap; eat, chew, share, @give, drop, swap; bags, boxes, jars, packs, tins; red, sour, sticky, green; 1-3
nuts, acorns, almonds, walnuts, chestnuts, peanuts; gather, collect, find, pick, crack; eat, bury, hide, lose, roast, @give; bags, bowls, holes, jars; big, small, salted, old; 1-3
marbles, stickers, trading cards, beads, shells, badges, figurines; @get, @buy, add, discover; @lose, @give, swap, gamble away, trade; boxes, bags, albums, jars, packs; red, blue, shiny, rare, old; 1-5
stamps, coins, postcards, medals, buttons, bottle caps; @get, add, inherit, dig up, @buy; @lose, @give, @sell, swap; albums, boxes, jars, drawers; old, foreign, gold, rare; 1-9
books, comics, novels, magazines, atlases, dictionaries; @get, @stock, check out, publish; read, @give, @sell, @lose, return; shelves, boxes, piles, bags; new, old, thick, green; 4-20
pencils, pens, erasers, markers, crayons, rulers, brushes, paint tubes; @get, @buy, sharpen; break, use up, @lose, @give, chew up; boxes, packs, cups, drawers, cases; red, blue, new, broken; 1-4
notebooks, folders, envelopes, sheets of paper, index cards; @buy, @get, print; use, use up, tear up, fill, @give, @bin; packs, piles, drawers, boxes; blank, lined, yellow, new; 1-5
shirts, hats, scarves, sweaters, jackets, belts, skirts, ties, coats, dresses; @buy, sew, knit, make, try on and keep; sell, return, give away, lose, donate, throw out, rip, outgrow, iron; bags, drawers, boxes, racks; blue, warm, new, striped; 8-40
socks, gloves, shoes, boots, mittens, slippers; @buy, knit, find, get; lose, throw away, wear out, give away, donate; drawers, bags, boxes; black, woolen, old, gray; 3-30
roses, tulips, daisies, lilies, sunflowers, orchids, violets; pick, plant, grow, buy, water, cut, be given; give away, sell, throw away, cut, press, drop; vases, bunches, pots, beds, rows; red, yellow, white, wilted; 1-6
trees, bushes, shrubs, saplings; plant, buy, grow, order; cut down, sell, chop down, dig up, lose, trim away; rows, fields, gardens; tall, young, old, green; 10-40
seeds, bulbs, seedlings; buy, plant, find, sow, order; plant, use, lose, drop, sow, give away; packets, pots, rows, bags; small, round, dry, new; 1-4
balloons, candles, lanterns, flags, garlands; blow up, buy, light, hang up, get, decorate; pop, lose, burn, take down, let go of, give away, blow out; packs, boxes, rows, bunches; red, green, gold, big; 1-5
toy cars, dolls, teddy bears, robots, puzzles, kites, yo-yos, balls; @get, @buy, build, make; break, @lose, @give, @sell, smash; boxes, shelves, bags, chests; old, new, blue, broken; 3-25
blocks, bricks, cubes, dominoes, puzzle pieces; buy, find, get, add, stack, pile up, lay; lose, use, knock over, remove, take away, drop; boxes, towers, rows, piles; yellow, wooden, red, loose; 1-5
screws, nails, bolts, nuts and bolts, hooks, washers; buy, find, order, get, add; use, use up, drop, bend, lose, hammer in; boxes, jars, packs, drawers; long, short, rusty, steel; 1-3
lamps, chairs, tables, shelves, desks, benches, stools, sofas; build, buy, make, order, repair, assemble, paint; sell, break, throw out, ship, deliver, donate, rent out; rooms, rows, trucks; wooden, white, old, broken; 15-90
plates, cups, bowls, spoons, forks, glasses, mugs, pots; buy, wash, find, borrow, dry, get; break, smash, drop, crack, sell, give away, chip; boxes, shelves, stacks, cupboards; clean, dirty, blue, broken; 2-12
bottles, cans, jars, cartons, packets; collect, buy, fill, order, recycle, find; empty, recycle, break, use, sell, drop, return; crates, boxes, bags, shelves; full, empty, green, small; 1-5
keys, umbrellas, suitcases, backpacks, wallets, watches, sunglasses; find, buy, get, pick up; lose, leave behind, forget, sell, return, give back; drawers, hooks, boxes; black, old, lost, silver; 5-50
phones, laptops, tablets, cameras, headphones, batteries, chargers, printers; buy, order, fix, repair, assemble, charge, make, receive; sell, break, return, ship, recycle, give away; boxes, shelves, crates; new, used, broken, charged; 20-90
bikes, scooters, skateboards, wheels, tires, helmets; repair, buy, build, order, fix, paint; sell, rent out, lose, lend, return, ship; racks, rows, shops; blue, flat, used, new; 20-95
photos, pictures, posters, drawings, paintings, sketches; take, draw, paint, print, hang up, make; delete, tear up, sell, give away, lose, take down, send; albums, folders, frames, walls; old, framed, funny, dark; 2-30
emails, messages, letters, text messages, invitations; get, receive, write, send, type; delete, answer, open, archive, read, throw away, lose; folders, piles, bags; unread, new, short, important; 1-3
songs, videos, games, films, podcasts, apps; download, buy, record, add, save, install; delete, remove, erase, skip, uninstall, sell; lists, folders, albums; new, old, favorite, long; 1-9
points, goals, stars, tokens, gems, lives; score, win, earn, get, gain, collect, make; lose, spend, give up, trade in, gamble away, be fined; rounds, games, levels, bags; golden, extra, blue, lucky; 1-4
tickets, vouchers, coupons, passes; buy, get, win, book, reserve, print; sell, use, lose, give away, return, cancel, tear up; booklets, envelopes, packs, stacks; free, cheap, used, valid; 3-40
chickens, ducks, geese, turkeys, hens; buy, raise, get, adopt, hatch; sell, lose, give away, set free; pens, coops, yards; brown, white, young, noisy; 5-15
cows, goats, sheep, horses, pigs, donkeys, llamas; buy, raise, adopt, get, rescue, find; sell, lose, give away, send away, trade; stables, barns, fields, pens; black, brown, young, spotted; 40-200
cats, dogs, kittens, puppies, rabbits, hamsters, guinea pigs, parrots; adopt, rescue, get, find, take in, be given; give away, sell, lose, find homes for, return; cages, baskets, rooms; black, white, brown, tiny; 10-60
fish, goldfish, guppies, crabs, shrimps, trout; catch, buy, get, hook, breed; eat, throw back, release, fry, sell, cook, lose, set free; tanks, buckets, nets, bowls, ponds; gold, small, striped, big; 2-12
bees, ants, beetles, snails, frogs, butterflies, caterpillars, spiders, worms; catch, find, collect, spot, breed; let go, release, lose, set free, feed to the birds; jars, boxes, nests, cages; green, tiny, black, striped; 1-3
houses, rooms, apartments, cabins, cottages; build, buy, paint, rent, clean, inherit; sell, rent out, tear down, lose, demolish; streets, floors, villages; empty, white, old, new; 90-400
cars, trucks, buses, vans, boats, tractors, motorcycles; buy, wash, repair, build, rent, order; sell, rent out, scrap, lose, ship, return; rows, garages, lots; red, used, electric, old; 90-400
stones, rocks, pebbles, feathers, leaves, pine cones, sticks, flowers; collect, find, gather, pick up, pile up, rake up; throw away, drop, lose, give away, burn, throw into the river; bags, piles, buckets, boxes; flat, gray, brown, smooth; 1-3
pages, chapters, poems, stories, essays, reports; write, finish, type, print, read, copy; delete, tear out, throw away, skip, erase, cross out; books, folders, notebooks, piles; long, short, blank, boring; 1-5
questions, exercises, problems, tasks, chores, puzzles; get, add, write, receive, find, be assigned; solve, finish, skip, answer, do, complete, cross off; pages, sheets, tests, lists; hard, easy, new, open; 1-3
dollars, euros, coins in cash; earn, save, win, find, get, receive, be paid, make, borrow, inherit; spend, lose, pay, donate, lend, give away, waste, pay back; envelopes, jars, piggy banks; extra, spare; 1-1
liters of milk, liters of water, gallons of paint, liters of oil, cups of juice, liters of lemonade; buy, pour in, add, get, make; drink, use, spill, pour out, sell, use up, waste; cans, jugs, tanks, bottles; cold, fresh; 1-5
kilograms of rice, kilos of flour, pounds of sugar, kilos of potatoes, pounds of coffee, grams of cheese; buy, order, add, get, weigh out; use, cook, eat, sell, use up, spill, give away; sacks, bags, boxes; organic, fresh; 1-6
meters of rope, feet of ribbon, meters of wire, yards of cloth, feet of string; buy, find, get, order, add; use, cut off, sell, waste, give away, need for a kite; rolls, spools, pieces; blue, strong; 1-6
slices of pizza, slices of bread, pieces of cake, pieces of cheese, scoops of ice cream; get, cut, order, take, be served; eat, drop, share, give away, feed to the dog; plates, boxes, trays; big, thin; 1-4
bales of hay, bags of cement, sacks of corn, buckets of sand, loads of wood; buy, carry in, unload, get, stack, make; use, sell, burn, feed to the cows, carry away; trucks, barns, carts; heavy, dry; 3-12
tents, sleeping bags, maps, torches, canoes, paddles; buy, borrow, rent, pack, find; lose, return, rent out, sell, lend, leave behind; boxes, cars, shelves; green, old, dry, used; 8-90
guitars, drums, flutes, violins, trumpets; buy, tune, build, get, repair, borrow; sell, break, rent out, lend, return; cases, rooms, racks; old, loud, red, new; 20-95
rings, necklaces, bracelets, earrings, brooches, crowns; make, buy, get, find, inherit, steal; sell, lose, give away, melt down, pawn, return; boxes, cases, drawers; gold, silver, cheap, old; 5-60
pillows, blankets, towels, curtains, rugs, sheets; buy, sew, wash, get, fold, dry; give away, throw out, sell, lose, donate; shelves, baskets, closets, piles; soft, white, clean, old; 5-30
plants, cacti, herbs, ferns, palms; buy, grow, water, plant, get, repot; sell, lose, give away, throw out, kill; pots, rows, shelves, gardens; green, tall, dry, small; 3-25
snacks, chips, crackers, pretzels, popsicles, hot dogs, sausages; buy, make, get, grill, pack; eat, sell, drop, share, hand out, give away; packs, bags, boxes, tins; salty, cold, spicy, cheap; 1-5
snowballs, snowmen, sandcastles, paper planes, paper boats, origami cranes; make, build, fold, finish, throw together; throw, knock down, crush, destroy, lose, give away; piles, rows, boxes; big, small, white, neat; 1-2
newspapers, parcels, packages, pizzas, flyers; get, load, receive, pick up, pack; deliver, drop off, hand out, send, post, lose, give out; vans, piles, bags, trucks; heavy, light, urgent, wet; 1-9
players, members, workers, employees, soldiers, volunteers, students, guests, customers; hire, recruit, invite, welcome, get, sign up, gain; lose, fire, send home, let go, dismiss, send away; teams, rooms, groups, rows, buses; new, young, tall, tired; 1-1
votes, followers, subscribers, fans, likes, readers; get, gain, win, attract, earn; lose, miss, give up, block; groups, towns, lists; new, loyal; 1-1
trophies, prizes, ribbons, awards, certificates; win, get, earn, receive, be awarded; lose, give away, sell, break, return; shelves, cases, boxes; gold, small, silver, shiny; 3-20
tools, hammers, saws, drills, wrenches, shovels, rakes, ladders; buy, borrow, find, get, order; break, lose, lend, sell, return, throw away; boxes, sheds, belts, drawers; rusty, heavy, new, old; 5-40
computers, servers, screens, keyboards, mice, routers; buy, install, set up, order, repair, connect; sell, scrap, switch off, return, throw out, unplug; racks, rooms, boxes; new, slow, broken, black; 20-90
dinosaurs, dragons, unicorns, wizards, aliens, monsters, ghosts; draw, see, invent, tame, collect, meet; erase, chase away, lose, scare off, defeat, forget; caves, castles, planets, books; green, tiny, angry, purple; 1-9
bulbs, light bulbs, tiles, planks, windows, doors, pipes; buy, install, order, put in, fit, get; break, replace, smash, use, sell, remove; boxes, rows, walls, stacks; new, broken, square, thick; 2-15
diapers, wipes, bars of soap, rolls of tape, tubes of glue, rolls of paper; buy, get, order, find, stock up on; use, use up, waste, give away, throw away; boxes, packs, bags; soft, cheap; 1-6
tea bags, coffee pods, sugar cubes, spices, straws, napkins; buy, get, order, find, open; use, use up, drop, spill, serve, throw away; boxes, tins, packs, jars; green, black, small, old; 1-4
"""


def _classes() -> tuple[tuple[Thing, ...], ...]:
    found = []
    for line in _CLASSES.strip().splitlines():
        nouns, gains, losses, containers, kinds, cost = (part.strip() for part in line.split(";"))
        low, high = map(int, cost.split("-"))
        found.append(tuple(Thing(noun.strip(), verbs(gains), verbs(losses), verbs(containers), verbs(kinds), (low, high))
                           for noun in nouns.split(",")))
    return tuple(found)


CLASSES = _classes()
MONEY = {"dollars", "euros", "coins in cash"}


def thing(rng: random.Random) -> Thing:
    """Now and then the noun is one that is seldom heard."""
    drawn = rng.choice(rng.choice(CLASSES))
    while drawn.noun in MONEY:
        drawn = rng.choice(rng.choice(CLASSES))
    if rng.random() < 0.1:
        plain = CLASSES[8][0]
        return Thing(things.plural(rng), plain.gains, plain.losses, plain.containers, plain.kinds, plain.cost)
    return drawn


_SAME = {"fish", "goldfish", "sheep", "trout", "headphones", "sunglasses", "popsicles"}
_SINGULAR = {"children": "child", "people": "person", "geese": "goose", "mice": "mouse", "leaves": "leaf", "loaves": "loaf",
             "shelves": "shelf", "scarves": "scarf", "wolves": "wolf", "snowmen": "snowman", "cacti": "cactus",
             "potatoes": "potato", "tomatoes": "tomato", "mangoes": "mango", "dominoes": "domino", "buses": "bus",
             "glasses": "glass", "cookies": "cookie", "brownies": "brownie", "pies": "pie", "ties": "tie", "movies": "movie",
             "men": "man", "women": "woman", "watches": "watch", "lives": "life", "selfies": "selfie", "feet": "foot"}


def singular(noun: str) -> str:
    head, separator, rest = noun.partition(" of ")
    *before, last = head.split(" ")
    if last in _SINGULAR:
        last = _SINGULAR[last]
    elif last in _SAME:
        pass
    elif last.endswith("ies"):
        last = last[:-3] + "y"
    elif last.endswith(("sses", "shes", "ches", "xes")):
        last = last[:-2]
    elif last.endswith("s"):
        last = last[:-1]
    return " ".join((*before, last)) + separator + rest


# Who acts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Actor:
    name: str
    again: str  # the name when it is said again: "the farmer"
    subject: str  # pronouns
    object: str
    possessive: str
    number: str = "s"  # s: third person singular; p: plural, also you; i: I


I = Actor("I", "I", "I", "me", "my", "i")
_WE = Actor("we", "we", "we", "us", "our", "p")
_YOU = Actor("you", "you", "you", "you", "your", "p")
_PRONOUNS = {"f": ("she", "her", "her"), "m": ("he", "him", "his"), "n": ("it", "it", "its"), "p": ("they", "them", "their")}
_ROLES = (
    "f:my sister|f:my mom|f:my aunt|f:grandma|f:my grandmother|f:my wife|f:my daughter|f:our teacher|f:my niece|f:a girl|f:the queen"
    "|f:a woman|f:Mrs. Lee|f:Ms. Diaz|f:Aunt May|f:a nurse|f:my friend|f:a witch|f:the princess|f:a dancer|f:my boss"
    "|m:my brother|m:my dad|m:my uncle|m:grandpa|m:my grandfather|m:my husband|m:my son|m:a boy|m:the king|m:a man|m:Mr. Smith"
    "|m:Uncle Bob|m:a farmer|m:the baker|m:a fisherman|m:a teacher|m:the cook|m:a gardener|m:a pirate|m:my cousin|m:the coach"
    "|m:a carpenter|m:the mechanic|m:a tailor|m:a student|m:the new guy|m:a wizard|m:the butcher|m:a painter|m:my neighbor|m:Dr. Brown"
    "|f:a collector|f:the librarian|m:a trader|f:a tourist|m:the janitor|f:the manager|m:a driver|f:a child|m:a kid|f:a scientist"
    "|p:my parents|p:the neighbors|p:the twins|p:my friends|p:two sisters|p:the boys|p:the girls|p:the children|p:the workers"
    "|p:my grandparents|p:the students|p:some kids|p:the campers|p:the scouts|p:our guests|p:my brothers|p:the team members").split("|")
_PLACES = (
    "n:the shop|n:a store|n:the library|n:our school|n:the class|n:a museum|n:a hotel|n:the zoo|n:a company|n:our team|n:the club"
    "|n:a restaurant|n:the bakery|n:a factory|n:the farm|n:a kiosk|n:the market stall|n:an office|n:the village|n:our family|n:a café").split("|")
_INSTITUTION_VERBS = set("buy order get receive sell give away donate lend lose return throw away rent out ship recycle "
                         "hire recruit win add".split()) | {"give away", "throw away", "rent out", "take in", "be given",
                                                            "stock up on", "throw out", "get rid of", "hand out", "trade away"}


def _role(text: str) -> Actor:
    kind, name = text.split(":")
    article, _, rest = name.partition(" ")
    again = f"the {rest}" if article in ("a", "an", "two", "some") else name
    return Actor(name, again, *_PRONOUNS[kind], number="p" if kind == "p" else "s")


ROLES = tuple(map(_role, _ROLES))
INSTITUTIONS = tuple(map(_role, _PLACES))


def person(rng: random.Random) -> Actor:
    """Somebody with a name."""
    if rng.random() < 0.5:
        (subject, possessive, obj), name = rng.choice(words.PEOPLE)
    else:
        name = things.person(rng)
        subject, obj, possessive = _PRONOUNS[rng.choice("fm")]
    return Actor(name, name, subject, obj, possessive)


def actor(rng: random.Random) -> Actor:
    kind = rng.random()
    if kind < 0.5:
        return person(rng)
    if kind < 0.68:
        return I
    if kind < 0.74:
        return rng.choice((_WE, _WE, _YOU))
    return rng.choice(ROLES)


def fits_institution(verb: str) -> bool:
    return verb in _INSTITUTION_VERBS


def changing(choices: tuple[str, ...]) -> tuple[str, ...]:
    """The verbs after which somebody has more or fewer."""
    return tuple(verb for verb in choices if verb not in NEUTRAL) or choices

"""Rooms, fences, ropes and tanks."""

from . import words
from .problem import Draw, Story, calc, family


@family
def fence_cost(d: Draw) -> Story:
    a = d.person()
    length, width, price, gate = d.int(5, 60), d.int(4, 40), d.int(2, 9), d.int(20, 90)
    d.require(length > width)
    half = calc(length, "+", width)
    around = calc(half, "*", 2)
    fence = calc(around, "*", price)
    total = calc(fence, "+", gate)
    return Story(
        d.tell(
            (f"{a}'s garden is {length} meters long and {width} meters wide.",
             f"{a} has a yard of {length} meters by {width} meters."),
            (f"A fence around it costs ${price} a meter, and the gate costs ${gate}.",
             f"{a.They} puts a fence around it for ${price} per meter, with a gate for ${gate}."),
            (f"How much does {a} pay?", "How many dollars is that in total?")),
        [f"Length and width make {half} meters.", f"All the way around it is {around} meters.",
         f"The fence costs {fence:$}.", f"With the gate it is {total:$}."],
        total)


@family
def floor_tiles(d: Draw) -> Story:
    a, room = d.person(), d.pick(words.ROOMS)
    length, width, per_meter, have = d.int(3, 15), d.int(2, 12), d.int(2, 9), d.int(3, 30)
    area = calc(length, "*", width)
    tiles = calc(area, "*", per_meter)
    missing = calc(tiles, "-", have)
    d.require(missing.value > 0)
    return Story(
        d.tell(
            (f"The {room} is {length} meters long and {width} meters wide.",
             f"{a}'s {room} measures {length} by {width} meters."),
            (f"A square meter takes {per_meter} tiles, and {a} has {have} tiles already.",
             f"{a} already has {have} tiles and needs {per_meter} for each square meter."),
            (f"How many tiles does {a.they} have to buy?", f"How many more tiles does {a} need?")),
        [f"The area is {area} square meters.", f"It takes {tiles} tiles.", f"{a} buys {missing} tiles."],
        missing)


@family
def paint_the_walls(d: Draw) -> Story:
    a = d.person()
    walls, length, height, coverage = d.int(2, 8), d.int(3, 15), d.int(2, 4), d.number_from((2, 3, 4, 5, 6, 8, 10))
    price = d.int(8, 30)
    d.require(walls * length * height % coverage == 0)
    wall = calc(length, "*", height)
    area = calc(wall, "*", walls)
    cans = calc(area, "/", coverage)
    cost = calc(cans, "*", price)
    d.require(2 <= cans.value <= 60)
    return Story(
        d.tell(
            (f"{a} paints {walls} walls, each {length} meters long and {height} meters high.",
             f"There are {walls} walls of {length} by {height} meters, and {a} paints them all."),
            (f"One can of paint covers {coverage} square meters and costs ${price}.",
             f"A ${price} can of paint is enough for {coverage} square meters."),
            ("How much does the paint cost?", f"How many dollars does {a} spend on paint?")),
        [f"One wall is {wall} square meters.", f"All the walls are {area} square meters.",
         f"That takes {cans} cans.", f"The paint costs {cost:$}."],
        cost)


@family
def cut_into_pieces(d: Draw) -> Story:
    a, x = d.person(), d.pick(words.MATERIALS)
    piece, pieces, used, rolls = d.int(2, 15), d.int(4, 30), d.int(3, 40), d.number_from((2, 3, 4, 5))
    length = piece * pieces + used
    d.require(length % rolls == 0)
    total = calc(rolls, "*", length // rolls)
    left = calc(total, "-", used)
    count = calc(left, "/", piece)
    return Story(
        d.tell(
            (f"{a} has {rolls} rolls of {x}, each {length // rolls} feet long.",
             f"There are {rolls} rolls of {x} with {length // rolls} feet on each."),
            (f"{a.They} uses {used} feet and cuts the rest into pieces of {piece} feet.",
             f"After using {used} feet, {a} cuts what is left into {piece} foot pieces."),
            (f"How many pieces does {a.they} get?", "How many pieces are there?")),
        [f"There are {total} feet of {x}.", f"Then {left} feet are left.", f"{a} gets {count} pieces."],
        count)


@family
def filling_a_tank(d: Draw) -> Story:
    x, place = d.pick(words.LIQUIDS), d.pick(words.CONTAINERS)
    flow, leak, minutes, start = d.int(6, 30), d.int(2, 9), d.int(4, 30), d.int(10, 90)
    d.require(flow > leak)
    capacity = start + (flow - leak) * minutes
    net, missing = calc(flow, "-", leak), calc(capacity, "-", start)
    time = calc(missing, "/", net)
    return Story(
        d.tell(
            (f"A {place} holds {capacity} liters and has {start} liters of {x} in it.",
             f"There are {start} liters of {x} in a {place} that can hold {capacity} liters."),
            (f"Every minute {flow} liters flow in and {leak} liters leak out.",
             f"A pipe adds {flow} liters a minute, but {leak} liters a minute leak out."),
            (f"After how many minutes is the {place} full?", "How many minutes does it take to fill it?")),
        [f"Each minute adds {net} liters.", f"There are {missing} liters missing.", f"It takes {time} minutes."],
        time)


@family
def weight_of_boxes(d: Draw) -> Story:
    a = d.person()
    n, w, m, v, limit = d.int(3, 20), d.int(4, 30), d.int(3, 20), d.int(4, 30), d.int(300, 1500, 50)
    d.require(w != v)
    big, small = calc(n, "*", w), calc(m, "*", v)
    total = calc(big, "+", small)
    spare = calc(limit, "-", total)
    return Story(
        d.tell(
            (f"{a}'s van can carry {limit} pounds.", f"{a} drives a van that carries up to {limit} pounds."),
            (f"{a.They} loads {n} large boxes of {w} pounds and {m} small boxes of {v} pounds.",
             f"In it are {n} large boxes that weigh {w} pounds each and {m} small ones of {v} pounds each."),
            ("How many more pounds can it carry?", "How many pounds can still be loaded?")),
        [f"The large boxes weigh {big} pounds.", f"The small boxes weigh {small} pounds.",
         f"Together they weigh {total} pounds.", f"The van can take {spare} more pounds."],
        spare)


@family
def electricity_use(d: Draw) -> Story:
    a = d.person()
    lamps, hours, cents, days = d.int(3, 15), d.int(2, 9), d.int(2, 9), d.int(5, 30, 5)
    per_day = calc(lamps, "*", hours)
    cost = calc(per_day, "*", cents)
    total = calc(cost, "*", days)
    return Story(
        d.tell(
            (f"{a} has {lamps} lamps that burn {hours} hours a day.",
             f"In {a}'s house {lamps} lamps are on for {hours} hours every day."),
            (f"An hour of one lamp costs {cents} cents.", f"One lamp uses {cents} cents an hour."),
            (f"How many cents does {a} pay for {days} days?", f"How many cents is that in {days} days?")),
        [f"The lamps burn {per_day} hours a day.", f"A day costs {cost} cents.",
         f"{days} days cost {total} cents."],
        total)

"""Building and measuring: lengths, areas, volumes and materials."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import TIMES, amount, capital, maybe, nouns, story, tell
from .wordings import person

_PLOTS = nouns("garden, field, yard, room, park, terrace, pool, court, hall, carpet, rug, wall")
_FENCED = nouns("garden, field, yard, park, meadow, playground, pasture")


@family
def area_of_a_plot(d: Draw) -> Story:
    x, w, h = d.pick(_PLOTS), amount(d, (2, 12), (10, 80)), amount(d, (2, 12), (10, 80))
    d.require(w != h)
    unit = d.pick(["meter", "foot"])
    units = {"meter": "meters", "foot": "feet"}[unit]
    area = calc(w, "*", h)
    return story(
        tell(d, (
            f"{x.a.capitalize()} is {w} {units} long and {h} {units} wide. What is its area in square {units}?",
            f"What is the area of {x.a} that measures {w} by {h} {units}?",
            f"How many square {units} does {x.a} of {w} {units} by {h} {units} have?",
            f"The sides of a rectangular {x.one} are {w} {units} and {h} {units}. How large is its area?")),
        [f"The area is {area} square {units}."], area)


@family
def fence_around(d: Draw) -> Story:
    x, w, h = d.pick(_FENCED), amount(d, (3, 20), (20, 90)), amount(d, (3, 20), (20, 90))
    d.require(w != h)
    half = calc(w, "+", h)
    total = calc(half, "*", 2)
    return story(
        tell(d, (
            f"A rectangular {x.one} is {w} meters long and {h} meters wide. How many meters of fence go around it?",
            f"How long is the fence around {x.a} of {w} by {h} meters?",
            f"A fence is built around {x.a} with sides of {w} and {h} meters. What is the length of the fence?",
            f"What is the perimeter of a rectangular {x.one} that is {w} meters by {h} meters?")),
        [f"One long and one short side are {half} meters.", f"All four sides are {total} meters."], total)


@family
def square_plot(d: Draw) -> Story:
    x, side, price = d.pick(_FENCED), d.int(3, 60), d.int(2, 30)
    around = calc(side, "*", 4)
    cost = calc(around, "*", price)
    return story(
        tell(d, (f"A square {x.one} has sides of {side} meters.", f"Each side of a square {x.one} is {side} meters long.",
                 f"{capital(x.a)} has the shape of a square with a side of {side} meters."),
             (f"A meter of fence costs ${price}.", f"The price of fence is ${price} per meter.", f"Fence is sold at ${price} a meter."),
             ("How much does a fence around it cost?", f"What does it cost to fence the {x.one}?", "How many dollars is a fence on all four sides?")),
        [f"The fence is {around} meters long.", f"It costs {cost:$}."], cost)


@family
def width_from_perimeter(d: Draw) -> Story:
    x, w, h = d.pick(_PLOTS), d.int(5, 80), d.int(2, 60)
    d.require(w > h)
    around = 2 * (w + h)
    half = calc(around, "/", 2)
    result = calc(half, "-", w)
    return story(
        tell(d, (
            f"The perimeter of a rectangular {x.one} is {around} meters, and its length is {w} meters. How wide is it?",
            f"All four sides of a rectangular {x.one} add up to {around} meters. It is {w} meters long. What is its width?",
            f"How many meters wide is {x.a} with a perimeter of {around} meters and a length of {w} meters?",
            f"It is {around} meters around a rectangular {x.one} whose long side is {w} meters. How long is the short side?")),
        [f"Length and width are {half} meters.", f"The width is {result} meters."], result)


@family
def length_from_area(d: Draw) -> Story:
    x, w, h = d.pick(_PLOTS), d.int(3, 40), d.int(3, 40)
    d.require(w != h)
    area = w * h
    side = calc(area, "/", w)
    half = calc(w, "+", side)
    around = calc(half, "*", 2)
    return story(
        tell(d, (f"The area of a rectangular {x.one} is {area} square meters.", f"A rectangular {x.one} covers {area} square meters.",
                 f"{capital(x.a)} has the shape of a rectangle and an area of {area} square meters."),
             (f"One side is {w} meters long.", f"One of its sides measures {w} meters.", f"It is {w} meters along one side."),
             ("What is its perimeter in meters?", f"How many meters is it around the {x.one}?", "How long are all four sides together?")),
        [f"The other side is {side} meters.", f"Two sides are {half} meters.", f"All four are {around} meters."], around)


@family
def tiles_on_a_floor(d: Draw) -> Story:
    a, room = person(d), d.pick(["kitchen", "bathroom", "hall", "terrace", "lobby", "corridor"])
    w, h, per, box = d.int(2, 15), d.int(2, 15), d.number_from((4, 6, 9, 10, 12, 16, 25)), d.number_from((5, 10, 12, 20))
    d.require(w * h * per % box == 0)
    area = calc(w, "*", h)
    tiles = calc(area, "*", per)
    boxes = calc(tiles, "/", box)
    return story(
        tell(d, (f"{a}'s {room} is {w} meters by {h} meters.", f"A {room} measures {w} by {h} meters.", f"{a} wants to tile a {room} that is {w} meters long and {h} meters wide."),
             [(f"One square meter takes {per} tiles.", f"{per} tiles cover a square meter.", f"For a square meter of floor {per} tiles are used."),
              (f"A box contains {box} tiles.", f"Tiles come in boxes of {box}.", f"There are {box} tiles in each box.")],
             ("How many boxes are needed?", "How many boxes of tiles does it take?", "What number of boxes covers the floor?")),
        [f"The floor has {area} square meters.", f"It takes {tiles} tiles.", f"Those are {boxes} boxes."], boxes)


@family
def paint_a_wall(d: Draw) -> Story:
    a = person(d)
    w, h, window, cover = d.int(4, 20), d.int(2, 6), d.int(2, 12), d.number_from((2, 3, 4, 5, 6, 8))
    area = calc(w, "*", h)
    rest = calc(area, "-", window)
    d.require(rest.value % cover == 0 and rest.value > cover)
    liters = calc(rest, "/", cover)
    return story(
        tell(d, (f"A wall is {w} meters long and {h} meters high.", f"{a} paints a wall of {w} by {h} meters.", f"{a}'s wall measures {w} meters by {h} meters."),
             [(f"The window in it takes up {window} square meters.", f"Of the wall, {window} square meters are window.", f"A window of {window} square meters is not painted."),
              (f"A liter of paint covers {cover} square meters.", f"{cover} square meters need a liter of paint.", f"With a liter of paint {cover} square meters can be painted.")],
             ("How many liters of paint are needed?", f"How many liters does {a} need?", "What amount of paint does the wall take, in liters?")),
        [f"The wall has {area} square meters.", f"Without the window it is {rest} square meters.", f"It takes {liters} liters."], liters)


@family
def pieces_of_material(d: Draw) -> Story:
    a, x = person(d), d.pick(things.MATERIALS)
    unit = d.pick(["meters", "feet", "centimeters", "inches"])
    piece, n = amount(d, (2, 12), (10, 40)), amount(d, (2, 12), (10, 40))
    total = piece * n
    result = calc(total, "/", piece)
    return story(
        tell(d, (
            f"{a} cuts {total} {unit} of {x} into pieces of {piece} {unit}. How many pieces are there?",
            f"How many pieces of {piece} {unit} can be cut from {total} {unit} of {x}?",
            f"A roll has {total} {unit} of {x}. {a} needs pieces that are {piece} {unit} long. How many does {a.they} get?",
            f"Each piece of {x} must be {piece} {unit} long. {a} has {total} {unit}. How many pieces is that?")),
        [f"The number of pieces is {result}."], result)


@family
def leftover_material(d: Draw) -> Story:
    a, x = person(d), d.pick(things.MATERIALS)
    piece, n, total = d.int(2, 25), d.int(3, 25), d.int(20, 700)
    used = calc(piece, "*", n)
    left = calc(total, "-", used)
    d.require(0 < left.value < total)
    unit = d.pick(["meters", "feet", "inches", "centimeters"])
    return story(
        tell(d, [(f"{a} has {total} {unit} of {x}.", f"{total} {unit} of {x} are on {a}'s roll.", f"{a} bought {total} {unit} of {x}."),
                 (f"{a} cuts off {n} pieces of {piece} {unit} each.", f"{n} pieces, each {piece} {unit} long, are needed for {a}'s project.",
                  f"For a project {a} uses {n} pieces, each {piece} {unit} long.")],
             (f"How many {unit} of {x} are left?", f"How much {x} remains, in {unit}?", f"What length of {x} is not used?")),
        [f"The pieces take {used} {unit}.", f"The rest is {left} {unit}."], left)


@family
def bricks_in_a_wall(d: Draw) -> Story:
    a = person(d)
    rows, per, rate, time = d.int(5, 40), d.int(10, 60), d.int(10, 60), d.int(2, 20)
    done = rows * per - rate * time
    d.require(done > 1)
    total = calc(rows, "*", per)
    rest = calc(total, "-", done)
    hours = calc(rest, "/", rate)
    return story(
        tell(d, (f"A wall has {rows} rows of {per} bricks.", f"{a} builds a wall with {rows} rows, each of {per} bricks.", f"Each of the {rows} rows of a wall takes {per} bricks."),
             [(f"So far {a} has laid {done} bricks.", f"{done} bricks are already in place.", f"{a} has finished {done} bricks."),
              (f"In an hour {a} lays {rate} bricks.", f"{a} can lay {rate} bricks an hour.", f"{rate} bricks take {a} one hour.")],
             ("How many hours does the rest take?", f"How many more hours does {a} need?", "In how many hours is the wall done?")),
        [f"The wall has {total} bricks.", f"The rest is {rest} bricks.", f"It takes {hours} hours."], hours)


@family
def box_volume(d: Draw) -> Story:
    x = d.pick(nouns("box, tank, crate, room, container, pit, block, chest"))
    w, h, t = d.int(2, 20), d.int(2, 15), d.int(2, 12)
    unit = d.pick(["meters", "feet", "centimeters", "inches"])
    base = calc(w, "*", h)
    volume = calc(base, "*", t)
    return story(
        tell(d, (
            f"{capital(x.a)} is {w} {unit} long, {h} {unit} wide and {t} {unit} high. What is its volume in cubic {unit}?",
            f"How many cubic {unit} does {x.a} of {w} by {h} by {t} {unit} have?",
            f"The length of {x.a} is {w} {unit}, the width {h} {unit} and the height {t} {unit}. How large is the volume?",
            f"What is the volume of {x.a} with sides of {w}, {h} and {t} {unit}?")),
        [f"The base has {base} square {unit}.", f"The volume is {volume} cubic {unit}."], volume)


@family
def fill_a_tank(d: Draw) -> Story:
    rate, drain, minutes = d.int(5, 60), d.int(2, 40), d.int(3, 40)
    x, y = d.pick(nouns("tank, pool, pond, basin, barrel, tub")), d.pick(["water", "oil", "milk", "juice"])
    net = calc(rate, "-", drain)
    d.require(net.value > 1)
    size = net.value * minutes
    result = calc(size, "/", net)
    return story(
        tell(d, (f"An empty {x.one} holds {size} liters.", f"There is room for {size} liters of {y} in an empty {x.one}.", f"{capital(x.a)} for {size} liters is empty."),
             [(f"A pipe brings {rate} liters of {y} per minute.", f"Every minute {rate} liters of {y} flow in.", f"The pump adds {rate} liters per minute."),
              (f"Through a hole {drain} liters per minute are lost.", f"{drain} liters leak out every minute.", f"A leak loses {drain} liters a minute.")],
             (f"How many minutes does it take to fill the {x.one}?", f"After how many minutes is the {x.one} full?", "In how many minutes is it full?")),
        [f"Per minute the level gains {net} liters.", f"It takes {result} minutes."], result)


@family
def path_around(d: Draw) -> Story:
    x, w, h, path = d.pick(nouns("pool, lawn, flower bed, pond, statue, fountain")), d.int(3, 40), d.int(3, 40), d.int(1, 5)
    d.require(path > 1)
    both = calc(path, "*", 2)
    length, width = calc(w, "+", both), calc(h, "+", both)
    area = calc(length, "*", width)
    inner = calc(w, "*", h)
    result = calc(area, "-", inner)
    return story(
        tell(d, (f"A rectangular {x.one} measures {w} by {h} meters.", f"{capital(x.a)} is {w} meters long and {h} meters wide.", f"There is {x.a} of {w} meters by {h} meters."),
             (f"Around it runs a path that is {path} meters wide.", f"A path with a width of {path} meters surrounds it.", f"On all sides there is a path, {path} meters wide."),
             ("What is the area of the path in square meters?", "How many square meters does the path cover?", "How large is the path?")),
        [f"The path adds {both} meters to each side.", f"The outer length is {length} meters.", f"The outer width is {width} meters.",
         f"With the path the area is {area} square meters.", f"The area inside is {inner} square meters.", f"The path has {result} square meters."], result)


@family
def heights_of_buildings(d: Draw) -> Story:
    x, y = d.pick_two(["tower", "church", "hotel", "lighthouse", "bridge", "castle", "monument", "crane"])
    low, k, less = d.int(8, 90), d.number_from((2, 3, 4, 5)), d.int(2, 30)
    times = calc(low, "*", k)
    high = calc(times, "-", less)
    gap = calc(high, "-", low)
    d.require(gap.value > 1)
    return story(
        tell(d, [(f"The {x} is {low} meters high.", f"The height of the {x} is {low} meters."),
                 (f"The {y} is {less} meters lower than {TIMES[k]} the height of the {x}.",
                  f"{capital(TIMES[k])} the height of the {x} is {less} meters more than the height of the {y}.")],
             (f"How many meters higher than the {x} is the {y}?", f"By how many meters is the {y} higher than the {x}?",
              "What is the difference of the two heights in meters?")),
        [f"{capital(TIMES[k])} the height of the {x} is {times} meters.", f"The {y} is {high} meters high.", f"The difference is {gap} meters."], gap)


@family
def floors_and_windows(d: Draw) -> Story:
    b, x = d.pick(things.BUILDINGS), d.pick(nouns("window, door, lamp, radiator, balcony, room"))
    floors, per, ground, minutes = d.int(3, 30), d.int(3, 30), d.int(2, 20), d.int(2, 9)
    upper = calc(floors, "*", per)
    total = calc(upper, "+", ground)
    time = calc(total, "*", minutes)
    return story(
        tell(d, [(f"A {b} has {floors} upper floors with {per} {x} on each." if b[0] not in "aeiou" else f"An {b} has {floors} upper floors with {per} {x} on each.",
                  f"The {floors} upper floors of a building have {per} {x} each."),
                 (f"On the ground floor there are {ground} {x}.", f"The ground floor has {ground} {x}.")],
             (f"Cleaning one takes {minutes} minutes.", f"It takes {minutes} minutes to check one of them.", f"To paint one takes {minutes} minutes."),
             (f"How many minutes do all the {x} take?", f"How many minutes are needed for all {x}?", "How long does it take to do all, in minutes?")),
        [f"The upper floors have {upper} {x}.", f"In all there are {total} {x}.", f"It takes {time} minutes."], time)


@family
def stacked_height(d: Draw) -> Story:
    x, unit = d.pick(nouns("brick, box, plate, crate, book, tile, block, board")), d.pick(["centimeters", "inches", "millimeters"])
    n, thick, base = d.int(3, 40), d.int(2, 30), d.int(5, 90)
    stack = calc(n, "*", thick)
    total = calc(stack, "+", base)
    return story(
        tell(d, [(f"{capital(x.a)} is {thick} {unit} thick.", f"The thickness of {x.a} is {thick} {unit}."),
                 (f"A table is {base} {unit} high.", f"The height of a table is {base} {unit}.")],
             (f"{n} of the {x} are stacked on the table.", f"A stack of {n} {x} is put on the table.", f"On the table stands a stack of {n} {x}."),
             (f"How many {unit} is the top of the stack above the floor?", f"How high above the floor does the stack end, in {unit}?",
              f"How high do table and stack reach together, in {unit}?")),
        [f"The stack is {stack} {unit} high.", f"With the table it is {total} {unit}."], total)


@family
def posts_of_a_fence(d: Draw) -> Story:
    a, gap, n = person(d), d.int(2, 12), d.int(4, 40)
    length = gap * n
    x = d.pick(nouns("post, lamp, pole, flag, tree, bench"))
    gaps = calc(length, "/", gap)
    posts = calc(gaps, "+", 1)
    return story(
        tell(d, (f"{a} puts a {x.one} every {gap} meters along a road of {length} meters, with one at each end.",
                 f"A straight road is {length} meters long. From its start to its end there is a {x.one} every {gap} meters.",
                 f"Along {length} meters of a straight path {x} stand {gap} meters apart, the first at the start and the last at the end."),
             maybe(d, f"Each {x.one} costs ${d.int(5, 90)}."),
             (f"How many {x} are there?", f"How many {x} does that take?", f"What is the number of {x}?")),
        [f"There are {gaps} gaps.", f"So there are {posts} {x}."], posts)

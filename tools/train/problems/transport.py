"""Passengers, freight and vehicles."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .steps import counted_out
from .telling import PARTS, amount, capital, maybe, nouns, story, tell
from .wordings import person


@family
def on_and_off(d: Draw) -> Story:
    v = d.pick(things.VEHICLES)
    n, off, on = amount(d, (5, 40), (40, 300)), d.int(2, 30), d.int(2, 40)
    rest = calc(n, "-", off)
    end = calc(rest, "+", on)
    return story(
        tell(d, (f"A {v} has {n} passengers.", f"There are {n} people on a {v}.", f"{n} people ride on a {v}."),
             (f"At a stop {off} get off and {on} get on.", f"At the next stop {off} leave and {on} others enter.",
              f"Then {off} of them get out, and {on} new passengers come in."),
             ("How many are on board now?", f"How many people are on the {v} then?", f"With how many passengers does the {v} go on?")),
        [f"After some get off there are {rest}.", f"Then there are {end} on board."], end)


@family
def two_stops(d: Draw) -> Story:
    v = d.pick(things.VEHICLES)
    n, on, off, on2, off2 = d.int(2, 60), d.int(2, 30), d.int(2, 20), d.int(2, 30), d.int(2, 30)
    one = calc(n, "+", on)
    two = calc(one, "-", off)
    three = calc(two, "+", on2)
    end = calc(three, "-", off2)
    d.require(end.value > 1)
    return story(
        tell(d, (f"A {v} starts with {n} passengers.", f"{n} people get on a {v} at the first stop.", f"A {v} leaves the station with {n} people on board."),
             (f"At the second stop {on} get on and {off} get off.", f"The second stop brings {on} new passengers, and {off} leave."),
             (f"At the third stop {on2} get on and {off2} get off.", f"At the third stop {on2} people come in and {off2} go out.",
              f"The third stop brings {on2} more, but {off2} leave."),
             ("How many passengers are there now?", f"How many people are on the {v} after that?", "What is the number of passengers in the end?")),
        [f"At the second stop the number rises to {one}.", f"Then it falls to {two}.", f"At the third stop it rises to {three}.",
         f"Then it falls to {end}."], end)


@family
def free_seats_on_board(d: Draw) -> Story:
    v = d.pick(things.VEHICLES)
    cars, seats, people = d.int(2, 14), d.int(8, 80), d.int(5, 400)
    total = calc(cars, "*", seats)
    free = calc(total, "-", people)
    d.require(free.value > 1)
    part = d.pick(["rows", "cars", "sections", "decks"])
    return story(
        tell(d, (f"A {v} has {cars} {part} with {seats} seats each.", f"There are {cars} {part} in a {v}, and each has {seats} seats.",
                 f"Each of the {cars} {part} of a {v} has {seats} seats."),
             (f"{people} passengers are sitting.", f"On board are {people} people, all of them seated.", f"{people} of the seats are taken."),
             ("How many seats are free?", "How many seats are empty?", "How many more people can sit down?")),
        [f"There are {total} seats.", f"The number of free seats is {free}."], free)


@family
def trips_needed(d: Draw) -> Story:
    v, x = d.pick(nouns("truck, van, boat, ferry, elevator, cable car, bus, raft")), d.pick(["people", "boxes", "crates", "guests", "tourists", "chairs", "sacks"])
    per, trips = amount(d, (2, 12), (10, 60)), d.int(2, 20)
    total = per * trips - d.int(0, per - 1)
    d.require(total % per == 0)
    result = calc(total, "/", per)
    return story(
        tell(d, (
            f"{capital(v.a)} carries {per} {x} at a time. How many trips are needed for {total} {x}?",
            f"{total} {x} are to be moved by {v.a} that holds {per}. How many trips is that?",
            f"How many times must {v.a} for {per} {x} go to bring {total} {x} across?",
            f"There are {total} {x}. {capital(v.a)} takes {per} per trip. How many trips does it make?")),
        [f"It takes {result} trips."], result)


@family
def rounded_up_buses(d: Draw) -> Story:
    v, x = d.pick(nouns("bus, coach, boat, minibus, ferry, wagon")), d.pick(things.PUPILS)
    per, full, rest = d.int(4, 60), d.int(2, 15), d.int(1, 50)
    d.require(1 < rest < per)
    total = per * full + rest
    seated = calc(full, "*", per)
    over = calc(total, "-", seated)
    result = calc(full, "+", 1)
    return story(
        tell(d, (
            f"{total} {x} travel in {v.many} for {per} people each. How many {v} are needed?",
            f"Each {v.one} takes {per} people. How many {v} do {total} {x} need?",
            f"How many {v} with {per} seats must come for {total} {x}?",
            f"A trip for {total} {x} is planned. {capital(v.a)} has {per} seats for them. What is the smallest number of {v}?")),
        [*counted_out(total, per), f"{full} full {v} hold {seated}.", f"The number of {x} left over is {over}.", f"They need one more: {result} {v}."], result)


@family
def tickets_sold(d: Draw) -> Story:
    v = d.pick(things.VEHICLES)
    n, kids, p, q = d.int(10, 90), d.int(3, 60), d.int(3, 20), d.int(2, 10)
    d.require(kids < n - 1 and q < p)
    adults = calc(n, "-", kids)
    first, second = calc(adults, "*", p), calc(kids, "*", q)
    total = calc(first, "+", second)
    return story(
        tell(d, (f"On a {v} there are {n} passengers, {kids} of them children.", f"{n} people take a {v}. {kids} of them are children, the others adults.",
                 f"A {v} carries {n} people; {kids} are children and the rest adults."),
             (f"Adults pay ${p} and children ${q}.", f"A ticket is ${p} for an adult and ${q} for a child.", f"Children pay ${q} each, adults ${p}."),
             ("How much do all the tickets cost?", "How many dollars do they pay in all?", "What do all of them pay together?")),
        [f"The number of adults is {adults}.", f"The adults pay {first:$}.", f"The children pay {second:$}.", f"Together they pay {total:$}."], total)


@family
def freight_weight(d: Draw) -> Story:
    x, v = d.pick(nouns("sack, crate, barrel, box, pallet, parcel")), d.pick(["truck", "van", "boat", "trailer", "plane"])
    n, w, limit = d.int(3, 60), d.int(5, 90), d.int(500, 6000, 50)
    load = calc(n, "*", w)
    rest = calc(limit, "-", load)
    d.require(rest.value > w)
    return story(
        tell(d,
             (f"A {v} may carry {limit} kilograms.", f"The limit of a {v} is {limit} kilograms.", f"At most {limit} kilograms go into a {v}."),
             (f"On it are {n} {x} of {w} kilograms each.", f"{n} {x} are loaded, each of {w} kilograms.", f"The load is {n} {x} with {w} kilograms each."),
             maybe(d, f"The way is {d.int(20, 300)} kilometers long."),
             ("How many more kilograms can be loaded?", "How many kilograms are still allowed?", "How much weight can be added, in kilograms?")),
        [f"The load is {load} kilograms.", f"The weight that can be added is {rest} kilograms."], rest)


@family
def round_trips(d: Draw) -> Story:
    a, v = person(d), d.pick(["bus", "train", "bike", "car", "ferry", "tram"])
    place = d.pick(["work", "school", "the city", "the office", "the market"])
    way, days, weeks = d.int(2, 45), d.int(2, 6), d.int(2, 8)
    daily = calc(way, "*", 2)
    weekly = calc(daily, "*", days)
    total = calc(weekly, "*", weeks)
    unit = d.pick(["kilometers", "miles"])
    return story(
        tell(d, [(f"The way to {place} is {way} {unit} for {a}.", f"For {a} it is {way} {unit} to {place}.", f"{a} lives {way} {unit} from {place}."),
                 (f"{a} goes there and back by {v} on {days} days a week.", f"On {days} days a week {a} takes the {v} there and back.")],
             (f"How many {unit} is that in {weeks} weeks?", f"How many {unit} does {a} travel in {weeks} weeks?", f"What distance in {unit} is it in {weeks} weeks?")),
        [f"There and back it is {daily} {unit}.", f"In a week it is {weekly} {unit}.", f"In {weeks} weeks it is {total} {unit}."], total)


@family
def distance_speed(d: Draw) -> Story:
    a, hours = person(d), d.int(2, 12)
    v, speeds = d.pick([(["car", "train", "truck", "bus", "motorcycle"], (30, 40, 45, 50, 55, 60, 65, 70, 80, 90, 100)),
                        (["boat", "ship", "bike", "scooter", "tractor"], (8, 10, 12, 15, 18, 20, 25)),
                        (["plane", "jet"], (300, 350, 400, 450, 500, 600))])
    v, speed = d.pick(v), d.number_from(speeds)
    distance = calc(speed, "*", hours)
    unit = d.pick(["miles", "kilometers"])
    return story(
        tell(d, (
            f"A {v} goes {speed} {unit} per hour. How far does it go in {hours} hours?",
            f"How many {unit} does a {v} cover in {hours} hours at {speed} {unit} per hour?",
            f"{a} travels by {v} for {hours} hours at a speed of {speed} {unit} an hour. How many {unit} is that?",
            f"For {hours} hours a {v} keeps a speed of {speed} {unit} per hour. What distance does it cover?")),
        [f"It covers {distance} {unit}."], distance)


@family
def two_legs_of_a_trip(d: Draw) -> Story:
    a = person(d)
    v, w = d.pick_two(["car", "train", "bus", "truck", "motorcycle", "ferry"])
    p, h, q, g = d.int(20, 90, 5), d.int(2, 8), d.int(20, 90, 5), d.int(2, 8)
    unit = d.pick(["miles", "kilometers"])
    first, second = calc(p, "*", h), calc(q, "*", g)
    total = calc(first, "+", second)
    return story(
        tell(d, (f"First {a} goes {h} hours by {v} at {p} {unit} per hour.", f"{a} starts by {v} and travels {h} hours at {p} {unit} per hour.",
                 f"For {h} hours {a} takes a {v}, which goes {p} {unit} per hour."),
             (f"Then {a.they} goes {g} hours by {w} at {q} {unit} per hour.", f"After that come {g} hours by {w} at {q} {unit} per hour.",
              f"The second part takes {g} hours by {w}, at a speed of {q} {unit} per hour."),
             (f"How many {unit} is the whole trip?", f"How far does {a} travel in all?", f"What is the total distance in {unit}?")),
        [f"The first part is {first} {unit}.", f"The second part is {second} {unit}.", f"In all it is {total} {unit}."], total)


@family
def rest_of_the_way(d: Draw) -> Story:
    a, v, (c, e) = person(d), d.pick(["drives", "travels", "rides", "goes"]), d.pick_two(things.TOWNS)
    unit, speed, hours, left = d.pick(["miles", "kilometers"]), d.int(20, 90, 5), d.int(2, 7), d.int(10, 200, 5)
    distance = speed * hours + left
    done = calc(speed, "*", hours)
    rest = calc(distance, "-", done)
    return story(
        tell(d, [(f"It is {distance} {unit} from {c} to {e}.", f"The road from {c} to {e} is {distance} {unit} long.", f"{c} and {e} are {distance} {unit} apart."),
                 (f"From {c} {a} {v} {hours} hours toward {e} at {speed} {unit} per hour.",
                  f"At {speed} {unit} per hour, {a} {v} {hours} hours from {c} toward {e}.")],
             (f"How many {unit} are left?", f"How far is it still to {e}?", f"How many {unit} does {a} still have to go?")),
        [f"{a} has covered {done} {unit}.", f"The rest is {rest} {unit}."], rest)


@family
def departures_per_day(d: Draw) -> Story:
    v = d.pick(things.VEHICLES)
    every, hours, people = d.number_from((5, 6, 10, 12, 15, 20, 30)), d.int(2, 16), d.int(5, 80)
    per_hour = calc(60, "/", every)
    runs = calc(per_hour, "*", hours)
    total = calc(runs, "*", people)
    return story(
        tell(d, (f"A {v} leaves every {every} minutes for {hours} hours a day.", f"For {hours} hours each day there is a {v} every {every} minutes.",
                 f"Every {every} minutes a {v} departs, and this goes on for {hours} hours a day."),
             (f"Each takes {people} passengers.", f"On each of them are {people} people.", f"It carries {people} people each time."),
             ("How many passengers travel per day?", "How many people is that in a day?", "What is the daily number of passengers?")),
        [f"In an hour there are {per_hour} departures.", f"In a day there are {runs} departures.", f"They carry {total} people."], total)


@family
def share_who_get_off(d: Draw) -> Story:
    v = d.pick(things.VEHICLES)
    k, part, on = d.number_from((2, 3, 4, 5)), d.int(3, 40), d.int(2, 40)
    n = k * part
    off = calc(n, "/", k)
    rest = calc(n, "-", off)
    end = calc(rest, "+", on)
    return story(
        tell(d, (f"{n} people are on a {v}.", f"A {v} comes with {n} passengers.", f"There are {n} passengers on a {v}."),
             (f"{capital(PARTS[k])} of them get off at the station and {on} get on.", f"At the station {PARTS[k]} of them leave, and {on} others get on.",
              f"Then {on} new passengers get on after {PARTS[k]} of the old ones have left."),
             ("How many people are on board after that?", f"With how many passengers does the {v} continue?", f"How many are on the {v} now?")),
        [f"The number who get off is {off}.", f"The number who stay is {rest}.", f"Then there are {end} on board."], end)


@family
def parking_lot(d: Draw) -> Story:
    rows, per, came, left = d.int(3, 20), d.int(5, 30), d.int(5, 200), d.int(2, 60)
    start = d.int(10, 200)
    spaces = calc(rows, "*", per)
    high = calc(start, "+", came)
    now = calc(high, "-", left)
    free = calc(spaces, "-", now)
    d.require(free.value > 1 and now.value > 1 and high.value <= spaces.value)
    return story(
        tell(d, (f"A parking lot has {rows} rows with {per} spaces each.", f"There are {rows} rows in a parking lot, and {per} cars fit in a row.",
                 f"Each of the {rows} rows of a parking lot has room for {per} cars."),
             (f"In the morning {start} cars are there. Then {came} come and {left} leave.",
              f"It holds {start} cars at first, {came} more arrive, and {left} drive away.",
              f"To the {start} cars in it {came} are added, then {left} go."),
             ("How many spaces are free?", "How many free spaces are there then?", "For how many cars is there room now?")),
        [f"There are {spaces} spaces.", f"With the new cars there are {high} cars.", f"After some leave there are {now} cars.",
         f"The number of free spaces is {free}."], free)


@family
def fuel_for_a_trip(d: Draw) -> Story:
    a, v = person(d), d.pick(["car", "truck", "van", "motorcycle", "boat"])
    per, liters, price = d.int(5, 40), d.int(3, 40), d.int(2, 5)
    distance = per * liters
    need = calc(distance, "/", per)
    cost = calc(need, "*", price)
    return story(
        tell(d, [(f"The {v} of {a} goes {per} miles on a gallon.", f"With one gallon {a}'s {v} goes {per} miles.", f"{a}'s {v} needs a gallon for {per} miles."),
                 (f"A gallon costs ${price}.", f"Fuel is ${price} per gallon.", f"The price of a gallon of fuel is ${price}.")],
             (f"How much does the fuel for {distance} miles cost?", f"{a} plans a trip of {distance} miles. What does the fuel cost?",
              f"How many dollars does {a} pay for the fuel of {distance} miles?")),
        [f"The trip takes {need} gallons.", f"The fuel costs {cost:$}."], cost)

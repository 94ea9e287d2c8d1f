"""Travel: distance, speed, time and fuel."""

from . import words_shopping as words
from .problem import Draw, Story, calc, family
from .wordings import adult, cost, grouped, people, person, several, shuffled, tell


@family
def distance_at_speed(d: Draw) -> Story:
    a, v, speed, hours = person(d), d.pick(words.VEHICLES), d.int(5, 120), d.int(2, 12)
    unit = d.pick(("miles", "kilometers"))
    way = calc(speed, "*", hours)
    return Story(
        tell(d, (
            f"A {v} goes {speed} {unit} an hour. How far does it go in {hours} hours? Give {unit}.",
            f"{a} travels by {v} at {speed} {unit} per hour for {hours} hours. How many {unit} is that?",
            f"How many {unit} does a {v} travel in {d.number_words(hours)} hours at {speed} {unit} per hour?",
            f"A {v} moves for {hours} hours. Its speed is {speed} {unit} per hour. How many {unit} does it cover?")),
        [f"The way is {way} {unit}."],
        way)


@family
def time_at_speed(d: Draw) -> Story:
    a, speed, hours, unit = person(d), d.int(5, 110), d.int(2, 15), d.pick(("miles", "kilometers"))
    way = speed * hours
    time = calc(way, "/", speed)
    there = d.pick(words.TOWNS)
    return Story(
        tell(d, (
            f"{a} has to travel {way} {unit} at {speed} {unit} an hour. How many hours does it take?",
            f"{there} is {way} {unit} away. {a} drives {speed} {unit} per hour. After how many hours does {a.they} "
            "arrive?",
            f"How long does a trip of {way} {unit} take at {speed} {unit} per hour? Answer in hours.",
            f"At a speed of {speed} {unit} per hour, how many hours does {a} need for the {way} {unit} to {there}?")),
        [f"The trip takes {time} hours."],
        time)


@family
def speed_of_trip(d: Draw) -> Story:
    a, v, speed, hours = person(d), d.pick(words.VEHICLES), d.int(8, 110), d.int(2, 12)
    unit = d.pick(("miles", "kilometers"))
    way = speed * hours
    answer = calc(way, "/", hours)
    return Story(
        tell(d, (
            f"A {v} covers {way} {unit} in {hours} hours. How fast is it in {unit} per hour?",
            f"{a} travels {way} {unit} in {d.number_words(hours)} hours by {v}. What is the average speed in {unit} "
            "per hour?",
            f"What speed must a {v} have to make {way} {unit} in {hours} hours? Answer in {unit} per hour.",
            f"It takes a {v} {hours} hours for {way} {unit}. How many {unit} does it go in one hour?")),
        [f"The speed is {answer} {unit} per hour."],
        answer)


@family
def several_legs(d: Draw) -> Story:
    a, (x, y) = person(d), d.pick_two(words.TOWNS)
    first, more, k = d.int(10, 200), d.int(3, 90), d.number_from((2, 3))
    second = calc(first, "+", more)
    third = calc(k, "*", second)
    total = calc(first, "+", second, "+", third)
    return Story(
        tell(d,
             (f"{a} drives {first} miles to {x}.", f"The first part of {a}'s trip, to {x}, is {first} miles.",
              f"It is {first} miles from home to {x}, where {a} drives first."),
             (f"From there {a} goes on to {y}, and this second part is {more} miles longer than the first. "
              f"The way back home is {words.TIMES[k]} as long as the second part.",
              f"The second part, to {y}, is {more} miles longer. The way home is {words.TIMES[k]} as long as the "
              "second part.",
              f"Then {a.they} drives to {y}, which is {more} miles longer than the first part, and {words.TIMES[k]} "
              "that second distance home."),
             ("How many miles is the whole trip?", f"How far does {a} drive in all?",
              "What is the total distance in miles?")),
        [f"The second part is {second} miles.", f"The way home is {third} miles.", f"The whole trip is {total} miles."],
        total)


@family
def there_and_back(d: Draw) -> Story:
    a, place, miles = person(d), d.pick(("work", "school", "the gym", "the office", "the farm")), d.int(2, 45)
    days, weeks = d.int(2, 6), d.int(2, 10)
    trip = calc(miles, "*", 2)
    weekly = calc(trip, "*", days)
    total = calc(weekly, "*", weeks)
    return Story(
        tell(d,
             (f"{a} lives {miles} miles from {place} and goes there and back {days} days a week.",
              f"It is {miles} miles from {a}'s home to {place}. {a.They} makes the round trip on {days} days of each "
              "week.",
              f"On {d.number_words(days)} days a week {a} travels to {place}, {miles} miles away, and returns."),
             (f"How many miles does {a.they} travel in {weeks} weeks?", f"How many miles is that in {weeks} weeks?",
              f"After {weeks} weeks, how many miles has {a} covered?")),
        [f"A round trip is {trip} miles.", f"A week has {weekly} miles.", f"In {weeks} weeks it is {total} miles."],
        total)


@family
def fuel_needed(d: Draw) -> Story:
    a, per, gallons, price = adult(d), d.int(12, 50), d.int(3, 30), cost(d, 2, 6)
    miles = per * gallons
    fuel = calc(miles, "/", per)
    money = calc(fuel, "*", price)
    ask = d.pick((True, False))
    return Story(
        tell(d,
             (f"{a}'s car goes {per} miles on a gallon of gas, which costs ${price}.",
              f"A gallon of gas costs ${price} and lasts for {per} miles in {a}'s car.",
              f"The car of {a} needs one gallon for {per} miles. Gas is ${price} a gallon."),
             (f"{a.They} drives {miles} miles.", f"The trip to {d.pick(words.TOWNS)} is {miles} miles long.",
              f"The next trip is {grouped(d, miles)} miles."),
             d.maybe((f"The car is {d.int(2, 15)} years old.", f"{d.int(2, 5)} people ride along.")),
             ("How much does the gas cost?", "What will the fuel for it cost?",
              f"How many dollars does {a} spend on gas?") if ask else
             ("How many gallons does it take?", "How many gallons of gas are used?",
              f"How many gallons does {a} need?")),
        [f"The car uses {fuel} gallons.", f"They cost {money:$}."] if ask else [f"The car uses {fuel} gallons."],
        money if ask else fuel)


@family
def range_of_tank(d: Draw) -> Story:
    a, tank, per, driven = adult(d), d.int(8, 30), d.int(12, 45), d.int(20, 500)
    full = calc(tank, "*", per)
    left = calc(full, "-", driven)
    several(d, left)
    return Story(
        tell(d,
             shuffled(d,
                      (f"The tank of {a}'s car holds {tank} gallons.",
                       f"{a} fills the tank of the car with {tank} gallons of gas.",
                       f"{a} starts with a full tank of {tank} gallons."),
                      (f"The car goes {per} miles per gallon.", f"Each gallon is enough for {per} miles.",
                       f"One gallon takes the car {per} miles."),
                      stray=(f"The car is {d.int(2, 15)} years old.",)),
             (f"After {driven} miles, how many more miles can {a} drive?",
              f"{a} has driven {driven} miles. How many miles can the car still go?",
              f"How far will the gas still last when {driven} miles are done?")),
        [f"A full tank lasts {full} miles.", f"So {left} miles are left."],
        left)


@family
def mileage_from_tank(d: Draw) -> Story:
    a, used, per, left = adult(d), d.int(4, 20), d.int(10, 45), d.int(2, 10)
    tank, miles = used + left, used * per
    burnt = calc(tank, "-", left)
    answer = calc(miles, "/", burnt)
    return Story(
        tell(d,
             (f"{a} starts with {tank} gallons of gas, and after {miles} miles {left} gallons are left.",
              f"A tank holds {tank} gallons. When {a} has driven {miles} miles, it still has {left} gallons.",
              f"Driving {miles} miles, {a}'s truck goes from {tank} gallons of fuel down to {left}."),
             ("How many miles does it go per gallon?", "How many miles is that on one gallon?",
              "What is the mileage in miles per gallon?")),
        [f"It uses {burnt} gallons.", f"That is {answer} miles per gallon."],
        answer)


@family
def catching_up(d: Draw) -> Story:
    (a, b), slow, more, hours = people(d, 2), d.int(3, 50), d.int(2, 20), d.int(2, 10)
    fast = slow + more
    first, second = calc(slow, "*", hours), calc(fast, "*", hours)
    gap = calc(second, "-", first)
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} rides {slow} miles an hour.", f"The speed of {a} is {slow} miles per hour.",
                       f"{a} makes {slow} miles in one hour."),
                      (f"{b} rides {fast} miles an hour.", f"{b} goes at {fast} miles per hour.",
                       f"In an hour {b} covers {fast} miles.")),
             (f"They start together in the same direction. How many miles is {b} ahead after {hours} hours?",
              f"Both leave the same place and go the same way. How far apart are they after {d.number_words(hours)} "
              "hours?",
              f"If they start at the same time on the same road, by how many miles does {b} lead after {hours} hours?")),
        [f"{a} makes {first} miles.", f"{b} makes {second} miles.", f"They are {gap} miles apart."],
        gap)


@family
def opposite_ways(d: Draw) -> Story:
    (a, b), p, q, hours = people(d, 2), d.int(3, 70), d.int(3, 70), d.int(2, 9)
    apart = calc(p, "+", q)
    total = calc(apart, "*", hours)
    return Story(
        tell(d,
             (f"{a} and {b} leave the same town in opposite directions. {a} goes {p} miles an hour and {b} {q} miles "
              "an hour.",
              f"From one place, {a} travels east at {p} miles per hour and {b} west at {q} miles per hour.",
              f"{a} drives north with {p} miles per hour. {b} starts at the same time and place and drives south "
              f"with {q} miles per hour."),
             (f"How far apart are they after {hours} hours?",
              f"How many miles are between them after {d.number_words(hours)} hours?",
              f"What is their distance in miles {hours} hours later?")),
        [f"In an hour they part by {apart} miles.", f"In {hours} hours it is {total} miles."],
        total)


@family
def two_speeds(d: Draw) -> Story:
    a, p, n, q, m = person(d), d.int(10, 80), d.int(2, 7), d.int(10, 80), d.int(2, 7)
    d.require(p != q)
    first, second = calc(p, "*", n), calc(q, "*", m)
    total = calc(first, "+", second)
    hours = calc(n, "+", m)
    average = d.pick((True, False))
    speed = calc(total, "/", hours) if average else total
    return Story(
        tell(d,
             (f"{a} drives {p} miles an hour for {n} hours and then {q} miles an hour for {m} hours.",
              f"For {n} hours {a} goes at {p} miles per hour. For the next {m} hours {a.they} goes at {q} miles per "
              "hour.",
              f"{a}'s trip has two parts: {n} hours at {p} miles per hour and {m} hours at {q} miles per hour."),
             ("What is the average speed for the whole trip?", "How many miles an hour is that on average?",
              f"What is {a}'s average speed in miles per hour?") if average else
             ("How many miles is that?", f"How far does {a} drive?", "How long is the trip in miles?")),
        [f"The first part is {first} miles.", f"The second part is {second} miles.", f"The trip is {total} miles."]
        + ([f"It takes {hours} hours.", f"The average is {speed} miles per hour."] if average else []),
        speed)


@family
def percent_of_way(d: Draw) -> Story:
    a, there, miles = person(d), d.pick(words.TOWNS), d.int(40, 900, 10)
    percent = d.number_from((10, 20, 25, 30, 40, 60, 70, 75, 80))
    done = calc(miles, "*", percent, "/", 100)
    left = calc(miles, "-", done)
    return Story(
        tell(d, (
            f"{a} is driving to {there}, which is {miles} miles away. {percent}% of the way is done. How many miles "
            "are left?",
            f"Of a trip of {miles} miles to {there}, {a} has finished {percent} percent. How far is it still in miles?",
            f"The road to {there} is {miles} miles long. {a} has a break after {percent}% of it. How many miles "
            "remain after the break?",
            f"How many miles of a {miles}-mile trip remain when {percent}% of it is behind {a}?")),
        [f"Done are {done} miles.", f"So {left} miles are left."],
        left)


@family
def fraction_of_way(d: Draw) -> Story:
    a, k, part, more = person(d), d.number_from((2, 3, 4, 5, 6)), d.int(6, 80), d.int(5, 200)
    miles = k * part
    first = calc(miles, "/", k)
    rest = calc(miles, "-", first)
    left = calc(rest, "-", more)
    several(d, left)
    day1, day2 = d.pick((("Monday", "Tuesday"), ("the first day", "the second day"), ("Saturday", "Sunday")))
    return Story(
        tell(d,
             (f"{a} plans a bike tour of {miles} miles.", f"{a}'s hike is {miles} miles long.",
              f"A trail has {miles} miles, and {a} wants to walk all of it."),
             (f"On {day1} {a.they} covers {words.PARTS[k]} of it, and on {day2} {more} miles.",
              f"{a} makes 1/{k} of the way on {day1}. On {day2} it is {more} miles.",
              f"{words.PARTS[k]} of it is done on {day1} and {more} miles are done on {day2}."),
             d.maybe((f"The weather is warm, {d.int(18, 30)} degrees.",
                      f"{a} carries {d.int(5, 20)} pounds of baggage.")),
             ("How many miles are left?", "How many miles remain after that?",
              f"How far does {a} still have to go in miles?")),
        [f"On {day1} it is {first} miles.", f"Then {rest} miles remain.", f"After {day2} there are {left} miles left."],
        left)


@family
def rising_daily_distance(d: Draw) -> Story:
    a, first, more, goal = person(d), d.int(2, 25), d.int(1, 9), d.int(3, 4)
    days = [first]
    calcs = []
    for _ in range(goal - 1):
        step = calc(days[-1], "+", more)
        calcs.append(step)
        days.append(step.value)
    total = calc(*[term for value in days for term in (value, "+")][:-1])
    mile = "1 mile" if more == 1 else f"{more} miles"
    return Story(
        tell(d,
             (f"{a} runs {first} miles on Monday and each day {mile} more than the day before.",
              f"On Monday {a} walks {first} miles. Every following day it is {mile} more.",
              f"{a} starts on Monday with {first} miles of cycling and adds {mile} each day."),
             (f"How many miles is that from Monday to {words.WEEK[goal - 1]}?",
              f"What is the total in miles by the end of {words.WEEK[goal - 1]}?",
              f"How many miles does {a} make in these {d.number_words(goal)} days, up to {words.WEEK[goal - 1]}?")),
        [f"On {day} it is {step} miles." for day,
         step in zip(words.WEEK[1:], calcs)] + [f"The total is {total} miles."],
        total)


@family
def laps_to_distance(d: Draw) -> Story:
    a, track, laps, days = person(d), d.number_from((200, 250, 300, 400, 500, 800)), d.int(2, 20), d.int(2, 7)
    daily = calc(track, "*", laps)
    total = calc(daily, "*", days)
    km = calc(total, "/", 1000)
    several(d, km)
    return Story(
        tell(d,
             (f"One lap of the track is {track} meters, and {a} runs {laps} laps a day.",
              f"Each day {a} runs {laps} times around a lake. One round is {track} meters.",
              f"A course in the park is {track} meters long. Every day {a} completes it {laps} times."),
             (f"How many kilometers is that in {days} days?",
              f"After {d.number_words(days)} days, how many kilometers has {a} done?",
              f"How many kilometers does {a} cover in {days} days?")),
        [f"A day has {daily} meters.", f"In {days} days it is {total} meters.", f"That is {km} kilometers."],
        km)


@family
def flight_stages(d: Draw) -> Story:
    a, (x, y) = adult(d), d.pick_two(words.TOWNS)
    speed, hours, wind, back = d.int(200, 600, 20), d.int(2, 9), d.int(20, 100, 10), d.int(2, 9)
    way = calc(speed, "*", hours)
    slower = calc(speed, "-", wind)
    second = calc(slower, "*", back)
    total = calc(way, "+", second)
    return Story(
        tell(d,
             (f"A plane flies at {speed} miles an hour for {hours} hours.",
              f"For the first {hours} hours, {a}'s plane has a speed of {speed} miles per hour.",
              f"{a} pilots a plane from {x} to {y}. It makes {speed} miles an hour for {hours} hours."),
             (f"Then the wind makes it {wind} miles per hour slower for {back} hours.",
              f"During the next {back} hours, wind slows it down by {wind} miles per hour.",
              f"After that it flies {wind} miles per hour slower, for another {back} hours."),
             ("How many miles does the plane fly in all?", "How far is that altogether in miles?",
              "What is the total distance in miles?")),
        [f"First it flies {way} miles.", f"Then its speed is {slower} miles per hour.",
         f"So it flies {second} miles more.",
         f"In all it is {total} miles."],
        total)


@family
def bus_stops(d: Draw) -> Story:
    start, off, on, off2 = d.int(10, 60), d.int(3, 25), d.int(2, 25), d.int(2, 30)
    v = d.pick(("bus", "train", "tram", "ferry", "subway"))
    first = calc(start, "-", off)
    second = calc(first, "+", on)
    third = calc(second, "-", off2)
    several(d, first, third)
    return Story(
        tell(d,
             (f"There are {start} people on a {v}.", f"A {v} leaves with {start} people.",
              f"{start} people are riding a {v}."),
             (f"At the first stop {off} get off and {on} get on.",
              f"The first stop takes away {off} of them and brings {on} new ones.",
              f"First {off} people leave and {on} others come aboard."),
             (f"At the next stop {off2} get off.", f"At the second stop {off2} people leave.",
              f"Then {off2} more people get off."),
             (f"How many people are on the {v} now?", "How many people are left?", "How many people ride on?")),
        [f"After {off} leave there are {first} people.", f"With {on} more there are {second} people.",
         f"In the end there are {third} people."],
        third)


@family
def trips_of_a_boat(d: Draw) -> Story:
    v, people_count = d.pick(("boat", "ferry", "van", "cable car", "lift", "shuttle")), d.int(10, 300)
    seats = d.int(4, 40)
    rest = d.int(2, 30)
    count = seats * max(2, people_count // seats)
    waiting = count + rest
    d.require(rest < waiting)
    left = calc(waiting, "-", rest)
    trips = calc(left, "/", seats)
    minutes = d.int(3, 40)
    time = calc(trips, "*", minutes)
    return Story(
        tell(d,
             (f"{waiting} people wait for a {v}, but {rest} of them decide to walk.",
              f"Of {waiting} people at a stop, {rest} leave. The others take a {v}.",
              f"There are {waiting} people in front of a {v}. {rest} of them go away."),
             (f"The {v} takes {seats} people at a time, and each trip lasts {minutes} minutes.",
              f"One trip of the {v} takes {minutes} minutes and carries {seats} people.",
              f"Every {minutes} minutes, the {v} carries {seats} of them."),
             ("How many minutes does it take to carry all of them?", "After how many minutes have all been carried?",
              f"For how many minutes is the {v} in use?")),
        [f"There are {left} people to carry.", f"That takes {trips} trips.", f"The trips last {time} minutes."],
        time)


@family
def walk_then_ride(d: Draw) -> Story:
    a, walk, bus, wait, days = person(d), d.int(3, 25), d.int(8, 55), d.int(2, 15), d.int(2, 6)
    trip = calc(walk, "+", wait, "+", bus)
    daily = calc(trip, "*", 2)
    total = calc(daily, "*", days)
    v = d.pick(("bus", "train", "tram", "subway"))
    return Story(
        tell(d,
             shuffled(d,
                      (f"{a} walks {walk} minutes to the {v} stop.",
                       f"The walk of {a} to the {v} stop takes {walk} minutes.",
                       f"It takes {a} {walk} minutes to walk to the {v} stop."),
                      (f"The {v} comes after {wait} minutes of waiting.", f"{a} waits {wait} minutes for the {v}.",
                       f"Waiting for the {v} takes {wait} minutes."),
                      (f"The ride takes {bus} minutes.", f"{a} sits in the {v} for {bus} minutes.",
                       f"The {v} needs {bus} minutes.")),
             (f"The way back takes as long. How many minutes does {a} travel in {days} days?",
              f"If the way home takes the same time, how many minutes is that in {d.number_words(days)} days?",
              f"{a} goes there and back in the same time each day. How many minutes does that make in {days} days?")),
        [f"One way takes {trip} minutes.", f"There and back it is {daily} minutes.",
         f"In {days} days it is {total} minutes."],
        total)


@family
def late_or_early(d: Draw) -> Story:
    a, miles, speed = person(d), d.int(60, 900, 60), d.number_from((10, 15, 20, 30, 40))
    faster = d.number_from((5, 10, 20, 30))
    fast = calc(speed, "+", faster)
    slow_time = calc(miles, "/", speed)
    fast_time = calc(miles, "/", fast)
    saved = calc(slow_time, "-", fast_time)
    several(d, saved, fast_time)
    return Story(
        tell(d,
             (f"{a} can travel the {miles} miles to {d.pick(words.SIGHTS)} at {speed} miles an hour.",
              f"A trip of {miles} miles is made at {speed} miles per hour.",
              f"It is {miles} miles to {d.pick(words.TOWNS)}, and {a} drives {speed} miles an hour."),
             (f"How many hours would be saved by going {faster} miles per hour faster?",
              f"How many hours shorter is the trip at a speed that is {faster} miles per hour higher?",
              f"If the speed were {faster} miles per hour higher, how many hours less would it take?")),
        [f"At {speed} miles per hour it takes {slow_time} hours.", f"The higher speed is {fast} miles per hour.",
         f"Then it takes {fast_time} hours.", f"That saves {saved} hours."],
        saved)

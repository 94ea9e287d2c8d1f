"""Reading, music, films, phones and data."""

from . import words_things as things
from .problem import Draw, Story, calc, family
from .telling import PARTS, TIMES, amount, capital, maybe, nouns, story, tell
from .wordings import people, person

_PRINTED = nouns("book, novel, comic, report, textbook, biography, play, travel guide, thriller")
_KEPT = nouns("photo, song, video, file, podcast, game, recording, movie")


@family
def pages_left(d: Draw) -> Story:
    a, x = person(d), d.pick(_PRINTED)
    n, read = amount(d, (20, 90), (90, 700)), amount(d, (3, 40), (20, 400))
    left = calc(n, "-", read)
    d.require(left.value > 1)
    return story(
        tell(d, (
            f"{a}'s {x.one} has {n} pages. {a.They} has read {read} of them. How many pages are left?",
            f"{a} is on page {read} of a {x.one} with {n} pages. How many pages come after it?",
            f"How many pages does {a} still have to read if {a.they} has finished {read} of {n}?",
            f"Of a {n}-page {x.one}, {a} has read {read} pages. How many remain?")),
        [f"The number of pages left is {left}."], left)


@family
def pages_per_day(d: Draw) -> Story:
    a, x = person(d), d.pick(_PRINTED)
    per, days, t = amount(d, (3, 20), (15, 80)), d.int(2, 30), d.pick(["day", "evening", "morning", "hour"])
    n = per * days
    result = calc(n, "/", per)
    return story(
        tell(d, (
            f"{a} reads {per} pages every {t}. How many {t}s does {a.they} need for a {x.one} of {n} pages?",
            f"A {x.one} has {n} pages, and {a} reads {per} per {t}. In how many {t}s is {a.they} done?",
            f"How many {t}s does it take {a} to read {n} pages at {per} pages per {t}?",
            f"With {per} pages each {t}, how many {t}s does a {n}-page {x.one} last {a}?")),
        [f"It takes {result} {t}s."], result)


@family
def three_days_of_reading(d: Draw) -> Story:
    a, x, day = person(d), d.pick(_PRINTED), d.pick(["Monday", "Thursday", "Friday", "Saturday"])
    first, k, fewer, n = d.int(5, 60), d.number_from((2, 3, 4)), d.int(2, 30), d.int(100, 700, 10)
    second = calc(first, "*", k)
    third = calc(second, "-", fewer)
    read = calc(first, "+", second, "+", third)
    left = calc(n, "-", read)
    d.require(third.value > 1 and left.value > 1)
    return story(
        tell(d, (f"{a} reads {first} pages of a {x.one} on {day}.", f"On {day} {a} starts a {x.one} and reads {first} pages.",
                 f"The first {first} pages of a {x.one} are read by {a} on {day}."),
             (f"The next day {a.they} reads {TIMES[k]} as many, and the day after {fewer} fewer than on the second day.",
              f"On the second day it is {TIMES[k]} as many. On the third day it is {fewer} less than on the second.",
              f"The day after, {a.they} manages {TIMES[k]} that number; on the third day there are {fewer} pages fewer than on the second."),
             (f"The {x.one} has {n} pages.", f"There are {n} pages in the {x.one}.", f"In all the {x.one} is {n} pages long."),
             ("How many pages are left?", f"How many pages does {a} still have to read?", "How many pages remain?")),
        [f"On the second day it is {second} pages.", f"On the third day it is {third} pages.", f"In three days it is {read} pages.",
         f"So {left} pages are left."], left)


@family
def half_of_the_rest(d: Draw) -> Story:
    a, x = person(d), d.pick(_PRINTED)
    k, part, read = d.number_from((2, 3, 4, 5)), d.int(5, 60), d.int(10, 120)
    n = k * part + read
    rest = calc(n, "-", read)
    today = calc(rest, "/", k)
    left = calc(rest, "-", today)
    return story(
        tell(d, [(f"{a} has a {x.one} of {n} pages.", f"The {x.one} of {a} has {n} pages.", f"There are {n} pages in {a}'s {x.one}."),
                 (f"Yesterday {a} read {read} pages.", f"{a} has read {read} pages so far.", f"The first {read} pages are already read.")],
             (f"Today {a.they} reads {PARTS[k]} of the rest.", f"Now {PARTS[k]} of the remaining pages follow.", f"Of those that remain, {a.they} reads {PARTS[k]} today."),
             ("How many pages are left after that?", f"How many pages does {a.they} have to read later?", "How many pages are unread then?")),
        [f"The rest was {rest} pages.", f"Today it is {today} pages.", f"After that {left} pages are left."], left)


@family
def shelf_of_books(d: Draw) -> Story:
    b, x = d.pick(["library", "bookshop", "school", "study", "reading room"]), d.pick(things.READABLE)
    shelves, per, lent, back = d.int(3, 40), d.int(8, 60), d.int(5, 120), d.int(2, 100)
    d.require(back < lent)
    total = calc(shelves, "*", per)
    rest = calc(total, "-", lent)
    now = calc(rest, "+", back)
    return story(
        tell(d, (f"A {b} has {shelves} shelves with {per} {x} on each.", f"There are {shelves} shelves in a {b}, each with {per} {x}.",
                 f"On each of the {shelves} shelves of a {b} stand {per} {x}."),
             (f"{lent} {x} are taken out and {back} of them come back.", f"Readers borrow {lent} {x} and return {back}.",
              f"In a week {lent} are borrowed; {back} of these are returned."),
             (f"How many {x} are on the shelves now?", f"How many {x} does the {b} have on its shelves then?", f"What number of {x} is there after that?")),
        [f"There were {total} {x}.", f"After the loans there were {rest}.", f"Now there are {now}."], now)


@family
def reading_speed(d: Draw) -> Story:
    a, x = person(d), d.pick(_PRINTED)
    pages, minutes, k = d.int(2, 20), d.number_from((5, 10, 12, 15, 20, 30)), d.int(2, 8)
    blocks = calc(60, "/", minutes)
    hourly = calc(pages, "*", blocks)
    n = hourly.value * k
    result = calc(n, "/", hourly)
    return story(
        tell(d, (
            f"{a} reads {pages} pages in {minutes} minutes. How many hours does {a.they} need for {n} pages?",
            f"In {minutes} minutes {a} reads {pages} pages of a {x.one}. The {x.one} has {n} pages. How many hours does it take?",
            f"How many hours does a {x.one} of {n} pages take if {a} reads {pages} pages every {minutes} minutes?",
            f"A {x.one} has {n} pages. Every {minutes} minutes {a} finishes {pages} of them. In how many hours is it read?")),
        [f"An hour has {blocks} times {minutes} minutes.", f"In an hour {a} reads {hourly} pages.", f"It takes {result} hours."], result)


@family
def playlist_length(d: Draw) -> Story:
    a, xs, ys = person(d), *d.pick_two(["songs", "clips", "stories", "ads", "trailers", "lessons", "chapters", "talks"])
    n, p, m, q = d.int(2, 30), d.int(2, 9), d.int(2, 20), d.int(2, 9)
    first, second = calc(n, "*", p), calc(m, "*", q)
    total = calc(first, "+", second)
    return story(
        tell(d, (f"{a}'s list has {n} {xs} of {p} minutes and {m} {ys} of {q} minutes.",
                 f"{a} plays {n} {xs}, each {p} minutes long, and {m} {ys}, each {q} minutes long.",
                 f"On a list there are {n} {xs} and {m} {ys}. Each of the {xs} lasts {p} minutes and each of the {ys} {q} minutes."),
             maybe(d, f"The list is {d.int(2, 11)} months old.", f"{a} has {d.int(20, 900)} fans."),
             ("How many minutes does all of it last?", "How long is the whole list in minutes?", "How many minutes is that in total?")),
        [f"The {xs} last {first} minutes.", f"The {ys} last {second} minutes.", f"All of it lasts {total} minutes."], total)


@family
def episodes_watched(d: Draw) -> Story:
    a = person(d)
    seasons, per, minutes = d.int(2, 9), d.int(5, 24), d.number_from((20, 25, 30, 40, 45, 60))
    n = calc(seasons, "*", per)
    time = calc(n, "*", minutes)
    hours = calc(time, "/", 60)
    d.require(hours.value > 1)
    return story(
        tell(d, [(f"A series has {seasons} seasons with {per} episodes each.", f"In each of the {seasons} seasons of a series there are {per} episodes.",
                  f"There are {seasons} seasons of a series, and each has {per} episodes."),
                 (f"An episode of the series lasts {minutes} minutes.", f"Each episode is {minutes} minutes long.", f"It takes {minutes} minutes to watch one episode.")],
             (f"How many hours does {a} need to watch everything?", f"{a} watches all of them. How many hours is that?",
              "How many hours does the whole series take?")),
        [f"There are {n} episodes.", f"They last {time} minutes.", f"Those are {hours} hours."], hours)


@family
def phone_storage(d: Draw) -> Story:
    a, x = person(d), d.pick(_KEPT)
    n, size, free = d.int(5, 80), d.int(2, 40), d.int(10, 900)
    used = calc(n, "*", size)
    total = used.value + free
    left = calc(total, "-", used)
    d.require(left.value > 1)
    return story(
        tell(d, [(f"{a}'s phone has room for {total} megabytes.", f"On {a}'s phone {total} megabytes are free.", f"The memory card of {a} holds {total} megabytes."),
                 (f"One {x.one} takes up {size} megabytes.", f"The size of {x.a} is {size} megabytes.", f"{capital(x.a)} needs {size} megabytes.")],
             (f"{a} saves {n} {x}. How many megabytes are left?", f"How many megabytes are free after {n} {x} are saved?",
              f"How much room is left after {a} stores {n} {x}, in megabytes?")),
        [f"The {x} take {used} megabytes.", f"The room left is {left} megabytes."], left)


@family
def download_time(d: Draw) -> Story:
    a, x = person(d), d.pick(_KEPT)
    rate, seconds, done = d.int(2, 50), d.int(5, 90), d.int(10, 400)
    size = rate * seconds + done
    rest = calc(size, "-", done)
    result = calc(rest, "/", rate)
    return story(
        tell(d, (f"{a} downloads a {x.one} of {size} megabytes.", f"A {x.one} that {a} downloads has {size} megabytes.", f"The {x.one} that {a} wants has a size of {size} megabytes."),
             (f"{done} megabytes are there already, and {rate} come every second.", f"Of these, {done} megabytes are done. Each second brings {rate} more.",
              f"The speed is {rate} megabytes per second, and {done} megabytes have arrived so far."),
             ("How many seconds does the rest take?", "How many more seconds does it take?", f"For how many seconds does {a} have to wait?")),
        [f"The rest is {rest} megabytes.", f"It takes {result} seconds."], result)


@family
def data_plan(d: Draw) -> Story:
    a = person(d)
    base, free, more, price = d.int(8, 50), d.int(2, 20), d.int(2, 15), d.int(2, 9)
    used = free + more
    extra = calc(used, "-", free)
    cost = calc(extra, "*", price)
    total = calc(base, "+", cost)
    return story(
        tell(d, (f"{a}'s phone plan costs ${base} per month with {free} gigabytes.", f"For ${base} a month {a} gets {free} gigabytes of data.",
                 f"{a} pays ${base} each month, and {free} gigabytes of data are included."),
             (f"Every further gigabyte costs ${price}.", f"Above that a gigabyte is ${price}.", f"More data costs ${price} per gigabyte."),
             (f"In May {a.they} uses {used} gigabytes.", f"Last month {used} gigabytes were used.", f"This month it is {used} gigabytes."),
             (f"How much does {a} pay for that month?", "How high is the bill in dollars?", "What does the month cost?")),
        [f"The further data is {extra} gigabytes.", f"It costs {cost:$}.", f"The month costs {total:$}."], total)


@family
def battery_level(d: Draw) -> Story:
    a, x = person(d), d.pick(["phone", "tablet", "laptop", "camera", "speaker", "watch"])
    start, per, hours, plus = d.int(40, 100), d.int(2, 15), d.int(2, 8), d.int(5, 40)
    lost = calc(per, "*", hours)
    low = calc(start, "-", lost)
    end = calc(low, "+", plus)
    d.require(end.value <= 100)
    return story(
        tell(d, (f"{a}'s {x} is at {start}% of its charge.", f"The battery of {a}'s {x} shows {start}%.", f"With {start}% in the battery, {a} takes {a.their} {x} along."),
             (f"Every hour it loses {per}%.", f"It drops by {per}% an hour.", f"An hour of use takes {per}% of the charge."),
             (f"After {hours} hours {a} charges it and adds {plus}%.", f"It is used for {hours} hours, then {plus}% is added with a charger.",
              f"{hours} hours later, a charger brings it up by {plus}%."),
             ("What does the battery show then?", "How many percent does the battery have now?", "At how many percent is it then?")),
        [f"It loses {lost} percent.", f"Then it is at {low} percent.", f"With the charger it reaches {end} percent."], end)


@family
def followers_of_a_channel(d: Draw) -> Story:
    a, x = person(d), d.pick(["followers", "subscribers", "readers", "listeners", "fans", "viewers"])
    n, gain, days, lost = d.int(50, 2000, 10), d.int(5, 90), d.int(3, 30), d.int(10, 300)
    plus = calc(gain, "*", days)
    high = calc(n, "+", plus)
    end = calc(high, "-", lost)
    return story(
        tell(d, [(f"{a} has {n} {x}.", f"The channel of {a} has {n} {x}.", f"At first there are {n} {x} of {a}'s page."),
                 (f"Each day {gain} new {x} join {a}.", f"{a} wins {gain} new {x} per day.", f"Per day {gain} new {x} come to {a}.")],
             (f"After {days} days {lost} leave.", f"This lasts {days} days, then {lost} of them leave.", f"That goes on for {days} days before {lost} leave."),
             (f"How many {x} does {a} have then?", f"How many {x} are there now?", f"What is the number of {x} in the end?")),
        [f"In {days} days it is {plus} more.", f"Then there are {high} {x}.", f"In the end there are {end} {x}."], end)


@family
def messages_deleted(d: Draw) -> Story:
    a, x = person(d), d.pick(nouns("photo, email, message, file, video, note, contact, picture"))
    percent, part, new = d.number_from((5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 80)), d.int(2, 45), d.int(5, 200)
    n = part * 20
    gone = calc(n, "*", percent, "/", 100)
    left = calc(n, "-", gone)
    end = calc(left, "+", new)
    return story(
        tell(d, (f"{a} has {n} {x} on a computer.", f"There are {n} {x} on {a}'s computer.", f"{a}'s computer holds {n} {x}."),
             (f"{a.They} deletes {percent}% of them and then adds {new} new ones.", f"Of these, {percent}% are deleted. Later {new} new ones are added.",
              f"After {percent}% of them have been deleted, {new} new {x} arrive."),
             (f"How many {x} are there now?", f"How many {x} does {a} have in the end?", f"What is the number of {x} after that?")),
        [f"The number of deleted {x} is {gone}.", f"After that there are {left}.", f"In the end there are {end} {x}."], end)


@family
def words_written(d: Draw) -> Story:
    a, x = person(d), d.pick(["story", "novel", "paper", "report", "script", "speech"])
    per, pages, extra, rate = d.int(5, 40) * 10, d.int(2, 20), d.int(10, 200, 10), d.int(10, 50, 5)
    words = calc(per, "*", pages)
    total = calc(words, "+", extra)
    minutes = calc(total, "/", rate)
    return story(
        tell(d, (f"{a} writes a {x} of {pages} pages with {per} words on each and a summary of {extra} words.",
                 f"A {x} by {a} has {pages} pages with {per} words per page. A preface adds {extra} words.",
                 f"Each of the {pages} pages of {a}'s {x} has {per} words, and a last page has {extra}."),
             (f"{a} types {rate} words per minute.", f"In a minute {a} types {rate} words.", f"The typing speed of {a} is {rate} words a minute."),
             ("How many minutes does the typing take?", f"For how many minutes does {a} type?", f"How long does it take to type the whole {x}, in minutes?")),
        [f"The full pages have {words} words.", f"In all it is {total} words.", f"It takes {minutes} minutes."], minutes)


@family
def two_films_and_a_break(d: Draw) -> Story:
    a, b = people(d, 2)
    n, more, ads = d.int(60, 150), d.int(5, 60), d.int(5, 30)
    second = calc(n, "+", more)
    both = calc(n, "+", second)
    total = calc(both, "+", ads)
    return story(
        tell(d, (f"{a} and {b} watch two films.", f"Two films are shown to {a} and {b}.", f"{b} visits {a} to see two films."),
             (f"The first lasts {n} minutes and the second is {more} minutes longer.", f"The second film is {more} minutes longer than the first, which takes {n} minutes.",
              f"One is {n} minutes long; the other takes {more} minutes more."),
             (f"Between them there is a break of {ads} minutes.", f"A break of {ads} minutes comes in between.", f"They rest {ads} minutes after the first one."),
             ("How many minutes does the evening last?", "How many minutes is that in total?", "How long does all of it take, in minutes?")),
        [f"The second film lasts {second} minutes.", f"Both last {both} minutes.", f"With the break it is {total} minutes."], total)

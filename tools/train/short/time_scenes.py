"""Times of day as a day has them: sleep, shifts, timetables, cooking, lateness, time zones, and sums of durations."""

from __future__ import annotations

import random
import re
from fractions import Fraction

from .arithmetic import apply, remainder
from .composing import some_people
from .grammar import Patterns
from .measures import clock, span, typed_clock, typed_span
from .numbers import Value, in_words, ordinal, require, show
from .question import Short, said, topic
from .time_and_age import Dial, clock_reply, some_minutes, some_time

_DAY = 24 * 60


def _night(rng: random.Random) -> tuple[int, int]:
    """An evening and how long it is from there to the morning."""
    return 15 * rng.randint(76, 98), 15 * rng.randint(20, 40)


def _start_and_length(rng: random.Random) -> tuple[int, int]:
    kind = rng.random()
    if kind < 0.25:
        return _night(rng)
    if kind < 0.31:  # from noon or midnight, or up to it
        minutes = some_minutes(rng)
        return rng.choice((0, 720)) - minutes * rng.randrange(2) + _DAY, minutes
    return some_time(rng), some_minutes(rng)


def _tidy(question: str) -> str:
    text = " ".join(question.split())
    text = text.replace("every a ", "every ").replace("every an ", "every ").replace("every one hour", "every hour")
    return text[0].upper() + text[1:]


# Start, end and length -------------------------------------------------------------------------

_ASK_END = Patterns("""
    [I|We|They|{x}] did not [leave|come|start|call] at {t} but {d} later. [When was that|At what time|What time was it][?|]
    [The|A] [shop|gym|gate] [opens|closes] {d} later than usual, and usually it's {t}. [When is that today|What time is that|At what time today][?|]
    [With {e} guests|In room {e}|On day {e}] the [meeting|party|talk] begins at {t} and takes {d}. [When is it over|It ends at|End][?|]
    [Bus|Line|Train|Flight] number {e} leaves at {t} and [needs|takes] {d}. [When does it arrive|Arrival|There at][?|]
    [Don't come|Not|Better not come] at {t}, come {d} later. [When is that|What time is that|At what time][?|]
    [film|movie|show|play|concert|match|lecture|class|exam] [starts|begins|is] at {t}, [lasts|takes|length] {d}[. |, |; ][ends|end|over|finish|done][?| when?| at?]
    [When|At what time|What time] is [the|a|my] [film|class|exam|lesson|flight|course|webinar] of {d} over [if|when] it [starts|begins|is] at {t}[?|]
    [until|till] when [does|will] [the|a] {d} [meeting|film|lecture|lesson|walk|match] [go on|last|run|go] [if|when] it [started|begins|starts] at {t}[?|]
    [They|We] are meeting at {t} [and will need|and it'll take|for] {d}. [When will we be free|When are they free again|Free again at|When will it be over][?|]
    [What time is it|How late is it] [when|after] [I've|{x} has] [waited|worked|slept|walked|been driving] for {d} from {t} on[?|]
    [My|Our] [bus|train|ferry|flight|ride] goes at {t} and is on the road for {d}. [We arrive at|When do we get there|What time do we arrive|Arrival][?|]
    [I|We] [parked|put a coin in the meter|left the car] at {t} and [may stay|can park|paid for] {d}. [Until when|By when must I be back|When does the ticket expire|When do I have to move the car][?|]
    [The|A] parking [ticket|disc|permit] [bought|set|printed] at {t} is [good|valid] for {d}. [When does it run out|It expires at|Valid until][?|]
    [The|A] [roast|turkey|cake|bread|stew|lasagne|casserole] needs {d} in the oven. [I put it in|It goes in|It went in] at {t}. [When can we eat|When is it ready|When do I take it out|Out of the oven at][?|]
    [If|When] [I put the cake in|the chicken goes in|you start the machine|the wash starts] at {t} and it [takes|needs] {d}, [when will it be done|when is it ready|when do I come back|what time do I take it out][?|]
    [The|Our] [dishwasher|washing machine|dryer] [was switched on|was started|started] at {t}. [Its|The] program [takes|runs|lasts] {d}. [Finished at|When will it stop|When is it through|It stops at][?|]
    [The|A|This] battery [was full|was charged] at {t} and lasts {d}. [When is it empty|Empty at what time|When does the phone die|When does it run out][?|]
    [Charging|An update|The download|Copying the files|The backup|The installation] takes {d}[.|, and] [it's|it is|the clock says] {t} [now|][. When will it be done?|. Done at?|; done when?|. When can I use it again?]
    [My|{x}'s|The night|The late|The early] shift [starts|begins|is from] at {t} and is {d} long. [When can [I|{x}] go home|When is it over|When does it end|End of the shift][?|]
    [{x} clocks in at|I clock in at|I start work at] {t} and [must|has to|have to] [work|stay] {d}. [When is that done|Earliest time to clock out|Clocking out at|Home time][?|]
    I [fell asleep|went to sleep|went to bed] at {t} and slept [for |]{d}. [When did I wake up|What time did I wake up|I woke at|When was I awake again][?|]
    {x} [goes|went] to bed at {t} and [needs|wants|got|will get] {d} of sleep. [When should {x} get up|For when should the alarm be set|Wakes up at|When does {x} wake up][?|]
    [If I sleep {d} and|Suppose I sleep {d} and I] [fall asleep|go to bed] at {t}, [what time do I wake up|when do I wake up|when will I be awake][?|]
    [School|The lesson|Practice|Training|The course|Swimming] [starts|begins] at {t}, {d} [later it's over|later the kids go home|after that it is finished]. [What time is that|When is that|So it ends at][?|]
    [I'll|We'll|{x} will] be [there|home|with you|ready] in {d}. [It's|The time is|Right now it is] {t}. [What time will that be|When is that|When will I see you|Expected at][?|]
    "[Back|I'll be back|Lunch break: back|Closed, back] in {d}" was written at {t}. [When does the shop open again|When will the owner be back|Back at][?|]
    [The|My] [doctor|dentist|barber|boss] is running {d} late. My appointment was at {t}. [When will it be now|When is my turn|So I am seen at][?|]
    [The|Our|My] [flight|train|bus|ferry|meeting|game|concert] [was|is|has been] [delayed|pushed back|moved back|postponed] by {d}. It [was|should have been|was to start|was planned] at {t}. [What's the new time|When is it now|New time|When does it start now][?|]
    [Due|planned|scheduled] {t}, [delay|delayed by] {d}[.|:|,] [new time|expected|when is it now|so when][?|]
    [arrival|Arrival] [time?|when?] [departure|leave|depart] {t}, [trip|journey|flight|drive|duration] {d}
    [departure|Dep.|dep|leave] {t}[, |; ][travel time|duration|journey|drive] {d}[, |; ][arrival|arr|arrive][?| at?|: ?|=?]
    [start|Start|begin|from] {t}[, |; |: ][duration|length|lasts|takes] {d}[, |; ][end|finish|stop|until][?| time?|: ?| = ?]
    [ETA|What's my ETA|What is the ETA] if I [leave|set off|start] at {t} and [drive|need|travel] {d}[?|]
    [The|Our] [tour|excursion|guided walk|boat trip] of {d} [leaves|starts|sets off] at {t}, so [when are we back|we're back when|we will be back at what time][?|]
    [Doors|Gates|Kitchen] open at {t} and close {d} later[.|,] [closing time|so they close when|at what time do they close|closed at][?|]
    [Kick-off|Kickoff|First whistle|Tip-off] at {t}[;|,|.] [whole thing|game|everything] [takes|lasts] {d}[. |, ][final whistle|ends when|over at|the end is at][?|]
    [At|By] {t} [the water|the tide|the snow|the rain|the power] [was gone|stopped|began|set in] and {d} later it [came back|was over|ended]. [At what time|When was that|What time][?|]
    [The|A] tablet must be taken {d} after [the first one|the meal|breakfast], which was at {t}. [When|At what time|Take it at][?|]
    [Next|The next] [dose|feeding|pill|check|round|patrol] is {d} after the last, which was [at |]{t}. [When is it|So at what time|Next at][?|]
    [Sunset|Sunrise|High tide|Low tide] [is|was] at {t}[ today|]; {d} after that [it's dark|the gate closes|the boat sails]. [When|At what time|What time is that][?|]
    [Set|Set the|Please set the] [timer|alarm] for {d}[.|!] It's {t}. [When will it ring|It'll go off at|What time will it go off][?|]
    [What will the clock [say|show|read]|What does the clock say|Where will the hands be: what time is it] {d} after {t}[?|]
    {t} [and then|and after that|then] {d} [of waiting|of driving|of homework|of work|more]. [What time now|What's the time|So it's what time|The time is then][?|]
    If the [hour is|time is|clock strikes] {t}, what [will it be|time is it] [when {d} have gone by|once {d} have passed|{d} on|after a wait of {d}][?|]
    [Say|Suppose|Imagine] the [guests come at {t} and leave|party begins at {t} and ends|baby falls asleep at {t} and wakes up|storm starts at {t} and passes] {d} later. [What time is that|When is that|At what time]?
    [add|Add|Count on|go on|Move] {d} [from|starting from|starting at] {t}: [what time do you get|where do you end|time?]
    [I've got|There's|There is] {d} [until|before] [my train|the bus|the show|the party|lunch] and it's {t}. [When does it leave|When is it|At what time is it|So that's at][?|]
    [My|The] [soup|rice|dough|tea|paint|glue|cement] needs {d} [to cool|to rest|to dry|to set|to rise]; it is {t}. [Ready at what time|When can I go on|When is it ready|Ready at][?|]
""")
_ASK_START = Patterns("""
    [I|We|They|{x}] did not [leave|come|start|call] at {t} but {d} earlier. [When was that|At what time|What time was it][?|]
    [The|A] [shop|gym|gate] [opens|closed] {d} earlier than usual, and usually it's {t}. [When is that today|What time is that|At what time today][?|]
    [With {e} guests|In room {e}|On day {e}] the [meeting|party|talk] was over at {t} after {d}. [When did it begin|It began at|Start][?|]
    [Don't come|Not|Better not come] at {t}, come {d} earlier. [When is that|What time is that|At what time][?|]
    [When|What time] did the [film|movie|game|lesson|meeting|storm|concert] [start|begin] if it [ended|was over|stopped] at {t} after {d}[?|]
    [If|When] the [bread|cake|roast|dinner|food|pizza] [must|has to|should] [be ready|come out|be done|be on the table] at {t} and [needs|takes] {d}[ in the oven| to cook| on the stove|], [when should I put it in|when do I start|what time do I begin|when must it go in][?|]
    [To be|In order to be|If I want to be] [there|at work|at school|on time|at the station] [at|by] {t} with [a drive of {d}|{d} on the road|a walk of {d}|a {d} ride], [when do I leave|what time should I set off|when do I have to go|I leave at what time][?|]
    [appointment|dentist|doctor|interview|meeting|date|class|check-in] at {t}, [way takes|it takes me|drive is|I need|travel time] {d}[. |, ][when must I leave|leave when|leave at|latest time to leave|set off at][?|]
    [The|My|Our] [lesson|class|shift|film|lecture|nap|break] [is|was] {d} [long |]and [ends|ended|is over|finishes] at {t}. [When did it begin|It began at|When does it start|What was the start time][?|]
    [It|The trip|The flight|The drive|The climb] took {d} and we [arrived|were there|landed|got to the top] at {t}. [When did we leave|When had we set off|We left at|Departure time][?|]
    a [train|bus|ship|plane|truck] that [takes|needs|is on its way for|travels] {d} [arrives|gets in|comes in|lands] at {t}. [when did it leave|When was its departure|It left at|what time did it depart][?|]
    [arrives|arrival|gets in|landing] {t}[, |; ][trip|journey|flight time|duration|travel time] {d}[, |; ][departure|left at|depart|when did it leave][?| time?]
    [end|ends|finish|over at] {t}[, |; ][duration|length|lasts] {d}[, |; ][start|begin|beginning|from when][?| time?| = ?]
    I [woke up|got up|was awake] at {t} after [sleeping |a sleep of |]{d}. [When did I fall asleep|When did I go to bed|What time did I fall asleep|So I fell asleep at][?|]
    [I need|I want|{x} needs|{x} wants] {d} of sleep [and|but] [must|has to|have to] [get up|be up|wake up] at {t}. [When is bedtime|What's the latest bedtime|When to go to bed|Bed at][?|]
    [What|When] is bedtime for {d} of sleep [when|if] the alarm [rings|goes off|is set] at {t}[?|]
    [The|My] [train|flight|bus|boat|ferry] [leaves|departs|goes] at {t}. [We should|I have to|You must|Passengers must] be [there|at the gate|at the airport|on the platform] {d} [before|earlier|in advance|ahead]. [When is that|By what time|Be there at|That means what time][?|]
    [check-in|Check-in|Boarding|The gate|Registration|Warm-up] [closes|begins|ends|starts] {d} before [departure|the start|take-off] at {t}. [When|At what time|Which time is that|What time is that][?|]
    [be there|arrive|come|show up] {d} [early|before the start|ahead of time] for [a show|a flight|an exam|an interview|a game] at {t}: [when|what time|which time][?| is that?]
    {x} [came|arrived|showed up|turned up] {d} [late|too late], at {t}. [When should {x} have come|What time was agreed|What was the right time|When was {x} expected][?|]
    {x} [came|arrived|was there] {d} too early for [a|the] [date|meeting|lesson|train|show] at {t}. [When did {x} come|When was {x} there|At what time was that][?|]
    The [bus|train|plane|tram|ferry] [arrived|came|pulled in|landed] {d} late, at {t}. [What was its planned time|When should it have come|When was it due|Timetable time][?|]
    [It's|It is|Now it's|The clock says] {t} and [I've been|{x} has been|we've been|they have been] [waiting|working|reading|walking|driving|cooking|asleep] [for |]{d}. [Since when|When did that start|From what time on|It started at][?|]
    [It has been raining|The baby has slept|The game has been going|They've played|The oven has been on] for {d}, [and it's|and now it is|now] {t}. [When did it start|Since what time|Start at|What time did it begin][?|]
    [What time|When] was it {d} [before|earlier than|prior to] {t}[?|]
    [What time|When] was it {d} ago [if|when|now that|, as] [it's|it is|the time is] {t}[ now|][?|]
    {d} [before|ahead of|earlier than] {t}[: time?| - what time?|?| equals?]
    [rewind|Rewind|Turn back|turn back|Set back] [the|a] clock [by |]{d} from {t}[: what does it show?|. What time is shown?|; time?]
    [count|go|step] {d} back from {t}: [time|what time][?| do you reach?]
    [The|My] [timer|alarm|bell] of {d} [rang|went off|beeped] at {t}[. When was it set?|. When did I start it?|, so when had I set it?|; set at?]
    By {t} {x} had been [at school|at work|on the road|in the pool|at the party] for {d}. [When did {x} get there|When did {x} arrive|{x} came at][?|]
    [the|our|the night] [shift|watch|service] of {d} ends at {t}[, so it begins at?|. Start?|. Begins when?|, when does it begin?]
    [We want to|The guests|We will] eat at {t}. [Cooking|Preparing it|The stew|The turkey] takes {d}. [When do I start|Start cooking when|Begin at|When to start][?|]
    [The|A] [deadline|closing time|last train|curfew|final call] is at {t} and I need {d}[ for the way| to finish|]. [What's the latest I can start|Start no later than|When at the latest must I go|Latest start][?|]
    [Homework|Cleaning|The report|Packing|Shopping] takes {x} {d}, and {x} wants to be [through|done|finished] by {t}. [When should {x} start|So {x} starts at|Latest start][?|]
    {d} from now it will be {t}. [What time is it now|What's the time now|The time now][?|]
    in {d} [it's|it will be|the clock will strike|we'll have] {t}. [what time is it now|so what time is it|time now][?|]
    [If|When] [in {d} it is|{d} later it is|{d} from now it is] {t}, what [time is it now|is the time now|was the time][?|]
    [It was|It had been] {t} when the {d} [film|lesson|ride|concert|exam] ended. [Beginning|Start|When did it begin|What time did it start][?|]
    [Sunset|Sunrise|High tide|The show|The match] is at {t}; we [want|have|need] to [be there|leave|set up] {d} before. [When|What time is that|At what time][?|]
    [The|A] [game|quiz|contest|exam] was stopped at {t}, {d} [after it had begun|into it|after the start]. [When did it start|Start time|It started when][?|]
    [Our|The] [guests|kids|parents|neighbors] left at {t}; they had stayed {d}. [When did they come|They had come at|What time had they arrived][?|]
""")
_ASK_LENGTH = Patterns("""
    [bed|to bed|asleep|lights out] [at |]{t}[, |; ][up|awake|alarm|wake up] [at |]{u}[, |; ][sleep|how much sleep|how long|hours of sleep|sleep time][?| = ?|: ?]
    I [went to bed|fell asleep|turned in|closed my eyes|was in bed] at {t} and [my alarm rang|the alarm woke me|woke up|got up|was up] at {u}. How [long|much sleep] did I [sleep|get][?|]
    {x} [goes to bed|falls asleep|sleeps] at {t} and [wakes up|gets up|is woken] at {u}. [How long does {x} sleep|How much sleep is that|Length of sleep][?|]
    [If|When] I [go to bed|fall asleep] at {t} [and|but] [get up|have to get up|must rise] at {u}, how [long do I sleep|much sleep do I get|long is that|long will I sleep][?|]
    How [much sleep|long a rest|much rest] [do I get|is it|is that] from {t} [to|till|until] {u}[?|]
    [night shift|Night shift|early shift|day shift|my shift|Shift|late shift] [from |]{t} [-|to|until|till] {u}[, |: |; |. ][how long|duration|length|how long is that|time worked][?|]
    {x} [works|worked|is on duty|has a shift|babysat|stayed] from {t} [to|until|till] {u}. [How long is the shift|How long is that|Working time|Time on duty|How long was it][?|]
    [open|Open|opening hours|Opening hours:|hours:] {t} [-|to|until] {u}[. |, |; ][how long is it open|open for how long|how long is that|length][?|]
    [The|Our|This] [shop|store|bank|zoo|library|cafe|kiosk] [opens|unlocks] at {t} and [closes|shuts|locks up] at {u}. [For how long is it open|How long does it stay open|Open how long|How long is that][?|]
    [How long does|How long will] a [shop|museum|cafe|gym] stay open that [opens|starts] at {t} and closes at {u}[?|]
    {x} [began|started] [the test|homework|to cook|painting|the race|the climb|work] at {t} and was [done|finished|through|ready] at {u}. [How long did it take|It took how long|Time needed|How long was {x} busy][?|]
    [A|The] [meeting|concert|lesson|match|trial|show|party] [began|started|opened] at {t} and was over at {u}[; its length?|. What was its length?|: duration?|. How long did it go on?]
    [What's|What is|Find|Give|Tell me] the [length|duration] of a [film|trip|shift|lesson|flight] [from|lasting from|running from] {t} [to|until] {u}[?|.|]
    [leave|left|depart|departure|Dep.|dep] {t}[, |; ][arrive|arrival|arrived|there|arr] {u}[, |; ][trip|travel time|how long|duration|journey][?| time?| = ?]
    [We|They] [set off|left home|drove off|took off|hit the road] at {t} and [were there|arrived|landed|got there|pulled in] at {u}. [How long did we travel|How long were they on the way|How long was the ride|How long did it take][?|]
    the [train|bus|flight|ferry] [at|of] {t} [gets in|arrives|is there] at {u}. [How long is it under way|How long is the journey|Journey time|How long do you sit in it][?|]
    [How long is the flight|How long is the ride|How long does the trip take|Travel time] if [I board|it leaves|we leave|departure is] at {t} and [get off|it lands|arrive|arrival is] at {u}[?|]
    [It's|It is|Now it's|Right now it's] {t}. [The film|The bus|My train|The party|School|Dinner|The shop|My date] [is|starts|begins] at {u}. [How long do I have to wait|How much time is left|How long until then|How long do I still have][?|]
    [My|The|Our] [train|bus|flight|class|appointment|shift] [leaves|starts|is|begins] at {u} and [it's|it is|the time is] [only |now |]{t}. [How long is the wait|How much time do I have|How long till then|Waiting time][?|]
    [How long|How much time] [is left|is it|remains|do I have] [until|till|before] {u}[ when| if|, as] [it's|it is|my watch says] {t}[ now|][?|]
    [now|Now] {t}[, |; ][closing time|deadline|train|due|bus|exam|start] {u}[, |; ][time left|how long left|remaining|how long have I got|wait][?|]
    [The|My] [deadline|exam|flight|shift|game] is at {u}. [It's|At the moment it is] {t}. [Time left|How long have I still got|How long to go|Remaining time][?|]
    I [came|got here|arrived|have been here since|have been waiting since] [at |]{t} and [now it's|it's|it is now] {u}. [How long have I been here|How long have I waited|For how long is that|How long is that][?|]
    [since|Since] {t} [it's been raining|the light is on|the baby has been asleep|we've been driving]. Now it's {u}. [How long is that|For how long|How long has it been][?|]
    [the rain|the storm|the strike|the power cut|the fire|the fog] [lasted|went on] from {t} [to|until|till] {u}[: |. |, ][how long|how long was it|how long is that][?|]
    [What time|How much time|How long] [goes by|passes|lies|is there] [from|between] {t} [and|to] {u}[?|]
    from {t} [until|till|through to|up to] {u} [it's|is it|there are] how [long|much time][?|]
    [between|Between] {t} and {u} [lie|there is|there are|passes] [how much time|what amount of time][?|]
    [How far apart|How much time apart] are {t} and {u}[?|]
    [difference|time difference|gap|elapsed time|time elapsed|interval][: | between | from ]{t} [and|to] {u}[?|]
    [sunrise|Sunrise|the sun rises] [at |]{t}, [sunset|the sun sets|sundown] [at |]{u}[. |, |: |; ][how long is the day|length of the day|daylight|how long is it light][?|]
    [parked|Parked|checked in|entered|logged in|clocked in] [at |]{t}[, |; ][left|drove off|checked out|logged out|clocked out] [at |]{u}[, |; |. ][how long|time|duration|how long was that][?|]
    [The|My] [phone|battery|lamp|candle|laptop] was [full|switched on|lit|unplugged] at {t} and [dead|empty|out|off] at {u}. How long did it [last|hold][?|]
    [Put in|Into the oven|Started] at {t}, [taken out|out|stopped] at {u}. [How long was it in|Baking time|How long did that take|Time][?|]
    [Kick-off|First whistle|It began] at {t}, [final whistle|last whistle|it ended] at {u}. [How long did it all last|How long was the game|Total time][?|]
    [The|A] [movie|play|ceremony] that [starts|started] at {t} [lets out|ends|ended|will finish] at {u}. [How long is it|What's its running time|Running time][?|]
    [starting|If you start|if I begin] at {t}, how long [does|do|must] [it|you|I] [take|need|work] to [be|get] [done|finished] at {u}[?|]
    [How long does somebody work|How long does a person work] who [starts at|is there from|begins at] {t} and [goes home at|stays until|stops at] {u}[?|]
    at {t} [the gates open, at {u} they close|they lock the doors, at {u} they open them|the tank starts to fill, at {u} it's full|the candle is lit, at {u} it has burnt down]. [How long is that|What time span is it|How long in between][?|]
""")
_ASK_HOURS = Patterns("""
    [How many hours|how many hrs] [is it |are there |do I work |lie |pass ||][from|between] {t} [to|and|until|till] {u}[?|]
    [night shift|shift|my shift|work|open|school|sleep] [from |]{t} [-|to|until|till] {u}[, |: |; |. | ][how many hours|hours|hours?|number of hours|total hours][?|]
    {x} [works|worked|sleeps|slept|studies|babysits|drives] from {t} [to|until|till] {u}. [How many hours is that|How many hours|Hours in total|Number of hours][?|]
    [If|When] [I work|a shop is open|we drive|the heating runs|{x} sleeps] from {t} [to|until|till] {u}, how many hours is [that|it][?|]
    [hours|Hours|number of hours|hrs] [from|between] {t} [to|and|until] {u}[?|: ?| =]
    [bedtime {t}, school {u}|doors close {t}, open {u}|last bus {t}, first bus {u}|lights off {t}, on {u}|sunset {t}, sunrise {u}][ - |: |, |. ][hours between|how many hours between|how many hours lie between][?|]
    [They close|The shop shuts|The pool closes] at {t} and [open again|opens again|reopens] at {u}. How many hours are in between[?|]
    [How many hours of sleep|How many hours of work|How many hours of daylight] [is|are|do I get|do you get] from {t} [to|until] {u}[?|]
    {t} [to|until|till|-] {u} is how many hours[?|]
    I [go to bed at {t} and get up|start at {t} and stop|arrive at {t} and leave|open the shop at {t} and close it] at {u}. [How many hours|How many hours is that|That's how many hours][?|]
""")


_SUN = re.compile("sunrise|sun rises|daylight", re.IGNORECASE)
_LONG = re.compile(
    r"\b(sleep|slept|asleep|bed|bedtime|night|shift|open|opens|office|clock in|clocks in|battery|phone)\b",
    re.IGNORECASE,
)


@topic(9)
def clock_scenes(rng: random.Random) -> Short:
    dial, (start, minutes) = Dial(rng, casual=True), _start_and_length(rng)
    asked = rng.choice(("end", "start", "length", "length", "hours"))
    if asked == "hours":
        minutes = 60 * rng.randint(2, 11) + rng.choice((0, 0, 0, 30))
    end = start + minutes
    slots = {
        "t": dial.typed(end if asked == "start" else start),
        "u": dial.typed(end),
        "d": typed_span(rng, minutes),
        "e": rng.randint(2, 30),
        "x": some_people(rng, 1)[0],
    }
    patterns = {"end": _ASK_END, "start": _ASK_START, "length": _ASK_LENGTH, "hours": _ASK_HOURS}[asked]
    question = _tidy(patterns.expand(rng, **slots))
    if _SUN.search(question):
        require(5 * 60 <= start < 9 * 60 and minutes > 7 * 60)
    elif asked != "hours":
        is_long = _LONG.search(question) is not None
        require(is_long and minutes >= 180 or not is_long and (minutes < 300 or rng.random() < 0.3))
    if asked != "hours":
        return clock_reply(question, dial, start, minutes, asked)
    return said(question, "\n".join(_hours(dial, start, minutes)), _whole(Fraction(minutes, 60)))


def _hours(dial: Dial, start: int, minutes: int) -> list[str]:
    steps = dial.steps(start, minutes)
    return (
        [*steps, f"{span(minutes)} = {show(Fraction(minutes, 60))} hours"] if minutes % 60 else [*steps, span(minutes)]
    )


def _whole(value: Fraction) -> Value:
    return int(value) if value.denominator == 1 else value


# Breaks, and several parts one after another -----------------------------------------------------

_WITHOUT_BREAK = Patterns("""
    [Paid hours|Net working time|Pure working time]: [in|from|start] {t}, [out|to|end] {u}, unpaid break {d}[.|?|]
    I [came|got in] at {t} and went at {u}. [Take off|Without|Minus] {d} [for lunch|of breaks], how long [did I work|was the work][?|]
    [School|The conference|The test day] [is|goes|runs] [from |]{t} to {u}, {d} of it [are|is] [recess|break|lunch]. [How long is the rest|How much time for lessons|How long without it][?|]
    [Work|I work|{x} works|My shift is|The shift goes|Office hours are] from {t} to {u} [with|, minus|less|, including] {d} [for lunch|break|of break|of rest]. [Hours actually worked|How long is really worked|How long is the work itself|Time worked|Actual working time][?|]
    [start|Start|in] {t}, [end|out|stop] {u}, [break|lunch|pause] {d}[. |, |; ][time worked|working time|how long did I work|net time][?|]
    {x} [came|arrived|started] at {t}, [left|went home|stopped] at {u} and took {d} off [for lunch|for coffee|in between]. How long did {x} [really |actually |]work[?|]
    [If|When] [I'm|{x} is] at [work|the office|school] from {t} until {u} with a [break|lunch break|pause] of {d}, how [long|much time] is [worked|spent working|left for work][?|]
    [A|The] [course|class|workshop|seminar|training] [runs|goes|lasts] from {t} to {u} with {d} of [breaks|pauses|break]. [How long is the teaching|How long without the breaks|Teaching time|Net length][?|]
    I was in bed from {t} to {u} but [lay awake|was awake|read] for {d}. How [long|much] did I [sleep|really sleep|actually sleep][?|]
    We [drove|traveled|hiked] from {t} to {u} [and|, but] [rested|stopped|had a rest] for {d}. How long [did we drive|were we moving|without the stop][?|]
    How long [does {x} work|is the working time] from {t} to {u} [without|not counting|if you leave out] {d} of [break|lunch][?|]
    [The|A] game [started|began] at {t} and ended at {u}. There was [a break|a pause|an interruption] of {d}. How long was [played|the game without it|the playing time][?|]
    [The shop|A cafe|The office|The museum] is open {t} to {u} but [closes|is closed|shuts] for {d} at noon. [How long is it open in all|Opening time in all|How long can you go in][?|]
""")
_TWO_PARTS_END = Patterns("""
    [game|match|show|concert|play] of {d} [plus|+|and] {m} [break|half-time|intermission|extra time][, |; ][starts|kickoff|begins|start] [at |]{t}[, |. |; ][ends|final whistle|end|over][?| when?| at?]
    {t}[: |, ]{x} [walks|drives|reads|waits] {d}, then [rests|waits|shops|reads] {m}. [What time is it|What's the time then|Time now][?|]
    [Leave|We leave|I leave|{x} leaves] at {t}, [drive|travel|ride] {d} and [stop|rest|wait] [for |]{m}[ on the way|]. [When do we get there|Arrival|When is the arrival|We arrive at][?|]
    [It's|It is|Now it's] {t}. [First|First I have] {d} of [homework|practice|cleaning], then {m} of [reading|piano|games|rest]. [When am I done|When is it all over|Finished at][?|]
    [The|A] train [leaves|departs] at {t}, takes {d} and is {m} late. [When does it arrive|Real arrival|It arrives at][?|]
    [The|A] [bread|cake|roast] bakes [for |]{d} and cools for {m}. [It goes in|I put it in|In the oven] at {t}. [When can we eat it|When is it ready|Ready at][?|]
    [Two|The two] [lessons|parts|films|talks] of {d} and {m} [follow each other|come one after the other|run back to back] from {t} on. [When are both over|When is the end|End][?|]
    [first|First] {d}, [then|after that] {m}, [starting|beginning|start] at {t}[. |, |: ][when is the end|end time|ends when|what time is it then][?|]
    [Starting|We start] at {t}: {d} [by bus|by train|by car|on foot], then {m} [on foot|by taxi|by tram|by boat]. [Arrival|When are we there|When do we arrive|There at][?|]
    [If|When] [a film|the show|the talk] [starts|begins] at {t}, [lasts|takes] {d} and [the ads before it take|has an extra break of|is followed by questions for] {m}, when [is everything over|can we go|is it all done][?|]
    [The|My] flight of {d} [left|took off] at {t}, and after landing [the bags|passport control|the queue] took {m}. [When was I out|What time was it then|When could I go][?|]
    I [wake up|get up|rise] at {t}, [need|take] {d} [to wash and dress|in the bathroom|for my hair] and {m} for breakfast. [When am I ready|When can I leave|Ready at][?|]
    [wake|up|awake] {t}, [shower|yoga|gym] {d}, [breakfast|coffee|walk the dog] {m}[. |, |: ][ready when|done at|what time then][?|]
    [School|Work|Training] is over at {t}. {x} [plays|shops|swims|chats] for {d} and needs {m} to get home. [When is {x} home|Home at|When does {x} get home][?|]
    [The|My] [bus|train] at {t} takes {d}, then I [change and wait|sit in the station for] {m}. [What time is it then|When does the next part start|It's then][?|]
    [The|A] [talk|show] [was to start|should begin] at {t} but began {m} late and [lasted|went on for] {d}. [When was it over|It ended at|End][?|]
    [My|The] alarm is set to {t}, I snooze [for |]{d} and need {m} to get [ready|dressed|out]. [When do I leave|When can I go|I am ready at][?|]
""")
_TWO_PARTS_START = Patterns("""
    [The|My] [flight|train|ferry|bus] [is|leaves|goes] at {t}[. I should|, I must|. I have to| and I must] be there {d} [before|early|in advance], and the [drive|way|ride|taxi] takes {m}. [When do I leave|When must I leave|Leave when|When should I set off][?|]
    [I need|{x} needs] {d} to get [ready|dressed|up] and {m} for the [way|walk|bus|drive]. [School|Work|The show|The exam] [starts|begins|is] at {t}. [When to get up|When should I get up|For when do I set the alarm|Alarm at][?|]
    [dinner|lunch|the meal] at {t}, [chopping|preparation|prep] {d}, [cooking|baking|oven] {m}[. |, |: ][start when|when do I start|begin at|start time][?|]
    [We|They] [arrived|were there|got home] at {t} after [driving|walking|riding] {d} and a [rest|stop|break] of {m}. [When did we leave|When did they set off|Departure|Start][?|]
    [The|A] [film|game|show|concert] [of|lasting] {d} plus {m} of [ads|breaks|extra time] ended at {t}. When did it [start|begin][?|]
    [Be|I must be|You have to be] at [the gate|work|school|the hall] at {t}: {d} [by train|by bus|by car] and {m} on foot. [When do I have to leave|Leave home at|When must I go][?|]
    [the cake|the bread|the roast] must be [on the table|ready] at {t}: {d} in the oven and {m} to cool. [When does it go in|Into the oven at|When do I put it in][?|]
    [Finish|I want to finish|Done] by {t}[: |, ]task one takes {d}, task two {m}. [Latest start|When must I start|Start no later than][?|]
""")


@topic(3.5)
def clock_in_parts(rng: random.Random) -> Short:
    dial, (start, minutes), kind = Dial(rng, casual=True), _start_and_length(rng), rng.randrange(3)
    more = rng.choice((5 * rng.randint(1, 12), 15, 20, 30, 45, 60, 90))
    slots = {"m": typed_span(rng, more), "x": some_people(rng, 1)[0]}
    if kind == 0:
        total = rng.choice((30 * rng.randint(8, 19), 15 * rng.randint(12, 40)))
        more = rng.choice((15, 20, 30, 45, 60, 60, 90))
        start = 15 * rng.randint(24, 76)
        end = start + total
        question = _WITHOUT_BREAK.expand(rng, t=dial.typed(start), u=dial.typed(end), d=typed_span(rng, more), **slots)
        lines = [*dial.steps(end, -more), *dial.steps(start, total - more)]
        return said(_tidy(question), "\n".join((*lines, span(total - more))), span(total - more))
    if kind == 1:
        question = _TWO_PARTS_END.expand(rng, t=dial.typed(start), d=typed_span(rng, minutes), **slots)
        lines = [*dial.steps(start, minutes), *dial.steps(start + minutes, more)]
        return said(_tidy(question), "\n".join(lines), dial.shown(start + minutes + more))
    question = _TWO_PARTS_START.expand(rng, t=dial.typed(start), d=typed_span(rng, minutes), **slots)
    lines = [*dial.steps(start, -minutes), *dial.steps(start - minutes, -more)]
    return said(_tidy(question), "\n".join(lines), dial.shown(start - minutes - more))


# Timetables --------------------------------------------------------------------------------------

_NEXT_ONE = Patterns("""
    [The|A|My] [bus|tram|train|ferry|shuttle] [comes|runs|goes|leaves] every {d}. The last one [left|went|was|came] at {t}[. When is the next|. Next one|, so when does the next one come|. The next is at][?|]
    [bus|tram|train|boat] every {d}, [last|previous|one just left] at {t}[, |; |: ][next one|next|when's the next][?|]
    I just missed the {t} [bus|train|tram|ferry]; they [go|run|leave] every {d}. [When is the next one|Next one at|When can I go][?|]
    [A|The] [pill|dose|drop|syrup] is taken every {d}. I took one at {t}. [When is the next due|Next dose|When do I take the next][?|]
    [The|A] [bell|clock|buoy|machine] [sounds|rings|beeps] every {d}, just now at {t}. [When again|When does it ring next|Next time][?|]
    [The|A] baby [eats|drinks|is fed] every {d}, [last|most recently] at {t}. [When next|Next feeding|When is it hungry again][?|]
""")
_KTH_ONE = Patterns("""
    [buses|Buses|trains|trams|boats] [at|from] {t} and then every {d}[.|,|;] [{k} bus at|when is the {k}|time of the {k} one|when does the {k} one go][?|]
    [The|A] first [train|bus|tour|show|race|lesson|pill|dose|patient] is at {t}, [the others follow|then one comes|and then one] every {d}. When is the {k}[ one|][?|]
    [A|One] [pill|dose|spoonful] every {d}[, |. ][First|first|the first] [one |]at {t}, [when|and when] is the {k}[?|]
    [It|The clock|The bell|A siren] [rang|rings|sounds] [first |]at {t} and [then |]every {d}[ after that|]. When [does it ring|is it heard] for the {k} time[?|]
    [Tours|Boats|Shows|Trains] leave every {d}, [starting|the first one|beginning] at {t}. [What time is the {k}|When does the {k} leave|{k} departure][?|]
    [Runners|Skiers|Cyclists|Racers] start every {d}, the first at {t}. When does the {k} [start|go][?|]
    [Feed|Check|Turn|Water] it every {d}: first at {t}. [When is the {k} time|{k} time is at|And the {k} time][?|]
""")
_AFTER_NOW = Patterns("""
    [The|A] [bus|train|tram|ferry|tour] [leaves|goes|runs|comes] every {m} minutes [from|starting at] {t}. [It's|It is|I am there at] {u}[ now|]. [When is the next one|When does the next one leave|Next one at][?|]
    [from|starting at] {t} every {m} min a [bus|tram|train] [goes|leaves]. Which [one|departure] is the next [after|if it's|at] {u}[?|]
    [Trains|Buses|Boats] go every {m} minutes, the first at {t}. [I get to the stop|I arrive|{x} arrives] at {u}. [Which one can be caught|When is the next one|When does the next one go][?|]
""")


_RARE = re.compile("baby|pill|dose|drop|syrup|spoonful", re.IGNORECASE)


@topic(2)
def timetables(rng: random.Random) -> Short:
    dial, start, kind = Dial(rng), some_time(rng), rng.randrange(5)
    every = rng.choice((10, 12, 15, 20, 30, 8, 25, 40, 5, 6, 60, 90, 120, 180, 240, 360, 480))
    slots = {"t": dial.typed(start), "d": typed_span(rng, every), "x": some_people(rng, 1)[0]}
    if kind < 2:
        question = _tidy(_NEXT_ONE.expand(rng, **slots))
        require(every >= 120 or not _RARE.search(question))
        return said(question, "\n".join(dial.steps(start, every)), dial.shown(start + every))
    n = rng.randint(2, 7)
    if kind < 4:
        require((n - 1) * every < 720)
        k = rng.choice((ordinal(n), ("second", "third", "fourth", "fifth", "sixth", "seventh")[n - 2]))
        step = f"{every // 60} hours" if every >= 120 else f"{every} minutes"
        lines = list(apply("*", n - 1, every // 60 if every >= 120 else every).lines) if n > 2 else []
        if lines:
            lines[-1] += f" {step.split()[1]}"
        if every < 120 <= (n - 1) * every:
            lines += remainder((n - 1) * every, 60).lines
        lines += dial.steps(start, (n - 1) * every)
        question = _tidy(_KTH_ONE.expand(rng, k=k, **slots))
        require(every >= 120 or not _RARE.search(question))
        return said(question, "\n".join(lines), dial.shown(start + (n - 1) * every))
    every = rng.choice((10, 12, 15, 20, 30, 8, 25))
    start = 30 * rng.randint(12, 40)
    now = start + (n - 1) * every + rng.randint(1, every - 1)
    require(n < 7)
    listed = ", ".join(dial.shown(start + i * every) for i in range(n + 1))
    question = _AFTER_NOW.expand(rng, t=dial.typed(start), u=dial.typed(now), m=every, x=slots["x"])
    answer = dial.shown(start + n * every)
    return said(_tidy(question), f"{listed}\n{answer}", answer)


# Early, late, and zones ----------------------------------------------------------------------------

_IS_BEFORE = Patterns("""
    [Is|is] {t} [earlier than|before] {u}[?|, yes or no?|]
    [Does|does] {t} come before {u}[?|]
    [Is it true that|True or false:] {t} [is before|is earlier than|comes before] {u}[?|]
""")
_IS_AFTER = Patterns("""
    [Is|is] {t} [later than|after|past] {u}[?|, yes or no?|]
    [Does|does] {t} come after {u}[?|]
    [Is it true that|True or false:] {t} [is after|is later than|comes after] {u}[?|]
""")
_ON_TIME = Patterns("""
    I [leave|set off|start] at {t} and [need|drive|walk|travel] {d}. [School|Work|The film|The show|My exam|The lesson] [starts|begins] at {u}. [Am I on time|Will I be on time|Do I make it|Do I get there before it starts][?|]
    [Can I catch|Do I catch|Will I get] the {u} [bus|train|ferry|flight] if I [leave|go|set off] at {t} and the [way|walk|drive] takes {d}[?|]
    [A|The] {h} [film|walk|lesson|wash] starting at {t}: is it over before {u}[?|]
    [It's|It is] {t}, I need {d} to get there. [They close|The shop closes|The bank shuts|Doors close] at {u}. [Do I make it|Is that enough time|Will I make it][?|]
    Is a [job|task|game|film] of {d} that begins at {t} [done|finished|over] before {u}[?|]
""")


def _compound(minutes: int) -> str:
    """Before a noun."""
    return f"{minutes}-minute" if minutes % 60 else f"{minutes // 60}-hour"


def _verdict(question: str, is_true: bool) -> str:
    if "rue or false" in question:
        return "True" if is_true else "False"
    return "Yes" if is_true else "No"


@topic(1.5)
def early_or_late(rng: random.Random) -> Short:
    dial = Dial(rng)
    start, minutes = some_time(rng), rng.choice((5 * rng.randint(1, 24), rng.randint(2, 59), 30, 45, 90))
    if rng.random() < 0.5:
        limit = start + minutes + rng.choice((1, -1)) * rng.choice((5 * rng.randint(1, 8), rng.randint(1, 30)))
        require(limit > start)
        question = _tidy(
            _ON_TIME.expand(
                rng, t=dial.typed(start), d=typed_span(rng, minutes), u=dial.typed(limit), h=_compound(minutes)
            )
        )
        is_early = start + minutes < limit
        verdict = f"{dial.shown(start + minutes)} is {'before' if is_early else 'after'} {dial.shown(limit)}"
        word = "Yes" if is_early else "No"
        return said(question, "\n".join((*dial.steps(start, minutes), f"{word}, {verdict}.")), word)
    require(not dial.turns_at_noon)
    other = start + rng.choice((1, -1)) * rng.choice(
        (5 * rng.randint(1, 40), rng.randint(1, 20), 60 * rng.randint(1, 9))
    )
    require(0 <= other < _DAY and 0 <= start < _DAY)
    is_asked_before = rng.random() < 0.5
    question = _tidy(
        (_IS_BEFORE if is_asked_before else _IS_AFTER).expand(rng, t=dial.typed(start), u=dial.typed(other))
    )
    word = _verdict(question, (start < other) == is_asked_before)
    return said(
        question, f"{word}, {dial.shown(start)} is {'before' if start < other else 'after'} {dial.shown(other)}.", word
    )


_CITIES = (
    "London Paris Tokyo Delhi Cairo Lima Rome Oslo Boston Dubai Sydney Madrid Seoul Athens Lagos Moscow Berlin Chicago "
    "Toronto Denver Honolulu Perth Manila Bangkok Lisbon Nairobi Vienna Miami Warsaw"
).split()
_ZONE_FORWARD = Patterns("""
    {q} is {n} [hours|h] ahead of {p}. [It's|It is|Now it's] {t} in {p}. [What time is it in {q}|What's the time in {q}|And in {q}|Time in {q}][?|]
    [What time is it|What's the time|How late is it] in {q}, {n} hours ahead of {p}, when {p} has {t}[?|]
    {p} is {n} hours behind {q}. [When it's|At|If it is] {t} in {p}, [what do clocks show in {q}|what time is it in {q}|what's the time in {q}][?|]
    I [live|am] in {p} and call {x} in {q} at {t} [my|our|local] time. {q} is {n} hours ahead. [What time is it for {x}|What time is it there|Time there][?|]
    [A|The] [call|game|stream|meeting] at {t} [in {p}|{p} time] is when in {q}, which is {n} hours ahead[?|]
    {p} [to|->] {q}: +{n} hours. {t} in {p} [is|means|=] what in {q}[?|]
    [Flying|Traveling|Going] east [from {p} to {q} |]I set my watch {n} hours ahead. It [showed|read|was] {t}. [What does it show now|New time|What time is it now][?|]
    [my watch|My watch|The clock] is still on {p} time and shows {t}. {q} is {n} hours ahead. [Local time in {q}|What time is it in {q}][?|]
    [The|Our] server [logs|runs|is set] in {p}, {n} hours behind {q}. [An error|An entry|A backup] at {t} server time is at what time in {q}[?|]
    [In {p} it's|{p} has] {t}, and {q} is {n} hours [further|ahead|in front]. [What time is it there|So {q} has|And in {q}][?|]
""")
_ZONE_BACK = Patterns("""
    {p} is {n} [hours|h] ahead of {q}. [It's|It is|Now it's] {t} in {p}. [What time is it in {q}|What's the time in {q}|And in {q}|Time in {q}][?|]
    [What time is it|What's the time|How late is it] in {q}, {n} hours behind {p}, when {p} has {t}[?|]
    {q} is {n} hours behind {p}. [When it's|At|If it is] {t} in {p}, [what do clocks show in {q}|what time is it in {q}|what's the time in {q}][?|]
    I [live|am] in {p} and call {x} in {q} at {t} [my|our|local] time. {q} is {n} hours behind. [What time is it for {x}|What time is it there|Time there][?|]
    [A|The] [call|game|stream|meeting] at {t} [in {p}|{p} time] is when in {q}, which is {n} hours behind[?|]
    {p} [to|->] {q}: -{n} hours. {t} in {p} [is|means|=] what in {q}[?|]
    [Flying|Traveling|Going] west [from {p} to {q} |]I set my watch {n} hours back. It [showed|read|was] {t}. [What does it show now|New time|What time is it now][?|]
    Clocks in {p} are {n} hours ahead of [ours in {q}|those in {q}]. If they say {t} there, what [is it|time is it] in {q}[?|]
    [When|If] it is {t} in {p}, and {p} is {n} hours ahead of {q}, what time is it in {q}[?|]
    [In {p} it's|{p} has] {t}, and {q} is {n} hours [behind|back]. [What time is it there|So {q} has|And in {q}][?|]
""")
_ZONE_GAP = Patterns("""
    [It's|It is|When it is|If it is] {t} in {p} and {u} in {q}[. |, ][How many hours [apart are they|ahead is {q}]|What's the time difference in hours|How many hours is {q} ahead|By how many hours is {q} ahead][?|]
    {p} {t}, {q} {u}[. |: |, ][time difference in hours|hours apart|how many hours ahead is {q}][?|]
    [Clocks|The clocks] in {p} show {t} while {q} has {u}. How many hours [is {q} ahead|ahead is {q}][?|]
""")
_CLOCK_OFF = Patterns("""
    [My|The|Our|Grandpa's] [watch|clock|kitchen clock|alarm clock] [runs|is|goes] {m} minutes {w} and [shows|says|reads] {t}. [What time is it really|The right time|What is the correct time|Real time][?|]
    [The clock|My watch|The car clock] [shows|says|reads] {t} but [it is|it's|runs] {m} [minutes|min] {w}. [What's the right time|What time is it|Right time|True time][?|]
    [If|When] a clock that [is|runs] {m} minutes {w} shows {t}, [what time is it|what's the real time|what is the true time][?|]
    {t} on a clock [running|that is] {m} minutes {w} [is really|means|is actually] what time[?|]
    [watch|clock] {m} min {w}, [shows|says] {t}[, |: |; ][real time|correct time|what time is it][?|]
""")
_CLOCK_WRONGLY = Patterns("""
    It's {t}. [What does|What will] a [clock|watch] that is {m} minutes {w} [show|say|read][?|]
    [The real time|The true time|The right time] is {t}; my [watch|clock] is {m} minutes {w}. [What does it show|It shows|What do I read on it][?|]
    [I set|We set|Somebody set] the clock {m} minutes {w} [on purpose |]at {t}. What [does|did] it show then[?|]
""")


@topic(2.2)
def clocks_elsewhere(rng: random.Random) -> Short:
    dial, time, ahead = Dial(rng), some_time(rng), rng.random() < 0.5
    kind = rng.randrange(6)
    if kind < 3:
        hours = rng.randint(1, 12)
        p, q = rng.sample(_CITIES, 2)
        question = (_ZONE_FORWARD if ahead else _ZONE_BACK).expand(
            rng, t=dial.typed(time), p=p, q=q, n=hours, x=some_people(rng, 1)[0]
        )
        if hours == 1:
            question = question.replace("1 hours", "1 hour")
        change = 60 * hours if ahead else -60 * hours
        return said(_tidy(question), "\n".join(dial.steps(time, change)), dial.shown(time + change))
    if kind == 3:
        hours = rng.randint(2, 11)
        require(time + 60 * hours < _DAY)  # a later hour of the same day, so that nobody takes it for behind
        p, q = rng.sample(_CITIES, 2)
        question = _ZONE_GAP.expand(rng, t=dial.typed(time), u=dial.typed(time + 60 * hours), p=p, q=q)
        return said(_tidy(question), "\n".join(_hours(dial, time, 60 * hours)), hours)
    minutes = rng.choice((5, 10, 15, 20, 3, 12, 7, rng.randint(2, 40)))
    slots = {"t": dial.typed(time), "m": minutes}
    if kind == 4:
        change = -minutes if ahead else minutes
        question = _CLOCK_OFF.expand(
            rng, w=rng.choice(("fast", "ahead", "too fast") if ahead else ("slow", "behind", "late")), **slots
        )
    else:
        change = minutes if ahead else -minutes
        question = _CLOCK_WRONGLY.expand(rng, w=rng.choice(("fast", "ahead") if ahead else ("slow", "behind")), **slots)
    return said(_tidy(question), "\n".join(dial.steps(time, change)), dial.shown(time + change))


# The ways to write a time --------------------------------------------------------------------------

_TO_12 = Patterns("""
    [What is|what's|whats|What time is] {a} [in|on|with] [12 hour|12-hour|12h|am/pm|AM/PM|a.m./p.m.|twelve hour] [time|clock|format|notation|][?|]
    [What is|what's] {a} on a [12-hour|12 hour|twelve-hour] clock[?|]
    {a} [to|in|as|->|into] [am/pm|am or pm|12h|12-hour clock|12 hour time|normal time][?|]
    [My|The] [phone|screen|oven|computer|ticket] [shows|says] {a}. [What is that in am/pm|What's that with am or pm|am/pm time][?|]
    [write|Write|say|put|Rewrite|Give] {a} [with|using|in] am or pm[.|]
    [The|My] [train|flight|film] is at {a}. [What's that on a 12-hour clock|In 12-hour time|With am or pm][?|]
    [military|24-hour|24h] time {a} [in|to|as] [am/pm|12-hour time|civilian time|normal time][?|]
    [how|How] [would|do] Americans [write|say] {a}[?| with am or pm?]
""")
_MILITARY = Patterns("""
    {a} [hours|h|hrs] in [normal|12-hour|civilian|am/pm|regular] time[?|]
    [What time is|What is|When is] {a} [hours|hrs][ in am/pm| with am or pm|][?|]
    [The soldiers|They|We] [meet|march|land] at {a} hours. [What time is that in am/pm|With am or pm][?|]
    military [time |]{a} [in|to|as] [normal time|am/pm|12-hour time][?|]
""")
_TO_24 = Patterns("""
    {a} in [24h|24 h|24-hour time|24 hour clock|24-hour format|military time|24 hour time|24-hour clock][?|]
    [What is|what's|whats|Write] {a} [on|in|with] [the|a] [24-hour|24 hour|24h] clock[?|]
    {a} [to|->|as|into] [24h|24-hour|24 hour time|military time][?|]
    [how|How] [do I|would you|do you] write {a} [in|on a|with the] [24-hour format|24-hour clock|24 hour clock][?|]
    what does a [digital|24-hour|railway] clock show at {a} in 24-hour format[?|]
    [The|My] [ticket|flight|alarm] [says|is at] {a}. [What is that in 24-hour time|24-hour time|In the 24-hour format][?|]
""")
_SAME_TIME = Patterns("""
    [Is|is] {a} [the same as|the same time as|equal to|just|also|] {b}[?|]
    [Is|is] {a} on a 24-hour clock {b}[?|]
    [Does|does] {a} mean {b}[?|]
    [True or false:|Is it true that] {a} is {b}[?|]
""")
_SPOKEN = Patterns("""
    [What time is|Write|What is|Put|Give] {w} [in digits|as digits|on a digital clock|in numbers|in figures|with numbers][?|]
    {w} [in digits|as digits|in numbers|on a digital clock|digitally][?|: ]
    [how|How] does a digital clock show {w}[?|]
    [digital|digits for|time in digits:|digital time for] {w}[?|]
    The [teacher|clock tower|radio] says {w}. [What does a digital clock show|Write it in digits|In digits]?
""")


@topic(1.6)
def time_notations(rng: random.Random) -> Short:
    time = rng.choice(
        (
            60 * rng.randint(0, 23),
            15 * rng.randint(0, 95),
            5 * rng.randint(0, 287),
            rng.randrange(_DAY),
            60 * rng.randint(12, 23),
        )
    )
    long, kind = f"{time // 60:02}:{time % 60:02}", rng.randrange(8)
    typed = f"{time // 60}:{time % 60:02}" if time // 60 == 0 and rng.random() < 0.4 else long
    if rng.random() < 0.08:
        joint = f"{time // 60:02}{time % 60:02}"
        return said(_tidy(_MILITARY.expand(rng, a=joint)), f"{joint} = {long} = {clock(time)}", clock(time))
    if kind < 3:
        return said(_tidy(_TO_12.expand(rng, a=typed)), f"{typed} = {clock(time)}", clock(time))
    if kind < 6:
        half = typed_clock(rng, time)
        require(half not in ("noon", "midnight") or rng.random() < 0.3)
        return said(
            _tidy(_TO_24.expand(rng, a=half)), f"{half if half in ('noon', 'midnight') else clock(time)} = {long}", long
        )
    hour, minute = (time // 60 - 1) % 12 + 1, 5 * rng.randint(0, 11)
    spoken = _spoken(rng, hour, minute)
    if kind == 6:
        return said(_tidy(_SPOKEN.expand(rng, w=spoken)), f"{spoken} is {hour}:{minute:02}", f"{hour}:{minute:02}")
    at = time // 60 * 60 + minute
    other = at if rng.random() < 0.5 else rng.choice((at + 60, at - 60, at + 30, at + 12 * 60)) % _DAY
    require(at // 60 > 12)
    is_spoken = rng.random() < 0.4  # then it stands for a morning and an evening
    known = _spoken(rng, (other // 60 - 1) % 12 + 1, other % 60) if is_spoken else typed_clock(rng, other)
    question = _tidy(_SAME_TIME.expand(rng, a=f"{at // 60}:{minute:02}", b=known))
    word = _verdict(question, (at - other) % (720 if is_spoken else _DAY) == 0)
    return said(question, f"{at // 60}:{minute:02} = {clock(at)}\n{word}", word)


def _spoken(rng: random.Random, hour: int, minute: int) -> str:
    write = in_words if rng.random() < 0.6 else str
    following = write(hour % 12 + 1)
    if minute == 0:
        return f"{write(hour)} o'clock"
    if minute in (15, 45):
        return f"{rng.choice(('quarter', 'a quarter'))} {'past ' + write(hour) if minute == 15 else 'to ' + following}"
    if minute == 30:
        return f"half past {write(hour)}"
    return f"{write(minute)} past {write(hour)}" if minute < 30 else f"{write(60 - minute)} to {following}"


# Sums of durations ---------------------------------------------------------------------------------

_MIDDLE = Patterns("""
    [what|What] time is [halfway|exactly halfway|midway|in the middle] between {t} and {u}[?|]
    [what's|What is|Find] the [middle|midpoint|half-way point] [between|of] {t} and {u}[?|]
    between {t} and {u}[,|:] [what's the middle|which time is in the middle|what is halfway][?|]
    [The|A] [match|lesson|film|shift] [runs|goes|is] from {t} to {u}. [When is half time|When is half of it over|The middle is at][?|]
    [We|They] [drive|walk|work] from {t} to {u} and [rest|swap drivers|have lunch] exactly in the middle. [When|At what time][?|]
    halfway from {t} to {u}[?| = ?| is?]
""")
_EARLIER = Patterns("""
    [which|Which|what|What] [is|comes|time is] {w}[, |: ]{t} or {u}[?|]
    {t} or {u}[: |, |? ][which is {w}|what's {w}|which comes {w}][?|]
    [Which|What] [train|bus|alarm|show] [leaves|is|comes] {w}, the one at {t} or the one at {u}[?|]
    [the {w} one|{w}]: {t} or {u}[?|]
    [{x} comes at {t}, {y} at {u}|{x} gets up at {t} and {y} at {u}]. [Who is {w}|Who's {w}][?|]
""")


@topic(1.2)
def between_two_times(rng: random.Random) -> Short:
    dial = Dial(rng)
    if rng.random() < 0.5:
        start, minutes = some_time(rng), rng.choice((60, 120, 180, 240, 360, 30, 90, 40, 20, 2 * rng.randint(5, 120)))
        half = apply("/", minutes, 2)
        question = _MIDDLE.expand(rng, t=dial.typed(start), u=dial.typed(start + minutes))
        lines = [*dial.steps(start, minutes), *_minutes_of(minutes), *half.lines, *dial.steps(start, int(half.value))]
        return said(_tidy(question), "\n".join(lines), dial.shown(start + int(half.value)))
    require(not dial.turns_at_noon)
    first, second = rng.sample(range(5 * 60, 23 * 60, rng.choice((5, 15, 30, 1))), 2)
    if rng.random() < 0.5:
        second = first + rng.choice((-1, 1)) * rng.randint(1, 40)
    x, y = some_people(rng, 2)
    early = rng.random() < 0.6
    word = "earlier" if early else "later"
    question = _EARLIER.expand(rng, t=dial.typed(first), u=dial.typed(second), w=word, x=x, y=y)
    best = min(first, second) if early else max(first, second)
    order = f"{dial.shown(min(first, second))} is before {dial.shown(max(first, second))}"
    if "Who" in question:
        winner = str(x if best == first else y)
        winner = winner[0].upper() + winner[1:]
        return said(_tidy(question), f"{order}\n{winner} is {word}.", winner)
    return said(_tidy(question), f"{order}\nIt is {dial.shown(best)}", dial.shown(best))


_PAID = Patterns("""
    [I'm paid|I get|I earn] ${a} an hour and [work|am there|have to stay] from {t} to {u}. [How much do I earn|How much is that|Pay for the day|What's the pay][?|]
    [Babysitting|Mowing|Tutoring|The babysitter] from {t} to {u} at ${a} [an|per] hour[: |. |, ][how much|what does it cost|total pay|what's due][?|]
    [hourly wage|wage] ${a}, [worked|shift] {t} to {u}[. |, |: ][pay|earned|how much][?|]
    [The|A] [room|boat|hall|court|bike] costs ${a} [an|per] hour. [We have it|I rent it|It is rented] from {t} to {u}. [How much|What do we pay|The price][?|]
    [Parking|The parking lot|A locker] costs ${a} per hour. [In at {t}, out at {u}|From {t} to {u}]. [How much is it|The fee|What do I pay][?|]
    [How much|What] [does|will] {x} [earn|get|make] from {t} to {u} at ${a} an hour[?|]
    [If|When] {x} [gets|earns] ${a} an hour and works from {t} until {u}, [how much is that|what does {x} earn][?|]
""")
_DRIVEN = Patterns("""
    [I|We] [set off|left|started] at {t}, arrived at {u} and [drove|rode|covered] {d} km. [What was the speed|Speed|How many km per hour|Average speed][?|]
    [A|The] [train|bus|truck] leaves at {t} and [arrives|is there] at {u}, {d} km away. [How fast is it|Its speed in km/h|Average speed][?|]
    {d} km from {t} to {u}[: |, |. ][how many km/h|speed in km/h|km per hour][?|]
    [How fast|At what speed] [do I drive|did I go] {d} km between {t} and {u}[?|]
""")
_DRIVEN_FAR = Patterns("""
    [A|The] [car|train|ship] [goes|travels|does] {v} km/h from {t} to {u}. [How far does it get|How many km is that|Distance][?|]
    [How far|How many km] [do I get|is it] from {t} to {u} at {v} km/h[?|]
    [We|They] [drive|ride|sail] from {t} to {u} at {v} km per hour. [How many km|Distance|How far do they get][?|]
""")
_WEEK_HOURS = Patterns("""
    [I work|{x} works|The office is open|The shop is open] {w} from {t} to {u}. [How many hours a week|Weekly hours|Hours per week|How many hours is that in a week][?|]
    {w} {t} [-|to] {u}[. |, |: ][how many hours|hours in total|weekly hours|total hours][?|]
    [working week|working hours|opening hours]: {w}, {t} to {u}[. |; ][How many hours|Total hours|Hours per week][?|]
    [How many hours|Hours] a week is {t} to {u}, {w}[?|]
""")
_DAY_SETS = (
    ("Monday to Friday", 5),
    ("Mon-Fri", 5),
    ("Monday to Saturday", 6),
    ("Mon-Sat", 6),
    ("Monday to Thursday", 4),
    ("every day", 7),
    ("on Saturday and Sunday", 2),
    ("three days a week", 3),
    ("on 4 days", 4),
    ("five days a week", 5),
    ("Tuesday to Friday", 4),
    ("6 days a week", 6),
)
_SLOTS = Patterns("""
    [how many|How many] {m}-minute [slots|lessons|appointments|calls|sessions|shifts] [are there|fit|can be held] between {t} and {u}[?|]
    [The|A] [doctor|barber|teacher|dentist] [works|is there] from {t} to {u} and [takes|needs] {m} minutes [per person|for each|per patient]. [How many can come|How many people|How many appointments][?|]
    from {t} to {u} in [steps|blocks|slots] of {m} minutes: how many[?|]
    {t} to {u}, one [every|per] {m} minutes. How many [fit|slots|blocks][?|]
""")


@topic(2)
def hours_used(rng: random.Random) -> Short:
    """A span between two times, and what it is worth."""
    dial, start, hours = Dial(rng, casual=True), 30 * rng.randint(13, 36), rng.randint(2, 10)
    slots = {"t": dial.typed(start), "u": dial.typed(start + 60 * hours), "x": some_people(rng, 1)[0]}
    span_line, kind = dial.steps(start, 60 * hours), rng.randrange(6)
    if kind < 2:
        a = rng.randint(2, 40)
        question, worked = _PAID.expand(rng, a=a, **slots), apply("*", hours, a)
    elif kind == 2:
        v = rng.choice((rng.randint(3, 20), 10 * rng.randint(3, 12), 5 * rng.randint(4, 30)))
        if rng.random() < 0.6:
            question, worked = _DRIVEN.expand(rng, d=v * hours, **slots), apply("/", v * hours, hours)
        else:
            question, worked = _DRIVEN_FAR.expand(rng, v=v, **slots), apply("*", hours, v)
    elif kind < 5:
        words, days = rng.choice(_DAY_SETS)
        question, worked = _WEEK_HOURS.expand(rng, w=words, **slots), apply("*", hours, days)
    else:
        m = rng.choice((10, 12, 15, 20, 30, 40))
        require(60 * hours % m == 0 and hours < 7)
        total, end = apply("*", hours, 60), apply("/", 60 * hours, m)
        question, worked = _SLOTS.expand(rng, m=m, **slots), type(end)(total.lines + end.lines, end.value)
    return said(_tidy(question), "\n".join((*span_line, *worked.lines)), worked.value)


_UNTIL_TWELVE = Patterns("""
    [How many hours|How long|How many hours is it] [until|till|to] {e} [if|when] it['s| is] {t}[?|]
    it's {t}. [How many hours|How long] [until|till|to] {e}[?|]
    {t} now, [how many hours to {e}|{e} in how many hours|hours to {e}][?|]
    [hours|Hours] from {t} to {e}[?|]
    [The|A] [party|show|flight|sale] ends at {e} and it's {t}. How many hours [are left|to go][?|]
""")
_SINCE_TWELVE = Patterns("""
    it's {e}. [In how many hours is it|How many hours until|How long until] {t}[?|]
    [How many hours|How long] [from|after] {e} [to|is|until] {t}[?|]
    [from|From] {e} to {t}[: how many hours?|, how many hours?| is how many hours?]
    how many hours after {e} is {t}[?|]
""")
_AFTER_TWELVE = Patterns("""
    [What time is it|What's the time|What does the clock show] {n} minutes after {e}[?|]
    {n} minutes [after|past] {e}[?| is what time?| = ?]
    {n} minutes [have passed|have gone by] since {e}. [What time is it|The time now][?|]
    [A|The] counter of minutes [starts|began] at {e} and shows {n}. What time is it[?|]
""")


@topic(1)
def noon_and_midnight(rng: random.Random) -> Short:
    at = rng.choice((0, 720))
    name, kind = rng.choice(("midnight", "12 at night") if at == 0 else ("noon", "midday")), rng.randrange(3)
    if kind == 2:
        n = rng.choice((50 * rng.randint(2, 20), rng.randint(61, 700), 100 * rng.randint(1, 10)))
        hours, rest = divmod(n, 60)
        lines = list((remainder(n, 60) if rest else apply("/", n, 60)).lines) if n >= 60 else []
        now = at
        for part in (60 * hours, rest):
            if part:
                lines.append(f"{clock(now)} + {span(part)} = {clock(now + part)}")
                now += part
        return said(_tidy(_AFTER_TWELVE.expand(rng, n=n, e=name)), "\n".join(lines), clock(at + n))
    hours = rng.randint(1, 11)
    start = at - 60 * hours if kind == 0 else at
    other = start if kind == 0 else start + 60 * hours
    question = (_UNTIL_TWELVE if kind == 0 else _SINCE_TWELVE).expand(rng, t=typed_clock(rng, other), e=name)
    return said(
        _tidy(question), f"{clock(start)} + {span(60 * hours)} = {clock(start + 60 * hours)}\n{span(60 * hours)}", hours
    )


_CLOCKS_CHANGE = Patterns("""
    [In spring|Tonight|For summer time|In March] the clocks go forward [by |]one hour. It's {t} at that moment. [What time is it then|New time|What does it show after the change][?|]
    [The|My] [oven|car|church] clock was not put [forward|ahead] [one|an] hour for summer time and shows {t}. [What time is it really|Real time|The right time][?|]
    clocks [forward|ahead] an hour, [it was|old time] {t}[, |. ][new time|now][?|]
""")
_CLOCKS_BACK = Patterns("""
    [In autumn|Tonight|For winter time|In October] the clocks go back [by |]one hour. It's {t} at that moment. [What time is it then|New time|What does it show after the change][?|]
    [The|My] [oven|car|church] clock was not put back [one|an] hour for winter time and shows {t}. [What time is it really|Real time|The right time][?|]
    clocks back an hour, [it was|old time] {t}[, |. ][new time|now][?|]
""")


@topic(0.5)
def clocks_changed(rng: random.Random) -> Short:
    dial, time, forward = Dial(rng), some_time(rng), rng.random() < 0.5
    question = (_CLOCKS_CHANGE if forward else _CLOCKS_BACK).expand(rng, t=dial.typed(time))
    change = 60 if forward else -60
    return said(_tidy(question), "\n".join(dial.steps(time, change)), dial.shown(time + change))


_SUM = Patterns("""
    {d} [+|plus|and] {e}[?|=| = ?| is how long?| makes?|]
    [add|Add|Sum|sum up|Add up] {d} [and|to|plus] {e}[.|]
    [What is|What's|How long is|How much is] {d} [plus|and|added to|+] {e}[?|]
    {x} [worked|ran|slept|practiced|drove|read] {d} on {day} and {e} on {day2}. [How long in total|How long is that together|Total time|How long in all][?|]
    [The|My] [first|morning] [flight|film|walk|ride|lesson] takes {d}, the [second|next] one {e}. [How long are both|How long together|Total|How long in all][?|]
    [one|The first] [part|half|talk|leg] is {d} [long |]and the [other|second] [is |]{e}. [Total length|How long is the whole|How long altogether][?|]
    {x} needs {d} for the [report|garden|roof|wash] and {e} for the [bill|fence|car|dishes]. [How much time is needed|How long is {x} busy|Time needed in all][?|]
    [If|When] I [drive|walk|study|cook] {d} and then {e}, how long [is that|is it in total|altogether][?|]
    [total|Total|Sum|Altogether][: | of ]{d} [and|+] {e}[?|]
    [The|A] trip of {d} gets {e} longer. How long [is it now|does it take now][?|]
""")
_DIFFERENCE = Patterns("""
    [train|Train|route|Route|Film] 1 takes {d}, [train|route|film] 2 [takes |]{e}. [How much shorter is the second|How much faster is number 2|Time saved with number 2][?|]
    [slow|The slow] train {d}, [fast|the fast] one {e}[: |. |, ][time saved|how much faster|how much sooner are we there][?|]
    [yesterday|Last time] it took {d}, [today|this time] {e}. [How much faster|How much quicker was it|By how long was it quicker][?|]
    [The|A] [limit|maximum|rental|free time] is {d}; [{x} has used|used so far:|we have had] {e}. [What's left|How long is left|Time left][?|]
    {d} [-|minus|less] {e}[?|=| = ?| is how long?|]
    [subtract|Subtract|take|Take away|Take] {e} from {d}[.|]
    [What is|What's|How long is|How much is] {d} [minus|less|without] {e}[?|]
    [A|The|My] [film|course|flight|battery|trip|drive] [lasts|takes|is] {d}. [{e} are over|{e} have passed|I have watched {e}|I've done {e}|After {e}|{e} in]. How [long|much time] [is left|remains|to go|is it still][?|]
    [How much longer|By how much longer] is {d} than {e}[?|]
    [I have|You have|We have|There is] {d} and [use|used up|spent|need] {e}. [What is left|How much time is left|Time left|How long is left][?|]
    {x} [took|needed|ran for] {d}, {y} [only |]{e}. [How much faster was {y}|What is the difference|How much longer did {x} need][?|]
    [difference|Difference|The difference] between {d} and {e}[?|]
    [The|My] new [train|route|road|way] takes {e} instead of {d}. How much time [is saved|do I save|does it save][?|]
    [out of|Of] {d}, {e} [are gone|have gone|are used]. [Left|What's left|Remaining][?|]
    {d}, but {e} less[: |, |. ][how long|how long is that|so how long][?|]
    [The|A] [lesson|meeting|show] of {d} was [cut by|shortened by|made shorter by] {e}. [How long was it|New length|How long did it last][?|]
    [two|Two] [talks|songs|films|rides] take {d} together, [one of them|the first] {e}. [And the other|How long is the other|The second][?|]
    {x} must [practice|walk|work|sit still] for {d} and has [done|managed] {e}. [How much longer|How long still|Still to do][?|]
""")
_TIMES = Patterns("""
    {n} [times|x|*] {d}[?|=| is how long?| = ?|]
    [{n} [films|lessons|trips|rides|calls|shifts|walks]] of {d} each[: |. |, ][how long in all|total time|how long is that|altogether][?|]
    [A|One|Each|Every] [lesson|lap|ride|shift|episode|song|treatment] [takes|lasts|is] {d}. [How long are {n}|How long do {n} take|How long is it for {n}|{n} of them][?|]
    {x} [practices|walks|reads|drives|exercises] {d} [a|every|each|per] day. [How long is that in {n} days|How long in {n} days|Total after {n} days][?|]
    [How long|What total time] [is|are|] {n} times {d}[?|]
    [If|When] one [way|round|match|load] takes {d}, how long do {n} take[?|]
""")
_TWICE = Patterns("""
    {x} [worked|read|slept|ran] {d} [in the morning|on Monday|first] and twice [as long|that|that long] [in the afternoon|on Tuesday|after that]. [How long was the second time|How long the second time|The second time][?|]
    [twice|Twice|double|Double|two times|2 x] {d}[?| = ?| is how long?]
    [The|A] [film|walk|drive|talk] takes {d}, [the other|the way back|the next] twice as long. [How long is that|How long is the second|And the second][?|]
    [What is|How long is|What's] [twice|double] {d}[?|]
    [There|One way] {d}. [There and back|Both ways|Return trip][?| how long?]
    [I|We] need {d} one way. How long [there and back|for both ways|is the return trip in all][?|]
""")
_SHARE = Patterns("""
    {d} [/|divided by|÷] {n}[?|=| is how long?|]
    [split|Split|Divide|Share] {d} [into {n} equal parts|among {n} people evenly|in {n}]: [how long is each|each|one part][?|]
    {n} [people|speakers|guards|drivers] share {d} equally. [How long does each get|Time for each|How long is each on][?|]
    {n} [laps|lessons|songs|rounds|games] [of the same length |that are equally long |]take {d}[ together|]. How long is [one|each][?|]
    [Half of|half of|half] {h}[?|: how long?| is how long?]
""")


def _minutes_of(minutes: int) -> list[str]:
    hours, rest = divmod(minutes, 60)
    if not hours:
        return []
    return [f"{hours} * 60 = {hours * 60}", *([f"{hours * 60} + {rest} = {minutes}"] if rest else [])]


def _as_span(minutes: int) -> list[str]:
    """`135 minutes = 2 hours 15 minutes`, with the division where it is not seen at once."""
    if minutes < 60:
        return [span(minutes)]
    if minutes % 60 == 0:
        return [*apply("/", minutes, 60).lines, span(minutes)]
    return [*(remainder(minutes, 60).lines if minutes >= 120 else ()), f"{minutes} minutes = {span(minutes)}"]


@topic(3)
def spans_reckoned(rng: random.Random) -> Short:
    """Hours and minutes are reckoned in minutes."""
    days = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
    day, (x, y) = rng.randrange(6), some_people(rng, 2)
    slots = {"x": x, "y": y, "day": days[day], "day2": days[day + 1]}
    a, b = (
        rng.choice((5 * rng.randint(2, 40), 15 * rng.randint(2, 16), 60 * rng.randint(1, 5), rng.randint(30, 200)))
        for _ in range(2)
    )
    kind = rng.randrange(8)
    if kind < 3:
        require(max(a, b) > 59)
        lines, worked = [*_minutes_of(a), *_minutes_of(b)], apply("+", a, b)
        question = _SUM.expand(rng, d=_typed(rng, a), e=_typed(rng, b), **slots)
    elif kind < 6:
        a, b = max(a, b), min(a, b)
        require(a > 59 and a - b > 1)
        lines, worked = [*_minutes_of(a), *_minutes_of(b)], apply("-", a, b)
        question = _DIFFERENCE.expand(rng, d=_typed(rng, a), e=_typed(rng, b), **slots)
    elif kind == 6 and rng.random() < 0.4:
        require(a > 59)
        lines, worked = _minutes_of(a), apply("*", a, 2)
        question = _TWICE.expand(rng, d=_typed(rng, a), **slots)
    elif kind == 6:
        n, a = rng.randint(2, 7), min(a, 150)
        require(a * n > 60 and a > 14)
        lines, worked = _minutes_of(a), apply("*", n, a)
        question = _TIMES.expand(rng, d=_typed(rng, a), n=n, **slots)
    else:
        n = rng.randint(2, 6)
        a = n * rng.choice((5 * rng.randint(2, 24), rng.randint(10, 60)))
        require(a > 59)
        text = _SHARE.expand(rng, d=_typed(rng, a), h="{h}", n=n)
        if "{h}" in text:
            n, a = 2, a + a % 2
            text = text.replace("{h}", _typed(rng, a))
        lines, worked, question = _minutes_of(a), apply("/", a, n), text
    total = int(worked.value)
    if kind < 6 and a % 60 == b % 60 == 0:
        worked = apply("+" if kind < 3 else "-", a // 60, b // 60)
        return said(_tidy(question), "\n".join((*worked.lines, span(total))), span(total))
    return said(_tidy(question), "\n".join((*lines, *worked.lines, *_as_span(total))), span(total))


def _typed(rng: random.Random, minutes: int) -> str:
    """With hours if there are any: minutes alone would be reckoned without a conversion."""
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{minutes} {rng.choice(('minutes', 'min', 'minutes'))}"
    text = f"{hours} {'hour' if hours == 1 else 'hours'}"
    if not rest:
        return text
    return rng.choice(
        (
            f"{text} {rest} minutes",
            f"{text} and {rest} minutes",
            f"{hours}h {rest}m",
            f"{hours} h {rest} min",
            f"{hours}h{rest:02}",
            f"{hours}h {rest}min",
        )
    )


# Large units and the rest -----------------------------------------------------------------------------

_GROUPED = (
    ("minutes", 60, "hours", 600),
    ("seconds", 60, "minutes", 600),
    ("days", 7, "weeks", 200),
    ("months", 12, "years", 200),
    ("hours", 24, "days", 200),
    ("inches", 12, "feet", 150),
    ("cm", 100, "m", 2000),
    ("g", 1000, "kg", 9000),
    ("m", 1000, "km", 9000),
    ("ounces", 16, "pounds", 200),
    ("minutes", 60, "hours", 300),
    ("days", 7, "weeks", 100),
    ("cents", 100, "dollars", 2000),
)
_TO_GROUPS = Patterns("""
    {a} {u} [in|to|into|as|->|=] {v} and {u}[?|]
    [What is|what's|How much is|How long is|Express|Convert|Write|Give] {a} {u} [in|as] {v} and {u}[?|]
    {a} {u} [=|is|are|make|makes] how many {v} and {u}[?|]
    [How many {v} and [how many |]{u}|How many {v} and {u}] [are|is|make up|do you get from|are in] {a} {u}[?|]
    [turn|Turn|Change|change|Break] {a} {u} into {v} and {u}[.|]
    [It|Something|The whole thing] [takes|is|measures|comes to] {a} {u}. [In {v} and {u}|How much is that in {v} and {u}|What's that in {v} and {u}][?|]
    {a} {u}: how many {v}, and how many {u} [are left over|are left|extra|over][?|]
    [I counted|We have|There were] {a} {u}. [How many {v} and {u} is that|In {v} and {u}|That's how many {v} and {u}][?|]
    [express|state] in {v} and {u}: {a} {u}[.|]
    {u} to {v} and {u}: {a}[?|]
""")
_FILMS = Patterns("""
    [A|The|My] [film|flight|game|podcast|drive|exam] [lasts|takes|is|runs for] {a} minutes. [How long is that in hours and minutes|In hours and minutes|How many hours and minutes][?|]
    [The|A] [movie|flight|test] [length|time] is given as {a} min. [Hours and minutes|How many hours and minutes is that|That is how long in hours and minutes][?|]
""")


@topic(1.5)
def larger_units_and_rest(rng: random.Random) -> Short:
    small, factor, large, limit = rng.choice(_GROUPED)
    a = rng.randint(factor + 1, limit)
    if small == "m" or small == "g":
        a = 10 * rng.randint(factor // 10 + 1, limit // 10)
    count, rest = divmod(a, factor)
    require(rest > 0)
    if large == "hours" and rng.random() < 0.3:
        question = _FILMS.expand(rng, a=a)
    else:
        question = _TO_GROUPS.expand(rng, a=a, u=small, v=large)
    answer = f"{count} {_one(large, count)} {rest} {_one(small, rest)}"
    return said(_tidy(question), "\n".join((*remainder(a, factor).lines, f"{a} {small} = {answer}")), answer)


def _one(unit: str, count: int) -> str:
    if count != 1 or unit in ("cm", "m", "g", "kg", "km"):
        return unit
    return {"feet": "foot", "inches": "inch"}.get(unit, unit.removesuffix("s"))


# Longer plans ------------------------------------------------------------------------------------

_LESSONS = Patterns("""
    [School|The course|Class] [starts|begins] at {t}. [Each|Every] [lesson|period] [lasts|takes|is] {a} minutes, with {b} minutes [of break |]between [them|lessons]. When does the {k} [lesson|period] end[?|]
    {n} [lessons|sets|talks] of {a} minutes with {b} minutes between them start at {t}. [When are they over|End|When is the end][?|]
    [first|The first] [lesson|talk] at {t}, {a} min each, {b} min [break|pause] between. [When is the {k} over|The {k} ends at|End of the {k}][?|]
""")
_PAUSED = Patterns("""
    [I started|We started|{x} started] a {h} [film|game|book|run] at {t} and [paused|stopped] {n} times for {b} minutes each. [When was it over|It ended at|End time][?|]
    [The|A] {h} [drive|flight|ride] [starts|begins] at {t} with {n} stops of {b} minutes on top. [Arrival|When do we arrive|When is it over][?|]
""")
_QUEUE = Patterns("""
    [There are|I see] {n} people [ahead of me|before me], {b} minutes each. It's {t}. [When is it my turn|My turn at|When am I next][?|]
    {n} [patients|customers|cars] at {b} minutes each, starting at {t}. [When are all done|When is it over|Done at][?|]
    [It's|It is] {t}. {x} has {n} [letters|pages|shirts|calls] to do, {b} minutes for each. [When is {x} done|Finished at|Done at what time][?|]
    {n} [cakes|loads|batches] one after the other, {b} minutes each, from {t}. [When is the last one ready|Ready at|All done at][?|]
""")
_BY_SPEED = Patterns("""
    [I leave|We leave|{x} leaves|The train leaves|A truck starts] at {t} and [goes|drives|travels] {d} km at {v} km/h. [When is the arrival|Arrival|Arrives at what time][?|]
    {d} km at {v} km/h, [leaving|starting|departure] at {t}. [When is the arrival|Arrival time|There at][?|]
    it's {t} and there are {d} km to go at {v} km/h. [When is the arrival|There at|What time will it be at the end][?|]
""")
_OVER_ZONES = Patterns("""
    [A|The|My] flight leaves {p} at {t} and takes {h} hours. {q} is {z} hours {w}. [What is the local time on arrival|Local arrival time|What time is it in {q} on landing][?|]
    [Take-off|Departure] in {p} at {t}, flight time {h} hours, {q} is {z} hours {w}. [Local time of landing|Landing at (local time)|When does it land, in local time][?|]
    [I fly|We fly|{x} flies] from {p} at {t} for {h} hours to {q}, which is {z} hours {w} [of {p}|]. [Local time there on arrival|What do clocks show there then][?|]
""")


@topic(2)
def longer_plans(rng: random.Random) -> Short:
    dial, start, kind = Dial(rng), some_time(rng), rng.randrange(5)
    x, n = some_people(rng, 1)[0], rng.randint(2, 6)
    t = dial.typed(start)
    if kind == 0:
        a, b = rng.choice((30, 40, 45, 50, 60, 20)), rng.choice((5, 10, 15, 20))
        n = rng.randint(2, 4)
        lessons, breaks = apply("*", n, a), apply("*", n - 1, b)
        total = apply("+", lessons.value, breaks.value)
        k = rng.choice((ordinal(n), ("second", "third", "fourth")[n - 2]))
        question = _LESSONS.expand(rng, t=t, a=a, b=b, n=n, k=k)
        minutes = int(total.value)
        work = [*lessons.lines, *(breaks.lines if n > 2 else ()), *total.lines]
    elif kind == 1:
        a, b = rng.choice((90, 120, 60, 180, 100, 150, 75)), rng.choice((5, 10, 15, 20))
        pauses = apply("*", n, b)
        total = apply("+", a, pauses.value)
        question = _PAUSED.expand(rng, t=t, h=f"{a}-minute", n=n, b=b, x=x)
        minutes, work = int(total.value), [*pauses.lines, *total.lines]
    elif kind == 2:
        n, b = rng.randint(2, 12), rng.choice((2, 3, 4, 5, 6, 8, 10, 12, 15, 20))
        total = apply("*", n, b)
        question = _QUEUE.expand(rng, t=t, n=n, b=b, x=x)
        minutes, work = int(total.value), [*total.lines]
    elif kind == 3:
        hours, v = rng.choice((1, 2, 3, 4, 5, Fraction(3, 2), Fraction(1, 2), Fraction(5, 2))), rng.choice(
            (20, 30, 40, 50, 60, 80, 90, 100, 120)
        )
        drive = apply("/", int(v * hours), v)
        question = _BY_SPEED.expand(rng, t=t, d=int(v * hours), v=v, x=x)
        minutes, work = int(60 * hours), [f"{drive.lines[-1]} hours"]
        return said(
            _tidy(question),
            "\n".join((*drive.lines[:-1], *work, *dial.steps(start, minutes))),
            dial.shown(start + minutes),
        )
    else:
        hours, zone, ahead = rng.randint(2, 11), rng.randint(2, 9), rng.random() < 0.5
        p, q = rng.sample(_CITIES, 2)
        question = _OVER_ZONES.expand(
            rng, t=t, h=hours, z=zone, p=p, q=q, x=x, w="ahead" if ahead else "behind"
        ).replace(" .", ".")
        change = 60 * zone if ahead else -60 * zone
        landed = start + 60 * hours
        lines = [*dial.steps(start, 60 * hours), *dial.steps(landed, change)]
        return said(_tidy(question), "\n".join(lines), dial.shown(landed + change))
    work[-1] += " minutes"
    if minutes >= 120:
        work += remainder(minutes, 60).lines if minutes % 60 else apply("/", minutes, 60).lines
    return said(_tidy(question), "\n".join((*work, *dial.steps(start, minutes))), dial.shown(start + minutes))

"""Wordings of everyday situations: shopping, travel, school, sports, homes, with distractors and the question in any place."""

DAILY = """
# a * b + c * d | a=2-6 b=2-12 c=2-6 d=1-9
how much [does|will|must] {x} [pay|spend] for {a} {t} at {b} dollars each and {c} {u} at {d} dollars each[?|]
the bill for {a} [#coffees|meals|tickets] at {b} and {c} [#teas|desserts|drinks] at {d}[?| is how much?| comes to?]
[admission|entry|a ticket|the fare] is ${b} for [#adults|grown-ups] and ${d} for [children|kids]. {a} [#adults|grown-ups] and {c} [children|kids] [go|come|enter]. [Total|What's the total|What do they pay|How much in all][?|]
{a} [#tables|cars|boats|tents] for {b} and {c} for {d}[.|:|,|;] how many [#people|seats|places|places] [in all|altogether|is that][?|]
{x} scored {a} [baskets|goals|shots] worth {b} points and {c} worth {d}. How many points[?| in all?| is that?]
[a|the] [shop|bakery|kiosk|farm] sold {a} {t} for ${b} and {c} {u} for ${d}. [How much did it take in|Income|Revenue|How much money came in][?|]
there are {a} {boxes} with {b} {t} and {c} {boxes} with {d} {t}. How many {t} [altogether|in all|in total|are there][?|]
# a * b + c | a=2-9 b=2-12 c=1-20
how much [does|will] {x} [pay|owe|spend] for {a} {t} at {b} dollars each and [a|one] {u} for {c} dollars[?|]
[what|how much] is the [bill|total|cost] for {a} {t} at ${b} [each|apiece] [plus|and] {c} dollars [for shipping|delivery|for the bag|tip|for parking][?|]
a {c} dollar [drink|hat|bag|beer|salad] and {a} [burgers|pizzas|shirts|pens|tacos] at {b} [dollars |]each[:|,|.] [total|how much in all|what's the bill|what do I pay][?|]
a [box|crate|bag|suitcase] weighs {c} [#kg|kilos|pounds] [empty|when empty|by itself]. With {a} [books|bottles|bricks|jars] of {b} [#kg|kilos|pounds] each, [how heavy is it|what does it weigh|what's the total weight][?|]
[a|the] [gym|club|phone plan|streaming service] [costs|charges|takes] ${b} a month and a [one-time|joining|setup|sign-up] fee of ${c}. [What|How much] do you pay [for|in the first|over] {a} months[?|]
[a|the] [plumber|driver|painter|tutor] [charges|takes|asks] ${c} [to come|for the trip|as a base fee] and ${b} [per|an|for each] hour. [How much is|What do I pay for|Cost of] {a} hours[?|]
[renting|hiring] a [bike|boat|car|tent] is {c} dollars plus {b} dollars [per|a|for every] [#hour|day]. {a} [#hours|days] [cost|are|come to] [what|how much][?|]
a {a} km ride at ${b} per km [plus|with] a [base|starting|fixed] fee of ${c}[?|, how much?|. Price?]
{a} [full|] {boxes} of {b} {t} and {c} [loose|single|odd|spare] {t}, how many {t} is that[?|]
there were {c} {t} {place}, and then {a} {kids} brought {b} more each. How many [are there now|now|are there][?|]
{x} [knows|wrote|had done|had learned] {c} [words|pages|songs|tricks] and [learns|adds|does] {b} more [a|each|every] day for {a} days. How many then[?|]
# d = a * b; c - d | a=2-9 b=2-12 e=0-40 c==a*b+e
how much [change|money] does {x} get [back |]from ${c} after buying {a} {t} at ${b} each[?|]
{x} pays with [a |]${c} [bill |note |]for {a} {t} at ${b} each. [How much change|What's the change|What does {he} get back][?|]
I have {c} [dollars|euros|pounds] and buy {a} {t} for {b} each. [What do I have left|How much is left|What's left|What remains][?|]
{x} has a {c} [page|minute|km|meter] [book|film|trip|rope] and [does|uses|covers] {b} [a|each|per] day for {a} days. [What's left|How much is left|What remains][?|]
we have {c} [chairs|cups|plates|seats] and {a} tables with {b} [guests|people|kids] each. How many [chairs|cups|plates|seats|are] [stay free|are not needed|are left over|left][?|]
[a|the] [bottle|jug|can|tank] of {c} ml fills {a} [glasses|cups|bowls] of {b} ml. [How many ml are left|What's left in it|How much remains][?|]
{a} {kids} took {b} {t} each from a {box} [of|with] {c}. [What's left|How many are still in it|How many stay in it|Left][?|]
# d = a * b; d - c | a=2-9 b=3-12 c=1-5
[a|each] [pizza|cake|pie] is cut [into|in] {b} [#slices|pieces]. [We|They|The kids] [order|buy|get|have] {a} and eat {c} [#slices|pieces]. How many [slices |pieces |][are left|remain|are left over][?|]
{a} [pizzas|cakes|pies] with {b} [slices|pieces] [each|], {c} eaten[,|:|;|.] [how many left|what's left|how many slices remain][?|]
{x} [borrows|takes|checks out] {b} [books|films|games] on each of {a} [visits|trips|days] and [returns|brings back] {c}. How many does {he} still have[?|]
there are {a} [houses|garages|homes] with {b} [#cars|bikes|trees] each. {c} [#cars|bikes|trees] are [sold|gone|stolen|cut down|removed]. How many are left[?|]
{x} buys {a} {boxes} of {b} {t}. {c} of the {t} are [rotten|broken|stale|too small|for {y}]. How many [are good|are left|can {he} use|remain][?|]
in a [hall|theater|bus|room] with {a} rows of {b} [#seats|chairs], {c} [#seats|chairs] are [empty|free|broken|reserved][.|;|,] how many are [taken|used|not|left][?|]
# d = a - b; d * c | b=20-80 e=5-60 a==b+e c=2-12
{x} [earns|makes|gets] {a} a week, [spends|uses] {b} and [saves|keeps] the rest. How much [does {he} save|is saved|is that] in {c} weeks[?|]
[I|we] [earn|make|get] ${a} a [#month|week|day] and [spend|need|use] ${b}. [What|How much] [do we|do I|can I] save in {c} [#months|weeks|days][?|]
{a} dollars come in and {b} go out [each|every|a|per] {unit}. [What's left|How much is left|How much is saved] after {c} {units}[?|]
a [machine|factory|bakery] makes {a} {t} [#an hour|a day], {b} are [bad|faulty|sold]. How many [good ones|are left] in {c} [#hours|days][?|]
# d = a + b; d * c | a=2-30 b=2-30 c=2-9
{x} [walks|drives|rides|bikes] {a} [km|miles|blocks] to [work|school|the station] and {b} back [each|every|a|per] day. How far in {c} days[?|]
[breakfast|lunch|a bus ticket] costs me ${a} and [dinner|coffee|a paper] ${b} [a|each|every|per] day. How much [for|in|is that for] {c} days[?|]
{a} [boys|men|red ones] and {b} [girls|women|blue ones] [in|on] each of {c} [teams|groups|classes|boxes][.|:|,|;] how many [in all|altogether|is that][?|]
each of {c} {kids} [gets|packs|brings] {a} {t} and {b} {u}, how many things [is that|in all|altogether][?|]
# d = a * 2; d * b | a=1-30 b=2-10
it is {a} [km|miles|blocks] to [work|school|the gym|{y}'s house] and {x} goes there and back [every|each] day. How far [does {he} go|is that] in {b} days[?|]
{x} [walks|drives|bikes|rides] {a} km to school and {a} km [back|home] [every|each] day. How far in {b} days[?|]
a round trip on [{b} days|each of {b} days], {a} km each way, [makes|is] how many km[?|]
# d = a + b; c - d | a=1-60 b=1-60 e=1-80 c==a+b+e
[a|the] [bakery|shop|stand|kitchen] made {c} [rolls|muffins|pies|{t}], sold {a} in the morning and {b} in the afternoon[.|;|,] [what's left|how many are left|how many remain|how many were not sold][?|]
[a|the] {c} page [book|report|novel]: {a} pages [read |]yesterday, {b} today[.|;|,|:] [how many are left|what's left|pages left|how many to go][?|]
{x} is [reading|copying] {c} pages. [{He} did|{He} read|{He} finished] {a} [yesterday|on {day}|first] and {b} [today|on {day2}|after that]. How many [pages |][are left|are still to do|does {he} have to go][?|]
of {c} [km|miles], {x} [drove|rode|walked] {a} before lunch and {b} after. How [many are left|far is it still|far to go][?|]
{x} [wants to save|needs|saves for] ${c} and [has saved|saved] ${a} in [May|March|June] and ${b} in [July|April|August]. How much is [missing|still needed|left to save][?|]
{x}, {y} and {z} have {c} {t} [together|in all]. {x} has {a}, {y} {b}. How many [does {z} have|are {z}'s|has {z}][?|]
# d = a + b; e = d + c; e - f | a=5-40 b=5-40 c=5-40 f=1-30
{x} saved {a} dollars in [January|May|June], {b} in [February|July] and {c} in [March|August|April]. {He} [bought a {one} for|spent|gave away] {f}. How much is left[?|]
{x} [caught|picked|made|baked] {a} {t} on {day}, {b} on {day2}, {c} on {day3} and [sold|ate|lost] {f}. How many [are left|does {he} have|remain][?|]
# d = a * b; d + a | a=3-40 b=2-6
{y} has {b} times as many {t} as {x}. {x} has {a}. How many have [they|the two|both] [together|in all|got together|altogether][?|]
{x} [has|owns|found] {a} {t} and {y} {b} times as many[.|;|,|:] [how many have they together|how many together|altogether][?|]
a [shop|farm|team] sold {a} {t} in [May|March|spring] and {b} times as many in [June|April|summer]. How many in [both|both together|all][?|]
if {x} [reads|runs|bakes] {a} and {y} {b} times as much, what do they [read|run|bake|do] together[?|]
# d = a * b; d - a | a=2-30 b=2-6
{x} has {a} {t}, {y} has {b} times as many. How many more does {y} have [than {x}|][?|]
{y} has {b} times {x}'s {a} {t}. [By how many does {y} lead|How many more are that|What's the difference|How many more has {y}][?|]
{x} is {a} [years old|cm tall|kg] and {y} is {b} times that. What's the difference[?|]
# d = a / b; d + a | b=2-5 c=2-20 a==b*c
{x} has {a} {t}, {y} has [1/{b}|one {b}th] of that. How many have they together[?|]
# d = a / 3; d + a | c=2-30 a==3*c
{x} has {a} [euros|dollars|{t}], {y} [has |]a third of that. [How much|How many] have [they|the two] together[?|]
# d = a / 2; d + a | c=2-30 a==2*c
{x} has {a} [euros|dollars|{t}], {y} [has |]half of that. [How much|How many] have [they|the two] together[?|]
{x} has {a} {t}, twice as many as {y}. How many do they have together[?|]
# d = a / 4; a - d | c=2-30 a==4*c
{x} [had|got|has] {a} {t} and [gave|sold|lost|ate] a quarter[ of them|]. How many [are left|does {he} have|remain][?|]
# d = a / 4; e = a - d; e - b | c=5-30 a==4*c b=1-c
{x} got {a} {t}, gave a quarter to {his} {kin} and [ate|lost|used] {b}. How many [are left|does {he} have now|has {he} left][?|]
of {a} {t} a quarter [is|was|got] [lost|sold|broken], then {b} [more|others] [too|as well|]. How many [are left|remain][?|]
# d = a / 2; e = a - d; e - b | c=5-40 a==2*c b=1-c
{x} has {a} {t}. {He} gives half to {his} {kin} and {b} to {y}. How many [are left|does {he} have|does {he} keep][?|]
half of {x}'s {a} {t} go to {y}, {b} more to {z}. [What's left|How many stay with {x}|How many are left][?|]
# d = 12 * a; e = d / 2; e - b | a=1-5 b=1-5
{x} [has|buys|picks|bakes] {a} dozen {t}, gives half [of them |]to {his} {kin} and {b} to {y}. How many are left[?|]
# d = 12 / 2; d - b | b=1-5
{x} [has|buys|picks|bakes] a dozen {t}. {He} gives half of them to {his} {kin} and {b} to {y}. How many [are left|does {he} have left][?|]
# 12 - b | b=1-11
[I|we] [bought|had|baked|ordered] a dozen [donuts|eggs|rolls|{t}] and [ate|broke|used|lost] {b}[,|;|.] [what's left|how many are left|left|how many now][?|]
a dozen {t}, {b} [gone|broken|eaten|sold][.|;|,|:] [what's left|how many are left|left][?|]
how many of a dozen [eggs|{t}] are left when {b} [break|are eaten|are used|go bad][?|]
# d = a * 12; d - b | a=2-9 b=1-20
[what's left|how many are left] of {a} dozen [eggs|{t}|rolls] [when|if|after] {b} [break|are eaten|are used|are sold][?|]
{x} [has|buys|bakes] {a} dozen {t} and [eats|sells|breaks|uses] {b}[.|;|,] [how many are left|what's left|how many does {he} have left][?|]
{a} dozen minus {b}[?|]
# d = a * 12; d + b | a=2-9 b=1-20
{a} dozen {t} and {b} more [is|are|makes] how many[?|]
{a} dozen plus {b}[?|]
# d = a / 2; d / 3 | c=1-12 a==6*c
[there are|a class has|a team has] {a} [kids|students|players]. Half are [boys|girls]. A third of the [boys|girls|them] [wear glasses|play chess|can swim|have a dog]. How many [is that|are that|wear glasses|of them do][?|]
a third of [half of|one half of] {a}[?|]
half of a third of {a}[?|]
# d = a / 2; d / 2 | c=1-25 a==4*c
[half|one half] of [a half|half|one half] of {a}[?|]
[there are|a class has|a team has] {a} [kids|students|players]. Half are [#boys|girls], and half of the [#boys|girls] [wear glasses|play chess|can swim]. How many is that[?|]
# d = a * b; e = c * f; d + e | a=2-12 b=4 c=2-12 f=2
[on|at] [a|the] farm there are {a} [cows|pigs|sheep|goats|horses] and {c} [chickens|hens|ducks|geese]. How many legs[?| in all?| are there?| is that?]
{a} [cows|pigs|dogs|cats] and {c} [hens|ducks|people|birds] have how many legs[?|]
how many wheels do {a} cars and {c} [bikes|bicycles|motorcycles|scooters] have [altogether|in all|together|][?|]
[legs|number of legs] of {a} [dogs|cats|horses|tables] and {c} [birds|parrots|men|children][?|]
# a + b - c | a=2-40 b=2-30 c=1-a
{x} had {a} [#red|big|old] and {b} [#blue|small|new] [balloons|balls|cups|{t}]. {c} [popped|broke|got lost|burst|were stolen]. How many [does {he} have|are left|now|remain][?|]
first there were {a} [ducks|birds|kids|cars|people], then {b} [more|others] [came|landed|joined|arrived], [and then|then|later] {c} [left|went away|flew off]. [How many are there|number now|How many now|how many is that][?|]
[a|the] [dog|noise|storm|child] scared away {c} of the {b} [birds|geese|ducks] that had [joined|come to] the first {a}. How many are left in all[?|]
I had {a} [followers|fans|subscribers|members] in [May|June|spring], {b} more [joined|came] in [July|August|summer] and {c} left. How many [now|are there|do I have][?|]
how many {t} does {x} have [now|] if {he} started with {a}, got {b} from {his} {kin} and gave {c} to {y}[?|]
# a - b + c | b=1-30 e=1-30 a==b+e c=1-30
how many {t} does {x} have [now|today|in the end|] if {he} started with {a}, gave {b} to {y} and got {c} from {his} {kin}[?|]
a [farmer|zoo|ranch|shepherd] had {a} [sheep|cows|goats|rabbits], sold {b}, and then {c} [lambs|young ones|babies|more] were born. How many [animals |][now|are there|does it have][?|]
there were {a} [birds|pigeons|crows] on a [wire|roof|fence|branch]. {b} flew [off|away|south], then {c} came back. How many [birds|are there|now|are on it][?|]
a [train|bus|plane|ferry] had {a} [passengers|people] [on board|]. {b} got off and {c} got on. How many [are on it|are there|now|is that] [now|][?|]
{x} lost {b} of {his} {a} [marbles|cards|{t}] and then won {c}. How many [has {he}|does {he} have] [now|][?|]
# a - b | b=1-60 c=1-60 a==b+c
of {a} [guests|people|passengers] {b} are [#adults|men|women], so how many are [#children|women|men][?|]
among [the|] {a} [guests|people|animals|visitors] [there are|are] {b} [adults|men|dogs|women][.|,|;] how many are [not|children|others|cats][?|]
my [phone|disk|tablet|card] has {a} [GB|gigabytes] and {b} are [full|used|taken][,|.|;] [so |][how much [space|storage] is free|how much is left|what's free][?|]
a [carton|box|shelf] [has room|is] for {a} {t} and {b} are in it[.|,|;] how many [fit in|more fit|are missing|can I add][?|]
[with|having] {a} cards [and|of which] {b} dealt, how many are left[?|]
I [need|want] {a} [points|dollars|stamps|votes] and [have|got|already have] {b}, [how many am I missing|how many more|what's missing|how many do I lack][?|]
I've [done|read|seen|finished] {b} [chapters|levels|parts|lessons|episodes] of {a}, [how many do I still have [to do|to read|left]|how many to go|what's left][?|]
the [parking lot|pool|room|store] had {a} [cars|people|kids|carts] until {b} [left|drove away|went home]; how many [remain|are left|stay][?|]
how much more is a ${a} [ticket|shirt|phone|room] than a ${b} one[?|]
by how much is a {a} [#dollar|euro] {one} [dearer|more expensive] than a {b} [#dollar|euro] one[?|]
{x} was {a} cm [tall|] and {y} {b}[.|;|,] how much [taller|bigger] is {x}[?|]
after [spending|paying|losing|using] {b} of my {a} [euros|dollars|coins], [I have how much|how much have I got|what do I have|what is left][?|]
it was {a} degrees [this morning|at noon|yesterday] and [fell|dropped|went down] by {b}, [what is it now|what is the temperature|how warm is it][?|]
{x} [owes|owed] {a} [dollars|] and paid back {b}, [how much is still owed|what does {he} still owe|still owes|what's the debt][?|]
I deleted {b} of my {a} [photos|mails|songs|files], [so now I have|how many are left|what's left][?|...|]
a [baker|shop|{job}] who [makes|has|bakes] {a} {t} and sells {b} [of them |]has how many [left|left over][?|]
{x}'s team has {a} points, the other[s| team] {b}. [How many more|Lead|By how much does {x}'s team lead|Difference][?|]
a {a} [#minute|hour] [film|game|flight|class] [started|began] {b} [#minutes|hours] ago. [How long is it still|How much longer|How many are left|What's left][?|]
# a + b | a=2-90 b=1-60
{x} [weighs|is|measures] {a} [kg|kilos|pounds|cm] after [losing|dropping|giving up] {b}, [what did {he} weigh|how much was it] before[?|]
{x} weighs {a} [kg|kilos|pounds] after losing {b}[.|,|;] [weight before|what was {his} weight before|what did {he} weigh before][?|]
{a} are left after [taking|using|selling|eating] {b}[.|,|;] how many were there [before|at first][?|]
in a [zoo|park|farm|kennel] with {a} [monkeys|lions|goats|dogs] {b} [babies|young] are born, how many [monkeys|animals|are there] [now|][?|]
a [zoo|farm|kennel] has {a} [monkeys|lions|goats|dogs]. {b} [babies|young ones|cubs|kids|puppies] are born. How many [now|are there|in all][?|]
{a} [geese|hens|cows|cats] and {b} [ducks|roosters|sheep|dogs] are [on the pond|in the yard|on the farm][.|,|;] how many [birds|animals] is that[?|]
{x} [ran|walked|swam|rode] {a} km on {day} and {b} on {day2}[,|.|;] how far [altogether|in all|is that|together][?|]
{x} had {a} {t} and got {b} more for {his} birthday, how many has {he} now[?|]
there are {a} {t} in the first {box} and {b} in the second[.|;|,] [how many in both|sum|how many together][?|]
# a * b | a=2-12 b=2-30
a family of {a} eats {b} [#rolls|eggs|apples|pancakes] each, how many [#rolls|eggs|apples|pancakes] [should I buy|are needed|is that|do we need][?|]
[if|] each of {a} [friends|kids|guests] brings {b} [drinks|{t}], how many [drinks|{t}|] [will we have|are there|do we get][?|]
{a} buses with {b} people each are how many people[?|]
{x} jogs {b} km {a} times a week[:|.|,|;] how many km [is that|] [a|per] week[?|]
{x} [, who is 40,|] [works|trains|reads|sings] {b} hours {a} [times|days] a week[.|,|;] how many hours a week[?|]
how many [legs|eyes|wheels|sides] do {a} [creatures|things|shapes|robots] with {b} each have[?|]
a [tower|stack|pile|wall] of {a} [cubes|bricks|boxes|books], each {b} cm [high|tall|thick|], is how [tall|high][?|]
how [tall|high] is a [tower|stack|pile] of {a} [cubes|bricks|boxes|books], each {b} cm[?|]
how long is a [row|line|chain] of {a} [desks|carpets|cars|rods] of {b} m [each|][?|]
{a} [orchards|fields|gardens] with {b} [#trees|plants|rows] [each|]; number of [#trees|plants|rows][?|]
if every [#row|shelf|bus|bag] has {b} [#plants|books|seats|{t}] and there are {a} [#rows|shelves|buses|bags], what's the total [number|][?|]
{x} spends {b} dollars a [#day|week] on [coffee|lunch|snacks], how much [in|is that in] {a} [#days|weeks][?|]
how many {t} do I need for {a} {kids} if each [gets|wants|needs] {b}[?|]
# a / b | b=2-12 c=2-15 a==b*c
how many [tables|cars|boats|tents|teams] of {b} do [we|they] need [to seat|for|to hold] {a} [guests|people|kids|players][?|]
how many [tables|cars|boats|tents] for {b} do {a} [guests|people|kids|players] need[?|]
[with|] {a} cards dealt to {b} players, how many [does each [get|have|receive]|for each|each][?|]
we're {b} [people|friends] and the bill is {a}, how much [does each of us pay|is it each|for each|per person][?|]
[the |]{b} of us share a {a} dollar [bill|taxi|gift][.|,|;] [what do I pay|how much each|my share][?|]
[sharing|dividing|splitting] {a} [sweets|{t}|coins] [between|among] {b} [children|{kids}], how many [does each [child |one |]get|each|for each][?|]
a [rope|board|wire] of {a} m [is|gets|was] cut into pieces of {b} m[:|,|;|.] how many pieces[?|]
how many [pieces|parts] of {b} m can be cut from a {a} m [rope|board|wire][?|]
{x} pays {a} dollars in {b} equal [payments|parts|rates][.|:|;] how [big|much] is each[?| payment?]
# d = a - b; d / c | b=10-60 c=2-12 e=2-30 a==b+c*e
[you buy|{x} buys] a ${a} [phone|bike|sofa|TV], [pay|pays] ${b} now and the rest in {c} equal [payments|rates|parts|monthly payments]. How [big|much] is [each|one][ payment| of them|][?|]
a {a} dollar {one}: {b} down, the rest over {c} months. [What|How much] [each|per|a] month[?|]
{x} [baked|made|cooked] {a} [cupcakes|rolls|cookies|{t}], gave {b} to [the neighbors|{y}|{his} {kin}] and [then |]put the rest on {c} plates equally. How many [per|on each|on one] plate[?|]
we [picked|bought|found] {a} [apples|nuts|eggs|{t}], threw away {b} [rotten|bad|broken] ones and packed the rest in [#bags|boxes|crates] of {c}. How many [#bags|boxes|crates][?|]
# d = a / b; d + c | b=2-8 e=3-30 a==b*e c=1-10
{b} friends [split|share] a {a} dollar [bill|dinner|taxi] and each adds [a |]{c} dollar[s|] [tip|for the driver|more]. What does each pay[?|]
[a|the] [bill|meal] of ${a} is split by {b} and everybody [tips|adds|gives] ${c} [more|on top|]. [How much each|What does one pay|Each pays][?|]
# d = a + b; d / 2 | a=2-60 b=2-60
{x} and {y} [collected|found|got|picked] {a} and {b} {t} and [shared|split] them [fairly|equally|evenly]. How many [for each|each|does each get][?|]
two [kids|friends|sisters] [collected|found|picked] {a} and {b} [nuts|shells|chestnuts|{t}] and shared them [fairly|equally]. how many for each[?|]
# d = a * b; d / c | a=2-9 c=2-9 e=2-10 b==c*e/a
{a} [bags|boxes|trays] with {b} [oranges|cookies|{t}] each are [split|shared|divided] [between|among] {c} [families|kids|people], how many [{t} |][does each get|for each|each][?|]
how many [cookies|{t}] does each of {c} kids get if I bake {a} trays of {b}[?|]
# d = a * b; d * c | a=2-6 b=2-6 c=2-8
if one [1:hen|cow|machine|worker] [1:lays|gives|makes|packs] {a} [1:eggs|liters|parts|boxes] a [#week|day|month], how many do {b} [make|give] in {c} [#weeks|days|months][?|]
I have {a} [cats|dogs|pets], each eats {b} [#cans|cups|bowls] a day. How many [#cans|cups|bowls] [for|in] {c} days[?|]
{a} [people|kids|workers] [drink|use|need|eat] {b} [bottles|cups|plates] a day each. How many in {c} days[?|]
# d = a * b; d * 7 | a=2-6 b=2-6
I have {a} [cats|dogs|pets], [each eats|each of them eats|and each gets] {b} [#cans|cups|bowls] a day. How many [#cans|cups|bowls] [for|in] a week[?|]
{a} [people|kids|workers] [drink|use|eat] {b} [bottles|cups|plates] a day each. How many in [a|one] week[?|]
# a - b | b=1-40 e=1-40 a==b+e c=1-200
{x} is {c} cm tall, {y} has {a} {t} and gives away {b}. How many {t} does {y} have[?|]
{x}, who is [30|25|42|50|61] and has [two|three] [sons|daughters|cats], bought {a} {t} and [used|lost|gave away] {b}. How many are left[?|]
at {c} Main Street {a} people live, {b} move out. How many [stay|live there|are left][?|]
room {c} has {a} [chairs|desks|lamps]. {b} are [broken|taken away|moved]. How many are [left|fine][?|]
bus number {c} has {a} people on it and {b} get off. How many [are left|stay on][?|]
it's {c} degrees outside. {x} has {a} {t} and sells {b}. How many are left[?|]
{x} lives {c} m from the school. {He} had {a} {t} and lost {b} on the way. How many are left[?|]
# a * b | a=2-9 b=2-15 c=1-100
{x}, {c} years old, buys {a} {boxes} of {b} {t}. How many {t}[?| is that?]
{x} ({c}) [runs|reads|works] {b} [km|pages|hours] {a} times a week. How much [per|a|in one] week[?|]
at {c} Elm Street there are {a} floors with {b} [rooms|windows|doors] each. How many [rooms|windows|doors|in all][?|]
# b + c | a=100-190 b=2-30 c=2-40
{x} is {a} cm tall. The brother is {b} cm shorter, the dad {c} cm taller than {x}. How much taller is [dad|{his} dad|the dad] than the brother[?|]
{x} has {a} points, {y} {b} fewer and {z} {c} more than {x}. How many more has {z} than {y}[?|]
# d = a - b; a + d | b=1-15 e=2-30 a==b+e
[class|group|team|room] A has {a} [students|kids|people], B has {b} fewer. How many [are there in|in] both[?| together?]
{x} has {a} {t}, {y} {b} [less|fewer]. How many [have both|do both have|together][?|]
# d = a + b; a + d | a=2-40 b=1-20
[class|group|team|room] A has {a} [students|kids|people], B has {b} more. How many [are there in|in] both[?| together?]
{x} has {a} {t}, {y} has {b} more than {x}. How many do they have together[?|]
# a / b | b=2-9 c=2-12 a==b*c
{b} [loaves|cakes|pies|jars] need {a} [cups|kg|eggs|spoons], how much for one[?|]
if {a} {t} are enough for {b} [kids|cakes|days], how many for one[?|]
# d = a / b; d * c | b=2-6 e=2-9 a==b*e c=2-10
if {b} [#loaves|cakes|pies|shirts] need {a} [#cups|eggs|spoons|buttons], how many for {c}[?|]
{a} [1:cups|pages|km|parts] in {b} [2:minutes|hours|days] = ? [1] in {c} [2]
[at|with] {b} for ${a}, how much are {c}[?|]
{b} {t} cost ${a}. [And|Then|So how much do] {c}[?| cost?]
${a} for {b} hours of work, how much for {c} hours[?|]
[when|if] {b} [tickets|shirts|lamps|meals] cost {a} dollars, what do {c} [tickets|shirts|lamps|meals|of them] cost[?|]
{x} [earned|made|got] ${a} in {b} hours. [How much in|What for|And in] {c} hours[?|]
it takes {a} minutes to [#wash|paint|clean|check] {b} [#windows|cars|rooms|bikes][.|,|;] how long [for|will] {c}[ take|][?|]
if it takes {a} minutes to [wash|paint|clean|check] {b} [#windows|cars|rooms|bikes], how long do {c} [#windows|cars|rooms|bikes] take[?|]
{b} [#hens|machines|printers] make {a} [eggs|parts|pages] a day[.|;|,] [how many|what] do {c} [#hens|machines|printers] make[?|]
{x} [bakes|makes|types|plants] {a} {t} [every|in] {b} hours. How many in {c} hours[?|]
a [bakery|factory|shop] makes {a} {t} every {b} hours. How many in a {c} hour day[?|]
# d = a / b; c / d | b=2-6 e=2-9 a==b*e f=2-10 c==e*f
[when|if] {b} hours [are|take|pay|bring] {a} [km|dollars|pages], how many hours for {c}[?|]
{a} [cups|pages|km|parts] in {b} [minutes|hours|days], {c} in how many[?|]
# a * c / b | b=2-8 c=2-8 a=2-12
{c} [workers|people|men|painters|machines] [#need|take] {a} [hours|days] for a [job|fence|wall|field]. How long do {b} [#need|take][?|]
[a|the] [job|fence|wall|house] takes {c} [people|workers|men] {a} [hours|days]. How long for {b}[ people| workers| men|][?|]
if {c} [workers|people|taps|pumps] [#need|take] {a} hours, how many hours do {b} [#need|take][?|]
{c} [horses|cows|hens] eat the [hay|food|corn] in {a} days. How long [does it last|will it last] for {b}[?|]
# a / b | b=20,25,30,40,50,60,80,100,120 c=2-9 a==b*c
how long does it take to [drive|go|cover|ride] {a} km at {b} km/h[?| in hours?| (hours)]
{a} [km|miles] at {b} [km/h|mph|kilometers per hour] [takes|is|needs] how many hours[?|]
{x} [cycled|drove|rode|ran|flew] {a} km at {b} km/h. [Hours|How many hours|How long|Time][?|]
downloading {a} MB at {b} MB per second takes how many seconds[?|]
my [internet|line|phone] does {b} [#megabytes|MB] per second, how [many seconds|long] for {a} [#megabytes|MB][?|]
burning {b} calories a [minute|km], how [many minutes|long] until [I burned|I have burned] {a}[ calories|][?|]
at {b} [liters|words|steps] a minute, how many minutes for {a} [liters|words|steps|][?|]
I save {b} a [#week|month|day]. After how many [#weeks|months|days] do I have {a}[?|]
# a * b | a=2-12 b=20,25,30,40,50,60,80,100,120,15,12
how far [do you get|does {x} get|do I get|is it] in {a} hours at {b} [mph|km/h|miles per hour|km per hour][?|]
{a} hours at {b} [mph|km/h], [how far|what distance|which distance][?|]
driving {b} km/h for {a} hours [gets me|takes me|is] how far[?|]
# d = b / 60; a * d | a=4,6,8,10,12,20,40,60,80 b=30,90,15,45,120 | dec
[walking|driving|riding|going|running] {a} km/h for {b} minutes [gets me|is|makes|are] how [many km|far][?|]
how far is {b} minutes at {a} km/h[?|]
# d = 60 / 4; a * d | a=2-100
{a} [words|pages|liters|beats] [per|a|each] minute, how many in a quarter of an hour[?|]
typing {a} words [per|a] minute, how many [words |]in a quarter [of an |]hour[?|]
# a * 30 | a=2-100
{a} [words|pages|liters|beats] [per|a|each] minute, how many in half an hour[?|]
# a * 12 | a=2-400
a [pump|machine|tap|hose] moves {a} l/h. How much in half a day[?|]
{a} [liters|parts|cars] [per|an|each] hour, how many in half a day[?|]
{a} [dollars |]a month is how much [per|a|in a] year[?|]
rent is ${a} [a|per] month, [what's|how much is] that [per|a] year[?|]
# a / 1.5 | b=2-12 a==b*15
{a} km in an hour and a half[,|.| -|;] [what's the speed|how fast|speed in km/h|km per hour][?|]
{x} drove {a} km in one and a half hours. [Speed|How fast was {he}|What's the speed][?|]
# a * 1.5 | b=1-60 a==b*2
at {a} km/h, how far in [an hour and a half|one and a half hours][?|]
# a / 12 | b=.1-9 a==b*12 | dec
[if|] a dozen [#eggs|rolls|roses|pens] [cost|are] ${a}, how much [per|is one|for one] [#egg|roll|rose|pen][?|]
# a / b | a=10-60 b=2,4,5,8 | dec
{a} [points|goals|km|dollars] in {b} [#games|days|hours], how [many|much] [per|a] [#game|day|hour][?| on average?]
{b} [#games|matches|days], {a} [1:points|goals|km] in [total|all][.|,|;] [1] per [#game|match|day] on average[?|]
sold {a} in {b} days[.|,|;] how many a day on average[?|]
total of {a} over {b} days, daily average[?|]
# d = a + b; e = d + c; e / 3 | a=2-40 b=2-40 g=2-40 c==3*g-a-b
sold {a} on mon, {b} on tue, {c} on wed[.|,|;] [how many a day on average|daily average|average][?|]
{x} ran {a} km, {b} km and {c} km. [What's the average|Average distance|How far on average|Average][?|]
my [grades|marks|scores|temps|times] [are|were|:] {a}, {b} and {c}[.|,|;] average[?|]
I [scored|got|had] {a}, {b} and {c}. What's my average[?|]
{a}, {b}, {c} on average[?|]
avg({a},{b},{c})
average({a}, {b}, {c})
three [kids|boxes|dogs] weigh {a}, {b} and {c} kg. [Mean|Average] weight[?|]
# a * b | a=2-40 b=2-9
the average [age|weight|score|price] of {b} [people|kids|players|things] is {a}, what do [they|their ages|the scores] add up to[?|]
{b} numbers have an average of {a}. [Their sum|What is their sum|The total][?|]
an average of {a} over {b} [days|games|tests] makes [a total of|in all][?| how much?]
# d = a * 2; d - b | a=2-60 b=1-a
the average of two numbers is {a}. One [of them |]is {b}. [What's the other|The other|Which is the other][?|]
the mean of {b} and what [number |]is {a}[?|]
# d = a + b; e = d + c; f = e + g; f / 4 | a=2-40 b=2-40 c=2-40 h=5-40 g==4*h-a-b-c
my grades: {a}, {b}, {c}, {g}. Average[?|]
mean of {a} {b} {c} {g}[?|]
average of {a}, {b}, {c} and {g}[?|]
# 100 - a | a=1-99
{a}% of [voters|people|the class|visitors|answers] [said yes|agreed|are women|were right], the rest [said no|did not|are men|were wrong]. [What|How many|Which] [percentage|percent] [is that|said no|is the rest|are men][?|]
if {a} percent [is|are] [gone|done|used|women], how many percent [is|are] [left|not|men][?|]
{a}% [done|used|empty|sold], what percent is left[?|]
# a - b | b=1-60 c=1-40 a==b+c
my [battery|phone|laptop] was at {a}% and [dropped|fell|went down] [by |]{b} percentage points[.|,|;] [what's it at now|now|what is it now][?|]
[support|the rate|the score|humidity] [fell|dropped|went down] from {a}% by {b} percentage points[.|,|;] [now|what is it now][?|]
# a + b | a=1-60 b=1-40
[support|the rate|the score|humidity|my battery] [rose|went up|climbed] from {a}% by {b} percentage points[.|,|;] [now|what is it now][?|]
# d = a * b; e = d / 100; a - e | a=20,40,50,60,80,100,200,300,400,500,1000 b=5,10,15,20,25,30,40,50,60,70,75,80,90
{b}% of [the|] {a} [pupils|students|kids|people|runners] [passed|came|finished|voted]. How many did not[?| pass?| come?]
there are {a} [seats|rooms|places|lockers] and {b}% are [empty|free|open]. How many are [taken|full|used][?|]
{b}% of {a} [eggs|lamps|parts|seeds] are [bad|broken]. How many are [good|fine|ok][?|]
a [phone|car|bike|laptop] loses {b}% of its value [every|each|a] year. It is worth {a} now, [next year|what is it worth next year|and in a year][?|]
{a} minus {b} percent [discount|rebate|off|tax][?|]
[decrease|lower|reduce|cut|drop] {a} by {b}[%| percent][.|]
{b}% off [a|the] {a} dollar [jacket|pair of shoes|phone|bag], [final price|what do I pay|what does it cost now|new price][?|]
# d = a * b; e = d / 100; a + e | a=20,40,50,60,80,100,200,300,400,500,1000,1200,2000,2400,12000 b=1,2,3,4,5,10,15,20,25,30,40,50
my [salary|pay|rent|wage] [is|of] {a} [a month |] [goes up|rises|gets raised|grows] [by |]{b}[%| percent]. [What's it now|New amount|How much then|What will it be][?|]
my salary is {a} [a month |]and I get a {b}[%| percent] raise. [What will it be|What is it then|New salary|How much is it then][?|]
a [town|city|village|school] of {a} people grows by {b}[%| percent]. [New population|How many people then|How big is it then|How many now][?|]
add {b}% [VAT|tax|tip|interest] to {a} [euros|dollars|][.|]
[increase|raise] {a} by {b}[%| percent][.|]
the bill is ${a}, I [want to leave|add|give|leave] {b}% [tip|as a tip], [how much in total|what do I pay|total][?|]
${a} plus [a |]{b}[%| percent] [tip|tax|fee] [equals|is|makes][?|]
what's {b}% [sales tax|tax|VAT|tip] on ${a} plus the {a}[?|]
{a} dollars with {b}% interest after [a|one] year[?|]
# d = a * b; e = d / 100; e * c | a=100,200,300,400,500,1000,2000 b=1,2,3,4,5,10 c=2-6
simple interest on ${a} at {b}% for {c} years[?|]
[how much|what] simple interest [does|do] ${a} [earn|bring|make] in {c} years at {b}%[?|]
{a} dollars at {b} percent simple interest, interest after {c} years[?|]
# d = a * b; d / 100 | a=10,20,40,50,60,80,100,200,300,500,600,1000 b=1,2,5,10,20,25,30,40,50,60,75,80 | dec
[of|out of|from] {a} [#cars|kids|eggs|balls] {b}% are [#red|boys|brown|new][;|,|.] how many [are [#red|boys|brown|new]|is that|are they][?|]
{b}% of my {a} [photos|songs|books] [is|are] how many[?|]
[how much|what] [tax|interest|discount|tip] is {b}% [on|of] {a}[?|]
[sales tax|the tax|the fee] is {b}%, the item costs ${a}, how much [tax|fee] [do I owe|is that|do I pay][?|]
# d = a / 2; d / 100 | b=1-20 a==b*100 | dec
half a percent of {a}[?|]
[what is|how much is] half a percent of {a}[?|]
0.5% of {a}[?|]
# d = a * 100; d / b | b=5,10,20,25,40,50,80 c=1-40 a==b*c/5
{b}[%| percent] of what [number |]is {a}[?|]
if {b}[%| percent] of [a number|something] is {a}, what is [the number|it][?|]
{a} is {b}[%| percent] of [which|what] number[?|]
{a} [kids|people|pages] are {b}% of all[.|;|,] how many are there [in all|altogether|][?|]
# d = 100 - b; e = a * 100; e / d | b=10,20,25,40,50,60,75,80 c=1-20 a==(100-b)*c
after a {b}% discount [the|a] [book|lamp|shirt|bag] [is|costs] ${a}. [What was it before|What did it cost before|Old price|Original price][?|]
with {b}% off it costs {a}[.|;|,] [what was the full price|the price before|the old price][?|]
{x} paid ${a} after {b}% off. [Price before|What was the full price|How much was it before][?|]
# d = a - b; e = d / a; e * 100 | a=10,20,40,50,80,100,200,400 b=1-a | dec
by what percent did it [fall|drop|go down|sink] if it went from {a} to {b}[?|]
[the|a] [price|number|score] [fell|dropped|went down] from {a} to {b}[,|.|;] [by what percent|what percent is that|percent decrease|how many percent][?|]
# d = b - a; e = d / a; e * 100 | a=10,20,40,50,80,100,200,400 c=1-a b==a+c | dec
by what percent did it [rise|grow|go up|increase] if it went from {a} to {b}[?|]
[the|a] [price|number|score|rent] [went|rose|grew|climbed] from {a} to {b}[,|.|;] [by what percent|what percent [increase |]is that|percent increase|how many percent][?|]
# d = a / b; d * 100 | b=4,5,8,10,12,16,20,24,25,40,48,50,60,80 a=1-b | dec
{a} out of {b} [in|as a] percent[age|][?|]
{a} of {b} [#eggs|questions|seats|kids] are [#broken|right|taken|boys], what percent[age|] is that[?|]
I got {a} of {b} [questions|points|answers] [right|]. [What's my score in percent|What percent|How many percent is that|percent][?|]
write {a}/{b} as a percent[age|][.|]
what's {a}/{b} [as a percent|in percent|as percent][?|]
# d = a * b; e = d / 100; f = e * c; f / 100 | a=1000,2000,4000,10000,20000 b=5,10,20,50 c=5,10,20,50
{c}[%| percent] of {b}[%| percent] of {a}[?|]
# d + e | a=1-99 b=1-99 d==a*1000 e==b*1000
{a}k [+|plus|and] {b}k[?|=| in total| is?]
{a}k and another {b}k [makes|is|are][?| what?]
{a} thousand [plus|and|+] {b} thousand[?|]
# d - b | a=1-30 d==a*1000 b=10,50,100,150,200,250,300,350,400,500,600,700,750,800,900
{a}k [minus|-|less] {b}[?|=|]
from {a}k [take|subtract] {b}[.|?|]
{a} thousand [minus|less] {b}[?|]
I had {a}k and spent {b}[.|,] [what's left|left|how much is left][?|]
# d + b | a=1-30 d==a*1000 b=10,50,100,150,200,250,300,350,400,500,600,700,750,800,900
{a}k [plus|+|and] {b}[?|=|]
{a} thousand and {b} [in digits|as a number|more][?|]
# d * b | a=2-30 b=2-9 d==a*1000
{a}k [times|x|*] {b}[?|=|]
{b} times {a}k[?|=|]
{b} [cars|rooms|machines|loans] at {a}k each[?|, total?| is how much?| cost?]
# d + b - c | a=.1-9 d==a*1000 b=50,100,150,200,250,300,400,500 c=50,100,120,150,200
{a}k [followers|views|members|readers|fans] in [May|June|spring], {b} more in [July|fall] and [lost|minus] {c} in [August|winter]. How many[?| now?| is that?]
{a}k plus {b} minus {c}[?|]
# d * 1 | a=.1-20 d==a*1000
{a}k [as a number|in full|is what number|in digits|is how much|written out][?|]
how much is {a}k[?|]
# d + b | a=.1-9 d==a*1000000 b=100000,200000,300000,400000,500000,50000,600000,800000
{a} million [plus|and|+] {b}[?|]
{a}M [plus|+] {b}[?|]
# d + e | a=.1-9 b=.1-9 d==a*1000000 e==b*1000000
{a} million [plus|and|+] {b} million[?|=|]
{a}M + {b}M[?|]
# d - e | c=.1-5 b=1-5 a==b+c d==a*1000000 e==b*1000000
{a} million [minus|less|-] {b} million[?|]
# d + e | a=1-20 b=1-9 c=1-20 f=1-9 d==a+b/10 e==c+f/10 | dec
{a} point {b} [plus|and|+] {c} point {f}[?|=|]
what's {a} point {b} plus {c} point {f}[?|]
# d - e | c=1-9 f=1-9 g=1-9 b=1-9 a==c+g d==a+b/10 e==c+f/10 | dec
{a} point {b} [minus|less|take away] {c} point {f}[?|=|]
# d * c | a=1-12 b=1-9 c=2-9 d==a+b/10 | dec
{a} point {b} times {c}[?|]
# d + e | a=1-12 b=1-9 c=1-12 f=1-9 d==a+b/10 e==c+f/10 | dec
{a},{b} + {c},{f} [with|using] comma[s|] as [the |]decimal [sign|point|separator][?|]
# a - b | b=10-60 c=1-60 a==b+c
the [age |]difference between a [mother|father|teacher] ({a}) and {his} [daughter|son|pupil] ({b})[?|]
{x} is {a} and {y} {b}[.|,|;] [what's the age gap|how many years between them|age difference|how many years apart are they][?|]
she's {a}, he's {b}[,|.|;] [what's the age gap|age difference|how many years apart][?|]
{y} was born {b} years after {x}. {x} is {a}. How old is {y}[?|]
{x} is {a} and was {b} when {his} [sister|brother|cousin] was born. How old is [the sister|the brother|the cousin|she|he][?|]
I was {b} when my [sister|brother|cousin] was born. [Now I'm|I'm now|I am] {a}[ now|]. How old is [she|he|my sister|my brother][?|]
{x} is {a} now. {x} moved here {b} years ago. How old was {he} then[?|]
my parents are {a} [together|in total|in sum] and my [mom|dad] is {b}. How old is the other[?|]
{x} and {y} are {a} years old together. {x} is {b}. How old is {y}[?|]
the sum of two ages is {a}. One [person |]is {b}. The other[?| is?]
# a + b | a=3-70 b=1-30
{x} was born {b} years before {y}. {y} is {a}. How old is {x}[?|]
{y} is {a} and {b} years younger than {x}. {x}'s age[?|]
my [daughter|son|sister] is {a}, I'm {b} years older [than her|than him|]. [What's my age|How old am I|My age][?|]
{b} years ago {he} was {a}. How old is {he} now[?|]
{x} was {a} when {he} moved here {b} years ago. Age now[?|]
# a / 2 | b=2-50 a==b*2
the sum of two twins' ages is {a}. How old is each[?|]
[my parents'|their|two friends'] ages add up to {a} and they are the same age. How old are they[?| each?]
twins are {a} years old together. [How old is each|Age of one|How old is one of them][?|]
{x} is half as old as {his} {a} year old {kin}. How old is {x}[?|]
{x} is half {his} {kin}'s age, which is {a}. How old is {x}[?|]
# a / 3 | b=2-30 a==b*3
the ages of triplets add up to {a}. How old is each[?|]
if {x} is a third of {his} [mother|father|grandpa]'s age and [she|he] is {a}, how old is {x}[?|]
# d = a / b; d + c | b=2-5 e=3-20 a==b*e c=1-12
{x} is {a}. {his} [son|daughter] is one {b}th of that. How old [is|will] [the son|the child] [be |]in {c} years[?|]
# d = a / 4; d + c | e=3-20 a==4*e c=1-12
{x} is {a}. {his} [#son|daughter|dog] is a quarter of {his} age. How old [is|will] the [#son|daughter|dog] [be |]in {c} years[?|]
# d = a / 2; d + c | e=3-30 a==2*e c=1-12
{x} is {a}. {his} [#son|daughter|cousin] is half {his} age. How old [is|will] the [#son|daughter|cousin] [be |]in {c} years[?|]
# d = a + b; a + d | a=5-70 b=1-20
[grandma|{x}] is {a} and [grandpa|{y}] is {b} years older. [What is the sum of their ages|How old are they together|Sum of their ages|Their ages together][?|]
# d = a - b; a + d | b=1-20 c=3-40 a==b+c
[grandma|{x}] is {a} and [grandpa|{y}] is {b} years younger. [What is the sum of their ages|How old are they together|Sum of their ages|Their ages together][?|]
# d = a * b; d + c | a=2-12 b=2-5 c=2-12
{x} is {b} times as old as {y}. {y} is {a}. How old will {x} be in {c} years[?|]
{y} is {a}, {x} {b} times as old. How old [is|will] {x} [be |]in {c} years[?|]
# d = a * b; a + d | a=2-15 b=2-5
{x} is {b} times as old as {y}. {y} is {a}. [How old are they together|Sum of their ages|Their total age][?|]
# d = a * b; d - a | a=2-15 b=2-5
{x} is {b} times as old as {y}, who is {a}. [How much older is {x}|The age difference|By how many years is {x} older][?|]
# d = a - b; d - c | b=1-9 c=1-9 e=2-40 a==b+c+e
in {b} years {x} will be {a}. How old was {he} {c} years ago[?|]
{b} years from now {x} will be {a}. How old was {he} {c} years ago[?|]
# d = a - b; d - 1 | b=2-9 e=3-50 a==b+e
{b} years from now {x} will be {a}. How old was {he} last year[?|]
in {b} years {x} will be {a}. How old was {he} a year ago[?|]
# d = a - b; d + c | b=1-6 f=2-20 a==b+f c=1-9
{x} is {a}, {y} is {b} years younger than {x}, and {z} is {c} years older than {y}. How old is {z}[?|]
# d = a + b; d - c | a=3-30 b=1-9 c=1-3
{x} is {a}, {y} is {b} years older than {x}, and {z} is {c} years younger than {y}. How old is {z}[?|]
# a * 7 | a=1-20
[a|my] dog is {a}. [One|A|Each] dog year is 7 human years. [How old is it in human years|Human age|Its age in human years][?|]
how old is a {a} year old dog in human years if one counts as 7[?|]
{a} dog years in human years (times 7)[?|]
# a - b | b=1-90 c=1900-2020 a==b+c | years
if my [grandfather|aunt|neighbor] died in {a} aged {b}, when was [he|she] born[?|]
[somebody|she|he|a king] died in {a} at the age of {b}. Born in[?| what year?]
in {a} {x} turned {b}. When was {he} born[?|]
{x} was {b} in {a}. In which year was {he} born[?|]
# b - a | a=1000-1990 c=1-600 b==a+c | years
a [castle|church|bridge|city] [built|founded] in {a}[,|:| -] how old was it in {b}[?|]
years between {a} and {b}[?|]
how many years [are|lie|passed] between {a} and {b}[?|]
how old will a [kid|person|child] born in {a} be in {b}[?|]
# (a + b) * 2 | a=2-40 b=2-40
[a|the|my] [garden|yard|field] [is|of|measures] {a} m [x|by|times] {b} m, how much fence [do I need|is needed|goes] [to go |]around it[?|]
rectangle {a} x {b}, [perimeter|distance around|way around|how far around][?|]
{a} cm wide and {b} cm high [picture|frame|poster], how [long is|much] [the frame|the border|ribbon goes around it][?|]
walking once around a {a} by {b} m [field|block|pool] is how [far|many meters][?|]
# d = a * b; (a + d) * 2 | a=2-15 b=2-4
width {a}, length {b} times the width, perimeter of the rectangle[?|]
a rectangle is {a} cm wide and {b} times as long. [Perimeter|What is its perimeter][?|]
# d = a * 2; e = a + d; e * 2 | a=2-20
width {a}, length twice the width, perimeter of the rectangle[?|]
a rectangle is {a} cm wide and twice as long. [Perimeter|What is its perimeter][?|]
# d = a * 2; a * d | a=2-20
a rectangle is {a} cm wide and twice as long. [Area|What is its area][?|]
# d = a * b; d * c | a=2-12 b=2-12 c=2-20
[a|the] [room|floor|lawn|wall] is {a} by {b} [metres|meters|m], [carpet|paint|grass|tiling] costs {c} [per|a] square [metre|meter][.|,|;] [how much for the [carpet|paint|grass|tiles]|what does it cost|total cost][?|]
# a * b | a=2-15 b=2-15
how many [square |][tiles|stones|plates] of 1 m [by 1 m |]do I need for a [floor|terrace|wall] {a} m by {b} m[?|]
a [floor|wall|sheet] [of|that is] {a} by {b} [tiles|squares] has how many[?| of them?]
a [parallelogram|rectangle] [has |with |]base {a} [and |, |]height {b}[.|,|:|;] area[?|]
# a * b / 2 | a=2-20 d=1-12 b==d*2
[a|the] triangle [has|with] [a |]base [of |]{a} and [a |]height [of |]{b}[,|.|;] [area|what's the area|its area][?|]
the base of a triangle is {a} and its height is {b}[,|.|;] [what's the area|area][?|]
# 180 - a | a=5-175
two angles [on|at|along] a straight line, one is {a} [degrees|°]. [The other|What is the other][?|]
{a} degrees and what make a straight [line|angle][?|]
the [supplement|supplementary angle] of {a} degrees[?|]
# 90 - a | a=5-85
a right angle is [split|cut] in two, one part is {a} degrees. [The other|What is the other][?|]
the [complement|complementary angle] of {a} degrees[?|]
one acute angle of a right triangle is {a} degrees, the other[?|]
# d = 180 - a; d / 2 | b=5-80 a==2*b
an isosceles triangle has a top angle of {a} degrees. How big is each [base angle|of the others][?|]
# d = a + b; 180 - d | a=10-80 b=10-80
third angle of a triangle with angles {a} and {b}[?|]
a triangle has angles {a} and {b}. [The third|What's the third|Last angle|Third angle][?|]
angles of a triangle: {a}, {b} and[?| ?]
# d = a * a; d * 6 | a=1-12
surface [area |]of a cube with [side|edge] {a}[?|]
[how much paper|which area] covers a cube [with|of] edge {a}[?|]
# a * a * a | a=1-12
a cube has edges of {a} cm. [What's its volume|Volume|How many cubic cm][?|]
volume of a cube [with|of] [side|edge] [length |]{a}[?|]
# a * b * c | a=2-12 b=2-12 c=1-9
a [pool|tank|box|hole|pond] is {a} m long, {b} m wide and {c} m deep. [How many cubic [metres|meters] [of water does it hold|is that|]|Its volume|Volume|How much fits in][?|]
volume of a [box|block|room|crate] {a} x {b} x {c}[?|]
a {a} by {b} by {c} [box|room|tank][:|,] [volume|how many cubic units][?|]
# a / b | b=2-20 c=2-20 a==b*c
rectangle with area {a} and [width|one side] {b}[ -|:|,|.] [length|the other side|other side][?|]
area {a}, width {b}, length[?| is?]
the area of a rectangle is {a} and its [length|width] is {b}. [The other side|How long is the other side|Other side][?|]
# a / 4 | b=1-50 a==4*b
a square has a perimeter of {a}[ cm| m|]. [How long is each side|Side|One side][?|]
a fence of {a} m goes around a square [field|garden]. How long is one side[?|]
# a / 3 | b=1-50 a==3*b
an equilateral triangle has a perimeter of {a}. [How long is each side|Side|One side][?|]
# a * 3 | a=2-60
an equilateral triangle with side[s of|] {a}, [what's its perimeter|perimeter|how far around][?|]
# a * 2 | a=.1-30 | dec
how long is the diameter if the radius is {a}[?|]
radius {a}, diameter[?|]
# a / 2 | a=.1-60 | dec
radius of a circle [whose diameter is|with a diameter of] {a}[?|]
diameter {a}, radius[?|]
# a * 3.14 | a=2-30 | dec
circumference of a circle [with|of] diameter {a} (pi = 3.14)[?|]
how far [is it |]around a circle [with|of] diameter {a} if pi is 3.14[?|]
# d = a * 2; d * 3.14 | a=1-20 | dec
circumference of a circle [with|of] radius {a} (pi = 3.14)[?|]
circle radius {a}, circumference with pi=3.14[?|]
# d = a * a; d * 3.14 | a=1-12 | dec
area of a circle [with|of] radius {a}[,|] [use |](pi=3.14)[?|]
circle with radius {a}, area, pi = 3.14[?|]
# a * 20 | a=2-9
{a} twenties[?| is how much?| make?]
# a * 50 | a=2-9
{a} fifties[?| is how much?| make?]
# a * 5 | a=2-20
{a} [fives|five dollar bills|five euro notes][?| is how much?| make?]
# d = a * b; d + c | a=2-9 b=10,20,50 c=5,1,2
I have {a} {b}s and a {c}, how much [money |]is that[?|]
{a} {b} dollar bills and a {c}[?| is how much?|, total?]
[how much are|what do] {a} {b}s and one {c} [make|come to|][?|]
# d = a * b; d - c | a=2-9 b=10,20,50 c=$1-19 | dec
{a} {b} dollar bills minus ${c}[?|]
I have {a} {b}s and pay {c}. What's left[?|]
# d = a * 100; d / b | b=10,20,25,50,5 a=1-20
how many {b} cent coins [do I get for|are|make] {a} [euros|dollars][?|]
{a} [dollars|euros] in {b} cent coins[?|, how many?| is how many coins?]
# 2 * a | a=2-40
buy 2 get 1 free, each {a} [dollars|]: what do 3 cost[?|]
"buy two, get one free" at {a} each. [Price of|What do I pay for] three[?|]
# a - b | b=5-300 c=1-200 a==b+c
bought for {b}, sold for {a}, [profit|gain|how much did I make|what's the profit][?|]
I [buy|bought] a {one} for {b} and [sell|sold] it for {a}. [Profit|How much do I gain|What's my profit|What did I make][?|]
{x} sold for {a} what cost {him} {b}. [Profit|Gain|How much did {he} earn][?|]
# a - b | b=5-300 c=1-200 a==b+c
bought for {a}, sold for {b}, [loss|how much did I lose|what's the loss][?|]
# a + b + c | a=100-900 b=50-400 c=10-100
rent {a}, food {b}, bus {c}. [Total|Total per month|All together|Sum|How much a month][?|]
[rent is|rent:] {a}, [power|food] {b}, [phone|internet] {c}[.|;|,] [what do I need|how much in all|total costs][?|]
# a + b | a=$1-9 b=$1-9 | dec
[bread|rice|juice|tea] is {a} and [milk|cheese|jam|butter] is {b}. [What do both cost|Both|Total|How much together][?|]
how much is ${a} and ${b} together[?|]
{a} + {b} dollars[?|]
a [tea|roll|pen] for ${a} and a [cake|salad|pad] for ${b}, total[?|]
# a - b | b=$1-19 a=20,50,100,10 | dec
[my shopping was|the bill was|it costs|I spent] {b} and I paid with a {a}, [what's my change|change|how much do I get back][?|]
[change|what is the change] from ${a} for something that costs ${b}[?|]
{a} dollars minus {b} dollars[?|]
# a * b | a=2-9 b=$1-9 | dec
{a} [coffees|teas|rolls|tickets] at ${b} [each|apiece][?|, total?| cost?]
how much are {a} [stamps|pens|apples] at ${b} each[?|]
# a * b / 100 | a=2-12 b=15,20,25,30,35,40,45,50,60,65,70,75,80,85,90,95 | dec
how much are {a} [stamps|pens|apples|eggs] at {b} cents [each |]in dollars[?|]
{a} [rolls|stamps|cards] for {b} cents each, in dollars[?|]
# a * b | a=20,50,100,200,300,500 b=.1-2 | dec
[exchange rate|rate]: 1 [#euro|pound|franc] = {b} dollars. {a} [#euros|pounds|francs] in dollars[?|]
if one [#euro|pound|franc] is {b} dollars, how [much is|many dollars are] {a} [#euros|pounds|francs][?|]
1 [euro|coin|pound] is {b} [dollars|points]. [What are|How much is] {a}[?|]
# d = a * b; e = d / 100; a + e | a=10,20,40,50,60,80,100,200 b=5,6,7,8,10,15,20,25 | dec
{b}% [sales tax|tax|tip] on ${a} [plus the|added to the|and the] {a}[?|]
# a / b | a=1-9 b=4,5,8,10,16,20 | dec
{a} / {b} [as a decimal|as decimal|as a decimal number|in decimals][?|]
[write|convert|give|show] {a}/{b} as a decimal[ number|][.|]
# d = a / b; d + c | a=1-7 b=2,4,5,8,10 c=.1-3 | dec
[what is |]{a}/{b} + {c}[?|]
# 1000 / 4 | a=1-2
how many grams [are |][in |]a quarter [kilo|of a kilo|kilogram][?|]
# a * b | b=60 a=2-9
how many minutes [are|in] {a} hours[?|]
# a * 3 | a=1-30
how many thirds [make|are in|are] {a} [wholes|whole ones|]
{a} wholes in thirds[?|, how many?]
# a * 4 | a=1-30
how many [quarters|fourths] [make|are in|are] {a}[ wholes| whole ones|][?|]
# a * 2 | a=1-60
how many halves [make|are in|are] {a}[ wholes| whole ones|][?|]
# a * 5 | a=1-30
how many fifths [make|are in|are] {a}[ wholes| whole ones|][?|]
# 100 / 4 * 3 | a=1-2
[three quarters|three fourths|3/4|3 quarters] of a dollar in cents[?|]
# 100 / 4 | a=1-2
[a quarter|one fourth|1/4] of a dollar in cents[?|]
# 100 / 2 | a=1-2
half a [dollar|euro] in cents[?|]
# 100 / 5 * 2 | a=1-2
[two fifths|2/5] of a dollar in cents[?|]
# d = a / b; d * c | b=3 c=2 e=1-40 a==3*e
2 thirds of {a}[?|]
[two thirds|2/3|two-thirds] of [the|a class of|] {a} [kids|people|eggs|pages|][?|, how many?| is how many?]
# d = a / 5; d * 2 | e=1-30 a==5*e
two fifths of {a} [kids|people|eggs|][?|, how many?| is how many?]
# d = a / 5; e = d * 2; a - e | f=1-30 a==5*f
two fifths of the {a} [cookies|eggs|{t}] were [eaten|sold|used], how many are left[?|]
# d = a / 4; d * 3 | e=1-40 a==4*e
a tank of {a} [liters|gallons] is [three-quarters|three quarters|3/4] full, how [much|many liters] [is|are] in it[?|]
[three quarters|three-fourths|3/4] of {a} [kids|people|minutes|][?|, how many?]
# a / 3 | b=1-40 a==3*b
a third of [a class of |the |][{a}|{a} kids|{a} people|{a} eggs] [is|are] [ill|sick|away|gone|red]. How many [are ill|are that|is that|are they][?|]
a pizza has {a} slices and I eat a third, how many do I eat[?|]
I [read|ate|used|sold] [a third|one third|1/3] of {a} [pages|slices|{t}][.|,|;] how many [is that|did I][?|]
# a / 4 | b=1-40 a==4*b
a quarter of [a class of |the |][{a}|{a} kids|{a} people|{a} eggs] [is|are] [ill|sick|away|gone|red]. How many [are ill|are that|is that|are they][?|]
# d = a / 4; a - d | b=2-60 a==4*b
{x} spent a quarter of {his} ${a}. How much [remains|is left|does {he} have left][?|]
{x} had ${a} and spent [a quarter|one quarter|1/4|25%] of it. How much is left[?|]
# d = a * b; 100 - d | a=2-9 b=2-9
100 - {a}*{b}[?|=|]
one hundred minus {a} times {b}[?|]
# 60 - a | a=5-55
[what|how many] minutes [are left|remain] in an hour after {a}[?|]
# d = a - b; d / c | c=2-9 e=2-12 b=1-9 a==b+c*e
{x} [knitted|made|drew|wrote|carved|grew] {a} {t}, kept {b} and [divided|split|shared|gave] the rest [equally |evenly |][among|to] {his} {c} [grandchildren|nieces|friends|pupils]. How many [did each receive|for each|does one get|each][?|]
# d = a * b; d - c | a=2-9 b=2-12 c=1-9
there are {a} [floors|streets|blocks] with {b} [flats|apartments|houses] each; {c} [stand empty|are empty|are for sale]. How many are [lived in|occupied|not empty][?|]
{a} [vans|boats|planes] with {b} [seats|places] each, {c} of them [broken|taken by staff|free]. How many [people can ride|are left for guests][?|]
{a} [weeks|days] of {b} [hours|lessons] each, {c} of which were [cancelled|free]. How many [took place|were held|remain][?|]
# d = a * b; c - d | a=2-9 b=2-12 e=1-20 c==a*b+e
from {c} [tulips|roses|flowers|pencils] a [florist|clerk] [ties|makes] {a} [bunches|bouquets|bundles] of {b}. How many [are|remain|stay] [loose|left over|single][?|]
we want {a} [pictures|lamps|shelves] on each of {b} [walls|floors] but have {c}. How many are [too many|left over][?|]
every [#day|week] the [baker|cook|farmer] [uses|needs|takes] {b} [kg|bags|liters]; the store has {c}. How much is there after {a} [#days|weeks][?|]
a {c} minute [playlist|tape|show]: {a} [songs|pieces] of {b} minutes were played. How many minutes are left[?|]
# d = a * b; d - c | a=2-9 b=2-12 c=1-20
we want to [hang|put up|plant] {a} [pictures|lamps|bushes] [on|at] each of {b} [walls|houses|doors] but [own|have] only {c}. How many more do we need[?|]
each of {a} [kids|guests] needs {b} [cups|cards|chairs], {c} are there. How many [are missing|more are needed][?|]
{x} sold {a} [jars|bags|boxes] of [jam|nuts|soap] at {b} and spent {c} on [sugar|material|the stand]. [What did {he} make|Gain|Profit][?|]
a playlist of {a} songs, {b} minutes each. {x} has [heard|listened for] {c} minutes. How many [minutes |][to go|are left][?|]
# d = a + b; c - d | a=1-40 b=1-40 e=1-60 c==a+b+e
our [bus|boat|hall|plane] [seats|holds|takes] {c}. {a} [got on|came] at the first [stop|call] and {b} at the second. [Free seats|How many seats are free|How many places are left][?|]
the [school|club|shop] [ordered|got|bought] {c} [chairs|tablets|balls], {a} came broken and {b} [more |][got|were] stolen; how many can be used[?|]
{c} [tickets|seats|cakes] in all: {a} sold [early|online], {b} sold [late|at the door]. [Unsold|How many were not sold|Left][?|]
# d = a - b; d / c | c=10,20,25,30,40,50,60 e=2-12 b=100,200,300,50,150,600 a==b+c*e
{x} types {c} words a minute. The text has {a} words, {he}'s done {b} already. [Minutes left|How many more minutes|How long will the rest take][?|]
{x} [saves|earns|gets] {c} a week, needs {a} and has {b}. How many [more |]weeks[?|]
a {a} page [script|book], {b} pages are read, {c} a day from now on. How many days[?| are left?]
# d = a * 2; a + d | a=2-200
[tickets sold|visitors|calls|goals|steps]: {a} on {day}, [double|twice] that on {day2}. [How many over both days|How many on both days|Total|In all][?|]
there were twice as many [#sheep|hens|boys|cats] as [#goats|ducks|girls|dogs]. {a} [#goats|ducks|girls|dogs]. How many [animals|in all|together][?|]
# d = a * 3; a + d | a=2-300
{x} [#drank|ran|used|earned] {a} [#ml|m|liters|dollars] in the morning and three times that in the afternoon. How many [#ml|m|liters|dollars] in all[?|]
{a} on {day} and three times as many on {day2}. Together[?|]
# d = a - b; d + c | a=10-60 b=1-9 c=1-20
on {day} {a} [kids|people] [swam|came|sang], on {day2} {b} fewer and on {day3} {c} more than on {day2}. How many on {day3}[?|]
I climb {a} steps, go back {b}, climb another {c}. On which step am I[?|]
{x} walks {a} blocks [#north|up], {b} back and {c} [#north|up] again. How far is {he} from the start[?|]
a [pond|tank|cage|park] had {a} [fish|birds|swans|frogs]. A [heron|cat|fox|storm] [ate|took|killed] {b}, then {c} new ones were put in. [How many now|How many are there|Now][?|]
# d = 12 * c; e = a - b; e + d | a=10-60 b=1-9 c=1-5
a [pond|tank|farm|park] had {a} [fish|birds|hens|frogs]. {b} [were eaten|died|left], then {c} dozen [new ones |][came|were put in|were bought]. [How many now|How many are there|Now][?|]
# d = a - b; c * d | a=5-30 e=1-4 b==e c=2-9
what do {c} [adults|people|kids] pay if a [ticket|meal|seat] is {a} dollars and everyone has a {b} dollar [voucher|coupon|discount][?|]
# d = a + b; a + d | a=2-30 b=1-20
{y} owns {b} [ties|hats|{t}] more than {x}. {x} owns {a}. How many do they own [jointly|together|in all][?|]
# d = a / b; d - c | b=2-6 e=12-90 a==b*e c=1-10
a [carpenter|tailor] cuts a {a} cm [plank|ribbon|board] into {b} equal parts and shortens one by {c} cm. [Its length|How long is it|How long is that one][?|]
{a} [players|people] in {b} equal teams, then {c} leave every team. How many are in a team now[?|]
# d = a * b; e = d + c; f - e | a=2-5 b=2-9 c=1-9 g=1-30 f==a*b+c+g
{x} buys {a} kg of [grapes|nuts|cheese] at {b} [euros|dollars] a kilo and a [melon|bread|cake] for {c}. {He} pays with a {f}. [Change|How much change|What comes back][?|]
# d = a / 2; d - b | c=5-40 a==2*c b=1-c
half of {a} [students|kids|guests] [#speak French|play chess|sing], {b} of those also [#Spanish|checkers|dance]. How many [only the first|do only the first][?|]
# a * b | a=2-12 b=2-60
what's the total weight of {a} [sacks|crates|bags] if one weighs {b} kg[?|]
{a} rows of [desks|chairs|trees], {b} a row, makes[?| how many?]
{x} owes {a} people {b} [bucks|dollars] each, what's {his} total debt[?|]
{a} spiders with {b} legs each, count the legs[.|]
[sleeping|working|reading] {b} hours each [#night|day], how many hours in {a} [#nights|days][?|]
a [family|crew|class] of {a}, {b} [apples|euros|tickets] per head[:|,|.] [total|how many|in all][?|]
# a * 7 | a=2-30
how many hours did {x} [#sleep|work|train|read] in a week if {he} [#sleeps|works|trains|reads] {a} each day[?|]
{a} a day, per week[?|]
# a - b | b=1-60 c=1-60 a==b+c
{b} of the {a} [#balloons|lamps|cups|eggs] [#burst|broke|fell|are gone] so [___|...|how many] are left[?|]
a [pack|herd|flock|group|team] of {a} loses {b}, leaving how many[?|]
a [pack|herd|flock|group] of [wolves|cows|geese|deer] with {a} [members|animals] loses {b}[,|.] [how many are left|leaving how many][?|]
I am {b} pages into a {a} page [comic|book|novel]; pages remaining[?|]
the [crowd|herd|pile|class|stock] of {a} shrank by {b}, how [big|large] is it[?|]
{x} is {b} cm [short of|away from|below] {a} cm. How tall is {he}[?|]
# a + b | a=1-60 b=1-60
my [brother|sister|friend] got {a} [postcards|points|votes] and that's {b} fewer than me, so I got[?| how many?]
the [elevator|lift] went from floor {a} up {b} floors, where is it[?|]
after [a haircut|cutting off|losing|giving away] {b} [cm|] [it|my hair|the rope] is {a} cm [long|], [what was it before|how long was it before][?|]
the [crowd|herd|pile|class|stock] of {a} grew by {b}, how [big|large] is it[?|]
# a + b | a=1-9 b=.1-9 | dec
to a [pot|jug|tank] with {a} liters {x} adds {b}, how much is in it[?|]
# d = a / b; d * c | b=2-6 e=10-100 a==b*e c=2-12
the recipe is for {b}, [needs|takes] {a} g [rice|flour|sugar], I cook for {c}, how many grams[?|]
{b} [notebooks|hats|pens|keys] are {a} dollars, so {c} are[?| how much?]
a [#copier|scanner|robot]: {a} [#copies|pages|parts] in {b} minutes. In {c} minutes[?|]
# a / b | b=2-9 c=2-20 a==b*c
one [#gardener|painter|worker|cook] [needs|takes] {a} [h|hours|days], how long would {b} [#gardeners|painters|workers|cooks] [need|take][?|]
if {b} [friends|kids] split {a} [stickers|dollars|nuts] what does each end up with[?|]
[two|{b}] [hikers|runners] do {a} km in {b} hours, [pace|speed] in km per hour[?|]
earning ${b} an hour, I need {a}. Hours to work[?|]
# a * b / 60 | a=60,120,180,240,300,360,480,500,600 b=15,30,45,20,10
I burn {a} calories an hour [jogging|walking|swimming]; {b} minutes[?|, how many?]
{a} [parts|words|liters] an hour, how many in {b} minutes[?|]
# a * 60 | a=2-60
a faucet [leaks|loses] {a} drops a second. Drops per minute[?|]
{a} a second is how many a minute[?|]
# a * b | a=2-9 b=24,36,48
it [rains|snows|leaks] {a} [mm|liters] an hour. How much in {b} hours[?|]
# d = 1000 / a; d * b | a=100,200,250,500 b=$1-9 | dec
{a} grams cost {b}[,|.] [price of|what's] a kilo[?| then?]
# a + a / 10 | b=1-40 a==b*10
what's {a} plus a tenth of it[?|]
{a} and a tenth of {a} more[?|]
# d = a * b; e = d / 100; a - e | a=20,40,50,60,80,100,200,250,400,500 b=5,10,15,20,25,30,40,50,60
out of {a} [#emails|seeds|votes], {b}% were [#spam|dead|void]. How many were not[?|]
my [weight|rent|bill|score] [fell|dropped|went down] {b}% from {a}. [New weight|What is it now|New value][?|]
# d = a * b; e = d / 100; a + e | a=20,40,50,60,80,100,200,250,400,500 b=5,10,15,20,25,30,40,50
[service|the service charge|tax] is {b}%, the [meal|bill|item] {a} [dollars|euros], what do [we|I] pay [altogether|in all][?|]
# d = b + 100; e = a * 100; e / d | b=10,20,25,50,100 c=1-20 a==(b+100)*c/5
the price with {b}% tax is {a}, without tax[?|]
{a} includes {b}% tax[.|,] [what is it without|price without tax][?|]
# d = a * 100; d / b | b=10,20,25,30,40,50,60,75 c=1-40 a==b*c/5
if {b}% is {a}, what's 100%[?|]
{b}% are {a}. The whole[?|]
# d = a - b; d / c | c=2-4 e=3-20 b=1-6 a==c*e+b
{x} is {a}, {c} times as old as {y} plus {b}. How old is {y}[?|]
# d = a * 2; d - b | a=5-40 b=1-5
my {kin} is {a} and I'm twice that minus {b}[.|, how old am I?|. My age?]
# d = a * 2; d + b | a=5-40 b=1-5
my {kin} is {a} and I'm twice that plus {b}[.|, how old am I?|. My age?]
# d = a + b; d + c | a=2-40 b=2-40 c=2-40
sum of [the |]ages of {x} ({a}), {y} ({b}) and {z} ({c})[?|]
{a}, {b} and {c} years old: how old [together|in all][?|]
# a - 12 | a=13-80
what age was somebody who is {a} a dozen years ago[?|]
if you're {a} now, what age were you a dozen years ago[?|]
# a * 2 | a=4-60
half my age is {a}. [My age|How old am I][?|]
# a - b | b=1-20 c=1-60 a==b+c
our [cat|dog|baby|club] turns {a} in {b} years. [Now|How old is it now|Age now][?|]
# (a + b) / 2 | a=3-30 c=1-15 b==a+2*c
what is exactly [between|halfway between|in the middle of] {a} and {b}[?|]
# d = a - 2 * b; d / 2 | b=1-20 c=1-20 a==2*b+2*c
rectangle perimeter {a}, [width|one side] {b}. [Length|Other side][?|]
# d = a / 4; d * d | b=1-20 a==4*b
a square has a perimeter of {a}. [Its area|Area][?|]
# 360 - a | a=100-350
the angles of a [quadrilateral|four-sided shape] add up to 360. Three [of them |]make {a}. The fourth[?|]
"""

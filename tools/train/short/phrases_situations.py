"""Wordings of situations: other units than those asked for, whole things, numbers of no use, groups with none."""

SITUATIONS = """
# d = a * 1000; d / b | a=2-8 b=100,125,200,250,500
a [jug|bottle|carafe|can|pot] [holds|has|contains] {a} [liters|litres|l][ of water| of juice| of tea|]. How many [glasses|cups|mugs] of {b} ml can [be filled|I fill|you pour|we pour][ from it|][?|]
how many [glasses|cups|bowls|flasks] of {b} ml [are there|can I pour|do we get|will there be] [in|from|out of] {a} [liters|litres|l] of [juice|milk|soup|punch|lemonade][?|]
{a} [liters|litres|l] of [lemonade|milk|cola|paint] [poured|filled|go] into {b} ml [glasses|cups|tins|bottles][.|;|,|:] [how many|how many glasses|how many of them][?|]
[a|my|the] [glass|cup|mug] [takes|holds|is] {b} ml and [the|my] [bottle|jug|pot] {a} [liters|litres|l]. How many times can I fill the [glass|cup|mug][?|]
a child drinks {b} ml [a|per|every] day. For how many days [do|will] {a} [liters|litres|l] [last|be enough][?|]
[I|we] [use|need|take] {b} ml of [soap|milk|oil|cleaner] [each|every] time. How often can [I|we] do that with {a} [liters|litres][?|]
serving size {b} ml, [bottle|pot|keg] {a} l[.|,|;] how many servings[?|]
a bag of {a} kg [of rice|of potatoes|of flour|of dog food|], we [eat|use|need] {b} g a day. [For how many days is it enough|How many days does it last|How long does it last in days][?|]
[the|our|my] [dog|cat|horse|hamster] eats {b} g [a day|per day|daily|every day]. How many days [does|will] a {a} kg [bag|sack] [of food |][last|feed it][?|]
{a} kg of [sugar|coffee|nuts|sweets|rice] [are|is] [packed|filled|sorted] into bags of {b} g. How many bags [are there|is that|do we get|will there be][?|]
{x} [bakes|makes] rolls of {b} g from {a} kg of dough. How many rolls [does {he} get|are there|is that][?|]
how many {b} g [portions|bags|packs|jars] [can be made from|are in|do you get out of] {a} kg of [cheese|jam|honey|rice|clay][?|]
a [letter|tile|ball|battery] weighs {b} g. How many [of them |]weigh {a} kg[ together|][?|]
one lap is {b} m. How many laps [are|make|for] {a} km[?|]
{x} wants to [run|swim|walk] {a} km. [Each|One|Every] lap has {b} m. How many laps is that[?|]
there is a [lamp|tree|bench|sign] every {b} m along a road of {a} km. How many sections are between them[?|]
# d = a * 100; d / b | a=2-9 b=5,10,20,25,50,4,40
how many {b} cm pieces can [I|you|{x}|we] [saw|cut|snip|make] from a [plank|board|rope|ribbon|wire] of {a} m[?|]
a {a} m [ribbon|rope|cable|pipe|plank] is [cut|sawn|divided] into pieces [of|that are] {b} cm[ long| each|]. How many pieces [are there|do you get|is that|does it give][?|]
[each|a|one] tile is {b} cm [wide|long]. How many tiles [fit along|go along|do I need for|cover] a [wall|floor|shelf] of {a} m[?|]
books {b} cm thick stand on a shelf {a} m long. How many books [fit|are there|is that][?|]
{x} [puts|plants|sets] a [flower|pole|candle|stone] every {b} cm along {a} m. How many gaps [are there|is that][?|]
a [stair|step] is {b} cm high. How many steps [lead|go|to get] up {a} m[?|]
{x}'s [step|pace|jump|hop] is {b} cm long. How many [steps|of them] for {a} m[?|]
from {a} m of [cloth|wire|string], {x} makes [bows|bracelets|hooks|strips] of {b} cm each. How many [does {he} get|are there|can {he} make][?|]
[{a}|a {a}] m shelf, boxes {b} cm wide, how many side by side[?|]
a snail [crawls|creeps|goes] {b} cm [a|per|every] minute. How many minutes for {a} m[?|]
a [roll|sweet|stamp|sticker] costs {b} cents. How many [can I buy for|do I get for|for] {a} [#euros|dollars][?|]
how many [stickers|sweets|stamps|rolls] at {b} cents [each |]can {x} [buy|get|afford] [with|for] {a} [#euros|dollars][?|]
{x} has {a} [#euros|dollars]. A [gum|pencil|balloon|cookie] is {b} cents. How many [can {he} get|is that|does {he} get][?|]
# d = a * 60; d / b | a=2-12 b=5,10,12,15,20,30,6,4
a [haircut|lesson|bus ride|check-up|call] takes {b} minutes. How many [fit in|can be done in|are possible in] {a} hours[?|]
[the|a] [barber|dentist|vet|teacher|doctor] needs {b} minutes [per|for each] [customer|patient|child|animal]. How many [can he see|does he manage|are seen] in {a} hours[?|]
a [bus|ferry|tram|shuttle] leaves every {b} minutes. How many leave in {a} hours[?|]
{b} [#laps|rounds|pages|songs] take {x} {a} minutes. How many seconds [per|for one|is one] [#lap|round|page|song][?|]
{x} does {b} [laps|rounds|sets] in {a} minutes, [always the same time|all equally long]. How many seconds does one take[?|]
how many {b} minute [breaks|songs|talks|films|slots] fit [in|into] {a} hours[?|]
{a} hours are [split|divided] [evenly |equally |]among {b} [pupils|speakers|talks|tasks]. How many minutes [for each|each|does each get][?|]
a machine makes one [chair|part|toy|doll] every {b} minutes. How many [in|after] {a} hours[?|]
an advert lasts {b} seconds. How many fit into {a} minutes[?|]
# d = a * 1000; d - b | a=2-6 b=50,100,150,200,250,300,350,400,450,500,600,700,750,800,900
a recipe [needs|takes|calls for|asks for] {b} g of [flour|sugar|rice|nuts]. I have [a {a} kg bag|{a} kg]. How many grams [are left over|remain|are left|stay in the bag][?|]
[from|out of] a {a} kg [sack|bag|pack] [of sugar|of rice|of sand|] {b} g are [taken|used|spilled|poured out]. How many grams [are left|remain|are still in it][?|]
a [bottle|jug|can] [with|of] {a} [liters|litres|l], {b} ml [drunk|spilled|poured out|used][.|,|;] how many ml [remain|are left|are still in it][?|]
{x} [spills|drinks|pours away|uses up] {b} ml of {his} {a} [liters|litres] of [juice|milk|water]. What is left in ml[?|]
{x} has to [walk|run|swim|bike] {a} km and has [done|covered|managed] {b} m. How many meters are [left|still to go|missing][?|]
the [melon|parcel|baby|turkey] weighs {a} kg, the [apple|box|hat|pear] {b} g. How many grams heavier is the [first|heavier one][?|]
{b} g short of {a} kg is how many grams[?|]
of {a} tons of coal {b} kg [are|were] [burned|sold|lost]. How many kg [are left|remain][?|]
I need {a} kg but the scale shows {b} g. How many grams are missing[?|]
# d = a * 1000; d + b | a=2-9 b=50,100,150,200,250,300,350,400,450,500,600,700,750,800,900
{a} [liters|litres] of [milk|juice] plus {b} ml of water[.|,|:] how many ml[ is that| in all| altogether|][?|]
{x} buys {a} kg of [potatoes|apples|meat] and {b} g of [butter|cheese|mushrooms]. How many grams [is that|does it all weigh|in all|to carry][?|]
{x} walked {a} km and then {b} m more. How many meters [in all|is that|altogether][?|]
a [cat|baby|bag] weighed {a} kg and [gained|is heavier by|put on] {b} g. What does it weigh in grams[?|]
[to|into] {a} l of [soup|punch|paint] [we|they] [add|stir|pour] {b} ml. How many ml [is it|are there|is that] now[?|]
# d = a * 100; d - b | a=2-9 b=5,10,15,20,25,30,35,40,45,50,60,65,70,75,80,85,90
a [rope|plank|pipe|scarf] is {a} m long. {x} [cuts off|saws off|shortens it by] {b} cm. How many cm [are left|is it now|remain][?|]
the [snow|door|hedge|fence] is {a} m high, the [dog|gate|wall|chair] {b} cm. How many cm higher is the [first|taller one][?|]
{x} has {a} [#euros|dollars] and [spends|loses|pays|gives away] {b} cents. How many cents are left[?|]
a [snack|drink|toy] costs {b} cents. {x} pays with {a} [#euros|dollars]. [How many cents does {he} get back|Change in cents][?|]
of {a} m of [ribbon|wire|cloth] {b} cm are [used|needed|cut off]. How many cm [remain|are left][?|]
how many cm taller is a {a} m [pole|tree|man|door] than a {b} cm [dog|child|stool|plant][?|]
# d = a * 100; d + b | a=2-9 b=5,10,15,20,25,30,35,40,45,50,60,65,70,75,80,85,90
a tree was {a} m tall and grew {b} cm. How many cm [is it now|tall is it][?|]
{x} has {a} [#euros|dollars] and finds {b} cents. How many cents [is that|does {he} have][?|]
two [boards|ropes|tables] of {a} m and {b} cm end to end[:|,|.] [how many cm|how long in cm|length in cm][?|]
# d = a * 60; d - b | a=2-6 b=5,10,12,15,18,20,25,30,35,40,45,50,55
a [test|match|meeting|flight] lasts {a} hours and {b} minutes [are over|have gone|have passed]. How many minutes [are left|remain|to go][?|]
{x} has {a} hours [of free time|for lunch|of screen time|]. {He} [spends|uses|loses] {b} minutes [on the phone|waiting|in line|]. How many minutes remain[?|]
the [ride|drive|walk] takes {a} hours by [bus|bike|foot] but {b} minutes by [car|train]. How many minutes [shorter|faster] is the second[?|]
# d = a * 60; d + b | a=2-6 b=5,10,12,15,18,20,25,30,35,40,45,50,55
a [film|show|play] of {a} hours has a break of {b} minutes. How many minutes [in all|altogether|is that in total][?|]
{x} works {a} hours and [drives|walks|waits] {b} minutes. How many minutes is that[ altogether| together|][?|]
the roast needs {a} hours in the oven and {b} minutes to rest. [Total|How long is that] in minutes[?|]
# d = a * 1000; e = b * c; d - e | a=1-3 b=2-8 c=50,100,125,150,200,250,300
I drank {b} [glasses|cups|mugs] of {c} ml [from|out of] a {a} [liter|litre|l] [bottle|jug|can][.|,] [How many ml remain|how many ml are left|What is left in ml][?|]
a [jug|pot|bottle] holds {a} [liters|litres]. {b} [people|kids|guests] [each |][drink|take|pour out] {c} ml each. How many ml [are left|remain|stay in it][?|]
from {a} kg of [flour|sugar|clay|meat] {x} uses {b} portions of {c} g. How many grams [are left|remain|does {he} keep][?|]
{x} runs {b} laps of {c} m and wants to reach {a} km. How many meters are missing[?|]
a {a} kg [cake|cheese|fish] is cut: {b} [pieces|slices] of {c} g are sold. How many grams [are left|remain][?|]
# d = a * 100; e = b * c; d - e | a=1-6 b=2-6 c=5,10,15,20,25,30,40,50
from a {a} m [plank|ribbon|rope|pipe] {b} pieces of {c} cm are [sawn off|cut off|taken]. How many cm [are left|remain|is the rest][?|]
{x} buys {b} [rolls|stamps|sweets|pens] at {c} cents and pays with {a} [#euros|dollars]. [How many cents does {he} get back|How many cents are left|Change in cents][?|]
{a} m of [cloth|wire|rope], {b} pieces of {c} cm used[.|,|;|:] [what's left in cm|how many cm left|how many cm remain][?|]
# a * b / 1000 | a=2-12 b=50,100,125,150,200,250,300,330,350,400,500,600,700,750,800 | dec
a [box|tin|book|brick|can] weighs {b} g and there are {a} of them. What is the weight in [kg|kilos|kilograms][?|]
{a} [tins|packs|jars|bars] of {b} g [each |][weigh|make|are] how many [kg|kilograms|kilos][?|]
{x} carries {a} [books|bottles|bricks] of {b} g [each|apiece]. How many [kg|kilos] [does {he} carry|is that][?|]
{x} [walks|runs|jogs|rides] {b} m round the [park|lake|block] {a} times. How many [kilometers|km|kilometres] is that[?|]
the way to [school|work|the shop] is {b} m and {x} walks it {a} times. How many [kilometers|km] [in all|altogether|is that][?|]
a [glass|cup|bowl|bottle] holds {b} ml. How many [liters|litres] [are|do] {a} of them[ hold|][?|]
{a} [glasses|cups|bottles|cans] with {b} ml [each|in each]: how many [liters|litres][?|]
[each|every one] of {a} [guests|kids|runners] [drinks|needs|gets] {b} ml of water. How many [liters|litres] [is that|are needed|in total][?|]
for {a} [people|guests] the cook plans {b} g of [meat|pasta|rice] each. How many [kg|kilos] [does he buy|is that|are needed][?|]
# a * b / 100 | a=2-12 b=5,10,15,20,25,30,35,40,45,50,60,65,70,75,80,85,90,95 | dec
I pay {b} cents for a [#bread roll|stamp|banana|pretzel]. What do {a} [#rolls|stamps|bananas|of them] cost in [#euros|dollars][?|]
a [sticker|candy|pencil|copy|balloon] costs {b} cents. How many [#euros|dollars] for {a}[?|]
{x} [saves|finds|puts aside] {b} cents [a|every|each] day. How many [#euros|dollars] after {a} days[?|]
{a} [boards|bricks|books|tables] of {b} cm [in a row|end to end|next to each other] [are|reach] how many [m|meters][?|]
each of {a} steps is {b} cm [high|tall]. How many meters is that[ in all|][?|]
a [plant|hedge|stalactite] grows {b} cm [a|per|every] year. How many meters in {a} years[?|]
{x} sells {a} [cups of lemonade|cookies|cards] for {b} cents each. How many [#euros|dollars] does {he} [take in|earn|get][?|]
# a * b / 60 | a=2-12 b=15,30,45,90 | dec
{a} [lessons|songs|calls|trips] of {b} minutes [each |]are how many hours[?|]
{x} [practices|reads|walks|trains] {b} minutes [a|every|each] day. How many hours [is that |]in {a} days[?|]
a [wash|bake|print|charge] takes {b} minutes. How many hours do {a}[ of them|] take[?|]
the bus ride is {b} minutes and {x} takes it {a} times [a|each] week. How many hours a week is that[?|]
# d = a * 1000; d / b | a=.1-6 b=2,3,4,5,6,8,10
a {a} [liter|litre] bottle of [lemonade|water|cola] is shared by {b} [children|friends|people]. How many ml does each [one |]get[?|]
{b} [friends|kids] share {a} [liters|litres|l] of [juice|milk] [evenly|fairly|equally]. How many ml [for each|each|does each get][?|]
{a} kg of [clay|nuts|cherries|dough] [are|is] [divided|split|shared] into {b} equal [lumps|bags|parts]. How many grams [is each|are in each|for one][?|]
{b} equal [laps|stages|trips] make {a} km. How many meters is one[?|]
{b} [tins|apples|books], all the same, weigh {a} kg together. How many grams does one weigh[?|]
# d = b * c; a / d | b=2-9 c=2-5 e=2-12 a==b*c*e
cough syrup: {a} ml, {b} ml {c} times a day. How many days does it last[?|]
[medicine|syrup|a bottle] of {a} ml, dose {b} ml [taken|given|] {c} times [a|per|each] day[.|,|;] [how many days|how many days does it last|for how many days][?|]
a pack of {a} pills. {x} takes {b} [pills |]{c} times a day. How many days [does it last|is it enough|until it is empty][?|]
[the|our] {c} [cats|dogs|horses|rabbits] each eat {b} [cans|carrots|scoops] a day. How many days do {a} last[?|]
{a} [sheets|stickers|nails|tiles], {c} [kids|workers|people] each [using|needing|taking] {b} [a|per] day[.|:|;|,] [how many days|for how many days is it enough|how long in days][?|]
{c} [printers|ovens|machines] make {b} [pages|rolls|toys] each [a|per] minute. How many minutes for {a}[?|]
{c} [friends|painters|typists|pickers] [do|manage|finish] {b} [rooms|pages|baskets|fences] a day each. How many days [for|do they need for] {a}[?|]
# a + b | a=500 b=50,100,150,200,250,300,350,400,450
half a [liter|litre] of [milk|juice|water] plus {b} ml of [water|cream|oil][.|:|,] [How many ml|how many ml in all|in ml][?|]
half a [kilo|kg] of [flour|butter|apples] and {b} g of [sugar|nuts|pears][.|:|,] [How many grams|how many grams together|weight in grams][?|]
{x} walked half a [kilometer|km] and then {b} m. How many meters [is that|in all][?|]
# a - b | a=500 b=50,100,150,200,250,300,350,400,450
half a [liter|litre] of [milk|juice] minus {b} ml [drunk|spilled] [is|leaves] how many ml[?|]
{x} has half a [kilo|kg] of [flour|butter|rice] and [uses|needs|takes] {b} g. How many grams [are left|remain][?|]
of half a [kilometer|km] {x} has [run|gone|done] {b} m. How many meters [are left|to go|remain][?|]
# a - b | a=250 b=20,50,75,80,100,120,150,200
a quarter [liter|litre] of [cream|milk] minus {b} ml [is|leaves] how many ml[?|]
{x} bought a quarter kilo of [butter|ham|nuts] and used {b} g. How many grams are left[?|]
# a + b | a=750 b=50,100,150,200,250
three quarters of a [liter|litre] and {b} ml [are|make] how many ml[?|]
{x} mixes three quarters of a [liter|litre] of water with {b} ml of syrup. How many ml[ is that|][?|]
# d = a * 12; d / b | a=2-9 b=2,3,4,6
{a} dozen [eggs|rolls|roses|donuts] are shared by {b} [kids|families|people|tables]. How many [for each|each|does each get][?|]
{x} uses {b} eggs for one [#cake|omelet|pie]. How many [#cakes|omelets|pies] [can {he} make |]from {a} dozen eggs[?|]
{a} dozen [pencils|buttons|candles] in packs of {b}[.|,|:] how many packs[?|]
# d = a * 12; d - b | a=2-9 b=2-11
{a} dozen [eggs|rolls|roses|donuts] were bought and {b} [broke|wilted|were bad|were eaten]. How many [are left|are fine|remain][?|]
of {a} dozen [oysters|buttons|muffins|bottles] {b} are [missing|gone]. How many are [left|still there][?|]
# d = a * 7; d - b | a=2-9 b=2-13
a [vacation|trip|course] of {a} weeks, {b} days [are over|have passed|are gone][.|:|,|;] how many days are left[?|]
{x} is [away|in the hospital|on a ship] for {a} weeks. {b} days are over. How many days [remain|are left|to go][?|]
# d = a * 7; d * b | a=2-6 b=2-9
{x} [drinks|eats|uses|needs] {b} [cups|eggs|pills|bags] a day. How many in {a} weeks[?|]
how many [pills|meals|eggs] for {a} weeks at {b} a day[?|]
[the|a] [hen|cat|baby] needs {b} [handfuls|cans|bottles] daily. How many for {a} weeks[?|]
# d = a * b; d * 7 | a=2-9 b=2-6
{a} hens lay {b} eggs [a day each|each a day|each per day]. How many eggs in a week[?|]
{a} [kids|workers|cats|rooms] each [use|need|get|eat] {b} [towels|cups|cans|sheets] [a|per|every] day. How many [is that |][in a|a|per] week[?|]
[each|every] day {a} [bakers|cooks] [bake|make] {b} [cakes|trays] each. How many [in|after] [a|one] week[?|]
# a // b | b=3-12 c=1-12 e=0-b a==b*c+e
a [ticket|book|pizza|comic|ball|toy] costs {b} [#euros|dollars]. With {a} [#euros|dollars], how many [can I get|can {x} buy|can we afford|are possible][?|]
I have {a} [dollars|euros|coins]. A [pen|cap|cake|ride] is {b}. How many [can I buy|can I get|at most][?|]
how many [tickets|rides|burgers|plants] at {b} [#euros|dollars] [each |]can {x} [buy|get|pay for|afford] with {a}[# euros| dollars][?|]
{x} has {a} [#euros|dollars] in [cash|coins|{his} pocket]. What is the most {t} that {he} can buy at {b} [#euros|dollars] [each|apiece][?|]
how many full {boxes} of {b} can be [packed|filled|made] with {a} {t}[?|]
{a} {t}, {b} [per {box}|in a {box}|to a {box}][.|,|;|:] how many full {boxes}[?|]
{a} {t} are [packed|put|sorted] in {boxes} of {b}. How many {boxes} [are|get|become] full[?|]
how many whole [teams|groups|rows|sets] of {b} [are there|can be formed|can we make] [from|with|out of] {a} [kids|players|chairs|people][?|]
{a} [meters|m|cm] of [rope|ribbon|cloth|wire], a [bow|flag|dress|fence] takes {b}. How many [whole ones|complete ones|at most][?|]
a [#cake|pie|loaf|pudding] needs {b} eggs. I have {a} eggs. How many [#cakes|pies|loaves|puddings] [at most|can I bake|can I make|are possible][?|]
with {a} eggs in the [fridge|box|kitchen], how many cakes can {x} bake if [each|one|every] cake takes {b}[?|]
[each|one|a] [#necklace|bracelet|key ring] takes {b} beads; {x} [owns|has|finds] {a} beads. How many [whole |complete |][#necklaces|bracelets|key rings][?|]
how many [bouquets|garlands|wreaths] of {b} [roses|flowers|leaves] can a florist [tie|make|bind] [from|with] {a}[?|]
a [table|stool|shelf|toy] is made of {b} [boards|planks|parts|screws]. How many [complete |]ones can {x} build from {a}[?|]
{x} gets a [prize|sticker|free coffee|star] for every {b} [points|stamps|books]. {He} has {a}[ points| stamps| books|]. How many [prizes|of them] is that[?|]
after every {b} [laps|pages|calls|hours] {x} takes a break. How many breaks in {a} [laps|pages|calls|hours][?|]
[every|each] {b} [kids|guests|fans] get one [#pizza|ball|flag]; only full groups count and there are {a}. How many [#pizzas|balls|flags] are handed out[?|]
{x} pays {b} [#euros|dollars] [a|per] [#month|week] and has {a}. For how many full [#months|weeks] is that enough[?|]
a [tank|can|barrel] of {a} liters fills how many [#buckets|bottles|pots] of {b} liters to the top[?|]
{x} can carry {b} {t} at once. How many full loads are {a}[ {t}|][?|]
a [robot|truck|toy car] goes {b} km on one charge. How many [full |]charges has it used up after {a} km[?|]
# ceil(a / b) | b=3-12 c=1-12 e=0-b a==b*c+e
{a} [kids|people|fans|guests|tourists], [#vans|boats|cars|taxis] of {b} seats. how many [#vans|boats|cars|taxis] [are needed|do we need|needed][?|]
{a} [students|hikers|players|soldiers] go by [#van|boat|taxi|cab], {b} in each. How many [#vans|boats|taxis|cabs] [must come|are needed|have to be ordered|do they need][?|]
the [lift|elevator|boat|gondola] takes {b} people. {a} people want to [go up|cross|ride]. How many [rides|trips|runs] [does it make|are needed|is that|must it make][?|]
tables for {b}. [We're|We are|They are] {a}. [How many tables|tables needed|Tables][?|]
{a} guests are to sit at tables for {b}. How many tables [must be set|are needed|do we need|have to be laid][?|]
{a} photos, {b} fit on a page. How many pages does the album need[?|]
[each|one|a] shelf [carries|takes|holds] {b} books. What's the [least|smallest] number of shelves for {a}[ books|][?|]
how many {boxes} [of {b} |]do I need [so that|for] {a} {t} [all fit|to go in] if [one|each] takes {b}[?|]
every {box} has room for {b} {t}. How many {boxes} are needed for all {a}[ {t}|][?|]
{x} has to [carry|move|bring] {a} [boxes|crates|chairs] and takes {b} [at a time|at once|per trip]. How many trips [does {he} make|are needed|is that|at least][?|]
{a} [pages|problems|songs|rooms] to do, {b} a day[.|;|,] [after how many days is {x} done|how many days until all is done|how many days does it take at least][?|]
[eggs|rolls|buns|batteries|tiles] come in packs of {b}. {x} needs {a}. How many packs [must {he} buy|does {he} have to buy|are needed|at least][?|]
[only|just] packs of {b} are sold and we want {a} [cups|plates|candles|hot dogs]. How many packs[ must we buy| do we need|][?|]
{x} has to save {a} [#euros|dollars] and puts aside {b} [a|each|every] week. After how many weeks is it enough[?|]
a bus [seats|holds|carries] {b}. [What is the least number of|How many] buses for {a} [people|pupils|fans][ at least|][?|]
a [#tent|room|cabin|raft] sleeps {b}. How many [#tents|rooms|cabins|rafts] do {a} [scouts|campers|people] need[?|]
[sacks|bags|crates] that hold {b} kg[:|.|;] how many for {a} kg of [potatoes|sand|apples|coal][?|]
a paint can covers {b} square meters. The wall has {a}. How many cans [must {x} buy|are needed|does {he} need][?|]
{a} [letters|parcels|logs] and a [bag|cart|box] for {b}[:|.|,] how [often|many times] does {x} have to walk to bring them all[?|]
no more than {b} people may [go in|enter|ride] at a time. How many [groups|turns|rounds] for {a} people[?|]
{x} reads {b} pages [a|every|each] [#night|day]. On which [#night|day] does {he} finish a book of {a}[ pages|][?|]
# a % b | b=3-12 c=1-9 e=0-b a==b*c+e
{a} [sweets|cards|nuts|coins|{t}] are [dealt out|shared out|handed out|divided] to {b} [children|players|friends|kids] [fairly|equally|evenly]. How many [sweets |cards |]are left over[?|]
{b} [kids|friends|pirates|brothers] [share|split|divide] {a} {t} [fairly|equally]. [How many are left over|What is left over|How many remain undivided|How many can't be shared][?|]
{a} {t} go into {boxes} of {b}. How many [{t} |][are left over|do not fit|remain|stay outside|are loose][?|]
a [ribbon|rope|plank|wire] of {a} [cm|m|inches] is cut [into|in] [bows|pieces|parts] of {b}[ cm| m| inches|]. [What is left over|How long is the leftover|How much is left at the end][?|]
{x} packs {a} {t} in full {boxes} of {b}. How many are [not packed|left over|over|still on the table][?|]
{a} [kids|players|pupils|dancers] form [#teams|groups|rows] of {b}. How many [kids |]have no [#team|group|row][?|]
a comic costs {b} [#euros|dollars]. {x} has {a} and buys as many as {he} can. How much [is left|does {he} have left|money remains][?|]
{x} buys as many {t} as possible at {b} [#euros|dollars] [each|apiece] with {a}[# euros| dollars]. What is left[?|]
I've {a} [dollars|euros], a [#comic|cake|ticket] is {b}. How many [#comics|cakes|tickets] and how much [change|is left][?|]
{a} {t} for {b} {kids}[:|,|.] how many each and how many [left over|over|are left over][?|]
{x} [shares|splits|divides] {a} {t} among {b} {kids}. How many does each get and how many are left over[?|]
how many [{t} |]are left over when {a} [{t} |][are|get] [packed|put|sorted|tied] in [{boxes}|bundles|packs|sets] of {b}[?|]
{a} eggs, {b} for [each|a|every] cake. How many eggs are [not used|left after the last cake|over|left over][?|]
[the|a] teacher makes groups of {b} [from|out of|with] {a} [pupils|students]. How many pupils remain[?|]
{x} saws {b} cm pieces from a {a} cm [plank|pipe|stick] as long as [{he} can|it goes]. [How long is the rest|How many cm are left over|What remains][?|]
{a} [liters|litres] in cans of {b}. How many [liters|litres] [don't fill a can|are left in the barrel|are left over][?|]
# d = a % b; b - d | b=4-12 c=1-9 e=2-b a==b*c+e-1
{a} {t} in {boxes} of {b}. How many more [{t} |][are needed|does it take|are missing] to fill the last {box}[?|]
{x} has {a} {t} and [packs|puts|sorts] them in {boxes} of {b}. How many [are missing in|would it take to fill|more fit in] the last {box}[?|]
{a} [guests|kids|people] sit at tables [of|for] {b}. How many [seats|chairs|places] [stay empty|are free] at the last table[?|]
# d = ceil(a / b); d * c | b=3-9 f=1-6 e=1-b a==b*f+e c=2-30
{a} [kids|people|fans] go in [#vans|boats|taxis] of {b} seats at {c} [#euros|dollars] per [#van|boat|taxi]. What does it cost[?|]
[pencils|cups|batteries] come in packs of {b} at {c} [#euros|dollars]. {x} needs {a}[ pencils| of them|]. What does {he} pay[?|]
{x} needs {a} [tiles|candles|balloons]. A pack has {b} and costs {c} [#euros|dollars]. How much does {he} [spend|pay][?|]
# d = a // b; d * c | b=3-9 f=1-6 e=1-b a==b*f+e c=2-12
for every {b} [bottles|cans|points|stamps] {x} gets {c} [#cents|tokens|stickers|stars]. {He} brings {a}. How many [#cents|tokens|stickers|stars] [does {he} get|is that][?|]
{x} makes [#wreaths|dolls|cakes|frames] from {b} [#leaves|buttons|eggs|sticks] each and sells them at {c} [#euros|dollars]. {He} has {a}[ leaves| buttons| eggs| sticks|]. How much money can {he} make[?|]
{a} eggs are packed in boxes of {b} and the full boxes are sold at {c} [#euros|dollars] each. How much money is that[?|]
# d = a - c; d // b | b=3-9 f=1-9 e=0-b c=2-20 a==b*f+e+c
{x} has {a} [#euros|dollars], [spends|pays] {c} on [food|the bus|a gift] and buys [tickets|cards|comics] at {b} with the rest. How many [can {he} buy|at most|does {he} get][?|]
of {a} eggs {c} are [broken|bad|used for breakfast]. A cake needs {b}. How many cakes [can be baked|at most|are possible][?|]
{a} {t}, {c} [are lost|are given away|go bad], the rest in full {boxes} of {b}. How many full {boxes}[?|]
# d = a - c; ceil(d / b) | b=3-9 f=1-9 e=1-b c=1-20 a==b*f+e+c
{a} [people|kids|fans] [signed up|were expected] and {c} [cancelled|stayed home|fell ill]. The others go in [#cars|boats|vans] of {b}. How many [#cars|boats|vans] are needed[?|]
a book has {a} pages. {x} has read {c} and reads {b} [a|each|every] day from now on. How many days [until the end|does {he} still need|more][?|]
{x} wants a [bike|tent|phone] for {a} [#euros|dollars], has {c} and saves {b} a [#week|month]. After how many [#weeks|months] [is it enough|can {he} buy it][?|]
# d = a + c; ceil(d / b) | b=3-9 f=1-9 e=1-b c=1-9 a==b*f+e-c
{a} [pupils|kids|guests] and {c} [teachers|parents|adults] travel in [#cars|boats|taxis] of {b} seats. How many [#cars|boats|taxis] [do they need|are needed][?|]
{a} [red|big] and {c} [blue|small] {t} must go into {boxes} [of|for] {b}. How many {boxes} [do we need|are needed][?|]
# d = a * b; d / c | a=2-6 b=4,6,8,10,12,20 c=2,3,4
a pack of {b} [#batteries|bulbs|pencils|rolls], a [#remote|lamp|child|guest] takes {c}, how many [#remotes|lamps|children|guests] [can I fill|can I supply|are provided for|is that enough for] with {a} packs[?|]
{x} buys {a} packs of {b} [#batteries|tires|screws|wheels]. [Each|Every] [#toy|bike|hook|cart] needs {c}. How many [#toys|bikes|hooks|carts] [can {he} fit|is that enough for|can {he} equip][?|]
{a} trays of {b} eggs, {c} eggs per [#cake|omelet|guest][.|,|;] how many [#cakes|omelets|guests][?|]
# a + 0 | a=1-40
{x} has {a} {t} and {y} has [none|no {t}|none at all|not a single one]. How many [have they|do they have|are there] [together|in all|altogether][?|]
{place} there are {a} {t} and no {u}. How many {t} and {u} [together|are there in all|is that][?|]
one {box} [has|holds] {a} {t} and the other [is empty|has none|holds nothing]. How many [in both|altogether|in the two][?|]
{x} [sold|caught|made|found] {a} on {day} and [none|nothing|not one] on {day2}. How many [in all|in the two days|altogether|is that][?|]
{a} [#boys|cars|guests] came and no [#girls|bikes|others]. How many [came|in all|is that][?|]
# a - 0 | a=1-40
{x} has {a} {t} and [gives away none|loses none of them|sells none|eats none of them]. How many [are left|does {he} have|remain][?|]
there were {a} {t} {place} and [nobody took any|none disappeared|not one was taken]. How many are there[ now|][?|]
{x} wanted to [sell|give away] {his} {a} {t} but [nobody wanted any|in the end kept all]. How many does {he} have[?|]
how many of {a} {t} are left if none [is|was] [sold|eaten|lost][?|]
# a * b | a=2-6 b=2-9 c=2-6
there are {a} [#tables|boxes|shelves|cars] with {b} [#chairs|cups|books|people] and {c} [#tables|boxes|shelves|cars] with none. How many [#chairs|cups|books|people] [in all|is that|are there][?|]
{a} {kids} have {b} {t} each and {c} others have none. How many {t} [is that|are there|do they have][ in all|][?|]
{x} fills {a} {boxes} with {b} {t} each and leaves {c} {boxes} empty. How many {t}[ is that| are there|][?|]
[only|just] {a} of the {kids} got {b} {t} each, the others got nothing. How many {t} were given out[?|]
on {a} days of the week {x} [runs|rides] {b} km, on the other days [nothing|not at all]. How many km a week[?|]
# a - b | b=1-90 c=0-200 a==b+c d=1-12 e=20-90
at {d} pm {x} [poured out|threw out|gave away|dropped] {b} of {his} {a} {t}. How many [are left|does {he} still have|remain][?|]
on [May|June|March|October] {d} {x} [had|counted|bought] {a} {t} and [lost|sold|used] {b}[ of them|] by the end of the month. How many [are left|remain][?|]
{x}, who is {e}, [caught|picked|found|baked] {a} {t} and [threw|gave|put] {b} back. How many did {he} keep[?|]
{x} ({e}) had {a} {t}. {b} [broke|got lost|were stolen]. How many [are left|now|remain][?|]
[room|class|bus|flight|hall] {d} has {a} [pupils|people|passengers|guests], {b} of them [leave|go home|are called out]. How many [stay|remain|are left][?|]
it was {d} degrees when {b} of the {a} [guests|kids|birds|swimmers] [left|went in|flew off|went home]. How many [stayed|were left][?|]
{x} is {e} years old and has {a} {t}. {He} gives {b} to {y}. How many {t} does {x} have now[?|]
the [shop|office|café] opens at {d}. Of {a} {t} {b} are sold [before noon|that day|in the first hour]. How many are [left|unsold|still there][?|]
{x} lives at {e} [Oak|Mill|Park] [Street|Road]. {He} had {a} {t} and [lent|sold|gave] {b} to a neighbor. How many [are left|does {he} have][?|]
{d} o'clock: {a} {t} in the {box}. [Later|An hour later|In the evening]: {b} fewer. How many [then|now|is that][?|]
in [2019|2020|2015|1998|2021] {x} [owned|had|kept] {a} {t}. Since then {b} have been [sold|lost|given away]. How many [are left|remain][?|]
with {d} minutes to go, {x} had [done|solved|answered] {b} of {a} questions. How many [were open|were left|were still to do][?|]
after {d} [days|weeks|hours] {b} of the {a} {t} were [gone|sold|eaten|used]. How many [were left|remained][?|]
page {e} says: of {a} [ships|men|eggs|letters] {b} were lost. How many [were not|came through|remained][?|]
{x} and {his} {d} year old [brother|son|dog] have {a} {t}. {b} are {x}'s, the rest are the other's. How many does the other have[?|]
# a + b | a=2-90 b=2-60 d=2-12 e=20-90
at {d} [am|pm|o'clock] there were {a} [people|cars|kids] {place}, then {b} more [came|arrived]. How many [are there|is that|now][?|]
{x}, {e}, [picked|found|bought] {a} {t} on {day} and {b} on {day2}. How many [in all|altogether|is that][?|]
on [May|June|July] {d} {x} sold {a} {t}, a day later {b}. How many in the two days[?|]
the [dentist|vet|barber|doctor] in room {d} sees {a} [patients|people] before lunch and {b} after[wards|]. How many [in the day|that day|in all][?|]
[bus|train|ferry|line] {e} [starts with|leaves with|carries] {a} [passengers|people], and {b} [get on|board|come in]. How many are [on it|aboard|on board][?|]
{x} is {d} and has {a} {t}; {y} is {e} and has {b}. How many {t} do they have [together|in all|altogether][?|]
it is {d} pm. {x} has [written|read|typed|solved] {a} pages and wants to do {b} more. How many will that be[?|]
after {d} years {x} [adds|buys] {b} {t} to {his} {a}. How many [are there|is that|now][?|]
in [2019|2020|2015|1998|2021] there were {a} [houses|families|shops] in the street; {b} have been added. How many [now|are there][?|]
# a * b | a=2-9 b=2-60 d=2-12 e=20-80
a hotel [charged|charges|asks] {x} {b} [#euros|dollars] a night in [2019|2020|May|July], and {he} slept there {a} nights. What did {he} pay[?|]
{x}, {e}, [pays|paid] {b} [#euros|dollars] a [#month|week] for [the gym|a class|the phone]. How much in {a} [#months|weeks][?|]
at {d} pm the [waiter|baker|clerk] brings {a} trays with {b} [#glasses|rolls|cups] each. How many [#glasses|rolls|cups][?|]
on floor {d} there are {a} rooms with {b} [#beds|chairs|desks|lamps] each. How many [#beds|chairs|desks|lamps][?|]
{x} [starts at|begins at|gets up at] {d} and [packs|folds|stamps] {b} [boxes|shirts|letters] an hour. How many in {a} hours[?|]
at {d} [am|pm] {x} begins to [pick|pack|paint], {b} {t} [an|each|every] hour for {a} hours. How many [is that|in all][?|]
{x}'s [shop|stall] at {e} [Park|Mill] Road sells {a} [crates|boxes] of {b} {t} [a|every] day. How many {t} a day[?|]
# a / b | b=2-9 c=2-15 a==b*c d=2-12 e=20-80
at {d} [am|pm] {b} [friends|sisters|hikers] share {a} {t} equally. How many [for each|each|does each get][?|]
grandma, {e}, gives {a} {t} to her {b} grandchildren, the same number to each. How many [does each get|for each|each][?|]
{x} is {e} years old and [deals|hands out|shares] {a} {t} equally to {b} {kids}. How many [does each get|each|for each][?|]
in room {d}, {a} [pupils|players|chairs] are put in {b} equal [rows|groups|teams]. How many in each[?|]
on [May|June|July] {d} {b} [friends|families] split a bill of {a} [#euros|dollars] evenly. What does each pay[?|]
# d = a + b; e = d + c; e * 2 | a=1-9 b=1-9 c=1-9
{x} buys two of each: [apples|cups|pens|tarts] at {a} [#euros|dollars], [melons|plates|books|pies] at {b} [#euros|dollars] and [pineapples|bowls|bags|cakes] at {c} [#euros|dollars]. What does {he} pay[?|]
two [pens|cups|balls] at {a}, two [books|plates|bats] at {b} and two [bags|bowls|nets] at {c} [#euros|dollars][.|,|:] [total|how much in all|what do they cost altogether][?|]
{x} needs {a} [forks|eggs], {b} [knives|apples] and {c} [spoons|rolls] per table for two tables. How many [pieces|things|items] in all[?|]
{x} wants two of everything: {a} dollars for a [hat|cap], {b} for a [scarf|belt] and {c} for [gloves|socks]. How much is that[?|]
# d = a + b; d * 2 | a=1-20 b=1-20
a [tea|coffee|ticket] costs {a} [#euros|dollars] and a [cake|sandwich|drink] {b}. {x} [takes|buys|orders] two of each. What does {he} pay[?|]
two of each: [a pen|a cup|a hat] for {a} and [a book|a plate|a scarf] for {b} [#euros|dollars]. [How much|total|what is the bill][?|]
{x} and {y} both [order|buy|want] a [soup|pizza] for {a} and a [juice|salad] for {b}. How much [for both|together|in all][?|]
[the twins|two friends|my parents] each pay {a} for the [train|show] and {b} for [lunch|snacks]. How much is that [for both|together][?|]
there and back, {x} [walks|rides|drives] {a} km to the [bridge|lake] and {b} km from there to [town|the hut] each way. How many km in all[?|]
# d = a + b; d * c | a=1-20 b=1-20 c=3-9
{c} of each: [a pen|a cup|a hat] for {a} and [a book|a plate|a scarf] for {b} [#euros|dollars]. [How much|total|what is the bill][?|]
{x} [orders|buys|needs] {c} of each, {t} at {a} and {u} at {b} [#euros|dollars]. What is the [total|bill][?|]
every one of the {c} {kids} gets {a} {t} and {b} {u}. How many things [is that|are needed|must be bought][?|]
each of {c} teams has {a} players and {b} coaches. How many people[ in all|][?|]
all {c} [tables|rooms|sets] [need|have] {a} [chairs|cups|beds] and {b} [stools|plates|lamps] each. How many pieces[ in all|][?|]
entry {a}, locker {b} [#euros|dollars], {c} [people|friends|visitors]. [Total|What do they pay|How much in all][?|]
# d = a * b; e = c * f; d + e | a=2-9 b=2-20 c=2-9 f=2-20
{a} [adults|grown-ups|men] at {b} [#euros|dollars] and {c} [children|kids|students] at {f}[# euros| dollars][:|.|,] [entry|total|how much is the entry|what do they pay][?|]
[each|every one] of {a} [men|cooks|big boxes] [carries|makes|holds] {b} [bags|cakes|{t}] and [each|every one] of {c} [boys|helpers|small boxes] {f}. How many [is that|in all|altogether][?|]
{x} [runs|cycles|swims] {b} km on {a} days and {f} km on {c} days. How many km [in all|altogether|is that][?|]
{a} shelves have {b} books each and {c} shelves {f} each. [Books altogether|How many books|How many books in all][?|]
how much are {a} [coffees|roses|pens] at {b} and {c} [cakes|lilies|books] at {f} [#euros|dollars][?|]
{a} [spiders|bikes|tables] with {b} [legs|spokes|chairs] and {c} [beetles|cars|benches] with {f} make how many[ in all|][?|]
{x} scores {b} points in each of {a} games and {f} in each of the other {c}. How many points [is that|in all][?|]
# d = a * b; d + c | a=2-4 b=5-30 c=2-30
{a} [#shelves|boxes|pages] have {b} [#books|pens|stamps] each, one [#shelf|box|page] has {c}. How many [altogether|in all|is that][?|]
a gardener plants {a} rows with {b} tulips each and {c} roses. How many [flowers|plants][?|]
a [#ferry|ship|train] carries {a} [#cars|coaches|wagons] with {b} people each and {c} [#walkers|guards|sailors]. How many people [are aboard|is that|are on board][?|]
{a} pens at {b} [#euros|dollars] and one book for {c}[# euros| dollars][.|:] [Total|What do they cost|How much][?|]
a taxi takes {c} [#euros|dollars] plus {b} per km. What does a ride of {a} km cost[?|]
{x} [starts|begins] with {c} [coins|points|cards] and wins {b} in each of {a} [rounds|games]. How many [at the end|does {he} have then][?|]
[renting|hiring] a [boat|bike|tent] costs {c} [#euros|dollars] plus {b} for each [#hour|day]. What are {a} [#hours|days][?|]
# d = 2 * b; d + c | b=2-40 c=1-40
two [shelves|boxes|classes|buses] have {b} [books|pens|kids|people] each, one has {c}. [How many altogether|How many in all|Total][?|]
{x} [eats|uses|reads|sells] {b} on each of two days and {c} on the third. How many [in all|altogether|in the three days][?|]
a pair of [bags|boxes|trays] with {b} {t} each and a single one with {c}[.|:|,] how many {t}[ in all|][?|]
both {x} and {y} [#bring|have|find] {b} {t}, {z} [#brings|has|finds] {c}. How many do the three [#bring|have|find][?|]
# d = a * b; c - d | a=2-9 b=2-12 e=1-50 c==a*b+e
I had {c} [dollars|euros] and bought {a} [pizzas|books|hats] at {b}[ dollars| euros|] each. [What's left|How much is left|How much remains][?|]
[What|How much] change do I get from {c} [#euros|dollars] for {a} [coffees|teas|tickets] at {b}[?|]
the tank [contains|has|holds] {c} [liters|litres]; {b} [liters |litres |][run|drip|flow] out [each|every|per] hour. What is left after {a} hours[?|]
a book has {c} pages. I read {b} a day for {a} days. How many pages are still unread[?|]
{a} [people|guests] [ate|took] {b} [slices|pieces|nuts] each [out of|from] {c}. How many [were left|are left|remained][?|]
{c} [seats|places|tickets], {a} [buses|groups|families] of {b} [came|arrived|booked]. How many [stay free|are free|are left][?|]
from a {c} m [rope|wire|roll], {x} cuts {a} pieces [of|that are] {b} m. [How much is left|How long is the rest|What remains][?|]
{x} owes {c} [#euros|dollars] and pays back {b} [a|every|each] [#week|month]. How much does {he} [still owe|owe] after {a} [#weeks|months][?|]
there are {c} steps. {x} takes {b} steps [at a time|in one jump] {a} times. How many steps are [left|still to climb][?|]
a school [ordered|has] {c} chairs and sets up {a} rows of {b}. How many chairs are [not used|left over|spare][?|]
# d = c - b; d / a | a=2-12 e=2-15 b=5-90 c==a*e+b
a [bike|phone|guitar|tent|tablet] costs {c} [#euros|dollars]; {x} has {b} and saves {a} [a|per|each|every] month. How many months until [{he} can buy it|it is enough|then][?|]
of {c} eggs, {b} broke; the rest [were|are] packed in boxes of {a}. How many boxes[?|]
{x} wants {c} {t}, [has|owns] {b} and [gets|buys|finds] {a} [a|each|every] day. How many days [does it take|until {he} has all][?|]
[from|of] {c} [sweets|coins|pages] {b} are [put aside|for {y}|gone]; the [remainder|rest] is shared by {a} {kids}. How many [per kid|each|for each][?|]
a tank of {c} liters already holds {b}. A pump adds {a} liters a minute. How many minutes until it is full[?|]
{x} has to [read|write|type] {c} pages, {b} are done. At {a} pages a day, how many [more days|days are left][?|]
a plane is at {c} meters and has to go down to {b}. It sinks {a} meters a second. How many seconds[?|]
# d = c - a; e = d - b; e / f | f=2-6 g=2-12 a=2-30 b=2-30 c==a+b+f*g
from {c} [sweets|coins|cards], {a} are for {x}, {b} for {y}; the remainder is shared by {f} {kids}. How many per [kid|head|person][?|]
{x} has {c} {t}: {a} go to {y}, {b} to {z}, and {f} {kids} share the rest. How many does each of the {f} get[?|]
of {c} [#euros|dollars], {a} go for [food|rent] and {b} for [the bus|heat]. The rest is for {f} [days|weeks|kids]. How much [a day|per week|each|for each][?|]
# d = a * b; e = d - c; e + f | a=3-20 b=3-12 c=1-9 f=1-30
{x}'s album has {a} pages with {b} stamps each. {He} sells {c} stamps and gets {f} as a gift. How many [stamps|stamps are there|now][?|]
{a} [cartons|boxes|crates] of {b} eggs, {c} [are broken|break], {f} more are [laid|found|bought]. How many eggs [are there|now|are fine][?|]
{x} buys {a} packs of {b} [cards|pens], loses {c} and finds {f}. How many [does {he} have|now][?|]
# d = a * b; e = d - c; e - f | a=3-12 b=4-15 c=2-6 f=2-6
{a} [cartons|boxes|trays] of {b} eggs; {c} broken; {f} used for a cake[.|:|,] [eggs now|how many eggs now|how many are left][?|]
{x} has {a} {boxes} with {b} {t}, loses {c} and gives {f} to {y}. How many [are left|remain|does {he} have][?|]
a theater has {a} rows of {b} seats. {c} are broken and {f} are [taken|reserved]. How many seats are [free|left][?|]
# d = a * b; e = c - f; d - e | a=3-9 b=10-40 f=2-20 g=1-20 c==f+g
a parking garage has {a} floors of {b} spaces. {c} cars come, {f} leave. How many [free spaces|spaces are free][?|]
a hall has {a} rows of {b} [seats|chairs]. {c} people sit down and {f} get up and go. How many [seats|chairs] are free[?|]
# d = b + c; e = d * a; e - f | a=5-20 b=2-8 c=2-8 f=1-20
{x} earns {a} [#euros|dollars] an hour, works {b} hours on {day} and {c} on {day2}, then spends {f}[# euros| dollars]. How much is left[?|]
{x} sells {b} [cups|cakes|cards] in the morning and {c} in the afternoon at {a} [#euros|dollars] each and pays {f} for the stall. What does {he} keep[?|]
# d = a * b; e = c * f; g = d + e; g * h | a=2-9 b=2-4 c=2-12 f=2-3 h=2-6
{x} [runs|rides|walks] {a} km on {b} days and {c} km on {f} days [a|each|every] week. How many km in {h} weeks[?|]
{x} works {a} hours on {b} days and {c} hours on {f} days of the week. How many hours in {h} weeks[?|]
{b} [adults|men] at {a} and {f} [kids|boys] at {c} [#euros|dollars] [a|each|per] day for {h} days[.|:|,] [How much|Total|What do they pay][?|]
# d = a * b; e = d + c; f - e | a=2-6 b=2-9 c=1-12 g=1-30 f==a*b+c+g
at a fair {a} rides cost {b} [#euros|dollars] each, a [candyfloss|snack|hot dog] is {c}. {x} had {f}. How much does {he} bring home[?|]
a rope of {f} m loses {a} pieces of {b} m and one of {c} m. [What's left|How long is it now|How much is left][?|]
{x} has {f} [#euros|dollars] and buys {a} {t} at {b} and a bag at {c}. [What is left|How much is left|What's the change][?|]
{x} bought {a} [pens|teas|cards] at {b} and a [book|cake|gift] for {c} and paid with {f} [#euros|dollars]. [Change|What is the change|How much comes back][?|]
of {f} eggs, {a} cakes take {b} each and the breakfast {c}. How many eggs [are left|remain][?|]
# d = a * b; e = c * f; g = d + e; h - g | a=2-5 b=2-5 c=2-5 f=2-5 i=1-20 h==a*b+c*f+i
I bought {a} [kg apples|teas|pens] at {b}[# euros| dollars], {c} [kg pears|cakes|books] at {f}[# euros| dollars] and paid with {h}[# euros| dollars]. [Change|How much change|What do I get back][?|]
{x} has {h} [#euros|dollars] and buys {a} {t} at {b} each and {c} {u} at {f} each. [What is left|How much is left|Change][?|]
# d = a + b; d / c | a=2-60 b=2-60 c=2-6 e==(a+b)/c
two friends pick {a} and {b} kg of [plums|apples|cherries] and share the lot among {c} families. How many kg does a family get[?|]
{x} brings {a} {t}, {y} brings {b}, and {c} [people|kids|teams] share [all|everything|them] equally. How many [each|for each|does each get][?|]
# d = a * 2; e = d - b; f = a + d; f + e | a=3-30 b=1-9 c==a*2-b
{x} has {a} {t}, {y} has twice as many and {z} has {b} fewer than {y}. How many [in all|do they have in all|altogether][?|]
{x} [found|sold|read|picked] {a}, {y} double that and {z} {b} fewer than {y}. [Total|How many in all|How many altogether][?|]
# d = a * 2; e = d + b; f = a + d; f + e | a=3-30 b=1-9
{x} has {a} {t}, {y} has twice as many and {z} has {b} more than {y}. How many [in all|do they have in all|altogether][?|]
# d = a - b; d + c | b=1-30 e=10-150 a==b+e c=1-30
{y} is {b} cm shorter than {x}. {x} is {a} cm, and {z} is {c} cm taller than {y}. How tall is {z}[?|]
{x} has {a} {t}, {y} {b} fewer, and {z} {c} more than {y}. How many does {z} have[?|]
{x} weighs {a} kg. {y} is {b} kg lighter and {z} is {c} kg heavier than {y}. What does {z} weigh[?|]
what do I weigh [now |]if I was {a} kg, lost {b}[ kg|], and gained {c}[ kg|] back[?|]
{a} birds; {b} flew off and later {c} returned. How many [birds then|birds|are there then][?|]
{x} owes {y} {a} [#euros|dollars], pays back {b} and borrows {c} more. [What|How much] does {he} owe now[?|]
of {a} [#workers|players|trees] {b} [#left|quit|died] and {c} were [#hired|added|planted]. How many [are there|now|is that][?|]
{x} lost {b} of {his} {a} marbles, but won {c} back. How many [now|does {he} have|are {his}][?|]
a {a} page draft: {b} pages are cut, {c} new ones [written|come in]. How many pages [is it|now|has it][?|]
# d = a + b; d - c | b=2-30 a=5-40 c=1-20
{b} people got on the [bus|tram|train] and {c} got off. Before there were {a}. How many are on it now[?|]
[before|earlier] there were {a} {t}. {b} were added, {c} taken. How many [now|are there][?|]
how many are on the bus [now|after the stop] if {a} were on it, {b} get on and {c} get off[?|]
{x} is {b} [cm|points|kg] above {y}, who has {a}, and {z} is {c} below {x}. What does {z} have[?|]
# d = a * b; d - a | a=2-20 b=2-6
[my sister|{y}] has {b} times as many {t} as [I do|I]. I have {a}. How many more does she have[?|]
{x} has {a} {t}, {y} {b} times that[ many|]. How many more [#has {y}|does {y} have][?|]
{y} [ran|read|sold|earned] {b} times as much as {x}, who had {a}. How much more is that than {x}[?|]
# d = a * b; d / c | a=2-9 b=2-9 c=2-9 e==a*b/c
{a} painters need {b} days. How many days would {c} painters need[?|]
{a} [pipes|taps|machines|horses] [need|take] {b} hours. How [many hours|long] do {c} [need|take][?|]
food for {a} [cats|cows|men] lasts {b} days. How many days would it last for {c}[?|]
# d = a / b; d * c | b=2-9 e=2-9 a==b*e c=2-12
{x} paid {a} [#euros|dollars] for {b} kilos of [cherries|nuts|cheese]. What would {c} kilos cost[?|]
{b} [tickets|pens|rides] cost {a}. [#And {c}|What do {c} cost|How much are {c}|How much for {c} of them][?|]
# d = a / 2; d - b | e=2-40 a==e*2 b=1-e
there are {a} pupils. Half are girls and {b} of the girls [#wear glasses|are ill|play chess]. How many girls [#do not wear glasses|are not ill|don't play chess][?|]
half of the {a} [#seats|rooms|eggs] are [#free|small|brown], and {b} of those are [#broken|dirty|bad]. How many of those are fine[?|]
{x} keeps half of {a} {t} and loses {b} of them. How many [are left|does {he} have][?|]
# d = a / b; d + c | b=2-6 e=2-15 a==b*e c=1-9
{a} crayons are split into {b} boxes, and each box gets {c} [erasers|pens|more crayons] [more|as well|on top]. How many things are in a box[?|]
{x} shared {a} nuts among {his} {b} kids, then gave the youngest {c} of {his} own. How many nuts has the youngest[?|]
{b} [friends|sisters] split {a} {t} evenly; {x}, one of them, [has|owns|brought] {c} more of {his} own. How many are {x}'s[?|]
a bill of {a} [#euros|dollars] is split among {b} and {x} adds a tip of {c}. What does {x} pay[?|]
# d = a / b; d - c | b=2-6 e=5-15 a==b*e c=1-4
{b} [friends|sisters] split {a} {t} evenly; {x}, one of them, [loses|eats|gives away] {c}. How many does {x} have left[?|]
a bill of {a} [#euros|dollars] is split [evenly|equally] among {b}, but {x} has a voucher of {c}. What does {x} pay[?|]
# d = a / 3; a - d | b=2-30 a==3*b
of {a} [#guests|pupils|sheep] a third [#ate fish|walked|are black] and the others [#ate meat|took the bus|are white]. How many [#ate meat|took the bus|are white][?|]
a third of {a} {t} is [sold|broken|gone]. How many [are left|remain|are not][?|]
# d = a / 4; a - d | b=2-30 a==4*b
of {a} [#guests|pupils|sheep] a quarter [#ate fish|walked|are black] and the others [#ate meat|took the bus|are white]. How many [#ate meat|took the bus|are white][?|]
a quarter of {a} {t} is [sold|broken|gone]. How many [are left|remain|are not][?|]
# d = a + b; c - d | a=5-80 b=5-80 e=1-60 c==a+b+e f=20-80
{x}, {f}, drove {a} km before noon and {b} km after, of {c} km. How many km are [left|still to go|to go][?|]
a shop had {c} eggs on June 4. {a} were sold in the morning, {b} after lunch. [Unsold eggs|How many are unsold|How many are left][?|]
of {c} [runners|letters|tickets], {a} [came|went] on {day} and {b} on {day2}. How many [are still missing|were left|are left][?|]
the way is {c} km: {a} by train, {b} by bus and the rest on foot. How many km on foot[?|]
{x} planned to [read|write|sell|pick] {c}; [so far|until now] it is {a} plus {b}. How many are [missing|left to do|to go][?|]
# a - b - c | b=2-30 c=2-30 d=0-40 a==b+c+d
the café had {a} muffins at 8:00, sold {b} by 10:00 and {c} more by noon. How many muffins [are left|at noon|were left at noon][?|]
{x} had {a} {t}, gave {b} to {y} and {c} to {z}. How many does {he} keep[?|]
{a} [eggs|cups|bulbs]: {b} [broke|cracked] on the way, {c} at home. How many are whole[?|]
[a candle|a pencil|a rope] of {a} cm loses {b} cm the first day and {c} cm the second. How long is it[ now|][?|]
{a} [swimmers|runners|riders] started, {b} gave up early and {c} near the end. How many [finished|made it][?|]
# d = a * b; d * c | a=2-9 b=2-9 c=2-9
{a} [workers|machines|ovens] [pack|make|bake] {b} [boxes|parts|loaves] an hour each. How many in {c} hours[?|]
{x} has {a} [dogs|cats|horses] that each get {b} [#meals|treats|carrots] a day. How many [#meals|treats|carrots] in {c} days[?|]
every one of {a} [#trees|hives|cows] gives {b} [#kilos|jars|liters] a day. How many [#kilos|jars|liters] in {c} days[?|]
{a} [#classes|teams|troops] of {b} [#kids|players|scouts] each [get|need|sell] {c} [#cookies|tickets|cards] per head. How many [#cookies|tickets|cards][ in all|][?|]
# d = a * b; e = d * c; e - f | a=2-5 b=5-20 c=2-8 f=5-20
{a} workers pack {b} boxes an hour each. How many boxes in a {c} hour day with {f} rejected[?|]
{a} [shops|farms] sell {b} [eggs|cakes|cards] a day each. After {c} days {f} are [returned|given back]. How many were kept[?|]
# d = a - b; a + d | b=1-15 e=2-30 a==b+e
{x} has {a} {t} and {y} {b} fewer than {x}. How many have [both|the two] together[?|]
there are {b} fewer [#boys|cats|cars] than [#girls|dogs|bikes]. There are {a} [#girls|dogs|bikes]. How many [in all|altogether|together][?|]
{x} is {a}. {y} is {b} years younger. How old are they together[?|]
# d = a + b; a + d | a=2-40 b=1-20
there are {b} more [#boys|cats|cars|red ones] than [#girls|dogs|bikes|blue ones]. There are {a} [#girls|dogs|bikes|blue ones]. How many [in all|altogether|together|children|is that together][?|]
{x} has {a} {t}, {y} has {b} more than {x}. How many do [both|the two] have[?|]
{x} [paid|got|earned] {a} [#euros|dollars], {y} {b} more. How much is that together[?|]
how many have {x} and {y} together if {x} has {a} {t} and {y} {b} more[?|]
# a - b | b=2-60 c=1-60 a==b+c
{x} needs {a} [signatures|points|votes|stamps] and has {b}, how many are missing[?|]
how many [eggs|plates|cups|glasses] did {x} [drop|break] if {b} out of {a} [survived|are whole|are fine][?|]
[somebody|someone|{x}] deleted {b} of the {a} [photos|files|messages|songs]. [What remains|How many are left][?|]
{x} sold all but {b} of {his} {a} {t}. How many [{t} |]did {he} sell[?|]
all but {b} of the {a} [guests|kids|players|runners] [#left|finished|ate|voted]. How many [#left|finished|ate|voted][?|]
all {a} [#seats|beds|pages] except {b} are [#taken|made|read]. How many [are [#taken|made|read]|is that][?|]
my [phone|tablet|battery] had {a} percent[ charge|], now {b}. how many percent did it lose[?|]
{a} [queued|lined up|waited], {b} gave up. [queue length now|How many still wait|how many still stand there][?|]
there were {a} [cookies|cakes|grapes]. Now there are {b}. How many [got eaten|are gone|have been eaten][?|]
{x} [swapped|traded] {b} of {his} {a} cards for nothing. How many [left|are left|does {he} have][?|]
the [cat|wind|ball|dog] knocked over {b} of {a} [flower pots|vases|chairs|bottles]. how many [still stand|are still standing|are left standing][?|]
a [#spider|fisherman|tailor] mended {a} [#threads|nets|holes], then the wind ripped {b}. How many are [intact|whole|still mended][?|]
of {a} [invitations|letters|orders] {b} came back. How many did not[?|]
{x} aimed at {a} [bottles|cans|targets] and hit {b}. How many did {he} miss[?|]
{x} tried {a} [keys|doors|numbers], {b} [did not fit|were wrong]. How many [did|were right][?|]
{a} [fish|frogs|crabs] minus the {b} that [swam off|escaped|got away][.|:|,] how many [are left|remain][?|]
a [team|company|choir] of {a} loses {b} members. What is its size now[?|]
the [price|rent|bill] went from {a} down to {b}. How much was it lowered[?|]
{x} was number {a} in line and is now number {b}. How many [people were served|places did {he} move up][?|]
# a + b | a=1-80 b=1-60
after giving {b} {t} to {his} [brother|sister|friend], {x} has {a}. How many did {he} start with[?|]
snow: {a} cm yesterday, {b} cm more last night. How deep is it[ in cm|][?|]
the train was {a} minutes late on {day} and {b} minutes late on {day2}. [Total delay|What is the total delay|How many minutes late in all][?|]
{b} were thrown away and {a} were kept. How many [had there been|were there][?|]
{x} repaid {b} [#euros|dollars] and still owes {a}. How much did {he} owe[ at first| before|][?|]
the [river|water|sea] [rose|went up] {b} cm from {a}[ cm|]. How high is it[?|]
[if|when] {b} more [guests|kids|bids] come, there will be how many? Now there are {a}[.|]
[for|at] the [party|feast], {a} [chairs|plates] come from {x} and {b} from {y}. How many [is that|are there][?|]
{a} are [in|here|ready], {b} are [out|away|not ready]. How many {t} are there [in all|altogether][?|]
{b} [passed by|went ahead|overtook] and {x}, who was number {a}, fell back by as many. What number is {he} now[?|]
{x} [deposited|paid in] {b} [dollars|euros] on top of {a}. What is the balance[?|]
# a * b | a=2-12 b=2-12
how many [tires|wheels|seats] [do you need|are needed] for {a} [cars|carts|vans], without spares, with {b} on each[?|]
we hung up {a} rows of lanterns with {b} lanterns per row. [Lanterns hung|How many lanterns][?|]
a tailor needs {b} m of cloth for a suit. How many meters for {a} suits[?|]
every one of the {a} kids broke {b} pencils. [Broken pencils|How many pencils broke|How many pencils is that][?|]
{x} [knocks|rings|calls] {b} times at each of {a} doors. How many [times in all|knocks|rings|times][?|]
{a} [#nests|litters|pods] with {b} [#eggs|kittens|peas] in each [are|make] how many [#eggs|kittens|peas][?|]
for each [hole|point|mistake] {x} pays {b} [euros|cents] and there were {a}. How much is that[?|]
a dance has {b} [#steps|turns] and is danced {a} times. How many [#steps|turns][?|]
{a} [beetles|robots|monsters] have {b} [legs|spots|eyes] each, how many [is that|in all][?|]
it rains {b} mm an hour. How many mm in {a} hours[?|]
{x} [#planted|glued|nailed|sewed] {b} [#bulbs|stars|boards|buttons] on each of {a} [#beds|cards|fences|shirts]. How many [in all|did {he} use|is that][?|]
# a / b | b=2-12 c=2-12 a==b*c
{x} [#sewed|glued|nailed] {a} [#buttons|stars|boards] on {b} [#shirts|cards|fences], the same number on each. How many on each[?|]
{b} friends split {a} [#euros|dollars] evenly. each gets[?|]
{a} [tickets|chairs|candles] in rows of {b}[:|,|.] how many rows[?|]
it takes {b} [bricks|boards|stitches] for one and {x} used {a}. How many did {he} make[?|]
{x} paid {a} [euros|cents] for mistakes at {b} each. How many mistakes[ was that| did {he} make|][?|]
{a} legs, {b} per [#animal|beetle|table]. How many [#animals|beetles|tables][?|]
{b} nests have {a} eggs, all the same number. How many [in one|in each|per nest][?|]
# a - b | b=2-40 c=1-20 a==b+c d=2-12
we set the table for {b}, yet {a} [showed up|came|are here]. How many [chairs|plates|places] [are missing|do we have to fetch|are too few][?|]
{x} [cooked|ordered|baked] for {b} [people|guests], but {a} [came|turned up|are hungry]. How many [get nothing|go without][?|]
only {b} [seats|beds|bikes|life jackets] for {a} [people|guests|kids]. How many [have none|get none|must share|miss out][?|]
there are {a} [#kids|dogs|cars] and just {b} [#apples|bones|spaces]. How many [#kids|dogs|cars] [go without|get none][?|]
{x} needs {a} and [finds|gets|has] {b}. [Shortage|What is lacking|How many too few][?|]
{b} times out of {a} {x} [#hit|won|was right|scored]. [How many times did {he} [#miss|lose|go wrong|miss]|How often did {he} not][?|]
{x} [threw|shot|tried] {a} times and [hit|scored|succeeded] {b} times. [Misses|How many misses|How many failures][?|]
of {a} [answers|tries|jumps|throws], {b} were [right|good|valid]. [Mistakes|How many were not|How many bad ones][?|]
{a} lives, {b} gone. [How many lives|Lives to go|left][?|]
if {x} had {b} more {t}, {he} would have {a}. How many [{t} |]does {he} have[?|]
with {b} more {t} {x} would [reach|have|get to] {a}. How many are there now[?|]
{b} [short of|below|less than] {a}: how many[ is that|][?|]
nobody but {b} of the {a} [pupils|guests|players] [#came|paid|voted]. How many did not [#come|pay|vote][?|]
no one except {b} of {a} [kids|workers|members] [#agreed|helped|waited]. How many did not [#agree|help|wait][?|]
{a} passengers[, the driver not counted|] and {b} [standing|of them stand]. How many [sit|are seated|are sitting][?|]
{b} of {x}'s {a} [teeth|stickers|tiles|buttons] [fell out|came off|are loose]. How many [are not|hold|are fine][?|]
{x} is {a} km from home and [rides|walks|drives] {b} km towards it. How far is it [still|now][?|]
{x} [must pay|owes] {a} and hands over {b}. How much is still [open|due|missing][?|]
a jacket was {a} and is now {b}. [How much do I save|What do I save|How much cheaper is it][?|]
it says {a} on the [label|tag|list], they charged {b}. How much less is that[?|]
{x} climbed {b} of {a} steps and [rests|stops]. How many are [ahead|above {him}|left][?|]
the [flight|concert|match] is in {a} days, {x}'s [exam|birthday] in {b}. How many days lie between[?|]
{x} had {d} minutes to carry {a} {t}; {b} are still [at the door|outside|there]. How many were carried[?|]
in {d} rounds {x} won {a} points and {y} {b}. [Lead|How big is the lead|By how many does {x} lead][?|]
# b - a | a=2-60 c=1-30 b==a+c
{x} now weighs {b} kg, {a} kg as a [child|student]. How many kg more[?|]
the bill [should be|was said to be] {a} and it is {b}. How much too much[?|]
my [suitcase|bag|parcel] weighs {b} kg and the limit is {a} kg. How many kg too [heavy|much][?|]
{x} drives {b} where {a} is allowed. How much too fast[?|]
this [summer|year|week] we had {b} [guests|orders|calls], the one before {a}. [Increase|How many more][?|]
from {a} to {b} [followers|members|pages] within [a month|a year]. How many came[?|]
page {a} to page {b}: how many pages further[?|]
# a * 2 | a=2-60
[one|a] [bus|train|boat] ticket is {a} [#euros|dollars]. What do I pay there and back[?|]
there and back if one way [#costs|takes|is] {a} [#euros|minutes|km][:|,|.] [how many [#euros|minutes|km]|total][?|]
it's {a} km to [school|work|grandma]. How many km is it there and back[?|]
{x} walks {a} [blocks|km|miles] to the [shop|park|office] and back again. How [far|many] in all[?|]
# 2 * a | a=2-40
[the twins|both sisters|my parents|both kids|the two brothers|a couple] each [have|get|eat|need|buy|lose] {a} {t}. How many [is that|in all|together|altogether][?|]
twins each have {a} [teeth|toys|books|{t}]. [in total|total|how many|how many together][?|]
a pair of [friends|runners|cyclists] [do|make|cover] {a} [laps|km|rounds] each. How many together[?|]
both [#hands|sides|wings] [have|show] {a} [#rings|windows|spots]. How many [#rings|windows|spots] in all[?|]
{x} and {y} [got|ate|found|read] {a} {t} each. How many [was that|is that|together][?|]
# 3 * a | a=2-40
[triplets|three sisters|all three brothers|the three friends] [have|get|eat|need|find] {a} {t} each. How many [is that|in all|together|altogether][?|]
{x}, {y} and {z} [got|ate|found|read|paid] {a} [{t} |]each. How many [was that|is that|together][?|]
each of three [bags|rooms|friends|days] [has|gets|brings] {a} {t}. How many [in all|altogether|is that][?|]
# 4 * a | a=2-40
the [four friends|quartet|four seasons|four walls] each [get|need|have|bring] {a} {t}. How many [in all|is that|altogether][?|]
{a} {t} in each of the four corners. How many[?| in all?]
# a + b | a=2-20 b=2-20
{a} [#lions|cats|boys|pears|roses|uncles] share a [room|place|basket|corner] with {b} [#tigers|dogs|girls|apples|tulips|aunts]. How many [in all|are there|is that][?|]
a clock [#strikes|chimes|rings] {a} times, then {b} times. [How many times is that|How many in all][?|]
{x} sneezed {a} times before lunch and {b} times after. [Sneezes|How many sneezes|How often in all][?|]
besides {a} {t} there [are|were] {b} {u}. How many things [in all|altogether][?|]
{a} with sugar, {b} without. How many [coffees|teas|donuts][ in all|][?|]
{x} is in {a} clubs and {y} in {b} others. How many clubs [is that|in all][?|]
the first [verse|row|page] has {a} [words|lines|pictures] and the second {b}. [Total|How many in the two][?|]
# d = a * b; c - d | a=2-6 b=1-5 e=0-12 c==a*b+e
a [pizza|cake|pie|melon] [is cut in|has|gives] {c} [slices|pieces], we [are|were] {a} and [everybody|each|everyone] [took|ate|gets] {b}. [Slices left|How many are left|how many remain][?|]
{c} [cookies|chocolates|grapes] and {a} [kids|guests] who [take|eat|grab] {b} each. [How many are left|what's left|leftovers][?|]
{a} [kids|friends] took {b} {t} each out of {c}. How many [are left|remain|stayed][?|]
everybody of the {a} [eats|takes|gets] {b}; there are {c} {t}. How many are left [for later|over|][?|]
{a} [horses|cows|goats] eat {b} [bales|bags] each of {c}. How many [are left|remain][?|]
from {c} [seats|chairs|beds] {a} [families|groups] of {b} take theirs. How many are [free|left][?|]
# d = a * 7; c - d | a=2-14 e=0-60 c==a*7+e
{x} reads {a} pages a day. How many pages [has {he} left|are left|remain] of a {c} page book after a week[?|]
{c} [pills|bags|cans|diapers], {a} [a day|daily|per day]. How many are left after a week[?|]
after [one|a] week at {a} a day, what is left of {c}[ {t}|][?|]
{x} has {c} [euros|dollars] and spends {a} [a day|every day|daily]. How much is left after a week[?|]
# d = a * b; d - c | a=2-9 b=3-12 c=2-5
{x} [bakes|sews|paints] {a} [trays|sets|rows] of {b}, {c} [turn out badly|do not sell|are kept]. How many are [sold|good|given away][?|]
{a} [busloads|teams|groups] of {b} [came|were there], {c} people left [early|soon]. How many stayed[?|]
# d = a + b; d - c | a=5-80 b=5-80 c=2-10 f=4-7 g=8-11
{a} [boys|men], {b} [girls|women], {c} of them [absent|ill|late]. [How many are here|Who is here - how many|How many are there][?|]
the baker bakes {a} rolls at {f} am and {b} at {g} am. {c} [stay unsold|are left]. [Sold|How many were sold|How many did he sell][?|]
{x} [picked|wrote|made] {a} in the morning, {b} in the afternoon; {c} were [thrown away|no good|given away]. How many are left[?|]
{a} [letters|parcels] [came|arrived] on {day} and {b} on {day2}, {c} went back. How many [stayed|were kept][?|]
from {x} {a} {t}, from {y} {b}, and {c} [of all |]are [broken|bad|lost]. How many are [good|left|fine][?|]
[together|in all] we have {a} and {b} {t}, less {c} that [broke|got lost|we gave away]. How many[?|]
# a + b | a=5-120 b=5-120 c=10-55
we drove {a} km, had lunch for {c} minutes, and drove {b} km. [Distance|How far did we drive|How many km][?|]
{x} [rode|walked|ran] {a} km, rested {c} minutes, and went on for {b} km. How [far|many km] [in all|did {he} go|is that][?|]
{x} read {a} pages, slept {c} minutes and read {b} more. How many pages[?| in all?]
{x} sold {a} {t}, waited {c} minutes for the next customer and sold {b}. How many [in all|were sold][?|]
{x}, aged {c}, has {a} [points|{t}] and wins {b}. How many [is that|now][?|]
# d = a + b; d / c | c=2-8 e=3-40 b=2-20 a==c*e-b
{c} people share a {a} [#euro|dollar] meal plus {b} [#euro|dollar] tip. [Each|What does each pay|How much each][?|]
a [meal|boat|van|house] for {a} and a [tip|fee|deposit] of {b} are [split|shared] [by|among] {c}. [Per person|How much each|What does each pay][?|]
{x} has {a} {t}, gets {b}, and fills {boxes} of {c}. How many {boxes}[?|]
rent {a} plus heating {b}, {c} roommates. What does each pay[?|]
# d = a * b; e = d + c; e / f | f=2-6 g=2-12 a=2-6 b=2-12 c==f*g-a*b
{a} {boxes} of {b} {t} and {c} loose ones are shared by {f} {kids}. How many each[?|]
{a} tickets at {b} and snacks for {c} [#euros|dollars], split among {f}. How much [each|per person][?|]
# d = a + b; c - d | a=5-60 b=5-60 e=0-60 c==a+b+e
out of {c} [tickets|seats|copies], {a} went online and {b} at the door. [Unsold|How many are unsold|How many are left][?|]
{c} [pupils|workers|guests]: {a} come by bus, {b} on foot, the others by bike. How many by bike[?|]
{x} has {c} minutes: {a} for the [bus|call], {b} for [lunch|a nap]. How many are [free|left][?|]
the [budget|prize|pot] is {c}; {a} for the hall, {b} for the band. What is [left|over|still there][?|]
# d = a + b; d - e | a=20-200 b=5-60 c=2-5 f=5-12 e==c*f
tank: {a} [liters|litres]. In: {b}. Out: {e}. [Now|What is in it][?|]
balance {a}, paid in {b}, paid out {e}. [New balance|Balance now|How much now][?|]
stock {a}, new {b}, sold {e}. [Stock now|How many|New stock][?|]
# d = a + b; e = c * f; d - e | a=20-100 b=5-40 c=2-4 f=2-5
tank: {a} [liters|litres]. In: {b} [liters|litres]. Out: {c} buckets of {f}[ liters| litres|]. [Now|What is in it now|How much is left][?|]
{x} has {a} {t}, gets {b} and gives {c} [kids|friends|people] {f} each. How many [are left|does {he} have][?|]
{x} had {a} [#euros|dollars], got {b} and bought {c} [books|cakes|tickets] at {f}. [What is left|How much is left][?|]
# d = a * b; e = c * f; g = d + e; h - g | a=5 c=2 b=1-4 f=1-6 i=0-12 h==5*b+2*f+i
every morning for {a} days {x} eats {b} eggs; on the weekend ({c} days) {f} each day. How many of {h} eggs are left[?|]
{x} uses {b} {t} on each of {a} workdays and {f} on each of the {c} days of the weekend. How many of {h} are left[?|]
# d = 5 * b; e = 2 * f; d + e | b=1-12 f=1-12
{x} [sleeps|works|reads|trains] {b} hours on [weekdays|workdays] and {f} on each day of the weekend. How many hours a week[?|]
on the five workdays {x} drinks {b} [coffees|teas] a day, on the two other days {f}. How many a week[?|]
from Monday to Friday {b} [km|pages|calls] a day, on Saturday and Sunday {f} each. How many in a week[?|]
a shop sells {b} cakes a day on weekdays and {f} a day on weekends. How many [a|in a|per] week[?|]
# d = a / 2; d + b | c=2-40 a==2*c b=1-20
{x} has {a} {t}, {y} half as many, and {z} {b} more than {y}. How many does {z} have[?|]
half of {a} and {b} more: how many {t} does {x} have[?|]
# a / 4 | c=1-30 a==4*c
{x} lost a quarter of {his} {a} {t}. How many did {he} lose[?|]
a quarter of {a} {t} [is|are] {x}'s. How many[?| is that?]
{x} [#ate|sold|gave away|broke] one in four of {a} {t}. How many [is that|did {he} [#eat|sell|give away|break]|][?|]
# a / 3 | c=1-30 a==3*c
{x} lost a third of {his} {a} {t}. How many did {he} lose[?|]
every third of {a} [#guests|kids|letters|eggs] is [#late|ill|lost|brown]. How many [are that|is that|are [#late|ill|lost|brown]][?|]
one out of three of the {a} [#kids|trees|rooms] is [#sick|bare|empty]. How many [is that|are [#sick|bare|empty]][?|]
# a * 4 | a=1-12
how many quarter[-| ]hours are [there in|in] {a} hours[?|]
how many quarters are there in {a} [pizzas|hours|apples|dollars][?|]
{a} apples are cut in quarters. How many pieces[?|]
# a * 2 | a=1-30
how many half[-| ]hours are [there in|in] {a} hours[?|]
how many half [liter|litre] [mugs|bottles|cups] fill a {a} [liter|litre] [pot|bucket|barrel][?|]
half [kilo|kg] bags from {a} kg of [sugar|rice|coffee][:|,] how many[?|]
{a} [apples|rolls|melons] are cut in half. How many halves[?|]
how many half [#pints|days|portions] make {a} [#pints|days|portions][?|]
# d = a * b; d / 60 | a=30,60,90,120,15,45 b=2-20 | dec
a page takes {x} {a} seconds. How many minutes [for|do] {b} pages[ take|][?|]
one [lap|song|call|step] is {a} seconds. How many minutes are {b}[?|]
{b} [ads|clips|songs] of {a} seconds [each|apiece], how many minutes [is that|in all|altogether][?|]
# d = a * 100; d // b | a=2-6 b=30,35,45,60,70,80,90,15
a {a} m [board|plank|pipe|cable], [shelves|pieces|parts] of {b} cm: how many [can be cut|can I cut|at most][?|]
how many whole {b} cm pieces [come out of|can be cut from|are in] {a} m of [rope|ribbon|tape][?|]
a [poster|tile|mat] is {b} cm wide. How many [fit side by side|fit] on a wall of {a} m[?|]
with {a} [#euros|dollars], how many [stickers|eggs|rolls] at {b} cents [can I buy|do I get][?|]
{x} has {a} [#euros|dollars] and each [stamp|gum|copy] is {b} cents. How many at most[?|]
# d = a * 1000; d // b | a=1-5 b=150,300,330,350,400,450,600,700,750
how many [glasses|cups|bowls] of {b} ml can be filled completely from {a} [liters|litres][?|]
{a} kg of [flour|dough|clay], {b} g for each [loaf|pizza|pot]. How many at most[?|]
{a} km in full laps of {b} m: how many laps[?|]
# d = a * 60; d // b | a=2-6 b=7,8,9,11,13,14,16,18,25,35,40,45,50
how many [whole |complete ]lessons of {b} minutes fit [in|into] {a} hours[?|]
a [bath|haircut|check|film] takes {b} minutes. How many can be finished in {a} hours[?|]
# a // b | b=2-12 c=1-12 e=0-b a==b*c+e
{x} has {a} candles and every cake gets {b}. [Cakes with a full set|How many cakes get all their candles][?|]
{a} minutes, each [song|round|test|call] [lasts|takes] {b}[ minutes|]. How many [fit completely|can be finished|whole ones][?|]
with {b} [#euros|dollars] per ride and {a} in my pocket I can ride how often[?|]
how often can I [ride|play|swim] with {a} [#euros|dollars] if [once|one go|it] costs {b}[?|]
{a} legs, each chair needs {b}. How many chairs get all their legs[?|]
how many times does {b} [people|litres|kg|cards] fit fully into {a}[?|]
how many times can you take {b} {t} away from {a}[?|]
at {b} each, {a} [#euros|dollars] [buy|are enough for|get me] how many {t}[?|]
[budget|money]: {a}. [price|each|cost]: {b}. How many [can I get|at most|{t}][?|]
the scale holds {a} kg at most, a [bag|box|stone] is {b} kg. How many [bags|boxes|stones] may be put on it[?|]
a lift carries {a} kg. How many crates of {b} kg [may go in|at once|at most][?|]
{x} gives {b} {t} to each guest until they run out. {He} has {a}. How many guests get [theirs|a full share|{b}][?|]
# ceil(a / b) | b=2-12 c=1-12 e=0-b a==b*c+e
one car takes {b} of us and we are {a}, [so |]how many cars[?|]
{a} [wolves|lions|apes|parrots], cages for {b}. [Cages|How many cages|cages needed][?|]
{a} [kids|guests|scouts], [#tents|rooms|boats|pizzas] for {b}. [#Tents|Rooms|Boats|Pizzas][?|]
how many [weeks|months|days] do I need to save {a} if I put away {b} a [week|month|day][?|]
{x} needs {a} [points|stamps|hours] and gets {b} [a|every|each] day. How many days at least[?|]
{a} things to carry, {b} at a time. [Trips|How many trips|How often must I go][?|]
we are {a} and a taxi takes {b}. [Taxis|How many taxis|How many must I call][?|]
a [machine|washer|oven] [holds|takes] {b} [shirts|plates|rolls] at once. How many runs for {a}[?|]
the [smallest|least|lowest] number of {boxes} for {a} {t} if one takes {b}[?|]
{a} [kg|boxes|letters] to bring upstairs and {x} manages {b} each time. How many times [must|does] {he} go[?|]
how many buses of {b} seats does it take for {a} fans[?|]
for {a} people, [soup for|cakes for|tables for] {b} each. How many [are needed|do I order|must I make][?|]
if no [room|group|team] may have more than {b}, how many [rooms|groups|teams] do {a} [people|pupils|players] need at least[?|]
each [stamp sheet|card|carton] has {b}; {x} needs {a}. How many [sheets|cards|cartons] to buy[?|]
{x} can eat {b} {t} a day. On which day are all {a} gone[?|]
# a % b | b=2-12 c=1-12 e=0-b a==b*c+e
what's left when {a} cards are dealt [fairly |equally |]to {b} players[?|]
[deal|give|hand] {a} [cards|sweets|coins] to {b} [players|kids|people] equally[:|.|,] [what is left|leftover|how many are left over][?|]
{a} by {b} in a row: how many [soldiers|chairs|plants] are left for the last[, not full|] row[?|]
{x} fills {boxes} of {b} until {he} cannot go on. Of {a} {t}, how many are still there[?|]
{a} {t}, {b} in each {box}, how many [stay out|have no {box}|loose][?|]
I cut {b} cm bits off a {a} cm string. How long is what I cannot use[?|]
after buying as many {t} as I can at {b}, how much of my {a} [#euros|dollars] is left[?|]
{a} days: whole [weeks|blocks] of {b} days and how many [days |]more[?|]
# a * b | a=2-12 b=2-60 c=2-12
{x} works from {c} o'clock on and [serves|sees|helps] {b} [people|customers|guests] an hour. How many in {a} hours[?|]
every [#night|day|Sunday] at {c} the [#owl|dog|bell] [#calls|barks|rings] {b} times. How many times in {a} [#nights|days|Sundays][?|]
for {a} [#guests|kids|rooms], {b} [#plates|balls|lamps] each, at {c} o'clock. How many [#plates|balls|lamps][?|]
# d = a * b; d + c | a=2-9 b=3-20 c=2-40
[each|every] hour {b} people came, for {a} hours, then {c} more. How many [in all|came][?|]
{a} hours at {b} [visitors|calls|cars] an hour, then {c} more at the end. How many[?| in all?]
{x} [baked|sewed|wrote] {b} a day for {a} days and {c} on the last. How many[?| is that?| in all?]
# d = a * b; e = c * f; d + e | a=2-9 b=2-12 c=2-9 f=2-12
[hay|food|water] for {a} goats and {c} cows if a goat [eats|gets|needs] {b} kg and a cow {f}. How many kg[?|]
a goat eats {b} kg, a cow {f} kg of hay. How many kg for {a} goats and {c} cows[?|]
I had {a} [notes|bills|coins] of {b} and {c} of {f} in my wallet. How much money was that[?|]
{a} [spiders|boxes|sets] count {b} each and {c} [beetles|bags|packs] {f} each. What is the total[?|]
{x} pays {b} for each of {a} [nights|days|lessons] and {f} for each of {c} [meals|rides|books]. What does {he} pay[ in all|][?|]
# d = a * b; e = d - c; f - e | a=2-4 b=5-30 c=2-8 g=2-40 f==a*b-c+g
{x} buys {a} [shirts|books|pens] at {b} [#euros|dollars], gets {c} off and pays with {f}. [Change|What is the change|How much comes back][?|]
{a} tickets at {b}, less a {c} [#euro|dollar] voucher, paid with {f}. [Change|What do I get back][?|]
# d = a * b; e = c * f; g = d + e; g - h | a=2-9 b=2-12 c=2-9 f=2-12 h=2-4
{a} boxes of {b} pens, {c} boxes of {f} pencils, {h} are broken. [Usable ones|How many are usable|How many can be used][?|]
{x} buys {a} [cakes|hats] for {b} each and {c} [drinks|scarves] for {f} each and has a voucher of {h}. What does {he} pay[?|]
{a} rows of {b} and {c} rows of {f} [#seats|plants|chairs]; {h} are [#broken|dead|missing]. How many are [good|left|fine][?|]
# d = b + a; b + d | a=1-9 b=2-60
{x} is {a} years older than {y}, {y} is {b}. [Sum of their ages|How old are they together|Together][?|]
{y} has {b} {t}, {x} {a} more. [Sum|Together|How many together][?|]
# d = a * b; c - d | a=2-9 b=2-9 e=1-40 c==a*b+e
& {x} has {c} [#euros|dollars] ; {x} buys {a} {t} at {b} [#euros|dollars] each ; how much money is left ; the money left
& a shelf has {c} free places ; {a} boxes of {b} {t} are put on it ; how many places are still free ; the free places
& {c} pages have to be read ; {x} reads {b} pages on each of {a} days ; how many pages are still to be read ; the rest of the pages
& {c} people wait ; {a} [boats|cabins|taxis] take away {b} people each ; how many people still wait ; the number of people who still wait
& a roll has {c} m of wire ; {a} lamps need {b} m each ; how much wire is left ; the wire that is left
& {x} owns {c} sheep ; {a} farmers buy {b} sheep each ; how many sheep does {x} keep ; the number of sheep left
& the jug holds {c} cups of water ; {a} plants get {b} cups each ; how many cups are left ; the cups left
& {c} invitations were printed ; {a} people handed out {b} each ; how many invitations were not handed out ; the invitations left
& the ladder has {c} rungs ; {x} climbs {b} rungs {a} times ; how many rungs are above {x} ; the rungs left
& {x} has {c} minutes ; {a} calls take {b} minutes each ; how many minutes are left ; the minutes left
# d = a * b; d + c | a=2-9 b=2-12 c=1-40
& {x} has {c} {t} ; {a} friends give {x} {b} {t} each ; how many {t} does {x} have then ; the number of {t}
& {a} coaches bring {b} guests each ; {c} guests come on foot ; how many guests come in all ; the number of guests
& {x} works {a} hours for {b} [#euros|dollars] an hour ; the tip is {c} [#euros|dollars] ; how much does {x} get ; the pay
& a gardener sets {a} rows of {b} leeks ; {c} leeks stand in a pot ; how many leeks are there ; the number of leeks
& the wall has {a} rows of {b} tiles ; {c} tiles lie on the floor ; how many tiles are there ; the number of tiles
& a nurse sees {b} patients an hour for {a} hours ; {c} patients come in the evening ; how many patients does the nurse see ; the number of patients
& {a} trains have {b} wagons each ; {c} wagons stand in the yard ; how many wagons are there altogether ; all wagons
& a hall rents for {c} [#euros|dollars] ; each of {a} hours costs {b} more ; what does it cost in all ; the total cost
& a snail sits at {c} cm ; it climbs {b} cm on each of {a} days ; at what height is it then ; the height in cm
# d = a * b; d - c | a=2-9 b=3-15 c=2-5
& {a} hens lay {b} eggs each ; {c} eggs break ; how many eggs are whole ; the number of whole eggs
& {x} sews {a} shirts with {b} buttons each ; {c} buttons come off ; how many buttons are still on ; the buttons still on
& {a} classes of {b} pupils go to the zoo ; {c} pupils stay at home ; how many pupils go ; the number of pupils at the zoo
& {x} sells {a} cakes at {b} [#euros|dollars] each ; the flour cost {c} ; what is the profit ; the profit
& {a} cartons of {b} bulbs arrive ; {c} bulbs do not work ; how many bulbs work ; the working bulbs
& each of {a} teams sends {b} runners ; {c} runners fall ill ; how many runners start ; the number at the start
& {a} lines of {b} cars stand at the border ; {c} cars turn back ; how many cars stay ; the cars that stay
# d = a - b; d / c | c=2-9 e=2-12 b=2-20 a==b+c*e
& {x} picks {a} plums ; {b} plums are rotten ; the good ones are shared by {c} kids ; how many plums does each kid get ; the plums per kid
& {a} tourists arrive ; {b} walk ; the others ride in {c} equal groups ; how many are in a group ; the size of a group
& a rope has {a} m ; {b} m are worn out ; the rest is cut into {c} equal parts ; how long is a part ; the length of a part
& the prize is {a} [#euros|dollars] ; {b} go to the club ; {c} players share the rest ; how much does each player get ; the share of a player
& {a} pages are in the book ; {x} has read {b} ; {x} reads {c} pages a day now ; how many days does it take ; the days that it takes
& {x} bakes {a} rolls ; {b} are eaten at once ; the rest goes in bags of {c} ; how many bags are filled ; the number of bags
# d = a + b; d / c | c=2-9 e=3-12 b=2-20 a==c*e-b
& {x} brings {a} {t} ; {y} brings {b} {t} ; {c} people share them evenly ; how many does each get ; the number for each
& {a} boys and {b} girls come ; they form teams of {c} ; how many teams are there ; the number of teams
& {a} red and {b} white roses are tied into bunches of {c} ; how many bunches is that ; the number of bunches
& {x} saved {a} [#euros|dollars] ; grandma adds {b} ; a ticket costs {c} ; how many tickets can be bought ; the number of tickets
& a tank holds {a} liters ; {b} liters are poured in ; the water fills cans of {c} liters ; how many cans are filled ; the number of cans
# d = a + b; d * c | a=2-20 b=2-20 c=2-9
& a ticket costs {a} [#euros|dollars] ; a drink costs {b} ; {c} friends buy one of each ; what do they pay together ; the total price
& {x} runs {a} km in the morning ; {x} runs {b} km in the evening ; {x} does so on {c} days ; how many km is that ; the km in all
& each box has {a} red and {b} blue pens ; there are {c} boxes ; how many pens are there ; the number of pens
& a worker packs {a} boxes before noon and {b} after ; there are {c} such workers ; how many boxes do they pack ; all boxes
& a cow eats {a} kg of hay and {b} kg of corn a day ; how many kg does it eat in {c} days ; the kg in {c} days
# d = a - b; d * c | b=1-9 e=2-15 a==b+e c=2-9
& one {one} costs {a} [#euros|dollars] ; today it is {b} cheaper ; {x} buys {c} ; what does {x} pay ; the price of all
& each of {c} boxes had {a} cherries ; {b} cherries are taken from every box ; how many cherries are left in all ; all cherries left
& {x} earns {a} [#euros|dollars] a day ; the bus costs {b} a day ; how much is left after {c} days ; the money after {c} days
& {c} buses have {a} seats each ; {b} seats of every bus are broken ; how many seats can be used ; the usable seats
# a - b + c | b=2-20 e=2-40 a==b+e c=2-30
& {a} people sit in the café ; {b} people leave ; {c} people come in ; how many people sit there now ; the number of people now
& {x} has {a} {t} ; {x} swaps away {b} ; {x} gets {c} in return ; how many does {x} have then ; the number of {t}
& {a} cars are parked ; {b} drive off ; {c} arrive ; how many cars are parked now ; the number of cars
& the water stands at {a} cm ; it falls {b} cm ; it rises {c} cm ; how high does it stand ; the height in cm
& {x} is on step {a} ; {x} goes down {b} steps ; {x} goes up {c} steps ; on which step is {x} ; the step
& a choir has {a} singers ; {b} quit ; {c} are new ; how many singers has it now ; the number of singers
& {a} books are on the shelf ; {b} are lent out ; {c} are brought back ; how many are on the shelf ; the number of books
# a + b - c | a=2-60 b=2-40 c=2-a
& {x} has {a} {t} ; {y} gives {x} {b} more ; {x} loses {c} ; how many does {x} have ; the number of {t}
& {a} birds sit in the tree ; {b} birds join them ; a cat scares away {c} ; how many birds are left ; the birds left
& the bus carries {a} people ; {b} get on ; {c} get off ; how many people does it carry ; the number of people
& {a} emails are in the inbox ; {b} arrive ; {x} deletes {c} ; how many emails are in it ; the number of emails
& {x} picks {a} mushrooms ; {y} picks {b} ; {c} are poisonous ; how many can be eaten ; the good mushrooms
& the account has {a} [#euros|dollars] ; {b} are paid in ; {c} are taken out ; what is the balance ; the balance
# a - b - c | b=2-30 c=2-30 d=1-40 a==b+c+d
& {x} has {a} {t} ; {y} gets {b} of them ; {z} gets {c} ; how many does {x} keep ; the number left
& {a} runners start ; {b} give up on the hill ; {c} give up in the heat ; how many finish ; the number who finish
& the garden has {a} tulips ; {b} wilt ; {c} are picked ; how many tulips stand ; the tulips left
& a rope is {a} m long ; {b} m are cut off ; another {c} m are cut off ; how long is it now ; the length
& {a} guests are invited ; {b} cannot come ; {c} forget it ; how many guests come ; the number of guests
& {x} has {a} [#euros|dollars] ; lunch costs {b} ; the bus costs {c} ; how much is left ; the money left
& {a} eggs were in the fridge ; {b} became an omelet ; {c} broke ; how many eggs are left ; the eggs left
# d = a / 2; d - b | e=3-40 a==2*e b=1-e
& {x} has {a} {t} ; {x} gives half of them to {y} ; {b} more get lost ; how many are left ; the number left
& {a} passengers are on the train ; half of them get off ; then {b} more get off ; how many stay ; the number who stay
& {a} cups are in the cupboard ; half of them are dirty ; {b} of the clean ones break ; how many clean cups are left ; the clean cups
# d = a * 2; d + b | a=2-40 b=1-20
& {x} has {a} {t} ; {y} has twice as many ; {z} has {b} more than {y} ; how many does {z} have ; the number that {z} has
& {a} fish are in the pond ; their number doubles ; {b} more are put in ; how many fish are there ; the number of fish
# d = a + b; a + d | a=2-40 b=1-20
& {x} has {a} {t} ; {y} has {b} more than {x} ; how many do they have together ; the sum
& {a} girls dance ; {b} more boys than girls dance ; how many kids dance ; the number of kids
& {x} spent {a} [#euros|dollars] ; {y} spent {b} more ; how much did they spend together ; the sum
& on {day} {a} people came ; on {day2} {b} more people came than on {day} ; how many came on the two days ; the sum of both days
# d = a - b; a + d | b=1-15 e=2-30 a==b+e
& {x} has {a} {t} ; {y} has {b} fewer than {x} ; how many do they have together ; the sum
& {x} paid {a} [#euros|dollars] ; {y} paid {b} less ; how much did they pay together ; the sum
& on {day} {x} ran {a} km ; on {day2} it was {b} km less ; how far did {x} run in the two days ; the distance in all
# d = a * b; a + d | a=2-30 b=2-5
& {x} has {a} {t} ; {y} has {b} times as many ; how many do they have together ; the sum
& {a} adults came ; {b} times as many kids came ; how many people came ; the number of people
# d = a * b; d / c | a=2-9 b=2-12 c=2-9 e==a*b/c
& {x} buys {a} packs of {b} {t} ; {c} friends share them equally ; how many does each get ; the number for each
& {a} painters need {b} days ; how many days do {c} painters need ; the days for {c} painters
& {a} bags of {b} sweets are mixed ; {c} kids share them fairly ; how many sweets does each get ; the sweets per kid
# d = a * b; d * c | a=2-9 b=2-9 c=2-9
& {a} houses have {b} floors each ; each floor has {c} windows ; how many windows are there ; the number of windows
& {x} eats {a} nuts {b} times a day ; how many nuts does {x} eat in {c} days ; the nuts in {c} days
& {a} crates hold {b} boxes each ; a box holds {c} {t} ; how many {t} are there ; the number of {t}
# d = a * b; e = c * f; d + e | a=2-9 b=2-12 c=2-9 f=2-12
& {a} tables seat {b} people each ; {c} tables seat {f} people each ; how many people can sit ; the number of seats
& {x} buys {a} pens at {b} [#euros|dollars] ; {x} buys {c} books at {f} [#euros|dollars] ; what does {x} pay ; the total
& {a} vans carry {b} kids each ; {c} cars carry {f} kids each ; how many kids are carried ; the number of kids
& {x} walks {b} km on {a} days ; {x} walks {f} km on {c} days ; how many km is that ; the distance in all
# d = a // b; d * c | b=3-9 f=1-6 e=1-b a==b*f+e c=2-9
& {x} has {a} eggs ; a cake takes {b} eggs ; a cake is sold for {c} [#euros|dollars] ; how much money can {x} make with whole cakes ; the money for whole cakes
# d = ceil(a / b); d * c | b=3-9 f=1-6 e=1-b a==b*f+e c=2-30
& {a} people want to cross ; a boat takes {b} people ; each trip costs {c} [#euros|dollars] ; what do the trips cost ; the cost of all trips
& {x} needs {a} bulbs ; bulbs come in packs of {b} ; a pack costs {c} [#euros|dollars] ; what does {x} have to pay ; the price
# a // b | b=3-12 c=1-12 e=0-b a==b*c+e
& {x} has {a} [#euros|dollars] ; one {one} costs {b} ; how many can {x} buy at most ; the greatest number
& there are {a} eggs ; each cake needs {b} eggs ; how many cakes can be baked ; the number of cakes
& {a} cm of ribbon are there ; a bow takes {b} cm ; how many bows can be made ; the number of bows
& there are {a} kids ; a full team has {b} kids ; how many full teams are there ; the number of full teams
& a film lasts {b} minutes ; there are {a} minutes ; how many whole films can be shown ; the number of whole films
# ceil(a / b) | b=3-12 c=1-12 e=0-b a==b*c+e
& {a} guests come ; a table is for {b} guests ; how many tables are needed ; the number of tables needed
& {a} photos are to be pasted in ; {b} photos fit on a page ; how many pages are needed ; the number of pages needed
& {x} must carry {a} boxes ; {x} carries {b} boxes at a time ; how often does {x} have to go ; the number of trips
& {a} kids go camping ; a tent sleeps {b} kids ; how many tents have to be packed ; the tents needed
& {x} wants {a} [#euros|dollars] ; {x} saves {b} a week ; after how many weeks is it enough ; the weeks needed
# a % b | b=3-12 c=1-12 e=0-b a==b*c+e
& {a} {t} are shared evenly by {b} kids ; how many are left over ; the leftover {t}
& {x} has {a} eggs ; {x} fills boxes of {b} ; how many eggs do not fill a box ; the eggs left over
& a rope of {a} m is cut into pieces of {b} m ; how long is the leftover ; the leftover
& {x} has {a} [#euros|dollars] ; {x} buys as many cards as possible at {b} each ; how much is left ; the change
# d = a * 1000; d - b | a=2-6 b=100,150,200,250,300,350,400,450,500,600,700,750,800,900
& a bag has {a} kg of flour ; {x} uses {b} g ; how many grams are left ; the grams left
& a bottle has {a} liters ; {b} ml are drunk ; how many ml are left ; the ml left
& the way is {a} km ; {x} has walked {b} m ; how many meters are left ; the meters left
# d = a * 1000; d / b | a=1-6 b=100,125,200,250,500
& a can holds {a} liters ; a glass holds {b} ml ; how many glasses can be filled ; the number of glasses
& there are {a} kg of nuts ; a bag takes {b} g ; how many bags are filled ; the number of bags
# d = a * 100; d / b | a=2-9 b=5,10,20,25,50,4
& a plank is {a} m long ; pieces of {b} cm are cut ; how many pieces are there ; the number of pieces
& {x} has {a} [#euros|dollars] ; a sweet costs {b} cents ; how many sweets can {x} buy ; the number of sweets
# d = a * 60; d / b | a=2-8 b=5,10,12,15,20,30
& the shop is open for {a} hours ; a customer takes {b} minutes ; how many customers can be served ; the number of customers
& {x} has {a} hours ; a game lasts {b} minutes ; how many games can {x} play ; the number of games
"""

"""Wordings of questions about measures, money, ages, shapes, rates and the like."""

WORLD = """
# a * 100 | a=2-60 | unit=cm from=m
how many [centimeters|cm|centimetres] [are in|are there in|make|is|equal|make up|correspond to] {a} [meters|m|metres][?|]
my [desk|door|sofa|bed|rope|garden|table] is {a} meters [wide|long|high]. [What's that in|How much is that in|In] [cm|centimeters][?|]
{a} [m|meters] [in|to|into|as|expressed in] [cm|centimeters][?|]
# a / 100 | b=1-60 a==b*100 | dec unit=m from=cm
how many [meters|m|metres] [are|is|are in|make] {a} [cm|centimeters][?|]
{a} [cm|centimeters] [in|to|into|as|expressed in] [m|meters][?|]
# a / 100 | a=50-900 | dec unit=m from=cm
my [desk|door|sofa|bed|rope|garden|table|dog|shelf|wall] is {a} [cm|centimeters] [wide|long|high|tall]. [What's that in|What is that in|How much is that in|In|How many] [m|meters][?|]
{a} cm [in|to|as] [m|meters][?|]
how many meters [tall|high|long|wide] is a {a} cm [door|pole|person|fence|board][?|]
# a * 60 | a=2-30 | unit=minutes from=hours
how many minutes [are in|are there in|make|make up|is|are|does it take for|do we have in] {a} hours[?|]
{a} hours [in|to|as|expressed in|is how many|are how many] minutes[?|]
the [film|meeting|flight|drive|lesson|shift] [lasts|takes|is|took|was] {a} hours[.|;] [how many minutes is that|in minutes|how long in minutes|how many minutes][?|]
# a * 60 | a=2-60 | unit=seconds from=minutes
how many seconds [are in|are there in|make|make up|is|are|pass in|tick by in] {a} minutes[?|]
{a} minutes [in|to|as|expressed in|is how many|are how many] seconds[?|]
the [song|race|break|video|round] [lasts|takes|is|took|was] {a} minutes[.|;] [how many seconds is that|in seconds|how long in seconds][?|]
# a * 24 | a=1-20 | unit=hours from=days
how many hours [are in|are there in|make|make up|is|are|pass in] {a} days[?|]
{a} days [in|to|as|expressed in|is how many|are how many] hours[?|]
# a * 7 | a=2-30 | unit=days from=weeks
how many days [are in|are there in|make|make up|is|are|pass in] {a} weeks[?|]
{a} weeks [in|to|as|expressed in|is how many|are how many] days[?|]
my [vacation|holiday|trip|course|internship] [is|lasts|takes|was] {a} weeks[ long|][.|,] [in days|how many days is that|how many days][?|]
# a * 12 | a=2-30 | unit=months from=years
how many months [are in|are there in|make|is|are|pass in] {a} years[?|]
{a} years [in|to|as|is how many|are how many] months[?|]
# a / 12 | b=1-20 a==b*12 | unit=years from=months
how many years [are|is|make] {a} months[?|]
{a} months [in|to|as|is how many] years[?|]
# a / 60 | b=1-20 a==b*60 | unit=hours from=minutes
how many hours [are|is|make] {a} minutes[?|]
{a} minutes [in|to|as|is how many] hours[?|]
# a / 7 | b=1-20 a==b*7 | unit=weeks from=days
how many weeks [are|is|make] {a} days[?|]
{a} days [in|to|as|is how many] weeks[?|]
# a / 24 | b=1-12 a==b*24 | unit=days from=hours
how many days [are|is|make] {a} hours[?|]
{a} hours [in|to|as|is how many] days[?|]
# a * 1000 | a=2-60 | unit=g from=kg
how many [grams|g] [are in|are there in|make|is|are|weigh] {a} [kilos|kg|kilograms][?|]
{a} [kilos|kg|kilograms] [in|to|as|expressed in|is how many] [grams|g][?|]
# a * 1000 | a=.1-20 | dec unit=g from=kg
how many [grams|g] [are in|is|are] {a} [kilos|kg|kilograms][?|]
{a} [kilos|kg|kilograms] [in|to|as] [grams|g][?|]
a [melon|baby|cat|parcel|bag|laptop] weighs {a} kg. [How many grams is that|What's that in grams|In grams][?|]
# a / 1000 | b=.1-20 a==b*1000 | dec unit=kg from=g
{a} [g|grams] [in|to|as|is how many] [kilos|kg|kilograms][?|]
how many [kilos|kg] [are|is] {a} [g|grams][?|]
# a * 1000 | a=.1-20 | dec unit=m from=km
how many [meters|m] [are in|is|are|make] {a} [km|kilometers][?|]
{a} [km|kilometers] [in|to|as|is how many] [meters|m][?|]
I [ran|walked|biked|jogged] {a} [km|kilometers]. [How many meters is that|In meters][?|]
# a / 1000 | b=.1-20 a==b*1000 | dec unit=km from=m
{a} [m|meters] [in|to|as|is how many] [km|kilometers][?|]
how many [km|kilometers] [are|is] {a} [m|meters][?|]
# a * 1000 | a=.1-20 | dec unit=ml from=liters
{a} [liters|l|litres] [in|to|as|is how many] [ml|milliliters][?|]
how many [ml|milliliters] [are in|is|are|fit in] {a} [liters|l][?|]
# a / 1000 | b=.1-20 a==b*1000 | dec unit=liters from=ml
{a} [ml|milliliters] [in|to|as|is how many] [liters|l|litres][?|]
how many liters [are|is] {a} [ml|milliliters][?|]
# a * 10 | a=1-99 | unit=mm from=cm
how many [mm|millimeters] [are in|is|are] {a} [cm|centimeters][?|]
{a} [cm|centimeters] [in|to|as] [mm|millimeters][?|]
# a / 10 | a=1-300 | dec unit=cm from=mm
how many [cm|centimeters] [are|is] {a} [mm|millimeters][?|]
{a} [mm|millimeters] [in|to|as] [cm|centimeters][?|]
# a * 12 | a=2-30 | unit=inches from=feet
how many inches [are in|are there in|is|are|make] {a} [feet|ft][?|]
{a} [feet|ft] [in|to|as|is how many] inches[?|]
# a / 12 | b=1-20 a==b*12 | unit=feet from=inches
{a} inches [in|to|as|is how many] [feet|ft][?|]
how many feet [are|is|make] {a} inches[?|]
# a * 3 | a=2-60 | unit=feet from=yards
how many feet [are in|is|are|make] {a} yards[?|]
{a} yards [in|to|as|is how many] feet[?|]
# a * 16 | a=1-20 | unit=ounces from=pounds
how many [ounces|oz] [are in|is|are|make] {a} [pounds|lbs|lb][?|]
{a} [pounds|lbs] [in|to|as|is how many] [ounces|oz][?|]
# a / 16 | b=1-12 a==b*16 | unit=pounds from=ounces
{a} [ounces|oz] [in|to|as|is how many] [pounds|lbs][?|]
# a * 4 | a=2-30 | unit=quarts from=gallons
how many quarts [are in|is|are|make] {a} gallons[?|]
{a} gallons [in|to|as|is how many] quarts[?|]
# a * 2 | a=2-30 | unit=pints from=quarts
how many pints [are in|is|are|make] {a} quarts[?|]
{a} quarts [in|to|as] pints[?|]
# a * 1000 | a=2-30 | unit=kg from=tons
how many [kg|kilos|kilograms] [are in|is|are] {a} [tons|tonnes][?|]
{a} [tons|tonnes|t] [in|to|as] [kg|kilos][?|]
# a * 4 | a=1-40
how many quarters [are in|make|make up|do I need for|are there in|give] {a} dollars[?|]
{a} dollars in quarters[:|, that is|] how many [coins|quarters|][?|]
# a * 10 | a=1-40
how many dimes [are in|make|make up|do I need for|are there in|give] {a} dollars[?|]
# a * 20 | a=1-20
how many nickels [are in|make|make up|do I need for|are there in|give] {a} dollars[?|]
# a * 25 + b * 10 | a=1-12 b=1-12 | unit=cents
{a} quarters [and|plus|+] {b} dimes[ in cents| are how many cents| is how many cents|: cents][?|]
how many cents [are|is|do I have with] {a} quarters and {b} dimes[?|]
# a * 25 + b * 5 | a=1-12 b=1-12 | unit=cents
{a} quarters [and|plus|+] {b} nickels[ in cents| are how many cents|: cents][?|]
how many cents [are|is|do I have with] {a} quarters and {b} nickels[?|]
# a * 25 + b | a=1-12 b=1-12 | unit=cents
{a} quarters [and|plus|+] {b} pennies[ in cents| are how many cents|: cents][?|]
# a * 10 + b * 5 | a=1-12 b=1-12 | unit=cents
{a} dimes [and|plus|+] {b} nickels[ in cents| is how many cents|: cents| make how many cents][?|]
I [found|have|saved] {a} dimes and {b} nickels. [How many cents is that|How much in cents][?|]
# a * 10 + b | a=1-12 b=1-12 | unit=cents
{a} dimes [and|plus|+] {b} pennies[ in cents| is how many cents|: cents][?|]
# a / b | b=5,10,20,50 c=1-20 a==b*c
how many {b} dollar bills [do I need to pay|make|are|give|are needed for] {a} dollars[?|]
{a} [dollars|euros] in [{b}s|notes of {b}|bills of {b}] [is|are|makes] how many [notes|bills][?|]
# a * 12 | a=5-40 | unit=dollars
I [pay|get|save|spend|earn] {a} dollars [a|per|each|every] month[.|,] [what is that|how much is it|how much is that] [per|a|in a|each] year[?|]
{a} dollars [a|per] month, how much [per|a] year[?|]
# b * 12 | a=1-50 b==a*100
my [salary|pay|income|rent] is ${b} [a|per|each] month, [what is it|how much is it|how much is that] [per|a] year[?|]
{x} [earns|makes|gets] ${b} [a|per|every] month. [How much in a year|What is the yearly pay|How much per year][?|]
# a / 12 | b=10-300 a==b*12
my [salary|pay|income|rent] is ${a} [a|per|each] year, [what is it|how much is it|how much is that] [per|a] month[?|]
{x} [earns|makes|gets] ${a} [a|per] year. [How much per month|How much is that each month][?|]
# a + b | a=$1-40 b=$1-40 | dec
I [bought|got|ordered|had|paid for|picked up] a [coffee|sandwich|book|salad|juice|ticket|bagel|soup] for ${a} and a [muffin|cookie|pen|drink|map|cake|donut|bun] for ${b}. [Total|What's the total|How much altogether|What did I pay|How much was that][?|]
[what's|what is|] the [total|bill|sum] for ${a} and ${b}[?|]
${a} [plus|and|+] ${b}[?|=|]
one [thing|item] costs ${a}, [the other|another] ${b}. [How much are both|Both together|Price of both|What do I pay][?|]
a {one} [is|costs|goes for] ${a} and a {job} [asks|charges|takes] ${b}. [Total|Altogether|How much is due][?|]
the [shirt|game|meal|toy|lamp] is ${a} and [shipping|delivery|the tip|wrapping|postage] is ${b}[.|,] [total|how much in all|what do I pay|what's the total][?|]
# a - b | b=$1-19 a=20,50,100 | dec
I [pay|paid] with a {a} for [something that costs|a {one} that costs|something at|a meal of|a bill of] ${b}. [What change do I get|How much change|My change|What do I get back|Change][?|]
a {one} costs ${b} and I [hand over|give the clerk|pay with|have] ${a}[.|;|,] [what comes back|how much change|what do I get back|the change|how much do I get back][?|]
out of ${a} I [spend|use|pay] ${b}[.|,] [what's left|how much do I still have|how much remains][?|]
${a} minus ${b}[?|]
change [from|out of|for] ${a} [for|after|on] [a purchase of|a bill of|a|] ${b}[?|]
{x} [buys|bought] a {one} for ${b} and [pays|paid] with a ${a} [bill|note]. [What is the change|How much change is due|Change][?|]
# a - b | b=1-500 c=1-300 a==b+c
a {one} [used to cost|was|cost] ${a} and now [costs|is|goes for] ${b}[.|;] [how much cheaper is it|how much did the price drop|how much do I save|by how much was it reduced][?|]
I have ${b} but the {one} costs ${a}[.|;] [how much am I short|how much is missing|how much more do I need|what do I still need][?|]
{x} owes {y} ${a} and [has paid|pays|has given] back ${b}[.|;] [how much is still owed|what is left to pay|how much does {x} still owe][?|]
# a + b | a=1-200 b=1-200
I owe {x} ${a} and {y} ${b}[.|,|;] [how much do I owe altogether|my total debt|what do I owe in all|total][?|]
{x} [has|earns|saved|gave|paid] ${a} and {y} ${b}[.|;] [how much [do|did|have] they [have|earn|save|give|pay] together|total|together|combined][?|]
# a * b | a=2-12 b=$1-30 | dec
{a} tickets at ${b} [each|apiece|a piece][,|:] [how much altogether|total|how much is that|what do I pay|price][?|]
if {t} cost ${b} each[,|] [what do|how much do|how much are] {a} [{t}|of them|] cost[?|]
{a} {t}, ${b} [each|apiece|per piece|a piece|per {one}][.|:|,|;] [total|how much|what's the bill|sum|cost][?|]
[what's|what is] the [cost|price|bill] of {a} {t} at ${b} [each|apiece][?|]
a [pack|box|bag|case|can|carton] costs ${b}[.|,|;] [what do {a} cost|how much for {a}|what is the price of {a}|{a} of them cost][?|]
{x} [orders|buys|takes|gets|needs] {a} {t} at ${b} [each|apiece|a piece|per piece][.|;] [how much is it|how much in total|what's the bill|what does it come to][?|]
# a * b | a=2-12 b=5,10,15,20,25,30,40,50,75,80,90
if {t} cost {b} cents each, [what do|how much do] {a} [{t}|of them] cost in cents[?|]
{a} {t} at {b} cents[ each|]: how many cents[?|]
# a * b / 100 | a=2-12 b=5,10,15,20,25,30,40,50,75,80,90 | dec unit=dollars
if {t} cost {b} cents each, [what do|how much do] {a} [{t}|of them] cost[ in dollars|][?|]
a {one} [costs|is] {b} cents. [How much are {a}|What do {a} cost][ in dollars|][?|]
# a / b | b=2-12 c=2-60 a==b*c
split a ${a} [bill|check|tab] [between|among|by] {b} [people|friends|of us][.|]
{b} [friends|people|roommates|of us] [share|split|divide] a [bill|rent|cost|prize] of ${a}[ evenly| equally|][.|;] [what does each pay|how much each|how much does one pay|how much per person|each person's share][?|]
{b} {t} cost ${a}[.|;|,] [how much is one|what's the price of one|price of one|what does one cost|how much for a single one][?|]
a {b}-pack [costs|is] ${a}[.|;] [how much is one|what does one cost|price per piece][?|]
${a} [divided|split|shared] [among|between] {b} [people|friends|kids|winners][?|: each gets?|. How much for each?]
a [book|ticket|plant|cap|toy|pizza] costs {b} euros. I have {a} euros. How many [can I buy|can I get|can I afford][?|]
# (a - c) / b | b=3-12 d=2-10 c=1-b a==b*d+c
a {one} costs ${b}. [With|If I have] ${a} and ${c} [already gone|spent on the bus], how many can I [buy|afford][?|]
# a * b / 100 + a | a=10,20,30,40,50,60,80,100,200,300,500 b=5,6,8,10,12,15,18,20,25,30,50 | dec
if [tax|the tax|sales tax|the tip|service] is {b}% on [a|an order of|a bill of|a meal of] ${a}[ order| bill||], what do I pay [overall|in total|altogether|all in all][?|]
a ${a} [meal|bill|order|dinner|lunch] plus {b}% [tip|tax|service] [is|comes to|makes][?| how much?| what?]
# a - a * b / 100 | a=10,20,30,40,50,60,80,90,100,120,150,200,300,500 b=5,10,15,20,25,30,35,40,50,60,75,80 | dec
a ${a} [jacket|shirt|lamp|bike|coat|watch|tent|rug|bag|phone] is {b}% off. [What's the sale price|What does it cost now|New price|What do I pay|How much is it now][?|]
{b} percent off {a} [bucks|dollars|euros|][?|]
[reduce|lower|cut|decrease] {a} by {b}[%| percent| per cent][.|]
{a} [reduced|lowered|decreased] by {b}[%| percent][?|]
a {one} [of|for|at|that costs] ${a} with a {b}% discount[?|. What is the price?|: price?| costs what?]
the price of ${a} [drops|falls|goes down|is cut] by {b}%[.|;] [new price|what is it now|what's the new price|price now][?|]
take {b}% off [of |]{a}[.|]
what is {a} minus {b}%[?|]
[what's|how much is] ${a} with {b}% off[?|]
# a + a * b / 100 | a=10,20,30,40,50,60,80,90,100,120,150,200,300,500 b=5,10,15,20,25,30,40,50,60,75,80 | dec
[increase|raise|grow] {a} by {b}[%| percent| per cent][.|]
{a} [increased|raised] by {b}[%| percent][?|]
the price of ${a} [rises|goes up|climbs|increases] by {b}%[.|;] [new price|what is it now|what's the new price|price now][?|]
a town of {a} [people|houses] grows by {b}%. [How many now|What is the new number|New size][?|]
what is {a} plus {b}%[?|]
my [pay|salary|rent] of ${a} [goes up|rises|grows] {b}%[.|;] [how much is it now|new amount|what do I get now][?|]
add {b}% to {a}[.|]
# a / b * 100 | b=4,5,10,20,25,50,100,2 a=1-b | dec
[what percentage|what percent|how many percent] is {a} [out of|of] {b}[?|]
{a} [is what|is how many] [percent|percentage|%] of {b}[?|]
I [scored|got|answered|hit|made] {a} [of|out of] {b}[, that's| - that's|. That is| which is|. What is that in] [how many percent|what percent|percent][?|]
{a} of {b} [in|as a|as] [percent|percentage|%][?|]
{a} out of {b} [people|students|cars|days|seats] [came|left|passed|are new|were sunny|are taken]. [What percentage is that|How many percent|Percent][?|]
express {a} of {b} as a percentage[.|]
# (a - b) / a * 100 | a=10,20,40,50,80,100,200,25 b=1-a | dec
a {one} [was|cost|used to cost] ${a}, now [it's|it is|it costs] ${b}. [How many percent cheaper|What is the discount in percent|By what percent did it drop|What percent off is that][?|]
the price [fell|dropped|went] from {a} to {b}[.|;] [by how many percent|what percent is that|percent change|percent drop][?|]
# b - a | a=1-80 c=1-60 b==a+c
{x} is {a}[ years old|]. [In how many years|How many years until|After how many years] [will {he} be|{he} is|is {he}] {b}[?|]
in {a} years {x} will be {b}[ years old|]. How old is {he} [now|today|at the moment][?|]
{x} is {b} and {y} is {a}[ years old|]. [What's the age gap|What is the age difference|How many years apart are they|How much older is {x}|How much younger is {y}|Age gap][?|]
[my|our] {kin} is {b}[,|;] I'm {a}[.|;|,] [age difference|how many years between us|how much younger am I|what's the age gap][?|]
I'm {b}. How old was I {a} years [back|ago|earlier][?|]
{a} years ago [how old was I|what was my age] [if|when] I [am|'m] {b} [now|today][?|]
{x} is {b}, {his} {kin} is {a} years younger. [How old is [the|{his}] {kin}|[The|{his}] {kin}'s age|What age is the {kin}][?|]
{x} is {b} and {his} {kin} is {a} years younger. How old's the {kin}[?|]
{x} turned {b} this year[.|;] [how old was {he}|what was {his} age] {a} years [ago|before][?|]
the sum of our ages is {b} and I'm {a}. How old is my {kin}[?|]
together {x} and {y} are {b}[.|;] {x} is {a}[.|;] [how old is {y}|{y}'s age|and {y}][?|]
my {kin} is {a} years older than me[.|;] {he} is {b}[.|;] [how old am I|my age|what's my age][?|]
when {x} was born, {his} [mom|mother] was {a}. Now [the|{his}] mother is {b}[.|;] [how old is {x}|{x}'s age][?|]
# b + a | a=1-60 b=1-60
{x} is {b}. How old will {he} be in {a} years[?|]
{a} years from now [what will|what's going to] be the age of {x}, who is {b}[ now| today|][?|]
{a} years ago {x} was {b}[.|;|,] [how old is {he} [now|today]|{his} age now|age today][?|]
{x} is {b} and {y} is {a} years older. [How old is {y}|What's the age of {y}|{y}'s age|{y} is how old][?|]
my {kin} is {a} years older than I am and I'm {b}[.|;] [how old is [he|she]|the {kin}'s age|how old is my {kin}][?|]
when {x} was born, {his} [#dad|father] was {a}. Now {x} is {b}[.|;] [how old is [the|{his}] [#dad|father]|the father's age][?|]
{x} is {a}, {y} is {b}[.|;] [how old are they together|sum of their ages|their ages add up to|combined age][?|]
# a * b | a=2-30 b=2-5
[Dad|Mom|my {kin}|{x}] is {b} times my age. I'm {a}. How old is [Dad|Mom|my {kin}|{x}|he|she][?|]
{x} is {a}, {y} is {b} times [as old|older|that|that age|{x}'s age][.|;] [{y}'s age|how old is {y}|age of {y}][?|]
# a / 2 | b=2-40 a==b*2
our [cat|dog|horse|house|car|son|hamster] is half as old as [our|the] [parrot|neighbor|mule|bus|tree|cousin], [and the other|which] is {a}[.|;] [how old is it|its age|age][?|]
{x} is half as old as {y}[.|;] {y} is {a}[.|;] [how old is {x}|{x}'s age][?|]
{y} is {a} and {x} is half [that|that age|as old|{y}'s age][.|;] [how old is {x}|{x}'s age][?|]
# a + b + c | a=2-60 b=2-20 c=2-20
{x} is {a}, {y} is {b} years older. How old [is|will] {y} [be |]in {c} years[?|]
{x} is {a}. {y} is {b} years older than {x}. {z} is {c} years older than {y}. How old is {z}[?|]
{y} is {b} years older than {x}, who is {a}. What age will {y} [have|reach|be] in {c} years[?|]
# a - b + c | b=2-20 d=1-40 a==b+d c=2-20
{x} is {a}, {y} is {b} years younger. How old [is|will] {y} [be |]in {c} years[?|]
{y} is {b} years younger than {x}, who is {a}. {z} is {c} years older than {y}. [How old is {z}|{z}'s age][?|]
# c - (a - b) | b=1-20 d=1-12 a==b+d e=1-50 c==a+e
when I was {a} my {kin} was {b}. Now I'm {c}. How old is [he|she|my {kin}][?|]
{x} was {a} when {y} was {b}. {x} is {c} now[.|;] [how old is {y}|{y}'s age][?|]
# c + (b - a) | a=1-20 d=1-30 b==a+d e=1-50 c==a+e
when I was {a} my {kin} was {b}. Now I'm {c}. How old is [he|she|my {kin}][?|]
{x} was {a} when {y} was {b}. {x} is {c} now[.|;] [how old is {y}|{y}'s age][?|]
# b - d | c=0-90 d=3-80 b==1930+c+d | years
[what year|in which year|when] was [somebody|a man|a woman|a person] born who [turned|became|was] {d} in {b}[?|]
{x} was {d} in {b}[.|;] [when was {he} born|birth year|{his} year of birth|in which year was {he} born][?|]
in {b} {x} [turned|was|became] {d}[.|;] [when was {he} born|birth year|{his} year of birth|what year was {x} born][?|]
# b - a | c=0-90 a==1930+c d=3-80 b==a+d | years
born in {a}, how old in {b}[?|]
{x} was born in {a}. [What age does {he} reach in {b}|How old is {he} in {b}|{his} age in {b}|How old does {he} turn in {b}][?|]
my {kin} was born in {a}[.|;] [how old is [#he|she] in {b}|what age in {b}|what age does [#he|she] reach in {b}][?|]
[the|our] [house|bridge|school|firm|club|tree] [dates from|was built in|was founded in|goes back to] {a}[.|;] [how old in {b}|its age in {b}|how many years is that until {b}][?|]
from [the year |]{a} to [the year |]{b} [is|are] how many years[?|]
# a + b + c | a=1-60 b=1-60 c=1-60
the [sides|edges] of a triangle are {a}, {b} and {c}[.|;] [perimeter|what is its perimeter|how long is the way around it|distance around][?|]
[perimeter|circumference] of a triangle with sides {a}, {b}, {c}[?|]
# 180 - (a + b) | a=20-80 b=20-80
two angles of a triangle are {a} and {b} degrees. [The third|What is the third|How big is the third|The last angle][?|]
[a triangle|one triangle] has angles of {a}° and {b}°[.|;] [the third angle|what's the third one|missing angle][?|]
# a * b | a=2-40 b=2-30
[what's|what is|find|] the area of a [rectangle|room|field|carpet|wall|page|screen|garden] [{a} by {b}|of {a} by {b}|that is {a} by {b}|{a} x {b}|with sides {a} and {b}|{a} long and {b} wide][?|]
a [room|hall|yard|deck|poster|lawn|floor] is {a} m wide and {b} m long. [How many square meters|What's its area|How big is it|Area|How many square meters is that][?|]
a rectangle has [length|width] {a} and [width|height] {b}[.|;] [area|its area|what is its area][?|]
[how much|how many square feet of] [carpet|paint|grass|tile] covers a {a} by {b} [foot|ft] [room|floor|lawn][?|]
how big is the [surface|area] of a {a} m by {b} m [lawn|field|wall|table][?|]
# (a + b) * 2 | a=2-60 b=2-60
[what's|what is|find|] the perimeter of a [rectangle|room|field|garden] [{a} by {b}|of {a} by {b}|{a} x {b}|with sides {a} and {b}|{a} long and {b} wide][?|]
a fence goes [around|round] a {a} m by {b} m [yard|garden|field|pool]. How [long is it|many meters is that|much fence is that][?|]
how long is the [border|edge|way|path|rope|walk] around a {a} by {b} [rectangle|field|table|court|yard][?|]
a rectangle has sides {a} and {b}[.|;] [perimeter|its perimeter|how far is it around][?|]
# a * 4 | a=2-60
perimeter of a square [with side|of side|with sides of] {a}[?|]
a square [has|with] [a side of|sides of|side] {a} [cm|m|][.|;|:] [perimeter|how far around|what is its perimeter][?|]
[how long is the way|how far is it] around a square [of|with] side {a}[?|]
# a * a | a=2-30
area of a square [with side|of side|with sides of] {a}[?|]
a square [has|with] [a side of|sides of|side] {a} [cm|m|][.|;|:] [area|what is its area|how big is it][?|]
a [tile|field|room|lawn] is {a} by {a}[.|;] [area|what's its area][?|]
# a / 4 | b=2-60 a==b*4
a square has a perimeter of {a}[.|;] [how long is one side|side|what is its side][?|]
the way around a square is {a} m[.|;] [how long is a side|one side][?|]
# a / b | b=2-20 c=2-20 a==b*c
a rectangle has area {a} and [width|one side] {b}[.|;] [how long is it|the other side|what is the length|length][?|]
area {a}, [length|width] {b}[.|;|:|,] [the other side|width|the missing side][?|]
# a * b / 2 | a=2-20 d=1-12 b==d*2
a triangle has base {a} and height {b}. [Area|What's its area|How big is it][?|]
area of a triangle with base {a} and height {b}[?|]
# a * b * c | a=2-12 b=2-12 c=2-12
[what is the |]volume of a [box|crate|tank|room|brick] {a} x {b} x {c}[?|]
a [box|crate|tank|room] is {a} by {b} by {c}[.|;] [volume|what's its volume|how much does it hold][?|]
a box with [edges|sides] {a}, {b} and {c}[.|;|:] [volume|its volume][?|]
how many [unit|small|1 cm] cubes fit in[to|] a {a} by {b} by {c} box[?|]
# 2 * a | a=2-60
the radius [of a circle |]is {a}[.|;|,] [what's the diameter|diameter|how wide is it|how big is the diameter][?|]
a circle [has|with] radius {a}[.|;|:] [diameter|its diameter][?|]
# a / 2 | b=2-60 a==b*2
the diameter [of a circle |]is {a}[.|;|,] [what's the radius|radius|how long is the radius][?|]
a circle [is {a} wide|has a diameter of {a}|with diameter {a}][.|;] [radius|its radius][?|]
# (a + b) / 2 | a=1-60 c=0-30 b==a+2*c
[what is |what's |find |]the [arithmetic mean|mean|average|middle] of {a} and {b}[?|]
[halfway|midway|exactly in the middle] between {a} and {b}[ is| lies|][?| what number?| which number?]
average {a} and {b}[.|]
# (a + b + c) / 3 | a=1-60 b=1-60 d=1-60 c==3*d-a-b
[what is |what's |find |]the [arithmetic mean|mean|average] of {a}, {b} and {c}[?|]
[mean|average] of {a} {b} {c}[?|]
my [test scores|grades|times|scores|results] were {a}, {b} and {c}. What's my average[?|]
three [kids|dogs|boxes|players|parcels] weigh {a}, {b} and {c} kilos. [What do they weigh on average|Average weight|What's the mean weight][?|]
it rained {a} mm, {b} mm and {c} mm on three days. [Average per day|What is the average|Mean per day][?|]
on {day} I [sold|ran|made|read|saw] {a}, on {day2} {b} and on {day3} {c}. [Average|What is the average per day|Mean|How many per day on average][?|]
{x} [scored|got|caught|sold] {a}, {b} and {c}[.|;] [on average|mean|average|what's the average][?|]
# a * 2 - b | a=2-60 b=1-a
two numbers average {a}. One is {b}. [What's the other|The other|Which is the other|Find the other][?|]
the [mean|average] of two numbers is {a} and one [of them |]is {b}[.|;] [the other|what's the other one][?|]
# a * b | a=2-12 b=2-30
[averaged over|over|for|during] {a} days I [walked|ran|read|typed|slept|biked] [an average of |on average |]{b} [km|pages|hours|miles] [daily|a day|per day|each day]. [How far in all|How much in total|Total|In all][?|]
the average of {a} [numbers|scores|weights] is {b}[.|;] [what is their sum|their sum|the total|what do they add up to][?|]
a [car|train|bus|bike|truck|ship] [goes|drives|travels|does|moves] {b} [miles|km|kilometers] an hour. [How far does it get|How far does it go|How far|Distance] in {a} hours[?|]
I [type|read|write|speak] {b} words a minute. How many [words |]in {a} minutes[?|]
[a|the] [factory|machine|plant|workshop] [turns out|makes|produces|puts out] {b} [toys|parts|cars|shoes] [per|an|every] hour[;|,|.] how many in [an {a} hour shift|{a} hours][?|]
[she|he|{x}] [earns|makes|gets|is paid] ${b} an hour and [worked|works] {a} hours. [Pay|How much is that|What's the pay|How much [does|did] [she|he|{x}] get][?|]
my heart beats {b} times [per|a|every] minute. How many times in {a} minutes[?|]
at {b} [km|miles] per hour for {a} hours [you get how far|how far is that|what distance][?|]
{b} [liters|pages|boxes|cars] [a|per|each|every] {unit} for {a} {units}[:|,|.] [how many|total|how many in all][?|]
driving {b} mph for {a} hours covers [how many miles|what distance|how far][?|]
each {unit} {b} [drops|cars|people|letters] [come|pass|arrive|fall]. How many in {a} {units}[?|]
# a / b | b=2-12 c=2-60 a==b*c
[a|the] [tap|hose|pump|pipe] [fills|gives|moves|delivers] {a} liters in {b} minutes. [Liters per minute|How many liters per minute|How much per minute][?|]
it takes {b} hours to [drive|ride|travel|cover|go] {a} km. [What's the speed|How fast is that|Speed|Average speed|km per hour][?|]
{a} [km|miles] in {b} hours [is what speed|is how fast|: speed|, how fast][?|]
{b} [#painters|workers|kids|cooks|teams] [#paint|make|clean|cook|build] {a} [#rooms|chairs|cars|meals|boxes]. How many does one [#paint|make|clean|cook|build][?|]
[running|walking|biking] {b} km in {a} minutes means how many minutes per km[?|]
I read {b} pages a day. When am I [through|done with|finished with] a {a}-page book[?| (in days)?]
I read {b} pages [a|per|each] day. How many days [for|does it take for|do I need for] {a} pages[?|]
[at|with] {b} [km per hour|km/h], how [long|many hours] for {a} km[?|]
at {b} mph, how [long|many hours] for {a} miles[?|]
I save {b} dollars [a|each|per|every] week. [How many weeks|After how many weeks do I have|When do I have] [until|till|for|] {a} dollars[?|]
{a} pages at {b} pages [a|per] day [takes|needs|is] how many days[?|]
how many {units} [do I need|does it take] for {a} [tasks|pages|boxes|miles] at {b} per {unit}[?|]
{a} [sheep|plants|desks|chairs|soldiers] stand in {b} equal rows. How many [are |]in each row[?|]
# a / b * c | b=2-9 d=1-12 a==b*d c=2-12
if {b} {t} cost ${a} what is the cost of {c} [of them|][?|]
{b} {t} cost ${a}[.|;|,] [what do {c} cost|how much are {c}|how much for {c}|price of {c}][?|]
{b} [#machines|hens|workers|pumps] [#make|lay|do|move] {a} [#parts|eggs|jobs|liters]. How many do {c} of them [#make|lay|do|move][?|]
in {b} {units} it [makes|does|moves|fills] {a}[.|;] [how many in {c}|how much in {c} {units}][?|]
{a} [km|miles] in {b} hours[.|;|,] [how far in {c} hours|how far does one get in {c} hours][?|]
a recipe for {b} people [needs|takes|uses] {a} [eggs|cups of flour|grams of sugar|spoons of oil]. How [many|much] for {c} people[?|]
# a * b / c | a=2-10 b=2-12 c=1-24
{a} [workers|men|painters|pumps|cooks|people|machines] need {b} {units}. How many {units} do {c} of them need[?|]
{a} [horses|cows|cats|people] have food for {b} days. How long does it last for {c} [of them|][?|]
# a * 60 | a=1-99
my [heart|pulse] beats {a} times [per|a] minute. How many times in an hour[?|]
{a} [per|a|every] minute[ is| makes|,] how many [an|per] hour[?|]
a [machine|printer|tap|fan] [does|makes|turns|drips] {a} [turns|pages|drops|times] [per|a] minute. [How many per hour|Per hour][?|]
# b + c | a=1-60 c=2-12 b==a+c
count by {c}s: {a}, {b}, [what's next|what comes next|then][?|]
# f = d - b; g = e - d; e + g | a=0-60 c=1-15 b==a+c d==b+c e==d+c
[what comes next|what's next|next number|continue|go on|next in line|complete|the following number]: {a}, {b}, {d}, {e}[?|, ...|, ?|, _]
{a}, {b}, {d}, {e}[, ...|, ?|, what's next?|, and then?| - what follows?|, what comes next?|. Next?]
[which|what] number [follows|continues|comes after|is next in] [the sequence|the series|the row|] {a}, {b}, {d}, {e}[?|]
{a} {b} {d} {e} [?|_|...]
[a|the] pattern goes {a}, {b}, {d}, {e}[.|;] [next|what is next|the next one|and then][?|]
# f = b - d; g = d - e; e - g | e=15-60 c=1-15 d==e+c b==d+c a==b+c
[what comes next|what's next|next number|continue|go on|next in line|complete]: {a}, {b}, {d}, {e}[?|, ...|, ?|, _]
{a}, {b}, {d}, {e}[, ...|, ?|, what's next?|, and then?| - what follows?|, what comes next?|. Next?]
[which|what] number [follows|continues|is next in] [the sequence|the series|the row|] {a}, {b}, {d}, {e}[?|]
[counting|count] [down|back] {a}, {b}, {d}, {e}, [what's next|next][?|]
# f = e / d; e * f | a=1-5 c=2,3,4,5,10 b==a*c d==b*c e==d*c
[what comes next|what's next|next number|continue|go on|next in line|complete]: {a}, {b}, {d}, {e}[?|, ...|, ?|, _]
{a}, {b}, {d}, {e}[, ...|, ?|, what's next?|, and then?|, what comes next?]
# f = d / e; e / f | n=1-9 c=2,3,4,5,10 e==n*c d==e*c b==d*c a==b*c
[what comes next|what's next|next number|continue|go on]: {a}, {b}, {d}, {e}[?|, ...|, ?|, _]
{a}, {b}, {d}, {e}[, ...|, ?|, what's next?|, and then?]
# a + (e - d) | a=1-60 c=1-15 b==a+c d==b+c e==d+c
[fill in|complete|find the missing number|what's missing|which number is missing]: {a}, __, {d}, {e}[.|?|]
# b + (b - a) | a=1-60 c=1-15 b==a+c d==b+c e==d+c
[fill in|complete|find the missing number|what's missing|which number is missing]: {a}, {b}, __, {e}[.|?|]
{a}, {b}, [_|?|__|...], {e}[: what is missing?|: missing number?|]
# a * b | a=2-15 b=4-12
counting by {a}s from {a}, what's the {b}th number[?|]
the {b}th multiple of {a}[?|]
[what is|find] the {b}th number in the {a} times table[?|]
# 2 * a | a=4-20
[what is|what's|] the {a}th even number[?|]
# 2 * a - 1 | a=4-20
[what is|what's|] the {a}th odd number[?|]
# a * b / 2 | a=4-20 b==a+1
[what is the |]sum of the [first {a} [numbers|whole numbers|natural numbers]|numbers [from |]1 to {a}|whole numbers up to {a}][?|]
add [up |]all [numbers|whole numbers] from 1 to {a}[.|]
1 + 2 + ... + {a}[?|=|]
# 1000 / 2 | a=1-2 | unit=g
half a [kilo|kg|kilogram] [is|in|are|makes] [how many |]grams[?|]
how many [grams|g] [are|is] [in |]half a [kilo|kg|kilogram][?|]
# 1000 / 4 | a=1-2 | unit=ml
[a|one] quarter of a [liter|litre] in ml[?|]
how many ml [are|is] a quarter [of a |]liter[?|]
# 1000 / 2 | a=1-2 | unit=ml
half a [liter|litre] [in|is how many] [ml|milliliters][?|]
# 1000 / 2 | a=1-2 | unit=m
half a [kilometer|km] [in|is how many] [m|meters][?|]
# 100 / 2 | a=1-2 | unit=cm
half a meter [in|is how many] [cm|centimeters][?|]
# 60 / 2 | a=1-2 | unit=minutes
half an hour [in|is how many] minutes[?|]
# 60 / 4 | a=1-2 | unit=minutes
a quarter of an hour [in|is how many] minutes[?|]
# 60 / 4 * 3 | a=1-2 | unit=minutes
three quarters of an hour [in|is how many] minutes[?|]
# a * 60 + 30 | a=1-12 | unit=minutes
{a} and a half hours [in|to|are how many] minutes[?|]
{a}½ hours [in|to] minutes[?|]
how many minutes are [in |]{a} and a half hours[?|]
{a} hours and a half in minutes[?|]
# a * 60 + b | a=1-9 b=1-59 | unit=minutes
{a} hours {b} minutes [in|to|as] minutes[?|]
{a} h {b} min [in|to|=] [minutes|min][?|]
how many minutes are {a} hours and {b} minutes[?|]
# a * 12 + b | a=1-9 b=1-11 | unit=inches
{a} feet {b} inches [in|to|as] inches[?|]
how many inches [tall|long|] is {a} feet {b} inches[?|]
{a}'{b}" in inches[?|]
# a * 1000 + b | a=1-9 b=50,100,200,250,300,400,500,600,700,750,800,900 | unit=m
{a} km [and |]{b} m [in|to|as] [m|meters][?|]
# a * 1000 + b | a=1-9 b=50,100,200,250,300,400,500,600,700,750,800,900 | unit=g
{a} kg [and |]{b} g [in|to|as] [g|grams][?|]
# a * 100 + b | a=1-9 b=1-99 | unit=cm
{a} m [and |]{b} cm [in|to|as] [cm|centimeters][?|]
# a * 24 * 60 | a=1-3 | unit=minutes
how many minutes are in {a} day[s|][?|]
# 24 * 60 | a=1-2 | unit=minutes
how many minutes [are in|has|make|does] a day[?| have?]
# 60 * 60 | a=1-2 | unit=seconds
how many seconds [are in|has|make|does] an hour[?| have?]
# a / 60 | b=.1-9 a==b*60 | dec unit=hours from=minutes
[convert|change] {a} minutes [into|to] hours[.|]
{a} minutes [in|to] hours[?|]
# a * 100 / b | b=2,4,5,6,8,10,12,20 c=5,10,15,20,25,30,40,50,60,75 a==b*c/100 | unit=cents
{b} [eggs|pens|rolls|stamps|cards] cost ${a}, [price per piece|price of one|how much is one] in cents[?|]
# a * 6 | a=5-900
[rent|pay|a fee|the gym] is {a} a month, how much [in|for|is it for] half a year[?|]
half a year at {a} [dollars |]a month[?|]
# a - a / 4 | b=1-40 a==b*4
I had ${a}, [spent|lost|gave away] a quarter of it. [What's left|How much is left|How much do I have][?|]
a quarter of {a} {t} is [gone|sold|eaten]. How many are left[?|]
# a - a / 2 | b=1-60 a==b*2
I had ${a}, [spent|lost|gave away] half of it. [What's left|How much is left|How much do I have][?|]
half of {a} {t} are [gone|sold|eaten]. How many are left[?|]
# a - a / 3 | b=1-40 a==b*3
I had ${a}, [spent|lost|gave away] a third of it. [What's left|How much is left|How much do I have][?|]
[a third|1/3] of {a} {t} is [gone|sold|eaten]. How many are left[?|]
# a - a / 3 * 2 | b=1-40 a==b*3
a {job} [had|made|baked] {a} {t}, sold [2/3|two thirds] of them. How many are left[?|]
{x} has {a} {t} and gives away two thirds. How many [are left|does {he} keep][?|]
# a - a / 4 * 3 | b=1-40 a==b*4
a {job} [had|made|baked] {a} {t}, sold [3/4|three quarters] of them. How many are left[?|]
# a - a / 5 * 2 | b=1-30 a==b*5
a {job} [had|made|baked] {a} {t}, sold [2/5|two fifths] of them. How many are left[?|]
# a / 5 * 3 | b=1-30 a==b*5
[3/5|three fifths] of {a} [kids|students|cars] [wear glasses|are here|are red]. How many[?| is that?]
# a / 4 * 3 | b=1-30 a==b*4
[3/4|three quarters] of {a} [kids|students|cars|people] [wear glasses|are here|are red|came]. How many[?| is that?]
# a / 3 * 2 | b=1-30 a==b*3
[2/3|two thirds] of {a} [kids|students|cars|people] [wear glasses|are here|are red|came]. How many[?| is that?]
# a / b | b=2-9 c=1-15 a==b*c
[1/{b}|one {b}th] of the {a} [kids|students|cars|people] [wear glasses|are here|are red|came]. How many[?| is that?]
# (a + b) / 2 | a=1-60 c=0-40 b==a+2*c
{x} earned ${a} on {day} and ${b} on {day2}, then spent half. How much is left[?|]
# a * c / b | b=2-12 c=2-24 a=1-12 | dec
{b} {t} cost ${a}, [how much do|what do|price for] {c} [{t}|of them][ cost|][?|]
{a} [eggs|cups|spoons] for {b} cakes, [eggs|how much|how many|amount] for {c} [cakes|][?|]
# a * b / 100 | a=3-12 b=100,200,250,300,400,500,50,600,700
a car [uses|needs|takes] {a} liters per 100 km, [how many |]liters for {b} km[?|]
{a} liters per 100 km. How much [fuel |]for {b} km[?|]
# a + b | a=16-45 b=1-60
my [mother|mom|dad|father] had me at {a}. I'm {b}. How old is [she|he|my parent] [now|][?|]
[mom|dad|my mother|my father] was {a} when I was born[.|;|,] I'm {b} now[.|;|,] [{his} age|how old is [she|he]|age][?|]
a [woman|man] had a [child|son|daughter] at {a}. The child is {b}. [The parent's age|How old is the parent][?|]
{x} was {a} {b} years ago[.|;] [How old is {he} [now|today]|{his} age|Today's age][?|]
# a + 10 | a=1-80
how old will [a {a} year old|somebody who is {a}|{x}, {a},] be in [a decade|one decade|ten years][?|]
# a - 10 | a=11-80
how old was [a {a} year old|somebody who is {a}|{x}, {a},] [a decade|one decade|ten years] ago[?|]
# (a + b + c + d) / 4 | a=0-30 b=0-30 c=0-30 e=1-25 d==4*e-a-b-c
a team scored {a}, {b}, {c} and {d} [goals|points]. [Goals|Points|How many] per game[?|]
[ages|weights|scores|numbers|temperatures|times] {a}, {b}, {c} and {d}[,|:|;] [mean|average|mean value|average value][?|]
[mean|average] of {a}, {b}, {c}, {d}[?|]
# f = d - b; g = e - d; h = g * 2; e + h | a=1-9 c=1-4 b==a+c d==b+2*c e==d+4*c
{a}, {b}, {d}, {e}, [?|...|next|next one?|what comes next?]
[what comes next|next number|continue]: {a}, {b}, {d}, {e}[?|, ?|]
# f = d - b; g = e - d; h = g + 2; e + h | a=0-9 c=1-5 b==a+c d==b+c+2 e==d+c+4
{a}, {b}, {d}, {e}, [?|...|next|next one?|what comes next?]
[what comes next|next number|continue]: {a}, {b}, {d}, {e}[?|, ?|]
# f = d - b; g = e - d; h = g + 1; e + h | a=0-9 c=1-5 b==a+c d==b+c+1 e==d+c+2
{a}, {b}, {d}, {e}, [?|...|next|next one?|what comes next?]
[what comes next|next number|continue]: {a}, {b}, {d}, {e}[?|, ?|]
# b - a | a=1-60 c=1-60 b==a+c d=a-b
[what's|what is] the [difference|gap|distance] between the [biggest|largest|highest|greatest] and [the |][smallest|lowest|least] of {a}, {d}, {b}[?|]
[what's|what is] the [difference|gap|distance] between the [biggest|largest|highest] and [the |][smallest|lowest] of {b}, {a}, {d}[?|]
[range|spread] of {d}, {a}, {b}[?|]
# a * b - c | a=3-15 b=5-20 c=1-40
a [theater|hall|bus fleet|cinema] has {a} rows of {b} seats. {c} seats are [empty|free|broken]. How many are [occupied|taken|used|fine][?|]
{a} [trains|buses|boats] carry {b} people each. {c} [people |]get off. How many [people |]remain[?|]
# a * 2 | a=$1-30 | dec
[bus|train|ferry|tram] fare is ${a} each way[, what's|. What's|, how much is|. How much for] a round trip[?|]
a [ticket|ride] costs ${a} one way[.|,|;] [What does it cost there and back|return trip|both ways|round trip][?|]
# d = a / b; c / d | b=2-10 f=2-12 a==b*f g=2-12 c==f*g
[a|the] [pump|tap|hose|machine|pipe] [moves|fills|gives|does] {a} liters in {b} minutes[;|.|,] how [long|many minutes] for {c} liters[?|]
{a} [pages|boxes|km|words] in {b} [minutes|hours|days][.|,|;] how long for {c}[?|]
if {a} {t} take {b} hours, how [long|many hours] do {c} take[?|]
# a - b - c | b=1-40 c=1-40 d=1-60 a==b+c+d
{x} is saving for a ${a} {one}[;|,|.] {he} has ${b} and gets ${c}[ more|]. How much is [still missing|missing|left to save|still needed][?|]
a {one} costs ${a}[.|;|,] {x} has ${b}, {his} {kin} gives {him} ${c}. How much more [does {he} need|is needed][?|]
# d = a * b; d - c | a=2-30 b=2-12 c=5-60
[our club|the school|{x}|a band] sold {a} tickets at ${b}[ each|] and paid ${c} for the [hall|music|food]. What [profit|gain] [did they make|is that|was made|remained][?|]
{x} sells {a} {t} for ${b} each[.|;|,] the [costs|material|stand] [are|is|was] ${c}. [Profit|What is the profit|How much profit][?|]
# d = a * b; d - c | a=2-20 b=2-12 c=1-20
{x} earns {a} [dollars |]an hour, works {b} hours and pays {c} for [gas|lunch|the bus|tax]. What's left[?|]
# d = a * 2; b - d | a=2-30 c=1-40 b==2*a+c
{x} buys two {t} at ${a} each and pays with ${b}. [Change|How much change|What comes back][?|]
# d = a / 2; d + b | c=1-30 a==2*c b=1-20
my {kin} is {b} years older than me, I'm half of {a}. [Her|His] age[?|]
{y} is half of {a} years old and {x} is {b} years older. How old is {x}[?|]
# d = a + b; d + c | a=2-40 b=2-20 c=2-20
in {c} years, how old will {x} be [if|when] {he} is {b} years older than {y}, who is {a}[?|]
{y} is {a}. {x} is {b} years older. [How old is {x} in|What will {x}'s age be in] {c} years[?|]
# d = a - b; d + c | a=22-60 b=2-20 c=2-20
{y} is {a}. {x} is {b} years younger. [How old is {x} in|What will {x}'s age be in] {c} years[?|]
# d = b - a; d + c | a=1-40 f=1-40 b==a+f c=1-30
in {a} years {x} will be {b}. How old will {he} be in {c} years[?|]
# d = a + b; d / 2 | a=5-40 f=5-40 b==2*f-a
{x} is {a}, {y} is {b}. [What is their average age|Average age|Mean age][?|]
# d = a * b; e = d / 100; c - e | a=10,20,25,30,40,50 b=20,40,60,80,100,200 c==b
{a}% of {b} {t} [are|were] [sold|broken|gone|eaten]. How many [are left|remain][?|]
of {b} [students|guests|seats] {a}% [left|are away|are taken]. How many [stay|are there|are free][?|]
# d = a * b; e = d / 100; a + e | a=20,40,50,60,80,100,200,400 b=5,10,15,20,25,30,40,50
a [club|town|school|company] has {a} [members|people|kids] and [gains|grows by|gets] {b}%[ more|]. How many now[?|]
# d = b - a; e = d / a; e * 100 | a=10,20,40,50,80,100,200 c=1-a b==a+c
[up|a rise|an increase] from {a} to {b}[:|, |. ][how many percent|percent|in percent][?|]
# d = a * b; d / c | a=2-12 b=2-12 c=2-9 e==a*b/c
{a} [bags|boxes] of {b} {t} are shared by {c} {kids}. How many each[?|]
# d = a * b; e = d / 3; d - e | a=3,6,9,12 b=2-12
{x} bakes {a} trays of {b} {t} and gives away a third. How many [are left|{t} are left|remain][?|]
{x} has {a} {boxes} of {b} {t} and [sells|eats|loses] [one third|a third|1/3]. How many are left[?|]
# d = a * b; e = d / 2; d - e | a=2,4,6,8,10 b=2-12
{x} bakes {a} trays of {b} {t} and gives away half. How many [are left|{t} are left|remain][?|]
{x} has {a} {boxes} of {b} {t} and [sells|eats|loses] half[ of them|]. How many are left[?|]
# d = a * b; e = d / 4; d - e | a=4,8,12 b=2-12
{x} has {a} {boxes} of {b} {t} and [sells|eats|loses] [one quarter|a quarter|1/4]. How many are left[?|]
# d = a + b; d / 2 | a=1-40 f=2-40 b==2*f-a
{x} [earned|got|found] {a} and {b} dollars and [spent|gave away] half. How much is left[?|]
# d = b * 2; e = a - b; e + d | b=1-12 f=1-30 a==b+f
a bus starts with {a} riders. {b} get off, then twice as many [as got off |]get on. How many [riders|are on it][?|]
# d = a * b; d + c | a=2-9 b=2-30 c=1-40
{x} [#reads|runs|types|sells|plants] {b} [#pages|km|lines|cards|trees] on each of {a} days and {c} on [the weekend|the last day|{day}]. How many [is that|in all|altogether][?|]
on each of {a} days {x} [reads|runs|types|sells|plants] {b}, and {c} on the day after. Total[?|]
# b * a / 100 | a=10,20,25,30,40,50,60,70,75,80,90 b=40,80,100,200,300,400,500,1000,2000,4000,5000
my [phone|battery|tank|disk|laptop] is at {a}% of {b} [mAh|liters|MB|GB|units]. How [many|much] [mAh |liters |MB |GB |units |][is left|are left|is in it|remains][?|]
out of {b} [voters|people|students|guests], {a} percent said yes. How many [yes votes|said yes|is that|people][?|]
{a} percent interest on {b} dollars for [one|a] year[?|]
[how much|what] interest do {b} dollars [earn|bring] in a year at {a}%[?|]
[leave|give] a {a} percent tip on {b} dollars, how big is the tip[?|]
save {a}% on [a|an order of] {b} [dollar |dollars, ][order, |]how much do I save[?|]
[a discount|a reduction] of {a}% on {b} [dollars|euros] is how much[?|]
[sales tax|tax|VAT] of {a}% on {b} dollars [is how much|equals what|?]
# d = b * a; e = d / 100; b - e | a=10,20,25,30,40,50,60,70,75,80,90 b=40,80,100,200,300,400,500,1000
my [phone|battery|tank|disk] of {b} [mAh|liters|GB] is {a}% [used|empty|spent]. How [many|much] is left[?|]
{a}% of [a road of |]{b} [km|meters|pages] [is|are] done. How [many|much] to go[?|]
# a / b * 100 | b=4,5,10,20,25,50,8,40,80,16 a=1-120 | dec
{a} is what percent of {b}[?|]
[what|which] percent of {b} is {a}[?|]
{a} out of {b} [eggs|seats|cards] [were|are] [cracked|free|red], what percent[?|]
# a / 2 | b=1-50 a==2*b
half of {a} percent [as a percent|in percent|is how many percent][?|]
# d = a / b; d * c | b=3 c=4 e=1-30 a==3*e
if [3/4|three quarters] of a [tank|bottle|pool|bag] [is|are] {a} [liters|kilos|cups], how [many|much] [liters |kilos |cups |]does [it|the whole] hold[?|]
[3/4|three quarters] of a number is {a}. What is the number[?|]
# d = a / b; d * c | b=2 c=3 e=1-30 a==2*e
if [2/3|two thirds] of a [tank|bottle|class|bag] [is|are] {a}, how many is [all|the whole|everything][?|]
[2/3|two thirds] of a number is {a}. What is the number[?|]
# a * 2 | a=1-60
half of a number is {a}. [What is it|The number|Which number][?|]
{a} is half of what[?|]
# a * 3 | a=1-60
a third of a number is {a}. [What is it|The number|Which number][?|]
{a} is [a third|1/3] of what[?|]
# a * 4 | a=1-60
a quarter of a number is {a}. [What is it|The number|Which number][?|]
{a} is [a quarter|1/4|one fourth] of what[?|]
# d = a * b; d + c | a=2-15 b=2-4 c=1-12
my [dog|sister|cat] is {a} and my cousin is {b} times as old. How old will [my|the] cousin be in {c} years[?|]
{x} is {a}, {y} is {b} times as old. How old [is|will] {y} [be |]in {c} years[?|]
# d = a * 2; d + 1 | a=2-40
my dog is {a} and my cat is twice as old. How old will my cat be next year[?|]
{x} is {a} and {y} is twice as old. [How old is {y} next year|{y}'s age next year][?|]
# d = a * b; d - c | a=4-15 b=2-4 c=1-3
{x} is {a}, {y} is {b} times as old. How old was {y} {c} years ago[?|]
# d = c - b; a + d | a=3-40 e=0-90 f=1-40 b==1930+e c==b+f | years
{x} was {a} in {b}. How old is {he} in {c}[?|]
in {b} {x} was {a}[.|;|,] [and in {c}|how old is {he} in {c}|{his} age in {c}][?|]
# d = a + c; e = b + c; d + e | a=2-40 b=2-40 c=1-15
two [brothers|sisters|friends] are {a} and {b}. What's the [total|sum] of their ages in {c} years[?|]
{x} is {a} and {y} is {b}. How old will they be together in {c} years[?|]
# a - b | b=10-50 c=5-45 a==b+c
[Grandpa|Dad|Mom|my {kin}|{x}] is {a}, that is {b} years more than [me|I am|my age]. How old am I[?|]
{x} is {a}, which is {b} years older than {y}. How old is {y}[?|]
{x} is {a}, {b} years ahead of {y}. {y}'s age[?|]
{b} years from now {x} will be {a}. What's {his} age now[?|]
# a + b | a=3-60 b=2-40
{x} is {a}, which is {b} years younger than {y}. How old is {y}[?|]
{x} is {a}, {b} years behind {y}. {y}'s age[?|]
# a / 3 | b=2-25 a==3*b
{x} is a third of {his} [dad|mom|aunt]'s {a} years. How old is {x}[?|]
{x} is a third as old as {y}, who is {a}. {x}'s age[?|]
# a / 4 | b=2-20 a==4*b
{x} is a quarter of {his} [dad|mom|aunt]'s {a} years. How old is {x}[?|]
# a * b * c | a=5-30 b=2-8 c=2-9
if one worker earns ${a} an hour, what do {b} workers earn in {c} hours[?|]
{b} [#machines|workers|presses|printers] make {a} [#parts|chairs|sheets|pages] an hour each. How many in {c} hours[?|]
one [cow|horse|dog] eats {a} kilos a day. How many kilos for {b} of them in {c} days[?|]
# 60 / a | a=2,3,4,5,6,10,12,15,20,30
[a|the] tap drips [once|one time] every {a} seconds. How many drips in a minute[?|]
a [bus|train|tram] comes every {a} minutes. How many in an hour[?|]
every {a} minutes a [bell rings|car passes|bus leaves]. How [many|often] [per|in an] hour[?|]
# 60 * a | a=2-30
a [light|lamp|heart|clock] [blinks|beats|ticks] {a} times per second. How many times [per|a|in one] minute[?|]
# a / b | b=10,20,25,30,40,50,60 c=2-30 a==b*c
typing {b} words per minute, how long for {a} words[?|]
at {b} [steps|pages|words|drops] a minute, how many minutes for {a}[?|]
# a / b | b=10,20,30,40,50,60,15 c=.1-5 a==b*c | dec
{b} pages in {a} minutes, how many minutes per page[?|]
# a * c / b | b=2,3,4,5 d=1-8 a=1-20 c==b*d
{b} kg of [apples|rice|nuts|cheese] cost {a} euros. What do {c} kg cost[?|]
a pack of {b} [yogurts|pens|rolls|cans] costs ${a}. How much do {c} [yogurts|pens|rolls|cans|of them] cost[?|]
# d = a / b; d * c | b=2-6 e=2-20 a==b*e c=2-9
{x} [covers|rides|walks|runs|drives] {a} km in {b} hours. [What distance|How far|How many km] in {c} hours[?|]
{b} cans of paint cover {a} square meters, how much do {c} cans cover[?|]
# a / b | b=2-8 c=5-40 a==b*c
{b} cans of paint cover {a} square meters, how much does one can cover[?|]
# d = b - a; e = c - 1; f = e * d; a + f | a=1-20 g=1-9 b==a+g h==b+g i==h+g c=6-15
{a}, {b}, {h}, {i}, ... [what is|find|which is] the {c}th number[?|]
the {c}th [number|term] of {a}, {b}, {h}, {i}, ...[?|]
# f = b - d; g = d - e; e - g | e=5-60 c=2-9 d==e+c b==d+c a==b+c
the pattern is [subtract|minus] {c}: {a}, {b}, {d}, {e}, ?
{a}, {b}, {d}, {e}[: |, ][go on|continue|and so on, what next|next][?|.|]
# e + c | a=1-40 c=2-12 b==a+c d==b+c e==d+c
the pattern is [add|plus] {c}: {a}, {b}, {d}, {e}, ?
[rule|pattern|step]: [add|plus] {c}. {a}, {b}, {d}, {e}, [what is next|next|then][?|]
# e * 2 | a=1-6 b==2*a d==2*b e==2*d
the pattern is [double|times 2]: {a}, {b}, {d}, {e}, ?
# f = b / d; d / f | c=1-20 d==2*c b==2*d a==2*b
[continue|go on with|continue the list|next in the list] {a}, {b}, {d}[, ...|...|?|]
{a}, {b}, {d}[, ...|, next?|, ?]
the pattern is [halve|half|divide by 2]: {a}, {b}, {d}, ?
# f = a - b; g = b - d; h = g + 1; d - h | e=1-9 d=20-50 b==d+e a==b+e-1
{a}, {b}, {d}, [?|...|what is next?|next?]
# a * a | a=2-12
[what is |]the sum of the first {a} odd numbers[?|]
# a * b | a=2-12 b==a+1
[what is |]the sum of the first {a} even numbers[?|]
# d = a * 4; e = b * 2; d + e | a=2-12 b=2-12
how many wheels [are on|do|have] {a} cars and {b} bikes [together|have together|in all][?|]
how many legs [do|have] {a} [dogs|cows|cats|tables] and {b} [hens|birds|people] have[?| together?|]
# d = a * 4; e = b * 3; d + e | a=2-12 b=2-12
how many wheels [are on|have] {a} cars and {b} tricycles[?|]
# d = a * 10; e = b * 5; f = d + e; f + c | a=1-9 b=1-9 c=1-9
I have {a} tens, {b} fives and {c} ones. How much [money |]is that[?|]
{a} ten dollar bills, {b} fives and {c} singles[.|:|,] [how much|total|what's that worth][?|]
# d = a * 20; e = b * 10; d + e | a=1-9 b=1-9
{a} twenties and {b} tens [make|are|is] how [much|many dollars][?|]
# d = a * b; e = c * f; d + e | a=1-6 b=5-20 c=1-6 f=2-12
{a} adults at ${b} and {c} children at ${f}[:|,|.] [total admission|what do they pay|how much in all|total price][?|]
tickets are ${b} for adults and ${f} for kids. What do {a} adults and {c} kids pay[?|]
# d = a - b; d * c | b=3-40 e=2-20 a==b+e c=2-9
tickets were ${a}, now ${b}. How much do I save on {c} [tickets|of them][?|]
# b / a | a=5,10,15,20,25,30,40,50 c=2-15 b==a*c
I need ${b} and save ${a} a week. How many weeks[?|]
I need {b} [dollars|points|stars] and get {a} [a|per|every] day. How [many days|long][?|]
# a / 10 | a=.1-50 | dec
[what is |]a tenth of {a}[?|]
# a * b | a=.1-1 b=10,20,30,40,50,60,80,100 | dec
{a} of {b}[?|]
what is {a} of {b}[?|]
# a / b | b=.1-2 c=1-20 a==b*c | dec
{a} [/|divided by|over] {b}[?|=|]
how many times does {b} [go|fit] into {a}[?|]
# a * a | a=.1-12 | dec
{a} squared[?|]
{a}[^2|²][=|?|]
"""

"""Refused questions in the words of the topics: the same nouns, verbs and frames, but about the world or other programs."""

NEAR_MISSES = r"""
I lost my [house|car|bike|locker] keys
where did I put my keys
how many keys has a piano
what is a [key|minor key|major key] in music
who has the key to the [door|safe|office]
~[copy a house key|forge a key|open a lock without a key|find my car key]
what are the [priorities|top priorities] of the [government|president|church]
what should be my [priority|priorities] in life
which [patient|ambulance|car|vehicle] has priority [at a crossing|in a hospital|on the road]
~[set priorities in life|prioritize my homework|prioritize my bills]
~[thread a needle|sew with two threads|start a thread on Reddit|write a thread on Twitter]
how many threads has a [bed sheet|screw|spider web]
which thread do I need for [leather|silk|jeans|a wound]
how do threads work in [@code]
what is a [green thread|POSIX thread|thread pool in Java|daemon thread in Python]
is the [universe|future|weather|brain|world] deterministic
does free will contradict determinism
who believed in determinism
are [dice|lotteries|chess engines|card shuffles] deterministic
[template|a template] for [a CV|an invoice|a wedding invitation|a business plan|a lesson plan|a Word document]
where do I find a [PowerPoint|Word|Excel|resume|cookie cutter] template
which [C++|Django|Vue] template engine is best
~[write a C++ template|make an Excel template|design a poster template]
can I chat with [a doctor|a lawyer|my bank|a priest|Amazon's support|somebody from Spain]
how do I [open a group chat|delete a chat|mute a chat] in [WhatsApp|Telegram|Teams|Slack]
which chat app is [safest|best|free]
what is the backend of [Facebook|Netflix|my bank|Wikipedia]
which backend framework should I learn
is [Django|Rails|Express] a good backend
what is the salary of a backend developer
what is [deductive|inductive|circular|legal|moral] reasoning
how do [children|chimpanzees|judges|detectives] reason
what is the reasoning behind [the tax|the verdict|the ban|the treaty]
~[improve my reasoning|win an argument|think faster|think positively]
what was [Descartes|Plato|Buddha] thinking
a prompt for [Midjourney|a short story|my diary|a drawing]
what is the [dosage|price|weight|smell] of [@element]
how much is a [subway|casino|bus|crypto] token
which crypto token should I buy
which is the largest port in [Europe|Asia|the world]
when does the ferry leave the port
what is port wine
which port is for [HDMI|charging|headphones|the mouse] on my laptop
how much does a [server|waiter] earn in a restaurant
how do I host [a party|a dinner|a talk show|a wedding|a Minecraft server|a website on GitHub]
who hosts [the Oscars|the Tonight Show|the next Olympics]
~[join a Minecraft server|set up a mail server|configure a DNS server|rent a game server]
I need a [birth|marriage|medical|gift|death] certificate
where do I get a [birth|marriage|death|vaccination] certificate
which certificate do I need to [teach|dive|work as a nurse]
I can't log into [my bank|Facebook|Gmail|Netflix]
I forgot my [Gmail|Windows|Wi-Fi|Apple] password
what is the password of [my Wi-Fi|your owner|the admin|the White House]
is my Facebook password safe
how do I [become|dress like|paint] a [fashion model|model]
which car model is [best|fastest|cheapest]
who is the highest paid model
how do I build a model [plane|railway|ship]
who was a famous role model
what is my memory like
how can I improve my memory
I lose my memory, what now
how much memory has an [iPhone|old Nokia|elephant]
what is the context of [Hamlet|the war|this quote|the treaty]
how do I clean a window
how do I [replace|repair|tint] a car window
which window is [open|closed|broken]
how many cookies are in a batch [usually|]
~[bake a batch of cookies|brew a batch of beer]
on which page does [Hamlet|Moby Dick] die
how many pages has [@book]
what is a [road|writer's|engine|starting] block
how many blocks is it to the [station|park|museum]
where is the treasure cached
what is geocaching
how do I [clear the cache of Chrome|empty my browser's cache|clear cookies]
which seeds can I plant in [March|May|autumn]
how long does a tomato seed need
is chia seed healthy
what is the temperature [outside|in Rome|on Mars|of the sun|of boiling milk]
at which temperature does [milk|lead|wax|butter] [melt|boil]
I have a temperature of 39
which temperature for [roast beef|a cake|a sauna|my freezer]
set the temperature of my [oven|room|fridge]
how do I get a greedy man to share
why are people so greedy
is greed good
what is the penalty for [theft|speeding|murder|tax fraud|parking]
how does a penalty in [football|hockey|rugby] work
who missed the penalty
what is the death penalty
what is the frequency of [radio waves|a tuning fork|my heartbeat|the bus]
which bus stops [here|at the station|near me]
how do I stop [a nosebleed|worrying|a taxi|hiccups|snoring|my dog from barking]
make [my neighbour|the baby|my dog|the rain] stop
where can I stream [the game|the match|the film|this series|Netflix]
which streaming service has [Titanic|Friends|football]
why is the stream dry
how do I stream on Twitch
which tool do I need to [cut|drill|bend] [wood|steel|glass]
where can I buy tools
what is the function of [the liver|the heart|money|the senate|art]
what is the [derivative|inverse|graph|limit] of the function
correct the grammar of my essay
what is the [French|German|Latin] grammar for [the past|plural|questions]
teach me English grammar
is this grammar right: "he go home"
how do I burn a log
what is a log cabin
what is the logarithm of the universe
how do I keep a diary log
which metric is used for [poverty|happiness|air quality]
is the metric system better
which health [insurance|food|app] is [best|cheap|good]
how is my health
am I healthy
is [coffee|wine|butter|running] good for my health
am I ready for [marriage|children|a marathon|retirement|the exam]
when is dinner ready
I need a doctor
which doctor treats [skin|eyes|knees|children]
is there a doctor nearby
Doctor Who
who plays the Doctor
how much can I bench [at 80 kg|as a beginner]
how do I bench press
where is the bench in the park
what is the tune of the national anthem
name that tune
which tune does the ice cream van play
how do I tune a [guitar|piano|car|violin]
how do I build [a house|a wall|muscle|trust|a treehouse|a PC]
what should I build in Minecraft
is binary code used by [aliens|cats|banks]
who invented binary
how do I get a [fishing|driving|gun|marriage] license
where is my driver's license
which version of [Windows|Android|the story|the Bible|iOS|Excel] [do I have|is newest|is best]
what is the newest version of [Node|Chrome|Ubuntu|Java|Word]
how hot may [a graphics card|a processor] get [under load|in games|]
which graphics card is best for [gaming|Fortnite|mining|Photoshop]
how do I [overclock|clean|sell|mount|undervolt] my graphics card
should I buy an AMD or an NVIDIA share
how much is NVIDIA worth
can I [mine bitcoin|play Doom|edit films] with my card
which credit card should I get
write a birthday card
what is the queue at the airport like
how long is the line at [the bank|Disneyland|the embassy]
who is next in line for the throne
how long must I wait for [the bus|a visa|a kidney|my refund]
what is the speed of [a cheetah|light|sound|a snail|the wind]
how fast is a [cheetah|Ferrari|falcon|rocket]
why is my [Wi-Fi|phone|laptop|internet|car|Windows] so slow
my [phone|Windows|PC|printer|TV] does not start
my [printer|phone|TV|laptop] says error
my internet connection is refused
why was my [visa|loan|application|credit card] refused
what is an error in [tennis|baseball|statistics]
who discovered the cell's memory
what do I type in Excel to [add cells|sort a column|make a chart]
which command lists files in [Windows|Linux|DOS]
which flag has [three stripes|a dragon|a maple leaf|a red circle|a cross]
why is the flag of [@country] [red|blue|green]
what does a [red|white|black|chequered] flag mean
how do I fold a flag
how do I save [money|a marriage|a file in Word|energy|the planet]
where do I save my [passwords|photos|Word file]
how do I restart [my router|my iPhone|Windows|my life]
how do I reset [my iPhone|my Gmail password|a fuse|my sleep]
what is the address of [the White House|my bank|the embassy|Santa Claus]
what is my IP address
how do I hide my IP address
which VPN is best
is my computer hacked
set an alarm for [7|six o'clock|tomorrow]
set a timer
what is the exit code for the escape room
how do I leave [a party|my husband|a cult|Facebook]
how do I quit [smoking|my job|coffee|a gym]
how do I start [a fire|a company|a band|a garden|jogging]
how do I serve [wine|a tennis ball|sushi|cheese|my country]
~[serve in tennis|serve wine|serve a turkey|serve in the army]
generate [an image|a logo|a password|a name|income|electricity]
what generates [electricity|wind|a rainbow]
complete the [lyrics|proverb|poem]: [roses are red|the early bird|all you need is]
what is the default on a [loan|bond|mortgage]
in which year did [Greece|Argentina|Russia] default
how do I limit [my sugar|screen time|my child's phone]
what is the limit on [my card|the motorway|alcohol]
how do I connect [my headphones|my printer|two monitors|a PS5]
how do I share [my screen|a Google doc|my location|a pizza]
how do I protect [my skin|my house|my child|my data on Facebook|plants from frost]
who protects [the president|the constitution|witnesses]
how do I measure [my waist|a room|blood pressure|flour]
which model of [Tesla|iPhone|Boeing|Canon] is the [newest|best|cheapest]
what is quire [stationery|singing|choir]
[how do I|can I] use [Quire the task manager|the Quire app] for [project management|my to-do list]
what do quire's developers [eat|think of Rust|do on Sundays]
which [customers|universities|banks|countries] use quire
what will quire look like in [five|ten|two] years
who has the [oldest|first] commit in quire
how much does a [support contract|consultant] for quire cost
last night I [baked|cooked] for my [aunt|friends]. the dough did not rise. what went wrong
we moved to [@city] and have two cats. one hides all day. what should we do
my son is [seven|nine] and afraid of the dark. he wakes up at three. how do I calm him
our shop sells [shoes|candles|tea]. sales fell last month. what would you advise
I have [a cough|a rash|back pain] since Monday. my doctor is away. which medicine helps
our team plays on Sunday. two players are ill. who will win
I parked in front of a hydrant and got a ticket. must I pay
my landlord raised the rent by half. I have a lease. is that legal
I wrote a loop in [@code] and it never ends. the variable is right. where is the mistake
my [Excel|Word|Photoshop] file is gone after a power cut. I had not saved it. how do I get it back
my [printer|router|TV] is on the same network. from my laptop I get no connection. what did I forget
our [Postgres|MySQL|Redis] server runs out of memory at night. which of its settings do I lower
we run [nginx|Kafka|Jenkins] in production. it crashed [on Monday|this night]. why
the lock of my door jams. the key turns but nothing moves. what helps
how do I leave a [party|marriage|job|group on WhatsApp] [politely|]
how do I redo my [kitchen|bathroom|garden]
which key [opens a locked door|is the Enter key|of a piano is middle C]
how do I get out of [debt|jail|bed|a lease]
~[forget an ex|start over in life|wipe a hard disk of my TV]
is [parking|the museum|the swimming pool|public transport] free [on Sundays|for children]
may we [sell beer|park here|fish in this lake]
how long is the line at the [post office|airport|cinema]
~[shut up a noisy neighbor|stop my dog from barking|make my baby sleep]
*my [car|fridge|oven|knee] makes a strange noise
*the [heating|washing machine|television] does not start
which ports are in [Spain|Japan|the Baltic Sea]
how many users has [Instagram|Spotify|Netflix]
who drives the [bus|train] to the airport
what is on the [menu|agenda|news] today
is the [bakery|library|pool] open tomorrow
~[book a flight|rent a car|renew my passport|find a dentist]
how do I [pass a driving test|win the lottery|tie a tie]
what [broke|went wrong] at [Chernobyl|Fukushima|the Titanic]
how do I turn [water into wine|a frog into a prince]
are there alarms in [banks|museums|cars]
how long do [eggs|potatoes|noodles] have to boil
which [certificate|diploma] does a [nurse|pilot|welder] need
*I have [a headache|a fever|no appetite]
is my [mole|cough|rash] dangerous
which [compiler|translator] of the Bible was first
who keeps the [crown jewels|nuclear codes]
what is the [population|currency|flag] of [Norway|Kenya|Chile]
who [discovered|invented] [penicillin|the telephone|gravity]
write a [song|limerick|haiku|love letter] about [spring|my cat|the sea]
translate [good night|thank you|I love you] into [French|Japanese|Latin]
summarize [Hamlet|the Odyssey|this year's news]
who is the [mayor|king|chancellor|prime minister] of [London|Spain|Austria|Canada]
what [happened|was decided] in [parliament|Brussels|the stock market] [today|yesterday]
will [stocks|house prices|bitcoin] [rise|fall] [next year|soon]
is it going to [snow|rain|be hot] [tomorrow|at the weekend] in [Oslo|Rome|Boston]
recommend [a film|a novel|a restaurant|a wine]
what did I just [eat|step on|hear in the attic]
why not just take the [bus|stairs|money]
is it in fashion to wear [hats|white socks]
what is [bread|a saxophone|cheese|glass] made of
is there [sugar|gluten|alcohol] in [ketchup|soy sauce|kefir]
my boss asks for [a raise|a report about sales|my vacation plan], what do I write
how much weight can an [elephant|ant|ox] carry
where do I get [concert tickets|fresh fish|a haircut|cheap furniture]
compile a list of [rivers in Asia|Greek gods|vegan recipes]
put it into the [oven|freezer|bank]: how long
how old is [the moon|my dog in human years|Stonehenge|Madonna]
who [published|edited|illustrated] [Harry Potter|the first atlas]
which [handbook|guide] is best for [Rome|beekeeping|chess openings]
could a [spider|snake|mushroom] from [my garden|the shop] kill me
is it dangerous to [swim after lunch|eat raw eggs|look at the sun]
how do I know whether [he loves me|the milk is bad|the gold is real]
what stops [a war|hiccups|a nosebleed]
at what speed do [cheetahs|glaciers|nerves] move
how do I lower my [cholesterol|blood pressure|taxes]
who answers at the [police|fire brigade] in [Italy|Canada]
which cards are in a [tarot|poker] deck
what does the [weather|traffic|market] look like
nobody answers my [letters|love letters|job applications]
"""

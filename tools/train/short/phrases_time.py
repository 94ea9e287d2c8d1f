"""Wordings of questions about ages, spans of time, units, and amounts compared."""

TIME = """
# a + b | a=2-70 b=2-40
[turning|I turn|{x} turns] {a} [this year|today|now]. [Age|How old] [in {b} years|{b} years from now|after {b} more years][?|]
{a} [now|today|at the moment], [so how old|what age|how old] {b} years [on|later|from now][?|]
[How old is|What age has] [somebody|a man|a woman|a tree|a tortoise] [of {a}|aged {a}] [after|in] {b} [more |]years[?|]
[{b} years ago|{b} years back] [my {kin}|{x}|I|our cat|this tree] was {a}. [And now|How old now|Age now|Today's age][?|]
[My|Our|The] [dog|cat|horse|parrot|car|house] was {a} [years old |]when we [got it|bought it|moved in], and that was {b} years ago. [How old is it|Its age today|How old now][?|]
[When|At the time] {x} was {a}, [the war broke out|we met|the shop opened|a comet came]. [Now it's|That was|It's] {b} years [later|ago]. How old is {x} [now|today][?|]
[{x}|My {kin}] [beats|is ahead of] me by {b} years; I'm {a}. [How old is {x}|What's {his} age|The age]?
[How old|What age] is {x} if [{he} is |]{b} years [older than|above|ahead of] {y}, and {y} is {a}[?|]
{x} [had {his} first child|married|became a doctor|emigrated] at {a}. {b} years have [passed|gone by] since. {x}'s age [now|today][?|]
[married|retired|moved out|started work] at {a}, {b} years ago. [age now|how old now|Now how old][?|]
{x}: {a}. {y}: {b} years [older|more]. {y}[?|'s age?|: ?]
[the older of two sisters has {b} years more than the younger|of two sisters one is {b} years older]. The younger [one |]is {a}. [How old is the older one|The older one's age][?|]
[blew out|There were] {a} candles this year. [How many candles|How many will it be] in {b} years[?|]
if {x} [lives|makes it] another {b} years {he}'ll [be|have reached] what age, being {a} now[?|]
{y} is {a}. That's {b} years younger than {x}. [How old is {x}|{x} is how old|What's {x}'s age][?|]
[since|As] {y} is {b} years younger than {x} and {y} is {a}, {x} must be how old[?|]
{a} + {b} years of age, what do you get: {x} is {a} and {y} is {b} older, {y} is[?|...]
# a + b | a=18-42 b=1-40
[The|My] [mother|father] was {a} when the [baby|first child|twins] [came|arrived|were born]. The [child is|kids are] {b} [today|now]. [How old is the parent|Parent's age|And the mother or father][?|]
[The|My] {kin} [became a parent|had the first child] at {a}; that child is {b} now. [How old is the {kin}|The {kin}'s age][?|]
# a + b | a=20-60 b=2-15
[I'm|I am] {a} and my [partner|best friend|husband|wife] has {b} years on me. [How old is that person|My partner's age|What age is that][?|]
{x} will retire in {b} years and is {a}. [At what age|How old will {x} be then|Age at retirement][?|]
# a - b | b=5-30 c=18-40 a==b+c
[Grandpa|{x}|My {kin}] is {a} and has [worked|smoked|lived here|been married|played chess] for {b} years. [At what age did it start|How old was {he} at the start|Since what age][?|]
# a - b | a=16,18,21,60,62,65,67,70 c=2-14 b==a-c
the legal age is {a}. {x} is {b}. [How many years must {he} wait|How many years to wait|Years to go][?|]
[retirement|pension] at {a}, now {b}. [years left|years to go|how many years of work remain][?|]
{x} is {b} and [may join|can start|gets in] at {a}. [In how many years is that|How many more years|Years to wait][?|]
# a - b | b=1-45 c=17-42 a==b+c
[mother|Mom|Dad|The father] {a}, [child|son|daughter] {b}. [How old was the parent at the birth|Age at birth of the child|Parent's age at the birth][?|]
{x} is {a}, {his} [son|daughter] {b}. How old was {x} when [the child came|the baby was born|{he} became a parent][?|]
# a - b | b=2-40 c=2-50 a==b+c
[turned|I turned|{x} turned] {a} [today|this year]. [How old|What age] [was I|were we|was it|was that] {b} years [ago|back|earlier][?|]
In {b} years [I'll be|{x} will be|my {kin} will be|the tree will be|we'll all be] {a}. [How old now|Age now|What age is that today|So now it's how old][?|]
[I'll|She'll|He'll] turn {a} [in {b} years|{b} years from today]. [Present|Current|Today's] age[?|: ?]
{b} years from now {x} [turns|will have reached|gets to be] {a}. [How old is {x} now|{x}'s age now][?|]
{x} is {a}, {y} is {b} years [younger|his junior|behind]. [How old is {y}|{y}|{y}'s age][?|]
[How old|What age] is {y}, [being|who is] {b} years younger than {a}-year-old {z}[?|]
[My|Our] {kin} is {a}. I'm [the younger one by {b} years|{b} years younger]. [How old am I|My age|I am][?|]
[I am|I'm|{x} is] {a} and [my driving licence|my diploma|this scar|the tattoo] is {b} years old. [At what age|How old was I then|Age back then]?
[how long|How many years] [till|until|before] a {b} year old [is|gets|turns|reaches] {a}[?|]
[years|Number of years|How many years] from [age|the age of] {b} to [age |]{a}[?|]
[from|From] {b} to {a} years of age[: how many years?|. How many years is that?| is how long?]
[I'm|I am|{x} is] {b}. [How many years|In how many years|How long] [until|till] [I'm|I am|{x} is|{x} turns|the big] {a}[?|]
[age gap|age difference|difference in years|gap]: {a} and {b}[?|]
[age gap|age difference] [between|of] [a |]{a} [and|vs] [a |]{b} [year old|][?|]
[By how many years|How many years] is a {a}-year-old [older than|ahead of] a {b}-year-old[?|]
[By how many years|How many years] is someone of {b} younger than someone of {a}[?|]
[how many|How many] years ago was [a|this] {a}-year-old [woman|man|oak|bridge] {b}[?|]
[I'm|I am|{x} is] {a}. How [many years|long] ago was I {b}[?|]
{x} is {a} now. When was {he} {b}, how many years ago[?|]
[The|Two] [sisters'|brothers'|friends'] ages add up to {a}. One is {b}. [The other|How old is the other|And the other one][?|]
[two|The two] [brothers|cousins|cats|players] are {a} together; the one is {b}. [And the other|The other one|How old is the second][?|]
{x} and {y} [make|are|count] {a} years together. [Take away {x}'s {b}|{x} contributes {b}|{x} is {b}]. [How old is {y}|{y}'s age|What's left for {y}][?|]
[{x}'s|My] age plus {b} [makes|is|gives|equals] {a}. [How old is {x}|{x}'s age|What age is it][?|]
if you add {b} to my age you get {a}. [how old am I|my age|What age am I][?|]
{x} would be {a} if {he} were {b} years older. [How old is {x}|{x}'s real age][?|]
[She says|He says] {a}, but [that's|it is] {b} years too [many|much]. [Real age|True age|How old really][?|]
{x} looks {a} but is {b} years younger[ than that|]. [How old is {x}|{x}'s real age|True age][?|]
[People|They] take {x} for {a}. In fact {he} is {b} years younger. [So how old|Real age|How old is {x}][?|]
[The|Our] [dog|cat|horse|elephant] died at {a}. We had it for {b} years. [How old was it when it came|Its age on arrival|At what age did we get it][?|]
# a * b | a=9-15 b=3-5
my [dad|mom|uncle|teacher] is {b} times as old as me. I'm {a}. [how old is that|What age is that|So how old][?|]
# a * b | a=2-15 b=2-5
[I'm|I am|{x} is] {a} and {y} is {b} times [as old|that|my age|that age]. {y}'s age[?|: ?]
[How old|What age] is {y}, who is {b} times as old as {z} of {a}[?|]
{x} is {a}, and {his} {kin} is {b} times as old. [How old is the {kin}|{kin}'s age][?|]
[Take|take] {x}'s age, {a}, {b} times and you have {y}'s age. [It is|How old is {y}|{y} is][?|]
{x} is {a}. In some years {he} will be {b} times as old. [How old is {he} then|What age is that|Age then][?|]
{a} years times {b}: {y} is {b} times as old as {x}, who is {a}. {y}[?|'s age?]
[A|One] dog year counts [as|like] {b} human years. [Our dog is|The dog is|Rex is] {a}. [How old in human years|In human years|Human age][?|]
[if|If] one dog year is {b} human years, how old is a {a}-year-old dog in human years[?|]
# a / b | b=2-6 c=8-15 a==b*c
[My|Our] [grandma|grandpa] is {a}, {b} times as old as [I am|me]. [How old am I|What's my age|So I am][?|]
my [mother|father|aunt|teacher] is {a} and that is {b} times my age. [How old am I|My age|I'm how old][?|]
# a / b | b=2-5 c=3-16 a==b*c
[I'm|I am|{x} is] {b} times as old as {y}. [I'm|{x} is|My age is|{x}'s age is] {a}. [How old is {y}|{y}'s age|And {y}][?|]
{a} is {b} times [my|{x}'s] age. [How old am I|What age is that|So the age is][?|]
{a}-year-old {z} is {b} times as old as {y}. [How old is {y}|{y}'s age][?|]
{b} times {x}'s age is {a}. [How old is {x}|{x}'s age|{x}][?|]
if I were {b} times as old [as I am|], I'd be {a}. [How old am I|My age][?|]
{y}'s age is {x}'s age divided by {b}. {x} is {a}. [How old is {y}|{y} is how old][?|]
[multiply|Multiply] my age by {b} and you get {a}. [how old am I|What's my age|My age][?|]
{b} [triplets|siblings|friends|cousins] of the same age are {a} years old together. [How old is each|Age of each][?|]
[The|Our] dog is {a} in human years; one dog year is {b} human years. [Its real age|How old is it really|Dog years][?|]
[I'm|{x} is] {a}; {y} has lived [only |]one {b}th of that. [{y}'s age|How old is {y}]?
# a / 2 | b=2-40 a==2*b
{x} is {a}, {y} half [that|as old|that age]. [{y}|How old is {y}|{y}'s age][?|]
[my|the] [cousin|niece|sister|nephew] is half my age; [I'm|I am] {a}. [How old is that|The age|So how old][?|]
[twins|Twins|The twins|Two twins] are {a} [together|in total]. [How old is each|How old is one|Each is][?|]
[I'm|{x} is] {a}, which is twice {y}'s age. [How old is {y}|{y}'s age][?|]
# d = a - b; e = d / 2; e + b | b=2-12 c=3-30 a==2*c+b
{x} and {y} are {a} together. {x} is {b} years older. [How old is {x}|{x}'s age][?|]
[Two|The two] [brothers|sisters|friends] are {a} years old together, and one is {b} years older than the other. [How old is the older one|The older one's age][?|]
their ages add up to {a} and [differ by|are] {b}[ apart|]. [How old is the older|the older is][?|]
# d = a - b; d / 2 | b=2-12 c=3-30 a==2*c+b
{x} and {y} are {a} together. {x} is {b} years older. [How old is {y}|{y}'s age][?|]
[Two|The two] [brothers|sisters|friends] are {a} years old together, and one is {b} years older than the other. [How old is the younger one|The younger one's age][?|]
their ages add up to {a} and differ by {b}. [How old is the younger|the younger is][?|]
# d = a / 2; e = a - d; b - e | c=2-9 a==2*c f=3-60 b==a+f
When I was {a} my [brother|sister|cousin] was half my age. [Now I'm|I'm now|Today I'm] {b}. [How old is the other|How old is that one now|And the other today][?|]
When {x} was {a}, {y} was half as old. Now {x} is {b}. How old is {y}[?| now?]
[riddle: |]at {a} I was twice as old as my [sister|brother|friend]. I am {b} now. How old is that one [now|today][?|]
{x} was {a} when {y} was half {his} age. {x} is {b} today. [And {y}|{y}'s age today|How old is {y}][?|]
# d = a * 2; d + b | a=2-40 b=1-12
{x} is {a}. {y} is {b} years older than twice {x}'s age. [How old is {y}|{y}'s age][?|]
[double|Double|Twice] {a} plus {b} years: {y}'s age is {b} more than twice {x}'s {a}. [How old is {y}|{y}][?|]
# d = a * 3; d - b | a=4-20 b=1-11
{y} is {b} years younger than three times {x}'s age; {x} is {a}. [How old is {y}|{y}'s age][?|]
{x} is {a}. [Take three times that|Triple it] and subtract {b}, and you have {y}'s age. [How old is {y}|It is][?|]
# d = a + c; e = b + c; d + e | a=2-40 b=2-40 c=2-15
{x} is {a}, {y} {b}. [Sum|Total|The sum] of their ages [in {c} years|{c} years from now][?|]
[How old|How many years] [will|are] {x} ({a}) and {y} ({b}) [be |]together in {c} years[?|]
in {c} years, what do the ages of {a}-year-old {z} and {b}-year-old {y} add up to[?|]
# d = a - c; e = b - c; d + e | c=2-12 f=1-40 g=1-40 a==c+f b==c+g
{x} is {a}, {y} {b}. [Sum|Total|The sum] of their ages {c} years ago[?|]
how old were {x} ({a}) and {y} ({b}) together {c} years ago[?|]
# d = a * b; a + d | a=3-20 b=2-4
{y} is {b} times as old as {x}. {x} is {a}. [How old are they together|Sum of their ages|Together they are|Both together][?|]
{x} is {a}, {y} {b} times as old. [Total age|Both ages added|What do they add up to][?|]
# d = a + b; a + d | a=3-60 b=2-20
{x} is {a}, {y} is {b} years older. [How old are they together|Sum of the ages|Together][?|]
[together|Together], how old are {x} of {a} and {y}, {b} years older[?|]
# d = a - b; a + d | b=2-20 c=3-50 a==b+c
{x} is {a}, {y} is {b} years younger. [How old are they together|Sum of the ages|Together][?|]
# d = a - b; d + c | b=2-9 f=3-40 a==b+f c=2-20
{x} is {a}. {y} is {b} years younger. How old will {y} be in {c} years[?|]
in {c} years, how old is {y}, who is {b} years younger than {a}-year-old {z}[?|]
# d = a + b; d - c | a=3-50 b=2-20 c=2-a
{x} is {a} and {y} {b} years older. How old was {y} {c} years ago[?|]
{c} years ago, how old was {y}, {b} years older than {x}, who is {a} now[?|]
# b - a | e=0-100 a==1900+e c=2-90 b==a+c | years
[born|Born|Born in|born in the year] {a}, [age|how old|what age] in {b}[?|]
[year of birth|birth year|YOB|b.] {a}[, |; ][age in|how old in|now it's] {b}[?|: how old?| = ?]
[I was born in|{x} was born in|She was born in|My car was built in] {a}. [It's|It is now|The year is] {b}. [Age|How old is that|How many years is that][?|]
[from|From] {a} to {b}[ is how many years|: how many years| - how many years][?|]
[The|A] [war|reign|famine|ice age|project|marriage|partnership] [began|started] in {a} and ended in {b}. How [long did it last|many years did it last|many years was that][?|]
[King|Queen|Pope|President] {z} [ruled|reigned|was in office] from {a} [to|until] {b}. [How many years|How long|For how long][?|]
{x} lived from {a} to {b}. [How old did {he} get|What age did {he} reach|Age at death][?|]
{x} ({a}-{b})[: how old did {he} get?|, age at death?|. How many years is that?]
[born|Born] {a}, died {b}. [What age|How old|Age][?|]
[The|Our] [company|club|school|firm|band] [was founded in|dates from|goes back to] {a}. [Which anniversary is it|How many years old is it|How many years is that] in {b}[?|]
[how many|How many] years after {a} [is|was|comes] {b}[?|]
[how many|How many] years before {b} [is|was] {a}[?|]
[last seen|The last flood was|The roof was last fixed|Last won] in {a}. How many years ago was that in {b}[?|]
[somebody|Someone|A person] born in {a} [turns|becomes|gets] how old in {b}[?|]
[what|What] birthday does [a person|somebody|{x}] born in {a} have in {b}[?|]
{b}: {x}, born {a}, is how old[?|]
[I've|We've] lived here since {a}. [In|Now it's] {b}[ it's|;|,] how many years[?|]
[A|The] time capsule [buried|closed] in {a} is opened in {b}. [After how many years|How many years later|How long was it shut][?|]
[The|A] wine is from {a}. How old is it in {b}[?|]
# a + b | e=0-110 a==1900+e b=3-99 | years
[which|what] year is {b} years [after|from|later than] {a}[?|]
[The|Our] [club|firm|town hall|choir|marriage] began in {a}. [When does it turn|In what year will it be|When is it] {b} years old[?|]
born {a}, [when|what year] [will {x} be|is {x}|do I turn|does {he} turn] {b}[?|]
[The|A] [treaty|patent|lease|loan|contract] of {a} runs [for |]{b} years. [Until which year|When does it end|It ends in][?|]
{x} started [a diary|a club|a savings plan] in {a} and [stayed|went on|kept at it] for {b} years. [Until what year|When did it end|The last year is][?|]
[the|The] comet came in {a} and comes back every {b} years. [When next|Next visit|In which year again][?|]
{a} [plus|+] {b} years[?| = ?| is which year?]
[The|A] tree planted in {a} [must grow|bears fruit after|is cut after] {b} years. [Which year|In what year|When][?|]
[came into the world|Somebody born] in {a} is {b} in [which|what] year[?|]
# a + b | e=0-99 a==1900+e b=10,20,25,30,40,50,60,70,75,80,100 | years
[founded|Founded|opened|built|born] in {a}. [In which year is|What year is|When is] the {b}th [anniversary|birthday|jubilee][?|]
{x} was born in {a}. [In which year|When] [is|was|will be] {his} {b}th birthday[?|]
[the|The|Our] [bridge|club|school|bakery] opened in {a}. [When does it celebrate|In which year does it celebrate|Year of] its {b}th [birthday|anniversary][?|]
# a - b | e=20-130 a==1900+e b=10,20,25,30,40,50,60,70,75,80,100 | years
In {a} the [club|school|shop|firm] [celebrated|had] its {b}th [birthday|anniversary]. [When was it founded|Founded in|Founding year][?|]
{a} [is|was] the {b}th anniversary of the [club|bridge|firm|flood]. [Which year is it counted from|It goes back to which year|So it dates from][?|]
# a - b | e=20-130 a==1900+e b=3-95 | years
[what|which] year was it {b} years before {a}[?|]
{b} in {a}, [born|birth year|born when|year of birth][?| = ?|: ?]
[grandma|Grandpa|{x}|My {kin}] is {b} in {a}. [Birth year|Born in|Year of birth|When was that person born][?|]
[{He}|{x}] turned {b} in {a}. When was {he} born[?|]
[The|Our] [house|church|bridge|car|piano] is {b} years old in {a}. [Built when|When was it built|Year of building|It dates from][?|]
[died|Died] in {a} aged {b}. [Born in which year|Born|Year of birth][?|]
[who|Anyone who] is {b} in {a} was born in [which|what] year[?|]
{a} [minus|-] {b} years[?| = ?| is which year?]
[It's|It is|The year is] {a}. {b} years ago [we moved|the war ended|the shop opened|they met]. [Which year was that|In what year|When was it][?|]
[The|A] [film|novel|play|opera] [of|from] {a} is set {b} years earlier. [In which year|What year is it set in|When does it play][?|]
in {a} the wine is {b} years old. [its vintage|what year is the wine|From which year is it][?|]
"""
# Ages and years in several steps, times and units
TIME += """
# a + b | a=18-42 b=17-42
[Mom|Dad|My mother|My father] was {a} when I was born and I was {b} when my [son|daughter|first child] was born. [How much older is the grandparent than the child|How many years are between grandparent and grandchild|Grandparent and grandchild are how many years apart][?|]
{x} was {a} when {y} was born; {y} was {b} when {z} came. [How much older than {z} is {x}|Years between {x} and {z}|By how many years is {x} older than {z}][?|]
{x} is {a} years older than {y}, and {y} {b} years older than {z}. [By how much is {x} older than {z}|How many years older than {z} is {x}|{x} is how much older than {z}][?|]
# d = b - 1; a / d | b=2-4 c=2-20 a==(b-1)*c
In {a} years {x} will be {b} times as old as [now|today|{he} is now]. [How old is {x}|{x}'s age now|How old is {he} now][?|]
[wait|Wait] {a} years and I'm {b} times my age of today. [How old am I|My age now|How old now][?|]
{x}'s age will be {b} times its present value in {a} years. [How old is {x} now|{x} is how old][?|]
# a * 2 | a=2-30
{a} years ago {x} was half {his} present age. [How old is {x}|{x}'s age|Age now][?|]
{a} years ago I was half as old as I am now. [How old am I|My age|Age now][?|]
In the last {a} years {x}'s age has doubled. [How old is {x}|{x}'s age now|How old now][?|]
# d = a + 1; d + 1 | a=2-90
{x} turned {a} last year. [How old will {he} be next year|Age next year|And next year][?|]
[last year|Last year] {x} was {a}. [What age will {he} be next year|How old next year][?|]
# d = a + 2; d + 1 | a=2-90
[two|Two] years ago {x} was {a}. [How old will {he} be next year|Age next year][?|]
the year before last {x} turned {a}. [How old is {x} next year|Age next year][?|]
# d = c - a; b + d | a=10-40 b=1-30 e=2-30 c==a+e
[I am|I'm] {a}, my [nephew|niece|cousin|neighbor] is {b}. When I'm {c}, how old will [that one|the other] be[?|]
{x} is {a} and {y} is {b}. How old is {y} when {x} is {c}[?|]
{x} is {a} now, {y} {b}. [By the time|When|As soon as] {x} turns {c}, [what age is {y}|how old will {y} be|{y} will be][?|]
[now|Today] {x} {a}, {y} {b}. [then|later] {x} {c}, {y}[?| how old?]
how old will {y} be once {x} is {c}, if they are {b} and {a} now[?|]
# d = a - c; b - d | a=20-60 c=8-19 f=1-20 b==a-c+f
[I am|I'm] {a}, my [brother|aunt|cousin] is {b}. When I was {c}, how old was [that one|the other][?|]
{x} is {a} and {y} is {b}. How old was {y} when {x} was {c}[?|]
back when {x}, now {a}, was {c}, how old was {y}, who is {b} now[?|]
# d = c - a; b + d | a=5-40 e=1-50 c==a+e f=0-30 b==1995+f | years
[in|In] [what|which] year does [someone|somebody|a person|{x}] who is {a} in {b} turn {c}[?|]
{x} is {a} in {b}. [When will {he} be {c}|What year does {he} turn {c}|In which year is {he} {c}][?|]
{a} in {b}, {c} in [which|what] year[?|]
it's {b} and {x} is {a}. [In which year is {x} {c}|{x} turns {c} in|The year for {c}][?|]
# d = b - a; c + d | e=0-60 a==1950+e f=2-30 b==a+f c=2-40 | years
{x} was {c} in {a}. How old [was|is] {he} in {b}[?|]
[at|Aged] {c} in {a}, how old in {b}[?|]
[The|A] tree was {c} years old in {a}. [Its age in {b}|How old was it in {b}][?|]
# a * 5 | a=2-12
[how many|How many] [weekdays|working days|school days] [are in|are there in|have|make up] {a} weeks[?|]
{a} weeks of work, Monday to Friday[: |, ]how many [days|working days][?|]
[school|work|class] from Monday to Friday for {a} weeks. [How many days|How many school days|Number of days][?|]
# a * 2 | a=2-20
[how many|How many] [weekend days|days of weekend] [are in|are there in] {a} weeks[?|]
{a} weekends [have|are|make] how many days[?|]
# a * 1 | a=2-30
[how many|How many] [Saturdays|Sundays|Mondays|Fridays|Wednesdays|weekends] [are in|are there in|come in|fall in] {a} weeks[?|]
in {a} weeks there are how many [Saturdays|Tuesdays|Thursdays|Sundays][?|]
[how often|How many times] does the [big|minute] hand go round in {a} hours[?|]
# a * 60 | a=2-12
[how often|How many times] does the second hand go round in {a} hours[?|]
# a * 2 | a=2-12
[how many|How many] half hours [are in|are there in|make|fit in|make up] {a} hours[?|]
{a} hours [in|are how many|make how many] half hours[?|]
[a|The] bell rings every half hour. How many times in {a} hours[?|]
# a * 4 | a=2-12
[how many|How many] quarter hours [are in|are there in|make|fit in|make up] {a} hours[?|]
{a} hours [in|are how many|make how many] quarter hours[?|]
[a|The] clock strikes every quarter of an hour. How many times in {a} hours[?|]
# 24 / a | a=2,3,4,6,8,12
[one|1|A] [pill|dose|drop|feeding] every {a} [hours|h|hrs]. [How many a day|How many per day|How many in 24 hours|Per day][?|]
[take|Take] it every {a} hours. [How many times a day|How often in a day|Times per day][?|]
every {a} hours [a ship leaves|a guard changes|the tide turns]. How many times [a day|in 24 hours][?|]
[doctor|The doctor|nurse] says [once every|one every] {a} hours: how many [a|per] day[?|]
# 24 / a | a=2,3,4,6,8,12 | unit=hours
[take|Take] {a} pills a day at equal times. [Every how many hours|One every how many hours|How many hours between][?|]
{a} [doses|feedings|watches] a day, equally spaced[: |, |. ][hours between them|how many hours apart|every how many hours][?|]
# d = a * b; d / 60 | a=20,30,40,45,50,75,80,90 c=1-12 b==60*c/a | unit=minutes
[a|One|Every|Each] [lap|song|load|round|set] takes {a} [s|seconds]. [How many minutes for {b}|{b} of them in minutes|How long are {b} in minutes|Minutes for {b}][?|]
{b} [laps|rounds|sets|jumps] of {a} seconds[: | each: |, |. ][how many minutes|in minutes|minutes][?|]
{a} seconds, {b} times. [In minutes|How many minutes][?|]
# d = a * b; d / 100 | a=20,25,50,75,33,70,150 b=2,4,6,8,10,12 | dec unit=liters
[if|If] a bottle holds {a} cl, how many liters [do {b} bottles hold|are in {b} bottles][?|]
{b} bottles of {a} cl[: |, ][how many liters|liters][?|]
# d = a * b; d / 1000 | a=125,150,200,250,300,330,400,500,600,750 b=2,3,4,5,6,8,10,12,20 | dec unit=liters
{b} [cans|glasses|cups|bottles] of {a} ml[: |, |. ][how many liters|liters in all|in liters][?|]
[one|A|Each] [glass|cup|can] holds {a} ml. [How many liters are {b}|{b} of them are how many liters][?|]
{x} drinks {b} glasses of {a} ml. [How many liters|In liters|Liters in all][?|]
# d = a * b; d / 1000 | a=50,100,125,200,250,300,400,500,750 b=2,3,4,5,6,8,10,12,20 | dec unit=kg
{b} [bags|packs|jars|bars] of {a} g[: |, |. ][how many kg|kilos in all|in kg][?|]
[one|A|Each] [apple|bar|tin|book] weighs {a} g. [How many kg are {b}|{b} of them weigh how many kg][?|]
# d = a * b; d / 100 | a=20,25,30,40,50,60,75,80,120,150 b=2,3,4,5,6,8,10,12,20 | dec unit=m
{b} [boards|steps|tiles|shelves] of {a} cm [in a row|end to end|each][: |, |. ][how many m|meters|how long in m][?|]
[one|A|Each] [step|tile|brick|table] is {a} cm long. [How many meters are {b}|{b} in a row are how many meters][?|]
# d = a - b; d * c | b=2-15 e=1-10 a==b+e c=2-12
[A|One] car does {a} km [per|a] liter, another {b}. [On|With] {c} liters, how many km further does the first go[?|]
{x} [earns|saves|reads|picks] {a} [an hour|a day|per hour], {y} {b}. After {c} [hours|days], [how many more has {x}|what's {x}'s lead|by how many is {x} ahead][?|]
One [box|ticket|seat] costs ${a}, the other kind ${b}. [How much more for {c} of the first kind|How much do I save with {c} of the cheaper ones|Difference for {c}][?|]
[A|The] fast [printer|pump|machine] makes {a} a minute, the slow one {b}. [By how much is the fast one ahead after {c} minutes|Lead after {c} minutes][?|]
# d = a * b; d - a | a=5-90 b=2-6
{x} [saved|collected|earned|scored] {a}, {y} {b} times as much. How much more than {x} [has {y}|did {y} get|is that][?|]
{y} has {b} times as many as {x}, who has {a}. [How many more has {y}|By how many is {y} ahead|The difference][?|]
{x}: {a}. {y}: {b} times that. [Difference|How much more has {y}|How many more][?|]
# a * 60 | a=2-24 | unit=minutes from=hours
[the|The|Our] [drive|flight|shift|exam] [of|takes|is] {a} hours[: |, |. ][in minutes|minutes|how many minutes][?|]
{a} [h|hrs|hours] [-> min|to min|= ? min|in mins|expressed in minutes|as minutes|, minutes][?|]
[I waited|We drove|They talked|{x} slept] {a} hours. That's how many minutes[?|]
[write|give|tell me|turn] {a} hours [in|into|as] minutes[.|]
[the|] minutes of {a} hours[?|]
{a} times round for the big hand [means|is] how many minutes[?|]
# a * 60 | a=2-60 | unit=seconds from=minutes
{a} [min|mins|minutes] [-> s|to sec|= ? s|in secs|expressed in seconds|as seconds|, seconds][?|]
[the|A|This] [egg|song|round|timer|video|speech] of {a} minutes [is|lasts|has] how many seconds[?|]
[hold|Hold|Brush|Stir|Shake] it for {a} minutes. [How many seconds is that|In seconds|Seconds][?|]
[set|Set] the timer to {a} minutes, but it [only |]takes seconds. [What do I type|How many seconds][?|]
# a * 3600 | a=2-12 | unit=seconds from=hours
[how many|How many] seconds [are in|are there in|make up|pass in|does it take for] {a} hours[?|]
{a} [h|hours|hrs] [in|to|as|into|->] [seconds|s|sec][?|]
convert {a} hours [to|into] seconds[.|]
seconds in {a} hours[?|]
[a|The] recording of {a} hours has how many seconds[?|]
# a * 1440 | a=2-7 | unit=minutes from=days
[how many|How many] minutes [are in|are there in|make up|pass in] {a} days[?|]
{a} days [in|to|as|into|->] [minutes|min][?|]
minutes in {a} days[?|]
# a * 168 | a=2-6 | unit=hours from=weeks
[how many|How many] hours [are in|are there in|make up|pass in] {a} weeks[?|]
{a} weeks [in|to|as|into|->] [hours|h][?|]
hours in {a} weeks[?|]
# a * 24 | a=2-30 | unit=hours from=days
{a} days [-> h|to h|= ? h|in hrs|expressed in hours|as hours|, hours][?|]
[stuck|We were stuck|They sailed|It snowed|The fair went on] for {a} [whole |full |]days. [In hours|How many hours|Hours][?|]
[a|The] ticket for {a} days is good for how many hours[?|]
# a * 7 | a=2-40 | unit=days from=weeks
{a} [wks|weeks] [-> days|to days|= ? days|expressed in days|as days|, days][?|]
[pregnant|on holiday|in the cast|at sea|without rain] for {a} weeks[. |: |, ][how many days|in days|days][?|]
[the|The|My] [camp|cure|tour|strike] goes on for {a} weeks. That's how many days[?|]
# a * 12 | a=2-40 | unit=months from=years
{a} [yrs|years] [-> months|to months|= ? months|expressed in months|as months|, months][?|]
[a|The|My] [loan|lease|phone contract|warranty] of {a} years [is|runs|has] how many months[?|]
[paying|I pay] monthly for {a} years means how many [payments|months][?|]
# d = a * 60; d + 30 | a=2-12 | unit=minutes
[how many|How many] minutes [are|is|in|make] {a} and a half hours[?|]
{a} and a half hours [in|to|as] minutes[?|]
[the|The] [film|drive|party] took {a} and a half hours. [In minutes|How many minutes][?|]
# d = a * 60; d + 30 | a=2-12 | unit=seconds
[how many|How many] seconds [are|is|in|make] {a} and a half minutes[?|]
{a} and a half minutes [in|to|as] seconds[?|]
# d = a * 24; d + 12 | a=2-6 | unit=hours
[how many|How many] hours [are|is|in|make] {a} and a half days[?|]
{a} and a half days [in|to|as] hours[?|]
# d = a * 12; d + 6 | a=2-9 | unit=months
[how many|How many] months [are|is|in|make] {a} and a half years[?|]
[the|A] toddler is {a} and a half years old. [How many months|In months][?|]
# d = a * 12; d + b | a=2-9 b=2-11 | unit=months
[how many|How many] months [are|is|in|make] {a} years and {b} months[?|]
{a} years {b} months [in|to|as] months[?|]
[the|My|Our] [loan|stay|course] ran {a} years and {b} months. [How many months|In months|Total months][?|]
# d = a * 7; d + b | a=2-12 b=2-6 | unit=days
[how many|How many] days [are|is|in|make] {a} weeks and {b} days[?|]
{a} weeks {b} days [in|to|as|=] days[?|]
[the|Our] [trip|quarantine|voyage] took {a} weeks and {b} days. [In days|How many days][?|]
# d = a * 24; d + b | a=2-6 b=2-23 | unit=hours
[how many|How many] hours [are|is|in|make] {a} days and {b} hours[?|]
{a} days {b} hours [in|to|as] hours[?|]
# d = a * 100; d + b | a=1-9 b=10-99 | unit=cm
[a|The] [rope|plank|rug|snake|jump] [of|is|measures] {a} m {b} cm. [In cm|How many cm|cm][?|]
{a} m {b} [cm |][in|to|as|=] cm[?|]
# d = a * 12; d + b | a=1-9 b=1-11 | unit=inches
{a} [ft|feet] {b} [in|inches] in inches[?|]
[he's|{x} is|The door is|The fish was] {a} foot {b}. [How many inches|In inches|Inches][?|]
{a}'{b}" in inches[?|]
# d = a * 1000; d + b | a=1-9 b=50,100,200,250,300,400,500,600,700,750,800,900 | unit=ml
{a} [l|liters] [and |]{b} ml [in|to|as|=] ml[?|]
[the|The] [jug|pot|tank] holds {a} l and {b} ml. [In ml|How many ml][?|]
# d = a * 1000; d / b | a=2-6 b=50,100,125,200,250,500 | 
{a} [l|liters|litres] - how many [glasses|cups|mugs|bottles|shots] of {b} ml[?|]
[how many|How many] [glasses|cups|bottles|bowls] of {b} ml [can I fill from|do I get from|are in|fit into|does one fill with] {a} [l|liters|litres][?|]
[I have|There are|The pot holds] {a} liters of [juice|soup|punch|milk]. [One glass|A cup|Each bottle] takes {b} ml. [How many can I fill|How many glasses|How many servings][?|]
[pour|Pour] {a} liters into [glasses|bottles|cups] of {b} ml[: how many?|. How many do you need?|. How many are filled?]
# d = a * 1000; d / b | a=2-8 b=50,100,125,200,250,500 |
[how many|How many] [bags|portions|jars|tins] of {b} g [are in|do I get from|can be filled from|come out of] {a} kg[?|]
{a} kg [of flour|of rice|of sweets|of coffee], {b} g [per bag|a bag|each portion]. [How many bags|How many portions|Number of bags][?|]
{a} [kilos|kg] in {b} g [packs|bags|pieces][: how many?|, how many?|. How many?]
# d = a * 100; d / b | a=1-9 b=5,10,20,25,50 |
[how many|How many] [pieces|strips|bits] of {b} cm [can be cut from|are in|do I get from|make] {a} m[?|]
[A|The] [rope|ribbon|board|pipe] of {a} m is [cut|sawn|divided] into {b} cm pieces. [How many|How many pieces|Number of pieces][?|]
{a} m of [ribbon|wire|string], {b} cm [per|for each] [bow|knot|gift]. [How many bows|For how many is it enough|How many][?|]
# d = a * 60; d / b | a=2-8 b=5,10,12,15,20,30,40,45 | dec
[how many|How many] [lessons|shifts|slots|calls|rounds] of {b} minutes [fit into|are in|can be held in|go into] {a} hours[?|]
{a} hours, {b} minutes [per customer|each|a piece|per lap]. [How many|How many fit|How many in all][?|]
# d = a * 60; d / b | a=2-8 b=5,6,10,12,15,20,30 |
[every|Every] {b} minutes a [bus goes|bell rings|drop falls|boat leaves]. [How many times|How many] in {a} hours[?|]
once [every|per] {b} minutes is how [many times|often] in {a} hours[?|]
# d = a * b; d / 60 | a=10,15,20,30,40,45,50,90 c=1-9 b==60*c/a | unit=hours
{x} [reads|walks|practices|trains|paints] {a} minutes [every|a|per|each] day. How many hours is that in {b} days[?|]
{a} min a day for {b} days[: | = |, ][how many hours|hours|in hours][?|]
[how many|How many] hours [are|come from|is it with] {b} [sessions|lessons|rides|walks] of {a} minutes[?|]
{b} [lessons|songs|laps|films] of {a} minutes each[: |, |. ][total hours|how many hours|hours in all][?|]
[If|When] I spend {a} minutes a day on [my phone|the bus|music|the garden], how many hours is it after {b} days[?|]
# d = a * 60; d - b | a=2-4 b=5-55 | unit=minutes
[how many|How many] minutes [are left of|remain of|are left from] {a} hours after {b} minutes[?|]
[I have|We've got|They gave us] {a} hours. {b} minutes are [over|gone|used|up]. [How many minutes remain|Minutes left|How many minutes are left][?|]
{a} hours minus {b} minutes in minutes[?|]
# d = a * 60; b - d | a=2-3 c=5-90 b==60*a+c | unit=minutes
[a|The|This] [film|exam|match|flight] [is|takes|lasts] {b} minutes[ long|]. [I've watched|We've had|After] {a} hours. [How many minutes to go|Minutes left|How many minutes remain][?|]
{b} minutes in all, {a} hours [done|over|gone]. [Minutes left|How many minutes to go][?|]
# a - b | b=5-200 c=2-90 a==b+c | unit=minutes
[a|The|My] [podcast|film|audiobook|lesson] [runs|lasts|is] {a} minutes and {b} are [over|gone|done]. [What's left|How much is left|Minutes left|Remaining][?|]
{b} of {a} minutes [have passed|are gone|are over]. [How many to go|Left|How many remain][?|]
[The|My] [timer|countdown|oven] was set to {a} minutes; {b} minutes have passed. [What does it show|How many minutes are on it|Left][?|]
[the old|the first] [route|recipe|record|lap] [took|was] {a} minutes, the new one [takes|is] {b}. [How many minutes are saved|Minutes saved|How much faster|Gain in minutes][?|]
{x} [needs|took] {a} minutes, {y} {b}. [By how many minutes is {y} faster|How many minutes faster is {y}|The difference in minutes][?|]
# a * b | a=5,10,15,20,25,30,40,45,50,90 b=2-12 | unit=minutes
{b} [lessons|periods|classes|halves|sets|rounds] of {a} minutes [each|][. |, |: |; ][altogether in minutes|total minutes|how many minutes|in all][?|]
[each|Every|One] [lesson|song|patient|haircut|lap] takes {a} minutes. [Minutes for {b}|How many minutes for {b}|{b} of them take how many minutes][?|]
{b} times {a} minutes [is|makes|of exercise is] how [many minutes|long][?|]
[A baker needs {a} minutes per loaf. {b} loaves|A nurse needs {a} minutes per patient. {b} patients|The barber needs {a} minutes per haircut. {b} haircuts] take[?| how many minutes?]
# d = a * b; d * c | a=2-9 b=2-7 c=2-12 | unit=hours
{x} [works|trains|studies] {a} hours a day, {b} days a week. [How many hours in {c} weeks|Hours in {c} weeks][?|]
{a} h/day, {b} days/week, {c} weeks[: total hours?|, how many hours?|: hours?]
# a * b | a=4-12 b=2-7 | unit=hours
{x} [works|sleeps|is at school|drives] {a} hours a day, {b} days [a|per] week. [Hours per week|Weekly hours|How many hours a week][?|]
{b} [shifts|nights|days|workdays] of {a} hours[ each|][: |, |. ][total hours|how many hours|hours in all][?|]
# 24 - a | a=3-20 | unit=hours
[a|The|My] cat sleeps {a} hours a day. How many hours is it awake[?|]
{x} is awake {a} hours [a|of the|every] day. How long does {x} sleep[?| in hours?]
[The|A] [lamp|pump|shop|heater] is [on|running] {a} hours a day. How many hours [a day |]is it off[?|]
[out of|of] 24 hours {x} [sleeps|works|travels] {a}. [How many are left|Hours left|The rest][?|]
[day|Day|The day] is {a} hours long [at the moment|today|in June]. How many hours is the night[?|]
if night lasts {a} hours, how many hours is it light[?|]
[work|school|sleep] takes {a} hours of my day. What's left of the 24[?| hours?]
# d = a + b; 24 - d | a=4-11 b=2-9 | unit=hours
{x} sleeps {a} hours and works {b} hours[ a day|]. [How many hours are left of the day|What's left of the day|Free hours][?|]
[out of|of] 24 hours: {a} asleep, {b} at [work|school]. [rest|How many are free|Left][?|]
{a} hours of sleep, {b} of school. How many hours of the day remain[?|]
# 60 - a | a=5-55 | unit=minutes
[how many|How many] minutes are [left of|missing to|missing from] the hour [after|when] {a} [are over|minutes have passed|minutes][?|]
it's {a} minutes past. [How many minutes to the full hour|Minutes to the next hour][?|]
[the|an] hour has {a} minutes gone, so how many are left[?|]
{a} minutes and how many more make an hour[?|]
[what|how much] is missing from {a} minutes to a full hour[?|]
# 12 * a | a=2-20
[how many|How many] [eggs|rolls|roses|oysters] [are|is|in|make] {a} dozen[?|]
{a} dozen [is how many|= ?|in numbers|makes how many|how many is that][?|]
[the|A] [baker|farmer|shop] [sells|packs|brings] {a} dozen [eggs|rolls|donuts]. [How many is that|How many pieces|Number of them][?|]
{a} dozens of [pencils|buttons|bottles] [are|make] how many[?|]
# a / 12 | b=2-20 a==12*b
[how many|How many] dozen [are|is|make|in] {a}[?| eggs?| rolls?]
{a} [eggs|rolls|roses] [in|are how many|make how many|=|is how many] dozen[?|]
[pack|Pack] {a} eggs by the dozen: how many dozen[?|]
# a * 4 | a=2-30 | unit=quarters from=dollars
[how many|How many] quarters [make|are|are in|do I need for|equal|are there in] {a} dollars[?|]
{a} dollars in quarters[?| is how many coins?]
[I need|The machine takes|The laundry takes] {a} dollars in quarters. How many [quarters|coins][?|]
# a / 4 | b=2-20 a==4*b | unit=dollars from=quarters
{a} quarters [are|is|make|=] how many dollars[?|]
[I've|I have] {a} quarters. How many dollars is that[?|]
# a * 10 | a=2-20 | unit=dimes from=dollars
[how many|How many] dimes [make|are|are in|do I need for|equal] {a} dollars[?|]
{a} dollars in dimes[?|]
# a * 20 | a=2-12 | unit=nickels from=dollars
[how many|How many] nickels [make|are|are in|do I need for|equal] {a} dollars[?|]
"""
# Units of two kinds, clock hands, ages as a riddle has them
TIME += """
# a * 3.6 | b=1-20 a==5*b | dec unit=km/h from=m/s
[how many|How many] km/h [are|is] {a} m/s[?|]
{a} [m/s|meters per second] [in|to|->|as] [km/h|kilometers per hour][?|]
[the wind blows at|a runner does|a ball flies at|a dog runs] {a} m/s. [What is that in km/h|How many km/h|In km/h][?|]
[convert|Convert|change|express] {a} m/s [to|into|in] km/h[.|]
# a / 3.6 | b=1-10 a==18*b | dec unit=m/s from=km/h
[how many|How many] m/s [are|is] {a} km/h[?|]
{a} [km/h|kilometers per hour] [in|to|->|as] [m/s|meters per second][?|]
[the train goes|a car does|the wind has] {a} km/h. [How many meters is that per second|In m/s|How many m/s][?|]
# a * 60 | a=1-30 | unit=km/h
{a} km [per|a] minute [is|are|=] how many km/h[?|]
[how fast|What speed] in km/h is {a} km [per|a] minute[?|]
# a / 60 | b=1-10 a==60*b
{a} km/h is how many km [per|a] minute[?|]
at {a} km/h, how many km do I go [in a minute|per minute][?|]
# a * 2.54 | a=2-60 | dec unit=cm from=inches
[how many|How many] [cm|centimeters] [are|is|in|make] {a} inches[?|]
{a} inches [in|to|->|as|into] [cm|centimeters][?|]
[an|one] inch is 2.54 cm. [How many cm are|What is the length in cm of|In cm:] {a} inches[?|]
[a|The] [screen|pizza|ruler|pipe] of {a} inches is how many cm[?|]
# a / 2.54 | b=1-20 a==254*b/10 | dec unit=inches from=cm
{a} cm [in|to|->|as] inches[?|]
[how many|How many] inches [are|is|in] {a} cm[?|]
# a * 1.6 | a=1-60 | dec unit=km from=miles
[if|If|When] [a|one] mile is 1.6 km, how many km are {a} miles[?|]
[about|About|Roughly] how many [km|kilometers] [are|is] {a} miles[?| with 1.6 km to the mile?]
1 mile = 1.6 km. {a} miles [in km|= ? km|are how many km][?|]
[a|The] mile has 1.6 km. [We drove|The road is|I ran] {a} miles. [In km|How many km][?|]
# a / 1.6 | b=1-30 a==8*b | dec unit=miles from=km
[if|If|When] [a|one] mile is 1.6 km, how many miles are {a} km[?|]
1 mile = 1.6 km. {a} km [in miles|= ? miles|are how many miles][?|]
[about|About|Roughly] how many miles [are|is] {a} km[?|]
# a * 2.2 | a=1-90 | dec unit=pounds from=kg
[if|If|When] 1 kg is 2.2 pounds, how many pounds are {a} kg[?|]
[about|About|Roughly] how many [pounds|lbs] [are|is] {a} kg[?| at 2.2 pounds a kilo?]
1 kg = 2.2 lb. {a} kg [in pounds|= ? lb|are how many pounds][?|]
# a * 6 | a=2-60
[how many|How many] degrees does the minute hand [move|turn|go] in {a} minutes[?|]
the [minute|big] hand [turns|moves] by how many degrees in {a} minutes[?|]
# a * 30 | a=2-12
[how many|How many] degrees does the hour hand [move|turn|go] in {a} hours[?|]
the [hour|small] hand [turns|moves] by how many degrees in {a} hours[?|]
# 7 * 24 | a=1-2 | unit=hours
[how many|How many] hours [are|are there|does it have] in [a|one] week[?|]
hours [in|of|per] [a|one] week[?|]
[a|one|1] week [in|has how many|is how many] hours[?|]
# 24 * 60 | a=1-2 | unit=minutes
[how many|How many] minutes [has|are there in|pass in|make up] [a|one] day[?|]
minutes [in|of|per] [a|one] day[?|]
[a|one|1] day [in|has how many|is how many] minutes[?|]
# d = 24 * 60; d * 60 | a=1-2 | unit=seconds
[how many|How many] seconds [has|are there in|pass in|make up|are in] [a|one] day[?|]
seconds [in|of|per] [a|one] day[?|]
# 365 * 24 | a=1-2 | unit=hours
[how many|How many] hours [has|are there in|pass in|are in] [a|one] [normal |]year[?|]
hours [in|of] [a|one] [normal |]year[?|]
# a * 2 | a=2-60
[how many|How many] [socks|shoes|gloves|skates|earrings] [are|are in|make|is] {a} pairs[?|]
{a} pairs of [socks|shoes|boots|mittens] [are|make|is] how many [pieces|single ones][?|]
# a / 2 | b=2-60 a==2*b
[how many|How many] pairs [are|make|do I get from|can be made from] {a} [socks|shoes|gloves|skates][?|]
{a} [socks|shoes|gloves] [are|make|is] how many pairs[?|]
# a * 20 | a=2-12
[how many|How many] years [are|is] {a} score[?|]
# a * 14 | a=2-9 | unit=days
[how many|How many] days [are|are in|have] {a} fortnights[?|]
{a} fortnights [in|are how many] days[?|]
# d = 31 + 28; d + 31 | a=1-2
[how many|How many] days have [the first three months|the first quarter] of a normal year[?|]
[total|number of] days from January through March in a normal year[?|]
# d = 31 + 29; d + 31 | a=1-2
[how many|How many] days have [the first three months|the first quarter] of a leap year[?|]
# d = b + 1; e = a / d; e * b | b=2-5 c=3-15 a==(b+1)*c
{x} is {b} times as old as {y}. Together they are {a}. [How old is {x}|{x}'s age][?|]
[the|A] [mother|father|teacher] is {b} times as old as the [child|pupil|boy|girl] and together they are {a}. [How old is the adult|The adult's age|The older one's age][?|]
the ages of {x} and {y} add up to {a}; {x} is {b} times as old. [How old is {x}|{x} is][?|]
# d = b + 1; a / d | b=2-5 c=3-15 a==(b+1)*c
{x} is {b} times as old as {y}. Together they are {a}. [How old is {y}|{y}'s age][?|]
[the|A] [mother|father|teacher] is {b} times as old as the [child|pupil|boy|girl] and together they are {a}. [How old is the younger one|The younger one's age][?|]
the ages of {x} and {y} add up to {a}; {x} is {b} times as old. [How old is {y}|{y} is][?|]
# d = b - 1; a / d | b=2-5 c=3-15 a==(b-1)*c
{x} is {b} times as old as {y} and {a} years older. [How old is {y}|{y}'s age][?|]
[the|A] [mother|father|aunt] is {a} years older than the [child|girl|boy], and {b} times as old. [How old is the younger one|The younger one's age][?|]
# d = b - 1; e = a / d; e * b | b=2-5 c=3-15 a==(b-1)*c
{x} is {b} times as old as {y} and {a} years older. [How old is {x}|{x}'s age][?|]
[the|A] [mother|father|boss] is {a} years older than the [daughter|son|clerk], and {b} times as old. [How old is the older one|The older one's age][?|]
# d = a + b; d + c | a=3-40 b=2-15 c=2-20
{x} was {a} when {he} moved to the coast, stayed {b} years, then lived elsewhere for {c} years. [Age now|How old is {x} now][?|]
[started school at|moved at|began the job at] {a}, stayed {b} years, then {c} years [elsewhere|somewhere else|in another place]. [Age now|How old now][?|]
# d = a - b; d - c | b=2-15 c=2-15 e=5-40 a==b+c+e
{x} is {a}. {He} worked {b} years here and {c} years before that. [At what age did it all start|Age at the start|How old was {x} at the start][?|]
{a} now, {b} years married, and {c} years together before that. [How old at the first meeting|Age when they met][?|]
"""
# Ages with a comparison turned round, with numbers of no use, with "not", in words
TIME += """
# a - b | b=2-30 c=2-50 a==b+c
{x} is {b} years older than {y}. {x} is {a}. [How old is {y}|{y}'s age|And {y}][?|]
[How old|What age] is {y} if {x}, {b} years older, is {a}[?|]
{x}, {a}, is older than {y} by {b} years. [How old is {y}|{y} is][?|]
[I am|I'm] {a}, {b} years older than my [brother|sister|cousin|friend]. [How old is that one|And the other][?|]
[my|My|Our] [cousin|sister|brother|neighbor|friend] has {b} years on me and is {a}. [How old am I|My age|I am][?|]
if {x} is {a} and that is {b} years more than {y}, how old is {y}[?|]
it's {b} years that {x} is ahead of {y}; {x} is {a}. [{y}'s age|How old is {y}][?|]
{x} is not {a}, {he} is {b} years younger. [How old is {x}|{x}'s age|Age][?|]
{x} is not as old as {y}: {b} years younger. {y} is {a}. [How old is {x}|{x}'s age][?|]
[the|The] younger of two is {b} years behind the older, who is {a}. [How old is the younger|Age of the younger][?|]
{x} is {a}. {b} years separate {him} from the younger {y}. [How old is {y}|{y} is][?|]
[don't|Don't] say {a}: {x} only turns {a} in {b} years. [How old is {x} now|Age now][?|]
# a + b | a=2-60 b=2-30
{x} is {b} years younger than {y}. {x} is {a}. [How old is {y}|{y}'s age|And {y}][?|]
[How old|What age] is {y} if {x}, {b} years younger, is {a}[?|]
{x}, {a}, is younger than {y} by {b} years. [How old is {y}|{y} is][?|]
[I am|I'm] {a}, {b} years younger than my [brother|sister|cousin|friend]. [How old is that one|And the other][?|]
[my|My|Our] [cousin|sister|brother|neighbor|niece] is {a}, and I'm {b} years older. [How old am I|My age|I am][?|]
if {x} is {a} and that is {b} years less than {y}, how old is {y}[?|]
{x} is not {a}, {he} is {b} years older. [How old is {x}|{x}'s age|Age][?|]
{x} isn't as young as {y}: {b} years older. {y} is {a}. [How old is {x}|{x}'s age][?|]
{x} is {a}. {b} years separate {him} from the older {y}. [How old is {y}|{y} is][?|]
# a - b | b=2-20 c=3-50 a==b+c e=2-9
{x} is {a} and has {e} [cats|cousins|bikes|jobs]. The {kin} is {b} years younger. [How old is the {kin}|The {kin}'s age][?|]
{x} has {e} [kids|pets|houses], is {a}, and {y} is {b} years younger. [How old is {y}|{y}'s age][?|]
{e} friends meet. {x} is {a}, {y} is {b} years younger. [How old is {y}|{y}'s age][?|]
{x} lives at number {e} and is {a}. How old was {he} {b} years ago[?|]
the class has {e} teachers. One is {a}. How old was that one {b} years ago[?|]
# a + b | a=3-60 b=2-20 e=2-9
{x} is {a} and has {e} [cats|cousins|bikes|jobs]. The {kin} is {b} years older. [How old is the {kin}|The {kin}'s age][?|]
{x} has {e} [kids|pets|houses], is {a}, and {y} is {b} years older. [How old is {y}|{y}'s age][?|]
{e} friends meet. {x} is {a}, {y} is {b} years older. [How old is {y}|{y}'s age][?|]
{x} lives at number {e} and is {a}. How old will {he} be in {b} years[?|]
a {a}-year-old with {e} sisters: how old in {b} years[?|]
# a + 12 | a=2-80
{x} is {a}. How old will {he} be in a dozen years[?|]
[a dozen years from now|in a dozen years] {a}-year-old {z} will be how old[?|]
# a - 12 | b=2-70 a==b+12
{x} is {a}. How old was {he} a dozen years ago[?|]
# a + 10 | a=2-80
{x} is {a}, {y} a decade older. [How old is {y}|{y}'s age][?|]
[a decade from now|in ten years' time] a {a}-year-old is how old[?|]
# a - 10 | b=2-70 a==b+10
{x} is {a}, {y} a decade younger. [How old is {y}|{y}'s age][?|]
# a + 20 | a=2-70
{x} is {a}. What age will {he} be two decades from now[?|]
# a + 50 | a=2-45
{x} is {a}. [How old|What age] will {he} be in half a century[?|]
# a * 10 | a=2-12 | unit=years from=decades
[how many|How many] years [are|is] {a} decades[?|]
{a} decades [later|on][: how many years later|, how many years is that][?|]
# a - b | b=2-90 c=1-80 a==b+c e=2-9
{x} has {a} {t}, {y} has {b} and {e} [hats|brothers|keys]. How many more {t} has {x}[?|]
[In {e} days|On {e} days] {x} ran {a} km and {y} {b} km. [How many km more did {x} run|By how many km is {x} ahead][?|]
[the|The] red box weighs {a} kg, the blue one {b} kg; both are {e} years old. [How much heavier is the red one|How many kg more has the red one][?|]
[After|Within] {e} rounds {x} has {a} points and {y} {b}. [What's {x}'s lead|By how many does {x} lead][?|]
# a - b | b=2-90 c=1-80 a==b+c
{x} doesn't have {a} but {b} [less|fewer]. [How many has {x}|How many are they][?|]
not {a}: {b} fewer. [How many|So how many][?|]
{x} has {b} fewer than {y}, who has {a}. [How many has {x}|{x} has][?|]
{y} has {a}, that is {b} more than {x}. [How many has {x}|{x} has how many][?|]
{x} and {y} compared: {y} leads by {b} with {a}. [{x} has|How many has {x}][?|]
# a + b | a=2-90 b=2-60
{x} has {b} more than {y}, who has {a}. [How many has {x}|{x} has][?|]
{y} has {a}, that is {b} fewer than {x}. [How many has {x}|{x} has how many][?|]
{x} and {y} compared: {y} trails by {b} with {a}. [{x} has|How many has {x}][?|]
not {a}: {b} more. [How many|So how many][?|]
"""
# Amounts compared
TIME += """
# a / b | b=2-12 c=2-15 a==b*c
[how many times|How many times] [bigger|larger|greater|more|as big|as much] is {a} [than|as] {b}[?|]
[how many times|How many times] [larger|bigger] than {b} is {a}[?|]
[by what factor|By which factor] is {a} [bigger|larger|greater] than {b}[?|]
{a} is how many times [{b}|as much as {b}|as big as {b}|the size of {b}][?|]
{a} vs {b}: how many times [as much|as big|larger][?|]
[tower|Tower|Hill|Tree] A is {a} m, [tower|hill|tree] B {b} m. [How many times as tall is A|A is how many times as high as B|How many times taller is A][?|]
{x} has {a} [points|{t}|dollars], {y} {b}. [How many times as many has {x}|{x} has how many times as many|How many times {y}'s number is that][?|]
[A|The] [whale|truck|elephant] weighs {a} [tons|t], [a|the] [car|van|calf] {b}. How many times as heavy is the first[?|]
[A|The] [bike|sofa|phone] costs ${a} and [a|the] [helmet|lamp|case] ${b}. [How many times the price is that|How many times as expensive is the first|The first is how many times as dear][?|]
{x} ran {a} km, {y} {b} km. [How many times as far did {x} run|How many times {y}'s distance is it][?|]
[how often|How often] does {b} [go into|fit into|fit in] {a}[?|]
[the ratio|What factor|The factor] from {b} to {a}[?| is what?]
[which number|What] times {b} [makes|is|gives] {a}[?|]
[In 2010 there were|Once there were|The village had] {b} [houses|people|shops], now {a}. [By what factor did it grow|How many times as many are there now|It's how many times as many][?|]
{a} [seconds|points|grams|meters] against {b}[: how many times as many?|, how many times as many?|. How many times as many?]
if {x} is {a} and {y} {b}, how many times as old is {x}[?|]
# a - b | b=2-90 c=1-80 a==b+c
[how much|How much] [more|greater|bigger|larger] is {a} [than|compared to|compared with] {b}[?|]
[how much|How much] [less|smaller|lower] is {b} [than|compared to|compared with] {a}[?|]
{a} beats {b} by [how much|how many|what][?|]
[by how much|By how much|By how many] does {a} [exceed|beat|top|surpass|outnumber] {b}[?|]
[by how much|By how much] does {b} [fall short of|miss|lag behind|trail] {a}[?|]
how far [apart are {a} and {b}|is it from {b} to {a}|is {b} from {a}|ahead of {b} is {a}][?|]
[what|how much] must [be added to|I add to|one add to|go on top of] {b} to [get|reach|make|equal] {a}[?|]
[{x}|My team|Red] has {a} [points|votes|wins|medals], [{y}|the others|Blue] {b}. [What's the lead|Lead|How big is the lead|Margin][?|]
{x} scored {a}, {y} {b}. [Won by how many|By how many did {x} win|Winning margin|Points between them][?|]
[{x} weighs|One parcel weighs|The first dog weighs] {a} kg and [{y}|the other|the second] {b} kg. [How many kilos heavier|The difference in kg|How much heavier is the first][?|]
[{x} is|The fir is|One wall is] {a} cm [tall|high], [{y}|the pine|the other one] {b} cm. [How many cm taller|How much taller is the first|Difference in height][?|]
[It's|It was|We had] {a} degrees in [June|the sun|{place}] and {b} [in March|in the shade|up north]. [How much warmer|How many degrees warmer|Difference in degrees][?|]
[Shop|Store|Offer] A: ${a}. [Shop|Store|Offer] B: ${b}. [How much cheaper is B|B saves how much|How much do I save with B][?|]
[was|Was|used to be|It was] ${a}, now ${b}. [How much cheaper|Saving|How much less|How much did it drop][?|]
[was|used to be|It was] ${b}, now ${a}. [How much more|By how much did it rise|How much dearer|Increase][?|]
{x} [jumped|swam|threw|rode] {a} m, {y} {b} m. [How much farther did {x} get|How many meters more|By how many meters is {x} ahead][?|]
{x} needed {b} seconds, {y} {a}. [How many seconds faster was {x}|By how many seconds did {x} win|How many seconds slower was {y}][?|]
[the|A] [river|road|train] is {a} km long, [another|the next] one {b} km. [How many km longer is the first|Difference in km|The first is longer by][?|]
[Yesterday|Last week|In May] {b} [people|visitors|calls], [today|this week|in June] {a}. [How many more|Increase|By how many did it go up][?|]
[Yesterday|Last week|In May] {a} [people|visitors|calls], [today|this week|in June] {b}. [How many fewer|Drop|By how many did it go down][?|]
[There are|We have|I see] {a} {t} [but only|and] {b} {u}. [How many more {t}|By how many are there more {t}|What's the difference][?|]
[the class|Our choir|The team] has {a} [girls|altos|forwards] and {b} [boys|basses|backs]. [How many more of the first|Difference|What's the difference][?|]
{x} has {b} {t}. {y} has {a}. How many [fewer|less] [does|has] {x} [have|][?| than {y}?]
{x} read {b} pages, {y} {a}. [How many more did {y} read|{y} read how many more][?|]
[not {b} but {a}|{a}, not {b}]: how much was I off[?|]
{x} guessed {b}, [it was|the answer was|there were] {a}. [How far off|Off by how much|By how much was the guess wrong][?|]
[the|The] [older|bigger|longer] one is {a}, the [younger|smaller|shorter] one {b}. [Difference|The gap|How much between them][?|]
[A|The] [plan|goal|target|record] is {a}; we're at {b}. [How much is missing|What's missing|How many to go][?|]
"""

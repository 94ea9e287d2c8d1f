"""Wordings of calculations with bare numbers."""

NUMBERS = """
# a + b | a=1-9999 b=1-9999
[what's|what is|how much is|find] {a} and {b} put together[?|]
[could|can|would] you [total|add|sum|add up|tally] {a} and {b} [for me|please|]?
[how much|what] do {a} and {b} [come to|make|give|amount to|add up to|equal|yield|sum to][?| together?| in total?]
[if|when] you [tack|stick|put|pile|throw] {b} [onto|on top of|on] {a}[,|] what [do you have|do you get|have you got|is the total][?|]
[let's say|say|suppose|imagine] I['ve got| have| start with] {a} and [someone|somebody|a friend] [throws in|adds|gives me|chips in] {b}[.|,] [new total|total now|what now|what do I have|how much is that][?|]
{a} [increased by|raised by|plus another|with an extra|topped up by|along with|and also|and then|joined with] {b} [gives|makes|is|becomes|equals] [what|what number|you what number|how much][?|]
{a} plus {b} [makes|equals|gives|is|comes to|totals|yields|amounts to][?|...|:| what?|]
[bring|put|take|lump] {a} and {b} together[.|:] [What do you get|Total|What's that|Result][?|]
[the|my|our] [score|count|counter|total|meter] [was|stood at|is at|shows] {a}, then [it went|it goes|goes|it rises|it climbs] up [by |]{b}[. What is it now?|. Now?|. New value?]
[go|move|jump|count] {b} [up|further|on|forward] from {a}[.| and you are at?| - where do you land?| and you land on]
start [at|with|from] {a}[,|;] [go up|climb|add|count up|move up] {b}[,|;] [end up where|where are you|what's the number|which number][?|]
[one number|the first number|one addend|x] is {a}, [the other|the second|the other one|y] is {b}[;|,|.] [sum|their sum|what is the sum|add them|what's x + y][?|]
[quick|quick one|quick math|quick check|math check|pop quiz|easy one|sum]: {a} + {b}[?|]
[quick|quick one|quick math|quick check|math check|pop quiz|easy one|homework] - [what is |what's |]{a} + {b}[?|]
[I need|I want|I'm after|I am looking for|gimme] the [sum|total|grand total] of {a} and {b}[.|]
[add|+] {a} [&|and|,|;|/] {b}
[what's|what is] [the result of adding|the outcome of adding|the answer when I add|the answer if we add] {b} [to|and] {a}[?|]
by adding {b} to {a} [you get|we get|I obtain|one gets][?|]
what will {a} [become|be] [if|when|once] [it grows by|it increases by|I add|it is raised by|you add] {b}[?|]
[which|what] number is {b} [more than|above|beyond|past|higher than|greater than|over] {a}[?|]
[how much|what] would {a} and {b} be [combined|altogether|together|in sum|if combined|if you add them][?|]
# a + b + c | a=1-500 b=1-500 c=1-500
[could|can] you [total|add|sum|add up] {a}, {b} and {c}[ for me| please|]?
add [these|these numbers|these three|the following|these up][ for me please|]: {a}, {b}, {c}
[sum|total] of {a}, {b}[,|] and {c}[?|]
[what|how much] do {a}, {b} and {c} [make|come to|give|add up to] [together|in all|altogether|][?|]
{a} plus {b} plus {c}[?|=| equals| is| makes what?]
{a} and {b} and {c} [is|makes|are|together][?| what?| how much?]
[put|lump] {a}, {b} and {c} together, [what's|what is|how much is] [that|it][?|]
[start with|take] {a}[,|;] [add|plus] {b} [and then|then|and] [add another|add|another] {c}[.|?|]
three [numbers|amounts|values]: {a}, {b}, {c}[.|;] [total|sum|what is the total|their sum|together][?|]
{a}+{b}+{c} [is what|= what|totals|comes out at|equals][?|]
if [I|we|you] [sum|add] {a}, {b} and {c}, what [is it|comes out|do I get|is the total][?|]
# a + b + c + d | a=1-99 b=1-99 c=1-99 d=1-99
add [these|these numbers|the following|these up][ for me please|]: {a}, {b}, {c}, {d}
[sum|total] of {a}, {b}, {c} and {d}[?|]
{a} + {b} + {c} + {d}[=|?|]
[what|how much] do {a}, {b}, {c} and {d} [make|come to|give|add up to][?|]
# a - b | b=1-999 c=0-999 a==b+c
from {a} [take away|take|subtract|remove|deduct|you take|we take] {b}[.|?|]
how much [bigger|larger|greater|higher|more] is {a} [than|compared to|compared with] {b}[?|]
how much [smaller|less|lower|fewer] is {b} [than|compared to|compared with] {a}[?|]
{a} less {b}[?|=|]
{a} take {b}[?|]
{a} [without|take away|minus|reduced by|lowered by|cut by|shrunk by|diminished by] {b} [is|gives|equals|leaves|makes][?|]
[knock|take|shave|strike|cut|chop] {b} off {a} [and|and now|so] [you're left with what|what's left|what remains|what do you have|you get][?|]
[what's|what is|how much is] left [when|if|once|after] {a} [loses|drops|gives up|is cut by|is reduced by] {b}[?|]
subtracting {b} from {a} [leaves|gives|yields|makes|equals][?|]
[what|how much] must [I|you|we] [remove|take away|subtract|take off|deduct] from {a} to [end up with|get|reach|be left with|have] {b}[?|]
what [number|] [do I|must I|should I] [subtract|take] from {a} [to get|so that|to have] {b}[?| remain?| is left?| left?]
[what's the |what is the |find the |the |]gap between {b} and {a}[?|]
[what's the |what is the |the |]distance [between|from] {b} [and|to] {a}[?|]
how far [is it |is |]from {b} [up |]to {a}[?|]
how far apart are {a} and {b}[?|]
count [down|back|backwards] {b} from {a}[.|] [Where are we?|Where do you end?|You get?|]
start at {a} and [count|go|move|step] [down|back] [by |]{b}[.|] [where are you|what number is that|which number][?|]
what do I [add to|need to add to|have to add to|put on] {b} to [get|make|reach] {a}[?|]
how much [more |]do I need to get from {b} to {a}[?|]
how much [must be|has to be|should be|needs to be] added to {b} to [get|make|reach|have] {a}[?|]
how many more than {b} is {a}[?|]
how much does {a} [exceed|surpass] {b} [by|][?|]
by how much [does {a} exceed {b}|is {a} more than {b}|is {b} less than {a}|do {a} and {b} differ][?|]
[if|when] {b} [is|gets|are] [taken from|removed from|subtracted from|deducted from] {a}[,|] what [remains|is left|do you get|stays][?|]
{a} [had|has] {b} [taken away|removed|subtracted|deducted]. [What is left|Result|What remains][?|]
[what|which] number is {b} [less than|below|under|smaller than|lower than|before] {a}[?|]
[the|] difference [of|between] {b} and {a}[?|]
[deduct|withdraw|remove] {b} from {a}[.|]
[the|my] [counter|score|meter] [drops|falls|goes down|went down] [by {b} from {a}|from {a} by {b}][.|,] [what is it now|new value|now|what does it show][?|]
{b} [less than|fewer than|under|below] {a}[?| is what?| equals?]
{a} - {b} [leaves|gives|results in|is what|=|comes to][?|]
# a - b - c | c=1-99 b=1-99 d=0-300 a==b+c+d
{a} minus {b} minus {c}[?|=|]
[take|subtract|remove] [both |]{b} and {c} from {a}[.|]
from {a} [take away|subtract] {b} and [then |]{c}[.|]
{a} less {b} less {c}[?|]
start with {a}, [lose|remove|take off|subtract] {b}, then [another |]{c}[.|?|]
# a * b | a=2-30 b=2-12
[what|how much] do {a} [times |lots of |sets of ]{b} make[?|]
how much [is|are] {a} [lots|groups|sets|batches|bunches|times] of {b}[?|]
[multiply|times] {a} [and|by|with] {b}[ together|], [what's the outcome|what do you get|what's the product|result][?|]
{a} times {b}[ please| equals| is| makes|][?|]
{a} x {b}
{a} [rows|stacks|piles|groups|sets|boxes|packs|teams] of {b} [makes|is|are|gives|total][?| how many?| what?| altogether?]
[what's|what is|give me|tell me] the product [when you multiply|of multiplying|of|if you multiply] {a} [and|by] {b}[?|]
{b} [repeated|taken|added up|used] {a} times [is|gives|makes|equals][?| what?]
[what number|which number|what] is {a} times [as big as|as large as|bigger than|as much as|greater than|] {b}[?|]
if [I|you] have {a} {b}s, what do [they|those] make[?|]
[in the|from the] [times table|multiplication table|{a} times table]: {a} x {b}[?|]
scale {b} [up |]by [a factor of |]{a}[.|]
{b} [made|grown|enlarged] {a}[-fold| times as large| times bigger][?| is what?]
{a} [multiplied by|multiplied with|times|by] {b} [comes to|results in|amounts to|is how much|works out as|gives][?|]
[the|] [value|result|outcome|answer] of {a} [multiplied by|times|*|x] {b}[?|:|]
# a * 12 | a=2-30
a dozen times {a}[?|]
[what is|how much is|] {a} dozen[?|]
{a} times [a dozen|twelve][?|]
how many [eggs|rolls|donuts|roses|pieces|items|bottles] are [in |]{a} dozen[?|]
# a * 2 | a=2-200
[what's|what is|] [twice|double|two times] {a}[?|]
{a} [twice|doubled][?|]
# a * b * c | a=2-9 b=2-9 c=2-10
what is {a}*{b}*{c}[?|]
product of {a}, {b} and {c}[?|]
{a} times {b} times {c}[?| equals| is]
multiply [together |]{a}, {b}[,|] and {c}[.|]
{a} x {b} x {c}[=|?|]
[what do|what would] {a}, {b} and {c} give multiplied [together|][?|]
# a / b | b=2-15 c=1-15 a==b*c
how many {b}s [fit into|fit in|go into|are in|are there in|make|are contained in|can you take from|make up] {a}[?|]
how many times does {b} [fit into|go into|fit in|divide into] {a}[?|]
{b} goes into {a} [how often|how many times|how much][?|]
how often [does|can] {b} [go into|fit into|fit in|be taken from|be subtracted from] {a}[?|]
[if|when] [I|you|we] [split|cut|divide|share|break] {a} [in|into] {b} [equal|even|same-size|identical] [parts|pieces|groups|portions|shares][,|] how [big|large|much] is [each|each one|every part|one][?|]
[divvy up|split up|share out|portion out|deal out|break up|distribute] {a} [into|in|among|between] {b} [equal piles|equal groups|people|parts|equal shares|portions][.|]
{a} over {b}[?| equals?|]
{a} [divided|split|shared] [in|into|by|among|between] {b}[?| gives?| is?| makes?]
[quotient|the quotient|what is the quotient] [when|if] {a} is divided by {b}[?|]
[quotient|the quotient|what is the quotient] of {a} and {b}[?|]
[dividing|splitting|sharing] {a} [by|into|among] {b} [gives|yields|makes|is|results in][?| what?]
[one|a] share of {a} [split|divided] [among|between] {b} is[?| what?]
{a} [by|divided by|:|÷|/] {b} [please|equals|is|gives][?|]
what number times {b} [is|gives|makes|equals] {a}[?|]
{b} times what [is|gives|makes|equals] {a}[?|]
what must {b} be multiplied [by|with] to [get|make|give] {a}[?|]
how many groups of {b} [are in|can you make from|can be made from|make] {a}[?|]
{a} [pieces|items|things] in {b} equal [groups|rows|boxes|teams][:|,] how many [in each|per group|each][?|]
# a / b | b=2,4,5,8,10,20,25 a=1-400 | dec
{a} [over|divided by|÷|:|/] {b}[?|=| is?| as a decimal]
divide {a} by {b}[.|]
what's {a} [split|divided] by {b}[?|]
# a / b | b=3,6,7,9,11,12,13 a=10-200 | dec
{a} [÷|/|divided by|over] {b}[, two decimals| to two decimals| to 2 decimal places| rounded to 2 decimals| approximately|, rounded to two places|?|]
[what's|what is] {a} [/|divided by] {b} [to 2 places|to two decimals|rounded to hundredths|roughly][?|]
# a * b + c | a=2-12 b=2-12 c=1-60
[the |]product of {a} and {b}[,|] [plus|increased by|and then plus|with {c} added, that is, plus] {c}[?|]
multiply {a} [by|and|with] {b} [and|, then|and then|and after that] add {c}[.|?|]
{a} times {b}[,|] plus {c}[?| equals?|]
{c} more than {a} times {b}[?|]
{c} plus the product of {a} and {b}[?|]
[take|get|work out] {a} times {b} [and|then] [put|add|throw] {c} [on top|to it|in][.|?|]
add {c} to the product of {a} and {b}[.|]
[what|how much] is {a} times {b} [increased by|with {c} more, so plus|plus] {c}[?|]
{a} x {b} and {c} more[?|]
# a * b - c | a=2-12 b=2-12 c=1-60
multiply {a} by {b} and [then |]take [off |away ]{c}[.|?|]
multiply {a} by {b} and [then |]subtract {c}[.|?|]
[the |]product of {a} and {b}[,|] [less|minus|reduced by|decreased by] {c}[?|]
{a} times {b}[,|] [minus|less|take away] {c}[?|]
{c} less than {a} times {b}[?|]
{c} less than the product of {a} and {b}[?|]
[take|get|work out] {a} times {b} [and|then] [take away|subtract|remove] {c}[.|?|]
subtract {c} from the product of {a} and {b}[.|]
# a + b * c | a=1-60 b=2-12 c=2-12
{a} plus {b} times {c}[?|]
what is {a} [added to|plus] {b} [times|multiplied by] {c}[?|]
{a} + {b} x {c}[=|?|]
[evaluate|work out|compute] {a} + {b} * {c}[.|]
{a} and {b} times {c} on top[?|]
# (a + b) * c | a=1-30 b=1-30 c=2-12
[the |]sum of {a} and {b}[,|] [times|multiplied by] {c}[?|]
add {a} and {b}[,|] [then|and|and then|next] [multiply [the sum |the result |what you get |it |that |]by|times] {c}[.|?|]
{c} times the sum of {a} and {b}[?|]
{a} plus {b}, [all|everything|the whole thing|the total] [times|multiplied by] {c}[?|]
[what do you get|what is it|what comes out] [if|when] you add {a} and {b} and multiply [the total|the sum|that|it] by {c}[?|]
the [total|sum] of {a} and {b} taken {c} times[?|]
start with {a}, add {b}, multiply by {c}[.|?|]
what does {c}*({a}+{b}) [evaluate to|equal|come to|give][?|]
# (a - b) * c | b=1-30 d=1-20 a==b+d c=2-12
[the |]difference [of|between] {a} and {b}[,|] [times|multiplied by] {c}[?|]
subtract {b} from {a}[,|] [then|and|and then] multiply [the result |it |that |]by {c}[.|?|]
{c} times the difference [of|between] {a} and {b}[?|]
{a} minus {b}, [all|everything|the whole thing|the result] times {c}[?|]
take {a}, [lose|subtract|remove] {b} and multiply by {c}[.|?|]
# (a + b) / c | c=2-9 d=2-15 b=1-20 a==c*d-b
[the |]sum of {a} and {b}[,|] divided by {c}[?|]
add {a} and {b}[,|] [then|and|and then] divide [the sum |the result |what you get |it |that |]by {c}[.|?|]
{a} plus {b}, [all|everything|the whole thing|the total|] [divided by|over] {c}[?|]
[what do you get|what is it] if you add {a} and {b} and divide [the total|the sum|that|it] by {c}[?|]
split the sum of {a} and {b} into {c} [equal parts|shares][.|]
start with {a}, add {b}, divide by {c}[.|?|]
# (a - b) / c | c=2-9 d=1-15 b=1-30 a==c*d+b
[the |]difference [of|between] {a} and {b}[,|] divided by {c}[?|]
subtract {b} from {a}[,|] [then|and|and then] divide [the result |it |that |]by {c}[.|?|]
{a} minus {b}, [all|everything|the whole thing|the result] divided by {c}[?|]
# a / b + c | b=2-12 d=1-15 a==b*d c=1-60
{a} divided by {b}[,|] plus {c}[?|]
divide {a} by {b} [and|, then|and then] add {c}[.|?|]
[the |]quotient of {a} and {b}[,|] [plus|increased by] {c}[?|]
{c} more than {a} divided by {b}[?|]
# a / b - c | b=2-12 d=3-15 a==b*d c=1-d
{a} divided by {b}[,|] [minus|less] {c}[?|]
divide {a} by {b} [and|, then|and then] [subtract|take away] {c}[.|?|]
[the |]quotient of {a} and {b}[,|] [minus|less|reduced by] {c}[?|]
# a / 2 + c | d=1-60 a==2*d c=1-60
half of {a}[,|] plus {c}[?|]
[what is |what's |]half of {a} [and then add|and add|increased by|plus] {c}[?|]
[take|find] half of {a} and add {c}[.|]
{c} more than half of {a}[?|]
halve {a}[,|] then add {c}[.|]
add {c} to half of {a}[.|]
# a / 2 - c | d=8-60 a==2*d c=1-d
half of {a}[,|] minus {c}[?|]
halve {a} and [subtract|take away] {c}[.|]
{c} less than half of {a}[?|]
# a * 2 + c | a=2-99 c=1-60
[double|twice] {a}[,|] plus {c}[?|]
double {a} and add {c}[.|]
{c} more than [twice|double] {a}[?|]
take {a}, double it[,|] [and|then|and then] add {c}[.|?|]
# a * 2 - c | a=9-99 c=1-a
[double|twice] {a}[,|] minus {c}[?|]
double {a} and [subtract|take away] {c}[.|]
{c} less than [twice|double] {a}[?|]
take {a}, double it[,|] [and|then|and then] [subtract|take away] {c}[.|?|]
# a * 3 - c | a=3-60 c=1-a
take {a}, triple it [and|then] subtract {c}[.|?|]
triple {a} and [subtract|take away] {c}[.|]
three times {a}[,|] [minus|less] {c}[?|]
# a * 3 + c | a=3-60 c=1-60
take {a}, triple it [and|then] add {c}[.|?|]
triple {a} and add {c}[.|]
three times {a}[,|] plus {c}[?|]
# (a + c) * 2 | a=2-60 c=1-60
add {c} to {a} and double [it|the result|the sum|that][.|]
double the sum of {a} and {c}[.|?|]
twice the sum of {a} and {c}[?|]
# (a + c) / 2 | a=2-60 d=1-60 c==a+2*d
half of the sum of {a} and {c}[?|]
add {a} and {c} and [halve it|halve the result|take half][.|]
# a * a + b | a=2-15 b=1-60
what's {a} squared plus {b}[?|]
{a} squared[,|] plus {b}[?|]
the square of {a}[,|] [plus|increased by] {b}[?|]
{b} more than {a} squared[?|]
add {b} to the square of {a}[.|]
{a}[^2|²|**2] + {b}[=|?|]
square {a} and add {b}[.|]
# a * a - b | a=3-15 b=1-9
what's {a} squared minus {b}[?|]
{a} squared[,|] [minus|less] {b}[?|]
the square of {a}[,|] [minus|less|reduced by] {b}[?|]
{b} less than {a} squared[?|]
subtract {b} from the square of {a}[.|]
{a}[^2|²|**2] - {b}[=|?|]
square {a} and [subtract|take away] {b}[.|]
# a * a + b * b | a=1-12 b=1-12
{a} squared plus {b} squared[?|]
[the |]sum of the squares of {a} and {b}[?|]
{a}[^2|²|**2] + {b}^2[=|?|]
# a * a - b * b | b=1-9 d=1-8 a==b+d
{a} squared minus {b} squared[?|]
{a}[^2|²|**2] - {b}^2[=|?|]
# (a + b) * (c - d) | a=1-15 b=1-15 d=1-9 e=1-12 c==d+e
({a} + {b}) * ({c} - {d})[=|?|]
[the |]sum of {a} and {b} times the difference [of|between] {c} and {d}[?|]
# a * b + c * d | a=2-12 b=2-12 c=2-12 d=2-12
{a} times {b} plus {c} times {d}[?|]
[the |]product of {a} and {b} plus the product of {c} and {d}[?|]
{a} x {b} + {c} x {d}[=|?|]
# a * b - c * d | c=2-8 d=2-8 a==c+2 b==d+3
{a} times {b} minus {c} times {d}[?|]
{a} x {b} - {c} x {d}[=|?|]
# a - b + c | b=1-60 d=0-60 a==b+d c=1-60
{a} minus {b} plus {c}[?|=|]
[subtract|take] {b} from {a} [and|, then|and then] add {c}[.|?|]
{a}, [take away|minus|less] {b}, [add|plus|and then add] {c}[?|]
from {a} [remove|take] {b}, then [put|give] {c} back[.|?|]
# a + b - c | a=1-60 b=1-60 c=1-a
{a} plus {b} minus {c}[?|=|]
[the |]sum of {a} and {b}[,|] [minus|less] {c}[?|]
add {a} and {b} [and|, then|and then] [subtract|take away|remove] {c}[.|?|]
{c} less than the sum of {a} and {b}[?|]
# 0 - a | a=1-200 | neg
[what's|what is|] the [opposite|negative|additive inverse] of {a}[?|]
[what number|which number] [is|] [the opposite of|opposite to] {a}[?|]
zero minus {a}[?|]
# a + 1 | a=1-9999
[which|what] number [follows|comes after|comes right after|comes next after|is next after|succeeds] {a}[?|]
[what comes|what's] [after|right after|next after|one after] {a}[?|]
[one|1] more than {a}[?|]
the [successor|number after|next number after|whole number after|integer after] [of|] {a}[?|]
# a - 1 | a=1-9999
[which|what] number [comes before|comes right before|precedes|is just before|comes just before] {a}[?|]
[what comes|what's] [before|right before|just before|one before] {a}[?|]
[one|1] less than {a}[?|]
the [predecessor of|number before|whole number before|integer before|previous number before] {a}[?|]
# a - b | a=1-20 b=1-40 | neg
{a} - {b}[=|?|]
{a} minus {b}[?|]
the [thermometer|temperature] [fell|dropped|sank|went down] from {a} degrees by {b} degrees. [What does it read|What is it now|New temperature|Now][?|]
it [was|is] {a} degrees and [got|gets|it got|became] {b} degrees colder[.|;] [temperature now|what is the temperature|how cold is it|what is it now][?|]
[take|subtract] {b} from {a}[.|]
I had {a} dollars in my account and [paid|spent|was charged] {b} dollars. [What is the balance|Balance|My balance now][?|]
[an elevator|a diver|the lift] [starts|is] at level {a} and goes down {b} levels. [Which level|What level is it now|Level][?|]
# -a + b | a=1-30 b=1-30 | neg
[minus|negative] {a} plus {b}[?|]
-{a} + {b}[=|?|]
it [was|is] -{a} degrees [and|, then|but then|then it] [got|gets|it got|became] {b} degrees [warmer|hotter][.|;|,] [temperature now|what is the temperature|how warm is it|what is it now][?|]
[at night|in the morning|at dawn] it was -{a}°C[, by noon|; at noon|, later] it was {b} degrees [warmer|higher|hotter][.|;] [What was the temperature|Noon temperature|How warm was it][?|]
the temperature [rose|climbed|went up] [by |]{b} degrees from -{a}[.|] [What is it now|New temperature|Now][?|]
add {b} to [-|minus |negative ]{a}[.|]
[-|minus |negative ]{a} increased by {b}[?|]
from -{a} [go|move|climb|count] up {b}[.|?|]
add -{a} and {b}[.|]
the sum of -{a} and {b}[?|]
[the |]total of [-|minus |negative ]{a} and {b}[?|]
# -a - b | a=1-40 b=1-40 | neg
[minus|negative] {a} minus {b}[?|]
-{a} - {b}[=|?|]
it [was|is] -{a} degrees and [got|gets|it got|became] {b} degrees colder[.|;] [temperature now|what is the temperature|how cold is it|what is it now][?|]
[subtract|take] {b} from [-|minus |negative ]{a}[.|]
[-|minus |negative ]{a} decreased by {b}[?|]
# -a + -b | a=1-40 b=1-40 | neg
the sum of -{a} and -{b}[?|]
-{a} [plus|+] (-{b})[?|]
add -{a} and -{b}[.|]
[minus|negative] {a} plus [minus|negative] {b}[?|]
# -a * -b | a=2-12 b=2-12
[minus|negative] {a} times [minus|negative] {b}[?|]
-{a} [x|times|*] -{b}[?|=|]
(-{a})(-{b})[=|?|]
[the |]product of -{a} and -{b}[?|]
multiply -{a} by -{b}[.|]
# -a * b | a=2-12 b=2-12 | neg
[minus|negative] {a} times {b}[?|]
what is [minus|negative] {a} [times|multiplied by] {b}[?|]
-{a} [x|times|*] {b}[?|=|]
[the |]product of -{a} and {b}[?|]
# a * -b | a=2-12 b=2-12 | neg
{a} [x|times|*] -{b}[?|=|]
{a} times [minus|negative] {b}[?|]
multiply {a} by -{b}[.|]
# a / -b | b=2-12 c=1-12 a==b*c | neg
{a} divided by [minus|negative] {b}[?|]
{a} / [-{b}|(-{b})][?|=|]
# -a / b | b=2-12 c=1-12 a==b*c | neg
[minus|negative] {a} divided by {b}[?|]
-{a} / {b}[?|=|]
# -a * -b * -c | a=1-6 b=1-6 c=1-6 | neg
(-{a})*(-{b})*(-{c})[=|?|]
-{a} times -{b} times -{c}[?|]
# a - -b | a=1-60 b=1-60
{a} [minus|-] (-{b})[?|=|]
{a} minus [minus|negative] {b}[?|]
[subtract|take] [-|minus |negative ]{b} from {a}[.|]
[what's|what is] the difference between {a} and -{b}[?|]
# a + b | a=.1-50 b=.1-50 | dec
[how much|what] [is|do|are] {a} [and|plus] {b} [make|together|add up to|][?|]
{a} [plus|and|+] {b}[?|=| equals| please|]
add {a} [and|to] {b}[.|]
the sum of {a} and {b}[?|]
# a - b | b=.1-30 c=.1-30 a==b+c | dec
{a} [minus|less|take away|-] {b}[?|=| equals|]
[subtract|take] {b} from {a}[.|]
how much [more|bigger|larger] is {a} than {b}[?|]
the difference between {a} and {b}[?|]
# a - b | b=.1-9 a=10,20,50,100,5,1000 | dec
{a} [minus|less|take away|-] {b}[?|=| equals|]
what's left of {a} after [taking|you take|removing] {b}[?|]
# a * b | a=.1-30 b=2-20 | dec
{a} [times|x|*|multiplied by] {b}[?|=| equals|]
{b} [times|x|lots of] {a}[?|=|]
# a / b | b=2,4,5,8,10 c=.1-20 a==b*c | dec
{a} [divided by|/|over|÷|split by] {b}[?|=| equals|]
divide {a} by {b}[.|]
# b * a / 100 | a=1-100 b=10,20,30,40,50,60,80,100,120,150,200,250,300,400,500,600,800,1000 | dec
what is {a}% of {b}[?|]
{a}[%| percent| per cent] of {b}[?|=|]
[find|calculate|work out] {a} percent of {b}[.|]
[how much|what] is {a} percent of {b}[?|]
of {b}, {a} percent [is|are][?| how much?]
{a} per cent of {b} [is|makes|equals|comes to][?|]
[take|give me|I want|I need] {a}% of {b}[.|]
{b} [people|students|votes|seats|apples|cars|pages] and {a}% [of them |]are [red|new|missing|late|broken|sold|gone|ripe|full|mine]. [How many|How many is that|How many are they][?|]
{a}% of [the|a class of|a group of|my] {b} [people|students|dollars|things] is how [many|much][?|]
# b * a / 100 | a=.1-30 b=10,20,40,50,80,100,200,400,500,1000 | dec
what is {a}% of {b}[?|]
{a}[%| percent] of {b}[?|=|]
[find|calculate|work out] {a} percent of {b}[.|]
# a - b | b=1-900 c=1-900 a==b+c
I [start with|have|begin with|am given|got] {a} and [spend|use|lose|give away|pay|waste] {b}[.|;|,] [Remainder|The rest|What remains|What is the rest|Leftover|How much is left|what's left over][?|]
{a} [down|lowered] by {b}[?|]
{a} [down|minus|go down] {b}[?|]
how much less than {a} is {b}[?|]
{a} [subtract|deduct|take off] {b}[?|]
[take|remove|subtract] {b} away from {a}[.|?|]
{b} [from|off|out of] {a}[?|]
{a} [had|gets|is given] {b} [cut|chopped|knocked] off[?|]
[what's|what is] {a} [once|when|after] {b} [is|are] gone[?|]
[total|budget|limit|goal] {a}, [used|spent|reached|done] {b}[.|,|;|:] [left|remaining|rest|still open|to go][?|]
what would {a} be [without|if it lost|after losing|if you removed] {b}[?|]
# a + b | a=1-3000 b=1-3000
what would {b} more than {a} be[?|]
[grand total|the total|subtotal|overall sum|sum total] [of|for] {a} and {b}[?|]
[plus|sum|total|add]: {a}, {b}
if I [combine|merge|join] {a} with {b}, what's the [figure|number|total|result][?|]
{a} up by {b}[?|]
{b} [on top of|besides|in addition to|added onto] {a}[?|]
can [u|you|we] add {b} to {a}[?|]
{a} and another {b}[?|]
# a / b | b=2,3,4,5,6,8,10 c=.1-9 a==b*c | dec
[cut|split|divide|share|break] {a} [into|in|by|among] {b}[.|?|]
{a} [shared|split|cut] [into|in|among|by] {b}[?|]
# a / 2 | a=.1-30 | dec
half of {a}[?|]
[what is|what's|how much is|] half of {a}[?|]
[halve|take half of] {a}[.|]
{a} halved[?|]
# a / 2 | a=1-99 | dec
half of {a}[?|]
{a} halved[?|]
[halve|take half of] {a}[.|]
# (a + b) / 2 | a=1-60 d=1-60 b==a+2*d
half the sum of {a} and {b}[?|]
half of {a} plus {b} in brackets, so ({a} + {b}) / 2[?|]
add {a} and {b}, [then |]take half[.|]
# (a - b) / 2 | b=1-60 d=1-60 a==b+2*d
half the difference [of|between] {a} and {b}[?|]
# (a + b) * 2 | a=1-60 b=1-60
[twice|double|two times] the sum of {a} and {b}[?|]
add {a} and {b}, [then |]double[ it|].
# (a - b) * 2 | b=1-60 d=1-60 a==b+d
[twice|double] the difference [of|between] {a} and {b}[?|]
# (a + b) * 3 | a=1-30 b=1-30
[three times|triple|thrice] the sum of {a} and {b}[?|]
# a * a + b | a=2-12 b=1-30
square {a}, then add {b}[.|]
{a} squared, then plus {b}[?|]
{a} times itself plus {b}[?|]
# a * a - b | a=4-12 b=1-15
square {a}, then [subtract|take off|take away] {b}[.|]
{a} times itself minus {b}[?|]
# a * a | a=2-20
{a} times itself[?|]
{a} [multiplied by|times] itself[ is|][?|]
multiply {a} by itself[.|]
# -a * -a | a=1-12
(-{a})^2[=|?|]
(-{a})[²|**2| squared][?|]
the square of [-|minus |negative ]{a}[?|]
[-|minus |negative ]{a} times itself[?|]
# -a * 2 | a=1-60 | neg
[double|twice] [-|minus |negative ]{a}[?|]
# b * a / 100 + c | a=10,20,25,50,5,75 b=20,40,60,80,100,120,200 c=1-50 | dec
{a}% of {b} plus {c}[?|]
{a} percent of {b}[,|] [then add|and add|increased by] {c}[.|?|]
# b * a / 100 - c | a=25,50,75 b=40,60,80,100,120,200 c=1-10 | dec
{a}% of {b} minus {c}[?|]
# b * a / 100 | a=10,20,25,30,40,50,60,70,75,80,90,5 b=20,40,60,80,100,120,200,300,400,500
a [class|school|club|team|group|village] of {b} has {a}% [girls|boys|adults|vegetarians|swimmers|members over 50]. How many [girls|boys|of them|people|is that][?|]
{a}% of the {b} [students|cars|seats|apples|pages|houses|dogs|answers] are [red|new|free|bad|old|right|wrong|wet]. How many[?| is that?| are they?]
of {b} [people|tickets|rooms|emails|days] {a} percent are [here|sold|booked|spam|rainy][.|;|,] [how many|that's how many|which is how many][?|]
a [test|exam] has {b} questions and I got {a}% right. How many [is that|right answers|did I get right][?|]
# a * 100 / b | b=10,20,25,40,50,60,75,80,5 c=1-20 a==b*c
{a} is {b}% of [what|what number|which number|how much][?|]
{b}% of [which number|what number|what] [is|gives|equals|makes] {a}[?|]
if {b} percent of a number is {a}, what's the number[?|]
{b}% of [my money|the students|the price|all seats] is {a}. How [much|many] is [all|the whole|100%|everything][?|]
# (b - a) / a * 100 | a=10,20,40,50,80,100,200,400 c=1-a b==a+c | dec
the [population|price|number|amount] [rose|grew|went up|increased] from {a} to {b}[,|;|.] [percentage increase|by how many percent|what percent is that|percent growth|increase in percent][?|]
from {a} to {b} is [how many percent more|what percentage increase|an increase of how many percent][?|]
# (a + b) / 2 | a=.1-20 b=.1-20 | dec
[average|mean|the average|the mean] of {a} and {b}[?|]
# a * b | a=.1-3 b=.1-3 | dec
[multiply|times] {a} [by|and] {b}[.|]
{a} [times|x|*|by] {b}[?|=|]
# a * b | a=2-15 b=2-15
{a} {bs}[?|=| make?| is?| are?| equals what?]
[what do|how much do|what are|what is] {a} {bs} [make|give|equal|come to|add up to|][?|]
{a} times {bs}[?|]
[add up|total|the sum of] {a} {bs}[.|?|]
# a / b | b=2-15 c=2-12 a==b*c
how many {bs} [are there |are |make |go into |fit into |fit |]in[to|] {a}[?|]
how many {bs} [make|make up|add up to|give] {a}[?|]
# a - b | b=1-90 c=1-90 a==b+c
how far is {b} [short of|below|under|from|away from] {a}[?|]
how much is {b} short of {a}[?|]
{b} is how [far|much] [below|under|less than|short of] {a}[?|]
[what|how much] [is missing|do I lack|do I need] [from {b} |when I have {b} ]to [make|reach|get to] {a}[?|]
what with {b} makes {a}[?|]
# -a - b | a=1-30 b=1-30 | neg
{b} less than -{a}[?|]
what's {b} less than [minus |negative |-]{a}[?|]
[what number|which number] is {b} [below|under|smaller than|lower than] -{a}[?|]
go down {b} from -{a}[.|?|]
# -a + b | a=1-30 b=1-30 | neg
{b} more than -{a}[?|]
what's {b} more than [minus |negative |-]{a}[?|]
[what number|which number] is {b} [above|greater than|higher than] -{a}[?|]
go up {b} from -{a}[.|?|]
# d = a * a; e = d - b; e / c | c=2-9 f=1-12 a=2-12 b==a*a-c*f
take {a}, square it, subtract {b}, divide by {c}[.|?|]
square {a}, take away {b}, then divide by {c}[.|?|]
# d = a * a; e = d + b; e / c | c=2-9 f=1-20 a=2-12 b==c*f-a*a
take {a}, square it, add {b}, divide by {c}[.|?|]
# d = a - b; d * c | b=1-20 f=1-20 a==b+f c=2-9
take {a}, subtract {b}, [then |]multiply by {c}[.|?|]
# d = a / b; e = d + c; e * 2 | b=2-9 f=1-12 a==b*f c=1-20
take {a}, divide by {b}, add {c}, double it[.|?|]
{a} divided by {b}, plus {c}, [then |]doubled[?|]
# d = a + b; e = d / 2; e - c | a=1-30 f=5-30 b==2*f-a c=1-5
take {a}, add {b}, halve it, [then |]subtract {c}[.|?|]
# d = a * a; e = d * a; f = b * b; e + f | a=2-6 b=2-12
[the |]cube of {a} plus the square of {b}[?|]
{a} cubed plus {b} squared[?|]
{a}^3 + {b}^2[?|=|]
# d = a * a; e = d * a; f = b * b; e - f | a=3-6 b=1-5
{a} cubed minus {b} squared[?|]
{a}^3 - {b}^2[?|=|]
# d = b * b; a * d | a=2-9 b=2-9
{a} times {b} squared[?|]
{a} * {b}^2[?|=|]
{a}*{b}[²|^2|**2][?|=|]
"""

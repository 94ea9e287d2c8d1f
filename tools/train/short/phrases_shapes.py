"""Wordings of shapes, percentages and parts: fences, tiles, angles, boxes, discounts, tips, what is left, the whole of a part."""

SHAPES = """
# d = a + b; d * 2 | a=3-40 b=2-30
how much [fence|wire|edging|hedge] do [I|we] need [around|for|to go around] a [garden|yard|lawn|bed] of {a} m by {b} m[?|]
[fence|wire|ribbon|frame|lace] for a {a} [by|x] {b} [garden|field|picture|cloth]: how [much|long][?|]
[one|a] lap around a {a} by {b} m [field|hall|park|court] is how [long|many meters][?|]
a [picture|mirror|door|window] is {a} cm high and {b} cm wide. How long [is|must] the frame[ be|][?|]
{x} walks once around a {a} m by {b} m [park|field|pool|school]. [How far|How many meters|Distance][?|]
[the|my] [rug|table|poster|board] measures {a} by {b}; [length of tape|how much tape|how much trim] [all around|for the edge|around it][?|]
I want to put lights [all |]around a {a} m by {b} m [roof|terrace|window]. How many meters[?| of lights?]
length {a}, width {b}[: |, |. ][distance around|perimeter|circumference|all four sides together][?|]
four sides, two of {a} and two of {b}. [Perimeter|All together|Sum of the sides][?|]
[opposite sides are equal|a rectangle]: {a} and {b}. [The way around|Perimeter][?|]
# d = a / 2; d - b | b=2-20 e=2-20 a==2*(b+e)
the perimeter of a rectangle is {a}[ cm| m|]. One side [measures|is] {b}[ cm| m|]. [The other side|What is the other side|How long is the other][?|]
[fence|rope] of {a} m goes around a [field|garden] that is {b} m [wide|long]. [How long is the other side|The other side|What's the other side][?|]
rectangle[: |, ]perimeter {a}, one side {b}[: |, |. ][other side|the other side][?|]
it is {a} m around a [pool|hall|yard] and {b} m along one side. How long is the [next|adjacent|other] side[?|]
# d = a - b; e = d - b; e / 2 | b=2-20 e=2-20 a==2*(b+e)
a rectangle's sides add up to {a}. Two of them are {b} each. How long are the other two each[?|]
# a * b | a=2-30 b=2-25
rectangle {a} by {b}[, |: |. ][area|area?|how big|square units][?|]
[1:carpet|lino|grass|paint] for [1:a room|a floor|a lawn|a wall] of {a} by {b} m[: |, |. ][how many square meters|square meters|how much][?|]
[how many|number of] square [meters|feet|cm|inches] [are in|has|does] a [room|sheet|yard|wall] of {a} by {b}[ have|][?|]
a [sheet|screen|flag|garden] {a} wide and {b} high covers what area[?|]
what does a {a} x {b} [rug|tarp|map|lawn] cover[?|]
{a} squares long and {b} squares wide[: |, ][how many squares|squares in all|total squares][?|]
a [chocolate bar|board|grid|quilt|mosaic] has {a} by {b} [squares|pieces|fields]. How many[?| in all?| altogether?]
[parallelogram|rectangle], base {a}, height {b}[: |. |, ]area[?|]
[length times width|the area]: {a} m, {b} m[?| = ?]
how many 1 m by 1 m [tiles|squares|slabs] cover a [floor|terrace|path] of {a} m by {b} m[?|]
a [1:wall|floor|field] {a} m long and {b} m [1:high|wide|wide] must be [1:painted|covered|mown]. How many square meters[?|]
# a / b | b=2-20 c=2-20 a==b*c
[area|the area] {a}, one side {b}[: |, |. ][other side|the other side|the second side][?|]
the area of a rectangle is {a} and its [length|width] is {b}. [The other side|How long is the other side][?|]
a [rug|field|garden|wall] of {a} square [meters|feet] is {b} [meters|feet] [wide|long]. How [long|wide] is it the other way[?|]
a room has {a} square meters. One wall is {b} m long. [The other wall|How long is the other one][?|]
{a} tiles are [laid|put] in {b} rows. How many [in a|per|in each] row[?|]
[what|which] width gives an area of {a} with a length of {b}[?|]
{a} square cm, height {b} cm, [width|base] of the rectangle[?|]
# d = a * b; d * c | a=2-15 b=2-12 c=2-20
my [room|floor|kitchen] is {a} x {b} m. Carpet [costs|is] ${c} per square meter. [What do I pay|Total|Cost|How much][?|]
[tiles|wood|turf|paint] at ${c} a square meter for {a} by {b} m[: |, |. ][cost|price|total|how much][?|]
it costs ${c} to [paint|clean|tile|seed] one square meter. [A wall|A floor|An area] of {a} by {b} m [costs|is][?| how much?]
{a} m by {b} m at {c} [seeds|screws|plants|tiles] per square meter[: |. |, ]how many[?|]
a box {a} long, {b} wide, {c} high[: |, |. ][volume|how much fits in|how many unit cubes][?|]
[aquarium|crate|pool|room] {a} x {b} x {c}[: |, |. ][volume|how many cubic units|content][?|]
how many cubic [cm|meters|feet|inches] [fit into|fit inside|are in|has|does] a box of {a} by {b} by {c}[ hold|][?|]
a [1:pool|pit|trench|tank] is {a} m long, {b} m wide and {c} m deep. How many cubic meters[ of [1:water|earth|soil|oil]|] [is that|does it take|are in it][?|]
[small|little|1 cm|unit] cubes are stacked {a} long, {b} wide, {c} high. How many[?| cubes?| are there?]
a block has {a} layers of {b} by {c} cubes. [Cubes|How many cubes|How many in all][?|]
{a} layers, each with {b} rows of {c} [cans|boxes|bricks][: |. |, ][how many|total|how many in all][?|]
# d = a + b; e = d * 2; e * c | a=3-20 b=2-15 c=2-12
a [garden|field|yard] is {a} m by {b} m. [Fence|Wire|Edging] costs ${c} a meter. [What does it cost to go around|Total cost|What does it cost all around][?|]
fencing a {a} by {b} m [field|lawn] at ${c} a meter costs[?| how much?]
{x} [runs|walks|jogs] around a {a} m by {b} m [field|park|block] {c} times. [How far|How many meters|Distance][?|]
{c} [laps|rounds] of a {a} by {b} m [court|pool|hall][: |, |. ][how far|how many meters|total distance][?|]
{c} [equal|identical] frames of {a} by {b} cm, how much [wood|wire] in all[?|]
# d = a + b; e = d * 2; e - c | a=6-40 b=5-30 c=1-5
a [garden|yard] of {a} m by {b} m gets a fence with a gap of {c} m for the gate. [How much fence|Meters of fence|Length of the fence][?|]
around a {a} by {b} m room runs a skirting, except at the {c} m door. How [long is it|many meters][?|]
[fence|hedge] around {a} by {b} m, but not at the {c} m [entrance|gate][: |. ]how [much|long][?|]
# d = b * 2; a + d | a=5-60 b=3-40
a garden is {a} m long and {b} m wide; one long side is a wall. How much fence for the other three sides[?|]
three sides need a fence: {a}, {b} and {b} m. [Total|How much|How many meters][?|]
[the|a] triangle has two sides of {b} and one of {a}. [Perimeter|Its perimeter|Distance around][?|]
isosceles triangle, legs {b}, base {a}[: |, |. ]perimeter[?|]
# d = a * b; e = c * f; d - e | c=1-6 f=1-6 g=1-20 h=1-20 a==c+g b==f+h
a [garden|yard|wall|park] of {a} by {b} m has a [pond|pool|window|house] of {c} by {f} m. [How much is left|Area of the rest|Area without it][?|]
from a {a} by {b} sheet a {c} by {f} piece is cut. [What area is left|Area left|Remaining area][?|]
{a} by {b} minus {c} by {f}[: |, ][area|what area][?|]
a [door|hole|window] of {c} by {f} in a wall of {a} by {b}. How much wall is left[?|]
# d = a * b; e = c * f; d + e | a=2-12 b=2-12 c=2-12 f=2-12
two rooms, {a} by {b} and {c} by {f} m. [Total area|How many square meters in all|Area of both|Together][?|]
an L is made of a {a} by {b} and a {c} by {f} rectangle. [Its area|Area][?|]
I paint a wall of {a} by {b} and one of {c} by {f}. [Total area|Square meters|How much in all][?|]
# d = a * a; d * 6 | a=2-12
[surface|surface area] of a cube with [edge|side] {a}[?|]
a cube [has|with] edges of {a} [cm|m]. [All six faces together|Its surface|Surface area|How much paper covers it][?|]
{a} by {a} is each of the 6 faces of a [die|cube|box]. [Total area|Surface][?|]
# d = a * a; d * a | a=2-10
a cube has edges of {a} [cm|m|]. [Volume|How much fits in|Its volume][?|]
[cube|cubic box|die], [edge|side] {a}[: |, |. ]volume[?|]
{a} x {a} x {a} cubes in a big cube, how many[?|]
a cube {a} [cm|units] [high|wide] holds how many [unit cubes|cubic cm|little cubes][?|]
# a * 12 | a=2-30
[edges|total edge length|wire] [of|for] a cube with [side|edge] {a}[?| all edges together?]
a wire cube has edges of {a} cm. How much wire[?| in all?]
# a / 12 | b=2-12 a==b*12
{a} cm of wire [make|are bent to|form] a cube. How long is each edge[?|]
# a * 4 | a=2-80
[perimeter|the way around]: square, side {a}[?|]
perimeter of a square with side {a}[?|]
how much [1:fence|rope|tape|ribbon] for a square [1:garden|pool|box|cloth] of {a} [1:m|m|cm|cm] a side[?|]
a square [of side|with edges of] {a}: [all four sides|distance around|perimeter][?|]
{x} walks around a square [block|field|yard], each side {a} m. How far[?|]
rhombus with side {a}[: |, |. ]perimeter[?|]
# a / 4 | b=2-60 a==b*4
how long is the side of a square [whose|with a] perimeter [is|of] {a}[ cm| m|]?
a [rope|wire|string] of {a} cm is [bent to|laid as|made into] a square. [How long is each side|Each side|Side length][?|]
{a} m of fence [enclose|go around] a square. [One side|How long is one side|Length of a side][?|]
square, perimeter {a}[: |, |. ]side[?|]
{a} is the perimeter of a [square|rhombus]. [The side|Its side|How long is a side][?|]
# a / 3 | b=2-60 a==b*3
a [rope|wire|string] of {a} cm is [bent to|laid as|made into] an equilateral triangle. [How long is each side|Each side|Side length][?|]
equilateral triangle, perimeter {a}[: |, |. ]side[?|]
all three sides are equal, the perimeter is {a}. [One side|How long is a side][?|]
# a * 3 | a=2-60
[perimeter of an|an] equilateral triangle with side {a}[?|: perimeter?]
an equilateral triangle has sides of {a}. [Perimeter|How far around|Its perimeter][?|]
# a / 6 | b=2-40 a==b*6
regular hexagon, perimeter {a}. [Side|One side|How long is a side][?|]
# d = a * b; d / 2 | a=2-30 c=1-15 b==2*c
area of [a |]triangle[, |: | with ]base {a}[, | and |][height|high|h] {b}[?|]
triangle[: |, ]{a} wide, {b} high[. |, |: ][area|its area][?|]
half of a {a} by {b} rectangle[, that is a triangle of what area|, what area|: area][?|]
a [sail|roof|sign|flag] is a triangle, {a} [m|ft] at the base, {b} high. [Area|How many square units|How big][?|]
right triangle, legs {a} and {b}[. |, |: ]area[?|]
# d = a * 2; d / b | b=2-12 c=2-12 a==b*c
a triangle has an area of {a} and a base of {b}. [Height|How high is it|Its height][?|]
# d = a + b; 180 - d | a=20-80 b=20-80
two angles of a triangle are {a} and {b} degrees. third[?|]
triangle[: |, ]{a}° and {b}°, [third angle|the last one|and the third|missing angle][?|]
in a triangle [two angles are|there are] {a}° and {b}°. [What's left|What is left for the third|The third has][?|]
angles: {a}, {b}, ? ([triangle|in a triangle])
[if|when] a triangle has a {a} degree and a {b} degree angle, the third [is|has][?| how many degrees?]
[the|] angle x in a triangle with {a}° and {b}°[: x|. x][?| = ?]
# 180 - a | a=10-170
[two angles on a straight line|a straight angle is split in two|supplementary angles]: one is {a}°, the other[?| is?]
what angle [makes|completes] {a}° to [a straight line|180°|a straight angle][?|]
supplement of {a}[°| degrees][?|]
# 90 - a | a=5-85
one angle of a right triangle is {a} degrees. [The other acute one|How big is the other acute angle|The third one][?|]
a right angle is [split|cut] in two; one part is {a}°. [The other|How big is the other][?|]
complement of {a}[°| degrees][?|]
what angle [makes|completes] {a}° to a right angle[?|]
right triangle, one angle {a}°. [The third angle|The other one besides the right angle|And the other][?|]
# 360 - a | a=20-340
what [is left of|remains of] a full turn after {a}[°| degrees][?|]
I turn {a} degrees. How many more [to|until I] [finish a full turn|face the same way|get all around][?|]
a pie slice has an angle of {a}°. How many degrees for the rest[?|]
# d = a + b; e = d + c; 360 - e | a=50-120 b=50-120 c=50-110
three angles of a [quadrilateral|four-sided shape|quadrangle] are {a}, {b} and {c} degrees. [The fourth|What is the fourth|How big is the fourth][?|]
quadrilateral: {a}°, {b}°, {c}°, [?|the last|x = ?]
# 360 / a | a=3,4,5,6,8,9,10,12,18,20
a [pizza|cake|pie] is cut into {a} equal slices. [What angle has each|Angle of a slice|How many degrees has a slice][?|]
a [full turn|circle] in {a} equal parts[: |, |. ][how many degrees each|degrees per part|angle of one][?|]
# d = 180 - a; d / 2 | b=10-80 a==180-2*b
the top angle of an isosceles triangle is {a}°. [The base angles|How big is each base angle|Each of the two others][?|]
isosceles triangle, apex {a} degrees, [base angle|each base angle][?|]
# d = 2 * a; 180 - d | a=20-85
the two base angles of an isosceles triangle are {a}° each. [The top angle|How big is the third|The angle at the top][?|]
two equal angles of {a} degrees in a triangle; [the third|the remaining angle][?|]
# 180 / 3 | a=1-2
[how big is an angle of an|angle in an|each angle of an] equilateral triangle[?| in degrees?]
all three angles of a triangle are equal. How many degrees each[?|]
# 90 / 2 | a=1-2
half a right angle[?| in degrees?| is how many degrees?]
a right angle [cut in half|halved|bisected][: |, ]how many degrees[?|]
# 360 / 2 | a=1-2
half a full turn [is|in] [how many |]degrees[?|]
# 360 / 4 | a=1-2
a quarter turn [is|in] [how many |]degrees[?|]
# 2 * a | a=2-60
a circle has radius {a}. [What's its diameter|diameter|How wide is it|Twice that is the diameter, so][?|]
[wheel|coin|plate|circle] with a radius of {a} [cm|m], how [wide|big across][?|]
[1:radius|r] {a}, [1:diameter|d][?| = ?]
# a / 2 | b=2-60 a==2*b
a [circle|wheel|plate] is {a} [cm|m] across. [Radius|Its radius|How far from the center to the edge][?|]
[1:diameter|d] {a}, [1:radius|r][?| = ?]
# a * b / c | a=2-12 b=2-12 c=2-24 e==a*b/c
{a} by {b} has the same area as {c} by [what|?|how much][?|]
a {a} by {b} rectangle and one of width {c} have the same area. How long is the second[?|]
# d = a / c; e = b / f; d * e | c=2-5 f=2-5 g=2-8 h=2-8 a==c*g b==f*h
how many {c} by {f} [tiles|cards|pieces|slabs] [cover|fit on|are needed for] [a floor|a wall|a board|an area] of {a} by {b}[?|]
how many {c} m by {f} m [tiles|mats|plots] cover a [floor|field] of {a} m by {b} m[?|]
[a floor|a wall|an area] is {a} by {b}, [a tile|a panel|a slab] {c} by {f}. How many [are needed|do I need|fit][?|]
[tiles|panels] {c} by {f}, [floor|wall] {a} by {b}[: |, |. ][how many|number needed][?|]
# d = a / c; d + 1 | c=2-10 e=3-15 a==c*e
[1:posts|trees|lamps|flags] every {c} m along a {a} m [fence|road|path], also at both ends. How many[?| [1]?]
a {a} m [fence|road|street] has a [post|tree|lamp] at the start and then every {c} m up to the end. How many[?|]
one [post|pole|tree] every {c} meters on {a} meters, first and last included[: |. ]how many[?|]
# a / c | c=2-10 e=3-15 a==c*e
around a [pond|field|circle|lake] of {a} m there is a [tree|post|lamp] every {c} m. How many[?|]
# d = a / b; d - 1 | b=2-10 e=3-12 a==b*e
how many cuts [make|turn|to turn|does it take to cut] a {a} cm [rod|board|rope] into pieces of {b} cm[?|]
# a - 1 | a=3-20
how many cuts [make|give|to get|for] {a} pieces [of|from] [a|one] [rope|log|sausage|stick][?|]
a [log|rope|stick] is sawn into {a} pieces. [Cuts|How many cuts|How often do I saw][?|]
# a / b | b=10,20,25,50 c=2-20 a==b*c
[1:a can|one liter|a bucket] of paint covers {b} square meters. How many [1:cans|liters|buckets] for {a}[?| square meters?]
# d = a * b; d / c | a=2-12 b=2-12 c=2-12 e==a*b/c
a [1:room|wall|field] of {a} by {b} m; one [2:bag|can|roll] is enough for {c} square meters. How many [2]s [are needed|do I need][?|]
# d = a * b; c / d | a=2-9 b=2-9 e=2-12 c==a*b*e
a box of volume {c} has a base of {a} by {b}. [Its height|How high is it|Height][?|]
{c} cubic [cm|meters] in a [tank|box] with a base of {a} by {b}. How [high|deep][?|]
volume {c}, length {a}, width {b}[: |, |. ][height|the third side][?|]
# d = a * 2; e = d + a; e * 2 | a=2-30
a rectangle is twice as long as [it is |]wide; it is {a} wide. [Perimeter|What is its perimeter][?|]
width {a}, length double that[: |, |. ]perimeter[?|]
# d = a * 2; a * d | a=2-20
a [room|field|rectangle] is {a} m wide and twice as long. [Area|What is its area|How many square meters][?|]
width {a}, length double that[: |, |. ]area[?|]
# d = a + b; a * d | a=2-20 b=1-10
a rectangle is {a} wide and {b} longer than wide. [Area|Its area|What's the area][?|]
one side is {a}, the other {b} more[: |, |. ]area[ of the rectangle|][?|]
# d = a + b; e = a + d; e * 2 | a=2-30 b=1-15
a rectangle is {a} wide and {b} longer than wide. [Perimeter|Its perimeter|How far around][?|]
one side is {a}, the other {b} more[: |, |. ]perimeter[ of the rectangle|][?|]
# d = a - b; d - c | b=2-20 c=2-20 e=2-20 a==b+c+e
the perimeter of a triangle is {a}; two sides are {b} and {c}. [The third|How long is the third|The third side][?|]
triangle, perimeter {a}, sides {b} and {c}, [third side|the last side|?]
# a * b / 100 | a=20,40,50,60,80,100,120,150,200,250,300,400,500 b=5,10,15,20,25,30,40,50,60,70,75,80,90
[bill|the bill|dinner] {a}[ dollars|], tip {b}%. [What's the tip|How much is the tip|Tip][?|]
tip of {b}% on {a} [dollars|bucks|euros|][: |, ][how much is the tip|the tip alone|just the tip][?|]
how much [off|do I save|less] with {b}% on {a}[?| dollars?]
[commission|fee|interest|a bonus] of {b}% on {a}[: |, |. ][how much|amount][?|]
[salt|sugar|fat|water] makes up {b}% of {a} g. How many grams[?| is that?]
{a} [people|voters|pupils|guests], {b}% [of them |][come|said yes|wear glasses|are left-handed]. How many[?| is that?| people?]
the [1:town|school|firm] has {a} [1:people|students|workers], {b}% of them [new|women|part-time]. How many are that[?|]
{b} out of every hundred are [red|broken|late]. How many of {a}[?|]
[they give|there is] {b}% off. What's the discount on {a} [dollars|euros][?|]
{x} [saves|donates|invests|spends] {b}% of {his} {a} [dollars|euros]. How much[?| is that?]
battery: {b}% of {a} [mAh|Wh][?| is how much?]
of my {a} [songs|photos|books] {b}% are [old|good|new], that's[?| how many?]
{b} percent [from|out of|off of] {a} [is|makes|are]?
# d = a * b; e = d / 100; a - e | a=20,40,50,60,80,100,120,200,250,300,400,500 b=5,10,15,20,25,30,40,50,60,70,75,80,90
a [jacket|phone|desk|tent] for ${a} is {b}% off. [New price|What do I pay|Now|Price now|What's it now][?|]
{b}% off ${a}[: |, |. ][new price|I pay|price|final price|what do I pay][?|]
[sale|today only]: {b} percent [off|less] on everything. [What is|How much is|What do I pay for] a ${a} [coat|chair|ring][?|]
the [shop|store] takes {b}% off. A {a} dollar [lamp|watch|game] [is then|then costs|costs][?| how much?]
{x} has read {b}% of a {a} page book. [How many pages are left|Pages left|How much is left to read|What's left][?|]
a town had {a} [people|houses], now {b} % fewer. How many [now|live there now|are there now][?|]
{b}% of {a} [seats|rooms|tickets|eggs] are [taken|sold|gone]. [How many are not|Left|How many are left|The rest is how many][?|]
of {a} [kids|guests|workers], {b}% are [1:ill|absent|away]. How many are [1:not|present|not away][?|]
{x} pays {b}% tax on {a}. [What remains|What does {he} keep|Net|What's left][?|]
the [weight|price|number] of {a} shrinks by {b}%. [Now|New weight|What is it then][?|]
{a} ml of [juice|milk|syrup], {b}% is [drunk|used]. How many ml [are left|remain][?|]
[lost|spent|gave away] {b}% of {a}, [still have how much|what's left|how much is left][?|]
{b}% of the {a} [trees|plants|fish] died. [Survivors|How many live|How many are alive][?|]
# d = a * b; e = d / 100; a + e | a=20,40,50,60,80,100,120,200,250,300,400,500,1000,2000 b=5,10,15,20,25,30,40,50
tip {b}% on ${a} total[?|: what do I pay in all?]
[salary|rent|price|pay] {a}, [raise|increase|plus] {b}%. [New|New one|Now|What is it now][?|]
what do I pay for a {a} [euro|dollar] [phone|meal|room] plus {b}% [VAT|tax|service][?|]
net price {a}, tax {b}%[: |, |. ][gross|price with tax|what do I pay|total][?|]
{a} [kids|members|trees] last year, {b}% more this year. [This year|How many now|How many this year][?|]
{b} percent more than {a}[?| is?]
my [money|deposit|capital] of {a} grows {b}%. [How much is it now|How much then|What do I have then][?|]
{y} has {a}. {x} has {b}% more. How much has {x}[?|]
a {a} g pack with {b}% extra [has|weighs][?| how much?]
a {b}% raise on {a} [makes|gives|is then][?| how much in all?]
# d = a / b; d * 100 | b=4,5,8,10,16,20,25,40,50,80,200 c=1-b a==c | dec
{a} of the {b} kids [are absent|are girls|have a dog|came late]. What [percentage|percent] [is that|of the kids is that][?|]
{a} [wins|hits|goals|rainy days] out of {b}. [Percent|As a percentage|Rate in percent|How many percent][?|]
what percent of {b} [is|are] {a}[?|]
{x} answered {a} of {b} [right|correctly]. [Score in percent|What percent|Percent|Grade in percent][?|]
{a} in {b} [is|makes] what percent[?|]
[from|of] {b} [1:eggs|seeds|cups], {a} [1:broke|failed|fell]. [Percentage|Percent of [1] that [1:broke|failed|fell]|What percent][?|]
{a} dollars of a {b} dollar [bill|budget] [are|is] [what|how many] percent[?|]
if {b} is 100%, [what percent is|how many percent are] {a}[?|]
# d = b - a; e = d / b; e * 100 | b=4,5,10,20,25,40,50,80,200 a=1-b | dec
{a} of the {b} kids are absent. what percent [came|is there|is present|are present][?|]
{a} out of {b} [1:failed|lost|were sold|broke]. What percent [1:did not|won|was not|is whole][?|]
of {b} [seats|rooms|places] {a} are [taken|full|booked]. [What percent is free|How many percent are free|Percent free][?|]
{x} spent {a} of {his} {b} dollars. What percent is left[?|]
# 100 - a - b | a=5-45 b=5-45
{a}% [1:walk|like tea|voted A] and {b}% [1:take the bus|like coffee|voted B]. The rest [1:drive|likes neither|voted C]. What percent[?| is that?]
{a}% [1:red|wood|fat], {b}% [1:blue|steel|sugar], the rest [1:white|glass|water][: |. |, ][how many percent|percent of the rest|what percent][?|]
# 100 - a | a=2-98
{a}% [are boys|is done|is water|said yes|is sold], the rest [is|in percent is|is how many percent][?|]
if {a}% [1:passed|are girls|is gone], what percent [1:did not|are not|is left][?|]
# d = a - b; e = d / a; e * 100 | a=10,20,40,50,80,100,200,400 b=1-a | dec
a {one} is down from {a} to {b}. [Percent off|By how many percent|Discount in percent|What percent less][?|]
{a} became {b}[: |, |. ][by what percent did it fall|percent decrease|drop in percent][?|]
what discount in percent [turns|brings] {a} [into|down to] {b}[?|]
{b} instead of {a}[: |, ][percent saved|how many percent cheaper|what percent off][?|]
# d = b - a; e = d / a; e * 100 | a=10,20,25,40,50,80,100,200 c=1-a b==a+c | dec
price rose from {a} to {b}, by how many percent[?|]
{a} became {b}[: |, |. ][by what percent did it grow|percent increase|rise in percent|growth in percent][?|]
bought at {a}, sold at {b}. [Profit in percent|Percent profit|How many percent gain][?|]
{a} last [1:year|week], {b} this [1][: |, |. ][growth in percent|percent more|how many percent more][?|]
how many percent more is {b} than {a}[?|]
# d = a * 100; d / b | b=5,10,20,25,30,40,50,60,75,80 c=1-30 a==b*c/5
{a} is {b} percent of [what|which number|how much][?|]
{b}% [are|is] {a}. [The whole|What's everything|100%|The total|And 100%][?|]
{a} [kids|pages|dollars|km], that's {b}% of all. [How many in all|All together|The total|The whole][?|]
{x} has [read|done|paid|saved] {a}, which is {b}%. [What's the whole|How much in all|The total][?|]
if {b}% of [the price|the class|the money|a number] is {a}, [what is the full amount|what is 100%|how much is all of it][?|]
{b}% [came|were sold|are red], namely {a}. [How many are there in all|Total|How many in total][?|]
the tip was {a}, that's {b}% of the bill. [The bill|How much was the bill][?|]
the discount of {b}% saved me {a}. [Full price|What was the price|Price before][?|]
# d = 100 - b; e = a * 100; e / d | b=10,20,25,40,50,60,75,80 c=1-20 a==(100-b)*c
after {b}% off I paid {a} dollars. [What was the original price|Original price|Price before|It cost before][?|]
{b}% off makes it {a}. [Before|Original|What was it|What was the old price][?|]
{a} [kids|pages|seats|liters] are left after {b}% are gone. [How many were there|At first there were|Before][?|]
{b}% less than [a number|some number|x] is {a}. [The number|What is it|x][?|]
a [sale|reduced] price of {a} at minus {b}%[: |, |. ][old price|full price|regular price][?|]
# d = 100 + b; e = a * 100; e / d | b=5,10,20,25,50 c=1-20 a==(100+b)*c
[rent|the price|pay] is {a} after [a rise|an increase|a raise] of {b}%. [Before|What was it before|Old value][?|]
{b}% more than [a number|some number|x] is {a}. [The number|What is it|x][?|]
with {b}% tax it's {a}. [Without|Net price|Price without tax][?|]
# d = a * b; e = d / 100; f = a + e; f / c | a=20,40,50,60,80,100,120,200 b=10,15,20,25,50 c=2-8
a ${a} [bill|meal], {b}% tip, [split|shared] by {c}. [Each pays|How much each|What does each pay][?|]
{c} friends share a bill of ${a} plus {b}% tip. [Each pays|How much each|What does each pay][?|]
# d = a * b; e = d / 100; f = a - e; g = f * c; h = g / 100; f - h | a=100,200,400,500,1000 b=10,20,50,25 c=10,20,50
a price of {a} is cut by {b}% and then by another {c}%. [Final price|Price now|What is it now][?|]
{a} minus {b}%, then minus {c}%[?|: what's left?]
{b}% off ${a} and {c}% off the new price[: |, |. ][final price|what do I pay][?|]
# d = a * b; e = d / 100; f = a + e; g = f * c; h = g / 100; f - h | a=100,200,400,500,1000 b=10,20,50,25 c=10,20,50
{a} rises by {b}% and then falls by {c}%. [What is it now|Result|Now][?|]
{a} plus {b}%, then minus {c}%[?| is?]
# d = a * b; e = d / 100; f = a * c; g = f / 100; h = a - e; h - g | a=50,80,100,200,300,400 b=10,20,25,30 c=10,20,30,40
of {a} [tickets|cakes|seats], {b}% are sold in the morning and {c}% of all in the afternoon. [Left|How many are left|What remains][?|]
# d = 60 * a; d / 100 | a=10,20,25,30,40,50,60,70,75,80,90,5
{a}% of an hour [in|is how many] minutes[?|]
how many minutes [are|is] {a}% of an hour[?|]
# d = a / b; d * c | b=5,6,7,8,9,10 f=2-12 a==b*f c=2-4
{c}/{b} of {a}[?|=| =| is?| kids?| eggs?| dollars?]
{c} {b}ths of {a}[?|]
{x} [read|ate|sold|spent|used] {c}/{b} of {a}. [How many|How much|What] is that[?|]
{a} [kids|eggs|km|minutes], {c}/{b} of them[: |, |. ]how many[?|]
{c} out of every {b} [like it|are new|win|fail]. Of {a}, how many[?|]
# d = a / b; e = d * c; a - e | b=6,7,8,9,10 f=2-12 a==b*f c=2-5
{c}/{b} of {a} [1:eggs|kids|lamps|seats] are [1:fine|here|on|taken]. How many are [1:broken|missing|off|free][?|]
{c}/{b} of my {a} [km|pages|tasks] are behind me. [How many are ahead|How many to go|Left][?|]
{x} spent {c}/{b} of {his} {a} [euros|dollars|coins]. [How much does {he} still have|What's left|How much is left|The rest][?|]
{c}/{b} of the {a} [pupils|kids|people] [1:walk|came|swim], the rest [1:take the bus|stayed away|play]. How many [[1:take the bus|stayed away|play]|are in the rest][?|]
of {a} [1:pages|eggs|tickets] {c}/{b} are [1:read|used|sold]. [How many are not|How many are left|What remains][?|]
a {a} [1:liter|km|page] [1:tank|trip|book], {c}/{b} of it [1:used|done|read]. How much [remains|is left][?|]
{a} minus {c}/{b} of it[?|]
{c}/{b} of {a} {t} are [broken|sold|given away], how many [are fine|are kept|remain][?|]
# d = a / 4; a - d | e=2-30 a==4*e
a quarter of the {a} [pupils|guests|workers] [walk|drive|cycle], the rest [1:take the bus|come by train]. How many [[1]|are in the rest][?|]
a quarter of {a} [pages|km|eggs] is [done|gone]. [Rest|How much is left|How many remain][?|]
[all|everything] but a quarter of {a}[?| is how many?]
# d = a / 3; a - d | e=2-30 a==3*e
a third of the {a} [pupils|guests|workers] [walk|drive|cycle], the rest [1:take the bus|come by train]. How many [[1]|are in the rest][?|]
[all|everything] but a third of {a}[?| is how many?]
{x} gives a third of {a} {t} to {y}. How many does {he} keep[?|]
# d = a / c; d * b | b=4,5,6,7,8,9,10 c=2,3 f=2-20 a==c*f
{c}/{b} of [a number|some number|x] is {a}. [Find the number|The number|What is it|x = ?][?|.|]
{c}/{b} of [1:my money|the class|the way|the book] [is|are] {a}. How [1:much|many|much|much] is all of it[?|]
{a} is {c}/{b} of [what|which number|how much][?|]
{a} [kids|pages|km|liters] are {c}/{b} of all. [How many in all|All|The whole|Total][?|]
{x} has done {a}, that is {c}/{b}. [The whole|How much in all|How many in total][?|]
when {c}/{b} are {a}, [what's the whole|how much is the whole|the whole is][?|]
if {c} {b}ths are {a}, what is the whole[?|]
# a * b | a=2-40 b=3,4,5,6,8,10
1/{b} of [a number|some number|x] is {a}. [The number|What is it|x = ?|Find it][?|.|]
{a} is 1/{b} of [what|which number|how much][?|]
[one|a single] slice is 1/{b} of the cake and weighs {a} g. The whole cake[?| weighs?]
1/{b} of the [1:way|book|job] is {a} [1:km|pages|hours]. [The whole|All of it][?| is?]
# a * 2 | a=2-90
half of my [1:marbles|money|books|cards] [1:are|is|are|are] {a}. How [1:many|much|many|many] do I have in all[?|]
{a} is half of [it|the way|the class|my pay]. [The whole|All of it|How much is the whole][?|]
[halfway there|halfway through] after {a} [1:km|pages|minutes]. How many [1] in all[?|]
I gave away half and have {a} left. [At first|How many did I have|Before that][?|]
# d = a / 3; d * 4 | e=2-30 a==3*e
after using a quarter {a} [liters|kg|dollars] are left. [How much was there|How much was it at first|The whole][?|]
a quarter is gone, {a} are left. How many were there[?| at first?| before?]
# d = a / 2; d * 3 | e=2-40 a==2*e
a third is gone, {a} are left. How many were there[?| at first?| before?]
{x} spent a third of {his} money and has {a} left. [How much did {he} have|Before|At first][?|]
# d = a / 2; e = a / 4; f = a - d; f - e | g=2-20 a==4*g
half of {a} [1:balls|cars|cats] are [1:red|new|small], a quarter [1:blue|old|big], the rest [1:green|broken|tiny]. How many are [1:green|broken|tiny][?|]
{x} has {a}, gives half to {y} and a quarter [of all |]to {z}. [Left|What does {he} keep|What's left][?|]
# d = a / 2; e = a / 3; f = a - d; f - e | g=2-15 a==6*g
half of {a} [kids|guests|workers] walk, a third drive, the rest cycle. How many cycle[?|]
{x} spends half of {a} dollars on food and a third [of the {a} |]on rent. [Left|The rest|How much is left][?|]
# d = a / 2; e = a - d; f = e / 3; e - f | g=2-15 a==6*g
{x} spends half of {a} dollars, then a third of the rest. [Left|What's left|How much remains][?|]
half of {a} are gone, then a third of what is left. [What remains|Left|How many now][?|]
# d = a / 2; e = a - d; f = e / 2; e - f | g=2-20 a==4*g
{x} spends half of {a} dollars, then half of the rest. [Left|What's left|How much remains][?|]
half of {a} are gone, then half of what is left. [What remains|Left|How many now][?|]
# a / 4 | b=2-15 a==4*b
each [1:kid|guest] gets a quarter of a [2:pizza|cake|melon]. {a} [[1]s|of them]: how many [2]s[?|]
{a} quarters [make|are|is] how many wholes[?|]
{a} quarter hours [are|make] how many hours[?|]
# a / 2 | b=2-30 a==2*b
each [1:kid|guest|friend] gets half a [pizza|melon|sandwich]. How many for {a}[?| [1]s?]
{a} halves [make|are] how many wholes[?|]
{a} half hours [are|make] how many hours[?|]
half a pill a day: {a} days need how many pills[?|]
# a * 4 | a=2-30
how many quarter [1:liter|hour|kilo|pound] [1:cups|breaks|bags|packs] [are in|fit in|make] {a} [1]s[?|]
how many quarters make {a} wholes[?|]
{a} [pizzas|cakes|apples] cut in quarters[: |, |. ][pieces|how many pieces][?|]
# a * 2 | a=2-60
how many half [1:liter|hour|kilo] [1:bottles|shows|bags] [are in|fit in|make] {a} [1]s[?|]
{a} [sandwiches|apples|cakes] cut in half[: |, |. ][pieces|how many pieces|halves][?|]
# a * 8 | a=2-12
{a} [pizzas|cakes|pies] cut into eighths[: |, |. ][slices|how many slices|pieces][?|]
how many eighths [are in|make] {a}[?|]
# d = 60 / b; d * a | b=4,5,6,10,12 a=2-3
{a}/{b} of an hour [in|is how many] minutes[?|]
how many minutes [are|is|in] {a}/{b} of an hour[?|]
# d = 24 / b; d * a | b=4,6,8 a=2-3
{a}/{b} of a day [in|is how many] hours[?|]
how many hours [are|is|in] {a}/{b} of a day[?|]
# d = 1000 / b; d * a | b=4,5,8,10 a=2-3
{a}/{b} of a [1:kilo|kilometer|liter] [in|is how many] [1:grams|meters|ml][?|]
how many [1:grams|meters|ml] [are|is|in] {a}/{b} of a [1:kilo|kilometer|liter][?|]
# d = 12 / b; d * a | b=4,6 a=2-3
{a}/{b} of a dozen[?| is how many?| eggs?]
{a}/{b} of a year in months[?|]
# a * 1.5 | b=1-40 a==2*b
one and a half times {a}[?|]
{a} and half of it again[?| is?]
half as much again as {a}[?|]
# d = a + b; d * 2 | a=3-60 b=2-40
my [yard|garden|lawn|patio]'s {a} [1:ft|m|yards] by {b} [1]. [[1] of fencing|[1] of fence needed|How many [1] of fence][?|]
L = {a}, W = {b}, [perimeter|P = ?|perimeter?|P?]
L={a} W={b}[. |, |; ]perimeter[?|]
[rectangular|rect.] [field|plot] {a}x{b}[: |, |. ][perimeter|fence length|how much fence][?|]
{a} m x {b} m [garden|plot|cage], [fence|border|hedge] all around = [?|how many m?]
# a * b | a=2-30 b=2-25
L = {a}, W = {b}, [area|A = ?|area?|A?]
LxW = {a}x{b}[. |, |; ]area[?|]
[rectangular|rect.] [field|plot] {a}x{b}[: |, |. ][area|how many square m|size][?|]
{a}m x {b}m [room|floor|wall|lawn], [sq m|square meters|m2|area][?| = ?]
a [1:yard|room|stage|shed] {a}ft by {b}ft, square feet[?|]
# d = a / 2; d - b | b=2-20 e=2-20 a==2*(b+e)
width = {b}, perimeter = {a}, length = [?|what?]
P = {a}, [one side|width|W] = {b}. [L|other side|length][ = ?|?|]
a [frame|fence] of {a} around a [1:picture|yard] {b} wide. [Its height|The other side|How long][?|]
# 6 * a | a=2-30
[a |]hexagon with side {a}[, |: |. ]perimeter[?| please|]
six equal sides of {a}[: |, |. ][perimeter|all around|total length][?|]
# 5 * a | a=2-30
[a |]pentagon with [side|sides of|equal sides of] {a}[, |: |. ]perimeter[?| please|]
five equal sides of {a}[: |, |. ][perimeter|all around|total length][?|]
# 8 * a | a=2-30
[a |]octagon with [side|sides of|equal sides of] {a}[, |: |. ]perimeter[?| please|]
# d = a / c; e = b / f; d * e | c=2-5 f=2-5 g=2-8 h=2-8 a==c*g b==f*h
[what's|what is] the [biggest number|most] of {c}-by-{f} [boxes|tiles|cards] [fitting|that fit] in a {a}-by-{b} [box|frame|field][?|]
{c}x{f} [tiles|stones|mats] on a {a}x{b} [floor|yard|wall][: |, ]how many[?|]
# d = a * b; e = c * f; d - e | c=1-4 f=1-4 g=1-12 h=1-12 a==c+g b==f+h
a wall is {a}m x {b}m with a {c}m x {f}m [door|window|hole]. [area to paint|Area without it|How much is to paint][?|]
paint a {a} by {b} wall but not its {c} by {f} [window|door][: |. |, ][area|how many square m][?|]
# d = a * 2; d * d | a=2-20
[if|when] I double the [side|sides] of a square of [side |]{a}[ cm|], what's the new area[?|]
a square of side {a} is made twice as [wide and high|big in each direction]. [New area|Its area now][?|]
# d = a * 2; d * 4 | a=2-20
[if|when] I double the side of a square of [side |]{a}[ cm|], what's the new perimeter[?|]
# a * b / 100 | a=20,40,50,60,80,100,120,150,200,250,300,400,500 b=110,120,125,150,175,200,250,300 | dec
{b}% of {a}[?| is?]
what's {b} percent of {a}[?|]
# d = a * b; e = d / 100; a + e | a=15,25,30,35,45,50,60,75,80,90,110,120,150 b=10,20,5,15 | dec
{a} + {b}%[?|=| =|]
{a} plus {b} percent[?|]
how much is {b}% more than {a}[?|]
# d = a * b; e = d / 100; a - e | a=15,25,30,35,45,50,60,75,80,90,110,120,150 b=10,20,5,15 | dec
{a} - {b}%[?|=| =|]
{a} less {b} percent[?|]
how much is {b}% less than {a}[?|]
# d = a - b; e = d / a; e * 100 | a=10,20,40,50,60,80,100,200 c=1-9 b==a-a*c/10 | dec
was ${a}, now ${b}. [% off|percent off|how many percent off][?|]
[old|before] {a}, [new|after] {b}: [% down|minus how many percent|percent drop][?|]
# d = a * b; e = d / 100; f = a - e; g = f * c; h = g / 100; f - h | a=100,200,400,500,1000 b=10,20,50,25 c=10,20,50
double discount: {a} [bucks|dollars|euros], {b}% off, then {c}% off[?| price?|: what do I pay?]
{b}% off and then another {c}% off {a}[: |, |. ][price|final price|what's left][?|]
# d = a * b; e = d / 100; a - e | a=20,25,40,50,60,80,100 b=60,75,80,90,95,70
{x} got {b}% on a test with {a} [questions|points|tasks]. How many did {he} [get wrong|miss|not get][?|]
{b} percent of the {a} [1:seats|rooms|lamps] [stay|are] [1:empty|free|off]. [1:Occupied seats|Rooms in use|Lamps that are on][?|]
# d = a * b; e = d / 100; a + e | a=100,200,500,1000,2000 b=2,3,4,5,10
{b}% interest on ${a} for [one|a|1] year. How much money do I have then[?|]
${a} at {b}% for a year[: |, |. ][balance|what do I have then|new balance|total][?|]
# d = a / c; d * b | b=5,6,7,8,9,10 c=2,3,4 f=2-20 a==c*f
a [tank|bottle|jar|pool] that is {c}/{b} full has {a} [liters|litres|gallons] in it. [Capacity|How much when full|Full it holds|What does it hold][?|]
{a} [liters|km|pages] [are|make] {c}/{b}, how many are [the whole|all|everything][?|]
at {c}/{b} of the [1:trip|book|job] {x} has [1:driven|read|done] {a} [1:km|pages|hours]. [How long is the whole|The whole][?|]
# a / 2 | b=1-60 a==2*b
[twice|double|two times] [a number|some number|my number|what] is {a}[. The number?|. What is it?|?|. Find it.|]
# a / 3 | b=1-40 a==3*b
[three times|thrice|triple] [a number|some number|my number|what] is {a}[. The number?|. What is it?|?|. Find it.|]
# d = a / 2; e = d + 1; d * e | b=4-15 a==2*b
[what is |]the sum of [all |the |][even numbers from 2 to {a}|even numbers up to {a}][?|]
add [up |][all |the |]even numbers from 2 to {a}[.|?|]
2 + 4 + 6 + ... + {a}[?|=| =|]
# d = a + 1; e = d / 2; e * e | b=4-15 a==2*b-1
[what is |]the sum of [all |the |][odd numbers from 1 to {a}|odd numbers up to {a}][?|]
add [up |][all |the |]odd numbers from 1 to {a}[.|?|]
1 + 3 + 5 + ... + {a}[?|=| =|]
# a * b - c | a=2-12 b=2-12 c=1-4
{c} less than {a} times {b}[?|]
what's {c} less than {a} times {b}[?|]
{a} times {b} take away {c}[?|]
{a} times {b}, [lose|drop|minus|remove] {c}[?|]
# d = a / b; d / c | b=2-6 c=2-6 e=1-12 a==b*c*e
divide {a} by {b} and then by {c}[.|?|]
{a} [split|cut|divided] by {b}, [then|and that|the result] by {c}[?|]
{a} over {b} over {c}[?|]
take {a}, divide by {b}, divide by {c}[.|?|]
# d = a / b; d * c | b=2-9 e=2-9 a==b*e c=2-9
{a} divided by {b} times {c}[?|]
{a} [÷|/|:] {b} [x|*|times] {c}[?|=|]
take {a}, divide by {b}, times {c}[.|?|]
# (a + b) / (c - d) | c=4-9 f=1-2 d==c-f-1 e=2-12 b=1-9 a==(f+1)*e-b
({a}+{b})/({c}-{d})[=|?|]
({a} + {b}) / ({c} - {d})[ =|?|]
the sum of {a} and {b} over the difference of {c} and {d}[?|]
# d = a + b; d * 2 | a=3-60 b=2-40 c=2-90
in room {c}, {a} by {b} feet, a border runs along [all walls|the ceiling]. [How long is it|Its length][?|]
how far does {x} walk if {he} goes once around a field {a} m long and {b} m wide[?|]
a dog runs along the fence of a {a} m by {b} m yard until it is back. How far[?| is that?]
I have to frame a {a} by {b} cm [photo|map|mirror]. How many cm of wood[?| do I need?]
what length of [string|tape] goes round a {a} by {b} [card|box lid|book cover][?|]
# a * b | a=3-40 b=2-25 c=2-90
lot number {c} is {a} m long and {b} m wide. [Its area|How many square meters|Area][?|]
I wonder how many square [feet|meters] a {a} by {b} [room|deck|roof] has[.|?|]
[grass|carpet|paint] is needed for {a} m times {b} m. How many square meters[?|]
a [stamp|card|ticket] {a} mm by {b} mm covers how many square mm[?|]
[a field|the yard] {b} m wide and {a} m long was [sold|mown|paved]. How many square meters were that[?|]
# d = a * b; e = d / 100; a - e | a=20,40,50,60,80,100,200,300,400,500 b=5,10,15,20,25,30,40,50,60,70,75,80,90 c=2-90
[shop|item|day] {c}: a ${a} [coat|lamp|chair] with {b}% off. [What is to pay|Price|What do I pay][?|]
I wonder what I pay for a {a} dollar [bag|coat|watch] [when|if] they take {b}% off[.|?|]
{b}% of the {a} [voters|guests|pupils] did not [come|answer|pass]. How many did[?|]
had the {a} dollar [coat|bike|chair] been {b}% cheaper, what would it have cost[?|]
not {a} but {b}% less is [the price|what I pay]. How much[?| is that?]
all but {b}% of {a} [1:seats|eggs|letters] are [1:taken|fine|sent]. How many are that[?|]
# d = a * b; e = d / 100; a + e | a=20,40,50,60,80,100,200,300,400,500 b=5,10,15,20,25,30,40,50
I wonder what {a} becomes after a rise of {b}%[.|?|]
not {a} but {b}% more is [the new rent|what {x} gets now]. How much[?| is that?]
had {x} sold {b}% more than {his} {a} [cakes|cars|books], how many [would it be|would that be][?|]
the [fee|fare|price] of {a} was raised by {b} percent. [What is it now|Now it is][?|]
could you add {b}% to {a}[?| for me?]
# a * b / 100 | a=20,40,50,60,80,100,200,300,400,500 b=5,10,15,20,25,30,40,50,60,70,75,80,90 c=2-90
I wonder how many {b} percent of {a} [are|is][.|?|]
of {a} [1:letters|eggs|answers] {b}% were [1:lost|brown|wrong]. How many were that[?|]
how many of the {a} [1:seats|eggs|cars] are [1:taken|brown|new] if {b}% are[?| [1:taken|brown|new]?]
{b}% is what the [bank|agent|shop] keeps of {a}. How much is that[?|]
{x} ({c}) pays {b}% of {a} in tax. How much[?| is the tax?]
could you work out {b} percent of {a}[?|]
# d = a / b; d * 100 | b=4,5,10,20,25,50,40,80,200 c=1-b a==c | dec
I wonder what percent {a} of {b} [is|are][.|?|]
how many percent did {x} get with {a} of {b} points[?|]
{b} [1:seeds|shots|calls], {a} [1:grew|hit|answered][: |. ][rate in percent|percent|success in percent][?|]
what percentage is it when {a} of {b} [come|vote|pass][?|]
# d = a / b; d * c | b=5,6,7,8,9,10 f=2-12 a==b*f c=2-4
I wonder how many {c}/{b} of {a} [are|is][.|?|]
how many of the {a} [1:pages|eggs|kids] are [1:read|used|here] if it's {c}/{b} of them[?|]
{c}/{b} of the {a} minutes are over. How many minutes [is that|are over][?|]
{x} walked {c}/{b} of a {a} km trail. How many km[?| did {he} walk?]
# d = a / b; e = d * c; a - e | b=6,7,8,9,10 f=2-12 a==b*f c=2-5
all but {c}/{b} of {a} [1:eggs|seats|pages] are [1:fine|taken|read]. How many are that[?|]
{x} walked {c}/{b} of a {a} km trail. How [far is it still|many km are left][?|]
{c}/{b} of {a} did not come. How many came[?|]
of {a} [1:votes|letters|seeds], {c}/{b} were [1:void|lost|bad]. How many were not[?|]
# d = a + b; d * c | a=1-30 b=1-20 c=2-12
{a} plus {b} all times {c}[?|]
{a} and {b} added, the sum times {c}[?|]
[first|start:] {a} + {b}, then x {c}[?|]
{c} [lots|sets] of {a} plus {b} together, so ({a} + {b}) times {c}[?|]
you add {b} to {a} and take that {c} times[. |, |: ]what is it[?|]
# d = a - b; d * c | b=1-20 f=1-20 a==b+f c=2-12
{a} minus {b} all times {c}[?|]
{a} take away {b}, the rest times {c}[?|]
[first|start:] {a} - {b}, then x {c}[?|]
you take {b} from {a} and take the rest {c} times[. |, |: ]what is it[?|]
# d = a + b; d / c | c=2-9 e=2-12 b=1-12 a==c*e-b
{a} plus {b} all divided by {c}[?|]
{a} and {b} added, the sum split by {c}[?|]
[first|start:] {a} + {b}, then / {c}[?|]
# d = a * b; d + c | a=2-12 b=2-12 c=1-40
{a} times {b} and then {c} on top[?|]
{c} on top of {a} times {b}[?|]
[first|start:] {a} x {b}, then + {c}[?|]
{a} {bs} and {c} more[: |, |. ]how much[?|]
# d = a * b; c - d | a=2-9 b=2-9 e=1-40 c==a*b+e
{c} minus {a} times {b}[?|]
[take|subtract] {a} times {b} from {c}[.|?|]
{c} less {a} times {b}[?| is?]
what remains of {c} after {a} {bs}[?|]
# d = a / b; c - d | b=2-9 f=1-12 a==b*f e=1-40 c==e+f
{c} minus {a} divided by {b}[?|]
{c} - {a} / {b}[=|?|]
# d = a / b; c + d | b=2-9 f=1-12 a==b*f c=1-40
{c} plus {a} divided by {b}[?|]
{c} + {a} / {b}[=|?|]
# d = a * b; e = d + c; e - f | a=2-12 b=2-12 c=1-30 f=1-5
{a} times {b} plus {c} minus {f}[?|]
{a} x {b} + {c} - {f}[=|?|]
# a * a | a=2-20
{a} by {a} [is|makes|equals][?| what?]
{a} times the same number[?|]
how much is {a} when squared[?|]
# a / 2 | b=2-60 a==2*b
what's {a} if you halve it[?|]
one half of {a}[?|]
50 percent of {a}, just half of it[?|]
# d = a / b; e = d * c; a - e | b=4,5,6,7,8,10 f=2-12 a==b*f c=2-3
{c} in {b} [1:are girls|like tea|have a bike|are left-handed]. Of {a}, how many [1:are not|do not|have none|are not][?|]
in a [class|club|group] of {a}, {c} out of {b} are [girls|new|adults]. How many are not[?|]
# d = b - a; e = d / a; e * 100 | a=100,1000,20,40,50,60 k=5,10,15,20,25,50 b==a+a*k/100
[my |the |]rent went from {a} to {b}[, |. |: ][percent|by how many percent|percent increase|what percent is that][?|]
[sales|members|visitors|views]: {a}, now {b}. [Growth in percent|Percent growth|Percent more|Up how many percent][?|]
a raise from {a} to {b} is how many percent[?|]
# d = a - b; e = d / a; e * 100 | a=100,1000,20,40,50,60 k=5,10,15,20,25,50 b==a-a*k/100
[my |the |]rent went down from {a} to {b}[, |. |: ][percent|by how many percent|percent decrease|what percent is that][?|]
[sales|members|visitors|views]: {a}, now {b}. [Loss in percent|Percent less|Down how many percent][?|]
a cut from {a} to {b} is how many percent[?|]
"""

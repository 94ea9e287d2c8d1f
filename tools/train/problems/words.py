"""Names and things. Things that a story treats alike share a list, so that any of them fits."""

_WOMEN = (
    "Anna Maria Lily Sofia Emma Olivia Ava Mia Grace Chloe Zoe Nora Hannah Leila Aisha Fatima Priya "
    "Mei Yuki Ingrid Elena Carmen Rosa Julia Clara Alice Ruth Janet Tina Wendy Betty Nadia Amara "
    "Keisha Hana Freya Diana Paula Sara Lucy"
).split()
_MEN = (
    "James Liam Noah Ethan Lucas Henry Jack Leo Oscar Felix Omar Ahmed Raj Arjun Wei Kenji Lars "
    "Ivan Pedro Carlos Diego Marco Paul Peter Tom Ben Sam Max Daniel David Kevin Victor Jamal Kofi "
    "Emil Hugo Adam Simon Theo Finn"
).split()
_ANYONE = "Alex Robin Jordan Taylor Casey Morgan Riley Quinn Jamie Avery".split()

_SHE = ("she", "her", "her")
_HE = ("he", "his", "him")

# (pronouns, name): they, their, them
PEOPLE = (
    [(_SHE, name) for name in _WOMEN + _ANYONE] + [(_HE, name) for name in _MEN + _ANYONE])
SYLLABLES = "ba da fi go ka la li ma mi na no pa ra ri ro sa se ta ti to va ve za zu".split()

FRUIT = "apples oranges pears peaches plums mangoes lemons bananas kiwis apricots".split()
BAKED = ["cookies", "muffins", "cupcakes", "brownies", "donuts", "rolls", "scones", "pretzels"]
TOYS = ["marbles", "stickers", "toy cars", "stamps", "trading cards", "beads", "coins", "shells"]
SUPPLIES = ["pencils", "pens", "erasers", "notebooks", "markers", "crayons", "folders", "rulers"]
CLOTHES = ["shirts", "hats", "scarves", "sweaters", "jackets", "belts", "skirts", "ties"]
GADGETS = ["a bicycle", "a tablet", "a camera", "a skateboard", "a guitar", "a telescope", "a tent"]
PACKED = ["batteries", "light bulbs", "napkins", "candles", "balloons", "screws", "paper cups"]
PARTS = ["screws", "bolts", "bottles", "toys", "lamps", "phones", "chairs", "boxes"]
FLOWERS = ["roses", "tulips", "daisies", "lilies", "sunflowers", "orchids", "irises", "violets"]
TREES = ["apple", "pear", "cherry", "plum", "peach", "olive", "orange", "lemon"]
VEGETABLES = ["carrots", "potatoes", "onions", "tomatoes", "cucumbers", "beets", "cabbages"]
FEED_ANIMALS = ["horses", "cows", "goats", "sheep", "pigs", "donkeys"]
FOUR_LEGGED = ["cows", "goats", "sheep", "horses", "pigs", "dogs"]
TWO_LEGGED = ["chickens", "ducks", "geese", "turkeys"]
FISH = ["goldfish", "guppies", "tetras", "angelfish", "catfish", "mollies"]
DRINKS = ["lemonade", "orange juice", "iced tea", "apple cider", "hot chocolate", "coffee"]
VEHICLES = ["car", "truck", "bus", "van", "train", "motorcycle"]
PLACES = ["the beach", "the lake", "the mountains", "the city", "the museum", "the farm", "the zoo"]
SHOPS = ["the market", "the corner shop", "the mall", "a garage sale", "the supermarket"]
CAUSES = ["a new playground", "the animal shelter", "the school library", "a class trip", "the choir"]
CHORES = ["mowing lawns", "walking dogs", "babysitting", "washing cars", "raking leaves", "tutoring"]
SUBJECTS = ["math", "science", "history", "spelling", "geography", "music"]
TEAMS = ["Tigers", "Eagles", "Sharks", "Wolves", "Bears", "Hawks", "Lions", "Falcons"]
BOOKS = ["novel", "mystery", "biography", "comic book", "history book", "adventure book"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August"]
RELATIVES = ["sister", "brother", "cousin", "friend", "neighbor", "classmate"]
ROOMS = ["kitchen", "bathroom", "hallway", "living room", "bedroom", "porch", "classroom"]
MATERIALS = ["rope", "ribbon", "wire", "string", "cloth", "yarn"]
LIQUIDS = ["water", "juice", "milk", "oil", "syrup", "paint"]
CONTAINERS = ["tank", "barrel", "pool", "pond", "tub"]
INGREDIENTS = ["flour", "sugar", "oats", "rice", "milk"]

MULTIPLES = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}
FRACTIONS = {2: "half", 3: "one third", 4: "one quarter", 5: "one fifth"}
COUNTS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}

_UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
          "sixteen seventeen eighteen nineteen").split()
NUMBERS = [*_UNITS, "twenty"]  # index: the number

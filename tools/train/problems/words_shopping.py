"""Names and things of the themes about money, shopping, travel, food, school, time and events."""

_SHE = ("she", "her", "her")
_HE = ("he", "his", "him")

_WOMEN = (
    "Abigail Amelia Anita Ayumi Beatriz Bella Brenda Camila Charlotte Cynthia Daisy Deborah Dora "
    "Eleanor Erin Esther Eva Fiona Gabriela Gloria Greta Heather Helen Imani Irene Isabel Ivy Jada "
    "Jasmine Jenna Joanna Kara Kate Kim Laura Leah Linda Luna Mabel Margaret Marta Mila Molly "
    "Monica Naomi Natalie Nina Noor Paige Pamela Penny Rachel Rebecca Sabrina Samantha Sandra "
    "Selma Shreya Stella Susan Tamara Teresa Valerie Vera Violet Ximena Yara Zainab"
).split()
_MEN = (
    "Aaron Abdul Albert Andre Anton Arthur Ben Bilal Bruno Caleb Charlie Chen Connor Curtis Dante "
    "Darius Dennis Derek Dylan Eduardo Eli Enzo Eric Erik Frank Gary George Gustavo Harold Hiroshi "
    "Ian Isaac Jason Javier Jerome Joel John Jonas Jorge Joshua Julian Karl Kenneth Khalid Kyle "
    "Leon Louis Luca Malik Mark Martin Mateo Matthew Mike Milo Nathan Nick Nikolai Oliver Omari "
    "Owen Patrick Rafael Ray Rick Robert Ron Ryan Samir Scott Sean Steve Tariq Tim Tyler Vikram Will"
).split()
PEOPLE = [(_SHE, name) for name in _WOMEN] + [(_HE, name) for name in _MEN]
TITLES = [(_SHE, "Mrs."), (_SHE, "Ms."), (_HE, "Mr."), (_SHE, "Aunt"), (_HE, "Uncle")]
SURNAMES = (
    "Adams Baker Bell Brooks Castro Chen Clark Cohen Cruz Davis Diaz Evans Fischer Garcia Gomez "
    "Green Gupta Hall Hill Jones Khan Kim Kowalski Lee Lopez Meyer Miller Moore Nguyen Novak Okafor "
    "Park Patel Reed Rivera Rossi Santos Sato Singh Smith Stone Tanaka Torres Walker Wong Young"
).split()

SMALL_GOODS = (
    "pen, pencil, notebook, candle, mug, postcard, magnet, sticker sheet, keychain, ruler, plate, "
    "spoon, bowl, towel, sponge, light bulb, battery/batteries, brush, comb, toy car, balloon, "
    "puzzle, notepad, picture frame, flower pot, bar of soap/bars of soap, tennis ball, bookmark, "
    "envelope, umbrella, glass, toothbrush")
CLOTHING = (
    "shirt, hat, scarf/scarves, sweater, jacket, belt, skirt, tie, dress, T-shirt, hoodie, vest, "
    "pair of jeans/pairs of jeans, pair of socks/pairs of socks, pair of gloves/pairs of gloves, "
    "pair of shoes/pairs of shoes, coat, cap, raincoat, blouse, swimsuit")
LARGE_GOODS = (
    "bicycle, tablet, camera, guitar, telescope, tent, laptop, phone, keyboard, printer, sofa, desk, "
    "bookcase, washing machine, violin, drone, television, armchair, mattress, scooter, kayak, "
    "sewing machine, treadmill, dishwasher, fridge, lawn mower, oven")
GROCERIES = (
    "apple, orange, lemon, mango/mangoes, peach, pear, banana, avocado, melon, pineapple, cabbage, "
    "onion, cucumber, pepper, loaf of bread/loaves of bread, carton of milk/cartons of milk, "
    "bag of rice/bags of rice, can of soup/cans of soup, jar of honey/jars of honey, "
    "box of cereal/boxes of cereal, bottle of juice/bottles of juice, pack of noodles/packs of noodles, "
    "bag of flour/bags of flour, tin of beans/tins of beans, block of cheese/blocks of cheese, "
    "bar of chocolate/bars of chocolate, bunch of grapes/bunches of grapes")
BY_WEIGHT = [
    "apples", "cheese", "rice", "beans", "grapes", "fish", "beef", "chicken", "nuts", "coffee",
    "potatoes", "cherries", "shrimp", "flour", "carrots", "tomatoes", "honey", "candy"]
MEALS = (
    "pizza, burger, salad, sandwich, taco, burrito, soup, pancake, hot dog, pie, milkshake, coffee, "
    "cup of tea/cups of tea, lemonade, bowl of noodles/bowls of noodles, omelet, waffle, wrap, "
    "plate of pasta/plates of pasta, smoothie, slice of cake/slices of cake")
BAKED_GOODS = (
    "cookie, muffin, cupcake, brownie, donut, roll, scone, pretzel, bagel, croissant, biscuit, "
    "bun, tart, pie, macaron, cake, dumpling, cracker, waffle, pancake")
FRUITS = (
    "apple, orange, pear, peach, plum, mango/mangoes, lemon, banana, kiwi, apricot, fig, lime, "
    "grapefruit, nectarine, coconut, melon")
COLLECTIBLES = (
    "marble, sticker, toy car, stamp, trading card, bead, coin, shell, button, postcard, comic book, "
    "pin, badge, crystal, pebble, feather, action figure, poster, magnet, key ring")
SUPPLY_LIST = (
    "pencil, pen, eraser, notebook, marker, crayon, folder, ruler, glue stick, binder, highlighter, "
    "sharpener, paintbrush, sketchbook, calculator")
PRODUCTS = (
    "bracelet, candle, necklace, scarf/scarves, birdhouse, painting, mug, bowl, basket, lamp, vase, "
    "pillow, toy robot, wallet, bag, bar of soap/bars of soap, card, jar of jam/jars of jam, poster, wooden spoon, kite, "
    "teddy bear, pair of earrings/pairs of earrings, table, stool, picture frame, cutting board")
SHOP_KINDS = [
    "bakery", "bookshop", "toy store", "flower shop", "hardware store", "clothing store", "pet shop",
    "gift shop", "grocery store", "shoe store", "music shop", "garden center", "pharmacy", "kiosk"]
STORES = [
    "the market", "the corner shop", "the mall", "the supermarket", "the bakery", "the flea market",
    "a garage sale", "the department store", "the gift shop", "the fair", "the new shop"]
ADMISSIONS = [
    "the museum", "the zoo", "the castle", "the water park", "the aquarium", "the stadium", "the skating rink",
    "the botanical garden", "the amusement park", "the planetarium"]
JOBS = [
    "waiter", "gardener", "painter", "tutor", "mechanic", "cashier", "plumber", "driver", "cook",
    "nurse", "barista", "carpenter", "electrician", "librarian", "baker", "lifeguard", "cleaner"]
TASKS = [
    "mowing lawns", "walking dogs", "babysitting", "washing cars", "raking leaves", "tutoring",
    "delivering newspapers", "shoveling snow", "painting fences", "cleaning windows", "weeding gardens",
    "feeding cats"]
VEHICLES = ["car", "truck", "bus", "van", "train", "motorcycle", "boat", "ferry", "camper", "taxi"]
TOWNS = (
    "Oakville Riverton Milford Ashby Greendale Lakeside Fairview Brookton Stonebridge Hillcrest Westport "
    "Easton Norwood Kingsley Maplewood Redfield Silverton Clearwater Elmhurst Bayview").split()
SIGHTS = [
    "the beach", "the lake", "the mountains", "the city", "the museum", "the farm", "the zoo", "the park",
    "the harbor", "the castle", "the waterfall", "the campsite", "the airport", "the stadium"]
INGREDIENTS = ["flour", "sugar", "oats", "rice", "milk", "butter", "cocoa", "cream", "water", "broth"]
DISHES = [
    "pancakes", "soup", "bread", "a stew", "a cake", "lasagna", "muffins", "chili", "curry", "a salad",
    "noodles", "a pie", "granola", "risotto"]
DRINKS = [
    "lemonade", "orange juice", "iced tea", "apple cider", "hot chocolate", "fruit punch", "cocoa",
    "ginger beer", "mango juice", "grape juice"]
SCHOOL_SUBJECTS = [
    "math", "science", "history", "spelling", "geography", "music", "biology", "English", "art", "Spanish"]
CLUBS = [
    "the chess club", "the choir", "the drama club", "the school band", "the robotics club", "the art club",
    "the swim team", "the debate team", "the soccer team", "the science club"]
GROUPS = (
    "student, visitor, worker, passenger, guest, camper, player, dancer, runner, singer, voter, member, "
    "customer, scientist, nurse, farmer, teacher, musician, tourist, volunteer")
RELATIVES = ["sister", "brother", "cousin", "friend", "neighbor"]
ELDERS = ["mother", "father", "aunt", "uncle", "teacher", "grandmother", "grandfather"]
PETS = ("dog, cat, rabbit, parrot, turtle, hamster, horse, goat, pony/ponies, canary/canaries")
ACTIVITIES = [
    "the piano", "the violin", "chess", "the drums", "the flute", "yoga", "dancing", "the guitar", "juggling",
    "karate", "handwriting", "the cello", "archery", "typing", "singing"]
SHOWS = [
    "concert", "play", "circus", "movie", "musical", "magic show", "soccer game", "ballet", "puppet show",
    "basketball game", "comedy night", "rock concert", "film festival", "talent show", "hockey game"]
CAUSES = [
    "a new playground", "the animal shelter", "the school library", "a class trip", "the choir",
    "the food bank", "a hospital", "the park", "new uniforms", "the fire department", "the museum"]
PARTIES = ["birthday party", "wedding", "picnic", "reunion", "dinner", "street party", "graduation party"]
WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
YEAR = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December"]

TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times"}
PARTS = {
    2: "half", 3: "one third", 4: "one quarter", 5: "one fifth", 6: "one sixth", 8: "one eighth",
    10: "one tenth"}

"""More things for the newer themes. Things that a story treats alike share a list."""

from .telling import nouns

COLLECTED = nouns(
    "marble, sticker, stamp, shell, coin, button, postcard, bottle cap, key ring, comic, badge, "
    "feather, pebble, toy car, trading card, bead, figurine, magnet, keychain, fossil, crystal, "
    "pin, patch, poster, bookmark, doll, puzzle, board game, model plane, rubber band")
ALBUM = nouns("sticker, stamp, postcard, photo, drawing, trading card, ticket, pressed flower")
FOUND = nouns(
    "shell, pebble, pine cone, acorn, chestnut, feather, sea star, crab, mushroom, flower, leaf/leaves, "
    "coin, bottle cap, smooth stone, starfish/starfish, berry, snail, four-leaf clover")
FOODS = nouns(
    "apple, orange, pear, peach, plum, mango/mangoes, lemon, banana, cookie, muffin, cupcake, "
    "brownie, candy, chocolate, cracker, walnut, cherry, strawberry, grape, pretzel, sandwich, "
    "tangerine, gummy bear, lollipop, jelly bean, peanut, almond, fig, date, donut")
DESK = nouns(
    "pencil, pen, eraser, notebook, marker, crayon, folder, ruler, paper clip, envelope, sticker, "
    "highlighter, index card, glue stick, paintbrush, stapler, chalk stick")
GOODS = nouns(
    "candle, battery, light bulb, cup, plate, glass, spoon, towel, vase, lamp, pillow, "
    "basket, bottle, jar, brick, tile, nail, screw, bolt, ball, balloon, umbrella, clock, mug, bowl")
MADE = nouns(
    "toy, chair, table, lamp, bicycle, car, phone, shoe, shirt, bottle, brick, tire, radio, fan, "
    "helmet, backpack, mug, clock, umbrella, keyboard, pillow, door, bracelet, pot, candle, kite")
HANDMADE = nouns(
    "bracelet, scarf/scarves, basket, card, candle, mug, bowl, necklace, hat, birdhouse, blanket, "
    "pillow, doll, lantern, paper crane, paper star, origami bird, picture frame, wreath, pot")
BIRDS = nouns("sparrow, pigeon, crow, duck, swan, gull, robin, parrot, owl, heron, goose/geese, "
              "stork, finch, magpie, penguin, flamingo, swallow, pelican")
ANIMALS = nouns("horse, cow, goat, sheep/sheep, pig, rabbit, llama, donkey, deer/deer, zebra, camel, "
                "elephant, giraffe, monkey, kangaroo, lion, tiger, bear, wolf/wolves, fox, hedgehog, "
                "squirrel, turtle, frog, seal, otter, beaver, hamster, alpaca, buffalo/buffaloes")
PETS = nouns("dog, cat, rabbit, hamster, guinea pig, parrot, turtle, puppy, kitten, canary, lizard, "
             "ferret, gecko, budgie, mouse/mice")
INSECTS = nouns("ant, bee, beetle, ladybug, butterfly, grasshopper, cricket, dragonfly, firefly, moth")
FISHES = nouns("goldfish/goldfish, guppy, tetra, angelfish/angelfish, catfish/catfish, trout/trout, "
               "salmon/salmon, carp/carp, perch/perch, seahorse, clownfish/clownfish")
FLOWERS = nouns("rose, tulip, daisy, lily, sunflower, orchid, iris, violet, daffodil, carnation, "
                "poppy, peony, marigold, hyacinth, pansy, begonia")
TREES = nouns("apple tree, pear tree, cherry tree, plum tree, peach tree, olive tree, orange tree, "
              "lemon tree, oak, maple, birch, pine, fig tree, walnut tree, willow, spruce")
VEGETABLES = nouns("carrot, potato/potatoes, onion, tomato/tomatoes, cucumber, beet, cabbage, "
                   "pumpkin, pepper, zucchini, eggplant, radish, turnip, leek, melon, corn cob")
SEEDLINGS = nouns("tomato plant, pepper plant, strawberry plant, lettuce, cabbage, basil plant, "
                  "rose bush, lavender bush, bean plant, seedling, blueberry bush, shrub")
PASSENGERS = nouns("passenger, person/people, traveler, commuter")
PUPILS = nouns("student, child/children, player, camper, scout, guest, dancer, singer, volunteer, "
               "visitor, worker, soldier, hiker, tourist, runner")
WORKERS = nouns("worker, painter, baker, carpenter, gardener, mason, tailor, mechanic, volunteer, "
                "robot, farmhand, engineer, potter, clerk")
MACHINES = nouns("machine, robot, factory, assembly line, workshop, small firm, plant")
READABLE = nouns("book, magazine, comic, novel, textbook, notebook, diary, manuscript, manual")
MEDIA = nouns("song, video, photo, message, email, episode, podcast, movie, app, game, file")
PLANTED_PLACES = ["garden", "park", "orchard", "nursery", "schoolyard", "greenhouse", "backyard"]
MATERIALS = ["rope", "ribbon", "wire", "string", "cloth", "yarn", "pipe", "cable", "tape", "wood",
             "fabric", "hose", "chain", "paper", "fishing line"]
TEAMS = ["Tigers", "Eagles", "Sharks", "Wolves", "Bears", "Hawks", "Lions", "Falcons", "Rockets",
         "Comets", "Giants", "Dragons", "Panthers", "Bulls", "Owls", "Pirates", "Knights", "Storm"]
GAMES = ["chess", "darts", "bowling", "a card game", "a board game", "a video game", "mini golf",
         "a quiz", "archery", "pinball", "table tennis", "a dice game"]
BALL_GAMES = ["basketball", "soccer", "volleyball", "handball", "hockey", "tennis", "rugby"]
PLACES = ["the beach", "the lake", "the pond", "the park", "the museum", "the forest",
          "the zoo", "the river", "the playground", "the market", "the fair", "the library"]
BUILDINGS = ["school", "hotel", "hospital", "library", "museum", "office", "theater", "station"]
CITIES = ["Oslo", "Lima", "Cairo", "Boston", "Denver", "Madrid", "Kyoto", "Nairobi", "Vienna",
          "Toronto", "Chicago", "Dublin", "Prague", "Seattle", "Sydney", "Helsinki"]
TOWNS = ["Ashford", "Milton", "Oakdale", "Riverton", "Lakewood", "Hillcrest", "Brookfield", "Fairview",
         "Stonebridge", "Greenville", "Easton", "Maplewood", "Northgate", "Clearwater"]
VEHICLES = ["bus", "train", "ferry", "tram", "streetcar", "subway train", "shuttle", "minibus", "coach"]
COLORS = ["red", "blue", "green", "yellow", "white", "black", "purple", "brown", "gray", "pink"]
STORES = nouns("box, bag, jar, drawer, basket, crate, tin, chest, bucket, case, tray")
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
EXERCISES = nouns("push-up, sit-up, squat, pull-up, jumping jack, lunge, burpee, crunch, leg lift")
SURNAMES = ("Lopez Kim Smith Garcia Novak Singh Rossi Okafor Tanaka Brown Hughes Weber Silva Khan "
            "Petrov Chen Jensen Murphy Costa Ali Baker Fischer Moreau Santos").split()

"""Names of people and places, many, so that a name is copied and not recalled."""

NAMES = tuple("""
Aaron Abby Abdul Abigail Ada Adele Adrian Agnes Aidan Aileen Alan Albert Alfie Alfred Alicia Alina Allison Alma Alvin Amelia
Amir Andre Andrea Andrew Andy Angela Angus Anita Ann Anne Annie Anthony Anton April Archie Arlo Arthur Asha Ashley Audrey Austin
Barbara Barry Basil Beatrice Becky Bella Bernard Bert Beth Bill Billy Blake Bonnie Brad Brandon Brenda Brian Bruce Bruno Bryan
Caleb Callum Cameron Camila Candice Carl Carla Carol Caroline Carter Cassie Cathy Cecilia Cedric Celia Charles Charlie Charlotte
Cheryl Chris Christine Cindy Claire Claude Clyde Cody Cole Colin Connor Cora Craig Crystal Curtis Cynthia Daisy Dale Damian Dana
Danny Daphne Darcy Daria Darren Dave Dawn Dean Debbie Deborah Debra Della Denise Dennis Derek Desmond Dexter Dina Dinesh Dolores
Dominic Don Donald Donna Dora Doris Dorothy Doug Douglas Dylan Earl Ed Eddie Edgar Edith Edward Edwin Eileen Elaine Eleanor Eli
Elijah Elise Eliza Elizabeth Ellen Ellie Elliot Ellis Elsa Elsie Emily Emmett Eric Erica Erik Ernest Esther Ethel Eugene Evan
Evelyn Faith Farah Fay Fernando Fred Frances Francis Frank Frankie Freddie Gabriel Gail Gary Gavin Gemma Gene George Georgia
Gerald Gina Gloria Gordon Graham Grant Greg Gus Gwen Haley Hamza Hank Hannah Harold Harriet Harry Harvey Hassan Hazel Heather
Heidi Helen Helga Herman Hilda Holly Hope Howard Ida Igor Imran Inez Irene Iris Isaac Isabel Isla Ismail Ivy Jackie Jackson
Jacob Jade Jan Jane Jared Jasmine Jason Jasper Jay Jean Jeff Jenna Jenny Jeremy Jerome Jerry Jesse Jessica Jill Jimmy Jo Joan
Joanna Jodie Joel Joey Johanna John Johnny Jon Jonah Jonas Jonathan Jose Joseph Josh Joshua Joy Joyce Judith Judy Jules Julian
Julie June Justin Kai Karen Karim Kate Katie Kay Kayla Keith Kelly Ken Kendra Kenny Kerry Kiara Kim Kira Kirk Kitty Kurt Kyle
Lana Lara Larry Laura Lauren Lea Leah Lena Leon Leonard Leslie Lewis Lilian Lina Linda Linh Lisa Logan Lola Lorenzo Lou Louis
Louise Lucia Luigi Luke Luna Lydia Lynn Mabel Mack Maddie Madison Maeve Magnus Malik Mandy Manuel Marcel Marcia Marcus Margaret
Margo Maria Marie Mario Marion Mark Marlene Martha Martin Marvin Mary Mason Mateo Matilda Matt Matthew Maureen Maurice Mehmet
Melanie Melissa Melvin Mia Michael Michelle Miguel Mike Mila Miles Millie Milo Mina Minh Miranda Miriam Mitchell Moira Mona Monica
Monty Myra Nancy Naomi Nasser Natalie Nathan Ned Neil Nell Nellie Nelson Nicholas Nicole Nigel Nikhil Nikolai Nina Noel Norma
Norman Olga Olive Oliver Ollie Ophelia Orla Orlando Otis Otto Owen Pablo Pam Patricia Patrick Patty Pauline Pearl Peggy Penny
Percy Perry Petra Phil Philip Phoebe Phyllis Pia Pierre Polly Rachel Ralph Ramon Randy Raquel Raul Ravi Ray Raymond Rebecca
Regina Rene Rhonda Richard Rick Rita Rob Robert Roberta Robbie Rocco Rod Roger Roland Roman Ron Rory Rose Rosie Ross Roy Ruby
Rudy Rupert Russell Ryan Sadie Sally Samantha Samir Sammy Samuel Sandra Sandy Sanjay Sasha Scott Sean Sebastian Serena Seth
Shane Shannon Sharon Shawn Sheila Shelly Sid Sidney Sienna Silvia Skye Sonia Sophia Sophie Spencer Stacy Stan Stella Stephanie
Stephen Steve Stuart Sue Summer Susan Suzanne Svetlana Sybil Sylvia Tamara Tanya Tara Ted Teresa Terry Tess Thelma Theresa Thomas
Tiffany Tim Timmy Tobias Toby Todd Tommy Toni Tony Tracy Travis Trevor Trina Trish Troy Tyler Uma Una Ursula Valerie Vanessa Vera
Vernon Veronica Vicky Vikram Vince Vincent Viola Violet Virginia Vivian Wade Wallace Walter Wanda Warren Wayne Wesley Will Willa
Willow Wilma Winnie Wyatt Xavier Yara Yasmin Yvonne Zach Zachary Zadie Zelda Zeke Zoya
""".split())

PLACES = tuple(place.strip() for place in """
at the market, in the garden, on the shelf, in the kitchen, at school, in the park, in the classroom, at the fair, at the party,
on the table, in the shed, in the drawer, at the shop, in the library, at home, in the box, in the attic, on the farm,
at the beach, in the office, on the bus, at the zoo, in the museum, in the yard, in the cellar, at camp, in the backyard,
at the playground, in the fridge, on the desk, in the barn, in the pond, at the station, in the warehouse, on the train
""".replace("\n", " ").split(","))

"""Needs in users' own words, without the words of the flag or command that meets them: a newcomer's and an operator's."""

NEEDS = r"""
# load own model
I finally have the weights on my disk, what comes next
the answers come from some tiny thing, but I want mine to answer
it keeps using the built-in one instead of the one I downloaded
I've spent the whole night downloading 16 GB of safetensors. how do I get to talk to them
how do I make sure that it takes what I downloaded and not the tiny one
there is a folder full of safetensors on my drive and I'd like to try it
swap the built-in model for a real one
what do I type after the download
I fine-tuned something last week and exported it, how can I try it here
custom model
own weights
something smarter than the built-in model, please
the toy model is nice, how do I get to the serious one
I don't want the [tiny|built-in|toy] one [any more|]
not the embedded one
[tell|teach] quire where my weights are

# serve
our web app should be able to query it
I need something that answers POST requests
my colleagues' programs should be able to call it over HTTP
I don't want to type at a terminal, other programs shall ask it
how do I get from a folder of weights to a URL
we have a React front end and need something behind it
is there a way to leave it running in the background for other programs
backend for a chatbot
HTTP
API
web service
run it as a service for our application
an always-on model that programs can ask
where's the equivalent of vllm serve
what replaces llama-server
our product needs an endpoint with our weights behind it

# serve embedded
can I try the HTTP side without downloading anything
I have no weights yet but want to play with the API
server demo without a download
is there something to test my client with before I have a checkpoint
smallest possible server to try out
API without any weights

# chat
I'd like a back-and-forth in my shell
is there a way to just talk to it, without programs and HTTP
no web, no API, just me and the model
REPL
interactive
dialogue
type a message and see the reply
I don't want a server, I want to speak with it directly
a conversation, please, not a single completion
several turns in a row by hand
ask follow-up questions in my shell
can I have a conversation that remembers what I said before
what replaces ollama run

# chat quit
I'm trapped in this prompt
how do I get my shell back from the conversation
it keeps waiting for my next message, I am finished
get me out of here
leave
exit
I'm done talking, what now
close the conversation

# chat reset
it still remembers the old subject, make it forget
I want a clean slate without leaving
the old turns confuse the model
new topic in the same session
forget everything I said
clear
amnesia
start over
the conversation went wrong, can I begin afresh

# chat stop reply
it goes on and on, how do I shut it up without leaving
the reply is far too long, interrupt it
make it stop talking
enough, next question, but it still types
cut the answer off while it types
abort the current answer
it won't stop writing

# chat commands
which slash things can I type during the conversation
what can I type besides messages
slash commands
shortcuts in the conversation
special inputs of the terminal chat

# system message
the assistant should always be brief, where do I say that
it should speak like a pirate in the whole conversation
I want to give it a personality
instructions that apply to all turns
make it behave as a tutor from the beginning
where does "you are a helpful assistant" go
persona
standing instructions
tell it its role before I say anything

# generate
I have one piece of text and want it continued, nothing else
no conversation, just finish my sentence
one shot from a shell script
run the model once and exit
a single answer on standard output
one-off
non-interactive
how do I call it from a cron job with one text
I need the continuation of "once upon a time"
one question, one answer, then end the program
let it write on from where my text ends

# generate chat
the instruct model just babbles on instead of replying when I complete a prompt
my completion ignores the roles, it should treat the text as a user's message
a one-shot question to an instruct model gives rubbish without roles
how do I wrap a one-off prompt as a user's turn
treat each line of my file as a user's message
format the prompt like a conversation
the answer does not stop and invents new user turns
user turn in a single completion
make generate answer like the assistant would
turn the raw prompt into a conversation turn

# --chat-template
the roles are formatted wrongly, I have a corrected Jinja
I wrote my own Jinja for the roles
my fine-tune uses another prompt format than its base, where do I say so
the format of the turns that ships with the weights is broken
I have a .jinja from the model's card
replace the way in which messages become a prompt
use ChatML for a model that has something else
different turn markers
how do I make sure that my role format is used and not the one in the folder

# no template
the server says 400 for every conversation with my base weights
messages are refused, plain completions work
it complains that it cannot format messages
my pretrained base weights do not accept messages

# template source
from which file does it learn how to format turns
where are the turn markers read from
who decides how roles are written into the prompt
which file defines the format of a conversation

# template
I want to see the exact prompt that my messages become
how do my messages look after formatting
debug the prompt format
print the formatted conversation without running a model
are my roles formatted correctly, let me look
see the final text that the model gets
check the prompt that is built from messages

# several prompts
I have ten thousand questions in a spreadsheet export
there's a whole data set that I'd like answered overnight
not one text but hundreds
bulk
batch job
batch inference
offline inference
a thousand texts at once
without a server, go through all my texts
mass production of answers
how do I avoid starting it anew for every text
my loop in bash starts the program for every text and that takes ages

# stdin
pipe it
cat prompts | quire
read from a pipe
my other program writes the prompts, how do I connect the two
no file, the texts come from another process
dash as file name

# input fields
what may stand in a line of my jsonl
how should my file of texts look
format of the batch file
keys of one line of the batch file
what does a line of the file of prompts look like

# input sampling per line
some of my lines need more randomness than others
can each line of the batch have its own settings
different length limits for different lines
the texts of my file need different settings

# --format
I want to parse what comes out
output for a script
plain text is hard to parse
jsonl output
ids and finish reasons besides the text
structured lines instead of plain text on the terminal
how can my Python script read the completions
machine readable

# json output fields
which keys do the result lines have
how do I match results with my prompts
what does index mean in the results
what is sample_index
how do I tell the samples of one prompt apart in the file
what does a line of the results tell

# finish reason
did it run out of room or was it done
how do I see if it was cut off
why was my text cut in the middle
complete or truncated, how can I tell

# save output
I closed the terminal and everything was gone, how do I keep the results next time
put the results on disk
where do the results go
how do I get a file out of it
store the completions for later
nothing is written to disk, I only see text

# what is quire
a friend told me about this program, what does it do
what is it for
elevator pitch
one sentence about this program
summary
what would I use this program for
I found this binary on our server, what is it
explain this tool to my grandmother
is this a database or what
purpose

# why quire
we already have vLLM, why bother
what would I win by switching
my boss asks why we should change
pros
advantages
benefits
reasons to switch
what's special
sell it to me

# who are you
whom am I talking to
who is answering
are you a human
your name
introduce yourself
what's your name
which model is this that I'm talking with

# what can you do
what should I ask you
which tasks can I give you
what are you good at
where are your strengths
your skills
give me an idea of what to ask
how can you help me
capabilities

# quickstart
fastest path from nothing to a first answer
I've just cloned it, what's the first thing to run
zero to hello world
first steps
getting started
beginner
I am new, where do I begin
show me something that works, quickly
five minutes, what can I see

# help
I don't know the commands
I'm lost
how do I find out what the flags of a command are
documentation in the terminal
man page
where can I look up what serve accepts
overview of the flags

# all commands
what can I put after quire
list of verbs
subcommands
which tools are inside
overview of what the binary does

# docs
where can I read more
I prefer to read, where are the pages
handbook
manual
further reading
where is the documentation

# build
I have only the sources
from git clone to a program
no binary in the repository, what now
compile
make
installation
install
how do I turn the sources into something I can run
fresh Debian, the repository is cloned, and then

# which binary
it compiled, now where is it
after compiling I don't see the program
where's the executable
path of the executable

# build with cuda
my binary can't use the card, do I have to compile something
compile with GPU support
what must be there so that the card's code gets compiled
the build left the GPU part out

# build without cuda
I don't have an NVIDIA card, compile without that part
skip the GPU code, compiling takes too long
CPU-only build
leave nvcc out of it

# where to get models
I have no weights at all, what now
where do people download these things
do you have a model zoo
what's the equivalent of ollama pull
nothing on my disk yet, where do I get a Llama
hub
download
I typed meta-llama/Llama-3.1-8B and it said there is no such folder
from where do the weights come

# gated hub token
the hub says 401 when I download Llama
Meta's weights need a permission, how do I get them
access to the repository is restricted
the download is forbidden without a login
license must be accepted before the download

# no config json
it says config.json is missing
I gave the path of a .safetensors and it does not like that
"no such file config.json"
I pointed it at the parent folder, apparently
it doesn't recognize my folder as a model
which folder exactly do I have to name

# supported models
which ones can I run
does mine work
what's on the list of networks that it knows
before I download 100 GB: which families will run
compatibility
model list
architectures

# supported gpus
will my card do
which hardware do I have to buy
before I order a card: which one
is an old Pascal card enough
compatible cards
hardware requirements
compute capability

# can it run on a cpu
my laptop has no graphics card at all
I don't own a GPU
no NVIDIA here
the card is busy with another job, leave it alone and compute elsewhere
keep your hands off my GPU
there's no card in this machine
how do I make sure the graphics card stays untouched
a cheap cloud machine without accelerator
CPU
processor only
is a graphics card a must

# amd gpus
I bought a Radeon last year, was that a mistake
my Mac has an M2, does that count
Vulkan
ROCm
Metal
Intel Arc

# several gpus
one card is too small for my 70B, can I add a second
we bought a box with eight cards
my weights do not fit on a single card
multi-GPU
two cards
split it over cards
distribute
use all the cards that I have
only one of my four cards is busy

# which gpu
it takes the wrong card, the other one is free
card 0 belongs to my colleague
I want the second card, not the first
the big card is number 1
how do I make sure that it runs on the idle card
pin it to one card

# --device
I'd like to say myself where it computes
I want an error instead of the processor when the card is missing
never silently use the processor
it should insist on the card
how do I make sure that it uses the card and does not compute on the processor

# gpu not found
it is awfully slow and nvidia-smi shows 0 %
I have a 4090 but everything runs on the processor
my card sits there doing nothing
nvidia-smi lists it, but the program doesn't see it
the log says it computes on cpu although a card is there
no card detected
why is my expensive card idle
since the driver update the card is ignored

# out of memory
it dies when it starts and says something about memory
the card is too small, apparently
"CUDA out of memory"
OOM
std::bad_alloc
the kernel killed the process
killed
not enough RAM
8 GB of VRAM and it does not start
I can't get it to start, it wants more than my card has
how do I squeeze it into 12 GB

# doctor
is my machine good enough
something's wrong with my setup, where do I begin
is there a way to see what works here and what doesn't
before I start: does everything work
troubleshooting
diagnosis
selftest
what did you find on this computer
report for a bug
tell me what this computer is capable of
which libraries are missing here

# doctor model
will my weights fit before I try
how much memory would this checkpoint take on this machine
I'd like to know beforehand whether it fits
dry run
look at a checkpoint without starting it
is this folder all right
"""

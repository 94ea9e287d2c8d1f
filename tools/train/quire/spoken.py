"""Goals and symptoms as people say them who do not know the words of the docs, for topics of the other files."""

SPOKEN = r"""
# quickstart
I just cloned [this|it|the repository], what [do I type|comes] first
I have the sources, what [now|is the first thing to run|do I do with them]
[fresh|new] checkout, what next
what do I type after git clone
[from nothing|from zero] to a first answer, how
*I [sit|stand] in the cloned folder and do not know what to type
one line that sets everything up

# which binary
where does the compiled program [end up|land|go] on my disk
[the build|it] finished, where is the [program|executable|result]
*the build is done but my shell says quire: command not found
the compiler is done, what do I start now
in which folder is the [finished|built] program
which file of the build do I run

# update
there is a newer version, how do I get it
my copy is months old, how do I bring it up to date
how do I [move|go] to the newest sources

# uninstall
how do I get rid of all this
[remove|throw away] everything that it put on my disk
I no longer want it on this machine

# can it run on a cpu
I have no [graphics card|GPU|video card] at all, is that a [problem|show-stopper]
is a [graphics card|GPU] required
[without|with no] [graphics card|GPU|NVIDIA card] too
do I [have to|need to] buy a [graphics card|GPU]
my [office PC|server|laptop] has only a processor, will it do
must there be a card in the machine

# cpu needed
is my [old Xeon|ten year old processor|cheap laptop|i5] [good|new] enough
which [processors|CPUs] are too old
do I need AVX-512

# platforms
can my [MacBook|Mac|iMac|Windows PC|Surface] run this
will it run on my [Raspberry Pi|phone|Mac mini|Chromebook]
what operating system does it want
[macOS|a Mac|FreeBSD|ARM|aarch64]
which Linux should I install for it

# windows wsl
I only have Windows with a Linux inside it
does it run in WSL2
my work PC has Windows 11 with Ubuntu in WSL

# license
may we put it into our paid [app|product] without [telling anyone|publishing] our source code
do we have to publish our source code if we use it
is this free for my company to use
may we [sell|ship] a product that contains it
does it cost [anything|money]
[am I|are we] allowed to [change|modify|redistribute] it
what does our lawyer have to read
may I use it for money
commercial use
which open source license is this

# is quire a model
what's the difference between you and quire
are you and quire the same thing
is it a program or a [network|model|brain]
am I talking to quire

# who are you
what am I talking to
are you a [robot|human|program]
what are you called
tell me your name
introduce yourself

# what can you do
what are you good at
give me an idea of what to ask you
what kind of questions do you answer
what should I ask you

# what can you not do
why don't you know [anything|the world|normal things]
what is beyond you
what are your weak points
can you chat about anything

# embedded nonsense
I asked for the capital of [France|Spain|Peru] and it wrote [rubbish|garbage|nonsense|a number]
it can only do sums, where is the [real|big|clever] one
*it answers everyday questions with [numbers|sums|nonsense]
why is the built-in one so stupid
the model inside knows nothing about [history|cities|animals|people]
it calculates when I want to talk
I want a clever model, not this toy

# chat
how do i have a conversation with it [in my console|on the command line|in a terminal window]
I want to type and get replies, over and over
talk back and forth
a dialogue in the shell
question and answer, one after the other, in the terminal

# chat quit
I want to leave the chat, which key
how do I get out of [here|the chat|this conversation]
which key ends the [chat|conversation]
*I am stuck in the chat and cannot get back to the shell
close the conversation and go back to the shell
how do I say goodbye and return to my prompt

# chat stop reply
the answer is far too long, make it shut up [mid-sentence|now|at once]
*it talks and talks and I want it to stop
interrupt it while it is [talking|writing]
cut it off without leaving the chat
stop [this endless answer|the flood of words]
which key cuts off an answer

# chat reset
I want to begin afresh in the same window
start over without closing it
wipe [the slate|what we said so far|the conversation] clean
new subject, forget the old one
*it keeps coming back to what I said before
blank conversation please

# chat regenerate
can you redo your last reply
give me another version of that answer
I did not like the answer, try once more
same question, different answer please
let it answer again without typing the question again
a second attempt at the last message

# chat save
keep what we said in a file so I can carry on tomorrow
write our conversation to disk
I want to continue this talk [tomorrow|next week|on another day]
store the conversation and open it again later
how do I pick up a conversation from yesterday
put this chat into a file

# --no-history
don't remember what I typed after I close it
nobody should see later what I typed
my messages must not be kept on disk
the arrow key still shows my messages from last week, how do I avoid that
leave no trace of what I asked
private session without a record

# chat new line
how do i write two lines before sending
my message has [several|three] [lines|paragraphs], Enter sends it too early
*it sends as soon as I press Enter
[a line break|a second line] inside my message
type a poem of four lines as one message

# chat stats
how quick was that answer
how full is the context by now
tokens per second of the last reply
is there still room in this conversation

# chat commands
what can I type with a slash
which slash commands are there
what else can I do inside the chat

# system message
I'd like the bot to always talk like a [pirate|lawyer|child|poet]
give it a [role|character|personality|standing order]
it should always answer in [one sentence|French|rhymes]
tell it once how to behave
instructions that hold for the whole talk
set the tone of all answers

# supported models
which brands of models can I load
what can I feed it
which families of weights run
what sort of models does it eat
will it run the model that I have in mind

# llama
my folder has Meta's model
the model by Meta with 8 billion parameters

# other models
[phi|falcon|deepseek|mixtral|gpt-oss|bloom] is what I have
does it run [phi|falcon|deepseek v3|glm|gpt-oss]

# gguf
my folder only has .gguf files
the file ends in gguf
I downloaded a q4_k_m file
my llama.cpp file
can I reuse the file I had in llama.cpp

# pytorch bin
I've got pytorch_model.bin only
there are only .bin files in the folder
the checkpoint is a .pt file
pickle weights

# quantization
4 bit, 8 bit, something smaller
AWQ and GPTQ checkpoints
the weights are too large, is there a compressed form
can I halve the size of the weights
int8 weights

# lora
I trained a small adapter on top of the base weights
several fine-tunes on one base model
adapter_model.safetensors

# moe
Mixtral or Qwen3-30B-A3B
a model with experts

# vision
can it look at [pictures|photos|a screenshot|my cat]
describe a [picture|photo|video]
[understand|transcribe] [speech|audio|a recording]
I want to upload a photo and ask about it

# offline
does it need [an internet connection|the internet|a network] once installed
will it phone home
our machine has no internet
does it send anything to somebody
air-gapped machine
is my text sent to the cloud

# resume a pull
download of 20 GB broke off at half, must I begin again
my connection dropped in the middle of the download
continue [a broken|an interrupted|a half-done] download
*the download stopped at [90|60|50] percent
I pressed Ctrl-C while it fetched a model

# cache of models
which folder do downloaded models land in
where are the gigabytes that I downloaded
my home disk is full of models, where do they sit
[put|keep] the downloads on [another|a bigger] disk

# gated hub token
how to fetch something behind a licence wall on huggingface
[the hub|huggingface] says 401 or 403 for a model
the model wants me to agree to terms first
Llama asks for permission before I may download it
my own private repository on the hub
where do I put my hf_ token

# other hub
our country blocks huggingface, can I take a mirror
the company's proxy is in the way of the download
we have our own [mirror|copy] of the hub
download through a corporate proxy
*the download cannot get through our firewall

# revision of a download
I want the version from last month of a model
a branch other than main of a model on the hub
fetch one exact commit of the weights

# --max-workers
too many files come at the same time when I download
fetch one file after the other
make the download use fewer connections

# where to get models
where do I get something to run
I have no model yet
how do I fetch [Qwen3|Llama|Gemma|a model] to my disk
get weights onto this machine

# all commands
show me all the words I can put after quire
what subcommands are there
which verbs does the program know
the complete list of what I can run
everything that comes after the word quire

# help
where do I read what a command's options are
explain the options of one command to me
built-in manual
what can I write behind serve

# exit codes
what does exit status [1|2|130] mean
my script needs to know whether it worked
what number does the program return when it fails
$? is 2

# doctor
how do I see whether my pc is good enough
check my computer before I start
is everything there that it needs
tell me what is wrong with my setup
which parts are missing on this box

# listen everywhere
how do other computers [in my office|at home|in the network] reach it
it should answer on the whole network, not only here
serve the whole [office|house|department]
let my phone talk to it

# protect the server
only people with a [password|secret] should get in
lock strangers out
not everybody may use it
it must not be open to the whole world
ask everybody for a secret

# send key
where in my request does the password go
how does my app show its secret
in which header do I put the secret

# change keys
change the passwords without downtime
a secret leaked, how do I replace it
throw out one customer's secret while it runs
[swap|rotate|renew] the secrets

# key storage
can an admin read the secrets in memory or logs
are the secrets kept in plain text

# 429
colleagues complain they get 429 [at lunch time|in the afternoon|when it is busy]
"too many requests"
clients are turned away when it is busy
it says try again later
*some calls are refused at peak hours

# too much load
what happens when everybody comes at once
how does it behave in a rush
a stampede of users

# --max-num-seqs
how many users can be served at the same moment
answer more people in parallel
how many talk to it at the same time
raise the number that run side by side

# --max-concurrency-per-key
one customer hogs everything, limit him
fair share for each customer
no customer may take all the slots
cap what a single secret may use

# --max-connections-per-peer
a single machine opens thousands of sockets
bound what one IP address may open
one address floods us

# --max-num-queued-reqs
let more people stand in line
how long may the line of waiting calls be
a longer waiting room

# tls
I need encryption on the wire
nobody may listen in between
the padlock in the browser
make the URL begin with https
traffic must not be readable on the way

# tls reload
*the browser still shows the old certificate after the renewal
our certificate renews every [60|90] days, must I restart
certbot writes new files, what then
new certificate, old server
the certificate expires tomorrow, does the server need a restart

# self signed
I have no certificate, only for a test
make a certificate for localhost

# systemd
it should survive when I close my laptop
*the server [was dead|stopped] after I closed the ssh session
keep it alive when I log out
run it at boot under linux
start it by itself when the machine comes up
after a reboot it should be there again
restart it when it dies
make it a background service
daemon

# stop server
how do I shut it down without hurting anyone
end it gracefully
turn it off politely
switch the service off

# --drain-timeout
how long do ongoing answers get when I [deploy a new version|restart it|stop it]
give running answers more time before it goes down
answers are cut off when I restart
[wait longer|two minutes] for answers in progress at shutdown

# drain
what happens to running answers when it is told to stop
do I lose answers when it goes down

# reload
can I reload settings with kill -HUP
apply new flags without a restart
change a setting while it runs
does SIGHUP do anything

# config file
is there a [yaml|toml|json|ini] I can put the settings into
the command line gets too long, can I write it into a file
where do I keep my settings

# docker
how do I build a container
run it in a container
[podman|docker|compose]
is there an image to pull
a Dockerfile

# kubernetes
k8s yaml: which path for [liveness|readiness|the probes]
livenessProbe and readinessProbe
what do I write into my [deployment|helm chart|pod spec]
probes for a pod

# ready
what should the load balancer poll
when may traffic be sent to it
the model is still loading, how does my balancer know
is it up yet

# health
how does a watchdog know that it is dead
is the process still all right
heartbeat
how do I notice that it hangs

# --gpu-memory-utilization
it takes all the GPU's memory, I want to leave some for another process
leave room on the card for [my desktop|another program|a game]
take only [half|a third|30 percent] of the card
it grabs the whole card

# which gpu
pin it to the second GPU
I have two cards, use the other one
do not touch card 0

# --threads
use just [8|4|2|two|four] cores
leave some cores to others
it eats all my processors
*the whole machine is busy when it computes

# several gpus
can I spread a 70B over four cards
two cards for one model
[split|spread|divide] a model over [two|four|eight] cards
my model is too big for one card, I have two
does it use both of my cards

# out of memory
it dies at the start for lack of memory
out of memory while starting
not enough memory to start
the model does not fit

# memory of model
how much RAM does a 7B need
how big a card for 8 billion parameters
will 24 GB do for a 13B

# slow generation
one word per second, why
it crawls
*the words come very slowly
it takes forever
speed it up please

# several models
two models on one machine
can it hold a small and a big model at once
switch between models in one server
serve llama and qwen together

# port in use
the door number is taken
port is already taken
address already in use
bind: address in use
*something else sits on 8000

# 413
my requests are very big, 50 MB, refused
request entity too large
a huge prompt is turned away by the server
I post a whole book and it is rejected

# --max-request-bytes
let clients send bigger bodies
allow a body of 100 MB
how large may a request be

# 415
it wants another content type
unsupported media type
got 415 back

# 500
where do I find what went wrong with a 500
internal server error, where is the reason
the server itself failed, what was it

# 503
which http status when it is shutting down
service unavailable
it says unavailable for a while after I stop it

# 401
it says unauthorized
why am I not let in
my secret is not accepted

# 403
forbidden
it refuses my domain name

# logs
do the logs contain what my users ask
where do the messages of the server go
is there a log file
what is written down about each call
are prompts stored anywhere

# --log-format
I want log lines [a machine|a script|Loki|Elastic] can parse
structured logging
log lines as objects

# --log-level
quieter logs please
too many lines on my screen
less chatter
more detail while I look for a fault
only show what goes wrong
silence the server

# request id
find one user's call in the log
follow a single call through the log
trace id of a call

# metrics
how do I graph tokens per second over time
numbers for Prometheus
watch it from outside
statistics of the server
what does the scraper read

# grafana
is there a ready-made dashboard
pretty charts without work
panels that somebody has already made

# metric kv
which number tells that the cache is full
how full is the memory for past tokens
gauge of the cache's filling

# metric running
what tells me requests are queueing up
how long is the line right now
how many are being answered at this moment, as a number
number of waiting requests

# metric ttft
what's the first-token time of my users, in which metric
how long do users wait for the first word
which graph shows the wait until the first word

# metric itl
how long between two words, as a metric
the pace at which words come, in which graph

# metric tokens
how many tokens did we produce this month
total of generated words for the bill
count what was read and written in all

# metric hang
how do I know the engine is stuck
which counter stands still when it hangs
detect that nothing moves any more

# metric http
how many calls were refused today
count the errors that clients saw
which counter has the status codes

# metric prefix
how often does the shared beginning pay off
is the reuse of prompts worth it, in numbers

# streaming through proxy
nginx in front makes the words come all at once
behind the proxy the reply arrives in one lump
*the text comes in one block when it goes through [nginx|our proxy|Cloudflare]
words pile up in the proxy

# reverse proxy
put nginx in front of it
caddy or haproxy before the server
what must my proxy be told

# trusted proxies
the log shows 127.0.0.1 for everybody because of the proxy
who really called, behind the proxy
all callers seem to be the proxy
see the real address of clients

# load routes
my router asks how busy the server is
tell a gateway how many calls are in flight

# disconnect
a client hangs up in the middle, does it keep burning compute
the user closed the tab while it was writing
what if the caller goes away
does it go on when nobody listens any more
a caller gives up, is the slot freed

# slow client
a caller with a bad line takes minutes to read
what about somebody who reads drop by drop

# timeouts
how long can an idle connection stay
when does it hang up on me
does it end a long answer after some time

# bench serve
how fast is my server under [50|100|200] users, test it
put stress on the running server
simulate many users
load test
how many users can it bear

# bench throughput
how many tokens per second does this box make
what can this hardware do at full steam
which of two machines produces more tokens

# bench latency
how long does one batch take
time a single answer

# packages
how do I make a package for the servers that have no compiler
something to install on ten machines
ship it to colleagues who cannot build it
an installer
[deb|rpm|installable] file

# copy binary
can I just scp the program to another box
put the one file on a USB stick
what do I take along to another machine

# openai client
what do I put as base url in the python openai package
from openai import OpenAI, then what
my code uses the openai package, how do I point it at my box

# openai key dummy
which key if I set none
the client wants a key but there is none
the library complains about a missing key

# streaming
I want the words to appear as they are made
show the text while it is being written
word by word
typewriter effect
not wait until the whole text is there

# stream usage
tell me how many tokens a streamed call cost
usage is missing when I stream
count tokens of a streamed reply

# usage
we get billed per token by our tool, where do I read the count
what did this call cost in tokens
how many tokens did I use
where is the token count in the reply

# json schema
there must be no chatter in front of the JSON
I'd rather not see "sure, here is" before the object
reply must be valid json of my schema
I need fields name and age and nothing else
the reply must fit my pydantic class
force the shape of the object
guarantee that the output parses into my type

# json object
any valid JSON will do
reply with some object, no schema

# choice
only answer yes or no, enforced
one of my five labels and nothing else
pick from a list that I give
restrict it to [positive or negative|true or false|three words]

# regex
answer must be [a phone number|a date|a zip code|an IP address] format
the output has to match my pattern
only digits in the answer

# grammar
the output must be valid [SQL|arithmetic|my own language]
constrain the text by BNF rules

# truncated json
the JSON stops in the middle
finish_reason is length, what now
the closing brace is missing
*my parser fails because the object is cut off

# tools
my function should be called by the model
let it look up the weather with my code
function calling
give the model something it can call
it should be able to use my calculator

# tool choice
force it to use my tool
it must call the function, not talk
forbid tool use in one request

# tools 400
it says that the template does not read tools

# messages api
does [claude's sdk|the anthropic package|Claude Code] work against it
the anthropic client with my own model
speak the protocol of Claude

# ollama api
can I point my ollama app at it
programs made for ollama
a tool only asks for an ollama host
OLLAMA_HOST

# responses api
client.responses.create
the newer API of OpenAI
does it have /v1/responses

# --max-stored-responses
previous_response_id is refused
continue from an earlier response by its id
keep responses on the server for the next call
why is store always false

# embeddings
I need vectors for my search index
turn sentences into numbers for similarity
semantic search
vectors of text
RAG: I need to index documents

# reranking
sort these passages by relevance to a query
which of my documents fits the question best
order search results
score pairs of query and document

# no thinking
hide the chain of thought
switch the pondering off
it thinks for ages before it answers
answer right away, do not ponder

# reasoning
where is the thinking text in the reply
separate the thoughts from the answer
I see no thoughts in content

# logprobs server
how do I get the probabilities of each word
how sure was the model of each word
confidence of the answer

# n samples server
five different answers to one question
several candidates from one call
three alternatives in a single request

# determinism
same answer every time please
will two runs give the very same text
is it repeatable
do neighbours in the batch change my text

# --seed
repeat a random result exactly
get yesterday's random text again
pin the dice

# greedy
no randomness at all
always the most probable word

# --temperature
make it more [creative|adventurous|wild|boring|sober]
how random is it
less fantasy please

# --max-tokens
answers end too early
let it write longer
at most 50 tokens per answer
shorter answers
it stops after a few sentences

# max tokens server
max length of an answer when I set nothing
my completion ends after 16 tokens
*replies over HTTP are very short

# --stop
end at the first [blank line|newline|full stop]
halt when it writes a certain word
it should stop when it writes END

# --repetition-penalty
it says the same thing again and again
it loops
*the text repeats itself
stop it from going in circles

# --bad-words
never say a certain word
forbid some words
censor a brand name

# --logit-bias
make one token more likely
push a token up or down

# --allowed-origins
my browser app gets blocked by CORS
a web page on another domain cannot call it
Access-Control-Allow-Origin
fetch from my React app fails

# --allowed-hosts
it answers 403 when I use my domain name
the host name of my proxy is refused

# model not found
got 404 for model name
the model does not exist
which name do I have to give for the model

# tokenize route
how long is my text in tokens over http
count tokens by an HTTP call
token ids from the server

# count tokens
how many tokens does my text have
does my text fit
length of a text in tokens

# lists of messages
does it remember earlier turns if I only send the last message
must I send the whole conversation each time
it has forgotten what I said in the call before
is there a session on the server
*each call starts from nothing

# cache salt
two users must not see each other's cached prompts
could timing show what others asked
separate the caches of two tenants

# --allow-request-priority
some of my requests are more urgent
let important calls jump the queue
VIP requests first
background jobs should give way

# openapi json
is there a swagger file
a machine-readable description of all routes
generate a client from a description

# routes
which URLs can I call
list of all endpoints
what paths are there

# other apis
websocket
is there anything besides HTTP
batch API

# context too long
my document is longer than the model can take
the prompt does not fit
*it refuses my long text

# max model len refused
it will not let me ask for a longer context

# --max-model-len
my texts are short, use a smaller window
limit how long a conversation may get
shorten the context to save memory

# prefix caching
all my prompts begin with the same long text
the same system prompt in each call, is it computed again
why is the second call with the same beginning faster

# --kv-cache-memory
decide myself how much memory past tokens get
make the cache exactly 8 GB

# --kv-cache-dtype
store past tokens in fewer bits
halve the cache

# --speculative-config
how do I switch on guessing several tokens ahead
guess tokens from the prompt
make a single stream faster without another model
drafting tokens
copying long passages goes slowly, can it guess ahead

# draft models
are drafts of a small model supported for speed
a small model that helps the large one
eagle heads

# chat page
is there something to click on
a web page to talk to it
open it in my browser
does it have a user interface
I do not like terminals

# one test
how do I run a single [unit test|test]
only the scheduler's tests
run one test again

# tests
run the whole test suite
check that I broke nothing
is everything green
before I send a patch, what do I run

# fuzz
I changed a parser, how do I hammer it with random bytes
throw garbage at a reader of files
feed random input to the parsers

# sanitizers
check for races between threads
find memory errors in the tests
use after free, how do I find it
run the tests with address checks

# debug build
how do I step through it with gdb
build without optimization
breakpoints in the code
lldb

# compiler
which C++ standard and compiler
is clang fine
does gcc 11 do

# repository layout
where does the source of the [scheduler|server|tokenizer|sampler] live
which folder holds the [kernels|parsers|tests]
find my way in the tree
what is in which directory

# life of request
which page shows a request walking through the code
follow a call through the source
I want to read the code, in what order

# architecture
how is it built inside
the big picture of the code
why is it cut into these modules
design document

# glossary
what does the word 'preempt' mean in this code
I do not know the terms of the sources
where are the words of the project explained

# contributing
I want to help, how do I begin
first hour with the code
send a patch
how do I take part

# security report
I found a hole that leaks prompts, whom do I tell
report something dangerous in private
I can crash the server from outside, who should know
vulnerability

# bugs
it crashed, where do I tell you
something is broken, who fixes it
where do I complain

# cpp library
how do I embed the engine in my own C++ app
use it without a server from C++
call it from my program in the same process

# find_package
link against it with cmake
my CMakeLists should find it
use the installed library in another project

# dependencies
what third party code is inside
which libraries does it pull in
what do I have to install to compile it

# presets
which build variants are there

# changelog
what is new
what changed since last time

# next features
what is coming next
what do you plan
which features are on the way

# migration
I come from vllm, what is different
my vllm command line, does it work here
what do I have to change when I switch from another server

# supported gpus
for which cards do you have kernels
which graphics card should I buy for it
which NVIDIA cards will do

# template
can I see the exact text that is sent into the model after the roles are added
what does the model really get to read
show me the finished prompt with all its markers
the text behind my messages

# detokenize
back from a list of numbers to words please
which words are these ids
[15339, 1917|128000, 9906|12, 7, 42] as text
I have ids and want to read them

# tokenize
what are the ids of a sentence
which numbers does a word become
cut a sentence into its pieces

# gated training
can it be trained further with my data
teach it my documents
fine-tuning on our own texts
let it learn from my chats

# tune
measure once, then always use the quickest kernel
find the best kernels for my card
which kernel is best on this card, measured

# parallel tool calls
two tool calls at once, how do I forbid it
only one function per reply
it calls three tools in one go

# continue final message
continue the assistant's half sentence
I begin the answer and it goes on
put words in its mouth and let it finish

# eval
how good is it at math, in numbers
how many school problems does my model get right
score my model on grade school problems

# how is backend chosen
it picks something itself, by what
who decides which kernel runs
how does auto choose

# --served-model-name
give the model another name to the outside
clients should see a nicer name
I renamed the folder and my clients still ask for the old name
pretend to be gpt-4

# --uds
the socket file instead of a tcp port
no port at all, a file please
only local programs over a file

# suffix
can it fill in the middle of code
complete between two pieces of text

# echo
get the prompt back together with the completion
repeat my prompt in front of the output

# functions field
function_call field rejected
my old code sends functions

# several prompts
1000 prompts in a file, answers overnight
work through a long list of questions
a whole file of prompts in one go

# save output
answers into another file
redirect what it writes to disk

# stdin
pipe prompts into it from bash
feed it from another program

# --load-format
random weights to test speed without downloading
try the speed of a model that I do not have

# completion
I need shell tab completion
the tab key should finish my flags

# save model
I want to convert the model to another format
write the weights out in another form

# --tuning-table
use the measurements of last week again
where do I give the table that I measured

# --max-total-request-bytes
many big bodies at once fill the memory
bound what all waiting bodies take together

# schema of the page
does the chat page load anything from elsewhere
does the page need the internet

# chat completions curl
an example call with curl for messages
one line to ask the server from a shell

# open webui
a nicer chat front end than the built-in page
LibreChat or Open WebUI with it

# amd gpus
Radeon, Arc or Apple's chips
ROCm
MI300X

# what is quire
what did I just install
in one sentence, what is this thing for
what would I do with this program
my boss asks what this is

# why quire
why not just take [vllm|ollama|llama.cpp]
what makes this one special
sell it to me
what do I gain by switching

# programming language
what is it written in
is there Rust or Go in it

# python needed
do I have to install Python first
no pip, no venv, will it run
is there torch underneath

# version
how old is my copy
which release is on this box
is my copy the newest, what does it say it is

# training data
what were you fed with
did you read the internet
which texts did you learn from

# how large are you
how many weights do you have
are you a big one
are you smaller than GPT

# language
do you understand [German|Spanish|French|Chinese]
parlez-vous anglais
sprichst du Deutsch
can I write in my own language

# formats
what does a folder with weights have to contain
which files do I need for a model
which files should lie next to the weights

# dtypes
can I force half precision
run a float32 checkpoint in bfloat16
which number formats do the weights have

# model by name
do I have to write the whole path of the weights
call a downloaded model by its name
I know the name on the hub, not the folder

# startup time
how long until the first word after the start
is it slow to start
why do the first seconds on the card take so long

# performance
is it quick
how does it compare with llama.cpp
has anyone measured it
benchmarks that you publish

# silent fallbacks
does it ever do something else than I asked, without telling me
will it quietly ignore my setting
what if an option cannot be honoured

# docs
where can I read more
is there a handbook
which page do I read first

# remote code
could a model that I downloaded run evil code
is it dangerous to load a stranger's weights
trust_remote_code

# load own model
I have weights in a folder, now what
use the files that I downloaded myself
take my weights instead of the small one

# serve
other programs should be able to ask it
put it behind a URL
I want an endpoint for my app
run it as a web service

# generate
one question, one answer, then back to the shell
a single answer from a script
finish this sentence for me in the shell
no chat, only one completion

# generate chat
*it continues my question instead of answering it
my one-off question should be treated like a chat message

# --chat-template
I have my own Jinja file for the roles
the roles are formatted wrongly, I have a better file

# no template
*chat requests get 400 because the base model has no roles
a base model and chat requests

# input fields
what may stand in a line of the prompts file
which keys does a line of my file have
a seed or a temperature for one line only

# json output fields
what do I find in each line of the result
which fields does the result have

# finish reason
why did it stop
how do I know whether it ended by itself or was cut

# doctor model
will this model fit on my machine
how much memory would it plan for my weights
check a folder of weights before I serve it

# bench attention
compare the kernels of my card
which kernel is faster, side by side

# bench rate
send five calls a second at it
a steady stream of test calls

# bench sharegpt
test with real dialogues
realistic conversations for the load test

# bench json
put the measured numbers into a file
I want to plot the measurements later

# bench profile
which kernel eats the time
where does the GPU spend its time

# lm eval
MMLU or HellaSwag on it
run a public leaderboard test against it

# list models
which models do I have
what is on my disk already
which model does the server run

# sizes
how do I write two gigabytes
is 4G with 1000 or 1024
what does the M mean in 512M

# quire without args
I typed quire and nothing useful came
what do I type after quire

# unknown flag message
it does not know my option
*it says that the argument was not expected

# any free port
any port will do
pick a port for me

# --api-key
a single secret for a quick test
set one key on the command line

# --tool-call-parser
*the call of my function comes as plain text
my model writes its calls in hermes style
the calls are not recognized in the reply

# --reasoning-parser
*the thoughts are mixed into the answer
my model thinks between tags

# --num-workers
more threads for cutting text into tokens
the tokenizing cannot keep up

# --num-io-threads
more threads for the network

# --model
where do I name the weights
tell it which weights to take

# long context
does it really use all 128k
a context of 100,000 tokens
*it says that the context shrinks because of memory

# --allow-long-max-model-len
go beyond what the model was trained for
a longer window than the model says

# --max-num-batched-tokens
bigger steps
a long prompt delays everybody else's words

# --device
force the processor although there is a card
I insist on the card, never the processor
choose between card and processor

# --attention-backend
I want to pick the kernel by hand
use flashinfer and nothing else
always take the same kernel

# attention backends
which kernels can I choose from
names of all kernels for attention

# cuda graphs
what does it capture at the start
why does it record the launches

# --enforce-eager
the capture at the start takes too long, skip it
no graph capture please

# --top-p
cut the unlikely tail of words
nucleus

# --top-k
only the forty best words
limit the choice to the best few words

# --min-p
throw out words that are much less likely than the best

# --ignore-eos
never stop by itself
go on until the token limit, whatever happens

# --min-tokens
at least a hundred words please
*the answer is empty

# --n
three versions of one completion in the shell
several tries at once

# --logprobs
how likely was each word, in the shell
print how sure it was

# --presence-penalty
talk about new things
use more different words

# --allowed-token-ids
only these token numbers may come out

# --no-skip-special-tokens
I want to see the <|im_end|> in the text
show the invisible tokens

# generation config
where do the default temperature and top p come from
the model's author recommends a temperature, is it used

# sampling parameters
what can I tune about the randomness
all knobs of the sampling

# unsupported samplers
mirostat
typical p, top-a or DRY

# beam search
best of five beams

# logits processors
my own Python function on the scores

# completions curl
an example call with curl for plain text
continue a text by a call from the shell

# openai api
will my existing chatgpt app run with it
is it a drop-in for the OpenAI server
same protocol as OpenAI

# structured output
the answer has to follow a fixed form
make the model obey a format
guided decoding

# schema keywords
my schema is refused because of a keyword
uniqueItems in my schema

# unknown fields
I sent a field that does not exist
what if my client sends extra fields

# request limits
how many messages may one call have
how many tools may I declare
how big may n be

# detokenize route
ids back to text over http

# version route
ask a running server how old it is

# tracing
opentelemetry
spans and traces

# client certificates
mutual TLS
clients should show a certificate

# 400
it says bad request
one of my fields is wrong, which

# 405
method not allowed
I sent GET to a chat route

# 408
request timeout while I upload

# 431
my headers are too long

# error body
what does an error look like in JSON
parse the error in my client

# listening on loopback
can a stranger on the internet reach it right after the start
is it open to the network by default
is the default setting safe

# build
compile it
make the program from the sources
how do I build it

# build packages
which packages does the script install
what will it put on my system

# build with cuda
compile it for my card
the build left out the GPU part

# build without cuda
nvcc is there but I do not want the GPU part
a build for processors only

# cuda architectures
build for a card that is not in this machine
compile for A100 and H100 together

# binary for other gpu
*it says that the program was built for another card
I copied it to a box with a different card

# nvcc missing
*the build says that there is no CUDA compiler
where do I get nvcc

# cuda runtime
what must be installed on a GPU box to run it
do I need the whole CUDA toolkit to run it

# gpu not found
*it runs on the processor although there is a card
it does not see my card
nvidia-smi shows the card but the program does not use it

# runtime packages
which shared libraries does the copied program want
*error while loading shared libraries

# system install
put it into /usr/local
make install

# deb package
install it with apt
a package for Debian

# python wheel
install it with pip
pip install quire

# tarball
an archive to unpack
no root rights, how do I install it

# other packagers
brew, conda or snap
is it in a package manager
rpm for Fedora
nix

# other distributions
Arch, Fedora or openSUSE
I have Rocky Linux

# client tests
test with the real openai package
check that other people's clients work

# xgrammar missing
*the build complains about XGrammar
the grammar library is not there

# build downloads
does the build fetch things from the net
can I build without internet

# no config json
*it says has no config.json
the folder lacks config.json

# unsupported architecture
*it says unsupported architectures
my model's kind is not known to it

# connection refused
*curl cannot connect
is the server there at all
nobody answers at port 8000

# throughput advice
get more out of the card
more tokens per second for many users
raise the total output

# latency advice
each word should come sooner
lower the delay between words
a snappier feel for a single user

# garbage output
*my model writes garbage
the words make no sense with my own weights
endless nonsense from my own model

# git lfs pointer
*the weight file has only 130 bytes
safetensors file is a tiny text

# truncated weights
*it says the weights end too early
my download seems broken

# foreign flags
my old vllm option is refused
--swap-space and other options of other programs

# ollama
ollama run, but here
what is ollama pull here

# kernel compile
does it compile anything when it starts
no JIT on our machines

# cpu offload
half of the layers on the card, half in RAM
my card is too small, use RAM for the rest

# huge pages numa
two sockets, bind it to one
NUMA node

# several requests file error
one bad line in my file, is all lost
a wrong line among a thousand

# interrupt generate
I pressed Ctrl-C in the middle of the file
are the finished answers lost when I stop it

# kv cache what
where does it remember the tokens so far
what takes so much memory besides the weights

# continuous batching
do short requests wait for long ones
how do requests get mixed

# preemption
what if the cache is full in the middle of an answer
are answers lost when memory runs out

# chunked prefill
does one long prompt block the others

# python binding
import quire in Python
call it from Python without a server
"""

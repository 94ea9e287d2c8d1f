"""Needs of those who send requests or sample text, in their own words, and pairs that share words but not the answer."""

DEVELOPING = r"""
# openai client
my Python code talks to OpenAI today, what must I change
from openai import OpenAI
the official Python package shall use my box instead of the cloud
which base URL do I put into my code
my script uses OpenAI's package, point it here
existing app on GPT-4, how do I redirect it
Python client
SDK
sample code in Python
how do I make sure that my script talks to my box and not to the cloud

# openai key dummy
the package insists on a key but my server has none
"The api_key client option must be set"
OPENAI_API_KEY missing, what do I put there
my tool demands a key although I configured none on the server
placeholder for the key
the client refuses to start without a key

# openai api
are my existing OpenAI programs going to run unchanged
drop-in replacement for the cloud
compatibility with ChatGPT's API
which protocol does the server speak
will tools made for ChatGPT's API work

# other apis
gRPC
batch files like OpenAI's /v1/batches
assistants API
websocket

# messages api
I use Claude's client library
my code was written for Claude

# responses api
our app calls responses.create
the SDK's new default is Responses

# chat completions curl
one-liner that asks the running server something
hello world over HTTP
a request by hand to see if it answers
curl
example of a request with roles
POST example
first request to the server, what do I type
minimal JSON for a question to the server
say hello to the server from a shell

# completions curl
raw text continuation over HTTP, no roles
curl for plain text without roles
the old kind of OpenAI call with a prompt string
prompt string in a POST

# routes
which URLs are there
list of all paths
what else does the server offer besides chat
API overview
endpoints
every URL of the server

# openapi json
Swagger
machine-readable description of the API
generate a client from a specification
schema of the API for Postman
API spec

# chat page
is there something to click
my wife won't use a terminal
a web UI
GUI
browser
try it with a mouse
frontend
user interface
demo page
without any programming, from the browser

# open webui
we have a nicer front end already, connect it
LibreChat
Open WebUI
third-party user interface

# streaming
the user stares at a blank screen until the answer is done
everything arrives at once at the end, I want it word by word
typewriter effect
SSE
EventSource
server-sent events
words should appear while it thinks them up
I don't want to wait for the whole answer
long answers feel slow because they come in one piece
chunked reply over HTTP
incremental delivery
partial results
live

# stream usage
how many tokens did it cost, I get them word by word
no token counts when I get it word by word
billing when tokens arrive one after the other
the last chunk should tell the counts

# usage
how many tokens did my call cost
billing
token counts in the reply
how long was my prompt, the response should tell
how do I charge customers by token

# max tokens server
my API answers end after a few words
only 16 tokens come back from the completion
bound the length of a reply over HTTP
replies over HTTP are cut in the middle
how do I get longer replies from the endpoint
shorter replies for one call

# --max-tokens
the text on my terminal stops too early
it stops after 256
I want just ten words
a longer text, please
a shorter text
how long may the output become
output length
n_predict
--n-predict
it stops in the middle of a sentence when I run it in the shell
it writes novels, I want one paragraph
how do I make sure that it writes no more than 50 tokens

# --min-tokens
it stops too soon, force it to write on for a while
at least a hundred tokens of text
replies of one word are too short for me
no end before a certain length

# --temperature
make it more creative
it's too random
less chaotic, please
the text is dull, spice it up
creativity
randomness
too boring
it says crazy things, calm it
a bit more variety
wilder texts
how do I make sure that it always takes the safest word
more surprising output
conservative output

# greedy
no dice, always the best word
I don't want any randomness
take the winner at each position
no random choices at all
without chance
switch chance off
always the top choice

# --seed
the same random text again tomorrow
I got a great random sample, how do I get it again
two runs should draw the same random numbers
a different random text each time, please
every run gives the same random text, I want another one
roll the dice anew
repeat a random result
RNG
reproduce a sampled output
why do I always get the same sample
vary the random draws

# determinism
my colleague gets other output on his machine with the same greedy call
does it matter who else sends requests at the same time
can my answer change because other people are using the server
if I use 4 cores instead of 8, is the output still the same
does a different core count alter the result
is the answer the same at night and at rush hour
does caching change an answer
do fewer cores give another text
my regression tests need stable outputs under load
will the result depend on the load
the output should not depend on what else runs
bitwise
same bits with more cores

# --top-p
nucleus
cut off the unlikely tail by total probability
only words that together make up 90 %
p of nucleus sampling

# --top-k
choose among the 40 best words only
limit the choice to a fixed count of candidates
forty candidates

# --min-p
drop words that are much less likely than the best one
relative threshold for unlikely words
threshold relative to the best

# --repetition-penalty
it says the same sentence over and over
it loops
stuck in a loop
parrot
stop it from repeating itself
the same phrase again and again
it keeps repeating my own words

# --presence-penalty
new subjects, please, it stays on the same ones
once a word has been used, avoid it
push it towards new words, however often the old ones came

# --frequency-penalty
the more often a word came, the less I want it
punish each further use of a word

# --logit-bias
I want one word to be more likely
nudge certain words up or down
favour a token
make "yes" likelier
push a token's chance down a bit

# --bad-words
it must never swear
forbid some expressions
a brand's name must not appear
censor
profanity
blacklist
ban a phrase
never say "sorry"

# --allowed-token-ids
it may use digits only
whitelist of tokens
permit just a handful of ids

# --stop
cut it when it begins to write "User:"
end at an empty line
it should end as soon as it writes "###"
end at the first newline
only the first line of the answer
it writes the next question by itself, cut there
how do I make sure that it ends at a marker
end marker

# --stop-token-ids
it runs past the end because my model has another end id
an additional end id
end on id 128009

# --include-stop-str-in-output
the marker is missing at the end of my text
keep the marker at which it ended
the closing tag gets lost

# --ignore-eos
never end by itself, I need a fixed length
for a speed test each reply must have exactly 128 tokens
go on although the model thinks that it's finished
it ends too soon in my speed test

# --n
five alternatives for each text in the shell
several variants of one text
give me three versions
brainstorm: ten different continuations
more than one version

# n samples server
five alternatives in a single call
one call, several answers
several variants over HTTP
majority vote, ten answers per call

# --logprobs
how sure is it about each word, in the shell
confidence of each token on the command line
probabilities of the tokens in a file
alternatives at each position, in the shell

# logprobs server
how sure is the model, my client wants to know
confidence score in the reply
alternatives for each token, in the reply
my classifier needs probabilities from the endpoint

# --prompt-logprobs
how likely is my own text
score a given text
rate a sentence by its likelihood
surprise of each word of the input

# echo
I want my prompt back in front of the text
the reply should begin with what I sent
repeat the input before the output

# suffix
fill in the middle
FIM
code completion between two pieces
text before and after the cursor

# json schema
my program breaks because the reply has a field missing
I need name, age and city, always
fields with fixed types
pydantic
zod
the reply must be parseable into my class
extract an invoice into a fixed structure
it wraps the JSON in prose, I need exactly my fields
guarantee the shape of the reply
how do I make sure that all fields are there
typed reply

# json object
any valid JSON will do
no prose, only JSON, whichever fields
JSON mode
it writes "Sure, here is the JSON" before it, stop that
syntactically valid JSON without given fields
braces only

# structured output
the reply has to be in a form that a program reads
guided decoding
which ways to restrict the form of the reply are there
constrained
restrict what it may write, what are my options

# choice
it shall answer yes or no, nothing else
classify into five labels
multiple choice
positive, negative or neutral and nothing else
a fixed set of labels
spam or ham
true or false only
how do I make sure that the reply is one of three words

# regex
it shall give an IP address and nothing else
a five-digit code as the reply
a date like 2024-01-31 and nothing else
reply in the format AB-1234
how do I make sure that only digits come back
phone numbers only
pattern

# grammar
the reply has to be a sentence of my own little language
BNF
EBNF
GBNF
context-free rules for the reply
only valid SQL of my dialect

# truncated json
the JSON breaks off in the middle
"Unterminated string" when I parse the reply
closing brace missing
invalid JSON although I gave a schema
half an object comes back

# one restriction
may I combine a pattern with a schema
two limits on the form in one request are refused
schema and choice together

# schema keywords
my schema is refused because of a keyword
"uniqueItems is not supported"
which parts of JSON Schema can't I use
if/then/else in a schema

# tools
it should look up the weather by itself
let it query our database while it answers
function calling
agents
my program offers an action and the model decides when
connect it to my calendar
the model shall decide when to ask my program for data
my Python function should be callable by the assistant

# tool choice
it answers by itself instead of using my function, force it
it must not use any function this time
always this one function
never call anything
how do I make sure that it calls get_weather

# tools 400
"the chat template does not read tools"
as soon as I declare functions I get a 400
my old Llama 2 refuses functions

# parallel tool calls
two functions in the same reply
one call at a time, please
may it call two functions at once

# --tool-call-parser
calls come back as plain text in the content
the call appears as JSON text and tool_calls is empty
my model writes its calls in Hermes' way
which formats of calls can be parsed
the calls are not recognised
name the format of calls by hand

# --reasoning-parser
<think> shows up in the content, the server didn't recognise it
the think block isn't split off, name its format by hand
don't split off the think block, leave the text as it is
set how the think block is recognised
which flag of serve is about thoughts

# reasoning
my app should show the thoughts in a grey box
in which field do the thoughts arrive
users shouldn't see the thoughts, only the answer
where did the thoughts go, content has only the answer
thoughts
inner monologue
the model thinks aloud, where is that in the response
separate what it thinks from what it says
chain of thought in the response

# no thinking
it ponders for a minute before it answers, I don't want that
skip the pondering
it burns 2000 tokens before it says anything
an immediate answer from Qwen3
how do I stop it from pondering at all
/no_think
it thinks too long
don't ponder
thinking costs too much time, off with it
a thinking model that does not think

# --prompt
how do I hand a text to generate
where does my text go on the command line
which argument is my text
two texts on one command line
quotes around my text

# --input
which argument names the file of texts
how do I hand a file over instead of a text
read the texts from disk

# prompt ids
my texts are already numbers
I tokenized by myself
ids instead of text as input
skip the tokenizer for the input

# tokenize
into which pieces is my sentence cut
numbers for a text
see the pieces
text to numbers
how does the vocabulary split this word
encode

# detokenize
numbers back to text
I have ids and want to read them
what does id 1234 stand for
ids to words

# count tokens
how long is my document for the model
does my text fit into 8k
will this text be too long
length in tokens
is my prompt longer than 4096
how many pieces has my text

# tokenize route
ids for a text over HTTP
my client wants to count before it sends
split a text remotely

# --no-skip-special-tokens
I want to see <|im_end|> in the text
show the control tokens
markers such as <s> are missing in what I get
hidden markers should be visible

# cache salt
tenants must not learn from timing what others asked
keep the cached beginnings of two customers apart
can a user find out by timing what another one asked
isolate tenants' caches
side channel of the cache

# prefix caching
our 3000-token instructions are in front of each call, is that wasteful
the second identical call is much faster, why
does it reuse what it computed for the same beginning
must it read the long instructions anew each time
few-shot examples in front of each call

# --no-enable-prefix-caching
for a fair speed test nothing should be reused
measure without reuse of earlier calls
no reuse between calls
each call from scratch, please
turn reuse off

# continuous batching
does a short question wait behind a long one
do I have to group calls by myself
must I collect calls before I send them
how can many users share one model

# chunked prefill
does someone's long document block my short chat
why does a huge text not freeze the others

# --no-enable-chunked-prefill
a long text should be computed in one go
don't cut long texts into pieces

# preemption
what if memory for past tokens runs out in the middle of an answer
the log says that a sequence was preempted
is an answer lost when memory runs full
are there half answers when the cache is full

# attention backends
what is there besides flashinfer
names that I can give for the attention kernels
what is an attention backend in the first place
xqa, cudnn, native: what are these
which kernels for attention come with it
the possible values for attention kernels

# --attention-backend
I don't want it to decide by itself which kernels compute attention
I suspect flashinfer of a bug and want another one
always the same kernels for attention, please
I want native everywhere
take cudnn although it is slower
how do I make it take another attention kernel

# how is backend chosen
why did it take xqa here and flashinfer there
on what basis does it decide between kernels
it switched kernels with the batch size, why
who decided that my card uses xqa
the log names two different attention kernels, how come
is the best kernel found automatically

# --decode-attention-backend
one kernel for the tokens after the first, or else fail
only the generation phase should use xqa

# --prefill-attention-backend
only the prompt phase should use flashinfer
another kernel for prompts than for generated tokens

# cpp library
embed it into my game
I write C++ and don't want HTTP
call the engine from my own program
no server, link it into my application
include it in my CMake project
header
API for C++
library

# python binding
import quire
can I call it from Python without HTTP
a wheel
PyPI
use it inside a notebook
from quire import LLM

# find_package
CMakeLists.txt of my application, how does it find the library
CMake cannot find Quire
link against the installed library

# --load-format
I want to measure speed but have no weights
try a 70B's speed without downloading it
fake weights
nonsense weights are fine, I only measure
random weights
only config.json is here, can I benchmark

# --tokenizer
the folder has weights but no tokenizer
the vocabulary is in another folder
my fine-tune lacks tokenizer.json
use the base model's vocabulary

# generation config
where do the defaults for temperature come from
why is the temperature 0.6 although I set nothing
who set top_p to 0.9
the model's own recommended settings, are they used

# unknown fields
my client sends fields that you don't know
extra keys in the JSON
does a typo in a field's name give an error

# embedded nonsense
it told me that Paris is in China
the built-in one can't write a poem
why are you so stupid
your answers are wrong
it doesn't know anything

# garbage output
it writes gibberish
random words come out
the answers make no sense
my downloaded model talks nonsense
rubbish
my Llama rambles and never answers the question
strange symbols

# foreign flags
my old vllm command line, can I keep it
copy my start script from another engine
a flag that worked elsewhere is rejected here

# migration
we move from vLLM next month, what changes
coming from llama.cpp, what do I have to know
differences to what I used before
switching engines
porting guide

# ollama
I'm used to "ollama run llama3"
Modelfile
ollama
pull and run as in ollama

# gguf
Q4_K_M
all I have is a .gguf
my file comes from llama.cpp
TheBloke
bartowski's quants
the file from LM Studio
one single file with all weights, ending in gguf

# quantization
my card has only 8 GB, use 4 bits
int4
shrink the weights to a quarter
AWQ
GPTQ
bitsandbytes
NF4
fewer bits per weight
is fp8 for weights there yet
can't the weights be squeezed into fewer bits

# lora
PEFT
I fine-tuned with an adapter
adapter_model.safetensors
my adapter is in a separate folder
fine-tuning gave me a small extra file for the base weights

# vision
what is on this photo, can a model tell through the server
LLaVA
image_url
screenshots as input
multimodal
send a picture
whisper
speech to text

# embeddings
semantic search
RAG needs vectors
vector database
sentence similarity
turn paragraphs into vectors for a search index

# reranking
rerank my documents
the best of these passages for a query
order my hits
second stage of a search

# moe
Mixtral
DeepSeek-V3
Qwen3-30B-A3B
experts
gpt-oss-120b

# draft models
EAGLE
draft model
Medusa
guess several tokens at once with a small helper model

# --speculative-config
n-gram speculation
guess several tokens at once

# save model
convert a checkpoint
export to another format
turn safetensors into gguf
write the weights out again

# gated training
fine-tune
train it on my emails
teach it our company's documents by training
can it learn from my chats

# lists of messages
it forgets what I said in the last API call
does the server remember my conversation
session
how do I keep a conversation over HTTP
the second call knows nothing of the first

# continue final message
the assistant's turn is half written and should go on
I put the first words into its mouth
prefill the assistant's answer
begin the reply for it

# disconnect
the user closes the tab, does it go on computing
what if the client hangs up
abort a running call
cancel a call

# timeouts
is a very long generation cut by the server
how long may one call take
idle connections are closed
my connection drops after a minute of silence

# exit codes
my script must know if it failed
what does $? mean
it returned 2
return value of the program

# version
which release is installed
how old is my copy
what build is this
is mine up to date

# offline
our machine has no internet
air-gapped
does it phone home
do you collect data about me
without a network
behind a firewall without access to the outside

# license
may I sell a product with it
does it cost anything
price
free of charge
open source
legal terms
commercial

# bugs
I found a mistake in the program
it crashed, whom do I tell
segfault
something is broken, where do I complain
report a problem

# security report
I found a hole that attackers could use
vulnerability
CVE
responsible disclosure
"""

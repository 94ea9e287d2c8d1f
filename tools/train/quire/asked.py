"""Further questions as people throw them at a prompt: short, spoken, with examples of their own."""

ASKED = r"""
# quickstart
~get [it|the thing|this] [running|going|working] [as fast as possible|quickly|in a minute|with one command]
[fastest|quickest|shortest] way to [see it work|a running program|try it]
one script that does it all
I just want to see it work
brand new here, first step?
how do I begin

# --port
change [8000|the 8000|8080] to [9000|8081|another number]
[make|let] it [listen on|use|run on] [9000|port 80|8081|another port]
port 8000 is no good for me
not 8000 please
I need it on [port 5000|5000|8888]
the number after the colon in the URL
~put the server on [another port|port 8001]

# --host
make it listen on another address
bind to an address
which interface does it listen on
~bind the server to [an address|one interface|localhost only]

# listen everywhere
make it listen on all interfaces
[reachable|visible|open] [from|to] [other machines|my phone|the whole network|the LAN|outside]
my colleague's laptop cannot reach the server
~reach the server from [another computer|my phone|outside]
0.0.0.0
~let others in my network use it

# tls
put TLS in front
https please
~[switch to|turn on|set up|use] [https|TLS|SSL|encryption]
encrypt the connection
certificate and key for the server
I have a cert.pem and a key.pem
secure connection for clients

# tokenize
~[tokenise|tokenize|encode] [a string|a sentence|some text|hello world|text from the shell]
~see [the tokens|the ids|the token ids] of [a text|a sentence|hello]
text to ids
which ids does a sentence become
token ids of a string

# detokenize
ids to text
~[turn|convert] [ids|numbers|tokens] back [into|to] text
~decode [ids|token ids|1,2,3]
I have token numbers and want the words

# template
show the rendered chat template
~[see|print|render] [the prompt|the final prompt|what the model gets|the chat template with my messages]
what does the template make of my messages
render messages to a prompt
the exact prompt text of a conversation

# --chat-template
change the chat template
~use [my own|another|a different|a custom] [chat template|jinja file|template]
I have a template.jinja
replace the model's template
wrong template in the model, I want mine

# stop server
graceful [stop|shutdown|exit|end]
~[stop|end|shut down|kill|quit] [the server|it|quire serve] [cleanly|gracefully|without losing requests|]
ctrl-c on the server
how do I end it
SIGTERM
turn the server off

# cpp library
C++ library usage
~[call|use|embed] [quire|the engine|it] [from|in] [my own C++ program|C++|my C++ code]
engine API in C++
example of the library
link against the engine

# amd gpus
AMD support?
[Radeon|ROCm|Intel Arc|Metal|MI300|TPU]
%[AMD|Radeon cards|ROCm|an Intel GPU|Metal|TPUs]
I only have an AMD card
my GPU is from Intel

# completion
bash autocomplete
[zsh|fish|bash] completion
~get [tab completion|autocompletion|completions in my shell]
pressing tab should complete the flags
autocomplete for flags

# docker
docker image
%[Docker|a container image|containers|podman]
~run it in [docker|a container|podman]
Dockerfile
is there an image to pull

# systemd
~start it [at boot|with the machine|as a service|automatically]
systemd unit
run as a daemon
service file
it should come back after a reboot

# serve
~[start|launch|run|open] [an API server|an endpoint|an HTTP API|a server] with my [model|weights|checkpoint]
server with my weights
expose my model over HTTP
deploy my model
host a model for an app
REST API for my model

# load own model
my weights are in [/data/llama|/models/qwen|~/llama|./my-model], [how do I chat|what do I type|how do I run them|what now]
I have a folder with config.json and safetensors
~use the model in [/data/llama|my home folder|./model]
own model instead of the embedded one
point it at my checkpoint

# chat
~talk to [it|the model|my model] [in the shell|in the terminal|here]
terminal chat
interactive session
chat from the command line

# generate
one-off completion
~complete [a prompt|a sentence|a text] [from the command line|in the shell|once]
single prompt, no server
just print one answer

# several prompts
~[run|process|answer|batch] [a thousand prompts|many prompts|a file of prompts|prompts.jsonl] [offline|at once|without a server|]
offline batch
file with prompts in, answers out
bulk generation

# protect the server
only people with a [token|password|secret|key] should get in
~[protect|secure|lock] [the server|my server|the API|it] with a [password|key|token]
password for the API
keep strangers out
authentication
login for the server

# json schema
[answers|output|replies] should [be JSON that follows|match|fit|obey] my schema
force a schema
pydantic model as the output
the reply must have exactly these fields
schema constrained output

# regex
restrict output to a [regex|regular expression|pattern]
the answer must match a pattern
output only a phone number pattern
regular expression for the output

# choice
only yes or no as an answer
pick one of three labels
classification into fixed classes
the answer must be A, B or C
restrict the reply to a list of words

# --seed
I want the same answer [each|every] time
fixed random seed
same prompt, different answers, I want one

# --temperature
[less|more] [random|creative|wild|boring] [output|answers|please]
disable sampling
greedy please
too creative
answers vary too much

# --stop
stop generating at a [certain word|marker|newline|blank line]
end the output at a text
cut it when it says END
stop word

# --max-tokens
[cap|limit] the [length|size] of [the answer|the output|replies]
answers are too long
at most 100 tokens
shorter output

# --repetition-penalty
repeat penalty setting
it repeats itself
stop it from saying the same thing again
repetition

# --kv-cache-memory
cap on memory for the cache
how many GB may the cache take
give the cache [4 GB|8 gigabytes|more room]
size of the cache in bytes

# --gpu-memory-utilization
how much VRAM will it use
leave some GPU memory for other programs
it grabs nearly all of my GPU
use only half of the GPU's memory
share of VRAM

# out of memory
OOM
CUDA out of memory
it does not fit on my GPU
memory runs out at the start, what can I change
not enough memory

# --max-num-seqs
how many [requests|users|conversations] at once
maximum concurrency
parallel requests limit
number of simultaneous sequences

# --max-model-len
context length setting
shorter context to save memory
limit prompt plus output
how long may a prompt be

# bench serve
first-token latency of my server
load test a running server
benchmark [my|a] server over HTTP
how does it hold up under load
stress test the endpoint

# bench throughput
tokens per second on my machine
measure throughput without a server
how many tokens per second do I get
offline benchmark

# bench latency
latency of one request
how long does a single batch take
measure latency offline

# bench attention
compare attention [implementations|kernels|backends]
which attention kernel is fastest
time the attention kernels

# tune
tune [attention|the kernels|it] on my GPU
make a tuning table
find the best backend for my card

# doctor
is my [GPU|graphics card|card|driver] [recognized|seen|found|detected|used]
check my machine
what does doctor do
diagnose my setup
what can this machine do

# doctor model
will my model fit
memory plan of a model
check a checkpoint before serving it
does my GPU have enough memory for the model

# health
is the server alive, endpoint?
liveness
health check URL
ping the server

# ready
readiness probe path
is it ready for traffic
endpoint that says whether to send requests
load balancer check

# list models
which model is loaded on the server
models endpoint
name of the served model
GET models

# logs
where are logs written
log file
what gets logged
see what the server does
does it log prompts

# metrics
prometheus endpoint
scrape target
numbers for monitoring
statistics of the server
metrics URL

# chat page
is there a [web page|GUI|web UI|user interface|browser page]
web interface
chat in the browser
~open the page in my browser
a page to click and type on

# openai client
[use|call] it from [Python|my Python script|a notebook|node]
python example
client code
which base_url
openai package against quire

# chat completions curl
curl example
first HTTP request
try the API with curl
request by hand

# streaming
tokens as they are made
show words while they come
SSE
stream the answer

# tools
function calling
~[give|offer] the model [functions|tools]
can the model call my functions
tool use

# reasoning
thinking models
where is the thinking text
<think> tags
separate the thoughts from the answer

# system message
system prompt
~[set|give] [a system prompt|instructions for the whole chat|a persona]
make it speak like a pirate, as an instruction
role instructions

# version
which version have I got
version number
print the version
is my build recent

# help
all flags
list of options
where is the list of flags
flags of serve

# python binding
import quire in python
pip package with an API
python module
Python API

# quantization
4-bit
int8
%[AWQ|GPTQ|FP8 weights|bitsandbytes|int4]
can it serve a quantized model
smaller weights by quantizing

# gguf
my model is a .gguf
llama.cpp files
%[GGUF|ggml files|Q4_K_M]
I have a Q4_K_M file

# lora
adapter on top of the base model
%[LoRA|adapters|PEFT]
load my fine-tuned adapter

# --speculative-config
%[speculative decoding|n-gram speculation]

# draft models
draft model
%[a draft model|EAGLE|Medusa]
faster with a small model that guesses

# several gpus
two cards
tensor parallel
%[several GPUs|two GPUs|multi-GPU|tensor parallelism]
split the model over GPUs
I have 4 GPUs

# vision
pictures in the prompt
%[images|vision models|image input|audio|pictures]
send it a photo
multimodal

# moe
Mixtral
%[mixture of experts|Mixtral|MoE models|Qwen3-30B-A3B]
experts

# platforms
[Mac|macOS|Windows|FreeBSD|Raspberry Pi|ARM]
%[Windows|macOS|a Mac|ARM servers]
does it run on my MacBook
operating systems

# supported models
which [architectures|model families|models] [work|are supported|can it run]
list of models
model families
what can I load

# license
under which licence
may I use it commercially
is it open source
Apache or MIT

# 429
[too many requests|server says it is busy]
what if the queue is full
429
overloaded

# build
I cloned the repo, what now
~[compile|build|make] [it|quire|the program|from source]
compile
from source to binary
installation instructions
how do I install it

# build without cuda
CPU only build
no CUDA on this machine
~build without [nvcc|CUDA|a GPU]
I have no NVIDIA toolkit

# tests
run the tests
test suite
how are tests run
does everything pass here

# prefix caching
prefix cache off
~[switch off|stop] [the prefix cache|reuse of prompts]
no sharing between prompts

# --served-model-name
other name in the API
the model should be called gpt-4 for my client
alias for the model
rename the model

# --allowed-origins
CORS
my web app on another origin is blocked
browser says blocked by CORS policy
call it from JavaScript on another site

# --log-level
less output
quiet
more verbose
debug messages
too chatty in the terminal

# latency advice
answers begin too late
first token takes long
lower latency
make single answers quicker

# throughput advice
more tokens per second in total
higher throughput
make the most of the GPU

# slow generation
it is slow
only two tokens per second
why does it take so long
generation crawls

# offline
telemetry
does it phone home
air-gapped
works without internet
is anything sent to somebody

# remote code
trust_remote_code
is it safe to load a stranger's checkpoint
does a model run code on my machine

# determinism
same bits every run
reproducible results
is greedy output always equal
why do results differ between machines

# embeddings
embedding vectors
%[embeddings|sentence embeddings]
vectors for search

# drain
what happens to running requests on shutdown
in-flight requests when I stop it
does it finish its requests before it ends

# chat save
keep this conversation for later
write the conversation to a file
~[save|keep|store|load|reopen] [the conversation|my conversation|a chat|what we said] [in the terminal|for tomorrow|]
/save
continue yesterday's chat
export the chat to a file in the terminal

# chat regenerate
another answer to the same message
~[get|ask for] [another|a different] [answer|reply] [in the chat|to my last message]
/regenerate
try that answer again
retry the last message

# chat stats
tokens per second of the answer I just got
~see [how fast the last answer was|the speed in the chat|how full the context is]
/stats
how much of the context is used up in my chat
speed of the chat

# chat new line
more than one line in a message
~[type|write|enter|send] [several lines|more than one line|a multi-line message|a line break] [in the chat|in the terminal|]
line breaks in chat
Shift-Enter does not work
paste code into the chat

# --no-history
~[turn off|disable|avoid] [the history|the chat history|the record of what I type]
does chat remember what I typed last time
where is the chat history stored
nothing I type should be stored
clear chat history

# chat quit
get out of the chat
~[leave|quit|close|end|exit] [the chat|quire chat|the conversation]
/exit
/quit
how to stop chatting

# chat commands
which slash commands exist
~see the [slash commands|commands of the chat]
/help
what can I type in the chat besides messages
slash commands

# gated hub token
my model is private on hugging face
~[pull|download|use] a [private|gated|restricted] [model|repository|repo]
how do I give my hugging face token
token for the hub
private repo
where do I put my access token for downloads

# other hub
~use [a mirror|our own hub|another hub|an internal hub] [for downloads|to download models|]
mirror of hugging face
proxy for downloads
is a hub mirror possible
HF_ENDPOINT

# cache of models
in which folder are pulled models
~[find|change|move|see] [the folder of downloaded models|the model cache|where models are stored]
disk location of downloads
HF_HOME
where does pull put the files

# resume a pull
the download [broke off|stopped|failed|was cut|crashed], [what now|what do I do|how do I go on]
quire pull failed in the middle
continue a broken download
lost connection while pulling
network error during the download
do I have to download everything again

# --max-workers
number of files [at once|in parallel] when pulling
~limit [the downloads at the same time|parallel downloads]
download with more connections
pull is slow, more connections
~set how many files are fetched together

# revision of a download
~[pull|download|get] [a specific revision|a certain commit|a tag|a branch|an older version] [of a model|]
pin the model's version
commit hash of a model
another branch on the hub

# where to get models
~[download|fetch|pull|get] [qwen|llama|Qwen3|a model|mistral|gemma|Qwen/Qwen3-0.6B] [from hugging face|from the hub|]
download a model pls
command for downloading models
what is the equivalent of ollama pull
how do models get onto my disk

# help
~[print|see|get|show|read] the [help|flags|options] of [bench|serve|pull|a command|generate]
help for a subcommand
which flags does [chat|serve|pull|bench] have
quire help

# exit codes
what does exit status [2|1|130] mean
meaning of [exit code|return code|status] [2|1|143]
code 2 on exit
exit code [2|1] means what

# logs
access log
is there [an access log|a log of requests|a request log]
~[see|get|have|find] [an access log|which requests came in|the log of requests]
where does it log requests
log of every request

# metrics
names of the metrics
what are the metrics called
which metrics [are there|does it export|does it have]
list of prometheus metrics
prometheus metric names please
~scrape it with prometheus

# trusted proxies
behind [nginx|haproxy|a load balancer] [the client address is wrong|all clients have one address|the log has the proxy's address]
the log shows 127.0.0.1 for everyone
client ip behind a proxy is wrong
~log the real client [IP|address] behind [nginx|a proxy|haproxy]
X-Forwarded-For is ignored

# --max-stored-responses
previous_response_id does not work
~[store|keep] responses [for later requests|on the server|of the Responses API]
store: true
~use previous_response_id
retrieve a response later

# --reasoning-parser
~[separate|split|show] [the thinking|the reasoning] [from the answer|separately|in its own field]
which parser for [thinking|reasoning]
reasoning format

# --tool-call-parser
~[set|choose|pick] the [format|parser] of tool calls [for llama 3|for mistral|for hermes|]
[tool calling|function calling] for [llama3|mistral|hermes]
tool parser
my model's tool calls are not parsed

# --block-size
~set the [page size|block size] [of the kv cache|]
[page size|block size|tokens per page] of the kv cache
how big is a [page|block] of the cache

# --max-tokens
~make [the answers|replies] [shorter|longer] [in the chat|]
longest answer in chat
my answers stop after 512 tokens
limit of the answer's length

# --seed
set a random seed
~get the same [random answer|sample] [again|each time]

# --log-level
more [verbose|detailed] logs
~[see|get] [more|debug] [log lines|logs|messages]
debug output
quieter logs
too many log lines

# --log-format
logs as json
~[get|have|write] [the logs|log lines] [as json|in json]
json logs please

# --kv-cache-dtype
~[store|keep] the kv cache [in fp8|in 8 bit|in half precision]
fp8 kv cache
8-bit cache

# --attention-backend
~[pick|choose|select|use] [flashinfer|xqa|cudnn|the native backend|a certain backend]
switch to [flashinfer|xqa|cudnn]
which flag picks the backend

# --gpu-memory-utilization
~[use|take|limit it to] [only |][half|60 percent|70 %|0.6] of [the GPU|the GPU's memory|my VRAM]
leave [some|20 %|a part] of the VRAM free
limit GPU memory

# --logprobs
log probabilities [on|from] the command line
~print log probabilities with quire generate
probability of each token in the shell

# determinism
does the [cpu|CPU] [always |]give the same [bits|result|output]
is it deterministic
same output with another batch size
reproducible across runs on a CPU

# greedy
no randomness
temperature zero

# openai client
base url for the openai client
which url do I give my [client|library]

# open webui
use it with [llama-index|litellm|instructor|pydantic-ai|autogen|haystack]
~connect [instructor|pydantic-ai|haystack|my agent] [to quire|]
langchain with quire
base url for [langchain|litellm|an agent]

# docker
[is there|do you have] a [docker|container|OCI] image
docker image
container image on docker hub
docker pull quire

# several models
can [two|several] people [use|chat with] [different models|two models] at once
serve two models in one process
switch models without a restart

# --temperature
less random
more creative answers
hotter sampling

# list models
which models does my server have
~[list|see] the models [of a server|that a server has]
GET /v1/models

# gpu not found
why is it on the CPU and not on my GPU
it ignores my [GPU|graphics card|card]
nvidia-smi shows the card but quire does not use it

# messages api
~use [claude's SDK|the anthropic package|Claude Code|the anthropic client] [with quire|]
anthropic api
anthropic compatible
does it understand anthropic requests

# responses api
openai responses
client.responses
is the responses API [there|supported|available]
"""

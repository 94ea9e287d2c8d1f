"""Further questions for topics of the other files, in rarer words; a topic stands under its name."""

MORE = r"""
# load own model
where do I [tell it about|point it at] the checkpoint [in ~/models/foo|on my disk|that I downloaded|]
I have a folder with [safetensors|weights|a model] [and config.json|], [now what|what now|what do I do with it]
[I've got|I have] [a checkpoint|weights|a model] [in /data/models|on disk|here], how does quire [open|read|load|take] it
bring your own model
~[plug in|bring|feed in|supply|provide|point quire at|hand over] [a checkpoint|my own weights|a model of mine|my fine-tuned model|my finetune]
which argument holds the model's location
how can quire answer with my [LLM|weights|network]

# serve
what's the [quickest|simplest|easiest] way to get an [HTTP endpoint|API|endpoint] [for my weights|for my model|]
~[bring|put] my [llama|model|LLM] online [as an API|]
~[publish|open|offer|provide] [a model|my weights|an endpoint|a REST API|an HTTP API]
~spin up [a server|an endpoint|the API]
command that starts the server
turn my model into an API
endpoint for my app

# serve embedded
what is served if I name no model
~serve [quire-abacus|the tiny model]

# chat
~talk to [it|the model|a checkpoint] from [my shell|a console|my terminal|the prompt]
~[hold|begin] a dialogue
command for an interactive conversation
I just want to talk with my model
messages in the terminal

# chat quit
how do I leave
what ends the [chat|conversation|session]
~[finish|abandon] the [chat|session]
key to leave the chat

# chat reset
~[wipe|delete|drop|empty] the [history|conversation|chat|memory of the chat]
begin again with an empty conversation

# system message
~[set|define|give] a [persona|role|character] [for the assistant|for the model|]
~tell the [assistant|model] [how to behave|who it is|to be brief]
instructions before the first turn

# generate
~complete [a single prompt|one prompt|a sentence|a line of text] [from the shell|in a terminal|]
command that [continues|completes] a text
one prompt, one answer
let the model continue a text

# several prompts
~[process|work through|run through] [a jsonl file|a thousand prompts|1000 prompts|a large file of prompts]
offline run over many prompts
prompts in a file, answers in a file

# json output
[machine-readable|parseable|structured] results [of generate|from generate|]
~get results that [a program|a script|jq] can read
output for jq

# save output
~keep the [results|answers|generations]
how do results get into a file
answers.jsonl

# what is quire
in [one line|one sentence|short|a few words], what is [this thing|this|quire|it]
what [have I|did I] just [installed|downloaded|built]
what am I looking at
which problem does quire solve
never heard of quire, what is it

# why quire
what do I gain [over vLLM|over llama.cpp|with quire|]
what are the selling points
convince me to use quire
how is it different from other engines

# programming language
is the code base [Rust or C++|C++ or Python|Python or Rust]
what is it [written|coded|implemented|programmed] in
which language must I know to change quire

# python needed
must I have [torch|Python|PyTorch|conda] installed
will it run on a machine without Python
do I need a venv
can I use it without [torch|PyTorch]

# license
is [commercial use|selling it|using it at work] OK
may my company use it
what are the terms of use
Apache or MIT

# platforms
will it [build|run|compile] on my [Macbook|Mac|Windows PC|Windows laptop|phone|Chromebook]
which system must I have
Linux only
can Windows users use it

# can it run on a cpu
I [have|own|only have] [only a laptop|a laptop|a PC|no CUDA card] [without a GPU|without graphics card|]
only use the [processor|CPU]
~[leave|keep] the GPU out of it
must there be a GPU
compute on the processor

# supported gpus
does an [RTX 3080|RTX 4070|RTX 3060|A10|A40|L4|L40S|A6000|H800|A30|GTX 1080|Jetson] [do|work|suffice]
will my [RTX 3080|4080|A10|L4|A6000|GTX 1080 Ti] [work|be used|do]
which NVIDIA generations
is Hopper needed

# amd gpus
[Radeon 7900 XTX|MI250|Radeon|Arc A770|RX 6800|Instinct]
will a [Radeon|7900 XTX|MI300|Arc A770] [work|do]
non-NVIDIA cards

# several gpus
I've got [two|four|2|4|8|three] [H100s|GPUs|A100s|H200s|cards|graphics cards], can [both|all|they] be used [for one model|together|]
does [-tp 4|-tp 2|--tensor-parallel-size 2|tp 8] work
~spread a model over [cards|GPUs|devices]
can two cards share a model
parallel over GPUs

# supported models
which [model families|LLMs|networks] run
tell me the model families
will my checkpoint run
what kind of LLMs does it accept
names of supported models

# moe
is [Mixtral|DeepSeek|gpt-oss] going to work
what about experts
models with experts

# vision
can it look at [pictures|images|photos|screenshots]
can I attach [a photo|an image|a PDF|a screenshot|a file]
does it hear sound
describe an image

# lora
do adapters work
my fine-tune is an adapter
base model plus adapter

# speculative
any support for [drafting|draft tokens|drafting tokens]
guess tokens ahead
a small model that drafts for a large one

# embeddings
I'd like [vectors|embeddings] [for my documents|of sentences|of my texts]
turn text into vectors
can it rank documents

# gguf
will my [Q4_K_M file|gguf|q5_k_m|.gguf model|Q8_0 file] [load|work|run]
can I point it at a [.gguf|gguf file]
~run [a llama.cpp model|Q4_K_M|a Q5_K_M quant]
is [GGUF|Q4_0] readable

# quantization
my [AWQ|GPTQ|FP8|int4|quantized] [checkpoint|model] [gets rejected|is refused|does not load|fails], why
are [4-bit|8-bit|int8|fp8|quantized] weights [OK|allowed|accepted|possible]
~load [4-bit|8-bit|quantized] weights
compress the weights
smaller weights

# where to get models
does it [fetch|pull|get] [models|weights|anything] [from the hub|from Hugging Face|by itself|]
how do I obtain [a checkpoint|weights|a model]
can I write a repo name instead of a folder
~fetch [weights|a checkpoint|a model from the hub]
Hugging Face download

# doctor
how do I find out what my [box|machine|computer|system] [supports|can do|has]
command that [reports|shows|lists] [hardware capabilities|hardware|what works|the CPU and GPU]
report about my hardware
does everything work on this machine
~see what is [missing|available]
diagnose problems

# doctor model
~find out whether [a checkpoint|my model|70B] fits
is there enough memory for my model
check a checkpoint before serving

# gpu not found
why does it [ignore|not see|not use|skip] my [GPU|card|H100|4090]
the GPU stays idle
it runs on the processor although I have a GPU
CUDA is not available
cannot find CUDA

# out of memory
it [crashes|dies|stops|fails] with [CUDA OOM|OOM|out of memory] [on start|at the start|]
[the KV cache|it|the cache] doesn't fit, what [to lower|can I lower|should I lower|now]
memory is not enough
what can I do against OOM
not enough VRAM
~fit [it|the model] into less memory
it needs more memory than I have

# --gpu-memory-utilization
how do I [leave|keep|spare] [some VRAM|GPU memory|memory] for another [process|program|job]
~use only [half|a part|50 %|80 %] of [the GPU's memory|the VRAM|the card]
it grabs nearly all VRAM
fraction of VRAM

# --max-model-len
restrict the context to [4096|8192|2048|16384] tokens
set [the|] context [window|length|size] to [16k|8k|4096|32k|8192]
~[cap|shorten|enlarge] the [context window|context|window]
longest prompt plus output
give the model an 8k context

# --max-num-seqs
how many sequences are batched at most
raise the number of [concurrent|parallel|simultaneous] [requests|sequences|users]
~[raise|lower|increase|decrease] the [batch size|number of slots|concurrency]
~serve more requests at once
most requests in a batch

# --max-num-batched-tokens
how many tokens go into a batch
~[raise|lower] the tokens per [step|batch]

# --kv-cache-dtype
store keys and values in [fp8|8 bits|bf16|f16]
cache in 8 bits
~compress the [cache|KV cache]

# --kv-cache-memory
reserve [2 GB|8 GB|4G] for the [cache|KV cache]
how much memory does the cache get

# --block-size
how many tokens [are in|does] [one|a] [KV page|page|block] [have|hold|]
granularity of the cache

# --attention-backend
I want [flashinfer|xqa|cudnn|native] to be used
make it use [flashinfer|xqa|cudnn|native]
pin the attention implementation
override the choice of attention

# attention backends
what attention [implementations|kernels] [exist|are there|can I choose]
names of attention implementations

# --enforce-eager
don't capture CUDA graphs
start without capturing graphs

# --threads
limit it to [4|2|8|16] [cores|threads]
use only [half|four|two] of the cores

# --device
force [CUDA|the GPU]
say explicitly CPU or GPU
pick the processor or the GPU

# --log-level
make it [less chatty|quieter|silent|more verbose]
see more details in the log
~hide log lines

# --log-format
logs in JSON please
log lines for a log collector

# metrics
where does Prometheus scrape
which URL do I scrape
numbers about the load
runtime statistics

# grafana
is a dashboard [included|there|part of quire]
charts of the metrics

# health
how would a load balancer know the process is alive
which URL tells [that the server lives|if it is alive]
does it need a restart
alive check

# ready
which URL tells that it's okay to send [traffic|requests]
may I send requests yet
has the server finished starting

# stop server
~[shut it down|stop it|end it|take it down] [cleanly|gracefully|]
close the server
turn the server off
how do I end the server without losing requests

# --drain-timeout
how long do running requests [get|have] [on SIGTERM|after SIGTERM|at the end]
seconds until running requests are cancelled

# 429
why am I getting Too Many Requests
the queue is full
no capacity

# 401
my client [gets|says|sees] Unauthorized
the server rejects my key
wrong key

# 503
[server|it] says service unavailable
temporarily unavailable

# 413
my body is too big [apparently|]
upload too large

# streaming
I want tokens [as they are produced|immediately|live|while they are generated]
partial answers
show words while they are generated
live output over HTTP

# tools
can the model call [my functions|a function|functions of mine|my API]
declare functions for the model
let the model use a calculator
agent with tools

# tool choice
force [the model|it] to use [a specific function|a function|my function|a tool]
it must call a tool
demand a certain function

# structured output
how do I [constrain|guide|control] generation
answers in a fixed form
~keep the output in a [format|form|shape]

# json schema
the [reply|answer|output] must [validate against|match|follow|fit] [my|a] schema
validate output against a schema
fields that the answer must have

# regex
output matching a [regular expression|pattern]
answer like a phone number
the answer must be a date in a pattern

# choice
only allow "[positive|yes|red]" or "[negative|no|blue]" as [answers|answer|output]
sentiment label from a list
select one of several words

# logprobs server
how do I receive token probabilities via the API
probabilities in the response
confidence over HTTP

# n samples server
[four|three|several|five] alternatives in one [API response|response|request]
more than one choice in the response

# priority
some requests are more important than others
let [paying users|important requests|urgent requests] [go|come|run] first
skip the queue
jump the queue

# --allow-request-priority
the priority field does nothing
does the server honour priorities

# prefix caching
are [system prompts|shared prefixes|equal beginnings|long system prompts] [recomputed each time|computed again|reused|cached]
reuse of common beginnings
same beginning in many prompts

# --no-enable-prefix-caching
how to switch the prefix cache off
stop reusing prefixes

# --host
what address is it bound to [out of the box|by default|]
network interface

# listen everywhere
how do [my colleagues|others|my friends|other users] [reach|access|use] the server from their [laptops|machines|computers]
make it [accessible|visible|reachable] [on the LAN|in the network|for everybody|from outside]
only my own machine can connect
use the server over the network

# --port
the default port is taken, can I have [9001|another|8001] instead
[change|set|move] [the port|the port number|it] to [8081|9000|5000|3000|80]
serve at port [8081|9000|5000|3000]
I need port [8001|9090|443]

# protect the server
I don't want [just anyone|strangers|everybody] to [call|use|reach] my [endpoint|server|API]
only people with a key may use it
lock it down
who may use the server

# send key
how does curl pass the key
where does the key go in a request
my client has a key, how is it sent

# tls
can traffic be encrypted
which two flags [make it https|turn on https|are for https]
encrypted HTTP
no plain text on the network

# --uds
serve on a socket file [rather than TCP|]
no TCP, just a local socket

# --served-model-name
let clients call it [gpt-4|gpt-3.5-turbo|my-model|llama]
clients expect the name [gpt-4|gpt-4o|my-model]
give the model a [short|nice|different] name

# --allowed-origins
my web app gets CORS errors
call quire from a page of another site

# --max-concurrency-per-key
[stop|keep] one user from [hogging everything|taking everything|using all capacity]
share the capacity fairly
at most ten requests per user

# --api-key-file
where do I store several keys
keys in a file rather than on the command line

# change keys
[revoke|add] a key later
a key was stolen

# tls reload
[certbot|acme.sh] renews [the certificate|], do I restart
certificate changes while the server runs

# request id
find one request in the logs
which log line belongs to my request

# logs
are user prompts written to disk
what does the server write down
does anything in the log reveal what users ask

# reasoning
where are the think tokens
thoughts separate from the answer
hide the chain of thought from the content

# no thinking
make [Qwen3|the model] not think
skip the thinking of Qwen3
quick answers without reasoning

# finish reason
why did [it|the model|the generation] stop
reason for the end of the output

# stdin
~read prompts from [another program|a pipe|stdin]
use quire in a pipeline

# dummy weights
benchmark with random weights
no weights at hand, only a config

# dtypes
does it run [bf16|fp16|fp32]
which float types
half or full precision

# tokenizers
is [sentencepiece|tiktoken|unigram] supported
kinds of tokenizers

# long context
[128k|100k|32k|1M] tokens possible
very long documents

# usage
how many tokens were [billed|used|counted|spent]
cost of a request in tokens

# openapi json
[swagger|API|openapi] docs
machine-readable description of the API

# kubernetes
which probes for k8s
pods and probes

# cpp library
use it inside my C++ [app|program|application|project]
call the engine without a server
link the engine into my program

# lm eval
run [MMLU|hellaswag|arc|truthfulqa]
other accuracy tests

# ollama
is there an equivalent to [ollama pull|ollama create]
like ollama

# greedy
turn sampling off [entirely|completely|]
always the most probable token
the same answer without randomness

# --max-tokens
cap the [reply|answer|output] at [50|100|20] tokens
I need [longer|shorter] [answers|output|replies]
at most [100|50|500] new tokens

# --temperature
how random are the samples
make [it|the answers] less random
[wilder|more varied|less predictable] answers

# --seed
same random numbers each time
repeatable random sampling

# --stop
finish when it writes [END|STOP|a newline]
end at a certain string
halt at a marker

# --repetition-penalty
it keeps repeating [one phrase|itself|words|the same line]
punish repeated tokens
the output is stuck in a loop

# --n
give me [5|three|several] different completions
more than one completion per prompt

# tokenize
see how my text is split [into ids|into tokens|]
which tokens does a sentence have
ids for my text

# count tokens
how many tokens is this [string|text|sentence]
tokens in a file

# detokenize
ids back to [a string|text]
which words do these numbers stand for

# template
what does the rendered prompt look like
see what the model really receives
inspect the prompt of a conversation

# own template
supply my own [Jinja template|template|jinja file]
the model's template is wrong, use mine

# bench
how do I benchmark this
which command measures performance
compare two machines

# bench throughput
[tokens/s|tokens per second] with many prompts
measure how much it can process

# bench latency
time a single batch
seconds for one batch

# bench serve
load-test [an endpoint|my endpoint|the API]
simulate many clients
fire many requests at the server

# tune
let it measure attention kernels on my card
find the best attention backend for my GPU
measurements for the tuning table

# eval
run GSM8K [on my checkpoint|on my model|]
test whether my model can do math
score on grade-school problems

# completion
tab completion for [zsh|bash|fish]
let the shell complete commands

# build
how do I compile this [thing|]
from source to binary
what turns the sources into a program
make the binary

# build without cuda
compile [it|quire|] without the [GPU part|CUDA part|GPU]
leave the kernels out of the build

# tests
how do I run the test suite
check that the build works

# copy binary
can I [scp|rsync|ship|send] the binary to [a different box|another server|another host|a friend]
take the program to another computer
one file for deployment

# docker
is there an image on Docker Hub
write a Dockerfile for quire
run it inside a container

# systemd
start it when the [box|machine|computer|server] boots
keep the server running after logout
run it permanently

# reverse proxy
put it behind [nginx|caddy|a load balancer|traefik]
public endpoint in front of quire

# unsupported architecture
unsupported architectures: [PhiForCausalLM|GPT2LMHeadModel|MixtralForCausalLM|FalconForCausalLM]

# no config json
[error|it] says has no config.json
it cannot find config.json

# port in use
bind failed: [Address already in use|address in use]
something else listens on 8000

# connection refused
curl says connection refused
no connection to the server

# context too long
my prompt exceeds the [window|context|limit]
too many tokens in my prompt

# slow generation
it [only does|makes only|gives only] [2|one|3] tokens [a|per] second
why does it take so long
make it quicker

# hello
hello, can we talk
good day
[hi|hello] there quire

# what can you do
what are you capable of
what may I ask you
which tasks can you do
show me what you can do

# how large are you
number of your parameters
how big is your brain
are you larger than a phone's model

# thanks
thank you so much
[many thanks|thanks] [indeed|again|friend]
much appreciated
you helped me
that was a good answer

# bye
see you [tomorrow|soon|later|next time]
[bye|goodbye] [for now|then|quire]
I am off

# version
which [release|version|build] am I on
is my quire up to date

# docs
where can I read the manual
which page explains serving
where are the instructions

# exit codes
what does return code [1|2|130|143] mean
status of the process after an error

# all commands
what subcommands exist
all things that quire can be called with

# help
show all flags of a command
where do I see what a command takes
which options does quire serve have
describe all flags

# migration
we currently run [vLLM|SGLang|llama.cpp|llama-server], what changes
guide for users of [vLLM|llama.cpp|SGLang]
move our service from vLLM

# foreign flags
will my [vLLM|llama.cpp|SGLang] command line work
can I keep my vLLM flags
do I have to learn new flags

# remote code
is trust_remote_code there
my model has a modeling_x.py file

# determinism
do I get identical results each run
bit-identical output
is the output stable across batches

# startup time
how long until it is up
how many seconds until it serves
does it start instantly

# next features
what's on the roadmap
what will be added
will there be multi-GPU

# training data
what were you trained on
which texts have you read

# language
Kannst du Deutsch
do you know any other language
may I write in my own language

# several models
two models from one process
serve a chat model and a code model together

# config file
can I put the flags into a [yaml|file|config]
flags from a file

# openai client
what goes into base_url
use it from a Python program
which URL does the openai package need
base_url of quire

# chat page
is there something I can open in the browser
which address do I open in Firefox
talk to it in Chrome

# open webui
does it work with [Open WebUI|Cursor|Cline|aider|Zed]
front end for quire

# own template
jinja file for my model

# request limits
is there a limit on messages
how many prompts fit into one request

# --min-tokens
don't stop before [20|50|10] tokens

# --bad-words
the model must never say a word
forbid a phrase

# --stop-token-ids
stop when id 2 comes

# --logit-bias
increase the probability of token 15

# --top-p
cut off the tail of the distribution

# --top-k
only the [50|20|10] best tokens

# kv cache what
why does a server need a KV cache
what do the KV pages hold

# cuda graphs
why is something captured at start
graphs at start

# embedded nonsense
why can't it answer simple questions

# determinism
identical bits

# performance
how good is the speed
is it quick

"""

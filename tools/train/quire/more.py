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

# --format
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
--pipeline-parallel-size
--data-parallel-size
--split-mode
--distributed-executor-backend
-pp 2
-dp 2
-sm row
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

# --speculative-config
any support for [drafting|draft tokens|drafting tokens]
guess tokens ahead

# draft models
a small model that drafts for a large one

# embeddings
I'd like [vectors|embeddings] [for my documents|of sentences|of my texts]
turn text into vectors

# reranking
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
--disable-log-stats
--uvicorn-log-level
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

# --allow-request-priority
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

# --load-format
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

# --chat-template
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

# --chat-template
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


# windows wsl
is [WSL|WSL2] enough
may I run it under WSL

# --format
which formats can generate print
text or JSON from generate

# --load-format
which value makes random weights
~skip reading the weights
~start without weights

# --tensor-parallel-size
is the tensor parallel size limited
why is only 1 allowed for --tensor-parallel-size

# binary for other gpu
this build has no kernels for my card
the program was compiled for Hopper but I have Ampere
wrong GPU architecture
sm_89 is not in this binary

# --chat-template
where is --chat-template accepted
which commands have --chat-template

# client tests
is there a test with [lm-eval|the openai package|schemathesis]
~check compatibility with OpenAI's clients
how do I know that OpenAI's clients work

# duplicate keys
my JSON has the same [field|key] twice
are repeated keys OK
why is a repeated field an error

# gpu flags on cpu
does a GPU flag hurt on a CPU
I set --enforce-eager without a GPU
are GPU settings ignored on the CPU

# json library
who parses the JSON
is JSON parsing fast
which parser reads tokenizer.json

# max model len refused
it rejects my --max-model-len
[32k|64k|128k] is refused as --max-model-len
the length is larger than max_position_embeddings
longer than max_position_embeddings

# max tokens beyond context
may max_tokens exceed the context
I ask for [100000|a million] tokens
what if I request more tokens than fit

# presets
which preset is for [debugging|sanitizers|coverage]
names of the presets
configure presets of cmake

# security of templates
is a template from a client accepted
may clients send [a template|Jinja]
why is chat_template in the body refused

# sequence
how many sequences has a request
are sequences and requests the same

# service model path
where must models lie for [the service|systemd]
the unit cannot open the checkpoint
which folder for models of the service

# slow client
the server drops my slow client
how fast must a client read
my client was cut off

# version route
which route shows the version
ask the server for its version
get the build's version over HTTP

# --allowed-token-ids
only [digits|some tokens] may appear, given as ids
limit generation to a set of token ids

# --decode-attention-backend
only decode should use [xqa|cudnn]
which flag is for the decode phase

# --prefill-attention-backend
only prefill should use [flashinfer|native]
which flag is for the prefill phase

# --frequency-penalty
penalize frequent tokens
the more often a token occurs, the less likely it gets

# --presence-penalty
penalize tokens that occurred already
encourage new tokens

# --max-tokenize-bytes
my text is too long for /tokenize
how many megabytes may I tokenize over HTTP

# --max-total-request-bytes
503 because of bodies
bound the memory of waiting bodies

# --no-enable-chunked-prefill
don't split prompts
the prompt should run in one piece

# --num-grammar-threads
more threads for [schemas|grammars|structured output]
who compiles the grammars

# --num-io-threads
more threads for [sockets|the network|connections]
who reads the sockets

# --num-workers
more threads for [parsing|tokenizing|tokenization]
who parses the requests

# 8k suffix
does [4k|16k|32k] mean [4000|16,000|32768]
is K 1000 or 1024 in token counts

# batch size of bench
requests per batch in bench latency
set the batch of bench latency

# build downloads
is anything fetched during the build
what goes into .deps

# cpu backend
attention without a GPU
which backend computes attention on the CPU

# disconnect
what if the [browser|user|client] goes away
I closed the connection, does it still compute
stop a stream early
how do I abort a generation

# gated hub token
hf says I need access
Llama wants me to accept a licence
403 from Hugging Face

# git lfs pointer
I cloned the model with git and it does not load
safetensors begins with "version https://git-lfs"

# key storage
can someone read my keys from memory or logs
are keys kept in plain text

# listening on loopback
am I exposed to the internet
does it open my machine to the network
loopback only

# native backend
who wrote the native kernels
kernels of quire itself

# reference backend
what is the slow exact attention for
backend for comparing results

# positional dir
do I need the --model flag for serve
folder as first argument

# schema of the page
what can I see on the chat page
are engine numbers shown in the browser

# stop server
kill it right now
it still drains, I cannot wait

# streaming through proxy
nginx holds the tokens back
Cloudflare buffers my stream
tokens come in one block

# weights types error
is [I8|F8|U8|float64|F64] accepted in safetensors
which tensor types are refused

# --max-num-queued-tokens
~bound the prompts that wait
429 because of long prompts

# --include-stop-str-in-output
I want to see the stop word too

# --ssl-certfile
which file is the certificate
PEM file for TLS

# --ssl-keyfile
which file has the private key
key of the certificate
path of the private key

# --stop-token-ids
other end tokens
stop at certain ids

# --tokenizer
my checkpoint lacks a tokenizer
take the tokenizer of another model

# 405
wrong HTTP method
can I GET a completion
PUT or POST

# 431
my headers are too long
cookie too large

# 408
the server closed a slow upload
request did not arrive in time

# 415
must I send a content type
415 although my JSON is right

# 500
the server failed internally
what do I do after a 500

# cudnn backend
libcudnn is missing
which cuDNN do I need

# drain
what is draining good for
new requests during shutdown

# error body
parse the error of the server
where is the message of an error

# interrupt generate
I pressed Ctrl-C in a long batch
do I lose finished results

# model not found
which name goes into "model"
is the model field required
The model gpt-4 does not exist

# nvcc missing
it was built without the CUDA engine
where do I get nvcc

# openai key dummy
the openai package complains about a missing key
what goes into api_key
api_key for a server without keys

# tools 400
why does tool_choice auto fail
my template knows no tools

# truncated weights
the download broke off
header of safetensors is invalid

# uninstall
how do I get rid of it
delete the program

# --add-special-tokens
~put BOS before the ids
tokenize with the begin token

# --reasoning-parser
which flag parses <think>
values of the reasoning parser

# --tool-call-parser
which flag parses tool calls
values of the tool parser

# functions field
old style functions
my old code sends functions

# fuzz
~let the fuzzers run
how are the parsers tested against hostile input

# garbage output
wrong chat template
the answers of my checkpoint make no sense

# one test
only the scheduler's test
run a test by name

# runtime packages
packages for the container
shared libraries of the binary

# several requests file error
does a bad prompt stop the batch
a request of the file is refused

# system install
copy quire to /usr/local
install the library and headers

# timeouts
after how many seconds does the server give up
does a long generation time out

# xgrammar missing
fetch XGrammar
where is XGrammar's source

# --ignore-eos
go on after the end of sequence
fixed-length output for a benchmark

# --prompt-logprobs
how likely is my prompt
probability of each prompt token

# changelog
what did the last version change
news of quire

# cuda runtime
which NVIDIA software must be installed
driver and libraries for the GPU

# debug build
build for gdb
step through the code

# echo
prompt and output in one text

# no template
the base model refuses chats
chat without a template

# one restriction
two schemas in one request
grammar plus choices

# overlapping
does planning cost GPU time
is the CPU a bottleneck between steps

# --seed
is the output random each run
twice the same command, twice the same text

# throughput advice
squeeze more out of the GPU
fastest settings

# unknown fields
I misspelt temperature and nothing happened
does a typo in a field give an error

# --api-key
one key on the command line
is --api-key safe

# --enforce-eager
graph capture takes too long
start faster by leaving out graphs

# --max-num-rule-seqs
how many requests with logit_bias can run
limit of sequences with min_tokens

# beam search
num_beams=4
is beam search implemented

# cuda architectures
compile for sm_80
fat binary for two GPU generations

# embedded nonsense
I asked a general question and got "I do not know that"
which model should I use for real questions

# errors on stderr
is there a stack trace
one line of error

# example problem
let it solve something
first test of the program

# generation config
where does the temperature come from if I set none
does my model's config set the sampling

# kernel compile
-O
-cc
is there a Triton compile step
does the first request compile anything

# lists of messages
must I resend the history
does the API keep my chat

# metric itl
time between tokens in the metrics

# metric ttft
histogram of first token times

# metric prefix
does caching pay off, which metric

# metric hang
alert when the engine is stuck

# tls version
old TLS clients
does it speak TLS 1.3

# truncated json
the object lacks its end
JSON stops halfway

# tune quick
a short measurement of backends

# update
rebuild after git pull
is there a newer version

# xqa
TensorRT-LLM's kernels
kernels for Hopper decode

# flashinfer
is FlashInfer inside the binary

# several gpus
~use GPU 0 and GPU 1 [together|]

# exit codes
process ended with [2|1]

# quire without args
which command should I begin with
quire needs a subcommand

# load own model
which parameter do I pass so that quire uses [the weights|the checkpoint|the model] in @path
~[load|use|open|run|try] @path
how do I [run|use|chat with|talk to] the model in @path
my model is in @path
the checkpoint is at @path, how do I use it
use @path as the model
which flag takes @path

# serve
~[serve|host|start a server with|launch the API with] @path
how do I run [an OpenAI-style|an OpenAI-like|a local] endpoint
serve @path over HTTP
http server command
quire http server
make an endpoint of @path
start an OpenAI server with @path

# generate
generate text with the model in @path
complete a prompt with @path

# chat
chat with @path
talk to @path

# --port
on [what|which] [TCP port|port] does [quire|the server] [listen|run|answer]
~[run|start|put|have] the server [at|on|on port] @port
I'd like the server [at|on] @port
[serve|listen|run] on port @port
quire serve port @port
port @port
is 8000 the default port
how do I use port @port

# --host
which address does quire use by default
~bind to [192.168.1.5|10.0.0.1|::1|one address]
IPv6 address
listen on [192.168.1.5|10.0.0.1|::1]

# --max-model-len
~[limit|set|restrict|reduce|cap] the context to @tokens [tokens|]
a context of @tokens
context of @tokens tokens
I only need @tokens of context
which flag limits the context length
how do I set n_ctx to @tokens

# --max-num-seqs
~[run|batch|allow] at most @count [requests|sequences] at once
@count requests at once
@count sequences in parallel
maximum batch size [flag|]
batch of @count
how many sequences run at once by default

# --max-num-batched-tokens
at most @tokens tokens per step
how many tokens per step by default

# --max-tokens
how many tokens does quire [generate|write|produce] by default
~generate [at most|only|up to] @count tokens
at most @count tokens of output
limit the answer to @count tokens
answers of @count tokens
what is the default number of tokens

# --threads
use @count threads
~run with @count threads
@count CPU threads
use only @count cores

# --kv-cache-memory
~[fix|set|limit] the [KV cache|size of the KV cache|cache] to @bytes
a KV cache of @bytes
@bytes of KV cache

# --gpu-memory-utilization
~use [only|at most|] @share of the GPU's memory
@share of the GPU memory
what fraction of GPU memory is taken by default

# --temperature
temperature [0.2|0.5|0.8|1.2]
~set the temperature to [0|0.3|0.7|1.5]
what temperature is used if I set none

# --top-k
top_k [10|20|40|50]
sample among the best @count tokens

# --n
how do I get [multiple|several|@few] completions
@few completions of one prompt
@few samples
n = @few

# --seed
~set the seed to @count
seed @count
how do I get reproducible samples
use the same seed

# --drain-timeout
~give requests @count seconds at shutdown
what's the default drain timeout
@count seconds to drain

# --block-size
which page sizes are allowed
pages of [16|32|64] tokens
KV pages of [16|32|64] tokens

# --served-model-name
~serve the model as @model
name the model @model
the client sends model "[gpt-4|gpt-3.5|my-llm]"

# --max-num-queued-reqs
how long can the waiting queue be
~let @count requests wait
a queue of @count requests
how many requests wait by default

# --max-connections
allow @count connections
at most @count open connections

# --max-concurrency-per-key
at most @few requests per key
@few requests at once for each user

# --max-request-bytes
bodies of @bytes
allow bodies up to @bytes

# --log-level
--disable-log-stats
--uvicorn-log-level
how do I [see|get] debug logs
only errors in the log
only warnings in the log

# --stop
how do I set a stop string
stop at "[END|###|Question:]"
stop string "[END|###|Human:]"

# other models
can I serve [Phi-4|Falcon 40B|Granite 3|OLMo 2|Llama 4 Scout|Mamba 2|GPT-NeoX]
[Phi-4|Falcon 7B|Granite|OLMo 2|Llama 4]

# lora
can I attach [LoRA weights|an adapter|a LoRA]
adapter weights

# streaming
how do I stream [the response|the answer|a response|an answer]
is the response streamed

# structured output
can I force [JSON|a format|a certain format]
force the output format

# chat completions curl
give me a curl command [for a chat|for the chat endpoint|]
curl command for a chat
a request with curl

# list models
which route lists the models
route for the model list
what does GET /v1/models return

# stop server
what happens on Ctrl-C [in quire serve|]
what does the server do on SIGTERM
does the server stop cleanly

# build with cuda
how do I [compile|build] the GPU engine
build the GPU part
GPU engine

# bench serve
how can I benchmark a running server
measure a server that runs
benchmark my endpoint

# chat commands
what commands does the chat understand
commands inside the chat
which slash commands exist

# chat reset
how do I start over in the chat
start over

# how is backend chosen
how does it [pick|choose|select] the attention backend
what decides between flashinfer and native
who picks the attention kernel

# language
do you speak [Italian|Greek|Hindi|Turkish|Arabic|Korean|Swedish]
can you understand [Italian|Greek|Hindi|Turkish|Arabic|Korean|Swedish]
which human languages do you know

# --max-model-len
[llama.cpp's|the counterpart of] -c
what is llama.cpp's -c here
SGLang's --context-length

# --max-num-seqs
what is llama.cpp's -np here
SGLang's --max-running-requests

# --gpu-memory-utilization
SGLang's --mem-fraction-static

# --attention-backend
equivalent of VLLM_ATTENTION_BACKEND

# who are you
are you quire-abacus
what should I call you

# what is quire
what's quire
explain quire to me
quire explained in one sentence
"""

"""The flags, one topic each: what it does, its unit and its default. A topic named by a flag gets the flag's frames."""

FLAGS = r"""
# --host @serve *1.5
= `--host` is the address to listen on. Default: 127.0.0.1, this machine only.
!the [address|listen address|host|IP address|interface|bind address]
~listen on another [address|interface|IP]
~bind to an address
which address does the server listen on
bind address
quire serve host
default host
on which IP does it listen

# listen everywhere *1.5
= `quire serve --host 0.0.0.0 --api-key-file FILE` listens on all addresses and asks for a key.
~[make the server reachable|reach the server|access the server|use the server] from [other machines|another machine|outside|the network|the internet|another computer|my phone]
~listen on all [interfaces|addresses]
~listen to [0.0.0.0|all interfaces]
~open the server to the [network|LAN|internet]
--host 0.0.0.0
can other [machines|computers|people|users] use my server
the server is not reachable from another machine
expose the server
remote access
connect from another computer
I cannot connect from another machine
it only works on localhost
serve to my whole team

# --port @serve *1.5
= `--port N` sets the server's port: `quire serve --port 9000`. Default: 8000; 0 takes any free one.
!the [port|server's port|listen port|port number|TCP port]
~[use|listen on|serve on|run on] [another port|a different port|port 9000|port 80|port 8080|port 5000]
which port does [quire|the server] [use|listen on|run on]
quire serve port
what is the default port
port 8080
default port
port number
server port

# any free port
= `quire serve --port 0` takes any free port and prints it at the start.
~[use|choose|take|pick] [any free port|a random port|a free port|an unused port]
--port 0
what does port 0 mean
free port
random port
which port was chosen
automatic port

# --uds @serve
= `--uds FILE` listens on a Unix socket instead of host and port; only the server's own user may open it.
!the [Unix socket|unix domain socket|socket file]
~[listen on|use|serve over] a [Unix socket|unix domain socket|socket file]
%[Unix sockets|unix domain sockets|UDS]
unix socket
serve without a TCP port
unix domain socket
curl --unix-socket
who can open the socket

# --ssl-certfile @serve
= `--ssl-certfile FILE` is the PEM certificate for TLS; it goes with `--ssl-keyfile` and is read again when it changes.
!the [TLS certificate|certificate file|SSL certificate]
where does the certificate go
certificate file
which format must the certificate have
PEM certificate
ssl certfile

# --ssl-keyfile @serve
= `--ssl-keyfile FILE` is the private key of the TLS certificate, in PEM.
!the [private key|TLS key|SSL key|certificate's key]
where does the private key of the certificate go
private key file
ssl keyfile
TLS key file

# --max-connections @serve
= `--max-connections N` bounds the open connections; further ones get 503. Default: 8192.
!the [number of connections|most connections|maximum number of open connections|connection limit]
~limit the [connections|number of connections|open connections]
how many connections [are allowed|can be open|does the server accept|can the server have]
connection limit
too many connections
maximum connections

# --max-connections-per-peer @serve
= `--max-connections-per-peer N` bounds the connections from one address. Default: 0, no limit; keep 0 behind a proxy.
!the [connections per address|connections of one client|connections per IP]
~limit the connections [of one client|per IP|from one address|per client]
per-client connection limit
connections per peer
one client opens too many connections
how many connections may one client have

# --max-request-bytes @serve
= `--max-request-bytes BYTES` is the largest request body. Default: 32M; beyond it: 413.
!the [size of a request|largest body|request size|body size|maximum body size]
~[allow|send] [larger requests|bigger requests|large bodies]
how large may a [request|body|request body] be
request size limit
largest request
payload too large
body limit

# --max-total-request-bytes @serve
= `--max-total-request-bytes BYTES` bounds the sum of bodies that are not parsed yet. Default: 512M; beyond it: 503.
!the [sum of request bodies|memory for request bodies|total size of unparsed bodies]
~limit the memory of request bodies
total request bytes
how much memory do request bodies take
sum of all bodies

# --allowed-origins @serve
= `--allowed-origins ORIGIN` lets pages of that web origin send requests (CORS); `*`: all. Default: none.
!the [CORS origins|allowed origins|origins|CORS policy]
~[enable|allow|turn on|configure|set up] [CORS|cross-origin requests|requests from my web page|browser requests]
%[CORS|cross-origin requests|browser clients]
CORS
CORS error
blocked by CORS policy
No 'Access-Control-Allow-Origin' header
my web page cannot call the server
fetch from the browser fails
Access-Control-Allow-Origin
call the API from JavaScript in a page
preflight fails

# --allowed-hosts @serve
= `--allowed-hosts NAME` allows a name in the Host field besides addresses and localhost; `*`: all.
!the [allowed host names|Host names|accepted hosts]
~allow [a host name|my domain|a public name|quire.example.com]
why is the Host [refused|not allowed]
403 host not allowed
host header
dns rebinding
my domain name gives 403
which host names are allowed
Host is not allowed

# --api-key @serve
= `--api-key KEY` sets a key that every route but /health and /ready needs; it may be repeated. `--api-key-file` is safer.
!the [API key|key|access key]
~[set|give|add|pass] an API key on the command line
api key on the command line
quire serve api key
default api key
several --api-key flags

# --api-key-file @serve
= `--api-key-file FILE` reads API keys from a file, one per line; `#` begins a comment.
!the [API key file|file of keys|key file]
~[read|load] [API keys|keys] from a file
format of the key file
file with api keys
how do I write the key file
keys.txt
comments in the key file
where do the keys go

# protect the server *1.5
= `quire serve --api-key-file keys.txt` asks every client for a key; the file has one key per line.
~[protect|secure|lock] [the server|my server|the API|access]
~[require|demand|set up|turn on|enable] [an API key|API keys|authentication|a password|a login|authorization|a token]
%[authentication|passwords|access control|authorization|bearer tokens|OAuth|users]
~keep strangers out
several API keys
does quire support API keys
authentication
how are [users|clients] authenticated
VLLM_API_KEY
server with password
restrict access to the server
security of the server
different keys for different users

# send key
= `Authorization: Bearer KEY` is the header to send; a browser takes any user and the key as the password.
~[send|pass|use|give] [the key|an API key|the API key|my key] [in a request|with curl|in curl|as a client|]
which header [has|carries|is for] the key
Authorization header
bearer token in curl
how does a client log in
curl with api key
browser asks for a user and a password
what user and password does the page want
authenticate a request
header for the api key
username for the web page

# --max-num-queued-reqs @serve
= `--max-num-queued-reqs N` bounds the sequences that wait to run; further requests get 429. Default: 512.
!the [queue length|length of the queue|size of the queue|number of waiting requests]
~[limit|make longer|make shorter|increase|shorten] the [queue|waiting queue]
how long is the queue
how many requests may wait
queue size
waiting requests
request queue limit
max queue

# --max-num-queued-tokens @serve
= `--max-num-queued-tokens N` bounds the prompt tokens that wait; beyond it: 429. Default: 4194304; 0: no limit.
!the [number of waiting prompt tokens|queued tokens|prompt tokens in the queue]
~limit the waiting tokens
how many prompt tokens may wait
queued prompt tokens
token limit of the queue
waiting tokens

# --max-tokenize-bytes @serve
= `--max-tokenize-bytes BYTES` is the largest text of /tokenize and /detokenize. Default: 4M; beyond it: 400.
!the [largest text of /tokenize|size limit of /tokenize]
how large may a text for /tokenize be
limit of /tokenize
/tokenize text too long
tokenize bytes
~send a larger text to /tokenize

# --max-concurrency-per-key @serve
= `--max-concurrency-per-key N` bounds the sequences that run or wait for one key; beyond it: 429. Default: 0, no limit.
!the [concurrency per key|limit per key|requests per user|rate limit per key]
~[limit|restrict] [each key|one user|each user|the load of a key|a user]
%[rate limits|rate limiting|quotas per key|per-user limits]
rate limit
rate limiting
quota per user
one user takes all the capacity
fairness between keys
limit per API key
throttle a client

# --allow-request-priority @serve
= `--allow-request-priority` makes the server use the `priority` field of requests: lower values run first. Default: off, the field is ignored.
~[enable|turn on|allow] [priorities|request priorities|priority scheduling]
--scheduling-policy
priority is ignored
why is my priority ignored
priority scheduling
scheduling policy priority
my priority field has no effect
~[give a request priority|run a request first|prefer a request|make a request urgent|prioritize requests|set the priority of a request]
%[priorities|priority|urgent requests|request priorities]
?[the priority field|priority|request priority]
do lower or higher priorities run first
priority
which priority runs first
important requests first
priority value meaning
vip requests

# --drain-timeout @serve
= `--drain-timeout N` is the number of seconds that running requests get when the server stops. Default: 30.
!the [drain time|drain timeout|shutdown time|time for shutdown]
how long does the server wait [at the end|for running requests|when it stops]
~[wait longer|give requests more time] at shutdown
shutdown timeout
drain timeout
grace period
stopping takes too long
graceful shutdown time

# --served-model-name @serve
= `--served-model-name NAME` is the model's name in requests and responses; several are allowed. Default: the folder's name.
!the [model's name|served model name|name of the model|model id]
~[rename|give a name to|alias|name] [the model|the served model|my model]
~give the model several names
-a
--alias
model alias
which model name do clients use
name in the model field
what do I put in the model field
change the model id in /v1/models
model name in requests

# --tool-call-parser @serve
= `--tool-call-parser` is the format of the model's tool calls: auto, none, hermes, llama3_json or mistral. Default: auto.
!the [tool call format|tool parser|tool call parser]
which tool [parsers|call parsers|formats] are there
tool call parser
hermes
llama3_json
~[choose|select] a tool parser
parse tool calls
tool parser for Qwen
tool parser for Llama 3

# --reasoning-parser @serve
= `--reasoning-parser` is the format of the model's reasoning: auto, none or think. Default: auto.
!the [reasoning format|reasoning parser]
which reasoning parsers are there
reasoning parser
--enable-reasoning
~[choose|select] a reasoning parser
parser for thinking models
deepseek_r1 parser

# --num-workers @serve
= `--num-workers N` threads parse and tokenize, and as many write responses. Default: 2.
!the number of [workers|worker threads|parsing threads|tokenizing threads]
how many worker threads does the server have
worker threads
more threads for tokenizing
tokenizer threads
threads that parse requests
number of workers

# --num-grammar-threads @serve
= `--num-grammar-threads N` threads compile grammars of structured output. Default: 2.
!the number of [grammar threads|threads that compile grammars]
threads for grammars
grammar threads
how many threads compile grammars
JSON schemas compile slowly
speed up grammar compilation

# --num-io-threads @serve
= `--num-io-threads N` threads read and write sockets. Default: 2.
!the number of [I/O threads|network threads|socket threads]
network threads
io threads
threads for sockets
how many I/O threads are there
threads for the network

# --model @serve
= `--model DIR` is the folder of a Hugging Face checkpoint, or a name in its cache. Without it Quire uses the embedded model.
!the [model folder|model directory]
-m
which flag takes the model
--model-path
what must --model point to
does --model take a folder or a file
model flag
quire serve --model
can --model be a hub name
is --model required

# positional dir
= `quire serve DIR`, `quire chat DIR` and `quire doctor DIR` are the same as with `--model DIR`.
quire chat DIR
difference between quire chat DIR and quire chat --model DIR
must I write --model
can I leave --model out
quire serve DIR
positional model argument
quire serve ~/models/llama
difference between quire serve DIR and --model DIR
is the folder a positional argument

# --tokenizer @serve
= `--tokenizer DIR` is a folder with another tokenizer. Default: the model's own.
!the tokenizer
~use [another|a different] tokenizer
my model has no tokenizer
tokenizer from another folder
tokenizer path
tokenizer folder
where is the tokenizer taken from

# --load-format @serve
= `--load-format dummy` makes random weights of the config's shape, so only `config.json` and a tokenizer are needed. Default: auto, the real weights.
!the load format
which load formats are there
load format
--load-format dummy
--load-format safetensors
what is a dummy load format
?[dummy weights|random weights|a dummy model]
~[use|run with|load] [random weights|dummy weights]
~[benchmark|test] without [weights|downloading weights]
dummy weights
random weights
measure a model without its weights
benchmark a model I have not downloaded
fake weights

# --dtype @serve
= `--dtype` sets the type of dummy weights: auto, f32, f16 or bf16. Real weights keep the checkpoint's type. Default: auto.
!the [type of dummy weights|dtype]
which values can --dtype have
--dtype half
--dtype bfloat16
--dtype float16
does --dtype convert the weights
the dtype is refused
--dtype is not the checkpoint's

# --max-model-len @serve *1.5
= `--max-model-len N` is the most tokens of prompt and output, such as 8192 or 8K. Default: 0, the model's own.
!the [context length|context window|context size|maximum length|context|sequence length]
~[limit|shorten|reduce|increase|choose|set] the [context|context length|context window|context size]
-c
--ctx-size
--context-length
n_ctx
context length
how long may prompt and output be
maximum tokens of prompt and output
max model len 32k
shorter context to save memory
num_ctx

# 8k suffix
= `8k` means 8,000 tokens and `8K` means 8,192.
what is the difference between 8k and 8K
is 8k 8000 or 8192
what does --max-model-len 8k mean
suffix k or K
8K
k and K in token counts
does 8K mean 8192

# --allow-long-max-model-len @serve
= `--allow-long-max-model-len` lets `--max-model-len` pass the model's own context. Default: off.
!a context longer than the model's
~[use|set|allow] a context [longer than the model's|beyond the model's|greater than the config's]
--max-model-len is larger than the model's context
longer context than the model was trained for
VLLM_ALLOW_LONG_MAX_MODEL_LEN
extend the context
exceed the model's context
max-model-len beyond the model's context

# long context
= Quire serves the model's full context if the KV cache fits; otherwise it shrinks with a warning that gives its length.
what is the maximum context
how long can the context be
why is the context shorter than the model's
%[long contexts|128k context|long prompts|a context of 1 million tokens|32k tokens]
the context was shrunk
warning: context shrinks
does the context fit into memory
why did the context shrink
context warning at start
how long a prompt can I send

# --seed @generate
= `--seed N` makes the random choices of sampling reproducible. Without it each prompt has its own seed, the same in every run.
!the [seed|random seed]
~[fix|set] the [seed|random seed]
random seed
seed
seed of sampling
does the seed matter
~make sampling reproducible
are outputs random without a seed
what is the default seed
which seed is used without --seed
why do I get the same output every run
why is the output always the same
random seed default
is the seed random
same answer every time
why is sampling not random
~get a different answer each time

# --max-num-seqs @serve *1.5
= `--max-num-seqs N` bounds the sequences that run in one step. Default: 64 on a CPU, 256 on a GPU.
!the [batch size|number of sequences|most sequences in a step|number of running sequences|number of running requests|number of slots]
~limit the [batch size|number of running requests|concurrency]
-np

--max-running-requests
how many requests run at once
how many users can it serve at once
batch size
max batch size
number of parallel requests
parallel sequences
increase concurrency
slots

# --max-num-rule-seqs @serve
= `--max-num-rule-seqs N` bounds the sequences with penalties, biases, bans or min_tokens. Default: all on a CPU, 256 on a GPU.
!the number of [rule tables|sequences with penalties|sequences with rules]
?[rule tables|a rule table|rules of a sequence]
rule tables
memory of penalties
sequences with logit_bias wait
how much memory does logit_bias take
requests with penalties wait

# --max-num-batched-tokens @serve
= `--max-num-batched-tokens N` is the most tokens in one step. Default: 512 on a CPU, 8192 on a GPU.
!the [tokens per step|number of tokens in a step|prefill chunk size|chunk size]
-b
--ubatch-size
--batch-size of llama.cpp
--chunked-prefill-size
chunk size of prefill
tokens per step
how many tokens does one step compute
token budget of a step
prefill chunk

# --block-size @serve
= `--block-size` (or `--page-size`) is the number of tokens per page of the KV cache: 16, 32 or 64. Default: 16.
!the [page size|block size|KV page size|tokens per page]
--page-size
which page sizes are there
tokens per page
KV block size
page size
how large is a KV page
default page size
tokens in a block

# --kv-cache-dtype @serve
= `--kv-cache-dtype` is the type of the KV cache: auto, f32, f16, bf16 or fp8. Default: auto.
!the [type of the KV cache|KV cache type|KV cache precision|dtype of the cache]
-ctk
--cache-type-k
which types can the KV cache have
quantize the KV cache
KV cache dtype
%[an FP8 KV cache|FP8 KV|a quantized KV cache|fp8 cache]
~[use|get|enable] an FP8 KV cache
fp8 kv cache
~make the KV cache smaller
halve the KV cache
type of the cache

# --kv-cache-memory @serve
= `--kv-cache-memory BYTES` is the size of the KV cache, such as 512M or 4G. Without it the size is planned.
!the [size of the KV cache|KV cache size|KV memory|cache size]
~[limit|set|choose|reduce|increase] the [KV cache|size of the KV cache|KV cache memory]
--kv-cache-memory-bytes
--num-gpu-blocks-override
how large is the KV cache
KV cache size
memory of the KV cache
give the cache 4 GB
cache memory

# --no-enable-prefix-caching @serve
= `--no-enable-prefix-caching` computes shared beginnings of prompts again for each request. Default: off, they are cached.
which flag disables prefix caching
disable prefix caching
--disable-radix-cache
do not cache prompts
no prefix cache
~compute every prompt anew
--enable-prefix-caching=false

# --no-enable-chunked-prefill @serve
= `--no-enable-chunked-prefill` computes each prompt in one step. Default: off, prompts are chunked.
which flag disables chunked prefill
~turn off chunked prefill
~compute a prompt in one step
disable chunked prefill
no chunking of prompts
whole prompts in one step
prefill without chunks

# --device @serve *1.5
= `--device` is where to compute: auto, cpu or cuda. Default: auto.
!the device
~[choose|select|switch] [the device|between CPU and GPU|where to compute]
~[use|run on|force] the GPU
-ngl
--n-gpu-layers
cpu or gpu
device cuda
--device cuda
move the model to the GPU
offload layers to the GPU
use CUDA
GPU layers

# which gpu
= `CUDA_VISIBLE_DEVICES=1` chooses another GPU; Quire takes the first one that CUDA shows.
~[select|choose|pick|use] [a certain GPU|which GPU to use|the second GPU|another GPU|a specific GPU|GPU 1]
which GPU does quire use
--main-gpu
CUDA_VISIBLE_DEVICES
GPU index
second GPU
--device cuda:1
which of my GPUs is used
choose GPU
select gpu by number

# --cpu-activations
= `--cpu-activations bf16` or `int8` makes products on a CPU faster: bf16 with BF16 weights, int8 with a quantized GGUF file. Default: f32.
!the rounding of activations on a CPU
~[speed up|make faster] a [quantized|GGUF|Q4_K_M] model on a CPU
~[use|compute with] [int8|8-bit|bf16] activations [on a CPU|]
int8 activations
bf16 activations
are activations quantized on a CPU
inputs of products on a CPU

# --threads @serve
= `--threads N` is the number of CPU threads that compute. Default: 0, one per usable core.
!the number of [threads|CPU threads|cores]
~[limit|reduce|set] the [number of threads|threads|cores|CPU usage]
-t
how many [threads|cores] does quire use
use 8 threads
threads
number of cores
use fewer cores
OMP_NUM_THREADS
default number of threads
use all cores

# --tensor-parallel-size @serve
= `--tensor-parallel-size` is the number of devices that share a model; only 1 is possible so far. Default: 1.
which values can --tensor-parallel-size have
-tp 1
tensor parallel size
-tp
number of GPUs flag
!the number of GPUs

# --attention-backend @serve *1.5
= `--attention-backend NAME` forces one attention backend where it can serve; `quire doctor` lists them. Default: auto.
!the attention backend
~[force|choose|select|change] [an attention backend|the attention backend|flashinfer|xqa|cudnn|the native backend]
VLLM_ATTENTION_BACKEND
attention backend
use FlashInfer
use xqa
--attention-backend flashinfer
--attention-backend trtllm_mha
switch to cudnn attention
which attention is used

# --prefill-attention-backend @serve
= `--prefill-attention-backend NAME` forces the backend of prefill; if it cannot serve, Quire does not start.
!the attention backend of prefill
~force a backend for prefill [only|]
prefill backend
backend for prompts
attention for prefill only
flashinfer for prefill

# --decode-attention-backend @serve
= `--decode-attention-backend NAME` forces the backend of decode; if it cannot serve, Quire does not start.
!the attention backend of decode
~force a backend for decode [only|]
decode backend
attention for decode only
xqa for decode
backend for generation steps

# attention backends
= On a GPU: native, flashinfer, xqa (Hopper, decode) and cudnn (decode). On a CPU: cpu and reference.
which attention backends [are there|exist|does quire have|can I choose]
list of attention backends
attention backends
what backends are there
%[FlashAttention|flash attention|TensorRT-LLM kernels|FlashAttention 3]
?[attention backends|an attention backend]
available attention backends
names of the backends
which kernels are there for attention

# how is backend chosen
= Measurements choose the fastest attention backend for each phase and size; `--attention-backend` forces one.
how [is the attention backend|are attention backends] [chosen|selected]
who chooses the attention backend
which attention backend is [fastest|best|the default]
which backend should I choose
automatic backend selection
what does --attention-backend auto do
auto attention backend
default attention backend

# xqa
= xqa: TensorRT-LLM's decode kernels, for Hopper GPUs and decode only.
?[xqa|the xqa backend|XQA]
when is xqa used
what GPU does xqa need
xqa prefill
why is xqa not available
does xqa work on [Ampere|an A100|an RTX 4090]
trtllm_mha

# flashinfer
= flashinfer: FlashInfer's attention kernels, compiled ahead of time into the binary.
?[flashinfer|the flashinfer backend]
do I have to install flashinfer
is flashinfer compiled at run time
flashinfer
does flashinfer need a JIT
which version of flashinfer

# cudnn backend
= cudnn: decode attention by cuDNN, which must be installed in version 9.11 or later.
?[the cudnn backend|cudnn attention]
why is cudnn not available
which cuDNN version is needed
is cuDNN needed
cudnn
libcudnn.so.9
install cudnn

# native backend
= native: Quire's own CUDA attention kernels, for prefill and decode.
?[the native backend|native attention]
does quire have its own kernels
which kernels did quire write itself
native
own attention kernels
what is native attention

# reference backend
= reference: attention on the CPU in fp64, in the obvious order, by which other backends are tested. It is slow.
?[the reference backend|reference attention]
when do I use the reference backend
reference
--attention-backend reference
fp64 attention
slow but exact attention

# cpu backend
= cpu: the SIMD attention of the CPU, which is used there by default.
?[the cpu backend|cpu attention]
which attention runs on a CPU
SIMD attention
--attention-backend cpu
attention backend on CPU
default backend of a CPU

# --tuning-table @serve
= `--tuning-table FILE` chooses attention backends by a file of `quire tune`; `builtin` and `measured` name the other two tables.
!the tuning table
~use a [tuning table|file of quire tune|tuning file]
tuning table
where do I pass the file of tune
use tuned.csv
load a tuning file
is there a built-in tuning table

# --gpu-memory-utilization @serve *1.5
= `--gpu-memory-utilization X` is the share of a GPU's memory to use. Default: 0.9; without effect on a CPU.
!the [GPU memory share|share of GPU memory|GPU memory|fraction of GPU memory|VRAM usage]
~[limit|reduce|use less|change] [GPU memory|VRAM|the GPU memory]
--mem-fraction-static
how much [GPU memory|VRAM] does quire use
why does quire take [90 %|all|so much] of the GPU memory
gpu memory
VRAM limit
leave GPU memory for other programs
memory fraction
use half of the GPU memory
share the GPU with another program

# --enforce-eager @serve
= `--enforce-eager` turns off CUDA graphs. Default: off; without effect on a CPU.
which flag disables CUDA graphs
~turn off CUDA graphs
~run without CUDA graphs
--disable-cuda-graph
disable cuda graphs
eager mode
no cuda graph
cuda graph capture fails
skip graph capture

# cuda graphs
= Quire captures CUDA graphs at the start so that steps launch fast; `--enforce-eager` turns them off.
?[CUDA graphs|cuda graph capture|a CUDA graph|graph capture]
%[CUDA graphs|cuda graph]
does quire use CUDA graphs
why are CUDA graphs captured
cuda graphs
are CUDA graphs on by default
--compilation-config
is torch.compile used
what is captured at the start

# --log-format @serve
= `--log-format` is text or json: the format of log lines on standard error. Default: text.
!the [log format|format of logs]
~[get|write|print] [JSON logs|logs as JSON|structured logs]
json logs
log as json
structured logging
--log-format json
machine readable logs

# --log-level @serve
= `--log-level` is debug, info, warning, error or off. Default: info; warning with generate and chat.
!the [log level|verbosity|logging level|amount of logs]
~[get more logs|see debug messages|log more|log less|silence the logs|make quire quiet|turn on debug logs|reduce the log output]
-v of llama.cpp
verbose output
debug logs
log level
which log levels are there
quiet mode
too many logs
--log-level debug
no log output

# --prompt @generate
= `--prompt TEXT` is a prompt to complete; it may be repeated.
!the prompt
-p
which flag takes the prompt
generate --prompt
prompt flag
prompt text on the command line
can --prompt be given several times

# --input @generate
= `--input FILE` reads one request per line from a file; `-` is standard input.
!the input file
-f
--file
input file flag
which flag reads a file
file of prompts flag
input flag of generate

# --format @generate
= `quire generate --format json` prints one JSON object per sample. Default: text.
!the output format of generate
which output formats are there
text or json output
default format of generate
formats of generate
~[get|print|write|produce] [JSON|json output|machine readable output|JSON lines] [from generate|]
?--format json
which flag gives json
json output
output as JSON
--format json
output format of generate
what is the default output format
generate --format
parse the output in a script
jsonl output
%JSON output of generate

# --max-tokens @generate *1.5
= `--max-tokens N` is the most tokens to generate. Default: 256 with generate, 512 with chat.
!the [output length|length of the answer|number of generated tokens|maximum number of tokens|most new tokens|length of the output]
~[limit|shorten|lengthen|cap] the [answer|output|length of the answer|output length|reply]
~[get longer answers|get shorter answers|generate more tokens|generate fewer tokens|make the answer longer]
-n
--n-predict
the output is cut off
the answer stops in the middle
output too short
max new tokens
max_new_tokens
how many tokens are generated
default output length
why does the answer end early

# --temperature @generate *1.5
= `--temperature X` sets the sampling temperature; 0 is greedy. Default: the model's, otherwise 1.
!the [temperature|sampling temperature|randomness|creativity]
~[sample with a temperature|make the output more random|make the output more creative|lower the temperature|reduce randomness]
temperature
default temperature
--temp
sampling temperature
what temperature is used
temperature 0.7
more creative output

# --top-p @generate
= `--top-p X` samples from the most likely tokens of this total probability. Default: the model's, otherwise 1.
!top-p
%[nucleus sampling|top-p sampling|top_p]
?[top-p|nucleus sampling|top_p]
top p
nucleus
default top_p
top_p 0.9

# --top-k @generate
= `--top-k N` samples from the N most likely tokens; 0 or -1: all. Default: the model's, otherwise 0.
!top-k
%[top-k sampling|top_k]
?[top-k|top_k|top-k sampling]
top k
default top_k
sample from the 40 best tokens
top_k 40

# --min-p @generate
= `--min-p X` drops tokens below this share of the most likely token's probability. Default: the model's, otherwise 0.
!min-p
%[min-p sampling|min_p]
?[min-p|min_p|min-p sampling]
min p
default min_p
drop unlikely tokens
min_p 0.05

# --stop @generate
= `--stop TEXT` ends the output at this text; it may be repeated.
!the [stop text|stop string|stop sequence|stop word]
~stop at a [text|word|string|newline]
%[stop strings|stop sequences|stop words]
stop string
stop sequences
end the output at a word
stop word
reverse prompt
~end generation at a certain word

# --stop-token-ids @generate
= `--stop-token-ids IDS` are token ids that end the output.
!the stop token ids
~stop at a token id
stop token
stop ids
stop_token_ids
custom end token
end at a token id

# --include-stop-str-in-output @generate
= `--include-stop-str-in-output` keeps the stop text in the output. Default: off.
~keep the stop [text|string|word] in the output
where does the stop text go
is the stop string part of the output
include the stop string
include_stop_str_in_output
stop text missing in the output

# --ignore-eos @generate
= `--ignore-eos` continues after the end-of-sequence token. Default: off.
~ignore the [end token|EOS token|end-of-sequence token]
~continue after the end token
ignore_eos
eos
force a fixed output length
generate exactly N tokens
do not stop at EOS
always generate max_tokens

# --min-tokens @generate
= `--min-tokens N` is the least number of tokens to generate. Default: 0.
!the [minimum length|least number of tokens|minimum output length|minimum number of tokens]
~force a minimum length
min_tokens
minimum tokens
answers of at least 20 tokens
shortest output
at least N tokens

# --n @generate
= `--n N` is the number of samples per prompt. Default: 1.
!the number of [samples|answers|completions|outputs] per prompt
~[get|generate] several [answers|samples|completions|outputs] [for one prompt|per prompt|]
n samples
multiple samples
several completions
n=4
parallel sampling
how many outputs per prompt
number of choices

# --logprobs @generate
= `--logprobs N` gives the log probabilities of the N most likely tokens at each position.
!log probabilities of the output
~[get|print|see] [log probabilities|logprobs|token probabilities] of the output
logprobs flag
token probabilities
probabilities of generated tokens
generate --logprobs
confidence of tokens

# --prompt-logprobs @generate
= `--prompt-logprobs N` gives log probabilities at each token of the prompt.
!log probabilities of the prompt
~[get|see] the log probabilities of the prompt
~compute the likelihood of a text
prompt logprobs
score a text
likelihood of a prompt
prompt_logprobs

# --repetition-penalty @generate
= `--repetition-penalty X` above 1 makes tokens of the prompt and the output less likely. Default: the model's, otherwise 1.
!the repetition penalty
~[avoid|stop|prevent|reduce] [repetition|repetitions|repeating]
the model repeats itself
repetition penalty
repeat_penalty
--repeat-penalty
output loops
it says the same thing again and again
same sentence over and over

# --presence-penalty @generate
= `--presence-penalty X` penalizes each token that the output contains. Default: 0.
!the presence penalty
?[presence_penalty|the presence penalty]
presence penalty
penalty for tokens that occurred
presence_penalty
default presence penalty

# --frequency-penalty @generate
= `--frequency-penalty X` penalizes a token per occurrence in the output. Default: 0.
!the frequency penalty
?[frequency_penalty|the frequency penalty]
frequency penalty
penalty per occurrence
frequency_penalty
default frequency penalty

# --logit-bias @generate
= `--logit-bias ID:BIAS,ID:BIAS` adds to the logits of tokens.
!the logit bias
~[make a token more likely|make a token less likely|bias a token|raise the chance of a token]
%[logit bias|logit_bias]
logit bias
logit_bias
prefer a token
bias of tokens

# --bad-words @generate
= `--bad-words TEXT` is a text whose tokens are never generated in a row; it may be repeated.
!forbidden words
~[ban|forbid|block|avoid] [a word|words|bad words|a phrase]
%[bad_words|banned words]
bad words
banned words
forbidden word
never write a word
bad_words

# --allowed-token-ids @generate
= `--allowed-token-ids IDS` are the only tokens that may be generated.
!the allowed tokens
~[allow only certain tokens|restrict the output to some tokens]
allowed tokens
allowed_token_ids
whitelist of tokens
only these token ids

# --no-skip-special-tokens @generate
= `--no-skip-special-tokens` keeps special tokens in the text. Default: off, they are left out.
~[see|keep|show] special tokens [in the output|in the text|]
why are special tokens missing in the output
skip_special_tokens
special tokens
show <|end|> in the output
special tokens in the output

# --add-special-tokens @tokenize
= `quire tokenize --add-special-tokens` adds the tokens that the tokenizer puts around a text. Default: off.
~add [BOS|the BOS token|special tokens] when tokenizing
is BOS added
add_special_tokens
bos token missing
tokenize without bos
begin-of-text token
special tokens in tokenize

# --skip-special-tokens @detokenize
= `quire detokenize --skip-special-tokens` leaves special tokens out of the text. Default: off.
~leave out special tokens when [detokenizing|decoding ids]
special tokens in detokenize
decode without special tokens
detokenize without special tokens
detokenize --skip-special-tokens

# batch size of bench
= `--batch-size N` of bench latency is the number of requests in the batch. Default: 8. Elsewhere use `--max-num-seqs`.
?[--batch-size|--batch-size of bench latency]
--batch-size
which command has --batch-size
batch size of bench latency
bench latency batch
is there a --batch-size flag

# --insecure @bench serve
= `quire bench serve --insecure` accepts any TLS certificate.
~benchmark a server with a self-signed certificate
self-signed certificate in bench serve
ignore the certificate in the benchmark
certificate verify failed in bench serve
bench serve with https

# generation config
= Quire applies `generation_config.json` of the model's folder; flags and request fields override it.
?[generation_config.json|the generation config]
--generation-config
--override-generation-config
which defaults does the model bring
where do the default sampling parameters come from
default sampling parameters
generation_config
does quire read generation_config.json
sampling defaults of the model
why is the default temperature not 1

# sampling parameters
= Sampling has vLLM's parameters: temperature, top_p, top_k, min_p, penalties, logit_bias, stop, seed, n and logprobs.
which sampling [parameters|methods|settings] [are there|does quire have|are supported]
sampling parameters
%[sampling|sampling parameters|vLLM's sampling parameters|SamplingParams]
how do I control sampling
list the sampling flags
what can I sample with
decoding parameters

# unsupported samplers
= No, Quire does not have that sampler; it has temperature, top-p, top-k, min-p and penalties.
%[mirostat|typical sampling|DRY|the DRY sampler|XTC|tail-free sampling|eta sampling|top-a|dynamic temperature|top-n-sigma|locally typical sampling|contrastive search]
~use [mirostat|typical-p|DRY|XTC]
[mirostat|typical_p|dry sampler|xtc]
is mirostat available
--mirostat
--typical
does it have the DRY sampler
"""

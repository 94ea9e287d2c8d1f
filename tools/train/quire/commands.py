"""The commands: which there are, how each is called, their input and output."""

COMMANDS = r"""
# all commands *2
= The commands: serve, generate, chat, pull, tokenize, detokenize, template, bench, eval, tune, doctor and completion.
which [commands|subcommands] [does quire have|are there|exist|can I use]
what commands [are there|does quire have|can I run]
list [the commands|all commands|of commands|commands]
[commands|subcommands]
~[list|see|show] [all commands|the commands|the subcommands]
what can I run
name the subcommands
command overview
quire subcommands
all quire commands

# help
= `quire help` lists the commands, and `quire help serve` lists one command's flags with defaults and an example.
~[get|show|see] [help|the help|the help text|usage]
~[list|see|find] [all flags|the flags of a command|the flags|all options|the defaults]
where is the help
quire help
quire --help
[--help|-h|man page]
which flags [are there|exist|does a command have|does quire serve have|does generate have]
is there a man page
where do I find the list of flags
where can I look up [flags|the defaults|options]
show me all options
flags of quire serve
I don't know the flags
where are flags documented

# quickstart *2
= `scripts/quickstart.sh` installs what is missing, builds Quire and lets the embedded model solve a problem.
~[start|get started|begin|get going] [with quire|quickly|]
quickstart
getting started
what do I do first
first steps
I am new, where do I begin
how do I try quire
~try quire [out|quickly|]
tutorial for beginners
what is the fastest way to try it
quick start guide
scripts/quickstart.sh
what does quickstart.sh do
I just cloned the repository, what now

# load own model *2.5
= Give the folder of the checkpoint: `quire chat --model DIR`.
~[load|use|run|open|try|talk to] [my own model|my model|another model|a different model|a Hugging Face model|a checkpoint|a model from disk|a local model|my own weights|a HF model|a downloaded model|a real model|a larger model]
~[select|choose|switch|change|specify] [the model|a model|another model|to another model]
where do I put my model
where do I give the [path|folder|directory] of the model
load model from [folder|directory|path|disk]
quire load model
own model
custom model
how does quire find my model
can quire run my own model
~make quire use my [checkpoint|model|weights]
model path
how do I tell quire which model to use
quire [chat|run] my model
~replace the embedded model
I downloaded a model, how do I run it
I have safetensors files, how do I use them

# serve *2.5
= `quire serve --model DIR` serves the model at http://127.0.0.1:8000.
~[start|launch|run|bring up|boot|set up] [the server|a server|an API server|an OpenAI-compatible server|the HTTP server|the API|quire as a server|quire serve]
~[serve|host|deploy] [a model|my model|my own model|a checkpoint|an LLM|Llama|over HTTP|a model over HTTP]
?[quire serve|the serve command|serve]
quire serve
quire server
serve model
start server
what is the command for [the server|serving]
run an OpenAI server
server mode
how do I get an API
api server start
what is the equivalent of [vllm serve|llama-server|sglang.launch_server]
vllm serve
llama-server
python -m vllm.entrypoints.openai.api_server
~[make|expose] the model [available|reachable] [over HTTP|by an API]

# serve embedded
= `quire serve` without `--model` serves the embedded model.
~serve the [embedded|built-in|included|default] model
what does quire serve without [a model|--model] [do|serve]
which model does the server use [by default|without --model]
serve without model
can I start the server without a model
~try the server without [a checkpoint|a download|a model]
default model of the server
quire serve with no arguments

# chat *2
= `quire chat --model DIR` talks with your model in the terminal; without `--model` it talks with the embedded one.
~[chat|talk|have a conversation|speak] [with a model|with the model|with my model|in the terminal|on the command line|interactively]
~[start|open|run] [a chat|an interactive session|quire chat|the chat|a conversation]
?[quire chat|the chat command]
quire chat
interactive mode
chat mode
terminal chat
chat command
is there a chat
conversation in the terminal
what is the equivalent of [ollama run|llama-cli]
[llama-cli|ollama run llama3]
REPL

# chat commands
= In `quire chat`: `/help`, `/reset`, `/system TEXT`, `/save FILE`, `/load FILE`, `/regenerate`, `/stats` and `/quit`; Ctrl-C stops the reply.
which commands [does the chat have|are there in the chat|does quire chat know|can I type in the chat]
what can I type in [quire chat|the chat]
slash commands
chat slash commands
/help
list the chat's commands
keyboard shortcuts of the chat
chat help
keys in quire chat

# chat quit
= Type `/quit`, or press Ctrl-D.
~[leave|quit|exit|end|close|get out of|stop] [the chat|quire chat|the conversation|chat]
[/quit|/exit|quit|exit]
how do I get out of here
how do I exit
exit chat
where is the exit
ctrl-d
leave the terminal chat

# chat save
= Type `/save FILE` to write the conversation, and `/load FILE` to go on with it.
~[save|keep|store|export|write] [the conversation|the chat|a conversation] [to a file|for later|]
~[load|continue|go on with|reopen] [a saved|an old|yesterday's] [conversation|chat]
[/save|/load FILE|/save FILE]
can I save a chat
saved conversation

# chat regenerate
= Type `/regenerate`: it answers the last message again, with another seed.
~[get|see|have] another answer to the [same|last] message in the chat
/regenerate
answer again with another seed
I do not like this answer, another one
retry the last message in the chat

# chat stats
= Type `/stats`: it shows the speed of the last answer and how much of the context is used.
/stats
speed of the last answer in the chat
how full is the context in the chat
~see the tokens per second in the chat
how fast was that answer in the chat
used context of a chat

# --no-history
= `--no-history` keeps no history of what you type in `quire chat`. Default: off.
~keep no history of typed messages
does the chat remember what I typed
history of the chat
where is the chat history
~delete the chat history
arrow up shows old messages, I do not want that

# chat new line
= In `quire chat`, Alt-Enter begins a new line; pasted lines are one message.
~[type|write|enter] [several lines|a new line|more than one line] in [the chat|quire chat]
newline in the chat
Alt-Enter
~paste several lines into the chat
multi-line message in the chat

# chat reset
= Type `/reset`: it forgets the conversation.
~[reset|clear|forget|restart|erase] [the conversation|the chat|the history|the context]
~start a new [conversation|chat]
[/reset|/clear|/new]
clear history
new conversation
forget everything
does quire chat remember [the conversation|earlier turns|what I said]
reset chat

# chat stop reply
= Press Ctrl-C: it stops the reply and keeps the chat open.
~[stop|interrupt|abort|cancel] [the reply|the answer|a reply|the output|generation in the chat]
the reply does not end
it keeps [talking|writing|generating]
stop generating
ctrl-c in the chat
~interrupt the model in the chat
how do I make it stop writing

# system message
= `quire chat --system TEXT` sets the system message; over HTTP send a message with the role `system` first.
~[give|set|send|add|write|change] a [system message|system prompt]
?[--system|a system message|a system prompt|the system prompt]
which flag sets the system prompt
system prompt
system message
quire chat --system
--system-prompt
where does the system prompt go
can I tell the model how to behave
custom instructions

# generate *2
= `quire generate --model DIR --prompt TEXT` completes a prompt.
~[complete|continue|run] [a prompt|a text|one prompt]
~[generate|produce] text [from a prompt|with my model|on the command line|]
?[quire generate|the generate command|generate]
quire generate
generate text
text generation
one-shot generation
generate from a prompt
run a single prompt
completion on the command line
~run a prompt without a server
prompt on the command line
~get a completion in a script
generate command

# generate chat
= `quire generate --chat --prompt TEXT` puts each prompt into the model's chat template.
~[use|apply] the chat template [with generate|in generate|for a prompt]
~[generate with|apply to a prompt] the chat template
what does [generate --chat|--chat] do
--chat
why does generate [continue my question instead of answering|not answer my question]
generate with an instruct model
the instruct model rambles in generate
~ask an instruct model one question [on the command line|with generate]
single question without chat
chat template in generate
chat formatted prompt

# several prompts
= `quire generate --input FILE` runs many prompts, one JSON object per line; or repeat `--prompt`.
~[run|complete|process|send] [several prompts|many prompts|a batch of prompts|multiple prompts|a list of prompts]
%[batch generation|offline batches|offline inference|batch mode]
more than one prompt
batch inference from a file
offline batch
multiple prompts
batch processing
can I give --prompt twice
~process a file of prompts
run prompts from a file
quire generate --input prompts.jsonl
~read prompts from a file

# input fields
= Each line of `--input` is a JSON object with `prompt` or `prompt_token_ids`, and optionally `priority`, `cache_salt` and sampling fields.
what is the format of [--input|the input file|prompts.jsonl|the file for --input]
which fields [may a line of --input have|does --input take|can an input line have]
what does [a line of --input|an input line|prompts.jsonl] look like
input file format
jsonl format of generate
format of prompts.jsonl
fields of a request in generate --input
~write an input file
~write prompts.jsonl
example of an input line

# input sampling per line
= Write sampling flags as fields with `_`, such as `max_tokens` or `temperature`; they override the flags for that line.
~[set|give|use] different [temperatures|sampling parameters|settings|max_tokens] [per prompt|for each prompt|per line]
can a line of --input have its own [temperature|max_tokens|seed]
per-prompt sampling [parameters|settings]
sampling fields in the input file
does the input line override the flag
max_tokens per prompt
which takes precedence, the flag or the field
each prompt with its own temperature

# stdin
= `quire generate --input -` reads the prompts from standard input.
~[read|pipe] [from standard input|from stdin|prompts through a pipe|prompts from stdin]
~pipe [prompts|text|JSON] [into quire|in]
what does - mean as a file
stdin
standard input
can quire read from a pipe
--input -
echo | quire generate
read from pipe
input from another program

# json output fields
= `index`, `sample_index` (with `--n` above 1), `prompt_token_ids`, `token_ids`, `text` and `finish_reason`; a refused prompt has `index` and `error`.
which fields does the JSON output [of generate|] have
what is in [the JSON output|a line of the JSON output]
what does [the output of --format json|the JSON output] look like
json output fields
what is [answer_index|index|stop_reason] in the output
fields of the results
structure of the results file
output fields of generate
meaning of the output fields

# finish reason
= `stop`: an end token or stop text; `length`: the token limit; `cancelled` or `error` otherwise.
?[finish_reason|the finish reason|finish_reason length|finish reasons]
what values does finish_reason have
why is the finish_reason [length|stop]
what does [length|stop] mean as finish_reason
finish_reason
finish reason values
finish_reason length
how do I know why the output ended
why did the output end
was my output cut off

# save output
= `quire generate --input prompts.jsonl --format json > answers.jsonl` saves the results; logs go to standard error.
~[save|write|store|put] [the output|the results|the answers|the answer] [to a file|in a file|on disk]
output to file
where is the output written
is there an --output flag for generate
redirect output
write results to disk
save generations
store the answers in a file
separate logs from output

# prompt ids
= `quire generate --prompt-ids 1,2,3` takes token ids; in a file use `prompt_token_ids`.
~[give|pass|use|send] [token ids|ids|a prompt as token ids|tokens instead of text]
?[--prompt-ids|prompt_token_ids]
can a prompt be token ids
--prompt-ids
token ids as prompt
prompt_token_ids
generate from ids
skip the tokenizer
prompt as ids

# tokenize
= `quire tokenize --tokenizer DIR --text TEXT` prints the token ids.
~[tokenize|encode] [a text|text|a string|a prompt|a sentence]
~[get|see|print|show] [the token ids|token ids of a text|the tokens]
?[quire tokenize|the tokenize command]
text to ids
tokenize
quire tokenize
encode text
convert text to tokens
turn text into tokens
text to token ids
tokenizer command

# count tokens
= Count the ids that `quire tokenize --tokenizer DIR --text TEXT` prints, or post the text to `/tokenize`.
~count [tokens|the tokens of a text|the tokens of a prompt|how many tokens a text has]
how many tokens [does my prompt have|does a text have|are in my text]
token count
length of a prompt in tokens
number of tokens in a text
is my prompt too long
prompt length in tokens
tiktoken
count tokens

# detokenize
= `quire detokenize --tokenizer DIR --ids 1,2,3` prints the text.
~[detokenize|decode|translate] [ids|token ids|tokens]
~turn [ids|token ids|tokens] [into text|back into text]
?[quire detokenize|the detokenize command]
ids to text
detokenize
quire detokenize
convert ids to text
what text are these ids
decode ids
token ids to string

# template
= `quire template --tokenizer DIR --input FILE` renders the chat template of a JSON object with `messages`.
~[render|test|try|see|check|print] [a chat template|the chat template|the rendered prompt|the prompt that a chat makes]
?[quire template|the template command]
quire template
show the prompt of a chat
how does my conversation look as a prompt
render template
chat template output
template command
apply_chat_template
apply chat template
debug the chat template
~see the final prompt of a chat

# --chat-template
= `--chat-template FILE` is a Jinja file used instead of the model's own chat template, in serve, chat and generate.
~[use|give|set|load|override|replace|change] [my own|a custom|another|the|a different] chat template
?[--chat-template]
which flag sets the chat template
chat template file
custom chat template
--chat-template
--chat-template-file
--jinja
jinja file
template override
override the model's template
jinja template
where do I put a chat template
which flags take a Jinja file
does --chat-template take a file or text
chat-template flag of serve
what kind of file does --chat-template take
can I pass the template as text
quire serve --chat-template

# template source
= From `chat_template.jinja` in the model's folder, otherwise from `chat_template` in `tokenizer_config.json`.
where does [the chat template|quire's chat template|the template] come from
which chat template is used
where is the chat template [stored|found|]
which file has the chat template
default chat template
chat_template.jinja
tokenizer_config.json chat_template
how does quire find the chat template
what is the default chat template

# no template
= The model has no chat template, so chat requests get 400; give one with `--chat-template FILE`.
my model has no chat template
what if [the model has no chat template|there is no chat template]
the model does not have a chat template
chat with a base model
no chat template
can I chat with a base model
base model in chat
error: no chat template
chat requests fail with 400 because of the template

# template accuracy
= Quire renders chat templates byte for byte as transformers does, in its own Jinja interpreter with a budget of steps and bytes.
is the chat template rendered [correctly|exactly|like transformers]
%[Jinja templates|chat templates|Jinja|jinja2]
which Jinja engine does quire use
does quire render templates like transformers
jinja support
is jinja2 needed
template compatibility with transformers
chat template [support|correctness]
can a template read files

# bench
= `quire bench` measures: throughput, latency, serve and attention, for example `quire bench throughput --model DIR`.
~[benchmark|measure|test the speed of] [quire|my model|a model|my machine|the engine|performance]
?[quire bench|the bench command|bench]
which benchmarks are there
quire bench
benchmark
bench subcommands
what can bench measure
measure speed
run a benchmark
llama-bench
what is the equivalent of [llama-bench|vllm bench]
performance test
speed test

# bench throughput
= `quire bench throughput --model DIR --input-len 512 --output-len 128 --num-prompts 32` measures requests and tokens per second.
~measure [throughput|tokens per second|requests per second]
?[bench throughput|quire bench throughput|the throughput benchmark]
throughput benchmark
bench throughput
vllm bench throughput
tokens per second of my model
offline throughput
~find the throughput of my GPU
throughput test
how many tokens per second does my machine make

# bench latency
= `quire bench latency --model DIR --batch-size 1` measures the time of one batch.
~measure [latency|the latency|the time of a batch|the latency of one request]
?[bench latency|quire bench latency|the latency benchmark]
latency benchmark
bench latency
vllm bench latency
how long does one batch take
batch latency
latency test
time of a single batch

# bench serve
= `quire bench serve --base-url http://127.0.0.1:8000` puts load on a running server and reports latencies and tokens per second.
~[benchmark|load test|stress|measure|put load on] [a server|a running server|the server|my server|vLLM|another server]
?[bench serve|quire bench serve|the serving benchmark]
load test
bench serve
serving benchmark
vllm bench serve
can quire measure other servers
benchmark an OpenAI server
measure ttft
~measure [TTFT|ITL|TPOT|the time to first token]
server load generator
stress test

# bench attention
= `quire bench attention --model DIR` times a GPU's attention backends side by side.
~[compare|benchmark|time|measure] [attention backends|the attention backends|attention kernels]
?[bench attention|quire bench attention]
attention benchmark
bench attention
which attention kernel is fastest
compare flashinfer and xqa
kernel benchmark
time attention kernels
attention kernel speed

# bench sharegpt
= `quire bench serve --dataset-name sharegpt --dataset-path FILE` uses the dialogues of ShareGPT.
~[benchmark|measure|test] with [ShareGPT|real dialogues|a dataset|ShareGPT data]
%[ShareGPT|sharegpt datasets|datasets in benchmarks]
sharegpt
benchmark with sharegpt
which datasets can bench use
--dataset-name
--dataset-path
use my own dataset for benchmarks
realistic prompts in the benchmark
replay a trace

# bench rate
= `quire bench serve --request-rate 4` sends 4 requests per second; `--max-concurrency` bounds how many run at once.
~send [a fixed number of requests per second|requests at a rate|4 requests per second]
~limit the [request rate|concurrency|load] of the benchmark
?[--request-rate|--max-concurrency|the request rate of bench serve]
request rate
--request-rate
--max-concurrency
qps in bench serve
how do I set the load of bench serve
requests per second in the benchmark
concurrency of the benchmark
Poisson arrivals

# bench goodput
= `quire bench serve --goodput ttft:200,tpot:50` also reports the rate of requests within these limits in ms.
~measure [goodput|how many requests meet an SLO|goodput under a latency limit]
?[--goodput|goodput]
goodput
SLO in the benchmark
--goodput
requests within a latency limit
service level objective
goodput limits

# bench percentiles
= `quire bench serve --percentile-metrics ttft,itl --metric-percentiles 50,99` chooses them; by default the 99th percentile.
~[print|see|choose] [other percentiles|p50|percentiles|p90|the median latency] [in the benchmark|of the latencies|]
?[--metric-percentiles|--percentile-metrics]
which percentiles does bench serve print
p99 latency
percentiles
--percentile-metrics
--metric-percentiles
latency percentiles
p95 in bench serve

# bench json
= `--json FILE` of `quire bench` and `quire eval` writes the results to a file, whose folder must exist.
~[save|write] [benchmark results|the benchmark's results|results of a benchmark] [to a file|as JSON|]
?[--json|--output-json]
--json
--output-json
benchmark results as JSON
store the results of bench
json report
results file of the benchmark
bench output file

# bench input len
= Tokens per prompt and per output: `--input-len` and `--output-len`; for bench serve `--random-input-len` and `--random-output-len`.
~[set|change|choose] the [prompt length|input length|output length|lengths] [of the benchmark|in bench|for a benchmark]
?[--input-len|--output-len|--random-input-len|--random-output-len]
prompt length of the benchmark
--input-len
--output-len
--random-input-len
--random-output-len
how long are the benchmark's prompts
default length of benchmark prompts
output tokens per request in bench

# num prompts
= `--num-prompts N` sets the number of requests of a benchmark. Default: 1000.
~[set|change|choose] the number of [requests|prompts] [of the benchmark|in a benchmark]
?[--num-prompts]
--num-prompts
how many requests does the benchmark send
make the benchmark shorter
number of prompts in bench
the benchmark takes too long
default number of benchmark requests
shorter benchmark

# bench profile
= `quire bench throughput --profile` also reports the GPU's time by kernel; it needs libcupti.
~[profile|see] [the kernels|GPU kernels|the time of each kernel|where the GPU's time goes|a model]
?[--profile|profiling]
--profile
profiler
kernel times
which kernel takes longest
profile the GPU
nsys
is there a profiler
libcupti

# eval
= `quire eval gsm8k --data test.jsonl --model DIR` measures accuracy on grade-school word problems.
~[measure|evaluate|test|check] the accuracy [of a model|of my model|on GSM8K|]
~[run|do] [GSM8K|an evaluation|gsm8k]
?[quire eval|eval gsm8k|the eval command|GSM8K in quire]
quire eval
gsm8k
accuracy
evaluation
eval gsm8k
which evaluations are there
how accurate is my model
evaluate a model
accuracy benchmark

# eval perplexity
= `quire eval perplexity --data FILE --model DIR` measures the perplexity of a text.
~[measure|compute|get|evaluate] [the|a|] perplexity [of a model|of my text|of a text file|]
?[eval perplexity|perplexity in quire|quire eval perplexity]
perplexity
compare the loss of [weight formats|quantizations|two models]
how much does quantization lose
bits per byte of a text
wikitext

# --context @eval perplexity
= `--context N` of eval perplexity is the most tokens that the model reads before the one it predicts. Default: 512.
!the context of eval perplexity
window size of perplexity
longer windows for perplexity
eval perplexity --context
how much context does perplexity use

# --stride @eval perplexity
= `--stride N` of eval perplexity is the number of tokens by which a window moves. Default: half of the context.
!the stride of eval perplexity
do the windows of perplexity overlap
disjoint windows for perplexity
eval perplexity --stride
overlap of the windows in eval perplexity

# eval shots
= `quire eval gsm8k --data FILE --num-shots 8 --shots FILE` puts 8 solved problems before each question. Default: 8.
~[set|change] the number of [shots|examples] [in eval|for gsm8k|]
?[--num-shots|--shots|shots in eval]
--num-shots
--shots
few-shot evaluation
zero-shot evaluation
8-shot GSM8K
how many shots does eval use
where do the shots come from

# lm eval
= Point lm-eval at `http://127.0.0.1:8000/v1/completions` of `quire serve`; other evaluations are not built in.
%[lm-eval|lm-evaluation-harness|MMLU|HellaSwag|HumanEval|other benchmarks of accuracy]
~[run|use] [lm-eval|the lm-evaluation-harness|MMLU] [with quire|]
lm-eval
MMLU
does lm-eval work with quire
evaluate on MMLU
lm_eval
eleuther harness

# tune
= `quire tune --model DIR --output tuned.csv` measures a GPU's attention backends; pass the file as `--tuning-table`.
~[tune|autotune|optimize] [quire|attention|for my GPU|the attention backends|the backend choice]
?[quire tune|the tune command|tuning|autotuning]
quire tune
tune
autotune
make a tuning table
tuning for my GPU
what does tune measure
how do I use the result of tune
is there an autotuner
tuned.csv

# tune quick
= `quire tune --quick` measures a few points only.
~[tune quickly|make tune faster|shorten tuning]
?[--quick|quire tune --quick]
--quick
tune takes too long
quick tuning
is there a short tuning
faster tuning
tuning is slow

# doctor *2
= `quire doctor` reports what this machine and build can do, and why not; `quire doctor --model DIR` also checks a model.
~[check|diagnose|inspect] [my machine|the machine|my setup|the installation|the hardware|my system|if everything works]
?[quire doctor|the doctor command|doctor]
quire doctor
diagnostics
what does doctor print
what can my machine do
system check
is my GPU found
which backends are available
check the installation
does my machine support quire
self test
health check of the machine
verify my setup
why is something missing

# doctor model
= `quire doctor --model DIR` shows the model, its memory plan and the attention backends that serve it.
~[check|see] [if|whether] [a model fits|my model works|a model is supported|my model fits into memory|my model will run]
will my model fit [into memory|on my GPU|]
does my model fit
~see the memory plan
?the memory plan
memory plan
how much memory will my model need
can my GPU hold the model
test a model without running it
model check
is this checkpoint supported
fits in VRAM

# completion
= `quire completion bash > ~/.local/share/bash-completion/completions/quire`; zsh and fish work too.
~[install|get|enable|turn on|set up] [shell completion|tab completion|bash completion|zsh completion|fish completion|completion]
?[quire completion|the completion command|shell completion]
quire completion
tab completion
bash completion
zsh completion
autocomplete flags
fish completion
complete flags with tab
shell completions

# exit codes
= 0: success; 1: failure at run time; 2: the command line is wrong; 130, 143 and 129 after Ctrl-C, SIGTERM and SIGHUP.
which exit codes [are there|does quire have|exist]
what does exit code [1|2|130|143|129|0] mean
?[the exit code|exit codes|the return code|exit status 2]
exit code
exit status
return codes
why does quire return [2|1|130]
quire exits with [1|2|130|143]
error code of the process
~check in a script whether quire succeeded

# sizes
= Sizes are bytes or have a suffix of powers of 1024: `512M`, `4G`, `4GB` or `4GiB`.
how do I write [sizes|a size|bytes|gigabytes]
what does 4G mean
which units do sizes have
is 4G 4 GB or 4 GiB
size suffixes
units of sizes
bytes format
can I write 512M
how are sizes given
do sizes use powers of 1000 or 1024

# errors on stderr
= Errors are one line on standard error that names what was wrong, and often the remedy.
where are errors [printed|written|shown]
how does quire report errors
what do error messages look like
stderr
error output
format of errors
where do I see [errors|the reason of a failure]
error messages

# example problem
= Try `quire generate`: the embedded model solves a word problem.
~see an example
what is the simplest command
show me an example
run a demo
demo
example of quire
quire generate without arguments
what happens if I run quire generate alone
try it without a model
is there a demo
simplest way to run quire

# quire without args
= Run `quire help`: it lists the commands.
what do I do with the quire command
what does quire without arguments do
just typing quire
quire alone does nothing
running quire shows a usage text
a command is required
quire: no subcommand
which subcommand do I need

# unknown flag message
= The flag is not one of this command; `quire help COMMAND` lists its flags.
not expected
error: not expected
what does "not expected" mean
unknown flag error
it says not expected
my flag is [refused|not accepted|unknown]
did you mean
unrecognized arguments
unknown option
invalid argument
why is my flag not accepted
"not expected: --foo"
exit code 2 because of a flag

# which binary
= After a build the program is `build/quire`.
where is the [binary|program|executable|quire program]
~find the [binary|executable|program]
where does the build put [quire|the binary]
what is the program called
command not found: quire
quire: command not found
bash: quire: command not found
path of the binary
which file do I run
no such command quire

# list models
= `curl http://127.0.0.1:8000/v1/models` shows the model of a running server; Quire keeps no list of models on disk.
~list [models|the models|installed models|the served models|available models]
what is the equivalent of ollama list
ollama list
list models
which model is [served|loaded]
GET /v1/models
/v1/models
~see which model is [running|loaded|served]
what models are installed
model name of the server

# bench shape flags
= `--num-heads`, `--num-kv-heads` and `--head-dim` give tune and bench attention a shape instead of a model's. Default: 0.
--num-heads
--num-kv-heads
--head-dim
~[tune|time attention] for [a shape|given heads] without a model
!the [number of heads|number of KV heads|head size] in [tune|bench attention]
attention shape of the benchmark

# --q-len @tune
= `--q-len N,N` is the number of query tokens per sequence in decode, for tune and bench attention.
!the query length in [tune|bench attention]
query tokens per sequence
q_len
how many query tokens does tune measure
decode with several query tokens

# --grid @bench attention
= `--grid` of bench attention is seed, strict or prefill: which batches and lengths are timed. Default: seed.
!the grid of bench attention
which grids are there
--grid strict
strict grid
shapes of the attention benchmark
seed grid

# --backends @bench attention
= `--backends native,xqa` names the attention backends that bench attention measures. Default: all that support the shape.
!the backends of bench attention
~measure only some backends
compare only native and xqa
which backends does bench attention measure
backends flag

# bench attention batches
= `--num-seqs N,N` and `--seq-lens N,N` set the batch sizes and context lengths of bench attention.
--num-seqs
--seq-lens
!the [batch sizes|context lengths] of bench attention
~time attention at certain lengths
lengths of the attention benchmark
batch sizes of bench attention

# --csv @bench attention
= `--csv FILE` of bench attention writes the results as CSV, for `tools/plot_attention.py`.
~[write|save] the attention benchmark as CSV
~plot the attention benchmark
csv output
tools/plot_attention.py
plot of attention times
csv file of the results

# --peak @bench attention
= `--peak X` of bench attention is the rate that counts as 100 %, in GB/s or TFLOP/s. Default: 0, an H200's.
!the peak rate of bench attention
share of the peak
how is the share of the peak computed
peak bandwidth of my GPU
percentages in bench attention

# bench iterations
= `--num-iters N` is the number of measured runs and `--num-iters-warmup N` that of runs before the measurement.
--num-iters
--num-iters-warmup
!the number of [iterations|measured runs|warm-up runs] of a benchmark
how often does a benchmark repeat
warm-up of bench latency
repeat a benchmark more often

# --num-warmups @bench serve
= `--num-warmups N` of bench serve is the number of requests before the measurement. Default: 0.
!the number of warm-up requests of bench serve
~warm up the server before a benchmark
warm-up requests
warmup of bench serve
requests before the measurement

# --burstiness @bench serve
= `--burstiness X` of bench serve: 1 is Poisson arrivals, below 1 burstier, above 1 more even. Default: 1.
!the burstiness of [requests|arrivals]
~[send requests in bursts|make arrivals more even]
bursty traffic
arrival pattern
distribution of arrivals

# --random-range-ratio @bench serve
= `--random-range-ratio R` draws random lengths from len * (1 - R) to len * (1 + R). Default: 0.
!the spread of random lengths
~vary the lengths of benchmark prompts
different prompt lengths in a benchmark
random lengths
range ratio

# --random-prompts @bench serve
= `--random-prompts` of bench serve is ids or words: random token ids or English words. Default: ids.
!the kind of random prompts
~benchmark with [words|real words] instead of ids
random words as prompts
ids or words
which random prompts does bench serve send

# --endpoint @bench serve
= `--endpoint` of bench serve is the route to measure: /v1/completions or /v1/chat/completions. Default: /v1/completions.
!the route that bench serve measures
~[benchmark|measure] the chat [route|endpoint]
which route does bench serve use
chat completions in bench serve
measure chat requests

# --base-url @bench serve
= `--base-url URL` of bench serve is the server's address, such as http://127.0.0.1:8000, instead of host and port.
!the server that bench serve measures
which server does bench serve measure
~benchmark a server on another machine
URL of the benchmarked server
measure a remote server

# --vocab-size @bench serve
= `--vocab-size N` of bench serve bounds random ids; 0 is the size that /tokenizer_info reports. Default: 0.
!the vocabulary size of bench serve
largest random id in bench serve
vocab size of the benchmark
ids beyond the vocabulary in bench serve
bench serve against a server without /tokenizer_info

# --sharegpt-output-len @bench serve
= `--sharegpt-output-len N` is the output tokens per request with ShareGPT; 0: as many as the dialogue's reply. Default: 0.
!the output length with ShareGPT
output tokens with sharegpt
fixed output length for ShareGPT
sharegpt output length
how long are outputs with ShareGPT

# --num-questions @eval gsm8k
= `--num-questions N` is the most questions that eval gsm8k asks. Default: 1000.
!the number of questions of eval
~[ask fewer questions|shorten the evaluation]
eval takes too long
how many questions does eval ask
number of GSM8K problems

# --parallel @eval gsm8k
= `--parallel N` of eval gsm8k is the most questions in flight. Default: 1000. For a server use `--max-num-seqs`.
!the number of questions in flight
questions at once in eval
parallel questions in gsm8k
eval gsm8k --parallel
does serve have --parallel

# --data @eval gsm8k
= `--data FILE` of eval gsm8k has JSON lines with `question` and `answer`; it is required.
!the data file of eval
where do I get the data for eval gsm8k
format of the gsm8k file
data file of eval
questions and answers file

# --template @template
= `--template FILE` of quire template is a file with a template, instead of `--tokenizer`.
!the template file of quire template
~render a template from a file
render a jinja file
test a template file
quire template --template

# --output @tune
= `--output FILE` of quire tune writes the tuning table to this file.
!the output file of tune
where does tune write its table
tune --output
file of the tuning results
save the tuning table
"""

"""Questions that share their words and differ in the need: topic beside topic, so that no single word decides."""

CONTRASTS = r"""
# protect the server
[keys|secrets|passwords], not priorities: who may call [it|the server] at all
I don't care about order, I care about who gets in
[only|just] [my app|our team|known people|registered users] should [get in|be let in|be able to call it|have access]
let nobody in without a [key|secret|password]
keys for [all|every|our] [users|customers|clients] before I [go online|open the port|publish it]
important: no [access|calls] without a key

# --allow-request-priority
I don't care about who gets in, I care about the order
all have a key, but some [users|keys|customers] are more important
key customers should be [served|answered] [first|before the others]
our [paying|premium|important] [customers|users] should not [wait|stand] behind the [free|others|batch] [ones|users]
everybody may call it, but [not everybody is equally urgent|urgent calls come first|some should overtake]
[first come first served|the order of arrival] is not what I want
order the [line|waiting ones|queue] by importance

# --max-concurrency-per-key
each key should get its [fair|own|limited] share of the slots
a key with too many calls [at once|at the same time] should be slowed down
[bound|restrict|limit] how much one [customer|key|user|team] [runs|sends|asks] at the same time

# change keys
a key is no longer [valid|secret|trusted], take it out
must it be restarted when I add a [key|user|customer]

# --ssl-keyfile
which file is the private half of the certificate
the key that belongs to the certificate, not the one of the users
I have cert.pem and privkey.pem, where does the second one go

# duplicate keys
my JSON has the same key twice
one object with two equal keys
two fields of the same name in the body

# determinism
I changed the number of threads and compare outputs, will they be equal
is the text [the same|equal|identical] [with|for] [1|4|8|16] and [2|32|64] threads
does [the thread count|the number of cores|the batch|other users' load|caching|the chunk size] [change|alter|influence|affect] [the text|the output|the answer|the tokens|results]
would more [threads|cores|users] give [another|a different] [text|answer|output]
I'm not asking how to set the threads, but whether they change the answer
is it the same bits no matter how many [threads|cores|requests] there are
[alone|in a big batch|under load] or [with others|by itself|at night], is it the same answer

# --threads
I'm not asking if the answer changes, but how to use [fewer|more] cores
give it [all but one|only half|just two|exactly 6] of my cores
how do I [keep it from|stop it from] using [every core|all cores|the whole processor]
[fewer|less] [cores|processor time] for it, [other jobs|my editor|the database] need[s|] some
my laptop gets hot, let it [compute with|use] fewer cores
bind it to [four|six|2] cores

# --num-workers
threads that parse, not those that compute
threads for tokenizing, not for the model

# --seed
I want the same random output twice, not greedy
keep the randomness but make it [repeatable|reproducible|the same each time]
random, but the same random each time
I sample at temperature 1 and need to [repeat|reproduce] it

# greedy
no randomness at all rather than a fixed seed
I don't want it [random|to roll dice|to sample], [always the best token|just take the best]

# --chat-template
[use|take|apply] my own Jinja instead of the one [in the folder|of the model|that ships with the model]
the model's own turn format is [broken|wrong|missing a role|outdated], I have a [fixed|better|corrected] one
which flag [replaces|overrides] the format of turns
I have a file with a template and want the server to use it

# generate chat
I don't want another template, I want generate to use the model's own
[turn on|apply|switch on] the model's own template for one-off prompts
generate treats my question as raw text, it should be a user's turn
the template exists, but generate ignores it
my one-off prompt should be [formatted|wrapped|treated] like a message

# template
I don't want to [change|replace] the template, I want to see what it makes
[show|print|render] what the template makes of my messages

# template source
I don't want to change the template, I want to know which one is taken
where is the template [that it uses|in use] [stored|kept|read from]

# no template
the checkpoint comes without any template, can it chat
there's neither chat_template.jinja nor an entry in the config

# security of templates
may a client send a template in its request
can a caller inject a template

# chat
I don't care about templates, I just want to talk
open a conversation in my shell

# chat completions curl
chat over HTTP with curl, not in the terminal

# chat page
chat in a browser, not in the terminal

# attention backends
[which ones|what backends|what attention kernels] are there to choose from
I don't want to set one, I want to know which exist
what [is a backend|are backends|does backend mean] here
backend: what does the word mean in this program
[explain|tell me] what an attention backend is

# --attention-backend
I know which backends there are, now I want to set one
I want [a certain|one particular|another] backend, not the automatic one
[overrule|override] the automatic choice of [kernels|the backend]
I don't trust the automatic choice

# how is backend chosen
I don't want to set a backend, I want to know [how|why] it chose this one
on which grounds was this backend taken
[what|which rule] makes the automatic choice

# structured backend
--guided-decoding-backend
which backend [makes|does|enforces] [JSON schemas|grammars|structured output]
outlines or xgrammar or guidance

# --device
which flag says [where|on which hardware] it computes, processor or card
backend as in CPU or CUDA

# --reasoning-parser
the thoughts are not split off, which flag names their format
I start the server for a thinking model, which flag tells how it marks its thoughts
tell the server how [thoughts are|thinking is] marked in the text
a flag of serve for <think> blocks

# reasoning
which field of the response has the thoughts
I want to read the thoughts in my app

# no thinking
per request: do not think
I don't want to see or pay for thoughts, answer at once

# --prompt
the flag that holds my question for generate
reasoning aside, where do I put the question

# --prompt-logprobs
probabilities of my own text, not of the output

# --logprobs
probabilities of the output, not of my text

# --max-tokens
length of the output, not of the context
a limit for what is written, not for what I send

# --max-model-len
length of prompt and output together, not of the output alone
the whole window, not just the reply

# --max-num-batched-tokens
tokens in one go of the engine, not in one request

# --max-num-seqs
how many run, not how many wait
running at the same time, not standing in line

# --max-num-queued-reqs
how many wait, not how many run
the waiting ones, not the running ones
calls beyond the running ones: how many may wait

# --max-connections
open sockets, not running requests

# --kv-cache-memory
memory for the cache in bytes, not as a share of the card

# --gpu-memory-utilization
a share of the card, not a number of bytes

# --kv-cache-dtype
the type of the cache, not of the weights

# --dtype
the type of weights, not of the cache
run an F32 checkpoint as bf16
--dtype bfloat16

# --stop
end at a text, not at a token id

# --stop-token-ids
end at a token id, not at a text

# stop server
end the server, not one reply

# chat stop reply
end one reply, not the chat

# chat quit
end the chat, not just the reply

# chat reset
stay in the chat but drop what was said

# health
is it alive, not whether it takes traffic

# ready
does it take traffic, not whether it is alive

# bench serve
speed of a running server, not of the engine alone

# bench throughput
speed of the engine alone, without HTTP

# --model
which argument is the model's folder
what if I leave the folder out
without --model

# --served-model-name
the name that clients see, not the folder

# --host
on which address it listens, not on which port

# --port
on which port it listens, not on which address

# listen everywhere
all addresses, not just one

# --allowed-origins
a page of another site, not another host name
pages of [app.example.com|my site|another origin] should be allowed to call it

# --allowed-hosts
another host name, not a page of another site

# json schema
exactly my fields, not just any JSON

# json object
any JSON, not certain fields

# --format
JSON lines from generate, not a JSON reply of the model
results of generate as JSON lines

# --log-format
log lines as JSON, not the results

# bench json
the benchmark's results as JSON

# tokenize
which ids, not how many

# count tokens
how many tokens, not which ids

# --n
several samples on the command line, not over HTTP

# n samples server
several samples over HTTP, not on the command line

# --tuning-table
I have a table already, which flag takes it

# tune
I have no table yet, make one

# several gpus
more than one card for one model

# which gpu
just one card, but a certain one

# several models
more than one model on one machine
"""

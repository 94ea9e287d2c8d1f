"""Longer tales in which a user describes what happened before the question, with details that do not matter."""

STORIES = r"""
# load own model
[last night|yesterday|on Sunday] I downloaded [Llama|Qwen|Gemma|a checkpoint] to [an external disk|/data|my home]. it has [three|five|two] safetensors files. how do I [get it to answer|try it|put it to use]
I [typed|ran] quire chat and got [a tiny thing|something that only does sums]. I expected [my Llama|the weights that I downloaded]. what did I leave out
# serve
we have [a web shop|a mobile app|a ticket system] and want [answers|summaries] in it. the weights are on the box already. how do other programs [ask|reach|query] it
# chat
I do not program. I have the weights in a folder. I just want to [write to it|talk a bit|ask it things] and read what it says
# generate
my shell script has [one question|a single text] in a variable. it should get one answer and go on. no server, please
# generate chat
I gave generate the question "[who are you|what is 2+2|how are you]" and the instruct model [added more questions|wrote a quiz|went on with my text]. how do I get a proper answer
# --chat-template
we fine-tuned with [ChatML|a format of our own|other role markers]. the folder still has the old Jinja. how do we make serve take ours
# several prompts
my professor gave me [2000|500|ten thousand] sentences in a file. each should be continued. starting the program for each takes [forever|hours]
# listen everywhere
it runs on a [server in the cellar|rack machine|NUC]. on that box curl works. from my [laptop|desk] I get no connection. [what is missing|what did I forget|why]
# --port
I already run [Django|Jupyter|another server] on the same box and both want 8000. one has to move
# protect the server
we put it on a public machine. [on Monday|this night] the log was full of calls from [abroad|unknown addresses]. [now only our app should get through|how do we lock them out|what should we have set]
# send key
our admin [mailed|gave] me a long string and said that the server needs it. where do I [put it|write it] in my call
# --max-concurrency-per-key
we have twelve customers with a secret each. one sends [thousands of calls|a flood] and the others starve. can each be held to a few slots
# --allow-request-priority
our nightly summaries and the live users share one server. [in the evening|at nine] the users have to wait for the summaries. the users should come first
# tls
the data protection officer came by. she says that texts must not cross the network in the clear. what do I [change|set]
# systemd
there was a power cut and [nobody|no one] started it again. [customers complained|we lost a day]. it should come back by itself
# --drain-timeout
we deploy [each day|twice a day]. some answers take two minutes and get cut when the old server ends. can it hold on [longer|for them]
# metrics
my boss wants a [chart|curve] of how many users are busy and how long they wait. where do I get the numbers
# request id
a user [mailed|complained] about a wrong answer at noon. there are ten thousand lines in the log. how do I find hers next time
# --log-level
it runs in a [container|pod] and writes a line for each call. we pay by the line. only problems matter to us
# 429
our load test was fine with [50|20] users. with [2000|1000] some calls came back at once with a refusal. what do these mean
# --max-num-seqs
twenty people use it. [eight|a few] get words at once and the others wait though the card is bored. where do I raise that
# --max-model-len
the model is made for 128k but we only send [short mails|tickets|tweets]. memory is tight. a smaller window would do
# --gpu-memory-utilization
the card has 80 GB and I also run [Stable Diffusion|an embedding service|a desktop] on it. as soon as quire starts, the other one dies
# --kv-cache-memory
on our CPU box with 256 GB it [sets aside|grabs] a huge amount for past tokens. I want to name the bytes myself
# --threads
our box also runs [a database|the CI|a web server]. when quire computes, [the database|everything else] crawls. it should keep to a few cores
# determinism
I ran the same greedy call [alone and under load|with 4 and with 32 cores|at night and at noon]. a colleague says that the texts may differ. is he right
on Monday the machine had 8 cores, now it has 64. will my stored reference texts still match
# --seed
I sampled a [poem|story] that I loved. [today|now] I want exactly the same again at the same temperature. what do I have to fix
# --temperature
my stories all [sound alike|begin the same way]. I want bolder words. which knob do I turn
# --repetition-penalty
after [a page|some lines] it writes the same [line|sentence] again and again until the end. how do I discourage it
# streaming
my users look at a spinner for twenty seconds. ChatGPT shows each word as it comes. I want that as well
# streaming through proxy
with curl on the box the words trickle in. through [nginx|our gateway] they come all at once
# max tokens server
I posted a prompt to /v1/completions and got only a few words back. in the shell the text was long. what must I send
# json schema
our program reads name, price and date from the reply. [now and then|once a day] a field is missing and it crashes. can the form be guaranteed
# choice
we sort mails into spam and ham. sometimes it answers with a whole sentence. I want one of the two words only
# tools
users ask for the weather and the model [invents|makes up] numbers. our program knows the real ones. how can the model ask it
# tools 400
plain chats work with my old model. when I declare functions the server answers 400
# --tool-call-parser
my model's calls [come back as text|stand in the content] and the list of calls is empty. it writes them in [its own|Hermes'] way
# no thinking
I use Qwen3 for [short labels|yes/no answers]. it muses for a thousand tokens each time, which costs too much. can I switch that off
# reasoning
our app shows the musing to customers, which looks odd. I want the musing in a field of its own
# --reasoning-parser
I serve a model that marks its musing with <think>. the marks end up in the content. which flag at the start helps
# --attention-backend
the numbers look slightly odd and I suspect one of the attention kernels. how do I make it use [another one|native instead]
# how is backend chosen
the log says xqa for one phase and flashinfer for another. I set nothing. who [decided|chose] that
# attention backends
a page of the docs speaks of backends. I don't know the word. which ones are there
# gpu not found
nvidia-smi shows an H100. quire says that it computes on the cpu. the driver is [two years old|fresh]. how do I find out why
# out of memory
my card has [8|12|16|24] GB. the weights have [7|14] GB. it ends at the start and says that memory does not suffice
# which gpu
the box has [two|four|eight] cards. a colleague trains on the first one. mine should be the other
# several gpus
we bought [two|four|eight] cards for a model that one cannot hold. how do we put them together
# gguf
a friend gave me one big file that ends in .gguf. he runs it with llama.cpp. what about here
# --served-model-name
the app that we bought always asks for "gpt-4". its source is closed. can the server answer to that name
# --allowed-origins
my React page runs on another domain. curl works, but the browser says "blocked"
# --allowed-hosts
with the IP it answers. since we gave it a DNS name, it says 403
# lists of messages
in my first call I told it my name. in the second it does not know me. where is the conversation kept
# garbage output
I gave it a [base|pretrained] checkpoint and typed a question. it answered with [a web page|random lines|nonsense]
# slow generation
on my [laptop|old desktop] each word takes a second. is the card in use at all, and what limits it
# bench serve
next week [500|300] users come. I want to know beforehand how many the running server takes
# bench throughput
I have two machines and one checkpoint and want to know which makes more tokens per second
"""

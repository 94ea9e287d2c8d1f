"""States that users wish for (`+`) and symptoms that they see (`*`), for topics of the other files."""

WISHES = r"""
# load own model
+[my own weights answer|it answers with my weights|my downloaded weights are used|the folder on my disk is used]
*it answers with the tiny model instead of [mine|my weights]
# serve
+[other programs|my website|our app|my phone app|scripts] can [query it|ask it|use it|call it] [over HTTP|by a URL|]
# chat
+I can [talk|converse] with it [by typing|in a shell|without a browser|by hand]
# chat reset
+it forgets [the old subject|what was said|all earlier turns|the history]
*it mixes [old turns|my earlier questions] into new answers
# system message
+it [always answers briefly|speaks like a pirate|plays a tutor|keeps a persona|stays polite in every turn]
# generate chat
+[a one-off prompt|my single prompt|each line of my file] is treated as a user's [turn|message]
*generate [writes more questions|continues my question|invents a dialogue] instead of [an answer|replying]
# --chat-template
+[turns are formatted|roles are written|messages are formatted] [in my own way|by my Jinja|as my fine-tune expects]
*the [role markers|turn markers|turns] come out [wrong|broken] and I have a [corrected|better] Jinja
# no template
*the base weights [refuse|reject|do not take] [messages|conversations]
# several prompts
+[thousands of|all my|hundreds of] [texts|questions|prompts] are [completed|answered] in one [run|go]
# --format
+[a script|my program|jq] can [read|parse] the [completions|generations]
# save output
+the [completions|generations] [end up in|are kept in|land in] a file
# listen everywhere
+[other machines|my colleagues|my phone|the whole office|the LAN] can [reach|open|use] it
*[only this machine|nobody but me|only localhost] can [reach|open] it
*my [phone|laptop|colleague|other machine] cannot [reach|open] it [over the network|]
# --port
+it listens [at 5000|at 8080|at another number|elsewhere than 8000]
# port in use
*[8000 is|the port is|the address is] already [taken|in use|occupied]
# any free port
+the system picks a free [number|port] by itself
# --uds
+it listens on a file instead of [TCP|a network address]
# protect the server
+[nobody|no stranger|no outsider] can [use|call|query] it without a [secret|password]
+only [registered|known|paying] [people|apps|clients] [get in|are served|have access]
*[strangers|unknown people|bots] [use|abuse|call] my [endpoint|server]
# --api-key-file
+the secrets [are not visible in ps|come from a file|are not on the command line]
# send key
*the [page|server] asks me for a [password|secret]
# change keys
+a [former employee|leaked secret|former customer] [loses access|is shut out|no longer works]
# --max-concurrency-per-key
+[no single customer|no user|no team] can [hog|take|block] all [slots|capacity]
*one [customer|user|team] [hogs|takes|blocks] [everything|all slots]
# --allow-request-priority
+[urgent|important|interactive] [calls|questions|users] [overtake|go before|come before] [the rest|batch jobs|others]
*[urgent|important] [calls|questions] wait behind [batch jobs|unimportant ones]
*the [importance|priority] that I send [changes nothing|is ignored|has no effect]
# tls
+[traffic is|connections are|passwords are] encrypted [on the wire|]
*the browser [says the connection is not secure|shows no padlock]
# tls reload
*the certificate [was renewed|has been replaced] [on disk|by certbot]
# systemd
+it [comes up after a reboot|starts at boot|restarts after a crash|survives my logout]
*it is gone after [a reboot|my logout|a power cut]
# stop server
+it [ends|goes down] without [losing|cutting] [answers|requests]
# --drain-timeout
+running answers get [more|less] time [at the shutdown|before it goes down]
*it takes [half a minute|thirty seconds|too long] to go down
# ready
+the load balancer knows when [to send traffic|it has loaded]
# health
+the watchdog notices that it [hangs|is stuck|is dead]
# metrics
+I can [graph|watch|see] [the load|how busy it is|the number of users]
# logs
+[no text of users|no prompt|nothing private] is [written down|recorded]
# --log-format
+the lines on stderr are [structured|parseable by a collector]
# --log-level
+it prints [less|only problems|nothing|more details]
*my terminal is flooded with lines
# request id
+I can find [a certain call|a user's call] in the log
# 429
*[some|many] [calls|requests] are [turned away|refused] at [peak hours|noon|rush hour]
# --max-num-queued-reqs
+[more|fewer] [calls|users] may stand in line
# --max-num-seqs
+[more|fewer|a hundred|twice as many] [users|people|calls] are answered at the same time
*only a few are answered at the same time and the rest waits
# --max-num-batched-tokens
+each go of the engine is [smaller|larger]
# --max-model-len
+[texts of 8k tokens fit|nobody sends more than 4k in all|the window is smaller|the window is larger]
# context too long
*my [document|prompt|text] does not fit [into the window|]
# --allow-long-max-model-len
+the window may go beyond [what it was trained for|the config's limit]
# --gpu-memory-utilization
+[some of the card|half the card|20 GB of the card] stays free for [others|my desktop|another program]
*it [takes|fills|eats] [the whole card|nearly all of the card]
# --kv-cache-memory
+past tokens get exactly [4 GB|512 MB|16 GiB]
# --kv-cache-dtype
+past tokens take [half the memory|less space|8 bits each]
# --threads
+it leaves [some|four|half of the] cores [free|to others|alone]
*it [hogs|takes|occupies] [all cores|the whole processor|my entire CPU]
# determinism
+[the load|the number of cores|other users|the batch] [does not change|never changes|has no effect on] the [answer|text]
*I wonder whether [the load|the core count|another user] [changes|alters] the [answer|text]
# --device
+it [fails instead of using the processor|never falls back to the processor|insists on the card]
# can it run on a cpu
+[the card is left alone|no card is needed|it runs on the processor alone|it computes without a card]
# which gpu
+it takes [the second card|card 1|the idle card|another card]
*it takes the wrong card
# several gpus
+[both|all|all four|eight] cards [work together|share one model]
*[one card is|my card is] too small for [70B|the weights] and I have [a second|three more]
# gpu not found
*[my card|the card|my 4090|the H100] is [idle|ignored|not seen|not detected]
*it computes on the processor [although|even though] there is a card
# out of memory
*it [dies|crashes|stops] at the start [for want of memory|with OOM|because the card is too small]
# slow generation
*it [crawls|types slowly|makes one word per second|is painfully slow]
# throughput advice
+the card makes [more|as many] tokens per second [in all|as possible]
# latency advice
+[the first word|each word] comes [sooner|earlier]
*[words come in jerks|the first word takes long] under load
# --enforce-eager
+no graphs are captured [at the start|]
# --allowed-origins
+JavaScript of [my site|another site] can call it
*the browser blocks calls from my [page|site|React app]
# --allowed-hosts
+it answers under [our domain|a host name|llm.example.com]
*it gives 403 [under our domain|by name but not by IP]
# --served-model-name
+clients [see|use|ask for] [a nicer name|"gpt-4o"|another name]
*clients insist on the name [gpt-4|gpt-3.5-turbo]
# connection refused
*[curl|my client|the browser] cannot connect [to 8000|to it|on the same machine]
# streaming through proxy
*behind [nginx|our gateway|a proxy] the words come all at once
# streaming
+[words|tokens] [appear|arrive] [one by one|while it writes|at once over HTTP]
*the whole answer comes in one piece over HTTP
# max tokens server
*answers over the API [end|stop] after [16 tokens|a few words]
# --max-tokens
+the text in the shell is [longer|shorter|no longer than ten words]
*the text in the shell ends [too early|in mid-sentence|after 256 tokens]
# --temperature
+it is [more creative|less random|wilder|calmer|more varied]
*the texts are [dull|boring|crazy|too wild]
# greedy
+it [never rolls dice|always takes the best token|is not random at all]
# --seed
+a random text [can be repeated|comes out again|is repeatable]
*I get the same random text in every run and want another
# --repetition-penalty
+it [does not repeat itself|stops looping|never says things twice]
*it [loops|repeats itself|says the same sentence again and again]
# --bad-words
+it never [swears|says a certain word|names our competitor]
# --stop
+it [ends at a marker|stops at a blank line|ends when it writes "User:"]
# --ignore-eos
+every text has the same fixed length [for a speed test|]
# --n
+each prompt in the shell gives [three|several|five] versions
# n samples server
+one call gives [three|several|five] answers
# json schema
+[all my fields are there|the reply fits my class|the reply has name and age]
*a field is missing in the reply [now and then|]
# json object
+the reply is [valid JSON of any kind|nothing but JSON]
# choice
+the reply is [yes or no|one of five labels|one of my words]
# regex
+the reply [is five digits|looks like a date|matches a pattern]
# truncated json
*the JSON [breaks off|ends in the middle|lacks its closing brace]
# tools
+the model can [look up the weather|query our database|call my function] [by itself|]
# tool choice
+it [must call my function|cannot avoid my function|never calls anything]
# --tool-call-parser
*calls come as plain text and tool_calls stays empty
# --reasoning-parser
*<think> [shows up|stays] in the content
# reasoning
+thoughts and answer [are kept apart|come in two fields]
# no thinking
+it [answers without pondering|does not ponder|skips the pondering]
*it ponders [for a minute|for ages|for 2000 tokens] before it answers
# --attention-backend
+[flashinfer|native|cudnn|xqa] is [always taken|used everywhere]
# how is backend chosen
*it [took|picked] [xqa|flashinfer|native] by itself and I wonder why
# --tokenizer
*the folder [lacks|has no] tokenizer.json
# --no-enable-prefix-caching
+nothing is reused between calls
# lists of messages
*it forgets the previous call over HTTP
# garbage output
*my [downloaded|own] model writes [gibberish|nonsense|rubbish]
# embedded nonsense
*the built-in one [tells nonsense|knows nothing|is wrong about geography]
# migration
*we [switch|move|migrate] from [vLLM|SGLang|llama.cpp]
# gguf
*my file ends in [.gguf|Q4_K_M.gguf]
# quantization
*my weights are [int4|AWQ|GPTQ|8-bit] and [it refuses them|they do not load]

# stdin
~[connect it to a pipe|feed it from another process|take texts from another program]
# chat stop reply
~[shut it up|cut the reply off|interrupt it while it types] [and stay in the conversation|without leaving|]
# chat quit
~[get my shell back|get out of the conversation|end the conversation]
# input sampling per line
+[each text|every line of the file] has its own [length|randomness|settings]
# finish reason
~[see if a text was cut off|tell a cut text from a finished one]
# docs
~[read more|find the pages|find the handbook]
# build
~[compile it|get a program from the sources|turn the clone into a program]
# which binary
~find the [executable|compiled program]
# build with cuda
+the [card's code|GPU part] gets compiled [too|]
# build without cuda
+the GPU part is left out of the [binary|compilation]
# gated hub token
*the hub [refuses|forbids] the download [of Llama|]
# no config json
*it [rejects the path|does not like my folder] because config.json is missing
# supported models
~find out [which families run|whether my architecture is known]
# supported gpus
~find out [which card to buy|if my card is new enough]
# doctor
~[find out what works here|find what is wrong with my setup|get an overview of this computer]
# doctor model
~[learn beforehand whether it fits|look at a folder without starting it]
# reverse proxy
~put [nginx|Caddy|Traefik|a gateway] in front of it
# self signed
~[make a certificate for localhost|get a certificate for a trial]
# service model path
*the [unit|service] cannot read the weights, but I can
# kubernetes
~[run it in a pod|put it into a cluster with pods|write probes for the pod]
# grafana
~[chart the load|get a dashboard|draw its numbers]
# 401
*my call is rejected because of the [secret|password]
# 413
*my post is [too big|refused for its size]
# 403
*access is forbidden although my secret is right
# --max-request-bytes
+[larger|smaller|bigger] posts are [accepted|possible]
# --max-connections
+no more than [500|a thousand] sockets are open
# --max-connections-per-peer
+one address cannot open [hundreds|thousands] of sockets
# --num-workers
+tokenizing and parsing get [more cores|more hands]
# model not found
*it does not know the name that my client asks for
# list models
~[ask a running server what it has loaded|learn the name to put into a request]
# several models
+one server holds [two|three|several] checkpoints
# config file
~[keep all my options in YAML|avoid long command lines|store my options for good]
# docker
~[put it into a container|make an image of it|run it with podman]
# tune
~[find the best kernels for my card|calibrate it for my card|let it measure which kernel wins]
# --tuning-table
~[apply my measured table|load the table of my card]
# bench throughput
~[compare the speed of two machines|learn how many tokens per second it makes|know the raw speed without HTTP]
# bench serve
~[stress a running server|simulate many users|find the capacity of my server]
# bench latency
~learn how long one batch takes
# eval
~[check if my fine-tune got worse|score it on word problems|check the quality of the answers]
# openai client
~[point my Python code at it|move my script from the cloud to my box|redirect an app that uses GPT]
# openai key dummy
*the package [wants|insists on] a secret although my server has none
# chat completions curl
~[send a first question by hand|test it from a shell over HTTP]
# openapi json
~[get a machine-readable description|import it into Postman|generate a client]
# chat page
~[click instead of typing commands|use it without a terminal|open a web interface]
# open webui
~connect [a nicer front end|another web interface|LibreChat]
# stream usage
*token counts are missing when words arrive one by one
# usage
~[bill by token|learn how many tokens a call cost]
# --min-tokens
+it does not end before [a hundred|50|twenty] tokens
# --frequency-penalty
+a word gets less likely with each further use
# --presence-penalty
+it [turns to new subjects|avoids words it has used once]
# --logit-bias
+a certain token gets [more|less] likely
# --allowed-token-ids
+only a handful of ids can come
# --stop-token-ids
+it ends at an additional id
# --include-stop-str-in-output
+the marker at which it ended stays in the text
# --logprobs
~[see how sure it is, in the shell|get alternatives for each token, in the shell]
# logprobs server
~[see how sure it is, over HTTP|give my client a confidence score]
# --prompt-logprobs
~[score my own text|rate a sentence of mine]
# echo
+the reply over HTTP begins with my prompt
# parallel tool calls
+it makes one call at a time
# tools 400
*declaring functions gives 400
# prompt ids
~[give numbers instead of text|skip the tokenizer on input]
# tokenize
~[cut a text into its pieces|see the numbers of a text]
# detokenize
~[turn numbers back into text|read what ids say]
# count tokens
~[learn how long my document is for the model|check if a text fits into 4k]
# tokenize route
~get ids for a text [remotely|over HTTP]
# --no-skip-special-tokens
+[control tokens|hidden markers] [are|stay] visible
# cache salt
+[tenants|customers] cannot learn from timing what others asked
# prefix caching
~[reuse long instructions from call to call|avoid computing the same beginning twice]
# preemption
*an answer [halts|pauses] because the memory of past tokens is full
# --load-format
~[measure without real weights|try a size that I have not downloaded|use fake weights]
# generation config
*the temperature is [0.6|0.7] although I set none
# cpp library
~[embed it into my application|call it from my own C++ code|do without HTTP in C++]
# python binding
~[call it in a notebook without HTTP|import it in Python]
# continue final message
~[put the first words into the assistant's mouth|let a half-written reply go on]
# disconnect
*the user closes the tab in the middle of an answer
# offline
+it works [without internet|behind a closed firewall|on an air-gapped box]
# exit codes
+my script notices when it failed
# bugs
~[tell you about a crash|complain about a fault|hand in a bug]
# security report
~[tell you privately about a hole|disclose a vulnerability]
# license
~[sell a product with it|know what it costs|learn the legal terms]
# version
~[see how old my copy is|find out the release]
# silent fallbacks
*I fear that it ignores a setting without a word
# long context
*the window is smaller than the [model card|hub] says
# truncated weights
*a weights file seems to be [cut|damaged]
"""

# The same frames about the world: refused.
WORLDLY = r"""
+my [children|cats|neighbours|plants] [sleep longer|stay calm|are happy|listen to me]
+[my cake|the bread|my sauce] [rises|stays soft|does not burn]
+[nobody|no burglar|no cat] gets into my [house|garden|car]
+[my wife|my boss|the teacher] [forgives me|likes me|is not angry]
+my [car|bike|phone] [lasts longer|uses less fuel|is not stolen]
+I [win the election|pass the exam|find a husband|sleep through the night|never get old]
+[the world|my town|the climate] gets better
+the [guests|bride|audience] [arrive on time|smile|stay]
*my [tooth|back|knee|head|stomach] [hurts|aches] [since Monday|]
*my [car|fridge|toaster|bike|heating] [makes a noise|does not start|smells of smoke]
*[the baby|my dog|the neighbour] [cries|barks|shouts] [all night|for hours]
*my [husband|boss|landlord|sister] [ignores me|is angry|lies to me]
*[the milk|my soup|the sauce] [smells odd|is too salty|got burnt]
*[it rains|it snows|the sun shines] in [@city]
*my [roses|tomatoes|houseplants] [wither|have brown leaves|do not grow]
*[the bus|my train|the parcel] is late
*my [phone|Windows laptop|printer] [is flooded|crashes|shows a blue screen]
*somebody [stole|uses] my [wallet|bank account|bicycle|Netflix account]
"""

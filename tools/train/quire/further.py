"""The chat page, metrics, additions to the code and other things that the pages say and no other file has."""

FURTHER = r"""
# stored chats *1
= The chat page keeps chats in the browser's local storage, never on the server.
where does the [chat page|web page|page] keep my [chats|conversations]
does the server [keep|store|see] the chats of the page
are the chats of the page stored on the server
*my chats are gone in another browser
*on my other computer the page shows none of my chats
who can read the chats of the web page
how many chats can the page hold
~find the chats of the page on another computer
do conversations in the browser survive a restart of the server
is my history in the browser or on the server

# export chats *1
= The chat page exports chats as Markdown or JSON, and imports such JSON.
~[export|download|copy] [a chat|my chats|a conversation] [of|from] the [page|chat page|web page]
~[move|take] my chats to another [browser|computer]
~import [a chat|chats] into the page
can the page save a chat as Markdown
send a chat of the page to a colleague
get my conversation out of the browser

# attach files *1
= Attach text files to the chat page by choosing, dropping or pasting them; it counts their tokens first.
~[attach|upload|add] a [file|text file|document] [in|to] the [chat page|page|web page]
can I [drop|drag] a file [onto|into] the page
ask about a text file in the browser
does the page take [PDFs|text files|attachments]
give the chat in the browser a [log|source] file to read
upload button

# edit a question *1
= An edited question or a regenerated answer of the chat page is a new version; the arrows of 2/3 lead to the others.
~[edit|change|correct] [a|my] [question|message] in the [page|chat page|browser]
what do the arrows with 2/3 [mean|do] in the page
~go back to an earlier [answer|version] in the page
I misspelled my question in the browser, can I change it
branches in the chat page
where did my old answer go after I regenerated it in the browser

# prometheus alerts *1
= `deploy/prometheus-alerts.yml` has alerts for Prometheus; name the job `quire`.
are there alert rules for [Prometheus|the server]
~[set up|get|install] [alerts|alarms|alert rules]
ready-made alarms
wake me up when it breaks
who tells me at night that the server is down
alertmanager rules
~be warned when something is wrong

# metric preemptions *1
= `vllm:num_preemptions_total` counts sequences that lost their cache pages and are computed again.
how do I count how often sequences were evicted
which [metric|counter|number] counts preemptions
~see how often [requests|sequences] were pushed out of the cache
how many sequences had to be computed again
is the cache too small, which counter shows it
metric for preempted sequences

# metric queue time *1
= `vllm:request_queue_time_seconds` is a histogram of the wait from arrival to the first step.
how long do requests wait before they start, in which metric
which [metric|histogram] shows the time in the queue
~measure how long my users stand in line
waiting time before the first step
queue time metric

# metric latency *1
= `vllm:e2e_request_latency_seconds` is a histogram of the time from arrival to the last token.
how long does a whole request take, in which metric
which [metric|histogram] has the total time of requests
end to end latency metric
~see how long answers take from start to end in Prometheus
duration of whole calls as a graph

# metric cancelled *1
= `quire_requests_cancelled_total` counts requests whose client disconnected.
how many users gave up waiting
which [metric|counter] counts cancelled requests
~count the clients that hung up
aborted calls, as a number
how often do people close the tab before the end

# metric memory *1
= `process_resident_memory_bytes` is the memory of the process, and `quire_kv_blocks_free` the free blocks of the KV cache.
which metric shows the memory of the process
~watch the RAM of the server in Prometheus
how many cache blocks are free, in which metric
does it leak, which graph do I look at
resident memory metric

# metric drafts *1
= `vllm:spec_decode_num_accepted_tokens_total` over `vllm:spec_decode_num_draft_tokens_total` is the share of accepted drafts.
~see whether [speculation|the drafts] [pays|pay|helps|help]
how many drafts were [accepted|right]
acceptance rate of speculative decoding
which metric counts accepted draft tokens
is guessing ahead worth it, in numbers

# speculation output *1
= Speculative decoding does not change the output: a draft is accepted only if it equals the token sampled there.
does [speculation|speculative decoding|guessing ahead|drafting] change the [text|output|answers|quality]
are the answers worse with drafts
is speculative decoding lossless
do I get the same text with ngram speculation
+drafts do not change the answers

# add a route *1
= `docs/contributing.md` walks through a new route: a handler, a row in the table of routes, and `openapi.json`.
I want to add a new [HTTP endpoint|endpoint|route|URL], where do I begin
~[add|write|implement] [an endpoint|a route|a handler|a new URL of the server]
which files does a new endpoint touch
my own path in the server, in the source
how is a route implemented in the code

# add a model family *1
= `docs/contributing.md` walks through a new model family: a folder in `src/model/` and a row in its table.
how would I bring in a new model architecture
~[add|implement|write|port] [a new architecture|a model family|a new model|support for another model] [in the code|]
which files does a new model touch
I want to teach it a new kind of model in C++
where in the code are the models

# add a backend *1
= `docs/contributing.md` walks through a new attention backend: implement `AttentionBackend` and `AttentionPlan`, then test it.
I wrote a faster attention kernel, what files do I touch
~[add|write|implement|plug in] [my own attention|an attention backend|a new attention kernel]
which interface does an attention backend implement
my kernel should be selectable by a flag
where do I register my own kernel

# add an operation *1
= `docs/contributing.md` walks through a new operation: declare it in `src/ops/ops.h`, then write the reference, CPU and GPU versions.
~[add|write|implement] [an operation|an op|a new op|a tensor operation]
which files does a new operation touch
where do I declare a new operator
I need another activation function in the code
new math function for CPU and GPU

# code style *1
= Plain English comments that say why, clang-format 14, warnings are errors; a commit's title is `area: verb ...`.
what formatter do you use
coding style
which style does the code follow
clang-format version
how should I title my commit
which code style [do you use|is expected|do I follow]
commit message format
how do you want comments to be written
rules for the code that I send in
is there a linter
does my patch need clang-format

# coverage *1
= `cmake --preset coverage`, build, run ctest in `build-coverage`, then `gcovr -r . build-coverage`.
which test coverage do we have, how to measure
~measure [the coverage of the tests|test coverage|code coverage]
which lines are never tested
coverage report
gcov

# continuous integration *1
= CI runs `.ci/run`, which takes about 35 minutes on two cores.
what does CI run
~run [the CI|what the CI runs|all of the CI's checks] [locally|on my machine|]
how long does the CI take
which script do the build servers run
pipeline

# offline pull *1
= `HF_HUB_OFFLINE=1` forbids downloads: `quire pull NAME` then succeeds only if the model is complete.
~forbid all downloads
~make sure that nothing is fetched from the hub
HF_HUB_OFFLINE
*it must never touch the network, not even pull
no downloads in production

# hub certificates *1
= `SSL_CERT_FILE` names the certificates to trust, for a proxy or a hub with its own authority.
*the download fails with a certificate error
our proxy has its own [root certificate|authority]
certificate of the hub is not trusted
~trust our own certificate authority when downloading
SSL error during pull

# status 499 *1
= 499 in the log: the client left before its response.
what is [status 499|499] in the log
why does the log say 499
499 in the log
client closed request
*the log is full of 499

# secret on command line *1
= Other users of the machine can read command lines, so give keys by `--api-key-file`.
can others see my key in ps
is --api-key on the command line safe
*my key shows up in the process list
~hide the key from other users of the machine
why is a file better than --api-key

# memory in transit *1
= The log's line `requests in transit take at most` has the host memory that requests may need besides weights and cache.
how much memory do requests take besides the model
what is the host memory for, besides the weights
~bound the memory of requests
how much RAM must I reserve for the server itself
requests in transit

# forged turns *1
= Text of messages cannot forge a turn: control tokens such as `<|im_end|>` in a message stay text.
can a user fake the [assistant|system] turn by typing control tokens
prompt injection with special tokens
what happens to <|im_end|> in a user's message
can somebody smuggle in a system message
are special tokens in user text dangerous
"""

"""The server: its routes and their fields, clients, security, operation, metrics."""

SERVER = r"""
# routes *1.5
= `/v1/chat/completions`, `/v1/completions`, `/v1/responses`, `/v1/messages`, `/v1/embeddings`, `/v1/rerank`, `/v1/models`, `/health`, `/metrics`; `docs/serving.md` lists all.
which [routes|endpoints|paths|URLs] [does the server have|are there|exist|can I call|does quire serve]
list [the routes|the endpoints|all routes|all endpoints|of endpoints]
[routes|endpoints|API endpoints|paths]
what can I call on the server
API overview
REST API
what endpoints are available
http api
name the server's routes
which URLs does the API have

# chat completions curl *1.5
= `curl http://127.0.0.1:8000/v1/chat/completions -H 'content-type: application/json' -d '{"messages": [{"role": "user", "content": "Hello!"}]}'`
~[send|post|make] [a chat request|a chat message|a message] [with curl|to the server|over HTTP|]
~[call|use|query] [the chat endpoint|/v1/chat/completions|the chat API] [with curl|]
?[/v1/chat/completions|the chat completions endpoint]
curl [chat|chat completions|example|request|to quire]
show me a curl example
how do I use curl
curl example for the server
/v1/chat/completions
chat over HTTP
example request
~ask the server a question
how does a chat request look
test the server with curl

# completions curl
= `curl http://127.0.0.1:8000/v1/completions -H 'content-type: application/json' -d '{"prompt": "Once upon a time", "max_tokens": 64}'`
~[call|use|query] [the completions endpoint|/v1/completions|the completions API] [with curl|]
~[send|post] a prompt [with curl|over HTTP|to the server]
?[/v1/completions|the completions endpoint]
/v1/completions
curl completions
complete a prompt over HTTP
raw prompt over HTTP
text completion endpoint
prompt without a chat template over HTTP
how does a completion request look

# openai client *1.5
= `OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="KEY")`, then use `client.chat.completions.create` as usual.
~[use|connect|point] [the openai client|the openai package|the OpenAI Python library|OpenAI's client|the Python client|the OpenAI SDK] [with quire|to quire|to the server|]
~call the server from [Python|JavaScript|Node|a Python script|my program|my app]
%[the openai package|OpenAI's Python client|the OpenAI SDK|OpenAI clients]
python example for the server
openai client
what is the base URL
base_url
OPENAI_BASE_URL
openai python
from openai import OpenAI
which base url do I use
python client for quire
write a client

# openai api
= Yes, `quire serve` speaks OpenAI's API for completions and chat, with streaming, tools and structured output.
%[the OpenAI API|OpenAI's API|OpenAI's protocol|an OpenAI-compatible API]
is the server compatible with OpenAI
does quire [speak|have|offer] [OpenAI's API|an OpenAI-compatible API|the OpenAI API]
openai compatible
OpenAI compatibility
which API does the server have
what protocol does quire serve
can OpenAI clients talk to it
drop-in replacement for OpenAI

# other apis
= No: Quire serves HTTP APIs only, no gRPC, WebSocket, batch or Assistants API.
%[gRPC|WebSockets|websocket|the batch API|the Assistants API|KServe|GraphQL|MCP]
~use [gRPC|WebSockets|the batch API]
does it speak [gRPC|GraphQL|KServe]
[grpc|websocket|websockets|batch API]
is there a gRPC interface

# responses api
= Yes: `POST /v1/responses` serves OpenAI's Responses API, with streaming.
%[the Responses API|/v1/responses|OpenAI's Responses|OpenAI's new API|client.responses.create]
~use [the Responses API|client.responses.create|OpenAI's newer API]
/v1/responses
responses endpoint
responses.create
the newer OpenAI API instead of chat completions
response objects
the Responses API

# --max-stored-responses
= `--max-stored-responses N` is how many responses of /v1/responses are kept for later requests. Default: 0, none.
~store responses for previous_response_id
previous_response_id is not found
are responses stored
keep responses for later requests
store in the Responses API
!the number of stored responses

# --max-stored-response-bytes
= `--max-stored-response-bytes BYTES` is the most memory of stored responses. Default: 256M.
memory of stored responses
bytes of stored responses
!the memory of stored responses
how much memory do stored responses take
limit on kept responses

# ollama api *1.5
= Yes: Ollama's clients work. `/api/chat`, `/api/generate`, `/api/tags` and `/api/show` are served; the server's URL is their host.
%[Ollama's API|the Ollama API|/api/chat|/api/generate|/api/tags|clients of Ollama|ollama-python]
~[use|connect|point] [an ollama client|ollama clients|the ollama package|a program made for ollama|an app that expects ollama] [with quire|to quire|here|]
/api/chat
/api/generate
/api/tags
/api/show
ollama [api|client|compatible|routes|endpoint]
OLLAMA_HOST
is it compatible with ollama
my app speaks ollama

# messages api
= Yes: `POST /v1/messages` serves Anthropic's Messages API, with streaming and tools.
%[Anthropic's API|/v1/messages|the Anthropic Messages API|the messages API|Claude's API|the anthropic package]
~use [Anthropic's client|the anthropic package|Claude Code with quire|the anthropic SDK]
does it speak Anthropic's API
/v1/messages
can Claude Code use quire
anthropic SDK
Claude's protocol
Anthropic messages

# count tokens of messages
= `POST /v1/messages/count_tokens` counts the tokens of a request of Anthropic's API without running it.
%[/v1/messages/count_tokens|count_tokens|counting tokens of a conversation]
/v1/messages/count_tokens
count_tokens
~count the tokens of [a conversation|messages|a chat] [over HTTP|]
messages.count_tokens
how many tokens does my conversation have

# load routes
= `GET /load`, `GET /get_load` and `GET /v1/loads` show the requests in progress, for routers and gateways.
%[/get_load|/v1/loads|load reports for a router|vllm-router|SGLang's gateway]
/get_load
/v1/loads
~[see|poll|read] the [load|requests in progress] of a server
load of the server for a load balancer

# ping
= `GET /ping` is the same as `GET /health`, without a key; SageMaker asks it.
%[/ping|a ping route]
/ping
SageMaker health check
ping endpoint
what does /ping do

# trusted proxies
= `--trusted-proxies CIDR` names the proxies whose X-Forwarded-For is believed.
--trusted-proxies
X-Forwarded-For
real client address behind a proxy
the log shows the proxy's address only
~see the client's address behind [a proxy|nginx|a load balancer]
all requests seem to come from one address
forwarded address
client IP

# control tokens in messages
= Text of messages cannot become control tokens; `--allow-special-tokens-in-messages` allows it again.
--allow-special-tokens-in-messages
can a user forge control tokens
special tokens in a user's message
prompt injection with <|im_start|>
<|im_end|> in a message
forged roles
can somebody end the turn with a special token
~[allow|let] users [write|send] [special|control] tokens
is the text of a message escaped
special tokens typed by users are plain text, why

# unsupported routes
= That route does not exist: every path that is not listed in `docs/serving.md` is 404.
[/v1/audio|/v1/images/generations|/v1/files|/v1/fine_tuning|/score|/sleep|/start_profile|/v1/moderations|/shutdown|/v1/batches]
I get 404
the route is not found
404 not found
404
what does the 404 mean
why does a route give 404
no such route
unknown path
wrong URL on the server

# chat page *1.3
= The chat page is at `/` of the server: open http://127.0.0.1:8000/ in a browser.
?[the chat page|the web page|the web interface|the page at /]
%[a web interface|a chat page|a browser interface|a UI|a web UI|a GUI|a graphical interface]
~[chat|talk to the model] in [the browser|a browser]
~open the [chat page|web page|web interface|UI]
web ui
GUI
browser
is there a user interface
where is the web page
which URL does the page have
graphical interface
what is at http://127.0.0.1:8000

# open webui
= Yes. Give Open WebUI the base URL `http://HOST:8000/v1`, and a key if the server has keys.
%[Open WebUI|LibreChat|LangChain|LlamaIndex|SillyTavern|Continue|LiteLLM|other front ends|Open-WebUI|the Vercel AI SDK]
~[use|connect] [Open WebUI|LangChain|LlamaIndex|LiteLLM|a front end|Continue] [with quire|to quire|]
open webui
langchain
which front ends work with quire
does Open WebUI work
integrate with langchain

# streaming *1.3
= `"stream": true` in the request streams the tokens as server-sent events, which end with `data: [DONE]`.
~[stream|stream tokens|stream the output|stream a response|get tokens one by one|get the answer as it is generated|receive partial output]
%[streaming|server-sent events|SSE|streamed responses]
?[streaming|server-sent events]
streaming
stream true
sse
"stream": true
receive tokens as they come
how does a stream end
what is [DONE|data: DONE]
curl with streaming
token by token

# stream usage
= `"stream_options": {"include_usage": true}`, together with `"stream": true`, adds the usage to a stream.
~get [the usage|token counts|the number of tokens] in a stream
%[stream_options|include_usage]
?[stream_options|include_usage]
usage in a stream
stream_options
include_usage
how many tokens did the stream use
stream_options without stream
token usage when streaming

# usage
= `usage` in the response has `prompt_tokens`, `completion_tokens` and `total_tokens`.
?[the usage field|usage in the response|completion_tokens|prompt_tokens]
how many tokens did [my request|a request|the response] use
token usage
usage
prompt_tokens
where do I see the number of tokens of a response
count of generated tokens in the response
what does usage contain
tokens used by a request

# max tokens server
= `max_tokens` or `max_completion_tokens` in the request. Without it a completion has 16 tokens, and a chat may fill the context.
what is the default max_tokens [of the server|of a completion|over HTTP]
~[limit|set] the [output|length|tokens] of a [request|chat request|response]
max_completion_tokens
why does the completion end after 16 tokens
my completion is only 16 tokens long
output of /v1/completions is cut off
response has only 16 tokens
max_tokens over HTTP
max_tokens in a request
completion is too short over HTTP

# tools
= `tools` in the chat request declares functions; calls come back as `tool_calls`. The model's chat template must read tools.
~[use|call|send|pass|declare] [tools|functions|tool definitions] [in a chat|in a request|with the server|]
%[tools|tool calls|function calling|tool calling|tool use|agents]
?[tool calls|function calling|tool calling]
tool calling
function calling
tool_calls
--enable-auto-tool-choice
do tools work
how do tool calls work
can the model call functions
tool use with quire

# tool choice
= `tool_choice` is auto, none, required or a function's name; required and a name force a call by a grammar.
~force a [tool call|function call|call]
%[tool_choice|forced tool calls|tool_choice required]
?[tool_choice|tool_choice required]
tool_choice
which values does tool_choice have
tool_choice required
make the model call a function
named function call
~forbid tool calls

# tools 400
= The model's chat template does not read tools, so the model would not see them. Force a call with `tool_choice`, or use another model.
my request with tools gets 400
tools give 400
why are tools refused
the chat template does not read tools
400 because of tools
error with tool_choice auto
tools not accepted
my model does not support tools

# functions field
= `tools` and `tool_choice` are what to use: the old fields `functions` and `function_call` are refused with 400.
%[function_call|the functions field|old function calling]
functions field
function_call
400 functions
deprecated function calling
why is function_call refused
the field functions is refused

# parallel tool calls
= Quire parses several tool calls of one reply; `"parallel_tool_calls": false` asks for at most one.
%[parallel tool calls|several tool calls|parallel_tool_calls]
~get [several|only one] tool [calls|call] in one reply
parallel_tool_calls
multiple tool calls
one tool call only
more than one function call
several calls in one answer

# structured output *1.3
= `response_format` with a JSON schema, or `structured_outputs` with json, choice, regex or grammar, in the request.
~[get|force|enforce|produce|generate|guarantee] [structured output|JSON output from the model|valid JSON|output in a format]
%[structured output|structured outputs|guided decoding|constrained decoding|grammars|constrained output|guided generation]
?[structured output|guided decoding|constrained decoding]
structured output
guided decoding
~restrict the [answer|output|response]
constrain the output
guided_json
~make the model answer in a format
structured_outputs

# json schema
= Send `"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {...}}}`.
~[enforce|use|follow|send] a JSON schema
~make the [output|answer|response] follow a [JSON schema|schema]
%[JSON schemas|json_schema|Pydantic schemas|schemas]
?[json_schema|response_format]
json schema
json_schema
response_format
output by a schema
schema for the answer
pydantic model as output format

# json object
= `"response_format": {"type": "json_object"}` in the request makes the reply a JSON object.
%[JSON mode|json_object]
~[turn on|use|get] JSON mode
?[JSON mode|json_object]
json mode
json_object
any valid JSON
always answer with JSON
reply in JSON without a schema
format json in a request

# choice
= `"structured_outputs": {"choice": ["yes", "no"]}` in the request allows only these answers.
~[restrict the answer to|choose among|allow only] [a few choices|some choices|a list of answers|yes or no|given words]
%[choices|guided_choice|choice]
guided_choice
only yes or no
one of several answers
classification with choices
pick one label
answer must be one of a list

# regex
= `"structured_outputs": {"regex": "[0-9]+"}` in the request makes the reply match the pattern.
~[restrict the output to|make the output match|enforce] [a regex|a regular expression|a pattern]
%[regexes|regular expressions|guided_regex|regex constraints]
guided_regex
regex
output must match a pattern
only digits in the answer
regular expression for the output
pattern of the answer

# grammar
= `"structured_outputs": {"grammar": "root ::= ..."}` in the request: EBNF with a rule `root`.
~[use|send|enforce] [a grammar|an EBNF grammar|EBNF|a GBNF grammar]
%[EBNF|grammars in EBNF|GBNF|guided_grammar|Lark grammars]
guided_grammar
ebnf
--grammar-file
grammar
context-free grammar
which grammar syntax is used
name of the start rule

# structured backend
= XGrammar makes the token masks; there is only one backend for structured output.
which [library|backend] [does structured output use|compiles grammars|enforces JSON schemas]
%[outlines|lm-format-enforcer|llguidance|xgrammar|guidance]
--guided-decoding-backend
xgrammar
guided decoding backend
what is XGrammar for
structured output backend
which engine does guided decoding

# schema keywords
= Keywords that cannot be enforced, such as `not`, `if`, `uniqueItems` and `contains`, are refused by name with 400.
which JSON schema keywords are [refused|not supported|unsupported]
%[uniqueItems|the keyword not|if/then/else in schemas|contains in schemas|dependentRequired]
my schema is refused
400 because of my JSON schema
schema keyword error
uniqueItems
unsupported keyword
limits of JSON schemas
why is my schema rejected

# truncated json
= `max_tokens` cut it: `finish_reason` is length and the JSON is not complete. Raise `max_tokens`.
the JSON is [incomplete|not complete|cut off|invalid|truncated]
structured output ends in the middle
my JSON is not valid
JSON without closing brace
invalid JSON in the response
unterminated JSON
why is the JSON truncated

# one restriction
= A request has at most one restriction; a second one, such as `response_format` beside `structured_outputs`, is 400.
~combine [response_format and tools|two grammars|a regex and a schema|several restrictions]
can I use two restrictions
400 two restrictions
regex and json_schema together
response_format together with structured_outputs
several constraints
both a schema and a grammar

# reasoning
= `reasoning_content` has the reasoning, apart from `content`; `--reasoning-parser auto` finds the format from the chat template.
~[get|separate|see|read] [the reasoning|the thoughts|the model's thinking|reasoning content] [of the model|]
%[reasoning models|thinking models|reasoning|<think> blocks|chain of thought]
?[reasoning_content|the reasoning|reasoning]
reasoning_content
think tags
<think>
where are the model's thoughts
thinking mode
reasoning output

# no thinking
= `"chat_template_kwargs": {"enable_thinking": false}` in the request turns thinking off, if the model's template reads it, as Qwen3's does.
~turn off [thinking|reasoning|the thinking of Qwen3]
~[pass|send] [template variables|chat_template_kwargs|variables to the chat template]
?[chat_template_kwargs|enable_thinking]
enable_thinking
chat_template_kwargs
disable thinking
no thinking in Qwen3
answer without thinking
reasoning off

# logprobs server
= `"logprobs": true, "top_logprobs": 5` in a chat, `"logprobs": 5` in a completion; at most 20.
~get [logprobs|log probabilities|token probabilities] [from the server|over HTTP|in a request|in a chat]
%[logprobs|log probabilities|top_logprobs]
logprobs over HTTP
top_logprobs
how many logprobs can I get
logprobs in a chat request
most logprobs
logprobs in the API

# echo
= `/v1/completions` takes `"echo": true`, which puts the prompt before the output.
%[echo|echo in completions]
~get the prompt back [in the response|]
?[echo|the echo field]
echo
echo the prompt
prompt in the output
repeat the prompt in the response

# suffix
= No, `suffix` is refused with 400: filling in the middle is not supported.
%[suffix|fill in the middle|FIM|infilling|/infill|code infill]
~fill in the middle
suffix
infill
fim
is there fill-in-the-middle
the field suffix is refused

# n samples server
= `"n": 4` in the request gives four samples; at most 128. Each sample counts as one sequence.
~get several [choices|answers] [in one response|over HTTP|per request]
%[several choices|n above 1]
what is the largest n
n over HTTP
limit of n
n=8
best of several choices over HTTP
multiple choices in the response

# unknown fields
= Unknown fields of a request are ignored, as OpenAI's clients expect; wrong types and values are 400.
what happens with unknown fields
are unknown fields [refused|ignored|an error]
misspelt field
my field has no effect
does the server check field names
unknown request field
typo in a field name
extra fields in the body

# duplicate keys
= A key that occurs twice in one object is refused with 400, because JSON parsers differ in which value they take.
duplicate key in the body
what if a key occurs twice
400 duplicate key
same key twice in JSON
repeated key
duplicate JSON keys

# request limits
= At most `n` 128, 20 logprobs, 16 stops, 1,024 biases, 1,024 prompts, 4,096 messages and 128 tools per request.
what are the limits of a request
how many [messages|prompts|tools|stops|stop strings] may a request have
request limits
maximum number of [messages|tools|stop strings|prompts]
too many [messages|tools|stops]
limits of the API
most tools in a request

# continue final message
= `"continue_final_message": true` in the request lets the reply continue the last message.
~[continue|prefill] [the last message|an assistant message|the assistant's reply|a started answer]
%[continue_final_message|assistant prefill|prefilled answers]
?continue_final_message
continue_final_message
prefill the answer of the assistant
start of the reply given
let the model finish my sentence in a chat

# tokenize route
= `curl http://127.0.0.1:8000/tokenize -H 'content-type: application/json' -d '{"prompt": "Hello"}'`
~tokenize [over HTTP|with the server|with curl]
?[/tokenize|the /tokenize route]
/tokenize
tokenize endpoint
token ids over HTTP
POST /tokenize
call the tokenizer over HTTP
count tokens over HTTP

# detokenize route
= `curl http://127.0.0.1:8000/detokenize -H 'content-type: application/json' -d '{"tokens": [1, 2, 3]}'`
~detokenize [over HTTP|with the server|with curl]
?[/detokenize|the /detokenize route]
/detokenize
detokenize endpoint
text of ids over HTTP
POST /detokenize
decode ids over HTTP

# openapi json
= `GET /openapi.json` describes every route and field.
where is the [API schema|OpenAPI schema|schema of the API|swagger file]
?[/openapi.json|the OpenAPI file]
openapi
swagger
/openapi.json
/docs
~see all fields of a request
which fields does a request have
API reference
list of request fields
documentation of the API

# version route
= `GET /version` returns the version of this build.
?[/version|the /version route]
/version
GET /version
version endpoint
version over HTTP

# health *1.2
= `GET /health` tells whether a restart is needed: 200 is fine, 503 means that the engine has failed or hangs.
?[/health|the health route|the health endpoint|health check]
~check [that the server is alive|the server's health|whether the server is healthy|if the server is running]
/health
health endpoint
is the server alive
health check
liveness probe
does the server still work
server status
ping the server

# ready
= `GET /ready` tells whether requests should be sent here: it is 503 while the server drains.
?[/ready|the ready route|readiness]
~check [readiness|whether the server is ready|if the server takes requests]
/ready
readiness probe
is the server ready
ready endpoint
what is the difference between /health and /ready
load balancer check
wait until the server is ready

# kubernetes
= Use `/health` as liveness probe with failureThreshold 3, `/ready` as readiness probe, and a grace period above `--drain-timeout`.
~[run|deploy] [quire|it|the server] [on Kubernetes|in Kubernetes|in a cluster|on k8s]
%[Kubernetes|k8s|probes|OpenShift]
kubernetes
k8s probes
which probes do I use
terminationGracePeriodSeconds
liveness and readiness
helm chart
kubernetes deployment

# metrics *1.2
= `GET /metrics` has Prometheus metrics with vLLM's names: `curl http://127.0.0.1:8000/metrics`.
~[get|see|read|scrape|collect] [metrics|the metrics|statistics|the server's metrics]
%[Prometheus|metrics|monitoring|OpenMetrics]
?[/metrics|the metrics route]
/metrics
prometheus
~monitor [the server|quire|requests]
monitoring
which metrics are there
statistics of the server
metrics endpoint
observability

# grafana
= Import `deploy/grafana-dashboard.json` into Grafana; vLLM's dashboards work too.
%[Grafana|dashboards|vLLM's dashboards|a Grafana dashboard]
~[show metrics|see metrics|make graphs] [in Grafana|in a dashboard]
grafana
dashboard
where is the dashboard
is there a dashboard
visualize metrics
grafana board

# metric running
= `vllm:num_requests_running` is the number of running sequences, `vllm:num_requests_waiting` that of waiting ones.
which metric [shows running requests|counts running requests|has the queue length|shows waiting requests]
?[vllm:num_requests_running|vllm:num_requests_waiting]
vllm:num_requests_running
vllm:num_requests_waiting
number of running requests in the metrics
queue length metric
metric for waiting requests
~monitor the queue

# metric kv
= `vllm:kv_cache_usage_perc` is the fraction of KV cache blocks in use, from 0 to 1.
which metric shows [KV cache usage|how full the KV cache is|the cache's use]
?vllm:kv_cache_usage_perc
vllm:kv_cache_usage_perc
~see how full the KV cache is
KV cache usage
is the cache full
cache utilization metric

# metric ttft
= `vllm:time_to_first_token_seconds` is a histogram of the time from arrival to the first token.
which metric has the [time to first token|TTFT]
?[vllm:time_to_first_token_seconds|TTFT|the time to first token]
vllm:time_to_first_token_seconds
ttft metric
time to first token
what is ttft
first token latency metric

# metric itl
= `vllm:inter_token_latency_seconds` is a histogram of the time between two tokens of a sequence.
which metric has the [inter-token latency|time between tokens|ITL]
?[vllm:inter_token_latency_seconds|ITL|the inter-token latency]
vllm:inter_token_latency_seconds
itl metric
inter token latency
tpot metric
latency per token metric

# metric tokens
= `vllm:prompt_tokens_total` and `vllm:generation_tokens_total` count the tokens processed and generated.
which metric counts [tokens|generated tokens|prompt tokens]
?[vllm:generation_tokens_total|vllm:prompt_tokens_total]
vllm:generation_tokens_total
vllm:prompt_tokens_total
tokens per second from metrics
token counters
total number of tokens served

# metric prefix
= `vllm:prefix_cache_hits_total` divided by `vllm:prefix_cache_queries_total` is the hit rate of the prefix cache.
which metric shows the [prefix cache's hit rate|cache hits|prefix cache hits|cache hit rate]
~see [the hit rate of the prefix cache|whether the prefix cache is used|prefix cache hits]
vllm:prefix_cache_hits_total
prefix cache hit rate
is the prefix cache hit
cache hit rate

# metric http
= `quire_http_responses_total` counts responses by status; watch 429 and 503.
which metric counts [errors|responses|HTTP errors|429s|status codes]
?quire_http_responses_total
quire_http_responses_total
~[alert on errors|monitor errors|count errors]
how many errors did the server send
which metrics should I watch
count of 429 responses

# metric hang
= `quire_steps_total` counts engine steps; if it does not grow while requests run, the engine hangs.
which metric shows [that the engine hangs|a hang|engine steps]
?quire_steps_total
quire_steps_total
~[detect a hang|notice that the engine hangs|see whether the engine makes progress]
does the engine hang
engine makes no progress
hang detection

# logs
= Logs go to standard error, one line per request. They contain no key, prompt or generated text.
where are the logs [written|]
~[see|find|read] [the logs|the log|server logs]
does quire log [prompts|requests|keys|my text|user data]
are prompts logged
request log
access log
log file
is there a log file
what is logged
--disable-log-requests
--enable-log-requests
logging of prompts

# request id
= `X-Request-Id` in a request is repeated in the log and the response. Without it the server makes a random one.
~[trace|find|identify] [a request|my request|a request in the log]
%[request ids|X-Request-Id|tracing ids]
X-Request-Id
request id
which id does a request have
correlate requests with logs
trace id
find my request in the log

# tracing
= No, OpenTelemetry tracing is not supported; use `/metrics`, the log and `X-Request-Id`.
%[OpenTelemetry|tracing|OTLP|Jaeger|distributed tracing|Sentry|Datadog]
~[use|enable] [OpenTelemetry|tracing]
opentelemetry
--otlp-traces-endpoint
otel
jaeger
are traces exported

# tls *1.3
= `quire serve --ssl-certfile cert.pem --ssl-keyfile key.pem`
~[use|enable|turn on|set up|serve over] [TLS|HTTPS|SSL|encryption]
%[TLS|HTTPS|SSL|encryption|encrypted connections]
https
TLS
ssl
serve https
encrypt the connection
~make the server secure with a certificate
quire serve https
how do I get https
certificates for the server

# tls version
= TLS 1.2 and later; a request in plain HTTP to a TLS port gets 400.
which TLS version [is used|does the server accept|is needed]
%[TLS 1.3|TLS 1.2|TLS 1.0]
plain http on the TLS port
400 on the https port
TLS version
http instead of https
minimum TLS version

# tls reload
= The server reads changed certificate files again within a second; no restart is needed.
~[renew|replace|rotate|reload|update] the [certificate|TLS certificate|certificates]
must I restart after a new certificate
certificate renewal
are certificates reloaded
let's encrypt renewal
new certificate
certificate expired

# self signed
= `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem`
~[make|create|generate] [a self-signed certificate|a certificate|a test certificate]
self-signed certificate
where do I get a certificate for a test
openssl command for a certificate
certificate for localhost
test certificate

# client certificates
= No, client certificates (mTLS) are not supported; use API keys or a proxy.
%[mTLS|client certificates|mutual TLS|SSO|OIDC|JWT]
~require client certificates
mtls
--ssl-ca-certs
client certificate
JWT tokens
OAuth login

# change keys
= Keys are read at the start: change the file and restart the server.
~[change|replace|rotate|remove|revoke] [keys|API keys|a key] [while the server runs|]
must I restart for new keys
are keys reloaded
key rotation
new key without a restart
reload the key file
keys changed but have no effect

# key storage
= Keys are stored as digests, compared in constant time and never logged.
how are [keys|API keys] stored
are keys logged
are API keys safe
key comparison
constant-time comparison
does the log show keys

# reverse proxy
= Keep Quire on 127.0.0.1 and let the proxy pass requests on without buffering and with long timeouts; see `docs/serving.md`.
~[use|put quire behind|run behind|configure] [a reverse proxy|nginx|Caddy|a proxy|Traefik|HAProxy]
%[nginx|reverse proxies|Caddy|a proxy]
nginx
caddy
nginx configuration
reverse proxy
which proxy settings do I need
behind nginx
proxy_buffering
traefik

# streaming through proxy
= The proxy buffers responses: turn its buffering off, in nginx with `proxy_buffering off`.
streaming does not work behind nginx
tokens arrive all at once
the stream comes in one piece
proxy buffers the stream
no streaming through the proxy
all tokens at the end behind a proxy
stream is delayed behind a proxy

# systemd
= `deploy/quire.service` runs the server as a systemd service; put the flags into `/etc/quire/quire.env`.
~[run|install] [quire|the server] as a [service|system service|systemd service|daemon]
~start [quire|the server] [at boot|automatically|when the machine starts|in the background]
%[systemd|a daemon mode|running as a service]
systemd
service file
daemon
systemd unit
autostart
background service
where is the unit file
quire.service
--daemon

# service model path
= The service's models must be readable by all users or a group of the service, and must not be in `/home`.
the service cannot read the model
where do I put models for the service
permission denied in the systemd service
model path for systemd
model in /home with systemd
service does not find the model

# stop server *1.2
= Press Ctrl-C or send SIGTERM: it drains, so running requests get `--drain-timeout` seconds. A second signal ends it at once.
~[stop|end|shut down|terminate|kill|quit] [the server|quire serve|a running server]
how do I stop quire
ctrl-c on the server
shutdown
graceful shutdown
what happens at SIGTERM
~kill the server at once
which signal stops the server
does ctrl-c lose requests
~end the server immediately
the server does not stop
the server hangs at shutdown
ctrl-c twice
stop without waiting
force quit the server
kill without drain

# drain
= Draining: the port closes, new requests get 503, and running requests continue for at most `--drain-timeout` seconds.
?[draining|drain|a draining server]
what does the server do when it drains
drain
what happens to running requests at shutdown
are requests lost when the server stops
~drain the server

# reload
= No signal reloads: certificates are read again when their files change, everything else needs a restart.
~[reload|change] [the configuration|settings|flags|the model] [without a restart|while the server runs]
%[hot reload|reloading|SIGHUP reload|changing the model at run time]
does SIGHUP reload
reload config
swap models at run time
change settings of a running server
hot reload
unload the model
~change flags without a restart

# several models
= No, one server serves one model; start one `quire serve` per model on its own port.
%[several models|multiple models|two models in one server|model switching|a model router]
~serve [two models|several models|multiple models|more than one model]
multiple models
two models at once
can one server have several models
serve both a small and a large model
more than one model
switch models by the model field

# config file
= There is no configuration file; give flags on the command line, or in `QUIRE_FLAGS` of the systemd service.
%[a config file|configuration files|a YAML config|--config|environment variables for flags]
~[use|write|load] a [config file|configuration file|YAML file]
config file
where is the configuration file
--config config.yaml
settings file
yaml
which environment variables does quire read
is there a quire.conf

# docker
= There is no ready image; docs/install.md shows one: debian:12-slim, the run-time packages and the binary.
%[Docker|containers|a container image|Podman|a Docker image]
~[run|use|build] [quire in Docker|a container|a Docker image|a container image]
docker
dockerfile
is there a docker image
docker run
container image
docker pull quire
podman
docker compose

# too much load
= At most `--max-num-seqs` sequences run and `--max-num-queued-reqs` wait; further requests get 429 with `Retry-After: 1`.
what happens under [too much load|high load|overload|heavy load]
what if too many requests come
overload
what does the server do when it is full
how does quire handle overload
backpressure
too many users at once
server is overloaded
load shedding

# 429 *1.2
= 429: no capacity now. Try again after `Retry-After` seconds, or raise `--max-num-queued-reqs`.
?[429|status 429|error 429]
why do I get 429
the server [answers|returns|says|gives] 429
too many requests
429
error 429
http 429
rate limit error
RateLimitError

# 503
= 503: the server drains, the engine makes no progress, or a limit of connections, bodies or unread responses is reached.
?[503|status 503|error 503]
why do I get 503
the server [answers|returns|says|gives] 503
service unavailable
503
error 503
http 503

# 400
= 400: a field is wrong or twice in an object, or the prompt does not fit; the message names the field and the limit.
?[400|status 400|error 400]
why do I get 400
the server [answers|returns|says|gives] 400
bad request
400
error 400
BadRequestError
my request is refused with 400

# 401
= 401: no valid key. Send `Authorization: Bearer KEY` with one of the server's keys.
?[401|status 401|error 401]
why do I get 401
the server [answers|returns|says|gives] 401
unauthorized
401
error 401
invalid api key
AuthenticationError
my key is not accepted

# 403
= 403: the Host is not allowed, or a browser's preflight comes from another Origin; see `--allowed-hosts` and `--allowed-origins`.
?[403|status 403|error 403]
why do I get 403
the server [answers|returns|says|gives] 403
forbidden
403
error 403
access forbidden

# 405
= 405: the route does not have this method; generation routes need POST.
?[405|status 405|error 405]
method not allowed
405
why do I get 405
GET on /v1/chat/completions
error 405

# 408
= 408: the request took too long to arrive; the head has 10 s and the body 60 s.
?[408|status 408|error 408]
request timeout
408
why do I get 408
error 408
upload is too slow
how long may a request take to arrive

# 413
= 413: the body is larger than `--max-request-bytes`, by default 32M.
?[413|status 413|error 413]
413
why do I get 413
error 413
request entity too large
the body is too large

# 415
= 415: send the header `Content-Type: application/json`.
?[415|status 415|error 415]
415
why do I get 415
unsupported media type
error 415
which content type do I need
content-type header

# 431
= 431: the request's head is too large; the limit is 16 KiB and 100 fields.
?[431|status 431|error 431]
431
why do I get 431
header too large
error 431
too many headers

# 500
= 500: an error of the server; the log has its cause with the request's id, unless `--log-level off`.
?[500|status 500|error 500]
500
why do I get 500
internal server error
error 500
InternalServerError
where is the cause of a 500

# error body
= `{"error": {"message", "type", "param", "code"}}`, as in OpenAI's API; in a stream it is an event, followed by `[DONE]`.
what does an error [response|body] look like
format of error responses
error body
error JSON
how are errors reported over HTTP
error in a stream
fields of an error

# model not found
= The `model` field must be a name that `GET /v1/models` shows; leave it out or start with `--served-model-name NAME`.
model not found
404 the model does not exist
the model field gives 404
NotFoundError
which model name does the server accept
error: model does not exist
wrong model name in a request
must I send the model field

# slow client
= A client that reads too slowly is disconnected: it must take at least 16 KiB per second after 30 s of grace.
what happens with slow clients
my stream was closed because I read slowly
slow reader
client reads too slowly
connection closed during a stream
minimum read speed

# disconnect
= The request is cancelled and its capacity is free at once.
what happens when a client disconnects
~cancel a request
client closes the connection
cancel generation over HTTP
abort a request
does a closed connection stop the generation
stop a running request

# timeouts
= A connection closes after 75 s idle; a head has 10 s and a body 60 s to arrive. A generation has no time limit.
which timeouts does the server have
timeouts
how long may a [generation|request] run
is there a timeout for generation
connection timeout
keep-alive timeout
idle connections
request takes too long, is it stopped

# listening on loopback
= Quire listens only on 127.0.0.1 unless `--host` says otherwise, so other machines cannot reach it.
is the server public by default
is my server visible to others
can others see my server
who can reach the server by default
is it safe to start the server
secure by default
does it listen on all addresses

# openai key dummy
= Any key is accepted if the server has none: pass `api_key="none"` to the client.
what api key do I use without keys
the client wants an API key
which key do I give the openai client
OPENAI_API_KEY
must I have an OpenAI key
do I need an OpenAI account
api key required by the client
dummy api key

# lists of messages
= Send all turns in `messages` with each request; the server keeps no conversation, but the prefix cache makes this fast.
does the server remember [the conversation|earlier messages|my messages]
~[continue a conversation|have a conversation] over HTTP
is the API stateless
conversation over the API
does the server keep state
chat history on the server
multi-turn over HTTP
sessions
"""

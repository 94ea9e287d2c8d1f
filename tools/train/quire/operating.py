"""Needs of those who run a server, in their own words, and pairs of needs that share words but not the answer."""

OPERATING = r"""
# listen everywhere
my phone can't open the page that works on my PC
I can curl it here but not from my laptop
only I can reach it, my colleagues get nothing
it runs on a box in the basement and I sit upstairs
our office should be able to use it
how do I make sure that other computers in the building get through
make it visible to the whole LAN
the container runs but nothing outside of it can connect
from the outside it is dead, on the machine itself it works
0.0.0.0
public
share it with the team
other computers
reach it over the network
I don't want it to be private to this computer

# --host
I have two network cards and it should answer on one of them only
it should answer on 10.0.0.5 only
where does it accept connections from by default
internal interface only
bind it to the VPN's address
which interface

# listening on loopback
is my server visible on the internet by default
did I just open my machine to the world
is it private unless I say otherwise
who can reach it if I change nothing

# --port
8000 is taken by my Django app, move it elsewhere
it should be at 5000 because our firewall lets only that through
the firewall allows only 8080
two servers on one box, they collide
I don't want 8000
my router forwards 9000
at which number does it listen
listen somewhere else than 8000
move it to 80

# port in use
address already in use
it does not start and says something about bind
something else sits on 8000
EADDRINUSE
"cannot listen: Address already in use"
I started it twice and the second one fails
bind fails

# any free port
in my tests many servers run in parallel, I don't care where they listen
the operating system should pick where it listens
CI runs several servers at once and the numbers collide
take whatever is free

# --uds
I don't want any TCP at all
a local-only endpoint through the file system
nginx on the same box shall talk to it through a file
socket file instead of an address

# protect the server
anyone in our office can use up my card, stop that
strangers found my endpoint
it's open to everybody, I don't like that
I don't want uninvited guests
how do I make sure that only our app may call it
login
password
auth
security
credentials for the API
my server was abused last night by someone from the internet
is there a way to keep the public out
callers must identify themselves
private endpoint
secrets for the clients

# --api-key
I'd like to give a secret directly at the start, without a file
secret on the command line
is it visible in ps what I pass as secret
one secret is enough for me, no file

# --api-key-file
I don't want my secrets in the process list
where do I put twenty secrets for twenty users
secrets in a file
a secret must not be visible in ps
list of secrets
comments in the file of secrets
format of the file with the secrets

# send key
the server wants a secret from me, how do I hand it over in curl
in which part of the request does the secret go
the browser pops up a login window for the page
my program must identify itself, how
the page asks me for a user name
I was given a secret by the admin, how do I use it

# change keys
an employee left and must no longer get in
we lost a secret, how do we invalidate it
I added a line to the file of secrets and the new one is not accepted
a secret leaked
how do I take a user's access away
the new secret doesn't work until when

# key storage
could an admin read the secrets from the logs
do our secrets end up in a log file
are secrets hashed
is the comparison of secrets safe against timing attacks

# 401
unauthorized
it says I'm not authorized
the client is rejected because of the secret
authentication failed
AuthenticationError
my request comes back with "no valid key"

# --max-concurrency-per-key
one customer hogs everything, how do I rein them in
a single user blocks all others
fairness between customers
quota for each customer
one team must not use more than 10 slots
rate limit for each user
how do I make sure that nobody takes all the slots

# --allow-request-priority
the boss's questions should come before the batch jobs
interactive users wait behind our nightly jobs
I'd like background work to yield to people
how do I let an urgent one overtake the others
VIP customers go first
not first come first served
some are urgent, some are not
I send an importance with each request and nothing changes
background jobs should only run if nobody else waits
queue order
overtake
order of execution by importance
does 0 run before 5

# tls
browsers warn that the connection is not secure
I don't want passwords to travel in the clear
HTTPS
encryption
encrypt the traffic
SSL
wiretapping must be impossible
our security team demands encrypted connections
https:// gives an error, http:// works
certificate
padlock in the browser

# tls reload
our certificate is renewed every 60 days by certbot
Let's Encrypt renews, must I do anything
certificate expired and was replaced on disk, what next
after the renewal of the certificate

# self signed
I have no certificate but want to try https
certificate for testing
make me a certificate
quick certificate for localhost

# --insecure
my load test fails because the certificate is self-made
the benchmark complains about an untrusted certificate
skip the verification of the certificate in the load test

# reverse proxy
nginx is in front of it, anything to know
behind Traefik
Caddy
HAProxy
we put everything behind nginx
one domain for several services
load balancer in front

# streaming through proxy
behind nginx everything arrives at once at the end
tokens come in one lump since we use nginx
live output works directly but not through our gateway
the words do not trickle in through the proxy

# systemd
it should come up again after a reboot
start at boot
I don't want to start it by hand every morning
it must restart by itself if it crashes
background service of the machine
unit file
autostart
survive a reboot
systemctl
keep it alive after I log out

# service model path
the service cannot read my weights, but by hand it works
permission denied on the model, only as a service
my weights lie in /home and the unit can't see them

# stop server
how do I end it without hurting anyone
maintenance tonight, how do I take it down nicely
kill -9 or what
I want it gone
shut down
terminate
quit the server
SIGTERM
it does not end at once when I press Ctrl-C, it waits
it ignores my first Ctrl-C
end it right now, I can't wait
how do I get rid of it in a hurry

# --drain-timeout
it takes half a minute to go down, I don't want to wait that long
our orchestrator kills it after ten seconds, requests are lost
users with long answers are cut off when we redeploy, give them more time
more time for answers in progress at a rolling update
wait longer before it goes down
how long does it wait before it exits
go down faster

# ready
the load balancer should stop sending before it goes down
how does my script know that it has loaded
wait until it is up
is it up yet
loading takes a while, how do I know when to send
503 while starting, which URL do I poll
traffic gate

# health
restart it automatically when it hangs
is it still alive
the watchdog needs a URL
liveness
heartbeat
is the process stuck, which URL says so

# kubernetes
we deploy to a cluster with pods
k8s
probes for the pod
pods are killed during start
helm
what do I put as probes

# metrics
how busy is it right now
I want to graph the load
monitoring
observability
Prometheus
statistics
how many users are on it at the moment
an alert when it is overloaded, where do the numbers come from
I'd like to see tokens per second of the running server
numbers

# grafana
pretty charts
dashboards
our dashboards of vLLM, can we keep them
visualise the load

# logs
who called the server and when
privacy: are the users' texts written anywhere
do you write down what my users ask
where do messages of the server go
GDPR, what is recorded
is there a log file
are prompts recorded
access log

# --log-format
our log collector wants structured lines
Elasticsearch chokes on the lines
Loki wants structured lines
lines on stderr should be parseable
machine-readable log

# --log-level
it prints too much
my terminal is flooded
be quiet
silence
verbose
I want more details when something goes wrong
only show problems
quiet
debugging output
don't print a line for every request

# request id
a user complains about one answer, how do I find it in the log
correlate a client's call with the log
how do I trace one call through our systems
tie a log line to a call

# too much load
what happens on Black Friday when everybody comes
a thousand people press enter at once, what then
does it fall over under pressure
is there a queue
what if more come than it can take
traffic spike

# 429
my client is told to come back later
RateLimitError
some calls are turned away at peak hours
at noon our users get turned away
Retry-After
it turns requests away
the load test gets rejections

# --max-num-queued-reqs
I'd rather turn people away than let them stand in line
a longer line, nobody should be turned away
let more stand in line before it refuses
waiting line
length of the queue
don't let the line grow without end
how many may stand in line

# --max-num-queued-tokens
huge texts pile up in the line
bound the amount of text that stands in line

# --max-num-seqs
ten users at once and the eleventh waits, why
only a few run at the same time, I want more
how many can be answered at the same time
parallelism
concurrency
batch size
slots
I want fewer at the same time so that each is quicker
equivalent of llama.cpp's -np
how do I let a hundred people in at the same time
everyone waits although the card has room

# --max-num-batched-tokens
a long text of one user makes everybody else stutter
how much work is done in one go
stutters when someone sends a book
size of one go of the engine
pieces into which a long text is cut

# --max-model-len
I paste a whole book and it refuses
I only need short texts, save the memory
my documents are 20k tokens long
I don't need 128k, 8k is enough
how long may texts get
context
window
context window
how do I make sure that nobody sends more than 4096 tokens in all
n_ctx
--ctx-size
longest possible text
shorter context to save memory

# context too long
it says my text does not fit
my text is too long, apparently
"the prompt has more tokens than"
the document is bigger than the window
prompt too long
refused because it's too long

# --allow-long-max-model-len
I want to go beyond what the weights were trained for
stretch it past its training length
64k on a model with 32k, at my own risk
exceed the length in config.json

# long context
does it really offer all 128k
the log warns that the context was reduced
it offers fewer tokens than the model's card says
why is my window smaller than advertised

# --gpu-memory-utilization
another program on the card needs room too
nothing is left on the card for my desktop
I share the card with a colleague
don't eat up the whole card
it took 72 of 80 GB, I want it to take less
leave some room on the card
use all of the card, to the last gigabyte
how do I make sure that it takes only half of the card
VRAM share

# --kv-cache-memory
I'd like to say in gigabytes how much is set aside for past tokens
it takes all my RAM, the weights are small
fix the size of the memory for past tokens
exact budget in bytes instead of a share
on my CPU machine it takes too much RAM

# --kv-cache-dtype
twice as many users with the same memory by storing past tokens smaller
shrink what is stored of each past token
halve the memory of past tokens
8-bit storage of past tokens

# --block-size
how fine is the memory for past tokens divided
tokens in one page
page

# kv cache what
where are past tokens remembered
why does memory grow with long conversations
what is all the memory besides the weights for
memory of attention

# --threads
it makes my whole computer sluggish
it takes all my cores
leave a few cores for other programs
half of my processor should stay free
how do I make sure that it doesn't hog the processor
the fan goes mad, take fewer cores
-t 8 of llama.cpp
cores
parallel on the processor
more cores please, it only uses some
eight cores are enough
other jobs on the machine starve

# --num-workers
tokenizing is the bottleneck, give it more hands
parsing of requests is too slow on my many-core box
who parses the requests

# --num-io-threads
the network side is saturated
more hands for the sockets

# --num-grammar-threads
many different schemas come at once and wait to be prepared
schemas take long to prepare, use more cores for that

# --max-connections
how many clients may be connected
10,000 browsers keep a connection open
limit on open sockets

# --max-connections-per-peer
one address opens thousands of sockets
a single host floods me with connections
denial of service from one address

# --max-request-bytes
someone posts a file of a gigabyte
my upload is refused for its size
bigger posts, please
largest post

# 413
entity too large
"request body too large"
my long document can't be posted

# --allowed-origins
my web page can't call it, the browser blocks it
CORS
"No 'Access-Control-Allow-Origin' header"
blocked by CORS policy
JavaScript on another site calls it
fetch() from my React app fails, curl works
cross-origin
browser console complains about the origin

# --allowed-hosts
it answers 403 when I use our domain name, with the IP it works
works by IP but not by name
DNS rebinding
llm.example.com gets 403
our domain is refused

# 403
forbidden
access forbidden although the key is right
"Forbidden"

# --served-model-name
clients ask for "gpt-4o" and I can't change them
my app hard-codes the model's name
the name shown is an ugly path, I want a nice one
alias
rename
pretend to be gpt-3.5-turbo
nickname
show a nicer name to the clients
the same model under two names

# model not found
404 for the name that I send
"The model `gpt-4` does not exist"
it doesn't know the name in my request
NotFoundError from the openai package
which name must my client send

# list models
what is currently loaded
which name does the running server have
ask a server what it runs

# several models
Llama and Qwen at the same time
one server for two different checkpoints
switch between checkpoints without a restart
hot swap
two at once

# connection refused
curl says it couldn't connect
nobody answers at 8000
ECONNREFUSED
APIConnectionError
"Failed to connect to 127.0.0.1 port 8000"
my client can't reach it on the same machine

# config file
I don't like long command lines
YAML
TOML
keep my settings in a file
ini file
settings file
where do I store all my options permanently

# docker
container
image
podman
docker pull
is it on Docker Hub
Dockerfile

# slow generation
one word per second, is that normal
it crawls
too slow
why is it so slow
it types slower than I do
painfully slow
only 2 tokens per second

# throughput advice
how do I squeeze more tokens per second out of the card
we want as many answers per hour as possible
maximum tokens per second
the card is only at 30 %, how do I feed it better
nightly batch should finish sooner

# latency advice
the first word takes too long
users complain that words come in jerks
snappier replies
quicker first word
responsiveness

# startup time
how long until the first word after I start it
does it take minutes to come up
cold start
how fast is it up

# --enforce-eager
starting takes too long because of the capturing, skip it
I suspect the captured graphs, how do I rule them out
run without captured graphs
eager mode

# tune
find the fastest kernels for my card
make it optimal for my hardware
autotuning
my card is unusual, measure which kernels are fastest
calibrate
optimize for this machine
create a table of the fastest kernels

# --tuning-table
I have a table from measuring my card, how do I use it
apply the results of the calibration
use tuned.csv
load the file that tune wrote

# bench throughput
how fast is my machine with this checkpoint
tokens per second of this machine
compare two cards
is it faster than llama.cpp here, how do I find out
numbers for my boss about speed

# bench serve
how many users can my running server take
stress it
load test
simulate a hundred users
put pressure on the running server
capacity test
hammer the endpoint

# bench latency
how long does one batch take
time of a single batch
how long from start to end for 8 at once

# eval
how good are the answers of my checkpoint at maths
did my fine-tune get worse at word problems
accuracy
test of quality
score of my model
is it as accurate as transformers

# silent fallbacks
does it quietly use something slower if my choice cannot be had
I hate programs that ignore my settings without a word
what if it cannot do what I asked for
is a setting ever ignored
"""

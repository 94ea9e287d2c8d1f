"""Installing and building, other engines' flags, errors and their remedies."""

TROUBLE = r"""
# build *1.5
= `scripts/build.sh` builds `build/quire`; it installs missing packages and takes about five minutes on two cores.
~[build|compile|install|set up] [quire|it|from source|the program|quire from source]
?[scripts/build.sh|the build script]
build
compile
how is quire built
installation
install instructions
how long does [the build|a build|building] take
build from source
which command builds quire
git clone, then what
make
cmake build

# build packages
= The scripts install the packages with apt-get: a compiler, CMake, Ninja, git, ccache and the libraries of docs/dependencies.md.
which packages [does the build need|are needed|do I need to build]
what must be installed to [build|compile] quire
build dependencies
build requirements
apt packages
does the build need root
does the build need sudo
prerequisites
which tools are needed to build
what does the build script install

# dependencies
= Mainly fmt, spdlog, simdjson, CLI11, Highway, utf8proc, PCRE2, OpenSSL, Boost and XGrammar; see docs/dependencies.md.
which [libraries|dependencies] does quire [use|have|need|depend on]
what are the dependencies
list of dependencies
third-party libraries
dependencies
which libraries are linked
what does quire depend on
why is [OpenSSL|Boost|simdjson|PCRE2] used

# json library
= simdjson reads all JSON; a small writer of Quire's own writes it.
which JSON library is used
?simdjson in quire
simdjson
does quire use nlohmann json
json parser
how is JSON parsed

# http library
= The server uses Boost.Asio and Boost.Beast.
which HTTP library [is used|does the server use]
does quire use [Boost|Drogon|libevent|uvicorn|FastAPI|nginx inside]
http library
boost
networking library
web framework of the server

# build with cuda
= If `nvcc` 12.4 or later is on the PATH, `scripts/build.sh` builds the CUDA engine as well.
~[build|compile] [with CUDA|the CUDA engine|with GPU support|for the GPU|with the GPU engine]
?the CUDA engine
build with CUDA
GPU build
which CUDA version [is needed|do I need]
does the build need nvcc
CUDA toolkit
is CUDA built automatically
cuda version
-DGGML_CUDA=ON

# build without cuda
= `QUIRE_CUDA=OFF scripts/build.sh`
~build without [CUDA|the CUDA engine|GPU support]
~skip the CUDA [build|engine]
CPU-only build
QUIRE_CUDA
build without nvcc
no CUDA build
faster build without CUDA

# cuda architectures
= `cmake --preset release -DQUIRE_CUDA_ARCHITECTURES="80-real;90a-real"`, then `cmake --build build`.
~build for [several GPU generations|Ampere and Hopper|another GPU|an A100|all supported GPUs]
QUIRE_CUDA_ARCHITECTURES
cuda architectures
which GPUs is the binary built for
build for another machine's GPU
sm_80 and sm_90
TORCH_CUDA_ARCH_LIST

# binary for other gpu
= The binary was built for other GPUs: build it again with `QUIRE_CUDA_ARCHITECTURES` for this one.
no kernels for this GPU
the binary does not support my GPU
my GPU is refused by the binary
no kernel image is available for execution on the device
built for another GPU generation
GPU generation is refused

# nvcc missing
= Install the CUDA toolkit 12.4 or later, put `nvcc` on the `PATH` and build again.
nvcc not found
the build has no CUDA
why is the CUDA engine not built
CMake does not find nvcc
nvcc: command not found
quire was built without CUDA
build found no nvcc
this binary has no CUDA

# cuda runtime
= The driver and cuBLASLt; the cudnn backend also needs cuDNN 9.11 or later. `quire doctor` lists what it finds.
what does a GPU need to run quire
which NVIDIA libraries are needed [at run time|to run|]
cublaslt
is the CUDA toolkit needed to run
run-time libraries for the GPU
libcublasLt.so not found
do I need CUDA installed to run
which driver do I need

# gpu not found *1.3
= `quire doctor` gives the reason why no GPU is used, and lists the driver and libraries that are missing.
no GPU is found
the GPU is not [found|used|detected|recognized]
why is my GPU not used
why does quire run on the CPU
quire uses the CPU instead of the GPU
no usable GPU
CUDA driver version is insufficient for CUDA runtime version
cuda error at start
no CUDA device
GPU missing
nvidia-smi works but quire finds no GPU
it does not see my graphics card

# copy binary
= Copy `build/quire`: it contains the embedded model, the chat page and the kernels. Build on the same distribution.
~[copy|move|deploy|bring|transfer] [quire|the binary|it] to another machine
can I copy the binary
which files does quire need
is one file enough
deployment
copy to a server
run on another machine
does the binary need other files
single binary
self-contained

# runtime packages
= On Debian 12: libfmt9 libhwy1 libpcre2-8-0 libsimdjson14 libspdlog1.10 libssl3 libstdc++6 libutf8proc2.
which packages does the binary need
run-time packages
error while loading shared libraries
libsimdjson.so: cannot open shared object file
libfmt.so.9 not found
shared library missing
which libraries must be installed to run
apt install for running quire
missing .so file

# system install
= `cmake --install build --prefix PREFIX`, where PREFIX is an absolute path.
~install quire [into a prefix|system-wide|to /usr/local|after the build]
cmake --install
make install
install prefix
where is quire installed
install to a folder

# packages
= `scripts/package.sh` makes a `.deb` (`apt install ./quire_0.1.0_amd64.deb`), a tarball, and a wheel (`pip install FILE`).
%[packages|prebuilt binaries|binary releases|a release without a compiler|other ways to install it]
~[make|build|get] [a package|packages|an installer|a release|a prebuilt binary]
~install [quire|it] [without a compiler|on another machine|without building it|from a package]
is there a [package|prebuilt binary|release download|installer]
[which|what] packages [are there|exist|does quire come in]
prebuilt binaries
scripts/package.sh
where can I download quire
package formats
installation without the sources

# deb package *1.2
= `apt install ./quire_0.1.0_amd64.deb` installs the Debian package, which `scripts/package.sh` makes.
%[apt packages of quire|Debian packages|a .deb|Ubuntu packages|dpkg]
~install [the deb|a deb package|the Debian package|quire with apt|quire with dpkg|the .deb file]
apt install quire
apt-get
is there a deb
[deb|.deb|debian package|ubuntu package]
dpkg -i
what do I do with the deb file

# python wheel *1.2
= `pip install FILE` installs the wheel that `scripts/package.sh` makes; then `quire serve` works, and no Python runs.
%[a Python wheel|pip|a pip package|PyPI packages|uv]
~install [quire with pip|the wheel|the whl|the python package|quire with uv|it in a virtualenv]
pip install quire
[wheel|whl|pip package|python package]
where is the python package
is there a pip package
can pip install it
what do I do with the whl file

# tarball *1.2
= Unpack the tarball of `scripts/package.sh` anywhere and run `bin/quire`; it has its libraries with it.
%[a tarball|tar.gz packages|an archive with all libraries|a portable version]
~[use|install|unpack|run] the [tarball|tar.gz|archive]
[tarball|tar.gz|archive]
what is in the [tarball|archive]
portable binary
run it without installing anything
~install it without root

# other packagers
= No: there are packages for apt and pip and a tarball, all made by `scripts/package.sh`, and no others.
%[RPMs|Homebrew|conda|snap|a PPA|nix|flatpak|pacman]
brew install quire
conda install quire
dnf install quire
snap install quire
is there an rpm

# update
= Pull the sources and run `scripts/build.sh` again.
~[update|upgrade] [quire|it|to a new version]
how do I get the newest version
update
upgrade
new version of quire
git pull

# uninstall
= Delete the folder of the sources, and the folder into which you installed it, if you did.
~[uninstall|remove|delete] quire
uninstall
remove quire
get rid of quire
what do I delete to remove quire
clean up after quire

# other distributions
= Only Debian 12 is tested; Ubuntu 24.04 has all packages but is untested. Elsewhere install the libraries yourself.
~[build|install] quire on [Fedora|Arch|Ubuntu|CentOS|Alpine|openSUSE|RHEL|NixOS]
%[Fedora|Arch Linux|Ubuntu 24.04|Ubuntu 22.04|CentOS|Alpine|RHEL]
which distributions work
does it build on [Ubuntu|Fedora|Arch]
[ubuntu|fedora|arch linux]
distribution support
which Linux do I use

# tests
= `scripts/test.sh` builds and runs all tests.
~[run|execute|start] [the tests|all tests|the test suite|the unit tests]
?scripts/test.sh
run tests
test suite
which command runs the tests
is quire tested
unit tests
ctest
how is quire tested

# one test
= `ctest --test-dir build -R NAME --output-on-failure`
~run [one test|a single test|only one test|a certain test]
single test
run one unit test
ctest -R
run a specific test
repeat one test

# client tests
= `scripts/test.sh --clients -L clients` tests with openai, lm-eval, schemathesis and a load test.
~test with real clients
which clients is the server tested with
client tests
schemathesis
tests with the openai package
is it tested with OpenAI's client

# sanitizers
= `scripts/sanitize.sh` runs the tests under ASan and UBSan, `scripts/sanitize.sh thread` under TSan.
~run the [sanitizers|tests with ASan|tests under TSan|address sanitizer]
sanitizers
asan
tsan
address sanitizer
data races
memory errors in tests

# fuzz
= `scripts/fuzz.sh 60 safetensors` fuzzes one parser for 60 seconds.
~[fuzz|run the fuzzers|fuzz a parser]
fuzzing
fuzzers
is quire fuzzed
scripts/fuzz.sh
which parsers are fuzzed
fuzz testing

# debug build
= `cmake --preset debug`, then `cmake --build build-debug`.
~[make a debug build|debug quire|use a debugger|build for a debugger]
debug build
gdb
debugger
build with debug symbols
cmake preset debug
debug symbols

# presets
= release, debug, cuda-debug, coverage, asan and tsan: `cmake --preset release`.
which CMake presets are there
cmake presets
list presets
presets
coverage build
which preset do I use

# compiler
= g++ 12 or clang 14, in C++20.
which compiler do I need
which [compilers|version of gcc] [are supported|is needed]
does it compile with [clang|gcc 11|MSVC]
gcc version
compiler
minimum compiler
clang support

# xgrammar missing
= Run `scripts/fetch_deps.sh`: it fetches XGrammar's source into `.deps/`.
CMake fails because XGrammar is missing
xgrammar not found
.deps/xgrammar is missing
?[scripts/fetch_deps.sh|the .deps folder]
where does XGrammar come from
build fails with xgrammar
fetch dependencies
.deps folder

# build downloads
= Only XGrammar's source (2 MB) and, for CUDA, headers (58 MB); nothing else is downloaded, then or later.
what does the build download
does the build need [a network|the internet]
downloads during the build
how much is downloaded
build without internet
network access of the build

# no config json
= Pass the folder that has the checkpoint's files, or the name of a model that `quire pull NAME` downloaded.
has no config.json
config.json not found
no config.json in the folder
the folder has no config.json
error: has no config.json
does not exist; expected a directory with config.json
--model has no config.json
missing config.json
I passed the Hugging Face cache folder

# unsupported architecture
= The model's architecture is not supported; use Llama, Mistral, Qwen2, dense Qwen3, Gemma 2 or Gemma 3.
unsupported architectures
architecture is not supported
my model is refused because of its architecture
unsupported architecture error
the config's architectures are unsupported
ForCausalLM is not supported
unknown architecture

# out of memory *1.3
= Lower `--max-model-len` or `--max-num-seqs`, or set `--kv-cache-memory`; on a GPU raise `--gpu-memory-utilization`.
out of memory
the model does not fit [into memory|on my GPU|]
it does not fit into memory
not enough memory
OOM
CUDA out of memory
memory error at start
~[save memory|use less memory|reduce memory|make the model fit|lower the memory usage]
the memory plan does not fit
quire needs too much memory
killed because of memory
KV cache does not fit
too little VRAM

# memory of model
= Weights need 2 bytes per parameter in F16 or BF16 and 4 in F32, plus the KV cache; `quire doctor --model DIR` shows the plan.
how much memory does [a model|an 8B model|a 7B model|my model|a 1B model] need
memory of the weights
how much VRAM do I need for [an 8B model|a 7B model|Llama 3 8B]
memory requirements
how much RAM do I need
RAM for a 7B model
VRAM requirements
size of a model in memory

# context too long
= The prompt and output exceed the context: shorten the prompt or raise `--max-model-len`.
the prompt is too long
prompt does not fit the context
maximum context length exceeded
error: prompt longer than the context
prompt exceeds max_model_len
my prompt is refused because of its length
this model's maximum context length is
context overflow

# max tokens beyond context
= The output ends at the context's end with `finish_reason` length; only a prompt that leaves no room is refused.
what if max_tokens is larger than the context
max_tokens beyond the context
max_tokens too large
is a large max_tokens an error
max_tokens more than the model's length
output reaches the end of the context

# max model len refused
= `--max-model-len` is beyond the model's context or the memory; lower it, or pass `--allow-long-max-model-len`.
--max-model-len is refused
max-model-len does not fit
why is my --max-model-len refused
max model len too large
error about max-model-len
context flag is refused

# port in use
= `--port N` chooses another port, or 0 any free one: another program uses this one.
address already in use
port [8000|] is already in use
bind: address already in use
the port is [taken|busy|occupied|in use]
cannot bind to port
EADDRINUSE
errno 98
cannot listen on port 8000

# connection refused
= The server does not run at this address and port; it prints its URL as `serving NAME at URL` when it is ready.
connection refused
cannot connect to the server
curl: (7) Failed to connect
the client cannot connect
which URL does the server have
APIConnectionError
failed to connect to 127.0.0.1 port 8000
the server does not respond at all
how do I know that the server is up
when is the server ready

# slow generation
= Check with `quire doctor` that the GPU is used; on a CPU, decode is limited by memory bandwidth.
quire is slow
generation is slow
why is it so slow
tokens come slowly
~make [it|generation|quire] faster
slow output
speed up generation
few tokens per second
performance is bad
it takes forever
optimize speed

# throughput advice
= Send many requests at once and raise `--max-num-seqs`; on a GPU let `quire tune` choose the attention backends.
~[increase|improve|maximize|get more] throughput
best throughput
more tokens per second with many requests
settings for high throughput
throughput is low
how do I use the GPU fully
maximize tokens per second

# latency advice
= Lower `--max-num-batched-tokens` or `--max-num-seqs`: smaller steps make each token come sooner.
~[reduce|lower|improve] [latency|the latency|time per token]
low latency
tokens come late under load
settings for low latency
latency is high
inter-token latency is too high
better response time

# garbage output
= Use the model's chat template (`quire chat`, or `generate --chat`), and check that the checkpoint is an instruct model.
my model writes garbage
the output is garbage
my own model answers nonsense
strange output of my model
gibberish
bad output from my checkpoint
the instruct model does not follow
random characters in the output
dummy weights produce garbage

# embedded nonsense
= The embedded model knows arithmetic, word problems and Quire only; give another model with `--model DIR`.
the embedded model cannot answer my question
the default model knows nothing
the small model does not know the answer
how do I get better answers
~get [better|good|smarter] answers
I need a smarter model
better model
why can't the built-in model talk about the world

# git lfs pointer
= The file is a git-lfs pointer, not the weights: run `git lfs pull`, or download the checkpoint again.
git-lfs pointer
the safetensors file is a git-lfs pointer
weights file is only 134 bytes
git lfs
model.safetensors is too small
lfs pointer error
cloned model does not load

# truncated weights
= The weights are damaged or incomplete: download the checkpoint again.
safetensors file is truncated
weights are damaged
corrupt safetensors
broken checkpoint
file is truncated
missing shard
invalid safetensors header
checkpoint is incomplete

# foreign flags
= Flags have vLLM's names. A flag of another engine without meaning here is refused with the reason and an alternative.
can I use [vLLM's flags|flags of vLLM|flags of llama.cpp|flags of SGLang]
are vLLM's flags accepted
do vLLM's command lines work
flag names
which engine's flag names are used
does quire know llama.cpp's flags
vllm flags
llama.cpp flags
are the flags the same as in vLLM

# migration *1.2
= See `docs/migration.md`: it lists the differences to vLLM, SGLang and llama.cpp.
~[migrate|switch|change|move|come] from [vLLM|SGLang|llama.cpp|ollama|TGI] [to quire|]
what is different from [vLLM|SGLang|llama.cpp]
migration
differences to vLLM
coming from vLLM
coming from llama.cpp
switch from vLLM
replace vLLM
does quire replace vLLM
I come from SGLang

# foreign commands
= Quire has no run, list, ps or show: use `quire chat DIR`, `quire pull NAME`, `quire doctor DIR`, or `/v1/models` of a server.
quire [run|list|ps|show|ls|rm]
is there a quire [run|list|ps|show]
does quire have [run|list|ps|show]
there is no command [run|list|ps|show]
what do I use instead of [run|list|ps|show]
~[list|remove|see] downloaded models
[run|ps|list] does not work

# ollama
= Instead of `ollama pull` and `ollama run`: `quire pull NAME`, then `quire chat --model NAME`.
how does quire compare to ollama
is there something like ollama pull
ollama
I come from ollama
modelfile
ollama create
ollama models in quire

# gpu flags on cpu
= GPU flags have no effect on a CPU, and the log has a warning.
what do GPU flags do on a CPU
--gpu-memory-utilization on a CPU
GPU flags without a GPU
warning: GPU flag on a CPU
are GPU flags an error on a CPU
--enforce-eager on a CPU

# kernel compile
= No, nothing is compiled at run time; kernels are compiled ahead of time into the binary.
are kernels compiled at run time
%[JIT compilation|torch.compile|Triton kernels|run-time compilation|PTX]
does quire compile at the first start
JIT
first start is slow because of compilation
is there a warm-up compilation
compile cache

# overlapping
= The next step is planned while the current one runs; this is always on.
%[asynchronous scheduling|async scheduling|overlap scheduling|overlapped scheduling]
--async-scheduling
async scheduling
does quire plan ahead
overlap scheduler
how is the GPU kept busy
zero overhead scheduler

# disaggregation
= No, prefill and decode run in one process; disaggregated serving and KV transfer are not supported.
%[disaggregated prefill|disaggregated serving|prefill/decode disaggregation|KV transfer|LMCache|Mooncake|KV offloading|remote KV caches]
disaggregation
kv connector
PD disaggregation
--kv-transfer-config
offload the KV cache to disk
is prefill disaggregation possible

# cpu offload
= No, weights are not offloaded: a model runs wholly on the GPU or wholly on the CPU.
%[CPU offloading|offloading layers|partial offload|weight offloading|splitting between CPU and GPU|disk offload]
~[offload|put] [some layers|half of the model|weights] [to the CPU|on the CPU]
partial offload
half on GPU, half on CPU
cpu offload
model larger than VRAM
use both CPU and GPU
mmap weights to disk

# huge pages numa
= Quire has no flag for NUMA; bind it with `numactl`, for example `numactl --cpunodebind=0 --membind=0 quire serve`.
%[NUMA|NUMA binding|CPU pinning|core affinity]
~bind quire to a [NUMA node|socket]
numa
numactl
--numa
pin threads
cpu affinity

# save model
= Quire never writes checkpoints: it cannot convert, quantize or export models.
^[export|convert|save|merge|write] [a model|models|checkpoints|a checkpoint]
~[convert|export] a model [to GGUF|to safetensors|with quire|to ONNX]
convert a model
export
merge models
save the model
model conversion

# windows wsl
= It is untested; Linux on x86-64 is what Quire needs, so a WSL with Debian 12 may work.
does WSL2 work
WSL2
windows subsystem for linux
can I try it in WSL
Debian under Windows

# several requests file error
= A bad line is refused by itself, and the message names it as `FILE:LINE`; the other lines run.
what happens with a [bad|wrong|faulty] line in --input
one line of the input file is wrong
error in a line of prompts.jsonl
invalid JSON in the input file
does one bad request stop the others
bad line in the file
unknown field in the input file

# interrupt generate
= Ctrl-C ends it with exit code 130 after printing the finished results.
what happens at ctrl-c during generate
~interrupt [a batch|generate|quire generate]
are results lost at ctrl-c
stop a running generate
abort generate
exit code 130

# weights types error
= Only F32, F16 and BF16 weights are served; for a quantized checkpoint take the original one.
tensor has type F8_E4M3
unsupported weight type
weights of type I8
quantization_config is refused
quantization_config in config.json
the model is quantized and refused
tensor type is not supported

# security of templates
= Templates come from the model or the operator, never from a request; `chat_template` in a request is 400.
~send a chat template in a request
chat_template in a request
can a request bring its own template
400 chat_template
template from the client
--trust-request-chat-template

# schema of the page
= The page shows the conversation and a live panel of the engine's numbers, and loads nothing from elsewhere.
what does the chat page show
what is on the page
live panel
does the page load scripts from elsewhere
is the chat page safe
engine panel on the page
page without internet

# gated hub token
= Accept the licence on the hub, set `HF_TOKEN` or log in with `hf auth login`, then `quire pull NAME`.
--hf-token
HF_TOKEN
the model is gated
gated repo
401 from the hub
~download a gated model
access to Llama is denied
hugging face login
hub token
"""

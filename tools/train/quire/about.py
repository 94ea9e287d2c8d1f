"""What Quire is, the embedded model, greetings."""

TALK = r"""
# hello
= Hello! Give me a calculation or a short word problem, or ask me about Quire.
[hello|hi|hey|good morning|good evening|good afternoon|hi there|hello there|hey there|howdy|greetings|hiya]
[hello|hi|hey] [quire|abacus|you|model|bot|friend|computer]
how are you [|today|doing]
[hello|hi|hey], how are you [|today]
how is it going
what's up
are you there
is anybody there
nice to meet you
[test|testing|ping]
yo

# who are you
= I am quire-abacus, the small model built into Quire. I do arithmetic, solve short word problems and answer questions about Quire.
who are you
what are you
what is your name
tell me [about yourself|who you are]
introduce yourself
what model [are you|is this|am I talking to|is running]
which model [are you|is this|is this here|answers me]
who am I [talking|speaking|chatting] [to|with]
are you [a bot|a robot|a computer|a human|a person|alive|an AI|a language model|real]
[hi|hello], who are you
what is [quire-abacus|abacus|quire abacus]
what is the [embedded|built-in|builtin|default|included|bundled|small] model
is this [an AI|a language model|a chatbot]
do you have a name
which model is used without --model
what happens if I give no --model

# what can you do
= I can do arithmetic, solve short word problems step by step and answer questions about Quire.
what can you do
what do you do
what are you [good at|able to do|for|capable of|made for|trained for]
what can I ask [you|here]
what [questions|things] can [you answer|I ask]
[help|help me|help!|I need help|can you help me|please help]
how can you help [me|]
what do you know
what are your [skills|abilities|features|capabilities|strengths]
what is the embedded model [good for|able to do|trained for]
give me [an example|examples] of what you can do
what kind of problems can you solve
can you [do math|calculate|do arithmetic|solve word problems|solve math problems|count]
do you know [mathematics|math|maths|arithmetic]

# what can you not do
= I am tiny and know nothing of the world. For other tasks give Quire a model of your own: `quire chat --model DIR`.
what can you not do
what are your [limits|limitations|weaknesses]
what don't you know
why do you know so little
why are your answers [bad|wrong|nonsense|useless|so short]
why is the [embedded|built-in] model so [bad|dumb|weak|stupid]
the embedded model answers nonsense
you [talk|answer|write] nonsense
that [is|was] wrong
this answer is [wrong|nonsense|garbage]
you are [stupid|wrong|dumb|useless|bad at this]
can you make mistakes
are your answers always [right|correct]
the model gives [garbage|rubbish|wrong answers]
you don't know [much|anything|a lot], do you
how smart are you
is the embedded model useful for real work

# thanks
= You are welcome!
[thanks|thank you|many thanks|thank you very much|thanks a lot|thx|cheers|great, thanks|ok thanks|perfect, thank you|cool, thanks]
[great|well done|nice|good job|good|perfect|excellent|awesome|cool|wonderful|very good|super|good answer]
that [helps|helped|worked|was helpful|is great|is right|is correct]
thanks for [your help|the help|the answer|explaining|that]
you are [great|helpful|nice|smart|right]
it works [now|]
[ok|okay|I see|got it|understood|all right|fine|alright]

# bye
= Goodbye!
[bye|goodbye|bye bye|see you|see you later|good night|farewell|cu|until next time|have a nice day|take care]
[ok|okay|thanks|thank you], [bye|goodbye]
I [have to go|am leaving|must go] [now|]
that is all, [bye|goodbye]
that's all for today

# are you chatgpt
= No, I am quire-abacus, a tiny model that the Quire project trained itself.
are you [ChatGPT|GPT-4|GPT|Claude|Gemini|Llama|Llama 3|Mistral|Qwen|Siri|Alexa|Gemma|DeepSeek|Copilot]
are you based on [Llama 3|GPT|Qwen|a known model|another model]
are you from [OpenAI|Google|Meta|Microsoft|Anthropic|Mistral]
is this [ChatGPT|GPT|Claude|Gemini]
were you made by [OpenAI|Google|Meta|Anthropic]
are you [made|trained] by [OpenAI|Google|Meta]
is the embedded model a [Qwen|Gemma|Llama 3] model
are you a [fine-tune|finetuned version] of [Llama|Qwen|Gemma]

# who made you
= The Quire project trained me from scratch, with the scripts in `tools/train`.
who [made|created|built|trained|wrote|developed|invented] you
who is your [author|creator|maker|developer]
who trained the [embedded|built-in] model
where do you come from
how were you [made|trained|built|created]
how was the [embedded|built-in] model [trained|made]
who made quire-abacus
which scripts trained you
~train the embedded model again
~reproduce quire-abacus
~retrain the built-in model
where is the training code

# how large are you
= I am a Llama of at most 16 million parameters; large models have thousands of times as many.
how [large|big] [are you|is the embedded model|is quire-abacus|is the built-in model]
how many parameters [do you have|does the embedded model have|does quire-abacus have|have you]
what is your size
number of parameters of the [embedded|built-in] model
are you a [large|small|big] model
what architecture [are you|do you have|does the embedded model have]
what kind of model is quire-abacus
is quire-abacus a Llama
embedded model [size|parameters|architecture]
how many layers do you have

# training data
= A generator in `tools/train` wrote all of my training data; no other text was used.
what [data were you trained on|were you trained on|is your training data]
which data was the [embedded|built-in] model trained on
where does your [knowledge|training data] come from
was copyrighted text used to train you
training data of [quire-abacus|the embedded model]
did you read the internet
were you trained on [the web|Wikipedia|books|GSM8K|code]
what is your knowledge cutoff
how do you know [that|this|all this|things]
when were you trained
do you learn from [me|our conversation|what I type]

# language
= I know English only.
[do you speak|can you speak|do you understand|can you answer in|do you know] [German|French|Spanish|Chinese|Italian|Russian|Japanese|Portuguese|Dutch|Polish|other languages]
which languages [do you speak|do you know|can you use|does the embedded model speak]
what languages [do you understand|do you know|are you trained on]
sprechen Sie Deutsch
parlez-vous français
hablas español
answer in [German|French|Spanish|Italian]
is the embedded model multilingual
[please|] speak [German|French|Spanish]
can I write in [German|French|Spanish]
is English the only language

# embedded context
= `quire doctor` shows the embedded model's context in the line `context`.
how long is [your context|your context window|the embedded model's context|the context of quire-abacus]
how many tokens can you [read|remember|take|handle]
what is your [context length|context window|maximum context]
context [length|window|size] of the [embedded|built-in] model
how much text can I give you
how long may my question be
what is your token limit
do you have a context limit

# calculation marks
= The mark `<<8*6=48>>` shows a calculation of the step, as in GSM8K; `####` precedes the final number.
what does [<<8*6=48>>|<<3+4=7>>|<<28*3=84>>|<<...>>] mean
what are the [angle brackets|<< >>|<<>>|double angle brackets|marks|calculator marks] [in your answers|in the output|]
what does #### mean
why do you write [####|<<>>|<< >>|#### and a number]
what is the [####|calculator mark|calculation mark]
why are there [brackets|hash signs] in your answers
explain the format of your answers
what format do your answers have
what is GSM8K's format
~read your solutions

# embedded license
= The embedded model, its data and its scripts are under the Apache License 2.0, like Quire.
what is the [license|licence] of the [embedded model|built-in model|weights of quire-abacus]
under which license is [quire-abacus|the embedded model]
may I [use|copy|share|sell] the embedded model
is the embedded model [free|open|open source|open weights]
can I download [you|quire-abacus]
are your weights [free|open|public]
license of quire-abacus
"""

ABOUT = r"""
# what is quire *2
= Quire serves large language models from one native C++20 binary: as a command line, an OpenAI-compatible server and a C++ library.
?quire
what is [quire|this program|this tool|this software|this project]
what does [quire|this program] do
what is [quire|this] good for
why was quire [made|written]
describe quire in [one sentence|a few words|short]
quire in a nutshell
what kind of [program|software|tool] is quire
is quire [an inference engine|a server|a model server|an LLM engine]
what can quire do
what is the purpose of quire
tell me [something|more] about quire
give me an overview of quire
summarize quire
~understand quire

# is quire a model
= No, Quire is the program that runs models. The embedded model is called quire-abacus.
is quire a [model|language model|neural network|LLM|chatbot]
is quire the name of [the model|a model]
what is the difference between quire and quire-abacus
are you quire
is quire an AI
quire vs quire-abacus
does quire mean the model or the program

# why quire
= Quire starts at once, needs no Python, gives the same bits every time on a CPU, and refuses what it cannot do instead of falling back silently.
why should I use quire
what are the [advantages|benefits|strengths|highlights|main features] of quire
what makes quire [special|different|better]
why quire
why not use [vLLM|llama.cpp|SGLang|ollama] instead
is quire better than [vLLM|llama.cpp|SGLang|ollama|TGI]
quire [advantages|benefits|features|pros]
what is [special|new|nice] about quire
compare quire with [vLLM|SGLang|llama.cpp]
quire vs [vLLM|llama.cpp|SGLang]
difference between quire and [vLLM|llama.cpp|SGLang]
reasons to use quire
what does quire do better

# programming language
= Quire is written in C++20 and CUDA.
what language is quire written in
in which [programming language|language] is quire [written|programmed|implemented]
is quire written in [C++|Rust|Python|Go|C]
programming language of quire
which C++ standard does quire use
quire source language
is it [C++|Rust|Python]
what is quire [made|built] with
which language is the code in

# python needed
= No. Quire runs without Python, libtorch or any JIT; Python is only used to develop and test it.
does quire [need|use|require|depend on] [Python|PyTorch|torch|libtorch|a JIT|a virtual environment|conda|pip|Triton]
do I need [Python|PyTorch|torch|pip|conda|to install Python] [to run quire|for quire|]
is [Python|PyTorch|torch|libtorch] [needed|required|necessary]
can quire run without [Python|PyTorch|torch]
python dependency
does quire compile kernels at run time
is [Python|libtorch] a dependency

# license
= Quire is licensed under the Apache License 2.0.
what is the [license|licence] of quire
under which [license|licence] is quire [released|published|available|]
is quire [open source|free|free software|free of charge|proprietary]
may I [use|sell|change|modify] quire [commercially|at work|in my product|]
can I use quire in a [company|commercial product|closed product]
quire [license|licence]
is it [Apache|MIT|GPL] licensed
how much does quire cost
do I have to pay for quire
[license|licensing] terms
is commercial use allowed

# version
= `quire --version` prints it; a running server has it at `GET /version`.
what version [is this|of quire do I have|do I have|of quire is running|is quire]
which version [is installed|am I running|is this|of quire is this]
~[find|see|show|print|check] the [version|quire version]
quire version
version number
~find out which version runs
how new is [this|my] quire
what release is this
get the version of a running server
print version
-v

# platforms
= Quire runs on Linux on x86-64, developed and tested on Debian 12. Other systems are not supported.
which [operating systems|platforms|systems|OS] does quire [support|run on]
does quire run on [Windows|macOS|Mac|WSL|ARM|Apple silicon|FreeBSD|Android|a Raspberry Pi|Linux|Ubuntu|Debian|Fedora|Arch]
%[Windows|macOS|Apple silicon|ARM|aarch64|Raspberry Pi|WSL]
is there a [Windows|Mac|macOS|ARM|Android] [version|build]
~run quire on [Windows|a Mac|macOS|an M2|ARM|a Raspberry Pi]
what [system|machine|OS] do I need
supported [platforms|operating systems|systems|OS]
system requirements
which [Linux|distribution|distro] [does quire need|is supported|should I use]
can I use it on [Windows|my Mac|a MacBook]
quire [windows|macos|arm]

# cpu needed
= Any x86-64 CPU with SSE4; AVX2, AVX-512 and AMX are used if the processor has them.
which [CPU|CPUs|processor|processors] [does quire need|are supported|does quire support|do I need]
does quire use [AVX2|AVX-512|AVX512|AMX|SIMD|SSE4|avx]
%[AVX-512|AVX2|AMX|old processors|AMD processors|Intel processors|SIMD]
what processor do I need
supported CPUs
is AVX2 required
does it work [without AVX|on an old CPU|on AMD CPUs|on Intel CPUs]
CPU requirements
CPU instruction sets
can quire use the AMX unit
minimum cpu

# can it run on a cpu
= `--device cpu` computes on the CPU; without a GPU Quire does so by itself.
can quire run on a CPU
does quire work without a [GPU|graphics card]
do I need a [GPU|graphics card|NVIDIA card|CUDA]
is a [GPU|graphics card] [needed|required|necessary]
^run [on the CPU|without a GPU|without CUDA|CPU only|on a laptop]
cpu only
~use the CPU [instead of the GPU|only|]
~run on the CPU
~force [the CPU|CPU mode]
~turn off the GPU
run without GPU
CPU inference
I have no [GPU|graphics card]

# supported gpus
= One NVIDIA GPU of compute capability 9.0 (Hopper) or 8.x (Ampere, Ada); others are refused by name.
which [GPUs|graphics cards|NVIDIA cards|GPU generations] [does quire support|are supported|work|can I use]
what GPU do I need
does quire [support|run on|work with] [an A100|an H100|an H200|a 4090|an RTX 4090|an RTX 3090|a V100|a T4|an L40|Blackwell|a B200|an RTX 5090|Hopper|Ampere|Ada|Turing]
%[Blackwell|B200|H100|H200|A100|RTX 4090|RTX 3090|V100|T4|Hopper|Ampere]
supported [GPUs|graphics cards]
which compute capability [is needed|does quire need]
GPU requirements
my GPU is [too old|refused|not supported]
is my [GPU|graphics card|card] supported
compute capability
does my [RTX 3090|RTX 4090|A100|H100|GPU] work

# amd gpus
= No. Quire runs on one NVIDIA GPU or on a CPU; GPUs of AMD, Intel and Apple are not supported.
%[AMD GPUs|ROCm|Radeon|Intel GPUs|Arc|Metal|Vulkan|OpenCL|MI300X|TPUs|an NPU|HIP|SYCL]
does quire run on [an AMD GPU|AMD|a Radeon|ROCm|an Intel GPU|Vulkan|TPUs|a TPU|Apple GPUs|the Neural Engine]
can I use my [AMD|Radeon|Intel] [GPU|card|graphics card]
~use [ROCm|Vulkan|an AMD GPU|a Radeon|Metal]
[rocm|vulkan|amd gpu|metal|tpu]
is there a [ROCm|Vulkan|Metal|HIP] backend
I have an AMD graphics card

# several gpus
= Not yet: one device serves a model. Start one server per GPU and choose it with `CUDA_VISIBLE_DEVICES`.
%[several GPUs|multiple GPUs|multi-GPU|two GPUs|tensor parallelism|tensor parallel|pipeline parallelism|data parallelism|NVLink|many GPUs|multi node|NCCL|distributed inference]
can quire use [several|multiple|two|2|four|8] GPUs
~use [two|several|multiple|all my|4|8] GPUs
~split a model over [two|several|multiple] GPUs
~shard a model across GPUs
[multi gpu|tensor parallel|2 gpus|multiple gpus]
-tp 2
does tensor parallelism work
I have [two|four|eight] GPUs
distribute a model over GPUs
run on all GPUs
model is too large for one GPU
quire on more than one GPU
--tensor-parallel-size [2|4|8]

# supported models *2
= Llama 2 and 3.x, Mistral, Qwen2, Qwen2.5, dense Qwen3, Gemma 2 and Gemma 3 (text).
which models [does quire support|are supported|can I run|can quire run|can quire load|work|can I use|can it serve]
what models [does it support|are supported|can I run|work with quire|can I load]
which [model families|architectures|families|kinds of models|LLMs] [are supported|does quire support|can I run]
list of [supported models|models|model families|architectures]
supported [models|architectures|families|model families]
what [architectures|LLMs] can quire [run|load|serve]
is my model supported
model support
which checkpoints [work|can be served]
what can I load
model compatibility
quire models

# llama
= Yes, Quire runs Llama 2, 3, 3.1, 3.2 and 3.3: `quire chat --model DIR`.
%[Llama|Llama 3|Llama 2|Llama 3.1|Llama 3.2|Llama 3.3|Meta Llama|Llama-3.1-8B|Llama 3 8B|Llama 70B|Meta-Llama-3-8B-Instruct|TinyLlama]
can quire run [Llama|Llama 3|Llama 3.1|Llama 2|llama]
~[run|serve|load|use] [Llama 3|Llama 3.1|Llama 2|Llama 3.2 1B|a Llama model|Llama-3.1-8B-Instruct]
does llama work
which llama versions
llama [3|2|3.1] support
llama models

# mistral
= Yes, Quire runs Mistral's dense models: `quire chat --model DIR`.
%[Mistral|Mistral 7B|Mistral-7B-Instruct|Mistral Nemo|mistral models]
can quire run [Mistral|Mistral 7B]
~[run|serve|load|use] [Mistral|Mistral 7B|a Mistral model|Mistral-7B-Instruct]
does mistral work
mistral 7b
is Mistral 7B possible

# qwen
= Yes, Quire runs Qwen2, Qwen2.5 and the dense models of Qwen3: `quire chat --model DIR`.
%[Qwen|Qwen2|Qwen2.5|Qwen3|Qwen2.5-7B-Instruct|Qwen3-8B|Qwen 3|Qwen 2.5 Coder|Alibaba's Qwen]
can quire run [Qwen|Qwen2.5|Qwen3|Qwen 3 8B]
~[run|serve|load|use] [Qwen|Qwen3|Qwen2.5|a Qwen model|Qwen3-8B|Qwen2.5-7B]
does qwen work
which qwen versions
qwen [3|2.5] support
qwen models

# gemma
= Yes, Quire runs Gemma 2, and Gemma 3 for text: `quire chat --model DIR`.
%[Gemma|Gemma 2|Gemma 3|Gemma-3-4b-it|Google's Gemma|gemma-2-9b|Gemma 3 text]
can quire run [Gemma|Gemma 2|Gemma 3]
~[run|serve|load|use] [Gemma|Gemma 3|Gemma 2|a Gemma model|gemma-3-1b-it]
does gemma work
which gemma versions
gemma [2|3] support
gemma models

# other models
= No, that architecture is not supported. Quire runs Llama, Mistral, Qwen2, dense Qwen3, Gemma 2 and Gemma 3.
%[Phi|Phi-3|Phi 4|GPT-2|GPT-J|Falcon|MPT|BLOOM|OPT|StableLM|Command R|Yi-VL|InternLM|Mamba|RWKV|Granite|OLMo|ChatGLM|Baichuan|Gemma 1|Gemma 4|Llama 4|T5|BERT|Jamba|Nemotron|Kimi|GLM-4|MiniMax|StarCoder]
can quire run [Phi|GPT-2|Falcon|Mamba|Llama 4|T5|BERT|Granite|OLMo|Command R|RWKV|MPT]
~[run|serve|load] [Phi-3|GPT-2|Falcon|Mamba|Llama 4|T5|Granite|OLMo]
does [phi|gpt2|falcon|mamba|llama 4|granite|olmo] work
[phi|gpt-2|falcon|mamba|llama 4|t5] model

# moe
= Not yet: mixture-of-experts models are planned, but not served today.
%[mixture of experts|MoE|MoE models|Mixtral|DeepSeek|DeepSeek V3|DeepSeek R1|Qwen3 MoE|Qwen3-30B-A3B|gpt-oss|expert parallelism|sparse models|Mixtral 8x7B]
can quire run [Mixtral|DeepSeek|a MoE|MoE models|DeepSeek R1|gpt-oss|Qwen3-30B-A3B]
~[run|serve|load] [Mixtral|DeepSeek V3|a mixture of experts|gpt-oss|a MoE model]
[moe|mixtral|deepseek|gpt-oss]
does [mixtral|deepseek|gpt-oss] work
when will MoE be supported

# vision
= No. Quire reads text only; images, sound and video in a request are refused with 400.
%[images|vision|vision models|multimodal models|image input|audio|sound|video|LLaVA|Qwen-VL|speech|pictures|Whisper|image generation]
^[read|see|understand] [images|pictures|photos|audio|video]
can I send [an image|images|a picture|audio|a photo|a video]
~send an image
~[use|serve] a [vision|multimodal] model
image_url
does Gemma 3 see images
[vision|multimodal|image input|audio input]
is quire multimodal

# embeddings *1.5
= Yes: `POST /v1/embeddings` of `quire serve`, with an embedding model such as Qwen3-Embedding; other models give 404.
%[embeddings|embedding models|/v1/embeddings|sentence embeddings|Qwen3-Embedding|vectors of texts]
^[compute|make|create] embeddings
~[get|compute|create|make] [embeddings|an embedding|vectors for my texts]
~[serve|run|load] [an embedding model|Qwen3-Embedding|a model for embeddings]
is there an embeddings [endpoint|route|API]
/v1/embeddings [gives 404|]
can I use quire for [RAG embeddings|embeddings|semantic search vectors]
embedding [endpoint|model]
embeddings [route|url|path|please|how]
vector embeddings
client.embeddings.create

# reranking *1.5
= `POST /v1/rerank` orders documents and `POST /v1/score` scores pairs of texts, with a reranker such as Qwen3-Reranker.
%[reranking|rerankers|a reranker|/v1/rerank|/v1/score|Qwen3-Reranker|scoring of pairs|ranking documents]
~[rerank|rank|order|sort] [documents|my documents|passages|search results|texts] [by a query|by relevance|]
~[score|compare|rate] [two texts|a pair of texts|a query and a document|pairs]
~[serve|run|load] [a reranker|Qwen3-Reranker|a cross-encoder]
is there a [rerank|score|scoring|ranking] [endpoint|route|API]
[rerank|score|reranker] [endpoint|route|model|API]
/v1/rerank
/v1/score
/v2/rerank
relevance of [documents|a text] to a query
which document fits a query best
Cohere's rerank
Jina reranker

# classification
= No: classification, pooling and reward models are not served; rerankers are, by `/v1/rerank` and `/v1/score`.
%[classification|pooling|reward models|sequence classification|/pooling|/classify|a classifier]
^classify [texts|mails|sentences]
~[run|serve] a [classifier|reward model|classification model]
sentiment classification
/classify
text classification endpoint
reward model

# gguf *2
= Yes: `quire serve --model FILE.gguf`. A CPU computes with the quantized weights of a GGUF file as they are; a GPU expands them to 16 bits.
%[GGUF|GGUF files|gguf|llama.cpp's files|ggml|.gguf files|Q4_K_M|q8_0]
~[load|run|serve|use|open] a [GGUF|gguf] [file|model]
can quire [load|read|open|run] [GGUF|a gguf file|llama.cpp models|ggml files|my model.gguf]
[gguf|ggml|.gguf|model.gguf]
does GGUF work
I have a GGUF [file|model]
--model model.gguf
convert gguf
are llama.cpp models supported
my model is a gguf file

# quantization *2
= Not yet: quantized weights are refused. Quire serves F32, F16 and BF16 weights; FP8 models are planned.
%[quantization|quantized models|AWQ|GPTQ|int8|int4|4-bit|8-bit weights|FP8 weights|bitsandbytes|NF4|INT8 weights|FP4|NVFP4|fp8 models|8 bit|4 bit models|compressed-tensors]
~quantize [a model|my model|the weights]
~[run|serve|load] [an AWQ|a GPTQ|a quantized|an FP8|a 4-bit] model
can quire [run|load] [AWQ|GPTQ|quantized|FP8|4-bit|int8] models
--quantization [awq|fp8|gptq|]
[awq|gptq|int4|quantization|fp8 weights|bitsandbytes]
load in 4 bit
is there FP8
when will quantized models work
-q

# lora
= No, LoRA adapters are not supported; give a checkpoint with the adapter merged in.
%[LoRA|LoRA adapters|lora|adapters|PEFT|multi-LoRA|QLoRA]
~[load|use|serve] a [LoRA|LoRA adapter|PEFT adapter|lora]
can quire [load|serve|use] [LoRA adapters|a LoRA|adapters]
--enable-lora
--lora-modules
[lora|peft|adapter]
does LoRA work
I have a LoRA adapter
merge adapter

# --speculative-config *1.5
= `quire serve --speculative-config '{"method": "ngram", "num_speculative_tokens": 4}'` drafts tokens without a draft model, on a CPU.
%[speculative decoding|n-gram speculation|speculation|prompt lookup decoding|suffix decoding|drafting]
~[use|turn on|enable|set up] [speculative decoding|speculation|n-gram drafts|prompt lookup]
[speculative decoding|speculation|ngram speculation]
does speculative decoding work
can quire speculate
speculate tokens
several tokens per step
faster decoding when the answer repeats the prompt
the methods ngram and suffix
num_speculative_tokens

# draft models
= On a CPU, `--speculative-config` has the methods draft_model, eagle3, dflash and dspark, each with a `model`, and mtp. Medusa is not supported.
%[draft models|a draft model|EAGLE|Medusa|MTP|multi-token prediction|speculation with a draft model|a drafter]
~use [a draft model|EAGLE|Medusa|a small model as drafter]
[draft model|eagle|medusa|mtp]
can quire [use a drafter|use a draft model|run EAGLE heads]
--speculative-model
--model-draft

# formats
= Safetensors in F32, F16 or BF16, single or sharded, in a Hugging Face folder with `config.json` and a tokenizer.
which [formats|file formats|weight formats|checkpoint formats|model formats] [are supported|does quire read|can quire load|does quire support]
what [format|file format] [must my model have|do the weights need|does a model need|does quire read]
%[safetensors|sharded checkpoints|sharded safetensors|Hugging Face checkpoints|Hugging Face models]
[weight|model|checkpoint|file] formats
which files does a model [folder|directory] need
what must be in the model folder
model folder [contents|layout]
can quire load [safetensors|Hugging Face models|sharded models|HF checkpoints]
does quire read safetensors
layout of a checkpoint

# pytorch bin
= No. Quire reads no pickle files such as `pytorch_model.bin`, because they can run code; convert them to safetensors.
%[pytorch_model.bin|.bin files|.pt files|pickle|pickled weights|.pth files|torch checkpoints|ckpt files]
~load [pytorch_model.bin|a .bin checkpoint|a .pt file|a .pth file|PyTorch weights]
can quire load [.bin|.pt|.pth|pickle|torch] files
my model has only pytorch_model.bin
[pytorch_model.bin|.pth|pickle]
does quire load pickles
ONNX
%[ONNX|TensorRT engines|onnx files]

# dtypes
= Weights run in the checkpoint's type: F32, F16 or BF16. `--dtype` only sets the type of dummy weights.
which [dtypes|data types|types|precisions|number formats] [are supported|does quire support|can weights have]
%[bf16|BF16|FP16|F16|bfloat16|float16|float32|F32|half precision|full precision]
~change the [dtype|precision|type] of the weights
~run [in bf16|in fp16|in float16|in half precision|in fp32]
~convert weights to [bf16|fp16]
in which precision does quire compute
[dtype|precision|data type]
can I cast the weights
what precision are the weights
dtype half
does quire convert weights

# where to get models
= `quire pull NAME` downloads a model from the hub, as `hf download NAME` does; then `quire chat --model NAME`.
where do I get [models|a model|weights|checkpoints]
~download [a model|models|weights|a checkpoint|Llama|from Hugging Face]
^download [models|weights|a model|from Hugging Face|from the hub]
does quire download models
quire pull
what does quire pull do
pull Qwen/Qwen3-0.6B
~[fetch|download|pull|get] [Qwen/Qwen3-0.6B|meta-llama/Llama-3.2-1B|mistralai/Mistral-7B-v0.3|a model by name|weights by name|a checkpoint from the hub]
how do the weights get onto my machine
I have no model yet
I have nothing on my disk so far, what now
which command fetches weights
can it download for me
~pull a model
~get a model from [Hugging Face|the hub|huggingface]
hf download
model download
pull llama3
is there a model zoo
--hf-repo

# revision of a download
= `quire pull NAME@REVISION` downloads another branch, tag or commit of a model.
--revision
--code-revision
pull a certain commit
pull a tag
model at a commit
another branch of the repository
~[pull|download|fetch] [a branch|a tag|a commit|an older version] of a model
~[choose|use] a [revision|certain revision|branch] of a model
which revision of a model is used

# cache of models
= Models lie in the Hugging Face cache: `HF_HUB_CACHE`, or `hub` in `HF_HOME`; `quire pull NAME` stores them there.
--download-dir
~choose the download folder
where are downloads stored
download cache folder
HF_HOME
HF_HUB_CACHE
where does quire pull put the files
where do pulled models go
~[move|find|change] the [model cache|cache of models|folder of pulled models]
hugging face cache
cache directory of models
which folder has the downloaded models
does it use the cache of transformers

# model by name
= Give a name of the Hugging Face cache as the model: `quire serve --model Qwen/Qwen3-0.6B`.
can I give a [Hugging Face name|model name from the hub|hub name|repo id]
quire serve meta-llama/Llama-3.1-8B
use a model by its hub name
do I need the path or is the name enough
is the hub's name enough
name instead of a folder
~use a [hub name|repo id|model name] instead of a [path|folder]
ORG/NAME
must I type the snapshot's long path
model already in my Hugging Face cache
I have the model in ~/.cache/huggingface
~[run|serve|use] a model that transformers has downloaded

# resume a pull
= Run the same `quire pull NAME` again: it goes on where it ended and checks every file's hash.
my download stopped halfway, do I start over
~[resume|continue] a [download|pull]
my connection died during quire pull
pull was interrupted
is a half downloaded model detected
are the files checked after the download
checksum of a download
Ctrl-C during pull

# --max-workers
= `quire pull NAME --max-workers N` is the most files that are downloaded at the same time. Default: 4.
parallel downloads
how many files does pull download at once
~download [more|fewer] files at once
~make quire pull faster
threads of the download
!the number of parallel downloads

# other hub
= `HF_ENDPOINT` names another hub for `quire pull NAME`; `https_proxy` is honoured.
HF_ENDPOINT
~pull from [a mirror|another hub|our own hub|hf-mirror]
--model-url
hub mirror
quire pull behind a company proxy
hugging face is blocked here

# offline
= Quire works offline: it downloads nothing, except with `quire pull NAME`.
does quire [need|use] [the internet|a network|an internet connection]
^[run|work] offline
can I use it [offline|without internet|in an air-gapped network]
does quire [phone home|send telemetry|send data|collect data|track me]
%[offline use|air-gapped machines|telemetry]
is my data sent [anywhere|somewhere|to the cloud]
privacy
[offline|telemetry|air gapped]
does anything leave my machine
is quire a cloud service

# startup time
= On a CPU the first token comes 0.03 s after the command; on a GPU after about 4 s, which measure kernels and capture CUDA graphs.
how [fast|quickly] does quire start
how long does [it take to start|starting take|startup take|the start take]
startup time
why does [it|the start] take 4 seconds on a GPU
time to first token after start
is the start slow
how long until the first token
start-up [time|speed|latency]
cold start
why is the start slower on a GPU

# performance
= See `docs/benchmarks.md`. Measure your own machine with `quire bench throughput --model DIR`.
how fast is quire
is quire [fast|slow|faster than vLLM|faster than llama.cpp|quick]
how many tokens per second [does quire make|can I expect|]
performance of quire
[benchmark results|benchmarks|performance numbers|speed]
quire performance compared with [vLLM|llama.cpp]
how does quire compare in speed
where are the benchmarks
tokens per second
is it faster than [llama.cpp|vLLM|ollama]
show me benchmark numbers

# determinism
= Deterministic: on a CPU, greedy output has the same bits whatever the batch, chunking, page size, prefix hits or threads.
is quire deterministic
are results [reproducible|deterministic|the same every time|repeatable]
%[deterministic output|reproducible output|batch invariance|bitwise reproducibility]
does the batch [change|affect|influence] the output
do I always get the same answer
~get [reproducible results|the same output every time|deterministic output]
does the number of threads change the result
same bits
reproducibility
determinism
batch invariant

# silent fallbacks
= A setting that Quire cannot honour is refused with the reason and a remedy; nothing falls back silently.
does quire fall back silently
what happens with [unsupported|wrong|impossible|invalid] settings
are [wrong|unsupported] flags ignored
what if a flag is not supported
does quire ignore flags
what are silent fallbacks
what happens when I pass an unsupported flag
silent fallback
does it ignore what it cannot do

# docs
= The pages are in `docs/`: install.md, cli.md, serving.md, migration.md, architecture.md and glossary.md; the README links them all.
where is the [documentation|manual|docs|user guide]
is there [documentation|a manual|a handbook|a guide]
~find the [documentation|manual|docs]
documentation
where can I [read more|learn more|find help|find more]
which [documents|pages|docs] are there
[docs|manual|readme|tutorial]
I want to read about quire
link to the docs

# architecture
= `docs/architecture.md` describes it: a scheduler plans steps, a runner executes them on the device, and sampling follows.
what is the architecture of quire
how does quire work [inside|internally|under the hood|]
how is quire [structured|designed|organized] [inside|internally|]
?the architecture
describe the [architecture|design|internals]
internal design
explain the design of quire
how is the code organized
what are the parts of quire
which modules are there

# life of request
= `docs/life-of-a-request.md` follows one request through every file, from HTTP or the command line to the kernel.
?the life of a request
what happens with a request
which [path|way] does a request take
through which [files|functions] does a request go
how is a request processed
~follow a request through the code
way of a token
how does a token come about
where do I start reading the code

# contributing
= Read `docs/contributing.md`; `scripts/test.sh` builds and runs all tests.
~[contribute|contribute to quire|help develop quire|send a patch|make a pull request|add a feature]
can I contribute
where do I start as a contributor
how do I become a contributor
contributing [guide|guidelines|]
pull request
~change the code
developer guide

# security report
= Privately: report it through the security advisories of the repository's host, not in a public issue; see SECURITY.md.
~report a [vulnerability|security problem|security bug|security hole]
I found a [vulnerability|security hole|security bug|exploit]
security [contact|policy|report]
where do I report security issues
is there a security policy
who do I tell about a vulnerability
is quire secure
responsible disclosure

# bugs
= Open an issue in the repository, with the command line, the output and that of `quire doctor`.
~report a [bug|problem|crash|fault]
I found a bug
where can I report [bugs|a problem|issues]
bug report
quire crashed
it [crashes|crashed|segfaults]
what belongs in a bug report
~get support
where can I ask for help

# remote code
= Quire runs no code from a checkpoint: no pickle, no Python and no `--trust-remote-code`.
--trust-remote-code
%[trust_remote_code|--trust-remote-code|remote code|custom modeling code|custom model code]
does quire run code from [a checkpoint|the model|models]
is it safe to load [untrusted models|models from strangers|any model]
can a [model|checkpoint] [hack|attack|harm] my machine
are checkpoints dangerous
trust remote code
custom python model
does my model's Python code run

# next features
= Planned next: several GPUs, FP8 models and mixture-of-experts models.
what is [planned|next|coming|on the roadmap]
what is the roadmap [of quire|]
which features are [planned|coming|missing]
what comes next
what will the next version bring
roadmap
future plans
what is missing in quire
what can quire not do yet

# changelog
= `CHANGELOG.md` lists what users see of each version.
where is the changelog
what has changed
what is new [in this version|in quire|]
release notes
changelog
~see what changed
list of changes
history of versions

# glossary
= `docs/glossary.md` defines the terms that the code uses.
is there a glossary
where are the terms defined
glossary
what do the [terms|words] in the docs mean
list of terms
terminology
~look up a term
definitions

# gated training
= No. Quire serves models; it does not train or fine-tune them.
%[training|fine-tuning|finetuning|RLHF|backward passes|gradient computation|distillation]
~[fine-tune|finetune|train] [a model|my model|Llama]
can quire [train|fine-tune|finetune] [models|a model|Llama]
[training|fine-tuning|finetune]
is quire for training
does quire do fine-tuning
I want to train my own model

# tokenizers
= From `tokenizer.json`: byte-level BPE, SentencePiece-style BPE and Unigram; `tokenizer.model` is read too.
which tokenizers [are supported|does quire support|work]
%[SentencePiece|BPE|byte-level BPE|Unigram|tokenizer.json|tokenizer.model|Hugging Face tokenizers]
supported tokenizers
which tokenizer files does quire read
can quire read [tokenizer.model|tokenizer.json|SentencePiece models]
tokenizer support
[sentencepiece|bpe|unigram]
does it use Hugging Face tokenizers
tokenizer format

# rope scaling
= Quire applies the rope scalings `llama3`, `linear`, `dynamic` and `yarn` from the model's config.json.
which rope [scalings|scaling types|types] are supported
%[rope scaling|yarn|YaRN|dynamic NTK|linear rope scaling|llama3 rope scaling|long context rope|longrope]
~use [YaRN|rope scaling|yarn]
rope scaling
[yarn|rope_scaling|ntk]
does quire apply yarn
how is rope scaling configured
rope support

# attention variants
= MHA, GQA and MQA, with sliding windows, soft caps and sinks.
which [attention variants|kinds of attention|attention types|attention features] are supported
%[GQA|MQA|sliding window attention|attention sinks|soft cap|grouped query attention|multi-head attention|sliding windows|logit soft capping]
attention features
[gqa|mqa|sliding window|attention sinks]
does quire do [GQA|sliding window attention|attention sinks]
is grouped-query attention supported

# mla
= No: multi-head latent attention and linear or state-space layers are not supported.
%[MLA|multi-head latent attention|linear attention|state space models|SSM layers|hybrid models|gated delta net]
does quire do [MLA|linear attention|state space models]
[mla|ssm|linear attention]
is MLA implemented
does multi-head latent attention work

# cpp library *1
= Call `quire::Engine::create({.model = "DIR"})` and `submit`; examples/stream.cc is a complete program.
~[use|embed|call|link] quire [from C++|as a library|in my program|in my C++ program|as a C++ library]
%[a C++ library|a C++ API|embedding in C++|a library]
is there a [C++|library] API
is quire a library
C++ [api|example|library]
~generate text from C++
where is a C++ example
quire::Engine
how do I write a C++ program that uses quire
library interface

# find_package
= After `cmake --install build --prefix PREFIX`, `find_package(Quire)` finds it; give CMake `-DCMAKE_PREFIX_PATH=PREFIX`.
~[link against quire|find quire in CMake|use quire with CMake|build the example|build examples/stream.cc]
find_package(Quire)
cmake find package
could not find a package configuration file provided by Quire
~add quire to my CMake project
CMAKE_PREFIX_PATH
which CMake package
~link my program to quire
cmake integration

# python binding
= There is no Python binding. Use the server through the openai package, or the C++ library.
%[Python bindings|a Python API|a Python client|Rust bindings|Java bindings|Go bindings|a Node package|C bindings]
~use quire from [Python|Rust|Go|Java|JavaScript|Node] without a server
is there a [Python|Rust|Java|Go] [binding|package|API|library]
import quire
from quire import LLM
python [api|binding]
can I import quire in Python
%an equivalent of vLLM's LLM class

# repository layout
= Sources are in `src/`, headers in `include/`, tests in `tests/`, scripts in `scripts/`, pages in `docs/`.
where is the source code
what is in the repository
which folders does the repository have
where are the [tests|scripts|sources|headers]
repository layout
folder structure of the project
source tree
~find the sources
where do I find the code

# kv cache what
= The KV cache holds keys and values of past tokens in pages of 16, 32 or 64 tokens, so nothing is computed twice.
?[the KV cache|a KV cache|KV caching|the paged KV cache|paged attention|PagedAttention|a KV page|the key-value cache]
what is the KV cache for
how does the KV cache work
why is there a KV cache
is the KV cache paged
paged kv cache
kv pages

# continuous batching
= Continuous batching: requests join and leave the running batch at every step, so none waits for others to end.
?[continuous batching|in-flight batching|dynamic batching]
%[continuous batching|dynamic batching|batching|in-flight batching]
does quire batch requests
how are requests batched
how does batching work
are requests processed [in parallel|together|at the same time|one after another]
can it serve several users at once
concurrent requests
does it handle many [users|requests] at the same time

# chunked prefill
= Chunked prefill splits long prompts over several steps so that others keep generating. It is on by default.
?[chunked prefill|prefill chunking|chunking]
%[chunked prefill|splitting of long prompts]
is chunked prefill on
--enable-chunked-prefill
how are long prompts handled
why are prompts computed in chunks
chunked prefill default
do long prompts block others

# preemption
= When the KV cache is full, the latest sequences lose their pages and are recomputed later; no output is lost.
?[preemption|a preemption]
what happens when the KV cache is full
what if the [KV cache|cache] runs [full|out of space]
are requests preempted
why are sequences recomputed
does quire swap to CPU memory
--swap-space
--cpu-offload-gb
preemption
vllm:num_preemptions_total grows

# prefix caching
= Prompts that begin alike share cached pages. Prefix caching is on; `--no-enable-prefix-caching` turns it off.
?[prefix caching|the prefix cache|automatic prefix caching|prompt caching|a prefix hit|RadixAttention|APC]
%[prefix caching|prompt caching|automatic prefix caching|prefix reuse|prefix sharing]
--enable-prefix-caching
~[turn on|enable|use|activate] [prefix caching|the prefix cache|prompt caching]
~turn off [prefix caching|the prefix cache]
is prefix caching [on|enabled|the default]
are shared prompts cached
does quire cache prompts
prefix cache
does it reuse the system prompt

# cache salt
= Requests share cached prefixes only with requests of the same `cache_salt`. API keys never share prefixes.
?[cache_salt|the cache salt|a cache salt|prefix cache isolation]
~[isolate|separate] the prefix cache [of users|between users|per user]
what does cache_salt do
can users see each other's cached prompts
is the prefix cache shared between [users|keys|API keys]
cache_salt
timing attacks on the prefix cache
cache isolation

# prefill decode
= Prefill computes the tokens of a prompt; decode then generates one token per sequence and step.
?[prefill|decode|prefill and decode|the decode phase|the prefill phase]
what is the difference between prefill and decode
which phases does a request have
prefill vs decode
what does prefill do
what happens in decode

# step
= A step is one run of the model over a batch that the scheduler planned.
?[a step|an engine step|a scheduler step|one step]
what is a step in quire
what is meant by a step
what happens in a step
engine step
one step of the engine

# sequence
= A request has `n` samples; each sample is one sequence.
?[a sequence|sequences]
what is the difference between a request and a sequence
what is a sequence in quire
request vs sequence
sequence meaning

# greedy
= Greedy decoding always takes the most likely token: set `--temperature 0`.
?[greedy decoding|greedy sampling|greedy output]
~[decode greedily|sample greedily|use greedy decoding|get greedy output|always take the most likely token|turn off randomness]
greedy
temperature 0
~make the output not random
no sampling
argmax decoding
deterministic sampling

# beam search
= No, beam search is not supported; use `n` above 1 for several samples.
%[beam search|beams|use_beam_search|length_penalty|best_of]
~use beam search
does quire have beam search
beam search
num_beams
best of n
can I use best_of

# logits processors
= No: custom logits processors are refused. Use `logit_bias`, `bad_words`, `allowed_token_ids` or structured output.
%[logits processors|custom logits processors|logits_processors|custom samplers|plugins|prompt_embeds|plug-ins]
~write a [logits processor|plugin|custom sampler]
logits_processors
can I add my own sampler
custom sampling code
does quire have plugins
prompt embeddings as input
"""

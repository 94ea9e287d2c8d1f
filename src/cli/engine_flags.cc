#include "cli/engine_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "attn/selection.h"
#include "base/ascii.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/output.h"
#include "engine/contradictions.h"
#include "engine/speculation.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/cache/named_models.h"
#include "platform/platform.h"

namespace quire::cli {
namespace {

// vLLM's names of data types.
const FlagSet::Synonyms& dtype_synonyms() {
  static const FlagSet::Synonyms kSynonyms = {
      {"float32", "f32"},   {"float", "f32"},    {"float16", "f16"}, {"half", "f16"},
      {"bfloat16", "bf16"}, {"fp8_e4m3", "fp8"}, {"i8", "int8"}};
  return kSynonyms;
}

std::vector<std::string> built_backends() {
  std::vector<std::string> names = {"auto"};
  for (const BackendName& backend : backend_names()) {
    if (is_built_for(backend.device)) names.emplace_back(backend.name);
  }
  return names;
}

void add_backend(FlagSet& flags, std::string name, std::string* target, std::string help) {
  const auto parse = [built = built_backends()](std::string_view text) -> Result<std::string> {
    if (std::ranges::find(built, text) != built.end()) return std::string(text);
    const bool is_absent = std::ranges::any_of(
        backend_names(), [&](const BackendName& backend) { return backend.name == text; });
    return unexpected(text, fmt::format("one of {}{}", fmt::join(built, ", "),
                                        is_absent ? fmt::format(": {} needs a GPU, and this build "
                                                                "has no CUDA",
                                                                text)
                                                  : ""));
  };
  flags.value(std::move(name), "NAME", target, *target, std::move(help), parse);
  flags.last().choices = built_backends();
}

// 0, or at least 2: one token of prompt and one of output.
void add_max_model_len(FlagSet& flags, int* target) {
  const auto parse = [](std::string_view text) -> Result<int64_t> {
    if (text == "auto" || text == "-1") return 0;  // vLLM's spellings
    if (text == "1")
      return unexpected(text, "0 or at least 2: a token of prompt and one of output");
    return parse_count(text, {.min = 0, .max = 1 << 24});
  };
  flags.value("--max-model-len", "N", target, std::to_string(*target),
              "Most tokens of prompt and output, such as 8192 or 8K; 0: the model's own", parse);
}

void add_block_size(FlagSet& flags, int* target) {
  const auto parse = [](std::string_view text) -> Result<int> {
    for (const int size : {16, 32, 64}) {
      if (text == std::to_string(size)) return size;
    }
    return unexpected(text, "16, 32 or 64");
  };
  flags.value("--block-size", "16|32|64", target, std::to_string(*target),
              "Tokens per page of the KV cache", parse);
  flags.last().alias = "--page-size";
  flags.last().choices = {"16", "32", "64"};
}

void add_kv_cache_dtype(FlagSet& flags, EngineConfig* config) {
  flags.choice("--kv-cache-dtype", {"auto", "f32", "f16", "bf16", "fp8", "int8"},
               &config->kv_cache_dtype, "Type of the KV cache; int8 is for a CPU", dtype_synonyms(),
               {{"q8_0", "q8_0 is int8 here, on a CPU; a GPU has fp8"},
                {"q4_0", "the smallest are int8 on a CPU and fp8"},
                {"fp8_e5m2", "fp8 is E4M3 here"}});
}

void add_model(FlagSet& flags, EngineConfig* config) {
  flags.directory(
      "--model", &config->model,
      "A Hugging Face directory, a GGUF file, the name of a pulled model (see quire list), or "
      "embedded, the model in the binary");
}

void add_device(FlagSet& flags, EngineConfig* config) {
  flags.choice("--device", {"auto", "cpu", "cuda"}, &config->device, "Where to compute");
}

void add_cpu_flags(FlagSet& flags, EngineConfig* config) {
  flags.choice("--cpu-cores", {"performance", "all"}, &config->cpu_cores,
               "Cores of a CPU to use; all: efficiency cores too");
  flags.choice(
      "--cpu-pinning", {"auto", "on", "off"}, &config->cpu_pinning,
      "Bind each thread to a core of a CPU; auto: if all cores have a thread, the kernel could "
      "place two of them badly, and no quota limits them");
  flags.choice(
      "--cpu-activations", {"f32", "bf16", "int8"}, &config->cpu_activations,
      "Inputs of products on a CPU; faster are bf16 with BF16 weights, which needs AVX-512 "
      "BF16, and int8 with quantized weights");
}

void add_load_format(FlagSet& flags, EngineConfig* config) {
  flags.choice("--load-format", {"auto", "dummy"}, &config->load_format,
               "dummy: random weights of the config's shape");
}

// Methods of other engines: those of checkpoints that are quantized, and one that they apply at the
// start.
FlagSet::Synonyms quantization_remedies() {
  FlagSet::Synonyms remedies = {
      {"bitsandbytes",
       "it is not supported; fp8 quantizes at the start, and quire quantize writes "
       "a copy in 4 bits"}};
  for (const char* method :
       {"awq", "awq_marlin", "gptq", "gptq_marlin", "marlin", "auto-round", "compressed-tensors",
        "w4a16", "w8a8_int8", "w8a8_fp8", "modelopt", "fbgemm_fp8", "gguf"}) {
    remedies.emplace_back(method,
                          "a quantized checkpoint says itself what it is; leave the flag out");
  }
  return remedies;
}

void add_quantization(FlagSet& flags, EngineConfig* config) {
  flags.choice(
      "--quantization", {"none", "fp8"}, &config->quantization,
      "fp8: quantize the layers' matrices when they are loaded, with a scale per row; on a CPU, or "
      "on a GPU of compute capability 9.0",
      {}, quantization_remedies());
  flags.last().alias = "-q";
}

void add_model_flags(FlagSet& flags, EngineConfig* config) {
  flags.begin_group("Model");
  add_model(flags, config);
  flags.directory("--tokenizer", &config->tokenizer,
                  "A directory or name with another tokenizer; without it, the model's");
  add_load_format(flags, config);
  flags.choice("--dtype", {"auto", "f32", "f16", "bf16"}, &config->dtype, "Type of dummy weights",
               dtype_synonyms());
  add_quantization(flags, config);
  add_max_model_len(flags, &config->max_model_len);
  flags.toggle("--allow-long-max-model-len", &config->allow_long_max_model_len,
               "Let --max-model-len exceed the model's context");
}

void add_cache_flags(FlagSet& flags, EngineConfig* config) {
  flags.begin_group("Scheduler and KV cache");
  flags.number("--max-num-seqs", &config->max_num_seqs, {.min = 0, .max = 65535},
               "Most sequences in one step; 0: 64 on a CPU, 256 on a GPU");
  flags.number("--max-num-rule-seqs", &config->max_num_rule_seqs, {.min = 0, .max = 65535},
               "Most sequences with penalties, biases, bans or min_tokens; 0: all on a CPU, 256 on "
               "a GPU");
  flags.count("--max-num-batched-tokens", &config->max_num_batched_tokens,
              {.min = 0, .max = 1 << 20},
              "Most tokens in one step; 0: 512 on a CPU, 8192 on a GPU");
  add_block_size(flags, &config->block_size);
  add_kv_cache_dtype(flags, config);
  flags.toggle("--calculate-kv-scales", &config->calculate_kv_scales,
               "With fp8: scales of keys and values from a probe, where the checkpoint has none");
  flags.bytes("--kv-cache-memory", &config->kv_cache_memory,
              "Size of the KV cache, such as 512M or 4G; without it, a quarter of the free memory "
              "of a CPU, which is taken as it is used, or the rest of a GPU's share");
  flags.last().alias = "--kv-cache-memory-bytes";
  flags.on_by_default("enable-prefix-caching", &config->enable_prefix_caching,
                      "Recompute prefixes that prompts share, for each request");
  flags.on_by_default("enable-chunked-prefill", &config->enable_chunked_prefill,
                      "Compute each prompt in one step");
}

// A wrong value ends the command before the model is read.
Result<std::string> parse_speculative_config(std::string_view text) {
  if (text.empty()) return unexpected(text, "a JSON object, or no such flag");
  QUIRE_RETURN_IF_ERROR(read_speculation(text).status());
  return std::string(text);
}

void add_speculative_config(FlagSet& flags, std::string* target) {
  flags.value("--speculative-config", "JSON", target, "",
              "Speculative decoding with vLLM's keys, such as "
              "'{\"method\": \"ngram\", \"num_speculative_tokens\": 4}'; methods: ngram, suffix, "
              "draft_model, eagle3, mtp, dflash, dspark",
              parse_speculative_config);
}

void add_device_flags(FlagSet& flags, EngineConfig* config) {
  flags.begin_group("Device");
  add_device(flags, config);
  flags.number("--threads", &config->num_threads, {.min = 0, .max = 1024},
               "Threads of a CPU; 0: one per physical core, or as quire tune measured");
  flags.last().field = "num_threads";
  add_cpu_flags(flags, config);
  flags.directory(
      "--packed-weights", &config->packed_weights,
      "Keep the weights as a CPU's kernels read them in a file of this directory, as large as the "
      "model, which the next start maps; auto: in the user's cache directory, for models of at "
      "least 256 MiB; off: pack them at each start");
  flags.number("--tensor-parallel-size", &config->tensor_parallel_size, {.min = 1, .max = 64},
               "Devices that share the model, of all nodes together; on a CPU, groups of its "
               "threads");
  flags.last().alias = "-tp";
  flags.number(
      "--data-parallel-size", &config->data_parallel_size, {.min = 1, .max = 64},
      "Replicas of the model, each on --tensor-parallel-size devices of its own, behind one "
      "queue; on a CPU, on a part of its threads");
  flags.last().alias = "-dp";
  add_backend(
      flags, "--attention-backend", &config->attention_backend,
      "Force one attention backend (quire doctor lists them); a phase that it cannot serve is "
      "left to auto, and the log says so");
  add_backend(flags, "--prefill-attention-backend", &config->prefill_attention_backend,
              "Force one attention backend for prefill, or do not start");
  add_backend(flags, "--decode-attention-backend", &config->decode_attention_backend,
              "Force one attention backend for decode, or do not start");
  flags.file(
      "--tuning-table", &config->tuning_table,
      "Select backends by this table: a file of quire tune, builtin (the build's for this "
      "GPU) or measured (at start, kept in the user's cache directory); without it, "
      "builtin, or measured on a GPU that the build has no table for; on a CPU builtin ignores "
      "the threads that quire tune measured");
  add_speculative_config(flags, &config->speculative_config);
  flags.number("--gpu-memory-utilization", &config->gpu_memory_utilization,
               {.min = 0, .max = 1, .min_excluded = true},
               "Share of a GPU's memory to use; without effect on a CPU");
  flags.toggle("--enforce-eager", &config->enforce_eager,
               "No CUDA graphs; without effect on a CPU");
}

// Where the ranks are, and how they find each other.
void add_node_flags(FlagSet& flags, EngineConfig* config) {
  flags.begin_group("Several machines");
  const auto parse_nodes = [](std::string_view text) -> Result<int> {
    if (text == "auto") return 0;
    const Result<int64_t> number = parse_integer(text, {.min = 1, .max = 64});
    if (!number.ok()) return unexpected(text, "auto or an integer in [1, 64]");
    return static_cast<int>(*number);
  };
  flags.value("--nnodes", "N", &config->nnodes, "1",
              "Processes that share the ranks of --tensor-parallel-size, usually one per machine; "
              "auto: as Slurm, Open MPI, PMI, a LeaderWorkerSet or torchrun says",
              parse_nodes);
  flags.number("--node-rank", &config->node_rank, {.min = -1, .max = 63},
               "Number of this process, from 0, which serves; the others only compute; -1: as the "
               "launcher says");
  flags.text(
      "--master-addr", "HOST", &config->master_addr,
      "Name or address of node 0's machine; without it, MASTER_ADDR or as the launcher says");
  flags.number("--master-port", &config->master_port, {.min = 0, .max = 65535},
               "Port at which node 0 waits for the others; 0: MASTER_PORT, or 29501");
  flags.number("--rank-timeout", &config->rank_timeout, {.min = 1, .max = 3600},
               "Seconds without a sign of life or progress of a rank after which all end");
}

// "Qwen/Qwen3-0.6B", also with @REVISION. The organization has a letter, unlike the text "3/4".
bool is_full_model_name(std::string_view word) {
  const auto is_letter = [](char c) { return is_alphanumeric(c) && !is_digit(c); };
  const std::string_view organization = word.substr(0, word.find('/'));
  return organization.size() < word.size() && hub::parse_model_name(word) &&
         std::ranges::any_of(organization, is_letter);
}

// Warns of settings that are valid but probably not what the user wants.
void warn_of(const EngineConfig& config) {
  const int num_cores = num_usable_cores();
  if (config.num_threads > num_cores) {
    log_warning(
        "[cli] --threads {} is more than the {} usable cores; expected at most that many, because "
        "threads would wait for each other",
        config.num_threads, num_cores);
  }
  if (config.device == "cuda" || (config.device != "cpu" && cuda_status().ok())) {
    if (config.cpu_activations != EngineConfig().cpu_activations) {
      log_warning("[cli] --cpu-activations has no effect on a GPU");
    }
    if (config.packed_weights != "auto" && config.packed_weights != "off") {
      log_warning("[cli] --packed-weights has no effect on a GPU");
    }
    return;
  }
  if (config.tuning_table == "measured") {
    log_warning(
        "[cli] --tuning-table measured has no effect on a CPU: quire tune measures threads");
  }
  if (config.enforce_eager) log_warning("[cli] --enforce-eager has no effect on a CPU");
  if (config.gpu_memory_utilization != EngineConfig().gpu_memory_utilization) {
    log_warning("[cli] --gpu-memory-utilization has no effect on a CPU");
  }
}

LoadProgress show_layers(Progress& progress) {
  return [&](int num_done, int num_layers) {
    progress.update(static_cast<size_t>(num_done), static_cast<size_t>(num_layers),
                    [] { return "layers"; });
  };
}

}  // namespace

void add_tuned_cpu_flags(FlagSet& flags, EngineConfig* config) {
  add_device(flags, config);
  add_load_format(flags, config);
  add_quantization(flags, config);
  add_cpu_flags(flags, config);
}

void add_attention_flags(FlagSet& flags, EngineConfig* config) {
  add_model(flags, config);
  flags.choice("--dtype", {"auto", "f16", "bf16"}, &config->dtype,
               "Type of queries; auto: the model's", dtype_synonyms());
  add_block_size(flags, &config->block_size);
  add_kv_cache_dtype(flags, config);
}

bool names_model(std::string_view word) {
  for (const std::string_view start : {"/", "./", "../", "~/"}) {
    if (word.starts_with(start)) return true;
  }
  std::error_code error;
  return word.ends_with(".gguf") || is_full_model_name(word) || word == hub::kEmbeddedModel ||
         hub::find_named_model(word) != nullptr || !hub::local_model_file(word).empty() ||
         std::filesystem::exists(word, error);
}

DefaultModel default_model() {
  const std::filesystem::path file = hub::local_model_file(hub::kDefaultModel);
  if (file.empty()) {
    return {"",
            fmt::format("no model is named: using the embedded one, which solves word problems; "
                        "quire pull {} downloads one that chats",
                        hub::kDefaultModel)};
  }
  return {file.string(), fmt::format("no model is named: using {} of {}; --model {} is the one in "
                                     "the binary",
                                     hub::kDefaultModel, file.parent_path().parent_path().string(),
                                     hub::kEmbeddedModel)};
}

Status set_model(std::string_view word, EngineConfig* config) {
  if (!config->model.empty() && config->model != word) {
    return invalid_argument(
        fmt::format("expected one model, got {} and --model {}", clipped(word), config->model));
  }
  config->model = word;
  return {};
}

Positional model_argument(EngineConfig* config) {
  return {.name = "MODEL",
          .help = "The model, as --model MODEL",
          .kind = ValueKind::kDirectory,
          .set = [config](std::string_view word) { return set_model(word, config); }};
}

void add_chat_flags(FlagSet& flags, EngineConfig* config) {
  flags.file("--chat-template", &config->chat_template,
             "Chat template (Jinja); without it, the model's own");
  flags.toggle("--allow-special-tokens-in-messages", &config->allow_special_tokens_in_messages,
               "Take control tokens such as <|im_end|> from messages; without it, only from the "
               "template");
}

void add_generation_config(FlagSet& flags, EngineConfig* config) {
  const auto parse = [](std::string_view text) -> Result<std::string> {
    if (text == "auto" || text == "vllm") return std::string(text);
    return unexpected(text,
                      "auto or vllm; another generation_config.json is read only from the model's "
                      "directory");
  };
  flags.value("--generation-config", "auto|vllm", &config->generation_config, "auto",
              "Sampling defaults; auto: the model's generation_config.json or general.sampling.* "
              "metadata, else temperature 0.8, top_k 40, top_p 0.95 and min_p 0.05 for chats and a "
              "server's texts; vllm: temperature 1 and no filters",
              parse);
  flags.last().choices = {"auto", "vllm"};
}

void add_engine_flags(FlagSet& flags, EngineConfig* config, SeedFlag seed) {
  add_model_flags(flags, config);
  if (seed == SeedFlag::kOfEngine) {
    flags.seed("--seed", &config->seed, "Makes sampling reproducible");
  }
  add_cache_flags(flags, config);
  add_device_flags(flags, config);
  add_node_flags(flags, config);
  flags.add_check([config](Complaints& complaints) {
    for (const Status& error : find_contradictions(*config)) complaints.add(error);
  });
}

EngineConfig with_dummy_weights_of_config(EngineConfig config) {
  std::error_code error;
  const std::filesystem::path path = config.model;
  if (path.extension() == ".json" && std::filesystem::is_regular_file(path, error)) {
    config.load_format = "dummy";
  }
  return config;
}

Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config) {
  warn_of(config);
  Progress progress("loading");
  return Engine::create(config, show_layers(progress));
}

Status run_engine_node(const EngineConfig& config, const std::function<bool()>& should_stop) {
  warn_of(config);
  Progress progress("loading");
  return Engine::run_node(config, should_stop, show_layers(progress));
}

Status check_chat_template(const Engine& engine, const std::string& system) {
  if (engine.model_info().embedding_size > 0) {
    return invalid_argument(fmt::format(
        "[chat] {} embeds texts and does not generate; use quire serve and POST /v1/embeddings",
        engine.model_info().name));
  }
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", "hello"});
  const Status status = engine.render_chat(messages).status();
  if (status.ok()) return status;
  std::string_view reason = status.message();
  if (reason.starts_with('[')) reason.remove_prefix(reason.find("] ") + 2);
  return {status.code(),
          fmt::format("[chat] {}: {}; quire generate without --chat takes plain prompts",
                      engine.model_info().name, reason)};
}

std::string engine_message(const Status& error) {
  EngineConfig config;
  FlagSet flags;
  add_engine_flags(flags, &config, SeedFlag::kOfEngine);
  add_chat_flags(flags, &config);
  add_generation_config(flags, &config);
  return flags.name_flags(error.message());
}

}  // namespace quire::cli

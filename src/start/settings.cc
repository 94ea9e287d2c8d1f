#include "start/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "attn/backend.h"
#include "base/check.h"
#include "base/text.h"
#include "engine/replica_choice.h"
#include "model/config.h"
#include "start/embedded.h"
#include "start/kv_event_sources.h"
#include "start/speculation.h"

namespace quire {
namespace {

using C = EngineConfig;
using Words = std::span<const SettingWord>;

constexpr std::string_view kModel = "Model";
constexpr std::string_view kCache = "Scheduler and KV cache";
constexpr std::string_view kDevice = "Device";
constexpr std::string_view kMachines = "Several machines";

// Sequences are a dimension of kernels' grids, which is limited to this size.
constexpr int kMaxNumSeqs = 65535;
constexpr int kMaxRanks = 64;

// ---- Words. Those with a meaning are vLLM's spellings.

constexpr auto kLoadFormats = std::to_array<SettingWord>({{"auto"}, {"dummy"}});
constexpr auto kWeightTypes = std::to_array<SettingWord>({{"auto"},
                                                          {"f32"},
                                                          {"f16"},
                                                          {"bf16"},
                                                          {"float32", "f32"},
                                                          {"float", "f32"},
                                                          {"float16", "f16"},
                                                          {"half", "f16"},
                                                          {"bfloat16", "bf16"}});
constexpr auto kCacheTypes =
    std::to_array<SettingWord>({{"auto"},
                                {"f32"},
                                {"f16"},
                                {"bf16"},
                                {"fp8"},
                                {"int8"},
                                {"float32", "f32"},
                                {"float", "f32"},
                                {"float16", "f16"},
                                {"half", "f16"},
                                {"bfloat16", "bf16"},
                                {"fp8_e4m3", "fp8"},
                                {"i8", "int8"},
                                {"q8_0", {}, "q8_0 is int8 here, on a CPU; a GPU has fp8"},
                                {"q4_0", {}, "the smallest are int8 on a CPU and fp8"},
                                {"fp8_e5m2", {}, "fp8 is E4M3 here"}});
// The methods of quantized checkpoints.
constexpr std::string_view kOfCheckpoint =
    "a quantized checkpoint says itself what it is; leave the flag out";
constexpr auto kQuantizations =
    std::to_array<SettingWord>({{"none"},
                                {"fp8"},
                                {"bitsandbytes",
                                 {},
                                 "it is not supported; fp8 quantizes at the start, and quire "
                                 "quantize writes a copy in 4 bits"},
                                {"awq", {}, kOfCheckpoint},
                                {"awq_marlin", {}, kOfCheckpoint},
                                {"gptq", {}, kOfCheckpoint},
                                {"gptq_marlin", {}, kOfCheckpoint},
                                {"marlin", {}, kOfCheckpoint},
                                {"auto-round", {}, kOfCheckpoint},
                                {"compressed-tensors", {}, kOfCheckpoint},
                                {"w4a16", {}, kOfCheckpoint},
                                {"w8a8_int8", {}, kOfCheckpoint},
                                {"w8a8_fp8", {}, kOfCheckpoint},
                                {"modelopt", {}, kOfCheckpoint},
                                {"fbgemm_fp8", {}, kOfCheckpoint},
                                {"gguf", {}, kOfCheckpoint}});
constexpr auto kGenerationConfigs = std::to_array<SettingWord>(
    {{"auto"},
     {"vllm"},
     {"*", {}, "another generation_config.json is read only from the model's directory"}});
constexpr auto kModelLengths =
    std::to_array<SettingWord>({{"auto", "0"},
                                {"-1", "0"},
                                {"1", {}, "0 or at least 2: a token of prompt and one of output"}});
constexpr auto kBlockSizes = std::to_array<SettingWord>({{"16"}, {"32"}, {"64"}});
constexpr auto kDevices = std::to_array<SettingWord>({{"auto"}, {"cpu"}, {"cuda"}});
constexpr auto kCores = std::to_array<SettingWord>({{"performance"}, {"all"}});
constexpr auto kPinnings = std::to_array<SettingWord>({{"auto"}, {"on"}, {"off"}});
constexpr auto kActivations = std::to_array<SettingWord>({{"f32"}, {"bf16"}, {"int8"}});
constexpr auto kNodeCounts = std::to_array<SettingWord>({{"auto", "0"}});

// ---- Checks of texts and conflicts

Status check_speculation(std::string_view text) {
  return read_speculation(text).status();
}

Status check_kv_events(std::string_view text) {
  return read_kv_events_config(text).status();
}

// The embedded model has its own tokenizer.
Status check_tokenizer(const EngineConfig& config) {
  if (config.tokenizer.empty() || !is_embedded(config.model)) return {};
  return invalid_argument(
      fmt::format("[tokenizer] tokenizer: must be empty, because `model` is {}: the embedded model "
                  "has its own tokenizer",
                  config.model.empty() ? "empty" : config.model));
}

Status check_cache_type(const EngineConfig& config) {
  return config.device == "cuda" ? refuse_cpu_cache(config) : Status();
}

// Scales of keys and values are calculated for an FP8 cache alone.
Status check_calculated_scales(const EngineConfig& config) {
  if (!config.calculate_kv_scales || forced_kv_dtype(config) == DType::kF8E4M3) return {};
  return invalid_argument(
      fmt::format("[engine] calculate_kv_scales: got true with `kv_cache_dtype` {}, expected fp8; "
                  "set `kv_cache_dtype` to fp8, or leave `calculate_kv_scales` out",
                  config.kv_cache_dtype));
}

// FP8 matrices are no integers, and a checkpoint of integers is not quantized again.
Status check_activations(const EngineConfig& config) {
  if (!quantizes_at_load(config) || config.cpu_activations != "int8") return {};
  return invalid_argument(
      "[engine] cpu_activations: got int8 with `quantization` fp8, whose matrices are no integers, "
      "expected f32 or bf16");
}

Status check_chunks(const EngineConfig& config) {
  if (config.enable_chunked_prefill || config.long_prefill_token_threshold == 0) return {};
  return invalid_argument(
      fmt::format("[engine] long_prefill_token_threshold: got {} with `enable_chunked_prefill` "
                  "false, which computes each prompt in one step; leave out one of them",
                  config.long_prefill_token_threshold));
}

Status check_replicas(const EngineConfig& config) {
  if (config.data_parallel_size == 1 || config.nnodes <= 1) return {};
  return unimplemented(fmt::format(
      "[engine] data_parallel_size: got {} on {} nodes, expected 1: the replicas of an "
      "engine are on one machine; start an engine per group of machines, behind a router",
      config.data_parallel_size, config.nnodes));
}

Status check_backends(const EngineConfig& config) {
  if (config.device != "cpu") return {};
  return refuse_gpu_backends(config, invalid_argument("`device` is cpu"));
}

Status check_drafts(const EngineConfig& config) {
  const Result<Speculation> speculation = read_speculation(config.speculative_config);
  if (!speculation.ok()) return {};  // check_text says why
  if (config.max_num_batched_tokens > 0) {
    QUIRE_RETURN_IF_ERROR(
        check_step_tokens(config.max_num_batched_tokens, speculation->num_drafts));
  }
  return config.device == "cuda" ? refuse_unpadded_drafts(*speculation) : Status();
}

// ---- The table

constexpr auto kSettings = std::to_array<Setting>({
    {.name = "model",
     .member = &C::model,
     .help = "A Hugging Face directory, a GGUF file, the name of a pulled model (see quire list), "
             "or embedded, the model in the binary",
     .group = kModel,
     .notation = Notation::kDirectory},
    {.name = "tokenizer",
     .member = &C::tokenizer,
     .help = "A directory or name with another tokenizer; without it, the model's",
     .group = kModel,
     .notation = Notation::kDirectory,
     .check_conflict = check_tokenizer},
    {.name = "chat_template",
     .member = &C::chat_template,
     .help = "Chat template (Jinja); without it, the model's own",
     .notation = Notation::kFile},
    {.name = "allow_special_tokens_in_messages",
     .member = &C::allow_special_tokens_in_messages,
     .help = "Take control tokens such as <|im_end|> from messages; without it, only from the "
             "template"},
    {.name = "generation_config",
     .member = &C::generation_config,
     .help = "Sampling defaults; auto: the model's generation_config.json or general.sampling.* "
             "metadata, else temperature 0.8, top_k 40, top_p 0.95 and min_p 0.05 for chats and a "
             "server's texts; vllm: temperature 1 and no filters",
     .words = kGenerationConfigs},
    {.name = "load_format",
     .member = &C::load_format,
     .help = "dummy: random weights of the config's shape",
     .group = kModel,
     .words = kLoadFormats,
     .is_agreed = true},
    {.name = "dtype",
     .member = &C::dtype,
     .help = "Type of dummy weights",
     .group = kModel,
     .words = kWeightTypes,
     .is_agreed = true},
    {.name = "quantization",
     .member = &C::quantization,
     .help = "fp8: quantize the layers' matrices when they are loaded, with a scale per row; on a "
             "CPU, or on a GPU of compute capability 9.0",
     .group = kModel,
     .words = kQuantizations,
     .alias = "-q",
     .is_agreed = true},
    {.name = "max_model_len",
     .member = &C::max_model_len,
     .help = "Most tokens of prompt and output, such as 8192 or 8K; 0: the model's own",
     .group = kModel,
     .words = kModelLengths,
     .range = {.min = 0, .max = kMaxModelLen},
     .notation = Notation::kCount,
     .is_agreed = true},
    {.name = "allow_long_max_model_len",
     .member = &C::allow_long_max_model_len,
     .help = "Let --max-model-len exceed the model's context",
     .group = kModel,
     .is_agreed = true},
    {.name = "seed", .member = &C::seed, .help = "Makes sampling reproducible"},
    {.name = "max_num_seqs",
     .member = &C::max_num_seqs,
     .help = "Most sequences in one step; 0: 64 on a CPU, 256 on a GPU",
     .group = kCache,
     .range = {.min = 0, .max = kMaxNumSeqs},
     .is_agreed = true},
    {.name = "max_num_rule_seqs",
     .member = &C::max_num_rule_seqs,
     .help = "Most sequences with penalties, biases, bans or min_tokens; 0: all on a CPU, 256 on a "
             "GPU",
     .group = kCache,
     .range = {.min = 0, .max = kMaxNumSeqs},
     .is_agreed = true},
    {.name = "max_num_batched_tokens",
     .member = &C::max_num_batched_tokens,
     .help = "Most tokens in one step; 0: 512 on a CPU, 8192 on a GPU",
     .group = kCache,
     .range = {.min = 0, .max = kMaxNumBatchedTokens},
     .notation = Notation::kCount,
     .is_agreed = true},
    {.name = "block_size",
     .member = &C::block_size,
     .help = "Tokens per page of the KV cache",
     .group = kCache,
     .words = kBlockSizes,
     .alias = "--page-size",
     .is_agreed = true},
    {.name = "kv_cache_dtype",
     .member = &C::kv_cache_dtype,
     .help = "Type of the KV cache; int8 is for a CPU",
     .group = kCache,
     .words = kCacheTypes,
     .is_agreed = true,
     .check_conflict = check_cache_type},
    {.name = "calculate_kv_scales",
     .member = &C::calculate_kv_scales,
     .help = "With fp8: scales of keys and values from a probe, where the checkpoint has none",
     .group = kCache,
     .is_agreed = true,
     .check_conflict = check_calculated_scales},
    {.name = "kv_cache_memory",
     .member = &C::kv_cache_memory,
     .help = "Size of the KV cache, such as 512M or 4G; without it, a quarter of the free memory "
             "of a CPU, which is taken as it is used, or the rest of a GPU's share",
     .group = kCache,
     .range = {.min = 0, .max = int64_t{1} << 46},
     .notation = Notation::kBytes,
     .alias = "--kv-cache-memory-bytes",
     .is_agreed = true},
    {.name = "enable_prefix_caching",
     .member = &C::enable_prefix_caching,
     .help = "Recompute prefixes that prompts share, for each request",
     .group = kCache},
    {.name = "enable_chunked_prefill",
     .member = &C::enable_chunked_prefill,
     .help = "Compute each prompt in one step",
     .group = kCache},
    {.name = "long_prefill_token_threshold",
     .member = &C::long_prefill_token_threshold,
     .help =
         "Most tokens of one prompt in a step, so that a long prompt leaves room for others; 0: "
         "no limit",
     .group = kCache,
     .range = {.min = 0, .max = kMaxNumBatchedTokens},
     .notation = Notation::kCount,
     .check_conflict = check_chunks},
    {.name = "device",
     .member = &C::device,
     .help = "Where to compute",
     .group = kDevice,
     .words = kDevices},
    {.name = "num_threads",
     .member = &C::num_threads,
     .help = "Threads of a CPU; 0: one per physical core, or as quire tune measured",
     .group = kDevice,
     .range = {.min = 0, .max = 1024},
     .flag = "--threads",
     .only_on = DeviceKind::kCpu},
    {.name = "cpu_cores",
     .member = &C::cpu_cores,
     .help = "Cores of a CPU to use; all: efficiency cores too",
     .group = kDevice,
     .words = kCores,
     .only_on = DeviceKind::kCpu},
    {.name = "cpu_pinning",
     .member = &C::cpu_pinning,
     .help = "Bind each thread to a core of a CPU; auto: if all cores have a thread, the kernel "
             "could place two of them badly, and no quota limits them",
     .group = kDevice,
     .words = kPinnings,
     .only_on = DeviceKind::kCpu},
    {.name = "cpu_activations",
     .member = &C::cpu_activations,
     .help = "Inputs of products on a CPU; faster are bf16 with BF16 weights, which needs AVX-512 "
             "BF16, and int8 with quantized weights",
     .group = kDevice,
     .words = kActivations,
     .is_agreed = true,
     .only_on = DeviceKind::kCpu,
     .check_conflict = check_activations},
    {.name = "packed_weights",
     .member = &C::packed_weights,
     .help = "Keep the weights as a CPU's kernels read them in a file of this directory, as large "
             "as the model, which the next start maps; auto: in the user's cache directory, for "
             "models of at least 256 MiB; off: pack them at each start",
     .group = kDevice,
     .notation = Notation::kDirectory,
     .only_on = DeviceKind::kCpu},
    {.name = "waits_for_packed_weights", .member = &C::waits_for_packed_weights},
    {.name = "tensor_parallel_size",
     .member = &C::tensor_parallel_size,
     .help = "Devices that share the model, of all nodes together; on a CPU, groups of its threads",
     .group = kDevice,
     .range = {.min = 1, .max = kMaxRanks},
     .alias = "-tp",
     .is_agreed = true},
    {.name = "data_parallel_size",
     .member = &C::data_parallel_size,
     .help = "Replicas of the model, each on --tensor-parallel-size devices of its own, behind one "
             "queue; on a CPU, on a part of its threads",
     .group = kDevice,
     .range = {.min = 1, .max = kMaxReplicas},
     .alias = "-dp",
     .check_conflict = check_replicas},
    {.name = "attention_backend",
     .member = &C::attention_backend,
     .help = "Force one attention backend (quire doctor lists them); a phase that it cannot serve "
             "is left to auto, and the log says so",
     .group = kDevice,
     .notation = Notation::kBackend,
     .is_agreed = true,
     .check_conflict = check_backends},
    {.name = "prefill_attention_backend",
     .member = &C::prefill_attention_backend,
     .help = "Force one attention backend for prefill, or do not start",
     .group = kDevice,
     .notation = Notation::kBackend,
     .is_agreed = true},
    {.name = "decode_attention_backend",
     .member = &C::decode_attention_backend,
     .help = "Force one attention backend for decode, or do not start",
     .group = kDevice,
     .notation = Notation::kBackend,
     .is_agreed = true},
    {.name = "tuning_table",
     .member = &C::tuning_table,
     .help = "Select backends by this table: a file of quire tune, builtin (the build's for this "
             "GPU) or measured (at start, kept in the user's cache directory); without it, "
             "builtin, or measured on a GPU that the build has no table for; on a CPU builtin "
             "ignores the threads that quire tune measured",
     .group = kDevice,
     .notation = Notation::kFile},
    {.name = "speculative_config",
     .member = &C::speculative_config,
     .help = "Speculative decoding with vLLM's keys, such as "
             "'{\"method\": \"ngram\", \"num_speculative_tokens\": 4}'; methods: ngram, suffix, "
             "draft_model, eagle3, mtp, dflash, dspark",
     .group = kDevice,
     .notation = Notation::kJson,
     .is_agreed = true,
     .check_text = check_speculation,
     .check_conflict = check_drafts},
    {.name = "gpu_memory_utilization",
     .member = &C::gpu_memory_utilization,
     .help = "Share of a GPU's memory to use; without effect on a CPU",
     .group = kDevice,
     .range = {.min = 0, .max = 1, .min_excluded = true},
     .only_on = DeviceKind::kCuda},
    {.name = "enforce_eager",
     .member = &C::enforce_eager,
     .help = "No CUDA graphs; without effect on a CPU",
     .group = kDevice,
     .is_agreed = true,
     .only_on = DeviceKind::kCuda},
    {.name = "nnodes",
     .member = &C::nnodes,
     .help = "Processes that share the ranks of --tensor-parallel-size, usually one per machine; "
             "auto: as Slurm, Open MPI, PMI, a LeaderWorkerSet or torchrun says",
     .group = kMachines,
     .words = kNodeCounts,
     .range = {.min = 1, .max = kMaxRanks}},
    {.name = "node_rank",
     .member = &C::node_rank,
     .help = "Number of this process, from 0, which serves; the others only compute; -1: as the "
             "launcher says",
     .group = kMachines,
     .range = {.min = -1, .max = kMaxRanks - 1}},
    {.name = "master_addr",
     .member = &C::master_addr,
     .help = "Name or address of node 0's machine; without it, MASTER_ADDR or as the launcher says",
     .group = kMachines,
     .notation = Notation::kText,
     .value_name = "HOST"},
    {.name = "master_port",
     .member = &C::master_port,
     .help = "Port at which node 0 waits for the others; 0: MASTER_PORT, or 29501",
     .group = kMachines,
     .range = {.min = 0, .max = 65535}},
    {.name = "cluster_token", .member = &C::cluster_token, .is_secret = true},
    // The interval of signs of life follows from it.
    {.name = "rank_timeout",
     .member = &C::rank_timeout,
     .help = "Seconds without a sign of life or progress of a rank after which all end",
     .group = kMachines,
     .range = {.min = 1, .max = 3600},
     .is_agreed = true},
    {.name = "kv_events_config",
     .member = &C::kv_events_config,
     .help = "Publish what the prefix cache holds over ZeroMQ, with vLLM's keys, such as "
             "'{\"enable_kv_cache_events\": true, \"endpoint\": \"tcp://*:5557\"}'",
     .notation = Notation::kJson,
     .check_text = check_kv_events},
    {.name = "block_hash_seed", .member = &C::block_hash_seed},
    {.name = "int_block_hashes", .member = &C::int_block_hashes},
});

// ---- Checks of values

// "more than 0 and at most 1", or "1 to 3600".
std::string described(const Range& range) {
  if (range.min_excluded) return fmt::format("more than {} and at most {}", range.min, range.max);
  return fmt::format("{:.0f} to {:.0f}", range.min, range.max);
}

Status check_value(const Setting& setting, const EngineConfig& config) {
  const std::string text = setting.text(config);
  if (setting.check_text != nullptr && !text.empty()) {
    const Status status = setting.check_text(text);
    return status.ok()
               ? status
               : invalid_argument(fmt::format("[config] `{}`: {}", setting.name, status.message()));
  }
  const auto must_be = [&](std::string_view expected, std::string_view remedy = {}) {
    return invalid_argument(fmt::format("[engine] {}: must be {}, got {}{}{}", setting.name,
                                        expected, clipped(text), remedy.empty() ? "" : "; ",
                                        remedy));
  };
  const auto any_word = [&](auto&& matches) { return std::ranges::any_of(setting.words, matches); };
  if (setting.has_values()) {
    const bool is_value =
        any_word([&](const SettingWord& word) { return word.is_value() && word.word == text; });
    const auto other = std::ranges::find(setting.words, "*", &SettingWord::word);
    const bool has_remedy = other != setting.words.end();
    return is_value ? Status() : must_be(setting.listed_values(), has_remedy ? other->remedy : "");
  }
  const bool is_meant = any_word([&](const SettingWord& word) { return word.meaning == text; });
  const bool is_valid = std::visit(
      [&](auto member) {
        using Value = std::remove_cvref_t<decltype(config.*member)>;
        if constexpr (std::is_arithmetic_v<Value>) {
          return is_meant || setting.range.contains(static_cast<double>(config.*member));
        } else {
          return true;
        }
      },
      setting.member);
  return is_valid ? Status() : must_be(described(setting.range));
}

}  // namespace

std::string Setting::flag_name() const {
  if (!flag.empty()) return std::string(flag);
  std::string dashed = "--" + std::string(name);
  std::ranges::replace(dashed, '_', '-');
  return dashed;
}

std::string Setting::text(const EngineConfig& config) const {
  return std::visit([&](auto of) { return fmt::format("{}", config.*of); }, member);
}

bool Setting::is_default(const EngineConfig& config) const {
  return text(config) == text(EngineConfig());
}

bool Setting::has_values() const {
  return std::ranges::any_of(words, &SettingWord::is_value);
}

std::string Setting::listed_values() const {
  std::vector<std::string_view> values;
  for (const SettingWord& word : words) {
    if (word.is_value()) values.push_back(word.word);
  }
  const std::string_view last = values.back();
  values.pop_back();
  return fmt::format("{} or {}", fmt::join(values, ", "), last);
}

std::span<const Setting> all_settings() {
  return kSettings;
}

const Setting& setting(std::string_view name) {
  const auto found = std::ranges::find(kSettings, name, &Setting::name);
  QUIRE_CHECK(found != kSettings.end(), "[settings] there is no such setting");
  return *found;
}

Status check_settings(const EngineConfig& config) {
  for (const Setting& setting : kSettings) QUIRE_RETURN_IF_ERROR(check_value(setting, config));
  const std::vector<Status> conflicts = find_conflicts(config);
  return conflicts.empty() ? Status() : conflicts.front();
}

std::vector<Status> find_conflicts(const EngineConfig& config) {
  std::vector<Status> found;
  for (const Setting& setting : kSettings) {
    if (setting.check_conflict == nullptr) continue;
    Status status = setting.check_conflict(config);
    if (!status.ok()) found.push_back(std::move(status));
  }
  return found;
}

bool uses_dummy_weights(const EngineConfig& config) {
  return config.load_format == "dummy";
}

bool quantizes_at_load(const EngineConfig& config) {
  return config.quantization == "fp8";
}

std::optional<DType> forced_dtype(const EngineConfig& config) {
  return config.dtype == "auto" ? std::nullopt : parse_dtype(config.dtype);
}

std::optional<DType> forced_kv_dtype(const EngineConfig& config) {
  return config.kv_cache_dtype == "auto" ? std::nullopt : parse_dtype(config.kv_cache_dtype);
}

std::optional<DeviceKind> forced_device(const EngineConfig& config) {
  if (config.device == "auto") return std::nullopt;
  return config.device == "cpu" ? DeviceKind::kCpu : DeviceKind::kCuda;
}

ThreadOptions thread_options(const EngineConfig& config) {
  const bool has_word = config.cpu_pinning != "auto";
  const CpuPinning word = config.cpu_pinning == "on" ? CpuPinning::kOn : CpuPinning::kOff;
  return {.num_threads = config.num_threads,
          .cores = config.cpu_cores == "all" ? CpuCores::kAll : CpuCores::kPerformance,
          .pinning = has_word ? word : CpuPinning::kAuto};
}

InputRounding input_rounding(const EngineConfig& config) {
  if (config.cpu_activations == "bf16") return InputRounding::kBf16;
  return config.cpu_activations == "int8" ? InputRounding::kInt8 : InputRounding::kNone;
}

Status refuse_gpu_backends(const EngineConfig& config, const Status& no_gpu) {
  for (const Setting& setting : kSettings) {
    if (setting.notation != Notation::kBackend) continue;
    const auto backend =
        std::ranges::find(backend_names(), setting.text(config), &BackendName::name);
    if (backend == backend_names().end() || backend->device != DeviceKind::kCuda) continue;
    return unavailable(fmt::format("[attention] {}: {} needs a GPU; {}; for a CPU expected auto",
                                   setting.name, backend->name, no_gpu.message()));
  }
  return {};
}

Status refuse_cpu_cache(const EngineConfig& config) {
  if (forced_kv_dtype(config) != DType::kI8) return {};
  return invalid_argument(
      "[engine] kv_cache_dtype: got int8 on a GPU, expected fp8, a GPU's cache in 8 bits; int8 is "
      "for `device` cpu");
}

Status check_step_tokens(int max_num_batched_tokens, int num_drafts) {
  if (max_num_batched_tokens > num_drafts) return {};
  return invalid_argument(fmt::format(
      "[engine] `max_num_batched_tokens`: got {}, expected at least {}, the newest token of a "
      "sequence and its drafts; raise it, or lower num_speculative_tokens",
      max_num_batched_tokens, 1 + num_drafts));
}

}  // namespace quire

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "base/json.h"
#include "engine/replica_choice.h"
#include "model/config.h"
#include "start/embedded.h"
#include "start/kv_event_sources.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "start/speculation.h"

namespace quire {
namespace {

constexpr std::string_view kModel = "Model";
constexpr std::string_view kCache = "Scheduler and KV cache";
constexpr std::string_view kDevice = "Device";
constexpr std::string_view kMachines = "Several machines";

// The number of sequences is a dimension of kernels' grids, and CUDA limits that dimension to this
// size.
constexpr int kMaxNumSeqs = 65535;
constexpr int kMaxRanks = 64;

// ---- Words. A word with a value is another spelling of that value, mostly vLLM's.

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
    "the checkpoint's config.json names its quantization; leave the flag out";
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
constexpr auto kMeasure = std::to_array<SettingWord>({{"auto"}, {"again"}, {"off"}});
constexpr auto kPackedWeights = std::to_array<SettingWord>({{"auto"}, {"off"}});
constexpr auto kTuningTables = std::to_array<SettingWord>({{"builtin"}, {"measured"}});
constexpr auto kActivations = std::to_array<SettingWord>({{"f32"}, {"bf16"}, {"int8"}});
constexpr auto kNodeCounts = std::to_array<SettingWord>({{"auto", "0"}});

// ---- Checks of texts and conflicts

// The text of speculative_config without the drafter's path, which may differ between nodes.
std::string without_path(std::string_view speculative_config) {
  const Result<JsonDocument> document = JsonDocument::parse(speculative_config, "");
  simdjson::dom::object object;
  if (!document.ok() || document->root().get(object)) return std::string(speculative_config);
  std::vector<std::string> values;
  for (const auto [key, value] : object) {
    if (key != "model") values.push_back(fmt::format("{}: {}", key, simdjson::minify(value)));
  }
  std::ranges::sort(values);
  return fmt::format("{}", fmt::join(values, ", "));
}

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

// Only an FP8 cache has calculated scales.
Status check_calculated_scales(const EngineConfig& config) {
  if (!config.calculate_kv_scales || forced_kv_dtype(config) == DType::kF8E4M3) return {};
  return invalid_argument(
      fmt::format("[engine] calculate_kv_scales: got true with `kv_cache_dtype` {}, expected fp8; "
                  "set `kv_cache_dtype` to fp8, or leave `calculate_kv_scales` out",
                  config.kv_cache_dtype));
}

// int8 activations need matrices of integers. `quantization` fp8 makes none, and is refused for a
// checkpoint that has them.
Status check_activations(const EngineConfig& config) {
  if (!quantizes_at_load(config) || config.cpu_activations != "int8") return {};
  return invalid_argument(
      "[engine] cpu_activations: got int8 with `quantization` fp8, whose matrices are not "
      "integers, expected f32 or bf16");
}

Status check_chunks(const EngineConfig& config) {
  if (config.enable_chunked_prefill || config.long_prefill_token_threshold == 0) return {};
  return invalid_argument(
      fmt::format("[engine] long_prefill_token_threshold: got {} without chunked prefill, which "
                  "computes each prompt in one step; leave it out",
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

// Returns no drafts if the JSON text is invalid; check_text reports that error.
Speculation speculation_of(const EngineConfig& config) {
  const Result<Speculation> speculation = read_speculation(config.speculative_config);
  return speculation.ok() ? *speculation : Speculation();
}

Status check_step_room(const EngineConfig& config) {
  if (config.max_num_batched_tokens == 0) return {};
  return check_step_tokens(config.max_num_batched_tokens, speculation_of(config).num_drafts);
}

Status check_padding(const EngineConfig& config) {
  return config.device == "cuda" ? refuse_unpadded_drafts(speculation_of(config)) : Status();
}

Status check_measure(const EngineConfig& config) {
  if (config.measure != "off" || config.tuning_table != "measured") return {};
  return invalid_argument(
      "[engine] measure: got off with tuning_table measured, expected auto or again; or leave out "
      "tuning_table");
}

Status check_packed_weights(const EngineConfig& config) {
  if (!config.packed_weights.empty()) return {};
  return invalid_argument(
      "[engine] packed_weights: must be auto, off or a directory, got an empty text");
}

// ---- The table

#define MEMBER(member_name) .name = #member_name, .member = &EngineConfig::member_name
constexpr auto kSame = NodeAgreement::kSame;
constexpr auto kMayDiffer = NodeAgreement::kMayDiffer;

constexpr auto kSettings = std::to_array<Setting>({
    {MEMBER(model), .nodes = kMayDiffer,
     .help = "A Hugging Face directory, a GGUF file, the name of a pulled model (see quire list), "
             "or embedded, the model in the binary",
     .group = kModel, .notation = Notation::kModel},
    {MEMBER(tokenizer), .nodes = kMayDiffer,
     .help = "A directory or name with another tokenizer; without it, the model's", .group = kModel,
     .notation = Notation::kModel, .check_conflict = check_tokenizer},
    {MEMBER(chat_template), .nodes = kMayDiffer,
     .help = "Chat template (Jinja); without it, the model's own", .notation = Notation::kFile},
    {MEMBER(allow_special_tokens_in_messages), .nodes = kMayDiffer,
     .help = "Take control tokens such as <|im_end|> from messages; without it, only from the "
             "template"},
    {MEMBER(generation_config), .nodes = kMayDiffer,
     .help = "Sampling defaults; auto: the model's generation_config.json or general.sampling.* "
             "metadata, else temperature 0.8, top_k 40, top_p 0.95 and min_p 0.05 for chats and a "
             "server's texts; vllm: temperature 1 and no filters",
     .words = kGenerationConfigs},
    {MEMBER(load_format), .nodes = kSame, .help = "dummy: random weights of the config's shape",
     .group = kModel, .words = kLoadFormats},
    {MEMBER(dtype), .nodes = kSame, .help = "Type of dummy weights", .group = kModel,
     .words = kWeightTypes},
    {MEMBER(quantization), .nodes = kSame,
     .help = "fp8: quantize the layers' matrices when they are loaded, with a scale per row; on a "
             "CPU, or on a GPU of compute capability 9.0",
     .group = kModel, .words = kQuantizations, .alias = "-q"},
    {MEMBER(max_model_len), .nodes = kSame,
     .help = "Most tokens of prompt and output, such as 8192 or 8K; 0: the model's own",
     .group = kModel, .words = kModelLengths, .range = {.min = 0, .max = kMaxModelLen},
     .notation = Notation::kCount},
    {MEMBER(allow_long_max_model_len), .nodes = kSame,
     .help = "Let --max-model-len exceed the model's context", .group = kModel},
    {MEMBER(seed), .nodes = kMayDiffer, .help = "Makes sampling reproducible", .group = kModel},
    {MEMBER(max_num_seqs), .nodes = kSame,
     .help = "Most sequences in one step; 0: 64 on a CPU, 256 on a GPU", .group = kCache,
     .range = {.min = 0, .max = kMaxNumSeqs}},
    {MEMBER(max_num_rule_seqs), .nodes = kSame,
     .help = "Most sequences with penalties, biases, bans or min_tokens; 0: all on a CPU, 256 on a "
             "GPU",
     .group = kCache, .range = {.min = 0, .max = kMaxNumSeqs}},
    {MEMBER(max_num_batched_tokens), .nodes = kSame,
     .help = "Most tokens in one step; 0: 512 on a CPU, 8192 on a GPU", .group = kCache,
     .range = {.min = 0, .max = kMaxNumBatchedTokens}, .notation = Notation::kCount,
     .check_conflict = check_step_room},
    {MEMBER(block_size), .nodes = kSame, .help = "Tokens per page of the KV cache", .group = kCache,
     .words = kBlockSizes, .alias = "--page-size"},
    {MEMBER(kv_cache_dtype), .nodes = kSame, .help = "Type of the KV cache; int8 is for a CPU",
     .group = kCache, .words = kCacheTypes, .check_conflict = check_cache_type},
    {MEMBER(calculate_kv_scales), .nodes = kSame,
     .help = "With fp8: scales of keys and values from a probe, where the checkpoint has none",
     .group = kCache, .check_conflict = check_calculated_scales},
    {MEMBER(kv_cache_memory), .nodes = kSame,
     .help = "Size of the KV cache, such as 512M or 4G; without it, a quarter of the memory "
             "that the model leaves free on a CPU, which is taken as it is used, or the rest of a "
             "GPU's share",
     .group = kCache, .range = {.min = 0, .max = int64_t{1} << 46}, .unit = "bytes",
     .notation = Notation::kBytes, .alias = "--kv-cache-memory-bytes"},
    {MEMBER(enable_prefix_caching), .nodes = kMayDiffer,
     .help = "Recompute prefixes that prompts share, for each request", .group = kCache},
    {MEMBER(enable_chunked_prefill), .nodes = kMayDiffer, .help = "Compute each prompt in one step",
     .group = kCache},
    {MEMBER(long_prefill_token_threshold), .nodes = kMayDiffer,
     .help =
         "Most tokens of one prompt in a step, so that a long prompt leaves room for others; 0: "
         "no limit",
     .group = kCache, .range = {.min = 0, .max = kMaxNumBatchedTokens},
     .notation = Notation::kCount, .check_conflict = check_chunks},
    {MEMBER(device), .nodes = kMayDiffer, .help = "Where to compute", .group = kDevice,
     .words = kDevices},
    {MEMBER(num_threads), .nodes = kMayDiffer,
     .help = "Threads of a CPU; 0: one per physical core, or as quire tune measured",
     .group = kDevice, .range = {.min = 0, .max = 1024}, .flag = "--threads",
     .only_on = DeviceKind::kCpu},
    {MEMBER(cpu_cores), .nodes = kMayDiffer,
     .help = "Cores of a CPU to use; all: efficiency cores too", .group = kDevice, .words = kCores,
     .only_on = DeviceKind::kCpu},
    {MEMBER(cpu_pinning), .nodes = kMayDiffer,
     .help = "Bind each thread to a core of a CPU; auto: if all cores have a thread, the kernel "
             "could place two of them badly, and no quota limits them",
     .group = kDevice, .words = kPinnings, .only_on = DeviceKind::kCpu},
    {MEMBER(cpu_activations), .nodes = kSame,
     .help = "Inputs of products on a CPU; faster are bf16 with BF16 weights, which needs AVX-512 "
             "BF16, and int8 with quantized weights",
     .group = kDevice, .words = kActivations, .only_on = DeviceKind::kCpu,
     .check_conflict = check_activations},
    {MEMBER(packed_weights), .nodes = kMayDiffer,
     .help = "Keep the weights as a CPU's kernels read them in a file of this directory, as large "
             "as the model, which the next start maps; auto: in the user's cache directory, for "
             "models of at least 256 MiB; off: pack them at each start",
     .group = kDevice, .words = kPackedWeights, .notation = Notation::kDirectory,
     .only_on = DeviceKind::kCpu, .off_value = "off", .check_conflict = check_packed_weights},
    {MEMBER(waits_for_packed_weights), .nodes = kMayDiffer},
    {MEMBER(tensor_parallel_size), .nodes = kSame,
     .help = "Devices that share the model, of all nodes together; on a CPU, groups of its threads",
     .group = kDevice, .range = {.min = 1, .max = kMaxRanks}, .alias = "-tp"},
    {MEMBER(data_parallel_size), .nodes = kMayDiffer,
     .help = "Replicas of the model, each on --tensor-parallel-size devices of its own, behind one "
             "queue; on a CPU, on a part of its threads",
     .group = kDevice, .range = {.min = 1, .max = kMaxReplicas}, .alias = "-dp",
     .check_conflict = check_replicas},
    {MEMBER(attention_backend), .nodes = kSame,
     .help = "Force one attention backend (quire doctor lists them); a phase that it cannot serve "
             "is left to auto, and the log says so",
     .group = kDevice, .notation = Notation::kBackend, .check_conflict = check_backends},
    {MEMBER(prefill_attention_backend), .nodes = kSame,
     .help = "Force one attention backend for prefill, or do not start", .group = kDevice,
     .notation = Notation::kBackend},
    {MEMBER(decode_attention_backend), .nodes = kSame,
     .help = "Force one attention backend for decode, or do not start", .group = kDevice,
     .notation = Notation::kBackend},
    {MEMBER(tuning_table), .nodes = kMayDiffer,
     .help = "Select backends by this table: a file of quire tune, builtin (the build's for this "
             "GPU) or measured (at start, kept in the user's cache directory); without it, "
             "builtin, or measured on a GPU that the build has no table for; on a CPU builtin "
             "ignores the threads that quire tune measured",
     .group = kDevice, .words = kTuningTables, .notation = Notation::kFile},
    {MEMBER(measure), .nodes = kSame,
     .help =
         "At start, measure which kernels are the fastest here. auto: only what no earlier start "
         "has kept in the user's cache directory; again: everything; off: fixed rules choose",
     .group = kDevice, .words = kMeasure, .check_conflict = check_measure},
    {MEMBER(speculative_config), .nodes = kSame,
     .help = "Speculative decoding with vLLM's keys, such as "
             "'{\"method\": \"ngram\", \"num_speculative_tokens\": 4}'; methods: auto, ngram, "
             "suffix, draft_model, eagle3, mtp, dflash, dspark",
     .group = kDevice, .notation = Notation::kJson, .compared_text = without_path,
     .check_text = check_speculation, .check_conflict = check_padding},
    {MEMBER(gpu_memory_utilization), .nodes = kMayDiffer,
     .help = "Share of a GPU's memory to use; without effect on a CPU", .group = kDevice,
     .range = {.min = 0, .max = 1, .min_excluded = true}, .only_on = DeviceKind::kCuda},
    {MEMBER(enforce_eager), .nodes = kSame, .help = "No CUDA graphs; without effect on a CPU",
     .group = kDevice, .only_on = DeviceKind::kCuda},
    {MEMBER(nnodes), .nodes = kMayDiffer,
     .help = "Processes that share the ranks of --tensor-parallel-size, usually one per machine; "
             "auto: as Slurm, Open MPI, PMI, a LeaderWorkerSet or torchrun says",
     .group = kMachines, .words = kNodeCounts, .range = {.min = 0, .max = kMaxRanks}},
    {MEMBER(node_rank), .nodes = kMayDiffer,
     .help = "Number of this process, from 0, which serves; the others only compute; -1: as the "
             "launcher says",
     .group = kMachines, .range = {.min = -1, .max = kMaxRanks - 1}},
    {MEMBER(master_addr), .nodes = kMayDiffer,
     .help = "Name or address of node 0's machine; without it, MASTER_ADDR or as the launcher says",
     .group = kMachines, .notation = Notation::kText, .value_name = "HOST"},
    {MEMBER(master_port), .nodes = kMayDiffer,
     .help = "Port at which node 0 waits for the others; 0: MASTER_PORT, or 29501",
     .group = kMachines, .range = {.min = 0, .max = 65535}},
    {MEMBER(cluster_token), .nodes = kMayDiffer, .is_secret = true},
    // Nodes send signs of life at an interval derived from rank_timeout.
    {MEMBER(rank_timeout), .nodes = kSame,
     .help = "Seconds without a sign of life or progress of a rank after which all end",
     .group = kMachines, .range = {.min = 1, .max = 3600}, .unit = "s"},
    {MEMBER(kv_events_config), .nodes = kMayDiffer,
     .help = "Publish what the prefix cache holds over ZeroMQ, with vLLM's keys, such as "
             "'{\"enable_kv_cache_events\": true, \"endpoint\": \"tcp://*:5557\"}'",
     .notation = Notation::kJson, .check_text = check_kv_events},
    {MEMBER(block_hash_seed), .nodes = kMayDiffer},
    {MEMBER(int_block_hashes), .nodes = kMayDiffer},
});
#undef MEMBER

// Whether the value of a row can be parsed and checked.
constexpr bool is_complete(const Setting& setting) {
  const bool is_text = std::holds_alternative<std::string EngineConfig::*>(setting.member);
  const bool is_number = !is_text && !std::holds_alternative<bool EngineConfig::*>(setting.member);
  const bool is_seed = std::holds_alternative<uint64_t EngineConfig::*>(setting.member);
  const bool has_value = std::ranges::any_of(setting.words, &SettingWord::is_value);
  const bool has_range = setting.range.max < 1e18;
  if (setting.notation == Notation::kJson && setting.check_text == nullptr) return false;
  if (is_text && !setting.words.empty() && !has_value) return false;
  return !is_number || is_seed || has_value || has_range;
}
static_assert(std::ranges::all_of(kSettings, is_complete));

}  // namespace

std::span<const Setting> all_settings() {
  return kSettings;
}

}  // namespace quire

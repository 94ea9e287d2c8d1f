#include "engine/engine_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/log.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/cpu_ops.h"
#include "engine/host_runner.h"
#include "model/model_loader.h"

namespace quire {
namespace {

// MemAvailable of /proc/meminfo: what can be taken without pushing others out.
int64_t free_host_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (meminfo >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return int64_t{1} << 30;
}

Status in_range(const char* flag, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(fmt::format("[engine] {} is out of range; got {}, expected {} to {}",
                                      flag, value, low, high));
}

Status check_config(const EngineConfig& config) {
  if (config.device != "auto" && config.device != "cpu" && config.device != "cuda") {
    return invalid_argument(fmt::format(
        "[engine] --device is unknown; got {}, expected auto, cpu or cuda", config.device));
  }
  if (config.device == "cuda") {
    return unimplemented("[engine] --device cuda: this build has no CUDA; use --device cpu");
  }
  if (config.block_size != 16 && config.block_size != 32 && config.block_size != 64) {
    return invalid_argument(
        fmt::format("[engine] --block-size is not supported; got {}, expected 16, 32 or 64",
                    config.block_size));
  }
  if (config.tensor_parallel_size != 1) {
    return unimplemented(
        fmt::format("[engine] --tensor-parallel-size is not supported yet; got {}, expected 1",
                    config.tensor_parallel_size));
  }
  QUIRE_RETURN_IF_ERROR(in_range("--max-num-seqs", config.max_num_seqs, 1, 65536));
  QUIRE_RETURN_IF_ERROR(
      in_range("--max-num-batched-tokens", config.max_num_batched_tokens, 1, 1 << 20));
  QUIRE_RETURN_IF_ERROR(in_range("--threads", config.num_threads, 0, 1024));
  QUIRE_RETURN_IF_ERROR(in_range("--kv-cache-memory", config.kv_cache_memory, 0, int64_t{1} << 46));
  return in_range("--max-model-len", config.max_model_len, 0, 1 << 24);
}

Result<DType> choose_kv_dtype(const EngineConfig& config, const ModelFiles& files) {
  if (config.kv_cache_dtype == "auto") {
    if (config.load_format == "dummy" && config.dtype != "auto") return *parse_dtype(config.dtype);
    return files.config.dtype.value_or(DType::kF32);
  }
  const auto dtype = parse_dtype(config.kv_cache_dtype);
  if (!dtype || *dtype > DType::kF8E4M3) {
    return invalid_argument(fmt::format(
        "[engine] --kv-cache-dtype is unknown; got {}, expected auto, f32, f16, bf16 or fp8",
        config.kv_cache_dtype));
  }
  return *dtype;
}

Result<int> choose_max_model_len(const EngineConfig& config, const ModelConfig& model) {
  const int longest = longest_model_len(model);
  if (config.max_model_len == 0) return longest;
  if (config.max_model_len > longest && !config.allow_long_max_model_len) {
    return invalid_argument(fmt::format(
        "[engine] --max-model-len is longer than the model's context; got {}, expected at most {} "
        "(or --allow-long-max-model-len)",
        config.max_model_len, longest));
  }
  return config.max_model_len;
}

Status select_backends(const EngineConfig& config, EngineParts& parts) {
  const Device cpu = {.kind = DeviceKind::kCpu, .name = "cpu"};
  const auto or_else = [&](const std::string& phase) {
    return phase.empty() ? config.attention_backend : phase;
  };
  for (const KvGroup& group : parts.model->kv_groups()) {
    QUIRE_ASSIGN_OR_RETURN(AttentionBackend * decode,
                           parts.attention.select(group.shape, Phase::kDecode, cpu,
                                                  or_else(config.decode_attention_backend)));
    QUIRE_ASSIGN_OR_RETURN(AttentionBackend * prefill,
                           parts.attention.select(group.shape, Phase::kPrefill, cpu,
                                                  or_else(config.prefill_attention_backend)));
    parts.decode_backends.push_back(decode);
    parts.prefill_backends.push_back(prefill);
  }
  return {};
}

// Groups take turns with one arena: a layer's attention is over before the next begins.
size_t workspace_bytes(const EngineParts& parts, const AttentionLimits& limits) {
  size_t bytes = 0;
  const std::vector<KvGroup>& groups = parts.model->kv_groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    const AttentionShape& shape = groups[g].shape;
    bytes = std::max({bytes, parts.decode_backends[g]->workspace_bytes(shape, limits),
                      parts.prefill_backends[g]->workspace_bytes(shape, limits)});
  }
  return bytes;
}

// Without --max-model-len the context shrinks to what the cache can hold, and the log says so.
Result<MemoryPlan> plan_and_shrink(const EngineConfig& config, MemoryRequest& request) {
  Result<MemoryPlan> plan = plan_memory(request);
  if (plan.ok() || config.max_model_len != 0) return plan;
  const int wanted = request.max_model_len;
  while (!plan.ok() && request.max_model_len > request.block_size) {
    request.max_model_len /= 2;
    plan = plan_memory(request);
  }
  if (plan.ok()) {
    log_warning(
        "[memory] the model's context of {} tokens does not fit; serving {} "
        "(--max-model-len and --kv-cache-memory decide otherwise)",
        wanted, request.max_model_len);
  }
  return plan;
}

ModelInfo describe_model(const ModelFiles& files, const EngineParts& parts, DType kv_dtype,
                         int max_model_len, int block_size) {
  ModelInfo info;
  info.name = files.name;
  info.architecture = files.config.architecture;
  info.vocab_size = files.config.vocab_size;
  info.max_model_len = max_model_len;
  info.block_size = block_size;
  info.weight_dtype = files.config.dtype ? dtype_name(*files.config.dtype) : "";
  info.kv_cache_dtype = dtype_name(kv_dtype);
  info.num_parameters = num_parameters(files.config);
  info.attention_backend = fmt::format("decode: {}, prefill: {}", parts.decode_backends[0]->name(),
                                       parts.prefill_backends[0]->name());
  return info;
}

}  // namespace

int longest_model_len(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  switch (rope.type) {
    case RopeType::kDefault:
    case RopeType::kLlama3:  // max_position_embeddings already counts the stretched positions
      return config.max_position_embeddings;
    case RopeType::kLinear:
    case RopeType::kDynamic:
      return static_cast<int>(config.max_position_embeddings * rope.factor);
    case RopeType::kYarn:
      return std::max(config.max_position_embeddings,
                      static_cast<int>(rope.original_max_position_embeddings * rope.factor));
  }
  return config.max_position_embeddings;
}

Result<std::unique_ptr<EngineParts>> assemble_engine(const EngineConfig& config,
                                                     ModelFiles& files) {
  QUIRE_RETURN_IF_ERROR(check_config(config));
  QUIRE_ASSIGN_OR_RETURN(const DType kv_dtype, choose_kv_dtype(config, files));
  QUIRE_ASSIGN_OR_RETURN(const int max_model_len, choose_max_model_len(config, files.config));
  auto parts = std::make_unique<EngineParts>();
  const int num_threads = config.num_threads > 0 ? config.num_threads : num_usable_cores();
  parts->pool = std::make_unique<ThreadPool>(num_threads);
  parts->ops = make_cpu_ops(*parts->pool);
  parts->attention.add(make_cpu_attention(*parts->pool));
  parts->attention.add(make_reference_attention());

  const ModelLimits limits = {.max_num_tokens = config.max_num_batched_tokens,
                              .max_num_logit_rows = config.max_num_seqs,
                              .max_model_len = max_model_len,
                              .page_size = config.block_size,
                              .kv_dtype = kv_dtype};
  QUIRE_ASSIGN_OR_RETURN(parts->model,
                         load_model(files.config, *files.weights, *parts->ops, limits));
  QUIRE_RETURN_IF_ERROR(select_backends(config, *parts));

  const size_t arena_bytes =
      workspace_bytes(*parts, {.max_num_reqs = config.max_num_seqs,
                               .max_num_tokens = config.max_num_batched_tokens,
                               .max_kv_len = max_model_len});
  MemoryRequest memory = {
      .block_bytes = kv_block_bytes(parts->model->kv_groups()),
      .block_size = config.block_size,
      .max_model_len = max_model_len,
      .max_num_seqs = config.max_num_seqs,
      .kv_cache_memory = config.kv_cache_memory,
      .free_bytes = free_host_bytes(),
      .weight_bytes = static_cast<int64_t>(parts->model->weight_bytes()),
      .activation_bytes = static_cast<int64_t>(parts->model->activation_bytes()),
      .workspace_bytes = static_cast<int64_t>(arena_bytes)};
  QUIRE_ASSIGN_OR_RETURN(const MemoryPlan plan, plan_and_shrink(config, memory));
  log_info("{}", describe(memory, plan));
  QUIRE_ASSIGN_OR_RETURN(parts->workspace, Buffer::host(arena_bytes));
  QUIRE_ASSIGN_OR_RETURN(
      parts->kv_cache, KvCache::allocate(parts->model->kv_groups(), plan.num_blocks, *parts->ops));
  const RunnerParts runner = {
      .model = parts->model.get(),
      .ops = parts->ops.get(),
      .kv_cache = &parts->kv_cache,
      .decode_backends = parts->decode_backends,
      .prefill_backends = parts->prefill_backends,
      .workspace = {.arena = {static_cast<std::byte*>(parts->workspace.data()), arena_bytes},
                    .counters = {}},
      .pool = parts->pool.get(),
      .max_num_seqs = config.max_num_seqs,
      .max_num_logit_rows = config.max_num_seqs};
  QUIRE_ASSIGN_OR_RETURN(parts->runner, HostRunner::create(runner));
  parts->scheduler = {.max_num_seqs = config.max_num_seqs,
                      .max_num_batched_tokens = config.max_num_batched_tokens,
                      .max_model_len = memory.max_model_len,
                      .block_size = config.block_size,
                      .num_blocks = plan.num_blocks,
                      .enable_prefix_caching = config.enable_prefix_caching,
                      .enable_chunked_prefill = config.enable_chunked_prefill};
  parts->info = describe_model(files, *parts, kv_dtype, memory.max_model_len, config.block_size);
  return parts;
}

}  // namespace quire

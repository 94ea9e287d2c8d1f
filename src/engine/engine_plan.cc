#include "engine/engine_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "attn/builtin_tables.h"
#include "base/log.h"
#include "model/families.h"
#include "platform/runner.h"

namespace quire {
namespace {

// Sequences are a dimension of kernels' grids, which is limited to this size.
constexpr int kMaxNumSeqs = 65535;

Status in_range(const char* flag, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(fmt::format("[engine] {} is out of range; got {}, expected {} to {}",
                                      flag, value, low, high));
}

EngineConfig with_defaults(EngineConfig config, const PlatformDefaults& defaults) {
  if (config.max_num_batched_tokens == 0) {
    config.max_num_batched_tokens = std::max(defaults.max_num_batched_tokens, config.max_num_seqs);
  }
  if (config.max_num_seqs == 0) {
    config.max_num_seqs = std::min(defaults.max_num_seqs, config.max_num_batched_tokens);
  }
  if (config.max_num_rule_seqs == 0) config.max_num_rule_seqs = defaults.max_num_rule_seqs;
  return config;
}

// A step must have room for the tokens of all decoding sequences.
void limit_seqs_to_tokens(EngineConfig& config, int decode_q_len) {
  const int most = std::max(config.max_num_batched_tokens / decode_q_len, 1);
  if (config.max_num_seqs <= most) return;
  log_info(
      "[engine] --max-num-seqs {} is lowered to {}: a step of --max-num-batched-tokens {} decodes "
      "{} tokens per sequence",
      config.max_num_seqs, most, config.max_num_batched_tokens, decode_q_len);
  config.max_num_seqs = most;
}

void limit_rule_seqs(EngineConfig& config, int wanted) {
  config.max_num_rule_seqs = std::min(config.max_num_rule_seqs, config.max_num_seqs);
  if (wanted > 0 || config.max_num_rule_seqs == config.max_num_seqs) return;
  log_info(
      "[engine] at most {} of {} sequences in a step may have penalties, logit_bias, "
      "allowed_token_ids, bad_words or min_tokens; --max-num-rule-seqs allows more",
      config.max_num_rule_seqs, config.max_num_seqs);
}

Status check_config(const EngineConfig& config) {
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
  QUIRE_RETURN_IF_ERROR(in_range("--max-num-seqs", config.max_num_seqs, 1, kMaxNumSeqs));
  QUIRE_RETURN_IF_ERROR(in_range("--max-num-rule-seqs", config.max_num_rule_seqs, 1,
                                 std::numeric_limits<int>::max()));
  QUIRE_RETURN_IF_ERROR(
      in_range("--max-num-batched-tokens", config.max_num_batched_tokens, 1, 1 << 20));
  QUIRE_RETURN_IF_ERROR(in_range("--kv-cache-memory", config.kv_cache_memory, 0, int64_t{1} << 46));
  return in_range("--max-model-len", config.max_model_len, 0, kMaxModelLen);
}

// The type of the checkpoint, or of dummy weights. Activations have the same type if the device
// computes in it.
DType choose_dtype(const EngineConfig& config, const ModelConfig& model) {
  const auto forced = config.dtype == "auto" ? std::nullopt : parse_dtype(config.dtype);
  return forced.value_or(model.dtype.value_or(DType::kF32));
}

Result<DType> choose_kv_dtype(const EngineConfig& config, DType dtype_of_model) {
  if (config.kv_cache_dtype == "auto") return dtype_of_model;
  const auto dtype = parse_dtype(config.kv_cache_dtype);
  if (!dtype || *dtype > DType::kF8E4M3) {
    return invalid_argument(fmt::format(
        "[engine] --kv-cache-dtype is unknown; got {}, expected auto, f32, f16, bf16 or fp8",
        config.kv_cache_dtype));
  }
  return *dtype;
}

Result<int> choose_max_model_len(const EngineConfig& config, const ModelConfig& model) {
  const int longest = model.longest_model_len;
  const int wanted = config.max_model_len == 0 ? longest : config.max_model_len;
  if (wanted < 2) {
    return invalid_argument(fmt::format(
        "[engine] the context is too short; got {} tokens (--max-model-len, or the model's "
        "max_position_embeddings), expected at least 2: one of prompt, one of output",
        wanted));
  }
  if (config.max_model_len == 0) return longest;
  if (config.max_model_len > longest && !config.allow_long_max_model_len) {
    return invalid_argument(fmt::format(
        "[engine] --max-model-len is longer than the model's context; got {}, expected at most {} "
        "(or --allow-long-max-model-len)",
        config.max_model_len, longest));
  }
  return config.max_model_len;
}

Result<std::shared_ptr<const TuningTable>> read_tuning_table(const EngineConfig& config,
                                                             const Device& device) {
  if (config.tuning_table.empty()) {
    return std::make_shared<const TuningTable>(builtin_table(device));
  }
  Result<TuningTable> table = TuningTable::read(config.tuning_table);
  if (!table.ok()) return invalid_argument("[engine] --tuning-table: " + table.status().message());
  return std::make_shared<const TuningTable>(std::move(*table));
}

// Selects the backends of the KV groups on one device and makes their plans. All groups share one
// workspace, because a layer's attention ends before the next begins.
Result<AttentionSetup> choose_attention(const EngineConfig& config, const ModelConfig& model,
                                        const Platform& platform, DeviceContext& context,
                                        const ModelLimits& limits,
                                        const std::shared_ptr<const TuningTable>& table) {
  AttentionSetup setup;
  const std::array q_lens = {limits.decode_q_len()};
  setup.kv_groups = make_kv_groups(model, limits, context.ops().activation_dtype());
  setup.decode_keys = platform.decode_keys(config.max_num_seqs, limits.max_kv_len(), q_lens);
  for (DecodeKey& key : setup.decode_keys) key.eager |= config.enforce_eager;
  const PlanLimits largest = {.use = {},
                              .max_num_reqs = config.max_num_seqs,
                              .max_num_tokens = limits.max_num_tokens,
                              .max_kv_len = limits.max_model_len};
  for (const KvGroup& group : setup.kv_groups) {
    QUIRE_ASSIGN_OR_RETURN(AttentionSelector selector,
                           AttentionSelector::create(
                               context.attention(), {group.decode, group.prefill}, context.device(),
                               {.any = config.attention_backend,
                                .decode = config.decode_attention_backend,
                                .prefill = config.prefill_attention_backend},
                               table, q_lens));
    QUIRE_ASSIGN_OR_RETURN(AttentionPlans plans,
                           AttentionPlans::make(selector, largest, setup.decode_keys));
    setup.workspace_bytes = std::max(setup.workspace_bytes, plans.workspace_bytes());
    setup.selectors.push_back(std::move(selector));
    setup.plans.push_back(std::move(plans));
  }
  return setup;
}

std::vector<KvTableConfig> tables_of(const MemoryRequest& request, const MemoryPlan& plan) {
  std::vector<KvTableConfig> tables;
  for (size_t t = 0; t < request.tables.size(); ++t) {
    tables.push_back({.num_blocks = plan.num_blocks[t], .window = request.tables[t].window});
  }
  return tables;
}

// Without --max-model-len, shrinks the context to what the cache can hold, and logs it.
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

// Plans what depends on the longest context, plan.sizes.limits.max_model_len, up to the request for
// memory. Attention plans take memory of the device, so those of another context are freed first,
// and the budget is read after the new ones are made.
Status plan_for_context(const EngineConfig& config, const ModelFiles& files,
                        const Platform& platform, const std::shared_ptr<const TuningTable>& table,
                        EnginePlan& plan) {
  DeviceContext& context = *platform.contexts().front();
  const ModelLimits& limits = plan.sizes.limits;
  plan.attention = {};
  QUIRE_ASSIGN_OR_RETURN(plan.attention,
                         choose_attention(config, files.config, platform, context, limits, table));
  plan.sizes.windows = table_windows(plan.attention.kv_groups);
  const RunnerBytes runner = platform.runner_bytes(plan.sizes, plan.attention.selectors);
  QUIRE_ASSIGN_OR_RETURN(const MemoryBudget budget, context.memory_budget());
  plan.memory = {.tables = kv_table_bytes(plan.attention.kv_groups),
                 .block_size = config.block_size,
                 .max_model_len = limits.max_model_len,
                 .max_num_seqs = config.max_num_seqs,
                 .max_num_batched_tokens = config.max_num_batched_tokens,
                 .kv_cache_memory = config.kv_cache_memory,
                 .budget = budget,
                 .weight_bytes = estimate_weight_bytes(files.config, *files.weights, context.ops(),
                                                       limits.parallel),
                 .activation_bytes = estimate_activation_bytes(files.config, limits,
                                                               context.ops().activation_dtype()) +
                                     runner.buffers,
                 .workspace_bytes = static_cast<int64_t>(plan.attention.workspace_bytes),
                 .reserve_bytes = runner.reserve};
  return {};
}

}  // namespace

Result<std::unique_ptr<Platform>> make_platform(const EngineConfig& config,
                                                const ModelConfig& model) {
  QUIRE_RETURN_IF_ERROR(in_range("--threads", config.num_threads, 0, 1024));
  if (!(config.gpu_memory_utilization > 0.0 && config.gpu_memory_utilization <= 1.0)) {
    return invalid_argument(
        fmt::format("[engine] --gpu-memory-utilization is out of range; got {}, expected more than "
                    "0 and at most 1",
                    config.gpu_memory_utilization));
  }
  const PlatformConfig platform = {.num_threads = config.num_threads,
                                   .activation_dtype = choose_dtype(config, model),
                                   .gpu_memory_utilization = config.gpu_memory_utilization};
  if (config.device == "cpu") return make_cpu_platform(platform);
  if (config.device == "cuda") return make_cuda_platform(platform);
  if (config.device != "auto") {
    return invalid_argument(fmt::format(
        "[engine] --device is unknown; got {}, expected auto, cpu or cuda", config.device));
  }
  const Status no_gpu = cuda_status(platform.devices.front());
  if (no_gpu.ok()) return make_cuda_platform(platform);
  log_debug("{}", no_gpu.message());
  return make_cpu_platform(platform);
}

Result<EnginePlan> plan_engine(const EngineConfig& wanted, const ModelFiles& files,
                               const Platform& platform, int num_drafts) {
  EngineConfig config = with_defaults(wanted, platform.defaults());
  QUIRE_RETURN_IF_ERROR(check_config(config));
  limit_seqs_to_tokens(config, 1 + num_drafts);
  limit_rule_seqs(config, wanted.max_num_rule_seqs);
  DeviceContext& context = *platform.contexts().front();
  QUIRE_RETURN_IF_ERROR(context.bind_thread());
  EnginePlan plan;
  plan.dtype = choose_dtype(config, files.config);
  QUIRE_ASSIGN_OR_RETURN(const DType kv_dtype, choose_kv_dtype(config, plan.dtype));
  QUIRE_ASSIGN_OR_RETURN(const int max_model_len, choose_max_model_len(config, files.config));
  // At least this many rows of logits, so that prompt log probabilities are computed in batches.
  constexpr int kMinLogitRows = 32;
  plan.sizes = {.limits = {.max_num_tokens = config.max_num_batched_tokens,
                           .max_num_logit_rows =
                               std::max(config.max_num_seqs * (1 + num_drafts), kMinLogitRows),
                           .max_model_len = max_model_len,
                           .num_drafts = num_drafts,
                           .page_size = config.block_size,
                           .kv_dtype = kv_dtype},
                .max_num_seqs = config.max_num_seqs,
                .max_num_rule_seqs = config.max_num_rule_seqs,
                .vocab_size = files.config.vocab_size,
                .num_layers = files.config.num_layers,
                .enforce_eager = config.enforce_eager};
  ModelLimits& limits = plan.sizes.limits;
  QUIRE_ASSIGN_OR_RETURN(const auto table, read_tuning_table(config, context.device()));
  QUIRE_RETURN_IF_ERROR(plan_for_context(config, files, platform, table, plan));
  QUIRE_ASSIGN_OR_RETURN(plan.kv, plan_and_shrink(config, plan.memory));
  if (plan.memory.max_model_len != max_model_len) {
    // A window as long as the shorter context hides nothing, so there may be fewer KV groups.
    limits.max_model_len = plan.memory.max_model_len;
    QUIRE_RETURN_IF_ERROR(plan_for_context(config, files, platform, table, plan));
    QUIRE_ASSIGN_OR_RETURN(plan.kv, plan_memory(plan.memory));
  }
  plan.scheduler = {.max_num_seqs = config.max_num_seqs,
                    .max_num_rule_seqs = config.max_num_rule_seqs,
                    .max_num_batched_tokens = config.max_num_batched_tokens,
                    .max_model_len = limits.max_model_len,
                    .block_size = config.block_size,
                    .tables = tables_of(plan.memory, plan.kv),
                    .num_drafts = num_drafts,
                    .enable_prefix_caching = config.enable_prefix_caching,
                    .enable_chunked_prefill = config.enable_chunked_prefill};
  QUIRE_RETURN_IF_ERROR(validate_scheduler_config(plan.scheduler));
  return plan;
}

}  // namespace quire

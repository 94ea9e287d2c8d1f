#include "engine/resolved_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/log.h"
#include "engine/contradictions.h"
#include "engine/model_files.h"
#include "platform/runner.h"

namespace quire {
namespace {

// Sequences are a dimension of kernels' grids, which is limited to this size.
constexpr int kMaxNumSeqs = 65535;
constexpr int kMaxNumBatchedTokens = 1 << 20;

Status check_config(const EngineConfig& config) {
  if (config.block_size != 16 && config.block_size != 32 && config.block_size != 64) {
    return invalid_argument(
        fmt::format("[engine] block_size: must be 16, 32 or 64, got {}", config.block_size));
  }
  QUIRE_RETURN_IF_ERROR(in_range("max_num_seqs", config.max_num_seqs, 1, kMaxNumSeqs));
  QUIRE_RETURN_IF_ERROR(
      in_range("max_num_rule_seqs", config.max_num_rule_seqs, 1, std::numeric_limits<int>::max()));
  QUIRE_RETURN_IF_ERROR(
      in_range("max_num_batched_tokens", config.max_num_batched_tokens, 1, kMaxNumBatchedTokens));
  QUIRE_RETURN_IF_ERROR(in_range("kv_cache_memory", config.kv_cache_memory, 0, int64_t{1} << 46));
  return in_range("max_model_len", config.max_model_len, 0, kMaxModelLen);
}

// A step must have room for the tokens of all decoding sequences.
int limit_seqs_to_tokens(const EngineConfig& config, int decode_q_len) {
  const int most = std::max(config.max_num_batched_tokens / decode_q_len, 1);
  if (config.max_num_seqs <= most) return config.max_num_seqs;
  log_warning(
      "[engine] `max_num_seqs` {} is lowered to {}: a step of `max_num_batched_tokens` {} decodes "
      "{} tokens per sequence; `max_num_batched_tokens` {} is enough for all",
      config.max_num_seqs, most, config.max_num_batched_tokens, decode_q_len,
      int64_t{config.max_num_seqs} * decode_q_len);
  return most;
}

int limit_rule_seqs(const EngineConfig& config, int wanted) {
  const int limit = std::min(config.max_num_rule_seqs, config.max_num_seqs);
  if (wanted == 0 && limit < config.max_num_seqs) {
    log_info(
        "[engine] at most {} of {} sequences in a step may have penalties, logit_bias, "
        "allowed_token_ids, bad_words or min_tokens; `max_num_rule_seqs` allows more",
        limit, config.max_num_seqs);
  }
  return limit;
}

}  // namespace

Status in_range(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(
      fmt::format("[engine] {}: must be {} to {}, got {}", field, low, high, value));
}

Result<EngineConfig> resolve_config(const EngineConfig& wanted, const ModelConfig& model,
                                    const PlatformDefaults& defaults, int num_drafts) {
  if (model.embeds && num_drafts > 0) {
    return invalid_argument(
        "[engine] `speculative_config`: got one for a model that embeds prompts and never decodes, "
        "expected none; leave it out");
  }
  EngineConfig config = wanted;
  config.enforce_eager |= model.embeds;  // it never decodes, and graphs are of decode steps
  const int decode_q_len = 1 + num_drafts;
  if (config.max_num_batched_tokens == 0) {
    const int64_t num_seqs = wanted.max_num_seqs > 0 ? wanted.max_num_seqs : defaults.max_num_seqs;
    const int64_t num_decoded = std::min<int64_t>(num_seqs * decode_q_len, kMaxNumBatchedTokens);
    config.max_num_batched_tokens =
        std::max(defaults.max_num_batched_tokens, static_cast<int>(num_decoded));
  }
  if (config.max_num_seqs == 0) {
    config.max_num_seqs = std::min(defaults.max_num_seqs, config.max_num_batched_tokens);
  }
  if (config.max_num_rule_seqs == 0) config.max_num_rule_seqs = defaults.max_num_rule_seqs;
  QUIRE_RETURN_IF_ERROR(check_config(config));
  QUIRE_RETURN_IF_ERROR(check_step_tokens(config.max_num_batched_tokens, num_drafts));
  config.max_num_seqs = limit_seqs_to_tokens(config, decode_q_len);
  config.max_num_rule_seqs = limit_rule_seqs(config, wanted.max_num_rule_seqs);
  return config;
}

Status check_int8(const EngineConfig& config, const ModelFiles& files) {
  const std::optional<WeightFormat>& format = files.config.format;
  const bool has_integers = format && is_integer(format->scheme);
  if (config.cpu_activations != "int8" || has_integers || has_blocks(*files.weights)) return {};
  return invalid_argument(
      "[engine] cpu_activations: got int8 for a model without matrices of quantized integers, "
      "expected f32 or bf16; or take a GGUF file with quantized blocks, or integers of AWQ, GPTQ "
      "or compressed-tensors");
}

DType choose_dtype(const EngineConfig& config, const ModelConfig& model) {
  const auto forced = config.dtype == "auto" ? std::nullopt : parse_dtype(config.dtype);
  return forced.value_or(model.dtype.value_or(DType::kF32));
}

Result<DType> choose_kv_dtype(const EngineConfig& config, DType dtype_of_model) {
  if (config.kv_cache_dtype == "auto") return dtype_of_model;
  const auto dtype = parse_dtype(config.kv_cache_dtype);
  if (!dtype || *dtype > DType::kI8) {
    return invalid_argument(
        fmt::format("[engine] kv_cache_dtype: must be auto, f32, f16, bf16, fp8 or int8, got {}",
                    config.kv_cache_dtype));
  }
  return *dtype;
}

Result<int> choose_max_model_len(const EngineConfig& config, const ModelConfig& model) {
  const int longest = model.longest_model_len;
  const int wanted = config.max_model_len == 0 ? longest : config.max_model_len;
  if (wanted < 2) {
    return invalid_argument(fmt::format(
        "[engine] the context is too short; got {} tokens (`max_model_len`, or the model's "
        "max_position_embeddings), expected at least 2: one of prompt, one of output",
        wanted));
  }
  if (config.max_model_len == 0) return longest;
  if (config.max_model_len > longest && !config.allow_long_max_model_len) {
    return invalid_argument(
        fmt::format("[engine] max_model_len: must be at most {}, the model's context (or set "
                    "`allow_long_max_model_len`), got {}",
                    longest, config.max_model_len));
  }
  return config.max_model_len;
}

}  // namespace quire

#include "start/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/setting_name.h"
#include "start/settings.h"

namespace quire {
namespace {

// Lowers max_num_seqs so that a step has room for the tokens of all decoding sequences, and warns.
int limit_seqs_to_tokens(int max_num_seqs, int max_num_tokens, int decode_q_len) {
  const int most = std::max(max_num_tokens / decode_q_len, 1);
  if (max_num_seqs <= most) return max_num_seqs;
  constexpr SettingName kStepTokens = {"max_num_batched_tokens"};
  log_warning(
      "[engine] {} {} is lowered to {}: a step of {} {} decodes {} tokens per sequence; {} {} is "
      "enough for all",
      SettingName{"max_num_seqs"}, max_num_seqs, most, kStepTokens, max_num_tokens, decode_q_len,
      kStepTokens, int64_t{max_num_seqs} * decode_q_len);
  return most;
}

int choose_max_num_rule_seqs(int wanted, int by_default, int max_num_seqs) {
  const int limit = std::min(wanted == 0 ? by_default : wanted, max_num_seqs);
  if (wanted == 0 && limit < max_num_seqs) {
    log_info(
        "[engine] at most {} of {} sequences in a step may have penalties, logit_bias, "
        "allowed_token_ids, bad_words or min_tokens; {} allows more",
        limit, max_num_seqs, SettingName{"max_num_rule_seqs"});
  }
  return limit;
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
  if (wanted > longest && !config.allow_long_max_model_len) {
    return invalid_argument(
        fmt::format("[engine] max_model_len: must be at most {}, the model's context (or set "
                    "`allow_long_max_model_len`), got {}",
                    longest, wanted));
  }
  return wanted;
}

}  // namespace

Result<Sizes> choose_sizes(const EngineConfig& config, const ModelConfig& model,
                           const PlatformDefaults& defaults, int num_drafts) {
  if (model.embeds && num_drafts > 0) {
    return invalid_argument(
        "[engine] `speculative_config`: got one for a model that embeds prompts and never decodes, "
        "expected none; leave it out");
  }
  const int decode_q_len = 1 + num_drafts;
  int max_num_tokens = config.max_num_batched_tokens;
  if (max_num_tokens == 0) {
    const int64_t num_seqs = config.max_num_seqs > 0 ? config.max_num_seqs : defaults.max_num_seqs;
    const int64_t num_decoded = std::min<int64_t>(num_seqs * decode_q_len, kMaxNumBatchedTokens);
    max_num_tokens = std::max(defaults.max_num_batched_tokens, static_cast<int>(num_decoded));
  }
  QUIRE_RETURN_IF_ERROR(check_step_tokens(max_num_tokens, num_drafts));
  const int wanted_seqs = config.max_num_seqs > 0 ? config.max_num_seqs
                                                  : std::min(defaults.max_num_seqs, max_num_tokens);
  const int max_num_seqs = limit_seqs_to_tokens(wanted_seqs, max_num_tokens, decode_q_len);
  const int max_num_rule_seqs =
      choose_max_num_rule_seqs(config.max_num_rule_seqs, defaults.max_num_rule_seqs, max_num_seqs);
  QUIRE_ASSIGN_OR_RETURN(const int max_model_len, choose_max_model_len(config, model));
  return Sizes{.max_num_seqs = max_num_seqs,
               .max_num_rule_seqs = max_num_rule_seqs,
               .max_num_tokens = max_num_tokens,
               .max_model_len = max_model_len,
               .block_size = config.block_size,
               .num_drafts = num_drafts};
}

}  // namespace quire

#include "sched/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/numbers.h"
#include "sample/sampler.h"

namespace quire {

bool ranks_before(const Sequence& a, const Sequence& b) {
  return std::tie(a.priority, a.arrival, a.id) < std::tie(b.priority, b.arrival, b.id);
}

int num_tokens_due(const Sequence& seq, int num_drafts) {
  const int num_known = static_cast<int>(seq.token_ids.size());
  if (num_known + seq.num_in_flight >= seq.max_total_tokens) return 0;
  if (seq.is_constrained && seq.num_in_flight > 0) return 0;
  if (seq.decodes()) return 1 + num_drafts;
  return (seq.state == SeqState::kRunning ? seq.num_prefill : num_known) - seq.num_scheduled;
}

int num_step_drafts(const SchedulerConfig& config, int num_decoding) {
  const auto range = std::ranges::find_if(config.draft_ranges, [&](const DraftRange& it) {
    return it.first <= num_decoding && num_decoding <= it.last;
  });
  return range == config.draft_ranges.end() ? config.num_drafts : range->num_drafts;
}

bool has_rules(const SamplingSpec& spec) {
  const SamplingParams& params = *spec.params;
  const bool has_stops = params.min_tokens > 0 && !spec.end_token_ids.empty();
  return has_penalties(params) || has_stops || !params.logit_bias.empty() ||
         !params.allowed_token_ids.empty() || !spec.bad_words_ids.empty();
}

int num_blocks_for(int num_tokens, int block_size) {
  return ceil_div(num_tokens, block_size);
}

int max_kv_slots(const SchedulerConfig& config, const Sequence& seq, int num_tokens) {
  return std::min(num_tokens + config.num_draft_kv_slots, seq.max_total_tokens - 1);
}

int max_blocks_held(const SchedulerConfig& config, const KvTableConfig& table, int num_tokens) {
  const int num_blocks = num_blocks_for(num_tokens, config.block_size);
  if (table.holds_states) return std::min(num_blocks, kMaxStatesHeld);
  if (table.window == 0) return num_blocks;
  const int64_t num_read =
      int64_t{table.window} - 1 + config.max_num_batched_tokens + config.num_draft_kv_slots;
  // The tokens that a step reads may begin and end inside a block.
  return static_cast<int>(std::min<int64_t>(num_blocks, num_read / config.block_size + 2));
}

Status check_servable(const Sequence& seq, const SchedulerConfig& config) {
  const int num_prompt = seq.num_prompt_tokens;
  if (num_prompt < 1) {
    return invalid_argument(fmt::format(
        "[sched] the prompt has too few tokens; got {}, expected at least 1", num_prompt));
  }
  if (static_cast<size_t>(num_prompt) > seq.token_ids.size()) {
    return invalid_argument(fmt::format(
        "[sched] the prompt is longer than the sequence; got {} prompt tokens, expected "
        "at most {}",
        num_prompt, seq.token_ids.size()));
  }
  if (seq.max_total_tokens > config.max_model_len) {
    return invalid_argument(
        fmt::format("[sched] prompt and output are too long; got {} tokens, expected "
                    "at most `max_model_len` {}",
                    seq.max_total_tokens, config.max_model_len));
  }
  if (seq.token_ids.size() >= static_cast<size_t>(std::max(seq.max_total_tokens, 0))) {
    return invalid_argument(
        fmt::format("[sched] the prompt leaves no room for an output token; got {} "
                    "prompt tokens, expected fewer than {}",
                    num_prompt, seq.max_total_tokens));
  }
  if (!config.enable_chunked_prefill && num_prompt > config.max_num_batched_tokens) {
    return invalid_argument(
        fmt::format("[sched] the prompt is too long without chunked prefill; got {} tokens, "
                    "expected at most `max_num_batched_tokens` {}",
                    num_prompt, config.max_num_batched_tokens));
  }
  // The last token is returned but never fed to the model, so it needs no place in the cache.
  for (const KvTableConfig& table : config.tables) {
    const int num_needed = max_blocks_held(config, table, seq.max_total_tokens - 1);
    if (num_needed <= table.num_blocks - 1) continue;
    return invalid_argument(fmt::format(
        "[sched] prompt and output need {} KV blocks of {} tokens; got {} blocks in the cache; "
        "lower max_tokens or raise `kv_cache_memory`",
        num_needed, config.block_size, table.num_blocks - 1));
  }
  return {};
}

}  // namespace quire

// Applies a request's rules to the logits before a token is chosen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "quire/request.h"

namespace quire {

// Rules apply in vLLM's order: allowed ids, bad words, min_tokens, logit bias, penalties
// (repetition, frequency, presence). The object keeps only the parts of the sequence that the
// request's rules need.
class LogitsRules {
 public:
  // Drops ids outside the vocabulary, which cannot be sampled anyway.
  LogitsRules(std::shared_ptr<const SamplingParams> params, std::span<const int32_t> token_ids,
              int num_prompt_tokens, std::vector<int32_t> stop_token_ids,
              std::vector<std::vector<int32_t>> bad_words_ids, int vocab_size);

  bool changes_logits() const;
  void apply(std::span<float> logits) const;
  void append_output(int32_t token_id);

 private:
  struct Seen {
    bool in_prompt = false;
    int num_output = 0;
  };

  bool forbids_stop() const { return num_output_ < params_->min_tokens; }
  void keep_allowed(std::span<float> logits) const;
  void forbid_bad_words(std::span<float> logits) const;
  void apply_penalties(std::span<float> logits) const;

  std::shared_ptr<const SamplingParams> params_;
  std::vector<int32_t> stop_token_ids_;
  std::vector<std::vector<int32_t>> bad_words_ids_;
  bool has_penalties_;
  int num_output_ = 0;
  std::vector<int32_t> output_ids_;         // only with bad words
  std::unordered_map<int32_t, Seen> seen_;  // only with penalties
};

}  // namespace quire

// Samples tokens from logits, as vLLM defines it. These are the reference definitions; a device may
// fuse them, but must agree with them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "quire/request.h"
#include "quire/status.h"

namespace quire {

// The sampler's state of one sequence. It is created when a slot is added and updated with each
// token.
class SamplerState {
 public:
  // token_ids holds all known tokens; those from num_prompt_tokens on are output (after a
  // preemption). bad_words_ids holds each bad word as token ids, with and without a leading space.
  // end_token_ids holds the stop and end-of-sequence ids, which min_tokens forbids.
  SamplerState(std::shared_ptr<const SamplingParams> params, uint64_t seed,
               std::span<const int32_t> token_ids, int num_prompt_tokens,
               std::vector<int32_t> end_token_ids, std::vector<std::vector<int32_t>> bad_words_ids,
               int vocab_size);
  ~SamplerState();
  SamplerState(SamplerState&&) noexcept;
  SamplerState& operator=(SamplerState&&) noexcept;

  // Samples the next token from `logits` ([vocab_size], overwritten) and appends it to the state.
  // The result depends only on the logits, the parameters, the seed and the token's position. Fails
  // on NaN and when no token is allowed. `logprobs` are computed from the original logits, when
  // requested. `mask` is in the form of TokenConstraint::allowed_tokens; without one, every token
  // is allowed.
  Status sample(std::span<float> logits, std::optional<std::span<const uint32_t>> mask,
                int32_t& token_id, PositionLogprobs& logprobs);

  // The last sampled (or known) token, and the number of known tokens.
  int32_t last_token() const;
  int num_tokens() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Fails if no token can be chosen from the model's logits at `position`: NaN, +infinity, or
// -infinity for every token.
Status check_logits(std::span<const float> logits, int64_t position);

// Log-softmax of `logits`, which must pass check_logits: the chosen token with its rank, then the
// num_top most likely, with ties in order of id. As in vLLM, the chosen token's rank is the number
// of tokens that are at least as likely.
PositionLogprobs compute_logprobs(std::span<const float> logits, int32_t chosen, int num_top);

// Whether the parameters change logits by the tokens of the prompt or the output.
bool has_penalties(const SamplingParams& params);

// Applies a request's rules to the logits before a token is chosen, in vLLM's order: allowed ids,
// bad words, min_tokens, logit bias, penalties (repetition, frequency, presence). The object keeps
// only the parts of the sequence that the request's rules need.
class LogitsRules {
 public:
  // Drops ids outside the vocabulary, which cannot be sampled anyway.
  LogitsRules(std::shared_ptr<const SamplingParams> params, std::span<const int32_t> token_ids,
              int num_prompt_tokens, std::vector<int32_t> end_token_ids,
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
  std::vector<int32_t> end_token_ids_;
  std::vector<std::vector<int32_t>> bad_words_ids_;
  bool has_penalties_;
  int num_output_ = 0;
  std::vector<int32_t> output_ids_;         // only with bad words
  std::unordered_map<int32_t, Seen> seen_;  // only with penalties
};

// The errors when no token can be chosen from a position's logits, with the same text on every
// device.
Status nan_logit(int64_t position, int64_t token_id);
Status infinite_logit(int64_t position);
// Every logit is -infinity: in the model's output, or after the request's rules were applied.
Status no_finite_logit(int64_t position);
Status no_token_allowed(int64_t position);

}  // namespace quire

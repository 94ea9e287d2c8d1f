// Samples tokens from logits, as vLLM defines it. These are the reference definitions; a device may
// fuse them, but must agree with them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "quire/request.h"
#include "quire/status.h"

namespace quire {

constexpr int kMaxAnswers = 128;  // per prompt
constexpr int kMaxLogprobs = 20;  // per position
constexpr double kMinRepetitionPenalty = 1e-3;
constexpr double kMaxRepetitionPenalty = 1e3;
// Fails if a value is outside its range, and names the field. vocab_size bounds every token id.
Status validate_sampling_params(const SamplingParams& params, int vocab_size, int max_model_len);

// The sampler's state of one sequence. It is created when a row is added and updated with each
// token.
class SamplerState {
 public:
  // token_ids holds all known tokens; those from num_prompt_tokens on are output (after a
  // preemption). bad_words_ids holds each bad word as token ids, with and without a leading space.
  SamplerState(std::shared_ptr<const SamplingParams> params, uint64_t seed,
               std::span<const int32_t> token_ids, int num_prompt_tokens,
               std::vector<int32_t> stop_token_ids, std::vector<std::vector<int32_t>> bad_words_ids,
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

}  // namespace quire

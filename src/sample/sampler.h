// From logits to a token, as vLLM defines it. These are the plain definitions; a device may fuse
// them, and must agree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "quire/request.h"
#include "quire/status.h"

namespace quire {

constexpr int kMaxAnswers = 128;  // to one prompt
constexpr int kMaxLogprobs = 20;  // at one position
constexpr double kMinRepetitionPenalty = 1e-3;
constexpr double kMaxRepetitionPenalty = 1e3;
// Refuses values outside their range, naming the field; vocab_size bounds every token id.
Status validate_sampling_params(const SamplingParams& params, int vocab_size, int max_model_len);

// What the sampler must remember of one sequence. Made when a row is added, told of each token.
class SamplerState {
 public:
  // token_ids: all known tokens; those from num_prompt_tokens on are output (after a preemption).
  // bad_words_ids: each bad word as token ids (both spellings: with and without a leading space).
  SamplerState(std::shared_ptr<const SamplingParams> params, uint64_t seed,
               std::span<const int32_t> token_ids, int num_prompt_tokens,
               std::vector<int32_t> stop_token_ids, std::vector<std::vector<int32_t>> bad_words_ids,
               int vocab_size);
  ~SamplerState();
  SamplerState(SamplerState&&) noexcept;
  SamplerState& operator=(SamplerState&&) noexcept;

  // Samples the next token from `logits` ([vocab_size], overwritten) and remembers it. The result
  // depends on the logits, the parameters, the seed and the token's position alone. Fails on NaN
  // and where no token may be chosen. `logprobs` are of the logits as they came, when asked for.
  // `mask`: as TokenConstraint::allowed_tokens; without one, any token may come.
  Status sample(std::span<float> logits, std::optional<std::span<const uint32_t>> mask,
                int32_t& token_id, PositionLogprobs& logprobs);

  // The token sampled (or known) last, and how many are known.
  int32_t last_token() const;
  int num_tokens() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Why no token can be chosen from the model's logits at `position`, or ok: NaN, +infinity, or
// -infinity for every token.
Status check_logits(std::span<const float> logits, int64_t position);

// Log-softmax of `logits`, which check_logits accepts: the chosen token with its rank, then the
// num_top most likely, equals in order of id. As in vLLM, the chosen token's rank counts the tokens
// at least as likely as it.
PositionLogprobs compute_logprobs(std::span<const float> logits, int32_t chosen, int num_top);

}  // namespace quire

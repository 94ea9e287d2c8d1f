// Samples tokens from logits by vLLM's definitions. These functions are the reference: a device may
// fuse them, but must give the same results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "quire/request.h"
#include "quire/status.h"
#include "sample/random_choice.h"
#include "sample/rejection.h"

namespace quire {

// The largest logit among the added tokens.
struct LargestLogit {
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

  float logit = -std::numeric_limits<float>::infinity();
  int32_t token_id = kNone;  // the lowest id with that logit
  int32_t nan_id = kNone;    // the lowest id whose logit is NaN

  // The order of the calls does not matter.
  void add(const LargestLogit& other) {
    if (other.logit > logit || (other.logit == logit && other.token_id < token_id)) {
      logit = other.logit;
      token_id = other.token_id;
    }
    nan_id = std::min(nan_id, other.nan_id);
  }
};
// The largest of `logits`. They belong to the tokens from first_id on.
LargestLogit largest_logit(std::span<const float> logits, int32_t first_id);

// The sampler's state of one sequence. It is created when a slot is added and updated with each
// token.
class SamplerState {
 public:
  // token_ids has all known tokens. The tokens from num_prompt_tokens on are output; there are some
  // after a preemption. bad_words_ids has each bad word as token ids, with and without a leading
  // space. end_token_ids has the stop and end-of-sequence ids, which min_tokens forbids.
  SamplerState(std::shared_ptr<const SamplingParams> params, uint64_t seed,
               std::span<const int32_t> token_ids, int num_prompt_tokens,
               std::vector<int32_t> end_token_ids, std::vector<std::vector<int32_t>> bad_words_ids,
               int vocab_size);
  ~SamplerState();
  SamplerState(SamplerState&&) noexcept;
  SamplerState& operator=(SamplerState&&) noexcept;

  // Samples the next token from `logits` ([vocab_size]) and appends it to the state. The result
  // depends only on the logits, the parameters, the seed and the token's position. Fails if a logit
  // is NaN or if no token is allowed. `logprobs` are computed from the original logits, if the
  // request asks for them. `mask` is in the form of TokenConstraint::allowed_tokens; without one,
  // every token is allowed.
  Status sample(std::span<const float> logits, std::optional<std::span<const uint32_t>> mask,
                int32_t& token_id, PositionLogprobs& logprobs);

  // Returns whether ranks that each have the logits of a part of the vocabulary can choose the
  // token without whole logits rows. They exchange the largest logit of each part and, for a random
  // choice, the best token of each part. They choose the same token as choose() for a whole row
  // without a mask, also in steps that compare drafts with sampled tokens. False if the request has
  // rules that change logits, filters, or log probabilities.
  bool chooses_from_parts() const;
  bool is_random() const;
  // The best token of a part. num_drafts: the number of drafts before the position; 0: the next
  // position. largest: the largest logit of all parts.
  ScoredToken best_of_part(std::span<const float> logits, int32_t first_id,
                           const LargestLogit& largest, int num_drafts) const;
  // best: the best token of all parts; used only for a random choice.
  Status choose(const LargestLogit& largest, const ScoredToken& best, int32_t& token_id) const;

  // ---- The parts of sample(), for steps that verify drafts
  // Chooses the token that sample() would sample, without appending it.
  Status choose(std::span<const float> logits, std::optional<std::span<const uint32_t>> mask,
                int32_t& token_id) const;
  // Writes the distribution from which sample() samples, and fails as sample() does. With
  // temperature 0, it is a single token.
  Status distribution(std::span<const float> logits, std::optional<std::span<const uint32_t>> mask,
                      TokenDistribution& target) const;
  // The log probabilities of a token, as sample() reports them; empty unless the request asks for
  // them.
  PositionLogprobs logprobs(std::span<const float> logits, int32_t token_id) const;
  // Appends a known token.
  void append(int32_t token_id);
  // assume() appends a draft as if it were accepted, so that the rules of the next position count
  // it. settle() keeps the first num_accepted of these drafts and removes the others. Call settle()
  // before the next append().
  void assume(int32_t draft);
  void settle(size_t num_accepted);
  // The random numbers of the drafts that follow the known tokens.
  DraftNoise draft_noise() const;

  // The last known token, and the number of known tokens. Both ignore assumed drafts.
  int32_t last_token() const;
  int num_tokens() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The most likely token; of equally likely tokens, the lowest id. Absent if no token can be chosen,
// for example because of a NaN.
std::optional<int32_t> most_likely_token(std::span<const float> logits);

// Returns p1 / (p1 + p2), 0.5 to 1, where p1 >= p2 are the two largest probabilities.
float lead_of_most_likely(std::span<const float> logits);

// Samples a draft from the logits of a drafter, [vocab_size], with the request's temperature and
// filters but not its rules. Writes the draft's distribution to `probs`, [vocab_size]. Absent if no
// token can be chosen, for example because of a NaN.
std::optional<int32_t> sample_draft(std::span<const float> logits, const SamplingParams& params,
                                    const TokenNoise& noise, std::span<float> probs);

// Fails if no token can be chosen from the model's logits at `position`: NaN, +infinity, or
// -infinity for every token.
Status check_logits(std::span<const float> logits, int64_t position);

// Log-softmax of `logits`, which must pass check_logits: the chosen token with its rank, then the
// num_top most likely, with ties in order of id. As in vLLM, the chosen token's rank is the number
// of tokens that are at least as likely.
PositionLogprobs compute_logprobs(std::span<const float> logits, int32_t chosen, int num_top);

// Returns whether the parameters change logits depending on the tokens of the prompt or the output.
bool has_penalties(const SamplingParams& params);

// Applies a request's rules to the logits before a token is chosen, in vLLM's order: allowed ids,
// bad words, min_tokens, logit bias, penalties (repetition, frequency, presence). The object keeps
// only the parts of the sequence that the request's rules need.
class LogitsRules {
 public:
  // Drops ids outside the vocabulary, because they cannot be sampled.
  LogitsRules(std::shared_ptr<const SamplingParams> params, std::span<const int32_t> token_ids,
              int num_prompt_tokens, std::vector<int32_t> end_token_ids,
              std::vector<std::vector<int32_t>> bad_words_ids, int vocab_size);

  bool changes_logits() const;
  void apply(std::span<float> logits) const;
  void append_output(int32_t token_id);
  // Removes the newest output token, which must be `token_id`.
  void remove_output(int32_t token_id);

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

// The errors if no token can be chosen from a position's logits, for all devices.
Status nan_logit(int64_t position, int64_t token_id);
Status infinite_logit(int64_t position);
// no_finite_logit: every logit of the model is -infinity. no_token_allowed: the request's rules
// left every logit at -infinity.
Status no_finite_logit(int64_t position);
Status no_token_allowed(int64_t position);

}  // namespace quire

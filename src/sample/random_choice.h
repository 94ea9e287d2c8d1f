// Samples a token from logits: the random numbers, the filters, and Gumbel-max sampling.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire {

// The temperature below which sampling is greedy, as in vLLM.
inline constexpr float kGreedyBelow = 1e-5F;

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
// bijection of a 128-bit counter under a 64-bit key. It is stateless, and numbers can be computed
// in any order.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Maps bits to a number in (0, 1), never 0 or 1, so that its logarithm is finite and not 0.
constexpr double open_uniform(uint32_t bits) {
  return (bits + 0.5) * 0x1p-32;
}

// Streams of random numbers. They are independent of each other at the same position.
enum class NoiseStream : uint32_t {
  kToken,                // for a token sampled from the target's distribution, as without drafts
  kDraft,                // for the tokens that a drafter samples
  kAcceptance,           // for the decision whether a draft is accepted
  kResidual,             // for the token that replaces a rejected draft
  kSyntheticAcceptance,  // for the number of accepted drafts in measurements
};

// The uniform random number of each token of a vocabulary, at one position of one sequence. It
// depends only on (seed, position, stream, draft_idx, token id). The functions are constexpr
// because GPU kernels call them too.
class TokenNoise {
 public:
  // draft_idx, less than 2^16: the index of a draft in its step, for streams whose `position` is
  // the position of the step's first draft; otherwise 0.
  constexpr TokenNoise(uint64_t seed, uint64_t position, NoiseStream stream = NoiseStream::kToken,
                       uint32_t draft_idx = 0)
      : seed_(seed),
        position_(position),
        domain_(static_cast<uint32_t>(stream) << 16 | draft_idx) {}

  // Writes the numbers of token ids [4 * quad, 4 * quad + 4).
  constexpr void uniform_quad(uint32_t quad, double (&out)[4]) const {
    const PhiloxCounter bits = philox4x32(
        {quad, domain_, static_cast<uint32_t>(position_), static_cast<uint32_t>(position_ >> 32)},
        {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
    for (size_t i = 0; i < 4; ++i) out[i] = open_uniform(bits[i]);
  }

 private:
  uint64_t seed_;
  uint64_t position_;
  uint32_t domain_;
};

struct TokenFilter {
  float temperature = 1.0F;
  int top_k = 0;  // < 1: off
  float top_p = 1.0F;
  float min_p = 0.0F;

  bool keeps_all() const { return top_k < 1 && top_p >= 1.0F && min_p <= 0.0F; }
};

struct Candidate {
  double weight;  // exp((logit - max_logit) / temperature)
  int32_t token_id;
};

// The distribution from which a token is sampled. A candidate's probability is weight / total; the
// probability of every other token is 0.
struct TokenDistribution {
  std::vector<Candidate> candidates;  // in no particular order, each token once
  double total = 0;
};

// Writes to `kept` the tokens of `logits`, [vocab_size], that pass the filter by vLLM's rules, in
// no particular order:
// - min-p keeps tokens whose probability is at least min_p times the largest;
// - top-k keeps every token whose logit is at least the k-th largest, including all ties;
// - top-p keeps the most likely of the tokens that min-p and top-k kept (ties: lowest id first),
//   until they have top_p of the probability of all these tokens. It keeps at least one token.
// max_logit must be the largest of `logits`, and finite. Tokens with logit -inf are never kept.
void filter_tokens(std::span<const float> logits, float max_logit, const TokenFilter& filter,
                   std::vector<Candidate>& kept);

// Gumbel-max sampling in its exponential form: the argmax of weight / -log(u) samples a token in
// proportion to its weight, and needs neither the sum nor an order of the weights. Ties go to the
// lowest id. -1: there are no candidates.
int32_t sample_gumbel_max(std::span<const Candidate> candidates, const TokenNoise& noise);
// Does the same over a whole vocabulary. A cheap upper bound avoids exp() for most weights.
int32_t sample_gumbel_max(std::span<const float> logits, float max_logit, float temperature,
                          const TokenNoise& noise);

// A token and its score in Gumbel-max sampling, weight / -log(u).
struct ScoredToken {
  double score = -1;  // below every token's score
  int64_t token_id = 0;

  // Keeps the better of the two tokens. The order of the calls does not matter.
  void add(const ScoredToken& other) {
    if (other.score < score || (other.score == score && other.token_id > token_id)) return;
    *this = other;
  }
};
// Returns the token with the best score in a part of the vocabulary: the tokens from first_id on,
// with these logits. The best of all parts is the token that sample_gumbel_max() samples. max_logit
// is the largest logit of the vocabulary.
ScoredToken best_gumbel(std::span<const float> logits, int32_t first_id, float max_logit,
                        float temperature, const TokenNoise& noise);

}  // namespace quire

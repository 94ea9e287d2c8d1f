// Gumbel-max sampling as in sample/random_choice.h, with the same random numbers: the token with
// the largest weight / -log(u) wins. This is also the token with the largest logit / temperature -
// log(-log(u)).
#pragma once

#include <type_traits>

#include "cuda/sample/logits.cuh"

namespace quire::cuda {

// Equals TokenNoise and philox4x32 on the host: it depends only on (seed, position, token id).
__device__ __forceinline__ uint4 noise_quad(uint32_t quad, uint64_t seed, uint64_t position) {
  uint4 c =
      make_uint4(quad, 0, static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32));
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c.x;
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c.z;
    c = make_uint4(
        static_cast<uint32_t>(product1 >> 32) ^ c.y ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ c.w ^ key1, static_cast<uint32_t>(product0));
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return c;
}

struct Winner {
  double score = -1.0 / 0.0;
  int32_t token_id = kNoToken;

  __device__ __forceinline__ void add(double other, int32_t id) {
    if (other > score || (other == score && id < token_id)) {
      score = other;
      token_id = id;
    }
  }
};

struct GumbelParams {
  uint64_t seed;
  uint64_t position;
  double inverse;  // of the temperature
  float anchor;    // subtracted from logits

  __device__ GumbelParams(const SlotState& state, float from)
      : seed(state.seed),
        position(static_cast<uint64_t>(state.position)),
        inverse(1.0 / static_cast<double>(state.temperature)),
        anchor(from) {}

  __device__ double score(float logit, uint32_t bits) const {
    const double u = (static_cast<double>(bits) + 0.5) * 0x1p-32;
    return (static_cast<double>(logit) - static_cast<double>(anchor)) * inverse - log(-log(u));
  }
  // For one token, when the quad's other tokens do not matter.
  __device__ double score_of(float logit, int32_t id) const {
    const uint4 bits = noise_quad(static_cast<uint32_t>(id) / 4, seed, position);
    const int j = id % 4;
    return score(logit, j == 0 ? bits.x : j == 1 ? bits.y : j == 2 ? bits.z : bits.w);
  }
};

// Gumbel-max sampling of a thread's tokens in fp32 with error bounds, so that fp64 is needed only
// for the few tokens that may win.
class RoughGumbel {
 public:
  __device__ RoughGumbel(const GumbelParams& params)
      : anchor_(params.anchor), inverse_(static_cast<float>(params.inverse)) {}

  __device__ __forceinline__ void add(float logit, uint32_t bits, int32_t id) {
    const float t = (logit - anchor_) * inverse_;
    // A float has 24 bits, so u = bits / 2^32 rounds to 0 or 1 near the ends. For u > 0.99, the
    // series of -log(1 - x) with x = 1 - u preserves precision; otherwise x is u.
    const bool is_near_one = bits > kSeriesFrom;
    const float x = (static_cast<float>(is_near_one ? ~bits : bits) + 0.5F) * 0x1p-32F;
    const float exponential = is_near_one ? x + 0.5F * x * x : -__logf(x);
    const float score = t - __logf(exponential);
    const float error = 2e-4F + 5e-7F * fabsf(t);
    const float high = score + error;
    if (score - error > low_) {
      other_high_ = fmaxf(other_high_, high_);
      low_ = score - error;
      high_ = high;
      id_ = id;
      logit_ = logit;
    } else {
      other_high_ = fmaxf(other_high_, high);
    }
  }

  __device__ float low() const { return low_; }
  __device__ int32_t token_id() const { return id_; }
  __device__ float logit() const { return logit_; }
  // Whether any of this thread's tokens may win, given that the thread block's best score is at
  // least `best_low`.
  __device__ bool may_win(float best_low) const { return high_ >= best_low && id_ != kNoToken; }
  // Whether a token other than token_id() may win.
  __device__ bool is_close(float best_low) const { return other_high_ >= best_low; }

 private:
  static constexpr uint32_t kSeriesFrom = 4252017623U;  // random bits of u = 0.99

  float anchor_, inverse_;
  float low_ = minus_infinity();
  float high_ = minus_infinity();
  float other_high_ = minus_infinity();
  float logit_ = 0;
  int32_t id_ = kNoToken;
};

struct SharedWinner {
  double score;
  int32_t token_id;
  __device__ static SharedWinner shuffle(SharedWinner x, int distance) {
    return {__shfl_xor_sync(0xFFFFFFFFU, x.score, distance),
            __shfl_xor_sync(0xFFFFFFFFU, x.token_id, distance)};
  }
};
__device__ inline Winner block_winner(const Winner& mine) {
  const SharedWinner all =
      block_reduce(SharedWinner{mine.score, mine.token_id}, [](auto a, auto b) {
        const bool first = a.score > b.score || (a.score == b.score && a.token_id <= b.token_id);
        return first ? a : b;
      });
  Winner winner;
  winner.add(all.score, all.token_id);
  return winner;
}

// Gumbel-max sampling over the tokens of quads [first, end) for which `joins(logit, id)` is true.
// `change(q, quad)` is called first for each quad and may modify it.
template <typename Change, typename Joins>
__device__ Winner sample_gumbel_max(const LogitsRow& row, int32_t first, int32_t end,
                                    const GumbelParams& params, Change change, Joins joins) {
  RoughGumbel rough(params);
  const auto visit = [&](auto in_flight, auto add) {
    for_each_quad<in_flight()>(row, first, end, [&](int32_t q, Quad quad) {
      change(q, quad);
      bool join[4];
      bool any = false;
#pragma unroll
      for (int j = 0; j < 4; ++j) any |= join[j] = joins(quad.x[j], q * 4 + j);
      if (!any) return;
      const uint4 bits = noise_quad(static_cast<uint32_t>(q), params.seed, params.position);
      if (join[0]) add(quad.x[0], bits.x, q * 4);
      if (join[1]) add(quad.x[1], bits.y, q * 4 + 1);
      if (join[2]) add(quad.x[2], bits.z, q * 4 + 2);
      if (join[3]) add(quad.x[3], bits.w, q * 4 + 3);
    });
  };
  visit(std::integral_constant<int, 2>(),
        [&](float x, uint32_t bits, int32_t id) { rough.add(x, bits, id); });
  const float best_low = block_max(rough.low());
  Winner winner;
  if (rough.is_close(best_low)) {  // rare: this thread visits all of its tokens again
    visit(std::integral_constant<int, 1>(),
          [&](float x, uint32_t bits, int32_t id) { winner.add(params.score(x, bits), id); });
  } else if (rough.may_win(best_low)) {
    winner.add(params.score_of(rough.logit(), rough.token_id()), rough.token_id());
  }
  return block_winner(winner);
}

}  // namespace quire::cuda

#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/config.h"

namespace quire {
namespace {

std::vector<double> plain_frequencies(double theta, int rope_dim) {
  std::vector<double> inv_freq;
  for (int i = 0; i < rope_dim; i += 2) {
    inv_freq.push_back(1.0 / std::pow(theta, static_cast<double>(i) / rope_dim));
  }
  return inv_freq;
}

// transformers computes the NTK base (bloc97, emozilla 2023) from the longest sequence in the batch
// so far, so that a sequence's output depends on the other sequences and on when its keys were
// cached. Here max_model_len fixes the base for the engine: unscaled if max_model_len is within the
// model's own length, otherwise the base that transformers uses at max_model_len.
double dynamic_theta(const RopeConfig& rope, int rope_dim, int max_position_embeddings,
                     int max_model_len) {
  const double exponent = static_cast<double>(rope_dim) / std::max(rope_dim - 2, 1);
  if (rope.ntk_alpha > 0.0) return rope.theta * std::pow(rope.ntk_alpha, exponent);
  if (max_model_len <= max_position_embeddings || rope_dim <= 2) return rope.theta;
  const double length_ratio = static_cast<double>(max_model_len) / max_position_embeddings;
  const double scale = rope.factor * length_ratio - (rope.factor - 1.0);
  return rope.theta * std::pow(scale, exponent);
}

// Llama 3.1: long wavelengths are interpolated, short ones are kept, and wavelengths between them
// are blended.
double llama3_frequency(const RopeConfig& rope, double inv_freq) {
  const double original = rope.original_max_position_embeddings;
  const double wavelength = 2.0 * std::numbers::pi / inv_freq;
  if (wavelength < original / rope.high_freq_factor) return inv_freq;
  if (wavelength > original / rope.low_freq_factor) return inv_freq / rope.factor;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - smooth) * inv_freq / rope.factor + smooth * inv_freq;
}

// YaRN (Peng et al. 2023, arXiv 2309.00071), section 3.2: the dimension that makes num_rotations
// turns over the original length.
double yarn_dimension(const RopeConfig& rope, int rope_dim, double num_rotations) {
  const double original = rope.original_max_position_embeddings;
  return rope_dim * std::log(original / (num_rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

void scale_yarn(const RopeConfig& rope, int rope_dim, std::vector<double>& inv_freq) {
  double low = yarn_dimension(rope, rope_dim, rope.beta_fast);
  double high = yarn_dimension(rope, rope_dim, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope_dim - 1.0);
  if (low == high) high += 0.001;  // avoid a ramp of zero width
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] = inv_freq[i] / rope.factor * ramp + inv_freq[i] * (1.0 - ramp);
  }
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double yarn_attention_factor(const RopeConfig& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.mscale.value_or(0.0) != 0.0 && rope.mscale_all_dim.value_or(0.0) != 0.0) {
    return yarn_magnitude(rope.factor, *rope.mscale) /
           yarn_magnitude(rope.factor, *rope.mscale_all_dim);
  }
  return yarn_magnitude(rope.factor, 1.0);
}

// LongRoPE (Ding et al. 2024, https://arxiv.org/abs/2402.13753).
double longrope_attention_factor(const RopeConfig& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.factor <= 1.0) return 1.0;
  return std::sqrt(1.0 + std::log(rope.factor) / std::log(rope.original_max_position_embeddings));
}

void divide(const std::vector<double>& divisors, std::vector<double>& inv_freq) {
  for (size_t i = 0; i < std::min(inv_freq.size(), divisors.size()); ++i) {
    inv_freq[i] /= divisors[i];
  }
}

// The number of positions times the factor, at most kMaxModelLen.
int stretched(int num_positions, double factor) {
  return static_cast<int>(std::min(num_positions * factor, double{kMaxModelLen}));
}

}  // namespace

int longest_context(const RopeConfig& rope, int max_position_embeddings) {
  switch (rope.type) {
    case RopeType::kNone:
    case RopeType::kDefault:
    case RopeType::kLlama3:  // max_position_embeddings already includes the scaling
    case RopeType::kLongRope:
    case RopeType::kDivisors:
    case RopeType::kProportional:
      break;
    case RopeType::kDynamic:
      if (rope.ntk_alpha > 0.0) break;
      return stretched(max_position_embeddings, rope.factor);
    case RopeType::kLinear:
      return stretched(max_position_embeddings, rope.factor);
    case RopeType::kYarn:
      return std::max(stretched(max_position_embeddings, 1.0),
                      stretched(rope.original_max_position_embeddings, rope.factor));
  }
  return stretched(max_position_embeddings, 1.0);
}

int rotated_dim(const RopeConfig& rope, int head_dim) {
  if (rope.head_dim > 0) head_dim = rope.head_dim;
  return rope.type == RopeType::kProportional ? head_dim
                                              : static_cast<int>(head_dim * rope.rotated_part);
}

float yarn_score_scale(const RopeConfig& rope) {
  if (rope.type != RopeType::kYarn) return 1.0F;
  const double magnitude = yarn_magnitude(rope.factor, rope.mscale_all_dim.value_or(0.0));
  return static_cast<float>(magnitude * magnitude);
}

RopeFrequencies rope_frequencies(const RopeConfig& rope, int rope_dim, int max_position_embeddings,
                                 int max_model_len) {
  const double theta = rope.type == RopeType::kDynamic
                           ? dynamic_theta(rope, rope_dim, max_position_embeddings, max_model_len)
                           : rope.theta;
  RopeFrequencies result{plain_frequencies(theta, rope_dim), 1.0};
  switch (rope.type) {
    case RopeType::kNone:
      std::ranges::fill(result.inv_freq, 0.0);
      break;
    case RopeType::kDefault:
    case RopeType::kDynamic:
      break;
    case RopeType::kLinear:
      for (double& frequency : result.inv_freq) frequency /= rope.factor;
      break;
    case RopeType::kLlama3:
      for (double& frequency : result.inv_freq) frequency = llama3_frequency(rope, frequency);
      break;
    case RopeType::kYarn:
      scale_yarn(rope, rope_dim, result.inv_freq);
      result.attention_factor = yarn_attention_factor(rope);
      break;
    case RopeType::kLongRope:
      divide(max_model_len > rope.original_max_position_embeddings ? rope.long_divisors
                                                                   : rope.divisors,
             result.inv_freq);
      result.attention_factor = longrope_attention_factor(rope);
      break;
    case RopeType::kDivisors:
      divide(rope.divisors, result.inv_freq);
      break;
    case RopeType::kProportional: {
      const auto num_turning = static_cast<int>(rope.rotated_part * rope_dim) / 2;
      std::fill(result.inv_freq.begin() + num_turning, result.inv_freq.end(), 0.0);
      break;
    }
  }
  return result;
}

}  // namespace quire

// Rotary position embedding: from a checkpoint's rope parameters to one frequency a pair of
// elements. The definitions are those of transformers' modeling_rope_utils.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace quire {

enum class RopeType { kDefault, kLinear, kDynamic, kLlama3, kYarn };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;  // how much longer contexts become; every type but kDefault
  // The length before scaling: llama3, yarn.
  int original_max_position_embeddings = 0;
  // llama3
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // yarn
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  // the ramp's ends are rounded outwards to whole dimensions
  std::optional<double> attention_factor;
  std::optional<double> mscale;
  std::optional<double> mscale_all_dim;
};

struct RopeFrequencies {
  std::vector<double> inv_freq;   // [rope_dim / 2], radians a position
  double attention_factor = 1.0;  // multiplies cosines and sines
};

// The longest context that the scaling stretches the model's positions to, at most kMaxModelLen.
int longest_context(const RopeConfig& rope, int max_position_embeddings);

// rope_dim: even, at least 2. max_model_len matters to kDynamic only.
RopeFrequencies rope_frequencies(const RopeConfig& rope, int rope_dim, int max_position_embeddings,
                                 int max_model_len);

}  // namespace quire

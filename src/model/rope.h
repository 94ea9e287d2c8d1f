// Rotary position embedding: converts a checkpoint's RoPE parameters to one frequency per pair of
// elements. The definitions are those of transformers' modeling_rope_utils.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace quire {

enum class RopeType { kDefault, kLinear, kDynamic, kLlama3, kYarn, kDivisors };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;  // context extension; all types except kDefault
  // llama3 and yarn: the length before scaling.
  int original_max_position_embeddings = 0;
  // llama3
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // yarn
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  // round the ramp's ends outwards to whole dimensions
  std::optional<double> attention_factor;
  std::optional<double> mscale;
  std::optional<double> mscale_all_dim;
  // divisors: one per frequency, as GGUF files store the scaling of Llama 3
  std::vector<double> divisors;
};

struct RopeFrequencies {
  std::vector<double> inv_freq;   // [rope_dim / 2], radians per position
  double attention_factor = 1.0;  // multiplies cosines and sines
};

// The longest context after scaling, at most kMaxModelLen.
int longest_context(const RopeConfig& rope, int max_position_embeddings);

// DeepSeek multiplies the scale of attention by this number: the square of YaRN's magnitude for
// mscale_all_dim; 1 without it.
float yarn_score_scale(const RopeConfig& rope);

// rope_dim is even and at least 2. Only kDynamic uses max_model_len.
RopeFrequencies rope_frequencies(const RopeConfig& rope, int rope_dim, int max_position_embeddings,
                                 int max_model_len);

}  // namespace quire

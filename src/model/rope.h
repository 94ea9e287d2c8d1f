// Rotary position embedding: converts a checkpoint's RoPE parameters to one frequency per pair of
// elements. The definitions are those of transformers' modeling_rope_utils.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace quire {

enum class RopeType {
  kNone,  // the layer has no positions: every angle is 0
  kDefault,
  kLinear,
  kDynamic,
  kLlama3,
  kYarn,
  kLongRope,
  kDivisors,
  // The frequencies of whole heads; all but the first `rotated_part` of them are 0 (Gemma 4).
  kProportional,
};

// Multiplies the queries of later positions by 1 + beta * log(1 + floor((position + offset) /
// period)), so that attention over a long context stays sharp.
struct QueryScale {
  double beta = 0.0;  // 0: queries are not scaled
  double period = 1.0;
  int offset = 0;
};

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double rotated_part = 1.0;  // of a head's elements; the others are not rotated
  int head_dim = 0;           // of the layers with this rotation; 0: DecoderConfig::head_dim
  double factor = 1.0;        // context extension; all types except kNone and kDefault
  // llama3, yarn and longrope: the length before scaling.
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
  // dynamic: scales theta for contexts of every length (Hunyuan); 0: theta depends on the length
  double ntk_alpha = 0.0;
  // One divisor per frequency. kDivisors: GGUF files store the scaling of Llama 3 in `divisors`.
  // longrope: `divisors` is for contexts of the original length, `long_divisors` for longer ones.
  std::vector<double> divisors;
  std::vector<double> long_divisors;
  QueryScale query_scale;
};

// The number of a head's elements that are rotated, those with an angle of 0 included.
int rotated_dim(const RopeConfig& rope, int head_dim);

struct RopeFrequencies {
  std::vector<double> inv_freq;   // [rope_dim / 2], radians per position
  double attention_factor = 1.0;  // multiplies cosines and sines
};

// The longest context after scaling, at most kMaxModelLen.
int longest_context(const RopeConfig& rope, int max_position_embeddings);

// DeepSeek multiplies the scale of attention by this number: the square of YaRN's magnitude for
// mscale_all_dim; 1 without it.
float yarn_score_scale(const RopeConfig& rope);

// rope_dim is even and at least 2. Only kDynamic and kLongRope use max_model_len. It fixes the
// frequencies for the engine, so that a sequence's output does not depend on other sequences.
RopeFrequencies rope_frequencies(const RopeConfig& rope, int rope_dim, int max_position_embeddings,
                                 int max_model_len);

}  // namespace quire

// Multi-head latent attention (DeepSeek-V2, https://arxiv.org/abs/2405.04434): keys and values of
// all heads are products of one latent vector per token, which the cache holds beside one rotated
// key. This is the part that decoders share: configuration, weights, and the step.
//
// The products are absorbed: the queries are multiplied by each head's matrix of keys, and the
// output of attention by its matrix of values, instead of the cached vectors. Attention then has
// one KV head, whose keys are [latent | rotated key] and whose values are the latents. The absorbed
// form takes more multiplications, which slows long prompts, but reads less memory in decode, which
// memory bandwidth limits. If the step's prefill plan offers the expanded form (attn/expansion.h),
// prompts take it: keys and values of every head are computed from the latent vectors by the same
// matrices. The plans of a CPU have only the absorbed form.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "attn/expansion.h"
#include "model/model.h"
#include "model/weights.h"
#include "ops/latent_ops.h"

namespace quire {

class ConfigFields;
struct DecoderConfig;

struct MlaConfig {
  int q_lora_rank = 0;  // width of the queries' own latent vector; 0: they have none
  int kv_lora_rank = 0;
  int nope_head_dim = 0;  // of a query and key head, without positions
  int rope_head_dim = 0;  // of a query head, and of the rotated key that all heads share
  int v_head_dim = 0;
  RotaryPairs pairs = RotaryPairs::kNeighbours;

  int q_head_dim() const { return nope_head_dim + rope_head_dim; }
  int latent_head_dim() const { return kv_lora_rank + rope_head_dim; }
};

// The default of head_dim for these architectures, whose hidden_size / num_attention_heads need not
// be a whole number; read_deepseek_mla() replaces it.
inline constexpr int kHeadDimOfMla = 64;

// Reads the fields of DeepSeek's architectures. The rotation has been read before. Sets
// DecoderConfig::mla, head_dim and attention_scale.
void read_deepseek_mla(ConfigFields& fields, DecoderConfig& decoder);

// One rank's matrices of one layer, besides the output projection.
struct MlaLayer {
  std::unique_ptr<Linear> q_a;          // [q_lora_rank, hidden], or null
  Tensor q_a_norm;                      // [q_lora_rank], or empty
  std::unique_ptr<Linear> q;            // [heads * q_head_dim, q_lora_rank or hidden]
  std::unique_ptr<Linear> kv_a;         // [latent_head_dim, hidden]
  Tensor kv_a_norm;                     // [kv_lora_rank]
  std::unique_ptr<PerHeadLinear> k_up;  // by head: [kv_lora_rank, nope_head_dim]
  std::unique_ptr<PerHeadLinear> v_up;  // by head: [v_head_dim, kv_lora_rank]
};

// Adds the bindings of a layer's matrices, and of its output projection `o`.
void add_mla_weights(const DecoderConfig& config, int64_t hidden_size, const std::string& prefix,
                     const std::optional<WeightFormat>& format, MlaLayer& layer,
                     std::unique_ptr<Linear>& o, WeightGroup& group);

// The inner values of one layer for `num_tokens` tokens, in one scratch buffer. `out` is in the
// memory of `q_absorbed`, and `expanded` in the memory of `attended`. The expanded form therefore
// needs no further activations.
class MlaViews {
 public:
  // Elements per token, of one rank.
  static int64_t width(const MlaConfig& config, int num_heads);

  // `scratch` [num_tokens, at least width()], dense.
  MlaViews(const MlaConfig& config, int num_heads, const TensorView& scratch);

  TensorView q_a;         // [num_tokens, q_lora_rank]
  TensorView latent;      // [num_tokens, latent_head_dim]
  TensorView q;           // [num_tokens, num_heads, q_head_dim]
  TensorView q_absorbed;  // [num_tokens, num_heads, latent_head_dim]
  TensorView attended;    // [num_tokens, num_heads, kv_lora_rank]
  TensorView out;         // [num_tokens, num_heads, v_head_dim]
  TensorView expanded;    // ExpandedCall::scratch
};

// Computes q and latent from the input x of a layer.
void project_latent(const MlaLayer& layer, const TensorView& x, const MlaViews& views, Ops& ops);
// Writes latent to the cache. Computes q_absorbed of the first `num_absorbed` tokens. Rotates q of
// the other tokens, which are expanded. `call` has the step's angles, cache and slots.
void rotate_and_cache_latent(const MlaConfig& config, const MlaLayer& layer, const MlaViews& views,
                             int64_t num_absorbed, const LatentRopeAndCache& call, Ops& ops);
// attended → out, for the first `num_absorbed` tokens.
void project_values(const MlaLayer& layer, const MlaViews& views, int64_t num_absorbed, Ops& ops);

// Expands latent vectors by one layer's matrices.
class MlaExpander final : public LatentExpander {
 public:
  MlaExpander(const MlaLayer& layer, LatentExpansionOps& ops) : layer_(layer), ops_(ops) {}

  void expand(TensorView latents, TensorView keys, TensorView values) override {
    ops_.shared_linear_transposed(*layer_.k_up, latents, keys);
    ops_.shared_linear(*layer_.v_up, latents, values);
  }

 private:
  const MlaLayer& layer_;
  LatentExpansionOps& ops_;
};

}  // namespace quire

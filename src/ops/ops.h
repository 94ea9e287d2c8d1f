// The operations that every model is built from, the same for every device, and the optional parts
// of a device. Each operation is as coarse as the best fused kernel for it. It enqueues its work
// into the stream of its Ops, and neither allocates nor waits.
#pragma once

#include <cstdint>
#include <optional>

#include "kv/kv_layout.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

class Collectives;
class ExpertOps;
class LatentOps;
class StateOps;
class LayerTailOps;
class WeightStore;

// A weight matrix [out_features, in_features] and an optional bias, in the device's own layout. The
// scheme of the stored weights is hidden from the model.
class Linear {
 public:
  virtual ~Linear() = default;
  virtual int64_t in_features() const = 0;
  virtual int64_t out_features() const = 0;
  virtual size_t num_bytes() const = 0;

  // The token id of row 0, in a rank's part of a vocabulary matrix. Absent: the matrix is whole.
  std::optional<int64_t> first_token_id() const { return first_token_id_; }
  void set_first_token_id(int64_t id) { first_token_id_ = id; }

 private:
  std::optional<int64_t> first_token_id_;
};

// The activation of a gated MLP.
enum class Activation {
  kSilu,      // x / (1 + exp(-x))
  kGelu,      // x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  // Takes a gate and an up at once: g = min(gate, 7), u = clamp(up, -7, 7);
  // (u + 1) * g / (1 + exp(-1.702 g)). A NaN stays a NaN.
  kClampedSwiglu,
};
inline constexpr float kSwigluAlpha = 1.702F;
inline constexpr float kSwigluLimit = 7.0F;

// The pair of elements, among a head's first rope_dim, that angle i rotates.
enum class RotaryPairs {
  kHalves,      // i and i + rope_dim / 2, as Hugging Face's Llama
  kNeighbours,  // 2 i and 2 i + 1, as GPT-J
};

// An RMSNorm of the residual, after the addition of a sub-layer's output to it: residual += delta;
// residual / sqrt(mean(residual^2) + eps) * weight, per row.
struct ResidualNorm {
  TensorView residual;    // in; also out, if something is added
  TensorView delta = {};  // data null: nothing is added
  // For a norm that multiplies by 1 + w, the 1 is added when the weight is loaded. Null: there is
  // no norm, so the result is the residual itself.
  const float* weight = nullptr;
  float eps = 0.0F;
  // Each of several ranks has a part of delta. The sum is added; delta is undefined afterwards.
  bool sums_ranks = false;
  // Device, one number that multiplies the residual after the addition; only with a delta. Null: 1.
  const float* scale = nullptr;
};

// Arguments of Ops::gated_mlp. All tensors are [num_tokens, width].
struct GatedMlp {
  const Linear* gate_up = nullptr;  // the rows of gate, then of up
  const Linear* down = nullptr;
  Activation activation = Activation::kSilu;
  std::optional<ResidualNorm> norm = {};  // computes x, which then is scratch
  TensorView x;
  TensorView out;  // may be norm->delta
  // Scratch; its content is undefined afterwards.
  TensorView gate_up_out;
  TensorView product;
};

// The rounding of the inputs of products on a CPU. The inputs are F32.
enum class InputRounding {
  kNone,
  kBf16,  // with BF16 weights
  kInt8,  // with quantized weights: to 8 bits with a scale per 32, if faster
};

// Two RMSNorms in place: over all queries of a token, and over all its keys. Each of several ranks
// has the queries and keys of its own heads; the means are over all ranks.
struct WideNorm {
  TensorView qkv;       // [num_tokens, at least q_width + k_width]: the queries, then the keys
  int64_t q_width = 0;  // of this rank
  int64_t k_width = 0;
  const float* q_norm = nullptr;  // [q_width] weights
  const float* k_norm = nullptr;  // [k_width] weights
  float eps = 0.0F;
  // F32 [num_tokens, 2], scratch. Its memory has room for an even number of tokens, because a GPU
  // sums whole vectors of 16 bytes over its ranks.
  TensorView sums;
};

// The function that makes a gate's factor from its number.
enum class GateFunction {
  kIdentity,
  kSigmoid,   // 1 / (1 + exp(-x))
  kSoftplus,  // log(1 + exp(x))
};

// x[t, i] *= function(gates[t, i / (width of x / width of gates)]), in place: one gate per element,
// per head, or per row.
struct Gating {
  TensorView x;      // [num_tokens, width], in the type of the activations
  TensorView gates;  // [num_tokens, a divisor of width]; F32, or in the type of x
  GateFunction function = GateFunction::kIdentity;
};

// A scale of queries that grows with their position:
// 1 + beta * log(1 + floor((position + offset) / period)).
struct PositionScale {
  float beta = 0.0F;
  float period = 1.0F;
  float offset = 0.0F;
};

// Arguments of QK-norm, rotation and cache write. For each query and key head of each token: an
// optional RMSNorm over head_dim, the rotation of the first rope_dim elements, and the write of
// keys and values to the cache.
struct RopeAndCache {
  // [num_tokens, row_width()]: queries, keys, and values unless k_is_v
  TensorView qkv;
  TensorView q_out;    // [num_tokens, num_heads, head_dim]
  TensorView cos_sin;  // F32 [num_tokens, rope_dim]: rope_dim/2 cosines, then as many sines
  RotaryPairs pairs = RotaryPairs::kHalves;
  const float* q_norm = nullptr;  // [head_dim] weights; null: no norm
  const float* k_norm = nullptr;
  const float* v_norm = nullptr;  // [value_dim()]
  float norm_eps = 0.0F;
  bool norms_after_rotation = false;  // otherwise the norm precedes the rotation
  // The values are the keys before norm and rotation, so that qkv has no values of their own.
  bool k_is_v = false;
  // Device, F32 [num_tokens]: multiplies the queries of each token, after norm and rotation. Null:
  // none.
  const float* q_scale = nullptr;
  int num_heads = 0;  // 0: qkv has keys and values alone, and q_out is empty
  int num_kv_heads = 0;
  int head_dim = 0;
  int head_dim_v = 0;        // 0: head_dim
  float value_scale = 1.0F;  // multiplies the values before the write
  int page_size = 0;
  KvCacheView kv;
  const int64_t* kv_slots = nullptr;  // device, [num_tokens]; < 0: not written

  int value_dim() const { return head_dim_v > 0 ? head_dim_v : head_dim; }
  int64_t row_width() const {
    const int64_t values = k_is_v ? 0 : int64_t{num_kv_heads} * value_dim();
    return int64_t{num_heads + num_kv_heads} * head_dim + values;
  }
};

class Ops {
 public:
  virtual ~Ops() = default;

  // The stream of every operation. A second stream needs a second Ops, because the workspaces of
  // operations serve one stream.
  virtual Stream& stream() = 0;

  // The parts of the device that only some models need; null: the device does not have the part.
  // collectives() is null if the device is the only rank of its model.
  virtual ExpertOps* experts() const { return nullptr; }
  virtual LatentOps* latents() const { return nullptr; }
  virtual StateOps* states() const { return nullptr; }
  virtual Collectives* collectives() const { return nullptr; }
  virtual LayerTailOps* layer_tails() const { return nullptr; }

  // Makes the weights that these operations read.
  virtual WeightStore& weights() const = 0;

  // The type of activations: F32 on a CPU.
  virtual DType activation_dtype() const = 0;

  virtual Result<Tensor> allocate(const Shape& shape, DType dtype) = 0;
  // Allocates a KV cache. Any thread may read any part of it, so a CPU with several NUMA nodes
  // distributes its pages over the nodes.
  virtual Result<Tensor> allocate_cache(const Shape& shape, DType dtype) {
    return allocate(shape, dtype);
  }

  // out[t, :] = scale * row ids[t] of the table. The host has already checked the ids. If the table
  // is a rank's part (Linear::first_token_id), tokens of the other parts get zeros.
  virtual void embed(const Linear& table, const int32_t* ids, float scale, TensorView out) = 0;
  // out = the norm. If nothing is added or there is no norm, out may be the residual. With
  // sums_ranks and several ranks, this is a collective.
  virtual void residual_norm(const ResidualNorm& norm, TensorView out) = 0;
  // out[t, n] = sum_k x[t, k] * w[n, k] + bias[n]. On a CPU the bits of row t do not depend on the
  // number of rows; a GPU uses the fastest order of summation for that number.
  virtual void linear(const Linear& w, TensorView x, TensorView out) = 0;
  // out = linear(w, the norm). A device may compute it without writing the norm. `scratch`, of the
  // residual's shape, is undefined afterwards. If nothing is added, `scratch` may be the residual.
  virtual void norm_linear(const ResidualNorm& norm, const Linear& w, TensorView scratch,
                           TensorView out) {
    linear(w, normed(norm, scratch), out);
  }
  // cos_sin[t] = {cos, sin}(positions[t] * inv_freq) * attention_factor.
  virtual void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                           TensorView cos_sin) = 0;
  // out[t] = the scale of positions[t]; out: F32 [num_tokens].
  virtual void position_scales(const PositionScale& scale, const int32_t* positions,
                               TensorView out) = 0;
  // With several ranks, this is a collective.
  virtual void wide_norm(const WideNorm& norm) = 0;
  virtual void rope_and_cache(const RopeAndCache& args) = 0;
  // out[t, i] = activation(gate_up[t, i]) * gate_up[t, n + i], gate_up: [num_tokens, 2 n].
  // kClampedSwiglu is a function of both elements.
  virtual void gated_mul(Activation activation, TensorView gate_up, TensorView out) = 0;
  // out = linear(down, gated_mul(linear(gate_up, x))), after x = the norm, if there is one.
  virtual void gated_mlp(const GatedMlp& mlp) {
    linear(*mlp.gate_up, mlp.norm ? normed(*mlp.norm, mlp.x) : mlp.x, mlp.gate_up_out);
    gated_mul(mlp.activation, mlp.gate_up_out, mlp.product);
    linear(*mlp.down, mlp.product, mlp.out);
  }
  // out[t, i] = activation(gate[t, i]) * up[t, first_column + i], gate and out: [num_tokens, n].
  virtual void gated_mul_columns(Activation activation, TensorView gate, TensorView up,
                                 int64_t first_column, TensorView out) = 0;
  virtual void gate(const Gating& gating) = 0;
  // x = cap * tanh(x / cap), x: F32 rows of logits.
  virtual void soft_cap(float cap, TensorView x) = 0;
  // out[i, :] = x[rows[i], :].
  virtual void gather_rows(TensorView x, const int32_t* rows, TensorView out) = 0;
  // out[t, first_column + i] = x[t, i]; the other columns of out are kept. x and out are in the
  // type of the activations.
  virtual void write_columns(TensorView x, TensorView out, int64_t first_column) = 0;

 protected:
  // Computes the norm, and returns its result: scratch, or the residual if there is no norm.
  TensorView normed(const ResidualNorm& norm, TensorView scratch) {
    const TensorView out = norm.weight == nullptr ? norm.residual : scratch;
    residual_norm(norm, out);
    return out;
  }
};

}  // namespace quire

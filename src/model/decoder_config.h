// The configuration of decoders, and its reading from config.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/mla.h"
#include "model/model.h"
#include "model/moe.h"
#include "model/rope.h"
#include "model/weights.h"
#include "ops/state_ops.h"

namespace quire {

class ConfigFields;

// The RMSNorms of queries and keys.
enum class QkNorm {
  kNone,
  kPerHead,       // of each head, before the rotation
  kRotatedHeads,  // of each head, after the rotation; layers without a rotation have none
  kWholeWidth,    // of all heads together, before the rotation
};

// The names of a layer's norms, without ".weight"; empty: the layer has no such norm. A decoder
// has a norm at the same places in every layer.
struct NormNames {
  std::string_view attention_input = {};
  std::string_view attention_output = {};  // before the addition to the residual, as mlp_output
  std::string_view mlp_input = {};
  std::string_view mlp_output = {};

  friend constexpr bool operator==(const NormNames&, const NormNames&) = default;
};
inline constexpr NormNames kInputNorms = {.attention_input = "input_layernorm",
                                          .mlp_input = "post_attention_layernorm"};

struct LayerHeads {
  int num_heads = 0;
  int num_kv_heads = 0;
  // 0 in DecoderConfig::layer_heads stands for DecoderConfig::head_dim and value_dim().
  int head_dim = 0;
  int head_dim_v = 0;

  friend bool operator==(const LayerHeads&, const LayerHeads&) = default;
};

// The gates that multiply attention's output. A gate is a function of a product with the layer's
// input.
enum class GateWidth {
  kNone,
  kPerHead,
  kPerElement,
};
struct OutputGate {
  GateWidth width = GateWidth::kNone;
  GateFunction function = GateFunction::kSigmoid;
};

// A gated short convolution, which some layers have instead of attention (ops/state_ops.h).
struct ShortConvConfig {
  int kernel = 0;
  std::vector<bool> layers = {};  // [num_layers], whether a layer has it

  friend bool operator==(const ShortConvConfig&, const ShortConvConfig&) = default;
};

// Gated delta nets, which some layers have instead of attention.
struct DeltaNetConfig {
  DeltaNetShape shape;            // of all ranks together
  std::vector<bool> layers = {};  // [num_layers], whether a layer has one
};

// The layer for multi-token prediction (model/mtp) of a family, by the decoder's names for its
// tensors. It reads pairs of a hidden state of the target and the embedding of a token, after a
// norm of each.
struct MtpForm {
  std::string_view prefix;        // of all tensors of the layers of this kind
  std::string_view layer_prefix;  // of the tensors of its decoder layer
  // Without ".weight".
  std::string_view projection;  // of the pair: [hidden, 2 * hidden]
  std::string_view hidden_norm;
  std::string_view token_norm;
  std::string_view final_norm;
  // The layer reads the output of this norm of the target; empty: the input of the final norm.
  std::string_view target_norm = {};
  bool begins_with_token = false;  // the pair; otherwise it begins with the hidden state
  std::string_view count_key;      // the field of config.json with the number of layers
};

struct DecoderConfig : FamilyConfig {
  int intermediate_size = 0;                  // of dense layers
  std::vector<int> layer_intermediate_sizes;  // [num_layers]; empty: all have the size above
  int num_heads = 0;
  int num_kv_heads = 0;
  std::vector<LayerHeads> layer_heads;  // [num_layers]; empty: all layers have the numbers above
  // [num_layers], the layer whose keys and values a layer reads: itself or an earlier one. Empty:
  // all layers read their own. A layer that reads another's has only queries, and no cache.
  std::vector<int> kv_sources;
  // [num_layers] of a drafter, the target's layer whose cache a layer reads. Empty: the layers read
  // caches of their own model.
  std::vector<int> target_layers;
  // [num_layers], whether a layer's values are its keys before their norm and rotation. It then has
  // no matrix of values. Empty: no layer's are.
  std::vector<bool> layer_k_is_v;
  int head_dim = 0;    // with multi-head latent attention, of the rotated part
  int head_dim_v = 0;  // of values; 0: head_dim. Not used with multi-head latent attention.
  int max_position_embeddings = 0;
  float rms_norm_eps = 1e-6F;
  std::optional<float> output_norm_eps;  // of sub-layers' outputs; absent: rms_norm_eps
  Activation activation = Activation::kSilu;
  float attention_scale = 1.0F;    // multiplies q·k
  float attention_softcap = 0.0F;  // AttentionShape::softcap
  float value_scale = 1.0F;        // multiplies the values
  float logits_softcap = 0.0F;     // Ops::soft_cap of the logits; 0: none
  float logits_scale = 1.0F;       // multiplies the logits before their soft cap
  double embedding_scale = 1.0;    // multiplies the embeddings
  // Whether embedding_scale is rounded to the type of the activations, as in transformers' Gemma.
  bool rounds_embedding_scale = false;
  // The checkpoint's model multiplies a sub-layer's output by this before it is added to the
  // residual. The decoder keeps the residual divided by it instead, which changes no norm.
  double residual_scale = 1.0;
  bool tie_word_embeddings = false;
  // config.json does not state tie_word_embeddings, so a stored lm_head means false.
  bool assumes_tie = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  NormNames norms = kInputNorms;
  float norm_addend = 0.0F;                // VectorBinding::addend of every norm of a layer
  std::optional<float> final_norm_addend;  // of the last norm; absent: norm_addend
  bool norms_embeddings = false;           // by a norm without weights
  QkNorm qk_norm = QkNorm::kNone;
  bool qk_norm_has_weights = true;
  bool norms_values = false;  // each head of the values has an RMSNorm without weights
  // A number of the checkpoint multiplies the output of a layer, which is the sum of the layer's
  // input and the outputs of its sub-layers.
  bool has_layer_scalars = false;
  // Each layer has an input of its own per token, with this width, which a third sub-layer reads;
  // 0: no such inputs.
  int layer_input_size = 0;
  OutputGate output_gate;
  RotaryPairs rotary_pairs = RotaryPairs::kHalves;
  bool is_causal = true;           // AttentionShape::causal
  std::vector<int> layer_windows;  // [num_layers]; 0: full attention
  bool has_chunks = false;         // AttentionShape::chunked, in layers with a window
  std::vector<bool> layer_sinks;   // [num_layers], AttentionShape::sinks; empty: none has them
  std::vector<RopeConfig> ropes;   // one, or several that layers select from
  std::vector<int> layer_ropes;    // [num_layers], indices into ropes
  std::optional<MlaConfig> mla;    // absent: grouped-query attention
  std::optional<MoeConfig> moe;    // absent: every layer is dense
  std::optional<ShortConvConfig> convs;  // absent: no layer has a convolution
  std::optional<DeltaNetConfig> deltas;  // absent: no layer has a delta net
  const MtpForm* mtp = nullptr;          // null: method mtp does not serve the family
  int num_mtp_layers = 0;                // beside the decoder's, with `mtp`
  bool mtp_has_embeddings = false;       // the layer has embeddings of its own

  int value_dim() const { return head_dim_v > 0 ? head_dim_v : head_dim; }
};

const DecoderConfig& decoder_config(const ModelConfig& config);
LayerHeads heads_of(const DecoderConfig& config, size_t layer);
int intermediate_size_of(const DecoderConfig& config, size_t layer);
int largest_intermediate_size(const DecoderConfig& config);
// The layer whose keys and values a layer reads: its own, or an earlier one.
size_t kv_source_of(const DecoderConfig& config, size_t layer);
// Whether a layer has a cache for its own keys and values.
bool owns_cache(const DecoderConfig& config, size_t layer);
// Whether a layer's values are its keys before their norm and rotation.
bool has_k_for_v(const DecoderConfig& config, size_t layer);
bool has_conv(const DecoderConfig& config, size_t layer);
bool has_delta(const DecoderConfig& config, size_t layer);
// Whether a layer has a recurrent state instead of attention.
bool has_state(const DecoderConfig& config, size_t layer);
// The epsilon of the norms of the residual, which is divided by residual_scale.
float residual_norm_eps(const DecoderConfig& config);
// Whether any layer has an MLP of intermediate_size instead of experts.
bool has_dense_layers(const DecoderConfig& config);

// Upper bounds far above any existing model, and so small that products of sizes fit 63 bits.
inline constexpr int kMaxHiddenSize = 1 << 17;
inline constexpr int kMaxIntermediateSize = 1 << 20;
inline constexpr int kMaxLayers = 1024;
inline constexpr int kMaxHeads = 1024;
inline constexpr int kMaxHeadDim = 512;
// The lower bound of rope_theta is above 1 because YaRN divides by its logarithm.
inline constexpr double kMinRopeTheta = 1.001;
inline constexpr double kMaxRopeTheta = 1e15;

// Defaults for fields that a config.json may omit. Without a default, the field is required.
struct DecoderDefaults {
  std::optional<int> num_heads = {};
  std::optional<int> num_kv_heads = {};  // absent: num_heads
  std::optional<int> head_dim = {};      // absent: hidden_size / num_heads
  std::optional<int> intermediate_size = {};
  std::optional<int> vocab_size = {};
  std::optional<int> max_position_embeddings = {};
  double rms_norm_eps = 1e-6;
};

// Reads the sizes, whose products fit 63 bits. Sets attention_scale to the default for head_dim.
void read_decoder_sizes(ConfigFields& fields, const DecoderDefaults& defaults, ModelConfig& config,
                        DecoderConfig& decoder);
// Defaults for the fields of a rotation.
struct RopeDefaults {
  double theta = 10000.0;
  double rotated_part = 1.0;
  int original_max_position_embeddings = 0;  // 0: max_position_embeddings
};

// Reads one rotation for all layers and sets the model's longest context. Accepts rope_theta beside
// rope_scaling (transformers 4), or both inside rope_parameters (transformers 5).
void read_decoder_rope(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder,
                       const RopeDefaults& defaults = {});
// Reads the rotation in `fields`: rope_theta, the part of a head that is rotated, and the scaling
// in rope_parameters or rope_scaling.
RopeConfig read_rope(ConfigFields& fields, const DecoderConfig& decoder,
                     const RopeDefaults& defaults);
// Whether rope_parameters holds an object per type of layer instead of one set for all layers.
bool has_ropes_by_layer_type(const ConfigFields& rope_parameters);
// The rotation of one object of rope_parameters.
RopeConfig read_rope_parameters(ConfigFields& fields, const DecoderConfig& decoder,
                                const RopeDefaults& defaults);
// Returns [num_layers] of "full_attention" or `windowed`; empty if there is no layer_types.
std::vector<std::string> read_layer_types(ConfigFields& fields, int num_layers,
                                          std::string_view windowed = "sliding_attention");

// Checks that the model can be divided among the ranks; the error names the first dimension that
// cannot.
Status check_shards(const ModelConfig& model, const Parallel& parallel);

}  // namespace quire

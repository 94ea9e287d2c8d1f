// The differences between families of decoders, as data: one FamilyTraits per architecture.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "model/decoder_config.h"

namespace quire {

class ConfigFields;

// A property that an architecture fixes, or that a field of config.json decides.
struct Switch {
  bool value = false;         // without the field
  std::string_view key = {};  // empty: no field decides
};
inline constexpr Switch kNo = {};
inline constexpr Switch kYes = {true};

// The layers that have a sliding window. Its size is the field sliding_window.
enum class WindowRule {
  kNone,         // the field is ignored
  kEveryLayer,   // sliding_window applies to all layers
  kFromLayerUp,  // with use_sliding_window, layers from max_window_layers up, or layer_types
  kByLayerType,  // those of layer_types; without it, all but every sliding_window_pattern-th
  // The layers that layer_types or hybrid_layer_pattern names; without these fields, all but the
  // first and every sixth.
  // sliding_window_size is the window without the query's own position.
  kHybrid,
  // Chunks of attention_chunk_size positions: in the layers of layer_types or, without it, in those
  // with a rotation.
  kChunks,
};

// The rotations of the layers.
enum class RopeRule {
  kOneForAll,
  // Layers with a window have one of their own, without scaling: rope_parameters by type of layer
  // or, in older files, rope_local_base_freq.
  kByLayerType,
  // A layer with a 0 in no_rope_layers has none; without the field, every
  // no_rope_layer_interval-th layer has none.
  kAllButListed,
  // A layer with a 0 in layer_rope_theta has none. Without the field, layers without a window have
  // none, unless no layer has a window.
  kWindowsOnly,
};

// The names of the layers that predict further tokens and follow the decoder's own, if method mtp
// does not draft with them.
enum class MtpLayers {
  kNone,
  kNextNumbers,  // numbered after the decoder's layers
  kByPrefix,     // all names that begin with "model.mtp"
};

// Where config.json has the decoder's fields. Only the decoder of a model is loaded, also if the
// model takes images.
enum class FieldsPlace {
  kRoot,
  kTextConfig,        // the object text_config, as in models that also take images
  kTextConfigOrRoot,  // the files of transformers 5, and older ones
};

// A Rename (tensor_layout.h) as a constant.
struct StoredName {
  std::string_view stored;
  std::string_view decoder;
};

// A member that a row does not set has Llama's value. A field that config.json lacks has the
// default of the architecture's configuration class in transformers.
struct FamilyTraits {
  std::string_view architecture = {};  // in config.json's "architectures"
  std::string_view models = {};        // the best known ones, for docs/models.md
  FieldsPlace place = FieldsPlace::kRoot;
  // The model_type in text_config, if several decoders occur in the architecture; empty: only one.
  std::string_view text_type = {};
  DecoderDefaults sizes = {};

  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";  // the served value
  NormNames norms = kInputNorms;
  float norm_addend = 0.0F;
  QkNorm qk_norm = QkNorm::kNone;
  Switch has_qk_norm = kYes;
  OutputGate output_gate = {};
  Switch qkv_bias = kNo;
  Switch o_bias = kNo;
  Switch mlp_bias = kNo;
  bool ties_embeddings = false;  // the default of tie_word_embeddings

  WindowRule windows = WindowRule::kNone;
  int window = 0;          // the default of sliding_window
  int window_pattern = 0;  // the default of sliding_window_pattern

  bool has_convs = false;   // layer_types names layers with short convolutions
  bool has_deltas = false;  // layer_types names layers with gated delta nets
  // The rows of queries and of the gates of their outputs are stored in one matrix, head by head.
  bool fuses_output_gate = false;

  RopeRule ropes = RopeRule::kOneForAll;
  double theta = 10000.0;
  std::optional<double> window_theta = {};         // with kByLayerType; absent: theta
  double rotated_part = 1.0;                       // the default of partial_rotary_factor
  std::optional<double> window_rotated_part = {};  // as window_theta
  RotaryPairs rotary_pairs = RotaryPairs::kHalves;

  // The decoder multiplies embeddings, sub-layers, attention and logits by Granite's fields.
  bool has_multipliers = false;
  const MtpForm* mtp_form = nullptr;  // null: method mtp does not serve the family
  MtpLayers mtp = MtpLayers::kNone;
  int num_mtp_layers = 0;  // the default of the field with their number

  // The names of the checkpoint's tensors that differ from Llama's, and matrices that are stored as
  // one: queries, keys and values as self_attn.qkv_proj, gate and up as mlp.gate_up_proj.
  std::span<const StoredName> renames = {};
  bool fuses_qkv = false;
  bool fuses_gate_up = false;
  bool transposes_experts = false;   // FusedMatrix::is_transposed of stacks of experts
  bool interleaves_gate_up = false;  // in stacks of experts, the rows of gates and ups alternate

  // Read DecoderConfig::mla and DecoderConfig::moe; null: grouped-query attention, and no layer is
  // a mixture of experts.
  void (*read_mla)(ConfigFields& fields, DecoderConfig& decoder) = nullptr;
  void (*read_moe)(ConfigFields& fields, const ModelConfig& config,
                   DecoderConfig& decoder) = nullptr;
  // Reads the fields that only this architecture has, after all others; null: none.
  void (*read_own)(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) = nullptr;
};

// Reads the family's fields, and sets the fields of ModelConfig that depend on them. `fields` has
// the decoder's fields, and `outer` is the whole config.json. They are one object unless
// text_config has the decoder's fields. Errors are kept in the status of `fields` and `outer`.
std::shared_ptr<const FamilyConfig> read_family_config(const FamilyTraits& traits,
                                                       ConfigFields& fields, ConfigFields& outer,
                                                       ModelConfig& config);

}  // namespace quire

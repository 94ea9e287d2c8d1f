// The table of llama.cpp's architectures, with one row each. A row has what distinguishes the
// architecture's files; the code reads all files in the same way.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quire {

// The name of a tensor in a layer, without ".weight" or ".bias".
struct GgufTensorName {
  std::string_view file;
  std::string_view checkpoint;
};

// A key of the metadata, without the architecture before it, and its field in config.json.
struct GgufField {
  std::string_view key;
  std::string_view name;
};

inline constexpr GgufTensorName kGgufNormOfMlp[] = {{"ffn_norm", "post_attention_layernorm"}};

enum class GgufWindows {
  kNone,
  kEveryLayer,  // as in the checkpoint, although llama.cpp ignores the window
  kByLayer,     // attention.sliding_window_pattern says which
  kChunks,      // in the layers and of the size that llama.cpp has in its code for Llama 4
};

// The mixtures of experts of an architecture.
enum class GgufExperts {
  kNone,
  kNormalized,  // the weights of a token's experts are normalized, and not scaled
  kOfOwnWidth,  // as kNormalized, and the metadata has the experts' width beside intermediate_size
  kShared,      // normalized; the metadata has shared experts, dense layers and a scale
  kOnInput,     // the weight of a token's only expert multiplies its input
  kScaled,      // as kShared, and the metadata has groups and whether weights are normalized
};

// The order of value heads in gated delta nets, which most layers have.
enum class GgufDeltas {
  kNone,
  kGrouped,  // the value heads are in the checkpoint's order
  kTiled,    // DeltaNetShape::is_tiled
};

// The values of expert_gating_func that are served. Without the field, the first one applies.
enum class GgufGating { kSoftmax, kSigmoid, kSoftmaxOrSigmoid };

// Where a file has YaRN's factor of cosines and sines.
enum class GgufYarnFactor {
  kDerived,          // nowhere: it depends on rope.scaling.factor alone
  kAllDim,           // rope.scaling.yarn_log_multiplier is mscale_all_dim, and mscale is 1
  kTenthOfAllDim,    // the same key is 0.1 * mscale_all_dim, and mscale equals mscale_all_dim
  kStated,           // rope.scaling.yarn_attn_factor, as config.json has it
  kStatedOrDerived,  // as kStated, but 1 stands for kDerived
};

struct GgufArchitecture {
  std::string_view name;          // in the file
  std::string_view architecture;  // in config.json: of the decoder that computes the model
  // `variant` is the architecture in config.json if the metadata has this key, and it is not 0.
  std::string_view variant_key = {};
  std::string_view variant = {};
  // The architectures of the checkpoints that llama.cpp converts to such files. Empty: the ones
  // above.
  std::span<const std::string_view> checkpoints = {};

  std::span<const GgufTensorName> norms = kGgufNormOfMlp;  // after attention, and around the MLP
  // The converter reorders the rows of queries and keys, because llama.cpp rotates adjacent
  // elements and the checkpoint's model elements of the two halves of a head.
  bool pairs_rows = false;
  bool fuses_gate_up = false;  // ffn_up has the rows of the gates, and then those of the ups

  bool has_latents = false;      // multi-head latent attention
  bool rotates_part = false;     // rope.dimension_count may be less than a head
  bool has_longrope = false;     // divisors for short and long contexts, in two tensors
  bool has_multipliers = false;  // of embeddings, sub-layers, attention and logits
  // The default of attention.temperature_scale. Absent: queries are not scaled by position.
  std::optional<double> temperature = {};
  GgufYarnFactor yarn_factor = GgufYarnFactor::kDerived;
  bool has_exact_yarn = false;  // RopeConfig::truncate is false
  // The field of config.json that takes a list in attention.head_count; empty: the key is one
  // number.
  std::string_view layer_heads = {};
  // Layers with a window have their own number of KV heads, and sinks; values have their own width.
  bool is_hybrid = false;
  // Layers without KV heads in the list of attention.head_count_kv are short convolutions.
  bool has_convs = false;
  GgufDeltas deltas = GgufDeltas::kNone;
  // If attention.sliding_window_pattern is not a list, the first layer of each N has no window. N
  // is the field, or 4.
  bool begins_without_window = false;
  GgufWindows windows = GgufWindows::kNone;
  GgufExperts experts = GgufExperts::kNone;
  GgufGating gating = GgufGating::kSoftmax;
  bool normalizes = false;  // whether experts' weights are normalized, if a file does not state it
  // Gemma 4: heads by kind of layer, layers that share keys and values, inputs of each layer, and
  // experts in some models. Its config.json has the rotations by kind of layer.
  bool is_gemma4 = false;
  // Gemma 2 and 3: the number of layers of the largest model of its generation, whose attention
  // llama.cpp scales differently. 0: another model.
  int layers_of_largest_gemma = 0;
  // The file's norms of queries and keys have weights, although the checkpoint's have none.
  bool adds_qk_norm_weights = false;
  // The key of intermediate_size.
  std::string_view width_key = "feed_forward_length";
  std::span<const GgufField> fields = {};  // that other architectures do not have
};

// Returns null if the architecture is not served.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
// Returns "llama, qwen2, …".
std::string gguf_architectures();
// llama.cpp's names of the architecture of a checkpoint, for example "llama" of "LlamaForCausalLM";
// empty: its files are not served.
std::string gguf_name_of(std::string_view architecture);

}  // namespace quire

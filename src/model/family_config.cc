#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/config_fields.h"
#include "model/family_traits.h"
#include "ops/state_ops.h"

namespace quire {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

bool read_switch(const Switch& property, ConfigFields& fields) {
  if (property.key.empty()) return property.value;
  return fields.boolean(property.key, property.value);
}

Activation activation_of(std::string_view name) {
  if (name == "silu") return Activation::kSilu;
  if (name == "gelu") return Activation::kGelu;
  QUIRE_CHECK(name == "gelu_pytorch_tanh", "[model] a family has an unknown activation");
  return Activation::kGeluTanh;
}

void read_activation(const FamilyTraits& traits, ConfigFields& fields, DecoderConfig& decoder) {
  const std::string name =
      fields.optional_text(traits.activation_key).value_or(std::string(traits.activation));
  if (name != traits.activation) {
    fields.fail(traits.activation_key, quote_name(name), fmt::format("\"{}\"", traits.activation));
  }
  decoder.activation = activation_of(traits.activation);
}

// [num_layers] of 0 or 1; empty if the field is absent.
std::vector<int> read_layer_flags(ConfigFields& fields, std::string_view key, int num_layers) {
  std::vector<int> flags = fields.integers(key, 0, 1, kMaxLayers);
  if (!require_one_per_layer(fields, key, flags.size(), num_layers)) flags.clear();
  return flags;
}

// [num_layers]: whether the layer is rotated.
std::vector<bool> read_rotated_layers(ConfigFields& fields, int num_layers) {
  constexpr std::string_view kList = "no_rope_layers";
  // In spite of the field's name, 1 stands for a layer with a rotation.
  const std::vector<int> flags = read_layer_flags(fields, kList, num_layers);
  const int interval = fields.integer("no_rope_layer_interval", 1, kMaxInt, 4);
  std::vector<bool> rotated;
  for (int i = 0; i < num_layers; ++i) rotated.push_back((i + 1) % interval != 0);
  if (flags.empty()) return rotated;
  return {flags.begin(), flags.end()};
}

// [num_layers]: whether the layer has a window.
std::vector<bool> read_layers_with_window(const FamilyTraits& traits, ConfigFields& fields,
                                          int num_layers) {
  std::vector<bool> have_window(static_cast<size_t>(num_layers), false);
  const auto by_type = [&](const std::vector<std::string>& types) {
    for (size_t i = 0; i < types.size(); ++i) have_window[i] = types[i] != "full_attention";
  };
  switch (traits.windows) {
    case WindowRule::kNone:
      break;
    case WindowRule::kEveryLayer:
      have_window.assign(have_window.size(), true);
      break;
    case WindowRule::kFromLayerUp: {
      if (!fields.boolean("use_sliding_window", false)) break;
      const int first = fields.integer("max_window_layers", 0, kMaxInt, 28);
      const std::vector<std::string> types = read_layer_types(fields, num_layers);
      for (int i = first; i < num_layers; ++i) have_window[static_cast<size_t>(i)] = true;
      if (!types.empty()) by_type(types);
      break;
    }
    case WindowRule::kByLayerType: {
      // If there are types, the pattern is not read: EXAONE-4's pattern consists of letters.
      const std::vector<std::string> types = read_layer_types(fields, num_layers);
      by_type(types);
      if (!types.empty()) break;
      const int pattern =
          fields.integer("sliding_window_pattern", 1, kMaxInt, traits.window_pattern);
      for (int i = 0; i < num_layers; ++i) {
        have_window[static_cast<size_t>(i)] = (i + 1) % pattern != 0;
      }
      break;
    }
    case WindowRule::kHybrid: {
      const std::vector<std::string> types = read_layer_types(fields, num_layers);
      const std::vector<int> flags = read_layer_flags(fields, "hybrid_layer_pattern", num_layers);
      for (size_t i = 0; i < have_window.size(); ++i) {
        have_window[i] = flags.empty() ? i > 0 && (i + 1) % 6 != 0 : flags[i] == 1;
      }
      by_type(types);
      break;
    }
    case WindowRule::kChunks: {
      have_window = read_rotated_layers(fields, num_layers);
      by_type(read_layer_types(fields, num_layers, "chunked_attention"));
      break;
    }
  }
  return have_window;
}

void read_windows(const FamilyTraits& traits, ConfigFields& fields, const ModelConfig& config,
                  DecoderConfig& decoder) {
  const std::vector<bool> have_window = read_layers_with_window(traits, fields, config.num_layers);
  decoder.has_chunks = traits.windows == WindowRule::kChunks;
  const std::string_view key = decoder.has_chunks ? "attention_chunk_size" : "sliding_window";
  int window = 0;
  if (traits.windows != WindowRule::kNone) {
    // A null field turns the windows off; an absent field means the default.
    const int absent = fields.mentions(key) ? 0 : traits.window;
    window = fields.integer(key, 1, kMaxInt, absent);
  }
  if (traits.windows == WindowRule::kHybrid) {
    const std::optional<int> before =
        fields.optional_integer("sliding_window_size", 0, kMaxInt - 1);
    if (before) window = *before + 1;
  }
  for (const bool has_window : have_window) {
    decoder.layer_windows.push_back(has_window ? window : 0);
  }
}

// Sets ropes[0] for layers without a window, and ropes[1] for layers with one. transformers 4 has
// separate fields for the two kinds; transformers 5 has rope_parameters by type of layer.
void read_ropes_by_layer_type(const FamilyTraits& traits, ConfigFields& fields,
                              DecoderConfig& decoder) {
  const RopeDefaults defaults = {traits.theta, traits.rotated_part};
  fields.add_spellings("rope_parameters", {"rope_scaling"});
  std::optional<ConfigFields> by_type = fields.object("rope_parameters");
  if (!by_type || !has_ropes_by_layer_type(*by_type)) {
    const RopeConfig all = read_rope(fields, decoder, defaults);
    RopeConfig windowed;
    windowed.theta = fields.number("rope_local_base_freq", kMinRopeTheta, kMaxRopeTheta,
                                   traits.window_theta.value_or(all.theta));
    windowed.rotated_part = traits.window_rotated_part.value_or(all.rotated_part);
    decoder.ropes = {all, windowed};
    return;
  }
  const auto read = [&](std::string_view type, const RopeDefaults& rope_defaults) {
    std::optional<ConfigFields> parameters = by_type->object(type);
    if (!parameters) {
      by_type->fail(type, "nothing", "an object");
      return RopeConfig();
    }
    const RopeConfig rope = read_rope_parameters(*parameters, decoder, rope_defaults);
    fields.keep(parameters->status());
    return rope;
  };
  decoder.ropes = {
      read("full_attention", defaults),
      read("sliding_attention", {traits.window_theta.value_or(traits.theta),
                                 traits.window_rotated_part.value_or(traits.rotated_part)})};
  fields.keep(by_type->status());
}

// Gives the layers without a rotation the entry RopeType::kNone.
void leave_unrotated(const std::vector<bool>& rotated, DecoderConfig& decoder) {
  RopeConfig none = decoder.ropes.front();
  none.type = RopeType::kNone;
  none.query_scale = {};
  for (size_t i = 0; i < rotated.size(); ++i) {
    if (rotated[i]) continue;
    if (decoder.ropes.size() == 1) decoder.ropes.push_back(none);
    decoder.layer_ropes[i] = 1;
  }
}

void read_ropes(const FamilyTraits& traits, ConfigFields& fields, ModelConfig& config,
                DecoderConfig& decoder) {
  decoder.rotary_pairs = traits.rotary_pairs;
  const auto has_window = [&](size_t layer) { return decoder.layer_windows[layer] > 0; };
  const auto num_layers = static_cast<size_t>(config.num_layers);
  if (traits.ropes == RopeRule::kByLayerType) {
    config.longest_model_len = longest_context({}, decoder.max_position_embeddings);
    read_ropes_by_layer_type(traits, fields, decoder);
    for (size_t i = 0; i < num_layers; ++i) decoder.layer_ropes.push_back(has_window(i) ? 1 : 0);
    return;
  }
  read_decoder_rope(fields, config, decoder, {traits.theta, traits.rotated_part});
  std::vector<bool> rotated(num_layers, true);
  if (traits.ropes == RopeRule::kAllButListed) {
    rotated = read_rotated_layers(fields, config.num_layers);
  } else if (traits.ropes == RopeRule::kWindowsOnly) {
    for (size_t i = 0; i < num_layers; ++i) rotated[i] = has_window(i);
    if (std::ranges::count(rotated, true) == 0) rotated.assign(num_layers, true);
    const std::vector<double> thetas =
        fields.numbers("layer_rope_theta", 0.0, kMaxRopeTheta, num_layers);
    require_one_per_layer(fields, "layer_rope_theta", thetas.size(), config.num_layers);
    for (size_t i = 0; i < thetas.size(); ++i) rotated[i] = thetas[i] != 0.0;
  }
  leave_unrotated(rotated, decoder);
}

// Without layer_types, every full_attention_interval-th layer has attention.
void read_deltas(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  DeltaNetConfig deltas;
  deltas.shape = {.num_k_heads = fields.integer("linear_num_key_heads", 1, kMaxHeads, 16),
                  .num_v_heads = fields.integer("linear_num_value_heads", 1, kMaxHeads, 32),
                  .k_dim = fields.integer("linear_key_head_dim", 1, kMaxHeadDim, 128),
                  .v_dim = fields.integer("linear_value_head_dim", 1, kMaxHeadDim, 128),
                  .kernel = fields.integer("linear_conv_kernel_dim", 2, kMaxShortConvKernel, 4)};
  if (deltas.shape.num_v_heads % deltas.shape.num_k_heads != 0) {
    fields.fail("linear_num_value_heads", std::to_string(deltas.shape.num_v_heads),
                fmt::format("a multiple of linear_num_key_heads, {}", deltas.shape.num_k_heads));
  }
  deltas.shape.is_tiled = fields.boolean("linear_value_heads_are_tiled", false);  // GGUF files
  const int interval = fields.integer("full_attention_interval", 1, kMaxLayers, 4);
  const std::vector<std::string> types =
      read_layer_types(fields, config.num_layers, "linear_attention");
  for (int i = 0; i < config.num_layers; ++i) {
    deltas.layers.push_back(types.empty() ? (i + 1) % interval != 0
                                          : types[static_cast<size_t>(i)] != "full_attention");
  }
  if (std::ranges::count(deltas.layers, false) == 0) {
    fields.fail(types.empty() ? "full_attention_interval" : "layer_types",
                "no layer with attention", "at least one");
  }
  if (std::ranges::count(deltas.layers, true) > 0) decoder.deltas = std::move(deltas);
}

// transformers 4 lists the layers with attention in full_attn_idxs.
void read_convs(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  require_switch(fields, "conv_bias", false);
  ShortConvConfig convs;
  convs.kernel = fields.integer("conv_L_cache", 2, kMaxShortConvKernel, 3);
  const auto num_layers = static_cast<size_t>(config.num_layers);
  const std::vector<std::string> types = read_layer_types(fields, config.num_layers, "conv");
  const std::vector<int> attending =
      fields.integers("full_attn_idxs", 0, config.num_layers - 1, kMaxLayers);
  for (size_t i = 0; i < num_layers; ++i) {
    const bool is_listed =
        attending.empty() || std::ranges::find(attending, static_cast<int>(i)) != attending.end();
    convs.layers.push_back(types.empty() ? !is_listed : types[i] == "conv");
    if (types.empty() || attending.empty() || is_listed != convs.layers[i]) continue;
    fields.fail("full_attn_idxs", fmt::format("other layers than layer_types: layer {}", i),
                "the same layers in both");
  }
  if (std::ranges::count(convs.layers, false) == 0) {
    fields.fail(types.empty() ? "full_attention_interval" : "layer_types",
                "no layer with attention", "at least one");
  }
  if (std::ranges::count(convs.layers, true) > 0) decoder.convs = std::move(convs);
}

void read_multipliers(ConfigFields& fields, DecoderConfig& decoder) {
  constexpr double kMin = 1e-6;
  constexpr double kMax = 1e6;
  decoder.embedding_scale = fields.number("embedding_multiplier", kMin, kMax, 1.0);
  decoder.residual_scale = fields.number("residual_multiplier", kMin, kMax, 1.0);
  decoder.attention_scale =
      static_cast<float>(fields.number("attention_multiplier", kMin, kMax, 1.0));
  decoder.logits_scale = static_cast<float>(1.0 / fields.number("logits_scaling", kMin, kMax, 1.0));
}

// Layers that method mtp does not draft with are not loaded.
void read_mtp_layers(const FamilyTraits& traits, ConfigFields& fields, ModelConfig& config,
                     DecoderConfig& decoder) {
  if (traits.mtp_form != nullptr) {
    decoder.mtp = traits.mtp_form;
    decoder.num_mtp_layers =
        fields.integer(traits.mtp_form->count_key, 0, kMaxLayers, traits.num_mtp_layers);
    decoder.mtp_has_embeddings = fields.boolean("mtp_use_dedicated_embeddings", false);
    return;
  }
  if (traits.mtp == MtpLayers::kNone) return;
  if (traits.mtp == MtpLayers::kByPrefix) {
    config.layout.ignored_prefixes.emplace_back("model.mtp");
    return;
  }
  const int num_layers =
      fields.integer("num_nextn_predict_layers", 0, kMaxLayers, traits.num_mtp_layers);
  for (int i = 0; i < num_layers; ++i) {
    config.layout.ignored_prefixes.push_back(
        fmt::format("model.layers.{}.", config.num_layers + i));
  }
}

// In some versions of transformers, the prefix of a decoder within a larger model begins with
// "model.", in others with the decoder's name.
constexpr StoredName kNamesWithinModel[] = {{"language_model.model", "model"},
                                            {"model.language_model", "model"},
                                            {"language_model.lm_head", "lm_head"}};
constexpr std::string_view kOtherParts[] = {
    "vision_tower.",   "multi_modal_projector.", "visual.",      "mm_projector.", "vision_model.",
    "vision_adapter.", "vision_projection.",     "audio_tower.", "embed_vision.", "embed_audio.",
    "vision_embedder."};

// Adds the two stacks of matrices in which a layer's experts may be stored.
void add_stacks(const FamilyTraits& traits, const MoeConfig& moe, TensorLayout& layout) {
  layout.fused.push_back({.stored = "mlp.experts.gate_up_proj",
                          .parts = {"mlp.experts.*.gate_proj", "mlp.experts.*.up_proj"},
                          .is_transposed = traits.transposes_experts,
                          .num_groups = traits.interleaves_gate_up ? moe.intermediate_size : 1});
  layout.fused.push_back({.stored = "mlp.experts.down_proj",
                          .parts = {"mlp.experts.*.down_proj"},
                          .is_transposed = traits.transposes_experts});
}

void set_layout(const FamilyTraits& traits, const DecoderConfig& decoder, TensorLayout& layout) {
  const auto add_renames = [&](std::span<const StoredName> pairs) {
    for (const StoredName& pair : pairs) {
      layout.renames.push_back({std::string(pair.stored), std::string(pair.decoder)});
    }
  };
  add_renames(traits.renames);
  if (traits.place != FieldsPlace::kRoot) {
    add_renames(kNamesWithinModel);
    for (const std::string_view part : kOtherParts) {
      layout.ignored_prefixes.emplace_back(part);
      layout.ignored_prefixes.push_back(fmt::format("model.{}", part));
    }
  }
  if (traits.fuses_qkv) {
    layout.fused.push_back({.stored = "self_attn.qkv_proj",
                            .parts = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}});
  }
  if (traits.fuses_gate_up) {
    layout.fused.push_back(
        {.stored = "mlp.gate_up_proj", .parts = {"mlp.gate_proj", "mlp.up_proj"}});
  }
  if (decoder.convs) {
    layout.fused.push_back(
        {.stored = "conv.in_proj", .parts = {"conv.b_proj", "conv.g_proj", "conv.x_proj"}});
  }
  if (decoder.deltas) {
    layout.fused.push_back(
        {.stored = "linear_attn.in_proj_qkv",
         .parts = {"linear_attn.q_proj", "linear_attn.k_proj", "linear_attn.v_proj"}});
    // Qwen3-Next stores the matrices by key head.
    const int num_k_heads = decoder.deltas->shape.num_k_heads;
    layout.fused.push_back({.stored = "linear_attn.in_proj_qkvz",
                            .parts = {"linear_attn.q_proj", "linear_attn.k_proj",
                                      "linear_attn.v_proj", "linear_attn.in_proj_z"},
                            .num_groups = num_k_heads});
    layout.fused.push_back({.stored = "linear_attn.in_proj_ba",
                            .parts = {"linear_attn.in_proj_b", "linear_attn.in_proj_a"},
                            .num_groups = num_k_heads});
  }
  if (traits.fuses_output_gate) {
    layout.fused.push_back({.stored = "self_attn.q_proj",
                            .parts = {"self_attn.q_proj", "self_attn.gate_proj"},
                            .num_groups = decoder.num_heads});
  }
  if (decoder.moe) add_stacks(traits, *decoder.moe, layout);
}

// Both sizes are numbers of columns of experts' matrices, which must be whole groups.
void check_mxfp4_sizes(const DecoderConfig& decoder, const ModelConfig& config,
                       ConfigFields& fields) {
  constexpr int64_t kGroup = 32;  // columns with one exponent
  const auto check = [&](std::string_view key, int64_t size) {
    if (size % kGroup == 0) return;
    fields.fail(key, std::to_string(size), fmt::format("a multiple of {}, for MXFP4", kGroup));
  };
  check("hidden_size", config.hidden_size);
  if (decoder.moe) check("intermediate_size", decoder.moe->intermediate_size);
}

// Adds the names that other families, or versions of transformers, have for fields.
void add_spellings(ConfigFields& fields) {
  fields.add_spellings("num_experts", {"num_local_experts", "n_routed_experts", "moe_num_experts"});
  fields.add_spellings("num_experts_per_tok", {"moe_k", "experts_per_token"});
  fields.add_spellings("rms_norm_eps", {"layernorm_epsilon", "norm_eps"});
  fields.add_spellings("intermediate_size", {"block_ff_dim"});
  fields.add_spellings("tie_word_embeddings", {"tie_embedding"});
  fields.add_spellings("rope_local_base_freq", {"swa_rope_theta"});
  fields.add_spellings("n_shared_experts", {"num_shared_experts", "moe_num_shared_experts"});
  fields.add_spellings("routed_scaling_factor",
                       {"router_scaling_factor", "moe_routed_scaling_factor"});
  fields.add_spellings("first_k_dense_replace", {"moe_layer_start_index", "num_dense_layers"});
  fields.add_spellings("num_nextn_predict_layers", {"num_mtp_layers"});
}

}  // namespace

std::shared_ptr<const FamilyConfig> read_family_config(const FamilyTraits& traits,
                                                       ConfigFields& fields, ConfigFields& outer,
                                                       ModelConfig& config) {
  auto decoder = std::make_shared<DecoderConfig>();
  add_spellings(fields);
  read_activation(traits, fields, *decoder);
  read_decoder_sizes(fields, traits.sizes, config, *decoder);
  if (!fields.status().ok()) return nullptr;
  decoder->norms = traits.norms;
  decoder->norm_addend = traits.norm_addend;
  decoder->output_gate = traits.output_gate;
  if (read_switch(traits.has_qk_norm, fields)) decoder->qk_norm = traits.qk_norm;
  decoder->qkv_bias = read_switch(traits.qkv_bias, fields);
  decoder->o_bias = read_switch(traits.o_bias, fields);
  decoder->mlp_bias = read_switch(traits.mlp_bias, fields);
  decoder->tie_word_embeddings = outer.boolean("tie_word_embeddings", traits.ties_embeddings);
  decoder->assumes_tie = decoder->tie_word_embeddings && !outer.has("tie_word_embeddings");
  read_windows(traits, fields, config, *decoder);
  read_ropes(traits, fields, config, *decoder);
  if (traits.has_convs) read_convs(fields, config, *decoder);
  if (traits.has_deltas) read_deltas(fields, config, *decoder);
  if (traits.has_multipliers) read_multipliers(fields, *decoder);
  if (traits.read_mla != nullptr) traits.read_mla(fields, *decoder);
  if (traits.read_moe != nullptr) traits.read_moe(fields, config, *decoder);
  read_mtp_layers(traits, fields, config, *decoder);
  if (traits.read_own != nullptr) traits.read_own(fields, config, *decoder);
  set_layout(traits, *decoder, config.layout);
  if (config.layout.has_mxfp4_experts) check_mxfp4_sizes(*decoder, config, fields);
  return decoder;
}

}  // namespace quire

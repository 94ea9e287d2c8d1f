#include "model/family_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers.h"
#include "model/config_fields.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

// A null field turns the cap off; an absent field means the default.
float read_softcap(ConfigFields& fields, std::string_view key, double fallback) {
  const double absent = fields.mentions(key) ? 0.0 : fallback;
  return static_cast<float>(fields.optional_number(key, 1e-3, 1e6).value_or(absent));
}

// `attention_softcap` and `logits_softcap` are defaults; 0: none.
void read_gemma(ConfigFields& fields, double attention_softcap, double logits_softcap,
                const ModelConfig& config, DecoderConfig& decoder) {
  const double scale = fields.number("query_pre_attn_scalar", 1e-3, 1e6, 256.0);
  decoder.attention_scale = static_cast<float>(1.0 / std::sqrt(scale));
  decoder.attention_softcap = read_softcap(fields, "attn_logit_softcapping", attention_softcap);
  decoder.logits_softcap = read_softcap(fields, "final_logit_softcapping", logits_softcap);
  decoder.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  decoder.rounds_embedding_scale = true;
}

// The heads of Gemma 4's layers without a window, in the fields of published files or, as
// transformers saves them, in an object per layer.
LayerHeads read_global_heads(ConfigFields& fields, bool has_k_for_v, const DecoderConfig& decoder) {
  constexpr std::string_view kByLayer = "per_layer_config";
  LayerHeads heads = {.num_heads = decoder.num_heads, .num_kv_heads = decoder.num_kv_heads};
  const auto read = [&](ConfigFields& from, std::string_view head_dim, std::string_view kv_heads,
                        int default_head_dim) {
    heads.head_dim = from.integer(head_dim, 2, kMaxHeadDim, default_head_dim);
    const int num_kv_heads = from.integer(kv_heads, 1, kMaxHeads, decoder.num_kv_heads);
    if (has_k_for_v) heads.num_kv_heads = num_kv_heads;
    if (heads.head_dim % 2 != 0) {
      from.fail(head_dim, std::to_string(heads.head_dim), "an even number");
    }
    if (decoder.num_heads % heads.num_kv_heads == 0) return;
    from.fail(kv_heads, std::to_string(heads.num_kv_heads),
              fmt::format("a divisor of num_attention_heads, {}", decoder.num_heads));
  };
  std::optional<ConfigFields> by_layer = fields.object(kByLayer);
  if (!by_layer) {
    read(fields, "global_head_dim", "num_global_key_value_heads", 512);
    return heads;
  }
  for (size_t i = 0; i < decoder.layer_windows.size(); ++i) {
    std::optional<ConfigFields> layer = by_layer->object(std::to_string(i));
    const LayerHeads before = heads;
    if (layer) {
      read(*layer, "head_dim", "num_key_value_heads", decoder.head_dim);
      fields.keep(layer->status());
    }
    const bool is_first = before.head_dim == 0;
    const bool is_global = decoder.layer_windows[i] == 0;
    if (layer.has_value() == is_global && (!layer || is_first || before == heads)) continue;
    fields.fail(kByLayer, fmt::format("other heads for layer {}", i),
                "the same heads for all layers with full_attention, and none for others");
  }
  fields.keep(by_layer->status());
  return heads;
}

// The last layers read the keys and values of an earlier layer: the last one of their kind that has
// its own. They may have MLPs of twice the size.
void read_shared_layers(ConfigFields& fields, int num_layers, DecoderConfig& decoder) {
  constexpr std::string_view kShared = "num_kv_shared_layers";
  const int num_shared = fields.integer(kShared, 0, num_layers, 0);
  const bool doubles = fields.boolean("use_double_wide_mlp", false);
  if (num_shared == 0) return;
  const int first = num_layers - num_shared;
  const auto has_window = [&](int layer) {
    return decoder.layer_windows[static_cast<size_t>(layer)] > 0;
  };
  for (int layer = 0; layer < num_layers; ++layer) {
    int source = layer;
    if (layer >= first) {
      source = first - 1;
      while (source >= 0 && has_window(source) != has_window(layer)) --source;
    }
    if (source < 0) {
      return fields.fail(kShared, std::to_string(num_shared),
                         "before the shared layers, a layer of each of their types");
    }
    decoder.kv_sources.push_back(source);
    const int factor = doubles && layer >= first ? 2 : 1;
    decoder.layer_intermediate_sizes.push_back(factor * decoder.intermediate_size);
  }
}

// Reads the number of query heads of each layer, if config.json lists them.
void read_layer_heads(ConfigFields& fields, int num_layers, DecoderConfig& decoder) {
  constexpr std::string_view kList = "num_attention_heads_per_layer";
  const std::vector<int> heads = fields.integers(kList, 1, kMaxHeads, kMaxLayers);
  if (!require_one_per_layer(fields, kList, heads.size(), num_layers)) return;
  for (const int num_heads : heads) {
    decoder.layer_heads.push_back({num_heads, decoder.num_kv_heads});
    if (num_heads % decoder.num_kv_heads == 0) continue;
    fields.fail(kList, std::to_string(num_heads),
                fmt::format("multiples of num_key_value_heads, {}", decoder.num_kv_heads));
  }
}

}  // namespace

void read_gemma2(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  read_gemma(fields, 50.0, 30.0, config, decoder);
}

void read_ministral3(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  if (fields.has("rope_parameters")) return;
  fields.fail("rope_parameters", "nothing", "an object");
}

// The configuration class has these fields, but transformers does not compute other values.
void read_phi3(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  for (const char* key : {"attention_bias", "mlp_bias", "lm_head_bias"}) {
    require_switch(fields, key, false);
  }
}

void read_hunyuan_dense(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  require_switch(fields, "use_qk_norm", true);
  require_switch(fields, "use_cla", false);
  require_switch(fields, "mlp_bias", false);
}

// No published model has windows, which would replace the missing rotations.
void read_smollm3(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  require_switch(fields, "use_sliding_window", false);
}

void read_lfm2(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& decoder) {
  const double factor = fields.number("block_ffn_dim_multiplier", 1e-3, 1e3, 1.0);
  const int multiple = fields.integer("block_multiple_of", 1, kMaxIntermediateSize, 256);
  if (!fields.boolean("block_auto_adjust_ff_dim", true)) return;
  const double size = std::floor(factor * (2 * decoder.intermediate_size / 3));
  if (size > kMaxIntermediateSize) {
    return fields.fail("block_ffn_dim_multiplier", fmt::format("{}", factor),
                       fmt::format("an inner size of at most {}", kMaxIntermediateSize));
  }
  decoder.intermediate_size = round_up(std::max(static_cast<int>(size), 1), multiple);
}

void read_qwen3_5(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  require_switch(fields, "attn_output_gate", true);
}

// Heads by layer, and gates per head or per element.
void read_laguna(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  constexpr std::string_view kGating = "gating";
  require_switch(fields, "swa_attention_sink_enabled", false);
  read_layer_heads(fields, config.num_layers, decoder);
  if (!fields.is_text(kGating)) return require_switch(fields, kGating, true);
  const std::string width = *fields.optional_text(kGating);
  if (width == "per-element") {
    decoder.output_gate.width = GateWidth::kPerElement;
  } else if (width != "per-head") {
    fields.fail(kGating, quote_name(width), "true, \"per-head\" or \"per-element\"");
  }
}

// Layers with a window have their own number of KV heads, and sinks. No published model has other
// sizes of heads by kind of layer.
void read_mimo_v2(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& decoder) {
  const int num_heads = decoder.num_heads;
  decoder.head_dim_v = fields.integer("v_head_dim", 8, kMaxHeadDim, 128);
  // A null field means 1; an absent field means the default.
  const double absent = fields.mentions("attention_value_scale") ? 1.0 : 0.707;
  decoder.value_scale =
      static_cast<float>(fields.number("attention_value_scale", 1e-3, 1e3, absent));
  fields.expect_value("swa_num_attention_heads", num_heads, std::to_string(num_heads));
  fields.expect_value("swa_head_dim", decoder.head_dim, std::to_string(decoder.head_dim));
  fields.expect_value("swa_v_head_dim", decoder.head_dim_v, std::to_string(decoder.head_dim_v));
  const int num_kv_heads = fields.integer("swa_num_key_value_heads", 1, kMaxHeads,
                                          std::min(2 * decoder.num_kv_heads, kMaxHeads));
  if (num_heads % num_kv_heads != 0) {
    fields.fail("swa_num_key_value_heads", std::to_string(num_kv_heads),
                fmt::format("a divisor of num_attention_heads, {}", num_heads));
  }
  const bool windows_have_sinks = fields.boolean("add_swa_attention_sink_bias", true);
  const bool others_have_sinks = fields.boolean("add_full_attention_sink_bias", false);
  for (const int window : decoder.layer_windows) {
    decoder.layer_heads.push_back({num_heads, window > 0 ? num_kv_heads : decoder.num_kv_heads});
    decoder.layer_sinks.push_back(window > 0 ? windows_have_sinks : others_have_sinks);
  }
}

// The constants of the experts' activation are part of the operation.
void read_gpt_oss(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  if (!fields.has("rope_parameters") && !fields.has("rope_scaling")) {
    fields.fail("rope_parameters", "nothing", "an object");
  }
  if (fields.optional_integer("sliding_window", 0, std::numeric_limits<int>::max()).value_or(0) ==
      0) {
    fields.fail("sliding_window", "nothing or 0", "the tokens that every second layer attends to");
  }
  decoder.activation = Activation::kClampedSwiglu;
  fields.expect_value("swiglu_limit", kSwigluLimit, fmt::format("{}", kSwigluLimit));
  fields.expect_value("swiglu_alpha", 1.702, "1.702");
  decoder.layer_sinks.assign(static_cast<size_t>(config.num_layers), true);
}

// The factor that multiplies normed queries is a part of attention_scale. Without layer_types,
// transformers counts the layers from the last one. Unless the number of layers is a multiple of 4,
// other layers than here would have windows.
void read_muse(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  if (!fields.has("layer_types") && config.num_layers % 4 != 0) {
    fields.fail("layer_types", "nothing", "one type per layer");
  }
  // In GGUF files, the norms have weights, which include the factor.
  decoder.qk_norm_has_weights = fields.boolean("has_qk_norm_weights", false);
  decoder.attention_scale *= static_cast<float>(
      fields.number("qk_scale_factor", 1e-3, 1e3, decoder.qk_norm_has_weights ? 1.0 : 3.87));
  decoder.norms_embeddings = true;
  decoder.final_norm_addend = 0.0F;
  decoder.output_norm_eps = static_cast<float>(fields.number("post_norm_eps", 0.0, 1.0, 1e-8));
  decoder.logits_scale =
      static_cast<float>(fields.number("output_multiplier", 1e-6, 1e6, 0.19611613513818404));
  decoder.logits_softcap = read_softcap(fields, "final_logit_softcapping", 20.0);
}

// Layers without a rotation scale their queries by position instead.
void read_llama4(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& decoder) {
  decoder.qk_norm_has_weights = false;
  const QueryScale scale = {
      .beta = fields.number("attn_scale", 0.0, 10.0, 0.1),
      .period = static_cast<double>(fields.integer("floor_scale", 1, kMaxModelLen, 8192)),
      .offset = 1};
  if (!fields.boolean("attn_temperature_tuning", true)) return;
  for (RopeConfig& rope : decoder.ropes) {
    if (rope.type == RopeType::kNone) rope.query_scale = scale;
  }
}

namespace {

void read_gemma4_with(ConfigFields& fields, int default_input_size, ModelConfig& config,
                      DecoderConfig& decoder) {
  require_text(fields, "use_bidirectional_attention", "vision");  // text is causal
  if (decoder.layer_windows.back() > 0) {
    fields.fail("layer_types", "a window in the last layer", "full_attention there");
  }
  if (decoder.ropes.front().type != RopeType::kProportional) {
    fields.fail("rope_parameters", "another rotation for full_attention", "rope_type proportional");
  }
  const bool has_k_for_v = fields.boolean("attention_k_eq_v", false);
  const LayerHeads global = read_global_heads(fields, has_k_for_v, decoder);
  const LayerHeads windowed = {.num_heads = decoder.num_heads,
                               .num_kv_heads = decoder.num_kv_heads};
  for (const int window : decoder.layer_windows) {
    decoder.layer_heads.push_back(window > 0 ? windowed : global);
    // Only the matrix of keys and values is the same. In the cache they differ, by the norm's
    // weights and the rotation, so both are stored.
    decoder.layer_k_is_v.push_back(has_k_for_v && window == 0);
  }
  for (LayerHeads& heads : decoder.layer_heads) heads.head_dim_v = heads.head_dim;
  decoder.ropes.front().head_dim = global.head_dim;
  read_shared_layers(fields, config.num_layers, decoder);
  decoder.layer_input_size =
      fields.integer("hidden_size_per_layer_input", 0, kMaxHiddenSize, default_input_size);
  constexpr std::string_view kVocab = "vocab_size_per_layer_input";
  const int num_tokens = fields.integer(kVocab, 1, 1 << 30, config.vocab_size);
  if (decoder.layer_input_size > 0 && num_tokens != config.vocab_size) {
    fields.fail(kVocab, std::to_string(num_tokens),
                fmt::format("vocab_size, {}", config.vocab_size));
  }
  decoder.attention_scale = 1.0F;
  decoder.norms_values = true;
  decoder.has_layer_scalars = true;
  decoder.logits_softcap = read_softcap(fields, "final_logit_softcapping", 0.0);
  decoder.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  decoder.rounds_embedding_scale = true;
}

}  // namespace

void read_gemma4(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  read_gemma4_with(fields, 256, config, decoder);
}

void read_gemma4_unified(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  read_gemma4_with(fields, 0, config, decoder);
}

void read_gemma3(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  if (fields.boolean("use_bidirectional_attention", false)) {
    fields.fail("use_bidirectional_attention", "true",
                "false: text generation needs causal attention");
  }
  read_gemma(fields, 0.0, 0.0, config, decoder);
}

}  // namespace quire

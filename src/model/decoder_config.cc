#include "model/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "model/config_fields.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

// Upper bounds like those in the header. Products with limits from flags use Saturated.
constexpr int kMaxVocabSize = 1 << 23;
constexpr int kMaxPositions = 1 << 28;

std::optional<RopeType> parse_rope_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, RopeType>, 10> kTypes = {{
      {"default", RopeType::kDefault},
      {"mrope", RopeType::kDefault},  // of a text, every part of a position is the same number
      {"linear", RopeType::kLinear},
      {"dynamic", RopeType::kDynamic},
      {"llama3", RopeType::kLlama3},
      {"yarn", RopeType::kYarn},
      {"longrope", RopeType::kLongRope},
      {"su", RopeType::kLongRope},  // its name when Phi-3 was published
      {"proportional", RopeType::kProportional},
      {"divisors", RopeType::kDivisors},  // written by gguf_config.cc
  }};
  for (const auto& [type_name, type] : kTypes) {
    if (type_name == name) return type;
  }
  return std::nullopt;
}

void read_llama3(ConfigFields& fields, RopeConfig& rope) {
  rope.low_freq_factor = fields.number("low_freq_factor", 1e-3, 1e6);
  rope.high_freq_factor = fields.number("high_freq_factor", 1e-3, 1e6);
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    fields.fail("high_freq_factor", fmt::format("{}", rope.high_freq_factor),
                fmt::format("more than low_freq_factor, {}", rope.low_freq_factor));
  }
}

void read_yarn(ConfigFields& fields, RopeConfig& rope) {
  rope.beta_fast = fields.number("beta_fast", 1e-3, 1e6, rope.beta_fast);
  rope.beta_slow = fields.number("beta_slow", 1e-3, 1e6, rope.beta_slow);
  rope.truncate = fields.boolean("truncate", true);
  rope.attention_factor = fields.optional_number("attention_factor", 1e-3, 1e3);
  rope.mscale = fields.optional_number("mscale", 0.0, 1e3);
  rope.mscale_all_dim = fields.optional_number("mscale_all_dim", 0.0, 1e3);
}

void read_longrope(ConfigFields& fields, RopeConfig& rope) {
  rope.attention_factor = fields.optional_number("attention_factor", 1e-3, 1e3);
  rope.divisors = fields.numbers("short_factor", 1e-6, 1e6, kMaxHeadDim / 2);
  rope.long_divisors = fields.numbers("long_factor", 1e-6, 1e6, kMaxHeadDim / 2);
}

// The factor that stretches the context; if the field is absent, the ratio of the two lengths.
double read_factor(ConfigFields& fields, const RopeConfig& rope, int max_position_embeddings) {
  const double ratio =
      static_cast<double>(max_position_embeddings) / rope.original_max_position_embeddings;
  const bool may_be_absent = rope.type == RopeType::kYarn || rope.type == RopeType::kLongRope;
  return fields.number("factor", 1.0, 1e6,
                       may_be_absent && ratio >= 1.0 ? std::optional(ratio) : std::nullopt);
}

// Reads the part of the scaling that depends on its type.
void read_rope_scaling(ConfigFields& fields, int max_position_embeddings, RopeConfig& rope) {
  if (fields.has("factor") && !fields.has("type") && !fields.has("rope_type")) {
    fields.fail("rope_type", "nothing", "a type beside \"factor\"");
  }
  const std::string old_spelling = fields.optional_text("type").value_or("default");
  const std::string type = fields.optional_text("rope_type").value_or(old_spelling);
  if (fields.has("type") && parse_rope_type(old_spelling) != parse_rope_type(type)) {
    fields.fail("rope_type",
                fmt::format("{} beside type {}", quote_name(type), quote_name(old_spelling)),
                "the same type in both");
  }
  const std::optional<RopeType> known = parse_rope_type(type);
  if (!known) {
    fields.fail("rope_type", quote_name(type),
                "default, linear, dynamic, llama3, yarn, longrope or proportional");
    return;
  }
  rope.type = *known;
  if (rope.type == RopeType::kDefault) return;
  if (rope.type == RopeType::kProportional) {
    fields.expect_value("factor", 1.0, "1: no published model stretches this rotation");
    return;
  }
  if (rope.type == RopeType::kDivisors) {
    rope.divisors = fields.numbers("divisors", 1e-6, 1e6, kMaxHeadDim / 2);
    return;
  }
  rope.original_max_position_embeddings = fields.integer(
      "original_max_position_embeddings", 1, kMaxPositions,
      rope.original_max_position_embeddings > 0 ? rope.original_max_position_embeddings
                                                : max_position_embeddings);
  if (rope.type == RopeType::kLongRope && rope.original_max_position_embeddings < 2) {
    fields.fail("original_max_position_embeddings", "1",
                "at least 2: LongRoPE divides by the logarithm of the length");
  }
  rope.factor = read_factor(fields, rope, max_position_embeddings);
  if (rope.type == RopeType::kDynamic) rope.ntk_alpha = fields.number("alpha", 0.0, 1e9, 0.0);
  if (rope.type == RopeType::kLlama3) read_llama3(fields, rope);
  if (rope.type == RopeType::kYarn) read_yarn(fields, rope);
  if (rope.type == RopeType::kLongRope) read_longrope(fields, rope);
}

// The part of a head that is rotated: a factor, or a number of elements (MiniMax-M2).
double read_rotated_part(ConfigFields& fields, const DecoderConfig& decoder, double fallback) {
  const std::optional<int> elements = fields.optional_integer("rotary_dim", 2, decoder.head_dim);
  if (elements) fallback = static_cast<double>(*elements) / decoder.head_dim;
  const double part = fields.number("partial_rotary_factor", 0.0, 1.0, fallback);
  if (elements && static_cast<int>(decoder.head_dim * part) != *elements) {
    fields.fail(
        "partial_rotary_factor", fmt::format("{} beside rotary_dim {}", part, *elements),
        fmt::format("{}, the same part of a head's {} elements", fallback, decoder.head_dim));
  }
  return part;
}

void check_rotation(ConfigFields& fields, const RopeConfig& rope, int head_dim) {
  const int num_rotated = rotated_dim(rope, head_dim);
  if (num_rotated < 2 || num_rotated % 2 != 0) {
    fields.fail("partial_rotary_factor", fmt::format("{}", rope.rotated_part),
                fmt::format("an even number of a head's {} elements", head_dim));
  }
  const auto check_size = [&](std::string_view key, const std::vector<double>& divisors) {
    if (std::ssize(divisors) == num_rotated / 2) return;
    fields.fail(key, fmt::format("{} numbers", divisors.size()),
                fmt::format("one per frequency, {}", num_rotated / 2));
  };
  if (rope.type == RopeType::kDivisors) check_size("divisors", rope.divisors);
  if (rope.type == RopeType::kLongRope) {
    check_size("short_factor", rope.divisors);
    check_size("long_factor", rope.long_divisors);
  }
}

void read_head_dim(ConfigFields& fields, const DecoderDefaults& defaults, const ModelConfig& config,
                   DecoderConfig& decoder) {
  const bool derives_head_dim = !fields.has("head_dim") && !defaults.head_dim;
  if (derives_head_dim && config.hidden_size % decoder.num_heads != 0) {
    fields.fail("hidden_size", std::to_string(config.hidden_size),
                fmt::format("a multiple of num_attention_heads, {}, where there is no head_dim",
                            decoder.num_heads));
  }
  decoder.head_dim =
      fields.integer("head_dim", 2, kMaxHeadDim,
                     defaults.head_dim.value_or(config.hidden_size / decoder.num_heads));
  if (decoder.head_dim < 2 || decoder.head_dim > kMaxHeadDim || decoder.head_dim % 2 != 0) {
    fields.fail("head_dim", std::to_string(decoder.head_dim),
                fmt::format("an even number from 2 to {}", kMaxHeadDim));
  }
}

// If there are fewer heads of keys and values than ranks, adjacent ranks share one.
bool divides_heads(int num_kv_heads, const Parallel& parallel) {
  return num_kv_heads % parallel.size == 0 || parallel.size % num_kv_heads == 0;
}

}  // namespace

void read_decoder_sizes(ConfigFields& fields, const DecoderDefaults& defaults, ModelConfig& config,
                        DecoderConfig& decoder) {
  config.hidden_size = fields.integer("hidden_size", 1, kMaxHiddenSize);
  decoder.intermediate_size =
      fields.integer("intermediate_size", 1, kMaxIntermediateSize, defaults.intermediate_size);
  config.num_layers = fields.integer("num_hidden_layers", 1, kMaxLayers);
  decoder.num_heads = fields.integer("num_attention_heads", 1, kMaxHeads, defaults.num_heads);
  decoder.num_kv_heads = fields.integer("num_key_value_heads", 1, kMaxHeads,
                                        defaults.num_kv_heads.value_or(decoder.num_heads));
  config.vocab_size = fields.integer("vocab_size", 1, kMaxVocabSize, defaults.vocab_size);
  decoder.max_position_embeddings =
      fields.integer("max_position_embeddings", 1, kMaxPositions, defaults.max_position_embeddings);
  decoder.rms_norm_eps =
      static_cast<float>(fields.number("rms_norm_eps", 0.0, 1.0, defaults.rms_norm_eps));
  if (!fields.status().ok()) return;
  if (decoder.num_heads % decoder.num_kv_heads != 0) {
    fields.fail("num_key_value_heads", std::to_string(decoder.num_kv_heads),
                fmt::format("a divisor of num_attention_heads, {}", decoder.num_heads));
  }
  read_head_dim(fields, defaults, config, decoder);
  decoder.attention_scale = 1.0F / std::sqrt(static_cast<float>(decoder.head_dim));
}

bool has_ropes_by_layer_type(const ConfigFields& rope_parameters) {
  return rope_parameters.mentions("full_attention") ||
         rope_parameters.mentions("sliding_attention");
}

RopeConfig read_rope_parameters(ConfigFields& fields, const DecoderConfig& decoder,
                                const RopeDefaults& defaults) {
  RopeConfig rope;
  rope.theta = fields.number("rope_theta", kMinRopeTheta, kMaxRopeTheta, defaults.theta);
  rope.rotated_part = read_rotated_part(fields, decoder, defaults.rotated_part);
  rope.original_max_position_embeddings = defaults.original_max_position_embeddings;
  read_rope_scaling(fields, decoder.max_position_embeddings, rope);
  rope.query_scale.beta = fields.number("llama_4_scaling_beta", 0.0, 10.0, 0.0);
  if (rope.query_scale.beta > 0.0) {
    // Also beside a rotation without scaling, which does not read the length.
    const int length = rope.original_max_position_embeddings;
    rope.query_scale.period = fields.integer("original_max_position_embeddings", 1, kMaxPositions,
                                             length > 0 ? std::optional(length) : std::nullopt);
  }
  check_rotation(fields, rope, decoder.head_dim);
  return rope;
}

RopeConfig read_rope(ConfigFields& fields, const DecoderConfig& decoder,
                     const RopeDefaults& defaults) {
  fields.add_spellings("rope_parameters", {"rope_scaling"});
  RopeDefaults outer = defaults;
  outer.theta = fields.number("rope_theta", kMinRopeTheta, kMaxRopeTheta, defaults.theta);
  outer.rotated_part = read_rotated_part(fields, decoder, defaults.rotated_part);
  // Phi-3 has the length before scaling here.
  outer.original_max_position_embeddings =
      fields.integer("original_max_position_embeddings", 1, kMaxPositions, 0);
  std::optional<ConfigFields> scaling = fields.object("rope_parameters");
  if (!scaling) {
    RopeConfig rope;
    rope.theta = outer.theta;
    rope.rotated_part = outer.rotated_part;
    check_rotation(fields, rope, decoder.head_dim);
    return rope;
  }
  if (has_ropes_by_layer_type(*scaling)) {
    fields.fail("rope_parameters", "parameters per type of layer", "one set for all layers");
    return {};
  }
  const RopeConfig rope = read_rope_parameters(*scaling, decoder, outer);
  fields.keep(scaling->status());
  if (fields.has("rope_theta") && rope.theta != outer.theta) {
    fields.fail("rope_theta",
                fmt::format("{} beside {} in rope_parameters", outer.theta, rope.theta),
                "the same value in both");
  }
  return rope;
}

void read_decoder_rope(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder,
                       const RopeDefaults& defaults) {
  const RopeConfig rope = read_rope(fields, decoder, defaults);
  config.longest_model_len = longest_context(rope, decoder.max_position_embeddings);
  decoder.ropes = {rope};
  decoder.layer_ropes.assign(static_cast<size_t>(config.num_layers), 0);
}

std::vector<std::string> read_layer_types(ConfigFields& fields, int num_layers,
                                          std::string_view windowed) {
  std::vector<std::string> types = fields.texts("layer_types", kMaxLayers);
  if (!require_one_per_layer(fields, "layer_types", types.size(), num_layers)) return {};
  for (const std::string& type : types) {
    if (type == "full_attention" || type == windowed) continue;
    fields.fail("layer_types", quote_name(type), fmt::format("full_attention or {}", windowed));
  }
  return types;
}

const DecoderConfig& decoder_config(const ModelConfig& config) {
  const auto* decoder = dynamic_cast<const DecoderConfig*>(config.family.get());
  QUIRE_CHECK(decoder != nullptr, "[model] the family's configuration is not that of a decoder");
  return *decoder;
}

LayerHeads heads_of(const DecoderConfig& config, size_t layer) {
  LayerHeads heads = config.layer_heads.empty() ? LayerHeads{config.num_heads, config.num_kv_heads}
                                                : config.layer_heads[layer];
  if (heads.head_dim == 0) heads.head_dim = config.head_dim;
  if (heads.head_dim_v == 0) heads.head_dim_v = config.value_dim();
  return heads;
}

int intermediate_size_of(const DecoderConfig& config, size_t layer) {
  const std::vector<int>& sizes = config.layer_intermediate_sizes;
  return sizes.empty() ? config.intermediate_size : sizes[layer];
}

int largest_intermediate_size(const DecoderConfig& config) {
  const std::vector<int>& sizes = config.layer_intermediate_sizes;
  return sizes.empty() ? config.intermediate_size : std::ranges::max(sizes);
}

size_t kv_source_of(const DecoderConfig& config, size_t layer) {
  return config.kv_sources.empty() ? layer : static_cast<size_t>(config.kv_sources[layer]);
}

bool owns_cache(const DecoderConfig& config, size_t layer) {
  return !has_state(config, layer) && kv_source_of(config, layer) == layer &&
         config.target_layers.empty();
}

bool has_k_for_v(const DecoderConfig& config, size_t layer) {
  return !config.layer_k_is_v.empty() && config.layer_k_is_v[layer];
}

bool has_conv(const DecoderConfig& config, size_t layer) {
  return config.convs && config.convs->layers[layer];
}

bool has_delta(const DecoderConfig& config, size_t layer) {
  return config.deltas && config.deltas->layers[layer];
}

bool has_state(const DecoderConfig& config, size_t layer) {
  return has_conv(config, layer) || has_delta(config, layer);
}

float residual_norm_eps(const DecoderConfig& config) {
  return static_cast<float>(config.rms_norm_eps / (config.residual_scale * config.residual_scale));
}

bool has_dense_layers(const DecoderConfig& config) {
  return !config.moe || std::ranges::count(config.moe->layers, false) > 0;
}

Status check_shards(const ModelConfig& model, const Parallel& parallel) {
  const DecoderConfig& config = decoder_config(model);
  if (parallel.size < 1 || parallel.rank < 0 || parallel.rank >= parallel.size) {
    return invalid_argument(fmt::format(
        "[model] tensor_parallel_size: got rank {} of {}, expected a rank below the size",
        parallel.rank, parallel.size));
  }
  struct Dimension {
    const char* name;
    int count;
  };
  LayerHeads heads = {config.num_heads, config.mla ? config.num_heads : config.num_kv_heads};
  for (const LayerHeads& layer : config.layer_heads) {
    if (layer.num_heads % parallel.size != 0) heads.num_heads = layer.num_heads;
    if (!divides_heads(layer.num_kv_heads, parallel)) heads.num_kv_heads = layer.num_kv_heads;
  }
  const MoeConfig moe = config.moe.value_or(MoeConfig());
  // The field may have any value if no layer is dense.
  const int dense_size = has_dense_layers(config) ? config.intermediate_size : 0;
  for (const Dimension split :
       {Dimension{"num_attention_heads", heads.num_heads},
        Dimension{"intermediate_size", dense_size},
        Dimension{"hidden_size, the channels of convolutions",
                  config.convs ? model.hidden_size : 0},
        Dimension{"linear_num_key_heads", config.deltas ? config.deltas->shape.num_k_heads : 0},
        Dimension{"moe_intermediate_size", moe.intermediate_size},
        Dimension{"the size of the shared experts", moe.shared_intermediate_size}}) {
    if (split.count % parallel.size == 0) continue;
    return invalid_argument(
        fmt::format("[model] `tensor_parallel_size` {} does not divide {}; got {}, expected a "
                    "multiple; choose another `tensor_parallel_size`",
                    parallel.size, split.name, split.count));
  }
  if (!divides_heads(heads.num_kv_heads, parallel)) {
    return invalid_argument(
        fmt::format("[model] `tensor_parallel_size` {} does not fit num_key_value_heads; got {}, "
                    "expected a multiple or a divisor; choose another `tensor_parallel_size`",
                    parallel.size, heads.num_kv_heads));
  }
  // Every rank has a token, although the last ones may have fewer than the others.
  if (ceil_div(model.vocab_size, parallel.size) * (parallel.size - 1) < model.vocab_size) return {};
  return invalid_argument(
      fmt::format("[model] `tensor_parallel_size` {} is too large for vocab_size; got {}; choose a "
                  "smaller one",
                  parallel.size, model.vocab_size));
}

}  // namespace quire

#include "model/decoder_weights.h"

#include <fmt/format.h>

#include <numbers>
#include <utility>

namespace quire {
namespace {

// The name, after a layer's prefix, of the number that multiplies the layer's output.
constexpr std::string_view kLayerScalar = "layer_scalar";

// The norms of queries and keys.
void add_qk_norms(const DecoderConfig& c, const std::string& attention, size_t layer_idx,
                  DecoderLayer& layer, WeightGroup& group) {
  if (c.qk_norm == QkNorm::kNone) return;
  if (c.qk_norm == QkNorm::kRotatedHeads) {
    const RopeConfig& rope = c.ropes[static_cast<size_t>(c.layer_ropes[layer_idx])];
    if (rope.type == RopeType::kNone) return;
  }
  const bool is_wide = c.qk_norm == QkNorm::kWholeWidth;
  const LayerHeads heads = heads_of(c, layer_idx);
  const auto add = [&](Tensor& norm, const char* name, int num_heads) {
    VectorBinding binding = {&norm, fmt::format("{}{}.weight", attention, name),
                             (is_wide ? int64_t{num_heads} : 1) * heads.head_dim, c.norm_addend,
                             is_wide ? num_heads : 0};
    if (!c.qk_norm_has_weights) {
      binding.name.clear();
      binding.addend = 1.0F;
    }
    group.vectors.push_back(std::move(binding));
  };
  add(layer.q_norm, "q_norm", heads.num_heads);
  if (!owns_cache(c, layer_idx)) return;
  add(layer.k_norm, "k_norm", heads.num_kv_heads);
  if (c.norms_values) group.vectors.push_back({&layer.v_norm, "", heads.head_dim_v, 1.0F});
}

void add_layer_norms(const ModelConfig& config, const std::string& prefix, DecoderLayer& layer,
                     WeightGroup& group) {
  const DecoderConfig& c = decoder_config(config);
  const auto add = [&](Tensor& norm, std::string_view name) {
    if (name.empty()) return;
    group.vectors.push_back(
        {&norm, fmt::format("{}{}.weight", prefix, name), config.hidden_size, c.norm_addend});
  };
  add(layer.input_norm, c.norms.attention_input);
  add(layer.attention_output_norm, c.norms.attention_output);
  add(layer.mlp_norm, c.norms.mlp_input);
  add(layer.mlp_output_norm, c.norms.mlp_output);
}

// Adds the sub-layer of the layer's own input, and the number that multiplies the layer's output.
// head_weights() adds the last layer's number.
void add_input_weights(const ModelConfig& config, const std::string& prefix, size_t layer_idx,
                       DecoderLayer& layer, WeightGroup& group) {
  const DecoderConfig& c = decoder_config(config);
  if (c.has_layer_scalars && layer_idx + 1 < static_cast<size_t>(config.num_layers)) {
    group.vectors.push_back({&layer.output_scale, fmt::format("{}{}", prefix, kLayerScalar), 1});
  }
  const int width = c.layer_input_size;
  if (width == 0) return;
  group.matrices.push_back({&layer.input_gate,
                            {{prefix + "per_layer_input_gate", width}},
                            config.hidden_size,
                            Split::kNone,
                            false,
                            config.format});
  group.matrices.push_back({&layer.input_projection,
                            {{prefix + "per_layer_projection", config.hidden_size}},
                            width,
                            Split::kNone,
                            false,
                            config.format});
  group.vectors.push_back(
      {&layer.input_output_norm, prefix + "post_per_layer_input_norm.weight", config.hidden_size});
}

// The matrices of a layer's convolution, whose channels are divided among the ranks.
void add_conv_weights(const ModelConfig& config, const std::string& prefix, DecoderLayer& layer,
                      WeightGroup& group) {
  const std::string conv = prefix + "conv.";
  const int channels = config.hidden_size;
  const int64_t kernel = decoder_config(config).convs->kernel;
  group.matrices = {
      {&layer.qkv,
       {{conv + "b_proj", channels}, {conv + "g_proj", channels}, {conv + "x_proj", channels}},
       config.hidden_size,
       Split::kRows,
       false,
       config.format},
      {&layer.o,
       {{conv + "out_proj", config.hidden_size}},
       channels,
       Split::kColumns,
       false,
       config.format}};
  VectorBinding weights = {&layer.conv, conv + "conv.weight", channels * kernel, 0.0F, channels};
  weights.shape = Shape{channels, 1, kernel};
  weights.transposed_columns = kernel;
  group.vectors.push_back(std::move(weights));
}

// The matrices and vectors of a layer's delta net, whose heads are divided among the ranks.
void add_delta_weights(const ModelConfig& config, const std::string& prefix, DecoderLayer& layer,
                       WeightGroup& group) {
  const DeltaNetShape& shape = decoder_config(config).deltas->shape;
  const std::string net = prefix + "linear_attn.";
  const int64_t keys = int64_t{shape.num_k_heads} * shape.k_dim;
  group.matrices = {{&layer.qkv,
                     {{net + "q_proj", keys, shape.num_k_heads},
                      {net + "k_proj", keys, shape.num_k_heads},
                      {net + "v_proj", shape.width(), shape.num_v_heads},
                      {net + "in_proj_z", shape.width(), shape.num_v_heads}},
                     config.hidden_size,
                     Split::kRows,
                     false,
                     config.format},
                    {&layer.gate,
                     {{net + "in_proj_b", shape.num_v_heads, shape.num_v_heads},
                      {net + "in_proj_a", shape.num_v_heads, shape.num_v_heads}},
                     config.hidden_size,
                     Split::kRows,
                     false,
                     config.format},
                    {&layer.o,
                     {{net + "out_proj", config.hidden_size}},
                     shape.width(),
                     Split::kColumns,
                     false,
                     config.format}};
  VectorBinding conv = {&layer.conv, net + "conv1d.weight", shape.num_channels() * shape.kernel};
  conv.shape = Shape{shape.num_channels(), 1, shape.kernel};
  conv.transposed_columns = shape.kernel;
  conv.sections = {
      {keys, shape.num_k_heads}, {keys, shape.num_k_heads}, {shape.width(), shape.num_v_heads}};
  group.vectors.push_back(std::move(conv));
  group.vectors.push_back(
      {&layer.a_log, net + "A_log", shape.num_v_heads, 0.0F, shape.num_v_heads});
  group.vectors.push_back(
      {&layer.dt_bias, net + "dt_bias", shape.num_v_heads, 0.0F, shape.num_v_heads});
  group.vectors.push_back({&layer.delta_norm, net + "norm.weight", shape.v_dim});
}

// The matrices and norms of a layer's attention, or of its convolution or delta net.
WeightGroup mixer_weights(const ModelConfig& config, const std::string& prefix, size_t layer_idx,
                          DecoderLayer& layer, int64_t qkv_columns) {
  const DecoderConfig& c = decoder_config(config);
  WeightGroup group;
  group.is_layer = true;
  add_layer_norms(config, prefix, layer, group);
  if (has_conv(c, layer_idx)) {
    add_conv_weights(config, prefix, layer, group);
    return group;
  }
  if (has_delta(c, layer_idx)) {
    add_delta_weights(config, prefix, layer, group);
    return group;
  }
  if (owns_cache(c, layer_idx)) group.kv_scales = {{&layer.kv_scales, prefix + "self_attn."}};
  if (c.mla) {
    add_mla_weights(c, config.hidden_size, prefix, config.format, layer.mla, layer.o, group);
    return group;
  }
  const LayerHeads heads = heads_of(c, layer_idx);
  const std::string attention = prefix + "self_attn.";
  const int64_t k_size = int64_t{heads.num_kv_heads} * heads.head_dim;
  const int64_t v_size = int64_t{heads.num_kv_heads} * heads.head_dim_v;
  const int64_t out_size = int64_t{heads.num_heads} * heads.head_dim_v;
  std::vector<MatrixPart> parts = {
      {attention + "q_proj", int64_t{heads.num_heads} * heads.head_dim, heads.num_heads}};
  if (owns_cache(c, layer_idx)) {
    parts.push_back({attention + "k_proj", k_size, heads.num_kv_heads});
    if (!has_k_for_v(c, layer_idx)) {
      parts.push_back({attention + "v_proj", v_size, heads.num_kv_heads});
    }
  }
  group.matrices = {
      {&layer.qkv, std::move(parts), qkv_columns, Split::kRows, c.qkv_bias, config.format},
      {&layer.o,
       {{attention + "o_proj", config.hidden_size}},
       out_size,
       Split::kColumns,
       c.o_bias,
       config.format}};
  if (c.output_gate.width != GateWidth::kNone) {
    const int64_t num_gates =
        c.output_gate.width == GateWidth::kPerHead ? heads.num_heads : out_size;
    group.matrices.push_back({&layer.gate,
                              {{attention + "gate_proj", num_gates, heads.num_heads}},
                              qkv_columns,
                              Split::kRows,
                              false,
                              config.format});
  }
  if (!c.layer_sinks.empty() && c.layer_sinks[layer_idx]) {
    group.vectors.push_back(
        {&layer.sinks, attention + "sinks", heads.num_heads, 0.0F, heads.num_heads});
  }
  add_qk_norms(c, attention, layer_idx, layer, group);
  return group;
}

// The MLP whose matrices have names below `block`.
MlpBinding mlp_weights(const ModelConfig& config, const std::string& block, int64_t inner,
                       DecoderLayer& layer) {
  const DecoderConfig& c = decoder_config(config);
  return {.gate_up = {&layer.gate_up,
                      {{block + "gate_proj", inner}, {block + "up_proj", inner}},
                      config.hidden_size,
                      Split::kInnerRows,
                      c.mlp_bias,
                      config.format},
          .down = {&layer.down,
                   {{block + "down_proj", config.hidden_size}},
                   inner,
                   Split::kInnerColumns,
                   c.mlp_bias,
                   config.format}};
}

void add_mlp(MlpBinding mlp, WeightGroup& group) {
  group.matrices.push_back(std::move(mlp.gate_up));
  group.matrices.push_back(std::move(mlp.down));
}

void add_experts(const ModelConfig& config, const std::string& prefix, DecoderLayer& layer,
                 WeightGroup& group) {
  const DecoderConfig& c = decoder_config(config);
  add_moe_weights(*c.moe, config.hidden_size, prefix, config.format, layer.moe, group);
  if (c.moe->shared_intermediate_size == 0) return;
  const char* const block = c.moe->has_branch_norms ? "mlp." : "mlp.shared_experts.";
  MlpBinding shared = mlp_weights(config, prefix + block, c.moe->shared_intermediate_size, layer);
  if (const int num_shared = num_mergeable_experts(config); num_shared > 0) {
    group.experts.back().num_shared = num_shared;
    group.experts.back().shared = std::move(shared);
  } else {
    add_mlp(std::move(shared), group);
  }
}

}  // namespace

WeightGroup decoder_layer_weights(const ModelConfig& config, const std::string& prefix,
                                  size_t layer_idx, DecoderLayer& layer,
                                  std::optional<int64_t> qkv_columns) {
  const DecoderConfig& c = decoder_config(config);
  WeightGroup group =
      mixer_weights(config, prefix, layer_idx, layer, qkv_columns.value_or(config.hidden_size));
  add_input_weights(config, prefix, layer_idx, layer, group);
  if (c.moe && c.moe->layers[layer_idx]) {
    add_experts(config, prefix, layer, group);
  } else {
    add_mlp(mlp_weights(config, prefix + "mlp.", intermediate_size_of(c, layer_idx), layer), group);
  }
  return group;
}

MatrixBinding vocabulary_matrix(std::unique_ptr<Linear>& linear, std::string name, int num_tokens,
                                const ModelConfig& config) {
  return {&linear, {{std::move(name), num_tokens}}, config.hidden_size, Split::kVocabulary};
}

WeightGroup embedding_weights(const ModelConfig& config, const std::string& prefix,
                              DecoderEnds& ends) {
  WeightGroup group;
  group.matrices = {
      vocabulary_matrix(ends.embed, prefix + "embed_tokens", config.vocab_size, config)};
  const DecoderConfig& c = decoder_config(config);
  if (c.norms_embeddings) {
    group.vectors = {{&ends.embedding_norm, "", config.hidden_size, 1.0F}};
  }
  if (c.layer_input_size > 0) {
    const int64_t width = int64_t{config.num_layers} * c.layer_input_size;
    group.matrices.push_back(
        {&ends.layer_embed, {{prefix + "embed_tokens_per_layer", config.vocab_size}}, width});
    group.matrices.push_back({&ends.layer_projection,
                              {{prefix + "per_layer_model_projection", width}},
                              config.hidden_size,
                              Split::kNone,
                              false,
                              config.format});
    group.vectors.push_back({&ends.layer_projection_norm,
                             prefix + "per_layer_projection_norm.weight", c.layer_input_size, 0.0F,
                             0, static_cast<float>(1.0 / std::numbers::sqrt2)});
  }
  return group;
}

WeightGroup head_weights(const ModelConfig& config, const std::string& prefix, DecoderEnds& ends) {
  const DecoderConfig& c = decoder_config(config);
  WeightGroup group;
  group.vectors = {{&ends.final_norm, prefix + "norm.weight", config.hidden_size,
                    c.final_norm_addend.value_or(c.norm_addend), 0, c.logits_scale}};
  if (c.has_layer_scalars) {
    group.vectors.push_back(
        {&ends.output_scale,
         fmt::format("{}layers.{}.{}", prefix, config.num_layers - 1, kLayerScalar), 1});
  }
  if (!c.tie_word_embeddings && !config.embeds) {
    group.matrices = {vocabulary_matrix(ends.lm_head, "lm_head", config.vocab_size, config)};
  }
  return group;
}

}  // namespace quire

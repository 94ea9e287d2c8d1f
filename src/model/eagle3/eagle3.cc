#include "model/eagle3/eagle3.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "model/config_fields.h"
#include "model/decoder.h"
#include "model/draft_config.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr int64_t kDefaultTaps = 3;

const Eagle3Config& eagle3_config(const ModelConfig& head) {
  const auto* eagle = dynamic_cast<const Eagle3Config*>(head.family.get());
  QUIRE_CHECK(eagle != nullptr, "[model] the configuration is not that of an EAGLE-3 head");
  return *eagle;
}

// The authors' first heads have the name of the model whose layer they use.
void check_architectures(ConfigFields& fields) {
  require_architecture(fields,
                       {"LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM", "LlamaForCausalLM"});
}

// Reads the sizes and the rotation of the head's layers, as a Llama's config.json gives them.
void read_layers(ConfigFields& fields, ModelConfig& config, Eagle3Config& eagle) {
  require_text(fields, "model_type", "llama");
  require_text(fields, "hidden_act", "silu");
  require_switch(fields, "use_sliding_window", false);
  read_decoder_sizes(fields, {}, config, eagle);
  if (!fields.status().ok()) return;
  read_decoder_rope(fields, config, eagle);
  for (const std::string& type : read_layer_types(fields, config.num_layers)) {
    if (type != "full_attention") {
      fields.fail("layer_types", quote_name(type), "full_attention in every layer");
    }
  }
  eagle.layer_windows.assign(static_cast<size_t>(config.num_layers), 0);
  eagle.qkv_bias = eagle.o_bias = fields.boolean("attention_bias", false);
  eagle.mlp_bias = fields.boolean("mlp_bias", false);
  eagle.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  eagle.target_vocab_size = config.vocab_size;
}

void read_tapped_layers(ConfigFields& fields, Eagle3Config& eagle) {
  constexpr std::string_view kKey = "eagle_aux_hidden_state_layer_ids";
  if (!eagle.tapped_layers.empty()) return;
  eagle.tapped_layers = fields.integers(kKey, 0, kMaxLayers, kMaxTaps);
  // The columns of fc are in the order of the layers, for any order of the list.
  std::ranges::sort(eagle.tapped_layers);
  const auto twice = std::ranges::adjacent_find(eagle.tapped_layers);
  if (twice != eagle.tapped_layers.end()) {
    fields.fail(kKey, fmt::format("layer {} twice", *twice), "each layer once");
  }
}

// Reads all fields other than the layers'.
void read_head(ConfigFields& fields, bool default_norm_before_residual, ModelConfig& config,
               Eagle3Config& eagle) {
  config.vocab_size =
      fields.integer("draft_vocab_size", 1, eagle.target_vocab_size, eagle.target_vocab_size);
  eagle.target_hidden_size =
      fields.integer("target_hidden_size", 1, kMaxHiddenSize, config.hidden_size);
  eagle.norm_before_residual = fields.boolean("norm_before_residual", default_norm_before_residual);
  eagle.norm_before_fc = fields.boolean("norm_before_fc", false);
  eagle.norm_output = fields.boolean("norm_output", false);
  require_switch(fields, "fc_norm", false);
  require_switch(fields, "parallel_drafting", false);
  read_tapped_layers(fields, eagle);
  std::optional<ConfigFields> options = fields.object("eagle_config");
  if (!options) return;
  require_switch(*options, "use_aux_hidden_state", true);
  require_switch(*options, "use_input_layernorm_in_first_layer", true);
  require_switch(*options, "use_last_layernorm", true);
  require_switch(*options, "use_mtp_layernorm", false);
  eagle.norm_before_fc = options->boolean("norm_before_fc", eagle.norm_before_fc);
  read_tapped_layers(*options, eagle);
  fields.keep(options->status());
}

// The layout of `speculators` nests the layers' fields. There, the default of norm_before_residual
// is true, as in vLLM.
void read_fields(ConfigFields& fields, ModelConfig& config, Eagle3Config& eagle) {
  const bool is_speculators = fields.has("speculators_model_type");
  if (!is_speculators) {
    check_architectures(fields);
    read_layers(fields, config, eagle);
  } else if (std::optional<ConfigFields> layers = fields.object("transformer_layer_config")) {
    require_text(fields, "speculators_model_type", "eagle3");
    read_layers(*layers, config, eagle);
    fields.keep(layers->status());
  } else {
    fields.fail("transformer_layer_config", "nothing", "an object");
  }
  if (fields.status().ok()) read_head(fields, is_speculators, config, eagle);
}

void find_tensors(const WeightSource& weights, Eagle3Config& eagle) {
  const bool is_speculators = std::ranges::any_of(
      weights.names(), [](const std::string& name) { return name.starts_with("layers.0."); });
  eagle.first_layer = is_speculators ? "layers.0." : "midlayer.";
  eagle.has_embeddings = weights.has("embed_tokens.weight");
  eagle.has_lm_head = weights.has("lm_head.weight");
}

// In the first layer, input_norm is the norm of the embeddings.
struct HeadLayer : DecoderLayer {
  Tensor hidden_norm;  // [hidden]; of the hidden states, in the first layer alone
};

struct HeadWeights {
  DecoderEnds ends;
  std::unique_ptr<Linear> fc;  // [hidden, num_taps * target_hidden]
  Tensor taps_norm;            // [num_taps * target_hidden]; empty unless norm_before_fc
  std::vector<HeadLayer> layers;
};

WeightGroup input_weights(const ModelConfig& head, HeadWeights& weights) {
  const Eagle3Config& eagle = eagle3_config(head);
  const int64_t taps_width = eagle.num_taps() * eagle.target_hidden_size;
  WeightGroup group;
  group.matrices.push_back({&weights.fc, {{"fc", head.hidden_size}}, taps_width});
  if (eagle.norm_before_fc) {
    group.vectors.push_back({&weights.taps_norm, "input_norm.weight", taps_width});
  }
  if (eagle.has_embeddings) {
    group.matrices.push_back(
        vocabulary_matrix(weights.ends.embed, "embed_tokens", eagle.target_vocab_size, head));
  }
  return group;
}

WeightGroup layer_weights(const ModelConfig& head, size_t layer_idx, HeadLayer& layer) {
  const bool is_first = layer_idx == 0;
  const std::string prefix =
      is_first ? eagle3_config(head).first_layer : fmt::format("layers.{}.", layer_idx);
  const int64_t input_width = (is_first ? 2 : 1) * int64_t{head.hidden_size};
  WeightGroup group = decoder_layer_weights(head, prefix, layer_idx, layer, input_width);
  if (is_first) {
    group.vectors.push_back({&layer.hidden_norm, prefix + "hidden_norm.weight", head.hidden_size});
  }
  return group;
}

WeightGroup output_weights(const ModelConfig& head, DecoderEnds& ends) {
  WeightGroup group;
  group.vectors = {{&ends.final_norm, "norm.weight", head.hidden_size}};
  if (eagle3_config(head).has_lm_head) {
    group.matrices = {vocabulary_matrix(ends.lm_head, "lm_head", head.vocab_size, head)};
  }
  return group;
}

WeightList list_eagle3_weights(const ModelConfig& head, HeadWeights& weights) {
  WeightList list;
  list.groups.push_back(input_weights(head, weights));
  weights.layers.resize(static_cast<size_t>(head.num_layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    list.groups.push_back(layer_weights(head, i, weights.layers[i]));
  }
  list.groups.push_back(output_weights(head, weights.ends));
  list.ignored_prefixes.assign(kSpeculatorsTensors.begin(), kSpeculatorsTensors.end());
  return list;
}

class Eagle3Head final : public DecoderModel, public DraftHead {
 public:
  Eagle3Head(const ModelConfig& head, const ModelLimits& limits, Ops& ops, HeadWeights weights,
             std::vector<int32_t> target_ids)
      : DecoderModel(head, limits, ops, std::move(weights.ends)),
        eagle_(eagle3_config(head)),
        max_num_tokens_(limits.max_num_tokens),
        hidden_(head.hidden_size),
        fc_(std::move(weights.fc)),
        taps_norm_(std::move(weights.taps_norm)),
        layers_(std::move(weights.layers)),
        target_ids_(std::move(target_ids)) {}

  Status allocate();
  DraftHead* draft_head() override { return this; }
  int state_width() const override { return config().hidden_size; }
  Status forward(const StepInput& input) override;
  Status write_context(const StepInput& input) override;
  bool context_attends() const override { return layers_.size() > 1; }
  void combine(TensorView taps, TensorView out) override;
  Status output_states(const int32_t* rows, int num_rows, TensorView out) override;
  std::span<const int32_t> target_ids() const override { return target_ids_; }

 private:
  // The first layer's input → pairs: [norm of the embedding | norm of the hidden state] per token.
  // begin_step() left the embeddings in the residual, which the hidden states then replace.
  void read_pairs(const HeadLayer& layer, TensorView hidden, TensorView pairs);
  // The layer's input → qkv_view
  void begin_layer(size_t layer_idx, const StepInput& input);
  // qkv_view → delta
  Status finish_layer(size_t layer_idx, const StepInput& input);
  // Computes the layers before the last one, and the queries, keys and values of the last.
  Status reach_last_layer(const StepInput& input);

  Eagle3Config eagle_;
  int64_t max_num_tokens_ = 0;
  int64_t hidden_ = 0;
  std::unique_ptr<Linear> fc_;
  Tensor taps_norm_;
  std::vector<HeadLayer> layers_;
  std::vector<int32_t> target_ids_;
  Tensor pairs_;        // [max_num_tokens, 2 * hidden]
  Tensor normed_taps_;  // [max_num_tokens, num_taps * target_hidden]; empty unless norm_before_fc
};

Status Eagle3Head::allocate() {
  QUIRE_RETURN_IF_ERROR(allocate_buffers());
  const DType dtype = ops().activation_dtype();
  QUIRE_ASSIGN_OR_RETURN(pairs_, ops().allocate({max_num_tokens_, 2 * hidden_}, dtype));
  if (!eagle_.norm_before_fc) return {};
  QUIRE_ASSIGN_OR_RETURN(normed_taps_,
                         ops().allocate({max_num_tokens_, fc_->in_features()}, dtype));
  return {};
}

void Eagle3Head::read_pairs(const HeadLayer& layer, TensorView hidden, TensorView pairs) {
  const int64_t num_tokens = hidden.shape[0];
  const TensorView half = normed(num_tokens);
  norm_residual(layer.input_norm, num_tokens);
  ops().write_columns(half, pairs, 0);
  ops().residual_norm({.residual = hidden,
                       .weight = layer.hidden_norm.view.as<float>(),
                       .eps = eagle_.rms_norm_eps},
                      half);
  ops().write_columns(half, pairs, hidden_);
  ops().write_columns(eagle_.norm_before_residual ? half : hidden, residual(num_tokens), 0);
}

void Eagle3Head::begin_layer(size_t layer_idx, const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  const HeadLayer& layer = layers_[layer_idx];
  if (layer_idx > 0) {
    project_qkv(layer_idx, layer, norm_of_sum(layer.input_norm, num_tokens));
    return;
  }
  const TensorView pairs = pairs_.view.rows(0, num_tokens);
  read_pairs(layer, input.hidden, pairs);
  ops().linear(*layer.qkv, pairs, qkv_view(layer_idx, num_tokens));
}

Status Eagle3Head::finish_layer(size_t layer_idx, const StepInput& input) {
  const HeadLayer& layer = layers_[layer_idx];
  QUIRE_RETURN_IF_ERROR(attend(layer_idx, layer, input));
  run_after_attention(layer_idx, layer, input.num_tokens);
  return {};
}

Status Eagle3Head::reach_last_layer(const StepInput& input) {
  QUIRE_CHECK(
      input.hidden.data != nullptr && input.hidden.shape == (Shape{input.num_tokens, hidden_}),
      "[model] a draft head's step has no hidden state per token");
  begin_step(input);
  const size_t last = layers_.size() - 1;
  for (size_t i = 0; i < last; ++i) {
    begin_layer(i, input);
    QUIRE_RETURN_IF_ERROR(finish_layer(i, input));
  }
  begin_layer(last, input);
  return {};
}

Status Eagle3Head::forward(const StepInput& input) {
  QUIRE_RETURN_IF_ERROR(reach_last_layer(input));
  return finish_layer(layers_.size() - 1, input);
}

Status Eagle3Head::write_context(const StepInput& input) {
  QUIRE_RETURN_IF_ERROR(reach_last_layer(input));
  rotate_and_cache(layers_.size() - 1, layers_.back(), input);
  return {};
}

void Eagle3Head::combine(TensorView taps, TensorView out) {
  if (eagle_.norm_before_fc) {
    const TensorView normed = normed_taps_.view.rows(0, taps.shape[0]);
    ops().residual_norm(
        {.residual = taps, .weight = taps_norm_.view.as<float>(), .eps = eagle_.rms_norm_eps},
        normed);
    taps = normed;
  }
  ops().linear(*fc_, taps, out);
}

Status Eagle3Head::output_states(const int32_t* rows, int num_rows, TensorView out) {
  if (eagle_.norm_output) return hidden_states(rows, num_rows, out);
  last_output(rows, num_rows, out, last_norm_view(num_rows));
  return {};
}

}  // namespace

int64_t Eagle3Config::num_taps() const {
  return tapped_layers.empty() ? kDefaultTaps : static_cast<int64_t>(tapped_layers.size());
}

Result<ModelConfig> parse_eagle3_config(std::string_view json, std::string_view source,
                                        const WeightSource& weights) {
  auto eagle = std::make_shared<Eagle3Config>();
  QUIRE_ASSIGN_OR_RETURN(ModelConfig config,
                         parse_draft_config(json, source, "the EAGLE-3 head",
                                            [&](ConfigFields& fields, ModelConfig& sizes) {
                                              read_fields(fields, sizes, *eagle);
                                            }));
  find_tensors(weights, *eagle);
  eagle->source = source;
  config.family = std::move(eagle);
  return config;
}

std::vector<int> eagle3_tapped_layers(const ModelConfig& head, const ModelConfig& target) {
  const std::vector<int>& layers = eagle3_config(head).tapped_layers;
  if (!layers.empty()) return layers;
  return {2, target.num_layers / 2, target.num_layers - 3};
}

namespace {

Status check_eagle3_taps(const ModelConfig& head, const ModelConfig& target) {
  const std::vector<int> layers = eagle3_tapped_layers(head, target);
  if (eagle3_config(head).tapped_layers.empty() &&
      (layers[0] >= layers[1] || layers[1] >= layers[2])) {
    return invalid_argument(fmt::format(
        "[model] the target has too few layers for the EAGLE-3 head's default taps, layers 2, n/2 "
        "and n-3; got {}, expected at least 7, or eagle_aux_hidden_state_layer_ids in the head's "
        "config.json",
        target.num_layers));
  }
  if (layers.back() <= target.num_layers) return {};
  return invalid_argument(fmt::format(
      "[model] the EAGLE-3 head's eagle_aux_hidden_state_layer_ids are beyond the target's layers; "
      "got {}, expected at most {}; use a head that was trained for this model",
      layers.back(), target.num_layers));
}

}  // namespace

Status check_eagle3(const ModelConfig& head, const ModelConfig& target) {
  const Eagle3Config& eagle = eagle3_config(head);
  if (eagle.target_vocab_size != target.vocab_size) {
    return refuse_target(head, "vocab_size", eagle.target_vocab_size, target.vocab_size);
  }
  if (eagle.target_hidden_size != target.hidden_size) {
    return refuse_target(head, "target_hidden_size", eagle.target_hidden_size, target.hidden_size);
  }
  QUIRE_RETURN_IF_ERROR(check_eagle3_taps(head, target));
  return check_shared_ends(head, eagle, target);
}

std::vector<TensorSpec> list_eagle3_tensors(const ModelConfig& head) {
  HeadWeights weights;
  return list_tensors(list_eagle3_weights(head, weights));
}

int64_t eagle3_activation_bytes(const ModelConfig& head, const ModelLimits& limits,
                                const Ops& ops) {
  const Eagle3Config& eagle = eagle3_config(head);
  ModelLimits own = limits;
  own.tapped_layers.clear();
  const int64_t taps_width = eagle.num_taps() * eagle.target_hidden_size;
  const int64_t per_token = 2 * int64_t{head.hidden_size} + (eagle.norm_before_fc ? taps_width : 0);
  const Saturated inputs = Saturated(limits.max_num_tokens) * per_token *
                           static_cast<int64_t>(dtype_bytes(ops.activation_dtype()));
  return (inputs + decoder_activation_bytes(head, own, ops)).get();
}

Result<std::unique_ptr<Model>> load_eagle3(const ModelConfig& head, const Model& target,
                                           WeightSource& source, Ops& ops,
                                           const ModelLimits& limits, const LoadOptions& options) {
  const Eagle3Config& eagle = eagle3_config(head);
  QUIRE_RETURN_IF_ERROR(check_eagle3(head, target.config()));
  QUIRE_RETURN_IF_ERROR(check_shards(head, limits.parallel));
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> target_ids, read_target_ids(head, eagle, source));
  HeadWeights weights;
  QUIRE_RETURN_IF_ERROR(load_weights(list_eagle3_weights(head, weights), head.architecture, source,
                                     ops, limits.parallel, options));
  share_ends(eagle, target, weights.ends);
  ModelLimits own = limits;
  own.tapped_layers.clear();
  auto model =
      std::make_unique<Eagle3Head>(head, own, ops, std::move(weights), std::move(target_ids));
  QUIRE_RETURN_IF_ERROR(model->allocate());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace quire

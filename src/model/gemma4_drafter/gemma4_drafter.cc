#include "model/gemma4_drafter/gemma4_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/numbers.h"
#include "model/config_fields.h"
#include "model/decoder.h"
#include "model/draft_config.h"
#include "model/model_loader.h"
#include "ops/collectives.h"

namespace quire {
namespace {

// Fields that say of a drafter what they cannot say of a model.
constexpr std::string_view kOfDrafters[] = {"architectures", "model_type", "num_kv_shared_layers",
                                            "vocab_size_per_layer_input"};

const Gemma4DrafterConfig& drafter_config(const ModelConfig& drafter) {
  const auto* const config = dynamic_cast<const Gemma4DrafterConfig*>(drafter.family.get());
  QUIRE_CHECK(config != nullptr, "[model] the configuration is not that of a Gemma 4 drafter");
  return *config;
}

// The config.json of an ordinary model with the drafter's layers.
Result<std::string> layers_json(ConfigFields& fields, const simdjson::dom::object& root) {
  require_architecture(fields, {"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"});
  QUIRE_RETURN_IF_ERROR(fields.status());
  simdjson::dom::object text;
  if (root["text_config"].get(text)) {
    fields.fail("text_config", "nothing", "an object");
    return fields.status();
  }
  JsonWriter json;
  json.begin_object();
  json.key("architectures");
  json.begin_array();
  json.value("Gemma4ForCausalLM");
  json.end_array();
  for (const auto [key, value] : text) {
    if (std::ranges::find(kOfDrafters, key) != std::end(kOfDrafters)) continue;
    json.key(key);
    json.raw(simdjson::minify(value));
  }
  json.end_object();
  return json.take();
}

// The last layer of the target that has a cache and this window; -1: no layer has both.
int target_layer_of(const DecoderConfig& target, int window) {
  for (auto layer = static_cast<int>(target.layer_windows.size()) - 1; layer >= 0; --layer) {
    const auto idx = static_cast<size_t>(layer);
    if (owns_cache(target, idx) && target.layer_windows[idx] == window) return layer;
  }
  return -1;
}

Status set_target_layers(const ModelConfig& drafter, const ModelConfig& target,
                         Gemma4DrafterConfig& config) {
  const DecoderConfig& of_target = decoder_config(target);
  for (size_t layer = 0; layer < config.layer_windows.size(); ++layer) {
    const int source = target_layer_of(of_target, config.layer_windows[layer]);
    if (source < 0) {
      return invalid_argument(fmt::format(
          "[model] {} has a layer of another window than the target's; got {}, expected one of the "
          "target's (0: without a window); use a drafter that was trained for this model",
          drafter.architecture, config.layer_windows[layer]));
    }
    const LayerHeads own = heads_of(config, layer);
    const LayerHeads heads = heads_of(of_target, static_cast<size_t>(source));
    if (own.num_kv_heads != heads.num_kv_heads) {
      return refuse_target(drafter, "number of KV heads", own.num_kv_heads, heads.num_kv_heads);
    }
    if (own.head_dim != heads.head_dim) {
      return refuse_target(drafter, "size of a head", own.head_dim, heads.head_dim);
    }
    config.target_layers.push_back(source);
  }
  return {};
}

struct DrafterWeights {
  DecoderEnds ends;
  std::vector<DecoderLayer> layers;
  std::unique_ptr<Linear> input;   // [hidden, 2 * target's hidden]
  std::unique_ptr<Linear> output;  // [target's hidden, hidden]
};

WeightList list_weights(const ModelConfig& drafter, DrafterWeights& weights) {
  constexpr const char* kRoot = "model.";
  const int64_t width = drafter_config(drafter).target_hidden_size;
  WeightList list;
  list.groups.push_back(embedding_weights(drafter, kRoot, weights.ends));
  list.groups.back().matrices.push_back(
      {&weights.input, {{"pre_projection", drafter.hidden_size}}, 2 * width});
  weights.layers.resize(static_cast<size_t>(drafter.num_layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const std::string prefix = fmt::format("{}layers.{}.", kRoot, i);
    list.groups.push_back(decoder_layer_weights(drafter, prefix, i, weights.layers[i]));
  }
  list.groups.push_back(head_weights(drafter, kRoot, weights.ends));
  list.groups.back().matrices.push_back(
      {&weights.output, {{"post_projection", width}}, drafter.hidden_size});
  // The masked embedding chooses the tokens whose logits are computed. All are computed here.
  list.ignored_prefixes = {"lm_head.", "masked_embedding."};
  return list;
}

class Gemma4Drafter final : public DecoderModel, public DraftHead {
 public:
  Gemma4Drafter(const ModelConfig& drafter, const Model& target, const ModelLimits& limits,
                Ops& ops, DrafterWeights weights)
      : DecoderModel(drafter, limits, ops, std::move(weights.ends)),
        target_(target),
        width_(target.config().hidden_size),
        limits_(limits),
        weights_(std::move(weights)) {
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
      weights_.layers[i].source_scales = target.kv_scales(decoder().target_layers[i]);
    }
  }

  Status allocate();
  DraftHead* draft_head() override { return this; }
  int state_width() const override { return static_cast<int>(width_); }
  bool reads_target_cache() const override { return true; }
  Status forward(const StepInput& input) override;
  Status write_context(const StepInput& /*input*/) override { return {}; }
  void combine(TensorView taps, TensorView out) override;
  Status output_states(const int32_t* rows, int num_rows, TensorView out) override;
  std::span<const int32_t> target_ids() const override { return {}; }

 private:
  void begin_layers(const StepInput& input);

  const Model& target_;
  int64_t width_ = 0;  // the target's hidden_size
  ModelLimits limits_;
  DrafterWeights weights_;
  Tensor embedded_;  // [max_num_tokens, width]
  Tensor pairs_;     // [max_num_tokens, 2 * width]
  Tensor outputs_;   // [max_num_logit_rows, hidden]
};

Status Gemma4Drafter::allocate() {
  QUIRE_RETURN_IF_ERROR(allocate_buffers());
  const DType activation = ops().activation_dtype();
  QUIRE_ASSIGN_OR_RETURN(embedded_, ops().allocate({limits_.max_num_tokens, width_}, activation));
  QUIRE_ASSIGN_OR_RETURN(pairs_, ops().allocate({limits_.max_num_tokens, 2 * width_}, activation));
  QUIRE_ASSIGN_OR_RETURN(
      outputs_, ops().allocate({limits_.max_num_logit_rows, config().hidden_size}, activation));
  return {};
}

// The embeddings are the target's, as its first layer reads them.
void Gemma4Drafter::begin_layers(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  QUIRE_CHECK(input.hidden.data != nullptr && input.hidden.shape == (Shape{num_tokens, width_}),
              "[model] a draft head's step has no hidden state per token");
  begin_rotation(input);
  const Linear& table = *target_.embeddings();
  const TensorView embedded = embedded_.view.rows(0, num_tokens);
  const TensorView pairs = pairs_.view.rows(0, num_tokens);
  const float scale = first_scale(decoder_config(target_.config()), ops().activation_dtype());
  ops().embed(table, input.token_ids, scale, embedded);
  if (table.first_token_id()) ops().collectives()->all_reduce(embedded);
  ops().write_columns(embedded, pairs, 0);
  ops().write_columns(input.hidden, pairs, width_);
  ops().linear(*weights_.input, pairs, residual(num_tokens));
}

Status Gemma4Drafter::forward(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  begin_layers(input);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const DecoderLayer& layer = weights_.layers[i];
    const ResidualNorm norm =
        i == 0 ? norm_of_residual(layer.input_norm, num_tokens)
               : norm_of_sum(layer.input_norm, num_tokens, weights_.layers[i - 1].output_scale);
    project_qkv(i, layer, norm);
    QUIRE_RETURN_IF_ERROR(attend(i, layer, input));
    run_after_attention(i, layer, num_tokens);
  }
  return {};
}

void Gemma4Drafter::combine(TensorView taps, TensorView out) {
  ops().residual_norm({.residual = taps,
                       .weight = target_.final_norm(),
                       .eps = residual_norm_eps(decoder_config(target_.config()))},
                      out);
}

Status Gemma4Drafter::output_states(const int32_t* rows, int num_rows, TensorView out) {
  const TensorView outputs = outputs_.view.rows(0, num_rows);
  QUIRE_RETURN_IF_ERROR(hidden_states(rows, num_rows, outputs));
  ops().linear(*weights_.output, outputs, out);
  return {};
}

}  // namespace

Result<ModelConfig> parse_gemma4_drafter(std::string_view json, std::string_view source,
                                         const ModelConfig& target) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object root, root_object(document, source));
  ConfigFields fields(root, source);
  QUIRE_ASSIGN_OR_RETURN(const std::string layers, layers_json(fields, root));
  QUIRE_ASSIGN_OR_RETURN(ModelConfig drafter, parse_model_config(layers, source));
  auto config = std::make_shared<Gemma4DrafterConfig>();
  static_cast<DecoderConfig&>(*config) = decoder_config(drafter);
  drafter.architecture = "the Gemma 4 drafter";
  config->target_hidden_size = fields.integer("backbone_hidden_size", 1, kMaxHiddenSize, 1536);
  if (config->moe || config->layer_input_size > 0) {
    fields.fail("text_config", "experts, or inputs of each layer", "a dense drafter without them");
  }
  QUIRE_RETURN_IF_ERROR(fields.status());
  if (!decoder_config(target).has_layer_scalars) {
    return invalid_argument(fmt::format(
        "[model] the drafter is for Gemma 4; got the target {}, expected Gemma 4; use another "
        "method",
        target.architecture));
  }
  if (drafter.vocab_size != target.vocab_size) {
    return refuse_target(drafter, "vocab_size", drafter.vocab_size, target.vocab_size);
  }
  if (config->target_hidden_size != target.hidden_size) {
    return refuse_target(drafter, "backbone_hidden_size", config->target_hidden_size,
                         target.hidden_size);
  }
  QUIRE_RETURN_IF_ERROR(set_target_layers(drafter, target, *config));
  drafter.family = std::move(config);
  return drafter;
}

std::vector<TensorSpec> list_gemma4_drafter_tensors(const ModelConfig& drafter) {
  DrafterWeights weights;
  return list_tensors(list_weights(drafter, weights));
}

Result<int64_t> gemma4_drafter_activation_bytes(const ModelConfig& drafter,
                                                const ModelLimits& limits, const Ops& ops) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t layers, estimate_activation_bytes(drafter, limits, ops));
  const Saturated elements =
      Saturated(limits.max_num_tokens) * 3 * drafter_config(drafter).target_hidden_size +
      Saturated(limits.max_num_logit_rows) * drafter.hidden_size;
  return (elements * static_cast<int64_t>(dtype_bytes(ops.activation_dtype())) + layers).get();
}

Result<std::unique_ptr<Model>> load_gemma4_drafter(const ModelConfig& drafter, const Model& target,
                                                   WeightSource& source, Ops& ops,
                                                   const ModelLimits& limits,
                                                   const LoadOptions& options) {
  QUIRE_RETURN_IF_ERROR(check_shards(drafter, limits.parallel));
  DrafterWeights weights;
  QUIRE_RETURN_IF_ERROR(load_weights(list_weights(drafter, weights), drafter.architecture, source,
                                     ops, limits.parallel, options));
  auto model = std::make_unique<Gemma4Drafter>(drafter, target, limits, ops, std::move(weights));
  QUIRE_RETURN_IF_ERROR(model->allocate());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace quire

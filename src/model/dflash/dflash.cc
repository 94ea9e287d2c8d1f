#include "model/dflash/dflash.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "model/config_fields.h"
#include "model/decoder.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr int kMaxBlock = 1024;
constexpr int kMaxMarkovRank = 1 << 16;
constexpr int kDefaultHeadDim = 128;  // of Qwen3

// ---- config.json

// In the authors' layout, id i is the output of layer i, thus the input of layer i + 1.
constexpr TapIds kAuthorsTapIds = {.key = "target_layer_ids", .layer_offset = 1};
constexpr TapIds kSpeculatorsTapIds = {.key = "aux_hidden_state_layer_ids", .layer_offset = 0};

void require_full_attention(ConfigFields& fields, int num_layers) {
  for (const std::string& type : read_layer_types(fields, num_layers)) {
    if (type != "full_attention") {
      fields.fail("layer_types", quote_name(type), "full_attention in every layer");
    }
  }
}

// Reads the sizes and the rotation of the layers, as a Qwen3's config.json gives them.
void read_layers(ConfigFields& fields, ModelConfig& config, DFlashConfig& drafter) {
  require_text(fields, "model_type", "qwen3");
  require_text(fields, "hidden_act", "silu");
  require_switch(fields, "use_sliding_window", false);
  require_switch(fields, "is_causal", false);
  require_switch(fields, "is_neox_style", true);
  require_switch(fields, "rope_is_neox_style", true);
  require_switch(fields, "add_swa_attention_sink_bias", false);
  read_decoder_sizes(fields, {.head_dim = kDefaultHeadDim}, config, drafter);
  if (!fields.status().ok()) return;
  read_decoder_rope(fields, config, drafter);
  require_full_attention(fields, config.num_layers);
  drafter.layer_windows.assign(static_cast<size_t>(config.num_layers), 0);
  drafter.qkv_bias = drafter.o_bias = fields.boolean("attention_bias", false);
  drafter.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  drafter.qk_norm = QkNorm::kPerHead;
  drafter.is_causal = false;
}

void read_tapped_layers(ConfigFields& fields, DFlashConfig& drafter) {
  const TapIds& taps = drafter.tap_ids;
  const std::vector<int> ids =
      fields.integers(taps.key, -taps.layer_offset, kMaxLayers - taps.layer_offset, kMaxTaps);
  if (ids.empty()) {
    fields.fail(taps.key, "nothing", "the target's layers that the drafter reads");
  }
  // The columns of fc are in the order of the list.
  for (const int id : ids) drafter.tapped_layers.push_back(id + taps.layer_offset);
  const bool is_ascending =
      std::ranges::adjacent_find(ids, std::ranges::greater_equal()) == ids.end();
  if (!is_ascending) {
    fields.fail(taps.key, fmt::format("[{}]", fmt::join(ids, ", ")), "layers in ascending order");
  }
}

// Reads the fields of a block. DFlash's authors nest them in dflash_config; the other layouts have
// them at the top level.
void read_block(ConfigFields& fields, ConfigFields* nested, BlockMethod method,
                DFlashConfig& drafter) {
  const auto holder_of = [&](std::string_view key) -> ConfigFields& {
    return nested != nullptr && nested->has(key) ? *nested : fields;
  };
  drafter.block.mask_token_id =
      holder_of("mask_token_id").integer("mask_token_id", 0, drafter.target_vocab_size - 1);
  read_tapped_layers(holder_of(drafter.tap_ids.key), drafter);
  drafter.block.predicts_next =
      holder_of("sample_from_anchor").boolean("sample_from_anchor", method == BlockMethod::kDSpark);
  const int smallest = 1 + drafter.block.num_before_drafts();
  drafter.block.size = holder_of("block_size").integer("block_size", smallest, kMaxBlock);
  ConfigFields& markov = holder_of("markov_rank");
  drafter.markov_rank = markov.integer("markov_rank", 0, kMaxMarkovRank, 0);
  if (drafter.markov_rank == 0) return;
  if (method == BlockMethod::kDFlash) {
    markov.fail("markov_rank", std::to_string(drafter.markov_rank), "0, or method dspark");
  }
  require_text(holder_of("markov_head_type"), "markov_head_type", "vanilla");
}

// Reads the fields that both layouts have beside the fields of the layers.
void read_target(ConfigFields& fields, ModelConfig& config, DFlashConfig& drafter) {
  drafter.target_vocab_size = config.vocab_size;
  config.vocab_size =
      fields.integer("draft_vocab_size", 1, drafter.target_vocab_size, drafter.target_vocab_size);
  drafter.target_hidden_size =
      fields.integer("target_hidden_size", 1, kMaxHiddenSize, config.hidden_size);
  drafter.num_target_layers = fields.optional_integer("num_target_layers", 1, kMaxLayers);
  if (fields.number("logit_scale", 0.0, 1e6, 1.0) != 1.0) {
    fields.fail("logit_scale", "another scale", "1");
  }
}

void read_authors_layout(ConfigFields& fields, BlockMethod method, ModelConfig& config,
                         DFlashConfig& drafter) {
  if (method == BlockMethod::kDFlash) {
    require_architecture(fields, {"DFlashDraftModel"});
  } else {
    require_architecture(fields, {"Qwen3DSparkModel", "DSparkDraftModel"});
  }
  drafter.tap_ids = kAuthorsTapIds;
  read_layers(fields, config, drafter);
  if (!fields.status().ok()) return;
  read_target(fields, config, drafter);
  std::optional<ConfigFields> nested = fields.object("dflash_config");
  if (nested) {
    require_switch(*nested, "causal", false);
    require_switch(*nested, "use_swa", false);
    require_switch(*nested, "attention_sink_bias", false);
    require_switch(*nested, "use_aux_hidden_state", true);
  }
  read_block(fields, nested ? &*nested : nullptr, method, drafter);
  if (nested) fields.keep(nested->status());
}

// `speculators` nests the fields of the layers, and has all others side by side.
void read_speculators_layout(ConfigFields& fields, BlockMethod method, ModelConfig& config,
                             DFlashConfig& drafter) {
  require_text(fields, "speculators_model_type",
               method == BlockMethod::kDFlash ? "dflash" : "dspark");
  std::optional<ConfigFields> layers = fields.object("transformer_layer_config");
  if (!layers) fields.fail("transformer_layer_config", "nothing", "an object");
  if (!fields.status().ok()) return;
  drafter.tap_ids = kSpeculatorsTapIds;
  read_layers(*layers, config, drafter);
  fields.keep(layers->status());
  if (!fields.status().ok()) return;
  // transformer_layer_config is copied from the target and may tie the target's matrices. A
  // drafter's lm_head is its checkpoint's or the target's.
  drafter.tie_word_embeddings = false;
  // vLLM reads these top-level fields before the nested ones.
  require_switch(fields, "use_sliding_window", false);
  require_full_attention(fields, config.num_layers);
  require_text(fields, "projector_type", "dflash");
  require_switch(fields, "shift_label", false);
  read_target(fields, config, drafter);
  read_block(fields, nullptr, method, drafter);
}

void read_fields(ConfigFields& fields, BlockMethod method, ModelConfig& config,
                 DFlashConfig& drafter) {
  const bool is_speculators = fields.has("speculators_model_type");
  const auto read_layout = is_speculators ? read_speculators_layout : read_authors_layout;
  read_layout(fields, method, config, drafter);
}

// ---- Weights

// `qkv` is null: queries are computed for blocks alone, keys and values also for the context.
struct BlockLayer : DecoderLayer {
  std::unique_ptr<Linear> q;   // [heads * head_dim, hidden]
  std::unique_ptr<Linear> kv;  // [2 * kv_heads * head_dim, hidden]
};

struct BlockWeights {
  DecoderEnds ends;
  std::unique_ptr<Linear> fc;  // [hidden, taps * target_hidden]
  Tensor hidden_norm;          // [hidden]; of the output of fc
  std::vector<BlockLayer> layers;
  // DSpark only: of the previous token, [target_vocab, markov_rank], and of the next one, [vocab,
  // markov_rank].
  std::unique_ptr<Linear> markov_previous;
  std::unique_ptr<Linear> markov_next;
};

WeightGroup input_weights(const ModelConfig& config, BlockWeights& weights) {
  const DFlashConfig& drafter = dflash_config(config);
  const int64_t taps_width =
      static_cast<int64_t>(drafter.tapped_layers.size()) * drafter.target_hidden_size;
  WeightGroup group;
  group.matrices = {{&weights.fc, {{"fc", config.hidden_size}}, taps_width}};
  group.vectors = {{&weights.hidden_norm, "hidden_norm.weight", config.hidden_size}};
  if (drafter.has_embeddings) {
    group.matrices.push_back(
        vocabulary_matrix(weights.ends.embed, "embed_tokens", drafter.target_vocab_size, config));
  }
  return group;
}

WeightGroup layer_weights(const ModelConfig& config, size_t layer_idx, BlockLayer& layer) {
  const std::string prefix = fmt::format("layers.{}.", layer_idx);
  WeightGroup group = decoder_layer_weights(config, prefix, layer_idx, layer);
  MatrixBinding& kv = group.matrices.front();  // of the queries, keys and values
  MatrixBinding q = kv;
  q.linear = &layer.q;
  q.parts = {kv.parts.front()};
  kv.linear = &layer.kv;
  kv.parts.erase(kv.parts.begin());
  group.matrices.insert(group.matrices.begin(), std::move(q));
  return group;
}

WeightGroup output_weights(const ModelConfig& config, BlockWeights& weights) {
  const DFlashConfig& drafter = dflash_config(config);
  WeightGroup group;
  group.vectors = {{&weights.ends.final_norm, "norm.weight", config.hidden_size}};
  if (drafter.has_lm_head) {
    group.matrices.push_back(
        vocabulary_matrix(weights.ends.lm_head, "lm_head", config.vocab_size, config));
  }
  if (drafter.markov_rank > 0) {
    group.matrices.push_back({&weights.markov_previous,
                              {{"markov_head.markov_w1", drafter.target_vocab_size}},
                              drafter.markov_rank});
    group.matrices.push_back({&weights.markov_next,
                              {{"markov_head.markov_w2", config.vocab_size}},
                              drafter.markov_rank});
  }
  return group;
}

WeightList list_dflash_weights(const ModelConfig& config, BlockWeights& weights) {
  WeightList list;
  list.groups.push_back(input_weights(config, weights));
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    list.groups.push_back(layer_weights(config, i, weights.layers[i]));
  }
  list.groups.push_back(output_weights(config, weights));
  // The number of drafts does not depend on DSpark's estimate of their acceptance.
  list.ignored_prefixes = {"confidence_head."};
  list.ignored_prefixes.insert(list.ignored_prefixes.end(), kSpeculatorsTensors.begin(),
                               kSpeculatorsTensors.end());
  return list;
}

// ---- The model

class BlockModel final : public DecoderModel, public BlockHead {
 public:
  BlockModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops, BlockWeights weights,
             std::vector<int32_t> target_ids)
      : DecoderModel(config, limits, ops, std::move(weights.ends)),
        drafter_(dflash_config(config)),
        max_num_tokens_(limits.max_num_tokens),
        max_num_rows_(limits.max_num_logit_rows),
        hidden_(config.hidden_size),
        weights_(std::move(weights)),
        target_ids_(std::move(target_ids)) {}

  Status allocate();
  BlockHead* block_head() override { return this; }
  int state_width() const override { return config().hidden_size; }
  Status forward(const StepInput& input) override;
  void combine(TensorView taps, TensorView out) override;
  std::span<const int32_t> target_ids() const override { return target_ids_; }
  const BlockLayout& block() const override { return drafter_.block; }
  Status write_context(const StepInput& input) override;
  bool has_transitions() const override { return drafter_.markov_rank > 0; }
  void transitions(const int32_t* previous, int num_rows, TensorView out) override;

 private:
  TensorView keys_values(int64_t num_tokens) const { return keys_values_.view.rows(0, num_tokens); }
  // normed → qkv_view
  void project(size_t layer_idx, int64_t num_tokens);

  DFlashConfig drafter_;
  int64_t max_num_tokens_ = 0;
  int64_t max_num_rows_ = 0;
  int64_t hidden_ = 0;
  BlockWeights weights_;  // without the ends
  std::vector<int32_t> target_ids_;
  Tensor keys_values_;  // [max_num_tokens, 2 * kv_heads * head_dim], of one layer
  Tensor markov_rows_;  // [max_num_logit_rows, markov_rank]; empty without transitions
};

Status BlockModel::allocate() {
  QUIRE_RETURN_IF_ERROR(allocate_buffers());
  const DType dtype = ops().activation_dtype();
  const int64_t kv_width = weights_.layers.front().kv->out_features();
  QUIRE_ASSIGN_OR_RETURN(keys_values_, ops().allocate({max_num_tokens_, kv_width}, dtype));
  if (!has_transitions()) return {};
  QUIRE_ASSIGN_OR_RETURN(markov_rows_,
                         ops().allocate({max_num_rows_, drafter_.markov_rank}, dtype));
  return {};
}

void BlockModel::project(size_t layer_idx, int64_t num_tokens) {
  const BlockLayer& layer = weights_.layers[layer_idx];
  const TensorView queries = query_view(layer_idx, num_tokens);
  const TensorView qkv = qkv_view(layer_idx, num_tokens);
  ops().linear(*layer.q, normed(num_tokens), queries);
  ops().linear(*layer.kv, normed(num_tokens), keys_values(num_tokens));
  ops().write_columns(queries, qkv, 0);
  ops().write_columns(keys_values(num_tokens), qkv, queries.shape[1]);
}

Status BlockModel::forward(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  begin_step(input);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const BlockLayer& layer = weights_.layers[i];
    if (i == 0) {
      norm_residual(layer.input_norm, num_tokens);
    } else {
      add_and_norm(layer.input_norm, num_tokens);
    }
    project(i, num_tokens);
    QUIRE_RETURN_IF_ERROR(attend(i, layer, input));
    run_after_attention(i, layer, num_tokens);
  }
  return {};
}

void BlockModel::combine(TensorView taps, TensorView out) {
  ops().linear(*weights_.fc, taps, out);
  ops().residual_norm({.residual = out,
                       .weight = weights_.hidden_norm.view.as<float>(),
                       .eps = drafter_.rms_norm_eps},
                      out);
}

Status BlockModel::write_context(const StepInput& input) {
  QUIRE_CHECK(
      input.hidden.data != nullptr && input.hidden.shape == (Shape{input.num_tokens, hidden_}),
      "[model] the context of a block has no hidden state per token");
  begin_rotation(input);
  const TensorView rows = keys_values(input.num_tokens);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const BlockLayer& layer = weights_.layers[i];
    ops().linear(*layer.kv, input.hidden, rows);
    cache_keys_values(i, layer, rows, input);
  }
  return {};
}

void BlockModel::transitions(const int32_t* previous, int num_rows, TensorView out) {
  QUIRE_CHECK(
      has_transitions() && num_rows > 0 && num_rows <= max_num_rows_,
      "[model] a block drafter has no transitions, or gets more rows than max_num_logit_rows");
  const TensorView rows = markov_rows_.view.rows(0, num_rows);
  ops().embed(*weights_.markov_previous, previous, 1.0F, rows);
  ops().linear(*weights_.markov_next, rows, out);
}

Status check_dflash_taps(const ModelConfig& config, const ModelConfig& target) {
  const int last = dflash_config(config).tapped_layers.back();
  if (last <= target.num_layers) return {};
  const TapIds& taps = dflash_config(config).tap_ids;
  return invalid_argument(
      fmt::format("[model] {}'s {} are beyond the target's layers; got {}, expected at most {}; "
                  "use a drafter that was trained for this model",
                  config.architecture, taps.key, last - taps.layer_offset,
                  target.num_layers - taps.layer_offset));
}

}  // namespace

const DFlashConfig& dflash_config(const ModelConfig& drafter) {
  const auto* config = dynamic_cast<const DFlashConfig*>(drafter.family.get());
  QUIRE_CHECK(config != nullptr, "[model] the configuration is not that of a block drafter");
  return *config;
}

Result<ModelConfig> parse_dflash_config(std::string_view json, std::string_view source,
                                        const WeightSource& weights, BlockMethod method) {
  const std::string_view architecture =
      method == BlockMethod::kDFlash ? "the DFlash drafter" : "the DSpark drafter";
  auto drafter = std::make_shared<DFlashConfig>();
  QUIRE_ASSIGN_OR_RETURN(
      ModelConfig config,
      parse_draft_config(json, source, architecture, [&](ConfigFields& fields, ModelConfig& sizes) {
        read_fields(fields, method, sizes, *drafter);
      }));
  // Dummy weights list no names. They share the target's matrices, as most checkpoints do, if the
  // vocabularies are the same.
  const std::vector<std::string> names = weights.names();
  drafter->has_lm_head = names.empty() && config.vocab_size != drafter->target_vocab_size;
  for (const std::string& name : names) {
    drafter->has_embeddings |= name == "embed_tokens.weight";
    drafter->has_lm_head |= name == "lm_head.weight";
  }
  drafter->source = source;
  config.family = std::move(drafter);
  return config;
}

Status check_dflash(const ModelConfig& drafter, const ModelConfig& target) {
  const DFlashConfig& config = dflash_config(drafter);
  if (config.target_vocab_size != target.vocab_size) {
    return refuse_target(drafter, "vocab_size", config.target_vocab_size, target.vocab_size);
  }
  if (config.target_hidden_size != target.hidden_size) {
    return refuse_target(drafter, "target_hidden_size", config.target_hidden_size,
                         target.hidden_size);
  }
  if (config.num_target_layers && *config.num_target_layers != target.num_layers) {
    return refuse_target(drafter, "num_target_layers", *config.num_target_layers,
                         target.num_layers);
  }
  QUIRE_RETURN_IF_ERROR(check_dflash_taps(drafter, target));
  return check_shared_ends(drafter, config, target);
}

std::vector<TensorSpec> list_dflash_tensors(const ModelConfig& drafter) {
  BlockWeights weights;
  return list_tensors(list_dflash_weights(drafter, weights));
}

int64_t dflash_activation_bytes(const ModelConfig& drafter, const ModelLimits& limits,
                                const Ops& ops) {
  const DFlashConfig& config = dflash_config(drafter);
  ModelLimits own = limits;
  own.tapped_layers.clear();
  const int64_t kv_width = 2 * int64_t{config.num_kv_heads} * config.head_dim;
  const Saturated elements = Saturated(limits.max_num_tokens) * kv_width +
                             Saturated(limits.max_num_logit_rows) * config.markov_rank;
  return (elements * static_cast<int64_t>(dtype_bytes(ops.activation_dtype())) +
          decoder_activation_bytes(drafter, own, ops))
      .get();
}

Result<std::unique_ptr<Model>> load_dflash(const ModelConfig& drafter, const Model& target,
                                           WeightSource& source, Ops& ops,
                                           const ModelLimits& limits, const LoadOptions& options) {
  const DFlashConfig& config = dflash_config(drafter);
  QUIRE_RETURN_IF_ERROR(check_dflash(drafter, target.config()));
  QUIRE_RETURN_IF_ERROR(check_shards(drafter, limits.parallel));
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> target_ids, read_target_ids(drafter, config, source));
  BlockWeights weights;
  QUIRE_RETURN_IF_ERROR(load_weights(list_dflash_weights(drafter, weights), drafter.architecture,
                                     source, ops, limits.parallel, options));
  share_ends(config, target, weights.ends);
  ModelLimits own = limits;
  own.tapped_layers.clear();
  auto model =
      std::make_unique<BlockModel>(drafter, own, ops, std::move(weights), std::move(target_ids));
  QUIRE_RETURN_IF_ERROR(model->allocate());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace quire

#include "start/draft_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/numbers.h"
#include "model/decoder_sizes.h"
#include "model/dflash/dflash.h"
#include "model/eagle3/eagle3.h"
#include "model/gemma4_drafter/gemma4_drafter.h"
#include "model/model_loader.h"
#include "model/mtp/mtp.h"
#include "model/tensor_layout.h"
#include "start/model_files.h"
#include "start/node_setup.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "tensor/checkpoint.h"

namespace quire {
namespace {

// Returns the limits of a drafter that computes all tokens of the target's step in one pass. A
// drafter that reads hidden states of its target does not limit the context, because its rotary
// positions need no table. Beyond the context of its training, fewer of its drafts are accepted.
ModelLimits limits_of_steps(const ModelLimits& target, int max_num_logit_rows) {
  ModelLimits limits = target;
  limits.tapped_layers.clear();
  limits.max_num_logit_rows = max_num_logit_rows;
  return limits;
}

// Two copies of the hidden states that a drafter reads.
Saturated tapped_states_bytes(const ModelConfig& config, const ModelLimits& limits,
                              DType activation) {
  return 2 * Saturated(limits.max_num_tokens) * config.hidden_size *
         static_cast<int64_t>(dtype_bytes(activation));
}

class OrdinaryDraftModel final : public DraftModel {
 public:
  // A pass also computes each sequence's newest token. The model's own context limits the length,
  // too.
  ModelLimits limits(const ModelLimits& target, int max_num_seqs) const override {
    ModelLimits limits = limits_of_steps(target, max_num_seqs);
    limits.max_num_tokens = target.max_num_tokens + max_num_seqs;
    limits.max_model_len = std::min(target.max_model_len, config().longest_model_len);
    return limits;
  }
  std::vector<TensorSpec> tensors() const override { return list_tensors(config()); }
  Result<int64_t> activation_bytes(const ModelLimits& limits, const Ops& ops) const override {
    return estimate_activation_bytes(config(), limits, ops);
  }
  Result<std::unique_ptr<Model>> load(const Model& /*target*/, Ops& ops, const ModelLimits& limits,
                                      const LoadOptions& options) override {
    return load_model(config(), weights(), ops, limits, options);
  }

 private:
  Result<ModelConfig> read_config(const std::string& /*text*/, const std::string& path,
                                  const ModelConfig& target) override {
    QUIRE_ASSIGN_OR_RETURN(ModelConfig config, read_model_config(path));
    settle_tie(weights(), config);
    const DecoderConfig& decoder = decoder_config(config);
    if (decoder.convs || decoder.deltas) {
      return unimplemented(fmt::format(
          "[engine] {}: architectures; got {}, which has recurrent states, expected a drafter with "
          "attention in every layer",
          path, config.architecture));
    }
    if (config.vocab_size == target.vocab_size) return config;
    return invalid_argument(fmt::format(
        "[engine] {}: vocab_size; got {}, expected the {} of the model that it drafts for; take a "
        "drafter of the same family",
        path, config.vocab_size, target.vocab_size));
  }
};

// The model has a draft_head().
class HeadDraftModel : public DraftModel {
 public:
  int num_tokens_ahead() const final { return 1; }
  ModelLimits limits(const ModelLimits& target, int max_num_seqs) const final {
    return limits_of_steps(target, max_num_seqs);
  }
};

class Eagle3DraftModel final : public HeadDraftModel {
 public:
  std::vector<int> tapped_layers() const override { return tapped_layers_; }
  Result<int64_t> activation_bytes(const ModelLimits& limits, const Ops& ops) const override {
    return (tapped_states_bytes(config(), limits, ops.activation_dtype()) +
            eagle3_activation_bytes(config(), limits, ops))
        .get();
  }
  Result<std::unique_ptr<Model>> load(const Model& target, Ops& ops, const ModelLimits& limits,
                                      const LoadOptions& options) override {
    return load_eagle3(config(), target, weights(), ops, limits, options);
  }
  std::vector<TensorSpec> tensors() const override { return list_eagle3_tensors(config()); }

 private:
  Result<ModelConfig> read_config(const std::string& text, const std::string& path,
                                  const ModelConfig& target) override {
    QUIRE_ASSIGN_OR_RETURN(ModelConfig config, parse_eagle3_config(text, path, weights()));
    QUIRE_RETURN_IF_ERROR(check_eagle3(config, target));
    tapped_layers_ = eagle3_tapped_layers(config, target);
    return config;
  }

  std::vector<int> tapped_layers_;
};

class MtpDraftModel final : public HeadDraftModel {
 public:
  std::vector<int> tapped_layers() const override { return {num_target_layers_}; }
  Result<int64_t> activation_bytes(const ModelLimits& limits, const Ops& ops) const override {
    QUIRE_ASSIGN_OR_RETURN(const int64_t model, mtp_activation_bytes(config(), limits, ops));
    return (tapped_states_bytes(config(), limits, ops.activation_dtype()) + model).get();
  }
  Result<std::unique_ptr<Model>> load(const Model& target, Ops& ops, const ModelLimits& limits,
                                      const LoadOptions& options) override {
    return load_mtp(config(), target, weights(), ops, limits, options);
  }
  std::vector<TensorSpec> tensors() const override { return list_mtp_tensors(config()); }

 private:
  Result<ModelConfig> read_config(const std::string& /*text*/, const std::string& /*path*/,
                                  const ModelConfig& target) override {
    num_target_layers_ = target.num_layers;
    return mtp_config(target);
  }

  int num_target_layers_ = 0;
};

class Gemma4DraftModel final : public HeadDraftModel {
 public:
  bool reads_target_cache() const override { return true; }
  std::vector<int> tapped_layers() const override { return {target_.num_layers}; }
  Result<int64_t> activation_bytes(const ModelLimits& limits, const Ops& ops) const override {
    QUIRE_ASSIGN_OR_RETURN(const int64_t model,
                           gemma4_drafter_activation_bytes(config(), limits, ops));
    return (tapped_states_bytes(target_, limits, ops.activation_dtype()) + model).get();
  }
  Result<std::unique_ptr<Model>> load(const Model& target, Ops& ops, const ModelLimits& limits,
                                      const LoadOptions& options) override {
    return load_gemma4_drafter(config(), target, weights(), ops, limits, options);
  }
  std::vector<TensorSpec> tensors() const override { return list_gemma4_drafter_tensors(config()); }

 private:
  Result<ModelConfig> read_config(const std::string& text, const std::string& path,
                                  const ModelConfig& target) override {
    target_ = target;
    return parse_gemma4_drafter(text, path, target);
  }

  ModelConfig target_;
};

class BlockDraftModel final : public DraftModel {
 public:
  BlockDraftModel(BlockMethod method, int num_drafts) : method_(method), num_drafts_(num_drafts) {}

  std::vector<int> tapped_layers() const override { return block_config().tapped_layers; }
  int num_kv_slots(int num_drafts) const override {
    return block_config().block.num_tokens(num_drafts);
  }
  // Only the pass over blocks has attention: the context of a step is computed without it.
  std::vector<int> decode_q_lens(std::vector<int> /*q_lens*/) const override {
    return {block_config().block.num_tokens(num_drafts_)};
  }
  // A pass computes the context of a step, or a block per sequence and the logits of all drafts.
  ModelLimits limits(const ModelLimits& target, int max_num_seqs) const override {
    ModelLimits limits = limits_of_steps(target, max_num_seqs * num_drafts_);
    limits.max_num_tokens = std::max(limits.max_num_tokens,
                                     max_num_seqs * block_config().block.num_tokens(num_drafts_));
    return limits;
  }
  Result<int64_t> activation_bytes(const ModelLimits& limits, const Ops& ops) const override {
    const bool has_transitions = block_config().markov_rank > 0;
    const int num_transitions = has_transitions ? limits.max_num_logit_rows / num_drafts_ : 0;
    return (tapped_states_bytes(config(), limits, ops.activation_dtype()) +
            Saturated(num_transitions) * config().vocab_size * static_cast<int64_t>(sizeof(float)) +
            dflash_activation_bytes(config(), limits, ops))
        .get();
  }
  Result<std::unique_ptr<Model>> load(const Model& target, Ops& ops, const ModelLimits& limits,
                                      const LoadOptions& options) override {
    return load_dflash(config(), target, weights(), ops, limits, options);
  }
  std::vector<TensorSpec> tensors() const override { return list_dflash_tensors(config()); }

 private:
  const DFlashConfig& block_config() const { return dflash_config(config()); }
  Result<ModelConfig> read_config(const std::string& text, const std::string& path,
                                  const ModelConfig& target) override {
    QUIRE_ASSIGN_OR_RETURN(ModelConfig config, parse_dflash_config(text, path, weights(), method_));
    QUIRE_RETURN_IF_ERROR(check_dflash(config, target));
    const BlockLayout& block = dflash_config(config).block;
    if (num_drafts_ <= block.max_drafts()) return config;
    return invalid_argument(
        fmt::format("[engine] `speculative_config`: num_speculative_tokens; got {}, expected at "
                    "most {}, because {}'s block_size is {}",
                    num_drafts_, block.max_drafts(), config.architecture, block.size));
  }

  BlockMethod method_;
  int num_drafts_;  // per sequence and step
};

std::unique_ptr<DraftModel> make_draft_model(const DraftModelChoice& choice) {
  switch (choice.kind) {
    case DraftModelKind::kModel:
      return std::make_unique<OrdinaryDraftModel>();
    case DraftModelKind::kEagle3:
      return std::make_unique<Eagle3DraftModel>();
    case DraftModelKind::kMtp:
      if (!choice.model.empty()) return std::make_unique<Gemma4DraftModel>();
      return std::make_unique<MtpDraftModel>();
    case DraftModelKind::kDFlash:
      return std::make_unique<BlockDraftModel>(BlockMethod::kDFlash, choice.num_drafts);
    case DraftModelKind::kDSpark:
      return std::make_unique<BlockDraftModel>(BlockMethod::kDSpark, choice.num_drafts);
  }
  return nullptr;
}

struct DrafterFiles {
  std::string name;
  std::string config;  // the text of config.json
  std::string source;  // names config.json in errors
  std::unique_ptr<WeightSource> weights;
};

Result<DrafterFiles> open_embedded_drafter(const EngineConfig& engine,
                                           const DraftModelChoice& choice) {
  const auto drafters = embedded_drafters();
  const auto found = std::ranges::find(drafters, choice.method, &EmbeddedDrafter::method);
  if (!is_embedded(engine.model) || found == drafters.end()) {
    return invalid_argument(fmt::format(
        "[engine] `speculative_config`: model; got nothing, expected {}", kWhichDrafter));
  }
  DrafterFiles files = {.name = fmt::format("the embedded {} drafter", choice.method),
                        .config = std::string(found->config_json),
                        .source = "embedded drafter",
                        .weights = nullptr};
  QUIRE_ASSIGN_OR_RETURN(files.weights, Checkpoint::from_memory(found->weights, files.source));
  return files;
}

// Names the drafter's field in an error of find_config(), which names the engine's `model`.
Status about_drafter(const Status& status) {
  constexpr std::string_view kField = "[model] model: ";
  std::string_view message = status.message();
  if (message.starts_with(kField)) message.remove_prefix(kField.size());
  return Status(status.code(), fmt::format("[engine] `speculative_config`: model; {}", message));
}

Result<DrafterFiles> open_drafter_files(const EngineConfig& engine, const DraftModelChoice& choice,
                                        const ModelConfig& target) {
  const bool is_in_target = choice.kind == DraftModelKind::kMtp && choice.model.empty();
  if (is_in_target) QUIRE_RETURN_IF_ERROR(check_mtp(target));
  if (!is_in_target && choice.model.empty()) return open_embedded_drafter(engine, choice);
  const Result<ConfigFile> config = find_config(is_in_target ? engine.model : choice.model, engine);
  if (!config.ok()) return is_in_target ? config.status() : about_drafter(config.status());
  DrafterFiles files = {.name = config->model_name,
                        .config = {},
                        .source = config->path.string(),
                        .weights = nullptr};
  QUIRE_ASSIGN_OR_RETURN(files.config, read_file(config->path, kMaxConfigBytes));
  // Other drafters are not quantized.
  const std::optional<WeightFormat> format =
      is_in_target ? without_load_quantization(target.format) : std::nullopt;
  QUIRE_ASSIGN_OR_RETURN(files.weights,
                         open_weights(engine, config->path.parent_path(), target.dtype, format));
  if (is_in_target) QUIRE_RETURN_IF_ERROR(check_mtp_tensors(target, *files.weights));
  return files;
}

}  // namespace

Result<WeightPlan> DraftModel::plan_weights(const ModelLimits& limits, const Ops& ops) const {
  const std::vector<TensorSpec> all = tensors();
  QUIRE_RETURN_IF_ERROR(check_slices(all, weights(), ops.weights(), limits.parallel));
  return quire::plan_weights(all, weights(), ops.weights(), limits.parallel);
}

std::vector<KvGroup> DraftModel::kv_groups(const ModelLimits& limits, DType activation) const {
  return decoder_kv_groups(config(), limits, activation);
}

// The first pass computes the tokens of the target's step. Each further pass computes one token per
// sequence.
std::vector<int> DraftModel::decode_q_lens(std::vector<int> q_lens) const {
  if (q_lens.front() > 1) q_lens.insert(q_lens.begin(), 1);
  return q_lens;
}

void DraftModel::stop_with(std::shared_ptr<Nodes> nodes) {
  weights_ = stop_with_nodes(std::move(weights_), std::move(nodes));
}

bool has_own_drafter(const ModelConfig& target, const WeightSource& weights) {
  return check_mtp(target).ok() && check_mtp_tensors(target, weights).ok();
}

Result<std::unique_ptr<DraftModel>> DraftModel::open(const EngineConfig& engine,
                                                     const DraftModelChoice& choice,
                                                     const ModelConfig& target) {
  std::unique_ptr<DraftModel> draft = make_draft_model(choice);
  QUIRE_ASSIGN_OR_RETURN(DrafterFiles files, open_drafter_files(engine, choice, target));
  draft->name_ = std::move(files.name);
  draft->weights_ = std::move(files.weights);
  QUIRE_ASSIGN_OR_RETURN(draft->config_, draft->read_config(files.config, files.source, target));
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<WeightSource> weights,
      apply_layout(std::move(draft->weights_), draft->config_.layout, draft->tensors()));
  if (!weights->names().empty()) {  // random weights have no names
    QUIRE_RETURN_IF_ERROR(
        check_stored_tensors(draft->tensors(), *weights, draft->config_.architecture));
  }
  draft->weights_ = share_weights(std::move(weights), num_local_ranks(engine));
  return draft;
}

}  // namespace quire

#include "model/mtp/mtp.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/check.h"
#include "model/decoder.h"
#include "model/model_loader.h"
#include "model/tensor_layout.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

struct MtpWeights {
  std::unique_ptr<Linear> input_proj;  // [hidden, 2 * hidden]
  Tensor target_norm;                  // [hidden]; of the target's output; empty: it has none
  Tensor token_norm;                   // [hidden]; of the embeddings
  Tensor hidden_norm;                  // [hidden]; of the hidden states
  DecoderLayer layer;
  Tensor final_norm;  // [hidden]
};

std::string weight_name(std::string_view name) {
  return fmt::format("{}.weight", name);
}

WeightList list_mtp_weights(const ModelConfig& head, MtpWeights& weights) {
  const DecoderConfig& decoder = decoder_config(head);
  const MtpForm& form = *decoder.mtp;
  const int64_t hidden = head.hidden_size;
  WeightGroup group = decoder_layer_weights(head, std::string(form.layer_prefix), 0, weights.layer);
  MatrixBinding projection = {
      &weights.input_proj, {{std::string(form.projection), hidden}}, 2 * hidden};
  projection.format = head.format;
  group.matrices.push_back(std::move(projection));
  const std::pair<Tensor*, std::string_view> norms[] = {{&weights.target_norm, form.target_norm},
                                                        {&weights.token_norm, form.token_norm},
                                                        {&weights.hidden_norm, form.hidden_norm},
                                                        {&weights.final_norm, form.final_norm}};
  for (const auto& [norm, name] : norms) {
    if (name.empty()) continue;
    group.vectors.push_back({norm, weight_name(name), hidden, decoder.norm_addend});
  }
  WeightList list;
  list.groups.push_back(std::move(group));
  list.ignored_prefixes = {"model.layers.", "model.embed_tokens.", "model.norm.", "lm_head."};
  return list;
}

class MtpHead final : public DecoderModel, public DraftHead {
 public:
  MtpHead(const ModelConfig& head, const ModelLimits& limits, Ops& ops, DecoderEnds ends,
          MtpWeights weights)
      : DecoderModel(head, limits, ops, std::move(ends)),
        max_num_tokens_(limits.max_num_tokens),
        hidden_(head.hidden_size),
        weights_(std::move(weights)) {}

  Status allocate();
  DraftHead* draft_head() override { return this; }
  int state_width() const override { return config().hidden_size; }
  Status forward(const StepInput& input) override;
  Status write_context(const StepInput& input) override;
  void combine(TensorView taps, TensorView out) override;
  Status output_states(const int32_t* rows, int num_rows, TensorView out) override;
  std::span<const int32_t> target_ids() const override { return {}; }

 private:
  // Computes the layer's queries, keys and values.
  void begin_layer(const StepInput& input);

  int64_t max_num_tokens_ = 0;
  int64_t hidden_ = 0;
  MtpWeights weights_;
  Tensor pairs_;  // [max_num_tokens, 2 * hidden]
};

Status MtpHead::allocate() {
  QUIRE_RETURN_IF_ERROR(allocate_buffers());
  QUIRE_ASSIGN_OR_RETURN(pairs_,
                         ops().allocate({max_num_tokens_, 2 * hidden_}, ops().activation_dtype()));
  return {};
}

// vLLM sets the embedding at position 0 to zero. Here it is kept: the pair at position 0 has the
// embedding of the token at position 1, which is a token like any other.
void MtpHead::begin_layer(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  QUIRE_CHECK(input.hidden.data != nullptr && input.hidden.shape == (Shape{num_tokens, hidden_}),
              "[model] a draft head's step has no hidden state per token");
  begin_step(input);
  const TensorView pairs = pairs_.view.rows(0, num_tokens);
  const TensorView half = normed(num_tokens);
  const bool begins_with_token = decoder().mtp->begins_with_token;
  ops().residual_norm({.residual = input.hidden,
                       .weight = weights_.hidden_norm.view.as<float>(),
                       .eps = decoder().rms_norm_eps},
                      half);
  ops().write_columns(half, pairs, begins_with_token ? hidden_ : 0);
  norm_residual(weights_.token_norm, num_tokens);
  ops().write_columns(half, pairs, begins_with_token ? 0 : hidden_);
  ops().linear(*weights_.input_proj, pairs, residual(num_tokens));

  project_qkv(0, weights_.layer, norm_of_residual(weights_.layer.input_norm, num_tokens));
}

Status MtpHead::write_context(const StepInput& input) {
  begin_layer(input);
  rotate_and_cache(0, weights_.layer, input);
  return {};
}

Status MtpHead::forward(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  begin_layer(input);
  QUIRE_RETURN_IF_ERROR(attend(0, weights_.layer, input));
  run_after_attention(0, weights_.layer, num_tokens);
  return {};
}

void MtpHead::combine(TensorView taps, TensorView out) {
  if (decoder().mtp->target_norm.empty()) return ops().write_columns(taps, out, 0);
  ops().residual_norm({.residual = taps,
                       .weight = weights_.target_norm.view.as<float>(),
                       .eps = decoder().rms_norm_eps},
                      out);
}

Status MtpHead::output_states(const int32_t* rows, int num_rows, TensorView out) {
  return hidden_states(rows, num_rows, out);
}

}  // namespace

Status check_mtp(const ModelConfig& target) {
  const DecoderConfig& decoder = decoder_config(target);
  if (decoder.mtp == nullptr) {
    return unimplemented(fmt::format(
        "[model] method mtp is not served for this architecture; got {}, expected "
        "MiMo-7B, Qwen3.5, Qwen3.6, Qwen3-Next, or Gemma 4 with its drafter as `model`; "
        "use another method",
        target.architecture));
  }
  if (decoder.num_mtp_layers != 1) {
    return invalid_argument(
        fmt::format("[model] {} of a model that drafts with method mtp; got {}, expected 1; use "
                    "another method",
                    decoder.mtp->count_key, decoder.num_mtp_layers));
  }
  if (!decoder.mtp_has_embeddings) return {};
  return unimplemented(
      "[model] mtp_use_dedicated_embeddings of a model that drafts with method mtp; got true, "
      "expected false: the layer reads the model's embeddings; use another method");
}

Status check_mtp_tensors(const ModelConfig& target, const WeightSource& checkpoint) {
  const std::string norm = weight_name(decoder_config(target).mtp->final_norm);
  if (stores(checkpoint, target.layout, norm)) return {};
  return not_found(
      fmt::format("[model] method mtp drafts with a layer of the model's own checkpoint, and this "
                  "one lacks its tensors; got no \"{}\", expected it as in the checkpoint that "
                  "the model's authors published; use that one, or another method",
                  norm));
}

ModelConfig mtp_config(const ModelConfig& target) {
  ModelConfig head = target;
  head.architecture = "the MTP head";
  head.num_layers = 1;
  auto decoder = std::make_shared<DecoderConfig>(decoder_config(target));
  decoder->layer_windows.resize(1);
  decoder->layer_ropes.resize(1);
  decoder->deltas.reset();  // the layer has attention
  if (decoder->moe) decoder->moe->layers.resize(1);
  head.family = std::move(decoder);
  return head;
}

std::vector<TensorSpec> list_mtp_tensors(const ModelConfig& head) {
  MtpWeights weights;
  return list_tensors(list_mtp_weights(head, weights));
}

Result<int64_t> mtp_activation_bytes(const ModelConfig& head, const ModelLimits& limits,
                                     const Ops& ops) {
  ModelLimits own = limits;
  own.tapped_layers.clear();
  QUIRE_ASSIGN_OR_RETURN(const int64_t model, estimate_activation_bytes(head, own, ops));
  const Saturated pairs = Saturated(limits.max_num_tokens) * 2 * head.hidden_size *
                          static_cast<int64_t>(dtype_bytes(ops.activation_dtype()));
  return (pairs + model).get();
}

Result<std::unique_ptr<Model>> load_mtp(const ModelConfig& head, const Model& target,
                                        WeightSource& source, Ops& ops, const ModelLimits& limits,
                                        const LoadOptions& options) {
  QUIRE_RETURN_IF_ERROR(check_shards(head, limits.parallel));
  MtpWeights weights;
  QUIRE_RETURN_IF_ERROR(load_weights(list_mtp_weights(head, weights), head.architecture, source,
                                     ops, limits.parallel, options));
  DecoderEnds ends;
  ends.shared_embed = target.embeddings();
  ends.shared_lm_head = target.lm_head();
  ends.final_norm = std::move(weights.final_norm);
  ModelLimits own = limits;
  own.tapped_layers.clear();
  auto model = std::make_unique<MtpHead>(head, own, ops, std::move(ends), std::move(weights));
  QUIRE_RETURN_IF_ERROR(model->allocate());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace quire

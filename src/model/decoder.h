// The parts of decoders: grouped-query or multi-head latent attention with rotary positions over a
// paged cache, and a gated MLP or a mixture of them. text_decoder.h combines them for the families
// of models. Drafters combine them in their own order.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "model/decoder_config.h"
#include "model/decoder_sizes.h"
#include "model/decoder_weights.h"
#include "model/model.h"

namespace quire {

// The factor of the embeddings that the first layer reads.
float first_scale(const DecoderConfig& decoder, DType activation);

class DecoderModel : public Model {
 public:
  const ModelConfig& config() const final { return config_; }
  const std::vector<KvGroup>& kv_groups() const final { return kv_groups_; }
  Status compute_logits(const int32_t* rows, int num_rows, TensorView logits) final;
  bool divides_logits() const final;
  Status compute_logits_part(const int32_t* rows, int num_rows) final;
  LogitsPart logits_part(int num_rows) const final;
  void gather_logits(int num_rows, TensorView logits) final;
  Status hidden_states(const int32_t* rows, int num_rows, TensorView out) final;
  TensorView taps() const final { return taps_.view; }
  const Linear* embeddings() const final;
  const Linear* lm_head() const final;
  const float* final_norm() const final { return ends_.final_norm.view.as<float>(); }
  // Allocates every buffer for steps within the limits. Called once, before the first step.
  Status allocate_buffers();

 protected:
  DecoderModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops, DecoderEnds ends);

  Ops& ops() const { return ops_; }
  const DecoderConfig& decoder() const { return decoder_; }

  // Activations by token row. A layer adds to the residual; `normed` is the input of a projection,
  // and `delta` the output of a sub-layer. After a step, residual + delta is the last layer's
  // output, or the residual alone if taps_output().
  TensorView residual(int64_t num_tokens) const { return residual_.view.rows(0, num_tokens); }
  TensorView normed(int64_t num_tokens) const { return normed_.view.rows(0, num_tokens); }
  TensorView delta(int64_t num_tokens) const { return delta_.view.rows(0, num_tokens); }
  // The inner values of a step share one scratch buffer. Each line below overwrites the one before
  // it, and the next layer begins with the first line again:
  //   attention: qkv | rotated queries | attention's output | its gates; or MlaViews
  //   MLP:       gate and up | their product, then the output of experts with norms of their own
  //   input:     the gates of the layer's own input | their product
  //   logits:    the output of the rows that last_output() gathers | their delta | their norm
  TensorView qkv_view(size_t layer_idx, int64_t num_tokens) const;
  TensorView query_view(size_t layer_idx, int64_t num_tokens) const;
  TensorView attention_view(size_t layer_idx, int64_t num_tokens) const;
  TensorView gate_view(const DecoderLayer& layer, int64_t num_tokens) const {
    return scratch(num_tokens * (widths_.qkv + widths_.q + widths_.out), num_tokens,
                   layer.gate->out_features());
  }
  TensorView gate_up_view(const DecoderLayer& layer, int64_t num_tokens) const {
    return scratch(0, num_tokens, layer.gate_up->out_features());
  }
  TensorView product_view(const DecoderLayer& layer, int64_t num_tokens) const {
    return scratch(num_tokens * layer.gate_up->out_features(), num_tokens,
                   layer.down->in_features());
  }
  TensorView last_output_view(int64_t num_rows) const {
    return scratch(0, num_rows, config_.hidden_size);
  }
  TensorView last_norm_view(int64_t num_rows) const {
    return scratch(2 * num_rows * config_.hidden_size, num_rows, config_.hidden_size);
  }

  // The parts of a step. This one embeds the tokens into the residual and computes their rotary
  // angles.
  void begin_step(const StepInput& input);
  // Computes the rotary angles alone.
  void begin_rotation(const StepInput& input);
  // residual → taps(), if the layer is tapped. A family calls it for every layer, once the residual
  // is the layer's input.
  void tap_residual(size_t layer_idx, int64_t num_tokens);
  // residual += delta; residual → taps(), if taps_output(). A family calls it after the last layer.
  void tap_output(int64_t num_tokens);
  // Describe the norm of the residual, and the norm of residual += delta, for the operations that
  // compute them.
  ResidualNorm norm_of_residual(const Tensor& weight, int64_t num_tokens) const;
  // `scale` multiplies the sum; empty: 1.
  ResidualNorm norm_of_sum(const Tensor& weight, int64_t num_tokens,
                           const Tensor& scale = {}) const;
  // residual → normed
  void norm_residual(const Tensor& weight, int64_t num_tokens);
  // residual += delta; residual → normed
  void add_and_norm(const Tensor& weight, int64_t num_tokens, const Tensor& scale = {});
  // norm(sum of the ranks' delta) → delta. Does nothing without a weight.
  void norm_delta(const Tensor& weight, int64_t num_tokens);
  // products with the norm → qkv_view, gate_view. With latent attention, calls project_latent().
  void project_qkv(size_t layer_idx, const DecoderLayer& layer, const ResidualNorm& norm);
  // qkv_view → query_view, rotated; keys and values → the cache
  void rotate_and_cache(size_t layer_idx, const DecoderLayer& layer, const StepInput& input);
  // Writes keys and values to the cache, then computes attention → attention_view. In a layer with
  // a state: qkv_view, gate_view → attention_view.
  Status attend(size_t layer_idx, const DecoderLayer& layer, const StepInput& input);
  // keys_values [num_tokens, 2 * kv_heads * head_dim] → the cache, without queries
  void cache_keys_values(size_t layer_idx, const DecoderLayer& layer, TensorView keys_values,
                         const StepInput& input);
  // attention_view → delta. With several ranks, this and mlp() give each rank a part of delta, and
  // the norms sum the parts.
  void project_output(size_t layer_idx, const DecoderLayer& layer, int64_t num_tokens);
  // MLP of the norm → delta, with the norm of the output, if there is one
  void mlp(const DecoderLayer& layer, const ResidualNorm& norm);
  // The rest of a layer: attention_view → residual, which gets the layer's attention, and delta,
  // the output of its MLP.
  void run_after_attention(size_t layer_idx, const DecoderLayer& layer, int64_t num_tokens);
  // residual += delta; norm(projection(the layer's own input * gates(residual))) → delta. Does
  // nothing if layers have no inputs of their own.
  void add_layer_input(size_t layer_idx, const DecoderLayer& layer, int64_t num_tokens);
  // The last layer's output for the tokens `rows` of the last step → output; its final norm → norm.
  // Each is [num_rows, hidden]: the view above, or memory of the caller.
  void last_output(const int32_t* rows, int num_rows, TensorView output, TensorView norm);
  // The logits of these tokens, or this rank's part of them.
  void project_last(const int32_t* rows, int num_rows, TensorView logits);
  // Model::add_kv_scales() for the family's layers.
  template <class Layer>
  Result<int> add_kv_scales_to(std::vector<Layer>& layers,
                               std::span<const KvScaleValues> by_layer) {
    int num_added = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].kv_scales.k.view.data != nullptr || !owns_cache(decoder_, i)) continue;
      QUIRE_ASSIGN_OR_RETURN(layers[i].kv_scales, make_kv_scales(by_layer[i], ops_.weights()));
      ++num_added;
    }
    return num_added;
  }

 private:
  // A layer's place in the KV cache: its group, and its index among the group's layers. A layer
  // with a state does not use its group, because there is one StateGroup.
  struct LayerPlace {
    size_t group = 0;
    size_t index = 0;
  };
  struct Rotation {
    Tensor inv_freq;  // F32 [rotated elements of a head / 2]
    float attention_factor = 1.0F;
    QueryScale query_scale;
    // F32, for one step
    Tensor cos_sin;       // [max_num_tokens, rotated elements of a head]
    Tensor query_scales;  // [max_num_tokens]; empty: queries are not scaled
  };

  Status add_rotation(const RopeConfig& rope);
  // The shape of the layer's attention in decode. Both phases have its numbers of heads and its
  // head dimensions.
  const AttentionShape& shape_of(size_t layer_idx) const {
    return kv_groups_[places_[layer_idx].group].decode;
  }
  // The states of a layer, and the sequences of the step.
  StatePages state_pages(size_t layer_idx, const StepInput& input) const;
  void convolve(size_t layer_idx, const DecoderLayer& layer, const StepInput& input);
  void run_delta_net(size_t layer_idx, const DecoderLayer& layer, const StepInput& input);
  // Norms the queries and keys in qkv_view over their whole width.
  void norm_whole_width(size_t layer_idx, const DecoderLayer& layer, int64_t num_tokens);
  // attention_view *= gate_view. Does nothing without gates.
  void gate_attention(size_t layer_idx, const DecoderLayer& layer, int64_t num_tokens);
  // Computes the inputs of all layers for a step's tokens, whose embeddings are in the residual.
  void compute_layer_inputs(const StepInput& input);
  // mlp() of a layer whose MLP and experts have norms of their own.
  void mlp_and_experts(const DecoderLayer& layer, const ResidualNorm& norm);
  // norm(x) → x, for an x that is equal on all ranks.
  void norm_whole(const Tensor& weight, const TensorView& x);
  // The arguments, except for the tensors that are read and rotated, and the number of query heads.
  RopeAndCache rope_and_cache(size_t layer_idx, const DecoderLayer& layer,
                              const StepInput& input) const;
  MlaViews mla_views(int64_t num_tokens) const;
  Status attend_latent(size_t layer_idx, const DecoderLayer& layer, const StepInput& input);
  // attention of q over the layer's cache → out, by the plans that are not null.
  Status run_attention(size_t layer_idx, const DecoderLayer& layer, TensorView q, TensorView out,
                       const StepInput& input, std::initializer_list<AttentionPlan*> plans);
  // The layer's cache, with the checkpoint's scales.
  KvCacheView cache_of(size_t layer_idx, const DecoderLayer& layer, const StepInput& input) const;
  // Whether the last layer's output is tapped.
  bool taps_output() const;
  // Whether each rank has its own part of delta, which the next norm sums.
  bool divides_delta() const { return decoder_.norms.mlp_output.empty(); }
  // A view of `rows` rows of `width` elements, `offset` elements into the scratch buffer.
  TensorView scratch(int64_t offset, int64_t rows, int64_t width) const;

  ModelConfig config_;
  const DecoderConfig& decoder_;  // part of config_
  ModelLimits limits_;
  Ops& ops_;
  DecoderEnds ends_;
  std::vector<KvGroup> kv_groups_;
  StateGroup states_;
  std::vector<LayerPlace> places_;  // [num_layers]
  DecoderWidths widths_;

  float embedding_scale_ = 1.0F;
  float norm_eps_ = 0.0F;            // residual_norm_eps()
  std::vector<Rotation> rotations_;  // one per decoder_.ropes
  Tensor qk_sums_;                   // F32 [max_num_tokens, 2]; for QkNorm::kWholeWidth
  Tensor residual_;                  // [max_num_tokens, hidden]; also normed_ and delta_
  Tensor normed_;
  Tensor delta_;
  Tensor layer_inputs_;  // [max_num_tokens, layers * layer_input_size]; empty: there are none
  MoeStep moe_;
  Tensor state_workspace_;  // of delta nets, if the device needs it
  Tensor scratch_;          // inner values, and the rows for logits
  Tensor logits_parts_;     // F32, of this rank and then of all; empty: lm_head is whole
  Tensor taps_;             // [max_num_tokens, tapped layers * hidden]; empty: none is tapped
};

}  // namespace quire

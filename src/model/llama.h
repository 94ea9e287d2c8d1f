// The decoder that Llama, Mistral, Qwen2 and Qwen3 share: pre-norm, grouped-query attention with
// rotary positions, gated SiLU MLP. What they differ in is data in ModelConfig.
#pragma once

#include <memory>
#include <vector>

#include "model/model.h"

namespace quire {

// One rank's part of one layer.
struct LlamaLayer {
  std::unique_ptr<Linear> qkv;      // [(heads + 2 kv_heads) * head_dim, hidden]
  std::unique_ptr<Linear> o;        // [hidden, heads * head_dim]
  std::unique_ptr<Linear> gate_up;  // [2 * intermediate, hidden]: all of gate, then all of up
  std::unique_ptr<Linear> down;     // [hidden, intermediate]
  Tensor input_norm;                // [hidden]
  Tensor post_attention_norm;       // [hidden]
  Tensor q_norm;                    // [head_dim]; none without QK-norm
  Tensor k_norm;
};

struct LlamaWeights {
  std::unique_ptr<Linear> embed;    // [vocab, hidden]
  std::unique_ptr<Linear> lm_head;  // the same; null: tied to embed
  Tensor final_norm;                // [hidden]
  std::vector<LlamaLayer> layers;
};

class LlamaModel final : public Model {
 public:
  // Allocates every buffer that steps within `limits` need. `ops` must outlive the model.
  static Result<std::unique_ptr<Model>> create(const ModelConfig& config, const ModelLimits& limits,
                                               Ops& ops, LlamaWeights weights);

  const ModelConfig& config() const override { return config_; }
  const std::vector<KvGroup>& kv_groups() const override { return kv_groups_; }
  Status forward(const StepInput& input, Stream& stream) override;
  Status compute_logits(const int32_t* rows, int num_rows, TensorView logits,
                        Stream& stream) override;

 private:
  // Where a layer's cache is: its group, and its index among the group's layers.
  struct LayerPlace {
    size_t group = 0;
    size_t index = 0;
  };

  LlamaModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops, LlamaWeights weights);
  Status allocate_buffers();
  // `rows` rows of `width` elements, `offset` elements into the scratch buffer.
  TensorView scratch(int64_t offset, int64_t rows, int64_t width) const;
  TensorView qkv_view(int64_t num_tokens) const;
  TensorView attention_view(int64_t num_tokens) const;
  TensorView gate_up_view(int64_t num_tokens) const;
  TensorView product_view(int64_t num_tokens) const;
  // A layer's parts, in the order in which forward() runs them.
  void project_qkv(size_t layer_idx, int64_t num_tokens, Stream& stream);
  Status attention(size_t layer_idx, const StepInput& input, Stream& stream);
  void project_output(size_t layer_idx, int64_t num_tokens, Stream& stream);
  void mlp(size_t layer_idx, int64_t num_tokens, Stream& stream);
  // All that follows attention, with the next layer's project_qkv.
  LayerTail tail_of(size_t layer_idx, int64_t num_tokens) const;

  ModelConfig config_;
  ModelLimits limits_;
  Ops& ops_;
  LlamaWeights weights_;
  std::vector<KvGroup> kv_groups_;
  std::vector<LayerPlace> places_;  // [num_layers]
  // This rank's widths, in elements a token.
  int num_heads_ = 0;
  int num_kv_heads_ = 0;
  int64_t q_size_ = 0;
  int64_t qkv_size_ = 0;
  int64_t intermediate_size_ = 0;

  Tensor inv_freq_;  // F32 [head_dim / 2]
  float attention_factor_ = 1.0F;
  // [max_num_tokens, hidden]: what layers add to, a layer's normed input, what it adds. After a
  // step residual_ + delta_ is the last layer's output.
  Tensor residual_;
  Tensor normed_;
  Tensor delta_;
  Tensor cos_sin_;  // F32 [max_num_tokens, head_dim]
  // Attention's and the MLP's inner values, and the rows that logits are wanted of: never needed at
  // the same time.
  Tensor scratch_;
};

}  // namespace quire

// One rank's weights of a decoder, and the tensors of the checkpoint from which they are made.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/decoder_config.h"
#include "model/weights.h"

namespace quire {

// One rank's weights of one layer.
struct DecoderLayer {
  // [heads * head_dim + kv_heads * (head_dim + head_dim_v), hidden], without the rows of keys or
  // values that the layer does not compute. In a layer with a state, it computes ShortConv::bgx or
  // DeltaNet::x. Null with `mla`.
  std::unique_ptr<Linear> qkv;
  MlaLayer mla;  // empty with grouped-query attention
  // [heads or heads * head_dim_v, hidden]; null: no gates. With a delta net, it makes DeltaNet::ba.
  std::unique_ptr<Linear> gate;
  std::unique_ptr<Linear> o;  // [hidden, heads * head_dim_v], or the width of the state's output
  // This rank's vectors of ShortConv or DeltaNet; empty: the layer has attention.
  Tensor conv;
  Tensor a_log;
  Tensor dt_bias;
  Tensor delta_norm;
  // The MLP of a dense layer or, in a mixture of experts, of the shared experts; null if there are
  // none, or if they are among the other experts.
  std::unique_ptr<Linear> gate_up;  // [2 * intermediate, hidden]: the rows of gate, then of up
  std::unique_ptr<Linear> down;     // [hidden, intermediate]
  MoeLayer moe;
  // [head_dim], or this rank's [heads * head_dim] with QkNorm::kWholeWidth; empty without QK-norm.
  Tensor q_norm;
  Tensor k_norm;
  Tensor v_norm;  // [head_dim_v] ones; empty: values have no norm
  Tensor sinks;   // this rank's [heads], AttentionCall::sinks; empty: none
  // [hidden]; empty: DecoderConfig::norms does not name the norm.
  Tensor input_norm;
  Tensor attention_output_norm;
  Tensor mlp_norm;
  Tensor mlp_output_norm;
  // With DecoderConfig::has_layer_scalars, [1]: multiplies the layer's output. Empty in the last
  // layer, whose number is in DecoderEnds.
  Tensor output_scale;
  // With DecoderConfig::layer_input_size, otherwise empty: [layer_input_size, hidden], [hidden,
  // layer_input_size], and the norm of the sub-layer's output, [hidden].
  std::unique_ptr<Linear> input_gate;
  std::unique_ptr<Linear> input_projection;
  Tensor input_output_norm;
  KvScales kv_scales;                       // empty: the scales are 1
  const KvScales* source_scales = nullptr;  // of the cache that the layer reads; null: its own
};

// The weights before and after the layers: embeddings, lm_head and final norm.
struct DecoderEnds {
  std::unique_ptr<Linear> embed;    // [vocab, hidden]
  Tensor embedding_norm;            // [hidden]; empty: embeddings have no norm
  std::unique_ptr<Linear> lm_head;  // [vocab, hidden]; null: tied to embed, or not needed
  Tensor final_norm;                // [hidden]
  Tensor output_scale;              // of the last layer, as DecoderLayer::output_scale
  // With DecoderConfig::layer_input_size, otherwise empty.
  std::unique_ptr<Linear> layer_embed;       // [vocab, layers * layer_input_size]
  std::unique_ptr<Linear> layer_projection;  // [layers * layer_input_size, hidden]
  Tensor layer_projection_norm;              // [layer_input_size]
  // Matrices of another model, used instead of `embed` and `lm_head`; null: none. The other model
  // must outlive this one.
  const Linear* shared_embed = nullptr;
  const Linear* shared_lm_head = nullptr;
};

// The bindings of a layer's matrices and norms, and of DecoderEnds, by the names that Hugging
// Face's checkpoints use below `prefix` ("model.layers.0.", "model."). `qkv_columns` is the width
// of the layer's input where it is not hidden_size.
WeightGroup decoder_layer_weights(const ModelConfig& config, const std::string& prefix,
                                  size_t layer_idx, DecoderLayer& layer,
                                  std::optional<int64_t> qkv_columns = {});
// A matrix with a row of hidden_size per token of a vocabulary.
MatrixBinding vocabulary_matrix(std::unique_ptr<Linear>& linear, std::string name, int num_tokens,
                                const ModelConfig& config);
WeightGroup embedding_weights(const ModelConfig& config, const std::string& prefix,
                              DecoderEnds& ends);
WeightGroup head_weights(const ModelConfig& config, const std::string& prefix, DecoderEnds& ends);

}  // namespace quire

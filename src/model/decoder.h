// The base of dense decoders: grouped-query attention with rotary positions over a paged cache, and
// a gated MLP. A family derives from these classes and defines the order of its norms and
// additions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/model.h"
#include "model/rope.h"
#include "model/weights.h"

namespace quire {

struct DecoderConfig : FamilyConfig {
  int intermediate_size = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int max_position_embeddings = 0;
  float rms_norm_eps = 1e-6F;
  Activation activation = Activation::kSilu;
  float attention_scale = 1.0F;    // multiplies q·k
  float attention_softcap = 0.0F;  // AttentionShape::softcap
  bool tie_word_embeddings = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;                // RMSNorm of each query and key head
  std::vector<int> layer_windows;      // [num_layers]; 0: full attention
  std::vector<RopeConfig> ropes;       // one, or several that layers select from
  std::vector<int> layer_ropes;        // [num_layers], indices into ropes
  std::optional<WeightFormat> format;  // of the layers' matrices; absent: not quantized
};

const DecoderConfig& decoder_config(const ModelConfig& config);

// The lower bound of rope_theta is above 1 because YaRN divides by its logarithm.
inline constexpr double kMinRopeTheta = 1.001;
inline constexpr double kMaxRopeTheta = 1e15;

// Defaults for fields that a config.json may omit. Without a default, the field is required.
struct DecoderDefaults {
  std::optional<int> num_heads = {};
  std::optional<int> num_kv_heads = {};  // absent: num_heads
  std::optional<int> head_dim = {};      // absent: hidden_size / num_heads
  std::optional<int> vocab_size = {};
  std::optional<int> max_position_embeddings = {};
};

// Reads the sizes, whose products fit 63 bits. Sets attention_scale to the default for head_dim.
void read_decoder_sizes(ConfigFields& fields, const DecoderDefaults& defaults, ModelConfig& config,
                        DecoderConfig& decoder);
// Reads one rotation for all layers and sets the model's longest context. Accepts rope_theta beside
// rope_scaling (transformers 4), or both inside rope_parameters (transformers 5).
void read_decoder_rope(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
// Reads the rotation in `fields`: rope_theta, and the scaling in rope_parameters or rope_scaling.
RopeConfig read_rope(ConfigFields& fields, int max_position_embeddings, double default_theta);
// Whether rope_parameters holds an object per type of layer instead of one set for all layers.
bool has_ropes_by_layer_type(const ConfigFields& rope_parameters);
// The rotation of one object of rope_parameters.
RopeConfig read_rope_parameters(ConfigFields& fields, int max_position_embeddings,
                                double default_theta);
// Returns [num_layers] of "full_attention" or "sliding_attention"; empty if there is no
// layer_types.
std::vector<std::string> read_layer_types(ConfigFields& fields, int num_layers);

std::vector<KvGroup> decoder_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                       DType activation);
int64_t decoder_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                 DType activation);

// One rank's weights of one layer.
struct DecoderLayer {
  std::unique_ptr<Linear> qkv;      // [(heads + 2 kv_heads) * head_dim, hidden]
  std::unique_ptr<Linear> o;        // [hidden, heads * head_dim]
  std::unique_ptr<Linear> gate_up;  // [2 * intermediate, hidden]: the rows of gate, then of up
  std::unique_ptr<Linear> down;     // [hidden, intermediate]
  Tensor q_norm;                    // [head_dim]; empty without QK-norm
  Tensor k_norm;
};

// The weights before and after the layers: embeddings, lm_head and final norm.
struct DecoderEnds {
  std::unique_ptr<Linear> embed;    // [vocab, hidden]
  std::unique_ptr<Linear> lm_head;  // [vocab, hidden]; null: tied to embed
  Tensor final_norm;                // [hidden]
};

// The bindings of a layer's matrices and QK-norms, and of DecoderEnds, by the names that Hugging
// Face's checkpoints use below `prefix` ("model.layers.0.", "model."). `addend` is
// VectorBinding::addend of the family's norms.
WeightGroup decoder_layer_weights(const ModelConfig& config, const std::string& prefix,
                                DecoderLayer& layer, float addend = 0.0F);
WeightGroup embedding_weights(const ModelConfig& config, const std::string& prefix,
                            DecoderEnds& ends);
WeightGroup head_weights(const ModelConfig& config, const std::string& prefix, DecoderEnds& ends,
                       float addend = 0.0F);

class DecoderModel : public Model {
 public:
  const ModelConfig& config() const final { return config_; }
  const std::vector<KvGroup>& kv_groups() const final { return kv_groups_; }
  Status compute_logits(const int32_t* rows, int num_rows, TensorView logits,
                        Stream& stream) override;

 protected:
  DecoderModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops, DecoderEnds ends);
  // Allocates every buffer for steps within the limits.
  Status allocate_buffers();

  Ops& ops() const { return ops_; }
  const DecoderConfig& decoder() const { return decoder_; }

  // Activations by token row. A layer adds to the residual; `normed` is the input of a projection,
  // and `delta` the output of a sub-layer. After a step, residual + delta is the last layer's
  // output.
  TensorView residual(int64_t num_tokens) const { return residual_.view.rows(0, num_tokens); }
  TensorView normed(int64_t num_tokens) const { return normed_.view.rows(0, num_tokens); }
  TensorView delta(int64_t num_tokens) const { return delta_.view.rows(0, num_tokens); }
  // The inner values of attention and of the MLP share memory: the MLP overwrites attention's
  // values, and the next layer's queries, keys and values overwrite the MLP's.
  TensorView qkv_view(int64_t num_tokens) const;
  TensorView attention_view(int64_t num_tokens) const;
  TensorView gate_up_view(int64_t num_tokens) const;
  TensorView product_view(int64_t num_tokens) const;

  // The parts of a step. This one embeds the tokens into the residual and computes their rotary
  // angles.
  void begin_step(const StepInput& input, float embed_scale, Stream& stream);
  // residual → normed
  void norm_residual(const Tensor& weight, int64_t num_tokens, Stream& stream);
  // residual += delta; residual → normed
  void add_and_norm(const Tensor& weight, int64_t num_tokens, Stream& stream);
  // delta → delta
  void norm_delta(const Tensor& weight, int64_t num_tokens, Stream& stream);
  // normed → qkv_view
  void project_qkv(const DecoderLayer& layer, int64_t num_tokens, Stream& stream);
  // qkv_view → attention_view
  Status attend(size_t layer_idx, const DecoderLayer& layer, const StepInput& input,
                Stream& stream);
  // attention_view → delta
  void project_output(const DecoderLayer& layer, int64_t num_tokens, Stream& stream);
  // normed → delta
  void mlp(const DecoderLayer& layer, int64_t num_tokens, Stream& stream);

 private:
  // A layer's place in the KV cache: its group, and its index among the group's layers.
  struct LayerPlace {
    size_t group = 0;
    size_t index = 0;
  };
  struct Rotation {
    Tensor inv_freq;  // F32 [head_dim / 2]
    float attention_factor = 1.0F;
    Tensor cos_sin;  // F32 [max_num_tokens, head_dim], for one step
  };

  Status add_rotation(const RopeConfig& rope);
  // A view of `rows` rows of `width` elements, `offset` elements into the scratch buffer.
  TensorView scratch(int64_t offset, int64_t rows, int64_t width) const;

  ModelConfig config_;
  const DecoderConfig& decoder_;  // part of config_
  ModelLimits limits_;
  Ops& ops_;
  DecoderEnds ends_;
  std::vector<KvGroup> kv_groups_;
  std::vector<LayerPlace> places_;  // [num_layers]
  // This rank's widths, in elements per token.
  int num_heads_ = 0;
  int num_kv_heads_ = 0;
  int64_t q_size_ = 0;
  int64_t qkv_size_ = 0;
  int64_t intermediate_size_ = 0;

  std::vector<Rotation> rotations_;  // one per decoder_.ropes
  Tensor residual_;                  // [max_num_tokens, hidden]; also normed_ and delta_
  Tensor normed_;
  Tensor delta_;
  Tensor scratch_;  // inner values, and the rows for logits
};

// Checks that every dimension to be split is divisible; the error names the first that is not.
Status check_shards(const DecoderConfig& config, const Parallel& parallel);

}  // namespace quire

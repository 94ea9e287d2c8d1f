#include "model/model_loader.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/llama.h"
#include "model/shard.h"
#include "tensor/quote_name.h"

namespace quire {
namespace {

// Which part of a matrix a rank holds.
enum class Split { kNone, kRows, kColumns };

// One of the checkpoint's matrices, stacked with others into one Linear.
struct MatrixPart {
  std::string name;  // without ".weight" and ".bias"
  int64_t num_rows;
};

struct MatrixSlot {
  std::unique_ptr<Linear> LlamaLayer::*slot;
  std::vector<MatrixPart> parts;
  int64_t num_columns;
  Split split;
  bool has_bias;
};

struct VectorSlot {
  Tensor LlamaLayer::*slot;
  std::string_view name;
  int64_t size;
  bool is_there;
};

// The map from a layer's slots to the checkpoint's names below "model.layers.N.".
std::vector<MatrixSlot> matrix_slots(const ModelConfig& c) {
  const int64_t hidden = c.hidden_size;
  const int64_t inner = c.intermediate_size;
  const int64_t q_size = int64_t{c.num_heads} * c.head_dim;
  const int64_t kv_size = int64_t{c.num_kv_heads} * c.head_dim;
  return {
      {&LlamaLayer::qkv,
       {{"self_attn.q_proj", q_size}, {"self_attn.k_proj", kv_size}, {"self_attn.v_proj", kv_size}},
       hidden,
       Split::kRows,
       c.qkv_bias},
      {&LlamaLayer::o, {{"self_attn.o_proj", hidden}}, q_size, Split::kColumns, c.o_bias},
      {&LlamaLayer::gate_up,
       {{"mlp.gate_proj", inner}, {"mlp.up_proj", inner}},
       hidden,
       Split::kRows,
       c.mlp_bias},
      {&LlamaLayer::down, {{"mlp.down_proj", hidden}}, inner, Split::kColumns, c.mlp_bias},
  };
}

std::vector<VectorSlot> vector_slots(const ModelConfig& c) {
  return {
      {&LlamaLayer::input_norm, "input_layernorm.weight", c.hidden_size, true},
      {&LlamaLayer::post_attention_norm, "post_attention_layernorm.weight", c.hidden_size, true},
      {&LlamaLayer::q_norm, "self_attn.q_norm.weight", c.head_dim, c.qk_norm},
      {&LlamaLayer::k_norm, "self_attn.k_norm.weight", c.head_dim, c.qk_norm},
  };
}

constexpr const char* kEmbed = "model.embed_tokens";
constexpr const char* kLmHead = "lm_head";
constexpr const char* kFinalNorm = "model.norm.weight";

class Loader {
 public:
  Loader(const ModelConfig& config, WeightSource& source, Ops& ops, const Parallel& parallel)
      : config_(config), source_(source), ops_(ops), parallel_(parallel) {}

  Result<LlamaWeights> load(const LoadProgress& progress);
  // After load: everything that is there has been used.
  Status check_nothing_left() const;

 private:
  Result<LlamaLayer> load_layer(int layer);
  Result<std::unique_ptr<Linear>> load_matrix(const std::string& prefix, const MatrixSlot& slot);
  Status take_part(const std::string& name, const Shape& whole, Split split);
  RepeatedRows repeated_part(const RepeatedTensor& numbers, const Shape& whole, Split split) const;
  Result<TensorView> matrix_part(const std::string& name, const Shape& whole, Split split);
  Result<TensorView> columns(const TensorView& view, const Slice& slice);
  Result<TensorView> bias_part(const std::string& name, int64_t num_rows, Split split);
  Result<Tensor> load_vector(const std::string& name, int64_t size);
  Result<TensorView> take(const std::string& name, const Shape& shape);
  void release_taken();

  const ModelConfig& config_;
  WeightSource& source_;
  Ops& ops_;
  Parallel parallel_;
  std::unordered_set<std::string> used_;
  // What the next Linear or vector is made of.
  std::vector<std::string> taken_;
  std::vector<TensorView> weights_;
  std::vector<RepeatedRows> repeated_;  // or these
  std::vector<Tensor> copies_;          // slices of columns, for as long
};

Result<LlamaWeights> Loader::load(const LoadProgress& progress) {
  LlamaWeights weights;
  const MatrixSlot embed = {
      nullptr, {{kEmbed, config_.vocab_size}}, config_.hidden_size, Split::kNone, false};
  QUIRE_ASSIGN_OR_RETURN(weights.embed, load_matrix("", embed));
  for (int layer = 0; layer < config_.num_layers; ++layer) {
    QUIRE_ASSIGN_OR_RETURN(LlamaLayer loaded, load_layer(layer));
    weights.layers.push_back(std::move(loaded));
    if (progress) progress(layer + 1, config_.num_layers);
  }
  QUIRE_ASSIGN_OR_RETURN(weights.final_norm, load_vector(kFinalNorm, config_.hidden_size));
  if (!config_.tie_word_embeddings) {
    const MatrixSlot lm_head = {
        nullptr, {{kLmHead, config_.vocab_size}}, config_.hidden_size, Split::kNone, false};
    QUIRE_ASSIGN_OR_RETURN(weights.lm_head, load_matrix("", lm_head));
  }
  return weights;
}

Result<LlamaLayer> Loader::load_layer(int layer_idx) {
  const std::string prefix = fmt::format("model.layers.{}.", layer_idx);
  LlamaLayer layer;
  for (const MatrixSlot& slot : matrix_slots(config_)) {
    QUIRE_ASSIGN_OR_RETURN(layer.*slot.slot, load_matrix(prefix, slot));
  }
  for (const VectorSlot& slot : vector_slots(config_)) {
    if (!slot.is_there) continue;
    QUIRE_ASSIGN_OR_RETURN(layer.*slot.slot,
                           load_vector(prefix + std::string(slot.name), slot.size));
  }
  return layer;
}

Result<std::unique_ptr<Linear>> Loader::load_matrix(const std::string& prefix,
                                                    const MatrixSlot& slot) {
  std::vector<TensorView> biases;
  for (const MatrixPart& part : slot.parts) {
    const std::string name = prefix + part.name;
    QUIRE_RETURN_IF_ERROR(
        take_part(name + ".weight", {part.num_rows, slot.num_columns}, slot.split));
    if (!slot.has_bias) continue;
    QUIRE_ASSIGN_OR_RETURN(const TensorView bias,
                           bias_part(name + ".bias", part.num_rows, slot.split));
    biases.push_back(bias);
  }
  auto linear = ops_.make_linear({weights_, biases, repeated_});
  release_taken();
  return linear;
}

Status Loader::take_part(const std::string& name, const Shape& whole, Split split) {
  if (ops_.fills_repeated()) {
    QUIRE_ASSIGN_OR_RETURN(const auto numbers, source_.repeated(name));
    if (numbers.has_value()) {
      used_.insert(name);
      repeated_.push_back(repeated_part(*numbers, whole, split));
      return {};
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const TensorView weight, matrix_part(name, whole, split));
  if (!weights_.empty() && weight.dtype != weights_.front().dtype) {
    return invalid_argument(fmt::format(
        "[model] tensor {} is of another type than its neighbours; got {}, "
        "expected {}",
        quote_name(name), dtype_name(weight.dtype), dtype_name(weights_.front().dtype)));
  }
  weights_.push_back(weight);
  return {};
}

RepeatedRows Loader::repeated_part(const RepeatedTensor& numbers, const Shape& whole,
                                   Split split) const {
  RepeatedRows rows = {numbers.pool, numbers.first, whole[1], whole};
  if (split == Split::kRows) {
    const Slice slice = shard(whole[0], parallel_);
    rows.first += slice.first * whole[1];
    rows.shape = {slice.count, whole[1]};
  }
  if (split == Split::kColumns) {
    const Slice slice = shard(whole[1], parallel_);
    rows.first += slice.first;
    rows.shape = {whole[0], slice.count};
  }
  return rows;
}

Result<TensorView> Loader::matrix_part(const std::string& name, const Shape& whole, Split split) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, take(name, whole));
  if (parallel_.size == 1 || split == Split::kNone) return view;
  if (split == Split::kColumns) return columns(view, shard(whole[1], parallel_));
  const Slice slice = shard(whole[0], parallel_);
  return view.rows(slice.first, slice.count);
}

Result<TensorView> Loader::columns(const TensorView& view, const Slice& slice) {
  QUIRE_ASSIGN_OR_RETURN(Tensor copy, Tensor::host({view.shape[0], slice.count}, view.dtype));
  const size_t element_bytes = dtype_bytes(view.dtype);
  const size_t row_bytes = static_cast<size_t>(slice.count) * element_bytes;
  for (int64_t row = 0; row < view.shape[0]; ++row) {
    const auto from = static_cast<size_t>(row * view.shape[1] + slice.first) * element_bytes;
    std::memcpy(copy.view.as<std::byte>() + static_cast<size_t>(row) * row_bytes,
                view.as<std::byte>() + from, row_bytes);
  }
  copies_.push_back(std::move(copy));
  return copies_.back().view;
}

Result<TensorView> Loader::bias_part(const std::string& name, int64_t num_rows, Split split) {
  QUIRE_ASSIGN_OR_RETURN(TensorView view, take(name, {num_rows}));
  if (parallel_.size == 1 || split == Split::kNone) return view;
  if (split == Split::kRows) {
    const Slice slice = shard(num_rows, parallel_);
    return view.rows(slice.first, slice.count);
  }
  // Every rank's product is a part of the sum: the bias must join it once.
  if (parallel_.rank != 0) view.data = nullptr;
  return view;
}

Result<Tensor> Loader::load_vector(const std::string& name, int64_t size) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, take(name, {size}));
  auto vector = ops_.make_vector(view);
  release_taken();
  return vector;
}

Result<TensorView> Loader::take(const std::string& name, const Shape& shape) {
  used_.insert(name);
  taken_.push_back(name);
  return source_.tensor(name, shape);
}

void Loader::release_taken() {
  for (const std::string& name : taken_) source_.release(name);
  taken_.clear();
  weights_.clear();
  repeated_.clear();
  copies_.clear();
}

Status Loader::check_nothing_left() const {
  constexpr size_t kMaxNamed = 3;
  std::string named;
  size_t num_left = 0;
  for (const std::string& name : source_.names()) {
    const bool is_ignored = used_.contains(name) || name.ends_with("rotary_emb.inv_freq") ||
                            (config_.tie_word_embeddings && name == "lm_head.weight");
    if (is_ignored) continue;
    if (++num_left <= kMaxNamed) named += (num_left > 1 ? ", " : "") + quote_name(name);
  }
  if (num_left == 0) return {};
  return invalid_argument(
      fmt::format("[model] the checkpoint has {} tensors that {} of this config.json does not use: "
                  "{}{}; the two do not belong together",
                  num_left, config_.architecture, named, num_left > kMaxNamed ? ", …" : ""));
}

}  // namespace

Result<std::unique_ptr<Model>> load_model(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadProgress& progress) {
  QUIRE_CHECK(
      limits.max_num_tokens > 0 && limits.max_num_logit_rows > 0 && limits.max_model_len > 0,
      "[model] limits must be set");
  QUIRE_RETURN_IF_ERROR(check_shards(config, limits.parallel));
  Loader loader(config, source, ops, limits.parallel);
  QUIRE_ASSIGN_OR_RETURN(LlamaWeights weights, loader.load(progress));
  QUIRE_RETURN_IF_ERROR(loader.check_nothing_left());
  return LlamaModel::create(config, limits, ops, std::move(weights));
}

}  // namespace quire

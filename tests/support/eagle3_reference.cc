#include "support/eagle3_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <random>
#include <utility>

namespace quire::testing {
namespace {

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 8;
constexpr int kIntermediate = 24;
constexpr double kEps = 1e-5;
constexpr double kTheta = 10000.0;

using Row = Eagle3Reference::Row;

template <typename T>
StoredTensor stored(std::string dtype, const std::vector<int64_t>& shape,
                    std::span<const T> values) {
  StoredTensor tensor = {std::move(dtype), shape, {}};
  const auto bytes = std::as_bytes(values);
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

// The prefix of a layer's tensors.
std::string layer_prefix(const HeadShape& shape, int layer) {
  if (layer == 0 && !shape.is_speculators) return "midlayer.";
  return fmt::format("layers.{}.", layer);
}

int num_taps(const HeadShape& shape) {
  return shape.taps.empty() ? 3 : static_cast<int>(shape.taps.size());
}

Row sum(const Row& a, const Row& b) {
  Row out = a;
  for (size_t i = 0; i < out.size(); ++i) out[i] += b[i];
  return out;
}

Row rotated(const Row& head, size_t position) {
  constexpr size_t kHalf = kHeadDim / 2;
  Row out = head;
  for (size_t i = 0; i < kHalf; ++i) {
    const double angle = static_cast<double>(position) *
                         std::pow(kTheta, -static_cast<double>(i) / static_cast<double>(kHalf));
    out[i] = head[i] * std::cos(angle) - head[kHalf + i] * std::sin(angle);
    out[kHalf + i] = head[kHalf + i] * std::cos(angle) + head[i] * std::sin(angle);
  }
  return out;
}

Row head_of(const Row& row, int head) {
  const auto begin = row.begin() + int64_t{head} * kHeadDim;
  return {begin, begin + kHeadDim};
}

double dot(const Row& a, const Row& b) {
  double total = 0.0;
  for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

// The attention of one query head over the keys and values of one head.
Row attention(const Row& query, const std::vector<Row>& keys, const std::vector<Row>& values) {
  Row out(kHeadDim, 0.0);
  double total = 0.0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const double weight = std::exp(dot(query, keys[i]) / std::sqrt(double{kHeadDim}));
    total += weight;
    for (size_t d = 0; d < out.size(); ++d) out[d] += weight * values[i][d];
  }
  for (double& value : out) value /= total;
  return out;
}

std::string layers_json(const HeadShape& shape) {
  return fmt::format(
      R"("hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},"num_attention_heads":{},)"
      R"("num_key_value_heads":{},"head_dim":{},"vocab_size":{},"max_position_embeddings":64,)"
      R"("rms_norm_eps":{},"rope_theta":{},"attention_bias":{},"mlp_bias":{},)"
      R"("tie_word_embeddings":{},"model_type":"llama","hidden_act":"silu")",
      shape.hidden, kIntermediate, shape.num_layers, kHeads, kKvHeads, kHeadDim, shape.vocab, kEps,
      kTheta, shape.has_bias, shape.has_bias, shape.is_tied);
}

}  // namespace

StoredTensor stored_floats(const std::vector<int64_t>& shape, std::span<const float> values) {
  return stored("F32", shape, values);
}

StoredTensor stored_integers(std::span<const int64_t> values) {
  return stored("I64", {static_cast<int64_t>(values.size())}, values);
}

StoredTensor stored_short_integers(std::span<const int32_t> values) {
  return stored("I32", {static_cast<int64_t>(values.size())}, values);
}

std::vector<float> floats_of(const StoredTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

std::vector<std::byte> safetensors_file(const StoredTensors& tensors) {
  std::string header = "{";
  std::vector<std::byte> data;
  for (const auto& [name, tensor] : tensors) {
    const size_t end = data.size() + tensor.bytes.size();
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          data.empty() ? "" : ",", name, tensor.dtype, fmt::join(tensor.shape, ","),
                          data.size(), end);
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  header += "}";
  const uint64_t length = header.size();
  std::vector<std::byte> file(sizeof(length) + header.size());
  std::memcpy(file.data(), &length, sizeof(length));
  std::memcpy(file.data() + sizeof(length), header.data(), header.size());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

std::string head_config_json(const HeadShape& shape) {
  std::string head = fmt::format(
      R"("draft_vocab_size":{},"norm_before_residual":{},"norm_before_fc":{},"norm_output":{},)"
      R"("target_hidden_size":{})",
      shape.draft_vocab, shape.norm_before_residual, shape.norm_before_fc, shape.norm_output,
      shape.target_hidden);
  if (!shape.taps.empty()) {
    head += fmt::format(R"(,"eagle_aux_hidden_state_layer_ids":[{}])", fmt::join(shape.taps, ","));
  }
  if (shape.is_speculators) {
    return fmt::format(
        R"({{"architectures":["Eagle3Speculator"],"speculators_model_type":"eagle3",{},)"
        R"("transformer_layer_config":{{{}}}}})",
        head, layers_json(shape));
  }
  return fmt::format(R"({{"architectures":["LlamaForCausalLMEagle3"],{},{}}})", head,
                     layers_json(shape));
}

StoredTensors random_head(const HeadShape& shape, uint32_t seed) {
  std::mt19937 generator(seed);
  StoredTensors tensors;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& dims, float mean) {
    std::normal_distribution<float> numbers(mean, 0.3F);
    std::vector<float> values(static_cast<size_t>(dims[0] * (dims.size() > 1 ? dims[1] : 1)));
    for (float& value : values) value = numbers(generator);
    tensors[name] = stored_floats(dims, values);
  };
  const auto add_matrix = [&](const std::string& name, int64_t rows, int64_t columns, bool bias) {
    add(name + ".weight", {rows, columns}, 0.0F);
    if (bias) add(name + ".bias", {rows}, 0.0F);
  };
  const int64_t taps_width = int64_t{num_taps(shape)} * shape.target_hidden;
  add_matrix("fc", shape.hidden, taps_width, false);
  if (shape.norm_before_fc) add("input_norm.weight", {taps_width}, 1.0F);
  if (shape.has_embeddings) add_matrix("embed_tokens", shape.vocab, shape.hidden, false);
  if (shape.has_lm_head) add_matrix("lm_head", shape.draft_vocab, shape.hidden, false);
  add("norm.weight", {shape.hidden}, 1.0F);
  for (int layer = 0; layer < shape.num_layers; ++layer) {
    const std::string prefix = layer_prefix(shape, layer);
    const int64_t width = (layer == 0 ? 2 : 1) * shape.hidden;
    const bool bias = shape.has_bias;
    add_matrix(prefix + "self_attn.q_proj", kHeads * kHeadDim, width, bias);
    add_matrix(prefix + "self_attn.k_proj", kKvHeads * kHeadDim, width, bias);
    add_matrix(prefix + "self_attn.v_proj", kKvHeads * kHeadDim, width, bias);
    add_matrix(prefix + "self_attn.o_proj", shape.hidden, kHeads * kHeadDim, bias);
    add_matrix(prefix + "mlp.gate_proj", kIntermediate, shape.hidden, bias);
    add_matrix(prefix + "mlp.up_proj", kIntermediate, shape.hidden, bias);
    add_matrix(prefix + "mlp.down_proj", shape.hidden, kIntermediate, bias);
    if (layer == 0) add(prefix + "hidden_norm.weight", {shape.hidden}, 1.0F);
    add(prefix + "input_layernorm.weight", {shape.hidden}, 1.0F);
    add(prefix + "post_attention_layernorm.weight", {shape.hidden}, 1.0F);
  }
  if (shape.draft_vocab == shape.vocab) return tensors;
  std::vector<int64_t> differences;
  std::vector<std::byte> is_drafted(static_cast<size_t>(shape.vocab), std::byte{0});
  for (int64_t draft_id = 0; draft_id < shape.draft_vocab; ++draft_id) {
    const int64_t num_odd = shape.vocab / 2;
    const int64_t id = draft_id < num_odd ? 2 * draft_id + 1 : 2 * (draft_id - num_odd);
    differences.push_back(id - draft_id);
    is_drafted[static_cast<size_t>(id)] = std::byte{1};
  }
  tensors["d2t"] = stored_integers(differences);
  tensors["t2d"] = {"BOOL", {shape.vocab}, is_drafted};
  return tensors;
}

Eagle3Reference::Eagle3Reference(const HeadShape& shape, const StoredTensors& tensors,
                                 std::vector<float> embeddings, std::vector<float> lm_head)
    : shape_(shape) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.dtype == "F32") tensors_[name] = floats_of(tensor);
  }
  tensors_["embed_tokens.weight"] = std::move(embeddings);
  tensors_["lm_head.weight"] = std::move(lm_head);
}

Row Eagle3Reference::apply(const std::string& matrix, const Row& x) const {
  const std::vector<float>& weights = tensors_.at(matrix + ".weight");
  const auto bias = tensors_.find(matrix + ".bias");
  Row out(weights.size() / x.size());
  for (size_t n = 0; n < out.size(); ++n) {
    out[n] = bias == tensors_.end() ? 0.0 : double{bias->second[n]};
    for (size_t k = 0; k < x.size(); ++k) out[n] += double{weights[n * x.size() + k]} * x[k];
  }
  return out;
}

Row Eagle3Reference::norm(const std::string& vector, const Row& x) const {
  const std::vector<float>& weights = tensors_.at(vector + ".weight");
  const double scale = 1.0 / std::sqrt(dot(x, x) / static_cast<double>(x.size()) + kEps);
  Row out = x;
  for (size_t i = 0; i < out.size(); ++i) out[i] *= scale * weights[i];
  return out;
}

std::string Eagle3Reference::layer_name(int layer, std::string_view tensor) const {
  return fmt::format("{}{}", layer_prefix(shape_, layer), tensor);
}

Row Eagle3Reference::combine(const Row& taps) const {
  return apply("fc", shape_.norm_before_fc ? norm("input_norm", taps) : taps);
}

// Causal attention: row i reads the rows up to i.
std::vector<Row> Eagle3Reference::attend(int layer, const std::vector<Row>& inputs) const {
  std::vector<std::vector<Row>> keys(kKvHeads);
  std::vector<std::vector<Row>> values(kKvHeads);
  std::vector<Row> outputs;
  for (size_t position = 0; position < inputs.size(); ++position) {
    const Row q = apply(layer_name(layer, "self_attn.q_proj"), inputs[position]);
    const Row k = apply(layer_name(layer, "self_attn.k_proj"), inputs[position]);
    const Row v = apply(layer_name(layer, "self_attn.v_proj"), inputs[position]);
    for (int head = 0; head < kKvHeads; ++head) {
      keys[static_cast<size_t>(head)].push_back(rotated(head_of(k, head), position));
      values[static_cast<size_t>(head)].push_back(head_of(v, head));
    }
    Row heads;
    for (int head = 0; head < kHeads; ++head) {
      const auto kv_head = static_cast<size_t>(head / (kHeads / kKvHeads));
      const Row out =
          attention(rotated(head_of(q, head), position), keys[kv_head], values[kv_head]);
      heads.insert(heads.end(), out.begin(), out.end());
    }
    outputs.push_back(apply(layer_name(layer, "self_attn.o_proj"), heads));
  }
  return outputs;
}

Row Eagle3Reference::mlp(int layer, const Row& x) const {
  Row product = apply(layer_name(layer, "mlp.gate_proj"), x);
  const Row up = apply(layer_name(layer, "mlp.up_proj"), x);
  for (size_t i = 0; i < product.size(); ++i) {
    product[i] = product[i] / (1.0 + std::exp(-product[i])) * up[i];
  }
  return apply(layer_name(layer, "mlp.down_proj"), product);
}

Eagle3Reference::Output Eagle3Reference::run(std::span<const int32_t> tokens,
                                             std::span<const Row> hidden) const {
  std::vector<Row> residuals(hidden.begin(), hidden.end());
  for (int layer = 0; layer < shape_.num_layers; ++layer) {
    std::vector<Row> inputs;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (layer > 0) {
        inputs.push_back(norm(layer_name(layer, "input_layernorm"), residuals[i]));
        continue;
      }
      const float* embedding =
          tensors_.at("embed_tokens.weight").data() + int64_t{tokens[i]} * shape_.hidden;
      Row input = norm(layer_name(0, "input_layernorm"), {embedding, embedding + shape_.hidden});
      const Row normed = norm(layer_name(0, "hidden_norm"), hidden[i]);
      input.insert(input.end(), normed.begin(), normed.end());
      inputs.push_back(std::move(input));
      if (shape_.norm_before_residual) residuals[i] = normed;
    }
    const std::vector<Row> attended = attend(layer, inputs);
    for (size_t i = 0; i < residuals.size(); ++i) {
      residuals[i] = sum(residuals[i], attended[i]);
      const Row normed = norm(layer_name(layer, "post_attention_layernorm"), residuals[i]);
      residuals[i] = sum(residuals[i], mlp(layer, normed));
    }
  }
  Output output;
  for (const Row& residual : residuals) {
    const Row normed = norm("norm", residual);
    output.states.push_back(shape_.norm_output ? normed : residual);
    output.logits.push_back(apply("lm_head", normed));
  }
  return output;
}

}  // namespace quire::testing

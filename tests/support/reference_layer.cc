#include "support/reference_layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "tensor/safetensors.h"

namespace quire::testing {
namespace {

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = kReferenceHeadDim;
constexpr int kIntermediate = 24;
constexpr double kEps = 1e-5;
constexpr double kTheta = 10000.0;

using Row = ReferenceTensors::Row;

template <typename T>
StoredTensor stored(std::string dtype, const std::vector<int64_t>& shape,
                    std::span<const T> values) {
  StoredTensor tensor = {std::move(dtype), shape, {}};
  const auto bytes = std::as_bytes(values);
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
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

void add_draft_vocabulary(int vocab, int draft_vocab, StoredTensors& tensors) {
  std::vector<int64_t> differences;
  std::vector<std::byte> is_drafted(static_cast<size_t>(vocab), std::byte{0});
  const int num_odd = vocab / 2;
  for (int draft_id = 0; draft_id < draft_vocab; ++draft_id) {
    const int id = draft_id < num_odd ? 2 * draft_id + 1 : 2 * (draft_id - num_odd);
    differences.push_back(id - draft_id);
    is_drafted[static_cast<size_t>(id)] = std::byte{1};
  }
  tensors["d2t"] = stored_integers(differences);
  tensors["t2d"] = {"BOOL", {vocab}, is_drafted};
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
  header.append((8 - header.size() % 8) % 8, ' ');  // aligns the tensors, as known writers do
  const uint64_t length = header.size();
  std::vector<std::byte> file(sizeof(length) + header.size());
  std::memcpy(file.data(), &length, sizeof(length));
  std::memcpy(file.data() + sizeof(length), header.data(), header.size());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

StoredTensors stored_tensors(std::span<const std::byte> file) {
  const Safetensors parsed = Safetensors::parse(file, "model").value();
  StoredTensors tensors;
  for (const std::string& name : parsed.names()) {
    const SafetensorsEntry& entry = *parsed.find(name);
    tensors[name] = {entry.dtype, entry.shape, {entry.bytes.begin(), entry.bytes.end()}};
  }
  return tensors;
}

void RandomTensors::add(const std::string& name, const std::vector<int64_t>& dims, float mean) {
  std::normal_distribution<float> numbers(mean, 0.3F);
  std::vector<float> values(static_cast<size_t>(dims[0] * (dims.size() > 1 ? dims[1] : 1)));
  for (float& value : values) value = numbers(generator_);
  tensors[name] = stored_floats(dims, values);
}

void RandomTensors::add_matrix(const std::string& name, int64_t rows, int64_t columns,
                               bool has_bias) {
  add(name + ".weight", {rows, columns}, 0.0F);
  if (has_bias) add(name + ".bias", {rows}, 0.0F);
}

void RandomTensors::add_layer(const std::string& prefix, int64_t hidden, int64_t input_width,
                              bool has_bias, bool has_mlp_bias) {
  add_matrix(prefix + "self_attn.q_proj", kHeads * kHeadDim, input_width, has_bias);
  add_matrix(prefix + "self_attn.k_proj", kKvHeads * kHeadDim, input_width, has_bias);
  add_matrix(prefix + "self_attn.v_proj", kKvHeads * kHeadDim, input_width, has_bias);
  add_matrix(prefix + "self_attn.o_proj", hidden, kHeads * kHeadDim, has_bias);
  add_matrix(prefix + "mlp.gate_proj", kIntermediate, hidden, has_mlp_bias);
  add_matrix(prefix + "mlp.up_proj", kIntermediate, hidden, has_mlp_bias);
  add_matrix(prefix + "mlp.down_proj", hidden, kIntermediate, has_mlp_bias);
}

std::string layer_sizes_json(int max_position_embeddings) {
  return fmt::format(
      R"("intermediate_size":{},"num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},)"
      R"("max_position_embeddings":{},"rms_norm_eps":{},"rope_theta":{})",
      kIntermediate, kHeads, kKvHeads, kHeadDim, max_position_embeddings, kEps, kTheta);
}

ReferenceTensors::ReferenceTensors(const StoredTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.dtype == "F32") tensors_[name] = floats_of(tensor);
  }
}

void ReferenceTensors::set(const std::string& name, std::vector<float> values) {
  tensors_[name] = std::move(values);
}

Row sum(const Row& a, const Row& b) {
  Row out = a;
  for (size_t i = 0; i < out.size(); ++i) out[i] += b[i];
  return out;
}

Row ReferenceTensors::row(const std::string& matrix, int32_t idx, int width) const {
  const float* begin = tensors_.at(matrix + ".weight").data() + int64_t{idx} * width;
  return {begin, begin + width};
}

Row ReferenceTensors::apply(const std::string& matrix, const Row& x) const {
  const std::vector<float>& weights = tensors_.at(matrix + ".weight");
  const auto bias = tensors_.find(matrix + ".bias");
  Row out(weights.size() / x.size());
  for (size_t n = 0; n < out.size(); ++n) {
    out[n] = bias == tensors_.end() ? 0.0 : double{bias->second[n]};
    for (size_t k = 0; k < x.size(); ++k) out[n] += double{weights[n * x.size() + k]} * x[k];
  }
  return out;
}

Row ReferenceTensors::norm(const std::string& vector, const Row& x) const {
  const std::vector<float>& weights = tensors_.at(vector + ".weight");
  const double scale = 1.0 / std::sqrt(dot(x, x) / static_cast<double>(x.size()) + kEps);
  Row out = x;
  for (size_t i = 0; i < out.size(); ++i) out[i] *= scale * weights[i];
  return out;
}

Row ReferenceTensors::mlp(const std::string& prefix, const Row& x) const {
  return gated_mlp(prefix + "mlp.gate_proj", prefix + "mlp.up_proj", prefix + "mlp.down_proj", x);
}

Row ReferenceTensors::gated_mlp(const std::string& gate, const std::string& up,
                                const std::string& down, const Row& x) const {
  Row product = apply(gate, x);
  const Row factor = apply(up, x);
  for (size_t i = 0; i < product.size(); ++i) {
    product[i] = product[i] / (1.0 + std::exp(-product[i])) * factor[i];
  }
  return apply(down, product);
}

Row ReferenceTensors::head(const std::string& norm_name, const Row& row, int head_idx) const {
  const Row values = head_of(row, head_idx);
  return tensors_.contains(norm_name + ".weight") ? norm(norm_name, values) : values;
}

void ReferenceTensors::add_keys_values(const std::string& prefix, const Row& x, size_t position,
                                       KeysValues& out) const {
  out.keys.resize(kKvHeads);
  out.values.resize(kKvHeads);
  const Row k = apply(prefix + "self_attn.k_proj", x);
  const Row v = apply(prefix + "self_attn.v_proj", x);
  for (int h = 0; h < kKvHeads; ++h) {
    const auto i = static_cast<size_t>(h);
    out.keys[i].push_back(rotated(head(prefix + "self_attn.k_norm", k, h), position));
    out.values[i].push_back(head_of(v, h));
  }
}

Row ReferenceTensors::attend(const std::string& prefix, const Row& x, size_t position,
                             const KeysValues& kv) const {
  const Row q = apply(prefix + "self_attn.q_proj", x);
  Row heads;
  for (int h = 0; h < kHeads; ++h) {
    const auto kv_head = static_cast<size_t>(h / (kHeads / kKvHeads));
    const Row query = rotated(head(prefix + "self_attn.q_norm", q, h), position);
    const Row out = attention(query, kv.keys[kv_head], kv.values[kv_head]);
    heads.insert(heads.end(), out.begin(), out.end());
  }
  return apply(prefix + "self_attn.o_proj", heads);
}

}  // namespace quire::testing

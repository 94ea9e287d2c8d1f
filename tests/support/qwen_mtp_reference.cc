#include "support/qwen_mtp_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace quire::testing {
namespace {

using Row = QwenMtpReference::Row;

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 8;
constexpr int kRotated = 4;  // of a head
constexpr int kIntermediate = 24;
constexpr int kExpertSize = 12;
constexpr int kSharedSize = 20;
constexpr int kTopK = 2;
constexpr double kEps = 1e-5;
constexpr double kTheta = 100.0;

const std::string kLayer = "mtp.layers.0.";

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

Row part(const Row& row, int first, int count) {
  return {row.begin() + first, row.begin() + first + count};
}

Row rotated(Row head, size_t position) {
  constexpr int kHalf = kRotated / 2;
  for (int i = 0; i < kHalf; ++i) {
    const double angle = static_cast<double>(position) * std::pow(kTheta, -double{1.0} * i / kHalf);
    const auto at = static_cast<size_t>(i);
    const double x = head[at];
    const double y = head[at + kHalf];
    head[at] = x * std::cos(angle) - y * std::sin(angle);
    head[at + kHalf] = y * std::cos(angle) + x * std::sin(angle);
  }
  return head;
}

double dot(const Row& a, const Row& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Row softmax(Row scores) {
  double total = 0.0;
  for (double& score : scores) total += score = std::exp(score);
  for (double& score : scores) score /= total;
  return scores;
}

void add_mlp(const std::string& block, int hidden, int inner, RandomTensors& random) {
  random.add_matrix(block + "gate_proj", inner, hidden);
  random.add_matrix(block + "up_proj", inner, hidden);
  random.add_matrix(block + "down_proj", hidden, inner);
}

void add_layer(const std::string& prefix, const QwenShape& shape, RandomTensors& random) {
  const std::string attention = prefix + "self_attn.";
  random.add_matrix(attention + "q_proj", 2 * kHeads * kHeadDim, shape.hidden);
  random.add_matrix(attention + "k_proj", kKvHeads * kHeadDim, shape.hidden);
  random.add_matrix(attention + "v_proj", kKvHeads * kHeadDim, shape.hidden);
  random.add_matrix(attention + "o_proj", shape.hidden, kHeads * kHeadDim);
  for (const char* name : {"q_norm", "k_norm"}) {
    random.add(fmt::format("{}{}.weight", attention, name), {kHeadDim}, 0.0F);
  }
  for (const char* name : {"input_layernorm", "post_attention_layernorm"}) {
    random.add(fmt::format("{}{}.weight", prefix, name), {shape.hidden}, 0.0F);
  }
  if (shape.num_experts == 0) return add_mlp(prefix + "mlp.", shape.hidden, kIntermediate, random);
  random.add_matrix(prefix + "mlp.gate", shape.num_experts, shape.hidden);
  random.add_matrix(prefix + "mlp.shared_expert_gate", 1, shape.hidden);
  add_mlp(prefix + "mlp.shared_expert.", shape.hidden, kSharedSize, random);
  for (int e = 0; e < shape.num_experts; ++e) {
    add_mlp(fmt::format("{}mlp.experts.{}.", prefix, e), shape.hidden, kExpertSize, random);
  }
}

std::vector<std::string> layer_prefixes(const QwenShape& shape) {
  std::vector<std::string> prefixes = {kLayer};
  for (int i = 0; i < shape.num_layers; ++i) prefixes.push_back(fmt::format("model.layers.{}.", i));
  return prefixes;
}

}  // namespace

std::string qwen_config_json(const QwenShape& shape, std::string_view more) {
  const std::string experts =
      fmt::format(R"("num_experts":{},"num_experts_per_tok":{},"moe_intermediate_size":{},)"
                  R"("shared_expert_intermediate_size":{},)",
                  shape.num_experts, kTopK, kExpertSize, kSharedSize);
  return fmt::format(
      R"({{"architectures":["Qwen3_5{}ForCausalLM"],"hidden_size":{},"num_hidden_layers":{},)"
      R"("vocab_size":{},"num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},)"
      R"("intermediate_size":{},{}"full_attention_interval":1,"max_position_embeddings":512,)"
      R"("rms_norm_eps":{},"rope_parameters":{{"rope_type":"default","rope_theta":{},)"
      R"("partial_rotary_factor":0.5}},"tie_word_embeddings":false,"torch_dtype":"float32"{}}})",
      shape.num_experts > 0 ? "Moe" : "", shape.hidden, shape.num_layers, shape.vocab, kHeads,
      kKvHeads, kHeadDim, kIntermediate, shape.num_experts > 0 ? experts : "", kEps, kTheta, more);
}

StoredTensors random_qwen(const QwenShape& shape, uint32_t seed) {
  RandomTensors random(seed);
  random.add_matrix("model.embed_tokens", shape.vocab, shape.hidden);
  random.add_matrix("lm_head", shape.vocab, shape.hidden);
  random.add_matrix("mtp.fc", shape.hidden, 2 * shape.hidden);
  for (const char* norm :
       {"model.norm", "mtp.norm", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden"}) {
    random.add(fmt::format("{}.weight", norm), {shape.hidden}, 0.0F);
  }
  for (const std::string& prefix : layer_prefixes(shape)) add_layer(prefix, shape, random);
  return std::move(random.tensors);
}

StoredTensors stack_experts(const QwenShape& shape, StoredTensors tensors) {
  for (const std::string& prefix : layer_prefixes(shape)) {
    StoredTensor gate_up = {"F32", {shape.num_experts, 2 * kExpertSize, shape.hidden}, {}};
    StoredTensor down = {"F32", {shape.num_experts, shape.hidden, kExpertSize}, {}};
    for (int e = 0; e < shape.num_experts; ++e) {
      const auto move = [&](const char* matrix, StoredTensor& stack) {
        const auto found =
            tensors.find(fmt::format("{}mlp.experts.{}.{}.weight", prefix, e, matrix));
        const std::vector<std::byte>& bytes = found->second.bytes;
        stack.bytes.insert(stack.bytes.end(), bytes.begin(), bytes.end());
        tensors.erase(found);
      };
      move("gate_proj", gate_up);
      move("up_proj", gate_up);
      move("down_proj", down);
    }
    tensors[prefix + "mlp.experts.gate_up_proj"] = std::move(gate_up);
    tensors[prefix + "mlp.experts.down_proj"] = std::move(down);
  }
  return tensors;
}

Row QwenMtpReference::norm(const std::string& name, const Row& x) const {
  const Row weights = tensors_.row(name, 0, static_cast<int>(x.size()));
  const double scale = 1.0 / std::sqrt(dot(x, x) / static_cast<double>(x.size()) + kEps);
  Row out = x;
  for (size_t i = 0; i < out.size(); ++i) out[i] *= scale * (1.0 + weights[i]);
  return out;
}

void QwenMtpReference::add_keys_values(const std::string& prefix, const Row& x,
                                       std::vector<KeysValues>& heads) const {
  const std::string attention = prefix + "self_attn.";
  const Row keys = tensors_.apply(attention + "k_proj", x);
  const Row values = tensors_.apply(attention + "v_proj", x);
  for (int h = 0; h < kKvHeads; ++h) {
    KeysValues& head = heads[static_cast<size_t>(h)];
    const Row key = norm(attention + "k_norm", part(keys, h * kHeadDim, kHeadDim));
    head.keys.push_back(rotated(key, head.keys.size()));
    head.values.push_back(part(values, h * kHeadDim, kHeadDim));
  }
}

// The rows of a head's queries come before the rows of its gates.
Row QwenMtpReference::attend(const std::string& prefix, const Row& x,
                             const std::vector<KeysValues>& heads) const {
  const std::string attention = prefix + "self_attn.";
  const Row queries_and_gates = tensors_.apply(attention + "q_proj", x);
  Row outputs;
  for (int h = 0; h < kHeads; ++h) {
    const auto& [keys, values] = heads[static_cast<size_t>(h / (kHeads / kKvHeads))];
    const Row query =
        rotated(norm(attention + "q_norm", part(queries_and_gates, 2 * h * kHeadDim, kHeadDim)),
                keys.size() - 1);
    const Row gate = part(queries_and_gates, (2 * h + 1) * kHeadDim, kHeadDim);
    Row scores;
    for (const Row& key : keys) scores.push_back(dot(query, key) / std::sqrt(double{kHeadDim}));
    const Row weights = softmax(scores);
    Row out(kHeadDim, 0.0);
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t d = 0; d < out.size(); ++d) out[d] += weights[i] * values[i][d];
    }
    for (size_t d = 0; d < out.size(); ++d) outputs.push_back(out[d] * sigmoid(gate[d]));
  }
  return tensors_.apply(attention + "o_proj", outputs);
}

// The weights of the chosen experts have a sum of 1.
Row QwenMtpReference::experts(const std::string& prefix, const Row& x) const {
  const auto run = [&](const std::string& block) {
    return tensors_.gated_mlp(block + "gate_proj", block + "up_proj", block + "down_proj", x);
  };
  Row out = run(prefix + "mlp.shared_expert.");
  const double gate = sigmoid(tensors_.apply(prefix + "mlp.shared_expert_gate", x).front());
  for (double& value : out) value *= gate;
  const Row scores = softmax(tensors_.apply(prefix + "mlp.gate", x));
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::ranges::greater(),
                    [&](int expert) { return scores[static_cast<size_t>(expert)]; });
  order.resize(kTopK);
  double total = 0.0;
  for (const int expert : order) total += scores[static_cast<size_t>(expert)];
  for (const int expert : order) {
    const Row output = run(fmt::format("{}mlp.experts.{}.", prefix, expert));
    const double weight = scores[static_cast<size_t>(expert)] / total;
    for (size_t i = 0; i < out.size(); ++i) out[i] += weight * output[i];
  }
  return out;
}

std::vector<Row> QwenMtpReference::layer(const std::string& prefix,
                                         std::vector<Row> residuals) const {
  std::vector<KeysValues> heads(kKvHeads);
  for (Row& residual : residuals) {
    const Row input = norm(prefix + "input_layernorm", residual);
    add_keys_values(prefix, input, heads);
    residual = sum(residual, attend(prefix, input, heads));
    const Row x = norm(prefix + "post_attention_layernorm", residual);
    residual = sum(residual, shape_.num_experts > 0 ? experts(prefix, x) : tensors_.mlp(prefix, x));
  }
  return residuals;
}

std::vector<Row> QwenMtpReference::target_states(std::span<const int32_t> tokens) const {
  std::vector<Row> states;
  for (const int32_t token : tokens) {
    states.push_back(tensors_.row("model.embed_tokens", token, shape_.hidden));
  }
  for (int i = 0; i < shape_.num_layers; ++i) {
    states = layer(fmt::format("model.layers.{}.", i), std::move(states));
  }
  for (Row& state : states) state = norm("model.norm", state);
  return states;
}

QwenMtpReference::Output QwenMtpReference::run(std::span<const int32_t> tokens,
                                               std::span<const Row> hidden) const {
  std::vector<Row> inputs;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Row pair = norm("mtp.pre_fc_norm_embedding",
                    tensors_.row("model.embed_tokens", tokens[i], shape_.hidden));
    const Row state = norm("mtp.pre_fc_norm_hidden", hidden[i]);
    pair.insert(pair.end(), state.begin(), state.end());
    inputs.push_back(tensors_.apply("mtp.fc", pair));
  }
  Output output;
  for (const Row& row : layer(kLayer, std::move(inputs))) {
    output.states.push_back(norm("mtp.norm", row));
    output.logits.push_back(tensors_.apply("lm_head", output.states.back()));
  }
  return output;
}

}  // namespace quire::testing

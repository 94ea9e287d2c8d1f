#include "support/eagle3_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace quire::testing {
namespace {

using Row = Eagle3Reference::Row;

// The prefix of a layer's tensors.
std::string layer_prefix(const HeadShape& shape, int layer) {
  if (layer == 0 && !shape.is_speculators) return "midlayer.";
  return fmt::format("layers.{}.", layer);
}

int num_taps(const HeadShape& shape) {
  return shape.taps.empty() ? 3 : static_cast<int>(shape.taps.size());
}

std::string layers_json(const HeadShape& shape) {
  return fmt::format(
      R"({},"hidden_size":{},"num_hidden_layers":{},"vocab_size":{},"attention_bias":{},)"
      R"("mlp_bias":{},"tie_word_embeddings":{},"model_type":"llama","hidden_act":"silu")",
      layer_sizes_json(), shape.hidden, shape.num_layers, shape.vocab, shape.has_bias,
      shape.has_bias, shape.is_tied);
}

}  // namespace

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
  RandomTensors random(seed);
  const int64_t taps_width = int64_t{num_taps(shape)} * shape.target_hidden;
  random.add_matrix("fc", shape.hidden, taps_width);
  if (shape.norm_before_fc) random.add("input_norm.weight", {taps_width}, 1.0F);
  if (shape.has_embeddings) random.add_matrix("embed_tokens", shape.vocab, shape.hidden);
  if (shape.has_lm_head) random.add_matrix("lm_head", shape.draft_vocab, shape.hidden);
  random.add("norm.weight", {shape.hidden}, 1.0F);
  for (int layer = 0; layer < shape.num_layers; ++layer) {
    const std::string prefix = layer_prefix(shape, layer);
    const int64_t width = (layer == 0 ? 2 : 1) * shape.hidden;
    random.add_layer(prefix, shape.hidden, width, shape.has_bias, shape.has_bias);
    if (layer == 0) random.add(prefix + "hidden_norm.weight", {shape.hidden}, 1.0F);
    random.add(prefix + "input_layernorm.weight", {shape.hidden}, 1.0F);
    random.add(prefix + "post_attention_layernorm.weight", {shape.hidden}, 1.0F);
  }
  if (shape.draft_vocab < shape.vocab) {
    add_draft_vocabulary(shape.vocab, shape.draft_vocab, random.tensors);
  }
  return std::move(random.tensors);
}

Eagle3Reference::Eagle3Reference(const HeadShape& shape, const StoredTensors& tensors,
                                 std::vector<float> embeddings, std::vector<float> lm_head)
    : shape_(shape), tensors_(tensors) {
  tensors_.set("embed_tokens.weight", std::move(embeddings));
  tensors_.set("lm_head.weight", std::move(lm_head));
}

std::string Eagle3Reference::layer_name(int layer, std::string_view tensor) const {
  return fmt::format("{}{}", layer_prefix(shape_, layer), tensor);
}

Row Eagle3Reference::combine(const Row& taps) const {
  return tensors_.apply("fc", shape_.norm_before_fc ? tensors_.norm("input_norm", taps) : taps);
}

// Causal attention: row i reads the rows up to i.
std::vector<Row> Eagle3Reference::attend(int layer, const std::vector<Row>& inputs) const {
  const std::string prefix = layer_prefix(shape_, layer);
  ReferenceTensors::KeysValues kv;
  std::vector<Row> outputs;
  for (size_t position = 0; position < inputs.size(); ++position) {
    tensors_.add_keys_values(prefix, inputs[position], position, kv);
    outputs.push_back(tensors_.attend(prefix, inputs[position], position, kv));
  }
  return outputs;
}

Eagle3Reference::Output Eagle3Reference::run(std::span<const int32_t> tokens,
                                             std::span<const Row> hidden) const {
  std::vector<Row> residuals(hidden.begin(), hidden.end());
  for (int layer = 0; layer < shape_.num_layers; ++layer) {
    std::vector<Row> inputs;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (layer > 0) {
        inputs.push_back(tensors_.norm(layer_name(layer, "input_layernorm"), residuals[i]));
        continue;
      }
      Row input = tensors_.norm(layer_name(0, "input_layernorm"),
                                tensors_.row("embed_tokens", tokens[i], shape_.hidden));
      const Row normed = tensors_.norm(layer_name(0, "hidden_norm"), hidden[i]);
      input.insert(input.end(), normed.begin(), normed.end());
      inputs.push_back(std::move(input));
      if (shape_.norm_before_residual) residuals[i] = normed;
    }
    const std::vector<Row> attended = attend(layer, inputs);
    for (size_t i = 0; i < residuals.size(); ++i) {
      residuals[i] = sum(residuals[i], attended[i]);
      const Row normed = tensors_.norm(layer_name(layer, "post_attention_layernorm"), residuals[i]);
      residuals[i] = sum(residuals[i], tensors_.mlp(layer_prefix(shape_, layer), normed));
    }
  }
  Output output;
  for (const Row& residual : residuals) {
    const Row normed = tensors_.norm("norm", residual);
    output.states.push_back(shape_.norm_output ? normed : residual);
    output.logits.push_back(tensors_.apply("lm_head", normed));
  }
  return output;
}

}  // namespace quire::testing

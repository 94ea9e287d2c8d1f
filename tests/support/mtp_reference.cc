#include "support/mtp_reference.h"

#include <fmt/format.h>

#include <utility>

namespace quire::testing {
namespace {

using Row = MtpReference::Row;

const std::string kHead = "model.mtp_layers.0.";

void add_layer(const std::string& prefix, int hidden, RandomTensors& random) {
  random.add_layer(prefix, hidden, hidden, true, false);
  random.tensors.erase(prefix + "self_attn.o_proj.bias");
  random.add(prefix + "input_layernorm.weight", {hidden}, 1.0F);
  random.add(prefix + "post_attention_layernorm.weight", {hidden}, 1.0F);
}

}  // namespace

std::string mimo_config_json(const MimoShape& shape) {
  return fmt::format(
      R"({{{},"architectures":["MiMoForCausalLM"],"model_type":"mimo","hidden_size":{},)"
      R"("num_hidden_layers":{},"vocab_size":{},"num_nextn_predict_layers":{},)"
      R"("attention_bias":true,"tie_word_embeddings":false,"torch_dtype":"float32"}})",
      layer_sizes_json(256), shape.hidden, shape.num_layers, shape.vocab, shape.num_mtp_layers);
}

StoredTensors random_mimo(const MimoShape& shape, uint32_t seed) {
  RandomTensors random(seed);
  random.add_matrix("model.embed_tokens", shape.vocab, shape.hidden);
  random.add_matrix("lm_head", shape.vocab, shape.hidden);
  random.add("model.norm.weight", {shape.hidden}, 1.0F);
  for (int i = 0; i < shape.num_layers; ++i) {
    add_layer(fmt::format("model.layers.{}.", i), shape.hidden, random);
  }
  for (int i = 0; i < shape.num_mtp_layers; ++i) {
    const std::string prefix = fmt::format("model.mtp_layers.{}.", i);
    add_layer(prefix, shape.hidden, random);
    random.add_matrix(prefix + "input_proj", shape.hidden, 2 * shape.hidden);
    for (const char* norm : {"token_layernorm", "hidden_layernorm", "final_layernorm"}) {
      random.add(fmt::format("{}{}.weight", prefix, norm), {shape.hidden}, 1.0F);
    }
  }
  return std::move(random.tensors);
}

std::vector<Row> MtpReference::layer(const std::string& prefix, std::vector<Row> residuals) const {
  ReferenceTensors::KeysValues kv;
  for (size_t position = 0; position < residuals.size(); ++position) {
    Row& residual = residuals[position];
    const Row input = tensors_.norm(prefix + "input_layernorm", residual);
    tensors_.add_keys_values(prefix, input, position, kv);
    residual = sum(residual, tensors_.attend(prefix, input, position, kv));
    const Row normed = tensors_.norm(prefix + "post_attention_layernorm", residual);
    residual = sum(residual, tensors_.mlp(prefix, normed));
  }
  return residuals;
}

std::vector<Row> MtpReference::target_states(std::span<const int32_t> tokens) const {
  std::vector<Row> states;
  for (const int32_t token : tokens) {
    states.push_back(tensors_.row("model.embed_tokens", token, shape_.hidden));
  }
  for (int i = 0; i < shape_.num_layers; ++i) {
    states = layer(fmt::format("model.layers.{}.", i), std::move(states));
  }
  return states;
}

MtpReference::Output MtpReference::run(std::span<const int32_t> tokens,
                                       std::span<const Row> hidden) const {
  std::vector<Row> inputs;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Row pair = tensors_.norm(kHead + "hidden_layernorm", hidden[i]);
    const Row token = tensors_.norm(kHead + "token_layernorm",
                                    tensors_.row("model.embed_tokens", tokens[i], shape_.hidden));
    pair.insert(pair.end(), token.begin(), token.end());
    inputs.push_back(tensors_.apply(kHead + "input_proj", pair));
  }
  Output output;
  for (const Row& row : layer(kHead, std::move(inputs))) {
    output.states.push_back(tensors_.norm(kHead + "final_layernorm", row));
    output.logits.push_back(tensors_.apply("lm_head", output.states.back()));
  }
  return output;
}

}  // namespace quire::testing

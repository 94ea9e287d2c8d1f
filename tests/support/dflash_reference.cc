#include "support/dflash_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace quire::testing {
namespace {

using Row = DFlashReference::Row;

std::string layer_prefix(int layer) {
  return fmt::format("layers.{}.", layer);
}

std::string layers_json(const BlockShape& shape) {
  return fmt::format(
      R"({},"model_type":"qwen3","hidden_act":"silu","hidden_size":{},"num_hidden_layers":{},)"
      R"("vocab_size":{},"attention_bias":{},"tie_word_embeddings":{})",
      layer_sizes_json(), shape.hidden, shape.num_layers, shape.vocab, shape.has_bias,
      shape.is_speculators);
}

std::string speculators_json(const BlockShape& shape, const std::string& sizes) {
  const char* method = shape.is_dspark ? "dspark" : "dflash";
  std::vector<int> entered_layers;
  for (const int id : shape.target_layer_ids) entered_layers.push_back(id + 1);
  return fmt::format(R"({{"architectures":["AnySpeculator"],"speculators_model_type":"{}",{},)"
                     R"("mask_token_id":{},"aux_hidden_state_layer_ids":[{}],"markov_rank":{},)"
                     R"("transformer_layer_config":{{{}}}}})",
                     method, sizes, shape.mask_token_id, fmt::join(entered_layers, ","),
                     shape.markov_rank, layers_json(shape));
}

}  // namespace

std::string block_config_json(const BlockShape& shape) {
  const std::string sizes = fmt::format(
      R"("block_size":{},"num_target_layers":{},"target_hidden_size":{},"draft_vocab_size":{})",
      shape.block_size, shape.num_target_layers, shape.target_hidden, shape.num_draft_ids());
  if (shape.is_speculators) return speculators_json(shape, sizes);
  const std::string common = fmt::format("{},{}", layers_json(shape), sizes);
  const std::string taps = fmt::format(R"("mask_token_id":{},"target_layer_ids":[{}])",
                                       shape.mask_token_id, fmt::join(shape.target_layer_ids, ","));
  if (!shape.is_dspark) {
    return fmt::format(R"({{"architectures":["DFlashDraftModel"],{},"dflash_config":{{{}}}}})",
                       common, taps);
  }
  return fmt::format(R"({{"architectures":["Qwen3DSparkModel"],{},{},"markov_rank":{},)"
                     R"("markov_head_type":"vanilla","enable_confidence_head":true}})",
                     common, taps, shape.markov_rank);
}

StoredTensors random_block_drafter(const BlockShape& shape, uint32_t seed) {
  RandomTensors random(seed);
  const auto add_norm = [&](const std::string& name, int64_t size) {
    random.add(name + ".weight", {size}, 1.0F);
  };
  const auto num_taps = static_cast<int64_t>(shape.target_layer_ids.size());
  random.add_matrix("fc", shape.hidden, num_taps * shape.target_hidden);
  add_norm("hidden_norm", shape.hidden);
  add_norm("norm", shape.hidden);
  for (int layer = 0; layer < shape.num_layers; ++layer) {
    const std::string prefix = layer_prefix(layer);
    random.add_layer(prefix, shape.hidden, shape.hidden, shape.has_bias, false);
    add_norm(prefix + "input_layernorm", shape.hidden);
    add_norm(prefix + "post_attention_layernorm", shape.hidden);
    add_norm(prefix + "self_attn.q_norm", kReferenceHeadDim);
    add_norm(prefix + "self_attn.k_norm", kReferenceHeadDim);
  }
  if (shape.has_embeddings) random.add_matrix("embed_tokens", shape.vocab, shape.hidden);
  if (shape.has_lm_head) random.add_matrix("lm_head", shape.num_draft_ids(), shape.hidden);
  if (shape.markov_rank > 0) {
    random.add_matrix("markov_head.markov_w1", shape.vocab, shape.markov_rank);
    random.add_matrix("markov_head.markov_w2", shape.num_draft_ids(), shape.markov_rank);
  }
  if (shape.is_dspark) random.add_matrix("confidence_head.proj", 1, shape.hidden, true);
  if (shape.num_draft_ids() < shape.vocab) {
    add_draft_vocabulary(shape.vocab, shape.draft_vocab, random.tensors);
  }
  return std::move(random.tensors);
}

DFlashReference::DFlashReference(const BlockShape& shape, const StoredTensors& tensors,
                                 std::vector<float> embeddings, std::vector<float> lm_head)
    : shape_(shape), tensors_(tensors) {
  tensors_.set("embed_tokens.weight", std::move(embeddings));
  tensors_.set("lm_head.weight", std::move(lm_head));
}

Row DFlashReference::combine(const Row& taps) const {
  return tensors_.norm("hidden_norm", tensors_.apply("fc", taps));
}

std::vector<Row> DFlashReference::run(std::span<const Row> context,
                                      std::span<const int32_t> block) const {
  std::vector<Row> residuals;
  for (const int32_t id : block) {
    residuals.push_back(tensors_.row("embed_tokens", id, shape_.hidden));
  }
  for (int layer = 0; layer < shape_.num_layers; ++layer) {
    const std::string prefix = layer_prefix(layer);
    ReferenceTensors::KeysValues kv;
    for (size_t p = 0; p < context.size(); ++p) {
      tensors_.add_keys_values(prefix, context[p], p, kv);
    }
    std::vector<Row> inputs;
    for (size_t i = 0; i < block.size(); ++i) {
      inputs.push_back(tensors_.norm(prefix + "input_layernorm", residuals[i]));
      tensors_.add_keys_values(prefix, inputs[i], context.size() + i, kv);
    }
    for (size_t i = 0; i < block.size(); ++i) {
      Row& residual = residuals[i];
      residual = sum(residual, tensors_.attend(prefix, inputs[i], context.size() + i, kv));
      const Row normed = tensors_.norm(prefix + "post_attention_layernorm", residual);
      residual = sum(residual, tensors_.mlp(prefix, normed));
    }
  }
  std::vector<Row> logits;
  for (const Row& residual : residuals) {
    logits.push_back(tensors_.apply("lm_head", tensors_.norm("norm", residual)));
  }
  return logits;
}

Row DFlashReference::transition(int32_t previous) const {
  return tensors_.apply("markov_head.markov_w2",
                        tensors_.row("markov_head.markov_w1", previous, shape_.markov_rank));
}

}  // namespace quire::testing

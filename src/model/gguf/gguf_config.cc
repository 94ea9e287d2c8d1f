#include "model/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

struct Architecture {
  std::string_view name;          // in the file
  std::string_view architecture;  // in config.json
};

constexpr std::array kArchitectures = {
    Architecture{"llama", "LlamaForCausalLM"},   Architecture{"qwen2", "Qwen2ForCausalLM"},
    Architecture{"qwen3", "Qwen3ForCausalLM"},   Architecture{"gemma2", "Gemma2ForCausalLM"},
    Architecture{"gemma3", "Gemma3ForCausalLM"},
};

// A key of the metadata, without the architecture before it, and its field in config.json.
struct Field {
  std::string_view key;
  std::string_view name;
};

constexpr std::array kFields = {
    Field{"embedding_length", "hidden_size"},
    Field{"feed_forward_length", "intermediate_size"},
    Field{"block_count", "num_hidden_layers"},
    Field{"attention.head_count", "num_attention_heads"},
    Field{"attention.head_count_kv", "num_key_value_heads"},
    Field{"context_length", "max_position_embeddings"},
    Field{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    Field{"rope.freq_base", "rope_theta"},
};

constexpr std::array kGemmaFields = {
    Field{"attention.sliding_window", "sliding_window"},
    Field{"attn_logit_softcapping", "attn_logit_softcapping"},
    Field{"final_logit_softcapping", "final_logit_softcapping"},
    Field{"rope.freq_base_swa", "rope_local_base_freq"},
};

// Writes the fields of one file's config.json; keeps the first error.
class ConfigWriter {
 public:
  ConfigWriter(const GgufModel& gguf, std::string_view architecture)
      : gguf_(gguf), architecture_(architecture) {}

  Result<std::string> write(std::string_view hf_architecture);

 private:
  const GgufValue* find(std::string_view key) const {
    return gguf_.find(fmt::format("{}.{}", architecture_, key));
  }
  std::optional<int64_t> integer(std::string_view key) const {
    const GgufValue* const value = find(key);
    return value == nullptr ? std::nullopt : value->integer();
  }
  void write_field(const Field& field);
  void write_vocab_size();
  void write_rope();
  void write_gemma();
  void write_layer_types();
  void write_special_tokens();
  void write_head_dim();
  void fail(std::string_view key, std::string_view got, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = unimplemented(fmt::format("[gguf] {}: metadata \"{}.{}\"; got {}, expected {}",
                                        gguf_.source(), architecture_, key, got, expected));
  }

  const GgufModel& gguf_;
  std::string_view architecture_;
  JsonWriter json_;
  Status status_;
};

void ConfigWriter::write_field(const Field& field) {
  const GgufValue* const value = find(field.key);
  if (value == nullptr) return;
  json_.key(field.name);
  value->write_json(json_);
}

// The metadata has the size in the list of tokens, which a vocabulary of another model may replace;
// the embedding decides.
void ConfigWriter::write_vocab_size() {
  const GgufTensor* const embedding = gguf_.tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    status_ = invalid_argument(fmt::format(
        "[gguf] {}: tensor \"token_embd.weight\"; got none with 2 dimensions, expected the "
        "embedding of a text model",
        gguf_.source()));
    return;
  }
  json_.field("vocab_size", embedding->shape[0]);
}

// Also refuses what the families' code does not compute: heads that are rotated in part, or whose
// keys and values differ in size.
void ConfigWriter::write_head_dim() {
  const std::optional<int64_t> heads = integer("attention.head_count");
  const std::optional<int64_t> hidden = integer("embedding_length");
  if (!heads || !hidden || *heads < 1) return;  // the parser of config.json reports that
  const int64_t head_dim = integer("attention.key_length").value_or(*hidden / *heads);
  json_.field("head_dim", head_dim);
  for (const std::string_view key : {"attention.value_length", "rope.dimension_count"}) {
    const int64_t got = integer(key).value_or(head_dim);
    if (got != head_dim) fail(key, std::to_string(got), fmt::format("the head's, {}", head_dim));
  }
  const GgufTensor* const divisors = gguf_.tensor("rope_freqs.weight");
  if (divisors != nullptr && divisors->shape != std::vector<int64_t>{head_dim / 2}) {
    fail("rope.dimension_count", "tensor \"rope_freqs.weight\" of another size",
         fmt::format("one number per frequency, {}", head_dim / 2));
  }
  if (integer("expert_count").value_or(0) != 0) {
    fail("expert_count", std::to_string(*integer("expert_count")),
         "0: mixtures of experts are not served");
  }
}

// llama.cpp stores the scaling of Llama 3 as a divisor per frequency in a tensor.
void ConfigWriter::write_rope() {
  const GgufValue* const type_value = find("rope.scaling.type");
  const std::optional<std::string_view> type =
      type_value == nullptr ? std::optional<std::string_view>("none") : type_value->text();
  const GgufTensor* const divisors = gguf_.tensor("rope_freqs.weight");
  if (!type || (*type != "none" && *type != "linear" && *type != "yarn")) {
    return fail("rope.scaling.type", type ? quote_name(*type) : "no text", "none, linear or yarn");
  }
  if (divisors != nullptr) {
    if (*type != "none") {
      return fail("rope.scaling.type", quote_name(*type),
                  "none beside tensor \"rope_freqs.weight\"");
    }
    json_.key("rope_scaling");
    json_.begin_object();
    json_.field("rope_type", "divisors");
    json_.key("divisors");
    json_.begin_array();
    std::vector<float> block(static_cast<size_t>(divisors->type->block_elements));
    const auto block_bytes = static_cast<size_t>(divisors->type->block_bytes);
    for (size_t at = 0; at < divisors->bytes.size(); at += block_bytes) {
      dequantize(*divisors->type, divisors->bytes.data() + at, block.data());
      for (const float divisor : block) json_.value(double{divisor});
    }
    json_.end_array();
    json_.end_object();
  } else if (*type != "none") {
    json_.key("rope_scaling");
    json_.begin_object();
    json_.field("rope_type", *type);
    write_field({"rope.scaling.factor", "factor"});
    write_field({"rope.scaling.original_context_length", "original_max_position_embeddings"});
    write_field({"rope.scaling.yarn_beta_fast", "beta_fast"});
    write_field({"rope.scaling.yarn_beta_slow", "beta_slow"});
    json_.end_object();
  }
}

// The pattern is the number of layers of which the last one has no window, or a flag per layer.
void ConfigWriter::write_layer_types() {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const GgufValue* const value = find(kPattern);
  const auto flags = value == nullptr ? std::nullopt : value->numbers();
  if (!flags) return write_field({kPattern, "sliding_window_pattern"});
  json_.key("layer_types");
  json_.begin_array();
  for (const double flag : *flags) json_.value(flag != 0 ? "sliding_attention" : "full_attention");
  json_.end_array();
}

// llama.cpp knows the scale of the scores by the model's size: that of the largest model of each
// generation is by the hidden size, the others' by the size of a head.
void ConfigWriter::write_gemma() {
  for (const Field& field : kGemmaFields) write_field(field);
  write_layer_types();
  const int64_t largest = architecture_ == "gemma2" ? 46 : 62;
  const std::optional<int64_t> heads = integer("attention.head_count");
  const std::optional<int64_t> hidden = integer("embedding_length");
  const std::optional<int64_t> head_dim = integer("attention.key_length");
  if (integer("block_count") == largest && heads && hidden && *heads > 0) {
    json_.field("query_pre_attn_scalar", *hidden / *heads);
  } else if (head_dim) {
    json_.field("query_pre_attn_scalar", *head_dim);
  }
}

void ConfigWriter::write_special_tokens() {
  const auto token = [this](std::string_view name) -> std::optional<int64_t> {
    const GgufValue* const value = gguf_.find(fmt::format("tokenizer.ggml.{}_token_id", name));
    return value == nullptr ? std::nullopt : value->integer();
  };
  if (const auto bos = token("bos")) json_.field("bos_token_id", *bos);
  std::vector<int64_t> ends;
  for (const std::string_view name : {"eos", "eot", "eom"}) {
    const auto id = token(name);
    if (id && std::ranges::find(ends, *id) == ends.end()) ends.push_back(*id);
  }
  json_.key("eos_token_id");
  json_.begin_array();
  for (const int64_t id : ends) json_.value(id);
  json_.end_array();
}

Result<std::string> ConfigWriter::write(std::string_view hf_architecture) {
  json_.begin_object();
  json_.key("architectures");
  json_.begin_array();
  json_.value(hf_architecture);
  json_.end_array();
  for (const Field& field : kFields) write_field(field);
  write_vocab_size();
  write_head_dim();
  write_rope();
  if (architecture_.starts_with("gemma")) write_gemma();
  json_.field("tie_word_embeddings", gguf_.tensor("output.weight") == nullptr);
  json_.field("attention_bias", gguf_.tensor("blk.0.attn_output.bias") != nullptr);
  json_.field("mlp_bias", gguf_.tensor("blk.0.ffn_down.bias") != nullptr);
  write_special_tokens();
  json_.field("torch_dtype", dtype_name(gguf_weight_dtype(gguf_)));
  json_.end_object();
  QUIRE_RETURN_IF_ERROR(status_);
  return json_.take();
}

}  // namespace

Result<std::string_view> gguf_architecture(const GgufModel& gguf) {
  const GgufValue* const value = gguf.find("general.architecture");
  const std::optional<std::string_view> name = value == nullptr ? std::nullopt : value->text();
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return architecture.name;
    known += known.empty() ? "" : ", ";
    known += architecture.name;
  }
  return unimplemented(
      fmt::format("[gguf] {}: metadata \"general.architecture\"; got {}, expected one of {}",
                  gguf.source(), name ? quote_name(*name) : "nothing", known));
}

DType gguf_weight_dtype(const GgufModel& gguf) {
  std::optional<DType> common;
  for (const GgufTensor* tensor : gguf.tensors()) {
    if (tensor->shape.size() < 2) continue;
    const std::optional<DType> plain = tensor->type->plain;
    if (!plain || (common && *common != *plain)) return DType::kF16;
    common = plain;
  }
  return common.value_or(DType::kF32);
}

Result<std::string> gguf_config_json(const GgufModel& gguf) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name, gguf_architecture(gguf));
  const auto* const found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return ConfigWriter(gguf, name).write(found->architecture);
}

Result<ModelConfig> gguf_model_config(const GgufModel& gguf) {
  QUIRE_ASSIGN_OR_RETURN(const std::string json, gguf_config_json(gguf));
  return parse_model_config(json, gguf.source() + " (metadata)");
}

}  // namespace quire

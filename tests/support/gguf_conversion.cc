#include "support/gguf_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "model/rope.h"
#include "support/gguf_bytes.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

namespace quire::testing {
namespace {

using simdjson::dom::element;

std::string gguf_name(std::string name, bool is_gemma) {
  const std::array<std::pair<std::string, std::string>, 17> parts = {{
      {"model.embed_tokens.", "token_embd."},
      {"model.norm.", "output_norm."},
      {"lm_head.", "output."},
      {"model.layers.", "blk."},
      {"self_attn.q_proj.", "attn_q."},
      {"self_attn.k_proj.", "attn_k."},
      {"self_attn.v_proj.", "attn_v."},
      {"self_attn.o_proj.", "attn_output."},
      {"self_attn.q_norm.", "attn_q_norm."},
      {"self_attn.k_norm.", "attn_k_norm."},
      {"mlp.gate_proj.", "ffn_gate."},
      {"mlp.up_proj.", "ffn_up."},
      {"mlp.down_proj.", "ffn_down."},
      {"input_layernorm.", "attn_norm."},
      {"post_attention_layernorm.", is_gemma ? "post_attention_norm." : "ffn_norm."},
      {"pre_feedforward_layernorm.", "ffn_norm."},
      {"post_feedforward_layernorm.", "post_ffw_norm."},
  }};
  for (const auto& [from, to] : parts) {
    const size_t at = name.find(from);
    if (!from.empty() && at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

std::vector<float> floats_of(const SafetensorsEntry& entry) {
  const size_t width = entry.dtype == "F32" ? 4 : 2;
  std::vector<float> values(entry.bytes.size() / width);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, entry.bytes.data() + i * width, width);
    const auto half = static_cast<uint16_t>(bits);
    values[i] = entry.dtype == "F32"   ? std::bit_cast<float>(bits)
                : entry.dtype == "F16" ? f16_to_f32(half)
                                       : bf16_to_f32(half);
  }
  return values;
}

// Within each head, rows p * (rows / 2) + i become rows 2 * i + p.
void pair_rows(std::vector<float>& values, size_t rows, size_t heads) {
  const std::vector<float> before = values;
  const size_t columns = values.size() / rows;
  const size_t half = rows / heads / 2;
  for (size_t head = 0; head < heads; ++head) {
    for (size_t part = 0; part < 2; ++part) {
      for (size_t i = 0; i < half; ++i) {
        const size_t from = 2 * half * head + part * half + i;
        const size_t to = 2 * half * head + 2 * i + part;
        std::copy_n(before.begin() + static_cast<int64_t>(from * columns), columns,
                    values.begin() + static_cast<int64_t>(to * columns));
      }
    }
  }
}

std::string pack_16_bits(const std::vector<float>& values, uint16_t (*round)(float)) {
  std::string bytes;
  for (const float value : values) bytes += GgufWriter::raw(round(value));
  return bytes;
}

std::string pack_q8_0(const std::vector<float>& values) {
  std::string bytes;
  for (size_t block = 0; block < values.size(); block += 32) {
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[block + i]));
    const uint16_t scale = f32_to_f16(largest / 127);
    bytes += GgufWriter::raw(scale);
    const float step = f16_to_f32(scale);
    for (size_t i = 0; i < 32; ++i) {
      const float steps = step == 0 ? 0 : std::round(values[block + i] / step);
      bytes += static_cast<char>(std::clamp(steps, -127.0F, 127.0F));
    }
  }
  return bytes;
}

std::string pack_q4_0(const std::vector<float>& values) {
  std::string bytes;
  for (size_t block = 0; block < values.size(); block += 32) {
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) {
      if (std::abs(values[block + i]) > std::abs(largest)) largest = values[block + i];
    }
    const uint16_t scale = f32_to_f16(largest / -8);
    bytes += GgufWriter::raw(scale);
    const float step = f16_to_f32(scale);
    const auto steps = [&](size_t i) {
      const float count = step == 0 ? 0 : std::round(values[block + i] / step);
      return static_cast<unsigned>(std::clamp(count, -8.0F, 7.0F) + 8);
    };
    for (size_t i = 0; i < 16; ++i) bytes += static_cast<char>(steps(i) | (steps(i + 16) << 4));
  }
  return bytes;
}

class Converter {
 public:
  Converter(const GgufSource& source, std::string_view architecture, GgufMatrices matrices)
      : source_(source),
        architecture_(architecture),
        matrices_(matrices),
        document_(JsonDocument::parse(source.config_json, "config.json").value()) {}

  std::string convert() {
    writer_.text("general.architecture", architecture_);
    write_config();
    write_rope();
    if (!source_.tokenizer_json.empty()) write_tokenizer();
    const Safetensors tensors = Safetensors::parse(source_.safetensors, "weights").value();
    for (const std::string& name : tensors.names()) write_tensor(name, *tensors.find(name));
    return writer_.file();
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  std::optional<double> number(element object, std::string_view name) const {
    element value;
    double result = 0;
    if (object[name].get(value) != simdjson::SUCCESS || value.get(result) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    return result;
  }
  uint32_t integer(std::string_view name, uint32_t fallback = 0) const {
    return static_cast<uint32_t>(number(document_.root(), name).value_or(fallback));
  }

  void write_config();
  void write_rope();
  void write_tokenizer();
  void write_tensor(const std::string& name, const SafetensorsEntry& entry);

  GgufSource source_;
  std::string_view architecture_;
  GgufMatrices matrices_;
  JsonDocument document_;
  GgufWriter writer_;
};

void Converter::write_config() {
  const std::pair<const char*, const char*> kIntegers[] = {
      {"hidden_size", "embedding_length"},
      {"intermediate_size", "feed_forward_length"},
      {"num_hidden_layers", "block_count"},
      {"num_attention_heads", "attention.head_count"},
      {"num_key_value_heads", "attention.head_count_kv"},
      {"head_dim", "attention.key_length"},
      {"head_dim", "attention.value_length"},
      {"max_position_embeddings", "context_length"},
      {"sliding_window", "attention.sliding_window"},
  };
  for (const auto& [from, to] : kIntegers) {
    if (const auto value = number(document_.root(), from)) {
      writer_.number(key(to), static_cast<uint32_t>(*value));
    }
  }
  const std::pair<const char*, const char*> kNumbers[] = {
      {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
      {"rope_theta", "rope.freq_base"},
      {"rope_local_base_freq", "rope.freq_base_swa"},
      {"attn_logit_softcapping", "attn_logit_softcapping"},
      {"final_logit_softcapping", "final_logit_softcapping"},
  };
  for (const auto& [from, to] : kNumbers) {
    if (const auto value = number(document_.root(), from)) {
      writer_.real(key(to), static_cast<float>(*value));
    }
  }
  simdjson::dom::array layer_types;
  if (document_.root()["layer_types"].get(layer_types) == simdjson::SUCCESS) {
    std::string flags =
        GgufWriter::raw(uint32_t{7}) + GgufWriter::raw(uint64_t{layer_types.size()});
    for (const element type : layer_types) {
      flags += type.get_string().value() == "sliding_attention" ? '\1' : '\0';
    }
    writer_.field(key("attention.sliding_window_pattern"), 9, flags);
  }
  for (const std::string name : {"bos", "eos"}) {
    if (number(document_.root(), name + "_token_id")) {
      writer_.number(fmt::format("tokenizer.ggml.{}_token_id", name), integer(name + "_token_id"));
    }
  }
}

void Converter::write_rope() {
  element scaling;
  std::string_view type;
  if (document_.root()["rope_scaling"].get(scaling) != simdjson::SUCCESS ||
      scaling["rope_type"].get(type) != simdjson::SUCCESS || type == "default") {
    return;
  }
  if (type != "llama3") {
    writer_.text(key("rope.scaling.type"), type);
    writer_.real(key("rope.scaling.factor"), static_cast<float>(*number(scaling, "factor")));
    for (const std::string name : {"beta_fast", "beta_slow"}) {
      const auto value = number(scaling, name);
      if (value) writer_.real(key("rope.scaling.yarn_" + name), static_cast<float>(*value));
    }
    if (const auto original = number(scaling, "original_max_position_embeddings")) {
      writer_.number(key("rope.scaling.original_context_length"), static_cast<uint32_t>(*original));
    }
    return;
  }
  RopeConfig plain;
  plain.theta = *number(document_.root(), "rope_theta");
  RopeConfig scaled = plain;
  scaled.type = RopeType::kLlama3;
  scaled.factor = *number(scaling, "factor");
  scaled.low_freq_factor = *number(scaling, "low_freq_factor");
  scaled.high_freq_factor = *number(scaling, "high_freq_factor");
  scaled.original_max_position_embeddings =
      static_cast<int>(*number(scaling, "original_max_position_embeddings"));
  const int head_dim = static_cast<int>(integer("head_dim"));
  const RopeFrequencies before = rope_frequencies(plain, head_dim, 1, 1);
  const RopeFrequencies after = rope_frequencies(scaled, head_dim, 1, 1);
  std::vector<float> divisors;
  for (size_t i = 0; i < before.inv_freq.size(); ++i) {
    divisors.push_back(static_cast<float>(before.inv_freq[i] / after.inv_freq[i]));
  }
  writer_.floats("rope_freqs.weight", {head_dim / 2}, divisors);
}

void Converter::write_tokenizer() {
  const JsonDocument json = JsonDocument::parse(source_.tokenizer_json, "tokenizer.json").value();
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  const auto add = [&](std::string_view text, int64_t id, int32_t type) {
    const auto at = static_cast<size_t>(id);
    if (at >= tokens.size()) {
      tokens.resize(at + 1);
      types.resize(at + 1, 5);
    }
    tokens[at] = text;
    types[at] = type;
  };
  const simdjson::dom::object vocab = json.root()["model"]["vocab"].get_object().value();
  const simdjson::dom::array added = json.root()["added_tokens"].get_array().value();
  const simdjson::dom::array pairs = json.root()["model"]["merges"].get_array().value();
  for (const auto& [text, id] : vocab) {
    add(text, id.get_int64().value(), 1);
  }
  for (const element token : added) {
    add(token["content"].get_string().value(), token["id"].get_int64().value(),
        token["special"].get_bool().value() ? 3 : 4);
  }
  std::vector<std::string> merges;
  for (const element merge : pairs) {
    if (merge.is_string()) {
      merges.emplace_back(merge.get_string().value());
    } else {
      merges.push_back(
          fmt::format("{} {}", merge.at(0).get_string().value(), merge.at(1).get_string().value()));
    }
  }
  writer_.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
  writer_.texts("tokenizer.ggml.tokens", tokens).texts("tokenizer.ggml.merges", merges);
  writer_.numbers("tokenizer.ggml.token_type", types);
  writer_.flag("tokenizer.ggml.add_bos_token", true);
  if (!source_.chat_template.empty()) {
    writer_.text("tokenizer.chat_template", source_.chat_template);
  }
}

void Converter::write_tensor(const std::string& name, const SafetensorsEntry& entry) {
  const bool is_gemma = architecture_.starts_with("gemma");
  std::vector<float> values = floats_of(entry);
  const auto rows = static_cast<size_t>(entry.shape[0]);
  const uint32_t heads = integer("num_attention_heads");
  if (architecture_ == "llama" && name.find("q_proj") != std::string::npos) {
    pair_rows(values, rows, heads);
  }
  if (architecture_ == "llama" && name.find("k_proj") != std::string::npos) {
    pair_rows(values, rows, integer("num_key_value_heads", heads));
  }
  if (is_gemma && name.ends_with("norm.weight")) {
    for (float& value : values) value += 1;
  }
  const std::string to = gguf_name(name, is_gemma);
  GgufMatrices matrices = matrices_;
  if (matrices == GgufMatrices::kAsStored) {
    matrices = entry.dtype == "F16" ? GgufMatrices::kF16 : GgufMatrices::kF32;
    if (entry.dtype == "BF16" && entry.shape.size() > 1) {
      writer_.tensor(to, entry.shape, 30, pack_16_bits(values, f32_to_bf16));
      return;
    }
  }
  if (entry.shape.size() == 1 || matrices == GgufMatrices::kF32) {
    writer_.floats(to, entry.shape, values);
  } else if (matrices == GgufMatrices::kF16) {
    writer_.tensor(to, entry.shape, 1, pack_16_bits(values, f32_to_f16));
  } else if (matrices == GgufMatrices::kQ8_0) {
    writer_.tensor(to, entry.shape, 8, pack_q8_0(values));
  } else {
    writer_.tensor(to, entry.shape, 2, pack_q4_0(values));
  }
}

}  // namespace

std::string convert_to_gguf(const GgufSource& source, std::string_view architecture,
                            GgufMatrices matrices) {
  return Converter(source, architecture, matrices).convert();
}

}  // namespace quire::testing

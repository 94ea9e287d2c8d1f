#include "support/gguf_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "model/rope.h"
#include "support/gguf_bytes.h"
#include "support/gguf_deltas.h"
#include "support/gguf_quantization.h"
#include "support/gguf_rows.h"
#include "support/source_models.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

namespace quire::testing {
namespace {

using simdjson::dom::element;

std::string gguf_name(std::string name, bool names_norm_by_attention) {
  const std::pair<std::string, std::string> parts[] = {
      {"model.embed_tokens.", "token_embd."},
      {"model.norm.", "output_norm."},
      {"lm_head.", "output."},
      {"model.layers.", "blk."},
      {"self_attn.q_proj.", "attn_q."},
      {"self_attn.k_proj.", "attn_k."},
      {"self_attn.v_proj.", "attn_v."},
      {"self_attn.o_proj.", "attn_output."},
      {"self_attn.sinks", "attn_sinks.weight"},
      {"self_attn.q_norm.", "attn_q_norm."},
      {"self_attn.k_norm.", "attn_k_norm."},
      {"self_attn.q_a_proj.", "attn_q_a."},
      {"self_attn.q_a_layernorm.", "attn_q_a_norm."},
      {"self_attn.q_b_proj.", "attn_q_b."},
      {"self_attn.kv_a_proj_with_mqa.", "attn_kv_a_mqa."},
      {"self_attn.kv_a_layernorm.", "attn_kv_a_norm."},
      {"self_attn.kv_b_proj.", "attn_kv_b."},
      {"mlp.gate_proj.", "ffn_gate."},
      {"mlp.up_proj.", "ffn_up."},
      {"mlp.down_proj.", "ffn_down."},
      {"mlp.shared_experts.gate_proj.", "ffn_gate_shexp."},
      {"mlp.shared_experts.up_proj.", "ffn_up_shexp."},
      {"mlp.shared_experts.down_proj.", "ffn_down_shexp."},
      {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
      {"mlp.shared_expert_gate.", "ffn_gate_inp_shexp."},
      {"mlp.gate.", "ffn_gate_inp."},
      {"mlp.experts.gate_proj.", "ffn_gate_exps."},
      {"mlp.experts.up_proj.", "ffn_up_exps."},
      {"mlp.experts.down_proj.", "ffn_down_exps."},
      {"block_sparse_moe.gate.", "ffn_gate_inp."},
      {"block_sparse_moe.experts.w1.", "ffn_gate_exps."},
      {"block_sparse_moe.experts.w3.", "ffn_up_exps."},
      {"block_sparse_moe.experts.w2.", "ffn_down_exps."},
      {"input_layernorm.", "attn_norm."},
      {"post_attention_layernorm.", names_norm_by_attention ? "post_attention_norm." : "ffn_norm."},
      {"pre_feedforward_layernorm.", "ffn_norm."},
      {"post_feedforward_layernorm.", "post_ffw_norm."},
  };
  for (const auto& [from, to] : parts) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

// A tensor, in F32, on its way to the file.
struct Floats {
  std::string name;   // in the file
  std::string dtype;  // in the checkpoint
  std::vector<int64_t> shape;
  std::vector<float> values;
};

class Converter {
 public:
  Converter(const GgufSource& source, std::string_view architecture, std::string_view matrices)
      : source_(source),
        architecture_(architecture),
        matrices_(matrices),
        document_(JsonDocument::parse(source_.config_json, "config.json").value()),
        tensors_(Safetensors::parse(source_.safetensors, "weights").value()) {}

  std::string convert() {
    writer_.text("general.architecture", architecture_);
    write_config();
    write_rope();
    if (source_.pooling) writer_.number(key("pooling_type"), *source_.pooling);
    if (!source_.tokenizer_json.empty()) write_tokenizer();
    for (const std::string& name : tensors_.names()) {
      // Embedding models are saved without the head and the "model." before all names.
      const bool is_whole = name.starts_with("model.") || name.starts_with("lm_head.");
      add_tensor(is_whole ? name : "model." + name, *tensors_.find(name));
    }
    for (const auto& [name, experts] : stacks_) write_stack(name, experts);
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

  bool is_deepseek() const { return architecture_ == "deepseek2"; }
  bool is_gpt_oss() const { return architecture_ == "gpt-oss"; }
  bool has_deltas() const { return architecture_.starts_with("qwen35"); }

  void write_config();
  void write_experts();
  void write_mla();
  void write_deltas();
  void write_rope();
  void write_tokenizer();
  void add_tensor(const std::string& name, const SafetensorsEntry& entry);
  void add_delta(const std::string& layer, std::string name, Floats tensor);
  void add_expert(const std::string& name, size_t number_at, Floats tensor);
  void write_stack(const std::string& name, const std::map<int, Floats>& experts);
  void write_latent(const Floats& tensor);
  // The rows of a tensor in which the checkpoint's `parts`, whose names follow `prefix`, are fused.
  Floats fuse(const std::string& prefix, const std::vector<std::string>& parts,
              int64_t num_groups) const;
  void write_tensor(const Floats& tensor);

  GgufSource source_;
  std::string_view architecture_;
  std::string_view matrices_;
  JsonDocument document_;
  Safetensors tensors_;
  GgufWriter writer_;
  // The matrices of experts, by the file's name of their stack and by expert.
  std::map<std::string, std::map<int, Floats>> stacks_;
};

void Converter::write_config() {
  const std::pair<const char*, const char*> kIntegers[] = {
      {"hidden_size", "embedding_length"},
      {"intermediate_size", "feed_forward_length"},
      {"num_hidden_layers", "block_count"},
      {"num_attention_heads", "attention.head_count"},
      {"max_position_embeddings", "context_length"},
      {"sliding_window", "attention.sliding_window"},
  };
  for (const auto& [from, to] : kIntegers) {
    if (const auto value = number(document_.root(), from)) {
      writer_.number(key(to), static_cast<uint32_t>(*value));
    }
  }
  if (is_deepseek()) {
    write_mla();
  } else {
    for (const auto* const name : {"attention.key_length", "attention.value_length"}) {
      if (number(document_.root(), "head_dim")) writer_.number(key(name), integer("head_dim"));
    }
    if (number(document_.root(), "num_key_value_heads")) {
      writer_.number(key("attention.head_count_kv"), integer("num_key_value_heads"));
    }
  }
  write_experts();
  if (has_deltas()) write_deltas();
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

void Converter::write_experts() {
  for (const auto* const name : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    if (number(document_.root(), name)) writer_.number(key("expert_count"), integer(name));
  }
  const std::pair<const char*, const char*> kIntegers[] = {
      {"num_experts_per_tok", "expert_used_count"},
      {"moe_intermediate_size", "expert_feed_forward_length"},
      {"n_shared_experts", "expert_shared_count"},
      {"first_k_dense_replace", "leading_dense_block_count"},
      {"n_group", "expert_group_count"},
      {"topk_group", "expert_group_used_count"},
  };
  for (const auto& [from, to] : kIntegers) {
    if (number(document_.root(), from)) writer_.number(key(to), integer(from));
  }
  if (is_gpt_oss()) writer_.number(key("expert_feed_forward_length"), integer("intermediate_size"));
  if (const auto scale = number(document_.root(), "routed_scaling_factor")) {
    writer_.real(key("expert_weights_scale"), static_cast<float>(*scale));
  }
  bool is_set = false;
  if (document_.root()["norm_topk_prob"].get(is_set) == simdjson::SUCCESS && is_set) {
    writer_.flag(key("expert_weights_norm"), true);
  }
  std::string_view scores;
  if (document_.root()["scoring_func"].get(scores) == simdjson::SUCCESS) {
    writer_.number(key("expert_gating_func"), scores == "sigmoid" ? 2 : 1);
  }
}

void Converter::write_mla() {
  const uint32_t rope_dim = integer("qk_rope_head_dim");
  const uint32_t latent_dim = integer("kv_lora_rank");
  const uint32_t key_dim = integer("qk_nope_head_dim") + rope_dim;
  if (integer("q_lora_rank") > 0) {
    writer_.number(key("attention.q_lora_rank"), integer("q_lora_rank"));
  }
  writer_.number(key("attention.kv_lora_rank"), latent_dim);
  writer_.number(key("rope.dimension_count"), rope_dim);
  if (source_.joins_latent) {
    writer_.number(key("attention.head_count_kv"), integer("num_attention_heads"));
    writer_.number(key("attention.key_length"), key_dim);
    writer_.number(key("attention.value_length"), integer("v_head_dim"));
    return;
  }
  writer_.number(key("attention.head_count_kv"), 1);
  writer_.number(key("attention.key_length"), latent_dim + rope_dim);
  writer_.number(key("attention.value_length"), latent_dim);
  writer_.number(key("attention.key_length_mla"), key_dim);
  writer_.number(key("attention.value_length_mla"), integer("v_head_dim"));
}

void Converter::write_deltas() {
  const std::pair<const char*, const char*> kIntegers[] = {
      {"linear_conv_kernel_dim", "ssm.conv_kernel"},
      {"linear_key_head_dim", "ssm.state_size"},
      {"linear_num_key_heads", "ssm.group_count"},
      {"linear_num_value_heads", "ssm.time_step_rank"},
      {"full_attention_interval", "full_attention_interval"},
  };
  for (const auto& [from, to] : kIntegers) writer_.number(key(to), integer(from));
  writer_.number(key("ssm.inner_size"),
                 integer("linear_num_value_heads") * integer("linear_value_head_dim"));
  writer_.number(key("rope.dimension_count"), integer("head_dim") / 4);
}

Floats Converter::fuse(const std::string& prefix, const std::vector<std::string>& parts,
                       int64_t num_groups) const {
  Floats fused;
  std::vector<std::vector<float>> values;
  for (const std::string& part : parts) {
    const SafetensorsEntry& entry = *tensors_.find(prefix + part);
    fused.dtype = entry.dtype;
    fused.shape = {(fused.shape.empty() ? 0 : fused.shape[0]) + entry.shape[0], entry.shape[1]};
    values.push_back(floats_of(entry));
  }
  fused.values = rows_by_group({values.begin(), values.end()}, num_groups);
  return fused;
}

void Converter::write_rope() {
  element scaling;
  std::string_view type;
  if (document_.root()["rope_scaling"].get(scaling) != simdjson::SUCCESS ||
      (scaling["rope_type"].get(type) != simdjson::SUCCESS &&
       scaling["type"].get(type) != simdjson::SUCCESS) ||
      type == "default") {
    return;
  }
  if (type != "llama3") {
    writer_.text(key("rope.scaling.type"), type);
    writer_.real(key("rope.scaling.factor"), static_cast<float>(*number(scaling, "factor")));
    for (const std::string name : {"beta_fast", "beta_slow"}) {
      const auto value = number(scaling, name);
      if (value) writer_.real(key("rope.scaling.yarn_" + name), static_cast<float>(*value));
    }
    if (const auto magnitude = number(scaling, "mscale_all_dim")) {
      writer_.real(key("rope.scaling.yarn_log_multiplier"), static_cast<float>(0.1 * *magnitude));
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

void Converter::add_tensor(const std::string& name, const SafetensorsEntry& entry) {
  const bool is_gemma = architecture_.starts_with("gemma");
  Floats tensor = {.name = {}, .dtype = entry.dtype, .shape = entry.shape, .values = {}};
  tensor.values = floats_of(entry);
  const size_t net = name.find("linear_attn.");
  if (net != std::string::npos)
    return add_delta(name.substr(0, net), name.substr(net + 12), tensor);
  if (has_deltas() && name.ends_with("self_attn.gate_proj.weight")) return;  // beside the queries
  if (has_deltas() && name.ends_with("self_attn.q_proj.weight")) {
    tensor = fuse(name.substr(0, name.rfind("q_proj")), {"q_proj.weight", "gate_proj.weight"},
                  integer("num_attention_heads"));
  }
  const size_t experts = name.find(".experts.");
  if (experts != std::string::npos) return add_expert(name, experts + 9, std::move(tensor));
  const int64_t rows = entry.shape[0];
  const uint32_t heads = integer("num_attention_heads");
  if (architecture_ == "llama" && name.find("q_proj") != std::string::npos) {
    pair_rows(tensor.values, rows, heads);
  }
  if (architecture_ == "llama" && name.find("k_proj") != std::string::npos) {
    pair_rows(tensor.values, rows, integer("num_key_value_heads", heads));
  }
  if ((is_gemma || has_deltas()) && name.ends_with("norm.weight")) {
    for (float& value : tensor.values) value += 1;
  }
  tensor.name = gguf_name(name, is_gemma || is_gpt_oss() || has_deltas());
  const bool is_latent = name.ends_with("kv_b_proj.weight");
  is_latent && !source_.joins_latent ? write_latent(tensor) : write_tensor(tensor);
}

// `layer` and `name` are before and after "linear_attn.".
void Converter::add_delta(const std::string& layer, std::string name, Floats tensor) {
  if (name == "q_proj.weight" || name == "k_proj.weight") return;  // beside the values
  if (name == "v_proj.weight") {
    name = "in_proj_qkv.weight";
    tensor = fuse(layer + "linear_attn.", {"q_proj.weight", "k_proj.weight", "v_proj.weight"}, 1);
  }
  const DeltaSizes sizes = {integer("linear_num_key_heads"), integer("linear_num_value_heads"),
                            integer("linear_key_head_dim"), integer("linear_value_head_dim"), true};
  const std::string in_file = convert_delta(name, sizes, tensor.shape, tensor.values);
  tensor.name = gguf_name(layer, false) + in_file;
  write_tensor(tensor);
}

// The number of the expert begins at `number_at` of its name.
void Converter::add_expert(const std::string& name, size_t number_at, Floats tensor) {
  const size_t end = name.find('.', number_at);
  const std::string stack = gguf_name(name.substr(0, number_at) + name.substr(end + 1), false);
  stacks_[stack][std::stoi(name.substr(number_at, end - number_at))] = std::move(tensor);
}

void Converter::write_stack(const std::string& name, const std::map<int, Floats>& experts) {
  const size_t gate = name.find("ffn_gate_exps");
  const size_t up = name.find("ffn_up_exps");
  if (source_.fuses_gate_and_up && up != std::string::npos) return;  // written with the gates
  Floats stack = experts.at(0);
  stack.name = name;
  stack.values.clear();
  const std::map<int, Floats>* ups = nullptr;
  if (source_.fuses_gate_and_up && gate != std::string::npos) {
    ups = &stacks_.at(std::string(name).replace(gate, 13, "ffn_up_exps"));
    stack.name.replace(gate, 13, "ffn_gate_up_exps");
    stack.shape[0] *= 2;
  }
  for (const auto& [expert, tensor] : experts) {
    stack.values.insert(stack.values.end(), tensor.values.begin(), tensor.values.end());
    if (ups == nullptr) continue;
    const std::vector<float>& more = ups->at(expert).values;
    stack.values.insert(stack.values.end(), more.begin(), more.end());
  }
  stack.shape.insert(stack.shape.begin(), static_cast<int64_t>(experts.size()));
  write_tensor(stack);
}

// The rows of keys become a matrix by head, transposed, and those of values another.
void Converter::write_latent(const Floats& tensor) {
  const int64_t heads = integer("num_attention_heads");
  const int64_t key_rows = integer("qk_nope_head_dim");
  const int64_t value_rows = integer("v_head_dim");
  const int64_t columns = tensor.shape[1];
  LatentParts parts = split_latent(tensor.values, heads, key_rows, value_rows, columns);
  const std::string layer = tensor.name.substr(0, tensor.name.rfind("attn_kv_b"));
  const Floats keys = {
      layer + "attn_k_b.weight", tensor.dtype, {heads, columns, key_rows}, std::move(parts.keys)};
  const Floats values = {layer + "attn_v_b.weight",
                         tensor.dtype,
                         {heads, value_rows, columns},
                         std::move(parts.values)};
  write_tensor(keys);
  write_tensor(values);
}

// The type of a matrix with rows of this many elements; null if none of its blocks fit. A type
// whose blocks of 256 do not fit the rows is replaced by one with blocks of 32, as in llama.cpp's
// tools.
const GgufBlockType* type_of_rows(std::string_view matrices, int64_t columns) {
  static const std::map<std::string_view, std::string_view> smaller = {
      {"Q2_K", "IQ4_NL"}, {"Q3_K", "IQ4_NL"}, {"IQ4_XS", "IQ4_NL"},
      {"Q4_K", "Q4_0"},   {"Q5_K", "Q5_1"},   {"Q6_K", "Q8_0"}};
  const auto fits = [&](std::string_view type) {
    return columns % gguf_type(type).block_elements == 0;
  };
  if (fits(matrices)) return &gguf_type(matrices);
  const auto found = smaller.find(matrices);
  return found != smaller.end() && fits(found->second) ? &gguf_type(found->second) : nullptr;
}

void Converter::write_tensor(const Floats& tensor) {
  const bool is_matrix = tensor.shape.size() > 1 && !tensor.name.ends_with(".bias");
  const bool keeps_f32 = tensor.name.find("ffn_gate_inp") != std::string::npos ||
                         tensor.name.find("ssm_conv1d") != std::string::npos;
  const bool is_f16 = std::ranges::any_of(source_.f16, [&](const std::string& part) {
    return tensor.name.find(part) != std::string::npos;
  });
  const std::string_view matrices =
      matrices_ == kAsStored ? std::string_view(tensor.dtype) : matrices_;
  const GgufBlockType* type = &gguf_type("F16");
  if (!is_matrix || keeps_f32) {
    type = &gguf_type("F32");
  } else if (!is_f16) {
    const GgufBlockType* const fitting = type_of_rows(matrices, tensor.shape.back());
    if (fitting != nullptr) type = fitting;
  }
  writer_.tensor(tensor.name, tensor.shape, type->id, quantize(*type, tensor.values));
}

}  // namespace

std::string convert_to_gguf(const GgufSource& source, std::string_view architecture,
                            std::string_view matrices) {
  return Converter(source, architecture, matrices).convert();
}

}  // namespace quire::testing

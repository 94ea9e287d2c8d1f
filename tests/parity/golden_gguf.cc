#include "parity/golden_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>

#include "base/json.h"
#include "support/gguf_deltas.h"
#include "support/gguf_quantization.h"
#include "support/gguf_rows.h"

namespace quire::testing {
namespace {

namespace dom = simdjson::dom;
using Names = std::vector<std::pair<std::string, std::string>>;

const Names kNormsOfOutputs = {{"post_attention_layernorm", "post_attention_norm"},
                               {"post_feedforward_layernorm", "post_ffw_norm"}};
const Names kNormNamedByAttention = {{"post_attention_layernorm", "post_attention_norm"}};

const Names kGptOssNames = {{"post_attention_layernorm", "post_attention_norm"},
                            {"self_attn.sinks", "attn_sinks.weight"}};

// The first pair that occurs in a name applies.
const Names kNames = {{"self_attn.q_proj", "attn_q"},
                      {"self_attn.k_proj", "attn_k"},
                      {"self_attn.v_proj", "attn_v"},
                      {"self_attn.qkv_proj", "attn_qkv"},
                      {"self_attn.o_proj", "attn_output"},
                      {"self_attn.g_proj", "attn_gate"},
                      {"self_attn.gate_proj", "attn_gate"},
                      {"self_attn.attention_sink_bias", "attn_sinks.weight"},
                      {"self_attn.q_norm", "attn_q_norm"},
                      {"self_attn.k_norm", "attn_k_norm"},
                      {"self_attn.query_layernorm", "attn_q_norm"},
                      {"self_attn.key_layernorm", "attn_k_norm"},
                      {"self_attn.q_a_proj", "attn_q_a"},
                      {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                      {"self_attn.q_b_proj", "attn_q_b"},
                      {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                      {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                      {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                      {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
                      {"mlp.expert_bias", "exp_probs_b"},
                      {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"},
                      {"mlp.experts.e_score_correction_bias", "exp_probs_b.bias"},
                      {"mlp.experts.gate_proj", "ffn_gate_exps"},
                      {"mlp.experts.up_proj", "ffn_up_exps"},
                      {"mlp.experts.down_proj", "ffn_down_exps"},
                      {"block_sparse_moe.experts.w1", "ffn_gate_exps"},
                      {"block_sparse_moe.experts.w3", "ffn_up_exps"},
                      {"block_sparse_moe.experts.w2", "ffn_down_exps"},
                      {"mlp.router.gate.", "ffn_gate_inp."},
                      {"mlp.router.", "ffn_gate_inp."},
                      {"block_sparse_moe.gate.", "ffn_gate_inp."},
                      {"mlp.gate.", "ffn_gate_inp."},
                      {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
                      {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
                      {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
                      {"mlp.shared_mlp.down_proj", "ffn_down_shexp"},
                      {"mlp.gate_up_proj", "ffn_up"},
                      {"mlp.gate_proj", "ffn_gate"},
                      {"mlp.up_proj", "ffn_up"},
                      {"mlp.down_proj", "ffn_down"},
                      {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                      {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                      {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                      {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                      {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                      {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                      {"input_layernorm", "attn_norm"},
                      {"post_attention_layernorm", "ffn_norm"},
                      {"eh_proj", "nextn.eh_proj"},
                      {"enorm", "nextn.enorm"},
                      {"model.embed_tokens", "token_embd"},
                      {"model.norm", "output_norm"},
                      {"lm_head", "output"}};

void replace_first(const Names& names, std::string& name) {
  for (const auto& [from, to] : names) {
    const size_t at = name.find(from);
    if (at == std::string::npos) continue;
    name.replace(at, from.size(), to);
    return;
  }
}

// llama.cpp's divisors of Llama 3's frequencies.
std::vector<float> llama3_divisors(double theta, int dim, double factor, double low, double high,
                                   double length) {
  std::vector<float> divisors;
  for (int i = 0; i < dim; i += 2) {
    const double wave = 2.0 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / dim);
    const double smooth = (length / wave - low) / (high - low);
    double divisor = 1.0 / ((1.0 - smooth) / factor + smooth);
    if (wave < length / high) divisor = 1.0;
    if (wave > length / low) divisor = factor;
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

void write_flags(std::string_view key, const std::vector<bool>& flags, GgufWriter& writer) {
  std::string bytes = GgufWriter::raw(uint32_t{7}) + GgufWriter::raw(uint64_t{flags.size()});
  for (const bool flag : flags) bytes += flag ? '\1' : '\0';
  writer.field(key, 9, bytes);
}

void write_yarn(GgufWriter& writer, const std::string& prefix, float factor, uint32_t length,
                float beta_slow) {
  writer.text(prefix + "rope.scaling.type", "yarn")
      .real(prefix + "rope.scaling.factor", factor)
      .number(prefix + "rope.scaling.original_context_length", length)
      .real(prefix + "rope.scaling.yarn_beta_fast", 0.5F)
      .real(prefix + "rope.scaling.yarn_beta_slow", beta_slow);
}

void write_longrope(GgufWriter& writer, const std::string& prefix, uint32_t window,
                    uint32_t length) {
  const double ratio = 256.0 / length;
  writer.number(prefix + "rope.dimension_count", 12)
      .number(prefix + "attention.sliding_window", window)
      .number(prefix + "rope.scaling.original_context_length", length)
      .real(prefix + "rope.scaling.attn_factor",
            static_cast<float>(std::sqrt(1.0 + std::log(ratio) / std::log(length))))
      .floats("rope_factors_short.weight", {6}, {1.0F, 1.1F, 1.3F, 1.6F, 2.0F, 2.5F})
      .floats("rope_factors_long.weight", {6}, {1.0F, 1.5F, 3.0F, 7.0F, 15.0F, 30.0F});
}

void write_sections(GgufWriter& writer, const std::string& prefix) {
  writer.numbers(prefix + "rope.dimension_sections", std::vector<int32_t>{3, 3, 2, 0});
}

struct Routing {
  uint32_t num_experts;
  uint32_t top_k;
  float scale = 1.0F;
  uint32_t num_groups = 1;
  uint32_t top_groups = 1;
};

void write_sigmoid_experts(GgufWriter& writer, const std::string& prefix, const Routing& routing) {
  writer.number(prefix + "expert_count", routing.num_experts)
      .number(prefix + "expert_used_count", routing.top_k)
      .number(prefix + "expert_feed_forward_length", 12)
      .number(prefix + "expert_gating_func", 2)
      .number(prefix + "expert_group_count", routing.num_groups)
      .number(prefix + "expert_group_used_count", routing.top_groups)
      .real(prefix + "expert_weights_scale", routing.scale)
      .flag(prefix + "expert_weights_norm", true);
}

void write_glm4_moe(GgufWriter& writer, const std::string& prefix, const Routing& routing) {
  write_sigmoid_experts(writer, prefix, routing);
  writer.number(prefix + "expert_shared_count", 1)
      .number(prefix + "leading_dense_block_count", 1)
      .number(prefix + "rope.dimension_count", 8);
}

// The file does not state that YaRN's ends are not rounded, nor the layers with windows.
void write_gpt_oss(GgufWriter& writer, const std::string& prefix, uint32_t width) {
  writer.number(prefix + "expert_count", 4)
      .number(prefix + "expert_used_count", 2)
      .number(prefix + "expert_feed_forward_length", width)
      .number(prefix + "attention.sliding_window", 8)
      .text(prefix + "rope.scaling.type", "yarn")
      .real(prefix + "rope.scaling.factor", 8.0F)
      .number(prefix + "rope.scaling.original_context_length", 32)
      .real(prefix + "rope.scaling.yarn_beta_fast", 4.0F)
      .real(prefix + "rope.scaling.yarn_beta_slow", 1.0F);
}

// One tensor on its way to the file.
struct Floats {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

class Converter {
 public:
  Converter(const GoldenGguf& gguf, const GoldenFamily& family, std::string_view matrices)
      : gguf_(gguf),
        family_(family),
        type_(matrices.empty() ? nullptr : &gguf_type(matrices)),
        document_(JsonDocument::parse(family.configs.at("published"), "config.json").value()) {}

  std::string convert() {
    writer_.text("general.architecture", gguf_.architecture);
    write_sizes();
    if (gguf_.write) gguf_.write(writer_, prefix());
    for (const auto& entry : family_.tensors) add(entry.first, entry.second);
    for (const auto& [name, experts] : stacks_) {
      Floats stack = experts.begin()->second;
      stack.values.clear();
      stack.shape.insert(stack.shape.begin(), static_cast<int64_t>(experts.size()));
      for (const auto& expert : experts) {
        const std::vector<float>& values = expert.second.values;
        stack.values.insert(stack.values.end(), values.begin(), values.end());
      }
      write(name, stack.shape, stack.values);
    }
    return writer_.file();
  }

 private:
  std::string prefix() const { return gguf_.architecture + "."; }

  // A field of the decoder's configuration.
  std::optional<double> number(std::string_view name) const {
    dom::element decoder = document_.root();
    dom::element text;
    if (decoder["text_config"].get(text) == simdjson::SUCCESS) decoder = text;
    double value = 0.0;
    if (decoder[name].get(value) != simdjson::SUCCESS &&
        decoder["rope_parameters"][name].get(value) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    return value;
  }
  int64_t integer(std::string_view name) const {
    return static_cast<int64_t>(number(name).value());
  }

  void write_sizes() {
    const char* const width = gguf_.has_own_width               ? "none"
                              : number("intermediate_size_mlp") ? "intermediate_size_mlp"
                                                                : "intermediate_size";
    const char* const heads = gguf_.has_layer_heads ? "none" : "num_attention_heads";
    const char* const head_dim = gguf_.has_own_head_dim ? "none" : "head_dim";
    const char* const values = number("head_dim") && number("v_head_dim") ? "v_head_dim" : head_dim;
    const std::pair<const char*, const char*> kIntegers[] = {
        {"hidden_size", "embedding_length"}, {width, "feed_forward_length"},
        {heads, "attention.head_count"},     {"max_position_embeddings", "context_length"},
        {head_dim, "attention.key_length"},  {values, "attention.value_length"},
    };
    for (const auto& [from, to] : kIntegers) {
      if (number(from)) writer_.number(prefix() + to, static_cast<uint32_t>(integer(from)));
    }
    const bool is_latent = number("kv_lora_rank").has_value();
    if (!gguf_.has_layer_kv_heads) {
      writer_.number(prefix() + "attention.head_count_kv",
                     is_latent ? 1 : static_cast<uint32_t>(integer("num_key_value_heads")));
    }
    writer_.number(prefix() + "block_count",
                   static_cast<uint32_t>(integer("num_hidden_layers") + gguf_.num_mtp_layers));
    if (gguf_.num_mtp_layers > 0) {
      writer_.number(prefix() + "nextn_predict_layers",
                     static_cast<uint32_t>(gguf_.num_mtp_layers));
    }
    writer_.real(prefix() + "attention.layer_norm_rms_epsilon",
                 static_cast<float>(number("rms_norm_eps").value()));
    const double theta = gguf_.theta > 0.0 ? gguf_.theta : number("rope_theta").value();
    writer_.real(prefix() + "rope.freq_base", static_cast<float>(theta));
  }

  void add(std::string name, const GoldenTensor& golden) {
    for (const char* const part : {"visual.", "vision_", "multi_modal_projector."}) {
      if (name.find(part) != std::string::npos) return;
    }
    if (name.ends_with("_scales")) return;  // written with the blocks
    if (name.ends_with("_blocks")) return write_mxfp4(name, golden);
    GeneratedWeights weights(family_);
    const TensorView view = weights.tensor(name, Shape(golden.shape)).value();
    const auto count = static_cast<size_t>(view.shape.num_elements());
    Floats tensor = {golden.shape, {view.as<float>(), view.as<float>() + count}};
    if (name.ends_with("correction_bias")) tensor.shape = {view.shape.num_elements()};
    if (name.ends_with("conv.conv.weight")) tensor.shape.erase(tensor.shape.begin() + 1);
    replace_first({{"language_model.", ""}}, name);
    replace_first({{"feed_forward.", "mlp."}}, name);
    const bool is_shifted =
        gguf_.shifts_all_norms
            ? name.ends_with("norm.weight") && !name.ends_with("attn.norm.weight")
            : gguf_.shifts_norms && name.ends_with("layernorm.weight");
    if (is_shifted) {
      for (float& weight : tensor.values) weight += 1.0F;
    }
    if (gguf_.pairs_rows && name.find("q_proj") != std::string::npos) {
      pair_rows(tensor.values, tensor.shape[0], integer("num_attention_heads"));
    }
    if (gguf_.pairs_rows && name.find("k_proj") != std::string::npos) {
      pair_rows(tensor.values, tensor.shape[0], integer("num_key_value_heads"));
    }
    replace_first({{"model.layers.", "blk."}}, name);
    const size_t stack = name.find(".experts.gate_up_proj");
    if (name.ends_with("_proj_bias")) return write_expert_biases(name, tensor);
    if (stack != std::string::npos && gguf_.fuses_experts) {
      return write(in_file(name) + ".weight", tensor.shape, tensor.values);
    }
    if (stack != std::string::npos) return write_gate_and_up(name.substr(0, stack), tensor);
    const size_t experts = name.find(".experts.");
    if (name.ends_with(".experts.down_proj")) {
      if (gguf_.transposes_experts) transpose(tensor);
      return write(in_file(name) + ".weight", tensor.shape, tensor.values);
    }
    if (experts != std::string::npos && !name.ends_with("correction_bias")) {
      const size_t at = experts + std::string_view(".experts.").size();
      const size_t end = name.find('.', at) + 1;
      const int expert = std::stoi(name.substr(at, end - at));
      stacks_[in_file(name.erase(at, end - at))][expert] = std::move(tensor);
      return;
    }
    const size_t net = name.find("linear_attn.");
    if (net != std::string::npos) return write_delta(name.substr(0, net), name.substr(net), tensor);
    const size_t latent = name.find("self_attn.kv_b_proj");
    if (latent != std::string::npos) return write_latent(name.substr(0, latent), tensor);
    write(in_file(name), tensor.shape, tensor.values);
  }

  std::string in_file(std::string name) const {
    std::string renamed = name;
    replace_first(gguf_.names, renamed);
    if (renamed == name) replace_first(kNames, renamed);
    return renamed;
  }

  // Rows that are not whole blocks stay F32, and so do routers.
  void write(const std::string& name, const std::vector<int64_t>& shape,
             const std::vector<float>& values) {
    const bool has_blocks = type_ != nullptr && shape.size() > 1 &&
                            shape.back() % type_->block_elements == 0 &&
                            name.find("ffn_gate_inp") == std::string::npos;
    if (!has_blocks) return void(writer_.floats(name, shape, values));
    writer_.tensor(name, shape, type_->id, quantize(*type_, values));
  }

  // Swaps the last two of three axes.
  static void transpose(Floats& tensor) {
    const std::vector<float> before = tensor.values;
    const int64_t rows = tensor.shape[1];
    const int64_t columns = tensor.shape[2];
    for (int64_t i = 0; i < std::ssize(before); ++i) {
      const int64_t in_matrix = i % (rows * columns);
      const int64_t to = i - in_matrix + in_matrix % columns * rows + in_matrix / columns;
      tensor.values[static_cast<size_t>(to)] = before[static_cast<size_t>(i)];
    }
    std::swap(tensor.shape[1], tensor.shape[2]);
  }

  // By expert, the rows of the gate, and then those of up, or both in turn.
  void write_gate_and_up(const std::string& mlp, Floats tensor) {
    if (gguf_.transposes_experts) transpose(tensor);
    const int64_t rows = tensor.shape[1] / 2;
    const int64_t columns = tensor.shape[2];
    for (const int64_t part : {0, 1}) {
      Floats one = {{tensor.shape[0], rows, columns}, {}};
      for (int64_t i = 0; i < tensor.shape[0] * rows; ++i) {
        const int64_t expert = i / rows;
        const int64_t row =
            gguf_.interleaves_gate_up ? 2 * i + part : (2 * expert + part) * rows + i % rows;
        const auto begin = tensor.values.begin() + row * columns;
        one.values.insert(one.values.end(), begin, begin + columns);
      }
      const char* const name = part == 0 ? "gate_proj" : "up_proj";
      write(in_file(fmt::format("{}.experts.{}.weight", mlp, name)), one.shape, one.values);
    }
  }

  // The file's names of the parts of a stack of experts, which have its rows in turn.
  std::vector<std::string> parts_in_file(const std::string& name, std::string_view suffix) const {
    const std::string experts = name.substr(0, name.find("_proj"));
    const size_t stack = experts.find("gate_up");
    if (stack == std::string::npos) {
      return {fmt::format("{}.{}", in_file(experts + "_proj"), suffix)};
    }
    const std::string before = experts.substr(0, stack);
    return {fmt::format("{}.{}", in_file(before + "gate_proj"), suffix),
            fmt::format("{}.{}", in_file(before + "up_proj"), suffix)};
  }

  void write_expert_biases(const std::string& name, const Floats& tensor) {
    const std::vector<std::string> parts = parts_in_file(name, "bias");
    const auto step = parts.size();
    for (size_t part = 0; part < step; ++part) {
      Floats one = {{tensor.shape[0], tensor.shape[1] / std::ssize(parts)}, {}};
      for (size_t i = part; i < tensor.values.size(); i += step) {
        one.values.push_back(tensor.values[i]);
      }
      writer_.floats(parts[part], one.shape, one.values);
    }
  }

  // The checkpoint's bytes have two adjacent columns each; those of the file have columns i and
  // i + 16, and follow the exponent.
  void write_mxfp4(std::string name, const GoldenTensor& golden) {
    GeneratedWeights weights(family_);
    const Shape shape(golden.shape);  // [experts, rows, groups, 16]
    const auto* const blocks = weights.tensor(name, shape).value().as<uint8_t>();
    const std::string scales_name = name.substr(0, name.rfind('_')) + "_scales";
    const auto* const scales =
        weights.tensor(scales_name, {shape[0], shape[1], shape[2]}).value().as<uint8_t>();
    replace_first({{"model.layers.", "blk."}}, name);
    const std::vector<std::string> parts = parts_in_file(name, "weight");
    const int64_t step = std::ssize(parts);
    for (int64_t part = 0; part < step; ++part) {
      std::string bytes;
      for (int64_t row = part; row < shape[0] * shape[1]; row += step) {
        for (int64_t at = row * shape[2]; at < (row + 1) * shape[2]; ++at) {
          const auto code = [&](int64_t column) {
            return blocks[at * 16 + column / 2] >> (column % 2 * 4) & 0xF;
          };
          bytes += static_cast<char>(scales[at]);
          for (int64_t i = 0; i < 16; ++i) {
            bytes += static_cast<char>(code(i) | code(i + 16) << 4);
          }
        }
      }
      writer_.tensor(parts[static_cast<size_t>(part)], {shape[0], shape[1] / step, shape[2] * 32},
                     39, bytes);
    }
  }

  // Files of Qwen3-Next have b and a by key head, as the checkpoint; old ones all inputs.
  void write_delta(const std::string& layer, const std::string& name, Floats tensor) {
    const DeltaSizes sizes = {integer("linear_num_key_heads"), integer("linear_num_value_heads"),
                              integer("linear_key_head_dim"), integer("linear_value_head_dim"),
                              gguf_.architecture != "qwen3next"};
    const auto write_by_head = [&](const char* fused,
                                   const std::vector<std::span<const float>>& parts) {
      const std::vector<float> rows = rows_by_group(parts, sizes.num_k_heads);
      const int64_t columns = integer("hidden_size");
      writer_.floats(layer + fused, {std::ssize(rows) / columns, columns}, rows);
    };
    const bool is_old = gguf_.layout == "_old";
    if ((!sizes.is_tiled && name.ends_with("in_proj_a.weight")) ||
        (is_old && name.ends_with("in_proj_qkv.weight"))) {
      return kept_.swap(tensor.values);  // written with the next tensor
    }
    if (!sizes.is_tiled && name.ends_with("in_proj_b.weight")) {
      return write_by_head("ssm_ba.weight", {tensor.values, kept_});
    }
    if (is_old && name.ends_with("in_proj_z.weight")) {
      const std::span<const float> qkv = kept_;
      const auto keys =
          static_cast<size_t>(sizes.num_k_heads * sizes.k_dim * integer("hidden_size"));
      return write_by_head("ssm_in.weight", {qkv.first(keys), qkv.subspan(keys, keys),
                                             qkv.subspan(2 * keys), tensor.values});
    }
    const std::string in_file =
        convert_delta(name.substr(name.find('.') + 1), sizes, tensor.shape, tensor.values);
    writer_.floats(layer + in_file, tensor.shape, tensor.values);
  }

  // By head, the rows of keys, transposed, and those of values.
  void write_latent(const std::string& layer, const Floats& tensor) {
    const int64_t num_heads = integer("num_attention_heads");
    const int64_t key_rows = integer("qk_nope_head_dim");
    const int64_t value_rows = integer("v_head_dim");
    const int64_t columns = tensor.shape[1];
    const LatentParts parts = split_latent(tensor.values, num_heads, key_rows, value_rows, columns);
    write(layer + "attn_k_b.weight", {num_heads, columns, key_rows}, parts.keys);
    write(layer + "attn_v_b.weight", {num_heads, value_rows, columns}, parts.values);
  }

  const GoldenGguf& gguf_;
  const GoldenFamily& family_;
  const GgufBlockType* const type_;  // of matrices; null: F32
  JsonDocument document_;
  GgufWriter writer_;
  std::map<std::string, std::map<int, Floats>> stacks_;  // by the file's name, and by expert
  std::vector<float> kept_;                              // of a tensor of a delta net
};

}  // namespace

const Names kQwen3_5Names = {{"post_attention_layernorm", "post_attention_norm"},
                             {"mtp.fc", "blk.4.nextn.eh_proj"},
                             {"mtp.norm", "blk.4.nextn.shared_head_norm"}};

const Names kLfm2Names = {{"conv.conv.", "shortconv.conv."},
                          {"conv.in_proj", "shortconv.in_proj"},
                          {"conv.out_proj", "shortconv.out_proj"},
                          {"self_attn.out_proj", "attn_output"},
                          {"self_attn.q_layernorm", "attn_q_norm"},
                          {"self_attn.k_layernorm", "attn_k_norm"},
                          {"operator_norm", "attn_norm"},
                          {"mlp.experts.w1", "ffn_gate_exps"},
                          {"mlp.experts.w2", "ffn_down_exps"},
                          {"mlp.experts.w3", "ffn_up_exps"},
                          {"mlp.w1", "ffn_gate"},
                          {"mlp.w2", "ffn_down"},
                          {"mlp.w3", "ffn_up"},
                          {"mlp.expert_bias", "exp_probs_b.bias"},
                          {"model.embedding_norm", "token_embd_norm"}};

void write_lfm2(GgufWriter& writer, const std::string& prefix) {
  writer.numbers(prefix + "attention.head_count_kv", std::vector<int32_t>{0, 2, 0, 2})
      .number(prefix + "shortconv.l_cache", 3);
}

// The delta nets and layers of the tiny models of Qwen3.5.
void write_qwen3_5(GgufWriter& writer, const std::string& prefix) {
  writer.number(prefix + "ssm.conv_kernel", 4)
      .number(prefix + "ssm.state_size", 8)
      .number(prefix + "ssm.group_count", 2)
      .number(prefix + "ssm.time_step_rank", 4)
      .number(prefix + "ssm.inner_size", 48)
      .number(prefix + "full_attention_interval", 2)
      .number(prefix + "rope.dimension_count", 8);
}
void write_qwen3_5_moe(GgufWriter& writer, const std::string& prefix) {
  write_qwen3_5(writer, prefix);
  writer.number(prefix + "expert_count", 4)
      .number(prefix + "expert_used_count", 2)
      .number(prefix + "expert_feed_forward_length", 12)
      .number(prefix + "expert_shared_feed_forward_length", 20);
}
// Newer versions of the converter also write the layers as a list.
void write_qwen3_5_with_layers(GgufWriter& writer, const std::string& prefix) {
  write_qwen3_5(writer, prefix);
  write_flags(prefix + "attention.recurrent_layers", {true, false, true, false, false}, writer);
  write_sections(writer, prefix);
}

// The first pair that occurs in a name applies.
const Names kGemma4Names = {{"layer_scalar", "layer_output_scale.weight"},
                            {"router.proj", "ffn_gate_inp"},
                            {"router.scale", "ffn_gate_inp.scale"},
                            {"router.per_expert_scale", "ffn_down_exps.scale"},
                            {"experts.gate_up_proj", "ffn_gate_up_exps"},
                            {"experts.down_proj", "ffn_down_exps"},
                            {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
                            {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
                            {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
                            {"pre_feedforward_layernorm", "ffn_norm"},
                            {"post_feedforward_layernorm", "post_ffw_norm"},
                            {"post_attention_layernorm", "post_attention_norm"},
                            {"model.embed_tokens_per_layer", "per_layer_token_embd"},
                            {"model.per_layer_model_projection", "per_layer_model_proj"},
                            {"model.per_layer_projection_norm", "per_layer_proj_norm"},
                            {"per_layer_input_gate", "inp_gate"},
                            {"per_layer_projection", "proj"},
                            {"post_per_layer_input_norm", "post_norm"}};

void write_gemma4(GgufWriter& writer, const std::string& prefix, uint32_t num_shared,
                  uint32_t input_size) {
  std::vector<float> divisors(16, 1e30F);
  std::fill_n(divisors.begin(), 4, 1.0F);
  writer.number(prefix + "attention.key_length", 32)
      .number(prefix + "attention.value_length", 32)
      .number(prefix + "attention.key_length_swa", 16)
      .number(prefix + "attention.value_length_swa", 16)
      .number(prefix + "rope.dimension_count", 32)
      .number(prefix + "rope.dimension_count_swa", 16)
      .real(prefix + "rope.freq_base_swa", 10000.0F)
      .number(prefix + "attention.sliding_window", 8)
      .number(prefix + "attention.shared_kv_layers", num_shared)
      .number(prefix + "embedding_length_per_layer_input", input_size)
      .real(prefix + "final_logit_softcapping", 20.0F)
      .floats("rope_freqs.weight", {16}, divisors);
  write_flags(prefix + "attention.sliding_window_pattern", {true, false, true, false}, writer);
}

void write_large_gemma4(GgufWriter& writer, const std::string& prefix) {
  write_gemma4(writer, prefix, 0, 0);
  writer.numbers(prefix + "attention.head_count_kv", std::vector<int32_t>{2, 1, 2, 1});
}

std::vector<GoldenGguf> golden_ggufs() {
  using std::string;
  return {
      {.family = "granite",
       .architecture = "granite",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.real(prefix + "attention.scale", 0.9F)
                 .real(prefix + "embedding_scale", 3.0F)
                 .real(prefix + "residual_scale", 0.4F)
                 .real(prefix + "logit_scale", 5.0F)
                 .number(prefix + "rope.dimension_count", 8);
           },
       .pairs_rows = true},
      {.family = "smollm3",
       .architecture = "smollm3",
       .pairs_rows = true,
       .left_out = R"("no_rope_layers":[1,1,0,1],)"},
      {.family = "olmo2", .architecture = "olmo2", .names = kNormsOfOutputs},
      {.family = "olmo3",
       .architecture = "olmo2",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.number(prefix + "attention.sliding_window", 8);
             write_flags(prefix + "attention.sliding_window_pattern", {true, true, false}, writer);
             write_yarn(writer, prefix, 8.0F, 32, 0.02F);
             writer.real(prefix + "rope.scaling.yarn_attn_factor", 1.2079441541679836F);
           },
       .names = kNormsOfOutputs},
      {.family = "phi3",
       .architecture = "phi3",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.number(prefix + "rope.dimension_count", 16)
                 .number(prefix + "attention.sliding_window", 0)
                 .number(prefix + "rope.scaling.original_context_length", 4096);
           }},
      {.family = "phi3_long",
       .architecture = "phi3",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.text(prefix + "rope.scaling.type", "longrope");
             write_longrope(writer, prefix, 8, 4);
           }},
      {.family = "phi3_short",
       .architecture = "phi3",
       .write = [](GgufWriter& writer,
                   const string& prefix) { write_longrope(writer, prefix, 256, 128); }},
      {.family = "seed_oss", .architecture = "seed_oss", .names = kNormNamedByAttention},
      {.family = "gpt_oss",
       .architecture = "gpt-oss",
       .write = [](GgufWriter& writer, const string& prefix) { write_gpt_oss(writer, prefix, 12); },
       .names = kGptOssNames,
       .transposes_experts = true,
       .interleaves_gate_up = true},
      {.family = "gpt_oss_mxfp4",
       .architecture = "gpt-oss",
       .write = [](GgufWriter& writer, const string& prefix) { write_gpt_oss(writer, prefix, 64); },
       .names = kGptOssNames},
      {.family = "glm4",
       .architecture = "glm4",
       .write = [](GgufWriter& writer,
                   const string& prefix) { writer.number(prefix + "rope.dimension_count", 8); },
       .names = {{"post_self_attn_layernorm", "post_attention_norm"},
                 {"post_mlp_layernorm", "post_ffw_norm"}}},
      {.family = "glm4_moe",
       .architecture = "glm4moe",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_glm4_moe(writer, prefix, {8, 3, 2.5F, 4, 2});
           },
       .names = kNormNamedByAttention,
       .num_mtp_layers = 1},
      {.family = "glm4_moe_air",
       .architecture = "glm4moe",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_glm4_moe(writer, prefix, {8, 3});
           },
       .names = kNormNamedByAttention,
       .num_mtp_layers = 1},
      {.family = "glm4_moe_lite",
       .architecture = "deepseek2",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_glm4_moe(writer, prefix, {8, 3, 1.8F});
             writer.number(prefix + "attention.q_lora_rank", 20)
                 .number(prefix + "attention.kv_lora_rank", 32)
                 .number(prefix + "attention.key_length", 40)
                 .number(prefix + "attention.value_length", 32)
                 .number(prefix + "attention.key_length_mla", 24)
                 .number(prefix + "attention.value_length_mla", 24);
           },
       .num_mtp_layers = 1},
      {.family = "minimax_m2",
       .architecture = "minimax-m2",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.number(prefix + "expert_count", 6)
                 .number(prefix + "expert_used_count", 2)
                 .number(prefix + "expert_feed_forward_length", 12)
                 .number(prefix + "expert_gating_func", 2)
                 .number(prefix + "rope.dimension_count", 8);
           }},
      {.family = "qwen3_vl", .architecture = "qwen3vl", .write = write_sections},
      {.family = "qwen2_5_vl", .architecture = "qwen2vl", .write = write_sections},
      {.family = "ministral3",
       .architecture = "mistral3",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_yarn(writer, prefix, 16.0F, 16, 0.05F);
             writer.real(prefix + "rope.scaling.yarn_log_multiplier", 1.0F)
                 .real(prefix + "attention.temperature_scale", 0.1F);
           },
       .pairs_rows = true},
      {.family = "mistral3", .architecture = "mistral3", .pairs_rows = true},
      {.family = "hunyuan_v1_dense",
       .architecture = "hunyuan-dense",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.text(prefix + "rope.scaling.type", "none")
                 .real(prefix + "rope.scaling.factor", 1.0F)
                 .number(prefix + "rope.scaling.original_context_length", 262144);
           },
       .theta = 100.0 * std::pow(50.0, 16.0 / 14.0)},
      {.family = "exaone4",
       .architecture = "exaone4",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.number(prefix + "attention.sliding_window", 8)
                 .floats("rope_freqs.weight", {8}, llama3_divisors(1e6, 16, 4.0, 1.0, 4.0, 64.0));
             write_flags(prefix + "attention.sliding_window_pattern", {true, true, false}, writer);
           },
       .names = kNormsOfOutputs},
      {.family = "exaone4_full",
       .architecture = "exaone4",
       .write =
           [](GgufWriter& writer, const string& /*prefix*/) {
             writer.floats("rope_freqs.weight", {8}, llama3_divisors(1e6, 16, 4.0, 1.0, 4.0, 64.0));
           },
       .names = kNormsOfOutputs},
      // The file has the width that the checkpoint's code derives from intermediate_size.
      {.family = "lfm2",
       .architecture = "lfm2",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_lfm2(writer, prefix);
             writer.number(prefix + "feed_forward_length", 32);
           },
       .names = kLfm2Names,
       .has_layer_kv_heads = true,
       .has_own_width = true},
      {.family = "lfm2_moe",
       .architecture = "lfm2moe",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_lfm2(writer, prefix);
             writer.number(prefix + "expert_count", 6)
                 .number(prefix + "expert_used_count", 2)
                 .number(prefix + "expert_feed_forward_length", 12)
                 .number(prefix + "expert_gating_func", 2)
                 .number(prefix + "leading_dense_block_count", 1);
           },
       .names = kLfm2Names,
       .has_layer_kv_heads = true},
      {.family = "qwen3_5",
       .architecture = "qwen35",
       .write = write_qwen3_5_with_layers,
       .names = kQwen3_5Names,
       .num_mtp_layers = 1,
       .shifts_all_norms = true},
      {.family = "qwen3_5_moe",
       .architecture = "qwen35moe",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_qwen3_5_moe(writer, prefix);
             write_sections(writer, prefix);
           },
       .names = kQwen3_5Names,
       .num_mtp_layers = 1,
       .shifts_all_norms = true},
      // Qwen3-Next computes as Qwen3.5. Its golden model has a dense layer, which files cannot
      // have.
      {.family = "qwen3_5_moe",
       .layout = "_next",
       .architecture = "qwen3next",
       .write = write_qwen3_5_moe,
       .names = kQwen3_5Names,
       .num_mtp_layers = 1,
       .shifts_all_norms = true},
      {.family = "qwen3_5_moe",
       .layout = "_old",
       .architecture = "qwen3next",
       .write = write_qwen3_5_moe,
       .names = kQwen3_5Names,
       .num_mtp_layers = 1,
       .shifts_all_norms = true},
      {.family = "ernie4_5", .architecture = "ernie4_5"},
      {.family = "ernie4_5_moe",
       .architecture = "ernie4_5-moe",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.number(prefix + "expert_count", 6)
                 .number(prefix + "expert_used_count", 2)
                 .number(prefix + "expert_feed_forward_length", 12)
                 .number(prefix + "expert_shared_count", 2)
                 .number(prefix + "expert_shared_feed_forward_length", 20)
                 .number(prefix + "interleave_moe_layer_step", 1)
                 .number(prefix + "leading_dense_block_count", 1);
           }},
      {.family = "mistral4",
       .architecture = "mistral4",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_yarn(writer, prefix, 16.0F, 16, 0.05F);
             writer.real(prefix + "rope.scaling.yarn_log_multiplier", 0.1F)
                 .number(prefix + "expert_count", 8)
                 .number(prefix + "expert_used_count", 3)
                 .number(prefix + "expert_feed_forward_length", 12)
                 .number(prefix + "expert_shared_count", 1)
                 .number(prefix + "leading_dense_block_count", 1)
                 .flag(prefix + "expert_weights_norm", true)
                 .number(prefix + "rope.dimension_count", 8)
                 .number(prefix + "attention.q_lora_rank", 20)
                 .number(prefix + "attention.kv_lora_rank", 32)
                 .number(prefix + "attention.key_length", 40)
                 .number(prefix + "attention.value_length", 32)
                 .number(prefix + "attention.key_length_mla", 24)
                 .number(prefix + "attention.value_length_mla", 24);
           }},
      {.family = "gemma4_large",
       .architecture = "gemma4",
       .write = write_large_gemma4,
       .names = kGemma4Names,
       .theta = 1e6,
       .has_layer_kv_heads = true,
       .has_own_head_dim = true},
      {.family = "gemma4_moe",
       .architecture = "gemma4",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_large_gemma4(writer, prefix);
             writer.number(prefix + "expert_count", 6)
                 .number(prefix + "expert_used_count", 2)
                 .number(prefix + "expert_feed_forward_length", 12);
           },
       .names = kGemma4Names,
       .theta = 1e6,
       .has_layer_kv_heads = true,
       .has_own_head_dim = true,
       .fuses_experts = true},
      {.family = "gemma4_small",
       .architecture = "gemma4",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_gemma4(writer, prefix, 2, 8);
             writer.numbers(prefix + "feed_forward_length", std::vector<int32_t>{40, 40, 80, 80});
           },
       .names = kGemma4Names,
       .theta = 1e6,
       .has_own_width = true,
       .has_own_head_dim = true},
      {.family = "laguna",
       .architecture = "laguna",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.numbers(prefix + "attention.head_count", std::vector<int32_t>{4, 8, 4})
                 .number(prefix + "attention.sliding_window", 8)
                 .number(prefix + "rope.dimension_count", 8)
                 .number(prefix + "rope.dimension_count_swa", 16)
                 .real(prefix + "rope.freq_base_swa", 10000.0F)
                 .real(prefix + "rope.scaling.yarn_attn_factor", 1.0F)
                 .number(prefix + "expert_shared_feed_forward_length", 20)
                 .number(prefix + "leading_dense_block_count", 1);
             write_flags(prefix + "attention.sliding_window_pattern", {false, true, false}, writer);
             write_yarn(writer, prefix, 8.0F, 32, 0.05F);
             write_sigmoid_experts(writer, prefix, {6, 2, 2.5F});
           },
       .theta = 1000.0,
       .has_layer_heads = true},
      {.family = "mimo_v2",
       .architecture = "mimo2",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.numbers(prefix + "attention.head_count_kv", std::vector<int32_t>{2, 4, 4})
                 .numbers(prefix + "attention.sliding_window_pattern",
                          std::vector<int32_t>{0, 1, 1})
                 .number(prefix + "attention.sliding_window", 8)
                 .real(prefix + "attention.value_scale", 0.707F)
                 .number(prefix + "rope.dimension_count", 8)
                 .real(prefix + "rope.freq_base_swa", 10000.0F)
                 .number(prefix + "expert_count", 8)
                 .number(prefix + "expert_used_count", 3)
                 .number(prefix + "expert_feed_forward_length", 12);
           },
       .has_layer_kv_heads = true},
      {.family = "muse_glimmer",
       .architecture = "muse-glimmer",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.number(prefix + "attention.sliding_window", 8)
                 .real(prefix + "final_logit_softcapping", 20.0F)
                 .real(prefix + "logit_scale", 0.4F);
             write_flags(prefix + "attention.sliding_window_pattern", {true, true, true, false},
                         writer);
             for (int layer = 0; layer < 4; ++layer) {
               const string block = fmt::format("blk.{}.", layer);
               writer.floats(block + "attn_q_norm.weight", {16}, std::vector<float>(16, 3.87F))
                   .floats(block + "attn_k_norm.weight", {16}, std::vector<float>(16, 1.0F));
             }
           },
       .names = {{"post_attention_layernorm", "post_attention_norm"},
                 {"pre_feedforward_layernorm", "ffn_norm"},
                 {"post_feedforward_layernorm", "post_ffw_norm"}},
       .pairs_rows = true,
       .shifts_norms = true},
      {.family = "llama4",
       .architecture = "llama4",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             writer.number(prefix + "expert_count", 4)
                 .number(prefix + "expert_used_count", 1)
                 .number(prefix + "expert_feed_forward_length", 20)
                 .number(prefix + "interleave_moe_layer_step", 2)
                 .number(prefix + "rope.dimension_count", 16)
                 .floats("rope_freqs.weight", {8}, llama3_divisors(5e5, 16, 4.0, 1.0, 4.0, 64.0));
           },
       .left_out = R"("attention_chunk_size":8,"no_rope_layers":[1,1,0,1],)"
                   R"("attn_temperature_tuning":true,"floor_scale":8,"attn_scale":0.1,)",
       .transposes_experts = true},
      {.family = "hy_v3",
       .architecture = "hy_v3",
       .write =
           [](GgufWriter& writer, const string& prefix) {
             write_sigmoid_experts(writer, prefix, {6, 2, 2.826F});
             writer.number(prefix + "expert_shared_feed_forward_length", 12);
           },
       .num_mtp_layers = 1},
  };
}

std::string write_golden_gguf(const GoldenGguf& gguf, const GoldenFamily& family,
                              std::string_view matrices) {
  return Converter(gguf, family, matrices).convert();
}

}  // namespace quire::testing

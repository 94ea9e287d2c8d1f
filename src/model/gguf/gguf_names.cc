#include "model/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace quire {
namespace {

constexpr std::array kEndNames = {
    GgufTensorName{"token_embd", "model.embed_tokens"},
    GgufTensorName{"output_norm", "model.norm"},
    GgufTensorName{"output", "lm_head"},
    GgufTensorName{"per_layer_token_embd", "model.embed_tokens_per_layer"},
    GgufTensorName{"per_layer_model_proj", "model.per_layer_model_projection"},
    GgufTensorName{"per_layer_proj_norm", "model.per_layer_projection_norm"},
};

// Files of LFM2 give the output norm the name of a norm of embeddings.
constexpr std::array kConvEndNames = {GgufTensorName{"token_embd_norm", "model.norm"}};

constexpr std::array kLayerNames = {
    GgufTensorName{"attn_norm", "input_layernorm"},
    GgufTensorName{"attn_q", "self_attn.q_proj"},
    GgufTensorName{"attn_k", "self_attn.k_proj"},
    GgufTensorName{"attn_v", "self_attn.v_proj"},
    GgufTensorName{"attn_output", "self_attn.o_proj"},
    GgufTensorName{"attn_gate", "self_attn.gate_proj"},
    GgufTensorName{"shortconv.conv", "conv.conv"},
    GgufTensorName{"shortconv.out_proj", "conv.out_proj"},
    GgufTensorName{"shortconv.in_proj", "conv.b_proj"},
    GgufTensorName{"shortconv.in_proj", "conv.g_proj"},
    GgufTensorName{"shortconv.in_proj", "conv.x_proj"},
    GgufTensorName{"attn_q_norm", "self_attn.q_norm"},
    GgufTensorName{"attn_k_norm", "self_attn.k_norm"},
    GgufTensorName{"attn_q_a", "self_attn.q_a_proj"},
    GgufTensorName{"attn_q_a_norm", "self_attn.q_a_layernorm"},
    GgufTensorName{"attn_q_b", "self_attn.q_b_proj"},
    GgufTensorName{"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    GgufTensorName{"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    GgufTensorName{"attn_kv_b", "self_attn.kv_b_proj"},
    GgufTensorName{"ffn_gate", "mlp.gate_proj"},
    GgufTensorName{"ffn_up", "mlp.up_proj"},
    GgufTensorName{"ffn_down", "mlp.down_proj"},
    GgufTensorName{"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    GgufTensorName{"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    GgufTensorName{"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    GgufTensorName{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    GgufTensorName{"ffn_gate_inp", "mlp.gate"},
    GgufTensorName{"ffn_gate_exps", "mlp.experts.gate_proj"},
    GgufTensorName{"ffn_up_exps", "mlp.experts.up_proj"},
    GgufTensorName{"ffn_down_exps", "mlp.experts.down_proj"},
    GgufTensorName{"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    GgufTensorName{"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    GgufTensorName{"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    GgufTensorName{"inp_gate", "per_layer_input_gate"},
    GgufTensorName{"proj", "per_layer_projection"},
    GgufTensorName{"post_norm", "post_per_layer_input_norm"},
};

// Tensors whose names in file and checkpoint differ with the suffix. in_file() takes the first.
constexpr std::array kWholeNames = {
    GgufTensorName{"layer_output_scale.weight", "layer_scalar"},
    GgufTensorName{"ffn_down_exps.scale", "mlp.gate.per_expert_scale"},
    GgufTensorName{"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    GgufTensorName{"exp_probs_b", "mlp.gate.e_score_correction_bias"},  // in some files
    GgufTensorName{"attn_sinks.weight", "self_attn.sinks"},
    GgufTensorName{"ssm_a", "linear_attn.A_log"},
    GgufTensorName{"ssm_dt.bias", "linear_attn.dt_bias"},
};

// Names in models with delta nets. Attention there has the queries and their gates in one matrix.
constexpr std::array kDeltaNames = {
    GgufTensorName{"attn_q", "self_attn.q_proj"},
    GgufTensorName{"attn_q", "self_attn.gate_proj"},
    GgufTensorName{"attn_qkv", "linear_attn.q_proj"},
    GgufTensorName{"attn_qkv", "linear_attn.k_proj"},
    GgufTensorName{"attn_qkv", "linear_attn.v_proj"},
    GgufTensorName{"attn_gate", "linear_attn.in_proj_z"},
    GgufTensorName{"ssm_beta", "linear_attn.in_proj_b"},
    GgufTensorName{"ssm_alpha", "linear_attn.in_proj_a"},
    GgufTensorName{"ssm_conv1d", "linear_attn.conv1d"},
    GgufTensorName{"ssm_norm", "linear_attn.norm"},
    GgufTensorName{"ssm_out", "linear_attn.out_proj"},
};

constexpr std::string_view kExperts = "experts.";

// The parts of "blk.3.ffn_up.weight" or "model.layers.3.mlp.up_proj.weight": "3" and the rest.
struct LayerName {
  std::string_view layer;
  std::string_view tensor;
};

std::optional<LayerName> parse_layer_name(std::string_view name, std::string_view prefix) {
  const size_t end = name.find('.', prefix.size());
  if (!name.starts_with(prefix) || end == std::string_view::npos) return std::nullopt;
  return LayerName{name.substr(prefix.size(), end - prefix.size()), name.substr(end + 1)};
}

// "ffn_up" and ".weight" of "ffn_up.weight"; the suffix may be empty.
std::pair<std::string_view, std::string_view> split_suffix(std::string_view name) {
  const size_t dot = std::min(name.rfind('.'), name.size());
  return {name.substr(0, dot), name.substr(dot)};
}

// Turns "mlp.experts.7.up_proj" into "mlp.experts.up_proj"; other names stay as they are.
std::string without_expert(std::string_view part) {
  const size_t at = part.find(kExperts);
  if (at == std::string_view::npos) return std::string(part);
  const size_t number = at + kExperts.size();
  const size_t end = part.find('.', number);
  if (end == std::string_view::npos) return std::string(part);
  return fmt::format("{}{}", part.substr(0, number), part.substr(end + 1));
}

}  // namespace

GgufNames::GgufNames(const GgufArchitecture& architecture, const DecoderConfig& decoder)
    : norm_addend_(decoder.norm_addend),
      final_norm_addend_(decoder.final_norm_addend.value_or(decoder.norm_addend)),
      paired_rows_(architecture.pairs_rows ? decoder.head_dim : 0) {
  const auto add = [](std::span<const GgufTensorName> pairs, std::vector<Pair>& names) {
    for (const GgufTensorName& pair : pairs) {
      names.push_back({std::string(pair.file), std::string(pair.checkpoint)});
    }
  };
  if (architecture.has_convs) add(kConvEndNames, ends_);
  add(kEndNames, ends_);
  if (architecture.deltas != GgufDeltas::kNone) add(kDeltaNames, parts_);
  add(kLayerNames, parts_);
  add(architecture.norms, parts_);
}

std::string GgufNames::in_checkpoint(std::string_view name) const {
  const auto [end_name, end_suffix] = split_suffix(name);
  const auto end = std::ranges::find(ends_, end_name, &Pair::file);
  if (end != ends_.end()) return fmt::format("{}{}", end->checkpoint, end_suffix);
  const std::optional<LayerName> in_layer = parse_layer_name(name, "blk.");
  if (!in_layer) return std::string(name);
  const auto whole = std::ranges::find(kWholeNames, in_layer->tensor, &GgufTensorName::file);
  if (whole != kWholeNames.end()) {
    return fmt::format("model.layers.{}.{}", in_layer->layer, whole->checkpoint);
  }
  const auto [part, suffix] = split_suffix(in_layer->tensor);
  const auto found = std::ranges::find(parts_, part, &Pair::file);
  if (found == parts_.end() || suffix.empty()) return std::string(name);
  return fmt::format("model.layers.{}.{}{}", in_layer->layer, found->checkpoint, suffix);
}

std::optional<std::string> GgufNames::in_file(std::string_view name) const {
  const auto [end_name, end_suffix] = split_suffix(name);
  const auto end = std::ranges::find(ends_, end_name, &Pair::checkpoint);
  if (end != ends_.end()) return fmt::format("{}{}", end->file, end_suffix);
  const std::optional<LayerName> in_layer = parse_layer_name(name, "model.layers.");
  if (!in_layer) return std::nullopt;
  const auto whole = std::ranges::find(kWholeNames, in_layer->tensor, &GgufTensorName::checkpoint);
  if (whole != kWholeNames.end()) return fmt::format("blk.{}.{}", in_layer->layer, whole->file);
  const auto [part, suffix] = split_suffix(in_layer->tensor);
  const auto found = std::ranges::find(parts_, without_expert(part), &Pair::checkpoint);
  if (found == parts_.end()) return std::nullopt;
  return fmt::format("blk.{}.{}{}", in_layer->layer, found->file, suffix);
}

GgufChanges GgufNames::changes(std::string_view name) const {
  const auto contains = [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  GgufChanges changes;
  if (contains("q_proj.") || contains("k_proj.")) changes.paired_rows = paired_rows_;
  changes.is_rate = name.ends_with(".linear_attn.A_log");
  if (name.ends_with("norm.weight") && !name.ends_with(".linear_attn.norm.weight")) {
    changes.addend = name == "model.norm.weight" ? final_norm_addend_ : norm_addend_;
  }
  return changes;
}

std::string expert_name(std::string_view stack, int64_t expert) {
  const size_t number = stack.find(kExperts) + kExperts.size();
  return fmt::format("{}{}.{}", stack.substr(0, number), expert, stack.substr(number));
}

}  // namespace quire

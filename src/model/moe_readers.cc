#include "model/moe_readers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/numbers.h"
#include "model/config_fields.h"
#include "model/decoder_config.h"

namespace quire {
namespace {

// Upper bound of the experts of all layers, because each has names in a list of weights. The
// largest models have about 25,000.
constexpr int64_t kMaxExpertsInAll = 1 << 16;

// Reads the number of experts per layer and the number per token. Without a default, the field is
// required.
ExpertRouting read_routing(ConfigFields& fields, const ModelConfig& config,
                           std::optional<int> default_num_experts = {},
                           std::optional<int> default_top_k = {}) {
  constexpr std::string_view kNumExperts = "num_experts";
  ExpertRouting routing;
  routing.num_experts = fields.integer(kNumExperts, 1, kMaxExperts, default_num_experts);
  routing.top_k = fields.integer("num_experts_per_tok", 1, kMaxExperts, default_top_k);
  if (routing.top_k > routing.num_experts) {
    fields.fail("num_experts_per_tok", std::to_string(routing.top_k),
                fmt::format("at most {}, {}", kNumExperts, routing.num_experts));
  }
  if (int64_t{routing.num_experts} * config.num_layers > kMaxExpertsInAll) {
    fields.fail(kNumExperts, fmt::format("{} in {} layers", routing.num_experts, config.num_layers),
                fmt::format("at most {} in all layers", kMaxExpertsInAll));
  }
  return routing;
}

// Experts of moe_intermediate_size. Without a default, a field is required.
MoeConfig read_sized_experts(ConfigFields& fields, const ModelConfig& config,
                             std::optional<int> default_num_experts = {},
                             std::optional<int> default_top_k = {},
                             std::optional<int> default_size = {}) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, default_num_experts, default_top_k);
  moe.intermediate_size =
      fields.integer("moe_intermediate_size", 1, kMaxIntermediateSize, default_size);
  return moe;
}

// The defaults of an architecture of DeepSeek for fields that a config.json may omit.
struct DeepseekDefaults {
  int num_groups = 1;
  int top_groups = 1;
  int num_shared_experts = 0;
  int num_dense_layers = 0;
  double scale = 1.0;
};
constexpr DeepseekDefaults kDeepseekV2Moe = {};
constexpr DeepseekDefaults kDeepseekV3Moe = {
    .num_groups = 8, .top_groups = 4, .num_shared_experts = 1, .num_dense_layers = 3, .scale = 2.5};
constexpr DeepseekDefaults kGlm4Moe = {.num_shared_experts = 1, .num_dense_layers = 1};
constexpr DeepseekDefaults kMistral4Moe = {.num_shared_experts = 1};
constexpr DeepseekDefaults kMimoV2Moe = {.num_dense_layers = 1};
constexpr DeepseekDefaults kGlm4MoeLite = {
    .num_shared_experts = 1, .num_dense_layers = 1, .scale = 1.8};

void read_groups(ConfigFields& fields, const DeepseekDefaults& defaults, ExpertRouting& routing) {
  routing.num_groups = fields.integer("n_group", 1, kMaxExperts, defaults.num_groups);
  routing.top_groups = fields.integer("topk_group", 1, kMaxExperts, defaults.top_groups);
  if (is_valid(routing)) return;
  fields.fail("n_group",
              fmt::format("{} with topk_group {}, {} experts and {} per token", routing.num_groups,
                          routing.top_groups, routing.num_experts, routing.top_k),
              "equal groups, of which the best ones have enough experts for a token");
}

// The inner size of all shared experts.
int read_shared_size(ConfigFields& fields, int default_num_shared, int intermediate_size) {
  constexpr std::string_view kNumShared = "n_shared_experts";
  const int num_shared = fields.integer(kNumShared, 0, kMaxExperts, default_num_shared);
  if (num_shared <= kMaxIntermediateSize / intermediate_size) {
    return num_shared * intermediate_size;
  }
  fields.fail(kNumShared, std::to_string(num_shared),
              fmt::format("at most {} elements in all", kMaxIntermediateSize));
  return 0;
}

// [num_layers], whether a layer has experts: by its type, or all after the first dense ones.
std::vector<bool> read_expert_layers(ConfigFields& fields, int num_layers, int default_num_dense) {
  constexpr std::string_view kTypes = "mlp_layer_types";
  constexpr std::string_view kFrequency = "moe_layer_freq";
  std::vector<bool> layers;
  const int num_dense = fields.integer("first_k_dense_replace", 0, kMaxLayers, default_num_dense);
  const std::vector<int> frequency = fields.integers(kFrequency, 0, kMaxLayers, kMaxLayers);
  const bool is_list = frequency.size() > 1;  // of one flag per layer
  const int step = frequency.empty() || is_list ? 1 : std::max(frequency.front(), 1);
  if (is_list ? std::ssize(frequency) != num_layers : !frequency.empty() && frequency[0] != step) {
    fields.fail(kFrequency, fmt::format("{}", fmt::join(frequency, ", ")),
                fmt::format("at least 1, or one flag per layer, {}", num_layers));
    return layers;
  }
  for (int layer = 0; layer < num_layers; ++layer) {
    layers.push_back(is_list ? frequency[static_cast<size_t>(layer)] != 0
                             : layer >= num_dense && layer % step == 0);
  }
  const std::vector<std::string> types = fields.texts(kTypes, kMaxLayers);
  if (!require_one_per_layer(fields, kTypes, types.size(), num_layers)) return layers;
  for (size_t i = 0; i < types.size(); ++i) {
    layers[i] = types[i] == "sparse";
    if (!layers[i] && types[i] != "dense") {
      fields.fail(kTypes, quote_name(types[i]), "dense or sparse");
    }
  }
  return layers;
}

// Reads the number of experts, the scale of their weights, their sizes, and their layers.
MoeConfig read_deepseek_experts(ConfigFields& fields, const ModelConfig& config,
                                const DeepseekDefaults& defaults) {
  MoeConfig moe = read_sized_experts(fields, config);
  moe.routing.scale =
      static_cast<float>(fields.number("routed_scaling_factor", 1e-6, 1e6, defaults.scale));
  moe.shared_intermediate_size =
      read_shared_size(fields, defaults.num_shared_experts, moe.intermediate_size);
  moe.layers = read_expert_layers(fields, config.num_layers, defaults.num_dense_layers);
  return moe;
}

// The routing of DeepSeek-V3, which newer architectures share: sigmoid scores with a bias for the
// choice.
void read_sigmoid_moe(ConfigFields& fields, const ModelConfig& config,
                      const DeepseekDefaults& defaults, DecoderConfig& decoder) {
  MoeConfig moe = read_deepseek_experts(fields, config, defaults);
  require_text(fields, "scoring_func", "sigmoid");
  require_text(fields, "topk_method", "noaux_tc");
  moe.routing.scores = RouterScores::kSigmoid;
  moe.routing.group_scores = GroupScores::kTwoLargest;
  moe.has_correction_bias = true;
  read_groups(fields, defaults, moe.routing);
  moe.routing.renormalize = fields.boolean("norm_topk_prob", true);
  decoder.moe = std::move(moe);
}

// The defaults of an architecture for fields that a config.json may omit.
struct NormalizedSigmoidDefaults {
  int num_experts = 1;
  int top_k = 1;
  double scale = 1.0;
  int intermediate_size = 1;
  int num_dense_layers = 1;
};

// Sigmoid scores with a bias for the choice. The weights of the chosen experts are divided by their
// sum and scaled. The first layers have no experts.
MoeConfig read_normalized_sigmoid(ConfigFields& fields, const ModelConfig& config,
                                  const NormalizedSigmoidDefaults& defaults) {
  MoeConfig moe = read_sized_experts(fields, config, defaults.num_experts, defaults.top_k,
                                     defaults.intermediate_size);
  moe.routing.scores = RouterScores::kSigmoid;
  moe.routing.renormalize = true;
  moe.routing.scale =
      static_cast<float>(fields.number("routed_scaling_factor", 1e-6, 1e6, defaults.scale));
  moe.has_correction_bias = true;
  moe.layers = read_expert_layers(fields, config.num_layers, defaults.num_dense_layers);
  return moe;
}

// Defaults of the architectures of Qwen3 and later with experts.
struct Qwen3Defaults {
  int num_experts = 128;
  int top_k = 8;
  int intermediate_size = 768;
};

MoeConfig read_qwen3_experts(ConfigFields& fields, const ModelConfig& config,
                             const Qwen3Defaults& defaults) {
  MoeConfig moe = read_sized_experts(fields, config, defaults.num_experts, defaults.top_k,
                                     defaults.intermediate_size);
  const int sparse_step = fields.integer("decoder_sparse_step", 1, kMaxLayers, 1);
  const std::vector<int> dense = fields.integers("mlp_only_layers", 0, kMaxLayers, kMaxLayers);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const bool is_dense = std::ranges::find(dense, layer) != dense.end();
    moe.layers.push_back(!is_dense && (layer + 1) % sparse_step == 0);
  }
  return moe;
}

// Experts, and a shared MLP whose output has a gate.
void read_moe_with_shared_gate(ConfigFields& fields, const ModelConfig& config,
                               const Qwen3Defaults& defaults, DecoderConfig& decoder) {
  MoeConfig moe = read_qwen3_experts(fields, config, defaults);
  moe.routing.renormalize = fields.boolean("norm_topk_prob", true);
  moe.shared_intermediate_size =
      fields.integer("shared_expert_intermediate_size", 1, kMaxIntermediateSize, 512);
  moe.has_shared_gate = true;
  decoder.moe = std::move(moe);
}

// Every layer has experts of intermediate_size, whose weights are normalized.
MoeConfig read_plain_experts(ConfigFields& fields, const ModelConfig& config,
                             const DecoderConfig& decoder, int num_experts, int top_k) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, num_experts, top_k);
  moe.routing.renormalize = true;
  moe.intermediate_size = decoder.intermediate_size;
  moe.layers.assign(static_cast<size_t>(config.num_layers), true);
  return moe;
}

}  // namespace

void read_deepseek_v2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  if (!fields.has("num_experts")) return;
  MoeConfig moe = read_deepseek_experts(fields, config, kDeepseekV2Moe);
  require_text(fields, "scoring_func", "softmax");
  const std::string method = fields.optional_text("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") {
    read_groups(fields, kDeepseekV2Moe, moe.routing);
  } else if (method != "greedy") {
    fields.fail("topk_method", quote_name(method), "greedy or group_limited_greedy");
  }
  moe.routing.renormalize = fields.boolean("norm_topk_prob", false);
  if (moe.routing.renormalize && moe.routing.scale != 1.0F) {
    fields.fail("norm_topk_prob", "true",
                "false, or a routed_scaling_factor of 1: implementations of DeepSeek-V2 differ in "
                "whether normalized weights are scaled");
  }
  decoder.moe = std::move(moe);
}

void read_deepseek_v3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  if (fields.has("num_experts")) read_sigmoid_moe(fields, config, kDeepseekV3Moe, decoder);
}

void read_glm4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  read_sigmoid_moe(fields, config, kGlm4Moe, decoder);
}

void read_glm4_moe_lite(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  read_sigmoid_moe(fields, config, kGlm4MoeLite, decoder);
}

void read_mistral4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe = read_deepseek_experts(fields, config, kMistral4Moe);
  require_text(fields, "scoring_func", "softmax");
  fields.optional_text("topk_method");  // GGUF files have it; the groups decide the method
  moe.routing.group_scores = GroupScores::kTwoLargest;
  read_groups(fields, kMistral4Moe, moe.routing);
  moe.routing.renormalize = fields.boolean("norm_topk_prob", true);
  decoder.moe = std::move(moe);
}

void read_laguna_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  fields.expect_value("moe_router_logit_softcapping", 0.0, "0: the router's logits have no cap");
  require_switch(fields, "moe_apply_router_weight_on_input", false);
  MoeConfig moe = read_normalized_sigmoid(
      fields, config, {.num_experts = 256, .top_k = 8, .intermediate_size = 512});
  moe.shared_intermediate_size =
      fields.integer("shared_expert_intermediate_size", 0, kMaxIntermediateSize, 512);
  decoder.moe = std::move(moe);
}

void read_lfm2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe = read_normalized_sigmoid(
      fields, config,
      {.num_experts = 32, .top_k = 4, .intermediate_size = 1792, .num_dense_layers = 2});
  moe.routing.renormalize = fields.boolean("norm_topk_prob", true);
  moe.has_correction_bias = fields.boolean("use_expert_bias", true);
  // Only GGUF files have these fields.
  require_text(fields, "scoring_func", "sigmoid");
  require_text(fields, "topk_method", "noaux_tc");
  read_groups(fields, {}, moe.routing);
  decoder.moe = std::move(moe);
}

void read_mimo_v2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  read_sigmoid_moe(fields, config, kMimoV2Moe, decoder);
}

void read_llama4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, 16, 1);
  moe.routing.scores = RouterScores::kSigmoid;
  moe.weighs_input = true;
  if (moe.routing.top_k != 1) {
    fields.fail("num_experts_per_tok", std::to_string(moe.routing.top_k),
                "1, as in all published models: their weights multiply the experts' inputs");
  }
  moe.intermediate_size = moe.shared_intermediate_size = decoder.intermediate_size;
  decoder.intermediate_size =
      fields.integer("intermediate_size_mlp", 1, kMaxIntermediateSize, 16384);
  const int step = fields.integer("interleave_moe_layer_step", 1, kMaxLayers, 1);
  const std::vector<int> listed =
      fields.integers("moe_layers", 0, config.num_layers - 1, kMaxLayers);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    moe.layers.push_back(listed.empty() ? (layer + 1) % step == 0
                                        : std::ranges::find(listed, layer) != listed.end());
  }
  decoder.moe = std::move(moe);
}

void read_gemma4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  if (!fields.boolean("enable_moe_block", false)) return;
  fields.add_spellings("num_experts_per_tok", {"top_k_experts"});
  MoeConfig moe;
  moe.routing = read_routing(fields, config);
  moe.routing.renormalize = true;
  moe.intermediate_size = fields.integer("moe_intermediate_size", 1, kMaxIntermediateSize);
  moe.shared_intermediate_size = decoder.intermediate_size;
  moe.has_branch_norms = true;
  moe.layers.assign(static_cast<size_t>(config.num_layers), true);
  decoder.moe = std::move(moe);
}

void read_hy_v3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  for (const char* key :
       {"qk_norm", "route_norm", "moe_router_use_sigmoid", "moe_router_enable_expert_bias"}) {
    require_switch(fields, key, true);
  }
  MoeConfig moe = read_normalized_sigmoid(
      fields, config, {.num_experts = 192, .top_k = 8, .scale = 2.826, .intermediate_size = 1536});
  moe.shared_intermediate_size = read_shared_size(fields, 1, moe.intermediate_size);
  decoder.moe = std::move(moe);
}

// moe_norm_min is the least sum by which weights are divided. The published value is below any
// router's sum of the largest scores, so it changes nothing.
void read_ernie_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, 64, 6);
  moe.routing.renormalize = true;
  moe.has_correction_bias = true;
  fields.number("moe_norm_min", 0.0, 1e-12, 1e-12);
  fields.expect_value("routed_scaling_factor", 1.0, "1");
  moe.intermediate_size = fields.integer("moe_intermediate_size", 1, kMaxIntermediateSize, 1536);
  moe.shared_intermediate_size = read_shared_size(fields, 2, moe.intermediate_size);
  const int first = fields.integer("first_k_dense_replace", 0, kMaxLayers, 1);
  const int last = fields.integer("moe_layer_end_index", -1, kMaxLayers, -1);
  const int interval = fields.integer("moe_layer_interval", 1, kMaxLayers, 1);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    moe.layers.push_back(layer >= first && (last < 0 || layer <= last) &&
                         (layer + 1) % interval == 0);
  }
  decoder.moe = std::move(moe);
}

void read_minimax_m2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, 256, 8);
  moe.routing.scores = RouterScores::kSigmoid;
  moe.routing.renormalize = true;
  moe.has_correction_bias = true;
  require_text(fields, "scoring_func", "sigmoid");
  require_switch(fields, "use_routing_bias", true);
  require_switch(fields, "use_qk_norm", true);
  if (fields.integer("shared_intermediate_size", 0, kMaxIntermediateSize, 0) != 0) {
    fields.fail("shared_intermediate_size", "a size", "0: no expert is shared");
  }
  moe.intermediate_size = decoder.intermediate_size;
  moe.layers.assign(static_cast<size_t>(config.num_layers), true);
  decoder.moe = std::move(moe);
}

void read_qwen3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe = read_qwen3_experts(fields, config, {});
  moe.routing.renormalize = fields.boolean("norm_topk_prob", false);
  if (fields.boolean("use_sliding_window", false)) {
    fields.fail("use_sliding_window", "true", "false: windows of Qwen3-MoE are not supported");
  }
  decoder.moe = std::move(moe);
}

void read_qwen3_vl_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe = read_qwen3_experts(fields, config,
                                     {.num_experts = 60, .top_k = 4, .intermediate_size = 1408});
  moe.routing.renormalize = true;
  decoder.moe = std::move(moe);
}

void read_qwen3_5_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  read_moe_with_shared_gate(fields, config, {.num_experts = 256, .intermediate_size = 512},
                            decoder);
}

void read_qwen3_next_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  read_moe_with_shared_gate(fields, config,
                            {.num_experts = 512, .top_k = 10, .intermediate_size = 512}, decoder);
}

void read_mixtral_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  decoder.moe = read_plain_experts(fields, config, decoder, 8, 2);
}

// The softmax of the chosen experts' logits is the normalized part of the softmax of all logits.
void read_gpt_oss_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  decoder.moe = read_plain_experts(fields, config, decoder, 128, 4);
  decoder.moe->has_biases = true;
}

}  // namespace quire

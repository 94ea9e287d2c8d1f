#include <fmt/format.h>

#include <algorithm>

#include "model/gguf/gguf_config_writer.h"

namespace quire {
namespace {

// The numbers of expert_gating_func. 0 stands for the architecture's usual one.
constexpr int64_t kSoftmax = 1;
constexpr int64_t kSigmoid = 2;

constexpr std::string_view kGating = "expert_gating_func";
constexpr std::string_view kSharedWidth = "expert_shared_feed_forward_length";

}  // namespace

// Some architectures also have files without experts.
bool GgufConfigWriter::has_experts() const {
  const bool may_be_dense = row_.variant_key == kExpertCount || row_.has_latents || row_.is_gemma4;
  return row_.experts != GgufExperts::kNone && (!may_be_dense || is_set(kExpertCount));
}

bool GgufConfigWriter::has_sigmoid_router() const {
  return gating_of(integer(kGating).value_or(0)) == kSigmoid;
}

// Files of GLM-4.7-Flash may lack the field. llama.cpp identifies them by these sizes.
int64_t GgufConfigWriter::gating_of(int64_t stated) const {
  if (stated != 0) return stated;
  if (row_.gating == GgufGating::kSigmoid) return kSigmoid;
  const std::optional<int64_t> blocks = integer("block_count");
  const GgufTensor* const embedding = gguf_.tensor("token_embd.weight");
  const bool is_glm = row_.gating == GgufGating::kSoftmaxOrSigmoid && embedding != nullptr &&
                      !embedding->shape.empty() && embedding->shape[0] == 154880 &&
                      (blocks == 47 || blocks == 48);
  return is_glm ? kSigmoid : kSoftmax;
}

ExpertRouting GgufConfigWriter::read_routing() {
  ExpertRouting routing;
  const int64_t num_experts = integer(kExpertCount, 1, kMaxExperts);
  routing.num_experts = static_cast<int>(num_experts);
  routing.top_k = static_cast<int>(integer("expert_used_count", 1, num_experts));
  const int64_t gating = gating_of(integer(kGating, 0, kAnyInteger, 0));
  const bool takes_softmax = row_.gating != GgufGating::kSigmoid;
  const bool takes_sigmoid = row_.gating != GgufGating::kSoftmax;
  if (!(takes_softmax && gating == kSoftmax) && !(takes_sigmoid && gating == kSigmoid)) {
    fail(kGating, std::to_string(gating),
         fmt::format("{}{}{}", takes_softmax ? "1 (softmax)" : "",
                     takes_softmax && takes_sigmoid ? " or " : "",
                     takes_sigmoid ? "2 (sigmoid)" : ""));
  }
  if (gating == kSigmoid) routing.scores = RouterScores::kSigmoid;
  routing.num_groups =
      std::max(1, static_cast<int>(integer("expert_group_count", 0, num_experts, 1)));
  routing.top_groups =
      std::max(1, static_cast<int>(integer("expert_group_used_count", 0, num_experts, 1)));
  if (gating == kSigmoid) routing.group_scores = GroupScores::kTwoLargest;
  if (is_valid(routing)) return routing;
  fail("expert_group_count",
       fmt::format("{} of which {} are used, with {} experts and {} per token", routing.num_groups,
                   routing.top_groups, routing.num_experts, routing.top_k),
       "equal groups, of which the used ones have enough experts for a token");
  return routing;
}

// llama.cpp decides by the architecture whether weights are normalized.
void GgufConfigWriter::write_experts() {
  const ExpertRouting routing = read_routing();
  json_.field("num_experts", routing.num_experts);
  json_.field("num_experts_per_tok", routing.top_k);
  if (has_groups() || row_.experts == GgufExperts::kShared) return write_scaled_experts(routing);
  const double scale = number("expert_weights_scale", 1.0);
  if (scale != 0.0 && scale != 1.0) {
    fail("expert_weights_scale", fmt::format("{}", scale), "1 for this architecture");
  }
  if (routing.num_groups != 1) {
    fail("expert_group_count", std::to_string(routing.num_groups), "1 for this architecture");
  }
  if (row_.experts != GgufExperts::kOfOwnWidth) return;
  json_.field("moe_intermediate_size", integer("expert_feed_forward_length", 1, kAnyInteger));
  if (row_.is_gemma4) return json_.field("enable_moe_block", true);
  json_.field("norm_topk_prob", true);
}

// A file has the number of shared experts, or the width of all together.
int64_t GgufConfigWriter::num_shared_experts(int64_t width) {
  constexpr std::string_view kCount = "expert_shared_count";
  if (find(kCount) != nullptr || has_groups()) return integer(kCount, 0, kMaxExperts, 0);
  const int64_t all = integer(kSharedWidth, 0, kAnyInteger, width);
  if (all % width != 0) {
    fail(kSharedWidth, std::to_string(all), fmt::format("a multiple of an expert's, {}", width));
  }
  return all / width;
}

// The number of blocks before the first one with experts, if the field is absent.
int64_t GgufConfigWriter::num_dense_layers() const {
  int64_t count = 0;
  while (has(fmt::format("blk.{}.ffn_gate.weight", count))) ++count;
  return count;
}

// In files without groups, which are older than the field, the router chooses among all experts, as
// llama.cpp computes them. With groups, DeepSeek-V2 scores a group by its best expert, as its
// authors define it; llama.cpp takes the two best, as in V3.
void GgufConfigWriter::write_scaled_experts(const ExpertRouting& routing) {
  constexpr std::string_view kNorm = "expert_weights_norm";
  const bool is_sigmoid = routing.scores == RouterScores::kSigmoid;
  const int64_t width = integer("expert_feed_forward_length", 1, kAnyInteger);
  json_.field("moe_intermediate_size", width);
  // The family may have a field for the width instead.
  const bool has_width = std::ranges::count(row_.fields, kSharedWidth, &GgufField::key) > 0;
  if (!has_width) json_.field("n_shared_experts", num_shared_experts(width));
  json_.field("first_k_dense_replace",
              integer("leading_dense_block_count", 0, kAnyInteger, num_dense_layers()));
  const double scale = number("expert_weights_scale", 1.0);
  json_.field("routed_scaling_factor", scale == 0.0 ? 1.0 : scale);  // llama.cpp's 0 is no scale
  const bool normalizes = boolean(kNorm, row_.normalizes);
  if (!has_groups()) {
    if (!normalizes) fail(kNorm, "false", "true for this architecture");
    if (routing.num_groups != 1) {
      fail("expert_group_count", std::to_string(routing.num_groups), "1 for this architecture");
    }
    return;
  }
  json_.field("scoring_func", is_sigmoid ? "sigmoid" : "softmax");
  const char* const softmax_method = routing.num_groups > 1 ? "group_limited_greedy" : "greedy";
  json_.field("topk_method", is_sigmoid ? "noaux_tc" : softmax_method);
  json_.field("n_group", routing.num_groups);
  json_.field("topk_group", routing.top_groups);
  json_.field("norm_topk_prob", normalizes);
}

}  // namespace quire

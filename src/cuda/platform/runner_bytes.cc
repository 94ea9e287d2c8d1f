#include "cuda/platform/runner_bytes.h"

#include <cstdint>
#include <utility>

#include "cuda/platform/prompt_logprobs.h"
#include "cuda/sample/device_sampler.h"
#include "cuda/step/draft_inputs.h"

namespace quire::cuda {
namespace {

// Device memory per graph, and per layer of a graph: 1.5 times the use on an H200, where 92 graphs
// of 32 layers took 96 MiB.
constexpr int64_t kGraphBytes = int64_t{64} << 10;
constexpr int64_t kGraphLayerBytes = int64_t{48} << 10;
// Memory that NCCL adds per layer of a graph: 4 to 5 times kGraphLayerBytes on two H200s.
constexpr int64_t kGraphCollectivesBytes = 6 * kGraphLayerBytes;
// Device memory for kernels, which CUDA loads at their first launch, and for the rounding of
// allocations: an 8B model took 73 MiB on an H200. It includes the workspaces of products with FP8
// and packed weights.
constexpr int64_t kLibraryBytes = int64_t{256} << 20;

size_t draft_bytes(const RunnerSizes& sizes) {
  if (sizes.num_draft_layers == 0) return 0;
  StepLimits step = step_limits(sizes);
  step.max_num_tokens += sizes.max_num_seqs;  // an ordinary model's limit is the largest
  const DraftLimits limits = {.step = std::move(step), .q_len = sizes.draft_q_len};
  return DraftInputs::device_bytes(limits);
}

// Passes of the drafter's model in the graphs for one batch shape: two of them read the step, one
// with proposals and one without. Each other pass computes one draft, or all drafts as a block.
int num_draft_passes(const RunnerSizes& sizes) {
  return 2 + (sizes.draft_q_len > 1 ? 1 : sizes.limits.num_drafts);
}

int64_t graph_bytes(const RunnerSizes& sizes, std::span<const AttentionSelector> attention) {
  const int64_t layer_bytes =
      kGraphLayerBytes + (sizes.limits.parallel.size > 1 ? kGraphCollectivesBytes : 0);
  const DecodeGraphs graphs = decode_graphs(sizes, attention);
  const int64_t target_bytes =
      static_cast<int64_t>(graphs.all().size()) * (kGraphBytes + sizes.num_layers * layer_bytes);
  if (sizes.num_draft_layers == 0) return target_bytes;
  // Per batch size and query length, two graphs read the step, and another proposes drafts.
  const auto num_shapes = static_cast<int64_t>(graphs.batch_sizes().size()) *
                          static_cast<int64_t>(graphs.q_lens().size());
  const int64_t num_layers = int64_t{num_draft_passes(sizes)} * sizes.num_draft_layers;
  return target_bytes + num_shapes * (3 * kGraphBytes + num_layers * layer_bytes);
}

}  // namespace

StepLimits step_limits(const RunnerSizes& sizes) {
  const ModelLimits& limits = sizes.limits;
  // In every block table, the step's new tokens fill whole pages, and each sequence may begin one
  // more page. A second page per sequence leaves room for short prefix hits; further pages are
  // uploaded before the packed step (overflow_pages).
  const int pages_per_table = limits.max_num_tokens / limits.page_size + 2 * sizes.max_num_seqs;
  return {.max_num_seqs = sizes.max_num_seqs,
          .max_num_tokens = limits.max_num_tokens,
          .max_num_logit_rows = limits.max_num_logit_rows,
          .max_kv_len = limits.max_kv_len(),
          .page_size = limits.page_size,
          .decode_q_len = limits.decode_q_len(),
          .windows = sizes.windows,
          .max_new_pages = pages_per_table * static_cast<int>(sizes.windows.size())};
}

DeviceSamplerLimits sampler_limits(const RunnerSizes& sizes) {
  const ModelLimits& limits = sizes.limits;
  return {.max_num_seqs = sizes.max_num_seqs,
          .max_rule_seqs = sizes.max_num_rule_seqs,
          .max_rows = limits.max_num_logit_rows,
          .vocab_size = sizes.vocab_size,
          .max_tokens_per_seq = limits.max_model_len,
          .num_drafts = limits.num_drafts,
          .rank = limits.parallel.rank,
          .num_ranks = limits.parallel.size};
}

DecodeGraphs decode_graphs(const RunnerSizes& sizes, std::span<const AttentionSelector> attention) {
  return {attention, sizes.max_num_seqs, sizes.limits.max_kv_len(), sizes.decode_q_lens};
}

RunnerBytes runner_bytes(const RunnerSizes& sizes, std::span<const AttentionSelector> attention) {
  const size_t buffers = StepBuffers::device_bytes(step_limits(sizes)) +
                         DeviceSampler::device_bytes(sampler_limits(sizes)) +
                         PromptLogprobs::device_bytes(sizes.limits) + draft_bytes(sizes);
  const int64_t graphs = sizes.enforce_eager ? 0 : graph_bytes(sizes, attention);
  return {.buffers = static_cast<int64_t>(buffers), .reserve = kLibraryBytes + graphs};
}

}  // namespace quire::cuda

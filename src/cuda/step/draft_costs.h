// The costs of decode steps by their number of drafts, measured at start.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cuda/step/decode_graphs.h"
#include "platform/uniform_drafts.h"

namespace quire::cuda {

// The work of one step of padding in a graph's batch, with different tokens. Padding has no
// context, so the times lack the reads of keys and values. These take about as long for one query
// token as for several of the same sequence. Without them, drafts seem to cost a larger share of a
// step than they do, so with long contexts fewer drafts are chosen than would pay. The times also
// lack work that padding skips although it grows with the number of drafts: the sampling of a
// step's rows, the choice of drafts from logits, the tokens of recurrent states, and the search of
// a drafter by lookup.
struct PaddingStep {
  std::function<Status(const DecodeGraph& graph)> verify;  // enqueues the step itself
  // Enqueues proposals for the spans of the last verify().
  std::function<Status(const DecodeGraph& graph, int num_drafts)> propose;
};

// The batch sizes that are measured: each of the ascending `batch_sizes` that is at least a third
// larger than the one before, and the last. The costs between them are interpolated.
std::vector<int> measured_batch_sizes(std::span<const int> batch_sizes);

// The batch sizes and numbers of drafts that are measured, without times: each query length of
// `graphs`, the first of which is 1, in batches of the measured sizes.
DraftCosts measured_draft_steps(const DecodeGraphs& graphs);
// Measures these steps. Must not run while a step is in flight. If several ranks share the model,
// all measure at the same time, because their graphs wait for each other.
Result<DraftCosts> measure_draft_costs(const DecodeGraphs& graphs, DraftCosts steps,
                                       const PaddingStep& step, CudaStream& stream);
void log_draft_costs(const DraftCosts& costs);

}  // namespace quire::cuda

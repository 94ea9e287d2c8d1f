#include "cuda/platform/draft_stage.h"

#include <algorithm>

#include "base/log.h"
#include "cuda/sample/device_sampler.h"

namespace quire::cuda {

DraftCall DraftStage::call_of(const DraftStep& step, int num_spans, int num_drafts) const {
  return {.slots = step.arrays->span_slots,
          .num_spans = num_spans,
          .num_next_drafts = num_drafts,
          .num_computed = step.sampler->num_computed(),
          .next_tokens = step.sampler->next_tokens(),
          .device_step = &step,
          .probs = step.sampler->draft_probs()};
}

const CudaGraph* DraftStage::find_read(const GraphBatch& batch) const {
  const auto found = std::ranges::find(read_graphs_, batch, &ReadGraph::batch);
  return found == read_graphs_.end() ? nullptr : &found->graph;
}

const CudaGraph* DraftStage::find_proposal(int num_spans, int num_drafts) const {
  const auto found = std::ranges::find_if(proposal_graphs_, [&](const ProposalGraph& graph) {
    return graph.num_spans == num_spans && graph.num_drafts == num_drafts;
  });
  return found == proposal_graphs_.end() ? nullptr : &found->graph;
}

Status DraftStage::run(const DraftStep& step, int num_spans, int num_drafts) {
  const DraftCall call = call_of(step, num_spans, num_drafts);
  QUIRE_RETURN_IF_ERROR(drafter_->prepare_read(call, stream_));
  const bool in_graph = step.graph != nullptr;
  if (const CudaGraph* read = in_graph ? find_read(*step.graph) : nullptr) {
    read->launch(stream_);
  } else {
    QUIRE_RETURN_IF_ERROR(drafter_->read_step(call, stream_));
  }
  QUIRE_RETURN_IF_ERROR(drafter_->prepare_proposal(call, stream_));
  if (const CudaGraph* proposal = in_graph ? find_proposal(num_spans, num_drafts) : nullptr) {
    proposal->launch(stream_);
    return {};
  }
  return drafter_->propose(call, stream_);
}

Status DraftStage::capture(const DraftStep& step) {
  if (!drafter_->has_graphs()) return {};
  const GraphBatch& batch = *step.graph;
  const DraftCall call = call_of(step, batch.num_reqs, batch.q_len - 1);
  // Runs the work once before it is captured, because a library may initialize on first use what it
  // must not initialize within a capture.
  QUIRE_RETURN_IF_ERROR(run(step, call.num_spans, call.num_next_drafts));
  if (find_read(batch) == nullptr) {
    QUIRE_RETURN_IF_ERROR(drafter_->prepare_read(call, stream_));
    QUIRE_ASSIGN_OR_RETURN(CudaGraph graph, CudaGraph::capture(stream_, [&] {
                             return drafter_->read_step(call, stream_);
                           }));
    read_graphs_.push_back({batch, std::move(graph)});
  }
  if (find_proposal(call.num_spans, call.num_next_drafts) == nullptr) {
    QUIRE_RETURN_IF_ERROR(drafter_->prepare_proposal(call, stream_));
    QUIRE_ASSIGN_OR_RETURN(CudaGraph graph, CudaGraph::capture(stream_, [&] {
                             return drafter_->propose(call, stream_);
                           }));
    proposal_graphs_.push_back({call.num_spans, call.num_next_drafts, std::move(graph)});
  }
  return {};
}

void DraftStage::log_graphs() const {
  if (read_graphs_.empty()) return;
  log_info("[cuda] captured {} graphs for the drafter",
           read_graphs_.size() + proposal_graphs_.size());
}

}  // namespace quire::cuda

#include "cuda/platform/draft_stage.h"

#include <algorithm>

#include "base/log.h"
#include "cuda/sample/device_sampler.h"

namespace quire::cuda {

CudaDraftCall DraftStage::call_of(const DraftStep& step, int num_spans, int num_drafts) const {
  return {.slots = step.arrays->span_slots,
          .num_spans = num_spans,
          .num_drafts = num_drafts,
          .num_computed = step.sampler->num_computed(),
          .next_tokens = step.sampler->next_tokens(),
          .step = &step};
}

const CudaGraph* DraftStage::find_read(const GraphBatch& batch, bool is_for_proposals) const {
  const auto found = std::ranges::find_if(read_graphs_, [&](const ReadGraph& graph) {
    return graph.batch == batch && graph.is_for_proposals == is_for_proposals;
  });
  return found == read_graphs_.end() ? nullptr : &found->graph;
}

const CudaGraph* DraftStage::find_proposal(int num_spans, int num_drafts) const {
  const auto found = std::ranges::find_if(proposal_graphs_, [&](const ProposalGraph& graph) {
    return graph.num_spans == num_spans && graph.num_drafts == num_drafts;
  });
  return found == proposal_graphs_.end() ? nullptr : &found->graph;
}

Status DraftStage::run(const DraftStep& step, int num_spans, int num_drafts) {
  const CudaDraftCall call = call_of(step, num_spans, num_drafts);
  QUIRE_RETURN_IF_ERROR(drafter_->prepare_read(call, stream_));
  const bool in_graph = step.graph != nullptr;
  if (const CudaGraph* read = in_graph ? find_read(*step.graph, num_drafts > 0) : nullptr) {
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
  const int num_drafts = batch.q_len - 1;
  // A step without drafts may be followed by proposals.
  for (const int num_proposals : {0, std::max(num_drafts, 1)}) {
    QUIRE_RETURN_IF_ERROR(run(step, batch.num_reqs, num_proposals));
    QUIRE_RETURN_IF_ERROR(capture_read(batch, call_of(step, batch.num_reqs, num_proposals)));
  }
  return num_drafts == 0 ? Status() : capture_proposal(call_of(step, batch.num_reqs, num_drafts));
}

Status DraftStage::capture_read(const GraphBatch& batch, const CudaDraftCall& call) {
  const bool is_for_proposals = call.num_drafts > 0;
  if (find_read(batch, is_for_proposals) != nullptr) return {};
  QUIRE_RETURN_IF_ERROR(drafter_->prepare_read(call, stream_));
  QUIRE_ASSIGN_OR_RETURN(CudaGraph graph, CudaGraph::capture(stream_, [&] {
                           return drafter_->read_step(call, stream_);
                         }));
  read_graphs_.push_back({batch, is_for_proposals, std::move(graph)});
  return {};
}

Status DraftStage::capture_proposal(const CudaDraftCall& call) {
  if (find_proposal(call.num_spans, call.num_drafts) != nullptr) return {};
  QUIRE_RETURN_IF_ERROR(drafter_->prepare_proposal(call, stream_));
  QUIRE_ASSIGN_OR_RETURN(CudaGraph graph, CudaGraph::capture(stream_, [&] {
                           return drafter_->propose(call, stream_);
                         }));
  proposal_graphs_.push_back({call.num_spans, call.num_drafts, std::move(graph)});
  return {};
}

void DraftStage::log_graphs() const {
  if (read_graphs_.empty()) return;
  log_info("[cuda] captured {} graphs for the drafter",
           read_graphs_.size() + proposal_graphs_.size());
}

}  // namespace quire::cuda

// The drafter's work after each step of a runner, and its graphs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cuda/base/stream.h"
#include "cuda/platform/cuda_drafter.h"
#include "cuda/step/decode_graphs.h"
#include "cuda/step/draft_inputs.h"

namespace quire::cuda {

class DraftStage {
 public:
  // `stream` must outlive the object.
  DraftStage(std::shared_ptr<CudaDrafter> drafter, CudaStream& stream)
      : drafter_(std::move(drafter)), stream_(stream) {}

  // Applies the plan's removed and added slots, before its step.
  Status update_slots(const BatchPlan& plan) { return drafter_->update_slots(plan, stream_); }
  // Enqueues the drafter's work after a step whose tokens have been sampled, as graphs if they were
  // captured. num_drafts: proposals per sequence.
  Status run(const DraftStep& step, int num_spans, int num_drafts);
  // Captures three graphs of the work after steps of the shape step.graph: reading the step before
  // proposals, reading it without proposals, and proposing as many drafts as such a step verifies.
  // `step` has only padding. Does nothing if the drafter has no graphs.
  Status capture(const DraftStep& step);
  void log_graphs() const;

 private:
  // Each captures a graph unless it exists. The call's work must have run eagerly before, because a
  // library may have to initialize on first use, which must not happen within a capture.
  Status capture_read(const GraphBatch& batch, const CudaDraftCall& call);
  Status capture_proposal(const CudaDraftCall& call);

  // Reads and proposals have separate graphs, because a step may verify another number of drafts
  // than the drafter proposes after it.
  struct ReadGraph {
    GraphBatch batch;
    bool is_for_proposals = false;
    CudaGraph graph;
  };
  struct ProposalGraph {
    int num_spans = 0;
    int num_drafts = 0;
    CudaGraph graph;
  };

  CudaDraftCall call_of(const DraftStep& step, int num_spans, int num_drafts) const;
  const CudaGraph* find_read(const GraphBatch& batch, bool is_for_proposals) const;
  const CudaGraph* find_proposal(int num_spans, int num_drafts) const;

  std::shared_ptr<CudaDrafter> drafter_;
  CudaStream& stream_;
  std::vector<ReadGraph> read_graphs_;
  std::vector<ProposalGraph> proposal_graphs_;
};

}  // namespace quire::cuda

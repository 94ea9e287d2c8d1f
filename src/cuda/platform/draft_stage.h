// The drafter's part of a runner's steps: how many drafts each step verifies and proposes, and the
// graphs of the drafter's work.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda/base/stream.h"
#include "cuda/step/decode_graphs.h"
#include "cuda/step/draft_inputs.h"
#include "platform/drafter.h"
#include "platform/uniform_drafts.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

class DraftStage {
 public:
  // `drafter` may be null: then no step has drafts. It and `stream` outlive the object.
  DraftStage(Drafter* drafter, int num_slots, CudaStream& stream)
      : drafter_(drafter), stream_(stream), drafts_(num_slots) {}

  // Enqueues the drafter's work after a step whose tokens have been sampled, as graphs if they were
  // captured. num_drafts: proposals per sequence.
  Status run(const DraftStep& step, int num_spans, int num_drafts);
  // Captures the work after steps of the shape step.graph: one graph that reads the step, and one
  // that proposes as many drafts as such a step verifies. `step` is one of padding alone. Does
  // nothing if the drafter has no graphs.
  Status capture(const DraftStep& step);
  void log_graphs() const;

  // As the functions of StepDrafts.
  void adapt(DraftCosts costs) { drafts_.adapt(std::move(costs)); }
  int num_verified(int num_decoding, int max_drafts) const {
    return drafts_.num_verified(num_decoding, max_drafts);
  }
  std::shared_ptr<const BatchPlan> without_missing(std::shared_ptr<const BatchPlan> plan) const {
    return drafts_.without_missing(std::move(plan));
  }
  int plan_proposals(const BatchPlan& plan) { return drafts_.plan_proposals(plan); }
  void observe(const BatchPlan& plan, std::span<const SpanResult> results) {
    drafts_.observe(plan, results);
  }

 private:
  struct ReadGraph {
    GraphBatch batch;
    CudaGraph graph;
  };
  struct ProposalGraph {
    int num_spans = 0;
    int num_drafts = 0;
    CudaGraph graph;
  };

  DraftCall call_of(const DraftStep& step, int num_spans, int num_drafts) const;
  const CudaGraph* find_read(const GraphBatch& batch) const;
  const CudaGraph* find_proposal(int num_spans, int num_drafts) const;

  Drafter* drafter_;
  CudaStream& stream_;
  StepDrafts drafts_;
  std::vector<ReadGraph> read_graphs_;
  std::vector<ProposalGraph> proposal_graphs_;
};

}  // namespace quire::cuda

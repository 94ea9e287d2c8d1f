// The drafter of a CudaRunner.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/base/stream.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/step/draft_inputs.h"
#include "platform/drafter.h"
#include "platform/runner.h"
#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

// The slots that sampled in a step, after the step's tokens were accepted. All pointers but `step`
// are to device memory.
struct CudaDraftCall {
  const int32_t* slots = nullptr;  // [num_spans]; < 0: no proposal for this span
  int num_spans = 0;
  // Proposals for each span, 0 to DrafterLimits::num_drafts: an upper bound of the drafts that the
  // next step verifies. It is one number, because all spans of a step have the same length. With 0,
  // the drafter does only the work that its later proposals need; a draft head writes keys and
  // values and computes no output. The bound is fixed one step ahead, because propose() runs after
  // the previous step.
  int num_drafts = 0;
  // By slot: number of tokens whose keys and values are in the cache.
  const int32_t* num_computed = nullptr;
  // [slots, 1 + DrafterLimits::num_drafts]. Entry 0 of a slot is its newest token, at position
  // num_computed; the drafter writes the entries after it. A proposal may be any token id of the
  // vocabulary.
  int32_t* next_tokens = nullptr;
  const DraftStep* step = nullptr;  // the step itself
};

class CudaDrafter : public Drafter {
 public:
  // Applies the plan's removed and added slots, before its step.
  virtual Status update_slots(const BatchPlan& plan, CudaStream& stream) = 0;
  // The host's part of the next read_step(): it chooses kernels and enqueues copies.
  virtual Status prepare_read(const CudaDraftCall& /*call*/, CudaStream& /*stream*/) { return {}; }
  // Called after each step, before propose(). Enqueues the work on the step that later proposals
  // need, such as writing the keys and values of its tokens.
  virtual Status read_step(const CudaDraftCall& /*call*/, CudaStream& /*stream*/) { return {}; }
  // Like prepare_read(), for the next propose(). It follows read_step(), because one attention
  // plan, which holds the state of one pass, may serve both.
  virtual Status prepare_proposal(const CudaDraftCall& /*call*/, CudaStream& /*stream*/) {
    return {};
  }
  // Enqueues the proposals that the next step verifies.
  virtual Status propose(const CudaDraftCall& call, CudaStream& stream) = 0;
  // Whether graphs may replace read_step() for one batch shape, with proposals or without, and
  // propose() for one number of spans and drafts. They are captured once, and replayed after
  // prepare_read() and prepare_proposal().
  virtual bool has_graphs() const { return false; }
};

// Makes the drafter of a runner, or null without one. `ops` and `stream` must outlive the drafter.
Result<std::shared_ptr<CudaDrafter>> make_drafter(const DraftSource& source,
                                                  const DrafterLimits& limits, CudaOps& ops,
                                                  CudaStream& stream);

}  // namespace quire::cuda

// The start of a GPU's runner: it allocates everything that a step uses, loads and measures the
// kernels, captures the graphs, and measures the costs of drafts.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/platform/draft_stage.h"
#include "cuda/platform/prompt_logprobs.h"
#include "cuda/platform/target_pass.h"
#include "cuda/step/decode_graphs.h"
#include "platform/runner.h"
#include "platform/uniform_drafts.h"

namespace quire::cuda {

struct StepTimers {
  Stopwatch verify;  // the target and sampling
  Stopwatch draft;   // the drafter
};

// Host memory and timers of one step in flight.
struct StepResults {
  Buffer sampled;          // pinned; with an embedding model, its hidden states
  Buffer prompt_logprobs;  // pinned, PromptLogprobs::results_bytes
  Buffer next_tokens;      // pinned, DeviceSampler::next_tokens(); empty without a drafter
  CudaEvent arrived;
  std::optional<StepTimers> timers;  // absent without a drafter
};

// Everything that the steps of a runner use.
struct StepParts {
  StepParts(const RunnerParts& from, CudaOps& ops, CudaStream& own_stream);
  // Waits for the device, which may still use the memory.
  ~StepParts();
  StepParts(const StepParts&) = delete;
  StepParts& operator=(const StepParts&) = delete;

  const RunnerParts runner;
  CudaStream& stream;
  TargetPass target;
  PromptLogprobs prompt_logprobs;
  std::vector<StepResults> results;
  DecodeGraphs graphs;
  std::optional<DraftStage> draft_stage;  // absent without a drafter
  // The costs by which the runner chooses each step's number of drafts. Absent: all are verified.
  std::optional<DraftCosts> draft_costs;
};

// Starts a runner. `parts` is copied; the objects that it points to, `ops` and `stream` must
// outlive the result. Captures the graphs of decode steps unless sizes.enforce_eager.
Result<std::unique_ptr<StepParts>> start_runner(const RunnerParts& parts, CudaOps& ops,
                                                CudaStream& stream);

}  // namespace quire::cuda

// An attention problem in the current GPU's memory, run there and read back as floats.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "attn/backend.h"
#include "cuda/base/stream.h"
#include "support/attention_cases.h"

namespace quire::testing {

// Queries and outputs have type `q`. Outputs and the workspace are poisoned (NaN) before a run; the
// workspace is exactly as large as the plans require. The bytes after it and after the output must
// not change, and those after each input are poisoned too.
class CudaAttentionProblem {
 public:
  CudaAttentionProblem(const AttentionCase& spec, DType q);

  const AttentionProblem& host() const { return host_; }
  const AttentionShape& shape() const { return shape_; }

  // The fp64 reference's result for the same rounded inputs, at these lengths.
  AttentionResult expected(const std::vector<int32_t>& seq_lens) const {
    return expected(seq_lens, shape_);
  }
  // Returns the result for a shape whose features differ from the case's.
  AttentionResult expected(const std::vector<int32_t>& seq_lens, AttentionShape shape) const;

  // Returns whether the backend serves a phase of this problem, or all reasons why it does not.
  Support supports(AttentionBackend& backend, const Device& device, Phase phase,
                   bool in_graph = false) const;

  // Makes plans for those phases that the backend supports, updates and runs them, and waits. Rows
  // of other phases stay NaN.
  AttentionResult run(AttentionBackend& backend, const Device& device);

  // Captures the decode phase once, planned for lengths of 0 and contexts up to the case's longest.
  // For each entry of `lengths` it then updates the plan with upper bounds, replays the graph and
  // reads the result.
  std::vector<AttentionResult> replay(AttentionBackend& backend, const Device& device,
                                      const std::vector<std::vector<int32_t>>& lengths);

  // The separate steps of run() and replay(), for problems whose steps interleave. make_plans() and
  // update() apply to the phases that the backend supports; a graph holds the decode phase.
  void make_plans(AttentionBackend& backend, const Device& device, bool in_graph);
  void update();
  void run_plans();
  void capture();
  void launch_graph();
  AttentionResult read_back();
  // Overwrites the output and the workspace of earlier runs.
  void poison();

  // From now on, the keys and values of the step's tokens are NaN when plans start to run, and a
  // kernel just before them writes them late (late_copy.h). claims_settled: the batch claims that
  // they were complete before, so that a kernel may read the NaN.
  void write_new_tokens_late(bool claims_settled = false);

  // The lengths of the case.
  const std::vector<int32_t>& seq_lens() const { return seq_lens_; }

 private:
  using Graph = std::unique_ptr<CUgraphExec_st, cudaError_t (*)(cudaGraphExec_t)>;

  void upload_cache();
  void hide_new_tokens(const std::vector<int32_t>& seq_lens);
  PlanLimits limits(Phase phase, bool in_graph) const;
  AttentionCall call();
  void set_lengths(const std::vector<int32_t>& seq_lens);

  AttentionProblem host_;
  AttentionShape shape_;
  AttentionBatch batch_;  // arrays of the device, bounds of the host
  std::vector<float> rounded_queries_;
  std::vector<int32_t> seq_lens_;
  std::unique_ptr<cuda::CudaStream> stream_;
  Buffer cache_, queries_, out_, sinks_, scales_;
  Buffer complete_cache_;  // with the tokens that are written late; empty: none are
  bool claims_settled_ = false;
  Buffer query_start_, lengths_, settled_lens_, block_table_, kv_slots_, workspace_;
  KvCacheView cache_view_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;
  size_t workspace_bytes_ = 0;
  Graph graph_{nullptr, cudaGraphExecDestroy};
};

}  // namespace quire::testing

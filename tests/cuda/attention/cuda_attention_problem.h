// An attention problem in the memory of the current GPU, run there and read back as floats.
#pragma once

#include <memory>
#include <vector>

#include "attn/backend.h"
#include "cuda/base/stream.h"
#include "support/attention_cases.h"

namespace quire::testing {

// Queries and outputs are `q`; without `lse` none is asked for or read. Everything that is written
// is poisoned before (NaN), the workspace is exactly what the backend asked for, and what lies
// behind it is watched.
class CudaAttentionProblem {
 public:
  CudaAttentionProblem(const AttentionCase& spec, DType q, bool lse);

  const AttentionProblem& host() const { return host_; }
  const AttentionShape& shape() const { return shape_; }

  // What the fp64 reference makes of the same rounded inputs, at these lengths.
  AttentionResult expected(const std::vector<int32_t>& seq_lens) const {
    return expected(seq_lens, shape_);
  }
  // With other features than the case's.
  AttentionResult expected(const std::vector<int32_t>& seq_lens, AttentionShape shape) const;

  // Plans, runs those phases that the backend supports, and waits. Rows of other phases stay NaN.
  AttentionResult run(AttentionBackend& backend, const Device& device);

  // Captures the decode phase once, planned for no lengths and contexts up to the case's longest;
  // then for each of `lengths` plans for upper bounds of them, replays and reads back.
  std::vector<AttentionResult> replay(AttentionBackend& backend,
                                      const std::vector<std::vector<int32_t>>& lengths);

  // The lengths of the case.
  const std::vector<int32_t>& seq_lens() const { return seq_lens_; }

 private:
  void upload_cache();
  void poison();
  void allocate_workspace(AttentionBackend& backend);
  AttentionCall call(Phase phase) const;
  AttentionResult read_back();

  AttentionProblem host_;
  AttentionShape shape_;
  AttentionBatch batch_;  // arrays of the device, bounds of the host
  std::vector<float> rounded_queries_;
  std::vector<int32_t> seq_lens_;
  std::unique_ptr<cuda::CudaStream> stream_;
  Buffer cache_, queries_, out_, lse_, sinks_, scales_;
  Buffer query_start_, lengths_, block_table_, slots_, arena_, counters_;
  KvCacheView cache_view_;
  Workspace workspace_;
};

}  // namespace quire::testing

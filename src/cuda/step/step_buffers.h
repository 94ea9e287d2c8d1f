// The device's side of a step: the block that arrives, the state that stays, and the arrays derived
// from both.
#pragma once

#include <memory>
#include <vector>

#include "attn/batch.h"
#include "cuda/base/pinned_ring.h"
#include "cuda/step/metadata.h"

namespace quire::cuda {

class StepBuffers {
 public:
  // Pieces of pages that go ahead of a block at once: 61,440 pages.
  static constexpr int kMaxPieces = 1024;

  // Zeroes what must be zero in the stream.
  static Result<StepBuffers> create(const StepLimits& limits, CudaStream& stream);
  static size_t device_bytes(const StepLimits& limits);

  // Copies the plan's block to the device, in front of the kernels that read it: one copy, and
  // one more for every kMaxPieces of pages that go ahead. graph: of the graph that runs it, or
  // null.
  Status upload(const BatchPlan& plan, const GraphBatch* graph, CudaStream& stream);
  // Derives the arrays from the block that is there.
  void derive(int num_slices, CudaStream& stream) const;

  StepArrays& arrays() { return arrays_; }
  const StepArrays& arrays() const { return arrays_; }

 private:
  Status append_ahead(const BatchPlan& plan, CudaStream& stream);

  StepLimits limits_;
  PinnedRing ring_, ahead_ring_;
  Buffer memory_;
  // Device; of the step that comes next in the stream.
  std::byte* block_ = nullptr;
  PagePiece* ahead_ = nullptr;  // [kMaxPieces]
  StepArrays arrays_;
};

// A plan as attention sees it: ranges and upper bounds from the host, arrays of the device.
class AttentionInputs {
 public:
  void describe(const BatchPlan& plan, const StepArrays& arrays);
  // Makes what describe() left, of decoding requests alone, the graph's batch, whose contexts may
  // grow to max_kv_len. The bounds stay those of this step; padding has none.
  void pad_to_graph(const GraphBatch& graph, int max_kv_len);

  // One per block table; valid until the next describe().
  std::span<const AttentionBatch* const> batches() const { return views_; }
  // Any of them: ranges and lengths are the same in all.
  const AttentionBatch& batch() const { return batches_.front(); }

 private:
  std::vector<int32_t> query_start_;   // [num_reqs + 1]
  std::vector<int32_t> kv_len_bound_;  // [num_reqs]
  std::vector<AttentionBatch> batches_;
  std::vector<const AttentionBatch*> views_;
};

}  // namespace quire::cuda

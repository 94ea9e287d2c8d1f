// A step's memory on the device: the uploaded block, the persistent state, and the arrays derived
// from both.
#pragma once

#include <memory>
#include <vector>

#include "attn/batch.h"
#include "cuda/base/memory.h"
#include "cuda/step/metadata.h"

namespace quire::cuda {

class StepBuffers {
 public:
  // Pieces of pages that are uploaded at once ahead of a block: 61,440 pages.
  static constexpr int kMaxPieces = 1024;

  // Allocates the memory, and enqueues its initialization.
  static Result<StepBuffers> create(const StepLimits& limits, CudaStream& stream);
  static size_t device_bytes(const StepLimits& limits);

  // Enqueues a copy of the plan's block to the device, ahead of the kernels that read it, and one
  // more copy per kMaxPieces pieces of pages that do not fit into the block. graph: the shape of
  // the graph that runs the plan, or null.
  Status upload(const BatchPlan& plan, const GraphBatch* graph, CudaStream& stream);
  // Derives the arrays from the uploaded block.
  void derive(int num_spans, CudaStream& stream) const;

  StepArrays& arrays() { return arrays_; }
  const StepArrays& arrays() const { return arrays_; }

 private:
  Status append_ahead(const BatchPlan& plan, CudaStream& stream);

  StepLimits limits_;
  PinnedRing ring_, ahead_ring_;
  Buffer memory_;
  // Device; of the next step in the stream.
  std::byte* block_ = nullptr;
  PagePiece* ahead_ = nullptr;  // [kMaxPieces]
  StepArrays arrays_;
};

// A plan in attention's terms: ranges and upper bounds on the host, arrays on the device.
class AttentionInputs {
 public:
  void describe(const BatchPlan& plan, const StepArrays& arrays);
  // Pads the result of describe(), which must contain decoding requests alone, to the graph's
  // batch, whose contexts may grow to max_kv_len. The bounds stay those of this step; those of
  // padding are 0.
  void pad_to_graph(const GraphBatch& graph, int max_kv_len);

  // One per block table; valid until the next describe().
  std::span<const AttentionBatch* const> batches() const { return views_; }
  // The first one; ranges and lengths are the same in all of them.
  const AttentionBatch& batch() const { return batches_.front(); }

 private:
  std::vector<int32_t> query_start_;   // [num_reqs + 1]
  std::vector<int32_t> kv_len_bound_;  // [num_reqs]
  std::vector<AttentionBatch> batches_;
  std::vector<const AttentionBatch*> views_;
};

}  // namespace quire::cuda

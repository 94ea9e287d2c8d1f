// CUDA graphs, and the sizes of steps that get one.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <span>
#include <vector>

#include "cuda/base/stream.h"

namespace quire::cuda {

class CudaGraph {
 public:
  // What `enqueue` puts into the stream, recorded instead of done.
  static Result<CudaGraph> capture(CudaStream& stream, const std::function<Status()>& enqueue);
  CudaGraph() = default;
  CudaGraph(CudaGraph&& other) noexcept;
  CudaGraph& operator=(CudaGraph&& other) noexcept;
  ~CudaGraph();

  void launch(CudaStream& stream) const;

 private:
  cudaGraphExec_t graph_ = nullptr;
};

// Numbers of requests that graphs are captured for, ascending: 1, 2, 4, steps of 8 to 256, steps of
// 16 to max_num_seqs, which is always the last.
std::vector<int> graph_buckets(int max_num_seqs);

// Longest contexts that steps are told apart by, ascending: 256, then doubled, up to max_model_len,
// which is always the last.
std::vector<int> context_buckets(int max_model_len);

// The smallest bucket that holds so many; none: -1.
int bucket_index(std::span<const int> buckets, int size);

}  // namespace quire::cuda

// CUDA graphs, and the step sizes for which graphs are captured.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <span>
#include <vector>

#include "cuda/base/stream.h"

namespace quire::cuda {

class CudaGraph {
 public:
  // Captures the work that `enqueue` puts into the stream, without running it.
  static Result<CudaGraph> capture(CudaStream& stream, const std::function<Status()>& enqueue);
  CudaGraph() = default;
  CudaGraph(CudaGraph&& other) noexcept;
  CudaGraph& operator=(CudaGraph&& other) noexcept;
  ~CudaGraph();

  void launch(CudaStream& stream) const;

 private:
  cudaGraphExec_t graph_ = nullptr;
};

// Numbers of requests for which graphs are captured, ascending: 1, 2, 4, then multiples of 8 up to
// 256, then multiples of 16. The last one is always max_num_seqs.
std::vector<int> graph_buckets(int max_num_seqs);

// Buckets of a step's longest context, ascending: 256, doubled up to max_model_len, which is always
// the last.
std::vector<int> context_buckets(int max_model_len);

// Index of the smallest bucket that is at least `size`; -1 if there is none.
int bucket_index(std::span<const int> buckets, int size);

}  // namespace quire::cuda

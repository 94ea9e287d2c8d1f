// CUDA graphs: capture and launch.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "cuda/base/stream.h"
#include "quire/status.h"

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

}  // namespace quire::cuda

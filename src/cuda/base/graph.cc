#include "cuda/base/graph.h"

#include <utility>

namespace quire::cuda {
namespace {

Status instantiate(cudaGraph_t graph, cudaGraphExec_t* executable) {
  const cudaError_t error = cudaGraphInstantiate(executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  return to_status(error, "cudaGraphInstantiate");
}

}  // namespace

Result<CudaGraph> CudaGraph::capture(CudaStream& stream, const std::function<Status()>& enqueue) {
  QUIRE_RETURN_IF_ERROR(stream.take_error());
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  Status enqueued = enqueue();
  if (enqueued.ok()) enqueued = stream.take_error();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
  if (!enqueued.ok()) {
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    return enqueued;
  }
  QUIRE_RETURN_IF_ERROR(to_status(ended, "cudaStreamEndCapture"));
  CudaGraph captured;
  QUIRE_RETURN_IF_ERROR(instantiate(graph, &captured.graph_));
  return captured;
}

CudaGraph::CudaGraph(CudaGraph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}

CudaGraph& CudaGraph::operator=(CudaGraph&& other) noexcept {
  std::swap(graph_, other.graph_);
  return *this;
}

CudaGraph::~CudaGraph() {
  if (graph_ != nullptr) (void)cudaGraphExecDestroy(graph_);
}

void CudaGraph::launch(CudaStream& stream) const {
  stream.record_error(cudaGraphLaunch(graph_, stream.get()), "a graph's launch");
}

}  // namespace quire::cuda

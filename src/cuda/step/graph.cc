#include "cuda/step/graph.h"

#include <algorithm>
#include <cstdint>
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

std::vector<int> graph_buckets(int max_num_seqs) {
  std::vector<int> buckets;
  const auto add_steps = [&](int first, int last, int step) {
    for (int size = first; size <= std::min(last, max_num_seqs); size += step) {
      buckets.push_back(size);
    }
  };
  for (const int size : {1, 2, 4}) add_steps(size, size, 1);
  add_steps(8, 256, 8);
  add_steps(272, max_num_seqs, 16);
  if (buckets.back() != max_num_seqs) buckets.push_back(max_num_seqs);
  return buckets;
}

std::vector<int> context_buckets(int max_model_len) {
  std::vector<int> buckets;
  for (int64_t length = 256; length < max_model_len; length *= 2) {
    buckets.push_back(static_cast<int>(length));
  }
  buckets.push_back(max_model_len);
  return buckets;
}

int bucket_index(std::span<const int> buckets, int size) {
  const auto found = std::lower_bound(buckets.begin(), buckets.end(), size);
  return found == buckets.end() ? -1 : static_cast<int>(found - buckets.begin());
}

}  // namespace quire::cuda

// How long a backend's attention takes on this device: the call captured in a CUDA graph, four to a
// replay, median of the replays. Keys and values are random, pages distinct and shuffled.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/memory.h"
#include "cuda/base/stream.h"

namespace quire::cuda {

// Every request has q_len query tokens at the end of kv_len.
struct AttentionSize {
  int num_reqs = 0;
  int q_len = 0;
  int kv_len = 0;
};

class AttentionTimer {
 public:
  // One pool of pages for all sizes; page 0 is never read.
  static Result<std::unique_ptr<AttentionTimer>> create(const AttentionShape& shape,
                                                        int64_t num_pages);
  static int64_t num_pages(const AttentionShape& shape, const AttentionSize& size);
  static int64_t page_bytes(const AttentionShape& shape);

  // Microseconds a call, or why the backend cannot. The pool holds the size's pages.
  Result<double> time(AttentionBackend& backend, Phase phase, const AttentionSize& size);

 private:
  AttentionTimer(const AttentionShape& shape, std::unique_ptr<CudaStream> stream, Buffer pool)
      : shape_(shape), stream_(std::move(stream)), pool_(std::move(pool)) {}

  AttentionShape shape_;
  std::unique_ptr<CudaStream> stream_;
  Buffer pool_;
};

}  // namespace quire::cuda

// Weights on their way from host memory (a mapped file's pages, usually) to the device.
#pragma once

#include <optional>

#include "base/thread_pool.h"
#include "cuda/base/pinned_ring.h"
#include "cuda/ops/row_kernels.h"

namespace quire::cuda {

class WeightUpload {
 public:
  explicit WeightUpload(const LaunchContext& context) : context_(context) {}

  // Enqueues device = host, converted where the types differ. The host side may go when this
  // returns: its bytes lie in pinned memory, one part copied by the device while some threads
  // bring the next.
  Status upload(const TensorView& host, const TensorView& device);
  // Enqueues the rows, which lie one after another on the device.
  Status fill(const RepeatedRows& rows, const TensorView& device);
  // Waits for all of that, and frees threads and memory until there is more to do.
  Status release();

 private:
  Status start();

  LaunchContext context_;
  std::optional<ThreadPool> threads_;
  std::optional<PinnedRing> staging_;
  Buffer pool_;  // of the rows filled last
};

}  // namespace quire::cuda

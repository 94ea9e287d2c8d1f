// Uploads weights from host memory (usually a mapped file) to the device.
#pragma once

#include <optional>

#include "base/thread_pool.h"
#include "cuda/base/memory.h"
#include "cuda/ops/row_kernels.h"

namespace quire::cuda {

class WeightUpload {
 public:
  explicit WeightUpload(const LaunchContext& context) : context_(context) {}

  // Enqueues device = host, converted if the types differ. The caller may free the host tensor when
  // this returns: the data then is in pinned memory. The device copies one part while several
  // threads read the next.
  Status upload(const TensorView& host, const TensorView& device);
  // Enqueues the fill of the rows, which are contiguous on the device.
  Status fill(const RepeatedRows& rows, const TensorView& device);
  // Waits for all enqueued uploads, and frees threads and memory until the next one.
  Status release();

 private:
  Status start();

  LaunchContext context_;
  std::optional<ThreadPool> threads_;
  std::optional<PinnedRing> staging_;
  Buffer pool_;  // of the last filled rows
};

}  // namespace quire::cuda

// Measures the time of the backends' attention on a device: AttentionPlan::run(), which is the
// absorbed form of a latent cache.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/base/memory.h"
#include "platform/tune.h"

namespace quire::cuda {

class AttentionMeter {
 public:
  // Uses the current device. Allocates keys and values for the largest workload, or as many pages
  // as fit.
  static Result<std::unique_ptr<AttentionMeter>> create(const MeasureConfig& config);

  Result<MeasuredWorkload> measure(const AttentionWorkload& workload,
                                   std::span<AttentionBackend* const> backends);

 private:
  AttentionMeter(const MeasureConfig& config, std::unique_ptr<CudaStream> stream, Buffer pages,
                 int64_t num_pages)
      : config_(config),
        stream_(std::move(stream)),
        pages_(std::move(pages)),
        num_pages_(num_pages) {}

  const MeasureConfig& config_;
  std::unique_ptr<CudaStream> stream_;
  Buffer pages_;
  int64_t num_pages_;
};

}  // namespace quire::cuda

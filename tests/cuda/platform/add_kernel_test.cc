#include "cuda/platform/add_kernel.h"

#include <vector>

#include "cuda/base/memory.h"
#include "cuda/platform/gpu_engine.h"

namespace quire::cuda {
namespace {

using AddKernel = quire::testing::GpuTest;

TEST_F(AddKernel, AddsEveryElementAndNoMore) {
  const auto stream = std::move(*CudaStream::create());
  for (const size_t count : {1UL, 255UL, 256UL, 1000UL, 123457UL}) {
    std::vector<float> x, summands;
    for (size_t i = 0; i < count + 3; ++i) {
      x.push_back(0.5F * static_cast<float>(i));
      summands.push_back(static_cast<float>(i % 7) - 3.0F);
    }
    const size_t num_bytes = x.size() * sizeof(float);
    const Buffer device_x = std::move(*device_memory(num_bytes));
    const Buffer device_summands = std::move(*device_memory(num_bytes));
    stream->copy_to_device(device_x.data(), x.data(), num_bytes);
    stream->copy_to_device(device_summands.data(), summands.data(), num_bytes);
    launch_add(static_cast<float*>(device_x.data()),
               static_cast<const float*>(device_summands.data()), static_cast<int64_t>(count),
               *stream);
    std::vector<float> sums(x.size());
    stream->copy_to_host(sums.data(), device_x.data(), num_bytes);
    ASSERT_TRUE(stream->synchronize().ok());
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(sums[i], i < count ? x[i] + summands[i] : x[i]) << i << " of " << count;
    }
  }
}

}  // namespace
}  // namespace quire::cuda

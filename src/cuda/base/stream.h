// The order of a device's work, and the only doors through which anything comes back from it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/base/error.h"
#include "quire/status.h"
#include "tensor/device.h"

namespace quire::cuda {

// What launches are checked against.
struct LaunchLimits {
  int device = 0;
  size_t max_shared_bytes = 0;    // dynamic, of one block
  bool overlaps_kernels = false;  // Hopper's and later: programmatic dependent launch
};

class CudaStream final : public Stream {
 public:
  // Of the current device.
  static Result<std::unique_ptr<CudaStream>> create();
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }

  // Enqueued work does not return errors: the first one is kept here, and read once a step.
  void note(cudaError_t error, const char* what,
            std::source_location where = std::source_location::current());
  void note(Status status);
  Status take_error();

  // Both enqueue. The host side should be pinned memory. They note errors.
  void copy_to_device(void* device, const void* host, size_t num_bytes);
  void copy_to_host(void* host, const void* device, size_t num_bytes);
  void set_zero(void* device, size_t num_bytes);

  // Waits for all that was enqueued; also reports what was noted.
  Status synchronize();

  // For the metric and the tests: a step has one of each.
  const DeviceTraffic& traffic() const { return traffic_; }
  DeviceTraffic& traffic() { return traffic_; }
  const LaunchLimits& limits() const { return limits_; }

 private:
  CudaStream(cudaStream_t stream, const LaunchLimits& limits) : stream_(stream), limits_(limits) {}

  cudaStream_t stream_ = nullptr;
  LaunchLimits limits_;
  Status error_;
  DeviceTraffic traffic_;
};

// The seam hands streams around by their base; on this platform every one is a CudaStream.
inline CudaStream& as_cuda(Stream& stream) {
  return static_cast<CudaStream&>(stream);
}

// A point in a stream. Made once, recorded and waited for many times.
class CudaEvent {
 public:
  static Result<CudaEvent> create();
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&& other) noexcept;
  ~CudaEvent();

  void record(CudaStream& stream);
  // The host waits for the recorded point, and counts as waiting in the stream's traffic.
  Status wait(CudaStream& stream) const;
  // Whether the point has passed, without waiting. True of an event never recorded.
  bool has_passed() const;

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}

  cudaEvent_t event_ = nullptr;
};

}  // namespace quire::cuda

// A CUDA stream, its errors, and every way by which data returns from the device to the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/base/error.h"
#include "quire/status.h"
#include "tensor/device.h"

namespace quire::cuda {

// Limits that launches are checked against.
struct LaunchLimits {
  int device = 0;
  size_t max_shared_bytes = 0;    // dynamic, per thread block
  bool overlaps_kernels = false;  // programmatic dependent launch: Hopper and later
};

class CudaStream final : public Stream {
 public:
  // Creates a stream on the current device.
  static Result<std::unique_ptr<CudaStream>> create();
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }

  // Enqueued work does not return errors: the stream keeps the first one, and each step reads it
  // once.
  void note(cudaError_t error, const char* what,
            std::source_location where = std::source_location::current());
  void note(Status status);
  Status take_error();

  // These functions enqueue, and keep errors in the stream. Host memory should be pinned.
  void copy_to_device(void* device, const void* host, size_t num_bytes);
  void copy_to_host(void* host, const void* device, size_t num_bytes);
  void set_zero(void* device, size_t num_bytes);

  // Waits for all enqueued work, and returns the error that the stream kept.
  Status synchronize();

  // For the metric and the tests: a step makes one copy to the host and one wait.
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

// The platform interface passes streams by their base class; on this platform every one is a
// CudaStream.
inline CudaStream& as_cuda(Stream& stream) {
  return static_cast<CudaStream&>(stream);
}

// A point in a stream. An event is created once, then recorded and waited for many times.
class CudaEvent {
 public:
  static Result<CudaEvent> create();
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&& other) noexcept;
  ~CudaEvent();

  void record(CudaStream& stream);
  // Blocks the host until the recorded point; counts as a wait in the stream's traffic.
  Status wait(CudaStream& stream) const;
  // Returns whether the point has passed, without waiting. True for an event that was never
  // recorded.
  bool has_passed() const;

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}

  cudaEvent_t event_ = nullptr;
};

}  // namespace quire::cuda

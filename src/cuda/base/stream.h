// A CUDA stream, which keeps errors and counts copies to the host and waits; events, a stopwatch,
// and CUDA's error codes as Status.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// Returns kResourceExhausted if memory ran out, kUnavailable if there is no usable driver or
// device, and kInternal otherwise; the message names `what` and the source location.
Status to_status(cudaError_t error, const char* what,
                 std::source_location where = std::source_location::current());

// Removes the folders, so that messages do not reveal the build machine's paths.
std::string_view file_name(std::source_location where);

// The properties of the stream's device on which kernels and their launches depend.
struct LaunchLimits {
  int device = 0;
  int compute_capability = 0;  // 10 * major + minor
  int num_sms = 0;
  size_t max_shared_bytes = 0;    // dynamic, per thread block
  bool overlaps_kernels = false;  // programmatic dependent launch: Hopper and later
};

// Work before the steps, such as filling a buffer, must also use a CudaStream. After a fill on
// CUDA's default stream (for example by cudaMemset()), every later kernel of other streams starts
// 0.3 to 0.6 µs later on an H200, also in graphs.
class CudaStream final : public Stream {
 public:
  // Creates a stream on the current device.
  static Result<std::unique_ptr<CudaStream>> create();
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }

  // Enqueued work cannot return errors. The stream keeps the first error, and each step reads it
  // once.
  void record_error(cudaError_t error, const char* what,
                    std::source_location where = std::source_location::current());
  void record_error(Status status);
  Status take_error();

  // These functions enqueue, and keep errors in the stream. Host memory should be pinned.
  void copy_to_device(void* device, const void* host, size_t num_bytes);
  void copy_to_host(void* host, const void* device, size_t num_bytes);
  void fill(void* device, int byte, size_t num_bytes);
  void set_zero(void* device, size_t num_bytes) { fill(device, 0, num_bytes); }

  // Waits for all enqueued work, and returns the error that the stream kept.
  Status synchronize();
  // Whether enqueued work becomes part of a graph.
  bool is_capturing();

  // Copies and waits so far, for the metric and the tests. A step makes one copy and one wait.
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

// The platform interface passes streams by their base class. On this platform every stream is a
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
  // Blocks the host until the device has passed the recorded point; the stream's traffic counts the
  // wait.
  Status wait(CudaStream& stream) const;
  // Returns whether the device has passed the recorded point, without waiting. True for an event
  // that was never recorded.
  bool has_passed() const;

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}

  cudaEvent_t event_ = nullptr;
};

// Measures the device's time between two points of a stream.
class Stopwatch {
 public:
  static Result<Stopwatch> create();
  Stopwatch(Stopwatch&& other) noexcept;
  Stopwatch& operator=(Stopwatch&&) = delete;
  ~Stopwatch();

  void start(CudaStream& stream) const;
  void end(CudaStream& stream) const;
  // Microseconds from start() to end(). The device must have passed both points.
  Result<double> elapsed() const;
  // Calls end() and waits for the device. Returns the microseconds since start(), or the error that
  // the stream kept.
  Result<double> stop(CudaStream& stream) const;

  // Measures the work that `enqueue` puts into the stream.
  template <typename Enqueue>
  Result<double> time(CudaStream& stream, const Enqueue& enqueue) const {
    start(stream);
    QUIRE_RETURN_IF_ERROR(enqueue());
    return stop(stream);
  }

 private:
  Stopwatch() = default;

  std::array<cudaEvent_t, 2> events_ = {};  // with timing, unlike those of CudaEvent
};

}  // namespace quire::cuda

// `QUIRE_CUDA_RETURN_IF_ERROR(cudaMemset(…))`
#define QUIRE_CUDA_RETURN_IF_ERROR(call) \
  QUIRE_RETURN_IF_ERROR(::quire::cuda::to_status((call), #call))

// Measures the device's time between two points of a stream.
#pragma once

#include <array>

#include "cuda/base/stream.h"

namespace quire::cuda {

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

  std::array<cudaEvent_t, 2> events_ = {};  // with timing, unlike CudaEvent's
};

}  // namespace quire::cuda

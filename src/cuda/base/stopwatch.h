// How long the device takes for what lies between two points of a stream.
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
  // Microseconds from start() to end(), which the device must have passed.
  Result<double> elapsed() const;
  // Ends and waits. Microseconds since start(); also reports what the stream noted.
  Result<double> stop(CudaStream& stream) const;

  // Of what `enqueue` puts into the stream.
  template <typename Enqueue>
  Result<double> time(CudaStream& stream, const Enqueue& enqueue) const {
    start(stream);
    QUIRE_RETURN_IF_ERROR(enqueue());
    return stop(stream);
  }

 private:
  Stopwatch() = default;

  std::array<cudaEvent_t, 2> events_ = {};  // unlike CudaEvent's, they know the time
};

}  // namespace quire::cuda

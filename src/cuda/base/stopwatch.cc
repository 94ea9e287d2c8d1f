#include "cuda/base/stopwatch.h"

#include <utility>

namespace quire::cuda {

Result<Stopwatch> Stopwatch::create() {
  Stopwatch watch;
  for (cudaEvent_t& event : watch.events_) QUIRE_CUDA_RETURN_IF_ERROR(cudaEventCreate(&event));
  return watch;
}

Stopwatch::Stopwatch(Stopwatch&& other) noexcept : events_(std::exchange(other.events_, {})) {}

Stopwatch::~Stopwatch() {
  for (cudaEvent_t event : events_) {
    if (event != nullptr) (void)cudaEventDestroy(event);
  }
}

void Stopwatch::start(CudaStream& stream) const {
  stream.note(cudaEventRecord(events_[0], stream.get()), "recording an event");
}

void Stopwatch::end(CudaStream& stream) const {
  stream.note(cudaEventRecord(events_[1], stream.get()), "recording an event");
}

Result<double> Stopwatch::stop(CudaStream& stream) const {
  end(stream);
  QUIRE_RETURN_IF_ERROR(stream.synchronize());
  return elapsed();
}

Result<double> Stopwatch::elapsed() const {
  float milliseconds = 0.0F;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]));
  return 1000.0 * double{milliseconds};
}

}  // namespace quire::cuda

#include "cuda/base/stream.h"

#include <utility>

namespace quire::cuda {
namespace {

Result<LaunchLimits> read_limits() {
  constexpr int kOverlapComputeCapability = 9;
  LaunchLimits limits;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDevice(&limits.device));
  int bytes = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, limits.device));
  int major = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, limits.device));
  limits.max_shared_bytes = static_cast<size_t>(bytes);
  limits.overlaps_kernels = major >= kOverlapComputeCapability;
  return limits;
}

}  // namespace

Result<std::unique_ptr<CudaStream>> CudaStream::create() {
  QUIRE_ASSIGN_OR_RETURN(const LaunchLimits limits, read_limits());
  cudaStream_t stream = nullptr;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return std::unique_ptr<CudaStream>(new CudaStream(stream, limits));
}

CudaStream::~CudaStream() {
  (void)cudaStreamSynchronize(stream_);
  (void)cudaStreamDestroy(stream_);
}

void CudaStream::note(cudaError_t error, const char* what, std::source_location where) {
  if (error != cudaSuccess) note(to_status(error, what, where));
}

void CudaStream::note(Status status) {
  if (error_.ok()) error_ = std::move(status);
}

Status CudaStream::take_error() {
  return std::exchange(error_, {});
}

void CudaStream::copy_to_device(void* device, const void* host, size_t num_bytes) {
  if (num_bytes == 0) return;
  note(cudaMemcpyAsync(device, host, num_bytes, cudaMemcpyHostToDevice, stream_),
       "a copy to the device");
}

void CudaStream::copy_to_host(void* host, const void* device, size_t num_bytes) {
  if (num_bytes == 0) return;
  ++traffic_.num_copies;
  note(cudaMemcpyAsync(host, device, num_bytes, cudaMemcpyDeviceToHost, stream_),
       "a copy to the host");
}

void CudaStream::set_zero(void* device, size_t num_bytes) {
  if (num_bytes == 0) return;
  note(cudaMemsetAsync(device, 0, num_bytes, stream_), "zeroing");
}

Status CudaStream::synchronize() {
  ++traffic_.num_waits;
  note(cudaStreamSynchronize(stream_), "waiting for the device");
  return take_error();
}

Result<CudaEvent> CudaEvent::create() {
  cudaEvent_t event = nullptr;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return CudaEvent(event);
}

CudaEvent::CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

CudaEvent& CudaEvent::operator=(CudaEvent&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

void CudaEvent::record(CudaStream& stream) {
  stream.note(cudaEventRecord(event_, stream.get()), "recording an event");
}

Status CudaEvent::wait(CudaStream& stream) const {
  ++stream.traffic().num_waits;
  return to_status(cudaEventSynchronize(event_), "waiting for the device");
}

bool CudaEvent::has_passed() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady) (void)cudaGetLastError();  // not for the next launch's check
  return state == cudaSuccess;
}

}  // namespace quire::cuda

#include "cuda/base/stream.h"

#include <fmt/format.h>

#include <utility>

namespace quire::cuda {
namespace {

StatusCode code_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

Result<LaunchLimits> read_limits() {
  constexpr int kOverlapComputeCapability = 90;
  LaunchLimits limits;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDevice(&limits.device));
  const auto read = [&](cudaDeviceAttr attribute, int& value) {
    return cudaDeviceGetAttribute(&value, attribute, limits.device);
  };
  int bytes = 0;
  int major = 0;
  int minor = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(read(cudaDevAttrMaxSharedMemoryPerBlockOptin, bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(read(cudaDevAttrComputeCapabilityMajor, major));
  QUIRE_CUDA_RETURN_IF_ERROR(read(cudaDevAttrComputeCapabilityMinor, minor));
  QUIRE_CUDA_RETURN_IF_ERROR(read(cudaDevAttrMultiProcessorCount, limits.num_sms));
  limits.max_shared_bytes = static_cast<size_t>(bytes);
  limits.compute_capability = 10 * major + minor;
  limits.overlaps_kernels = limits.compute_capability >= kOverlapComputeCapability;
  return limits;
}

}  // namespace

std::string_view file_name(std::source_location where) {
  const std::string_view path = where.file_name();
  return path.substr(path.rfind('/') + 1);
}

Status to_status(cudaError_t error, const char* what, std::source_location where) {
  if (error == cudaSuccess) return {};
  return {code_of(error),
          fmt::format("[cuda] {} failed at {}:{}; {}: {}", what, file_name(where), where.line(),
                      cudaGetErrorName(error), cudaGetErrorString(error))};
}

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

void CudaStream::record_error(cudaError_t error, const char* what, std::source_location where) {
  if (error != cudaSuccess) record_error(to_status(error, what, where));
}

void CudaStream::record_error(Status status) {
  if (error_.ok()) error_ = std::move(status);
}

Status CudaStream::take_error() {
  return std::exchange(error_, {});
}

void CudaStream::copy_to_device(void* device, const void* host, size_t num_bytes) {
  if (num_bytes == 0) return;
  record_error(cudaMemcpyAsync(device, host, num_bytes, cudaMemcpyHostToDevice, stream_),
               "a copy to the device");
}

void CudaStream::copy_to_host(void* host, const void* device, size_t num_bytes) {
  if (num_bytes == 0) return;
  ++traffic_.num_copies;
  record_error(cudaMemcpyAsync(host, device, num_bytes, cudaMemcpyDeviceToHost, stream_),
               "a copy to the host");
}

void CudaStream::fill(void* device, int byte, size_t num_bytes) {
  if (num_bytes == 0) return;
  record_error(cudaMemsetAsync(device, byte, num_bytes, stream_), "filling");
}

Status CudaStream::synchronize() {
  ++traffic_.num_waits;
  record_error(cudaStreamSynchronize(stream_), "waiting for the device");
  return take_error();
}

bool CudaStream::is_capturing() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  record_error(cudaStreamIsCapturing(stream_, &status), "reading whether a graph is captured");
  return status == cudaStreamCaptureStatusActive;
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
  stream.record_error(cudaEventRecord(event_, stream.get()), "recording an event");
}

Status CudaEvent::wait(CudaStream& stream) const {
  ++stream.traffic().num_waits;
  return to_status(cudaEventSynchronize(event_), "waiting for the device");
}

bool CudaEvent::has_passed() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady)
    (void)cudaGetLastError();  // so that the next launch's check does
                               // not find this error
  return state == cudaSuccess;
}

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
  stream.record_error(cudaEventRecord(events_[0], stream.get()), "recording an event");
}

void Stopwatch::end(CudaStream& stream) const {
  stream.record_error(cudaEventRecord(events_[1], stream.get()), "recording an event");
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

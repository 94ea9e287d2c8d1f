#include "cuda/attention/cudnn/functions.h"

#include <cudnn.h>
#include <nvrtc.h>

#include <optional>

#include "cuda/base/dynamic_library.h"

namespace quire::cuda::cudnn {
namespace {

#define QUIRE_CUDNN_FUNCTIONS(F)                                                         \
  F(cudnnCreate)                                                                         \
  F(cudnnDestroy)                                                                        \
  F(cudnnSetStream) F(cudnnGetStream) F(cudnnBackendCreateDescriptor)                    \
      F(cudnnBackendDestroyDescriptor) F(cudnnBackendExecute) F(cudnnBackendFinalize)    \
          F(cudnnBackendGetAttribute) F(cudnnBackendSetAttribute) F(cudnnGetErrorString) \
              F(cudnnGetLastErrorString) F(cudnnGetVersion)

struct Functions {
#define QUIRE_CUDNN_MEMBER(name) decltype(&::name) name = nullptr;
  QUIRE_CUDNN_FUNCTIONS(QUIRE_CUDNN_MEMBER)
#undef QUIRE_CUDNN_MEMBER
};

// The library is never closed, because cuDNN has threads and static destructors of its own.
Functions functions;

Status open() {
  Result<DynamicLibrary> opened = DynamicLibrary::open({"libcudnn.so.9"});
  if (!opened.ok()) return opened.status();
  static std::optional<DynamicLibrary> library;
  library = *opened;
#define QUIRE_CUDNN_FIND(name) QUIRE_RETURN_IF_ERROR(library->find(#name, functions.name));
  QUIRE_CUDNN_FUNCTIONS(QUIRE_CUDNN_FIND)
#undef QUIRE_CUDNN_FIND
  return {};
}

}  // namespace

Status open_functions() {
  static const Status status = open();
  return status;
}

}  // namespace quire::cuda::cudnn

using quire::cuda::cudnn::functions;

#pragma GCC visibility push(hidden)
extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return functions.cudnnCreate(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return functions.cudnnDestroy(handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return functions.cudnnSetStream(handle, stream);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return functions.cudnnGetStream(handle, stream);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  return functions.cudnnBackendCreateDescriptor(type, descriptor);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return functions.cudnnBackendDestroyDescriptor(descriptor);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant_pack) {
  return functions.cudnnBackendExecute(handle, plan, variant_pack);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return functions.cudnnBackendFinalize(descriptor);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t* count, void* elements) {
  return functions.cudnnBackendGetAttribute(descriptor, name, type, requested, count, elements);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       void const* elements) {
  return functions.cudnnBackendSetAttribute(descriptor, name, type, count, elements);
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return functions.cudnnGetErrorString(status);
}
void cudnnGetLastErrorString(char* message, size_t max_size) {
  functions.cudnnGetLastErrorString(message, max_size);
}
size_t cudnnGetVersion() {
  return functions.cudnnGetVersion();
}

// The frontend compiles experimental kernels with these functions. Quire compiles nothing at run
// time and requests no such kernel, so they return errors.
nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) {
  return NVRTC_ERROR_COMPILATION;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram*, const char*, const char*, int, const char* const*,
                               const char* const*) {
  return NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram*) {
  return NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char*) {
  return NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char*) {
  return NVRTC_ERROR_INVALID_PROGRAM;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INVALID_PROGRAM;
}

}  // extern "C"
#pragma GCC visibility pop

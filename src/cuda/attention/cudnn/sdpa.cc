#include "cuda/attention/cudnn/sdpa.h"

#include <cudnn.h>
#include <cudnn_frontend.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/dynamic_library.h"

namespace quire::cuda::cudnn {
namespace {

#define QUIRE_CUDNN_FUNCTIONS(F)   \
  F(cudnnCreate)                   \
  F(cudnnDestroy)                  \
  F(cudnnSetStream)                \
  F(cudnnGetStream)                \
  F(cudnnBackendCreateDescriptor)  \
  F(cudnnBackendDestroyDescriptor) \
  F(cudnnBackendExecute)           \
  F(cudnnBackendFinalize)          \
  F(cudnnBackendGetAttribute)      \
  F(cudnnBackendSetAttribute)      \
  F(cudnnGetErrorString)           \
  F(cudnnGetLastErrorString)       \
  F(cudnnGetVersion)

struct Functions {
#define QUIRE_CUDNN_MEMBER(name) decltype(&::name) name = nullptr;
  QUIRE_CUDNN_FUNCTIONS(QUIRE_CUDNN_MEMBER)
#undef QUIRE_CUDNN_MEMBER
};

// The library is never closed, because cuDNN has threads and static destructors of its own.
Functions functions;

Status find_functions() {
  Result<DynamicLibrary> opened = DynamicLibrary::open({"libcudnn.so.9"});
  if (!opened.ok()) return opened.status();
  static std::optional<DynamicLibrary> library;
  library = *opened;
#define QUIRE_CUDNN_FIND(name) QUIRE_RETURN_IF_ERROR(library->find(#name, functions.name));
  QUIRE_CUDNN_FUNCTIONS(QUIRE_CUDNN_FIND)
#undef QUIRE_CUDNN_FIND
  return {};
}

// Opens the library once per process; later calls return the first result. Fails with kUnavailable
// if there is no cuDNN.
Status open_functions() {
  static const Status status = find_functions();
  return status;
}

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::SDPA_attributes;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

constexpr size_t kOldestVersion = 91100;
// cuDNN requires the pool's size, which KvCacheView does not contain; no pool has this many pages.
constexpr int64_t kPoolPages = int64_t{1} << 24;

enum TensorId : int64_t {
  kQ = 1,
  kK,
  kV,
  kBlockTable,
  kQLens,
  kSeqLens,
  kOut,
  kQOffsets,
  kOutOffsets,
  kKOffsets,
  kVOffsets,
};

std::atomic<int64_t> builds = 0;

Status to_status(fe::error_t error, const char* what) {
  if (error.is_good()) return {};
  return unimplemented(fmt::format("[cudnn] {} failed; got {}", what, error.get_message()));
}

Status to_status(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return internal_error(
      fmt::format("[cudnn] {} failed; got {}", what, cudnnGetErrorString(status)));
}

// Converts exceptions of cuDNN's frontend to a Status.
template <typename Function>
auto catch_exceptions(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& error) {
    return internal_error(fmt::format("[cudnn] cuDNN's frontend threw; got {}", error.what()));
  }
}

struct HandleCloser {
  void operator()(cudnnContext* handle) const { (void)cudnnDestroy(handle); }
};
using Handle = std::unique_ptr<cudnnContext, HandleCloser>;

class Plan final : public SdpaPlan {
 public:
  Plan(cudnnHandle_t handle, std::shared_ptr<Graph> graph, size_t workspace_bytes)
      : handle_(handle), graph_(std::move(graph)), workspace_bytes_(workspace_bytes) {
    for (int64_t id = kQ; id <= kVOffsets; ++id) tensors_[id] = nullptr;
  }

  size_t workspace_bytes() const override { return workspace_bytes_; }

  Status execute(const SdpaMemory& memory, cudaStream_t stream) override {
    QUIRE_RETURN_IF_ERROR(to_status(cudnnSetStream(handle_, stream), "cudnnSetStream"));
    const std::pair<int64_t, const void*> addresses[] = {{kQ, memory.q},
                                                         {kK, memory.k},
                                                         {kV, memory.v},
                                                         {kBlockTable, memory.block_table},
                                                         {kQLens, memory.q_lens},
                                                         {kSeqLens, memory.seq_lens},
                                                         {kOut, memory.out},
                                                         {kQOffsets, memory.q_offsets},
                                                         {kOutOffsets, memory.q_offsets},
                                                         {kKOffsets, memory.kv_offsets},
                                                         {kVOffsets, memory.kv_offsets}};
    for (const auto& [id, address] : addresses) tensors_[id] = const_cast<void*>(address);
    return catch_exceptions([&]() -> Status {
      return to_status(graph_->execute(handle_, tensors_, memory.workspace), "execution");
    });
  }

 private:
  cudnnHandle_t handle_;
  std::shared_ptr<Graph> graph_;
  size_t workspace_bytes_;
  // A call's addresses by TensorId; the graph ignores ids of tensors that it does not have. The
  // constructor inserts all ids, so that a call allocates nothing here.
  std::unordered_map<int64_t, void*> tensors_;
};

std::shared_ptr<Graph> make_graph(const SdpaKey& key) {
  const auto type = key.dtype == DType::kF16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
  auto graph = std::make_shared<Graph>();
  graph->set_io_data_type(type)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  using Sizes = std::vector<int64_t>;
  const auto tensor = [&](TensorId id, Sizes dim, Sizes stride, fe::DataType_t data_type) {
    return graph->tensor(
        Tensor_attributes().set_uid(id).set_dim(dim).set_stride(stride).set_data_type(data_type));
  };
  const int64_t num_reqs = key.num_reqs;
  const auto ints = [&](TensorId id, int64_t count) {
    return tensor(id, {count, 1, 1, 1}, {1, 1, 1, 1}, fe::DataType_t::INT32);
  };
  const bool is_prefill = key.max_q_len > 1;
  const int64_t row = int64_t{key.num_heads} * key.head_dim;
  const Sizes rows = {num_reqs, key.num_heads, key.max_q_len, key.head_dim};
  const Sizes row_strides = {row * key.max_q_len, key.head_dim, row, 1};
  // For contiguous keys, cuDNN uses the offsets instead of the first stride.
  const Sizes keys = {is_prefill ? num_reqs : kPoolPages, key.num_kv_heads,
                      is_prefill ? key.max_kv_len : key.page_size, key.head_dim};
  const Sizes key_strides = {is_prefill ? key.max_kv_len * key.token_stride : key.page_stride,
                             key.head_stride, key.token_stride, 1};
  const Tensor q = tensor(kQ, rows, row_strides, type);
  const Tensor k = tensor(kK, keys, key_strides, type);
  const Tensor v = tensor(kV, keys, key_strides, type);
  auto options = SDPA_attributes()
                     .set_name("attention")
                     .set_generate_stats(false)
                     .set_attn_scale(key.scale)
                     .set_padding_mask(true)
                     .set_seq_len_q(ints(kQLens, num_reqs))
                     .set_seq_len_kv(ints(kSeqLens, num_reqs));
  if (is_prefill) {
    q->set_ragged_offset(ints(kQOffsets, num_reqs + 1));
    k->set_ragged_offset(ints(kKOffsets, num_reqs + 1));
    v->set_ragged_offset(ints(kVOffsets, num_reqs + 1));
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
  } else {
    const Tensor table = tensor(kBlockTable, {num_reqs, 1, key.num_pages, 1},
                                {key.table_stride, key.table_stride, 1, 1}, fe::DataType_t::INT32);
    options.set_paged_attention_k_table(table)
        .set_paged_attention_v_table(table)
        .set_paged_attention_max_seq_len_kv(static_cast<int>(key.num_pages * key.page_size));
  }
  const auto outputs = graph->sdpa(q, k, v, options);
  outputs[0]->set_output(true).set_uid(kOut).set_dim(rows).set_stride(row_strides);
  if (is_prefill) outputs[0]->set_ragged_offset(ints(kOutOffsets, num_reqs + 1));
  return graph;
}

class OpenLibrary final : public Library {
 public:
  size_t version() const override { return cudnnGetVersion(); }
  Result<std::unique_ptr<SdpaPlan>> build(const SdpaKey& key) override {
    QUIRE_RETURN_IF_ERROR(make_handle());
    return catch_exceptions([&]() -> Result<std::unique_ptr<SdpaPlan>> {
      std::shared_ptr<Graph> graph = make_graph(key);
      cudnnHandle_t handle = handle_.get();
      QUIRE_RETURN_IF_ERROR(to_status(graph->validate(), "the shape's check"));
      QUIRE_RETURN_IF_ERROR(to_status(graph->build_operation_graph(handle), "the graph's build"));
      QUIRE_RETURN_IF_ERROR(
          to_status(graph->create_execution_plans({fe::HeurMode_t::A}), "the search for a kernel"));
      QUIRE_RETURN_IF_ERROR(to_status(graph->build_plans(handle), "the plan's build"));
      int64_t bytes = 0;
      QUIRE_RETURN_IF_ERROR(to_status(graph->get_workspace_size(bytes), "the workspace's size"));
      ++builds;
      return std::unique_ptr<SdpaPlan>(
          std::make_unique<Plan>(handle, std::move(graph), static_cast<size_t>(bytes)));
    });
  }

 private:
  Status make_handle() {
    if (handle_ != nullptr) return {};
    cudnnHandle_t handle = nullptr;
    QUIRE_RETURN_IF_ERROR(to_status(cudnnCreate(&handle), "cudnnCreate"));
    handle_.reset(handle);
    return {};
  }

  Handle handle_;
};

}  // namespace

Result<std::unique_ptr<Library>> Library::open() {
  QUIRE_RETURN_IF_ERROR(open_functions());
  if (const size_t version = cudnnGetVersion(); version < kOldestVersion) {
    return unavailable(
        fmt::format("[cudnn] the library is too old; got version {}, expected at least {}",
                    version_name(version), version_name(kOldestVersion)));
  }
  return std::unique_ptr<Library>(std::make_unique<OpenLibrary>());
}

int64_t num_builds() {
  return builds;
}

}  // namespace quire::cuda::cudnn

using quire::cuda::cudnn::functions;

// The cuDNN functions that its C++ frontend calls. They are hidden from other libraries, and
// forward to the library that open_functions() opened, so that Quire does not link to cuDNN.

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

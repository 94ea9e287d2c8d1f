#include "cuda/base/nccl.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/dynamic_library.h"
#include "base/log.h"
#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"

namespace quire::cuda {
namespace {

// The part of NCCL's interface that is used. Its binary form is the same in all releases of NCCL 2.
using NcclResult = int;  // 0: success
using NcclComm = struct NcclCommunicator*;
enum class NcclType : int { kF16 = 6, kF32 = 7, kBF16 = 9 };
constexpr int kNcclSum = 0;

struct NcclApi {
  DynamicLibrary library;
  NcclResult (*get_version)(int* version) = nullptr;
  const char* (*error_text)(NcclResult result) = nullptr;
  NcclResult (*init_all)(NcclComm* comms, int num_devices, const int* devices) = nullptr;
  NcclResult (*destroy)(NcclComm comm) = nullptr;
  NcclResult (*abort)(NcclComm comm) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*all_reduce)(const void* from, void* to, size_t count, NcclType type, int operation,
                           NcclComm comm, cudaStream_t stream) = nullptr;
  NcclResult (*all_gather)(const void* from, void* to, size_t count, NcclType type, NcclComm comm,
                           cudaStream_t stream) = nullptr;
};

Result<NcclApi> load_api() {
  // Multicast objects are lost with a process that is killed, and reserve memory beside the plan.
  ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  // Otherwise ranks exchange the buffers of every graph while they capture it.
  ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
  NcclApi api;
  QUIRE_ASSIGN_OR_RETURN(api.library, DynamicLibrary::open({"libnccl.so.2", "libnccl.so"}));
  const DynamicLibrary& library = api.library;
  QUIRE_RETURN_IF_ERROR(library.find("ncclGetVersion", api.get_version));
  QUIRE_RETURN_IF_ERROR(library.find("ncclGetErrorString", api.error_text));
  QUIRE_RETURN_IF_ERROR(library.find("ncclCommInitAll", api.init_all));
  QUIRE_RETURN_IF_ERROR(library.find("ncclCommDestroy", api.destroy));
  QUIRE_RETURN_IF_ERROR(library.find("ncclCommAbort", api.abort));
  QUIRE_RETURN_IF_ERROR(library.find("ncclGroupStart", api.group_start));
  QUIRE_RETURN_IF_ERROR(library.find("ncclGroupEnd", api.group_end));
  QUIRE_RETURN_IF_ERROR(library.find("ncclAllReduce", api.all_reduce));
  QUIRE_RETURN_IF_ERROR(library.find("ncclAllGather", api.all_gather));
  return api;
}

NcclType type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return NcclType::kF32;
    case DType::kF16:
      return NcclType::kF16;
    case DType::kBF16:
      return NcclType::kBF16;
    default:
      QUIRE_CHECK(false, "[nccl] the type is none of f32, f16 and bf16");
  }
}

// 22809 is NCCL 2.28.9.
std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

struct NcclRanks::Impl {
  Impl(NcclApi api_, std::span<const int> devices_)
      : api(std::move(api_)),
        devices(devices_.begin(), devices_.end()),
        comms(devices.size()),
        join(static_cast<int>(devices.size()), [this] { abort_all(); }) {}

  Status check(NcclResult result, const char* what) const {
    if (result == 0) return {};
    return unavailable(fmt::format("[nccl] {} failed; {}", what, api.error_text(result)));
  }

  // Ends the kernels that wait for a rank.
  void abort_all() {
    for (std::atomic<NcclComm>& comm : comms) {
      if (const NcclComm aborted = comm.exchange(nullptr)) (void)api.abort(aborted);
    }
  }

  // NCCL opens connections, and allocates, at the first message of a kind.
  Status open_connections();

  NcclApi api;
  std::vector<int> devices;
  std::vector<std::atomic<NcclComm>> comms;  // by rank; null after a failure
  RankJoin join;
};

Status NcclRanks::Impl::open_connections() {
  constexpr size_t kSizes[] = {size_t{64} << 10, size_t{4} << 20, size_t{64} << 20};  // bytes
  std::vector<std::unique_ptr<CudaStream>> streams;
  std::vector<Buffer> buffers;
  for (const int device : devices) {
    QUIRE_RETURN_IF_ERROR(use_device(device));
    QUIRE_ASSIGN_OR_RETURN(streams.emplace_back(), CudaStream::create());
    QUIRE_ASSIGN_OR_RETURN(buffers.emplace_back(), device_memory(kSizes[2] * devices.size()));
    streams.back()->set_zero(buffers.back().data(), buffers.back().num_bytes());
  }
  for (const size_t num_bytes : kSizes) {
    QUIRE_RETURN_IF_ERROR(check(api.group_start(), "ncclGroupStart"));
    for (size_t rank = 0; rank < comms.size(); ++rank) {
      void* const data = buffers[rank].data();
      const size_t count = num_bytes / sizeof(float);
      QUIRE_RETURN_IF_ERROR(check(api.all_reduce(data, data, count, NcclType::kF32, kNcclSum,
                                                 comms[rank].load(), streams[rank]->get()),
                                  "ncclAllReduce"));
    }
    QUIRE_RETURN_IF_ERROR(check(api.group_end(), "an all-reduce at the start"));
    QUIRE_RETURN_IF_ERROR(check(api.group_start(), "ncclGroupStart"));
    for (size_t rank = 0; rank < comms.size(); ++rank) {
      float* const data = static_cast<float*>(static_cast<void*>(buffers[rank].data()));
      const size_t count = num_bytes / sizeof(float);
      QUIRE_RETURN_IF_ERROR(check(api.all_gather(data + rank * count, data, count, NcclType::kF32,
                                                 comms[rank].load(), streams[rank]->get()),
                                  "ncclAllGather"));
    }
    QUIRE_RETURN_IF_ERROR(check(api.group_end(), "an all-gather at the start"));
  }
  for (size_t rank = 0; rank < comms.size(); ++rank) {
    QUIRE_RETURN_IF_ERROR(use_device(devices[rank]));
    QUIRE_RETURN_IF_ERROR(streams[rank]->synchronize());
  }
  return {};
}

NcclRanks::NcclRanks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

NcclRanks::~NcclRanks() {
  for (const std::atomic<NcclComm>& comm : impl_->comms) {
    if (comm.load() != nullptr) (void)impl_->api.destroy(comm.load());
  }
}

Result<std::shared_ptr<NcclRanks>> NcclRanks::connect(std::span<const int> devices) {
  Result<NcclApi> api = load_api();
  if (!api.ok()) {
    return Status(api.status().code(),
                  fmt::format("{}; several GPUs need NCCL: install it (the package libnccl2), or "
                              "set `tensor_parallel_size` to 1",
                              api.status().message()));
  }
  auto impl = std::make_unique<Impl>(std::move(*api), devices);
  int version = 0;
  QUIRE_RETURN_IF_ERROR(impl->check(impl->api.get_version(&version), "ncclGetVersion"));
  std::vector<NcclComm> comms(devices.size());
  QUIRE_RETURN_IF_ERROR(impl->check(
      impl->api.init_all(comms.data(), static_cast<int>(devices.size()), devices.data()),
      "the connection of the GPUs"));
  for (size_t rank = 0; rank < comms.size(); ++rank) impl->comms[rank].store(comms[rank]);
  std::shared_ptr<NcclRanks> ranks(new NcclRanks(std::move(impl)));
  QUIRE_RETURN_IF_ERROR(ranks->impl_->open_connections());
  log_info("[nccl] NCCL {} connects {} GPUs", version_text(version), devices.size());
  return ranks;
}

int NcclRanks::size() const {
  return static_cast<int>(impl_->devices.size());
}

void NcclRanks::all_reduce(int rank, const TensorView& x, CudaStream& stream) {
  const NcclComm comm = impl_->comms[static_cast<size_t>(rank)].load();
  if (comm == nullptr) return stream.record_error(impl_->join.join({}));
  const auto count = static_cast<size_t>(x.shape.num_elements());
  stream.record_error(impl_->check(
      impl_->api.all_reduce(x.data, x.data, count, type_of(x.dtype), kNcclSum, comm, stream.get()),
      "an all-reduce"));
}

void NcclRanks::all_gather(int rank, const float* part, int64_t count, float* gathered,
                           CudaStream& stream) {
  const NcclComm comm = impl_->comms[static_cast<size_t>(rank)].load();
  if (comm == nullptr) return stream.record_error(impl_->join.join({}));
  stream.record_error(impl_->check(impl_->api.all_gather(part, gathered, static_cast<size_t>(count),
                                                         NcclType::kF32, comm, stream.get()),
                                   "an all-gather"));
}

Status NcclRanks::join(const Status& status) {
  return impl_->join.join(status);
}

}  // namespace quire::cuda

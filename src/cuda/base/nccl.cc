#include "cuda/base/nccl.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
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
        join(static_cast<int>(devices.size()), [this] {
          if (release) release();
          // NCCL's abort returns once the graphs with its collectives are gone, which is later.
          aborting = std::jthread([this] { abort_all(); });
        }) {}

  Status check(NcclResult result, const char* what) const {
    if (result == 0) return {};
    return unavailable(fmt::format("[nccl] {} failed; {}", what, api.error_text(result)));
  }

  // Ends the kernels that wait for a rank.
  void abort_all() {
    std::vector<std::jthread> aborts;
    for (NcclComm& comm : comms) {
      const std::unique_lock lock(enqueuing);
      if (comm == nullptr) continue;
      aborts.emplace_back([this, comm = std::exchange(comm, nullptr)] { (void)api.abort(comm); });
    }
  }

  // One collective of all ranks, enqueued by this thread.
  Status in_group(const std::function<NcclResult(size_t rank)>& enqueue, const char* what);
  // NCCL opens connections, and allocates, at the first message of a kind.
  Status open_connections();

  NcclApi api;
  std::vector<int> devices;
  std::vector<NcclComm> comms;  // by rank; null after a failure
  std::shared_mutex enqueuing;  // shared while a collective is enqueued; guards comms
  std::function<void()> release;
  std::jthread aborting;
  RankJoin join;
};

Status NcclRanks::Impl::in_group(const std::function<NcclResult(size_t rank)>& enqueue,
                                 const char* what) {
  QUIRE_RETURN_IF_ERROR(check(api.group_start(), "ncclGroupStart"));
  NcclResult result = 0;
  for (size_t rank = 0; rank < comms.size() && result == 0; ++rank) result = enqueue(rank);
  const NcclResult ended = api.group_end();
  return check(result != 0 ? result : ended, what);
}

Status NcclRanks::Impl::open_connections() {
  // From a token of a small model to a long prompt of a large one; NCCL has another way for each.
  constexpr size_t kBytes[] = {size_t{4} << 10, size_t{64} << 10, size_t{1} << 20,
                               size_t{64} << 20};
  std::vector<std::unique_ptr<CudaStream>> streams;
  std::vector<Buffer> buffers;
  for (const int device : devices) {
    QUIRE_RETURN_IF_ERROR(use_device(device));
    QUIRE_ASSIGN_OR_RETURN(streams.emplace_back(), CudaStream::create());
    QUIRE_ASSIGN_OR_RETURN(buffers.emplace_back(), device_memory(kBytes[3] * devices.size()));
    streams.back()->set_zero(buffers.back().data(), buffers.back().num_bytes());
  }
  for (const size_t num_bytes : kBytes) {
    for (const auto& [type, element_bytes] :
         {std::pair(NcclType::kF32, size_t{4}), std::pair(NcclType::kF16, size_t{2}),
          std::pair(NcclType::kBF16, size_t{2})}) {
      const auto reduce = [&](size_t rank) {
        void* const data = buffers[rank].data();
        return api.all_reduce(data, data, num_bytes / element_bytes, type, kNcclSum, comms[rank],
                              streams[rank]->get());
      };
      QUIRE_RETURN_IF_ERROR(in_group(reduce, "an all-reduce at the start"));
    }
    const auto gather = [&](size_t rank) {
      auto* const data = static_cast<std::byte*>(static_cast<void*>(buffers[rank].data()));
      return api.all_gather(data + rank * num_bytes, data, num_bytes / sizeof(float),
                            NcclType::kF32, comms[rank], streams[rank]->get());
    };
    QUIRE_RETURN_IF_ERROR(in_group(gather, "an all-gather at the start"));
  }
  for (size_t rank = 0; rank < comms.size(); ++rank) {
    QUIRE_RETURN_IF_ERROR(use_device(devices[rank]));
    QUIRE_RETURN_IF_ERROR(streams[rank]->synchronize());
  }
  return {};
}

NcclRanks::NcclRanks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

NcclRanks::~NcclRanks() {
  if (impl_->aborting.joinable()) impl_->aborting.join();
  for (const NcclComm comm : impl_->comms) {
    if (comm != nullptr) (void)impl_->api.destroy(comm);
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
  QUIRE_RETURN_IF_ERROR(impl->check(
      impl->api.init_all(impl->comms.data(), static_cast<int>(devices.size()), devices.data()),
      "the connection of the GPUs"));
  std::shared_ptr<NcclRanks> ranks(new NcclRanks(std::move(impl)));
  QUIRE_RETURN_IF_ERROR(ranks->impl_->open_connections());
  log_info("[nccl] NCCL {} connects {} GPUs", version_text(version), devices.size());
  return ranks;
}

int NcclRanks::size() const {
  return static_cast<int>(impl_->devices.size());
}

void NcclRanks::all_reduce(int rank, const TensorView& x, CudaStream& stream) {
  const std::shared_lock lock(impl_->enqueuing);
  const NcclComm comm = impl_->comms[static_cast<size_t>(rank)];
  if (comm == nullptr) return stream.record_error(impl_->join.join({}));
  const auto count = static_cast<size_t>(x.shape.num_elements());
  stream.record_error(impl_->check(
      impl_->api.all_reduce(x.data, x.data, count, type_of(x.dtype), kNcclSum, comm, stream.get()),
      "an all-reduce"));
}

void NcclRanks::all_gather(int rank, const float* part, int64_t count, float* gathered,
                           CudaStream& stream) {
  const std::shared_lock lock(impl_->enqueuing);
  const NcclComm comm = impl_->comms[static_cast<size_t>(rank)];
  if (comm == nullptr) return stream.record_error(impl_->join.join({}));
  stream.record_error(impl_->check(impl_->api.all_gather(part, gathered, static_cast<size_t>(count),
                                                         NcclType::kF32, comm, stream.get()),
                                   "an all-gather"));
}

void NcclRanks::on_failure(std::function<void()> release) {
  impl_->release = std::move(release);
}

Status NcclRanks::join(const Status& status) {
  return impl_->join.join(status);
}

}  // namespace quire::cuda

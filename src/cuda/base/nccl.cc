#include "cuda/base/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <future>
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

// The part of NCCL's interface that this file uses. Its ABI is the same in all releases of NCCL 2.
using NcclResult = int;  // 0: success
constexpr NcclResult kNcclInvalidUsage = 5;
using NcclComm = struct NcclCommunicator*;
enum class NcclType : int { kBytes = 0, kF16 = 6, kF32 = 7, kBF16 = 9 };
constexpr int kNcclSum = 0;
// Identifies the communicator that ranks of several processes join.
struct NcclId {
  char bytes[128] = {};
};
// The maximum time for NCCL to connect the ranks of several processes.
constexpr auto kConnectTimeout = std::chrono::minutes(3);

struct NcclApi {
  DynamicLibrary library;
  NcclResult (*get_version)(int* version) = nullptr;
  const char* (*error_text)(NcclResult result) = nullptr;
  NcclResult (*init_all)(NcclComm* comms, int num_devices, const int* devices) = nullptr;
  NcclResult (*get_id)(NcclId* id) = nullptr;
  NcclResult (*init_rank)(NcclComm* comm, int num_ranks, NcclId id, int rank) = nullptr;
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
  // Multicast objects leak if a process is killed, and they reserve memory that the memory plan
  // does not count.
  ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  // Graph registration makes ranks exchange the buffers of every graph while they capture it.
  ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
  NcclApi api;
  QUIRE_ASSIGN_OR_RETURN(api.library, DynamicLibrary::open({"libnccl.so.2", "libnccl.so"}));
  const DynamicLibrary& library = api.library;
  QUIRE_RETURN_IF_ERROR(library.find("ncclGetVersion", api.get_version));
  QUIRE_RETURN_IF_ERROR(library.find("ncclGetErrorString", api.error_text));
  QUIRE_RETURN_IF_ERROR(library.find("ncclCommInitAll", api.init_all));
  QUIRE_RETURN_IF_ERROR(library.find("ncclGetUniqueId", api.get_id));
  QUIRE_RETURN_IF_ERROR(library.find("ncclCommInitRank", api.init_rank));
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
      QUIRE_CHECK(false, "[nccl] the type is not f32, f16 or bf16");
  }
}

// 22809 is NCCL 2.28.9.
std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

struct NcclRanks::Impl {
  Impl(NcclApi api_, std::span<const int> devices_, std::shared_ptr<Nodes> nodes_)
      : api(std::move(api_)),
        devices(devices_.begin(), devices_.end()),
        nodes(std::move(nodes_)),
        comms(devices.size()),
        join(
            static_cast<int>(devices.size()),
            [this](const Status& error) {
              if (release) release();
              // NCCL's abort returns only after the graphs with its collectives are destroyed,
              // which happens later.
              aborting = std::jthread([this] { abort_all(); });
              if (nodes != nullptr) nodes->fail(error);
            },
            [this](std::string bytes) -> Result<std::string> {
              if (nodes == nullptr) return bytes;
              return nodes->broadcast("join", bytes);
            }) {}
  ~Impl() {
    if (nodes != nullptr) nodes->set_failure_handler(nullptr);
    if (aborting.joinable()) aborting.join();
    for (const NcclComm comm : comms) {
      if (comm != nullptr) (void)api.destroy(comm);
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int size() const {
    return static_cast<int>(devices.size()) * (nodes == nullptr ? 1 : nodes->size());
  }
  int first_rank() const {
    return nodes == nullptr ? 0 : nodes->node() * static_cast<int>(devices.size());
  }
  // The communicator of a rank of this process; null after a failure. Guarded by `enqueuing`.
  NcclComm comm_of(int rank) const { return comms[static_cast<size_t>(rank - first_rank())]; }

  Status check(NcclResult result, const char* what) const {
    if (result == 0) return {};
    return unavailable(fmt::format("[nccl] {} failed; {}", what, api.error_text(result)));
  }

  // Ends the kernels that wait for a failed rank.
  void abort_all() {
    std::vector<std::jthread> aborts;
    for (NcclComm& comm : comms) {
      const std::unique_lock lock(enqueuing);
      if (comm == nullptr) continue;
      aborts.emplace_back([this, comm = std::exchange(comm, nullptr)] { (void)api.abort(comm); });
    }
  }

  // Joins the communicator of all ranks.
  Status connect();
  // Like connect(), for the ranks of several processes, with a time limit.
  static Status connect_nodes(const std::shared_ptr<Impl>& self);
  // Enqueues one collective of all ranks of this process, on this thread.
  Status in_group(const std::function<NcclResult(size_t i)>& enqueue, const char* what);
  // Enqueues a collective of rank `i` of this process, unless its communicator has been aborted.
  NcclResult with_comm(size_t i, const std::function<NcclResult(NcclComm comm)>& enqueue) {
    const std::shared_lock lock(enqueuing);
    return comms[i] == nullptr ? kNcclInvalidUsage : enqueue(comms[i]);
  }
  // Runs collectives, because NCCL opens connections and allocates at the first message of each
  // kind.
  Status open_connections();

  NcclApi api;
  std::vector<int> devices;  // by rank of this process
  std::shared_ptr<Nodes> nodes;
  std::vector<NcclComm> comms;  // by rank of this process; null after a failure
  std::shared_mutex enqueuing;  // shared while a collective is enqueued; guards comms
  std::function<void()> release;
  std::jthread aborting;
  RankJoin join;
};

Status NcclRanks::Impl::connect() {
  if (nodes == nullptr) {
    return check(api.init_all(comms.data(), static_cast<int>(devices.size()), devices.data()),
                 "the connection of the GPUs");
  }
  NcclId id;
  if (nodes->node() == 0) QUIRE_RETURN_IF_ERROR(check(api.get_id(&id), "ncclGetUniqueId"));
  QUIRE_ASSIGN_OR_RETURN(const std::string bytes,
                         nodes->broadcast("NCCL's id", {id.bytes, sizeof id.bytes}));
  if (bytes.size() != sizeof id.bytes) {
    return internal_error(fmt::format("[nccl] node 0 sent an id of {} bytes, expected {}",
                                      bytes.size(), sizeof id.bytes));
  }
  std::copy(bytes.begin(), bytes.end(), id.bytes);
  std::vector<NcclComm> connected(devices.size());
  const auto init = [&](size_t i) {
    if (const Status bound = use_device(devices[i]); !bound.ok()) return kNcclInvalidUsage;
    return api.init_rank(&connected[i], size(), id, first_rank() + static_cast<int>(i));
  };
  QUIRE_RETURN_IF_ERROR(in_group(init, "the connection of the nodes' GPUs"));
  const std::unique_lock lock(enqueuing);
  comms = std::move(connected);
  return {};
}

// NCCL's connect cannot be cancelled, so it runs on its own thread. If another node fails or hangs
// meanwhile, the thread is abandoned.
Status NcclRanks::Impl::connect_nodes(const std::shared_ptr<Impl>& self) {
  auto connected = std::make_shared<std::promise<Status>>();
  std::future<Status> result = connected->get_future();
  std::thread([self, connected] { connected->set_value(self->connect()); }).detach();
  const auto deadline = std::chrono::steady_clock::now() + kConnectTimeout;
  while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    QUIRE_RETURN_IF_ERROR(self->nodes->status());
    if (std::chrono::steady_clock::now() < deadline) continue;
    return unavailable(fmt::format(
        "[nccl] the GPUs of {} nodes are not connected after {} s; NCCL_DEBUG=INFO shows what it "
        "tries, and NCCL_SOCKET_IFNAME names the network interface",
        self->nodes->size(), std::chrono::seconds(kConnectTimeout).count()));
  }
  return result.get();
}

Status NcclRanks::Impl::in_group(const std::function<NcclResult(size_t i)>& enqueue,
                                 const char* what) {
  QUIRE_RETURN_IF_ERROR(check(api.group_start(), "ncclGroupStart"));
  NcclResult result = 0;
  for (size_t i = 0; i < comms.size() && result == 0; ++i) result = enqueue(i);
  const NcclResult ended = api.group_end();
  return check(result != 0 ? result : ended, what);
}

Status NcclRanks::Impl::open_connections() {
  // Message sizes, from one token of a small model to a long prompt of a large model. NCCL uses a
  // different algorithm for each.
  constexpr size_t kBytes[] = {size_t{4} << 10, size_t{64} << 10, size_t{1} << 20,
                               size_t{64} << 20};
  std::vector<std::unique_ptr<CudaStream>> streams;
  std::vector<Buffer> buffers;
  for (const int device : devices) {
    QUIRE_RETURN_IF_ERROR(use_device(device));
    QUIRE_ASSIGN_OR_RETURN(streams.emplace_back(), CudaStream::create());
    QUIRE_ASSIGN_OR_RETURN(buffers.emplace_back(),
                           device_memory(kBytes[3] * static_cast<size_t>(size())));
    streams.back()->set_zero(buffers.back().data(), buffers.back().num_bytes());
  }
  for (const size_t num_bytes : kBytes) {
    for (const auto& [type, element_bytes] :
         {std::pair(NcclType::kF32, size_t{4}), std::pair(NcclType::kF16, size_t{2}),
          std::pair(NcclType::kBF16, size_t{2})}) {
      const auto reduce = [&](size_t i) {
        void* const data = buffers[i].data();
        return with_comm(i, [&](NcclComm comm) {
          return api.all_reduce(data, data, num_bytes / element_bytes, type, kNcclSum, comm,
                                streams[i]->get());
        });
      };
      QUIRE_RETURN_IF_ERROR(in_group(reduce, "an all-reduce at the start"));
    }
    const auto gather = [&](size_t i) {
      auto* const data = static_cast<std::byte*>(static_cast<void*>(buffers[i].data()));
      const size_t rank = static_cast<size_t>(first_rank()) + i;
      return with_comm(i, [&](NcclComm comm) {
        return api.all_gather(data + rank * num_bytes, data, num_bytes, NcclType::kBytes, comm,
                              streams[i]->get());
      });
    };
    QUIRE_RETURN_IF_ERROR(in_group(gather, "an all-gather at the start"));
  }
  for (size_t i = 0; i < comms.size(); ++i) {
    QUIRE_RETURN_IF_ERROR(use_device(devices[i]));
    QUIRE_RETURN_IF_ERROR(streams[i]->synchronize());
  }
  return {};
}

NcclRanks::NcclRanks(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

NcclRanks::~NcclRanks() = default;

Result<std::shared_ptr<NcclRanks>> NcclRanks::connect(std::span<const int> devices,
                                                      std::shared_ptr<Nodes> nodes) {
  Result<NcclApi> api = load_api();
  if (!api.ok()) {
    return Status(api.status().code(),
                  fmt::format("{}; several GPUs need NCCL: install it (the package libnccl2), or "
                              "set `tensor_parallel_size` to 1",
                              api.status().message()));
  }
  const auto impl = std::make_shared<Impl>(std::move(*api), devices, nodes);
  int version = 0;
  QUIRE_RETURN_IF_ERROR(impl->check(impl->api.get_version(&version), "ncclGetVersion"));
  QUIRE_RETURN_IF_ERROR(nodes == nullptr ? impl->connect() : Impl::connect_nodes(impl));
  if (nodes != nullptr) {
    nodes->set_failure_handler(
        [join = &impl->join](const Status& error) { (void)join->join(error); });
  }
  std::shared_ptr<NcclRanks> ranks(new NcclRanks(impl));
  // If another node fails meanwhile, the collectives fail too; the node's error is their cause.
  const Status opened = impl->open_connections();
  if (nodes != nullptr) QUIRE_RETURN_IF_ERROR(nodes->status());
  QUIRE_RETURN_IF_ERROR(opened);
  log_info("[nccl] NCCL {} connects {} GPUs{}", nccl_version_text(version), ranks->size(),
           nodes == nullptr ? "" : fmt::format(" of {} nodes", nodes->size()));
  return ranks;
}

int NcclRanks::size() const {
  return impl_->size();
}

int NcclRanks::first_rank() const {
  return impl_->first_rank();
}

void NcclRanks::all_reduce(int rank, const TensorView& x, CudaStream& stream) {
  const std::shared_lock lock(impl_->enqueuing);
  const NcclComm comm = impl_->comm_of(rank);
  if (comm == nullptr) return stream.record_error(impl_->join.join({}));
  const auto count = static_cast<size_t>(x.shape.num_elements());
  stream.record_error(impl_->check(
      impl_->api.all_reduce(x.data, x.data, count, type_of(x.dtype), kNcclSum, comm, stream.get()),
      "an all-reduce"));
}

void NcclRanks::all_gather(int rank, const void* part, size_t num_bytes, void* gathered,
                           CudaStream& stream) {
  const std::shared_lock lock(impl_->enqueuing);
  const NcclComm comm = impl_->comm_of(rank);
  if (comm == nullptr) return stream.record_error(impl_->join.join({}));
  stream.record_error(impl_->check(
      impl_->api.all_gather(part, gathered, num_bytes, NcclType::kBytes, comm, stream.get()),
      "an all-gather"));
}

void NcclRanks::on_failure(std::function<void()> release) {
  impl_->release = std::move(release);
}

RankJoin& NcclRanks::joint() {
  return impl_->join;
}

}  // namespace quire::cuda

#include "cuda/ops/peer_sums.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "base/ascii.h"
#include "base/numbers.h"
#include "base/text_input.h"
#include "cuda/base/device_info.h"
#include "cuda/base/graph.h"
#include "cuda/base/memory.h"
#include "measure/rounds.h"

namespace quire::cuda {
namespace {

// The measurements take less than a second.
constexpr std::chrono::seconds kMeasureTimeout(20);
constexpr int64_t kMinTwoStepRows = 16;
constexpr int64_t kMeasuredWidth = 4096;  // 8 KiB in BF16
constexpr int64_t kMostMeasuredRows = int64_t{kMaxTwoStepBytes} / (kMeasuredWidth * 2);

Status connect_pair(int device, int peer) {
  int can_access = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaDeviceCanAccessPeer(&can_access, device, peer));
  if (can_access == 0) {
    return unavailable(fmt::format("GPU {} cannot access the memory of GPU {}", device, peer));
  }
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();  // otherwise the next launch reports it
    return {};
  }
  return to_status(error, "cudaDeviceEnablePeerAccess");
}

// Called by every rank at the same time.
Result<std::vector<SumTimes>> measure_rank(CudaStream& stream, int rank, NcclRanks& nccl,
                                           PeerSums& peers, std::span<const int64_t> row_counts) {
  QUIRE_RETURN_IF_ERROR(use_device(stream.limits().device));
  const LaunchContext context = {.stream = &stream, .overlap_start = true};
  constexpr int kRepeats = 20;
  constexpr int kRounds = 3;
  const auto rows_of = [&](int64_t num_rows) -> Result<Tensor> {
    QUIRE_ASSIGN_OR_RETURN(Tensor rows, device_tensor({num_rows, kMeasuredWidth}, DType::kBF16));
    stream.set_zero(rows.view.data, rows.view.num_bytes());
    return rows;
  };
  QUIRE_ASSIGN_OR_RETURN(const Tensor residual, rows_of(row_counts.back()));
  QUIRE_ASSIGN_OR_RETURN(const Tensor delta, rows_of(row_counts.back()));
  QUIRE_ASSIGN_OR_RETURN(const Tensor out, rows_of(row_counts.back()));
  QUIRE_ASSIGN_OR_RETURN(const Tensor weight, device_tensor({kMeasuredWidth}, DType::kF32));
  stream.set_zero(weight.view.data, weight.view.num_bytes());
  Result<Stopwatch> stopwatch = Stopwatch::create();
  QUIRE_RETURN_IF_ERROR(stopwatch.status());

  std::vector<SumTimes> times;
  for (const int64_t num_rows : row_counts) {
    ResidualNorm norm = {.residual = residual.view.rows(0, num_rows),
                         .delta = delta.view.rows(0, num_rows),
                         .weight = weight.view.as<float>(),
                         .eps = 1e-5F};
    const TensorView normed = out.view.rows(0, num_rows);
    const auto run_norm = [&] { run_rms_norm(context, norm, normed); };
    // Loads the kernel, which could otherwise wait for a collective that waits for this rank.
    run_norm();
    QUIRE_RETURN_IF_ERROR(stream.synchronize());
    const auto time = [&](const std::function<void()>& sum) -> Result<double> {
      QUIRE_ASSIGN_OR_RETURN(const CudaGraph graph, CudaGraph::capture(stream, [&]() -> Status {
                               for (int i = 0; i < kRepeats; ++i) sum();
                               return {};
                             }));
      QUIRE_RETURN_IF_ERROR(nccl.joint().join({}));
      graph.launch(stream);
      QUIRE_ASSIGN_OR_RETURN(const double us, stopwatch->time(stream, [&]() -> Status {
        graph.launch(stream);
        return {};
      }));
      return us / kRepeats;
    };
    const auto time_method = [&](size_t method) -> Result<double> {
      if (SumMethod(method) == SumMethod::kNccl) {
        return time([&] {
          nccl.all_reduce(rank, norm.delta, stream);
          run_norm();
        });
      }
      const bool is_possible = SumMethod(method) == SumMethod::kOneStep
                                   ? num_rows <= kMaxPeerRows
                                   : num_rows >= kMinTwoStepRows;
      if (!is_possible) return std::numeric_limits<double>::infinity();
      return time([&] {
        run_sum_rows_and_norm(context, peers.inboxes(rank), SumMethod(method), norm, normed);
      });
    };
    QUIRE_ASSIGN_OR_RETURN(const Comparison compared,
                           compare(3, {.num_rounds = kRounds}, one_by_one_or_fail(time_method)));
    const auto median_of = [&](SumMethod method) {
      return compared.trials[static_cast<size_t>(method)].median();
    };
    times.push_back({.num_bytes = norm.delta.num_bytes(),
                     .nccl_us = median_of(SumMethod::kNccl),
                     .one_step_us = median_of(SumMethod::kOneStep),
                     .two_steps_us = median_of(SumMethod::kTwoSteps)});
  }
  return times;
}

}  // namespace

Result<std::shared_ptr<PeerSums>> PeerSums::connect(std::span<const int> devices) {
  if (const char* disabled = std::getenv("NCCL_P2P_DISABLE");
      disabled != nullptr && std::string_view(disabled) == "1") {
    return unavailable("NCCL_P2P_DISABLE is set");
  }
  if (devices.size() > size_t{kMaxPeers}) {
    return unavailable(fmt::format("there are {} GPUs, more than {}", devices.size(), kMaxPeers));
  }
  std::shared_ptr<PeerSums> sums(new PeerSums());
  QUIRE_ASSIGN_OR_RETURN(sums->is_released_, pinned_memory(sizeof(int)));
  std::memset(sums->is_released_.data(), 0, sizeof(int));
  const size_t inbox_bytes = kTwoStepSlot * kNumInboxes * devices.size() * kMaxPeerRowBytes;
  for (const int device : devices) {
    QUIRE_RETURN_IF_ERROR(use_device(device));
    for (const int peer : devices) {
      if (peer != device) QUIRE_RETURN_IF_ERROR(connect_pair(device, peer));
    }
    QUIRE_RETURN_IF_ERROR(load_sum_kernels(static_cast<int>(devices.size())));
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<CudaStream> stream, CudaStream::create());
    for (const auto& [inboxes, num_bytes] :
         {std::pair(&sums->inboxes_, inbox_bytes),
          std::pair(&sums->two_step_inboxes_, kNumInboxes * 2 * kMaxTwoStepBytes)}) {
      QUIRE_ASSIGN_OR_RETURN(Buffer memory, device_memory(num_bytes));
      stream->fill(memory.data(), kEmptyInboxByte, num_bytes);
      inboxes->push_back(std::move(memory));
    }
    constexpr size_t kSlotBytes = kNumPeerSlots * sizeof(PeerSlot);
    QUIRE_ASSIGN_OR_RETURN(sums->slots_.emplace_back(), device_memory(kSlotBytes));
    stream->set_zero(sums->slots_.back().data(), kSlotBytes);
    QUIRE_RETURN_IF_ERROR(stream->synchronize());
  }
  return sums;
}

SumMethod PeerSums::method(const TensorView& x) const {
  const int64_t num_rows = x.shape[0];
  const size_t num_bytes = x.num_bytes();
  if (num_rows == 0) return SumMethod::kNccl;
  const size_t row_bytes = num_bytes / static_cast<size_t>(num_rows);
  constexpr size_t kVector = 16;
  if (row_bytes % kVector != 0 || row_bytes > kMaxPeerRowBytes) return SumMethod::kNccl;
  if (num_rows <= kMaxPeerRows && num_bytes <= limits_.one_step) return SumMethod::kOneStep;
  const size_t part_bytes = round_up(static_cast<size_t>(num_rows), inboxes_.size()) * row_bytes;
  return part_bytes <= limits_.two_steps ? SumMethod::kTwoSteps : SumMethod::kNccl;
}

PeerInboxes PeerSums::inboxes(int rank) const {
  PeerInboxes inboxes;
  inboxes.rank = rank;
  inboxes.num_ranks = static_cast<int>(inboxes_.size());
  for (size_t i = 0; i < inboxes_.size(); ++i) {
    inboxes.of_rank[i] = static_cast<std::byte*>(inboxes_[i].data());
    inboxes.two_steps_of_rank[i] = static_cast<std::byte*>(two_step_inboxes_[i].data());
  }
  inboxes.slots = static_cast<PeerSlot*>(slots_[static_cast<size_t>(rank)].data());
  inboxes.is_released = static_cast<const int*>(is_released_.data());
  return inboxes;
}

void PeerSums::release() {
  auto* const flag = static_cast<int*>(is_released_.data());
  std::atomic_ref(*flag).store(1);
}

std::vector<int64_t> measured_sum_rows() {
  std::vector<int64_t> rows;
  for (int64_t count = 1; count <= kMostMeasuredRows; count *= 2) rows.push_back(count);
  return rows;
}

std::vector<int64_t> checked_sum_rows() {
  return {1, kMinTwoStepRows};
}

std::string to_text(const SumLimits& limits) {
  return fmt::format("{} {}", limits.one_step, limits.two_steps);
}

std::optional<SumLimits> sum_limits(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() != 2) return std::nullopt;
  const auto one_step = parse_whole<size_t>(words[0]);
  const auto two_steps = parse_whole<size_t>(words[1]);
  if (!one_step || !two_steps || std::max(*one_step, *two_steps) > kMaxTwoStepBytes) {
    return std::nullopt;
  }
  return SumLimits{.one_step = *one_step, .two_steps = *two_steps};
}

Result<std::vector<SumTimes>> measure_sums(std::span<CudaStream* const> streams, NcclRanks& nccl,
                                           PeerSums& peers, std::span<const int64_t> row_counts) {
  std::vector<std::vector<SumTimes>> times(streams.size());
  std::vector<Status> statuses(streams.size());
  std::atomic<bool> has_hung = false;
  {
    // Where writes to a peer are lost, as with some IOMMUs, the kernels would wait forever.
    const std::jthread watch([&](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      if (ended.wait_for(lock, stop, kMeasureTimeout, [&] { return stop.stop_requested(); }))
        return;
      if (stop.stop_requested()) return;
      has_hung = true;
      peers.release();
    });
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < streams.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Result<std::vector<SumTimes>> measured =
            measure_rank(*streams[rank], static_cast<int>(rank), nccl, peers, row_counts);
        if (measured.ok()) times[rank] = *std::move(measured);
        statuses[rank] = nccl.joint().join(measured.status());
      });
    }
  }
  if (has_hung) return unavailable("the GPUs do not receive what they write to each other");
  for (const Status& status : statuses) QUIRE_RETURN_IF_ERROR(status);
  std::vector<SumTimes> all = times.front();
  for (const std::vector<SumTimes>& of_rank : times) {
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].nccl_us = std::min(all[i].nccl_us, of_rank[i].nccl_us);
      all[i].one_step_us = std::max(all[i].one_step_us, of_rank[i].one_step_us);
      all[i].two_steps_us = std::max(all[i].two_steps_us, of_rank[i].two_steps_us);
    }
  }
  return all;
}

SumLimits best_limits(std::span<const SumTimes> times) {
  SumLimits limits;
  for (const SumTimes& at : times) {
    const bool is_in_one_step = limits.two_steps == 0 && at.one_step_us < at.two_steps_us;
    if (std::min(at.one_step_us, at.two_steps_us) >= at.nccl_us) break;
    if (is_in_one_step) {
      limits.one_step = at.num_bytes;
    } else if (at.two_steps_us < at.nccl_us) {
      limits.two_steps = at.num_bytes;
    } else {
      break;
    }
  }
  return limits;
}

}  // namespace quire::cuda

// Sums of rows over the GPUs of one process, through each other's memory. NCCL takes about 9 us for
// the sum of a decoded token, most of it for synchronization. Few rows take one step: every rank
// sends its rows to all others. More rows take two: every rank sends each row to its owner, and the
// owner sends the result to all. The kernel of a layer tail (layer_tail.h) sums in one step too.
//
// Each rank has an inbox, into which the kernels of the other ranks write their rows. An inbox is
// filled with a mark that no row contains, so a word that differs from the mark has arrived: there
// are no flags and no fences. Every slot uses three inboxes in turn. A kernel writes to inbox i of
// the other ranks, waits for its own inbox i, and refills its inbox i - 1, which the previous call
// has read. The other ranks write to inbox i - 1 again two calls later. By then they have ended the
// call in between, for which they needed rows of this rank, directly or in an owner's sums. This
// rank sent those rows after the refill, because a kernel starts only after the previous kernel's
// writes. A rank keeps its turn per slot in memory, so eager kernels and graphs may follow each
// other in any order that is the same on all ranks.
//
// A kernel that waits keeps its SMs. Two engines of a process that divide their models among the
// same GPUs could therefore wait for each other forever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda/base/nccl.h"
#include "cuda/ops/op_kernels.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda {

inline constexpr int kMaxPeers = 8;
inline constexpr int kMaxPeerRows = 64;
// Slots: one per row of the sums below, then two for the layer tail's sums after o and down.
inline constexpr int kTailSlot = kMaxPeerRows;
// Then one slot per thread block of the sums in two steps. These have separate inboxes, each with
// the parts of a call and then its results.
inline constexpr int kTwoStepSlot = kTailSlot + 2;
inline constexpr int kTwoStepBlocks = 128;
inline constexpr size_t kMaxTwoStepBytes = size_t{8} << 20;
inline constexpr int kNumPeerSlots = kTwoStepSlot + kTwoStepBlocks;
inline constexpr size_t kMaxPeerRowBytes = size_t{32} << 10;
inline constexpr int kNumInboxes = 3;
inline constexpr int kEmptyInboxByte = 0x80;

struct PeerSlot {
  uint32_t inbox = 0;      // of the next call, below kNumInboxes
  uint32_t num_bytes = 0;  // of the last call, in each inbox
};

// The memory that a rank's kernels need besides the rows. In a rank's inboxes, part (s *
// kNumInboxes + i) * num_ranks + r is the row of rank r in inbox i of slot s. A part has
// kMaxPeerRowBytes.
struct PeerInboxes {
  int rank = 0;
  int num_ranks = 0;
  std::byte* of_rank[kMaxPeers] = {};
  std::byte* two_steps_of_rank[kMaxPeers] = {};
  PeerSlot* slots = nullptr;         // of this rank
  const int* is_released = nullptr;  // host memory; not 0: the kernels stop waiting
};

enum class SumMethod { kNccl, kOneStep, kTwoSteps };

// The largest sums that are computed in one step, and in two, in bytes; 0: none.
struct SumLimits {
  size_t one_step = 0;
  size_t two_steps = 0;
};
// The limits as the text of a kept choice (MeasuredChoices), and the limits of such a text; absent
// if it is not valid.
std::string to_text(const SumLimits& limits);
std::optional<SumLimits> sum_limits(std::string_view text);

// x = the sum of the ranks' x, in F32, rounded once. method: PeerSums::method(x), not kNccl.
void run_sum_rows(const LaunchContext& context, const PeerInboxes& inboxes, SumMethod method,
                  const TensorView& x);
// residual += the sum of the ranks' delta; out = rms_norm(residual). method:
// PeerSums::method(delta).
void run_sum_rows_and_norm(const LaunchContext& context, const PeerInboxes& inboxes,
                           SumMethod method, const ResidualNorm& norm, const TensorView& out);
// Loads the kernels for this number of ranks on the current device.
Status load_sum_kernels(int num_ranks);

class PeerSums {
 public:
  // Lets the GPUs with these indices, by rank, write to each other's memory. Fails with
  // kUnavailable if two of them cannot, or if there are more than kMaxPeers.
  static Result<std::shared_ptr<PeerSums>> connect(std::span<const int> devices);

  // NCCL computes all sums until the limits are set.
  void set_limits(const SumLimits& limits) { limits_ = limits; }
  SumMethod method(const TensorView& x) const;
  PeerInboxes inboxes(int rank) const;
  // Ends the kernels that wait for a rank. The results of all later sums are undefined. Any thread
  // may call it.
  void release();

 private:
  PeerSums() = default;

  SumLimits limits_;
  Buffer is_released_;           // pinned: an int, not 0 after release()
  std::vector<Buffer> inboxes_;  // by rank, on its device
  std::vector<Buffer> two_step_inboxes_;
  std::vector<Buffer> slots_;  // by rank
};

// Microseconds of a sum and the RMSNorm after it, in a graph. Infinity: not measured, because one
// step supports at most kMaxPeerRows rows, and two steps are faster only for more than a few.
struct SumTimes {
  size_t num_bytes = 0;
  double nccl_us = 0;
  double one_step_us = 0;
  double two_steps_us = 0;
};

// measured_sum_rows(): the numbers of rows whose times decide the limits, ascending.
// checked_sum_rows(): the numbers whose results show whether GPUs receive each other's writes.
std::vector<int64_t> measured_sum_rows();
std::vector<int64_t> checked_sum_rows();
// Measures sums of BF16 rows on all ranks at once; `streams`: by rank. nccl_us is the time of the
// fastest rank, the other times are those of the slowest rank. Fails with kUnavailable if a sum
// through peer memory does not end; `peers` must not be used then.
Result<std::vector<SumTimes>> measure_sums(std::span<CudaStream* const> streams, NcclRanks& nccl,
                                           PeerSums& peers, std::span<const int64_t> row_counts);

// The sizes up to which one step, and from there on two steps, were faster than NCCL at all
// measured sizes. `times`: by size.
SumLimits best_limits(std::span<const SumTimes> times);

}  // namespace quire::cuda

// The work of a thread block of the decode kernels: parts of requests, and their positions.
#pragma once

#include <bit>

#include "cuda/attention/native/decode.cuh"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/tile.cuh"
#include "cuda/device/hopper.cuh"

namespace quire::cuda::native {

// The parts into which thread blocks split a request's positions. They depend on the current
// length, so that a graph captured for long contexts does not split short ones.
template <class C>
class Parts {
 public:
  int count;  // parts that have positions, at least 1

  // The keys of a part take a multiple of kMinSplitKeyBytes: the L2 merges fewer parts faster.
  // Members of a cluster may have a multiple of half of that, so that their parts are more equal.
  // There are few divisions, because they are slow and the first copies wait for the result.
  __device__ Parts(Span all, int most, bool in_clusters)
      : count(1), all_(all), tokens_(max(1, length())) {
    if (most == 1 || length() <= kUnsplitUnits * kTokens) return;
    const int shift = in_clusters ? kTokenBits - 1 : kTokenBits;
    const auto num_grains = static_cast<unsigned>(length() + (1 << shift) - 1) >> shift;
    const auto limit = static_cast<unsigned>(most);
    const unsigned most_parts = in_clusters ? min(limit, num_grains / 2) : limit;
    const unsigned grains = (num_grains + most_parts - 1) / most_parts;
    count = static_cast<int>((num_grains + grains - 1) / grains);
    tokens_ = static_cast<int>(grains << shift);
  }
  // Empty if the part has no positions.
  __device__ Span of(int part) const {
    const int first = begin() + part * tokens_;
    return {max(all_.first, first), min(all_.end, first + tokens_)};
  }

 private:
  static constexpr int kTokens = kMinSplitKeyBytes / C::kRowBytes;
  static constexpr int kTokenBits = std::countr_zero(static_cast<unsigned>(kTokens));
  static_assert(kTokens == 1 << kTokenBits);

  __device__ int begin() const { return all_.first & ~(kUnitTokens - 1); }
  __device__ int length() const { return all_.end - begin(); }

  Span all_;
  int tokens_;  // per part
};

// The byte offsets of a unit in a head's keys and values.
struct UnitOffsets {
  int64_t k, v;
};

// The offsets of a warp's next 32 units, one per lane, so that they are loaded before a unit's
// copies start. A step is kStepUnits consecutive units, and steps are `stride` positions apart.
template <int kStepUnits>
class UnitReader {
 public:
  __device__ UnitReader(const int32_t* pages, int page_shift, const PagedRows& keys,
                        const PagedRows& values, int first, int stride, int end)
      : pages_(pages),
        keys_(keys),
        values_(values),
        shift_(page_shift),
        first_(first),
        stride_(stride),
        end_(end) {
    refill(0);
  }
  // The whole warp calls this, with units in ascending order.
  __device__ UnitOffsets offsets(int unit) {
    if (unit % 32 == 0 && unit > 0) refill(unit);
    return {__shfl_sync(0xFFFFFFFFU, own_.k, unit % 32),
            __shfl_sync(0xFFFFFFFFU, own_.v, unit % 32)};
  }

 private:
  __device__ void refill(int unit) {
    const int own = unit + static_cast<int>(threadIdx.x) % 32;
    const int position = first_ + own / kStepUnits * stride_ + own % kStepUnits * kUnitTokens;
    if (position >= end_) return;
    const int64_t page = __ldg(pages_ + (position >> shift_));
    const int slot = position & ((1 << shift_) - 1);
    own_ = {page * keys_.page_stride + slot * keys_.token_stride,
            page * values_.page_stride + slot * values_.token_stride};
  }

  const int32_t* pages_;
  PagedRows keys_, values_;
  int shift_, first_, stride_, end_;
  UnitOffsets own_ = {};
};

// The part of a request that a cluster computes.
struct RequestPart {
  int req_idx;  // of the phase
  int part;     // of num_parts; the request may be too short for all of them
  int num_parts;
  int first_cluster;  // of the grid: the cluster of part 0
};

__device__ inline ClusterWork load_work(const ClusterWork* work) {
  const int4 words = __ldg(reinterpret_cast<const int4*>(work));
  return {words.x, static_cast<uint16_t>(words.y & 0xFFFF), static_cast<uint16_t>(words.y >> 16),
          words.z, words.w};
}

// Calls attend(part, request, settled length) with each part that the thread block's cluster
// computes: without a plan, one part of request blockIdx.z.
template <class Attend>
__device__ __forceinline__ void for_each_part(const Params& p, Attend attend) {
  trigger_dependent_launch();
  const int own_part = static_cast<int>(blockIdx.x) >> p.cluster_shift;
  const int cluster_idx = static_cast<int>(blockIdx.z) * p.num_parts + own_part;
  RequestPart part = {static_cast<int>(blockIdx.z), own_part, p.num_parts, cluster_idx - own_part};
  int settled_len = 0;
  const auto read = [&] {
    const int req_idx = p.first_req + part.req_idx;
    settled_len = p.settled_lens == nullptr ? 0 : p.settled_lens[req_idx];
    return read_request(p, req_idx);
  };
  Request req = read();
  ClusterWork work;
  if (p.work != nullptr) {
    // This load does not wait for the loads above. In an even batch, the planned request is the
    // request that was read above.
    work = load_work(p.work + cluster_idx);
    if (work.num_parts == 0) return;
    const bool is_other = work.req != part.req_idx;
    part = {work.req, work.part, work.num_parts, cluster_idx - work.part};
    if (is_other) req = read();
  }
  for (int i = 0;; ++i) {
    attend(part, req, settled_len);
    if (i == work.num_more) return;
    __syncthreads();  // shared memory is free
    part = {p.more_reqs[work.first_more + i], 0, 1, cluster_idx};
    req = read();
  }
}

}  // namespace quire::cuda::native

// The inboxes of peer_sums.h on the device. A word of 4 bytes has arrived when it differs from
// kEmptyWord. Words may arrive in any order.
#pragma once

#include <type_traits>

#include "cuda/device/elements.cuh"
#include "cuda/ops/peer_sums.h"

namespace quire::cuda {

constexpr uint32_t kEmptyWord = kEmptyInboxByte * 0x01010101U;

__device__ __forceinline__ void send(std::byte* to, const uint4& words) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}
__device__ __forceinline__ void send(std::byte* to, uint32_t word) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
__device__ __forceinline__ void receive(const std::byte* from, uint4& words) {
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from)
               : "memory");
}
__device__ __forceinline__ void receive(const std::byte* from, uint32_t& word) {
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
}
__device__ __forceinline__ bool has_arrived(uint32_t word) {
  return word != kEmptyWord;
}
__device__ __forceinline__ bool has_arrived(const uint4& words) {
  return has_arrived(words.x) && has_arrived(words.y) && has_arrived(words.z) &&
         has_arrived(words.w);
}
// A data word that equals kEmptyWord is sent with its last bit changed. Such a word is one F32 of
// about 1e-38, or two 16-bit numbers below 1e-5.
__device__ __forceinline__ uint32_t marked(uint32_t word) {
  return word == kEmptyWord ? kEmptyWord + 1 : word;
}
__device__ __forceinline__ uint4 marked(const uint4& words) {
  return {marked(words.x), marked(words.y), marked(words.z), marked(words.w)};
}

__device__ __forceinline__ bool is_released(const PeerInboxes& inboxes) {
  int released = 0;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
               : "=r"(released)
               : "l"(inboxes.is_released)
               : "memory");
  return released != 0;
}

// Waits until words have arrived at each address, or until the ranks are released. If address_of(i)
// is null, words[i] is not read.
template <typename Words, int kCount, typename AddressOf>
__device__ __forceinline__ void receive_all(const PeerInboxes& inboxes, const AddressOf& address_of,
                                            Words (&words)[kCount]) {
  constexpr int kPolls = 1024;
  for (int polls = 0, all = 0; all == 0; ++polls) {
    all = 1;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::byte* const address = address_of(i);
      if (address == nullptr) continue;
      receive(address, words[i]);
      all &= has_arrived(words[i]) ? 1 : 0;
    }
    if (polls == kPolls) {
      if (is_released(inboxes)) break;
      polls = 0;
    }
  }
}

// Sums the elements of the words of all ranks, in the order of the ranks. `own` has the words of
// this rank.
template <typename T, typename Words, int kRanks>
__device__ __forceinline__ void sum_parts(const PeerInboxes& inboxes, const Words& own,
                                          const Words (&parts)[kRanks],
                                          float (&sums)[sizeof(Words) / sizeof(T)]) {
  constexpr int kCount = sizeof(Words) / sizeof(T);
#pragma unroll
  for (int j = 0; j < kCount; ++j) sums[j] = 0.0F;
#pragma unroll
  for (int r = 0; r < kRanks; ++r) {
    if (r >= inboxes.num_ranks) break;
    const Words words = r == inboxes.rank ? own : parts[r];
    const auto& values = reinterpret_cast<const Vec<T, kCount>&>(words);
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] += to_float(values.v[j]);
  }
}

// The calls use the inboxes in turn.
__device__ __forceinline__ uint32_t inbox_before(uint32_t inbox) {
  return (inbox + kNumInboxes - 1) % kNumInboxes;
}
__device__ __forceinline__ uint32_t inbox_behind(uint32_t inbox) {
  return (inbox + 1) % kNumInboxes;
}

// The inboxes that a call uses in one slot. kRanks: the number of ranks or more.
template <int kRanks>
class PeerRow {
 public:
  // Must be constructed after wait_for_previous_kernel().
  __device__ __forceinline__ PeerRow(const PeerInboxes& inboxes, int64_t slot)
      : inboxes_(inboxes), slot_(inboxes.slots + slot), last_(*slot_) {
    now_ = (slot * kNumInboxes + last_.inbox) * inboxes.num_ranks;
    before_ = (slot * kNumInboxes + inbox_before(last_.inbox)) * inboxes.num_ranks;
  }

  // Sends words of the row to the other ranks.
  template <typename Words>
  __device__ __forceinline__ void send_to_others(int64_t at, const Words& words) const {
#pragma unroll
    for (int r = 0; r < kRanks; ++r) {
      if (is_other(r)) send(inboxes_.of_rank[r] + part(now_ + inboxes_.rank) + at, words);
    }
  }

  // Fills the inboxes of the previous call with kEmptyWord. Each of num_threads threads fills a
  // share of them.
  __device__ __forceinline__ void refill(unsigned thread, unsigned num_threads) const {
    const uint4 empty = {kEmptyWord, kEmptyWord, kEmptyWord, kEmptyWord};
    for (int r = 0; r < inboxes_.num_ranks; ++r) {
      if (!is_other(r)) continue;
      std::byte* const inbox = inboxes_.of_rank[inboxes_.rank] + part(before_ + r);
      for (unsigned i = thread * sizeof(uint4); i < last_.num_bytes;
           i += num_threads * sizeof(uint4)) {
        *reinterpret_cast<uint4*>(inbox + i) = empty;
      }
    }
  }

  // Waits for the words of the other ranks' rows, and returns the sums over all ranks.
  template <typename T, typename Words>
  __device__ __forceinline__ void receive_sums(int64_t at, const Words& own,
                                               float (&sums)[sizeof(Words) / sizeof(T)]) const {
    const auto address_of = [&](int r) -> const std::byte* {
      return is_other(r) ? inboxes_.of_rank[inboxes_.rank] + part(now_ + r) + at : nullptr;
    };
    Words parts[kRanks];
    receive_all(inboxes_, address_of, parts);
    sum_parts<T>(inboxes_, own, parts, sums);
  }

  // One thread calls this after all threads have constructed their PeerRow of the slot.
  __device__ __forceinline__ void end(int64_t row_bytes) const {
    *slot_ = {inbox_behind(last_.inbox), static_cast<uint32_t>(row_bytes)};
  }

 private:
  __device__ __forceinline__ bool is_other(int r) const {
    return r < inboxes_.num_ranks && r != inboxes_.rank;
  }
  __device__ __forceinline__ static int64_t part(int64_t idx) {
    return idx * static_cast<int64_t>(kMaxPeerRowBytes);
  }

  const PeerInboxes& inboxes_;
  PeerSlot* slot_;
  PeerSlot last_;
  int64_t now_;  // index of the first part of the inbox
  int64_t before_;
};

// Loads kernels on the current device in advance. The first launch of a kernel that is not loaded
// waits for the device to finish its work. That work may include a kernel that waits for this rank.
class KernelLoader {
 public:
  template <typename Kernel>
  void load(Kernel* kernel) {
    cudaFuncAttributes attributes;
    if (error_ != cudaSuccess) return;
    error_ = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
  }
  Status status() const { return to_status(error_, "cudaFuncGetAttributes"); }

 private:
  cudaError_t error_ = cudaSuccess;
};

// Calls body(ranks) with the smallest compiled number of ranks that is large enough. Each number is
// compiled separately, because it determines the registers for the words of the other ranks.
template <typename Body>
void with_max_ranks(int num_ranks, const Body& body) {
  if (num_ranks <= 2) return body(std::integral_constant<int, 2>());
  if (num_ranks <= 4) return body(std::integral_constant<int, 4>());
  body(std::integral_constant<int, kMaxPeers>());
}

}  // namespace quire::cuda

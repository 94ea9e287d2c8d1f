#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/peer_sums.h"

namespace quire::cuda {
namespace {

constexpr int64_t kMaxBlock = 1024;
constexpr uint32_t kEmptyWord = kEmptyInboxByte * 0x01010101U;

// A word of 4 bytes has arrived once it differs from kEmptyWord. Words arrive in any order.
__device__ __forceinline__ void send(std::byte* to, const uint4& words) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}
__device__ __forceinline__ uint4 receive(const std::byte* from) {
  uint4 words;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from)
               : "memory");
  return words;
}
__device__ __forceinline__ bool has_arrived(const uint4& words) {
  return words.x != kEmptyWord && words.y != kEmptyWord && words.z != kEmptyWord &&
         words.w != kEmptyWord;
}
// A word of data that equals kEmptyWord is sent with its last bit changed. It is one F32 of about
// 1e-38, or two numbers of 16 bits below 1e-5.
__device__ __forceinline__ uint32_t marked(uint32_t word) {
  return word == kEmptyWord ? kEmptyWord + 1 : word;
}
// The 16 bytes that a rank sends, and that it adds itself.
__device__ __forceinline__ uint4 load_marked(const void* address) {
  const uint4 words = *static_cast<const uint4*>(address);
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

// One row's part in a call: the inboxes of its slot that the call uses. kRanks: at least the number
// of ranks.
template <int kRanks>
class PeerRow {
 public:
  // After wait_for_previous_kernel().
  __device__ PeerRow(const PeerInboxes& inboxes, int64_t row)
      : inboxes_(inboxes), slot_(inboxes.slots + row), last_(*slot_) {
    const unsigned now = last_.num_calls % kNumInboxes;
    const unsigned before = (last_.num_calls + kNumInboxes - 1) % kNumInboxes;
    now_ = (row * kNumInboxes + now) * inboxes.num_ranks;
    before_ = (row * kNumInboxes + before) * inboxes.num_ranks;
  }

  // Sends 16 bytes of the row to the other ranks.
  __device__ void send_all(int64_t at, const uint4& words) const {
#pragma unroll
    for (int r = 0; r < kRanks; ++r) {
      if (is_other(r)) send(inboxes_.of_rank[r] + part(now_ + inboxes_.rank) + at, words);
    }
  }

  // Marks the inboxes of the call before as empty.
  __device__ void refill() const {
    const uint4 empty = {kEmptyWord, kEmptyWord, kEmptyWord, kEmptyWord};
    for (int r = 0; r < inboxes_.num_ranks; ++r) {
      if (r == inboxes_.rank) continue;
      std::byte* const inbox = inboxes_.of_rank[inboxes_.rank] + part(before_ + r);
      for (unsigned i = threadIdx.x * sizeof(uint4); i < last_.num_bytes;
           i += blockDim.x * sizeof(uint4)) {
        *reinterpret_cast<uint4*>(inbox + i) = empty;
      }
    }
  }

  // The sum of 16 bytes of all ranks' rows, in the order of the ranks.
  template <typename T>
  __device__ void receive_sum(int64_t at, const uint4& own, float (&sum)[kWidestVec<T>]) const {
    uint4 parts[kRanks];
    constexpr int kPolls = 1024;
    for (int polls = 0, all = 0; all == 0; ++polls) {
      all = 1;
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        if (!is_other(r)) continue;
        parts[r] = receive(inboxes_.of_rank[inboxes_.rank] + part(now_ + r) + at);
        all &= has_arrived(parts[r]) ? 1 : 0;
      }
      if (polls == kPolls) {
        if (is_released(inboxes_)) break;
        polls = 0;
      }
    }
#pragma unroll
    for (int j = 0; j < kWidestVec<T>; ++j) sum[j] = 0.0F;
#pragma unroll
    for (int r = 0; r < kRanks; ++r) {
      if (r >= inboxes_.num_ranks) break;
      const uint4 words = r == inboxes_.rank ? own : parts[r];
      const auto& values = reinterpret_cast<const Vec<T, kWidestVec<T>>&>(words);
#pragma unroll
      for (int j = 0; j < kWidestVec<T>; ++j) sum[j] += to_float(values.v[j]);
    }
  }

  // Once every thread of the block has made its last call above.
  __device__ void end(int64_t row_bytes) const {
    if (threadIdx.x == 0) {
      *slot_ = {last_.num_calls + 1, static_cast<uint32_t>(row_bytes)};
    }
  }

 private:
  __device__ bool is_other(int r) const {
    return r < inboxes_.num_ranks && r != inboxes_.rank;
  }
  __device__ static int64_t part(int64_t idx) {
    return idx * static_cast<int64_t>(kMaxPeerRowBytes);
  }

  const PeerInboxes& inboxes_;
  PeerSlot* slot_;
  PeerSlot last_;
  int64_t now_;  // index of the first part of the inbox
  int64_t before_;
};

// Sends the block's row of x, from its first vector on.
template <typename T, int kRanks>
__device__ void send_row(const PeerRow<kRanks>& peers, const T* row, int width) {
  constexpr int kVec = kWidestVec<T>;
  for (int i = static_cast<int>(threadIdx.x) * kVec; i < width;
       i += static_cast<int>(blockDim.x) * kVec) {
    peers.send_all(i * int64_t{sizeof(T)}, load_marked(row + i));
  }
}

// One thread block per row.
template <typename T, int kRanks>
__global__ void __launch_bounds__(kMaxBlock)
    sum_rows_kernel(const __grid_constant__ PeerInboxes inboxes, int width, T* x) {
  constexpr int kVec = kWidestVec<T>;
  trigger_dependent_launch();
  wait_for_previous_kernel();
  T* const row = x + int64_t{blockIdx.x} * width;
  const PeerRow<kRanks> peers(inboxes, blockIdx.x);
  send_row(peers, row, width);
  peers.refill();
  for (int i = static_cast<int>(threadIdx.x) * kVec; i < width;
       i += static_cast<int>(blockDim.x) * kVec) {
    float sum[kVec];
    peers.template receive_sum<T>(i * int64_t{sizeof(T)}, load_marked(row + i), sum);
    Vec<T, kVec> value;
#pragma unroll
    for (int j = 0; j < kVec; ++j) value.v[j] = from_float<T>(sum[j]);
    store_vec(row + i, value);
  }
  __syncthreads();
  peers.end(width * int64_t{sizeof(T)});
}

template <typename T>
struct SumAndNorm {
  T* residual;
  const T* delta;
  const float* weight;
  float eps;
  int width;
  T* out;
};

// One thread block per row. A thread's first vector stays in registers.
template <typename T, int kRanks>
__global__ void __launch_bounds__(kMaxBlock)
    sum_rows_and_norm_kernel(const __grid_constant__ PeerInboxes inboxes,
                             const SumAndNorm<T> args) {
  constexpr int kVec = kWidestVec<T>;
  trigger_dependent_launch();
  const int first = static_cast<int>(threadIdx.x) * kVec;
  const int step = static_cast<int>(blockDim.x) * kVec;
  float first_weights[kVec] = {};
  if (first < args.width) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) first_weights[j] = args.weight[first + j];
  }
  wait_for_previous_kernel();
  const int64_t offset = int64_t{blockIdx.x} * args.width;
  T* const residual = args.residual + offset;
  const T* const delta = args.delta + offset;
  const PeerRow<kRanks> peers(inboxes, blockIdx.x);
  send_row(peers, delta, args.width);
  peers.refill();
  Vec<T, kVec> kept;
  float squares = 0;
  for (int i = first; i < args.width; i += step) {
    Vec<T, kVec> value = load_vec<kVec>(residual + i);
    float sum[kVec];
    peers.template receive_sum<T>(i * int64_t{sizeof(T)}, load_marked(delta + i), sum);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      value.v[j] = from_float<T>(to_float(value.v[j]) + sum[j]);
      squares += to_float(value.v[j]) * to_float(value.v[j]);
    }
    store_vec(residual + i, value);
    if (i == first) kept = value;
  }
  const float mean = block_sum(squares) / static_cast<float>(args.width);
  peers.end(args.width * int64_t{sizeof(T)});
  const float scale = 1.0F / sqrtf(mean + args.eps);
  for (int i = first; i < args.width; i += step) {
    Vec<T, kVec> value = i == first ? kept : load_vec<kVec>(residual + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const float w = i == first ? first_weights[j] : args.weight[i + j];
      value.v[j] = from_float<T>(to_float(value.v[j]) * scale * w);
    }
    store_vec(args.out + offset + i, value);
  }
}

LaunchShape row_blocks(const LaunchContext& context, const TensorView& x) {
  const int64_t num_vectors = static_cast<int64_t>(x.rows(0, 1).num_bytes() / sizeof(uint4));
  return context.shape(x.shape[0], std::min(round_up(num_vectors, int64_t{32}), kMaxBlock));
}

// Calls body(type, ranks) with the element type, and the smallest compiled number of ranks that is
// large enough: each has its own registers for what the others send.
template <typename Body>
void with_kernel(DType dtype, int num_ranks, const Body& body) {
  with_float_type(dtype, [&](auto type) {
    if (num_ranks <= 2) return body(type, std::integral_constant<int, 2>());
    if (num_ranks <= 4) return body(type, std::integral_constant<int, 4>());
    body(type, std::integral_constant<int, kMaxPeers>());
  });
}

}  // namespace

void run_sum_rows(const LaunchContext& context, const PeerInboxes& inboxes, const TensorView& x) {
  with_kernel(x.dtype, inboxes.num_ranks, [&](auto type, auto ranks) {
    using T = typename decltype(type)::type;
    QUIRE_LAUNCH(*context.stream, (sum_rows_kernel<T, ranks.value>), row_blocks(context, x),
                 inboxes, static_cast<int>(x.shape[1]), x.as<T>());
  });
}

void run_sum_rows_and_norm(const LaunchContext& context, const PeerInboxes& inboxes,
                           const ResidualNorm& norm, const TensorView& out) {
  with_kernel(out.dtype, inboxes.num_ranks, [&](auto type, auto ranks) {
    using T = typename decltype(type)::type;
    const SumAndNorm<T> args = {norm.residual.as<T>(),
                                norm.delta.as<const T>(),
                                norm.weight,
                                norm.eps,
                                static_cast<int>(out.shape[1]),
                                out.as<T>()};
    QUIRE_LAUNCH(*context.stream, (sum_rows_and_norm_kernel<T, ranks.value>),
                 row_blocks(context, norm.delta), inboxes, args);
  });
}

Status load_sum_kernels(int num_ranks) {
  cudaError_t error = cudaSuccess;
  const auto load = [&](auto* kernel) {
    cudaFuncAttributes attributes;
    if (error != cudaSuccess) return;
    error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    with_kernel(dtype, num_ranks, [&](auto type, auto ranks) {
      using T = typename decltype(type)::type;
      load(&sum_rows_kernel<T, ranks.value>);
      load(&sum_rows_and_norm_kernel<T, ranks.value>);
    });
  }
  return to_status(error, "cudaFuncGetAttributes");
}

}  // namespace quire::cuda

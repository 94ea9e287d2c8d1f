#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/peer_rows.cuh"
#include "cuda/ops/peer_sums.h"

namespace quire::cuda {
namespace {

constexpr int64_t kMaxSumBlock = 1024;
constexpr int64_t kTwoStepThreads = 512;

// A thread block's row of x, which becomes the sum.
template <typename T>
class SummedRow {
 public:
  using Element = T;
  struct Args {
    T* x;
    int width;
  };

  // Constructed before wait_for_previous_kernel().
  __device__ explicit SummedRow(const Args& args) : args_(args) {}
  __device__ void start(int64_t row) { x_ = args_.x + row * args_.width; }
  // The numbers that this rank adds.
  __device__ const T* part() const { return x_; }
  // The result for the vector of the row that begins at column i.
  __device__ Vec<T, kWidestVec<T>> add(int /*i*/, const float (&sum)[kWidestVec<T>]) const {
    Vec<T, kWidestVec<T>> value;
#pragma unroll
    for (int j = 0; j < kWidestVec<T>; ++j) value.v[j] = from_float<T>(sum[j]);
    return value;
  }
  __device__ void store(int i, const Vec<T, kWidestVec<T>>& value) {
    store_vec(x_ + i, value);
  }
  // Called after the last store() of every thread.
  __device__ void finish() {}

 private:
  const Args& args_;
  T* x_ = nullptr;
};

// A row of the residual, to which the sum of the ranks' delta is added, and its norm. A thread's
// first vector stays in registers.
template <typename T>
class NormedRow {
 public:
  using Element = T;
  struct Args {
    T* residual;
    const T* delta;
    const float* weight;
    float eps;
    int width;
    T* out;
  };

  __device__ explicit NormedRow(const Args& args) : args_(args) {
    if (first() >= args_.width) return;
#pragma unroll
    for (int j = 0; j < kVec; ++j) first_weights_[j] = args_.weight[first() + j];
  }
  __device__ void start(int64_t row) {
    __syncthreads();  // all threads have read block_sum() of the previous row
    offset_ = row * args_.width;
    squares_ = 0;
  }
  __device__ const T* part() const {
    return args_.delta + offset_;
  }
  __device__ Vec<T, kWidestVec<T>> add(int i, const float (&sum)[kWidestVec<T>]) const {
    Vec<T, kVec> value = load_vec<kVec>(args_.residual + offset_ + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) value.v[j] = from_float<T>(to_float(value.v[j]) + sum[j]);
    return value;
  }
  __device__ void store(int i, const Vec<T, kWidestVec<T>>& value) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) squares_ += to_float(value.v[j]) * to_float(value.v[j]);
    store_vec(args_.residual + offset_ + i, value);
    if (i == first()) kept_ = value;
  }
  __device__ void finish() {
    const float mean = block_sum(squares_) / static_cast<float>(args_.width);
    const float scale = 1.0F / sqrtf(mean + args_.eps);
    for (int i = first(); i < args_.width; i += static_cast<int>(blockDim.x) * kVec) {
      Vec<T, kVec> value = i == first() ? kept_ : load_vec<kVec>(args_.residual + offset_ + i);
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        const float w = i == first() ? first_weights_[j] : args_.weight[i + j];
        value.v[j] = from_float<T>(to_float(value.v[j]) * scale * w);
      }
      store_vec(args_.out + offset_ + i, value);
    }
  }

 private:
  static constexpr int kVec = kWidestVec<T>;

  __device__ static int first() {
    return static_cast<int>(threadIdx.x) * kVec;
  }

  const Args& args_;
  float first_weights_[kVec] = {};
  int64_t offset_ = 0;
  float squares_ = 0;
  Vec<T, kVec> kept_;
};

// The 16 bytes that a rank sends to the other ranks and adds itself.
__device__ __forceinline__ uint4 load_marked(const void* address) {
  return marked(*static_cast<const uint4*>(address));
}

// Calls body(column, its offset in bytes) for each of the thread's vectors of a row.
template <typename T, typename Body>
__device__ __forceinline__ void for_each_vector(int width, const Body& body) {
  constexpr int kVec = kWidestVec<T>;
  for (int i = static_cast<int>(threadIdx.x) * kVec; i < width;
       i += static_cast<int>(blockDim.x) * kVec) {
    body(i, i * int64_t{sizeof(T)});
  }
}

// Every rank sends its row to the other ranks, and adds up all rows. One thread block per row.
template <typename Row, int kRanks>
__global__ void __launch_bounds__(kMaxSumBlock)
    one_step_kernel(const __grid_constant__ PeerInboxes inboxes,
                    const __grid_constant__ typename Row::Args args) {
  using T = typename Row::Element;
  trigger_dependent_launch();
  Row row(args);
  wait_for_previous_kernel();
  row.start(blockIdx.x);
  const PeerRow<kRanks> peers(inboxes, blockIdx.x);
  for_each_vector<T>(args.width, [&](int i, int64_t at) {
    peers.send_to_others(at, load_marked(row.part() + i));
  });
  peers.refill(threadIdx.x, blockDim.x);
  for_each_vector<T>(args.width, [&](int i, int64_t at) {
    float sums[kWidestVec<T>];
    peers.template receive_sums<T>(at, load_marked(row.part() + i), sums);
    row.store(i, row.add(i, sums));
  });
  row.finish();
  __syncthreads();
  if (threadIdx.x == 0) peers.end(args.width * int64_t{sizeof(T)});
}

// The inboxes of one sum in two steps. Each rank owns every num_ranks-th row.
class OwnedRows {
 public:
  // Constructed after wait_for_previous_kernel().
  __device__ OwnedRows(const PeerInboxes& inboxes, int num_rows, int64_t row_bytes)
      : inboxes_(inboxes),
        row_bytes_(row_bytes),
        num_bytes_(static_cast<uint32_t>(round_up(num_rows, inboxes.num_ranks) * row_bytes)),
        slot_(inboxes.slots + kTwoStepSlot + blockIdx.x),
        last_(*slot_) {}

  __device__ int owner(int row) const { return row % inboxes_.num_ranks; }
  // The address at which the owner of a row receives the part of rank `from`.
  __device__ std::byte* part(int row, int from) const {
    const int place = row - owner(row) + from;
    return area(owner(row), last_.inbox) + place * row_bytes_;
  }
  // The address at which a rank receives the row's result from its owner.
  __device__ std::byte* result(int rank, int row) const {
    return area(rank, last_.inbox) + kMaxTwoStepBytes + row * row_bytes_;
  }
  // Fills the inboxes of the previous call with kEmptyWord.
  __device__ void refill() const {
    const uint4 empty = {kEmptyWord, kEmptyWord, kEmptyWord, kEmptyWord};
    std::byte* const before = area(inboxes_.rank, inbox_before(last_.inbox));
    for (unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * sizeof(uint4); i < last_.num_bytes;
         i += gridDim.x * blockDim.x * sizeof(uint4)) {
      *reinterpret_cast<uint4*>(before + i) = empty;
      *reinterpret_cast<uint4*>(before + kMaxTwoStepBytes + i) = empty;
    }
  }
  // One thread of each thread block calls this after all its threads have constructed this.
  __device__ void end() const { *slot_ = {inbox_behind(last_.inbox), num_bytes_}; }

 private:
  __device__ std::byte* area(int rank, uint32_t inbox) const {
    return inboxes_.two_steps_of_rank[rank] + inbox * 2 * kMaxTwoStepBytes;
  }

  const PeerInboxes& inboxes_;
  int64_t row_bytes_;
  uint32_t num_bytes_;
  PeerSlot* slot_;
  PeerSlot last_;
};

// Every rank sends its rows to their owners, which add them up and send the result to all. There
// are always kTwoStepBlocks thread blocks, because each counts the calls in its own slot.
template <typename Row, int kRanks>
__global__ void __launch_bounds__(kTwoStepThreads)
    two_step_kernel(const __grid_constant__ PeerInboxes inboxes,
                    const __grid_constant__ typename Row::Args args, int num_rows) {
  using T = typename Row::Element;
  using Result = Vec<T, kWidestVec<T>>;
  trigger_dependent_launch();
  Row row(args);
  wait_for_previous_kernel();
  const OwnedRows rows(inboxes, num_rows, args.width * int64_t{sizeof(T)});
  const int rank = inboxes.rank;
  const auto first = static_cast<int>(blockIdx.x);
  for (int t = first; t < num_rows; t += kTwoStepBlocks) {
    if (rows.owner(t) == rank) continue;
    row.start(t);
    std::byte* const part = rows.part(t, rank);
    for_each_vector<T>(args.width,
                       [&](int i, int64_t at) { send(part + at, load_marked(row.part() + i)); });
  }
  rows.refill();
  for (int t = first; t < num_rows; t += kTwoStepBlocks) {
    row.start(t);
    const bool is_owner = rows.owner(t) == rank;
    for_each_vector<T>(args.width, [&](int i, int64_t at) {
      if (!is_owner) {
        uint4 result[1];
        receive_all(
            inboxes, [&](int /*i*/) { return rows.result(rank, t) + at; }, result);
        return row.store(i, reinterpret_cast<const Result&>(result));
      }
      const auto address_of = [&](int r) -> const std::byte* {
        return r < inboxes.num_ranks && r != rank ? rows.part(t, r) + at : nullptr;
      };
      uint4 parts[kRanks];
      receive_all(inboxes, address_of, parts);
      float sums[kWidestVec<T>];
      sum_parts<T>(inboxes, load_marked(row.part() + i), parts, sums);
      const Result added = row.add(i, sums);
      const uint4 result = marked(reinterpret_cast<const uint4&>(added));
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        if (r < inboxes.num_ranks && r != rank) send(rows.result(r, t) + at, result);
      }
      row.store(i, reinterpret_cast<const Result&>(result));
    });
    row.finish();
  }
  __syncthreads();
  if (threadIdx.x == 0) rows.end();
}

template <typename Row>
void run(const LaunchContext& context, const PeerInboxes& inboxes, SumMethod method,
         const typename Row::Args& args, const TensorView& x) {
  with_max_ranks(inboxes.num_ranks, [&](auto ranks) {
    if (method == SumMethod::kTwoSteps) {
      const LaunchShape shape = context.shape(kTwoStepBlocks, kTwoStepThreads);
      return QUIRE_LAUNCH(*context.stream, (two_step_kernel<Row, ranks.value>), shape, inboxes,
                          args, static_cast<int>(x.shape[0]));
    }
    const auto num_vectors = static_cast<int64_t>(x.rows(0, 1).num_bytes() / sizeof(uint4));
    const LaunchShape shape =
        context.shape(x.shape[0], std::min(round_up(num_vectors, int64_t{32}), kMaxSumBlock));
    QUIRE_LAUNCH(*context.stream, (one_step_kernel<Row, ranks.value>), shape, inboxes, args);
  });
}

}  // namespace

void run_sum_rows(const LaunchContext& context, const PeerInboxes& inboxes, SumMethod method,
                  const TensorView& x) {
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    run<SummedRow<T>>(context, inboxes, method, {x.as<T>(), static_cast<int>(x.shape[1])}, x);
  });
}

void run_sum_rows_and_norm(const LaunchContext& context, const PeerInboxes& inboxes,
                           SumMethod method, const ResidualNorm& norm, const TensorView& out) {
  with_float_type(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    run<NormedRow<T>>(context, inboxes, method,
                      {norm.residual.as<T>(), norm.delta.as<const T>(), norm.weight, norm.eps,
                       static_cast<int>(out.shape[1]), out.as<T>()},
                      norm.delta);
  });
}

Status load_sum_kernels(int num_ranks) {
  KernelLoader loader;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    with_float_type(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      with_max_ranks(num_ranks, [&](auto ranks) {
        loader.load(&one_step_kernel<SummedRow<T>, ranks.value>);
        loader.load(&one_step_kernel<NormedRow<T>, ranks.value>);
        loader.load(&two_step_kernel<SummedRow<T>, ranks.value>);
        loader.load(&two_step_kernel<NormedRow<T>, ranks.value>);
      });
    });
  }
  return loader.status();
}

}  // namespace quire::cuda

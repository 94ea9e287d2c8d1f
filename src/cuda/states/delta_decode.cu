// A gated delta net for one token per sequence, in one kernel. It is bound by reading and writing
// the states. A thread block has a value head, or kParts of a cluster have kColumns of its columns
// each, so that few sequences occupy all SMs. A thread keeps its part of the state in registers,
// which it reads before the previous kernel ends: no kernel of the same step writes it, and the
// steps before have ended. Both sums over the state's rows are made in one pass, because
//   S'^T q = decay * S^T q + (k . q) d,  S' = decay * S + k d^T,  d = beta (v - decay * S^T k)
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/activation.cuh"
#include "cuda/states/delta_args.cuh"

namespace quire::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kDim = kDeltaHeadDim;
constexpr int kVec = 4;         // columns of a thread
constexpr int kRowGroups = 16;  // threads that have the same columns
constexpr int kRowsPerThread = kDim / kRowGroups;
constexpr int kPast = kDeltaKernel - 1;

// The newest inputs of one channel before the token, the oldest first.
struct Channel {
  int64_t index = 0;
  float past[kPast] = {};
};

// The rows of the token and of the past ones in a page.
struct PageRows {
  int own;
  int past[kPast];

  __device__ PageRows(int position, int num_rows) : own(position % num_rows) {
#pragma unroll
    for (int i = 0; i < kPast; ++i) {
      const int row = own - kPast + i;
      past[i] = row < 0 ? row + num_rows : row;
    }
  }
};

template <int kParts>
struct alignas(16) Shared {
  static constexpr int kColumns = kDim / kParts;
  static constexpr int kThreads = kColumns / kVec * kRowGroups;
  static constexpr int kWarps = kThreads / kWarp;
  float q[kDim];
  float k[kDim];
  float v[kColumns];
  float delta[kColumns];
  float2 sums[kWarps][kColumns];  // S^T k and S^T q over the rows of a warp
  float norms[3][4];              // |q|^2, |k|^2, q . k, by warp
  float squares[4];               // of the output, by warp or by thread block of the cluster
};

__device__ inline float sum_of(const float (&parts)[4]) {
  const float4 x = *reinterpret_cast<const float4*>(parts);
  return (x.x + x.y) + (x.z + x.w);
}

template <typename T, int kParts>
class Head {
 public:
  using SharedType = Shared<kParts>;
  static constexpr int kColumns = SharedType::kColumns;
  static constexpr int kThreads = SharedType::kThreads;
  static constexpr int kThreadsPerRow = kColumns / kVec;

  __device__ Head(const DeltaArgs<T>& args, SharedType& shared)
      : args_(args),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        head_(static_cast<int>(blockIdx.x) / kParts),
        part_(static_cast<int>(blockIdx.x) % kParts),
        row_group_(thread_ / kThreadsPerRow),
        column_(thread_ % kThreadsPerRow * kVec),
        row_(args.states.query_start[args.seqs.first + blockIdx.y]),
        position_(args.states.seq_lens[args.seqs.first + blockIdx.y] - 1) {}

  __device__ void run() {
    if constexpr (kParts > 1) arrive_at_cluster();
    load_state();
    wait_for_previous_kernel();
    if (position_ < 0) return clear();  // a request that pads a graph's batch
    load_token();
    add_up();
    compute_columns();
    write_page();
    write_output();
  }

 private:
  // The column of the head that the first threads finish, one each.
  __device__ bool has_column() const { return thread_ < kColumns; }
  __device__ int own_column() const { return part_ * kColumns + thread_; }
  // The last threads convolve the values.
  __device__ int value() const { return thread_ - (kThreads - kColumns); }

  // With a whole head, no thread has both values and queries, which saves registers.
  __device__ Channel& value_channel() { return kParts == 1 ? q_ : v_; }
  __device__ float& value_in() { return kParts == 1 ? q_in_ : v_in_; }

  __device__ void load_state() {
    const StatePages& states = args_.states;
    const int32_t* const pages =
        states.page_table + (args_.seqs.first + blockIdx.y) * states.max_pages;
    const int32_t page = pages[max(position_, 0) / states.block_size];
    if (position_ > 0) before_ = page_of(states, pages[(position_ - 1) / states.block_size]);
    if (before_ != nullptr) {
      const float* const from =
          before_ + args_.page.states + int64_t{head_} * kDim * kDim + part_ * kColumns + column_;
#pragma unroll
      for (int i = 0; i < kRowsPerThread; ++i) {
        // By an intrinsic: a plain copy of a float4 became four loads here.
        state_[i] =
            __ldcs(reinterpret_cast<const float4*>(from + (row_group_ + i * kRowGroups) * kDim));
      }
    }
    if (page != 0 && states.kv_slots[row_] >= 0) page_ = page_of(states, page);
    const int k_head = head_ / args_.group();
    if (thread_ < kDim) {
      load_past(args_.q_channel(k_head) + thread_, q_);
      load_past(args_.k_channel(k_head) + thread_, k_);
    }
    if (value() >= 0) {
      load_past(args_.v_channel(head_) + part_ * kColumns + value(), value_channel());
    }
  }
  __device__ void load_past(int64_t index, Channel& channel) {
    channel.index = index;
    const PageRows rows(max(position_, 0), args_.page.num_rows);
#pragma unroll
    for (int i = 0; i < kPast; ++i) {
      if (position_ - kPast + i < 0) continue;
      channel.past[i] = before_[rows.past[i] * args_.shape.num_channels() + index];
    }
  }

  __device__ void clear() {
    if constexpr (kParts > 1) wait_for_cluster();
    if (has_column()) output(own_column()) = from_float<T>(0.0F);
  }

  __device__ const T* x() const {
    return args_.x + int64_t{row_} * args_.x_width;
  }
  __device__ T& output(int column) const {
    return args_.out[int64_t{row_} * args_.shape.width() + int64_t{head_} * kDim + column];
  }

  // The queries, keys and values of the token, before the norms; and the sums of squares for these.
  __device__ void load_token() {
    const T* const ba = args_.ba + int64_t{row_} * 2 * args_.shape.num_v_heads;
    const float b = to_float(ba[head_]);
    const float a = to_float(ba[args_.shape.num_v_heads + head_]);
    if (thread_ < kDim) {
      const float q = convolve(q_, q_in_);
      const float k = convolve(k_, k_in_);
      shared_.q[thread_] = q;
      shared_.k[thread_] = k;
      const float q_squares = warp_sum(q * q);
      const float k_squares = warp_sum(k * k);
      const float products = warp_sum(q * k);
      if (thread_ % kWarp == 0) {
        shared_.norms[0][thread_ / kWarp] = q_squares;
        shared_.norms[1][thread_ / kWarp] = k_squares;
        shared_.norms[2][thread_ / kWarp] = products;
      }
    }
    if (value() >= 0) shared_.v[value()] = convolve(value_channel(), value_in());
    const DeltaGates gates = gates_of(args_, b, a, head_);
    decay_ = expf(gates.log_decay);
    beta_ = gates.beta;
    __syncthreads();
    q_scale_ = rsqrtf(sum_of(shared_.norms[0]) + 1e-6F) * rsqrtf(static_cast<float>(kDim));
    k_scale_ = rsqrtf(sum_of(shared_.norms[1]) + 1e-6F);
  }
  __device__ float convolve(const Channel& channel, float& in) const {
    in = to_float(x()[channel.index]);
    const float* const w = args_.conv + channel.index;
    const int64_t num_channels = args_.shape.num_channels();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPast; ++i) sum = fmaf(w[i * num_channels], channel.past[i], sum);
    return silu<T>(fmaf(w[kPast * num_channels], in, sum));
  }

  // S^T k and S^T q over the rows of each warp.
  __device__ void add_up() {
    float k_sums[kVec] = {};
    float q_sums[kVec] = {};
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const float key = shared_.k[row_group_ + i * kRowGroups] * k_scale_;
      const float query = shared_.q[row_group_ + i * kRowGroups] * q_scale_;
      const float state[kVec] = {state_[i].x, state_[i].y, state_[i].z, state_[i].w};
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        k_sums[j] = fmaf(state[j], key, k_sums[j]);
        q_sums[j] = fmaf(state[j], query, q_sums[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
#pragma unroll
      for (int distance = kThreadsPerRow; distance < kWarp; distance *= 2) {
        k_sums[j] += __shfl_xor_sync(0xFFFFFFFFU, k_sums[j], distance);
        q_sums[j] += __shfl_xor_sync(0xFFFFFFFFU, q_sums[j], distance);
      }
      if (thread_ % kWarp < kThreadsPerRow) {
        shared_.sums[thread_ / kWarp][column_ + j] = {k_sums[j], q_sums[j]};
      }
    }
    __syncthreads();
  }

  __device__ void compute_columns() {
    if (has_column()) {
      float2 sum = {0, 0};
#pragma unroll
      for (int w = 0; w < SharedType::kWarps; ++w) {
        sum.x += shared_.sums[w][thread_].x;
        sum.y += shared_.sums[w][thread_].y;
      }
      const float delta = beta_ * (shared_.v[thread_] - decay_ * sum.x);
      shared_.delta[thread_] = delta;
      out_ = fmaf(sum_of(shared_.norms[2]) * q_scale_ * k_scale_, delta, decay_ * sum.y);
      const float squares = warp_sum(out_ * out_);
      if constexpr (kParts == 1) {
        if (thread_ % kWarp == 0) shared_.squares[thread_ / kWarp] = squares;
      } else {               // one warp, which writes its sum to the whole cluster
        wait_for_cluster();  // all its thread blocks have started
        if (thread_ < kParts) {
          store_in_cluster(address_in(shared_address(&shared_.squares[part_]), thread_), squares);
        }
      }
    } else if constexpr (kParts > 1) {
      wait_for_cluster();
    }
    __syncthreads();
  }

  __device__ void write_page() {
    if (page_ == nullptr) return;
    float* const to =
        page_ + args_.page.states + int64_t{head_} * kDim * kDim + part_ * kColumns + column_;
    const float4 delta = *reinterpret_cast<const float4*>(shared_.delta + column_);
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const int row = row_group_ + i * kRowGroups;
      const float key = shared_.k[row] * k_scale_;
      const float4 next = {
          fmaf(key, delta.x, decay_ * state_[i].x), fmaf(key, delta.y, decay_ * state_[i].y),
          fmaf(key, delta.z, decay_ * state_[i].z), fmaf(key, delta.w, decay_ * state_[i].w)};
      __stcs(reinterpret_cast<float4*>(to + row * kDim), next);
    }
    if (value() >= 0) write_channel(value_channel(), value_in());
    if (thread_ < kDim && part_ == 0 && head_ % args_.group() == 0) {
      write_channel(q_, q_in_);
      write_channel(k_, k_in_);
    }
    if (blockIdx.x == 0 && thread_ == 0) *args_.length(page_) = position_ + 1;
  }
  // The page has one row more than the convolution reads, so thread blocks that have not read this
  // page yet lose no input.
  __device__ void write_channel(const Channel& channel, float in) {
    const int64_t num_channels = args_.shape.num_channels();
    const PageRows rows(position_, args_.page.num_rows);
    page_[rows.own * num_channels + channel.index] = in;
    if (page_ == before_) return;
#pragma unroll
    for (int i = 0; i < kPast; ++i) {
      if (position_ - kPast + i < 0) continue;
      page_[rows.past[i] * num_channels + channel.index] = channel.past[i];
    }
  }

  __device__ void write_output() {
    if constexpr (kParts > 1) sync_cluster_memory();
    if (!has_column()) return;
    const float z =
        to_float(x()[args_.shape.num_channels() + int64_t{head_} * kDim + own_column()]);
    const float scale = rsqrtf(sum_of(shared_.squares) / kDim + args_.norm_eps);
    output(own_column()) = from_float<T>(out_ * scale * args_.norm[own_column()] * silu<T>(z));
  }

  const DeltaArgs<T>& args_;
  SharedType& shared_;
  const int thread_;
  const int head_;
  const int part_;
  const int row_group_;
  const int column_;  // the first of the thread's, within the part
  const int row_;     // of the step
  const int position_;
  const float* before_ = nullptr;  // the page before the token; null: it is the first
  float* page_ = nullptr;          // the page after it; null: it is not kept
  float4 state_[kRowsPerThread] = {};
  Channel q_, k_, v_;
  float q_in_ = 0;
  float k_in_ = 0;
  float v_in_ = 0;
  float decay_ = 0;
  float beta_ = 0;
  float q_scale_ = 0;
  float k_scale_ = 0;
  float out_ = 0;
};

// Grid: (value heads x kParts, sequences).
template <typename T, int kParts>
__global__ void __launch_bounds__(Shared<kParts>::kThreads, kParts == 1 ? 2 : 4)
    decode_kernel(const DeltaArgs<T> args) {
  __shared__ Shared<kParts> shared;
  trigger_dependent_launch();
  Head<T, kParts>(args, shared).run();
}

template <typename T, int kParts>
void launch_decode(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs) {
  LaunchShape shape =
      context.shape(int64_t{net.shape.num_v_heads} * kParts, Shared<kParts>::kThreads, seqs.count);
  shape.cluster = kParts;
  QUIRE_LAUNCH(*context.stream, (decode_kernel<T, kParts>), shape, delta_args<T>(net, seqs));
}

}  // namespace

void run_delta_decode(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs) {
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const int num_heads = net.shape.num_v_heads * seqs.count;
    if (num_heads <= context.stream->limits().num_sms) {
      launch_decode<T, 4>(context, net, seqs);
    } else {
      launch_decode<T, 1>(context, net, seqs);
    }
  });
}

}  // namespace quire::cuda

// A gated delta net for one token per sequence, in one kernel, which is bound by reading and
// writing the states. Both sums over the state's rows are made in one pass, because
//   S'^T q = decay * S^T q + (k . q) d,  S' = decay * S + k d^T,  d = beta (v - decay * S^T k)
// States are read before the previous kernel ends: no kernel of the same step writes them, and the
// previous steps have ended.
//
// This kernel is for few heads: the kParts thread blocks of a cluster have kColumns columns of a
// head each, so that few heads occupy all SMs. A thread keeps its part of the state in registers.
// delta_stream.cu is for many heads.
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/states/delta_channels.cuh"

namespace quire::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kDim = kDeltaHeadDim;
constexpr int kParts = 4;
constexpr int kColumns = kDim / kParts;
constexpr int kVec = 4;         // columns of a thread
constexpr int kRowGroups = 16;  // threads that have the same columns
constexpr int kRowsPerThread = kDim / kRowGroups;
constexpr int kThreadsPerRow = kColumns / kVec;
constexpr int kThreads = kThreadsPerRow * kRowGroups;
constexpr int kWarps = kThreads / kWarp;
static_assert(kThreads == kDim && kColumns == kWarp && kWarps == 4);

struct alignas(16) Shared {
  float q[kDim];
  float k[kDim];
  float v[kColumns];
  float delta[kColumns];
  float2 sums[kWarps][kColumns];  // S^T k and S^T q over the rows of a warp
  TokenNorms norms;
  float squares[kParts];  // of the output, by thread block of the cluster
};

template <typename T>
class Head {
 public:
  __device__ Head(const DeltaArgs<T>& args, Shared& shared)
      : args_(args),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        head_(static_cast<int>(blockIdx.x) / kParts),
        part_(static_cast<int>(blockIdx.x) % kParts),
        row_group_(thread_ / kThreadsPerRow),
        column_(thread_ % kThreadsPerRow * kVec),
        token_(decode_token(args, args.seqs.first + static_cast<int>(blockIdx.y))) {}

  __device__ void run() {
    arrive_in_cluster();
    load_state();
    wait_for_previous_kernel();
    if (token_.position < 0) return clear();
    load_token();
    add_up();
    compute_columns();
    if (token_.page != nullptr) write_page();
    write_output();
  }

 private:
  // The first warp finishes the columns, one per thread. The last warp convolves the values.
  __device__ bool has_column() const { return thread_ < kColumns; }
  __device__ int own_column() const { return part_ * kColumns + thread_; }
  __device__ int value() const { return thread_ - (kThreads - kColumns); }
  // The index in a page of the thread's columns of its i-th row of the state.
  __device__ int64_t place(int i) const {
    return args_.page.states + int64_t{head_} * kDim * kDim + (row_group_ + i * kRowGroups) * kDim +
           part_ * kColumns + column_;
  }
  __device__ const T* x() const { return args_.x + int64_t{token_.row} * args_.x_width; }
  __device__ T& output(int column) const {
    return args_.out[int64_t{token_.row} * args_.shape.width() + int64_t{head_} * kDim + column];
  }

  __device__ void load_state() {
    if (token_.before != nullptr) {
#pragma unroll
      for (int i = 0; i < kRowsPerThread; ++i) {
        // An intrinsic, because a plain copy of a float4 compiles to four loads here.
        state_[i] = __ldcs(reinterpret_cast<const float4*>(token_.before + place(i)));
      }
    }
    const int k_head = args_.shape.k_head(head_);
    q_.load_past(args_, token_, args_.q_channel(k_head) + thread_);
    k_.load_past(args_, token_, args_.k_channel(k_head) + thread_);
    if (value() >= 0) {
      v_.load_past(args_, token_, args_.v_channel(head_) + part_ * kColumns + value());
    }
  }

  __device__ void clear() {
    wait_in_cluster();
    if (has_column()) output(own_column()) = from_float<T>(0.0F);
  }

  // The queries, keys and values of the token, before the norms; and the sums of squares for these.
  __device__ void load_token() {
    const T* const ba = args_.ba + int64_t{token_.row} * 2 * args_.shape.num_v_heads;
    const float b = to_float(ba[head_]);
    const float a = to_float(ba[args_.shape.num_v_heads + head_]);
    if (has_column()) {
      z_ = to_float(x()[args_.shape.num_channels() + int64_t{head_} * kDim + own_column()]);
    }
    const float q = q_.convolve(args_, x());
    const float k = k_.convolve(args_, x());
    shared_.q[thread_] = q;
    shared_.k[thread_] = k;
    if (value() >= 0) shared_.v[value()] = v_.convolve(args_, x());
    write_norms(q, k, shared_.norms);
    const DeltaGates gates = gates_of(args_, b, a, head_);
    decay_ = expf(gates.log_decay);
    beta_ = gates.beta;
    __syncthreads();
  }
  __device__ DecodeScales scales() const {
    return DecodeScales(shared_.norms);
  }

  // S^T k and S^T q over the rows of each warp.
  __device__ void add_up() {
    const DecodeScales scale = scales();
    float k_sums[kVec] = {};
    float q_sums[kVec] = {};
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const float key = shared_.k[row_group_ + i * kRowGroups] * scale.k;
      const float query = shared_.q[row_group_ + i * kRowGroups] * scale.q;
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
    wait_in_cluster();  // all its thread blocks have started
    if (has_column()) {
      const DecodedColumn column =
          decode_column(shared_.sums, thread_, shared_.v[thread_], decay_, beta_, scales());
      shared_.delta[thread_] = column.delta;
      out_ = column.out;
      const float squares = warp_sum(out_ * out_);
      if (thread_ < kParts) {
        store_in_cluster(address_in(shared_address(&shared_.squares[part_]), thread_), squares);
      }
    }
    __syncthreads();
  }

  __device__ void write_page() {
    const float4 delta = *reinterpret_cast<const float4*>(shared_.delta + column_);
    const float k_scale = scales().k;
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const float key = shared_.k[row_group_ + i * kRowGroups] * k_scale;
      __stcs(reinterpret_cast<float4*>(token_.page + place(i)),
             next_state(state_[i], decay_, key, delta));
    }
    if (value() >= 0) v_.write(args_, token_);
    if (part_ == 0 && args_.shape.is_first(head_)) {
      q_.write(args_, token_);
      k_.write(args_, token_);
    }
    if (blockIdx.x == 0 && thread_ == 0) *args_.length(token_.page) = token_.position + 1;
  }

  __device__ void write_output() {
    sync_cluster_memory();
    if (!has_column()) return;
    const float scale = rsqrtf(sum_of(shared_.squares) / kDim + args_.norm_eps);
    output(own_column()) = from_float<T>(out_ * scale * args_.norm[own_column()] * silu<T>(z_));
  }

  const DeltaArgs<T>& args_;
  Shared& shared_;
  const int thread_;
  const int head_;
  const int part_;
  const int row_group_;
  const int column_;  // the thread's first column within the part
  const DecodeToken token_;
  float4 state_[kRowsPerThread] = {};
  DecodeChannel q_, k_, v_;
  float decay_ = 0;
  float beta_ = 0;
  float z_ = 0;
  float out_ = 0;
};

// Grid: (value heads x kParts, sequences).
template <typename T>
__global__ void __launch_bounds__(kThreads, 4) decode_kernel(const DeltaArgs<T> args) {
  __shared__ Shared shared;
  trigger_dependent_launch();
  Head<T>(args, shared).run();
}

}  // namespace

void run_delta_decode(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs) {
  // With more heads than SMs, the thread blocks of delta_stream.cu, which copy ahead, are faster.
  if (net.shape.num_v_heads * seqs.count > context.stream->limits().num_sms) {
    return run_delta_stream(context, net, seqs);
  }
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    LaunchShape shape =
        context.shape(int64_t{net.shape.num_v_heads} * kParts, kThreads, seqs.count);
    shape.cluster = kParts;
    QUIRE_LAUNCH(*context.stream, decode_kernel<T>, shape, delta_args<T>(net, seqs));
  });
}

}  // namespace quire::cuda

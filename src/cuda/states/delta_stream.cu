// delta_decode.cu for many heads, and one token per sequence. A thread block per SM computes one
// head after the other in shared memory. One of its warps moves the states of the previous and the
// next heads by bulk copies, so that the memory is never idle.
#include <algorithm>

#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/states/delta_channels.cuh"

namespace quire::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kDim = kDeltaHeadDim;
constexpr int kGroups = 2;     // of threads that compute
constexpr int kThreads = 256;  // of a group
constexpr int kWarps = kThreads / kWarp;
constexpr int kStages = 3;
constexpr int kLoads = kStages * kGroups;
constexpr int kVec = 4;                        // columns of a thread
constexpr int kRowsPerThread = kDim / kWarps;  // a warp has whole rows
constexpr uint32_t kStateBytes = kDim * kDim * sizeof(float);
static_assert(kWarp * kVec == kDim && kThreads == 2 * kDim);

struct GroupParts {
  float2 sums[kWarps][kDim];  // S^T k and S^T q over the rows of a warp
  float q[kDim];
  float k[kDim];
  float v[kDim];
  float delta[kDim];
  TokenNorms norms;
  float squares[4];  // of the output, by warp
};

struct alignas(128) Shared {
  float states[kStages][kDim * kDim];
  GroupParts groups[kGroups];
  DecodeToken tokens[kStages];
  // A group waits for every phase of its barriers, so a stage has one for each group.
  Mbarrier loaded[kLoads];
  Mbarrier computed[kStages];
};

// The heads of a thread block. Heads are numbered across all sequences.
struct HeadRange {
  int first;
  int step;
  int end;

  __device__ int count() const { return ceil_div(max(end - first, 0), step); }
  __device__ int at(int i) const { return first + i * step; }
};

__device__ __forceinline__ void sync_group(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(kThreads) : "memory");
}

// Moves the states of the thread block's heads; runs on one thread.
template <typename T>
class Mover {
 public:
  __device__ Mover(const DeltaArgs<T>& args, const HeadRange& heads, Shared& shared)
      : args_(args), heads_(heads), shared_(shared) {}

  __device__ void run() {
    const int count = heads_.count();
    for (int i = 0; i < count; ++i) {
      const DecodeToken token =
          decode_token(args_, args_.seqs.first + heads_.at(i) / args_.shape.num_v_heads);
      if (i >= kStages) store(i - kStages);
      load(i, token);
    }
    for (int i = max(count - kStages, 0); i < count; ++i) store(i);
    wait_for_bulk_stores();
  }

 private:
  __device__ int64_t place(int i) const {
    return args_.page.states + int64_t{heads_.at(i) % args_.shape.num_v_heads} * kDim * kDim;
  }

  __device__ void load(int i, const DecodeToken& token) {
    const int stage = i % kStages;
    Mbarrier& loaded = shared_.loaded[i % kLoads];
    shared_.tokens[stage] = token;
    if (token.before == nullptr) return loaded.arrive();
    loaded.arrive_expecting(kStateBytes);
    copy_bulk_evict_first(shared_.states[stage], token.before + place(i), kStateBytes, loaded);
  }

  // Stores the state of head i, and so frees its stage.
  __device__ void store(int i) {
    const int stage = i % kStages;
    shared_.computed[stage].wait(i / kStages & 1);
    float* const page = shared_.tokens[stage].page;
    if (page == nullptr) return;
    store_bulk(page + place(i), shared_.states[stage], kStateBytes);
    wait_for_bulk_reads();
  }

  const DeltaArgs<T>& args_;
  const HeadRange& heads_;
  Shared& shared_;
};

// A group of threads that computes.
template <typename T, bool kHasDrafts>
class Computer {
 public:
  __device__ Computer(const DeltaArgs<T>& args, const HeadRange& heads, Shared& shared)
      : args_(args),
        heads_(heads),
        shared_(shared),
        group_(static_cast<int>(threadIdx.x) / kThreads),
        own_(shared.groups[group_]),
        thread_(static_cast<int>(threadIdx.x) % kThreads),
        warp_(thread_ / kWarp),
        column_(thread_ % kWarp * kVec) {}

  __device__ void run() {
    wait_for_previous_kernel();
    for (int i = group_; i < heads_.count(); i += kGroups) {
      const int stage = i % kStages;
      head_ = heads_.at(i) % args_.shape.num_v_heads;
      shared_.loaded[i % kLoads].wait(i / kLoads & 1);
      token_ = shared_.tokens[stage];
      if (token_.position < 0) {
        if (has_column()) output() = from_float<T>(0.0F);
      } else {
        if constexpr (kHasDrafts) run_tokens_before(shared_.states[stage]);
        run_head(shared_.states[stage]);
      }
      order_bulk_copies();
      __syncwarp();
      if (thread_ % kWarp == 0) shared_.computed[stage].arrive();
    }
  }

 private:
  // The first threads have queries, keys and an output; the others have values.
  __device__ bool has_column() const { return thread_ < kDim; }
  __device__ const T* x() const { return args_.x + int64_t{token_.row} * args_.x_width; }
  __device__ T& output() const {
    return args_.out[int64_t{token_.row} * args_.shape.width() + int64_t{head_} * kDim + thread_];
  }

  // Adds the tokens before the step that the state lacks, whose inputs are in the page.
  __device__ void run_tokens_before(float* state) {
    if (token_.before == nullptr) return;
    const int32_t length = args_.lengths(const_cast<float*>(token_.before))[head_];
    for (int p = max(length, token_.position - args_.num_drafts); p < token_.position; ++p) {
      run_token_before(state, {.position = p, .before = token_.before});
    }
  }

  __device__ void run_token_before(float* state, const DecodeToken& token) {
    const int num_heads = args_.shape.num_v_heads;
    const float* const ba = token.before + args_.page.gates +
                            int64_t{2} * (token.position % args_.num_drafts) * num_heads;
    const float* const x =
        token.before + token.position % args_.page.num_rows * args_.shape.num_channels();
    DecodeChannel channel;  // of keys or values
    if (has_column()) {
      channel.load_past(args_, token, args_.k_channel(args_.shape.k_head(head_)) + thread_);
      own_.q[thread_] = 0;
      own_.k[thread_] = channel.convolve(args_, x);
      write_norms(0, own_.k[thread_], own_.norms);
    } else {
      channel.load_past(args_, token, args_.v_channel(head_) + thread_ - kDim);
      own_.v[thread_ - kDim] = channel.convolve(args_, x);
    }
    const DeltaGates gates = gates_of(args_, ba[head_], ba[num_heads + head_], head_);
    const float decay = expf(gates.log_decay);
    sync_group(group_);
    const DecodeScales scale(own_.norms);
    add_up(state, scale);
    sync_group(group_);
    if (has_column()) {
      own_.delta[thread_] =
          decode_column(own_.sums, thread_, own_.v[thread_], decay, gates.beta, scale).delta;
    }
    sync_group(group_);
    update(state, decay, scale);
    sync_group(group_);
  }

  __device__ void run_head(float* state) {
    const T* const ba = args_.ba + int64_t{token_.row} * 2 * args_.shape.num_v_heads;
    const float b = to_float(ba[head_]);
    const float a = to_float(ba[args_.shape.num_v_heads + head_]);
    DecodeChannel first;   // of queries or values
    DecodeChannel second;  // of keys
    float z = 0;
    convolve(first, second, z);
    const DeltaGates gates = gates_of(args_, b, a, head_);
    const float decay = expf(gates.log_decay);
    sync_group(group_);
    const DecodeScales scale(own_.norms);
    add_up(state, scale);
    sync_group(group_);
    float out = 0;
    if (has_column()) {
      const DecodedColumn column =
          decode_column(own_.sums, thread_, own_.v[thread_], decay, gates.beta, scale);
      own_.delta[thread_] = column.delta;
      out = column.out;
      const float squares = warp_sum(out * out);
      if (thread_ % kWarp == 0) own_.squares[warp_] = squares;
    }
    sync_group(group_);
    if (token_.page != nullptr) {
      update(state, decay, scale);
      write_page(first, second);
    }
    if (has_column()) {
      const float factor = rsqrtf(sum_of(own_.squares) / kDim + args_.norm_eps);
      output() = from_float<T>(out * factor * args_.norm[thread_] * silu<T>(z));
    }
    // Other warps may still read q, k, delta and squares of this head.
    sync_group(group_);
  }

  __device__ void convolve(DecodeChannel& first, DecodeChannel& second, float& z) {
    if (!has_column()) {
      const int value = thread_ - kDim;
      first.load_past(args_, token_, args_.v_channel(head_) + value);
      own_.v[value] = first.convolve(args_, x());
      return;
    }
    const int k_head = args_.shape.k_head(head_);
    first.load_past(args_, token_, args_.q_channel(k_head) + thread_);
    second.load_past(args_, token_, args_.k_channel(k_head) + thread_);
    z = to_float(x()[args_.shape.num_channels() + int64_t{head_} * kDim + thread_]);
    const float q = first.convolve(args_, x());
    const float k = second.convolve(args_, x());
    own_.q[thread_] = q;
    own_.k[thread_] = k;
    write_norms(q, k, own_.norms);
  }

  // Adds the token to the state.
  __device__ void update(float* state, float decay, const DecodeScales& scale) const {
    const float4 delta = *reinterpret_cast<const float4*>(own_.delta + column_);
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const int row = warp_ + i * kWarps;
      *reinterpret_cast<float4*>(state + row * kDim + column_) =
          next_state(columns_of(state, row), decay, own_.k[row] * scale.k, delta);
    }
  }

  // The thread's columns of a row.
  __device__ float4 columns_of(const float* state, int row) const {
    if (token_.before == nullptr) return {0, 0, 0, 0};
    return *reinterpret_cast<const float4*>(state + row * kDim + column_);
  }

  // S^T k and S^T q over the rows of the warp.
  __device__ void add_up(const float* state, const DecodeScales& scale) {
    float k_sums[kVec] = {};
    float q_sums[kVec] = {};
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const int row = warp_ + i * kWarps;
      const float4 columns = columns_of(state, row);
      const float key = own_.k[row] * scale.k;
      const float query = own_.q[row] * scale.q;
      const float values[kVec] = {columns.x, columns.y, columns.z, columns.w};
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        k_sums[j] = fmaf(values[j], key, k_sums[j]);
        q_sums[j] = fmaf(values[j], query, q_sums[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) own_.sums[warp_][column_ + j] = {k_sums[j], q_sums[j]};
  }

  __device__ void write_page(const DecodeChannel& first, const DecodeChannel& second) const {
    if (!has_column()) return first.write(args_, token_);
    if (args_.shape.is_first(head_)) {
      first.write(args_, token_);
      second.write(args_, token_);
    }
    if (thread_ == 0) args_.lengths(token_.page)[head_] = token_.position + 1;
  }

  const DeltaArgs<T>& args_;
  const HeadRange& heads_;
  Shared& shared_;
  const int group_;
  GroupParts& own_;
  const int thread_;
  const int warp_;
  const int column_;  // the thread's first column
  int head_ = 0;
  DecodeToken token_;
};

// The thread blocks of the grid divide the heads among them.
template <typename T, bool kHasDrafts>
__global__ void __launch_bounds__(kGroups* kThreads + kWarp)
    stream_kernel(const DeltaArgs<T> args) {
  extern __shared__ __align__(128) std::byte dynamic[];
  auto& shared = *reinterpret_cast<Shared*>(dynamic);
  trigger_dependent_launch();
  if (threadIdx.x == 0) {
    for (Mbarrier& loaded : shared.loaded) loaded.init();
    for (Mbarrier& computed : shared.computed) computed.init(kWarps);
    publish_barriers();
  }
  __syncthreads();
  const HeadRange heads = {.first = static_cast<int>(blockIdx.x),
                           .step = static_cast<int>(gridDim.x),
                           .end = args.shape.num_v_heads * args.seqs.count};
  if (threadIdx.x < kGroups * kThreads) return Computer<T, kHasDrafts>(args, heads, shared).run();
  if (threadIdx.x == kGroups * kThreads) Mover<T>(args, heads, shared).run();
}

}  // namespace

void run_delta_stream(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs) {
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const int num_heads = net.shape.num_v_heads * seqs.count;
    const int num_sms = context.stream->limits().num_sms;
    LaunchShape shape = context.shape(std::min(num_heads, num_sms), kGroups * kThreads + kWarp);
    shape.shared_bytes = sizeof(Shared);
    const auto kernel = net.num_drafts == 0 ? stream_kernel<T, false> : stream_kernel<T, true>;
    QUIRE_LAUNCH(*context.stream, kernel, shape, delta_args<T>(net, seqs));
  });
}

}  // namespace quire::cuda

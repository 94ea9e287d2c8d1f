// A gated delta net for one token per sequence, in one kernel. It is bound by reading and writing
// the states. A cluster of kParts thread blocks has a value head, each kColumns of its columns, so
// that one sequence occupies all SMs. A thread keeps its part of the state in registers, which it
// reads before the previous kernel ends: no kernel of the same step writes it, and the steps before
// have ended. Both sums over the state's rows are made in one pass, because
//   S'^T q = decay * S^T q + (k . q) d,  S' = decay * S + k d^T,  d = beta (v - decay * S^T k)
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/activation.cuh"
#include "cuda/states/delta_args.cuh"

namespace quire::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kDim = kDeltaHeadDim;
constexpr int kParts = 4;
constexpr int kColumns = kDim / kParts;
constexpr int kVec = 4;                                // columns of a thread
constexpr int kThreadsPerRow = kColumns / kVec;        // 8
constexpr int kRowGroups = kThreads / kThreadsPerRow;  // 16
constexpr int kRowsPerThread = kDim / kRowGroups;      // 8
constexpr int kPast = kDeltaKernel - 1;
static_assert(kThreads == kDim);

// The newest inputs of one channel before the token, the oldest first, and the weights.
struct Channel {
  int64_t index;
  float past[kPast];
  float w[kDeltaKernel];
};

template <typename T>
__device__ Channel load_channel(const DeltaArgs<T>& args, const float* before, int position,
                                int64_t index) {
  Channel channel = {.index = index};
  const int64_t num_channels = args.shape.num_channels();
#pragma unroll
  for (int i = 0; i < kPast; ++i) {
    const int past = position - kPast + i;
    channel.past[i] = past < 0 ? 0.0F : before[past % args.page.num_rows * num_channels + index];
  }
#pragma unroll
  for (int i = 0; i < kDeltaKernel; ++i) channel.w[i] = args.conv[i * num_channels + index];
  return channel;
}

template <typename T>
__device__ float convolve(const Channel& channel, float x) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPast; ++i) sum = fmaf(channel.w[i], channel.past[i], sum);
  return silu<T>(fmaf(channel.w[kPast], x, sum));
}

// Writes the channel's rows of the page after the token. The page has one row more than the
// convolution reads, so thread blocks that have not read this page yet lose no input.
template <typename T>
__device__ void write_channel(const DeltaArgs<T>& args, const Channel& channel, const float* before,
                              float* page, int position, float x) {
  const int64_t num_channels = args.shape.num_channels();
  const int num_rows = args.page.num_rows;
  page[position % num_rows * num_channels + channel.index] = x;
  if (page == before) return;
#pragma unroll
  for (int i = 0; i < kPast; ++i) {
    const int past = position - kPast + i;
    if (past >= 0) page[past % num_rows * num_channels + channel.index] = channel.past[i];
  }
}

struct alignas(16) Shared {
  float q[kDim];
  float k[kDim];
  float v[kColumns];
  float norms[3][kWarps];         // |q|^2, |k|^2, q . k
  float2 sums[kWarps][kColumns];  // S^T k and S^T q over the rows of a warp
  float squares[kParts];          // of the output's columns, by thread block of the cluster
};

// Adds up over the lanes that have the same columns.
__device__ float sum_rows(float x) {
#pragma unroll
  for (int distance = kThreadsPerRow; distance < kWarp; distance *= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, distance);
  }
  return x;
}

// Grid: (value heads x kParts, sequences).
template <typename T>
__global__ void __launch_bounds__(kThreads) decode_kernel(const DeltaArgs<T> args) {
  __shared__ Shared shared;
  trigger_dependent_launch();
  arrive_at_cluster();
  const int seq = args.seqs.first + static_cast<int>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.x) / kParts;
  const int part = static_cast<int>(blockIdx.x) % kParts;
  const int k_head = head / args.group();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp;
  const int warp = thread / kWarp;
  const int row_group = thread / kThreadsPerRow;
  const int column = part * kColumns + thread % kThreadsPerRow * kVec;  // the first of the thread
  const SeqTokens tokens = tokens_of(args.states, seq);
  const int position = tokens.begin;
  const float* const before = page_before(args.states, tokens);

  float4 s[kRowsPerThread] = {};
  if (before != nullptr) {
    const float* const from = before + args.page.states + int64_t{head} * kDim * kDim + column;
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      s[i] = *reinterpret_cast<const float4*>(from + (row_group + i * kRowGroups) * kDim);
    }
  }
  const Channel q_channel = load_channel(args, before, position, args.q_channel(k_head) + thread);
  const Channel k_channel = load_channel(args, before, position, args.k_channel(k_head) + thread);
  const Channel v_channel =
      load_channel(args, before, position, args.v_channel(head) + part * kColumns + lane);
  const float rate = args.a_log[head];
  const float dt_bias = args.dt_bias[head];

  wait_for_previous_kernel();
  if (tokens.end == 0) {
    wait_for_cluster();
    if (thread < kColumns) {
      const int64_t row = args.states.query_start[seq];
      args.out[row * args.shape.width() + int64_t{head} * kDim + part * kColumns + thread] =
          from_float<T>(0.0F);
    }
    return;
  }
  const int64_t row = tokens.first_row;
  const T* const x = args.x + row * args.x_width;
  const float q_in = to_float(x[q_channel.index]);
  const float k_in = to_float(x[k_channel.index]);
  const float v_in = to_float(x[v_channel.index]);
  const T* const ba = args.ba + row * 2 * args.shape.num_v_heads;
  const float b = to_float(ba[head]);
  const float a = to_float(ba[args.shape.num_v_heads + head]);
  float z[kVec] = {};
  if (thread < kThreadsPerRow) {
    const auto gates =
        load_vec<kVec>(x + args.shape.num_channels() + int64_t{head} * kDim + column);
#pragma unroll
    for (int j = 0; j < kVec; ++j) z[j] = to_float(gates.v[j]);
  }

  const float q = convolve<T>(q_channel, q_in);
  const float k = convolve<T>(k_channel, k_in);
  shared.q[thread] = q;
  shared.k[thread] = k;
  if (warp == 0) shared.v[lane] = convolve<T>(v_channel, v_in);
  const float q_squares = warp_sum(q * q);
  const float k_squares = warp_sum(k * k);
  const float products = warp_sum(q * k);
  if (lane == 0) {
    shared.norms[0][warp] = q_squares;
    shared.norms[1][warp] = k_squares;
    shared.norms[2][warp] = products;
  }
  __syncthreads();
  float norms[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const float4 parts = *reinterpret_cast<const float4*>(shared.norms[i]);
    norms[i] = (parts.x + parts.y) + (parts.z + parts.w);
  }
  const float q_scale = rsqrtf(norms[0] + 1e-6F) * rsqrtf(static_cast<float>(kDim));
  const float k_scale = rsqrtf(norms[1] + 1e-6F);
  const float decay = expf(-expf(rate) * softplus(a + dt_bias));
  const float beta = 1.0F / (1.0F + expf(-b));

  float keys[kRowsPerThread];
  float k_sums[kVec] = {};
  float q_sums[kVec] = {};
#pragma unroll
  for (int i = 0; i < kRowsPerThread; ++i) {
    const int state_row = row_group + i * kRowGroups;
    keys[i] = shared.k[state_row] * k_scale;
    const float query = shared.q[state_row] * q_scale;
    const float state[kVec] = {s[i].x, s[i].y, s[i].z, s[i].w};
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      k_sums[j] = fmaf(state[j], keys[i], k_sums[j]);
      q_sums[j] = fmaf(state[j], query, q_sums[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kVec; ++j) {
    k_sums[j] = sum_rows(k_sums[j]);
    q_sums[j] = sum_rows(q_sums[j]);
    if (lane < kThreadsPerRow) shared.sums[warp][lane * kVec + j] = {k_sums[j], q_sums[j]};
  }
  __syncthreads();

  float delta[kVec];
  float out[kVec];
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kVec; ++j) {
    const int at = thread % kThreadsPerRow * kVec + j;
    float2 sum = {0, 0};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      sum.x += shared.sums[w][at].x;
      sum.y += shared.sums[w][at].y;
    }
    delta[j] = beta * (shared.v[at] - decay * sum.x);
    out[j] = fmaf(norms[2] * q_scale * k_scale, delta[j], decay * sum.y);
    squares = fmaf(out[j], out[j], squares);
  }

  const bool is_kept = tokens.kept_end > position && tokens.writes(tokens.block_of(position));
  if (is_kept) {
    float* const page = page_of(args.states, tokens.pages[tokens.block_of(position)]);
    float* const to = page + args.page.states + int64_t{head} * kDim * kDim + column;
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const float4 next = {
          fmaf(keys[i], delta[0], decay * s[i].x), fmaf(keys[i], delta[1], decay * s[i].y),
          fmaf(keys[i], delta[2], decay * s[i].z), fmaf(keys[i], delta[3], decay * s[i].w)};
      *reinterpret_cast<float4*>(to + (row_group + i * kRowGroups) * kDim) = next;
    }
    if (warp == 0) write_channel(args, v_channel, before, page, position, v_in);
    if (part == 0 && head % args.group() == 0) {
      write_channel(args, q_channel, before, page, position, q_in);
      write_channel(args, k_channel, before, page, position, k_in);
    }
    if (blockIdx.x == 0 && thread == 0) *args.length(page) = position + 1;
  }

  // Every thread block writes its sum of squares to the whole cluster.
  squares = warp_sum(squares, kThreadsPerRow);
  wait_for_cluster();  // all its thread blocks have started
  if (thread < kParts) {
    store_in_cluster(address_in(shared_address(&shared.squares[part]), thread), squares);
  }
  sync_cluster_memory();
  if (thread >= kThreadsPerRow) return;
  const float4 parts = *reinterpret_cast<const float4*>(shared.squares);
  const float total = (parts.x + parts.y) + (parts.z + parts.w);
  const float scale = rsqrtf(total / kDim + args.norm_eps);
  Vec<T, kVec> gated;
#pragma unroll
  for (int j = 0; j < kVec; ++j) {
    gated.v[j] = from_float<T>(out[j] * scale * args.norm[column + j] * silu<T>(z[j]));
  }
  store_vec(args.out + row * args.shape.width() + int64_t{head} * kDim + column, gated);
}

}  // namespace

void run_delta_decode(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs) {
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    LaunchShape shape =
        context.shape(int64_t{net.shape.num_v_heads} * kParts, kThreads, seqs.count);
    shape.cluster = kParts;
    QUIRE_LAUNCH(*context.stream, decode_kernel<T>, shape, delta_args<T>(net, seqs));
  });
}

}  // namespace quire::cuda

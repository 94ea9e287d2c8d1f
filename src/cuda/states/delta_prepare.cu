// The parts of a gated delta net before and after its recurrence by chunks.
#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/device/hopper.cuh"
#include "cuda/states/delta_tiles.cuh"

namespace quire::cuda {
namespace {

constexpr int kPrepareThreads = 256;
constexpr int kWarp = 32;
constexpr int kWarps = kPrepareThreads / kWarp;
constexpr int kPerLane = kDeltaHeadDim / kWarp;  // columns

constexpr int kRowsAtOnce = 8;

using Columns = float[kPerLane];

// x *= factor / sqrt(|x|^2 + 1e-6), over a warp.
__device__ void normalize(Columns& x, float factor) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) sum = fmaf(x[j], x[j], sum);
  const float scale = factor * rsqrtf(warp_sum(sum) + 1e-6F);
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) x[j] *= scale;
}

// The queries, keys or values of a chunk's tokens, of one head. A warp computes kRowsAtOnce of
// them while it loads the next.
template <typename T>
class PreparedHead {
 public:
  __device__ PreparedHead(const DeltaArgs<T>& args, const Chunk& chunk, int64_t first_channel)
      : args_(args),
        chunk_(chunk),
        lane_(static_cast<int>(threadIdx.x) % kWarp),
        channel_(first_channel + lane_ * kPerLane) {}

  __device__ void run(bool normalizes, float factor, T* tiles) {
    Columns w[kDeltaKernel];
#pragma unroll
    for (int i = 0; i < kDeltaKernel; ++i) {
      const auto weights =
          load_vec<kPerLane>(args_.conv + i * args_.shape.num_channels() + channel_);
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) w[i][j] = weights.v[j];
    }
    Columns x[kDeltaKernel];  // the newest inputs, the oldest first
#pragma unroll
    for (int i = 1; i < kDeltaKernel; ++i) load_past(i - kDeltaKernel, x[i]);
    constexpr int kLanesPerTile = kWarp / kTilesPerHead;
    const int unit = lane_ % kLanesPerTile * kPerLane / kTileVec;
    T* const tile = tiles + lane_ / kLanesPerTile * kTileSize + lane_ * kPerLane % kTileVec;
    Input next[kRowsAtOnce] = {};
    load(0, next);
#pragma unroll 1
    for (int first = 0; first < kDeltaChunk; first += kRowsAtOnce) {
      Input now[kRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) now[i] = next[i];
      load(first + kRowsAtOnce, next);
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        Columns sum = {};
#pragma unroll
        for (int j = 0; j < kPerLane; ++j) {
#pragma unroll
          for (int tap = 1; tap < kDeltaKernel; ++tap) x[tap - 1][j] = x[tap][j];
          x[kDeltaKernel - 1][j] = to_float(now[i].v[j]);
#pragma unroll
          for (int tap = 0; tap < kDeltaKernel; ++tap) sum[j] = fmaf(w[tap][j], x[tap][j], sum[j]);
          sum[j] = first + i < chunk_.count ? silu<T>(sum[j]) : 0.0F;
        }
        if (normalizes) normalize(sum, factor);
        Input out;
#pragma unroll
        for (int j = 0; j < kPerLane; ++j) out.v[j] = from_float<T>(sum[j]);
        store_vec(tile + tile_at(first + i, unit), out);
      }
    }
  }

 private:
  using Input = Vec<T, kPerLane>;

  // The inputs of rows [first, first + kRowsAtOnce) of the chunk; rows after its tokens are not
  // used.
  __device__ void load(int first, Input (&rows)[kRowsAtOnce]) const {
    const SeqTokens& tokens = chunk_.tokens;
    if (first >= chunk_.count) return;
    if (chunk_.first + first >= tokens.begin) {
      // Without branches, so that all loads are in flight.
      const T* const from = args_.x + channel_;
      const int64_t first_row = tokens.row_of(chunk_.first + first);
      const int last = chunk_.count - 1 - first;
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        rows[i] = load_vec<kPerLane>(from + (first_row + min(i, last)) * args_.x_width);
      }
      return;
    }
#pragma unroll 1
    for (int i = 0; i < kRowsAtOnce; ++i) {
      Columns x;
      load_past(first + i, x);
      Input row;
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) row.v[j] = from_float<T>(x[j]);
#pragma unroll
      for (int k = 0; k < kRowsAtOnce; ++k) {
        if (k == i) rows[k] = row;
      }
    }
  }
  __device__ void load_past(int row, Columns& x) const {
    const int position = chunk_.first + row;
    const bool has_input = position >= 0 && row < chunk_.count;
    const auto rows = conv_rows(args_, chunk_.tokens);
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      x[j] = has_input ? rows.at(chunk_.tokens, position, channel_ + j) : 0.0F;
    }
  }

  const DeltaArgs<T>& args_;
  const Chunk& chunk_;
  const int lane_;
  const int64_t channel_;
};

template <typename T>
__device__ void prepare_gates(const DeltaArgs<T>& args, const Chunk& chunk, int64_t first_row) {
  const int num_heads = args.shape.num_v_heads;
  for (int i = threadIdx.x; i < kDeltaChunk * num_heads; i += kPrepareThreads) {
    const int token = i / num_heads;
    const int head = i % num_heads;
    DeltaGates gates = {0.0F, 0.0F};
    if (token < chunk.count) gates = gates_at(args, chunk.tokens, chunk.first + token, head);
    args.log_decay(head, first_row + token) = gates.log_decay;
    args.beta(head, first_row + token) = gates.beta;
  }
}

// Grid: (chunks, heads of q, k and v by warps, and one for the gates).
template <typename T>
__global__ void __launch_bounds__(kPrepareThreads, 2) prepare_kernel(const DeltaArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const DeltaNetShape& shape = args.shape;
  const auto index = static_cast<int>(blockIdx.x);
  const bool has_gates = blockIdx.y == gridDim.y - 1;
  if (has_gates && blockIdx.x == 0) write_spans(args);
  const Chunk chunk = chunk_at(args, index);
  if (has_gates && threadIdx.x == 0) args.workspace.counts[index] = max(chunk.count, 0);
  if (chunk.count <= 0) return;
  if (has_gates) return prepare_gates(args, chunk, int64_t{index} * kDeltaChunk);
  int head = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (head < shape.num_k_heads) {
    return PreparedHead<T>(args, chunk, args.q_channel(head))
        .run(true, rsqrtf(static_cast<float>(kDeltaHeadDim)),
             tiles_of(args, args.workspace.q, head, index));
  }
  head -= shape.num_k_heads;
  if (head < shape.num_k_heads) {
    return PreparedHead<T>(args, chunk, args.k_channel(head))
        .run(true, 1.0F, tiles_of(args, args.workspace.k, head, index));
  }
  head -= shape.num_k_heads;
  if (head < shape.num_v_heads) {
    PreparedHead<T>(args, chunk, args.v_channel(head))
        .run(false, 1.0F, tiles_of(args, args.workspace.v, head, index));
  }
}

// Grid: (rows of the step, value heads by warps). Row `row` of net.out becomes norm(o) * SiLU(z).
template <typename T>
__global__ void __launch_bounds__(kPrepareThreads) gated_norm_kernel(const DeltaArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int32_t* const starts = args.states.query_start;
  const int64_t row = starts[args.seqs.first] + int64_t{blockIdx.x};
  if (row >= starts[args.seqs.first + args.seqs.count]) return;
  const int seq = last_starting_by(args.seqs.first, args.seqs.count, static_cast<int>(row),
                                   [&](int i) { return starts[i]; });
  const bool is_padding = args.states.seq_lens[seq] == 0;
  const int head = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (head >= args.shape.num_v_heads) return;
  const int at = static_cast<int>(threadIdx.x) % kWarp * kPerLane;
  T* const out = args.out + row * args.shape.width() + int64_t{head} * kDeltaHeadDim + at;
  const auto o = load_vec<kPerLane>(out);
  const auto z = load_vec<kPerLane>(args.x + row * args.x_width + args.shape.num_channels() +
                                    int64_t{head} * kDeltaHeadDim + at);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) sum = fmaf(to_float(o.v[j]), to_float(o.v[j]), sum);
  const float scale = rsqrtf(warp_sum(sum) / kDeltaHeadDim + args.norm_eps);
  Vec<T, kPerLane> gated;
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const float x = to_float(o.v[j]) * scale * args.norm[at + j] * silu<T>(to_float(z.v[j]));
    gated.v[j] = from_float<T>(is_padding ? 0.0F : x);
  }
  store_vec(out, gated);
}

// Grid: (touched_blocks(), channels).
template <typename T>
__global__ void __launch_bounds__(kPrepareThreads) write_rows_kernel(const DeltaArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const TouchedBlock touched =
      touched_block(args.states, args.seqs.first, args.seqs.count, static_cast<int>(blockIdx.x));
  const SeqTokens tokens = tokens_of(args.states, touched.seq);
  if (touched.block * tokens.block_size >= tokens.kept_end || !tokens.writes(touched.block)) return;
  const DeltaSpan span = args.workspace.spans[touched.seq];
  const int64_t channel = int64_t{blockIdx.y} * kPrepareThreads + threadIdx.x;
  if (channel < args.shape.num_channels()) {
    write_rows(args.states, conv_rows(args, tokens), tokens, touched.block,
               span.first - args.shape.kernel + 1, channel);
  }
  if (channel < args.shape.num_v_heads) {
    args.lengths(page_of(args.states, tokens.pages[touched.block]))[channel] =
        min(tokens.end_in(touched.block), span.committed);
  }
}

}  // namespace

DeltaWorkspace lay_out_by_chunk(std::byte* memory, const DeltaNetShape& shape, int num_drafts,
                                DType activation, int64_t num_tokens, int64_t num_seqs) {
  const auto count = [](int64_t x) { return static_cast<size_t>(x); };
  const auto tile_bytes = static_cast<int64_t>(kTileSize * dtype_bytes(activation));
  DeltaWorkspace workspace;
  workspace.num_chunks =
      most_chunks(num_tokens, std::min(num_seqs, int64_t{kDeltaSeqsPerLaunch}), num_drafts);
  workspace.num_rows = workspace.num_chunks * kDeltaChunk;
  const int64_t of_keys = workspace.num_chunks * shape.num_k_heads;
  const int64_t of_values = workspace.num_chunks * shape.num_v_heads;
  BumpAllocator allocator(memory);
  workspace.spans = allocator.allocate<DeltaSpan>(count(num_seqs));
  workspace.counts = allocator.allocate<int>(count(workspace.num_chunks));
  workspace.q = allocator.allocate<std::byte>(count(of_keys * kTilesPerHead * tile_bytes));
  workspace.k = allocator.allocate<std::byte>(count(of_keys * kTilesPerHead * tile_bytes));
  workspace.v = allocator.allocate<std::byte>(count(of_values * kTilesPerHead * tile_bytes));
  workspace.gates = allocator.allocate<float>(count(2 * of_values * kDeltaChunk));
  workspace.solved = allocator.allocate<std::byte>(count(of_values * tile_bytes));
  workspace.scores = allocator.allocate<std::byte>(count(of_values * tile_bytes));
  workspace.factors = allocator.allocate<float>(count(of_values * 3 * kDeltaChunk));
  workspace.num_bytes = allocator.num_bytes();
  return workspace;
}

void run_delta_prepare(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                       const DeltaWorkspace& by_chunk) {
  with_half_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const int num_heads = 2 * net.shape.num_k_heads + net.shape.num_v_heads;
    QUIRE_LAUNCH(*context.stream, prepare_kernel<T>,
                 context.shape(most_chunks(net.out.shape[0], seqs.count, net.num_drafts),
                               kPrepareThreads, ceil_div(num_heads, kWarps) + 1),
                 delta_args<T>(net, seqs, by_chunk));
  });
}

void run_delta_finish(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& by_chunk) {
  with_half_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const DeltaArgs<T> args = delta_args<T>(net, seqs, by_chunk);
    const int64_t num_tokens = net.out.shape[0];
    QUIRE_LAUNCH(
        *context.stream, gated_norm_kernel<T>,
        context.shape(num_tokens, kPrepareThreads, ceil_div(net.shape.num_v_heads, kWarps)), args);
    QUIRE_LAUNCH(*context.stream, write_rows_kernel<T>,
                 context.shape(touched_blocks(net.states, num_tokens, seqs.count), kPrepareThreads,
                               ceil_div(net.shape.num_channels(), int64_t{kPrepareThreads})),
                 args);
  });
}

}  // namespace quire::cuda

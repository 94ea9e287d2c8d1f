// The parts of a gated delta net before and after its recurrence.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/activation.cuh"
#include "cuda/states/delta_args.cuh"

namespace quire::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kRowThreads = 256;
constexpr int kWarps = kRowThreads / kWarp;
constexpr int kRowsPerWarp = 4;
constexpr int kRows = kWarps * kRowsPerWarp;  // of a thread block

// A token that the step computes; seq < 0: the row of the workspace has none.
struct RowToken {
  int seq = -1;
  int position = 0;
};

// The tokens of a sequence that the step computes are those from `first`, some of which are before
// the step.
template <typename T>
__device__ int first_of(const DeltaArgs<T>& args, const SeqTokens& tokens) {
  if (tokens.begin == 0) return 0;
  float* const page = const_cast<float*>(page_before(args.states, tokens));
  // A sequence that has ended may begin before the tokens that its state contains.
  return max(min(*args.length(page), tokens.begin), tokens.begin - args.num_drafts);
}

template <typename T>
__device__ RowToken token_of(const DeltaArgs<T>& args, int row) {
  const int first = args.seqs.first;
  const int seq = last_starting_by(first, args.seqs.count, row,
                                   [&](int i) { return static_cast<int>(args.row_start(i)); });
  const SeqTokens tokens = tokens_of(args.states, seq);
  const int position = tokens.begin + row - static_cast<int>(args.row_start(seq)) - args.num_drafts;
  if (tokens.end == 0 || position >= tokens.end) return {};
  if (position < tokens.begin && position < first_of(args, tokens)) return {};
  return {seq, position};
}

// Channels of a head: `at` is the first of a lane's kPerLane, of which those below `count` exist.
template <typename T, int kPerLane>
__device__ void convolve(const DeltaArgs<T>& args, const RowToken& token, int64_t channel, int at,
                         int count, float (&out)[kPerLane]) {
  const SeqTokens tokens = tokens_of(args.states, token.seq);
  const auto rows = conv_rows(args, tokens);
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) out[j] = 0;
  for (int i = 0; i < args.shape.kernel; ++i) {
    const int past = token.position - args.shape.kernel + 1 + i;
    if (past < 0) continue;
    const float* const w = args.conv + i * args.shape.num_channels() + channel + at;
    if (kPerLane == 4 && past >= tokens.begin) {
      const auto x = load_vec<4>(args.x + tokens.row_of(past) * args.x_width + channel + at);
      const auto weights = load_vec<4>(w);
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) {
        out[j] = fmaf(weights.v[j % 4], to_float(x.v[j % 4]), out[j]);
      }
      continue;
    }
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      if (at + j < count) out[j] = fmaf(w[j], rows.at(tokens, past, channel + at + j), out[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) out[j] = at + j < count ? silu<T>(out[j]) : 0.0F;
}

// A warp computes one head of a token; `part` counts the heads of queries, keys and values.
template <typename T, int kPerLane>
__device__ void prepare_head(const DeltaArgs<T>& args, const RowToken& token, int64_t row,
                             int part) {
  const DeltaNetShape& shape = args.shape;
  const int at = static_cast<int>(threadIdx.x) % kWarp * kPerLane;
  float x[kPerLane];
  if (part >= 2 * shape.num_k_heads) {
    const int head = part - 2 * shape.num_k_heads;
    convolve(args, token, args.v_channel(head), at, shape.v_dim, x);
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const int column = at + j;
      if (column >= shape.v_dim) continue;
      args.v(head, column / kDeltaSlice, row)[column % kDeltaSlice] = from_float<T>(x[j]);
    }
    return;
  }
  const bool is_query = part < shape.num_k_heads;
  const int head = is_query ? part : part - shape.num_k_heads;
  convolve(args, token, is_query ? args.q_channel(head) : args.k_channel(head), at, shape.k_dim, x);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) sum = fmaf(x[j], x[j], sum);
  float scale = rsqrtf(warp_sum(sum) + 1e-6F);
  if (is_query) scale *= rsqrtf(static_cast<float>(shape.k_dim));
  T* const out = is_query ? args.q(head, row) : args.k(head, row);
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    if (at + j < shape.k_dim) out[at + j] = from_float<T>(x[j] * scale);
  }
}

// b and a of a token before the step are in the page.
template <typename T>
__device__ void prepare_gates(const DeltaArgs<T>& args, const RowToken& token, int64_t row) {
  const SeqTokens tokens = tokens_of(args.states, token.seq);
  const int num_heads = args.shape.num_v_heads;
  for (int head = static_cast<int>(threadIdx.x) % kWarp; head < num_heads; head += kWarp) {
    float b = 0;
    float a = 0;
    if (token.position < tokens.begin) {
      const float* const kept = page_before(args.states, tokens) + args.page.gates +
                                int64_t{2} * (token.position % args.num_drafts) * num_heads;
      b = kept[head];
      a = kept[num_heads + head];
    } else {
      const T* const given = args.ba + tokens.row_of(token.position) * 2 * num_heads;
      b = to_float(given[head]);
      a = to_float(given[num_heads + head]);
    }
    const DeltaGates gates = gates_of(args, b, a, head);
    args.log_decay(head, row) = gates.log_decay;
    args.beta(head, row) = gates.beta;
  }
}

// Later kernels write the pages' lengths, so the spans are read here.
template <typename T>
__device__ void write_spans(const DeltaArgs<T>& args, int num_decode_seqs) {
  for (int i = threadIdx.x; i < args.seqs.count; i += kRowThreads) {
    const int seq = args.seqs.first + i;
    const SeqTokens tokens = tokens_of(args.states, seq);
    const bool has_drafts = args.num_drafts > 0 && seq < num_decode_seqs;
    args.workspace.spans[seq] = {
        tokens.end == 0 ? 0 : first_of(args, tokens),
        has_drafts ? min(tokens.begin + 1, tokens.kept_end) : tokens.kept_end};
  }
}

// Grid: (tiles of kRows rows of the workspace, heads of q, k and v, and one for the gates).
template <typename T, int kPerLane>
__global__ void __launch_bounds__(kRowThreads)
    prepare_kernel(const DeltaArgs<T> args, int num_decode_seqs) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int part = static_cast<int>(blockIdx.y);
  const int num_heads = 2 * args.shape.num_k_heads + args.shape.num_v_heads;
  if (part == num_heads && blockIdx.x == 0) write_spans(args, num_decode_seqs);
  const int first =
      static_cast<int>(blockIdx.x) * kRows + static_cast<int>(threadIdx.x) / kWarp * kRowsPerWarp;
  const int end = static_cast<int>(args.row_start(args.seqs.first + args.seqs.count));
  for (int row = first; row < min(first + kRowsPerWarp, end); ++row) {
    const RowToken token = token_of(args, row);
    if (token.seq < 0) continue;
    if (part == num_heads) {
      prepare_gates(args, token, row);
    } else {
      prepare_head<T, kPerLane>(args, token, row, part);
    }
  }
}

// Grid: (rows of the step, value heads by warps). Row `row` of net.out becomes norm(o) * SiLU(z).
template <typename T>
__global__ void __launch_bounds__(kRowThreads) gated_norm_kernel(const DeltaArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t row = args.states.query_start[args.seqs.first] + int64_t{blockIdx.x};
  if (row >= args.states.query_start[args.seqs.first + args.seqs.count]) return;
  constexpr int kPerLane = kDeltaHeadDim / kWarp;
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
    gated.v[j] =
        from_float<T>(to_float(o.v[j]) * scale * args.norm[at + j] * silu<T>(to_float(z.v[j])));
  }
  store_vec(out, gated);
}

// Grid: (channels, touched_blocks()).
template <typename T>
__global__ void __launch_bounds__(kRowThreads) write_rows_kernel(const DeltaArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const TouchedBlock touched =
      touched_block(args.states, args.seqs.first, args.seqs.count, static_cast<int>(blockIdx.y));
  const SeqTokens tokens = tokens_of(args.states, touched.seq);
  if (touched.block * tokens.block_size >= tokens.kept_end || !tokens.writes(touched.block)) return;
  const int2 span = args.workspace.spans[touched.seq];
  const int64_t channel = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (channel < args.shape.num_channels()) {
    write_rows(args.states, conv_rows(args, tokens), tokens, touched.block,
               span.x - args.shape.kernel + 1, channel);
  }
  if (channel == 0) {
    *args.length(page_of(args.states, tokens.pages[touched.block])) =
        min(tokens.end_in(touched.block), span.y);
  }
}

}  // namespace

DeltaWorkspace lay_out_delta_workspace(std::byte* memory, const DeltaNetShape& shape,
                                       int num_drafts, DType activation, int64_t max_num_tokens,
                                       int64_t max_num_seqs) {
  const auto size = [](int64_t count) { return static_cast<size_t>(count); };
  const int64_t bytes = static_cast<int64_t>(dtype_bytes(activation));
  DeltaWorkspace workspace;
  // A chunk is copied whole, so rows follow the last token.
  workspace.num_rows = max_num_tokens + max_num_seqs * num_drafts + kDeltaChunk;
  const int64_t rows_of_keys =
      shape.num_k_heads * workspace.num_rows * (shape.k_dim + kDeltaPadding) * bytes;
  const int64_t rows_of_values = shape.num_v_heads * ceil_div(shape.v_dim, kDeltaSlice) *
                                 workspace.num_rows * kDeltaSliceStride * bytes;
  BumpAllocator allocator(memory);
  workspace.spans = allocator.allocate<int2>(size(max_num_seqs));
  workspace.q = allocator.allocate<std::byte>(size(rows_of_keys));
  workspace.k = allocator.allocate<std::byte>(size(rows_of_keys));
  workspace.v = allocator.allocate<std::byte>(size(rows_of_values));
  workspace.gates =
      allocator.allocate<float>(size(int64_t{2} * shape.num_v_heads * workspace.num_rows));
  workspace.num_chunks = workspace.num_rows / kDeltaChunk + kDeltaSeqsPerLaunch;
  const int64_t matrix_bytes = int64_t{kDeltaChunk} * kDeltaChunkStride * bytes;
  const int64_t num_matrices = workspace.num_chunks * shape.num_v_heads;
  workspace.solved = allocator.allocate<std::byte>(size(num_matrices * matrix_bytes));
  workspace.scores = allocator.allocate<std::byte>(size(num_matrices * matrix_bytes));
  workspace.factors = allocator.allocate<float>(size(num_matrices * 3 * kDeltaChunk));
  workspace.num_bytes = allocator.num_bytes();
  return workspace;
}

void run_delta_prepare(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                       const DeltaWorkspace& workspace) {
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const DeltaArgs<T> args = delta_args<T>(net, seqs, workspace);
    const int64_t num_rows = net.out.shape[0] + int64_t{seqs.count} * net.num_drafts;
    const int num_heads = 2 * net.shape.num_k_heads + net.shape.num_v_heads;
    const LaunchShape shape =
        context.shape(ceil_div(num_rows, int64_t{kRows}), kRowThreads, num_heads + 1);
    const bool is_usual = net.shape.k_dim == kDeltaHeadDim && net.shape.v_dim == kDeltaHeadDim;
    if (is_usual) {
      QUIRE_LAUNCH(*context.stream, (prepare_kernel<T, 4>), shape, args,
                   net.states.num_decode_seqs);
    } else {
      QUIRE_LAUNCH(*context.stream, (prepare_kernel<T, kMaxDeltaHeadDim / kWarp>), shape, args,
                   net.states.num_decode_seqs);
    }
  });
}

void run_delta_finish(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& workspace) {
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const DeltaArgs<T> args = delta_args<T>(net, seqs, workspace);
    const int64_t num_tokens = net.out.shape[0];
    QUIRE_LAUNCH(*context.stream, gated_norm_kernel<T>,
                 context.shape(num_tokens, kRowThreads, ceil_div(net.shape.num_v_heads, kWarps)),
                 args);
    QUIRE_LAUNCH(*context.stream, write_rows_kernel<T>,
                 context.shape(ceil_div(net.shape.num_channels(), int64_t{kRowThreads}),
                               kRowThreads, touched_blocks(net.states, num_tokens, seqs.count)),
                 args);
  });
}

}  // namespace quire::cuda

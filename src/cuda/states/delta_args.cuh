// The arguments of all kernels of gated delta nets, and the tokens of a sequence.
#pragma once

#include "cuda/device/elements.cuh"
#include "cuda/ops/activation.cuh"
#include "cuda/states/state_kernels.h"
#include "cuda/states/state_tokens.cuh"

namespace quire::cuda {

template <typename T>
struct DeltaArgs {
  DeltaNetShape shape;
  DeltaNetPage page;
  const T* x;
  int64_t x_width;
  const T* ba;
  const float* conv;
  const float* a_log;
  const float* dt_bias;
  const float* norm;
  float norm_eps;
  int num_drafts;
  StatePages states;
  SeqRange seqs;
  T* out;
  DeltaWorkspace workspace;

  // The first channel of a head's queries, keys or values.
  __device__ int64_t q_channel(int head) const { return int64_t{head} * shape.k_dim; }
  __device__ int64_t k_channel(int head) const {
    return int64_t{shape.num_k_heads + head} * shape.k_dim;
  }
  __device__ int64_t v_channel(int head) const {
    return int64_t{2} * shape.num_k_heads * shape.k_dim + int64_t{head} * shape.v_dim;
  }
  __device__ float* state(int32_t page_id, int v_head) const {
    return page_of(states, page_id) + page.states + int64_t{v_head} * shape.k_dim * shape.v_dim;
  }
  __device__ int32_t* lengths(float* of_page) const {
    return reinterpret_cast<int32_t*>(of_page + page.lengths);
  }

  // The first row of a sequence in a workspace by token: num_drafts rows, then a row per token of
  // the step. The index of the sequence's first chunk is derived from it too.
  __device__ int64_t row_start(int seq) const {
    return states.query_start[seq] - states.query_start[seqs.first] +
           int64_t{num_drafts} * (seq - seqs.first);
  }
  __device__ float& log_decay(int head, int64_t row) const {
    return workspace.gates[head * workspace.num_rows + row];
  }
  __device__ float& beta(int head, int64_t row) const {
    return workspace.gates[(shape.num_v_heads + head) * workspace.num_rows + row];
  }
};

// The inputs of the convolution.
template <typename T>
struct DeltaInputs {
  const T* x;
  int64_t x_width;

  __device__ float operator()(int64_t row, int64_t channel) const {
    return to_float(x[row * x_width + channel]);
  }
};

template <typename T>
__device__ ConvRows<DeltaInputs<T>> conv_rows(const DeltaArgs<T>& args, const SeqTokens& tokens) {
  return {.inputs = {args.x, args.x_width},
          .before = page_before(args.states, tokens),
          .num_rows = args.page.num_rows,
          .num_channels = args.shape.num_channels()};
}

// The logarithm of decay, and beta.
struct DeltaGates {
  float log_decay;
  float beta;
};

// The weights of a head's gates.
struct GateWeights {
  float a_log;
  float dt_bias;
};

template <typename T>
__device__ GateWeights gate_weights_of(const DeltaArgs<T>& args, int v_head) {
  return {args.a_log[v_head], args.dt_bias[v_head]};
}

__device__ inline DeltaGates gates_of(const GateWeights& weights, float b, float a) {
  return {-expf(weights.a_log) * open_gate(GateFunction::kSoftplus, a + weights.dt_bias),
          open_gate(GateFunction::kSigmoid, b)};
}
template <typename T>
__device__ DeltaGates gates_of(const DeltaArgs<T>& args, float b, float a, int v_head) {
  return gates_of(gate_weights_of(args, v_head), b, a);
}

// The gates of a token. b and a of a token before the step are in the page.
template <typename T>
__device__ DeltaGates gates_at(const DeltaArgs<T>& args, const SeqTokens& tokens, int position,
                               int v_head) {
  const int num_heads = args.shape.num_v_heads;
  if (position < tokens.begin) {
    const float* const kept = page_before(args.states, tokens) + args.page.gates +
                              int64_t{2} * (position % args.num_drafts) * num_heads;
    return gates_of(args, kept[v_head], kept[num_heads + v_head], v_head);
  }
  const T* const given = args.ba + tokens.row_of(position) * 2 * num_heads;
  return gates_of(args, to_float(given[v_head]), to_float(given[num_heads + v_head]), v_head);
}

// The first token that the step computes for a head: with drafts, some may be before the step. The
// heads' lengths are the same.
template <typename T>
__device__ int first_of(const DeltaArgs<T>& args, const SeqTokens& tokens, int v_head = 0) {
  if (tokens.begin == 0 || args.num_drafts == 0) return tokens.begin;
  auto* const page = const_cast<float*>(page_before(args.states, tokens));
  // A sequence that has ended may begin before the tokens that its state contains.
  return max(min(args.lengths(page)[v_head], tokens.begin), tokens.begin - args.num_drafts);
}

// The entry of DeltaWorkspace::spans.
template <typename T>
__device__ DeltaSpan span_of(const DeltaArgs<T>& args, const SeqTokens& tokens, int seq) {
  const bool has_drafts = args.num_drafts > 0 && seq < args.states.num_decode_seqs;
  return {first_of(args, tokens),
          has_drafts ? min(tokens.begin + 1, tokens.kept_end) : tokens.kept_end};
}

// Writes all spans, by one thread block. Spans depend on the lengths in the pages, which later
// kernels overwrite.
template <typename T>
__device__ void write_spans(const DeltaArgs<T>& args) {
  for (int i = threadIdx.x; i < args.seqs.count; i += blockDim.x) {
    const int seq = args.seqs.first + i;
    args.workspace.spans[seq] = span_of(args, tokens_of(args.states, seq), seq);
  }
}

template <typename T>
DeltaArgs<T> delta_args(const DeltaNet& net, const SeqRange& seqs,
                        const DeltaWorkspace& workspace = {}) {
  return {.shape = net.shape,
          .page = DeltaNetPage(net.shape, net.num_drafts),
          .x = net.x.as<T>(),
          .x_width = net.x.shape[1],
          .ba = net.ba.as<T>(),
          .conv = net.conv,
          .a_log = net.a_log,
          .dt_bias = net.dt_bias,
          .norm = net.norm,
          .norm_eps = net.norm_eps,
          .num_drafts = net.num_drafts,
          .states = net.states,
          .seqs = seqs,
          .out = net.out.as<T>(),
          .workspace = workspace};
}

}  // namespace quire::cuda

// What the kernels of gated delta nets share: their arguments, the tokens of a sequence, and the
// places of its rows in the workspace.
#pragma once

#include "cuda/device/elements.cuh"
#include "cuda/device/search.cuh"
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

  __host__ __device__ int group() const { return shape.num_v_heads / shape.num_k_heads; }
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
  __device__ int32_t* length(float* of_page) const {
    return reinterpret_cast<int32_t*>(of_page + page.length);
  }

  // The workspace's row of a token.
  __device__ int64_t row_start(int seq) const {
    return states.query_start[seq] - states.query_start[seqs.first] +
           int64_t{num_drafts} * (seq - seqs.first);
  }
  __device__ int64_t row_of(int seq, const SeqTokens& tokens, int token) const {
    return row_start(seq) + num_drafts + token - tokens.begin;
  }
  __device__ T* q(int head, int64_t row) const { return rows_of(workspace.q, head, row); }
  __device__ T* k(int head, int64_t row) const { return rows_of(workspace.k, head, row); }
  __device__ T* v(int head, int slice, int64_t row) const {
    const int num_slices = ceil_div(shape.v_dim, kDeltaSlice);
    return static_cast<T*>(workspace.v) +
           ((int64_t{head} * num_slices + slice) * workspace.num_rows + row) * kDeltaSliceStride;
  }
  __device__ float& log_decay(int head, int64_t row) const {
    return workspace.gates[head * workspace.num_rows + row];
  }
  __device__ float& beta(int head, int64_t row) const {
    return workspace.gates[(shape.num_v_heads + head) * workspace.num_rows + row];
  }

 private:
  __device__ T* rows_of(void* base, int head, int64_t row) const {
    return static_cast<T*>(base) +
           (head * workspace.num_rows + row) * (shape.k_dim + kDeltaPadding);
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

__device__ inline float softplus(float x) {
  return x > 20.0F ? x : log1pf(expf(x));
}

// The logarithm of decay, and beta.
struct DeltaGates {
  float log_decay;
  float beta;
};

template <typename T>
__device__ DeltaGates gates_of(const DeltaArgs<T>& args, float b, float a, int v_head) {
  return {-expf(args.a_log[v_head]) * softplus(a + args.dt_bias[v_head]), 1.0F / (1.0F + expf(-b))};
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

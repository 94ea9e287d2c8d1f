// The gated convolution of LFM2. A thread has one channel.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"
#include "cuda/states/state_kernels.h"
#include "cuda/states/state_tokens.cuh"

namespace quire::cuda {
namespace {

constexpr int kConvThreads = 128;
constexpr int kTokens = 16;  // of a thread, in a prompt

template <typename T>
struct ConvArgs {
  const T* bgx;
  const float* w;
  int kernel;
  int num_rows;
  int64_t channels;
  StatePages states;
  SeqRange seqs;
  T* out;
};

// b * x of a token.
template <typename T>
struct GatedInputs {
  const T* bgx;
  int64_t channels;

  __device__ float operator()(int64_t row, int64_t channel) const {
    const T* const b = bgx + row * 3 * channels + channel;
    return to_float(b[0]) * to_float(b[2 * channels]);
  }
};

template <typename T>
__device__ ConvRows<GatedInputs<T>> rows_of(const ConvArgs<T>& args, const SeqTokens& tokens) {
  return {.inputs = {args.bgx, args.channels},
          .before = page_before(args.states, tokens),
          .num_rows = args.num_rows,
          .num_channels = args.channels};
}

// The newest inputs of a channel, the oldest first.
class Window {
 public:
  template <typename Rows>
  __device__ void fill(const Rows& rows, const SeqTokens& tokens, int position, int kernel,
                       int64_t channel) {
    for (int i = 1; i < kernel; ++i) {
      const int past = position - kernel + i;
      push(past < 0 ? 0.0F : rows.at(tokens, past, channel));
    }
  }
  __device__ void push(float x) {
#pragma unroll
    for (int i = 1; i < kMaxShortConvKernel; ++i) x_[i - 1] = x_[i];
    x_[kMaxShortConvKernel - 1] = x;
  }
  __device__ float sum(const float* w, int kernel, int64_t channels) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kMaxShortConvKernel; ++i) {
      const int tap = i - (kMaxShortConvKernel - kernel);
      if (tap >= 0) sum = fmaf(w[tap * channels], x_[i], sum);
    }
    return sum;
  }

 private:
  float x_[kMaxShortConvKernel] = {};
};

// Adds the input of token `position` to the window, and writes out = g * the window's sum.
template <typename T, typename Rows>
__device__ void convolve(const ConvArgs<T>& args, const Rows& rows, const SeqTokens& tokens,
                         int position, int64_t channel, Window& window) {
  const int64_t row = tokens.row_of(position);
  window.push(rows.inputs(row, channel));
  const float gate = to_float(args.bgx[(row * 3 + 1) * args.channels + channel]);
  args.out[row * args.channels + channel] =
      from_float<T>(gate * window.sum(args.w + channel, args.kernel, args.channels));
}

// Grid: (channels, sequences).
template <typename T>
__global__ void __launch_bounds__(kConvThreads) decode_kernel(const ConvArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t channel = int64_t{blockIdx.x} * kConvThreads + threadIdx.x;
  if (channel >= args.channels) return;
  const int seq = args.seqs.first + static_cast<int>(blockIdx.y);
  const SeqTokens tokens = tokens_of(args.states, seq);
  if (tokens.end == 0) {
    for (int row = args.states.query_start[seq]; row < args.states.query_start[seq + 1]; ++row) {
      args.out[row * args.channels + channel] = from_float<T>(0.0F);
    }
    return;
  }
  const auto rows = rows_of(args, tokens);
  Window window;
  window.fill(rows, tokens, tokens.begin, args.kernel, channel);
  for (int p = tokens.begin; p < tokens.end; ++p) {
    convolve(args, rows, tokens, p, channel, window);
  }
  for (int block = tokens.block_of(tokens.begin); block * tokens.block_size < tokens.kept_end;
       ++block) {
    write_rows(args.states, rows, tokens, block, tokens.begin - args.kernel + 1, channel);
  }
}

// Grid: (tiles of kTokens rows of the sequences, channels).
template <typename T>
__global__ void __launch_bounds__(kConvThreads) prefill_kernel(const ConvArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int32_t* const starts = args.states.query_start;
  const int64_t channel = int64_t{blockIdx.y} * kConvThreads + threadIdx.x;
  const int first = starts[args.seqs.first] + static_cast<int>(blockIdx.x) * kTokens;
  const int end = min(first + kTokens, starts[args.seqs.first + args.seqs.count]);
  if (channel >= args.channels || first >= end) return;
  int seq =
      last_starting_by(args.seqs.first, args.seqs.count, first, [&](int i) { return starts[i]; });
  for (int row = first; row < end; ++seq) {
    const SeqTokens tokens = tokens_of(args.states, seq);
    const auto rows = rows_of(args, tokens);
    int p = tokens.begin + row - static_cast<int>(tokens.first_row);
    Window window;
    if (tokens.end > 0) window.fill(rows, tokens, p, args.kernel, channel);
    for (; row < min(end, starts[seq + 1]); ++row, ++p) {
      if (tokens.end == 0) {
        args.out[row * args.channels + channel] = from_float<T>(0.0F);
      } else {
        convolve(args, rows, tokens, p, channel, window);
      }
    }
  }
}

// Grid: (touched_blocks(), channels). Runs after prefill_kernel(), because it may write a page that
// the step reads.
template <typename T>
__global__ void __launch_bounds__(kConvThreads) write_states_kernel(const ConvArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t channel = int64_t{blockIdx.y} * kConvThreads + threadIdx.x;
  const TouchedBlock touched =
      touched_block(args.states, args.seqs.first, args.seqs.count, static_cast<int>(blockIdx.x));
  const SeqTokens tokens = tokens_of(args.states, touched.seq);
  if (channel >= args.channels || touched.block * tokens.block_size >= tokens.kept_end) return;
  write_rows(args.states, rows_of(args, tokens), tokens, touched.block,
             tokens.begin - args.kernel + 1, channel);
}

template <typename T>
ConvArgs<T> args_of(const ShortConv& conv, const SeqRange& seqs) {
  return {.bgx = conv.bgx.as<T>(),
          .w = conv.w,
          .kernel = conv.kernel,
          .num_rows = conv.num_rows,
          .channels = conv.out.shape[1],
          .states = conv.states,
          .seqs = seqs,
          .out = conv.out.as<T>()};
}

}  // namespace

void run_short_conv_decode(const LaunchContext& context, const ShortConv& conv,
                           const SeqRange& seqs) {
  with_float_type(conv.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const int64_t grid = ceil_div(conv.out.shape[1], int64_t{kConvThreads});
    QUIRE_LAUNCH(*context.stream, decode_kernel<T>, context.shape(grid, kConvThreads, seqs.count),
                 args_of<T>(conv, seqs));
  });
}

void run_short_conv_prefill(const LaunchContext& context, const ShortConv& conv,
                            const SeqRange& seqs) {
  with_float_type(conv.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const int64_t grid = ceil_div(conv.out.shape[1], int64_t{kConvThreads});
    const int64_t num_tokens = conv.out.shape[0];
    const ConvArgs<T> args = args_of<T>(conv, seqs);
    QUIRE_LAUNCH(*context.stream, prefill_kernel<T>,
                 context.shape(ceil_div(num_tokens, int64_t{kTokens}), kConvThreads, grid), args);
    QUIRE_LAUNCH(
        *context.stream, write_states_kernel<T>,
        context.shape(touched_blocks(conv.states, num_tokens, seqs.count), kConvThreads, grid),
        args);
  });
}

}  // namespace quire::cuda

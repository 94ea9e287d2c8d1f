// A gated delta net token by token, with the state of a head in shared memory, for any shape and
// drafts.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/device/hopper.cuh"
#include "cuda/states/delta_args.cuh"

namespace quire::cuda {
namespace {

constexpr int kRecurrentThreads = 256;
constexpr int kWarp = 32;

// Rows of the workspace.
template <typename T>
__device__ float* q_row(const DeltaArgs<T>& args, int head, int64_t row) {
  return static_cast<float*>(args.workspace.q) +
         (row * args.shape.num_k_heads + head) * args.shape.k_dim;
}
template <typename T>
__device__ float* k_row(const DeltaArgs<T>& args, int head, int64_t row) {
  return static_cast<float*>(args.workspace.k) +
         (row * args.shape.num_k_heads + head) * args.shape.k_dim;
}
template <typename T>
__device__ float* v_row(const DeltaArgs<T>& args, int head, int64_t row) {
  return static_cast<float*>(args.workspace.v) +
         (row * args.shape.num_v_heads + head) * args.shape.v_dim;
}

// A token that the step computes; position < 0: the workspace's row has no token.
struct RowToken {
  SeqTokens tokens;  // of its sequence
  int position = -1;
};

template <typename T>
__device__ RowToken token_of(const DeltaArgs<T>& args, int row) {
  const int seq = last_starting_by(args.seqs.first, args.seqs.count, row,
                                   [&](int i) { return static_cast<int>(args.row_start(i)); });
  const SeqTokens tokens = tokens_of(args.states, seq);
  const int position = tokens.begin + row - static_cast<int>(args.row_start(seq)) - args.num_drafts;
  if (position < first_of(args, tokens) || position >= tokens.end) return {};
  return {tokens, position};
}

// Convolves a head of a token's queries, keys or values, before their norms. A lane has one channel
// per round.
constexpr int kRounds = kMaxDeltaHeadDim / kWarp;

template <typename T>
__device__ void convolve(const DeltaArgs<T>& args, const RowToken& token, int64_t first_channel,
                         int count, float (&out)[kRounds]) {
  const auto rows = conv_rows(args, token.tokens);
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int column = round * kWarp + static_cast<int>(threadIdx.x) % kWarp;
    float sum = 0;
    for (int i = 0; i < args.shape.kernel && column < count; ++i) {
      const int past = token.position - args.shape.kernel + 1 + i;
      const int64_t channel = first_channel + column;
      if (past < 0) continue;
      sum = fmaf(args.conv[i * args.shape.num_channels() + channel],
                 rows.at(token.tokens, past, channel), sum);
    }
    out[round] = silu<T>(sum);
  }
}

// `scale`: of a query or key after its norm; 0: a value, without norm.
template <typename T>
__device__ void prepare_head(const DeltaArgs<T>& args, const RowToken& token, int64_t first_channel,
                             int count, float scale, float* out) {
  float x[kRounds];
  convolve(args, token, first_channel, count, x);
  float squares = 0;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) squares = fmaf(x[round], x[round], squares);
  const float factor = scale == 0.0F ? 1.0F : scale * rsqrtf(warp_sum(squares) + 1e-6F);
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int column = round * kWarp + static_cast<int>(threadIdx.x) % kWarp;
    if (column < count) out[column] = x[round] * factor;
  }
}

// Grid: (groups of rows of the workspace, with one row per warp; heads of q, k and v, and one for
// the gates).
template <typename T>
__global__ void __launch_bounds__(kRecurrentThreads) prepare_rows_kernel(const DeltaArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const DeltaNetShape& shape = args.shape;
  const auto part = static_cast<int>(blockIdx.y);
  const bool has_gates = part == 2 * shape.num_k_heads + shape.num_v_heads;
  if (has_gates && blockIdx.x == 0) write_spans(args);
  const int row = static_cast<int>(blockIdx.x) * (kRecurrentThreads / kWarp) +
                  static_cast<int>(threadIdx.x) / kWarp;
  if (row >= args.row_start(args.seqs.first + args.seqs.count)) return;
  const RowToken token = token_of(args, row);
  if (token.position < 0) return;
  if (has_gates) {
    for (int head = static_cast<int>(threadIdx.x) % kWarp; head < shape.num_v_heads;
         head += kWarp) {
      const DeltaGates gates = gates_at(args, token.tokens, token.position, head);
      args.log_decay(head, row) = gates.log_decay;
      args.beta(head, row) = gates.beta;
    }
  } else if (part < shape.num_k_heads) {
    prepare_head(args, token, args.q_channel(part), shape.k_dim,
                 rsqrtf(static_cast<float>(shape.k_dim)), q_row(args, part, row));
  } else if (part < 2 * shape.num_k_heads) {
    const int head = part - shape.num_k_heads;
    prepare_head(args, token, args.k_channel(head), shape.k_dim, 1.0F, k_row(args, head, row));
  } else {
    const int head = part - 2 * shape.num_k_heads;
    prepare_head(args, token, args.v_channel(head), shape.v_dim, 0.0F, v_row(args, head, row));
  }
}

// Dynamic shared memory, in floats.
struct SharedParts {
  explicit __host__ __device__ SharedParts(const DeltaNetShape& shape)
      : q(shape.k_dim * shape.v_dim),
        k(q + shape.k_dim),
        v(k + shape.k_dim),
        sums(v + shape.v_dim),
        size(sums + kRecurrentThreads) {}
  // The state is first: [k_dim, v_dim].
  int q, k, v;
  int sums;  // [kRecurrentThreads]: parts of S^T k, and then of S^T q
  int size;
};

template <typename T>
class Head {
 public:
  __device__ Head(const DeltaArgs<T>& args, float* shared)
      : args_(args),
        parts_(args.shape),
        shared_(shared),
        seq_(args.seqs.first + static_cast<int>(blockIdx.y)),
        head_(static_cast<int>(blockIdx.x)),
        tokens_(tokens_of(args.states, seq_)),
        column_(static_cast<int>(threadIdx.x) % args.shape.v_dim),
        group_(static_cast<int>(threadIdx.x) / args.shape.v_dim),
        num_groups_(kRecurrentThreads / args.shape.v_dim) {}

  __device__ void run() {
    if (tokens_.end == 0) return clear_padding();
    span_ = args_.workspace.spans[seq_];
    read_state();
    for (int p = span_.first; p < tokens_.end; ++p) {
      load(p);
      advance();
      if (p >= tokens_.begin) write_output(p);
      const bool ends_block = (p + 1) % tokens_.block_size == 0;
      if (p + 1 <= span_.committed && (ends_block || p + 1 == span_.committed)) write_states(p + 1);
    }
    write_page_rows();
  }

 private:
  __device__ int size() const { return args_.shape.k_dim * args_.shape.v_dim; }

  __device__ void clear_padding() {
    const int v_dim = args_.shape.v_dim;
    for (int row = args_.states.query_start[seq_]; row < args_.states.query_start[seq_ + 1];
         ++row) {
      for (int i = threadIdx.x; i < v_dim; i += kRecurrentThreads) {
        args_.out[row * args_.shape.width() + int64_t{head_} * v_dim + i] = from_float<T>(0.0F);
      }
    }
  }

  __device__ void read_state() {
    const float* from = nullptr;
    if (tokens_.begin > 0) {
      from = args_.state(tokens_.pages[tokens_.block_of(tokens_.begin - 1)], head_);
    }
    for (int i = threadIdx.x; i < size(); i += kRecurrentThreads) {
      shared_[i] = from == nullptr ? 0.0F : from[i];
    }
  }

  __device__ void load(int p) {
    const int64_t row = args_.row_start(seq_) + args_.num_drafts + p - tokens_.begin;
    const int k_head = args_.shape.k_head(head_);
    __syncthreads();
    for (int i = threadIdx.x; i < args_.shape.k_dim; i += kRecurrentThreads) {
      shared_[parts_.q + i] = q_row(args_, k_head, row)[i];
      shared_[parts_.k + i] = k_row(args_, k_head, row)[i];
    }
    for (int i = threadIdx.x; i < args_.shape.v_dim; i += kRecurrentThreads) {
      shared_[parts_.v + i] = v_row(args_, head_, row)[i];
    }
    decay_ = expf(args_.log_decay(head_, row));
    beta_ = args_.beta(head_, row);
    __syncthreads();
  }

  // The sum of the thread's column over all groups of threads.
  __device__ float column_sum(float part) {
    float* const sums = shared_ + parts_.sums;
    if (group_ < num_groups_) sums[threadIdx.x] = part;
    __syncthreads();
    float total = 0;
    for (int g = 0; g < num_groups_; ++g) total += sums[g * args_.shape.v_dim + column_];
    return total;
  }

  __device__ void advance() {
    const int v_dim = args_.shape.v_dim;
    float k_sum = 0;
    if (group_ < num_groups_) {
      for (int i = group_; i < args_.shape.k_dim; i += num_groups_) {
        k_sum = fmaf(decay_ * shared_[i * v_dim + column_], shared_[parts_.k + i], k_sum);
      }
    }
    const float delta = beta_ * (shared_[parts_.v + column_] - column_sum(k_sum));
    float q_sum = 0;
    if (group_ < num_groups_) {
      for (int i = group_; i < args_.shape.k_dim; i += num_groups_) {
        float& s = shared_[i * v_dim + column_];
        s = fmaf(delta, shared_[parts_.k + i], decay_ * s);
        q_sum = fmaf(s, shared_[parts_.q + i], q_sum);
      }
    }
    __syncthreads();
    out_ = column_sum(q_sum);
  }

  __device__ void write_output(int p) {
    const int v_dim = args_.shape.v_dim;
    const bool is_first_group = group_ == 0;
    const float sum = block_sum(is_first_group ? out_ * out_ : 0.0F);
    __syncthreads();
    if (!is_first_group) return;
    const int64_t row = tokens_.row_of(p);
    const int64_t at = int64_t{head_} * v_dim + column_;
    const float z = to_float(args_.x[row * args_.x_width + args_.shape.num_channels() + at]);
    const float scale = rsqrtf(sum / static_cast<float>(v_dim) + args_.norm_eps);
    args_.out[row * args_.shape.width() + at] =
        from_float<T>(out_ * scale * args_.norm[column_] * silu<T>(z));
  }

  // Writes S, which contains `length` tokens, to the pages that keep this state.
  __device__ void write_states(int length) {
    __syncthreads();
    const int first = tokens_.block_of(length - 1);
    const int last = length == span_.committed ? tokens_.block_of(tokens_.kept_end - 1) : first;
    for (int block = first; block <= last; ++block) {
      const bool is_whole = length == tokens_.end_in(block);
      if ((!is_whole && length != span_.committed) || !tokens_.writes(block)) continue;
      float* const to = args_.state(tokens_.pages[block], head_);
      for (int i = threadIdx.x; i < size(); i += kRecurrentThreads) to[i] = shared_[i];
    }
  }

  // Writes the rows of the head's values and gates. The first value head of a key head also writes
  // the rows of its queries and keys.
  __device__ void write_page_rows() {
    const DeltaNetShape& shape = args_.shape;
    const auto rows = conv_rows(args_, tokens_);
    const int oldest = span_.first - shape.kernel + 1;
    const bool has_keys = args_.shape.is_first(head_);
    const int k_head = args_.shape.k_head(head_);
    for (int block = tokens_.block_of(tokens_.begin); block * tokens_.block_size < tokens_.kept_end;
         ++block) {
      if (!tokens_.writes(block)) continue;
      for (int i = threadIdx.x; i < shape.v_dim; i += kRecurrentThreads) {
        write_rows(args_.states, rows, tokens_, block, oldest, args_.v_channel(head_) + i);
      }
      for (int i = threadIdx.x; has_keys && i < shape.k_dim; i += kRecurrentThreads) {
        write_rows(args_.states, rows, tokens_, block, oldest, args_.q_channel(k_head) + i);
        write_rows(args_.states, rows, tokens_, block, oldest, args_.k_channel(k_head) + i);
      }
      float* const page = page_of(args_.states, tokens_.pages[block]);
      const int end = tokens_.end_in(block);
      const int num_heads = shape.num_v_heads;
      for (int p = span_.committed + static_cast<int>(threadIdx.x); p < end;
           p += kRecurrentThreads) {
        const T* const given = args_.ba + tokens_.row_of(p) * 2 * num_heads;
        float* const row =
            page + args_.page.gates + int64_t{2} * (p % args_.num_drafts) * num_heads;
        row[head_] = to_float(given[head_]);
        row[num_heads + head_] = to_float(given[num_heads + head_]);
      }
      if (threadIdx.x == 0) args_.lengths(page)[head_] = min(end, span_.committed);
    }
  }

  const DeltaArgs<T>& args_;
  const SharedParts parts_;
  float* const shared_;
  const int seq_;
  const int head_;
  const SeqTokens tokens_;
  const int column_;
  const int group_;
  const int num_groups_;
  DeltaSpan span_ = {0, 0};
  float decay_ = 0;
  float beta_ = 0;
  float out_ = 0;
};

// Grid: (value heads, sequences).
template <typename T>
__global__ void __launch_bounds__(kRecurrentThreads) recurrent_kernel(const DeltaArgs<T> args) {
  extern __shared__ float shared[];
  trigger_dependent_launch();
  wait_for_previous_kernel();
  Head<T>(args, shared).run();
}

}  // namespace

DeltaWorkspace lay_out_by_token(std::byte* memory, const DeltaNetShape& shape, int num_drafts,
                                int64_t num_tokens, int64_t num_seqs) {
  const auto count = [](int64_t x) { return static_cast<size_t>(x); };
  DeltaWorkspace workspace;
  workspace.num_rows = num_tokens + num_seqs * num_drafts;
  const int64_t of_keys = workspace.num_rows * shape.num_k_heads * shape.k_dim;
  BumpAllocator allocator(memory);
  workspace.spans = allocator.allocate<DeltaSpan>(count(num_seqs));
  workspace.q = allocator.allocate<float>(count(of_keys));
  workspace.k = allocator.allocate<float>(count(of_keys));
  workspace.v = allocator.allocate<float>(count(workspace.num_rows * shape.width()));
  workspace.gates = allocator.allocate<float>(count(2 * workspace.num_rows * shape.num_v_heads));
  workspace.num_bytes = allocator.num_bytes();
  return workspace;
}

bool is_recurrent_shape(const DeltaNetShape& shape, size_t max_shared_bytes) {
  return shape.k_dim <= kMaxDeltaHeadDim && shape.v_dim <= kMaxDeltaHeadDim &&
         static_cast<size_t>(SharedParts(shape).size) * sizeof(float) <= max_shared_bytes;
}

void run_delta_recurrent(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                         const DeltaWorkspace& by_token) {
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    const DeltaArgs<T> args = delta_args<T>(net, seqs, by_token);
    const int64_t num_rows = net.out.shape[0] + int64_t{seqs.count} * net.num_drafts;
    QUIRE_LAUNCH(
        *context.stream, prepare_rows_kernel<T>,
        context.shape(ceil_div(num_rows, int64_t{kRecurrentThreads / kWarp}), kRecurrentThreads,
                      2 * net.shape.num_k_heads + net.shape.num_v_heads + 1),
        args);
    LaunchShape shape = context.shape(net.shape.num_v_heads, kRecurrentThreads, seqs.count);
    shape.shared_bytes = static_cast<size_t>(SharedParts(net.shape).size) * sizeof(float);
    QUIRE_LAUNCH(*context.stream, recurrent_kernel<T>, shape, args);
  });
}

}  // namespace quire::cuda

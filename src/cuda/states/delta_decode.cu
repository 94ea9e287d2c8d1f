// A gated delta net for sequences that decode, in one kernel: the tokens since the state of the
// page, of which a page has the inputs, then the tokens of the step. Both sums over the state's
// rows are made in one pass, because
//   S'^T q = decay * S^T q + (k . q) d,  S' = decay * S + k d^T,  d = beta (v - decay * S^T k)
// Pages are read before the previous kernel ends: no kernel of the same step writes them, and the
// previous steps have ended. So the tokens before the step overlap the previous kernel.
//
// The kParts thread blocks of a cluster have kColumns columns of a head each, so that few heads
// occupy all SMs. A thread keeps its part of the state in registers. delta_stream.cu is for many
// heads with one token each.
#include "base/numbers.h"
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
constexpr int kOutputs = ceil_div(kMaxDeltaTokens, kWarps);  // of a thread
constexpr int kAhead = 4;  // tokens whose inputs are loaded at once
static_assert(kThreads == kDim && kColumns == kWarp && kWarps == 4 && kMaxDeltaTokens <= kThreads);

// A token before the norms. First these are the tokens before the step, then those of the step: at
// most num_drafts + 1.
struct alignas(16) Token {
  float q[kDim];
  float k[kDim];
  float v[kColumns];
  float out[kColumns];
  TokenNorms norms;
  float squares[kParts];  // of the output, by thread block of the cluster
  float decay;
  float beta;
};

struct alignas(16) Shared {
  float delta[kColumns];
  float2 sums[kWarps][kColumns];  // S^T k and S^T q over the rows of a warp
};

// The inputs of a thread's channels.
struct Inputs {
  float q;
  float k;
  float v;
};

// A channel of the convolution, from one token to the next.
struct Channel {
  int64_t index = 0;
  float weights[kDeltaKernel];
  float past[kPastInputs] = {};  // the newest inputs, the oldest first

  // `first`: the first token that is convolved.
  template <typename T>
  __device__ void load(const DeltaArgs<T>& args, const float* before, int first, int64_t channel) {
    index = channel;
    const int64_t num_channels = args.shape.num_channels();
#pragma unroll
    for (int i = 0; i < kDeltaKernel; ++i) weights[i] = args.conv[i * num_channels + index];
#pragma unroll
    for (int i = 0; i < kPastInputs; ++i) {
      const int position = first - kPastInputs + i;
      if (position >= 0) past[i] = before[position % args.page.num_rows * num_channels + index];
    }
  }

  template <typename T>
  __device__ float convolve(float in) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPastInputs; ++i) sum = fmaf(weights[i], past[i], sum);
    sum = fmaf(weights[kPastInputs], in, sum);
#pragma unroll
    for (int i = 1; i < kPastInputs; ++i) past[i - 1] = past[i];
    past[kPastInputs - 1] = in;
    return silu<T>(sum);
  }
};

template <typename T>
class Head {
 public:
  __device__ Head(const DeltaArgs<T>& args, Shared& shared, Token* parts)
      : args_(args),
        shared_(shared),
        parts_(parts),
        thread_(static_cast<int>(threadIdx.x)),
        head_(static_cast<int>(blockIdx.x) / kParts),
        part_(static_cast<int>(blockIdx.x) % kParts),
        seq_(args.seqs.first + static_cast<int>(blockIdx.y)),
        row_group_(thread_ / kThreadsPerRow),
        column_(thread_ % kThreadsPerRow * kVec),
        tokens_(all_tokens_of(args.states, seq_)),
        before_(page_before(args.states, tokens_)) {}

  __device__ void run() {
    arrive_in_cluster();
    if (tokens_.end == 0) return clear_padding();
    load_state_and_weights();
    find_pages();
    const int num_before = tokens_.begin - first_;
    if (num_before > 0) prepare_tokens_before(num_before);
    for (int i = 0; i < num_before; ++i) {
      add_up<false>(parts_[i]);
      compute_columns<false>(parts_[i]);
      advance(parts_[i]);
    }
    if (num_before > 0) __syncthreads();
    wait_for_previous_kernel();
    const int count = tokens_.end - tokens_.begin;
    prepare_step(count);
    wait_in_cluster();  // all its thread blocks have started
    for (int i = 0; i < count; ++i) {
      add_up<true>(parts_[i]);
      compute_columns<true>(parts_[i]);
      if (i == 0 && tokens_.kept_end > tokens_.begin) {
        advance(parts_[i]);
        write_states();
      } else if (i + 1 < count) {
        advance(parts_[i]);
      }
    }
    write_outputs(count);
  }

 private:
  // The first warp finishes the columns, one per thread. The last warp convolves the values.
  __device__ bool has_column() const { return thread_ < kColumns; }
  __device__ int lane() const { return thread_ % kWarp; }
  __device__ int warp() const { return thread_ / kWarp; }
  __device__ int own_column() const { return part_ * kColumns + lane(); }
  __device__ int value() const { return thread_ - (kThreads - kColumns); }
  // The index in a page of the thread's columns of its i-th row of the state.
  __device__ int64_t place(int i) const {
    return args_.page.states + int64_t{head_} * kDim * kDim + (row_group_ + i * kRowGroups) * kDim +
           part_ * kColumns + column_;
  }
  __device__ const T* x(int i) const { return args_.x + (tokens_.first_row + i) * args_.x_width; }
  __device__ T& output(int64_t row) const {
    return args_.out[row * args_.shape.width() + int64_t{head_} * kDim + own_column()];
  }

  __device__ void clear_padding() {
    wait_for_previous_kernel();
    const int32_t* const starts = args_.states.query_start;
    for (int row = starts[seq_] + warp(); row < starts[seq_ + 1]; row += kWarps) {
      output(row) = from_float<T>(0.0F);
    }
    wait_in_cluster();
  }

  // Loads what no kernel of this step writes.
  __device__ void load_state_and_weights() {
    if (before_ != nullptr) {
#pragma unroll
      for (int i = 0; i < kRowsPerThread; ++i) {
        // An intrinsic, because a plain copy of a float4 compiles to four loads here.
        state_[i] = __ldcs(reinterpret_cast<const float4*>(before_ + place(i)));
      }
    }
    gate_weights_ = gate_weights_of(args_, head_);
    norm_ = args_.norm[own_column()];
    first_ = first_of(args_, tokens_, head_);
    const int k_head = args_.shape.k_head(head_);
    q_.load(args_, before_, first_, args_.q_channel(k_head) + thread_);
    k_.load(args_, before_, first_, args_.k_channel(k_head) + thread_);
    if (value() >= 0) {
      v_.load(args_, before_, first_, args_.v_channel(head_) + part_ * kColumns + value());
    }
  }

  // Finds the pages that the step writes, so that no division follows the wait.
  __device__ void find_pages() {
    tokens_.kept_end = kept_end_of(args_.states, tokens_);
    first_block_ = tokens_.block_of(tokens_.begin);
    end_in_first_ = tokens_.end_in(first_block_);
    if (tokens_.writes(first_block_)) {
      first_page_ = page_of(args_.states, tokens_.pages[first_block_]);
    }
    begin_row_ = tokens_.begin % args_.page.num_rows;
    writes_keys_ = part_ == 0 && args_.shape.is_first(head_);
  }

  // Convolves `count` tokens to the queries, keys and values before the norms, and adds up the
  // squares for these. read(i): the inputs of token i. use(i, inputs): called for each.
  template <typename Read, typename Use>
  __device__ void convolve(int count, Read read, Use use) {
    for (int first = 0; first < count; first += kAhead) {
      Inputs inputs[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (first + i < count) inputs[i] = read(first + i);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (first + i >= count) break;
        Token& token = parts_[first + i];
        const float query = q_.convolve<T>(inputs[i].q);
        const float key = k_.convolve<T>(inputs[i].k);
        token.q[thread_] = query;
        token.k[thread_] = key;
        if (value() >= 0) token.v[value()] = v_.convolve<T>(inputs[i].v);
        write_norms(query, key, token.norms);
        use(first + i, inputs[i]);
      }
    }
  }
  __device__ void write_gates() const {
    const DeltaGates gates = gates_of(gate_weights_, b_, a_);
    parts_[thread_].decay = expf(gates.log_decay);
    parts_[thread_].beta = gates.beta;
  }

  __device__ void prepare_tokens_before(int count) {
    if (thread_ < count) {
      const int num_heads = args_.shape.num_v_heads;
      const float* const kept = before_ + args_.page.gates +
                                int64_t{2} * ((first_ + thread_) % args_.num_drafts) * num_heads;
      b_ = kept[head_];
      a_ = kept[num_heads + head_];
      write_gates();
    }
    const auto read = [&](int i) -> Inputs {
      const float* const row =
          before_ + (first_ + i) % args_.page.num_rows * args_.shape.num_channels();
      return {row[q_.index], row[k_.index], value() >= 0 ? row[v_.index] : 0.0F};
    };
    convolve(count, read, [](int, const Inputs&) {});
    __syncthreads();
  }

  __device__ void prepare_step(int count) {
    if (thread_ < count) {
      const int num_heads = args_.shape.num_v_heads;
      const T* const ba = args_.ba + (tokens_.first_row + thread_) * 2 * num_heads;
      b_ = to_float(ba[head_]);
      a_ = to_float(ba[num_heads + head_]);
    }
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const int token = warp() + i * kWarps;
      if (token >= count) break;
      z_[i] = to_float(x(token)[args_.shape.num_channels() + int64_t{head_} * kDim + own_column()]);
    }
    if (first_page_ != before_ || tokens_.kept_end > end_in_first_) copy_past_inputs();
    const auto read = [&](int i) -> Inputs {
      return {to_float(x(i)[q_.index]), to_float(x(i)[k_.index]),
              value() >= 0 ? to_float(x(i)[v_.index]) : 0.0F};
    };
    convolve(count, read, [&](int i, const Inputs& inputs) {
      for_each_page([&](float* page, int end) {
        if (tokens_.begin + i < end) write_inputs(page, i, inputs);
      });
    });
    if (thread_ < count) write_gates();
    __syncthreads();
  }

  // Calls `use(page, end)` for each page that the step writes. end: one past the last token that
  // the page has.
  template <typename Use>
  __device__ void for_each_page(Use use) const {
    if (first_page_ != nullptr) use(first_page_, end_in_first_);
    if (tokens_.kept_end <= end_in_first_) return;
    for (int block = first_block_ + 1; block * tokens_.block_size < tokens_.kept_end; ++block) {
      if (!tokens_.writes(block)) continue;
      use(page_of(args_.states, tokens_.pages[block]), tokens_.end_in(block));
    }
  }

  // Writes the inputs of the convolution of token begin + i. The page has room for them beside all
  // rows that other thread blocks may still read. One thread block writes the queries and keys.
  __device__ void write_inputs(float* page, int i, const Inputs& inputs) const {
    int at = begin_row_ + i;
    if (at < 0) at += args_.page.num_rows;
    if (at >= args_.page.num_rows) at -= args_.page.num_rows;
    float* const row = page + at * args_.shape.num_channels();
    if (value() >= 0) row[v_.index] = inputs.v;
    if (!writes_keys_) return;
    row[q_.index] = inputs.q;
    row[k_.index] = inputs.k;
  }

  // Copies the inputs before the step to pages that do not have them.
  __device__ void copy_past_inputs() const {
    for_each_page([&](float* page, int) {
      if (page == before_) return;
#pragma unroll
      for (int i = 0; i < kPastInputs; ++i) {
        const int from_begin = i - kPastInputs;
        if (tokens_.begin + from_begin < 0) continue;
        write_inputs(page, from_begin, {q_.past[i], k_.past[i], v_.past[i]});
      }
    });
  }

  // S^T k and, with kHasOutput, S^T q over the rows of each warp.
  template <bool kHasOutput>
  __device__ void add_up(const Token& token) {
    const DecodeScales scale(token.norms);
    float k_sums[kVec] = {};
    float q_sums[kVec] = {};
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const float key = token.k[row_group_ + i * kRowGroups] * scale.k;
      const float query = kHasOutput ? token.q[row_group_ + i * kRowGroups] * scale.q : 0.0F;
      const float state[kVec] = {state_[i].x, state_[i].y, state_[i].z, state_[i].w};
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        k_sums[j] = fmaf(state[j], key, k_sums[j]);
        if constexpr (kHasOutput) q_sums[j] = fmaf(state[j], query, q_sums[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
#pragma unroll
      for (int distance = kThreadsPerRow; distance < kWarp; distance *= 2) {
        k_sums[j] += __shfl_xor_sync(0xFFFFFFFFU, k_sums[j], distance);
        if constexpr (kHasOutput) {
          q_sums[j] += __shfl_xor_sync(0xFFFFFFFFU, q_sums[j], distance);
        }
      }
      if (thread_ % kWarp < kThreadsPerRow) {
        shared_.sums[thread_ / kWarp][column_ + j] = {k_sums[j], q_sums[j]};
      }
    }
    __syncthreads();
  }

  // d of each column and, with kHasOutput, its output.
  template <bool kHasOutput>
  __device__ void compute_columns(Token& token) {
    if (has_column()) {
      const DecodedColumn column =
          decode_column(shared_.sums, thread_, token.v[thread_], token.decay, token.beta,
                        DecodeScales(token.norms));
      shared_.delta[thread_] = column.delta;
      if constexpr (kHasOutput) {
        token.out[thread_] = column.out;
        const float squares = warp_sum(column.out * column.out);
        if (thread_ < kParts) {
          store_in_cluster(address_in(shared_address(&token.squares[part_]), thread_), squares);
        }
      }
    }
    __syncthreads();
  }

  // Adds the token to the state.
  __device__ void advance(const Token& token) {
    const float4 delta = *reinterpret_cast<const float4*>(shared_.delta + column_);
    const float k_scale = DecodeScales(token.norms).k;
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const float key = token.k[row_group_ + i * kRowGroups] * k_scale;
      state_[i] = next_state(state_[i], token.decay, key, delta);
    }
  }

  // Writes the state, which has the first token of the step.
  __device__ void write_states() const {
    for_each_page([&](float* page, int) {
#pragma unroll
      for (int i = 0; i < kRowsPerThread; ++i) {
        __stcs(reinterpret_cast<float4*>(page + place(i)), state_[i]);
      }
    });
  }

  __device__ void write_outputs(int count) {
    sync_cluster_memory();
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const int at = warp() + i * kWarps;
      if (at >= count) break;
      const Token& token = parts_[at];
      const float scale = rsqrtf(sum_of(token.squares) / kDim + args_.norm_eps);
      output(tokens_.first_row + at) =
          from_float<T>(token.out[lane()] * scale * norm_ * silu<T>(z_[i]));
    }
    // All thread blocks of the cluster have read the gates and the length before the step.
    if (part_ == 0 && thread_ < count) write_rest(tokens_.begin + thread_);
  }

  // Writes b and a of a token that the state does not have; the first token's thread writes the
  // length of the state.
  __device__ void write_rest(int position) const {
    const int num_heads = args_.shape.num_v_heads;
    for_each_page([&](float* page, int end) {
      if (position == tokens_.begin) {
        args_.lengths(page)[head_] = tokens_.begin + 1;
      } else if (position < end) {
        float* const row =
            page + args_.page.gates + int64_t{2} * (position % args_.num_drafts) * num_heads;
        row[head_] = b_;
        row[num_heads + head_] = a_;
      }
    });
  }

  const DeltaArgs<T>& args_;
  Shared& shared_;
  Token* const parts_;
  const int thread_;
  const int head_;
  const int part_;
  const int seq_;
  const int row_group_;
  const int column_;  // the thread's first column within the part
  SeqTokens tokens_;
  const float* const before_;    // the page before the step; null: the sequence begins
  int first_ = 0;                // the first token that the state of this page lacks
  int first_block_ = 0;          // the block of the step's first token
  int end_in_first_ = 0;         // one past its last token
  float* first_page_ = nullptr;  // its page, if the step writes it
  int begin_row_ = 0;            // the page's row of inputs of the step's first token
  bool writes_keys_ = false;
  float4 state_[kRowsPerThread] = {};
  Channel q_, k_, v_;
  GateWeights gate_weights_ = {0, 0};
  float norm_ = 0;  // the weight of the norm of own_column()
  float b_ = 0;     // of token thread_
  float a_ = 0;
  float z_[kOutputs] = {};  // of the step's tokens warp() + i * kWarps
};

// Grid: (value heads x kParts, sequences).
template <typename T>
__global__ void __launch_bounds__(kThreads, 4) decode_kernel(const DeltaArgs<T> args) {
  extern __shared__ __align__(16) std::byte dynamic[];
  trigger_dependent_launch();
  auto* const tokens = reinterpret_cast<Token*>(dynamic + sizeof(Shared));
  Head<T>(args, *reinterpret_cast<Shared*>(dynamic), tokens).run();
}

}  // namespace

void run_delta_decode(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs) {
  // With more heads than SMs, the thread blocks of delta_stream.cu, which copy ahead, are faster.
  const bool has_one_token_each = net.out.shape[0] == seqs.count;
  if (has_one_token_each && net.shape.num_v_heads * seqs.count > context.stream->limits().num_sms) {
    return run_delta_stream(context, net, seqs);
  }
  with_float_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    LaunchShape shape =
        context.shape(int64_t{net.shape.num_v_heads} * kParts, kThreads, seqs.count);
    shape.cluster = kParts;
    shape.shared_bytes = sizeof(Shared) + static_cast<size_t>(1 + net.num_drafts) * sizeof(Token);
    QUIRE_LAUNCH(*context.stream, decode_kernel<T>, shape, delta_args<T>(net, seqs));
  });
}

}  // namespace quire::cuda

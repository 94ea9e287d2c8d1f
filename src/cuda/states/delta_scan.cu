// The states and outputs of a gated delta net from one chunk to the next (delta_matrices.cuh). Each
// warp has 16 columns of a head's values and of its state, which it keeps transposed in registers:
// in that form, the result of each product is an operand of the next one. So warps exchange
// nothing, and a head can be divided among thread blocks as few sequences need it. Bulk copies of
// the next chunk run during the products of a chunk.
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/states/delta_matrices.cuh"

namespace quire::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kDim = kDeltaHeadDim;
constexpr int kStride = kDim + kDeltaPadding;
constexpr int kStages = 2;
constexpr int kTiles = kDeltaChunk / 8;   // of 8 tokens
constexpr int kPairs = kDeltaChunk / 16;  // of tiles
constexpr int kStateTiles = kDim / 8;

template <typename T, int kWarps>
struct alignas(16) Stage {
  T k[kDeltaChunk * kStride];
  T q[kDeltaChunk * kStride];
  T solved[kDeltaChunk * kDeltaChunkStride];
  T scores[kDeltaChunk * kDeltaChunkStride];
  T v[kWarps][kDeltaChunk * kDeltaSliceStride];
  float factors[3][kDeltaChunk];
};

template <typename T, int kWarps>
struct Shared {
  Stage<T, kWarps> stages[kStages];
  Mbarrier loaded[kStages];
  Mbarrier free[kStages];
};

// Accumulators of a warp: tile t has rows (columns of values) lane / 4 and lane / 4 + 8, and
// columns 8 t + lane % 4 * 2 and the next.
template <int kCount>
using Tiles = float[kCount][4];

// Two tiles as the left operand of a product over their 16 columns.
template <typename T, int kCount>
__device__ __forceinline__ void pack_tiles(const Tiles<kCount>& tiles, int pair,
                                           uint32_t (&out)[4]) {
  out[0] = pack<T>(tiles[2 * pair][0], tiles[2 * pair][1]);
  out[1] = pack<T>(tiles[2 * pair][2], tiles[2 * pair][3]);
  out[2] = pack<T>(tiles[2 * pair + 1][0], tiles[2 * pair + 1][1]);
  out[3] = pack<T>(tiles[2 * pair + 1][2], tiles[2 * pair + 1][3]);
}

// The right operand for tiles 2 pair and 2 pair + 1, columns [16 step, 16 step + 16), of a matrix
// of which each row is a column of the product.
template <typename T>
__device__ __forceinline__ uint4 load_rows(const T* matrix, int stride, int pair, int step,
                                           int lane) {
  const int row = 16 * pair + lane / 16 * 8 + lane % 8;
  return load_matrices(shared_address(matrix + row * stride + 16 * step + lane / 8 % 2 * 8));
}

template <typename T, int kWarps>
class Scan {
 public:
  __device__ Scan(const DeltaArgs<T>& args, Shared<T, kWarps>& shared)
      : args_(args),
        shared_(shared),
        seq_(args.seqs.first + static_cast<int>(blockIdx.y)),
        head_(static_cast<int>(blockIdx.x) / kParts),
        lane_(static_cast<int>(threadIdx.x) % kWarp),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        first_slice_(static_cast<int>(blockIdx.x) % kParts * kWarps),
        tokens_(tokens_of(args.states, seq_)),
        first_(args.workspace.spans[seq_].x),
        num_chunks_(num_chunks(tokens_, args, seq_)) {}

  static constexpr int kParts = kDim / (16 * kWarps);  // thread blocks of a head

  __device__ void run() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        shared_.loaded[i].init();
        shared_.free[i].init(kWarps);
      }
      publish_barriers();
    }
    __syncthreads();
    if (threadIdx.x == 0 && num_chunks_ > 0) load(0);
    read_state();
    int32_t page = page_after(0);
    for (int chunk = 0; chunk < num_chunks_; ++chunk) {
      const int32_t next_page = page_after(chunk + 1);
      if (threadIdx.x == 0 && chunk + 1 < num_chunks_) load(chunk + 1);
      __syncwarp();
      run_chunk(chunk, page);
      page = next_page;
    }
  }

 private:
  using StageType = Stage<T, kWarps>;

  __device__ int slice() const { return first_slice_ + warp_; }
  __device__ int row() const { return 16 * slice() + lane_ / 4; }  // a column of the head's values
  __device__ int token_of(int chunk) const { return first_ + chunk * kDeltaChunk; }

  // Called by one thread.
  __device__ void load(int chunk) {
    const int index = chunk % kStages;
    if (chunk >= kStages) shared_.free[index].wait((chunk / kStages - 1) & 1);
    StageType& stage = shared_.stages[index];
    Mbarrier& loaded = shared_.loaded[index];
    loaded.arrive_expecting(sizeof(StageType));
    const int64_t first_row = args_.row_of(seq_, tokens_, token_of(chunk));
    const int k_head = head_ / args_.group();
    const ChunkMatrices<T> matrices = matrices_of(args_, first_chunk(args_, seq_) + chunk, head_);
    copy_bulk(stage.k, args_.k(k_head, first_row), sizeof(stage.k), loaded);
    copy_bulk(stage.solved, matrices.solved, sizeof(stage.solved), loaded);
    copy_bulk(stage.factors, matrices.factors, sizeof(stage.factors), loaded);
    for (int w = 0; w < kWarps; ++w) {
      copy_bulk(stage.v[w], args_.v(head_, first_slice_ + w, first_row), sizeof(stage.v[w]),
                loaded);
    }
    copy_bulk(stage.q, args_.q(k_head, first_row), sizeof(stage.q), loaded);
    copy_bulk(stage.scores, matrices.scores, sizeof(stage.scores), loaded);
  }

  __device__ void read_state() {
    const float* from = nullptr;
    if (tokens_.begin > 0) {
      from = args_.state(tokens_.pages[tokens_.block_of(tokens_.begin - 1)], head_);
    }
#pragma unroll
    for (int tile = 0; tile < kStateTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        state_[tile][i] = from == nullptr ? 0.0F : from[state_at(tile, i)];
      }
    }
  }
  // The place in a page of element i of a tile.
  __device__ int state_at(int tile, int i) const {
    return (8 * tile + lane_ % 4 * 2 + i % 2) * kDim + row() + i / 2 * 8;
  }

  // The page, if any, of the block that lane % 32 counts from the block of the chunk's first token.
  __device__ int32_t page_after(int chunk) const {
    const int token = max(token_of(chunk), tokens_.begin);
    if (chunk >= num_chunks_) return 0;
    const int block = tokens_.block_of(token) + lane_;
    const bool is_touched = block * tokens_.block_size < min(token_of(chunk + 1), tokens_.kept_end);
    return is_touched && tokens_.writes(block) ? tokens_.pages[block] : 0;
  }

  __device__ void run_chunk(int chunk, int32_t page) {
    const int index = chunk % kStages;
    StageType& stage = shared_.stages[index];
    shared_.loaded[index].wait(chunk / kStages & 1);
    const int count = min(tokens_.end - token_of(chunk), kDeltaChunk);
    if (count < kDeltaChunk) clear_rows(stage, count);

    // (K S)^T and (Q S)^T
    Tiles<kTiles> rest = {};
    Tiles<kTiles> out = {};
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      uint32_t s[4];
      pack_tiles<T>(state_, step, s);
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const uint4 k = load_rows(stage.k, kStride, pair, step, lane_);
        mma<T>(rest[2 * pair], s, k.x, k.y);
        mma<T>(rest[2 * pair + 1], s, k.z, k.w);
        const uint4 q = load_rows(stage.q, kStride, pair, step, lane_);
        mma<T>(out[2 * pair], s, q.x, q.y);
        mma<T>(out[2 * pair + 1], s, q.z, q.w);
      }
    }
    subtract_from_values(stage, rest, out);
    Tiles<kTiles> deltas = {};
    add_triangular(stage.solved, rest, deltas);
    add_triangular(stage.scores, deltas, out);
    write_out(stage, chunk, count, out);
    write_states_within(stage, chunk, count, deltas, page);
    advance_state(stage, deltas);
    write_state_after(chunk, count, page);
    order_bulk_copies();  // write_out() used the stage
    __syncwarp();
    if (lane_ == 0) shared_.free[index].arrive();
  }

  // The copies after the last token are of other tokens.
  __device__ void clear_rows(StageType& stage, int count) {
    T* const v = stage.v[warp_];
    for (int i = count * kDeltaSliceStride + lane_; i < kDeltaChunk * kDeltaSliceStride;
         i += kWarp) {
      v[i] = from_float<T>(0.0F);
    }
    for (int i = count * kStride + static_cast<int>(threadIdx.x); i < kDeltaChunk * kStride;
         i += kWarps * kWarp) {
      stage.k[i] = from_float<T>(0.0F);
      stage.q[i] = from_float<T>(0.0F);
    }
    __syncthreads();  // all threads have the same count
  }

  // rest = V^T - diag(e^G) rest, and out = diag(e^G) out.
  __device__ void subtract_from_values(const StageType& stage, Tiles<kTiles>& rest,
                                       Tiles<kTiles>& out) const {
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      const int token = 16 * pair + lane_ / 16 * 8 + lane_ % 8;
      const uint4 v = load_transposed(
          shared_address(stage.v[warp_] + token * kDeltaSliceStride + lane_ / 8 % 2 * 8));
      const uint32_t values[2][2] = {{v.x, v.y}, {v.z, v.w}};
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int tile = 2 * pair + t;
        const float2 factor = factor_of(stage.factors[1], tile);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float2 value = unpack(values[t][half]);
          rest[tile][2 * half] = value.x - factor.x * rest[tile][2 * half];
          rest[tile][2 * half + 1] = value.y - factor.y * rest[tile][2 * half + 1];
          out[tile][2 * half] *= factor.x;
          out[tile][2 * half + 1] *= factor.y;
        }
      }
    }
  }
  __device__ float2 factor_of(const float* factors, int tile) const {
    return *reinterpret_cast<const float2*>(factors + 8 * tile + lane_ % 4 * 2);
  }
  __device__ static float2 unpack(uint32_t pair) {
    const auto values = *reinterpret_cast<const Vec<T, 2>*>(&pair);
    return {to_float(values.v[0]), to_float(values.v[1])};
  }

  // out += x * matrix^T, where the matrix is lower triangular.
  __device__ void add_triangular(const T* matrix, const Tiles<kTiles>& x,
                                 Tiles<kTiles>& out) const {
#pragma unroll
    for (int step = 0; step < kPairs; ++step) {
      uint32_t a[4];
      pack_tiles<T>(x, step, a);
#pragma unroll
      for (int pair = step; pair < kPairs; ++pair) {
        const uint4 b = load_rows(matrix, kDeltaChunkStride, pair, step, lane_);
        mma<T>(out[2 * pair], a, b.x, b.y);
        mma<T>(out[2 * pair + 1], a, b.z, b.w);
      }
    }
  }

  // Writes the outputs by whole rows of 16 columns, through the place of the warp's values.
  __device__ void write_out(StageType& stage, int chunk, int count, const Tiles<kTiles>& out) {
    T* const rows = stage.v[warp_];
    __syncwarp();
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      uint32_t m[4];
      pack_tiles<T>(out, pair, m);
      const int token = 16 * pair + lane_ / 16 * 8 + lane_ % 8;
      store_matrices<true>(shared_address(rows + token * kDeltaSliceStride + lane_ / 8 % 2 * 8), m);
    }
    __syncwarp();
    constexpr int kVec = 16 / sizeof(T);
#pragma unroll
    for (int i = lane_; i < kDeltaChunk * 2; i += kWarp) {
      const int token = token_of(chunk) + i / 2;
      if (i / 2 >= count || token < tokens_.begin) continue;
      const auto value =
          *reinterpret_cast<const uint4*>(rows + i / 2 * kDeltaSliceStride + i % 2 * kVec);
      T* const to = args_.out + tokens_.row_of(token) * args_.shape.width() +
                    int64_t{head_} * kDim + 16 * slice() + i % 2 * kVec;
      *reinterpret_cast<uint4*>(to) = value;
    }
  }

  // Calls body(page, number of the chunk's tokens that its state contains).
  template <typename Body>
  __device__ void for_each_page(int chunk, int32_t page, const Body& body) const {
    uint32_t left = __ballot_sync(0xFFFFFFFFU, page != 0);
    const int first_block = tokens_.block_of(max(token_of(chunk), tokens_.begin));
    for (; left != 0; left &= left - 1) {
      const int lane = __ffs(static_cast<int>(left)) - 1;
      const int32_t id = __shfl_sync(0xFFFFFFFFU, page, lane);
      const int end = tokens_.end_in(first_block + lane) - token_of(chunk);
      if (end <= kDeltaChunk) body(args_.state(id, head_), end);
    }
  }

  // The states after blocks that end within the chunk. Deltas do not depend on later tokens.
  __device__ void write_states_within(const StageType& stage, int chunk, int count,
                                      const Tiles<kTiles>& deltas, int32_t page) const {
    for_each_page(chunk, page, [&](float* to, int end) {
      if (end == count) return;
      const float last = stage.factors[0][end - 1];
      Tiles<kTiles> scaled;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const int token = 8 * tile + lane_ % 4 * 2;
        const float2 g = factor_of(stage.factors[0], tile);
        const float x = token < end ? __expf(last - g.x) : 0.0F;
        const float y = token + 1 < end ? __expf(last - g.y) : 0.0F;
        scale(deltas[tile], x, y, scaled[tile]);
      }
      const float decay = __expf(last);
#pragma unroll 1
      for (int pair = 0; pair < kStateTiles / 2; ++pair) {
        float sums[2][4] = {};
        add_keys(stage, scaled, pair, sums);
        write_decayed(pair, decay, sums, to);
      }
    });
  }
  // A loop over tiles with a variable index would move the state to local memory.
  __device__ void write_decayed(int pair, float decay, const float (&sums)[2][4], float* to) const {
#pragma unroll
    for (int p = 0; p < kStateTiles / 2; ++p) {
      if (p != pair) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int tile = 2 * p + i / 4;
        to[state_at(tile, i % 4)] = fmaf(decay, state_[tile][i % 4], sums[i / 4][i % 4]);
      }
    }
  }

  __device__ void advance_state(const StageType& stage, Tiles<kTiles>& deltas) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const float2 factor = factor_of(stage.factors[2], tile);
      scale(deltas[tile], factor.x, factor.y, deltas[tile]);
    }
    const float decay = stage.factors[1][kDeltaChunk - 1];
#pragma unroll
    for (int tile = 0; tile < kStateTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) state_[tile][i] *= decay;
    }
#pragma unroll
    for (int step = 0; step < kPairs; ++step) {
      uint32_t a[4];
      pack_tiles<T>(deltas, step, a);
#pragma unroll
      for (int pair = 0; pair < kStateTiles / 2; ++pair) {
        const uint4 k = load_keys(stage, step, pair);
        mma<T>(state_[2 * pair], a, k.x, k.y);
        mma<T>(state_[2 * pair + 1], a, k.z, k.w);
      }
    }
  }
  __device__ static void scale(const float (&x)[4], float even, float odd, float (&out)[4]) {
    out[0] = x[0] * even;
    out[1] = x[1] * odd;
    out[2] = x[2] * even;
    out[3] = x[3] * odd;
  }
  // The right operand of a product over tokens [16 step, 16 step + 16), for two tiles of the state.
  __device__ uint4 load_keys(const StageType& stage, int step, int pair) const {
    const int token = 16 * step + lane_ % 16;
    return load_transposed(shared_address(stage.k + token * kStride + 16 * pair + lane_ / 16 * 8));
  }
  __device__ void add_keys(const StageType& stage, const Tiles<kTiles>& deltas, int pair,
                           float (&sums)[2][4]) const {
#pragma unroll
    for (int step = 0; step < kPairs; ++step) {
      uint32_t a[4];
      pack_tiles<T>(deltas, step, a);
      const uint4 k = load_keys(stage, step, pair);
      mma<T>(sums[0], a, k.x, k.y);
      mma<T>(sums[1], a, k.z, k.w);
    }
  }

  __device__ void write_state_after(int chunk, int count, int32_t page) const {
    for_each_page(chunk, page, [&](float* to, int end) {
      if (end != count) return;
#pragma unroll
      for (int tile = 0; tile < kStateTiles; ++tile) {
#pragma unroll
        for (int i = 0; i < 4; ++i) to[state_at(tile, i)] = state_[tile][i];
      }
    });
  }

  const DeltaArgs<T>& args_;
  Shared<T, kWarps>& shared_;
  const int seq_;
  const int head_;
  const int lane_;
  const int warp_;
  const int first_slice_;  // of kDeltaSlice columns, of the thread block
  const SeqTokens tokens_;
  const int first_;
  const int num_chunks_;
  Tiles<kStateTiles> state_;
};

// Grid: (value heads x parts, sequences).
template <typename T, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp) scan_kernel(const DeltaArgs<T> args) {
  extern __shared__ float4 dynamic[];
  trigger_dependent_launch();
  wait_for_previous_kernel();
  Scan<T, kWarps>(args, *reinterpret_cast<Shared<T, kWarps>*>(dynamic)).run();
}

template <typename T, int kWarps>
void launch_scan(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                 const DeltaWorkspace& workspace) {
  constexpr int kParts = Scan<T, kWarps>::kParts;
  LaunchShape shape =
      context.shape(int64_t{net.shape.num_v_heads} * kParts, kWarps * kWarp, seqs.count);
  shape.shared_bytes = sizeof(Shared<T, kWarps>);
  QUIRE_LAUNCH(*context.stream, (scan_kernel<T, kWarps>), shape,
               delta_args<T>(net, seqs, workspace));
}

// Few heads are divided, so that there is a thread block for every SM.
template <typename T>
void launch_scan_of(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                    const DeltaWorkspace& workspace) {
  const int num_heads = net.shape.num_v_heads * seqs.count;
  const int num_sms = context.stream->limits().num_sms;
  if (num_heads * 4 <= num_sms) return launch_scan<T, 2>(context, net, seqs, workspace);
  if (num_heads * 2 <= num_sms) return launch_scan<T, 4>(context, net, seqs, workspace);
  launch_scan<T, 8>(context, net, seqs, workspace);
}

}  // namespace

void run_delta_scan(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                    const DeltaWorkspace& workspace) {
  if (net.out.dtype == DType::kF16) {
    launch_scan_of<__half>(context, net, seqs, workspace);
  } else {
    launch_scan_of<__nv_bfloat16>(context, net, seqs, workspace);
  }
}

}  // namespace quire::cuda

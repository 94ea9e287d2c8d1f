// The states and outputs of a gated delta net from one chunk to the next (delta_tiles.cuh). A
// thread block has 64 columns of a head's values and of its state, which it keeps transposed in
// registers: in this form, the result of each product is the left operand of the next one. So the
// two thread blocks of a head exchange nothing. The critical path of a chunk is K S, D and S'; the
// outputs are computed beside it, and are written while the next chunk's first product runs.
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/states/delta_tiles.cuh"

namespace quire::cuda {
namespace {

constexpr int kThreads = 128;  // a warpgroup
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kDim = kDeltaHeadDim;
constexpr int kTiles = kDeltaChunk / 8;   // of 8 tokens
constexpr int kSteps = kDeltaChunk / 16;  // of a product over tokens
constexpr int kStateTiles = kDim / 8;
constexpr int kStateSteps = kDim / 16;

// The parts of a chunk that are read from its first to its last product.
template <typename T>
struct alignas(1024) Stage {
  T k[kTilesPerHead * kTileSize];
  T solved[kTileSize];
  T scores[kTileSize];
  T v[kTileSize];
  float factors[3][kDeltaChunk];
};

template <typename T, int kStages, int kQueries>
struct Shared {
  Stage<T> stages[kStages];
  T q[kQueries][kTilesPerHead * kTileSize];
  T out[kTileSize];
  Mbarrier loaded[kStages];
  Mbarrier free[kStages];
  Mbarrier q_loaded[kQueries];
  Mbarrier q_free[kQueries];
};

// Accumulators: tile t has rows (columns of values) lane / 4 and lane / 4 + 8 of the warp, and
// columns 8 t + lane % 4 * 2 and the next.
template <int kCount>
using Sums = float[4 * kCount];

// Writes 16 bytes without a branch.
__device__ __forceinline__ void store_if(bool condition, void* to, const uint4& value) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %0, 0;\n@p st.global.v4.u32 [%1], {%2, %3, %4, %5};\n}" ::
          "r"(static_cast<int>(condition)),
      "l"(to), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
      : "memory");
}

// Packs two tiles as the left operand of a product over their 16 columns.
template <typename T, int kCount>
__device__ __forceinline__ void pack_tiles(const float (&sums)[kCount], int pair,
                                           uint32_t (&out)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = pack<T>(sums[8 * pair + 2 * i], sums[8 * pair + 2 * i + 1]);
}

template <typename T, int kStages, int kQueries>
class Scan {
 public:
  using SharedType = Shared<T, kStages, kQueries>;

  __device__ Scan(const DeltaArgs<T>& args, SharedType& shared)
      : args_(args),
        shared_(shared),
        seq_(args.seqs.first + static_cast<int>(blockIdx.y)),
        head_(static_cast<int>(blockIdx.x) / kTilesPerHead),
        k_head_(args.shape.k_head(head_)),
        part_(static_cast<int>(blockIdx.x) % kTilesPerHead),
        lane_(static_cast<int>(threadIdx.x) % kWarp),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        tokens_(tokens_of(args.states, seq_)),
        first_(args.workspace.spans[seq_].first),
        first_index_(first_chunk(args, seq_)),
        num_chunks_(ceil_div(tokens_.end - first_, kDeltaChunk)) {}

  __device__ void run() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        shared_.loaded[i].init();
        shared_.free[i].init(kWarps);
      }
      for (int i = 0; i < kQueries; ++i) {
        shared_.q_loaded[i].init();
        shared_.q_free[i].init(kWarps);
      }
      publish_barriers();
      for (int chunk = 0; chunk < min(kStages, num_chunks_); ++chunk) load(chunk);
      for (int chunk = 0; chunk < min(kQueries, num_chunks_); ++chunk) load_queries(chunk);
    }
    __syncthreads();
    read_state();
    int32_t page = page_in(0);
    for (int chunk = 0; chunk < num_chunks_; ++chunk) {
      const int32_t next_page = page_in(chunk + 1);
      run_chunk(chunk, page);
      page = next_page;
    }
    if (num_chunks_ > 0) write_out(num_chunks_ - 1);
  }

 private:
  __device__ int token_of(int chunk) const { return first_ + chunk * kDeltaChunk; }
  __device__ int count_of(int chunk) const {
    return min(tokens_.end - token_of(chunk), kDeltaChunk);
  }
  // The lane's first column of the head's values.
  __device__ int column() const { return part_ * kTileWidth + 16 * warp_ + lane_ / 4; }

  // One thread calls the next two functions.
  __device__ void load(int chunk) {
    const int at = chunk % kStages;
    if (chunk >= kStages) shared_.free[at].wait((chunk / kStages - 1) & 1);
    Stage<T>& stage = shared_.stages[at];
    Mbarrier& loaded = shared_.loaded[at];
    loaded.arrive_expecting(sizeof(stage.k) + sizeof(stage.solved) + sizeof(stage.scores) +
                            sizeof(stage.v) + sizeof(stage.factors));
    const int64_t index = first_index_ + chunk;
    const ChunkParts<T> parts = parts_of(args_, index, head_);
    copy_bulk(stage.k, tiles_of(args_, args_.workspace.k, k_head_, index), sizeof(stage.k), loaded);
    copy_bulk(stage.v, tiles_of(args_, args_.workspace.v, head_, index) + part_ * kTileSize,
              sizeof(stage.v), loaded);
    copy_bulk(stage.solved, parts.solved, sizeof(stage.solved), loaded);
    copy_bulk(stage.scores, parts.scores, sizeof(stage.scores), loaded);
    copy_bulk(stage.factors, parts.factors, sizeof(stage.factors), loaded);
  }
  __device__ void load_queries(int chunk) {
    const int at = chunk % kQueries;
    if (chunk >= kQueries) shared_.q_free[at].wait((chunk / kQueries - 1) & 1);
    const int64_t index = first_index_ + chunk;
    shared_.q_loaded[at].arrive_expecting(sizeof(shared_.q[at]));
    copy_bulk(shared_.q[at], tiles_of(args_, args_.workspace.q, k_head_, index),
              sizeof(shared_.q[at]), shared_.q_loaded[at]);
  }
  __device__ void release(Mbarrier& barrier) {
    __syncwarp();
    if (lane_ == 0) barrier.arrive();
  }

  __device__ void read_state() {
    const float* from = nullptr;
    if (tokens_.begin > 0) {
      from = args_.state(tokens_.pages[tokens_.block_of(tokens_.begin - 1)], head_);
    }
#pragma unroll
    for (int i = 0; i < 4 * kStateTiles; ++i) state_[i] = from == nullptr ? 0.0F : from[place(i)];
  }
  // The index in a page of the lane's number i of the state.
  __device__ int place(int i) const {
    return (i / 4 * 8 + lane_ % 4 * 2 + i % 2) * kDim + column() + i / 2 % 2 * 8;
  }

  // The page of the lane's block, or 0 if the chunk does not touch the block. Lane 0 has the block
  // of the chunk's first token.
  __device__ int32_t page_in(int chunk) const {
    if (chunk >= num_chunks_) return 0;
    const int block = tokens_.block_of(max(token_of(chunk), tokens_.begin)) + lane_;
    const bool is_touched = block * tokens_.block_size < min(token_of(chunk + 1), tokens_.kept_end);
    return is_touched && tokens_.writes(block) ? tokens_.pages[block] : 0;
  }

  __device__ void run_chunk(int chunk, int32_t page) {
    Stage<T>& stage = shared_.stages[chunk % kStages];
    const T* const q = shared_.q[chunk % kQueries];
    shared_.loaded[chunk % kStages].wait(chunk / kStages & 1);
    shared_.q_loaded[chunk % kQueries].wait(chunk / kQueries & 1);
    uint32_t s[kStateSteps][4];
#pragma unroll
    for (int step = 0; step < kStateSteps; ++step) pack_tiles<T>(state_, step, s[step]);

    // (K S)^T; meanwhile, the outputs of the previous chunk are written.
    Sums<kTiles> rest;
    multiply_state(s, stage.k, rest);
    write_out(chunk - 1);
    // (Q S)^T
    Sums<kTiles> out;
    multiply_state(s, q, out);
    wgmma::wait<1>();
    wgmma::keep(rest);

    // D^T = (V^T - diag(e^G) (K S)^T) * solved^T
    subtract_from_values(stage, rest);
    Sums<kTiles> deltas;
    uint32_t a[kSteps][4];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) pack_tiles<T>(rest, step, a[step]);
    wgmma::begin();
    multiply_tile(a, stage.solved, deltas, 0);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::keep(deltas);
    wgmma::keep(out);
    release(shared_.q_free[chunk % kQueries]);
    if (threadIdx.x == 0 && chunk + kQueries < num_chunks_) load_queries(chunk + kQueries);
    __syncwarp();
    write_states_within(stage, chunk, deltas, page);

    // S' first, and then the outputs.
    const float decay = stage.factors[1][kDeltaChunk - 1];
#pragma unroll
    for (int i = 0; i < 4 * kStateTiles; ++i) state_[i] *= decay;
    uint32_t scaled[kSteps][4];
    pack_scaled(stage.factors[2], deltas, scaled);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) pack_tiles<T>(deltas, step, a[step]);
    scale_columns(stage.factors[1], out);
    const uint64_t keys =
        wgmma::transposed_descriptor(shared_address(stage.k), kTileSize * sizeof(T));
    wgmma::begin();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      wgmma::multiply_transposed<T>(state_, scaled[step],
                                    wgmma::advanced(keys, step * 2 * (1024 / 16)));
    }
    wgmma::commit();
    multiply_tile(a, stage.scores, out, 1);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::keep(state_);
    wgmma::keep(out);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) pack_tiles<T>(out, step, out_[step]);
    release(shared_.free[chunk % kStages]);
    if (threadIdx.x == 0 && chunk + kStages < num_chunks_) load(chunk + kStages);
    __syncwarp();
    write_state_after(chunk, page);
  }

  // sums = S^T x^T, where x is two tiles. Commits a group.
  __device__ static void multiply_state(const uint32_t (&s)[kStateSteps][4], const T* x,
                                        Sums<kTiles>& sums) {
    const uint64_t tiles = wgmma::operand_descriptor(shared_address(x));
    constexpr int kTileBytes = kTileSize * static_cast<int>(sizeof(T));
    wgmma::begin();
#pragma unroll
    for (int step = 0; step < kStateSteps; ++step) {
      wgmma::multiply<T, kDeltaChunk>(
          sums, s[step],
          wgmma::advanced(tiles, step / kSteps * (kTileBytes / 16) + step % kSteps * 2), step > 0);
    }
    wgmma::commit();
  }
  // sums = a * tile^T, or += if `adds`.
  __device__ static void multiply_tile(const uint32_t (&a)[kSteps][4], const T* tile,
                                       Sums<kTiles>& sums, int adds) {
    const uint64_t base = wgmma::operand_descriptor(shared_address(tile));
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      wgmma::multiply<T, kDeltaChunk>(sums, a[step], wgmma::advanced(base, step * 2),
                                      adds != 0 || step > 0);
    }
  }

  __device__ float2 factor_of(const float* factors, int tile) const {
    return *reinterpret_cast<const float2*>(factors + 8 * tile + lane_ % 4 * 2);
  }
  // sums = V^T - diag(e^G) sums
  __device__ void subtract_from_values(const Stage<T>& stage, Sums<kTiles>& sums) const {
#pragma unroll
    for (int pair = 0; pair < kSteps; ++pair) {
      const uint4 v = load_transposed(shared_address(stage.v + own_place(pair)));
      const uint32_t values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 factor = factor_of(stage.factors[1], 2 * pair + i / 2);
        const float2 value = unpack(values[i]);
        float* const sum = sums + 8 * pair + 2 * i;
        sum[0] = value.x - factor.x * sum[0];
        sum[1] = value.y - factor.y * sum[1];
      }
    }
  }
  // Transposed loads and stores move tiles 2 pair and 2 pair + 1 of 16 tokens, of the warp's 16
  // columns. Returns the index in a tile of the 16 bytes that the lane addresses.
  __device__ int own_place(int pair) const {
    const int token = 16 * pair + lane_ / 16 * 8 + lane_ % 8;
    return tile_at(token, 2 * warp_ + lane_ / 8 % 2);
  }
  __device__ static float2 unpack(uint32_t pair) {
    const auto values = *reinterpret_cast<const Vec<T, 2>*>(&pair);
    return {to_float(values.v[0]), to_float(values.v[1])};
  }
  __device__ void scale_columns(const float* factors, Sums<kTiles>& sums) const {
#pragma unroll
    for (int i = 0; i < 4 * kTiles; ++i) {
      const float2 factor = factor_of(factors, i / 4);
      sums[i] *= i % 2 == 0 ? factor.x : factor.y;
    }
  }
  // Packs the sums times a factor per column.
  __device__ void pack_scaled(const float* factors, const Sums<kTiles>& sums,
                              uint32_t (&out)[kSteps][4]) const {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const float2 factor = factor_of(factors, i / 2);
      out[i / 4][i % 4] = pack<T>(sums[2 * i] * factor.x, sums[2 * i + 1] * factor.y);
    }
  }

  // Writes a warp's 16 columns of a chunk's outputs; chunk -1 has none. It has no branches, because
  // with branches the compiler would wait for the product that runs meanwhile.
  __device__ void write_out(int chunk) {
#pragma unroll
    for (int pair = 0; pair < kSteps; ++pair) {
      store_matrices<true>(shared_address(shared_.out + own_place(pair)), out_[pair]);
    }
    __syncwarp();
    const int first = max(first_, tokens_.begin);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = 16 * i + lane_ / 2;
      const int position = token_of(chunk) + token;
      const int unit = 2 * warp_ + lane_ % 2;
      T* const to = args_.out + tokens_.row_of(position) * args_.shape.width() +
                    int64_t{head_} * kDim + part_ * kTileWidth + unit * kTileVec;
      store_if(position >= first && position < tokens_.end, to,
               load_shared(shared_address(shared_.out + tile_at(token, unit))));
    }
    __syncwarp();
  }

  // Calls body(the head's state in a page, the number of the chunk's tokens that it contains).
  template <typename Body>
  __device__ void for_each_page(int chunk, int32_t page, const Body& body) const {
    uint32_t left = __ballot_sync(0xFFFFFFFFU, page != 0);
    const int first_block = tokens_.block_of(max(token_of(chunk), tokens_.begin));
    for (; left != 0; left &= left - 1) {
      const int lane = __ffs(static_cast<int>(left)) - 1;
      const int32_t id = __shfl_sync(0xFFFFFFFFU, page, lane);
      const int end = tokens_.end_in(first_block + lane) - token_of(chunk);
      if (end > 0 && end <= kDeltaChunk) body(args_.state(id, head_), end);
    }
  }

  // The states after blocks that end within the chunk. Their deltas do not depend on later tokens.
  __device__ void write_states_within(const Stage<T>& stage, int chunk, const Sums<kTiles>& deltas,
                                      int32_t page) const {
    for_each_page(chunk, page, [&](float* to, int end) {
      if (end == count_of(chunk)) return;
      const float last = stage.factors[0][end - 1];
      uint32_t a[kSteps][4];
#pragma unroll
      for (int i = 0; i < 2 * kTiles; ++i) {
        const int token = i / 2 * 8 + lane_ % 4 * 2;
        const float2 g = factor_of(stage.factors[0], i / 2);
        const float x = token < end ? __expf(last - g.x) : 0.0F;
        const float y = token + 1 < end ? __expf(last - g.y) : 0.0F;
        a[i / 4][i % 4] = pack<T>(deltas[2 * i] * x, deltas[2 * i + 1] * y);
      }
      const float decay = __expf(last);
#pragma unroll
      for (int pair = 0; pair < kStateTiles / 2; ++pair) {
        float sums[2][4] = {};
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          const int token = 16 * step + lane_ % 16;
          const T* const tile = stage.k + pair / 4 * kTileSize;
          const uint4 k =
              load_transposed(shared_address(tile + tile_at(token, pair % 4 * 2 + lane_ / 16)));
          mma<T>(sums[0], a[step], k.x, k.y);
          mma<T>(sums[1], a[step], k.z, k.w);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          to[place(8 * pair + i)] = fmaf(decay, state_[8 * pair + i], sums[i / 4][i % 4]);
        }
      }
    });
  }

  // The states after blocks that end with the chunk or the step.
  __device__ void write_state_after(int chunk, int32_t page) const {
    for_each_page(chunk, page, [&](float* to, int end) {
      if (end != count_of(chunk)) return;
#pragma unroll
      for (int i = 0; i < 4 * kStateTiles; ++i) to[place(i)] = state_[i];
    });
  }

  const DeltaArgs<T>& args_;
  SharedType& shared_;
  const int seq_;
  const int head_;
  const int k_head_;
  const int part_;  // the tile of the head's columns
  const int lane_;
  const int warp_;
  const SeqTokens tokens_;
  const int first_;
  const int first_index_;  // of the workspace's chunks
  const int num_chunks_;
  Sums<kStateTiles> state_;
  uint32_t out_[kSteps][4] = {};  // the outputs of the last chunk, packed
};

// Grid: (value heads x tiles, sequences).
template <typename T, int kStages, int kQueries>
__global__ void __launch_bounds__(kThreads) scan_kernel(const DeltaArgs<T> args) {
  extern __shared__ __align__(1024) std::byte dynamic[];
  trigger_dependent_launch();
  wait_for_previous_kernel();
  using Kernel = Scan<T, kStages, kQueries>;
  Kernel(args, *reinterpret_cast<typename Kernel::SharedType*>(dynamic)).run();
}

template <typename T, int kStages, int kQueries>
void launch_scan(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                 const DeltaWorkspace& by_chunk) {
  LaunchShape shape =
      context.shape(int64_t{net.shape.num_v_heads} * kTilesPerHead, kThreads, seqs.count);
  shape.shared_bytes = sizeof(Shared<T, kStages, kQueries>);
  QUIRE_LAUNCH(*context.stream, (scan_kernel<T, kStages, kQueries>), shape,
               delta_args<T>(net, seqs, by_chunk));
}

// Two thread blocks share an SM, and hide each other's latencies. If there are not enough of them,
// each copies further ahead instead.
template <typename T>
void launch_scan_of(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                    const DeltaWorkspace& by_chunk) {
  const int num_blocks = net.shape.num_v_heads * kTilesPerHead * seqs.count;
  if (num_blocks <= context.stream->limits().num_sms) {
    return launch_scan<T, 3, 2>(context, net, seqs, by_chunk);
  }
  launch_scan<T, 2, 1>(context, net, seqs, by_chunk);
}

}  // namespace

void run_delta_scan(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                    const DeltaWorkspace& by_chunk) {
  with_half_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    launch_scan_of<T>(context, net, seqs, by_chunk);
  });
}

}  // namespace quire::cuda

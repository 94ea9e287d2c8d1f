// The matrices of all chunks of a gated delta net (delta_tiles.cuh). A warpgroup has a chunk of a
// value head, and each of its warps has 16 rows. The inverse X of I + A has numbers of at most 1.
// It is computed in blocks of 16 x 16: diagonal blocks in F32, and the other blocks from them in
// F16 with sums in F32,
//   X[i, j] = -X[i, i] * (sum over j <= m < i of A[i, m] X[m, j])
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/states/delta_tiles.cuh"

namespace quire::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kBlock = 16;
constexpr int kBlocks = kDeltaChunk / kBlock;    // per chunk; also the number of warps per head
constexpr int kInverseStride = kDeltaChunk + 8;  // so that rows do not share banks

template <typename T, int kHeads>
struct alignas(1024) Shared {
  T q[kTilesPerHead * kTileSize];  // after the products: one tile of P per head
  T k[kTilesPerHead * kTileSize];
  static_assert(kHeads <= kTilesPerHead);
  struct Head {
    __half inverse[kDeltaChunk * kInverseStride];
    float diagonal[kBlocks][kBlock * kBlock];  // of A
    float log_decay[kDeltaChunk];              // added up
    float beta[kDeltaChunk];
  } heads[kHeads];
  Mbarrier loaded;
};

// A warp's rows of A and P, in tiles of 8 columns. A lane has 4 numbers of each tile.
constexpr int kColumnTiles = kDeltaChunk / 8;
struct Rows {
  float a[4 * kColumnTiles];
  float p[4 * kColumnTiles];
};

template <typename T, int kHeads>
class Matrices {
 public:
  using SharedType = Shared<T, kHeads>;

  // `place`: the head's index in the thread block.
  __device__ Matrices(const DeltaArgs<T>& args, SharedType& shared, int index, int v_head,
                      int place)
      : args_(args),
        shared_(shared),
        head_(shared.heads[place]),
        place_(place),
        index_(index),
        v_head_(v_head),
        warp_(static_cast<int>(threadIdx.x) / kWarp % kBlocks),
        lane_(static_cast<int>(threadIdx.x) % kWarp) {}

  __device__ void run() {
    if (warp_ == 0) load_gates();
    shared_.loaded.wait(0);
    Rows rows;
    multiply(rows);
    __syncthreads();  // the gates, and the end of all products
    const ChunkParts<T> parts = parts_of(args_, index_, v_head_);
    apply_gates(rows);
    write_scores(rows, shared_.q + place_ * kTileSize, parts.scores);
    invert_diagonal(rows);
    invert_below(rows);
    write_solved(parts.solved);
    if (warp_ == 0) write_factors(parts.factors);
  }

 private:
  // The row and the column of the lane's number i of a tile.
  __device__ int row_of(int i) const { return kBlock * warp_ + lane_ / 4 + i / 2 * 8; }
  __device__ int column_of(int tile, int i) const { return 8 * tile + lane_ % 4 * 2 + i % 2; }

  __device__ void load_gates() {
    const int64_t row = int64_t{index_} * kDeltaChunk + 2 * lane_;
    const float g[2] = {args_.log_decay(v_head_, row), args_.log_decay(v_head_, row + 1)};
    head_.beta[2 * lane_] = args_.beta(v_head_, row);
    head_.beta[2 * lane_ + 1] = args_.beta(v_head_, row + 1);
    float sum = g[0] + g[1];
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const float other = __shfl_up_sync(0xFFFFFFFFU, sum, distance);
      if (lane_ >= distance) sum += other;
    }
    head_.log_decay[2 * lane_] = sum - g[1];
    head_.log_decay[2 * lane_ + 1] = sum;
  }

  // Computes K K^T and Q K^T.
  __device__ void multiply(Rows& rows) {
    const uint64_t q = wgmma::operand_descriptor(shared_address(shared_.q));
    const uint64_t k = wgmma::operand_descriptor(shared_address(shared_.k));
    constexpr int kTileUnits = kTileSize * static_cast<int>(sizeof(T)) / 16;
    wgmma::begin();
#pragma unroll
    for (int step = 0; step < kDeltaHeadDim / 16; ++step) {
      const int unit = step / kBlocks * kTileUnits + step % kBlocks * 2;
      const uint64_t b = wgmma::advanced(k, unit);
      wgmma::multiply<T, kDeltaChunk>(rows.a, b, b, step > 0);
      wgmma::multiply<T, kDeltaChunk>(rows.p, wgmma::advanced(q, unit), b, step > 0);
    }
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::keep(rows.a);
    wgmma::keep(rows.p);
  }

  __device__ void apply_gates(Rows& rows) const {
    constexpr float kLog2E = 1.4426950408889634F;
    float g[2];
    float beta[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      g[half] = head_.log_decay[row_of(2 * half)] * kLog2E;
      beta[half] = head_.beta[row_of(2 * half)];
    }
#pragma unroll
    for (int tile = 0; tile < kColumnTiles; ++tile) {
      const float2 other = *reinterpret_cast<const float2*>(head_.log_decay + column_of(tile, 0));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = row_of(i);
        const int column = column_of(tile, i);
        // Above the diagonal, the exponential could overflow.
        const float decay =
            column <= row ? fast_exp2(g[i / 2] - kLog2E * (i % 2 == 0 ? other.x : other.y)) : 0.0F;
        rows.p[4 * tile + i] *= decay;
        rows.a[4 * tile + i] *= column < row ? decay * beta[i / 2] : 0.0F;
      }
    }
  }

  // Writes P through a tile in shared memory, so that a lane writes 16 bytes at once.
  __device__ void write_scores(const Rows& rows, T* tile, T* scores) const {
#pragma unroll
    for (int pair = 0; pair < kColumnTiles / 2; ++pair) {
      const float* const p = rows.p + 8 * pair;
      store_matrices<false>(
          shared_address(tile + tile_at(kBlock * warp_ + lane_ % 16, 2 * pair + lane_ / 16)),
          {pack<T>(p[0], p[1]), pack<T>(p[2], p[3]), pack<T>(p[4], p[5]), pack<T>(p[6], p[7])});
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kBlock * kTileWidth / kTileVec / kWarp; ++i) {
      const int at = kBlock * warp_ * kTileWidth + (i * kWarp + lane_) * kTileVec;
      *reinterpret_cast<uint4*>(scores + at) = load_shared(shared_address(tile + at));
    }
  }

  // Inverts the warp's block on the diagonal of I + A, a column per lane.
  __device__ void invert_diagonal(const Rows& rows) {
    float* const a = head_.diagonal[warp_];
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (block != warp_) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        a[(row_of(i % 4) - kBlock * block) * kBlock + i / 4 * 8 + lane_ % 4 * 2 + i % 2] =
            rows.a[8 * block + i];
      }
    }
    __syncwarp();
    if (lane_ < kBlock) {
      float x[kBlock];
#pragma unroll
      for (int i = 0; i < kBlock; ++i) {
        float even = 0;
        float odd = 0;
#pragma unroll
        for (int m = 0; m < i; ++m) {
          (m % 2 == 0 ? even : odd) = fmaf(a[i * kBlock + m], x[m], m % 2 == 0 ? even : odd);
        }
        x[i] = i < lane_ ? 0.0F : i == lane_ ? 1.0F : -(even + odd);
      }
#pragma unroll
      for (int i = 0; i < kBlock; ++i) {
        head_.inverse[(kBlock * warp_ + i) * kInverseStride + kBlock * warp_ + lane_] =
            __float2half_rn(x[i]);
      }
    }
    __syncwarp();
  }

  __device__ const __half* inverse_at(int row, int column) const {
    return head_.inverse + row * kInverseStride + column;
  }

  __device__ void invert_below(const Rows& rows) {
    const uint4 own = load_matrices(
        shared_address(inverse_at(kBlock * warp_ + lane_ % 16, kBlock * warp_ + lane_ / 16 * 8)));
    const uint32_t diagonal[4] = {own.x, own.y, own.z, own.w};
#pragma unroll
    for (int i = 1; i < kBlocks; ++i) {
      __syncthreads();  // the blocks above are complete
      if (warp_ != i) continue;
#pragma unroll
      for (int j = 0; j < kBlocks; ++j) {
        if (j >= i) continue;
        float sums[2][4] = {};
#pragma unroll
        for (int m = 0; m < kBlocks; ++m) {
          if (m < j || m >= i) continue;
          const float* const of_block = rows.a + 8 * m;
          const uint32_t a[4] = {
              pack<__half>(of_block[0], of_block[1]), pack<__half>(of_block[2], of_block[3]),
              pack<__half>(of_block[4], of_block[5]), pack<__half>(of_block[6], of_block[7])};
          const uint4 x = load_transposed(
              shared_address(inverse_at(kBlock * m + lane_ % 16, kBlock * j + lane_ / 16 * 8)));
          mma<__half>(sums[0], a, x.x, x.y);
          mma<__half>(sums[1], a, x.z, x.w);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float x[4] = {};
          mma<__half>(x, diagonal, transpose(pack<__half>(sums[half][0], sums[half][1])),
                      transpose(pack<__half>(sums[half][2], sums[half][3])));
#pragma unroll
          for (int low = 0; low < 2; ++low) {
            auto* const to = const_cast<__half*>(
                inverse_at(row_of(2 * low), kBlock * j + 8 * half + lane_ % 4 * 2));
            *reinterpret_cast<uint32_t*>(to) = pack<__half>(-x[2 * low], -x[2 * low + 1]);
          }
        }
      }
    }
    __syncwarp();
  }

  // A lane writes four times 16 bytes.
  __device__ void write_solved(T* solved) const {
#pragma unroll
    for (int i = 0; i < kBlock * kBlocks * 2 / kWarp; ++i) {
      const int item = i * kWarp + lane_;
      const int row = kBlock * warp_ + item / 8;
      const int unit = item % 8;
      Vec<T, kTileVec> out = {};
      if (unit <= 2 * warp_ + 1) {
        const auto x = load_vec<kTileVec>(inverse_at(row, unit * kTileVec));
#pragma unroll
        for (int c = 0; c < kTileVec; ++c) {
          out.v[c] = from_float<T>(to_float(x.v[c]) * head_.beta[unit * kTileVec + c]);
        }
      }
      store_vec(solved + tile_at(row, unit), out);
    }
  }

  __device__ void write_factors(float* factors) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int token = i * kWarp + lane_;
      const float g = head_.log_decay[token];
      factors[token] = g;
      factors[kDeltaChunk + token] = __expf(g);
      factors[2 * kDeltaChunk + token] = __expf(head_.log_decay[kDeltaChunk - 1] - g);
    }
  }

  const DeltaArgs<T>& args_;
  SharedType& shared_;
  typename SharedType::Head& head_;
  const int place_;
  const int index_;
  const int v_head_;
  const int warp_;  // of the head
  const int lane_;
};

// Grid: (chunks, groups of kHeads value heads with the same key head).
template <typename T, int kHeads>
__global__ void __launch_bounds__(kWarp* kBlocks* kHeads) chunks_kernel(const DeltaArgs<T> args) {
  extern __shared__ __align__(1024) std::byte dynamic[];
  auto& shared = *reinterpret_cast<Shared<T, kHeads>*>(dynamic);
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const auto index = static_cast<int>(blockIdx.x);
  if (args.workspace.counts[index] == 0) return;
  const int blocks_per_key = args.shape.group() / kHeads;
  const int k_head = static_cast<int>(blockIdx.y) / blocks_per_key;
  if (threadIdx.x == 0) {
    shared.loaded.init();
    publish_barriers();
    shared.loaded.arrive_expecting(sizeof(shared.q) + sizeof(shared.k));
    copy_bulk(shared.k, tiles_of(args, args.workspace.k, k_head, index), sizeof(shared.k),
              shared.loaded);
    copy_bulk(shared.q, tiles_of(args, args.workspace.q, k_head, index), sizeof(shared.q),
              shared.loaded);
  }
  __syncthreads();
  const int place = static_cast<int>(threadIdx.x) / (kWarp * kBlocks);
  const int v_head =
      args.shape.v_head(k_head, static_cast<int>(blockIdx.y) % blocks_per_key * kHeads + place);
  Matrices<T, kHeads>(args, shared, index, v_head, place).run();
}

template <typename T, int kHeads>
void launch_chunks(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                   const DeltaWorkspace& by_chunk) {
  LaunchShape shape = context.shape(most_chunks(net.out.shape[0], seqs.count, net.num_drafts),
                                    kWarp * kBlocks * kHeads, net.shape.num_v_heads / kHeads);
  shape.shared_bytes = sizeof(Shared<T, kHeads>);
  QUIRE_LAUNCH(*context.stream, (chunks_kernel<T, kHeads>), shape,
               delta_args<T>(net, seqs, by_chunk));
}

}  // namespace

void run_delta_chunks(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& by_chunk) {
  with_half_type(net.out.dtype, [&]<typename T>(std::type_identity<T>) {
    if (net.shape.group() % 2 == 0) return launch_chunks<T, 2>(context, net, seqs, by_chunk);
    launch_chunks<T, 1>(context, net, seqs, by_chunk);
  });
}

}  // namespace quire::cuda

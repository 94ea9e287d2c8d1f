// The matrices of all chunks of a gated delta net (delta_matrices.cuh).
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/states/delta_matrices.cuh"

namespace quire::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr int kDim = kDeltaHeadDim;
constexpr int kStride = kDim + kDeltaPadding;  // of rows of queries and keys
constexpr int kBlock = 16;                     // rows of a warp, and of a block of the matrices
constexpr int kNumBlocks = kDeltaChunk / kBlock;
constexpr int kFloatStride = kDeltaChunk + 4;
static_assert(kThreads / kWarp == kNumBlocks);

template <typename T>
struct alignas(16) Shared {
  T q[kDeltaChunk * kStride];
  T k[kDeltaChunk * kStride];
  float a[kDeltaChunk * kFloatStride];
  float inverse[kDeltaChunk * kFloatStride];
  float product[kNumBlocks - 1][kBlock * kBlock];
  float log_decay[kDeltaChunk];  // added up
  float beta[kDeltaChunk];
};

// Copies the rows of a chunk. Rows after its tokens are zero.
template <typename T>
__device__ void load_rows(const T* from, int count, T* to) {
  constexpr int kVec = 16 / sizeof(T);
  constexpr int kVecs = kDim / kVec;
  for (int i = threadIdx.x; i < kDeltaChunk * kVecs; i += kThreads) {
    const int row = i / kVecs;
    const int column = i % kVecs * kVec;
    uint4 value = {};
    if (row < count) value = *reinterpret_cast<const uint4*>(from + row * kStride + column);
    *reinterpret_cast<uint4*>(to + row * kStride + column) = value;
  }
}

// The gates of a chunk, by one warp: G and beta.
template <typename T>
__device__ void load_gates(const DeltaArgs<T>& args, int v_head, int64_t row, int count,
                           Shared<T>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float g[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int token = 2 * lane + i;
    g[i] = token < count ? args.log_decay(v_head, row + token) : 0.0F;
    shared.beta[token] = token < count ? args.beta(v_head, row + token) : 0.0F;
  }
  float sum = g[0] + g[1];
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const float other = __shfl_up_sync(0xFFFFFFFFU, sum, distance);
    if (lane >= distance) sum += other;
  }
  shared.log_decay[2 * lane] = sum - g[1];
  shared.log_decay[2 * lane + 1] = sum;
}

// The products of a warp's 16 rows with the rows of tiles of 8 tokens, up to the warp's own.
struct Products {
  float kk[kDeltaChunk / 8][4] = {};
  float qk[kDeltaChunk / 8][4] = {};
};

template <typename T>
__device__ void multiply(const Shared<T>& shared, int warp, int lane, Products& products) {
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    const int column = 16 * step;
    const int at = (kBlock * warp + lane % 16) * kStride + column + lane / 16 * 8;
    const uint4 q = load_matrices(shared_address(shared.q + at));
    const uint4 k = load_matrices(shared_address(shared.k + at));
    const uint32_t q_rows[4] = {q.x, q.y, q.z, q.w};
    const uint32_t k_rows[4] = {k.x, k.y, k.z, k.w};
#pragma unroll
    for (int block = 0; block < kNumBlocks; ++block) {
      if (block > warp) continue;
      const int row = kBlock * block + lane / 16 * 8 + lane % 8;
      const uint4 b =
          load_matrices(shared_address(shared.k + row * kStride + column + lane / 8 % 2 * 8));
      mma<T>(products.kk[2 * block], k_rows, b.x, b.y);
      mma<T>(products.kk[2 * block + 1], k_rows, b.z, b.w);
      mma<T>(products.qk[2 * block], q_rows, b.x, b.y);
      mma<T>(products.qk[2 * block + 1], q_rows, b.z, b.w);
    }
  }
}

// Writes A to shared memory, and P to the workspace.
template <typename T>
__device__ void write_matrices(const Products& products, int warp, int lane, Shared<T>& shared,
                               T* scores) {
#pragma unroll
  for (int tile = 0; tile < kDeltaChunk / 8; ++tile) {
    if (tile > 2 * warp + 1) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = kBlock * warp + 8 * half + lane / 4;
      const int j = 8 * tile + lane % 4 * 2;
      float p[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        // Above the diagonal, the exponential could overflow.
        const float decay =
            j + c <= i ? __expf(shared.log_decay[i] - shared.log_decay[j + c]) : 0.0F;
        p[c] = decay * products.qk[tile][2 * half + c];
        shared.a[i * kFloatStride + j + c] =
            j + c < i ? shared.beta[i] * decay * products.kk[tile][2 * half + c] : 0.0F;
      }
      *reinterpret_cast<uint32_t*>(scores + i * kDeltaChunkStride + j) = pack<T>(p[0], p[1]);
    }
  }
}

// Inverts the warp's block on the diagonal of I + A, a column per lane.
template <typename T>
__device__ void invert_block(Shared<T>& shared, int warp, int lane) {
  if (lane >= kBlock) return;
  const float* const a = shared.a + kBlock * warp * (kFloatStride + 1);
  float x[kBlock];
#pragma unroll
  for (int i = 0; i < kBlock; ++i) {
    float sum = 0;
#pragma unroll
    for (int m = 0; m < i; ++m) sum = fmaf(a[i * kFloatStride + m], x[m], sum);
    x[i] = i < lane ? 0.0F : i == lane ? 1.0F : -sum;
  }
  float* const inverse = shared.inverse + kBlock * warp * (kFloatStride + 1);
#pragma unroll
  for (int i = 0; i < kBlock; ++i) inverse[i * kFloatStride + lane] = x[i];
}

// out[4] += row `row` of a 16 x 16 matrix times four columns of another, whose first is `b`.
__device__ void add_product(const float* row, const float* b, int b_stride, float (&out)[4]) {
#pragma unroll
  for (int m = 0; m < kBlock; ++m) {
    const float4 value = *reinterpret_cast<const float4*>(b + m * b_stride);
    out[0] = fmaf(row[m], value.x, out[0]);
    out[1] = fmaf(row[m], value.y, out[1]);
    out[2] = fmaf(row[m], value.z, out[2]);
    out[3] = fmaf(row[m], value.w, out[3]);
  }
}

// The blocks of the inverse below the diagonal, by their distance from it:
//   X[i, j] = -X[i, i] * (sum over j <= m < i of A[i, m] X[m, j])
template <typename T>
__device__ void invert_below(Shared<T>& shared) {
  constexpr int kItems = kBlock * kBlock / 4;
  for (int distance = 1; distance < kNumBlocks; ++distance) {
    const int num_items = (kNumBlocks - distance) * kItems;
    for (int item = threadIdx.x; item < num_items; item += kThreads) {
      const int j = item / kItems;
      const int i = j + distance;
      const int row = item % kItems / 4;
      const int column = item % 4 * 4;
      float sum[4] = {};
      for (int m = j; m < i; ++m) {
        add_product(shared.a + (kBlock * i + row) * kFloatStride + kBlock * m,
                    shared.inverse + kBlock * m * kFloatStride + kBlock * j + column, kFloatStride,
                    sum);
      }
#pragma unroll
      for (int c = 0; c < 4; ++c) shared.product[j][row * kBlock + column + c] = sum[c];
    }
    __syncthreads();
    for (int item = threadIdx.x; item < num_items; item += kThreads) {
      const int j = item / kItems;
      const int i = j + distance;
      const int row = item % kItems / 4;
      const int column = item % 4 * 4;
      float sum[4] = {};
      add_product(shared.inverse + (kBlock * i + row) * kFloatStride + kBlock * i,
                  shared.product[j] + column, kBlock, sum);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        shared.inverse[(kBlock * i + row) * kFloatStride + kBlock * j + column + c] = -sum[c];
      }
    }
    __syncthreads();
  }
}

template <typename T>
__device__ void write_solved(const Shared<T>& shared, const ChunkMatrices<T>& matrices) {
  for (int item = threadIdx.x; item < kDeltaChunk * kDeltaChunk / 2; item += kThreads) {
    const int i = item / (kDeltaChunk / 2);
    const int j = item % (kDeltaChunk / 2) * 2;
    if (j / kBlock > i / kBlock) continue;
    const float* const x = shared.inverse + i * kFloatStride + j;
    *reinterpret_cast<uint32_t*>(matrices.solved + i * kDeltaChunkStride + j) =
        pack<T>(x[0] * shared.beta[j], x[1] * shared.beta[j + 1]);
  }
  const int token = static_cast<int>(threadIdx.x);
  if (token >= kDeltaChunk) return;
  const float g = shared.log_decay[token];
  matrices.factors[token] = g;
  matrices.factors[kDeltaChunk + token] = __expf(g);
  matrices.factors[2 * kDeltaChunk + token] = __expf(shared.log_decay[kDeltaChunk - 1] - g);
}

// Grid: (chunks, key heads).
template <typename T>
__global__ void __launch_bounds__(kThreads) chunks_kernel(const DeltaArgs<T> args) {
  extern __shared__ float4 dynamic[];
  auto& shared = *reinterpret_cast<Shared<T>*>(dynamic);
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int index = static_cast<int>(blockIdx.x);
  const int k_head = static_cast<int>(blockIdx.y);
  const int seq = last_starting_by(args.seqs.first, args.seqs.count, index,
                                   [&](int i) { return first_chunk(args, i); });
  const SeqTokens tokens = tokens_of(args.states, seq);
  const int first = args.workspace.spans[seq].x + (index - first_chunk(args, seq)) * kDeltaChunk;
  const int count = min(tokens.end - first, kDeltaChunk);
  if (count <= 0) return;
  const int64_t row = args.row_of(seq, tokens, first);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_rows(args.q(k_head, row), count, shared.q);
  load_rows(args.k(k_head, row), count, shared.k);
  __syncthreads();
  Products products;
  multiply(shared, warp, lane, products);
  for (int v_head = k_head * args.group(); v_head < (k_head + 1) * args.group(); ++v_head) {
    const ChunkMatrices<T> matrices = matrices_of(args, index, v_head);
    if (warp == 0) load_gates(args, v_head, row, count, shared);
    __syncthreads();
    write_matrices(products, warp, lane, shared, matrices.scores);
    __syncthreads();
    invert_block(shared, warp, lane);
    __syncthreads();
    invert_below(shared);
    write_solved(shared, matrices);
    __syncthreads();
  }
}

}  // namespace

void run_delta_chunks(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& workspace) {
  const auto run = [&]<typename T>(std::type_identity<T>) {
    const int64_t num_rows = net.out.shape[0] + int64_t{seqs.count} * net.num_drafts;
    LaunchShape shape =
        context.shape(num_rows / kDeltaChunk + seqs.count, kThreads, net.shape.num_k_heads);
    shape.shared_bytes = sizeof(Shared<T>);
    QUIRE_LAUNCH(*context.stream, chunks_kernel<T>, shape, delta_args<T>(net, seqs, workspace));
  };
  if (net.out.dtype == DType::kF16) {
    run(std::type_identity<__half>());
  } else {
    run(std::type_identity<__nv_bfloat16>());
  }
}

}  // namespace quire::cuda

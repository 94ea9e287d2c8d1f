// Decode of 17 to 64 packed rows per request and KV head on Hopper: the tokens of drafts that a
// step verifies. One thread block of one warpgroup per (split, KV head, request). It reads each
// position once, in steps of 64, and multiplies all rows with them by wgmma: S = Q K^T with Q in
// registers, and O += P V with the weights P in registers. A warp computes 16 rows even if it has
// fewer, because memory bandwidth is the limit.
//
// tile_kernel.cu serves other GPUs, FP8 caches, other head dimensions, more rows, and few requests,
// whose many splits its separate merge handles better. There, each of four warps reads all keys and
// values from shared memory, and a thread block copies one tile ahead: with 40 rows of 128 columns
// and 128 requests it takes 2.0 times as long on an H200.
#include "cuda/attention/native/decode.cuh"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/merge.cuh"
#include "cuda/attention/native/parts.cuh"
#include "cuda/attention/native/tile.cuh"
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"

namespace quire::cuda::native {
namespace {

constexpr int kThreads = 128;
constexpr int kDim = 128;
constexpr int kStages = 3;
constexpr int kStepTokens = 64;
constexpr int kStepUnits = kStepTokens / kUnitTokens;
constexpr int kRowPieces = kDim / 8;
// A stage has the keys and the values of a step, each as two tiles of 64 columns in the layout of
// operand_descriptor().
constexpr int kTileBytes = kStepTokens * 64 * 2;
constexpr int kStageBytes = 4 * kTileBytes;
constexpr int kSharedBytes = kStages * kStageBytes;

// A thread's share of the copies of one head's keys or values: one piece of every eighth row.
class StepCopies {
 public:
  __device__ explicit StepCopies(const PagedRows& rows)
      : row_(static_cast<int>(threadIdx.x) / kRowPieces),
        base_(rows.base + row_ * rows.token_stride + piece() * 16),
        row_step_(8 * rows.token_stride),
        target_(static_cast<uint32_t>(piece() / 8 * kTileBytes) + swizzled<8>(row_, piece() % 8)),
        in_row_(piece() < rows.row_pieces) {}

  // Starts the copies of a step's unit. Positions outside `span` become zeros without being read:
  // NaN times a weight of zero is NaN.
  __device__ void start(uint32_t tiles, int unit, int64_t offset, int position, Span span) const {
    const uint32_t target = tiles + target_ + static_cast<uint32_t>(unit * kUnitTokens * 128);
    const int first = position + row_;
    const char* source = base_ + offset;
    copy_async(target, source, in_row_ && first >= span.first && first < span.end);
    copy_async(target + 1024, source + row_step_,
               in_row_ && first + 8 >= span.first && first + 8 < span.end);
  }

 private:
  __device__ static int piece() { return static_cast<int>(threadIdx.x) % kRowPieces; }

  int row_;
  const char* base_;
  int64_t row_step_;
  uint32_t target_;
  bool in_row_;
};

// A warp's 16 rows. A thread has rows lane.row (index 0) and lane.row + 8 (index 1). Elements 4 * j
// + 2 * index and the next one are columns 8 * j + 2 * lane.quad and the next one of the row.
template <typename T>
struct WarpgroupRows {
  uint32_t q[kDim / 16][4];
  float o[kDim / 2] = {};
  float max[2] = {-INFINITY, -INFINITY};  // log2 units
  float sum[2] = {0.0F, 0.0F};            // this thread's share until sum_up()
  Span visible[2];
  Span visible_to_all;

  __device__ WarpgroupRows(const Params& p, const Request& req, int kv_head, int num_rows,
                           int first_row, Lane lane) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first_row + lane.row + r * 8;
      // Rows beyond the last use its positions; their results are not read.
      visible[r] = visible_span(p, req, token_of_row(p, req, min(row, num_rows - 1)));
      const int token = token_of_row(p, req, row);
      const int64_t at = int64_t{req.first_token + token} * p.num_heads + kv_head * p.group + row -
                         token * p.group;
      const T* from = static_cast<const T*>(p.q) + at * p.head_dim;
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
        const int d = i * 8 + lane.quad * 2;
        q[i / 2][i % 2 * 2 + r] =
            row < num_rows && d < p.head_dim ? *reinterpret_cast<const uint32_t*>(from + d) : 0U;
      }
    }
    visible_to_all = {visible_span(p, req, req.q_len - 1).first, visible_span(p, req, 0).end};
  }

  // Adds the positions of a stage, which begin at `first`. Returns while the products with the
  // values run; the caller must wait for them.
  __device__ void attend(const LogitScale& scale, uint32_t stage, int first, Lane lane) {
    float s[kStepTokens / 2] = {};
    wgmma::keep(s);
    wgmma::begin();
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const uint64_t keys =
          wgmma::operand_descriptor(stage + static_cast<uint32_t>(step / 4 * kTileBytes));
      wgmma::multiply<T, kStepTokens>(s, q[step], keys + step % 4 * 2, step > 0 ? 1 : 0);
    }
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::keep(s);
    scale_and_mask(s, scale, first, visible, visible_to_all, lane);
    weigh(s);
    const uint64_t values = wgmma::transposed_descriptor(stage + 2 * kTileBytes, kTileBytes);
    uint32_t weights[kStepUnits][4];
#pragma unroll
    for (int u = 0; u < kStepUnits; ++u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        weights[u][i] = pack<T>(s[u * 8 + i * 2], s[u * 8 + i * 2 + 1]);
      }
    }
    wgmma::keep(o);
    wgmma::begin();
#pragma unroll
    for (int u = 0; u < kStepUnits; ++u) {
      wgmma::multiply_transposed<T>(o, weights[u],
                                    wgmma::advanced(values, u * kUnitTokens * 128 / 16));
    }
    wgmma::commit();
  }

  // Waits for the products with the values.
  __device__ void finish_step() {
    wgmma::wait<0>();
    wgmma::keep(o);
  }

  // Reduces `sum` over the four threads that share a row; each gets the row's sum.
  __device__ void sum_up() {
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] = sum_of_row<1, 4>(sum[r]);
  }

 private:
  // Converts logits to weights.
  __device__ void weigh(float (&s)[kStepTokens / 2]) {
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < kStepTokens / 2; ++i) top[i / 2 % 2] = fmaxf(top[i / 2 % 2], s[i]);
    const bool rises = top[0] > max[0] + kMaxLag || top[1] > max[1] + kMaxLag;
    if (__any_sync(0xFFFFFFFFU, rises)) raise_max(top);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float origin = max[r] == -INFINITY ? 0.0F : max[r];  // no positions: all weights are 0
#pragma unroll
      for (int i = 0; i < kStepTokens / 2; ++i) {
        if (i / 2 % 2 != r) continue;
        s[i] = fast_exp2(s[i] - origin);
        sum[r] += s[i];
      }
    }
  }

  // Sets each row's maximum to its largest logit so far, and rescales the accumulators.
  __device__ void raise_max(const float (&top)[2]) {
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float of_row = fmaxf(max[r], top[r]);
      of_row = max_of_row<1, 4>(of_row);
      shrink[r] = of_row == -INFINITY ? 1.0F : fast_exp2(max[r] - of_row);
      max[r] = of_row;
      sum[r] *= shrink[r];
    }
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) o[i] *= shrink[i / 2 % 2];
  }
};

// Writes a thread's part of the rows: the output, or the partial results of a part.
template <typename T>
__device__ inline void write_rows(const Params& p, const Request& req, const WarpgroupRows<T>& rows,
                                  int first_row, int num_rows, int kv_head,
                                  const PartialRows& partials, int part, bool is_partial,
                                  Lane lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + lane.row + r * 8;
    if (row >= num_rows) continue;
    const int token = token_of_row(p, req, row);
    const int head = kv_head * p.group + row - token * p.group;
    const int64_t partial_idx = partials.of(part, row);
    const float factor = finish_row_or_store_partial(p, head, partial_idx, rows.max[r], rows.sum[r],
                                                     is_partial, lane.quad == 0);
    const int64_t at = (int64_t{req.first_token + token} * p.num_heads + head) * p.head_dim_v;
#pragma unroll
    for (int j = 0; j < kDim / 8; ++j) {
      const int d = j * 8 + lane.quad * 2;
      if (d >= p.head_dim_v) continue;
      const float x = rows.o[4 * j + 2 * r];
      const float y = rows.o[4 * j + 2 * r + 1];
      if (is_partial) {
        *reinterpret_cast<float2*>(p.partial_out + partial_idx * p.head_dim_v + d) = {x, y};
      } else {
        *reinterpret_cast<uint32_t*>(static_cast<T*>(p.out) + at + d) =
            pack<T>(x * factor, y * factor);
      }
    }
  }
}

// Like kRows8, reads lengths, pages and settled keys and values before the first
// wait_for_previous_kernel().
template <typename T>
__device__ __forceinline__ void attend_part(const Params& p, const RequestPart& work,
                                            const Request& req, int settled_len) {
  using C = Config<T, T, kDim>;
  extern __shared__ __align__(1024) unsigned char rows64_shared[];
  const int kv_head = static_cast<int>(blockIdx.y);
  const Lane lane;
  const int num_rows = req.q_len * p.group;
  const Span all = {visible_span(p, req, 0).first, visible_span(p, req, req.q_len - 1).end};
  const Parts<C> parts(all, work.num_parts, false);
  // The first part always continues to the wait, so that the next kernel's wait covers all earlier
  // kernels.
  if (work.part >= parts.count) return;
  const Span span = parts.of(work.part);

  const int first = span.first & ~(kUnitTokens - 1);
  const int num_steps = first < span.end ? (span.end - first + kStepTokens - 1) / kStepTokens : 0;
  const PagedRows keys = PagedRows::keys<C>(p, kv_head);
  const PagedRows values = PagedRows::values<C>(p, kv_head);
  const StepCopies key_copies(keys);
  const StepCopies value_copies(values);
  UnitReader<kStepUnits> units(req.pages, p.page_shift, keys, values, first, kStepTokens, span.end);
  const uint32_t stages = shared_address(rows64_shared);
  const auto stage_of = [&](int step) {
    return stages + static_cast<uint32_t>(step % kStages * kStageBytes);
  };
  const auto start_step = [&](int step) {
    if (step < num_steps) {
#pragma unroll
      for (int u = 0; u < kStepUnits; ++u) {
        const int position = first + step * kStepTokens + u * kUnitTokens;
        const UnitOffsets at = units.offsets(step * kStepUnits + u);
        key_copies.start(stage_of(step), u, at.k, position, span);
        value_copies.start(stage_of(step) + 2 * kTileBytes, u, at.v, position, span);
      }
    }
    commit_copies();
  };
  // The number of steps before the loop whose positions are all settled.
  const int num_settled = settled_len - first - kStepTokens;  // after the end of step 0
  const int num_early = num_settled < 0 ? 0 : min(kStages - 1, num_settled / kStepTokens + 1);
#pragma unroll 1
  for (int step = 0; step < num_early; ++step) start_step(step);
  wait_for_previous_kernel();
#pragma unroll 1
  for (int step = num_early; step < kStages - 1; ++step) start_step(step);

  const LogitScale scale(p);
  const int first_row = static_cast<int>(threadIdx.x) / 32 * 16;
  WarpgroupRows<T> rows(p, req, kv_head, num_rows, first_row, lane);
  for (int step = 0; step < num_steps; ++step) {
    wait_for_copies<kStages - 2>();
    order_bulk_copies();  // wgmma reads shared memory through the same proxy as bulk copies
    rows.finish_step();
    __syncthreads();  // the step has arrived, and the stage of the previous one is free
    start_step(step + kStages - 1);
    rows.attend(scale, stage_of(step), first + step * kStepTokens, lane);
  }
  rows.finish_step();
  rows.sum_up();
  const PartialRows partials(p, work.first_cluster, kv_head);
  write_rows(p, req, rows, first_row, num_rows, kv_head, partials, work.part, parts.count > 1,
             lane);
  if (parts.count == 1) return;
  const int64_t merged_idx = int64_t{work.req_idx} * gridDim.y + kv_head;
  merge_if_last<T>(p, req, Share<kDim>(num_rows, 0, 1), kv_head, partials,
                   p.counters + merged_idx * kMaxCluster, parts.count);
}

template <typename T>
__global__ __launch_bounds__(kThreads, 2) void rows64_kernel(const Params p) {
  for_each_part(p, [&](const RequestPart& work, const Request& req, int settled_len) {
    attend_part<T>(p, work, req, settled_len);
  });
}

}  // namespace

void launch_rows64(CudaStream& stream, const Params& p) {
  const LaunchShape shape = {
      .grid = dim3(static_cast<unsigned>(p.num_splits),
                   static_cast<unsigned>(p.num_heads / p.group), static_cast<unsigned>(p.num_reqs)),
      .block = kThreads,
      .shared_bytes = kSharedBytes,
      .overlap_start = true};
  if (p.q_dtype == DType::kF16) {
    QUIRE_LAUNCH(stream, rows64_kernel<__half>, shape, p);
  } else {
    QUIRE_LAUNCH(stream, rows64_kernel<__nv_bfloat16>, shape, p);
  }
}

}  // namespace quire::cuda::native

// The kernels that run next to the collectives of a model that is divided among GPUs.
#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/op_kernels.h"

namespace quire::cuda {
namespace {

constexpr int64_t kRankBlock = 256;

__global__ void part_rows_kernel(const int32_t* ids, int64_t count, int64_t first_id,
                                 int64_t num_ids, int32_t* rows) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= count) return;
  const int64_t row = ids[t] - first_id;
  rows[t] = row >= 0 && row < num_ids ? static_cast<int32_t>(row) : 0;
}

// One thread block per token.
template <typename T>
__global__ void clear_rows_kernel(const int32_t* ids, int64_t first_id, int64_t num_ids,
                                  int64_t width, T* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t row = ids[blockIdx.x] - first_id;
  if (row >= 0 && row < num_ids) return;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    out[blockIdx.x * width + i] = from_float<T>(0.0F);
  }
}

// Grid: (thread blocks of columns, rows). A thread block may process several rows.
__global__ void join_columns_kernel(const float* parts, int64_t part_size, int64_t part_width,
                                    int64_t num_rows, int64_t width, float* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const int64_t part = column / part_width;
  const int64_t own_width = min(part_width, width - part * part_width);
  const int64_t in_part = column - part * part_width;
  for (int64_t row = blockIdx.y; row < num_rows; row += gridDim.y) {
    out[row * width + column] = parts[part * part_size + row * own_width + in_part];
  }
}

}  // namespace

void run_part_rows(const LaunchContext& context, const int32_t* ids, int64_t count,
                   const Slice& part, int32_t* rows) {
  QUIRE_LAUNCH(*context.stream, part_rows_kernel,
               context.shape(ceil_div(count, kRankBlock), kRankBlock), ids, count, part.first,
               part.count, rows);
}

void run_clear_other_rows(const LaunchContext& context, const int32_t* ids, const Slice& part,
                          const TensorView& out) {
  with_float_type(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    QUIRE_LAUNCH(*context.stream, clear_rows_kernel<T>, context.shape(out.shape[0], kRankBlock),
                 ids, part.first, part.count, out.shape[1], out.as<T>());
  });
}

void run_join_columns(const LaunchContext& context, const float* parts, int64_t part_size,
                      int64_t part_width, const TensorView& out) {
  constexpr int64_t kMaxGridY = 65535;
  const int64_t width = out.shape[1];
  QUIRE_LAUNCH(
      *context.stream, join_columns_kernel,
      context.shape(ceil_div(width, kRankBlock), kRankBlock, std::min(out.shape[0], kMaxGridY)),
      parts, part_size, part_width, out.shape[0], width, out.as<float>());
}

}  // namespace quire::cuda

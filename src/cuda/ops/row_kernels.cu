// Each kernel makes one pass over memory and computes in F32. Rows that are multiples of 16 bytes
// are read and written as 16-byte vectors, all others element by element, by the same kernels.
#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/activation.cuh"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/weight_code.cuh"

namespace quire::cuda {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kMaxBlock = 1024;
constexpr int64_t kFlatBlock = 256;

// Threads of a thread block: whole warps, one item per thread up to kMaxBlock.
int64_t block_for(int64_t num_items) {
  return std::clamp(round_up(num_items, kWarp), kWarp, kMaxBlock);
}

// kRows rows per thread block. Word: the widest type of which rows are whole multiples.
template <typename Word, int kRows>
__global__ void gather_rows_kernel(const Word* x, const int32_t* rows, int64_t num_rows,
                                   int64_t row_words, Word* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t first = int64_t{blockIdx.x} * kRows;
  const Word* from[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    from[r] = x + rows[min(first + r, num_rows - 1)] * row_words;
  }
  for (int64_t i = threadIdx.x; i < row_words; i += blockDim.x) {
    Word words[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) words[r] = from[r][i];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r < num_rows) out[(first + r) * row_words + i] = words[r];
    }
  }
}

// One thread block per row of x; `to` is the first row's first column. Word: as above, for the rows
// of both.
template <typename Word>
__global__ void write_columns_kernel(const Word* x, int64_t row_words, int64_t out_words,
                                     Word* to) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  x += blockIdx.x * row_words;
  to += blockIdx.x * out_words;
  for (int64_t i = threadIdx.x; i < row_words; i += blockDim.x) to[i] = x[i];
}

// Scales per row are blocks as wide as a row.
template <typename From, typename T>
__global__ void gather_scaled_rows_kernel(const From* x, BlockScales x_scales,
                                          int64_t scale_columns, const int32_t* rows, float scale,
                                          int64_t width, T* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t row = rows[blockIdx.x];
  const From* from = x + row * width;
  T* to = out + blockIdx.x * width;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    float factor = scale;
    if (x_scales.values != nullptr) factor *= x_scales.of_row(row)[i / scale_columns];
    to[i] = from_float<T>(factor * to_float(from[i]));
  }
}

// Grid: (thread blocks of columns, rows).
__global__ void gather_columns_kernel(const float* x, int64_t x_width, const int32_t* columns,
                                      int64_t width, float* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < width) out[blockIdx.y * width + i] = x[blockIdx.y * x_width + columns[i]];
}

// One thread block per row. A thread's first vector stays in registers between the sum and the
// scaling; rows of more than 1024 vectors read the rest again.
template <typename T, int kVec, bool kAdd>
__global__ void rms_norm_kernel(T* x, const T* delta, const float* weight, float eps, int64_t width,
                                T* out) {
  trigger_dependent_launch();
  const int64_t first = int64_t{threadIdx.x} * kVec;
  const int64_t stride = int64_t{blockDim.x} * kVec;
  // No kernel writes the weights, so they are read while the previous kernel still runs.
  float first_weights[kVec] = {};
  if (first < width) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) first_weights[j] = weight[first + j];
  }
  wait_for_previous_kernel();
  x += blockIdx.x * width;
  delta += kAdd ? blockIdx.x * width : 0;
  out += blockIdx.x * width;
  Vec<T, kVec> kept;
  float squares = 0;
  for (int64_t i = first; i < width; i += stride) {
    Vec<T, kVec> value = load_vec<kVec>(x + i);
    if constexpr (kAdd) {
      const Vec<T, kVec> add = load_vec<kVec>(delta + i);
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        value.v[j] = from_float<T>(to_float(value.v[j]) + to_float(add.v[j]));
      }
      store_vec(x + i, value);
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) squares += to_float(value.v[j]) * to_float(value.v[j]);
    if (i == first) kept = value;
  }
  const float scale = 1.0F / sqrtf(block_sum(squares) / static_cast<float>(width) + eps);
  for (int64_t i = first; i < width; i += stride) {
    const bool is_first = i == first;
    Vec<T, kVec> value = is_first ? kept : load_vec<kVec>(x + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const float w = is_first ? first_weights[j] : weight[i + j];
      value.v[j] = from_float<T>(to_float(value.v[j]) * scale * w);
    }
    store_vec(out + i, value);
  }
}

// Grid: (rows, thread blocks per row).
template <typename T, int kVec, Activation kActivation>
__global__ void gated_mul_kernel(const T* gate_up, int64_t width, T* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t i = (int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kVec;
  if (i >= width) return;
  const T* row = gate_up + blockIdx.x * 2 * width + i;
  const Vec<T, kVec> gate = load_vec<kVec>(row);
  const Vec<T, kVec> up = load_vec<kVec>(row + width);
  Vec<T, kVec> product;
#pragma unroll
  for (int j = 0; j < kVec; ++j) {
    product.v[j] = from_float<T>(activate<T>(kActivation, to_float(gate.v[j])) * to_float(up.v[j]));
  }
  store_vec(out + blockIdx.x * width + i, product);
}

__global__ void soft_cap_kernel(float cap, int64_t width, float* x) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t i = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (i >= width) return;
  float* at = x + blockIdx.x * width + i;
  *at = cap * tanhf(*at / cap);
}

// One thread block per row. Computes in F64, because positions reach a million and a step has few
// angles.
__global__ void rope_angles_kernel(const float* inv_freq, float factor, const int32_t* positions,
                                   int64_t half, float* cos_sin) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  float* row = cos_sin + blockIdx.x * 2 * half;
  for (int64_t i = threadIdx.x; i < half; i += blockDim.x) {
    double sine = 0;
    double cosine = 0;
    sincos(static_cast<double>(positions[blockIdx.x]) * static_cast<double>(inv_freq[i]), &sine,
           &cosine);
    row[i] = static_cast<float>(cosine) * factor;
    row[half + i] = static_cast<float>(sine) * factor;
  }
}

template <typename T, typename Out>
__global__ void add_bias_kernel(const T* bias, int64_t width, Out* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t i = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (i >= width) return;
  Out* at = out + blockIdx.x * width + i;
  *at = from_float<Out>(to_float(*at) + to_float(bias[i]));
}

// One thread block per row. A thread's first vector stays in registers; the rest of a row of more
// than 1024 vectors is read again, from the L1.
template <typename T, int kVec>
__global__ void quantize_rows_kernel(const T* x, int64_t width, __nv_fp8_e4m3* out, float* scales) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t first = int64_t{threadIdx.x} * kVec;
  const int64_t stride = int64_t{blockDim.x} * kVec;
  x += blockIdx.x * width;
  out += blockIdx.x * width;
  Vec<T, kVec> kept;
  float largest = 0;
  for (int64_t i = first; i < width; i += stride) {
    const Vec<T, kVec> value = load_vec<kVec>(x + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) largest = fmaxf(largest, fabsf(to_float(value.v[j])));
    if (i == first) kept = value;
  }
  const float scale = e4m3_scale(block_max(largest));
  const float inverse = 1.0F / scale;
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
  for (int64_t i = first; i < width; i += stride) {
    const Vec<T, kVec> value = i == first ? kept : load_vec<kVec>(x + i);
    Vec<__nv_fp8_e4m3, kVec> quantized;
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      quantized.v[j] = from_float<__nv_fp8_e4m3>(to_float(value.v[j]) * inverse);
    }
    store_vec(out + i, quantized);
  }
}

// One thread block per row, of which it quantizes `count` columns from `first_column`. It does not
// let the next kernel start early, as the kernels that write weights below.
template <typename T, int kVec>
__global__ void quantize_weights_kernel(const T* x, int64_t width, int64_t first_column,
                                        int64_t count, __nv_fp8_e4m3* out, float* scales) {
  wait_for_previous_kernel();
  const int64_t first = int64_t{threadIdx.x} * kVec;
  const int64_t stride = int64_t{blockDim.x} * kVec;
  x += blockIdx.x * width;
  out += blockIdx.x * count;
  float largest = 0;
  for (int64_t i = first; i < width; i += stride) {
    const Vec<T, kVec> value = load_vec<kVec>(x + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) largest = fmaxf(largest, fabsf(to_float(value.v[j])));
  }
  const float scale = e4m3_scale(block_max(largest));
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
  for (int64_t i = first; i < count; i += stride) {
    const Vec<T, kVec> value = load_vec<kVec>(x + first_column + i);
    Vec<__nv_fp8_e4m3, kVec> quantized;
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      quantized.v[j] = from_float<__nv_fp8_e4m3>(__fdiv_rn(to_float(value.v[j]), scale));
    }
    store_vec(out + i, quantized);
  }
}

// One thread block per row. As many lanes as kScaleColumns has vectors share a scale.
template <typename T>
__global__ void quantize_blocks_kernel(const T* x, int64_t width, __nv_fp8_e4m3* out, float* scales,
                                       int64_t scales_width) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  constexpr int kVec = kWidestVec<T>;
  constexpr int kGroup = static_cast<int>(kScaleColumns) / kVec;
  x += blockIdx.x * width;
  out += blockIdx.x * width;
  // All lanes of a warp run equally often, because they exchange their largest magnitudes.
  for (int64_t start = 0; start < width; start += int64_t{blockDim.x} * kVec) {
    const int64_t i = start + int64_t{threadIdx.x} * kVec;
    Vec<T, kVec> value;
    float largest = 0;
    if (i < width) {
      value = load_vec<kVec>(x + i);
#pragma unroll
      for (int j = 0; j < kVec; ++j) largest = fmaxf(largest, fabsf(to_float(value.v[j])));
    }
#pragma unroll
    for (int distance = kGroup / 2; distance > 0; distance /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, distance));
    }
    if (i >= width) continue;
    const float scale = e4m3_scale(largest);
    const float inverse = 1.0F / scale;
    if (threadIdx.x % kGroup == 0) scales[i / kScaleColumns * scales_width + blockIdx.x] = scale;
    Vec<__nv_fp8_e4m3, kVec> quantized;
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      quantized.v[j] = from_float<__nv_fp8_e4m3>(to_float(value.v[j]) * inverse);
    }
    store_vec(out + i, quantized);
  }
}

__global__ void empty_kernel() {
  trigger_dependent_launch();
  wait_for_previous_kernel();
}

// Kernels that write weights do not let the next kernel start early, because a Linear's kernel
// reads its weights before it waits.
template <typename From, typename To>
__global__ void convert_kernel(const From* x, int64_t count, To* out) {
  wait_for_previous_kernel();
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = from_float<To>(to_float(x[i]));
  }
}

// Grid: (rows, thread blocks per row).
template <typename From, typename To>
__global__ void fill_repeated_kernel(const From* pool, int64_t pool_size, int64_t first,
                                     int64_t row_stride, int64_t width, To* out) {
  wait_for_previous_kernel();
  const int64_t row_start = (first + blockIdx.x * row_stride) % pool_size;
  for (int64_t j = int64_t{blockIdx.y} * blockDim.x + threadIdx.x; j < width;
       j += int64_t{gridDim.y} * blockDim.x) {
    out[blockIdx.x * width + j] = from_float<To>(to_float(pool[(row_start + j) % pool_size]));
  }
}

// Thread blocks per row that give each of its items a thread.
LaunchShape row_shape(const LaunchContext& context, int64_t num_rows, int64_t row_items) {
  return context.shape(num_rows, kFlatBlock, ceil_div(row_items, kFlatBlock));
}

template <typename T>
bool takes_vectors(int64_t width, std::initializer_list<const void*> addresses) {
  return width % kWidestVec<T> == 0 && is_aligned(addresses, 16);
}

// `width` elements in words.
template <typename Word>
int64_t words_of(int64_t width, DType dtype) {
  return width * static_cast<int64_t>(dtype_bytes(dtype)) / static_cast<int64_t>(sizeof(Word));
}

template <typename Word>
void write_columns(const LaunchContext& context, const TensorView& x, const TensorView& out,
                   int64_t first_column) {
  const int64_t row_words = words_of<Word>(x.shape[1], x.dtype);
  QUIRE_LAUNCH(*context.stream, write_columns_kernel<Word>,
               context.shape(x.shape[0], block_for(row_words)), x.as<const Word>(), row_words,
               words_of<Word>(out.shape[1], out.dtype),
               out.as<Word>() + words_of<Word>(first_column, out.dtype));
}

template <typename Word>
void gather(const LaunchContext& context, const TensorView& x, const int32_t* rows,
            const TensorView& out) {
  const int64_t num_rows = out.shape[0];
  const int64_t row_words = words_of<Word>(out.shape[1], out.dtype);
  const auto launch = [&](auto rows_of_block) {
    constexpr int kRows = decltype(rows_of_block)::value;
    QUIRE_LAUNCH(*context.stream, (gather_rows_kernel<Word, kRows>),
                 context.shape(ceil_div(num_rows, kRows), block_for(row_words)), x.as<const Word>(),
                 rows, num_rows, row_words, out.as<Word>());
  };
  // With many rows, loads of several rows at once hide the latency; few rows need all thread
  // blocks.
  constexpr int64_t kManyRows = 4096;
  if (num_rows >= kManyRows) return launch(std::integral_constant<int, 4>{});
  launch(std::integral_constant<int, 1>{});
}

template <Activation kActivation>
void gated_mul(const LaunchContext& context, const TensorView& gate_up, const TensorView& out) {
  const int64_t width = out.shape[1];
  with_float_type(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_bool(takes_vectors<T>(width, {gate_up.data, out.data}), [&](auto by_vectors) {
      constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
      QUIRE_LAUNCH(*context.stream, (gated_mul_kernel<T, kVec, kActivation>),
                   row_shape(context, out.shape[0], width / kVec), gate_up.as<const T>(), width,
                   out.as<T>());
    });
  });
}

}  // namespace

void run_gather_rows(const LaunchContext& context, const TensorView& x, const int32_t* rows,
                     const TensorView& out) {
  const size_t row_bytes = static_cast<size_t>(out.shape[1]) * dtype_bytes(out.dtype);
  if (row_bytes % sizeof(uint4) == 0 && is_aligned({x.data, out.data}, sizeof(uint4))) {
    return gather<uint4>(context, x, rows, out);
  }
  gather<uint16_t>(context, x, rows, out);
}

void run_write_columns(const LaunchContext& context, const TensorView& x, const TensorView& out,
                       int64_t first_column) {
  const int64_t vec = static_cast<int64_t>(sizeof(uint4) / dtype_bytes(x.dtype));
  const bool whole_vectors =
      x.shape[1] % vec == 0 && out.shape[1] % vec == 0 && first_column % vec == 0;
  if (whole_vectors && is_aligned({x.data, out.data}, sizeof(uint4))) {
    return write_columns<uint4>(context, x, out, first_column);
  }
  write_columns<uint16_t>(context, x, out, first_column);
}

void run_gather_scaled_rows(const LaunchContext& context, const TensorView& x,
                            const TensorView& x_scales, int64_t scale_rows, const int32_t* rows,
                            float scale, const TensorView& out) {
  const int64_t width = out.shape[1];
  const int64_t scale_columns = scale_rows > 0 ? kScaleColumns : width;
  BlockScales scales = block_scales(x_scales.as<const float>(), scale_rows, width);
  if (scale_rows == 0) scales.num_columns = 1;
  with_float_type(out.dtype, [&](auto type) {
    with_bool(x.dtype == DType::kF8E4M3, [&](auto is_fp8) {
      using T = typename decltype(type)::type;
      using From = std::conditional_t<is_fp8.value, __nv_fp8_e4m3, T>;
      QUIRE_LAUNCH(*context.stream, (gather_scaled_rows_kernel<From, T>),
                   context.shape(out.shape[0], block_for(width)), x.as<const From>(), scales,
                   scale_columns, rows, scale, width, out.as<T>());
    });
  });
}

void run_gather_columns(const LaunchContext& context, const TensorView& x, const int32_t* columns,
                        const TensorView& out) {
  const int64_t width = out.shape[1];
  QUIRE_LAUNCH(*context.stream, gather_columns_kernel,
               context.shape(ceil_div(width, kFlatBlock), kFlatBlock, out.shape[0]),
               x.as<const float>(), x.shape[1], columns, width, out.as<float>());
}

void run_rms_norm(const LaunchContext& context, const TensorView& x, const TensorView* delta,
                  const float* weight, float eps, const TensorView& out) {
  const int64_t width = x.shape[1];
  const void* added = delta == nullptr ? nullptr : delta->data;
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const bool vectors = takes_vectors<T>(width, {x.data, added, out.data});
    with_bool(vectors, [&](auto by_vectors) {
      with_bool(delta != nullptr, [&](auto adds) {
        constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
        QUIRE_LAUNCH(*context.stream, (rms_norm_kernel<T, kVec, adds.value>),
                     context.shape(x.shape[0], block_for(width / kVec)), x.as<T>(),
                     static_cast<const T*>(added), weight, eps, width, out.as<T>());
      });
    });
  });
}

void run_gated_mul(const LaunchContext& context, Activation activation, const TensorView& gate_up,
                   const TensorView& out) {
  switch (activation) {
    case Activation::kSilu:
      return gated_mul<Activation::kSilu>(context, gate_up, out);
    case Activation::kGeluTanh:
      return gated_mul<Activation::kGeluTanh>(context, gate_up, out);
  }
}

void run_soft_cap(const LaunchContext& context, float cap, const TensorView& x) {
  QUIRE_LAUNCH(*context.stream, soft_cap_kernel, row_shape(context, x.shape[0], x.shape[1]), cap,
               x.shape[1], x.as<float>());
}

void run_rope_angles(const LaunchContext& context, const float* inv_freq, float attention_factor,
                     const int32_t* positions, const TensorView& cos_sin) {
  const int64_t half = cos_sin.shape[1] / 2;
  QUIRE_LAUNCH(*context.stream, rope_angles_kernel,
               context.shape(cos_sin.shape[0], block_for(half)), inv_freq, attention_factor,
               positions, half, cos_sin.as<float>());
}

void run_add_bias(const LaunchContext& context, const TensorView& bias, const TensorView& out) {
  with_float_type(bias.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_bool(out.dtype == DType::kF32, [&](auto is_f32) {
      using Out = std::conditional_t<is_f32.value, float, T>;
      QUIRE_LAUNCH(*context.stream, (add_bias_kernel<T, Out>),
                   row_shape(context, out.shape[0], out.shape[1]), bias.as<const T>(), out.shape[1],
                   out.as<Out>());
    });
  });
}

void run_quantize_rows(const LaunchContext& context, const TensorView& x, const TensorView& out,
                       const TensorView& scales) {
  const int64_t width = x.shape[1];
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_bool(takes_vectors<T>(width, {x.data, out.data}), [&](auto by_vectors) {
      constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
      QUIRE_LAUNCH(*context.stream, (quantize_rows_kernel<T, kVec>),
                   context.shape(x.shape[0], block_for(width / kVec)), x.as<const T>(), width,
                   out.as<__nv_fp8_e4m3>(), scales.as<float>());
    });
  });
}

void run_quantize_blocks(const LaunchContext& context, const TensorView& x, const TensorView& out,
                         const TensorView& scales) {
  const int64_t width = x.shape[1];
  const auto launch = [&](auto type) {
    using T = typename decltype(type)::type;
    QUIRE_LAUNCH(*context.stream, quantize_blocks_kernel<T>,
                 context.shape(x.shape[0], block_for(width / kWidestVec<T>)), x.as<const T>(),
                 width, out.as<__nv_fp8_e4m3>(), scales.as<float>(), scales.shape[1]);
  };
  if (x.dtype == DType::kF16) return launch(std::type_identity<__half>());
  launch(std::type_identity<__nv_bfloat16>());
}

void run_empty_kernel(const LaunchContext& context) {
  QUIRE_LAUNCH(*context.stream, empty_kernel, context.shape(1, 1));
}

void run_convert(const LaunchContext& context, const TensorView& x, const TensorView& out) {
  constexpr int64_t kMaxBlocks = 4096;
  const int64_t count = x.shape.num_elements();
  with_float_type(x.dtype, [&](auto from) {
    with_float_type(out.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      const int64_t num_blocks = std::min(ceil_div(count, kFlatBlock), kMaxBlocks);
      QUIRE_LAUNCH(*context.stream, (convert_kernel<From, To>),
                   context.shape(num_blocks, kFlatBlock), x.as<const From>(), count, out.as<To>());
    });
  });
}

void run_quantize_weights(const LaunchContext& context, const TensorView& x, const Slice& columns,
                          const TensorView& out, const TensorView& scales) {
  const int64_t width = x.shape[1];
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const bool has_whole_vectors =
        columns.first % kWidestVec<T> == 0 && columns.count % kWidestVec<T> == 0;
    const bool vectors = has_whole_vectors && takes_vectors<T>(width, {x.data, out.data});
    with_bool(vectors, [&](auto by_vectors) {
      constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
      QUIRE_LAUNCH(*context.stream, (quantize_weights_kernel<T, kVec>),
                   context.shape(x.shape[0], block_for(width / kVec)), x.as<const T>(), width,
                   columns.first, columns.count, out.as<__nv_fp8_e4m3>(), scales.as<float>());
    });
  });
}

void run_fill_repeated(const LaunchContext& context, const RepeatedRows& rows, const void* pool,
                       const TensorView& out) {
  with_float_type(rows.pool.dtype, [&](auto from) {
    with_float_type(out.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      QUIRE_LAUNCH(*context.stream, (fill_repeated_kernel<From, To>),
                   row_shape(context, out.shape[0], out.shape[1]), static_cast<const From*>(pool),
                   rows.pool.shape.num_elements(), rows.first, rows.row_stride, out.shape[1],
                   out.as<To>());
    });
  });
}

}  // namespace quire::cuda

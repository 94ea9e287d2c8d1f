// Each kernel makes one pass over memory and computes in F32. The same kernels process rows that
// are multiples of 16 bytes as 16-byte vectors, and all other rows element by element.
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
// For kernels that split rows over a cluster: threads per thread block, vectors that each thread
// keeps, and thread blocks per SM, which hide each other's latencies.
constexpr int kSplitBlock = 256;
constexpr int kSplitKept = 2;
constexpr int kSplitBlocksPerSm = 6;
constexpr int64_t kMostSplits = 8;  // every Hopper device supports this

// The number of threads of a thread block: whole warps, with one item per thread up to kMaxBlock.
int64_t block_for(int64_t num_items) {
  return std::clamp(round_up(num_items, kWarp), kWarp, kMaxBlock);
}

// Each thread block has kRows rows. Word: the widest type such that a row is a whole number of
// words.
template <typename Word, int kRows>
__global__ void gather_rows_kernel(const Word* x, const int32_t* rows, int64_t num_rows,
                                   int64_t row_words, Word* out) {
  wait_for_previous_kernel();
  trigger_dependent_launch();  // grouped_kernel.cuh relies on this order
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

// One thread block per row of x; `to` is the first column of the first row. Word: the widest type
// such that a row of x and a row of out are whole numbers of words.
template <typename Word>
__global__ void write_columns_kernel(const Word* x, int64_t row_words, int64_t out_words,
                                     Word* to) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  x += blockIdx.x * row_words;
  to += blockIdx.x * out_words;
  for (int64_t i = threadIdx.x; i < row_words; i += blockDim.x) to[i] = x[i];
}

// Scales per row are treated as blocks as wide as a row.
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

// The classes below are sources of rows. A kernel constructs the source of its row, which waits for
// the previous kernel. Then each thread reads vectors of kVec elements. With kIsSplit, several
// thread blocks share a row, and each thread keeps up to kSplitKept vectors. Otherwise one thread
// block has the row, and each thread keeps one vector.
//
// GivenRows reads the rows of a tensor. Reading a vector again hits the L1.
template <typename T, int kVecSize>
class GivenRows {
 public:
  using Value = Vec<T, kVecSize>;
  static constexpr int kVec = kVecSize;
  static constexpr bool kIsSplit = false;
  struct Args {
    const T* x;
    int width;
  };

  __device__ GivenRows(const Args& args, int64_t row) : row_(args.x + row * args.width) {
    wait_for_previous_kernel();
  }
  __device__ Value at(int i) const { return load_vec<kVec>(row_ + i); }

 private:
  const T* row_;
};

// rms_norm(x), after x += delta with kAdd. A thread's first vector stays in registers between the
// sum and the scaling. In rows of more than 1024 vectors, the other vectors are read again.
template <typename T, int kVecSize, bool kAdd>
class NormedRows {
 public:
  using Value = Vec<T, kVecSize>;
  static constexpr int kVec = kVecSize;
  static constexpr bool kAdds = kAdd;
  static constexpr bool kIsSplit = false;
  struct Args {
    T* x;
    const T* delta;
    const float* weight;
    const float* sum_scale;  // ResidualNorm::scale
    float eps;
    int width;
  };

  __device__ NormedRows(const Args& args, int64_t row)
      : row_(args.x + row * args.width),
        weight_(args.weight),
        first_(static_cast<int>(threadIdx.x) * kVec) {
    // No kernel writes the norm's weights or the scale, so they are read while the previous kernel
    // still runs.
    if (kAdd && args.sum_scale != nullptr) sum_scale_ = *args.sum_scale;
    if (first_ < args.width) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) first_weights_[j] = weight_[first_ + j];
    }
    wait_for_previous_kernel();
    const float squares = block_sum(add_up(args, row));
    scale_ = 1.0F / sqrtf(squares / static_cast<float>(args.width) + args.eps);
  }

  __device__ Value at(int i) const {
    const bool is_first = i == first_;
    Value value = is_first ? kept_ : load_vec<kVec>(row_ + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const float w = is_first ? first_weights_[j] : weight_[i + j];
      value.v[j] = from_float<T>(to_float(value.v[j]) * scale_ * w);
    }
    return value;
  }

 private:
  // Adds delta, and returns the sum of this thread's squares.
  __device__ float add_up(const Args& args, int64_t row) {
    const T* delta = kAdd ? args.delta + row * args.width : nullptr;
    float squares = 0;
    for (int i = first_; i < args.width; i += static_cast<int>(blockDim.x) * kVec) {
      Value value = load_vec<kVec>(row_ + i);
      if constexpr (kAdd) {
        const Value add = load_vec<kVec>(delta + i);
#pragma unroll
        for (int j = 0; j < kVec; ++j) {
          value.v[j] = from_float<T>((to_float(value.v[j]) + to_float(add.v[j])) * sum_scale_);
        }
        store_vec(row_ + i, value);
      }
#pragma unroll
      for (int j = 0; j < kVec; ++j) squares += to_float(value.v[j]) * to_float(value.v[j]);
      if (i == first_) kept_ = value;
    }
    return squares;
  }

  T* row_;
  const float* weight_;
  float sum_scale_ = 1.0F;
  int first_;
  float first_weights_[kVec] = {};
  Value kept_;
  float scale_;
};

// gated_mul() of one vector of gate and of up.
template <Activation kActivation, typename T, int kVec>
__device__ __forceinline__ Vec<T, kVec> gated(const Vec<T, kVec>& gate, const Vec<T, kVec>& up) {
  Vec<T, kVec> product;
#pragma unroll
  for (int j = 0; j < kVec; ++j) {
    product.v[j] =
        from_float<T>(gated_product<T>(kActivation, to_float(gate.v[j]), to_float(up.v[j])));
  }
  return product;
}

// gated_mul() of rows of gate and up. Computing a vector again is slow, so threads keep vectors.
template <typename T, int kVecSize, Activation kActivation>
class GatedRows {
 public:
  using Value = Vec<T, kVecSize>;
  static constexpr int kVec = kVecSize;
  static constexpr bool kIsSplit = true;
  struct Args {
    const T* gate_up;
    int width;  // of the product
  };

  __device__ GatedRows(const Args& args, int64_t row)
      : gate_(args.gate_up + row * 2 * args.width), up_(gate_ + args.width) {
    wait_for_previous_kernel();
  }
  __device__ Value at(int i) const {
    return gated<kActivation>(load_vec<kVec>(gate_ + i), load_vec<kVec>(up_ + i));
  }

 private:
  const T* gate_;
  const T* up_;
};

template <typename T, int kVec, bool kAdd>
__global__ void rms_norm_kernel(typename NormedRows<T, kVec, kAdd>::Args args, T* out) {
  trigger_dependent_launch();
  const NormedRows<T, kVec, kAdd> rows(args, blockIdx.x);
  out += int64_t{blockIdx.x} * args.width;
  const int first = static_cast<int>(threadIdx.x) * kVec;
  for (int i = first; i < args.width; i += static_cast<int>(blockDim.x) * kVec) {
    store_vec(out + i, rows.at(i));
  }
}

// x = (x + delta) * scale with kAdd; then out = x, unless they are the same memory. One vector per
// thread. scale: null for 1.
template <typename T, int kVec, bool kAdd>
__global__ void sum_kernel(T* x, const T* delta, const float* scale, int64_t count, T* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kVec;
  if (i >= count) return;
  Vec<T, kVec> value = load_vec<kVec>(x + i);
  if constexpr (kAdd) {
    const Vec<T, kVec> add = load_vec<kVec>(delta + i);
    const float factor = scale == nullptr ? 1.0F : *scale;
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      value.v[j] = from_float<T>((to_float(value.v[j]) + to_float(add.v[j])) * factor);
    }
    store_vec(x + i, value);
  }
  if (out != x) store_vec(out + i, value);
}

template <typename T>
struct WideNormArgs {
  T* qkv;
  const float* weights[2];  // of queries and of keys
  int widths[2];
  float* sums;
  int64_t stride;  // elements per row of qkv
  int num_ranks;
  float eps;
};

// Grid: (rows, 2): the queries and the keys of each row.
template <typename T, int kVec, WideNormPart kPart>
__global__ void wide_norm_kernel(WideNormArgs<T> args) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const bool has_keys = blockIdx.y == 1;
  const int width = args.widths[has_keys ? 1 : 0];
  const float* weight = args.weights[has_keys ? 1 : 0];
  T* x = args.qkv + blockIdx.x * args.stride + (has_keys ? args.widths[0] : 0);
  float* sum = args.sums + 2 * int64_t{blockIdx.x} + blockIdx.y;
  const int first = static_cast<int>(threadIdx.x) * kVec;
  const int stride = static_cast<int>(blockDim.x) * kVec;
  float squares = 0;
  if constexpr (kPart == WideNormPart::kScaling) {
    squares = *sum;
  } else {
    for (int i = first; i < width; i += stride) {
      const Vec<T, kVec> value = load_vec<kVec>(x + i);
#pragma unroll
      for (int j = 0; j < kVec; ++j) squares += to_float(value.v[j]) * to_float(value.v[j]);
    }
    squares = block_sum(squares);
  }
  if constexpr (kPart == WideNormPart::kSums) {
    if (threadIdx.x == 0) *sum = squares;
  } else {
    const float mean = squares / (static_cast<float>(args.num_ranks) * static_cast<float>(width));
    const float scale = 1.0F / sqrtf(mean + args.eps);
    for (int i = first; i < width; i += stride) {
      Vec<T, kVec> value = load_vec<kVec>(x + i);
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        value.v[j] = from_float<T>(to_float(value.v[j]) * scale * weight[i + j]);
      }
      store_vec(x + i, value);
    }
  }
}

// Grid: (rows, thread blocks per row). The strides are of rows, in elements.
template <typename T, int kVec, Activation kActivation>
__global__ void gated_mul_kernel(const T* gate, int64_t gate_stride, const T* up, int64_t up_stride,
                                 int64_t width, T* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t i = (int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kVec;
  if (i >= width) return;
  store_vec(out + blockIdx.x * width + i,
            gated<kActivation>(load_vec<kVec>(gate + blockIdx.x * gate_stride + i),
                               load_vec<kVec>(up + blockIdx.x * up_stride + i)));
}

// One thread per vector of x, in a grid of (rows, thread blocks of a row). `size` elements have one
// gate.
template <typename T, typename Gate, int kVec>
__global__ void gate_kernel(GateFunction function, const Gate* gates, int size, int width, T* x) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * kVec;
  if (i >= width) return;
  gates += int64_t{blockIdx.x} * (width / size);
  T* const at = x + int64_t{blockIdx.x} * width + i;
  Vec<T, kVec> value = load_vec<kVec>(at);
#pragma unroll
  for (int j = 0; j < kVec; ++j) {
    const float factor = open_gate(function, to_float(gates[(i + j) / size]));
    value.v[j] = from_float<T>(to_float(value.v[j]) * factor);
  }
  store_vec(at, value);
}

__global__ void soft_cap_kernel(float cap, int64_t width, float* x) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t i = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (i >= width) return;
  float* at = x + blockIdx.x * width + i;
  *at = cap * tanhf(*at / cap);
}

// One thread block per row. Computes in F64, because positions reach a million. The cost is small,
// because a step has few angles.
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

// Computes in F64, like rope_angles_kernel.
__global__ void position_scales_kernel(PositionScale scale, const int32_t* positions, int64_t count,
                                       float* out) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= count) return;
  const double position = static_cast<double>(scale.offset) + positions[t];
  const double periods = floor(position / static_cast<double>(scale.period));
  out[t] = static_cast<float>(1.0 + static_cast<double>(scale.beta) * log1p(periods));
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

template <typename T, int kVec>
__device__ __forceinline__ float largest_magnitude(const Vec<T, kVec>& value) {
  float largest = 0;
#pragma unroll
  for (int j = 0; j < kVec; ++j) largest = fmaxf(largest, fabsf(to_float(value.v[j])));
  return largest;
}

template <typename T, int kVec>
__device__ __forceinline__ void store_quantized(__nv_fp8_e4m3* out, const Vec<T, kVec>& value,
                                                float inverse_scale) {
  Vec<__nv_fp8_e4m3, kVec> quantized;
  if constexpr (kVec % 2 == 0) {
    // The hardware converts two numbers at a time.
    auto* const pairs = reinterpret_cast<__nv_fp8x2_e4m3*>(&quantized);
#pragma unroll
    for (int j = 0; j < kVec / 2; ++j) {
      pairs[j] = __nv_fp8x2_e4m3(make_float2(to_float(value.v[2 * j]) * inverse_scale,
                                             to_float(value.v[2 * j + 1]) * inverse_scale));
    }
  } else {
    quantized.v[0] = from_float<__nv_fp8_e4m3>(to_float(value.v[0]) * inverse_scale);
  }
  store_vec(out, quantized);
}

// Returns the largest x >= 0 of a cluster as wide as the grid. All threads of a thread block must
// have the same x, and all thread blocks of the cluster must have started.
__device__ __forceinline__ float cluster_max(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ float4 of_block[kMostSplits];
  if (threadIdx.x < gridDim.x) {
    const uint32_t place = shared_address(&of_block[blockIdx.x]);
    store_in_cluster(address_in(place, threadIdx.x), make_float4(x, 0, 0, 0));
  }
  sync_cluster_memory();
  for (unsigned i = 0; i < gridDim.x; ++i) x = fmaxf(x, of_block[i].x);
#endif
  return x;
}

template <typename Rows>
constexpr int kMostThreads = Rows::kIsSplit ? kSplitBlock : kMaxBlock;
template <typename Rows>
constexpr int kMinBlocksPerSm = Rows::kIsSplit ? kSplitBlocksPerSm : 1;

// One thread block per row, or one cluster as wide as the grid with Rows::kIsSplit.
template <typename Rows>
__global__ __launch_bounds__(kMostThreads<Rows>, kMinBlocksPerSm<Rows>)  //
    void quantize_rows_kernel(typename Rows::Args args, __nv_fp8_e4m3* out, float* scales) {
  constexpr int kKept = Rows::kIsSplit ? kSplitKept : 1;
  trigger_dependent_launch();
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (Rows::kIsSplit) sync_cluster();  // cluster_max() requires that all have started
#endif
  const int64_t row = Rows::kIsSplit ? blockIdx.y : blockIdx.x;
  const Rows rows(args, row);
  const int width = args.width;
  int first = static_cast<int>(threadIdx.x) * Rows::kVec;
  int stride = static_cast<int>(blockDim.x) * Rows::kVec;
  if constexpr (Rows::kIsSplit) {
    first += static_cast<int>(blockIdx.x) * stride;
    stride *= static_cast<int>(gridDim.x);
  }
  out += row * width;
  typename Rows::Value kept[kKept];
  float largest = 0;
#pragma unroll
  for (int n = 0; n < kKept; ++n) {
    const int i = first + n * stride;
    if (!Rows::kIsSplit && i >= width) continue;
    // Loads that do not depend on a branch are issued immediately. Past the end, they repeat the
    // last vector.
    kept[n] = rows.at(Rows::kIsSplit ? min(i, width - Rows::kVec) : i);
    largest = fmaxf(largest, largest_magnitude(kept[n]));
  }
  for (int i = first + kKept * stride; i < width; i += stride) {
    largest = fmaxf(largest, largest_magnitude(rows.at(i)));
  }
  largest = block_max(largest);
  if constexpr (Rows::kIsSplit) largest = cluster_max(largest);
  const float scale = e4m3_scale(largest);
  const float inverse = 1.0F / scale;
  if (first == 0) scales[row] = scale;
#pragma unroll
  for (int n = 0; n < kKept; ++n) {
    const int i = first + n * stride;
    if (i < width) store_quantized(out + i, kept[n], inverse);
  }
  for (int i = first + kKept * stride; i < width; i += stride) {
    store_quantized(out + i, rows.at(i), inverse);
  }
}

// One thread block per row, which quantizes columns [first_column, first_column + count). Like the
// kernels below that write weights, this kernel does not let the next kernel start early.
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

// One thread block per row. Each group of lanes that holds kScaleColumns elements shares a scale.
template <typename Rows>
__global__ void __launch_bounds__(kMaxBlock)
    quantize_blocks_kernel(typename Rows::Args args, __nv_fp8_e4m3* out, float* scales,
                           int64_t scales_width) {
  constexpr int kVec = Rows::kVec;
  constexpr int kGroup = static_cast<int>(kScaleColumns) / kVec;
  trigger_dependent_launch();
  const Rows rows(args, blockIdx.x);
  const int width = args.width;
  out += int64_t{blockIdx.x} * width;
  // All lanes of a warp run the same number of iterations, because they exchange their largest
  // magnitudes.
  for (int start = 0; start < width; start += static_cast<int>(blockDim.x) * kVec) {
    const int i = start + static_cast<int>(threadIdx.x) * kVec;
    typename Rows::Value value;
    float largest = 0;
    if (i < width) {
      value = rows.at(i);
      largest = largest_magnitude(value);
    }
#pragma unroll
    for (int distance = kGroup / 2; distance > 0; distance /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, distance));
    }
    if (i >= width) continue;
    const float scale = e4m3_scale(largest);
    if (threadIdx.x % kGroup == 0) scales[i / kScaleColumns * scales_width + blockIdx.x] = scale;
    store_quantized(out + i, value, 1.0F / scale);
  }
}

__global__ void empty_kernel() {
  trigger_dependent_launch();
  wait_for_previous_kernel();
}

__global__ void spin_kernel(int64_t cycles) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t end = clock64() + cycles;
  while (clock64() < end) {
  }
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

// The launch shape with enough thread blocks per row to give each item a thread.
LaunchShape row_shape(const LaunchContext& context, int64_t num_rows, int64_t row_items) {
  return context.shape(num_rows, kFlatBlock, ceil_div(row_items, kFlatBlock));
}

template <typename T>
bool takes_vectors(int64_t width, std::initializer_list<const void*> addresses) {
  return width % kWidestVec<T> == 0 && is_aligned(addresses, 16);
}

// The number of words in `width` elements.
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
  // With many rows, a thread block loads several rows at once to hide the latency. With few rows,
  // each row has its own thread block to fill the device.
  constexpr int64_t kManyRows = 4096;
  if (num_rows >= kManyRows) return launch(std::integral_constant<int, 4>{});
  launch(std::integral_constant<int, 1>{});
}

// The launch shape of quantize_rows_kernel.
template <typename Rows>
LaunchShape quantizing_shape(const LaunchContext& context, int64_t num_rows, int64_t width) {
  const int64_t num_vectors = width / Rows::kVec;
  if (!Rows::kIsSplit) return context.shape(num_rows, block_for(num_vectors));
  int64_t splits = 1;
  while (splits < kMostSplits && splits * kSplitBlock * kSplitKept < num_vectors) splits *= 2;
  const int64_t num_threads = block_for(ceil_div(num_vectors, splits * kSplitKept));
  LaunchShape shape =
      context.shape(splits, std::min<int64_t>(num_threads, kMostThreads<Rows>), num_rows);
  shape.cluster = static_cast<unsigned>(splits);
  return shape;
}

// Calls body(std::type_identity<NormedRows<…>>(), args). `out`: the destination of the rows.
template <typename T, typename Body>
void with_normed_rows(const ResidualNorm& norm, const TensorView& out, const Body& body) {
  const int64_t width = norm.residual.shape[1];
  const bool vectors = takes_vectors<T>(width, {norm.residual.data, norm.delta.data, out.data});
  with_bool(vectors, [&](auto by_vectors) {
    with_bool(norm.delta.data != nullptr, [&](auto adds) {
      using Rows = NormedRows<T, by_vectors.value ? kWidestVec<T> : 1, adds.value>;
      body(std::type_identity<Rows>(),
           typename Rows::Args{norm.residual.as<T>(), norm.delta.as<const T>(), norm.weight,
                               norm.scale, norm.eps, static_cast<int>(width)});
    });
  });
}

// Calls body(std::integral_constant<Activation, …>()).
template <typename Body>
void with_activation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::kSilu:
      return body(std::integral_constant<Activation, Activation::kSilu>());
    case Activation::kGelu:
      return body(std::integral_constant<Activation, Activation::kGelu>());
    case Activation::kGeluTanh:
      return body(std::integral_constant<Activation, Activation::kGeluTanh>());
    case Activation::kClampedSwiglu:
      return body(std::integral_constant<Activation, Activation::kClampedSwiglu>());
  }
}

// Like with_normed_rows(), with the source of the rows that the operation would write to x.
template <typename T, typename Body>
void with_rows(const TensorView& x, const RowOperation& operation, const TensorView& out,
               const Body& body) {
  if (const auto* norm = std::get_if<ResidualNorm>(&operation)) {
    return with_normed_rows<T>(*norm, out, body);
  }
  const int64_t width = x.shape[1];
  const auto* product = std::get_if<GatedMul>(&operation);
  const void* const in = product == nullptr ? x.data : product->gate_up.data;
  with_bool(takes_vectors<T>(width, {in, out.data}), [&](auto by_vectors) {
    constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
    if (product == nullptr) {
      using Rows = GivenRows<T, kVec>;
      return body(std::type_identity<Rows>(),
                  typename Rows::Args{x.as<const T>(), static_cast<int>(width)});
    }
    with_activation(product->activation, [&](auto activation) {
      using Rows = GatedRows<T, kVec, activation.value>;
      body(std::type_identity<Rows>(),
           typename Rows::Args{product->gate_up.as<const T>(), static_cast<int>(width)});
    });
  });
}

// Computes a ResidualNorm that only adds, because it has no weight.
void run_sum(const LaunchContext& context, const ResidualNorm& sum, const TensorView& out) {
  const TensorView& x = sum.residual;
  const void* const addend = sum.delta.data;
  if (addend == nullptr && x.data == out.data) return;
  const int64_t count = x.shape.num_elements();
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_bool(takes_vectors<T>(count, {x.data, addend, out.data}), [&](auto by_vectors) {
      with_bool(addend != nullptr, [&](auto adds) {
        constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
        QUIRE_LAUNCH(*context.stream, (sum_kernel<T, kVec, adds.value>),
                     context.shape(ceil_div(count / kVec, kFlatBlock), kFlatBlock), x.as<T>(),
                     static_cast<const T*>(addend), sum.scale, count, out.as<T>());
      });
    });
  });
}

template <WideNormPart kPart>
void wide_norm(const LaunchContext& context, const WideNorm& norm, int num_ranks) {
  with_float_type(norm.qkv.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int64_t kWidest = kWidestVec<T>;
    const bool vectors = norm.q_width % kWidest == 0 && norm.k_width % kWidest == 0 &&
                         takes_vectors<T>(norm.qkv.shape[1], {norm.qkv.data});
    with_bool(vectors, [&](auto by_vectors) {
      constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
      const WideNormArgs<T> args = {
          .qkv = norm.qkv.as<T>(),
          .weights = {norm.q_norm, norm.k_norm},
          .widths = {static_cast<int>(norm.q_width), static_cast<int>(norm.k_width)},
          .sums = norm.sums.as<float>(),
          .stride = norm.qkv.shape[1],
          .num_ranks = num_ranks,
          .eps = norm.eps};
      const int64_t num_vectors = std::max(norm.q_width, norm.k_width) / kVec;
      QUIRE_LAUNCH(*context.stream, (wide_norm_kernel<T, kVec, kPart>),
                   context.shape(norm.qkv.shape[0], block_for(num_vectors), 2), args);
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

void run_rms_norm(const LaunchContext& context, const ResidualNorm& norm, const TensorView& out) {
  if (norm.weight == nullptr) return run_sum(context, norm, out);
  const TensorView& x = norm.residual;
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_normed_rows<T>(norm, out, [&](auto rows, const auto& args) {
      using Rows = typename decltype(rows)::type;
      QUIRE_LAUNCH(*context.stream, (rms_norm_kernel<T, Rows::kVec, Rows::kAdds>),
                   context.shape(x.shape[0], block_for(args.width / Rows::kVec)), args,
                   out.as<T>());
    });
  });
}

void run_gated_mul(const LaunchContext& context, Activation activation, const TensorView& gate_up,
                   const TensorView& out) {
  const int64_t width = out.shape[1];
  run_gated_mul_columns(context, activation, gate_up, gate_up, width, out);
}

void run_gated_mul_columns(const LaunchContext& context, Activation activation,
                           const TensorView& gate, const TensorView& up, int64_t first_column,
                           const TensorView& out) {
  const int64_t width = out.shape[1];
  with_float_type(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int64_t kWidest = kWidestVec<T>;
    const bool vectors = takes_vectors<T>(width, {gate.data, up.data, out.data}) &&
                         first_column % kWidest == 0 && up.shape[1] % kWidest == 0;
    with_bool(vectors, [&](auto by_vectors) {
      constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
      with_activation(activation, [&](auto function) {
        QUIRE_LAUNCH(*context.stream, (gated_mul_kernel<T, kVec, function.value>),
                     row_shape(context, out.shape[0], width / kVec), gate.as<const T>(),
                     gate.shape[1], up.as<const T>() + first_column, up.shape[1], width,
                     out.as<T>());
      });
    });
  });
}

void run_wide_norm(const LaunchContext& context, const WideNorm& norm, WideNormPart part,
                   int num_ranks) {
  switch (part) {
    case WideNormPart::kAll:
      return wide_norm<WideNormPart::kAll>(context, norm, num_ranks);
    case WideNormPart::kSums:
      return wide_norm<WideNormPart::kSums>(context, norm, num_ranks);
    case WideNormPart::kScaling:
      return wide_norm<WideNormPart::kScaling>(context, norm, num_ranks);
  }
}

void run_gate(const LaunchContext& context, const Gating& gating) {
  const auto width = static_cast<int>(gating.x.shape[1]);
  const int size = width / static_cast<int>(gating.gates.shape[1]);
  with_float_type(gating.x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_bool(takes_vectors<T>(width, {gating.x.data}), [&](auto by_vectors) {
      with_bool(gating.gates.dtype == DType::kF32, [&](auto is_f32) {
        constexpr int kVec = by_vectors.value ? kWidestVec<T> : 1;
        using Gate = std::conditional_t<is_f32.value, float, T>;
        QUIRE_LAUNCH(*context.stream, (gate_kernel<T, Gate, kVec>),
                     row_shape(context, gating.x.shape[0], width / kVec), gating.function,
                     gating.gates.as<const Gate>(), size, width, gating.x.as<T>());
      });
    });
  });
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

void run_position_scales(const LaunchContext& context, const PositionScale& scale,
                         const int32_t* positions, const TensorView& out) {
  const int64_t count = out.shape[0];
  QUIRE_LAUNCH(*context.stream, position_scales_kernel,
               context.shape(ceil_div(count, kFlatBlock), kFlatBlock), scale, positions, count,
               out.as<float>());
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

void run_row_operation(const LaunchContext& context, const RowOperation& operation,
                       const TensorView& x) {
  if (const auto* norm = std::get_if<ResidualNorm>(&operation)) {
    run_rms_norm(context, *norm, x);
  } else if (const auto* product = std::get_if<GatedMul>(&operation)) {
    run_gated_mul(context, product->activation, product->gate_up, x);
  }
}

void run_quantize_rows(const LaunchContext& context, const TensorView& x, const TensorView& out,
                       const TensorView& scales, const RowOperation& operation) {
  with_float_type(x.dtype, [&](auto type) {
    with_rows<typename decltype(type)::type>(x, operation, out, [&](auto rows, const auto& args) {
      using Rows = typename decltype(rows)::type;
      QUIRE_LAUNCH(*context.stream, quantize_rows_kernel<Rows>,
                   quantizing_shape<Rows>(context, x.shape[0], args.width), args,
                   out.as<__nv_fp8_e4m3>(), scales.as<float>());
    });
  });
}

void run_quantize_blocks(const LaunchContext& context, const TensorView& x, const TensorView& out,
                         const TensorView& scales, const RowOperation& operation) {
  with_float_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_rows<T>(x, operation, out, [&](auto rows, const auto& args) {
      using Rows = typename decltype(rows)::type;
      if constexpr (sizeof(T) == 2 && Rows::kVec == kWidestVec<T>) {
        QUIRE_LAUNCH(*context.stream, quantize_blocks_kernel<Rows>,
                     context.shape(x.shape[0], block_for(args.width / Rows::kVec)), args,
                     out.as<__nv_fp8_e4m3>(), scales.as<float>(), scales.shape[1]);
      } else {
        QUIRE_CHECK(false, "[ops] rows with scales per block are not of whole 16-bit vectors");
      }
    });
  });
}

void run_empty_kernel(const LaunchContext& context) {
  QUIRE_LAUNCH(*context.stream, empty_kernel, context.shape(1, 1));
}

void run_spin_kernel(const LaunchContext& context, int64_t num_blocks, int64_t cycles) {
  QUIRE_LAUNCH(*context.stream, spin_kernel, context.shape(num_blocks, 1), cycles);
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

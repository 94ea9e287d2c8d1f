#include <algorithm>
#include <bit>
#include <climits>

#include "base/check.h"
#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/base/stream.h"
#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/packed/packed_matrices.h"
#include "cuda/gemm/tail/layer_tail.h"
#include "cuda/gemm/tail/layer_tail_kernel.cuh"

namespace quire::cuda {
namespace tail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

template <typename T>
__device__ __forceinline__ Vec<T, kVec> load_shared(const unsigned char* base, int vec) {
  return reinterpret_cast<const Vec<T, kVec>*>(base)[vec];
}

template <typename T>
__device__ __forceinline__ void store_shared(unsigned char* base, int vec,
                                             const Vec<T, kVec>& value) {
  reinterpret_cast<Vec<T, kVec>*>(base)[vec] = value;
}

// Loads data that another thread block wrote in this kernel. The load bypasses the L1, because the
// L1 may hold an older copy.
template <typename T>
__device__ __forceinline__ Vec<T, kVec> load_written(const void* base, int vec) {
  const uint4 bits = __ldcg(static_cast<const uint4*>(base) + vec);
  return *reinterpret_cast<const Vec<T, kVec>*>(&bits);
}

// Sums over the computing threads; every thread gets the sum. There must be a barrier between two
// calls.
__device__ __forceinline__ float sum_of_consumers(float x) {
  __shared__ float of_warp[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  x = warp_sum(x);
  if (lane == 0) of_warp[threadIdx.x / 32] = x;
  sync_consumers();
  return warp_sum(of_warp[lane % kWarps], kWarps);
}

// x as plain numbers. Every thread block copies or normalizes the whole row.
template <typename Weights>
class Row {
 public:
  using T = typename Weights::Element;

  __device__ __forceinline__ Row(const Params& p, const Shared& s) : p_(p), s_(s) {}

  __device__ __forceinline__ void load_attention() { copy(p_.attention, p_.gemms[kO].k); }
  // Loads a thread's first norm weights while the product before the norm is computed.
  __device__ __forceinline__ void prepare(int phase, const ColumnRange& /*range*/) {
    if (phase == kGateUp || phase + 1 == p_.num_gemms) return;
#pragma unroll
    for (int i = 0; i < kPreloaded; ++i) {
      const int vec = static_cast<int>(threadIdx.x) + i * kThreads;
      if (vec >= p_.hidden / kVec) continue;
      const float* const from = norm_weights(phase) + vec * kVec;
      preloaded_[i][0] = load_vec<4>(from);
      preloaded_[i][1] = load_vec<4>(from + 4);
    }
  }
  __device__ __forceinline__ void publish(int phase, const ColumnRange& range) const {
    if (phase != kGateUp) return;  // the residual's columns are already written
    T* const out = static_cast<T*>(p_.gemms[phase].out) + range.first_column;
    for (int i = static_cast<int>(threadIdx.x); i < range.num_columns; i += kThreads) {
      out[i] = from_float<T>(gated_product<Weights>(range, s_, i));
    }
  }
  __device__ __forceinline__ void load(int phase) {
    if (phase == kGateUp) {
      copy(p_.gemms[phase].out, p_.gemms[phase].n);
    } else {
      normalize(phase);
    }
  }

 private:
  // Vectors of norm weights that a thread loads in advance. In longer rows, the remaining vectors
  // are loaded when they are needed.
  static constexpr int kPreloaded = 2;

  __device__ __forceinline__ const float* norm_weights(int phase) const {
    return p_.norms[phase / kDown];
  }
  __device__ __forceinline__ void copy(const void* row, int width) {
    for (int i = static_cast<int>(threadIdx.x); i < width / kVec; i += kThreads) {
      store_shared(s_.x, i, load_written<T>(row, i));
    }
  }
  // x = norm(residual)
  __device__ __forceinline__ void normalize(int phase) {
    const int num_vecs = p_.hidden / kVec;
    float squares = 0;
    for (int i = static_cast<int>(threadIdx.x); i < num_vecs; i += kThreads) {
      const Vec<T, kVec> value = load_written<T>(p_.residual, i);
#pragma unroll
      for (int j = 0; j < kVec; ++j) squares += to_float(value.v[j]) * to_float(value.v[j]);
      store_shared(s_.x, i, value);
    }
    const float scale =
        1.0F / sqrtf(sum_of_consumers(squares) / static_cast<float>(p_.hidden) + p_.eps);
    const auto scale_vec = [&](int vec, const Vec<float, 4>& low, const Vec<float, 4>& high) {
      Vec<T, kVec> value = load_shared<T>(s_.x, vec);
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        const float weight = j < 4 ? low.v[j] : high.v[j - 4];
        value.v[j] = from_float<T>(to_float(value.v[j]) * scale * weight);
      }
      store_shared(s_.x, vec, value);
    };
#pragma unroll
    for (int i = 0; i < kPreloaded; ++i) {
      const int vec = static_cast<int>(threadIdx.x) + i * kThreads;
      if (vec < num_vecs) scale_vec(vec, preloaded_[i][0], preloaded_[i][1]);
    }
    for (int vec = static_cast<int>(threadIdx.x) + kPreloaded * kThreads; vec < num_vecs;
         vec += kThreads) {
      const float* const from = norm_weights(phase) + vec * kVec;
      scale_vec(vec, load_vec<4>(from), load_vec<4>(from + 4));
    }
  }

  const Params& p_;
  const Shared& s_;
  Vec<float, 4> preloaded_[kPreloaded][2];
};

template <typename T>
__device__ __forceinline__ float dot(const Vec<T, kVec>& a, const Vec<T, kVec>& b, float sum) {
#pragma unroll
  for (int j = 0; j < kVec; ++j) sum = fmaf(to_float(a.v[j]), to_float(b.v[j]), sum);
  return sum;
}

// Multiplies a segment by its part of x; returns the lane's part of the sum. Calls `release` as
// soon as the segment has been read, so that its stage is refilled early.
template <typename T, typename Release>
__device__ __forceinline__ float multiply_segment(const unsigned char* w, const unsigned char* x,
                                                  int num_vecs, int lane, const Release& release) {
  constexpr int kLaneVecs = kSegment / kVec / 32;
  float sums[2] = {};
  if (num_vecs == kSegment / kVec) {
    Vec<T, kVec> weights[kLaneVecs];
#pragma unroll
    for (int i = 0; i < kLaneVecs; ++i) weights[i] = load_shared<T>(w, i * 32 + lane);
    release();
#pragma unroll
    for (int i = 0; i < kLaneVecs; ++i) {
      sums[i % 2] = dot(weights[i], load_shared<T>(x, i * 32 + lane), sums[i % 2]);
    }
  } else {
    for (int i = lane; i < num_vecs; i += 32) {
      sums[0] = dot(load_shared<T>(w, i), load_shared<T>(x, i), sums[0]);
    }
    release();
  }
  return sums[0] + sums[1];
}

#endif

// Rows of weights in the type of x. Each segment of a row has a partial sum in shared memory, and a
// row's partial sums are added in order.
template <typename T>
struct DenseWeights {
  using Element = T;
  using Range = ColumnRange;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  static __device__ __forceinline__ Range range_of(const Gemm& gemm, int block, int num_blocks) {
    return column_range(gemm, block, num_blocks);
  }

  static __device__ __forceinline__ Segment segment(const Params& p, int phase, const Range& range,
                                                    const Cursor& cursor) {
    const Gemm& gemm = p.gemms[phase];
    const int first = cursor.segment * kSegment;
    int row = cursor.row;
    if (phase == kGateUp) row = row / 2 + row % 2 * gemm.n;
    const int64_t at = int64_t{range.first_column + row} * gemm.k + first;
    return {static_cast<const unsigned char*>(gemm.w) + at * 2,
            static_cast<uint32_t>(min(kSegment, gemm.k - first)) * 2};
  }

  using X = Row<DenseWeights>;

  static __device__ __forceinline__ void multiply(const Params& p, int phase, const Range& range,
                                                  const Shared& s, const X& /*x*/,
                                                  RingPosition& at) {
    const Gemm& gemm = p.gemms[phase];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto warp = static_cast<int>(threadIdx.x) / 32;
    const auto release = [&] {
      __syncwarp();
      if (lane == 0) s.released[at.stage].arrive();
    };
    Cursor cursor(range, warp);
    for (int segment = warp; segment < range.num_segments; segment += kWarps, cursor.advance()) {
      const int first = cursor.segment * kSegment;
      s.arrived[at.stage].wait(at.parity);
      const float part = multiply_segment<T>(s.ring + at.stage * kSegmentBytes, s.x + first * 2,
                                             min(kSegment, gemm.k - first) / kVec, lane, release);
      const float sum = warp_sum(part);
      if (lane == 0) s.sums[segment] = sum;
      at.advance(p.num_stages);
    }
    sync_consumers();
  }

  // The product of a row of the range.
  static __device__ __forceinline__ T product(const Range& range, const Shared& s, int row) {
    const float* sums = s.sums + row * range.row_segments;
    float sum = 0;
    for (int i = 0; i < range.row_segments; ++i) sum += sums[i];
    return from_float<T>(sum);
  }
#endif
};

}  // namespace tail

namespace {

bool takes_rows(const Linear& linear, DType dtype) {
  const TensorView& w = as_cuda(linear).weights();
  return as_cuda(linear).packed() == nullptr && w.dtype == dtype && w.shape[1] % tail::kVec == 0 &&
         w.shape[0] % 2 == 0 && w.shape.num_elements() <= INT32_MAX && is_aligned({w.data}, 16);
}

// num_parts: the number of parts of the rows (gate and up), each with whole panels.
bool takes_panels(const Linear& linear, int num_parts, const QuantizedFormat& format) {
  const PackedMatrices* const w = as_cuda(linear).packed();
  if (w == nullptr || w->parts().size() != 1 || w->order() != nullptr) return false;
  const PackedRows& rows = w->parts().front();
  return rows.layout.format == format && rows.num_rows % (num_parts * kPanelRows) == 0 &&
         rows.num_columns % kSliceColumns == 0 && rows.num_rows * rows.num_columns <= INT32_MAX;
}

bool is_packed(const LayerTail& layer) {
  return as_cuda(*layer.o).packed() != nullptr;
}

bool has_supported_weights(const LayerTail& layer) {
  const Linear* const all[] = {layer.o, layer.gate_up, layer.down, layer.next_qkv};
  const auto is_supported = [&](const auto& takes) {
    return std::ranges::all_of(all, [&](const Linear* linear) {
      return linear == nullptr || (as_cuda(*linear).bias().data == nullptr && takes(*linear));
    });
  };
  if (!is_packed(layer)) {
    return is_supported(
        [&](const Linear& linear) { return takes_rows(linear, layer.residual.dtype); });
  }
  const QuantizedFormat& format = as_cuda(*layer.o).packed()->parts().front().layout.format;
  return format.value_bits == 4 && format.group_k >= kSliceColumns && !format.has_block_scales() &&
         !format.has_minimums && is_supported([&](const Linear& linear) {
           return takes_panels(linear, &linear == layer.gate_up ? 2 : 1, format);
         });
}

bool has_supported_operands(const LayerTail& layer) {
  const DType dtype = layer.residual.dtype;
  const bool has_norms = layer.post_attention_norm != nullptr &&
                         (layer.next_qkv == nullptr || layer.next_norm != nullptr);
  return has_norms && (dtype == DType::kF16 || dtype == DType::kBF16) &&
         layer.residual.shape[0] == 1 && has_supported_weights(layer) &&
         is_aligned({layer.attention.data, layer.residual.data, layer.delta.data,
                     layer.product.data, layer.post_attention_norm, layer.next_norm},
                    16);
}

// Calls body(type, ranks) with the element type and the number of ranks as a constant.
template <typename Body>
void with_kernel(DType dtype, int num_ranks, const Body& body) {
  tail::with_ranks(num_ranks, [&](auto ranks) {
    if (dtype == DType::kF16) return body(std::type_identity<tail::DenseWeights<__half>>(), ranks);
    body(std::type_identity<tail::DenseWeights<__nv_bfloat16>>(), ranks);
  });
}

Status load_kernels(int num_ranks) {
  KernelLoader loader;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    with_kernel(dtype, num_ranks, [&]<typename Weights>(std::type_identity<Weights>, auto ranks) {
      loader.load(&tail::layer_tail_gemm_kernel<Weights, ranks()>);
    });
  }
  QUIRE_RETURN_IF_ERROR(loader.status());
  return load_packed_tails(num_ranks);
}

}  // namespace

Result<std::unique_ptr<LayerTailKernel>> LayerTailKernel::create(const LaunchContext& context,
                                                                 int num_blocks, int num_ranks,
                                                                 int most_stages) {
  const LaunchLimits& device = context.stream->limits();
  int block_bytes = 0;
  int sm_bytes = 0;
  int reserved_bytes = 0;  // per thread block, by the driver
  int cooperates = 0;
  const auto read_attribute = [&](cudaDeviceAttr attribute, int* value) {
    return cudaDeviceGetAttribute(value, attribute, device.device);
  };
  QUIRE_CUDA_RETURN_IF_ERROR(read_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, &block_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(
      read_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &sm_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(
      read_attribute(cudaDevAttrReservedSharedMemoryPerBlock, &reserved_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(read_attribute(cudaDevAttrCooperativeLaunch, &cooperates));
  if (device.compute_capability < 90 || cooperates == 0) return std::unique_ptr<LayerTailKernel>();
  if (num_ranks > 1) QUIRE_RETURN_IF_ERROR(load_kernels(num_ranks));
  QUIRE_ASSIGN_OR_RETURN(Buffer arrivals, device_memory(sizeof(uint64_t)));
  context.stream->set_zero(arrivals.data(), sizeof(uint64_t));
  if (num_blocks == 0) num_blocks = device.num_sms;
  QUIRE_ASSIGN_OR_RETURN(
      Buffer inboxes,
      device_memory(static_cast<size_t>(tail::kMaxGemms * num_blocks * tail::kInboxBytes)));
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaMemsetAsync(inboxes.data(), kEmptyInboxByte, inboxes.num_bytes(), context.stream->get()));
  QUIRE_ASSIGN_OR_RETURN(Buffer rows, device_memory(2 * static_cast<size_t>(block_bytes)));
  const auto beside = static_cast<size_t>(sm_bytes - 2 * reserved_bytes);
  const tail::SharedMemoryLimits limits = {
      .per_block = static_cast<size_t>(block_bytes) - tail::kStaticBytes,
      .beside_attention = beside - tail::kAttentionBytes - tail::kStaticBytes};
  return std::unique_ptr<LayerTailKernel>(
      new LayerTailKernel(context, std::move(arrivals), std::move(inboxes), std::move(rows),
                          num_blocks, num_ranks, most_stages, limits));
}

tail::Params LayerTailKernel::params_of(const LayerTail& layer, const PeerInboxes& peers) const {
  tail::Params p;
  const bool packed = is_packed(layer);
  const int delta_unit = num_ranks_ > 1 ? 2 : 1;  // words of an inbox hold two columns
  const auto add = [&](const Linear* linear, const TensorView& out, int rows_per_column,
                       int column_unit) {
    if (linear == nullptr) return;
    const TensorView& w = as_cuda(*linear).weights();
    tail::Gemm gemm = {.w = w.data,
                       .out = out.data,
                       .n = static_cast<int>(w.shape[0]) / rows_per_column,
                       .k = static_cast<int>(w.shape[1]),
                       .rows_per_column = rows_per_column,
                       .column_unit = column_unit};
    if (!packed) return add_gemm(p, gemm, num_blocks_);
    const PackedRows& rows = as_cuda(*linear).packed()->parts().front();
    gemm.w = rows.panels;
    gemm.panel_bytes = rows.panel_bytes();
    gemm.column_unit = static_cast<int>(kPanelRows);
    add_packed_gemm(p, gemm, num_blocks_);
  };
  add(layer.o, layer.delta, 1, delta_unit);
  add(layer.gate_up, layer.product, 2, 1);
  add(layer.down, layer.delta, 1, delta_unit);
  add(layer.next_qkv, layer.qkv, 1, 1);
  if (packed) {
    p.layout = as_cuda(*layer.o).packed()->parts().front().layout;
    p.group_shift = std::countr_zero(static_cast<unsigned>(p.layout.format.group_k));
    p.stage_bytes = static_cast<int>(round_up(p.layout.block_bytes(), 128));
    p.inboxes = static_cast<std::byte*>(inboxes_.data());
    p.rows[0] = static_cast<std::byte*>(rows_.data());
    p.rows[1] = p.rows[0] + rows_.num_bytes() / 2;
  }
  p.max_own_columns = max_range_columns(p.gemms[tail::kO], num_blocks_);
  p.hidden = static_cast<int>(layer.residual.shape[1]);
  p.attention = layer.attention.data;
  p.residual = layer.residual.data;
  p.norms[0] = layer.post_attention_norm;
  p.norms[1] = layer.next_norm;
  p.eps = layer.norm_eps;
  p.arrivals = static_cast<uint64_t*>(arrivals_.data());
  p.peers = peers;
  fit_rings(p, limits_, most_stages_);
  return p;
}

bool LayerTailKernel::takes(const LayerTail& layer) const {
  return has_supported_operands(layer) && params_of(layer, {}).num_stages > 0;
}

void LayerTailKernel::run(const LayerTail& layer, const PeerInboxes& peers) {
  constexpr const char* kNotTaken = "[ops] the fused layer tail does not support this layer";
  QUIRE_CHECK(has_supported_operands(layer), kNotTaken);
  const tail::Params p = params_of(layer, peers);
  QUIRE_CHECK(p.num_stages > 0, kNotTaken);
  if (is_packed(layer)) return run_packed_tail(context_, num_blocks_, layer.residual.dtype, p);
  with_kernel(layer.residual.dtype, peers.num_ranks,
              [&]<typename Weights>(std::type_identity<Weights>, auto ranks) {
                tail::launch<Weights, ranks()>(context_, num_blocks_, p);
              });
}

}  // namespace quire::cuda

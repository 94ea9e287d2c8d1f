// The layer tail with packed weights of 4 bits (layer_tail_kernel.cuh). Weights become signed bytes
// for the tensor cores, which takes 3 instructions per 8 weights. Conversion to F16 or BF16 would
// take 8 instructions.
//
// Results differ in their last bits from the results of separate kernels: the order of the sums is
// different, and neither the norm nor the gated product is rounded to the type of the activations.
#include <math_constants.h>

#include "cuda/base/memory.h"
#include "cuda/device/tensor_core.cuh"
#include "cuda/gemm/packed/kernels/packed_values.cuh"
#include "cuda/gemm/tail/layer_tail_kernel.cuh"

namespace quire::cuda {
namespace tail {

using namespace packed;

template <typename T, bool kHasZeros>
struct PackedWeights;

// x as integers of four signed 8-bit digits (DigitRow). The instruction multiplies bytes of weights
// by 8 columns of its B operand. A single row of x would leave 7 of these columns empty; its digits
// fill four of them. Sums over a step of 32 columns are exact. Each value is rounded to a multiple
// of 2^-30 of the largest value in its step.
//
// Each thread block writes the digits of the columns that it computes. After the grid barrier, one
// bulk copy loads the whole row.
//
// The digits of a step are words[digit][4][2]: lane 4 g + q loads words[g % 4][q] as column g of
// its B operand. A word has 4 adjacent columns, in the order of the values in a word of weights.
template <typename T, bool kHasZeros>
class Digits {
 public:
  __device__ __forceinline__ Digits(const Params& p, const Shared& s) : p_(p), s_(s) {
    if (threadIdx.x != 0) return;
    arrived().init();
    publish_barriers();
  }

  __device__ __forceinline__ void load_attention() {
    constexpr int kBatch = 4;  // loads in flight
    const int width = p_.gemms[kO].k;
    const int num_quads = width / 4;
    const auto* const from = static_cast<const Vec<T, 4>*>(p_.attention);
    for (int first = static_cast<int>(threadIdx.x); first < num_quads; first += kBatch * kThreads) {
      Vec<T, 4> quads[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) quads[i] = from[min(first + i * kThreads, num_quads - 1)];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int quad = first + i * kThreads;
        if (quad >= num_quads) break;
        float values[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) values[j] = to_float(quads[i].v[j]);
        store(s_.x, width, quad, values);
      }
    }
  }
  // Loads the thread's norm weights while the product before the norm is computed.
  __device__ __forceinline__ void prepare(int phase, const PanelRange& range) {
    if (phase == kGateUp || phase + 1 == p_.num_gemms) return;
    if (static_cast<int>(threadIdx.x) < range.num_columns / 4) {
      weights_ = norm_weights(phase, range.first_column / 4 + static_cast<int>(threadIdx.x));
    }
  }
  // Writes the digits of the thread block's columns: of the product, or of the residual times the
  // norm's weights. The norm's scale is not known yet, so the products are multiplied by it later
  // (scale()).
  __device__ __forceinline__ void publish(int phase, const PanelRange& range) {
    const int width = p_.gemms[phase].n;
    auto* const out = reinterpret_cast<unsigned char*>(p_.rows[phase % 2]);
    const int num_quads = range.num_columns / 4;
    if (phase == kGateUp) {
      // A thread computes one column; afterwards threads store four columns each.
      float* const products = s_.sums + num_panel_sums(range);
      for (int i = static_cast<int>(threadIdx.x); i < range.num_columns; i += kThreads) {
        products[2 * i] = gated_product<PackedWeights<T, kHasZeros>>(range, s_, i);
      }
      sync_consumers();
      for (int i = static_cast<int>(threadIdx.x); i < num_quads; i += kThreads) {
        const float* const from = products + 8 * i;
        store(out, width, range.first_column / 4 + i, {from[0], from[2], from[4], from[6]});
      }
      return;
    }
    sync_consumers();  // other threads have added to the residual
    for (int i = static_cast<int>(threadIdx.x); i < num_quads; i += kThreads) {
      const int quad = range.first_column / 4 + i;
      const Vec<float, 4> weights = i < kThreads ? weights_ : norm_weights(phase, quad);
      float values[4];
      float squares = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float value = to_float(reinterpret_cast<const T*>(s_.residual)[i * 4 + j]);
        squares = fmaf(value, value, squares);
        values[j] = value * weights.v[j];
      }
      store(out, width, quad, values);
      squares = over_step(squares, [](float x, float y) { return x + y; });
      if (quad % kStepQuads != 0) continue;
      reinterpret_cast<float*>(out + digit_row(width, kHasZeros).squares)[quad / kStepQuads] =
          squares;
    }
  }
  __device__ __forceinline__ void load(int phase) {
    const int width = p_.gemms[phase].n;
    const DigitRow row = digit_row(width, kHasZeros);
    if (threadIdx.x == 0) {
      order_bulk_copies();
      arrived().arrive_expecting(row.num_bytes);
      copy_bulk(s_.x, p_.rows[phase % 2], row.num_bytes, arrived());
    }
    arrived().wait(parity_);
    parity_ ^= 1;
    scale_ = 1;
    if (phase == kGateUp) return;
    float squares = 0;
    for (int i = lane(); i < width / kStepColumns; i += 32) {
      squares += reinterpret_cast<const float*>(s_.x + row.squares)[i];
    }
    scale_ = 1.0F / sqrtf(warp_sum(squares) / static_cast<float>(width) + p_.eps);
  }

  // x equals the digits times this scale.
  __device__ __forceinline__ float scale() const {
    return scale_;
  }

 private:
  static __device__ __forceinline__ Mbarrier& arrived() {
    __shared__ Mbarrier barrier;
    return barrier;
  }
  static __device__ __forceinline__ int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }

  static constexpr int kStepQuads = kStepColumns / 4;

  __device__ __forceinline__ Vec<float, 4> norm_weights(int phase, int quad) const {
    return load_vec<4>(p_.norms[phase / kDown] + quad * 4);
  }

  // Combines the values of the 8 lanes of a step. All 8 lanes call this.
  template <typename Value, typename Combine>
  static __device__ __forceinline__ Value over_step(Value value, const Combine& combine) {
    const unsigned lanes = 0xFFU << (threadIdx.x & 24U);
#pragma unroll
    for (int distance = 1; distance < kStepQuads; distance *= 2) {
      value = combine(value, __shfl_xor_sync(lanes, value, distance));
    }
    return value;
  }

  // Stores columns 4 * quad to 4 * quad + 3 in a row of digits in shared or device memory. All
  // lanes of a step call this.
  static __device__ __forceinline__ void store(unsigned char* to, int width, int quad,
                                               const float (&values)[4]) {
    // Integers are below 2^kBits. Exponents have F32's bias.
    constexpr uint32_t kBits = 30;
    constexpr uint32_t kMagnitude = 0x7FFFFFFFU;
    const auto greater = [](uint32_t x, uint32_t y) { return max(x, y); };
    uint32_t most = 0;
#pragma unroll
    for (const float value : values) most = max(most, __float_as_uint(value) & kMagnitude);
    most = over_step(most, greater);
    const uint32_t exponent = max(most >> 23, kBits);
    const float to_integer = __uint_as_float((2 * 127 + kBits - 1 - exponent) << 23);
    uint32_t digits[4];  // digit i in byte i
    int low = 0;
    int high = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int integer = __float2int_rn(values[j] * to_integer);
      digits[j] = (static_cast<uint32_t>(integer) + 0x00808080U) ^ 0x00808080U;
      const int upper = (integer + 0x8080) >> 16;
      low += integer - upper * 65536;
      high += upper;
    }
    const int step = quad / kStepQuads;
    const int in_step = quad % kStepQuads;
    auto* const words = reinterpret_cast<uint32_t*>(to + step * (kStepColumns * kDigits)) +
                        in_step % 4 * 2 + in_step / 4;
#pragma unroll
    for (int digit = 0; digit < kDigits; ++digit) {
      const unsigned select = static_cast<unsigned>(digit + (digit + 4) * 16);
      words[digit * kStepQuads] = __byte_perm(__byte_perm(digits[0], digits[2], select),
                                              __byte_perm(digits[1], digits[3], select), 0x5410);
    }
    if constexpr (kHasZeros) {
      const auto plus = [](int x, int y) { return x + y; };
      low = over_step(low, plus);
      high = over_step(high, plus);
    }
    if (in_step != 0) return;
    const DigitRow row = digit_row(width, kHasZeros);
    const bool is_finite = most >> 23 != 0xFFU;
    reinterpret_cast<float*>(to + row.scales)[step] =
        is_finite ? __uint_as_float((exponent - (kBits - 1)) << 23) : CUDART_NAN_F;
    if constexpr (!kHasZeros) return;
    int* const sums = reinterpret_cast<int*>(to + row.sums) + step;
    sums[0] = low;
    sums[width / kStepColumns] = high;
  }

  const Params& p_;
  const Shared& s_;
  uint32_t parity_ = 0;
  float scale_ = 1;
  Vec<float, 4> weights_;
};

// Panels of packed weights; a segment is a block. Each warp adds up its blocks of a panel, and the
// warps' sums are added in order. If several thread blocks have blocks of a column, the first of
// them owns the column. The other thread blocks compute their parts at the beginning of the phase
// and send them to the owner, which adds them at the end. A word of an inbox is kEmptyWord unless a
// sent value has not been received yet. Each word is used once per kernel, and the owner has
// emptied it before a thread block of the next kernel sends to it.
template <typename T, bool kHasZeros>
struct PackedWeights {
  using Element = T;
  using Range = PanelRange;
  using X = Digits<T, kHasZeros>;
  static constexpr int kBits = 4;
  static constexpr int kColumns = static_cast<int>(kPanelRows);
  static constexpr int kBlockColumns = packed_block_columns(kBits);
  static constexpr int kSliceSteps = kSliceColumns / kStepColumns;
  static_assert(kColumns == kStepColumns);  // a thread block writes whole steps of x

  static __device__ __forceinline__ Range range_of(const Gemm& gemm, int block, int num_blocks) {
    return panel_range(gemm, block, num_blocks);
  }

  static __device__ __forceinline__ Segment segment(const Params& p, int phase, const Range& range,
                                                    const Cursor& cursor) {
    const Gemm& gemm = p.gemms[phase];
    int panel = range.first_panel + cursor.row;
    if (phase == kGateUp) panel = panel / 2 + panel % 2 * (gemm.n / kColumns);
    const int block_bytes = p.layout.block_bytes();
    const int before = cursor.segment * block_bytes;
    const int left = static_cast<int>(gemm.panel_bytes) - before;
    return {static_cast<const unsigned char*>(gemm.w) + panel * gemm.panel_bytes + before,
            static_cast<uint32_t>(min(block_bytes, left))};
  }

  static __device__ __forceinline__ void multiply(const Params& p, int phase, const Range& range,
                                                  const Shared& s, const X& x, RingPosition& at) {
    const int k = p.gemms[phase].k;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto warp = static_cast<int>(threadIdx.x) / 32;
    const XOfLane x_of_lane(s, k, lane);
    Cursor cursor(range, warp);
    int segment = warp;
    for (int panel = 0; panel < range.num_panels; ++panel) {
      float sums[kTiles][2] = {};  // of the lane's rows
      for (; segment < range.num_segments && cursor.row == panel;
           segment += kWarps, cursor.advance()) {
        s.arrived[at.stage].wait(at.parity);
        multiply_block(p, x_of_lane, k, s.ring + at.stage * p.stage_bytes, cursor.segment, lane,
                       sums);
        __syncwarp();
        if (lane == 0) s.released[at.stage].arrive();
        at.advance(p.num_stages);
      }
      // Odd lanes have the upper digits, and the weights are scaled by 16. After these steps, four
      // lanes have the sums of the same four rows, and each of them stores a different row's sum.
#pragma unroll
      for (auto& of_tile : sums) {
#pragma unroll
        for (float& sum : of_tile) {
          sum *= lane % 2 == 1 ? 65536.0F / 16 : 1.0F / 16;
          sum += __shfl_xor_sync(kAllLanes, sum, 1);
        }
      }
      const int tile = lane % 4 / 2;
      const int half = lane % 2;
      const float lower = tile == 0 ? sums[0][0] : sums[1][0];
      const float upper = tile == 0 ? sums[0][1] : sums[1][1];
      const float sum = half == 0 ? lower : upper;
      const int column = row_of(tile, half, lane);
      if (panel < range.num_sent_panels) {
        const int of_up = (range.first_panel + panel) % p.gemms[phase].rows_per_column;
        send(inbox(p, phase, static_cast<int>(blockIdx.x), of_up) + (warp * kColumns + column) * 4,
             marked(__float_as_uint(sum)));
      } else {
        s.sums[((panel - range.num_sent_panels) * kWarps + warp) * kColumns + column] = sum;
      }
    }
    sync_consumers();
    add_up(p, phase, range, s, x.scale());
    sync_consumers();
  }

  // The product of row i of the range. i counts the columns; in kGateUp, it counts the gate row and
  // the up row of each column.
  static __device__ __forceinline__ T product(const Range& range, const Shared& s, int i) {
    return from_float<T>(s.sums[num_panel_sums(range) + i]);
  }

 private:
  static_assert(kTiles == 2);

  static __device__ __forceinline__ std::byte* inbox(const Params& p, int phase, int block,
                                                     int of_up) {
    const int64_t idx = int64_t{phase} * gridDim.x + block;
    return p.inboxes + idx * kInboxBytes + of_up * (kInboxBytes / 2);
  }

  // The row of a panel whose sum a lane has.
  static __device__ __forceinline__ int row_of(int tile, int half, int lane) {
    return tile * kPackedTileRows + half * 8 + lane / 4;
  }

  // x of a phase, in the form that the lane reads.
  struct XOfLane {
    const uint2* digits;  // [steps][16]
    const float* scales;  // [steps]
    const int* sums;      // [steps], of the lane's two digits

    __device__ __forceinline__ XOfLane(const Shared& s, int k, int lane) {
      const DigitRow row = digit_row(k, kHasZeros);
      digits = reinterpret_cast<const uint2*>(s.x) + lane % 16;
      scales = reinterpret_cast<const float*>(s.x + row.scales);
      sums = reinterpret_cast<const int*>(s.x + row.sums) + lane % 2 * (k / kStepColumns);
    }
  };

  // Adds the products of a slice. scales, zeros: of the lane's rows.
  static __device__ __forceinline__ void multiply_slice(const unsigned char* values,
                                                        const XOfLane& x, int first_step,
                                                        const float (&scales)[kTiles][2],
                                                        const int (&zeros)[kTiles][2], int lane,
                                                        float (&sums)[kTiles][2]) {
    constexpr int kTileBytes = packed_tile_bytes(kBits);
    TileWords<kBits> words[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      words[tile] = load_tile<kBits>(values + tile * kTileBytes, lane);
    }
    const auto x_scales = load_vec<kSliceSteps>(x.scales + first_step);
    float of_slice[kTiles][2] = {};
#pragma unroll
    for (int i = 0; i < kSliceSteps; ++i) {
      const uint2 b = x.digits[(first_step + i) * 16];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint32_t(&w)[4] = words[tile].low;
        const uint32_t a[4] = {centered(w[2 * i] << 4), centered(w[2 * i]),
                               centered(w[2 * i + 1] << 4), centered(w[2 * i + 1])};
        int products[4];  // two digits of each of the lane's rows
        multiply_bytes(products, a, b.x, b.y);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int product = products[2 * half] + products[2 * half + 1] * 256;
          if constexpr (kHasZeros) product -= zeros[tile][half] * x.sums[first_step + i];
          float& sum = of_slice[tile][half];
          sum = fmaf(x_scales.v[i], static_cast<float>(product), sum);
        }
      }
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        sums[tile][half] = fmaf(scales[tile][half], of_slice[tile][half], sums[tile][half]);
      }
    }
  }

  // Returns four signed bytes 16 * (v - 8) for the values v in the upper nibbles of the bytes.
  static __device__ __forceinline__ uint32_t centered(uint32_t word) {
    // (word ^ 0x80808080) & 0xF0F0F0F0 in one instruction; the compiler would generate two.
    uint32_t bytes = 0;
    asm("lop3.b32 %0, %1, %2, %3, 0x28;"
        : "=r"(bytes)
        : "r"(word), "r"(0x80808080U), "r"(0xF0F0F0F0U));
    return bytes;
  }

  static __device__ __forceinline__ void multiply_block(const Params& p, const XOfLane& x, int k,
                                                        const unsigned char* block, int block_idx,
                                                        int lane, float (&sums)[kTiles][2]) {
    if (p.layout.format.scales == QuantizedScales::kF32) {
      multiply_block<QuantizedScales::kF32>(p, x, k, block, block_idx, lane, sums);
    } else if (p.layout.format.scales == QuantizedScales::kF16) {
      multiply_block<QuantizedScales::kF16>(p, x, k, block, block_idx, lane, sums);
    } else {
      multiply_block<QuantizedScales::kBF16>(p, x, k, block, block_idx, lane, sums);
    }
  }

  template <QuantizedScales kScales>
  static __device__ __forceinline__ void multiply_block(const Params& p, const XOfLane& x, int k,
                                                        const unsigned char* block, int block_idx,
                                                        int lane, float (&sums)[kTiles][2]) {
    constexpr int kSlices = kBlockColumns / kSliceColumns;
    constexpr int kSliceBytes = kTiles * packed_tile_bytes(kBits);
    const int first_slice = block_idx * kSlices;
    const int num_slices = min(k / kSliceColumns - first_slice, kSlices);
    const auto multiply = [&](int slice) {
      const int group = slice * kSliceColumns >> p.group_shift;
      float scales[kTiles][2];
      int zeros[kTiles][2] = {};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = group * kColumns + row_of(tile, half, lane);
          scales[tile][half] = load_scale<kScales>(block + p.layout.header.scales, at);
          if constexpr (!kHasZeros) continue;
          zeros[tile][half] = 16 * (block[p.layout.header.zeros + at] - 8);
        }
      }
      multiply_slice(block + p.layout.header.num_bytes + slice * kSliceBytes, x,
                     (first_slice + slice) * kSliceSteps, scales, zeros, lane, sums);
    };
    if (num_slices == kSlices) {
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) multiply(slice);
    } else {
#pragma unroll 1
      for (int slice = 0; slice < num_slices; ++slice) multiply(slice);
    }
  }

  template <QuantizedScales kScales>
  static __device__ __forceinline__ float load_scale(const unsigned char* scales, int at) {
    if constexpr (kScales == QuantizedScales::kF32) return load_as<float>(scales + 4 * at);
    const auto bits = load_as<uint16_t>(scales + 2 * at);
    return kScales == QuantizedScales::kF16 ? to_float(__ushort_as_half(bits))
                                            : __uint_as_float(static_cast<uint32_t>(bits) << 16);
  }

  // Adds up the sums of the warps and of other thread blocks, per row of the range.
  static __device__ __forceinline__ void add_up(const Params& p, int phase, const Range& range,
                                                const Shared& s, float scale) {
    const Gemm& gemm = p.gemms[phase];
    const int rows_per_column = gemm.rows_per_column;
    const int first_owned = range.first_panel + range.num_sent_panels;
    for (int i = static_cast<int>(threadIdx.x); i < range.num_columns * rows_per_column;
         i += kThreads) {
      const int column = i / rows_per_column % kColumns;
      const int of_up = i % rows_per_column;
      const int owned = i / rows_per_column / kColumns * rows_per_column + of_up;
      const int panel = first_owned + owned;
      float sum = 0;
      if (owned < range.num_panels - range.num_sent_panels) {
        const float* const parts = s.sums + owned * kWarps * kColumns + column;
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) sum += parts[warp * kColumns];
      }
      const int first = panel * range.row_segments;
      const int end = first + range.row_segments;
      RangeEnds other = range.ends;
      for (int block = static_cast<int>(blockIdx.x) + 1; other.end < end; ++block) {
        const int block_first = other.end;
        other.advance();
        // The other thread block may have no blocks of this panel, or none at all.
        if (other.end > max(block_first, first)) {
          sum += take(inbox(p, phase, block, of_up) + column * 4);
        }
      }
      s.sums[num_panel_sums(range) + i] = sum * scale;
    }
  }

  // The sum of the values that all warps of another thread block sent.
  static __device__ __forceinline__ float take(std::byte* inbox) {
    uint32_t words[kWarps];
    bool all = false;
    while (!all) {
      all = true;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) {
        receive(inbox + warp * kColumns * 4, words[warp]);
        all = all && has_arrived(words[warp]);
      }
    }
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      send(inbox + warp * kColumns * 4, kEmptyWord);
      sum += __uint_as_float(words[warp]);
    }
    return sum;
  }
};

// Calls body(weights, ranks) with the kind of weights and the number of ranks as a constant.
template <typename Body>
void with_packed_kernel(DType dtype, bool has_zeros, int num_ranks, const Body& body) {
  with_half_type(dtype, [&]<typename T>(std::type_identity<T>) {
    with_bool(has_zeros, [&](auto zeros) {
      with_ranks(num_ranks,
                 [&](auto ranks) { body(std::type_identity<PackedWeights<T, zeros()>>(), ranks); });
    });
  });
}

}  // namespace tail

Status load_packed_tails(int num_ranks) {
  KernelLoader loader;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const bool has_zeros : {false, true}) {
      tail::with_packed_kernel(dtype, has_zeros, num_ranks,
                               [&]<typename Weights>(std::type_identity<Weights>, auto ranks) {
                                 loader.load(&tail::layer_tail_gemm_kernel<Weights, ranks()>);
                               });
    }
  }
  return loader.status();
}

void run_packed_tail(const LaunchContext& context, int num_blocks, DType dtype,
                     const tail::Params& p) {
  tail::with_packed_kernel(dtype, p.layout.format.has_zeros, p.peers.num_ranks,
                           [&]<typename Weights>(std::type_identity<Weights>, auto ranks) {
                             tail::launch<Weights, ranks()>(context, num_blocks, p);
                           });
}

}  // namespace quire::cuda

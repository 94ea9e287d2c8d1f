// A histogram of tokens by descending weight: the number of tokens per bin, and the sum of their
// weights.
//
// Each token adds the difference between the largest weight of its step of 1/64 nat and its own
// weight, in fixed point. Integer sums have the same bits in any order, and are exact to 2^-29.
#pragma once

#include "cuda/sample/logits.cuh"

namespace quire::cuda {

inline constexpr int kNumBins = 2048;
inline constexpr double kStepsPerNat = 64.0;     // so the bins of a whole row reach to e^-32
inline constexpr float kDeficitBias = 0x1p-12F;  // keeps rounding errors from making a deficit
                                                 // negative

// Converts a logit to its weight exp((logit - largest) / temperature), and to steps below the
// largest.
struct WeightScale {
  double largest;
  double inverse;  // of the temperature
  float largest_f;
  float scale;        // steps per unit of logits
  float scale_error;  // exact scale - `scale`

  __device__ WeightScale(float max_logit, double inverse_temperature)
      : largest(max_logit),
        inverse(inverse_temperature),
        largest_f(max_logit),
        scale(static_cast<float>(inverse_temperature * kStepsPerNat)),
        scale_error(
            static_cast<float>(inverse_temperature * kStepsPerNat - static_cast<double>(scale))) {}

  // The number of steps, rounded; it never increases with the logit. A token's step is the integer
  // part.
  __device__ __forceinline__ float steps(float logit) const { return (largest_f - logit) * scale; }
  // The exact number of steps minus `step`, to about 1e-8. It corrects the rounding errors of the
  // subtraction and the product in steps().
  __device__ __forceinline__ float above(int step, float logit) const {
    const float distance = largest_f - logit;
    const float back = distance - largest_f;
    const float lost = (largest_f - (distance - back)) - (logit + back);
    const float rounded = distance * scale;
    const float error = fmaf(distance, scale, -rounded) + lost * scale + distance * scale_error;
    return (rounded - static_cast<float>(step)) + error;
  }
  // Uses the CPU's formula.
  __device__ double weight(float logit) const {
    return exp((static_cast<double>(logit) - largest) * inverse);
  }
};

struct Histogram {
  uint32_t count[kNumBins];
  uint32_t deficit[kNumBins];  // in 2^-29
  uint32_t carry[kNumBins];    // of `deficit`, in units of 2^32

  __device__ void clear() {
    for (int b = static_cast<int>(threadIdx.x); b < kNumBins; b += static_cast<int>(blockDim.x)) {
      count[b] = deficit[b] = carry[b] = 0;
    }
    __syncthreads();
  }

  // above: WeightScale::above() for the token's step, in [0, 1) except for rounding.
  __device__ __forceinline__ void add(int bin, float above) {
    const float y = above * static_cast<float>(1 / kStepsPerNat);
    const float deficits = y * (1.0F - y * (0.5F - y * (1.0F / 6.0F)));  // 1 - exp(-y)
    const auto units = static_cast<uint32_t>((deficits + kDeficitBias) * 0x1p29F + 0.5F);
    atomicAdd(&count[bin], 1U);
    const uint32_t before = atomicAdd(&deficit[bin], units);
    if (before + units < before) atomicAdd(&carry[bin], 1U);
  }
  __device__ __forceinline__ void add(int bin) { atomicAdd(&count[bin], 1U); }

  // The sum of weights of the bin's tokens, all of which are in step `step`.
  __device__ double mass(int bin, int step) const {
    const double deficits = static_cast<double>(carry[bin]) * 8.0 + deficit[bin] * 0x1p-29;
    return (static_cast<double>(count[bin]) * (1.0 + kDeficitBias) - deficits) *
           exp(-step / kStepsPerNat);
  }
};

// The first bin at which the running sum of all bins' values reaches a target.
struct ThresholdBin {
  int bin;        // kNumBins: the sum never reaches the target
  double before;  // the sum of the values before it
  double total;   // the sum of all values
};

// Sums value(bin) over kNumBins bins in one fixed order, and finds the bin at which the sum reaches
// the target, which is a fraction of the total if `of_total`.
template <typename Value>
__device__ ThresholdBin find_threshold_bin(double target, bool of_total, Value value) {
  __shared__ double warp_sums[32];
  __shared__ ThresholdBin found;
  const auto thread = static_cast<int>(threadIdx.x);
  const int per_thread = kNumBins / static_cast<int>(blockDim.x);
  const int lane = thread % 32;
  double mine = 0;
  for (int b = 0; b < per_thread; ++b) mine += value(thread * per_thread + b);
  double upto = mine;
  for (int distance = 1; distance < 32; distance *= 2) {
    const double other = __shfl_up_sync(0xFFFFFFFFU, upto, distance);
    if (lane >= distance) upto += other;
  }
  if (lane == 31) warp_sums[thread / 32] = upto;
  if (thread == 0) found = {kNumBins, 0, 0};
  __syncthreads();
  double offset = 0;
  double total = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) {
    if (w == thread / 32) offset = total;
    total += warp_sums[w];
  }
  if (of_total) target *= total;
  // The lowest bin at which the running sum reaches the target.
  double before = offset + (upto - mine);
  for (int b = 0; b < per_thread; ++b) {
    const double here = value(thread * per_thread + b);
    if (here > 0 && before + here >= target) {
      atomicMin(&found.bin, thread * per_thread + b);
    }
    before += here;
  }
  __syncthreads();
  before = offset + (upto - mine);
  for (int b = 0; b < per_thread; ++b) {
    if (thread * per_thread + b == found.bin) found.before = before;
    before += value(thread * per_thread + b);
  }
  if (thread == 0) found.total = total;
  __syncthreads();
  const ThresholdBin threshold = found;
  __syncthreads();
  return threshold;
}

}  // namespace quire::cuda

// The activations of gated MLPs, and gates, computed in F32. T is the type of the result; it
// decides whether fast approximations are precise enough.
#pragma once

#include "ops/ops.h"

namespace quire::cuda {

// The error of the fast exponential and division is below the precision of 16-bit types.
template <typename T>
__device__ __forceinline__ float silu(float x) {
  if constexpr (sizeof(T) == 2) return __fdividef(x, 1.0F + __expf(-x));
  return x / (1.0F + expf(-x));
}

// x times the normal distribution's share below x.
__device__ __forceinline__ float gelu(float x) {
  return x * normcdff(x);
}

// Computes x / 2 (1 + tanh(u)) as x / (1 + exp(-2 u)).
template <typename T>
__device__ __forceinline__ float gelu_tanh(float x) {
  constexpr float kLinear = -1.5957691216F;   // -2 sqrt(2 / pi)
  constexpr float kCubic = -0.071354816273F;  // kLinear * 0.044715
  const float y = x * fmaf(kCubic, x * x, kLinear);
  if constexpr (sizeof(T) == 2) return __fdividef(x, 1.0F + __expf(y));
  return x / (1.0F + expf(y));
}

template <typename T>
__device__ __forceinline__ float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kSilu:
      return silu<T>(x);
    case Activation::kGelu:
      return gelu(x);
    default:
      return gelu_tanh<T>(x);
  }
}

__device__ __forceinline__ float open_gate(GateFunction function, float x) {
  switch (function) {
    case GateFunction::kSigmoid:
      return 1.0F / (1.0F + expf(-x));
    case GateFunction::kSoftplus:
      return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x)));
    default:
      return x;
  }
}

}  // namespace quire::cuda

// The activations of gated MLPs, and gates, computed in F32. T is the type of the result; it
// decides whether fast approximations are precise enough.
#pragma once

#include "ops/ops.h"

namespace quire::cuda {

// x / (1 + exp(y)). The error of the fast exponential and division is below the precision of 16-bit
// types.
template <typename T>
__device__ __forceinline__ float logistic_product(float x, float y) {
  if constexpr (sizeof(T) == 2) return __fdividef(x, 1.0F + __expf(y));
  return x / (1.0F + expf(y));
}

template <typename T>
__device__ __forceinline__ float silu(float x) {
  return logistic_product<T>(x, -x);
}

// An element of gated_mul(), except with kGelu. x / 2 (1 + tanh(u)) is x / (1 + exp(-2 u)).
template <typename T>
__device__ __forceinline__ float logistic_gate(Activation activation, float gate, float up) {
  float y = -gate;
  if (activation == Activation::kGeluTanh) {
    constexpr float kLinear = -1.5957691216F;   // -2 sqrt(2 / pi)
    constexpr float kCubic = -0.071354816273F;  // kLinear * 0.044715
    y = gate * fmaf(kCubic, gate * gate, kLinear);
  } else if (activation == Activation::kClampedSwiglu) {
    // These comparisons keep a NaN.
    gate = gate > kSwigluLimit ? kSwigluLimit : gate;
    up = up > kSwigluLimit ? kSwigluLimit : up < -kSwigluLimit ? -kSwigluLimit : up;
    up += 1.0F;
    y = -kSwigluAlpha * gate;
  }
  return logistic_product<T>(gate, y) * up;
}

// An element of gated_mul(). normcdff() is the normal distribution's cumulative function.
template <typename T>
__device__ __forceinline__ float gated_product(Activation activation, float gate, float up) {
  if (activation == Activation::kGelu) return gate * normcdff(gate) * up;
  return logistic_gate<T>(activation, gate, up);
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

// Operations that process each row independently. All enqueue; the caller has checked the shapes.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"
#include "ops/ops.h"

namespace quire::cuda {

// How an Ops object launches its kernels.
struct LaunchContext {
  CudaStream* stream = nullptr;
  bool overlap_start = false;  // LaunchShape::overlap_start
};

// out[i, :] = x[rows[i], :]; x and out have one type.
void run_gather_rows(const LaunchContext& context, const TensorView& x, const int32_t* rows,
                     const TensorView& out);
// out[i, :] = scale * x[rows[i], :]; x and out have one type.
void run_gather_scaled_rows(const LaunchContext& context, const TensorView& x, const int32_t* rows,
                            float scale, const TensorView& out);
// out = rms_norm(x), after x += *delta unless delta is null.
void run_rms_norm(const LaunchContext& context, const TensorView& x, const TensorView* delta,
                  const float* weight, float eps, const TensorView& out);
void run_gated_mul(const LaunchContext& context, Activation activation, const TensorView& gate_up,
                   const TensorView& out);
// x = cap * tanh(x / cap); x is F32.
void run_soft_cap(const LaunchContext& context, float cap, const TensorView& x);
void run_rope_angles(const LaunchContext& context, const float* inv_freq, float attention_factor,
                     const int32_t* positions, const TensorView& cos_sin);
// out[t, n] += bias[n]; out is F32, the bias of any float type.
void run_add_bias(const LaunchContext& context, const TensorView& bias, const TensorView& out);
void run_rope_and_cache(const LaunchContext& context, const RopeAndCache& args);
// Launches an empty kernel in place of a small operation between two products, for measurements.
void run_pause(const LaunchContext& context);

// Kernels of weight loading.
//
// out[i] = x[i], converted; x may be pinned host memory.
void run_convert(const LaunchContext& context, const TensorView& x, const TensorView& out);
// Fills out[i, j] as RepeatedRows defines it; `pool` is a copy of its numbers on the device.
void run_fill_repeated(const LaunchContext& context, const RepeatedRows& rows, const void* pool,
                       const TensorView& out);

}  // namespace quire::cuda

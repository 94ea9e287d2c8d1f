// The operations on separate rows: norms, activations, rotation.
#pragma once

#include <cstdint>

#include "ops/latent_ops.h"
#include "ops/ops.h"

namespace quire::cpu {

// out = x / sqrt(mean(x^2) + eps) * weight over n elements; out may be x.
void rms_norm_row(const float* x, const float* weight, float eps, int64_t n, float* out);
// The two parts of an RMSNorm whose mean is over more than one row: the sum of squares, and then
// out = x * scale * weight.
float sum_of_squares_row(const float* x, int64_t n);
void scale_row(const float* x, float scale, const float* weight, int64_t n, float* out);
// x += delta.
void add_row(float* x, const float* delta, int64_t n);
// out[i] = activation(gate[i]) * up[i].
void gated_mul_row(Activation activation, const float* gate, const float* up, int64_t n,
                   float* out);
float open_gate(GateFunction function, float x);
// x[i] *= function(gates[i / (n / num_gates)]).
void gate_row(GateFunction function, const float* gates, int64_t num_gates, int64_t n, float* x);
// x[i] = cap * tanh(x[i] / cap).
void soft_cap_row(float cap, float* x, int64_t n);
// Runs RopeAndCache for one token; the caller has checked the shapes.
void rope_and_cache_row(const RopeAndCache& args, int64_t token);
// Runs LatentRopeAndCache for one token; the caller has checked the shapes.
void latent_rope_and_cache_row(const LatentRopeAndCache& args, int64_t token);
float position_scale(const PositionScale& scale, int32_t position);
// Writes to cos_sin the `half` cosines and then the `half` sines of position * inv_freq, times
// factor.
void rope_angles_row(const float* inv_freq, float factor, int32_t position, int64_t half,
                     float* cos_sin);

inline constexpr int kMaxHeadDim = 512;
// The maximum size of the normalized part and of the rotated part of a latent vector. It is at
// least kMaxAttentionDim of attention/support.h, so that every planned model fits.
inline constexpr int kMaxLatentDim = 1024;

}  // namespace quire::cpu

// Sums in one fixed order, so that the same input gives the same bits.
#pragma once

namespace quire::cuda {

// Sums over each aligned group of `width` lanes (a power of two up to 32). All lanes of the warp
// call it, and each gets the sum of its group.
__device__ __forceinline__ float warp_sum(float x, int width = 32) {
  for (int distance = width / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, distance);
  }
  return x;
}

// Sums over a one-dimensional thread block of whole warps; every thread gets the sum. Call it once
// per kernel, or with a barrier between two calls.
__device__ __forceinline__ float block_sum(float x) {
  __shared__ float of_warp[32];
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  x = warp_sum(x);
  if (lane == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_sum(lane < num_warps ? of_warp[lane] : 0.0F);
}

}  // namespace quire::cuda

// Defines the launch functions of MmaLaunchers for one query type.
#pragma once

#include "cuda/attention/native/instances.h"
#include "cuda/attention/native/rows16.cuh"
#include "cuda/attention/native/tile_kernel.cuh"
#include "cuda/base/launch.h"

namespace quire::cuda::native {

// Calls `visit` with the Config of this cache and head dimension.
template <typename Q, class Visit>
void with_config(DType kv, int padded_dim, Visit visit) {
  const auto with_kv = [&]<typename Kv>(Kv) {
    if (padded_dim == 64) return visit(Config<Q, Kv, 64>());
    if (padded_dim == 128) return visit(Config<Q, Kv, 128>());
    return visit(Config<Q, Kv, 256>());
  };
  if (kv == DType::kF8E4M3) return with_kv(__nv_fp8_e4m3());
  return with_kv(Q());
}

template <class C>
void launch_rows16(CudaStream& stream, const Params& p) {
  using K = Rows16<C>;
  const dim3 grid(static_cast<unsigned>(p.num_splits), static_cast<unsigned>(p.num_heads / p.group),
                  static_cast<unsigned>(p.num_reqs));
  QUIRE_LAUNCH(stream, rows16_kernel<C>,
               (LaunchShape{.grid = grid, .block = K::kThreads, .shared_bytes = K::kSharedBytes}),
               p);
}

template <class C>
void launch_tile(CudaStream& stream, const Params& p) {
  using K = TileKernel<C>;
  // The value of first_tile() for the end of the last request.
  const int64_t num_tiles = int64_t{p.num_tokens} * p.group / kTileRows + p.num_reqs;
  const dim3 grid(static_cast<unsigned>(num_tiles), static_cast<unsigned>(p.num_heads / p.group),
                  static_cast<unsigned>(p.num_splits));
  QUIRE_LAUNCH(stream, tile_kernel<C>,
               (LaunchShape{.grid = grid, .block = K::kThreads, .shared_bytes = K::kSharedBytes}),
               p);
}

template <typename Q>
MmaLaunchers make_mma_launchers() {
  return {.rows16 =
              [](CudaStream& stream, const Params& p, DType kv, int padded_dim) {
                with_config<Q>(kv, padded_dim, [&]<class C>(C) { launch_rows16<C>(stream, p); });
              },
          .tile =
              [](CudaStream& stream, const Params& p, DType kv, int padded_dim) {
                with_config<Q>(kv, padded_dim, [&]<class C>(C) { launch_tile<C>(stream, p); });
              }};
}

}  // namespace quire::cuda::native

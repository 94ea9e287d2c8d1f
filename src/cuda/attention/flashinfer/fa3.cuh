// The parts that the instances of FlashInfer's FA3 kernels share: the order of work, and the
// epilogue. The macro omits FlashInfer's list of CUTLASS headers, because FA3 needs only the few
// below.
#pragma once

#define FLASHINFER_CUTLASS_UTILS_CUH_
#include <cutlass/arch/memory.h>
#include <cutlass/cutlass.h>
#include <cutlass/numeric_types.h>

#include <cute/tensor.hpp>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>

namespace quire::cuda::flashinfer_backend {

// Thread blocks take items in snake order: the block with the longest item of one round gets the
// shortest item of the next.
CUTLASS_DEVICE int snake_item(int round) {
  const int num_blocks = static_cast<int>(gridDim.x);
  const int block = static_cast<int>(blockIdx.x);
  return round * num_blocks + (round % 2 == 0 ? block : num_blocks - 1 - block);
}

// The functions of FlashInfer's schedule interface through which warps would exchange work items;
// this schedule needs none.
struct IndependentSchedule {
  CUTLASS_DEVICE void init_consumer() const {}
  template <typename Params, typename WorkTileInfo>
  CUTLASS_DEVICE void prefetch_next_work(const Params&, WorkTileInfo&) const {}
  template <typename WorkTileInfo>
  CUTLASS_DEVICE void broadcast_next_work(WorkTileInfo&) const {}
};

// FlashInfer's epilogue with a different synchronization of a tile's results in shared memory. In
// the original, each warp group arrives at a barrier and then waits at the same barrier. Its own
// arrivals let it pass, so it reads data that the other group has not written yet: under
// compute-sanitizer's racecheck, the results are wrong. racecheck still reports that the next
// tile's values overwrite results that are being read, although barrier_O orders these accesses:
// consumers arrive at it through its cluster address.
template <typename Traits, bool kGathered>
struct Fa3Epilogue : flashinfer::CollectiveEpilogue<Traits> {
  using Base = flashinfer::CollectiveEpilogue<Traits>;
  using Element = typename Traits::DTypeO;

  template <typename BlockCoord, typename Shared, typename Out, typename Lse, typename TiledMma>
  CUTLASS_DEVICE void store(const typename Base::Params& params, const Out& out, const Lse&,
                            Shared& shared, TiledMma mma, int thread, const BlockCoord& coord) {
    store_rows(params, out, shared, mma, thread, coord, cute::get<5>(coord));
  }

  // Stores the rows of a tile that belong to q_len query tokens.
  template <typename BlockCoord, typename Shared, typename Out, typename TiledMma>
  CUTLASS_DEVICE static void store_rows(const typename Base::Params& params, const Out& out,
                                        Shared& shared, TiledMma mma, int thread,
                                        const BlockCoord& coord, int q_len) {
    using cutlass::arch::NamedBarrier;
    using TileShape = typename Base::TileShape_PDV;
    const int tile = cute::get<0>(coord);
    const int head = cute::get<1>(coord);
    const int first_token = cute::get<3>(coord);
    auto shared_out =
        cute::make_tensor(cute::make_smem_ptr(shared.smem_o.data()), typename Base::SmemLayoutO{});
    auto rounded = cute::make_fragment_like<Element>(out);
#pragma unroll
    for (int i = 0; i < cute::size(out); ++i) rounded(i) = Element(out(i));
    const auto copy = cute::make_tiled_copy_C(typename Base::SmemCopyAtomO{}, mma);
    const auto my_copy = copy.get_thread_slice(thread);

    // The results reuse the shared memory of the values, which all warp groups have read by now.
    NamedBarrier::sync(Base::NUM_MMA_THREADS,
                       static_cast<int>(flashinfer::NamedBarriers::kValueEmpty));
    cute::copy(copy, my_copy.retile_S(rounded), my_copy.partition_D(shared_out));
    // TMA writes the next tile's values there through another proxy.
    if constexpr (kGathered) cutlass::arch::fence_view_async_shared();
    NamedBarrier::sync(Base::NUM_MMA_THREADS,
                       cutlass::arch::ReservedNamedBarriers::EpilogueBarrier);
    flashinfer::write_O<Base::NUM_COPY_THREADS>(
        params.O_ptr, typename Base::TiledCopyO{}, params.layout_O, cute::select<0, 1>(TileShape{}),
        shared_out, thread, tile, head, first_token, q_len, 0);
  }
};

}  // namespace quire::cuda::flashinfer_backend

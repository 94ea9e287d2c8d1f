// The time of a sum over GPUs and the RMSNorm after it, in a graph: NCCL and a norm, against one
// kernel over peer memory, in one step and in two. `bench_cuda_sums [NUM_GPUS]` prints a row per
// size; the ratio is that of the faster kernel to NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "cuda/base/device_info.h"
#include "cuda/ops/peer_sums.h"

namespace quire::cuda {
namespace {

Status run(int num_gpus) {
  std::vector<int> devices(static_cast<size_t>(num_gpus));
  std::iota(devices.begin(), devices.end(), 0);
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<NcclRanks> nccl, NcclRanks::connect(devices));
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<PeerSums> peers, PeerSums::connect(devices));
  nccl->on_failure([&] { peers->release(); });
  std::vector<std::unique_ptr<CudaStream>> streams;
  std::vector<CudaStream*> by_rank;
  for (const int device : devices) {
    QUIRE_RETURN_IF_ERROR(use_device(device));
    QUIRE_ASSIGN_OR_RETURN(streams.emplace_back(), CudaStream::create());
    by_rank.push_back(streams.back().get());
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<SumTimes> times,
                         measure_sums(by_rank, *nccl, *peers, measured_sum_rows()));
  fmt::print("gpus,KiB,nccl_us,one_step_us,two_steps_us,ratio\n");
  for (const SumTimes& at : times) {
    fmt::print("{},{},{:.2f},{:.2f},{:.2f},{:.2f}\n", num_gpus, at.num_bytes / 1024, at.nccl_us,
               at.one_step_us, at.two_steps_us,
               std::min(at.one_step_us, at.two_steps_us) / at.nccl_us);
  }
  return {};
}

}  // namespace
}  // namespace quire::cuda

int main(int argc, char** argv) {
  const int num_gpus = argc > 1 ? std::atoi(argv[1]) : 2;
  const quire::Status status = quire::cuda::run(num_gpus);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", status.message());
  return 1;
}

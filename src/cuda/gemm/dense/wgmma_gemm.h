// out[t, n] = sum_k x[t, k] * w[n, k] + bias[n] on Hopper's tensor cores (wgmma), for batches of 17
// to a few hundred rows. cuBLASLt's tiles often leave a last wave of thread blocks almost empty
// there. These kernels have tiles of more widths, and products of few tiles split K over the thread
// blocks of a cluster, which add up in a fixed order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/gemm/dense/dense_kernels.h"

namespace quire::cuda {

// One way to compute a product. A cluster has cluster_tokens * cluster_weights * splits thread
// blocks. The thread blocks of one split load each tile that they share once, by multicast.
struct WgmmaPlan {
  int tile = 0;  // index of wgmma_tile
  int cluster_tokens = 1;
  int cluster_weights = 1;
  int splits = 1;  // of K

  int cluster_size() const { return cluster_tokens * cluster_weights * splits; }
};

struct WgmmaTile {
  int weights;         // rows of w, which are columns of out
  int tokens;          // rows of x
  bool weights_are_a;  // A has 128 or 256 rows and B a multiple of 32 up to 256
};

int num_wgmma_tiles();
const WgmmaTile& wgmma_tile(int tile);
// For example "224x128 c1x2s1": weights x tokens of a tile, then weights x tokens of a cluster and
// its splits of K.
std::string wgmma_plan_name(const WgmmaPlan& plan);

class WgmmaGemm {
 public:
  // Returns null if the device's compute capability is not 9.0.
  static Result<std::unique_ptr<WgmmaGemm>> create(const LaunchContext& context);

  // Accepts F16 or BF16 with n and k multiples of 8 and 16-byte aligned addresses. With gated_out,
  // n must be a multiple of 16 and there is no bias; gated_out is then computed without writing out
  // to memory.
  static bool takes(const GemmCall& call);
  // Up to max_count plans, in the order of their estimated time.
  std::vector<WgmmaPlan> plans(const GemmCall& call, size_t max_count) const;
  // Whether the plan is valid for the call, as run() requires.
  bool fits(const GemmCall& call, const WgmmaPlan& plan) const;
  // Enqueues; capturable.
  Status run(const GemmCall& call, const WgmmaPlan& plan);

 private:
  static constexpr int kMaxClusterSize = 8;  // supported by every Hopper device

  explicit WgmmaGemm(const LaunchContext& context) : context_(context) {}
  double estimate_us(const GemmCall& call, const WgmmaPlan& plan) const;

  LaunchContext context_;
  std::array<int, kMaxClusterSize + 1> max_clusters_ = {};  // resident at once, by cluster size
};

}  // namespace quire::cuda

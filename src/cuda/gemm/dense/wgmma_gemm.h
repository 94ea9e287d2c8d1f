// out[t, n] = sum_k x[t, k] * w[n, k] + bias[n] on Hopper's tensor cores (wgmma), for batches of 17
// to a few hundred rows. For these, the last wave of cuBLASLt's thread blocks is often almost
// empty. The kernels here have more tile sizes. Products with few tiles split K over the thread
// blocks of a cluster, which add up their parts in a fixed order.
//
// With E4M3 weights and a scale per row, x is E4M3 too. E4M3 has tiles for more numbers of tokens,
// so that a step of 300 rows takes two tiles of 152.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/gemm/dense/dense_kernels.h"

namespace quire::cuda {

// One way to compute a product. A cluster has cluster_tokens * cluster_weights * splits thread
// blocks. The thread blocks of one split load each shared tile once, by multicast.
struct WgmmaPlan {
  int tile = 0;  // below num_wgmma_tiles()
  int cluster_tokens = 1;
  int cluster_weights = 1;
  int splits = 1;  // of K

  int cluster_size() const { return cluster_tokens * cluster_weights * splits; }
};

int num_wgmma_tiles();
// For example "224x128 c1x2s1": weights x tokens of a tile, then weights x tokens of a cluster and
// its number of splits of K.
std::string wgmma_plan_name(const WgmmaPlan& plan);

class WgmmaGemm {
 public:
  // Returns null if the device's compute capability is not 9.0.
  static Result<std::unique_ptr<WgmmaGemm>> create(const LaunchContext& context);

  // Accepts F16 or BF16, or weights in E4M3 with a scale per row; n is a multiple of 8, and rows of
  // w are multiples of 16 bytes. Addresses are aligned to 16 bytes. With gated_out, n must be a
  // multiple of 16 and there must be no bias; gated_out is then computed without writing `out`.
  static bool takes(const GemmCall& call);
  // Up to max_count plans, ordered by estimated time.
  std::vector<WgmmaPlan> plans(const GemmCall& call, size_t max_count) const;
  // Whether the plan is valid for the call. run() requires this.
  bool fits(const GemmCall& call, const WgmmaPlan& plan) const;
  // Enqueues; capturable. With E4M3 weights, call.x is E4M3 too, and x_scales has the scale of each
  // of its rows.
  Status run(const GemmCall& call, const WgmmaPlan& plan, const float* x_scales = nullptr);

 private:
  static constexpr int kMaxClusterSize = 8;  // supported by every Hopper device

  explicit WgmmaGemm(const LaunchContext& context) : context_(context) {}
  double estimate_us(const GemmCall& call, const WgmmaPlan& plan) const;

  LaunchContext context_;
  std::array<int, kMaxClusterSize + 1> max_clusters_ = {};  // resident at the same time, by cluster
                                                            // size
};

}  // namespace quire::cuda

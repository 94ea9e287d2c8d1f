#include "cuda/gemm/dense/wgmma_gemm.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/base/stream.h"
#include "cuda/device/l2_policy.h"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"
#include "cuda/gemm/dense/kernels/wgmma_tensor_maps.h"

namespace quire::cuda {
namespace {

struct WgmmaTile {
  int weights;         // rows of w, which are columns of out
  int tokens;          // rows of x
  bool weights_are_a;  // A has 128 or 256 rows and B a multiple of 8 up to 256
  bool is_fp8;
};

// The tiles of E4M3 operands come last, in ascending order.
#define QUIRE_WGMMA_TILE(weights, tokens, weights_are_a) {weights, tokens, weights_are_a, false},
#define QUIRE_WGMMA_FP8_TILE(tokens) {wgmma::kFp8Weights, tokens, true, true},
constexpr WgmmaTile kTiles[] = {QUIRE_WGMMA_TILES(QUIRE_WGMMA_TILE)
                                    QUIRE_WGMMA_FP8_TILES(QUIRE_WGMMA_FP8_TILE)};
#undef QUIRE_WGMMA_FP8_TILE
#undef QUIRE_WGMMA_TILE

constexpr auto kFirstFp8Tile =
    static_cast<int>(std::ranges::find(kTiles, true, &WgmmaTile::is_fp8) - std::begin(kTiles));

// A product's size in tiles and in clusters.
struct Grid {
  int64_t token_tiles;
  int64_t token_clusters;
  int64_t weight_clusters;
  int64_t num_k_blocks;

  int64_t num_clusters() const { return token_clusters * weight_clusters; }
};

Grid grid_of(const GemmCall& call, const WgmmaPlan& plan) {
  const WgmmaTile& tile = kTiles[plan.tile];
  Grid grid = {};
  grid.token_tiles = ceil_div(call.x.shape[0], int64_t{tile.tokens});
  grid.token_clusters = ceil_div(grid.token_tiles, int64_t{plan.cluster_tokens});
  grid.weight_clusters = ceil_div(call.w.shape[0], int64_t{tile.weights} * plan.cluster_weights);
  constexpr int64_t kBlockBytes = 2 * wgmma::kBlockK;
  grid.num_k_blocks =
      ceil_div(call.w.shape[1] * static_cast<int64_t>(dtype_bytes(call.w.dtype)), kBlockBytes);
  return grid;
}

// The division of a grid's tiles among resident clusters. The splits of a cluster compute different
// whole tiles. If at most one tile per cluster is left then, the splits divide its K.
struct Schedule {
  int64_t num_clusters;
  int64_t num_whole_tiles;

  Schedule(int64_t num_tiles, int64_t max_clusters, int splits)
      : num_clusters(std::min(num_tiles, max_clusters)), num_whole_tiles(num_tiles) {
    const int64_t rest = num_tiles % (num_clusters * splits);
    if (splits > 1 && rest <= num_clusters) num_whole_tiles -= rest;
  }
};

size_t shared_bytes(const WgmmaTile& tile, int num_stages) {
  if (tile.is_fp8) return wgmma::fp8_shared_bytes(tile.tokens, num_stages);
  return wgmma::shared_bytes(tile.weights, tile.tokens, tile.weights_are_a, num_stages);
}

// The number of stages of the deepest ring within the limit.
int num_stages(const WgmmaTile& tile, size_t max_bytes) {
  int count = wgmma::kMaxStages;
  while (count > 0 && shared_bytes(tile, count) > max_bytes) --count;
  return count;
}

bool is_gated(const GemmCall& call) {
  return call.gated_out.data != nullptr;
}

// The type of activations, bias and 16-bit outputs of a call before x is quantized.
DType type_of(const GemmCall& call) {
  return call.has_fp8_weights() ? call.x.dtype : call.w.dtype;
}

// Whether each thread block of a cluster loads whole groups of swizzled rows of x.
bool divides_tokens(const WgmmaTile& tile, const WgmmaPlan& plan) {
  return tile.tokens % (plan.cluster_weights * wgmma::kSwizzleRows) == 0;
}

// With E4M3, the plan with the smallest tile that covers the rows by the same number of tiles. So a
// plan for a bucket of rows multiplies few rows beyond num_rows.
WgmmaPlan fitted(WgmmaPlan plan, int64_t num_rows) {
  if (!kTiles[plan.tile].is_fp8) return plan;
  const int64_t num_tiles = ceil_div(num_rows, int64_t{kTiles[plan.tile].tokens});
  for (int tile = kFirstFp8Tile; tile < plan.tile; ++tile) {
    if (kTiles[tile].tokens * num_tiles < num_rows || !divides_tokens(kTiles[tile], plan)) continue;
    plan.tile = tile;
    break;
  }
  return plan;
}

wgmma::Kernel kernel_of(DType dtype, int tile) {
  if (dtype == DType::kF8E4M3) return wgmma::kFp8Kernels[tile - kFirstFp8Tile];
  return dtype == DType::kF16 ? wgmma::kF16Kernels[tile] : wgmma::kBf16Kernels[tile];
}

}  // namespace

int num_wgmma_tiles() {
  return static_cast<int>(std::size(kTiles));
}

std::string wgmma_plan_name(const WgmmaPlan& plan) {
  const WgmmaTile& tile = kTiles[plan.tile];
  return fmt::format("{}x{} c{}x{}s{}", tile.weights, tile.tokens, plan.cluster_weights,
                     plan.cluster_tokens, plan.splits);
}

Result<std::unique_ptr<WgmmaGemm>> WgmmaGemm::create(const LaunchContext& context) {
  if (context.stream->limits().compute_capability != 90) return std::unique_ptr<WgmmaGemm>();
  std::unique_ptr<WgmmaGemm> gemm(new WgmmaGemm(context));
  // A thread block of any tile fills an SM, so the limits of one kernel apply to all.
  const WgmmaTile& tile = kTiles[0];
  const size_t bytes =
      shared_bytes(tile, num_stages(tile, context.stream->limits().max_shared_bytes));
  const auto* kernel = reinterpret_cast<const void*>(wgmma::kBf16Kernels[0]);
  QUIRE_CUDA_RETURN_IF_ERROR(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  for (unsigned size = 1; size <= kMaxClusterSize; ++size) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {size, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = size;
    config.blockDim = wgmma::kThreads;
    config.dynamicSmemBytes = bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    QUIRE_CUDA_RETURN_IF_ERROR(
        cudaOccupancyMaxActiveClusters(&gemm->max_clusters_[size], kernel, &config));
  }
  return gemm;
}

bool WgmmaGemm::takes(const GemmCall& call) {
  constexpr int64_t kAlignment = 16;  // of a row of w or x, in bytes
  const int64_t k = call.w.shape[1];
  const bool has_sizes = call.x.shape[0] >= 1 && call.w.shape[0] % 8 == 0 && k > 0 &&
                         k * static_cast<int64_t>(dtype_bytes(call.w.dtype)) % kAlignment == 0;
  const bool has_types = type_of(call) == DType::kF16 || type_of(call) == DType::kBF16;
  if (!has_types || !has_sizes || call.scale_rows > 0) return false;
  if (is_gated(call) && (call.w.shape[0] % 16 != 0 || call.bias.data != nullptr ||
                         call.gated_out.dtype != type_of(call))) {
    return false;
  }
  return is_aligned({call.w.data, call.x.data, call.out.data, call.gated_out.data}, kAlignment);
}

bool WgmmaGemm::fits(const GemmCall& call, const WgmmaPlan& plan) const {
  using wgmma::kSwizzleRows;
  const WgmmaTile& tile = kTiles[plan.tile];
  if (!takes(call) || call.has_fp8_weights() != tile.is_fp8) return false;
  const int b_pairs = (tile.weights_are_a ? tile.tokens : tile.weights) / 16;
  const int size = plan.cluster_size();
  // With E4M3, thread blocks may store different numbers of pairs.
  if (size > kMaxClusterSize || (b_pairs % plan.splits != 0 && !tile.is_fp8)) return false;
  const int weight_rows = is_gated(call) ? 2 * kSwizzleRows : kSwizzleRows;
  if (tile.weights % (plan.cluster_tokens * weight_rows) != 0) return false;
  if (!divides_tokens(tile, plan)) return false;
  const int max_clusters = max_clusters_[static_cast<size_t>(size)];
  const Grid grid = grid_of(call, plan);
  return max_clusters > 0 && grid.num_k_blocks >= plan.splits;
}

// A model fitted to times on an H200. It only has to rank the best plan among the first few,
// because these are measured.
double WgmmaGemm::estimate_us(const GemmCall& call, const WgmmaPlan& plan) const {
  constexpr double kClocksPerUs = 1700;
  constexpr double kMultiplyAddsPerClock = 1843;  // of an SM's 2048
  constexpr double kSharedBytesPerClock = 128;    // of an SM, read and written
  constexpr double kL2BytesPerClock = 64;         // of an SM
  constexpr double kStoredBytesPerUs = 2e4;       // of an SM, when all store at once
  constexpr double kMemoryBytesPerUs = 4.5e6;
  constexpr double kMemoryBytesPerUsOfSm = 1e5;
  constexpr double kStartUs = 2;
  constexpr double kStoreUs = 0.3;
  constexpr double kSplitUs = 2;
  // With E4M3, the clocks of both warpgroups' turns, each of which ends with additions in F32.
  constexpr double kTurnClocks = 400;
  constexpr double kTurnClocksPerToken = 3.5;
  const WgmmaTile& tile = kTiles[plan.tile];
  const Grid grid = grid_of(call, plan);
  const int size = plan.cluster_size();
  const Schedule schedule(grid.num_clusters(), max_clusters_[static_cast<size_t>(size)],
                          plan.splits);
  const auto num_sms = static_cast<double>(schedule.num_clusters * size);

  // Clocks per block of K. Each instruction reads its 64 rows of A and all rows of B.
  constexpr int kRowBytes = 2 * wgmma::kBlockK;
  const int a_rows = tile.weights_are_a ? tile.weights : tile.tokens;
  const int b_rows = tile.weights_are_a ? tile.tokens : tile.weights;
  const int read_rows = a_rows / 64 * (64 + b_rows);
  double clocks =
      std::max({double{1.0} * a_rows * b_rows * wgmma::kBlockK / kMultiplyAddsPerClock,
                double{1.0} * (read_rows + a_rows + b_rows) * kRowBytes / kSharedBytesPerClock,
                (double{1.0} * tile.weights / plan.cluster_tokens +
                 double{1.0} * tile.tokens / plan.cluster_weights) *
                    kRowBytes / kL2BytesPerClock});
  if (tile.is_fp8) clocks = std::max(clocks, kTurnClocks + kTurnClocksPerToken * tile.tokens);
  // The time of a tile whose K is split among this number of thread blocks.
  const auto tile_us = [&](int splits) {
    const auto k_blocks = static_cast<double>(ceil_div(grid.num_k_blocks, int64_t{splits}));
    const double store_us = kStoreUs + 2.0 * a_rows * b_rows / splits / kStoredBytesPerUs;
    return k_blocks * clocks / kClocksPerUs + store_us;
  };
  const auto whole_rounds =
      static_cast<double>(ceil_div(schedule.num_whole_tiles, schedule.num_clusters * plan.splits));
  const bool is_split = schedule.num_whole_tiles < grid.num_clusters();
  const double multiply_us = whole_rounds * tile_us(1) + (is_split ? tile_us(plan.splits) : 0.0);
  const double read_us = static_cast<double>(call.w.num_bytes()) /
                         std::min(kMemoryBytesPerUs, num_sms * kMemoryBytesPerUsOfSm);
  return std::max(multiply_us, read_us) + kStartUs + (plan.splits > 1 ? kSplitUs : 0);
}

std::vector<WgmmaPlan> WgmmaGemm::plans(const GemmCall& call, size_t max_count) const {
  std::vector<std::pair<double, WgmmaPlan>> all;
  for (int tile = 0; tile < num_wgmma_tiles(); ++tile) {
    for (const int tokens : {1, 2, 4}) {
      for (const int weights : {1, 2}) {
        for (const int splits : {1, 2, 3, 4, 8}) {
          const WgmmaPlan plan = {tile, tokens, weights, splits};
          if (!fits(call, plan)) continue;
          const Grid grid = grid_of(call, plan);
          // Skips tiles that are mostly empty, thread blocks without a tile, and splits of products
          // that already fill the SMs.
          const int64_t num_rows = call.x.shape[0];
          if (kTiles[tile].is_fp8 ? fitted(plan, num_rows).tile != tile
                                  : kTiles[tile].tokens >= 2 * num_rows) {
            continue;
          }
          if (tokens > grid.token_tiles) continue;
          const int max_clusters = max_clusters_[static_cast<size_t>(plan.cluster_size())];
          const Schedule schedule(grid.num_clusters(), max_clusters, splits);
          const int64_t num_whole = schedule.num_whole_tiles;
          if (splits > 1 && num_whole > 0 &&
              (!kTiles[tile].is_fp8 || num_whole == grid.num_clusters())) {
            continue;
          }
          all.emplace_back(estimate_us(call, plan), plan);
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<WgmmaPlan> best;
  for (size_t i = 0; i < std::min(max_count, all.size()); ++i) best.push_back(all[i].second);
  return best;
}

Status WgmmaGemm::run(const GemmCall& call, const WgmmaPlan& chosen, const float* x_scales) {
  const WgmmaPlan plan = fitted(chosen, call.x.shape[0]);
  const WgmmaTile& tile = kTiles[plan.tile];
  const Grid grid = grid_of(call, plan);
  const bool is_read_once = grid.token_clusters == 1;
  wgmma::Params p;
  const int weight_rows = tile.weights / plan.cluster_tokens;
  p.is_gated = is_gated(call);
  QUIRE_ASSIGN_OR_RETURN(p.w, wgmma::weights_map(wgmma::as_pairs(call.w), p.is_gated, weight_rows));
  QUIRE_ASSIGN_OR_RETURN(
      p.x, wgmma::rows_map(wgmma::as_pairs(call.x), tile.tokens / plan.cluster_weights));
  const TensorView& out = p.is_gated ? call.gated_out : call.out;
  p.out = out.data;
  p.out_is_f32 = out.dtype == DType::kF32;
  p.bias = call.bias.data;
  p.is_f16 = (p.bias != nullptr ? call.bias : out).dtype == DType::kF16;
  p.w_scales = call.w_scales.as<const float>();
  p.x_scales = x_scales;
  p.num_columns = out.shape[1];
  p.num_rows = static_cast<int>(call.x.shape[0]);
  p.num_k_blocks = static_cast<int>(grid.num_k_blocks);
  p.token_clusters = static_cast<int>(grid.token_clusters);
  p.weight_clusters = static_cast<int>(grid.weight_clusters);
  p.cluster_tokens = plan.cluster_tokens;
  p.cluster_weights = plan.cluster_weights;
  p.splits = plan.splits;
  p.num_stages = num_stages(tile, context_.stream->limits().max_shared_bytes);
  p.w_policy = is_read_once ? kL2EvictFirst : kL2EvictNormal;
  const Schedule schedule(grid.num_clusters(),
                          max_clusters_[static_cast<size_t>(plan.cluster_size())], plan.splits);
  p.num_whole_tiles = static_cast<int>(schedule.num_whole_tiles);
  const LaunchShape shape = {
      .grid = static_cast<unsigned>(schedule.num_clusters * plan.cluster_size()),
      .block = wgmma::kThreads,
      .shared_bytes = shared_bytes(tile, p.num_stages),
      .overlap_start = context_.overlap_start,
      .cluster = static_cast<unsigned>(plan.cluster_size())};
  QUIRE_LAUNCH(*context_.stream, kernel_of(call.w.dtype, plan.tile), shape, p);
  return {};
}

}  // namespace quire::cuda

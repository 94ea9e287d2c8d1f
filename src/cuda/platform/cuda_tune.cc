#include <algorithm>

#include "cuda/base/device_info.h"
#include "cuda/tune/measure.h"
#include "platform/platform.h"
#include "platform/tune.h"

namespace quire {
namespace cuda {
namespace {

// The rest is for queries, workspaces and what the libraries take.
constexpr double kPoolShare = 0.6;

std::vector<TuningPoint> grid(const TuneConfig& config) {
  using Lengths = std::vector<int>;
  const Lengths batches = config.quick ? Lengths{1, 16, 256} : Lengths{1, 4, 16, 64, 256};
  const Lengths kv_lens = config.quick ? Lengths{1024, 8192} : Lengths{256, 1024, 4096, 16384};
  const Lengths prompts = config.quick ? Lengths{2048} : Lengths{512, 2048, 8192};
  std::vector<TuningPoint> points;
  for (const int kv_len : kv_lens) {
    for (const int num_reqs : batches) {
      points.push_back(tuning_point(config.shape, Phase::kDecode, num_reqs, 1, kv_len));
    }
  }
  for (const int num_tokens : prompts) {
    points.push_back(tuning_point(config.shape, Phase::kPrefill, 1, num_tokens, num_tokens));
  }
  return points;
}

AttentionSize size_of(const TuningPoint& point) {
  return {.num_reqs = point.num_reqs, .q_len = point.q_len, .kv_len = point.kv_len};
}

// Those that fit, and the pages of the largest.
struct FittingGrid {
  std::vector<TuningPoint> points;
  int64_t num_pages = 0;
};

FittingGrid fitting_grid(const TuneConfig& config) {
  const auto max_pages =
      static_cast<int64_t>(kPoolShare * static_cast<double>(free_device_bytes())) /
      AttentionTimer::page_bytes(config.shape);
  FittingGrid fitting;
  for (const TuningPoint& point : grid(config)) {
    const int64_t num_pages = AttentionTimer::num_pages(config.shape, size_of(point));
    if (num_pages >= max_pages) continue;
    fitting.points.push_back(point);
    fitting.num_pages = std::max(fitting.num_pages, num_pages);
  }
  return fitting;
}

}  // namespace
}  // namespace cuda

Result<TuneResult> tune_attention(const TuneConfig& config, const TuneProgress& progress) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Platform> platform,
      make_cuda_platform({.device_index = config.device_index, .weight_dtype = config.shape.q}));
  const Device& device = platform->device();
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    QUIRE_RETURN_IF_ERROR(platform->attention().select(config.shape, phase, device, {}).status());
  }
  const cuda::FittingGrid grid = cuda::fitting_grid(config);
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<cuda::AttentionTimer> timer,
                         cuda::AttentionTimer::create(config.shape, grid.num_pages));
  TuneResult result{.device = device.name, .rows = {}};
  for (const TuningPoint& point : grid.points) {
    for (AttentionBackend* backend :
         platform->attention().supporting(config.shape, point.phase, device)) {
      const Result<double> us = timer->time(*backend, point.phase, cuda::size_of(point));
      progress(point, backend->name(), us);
      if (us.ok()) result.rows.push_back({point, std::string(backend->name()), *us});
    }
  }
  return result;
}

}  // namespace quire

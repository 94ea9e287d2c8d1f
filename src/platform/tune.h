// Measuring the attention backends of a GPU, for AttentionSelector's table.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attn/tuning_table.h"

namespace quire {

struct TuneConfig {
  AttentionShape shape;
  int device_index = 0;
  bool quick = false;  // a few points only
};

// One backend at one point, as it is measured: the microseconds, or why not.
using TuneProgress =
    std::function<void(const TuningPoint& point, std::string_view backend, Result<double> us)>;

struct TuneResult {
  std::string device;  // its name
  std::vector<TuningRow> rows;
};

// Every backend that supports the shape, over a grid of batches and lengths within the free memory.
// Fails as cuda_status() where there is no GPU; a backend that fails at a point has no row there.
Result<TuneResult> tune_attention(const TuneConfig& config, const TuneProgress& progress);

}  // namespace quire

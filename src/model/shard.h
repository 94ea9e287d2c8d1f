#pragma once

#include <cstdint>

#include "model/model.h"

namespace quire {

// A contiguous part of a weight's rows or columns.
struct Slice {
  int64_t first = 0;
  int64_t count = 0;
};

// This rank's equal part of `total`, which the number of ranks must divide. Heads lie one after
// another, so that a part of the rows is a part of the heads where the heads divide too.
constexpr Slice shard(int64_t total, const Parallel& parallel) {
  const int64_t count = total / parallel.size;
  return {count * parallel.rank, count};
}

// Whether every dimension that is split divides; the error names the one that does not.
Status check_shards(const ModelConfig& config, const Parallel& parallel);

}  // namespace quire

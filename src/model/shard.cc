#include "model/shard.h"

#include <fmt/format.h>

namespace quire {

Status check_shards(const ModelConfig& config, const Parallel& parallel) {
  if (parallel.size < 1 || parallel.rank < 0 || parallel.rank >= parallel.size) {
    return invalid_argument(fmt::format(
        "[model] --tensor-parallel-size; got rank {} of {}, expected a rank below the size",
        parallel.rank, parallel.size));
  }
  struct Split {
    const char* name;
    int count;
  };
  for (const Split split : {Split{"num_attention_heads", config.num_heads},
                            Split{"num_key_value_heads", config.num_kv_heads},
                            Split{"intermediate_size", config.intermediate_size}}) {
    if (split.count % parallel.size != 0) {
      return invalid_argument(
          fmt::format("[model] --tensor-parallel-size {} does not divide {}; got {}, expected a "
                      "multiple",
                      parallel.size, split.name, split.count));
    }
  }
  return {};
}

}  // namespace quire

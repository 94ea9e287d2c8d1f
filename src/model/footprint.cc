#include "model/footprint.h"

#include <algorithm>
#include <cmath>

#include "base/saturated.h"
#include "model/shard.h"

namespace quire {
namespace {

Saturated bytes_of(DType dtype) {
  return static_cast<int64_t>(dtype_bytes(dtype));
}

}  // namespace

std::vector<KvGroup> make_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                    DType activation) {
  std::vector<KvGroup> groups;
  for (int layer = 0; layer < config.num_layers; ++layer) {
    // A window that no sequence outgrows is none: such layers share the group of full attention.
    int window = config.layer_windows[static_cast<size_t>(layer)];
    if (window >= limits.max_model_len) window = 0;
    auto group = std::ranges::find_if(
        groups, [window](const KvGroup& other) { return other.decode.window == window; });
    if (group == groups.end()) {
      AttentionShape shape;
      shape.num_heads = static_cast<int>(shard(config.num_heads, limits.parallel).count);
      shape.num_kv_heads = static_cast<int>(shard(config.num_kv_heads, limits.parallel).count);
      shape.head_dim = shape.head_dim_v = config.head_dim;
      shape.page_size = limits.page_size;
      shape.q = shape.out = activation;
      shape.kv = limits.kv_dtype;
      shape.scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim));
      shape.window = window;
      group = groups.insert(groups.end(), KvGroup{kv_layout(shape), shape, shape});
    }
    group->layers.push_back(layer);
  }
  assign_tables(groups);
  return groups;
}

void assign_tables(std::span<KvGroup> groups) {
  std::vector<int> windows;
  for (KvGroup& group : groups) {
    const auto found = std::ranges::find(windows, group.decode.window);
    group.table = std::min(static_cast<int>(found - windows.begin()), kMaxBlockTables - 1);
    if (found == windows.end()) windows.push_back(group.decode.window);
  }
}

std::vector<int> table_windows(std::span<const KvGroup> groups) {
  std::vector<int> windows;
  for (const KvGroup& group : groups) {
    const auto table = static_cast<size_t>(group.table);
    const int window = group.decode.window;
    if (table == windows.size()) {
      windows.push_back(window);
    } else {
      windows[table] = window == 0 || windows[table] == 0 ? 0 : std::max(windows[table], window);
    }
  }
  return windows;
}

int64_t estimate_weight_bytes(const ModelConfig& config, DType dtype) {
  return (Saturated(num_parameters(config)) * bytes_of(dtype)).get();
}

int64_t scratch_elements_per_token(const ModelConfig& config, const Parallel& parallel) {
  const int64_t q_size = shard(config.num_heads, parallel).count * config.head_dim;
  const int64_t kv_size = shard(config.num_kv_heads, parallel).count * config.head_dim;
  const int64_t intermediate = shard(config.intermediate_size, parallel).count;
  return std::max(3 * q_size + 2 * kv_size, 3 * intermediate);
}

int64_t estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                  DType activation) {
  const Saturated num_tokens = limits.max_num_tokens;
  const Saturated per_token =
      3 * Saturated(config.hidden_size) + scratch_elements_per_token(config, limits.parallel);
  const Saturated logits = Saturated(limits.max_num_logit_rows) * config.vocab_size;
  return (num_tokens * per_token * bytes_of(activation) +
          (num_tokens * config.head_dim + logits) * bytes_of(DType::kF32))
      .get();
}

}  // namespace quire

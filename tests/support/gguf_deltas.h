// Tensors of gated delta nets as llama.cpp's converter writes them (conversion/qwen.py).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::testing {

struct DeltaSizes {
  int64_t num_k_heads = 0;
  int64_t num_v_heads = 0;
  int64_t k_dim = 0;
  int64_t v_dim = 0;
  bool is_tiled = false;  // the value heads are reordered
};

// The parts' rows by group: of each group, its share of the first part, then of the second, and so
// on.
inline std::vector<float> rows_by_group(const std::vector<std::span<const float>>& parts,
                                        int64_t num_groups) {
  std::vector<float> rows;
  for (int64_t group = 0; group < num_groups; ++group) {
    for (const std::span<const float> part : parts) {
      const int64_t count = std::ssize(part) / num_groups;
      rows.insert(rows.end(), part.begin() + group * count, part.begin() + (group + 1) * count);
    }
  }
  return rows;
}

// Reorders value heads, which have the same number of elements each: head i of key head k moves
// from k * group + i to i * num_k_heads + k.
inline void tile_heads(std::span<float> heads, const DeltaSizes& sizes) {
  if (!sizes.is_tiled) return;
  const std::vector<float> before(heads.begin(), heads.end());
  const int64_t group = sizes.num_v_heads / sizes.num_k_heads;
  const int64_t size = std::ssize(heads) / sizes.num_v_heads;
  for (int64_t k = 0; k < sizes.num_k_heads; ++k) {
    for (int64_t i = 0; i < group; ++i) {
      std::copy_n(before.begin() + (k * group + i) * size, size,
                  heads.begin() + (i * sizes.num_k_heads + k) * size);
    }
  }
}

// Changes a tensor of the checkpoint, whose name is `name` after "linear_attn.", and returns its
// name in a block of the file.
inline std::string convert_delta(std::string_view name, const DeltaSizes& sizes,
                                 std::vector<int64_t>& shape, std::vector<float>& values) {
  const std::pair<std::string_view, std::string> kNames[] = {
      {"A_log", "ssm_a"},
      {"dt_bias", "ssm_dt.bias"},
      {"conv1d.weight", "ssm_conv1d.weight"},
      {"norm.weight", "ssm_norm.weight"},
      {"in_proj_qkv.weight", "attn_qkv.weight"},
      {"in_proj_z.weight", "attn_gate.weight"},
      {"in_proj_a.weight", "ssm_alpha.weight"},
      {"in_proj_b.weight", "ssm_beta.weight"},
      {"out_proj.weight", "ssm_out.weight"},
  };
  const int64_t columns = std::accumulate(shape.begin() + 1, shape.end(), int64_t{1},
                                          [](int64_t a, int64_t b) { return a * b; });
  if (name == "A_log") {
    for (float& x : values) x = -std::exp(x);
  }
  if (name == "conv1d.weight") shape = {shape[0], shape[2]};
  if (name == "out_proj.weight") {
    for (int64_t row = 0; row < shape[0]; ++row) {
      tile_heads(std::span(values).subspan(static_cast<size_t>(row * columns),
                                           static_cast<size_t>(columns)),
                 sizes);
    }
  } else if (name != "norm.weight") {
    const bool has_keys = name == "conv1d.weight" || name == "in_proj_qkv.weight";
    const int64_t first = has_keys ? 2 * sizes.num_k_heads * sizes.k_dim * columns : 0;
    tile_heads(std::span(values).subspan(static_cast<size_t>(first)), sizes);
  }
  return std::ranges::find(kNames, name, &std::pair<std::string_view, std::string>::first)->second;
}

}  // namespace quire::testing

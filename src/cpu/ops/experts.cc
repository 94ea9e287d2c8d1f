#include "cpu/ops/experts.h"

#include <algorithm>

#include "base/check.h"
#include "cpu/ops/products.h"

namespace quire::cpu {
namespace {

constexpr int64_t kAlign = 64;  // bytes

int64_t aligned_bytes(int64_t count, size_t element_bytes) {
  return round_up(count * static_cast<int64_t>(element_bytes), kAlign);
}

// The widths of a block's rows, in the order of the workspace.
std::array<int64_t, 4> block_widths(const ExpertsShape& shape) {
  return {shape.hidden_size, 2 * shape.intermediate_size, shape.intermediate_size,
          shape.hidden_size};
}

Status check_shapes(const ExpertsShape& shape, const Linear& gate_up, const Linear& down) {
  if (gate_up.out_features() == 2 * shape.intermediate_size &&
      gate_up.in_features() == shape.hidden_size && down.out_features() == shape.hidden_size &&
      down.in_features() == shape.intermediate_size) {
    return {};
  }
  return invalid_argument("[ops] the matrices of an expert do not have the shape of its layer");
}

}  // namespace

Result<std::unique_ptr<CpuExperts>> CpuExperts::make(ExpertsSource& source, Products& products) {
  std::unique_ptr<CpuExperts> experts(new CpuExperts(source.shape()));
  for (int i = 0; i < source.shape().num_experts; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const LinearSource gate_up, source.gate_up(i));
    QUIRE_ASSIGN_OR_RETURN(auto packed_gate_up, products.make_linear(gate_up));
    QUIRE_ASSIGN_OR_RETURN(const LinearSource down, source.down(i));
    QUIRE_ASSIGN_OR_RETURN(auto packed_down, products.make_linear(down));
    QUIRE_RETURN_IF_ERROR(check_shapes(source.shape(), *packed_gate_up, *packed_down));
    experts->gate_up_.push_back(std::move(packed_gate_up));
    experts->down_.push_back(std::move(packed_down));
  }
  return experts;
}

size_t CpuExperts::num_bytes() const {
  size_t bytes = 0;
  for (const auto& matrix : gate_up_) bytes += matrix->num_bytes();
  for (const auto& matrix : down_) bytes += matrix->num_bytes();
  return bytes;
}

int64_t ExpertsWorkspace::num_bytes(const ExpertsShape& shape, int64_t max_num_tokens) {
  int64_t bytes = aligned_bytes(max_num_tokens * shape.top_k, sizeof(int32_t)) +
                  aligned_bytes(shape.num_experts, sizeof(int32_t));
  for (const int64_t width : block_widths(shape)) {
    bytes += aligned_bytes(kMaxGroupedRows * width, sizeof(float));
  }
  return bytes;
}

ExpertsWorkspace::ExpertsWorkspace(const ExpertsShape& shape, int64_t num_tokens,
                                   std::span<std::byte> bytes) {
  QUIRE_CHECK(static_cast<int64_t>(bytes.size()) >= num_bytes(shape, num_tokens),
              "[ops] experts: the workspace is too small");
  std::byte* next = bytes.data();
  const auto widths = block_widths(shape);
  const std::array<float**, 4> parts = {&x, &gate_up, &product, &y};
  for (size_t i = 0; i < parts.size(); ++i) {
    *parts[i] = reinterpret_cast<float*>(next);
    next += aligned_bytes(kMaxGroupedRows * widths[i], sizeof(float));
  }
  expert_ends = reinterpret_cast<int32_t*>(next);
  pairs = reinterpret_cast<int32_t*>(next + aligned_bytes(shape.num_experts, sizeof(int32_t)));
}

void sort_pairs(const int32_t* ids, int64_t num_pairs, int num_experts,
                const ExpertsWorkspace& workspace) {
  // During the sort, ends[expert] is the position of the expert's next pair.
  int32_t* const ends = workspace.expert_ends;
  std::fill_n(ends, num_experts, 0);
  for (int64_t i = 0; i < num_pairs; ++i) {
    QUIRE_CHECK(ids[i] >= 0 && ids[i] < num_experts, "[ops] experts: an id is not of an expert");
    ++ends[ids[i]];
  }
  int32_t begin = 0;
  for (int expert = 0; expert < num_experts; ++expert) {
    const int32_t count = ends[expert];
    ends[expert] = begin;
    begin += count;
  }
  for (int64_t i = 0; i < num_pairs; ++i) {
    workspace.pairs[ends[ids[i]]++] = static_cast<int32_t>(i);
  }
}

void ExpertsBlock::add(const Part& part, const int32_t* pairs) {
  all_parts[num_parts++] = part;
  for (int64_t i = 0; i < part.num_rows; ++i) {
    all_rows[num_rows++] = {part.first_row + i, pairs[part.first_pair + i]};
  }
}

ExpertsBlock ExpertsBlocks::next() {
  ExpertsBlock block;
  int64_t first_row = 0;
  while (expert_ < num_experts_ && first_row < kMaxGroupedRows) {
    const int64_t left = workspace_.expert_ends[expert_] - pair_;
    const bool fits = left <= kMaxGroupedRows - first_row;
    if (!fits && first_row > 0) break;
    const int64_t num_rows = std::min(left, kMaxGroupedRows);
    if (num_rows > 0) block.add({expert_, pair_, first_row, num_rows}, workspace_.pairs);
    pair_ += num_rows;
    first_row += round_up(num_rows, kGroupAlign);
    if (fits) ++expert_;
  }
  return block;
}

void add_weighted(const ExpertsBlock& block, const ExpertsCall& call, const float* y, int64_t begin,
                  int64_t end) {
  const int64_t width = call.out.shape[1];
  const int64_t top_k = call.ids.shape[1];
  for (const ExpertsBlock::Row& row : block.rows()) {
    const float weight = call.weights.as<float>()[row.pair];
    const float* from = y + row.row * width;
    float* to = call.out.as<float>() + row.pair / top_k * width;
    for (int64_t i = begin; i < end; ++i) to[i] += weight * from[i];
  }
}

}  // namespace quire::cpu

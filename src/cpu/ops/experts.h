// The experts of a layer on a CPU, and the order in which a step computes them. All tokens of an
// expert are computed together, so that its weights are read once. The blocks of rows are small
// enough to stay in cache.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/numbers.h"
#include "cpu/ops/row_group.h"
#include "ops/weight_store.h"

namespace quire::cpu {

class Products;

class CpuExperts final : public Experts {
 public:
  // `products` packs the matrices.
  static Result<std::unique_ptr<CpuExperts>> make(ExpertsSource& source, Products& products);

  const ExpertsShape& shape() const override { return shape_; }
  size_t num_bytes() const override;
  const Linear& gate_up(int64_t idx) const { return *gate_up_[static_cast<size_t>(idx)]; }
  const Linear& down(int64_t idx) const { return *down_[static_cast<size_t>(idx)]; }

 private:
  explicit CpuExperts(const ExpertsShape& shape) : shape_(shape) {}

  ExpertsShape shape_;
  std::vector<std::unique_ptr<Linear>> gate_up_;  // [num_experts]
  std::vector<std::unique_ptr<Linear>> down_;
};

// The parts of ExpertsCall::workspace.
struct ExpertsWorkspace {
  // The rows of one block, F32.
  float* x = nullptr;        // [kMaxGroupedRows, hidden_size]
  float* gate_up = nullptr;  // [kMaxGroupedRows, 2 * intermediate_size]
  float* product = nullptr;  // [kMaxGroupedRows, intermediate_size]
  float* y = nullptr;        // [kMaxGroupedRows, hidden_size]
  // A pair is a token and one of its experts: pair i is token i / top_k.
  int32_t* pairs = nullptr;        // [num_tokens * top_k], ordered by expert, then by token
  int32_t* expert_ends = nullptr;  // [num_experts], the end of each expert's pairs

  ExpertsWorkspace(const ExpertsShape& shape, int64_t num_tokens, std::span<std::byte> bytes);
  static int64_t num_bytes(const ExpertsShape& shape, int64_t max_num_tokens);
};

// Orders the pairs by expert with a counting sort. Checks the ids.
void sort_pairs(const int32_t* ids, int64_t num_pairs, int num_experts,
                const ExpertsWorkspace& workspace);

// Some rows of one or more experts. The rows of each expert begin at a multiple of kGroupAlign.
struct ExpertsBlock {
  struct Part {
    int64_t expert = 0;
    int64_t first_pair = 0;  // in ExpertsWorkspace::pairs
    int64_t first_row = 0;
    int64_t num_rows = 0;
  };
  struct Row {
    int64_t row = 0;
    int64_t pair = 0;
  };
  std::span<const Part> parts() const { return std::span(all_parts).first(num_parts); }
  std::span<const Row> rows() const { return std::span(all_rows).first(num_rows); }
  void add(const Part& part, const int32_t* pairs);

  std::array<Part, kMaxGroups> all_parts;
  std::array<Row, kMaxGroupedRows> all_rows;  // of all parts
  size_t num_parts = 0;
  size_t num_rows = 0;
};

// Splits sorted pairs into blocks, in the order of the experts. An expert is split only if it has
// more than kMaxGroupedRows rows.
class ExpertsBlocks {
 public:
  ExpertsBlocks(const ExpertsWorkspace& workspace, int num_experts)
      : workspace_(workspace), num_experts_(num_experts) {}

  // Returns the next block. It has no rows if there are no more pairs.
  ExpertsBlock next();

 private:
  const ExpertsWorkspace& workspace_;
  int num_experts_;
  int64_t expert_ = 0;
  int64_t pair_ = 0;  // the first pair that is not yet in a block
};

// out[token of the pair] (+)= weight of the pair * y, for the elements [begin, end) of each row of
// the block, in the order of the rows.
void add_weighted(const ExpertsBlock& block, const ExpertsCall& call, const float* y, int64_t begin,
                  int64_t end);

}  // namespace quire::cpu

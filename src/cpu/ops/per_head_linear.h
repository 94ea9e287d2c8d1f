// One matrix per head, on a CPU. Each head's rows are gathered, so that they are adjacent rows of
// one product, and one parallel region computes several heads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/ops/row_group.h"
#include "ops/latent_ops.h"

namespace quire::cpu {

class Products;

class CpuPerHeadLinear final : public PerHeadLinear {
 public:
  // `products` packs the matrices.
  static Result<std::unique_ptr<CpuPerHeadLinear>> make(std::span<const TensorView> matrices,
                                                        Products& products);

  int num_heads() const override { return static_cast<int>(heads_.size()); }
  int64_t in_features() const override { return heads_.front()->in_features(); }
  int64_t out_features() const override { return heads_.front()->out_features(); }
  size_t num_bytes() const override;
  const Linear& head(int64_t idx) const { return *heads_[static_cast<size_t>(idx)]; }

 private:
  CpuPerHeadLinear() = default;

  std::vector<std::unique_ptr<Linear>> heads_;
};

// Some tokens of some heads, at most kMaxGroupedRows rows. Row i of head h of the block is row
// h * row_stride() + i of the gathered activations.
struct HeadBlock {
  int64_t first_head = 0;
  int64_t num_heads = 0;
  int64_t first_token = 0;
  int64_t num_tokens = 0;

  int64_t num_rows() const { return num_heads * num_tokens; }
  int64_t row_stride() const { return round_up(num_tokens, kGroupAlign); }
};

// Calls body(block) for blocks that cover all tokens of all heads, in a fixed order.
template <class Body>
void for_head_blocks(int64_t num_heads, int64_t num_tokens, const Body& body) {
  HeadBlock block;
  for (; block.first_token < num_tokens; block.first_token += block.num_tokens) {
    block.num_tokens = std::min(kMaxGroupedRows, num_tokens - block.first_token);
    const int64_t max_heads = kMaxGroupedRows / block.row_stride();
    for (block.first_head = 0; block.first_head < num_heads; block.first_head += block.num_heads) {
      block.num_heads = std::min(max_heads, num_heads - block.first_head);
      body(block);
    }
  }
}

}  // namespace quire::cpu

#include "cpu/ops/cpu_expert_ops.h"

#include <algorithm>

#include "base/check.h"
#include "cpu/ops/activation_rows.h"
#include "cpu/ops/routing.h"
#include "cpu/ops/rows.h"

namespace quire::cpu {
namespace {

void check_choice(const TensorView& ids, const TensorView& weights, int64_t num_tokens,
                  int64_t top_k) {
  check_rows(weights, top_k);
  QUIRE_CHECK(ids.dtype == DType::kI32 && ids.shape == weights.shape && ids.shape[0] == num_tokens,
              "[ops] the ids or weights of experts are not [num_tokens, top_k]");
}

template <class Body>
void for_block_rows(ThreadPool& pool, const ExpertsBlock& block, int64_t width, const Body& body) {
  const auto num_rows = static_cast<int64_t>(block.num_rows);
  for_each(pool, num_rows, num_rows * width,
           [&](int64_t i) { body(block.rows()[static_cast<size_t>(i)]); });
}

}  // namespace

int64_t CpuExpertOps::workspace_bytes(const ExpertsShape& shape, int64_t max_num_tokens) const {
  return ExpertsWorkspace::num_bytes(shape, max_num_tokens);
}

void CpuExpertOps::route(const ExpertRouting& routing, TensorView logits, const float* bias,
                         TensorView ids, TensorView weights) {
  check_rows(logits, routing.num_experts);
  check_choice(ids, weights, logits.shape[0], routing.num_per_token());
  QUIRE_CHECK(is_valid(routing), "[ops] route: the routing is not valid");
  // The row is read once for the scores, and once per chosen expert.
  const int64_t num_reads = logits.shape.num_elements() * (1 + routing.top_k);
  for_each(products_.pool(), logits.shape[0], num_reads, [&](int64_t t) {
    route_row(routing, row(logits, t), bias, ids.as<int32_t>() + t * routing.num_per_token(),
              row(weights, t));
  });
}

void CpuExpertOps::run_experts(const ExpertsCall& call) {
  const auto& experts = static_cast<const CpuExperts&>(*call.experts);
  const ExpertsShape& shape = experts.shape();
  check_rows(call.x, shape.hidden_size);
  check_same(call.x, call.out);
  check_choice(call.ids, call.weights, call.x.shape[0], shape.top_k);
  const ExpertsWorkspace workspace(shape, call.x.shape[0], call.workspace);
  if (!call.adds) {
    for_rows(products_.pool(), call.out,
             [&](int64_t t) { std::fill_n(row(call.out, t), shape.hidden_size, 0.0F); });
  }
  sort_pairs(call.ids.as<int32_t>(), call.ids.shape.num_elements(), shape.num_experts, workspace);
  ExpertsBlocks blocks(workspace, shape.num_experts);
  for (ExpertsBlock block = blocks.next(); block.num_rows > 0; block = blocks.next()) {
    run_block(block, experts, call, workspace);
  }
}

void CpuExpertOps::run_block(const ExpertsBlock& block, const CpuExperts& experts,
                             const ExpertsCall& call, const ExpertsWorkspace& workspace) {
  const int64_t hidden = experts.shape().hidden_size;
  const int64_t inner = experts.shape().intermediate_size;
  using Part = ExpertsBlock::Part;
  const auto gate_up_of = [&](const Part& part) -> const Linear& {
    return experts.gate_up(part.expert);
  };
  const auto down_of = [&](const Part& part) -> const Linear& { return experts.down(part.expert); };
  for_block_rows(products_.pool(), block, hidden, [&](const ExpertsBlock::Row& at) {
    std::copy_n(row(call.x, at.pair / experts.shape().top_k), hidden,
                workspace.x + at.row * hidden);
  });
  products_.multiply_parts(block.parts(), gate_up_of, workspace.x, workspace.gate_up);
  for_block_rows(products_.pool(), block, 2 * inner, [&](const ExpertsBlock::Row& at) {
    const float* gate = workspace.gate_up + at.row * 2 * inner;
    gated_mul_row(call.activation, gate, gate + inner, inner, workspace.product + at.row * inner);
  });
  products_.multiply_parts(block.parts(), down_of, workspace.product, workspace.y);
  // Two rows of a block may belong to one token, so threads divide the elements, not the rows.
  constexpr int64_t kElements = 256;
  const auto add = [&](int64_t i) {
    add_weighted(block, call, workspace.y, i * kElements, std::min((i + 1) * kElements, hidden));
  };
  for_each(products_.pool(), ceil_div(hidden, kElements),
           static_cast<int64_t>(block.num_rows) * hidden, add);
}

}  // namespace quire::cpu

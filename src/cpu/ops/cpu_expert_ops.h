// The operations of ops/expert_ops.h on a CPU.
#pragma once

#include <cstdint>

#include "cpu/ops/experts.h"
#include "cpu/ops/products.h"
#include "ops/expert_ops.h"

namespace quire::cpu {

class CpuExpertOps final : public ExpertOps {
 public:
  // `products` must outlive the object.
  explicit CpuExpertOps(Products& products) : products_(products) {}

  // See expert_ops.h.
  int64_t workspace_bytes(const ExpertsShape& shape, int64_t max_num_tokens) const override;
  void route(const ExpertRouting& routing, TensorView logits, const float* bias, TensorView ids,
             TensorView weights) override;
  void run_experts(const ExpertsCall& call) override;

 private:
  void run_block(const ExpertsBlock& block, const CpuExperts& experts, const ExpertsCall& call,
                 const ExpertsWorkspace& workspace);

  Products& products_;
};

}  // namespace quire::cpu

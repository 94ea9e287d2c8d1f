// The operations of ops/expert_ops.h on a GPU.
#pragma once

#include <cstdint>

#include "cuda/gemm/experts/experts_choice.h"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/operand_checks.h"
#include "ops/expert_ops.h"

namespace quire::cuda {

class CudaExpertOps final : public ExpertOps {
 public:
  // num_blocks: thread blocks of the grouped products; 0: one per SM.
  CudaExpertOps(const LaunchContext& context, DType activation, int num_blocks)
      : context_(context), check_{activation}, runner_(context, num_blocks) {}

  // Whether grouped kernels support this shape, with a shared expert as one of the experts.
  bool merges_shared(const ExpertsShape& shape) const {
    return runner_.takes_grouped(shape, check_.activation);
  }

  // See expert_ops.h.
  int64_t workspace_bytes(const ExpertsShape& shape, int64_t max_num_tokens) const override {
    return runner_.workspace_bytes(shape, check_.activation, max_num_tokens);
  }
  void route(const ExpertRouting& routing, TensorView logits, const float* bias, TensorView ids,
             TensorView weights) override;
  // Checks the shapes of route()'s operands.
  void check_route(const ExpertRouting& routing, const TensorView& logits, const TensorView& ids,
                   const TensorView& weights) const;
  void run_experts(const ExpertsCall& call) override;

 private:
  LaunchContext context_;
  OperandChecks check_;
  ExpertsRunner runner_;
};

}  // namespace quire::cuda

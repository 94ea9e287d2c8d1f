// The operations of ops/state_ops.h on a GPU. Sequences that decode without drafts take one kernel.
// Others take several, which go through a prompt by chunks or token by token, by the shape of the
// net and the device. The forms round differently, and within a form a token's bits do not depend
// on other sequences.
#pragma once

#include "cuda/ops/op_kernels.h"
#include "cuda/ops/operand_checks.h"
#include "cuda/states/state_kernels.h"
#include "ops/state_ops.h"

namespace quire::cuda {

class CudaStateOps final : public StateOps {
 public:
  CudaStateOps(const LaunchContext& context, DType activation)
      : context_(context), check_{activation} {}

  // See state_ops.h.
  void short_conv(const ShortConv& conv) override;
  void delta_net(const DeltaNet& net) override;
  Status supports(const DeltaNetShape& shape) const override;
  int64_t workspace_bytes(const DeltaNetShape& shape, int num_drafts, int64_t max_num_tokens,
                          int64_t max_num_seqs) const override;

 private:
  bool is_fast(const DeltaNetShape& shape) const;
  bool is_by_chunk(const DeltaNetShape& shape) const;
  void run_by_token(const DeltaNet& net, const SeqRange& seqs) const;
  void run_by_chunk(const DeltaNet& net, const SeqRange& seqs) const;

  LaunchContext context_;
  OperandChecks check_;
};

}  // namespace quire::cuda

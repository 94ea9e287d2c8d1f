// The operations of ops/state_ops.h on a GPU. On Hopper, with heads of the published size, one
// kernel decodes (another one with many heads and one token per sequence), and prompts are computed
// in chunks of tokens. All other sequences are computed token by token. These forms round
// differently. Within a form a token's bits do not depend on other sequences.
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

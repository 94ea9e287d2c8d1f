// The operations of ops/state_ops.h on a CPU. Every sequence is computed token by token, so the
// results do not depend on how its tokens are divided among steps.
#pragma once

#include "base/thread_pool.h"
#include "ops/state_ops.h"

namespace quire::cpu {

class CpuStateOps final : public StateOps {
 public:
  // `pool` must outlive the object.
  explicit CpuStateOps(ThreadPool& pool) : pool_(pool) {}

  void short_conv(const ShortConv& conv) override;
  void delta_net(const DeltaNet& net) override;

 private:
  ThreadPool& pool_;
};

}  // namespace quire::cpu

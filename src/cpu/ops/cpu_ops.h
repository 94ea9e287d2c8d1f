// The operations of ops/ops.h on a CPU. Activations are F32; every row's bits depend on that row
// and the weights alone: not on the batch, the row's place in it, or the number of threads.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "ops/ops.h"

namespace quire {

struct CpuOpsOptions {
  bool use_amx = true;  // where the machine has it and the kernel grants it
};

// `pool` outlives the Ops. One thread at a time may call them.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, CpuOpsOptions options = {});

}  // namespace quire

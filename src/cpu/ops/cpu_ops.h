// The operations of ops/ops.h on a CPU. Activations are F32. This costs decode little time, because
// decode is limited by reading weights. The bits of a row depend only on the row and the weights,
// not on the batch, the row's position in the batch, or the number of threads.
#pragma once

#include <memory>
#include <string_view>

#include "base/thread_pool.h"
#include "ops/ops.h"
#include "tensor/packed_weights.h"

namespace quire {

class RankGroup;
namespace cpu::amx {
struct Kernel;
}

struct CpuOpsOptions {
  bool use_amx = true;  // if the processor has AMX and the operating system permits it
  // For tests: tile products of 16-bit weights that replace the processor's, if
  // amx_avx512_usable().
  const cpu::amx::Kernel* amx_kernel = nullptr;
  // Multiplies BF16 weights with AVX-512 BF16, if the processor has it and AMX is not used.
  bool use_avx512_bf16 = true;
  // kBf16 has an effect only where AMX or AVX-512 BF16 is used.
  InputRounding rounding = InputRounding::kNone;
  // The name of the kernel for quantized weights (gemm_quantized.h). Empty or unknown: the fastest
  // kernel for the number of rows.
  std::string_view quantized_kernel = {};
  // Keeps packed matrices for the next start. Must outlive the Ops. Null: matrices are not kept.
  PackedWeights* kept = nullptr;
  // The ranks that share a model, and the index of this rank. Must outlive the Ops. Null: a single
  // rank.
  RankGroup* ranks = nullptr;
  int rank = 0;
};

// `pool` must outlive the Ops. Only one thread at a time may call the Ops.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, CpuOpsOptions options = {});

// An upper bound on the scratch memory that the Ops allocate for matrices of all types with up to
// num_columns columns. Matrices of a single type need only a part of this memory.
int64_t cpu_scratch_bytes(int64_t num_columns, int num_threads);
// The scratch memory of per_head_linear(). `width`: the sum of the input and output widths of one
// head.
int64_t cpu_head_scratch_bytes(int64_t width);

}  // namespace quire

// The operations of ops/ops.h on a CPU. Activations are F32, which costs decode little, because
// reading weights limits it. The bits of a row depend only on that row and the weights, not on the
// batch, the row's position in it, or the number of threads.
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
  bool use_amx = true;  // if the machine has it and the operating system permits it
  // For tests: tile products of 16-bit weights to use instead of the machine's, if
  // amx_avx512_usable().
  const cpu::amx::Kernel* amx_kernel = nullptr;
  // For BF16 weights, if the machine has it and AMX is not used.
  bool use_avx512_bf16 = true;
  // kBf16 has an effect where AMX or AVX-512 BF16 is used.
  InputRounding rounding = InputRounding::kNone;
  // For quantized weights, by name (gemm_quantized.h); empty: the fastest for the number of rows.
  // An unknown name counts as empty.
  std::string_view quantized_kernel = {};
  // Keeps packed matrices for the next start, and outlives the Ops; null: they are not kept.
  PackedWeights* kept = nullptr;
  // The ranks that share a model, and the index of this one; null: a single rank. Outlives the Ops.
  RankGroup* ranks = nullptr;
  int rank = 0;
};

// `pool` outlives the Ops. Only one thread at a time may call them.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, CpuOpsOptions options = {});

// Upper bound of the scratch that the Ops allocate for matrices of all types with up to num_columns
// columns; matrices of one type take only a part of it.
int64_t cpu_scratch_bytes(int64_t num_columns, int num_threads);
// The scratch of per_head_linear(). `width`: the inputs and outputs of one head together.
int64_t cpu_head_scratch_bytes(int64_t width);

}  // namespace quire

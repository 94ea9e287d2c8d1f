// Measures the machine's peak rates, to which bench_gemm compares its results.
#pragma once

#include <cstddef>

#include "base/thread_pool.h"

namespace quire::bench {

// Reads every byte (except the last few) once with the widest loads. Threads take MiBs in turns.
void read_all(const void* data, size_t num_bytes, ThreadPool& pool);

// Runs independent F32 fused multiply-adds on all threads. Returns the number of operations.
double multiply_add_all(ThreadPool& pool);
// Does the same with AVX-512's products of BF16 pairs. Returns 0 where they cannot be used.
double multiply_add_bf16_all(ThreadPool& pool);

}  // namespace quire::bench

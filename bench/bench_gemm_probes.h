// Measures the machine's peak rates, to which bench_gemm compares its results.
#pragma once

#include <cstddef>

#include "base/thread_pool.h"

namespace quire::bench {

// Reads every byte (but a last few) once with the widest loads; the threads take MiBs in turns.
void read_all(const void* data, size_t num_bytes, ThreadPool& pool);

// Runs independent F32 fused multiply-adds on all threads; the operations done.
double multiply_add_all(ThreadPool& pool);

}  // namespace quire::bench

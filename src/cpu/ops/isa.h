// The instruction sets of x86 processors for which kernels are written.
#pragma once

#include "quire/status.h"

namespace quire::cpu {

enum class Isa { kAvx2, kAvx512, kAmx };  // each also means the ones before

// Whether kernels may use an instruction set if the processor has it: the environment variable
// QUIRE_MAX_CPU_ISA (avx2, avx512 or amx) limits this process to older ones, to compare them. Any
// other value of the variable limits nothing.
bool may_use(Isa isa);

// Limits Highway's kernels likewise, and fails with kInvalidArgument if the variable has another
// value. To be called before the first kernel runs.
Status apply_max_isa();

}  // namespace quire::cpu

// The instruction sets of x86 processors for which kernels are written.
#pragma once

#include <string_view>

#include "quire/status.h"

namespace quire::cpu {

// In ascending order: each level includes the ones before it. AVX-VNNI, of 8 lanes but newer than
// AVX-512, and AVX-512's BF16 and VNNI belong to kAvx512.
enum class IsaLevel { kAvx2, kAvx512, kAmx };

// The value of the environment variable QUIRE_MAX_CPU_ISA (avx2, avx512 or amx), which excludes the
// instructions above that level from this process, to compare levels; empty: nothing is excluded.
// An engine has no such setting, because Highway chooses its kernels once per process, so that two
// engines of a process could not differ.
std::string_view max_isa();

// Whether kernels may use a level's instructions where the processor has them. A value of
// QUIRE_MAX_CPU_ISA that apply_max_isa() refuses excludes nothing.
bool may_use(IsaLevel level);

// Excludes the same instructions from the kernels of Highway, which choose theirs when they first
// run. Fails with kInvalidArgument if the variable has another value.
Status apply_max_isa();

}  // namespace quire::cpu

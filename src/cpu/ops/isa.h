// The x86 instruction sets for which there are kernels.
#pragma once

#include <string_view>

#include "quire/status.h"

namespace quire::cpu {

// In ascending order: each level includes the levels before it. kAvx512 includes BF16 and VNNI of
// AVX-512. It also includes AVX-VNNI, which has 8 lanes, but is newer than AVX-512.
enum class IsaLevel { kAvx2, kAvx512, kAmx };

// The value of the environment variable QUIRE_MAX_CPU_ISA (avx2, avx512 or amx), or empty. The
// process then uses no instructions above that level, so that levels can be compared. It is not a
// setting of an engine, because Highway chooses its kernels once per process, so the engines of a
// process could not have different levels.
std::string_view max_isa();

// Whether kernels may use a level's instructions if the processor has them. A value of
// QUIRE_MAX_CPU_ISA that apply_max_isa() refuses excludes nothing.
bool may_use(IsaLevel level);

// Excludes the same instructions from Highway's kernels, which choose their instructions when they
// first run. Fails with kInvalidArgument if QUIRE_MAX_CPU_ISA has any other value.
Status apply_max_isa();

}  // namespace quire::cpu

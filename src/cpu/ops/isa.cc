#include "cpu/ops/isa.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <optional>

namespace quire::cpu {
namespace {

std::optional<IsaLevel> parse(std::string_view name) {
  if (name == "avx2") return IsaLevel::kAvx2;
  if (name == "avx512") return IsaLevel::kAvx512;
  if (name == "amx" || name.empty()) return IsaLevel::kAmx;
  return std::nullopt;
}

}  // namespace

std::string_view max_isa() {
  const char* const value = std::getenv("QUIRE_MAX_CPU_ISA");
  return value == nullptr ? "" : value;
}

bool may_use(IsaLevel level) {
  static const IsaLevel max = parse(max_isa()).value_or(IsaLevel::kAmx);
  return level <= max;
}

Status apply_max_isa() {
  if (!parse(max_isa())) {
    return invalid_argument(
        fmt::format("[cpu] QUIRE_MAX_CPU_ISA: must be avx2, avx512 or amx, got '{}'", max_isa()));
  }
  // On x86, better targets have lower bits.
  if (!may_use(IsaLevel::kAvx512)) hwy::DisableTargets(HWY_AVX2 - 1);
  return {};
}

}  // namespace quire::cpu

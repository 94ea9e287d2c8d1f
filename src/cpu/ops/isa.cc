#include "cpu/ops/isa.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <optional>
#include <string_view>

namespace quire::cpu {
namespace {

std::string_view variable() {
  const char* const value = std::getenv("QUIRE_MAX_CPU_ISA");
  return value == nullptr ? "" : value;
}

std::optional<Isa> parse(std::string_view value) {
  if (value == "avx2") return Isa::kAvx2;
  if (value == "avx512") return Isa::kAvx512;
  if (value == "amx" || value.empty()) return Isa::kAmx;
  return std::nullopt;
}

}  // namespace

bool may_use(Isa isa) {
  static const Isa max = parse(variable()).value_or(Isa::kAmx);
  return isa <= max;
}

Status apply_max_isa() {
  if (!parse(variable())) {
    return invalid_argument(
        fmt::format("[cpu] QUIRE_MAX_CPU_ISA: must be avx2, avx512 or amx, got '{}'", variable()));
  }
  // Better targets of x86 have lower bits.
  if (!may_use(Isa::kAvx512)) hwy::DisableTargets(HWY_AVX2 - 1);
  return {};
}

}  // namespace quire::cpu

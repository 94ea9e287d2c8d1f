#include "tensor/finite.h"

#include <cstdint>

#include "base/check.h"

namespace quire {
namespace {

// An infinity or a NaN has all bits of the exponent set. Without an early exit, the compiler
// vectorizes the loop.
template <typename Word>
bool has_no_full_exponent(const Word* words, int64_t count, Word exponent) {
  Word is_full = 0;
  for (int64_t i = 0; i < count; ++i) {
    is_full = static_cast<Word>(is_full | ((words[i] & exponent) == exponent ? 1 : 0));
  }
  return is_full == 0;
}

}  // namespace

bool all_finite(const TensorView& view) {
  const int64_t count = view.shape.num_elements();
  switch (view.dtype) {
    case DType::kF32:
      return has_no_full_exponent<uint32_t>(view.as<const uint32_t>(), count, 0x7F800000U);
    case DType::kF16:
      return has_no_full_exponent<uint16_t>(view.as<const uint16_t>(), count, 0x7C00U);
    case DType::kBF16:
      return has_no_full_exponent<uint16_t>(view.as<const uint16_t>(), count, 0x7F80U);
    default:
      QUIRE_CHECK(false, "[tensor] the type of an element is none of f32, f16 and bf16");
  }
}

}  // namespace quire

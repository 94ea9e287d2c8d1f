#include "tensor/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace quire {
namespace {

// The reference: converts every element.
bool all_finite_one_by_one(const TensorView& view) {
  for (int64_t i = 0; i < view.shape.num_elements(); ++i) {
    if (!std::isfinite(element_as_f32(view, i))) return false;
  }
  return true;
}

TEST(AllFinite, EveryHalf) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
      auto word = static_cast<uint16_t>(bits);
      const TensorView view = {&word, dtype, {1}};
      ASSERT_EQ(all_finite(view), all_finite_one_by_one(view)) << dtype_name(dtype) << " " << bits;
    }
  }
}

TEST(AllFinite, FindsOneElementAnywhere) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float fault : {kInfinity, -kInfinity, std::nanf("")}) {
    std::vector<float> numbers(67, std::numeric_limits<float>::max());
    const TensorView view = {numbers.data(), DType::kF32, {67}};
    EXPECT_TRUE(all_finite(view));
    for (float& number : numbers) {
      number = fault;
      EXPECT_FALSE(all_finite(view)) << &number - numbers.data();
      number = -0.0F;
    }
  }
}

TEST(AllFinite, NothingIsFinite) {
  EXPECT_TRUE(all_finite({nullptr, DType::kBF16, {0, 8}}));
}

}  // namespace
}  // namespace quire

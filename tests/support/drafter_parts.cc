#include "support/drafter_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace quire::testing {

using Row = ReferenceTensors::Row;

ModelLimits drafter_limits() {
  ModelLimits limits;
  limits.max_num_tokens = 16;
  limits.max_num_logit_rows = 16;
  limits.max_model_len = 32;
  limits.kv_dtype = DType::kF32;
  return limits;
}

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> numbers;
  std::vector<float> values(count);
  for (float& value : values) value = numbers(generator);
  return values;
}

std::vector<Row> rows_of(std::span<const float> values, size_t width) {
  std::vector<Row> rows;
  for (size_t i = 0; i < values.size(); i += width) {
    rows.emplace_back(values.begin() + static_cast<int64_t>(i),
                      values.begin() + static_cast<int64_t>(i + width));
  }
  return rows;
}

void expect_near_rows(std::span<const float> got, std::span<const Row> expected, double tolerance,
                      const std::string& what) {
  size_t at = 0;
  for (const Row& row : expected) {
    for (const double value : row) {
      ASSERT_LT(at, got.size()) << what;
      ASSERT_NEAR(got[at], value, tolerance * (1.0 + std::fabs(value))) << what << ", " << at;
      ++at;
    }
  }
  EXPECT_EQ(at, got.size()) << what;
}

std::vector<float> output_states(DraftHead& head, int first, int count) {
  std::vector<int32_t> rows;
  for (int i = 0; i < count; ++i) rows.push_back(first + i);
  const int64_t hidden = head.config().hidden_size;
  std::vector<float> states(static_cast<size_t>(count * hidden));
  Stream stream;
  EXPECT_TRUE(
      head.output_states(rows.data(), count, {states.data(), DType::kF32, {count, hidden}}, stream)
          .ok());
  return states;
}

}  // namespace quire::testing

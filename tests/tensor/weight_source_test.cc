#include "tensor/weight_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/forwarding_source.h"

namespace quire::testing {

namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments(const TensorView& view) {
  double sum = 0;
  double squares = 0;
  const auto count = static_cast<double>(view.shape.num_elements());
  for (int64_t i = 0; i < view.shape.num_elements(); ++i) {
    const double x = view.dtype == DType::kF32   ? view.as<float>()[i]
                     : view.dtype == DType::kF16 ? f16_to_f32(view.as<uint16_t>()[i])
                                                 : bf16_to_f32(view.as<uint16_t>()[i]);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean)};
}

TEST(DummyWeights, LookLikeFreshlyInitializedOnes) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    DummyWeights weights(dtype);
    const TensorView matrix = weights.tensor("layers.0.q_proj.weight", {700, 1000}).value();
    EXPECT_EQ(matrix.dtype, dtype);
    const Moments m = moments(matrix);
    EXPECT_NEAR(m.mean, 0.0, 2e-4);
    EXPECT_NEAR(m.deviation, 0.02, 2e-4);
    EXPECT_NEAR(moments(weights.tensor("input_layernorm.weight", {4096}).value()).mean, 1.0, 2e-3);
  }
}

TEST(DummyWeights, DependOnTheNameAlone) {
  DummyWeights first(DType::kBF16);
  DummyWeights second(DType::kBF16);
  const Shape shape = {1100, 1000};  // more than the pool of values that dummy weights use
  const TensorView a = first.tensor("a", shape).value();
  const TensorView b = first.tensor("b", shape).value();
  EXPECT_NE(std::memcmp(a.data, b.data, a.num_bytes()), 0);
  const TensorView again = second.tensor("a", shape).value();
  EXPECT_EQ(std::memcmp(a.data, again.data, a.num_bytes()), 0);
  first.release("a");
  const TensorView after = first.tensor("a", shape).value();
  EXPECT_EQ(std::memcmp(after.data, again.data, after.num_bytes()), 0);
}

TEST(DummyWeights, RowsDiffer) {
  DummyWeights weights(DType::kF32);
  const TensorView view = weights.tensor("w", {1024, 1024}).value();
  for (int64_t row = 1; row < 1024; ++row) {
    EXPECT_NE(std::memcmp(view.data, view.rows(row, 1).data, 1024 * sizeof(float)), 0) << row;
  }
}

TEST(DummyWeights, PackedIntegersAreRandomBits) {
  DummyWeights weights(DType::kBF16);
  for (const char* name :
       {"q_proj.qweight", "q_proj.qzeros", "q_proj.weight_packed", "q_proj.weight_zero_point"}) {
    EXPECT_TRUE(weights.has(name));
    EXPECT_EQ(weights.dtype_of(name), DType::kI32);
    const TensorView words = weights.tensor(name, {300, 100}).value();
    ASSERT_EQ(words.dtype, DType::kI32);
    double num_ones = 0;
    for (int i = 0; i < 30000; ++i) num_ones += __builtin_popcount(words.as<uint32_t>()[i]);
    EXPECT_NEAR(num_ones / 30000, 16.0, 0.1) << name;
  }
  for (const char* name : {"q_proj.scales", "q_proj.weight_scale"}) {
    const TensorView scales = weights.tensor(name, {300, 100}).value();
    EXPECT_EQ(scales.dtype, DType::kBF16);
    EXPECT_NEAR(moments(scales).mean, 0.02 / 4.6, 1e-4) << name;
  }
  for (const char* name : {"q_proj.g_idx", "q_proj.weight_g_idx", "q_proj.weight_shape"}) {
    EXPECT_FALSE(weights.has(name)) << name;
  }
}

// Random weights that claim to be in one file.
class CountedWeights final : public ForwardingSource {
 public:
  explicit CountedWeights(int& num_freed)
      : ForwardingSource(std::make_unique<DummyWeights>(DType::kF32)), num_freed_(num_freed) {}
  void release(std::string_view name) override {
    ++num_freed_;
    ForwardingSource::release(name);
  }
  std::string file_of(std::string_view /*name*/) const override { return "file"; }
  std::vector<const MappedFile*> files() const override { return {nullptr}; }

 private:
  int& num_freed_;
};

TEST(SharedWeights, AreFreedOnceAllReadersHaveReleasedThem) {
  int num_freed = 0;
  const auto shared = share_weights(std::make_unique<CountedWeights>(num_freed), 2);
  const void* const first = shared->tensor("a", {2, 3}).value().data;
  EXPECT_EQ(shared->tensor("a", {2, 3}).value().data, first);
  shared->release("a");
  EXPECT_EQ(num_freed, 0);
  shared->release("a");
  EXPECT_EQ(num_freed, 1);
  EXPECT_EQ(shared->files().size(), 1U);
  EXPECT_EQ(shared->file_of("a"), "file");
  EXPECT_TRUE(shared->has("a"));
  EXPECT_EQ(shared->dtype_of("a"), DType::kF32);
}

TEST(WeightScheme, RowsOfIntegersArePlainNumbers) {
  std::vector<int8_t> values = {-8, 7, 0, 1, 2, 3, -1, -2};
  std::vector<float> scales = {0.5F, -2, 3, 4};
  std::vector<int8_t> zeros = {1, -8, 7, 0};
  std::vector<int32_t> order = {3, 1, 0, 2};
  WeightScheme scheme = {DType::kI8, ScaleLayout::kBlocks, 1, 2};
  scheme.bits = 4;
  scheme.has_zeros = true;
  WeightView matrix({values.data(), DType::kI8, {2, 4}}, {scales.data(), DType::kF32, {2, 2}},
                    scheme);
  matrix.zeros = {zeros.data(), DType::kI8, {2, 2}};
  const auto row = [&](int64_t i) {
    std::vector<float> numbers(4);
    write_plain_row(matrix, i, reinterpret_cast<std::byte*>(numbers.data()));
    return numbers;
  };
  EXPECT_EQ(row(0), (std::vector<float>{-4.5F, 3, -16, -18}));
  EXPECT_EQ(row(1), (std::vector<float>{-15, -12, -4, -8}));
  matrix.order = {order.data(), DType::kI32, {4}};
  EXPECT_EQ(row(0), (std::vector<float>{-16, 3, -18, -4.5F}));
  matrix.zeros = matrix.order = {};
  matrix.scheme.has_zeros = false;
  EXPECT_EQ(row(0), (std::vector<float>{-4, 3.5F, 0, -2}));
  EXPECT_EQ(describe(scheme), "4-bit integers with a scale and a zero point per group of 2");
  EXPECT_EQ(values_name(scheme), "i4");
  EXPECT_EQ(describe({DType::kI8, ScaleLayout::kRows}), "8-bit integers with a scale per row");
  EXPECT_EQ(values_name({DType::kI8, ScaleLayout::kRows}), "i8");
}

TEST(WeightScheme, ScalesCoverTheMatrix) {
  const Shape matrix = {300, 257};
  WeightScheme scheme = {DType::kF8E4M3, ScaleLayout::kTensor};
  EXPECT_EQ(scales_shape(scheme, matrix), (Shape{1, 1}));
  EXPECT_EQ(describe(scheme), "fp8_e4m3 with a scale per tensor");
  scheme.scales = ScaleLayout::kRows;
  EXPECT_EQ(scales_shape(scheme, matrix), (Shape{300, 1}));
  EXPECT_EQ(describe(scheme), "fp8_e4m3 with a scale per row");
  scheme = {DType::kF8E4M3, ScaleLayout::kBlocks, 128, 64};
  EXPECT_EQ(scales_shape(scheme, matrix), (Shape{3, 5}));
  EXPECT_EQ(scale_block(scheme, matrix), (Shape{128, 64}));
  EXPECT_EQ(describe(scheme), "fp8_e4m3 with a scale per block of 128 x 64");
  EXPECT_EQ(describe({.values = DType::kBF16}), "bf16 without scales");
}

TEST(WeightScheme, PlainValuesHaveTheirOwnTypeAndNoScales) {
  uint16_t values[6] = {};
  const WeightView view = TensorView{values, DType::kF16, {2, 3}};
  EXPECT_EQ(view.scheme, WeightScheme{.values = DType::kF16});
  EXPECT_EQ(view.scales.data, nullptr);
}

}  // namespace

}  // namespace quire::testing

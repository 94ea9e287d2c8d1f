// Products with integers of 4 and 8 bits, in every layout of scales and zero points, with every
// kernel that this machine can run. `write_plain_row` defines the numbers.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "cpu/ops/gemm_quantized.h"
#include "quantized_ops.h"
#include "support/quantized_matrices.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using cpu::quantized_kernels;
using cpu::QuantizedKernel;
using ::testing::HasSubstr;

Result<std::unique_ptr<Linear>> make_linear(QuantizedOps& ops,
                                            const std::vector<const IntegerMatrix*>& parts,
                                            std::vector<float>* bias = nullptr) {
  std::vector<WeightView> weights;
  std::vector<int64_t> num_rows;
  for (const IntegerMatrix* part : parts) {
    weights.push_back(part->view);
    num_rows.push_back(part->n);
  }
  return ops.make({.numbers = StoredMatrices{weights}}, num_rows, bias);
}

// Computes the product in double. An output's error is at most the error of rounding activations
// plus, relative to the terms of the sum, the error of F32; with an offset, a term is a value
// without it.
void expect_product(const IntegerMatrix& w, const std::vector<float>& x, int64_t num_rows,
                    const std::vector<float>& bias, const std::vector<float>& out,
                    InputRounding rounding, const std::string& what) {
  for (int64_t t = 0; t < num_rows; ++t) {
    const float* row = x.data() + t * w.k;
    const std::vector<double> errors = rounding_errors(row, w.k, w.order, rounding);
    for (int64_t n = 0; n < w.n; ++n) {
      double sum = bias.empty() ? 0.0 : static_cast<double>(bias[static_cast<size_t>(n)]);
      double largest = 0;
      double bound = 1e-6 * std::fabs(sum);
      for (int64_t k = 0; k < w.k; ++k) {
        const auto weight = static_cast<double>(w.plain[static_cast<size_t>(n * w.k + k)]);
        sum += static_cast<double>(row[k]) * weight;
        bound += (errors[static_cast<size_t>(k)] + 1e-6 * std::fabs(row[k])) * std::fabs(weight);
        largest = std::max(largest, std::fabs(weight));
      }
      // The offset of a value is at most as large as the largest of a row of random values.
      for (int64_t k = 0; k < w.k; ++k) bound += 2e-6 * std::fabs(row[k]) * largest;
      ASSERT_NEAR(out[static_cast<size_t>(t * w.n + n)], sum, bound)
          << what << " rows=" << num_rows << " n=" << w.n << " k=" << w.k << " at " << t << ","
          << n;
    }
  }
}

// Checks one matrix with every kernel, which all give the same bits.
void expect_every_kernel(const IntegerSpec& spec, int64_t n, int64_t k,
                         const std::vector<int64_t>& row_counts) {
  const IntegerMatrix w(spec, n, k, static_cast<uint32_t>(n * 1000 + k));
  // The products of BF16 scales are too small to show beside a bias.
  std::vector<float> bias = random_floats(static_cast<size_t>(n), 5);
  if (spec.scales == DType::kBF16) bias.assign(bias.size(), 0.0F);
  for (const InputRounding rounding : {InputRounding::kNone, InputRounding::kInt8}) {
    for (const int64_t num_rows : row_counts) {
      std::vector<float> x = random_floats(static_cast<size_t>(num_rows * k), 9);
      std::vector<float> first_out;
      for (const QuantizedKernel& kernel : quantized_kernels()) {
        QuantizedOps ops(kernel.name, rounding);
        const std::unique_ptr<Linear> linear = make_linear(ops, {&w}, &bias).value();
        const std::vector<float> out = ops.run(*linear, x, num_rows);
        expect_product(w, x, num_rows, bias, out, rounding,
                       std::string(kernel.name) + " " + describe(spec));
        if (first_out.empty()) first_out = out;
        if (out.empty()) continue;  // memcmp takes no null pointers
        ASSERT_EQ(std::memcmp(out.data(), first_out.data(), out.size() * sizeof(float)), 0)
            << kernel.name << " computes other bits than " << quantized_kernels()[0].name;
      }
    }
  }
}

TEST(IntegerLinear, AgreesWithTheDefinitionForEveryGroupSize) {
  for (const int bits : {4, 8}) {
    for (const bool has_zeros : {false, true}) {
      for (const int64_t group_size :
           {int64_t{16}, int64_t{32}, int64_t{64}, int64_t{96}, int64_t{128}, int64_t{256},
            int64_t{384}, int64_t{512}, int64_t{1024}, kPerRow, kPerTensor}) {
        const IntegerSpec spec = {.bits = bits, .group_size = group_size, .has_zeros = has_zeros};
        const int64_t k = group_size == 96 || group_size == 384 ? 768 : 1024;
        expect_every_kernel(spec, 35, k, {1, 3});
        // Rows of 320 elements end within a block.
        if (group_size == 32 || group_size == 64) expect_every_kernel(spec, 7, 320, {2});
      }
    }
  }
}

TEST(IntegerLinear, AgreesWithTheDefinitionForEveryTypeOfScale) {
  for (const DType scales : {DType::kF16, DType::kBF16, DType::kF32}) {
    for (const int bits : {4, 8}) {
      for (const bool has_zeros : {false, true}) {
        for (const int64_t group_size : {int64_t{128}, kPerRow, kPerTensor}) {
          expect_every_kernel(
              {.bits = bits, .group_size = group_size, .has_zeros = has_zeros, .scales = scales},
              33, 256, {1, 2});
        }
      }
    }
  }
}

TEST(IntegerLinear, AgreesWithTheDefinitionForEveryNumberOfRows) {
  std::vector<int64_t> row_counts(34);
  std::iota(row_counts.begin(), row_counts.end(), 0);
  for (const bool has_zeros : {false, true}) {
    expect_every_kernel({.bits = 4, .group_size = 64, .has_zeros = has_zeros}, 31, 128, row_counts);
    expect_every_kernel({.bits = 8, .group_size = kPerRow, .has_zeros = has_zeros}, 31, 128,
                        row_counts);
  }
}

// Scales per row allow a number of columns that is not a multiple of 32.
TEST(IntegerLinear, RowsMayEndAnywhere) {
  for (const int64_t k : {1, 3, 28, 31, 33, 100, 255, 257, 300}) {
    for (const int bits : {4, 8}) {
      expect_every_kernel({.bits = bits, .group_size = kPerRow, .has_zeros = true}, 5, k, {1, 4});
      expect_every_kernel({.bits = bits, .group_size = 512}, 34, k, {3});
    }
  }
}

TEST(IntegerLinear, ColumnsMayHaveAnOrder) {
  for (const int64_t group_size : {int64_t{32}, int64_t{128}, kPerRow}) {
    for (const bool has_zeros : {false, true}) {
      const IntegerSpec spec = {
          .group_size = group_size, .has_zeros = has_zeros, .has_order = true};
      expect_every_kernel(spec, 40, 640, {1, 2, 9});
    }
  }
}

// The sums of 256 products of the largest integers are exact: 255 * 32512 * 256 < 2^31.
TEST(IntegerLinear, TheLargestIntegersDoNotOverflow) {
  for (const bool is_negative : {false, true}) {
    IntegerMatrix w({.bits = 8, .group_size = 256, .has_zeros = true, .scales = DType::kF32}, 3,
                    256, 1);
    std::ranges::fill(w.values, is_negative ? -128 : 127);
    std::ranges::fill(w.zeros, is_negative ? 127 : -128);
    const float one = 1.0F;
    for (size_t i = 0; i < 3; ++i) std::memcpy(w.scales.data() + 4 * i, &one, sizeof(one));
    std::vector<float> x(256, 1.0F);
    for (const QuantizedKernel& kernel : quantized_kernels()) {
      QuantizedOps ops(kernel.name);
      const std::vector<float> out = ops.run(*make_linear(ops, {&w}).value(), x, 1);
      for (const float sum : out) {
        EXPECT_NEAR(sum, is_negative ? -65280.0F : 65280.0F, 0.02F) << kernel.name;
      }
    }
  }
}

TEST(IntegerLinear, EmbedsTheNumbersThatTheIntegersStandFor) {
  QuantizedOps ops({});
  for (const int bits : {4, 8}) {
    for (const bool has_order : {false, true}) {
      for (const DType scales : {DType::kF16, DType::kBF16, DType::kF32}) {
        const IntegerSpec spec = {.bits = bits,
                                  .group_size = 64,
                                  .has_zeros = true,
                                  .scales = scales,
                                  .has_order = has_order};
        const IntegerMatrix w(spec, 45, 320, 17);
        const std::unique_ptr<Linear> linear = make_linear(ops, {&w}).value();
        const int32_t ids[] = {44, 0, 31, 32};
        std::vector<float> out(static_cast<size_t>(4 * w.k));
        ops.ops->embed(*linear, ids, 1.0F, matrix(out, 4, w.k));
        for (size_t i = 0; i < out.size(); ++i) {
          const auto row = static_cast<size_t>(ids[i / static_cast<size_t>(w.k)]);
          ASSERT_EQ(out[i], w.plain[row * static_cast<size_t>(w.k) + i % static_cast<size_t>(w.k)])
              << describe(spec) << " at " << i;
        }
      }
    }
  }
}

// The matrices stand for q, k and v. They end within panels, and their scales have several types.
TEST(IntegerLinear, StacksMatrices) {
  const IntegerMatrix q({.group_size = 64, .has_zeros = true, .scales = DType::kF16}, 40, 512, 1);
  const IntegerMatrix k({.group_size = 64, .has_zeros = true, .scales = DType::kF32}, 33, 512, 2);
  const IntegerMatrix v({.group_size = 64, .has_zeros = true, .scales = DType::kF16}, 7, 512, 3);
  std::vector<float> bias = random_floats(80, 4);
  std::vector<float> x = random_floats(3 * 512, 6);
  QuantizedOps ops({});
  const std::unique_ptr<Linear> linear = make_linear(ops, {&q, &k, &v}, &bias).value();
  ASSERT_EQ(linear->out_features(), 80);
  const std::vector<float> out = ops.run(*linear, x, 3);
  int64_t first = 0;
  for (const IntegerMatrix* part : {&q, &k, &v}) {
    std::vector<float> part_out;
    for (int64_t t = 0; t < 3; ++t) {
      const auto from = out.begin() + t * 80 + first;
      part_out.insert(part_out.end(), from, from + part->n);
    }
    const std::vector<float> part_bias(bias.begin() + first, bias.begin() + first + part->n);
    expect_product(*part, x, 3, part_bias, part_out, InputRounding::kNone, "stacked");
    first += part->n;
  }
}

TEST(IntegerLinear, RowsDoNotDependOnTheirBatch) {
  for (const bool has_order : {false, true}) {
    const IntegerSpec spec = {.group_size = 128, .has_zeros = true, .has_order = has_order};
    const IntegerMatrix w(spec, 100, 1152, 3);
    expect_bits_without_batch([&](QuantizedOps& ops) { return make_linear(ops, {&w}).value(); },
                              describe(spec));
  }
}

TEST(IntegerLinear, AnInfinityOrNanStaysInItsRow) {
  const IntegerMatrix w({.group_size = 128, .has_zeros = true}, 64, 512, 3);
  expect_infinity_stays_in_its_row(
      [&](QuantizedOps& ops) { return make_linear(ops, {&w}).value(); });
}

TEST(IntegerLinear, RefusesMatricesThatDoNotFit) {
  QuantizedOps ops({});
  const IntegerSpec spec = {.group_size = 64, .has_zeros = true, .has_order = true};
  const auto error_of = [&](const std::vector<const IntegerMatrix*>& parts) {
    return make_linear(ops, parts).status().message();
  };
  const IntegerMatrix a(spec, 4, 128, 1);
  const IntegerMatrix other_order(spec, 4, 128, 2);
  EXPECT_THAT(error_of({&a, &other_order}),
              HasSubstr("weight block 1 has its columns in another order than the first"));
  IntegerMatrix longer(spec, 4, 192, 1);
  longer.view.order = {};
  EXPECT_THAT(error_of({&a, &longer}), HasSubstr("weight block 1 does not fit"));
  IntegerMatrix without_zeros = a;
  without_zeros.view.zeros = {};
  EXPECT_THAT(error_of({&without_zeros}), HasSubstr("weight block 0 has no zero points; expected"));
  IntegerMatrix wrong_zeros = a;
  wrong_zeros.view.zeros.shape = {4, 1};
  EXPECT_THAT(error_of({&wrong_zeros}), HasSubstr("wrong zero points; got [4, 1] of i8, expected "
                                                  "[4, 2] of i8"));
  IntegerMatrix short_order = a;
  short_order.view.order.shape = {127};
  EXPECT_THAT(error_of({&short_order}), HasSubstr("got 127 of i32, expected 128 of i32"));
  std::vector<int32_t> columns(128);
  IntegerMatrix repeated = a;
  repeated.view.order = {columns.data(), DType::kI32, {128}};
  EXPECT_THAT(error_of({&repeated}), HasSubstr("expected each of its 128 columns once"));
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<int32_t>(i) + 1;
  EXPECT_THAT(error_of({&repeated}), HasSubstr("expected each of its 128 columns once"));
  IntegerMatrix without_scales = a;
  without_scales.view.scheme.scales = ScaleLayout::kNone;
  EXPECT_THAT(error_of({&without_scales}), HasSubstr("weight block 0 does not fit"));
  const IntegerMatrix odd({.group_size = 40}, 4, 120, 1);
  EXPECT_THAT(error_of({&odd}),
              HasSubstr("got 4-bit integers with a scale per group of 40, expected groups of a "
                        "multiple of 16 columns"));
}

// 4.25 bits per weight with groups of 128, F16 scales and zero points of a byte: 4 + 16/128 +
// 8/128.
TEST(IntegerLinear, TakesTheBytesThatAreEstimated) {
  QuantizedOps ops({});
  const IntegerSpec specs[] = {{.bits = 4, .group_size = 128, .has_zeros = true},
                               {.bits = 4, .group_size = 32, .scales = DType::kBF16},
                               {.bits = 8, .group_size = kPerRow, .scales = DType::kF32},
                               {.bits = 4, .group_size = 1024, .has_zeros = true}};
  for (const IntegerSpec& spec : specs) {
    const IntegerMatrix w(spec, 64, 1024, 1);
    const WeightScheme scheme = scheme_of(spec);
    const int64_t estimate =
        ops.ops->weights().quantized_bytes({w.view.values.shape, IntegerForm{scheme, spec.scales}});
    EXPECT_EQ(make_linear(ops, {&w}).value()->num_bytes(), static_cast<size_t>(estimate))
        << describe(spec);
  }
  EXPECT_EQ(ops.ops->weights().quantized_bytes(
                {{64, 1024}, IntegerForm{scheme_of(specs[0]), DType::kF16}}),
            64 * 1024 * 4 / 8 + 64 * 8 * 3);
  EXPECT_EQ(ops.ops->weights().quantized_bytes(
                {{64, 120}, IntegerForm{scheme_of({.group_size = 40}), DType::kF16}}),
            0);
}

}  // namespace
}  // namespace quire::testing

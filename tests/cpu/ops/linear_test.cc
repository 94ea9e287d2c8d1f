#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "cpu/ops/gemm_bf16.h"
#include "ops_fixture.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

// A weight matrix in a checkpoint's bytes, and the values that they encode.
struct TestWeight {
  int64_t n;
  int64_t k;
  DType dtype;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  TensorView view() { return {bytes.data(), dtype, {n, k}}; }
};

void append_as(DType dtype, float value, TestWeight& w) {
  const auto append = [&w](auto bits) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
    w.bytes.insert(w.bytes.end(), bytes, bytes + sizeof(bits));
  };
  switch (dtype) {
    case DType::kF16:
      append(f32_to_f16(value));
      return w.values.push_back(f16_to_f32(f32_to_f16(value)));
    case DType::kBF16:
      append(f32_to_bf16(value));
      return w.values.push_back(bf16_to_f32(f32_to_bf16(value)));
    default:
      append(value);
      w.values.push_back(value);
  }
}

// Every seventh weight is tiny: zero, or a subnormal in half precision.
TestWeight random_weight(int64_t n, int64_t k, DType dtype, uint32_t seed) {
  TestWeight w = {.n = n, .k = k, .dtype = dtype, .bytes = {}, .values = {}};
  const std::vector<float> values = random_floats(static_cast<size_t>(n * k), seed, 0.05F);
  for (size_t i = 0; i < values.size(); ++i) {
    const float tiny = i % 2 == 0 ? 0.0F : 1e-4F;
    append_as(dtype, i % 7 == 3 ? values[i] * tiny : values[i], w);
  }
  return w;
}

std::unique_ptr<Linear> make_linear(Ops& ops, TestWeight& w, std::vector<float>* bias = nullptr) {
  const WeightView weight = w.view();
  TensorView bias_view;
  if (bias != nullptr) bias_view = {bias->data(), DType::kF32, {w.n}};
  LinearSource source = {.numbers = StoredMatrices{{&weight, 1}}};
  if (bias != nullptr) source.biases = {&bias_view, 1};
  return std::move(ops.weights().make_linear(source)).value();
}

std::vector<float> run(Ops& ops, const Linear& linear, std::vector<float>& x, int64_t m) {
  std::vector<float> out(static_cast<size_t>(m * linear.out_features()), NAN);
  ops.linear(linear, matrix(x, m, linear.in_features()), matrix(out, m, linear.out_features()));
  return out;
}

// Computes the product in double. `magnitude` bounds the rounding errors.
void expect_product(const TestWeight& w, const std::vector<float>& x, int64_t m,
                    const std::vector<float>& bias, const std::vector<float>& out,
                    const std::string& what) {
  for (int64_t t = 0; t < m; ++t) {
    for (int64_t n = 0; n < w.n; ++n) {
      double sum = bias.empty() ? 0.0 : static_cast<double>(bias[static_cast<size_t>(n)]);
      double magnitude = std::fabs(sum);
      for (int64_t k = 0; k < w.k; ++k) {
        const double product = static_cast<double>(x[static_cast<size_t>(t * w.k + k)]) *
                               static_cast<double>(w.values[static_cast<size_t>(n * w.k + k)]);
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(out[static_cast<size_t>(t * w.n + n)], sum, 1e-6 + 1e-5 * magnitude)
          << what << " m=" << m << " n=" << w.n << " k=" << w.k << " at " << t << "," << n;
    }
  }
}

constexpr DType kWeightTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

TEST(Linear, AgreesWithTheDefinitionOnAwkwardShapes) {
  const int64_t shapes[][2] = {{1, 1},   {15, 7},  {16, 32},   {17, 33},  {33, 31},
                               {64, 64}, {65, 48}, {130, 255}, {96, 288}, {31, 600}};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const DType dtype : kWeightTypes) {
      for (const auto& [n, k] : shapes) {
        TestWeight w = random_weight(n, k, dtype, static_cast<uint32_t>(n * 1000 + k));
        std::vector<float> bias = random_floats(static_cast<size_t>(n), 5);
        const std::unique_ptr<Linear> linear = make_linear(*ops, w, &bias);
        ASSERT_EQ(linear->in_features(), k);
        ASSERT_EQ(linear->out_features(), n);
        for (const int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 13, 16, 17, 33, 70}) {
          std::vector<float> x = random_floats(static_cast<size_t>(m * k), 9);
          expect_product(w, x, m, bias, run(*ops, *linear, x, m),
                         variant.name + " " + std::string(dtype_name(dtype)));
        }
      }
    }
  }
}

// Row t has the same bits alone and in a batch of any size, at any place in it, on any threads and
// nodes.
TEST(Linear, RowsDoNotDependOnTheirBatch) {
  constexpr int64_t kN = 150;
  constexpr int64_t kK = 2100;  // several blocks of k on every path
  constexpr int64_t kMaxRows = 520;
  std::vector<float> x = random_floats(kMaxRows * kK, 77);
  for (const Variant& variant : variants()) {
    if (variant.target == HWY_SCALAR || variant.target == HWY_EMU128) continue;  // too slow
    for (const DType dtype : kWeightTypes) {
      TestWeight w = random_weight(kN, kK, dtype, 3);
      std::vector<float> alone;
      for (const auto& nodes : {std::vector{0}, {0, 0}, {0, 1, 0}}) {
        VariantOps ops(variant, on_nodes(nodes));
        const std::unique_ptr<Linear> linear = make_linear(*ops, w);
        for (const int64_t m : {int64_t{1}, int64_t{2}, int64_t{15}, int64_t{16}, int64_t{17},
                                int64_t{33}, int64_t{64}, kMaxRows}) {
          const std::vector<float> out = run(*ops, *linear, x, m);
          if (alone.empty()) alone = out;
          const size_t known = std::min(alone.size(), out.size());
          ASSERT_EQ(std::memcmp(alone.data(), out.data(), known * sizeof(float)), 0)
              << variant.name << " " << dtype_name(dtype) << " m=" << m << " t=" << nodes.size();
          if (out.size() > alone.size()) alone = out;
        }
        for (const int64_t t : {3L, 31L, 300L, 519L}) {
          std::vector<float> one(x.begin() + t * kK, x.begin() + (t + 1) * kK);
          const std::vector<float> out = run(*ops, *linear, one, 1);
          ASSERT_EQ(std::memcmp(alone.data() + t * kN, out.data(), kN * sizeof(float)), 0)
              << variant.name << " " << dtype_name(dtype) << " row " << t;
        }
      }
    }
  }
}

// Each finite F16 and BF16 value times one gives exactly the value, however the kernel splits it.
TEST(Linear, EveryWeightMeansItself) {
  constexpr int64_t kK = 32;
  constexpr int64_t kN = 65536 / kK;
  std::vector<float> eye(64 * kK, 0.0F);
  for (size_t t = 0; t < 64; ++t) eye[t * kK + t % kK] = 1.0F;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    // Infinities and NaN would affect the whole row's sum, and so would a BF16 value whose product
    // overflows.
    const uint32_t exponent = dtype == DType::kF16 ? 0x7C00U : 0x7F80U;
    // AMX and AVX-512 BF16 read subnormal BF16 values (below 1e-38) as zeros.
    const float smallest = dtype == DType::kBF16 ? 0x1p-126F : 0.0F;
    for (const float limit : {31.9F, 1e38F}) {  // F16 weights below 32 take a separate path
      TestWeight w = {.n = kN, .k = kK, .dtype = dtype, .bytes = {}, .values = {}};
      for (uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        float value = dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
        if ((bits & exponent) == exponent || std::fabs(value) > limit) value = 0.0F;
        append_as(dtype, value, w);
      }
      for (const Variant& variant : variants()) {
        VariantOps ops(variant);
        const std::unique_ptr<Linear> linear = make_linear(*ops, w);
        for (const int64_t m : {1, 32, 64}) {
          const std::vector<float> out = run(*ops, *linear, eye, m);
          for (int64_t t = 0; t < m; ++t) {
            for (int64_t n = 0; n < kN; ++n) {
              const float want = w.values[static_cast<size_t>(n * kK + t % kK)];
              if (want != 0.0F && std::fabs(want) < smallest) continue;
              ASSERT_EQ(out[static_cast<size_t>(t * kN + n)], want) << variant.name << " m=" << m;
            }
          }
        }
      }
    }
  }
}

// Activations that are BF16 already have no second term. Only BF16 weights have rounded inputs.
TEST(Linear, RoundsActivationsToBf16WhereAsked) {
  if (!cpu::avx512_bf16_usable()) GTEST_SKIP() << "AVX-512 BF16 is not usable";
  constexpr int64_t kN = 70;
  constexpr int64_t kK = 2100;
  constexpr int64_t kRows = 270;
  std::vector<float> x = random_floats(kRows * kK, 6);
  std::vector<float> rounded;
  for (const float value : x) rounded.push_back(bf16_to_f32(f32_to_bf16(value)));
  for (const Variant& variant : variants()) {
    if (!variant.options.use_avx512_bf16) continue;
    for (const DType dtype : kWeightTypes) {
      TestWeight w = random_weight(kN, kK, dtype, 4);
      VariantOps exact(variant);
      const std::unique_ptr<Linear> linear = make_linear(*exact, w);
      Variant rounding_variant = variant;
      rounding_variant.options.rounding = InputRounding::kBf16;
      VariantOps rounding(rounding_variant);
      const std::unique_ptr<Linear> rounding_linear = make_linear(*rounding, w);
      for (const int64_t m : {int64_t{1}, int64_t{17}, kRows}) {
        const std::string what =
            variant.name + " " + std::string(dtype_name(dtype)) + " m=" + std::to_string(m);
        const std::vector<float> out = run(*rounding, *rounding_linear, x, m);
        const std::vector<float> of_rounded = run(*exact, *linear, rounded, m);
        const std::vector<float> of_exact = run(*exact, *linear, x, m);
        EXPECT_EQ(out, dtype == DType::kBF16 ? of_rounded : of_exact) << what;
        EXPECT_NE(of_rounded, of_exact) << what;
      }
    }
  }
}

TEST(Linear, KeepsInfinitiesAndNaN) {
  TestWeight w = random_weight(3, 40, DType::kF16, 1);
  const uint16_t special[] = {0x7C00, 0x7E00, 0x3C00};
  for (size_t n = 0; n < 3; ++n) std::memcpy(w.bytes.data() + n * 80, &special[n], 2);
  std::vector<float> x(40, 1.0F);
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    const std::unique_ptr<Linear> linear = make_linear(*ops, w);
    const std::vector<float> out = run(*ops, *linear, x, 1);
    EXPECT_EQ(out[0], INFINITY) << variant.name;
    EXPECT_TRUE(std::isnan(out[1])) << variant.name;
    EXPECT_TRUE(std::isfinite(out[2])) << variant.name;
  }
}

TEST(Linear, StacksBlocksAndTheirBiases) {
  TestWeight a = random_weight(20, 40, DType::kF16, 1);
  TestWeight b = random_weight(7, 40, DType::kF16, 2);
  std::vector<float> bias_b = random_floats(7, 3);
  const WeightView weights[] = {a.view(), b.view()};
  const TensorView biases[] = {{nullptr, DType::kF32, {20}}, {bias_b.data(), DType::kF32, {7}}};
  std::vector<float> x = random_floats(3 * 40, 4);
  TestWeight both = {.n = 27, .k = 40, .dtype = DType::kF16, .bytes = {}, .values = a.values};
  both.values.insert(both.values.end(), b.values.begin(), b.values.end());
  std::vector<float> bias(20, 0.0F);
  bias.insert(bias.end(), bias_b.begin(), bias_b.end());
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    const auto linear = std::move(ops->weights().make_linear(
                                      {.numbers = StoredMatrices{weights}, .biases = biases}))
                            .value();
    expect_product(both, x, 3, bias, run(*ops, *linear, x, 3), variant.name);
  }
}

TEST(Linear, EmbedReadsTheRowsThatWerePacked) {
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const DType dtype : kWeightTypes) {
      for (const int64_t k : {1L, 33L, 48L}) {
        TestWeight w = random_weight(37, k, dtype, 8);
        const std::unique_ptr<Linear> table = make_linear(*ops, w);
        std::vector<float> out(static_cast<size_t>(4 * k));
        const int32_t ids[] = {36, 0, 17, 36};
        for (const float scale : {1.0F, 1.7F}) {
          ops->embed(*table, ids, scale, matrix(out, 4, k));
          for (size_t i = 0; i < out.size(); ++i) {
            const auto column = static_cast<int64_t>(i) % k;
            const auto row = ids[static_cast<int64_t>(i) / k];
            ASSERT_EQ(out[i], scale * w.values[static_cast<size_t>(row * k + column)]);
          }
        }
      }
    }
  }
}

TEST(Linear, RefusesBlocksThatDoNotFit) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  TestWeight a = random_weight(4, 8, DType::kF16, 1);
  TestWeight narrow = random_weight(4, 6, DType::kF16, 1);
  TestWeight other = random_weight(4, 8, DType::kBF16, 1);
  const WeightView widths[] = {a.view(), narrow.view()};
  const WeightView types[] = {a.view(), other.view()};
  const WeightView flat[] = {TensorView{a.bytes.data(), DType::kF16, {32}}};
  const WeightView ids[] = {TensorView{a.bytes.data(), DType::kI32, {4, 4}}};
  const WeightView one[] = {a.view()};
  const TensorView short_bias[] = {{a.bytes.data(), DType::kF16, {3}}};
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{widths}}).ok());
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{types}}).ok());
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{flat}}).ok());
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{ids}}).ok());
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{{}}}).ok());
  EXPECT_FALSE(
      ops->weights().make_linear({.numbers = StoredMatrices{one}, .biases = short_bias}).ok());
  EXPECT_TRUE(ops->weights().make_linear({.numbers = StoredMatrices{one}}).ok());
}

struct ScaledCase {
  WeightScheme scheme;
  DType scales;
};

// An FP8 matrix with scales, and the values that it encodes.
struct ScaledWeight {
  ScaledWeight(const ScaledCase& spec, int64_t n, int64_t k, uint32_t seed) {
    const Shape shape = {n, k};
    const Shape num_scales = scales_shape(spec.scheme, shape);
    const Shape block = scale_block(spec.scheme, shape);
    scales = random_weight(num_scales[0], num_scales[1], spec.scales, seed);
    const bool in_bf16 = spec.scheme.dequantized_dtype == DType::kBF16;
    numbers = {
        .n = n, .k = k, .dtype = in_bf16 ? DType::kBF16 : DType::kF32, .bytes = {}, .values = {}};
    std::mt19937 random(seed + 1);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t column = 0; column < k; ++column) {
        // Uses every code except the two NaNs.
        auto bits = static_cast<uint8_t>(random());
        if ((bits & 0x7FU) == 0x7FU) bits = 0;
        values.push_back(bits);
        const auto at = row / block[0] * num_scales[1] + column / block[1];
        const float product = e4m3_to_f32(bits) * scales.values[static_cast<size_t>(at)];
        numbers.values.push_back(in_bf16 ? bf16_to_f32(f32_to_bf16(product)) : product);
      }
    }
    view = {{values.data(), DType::kF8E4M3, shape}, scales.view(), spec.scheme};
  }

  std::vector<uint8_t> values;
  TestWeight scales;
  TestWeight numbers;
  WeightView view;
};

constexpr ScaledCase kScaledCases[] = {
    {{DType::kF8E4M3, ScaleLayout::kTensor}, DType::kF32},
    {{DType::kF8E4M3, ScaleLayout::kRows}, DType::kBF16},
    {{DType::kF8E4M3, ScaleLayout::kBlocks, 16, 32}, DType::kF32},
    {{DType::kF8E4M3, ScaleLayout::kBlocks, 128, 128}, DType::kF16},
    {{DType::kF8E4M3, ScaleLayout::kRows, 0, 0, DType::kBF16}, DType::kF32},
    {{DType::kF8E4M3, ScaleLayout::kTensor, 0, 0, DType::kF16}, DType::kF32},
};

// 37 and 20 rows of 83 numbers take 2 panels of 96 * 32.
constexpr size_t kPackedNumbers = 2 * 96 * 32;

TEST(Linear, Fp8IsMultipliedByItsScalesWhenItIsPacked) {
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const ScaledCase& spec : kScaledCases) {
      // Two matrices, each with its own scales. Blocks at the ends of a matrix are cut short.
      ScaledWeight a(spec, 37, 83, 1);
      ScaledWeight b(spec, 20, 83, 5);
      const WeightView stacked[] = {a.view, b.view};
      const auto linear =
          std::move(ops->weights().make_linear({.numbers = StoredMatrices{stacked}})).value();
      EXPECT_EQ(linear->num_bytes(), kPackedNumbers * dtype_bytes(a.numbers.dtype));
      TestWeight both = a.numbers;
      both.n += b.numbers.n;
      both.values.insert(both.values.end(), b.numbers.values.begin(), b.numbers.values.end());
      std::vector<float> x = random_floats(5 * 83, 3);
      expect_product(both, x, 5, {}, run(*ops, *linear, x, 5), describe(spec.scheme));
      std::vector<float> rows(2 * 83);
      const int32_t ids[] = {36, 37};
      ops->embed(*linear, ids, 1.0F, matrix(rows, 2, 83));
      EXPECT_TRUE(std::equal(rows.begin(), rows.end(), both.values.begin() + 36 * 83))
          << describe(spec.scheme);
    }
  }
}

TEST(Linear, RefusesSchemesThatItDoesNotServe) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  const ScaledWeight good(kScaledCases[0], 4, 8, 1);
  WeightView ints = good.view;
  ints.scheme.values = ints.values.dtype = DType::kI32;
  const Status refused =
      ops->weights().make_linear({.numbers = StoredMatrices{{&ints, 1}}}).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_NE(refused.message().find("i32 with a scale per tensor"), std::string::npos);
  WeightView no_scales = good.view;
  no_scales.scales.data = nullptr;
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{{&no_scales, 1}}}).ok());
  WeightView misshapen = good.view;
  misshapen.scheme.scales = ScaleLayout::kRows;
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{{&misshapen, 1}}}).ok());
  const WeightView bare = good.view.values;
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{{&bare, 1}}}).ok())
      << "FP8 without scales";
  const ScaledWeight rows(kScaledCases[1], 4, 8, 1);
  const WeightView mixed[] = {good.view, rows.view};
  EXPECT_FALSE(ops->weights().make_linear({.numbers = StoredMatrices{mixed}}).ok());
}

}  // namespace
}  // namespace quire::testing

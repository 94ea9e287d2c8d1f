// Products with weights that stay packed on the device, against sums in double.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/gemm/packed/packed_choice.h"
#include "cuda/ops/device_data.h"
#include "packed_numbers.h"

namespace quire::testing {
namespace {

// A packed Linear and the numbers that it stands for.
struct PackedCase : PackedNumbers {
  std::string what;
  std::unique_ptr<Linear> linear;
  std::vector<float> bias;
  bool can_unpack = true;
  bool scales_sums = false;  // tiles of few tokens do, and so do not round weights
};

// Whether the kernel for tiles of few tokens multiplies sums with the matrix's scales.
bool scales_sums_of(const GgufMatrix& /*m*/) {
  return false;
}
bool scales_sums_of(const IntegerMatrix& m) {
  const QuantizedFormat format =
      quantized_format(m.view.scheme, m.view.scales.dtype, m.view.values.shape).value();
  return format.value_bits == 4 && !format.has_zeros && format.group_k >= 64;
}

class PackedMatricesTest : public CudaOpsTest {
 protected:
  void SetUp() override {
    CudaOpsTest::SetUp();
    if (IsSkipped()) return;
    if (block_bytes(ops_->weights(), *find_gguf_block_type(8)) == 0) {
      GTEST_SKIP() << "weights stay packed on Hopper and later";
    }
  }

  // Every second matrix has no bias.
  template <typename Matrix, typename View>
  PackedCase make(const std::vector<const Matrix*>& matrices, const std::vector<View>& views,
                  LinearSource source, bool has_bias) {
    PackedCase made;
    std::vector<TensorView> biases;
    for (const Matrix* matrix : matrices) {
      made.add(*matrix);
      made.scales_sums = scales_sums_of(*matrix);
    }
    made.bias.assign(static_cast<size_t>(made.n), 0.0F);
    const std::vector<float> numbers = random(made.n, 5);
    int64_t first = 0;
    for (size_t i = 0; i < matrices.size(); ++i) {
      const int64_t count = matrices[i]->n;
      if (i % 2 == 0) std::copy_n(numbers.data() + first, count, made.bias.data() + first);
      biases.push_back({i % 2 == 0 ? made.bias.data() + first : nullptr, DType::kF32, {count}});
      first += count;
    }
    if (has_bias) source.biases = biases;
    if (!has_bias) made.bias.assign(made.bias.size(), 0.0F);
    EXPECT_EQ(views.size(), matrices.size());
    Result<std::unique_ptr<Linear>> linear = ops_->weights().make_linear(source);
    EXPECT_EQ(linear.status().message(), "");
    made.linear = std::move(linear).value();
    return made;
  }
  PackedCase make(const std::vector<const GgufMatrix*>& matrices, bool has_bias = false) {
    std::vector<BlockMatrix> views;
    for (const GgufMatrix* matrix : matrices) views.push_back(matrix->view());
    PackedCase made = make(matrices, views, {.numbers = MatricesInBlocks{views}}, has_bias);
    made.what = matrices.front()->type.name;
    return made;
  }
  PackedCase make(const std::vector<const IntegerMatrix*>& matrices, bool has_bias = false) {
    std::vector<WeightView> views;
    for (const IntegerMatrix* matrix : matrices) views.push_back(matrix->view);
    PackedCase made = make(matrices, views, {.numbers = StoredMatrices{views}}, has_bias);
    made.what = quire::describe(matrices.front()->view.scheme);
    return made;
  }

  // A sum in double, and the largest error of a sum in F32: of the kernel for few rows, and, added
  // to that, of weights that are rounded after they are scaled, or before too.
  struct Sum {
    double value = 0;
    double bound = 0;
    double of_rounded = 0;
    double of_tiles = 0;

    double bound_of(cuda::PackedMethod method, bool scales_sums) const {
      if (method == cuda::PackedMethod::kFewRows || scales_sums) return bound;
      return bound + (method == cuda::PackedMethod::kTiles ? of_tiles : of_rounded);
    }
  };
  Sum sum_of(const PackedCase& w, const std::vector<float>& x, int64_t t, int64_t row) const {
    // The tensor cores' sums keep at least 22 bits.
    constexpr double kOfTerms = 4e-6;
    constexpr int64_t kLeastGroup = 16;  // columns; larger groups are several
    const double roundoff = dtype() == DType::kBF16 ? 0x1p-8 : 0x1p-11;
    // The error of an F16 scale below the normal numbers, times an integer.
    const double subnormal = dtype() == DType::kBF16 ? 0 : 0x1p-25 * 129;
    Sum sum;
    sum.value = static_cast<double>(w.bias[static_cast<size_t>(row)]);
    double of_weights = 0;
    double squares = 0;
    double scaled = 0;  // of a group
    double added = 0;
    for (int64_t k = 0; k < w.k; ++k) {
      const auto at = static_cast<size_t>(row * w.k + k);
      const auto number = static_cast<double>(x[static_cast<size_t>(t * w.k + k)]);
      const auto weight = static_cast<double>(w.weights[at]);
      const auto of_group = static_cast<double>(w.added[at]);
      sum.value += number * weight;
      sum.bound += std::abs(number) * kOfTerms * static_cast<double>(w.magnitudes[at]);
      sum.of_rounded += std::abs(number) * (roundoff * std::abs(weight) + subnormal);
      // The weight is rounded after its scale and what is added to it.
      const double rounded =
          std::abs(weight) + roundoff * (std::abs(weight - of_group) + std::abs(of_group));
      const double of_weight = std::abs(number) * (roundoff * rounded + subnormal);
      of_weights += of_weight;
      squares += of_weight * of_weight;
      scaled += number * (weight - of_group);
      added += number * of_group;
      if ((k + 1) % kLeastGroup != 0 && k + 1 < w.k) continue;
      // The error of a tile is equal in all columns.
      sum.of_tiles += roundoff * (std::abs(scaled) + std::abs(added));
      scaled = added = 0;
    }
    // Errors of many independent weights do not add up to the sum of their bounds.
    sum.of_tiles += std::min(of_weights, 6 * std::sqrt(squares));
    sum.bound += 1e-30 + 1e-6 * std::abs(sum.value);
    return sum;
  }

  // Checks products of the first rows of x, for each of these counts.
  void check(const PackedCase& w, const std::vector<int64_t>& counts, DType out_type) {
    const int64_t most = *std::max_element(counts.begin(), counts.end());
    const std::vector<float> x = random(most * w.k, static_cast<uint32_t>(7 + most));
    std::vector<Sum> sums;
    for (int64_t t = 0; t < most; ++t) {
      for (int64_t row = 0; row < w.n; ++row) sums.push_back(sum_of(w, x, t, row));
    }
    const DeviceData input = device({most, w.k}, x);
    const double of_out = out_type == DType::kBF16 ? 0x1p-8 : out_type == DType::kF16 ? 0x1p-10 : 0;
    for (const int64_t num_rows : counts) {
      const cuda::PackedMethod method = cuda::packed_method(num_rows, w.can_unpack);
      const bool scales_sums = w.scales_sums && num_rows <= 32;
      DeviceData out(stream(), {num_rows, w.n}, out_type);
      ops_->linear(*w.linear, input.view().rows(0, num_rows), out.view());
      const std::vector<float> got = out.values();
      int num_wrong = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const double bound =
            sums[i].bound_of(method, scales_sums) + of_out * std::abs(sums[i].value);
        if (std::abs(static_cast<double>(got[i]) - sums[i].value) <= bound || ++num_wrong > 3) {
          continue;
        }
        ADD_FAILURE() << w.what << ", " << num_rows << " rows of " << w.k << " to " << w.n << " "
                      << dtype_name(out_type) << ": row " << i / static_cast<size_t>(w.n)
                      << " column " << i % static_cast<size_t>(w.n) << " is " << got[i]
                      << ", expected " << sums[i].value << " up to " << bound;
      }
      EXPECT_EQ(num_wrong, 0) << w.what << ", " << num_rows << " rows of " << w.k << " to " << w.n;
    }
  }
  void check(const PackedCase& w, int64_t num_rows, DType out_type) {
    check(w, std::vector<int64_t>{num_rows}, out_type);
  }
};

TEST_P(PackedMatricesTest, EveryTypeOfBlock) {
  for (const GgufBlockType& type : quantized_types()) {
    const int64_t block = type.block_elements;
    const int64_t shapes[][2] = {{1, block}, {33, 2 * block}, {40, 9 * block}, {129, 3 * block}};
    for (const auto& [n, k] : shapes) {
      const GgufMatrix m = random_matrix(type, n, k, static_cast<uint32_t>(n * 1000 + k));
      const PackedCase w = make({&m}, n == 40);
      check(w, {1, 2, 5, 8, 9, 16, 17, 32, 33, 65}, DType::kF32);
      check(w, {3, 40}, dtype());
    }
  }
}

// A matrix of MXFP4 whose groups have these exponents in turn, and all codes. The codes of exponent
// 254 are below 2, so that F32 has their numbers.
struct Mxfp4Numbers {
  GgufMatrix m;
  std::vector<double> numbers;

  Mxfp4Numbers(int64_t n, int64_t k, const std::vector<uint8_t>& exponents)
      : m(random_matrix(*find_gguf_block_type(39), n, k, 1)) {
    constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (int64_t block = 0; block < n * k / 32; ++block) {
      std::byte* const bytes = m.bytes.data() + block * 17;
      // Neighbouring rows have different exponents in a group.
      const auto at = static_cast<size_t>(block + block / (k / 32));
      const uint8_t exponent = exponents[at % exponents.size()];
      std::fill_n(bytes + 1, 16, std::byte{0});
      bytes[0] = std::byte{exponent};
      for (int64_t i = 0; i < 32; ++i) {
        const auto code =
            static_cast<unsigned>((i * 5 + block) % 16) & (exponent == 254 ? 11U : 15U);
        bytes[1 + i % 16] |= static_cast<std::byte>(i < 16 ? code : code << 4);
        const double magnitude = std::ldexp(kMagnitudes[code % 8], exponent - 127);
        numbers.push_back(code < 8 ? magnitude : -magnitude);
      }
    }
  }
};

// Multiplies by the identity, by each kernel. Tiles and unpacked weights are numbers of 16 bits, so
// F16 has exponents of its own. cuBLASLt may lose subnormal numbers.
TEST_P(PackedMatricesTest, MakesTheExactNumbersOfMxfp4) {
  constexpr int64_t kN = 48, kK = 288;
  const std::vector<uint8_t> wide = {0, 1, 2, 63, 126, 127, 128, 192, 252, 254};
  const std::vector<uint8_t> of_f16 = {104, 105, 112, 113, 127, 139, 140};
  std::vector<float> identity(kK * kK);
  for (size_t i = 0; i < kK; ++i) identity[i * kK + i] = 1.0F;
  const DeviceData x = device({kK, kK}, identity);
  const bool is_f16 = dtype() == DType::kF16;
  for (const auto& exponents : {wide, of_f16}) {
    const Mxfp4Numbers w(kN, kK, exponents);
    const PackedCase packed = make({&w.m});
    for (const int64_t num_rows : {1, 8, 16, 32, 64, 128, 288}) {
      const cuda::PackedMethod method = cuda::packed_method(num_rows, true);
      if (is_f16 && exponents == wide && method != cuda::PackedMethod::kFewRows) continue;
      const double lost = method == cuda::PackedMethod::kUnpacked ? 0x1p-126 : 0;
      for (int64_t first = 0; first + num_rows <= kK; first += num_rows) {
        DeviceData out(stream(), {num_rows, kN}, DType::kF32);
        ops_->linear(*packed.linear, x.view().rows(first, num_rows), out.view());
        const std::vector<float> got = out.values();
        for (int64_t t = 0; t < num_rows; ++t) {
          for (int64_t row = 0; row < kN; ++row) {
            const double number = w.numbers[static_cast<size_t>(row * kK + first + t)];
            const double value = got[static_cast<size_t>(t * kN + row)];
            ASSERT_TRUE(value == number || (std::abs(number) < lost && value == 0))
                << num_rows << " rows: row " << row << " column " << first + t << " is " << value
                << ", expected " << number;
          }
        }
      }
    }
  }
}

TEST_P(PackedMatricesTest, EveryNumberOfRows) {
  const GgufMatrix q4 = random_matrix(*find_gguf_block_type(12), 65, 512, 1);
  const GgufMatrix q6 = random_matrix(*find_gguf_block_type(14), 65, 512, 2);
  const GgufMatrix q8 = random_matrix(*find_gguf_block_type(8), 65, 480, 3);
  for (const GgufMatrix* m : {&q4, &q6, &q8}) {
    const PackedCase w = make({m});
    std::vector<int64_t> counts(301);
    std::iota(counts.begin(), counts.end(), int64_t{0});
    check(w, counts, DType::kF32);
    check(w, {1, 9, 17, 33, 65, 129, 257}, dtype());
  }
}

TEST_P(PackedMatricesTest, EveryLayoutOfIntegers) {
  for (const int bits : {4, 8}) {
    for (const bool has_zeros : {false, true}) {
      for (const DType scales : {DType::kF16, DType::kBF16, DType::kF32}) {
        for (const int64_t group_size :
             {int64_t{16}, int64_t{32}, int64_t{64}, int64_t{96}, int64_t{128}, int64_t{256},
              int64_t{512}, kPerRow, kPerTensor}) {
          if (bits == 8 && group_size == 16) continue;
          IntegerSpec spec = {.bits = bits, .group_size = group_size, .has_zeros = has_zeros};
          spec.scales = scales;
          const IntegerMatrix m(spec, 35, group_size == 96 ? 576 : 1024, 3);
          const PackedCase w = make({&m}, scales == DType::kF32);
          for (const int64_t num_rows : {1, 4, 11, 25, 40, 65}) check(w, num_rows, DType::kF32);
        }
      }
    }
  }
}

TEST_P(PackedMatricesTest, RowsMayEndWithinASlice) {
  for (const int64_t k : {8, 24, 56, 64, 72, 136, 264, 328, 776}) {
    for (const auto& [bits, has_zeros] :
         {std::pair(4, false), std::pair(4, true), std::pair(8, true)}) {
      const IntegerMatrix m({.bits = bits, .group_size = kPerRow, .has_zeros = has_zeros}, 37, k,
                            9);
      const PackedCase w = make({&m});
      check(w, {1, 7, 9, 20, 40, 130}, DType::kF32);
    }
  }
}

// Enough panels for one part of K per warp, and numbers of panels that 2 and 4 divide or not.
TEST_P(PackedMatricesTest, LargeMatrices) {
  for (const int64_t n : {2048, 4352, 4320, 4300, 9000}) {
    const GgufMatrix q4 = random_matrix(*find_gguf_block_type(12), n, 768, 4);
    const GgufMatrix q6 = random_matrix(*find_gguf_block_type(14), n / 2, 1280, 5);
    for (const GgufMatrix* m : {&q4, &q6}) {
      const PackedCase w = make({m});
      check(w, {1, 3, 8, 20, 33}, DType::kF32);
    }
  }
}

TEST_P(PackedMatricesTest, FewRowsOfManyColumns) {
  for (const int64_t k : {4096, 14336}) {
    const GgufMatrix m = random_matrix(*find_gguf_block_type(2), 96, k, 4);
    const PackedCase w = make({&m});
    check(w, {1, 8, 16, 32, 64, 128, 129, 256}, DType::kF32);
  }
}

TEST_P(PackedMatricesTest, ManyRows) {
  const GgufMatrix m = random_matrix(*find_gguf_block_type(8), 33, 64, 4);
  check(make({&m}), {257, 1000, 16384, 17000}, DType::kF32);
}

TEST_P(PackedMatricesTest, ColumnsMayHaveAnOrder) {
  for (const int64_t group_size : {int64_t{32}, int64_t{128}, kPerRow}) {
    for (const bool has_zeros : {false, true}) {
      const IntegerSpec spec = {
          .group_size = group_size, .has_zeros = has_zeros, .has_order = true};
      const IntegerMatrix m(spec, 40, 640, 8);
      const PackedCase w = make({&m});
      check(w, {1, 9, 33, 140, 260}, DType::kF32);
    }
  }
}

// The matrices stand for q, k and v in a file whose v has another type. They end within panels.
TEST_P(PackedMatricesTest, StacksMatricesOfSeveralTypes) {
  const auto of_type = [](uint32_t id, int64_t n) {
    return random_matrix(*find_gguf_block_type(id), n, 512, id);
  };
  const GgufMatrix q = of_type(12, 40);
  const GgufMatrix k = of_type(12, 33);
  const GgufMatrix v = of_type(14, 7);
  const GgufMatrix more = of_type(8, 96);
  PackedCase w = make({&q, &k, &v, &more}, true);
  w.can_unpack = false;  // v begins at row 73
  check(w, {1, 6, 9, 33, 150, 300}, DType::kF32);
  check(w, {1, 6, 9, 33, 150, 300}, dtype());
}

TEST_P(PackedMatricesTest, StacksMatricesOfSeveralScales) {
  IntegerSpec spec = {.group_size = 64, .has_zeros = true};
  const IntegerMatrix q(spec, 64, 512, 1);
  spec.scales = DType::kF32;
  const IntegerMatrix k(spec, 33, 512, 2);
  spec.scales = DType::kF16;
  const IntegerMatrix v(spec, 7, 512, 3);
  const PackedCase w = make({&q, &k, &v}, true);
  for (const int64_t num_rows : {1, 6, 33}) check(w, num_rows, DType::kF32);
}

// 75 MB of unpacked weights take two turns of the workspace. Some of the results are checked.
TEST_P(PackedMatricesTest, UnpacksInParts) {
  const GgufMatrix large = random_matrix(*find_gguf_block_type(12), 9184, 4096, 3);
  const PackedCase w = make({&large}, true);
  constexpr int64_t kRows = 257;
  const std::vector<float> x = random(kRows * w.k, 8);
  const DeviceData input = device({kRows, w.k}, x);
  DeviceData out(stream(), {kRows, w.n}, DType::kF32);
  ops_->linear(*w.linear, input.view(), out.view());
  const std::vector<float> got = out.values();
  for (const int64_t t : {0, 130, 256}) {
    for (int64_t row = 0; row < w.n; row += row < 8000 ? 61 : 7) {
      const Sum sum = sum_of(w, x, t, row);
      ASSERT_NEAR(got[static_cast<size_t>(t * w.n + row)], sum.value,
                  sum.bound_of(cuda::PackedMethod::kUnpacked, false))
          << "row " << t << " column " << row;
    }
  }
}

TEST_P(PackedMatricesTest, UnpacksMatricesOfSeveralTypes) {
  const GgufMatrix q = random_matrix(*find_gguf_block_type(12), 64, 512, 4);
  const GgufMatrix k = random_matrix(*find_gguf_block_type(14), 40, 512, 5);
  const GgufMatrix v = random_matrix(*find_gguf_block_type(8), 24, 512, 6);
  check(make({&q, &k, &v}, true), 257, DType::kF32);
}

TEST_P(PackedMatricesTest, RowsDoNotDependOnTheirBatch) {
  for (const auto& [id, n] : {std::pair(12U, 4352), std::pair(14U, 96), std::pair(8U, 2100)}) {
    const GgufMatrix m = random_matrix(*find_gguf_block_type(id), n, 1536, 3);
    const PackedCase w = make({&m});
    constexpr int64_t kRows = 8;
    ASSERT_EQ(cuda::packed_method(kRows, true), cuda::PackedMethod::kFewRows);
    const std::vector<float> x = random(kRows * w.k, 6);
    const DeviceData input = device({kRows, w.k}, x);
    const auto rows_of = [&](int64_t first, int64_t count) {
      DeviceData out(stream(), {count, w.n}, DType::kF32);
      ops_->linear(*w.linear, input.view().rows(first, count), out.view());
      return out.bytes();
    };
    const std::vector<std::byte> all = rows_of(0, kRows);
    const auto row_bytes = static_cast<size_t>(w.n) * 4;
    for (const int64_t count : {1, 2, 3, 4, 5, 7}) {
      const int64_t first = kRows - count;
      const std::vector<std::byte> some = rows_of(first, count);
      EXPECT_EQ(std::memcmp(some.data(), all.data() + static_cast<size_t>(first) * row_bytes,
                            some.size()),
                0)
          << m.type.name << ", " << count << " rows";
    }
  }
}

TEST_P(PackedMatricesTest, RowsNeedNoAlignment) {
  const GgufMatrix m = random_matrix(*find_gguf_block_type(12), 40, 512, 3);
  const PackedCase w = make({&m});
  for (const int64_t num_rows : {1, 9, 32}) {
    const std::vector<float> x = random(num_rows * w.k, 6);
    const DeviceData aligned = device({num_rows, w.k}, x);
    const DeviceData shifted(stream(), {num_rows, w.k}, dtype(), x, 2);
    DeviceData expected(stream(), {num_rows, w.n}, DType::kF32);
    DeviceData out(stream(), {num_rows, w.n}, DType::kF32);
    ops_->linear(*w.linear, aligned.view(), expected.view());
    ops_->linear(*w.linear, shifted.view(), out.view());
    EXPECT_EQ(out.bytes(), expected.bytes()) << num_rows;
  }
}

TEST_P(PackedMatricesTest, ANanStaysInItsRow) {
  const GgufMatrix m = random_matrix(*find_gguf_block_type(12), 64, 512, 3);
  const PackedCase w = make({&m});
  std::vector<float> x = random(10 * w.k, 6);
  const auto run = [&] {
    const DeviceData input = device({10, w.k}, x);
    DeviceData out(stream(), {10, w.n}, DType::kF32);
    ops_->linear(*w.linear, input.view(), out.view());
    return out.values();
  };
  const std::vector<float> before = run();
  x[static_cast<size_t>(3 * w.k + 100)] = NAN;
  const std::vector<float> after = run();
  for (size_t i = 0; i < after.size(); ++i) {
    const bool is_own = i / static_cast<size_t>(w.n) == 3;
    EXPECT_EQ(std::isnan(after[i]), is_own) << i;
    if (is_own) continue;
    EXPECT_EQ(after[i], before[i]) << i;
  }
}

// Checks products of gate and up that the kernel multiplies, and others.
TEST_P(PackedMatricesTest, MultipliesTheHalvesOfAProduct) {
  for (const int64_t n : {64, 192, 9216, 100}) {
    const GgufMatrix gate = random_matrix(*find_gguf_block_type(12), n / 2, 512, 1);
    const GgufMatrix up = random_matrix(*find_gguf_block_type(12), n / 2, 512, 2);
    const PackedCase w = make(std::vector<const GgufMatrix*>{&gate, &up}, n == 192);
    for (const int64_t num_rows : {1, 3, 8, 9, 17, 33, 140, 257}) {
      const std::vector<float> x = random(num_rows * w.k, 7, 0.05F);
      const DeviceData input = device({num_rows, w.k}, x);
      DeviceData gate_up = blank({num_rows, n});
      DeviceData separate = blank({num_rows, n / 2});
      DeviceData fused = blank({num_rows, n / 2});
      ops_->linear(*w.linear, input.view(), gate_up.view());
      ops_->gated_mul(Activation::kSilu, gate_up.view(), separate.view());
      gate_up.poison();
      ops_->linear_gated_mul(Activation::kSilu, *w.linear, input.view(), gate_up.view(),
                             fused.view());
      EXPECT_EQ(fused.bytes(), separate.bytes()) << n << ", " << num_rows << " rows";
    }
  }
}

TEST_P(PackedMatricesTest, ComputesNormsAndMlps) {
  constexpr int64_t kWidth = 512;
  const GgufMatrix gate_up = random_matrix(*find_gguf_block_type(12), 2 * kWidth, kWidth, 1);
  const GgufMatrix down_matrix = random_matrix(*find_gguf_block_type(14), kWidth, kWidth, 2);
  const PackedCase up = make({&gate_up});
  const PackedCase down = make({&down_matrix});
  const std::vector<float> ones(kWidth, 1.0F);
  const Tensor weight =
      ops_->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {kWidth}}).value();
  for (const int64_t num_rows : {1, 5, 12, 40, 130}) {
    const std::vector<float> residual = random(num_rows * kWidth, 3, 0.1F);
    const DeviceData in = device({num_rows, kWidth}, residual);
    DeviceData x = blank({num_rows, kWidth});
    DeviceData scratch = blank({num_rows, 2 * kWidth});
    DeviceData product = blank({num_rows, kWidth});
    DeviceData expected = blank({num_rows, kWidth});
    DeviceData out = blank({num_rows, kWidth});
    const auto* weights = weight.view.as<float>();
    ops_->residual_norm({.residual = in.view(), .weight = weights, .eps = 1e-5F}, x.view());
    ops_->linear(*up.linear, x.view(), scratch.view());
    ops_->gated_mul(Activation::kGeluTanh, scratch.view(), product.view());
    ops_->linear(*down.linear, product.view(), expected.view());
    GatedMlp mlp;
    mlp.gate_up = up.linear.get();
    mlp.down = down.linear.get();
    mlp.activation = Activation::kGeluTanh;
    mlp.norm = ResidualNorm{.residual = in.view(), .weight = weights, .eps = 1e-5F};
    mlp.x = x.view();
    mlp.out = out.view();
    mlp.gate_up_out = scratch.view();
    mlp.product = product.view();
    ops_->gated_mlp(mlp);
    EXPECT_EQ(out.bytes(), expected.bytes()) << num_rows;
    DeviceData normed = blank({num_rows, 2 * kWidth});
    ops_->norm_linear(*mlp.norm, *up.linear, x.view(), normed.view());
    ops_->residual_norm({.residual = in.view(), .weight = weights, .eps = 1e-5F}, x.view());
    ops_->linear(*up.linear, x.view(), scratch.view());
    EXPECT_EQ(normed.bytes(), scratch.bytes()) << num_rows;
  }
}

TEST_P(PackedMatricesTest, EmbedsTheNumbersThatTheWeightsStandFor) {
  const int32_t rows[] = {44, 0, 31, 32};
  const DeviceData ids = DeviceData::of_ints<int32_t>(stream(), {44, 0, 31, 32});
  const auto check_rows = [&](const PackedCase& w) {
    for (const float scale : {1.0F, 3.0F}) {
      DeviceData out = blank({4, w.k});
      ops_->embed(*w.linear, ids.as<int32_t>(), scale, out.view());
      std::vector<float> expected;
      for (const int32_t row : rows) {
        for (int64_t i = 0; i < w.k; ++i) {
          expected.push_back(scale * w.weights[static_cast<size_t>(row * w.k + i)]);
        }
      }
      expect_near_all(out.values(), expected, tolerance(dtype()) / 2, w.what);
    }
  };
  for (const GgufBlockType& type : quantized_types()) {
    const GgufMatrix m = random_matrix(type, 45, 3 * type.block_elements, 17);
    check_rows(make({&m}));
  }
  for (const int bits : {4, 8}) {
    for (const bool has_order : {false, true}) {
      const IntegerMatrix m(
          {.bits = bits, .group_size = 64, .has_zeros = true, .has_order = has_order}, 45, 320, 17);
      check_rows(make({&m}));
    }
  }
}

TEST_P(PackedMatricesTest, CanBeCaptured) {
  const GgufMatrix m = random_matrix(*find_gguf_block_type(14), 300, 512, 3);
  const PackedCase w = make({&m});
  for (const int64_t num_rows : {1, 5, 40, 200, 300}) {
    const DeviceData x = device({num_rows, w.k}, random(num_rows * w.k, 1));
    DeviceData out(stream(), {num_rows, w.n}, DType::kF32);
    expect_capturable([&] { ops_->linear(*w.linear, x.view(), out.view()); }, out,
                      [&] { out.poison(); });
  }
}

// A chain in which each product reads the output of the previous kernel, which started early too.
TEST_P(PackedMatricesTest, OverlappedChainGivesTheSameBitsEveryTime) {
  constexpr int64_t kWidth = 2048;
  const GgufMatrix m = random_matrix(*find_gguf_block_type(12), kWidth, kWidth, 3);
  const PackedCase w = make({&m});
  const std::vector<float> ones(kWidth, 1.0F);
  const Tensor weight =
      ops_->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {kWidth}}).value();
  for (const int64_t num_rows : {1, 4, 6, 16, 70}) {
    const DeviceData start = device({num_rows, kWidth}, random(num_rows * kWidth, 9));
    DeviceData x = blank({num_rows, kWidth});
    DeviceData y = blank({num_rows, kWidth});
    std::vector<std::byte> first;
    for (int repeat = 0; repeat < 10; ++repeat) {
      stream().record_error(cudaMemcpyAsync(x.view().data, start.view().data, x.view().num_bytes(),
                                            cudaMemcpyDeviceToDevice, stream().get()),
                            "copy");
      for (int i = 0; i < 30; ++i) {
        ops_->linear(*w.linear, x.view(), y.view());
        ops_->residual_norm({.residual = y.view(), .weight = weight.view.as<float>(), .eps = 1e-5F},
                            x.view());
      }
      if (repeat == 0) first = x.bytes();
      EXPECT_EQ(x.bytes(), first) << num_rows << ", " << repeat;
    }
  }
}

TEST_P(PackedMatricesTest, TakesTheBytesThatAreEstimated) {
  EXPECT_EQ(block_bytes(ops_->weights(), *find_gguf_block_type(12)), 148);  // Q4_K, 144 in the file
  EXPECT_EQ(block_bytes(ops_->weights(), *find_gguf_block_type(14)), 212);  // Q6_K, 210 in the file
  EXPECT_EQ(block_bytes(ops_->weights(), *find_gguf_block_type(8)), 34);
  EXPECT_EQ(block_bytes(ops_->weights(), *find_gguf_block_type(1)), 0);
  for (const GgufBlockType& type : quantized_types()) {
    const GgufMatrix m = random_matrix(type, 64, 512, 1);
    EXPECT_EQ(
        make({&m}).linear->num_bytes(),
        static_cast<size_t>(64 * 512 / type.block_elements * block_bytes(ops_->weights(), type)))
        << type.name;
  }
  const IntegerSpec specs[] = {{.bits = 4, .group_size = 128, .has_zeros = true},
                               {.bits = 4, .group_size = 32, .scales = DType::kBF16},
                               {.bits = 8, .group_size = kPerRow, .scales = DType::kF32}};
  for (const IntegerSpec& spec : specs) {
    const IntegerMatrix m(spec, 64, 1024, 1);
    const int64_t estimate =
        ops_->weights().quantized_bytes({{64, 1024}, IntegerForm{scheme_of(spec), spec.scales}});
    EXPECT_EQ(make({&m}).linear->num_bytes(), static_cast<size_t>(estimate)) << describe(spec);
  }
  EXPECT_EQ(
      ops_->weights().quantized_bytes({{64, 1024}, IntegerForm{scheme_of(specs[0]), DType::kF16}}),
      64 * 1024 / 2 + 64 * 8 * 3);
}

TEST_P(PackedMatricesTest, RefusesMatricesThatTheKernelsDoNotTake) {
  const IntegerSpec by_row = {.bits = 4, .group_size = kPerRow};
  EXPECT_EQ(
      ops_->weights().quantized_bytes({{4, 100}, IntegerForm{scheme_of(by_row), DType::kF16}}), 0);
  const IntegerSpec by_16 = {.bits = 8, .group_size = 16};
  EXPECT_EQ(ops_->weights().quantized_bytes({{4, 128}, IntegerForm{scheme_of(by_16), DType::kF16}}),
            0);
  const IntegerMatrix m(by_row, 4, 100, 1);
  const LinearSource source = {.numbers = StoredMatrices{{&m.view, 1}}};
  EXPECT_EQ(ops_->weights().make_linear(source).status().code(), StatusCode::kUnimplemented);
  const GgufMatrix a = random_matrix(*find_gguf_block_type(8), 4, 64, 1);
  const GgufMatrix b = random_matrix(*find_gguf_block_type(8), 4, 96, 1);
  const std::vector<BlockMatrix> blocks = {a.view(), b.view()};
  EXPECT_EQ(ops_->weights().make_linear({.numbers = MatricesInBlocks{blocks}}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(PackedTilePlanTest, DividesAlongKWhileAllThreadBlocksRunAtOnce) {
  struct Case {
    int64_t n, k, m;
    int tokens, warpgroups, splits;
  };
  const Case cases[] = {
      {6144, 4096, 16, 16, 2, 4}, {6144, 4096, 256, 128, 2, 2},  {4096, 4096, 33, 64, 2, 4},
      {28672, 4096, 9, 16, 2, 1}, {4096, 14336, 257, 128, 2, 2}, {4096, 512, 100, 128, 2, 2},
      {4096, 256, 32, 32, 2, 1},  {65, 4096, 16, 16, 2, 4},      {64, 4096, 17, 32, 1, 4}};
  const cuda::PackedLayout layout =
      cuda::packed_layout(quantized_format(*find_gguf_block_type(12)));
  for (const Case& c : cases) {
    const cuda::PackedRows w = {.layout = layout, .num_rows = c.n, .num_columns = c.k};
    const cuda::PackedTilePlan plan = cuda::packed_tile_plan(w, c.m, 132);
    const std::string what = fmt::format("{} rows of {} to {}", c.m, c.k, c.n);
    EXPECT_EQ(plan.tokens, c.tokens) << what;
    EXPECT_EQ(plan.warpgroups, c.warpgroups) << what;
    EXPECT_EQ(plan.splits, c.splits) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PackedMatricesTest, ::testing::Values(DType::kBF16, DType::kF16),
                         dtype_of_test);

}  // namespace
}  // namespace quire::testing

// Products with E4M3 weights. Kernels that multiply activations as they are match a reference with
// the activations; those that quantize them match a reference with the quantized activations,
// within the rounding of the output, so that a wrong scale cannot hide in the error of the
// quantization. The wgmma kernels are also run with E4M3 activations, in every tile and cluster,
// next to memory that must not be read.
#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/gemm/dense/wgmma_gemm.h"
#include "cuda/gemm/tail/layer_tail.h"
#include "cuda/ops/device_data.h"
#include "few_row_products.h"
#include "model/quantization.h"
#include "model/weights.h"
#include "ops/host_matrices.h"
#include "support/value_of.h"
#include "tensor/weight_source.h"

namespace quire::testing {
namespace {

constexpr WeightScheme kPerTensor = {.values = DType::kF8E4M3, .scales = ScaleLayout::kTensor};
constexpr WeightScheme kPerRow = {.values = DType::kF8E4M3, .scales = ScaleLayout::kRows};
constexpr WeightScheme kPerBlock = {.values = DType::kF8E4M3,
                                    .scales = ScaleLayout::kBlocks,
                                    .block_rows = 128,
                                    .block_columns = 128};

// A matrix of E4M3 values with scales in host memory; the elements are near N(0, 1). The scales of
// blocks differ by powers of 4, so that a wrong one is a large error.
struct Fp8Matrix {
  Fp8Matrix(int64_t n, int64_t k, const WeightScheme& scheme_, DType scale_type_, uint32_t seed)
      : shape{n, k}, scheme(scheme_), scale_type(scale_type_) {
    values = encode(random_floats(n * k, seed, 64.0F), DType::kF8E4M3);
    std::vector<float> numbers =
        random_floats(scales_shape(scheme, shape).num_elements(), seed + 1000, 0.25F);
    std::mt19937 generator(seed);
    for (float& number : numbers) {
      number = (1.0F + std::abs(number)) / 64.0F;
      const auto factor = static_cast<float>(1 << generator() % 4 * 2);
      if (scheme.scales == ScaleLayout::kBlocks) number /= factor;
    }
    scales = encode(numbers, scale_type);
  }
  WeightView view() {
    return {{values.data(), DType::kF8E4M3, shape},
            {scales.data(), scale_type, scales_shape(scheme, shape)},
            scheme};
  }

  Shape shape;
  WeightScheme scheme;
  DType scale_type;
  std::vector<std::byte> values;
  std::vector<std::byte> scales;
};

using QuantizeRow = std::vector<float> (*)(std::span<const float>);

std::vector<float> quantized(const std::vector<float>& x, int64_t width,
                             QuantizeRow quantize_row = quantized_row) {
  std::vector<float> out;
  for (size_t first = 0; first < x.size(); first += static_cast<size_t>(width)) {
    const std::vector<float> row = quantize_row({x.data() + first, static_cast<size_t>(width)});
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

float largest_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  float largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const float error = std::abs(actual[i] - expected[i]) / (1 + std::abs(expected[i]));
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  return largest;
}

// |actual - expected| / |expected| of vectors.
double relative_distance(const std::vector<float>& actual, const std::vector<float>& expected) {
  double distance = 0;
  double length = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    distance += std::pow(double{actual[i]} - double{expected[i]}, 2);
    length += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(distance / length);
}

// Hopper's tensor cores keep about 14 bits of a sum of E4M3 products before it is added in F32.
float quantized_tolerance(DType out_type) {
  return std::max(tolerance(out_type), 5e-3F);
}

enum class Activations { kExact, kQuantized, kEither };

struct Fp8Case {
  int64_t n;
  int64_t k;
  WeightScheme scheme = kPerRow;
  DType scale_type = DType::kF32;
  bool has_bias = false;
};

class Fp8LinearTest : public CudaOpsTest {
 protected:
  void SetUp() override {
    CudaOpsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (cuda::open_device(0)->device.compute_capability != 90) {
      GTEST_SKIP() << "products with FP8 weights need compute capability 9.0";
    }
  }

  // Stacks two matrices, the second without a bias.
  void make(const Fp8Case& spec) {
    const int64_t first = (spec.n + 2) / 3;
    quantize_row_ = spec.scheme == kPerBlock ? block_quantized_row : quantized_row;
    matrices_.clear();
    matrices_.emplace_back(first, spec.k, spec.scheme, spec.scale_type, 1);
    matrices_.emplace_back(spec.n - first, spec.k, spec.scheme, spec.scale_type, 2);
    bias_ = random(first, 3);
    const WeightView weights[] = {matrices_[0].view(), matrices_[1].view()};
    const TensorView biases[] = {{bias_.data(), DType::kF32, {first}},
                                 {nullptr, DType::kF32, {spec.n - first}}};
    LinearSource source = {.numbers = StoredMatrices{weights}};
    if (spec.has_bias) source.biases = biases;
    linear_ = value_of(ops_->weights().make_linear(source));
    expected_linear_ = reference_.make_linear(source).value();
  }

  std::vector<float> inputs(int64_t num_rows) const {
    const int64_t k = linear_->in_features();
    return random(num_rows * k, 7, 1.0F / std::sqrt(static_cast<float>(k)));
  }
  std::vector<float> expected(std::vector<float> x) {
    const auto num_rows = static_cast<int64_t>(x.size()) / linear_->in_features();
    std::vector<float> out(static_cast<size_t>(num_rows * linear_->out_features()));
    reference_.linear(*expected_linear_, host_view(x, num_rows), host_view(out, num_rows));
    return out;
  }

  // Multiplies rows of `input`, and compares with the first rows of both references.
  void check(const DeviceData& input, int64_t num_rows, DType out_type, Activations activations,
             const std::vector<float>& exact, const std::vector<float>& rounded_inputs) {
    const int64_t n = linear_->out_features();
    DeviceData out(stream(), {num_rows, n}, out_type);
    ops_->linear(*linear_, input.view().rows(0, num_rows), out.view());
    const std::vector<float> actual = out.values();
    const float error = largest_error(actual, exact);
    const float quantized_error = largest_error(actual, rounded_inputs);
    const bool is_exact = error <= tolerance(out_type);
    const bool is_quantized = quantized_error <= quantized_tolerance(out_type);
    const bool is_right = (activations != Activations::kQuantized && is_exact) ||
                          (activations != Activations::kExact && is_quantized);
    EXPECT_TRUE(is_right) << num_rows << " rows of " << linear_->in_features() << " to " << n
                          << " in " << dtype_name(out_type) << ": error " << error
                          << ", or with quantized activations " << quantized_error;
  }

  void check_rows(std::initializer_list<int64_t> row_counts,
                  const std::function<Activations(int64_t)>& activations_of) {
    const int64_t max_rows = std::max(row_counts);
    const std::vector<float> x = inputs(max_rows);
    const DeviceData input = device({max_rows, linear_->in_features()}, x);
    const std::vector<float> exact = expected(x);
    const std::vector<float> rounded_inputs =
        expected(quantized(x, linear_->in_features(), quantize_row_));
    for (const int64_t num_rows : row_counts) {
      for (const DType out_type : {dtype(), DType::kF32}) {
        check(input, num_rows, out_type, activations_of(num_rows), exact, rounded_inputs);
      }
    }
  }

  // Compares silu(first half) * second half of a product.
  void expect_halves(const WeightScheme& scheme) {
    make({160, 512, scheme});
    ASSERT_NE(linear_, nullptr);
    for (const int64_t num_rows : {1, 7, 16, 64}) {
      const bool quantizes = num_rows > cuda::kMaxSkinnyRows && dtype() != DType::kF32;
      const std::vector<float> x = inputs(num_rows);
      std::vector<float> gate_up =
          rounded(expected(quantizes ? quantized(x, 512, quantize_row_) : x), dtype());
      std::vector<float> product(static_cast<size_t>(num_rows * 80));
      reference_.gated_mul(Activation::kSilu, host_view(gate_up, num_rows),
                           host_view(product, num_rows));
      const DeviceData input = device({num_rows, 512}, x);
      DeviceData scratch = blank({num_rows, 160});
      DeviceData out = blank({num_rows, 80});
      ops_->linear_gated_mul(Activation::kSilu, *linear_, input.view(), scratch.view(), out.view());
      const float limit = quantizes ? 4 * quantized_tolerance(dtype()) : tolerance(dtype());
      expect_near_all(out.values(), product, limit, std::to_string(num_rows) + " rows");
    }
  }

  // Quantizes the columns of the source's matrices, and compares with those of `matrices`, the same
  // numbers, as the loader quantizes them.
  void expect_bits_of_the_host(const std::variant<StoredMatrices, RepeatedMatrices>& from,
                               std::span<const TensorView> matrices, const Slice& columns) {
    ThreadPool threads(4);
    std::vector<Tensor> copies;
    std::vector<WeightView> quantized;
    for (const TensorView& matrix : matrices) {
      const WeightView rows = quantize_rows(matrix, fp8_at_load().scheme, copies, threads).value();
      quantized.push_back(slice_columns(rows, columns, "matrix", copies).value());
    }
    const auto linear = value_of(ops_->weights().make_linear(
        {.numbers = MatricesToQuantize{from, fp8_at_load().scheme, columns}}));
    const auto expected =
        ops_->weights().make_linear({.numbers = StoredMatrices{quantized}}).value();
    const cuda::CudaLinear& got = cuda::as_cuda(*linear);
    const cuda::CudaLinear& want = cuda::as_cuda(*expected);
    ASSERT_EQ(got.weights().shape, want.weights().shape);
    EXPECT_EQ(got.scale_rows(), 0);
    EXPECT_EQ(got.num_bytes(), want.num_bytes());
    const std::string what = std::string(dtype_name(matrices.front().dtype)) + ", " +
                             shape_text(matrices.front().shape) + ", columns from " +
                             std::to_string(columns.first);
    EXPECT_TRUE(bytes_of(stream(), got.scales()) == bytes_of(stream(), want.scales())) << what;
    EXPECT_TRUE(bytes_of(stream(), got.weights()) == bytes_of(stream(), want.weights())) << what;
  }

  void expect_parts(const WeightScheme& scheme) {
    const int64_t k = 16384;
    const int64_t num_rows = 2100;
    make({32, k, scheme});
    ASSERT_NE(linear_, nullptr);
    const int64_t part = cuda::quantized_rows(num_rows, k);
    ASSERT_LT(part, num_rows);
    const std::vector<float> x = inputs(num_rows);
    const DeviceData input = device({num_rows, k}, x);
    DeviceData out = blank({num_rows, 32});
    ops_->linear(*linear_, input.view(), out.view());
    const std::vector<float> actual = out.values();
    for (const int64_t row : {int64_t{0}, part - 1, part, num_rows - 1}) {
      const std::vector<float> of_row(x.begin() + row * k, x.begin() + (row + 1) * k);
      expect_near_all({actual.begin() + row * 32, actual.begin() + (row + 1) * 32},
                      expected(quantize_row_(of_row)), tolerance(dtype()),
                      "row " + std::to_string(row));
    }
  }

  void expect_independent_rows(const WeightScheme& scheme) {
    const int64_t k = 512;
    make({96, k, scheme});
    ASSERT_NE(linear_, nullptr);
    for (const int64_t num_rows : {4, 16, 64}) {
      std::vector<float> x = inputs(num_rows);
      const auto multiply = [&] {
        const DeviceData input = device({num_rows, k}, x);
        DeviceData out = blank({num_rows, 96});
        ops_->linear(*linear_, input.view(), out.view());
        return out.values();
      };
      const std::vector<float> before = multiply();
      x[static_cast<size_t>(k + 5)] = NAN;
      x[static_cast<size_t>(2 * k + 77)] = -INFINITY;
      std::fill(x.begin() + 3 * k, x.begin() + 4 * k, 0.0F);
      const std::vector<float> after = multiply();
      for (size_t i = 0; i < after.size(); ++i) {
        const size_t row = i / 96;
        if (row == 1) {
          EXPECT_TRUE(std::isnan(after[i])) << i;
        } else if (row == 2) {
          EXPECT_FALSE(std::isfinite(after[i])) << i;
        } else {
          EXPECT_EQ(after[i], row == 3 ? 0.0F : before[i]) << i;
        }
      }
    }
  }

  // The operations that compute rows, as a kernel that quantizes them gets them, and what they
  // read.
  struct Operations {
    std::vector<DeviceData> memory;
    std::vector<std::pair<std::string, cuda::RowOperation>> all;
  };

  // The rows are random, zero, subnormal, with a NaN, with an infinity, and huge.
  Operations operations(int64_t width) {
    constexpr int64_t kRows = 6;
    std::vector<float> x = random(kRows * width, 5);
    std::vector<float> delta = random(kRows * width, 6);
    std::vector<float> gate_up = random(kRows * 2 * width, 7, 3.0F);
    const auto fill = [&](int64_t row, float value) {
      std::fill_n(x.begin() + row * width, width, value);
      std::fill_n(delta.begin() + row * width, width, value);
      std::fill_n(gate_up.begin() + row * 2 * width, 2 * width, value);
    };
    fill(1, 0.0F);
    fill(2, dtype() == DType::kF16 ? 6e-8F : 1e-39F);
    x[static_cast<size_t>(3 * width + width - 1)] = NAN;
    gate_up[static_cast<size_t>(4 * 2 * width - 1)] = NAN;
    x[static_cast<size_t>(4 * width)] = INFINITY;
    gate_up[static_cast<size_t>(4 * 2 * width)] = INFINITY;
    fill(5, dtype() == DType::kF16 ? 3e4F : 1e38F);
    Operations made;
    const auto keep = [&](int64_t columns, const std::vector<float>& numbers, DType type) {
      const int64_t rows = static_cast<int64_t>(numbers.size()) / columns;
      made.memory.emplace_back(stream(), Shape{rows, columns}, type, numbers);
      return made.memory.back().view();
    };
    const TensorView weight = keep(width, random_floats(width, 8), DType::kF32);
    ResidualNorm norm = {
        .residual = keep(width, x, dtype()), .weight = weight.as<float>(), .eps = 1e-5F};
    made.all.emplace_back("norm", norm);
    norm.delta = keep(width, delta, dtype());
    made.all.emplace_back("norm of a sum", norm);
    const TensorView halves = keep(2 * width, gate_up, dtype());
    made.all.emplace_back("silu", cuda::GatedMul{Activation::kSilu, halves});
    made.all.emplace_back("gelu", cuda::GatedMul{Activation::kGelu, halves});
    made.all.emplace_back("tanh gelu", cuda::GatedMul{Activation::kGeluTanh, halves});
    return made;
  }

  // Compares `quantize` of the rows of each operation with `quantize` of the rows in memory.
  void expect_fused_bits(
      int64_t width, const Shape& scales_shape,
      const std::function<void(const TensorView& x, const TensorView& out, const TensorView& scales,
                               const cuda::RowOperation& operation)>& quantize) {
    Operations separate = operations(width);
    Operations fused = operations(width);
    for (size_t i = 0; i < fused.all.size(); ++i) {
      const std::string what = fused.all[i].first + ", width " + std::to_string(width);
      const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
      DeviceData x = blank({6, width});
      DeviceData wanted(stream(), {6, width}, DType::kF8E4M3);
      DeviceData wanted_scales(stream(), scales_shape, DType::kF32);
      cuda::run_row_operation(context, separate.all[i].second, x.view());
      quantize(x.view(), wanted.view(), wanted_scales.view(), {});
      DeviceData unread = blank({6, width});
      const std::vector<std::byte> poison = unread.bytes();
      DeviceData out(stream(), {6, width}, DType::kF8E4M3);
      DeviceData scales(stream(), scales_shape, DType::kF32);
      quantize(unread.view(), out.view(), scales.view(), fused.all[i].second);
      EXPECT_TRUE(out.bytes() == wanted.bytes()) << what;
      EXPECT_TRUE(scales.bytes() == wanted_scales.bytes()) << what;
      EXPECT_TRUE(unread.bytes() == poison) << what;
    }
    // The residuals, of which one operation changes its own.
    for (size_t i = 0; i < fused.memory.size(); ++i) {
      EXPECT_TRUE(fused.memory[i].bytes() == separate.memory[i].bytes()) << i << ", " << width;
    }
  }

  // A norm, gate and up, the activation and down, with weights that are E4M3 if `scheme` has
  // scales.
  struct Mlp {
    std::unique_ptr<Linear> gate_up;
    std::unique_ptr<Linear> down;
    std::optional<DeviceData> weight;
    std::optional<DeviceData> residual;
    std::optional<DeviceData> delta;
    std::optional<DeviceData> x;
    std::optional<DeviceData> gate_up_out;
    std::optional<DeviceData> product;
    std::optional<DeviceData> out;
    GatedMlp call;
  };

  Mlp make_mlp(int64_t num_rows, int64_t width, int64_t inner, const WeightScheme& scheme) {
    Mlp mlp;
    const auto linear = [&](int64_t n, int64_t k) {
      std::vector<float> numbers;
      std::optional<Fp8Matrix> matrix;
      WeightView view;
      if (scheme.scales == ScaleLayout::kNone) {
        numbers = random_floats(n * k, 3);
        view = host_view(numbers, n);
      } else {
        view = matrix.emplace(n, k, scheme, DType::kF32, 3).view();
      }
      return ops_->weights().make_linear({.numbers = StoredMatrices{{&view, 1}}}).value();
    };
    mlp.gate_up = linear(2 * inner, width);
    mlp.down = linear(width, inner);
    mlp.weight.emplace(stream(), Shape{width}, DType::kF32, random_floats(width, 4));
    mlp.residual.emplace(device({num_rows, width}, random(num_rows * width, 5)));
    mlp.delta.emplace(device({num_rows, width}, random(num_rows * width, 6)));
    mlp.x.emplace(blank({num_rows, width}));
    mlp.gate_up_out.emplace(blank({num_rows, 2 * inner}));
    mlp.product.emplace(blank({num_rows, inner}));
    mlp.out.emplace(blank({num_rows, width}));
    mlp.call.gate_up = mlp.gate_up.get();
    mlp.call.down = mlp.down.get();
    mlp.call.norm = ResidualNorm{.residual = mlp.residual->view(),
                                 .delta = mlp.delta->view(),
                                 .weight = mlp.weight->as<float>(),
                                 .eps = 1e-5F};
    mlp.call.x = mlp.x->view();
    mlp.call.gate_up_out = mlp.gate_up_out->view();
    mlp.call.product = mlp.product->view();
    mlp.call.out = mlp.out->view();
    return mlp;
  }

  // Compares the fused operations with the separate ones.
  void expect_bits_of_separate_operations(int64_t num_rows, int64_t width, int64_t inner,
                                          const WeightScheme& scheme) {
    const std::string what = std::to_string(num_rows) + " rows of " + std::to_string(width) +
                             " and " + std::to_string(inner);
    for (const Activation activation :
         {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
      Mlp fused = make_mlp(num_rows, width, inner, scheme);
      Mlp separate = make_mlp(num_rows, width, inner, scheme);
      fused.call.activation = separate.call.activation = activation;
      ops_->gated_mlp(fused.call);
      ops_->Ops::gated_mlp(separate.call);
      EXPECT_TRUE(fused.residual->bytes() == separate.residual->bytes()) << what;
      EXPECT_TRUE(fused.out->bytes() == separate.out->bytes()) << what;
      // The norm that the residual has now, in place.
      for (Mlp* mlp : {&fused, &separate}) {
        mlp->call.norm->delta = {};
        mlp->gate_up_out->poison();
      }
      ops_->norm_linear(*fused.call.norm, *fused.gate_up, fused.call.norm->residual,
                        fused.call.gate_up_out);
      ops_->Ops::norm_linear(*separate.call.norm, *separate.gate_up, separate.call.norm->residual,
                             separate.call.gate_up_out);
      EXPECT_TRUE(fused.gate_up_out->bytes() == separate.gate_up_out->bytes()) << what;
    }
  }

  void expect_embeds(const WeightScheme& scheme) {
    make({17, 200, scheme, DType::kF32});
    ASSERT_NE(linear_, nullptr);
    const std::vector<int32_t> ids = {4, 0, 16};
    std::vector<float> wanted(ids.size() * 200);
    reference_.embed(*expected_linear_, ids.data(), 1.5F, host_view(wanted, 3));
    const DeviceData rows = DeviceData::of_ints(stream(), ids);
    DeviceData out = blank({3, 200});
    ops_->embed(*linear_, rows.as<int32_t>(), 1.5F, out.view());
    expect_near_all(out.values(), wanted, tolerance(dtype()), "embed");
  }

  std::vector<Fp8Matrix> matrices_;
  QuantizeRow quantize_row_ = quantized_row;
  std::vector<float> bias_;
  std::unique_ptr<Linear> linear_;
  std::unique_ptr<Linear> expected_linear_;
};

TEST_P(Fp8LinearTest, AllSizes) {
  const Fp8Case cases[] = {{64, 512},
                           {48, 16, kPerTensor},
                           {129, 1040, kPerTensor, DType::kBF16},
                           {7, 33, kPerRow, DType::kF16, true},
                           {256, 2064, kPerRow, DType::kBF16, true},
                           {80, 528, kPerTensor, DType::kF32, true},
                           {3, 4096}};
  for (const Fp8Case& spec : cases) {
    make(spec);
    ASSERT_NE(linear_, nullptr);
    const auto activations_of = [&](int64_t num_rows) {
      if (num_rows <= cuda::kMaxSkinnyRows || dtype() == DType::kF32 || spec.k % 16 != 0) {
        return Activations::kExact;
      }
      // For other sizes, cuBLASLt may have no product.
      const bool is_usual = spec.n % 16 == 0 && spec.k >= 512;
      return is_usual ? Activations::kQuantized : Activations::kEither;
    };
    check_rows({1, 2, 3, 4, 5, 8, 16, 17, 64, 129, 512}, activations_of);
    EXPECT_EQ(linear_->num_bytes(),
              static_cast<size_t>(spec.n * spec.k + 4 * spec.n) +
                  (spec.has_bias ? static_cast<size_t>(spec.n) * dtype_bytes(dtype()) : 0));
  }
}

// The first of the two matrices has 128, 192, 67, 22, 16, 43, 88, 334, 128 and 3 rows, which
// decides how many rows of the stack share a scale.
TEST_P(Fp8LinearTest, BlocksOfAllSizes) {
  struct BlockCase {
    Fp8Case spec;
    int64_t scale_rows;
  };
  const BlockCase cases[] = {{{384, 512, kPerBlock}, 128},
                             {{576, 1040, kPerBlock}, 64},
                             {{200, 128, kPerBlock, DType::kBF16}, 1},
                             {{64, 384, kPerBlock, DType::kF16, true}, 2},
                             {{48, 16, kPerBlock}, 16},
                             {{129, 1040, kPerBlock, DType::kF32, true}, 1},
                             {{264, 2064, kPerBlock, DType::kBF16, true}, 8},
                             {{1000, 640, kPerBlock}, 2},
                             {{384, 1536, kPerBlock}, 128},
                             {{7, 33, kPerBlock}, 1}};
  for (const auto& [spec, scale_rows] : cases) {
    make(spec);
    ASSERT_NE(linear_, nullptr);
    EXPECT_EQ(cuda::as_cuda(*linear_).scale_rows(), scale_rows) << spec.n;
    const bool is_exact = dtype() == DType::kF32 || spec.k % 16 != 0 || spec.n % 8 != 0;
    const auto activations_of = [&](int64_t num_rows) {
      return num_rows <= cuda::kMaxSkinnyRows || is_exact ? Activations::kExact
                                                          : Activations::kQuantized;
    };
    check_rows({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 65, 200},
               activations_of);
    // The reference takes long for larger matrices.
    if (spec.n * spec.k <= 1 << 18) check_rows({1000}, activations_of);
    const int64_t num_scales = ceil_div(spec.n, scale_rows) * ceil_div(spec.k, 128);
    EXPECT_EQ(linear_->num_bytes(),
              static_cast<size_t>(spec.n * spec.k + 4 * num_scales) +
                  (spec.has_bias ? static_cast<size_t>(spec.n) * dtype_bytes(dtype()) : 0));
  }
}

// The kernels that are chosen by measurement.
TEST_P(Fp8LinearTest, TunedForEveryRowCount) {
  for (const WeightScheme& scheme : {kPerRow, kPerBlock}) {
    make({96, 512, scheme, DType::kF32, true});
    ASSERT_NE(linear_, nullptr);
    const DeviceData x = device({200, 512}, inputs(200));
    for (const DType out_type : {dtype(), DType::kF32}) {
      DeviceData out(stream(), {200, 96}, out_type);
      const int row_counts[] = {1, 2, 4, 8, 16, 24, 96, 128, 500};
      const Status tuned = ops_->tune_linears(row_counts, [&] {
        ops_->linear(*linear_, x.view(), out.view());
        return Status();
      });
      ASSERT_EQ(tuned.message(), "");
    }
    check_rows({1, 3, 8, 11, 16, 17, 90, 128, 130, 200}, [](int64_t num_rows) {
      return num_rows <= 8 ? Activations::kExact : Activations::kEither;
    });
  }
}

TEST_P(Fp8LinearTest, MultipliesTheHalvesOfAProduct) {
  for (const WeightScheme& scheme : {kPerRow, kPerBlock}) expect_halves(scheme);
}

TEST_P(Fp8LinearTest, CanBeCaptured) {
  for (const WeightScheme& scheme : {kPerTensor, kPerBlock}) {
    make({96, 512, scheme, DType::kF32, true});
    ASSERT_NE(linear_, nullptr);
    for (const int64_t num_rows : {1, 5, 16, 64}) {
      const DeviceData x = device({num_rows, 512}, inputs(num_rows));
      for (const DType out_type : {dtype(), DType::kF32}) {
        DeviceData out(stream(), {num_rows, 96}, out_type);
        expect_capturable([&] { ops_->linear(*linear_, x.view(), out.view()); }, out,
                          [&] { out.poison(); });
      }
    }
  }
}

TEST_P(Fp8LinearTest, EveryKernelAgrees) {
  const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
  for (const Fp8Case& spec :
       {Fp8Case{70, 4176}, Fp8Case{48, 64}, Fp8Case{500, 1040}, Fp8Case{70, 4176, kPerBlock},
        Fp8Case{384, 64, kPerBlock}, Fp8Case{500, 1040, kPerBlock}}) {
    make(spec);
    ASSERT_NE(linear_, nullptr);
    const auto& linear = cuda::as_cuda(*linear_);
    for (const int64_t num_rows : {1, 2, 7, 8, 9, 16}) {
      const std::vector<float> x = inputs(num_rows);
      const std::vector<float> exact = expected(x);
      const DeviceData input = device({num_rows, spec.k}, x);
      DeviceData out(stream(), {num_rows, spec.n}, DType::kF32);
      const cuda::GemmCall call = {input.view(),       linear.weights(), {},
                                   out.view(),         TensorView{},     linear.scales(),
                                   linear.scale_rows()};
      EXPECT_EQ(cuda::skinny_takes(call), dtype() != DType::kF32);
      expect_kernels_of_few_rows(context, call, out, exact);
    }
  }
}

// More rows than the workspace holds.
TEST_P(Fp8LinearTest, MultipliesPartsOfManyRows) {
  if (dtype() != DType::kBF16) GTEST_SKIP() << "one type suffices";
  for (const WeightScheme& scheme : {kPerRow, kPerBlock}) expect_parts(scheme);
}

// Each row depends on its own activations alone, whether they are quantized or not.
TEST_P(Fp8LinearTest, RowsWithNanInfinityAndZeros) {
  for (const WeightScheme& scheme : {kPerRow, kPerBlock}) expect_independent_rows(scheme);
}
TEST_P(Fp8LinearTest, QuantizesRowsAsTheHostDoes) {
  const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
  for (const int64_t width : {16, 33, 4096, 14336, 20008}) {
    constexpr int64_t kRows = 6;
    std::vector<float> x = random(kRows * width, 5);
    const auto fill = [&](int64_t row, float value) {
      std::fill_n(x.begin() + row * width, width, value);
    };
    fill(1, 0.0F);
    fill(2, dtype() == DType::kF16 ? 6e-8F : 1e-39F);  // subnormal
    x[static_cast<size_t>(3 * width + width - 1)] = NAN;
    x[static_cast<size_t>(4 * width)] = INFINITY;
    x[static_cast<size_t>(5 * width + width / 2)] = 6e4F;
    x = rounded(x, dtype());
    const DeviceData input = device({kRows, width}, x);
    DeviceData out(stream(), {kRows, width}, DType::kF8E4M3);
    DeviceData scales(stream(), {kRows}, DType::kF32);
    cuda::run_quantize_rows(context, input.view(), out.view(), scales.view());
    const std::vector<float> values = out.values();
    const std::vector<float> actual_scales = scales.values();
    for (int64_t row = 0; row < kRows; ++row) {
      const std::span<const float> of_row = {x.data() + row * width, static_cast<size_t>(width)};
      const std::vector<float> wanted = quantized_row(of_row);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const float actual =
            values[static_cast<size_t>(row * width) + i] * actual_scales[static_cast<size_t>(row)];
        if (std::isnan(wanted[i])) {
          ASSERT_TRUE(std::isnan(actual)) << width << ", row " << row << ", " << i;
        } else {
          ASSERT_EQ(actual, wanted[i]) << width << ", row " << row << ", " << i;
        }
      }
    }
    EXPECT_EQ(actual_scales[1], 1.0F);
    EXPECT_EQ(actual_scales[4], INFINITY);
  }
}

TEST_P(Fp8LinearTest, QuantizesBlocksAsTheHostDoes) {
  if (dtype() == DType::kF32) GTEST_SKIP() << "F32 activations are not quantized";
  const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
  for (const int64_t width : {16, 128, 144, 4096, 20016}) {
    constexpr int64_t kRows = 5;
    constexpr int64_t kScalesWidth = 8;  // more than rows
    std::vector<float> x = random(kRows * width, 5);
    // Blocks of different magnitudes, and a row of zeros.
    for (size_t i = 0; i < x.size(); ++i) x[i] *= static_cast<float>(1 << i / 128 % 5);
    std::fill_n(x.begin() + width, width, 0.0F);
    x[static_cast<size_t>(3 * width + width - 1)] = NAN;
    x[static_cast<size_t>(4 * width)] = INFINITY;
    x = rounded(x, dtype());
    const DeviceData input = device({kRows, width}, x);
    DeviceData out(stream(), {kRows, width}, DType::kF8E4M3);
    DeviceData scales(stream(), {ceil_div(width, int64_t{128}), kScalesWidth}, DType::kF32);
    cuda::run_quantize_blocks(context, input.view(), out.view(), scales.view());
    const std::vector<float> values = out.values();
    const std::vector<float> actual_scales = scales.values();
    for (int64_t row = 0; row < kRows; ++row) {
      const std::vector<float> wanted =
          block_quantized_row({x.data() + row * width, static_cast<size_t>(width)});
      for (int64_t i = 0; i < width; ++i) {
        const float actual = values[static_cast<size_t>(row * width + i)] *
                             actual_scales[static_cast<size_t>(i / 128 * kScalesWidth + row)];
        const float want = wanted[static_cast<size_t>(i)];
        ASSERT_TRUE(actual == want || (std::isnan(actual) && std::isnan(want)))
            << width << ", row " << row << ", " << i << ": " << actual << ", expected " << want;
      }
    }
    EXPECT_EQ(actual_scales[1], 1.0F);
    EXPECT_TRUE(std::isnan(actual_scales[kRows]));  // was not written
  }
}

// Matrices that pass through the staging memory in one part and in several, whose rows have whole
// vectors and have not, with all columns and with some.
TEST_P(Fp8LinearTest, QuantizesWeightsToTheBitsOfTheHost) {
  struct Quantized {
    int64_t rows;
    int64_t width;
    Slice columns;
  };
  const Quantized cases[] = {{7, 16, {0, 16}},           {9, 33, {0, 33}},
                             {9, 33, {5, 20}},           {300, 14336, {7168, 7168}},
                             {300, 1000, {3, 200}},      {6000, 4096, {0, 4096}},
                             {5000, 4096, {1024, 2048}}, {1, 20008, {8, 20000}}};
  for (const Quantized& spec : cases) {
    const int64_t first = (spec.rows + 2) / 3;
    std::vector<float> numbers = random_floats(spec.rows * spec.width, 5, 0.02F);
    std::fill_n(numbers.begin(), spec.width, 0.0F);
    if (spec.rows > 2) {
      const float subnormal = dtype() == DType::kF16 ? -6e-8F : -1e-39F;
      std::fill_n(numbers.begin() + spec.width, spec.width, subnormal);
      numbers[static_cast<size_t>(3 * spec.width - 1)] = 6e4F;
    }
    std::vector<std::byte> bytes = encode(numbers, dtype());
    const TensorView whole = {bytes.data(), dtype(), {spec.rows, spec.width}};
    std::vector<TensorView> matrices = {whole.rows(0, first)};
    if (first < spec.rows) matrices.push_back(whole.rows(first, spec.rows - first));
    const std::vector<WeightView> weights(matrices.begin(), matrices.end());
    expect_bits_of_the_host(StoredMatrices{weights}, matrices, spec.columns);
  }
}

TEST_P(Fp8LinearTest, QuantizesRepeatedWeightsToTheBitsOfTheHost) {
  DummyWeights source(dtype());
  const Shape shapes[] = {{5000, 4096}, {333, 4096}};
  const TensorView matrices[] = {source.tensor("a", shapes[0]).value(),
                                 source.tensor("b", shapes[1]).value()};
  std::vector<RepeatedRows> repeated;
  for (int i = 0; i < 2; ++i) {
    const RepeatedTensor numbers = *source.repeated(i == 0 ? "a" : "b").value();
    repeated.push_back({numbers.pool, numbers.first, shapes[i][1], shapes[i]});
  }
  for (const Slice& columns : {Slice{0, 4096}, Slice{2048, 2048}, Slice{3, 50}}) {
    expect_bits_of_the_host(RepeatedMatrices{repeated}, matrices, columns);
  }
}

TEST_P(Fp8LinearTest, QuantizesFiniteWeightsAlone) {
  const int64_t rows = 3000;
  const int64_t width = 4096;
  for (const float fault : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> numbers(static_cast<size_t>(rows * width), 1.0F);
    numbers.back() = fault;
    std::vector<std::byte> bytes = encode(numbers, dtype());
    const WeightView view = TensorView{bytes.data(), dtype(), {rows, width}};
    const StoredMatrices stored = {{&view, 1}};
    EXPECT_TRUE(ops_->weights().make_linear({.numbers = stored}).ok());
    const LinearSource source = {.numbers =
                                     MatricesToQuantize{stored, fp8_at_load().scheme, {0, width}}};
    EXPECT_EQ(ops_->weights().make_linear(source).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST_P(Fp8LinearTest, RefusesColumnsThatAMatrixDoesNotHave) {
  std::vector<std::byte> bytes = encode(std::vector<float>(64, 1.0F), dtype());
  const WeightView view = TensorView{bytes.data(), dtype(), {2, 32}};
  for (const Slice& columns : {Slice{0, 33}, Slice{16, 17}, Slice{-1, 2}, Slice{0, 0}}) {
    const LinearSource source = {
        .numbers = MatricesToQuantize{StoredMatrices{{&view, 1}}, fp8_at_load().scheme, columns}};
    EXPECT_EQ(ops_->weights().make_linear(source).status().code(), StatusCode::kInvalidArgument);
  }
  Fp8Matrix scaled(2, 32, kPerRow, DType::kF32, 1);
  const WeightView scaled_view = scaled.view();
  const LinearSource source = {
      .numbers =
          MatricesToQuantize{StoredMatrices{{&scaled_view, 1}}, fp8_at_load().scheme, {0, 32}}};
  EXPECT_EQ(ops_->weights().make_linear(source).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(Fp8LinearTest, FusedRowsHaveTheBitsOfSeparateKernels) {
  const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
  // More than 8192 elements are several vectors per thread, and more than 32768 more than a thread
  // keeps.
  for (const int64_t width : {8, 33, 100, 4096, 8200, 14336, 20008, 33000}) {
    expect_fused_bits(width, {6},
                      [&](const auto& x, const auto& out, const auto& scales,
                          const cuda::RowOperation& operation) {
                        cuda::run_quantize_rows(context, x, out, scales, operation);
                      });
  }
}

TEST_P(Fp8LinearTest, FusedBlocksHaveTheBitsOfSeparateKernels) {
  if (dtype() == DType::kF32) GTEST_SKIP() << "F32 activations are not quantized";
  const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
  for (const int64_t width : {16, 128, 144, 4096, 8200, 14336, 33008}) {
    expect_fused_bits(width, {ceil_div(width, int64_t{128}), 8},
                      [&](const auto& x, const auto& out, const auto& scales,
                          const cuda::RowOperation& operation) {
                        cuda::run_quantize_blocks(context, x, out, scales, operation);
                      });
  }
}

TEST_P(Fp8LinearTest, FusedProductsHaveTheBitsOfSeparateOperations) {
  for (const WeightScheme& scheme : {kPerRow, kPerBlock, WeightScheme{.values = DType::kF32}}) {
    for (const int64_t num_rows : {1, 8, 9, 16, 17, 64, 200}) {
      expect_bits_of_separate_operations(num_rows, 512, 256, scheme);
    }
    // Kernels that quantize take no such width.
    expect_bits_of_separate_operations(24, 72, 40, scheme);
  }
}

// More rows than the workspace holds.
TEST_P(Fp8LinearTest, FusedProductsOfManyRowsAreInParts) {
  if (dtype() != DType::kBF16) GTEST_SKIP() << "one type suffices";
  for (const WeightScheme& scheme : {kPerRow, kPerBlock}) {
    expect_bits_of_separate_operations(2100, 16384, 16, scheme);
    expect_bits_of_separate_operations(2100, 128, 16384, scheme);
  }
}

// Whichever kernels the measurement chose.
TEST_P(Fp8LinearTest, FusedProductsAreTuned) {
  if (dtype() == DType::kF32) GTEST_SKIP() << "F32 activations are not quantized";
  for (const WeightScheme& scheme : {kPerRow, kPerBlock}) {
    for (const int num_rows : {1, 12, 24, 200}) {
      Mlp mlp = make_mlp(num_rows, 512, 256, scheme);
      ops_->gated_mlp(mlp.call);
      const std::vector<float> before = mlp.out->values();
      const Status tuned = ops_->tune_linears({&num_rows, 1}, [&] {
        ops_->gated_mlp(mlp.call);
        return Status();
      });
      ASSERT_EQ(tuned.message(), "");
      Mlp again = make_mlp(num_rows, 512, 256, scheme);
      ops_->gated_mlp(again.call);
      // Between 9 and 16 rows, activations may be quantized after the measurement alone.
      EXPECT_LT(relative_distance(again.out->values(), before), 0.1) << num_rows << " rows";
    }
  }
}

TEST_P(Fp8LinearTest, EmbedMultipliesByTheScales) {
  for (const WeightScheme& scheme : {kPerRow, kPerBlock}) expect_embeds(scheme);
}

// With weights in the activations' type the same tail is fused.
TEST_P(Fp8LinearTest, LayerTailIsNotFused) {
  if (dtype() == DType::kF32) GTEST_SKIP() << "no tail in F32 is fused";
  const int64_t size = 256;
  const auto kernel =
      cuda::LayerTailKernel::create({.stream = &stream(), .overlap_start = true}).value();
  ASSERT_NE(kernel, nullptr);
  std::vector<float> ones(static_cast<size_t>(2 * size * size), 1.0F);
  const Tensor norm = ops_->weights().make_vector({ones.data(), DType::kF32, {size}}).value();
  const auto zeros = [&](int64_t width) {
    return device({1, width}, std::vector<float>(static_cast<size_t>(width)));
  };
  const DeviceData attention = zeros(size);
  const DeviceData residual = zeros(size);
  const DeviceData delta = zeros(size);
  const DeviceData normed = zeros(size);
  const DeviceData gate_up_out = zeros(2 * size);
  const DeviceData product = zeros(size);
  for (const bool is_fp8 : {false, true}) {
    const auto linear = [&](int64_t n) {
      Fp8Matrix matrix(n, size, kPerRow, DType::kF32, 1);
      const WeightView view =
          is_fp8 ? matrix.view() : WeightView(TensorView{ones.data(), DType::kF32, {n, size}});
      return ops_->weights().make_linear({.numbers = StoredMatrices{{&view, 1}}}).value();
    };
    const auto o = linear(size);
    const auto gate_up = linear(2 * size);
    const auto down = linear(size);
    const LayerTail tail = {.o = o.get(),
                            .post_attention_norm = norm.view.as<float>(),
                            .gate_up = gate_up.get(),
                            .down = down.get(),
                            .norm_eps = 1e-5F,
                            .attention = attention.view(),
                            .residual = residual.view(),
                            .delta = delta.view(),
                            .qkv = {},
                            .normed = normed.view(),
                            .gate_up_out = gate_up_out.view(),
                            .product = product.view()};
    EXPECT_EQ(kernel->takes(tail), !is_fp8);
  }
}

TEST_P(Fp8LinearTest, RefusesSchemesThatDoNotFit) {
  EXPECT_EQ(ops_->weights().linear_dtype(kPerRow).value(), DType::kF8E4M3);
  EXPECT_EQ(ops_->weights().linear_dtype(kPerBlock).value(), DType::kF8E4M3);
  EXPECT_EQ(ops_->weights().linear_dtype({.values = DType::kF32}).value(), dtype());
  Fp8Matrix per_tensor(4, 32, kPerTensor, DType::kF32, 1);
  Fp8Matrix per_row(4, 32, kPerRow, DType::kF32, 2);
  const WeightView mixed[] = {per_tensor.view(), per_row.view()};
  EXPECT_EQ(ops_->weights().make_linear({.numbers = StoredMatrices{mixed}}).status().code(),
            StatusCode::kInvalidArgument);
  WeightView wrong_scales = per_row.view();
  wrong_scales.scales = wrong_scales.scales.rows(0, 3);
  EXPECT_EQ(
      ops_->weights().make_linear({.numbers = StoredMatrices{{&wrong_scales, 1}}}).status().code(),
      StatusCode::kInvalidArgument);
  WeightView no_scales = per_row.view();
  no_scales.scales.data = nullptr;
  EXPECT_EQ(
      ops_->weights().make_linear({.numbers = StoredMatrices{{&no_scales, 1}}}).status().code(),
      StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Types, Fp8LinearTest,
                         ::testing::Values(DType::kBF16, DType::kF16, DType::kF32), dtype_of_test);

// Quantized activations on the host: E4M3 values, and scales that differ by row.
struct Fp8Rows {
  Fp8Rows(int64_t num_rows, int64_t k) {
    constexpr float kDeviation = 40;
    std::vector<float> numbers = random_floats(num_rows * k, 5, kDeviation);
    values = encode(numbers, DType::kF8E4M3);
    numbers = decode(values, DType::kF8E4M3);
    for (int64_t row = 0; row < num_rows; ++row) {
      const auto divisor = static_cast<float>(1 << row % 4);
      scales.push_back((1.0F + static_cast<float>(row % 7) / 8) / divisor / kDeviation /
                       std::sqrt(static_cast<float>(k)));
      for (int64_t i = 0; i < k; ++i) {
        products.push_back(numbers[static_cast<size_t>(row * k + i)] * scales.back());
      }
    }
  }

  std::vector<std::byte> values;
  std::vector<float> scales;
  std::vector<float> products;  // values * scales
};

class Fp8WgmmaTest : public CudaOpsTest {
 protected:
  static constexpr int64_t kPoisonedRows = 300;  // more than the rows of any tile

  struct Problem {
    int64_t n;
    int64_t k;
    bool has_bias = false;
    bool is_gated = false;
  };

  void SetUp() override {
    CudaOpsTest::SetUp();
    if (stream_ == nullptr) return;
    gemm_ = make(true);
    if (gemm_ == nullptr) GTEST_SKIP() << "the device is not of compute capability 9.0";
  }

  std::unique_ptr<cuda::WgmmaGemm> make(bool overlap_start) {
    return cuda::WgmmaGemm::create({.stream = &stream(), .overlap_start = overlap_start}).value();
  }

  // The rows after the bytes are NaN.
  DeviceData poisoned_behind(const Shape& shape, DType type, const void* bytes) {
    const int64_t rows = shape[0] + kPoisonedRows;
    DeviceData data(stream(), shape.rank() == 1 ? Shape{rows} : Shape{rows, shape[1]}, type);
    stream().copy_to_device(data.view().data, bytes, TensorView{nullptr, type, shape}.num_bytes());
    EXPECT_EQ(stream().synchronize().message(), "");
    return data;
  }

  // A call for the choice of plans, which has activations of the output's type.
  cuda::GemmCall unquantized(cuda::GemmCall call) const {
    call.x.dtype = dtype();
    return call;
  }

  // Runs each plan at `num_rows`, and with the rows that it is for.
  void expect_plans(const cuda::GemmCall& call, int64_t num_rows, const float* x_scales,
                    DeviceData& out, const std::vector<float>& expected, float limit) {
    const int64_t most_rows = call.x.shape[0];
    const int64_t width = static_cast<int64_t>(expected.size()) / most_rows;
    const std::vector<cuda::WgmmaPlan> plans = gemm_->plans(unquantized(call), 1000);
    EXPECT_GE(plans.size(), size_t{2});
    for (const cuda::WgmmaPlan& plan : plans) {
      for (const int64_t rows : {most_rows, num_rows}) {
        cuda::GemmCall part = call;
        part.x = part.x.rows(0, rows);
        out.poison();
        ASSERT_EQ(gemm_->run(part, plan, x_scales).message(), "");
        std::vector<float> actual = out.values();
        const auto written = static_cast<size_t>(rows * width);
        const std::string name = cuda::wgmma_plan_name(plan) + " for " + std::to_string(most_rows) +
                                 " rows, at " + std::to_string(rows) + " rows of " +
                                 std::to_string(call.w.shape[1]) + " to " +
                                 std::to_string(call.w.shape[0]);
        EXPECT_TRUE(std::all_of(actual.begin() + static_cast<ptrdiff_t>(written), actual.end(),
                                [](float x) { return std::isnan(x); }))
            << name << ": wrote rows past the last one";
        actual.resize(written);
        expect_near_all(actual, {expected.begin(), expected.begin() + rows * width}, limit, name);
        ASSERT_FALSE(HasFailure()) << name;
      }
    }
  }

  // Runs every plan for each number of rows, and with another number of rows.
  void expect_problem(const Problem& spec,
                      std::initializer_list<std::pair<int64_t, int64_t>> row_counts) {
    const int64_t most_rows = std::max(row_counts).first;
    Fp8Matrix w(spec.n, spec.k, kPerRow, DType::kF32, 1);
    std::vector<float> b = random(spec.n, 2);
    const WeightView w_view = w.view();
    const TensorView b_view = {b.data(), DType::kF32, {spec.n}};
    const std::span<const TensorView> biases(&b_view, spec.has_bias ? 1 : 0);
    const auto linear =
        reference_.make_linear({.numbers = StoredMatrices{{&w_view, 1}}, .biases = biases}).value();
    Fp8Rows x(most_rows, spec.k);
    std::vector<float> products(static_cast<size_t>(most_rows * spec.n));
    reference_.linear(*linear, host_view(x.products, most_rows), host_view(products, most_rows));
    std::vector<float> all = products;
    if (spec.is_gated) {
      std::vector<float> gate_up = rounded(products, dtype());
      all.resize(all.size() / 2);
      reference_.gated_mul(Activation::kSilu, host_view(gate_up, most_rows),
                           host_view(all, most_rows));
    }
    const int64_t width = spec.is_gated ? spec.n / 2 : spec.n;
    const DeviceData weights = poisoned_behind({spec.n, spec.k}, DType::kF8E4M3, w.values.data());
    const DeviceData w_scales = poisoned_behind({spec.n}, DType::kF32, w.scales.data());
    const DeviceData bias = device({spec.n}, b);
    for (const auto& [rows, fewer] : row_counts) {
      const DeviceData input = poisoned_behind({rows, spec.k}, DType::kF8E4M3, x.values.data());
      const DeviceData x_scales = poisoned_behind({rows}, DType::kF32, x.scales.data());
      const std::vector<float> expected = {all.begin(), all.begin() + rows * width};
      for (const DType out_type : {dtype(), DType::kF32}) {
        if (out_type != dtype() && (spec.is_gated || rows % 2 == 0)) continue;
        DeviceData out(stream(), {rows, width}, out_type);
        const DeviceData scratch(stream(), {spec.is_gated ? rows : 1, spec.n}, dtype());
        cuda::GemmCall call = {input.view().rows(0, rows), weights.view().rows(0, spec.n),
                               spec.has_bias ? bias.view() : TensorView{}, out.view()};
        call.w_scales = w_scales.view();
        if (spec.is_gated) call.out = scratch.view();
        if (spec.is_gated) call.gated_out = out.view();
        ASSERT_TRUE(cuda::WgmmaGemm::takes(unquantized(call)));
        const float limit = (spec.is_gated ? 4 : 1) * quantized_tolerance(out_type);
        expect_plans(call, fewer, x_scales.as<float>(), out, expected, limit);
        ASSERT_FALSE(HasFailure());
      }
    }
  }

  std::unique_ptr<cuda::WgmmaGemm> gemm_;
};

TEST_P(Fp8WgmmaTest, EveryPlanAgreesWithTheReference) {
  for (const Problem& spec :
       {Problem{456, 1040}, Problem{200, 528, true}, Problem{8, 4112, true}, Problem{128, 16},
        Problem{464, 1040, false, true}, Problem{272, 144, false, true}}) {
    expect_problem(spec, {{9, 1},
                          {16, 11},
                          {33, 17},
                          {64, 49},
                          {100, 65},
                          {128, 90},
                          {152, 137},
                          {193, 150},
                          {304, 257},
                          {383, 305},
                          {520, 449}});
    ASSERT_FALSE(HasFailure());
  }
}

// With more tiles than resident thread blocks, the last ones are split.
TEST_P(Fp8WgmmaTest, EveryPlanOfManyTilesAgreesWithTheReference) {
  for (const Problem& spec : {Problem{17920, 528}, Problem{17936, 272, false, true}}) {
    expect_problem(spec, {{40, 33}});
    ASSERT_FALSE(HasFailure());
  }
}

// Splits are added in one order, regardless of which thread block finishes first.
TEST_P(Fp8WgmmaTest, GivesTheSameBitsEveryTimeAndInAGraph) {
  const int64_t n = 1536;
  const int64_t k = 4096;
  Fp8Matrix w(n, k, kPerRow, DType::kF32, 1);
  const DeviceData weights = poisoned_behind({n, k}, DType::kF8E4M3, w.values.data());
  const DeviceData w_scales = poisoned_behind({n}, DType::kF32, w.scales.data());
  for (const int64_t rows : {40, 130, 304}) {
    const Fp8Rows x(rows, k);
    const DeviceData input = poisoned_behind({rows, k}, DType::kF8E4M3, x.values.data());
    const DeviceData x_scales = poisoned_behind({rows}, DType::kF32, x.scales.data());
    DeviceData out = blank({rows, n});
    cuda::GemmCall call = {input.view().rows(0, rows), weights.view().rows(0, n), {}, out.view()};
    call.w_scales = w_scales.view();
    const auto* scales = x_scales.as<const float>();
    for (const cuda::WgmmaPlan& plan : gemm_->plans(unquantized(call), 1000)) {
      const std::string name = cuda::wgmma_plan_name(plan);
      expect_capturable([&] { EXPECT_EQ(gemm_->run(call, plan, scales).message(), "") << name; },
                        out, [&] { out.poison(); });
      const std::vector<std::byte> first = out.bytes();
      for (int repeat = 0; repeat < 5; ++repeat) {
        out.poison();
        EXPECT_EQ(gemm_->run(call, plan, scales).message(), "");
        ASSERT_EQ(out.bytes(), first) << name << " at " << rows << " rows";
      }
    }
  }
}

// Compares a chain in which each product reads rows and scales of the previous kernel, which
// started early too, with the same chain of kernels that do not overlap.
TEST_P(Fp8WgmmaTest, WaitsForThePreviousKernelsRowsAndScales) {
  const int64_t rows = 100;
  const int64_t width = 2048;
  Fp8Matrix w(width, width, kPerRow, DType::kF32, 1);
  const DeviceData weights(stream(), {width, width}, DType::kF8E4M3,
                           decode(w.values, DType::kF8E4M3));
  const DeviceData w_scales(stream(), {width}, DType::kF32, decode(w.scales, DType::kF32));
  const std::vector<float> ones(width, 1.0F);
  const DeviceData norm(stream(), {width}, DType::kF32, ones);
  const DeviceData start = device({rows, width}, random(rows * width, 9));
  const DeviceData y = blank({rows, width});
  const DeviceData x = blank({rows, width});
  DeviceData quantized(stream(), {rows, width}, DType::kF8E4M3);
  DeviceData scales(stream(), {rows}, DType::kF32);
  cuda::GemmCall call = {quantized.view(), weights.view(), {}, y.view()};
  call.w_scales = w_scales.view();
  const auto in_turn = make(false);
  for (const cuda::WgmmaPlan& plan : gemm_->plans(unquantized(call), 8)) {
    std::vector<std::byte> expected;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const bool overlaps = repeat > 0;
      const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = overlaps};
      stream().record_error(cudaMemcpyAsync(y.view().data, start.view().data, y.view().num_bytes(),
                                            cudaMemcpyDeviceToDevice, stream().get()),
                            "copy");
      for (int i = 0; i < 20; ++i) {
        const ResidualNorm rows_of_norm = {
            .residual = y.view(), .weight = norm.as<float>(), .eps = 1e-5F};
        cuda::run_quantize_rows(context, x.view(), quantized.view(), scales.view(), rows_of_norm);
        EXPECT_EQ((overlaps ? gemm_ : in_turn)->run(call, plan, scales.as<float>()).message(), "");
      }
      const std::vector<std::byte> bytes = bytes_of(stream(), y.view());
      if (repeat == 0) expected = bytes;
      EXPECT_EQ(bytes, expected) << cuda::wgmma_plan_name(plan) << ", repeat " << repeat;
    }
  }
}

TEST_P(Fp8WgmmaTest, RefusesMatricesThatTmaCannotCopy) {
  const DeviceData memory = blank({64, 128});
  const auto takes = [&](int64_t rows, int64_t n, int64_t k, int64_t scale_rows) {
    void* data = memory.view().data;
    cuda::GemmCall call = {
        {data, dtype(), {rows, k}}, {data, DType::kF8E4M3, {n, k}}, {}, {data, dtype(), {rows, n}}};
    call.scale_rows = scale_rows;
    return cuda::WgmmaGemm::takes(call);
  };
  EXPECT_TRUE(takes(16, 16, 64, 0));
  EXPECT_FALSE(takes(16, 16, 64, 16));
  EXPECT_FALSE(takes(16, 12, 64, 0));
  EXPECT_FALSE(takes(16, 16, 56, 0));
  EXPECT_FALSE(takes(0, 16, 64, 0));
}

INSTANTIATE_TEST_SUITE_P(Types, Fp8WgmmaTest, ::testing::Values(DType::kBF16, DType::kF16),
                         dtype_of_test);

// The functions below run on the host.
TEST(ScalesOfRows, RepeatAScalePerTensor) {
  float scale = 0.5F;
  uint16_t row_scales[] = {f32_to_bf16(2.0F), f32_to_bf16(3.0F)};
  uint16_t half_scale = f32_to_f16(0.25F);
  uint8_t values[24] = {};
  const auto view = [&](int64_t rows, void* scales, DType type, const WeightScheme& scheme) {
    const Shape shape = {rows, 8};
    return WeightView({values, DType::kF8E4M3, shape}, {scales, type, scales_shape(scheme, shape)},
                      scheme);
  };
  const WeightView matrices[] = {view(3, &scale, DType::kF32, kPerTensor),
                                 view(2, row_scales, DType::kBF16, kPerRow),
                                 view(1, &half_scale, DType::kF16, kPerTensor)};
  const cuda::ScalesLayout layout = cuda::scales_layout(matrices);
  EXPECT_EQ(layout, (cuda::ScalesLayout{{6}, 0}));
  EXPECT_EQ(cuda::stacked_scales(matrices, layout),
            (std::vector<float>{0.5F, 0.5F, 0.5F, 2.0F, 3.0F, 0.25F}));
}

// Every row of the stack finds the scale of its block in its own matrix.
TEST(ScalesOfBlocks, AreFoundFromTheRowsOfTheStack) {
  struct StackCase {
    std::vector<int64_t> heights;
    int64_t scale_rows;
  };
  const int64_t k = 300;
  const StackCase cases[] = {{{256, 128, 384}, 128}, {{576}, 128},        {{128, 576}, 128},
                             {{576, 128}, 64},       {{192, 64, 10}, 64}, {{3}, 128},
                             {{200, 40}, 8},         {{130, 5, 7}, 1},    {{1536, 576, 64}, 64}};
  for (const auto& [heights, scale_rows] : cases) {
    std::vector<std::vector<float>> scales;
    std::vector<WeightView> matrices;
    float next = 1.0F;
    for (const int64_t height : heights) {
      const Shape shape = scales_shape(kPerBlock, {height, k});
      std::vector<float>& numbers = scales.emplace_back();
      for (int64_t i = 0; i < shape.num_elements(); ++i) numbers.push_back(next++);
      matrices.push_back({{nullptr, DType::kF8E4M3, {height, k}},
                          {numbers.data(), DType::kF32, shape},
                          kPerBlock});
    }
    const cuda::ScalesLayout layout = cuda::scales_layout(matrices);
    ASSERT_EQ(layout.scale_rows, scale_rows);
    ASSERT_EQ(layout.shape[1], 3);
    const std::vector<float> stacked = cuda::stacked_scales(matrices, layout);
    ASSERT_EQ(static_cast<int64_t>(stacked.size()), layout.shape.num_elements());
    int64_t row = 0;
    for (size_t i = 0; i < heights.size(); ++i) {
      for (int64_t in_matrix = 0; in_matrix < heights[i]; ++in_matrix, ++row) {
        for (int64_t column = 0; column < 3; ++column) {
          ASSERT_EQ(stacked[static_cast<size_t>(row / scale_rows * 3 + column)],
                    scales[i][static_cast<size_t>(in_matrix / 128 * 3 + column)])
              << heights.size() << " matrices, row " << row;
        }
      }
    }
  }
}

TEST(CheckScheme, AcceptsBlocksOf128Alone) {
  EXPECT_TRUE(cuda::check_scheme(kPerBlock).ok());
  for (const Shape& block : {Shape{64, 128}, Shape{128, 64}, Shape{1, 128}}) {
    WeightScheme scheme = kPerBlock;
    scheme.block_rows = block[0];
    scheme.block_columns = block[1];
    EXPECT_EQ(cuda::check_scheme(scheme).code(), StatusCode::kUnimplemented);
  }
}

TEST(E4m3Scale, FillsTheRangeAndHasAFiniteInverse) {
  EXPECT_EQ(e4m3_scale(0.0F), 1.0F);
  EXPECT_EQ(e4m3_scale(448.0F), 1.0F);
  EXPECT_EQ(e4m3_scale(INFINITY), INFINITY);
  for (float largest = 1e-45F; largest < 1e38F; largest *= 1.7F) {
    const float scale = e4m3_scale(largest);
    EXPECT_TRUE(std::isfinite(1.0F / scale)) << largest;
    EXPECT_LE(largest / scale, 448.001F) << largest;
    if (largest > 1e-35F) {
      EXPECT_GE(largest / scale, 447.99F) << largest;
    }
  }
}

// Rounding to E4M3 changes a number by at most 1/16 of it, or by half of the smallest step.
TEST(E4m3Scale, BoundsTheErrorOfTheActivations) {
  const std::vector<float> x = random_floats(4096, 3);
  const std::vector<float> out = quantized_row(x);
  float largest = 0;
  for (const float number : x) largest = std::max(largest, std::abs(number));
  const float step = e4m3_scale(largest) / 1024.0F;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(out[i] - x[i]), std::max(std::abs(x[i]) / 16.0F, step) * 1.0001F) << i;
  }
}

TEST(QuantizedRows, PartsFitAndAreFew) {
  for (const int64_t width : {16, 4096, 14336, 28672, 1 << 25}) {
    for (const int64_t num_rows : {1, 17, 1170, 1171, 2048, 2341, 8192, 100000}) {
      const int64_t part = cuda::quantized_rows(num_rows, width);
      const int64_t most = std::min<int64_t>(cuda::kQuantizedBytes / width, 1 << 15);
      ASSERT_GT(part, 0);
      EXPECT_LE(part, most);
      EXPECT_LE(part, num_rows);
      EXPECT_EQ(ceil_div(num_rows, part), ceil_div(num_rows, most)) << width << " " << num_rows;
    }
  }
}

}  // namespace
}  // namespace quire::testing

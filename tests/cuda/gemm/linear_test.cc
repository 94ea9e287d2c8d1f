#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/ops/device_data.h"
#include "few_row_products.h"
#include "support/scratch_directory.h"
#include "tensor/weight_source.h"

namespace quire::testing {
namespace {

struct LinearCase {
  int64_t n;
  int64_t k;
  bool has_bias = false;
};

class LinearTest : public CudaOpsTest {
 protected:
  // Makes a weight of two blocks of rows, the second without a bias.
  void make(const LinearCase& spec) {
    const int64_t first = spec.n / 3;
    first_ = random(first * spec.k, 1);
    second_ = random((spec.n - first) * spec.k, 2);
    bias_ = random(first, 3);
    const WeightView weights[] = {
        TensorView{first_.data(), DType::kF32, {first, spec.k}},
        TensorView{second_.data(), DType::kF32, {spec.n - first, spec.k}}};
    const TensorView biases[] = {{bias_.data(), DType::kF32, {first}},
                                 {nullptr, DType::kF32, {spec.n - first}}};
    const LinearSource source = {.numbers = StoredMatrices{weights},
                                 .biases = spec.has_bias ? std::span<const TensorView>(biases)
                                                         : std::span<const TensorView>()};
    linear_ = ops_->weights().make_linear(source).value();
    expected_linear_ = reference_.make_linear(source).value();
  }

  void check(int64_t num_rows, DType out_type, const std::string& what) {
    const int64_t k = linear_->in_features();
    const int64_t n = linear_->out_features();
    const float scale = 1.0F / std::sqrt(static_cast<float>(k));
    std::vector<float> x = random(num_rows * k, 7, scale);
    std::vector<float> expected(static_cast<size_t>(num_rows * n));
    reference_.linear(*expected_linear_, host_view(x, num_rows), host_view(expected, num_rows));
    const DeviceData input = device({num_rows, k}, x);
    DeviceData out(stream(), {num_rows, n}, out_type);
    ops_->linear(*linear_, input.view(), out.view());
    expect_near_all(out.values(), expected, tolerance(out_type),
                    what + ", " + std::to_string(num_rows) + " rows of " + std::to_string(k) +
                        " to " + std::to_string(n));
  }

  std::vector<float> first_, second_, bias_;
  std::unique_ptr<Linear> linear_;
  std::unique_ptr<Linear> expected_linear_;
};

TEST_P(LinearTest, AllSizes) {
  const LinearCase cases[] = {{7, 8},     {33, 31, true}, {64, 100},        {16, 264},
                              {129, 512}, {40, 1000},     {384, 256, true}, {3, 2048}};
  for (const LinearCase& spec : cases) {
    make(spec);
    for (const int64_t num_rows : {1, 2, 3, 8, 9, 16, 17, 23, 100}) {
      check(num_rows, dtype(), "same type");
      check(num_rows, DType::kF32, "to f32");
    }
  }
}

// A bucket's choice is measured at its largest number of rows and serves all of them.
TEST_P(LinearTest, TunedForEveryRowCount) {
  for (const bool has_bias : {false, true}) {
    make({96, 512, has_bias});
    const DeviceData x = device({200, 512}, random(200 * 512, 1));
    for (const DType out_type : {dtype(), DType::kF32}) {
      DeviceData out(stream(), {200, 96}, out_type);
      const int row_counts[] = {1, 2, 4, 8, 16, 24, 96, 128, 500};
      const Status tuned = ops_->tune_linears(row_counts, [&] {
        ops_->linear(*linear_, x.view(), out.view());
        return Status();
      });
      ASSERT_EQ(tuned.message(), "");
      for (const int64_t num_rows : {1, 3, 8, 11, 16, 17, 31, 90, 128, 130, 200}) {
        check(num_rows, out_type, "tuned");
      }
    }
  }
}

// A start that finds the choices of an earlier one runs the same kernels.
TEST_P(LinearTest, KeptChoicesComputeTheSameBits) {
  const ScratchDirectory directory;
  const auto file = directory.path() / "choices.tsv";
  std::vector<float> bits[2];
  for (std::vector<float>& of_start : bits) {
    const auto choices = std::make_shared<MeasuredChoices>(
        MeasuredChoices::Config{.file = file, .build = "a build"});
    ops_ = cuda::CudaOps::create(stream(), dtype(), {.choices = choices}).value();
    make({384, 512, true});
    const DeviceData x = device({600, 512}, random(600 * 512, 1));
    DeviceData out(stream(), {600, 384}, dtype());
    const int row_counts[] = {1, 2, 4, 8, 16, 24, 96, 128, 500, 600};
    const Status tuned = ops_->tune_linears(row_counts, [&] {
      ops_->linear(*linear_, x.view(), out.view());
      return Status();
    });
    ASSERT_EQ(tuned.message(), "");
    ASSERT_EQ(choices->keep().message(), "");
    EXPECT_EQ(choices->report().starts_with("measured nothing"), &of_start == &bits[1])
        << choices->report();
    for (const int64_t num_rows : {1, 3, 8, 16, 24, 90, 128, 500, 600}) {
      check(num_rows, dtype(), "kept");
      DeviceData part(stream(), {num_rows, 384}, dtype());
      ops_->linear(*linear_, x.view().rows(0, num_rows), part.view());
      const std::vector<float> values = part.values();
      of_start.insert(of_start.end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(bits[0], bits[1]);
}

// Without measurements, fixed rules choose.
TEST_P(LinearTest, NothingIsMeasuredIfItIsOff) {
  const auto choices = std::make_shared<MeasuredChoices>(
      MeasuredChoices::Config{.file = {}, .build = {}, .use = MeasuredChoices::Use::kNothing});
  ops_ = cuda::CudaOps::create(stream(), dtype(), {.choices = choices}).value();
  make({384, 512, true});
  const DeviceData x = device({200, 512}, random(200 * 512, 1));
  DeviceData out(stream(), {200, 384}, dtype());
  const int row_counts[] = {1, 8, 200};
  const Status tuned = ops_->tune_linears(row_counts, [&] {
    ops_->linear(*linear_, x.view(), out.view());
    return Status();
  });
  ASSERT_EQ(tuned.message(), "");
  EXPECT_TRUE(choices->all(ChoiceKind::kProduct).empty());
  for (const int64_t num_rows : {1, 8, 200}) check(num_rows, dtype(), "unmeasured");
}

TEST(GemmChoiceText, IsReadBack) {
  using Kind = cuda::GemmChoice::Kind;
  cuda::GemmChoice cublas = {.kind = Kind::kCublasLt};
  for (size_t i = 0; i < std::size(cublas.algorithm.data); ++i) cublas.algorithm.data[i] = i * 77;
  const cuda::GemmChoice choices[] = {
      {.kind = Kind::kGeneric},
      {.kind = Kind::kSkinny, .skinny_variant = 1},
      {.kind = Kind::kGrouped, .tile_rows = 64},
      {.kind = Kind::kWgmma, .wgmma = {.tile = 2, .cluster_tokens = 1, .cluster_weights = 2}},
      cublas};
  for (const cuda::GemmChoice& choice : choices) {
    const std::string text = cuda::to_text(choice);
    const auto read = cuda::gemm_choice(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(cuda::to_text(*read), text);
    EXPECT_EQ(read->kind, choice.kind);
  }
}

TEST(GemmChoiceText, RefusesOtherTexts) {
  for (const char* text : {"", "skinny", "skinny -1", "skinny 99", "skinny 1 2", "grouped 33",
                           "grouped x", "wgmma 1 1 1", "wgmma 99 1 1 1", "wgmma 1 0 1 1",
                           "cublaslt", "cublaslt AAAA", "cublaslt ?", "generic 1", "fast"}) {
    EXPECT_FALSE(cuda::gemm_choice(text)) << text;
  }
}

// Checks the kernels that are chosen before tuning and after it.
TEST_P(LinearTest, MultipliesTheHalvesOfAProduct) {
  const int64_t k = 520;
  for (const LinearCase& spec : {LinearCase{464, k}, LinearCase{464, k, true}, LinearCase{50, k}}) {
    make(spec);
    const int64_t width = spec.n / 2;
    const int64_t max_rows = 200;
    const std::vector<float> x = random(max_rows * k, 7, 1.0F / std::sqrt(static_cast<float>(k)));
    const DeviceData input = device({max_rows, k}, x);
    DeviceData scratch = blank({max_rows, spec.n});
    DeviceData out = blank({max_rows, width});
    for (const bool is_tuned : {false, true}) {
      if (is_tuned) {
        const int row_counts[] = {1, 2, 8, 16, 64, 128, 500};
        const Status tuned = ops_->tune_linears(row_counts, [&] {
          ops_->linear_gated_mul(Activation::kSilu, *linear_, input.view(), scratch.view(),
                                 out.view());
          return Status();
        });
        ASSERT_EQ(tuned.message(), "");
      }
      for (const int64_t rows : {1, 2, 7, 16, 40, 64, 127, 200}) {
        std::vector<float> inputs(x.begin(), x.begin() + rows * k);
        std::vector<float> gate_up(static_cast<size_t>(rows * spec.n));
        reference_.linear(*expected_linear_, host_view(inputs, rows), host_view(gate_up, rows));
        gate_up = rounded(gate_up, dtype());
        std::vector<float> expected(static_cast<size_t>(rows * width));
        reference_.gated_mul(Activation::kSilu, host_view(gate_up, rows),
                             host_view(expected, rows));
        DeviceData product = blank({rows, width});
        ops_->linear_gated_mul(Activation::kSilu, *linear_, input.view().rows(0, rows),
                               scratch.view().rows(0, rows), product.view());
        expect_near_all(product.values(), expected, tolerance(dtype()),
                        std::to_string(rows) + " rows of " + std::to_string(spec.n));
      }
    }
  }
}

TEST_P(LinearTest, CanBeCaptured) {
  make({96, 512, true});
  for (const int64_t num_rows : {1, 5, 16, 64}) {
    const DeviceData x = device({num_rows, 512}, random(num_rows * 512, 1));
    for (const DType out_type : {dtype(), DType::kF32}) {
      DeviceData out(stream(), {num_rows, 96}, out_type);
      expect_capturable([&] { ops_->linear(*linear_, x.view(), out.view()); }, out,
                        [&] { out.poison(); });
    }
  }
}

TEST_P(LinearTest, EveryKernelAgrees) {
  const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
  for (const LinearCase& spec :
       {LinearCase{70, 2088}, LinearCase{48, 32, true}, LinearCase{500, 1032, true}}) {
    make(spec);
    std::vector<float> w = first_;
    w.insert(w.end(), second_.begin(), second_.end());
    const DeviceData weights = device({spec.n, spec.k}, w);
    std::vector<float> biases = bias_;
    biases.resize(static_cast<size_t>(spec.n), 0.0F);
    const DeviceData bias = device({spec.n}, biases);
    for (const int64_t num_rows : {1, 7, 8, 9, 16}) {
      std::vector<float> x =
          random(num_rows * spec.k, 4, 1.0F / std::sqrt(static_cast<float>(spec.k)));
      std::vector<float> expected(static_cast<size_t>(num_rows * spec.n));
      reference_.linear(*expected_linear_, host_view(x, num_rows), host_view(expected, num_rows));
      const DeviceData input = device({num_rows, spec.k}, x);
      DeviceData out(stream(), {num_rows, spec.n}, DType::kF32);
      const cuda::GemmCall call = {input.view(), weights.view(),
                                   spec.has_bias ? bias.view() : TensorView{}, out.view()};
      expect_kernels_of_few_rows(context, call, out, expected);
    }
  }
}

// A chain in which each product reads the output of the previous kernel, which started early too.
TEST_P(LinearTest, OverlappedChainGivesTheSameBitsEveryTime) {
  const int64_t width = 2048;
  make({width, width});
  const std::vector<float> ones(width, 1.0F);
  const TensorView ones_view = {const_cast<float*>(ones.data()), DType::kF32, {width}};
  const Tensor weight = ops_->weights().make_vector(ones_view).value();
  const DeviceData start = device({4, width}, random(4 * width, 9));
  DeviceData x = blank({4, width});
  DeviceData y = blank({4, width});
  std::vector<std::byte> first;
  for (int repeat = 0; repeat < 20; ++repeat) {
    stream().record_error(cudaMemcpyAsync(x.view().data, start.view().data, x.view().num_bytes(),
                                          cudaMemcpyDeviceToDevice, stream().get()),
                          "copy");
    for (int i = 0; i < 30; ++i) {
      ops_->linear(*linear_, x.view(), y.view());
      ops_->residual_norm({.residual = y.view(), .weight = weight.view.as<float>(), .eps = 1e-5F},
                          x.view());
    }
    if (repeat == 0) first = x.bytes();
    EXPECT_EQ(x.bytes(), first) << repeat;
  }
}

TEST_P(LinearTest, EmptyBatchDoesNothing) {
  make({16, 64});
  const DeviceData x = device({1, 64}, random(64, 1));
  DeviceData out = blank({1, 16});  // poisoned, as is the memory after it
  const std::vector<std::byte> poison = out.bytes();
  const TensorView no_row = out.view().rows(0, 0);
  ops_->linear(*linear_, x.view().rows(0, 0), no_row);
  EXPECT_EQ(out.bytes(), poison);
  const DeviceData gate_up = device({1, 32}, random(32, 2));
  ops_->gated_mul(Activation::kSilu, gate_up.view().rows(0, 0), no_row);
  EXPECT_EQ(out.bytes(), poison);
}

// Loads more than one staging buffer, and converts every type to the activations' type.
TEST_P(LinearTest, LoadsEveryTypeBitForBit) {
  const int64_t rows = 2600;
  const int64_t width = 4099;
  const std::vector<float> values = random_floats(rows * width, 11);
  for (const DType stored : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::vector<std::byte> bytes = encode(values, stored);
    const WeightView block = TensorView{bytes.data(), stored, {rows, width}};
    const auto linear =
        ops_->weights().make_linear({.numbers = StoredMatrices{{&block, 1}}}).value();
    const std::vector<std::byte> expected = encode(
        rounded(std::vector<float>(values.end() - 2 * width, values.end()), stored), dtype());
    std::fill(bytes.begin(), bytes.end(), std::byte{0});  // the source may be freed
    const DeviceData ids = DeviceData::of_ints<int32_t>(stream(), {rows - 2, rows - 1});
    DeviceData out = blank({2, width});
    ops_->embed(*linear, ids.as<int32_t>(), 1.0F, out.view());
    EXPECT_EQ(out.bytes(), expected) << dtype_name(stored);
    EXPECT_EQ(linear->num_bytes(), static_cast<size_t>(rows * width) * dtype_bytes(dtype()));
  }
}

TEST_P(LinearTest, FillsDummyWeightsAsTheHostDoes) {
  DummyWeights source(dtype());
  const int64_t rows = 700;
  const int64_t width = 1000;
  const TensorView whole = source.tensor("w", {rows, width}).value();
  const RepeatedTensor numbers = *source.repeated("w").value();
  // The whole matrix, then its columns [300, 404).
  const RepeatedRows blocks[] = {{numbers.pool, numbers.first, width, {rows, width}}};
  const RepeatedRows columns[] = {{numbers.pool, numbers.first + 300, width, {rows, 104}}};
  const auto linear = ops_->weights().make_linear({.numbers = RepeatedMatrices{blocks}}).value();
  const auto slice = ops_->weights().make_linear({.numbers = RepeatedMatrices{columns}}).value();
  const DeviceData ids = DeviceData::of_ints<int32_t>(stream(), {0, 1, 523, 699});
  DeviceData out = blank({4, width});
  DeviceData out_slice = blank({4, 104});
  ops_->embed(*linear, ids.as<int32_t>(), 1.0F, out.view());
  ops_->embed(*slice, ids.as<int32_t>(), 1.0F, out_slice.view());
  const std::vector<std::byte> bytes = out.bytes();
  const std::vector<std::byte> slice_bytes = out_slice.bytes();
  const size_t size = dtype_bytes(dtype());
  const int64_t row_ids[] = {0, 1, 523, 699};
  for (size_t i = 0; i < 4; ++i) {
    const std::byte* row = whole.rows(row_ids[i], 1).as<std::byte>();
    EXPECT_EQ(std::memcmp(bytes.data() + i * width * size, row, width * size), 0) << i;
    EXPECT_EQ(std::memcmp(slice_bytes.data() + i * 104 * size, row + 300 * size, 104 * size), 0);
  }
}

TEST_P(LinearTest, RefusesShapesThatDoNotFit) {
  std::vector<float> data(64);
  const WeightView mixed[] = {TensorView{data.data(), DType::kF32, {2, 8}},
                              TensorView{data.data(), DType::kF32, {2, 9}}};
  EXPECT_EQ(ops_->weights().make_linear({.numbers = StoredMatrices{mixed}}).status().code(),
            StatusCode::kInvalidArgument);
  const TensorView ints = {data.data(), DType::kI32, {2, 8}};
  const WeightView int_weights = ints;
  EXPECT_EQ(
      ops_->weights().make_linear({.numbers = StoredMatrices{{&int_weights, 1}}}).status().code(),
      StatusCode::kInvalidArgument);
  const WeightView scaled = {{data.data(), DType::kF8E4M3, {2, 8}},
                             {data.data(), DType::kF32, {1, 1}},
                             {.values = DType::kF8E4M3,
                              .scales = ScaleLayout::kBlocks,
                              .block_rows = 64,
                              .block_columns = 128}};
  const Status refused =
      ops_->weights().make_linear({.numbers = StoredMatrices{{&scaled, 1}}}).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_NE(refused.message().find("fp8_e4m3 with a scale per block of 64 x 128"),
            std::string::npos);
  EXPECT_EQ(ops_->weights().make_linear({}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ops_->weights().make_vector(ints).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ops_->allocate({int64_t{1} << 44}, dtype()).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(stream().synchronize().message(), "");
}

// The stream keeps the error of a launch that exceeds the limits.
TEST_P(LinearTest, KeepsLaunchErrors) {
  make({16, 64});
  ops_->gated_mul(Activation::kSilu, {nullptr, dtype(), {1, int64_t{2} << 33}},
                  {nullptr, dtype(), {1, int64_t{1} << 33}});
  EXPECT_FALSE(stream().take_error().ok());
}

TEST(RowBucket, CoversItsRows) {
  for (int64_t rows = 1; rows < 9000; ++rows) {
    const int64_t bucket = cuda::row_bucket(rows);
    EXPECT_GE(bucket, rows);
    EXPECT_EQ(cuda::row_bucket(bucket), bucket);
    EXPECT_LE(bucket, 2 * rows + 15);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LinearTest,
                         ::testing::Values(DType::kBF16, DType::kF16, DType::kF32), dtype_of_test);

}  // namespace
}  // namespace quire::testing

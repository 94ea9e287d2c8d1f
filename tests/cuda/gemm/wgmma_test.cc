// Compares every tile and cluster of the wgmma kernels with sums in F64, next to memory that must
// not be read, and runs the kernels among others that start early.
#include "cuda/gemm/dense/wgmma_gemm.h"
#include "cuda/ops/device_data.h"

namespace quire::testing {
namespace {

constexpr int64_t kPoisonedRows = 300;  // more than the rows of any tile

struct Problem {
  int64_t n;
  int64_t k;
  bool has_bias = false;
  bool is_gated = false;
};

class WgmmaTest : public CudaOpsTest {
 protected:
  void SetUp() override {
    CudaOpsTest::SetUp();
    if (stream_ == nullptr) return;
    gemm_ = make(true);
    if (gemm_ == nullptr) GTEST_SKIP() << "the device is not of compute capability 9.0";
  }

  std::unique_ptr<cuda::WgmmaGemm> make(bool overlap_start) {
    return cuda::WgmmaGemm::create({.stream = &stream(), .overlap_start = overlap_start}).value();
  }

  // The rows after the values are NaN.
  DeviceData poisoned_behind(int64_t rows, int64_t width, const std::vector<float>& values) {
    DeviceData data(stream(), {rows + kPoisonedRows, width}, dtype());
    stream().copy_to_device(data.view().data, encode(values, dtype()).data(),
                            values.size() * dtype_bytes(dtype()));
    EXPECT_EQ(stream().synchronize().message(), "");
    return data;
  }

  // Plans of every tile, cluster and split that the call allows.
  std::vector<cuda::WgmmaPlan> all_plans(const cuda::GemmCall& call) const {
    std::vector<cuda::WgmmaPlan> plans;
    for (int tile = 0; tile < cuda::num_wgmma_tiles(); ++tile) {
      for (const int tokens : {1, 2, 4}) {
        for (const int weights : {1, 2}) {
          for (const int splits : {1, 2, 3, 4, 8}) {
            const cuda::WgmmaPlan plan = {tile, tokens, weights, splits};
            if (gemm_->fits(call, plan)) plans.push_back(plan);
          }
        }
      }
    }
    return plans;
  }

  std::vector<float> reference_of(const Linear& linear, std::vector<float>& x, int64_t rows,
                                  const Problem& spec) {
    std::vector<float> out(static_cast<size_t>(rows * spec.n));
    reference_.linear(linear, host_view(x, rows), host_view(out, rows));
    if (!spec.is_gated) return out;
    std::vector<float> gate_up = rounded(out, dtype());
    std::vector<float> product(out.size() / 2);
    reference_.gated_mul(Activation::kSilu, host_view(gate_up, rows), host_view(product, rows));
    return product;
  }

  std::unique_ptr<cuda::WgmmaGemm> gemm_;
};

TEST_P(WgmmaTest, EveryPlanAgreesWithTheReference) {
  for (const Problem& spec : {Problem{456, 520}, Problem{200, 1032, true}, Problem{8, 512, true},
                              Problem{464, 520, false, true}}) {
    const float scale = 1.0F / std::sqrt(static_cast<float>(spec.k));
    std::vector<float> w = random(spec.n * spec.k, 1);
    std::vector<float> b = random(spec.n, 2);
    const WeightView w_view = host_view(w, spec.n);
    const TensorView b_view = {b.data(), DType::kF32, {spec.n}};
    const std::span<const TensorView> biases(&b_view, spec.has_bias ? 1 : 0);
    const auto expected_linear =
        reference_.make_linear({.numbers = StoredMatrices{{&w_view, 1}}, .biases = biases}).value();
    const DeviceData weights = poisoned_behind(spec.n, spec.k, w);
    const DeviceData bias = device({spec.n}, b);
    for (const int64_t rows : {1, 17, 64, 65, 129, 255, 383, 520}) {
      std::vector<float> x = random(rows * spec.k, 3, scale);
      const std::vector<float> expected = reference_of(*expected_linear, x, rows, spec);
      const DeviceData input = poisoned_behind(rows, spec.k, x);
      for (const DType out_type : {dtype(), DType::kF32}) {
        if (spec.is_gated && out_type != dtype()) continue;
        const DeviceData scratch(stream(), {rows, spec.n}, out_type);
        DeviceData out(stream(), {rows, spec.is_gated ? spec.n / 2 : spec.n}, out_type);
        cuda::GemmCall call = {input.view().rows(0, rows), weights.view().rows(0, spec.n),
                               spec.has_bias ? bias.view() : TensorView{}, out.view()};
        if (spec.is_gated) call.out = scratch.view();
        if (spec.is_gated) call.gated_out = out.view();
        ASSERT_TRUE(cuda::WgmmaGemm::takes(call));
        const std::vector<cuda::WgmmaPlan> plans = all_plans(call);
        EXPECT_GE(plans.size(), size_t{50});
        for (const cuda::WgmmaPlan& plan : plans) {
          out.poison();
          ASSERT_EQ(gemm_->run(call, plan).message(), "");
          const std::string name = cuda::wgmma_plan_name(plan) + " at " + std::to_string(rows) +
                                   " rows of " + std::to_string(spec.n);
          expect_near_all(out.values(), expected, tolerance(out_type), name);
          ASSERT_FALSE(HasFailure()) << name;
        }
      }
    }
  }
}

// Splits are added in one order, regardless of which thread block finishes first.
TEST_P(WgmmaTest, GivesTheSameBitsEveryTimeAndInAGraph) {
  const int64_t rows = 130;
  const int64_t n = 1536;
  const int64_t k = 4096;
  const DeviceData weights = device({n, k}, random(n * k, 1));
  const DeviceData x = device({rows, k}, random(rows * k, 2));
  DeviceData out = blank({rows, n});
  const cuda::GemmCall call = {x.view(), weights.view(), {}, out.view()};
  for (const cuda::WgmmaPlan& plan : gemm_->plans(call, 1000)) {
    const std::string name = cuda::wgmma_plan_name(plan);
    expect_capturable([&] { EXPECT_EQ(gemm_->run(call, plan).message(), "") << name; }, out,
                      [&] { out.poison(); });
    const std::vector<std::byte> first = out.bytes();
    for (int repeat = 0; repeat < 5; ++repeat) {
      out.poison();
      EXPECT_EQ(gemm_->run(call, plan).message(), "");
      EXPECT_EQ(out.bytes(), first) << name;
    }
  }
}

// Compares a chain in which each product reads the output of the previous kernel, which started
// early too, with the same chain of kernels that do not overlap.
TEST_P(WgmmaTest, WaitsForThePreviousKernelsOutput) {
  const int64_t rows = 100;
  const int64_t width = 2048;
  const DeviceData weights = device({width, width}, random(width * width, 1));
  const std::vector<float> ones(width, 1.0F);
  const Tensor norm =
      ops_->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {width}}).value();
  const DeviceData start = device({rows, width}, random(rows * width, 9));
  DeviceData x = blank({rows, width});
  DeviceData y = blank({rows, width});
  const cuda::GemmCall call = {x.view(), weights.view(), {}, y.view()};
  const auto in_turn = make(false);
  for (const cuda::WgmmaPlan& plan : gemm_->plans(call, 6)) {
    std::vector<std::byte> expected;
    for (int repeat = 0; repeat < 5; ++repeat) {
      stream().record_error(cudaMemcpyAsync(x.view().data, start.view().data, x.view().num_bytes(),
                                            cudaMemcpyDeviceToDevice, stream().get()),
                            "copy");
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ((repeat == 0 ? in_turn : gemm_)->run(call, plan).message(), "");
        ops_->residual_norm({.residual = y.view(), .weight = norm.view.as<float>(), .eps = 1e-5F},
                            x.view());
      }
      if (repeat == 0) expected = x.bytes();
      EXPECT_EQ(x.bytes(), expected) << cuda::wgmma_plan_name(plan) << ", repeat " << repeat;
    }
  }
}

TEST_P(WgmmaTest, RefusesMatricesThatTmaCannotCopy) {
  const DeviceData memory = blank({64, 128});
  const auto call = [&](int64_t rows, int64_t n, int64_t k, int64_t offset) {
    void* data = memory.as<uint16_t>() + offset;
    return cuda::GemmCall{{data, dtype(), {rows, k}},
                          {memory.view().data, dtype(), {n, k}},
                          {},
                          {memory.view().data, dtype(), {rows, n}}};
  };
  EXPECT_TRUE(cuda::WgmmaGemm::takes(call(16, 16, 64, 0)));
  EXPECT_TRUE(cuda::WgmmaGemm::takes(call(16, 16, 64, 8)));
  EXPECT_FALSE(cuda::WgmmaGemm::takes(call(16, 16, 64, 4)));
  EXPECT_FALSE(cuda::WgmmaGemm::takes(call(16, 12, 64, 0)));
  EXPECT_FALSE(cuda::WgmmaGemm::takes(call(16, 16, 60, 0)));
  EXPECT_FALSE(cuda::WgmmaGemm::takes(call(0, 16, 64, 0)));
  cuda::GemmCall gated = call(16, 16, 64, 0);
  gated.gated_out = {memory.view().data, dtype(), {16, 8}};
  EXPECT_TRUE(cuda::WgmmaGemm::takes(gated));
  gated.bias = {memory.view().data, dtype(), {16}};
  EXPECT_FALSE(cuda::WgmmaGemm::takes(gated));
  gated = call(16, 24, 64, 0);
  gated.gated_out = {memory.view().data, dtype(), {16, 12}};
  EXPECT_FALSE(cuda::WgmmaGemm::takes(gated));
}

INSTANTIATE_TEST_SUITE_P(Types, WgmmaTest, ::testing::Values(DType::kBF16, DType::kF16),
                         dtype_of_test);

}  // namespace
}  // namespace quire::testing

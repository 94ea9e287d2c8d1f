#include "cuda/ops/layer_tail.h"

#include "device_data.h"
#include "tensor/weight_source.h"

namespace quire::testing {
namespace {

struct TailCase {
  int64_t hidden;
  int64_t q_size;
  int64_t intermediate;
  int64_t qkv_size;  // 0: no layer follows
};

// A matrix on the device and its copy on the host.
struct Matrix {
  std::unique_ptr<Linear> device;
  std::unique_ptr<Linear> host;
};

class LayerTailTest : public CudaOpsTest {
 protected:
  void SetUp() override {
    CudaOpsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    kernel_ = cuda::LayerTailKernel::create({.stream = &stream(), .overlap_start = true}).value();
  }

  Matrix matrix(int64_t n, int64_t k, uint32_t seed, bool has_bias) {
    const std::vector<float> w = random(n * k, seed, 1.0F / std::sqrt(static_cast<float>(k)));
    const std::vector<float> b = random(n, seed + 100);
    const WeightView weights[] = {TensorView{const_cast<float*>(w.data()), DType::kF32, {n, k}}};
    const TensorView biases[] = {{const_cast<float*>(b.data()), DType::kF32, {n}}};
    LinearSource source = {.weights = weights, .biases = {}};
    if (has_bias) source.biases = biases;
    return {ops_->make_linear(source).value(), reference_.make_linear(source).value()};
  }

  void make(const TailCase& spec, bool has_bias = false) {
    spec_ = spec;
    o_ = matrix(spec.hidden, spec.q_size, 1, has_bias);
    gate_up_ = matrix(2 * spec.intermediate, spec.hidden, 2, has_bias);
    down_ = matrix(spec.hidden, spec.intermediate, 3, has_bias);
    qkv_ = spec.qkv_size > 0 ? matrix(spec.qkv_size, spec.hidden, 4, has_bias) : Matrix();
    for (const uint32_t i : {0U, 1U}) {
      host_norms_[i] = random_floats(spec.hidden, 10 + i);
      const TensorView view = {host_norms_[i].data(), DType::kF32, {spec.hidden}};
      norms_[i] = ops_->make_vector(view).value();
    }
  }

  // Runs the tail on rows of x and residual that depend on the seed, and compares it with the
  // reference.
  void expect(int64_t num_rows, uint32_t seed, const std::function<void(const LayerTail&)>& run,
              const std::string& what) {
    Rows rows(*this, num_rows, seed);
    run(rows.tail());
    rows.expect_near_reference(what + ", " + std::to_string(num_rows) + " rows, hidden size " +
                               std::to_string(spec_.hidden));
  }

  struct Rows {
    Rows(LayerTailTest& test, int64_t count, uint32_t seed)
        : test_(test),
          num_rows(count),
          host_attention(test.random(count * test.spec_.q_size, seed)),
          host_residual(test.random(count * test.spec_.hidden, seed + 1)),
          attention(test.device({count, test.spec_.q_size}, host_attention)),
          residual(test.device({count, test.spec_.hidden}, host_residual)),
          delta(test.blank({count, test.spec_.hidden})),
          qkv(test.blank({count, std::max<int64_t>(1, test.spec_.qkv_size)})),
          normed(test.blank({count, test.spec_.hidden})),
          gate_up(test.blank({count, 2 * test.spec_.intermediate})),
          product(test.blank({count, test.spec_.intermediate})) {}

    LayerTail tail() const {
      LayerTail tail = test_.weights_of_tail(false);
      tail.attention = attention.view();
      tail.residual = residual.view();
      tail.delta = delta.view();
      tail.qkv = qkv.view();
      tail.normed = normed.view();
      tail.gate_up_out = gate_up.view();
      tail.product = product.view();
      return tail;
    }
    void reset() {
      residual.set(host_residual);
      for (DeviceData* out : {&delta, &qkv, &normed, &gate_up, &product}) out->poison();
    }
    void expect_near_reference(const std::string& what) {
      const TailCase& spec = test_.spec_;
      std::vector<float> x = host_attention;
      std::vector<float> sum = host_residual;
      const auto zeros = [&](int64_t width) {
        return std::vector<float>(static_cast<size_t>(num_rows * width));
      };
      std::vector<float> expected_delta = zeros(spec.hidden);
      std::vector<float> expected_qkv = zeros(std::max<int64_t>(1, spec.qkv_size));
      std::vector<float> norm = zeros(spec.hidden);
      std::vector<float> both = zeros(2 * spec.intermediate);
      std::vector<float> one = zeros(spec.intermediate);
      LayerTail tail = test_.weights_of_tail(true);
      tail.attention = host_view(x, num_rows);
      tail.residual = host_view(sum, num_rows);
      tail.delta = host_view(expected_delta, num_rows);
      tail.qkv = host_view(expected_qkv, num_rows);
      tail.normed = host_view(norm, num_rows);
      tail.gate_up_out = host_view(both, num_rows);
      tail.product = host_view(one, num_rows);
      run_layer_tail(test_.reference_, tail, test_.stream());
      // Terms of up to 8 cancel, and are rounded as delta and again as their sum.
      const float near = 5 * tolerance(test_.dtype());
      expect_near_all(residual.values(), sum, near, what + ", residual");
      expect_near_all(delta.values(), expected_delta, near, what + ", delta");
      if (spec.qkv_size > 0) expect_near_all(qkv.values(), expected_qkv, near, what + ", qkv");
    }

    LayerTailTest& test_;
    int64_t num_rows;
    std::vector<float> host_attention, host_residual;
    DeviceData attention, residual, delta, qkv, normed, gate_up, product;
  };

  LayerTail weights_of_tail(bool on_host) {
    const auto pick = [&](const Matrix& matrix) {
      return on_host ? matrix.host.get() : matrix.device.get();
    };
    const auto norm = [&](size_t i) -> const float* {
      return on_host ? host_norms_[i].data() : norms_[i].view.as<float>();
    };
    LayerTail tail;
    tail.o = pick(o_);
    tail.post_attention_norm = norm(0);
    tail.gate_up = pick(gate_up_);
    tail.down = pick(down_);
    tail.next_norm = spec_.qkv_size > 0 ? norm(1) : nullptr;
    tail.next_qkv = pick(qkv_);
    tail.norm_eps = 1e-5F;
    return tail;
  }

  bool run_fused(const LayerTail& tail) { return kernel_->run(tail); }

  // Runs the tail as a model does.
  void layer_tail(const LayerTail& tail) {
    if (!ops_->try_layer_tail(tail, stream())) run_layer_tail(*ops_, tail, stream());
  }

  void tune(std::span<const int> row_counts, const LayerTail& tail) {
    const Status tuned = ops_->tune_linears(row_counts, [&] {
      layer_tail(tail);
      return Status();
    });
    ASSERT_EQ(tuned.message(), "");
  }

  bool has_kernel() const { return kernel_ != nullptr && dtype() != DType::kF32; }

  TailCase spec_ = {};
  Matrix o_, gate_up_, down_, qkv_;
  std::vector<float> host_norms_[2];
  Tensor norms_[2];
  std::unique_ptr<cuda::LayerTailKernel> kernel_;
};

// Fewer columns than SMs, rows of one short segment and of several, and norms that exceed a
// thread's preloaded weights.
constexpr TailCase kCases[] = {{8, 16, 24, 40},
                               {64, 128, 96, 0},
                               {256, 512, 1000, 768},
                               {2056, 2048, 6152, 2568},
                               {4104, 1024, 2056, 1536}};

TEST_P(LayerTailTest, OneKernelAgrees) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  for (const TailCase& spec : kCases) {
    make(spec);
    for (const uint32_t seed : {20U, 30U}) {
      expect(
          1, seed, [&](const LayerTail& tail) { ASSERT_TRUE(run_fused(tail)); }, "one kernel");
    }
  }
}

TEST_P(LayerTailTest, RefusesUnsupportedShapes) {
  if (kernel_ == nullptr) GTEST_SKIP() << "no kernel on this device";
  make({64, 64, 64, 64});
  EXPECT_FALSE(run_fused(Rows(*this, 2, 1).tail()));
  EXPECT_EQ(run_fused(Rows(*this, 1, 1).tail()), dtype() != DType::kF32);
  make({60, 64, 64, 64});
  EXPECT_FALSE(run_fused(Rows(*this, 1, 1).tail()));
  make({64, 64, 64, 64}, true);
  EXPECT_FALSE(run_fused(Rows(*this, 1, 1).tail()));
}

// Runs captured, with every kernel starting early; the counters must return to their state.
TEST_P(LayerTailTest, SameBitsEveryTime) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  make({512, 512, 1536, 512});
  Rows rows(*this, 1, 5);
  // Each run's qkv is the next one's attention.
  const auto chain = [&] {
    for (int i = 0; i < 20; ++i) {
      LayerTail tail = rows.tail();
      if (i % 2 == 1) std::swap(tail.attention, tail.qkv);
      EXPECT_TRUE(run_fused(tail));
    }
  };
  const auto reset = [&] {
    rows.reset();
    rows.attention.set(rows.host_attention);
  };
  for (DeviceData* out : {&rows.attention, &rows.residual}) {
    for (int repeat = 0; repeat < 10; ++repeat) expect_capturable(chain, *out, reset);
  }
}

// Tails with biases and F32 tails run as separate kernels; a single row uses the faster variant.
TEST_P(LayerTailTest, OpsChooseByMeasurement) {
  for (const bool has_bias : {false, true}) {
    make({512, 256, 1024, 384}, has_bias);
    const auto run = [&](const LayerTail& tail) { layer_tail(tail); };
    for (const int64_t num_rows : {1, 2, 16, 40}) expect(num_rows, 40, run, "untuned");
    Rows rows(*this, 40, 7);
    const int row_counts[] = {1, 2, 4, 8, 16, 32, 40};
    tune(row_counts, rows.tail());
    for (const int64_t num_rows : {1, 2, 3, 16, 40}) expect(num_rows, 50, run, "tuned");
  }
}

// Needs no GPU: thread blocks cover all columns, and max_range_segments() is the number of the
// largest range.
TEST(LayerTailPlanTest, RangesCoverAllColumnsAndOneIsTheLargest) {
  for (const int num_blocks : {1, 2, 7, 108, 132}) {
    for (const int n : {1, 2, 8, 131, 132, 133, 264, 1000, 4096, 14336}) {
      for (const int k : {8, cuda::tail::kSegment, cuda::tail::kSegment + 8, 14336}) {
        for (const int rows_per_column : {1, 2}) {
          cuda::tail::Gemm gemm;
          gemm.n = n;
          gemm.k = k;
          gemm.rows_per_column = rows_per_column;
          int next_column = 0;
          int most = 0;
          for (int block = 0; block < num_blocks; ++block) {
            const cuda::tail::ColumnRange range = cuda::tail::column_range(gemm, block, num_blocks);
            ASSERT_EQ(range.first_column, next_column);
            next_column += range.num_columns;
            most = std::max(most, range.num_segments);
          }
          ASSERT_EQ(next_column, n);
          ASSERT_EQ(cuda::tail::max_range_segments(gemm, num_blocks), most)
              << n << " x " << k << " among " << num_blocks;
        }
      }
    }
  }
}

// A device that cannot run all thread blocks at once refuses the launch: the tails then run as
// separate kernels.
TEST_P(LayerTailTest, ARefusedLaunchFallsBackToSteps) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  ops_ = cuda::make_cuda_ops(stream(), dtype(), {.layer_tail_blocks = 1 << 16}).value();
  make({512, 256, 1024, 384});
  Rows rows(*this, 1, 7);
  const int row_counts[] = {1};
  tune(row_counts, rows.tail());
  expect(
      1, 50, [&](const LayerTail& tail) { layer_tail(tail); }, "in steps");
}

// Needs no GPU: for the shapes of real models the rings leave room for attention on an H100's SM.
TEST(LayerTailPlanTest, RingsLeaveRoomForAttention) {
  constexpr size_t kSmBytes = 233472;  // the driver reserves 1,024 of these per thread block
  constexpr cuda::tail::SharedMemoryLimits kSharedMemory = {
      .per_block = 232448 - 128,
      .beside_attention = kSmBytes - 2 * 1024 - cuda::tail::kAttentionBytes - 128};
  struct Model {
    const char* name;
    int hidden, q_size, intermediate, qkv_size, num_stages;
  };
  for (const Model& model : {Model{"Llama-3.1-8B", 4096, 4096, 14336, 6144, 4},
                             Model{"Qwen3-14B", 5120, 5120, 17408, 7168, 3},
                             Model{"Qwen3-32B", 5120, 8192, 25600, 10240, 3},
                             Model{"Llama-3.3-70B", 8192, 8192, 28672, 10240, 2}}) {
    cuda::tail::Params params;
    params.hidden = model.hidden;
    const auto add = [&](int n, int k, int rows_per_column) {
      cuda::tail::Gemm gemm;
      gemm.n = n;
      gemm.k = k;
      gemm.rows_per_column = rows_per_column;
      cuda::tail::add_gemm(params, gemm, 132);
    };
    add(model.hidden, model.q_size, 1);
    add(model.intermediate, model.hidden, 2);
    add(model.hidden, model.intermediate, 1);
    add(model.qkv_size, model.hidden, 1);
    cuda::tail::fit_rings(params, kSharedMemory);
    EXPECT_EQ(params.num_stages, model.num_stages) << model.name;
    EXPECT_LE(cuda::tail::shared_layout(params).num_bytes, kSharedMemory.beside_attention)
        << model.name;
  }
}

// Needs no GPU: with wide rows, the rings take the memory that attention would need, because no
// ring fits beside it.
TEST(LayerTailPlanTest, RingsTakeTheWholeBlockWhereNoneLeaveRoom) {
  cuda::tail::Params params;
  params.max_k = 60000;
  cuda::tail::fit_rings(params, {.per_block = 200000, .beside_attention = 150000});
  EXPECT_EQ(params.num_stages, 2);
  cuda::tail::fit_rings(params, {.per_block = 100000, .beside_attention = 50000});
  EXPECT_EQ(params.num_stages, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, LayerTailTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16), dtype_of_test);

}  // namespace
}  // namespace quire::testing

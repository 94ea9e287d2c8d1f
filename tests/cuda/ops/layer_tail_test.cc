#include "cuda/ops/layer_tail.h"

#include <barrier>
#include <chrono>
#include <thread>

#include "cuda/base/graph.h"
#include "several_gpus.h"
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
      if (spec.qkv_size > 0) {
        expect_near_all(qkv.values(), expected_qkv, near, what + ", qkv");
      } else {
        expect_near_all(delta.values(), expected_delta, near, what + ", delta");
      }
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

  bool run_fused(const LayerTail& tail) {
    if (!kernel_->takes(tail)) return false;
    kernel_->run(tail);
    return true;
  }

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

// Needs no GPU: thread blocks cover all columns in whole units, and max_range_segments() is the
// number of the largest range.
TEST(LayerTailPlanTest, RangesCoverAllColumnsAndOneIsTheLargest) {
  const auto check = [](const cuda::tail::Gemm& gemm, int num_blocks) {
    int next_column = 0;
    int most = 0;
    for (int block = 0; block < num_blocks; ++block) {
      const cuda::tail::ColumnRange range = cuda::tail::column_range(gemm, block, num_blocks);
      ASSERT_EQ(range.first_column, next_column);
      ASSERT_EQ(range.num_columns % gemm.column_unit, 0);
      next_column += range.num_columns;
      most = std::max(most, range.num_segments);
    }
    ASSERT_EQ(next_column, gemm.n);
    ASSERT_EQ(cuda::tail::max_range_segments(gemm, num_blocks), most)
        << gemm.n << " x " << gemm.k << " among " << num_blocks;
  };
  for (const int num_blocks : {1, 2, 7, 108, 132}) {
    for (const int n : {1, 2, 8, 131, 132, 133, 264, 1000, 4096, 14336}) {
      for (const int k : {8, cuda::tail::kSegment, cuda::tail::kSegment + 8, 14336}) {
        cuda::tail::Gemm gemm;
        gemm.n = n;
        gemm.k = k;
        check(gemm, num_blocks);
        gemm.rows_per_column = 2;
        check(gemm, num_blocks);
        gemm.rows_per_column = 1;
        gemm.column_unit = 2;
        if (n % 2 == 0) check(gemm, num_blocks);
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
                             Model{"Qwen3-14B", 5120, 5120, 17408, 7168, 4},
                             Model{"Qwen3-32B", 5120, 8192, 25600, 10240, 3},
                             Model{"Llama-3.3-70B", 8192, 8192, 28672, 10240, 3}}) {
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
    params.max_own_columns = cuda::tail::max_range_columns(params.gemms[cuda::tail::kO], 132);
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

// The rows and columns of a matrix that a rank has.
std::vector<float> part_of(const std::vector<float>& matrix, int64_t num_columns, int64_t first_row,
                           int64_t rows, int64_t first_column, int64_t columns) {
  std::vector<float> part;
  for (int64_t i = first_row; i < first_row + rows; ++i) {
    const auto row = matrix.begin() + i * num_columns + first_column;
    part.insert(part.end(), row, row + columns);
  }
  return part;
}

struct HostLayer {
  HostLayer(const TailCase& the_spec, DType dtype, uint32_t seed) : spec(the_spec) {
    const auto matrix = [&](int64_t n, int64_t k) {
      return rounded(random_floats(n * k, ++seed, 1.0F / std::sqrt(static_cast<float>(k))), dtype);
    };
    o = matrix(spec.hidden, spec.q_size);
    gate_up = matrix(2 * spec.intermediate, spec.hidden);
    down = matrix(spec.hidden, spec.intermediate);
    qkv = matrix(spec.qkv_size, spec.hidden);
    for (std::vector<float>& norm : norms) norm = random_floats(spec.hidden, ++seed);
    attention = rounded(random_floats(spec.q_size, ++seed), dtype);
    residual = rounded(random_floats(spec.hidden, ++seed), dtype);
  }

  TailCase spec;
  std::vector<float> o, gate_up, down, qkv, norms[2], attention, residual;
};

// A rank's part of a layer.
class RankLayer {
 public:
  RankLayer(const HostLayer& host, int rank, int num_ranks, DType dtype, cuda::CudaStream& stream)
      : ops_(cuda::make_cuda_ops(stream, dtype).value()),
        attention(stream, {1, host.spec.q_size / num_ranks}, dtype),
        residual(stream, {1, host.spec.hidden}, dtype),
        delta(stream, {1, host.spec.hidden}, dtype),
        qkv(stream, {1, std::max<int64_t>(1, host.spec.qkv_size / num_ranks)}, dtype),
        product_(stream, {1, host.spec.intermediate / num_ranks}, dtype),
        host_(host),
        first_q_(rank * attention.view().shape[1]) {
    const TailCase& spec = host.spec;
    const int64_t q = attention.view().shape[1];
    const int64_t middle = product_.view().shape[1];
    o_ = linear({part_of(host.o, spec.q_size, 0, spec.hidden, rank * q, q)}, q);
    gate_up_ = linear({part_of(host.gate_up, spec.hidden, rank * middle, middle, 0, spec.hidden),
                       part_of(host.gate_up, spec.hidden, spec.intermediate + rank * middle, middle,
                               0, spec.hidden)},
                      spec.hidden);
    down_ = linear({part_of(host.down, spec.intermediate, 0, spec.hidden, rank * middle, middle)},
                   middle);
    if (spec.qkv_size > 0) {
      const int64_t rows = qkv.view().shape[1];
      next_qkv_ =
          linear({part_of(host.qkv, spec.hidden, rank * rows, rows, 0, spec.hidden)}, spec.hidden);
    }
    for (const size_t i : {0U, 1U}) {
      const TensorView norm = {
          const_cast<float*>(host.norms[i].data()), DType::kF32, {spec.hidden}};
      norms_[i] = ops_->make_vector(norm).value();
    }
    reset();
  }

  void reset() {
    const int64_t q = attention.view().shape[1];
    attention.set(part_of(host_.attention, host_.spec.q_size, 0, 1, first_q_, q));
    residual.set(host_.residual);
    for (DeviceData* out : {&delta, &qkv, &product_}) out->poison();
  }

  LayerTail tail() const {
    LayerTail tail;
    tail.o = o_.get();
    tail.post_attention_norm = norms_[0].view.as<float>();
    tail.gate_up = gate_up_.get();
    tail.down = down_.get();
    tail.next_norm = next_qkv_ == nullptr ? nullptr : norms_[1].view.as<float>();
    tail.next_qkv = next_qkv_.get();
    tail.norm_eps = 1e-5F;
    tail.attention = attention.view();
    tail.residual = residual.view();
    tail.delta = delta.view();
    tail.qkv = qkv.view();
    tail.product = product_.view();
    return tail;
  }

 private:
  std::unique_ptr<Linear> linear(const std::vector<std::vector<float>>& parts, int64_t k) {
    std::vector<WeightView> weights;
    for (const std::vector<float>& part : parts) {
      const auto rows = static_cast<int64_t>(part.size()) / k;
      weights.emplace_back(TensorView{const_cast<float*>(part.data()), DType::kF32, {rows, k}});
    }
    return ops_->make_linear({.weights = weights, .biases = {}}).value();
  }

  std::unique_ptr<cuda::CudaOps> ops_;

 public:
  DeviceData attention, residual, delta, qkv;

 private:
  DeviceData product_;
  const HostLayer& host_;
  int64_t first_q_;
  std::unique_ptr<Linear> o_, gate_up_, down_, next_qkv_;
  Tensor norms_[2];
};

class LayerTailOverRanks : public SeveralGpusTest, public ::testing::WithParamInterface<DType> {};

// As kCases, but each rank's widths are multiples of 8 on up to four ranks.
constexpr TailCase kRankCases[] = {{8, 64, 96, 160},
                                   {64, 128, 96, 0},
                                   {256, 512, 1024, 768},
                                   {2056, 2048, 6176, 2592},
                                   {4104, 8256, 2080, 1536}};

TEST_P(LayerTailOverRanks, SumsThePartsOfAllRanks) {
  for (const TailCase& spec : kRankCases) {
    SCOPED_TRACE(::testing::Message() << "hidden size " << spec.hidden);
    const HostLayer host(spec, GetParam(), static_cast<uint32_t>(spec.hidden));
    std::vector<std::vector<std::byte>> residuals(devices_.size());
    std::vector<std::vector<float>> qkvs(devices_.size());
    std::vector<std::vector<float>> deltas(devices_.size());
    std::barrier loaded(size());  // no rank loads kernels or weights while another waits for it
    on_every_rank([&](int rank, const Rank& at) {
      RankLayer layer(host, rank, size(), GetParam(), *at.stream);
      auto kernel = cuda::LayerTailKernel::create(at.context, 0, size()).value();
      EXPECT_TRUE(kernel->takes(layer.tail()));
      EXPECT_EQ(at.stream->synchronize().message(), "");
      loaded.arrive_and_wait();
      kernel->run(layer.tail(), at.inboxes);
      residuals[static_cast<size_t>(rank)] = layer.residual.bytes();
      qkvs[static_cast<size_t>(rank)] = layer.qkv.values();
      deltas[static_cast<size_t>(rank)] = layer.delta.values();
    });
    ReferenceOps reference;
    const auto linear = [&](const std::vector<float>& matrix, int64_t k) {
      const auto rows = static_cast<int64_t>(matrix.size()) / k;
      const WeightView weights[] = {
          TensorView{const_cast<float*>(matrix.data()), DType::kF32, {rows, k}}};
      return reference.make_linear({.weights = weights, .biases = {}}).value();
    };
    const auto o = linear(host.o, spec.q_size);
    const auto gate_up = linear(host.gate_up, spec.hidden);
    const auto down = linear(host.down, spec.intermediate);
    std::unique_ptr<Linear> qkv;
    if (spec.qkv_size > 0) qkv = linear(host.qkv, spec.hidden);
    std::vector<float> x = host.attention;
    std::vector<float> sum = host.residual;
    std::vector<float> delta(sum.size());
    std::vector<float> norm(sum.size());
    std::vector<float> both(static_cast<size_t>(2 * spec.intermediate));
    std::vector<float> one(static_cast<size_t>(spec.intermediate));
    std::vector<float> expected(static_cast<size_t>(std::max<int64_t>(1, spec.qkv_size)));
    LayerTail tail;
    tail.o = o.get();
    tail.post_attention_norm = host.norms[0].data();
    tail.gate_up = gate_up.get();
    tail.down = down.get();
    tail.next_norm = host.norms[1].data();
    tail.next_qkv = qkv.get();
    tail.norm_eps = 1e-5F;
    tail.attention = host_view(x, 1);
    tail.residual = host_view(sum, 1);
    tail.delta = host_view(delta, 1);
    tail.qkv = host_view(expected, 1);
    tail.normed = host_view(norm, 1);
    tail.gate_up_out = host_view(both, 1);
    tail.product = host_view(one, 1);
    run_layer_tail(reference, tail, *streams_[0]);
    const float near = 5 * tolerance(GetParam());
    expect_near_all(decode(residuals[0], GetParam()), sum, near, "residual");
    for (const auto& residual : residuals) EXPECT_EQ(residual, residuals[0]);
    if (spec.qkv_size > 0) {
      std::vector<float> joined;
      for (const auto& part : qkvs) joined.insert(joined.end(), part.begin(), part.end());
      expect_near_all(joined, expected, near, "qkv");
    } else {
      std::vector<float> total(delta.size());
      for (const auto& part : deltas) {
        for (size_t i = 0; i < total.size(); ++i) total[i] += part[i];
      }
      expect_near_all(total, delta, near, "delta");
    }
  }
}

// Every tail's residual depends on those before, so a row that was read too early, or from an
// earlier tail, changes the bits. Ranks are delayed in turn; half of the runs are a graph's.
TEST_P(LayerTailOverRanks, SameBitsEveryTimeOnEveryRank) {
  const TailCase specs[] = {{512, 512, 1536, 512}, {2056, 2048, 6176, 0}};
  constexpr int kRepeats = 60;
  for (const TailCase& spec : specs) {
    const HostLayer host(spec, GetParam(), 77);
    std::vector<std::vector<std::byte>> firsts(devices_.size());
    std::barrier loaded(size());
    on_every_rank([&](int rank, const Rank& at) {
      RankLayer layer(host, rank, size(), GetParam(), *at.stream);
      auto kernel = cuda::LayerTailKernel::create(at.context, 0, size()).value();
      const auto chain = [&] {
        for (int i = 0; i < 20; ++i) {
          LayerTail tail = layer.tail();
          if (i % 2 == 1 && tail.next_qkv != nullptr) std::swap(tail.attention, tail.qkv);
          if (i % 5 == 4) tail.next_qkv = nullptr;  // a last layer, and the sum behind it
          kernel->run(tail, at.inboxes);
          if (tail.next_qkv != nullptr) continue;
          cuda::run_sum_rows(at.context, at.inboxes, cuda::SumWay::kOneStep, tail.delta);
        }
      };
      const auto graph = cuda::CudaGraph::capture(*at.stream, [&]() -> Status {
                           chain();
                           return {};
                         }).value();
      EXPECT_EQ(at.stream->synchronize().message(), "");
      loaded.arrive_and_wait();
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        layer.reset();
        if (repeat % size() == rank) std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (repeat % 2 == 0) {
          chain();
        } else {
          graph.launch(*at.stream);
        }
        const std::vector<std::byte> bits = layer.residual.bytes();
        if (repeat == 0) firsts[static_cast<size_t>(rank)] = bits;
        ASSERT_EQ(bits, firsts[static_cast<size_t>(rank)]) << "repeat " << repeat;
      }
    });
    for (const auto& first : firsts) EXPECT_EQ(first, firsts[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LayerTailOverRanks, ::testing::Values(DType::kF16, DType::kBF16),
                         dtype_of_test);
INSTANTIATE_TEST_SUITE_P(Types, LayerTailTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16), dtype_of_test);

}  // namespace
}  // namespace quire::testing

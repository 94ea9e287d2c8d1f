#include "cuda/ops/layer_tail.h"

#include <barrier>
#include <chrono>
#include <deque>
#include <optional>
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

// A matrix [n, k] on the host, rounded to a type.
struct HostMatrix {
  HostMatrix(int64_t rows, int64_t columns, DType dtype, uint32_t seed, bool has_bias)
      : n(rows),
        k(columns),
        weights(
            rounded(random_floats(n * k, seed, 1.0F / std::sqrt(static_cast<float>(k))), dtype)),
        bias(has_bias ? rounded(random_floats(n, seed + 100), dtype) : std::vector<float>()) {}

  int64_t n, k;
  std::vector<float> weights, bias;  // bias empty: there is none
};

// The weights of a layer. Without a layer behind it, qkv has no rows.
struct HostLayer {
  HostLayer(const TailCase& the_spec, DType dtype, bool has_bias = false)
      : spec(the_spec),
        o(spec.hidden, spec.q_size, dtype, 1, has_bias),
        gate_up(2 * spec.intermediate, spec.hidden, dtype, 2, has_bias),
        down(spec.hidden, spec.intermediate, dtype, 3, has_bias),
        qkv(spec.qkv_size, spec.hidden, dtype, 4, has_bias),
        norms{random_floats(spec.hidden, 10), random_floats(spec.hidden, 11)} {}

  TailCase spec;
  HostMatrix o, gate_up, down, qkv;
  std::vector<float> norms[2];
};

// The inputs of a step.
struct HostRows {
  HostRows(const TailCase& the_spec, DType dtype, int64_t num_rows, uint32_t seed)
      : spec(the_spec),
        count(num_rows),
        attention(rounded(random_floats(count * spec.q_size, seed), dtype)),
        residual(rounded(random_floats(count * spec.hidden, seed + 1), dtype)) {}

  TailCase spec;
  int64_t count;
  std::vector<float> attention, residual;
};

// A rank of several, and its part of a size.
struct RankOf {
  int rank = 0;
  int num_ranks = 1;

  Slice part(int64_t size) const { return {rank * (size / num_ranks), size / num_ranks}; }
};

std::vector<float> part_of(const std::vector<float>& matrix, int64_t num_columns, const Slice& rows,
                           const Slice& columns) {
  std::vector<float> part;
  for (int64_t i = rows.first; i < rows.first + rows.count; ++i) {
    const auto row = matrix.begin() + i * num_columns + columns.first;
    part.insert(part.end(), row, row + columns.count);
  }
  return part;
}

// A rank's part of a layer's weights, as a device has them. Only one rank may have biases.
class LayerWeights {
 public:
  LayerWeights(const HostLayer& layer, Ops& ops, const RankOf& at = {})
      : ops_(ops), has_next_(layer.spec.qkv_size > 0) {
    const TailCase& spec = layer.spec;
    const Slice middle = at.part(spec.intermediate);
    const Slice hidden = {0, spec.hidden};
    o_ = linear(layer.o, {hidden}, at.part(spec.q_size));
    gate_up_ =
        linear(layer.gate_up, {middle, {spec.intermediate + middle.first, middle.count}}, hidden);
    down_ = linear(layer.down, {hidden}, middle);
    if (has_next_) qkv_ = linear(layer.qkv, {at.part(spec.qkv_size)}, hidden);
    for (const size_t i : {0U, 1U}) {
      auto* const norm = const_cast<float*>(layer.norms[i].data());
      norms_[i] = ops.make_vector({norm, DType::kF32, {spec.hidden}}).value();
    }
  }

  // A tail without activations.
  LayerTail tail() const {
    LayerTail tail;
    tail.o = o_.get();
    tail.post_attention_norm = norms_[0].view.as<float>();
    tail.gate_up = gate_up_.get();
    tail.down = down_.get();
    tail.next_norm = has_next_ ? norms_[1].view.as<float>() : nullptr;
    tail.next_qkv = qkv_.get();
    tail.norm_eps = 1e-5F;
    return tail;
  }

 private:
  // The given rows of the matrix, one part after the other.
  std::unique_ptr<Linear> linear(const HostMatrix& matrix, const std::vector<Slice>& parts,
                                 const Slice& columns) {
    std::vector<std::vector<float>> numbers;
    std::vector<WeightView> weights;
    std::vector<TensorView> biases;
    for (const Slice& rows : parts) {
      numbers.push_back(part_of(matrix.weights, matrix.k, rows, columns));
      weights.emplace_back(
          TensorView{numbers.back().data(), DType::kF32, {rows.count, columns.count}});
      if (matrix.bias.empty()) continue;
      auto* const bias = const_cast<float*>(matrix.bias.data()) + rows.first;
      biases.push_back({bias, DType::kF32, {rows.count}});
    }
    return ops_.make_linear({.weights = weights, .biases = biases}).value();
  }

  Ops& ops_;
  bool has_next_;
  std::unique_ptr<Linear> o_, gate_up_, down_, qkv_;
  Tensor norms_[2];
};

// A rank's activations of a step on a device. Outputs are poisoned.
class DeviceRows {
 public:
  DeviceRows(cuda::CudaStream& stream, DType dtype, HostRows rows, const RankOf& at = {})
      : host_(std::move(rows)),
        own_(at.part(host_.spec.q_size)),
        attention(stream, {host_.count, own_.count}, dtype),
        residual(stream, {host_.count, host_.spec.hidden}, dtype),
        delta(stream, {host_.count, host_.spec.hidden}, dtype),
        qkv(stream, {host_.count, std::max<int64_t>(1, at.part(host_.spec.qkv_size).count)}, dtype),
        normed_(stream, {host_.count, host_.spec.hidden}, dtype),
        gate_up_(stream, {host_.count, 2 * at.part(host_.spec.intermediate).count}, dtype),
        product_(stream, {host_.count, at.part(host_.spec.intermediate).count}, dtype) {
    reset();
  }

  void reset() {
    attention.set(part_of(host_.attention, host_.spec.q_size, {0, host_.count}, own_));
    residual.set(host_.residual);
    for (DeviceData* out : {&delta, &qkv, &normed_, &gate_up_, &product_}) out->poison();
  }

  LayerTail tail(const LayerWeights& weights) const {
    LayerTail tail = weights.tail();
    tail.attention = attention.view();
    tail.residual = residual.view();
    tail.delta = delta.view();
    tail.qkv = qkv.view();
    tail.normed = normed_.view();
    tail.gate_up_out = gate_up_.view();
    tail.product = product_.view();
    return tail;
  }

 private:
  HostRows host_;
  Slice own_;  // columns of attention

 public:
  DeviceData attention, residual, delta, qkv;

 private:
  DeviceData normed_, gate_up_, product_;
};

// The outputs of a tail: residual, and behind the last layer delta, otherwise qkv.
struct TailResults {
  std::vector<float> residual, delta, qkv;
};

TailResults reference_of(const HostLayer& layer, const HostRows& rows) {
  const TailCase& spec = layer.spec;
  const auto zeros = [&](int64_t width) {
    return std::vector<float>(static_cast<size_t>(rows.count * width));
  };
  ReferenceOps ops;
  const LayerWeights weights(layer, ops);
  std::vector<float> attention = rows.attention;
  std::vector<float> normed = zeros(spec.hidden);
  std::vector<float> gate_up = zeros(2 * spec.intermediate);
  std::vector<float> product = zeros(spec.intermediate);
  TailResults results = {.residual = rows.residual,
                         .delta = zeros(spec.hidden),
                         .qkv = zeros(std::max<int64_t>(1, spec.qkv_size))};
  LayerTail tail = weights.tail();
  tail.attention = host_view(attention, rows.count);
  tail.residual = host_view(results.residual, rows.count);
  tail.delta = host_view(results.delta, rows.count);
  tail.qkv = host_view(results.qkv, rows.count);
  tail.normed = host_view(normed, rows.count);
  tail.gate_up_out = host_view(gate_up, rows.count);
  tail.product = host_view(product, rows.count);
  Stream stream;
  run_layer_tail(ops, tail, stream);
  return results;
}

void expect_near_reference(const TailResults& got, const HostLayer& layer, const HostRows& rows,
                           DType dtype, const std::string& what) {
  const TailResults expected = reference_of(layer, rows);
  // Terms of up to 8 cancel, and are rounded as delta and again as their sum.
  const float near = 5 * tolerance(dtype);
  expect_near_all(got.residual, expected.residual, near, what + ", residual");
  if (layer.spec.qkv_size > 0) {
    expect_near_all(got.qkv, expected.qkv, near, what + ", qkv");
  } else {
    expect_near_all(got.delta, expected.delta, near, what + ", delta");
  }
}

class LayerTailTest : public CudaOpsTest {
 protected:
  void SetUp() override {
    CudaOpsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    kernel_ = cuda::LayerTailKernel::create({.stream = &stream(), .overlap_start = true}).value();
  }

  void make(const TailCase& spec, bool has_bias = false) {
    layer_.emplace(spec, dtype(), has_bias);
    weights_ = std::make_unique<LayerWeights>(*layer_, *ops_);
  }
  HostRows host_rows(int64_t count, uint32_t seed) const {
    return HostRows(layer_->spec, dtype(), count, seed);
  }
  DeviceRows device_rows(int64_t count, uint32_t seed) {
    return DeviceRows(stream(), dtype(), host_rows(count, seed));
  }
  // Runs the tail on rows of x and residual that depend on the seed, and compares it with the
  // reference.
  void expect(int64_t num_rows, uint32_t seed, const std::function<void(const LayerTail&)>& run,
              const std::string& what) {
    DeviceRows rows = device_rows(num_rows, seed);
    run(rows.tail(*weights_));
    expect_near_reference({rows.residual.values(), rows.delta.values(), rows.qkv.values()}, *layer_,
                          host_rows(num_rows, seed), dtype(),
                          what + ", " + std::to_string(num_rows) + " rows, hidden size " +
                              std::to_string(layer_->spec.hidden));
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

  std::optional<HostLayer> layer_;
  std::unique_ptr<LayerWeights> weights_;
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
  const auto is_fused = [&](int64_t num_rows) {
    const DeviceRows rows = device_rows(num_rows, 1);
    return run_fused(rows.tail(*weights_));
  };
  EXPECT_FALSE(is_fused(2));
  EXPECT_EQ(is_fused(1), dtype() != DType::kF32);
  make({60, 64, 64, 64});
  EXPECT_FALSE(is_fused(1));
  make({64, 64, 64, 64}, true);
  EXPECT_FALSE(is_fused(1));
}

// Runs captured, with every kernel starting early; the counters must return to their state.
TEST_P(LayerTailTest, SameBitsEveryTime) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  make({512, 512, 1536, 512});
  DeviceRows rows = device_rows(1, 5);
  // Each run's qkv is the next one's attention.
  const auto chain = [&] {
    for (int i = 0; i < 20; ++i) {
      LayerTail tail = rows.tail(*weights_);
      if (i % 2 == 1) std::swap(tail.attention, tail.qkv);
      EXPECT_TRUE(run_fused(tail));
    }
  };
  for (DeviceData* out : {&rows.attention, &rows.residual}) {
    for (int repeat = 0; repeat < 10; ++repeat) {
      expect_capturable(chain, *out, [&] { rows.reset(); });
    }
  }
}

// Tails with biases and F32 tails run as separate kernels; a single row uses the faster variant.
TEST_P(LayerTailTest, OpsChooseByMeasurement) {
  for (const bool has_bias : {false, true}) {
    make({512, 256, 1024, 384}, has_bias);
    const auto run = [&](const LayerTail& tail) { layer_tail(tail); };
    for (const int64_t num_rows : {1, 2, 16, 40}) expect(num_rows, 40, run, "untuned");
    const DeviceRows rows = device_rows(40, 7);
    const int row_counts[] = {1, 2, 4, 8, 16, 32, 40};
    tune(row_counts, rows.tail(*weights_));
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
  const DeviceRows rows = device_rows(1, 7);
  const int row_counts[] = {1};
  tune(row_counts, rows.tail(*weights_));
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

class LayerTailOverRanks : public SeveralGpusTest, public ::testing::WithParamInterface<DType> {};

// As kCases, but each rank's widths are multiples of 8 on up to four ranks.
constexpr TailCase kRankCases[] = {{8, 64, 96, 160},
                                   {64, 128, 96, 0},
                                   {256, 512, 1024, 768},
                                   {2056, 2048, 6176, 2592},
                                   {4104, 8256, 2080, 1536}};

TEST_P(LayerTailOverRanks, SumsThePartsOfAllRanks) {
  for (const TailCase& spec : kRankCases) {
    const HostLayer layer(spec, GetParam());
    const HostRows rows(spec, GetParam(), 1, 20);
    std::vector<std::vector<std::byte>> residuals(devices_.size());
    std::vector<TailResults> parts(devices_.size());
    std::barrier loaded(size());  // no rank loads kernels or weights while another waits for it
    on_every_rank([&](int rank, const Rank& at) {
      const RankOf of = {rank, size()};
      const auto ops = cuda::make_cuda_ops(*at.stream, GetParam()).value();
      const LayerWeights weights(layer, *ops, of);
      DeviceRows own(*at.stream, GetParam(), rows, of);
      const LayerTail tail = own.tail(weights);
      auto kernel = cuda::LayerTailKernel::create(at.context, 0, size()).value();
      EXPECT_TRUE(kernel->takes(tail));
      EXPECT_EQ(at.stream->synchronize().message(), "");
      loaded.arrive_and_wait();
      kernel->run(tail, at.inboxes);
      const auto i = static_cast<size_t>(rank);
      residuals[i] = own.residual.bytes();
      parts[i] = {own.residual.values(), own.delta.values(), own.qkv.values()};
    });
    // The residual is whole on every rank; delta is a sum over the ranks, and qkv is divided.
    TailResults all = {.residual = parts[0].residual,
                       .delta = std::vector<float>(parts[0].delta.size()),
                       .qkv = {}};
    for (const TailResults& part : parts) {
      for (size_t i = 0; i < all.delta.size(); ++i) all.delta[i] += part.delta[i];
      all.qkv.insert(all.qkv.end(), part.qkv.begin(), part.qkv.end());
    }
    const std::string what = "hidden size " + std::to_string(spec.hidden);
    expect_near_reference(all, layer, rows, GetParam(), what);
    for (const auto& residual : residuals) EXPECT_EQ(residual, residuals[0]) << what;
  }
}

// Every tail's residual depends on those before, so a row that was read too early, or from an
// earlier tail, changes the bits. Tails of two models, whose rows differ in size, share the
// inboxes. Ranks are delayed in turn; half of the runs are a graph's.
TEST_P(LayerTailOverRanks, SameBitsEveryTimeOnEveryRank) {
  constexpr TailCase kSpecs[] = {{512, 512, 1536, 512}, {2056, 2048, 6176, 0}};
  constexpr int kRepeats = 120;
  const HostLayer layers[] = {{kSpecs[0], GetParam()}, {kSpecs[1], GetParam()}};
  std::vector<std::vector<std::byte>> firsts(devices_.size());
  std::barrier loaded(size());
  on_every_rank([&](int rank, const Rank& at) {
    const RankOf of = {rank, size()};
    const auto ops = cuda::make_cuda_ops(*at.stream, GetParam()).value();
    std::deque<LayerWeights> weights;
    std::deque<DeviceRows> own;
    for (const HostLayer& layer : layers) {
      weights.emplace_back(layer, *ops, of);
      own.emplace_back(*at.stream, GetParam(), HostRows(layer.spec, GetParam(), 1, 77), of);
    }
    auto kernel = cuda::LayerTailKernel::create(at.context, 0, size()).value();
    const auto chain = [&] {
      for (int i = 0; i < 30; ++i) {
        const size_t model = i % 3 == 1 ? 1 : 0;
        LayerTail tail = own[model].tail(weights[model]);
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
      for (DeviceRows& rows : own) rows.reset();
      if (repeat % size() == rank) std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (repeat % 2 == 0) {
        chain();
      } else {
        graph.launch(*at.stream);
      }
      std::vector<std::byte> bits = own[0].residual.bytes();
      const std::vector<std::byte> others = own[1].residual.bytes();
      bits.insert(bits.end(), others.begin(), others.end());
      if (repeat == 0) firsts[static_cast<size_t>(rank)] = bits;
      ASSERT_EQ(bits, firsts[static_cast<size_t>(rank)]) << "repeat " << repeat;
    }
  });
  for (const auto& first : firsts) EXPECT_EQ(first, firsts[0]);
}

INSTANTIATE_TEST_SUITE_P(Types, LayerTailOverRanks, ::testing::Values(DType::kF16, DType::kBF16),
                         dtype_of_test);
INSTANTIATE_TEST_SUITE_P(Types, LayerTailTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16), dtype_of_test);

}  // namespace
}  // namespace quire::testing

#include "cuda/gemm/tail/layer_tail.h"

#include <barrier>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <thread>

#include "cuda/base/graph.h"
#include "cuda/ops/several_gpus.h"
#include "support/quantized_matrices.h"
#include "tensor/weight_source.h"

namespace quire::testing {
namespace {

struct TailCase {
  int64_t hidden;
  int64_t q_size;
  int64_t intermediate;
  int64_t qkv_size;  // 0: no layer follows
};

struct WeightKind {
  bool has_bias = false;
  std::optional<IntegerSpec> integers = {};  // absent: numbers
};

// A matrix [n, k] on the host: numbers that are rounded to a type, or integers and the numbers that
// they stand for.
struct HostMatrix {
  HostMatrix(int64_t rows, int64_t columns, DType dtype, uint32_t seed, const WeightKind& kind)
      : n(rows), k(columns) {
    const float scale = 1.0F / std::sqrt(static_cast<float>(k));
    if (kind.integers) {
      integers.emplace(*kind.integers, n, k, seed);
      integers->multiply_scales(8 * scale);
      weights = integers->plain;
    } else {
      weights = rounded(random_floats(n * k, seed, scale), dtype);
    }
    if (kind.has_bias) bias = rounded(random_floats(n, seed + 100), dtype);
  }

  int64_t n, k;
  std::vector<float> weights, bias;  // bias empty: there is none
  std::optional<IntegerMatrix> integers;
};

// The weights of a layer. Without a next layer, qkv has no rows.
struct HostLayer {
  HostLayer(const TailCase& the_spec, DType dtype, const WeightKind& kind = {})
      : spec(the_spec),
        o(spec.hidden, spec.q_size, dtype, 1, kind),
        gate_up(2 * spec.intermediate, spec.hidden, dtype, 2, kind),
        down(spec.hidden, spec.intermediate, dtype, 3, kind),
        qkv(spec.qkv_size, spec.hidden, dtype, 4, kind),
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

template <typename T>
std::vector<T> part_of(const std::vector<T>& matrix, int64_t num_columns, const Slice& rows,
                       const Slice& columns) {
  std::vector<T> part;
  for (int64_t i = rows.first; i < rows.first + rows.count; ++i) {
    const auto row = matrix.begin() + i * num_columns + columns.first;
    part.insert(part.end(), row, row + columns.count);
  }
  return part;
}

// A part of a matrix of integers in groups of columns, whose columns begin and end with a group.
struct IntegerPart {
  IntegerPart(const IntegerMatrix& whole, const Slice& rows, const Slice& columns)
      : values(part_of(whole.values, whole.k, rows, columns)) {
    const int64_t num_groups = whole.view.scales.shape.num_elements() / whole.n;
    const int64_t group = whole.k / num_groups;
    const Slice groups = {columns.first / group, std::max<int64_t>(1, columns.count / group)};
    const auto scale_bytes = static_cast<int64_t>(dtype_bytes(whole.view.scales.dtype));
    scales = part_of(whole.scales, num_groups * scale_bytes, rows,
                     {groups.first * scale_bytes, groups.count * scale_bytes});
    const Shape shape =
        whole.view.scales.shape.rank() == 1 ? Shape{rows.count} : Shape{rows.count, groups.count};
    view = WeightView({values.data(), DType::kI8, {rows.count, columns.count}},
                      {scales.data(), whole.view.scales.dtype, shape}, whole.view.scheme);
    view.order = whole.view.order;
    if (whole.view.zeros.data == nullptr) return;
    zeros = part_of(whole.zeros, num_groups, rows, groups);
    view.zeros = {zeros.data(), DType::kI8, shape};
  }

  std::vector<int8_t> values;
  std::vector<std::byte> scales;
  std::vector<int8_t> zeros;
  WeightView view;
};

// A rank's part of a layer's weights, as a device has them. Only one rank may have biases.
class LayerWeights {
 public:
  // plain: integers as the numbers that they stand for.
  LayerWeights(const HostLayer& layer, Ops& ops, const RankOf& at = {}, bool plain = false)
      : ops_(ops), plain_(plain), has_next_(layer.spec.qkv_size > 0) {
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
      norms_[i] = ops.weights().make_vector({norm, DType::kF32, {spec.hidden}}).value();
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
    std::deque<IntegerPart> integers;
    std::vector<WeightView> weights;
    std::vector<TensorView> biases;
    for (const Slice& rows : parts) {
      if (matrix.integers && !plain_) {
        weights.push_back(integers.emplace_back(*matrix.integers, rows, columns).view);
      } else {
        numbers.push_back(part_of(matrix.weights, matrix.k, rows, columns));
        weights.emplace_back(
            TensorView{numbers.back().data(), DType::kF32, {rows.count, columns.count}});
      }
      if (matrix.bias.empty()) continue;
      auto* const bias = const_cast<float*>(matrix.bias.data()) + rows.first;
      biases.push_back({bias, DType::kF32, {rows.count}});
    }
    return ops_.weights()
        .make_linear({.numbers = StoredMatrices{weights}, .biases = biases})
        .value();
  }

  Ops& ops_;
  bool plain_;
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

// The outputs of a tail: residual, and after the last layer delta, otherwise qkv.
struct TailResults {
  std::vector<float> residual, delta, qkv;
};

TailResults reference_of(const HostLayer& layer, const HostRows& rows) {
  const TailCase& spec = layer.spec;
  const auto zeros = [&](int64_t width) {
    return std::vector<float>(static_cast<size_t>(rows.count * width));
  };
  ReferenceOps ops;
  const LayerWeights weights(layer, ops, {}, true);
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
  run_layer_tail(ops, tail);
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

  void make(const TailCase& spec, const WeightKind& kind = {}) {
    layer_.emplace(spec, dtype(), kind);
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
    if (!ops_->try_layer_tail(tail)) run_layer_tail(*ops_, tail);
  }

  void tune(std::span<const int> row_counts, const LayerTail& tail) {
    const Status tuned = ops_->tune_linears(row_counts, [&] {
      layer_tail(tail);
      return Status();
    });
    ASSERT_EQ(tuned.message(), "");
  }

  void expect_same_bits() {
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
  make({64, 64, 64, 64}, {.has_bias = true});
  EXPECT_FALSE(is_fused(1));
}

// Ranges of blocks that begin and end within panels, within gate's and up's, and empty ones.
constexpr TailCase kPackedCases[] = {{64, 64, 64, 96},
                                     {256, 256, 512, 0},
                                     {256, 512, 1024, 768},
                                     {2112, 2048, 6208, 2592},
                                     {4096, 1024, 3584, 6144}};

TEST_P(LayerTailTest, OneKernelAgreesWithPackedWeights) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  for (const TailCase& spec : kPackedCases) {
    for (const bool has_zeros : {false, true}) {
      for (const int64_t group : {int64_t{64}, int64_t{128}, kPerRow}) {
        if (group == 128 && spec.hidden % 128 != 0) continue;
        if (group == kPerRow && spec.hidden > 2000) continue;  // the reference is slow
        make(spec, {.integers = IntegerSpec{.group_size = group, .has_zeros = has_zeros}});
        expect(
            1, 20, [&](const LayerTail& tail) { ASSERT_TRUE(run_fused(tail)); },
            "packed, one kernel");
      }
    }
  }
}

// The digits of large columns do not displace those of small ones. The large ones have no weight.
TEST_P(LayerTailTest, KeepsSmallColumnsBesideLargeOnes) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  for (const bool has_zeros : {false, true}) {
    make({256, 256, 512, 384}, {.integers = IntegerSpec{.group_size = 64, .has_zeros = has_zeros}});
    HostRows host = host_rows(1, 20);
    HostMatrix& o = layer_->o;
    for (int64_t column = 5; column < o.k; column += 32) {
      host.attention[static_cast<size_t>(column)] = 32768;
      for (int64_t row = 0; row < o.n; ++row) {
        const auto group = static_cast<size_t>((row * o.k + column) / 64);
        o.integers->values[static_cast<size_t>(row * o.k + column)] =
            has_zeros ? o.integers->zeros[group] : int8_t{0};
      }
    }
    o.integers->write_plain();
    o.weights = o.integers->plain;
    weights_ = std::make_unique<LayerWeights>(*layer_, *ops_);
    DeviceRows rows(stream(), dtype(), host);
    ASSERT_TRUE(run_fused(rows.tail(*weights_)));
    expect_near_reference({rows.residual.values(), rows.delta.values(), rows.qkv.values()}, *layer_,
                          host, dtype(), "small columns");
  }
}

// A number that is not finite reaches every output. So does a finite number: otherwise the outputs
// would still have the poison, which is not finite.
TEST_P(LayerTailTest, KeepsNumbersThatAreNotFinite) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  for (const float number : {1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const bool is_packed : {false, true}) {
      WeightKind kind;
      if (is_packed) kind.integers = IntegerSpec{.group_size = 64};
      make({256, 256, 512, 384}, kind);
      HostRows host = host_rows(1, 20);
      host.attention[7] = number;
      DeviceRows rows(stream(), dtype(), host);
      ASSERT_TRUE(run_fused(rows.tail(*weights_)));
      for (const float value : rows.qkv.values()) {
        ASSERT_EQ(std::isfinite(value), std::isfinite(number));
      }
    }
  }
}

TEST_P(LayerTailTest, RefusesUnsupportedPackedWeights) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  const TailCase spec = {128, 128, 128, 96};
  const WeightKind packed = {.integers = IntegerSpec()};
  const auto is_fused = [&](int64_t num_rows) {
    const DeviceRows rows = device_rows(num_rows, 1);
    return run_fused(rows.tail(*weights_));
  };
  make(spec, packed);
  EXPECT_TRUE(is_fused(1));
  EXPECT_FALSE(is_fused(2));
  for (const WeightKind& other : {WeightKind{.integers = IntegerSpec{.group_size = 64}},
                                  WeightKind{.integers = IntegerSpec{.has_zeros = true}},
                                  WeightKind{.integers = IntegerSpec{.has_order = true}},
                                  WeightKind{.integers = IntegerSpec{.bits = 8}}, WeightKind()}) {
    layer_->down = HostMatrix(spec.hidden, spec.intermediate, dtype(), 3, other);
    weights_ = std::make_unique<LayerWeights>(*layer_, *ops_);
    EXPECT_FALSE(is_fused(1)) << (other.integers ? describe(*other.integers) : "numbers");
  }
  make(spec, {.integers = IntegerSpec{.group_size = 32}});
  EXPECT_FALSE(is_fused(1)) << "groups of 32";
  make({128, 128, 128, 72}, packed);
  EXPECT_FALSE(is_fused(1)) << "a panel of qkv that is not full";
  make({128, 128, 80, 96}, {.integers = IntegerSpec{.group_size = kPerRow}});
  EXPECT_FALSE(is_fused(1)) << "panels of gate that are not full";
  make({128, 96, 128, 96}, {.integers = IntegerSpec{.group_size = kPerRow}});
  EXPECT_FALSE(is_fused(1)) << "a slice that is not full";
  make(spec, {.has_bias = true, .integers = IntegerSpec()});
  EXPECT_FALSE(is_fused(1)) << "a bias";
}

// Runs captured, with every kernel starting early; the counters must return to their state.
TEST_P(LayerTailTest, SameBitsEveryTime) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  make({512, 512, 1536, 512});
  expect_same_bits();
}

TEST_P(LayerTailTest, SameBitsEveryTimeWithPackedWeights) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  for (const TailCase& spec : {TailCase{512, 512, 1536, 512}, TailCase{2176, 2176, 6144, 2176}}) {
    make(spec, {.integers = IntegerSpec()});
    expect_same_bits();
  }
}

// Layers of different shapes use the inboxes of thread blocks in turn, as a drafter and its target
// do, and with a last layer.
TEST_P(LayerTailTest, ShapesTakeTurns) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const TailCase& spec : kPackedCases) {
      if (spec.hidden > 4000) continue;  // the reference is slow
      make(spec, {.integers = IntegerSpec{.group_size = 64}});
      for (uint32_t seed = 1; seed < 3; ++seed) {
        expect(
            1, seed, [&](const LayerTail& tail) { ASSERT_TRUE(run_fused(tail)); }, "in turns");
      }
    }
  }
}

// Tails with biases and F32 tails run as separate kernels. For a single token row of any other
// tail, tuning chooses.
TEST_P(LayerTailTest, OpsChooseByMeasurement) {
  for (const WeightKind& kind :
       {WeightKind(), WeightKind{.has_bias = true}, WeightKind{.integers = IntegerSpec()}}) {
    if (kind.integers && dtype() == DType::kF32) continue;  // the engine expands them
    make({512, 256, 1024, 384}, kind);
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

// Needs no GPU: the thread blocks' ranges follow one another. The thread blocks own all columns,
// the same ones for every k, and take exactly the sums that others send.
TEST(LayerTailPlanTest, RangesOfPanelsCoverAllBlocks) {
  using Sums = std::set<std::pair<int, int>>;  // thread block and panel
  for (const int num_blocks : {1, 2, 7, 108, 132}) {
    for (const int n : {32, 64, 96, 1024, 4096, 4128, 14336}) {
      for (const int rows_per_column : {1, 2}) {
        std::vector<int> first_columns;
        for (const int k : {64, 256, 320, 4096, 14336}) {
          const cuda::tail::Gemm gemm = {
              .n = n, .k = k, .rows_per_column = rows_per_column, .column_unit = 32};
          cuda::tail::Params params;
          cuda::tail::add_packed_gemm(params, gemm, num_blocks);
          std::vector<int> firsts;
          Sums sent;
          Sums taken;
          int next_segment = 0;
          int next_column = 0;
          const int row_segments = (k + 255) / 256;
          std::vector<std::pair<int, int>> ranges;  // of segments
          for (int block = 0; block < num_blocks; ++block) {
            const auto range = cuda::tail::panel_range(gemm, block, num_blocks);
            ASSERT_EQ(range.row_segments, row_segments);
            ASSERT_EQ(range.first_column, next_column);
            ASSERT_EQ(range.first_panel * row_segments + range.first_segment, next_segment);
            const int num_sums =
                cuda::tail::num_panel_sums(range) + range.num_columns * rows_per_column;
            ASSERT_LE(num_sums * 4, params.sums_bytes);
            ASSERT_LE(range.num_columns, cuda::tail::max_range_columns(gemm, num_blocks));
            firsts.push_back(range.first_column);
            next_column += range.num_columns;
            ranges.emplace_back(next_segment, next_segment + range.num_segments);
            next_segment += range.num_segments;
            const int end_panel = (next_segment + row_segments - 1) / row_segments;
            if (range.num_segments > 0) {
              ASSERT_EQ(range.first_panel + range.num_panels, end_panel);
            }
            for (int i = 0; i < range.num_sent_panels; ++i) {
              sent.emplace(block, range.first_panel + i);
            }
          }
          ASSERT_EQ(next_segment, n / 32 * rows_per_column * row_segments);
          ASSERT_EQ(next_column, n);
          for (int block = 0; block < num_blocks; ++block) {
            const auto own = cuda::tail::panel_range(gemm, block, num_blocks);
            for (int i = 0; i < own.num_columns / 32 * rows_per_column; ++i) {
              const int panel = own.first_column / 32 * rows_per_column + i;
              for (int other = block + 1; other < num_blocks; ++other) {
                const auto [first, end] = ranges[static_cast<size_t>(other)];
                if (std::max(first, panel * row_segments) <
                    std::min(end, (panel + 1) * row_segments)) {
                  taken.emplace(other, panel);
                }
              }
            }
          }
          ASSERT_EQ(sent, taken) << n << " x " << k << " among " << num_blocks;
          if (first_columns.empty()) first_columns = firsts;
          ASSERT_EQ(firsts, first_columns);
        }
      }
    }
  }
}

// A device that cannot run all thread blocks at once refuses the launch: the tails then run as
// separate kernels.
TEST_P(LayerTailTest, ARefusedLaunchFallsBackToSteps) {
  if (!has_kernel()) GTEST_SKIP() << "the kernel is for 16-bit types on Hopper";
  ops_ = cuda::CudaOps::create(stream(), dtype(), {.layer_tail_blocks = 1 << 12}).value();
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
      .per_block = 232448 - cuda::tail::kStaticBytes,
      .beside_attention =
          kSmBytes - 2 * 1024 - cuda::tail::kAttentionBytes - cuda::tail::kStaticBytes};
  struct Model {
    const char* name;
    int hidden, q_size, intermediate, qkv_size, num_stages;
    bool is_packed = false;
  };
  for (const Model& model : {Model{"Llama-3.1-8B", 4096, 4096, 14336, 6144, 4},
                             Model{"Qwen3-14B", 5120, 5120, 17408, 7168, 4},
                             Model{"Qwen3-32B", 5120, 8192, 25600, 10240, 3},
                             Model{"Llama-3.3-70B", 8192, 8192, 28672, 10240, 3},
                             Model{"Llama-3.1-8B in 4 bits", 4096, 4096, 14336, 6144, 3, true},
                             Model{"Qwen3-14B in 4 bits", 5120, 5120, 17408, 7168, 2, true}}) {
    cuda::tail::Params params;
    if (model.is_packed) params.stage_bytes = 4224;  // groups of 128 columns with F16 scales
    params.hidden = model.hidden;
    const auto add = [&](int n, int k, int rows_per_column) {
      cuda::tail::Gemm gemm;
      gemm.n = n;
      gemm.k = k;
      gemm.rows_per_column = rows_per_column;
      if (!model.is_packed) return cuda::tail::add_gemm(params, gemm, 132);
      gemm.column_unit = 32;
      cuda::tail::add_packed_gemm(params, gemm, 132);
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
  params.x_bytes = 120000;
  cuda::tail::fit_rings(params, {.per_block = 200000, .beside_attention = 150000});
  EXPECT_EQ(params.num_stages, 2);
  cuda::tail::fit_rings(params, {.per_block = 100000, .beside_attention = 50000});
  EXPECT_EQ(params.num_stages, 0);
}

class LayerTailOverRanks : public SeveralGpusTest, public ::testing::WithParamInterface<DType> {
 protected:
  void expect_sums(const HostLayer& layer) {
    const TailCase& spec = layer.spec;
    const HostRows rows(spec, GetParam(), 1, 20);
    std::vector<std::vector<std::byte>> residuals(devices_.size());
    std::vector<TailResults> parts(devices_.size());
    std::barrier loaded(size());  // no rank loads kernels or weights while another waits for it
    on_every_rank([&](int rank, const Rank& at) {
      const RankOf of = {rank, size()};
      const auto ops = cuda::CudaOps::create(*at.stream, GetParam()).value();
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
};

// On up to four ranks, each rank's widths are multiples of 8.
constexpr TailCase kRankCases[] = {{8, 64, 96, 160},
                                   {64, 128, 96, 0},
                                   {256, 512, 1024, 768},
                                   {2056, 2048, 6176, 2592},
                                   {4104, 8256, 2080, 1536}};

TEST_P(LayerTailOverRanks, SumsThePartsOfAllRanks) {
  for (const TailCase& spec : kRankCases) expect_sums(HostLayer(spec, GetParam()));
}

TEST_P(LayerTailOverRanks, SumsThePartsOfPackedWeights) {
  // With up to four ranks, each input of a product has more than one group of 128.
  for (const bool has_zeros : {false, true}) {
    const WeightKind kind = {.integers = IntegerSpec{.has_zeros = has_zeros}};
    for (const TailCase& spec : {TailCase{256, 1024, 1024, 768}, TailCase{4096, 2048, 7168, 6144},
                                 TailCase{2176, 1024, 1024, 0}}) {
      expect_sums(HostLayer(spec, GetParam(), kind));
    }
  }
}

// Every tail's residual depends on those before, so a row that was read too early, or from an
// earlier tail, changes the bits. Tails of two models, whose rows differ in size, share the
// inboxes. Ranks are delayed in turn; half of the runs are a graph's.
TEST_P(LayerTailOverRanks, SameBitsEveryTimeOnEveryRank) {
  constexpr TailCase kSpecs[] = {{512, 512, 1536, 512}, {2056, 2048, 6176, 0}};
  constexpr int kRepeats = 120;
  const HostLayer layers[] = {HostLayer(kSpecs[0], GetParam()), HostLayer(kSpecs[1], GetParam())};
  std::vector<std::vector<std::byte>> firsts(devices_.size());
  std::barrier loaded(size());
  on_every_rank([&](int rank, const Rank& at) {
    const RankOf of = {rank, size()};
    const auto ops = cuda::CudaOps::create(*at.stream, GetParam()).value();
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
        if (i % 5 == 4) tail.next_qkv = nullptr;  // a last layer, and the sum after it
        kernel->run(tail, at.inboxes);
        if (tail.next_qkv != nullptr) continue;
        cuda::run_sum_rows(at.context, at.inboxes, cuda::SumMethod::kOneStep, tail.delta);
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
      // Lets another rank be the last one each time.
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

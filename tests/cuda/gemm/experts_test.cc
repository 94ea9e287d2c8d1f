// Compares routing and the products of experts with their definitions in double: few tokens, many,
// one expert with almost all of them, and experts with none.
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "cuda/gemm/experts/expert_kernels.h"
#include "cuda/gemm/experts/experts_choice.h"
#include "cuda/gemm/experts/kernels/router_kernel.h"
#include "expert_steps.h"
#include "model/quantization.h"
#include "ops/host_matrices.h"

namespace quire::testing {
namespace {

constexpr int64_t kManyTokens = 300;

// Ids and weights that route() chose.
struct Choice {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

std::vector<int32_t> ints_of(DeviceData& data) {
  const std::vector<std::byte> bytes = data.bytes();
  std::vector<int32_t> ints(bytes.size() / sizeof(int32_t));
  std::memcpy(ints.data(), bytes.data(), bytes.size());
  return ints;
}

// A source whose matrices repeat a pool, and the same numbers in memory.
class RepeatedExperts : public ExpertsSource {
 public:
  RepeatedExperts(const ExpertsShape& shape, bool in_memory)
      : shape_(shape), in_memory_(in_memory), pool_(normal_floats(97, 1, 0.2F)) {}

  const ExpertsShape& shape() const override { return shape_; }
  Result<LinearSource> gate_up(int idx) override {
    return source(7 * idx, {2 * shape_.intermediate_size, shape_.hidden_size});
  }
  Result<LinearSource> down(int idx) override {
    return source(7 * idx + 3, {shape_.hidden_size, shape_.intermediate_size});
  }

 private:
  Result<LinearSource> source(int64_t first, const Shape& shape) {
    const auto size = static_cast<int64_t>(pool_.size());
    rows_ = {{pool_.data(), DType::kF32, {size}}, first, shape[1], shape};
    if (!in_memory_) return LinearSource{.numbers = RepeatedMatrices{{&rows_, 1}}};
    copy_.clear();
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      copy_.push_back(pool_[static_cast<size_t>((first + i) % size)]);
    }
    view_ = TensorView{copy_.data(), DType::kF32, shape};
    return LinearSource{.numbers = StoredMatrices{{&view_, 1}}};
  }

  ExpertsShape shape_;
  bool in_memory_;
  std::vector<float> pool_;
  std::vector<float> copy_;
  RepeatedRows rows_;
  WeightView view_;
};

// Experts that the device quantizes, or that quantize_rows() quantizes first.
class QuantizedExperts : public ExpertsSource {
 public:
  QuantizedExperts(ExpertsSource& plain, bool on_device) : plain_(plain), on_device_(on_device) {}

  const ExpertsShape& shape() const override { return plain_.shape(); }
  Result<LinearSource> gate_up(int idx) override { return quantized(plain_.gate_up(idx).value()); }
  Result<LinearSource> down(int idx) override { return quantized(plain_.down(idx).value()); }

 private:
  Result<LinearSource> quantized(const LinearSource& source) {
    if (on_device_) {
      MatricesToQuantize matrices = {.from = {}, .scheme = fp8_at_load().scheme, .columns = {}};
      if (const auto* repeated = std::get_if<RepeatedMatrices>(&source.numbers)) {
        matrices.from = *repeated;
        matrices.columns = {0, repeated->each.front().shape[1]};
      } else {
        const auto& stored = std::get<StoredMatrices>(source.numbers);
        matrices.from = stored;
        matrices.columns = {0, stored.each.front().values.shape[1]};
      }
      return LinearSource{.numbers = matrices};
    }
    copies_.clear();
    const TensorView& values = std::get<StoredMatrices>(source.numbers).each.front().values;
    QUIRE_ASSIGN_OR_RETURN(view_, quantize_rows(values, fp8_at_load().scheme, copies_, threads_));
    return LinearSource{.numbers = StoredMatrices{{&view_, 1}}};
  }

  ExpertsSource& plain_;
  bool on_device_;
  ThreadPool threads_{2};
  std::vector<Tensor> copies_;
  WeightView view_;
};

class ExpertsTest : public CudaExpertsTest {
 protected:
  Choice route(const ExpertRouting& routing, const std::vector<float>& logits,
               const std::vector<float>& bias = {}) {
    const int64_t num_tokens = static_cast<int64_t>(logits.size()) / routing.num_experts;
    DeviceData device_logits(stream(), {num_tokens, routing.num_experts}, DType::kF32, logits);
    DeviceData device_bias(stream(), {routing.num_experts}, DType::kF32);
    if (!bias.empty()) device_bias.set(bias);
    DeviceData ids(stream(), {num_tokens, routing.num_per_token()}, DType::kI32);
    DeviceData weights(stream(), {num_tokens, routing.num_per_token()}, DType::kF32);
    ops_->experts()->route(routing, device_logits.view(),
                           bias.empty() ? nullptr : device_bias.as<float>(), ids.view(),
                           weights.view());
    return {ints_of(ids), weights.values()};
  }

  // Products, outputs of experts and the sum are rounded to the type of the activations.
  float rounding() const { return 2 * tolerance(dtype()); }

  // A step whose numbers are of the activations' type.
  Step rounded_step(const ExpertsShape& shape, int64_t num_tokens, uint32_t seed,
                    uint32_t hot = 0) const {
    Step step = random_step(shape, num_tokens, seed, hot);
    step.x = rounded(step.x, dtype());
    // The weights are as large as a router's, so that rounded terms do not exceed the tolerance.
    for (float& weight : step.weights) weight /= std::sqrt(static_cast<float>(shape.top_k));
    return step;
  }

  std::vector<float> run(const Experts& experts, const Step& step,
                         Activation activation = Activation::kSilu,
                         const std::vector<float>* added_to = nullptr) {
    DeviceStep device_step = on_device(experts.shape(), step);
    if (added_to != nullptr) device_step.out.set(*added_to);
    ops_->experts()->run_experts(device_step.call(experts, activation, added_to != nullptr));
    (void)device_step.workspace.bytes();  // fails if the guard was overwritten
    return device_step.out.values();
  }

  std::vector<float> expected(const Experts& experts, Step step,
                              Activation activation = Activation::kSilu,
                              const std::vector<float>* added_to = nullptr) {
    const ExpertsShape& shape = experts.shape();
    std::vector<float> out(step.x.size());
    if (added_to != nullptr) out = *added_to;
    ExpertsCall call;
    call.experts = &experts;
    call.activation = activation;
    call.x = host_view(step.x, step.num_tokens);
    call.ids = {step.ids.data(), DType::kI32, {step.num_tokens, shape.top_k}};
    call.weights = host_view(step.weights, step.num_tokens);
    call.out = host_view(out, step.num_tokens);
    call.adds = added_to != nullptr;
    reference_.run_experts(call);
    return out;
  }

  void expect_agrees(RandomExperts& source, const std::vector<int64_t>& token_counts,
                     uint32_t hot = 0) {
    const auto experts = ops_->weights().make_experts(source).value();
    const auto reference = reference_.make_experts(source).value();
    EXPECT_GT(experts->num_bytes(), 0U);
    for (const int64_t num_tokens : token_counts) {
      const ExpertsShape& shape = source.shape();
      const Step step = rounded_step(shape, num_tokens, 5, hot);
      const std::string what = std::to_string(shape.num_experts) + " experts of " +
                               std::to_string(shape.hidden_size) + ", " +
                               std::to_string(num_tokens) + " tokens";
      expect_near_all(run(*experts, step), expected(*reference, step), rounding(), what);
      const std::vector<float> before = random(static_cast<int64_t>(step.x.size()), 9);
      expect_near_all(run(*experts, step, Activation::kSilu, &before),
                      expected(*reference, step, Activation::kSilu, &before), rounding(),
                      what + " added");
    }
  }
};

// The logits are multiples of 1/64, so that scores are either equal, or differ by more than the
// error of the device's exponential.
TEST_P(ExpertsTest, ANumberPerExpertMultipliesTheWeights) {
  const std::vector<float> scales = {2.0F, 0.5F, 3.0F, 7.0F};
  const DeviceData device_scales(stream(), {4}, DType::kF32, scales);
  const std::vector<float> logits = {1.0F, 3.0F, -1.0F, 2.0F};
  ExpertRouting routing = {.num_experts = 4, .top_k = 2, .renormalize = true, .num_shared = 1};
  const Choice plain = route(routing, logits);
  routing.expert_scales = device_scales.as<float>();
  const Choice scaled = route(routing, logits);
  EXPECT_EQ(scaled.ids, plain.ids);
  EXPECT_FLOAT_EQ(scaled.weights[0], 0.5F * plain.weights[0]);
  EXPECT_FLOAT_EQ(scaled.weights[1], 7.0F * plain.weights[1]);
  EXPECT_EQ(scaled.weights[2], 1.0F) << "the shared expert";
}

TEST_P(ExpertsTest, RoutingAgreesWithTheDefinition) {
  constexpr size_t kTokens = 37;
  for (const RoutingCase& c : kRoutingCases) {
    const auto num_experts = static_cast<size_t>(c.routing.num_experts);
    const auto num_chosen = static_cast<size_t>(c.routing.num_per_token());
    std::vector<float> logits = normal_floats(kTokens * num_experts, 17, 2.0F);
    for (float& logit : logits) logit = std::round(logit * 64.0F) / 64.0F;
    const std::vector<float> bias =
        c.has_bias ? normal_floats(num_experts, 1000, 0.3F) : std::vector<float>();
    const Choice got = route(c.routing, logits, bias);
    for (size_t t = 0; t < kTokens; ++t) {
      const auto want =
          reference_route(c.routing, std::span(logits).subspan(t * num_experts, num_experts), bias);
      for (size_t j = 0; j < num_chosen; ++j) {
        ASSERT_EQ(got.ids[t * num_chosen + j], want[j].id)
            << c.name << " token " << t << " place " << j;
        ASSERT_NEAR(got.weights[t * num_chosen + j], want[j].weight, 1e-5 * want[j].weight)
            << c.name;
      }
    }
  }
}

TEST_P(ExpertsTest, AnyLogitsGiveDistinctExpertsInRange) {
  constexpr size_t kTokens = 40;
  const std::vector<float> kSpecial = {NAN, -NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 0.0F, 1.0F};
  std::mt19937 random(3);
  for (const RoutingCase& c : kRoutingCases) {
    const auto num_experts = static_cast<size_t>(c.routing.num_experts);
    const auto num_chosen = static_cast<size_t>(c.routing.num_per_token());
    std::vector<float> logits(kTokens * num_experts, NAN);  // those of the first token stay
    for (size_t i = num_experts; i < logits.size(); ++i) {
      logits[i] = kSpecial[random() % kSpecial.size()];
    }
    const Choice got =
        route(c.routing, logits, c.has_bias ? normal_floats(num_experts, 1) : std::vector<float>());
    for (size_t t = 0; t < kTokens; ++t) {
      const auto first = got.ids.begin() + static_cast<int64_t>(t * num_chosen);
      const std::set<int32_t> distinct(first, first + c.routing.num_per_token());
      ASSERT_EQ(distinct.size(), num_chosen) << c.name << " token " << t;
      ASSERT_GE(*distinct.begin(), 0) << c.name;
      ASSERT_LT(*distinct.rbegin(), c.routing.num_experts + c.routing.num_shared) << c.name;
    }
    const auto num_routed = static_cast<size_t>(c.routing.top_k);
    for (size_t j = 0; j < num_chosen; ++j) {
      EXPECT_EQ(std::isnan(got.weights[j]), j < num_routed) << c.name << ", place " << j;
    }
  }
}

TEST_P(ExpertsTest, TheLowerIdWinsTiesAndNaNComesLast) {
  ExpertRouting routing = {.num_experts = 6, .top_k = 4, .scores = RouterScores::kSigmoid};
  EXPECT_EQ(route(routing, {1, 2, 2, 1, 3, 2}).ids, (std::vector<int32_t>{4, 1, 2, 5}));
  EXPECT_EQ(route(routing, std::vector<float>(6, 0.7F)).ids, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(route(routing, {NAN, -5.0F, NAN, 1.0F, NAN, 0.0F}).ids,
            (std::vector<int32_t>{3, 5, 1, 0}));
  routing = {.num_experts = 8,
             .top_k = 2,
             .num_groups = 4,
             .top_groups = 2,
             .group_scores = GroupScores::kTwoLargest};
  const std::vector<float> logits = {3.0F, -9.0F, 2.9F, 2.8F, 3.1F, -9.0F, 2.7F, 2.6F};
  EXPECT_EQ(route(routing, logits).ids, (std::vector<int32_t>{2, 3}));
  routing.group_scores = GroupScores::kLargest;
  EXPECT_EQ(route(routing, logits).ids, (std::vector<int32_t>{4, 0}));
}

// Sizes that no vector divides, and those of the kernels for many tokens.
TEST_P(ExpertsTest, AgreeWithTheDefinition) {
  const ExpertsShape shapes[] = {{1, 1, 8, 4},      {4, 2, 33, 17},  {40, 3, 48, 24},
                                 {8, 2, 64, 32},    {6, 6, 144, 72}, {8, 2, 136, 200},
                                 {128, 8, 320, 96}, {4, 2, 328, 552}};
  for (const ExpertsShape& shape : shapes) {
    RandomExperts source(shape, dtype(), 7);
    expect_agrees(source, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 64, kManyTokens});
  }
}

// 5001 tokens have more pairs than a batch of the kernel that sorts them.
TEST_P(ExpertsTest, OneMayHaveAlmostAllTokens) {
  RandomExperts source({8, 2, 24, 16}, dtype(), 3);
  for (const uint32_t hot : {9U, 10U}) expect_agrees(source, {8, 40, 700, 5001}, hot);
}

// One thread block walks all tiles, so that the tiles are large.
TEST_P(ExpertsTest, LargeTilesAgreeWithTheDefinition) {
  ops_ = cuda::CudaOps::create(stream(), dtype(), {.expert_blocks = 1}).value();
  for (const ExpertsShape& shape : {ExpertsShape{4, 2, 328, 552}, ExpertsShape{6, 2, 640, 256}}) {
    RandomExperts source(shape, dtype(), 7);
    expect_agrees(source, {kManyTokens, 401});
  }
}

// Gates and ups are on both sides of their limits. Matrices with a bias for gate_up alone are those
// of a rank that is not the first.
TEST_P(ExpertsTest, BiasesAndTheActivationOfGptOss) {
  for (const int blocks : {0, 1}) {  // of grouped products; with one, tiles are large
    ops_ = cuda::CudaOps::create(stream(), dtype(), {.expert_blocks = blocks}).value();
    for (const ExpertsShape& shape :
         {ExpertsShape{4, 2, 33, 17}, ExpertsShape{8, 2, 64, 32}, ExpertsShape{4, 2, 328, 552}}) {
      for (const bool has_down : {true, false}) {
        RandomExperts source(shape, dtype(), 7);
        source.add_biases(100, has_down);
        const auto experts = ops_->weights().make_experts(source).value();
        const auto reference = reference_.make_experts(source).value();
        for (const int64_t num_tokens : {int64_t{1}, int64_t{2}, int64_t{9}, kManyTokens}) {
          Step step = rounded_step(shape, num_tokens, 5);
          for (float& number : step.x) number *= 4.0F;
          for (const Activation activation : {Activation::kClampedSwiglu, Activation::kSilu}) {
            // Grouped products round gates and ups to 16 bits before they multiply them, and the
            // products once more. The terms of an output are large beside it: its deviation is 15.
            expect_near_all(run(*experts, step, activation), expected(*reference, step, activation),
                            16 * rounding(),
                            fmt::format("{} tokens of {}", num_tokens, shape.hidden_size));
          }
        }
      }
    }
  }
}

// A router, the residual of its tokens, and what is added to it.
struct RouterData {
  std::vector<float> residual;
  std::vector<float> delta;  // empty: nothing is added
  std::vector<float> norm;
  std::vector<float> w;
  std::vector<float> w_bias;  // empty: none
  std::vector<float> bias;    // empty: none
  float sum_scale = 1.0F;
};

// Results of run_router().
struct Routed {
  std::vector<float> residual;
  std::vector<float> x;
  Choice choice;
};

class RouterTest : public ExpertsTest {
 protected:
  RouterData router_data(const ExpertRouting& routing, int64_t num_tokens, int64_t width,
                         uint32_t seed) const {
    RouterData data;
    data.residual = random(num_tokens * width, seed);
    data.delta = random(num_tokens * width, seed + 1);
    data.norm = random_floats(width, seed + 2);
    data.w = random(routing.num_experts * width, seed + 3, 1.5F / std::sqrt(float(width)));
    return data;
  }

  std::unique_ptr<Linear> router_of(const ExpertRouting& routing, RouterData& data) {
    const auto width = static_cast<int64_t>(data.norm.size());
    const WeightView view(TensorView{data.w.data(), DType::kF32, {routing.num_experts, width}});
    const TensorView bias = {data.w_bias.data(), DType::kF32, {routing.num_experts}};
    LinearSource source = {.numbers = StoredMatrices{{&view, 1}}};
    if (!data.w_bias.empty()) source.biases = {&bias, 1};
    auto linear = ops_->weights().make_linear(source).value();
    EXPECT_EQ(ops_->weights().finish().message(), "");
    return linear;
  }

  // Operands on the device, and the call.
  struct DeviceRouter {
    DeviceRouter(RouterTest& test, cuda::CudaStream& stream, const ExpertRouting& routing,
                 const RouterData& data)
        : width(static_cast<int64_t>(data.norm.size())),
          num_tokens(static_cast<int64_t>(data.residual.size()) / width),
          residual(stream, {num_tokens, width}, test.dtype(), data.residual),
          delta(stream, {num_tokens, width}, test.dtype()),
          norm(stream, {width}, DType::kF32, data.norm),
          sum_scale(stream, {1}, DType::kF32, std::vector{data.sum_scale}),
          x(stream, {num_tokens, width}, test.dtype()),
          logits(stream, {num_tokens, routing.num_experts}, DType::kF32),
          bias(stream, {routing.num_experts}, DType::kF32),
          ids(stream, {num_tokens, routing.num_per_token()}, DType::kI32),
          weights(stream, {num_tokens, routing.num_per_token()}, DType::kF32) {
      if (!data.delta.empty()) delta.set(data.delta);
      if (!data.bias.empty()) bias.set(data.bias);
      call.routing = routing;
      call.norm = ResidualNorm{.residual = residual.view(),
                               .delta = data.delta.empty() ? TensorView() : delta.view(),
                               .weight = norm.as<float>(),
                               .eps = 1e-5F,
                               .scale = data.sum_scale == 1.0F ? nullptr : sum_scale.as<float>()};
      call.x = x.view();
      call.logits = logits.view();
      call.bias = data.bias.empty() ? nullptr : bias.as<float>();
      call.ids = ids.view();
      call.weights = weights.view();
    }
    Routed results() { return {residual.values(), x.values(), {ints_of(ids), weights.values()}}; }

    int64_t width;
    int64_t num_tokens;
    DeviceData residual, delta, norm, sum_scale, x, logits, bias, ids, weights;
    RouterCall call;
  };

  // Whether one kernel must compute the router.
  bool is_fused(const ExpertRouting& routing, int64_t num_tokens, int64_t width) const {
    return dtype() != DType::kF32 && cuda::open_device(0)->device.compute_capability == 90 &&
           num_tokens <= cuda::kMostRouterTokens && width % 8 == 0 && width <= 4096 &&
           routing.num_experts <= 128;
  }

  Routed run_router_of(const ExpertRouting& routing, RouterData data) {
    const auto router = router_of(routing, data);
    DeviceRouter on(*this, stream(), routing, data);
    on.call.router = router.get();
    if (is_fused(routing, on.num_tokens, on.width)) {
      EXPECT_TRUE(ops_->try_router(on.call)) << routing.num_experts << " experts";
    } else {
      EXPECT_FALSE(ops_->try_router(on.call)) << routing.num_experts << " experts";
      run_router(*ops_, on.call);
    }
    return on.results();
  }

  // Whether rounding errors of the logits could change the choice.
  static bool is_close(const ExpertRouting& routing, const std::vector<float>& logits,
                       const std::vector<float>& bias) {
    const auto want = reference_route(routing, logits, bias);
    for (const uint32_t seed : {1U, 2U, 3U}) {
      std::vector<float> other = normal_floats(logits.size(), seed, 1e-5F);
      for (size_t i = 0; i < logits.size(); ++i) other[i] += logits[i];
      const auto got = reference_route(routing, other, bias);
      for (size_t j = 0; j < want.size(); ++j) {
        if (got[j].id != want[j].id) return true;
      }
    }
    return false;
  }

  // Compares the sum and the norm with their definitions; and the choice with the oracle's for the
  // logits of the rounded norm.
  void expect_routes(const ExpertRouting& routing, const RouterData& data,
                     const std::string& what) {
    const Routed got = run_router_of(routing, data);
    const size_t width = data.norm.size();
    const auto num_experts = static_cast<size_t>(routing.num_experts);
    const auto num_chosen = static_cast<size_t>(routing.num_per_token());
    std::vector<float> sum = data.residual;
    for (size_t i = 0; i < data.delta.size(); ++i) {
      sum[i] = (sum[i] + data.delta[i]) * data.sum_scale;
    }
    sum = rounded(sum, dtype());
    EXPECT_EQ(got.residual, sum) << what;
    std::vector<float> normed(sum.size());
    for (size_t t = 0; t < sum.size() / width; ++t) {
      double squares = 0;
      for (size_t i = 0; i < width; ++i) squares += double{sum[t * width + i]} * sum[t * width + i];
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
      for (size_t i = 0; i < width; ++i) {
        normed[t * width + i] = static_cast<float>(sum[t * width + i] * scale * data.norm[i]);
      }
    }
    expect_near_all(got.x, normed, tolerance(dtype()), what + ", norm");
    for (size_t t = 0; t < sum.size() / width; ++t) {
      std::vector<float> logits;
      for (size_t e = 0; e < num_experts; ++e) {
        double logit = data.w_bias.empty() ? 0.0 : double{data.w_bias[e]};
        for (size_t i = 0; i < width; ++i) {
          logit += double{got.x[t * width + i]} * data.w[e * width + i];
        }
        logits.push_back(static_cast<float>(logit));
      }
      const auto want = reference_route(routing, logits, data.bias);
      if (is_close(routing, logits, data.bias)) continue;
      for (size_t j = 0; j < num_chosen; ++j) {
        ASSERT_EQ(got.choice.ids[t * num_chosen + j], want[j].id)
            << what << ", token " << t << ", place " << j;
        ASSERT_NEAR(got.choice.weights[t * num_chosen + j], want[j].weight, 1e-4 * want[j].weight)
            << what << ", token " << t << ", place " << j;
      }
    }
  }
};

TEST_P(RouterTest, AgreesWithTheDefinition) {
  uint32_t seed = 1;
  for (const RoutingCase& c : kRoutingCases) {
    for (const int64_t width : {8, 200, 1032, 2048, 2880}) {
      for (const int64_t num_tokens : {1, 2, 3, 8}) {
        RouterData data = router_data(c.routing, num_tokens, width, seed += 10);
        const auto num_experts = static_cast<size_t>(c.routing.num_experts);
        if (c.has_bias) data.bias = normal_floats(num_experts, 1000, 0.3F);
        if (seed % 3 == 0) data.w_bias = random(c.routing.num_experts, seed + 5);
        if (seed % 4 == 1) data.delta.clear();
        if (seed % 4 == 3) data.sum_scale = 0.5F;
        expect_routes(c.routing, data,
                      fmt::format("{}, {} tokens of {}", c.name, num_tokens, width));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(RouterTest, WideRowsAgreeWithTheDefinition) {
  const ExpertRouting routing = {.num_experts = 128, .top_k = 8, .renormalize = true};
  for (const int64_t width : {4088, 4096, 4104}) {
    for (const int64_t num_tokens : {1, 2}) {
      expect_routes(routing, router_data(routing, num_tokens, width, 3),
                    fmt::format("{} tokens of {}", num_tokens, width));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(RouterTest, TheLowerIdWinsTies) {
  for (const int num_experts : {32, 64, 128, 160, 256}) {
    const ExpertRouting routing = {.num_experts = num_experts, .top_k = 4, .num_shared = 1};
    RouterData data = router_data(routing, 2, 64, 3);
    std::fill(data.w.begin(), data.w.end(), 0.0F);
    const Routed equal = run_router_of(routing, data);
    for (size_t i = 0; i < equal.choice.ids.size(); ++i) {
      const auto place = static_cast<int32_t>(i % 5);
      EXPECT_EQ(equal.choice.ids[i], place < 4 ? place : num_experts);
    }
    // All tokens choose the last expert first, and then those with equal logits.
    data.w_bias.assign(static_cast<size_t>(num_experts), 0.0F);
    data.w_bias.back() = 5.0F;
    const Routed last = run_router_of(routing, data);
    for (size_t i = 0; i < last.choice.ids.size(); ++i) {
      const auto place = static_cast<int32_t>(i % 5);
      EXPECT_EQ(last.choice.ids[i], place == 0   ? num_experts - 1
                                    : place == 4 ? num_experts
                                                 : place - 1);
    }
  }
}

TEST_P(RouterTest, NaNStaysWithItsToken) {
  const ExpertRouting routing = {.num_experts = 128, .top_k = 8, .renormalize = true};
  for (const size_t num_tokens : {2U, 8U}) {
    for (const float special : {NAN, INFINITY}) {
      RouterData data = router_data(routing, static_cast<int64_t>(num_tokens), 256, 3);
      const Routed finite = run_router_of(routing, data);
      data.residual[256 + 17] = special;  // of token 1
      const Routed got = run_router_of(routing, data);
      for (size_t t = 0; t < num_tokens; ++t) {
        const auto first = got.choice.ids.begin() + static_cast<int64_t>(8 * t);
        const std::set<int32_t> distinct(first, first + 8);
        EXPECT_EQ(distinct.size(), 8U) << t;
        EXPECT_TRUE(*distinct.begin() >= 0 && *distinct.rbegin() < 128) << t;
        for (size_t j = 8 * t; j < 8 * t + 8; ++j) {
          EXPECT_EQ(std::isnan(got.choice.weights[j]), t == 1) << t;
          if (t == 1) continue;
          EXPECT_EQ(got.choice.ids[j], finite.choice.ids[j]);
          EXPECT_EQ(got.choice.weights[j], finite.choice.weights[j]);
        }
      }
    }
  }
}

// Steps in two streams, as graphs, with a chain of routers that each add to the residual.
TEST_P(RouterTest, GraphsInTwoStreams) {
  constexpr int kLayers = 24;
  constexpr int kLaunches = 8;
  const ExpertRouting routing = {.num_experts = 128, .top_k = 8, .renormalize = true};
  RouterData data = router_data(routing, 2, 512, 3);
  for (float& number : data.delta) number *= 1e-3F;
  const auto router = router_of(routing, data);
  const auto second_stream = cuda::CudaStream::create().value();
  const auto second_ops = cuda::CudaOps::create(*second_stream, dtype()).value();
  DeviceRouter expected(*this, stream(), routing, data);
  DeviceRouter first(*this, stream(), routing, data);
  DeviceRouter second(*this, *second_stream, routing, data);
  for (DeviceRouter* on : {&expected, &first, &second}) on->call.router = router.get();
  for (int i = 0; i < kLayers * kLaunches; ++i) run_router(*ops_, expected.call);
  const Routed want = expected.results();
  const auto run_layers = [](cuda::CudaOps& ops, const RouterCall& call) {
    for (int i = 0; i < kLayers; ++i) run_router(ops, call);
  };
  CapturedGraph of_first(stream(), [&] { run_layers(*ops_, first.call); });
  CapturedGraph of_second(*second_stream, [&] { run_layers(*second_ops, second.call); });
  for (int i = 0; i < kLaunches; ++i) {
    of_first.launch();
    of_second.launch();
  }
  for (DeviceRouter* on : {&first, &second}) {
    const Routed got = on->results();
    EXPECT_EQ(got.residual, want.residual);
    EXPECT_EQ(got.x, want.x);
    EXPECT_EQ(got.choice.ids, want.choice.ids);
    EXPECT_EQ(got.choice.weights, want.choice.weights);
  }
  EXPECT_EQ(second_stream->synchronize().message(), "");
}

class Fp8ExpertsTest : public ExpertsTest {
 protected:
  void SetUp() override {
    ExpertsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (cuda::open_device(0)->device.compute_capability != 90) {
      GTEST_SKIP() << "products with FP8 weights need compute capability 9.0";
    }
  }

  using QuantizeRow = std::vector<float> (*)(std::span<const float>);

  // The products of quantized rows. Outputs of each product are rounded to the activations' type.
  std::vector<float> expected_quantized(RandomExperts& source, const Step& step,
                                        QuantizeRow quantize_row) {
    const auto hidden = static_cast<size_t>(source.shape().hidden_size);
    const auto inner = static_cast<size_t>(source.shape().intermediate_size);
    const auto top_k = static_cast<size_t>(source.shape().top_k);
    std::vector<std::unique_ptr<Linear>> gate_up;
    std::vector<std::unique_ptr<Linear>> down;
    for (int i = 0; i < source.shape().num_experts; ++i) {
      gate_up.push_back(reference_.make_linear(source.gate_up(i).value()).value());
      down.push_back(reference_.make_linear(source.down(i).value()).value());
    }
    std::vector<float> out(step.x.size());
    for (size_t pair = 0; pair < step.ids.size(); ++pair) {
      const size_t token = pair / top_k;
      const auto expert = static_cast<size_t>(step.ids[pair]);
      const std::vector<float> both = multiply(
          *gate_up[expert], quantize_row(std::span(step.x).subspan(token * hidden, hidden)));
      std::vector<float> product;
      for (size_t i = 0; i < inner; ++i) {
        product.push_back(both[i] / (1.0F + std::exp(-both[i])) * both[inner + i]);
      }
      const std::vector<float> y =
          rounded(multiply(*down[expert], quantize_row(rounded(product, dtype()))), dtype());
      for (size_t i = 0; i < hidden; ++i) out[token * hidden + i] += step.weights[pair] * y[i];
    }
    return out;
  }

  // The tensor cores add E4M3 products with fewer bits than F32, so a number of the product that is
  // near the middle of two E4M3 numbers may be rounded to either. That changes all outputs of its
  // token a little, while a wrong scale changes them by 25 % and more.
  void expect_quantizes(RandomExperts& source, QuantizeRow quantize_row) {
    constexpr double kTolerance = 0.1;
    const auto experts = ops_->weights().make_experts(source).value();
    const auto hidden = static_cast<size_t>(source.shape().hidden_size);
    for (const int64_t num_tokens : {int64_t{2}, int64_t{9}, int64_t{40}, kManyTokens}) {
      const Step step = rounded_step(source.shape(), num_tokens, 5);
      const std::vector<float> got = run(*experts, step);
      const std::vector<float> want = expected_quantized(source, step, quantize_row);
      for (size_t first = 0; first < got.size(); first += hidden) {
        EXPECT_LE(relative_error(std::span(got).subspan(first, hidden),
                                 std::span(want).subspan(first, hidden)),
                  kTolerance)
            << num_tokens << " tokens, token " << first / hidden;
      }
    }
  }

 private:
  std::vector<float> multiply(const Linear& w, std::vector<float> row) {
    std::vector<float> out(static_cast<size_t>(w.out_features()));
    reference_.linear(w, host_view(row, 1), host_view(out, 1));
    return out;
  }
  // |got - want| / |want|, of vectors.
  static double relative_error(std::span<const float> got, std::span<const float> want) {
    double squares = 0;
    double all = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double difference = got[i] - want[i];
      squares += difference * difference;
      all += double{want[i]} * want[i];
    }
    return std::sqrt(squares / all);
  }
};

TEST_P(Fp8ExpertsTest, OneTokenIsMultipliedAsItIs) {
  for (const ExpertsShape& shape : {ExpertsShape{8, 2, 64, 48}, ExpertsShape{8, 4, 1040, 592}}) {
    RandomExperts source(shape, DType::kF8E4M3, 7);
    expect_agrees(source, {1});
    if (dtype() == DType::kF32) expect_agrees(source, {2, 8, 9, 40});
  }
}

TEST_P(Fp8ExpertsTest, WeightsAreQuantizedToTheBitsOfTheHost) {
  const auto expect_same = [&](ExpertsSource& source, ExpertsSource& in_memory) {
    QuantizedExperts device_source(source, true);
    QuantizedExperts host_source(in_memory, false);
    const auto got = ops_->weights().make_experts(device_source);
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto want = ops_->weights().make_experts(host_source).value();
    const cuda::ExpertMatrices& actual = static_cast<cuda::CudaExperts&>(**got).matrices();
    const cuda::ExpertMatrices& expected = static_cast<cuda::CudaExperts&>(*want).matrices();
    const auto bits = [&](const TensorView& view) { return bytes_of(stream(), view); };
    EXPECT_TRUE(bits(actual.gate_up) == bits(expected.gate_up));
    EXPECT_TRUE(bits(actual.gate_up_scales) == bits(expected.gate_up_scales));
    EXPECT_TRUE(bits(actual.down) == bits(expected.down));
    EXPECT_TRUE(bits(actual.down_scales) == bits(expected.down_scales));
    EXPECT_EQ((*got)->num_bytes(), want->num_bytes());
  };
  for (const ExpertsShape& shape : {ExpertsShape{8, 2, 64, 48}, ExpertsShape{4, 2, 1040, 592}}) {
    RandomExperts random(shape, dtype(), 7);
    expect_same(random, random);
    RepeatedExperts repeated(shape, false);
    RepeatedExperts in_memory(shape, true);
    expect_same(repeated, in_memory);
  }
}

TEST_P(Fp8ExpertsTest, ManyTokensAreQuantized) {
  if (dtype() == DType::kF32) GTEST_SKIP() << "F32 activations are not quantized";
  for (const ExpertsShape& shape : {ExpertsShape{8, 2, 64, 48}, ExpertsShape{4, 2, 1040, 592}}) {
    RandomExperts source(shape, DType::kF8E4M3, 7);
    expect_quantizes(source, quantized_row);
    ops_ = cuda::CudaOps::create(stream(), dtype(), {.expert_blocks = 1}).value();
    expect_quantizes(source, quantized_row);
  }
}

constexpr WeightScheme kPerBlock = {.values = DType::kF8E4M3,
                                    .scales = ScaleLayout::kBlocks,
                                    .block_rows = 128,
                                    .block_columns = 128};

// Shapes with incomplete blocks, and with blocks that have rows of gate and of up.
TEST_P(Fp8ExpertsTest, ScalesPerBlock) {
  for (const ExpertsShape& shape :
       {ExpertsShape{8, 2, 64, 48}, ExpertsShape{6, 3, 1040, 592}, ExpertsShape{16, 4, 384, 256}}) {
    RandomExperts source(shape, DType::kF8E4M3, 7, kPerBlock);
    expect_agrees(source, {1});
    if (dtype() == DType::kF32) {
      expect_agrees(source, {2, 8, 9, 40});
    } else {
      expect_quantizes(source, block_quantized_row);
    }
  }
}

TEST_P(Fp8ExpertsTest, Biases) {
  const auto check = [&](const WeightScheme& scheme, QuantizeRow quantize_row) {
    RandomExperts source({16, 4, 384, 256}, DType::kF8E4M3, 7, scheme);
    source.add_biases(100);
    expect_agrees(source, {1});
    if (dtype() != DType::kF32) expect_quantizes(source, quantize_row);
  };
  check({.values = DType::kF8E4M3, .scales = ScaleLayout::kRows}, quantized_row);
  check(kPerBlock, block_quantized_row);
}

TEST_P(Fp8ExpertsTest, RefusesExpertsWithDifferentScales) {
  class Mixed : public RandomExperts {
   public:
    explicit Mixed(const ExpertsShape& shape)
        : RandomExperts(shape, DType::kF8E4M3, 1), blocks_(shape, DType::kF8E4M3, 1, kPerBlock) {}
    Result<LinearSource> gate_up(int idx) override {
      return idx == 1 ? blocks_.gate_up(idx) : RandomExperts::gate_up(idx);
    }

   private:
    RandomExperts blocks_;
  };
  Mixed mixed({2, 1, 16, 16});
  EXPECT_EQ(ops_->weights().make_experts(mixed).status().code(), StatusCode::kUnimplemented);
}

TEST_P(ExpertsTest, OtherActivations) {
  RandomExperts source({8, 2, 64, 32}, dtype(), 3);
  const auto experts = ops_->weights().make_experts(source).value();
  const auto reference = reference_.make_experts(source).value();
  for (const int64_t num_tokens : {1, 3, 20}) {
    const Step step = rounded_step(source.shape(), num_tokens, 1);
    for (const Activation gelu : {Activation::kGelu, Activation::kGeluTanh}) {
      expect_near_all(run(*experts, step, gelu), expected(*reference, step, gelu), rounding(),
                      "gelu");
    }
  }
}

// Tokens share tiles of the grouped products.
TEST_P(ExpertsTest, ANaNStaysInItsToken) {
  RandomExperts source({8, 2, 64, 32}, dtype(), 3);
  const auto experts = ops_->weights().make_experts(source).value();
  for (const int64_t num_tokens : {3, 60}) {
    Step step = rounded_step(source.shape(), num_tokens, 1);
    step.x[0] = NAN;
    step.weights[2] = NAN;  // of token 1
    const std::vector<float> out = run(*experts, step);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i < 2 * 64) << i;
  }
}

// The launches depend on the number of tokens alone, so a graph serves any ids.
TEST_P(ExpertsTest, GraphsServeOtherIds) {
  const ExpertsShape shape = {24, 4, 64, 32};
  RandomExperts source(shape, dtype(), 3);
  const auto experts = ops_->weights().make_experts(source).value();
  for (const int64_t num_tokens : {1, 5, 8, 9, 200}) {
    const Step first = rounded_step(shape, num_tokens, 1);
    const Step second = rounded_step(shape, num_tokens, 2, 9);
    expect_graph_serves(*experts, first, second, run(*experts, second));
  }
}

TEST_P(ExpertsTest, RepeatedWeightsAreFilledOnTheDevice) {
  const ExpertsShape shape = {3, 2, 24, 16};
  RepeatedExperts repeated(shape, false);
  RepeatedExperts in_memory(shape, true);
  const auto experts = ops_->weights().make_experts(repeated).value();
  const auto same = ops_->weights().make_experts(in_memory).value();
  for (const int64_t num_tokens : {2, 20}) {
    const Step step = rounded_step(shape, num_tokens, 1);
    EXPECT_EQ(run(*experts, step), run(*same, step));
  }
}

TEST_P(ExpertsTest, RefuseMatricesThatDoNotFit) {
  class Wrong : public RandomExperts {
   public:
    using RandomExperts::RandomExperts;
    Result<LinearSource> down(int idx) override { return gate_up(idx); }
  };
  Wrong wrong({2, 1, 16, 16}, dtype(), 1);
  EXPECT_EQ(ops_->weights().make_experts(wrong).status().code(), StatusCode::kInvalidArgument);
  class Mixed : public RandomExperts {
   public:
    Mixed(const ExpertsShape& shape, DType dtype)
        : RandomExperts(shape, dtype, 1), fp8_(shape, DType::kF8E4M3, 1) {}
    Result<LinearSource> gate_up(int idx) override {
      return idx == 1 ? fp8_.gate_up(idx) : RandomExperts::gate_up(idx);
    }

   private:
    RandomExperts fp8_;
  };
  Mixed mixed({2, 1, 16, 16}, dtype());
  EXPECT_EQ(ops_->weights().make_experts(mixed).status().code(), StatusCode::kUnimplemented);
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertsTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16), dtype_of_test);
INSTANTIATE_TEST_SUITE_P(Types, RouterTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16), dtype_of_test);
INSTANTIATE_TEST_SUITE_P(Types, Fp8ExpertsTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16), dtype_of_test);

}  // namespace
}  // namespace quire::testing

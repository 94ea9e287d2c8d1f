// Experts whose weights stay packed on the device, against their definition in double.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/gemm/experts/experts_choice.h"
#include "expert_steps.h"
#include "packed_numbers.h"

namespace quire::testing {
namespace {

// A number and a bound of its error.
struct Sum {
  double value = 0;
  double error = 0;
};

struct Blocks {
  uint32_t gate;
  uint32_t up;
  uint32_t down;
};

// Quantized experts. With `plain_down` their down matrices are F32.
class QuantizedExperts final : public ExpertsSource {
 public:
  QuantizedExperts(const ExpertsShape& shape, const Blocks& blocks) : shape_(shape) {
    for (int i = 0; i < shape.num_experts; ++i) {
      const auto seed = static_cast<uint32_t>(3 * i);
      const auto make = [&](uint32_t type, int64_t n, int64_t k, uint32_t of) {
        return random_matrix(*find_gguf_block_type(type), n, k, seed + of);
      };
      blocks_.push_back(make(blocks.gate, shape.intermediate_size, shape.hidden_size, 0));
      blocks_.push_back(make(blocks.up, shape.intermediate_size, shape.hidden_size, 1));
      blocks_.push_back(make(blocks.down, shape.hidden_size, shape.intermediate_size, 2));
    }
    number(blocks_);
  }
  QuantizedExperts(const ExpertsShape& shape, const IntegerSpec& spec, bool plain_down = false)
      : shape_(shape), plain_down_(plain_down) {
    integers_.reserve(static_cast<size_t>(3 * shape.num_experts));
    for (int i = 0; i < shape.num_experts; ++i) {
      const auto seed = static_cast<uint32_t>(3 * i);
      integers_.emplace_back(spec, shape.intermediate_size, shape.hidden_size, seed);
      integers_.emplace_back(spec, shape.intermediate_size, shape.hidden_size, seed + 1);
      integers_.emplace_back(spec, shape.hidden_size, shape.intermediate_size, seed + 2);
      // Stacked matrices have one order of columns.
      IntegerMatrix& up = integers_[integers_.size() - 2];
      if (spec.has_order) reorder(up, integers_[integers_.size() - 3].order);
    }
    number(integers_);
  }

  const ExpertsShape& shape() const override { return shape_; }
  // Adds biases to all matrices. With several ranks, only the first has those of down.
  void add_biases(float deviation, bool has_down = true) {
    for (int i = 0; i < 3 * shape_.num_experts; ++i) {
      const bool is_down = i % 3 == 2;
      const int64_t rows = is_down ? shape_.hidden_size : shape_.intermediate_size;
      biases_.push_back(random_floats(rows, static_cast<uint32_t>(100 + i), deviation));
      if (is_down && !has_down) biases_.back().assign(biases_.back().size(), 0.0F);
    }
    has_down_biases_ = has_down;
  }

  Result<LinearSource> gate_up(int idx) override { return source(3 * idx, 2); }
  Result<LinearSource> down(int idx) override {
    if (!plain_down_) return source(3 * idx + 2, 1);
    IntegerMatrix& m = integers_[static_cast<size_t>(3 * idx + 2)];
    views_ = {WeightView(TensorView{m.plain.data(), DType::kF32, {m.n, m.k}})};
    return LinearSource{.numbers = StoredMatrices{views_}};
  }

  const PackedNumbers& gate_up_numbers(int idx) const {
    return numbers_[static_cast<size_t>(2 * idx)];
  }
  const PackedNumbers& down_numbers(int idx) const {
    return numbers_[static_cast<size_t>(2 * idx + 1)];
  }
  // The bias of a row of gate (0), up (1) or down (2), in the type of the activations.
  double bias(int idx, int part, int64_t row, DType dtype) const {
    if (biases_.empty()) return 0;
    const std::vector<float>& biases = biases_[static_cast<size_t>(3 * idx + part)];
    return static_cast<double>(rounded({biases[static_cast<size_t>(row)]}, dtype).front());
  }

 private:
  static void reorder(IntegerMatrix& m, const std::vector<int32_t>& order) {
    m.order = order;
    m.view.order = {m.order.data(), DType::kI32, {m.k}};
    for (int64_t row = 0; row < m.n; ++row) {
      write_plain_row(m.view, row, reinterpret_cast<std::byte*>(m.plain.data() + row * m.k));
    }
  }
  template <typename Matrix>
  void number(const std::vector<Matrix>& matrices) {
    for (size_t i = 0; i < matrices.size(); i += 3) {
      PackedNumbers& gate_up = numbers_.emplace_back();
      gate_up.add(matrices[i]);
      gate_up.add(matrices[i + 1]);
      numbers_.emplace_back().add(matrices[i + 2]);
    }
  }
  Result<LinearSource> source(int first, int count) {
    block_views_.clear();
    views_.clear();
    bias_views_.clear();
    for (int i = first; i < first + count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (!blocks_.empty()) block_views_.push_back(blocks_[at].view());
      if (blocks_.empty()) views_.push_back(integers_[at].view);
      if (biases_.empty()) continue;
      const bool has_data = i % 3 != 2 || has_down_biases_;
      bias_views_.push_back(
          {has_data ? biases_[at].data() : nullptr, DType::kF32, {std::ssize(biases_[at])}});
    }
    if (blocks_.empty()) return LinearSource{StoredMatrices{views_}, bias_views_};
    return LinearSource{MatricesInBlocks{block_views_}, bias_views_};
  }

  ExpertsShape shape_;
  bool plain_down_ = false;
  std::vector<GgufMatrix> blocks_;
  std::vector<IntegerMatrix> integers_;
  std::vector<PackedNumbers> numbers_;  // of gate_up and down, by expert
  std::vector<BlockMatrix> block_views_;
  std::vector<WeightView> views_;
  std::vector<std::vector<float>> biases_;  // of gate, up and down, by expert; or empty
  bool has_down_biases_ = true;
  std::vector<TensorView> bias_views_;
};

// The factors of gate and of up.
double activated(Activation activation, double x) {
  if (activation == Activation::kSilu) return x / (1 + std::exp(-x));
  if (activation == Activation::kClampedSwiglu) {
    const double gate = std::min(x, 7.0);
    return gate / (1 + std::exp(-1.702 * gate));
  }
  if (activation == Activation::kGelu) return x / 2 * std::erfc(-x * M_SQRT1_2);
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double factor_of_up(Activation activation, double x) {
  return activation == Activation::kClampedSwiglu ? std::clamp(x, -7.0, 7.0) + 1 : x;
}

class PackedExpertsTest : public CudaExpertsTest {
 protected:
  void SetUp() override {
    CudaExpertsTest::SetUp();
    if (IsSkipped()) return;
    if (block_bytes(ops_->weights(), *find_gguf_block_type(8)) == 0)
      GTEST_SKIP() << "weights stay packed on Hopper";
  }

  double roundoff() const { return dtype() == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

  // The sum of a row, with weights that are rounded as the kernel for tiles does. Errors of many
  // independent terms do not add up to the sum of their bounds.
  Sum multiply(const PackedNumbers& w, int64_t row, const std::vector<Sum>& x) const {
    constexpr double kOfTerms = 4e-6;  // the tensor cores' sums keep at least 22 bits
    constexpr size_t kLeastGroup = 16;
    constexpr double kDeviations = 6;
    const double subnormal = dtype() == DType::kBF16 ? 0 : 0x1p-25 * 129;
    Sum sum;
    double of_terms = 0, squares = 0, scaled = 0, added = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      const size_t at = static_cast<size_t>(row * w.k) + k;
      const auto weight = static_cast<double>(w.weights[at]);
      const auto of_group = static_cast<double>(w.added[at]);
      const double number = x[k].value;
      sum.value += number * weight;
      sum.error += std::abs(number) * kOfTerms * static_cast<double>(w.magnitudes[at]);
      const double rounded =
          std::abs(weight) + roundoff() * (std::abs(weight - of_group) + std::abs(of_group));
      const double of_term =
          std::abs(number) * (roundoff() * rounded + subnormal) + x[k].error * std::abs(weight);
      of_terms += of_term;
      squares += of_term * of_term;
      scaled += number * (weight - of_group);
      added += number * of_group;
      if ((k + 1) % kLeastGroup != 0 && k + 1 < x.size()) continue;
      sum.error += roundoff() * (std::abs(scaled) + std::abs(added));
      scaled = added = 0;
    }
    sum.error += std::min(of_terms, kDeviations * std::sqrt(squares)) + 1e-30;
    return sum;
  }

  // The output of one expert for a row. Intermediate results are rounded to the activations' type.
  std::vector<Sum> output(const QuantizedExperts& source, int expert, Activation activation,
                          const float* x) const {
    const ExpertsShape& shape = source.shape();
    std::vector<Sum> input(x, x + shape.hidden_size);
    std::vector<Sum> product;
    for (int64_t i = 0; i < shape.intermediate_size; ++i) {
      const PackedNumbers& w = source.gate_up_numbers(expert);
      Sum gate = multiply(w, i, input);
      Sum up = multiply(w, shape.intermediate_size + i, input);
      gate.value += source.bias(expert, 0, i, dtype());
      up.value += source.bias(expert, 1, i, dtype());
      const double gate_error = gate.error + roundoff() * std::abs(gate.value);
      const double up_error = up.error + roundoff() * std::abs(up.value);
      const double activated_gate = activated(activation, gate.value);
      const double factor = factor_of_up(activation, up.value);
      constexpr double kSteepest = 1.13;  // slope of the activations
      Sum& of_row = product.emplace_back();
      of_row.value = activated_gate * factor;
      of_row.error = kSteepest * gate_error * (std::abs(factor) + up_error) +
                     std::abs(activated_gate) * up_error + 2 * roundoff() * std::abs(of_row.value);
    }
    std::vector<Sum> out;
    for (int64_t i = 0; i < shape.hidden_size; ++i) {
      Sum sum = multiply(source.down_numbers(expert), i, product);
      sum.value += source.bias(expert, 2, i, dtype());
      sum.error += roundoff() * std::abs(sum.value);
      out.push_back(sum);
    }
    return out;
  }

  // The outputs of gate and up are about 1 or smaller, so that F16 holds all numbers.
  Step make_step(const QuantizedExperts& source, int64_t num_tokens, uint32_t seed,
                 uint32_t hot = 0) const {
    const ExpertsShape& shape = source.shape();
    const std::vector<float>& weights = source.gate_up_numbers(0).weights;
    const double squares = std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
    const double deviation = std::sqrt(squares / static_cast<double>(weights.size()) *
                                       static_cast<double>(shape.hidden_size));
    const auto scale = static_cast<float>(std::min(0.1, 1 / deviation));
    Step step = random_step(shape, num_tokens, seed, hot);
    for (float& number : step.x) number *= scale;
    step.x = rounded(step.x, dtype());
    for (float& weight : step.weights) weight /= std::sqrt(static_cast<float>(shape.top_k));
    return step;
  }

  std::vector<std::byte> run_bytes(const Experts& experts, const Step& step,
                                   Activation activation = Activation::kSilu,
                                   const std::vector<float>* added_to = nullptr) {
    DeviceStep on = on_device(experts.shape(), step);
    if (added_to != nullptr) on.out.set(*added_to);
    ops_->experts()->run_experts(on.call(experts, activation, added_to != nullptr));
    (void)on.workspace.bytes();  // fails if the guard was overwritten
    return on.out.bytes();
  }
  std::vector<float> run(const Experts& experts, const Step& step,
                         Activation activation = Activation::kSilu,
                         const std::vector<float>* added_to = nullptr) {
    return decode(run_bytes(experts, step, activation, added_to), dtype());
  }

  std::unique_ptr<Experts> make(QuantizedExperts& source) {
    Result<std::unique_ptr<Experts>> experts = ops_->weights().make_experts(source);
    EXPECT_EQ(experts.status().message(), "");
    return std::move(experts).value();
  }

  // Checks the first tokens of the step, and every `every`-th of the others.
  void check(const QuantizedExperts& source, const Experts& experts, const Step& step,
             const std::string& what, int64_t every = 1,
             Activation activation = Activation::kSilu) {
    const auto hidden = static_cast<size_t>(source.shape().hidden_size);
    const auto top_k = static_cast<size_t>(source.shape().top_k);
    const std::vector<float> before = random(static_cast<int64_t>(step.x.size()), 9);
    const std::vector<float> got = run(experts, step, activation);
    const std::vector<float> added = run(experts, step, activation, &before);
    int num_wrong = 0;
    for (int64_t t = 0; t < step.num_tokens; t += t < 2 ? 1 : every) {
      const size_t first = static_cast<size_t>(t) * hidden;
      std::vector<Sum> expected(hidden);
      for (size_t j = static_cast<size_t>(t) * top_k; j < static_cast<size_t>(t + 1) * top_k; ++j) {
        const auto weight = static_cast<double>(step.weights[j]);
        const auto out = output(source, step.ids[j], activation, step.x.data() + first);
        for (size_t i = 0; i < hidden; ++i) {
          expected[i].value += weight * out[i].value;
          expected[i].error += std::abs(weight) * out[i].error;
        }
      }
      for (size_t i = 0; i < hidden; ++i) {
        const auto number = static_cast<double>(before[first + i]);
        const auto is_near = [&](float value, double of, double error) {
          return std::abs(static_cast<double>(value) - of) <= error + roundoff() * std::abs(of);
        };
        const bool is_right =
            is_near(got[first + i], expected[i].value, expected[i].error) &&
            is_near(added[first + i], expected[i].value + number, expected[i].error);
        if (is_right || ++num_wrong > 3) continue;
        ADD_FAILURE() << what << ", " << step.num_tokens << " tokens: token " << t << " column "
                      << i << " is " << got[first + i] << ", and added to " << number << " "
                      << added[first + i] << ", expected " << expected[i].value << " up to "
                      << expected[i].error;
      }
    }
    EXPECT_EQ(num_wrong, 0) << what << ", " << step.num_tokens << " tokens";
  }
  void check(QuantizedExperts& source, const std::vector<int64_t>& token_counts,
             const std::string& what, uint32_t hot = 0, int64_t every = 1,
             Activation activation = Activation::kSilu) {
    const auto experts = make(source);
    for (const int64_t num_tokens : token_counts) {
      check(source, *experts, make_step(source, num_tokens, 5, hot), what, every, activation);
    }
  }
};

constexpr uint32_t kQ40 = 2, kQ80 = 8, kQ4K = 12, kQ6K = 14, kMxfp4 = 39;

TEST_P(PackedExpertsTest, EveryTypeOfBlock) {
  for (const GgufBlockType& type : quantized_types()) {
    QuantizedExperts source({5, 2, 512, 256}, Blocks{type.id, type.id, type.id});
    check(source, {1, 2, 9, 17, 40}, type.name, 0, 5);
  }
}

// All sizes of tiles.
TEST_P(PackedExpertsTest, EveryNumberOfTokens) {
  const ExpertsShape shape = {5, 2, 256, 256};
  for (const Blocks& blocks :
       {Blocks{kQ4K, kQ4K, kQ6K}, Blocks{kQ40, kQ40, kQ80}, Blocks{kQ80, kQ80, kQ40}}) {
    QuantizedExperts source(shape, blocks);
    std::vector<int64_t> counts(20);
    std::iota(counts.begin(), counts.end(), int64_t{0});
    counts.insert(counts.end(), {33, 64, 100, 200, 300, 700});
    check(source, counts, "blocks", 0, 37);
  }
  EXPECT_EQ(cuda::packed_expert_rows(shape, 9), 8);
  EXPECT_EQ(cuda::packed_expert_rows(shape, 17), 16);
  EXPECT_EQ(cuda::packed_expert_rows(shape, 40), 32);
  EXPECT_EQ(cuda::packed_expert_rows(shape, 100), 64);
  EXPECT_EQ(cuda::packed_expert_rows(shape, 600), 64);
  EXPECT_EQ(cuda::packed_expert_rows(shape, 700), 128);
}

TEST_P(PackedExpertsTest, EveryLayoutOfIntegers) {
  for (const int bits : {4, 8}) {
    for (const bool has_zeros : {false, true}) {
      for (const bool has_order : {false, true}) {
        for (const DType scales : {DType::kF16, DType::kF32}) {
          for (const int64_t group_size : {int64_t{32}, int64_t{64}, int64_t{128}, kPerRow}) {
            const IntegerSpec spec = {.bits = bits,
                                      .group_size = group_size,
                                      .has_zeros = has_zeros,
                                      .scales = scales,
                                      .has_order = has_order};
            QuantizedExperts source({4, 2, 256, 128}, spec);
            check(source, {1, 6, 30}, describe(spec), 0, 11);
          }
        }
      }
    }
  }
}

// Gate and up are two parts, so their product is not gated by the kernel.
TEST_P(PackedExpertsTest, GateAndUpMayDiffer) {
  QuantizedExperts source({5, 2, 512, 256}, Blocks{kQ6K, kQ4K, kQ80});
  check(source, {1, 2, 7, 17, 60}, "three types", 0, 7);
}

// Panels that are not full, slices and blocks that end early, and several blocks per warp.
TEST_P(PackedExpertsTest, AnySize) {
  const ExpertsShape shapes[] = {{1, 1, 8, 8},      {3, 2, 136, 72},  {3, 2, 328, 40},
                                 {2, 1, 2304, 776}, {3, 3, 64, 4360}, {12, 5, 96, 64}};
  for (const ExpertsShape& shape : shapes) {
    for (const bool has_zeros : {false, true}) {
      for (const int bits : {4, 8}) {
        QuantizedExperts source(shape,
                                {.bits = bits, .group_size = kPerRow, .has_zeros = has_zeros});
        check(source, {1, 3, 20},
              fmt::format("{} to {}", shape.hidden_size, shape.intermediate_size), 0, 9);
      }
    }
  }
}

// 5001 tokens are several passes. The last expert has no token.
TEST_P(PackedExpertsTest, OneMayHaveAlmostAllTokens) {
  for (const uint32_t hot : {9U, 10U}) {
    QuantizedExperts source({8, 2, 256, 64}, Blocks{kQ4K, kQ4K, kQ80});
    check(source, {8, 40, 700, 5001}, "hot", hot, 631);
  }
}

TEST_P(PackedExpertsTest, AllPairsMayHaveOneExpert) {
  QuantizedExperts source({8, 2, 256, 64}, Blocks{kQ4K, kQ4K, kQ80});
  const auto experts = make(source);
  for (const int64_t num_tokens : {1, 3, 20, 300}) {
    Step step = make_step(source, num_tokens, 4);
    std::fill(step.ids.begin(), step.ids.end(), 6);
    check(source, *experts, step, "one expert", 29);
  }
}

TEST_P(PackedExpertsTest, OtherActivations) {
  QuantizedExperts source({4, 2, 256, 256}, Blocks{kQ4K, kQ4K, kQ6K});
  QuantizedExperts parts({4, 2, 256, 256}, Blocks{kQ4K, kQ6K, kQ6K});
  for (QuantizedExperts* each : {&source, &parts}) {
    const auto experts = make(*each);
    for (const int64_t num_tokens : {1, 5, 90, 2100}) {
      const Step step = make_step(*each, num_tokens, 1);
      check(*each, *experts, step, "gelu", 411, Activation::kGelu);
      check(*each, *experts, step, "tanh gelu", 411, Activation::kGeluTanh);
    }
  }
}

// Gate and up are one part or two, and both sides of their limits occur.
TEST_P(PackedExpertsTest, BiasesAndTheActivationOfGptOss) {
  for (const Blocks& blocks : {Blocks{kMxfp4, kMxfp4, kMxfp4}, Blocks{kQ4K, kQ4K, kQ6K},
                               Blocks{kQ4K, kQ6K, kQ80}, Blocks{kQ80, kQ80, kQ40}}) {
    for (const bool has_down : {true, false}) {
      QuantizedExperts source({5, 2, 256, 256}, blocks);
      source.add_biases(3.0F, has_down);
      check(source, {1, 2, 8, 9, 17, 40, 100, 300, 700}, "biases", 0, 101,
            Activation::kClampedSwiglu);
      check(source, {1, 9, 40}, "biases and SiLU", 0, 11);
    }
  }
}

// 90 groups of 32 are 11 blocks of columns and a quarter, and 22 chunks of x and a half.
TEST_P(PackedExpertsTest, TheWidthOfGptOss) {
  for (const ExpertsShape& shape : {ExpertsShape{4, 2, 2880, 96}, ExpertsShape{4, 2, 96, 2880}}) {
    QuantizedExperts source(shape, Blocks{kMxfp4, kMxfp4, kMxfp4});
    source.add_biases(1.0F);
    check(source, {1, 3, 8, 16, 40, 70, 300, 600}, "2880", 0, 149, Activation::kClampedSwiglu);
    check(source, {60}, "2880, one hot", 9, 13, Activation::kClampedSwiglu);
  }
}

TEST_P(PackedExpertsTest, RefuseBiasesOfSomeExperts) {
  class Some final : public ExpertsSource {
   public:
    Some() { with_.add_biases(1.0F); }
    const ExpertsShape& shape() const override { return with_.shape(); }
    Result<LinearSource> gate_up(int idx) override { return of(idx).gate_up(idx); }
    Result<LinearSource> down(int idx) override { return of(idx).down(idx); }

   private:
    QuantizedExperts& of(int idx) { return idx == 0 ? with_ : without_; }
    QuantizedExperts with_{{2, 1, 256, 256}, Blocks{kMxfp4, kMxfp4, kMxfp4}};
    QuantizedExperts without_{{2, 1, 256, 256}, Blocks{kMxfp4, kMxfp4, kMxfp4}};
  };
  Some some;
  EXPECT_EQ(ops_->weights().make_experts(some).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(PackedExpertsTest, FewRowsDoNotDependOnTheirBatch) {
  const ExpertsShape shape = {16, 4, 512, 256};
  QuantizedExperts source(shape, Blocks{kQ4K, kQ4K, kQ6K});
  const auto experts = make(source);
  constexpr int64_t kTokens = 14;
  ASSERT_EQ(cuda::packed_expert_rows(shape, kTokens), cuda::kMaxPackedRows);
  const Step whole = make_step(source, kTokens, 3, 5);
  const std::vector<std::byte> all = run_bytes(*experts, whole);
  const size_t row_bytes = all.size() / kTokens;
  for (const int64_t count : {1, 2, 5, 9}) {
    const int64_t first = kTokens - count;
    const std::vector<std::byte> some = run_bytes(*experts, part_of(whole, shape, first, count));
    EXPECT_EQ(
        std::memcmp(some.data(), all.data() + static_cast<size_t>(first) * row_bytes, some.size()),
        0)
        << count << " tokens";
  }
}

TEST_P(PackedExpertsTest, ANaNStaysInItsToken) {
  QuantizedExperts source({8, 2, 256, 64}, Blocks{kQ4K, kQ4K, kQ80});
  QuantizedExperts gpt_oss({8, 2, 256, 64}, Blocks{kMxfp4, kMxfp4, kMxfp4});
  gpt_oss.add_biases(1.0F);
  for (QuantizedExperts* each : {&source, &gpt_oss}) {
    const auto experts = make(*each);
    const Activation activation = each == &source ? Activation::kSilu : Activation::kClampedSwiglu;
    for (const int64_t num_tokens : {3, 60, 200}) {
      Step step = make_step(*each, num_tokens, 1);
      step.x[0] = NAN;
      step.weights[2] = NAN;  // of token 1
      const std::vector<float> out = run(*experts, step, activation);
      for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(std::isnan(out[i]), i < 2 * 256) << i;
    }
  }
}

// The launches depend on the number of tokens alone, so a graph serves any ids.
TEST_P(PackedExpertsTest, GraphsServeOtherIds) {
  const ExpertsShape shape = {24, 4, 256, 64};
  QuantizedExperts source(shape, Blocks{kQ4K, kQ4K, kQ80});
  QuantizedExperts gpt_oss(shape, Blocks{kMxfp4, kMxfp4, kMxfp4});
  gpt_oss.add_biases(1.0F);
  for (QuantizedExperts* each : {&source, &gpt_oss}) {
    const auto experts = make(*each);
    const Activation activation = each == &source ? Activation::kSilu : Activation::kClampedSwiglu;
    for (const int64_t num_tokens : {1, 5, 8, 60, 200}) {
      const Step first = make_step(*each, num_tokens, 1);
      const Step second = make_step(*each, num_tokens, 2, 9);
      expect_graph_serves(*experts, first, second, run(*experts, second, activation), activation);
    }
  }
}

// A chain of layers whose kernels start early.
TEST_P(PackedExpertsTest, OverlappedChainGivesTheSameBitsEveryTime) {
  const ExpertsShape shape = {16, 4, 1024, 384};
  QuantizedExperts source(shape, {.bits = 4, .group_size = 128});
  const auto experts = make(source);
  const std::vector<float> ones(1024, 1.0F);
  const Tensor weight =
      ops_->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {1024}}).value();
  for (const int64_t num_tokens : {1, 4, 60}) {
    DeviceStep on = on_device(shape, make_step(source, num_tokens, 2));
    const std::vector<std::byte> start = on.x.bytes();
    std::vector<std::byte> first;
    for (int repeat = 0; repeat < 10; ++repeat) {
      on.x.write(start.data());
      for (int i = 0; i < 20; ++i) {
        ops_->experts()->run_experts(on.call(*experts, Activation::kSilu));
        ops_->residual_norm(
            {.residual = on.out.view(), .weight = weight.view.as<float>(), .eps = 1e-5F},
            on.x.view());
      }
      if (repeat == 0) first = on.x.bytes();
      EXPECT_EQ(on.x.bytes(), first) << num_tokens << ", " << repeat;
    }
  }
}

TEST_P(PackedExpertsTest, TakeTheMemoryOfTheirBlocks) {
  const ExpertsShape shape = {4, 2, 512, 256};
  QuantizedExperts source(shape, Blocks{kQ4K, kQ4K, kQ6K});
  const int64_t count = 4 * 512 * 256 / 256;  // blocks of a matrix of all experts
  const int64_t expected = count * (2 * block_bytes(ops_->weights(), *find_gguf_block_type(kQ4K)) +
                                    block_bytes(ops_->weights(), *find_gguf_block_type(kQ6K)));
  EXPECT_EQ(make(source)->num_bytes(), static_cast<size_t>(expected));
}

// The loader expands such experts.
TEST_P(PackedExpertsTest, RefuseDifferentFormats) {
  class Mixed final : public ExpertsSource {
   public:
    const ExpertsShape& shape() const override { return first_.shape(); }
    Result<LinearSource> gate_up(int idx) override { return of(idx).gate_up(idx); }
    Result<LinearSource> down(int idx) override { return of(idx).down(idx); }

   private:
    QuantizedExperts& of(int idx) { return idx == 0 ? first_ : second_; }
    QuantizedExperts first_{{2, 1, 256, 256}, Blocks{kQ4K, kQ4K, kQ4K}};
    QuantizedExperts second_{{2, 1, 256, 256}, Blocks{kQ6K, kQ6K, kQ6K}};
  };
  Mixed mixed;
  EXPECT_EQ(ops_->weights().make_experts(mixed).status().code(), StatusCode::kUnimplemented);
  QuantizedExperts plain_down({4, 2, 256, 128}, {.group_size = 64}, true);
  EXPECT_EQ(ops_->weights().make_experts(plain_down).status().code(), StatusCode::kUnimplemented);
  EXPECT_FALSE(ops_->weights().mixes_experts());
}

INSTANTIATE_TEST_SUITE_P(Types, PackedExpertsTest, ::testing::Values(DType::kBF16, DType::kF16),
                         dtype_of_test);

}  // namespace
}  // namespace quire::testing

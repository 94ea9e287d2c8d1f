// Rounding to 4 bits, the groups of matrices that share scales, and the search of the scales
// against a brute-force search in FP64.
#include "quantize/channel_scales.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "quantize/int4_groups.h"
#include "quantize/source.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScratchDirectory;

std::vector<float> random_numbers(size_t count, float deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

TEST(RoundToInt4, EqualsNearbyint) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-9.5F, 9.5F);
  std::vector<float> numbers = {-8.5F, -8.0F, -7.5F, -0.5F, -0.0F, 0.0F, 0.5F,  1.5F,
                                2.5F,  6.5F,  7.0F,  7.4F,  7.5F,  1e9F, -1e9F, 0.49999997F};
  for (int i = 0; i < 1000; ++i) numbers.push_back(uniform(random));
  for (const float scale : {1.0F, 0.37F, 0x1p-133F, 3e30F}) {
    std::vector<float> scaled = numbers;
    for (float& number : scaled) number *= scale;
    std::vector<float> got(scaled.size());
    round_to_int4(scaled, scale, got.data());
    for (size_t i = 0; i < scaled.size(); ++i) {
      EXPECT_EQ(got[i], std::clamp(std::nearbyint(scaled[i] / scale), -8.0F, 7.0F)) << scaled[i];
    }
  }
}

double weighted_error(const std::vector<float>& group, const std::vector<float>& importance,
                      double scale) {
  double error = 0.0;
  for (size_t i = 0; i < group.size(); ++i) {
    const double integer = std::clamp(std::nearbyint(group[i] / scale), -8.0, 7.0);
    error += importance[i] * std::pow(integer * scale - group[i], 2);
  }
  return error;
}

TEST(BestInt4Scale, ClampsUnimportantNumbers) {
  std::vector<float> group = random_numbers(32, 1.0F, 3);
  group[9] = 8.0F;
  std::array<std::byte, sizeof(float)> stored;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::vector<float> importance(group.size(), 1.0F);
    const float plain = int4_scale(group, dtype, stored.data());
    EXPECT_EQ(best_int4_scale(group, {}, dtype, stored.data()), plain);
    importance[9] = 1e-6F;
    const float scale = best_int4_scale(group, importance, dtype, stored.data());
    EXPECT_LT(scale, 0.8F * plain);
    EXPECT_LT(weighted_error(group, importance, scale), weighted_error(group, importance, plain));
    EXPECT_EQ(element_as_f32({stored.data(), dtype, {1}}, 0), scale);
    importance[9] = 1e6F;  // no smaller scale is worth a clamped number
    const float exact = best_int4_scale(group, importance, dtype, stored.data());
    EXPECT_GE(exact, 8.0F / 7.5F);
  }
}

TEST(BestInt4Scale, KeepsGroupsOfZeros) {
  const std::vector<float> zeros(16, 0.0F);
  const std::vector<float> importance(16, 1.0F);
  std::array<std::byte, sizeof(float)> stored;
  EXPECT_EQ(best_int4_scale(zeros, importance, DType::kBF16, stored.data()), 1.0F);
  const std::vector<float> tiny(16, 0x1p-133F);
  EXPECT_EQ(best_int4_scale(tiny, importance, DType::kBF16, stored.data()), 0x1p-133F);
}

// Tensors in memory.
class MapWeights final : public WeightSource {
 public:
  void add(const std::string& name, const Shape& shape, const std::vector<float>& numbers,
           DType dtype = DType::kF32) {
    Tensor tensor = Tensor::host(shape, dtype).value();
    auto* out = tensor.view.as<std::byte>();
    for (const float number : numbers) {
      store_number(number, dtype, out);
      out += dtype_bytes(dtype);
    }
    tensors_[name] = std::move(tensor);
  }
  Result<TensorView> tensor(std::string_view name, const Shape& /*expected*/) override {
    return tensors_.at(std::string(name)).view;
  }
  bool has(std::string_view name) const override { return tensors_.contains(std::string(name)); }
  std::optional<DType> dtype_of(std::string_view name) const override {
    return tensors_.at(std::string(name)).view.dtype;
  }
  void release(std::string_view /*name*/) override {}
  std::vector<std::string> names() const override { return {}; }
  std::vector<float> numbers(const std::string& name) const {
    const TensorView& view = tensors_.at(name).view;
    std::vector<float> all;
    for (int64_t i = 0; i < view.shape.num_elements(); ++i) {
      all.push_back(element_as_f32(view, i));
    }
    return all;
  }

 private:
  std::unordered_map<std::string, Tensor> tensors_;
};

TensorSpec spec(const std::string& name, const Shape& shape, float addend = 0.0F) {
  TensorSpec tensor = {name, shape, {}};
  if (shape.rank() == 1) tensor.role = VectorSpec{addend};
  return tensor;
}

constexpr int kChannels = 32;
constexpr int kGroupSize = 16;

// Inputs whose channels 3 and 20 are much larger than the other channels.
InputStatistics uneven_inputs() {
  InputStatistics inputs;
  for (int c = 0; c < kChannels; ++c) {
    const double magnitude = c == 3 ? 40.0 : c == 20 ? 15.0 : 0.5 + 0.01 * c;
    inputs.mean_magnitude.push_back(magnitude);
    inputs.mean_square.push_back(1.5 * magnitude * magnitude);
  }
  return inputs;
}

// The error of one matrix by the definition, in FP64, with scales by channel.
double reference_error(const std::vector<float>& matrix, const std::vector<double>& scales,
                       const InputStatistics& inputs) {
  double error = 0.0;
  for (size_t first = 0; first < matrix.size(); first += kGroupSize) {
    double largest = 0.0;
    const auto scaled = [&](size_t i) { return matrix[i] * scales[i % kChannels]; };
    for (size_t i = first; i < first + kGroupSize; ++i) {
      largest = std::max(largest, std::abs(scaled(i)));
    }
    const double step = largest / 7.5;
    for (size_t i = first; i < first + kGroupSize; ++i) {
      const double integer = std::clamp(std::nearbyint(scaled(i) / step), -8.0, 7.0);
      const double difference = integer * step / scales[i % kChannels] - matrix[i];
      error += inputs.mean_square[i % kChannels] * difference * difference;
    }
  }
  return error;
}

std::vector<double> reference_scales(const InputStatistics& inputs, double exponent) {
  std::vector<double> scales;
  for (const double magnitude : inputs.mean_magnitude) {
    scales.push_back(std::pow(magnitude, exponent));
  }
  const double middle = std::sqrt(std::ranges::max(scales) * std::ranges::min(scales));
  for (double& scale : scales) scale /= middle;
  return scales;
}

// Two matrices that read the output of a norm.
struct NormCase {
  MapWeights weights;
  ScaleGroup group;

  explicit NormCase(DType dtype = DType::kF32, float addend = 0.0F) {
    std::vector<float> norm = random_numbers(kChannels, 0.1F, 7);
    for (float& weight : norm) weight += 1.0F - addend;
    weights.add("norm", {kChannels}, norm, dtype);
    weights.add("q", {24, kChannels}, random_numbers(24 * kChannels, 0.05F, 8), dtype);
    weights.add("k", {8, kChannels}, random_numbers(8 * kChannels, 0.02F, 9), dtype);
    group.readers = {spec("q", {24, kChannels}), spec("k", {8, kChannels})};
    group.producers = {spec("norm", {kChannels}, addend)};
  }

  ScaleChoice choose(const InputStatistics& inputs, ChannelScales& scales, int num_threads = 2) {
    ThreadPool threads(num_threads);
    return add_group_scales(group, inputs, kGroupSize, weights, threads, scales).value();
  }
};

TEST(ChannelScales, AreTheBestOfTheExponents) {
  NormCase test;
  const InputStatistics inputs = uneven_inputs();
  double least = std::numeric_limits<double>::infinity();
  double best = -1.0;
  double plain = 0.0;
  for (int i = 0; i < kNumScaleExponents; ++i) {
    const double exponent = i / (kNumScaleExponents - 1.0);
    const std::vector<double> scales = reference_scales(inputs, exponent);
    const double error = reference_error(test.weights.numbers("q"), scales, inputs) +
                         reference_error(test.weights.numbers("k"), scales, inputs);
    if (i == 0) plain = error;
    if (error < least) {
      least = error;
      best = exponent;
    }
  }
  ASSERT_GT(best, 0.0);
  ASSERT_LT(least, 0.9 * plain);
  ChannelScales scales;
  const ScaleChoice choice = test.choose(inputs, scales);
  EXPECT_EQ(choice.exponent, best);
  EXPECT_NEAR(choice.plain_error, plain, 0.01 * plain);
  EXPECT_NEAR(choice.error, least, 0.01 * least);
  const std::vector<double> expected = reference_scales(inputs, best);
  ASSERT_EQ(scales.at("q").columns.size(), expected.size());
  for (size_t c = 0; c < expected.size(); ++c) {
    EXPECT_NEAR(scales.at("q").columns[c], expected[c], 1e-5 * expected[c]);
    EXPECT_NEAR(scales.at("norm").divisors[c], expected[c], 1e-5 * expected[c]);
  }
  EXPECT_EQ(scales.at("k").columns, scales.at("q").columns);
}

TEST(ChannelScales, DoNotDependOnThreads) {
  ChannelScales one;
  ChannelScales three;
  NormCase().choose(uneven_inputs(), one, 1);
  NormCase().choose(uneven_inputs(), three, 3);
  EXPECT_EQ(identity_of(one), identity_of(three));
  three.at("q").columns[5] = std::nextafter(three.at("q").columns[5], 1e9F);
  EXPECT_NE(identity_of(one), identity_of(three));
}

TEST(ChannelScales, EvenInputsAreRoundedPlainly) {
  NormCase test;
  InputStatistics inputs;
  for (const double magnitude : {0.0, 2.0}) {
    inputs.mean_magnitude.assign(kChannels, magnitude);
    inputs.mean_square.assign(kChannels, magnitude * magnitude);
    ChannelScales scales;
    const ScaleChoice choice = test.choose(inputs, scales);
    EXPECT_EQ(choice.exponent, 0.0);
    EXPECT_EQ(choice.error, choice.plain_error);
    EXPECT_TRUE(scales.at("q").columns.empty());
    EXPECT_EQ(find_scales(scales, "norm"), nullptr);
  }
}

// A norm is stored in few bits, and its rounding must not change the function: its number times a
// scale is the number before, to the precision of a float.
TEST(ChannelScales, ANormAbsorbsThemDespiteItsRounding) {
  for (const float addend : {0.0F, 1.0F}) {
    NormCase test(DType::kBF16, addend);
    ChannelScales scales;
    ASSERT_GT(test.choose(uneven_inputs(), scales).exponent, 0.0);
    const std::vector<float> before = test.weights.numbers("norm");
    std::vector<float> after = before;
    scales.at("norm").scale_vector(after);
    for (size_t c = 0; c < before.size(); ++c) {
      const float stored = bf16_to_f32(f32_to_bf16(after[c]));
      const float product = (stored + addend) * scales.at("q").columns[c];
      EXPECT_NEAR(product, before[c] + addend, 1e-6F) << c;
    }
  }
}

// A weight of zero, and one that is no longer a number once it is scaled, keep the scale 1.
TEST(ChannelScales, ANormKeepsNumbersThatItsTypeCannotScale) {
  NormCase test(DType::kF16);
  std::vector<float> norm(kChannels, 1.0F);
  norm[3] = 0.0F;
  norm[4] = 65504.0F;  // its scale is below 1
  test.weights.add("norm", {kChannels}, norm, DType::kF16);
  ChannelScales scales;
  ASSERT_GT(test.choose(uneven_inputs(), scales).exponent, 0.0);
  EXPECT_EQ(scales.at("q").columns[3], 1.0F);
  EXPECT_EQ(scales.at("q").columns[4], 1.0F);
  EXPECT_NE(scales.at("q").columns[5], 1.0F);
  scales.at("norm").scale_vector(norm);
  EXPECT_EQ(norm[3], 0.0F);
  EXPECT_EQ(norm[4], 65504.0F);
}

// Query heads 0 and 1 read KV head 0, and 2 and 3 read KV head 1.
TEST(ChannelScales, QueryHeadsOfAKvHeadShareThem) {
  constexpr int kHeadDim = kChannels / 4;
  MapWeights weights;
  weights.add("v", {2 * kHeadDim, 16}, random_numbers(2 * kHeadDim * 16, 0.1F, 4));
  weights.add("v_bias", {2 * kHeadDim}, random_numbers(2 * kHeadDim, 0.1F, 5));
  weights.add("o", {24, kChannels}, random_numbers(24 * kChannels, 0.05F, 6));
  ScaleGroup group;
  group.readers = {spec("o", {24, kChannels})};
  group.producers = {spec("v", {2 * kHeadDim, 16}), spec("v_bias", {2 * kHeadDim})};
  group.head_dim = kHeadDim;
  group.heads_per_producer = 2;
  EXPECT_EQ(group.producer_row(kHeadDim + 3), 3);
  EXPECT_EQ(group.producer_row(2 * kHeadDim + 3), kHeadDim + 3);
  ThreadPool threads(1);
  ChannelScales scales;
  const ScaleChoice choice =
      add_group_scales(group, uneven_inputs(), kGroupSize, weights, threads, scales).value();
  ASSERT_GT(choice.exponent, 0.0);
  EXPECT_LT(choice.error, choice.plain_error);
  const std::vector<float>& columns = scales.at("o").columns;
  const std::vector<float>& rows = scales.at("v").divisors;
  EXPECT_EQ(scales.at("v_bias").divisors, rows);
  for (int c = 0; c < kChannels; ++c) {
    EXPECT_EQ(columns[c], rows[c % kHeadDim + c / (2 * kHeadDim) * kHeadDim]) << c;
  }
}

// The rows of F16 whose scales would become too small or too large keep numbers of 8 bits.
TEST(ChannelScales, AProducerStaysInItsType) {
  MapWeights weights;
  std::vector<float> up = random_numbers(kChannels * 16, 1.0F, 4);
  std::fill_n(up.begin() + 3 * 16, 16, 0x1p-20F);  // row 3, whose scale is above 1
  std::fill_n(up.begin() + 5 * 16, 16, 65504.0F);  // row 5, whose scale is below 1
  weights.add("up", {kChannels, 16}, up, DType::kF16);
  weights.add("up_bias", {kChannels}, std::vector<float>(kChannels, 60000.0F), DType::kF16);
  weights.add("down", {24, kChannels}, random_numbers(24 * kChannels, 0.05F, 6), DType::kF16);
  ScaleGroup group;
  group.readers = {spec("down", {24, kChannels})};
  group.producers = {spec("up", {kChannels, 16}), spec("up_bias", {kChannels})};
  ThreadPool threads(1);
  ChannelScales scales;
  ASSERT_GT(add_group_scales(group, uneven_inputs(), kGroupSize, weights, threads, scales)
                .value()
                .exponent,
            0.0);
  const std::vector<float>& rows = scales.at("up").divisors;
  EXPECT_EQ(rows[3], 1.0F);
  for (const float row : rows) EXPECT_GE(row, 60000.0F / 65504.0F);
  EXPECT_GT(rows[20], 1.0F);
}

TEST(ChannelScales, NameAWeightThatIsNotFinite) {
  NormCase test;
  std::vector<float> numbers = test.weights.numbers("k");
  numbers[kChannels + 2] = std::nanf("");
  test.weights.add("k", {8, kChannels}, numbers);
  ThreadPool threads(2);
  ChannelScales scales;
  const auto choice =
      add_group_scales(test.group, uneven_inputs(), kGroupSize, test.weights, threads, scales);
  EXPECT_THAT(choice.status().message(),
              HasSubstr("tensor \"k\": element 2 of row 1; got nan, expected a finite number"));
}

// A source of a family, from its golden checkpoint.
QuantizeSource family_source(const std::string& family, const ScratchDirectory& scratch) {
  const fs::path golden = testing::source_path("tests/golden/models") / family;
  scratch.copy(golden / "default.config.json", "config.json");
  scratch.copy(golden / "model.safetensors", "model.safetensors");
  return open_quantize_source(scratch.path().string()).value();
}

TEST(ScaleGroups, CoverEveryMatrixOfEveryFamily) {
  for (const std::string family :
       {"llama", "llama_tied_biased", "qwen2", "qwen3", "gemma2", "gemma3"}) {
    const ScratchDirectory scratch;
    const QuantizeSource source = family_source(family, scratch);
    const auto groups = find_scale_groups(source.tensors, source.decoder());
    EXPECT_EQ(groups.size(), 4U * static_cast<size_t>(source.files.config.num_layers)) << family;
    EXPECT_THAT(unscaled_matrices(source.tensors, groups), ::testing::IsEmpty()) << family;
    ASSERT_GE(groups.size(), 4U);
    const bool is_gemma = family.starts_with("gemma");
    EXPECT_EQ(groups[2].producers[0].name,
              fmt::format("model.layers.0.{}_layernorm.weight",
                          is_gemma ? "pre_feedforward" : "post_attention"));
    const auto& norm = std::get<VectorSpec>(groups[2].producers[0].role);
    EXPECT_EQ(norm.addend, is_gemma ? 1.0F : 0.0F);
    for (const ScaleGroup& group : groups) {
      EXPECT_EQ(group.producer_row(group.num_channels() - 1), group.producers.front().shape[0] - 1);
    }
  }
}

TEST(ScaleGroups, LeaveOutMatricesWithoutAProducer) {
  const ScratchDirectory scratch;
  QuantizeSource source = family_source("llama", scratch);
  std::erase_if(source.tensors, [](const TensorSpec& tensor) {
    return tensor.name == "model.layers.1.input_layernorm.weight";
  });
  const auto groups = find_scale_groups(source.tensors, source.decoder());
  EXPECT_THAT(unscaled_matrices(source.tensors, groups),
              ElementsAre("model.layers.1.self_attn.q_proj.weight",
                          "model.layers.1.self_attn.k_proj.weight",
                          "model.layers.1.self_attn.v_proj.weight"));
}

}  // namespace
}  // namespace quire

// The cases that the tests of routing and of experts share on every device: routing rules, random
// matrices of experts, and steps whose tokens are unevenly divided among the experts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "ops/expert_ops.h"
#include "tensor/dtype.h"

namespace quire::testing {

struct RoutingCase {
  const char* name;
  ExpertRouting routing;
  bool has_bias = false;
};

inline constexpr RoutingCase kRoutingCases[] = {
    {"Mixtral", {.num_experts = 8, .top_k = 2, .renormalize = true}},
    {"Qwen3-MoE", {.num_experts = 128, .top_k = 8, .renormalize = true}},
    {"Qwen3-MoE without norm_topk_prob", {.num_experts = 128, .top_k = 8}},
    {"DeepSeek-V2-Lite", {.num_experts = 64, .top_k = 6}},
    {"DeepSeek-V2",
     {.num_experts = 160, .top_k = 6, .num_groups = 8, .top_groups = 3, .scale = 16.0F}},
    {"DeepSeek-V3",
     {.num_experts = 256,
      .top_k = 8,
      .scores = RouterScores::kSigmoid,
      .num_groups = 8,
      .top_groups = 4,
      .group_scores = GroupScores::kTwoLargest,
      .renormalize = true,
      .scale = 2.5F},
     true},
    {"ERNIE-4.5", {.num_experts = 64, .top_k = 6, .renormalize = true}, true},
    {"Hy3",
     {.num_experts = 192,
      .top_k = 8,
      .scores = RouterScores::kSigmoid,
      .renormalize = true,
      .scale = 2.826F},
     true},
    {"biased softmax", {.num_experts = 12, .top_k = 5, .renormalize = true, .scale = 0.5F}, true},
    {"DeepSeek-V2-Lite with its shared experts", {.num_experts = 64, .top_k = 6, .num_shared = 2}},
    {"every expert", {.num_experts = 5, .top_k = 5}},
    {"one expert", {.num_experts = 1, .top_k = 1}},
    {"the most experts",
     {.num_experts = kMaxExperts, .top_k = 40, .scores = RouterScores::kSigmoid}},
};

inline std::vector<float> normal_floats(size_t count, uint32_t seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

// Random matrices in memory: F32, F16 or BF16, or E4M3 with a scale per row.
class RandomExperts : public ExpertsSource {
 public:
  // fp8_scheme: the scheme of E4M3 values.
  RandomExperts(const ExpertsShape& shape, DType dtype, uint32_t seed,
                const WeightScheme& fp8_scheme = {.values = DType::kF8E4M3,
                                                  .scales = ScaleLayout::kRows})
      : shape_(shape), dtype_(dtype), fp8_scheme_(fp8_scheme) {
    for (int i = 0; i < shape.num_experts; ++i) {
      const auto idx = static_cast<uint32_t>(i);
      add(2 * shape.intermediate_size, shape.hidden_size, seed + 2 * idx);
      add(shape.hidden_size, shape.intermediate_size, seed + 2 * idx + 1);
    }
  }

  const ExpertsShape& shape() const override { return shape_; }
  Result<LinearSource> gate_up(int idx) override { return source(2 * idx); }
  Result<LinearSource> down(int idx) override { return source(2 * idx + 1); }

  // Adds biases to all matrices. With several ranks, only the first has those of down.
  void add_biases(uint32_t seed, bool has_down = true) {
    for (size_t i = 0; i < matrices_.size(); ++i) {
      Matrix& matrix = matrices_[i];
      matrix.bias =
          normal_floats(static_cast<size_t>(matrix.shape[0]), seed + static_cast<uint32_t>(i));
      matrix.has_bias_data = has_down || i % 2 == 0;
    }
  }

  // Makes one value too large for pairs of F16 (amx/kernel.h), so that the matrix has another
  // kernel than the others.
  void enlarge(int expert) {
    const uint16_t large = f32_to_f16(40.0F);
    std::memcpy(matrices_[static_cast<size_t>(2 * expert)].bytes.data(), &large, sizeof(large));
  }

 private:
  struct Matrix {
    Shape shape;
    std::vector<std::byte> bytes;
    std::vector<float> scales;  // of E4M3
    std::vector<float> bias = {};
    bool has_bias_data = true;
  };

  void add(int64_t rows, int64_t columns, uint32_t seed) {
    constexpr float kFp8Scale = 64.0F;  // keeps most values above E4M3's subnormals
    const bool is_fp8 = dtype_ == DType::kF8E4M3;
    const auto count = static_cast<size_t>(rows * columns);
    Matrix matrix = {.shape = {rows, columns}, .bytes = {}, .scales = {}};
    matrix.bytes.resize(count * dtype_bytes(dtype_));
    const float scale = (is_fp8 ? kFp8Scale : 1.0F) / std::sqrt(static_cast<float>(columns));
    const std::vector<float> values = normal_floats(count, seed, scale);
    for (size_t i = 0; i < count; ++i) write(values[i], matrix.bytes.data(), i);
    if (is_fp8) {
      const int64_t num_scales = scales_shape(fp8_scheme_, matrix.shape).num_elements();
      matrix.scales = normal_floats(static_cast<size_t>(num_scales), seed + 1, 0.25F);
      for (float& number : matrix.scales) number = (1.0F + std::fabs(number)) / kFp8Scale;
    }
    matrices_.push_back(std::move(matrix));
  }

  void write(float value, std::byte* to, size_t i) const {
    if (dtype_ == DType::kF32) {
      std::memcpy(to + 4 * i, &value, 4);
    } else if (dtype_ == DType::kF8E4M3) {
      to[i] = std::byte{f32_to_e4m3(value)};
    } else {
      const uint16_t half = dtype_ == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(to + 2 * i, &half, 2);
    }
  }

  Result<LinearSource> source(int idx) {
    Matrix& matrix = matrices_[static_cast<size_t>(idx)];
    const TensorView values = {matrix.bytes.data(), dtype_, matrix.shape};
    view_ = WeightView(values);
    if (dtype_ == DType::kF8E4M3) {
      const Shape shape = scales_shape(fp8_scheme_, matrix.shape);
      view_ = WeightView(values, {matrix.scales.data(), DType::kF32, shape}, fp8_scheme_);
    }
    LinearSource linear = {.numbers = StoredMatrices{{&view_, 1}}};
    if (!matrix.bias.empty()) {
      bias_ = {matrix.has_bias_data ? matrix.bias.data() : nullptr, DType::kF32, {matrix.shape[0]}};
      linear.biases = {&bias_, 1};
    }
    return linear;
  }

  ExpertsShape shape_;
  DType dtype_;
  WeightScheme fp8_scheme_;
  std::vector<Matrix> matrices_;
  WeightView view_;
  TensorView bias_;
};

// The tokens of a step, and their experts.
struct Step {
  std::vector<float> x;  // [num_tokens, hidden_size]
  std::vector<int32_t> ids;
  std::vector<float> weights;
  int64_t num_tokens = 0;
  Activation activation = Activation::kSilu;
};

// `hot` of 10 tokens have expert 1 first; the last expert has no token if there are enough others.
inline Step random_step(const ExpertsShape& shape, int64_t num_tokens, uint32_t seed,
                        uint32_t hot = 0) {
  Step step;
  step.num_tokens = num_tokens;
  step.x = normal_floats(static_cast<size_t>(num_tokens * shape.hidden_size), seed);
  step.weights = normal_floats(static_cast<size_t>(num_tokens * shape.top_k), seed + 1);
  std::mt19937 random(seed);
  std::vector<int32_t> experts(static_cast<size_t>(shape.num_experts));
  for (int64_t t = 0; t < num_tokens; ++t) {
    std::iota(experts.begin(), experts.end(), 0);
    const int64_t num_used = std::max<int64_t>(shape.num_experts - 1, shape.top_k);
    std::shuffle(experts.begin(), experts.begin() + num_used, random);
    if (random() % 10 < hot) std::swap(*std::ranges::find(experts, 1), experts.front());
    step.ids.insert(step.ids.end(), experts.begin(), experts.begin() + shape.top_k);
  }
  return step;
}

// The tokens [first, first + count) of a step.
inline Step part_of(const Step& whole, const ExpertsShape& shape, int64_t first, int64_t count) {
  Step part;
  part.num_tokens = count;
  part.activation = whole.activation;
  const auto copy = [&](const auto& from, auto& to, int64_t width) {
    to.assign(from.begin() + first * width, from.begin() + (first + count) * width);
  };
  copy(whole.x, part.x, shape.hidden_size);
  copy(whole.ids, part.ids, shape.top_k);
  copy(whole.weights, part.weights, shape.top_k);
  return part;
}

}  // namespace quire::testing

// Experts in quantized blocks against their definition in double, with every kernel that this
// machine can run.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "cpu/ops/gemm_quantized.h"
#include "quantized_ops.h"
#include "run_experts.h"
#include "support/expert_cases.h"
#include "support/gguf_quantization.h"

namespace quire::testing {
namespace {

using cpu::quantized_kernels;
using cpu::QuantizedKernel;

// A matrix of random numbers in blocks, and the numbers that the blocks stand for.
struct BlockNumbers {
  const GgufBlockType* type;
  Shape shape;
  std::string bytes;
  std::vector<float> values;

  BlockNumbers(const GgufBlockType& type_, int64_t rows, int64_t columns, uint32_t seed)
      : type(&type_), shape{rows, columns} {
    const float scale = 1.0F / std::sqrt(static_cast<float>(columns));
    bytes = quantize(*type, normal_floats(static_cast<size_t>(rows * columns), seed, scale));
    values.resize(static_cast<size_t>(rows * columns));
    const auto* block = reinterpret_cast<const std::byte*>(bytes.data());
    for (int64_t at = 0; at < rows * columns; at += type->block_elements) {
      dequantize(*type, block, values.data() + at);
      block += type->block_bytes;
    }
  }

  BlockMatrix view() const {
    BlockMatrix view;
    view.type = type;
    view.bytes = reinterpret_cast<const std::byte*>(bytes.data());
    view.shape = shape;
    return view;
  }
};

// Experts whose gates and ups are of two types, as those of llama.cpp's mixed files may be. Experts
// of MXFP4 are those of gpt-oss: they have biases, and limits of gates and ups.
class BlockExperts final : public ExpertsSource {
 public:
  BlockExperts(const ExpertsShape& shape, const GgufBlockType& gate, const GgufBlockType& up,
               const GgufBlockType& down)
      : shape_(shape), is_gpt_oss_(gate.is_mxfp4) {
    for (int i = 0; i < shape.num_experts; ++i) {
      const auto seed = static_cast<uint32_t>(3 * i);
      if (is_gpt_oss_) {
        const auto inner = static_cast<size_t>(shape.intermediate_size);
        for (const uint32_t part : {0U, 1U, 2U}) {
          const size_t rows = part < 2 ? inner : static_cast<size_t>(shape.hidden_size);
          biases_.push_back(normal_floats(rows, 1000 + seed + part, 3.0F));
        }
      }
      gates_.emplace_back(gate, shape.intermediate_size, shape.hidden_size, seed);
      ups_.emplace_back(up, shape.intermediate_size, shape.hidden_size, seed + 1);
      downs_.emplace_back(down, shape.hidden_size, shape.intermediate_size, seed + 2);
    }
  }

  const ExpertsShape& shape() const override { return shape_; }
  Activation activation() const {
    return is_gpt_oss_ ? Activation::kClampedSwiglu : Activation::kSilu;
  }
  Result<LinearSource> gate_up(int idx) override {
    return source({at(gates_, idx).view(), at(ups_, idx).view()}, 3 * idx);
  }
  Result<LinearSource> down(int idx) override {
    return source({at(downs_, idx).view()}, 3 * idx + 2);
  }

  // The output of one expert for a row, in double.
  std::vector<double> output(int expert, const float* x) const {
    const std::vector<double> input(x, x + shape_.hidden_size);
    std::vector<double> product = multiply(at(gates_, expert), input);
    const std::vector<double> up = multiply(at(ups_, expert), input);
    for (size_t i = 0; i < product.size(); ++i) {
      product[i] = is_gpt_oss_
                       ? clamped(product[i] + bias(3 * expert, i), up[i] + bias(3 * expert + 1, i))
                       : product[i] * up[i] / (1.0 + std::exp(-product[i]));
    }
    std::vector<double> out = multiply(at(downs_, expert), product);
    for (size_t i = 0; i < out.size(); ++i) out[i] += bias(3 * expert + 2, i);
    return out;
  }

 private:
  static const BlockNumbers& at(const std::vector<BlockNumbers>& all, int idx) {
    return all[static_cast<size_t>(idx)];
  }
  static double clamped(double gate, double up) {
    const double g = std::min(gate, 7.0);
    return (std::clamp(up, -7.0, 7.0) + 1.0) * g / (1.0 + std::exp(-1.702 * g));
  }
  double bias(int idx, size_t row) const {
    return biases_.empty() ? 0.0 : biases_[static_cast<size_t>(idx)][row];
  }
  Result<LinearSource> source(std::vector<BlockMatrix> blocks, int first_bias) {
    blocks_ = std::move(blocks);
    bias_views_.clear();
    for (size_t i = 0; is_gpt_oss_ && i < blocks_.size(); ++i) {
      std::vector<float>& bias = biases_[static_cast<size_t>(first_bias) + i];
      bias_views_.push_back({bias.data(), DType::kF32, {std::ssize(bias)}});
    }
    return LinearSource{.numbers = MatricesInBlocks{blocks_}, .biases = bias_views_};
  }
  static std::vector<double> multiply(const BlockNumbers& w, const std::vector<double>& x) {
    std::vector<double> out;
    for (int64_t row = 0; row < w.shape[0]; ++row) {
      double sum = 0;
      for (size_t k = 0; k < x.size(); ++k) {
        sum += x[k] * static_cast<double>(w.values[static_cast<size_t>(row) * x.size() + k]);
      }
      out.push_back(sum);
    }
    return out;
  }

  ExpertsShape shape_;
  std::vector<BlockNumbers> gates_;
  std::vector<BlockNumbers> ups_;
  std::vector<BlockNumbers> downs_;
  std::vector<BlockMatrix> blocks_;
  bool is_gpt_oss_;
  std::vector<std::vector<float>> biases_;  // by expert: of gate, up and down
  std::vector<TensorView> bias_views_;
};

// Bounds the error by the largest outputs of a row's experts, which may cancel out: a rounded input
// is off by up to half a unit of its 16 or 8 bits, and these errors add up over two products.
void expect_outputs(const BlockExperts& source, const Step& step, const std::vector<float>& got,
                    double bound, const std::string& what) {
  const auto hidden = static_cast<size_t>(source.shape().hidden_size);
  const auto top_k = static_cast<size_t>(source.shape().top_k);
  for (size_t t = 0; t < static_cast<size_t>(step.num_tokens); ++t) {
    std::vector<double> expected(hidden);
    double magnitude = 0;
    for (size_t j = t * top_k; j < (t + 1) * top_k; ++j) {
      const auto weight = static_cast<double>(step.weights[j]);
      double most = 0;
      const std::vector<double> output = source.output(step.ids[j], step.x.data() + t * hidden);
      for (size_t i = 0; i < hidden; ++i) {
        expected[i] += weight * output[i];
        most = std::max(most, std::abs(output[i]));
      }
      magnitude += std::abs(weight) * most;
    }
    for (size_t i = 0; i < hidden; ++i) {
      ASSERT_NEAR(got[t * hidden + i], expected[i], bound * magnitude)
          << what << " at " << t << "," << i;
    }
  }
}

constexpr double kBoundOf16Bits = 2e-4;
constexpr double kBoundOf8Bits = 5e-2;

struct Types {
  const char* gate;
  const char* up;
  const char* down;
};
constexpr Types kTypes[] = {{"Q8_0", "Q8_0", "Q8_0"},
                            {"Q4_0", "Q4_0", "Q4_0"},
                            {"Q4_K", "Q4_K", "Q6_K"},
                            {"Q6_K", "Q4_K", "Q8_0"},
                            {"MXFP4", "MXFP4", "MXFP4"}};

TEST(QuantizedExperts, AgreeWithTheDefinition) {
  const ExpertsShape shapes[] = {{1, 1, 256, 256}, {5, 2, 256, 512}, {20, 4, 512, 256}};
  for (const ExpertsShape& shape : shapes) {
    for (const auto& [gate, up, down] : kTypes) {
      BlockExperts source(shape, gguf_type(gate), gguf_type(up), gguf_type(down));
      for (const InputRounding rounding : {InputRounding::kNone, InputRounding::kInt8}) {
        const double bound = rounding == InputRounding::kNone ? kBoundOf16Bits : kBoundOf8Bits;
        for (const int64_t num_tokens : {0, 1, 19}) {
          Step step = random_step(shape, num_tokens, 5);
          step.activation = source.activation();
          std::vector<float> first;
          for (const QuantizedKernel& kernel : quantized_kernels()) {
            QuantizedOps ops(kernel.name, rounding);
            const auto experts = ops.ops->weights().make_experts(source).value();
            const std::vector<float> out = run_experts(*ops.ops, *experts, step);
            const std::string what = std::string(kernel.name) + " " + gate + " " + down;
            expect_outputs(source, step, out, bound, what);
            if (first.empty()) first = out;
            if (out.empty()) continue;
            ASSERT_EQ(std::memcmp(out.data(), first.data(), out.size() * sizeof(float)), 0) << what;
          }
        }
      }
    }
  }
}

// Rows of 32 elements are less than a block of activations, and the features do not fill a panel.
TEST(QuantizedExperts, MayHaveIncompleteBlocksAndPanels) {
  const ExpertsShape shape = {4, 2, 96, 32};
  BlockExperts source(shape, gguf_type("Q8_0"), gguf_type("Q4_0"), gguf_type("Q8_0"));
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    QuantizedOps ops(kernel.name);
    const auto experts = ops.ops->weights().make_experts(source).value();
    for (const int64_t num_tokens : {1, 2, 33}) {
      Step step = random_step(shape, num_tokens, 3);
      expect_outputs(source, step, run_experts(*ops.ops, *experts, step), kBoundOf16Bits,
                     std::string(kernel.name));
    }
  }
}

// The width of gpt-oss is 90 groups of 32, and not a multiple of a block of activations.
TEST(QuantizedExperts, MayHaveTheWidthOfGptOss) {
  const GgufBlockType& type = gguf_type("MXFP4");
  for (const ExpertsShape& shape : {ExpertsShape{3, 2, 2880, 96}, ExpertsShape{3, 2, 96, 2880}}) {
    BlockExperts source(shape, type, type, type);
    for (const QuantizedKernel& kernel : quantized_kernels()) {
      QuantizedOps ops(kernel.name);
      const auto experts = ops.ops->weights().make_experts(source).value();
      for (const int64_t num_tokens : {1, 40}) {
        Step step = random_step(shape, num_tokens, 3);
        step.activation = source.activation();
        expect_outputs(source, step, run_experts(*ops.ops, *experts, step), kBoundOf16Bits,
                       std::string(kernel.name));
      }
    }
  }
}

// Experts keep their blocks: their numbers in F16 would take twice or 3.6 times as much memory.
TEST(QuantizedExperts, TakeTheMemoryOfTheirBlocks) {
  const ExpertsShape shape = {4, 2, 512, 256};
  for (const auto& [gate, up, down] : kTypes) {
    BlockExperts source(shape, gguf_type(gate), gguf_type(up), gguf_type(down));
    QuantizedOps ops({});
    size_t num_bytes = 0;
    const auto add = [&](const LinearSource& matrices) {
      for (const TensorView& bias : matrices.biases) num_bytes += bias.num_bytes();
      for (const BlockMatrix& matrix : std::get<MatricesInBlocks>(matrices.numbers).each) {
        num_bytes +=
            static_cast<size_t>(ops.ops->weights().quantized_bytes({matrix.shape, matrix.type}));
      }
    };
    for (int i = 0; i < shape.num_experts; ++i) {
      add(source.gate_up(i).value());
      add(source.down(i).value());
    }
    EXPECT_EQ(ops.ops->weights().make_experts(source).value()->num_bytes(), num_bytes)
        << gate << " " << down;
  }
}

// One expert has more rows than a block, the last one none.
TEST(QuantizedExperts, OneMayHaveAlmostAllTokens) {
  const ExpertsShape shape = {6, 2, 64, 32};
  BlockExperts source(shape, gguf_type("Q8_0"), gguf_type("Q8_0"), gguf_type("Q4_0"));
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    QuantizedOps ops(kernel.name);
    const auto experts = ops.ops->weights().make_experts(source).value();
    for (const uint32_t hot : {9U, 10U}) {
      Step step = random_step(shape, 600, hot, hot);
      expect_outputs(source, step, run_experts(*ops.ops, *experts, step), kBoundOf16Bits,
                     std::string(kernel.name));
    }
  }
}

// A token has the same bits alone and in a batch of any size, on one thread or several.
TEST(QuantizedExperts, RowsDoNotDependOnTheirBatch) {
  const ExpertsShape shape = {12, 3, 256, 96};
  constexpr int64_t kNumTokens = 400;
  const Step whole = random_step(shape, kNumTokens, 11, 7);
  BlockExperts source(shape, gguf_type("Q4_K"), gguf_type("Q6_K"), gguf_type("Q8_0"));
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    std::vector<float> all;
    for (const auto& nodes : {std::vector{0}, {0, 0}, {0, 1, 0, 1, 1}}) {
      QuantizedOps ops(kernel.name, InputRounding::kNone, on_nodes(nodes));
      const auto experts = ops.ops->weights().make_experts(source).value();
      Step step = whole;
      const std::vector<float> out = run_experts(*ops.ops, *experts, step);
      if (all.empty()) all = out;
      ASSERT_EQ(std::memcmp(out.data(), all.data(), all.size() * sizeof(float)), 0) << kernel.name;
      expect_bits_of_parts(*ops.ops, *experts, whole, all, std::string(kernel.name));
    }
  }
}

}  // namespace
}  // namespace quire::testing

// Products with the quantized types of GGUF files, with every kernel that this machine can run.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>

#include "cpu/ops/gemm_quantized.h"
#include "quantized_ops.h"
#include "support/quantized_matrices.h"
#include "tensor/dtype.h"
#include "tensor/gguf_blocks.h"

namespace quire::testing {
namespace {

using cpu::quantized_kernels;
using cpu::QuantizedKernel;

std::unique_ptr<Linear> make_linear(QuantizedOps& ops, const std::vector<const GgufMatrix*>& parts,
                                    std::vector<float>* bias = nullptr) {
  std::vector<BlockMatrix> blocks;
  std::vector<int64_t> num_rows;
  for (const GgufMatrix* part : parts) {
    blocks.push_back(part->view());
    num_rows.push_back(part->n);
  }
  return ops.make({.numbers = MatricesInBlocks{blocks}}, num_rows, bias).value();
}

// Computes the product in double. An output's error is at most the error of rounding activations
// plus, relative to the terms of the sum, the error of F32.
void expect_product(const GgufMatrix& w, const std::vector<float>& x, int64_t num_rows,
                    const std::vector<float>& bias, const std::vector<float>& out,
                    InputRounding rounding, const std::string& what) {
  for (int64_t t = 0; t < num_rows; ++t) {
    const std::vector<double> errors = rounding_errors(x.data() + t * w.k, w.k, {}, rounding);
    for (int64_t n = 0; n < w.n; ++n) {
      double sum = bias.empty() ? 0.0 : static_cast<double>(bias[static_cast<size_t>(n)]);
      double bound = 1e-6 + 1e-6 * std::fabs(sum);
      for (int64_t k = 0; k < w.k; ++k) {
        const auto x_k = static_cast<double>(x[static_cast<size_t>(t * w.k + k)]);
        const auto at = static_cast<size_t>(n * w.k + k);
        sum += x_k * static_cast<double>(w.values[at]);
        bound += errors[static_cast<size_t>(k)] * std::fabs(static_cast<double>(w.values[at])) +
                 1e-6 * std::fabs(x_k) * static_cast<double>(w.magnitudes[at]);
      }
      ASSERT_NEAR(out[static_cast<size_t>(t * w.n + n)], sum, bound)
          << what << " rows=" << num_rows << " n=" << w.n << " k=" << w.k << " at " << t << ","
          << n;
    }
  }
}

TEST(QuantizedLinear, AgreesWithTheDefinitionForEveryType) {
  for (const GgufBlockType& type : quantized_types()) {
    const int64_t block = type.block_elements;
    const int64_t shapes[][2] = {
        {1, block}, {31, 2 * block}, {32, 3 * block}, {33, 9 * block}, {70, block}};
    for (const auto& [n, k] : shapes) {
      const GgufMatrix w = random_matrix(type, n, k, static_cast<uint32_t>(n * 1000 + k));
      std::vector<float> bias = random_floats(static_cast<size_t>(n), 5);
      for (const InputRounding rounding : {InputRounding::kNone, InputRounding::kInt8}) {
        for (const int64_t num_rows : {0, 1, 2, 3, 5, 7, 13, 16, 33}) {
          std::vector<float> x = random_floats(static_cast<size_t>(num_rows * k), 9);
          std::vector<float> first_out;
          for (const QuantizedKernel& kernel : quantized_kernels()) {
            QuantizedOps ops(kernel.name, rounding);
            const std::unique_ptr<Linear> linear = make_linear(ops, {&w}, &bias);
            const std::vector<float> out = ops.run(*linear, x, num_rows);
            expect_product(w, x, num_rows, bias, out, rounding,
                           std::string(kernel.name) + " " + type.name);
            if (out.empty()) continue;
            if (first_out.empty()) first_out = out;
            ASSERT_EQ(std::memcmp(out.data(), first_out.data(), out.size() * sizeof(float)), 0)
                << kernel.name << " computes other bits than " << quantized_kernels()[0].name;
          }
        }
      }
    }
  }
}

TEST(QuantizedLinear, EmbedsTheNumbersThatTheBlocksStandFor) {
  QuantizedOps ops({});
  for (const GgufBlockType& type : quantized_types()) {
    const GgufMatrix w = random_matrix(type, 45, 3 * type.block_elements, 17);
    const std::unique_ptr<Linear> linear = make_linear(ops, {&w});
    EXPECT_EQ(linear->in_features(), w.k);
    EXPECT_EQ(linear->out_features(), w.n);
    const int32_t ids[] = {44, 0, 31, 32};
    std::vector<float> out(static_cast<size_t>(4 * w.k));
    ops.ops->embed(*linear, ids, 1.0F, matrix(out, 4, w.k));
    for (size_t i = 0; i < out.size(); ++i) {
      const auto row = static_cast<size_t>(ids[i / static_cast<size_t>(w.k)]);
      ASSERT_EQ(out[i], w.values[row * static_cast<size_t>(w.k) + i % static_cast<size_t>(w.k)])
          << type.name << " at " << i;
    }
  }
}

// The matrices stand for q, k and v in a file whose v has another type. They end within panels.
TEST(QuantizedLinear, StacksMatricesOfSeveralTypes) {
  const auto type_of = [](uint32_t id) { return *find_gguf_block_type(id); };
  const GgufMatrix q = random_matrix(type_of(12), 40, 512, 1);  // Q4_K
  const GgufMatrix k = random_matrix(type_of(8), 33, 512, 2);   // Q8_0
  const GgufMatrix v = random_matrix(type_of(14), 7, 512, 3);   // Q6_K
  std::vector<float> bias = random_floats(80, 4);
  std::vector<float> x = random_floats(3 * 512, 6);
  QuantizedOps ops({});
  const std::unique_ptr<Linear> linear = make_linear(ops, {&q, &k, &v}, &bias);
  ASSERT_EQ(linear->out_features(), 80);
  const std::vector<float> out = ops.run(*linear, x, 3);
  int64_t first = 0;
  for (const GgufMatrix* part : {&q, &k, &v}) {
    std::vector<float> part_out;
    for (int64_t t = 0; t < 3; ++t) {
      const auto from = out.begin() + t * 80 + first;
      part_out.insert(part_out.end(), from, from + part->n);
    }
    const std::vector<float> part_bias(bias.begin() + first, bias.begin() + first + part->n);
    expect_product(*part, x, 3, part_bias, part_out, InputRounding::kNone, part->type.name);
    first += part->n;
  }
}

TEST(QuantizedLinear, RowsDoNotDependOnTheirBatch) {
  for (const GgufBlockType& type : quantized_types()) {
    const GgufMatrix w = random_matrix(type, 70, 1280, 3);
    expect_bits_without_batch([&](QuantizedOps& ops) { return make_linear(ops, {&w}); }, type.name);
  }
}

TEST(QuantizedLinear, AnInfinityOrNanStaysInItsRow) {
  const GgufMatrix w = random_matrix(*find_gguf_block_type(12), 64, 512, 3);
  expect_infinity_stays_in_its_row([&](QuantizedOps& ops) { return make_linear(ops, {&w}); });
}

TEST(QuantizedLinear, ZerosAndTinyActivationsGiveTheBias) {
  const GgufMatrix w = random_matrix(*find_gguf_block_type(8), 40, 288, 3);
  std::vector<float> bias = random_floats(40, 4);
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    QuantizedOps ops(kernel.name);
    const std::unique_ptr<Linear> linear = make_linear(ops, {&w}, &bias);
    for (const float value : {0.0F, -0.0F, 1e-40F, -1e-35F}) {
      std::vector<float> x(288, value);
      EXPECT_EQ(ops.run(*linear, x, 1), bias) << kernel.name << " " << value;
    }
  }
}

TEST(QuantizedLinear, RefusesBlocksThatDoNotFitTogether) {
  QuantizedOps ops({});
  const GgufMatrix a = random_matrix(*find_gguf_block_type(8), 4, 64, 1);
  const GgufMatrix b = random_matrix(*find_gguf_block_type(8), 4, 96, 1);
  const std::vector<BlockMatrix> blocks = {a.view(), b.view()};
  const auto made = ops.ops->weights().make_linear({.numbers = MatricesInBlocks{blocks}});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(),
              ::testing::HasSubstr("weight blocks 1 have shape [4, 96] of Q8_0; expected 64"));
}

// A block of Q4_K has 144 bytes per row in the file.
TEST(QuantizedLinear, TakesAboutAsManyBytesAsTheBlocks) {
  QuantizedOps ops({});
  EXPECT_EQ(block_bytes(ops.ops->weights(), *find_gguf_block_type(12)), 148);
  EXPECT_EQ(block_bytes(ops.ops->weights(), *find_gguf_block_type(14)), 210);
  EXPECT_EQ(block_bytes(ops.ops->weights(), *find_gguf_block_type(8)), 34);
  EXPECT_EQ(block_bytes(ops.ops->weights(), *find_gguf_block_type(1)), 0);
  const GgufMatrix w = random_matrix(*find_gguf_block_type(12), 64, 512, 1);
  EXPECT_EQ(make_linear(ops, {&w})->num_bytes(), 64U * 2 * 148);
}

}  // namespace
}  // namespace quire::testing

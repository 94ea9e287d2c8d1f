#include "quantized_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "cpu/ops/gemm_quantized.h"

namespace quire::testing {

QuantizedOps::QuantizedOps(std::string_view kernel, InputRounding rounding,
                           std::vector<ThreadPlace> places)
    : pool(std::move(places)),
      ops(make_cpu_ops(pool, {.rounding = rounding, .quantized_kernel = kernel})) {}

Result<std::unique_ptr<Linear>> QuantizedOps::make(LinearSource source,
                                                   std::span<const int64_t> num_rows,
                                                   std::vector<float>* bias) {
  std::vector<TensorView> biases;
  if (bias != nullptr) {
    float* at = bias->data();
    for (const int64_t count : num_rows) {
      biases.push_back({at, DType::kF32, {count}});
      at += count;
    }
  }
  source.biases = biases;
  return ops->weights().make_linear(source);
}

std::vector<float> QuantizedOps::run(const Linear& linear, std::vector<float>& x, int64_t m) {
  std::vector<float> out(static_cast<size_t>(m * linear.out_features()), NAN);
  ops->linear(linear, matrix(x, m, linear.in_features()), matrix(out, m, linear.out_features()));
  return out;
}

std::vector<double> rounding_errors(const float* row, int64_t k, std::span<const int32_t> order,
                                    InputRounding rounding) {
  constexpr int64_t kBlock = 256;
  const int64_t group = rounding == InputRounding::kInt8 ? 32 : kBlock;
  const auto column = [&](int64_t place) {
    return order.empty() ? place : int64_t{order[static_cast<size_t>(place)]};
  };
  std::vector<double> errors(static_cast<size_t>(k));
  for (int64_t first = 0; first < k; first += kBlock) {
    const int64_t end = std::min(first + kBlock, k);
    const auto largest_magnitude = [&](int64_t begin, int64_t stop) {
      double most = 0;
      for (int64_t i = begin; i < stop; ++i)
        most = std::max(most, std::fabs(double{row[column(i)]}));
      return most;
    };
    const double most_of_block = largest_magnitude(first, end);
    for (int64_t begin = first; begin < end; begin += group) {
      const int64_t stop = std::min(begin + group, end);
      // The scale of 32 is a multiple of the block's, with 255 steps.
      const double unit = rounding == InputRounding::kInt8
                              ? (largest_magnitude(begin, stop) + most_of_block / 255) / 127
                              : most_of_block / 32512;
      for (int64_t i = begin; i < stop; ++i) {
        errors[static_cast<size_t>(column(i))] = 0.5001 * unit;
      }
    }
  }
  return errors;
}

void expect_bits_without_batch(const MakeLinear& make, const std::string& what) {
  constexpr int64_t kMaxRows = 260;  // more than are rounded at a time
  for (const InputRounding rounding : {InputRounding::kNone, InputRounding::kInt8}) {
    std::vector<float> x;
    std::vector<float> of_named;  // the same bits for all kernels
    std::vector<float> of_all;    // may have 16 bits where that is faster
    const auto expect_bits = [&](std::string_view kernel, const std::vector<int>& nodes) {
      std::vector<float>& longest = kernel.empty() ? of_all : of_named;
      QuantizedOps ops(kernel, rounding, on_nodes(nodes));
      const std::unique_ptr<Linear> linear = make(ops);
      if (x.empty()) x = random_floats(static_cast<size_t>(kMaxRows * linear->in_features()), 77);
      for (const int64_t m : {kMaxRows, int64_t{1}, int64_t{4}, int64_t{5}, int64_t{67}}) {
        const std::vector<float> out = ops.run(*linear, x, m);
        if (longest.empty()) longest = out;
        ASSERT_EQ(std::memcmp(longest.data(), out.data(), out.size() * sizeof(float)), 0)
            << what << " " << kernel << " m=" << m << " threads=" << nodes.size();
      }
    };
    for (const auto& nodes : {std::vector{0, 0}, {0}, {0, 1, 1}}) expect_bits({}, nodes);
    for (const cpu::QuantizedKernel& kernel : cpu::quantized_kernels()) {
      expect_bits(kernel.name, {0, 0});
    }
  }
}

void expect_infinity_stays_in_its_row(const MakeLinear& make) {
  constexpr int64_t kN = 64;
  constexpr int64_t kK = 512;
  for (const cpu::QuantizedKernel& kernel : cpu::quantized_kernels()) {
    QuantizedOps ops(kernel.name);
    const std::unique_ptr<Linear> linear = make(ops);
    ASSERT_EQ(linear->in_features(), kK);
    ASSERT_EQ(linear->out_features(), kN);
    std::vector<float> x = random_floats(3 * kK, 8);
    const std::vector<float> finite = ops.run(*linear, x, 3);
    for (const float broken : {INFINITY, -INFINITY, NAN}) {
      x[kK + 300] = broken;
      const std::vector<float> out = ops.run(*linear, x, 3);
      for (size_t i = 0; i < kN; ++i) {
        ASSERT_EQ(out[i], finite[i]);
        ASSERT_TRUE(std::isnan(out[kN + i])) << kernel.name << " " << broken;
        ASSERT_EQ(out[2 * kN + i], finite[2 * kN + i]);
      }
    }
  }
}

}  // namespace quire::testing

// Shared by the tests of products with quantized matrices: the operations of one kernel, and what
// holds for every type of matrix.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/ops/cpu_ops.h"
#include "ops_fixture.h"

namespace quire::testing {

// The operations with one of quantized_kernels(), on a thread pool of their own.
struct QuantizedOps {
  explicit QuantizedOps(std::string_view kernel, InputRounding rounding = InputRounding::kNone,
                        std::vector<ThreadPlace> places = on_nodes({0, 0}));

  // The biases of the matrices, which have num_rows rows each, are consecutive in `bias`; null:
  // there are none.
  Result<std::unique_ptr<Linear>> make(LinearSource source, std::span<const int64_t> num_rows,
                                       std::vector<float>* bias);
  // The output is NaN where nothing is written.
  std::vector<float> run(const Linear& linear, std::vector<float>& x, int64_t m);

  ThreadPool pool;
  std::unique_ptr<Ops> ops;
};

// The largest error of rounding each activation of a row of `k`: half a unit of its integer, whose
// scale is per 256 activations with 16 bits, and per 32 with 8 bits (kInt8). With an order of the
// columns, these are ordered columns.
std::vector<double> rounding_errors(const float* row, int64_t k, std::span<const int32_t> order,
                                    InputRounding rounding);

using MakeLinear = std::function<std::unique_ptr<Linear>(QuantizedOps& ops)>;
// A row has the same bits in batches of all sizes, on any threads, with every kernel.
void expect_bits_without_batch(const MakeLinear& make, const std::string& what);
// An infinity or a NaN makes its own row NaN and changes no other. `make` makes a matrix [64, 512].
void expect_infinity_stays_in_its_row(const MakeLinear& make);

}  // namespace quire::testing

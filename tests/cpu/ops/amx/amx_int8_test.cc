// The AMX kernel of quantized products computes the bits of the plain one, on this machine's tiles
// and on emulated ones.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/ops/gemm_quantized.h"
#include "ops_fixture.h"
#include "support/quantized_matrices.h"

namespace quire::testing {

extern const cpu::quantized::Kernel kEmulatedAmxInt8;

namespace {

using cpu::kAmxInt8Name;
using cpu::quantized_kernels;
using cpu::QuantizedKernel;
using cpu::QuantizedLinear;
using cpu::QuantizedRowGroup;
using cpu::QuantizedScratch;

std::optional<QuantizedKernel> find_kernel(std::string_view name) {
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    if (kernel.name == name) return kernel;
  }
  return std::nullopt;
}

class AmxInt8 : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const bool is_emulated = GetParam();
    const auto found = find_kernel(is_emulated ? "avx512_vnni" : kAmxInt8Name);
    if (!found) GTEST_SKIP() << "this machine has no " << (is_emulated ? "AVX-512 VNNI" : "AMX");
    kernel_ = is_emulated ? QuantizedKernel{"emulated", &kEmulatedAmxInt8} : *found;
  }

  std::unique_ptr<QuantizedLinear> pack(const GgufMatrix& w, std::vector<float>* bias = nullptr) {
    const BlockMatrix blocks = w.view();
    return pack(LinearSource{.numbers = MatricesInBlocks{{&blocks, 1}}}, w.n, bias);
  }
  std::unique_ptr<QuantizedLinear> pack(const IntegerMatrix& w,
                                        std::vector<float>* bias = nullptr) {
    return pack(LinearSource{.numbers = StoredMatrices{{&w.view, 1}}}, w.n, bias);
  }
  std::unique_ptr<QuantizedLinear> pack(LinearSource source, int64_t n, std::vector<float>* bias) {
    TensorView biases;
    if (bias != nullptr) {
      biases = {bias->data(), DType::kF32, {n}};
      source.biases = {&biases, 1};
    }
    return QuantizedLinear::pack(source, pool_, nullptr).value();
  }

  // All groups' outputs; NaN where nothing is written.
  std::vector<float> run(std::span<const QuantizedRowGroup> groups,
                         std::span<const QuantizedKernel> kernels, const std::vector<float>& x,
                         int num_terms) {
    const QuantizedLinear& w = *groups.front().w;
    QuantizedScratch scratch;
    EXPECT_TRUE(scratch.reserve(w).ok());
    std::vector<float> out(static_cast<size_t>(groups.back().end_row() * w.out_features()), NAN);
    linear_quantized(groups, kernels, x.data(), num_terms, out.data(), pool_, scratch);
    return out;
  }

  void expect_bits_of_plain(const QuantizedLinear& w, std::span<const int64_t> row_counts,
                            const std::string& what) {
    for (const int num_terms : {1, 2}) {
      for (const int64_t num_rows : row_counts) {
        const std::vector<float> x =
            random_floats(static_cast<size_t>(num_rows * w.in_features()), 9);
        const QuantizedRowGroup group = {&w, 0, num_rows};
        const std::vector<float> plain =
            run({&group, 1}, quantized_kernels().last(1), x, num_terms);
        const std::vector<float> out = run({&group, 1}, {&kernel_, 1}, x, num_terms);
        for (size_t i = 0; i < out.size(); ++i) {
          ASSERT_EQ(std::memcmp(&out[i], &plain[i], sizeof(float)), 0)
              << what << " rows=" << num_rows << " terms=" << num_terms << " at " << i << ": "
              << out[i] << ", expected " << plain[i];
        }
      }
    }
  }

  ThreadPool pool_{on_nodes({0, 0})};
  QuantizedKernel kernel_{};
};

TEST_P(AmxInt8, HasTheBitsOfThePlainKernelForEveryType) {
  for (const GgufBlockType& type : quantized_types()) {
    for (const int64_t k : {int64_t{type.block_elements}, int64_t{768}, int64_t{1024}}) {
      const GgufMatrix w = random_matrix(type, 41, k, static_cast<uint32_t>(k));
      std::vector<float> bias = random_floats(41, 5);
      expect_bits_of_plain(*pack(w, &bias), std::vector<int64_t>{1, 16, 17, 37}, type.name);
    }
  }
}

TEST_P(AmxInt8, HasTheBitsOfThePlainKernelForEveryGroupSize) {
  for (const int64_t group_size :
       {int64_t{16}, int64_t{32}, int64_t{64}, int64_t{128}, int64_t{256}, int64_t{384}, kPerRow}) {
    for (const int bits : {4, 8}) {
      for (const bool has_zeros : {false, true}) {
        for (const DType scales : {DType::kF16, DType::kBF16, DType::kF32}) {
          const IntegerSpec spec = {
              .bits = bits, .group_size = group_size, .has_zeros = has_zeros, .scales = scales};
          expect_bits_of_plain(*pack(IntegerMatrix(spec, 33, 768, 3)), std::vector<int64_t>{3, 18},
                               describe(spec));
        }
      }
    }
  }
}

TEST_P(AmxInt8, RowsMayEndAnywhere) {
  for (const int64_t k : {1, 31, 32, 33, 96, 100, 255, 257, 300, 480}) {
    for (const int bits : {4, 8}) {
      for (const bool has_zeros : {false, true}) {
        const IntegerSpec spec = {.bits = bits, .group_size = kPerRow, .has_zeros = has_zeros};
        expect_bits_of_plain(*pack(IntegerMatrix(spec, 5, k, 7)), std::vector<int64_t>{2, 20},
                             describe(spec) + " k=" + std::to_string(k));
      }
    }
  }
}

TEST_P(AmxInt8, HasTheBitsOfThePlainKernelForEveryNumberOfRows) {
  std::vector<int64_t> row_counts;
  for (int64_t rows = 1; rows < 35; ++rows) row_counts.push_back(rows);
  const GgufMatrix w = random_matrix(*find_gguf_block_type(12), 32, 256, 3);  // Q4_K
  expect_bits_of_plain(*pack(w), row_counts, "Q4_K");
  const IntegerSpec spec = {.bits = 8, .group_size = 128, .has_zeros = true};
  expect_bits_of_plain(*pack(IntegerMatrix(spec, 64, 256, 3)), row_counts, describe(spec));
}

// The activations exceed the part of L2 that they may take, so the sums pause in the output.
TEST_P(AmxInt8, BlocksOfKContinueTheSums) {
  for (const uint32_t id : {8U, 12U, 14U}) {  // Q8_0, Q4_K, Q6_K
    const GgufMatrix w = random_matrix(*find_gguf_block_type(id), 37, 22 * 256, 3);
    std::vector<float> bias = random_floats(37, 5);
    expect_bits_of_plain(*pack(w, &bias), std::vector<int64_t>{250, 256}, w.type.name);
  }
}

TEST_P(AmxInt8, AnInfinityOrNanStaysInItsRow) {
  const GgufMatrix matrix = random_matrix(*find_gguf_block_type(12), 40, 512, 3);
  const std::unique_ptr<QuantizedLinear> w = pack(matrix);
  const QuantizedRowGroup group = {w.get(), 0, 18};
  std::vector<float> x = random_floats(18 * 512, 8);
  const std::vector<float> finite = run({&group, 1}, {&kernel_, 1}, x, 2);
  for (const float broken : {INFINITY, -INFINITY, NAN}) {
    x[16 * 512 + 300] = broken;
    const std::vector<float> out = run({&group, 1}, {&kernel_, 1}, x, 2);
    for (size_t i = 0; i < out.size(); ++i) {
      if (i / 40 == 16) {
        ASSERT_TRUE(std::isnan(out[i])) << broken;
      } else {
        ASSERT_EQ(out[i], finite[i]) << broken << " at " << i;
      }
    }
  }
}

// The kernel under test, counting the outputs that it computes.
struct Counted {
  static void run(const cpu::quantized::Task& task) {
    kernel->run(task);
    num_outputs += task.num_rows * task.num_columns;
  }
  static inline const cpu::quantized::Kernel* kernel = nullptr;
  static inline std::atomic<int64_t> num_outputs = 0;
};

// Experts: groups with few rows go to the next kernel, in the same parallel region. Longer groups
// of weights always have two terms.
TEST_P(AmxInt8, LeavesGroupsOfFewRowsToTheNextKernel) {
  constexpr int64_t kN = 70, kK = 1024;
  const auto gguf = [&](std::vector<uint32_t> ids) {  // a Linear of one matrix per id
    std::vector<GgufMatrix> matrices;
    for (const uint32_t id : ids) {
      matrices.push_back(random_matrix(*find_gguf_block_type(id), kN, kK, id));
    }
    std::vector<BlockMatrix> blocks;
    for (const GgufMatrix& matrix : matrices) blocks.push_back(matrix.view());
    return pack(LinearSource{.numbers = MatricesInBlocks{blocks}}, kN * std::ssize(blocks),
                nullptr);
  };
  const IntegerSpec spec = {.bits = 4, .group_size = 128, .has_zeros = true};
  struct {
    std::string name;
    std::unique_ptr<QuantizedLinear> w;
    int64_t min_rows[2];  // with one term, with two
  } const cases[] = {{"Q8_0", gguf({8}), {16, 32}},
                     {"Q4_K", gguf({12}), {1000, 16}},
                     {"Q6_K", gguf({14}), {1000, 1000}},
                     {"Q4_K and Q6_K", gguf({12, 14}), {1000, 16}},
                     {describe(spec), pack(IntegerMatrix(spec, kN, kK, 3)), {16, 16}}};
  Counted::kernel = kernel_.kernel;
  cpu::quantized::Kernel counted = *kernel_.kernel;
  counted.run = Counted::run;
  std::vector<QuantizedKernel> kernels = {{"counted", &counted}};
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    if (kernel.name != kAmxInt8Name) kernels.push_back(kernel);
  }
  for (const auto& [name, w, min_rows] : cases) {
    for (const int num_terms : {1, 2}) {
      std::vector<QuantizedRowGroup> groups;
      int64_t num_rows = 0, tile_rows = 0;
      for (const int64_t rows : {40, 3, 16, 1, 15, 31, 32}) {
        groups.push_back({w.get(), num_rows, rows});
        num_rows += (rows + 15) / 16 * 16;
        if (rows >= min_rows[num_terms - 1]) tile_rows += rows;
      }
      const std::vector<float> x = random_floats(static_cast<size_t>(num_rows * kK), 9);
      const int used_terms = w->panels().front().format.group_k > 32 ? 2 : num_terms;
      const std::vector<float> plain = run(groups, quantized_kernels().last(1), x, used_terms);
      Counted::num_outputs = 0;
      const std::vector<float> out = run(groups, kernels, x, num_terms);
      EXPECT_EQ(Counted::num_outputs, tile_rows * w->out_features())
          << name << " terms=" << num_terms;
      ASSERT_EQ(std::memcmp(out.data(), plain.data(), out.size() * sizeof(float)), 0) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, AmxInt8, ::testing::Bool(), [](const auto& tiles) {
  return std::string(tiles.param ? "emulated" : "of_this_machine");
});

}  // namespace
}  // namespace quire::testing

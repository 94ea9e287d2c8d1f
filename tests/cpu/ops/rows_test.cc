// Compares norms, activations, rotation with the cache write, and gathers with their definitions in
// double, on every target.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <thread>

#include "cpu/ops/rank_group.h"
#include "ops_fixture.h"
#include "support/reference_ops.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

template <class T>
std::vector<double> reference_norm(const T* x, const float* weight, double eps, int64_t n) {
  double squares = 0.0;
  for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(x[i] * scale * weight[i]);
  return out;
}

TEST(RmsNorm, AgreesWithTheDefinition) {
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const int64_t n : {1, 7, 16, 31, 288, 2048, 2051}) {
      for (const int64_t m : {0, 1, 3, 33}) {
        std::vector<float> x = random_floats(static_cast<size_t>(m * n), 1);
        const std::vector<float> weight = random_floats(static_cast<size_t>(n), 2);
        std::vector<float> out(x.size());
        ops->residual_norm({.residual = matrix(x, m, n), .weight = weight.data(), .eps = 1e-5F},
                           matrix(out, m, n));
        for (int64_t t = 0; t < m; ++t) {
          const auto want = reference_norm(x.data() + t * n, weight.data(), 1e-5F, n);
          for (int64_t i = 0; i < n; ++i) {
            const double value = want[static_cast<size_t>(i)];
            ASSERT_NEAR(out[static_cast<size_t>(t * n + i)], value, 2e-6 * std::fabs(value))
                << variant.name << " n=" << n;
          }
        }
        ops->residual_norm({.residual = matrix(x, m, n), .weight = weight.data(), .eps = 1e-5F},
                           matrix(x, m, n));
        EXPECT_EQ(x, out) << variant.name << " in place";
      }
    }
  }
}

TEST(RmsNorm, AddsTheResidualFirst) {
  constexpr int64_t kM = 33;
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const int64_t n : {3, 288, 2047}) {
      const auto count = static_cast<size_t>(kM * n);
      std::vector<float> residual = random_floats(count, 1);
      std::vector<float> delta = random_floats(count, 2);
      const std::vector<float> weight = random_floats(static_cast<size_t>(n), 3);
      std::vector<float> sum(count);
      for (size_t i = 0; i < count; ++i) sum[i] = residual[i] + delta[i];
      std::vector<float> want(count);
      ops->residual_norm({.residual = matrix(sum, kM, n), .weight = weight.data(), .eps = 1e-6F},
                         matrix(want, kM, n));
      std::vector<float> out(count);
      ops->residual_norm({.residual = matrix(residual, kM, n),
                          .delta = matrix(delta, kM, n),
                          .weight = weight.data(),
                          .eps = 1e-6F},
                         matrix(out, kM, n));
      EXPECT_EQ(residual, sum) << variant.name;
      EXPECT_EQ(out, want) << variant.name;
    }
  }
}

// Gemma 4: a number of the layer multiplies the sum.
TEST(RmsNorm, ScalesTheSum) {
  constexpr int64_t kM = 5;
  constexpr int64_t kN = 67;
  const float scale = 0.37F;
  const std::vector<float> before = random_floats(kM * kN, 1);
  std::vector<float> delta = random_floats(kM * kN, 2);
  const std::vector<float> weight = random_floats(kN, 3);
  std::vector<float> sum(before.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = (before[i] + delta[i]) * scale;
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    std::vector<float> want(sum.size());
    ops->residual_norm({.residual = matrix(sum, kM, kN), .weight = weight.data(), .eps = 1e-6F},
                       matrix(want, kM, kN));
    for (const float* const norm_weight : {weight.data(), static_cast<const float*>(nullptr)}) {
      std::vector<float> residual = before;
      std::vector<float> out(sum.size());
      ops->residual_norm({.residual = matrix(residual, kM, kN),
                          .delta = matrix(delta, kM, kN),
                          .weight = norm_weight,
                          .eps = 1e-6F,
                          .scale = &scale},
                         matrix(out, kM, kN));
      EXPECT_EQ(residual, sum) << variant.name;
      EXPECT_EQ(out, norm_weight == nullptr ? sum : want) << variant.name;
    }
  }
}

TEST(RmsNorm, WithoutAWeightTheResultIsTheResidual) {
  constexpr int64_t kM = 9;
  constexpr int64_t kN = 2047;
  const std::vector<float> before = random_floats(kM * kN, 1);
  std::vector<float> delta = random_floats(kM * kN, 2);
  std::vector<float> sum = before;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += delta[i];
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const bool adds : {false, true}) {
      const std::vector<float>& want = adds ? sum : before;
      for (const bool is_in_place : {false, true}) {
        std::vector<float> residual = before;
        std::vector<float> out(residual.size());
        ResidualNorm norm = {.residual = matrix(residual, kM, kN)};
        if (adds) norm.delta = matrix(delta, kM, kN);
        ops->residual_norm(norm, is_in_place ? norm.residual : matrix(out, kM, kN));
        EXPECT_EQ(residual, want) << variant.name;
        if (is_in_place) continue;
        EXPECT_EQ(out, want) << variant.name;
      }
    }
  }
}

// The combined operations read the residual itself, so their scratch memory is not needed.
TEST(RmsNorm, WithoutAWeightProductsReadTheResidual) {
  constexpr int64_t kM = 3;
  constexpr int64_t kN = 40;
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  std::vector<float> square = random_floats(kN * kN, 1);
  std::vector<float> wide = random_floats(2 * kN * kN, 2);
  const WeightView square_view = matrix(square, kN, kN);
  const WeightView wide_view = matrix(wide, 2 * kN, kN);
  const auto down = ops->weights().make_linear({.numbers = StoredMatrices{{&square_view, 1}}});
  const auto gate_up = ops->weights().make_linear({.numbers = StoredMatrices{{&wide_view, 1}}});
  const std::vector<float> before = random_floats(kM * kN, 3);
  std::vector<float> delta = random_floats(kM * kN, 4);
  std::vector<float> sum = before;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += delta[i];
  const auto in = [&](std::vector<float>& x) { return matrix(x, kM, kN); };

  std::vector<float> want(kM * kN);
  ops->linear(**down, in(sum), in(want));
  std::vector<float> residual = before;
  std::vector<float> out(kM * kN);
  ops->norm_linear({.residual = in(residual), .delta = in(delta)}, **down, {}, in(out));
  EXPECT_EQ(out, want);
  EXPECT_EQ(residual, sum);

  std::vector<float> gates(2 * kM * kN);
  std::vector<float> product(kM * kN);
  GatedMlp mlp;
  mlp.gate_up = gate_up->get();
  mlp.down = down->get();
  mlp.x = in(sum);
  mlp.out = in(want);
  mlp.gate_up_out = matrix(gates, kM, 2 * kN);
  mlp.product = in(product);
  ops->gated_mlp(mlp);
  residual = before;
  mlp.norm = {.residual = in(residual), .delta = in(delta)};
  mlp.x = {};
  mlp.out = in(out);
  ops->gated_mlp(mlp);
  EXPECT_EQ(out, want);
  EXPECT_EQ(residual, sum);
}

// A row of queries, keys and further columns, and the norms' weights, of all ranks.
struct WideRows {
  int64_t num_tokens;
  int64_t q_width;
  int64_t k_width;
  int64_t rest;
  std::vector<float> qkv, q_norm, k_norm;

  WideRows(int64_t tokens, int64_t q, int64_t k, int64_t others)
      : num_tokens(tokens),
        q_width(q),
        k_width(k),
        rest(others),
        qkv(random_floats(static_cast<size_t>(tokens * width()), 1, 2.0F)),
        q_norm(random_floats(static_cast<size_t>(q), 2)),
        k_norm(random_floats(static_cast<size_t>(k), 3)) {}

  int64_t width() const { return q_width + k_width + rest; }

  // The part of one of `size` ranks.
  WideRows part(int rank, int size) const {
    WideRows own(num_tokens, q_width / size, k_width / size, rest / size);
    const auto copy = [&](const std::vector<float>& from, int64_t first, int64_t all_columns,
                          std::vector<float>& to, int64_t to_first, int64_t columns,
                          int64_t own_columns) {
      for (int64_t t = 0; t < std::ssize(from) / all_columns; ++t) {
        std::copy_n(from.begin() + t * all_columns + first + rank * columns, columns,
                    to.begin() + t * own_columns + to_first);
      }
    };
    copy(qkv, 0, width(), own.qkv, 0, own.q_width, own.width());
    copy(qkv, q_width, width(), own.qkv, own.q_width, own.k_width, own.width());
    copy(qkv, q_width + k_width, width(), own.qkv, own.q_width + own.k_width, own.rest,
         own.width());
    copy(q_norm, 0, q_width, own.q_norm, 0, own.q_width, own.q_width);
    copy(k_norm, 0, k_width, own.k_norm, 0, own.k_width, own.k_width);
    return own;
  }

  void normalize(Ops& ops) {
    std::vector<float> sums(static_cast<size_t>(2 * num_tokens));
    ops.wide_norm({.qkv = matrix(qkv, num_tokens, width()),
                   .q_width = q_width,
                   .k_width = k_width,
                   .q_norm = q_norm.data(),
                   .k_norm = k_norm.data(),
                   .eps = 1e-5F,
                   .sums = matrix(sums, num_tokens, 2)});
  }

  std::vector<double> normalized() const {
    std::vector<double> all;
    for (int64_t t = 0; t < num_tokens; ++t) {
      const float* q = qkv.data() + t * width();
      const auto queries = reference_norm(q, q_norm.data(), 1e-5F, q_width);
      const auto keys = reference_norm(q + q_width, k_norm.data(), 1e-5F, k_width);
      all.insert(all.end(), queries.begin(), queries.end());
      all.insert(all.end(), keys.begin(), keys.end());
      all.insert(all.end(), q + q_width + k_width, q + width());
    }
    return all;
  }
};

TEST(WideNorm, AgreesWithTheDefinition) {
  const auto check = [](Ops& ops, const std::string& what) {
    for (const int64_t num_tokens : {1, 3, 40}) {
      for (const int64_t rest : {0, 5, 128}) {
        WideRows rows(num_tokens, 1031, 128, rest);
        const std::vector<double> want = rows.normalized();
        rows.normalize(ops);
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(rows.qkv[i], want[i], 2e-6 * std::fabs(want[i]))
              << what << " " << num_tokens << " tokens, at " << i;
        }
      }
    }
  };
  ReferenceOps reference;
  check(reference, "reference");
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    check(*ops, variant.name);
  }
}

TEST(WideNorm, RowsDoNotDependOnTheirBatch) {
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    WideRows all(40, 516, 132, 7);
    WideRows one(1, 516, 132, 7);
    std::copy_n(all.qkv.begin() + 23 * all.width(), all.width(), one.qkv.begin());
    all.normalize(*ops);
    one.normalize(*ops);
    EXPECT_TRUE(std::equal(one.qkv.begin(), one.qkv.end(), all.qkv.begin() + 23 * all.width()))
        << variant.name;
  }
}

TEST(WideNorm, TheMeanIsThatOfAllRanks) {
  for (const int size : {2, 4}) {
    const WideRows whole(5, 256, 64, 64);
    WideRows expected = whole;
    std::vector<double> normalized = whole.normalized();
    expected.qkv.assign(normalized.begin(), normalized.end());
    RankGroup group(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadPool pool(1);
        const auto ops = make_cpu_ops(pool, {.ranks = &group, .rank = rank});
        WideRows own = whole.part(rank, size);
        own.normalize(*ops);
        const WideRows want = expected.part(rank, size);
        for (size_t i = 0; i < want.qkv.size(); ++i) {
          ASSERT_NEAR(own.qkv[i], want.qkv[i], 2e-6 * std::fabs(want.qkv[i]))
              << "rank " << rank << " of " << size << ", at " << i;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

double activate(Activation activation, double x) {
  if (activation == Activation::kSilu) return x / (1.0 + std::exp(-x));
  if (activation == Activation::kGelu) return x / 2 * std::erfc(-x / std::numbers::sqrt2);
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  // Computes x / 2 (1 + tanh(inner)) without the cancellation in 1 + tanh(inner).
  return x / (1.0 + std::exp(-2.0 * inner));
}

TEST(GatedMul, IsWithinAFewUlpOfTheDefinition) {
  constexpr int64_t kN = 4099;
  for (const Activation activation :
       {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
    // Within this bound, the result of exp() is a normal number.
    const float bound = activation == Activation::kSilu ? 86.0F : 10.0F;
    std::vector<float> gate_up(2 * kN);
    for (int64_t i = 0; i < kN; ++i) {
      gate_up[static_cast<size_t>(i)] = -bound + 2 * bound * static_cast<float>(i) / kN;
      gate_up[static_cast<size_t>(kN + i)] = i % 2 == 0 ? 1.0F : -3.0F;
    }
    // GELU's exponent rounds a few times, and exp() multiplies that by the exponent.
    const double tolerance = activation == Activation::kSilu ? 4e-7 : 2e-5;
    for (const Variant& variant : variants()) {
      VariantOps ops(variant);
      std::vector<float> out(kN);
      ops->gated_mul(activation, matrix(gate_up, 1, 2 * kN), matrix(out, 1, kN));
      for (size_t i = 0; i < kN; ++i) {
        const double g = gate_up[i];
        const double want = activate(activation, g) * gate_up[kN + i];
        ASSERT_NEAR(out[i], want, tolerance * std::fabs(want)) << variant.name << " gate " << g;
        if (std::fabs(g) > 4.0) continue;
        ASSERT_NEAR(out[i], want, 2e-6 * std::fabs(want)) << variant.name << " gate " << g;
      }
    }
  }
}

// Both numbers are on both sides of the limits, and NaNs stay.
TEST(GatedMul, ClampsGateAndUp) {
  std::vector<float> gates, ups;
  for (float gate = -30.0F; gate <= 30.0F; gate += 0.37F) {
    for (const float up : {-1e30F, -7.5F, -7.0F, -1.0F, 0.0F, 3.3F, 6.9F, 7.1F, INFINITY}) {
      gates.push_back(gate);
      ups.push_back(up);
    }
  }
  for (const float gate : {INFINITY, 1e30F, NAN, 1.0F}) {
    gates.push_back(gate);
    ups.push_back(gate == 1.0F ? NAN : 2.0F);
  }
  const auto count = std::ssize(gates);
  std::vector<float> gate_up = gates;
  gate_up.insert(gate_up.end(), ups.begin(), ups.end());
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    std::vector<float> out(gates.size());
    ops->gated_mul(Activation::kClampedSwiglu, matrix(gate_up, 1, 2 * count),
                   matrix(out, 1, count));
    for (size_t i = 0; i < out.size(); ++i) {
      if (std::isnan(gates[i]) || std::isnan(ups[i])) {
        EXPECT_TRUE(std::isnan(out[i])) << gates[i] << " " << ups[i];
        continue;
      }
      const double g = std::min(double{gates[i]}, 7.0);
      const double u = std::clamp(double{ups[i]}, -7.0, 7.0);
      const double want = (u + 1.0) * g / (1.0 + std::exp(-1.702 * g));
      ASSERT_NEAR(out[i], want, 4e-6 * std::fabs(want)) << variant.name << " gate " << g;
    }
  }
}

TEST(GatedMul, ReadsColumnsOfAnotherTensor) {
  constexpr int64_t kN = 19;
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const int64_t m : {1, 3, 900}) {  // 900 rows are computed in parallel
      for (const int64_t first : {0, 7, 31}) {
        std::vector<float> gate = random_floats(static_cast<size_t>(m * kN), 1);
        std::vector<float> up = random_floats(static_cast<size_t>(m * 50), 2);
        std::vector<float> gate_up(static_cast<size_t>(m * 2 * kN));
        for (int64_t t = 0; t < m; ++t) {
          std::copy_n(gate.begin() + t * kN, kN, gate_up.begin() + t * 2 * kN);
          std::copy_n(up.begin() + t * 50 + first, kN, gate_up.begin() + t * 2 * kN + kN);
        }
        std::vector<float> want(gate.size());
        std::vector<float> out(gate.size());
        ops->gated_mul(Activation::kGeluTanh, matrix(gate_up, m, 2 * kN), matrix(want, m, kN));
        ops->gated_mul_columns(Activation::kGeluTanh, matrix(gate, m, kN), matrix(up, m, 50), first,
                               matrix(out, m, kN));
        EXPECT_EQ(out, want) << variant.name << ", " << m << " rows from column " << first;
      }
    }
  }
}

TEST(GatedMul, GeluVanishesFarBelowZeroAndPassesFarAbove) {
  std::vector<float> gate_up = {-1e4F, -30.0F, -0.0F, 0.0F, 30.0F, 1e30F, 1, 1, 1, 1, 1, 1};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const Activation gelu : {Activation::kGelu, Activation::kGeluTanh}) {
      std::vector<float> out(6);
      ops->gated_mul(gelu, matrix(gate_up, 1, 12), matrix(out, 1, 6));
      EXPECT_LE(std::fabs(out[0]), 1e-30F);
      EXPECT_LE(std::fabs(out[1]), 1e-30F);
      EXPECT_EQ(out[2], 0.0F);
      EXPECT_EQ(out[3], 0.0F);
      EXPECT_EQ(out[4], 30.0F);
      EXPECT_EQ(out[5], 1e30F);
    }
  }
}

// One gate per row, per head and per element.
TEST(Gate, AgreesWithTheDefinition) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kWidth = 24;
  for (const GateFunction function :
       {GateFunction::kIdentity, GateFunction::kSigmoid, GateFunction::kSoftplus}) {
    for (const int64_t num_gates : {int64_t{1}, int64_t{4}, kWidth}) {
      std::vector<float> gates = random_floats(static_cast<size_t>(kRows * num_gates), 5, 4.0F);
      gates[0] = 200.0F;  // whose exponential overflows F32
      gates.back() = -200.0F;
      const std::vector<float> before = random_floats(kRows * kWidth, 6);
      for (const Variant& variant : variants()) {
        VariantOps ops(variant);
        std::vector<float> x = before;
        ops->gate({.x = matrix(x, kRows, kWidth),
                   .gates = matrix(gates, kRows, num_gates),
                   .function = function});
        for (int64_t i = 0; i < kRows * kWidth; ++i) {
          const int64_t of_row = i % kWidth / (kWidth / num_gates);
          const double gate = gates[static_cast<size_t>(i / kWidth * num_gates + of_row)];
          const double opened = function == GateFunction::kIdentity  ? gate
                                : function == GateFunction::kSigmoid ? 1.0 / (1.0 + std::exp(-gate))
                                                                     : std::log1p(std::exp(gate));
          const double want = before[static_cast<size_t>(i)] * opened;
          ASSERT_NEAR(x[static_cast<size_t>(i)], want, 1e-6 * std::fabs(want) + 1e-30)
              << variant.name;
        }
      }
    }
  }
}

TEST(SoftCap, IsWithinAFewUlpOfTheDefinition) {
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const int64_t n : {1, 7, 67, 4099}) {
      std::vector<float> x = random_floats(static_cast<size_t>(3 * n), 3, 20.0F);
      x[0] = 1e-4F;
      x.back() = -1e30F;
      const std::vector<float> before = x;
      ops->soft_cap(30.0F, matrix(x, 3, n));
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = 30.0 * std::tanh(double{before[i]} / 30.0);
        ASSERT_NEAR(x[i], want, 5e-7 * std::fabs(want)) << variant.name << " " << before[i];
      }
    }
  }
}

TEST(GatedMul, SiluStaysFiniteFarOutAndIsZeroAtZero) {
  std::vector<float> gate_up = {-1e30F, -200.0F, -0.0F, 0.0F, 200.0F, 1e30F, 1, 1, 1, 1, 1, 1};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    std::vector<float> out(6);
    ops->gated_mul(Activation::kSilu, matrix(gate_up, 1, 12), matrix(out, 1, 6));
    EXPECT_LE(std::fabs(out[1]), 1e-35F);
    EXPECT_EQ(out[2], 0.0F);
    EXPECT_EQ(out[3], 0.0F);
    EXPECT_EQ(out[4], 200.0F);
    EXPECT_EQ(out[5], 1e30F);
    EXPECT_TRUE(std::isfinite(out[0]));
  }
}

TEST(GatherRows, CopiesTheRowsNamed) {
  std::vector<float> x = random_floats(5 * 19, 1);
  const int32_t rows[] = {4, 4, 0};
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  std::vector<float> out(3 * 19);
  ops->gather_rows(matrix(x, 5, 19), rows, matrix(out, 3, 19));
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], x[static_cast<size_t>(rows[i / 19]) * 19 + i % 19]);
  }
}

TEST(WriteColumns, KeepsTheOtherColumns) {
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  for (const int64_t m : {1, 3, 900}) {  // 900 rows are written in parallel
    for (const int64_t first : {0, 7, 31}) {
      std::vector<float> x = random_floats(static_cast<size_t>(m * 19), 1);
      std::vector<float> out = random_floats(static_cast<size_t>(m * 50), 2);
      std::vector<float> want = out;
      for (int64_t t = 0; t < m; ++t) {
        std::copy_n(x.begin() + t * 19, 19, want.begin() + t * 50 + first);
      }
      ops->write_columns(matrix(x, m, 19), matrix(out, m, 50), first);
      EXPECT_EQ(out, want) << m << " rows from column " << first;
    }
  }
}

TEST(MakeVector, WidensToF32) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  uint16_t halves[] = {f32_to_f16(1.5F), f32_to_f16(-0.25F)};
  uint16_t brains[] = {f32_to_bf16(1.5F), f32_to_bf16(-0.25F)};
  for (const TensorView& source :
       {TensorView{halves, DType::kF16, {2}}, TensorView{brains, DType::kBF16, {2}}}) {
    const Tensor vector = std::move(ops->weights().make_vector(source)).value();
    EXPECT_EQ(vector.view.dtype, DType::kF32);
    EXPECT_EQ(vector.view.as<float>()[0], 1.5F);
    EXPECT_EQ(vector.view.as<float>()[1], -0.25F);
  }
  EXPECT_FALSE(ops->weights().make_vector({halves, DType::kI32, {1}}).ok());
}

TEST(RopeAngles, TurnInDouble) {
  const float inv_freq[] = {1.0F, 0.1F, 1e-4F};
  const int32_t positions[] = {0, 7, 131071};
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  std::vector<float> cos_sin(3 * 6);
  ops->rope_angles(inv_freq, 1.25F, positions, matrix(cos_sin, 3, 6));
  for (size_t t = 0; t < 3; ++t) {
    for (size_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(positions[t]) * static_cast<double>(inv_freq[i]);
      EXPECT_NEAR(cos_sin[t * 6 + i], 1.25 * std::cos(angle), 2e-7);
      EXPECT_NEAR(cos_sin[t * 6 + 3 + i], 1.25 * std::sin(angle), 2e-7);
    }
  }
}

TEST(PositionScales, GrowByThePeriod) {
  const int32_t positions[] = {0, 8190, 8191, 8192, 16383, 1000000};
  const auto check = [&](Ops& ops) {
    for (const float offset : {0.0F, 1.0F}) {
      std::vector<float> scales(6);
      ops.position_scales({.beta = 0.1F, .period = 8192.0F, .offset = offset}, positions,
                          {scales.data(), DType::kF32, {6}});
      const std::vector<int> periods = offset == 0.0F ? std::vector<int>{0, 0, 0, 1, 1, 122}
                                                      : std::vector<int>{0, 0, 1, 1, 2, 122};
      for (size_t t = 0; t < scales.size(); ++t) {
        EXPECT_NEAR(scales[t], 1.0 + double{0.1F} * std::log(1.0 + periods[t]), 2e-7)
            << "position " << positions[t] << ", offset " << offset;
      }
    }
  };
  ThreadPool pool(1);
  check(*make_cpu_ops(pool));
  ReferenceOps reference;
  check(reference);
}

struct RopeCase {
  int head_dim;
  int rope_dim;
  bool norm;
  RotaryPairs pairs = RotaryPairs::kHalves;
  bool norms_after = false;
  bool has_q_scale = false;
};

// Reads one element of a cache of any type as a number.
float cached(const void* cache, DType dtype, int64_t at) {
  switch (dtype) {
    case DType::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(cache)[at]);
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(cache)[at]);
    case DType::kF8E4M3:
      return e4m3_to_f32(static_cast<const uint8_t*>(cache)[at]);
    case DType::kI8:
      return static_cast<const int8_t*>(cache)[at];
    default:
      return static_cast<const float*>(cache)[at];
  }
}

double relative_step(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF8E4M3:
      return 0x1p-4;
    default:
      return 1e-6;
  }
}

class RopeAndCacheRun {
 public:
  static constexpr int kHeads = 6;
  static constexpr int kKvHeads = 2;
  static constexpr int kPageSize = 16;
  static constexpr int kPages = 4;
  static constexpr int64_t kTokens = 5;

  RopeAndCacheRun(const RopeCase& shape, DType dtype) : shape_(shape), dtype_(dtype) {
    const int64_t row = int64_t{kHeads + 2 * kKvHeads} * shape.head_dim;
    qkv_ = random_floats(static_cast<size_t>(kTokens * row), 11, 2.0F);
    q_out_.resize(static_cast<size_t>(kTokens * kHeads * shape.head_dim));
    cos_sin_ = random_floats(static_cast<size_t>(kTokens * shape.rope_dim), 12);
    norms_ = random_floats(static_cast<size_t>(2 * shape.head_dim), 13);
    layout_ = {.page_size = kPageSize,
               .num_kv_heads = kKvHeads,
               .head_dim = shape.head_dim,
               .head_dim_v = shape.head_dim,
               .dtype = dtype};
    cache_.assign(static_cast<size_t>(layout_.page_bytes() * kPages), kUntouched);
    expected_writes_.assign(cache_.size(), false);
    args_ = {.qkv = matrix(qkv_, kTokens, row),
             .q_out = {q_out_.data(), DType::kF32, {kTokens, kHeads, shape.head_dim}},
             .cos_sin = matrix(cos_sin_, kTokens, shape.rope_dim),
             .pairs = shape.pairs,
             .q_norm = shape.norm ? norms_.data() : nullptr,
             .k_norm = shape.norm ? norms_.data() + shape.head_dim : nullptr,
             .norm_eps = 1e-6F,
             .norms_after_rotation = shape.norms_after,
             .q_scale = shape.has_q_scale ? kQScales : nullptr,
             .num_heads = kHeads,
             .num_kv_heads = kKvHeads,
             .head_dim = shape.head_dim,
             .page_size = kPageSize,
             .kv = kv_cache_view(layout_, cache_.data()),
             .kv_slots = kv_slots_};
    args_.kv.k_scale = &k_scale_;
    args_.kv.v_scale = &v_scale_;
  }

  void check(Ops& ops, const std::string& what) {
    ops.rope_and_cache(args_);
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int h = 0; h < kHeads; ++h) {
        const auto want = expected_head(t, h, args_.q_norm);
        const double scale = shape_.has_q_scale ? double{kQScales[t]} : 1.0;
        for (size_t i = 0; i < want.size(); ++i) {
          const size_t at = static_cast<size_t>((t * kHeads + h) * shape_.head_dim) + i;
          ASSERT_NEAR(q_out_[at], scale * want[i], 1e-5 * (1 + std::fabs(want[i]))) << what;
        }
      }
      if (kv_slots_[t] < 0) continue;
      for (int h = 0; h < kKvHeads; ++h) check_kv(t, h, what);
    }
    for (size_t i = 0; i < cache_.size(); ++i) {
      ASSERT_TRUE(expected_writes_[i] || cache_[i] == kUntouched)
          << what << ": byte " << i << " was written";
    }
  }

 private:
  const float* head(int64_t t, int h) const {
    return qkv_.data() + t * args_.qkv.shape[1] + int64_t{h} * shape_.head_dim;
  }

  std::vector<double> expected_head(int64_t t, int h, const float* norm) const {
    std::vector<double> x(head(t, h), head(t, h) + shape_.head_dim);
    const auto normalize = [&](std::vector<double>& of_head, bool is_due) {
      if (norm == nullptr || !is_due) return;
      of_head = reference_norm(of_head.data(), norm, 1e-6F, shape_.head_dim);
    };
    normalize(x, !shape_.norms_after);
    const auto half = static_cast<size_t>(shape_.rope_dim / 2);
    const float* cos_sin = cos_sin_.data() + t * shape_.rope_dim;
    std::vector<double> out = x;
    for (size_t i = 0; i < half; ++i) {
      const bool halves = shape_.pairs == RotaryPairs::kHalves;
      const size_t first = halves ? i : 2 * i;
      const size_t second = halves ? half + i : 2 * i + 1;
      out[first] = x[first] * cos_sin[i] - x[second] * cos_sin[half + i];
      out[second] = x[second] * cos_sin[i] + x[first] * cos_sin[half + i];
    }
    normalize(out, shape_.norms_after);
    return out;
  }

  // The index of the vector of a token and head, or of its scale.
  int64_t cache_index(int64_t t, int h, bool value, bool scale = false) const {
    const int64_t page = kv_slots_[t] / kPageSize;
    const int64_t token = kv_slots_[t] % kPageSize;
    return page * layout_.page_stride() + (value ? layout_.value_offset() : 0) +
           h * layout_.head_stride_k() +
           (scale ? layout_.scale_offset_k() + 4 * token : token * shape_.head_dim);
  }

  float i8_scale_of(int64_t t, int h, bool value) const {
    float scale = 0.0F;
    std::memcpy(&scale, cache_.data() + cache_index(t, h, value, true), sizeof(scale));
    return scale;
  }

  void expect_written(int64_t first_byte, int64_t num_bytes) {
    std::fill_n(expected_writes_.begin() + first_byte, num_bytes, true);
  }

  // Each number is within half a scale of the stored number.
  void check_i8(int64_t t, int h, bool is_value, std::span<const double> want,
                const std::string& what) {
    const float scale = i8_scale_of(t, h, is_value);
    const int64_t at = cache_index(t, h, is_value);
    double largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double stored = double{cached(cache_.data(), dtype_, at + static_cast<int64_t>(i))};
      largest = std::max(largest, std::fabs(stored));
      ASSERT_NEAR(stored * scale, want[i], 0.501 * scale + 1e-5) << what;
    }
    EXPECT_EQ(largest, 127) << what;
    expect_written(at, shape_.head_dim);
    expect_written(cache_index(t, h, is_value, true), sizeof(scale));
  }

  void check_kv(int64_t t, int h, const std::string& what) {
    const bool fp8 = dtype_ == DType::kF8E4M3;
    const auto key = expected_head(t, kHeads + h, args_.k_norm);
    const float* value = head(t, kHeads + kKvHeads + h);
    if (dtype_ == DType::kI8) {
      check_i8(t, h, false, key, what);
      check_i8(t, h, true, std::vector<double>(value, value + shape_.head_dim), what);
      return;
    }
    const auto size = static_cast<int64_t>(dtype_bytes(dtype_));
    for (const bool is_value : {false, true}) {
      expect_written(cache_index(t, h, is_value) * size, shape_.head_dim * size);
    }
    for (int64_t i = 0; i < shape_.head_dim; ++i) {
      const double k = key[static_cast<size_t>(i)] / (fp8 ? k_scale_ : 1.0F);
      const double v = static_cast<double>(value[i]) / (fp8 ? v_scale_ : 1.0F);
      const double step = relative_step(dtype_);
      const double floor = fp8 ? 0x1p-10 : 1e-5;
      ASSERT_NEAR(cached(cache_.data(), dtype_, cache_index(t, h, false) + i), k,
                  1.01 * step * std::fabs(k) + floor)
          << what;
      ASSERT_NEAR(cached(cache_.data(), dtype_, cache_index(t, h, true) + i), v,
                  1.01 * step * std::fabs(v) + floor)
          << what;
    }
  }

  static constexpr std::byte kUntouched{0x11};
  static constexpr float kQScales[kTokens] = {1.0F, 1.5F, 0.25F, 2.0F, 1.25F};

  RopeCase shape_;
  DType dtype_;
  std::vector<float> qkv_, q_out_, cos_sin_, norms_;
  std::vector<std::byte> cache_;
  std::vector<bool> expected_writes_;  // by byte of cache_
  KvLayout layout_;
  float k_scale_ = 0.5F;
  float v_scale_ = 0.03125F;
  const int64_t kv_slots_[kTokens] = {17, -1, 0, 63, 18};
  RopeAndCache args_;
};

TEST(RopeAndCache, AgreesWithTheDefinition) {
  const RopeCase cases[] = {{8, 8, false},
                            {48, 48, true},
                            {64, 64, false},
                            {64, 32, true},
                            {80, 80, false},
                            {128, 128, true},
                            {256, 256, true},
                            {8, 8, true, RotaryPairs::kNeighbours},
                            {64, 22, true, RotaryPairs::kNeighbours},
                            {128, 128, false, RotaryPairs::kNeighbours},
                            {256, 64, false, RotaryPairs::kNeighbours},
                            // GLM-4, Phi-4-mini and MiniMax-M2
                            {128, 64, false, RotaryPairs::kNeighbours},
                            {128, 96, false},
                            {128, 64, false},
                            {128, 128, true, RotaryPairs::kHalves, true},
                            {64, 22, true, RotaryPairs::kNeighbours, true, true},
                            {80, 80, true, RotaryPairs::kHalves, false, true},
                            {128, 128, false, RotaryPairs::kHalves, false, true}};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const RopeCase& shape : cases) {
      for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8}) {
        RopeAndCacheRun(shape, dtype)
            .check(*ops, variant.name + " " + std::string(dtype_name(dtype)) + " head_dim " +
                             std::to_string(shape.head_dim));
      }
    }
  }
}

// A layer without rotation has frequencies of 0.
TEST(RopeAndCache, KeepsTheNumbersWithoutRotation) {
  constexpr int kHeadDim = 24;
  constexpr int64_t kTokens = 3;
  const std::vector<float> frequencies(kHeadDim / 2, 0.0F);
  const int32_t positions[kTokens] = {0, 5, 1000000};
  const int64_t kv_slots[kTokens] = {0, 1, 2};
  const KvLayout layout = {.page_size = 4,
                           .num_kv_heads = 1,
                           .head_dim = kHeadDim,
                           .head_dim_v = kHeadDim,
                           .dtype = DType::kF32};
  std::vector<float> qkv = random_floats(kTokens * 3 * kHeadDim, 1);
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kNeighbours}) {
      std::vector<float> cos_sin(kTokens * kHeadDim);
      std::vector<float> q_out(kTokens * kHeadDim);
      std::vector<float> cache(static_cast<size_t>(layout.page_bytes()) / sizeof(float));
      ops->rope_angles(frequencies.data(), 1.0F, positions, matrix(cos_sin, kTokens, kHeadDim));
      ops->rope_and_cache({.qkv = matrix(qkv, kTokens, 3 * kHeadDim),
                           .q_out = {q_out.data(), DType::kF32, {kTokens, 1, kHeadDim}},
                           .cos_sin = matrix(cos_sin, kTokens, kHeadDim),
                           .pairs = pairs,
                           .num_heads = 1,
                           .num_kv_heads = 1,
                           .head_dim = kHeadDim,
                           .page_size = 4,
                           .kv = kv_cache_view(layout, cache.data()),
                           .kv_slots = kv_slots});
      for (int64_t i = 0; i < kTokens * kHeadDim; ++i) {
        const int64_t from = i / kHeadDim * 3 * kHeadDim + i % kHeadDim;
        EXPECT_EQ(q_out[static_cast<size_t>(i)], qkv[static_cast<size_t>(from)]) << variant.name;
        EXPECT_EQ(cache[static_cast<size_t>(i)], qkv[static_cast<size_t>(from + kHeadDim)])
            << variant.name;
      }
    }
  }
}

// MiMo-V2: keys and values differ in width, and values are scaled.
TEST(RopeAndCache, ScalesValuesOfAnotherWidth) {
  constexpr int kHeadDim = 24;
  constexpr int kNumKvHeads = 2;
  for (const int value_dim : {16, 40}) {
    const KvLayout layout = {.page_size = 4,
                             .num_kv_heads = kNumKvHeads,
                             .head_dim = kHeadDim,
                             .head_dim_v = value_dim,
                             .dtype = DType::kF32};
    const int64_t width = kHeadDim + kNumKvHeads * (kHeadDim + value_dim);
    std::vector<float> qkv = random_floats(static_cast<size_t>(2 * width), 1);
    std::vector<float> cos_sin = {1.0F, 0.0F, 1.0F, 0.0F};
    const int64_t kv_slots[] = {5, 2};
    for (const Variant& variant : variants()) {
      VariantOps ops(variant);
      std::vector<float> q_out(2 * kHeadDim);
      std::vector<float> cache(static_cast<size_t>(2 * layout.page_bytes()) / sizeof(float));
      ops->rope_and_cache({.qkv = matrix(qkv, 2, width),
                           .q_out = {q_out.data(), DType::kF32, {2, 1, kHeadDim}},
                           .cos_sin = matrix(cos_sin, 2, 2),
                           .num_heads = 1,
                           .num_kv_heads = kNumKvHeads,
                           .head_dim = kHeadDim,
                           .head_dim_v = value_dim,
                           .value_scale = 0.5F,
                           .page_size = 4,
                           .kv = kv_cache_view(layout, cache.data()),
                           .kv_slots = kv_slots});
      for (int64_t t = 0; t < 2; ++t) {
        const float* const row = qkv.data() + t * width;
        const float* const page = cache.data() + kv_slots[t] / 4 * layout.page_stride();
        const int64_t place = kv_slots[t] % 4;
        for (int h = 0; h < kNumKvHeads; ++h) {
          const float* const key = row + (1 + h) * kHeadDim;
          const float* const value = row + (1 + kNumKvHeads) * kHeadDim + h * value_dim;
          const float* const stored_key =
              page + h * layout.head_stride_k() + place * layout.token_stride_k();
          const float* const stored_value = page + layout.value_offset() +
                                            h * layout.head_stride_v() +
                                            place * layout.token_stride_v();
          for (int i = 0; i < kHeadDim; ++i) EXPECT_EQ(stored_key[i], key[i]) << variant.name;
          for (int i = 0; i < value_dim; ++i) {
            EXPECT_EQ(stored_value[i], 0.5F * value[i]) << variant.name;
          }
        }
      }
    }
  }
}

// Gemma 4: values are normed without a rotation, and may be the keys before norm and rotation.
TEST(RopeAndCache, NormsValuesThatMayBeTheKeys) {
  constexpr int kHeadDim = 40;
  constexpr int kRopeDim = 24;
  constexpr int kNumKvHeads = 2;
  constexpr int kNumHeads = 3;
  const KvLayout layout = {.page_size = 4,
                           .num_kv_heads = kNumKvHeads,
                           .head_dim = kHeadDim,
                           .head_dim_v = kHeadDim,
                           .dtype = DType::kF32};
  const std::vector<float> norms = random_floats(2 * kHeadDim, 1);
  const std::vector<float> ones(kHeadDim, 1.0F);
  std::vector<float> cos_sin = random_floats(2 * kRopeDim, 2);
  const int64_t kv_slots[] = {5, 2};
  for (const bool k_is_v : {false, true}) {
    RopeAndCache args;
    args.cos_sin = matrix(cos_sin, 2, kRopeDim);
    args.q_norm = norms.data();
    args.k_norm = norms.data() + kHeadDim;
    args.v_norm = ones.data();
    args.norm_eps = 1e-2F;
    args.k_is_v = k_is_v;
    args.num_heads = kNumHeads;
    args.num_kv_heads = kNumKvHeads;
    args.head_dim = kHeadDim;
    args.page_size = 4;
    args.kv_slots = kv_slots;
    const int64_t width = args.row_width();
    ASSERT_EQ(width, kHeadDim * (kNumHeads + (k_is_v ? 1 : 2) * kNumKvHeads));
    const auto run = [&](Ops& ops) {
      std::vector<float> qkv = random_floats(static_cast<size_t>(2 * width), 3);
      std::vector<float> q_out(2 * kNumHeads * kHeadDim);
      std::vector<float> cache(static_cast<size_t>(2 * layout.page_bytes()) / sizeof(float));
      args.qkv = matrix(qkv, 2, width);
      args.q_out = {q_out.data(), DType::kF32, {2, kNumHeads, kHeadDim}};
      args.kv = kv_cache_view(layout, cache.data());
      ops.rope_and_cache(args);
      cache.insert(cache.end(), q_out.begin(), q_out.end());
      return cache;
    };
    ReferenceOps reference;
    const std::vector<float> want = run(reference);
    for (const Variant& variant : variants()) {
      VariantOps ops(variant);
      EXPECT_THAT(run(*ops), Pointwise(FloatNear(1e-5F), want)) << variant.name;
    }
  }
}

// The cache write gives the bits of the scalar definition, over the whole range of F32.
TEST(RopeAndCache, StoresTheBitsOfTheScalarConversion) {
  constexpr int kHeadDim = 256;
  constexpr int64_t kTokens = 2048;
  std::vector<float> qkv(3 * kHeadDim * kTokens, 0.0F);
  std::mt19937 generator(5);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kHeadDim; ++i) {
      auto bits = static_cast<uint32_t>(generator());
      if (i % 4 == 1) bits &= 0xFFFFF000U;                        // ties of f16
      if (i % 4 == 2) bits = (bits & 0x8FF80000U) | 0x38000000U;  // ties of e4m3
      if (i % 4 == 3) bits = (bits & 0x8FFFFFFFU) | 0x30000000U;  // small exponents
      if (i == 0) bits = t % 2 == 0 ? 0x7F800000U : 0x7FC00001U;  // inf, NaN
      qkv[static_cast<size_t>(t * 3 * kHeadDim + 2 * kHeadDim + i)] = std::bit_cast<float>(bits);
    }
  }
  std::vector<float> cos_sin(kTokens * 2, 1.0F);
  std::vector<float> q_out(kTokens * kHeadDim);
  std::vector<int64_t> kv_slots(kTokens);
  for (size_t t = 0; t < kv_slots.size(); ++t) kv_slots[t] = static_cast<int64_t>(t);
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF8E4M3}) {
      const KvLayout layout = {.page_size = 16,
                               .num_kv_heads = 1,
                               .head_dim = kHeadDim,
                               .head_dim_v = kHeadDim,
                               .dtype = dtype};
      std::vector<std::byte> cache(static_cast<size_t>(layout.page_bytes() * kTokens / 16));
      ops->rope_and_cache({.qkv = matrix(qkv, kTokens, 3 * kHeadDim),
                           .q_out = {q_out.data(), DType::kF32, {kTokens, 1, kHeadDim}},
                           .cos_sin = matrix(cos_sin, kTokens, 2),
                           .num_heads = 1,
                           .num_kv_heads = 1,
                           .head_dim = kHeadDim,
                           .page_size = 16,
                           .kv = kv_cache_view(layout, cache.data()),
                           .kv_slots = kv_slots.data()});
      for (int64_t t = 0; t < kTokens; ++t) {
        for (int64_t i = 0; i < kHeadDim; ++i) {
          const float x = qkv[static_cast<size_t>(t * 3 * kHeadDim + 2 * kHeadDim + i)];
          const int64_t at =
              t / 16 * layout.page_stride() + layout.value_offset() + t % 16 * kHeadDim + i;
          if (dtype == DType::kF8E4M3) {
            ASSERT_EQ(reinterpret_cast<const uint8_t*>(cache.data())[at], f32_to_e4m3(x))
                << variant.name << " " << std::bit_cast<uint32_t>(x);
          } else {
            const uint16_t want = dtype == DType::kF16 ? f32_to_f16(x) : f32_to_bf16(x);
            ASSERT_EQ(reinterpret_cast<const uint16_t*>(cache.data())[at], want)
                << variant.name << " " << std::bit_cast<uint32_t>(x);
          }
        }
      }
    }
  }
}

// A vector in 8-bit integers has the integers and the scale of the scalar definition, and each
// element is within half a scale for vectors of any magnitude.
TEST(RopeAndCache, StoresTheIntegersOfTheScalarDefinition) {
  constexpr int kHeadDim = 72;  // not a multiple of every target's lanes
  constexpr int64_t kTokens = 256;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> qkv = random_floats(3 * kHeadDim * kTokens, 5);
  std::vector<float> largest(kTokens, 0.0F);
  const auto value = [&](int64_t t, int64_t i) -> float& {
    return qkv[static_cast<size_t>((t * 3 + 2) * kHeadDim + i)];
  };
  for (int64_t t = 0; t < kTokens; ++t) {
    // From subnormal numbers to the largest ones. Token 0 is all zeros; tokens 1 to 3 have an
    // element that is not finite, in a whole vector and in the rest.
    for (int64_t i = 0; i < kHeadDim; ++i) {
      value(t, i) = t == 0 ? 0.0F : std::ldexp(value(t, i), static_cast<int>(t) - 140);
    }
    if (t == 1) value(t, 3) = kInfinity;
    if (t == 2) value(t, kHeadDim - 1) = -kInfinity;
    if (t == 3) value(t, 40) = std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 0; i < kHeadDim; ++i) {
      largest[static_cast<size_t>(t)] =
          std::max(largest[static_cast<size_t>(t)], std::fabs(value(t, i)));
    }
  }
  std::vector<float> cos_sin(kTokens * 2, 1.0F);
  std::vector<float> q_out(kTokens * kHeadDim);
  std::vector<int64_t> kv_slots(kTokens);
  for (size_t t = 0; t < kv_slots.size(); ++t) kv_slots[t] = static_cast<int64_t>(t);
  const KvLayout layout = {.page_size = 32,
                           .num_kv_heads = 1,
                           .head_dim = kHeadDim,
                           .head_dim_v = kHeadDim,
                           .dtype = DType::kI8};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    std::vector<std::byte> cache(static_cast<size_t>(layout.page_bytes() * kTokens / 32));
    const KvCacheView view = kv_cache_view(layout, cache.data());
    ops->rope_and_cache({.qkv = matrix(qkv, kTokens, 3 * kHeadDim),
                         .q_out = {q_out.data(), DType::kF32, {kTokens, 1, kHeadDim}},
                         .cos_sin = matrix(cos_sin, kTokens, 2),
                         .num_heads = 1,
                         .num_kv_heads = 1,
                         .head_dim = kHeadDim,
                         .page_size = 32,
                         .kv = view,
                         .kv_slots = kv_slots.data()});
    for (int64_t t = 0; t < kTokens; ++t) {
      const int8_t* page = static_cast<const int8_t*>(view.v) + t / 32 * view.page_stride_v;
      const float scale = reinterpret_cast<const float*>(page + view.scale_offset_v)[t % 32];
      if (t >= 1 && t <= 3) {
        EXPECT_TRUE(std::isnan(scale)) << variant.name << " token " << t;
        continue;
      }
      ASSERT_EQ(scale, i8_scale(largest[static_cast<size_t>(t)])) << variant.name << " " << t;
      for (int64_t i = 0; i < kHeadDim; ++i) {
        const float x = value(t, i);
        const int8_t stored = page[t % 32 * view.token_stride_v + i];
        ASSERT_EQ(stored, f32_to_i8(x, scale)) << variant.name << " token " << t << " at " << i;
        ASSERT_LE(std::fabs(static_cast<double>(stored) * scale - x), 0.50001 * scale)
            << variant.name << " token " << t << " at " << i;
      }
    }
  }
}

TEST(RopeAndCache, ScalesFp8) {
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const RopeCase& shape : {RopeCase{64, 64, false}, RopeCase{48, 24, true}}) {
      RopeAndCacheRun(shape, DType::kF8E4M3).check(*ops, variant.name + " fp8");
    }
  }
}

// A row has the same bits alone and among others, on one thread and on two.
TEST(RowOps, RowsDoNotDependOnTheirBatch) {
  constexpr int64_t kM = 40;
  constexpr int64_t kN = 1234;
  std::vector<float> x = random_floats(kM * 2 * kN, 1);
  const std::vector<float> weight = random_floats(2 * kN, 2);
  for (const Variant& variant : variants()) {
    std::vector<float> normed(x.size());
    std::vector<float> activated(kM * kN);
    {
      VariantOps ops(variant, on_nodes({0, 0}));
      ops->residual_norm({.residual = matrix(x, kM, 2 * kN), .weight = weight.data(), .eps = 1e-5F},
                         matrix(normed, kM, 2 * kN));
      ops->gated_mul(Activation::kSilu, matrix(x, kM, 2 * kN), matrix(activated, kM, kN));
    }
    VariantOps ops(variant, on_nodes({0}));
    for (int64_t t = 0; t < kM; ++t) {
      std::vector<float> row(x.begin() + t * 2 * kN, x.begin() + (t + 1) * 2 * kN);
      std::vector<float> out(2 * kN);
      ops->residual_norm(
          {.residual = matrix(row, 1, 2 * kN), .weight = weight.data(), .eps = 1e-5F},
          matrix(out, 1, 2 * kN));
      ASSERT_EQ(std::memcmp(out.data(), normed.data() + t * 2 * kN, 2 * kN * sizeof(float)), 0);
      ops->gated_mul(Activation::kSilu, matrix(row, 1, 2 * kN), matrix(out, 1, kN));
      ASSERT_EQ(std::memcmp(out.data(), activated.data() + t * kN, kN * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace quire::testing

#include "cuda/ops/launch_gate.h"
#include "device_data.h"

namespace quire::testing {
namespace {

constexpr float kEps = 1e-5F;
// Widths of whole vectors, of partial vectors, and of more vectors than a thread block has threads.
constexpr int64_t kWidths[] = {8, 13, 100, 2048, 9000};
constexpr int64_t kRowCounts[] = {1, 5};

class RowsTest : public CudaOpsTest {
 protected:
  DeviceData weights(const std::vector<float>& values) {
    return DeviceData(stream(), {static_cast<int64_t>(values.size())}, DType::kF32, values);
  }
};

TEST_P(RowsTest, RmsNorm) {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRowCounts) {
      std::vector<float> x = random(rows * width, 1, 3.0F);
      const std::vector<float> weight = random_floats(width, 2);
      std::vector<float> expected(x.size());
      reference_.residual_norm(
          {.residual = host_view(x, rows), .weight = weight.data(), .eps = kEps},
          host_view(expected, rows));
      DeviceData input = device({rows, width}, x);
      const DeviceData scale = weights(weight);
      DeviceData out = blank({rows, width});
      ops_->residual_norm({.residual = input.view(), .weight = scale.as<float>(), .eps = kEps},
                          out.view());
      expect_near_all(out.values(), expected, tolerance(dtype()), "width " + std::to_string(width));
      const std::vector<std::byte> apart = out.bytes();
      ops_->residual_norm({.residual = input.view(), .weight = scale.as<float>(), .eps = kEps},
                          input.view());
      EXPECT_EQ(input.bytes(), apart) << "in place, width " << width;
    }
  }
}

TEST_P(RowsTest, AddRmsNorm) {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRowCounts) {
      std::vector<float> residual = random(rows * width, 1);
      std::vector<float> delta = random(rows * width, 3);
      const std::vector<float> weight = random_floats(width, 2);
      DeviceData sum = device({rows, width}, residual);
      const DeviceData add = device({rows, width}, delta);
      const DeviceData scale = weights(weight);
      DeviceData out = blank({rows, width});
      ops_->residual_norm(
          {.residual = sum.view(), .delta = add.view(), .weight = scale.as<float>(), .eps = kEps},
          out.view());
      for (size_t i = 0; i < residual.size(); ++i) residual[i] += delta[i];
      residual = rounded(residual, dtype());
      EXPECT_EQ(sum.values(), residual) << width;
      std::vector<float> expected(residual.size());
      reference_.residual_norm(
          {.residual = host_view(residual, rows), .weight = weight.data(), .eps = kEps},
          host_view(expected, rows));
      expect_near_all(out.values(), expected, tolerance(dtype()), "width " + std::to_string(width));
    }
  }
}

TEST_P(RowsTest, WithoutAWeightTheResultIsTheResidual) {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRowCounts) {
      const std::vector<float> before = random(rows * width, 1);
      const std::vector<float> delta = random(rows * width, 3);
      std::vector<float> sum = before;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += delta[i];
      sum = rounded(sum, dtype());
      const DeviceData add = device({rows, width}, delta);
      for (const bool adds : {false, true}) {
        const std::vector<float>& expected = adds ? sum : before;
        for (const bool is_in_place : {false, true}) {
          DeviceData residual = device({rows, width}, before);
          DeviceData out = blank({rows, width});
          ResidualNorm norm = {.residual = residual.view()};
          if (adds) norm.delta = add.view();
          ops_->residual_norm(norm, is_in_place ? residual.view() : out.view());
          EXPECT_EQ(residual.values(), expected) << width;
          if (is_in_place) continue;
          EXPECT_EQ(out.values(), expected) << width;
        }
      }
    }
  }
}

// Products that may be fused with a norm read the residual itself.
TEST_P(RowsTest, WithoutAWeightProductsReadTheResidual) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kWidth = 64;
  std::vector<float> square = random(kWidth * kWidth, 1, 0.1F);
  std::vector<float> wide = random(2 * kWidth * kWidth, 2, 0.1F);
  const WeightView square_view = host_view(square, kWidth);
  const WeightView wide_view = host_view(wide, 2 * kWidth);
  const auto make = [&](const WeightView& view) {
    return ops_->weights().make_linear({.numbers = StoredMatrices{{&view, 1}}}).value();
  };
  const auto down = make(square_view);
  const auto gate_up = make(wide_view);
  const Shape shape = {kRows, kWidth};
  const std::vector<float> before = random(kRows * kWidth, 3);
  DeviceData residual = device(shape, before);
  const DeviceData delta = device(shape, random(kRows * kWidth, 4));
  DeviceData sum = device(shape, before);
  ops_->residual_norm({.residual = sum.view(), .delta = delta.view()}, sum.view());

  DeviceData expected = blank(shape);
  DeviceData out = blank(shape);
  DeviceData scratch = blank(shape);
  ops_->linear(*down, sum.view(), expected.view());
  ops_->norm_linear({.residual = residual.view(), .delta = delta.view()}, *down, scratch.view(),
                    out.view());
  EXPECT_EQ(out.bytes(), expected.bytes());
  EXPECT_EQ(residual.bytes(), sum.bytes());

  DeviceData gates = blank({kRows, 2 * kWidth});
  DeviceData product = blank(shape);
  GatedMlp mlp;
  mlp.gate_up = gate_up.get();
  mlp.down = down.get();
  mlp.x = sum.view();
  mlp.out = expected.view();
  mlp.gate_up_out = gates.view();
  mlp.product = product.view();
  ops_->gated_mlp(mlp);
  residual.set(before);
  mlp.norm = {.residual = residual.view(), .delta = delta.view()};
  mlp.x = scratch.view();
  mlp.out = out.view();
  ops_->gated_mlp(mlp);
  EXPECT_EQ(out.bytes(), expected.bytes());
  EXPECT_EQ(residual.bytes(), sum.bytes());
}

TEST_P(RowsTest, WideNorm) {
  struct Case {
    int64_t q_width;
    int64_t k_width;
    int64_t rest;
  };
  for (const Case& c : {Case{6144, 1024, 1024}, Case{9000, 16, 8}, Case{100, 13, 0}}) {
    for (const int64_t rows : kRowCounts) {
      const int64_t width = c.q_width + c.k_width + c.rest;
      std::vector<float> x = random(rows * width, 1, 3.0F);
      const std::vector<float> q_norm = random_floats(c.q_width, 2);
      const std::vector<float> k_norm = random_floats(c.k_width, 3);
      std::vector<float> host_sums(static_cast<size_t>(2 * rows));
      DeviceData qkv = device({rows, width}, x);
      const DeviceData q_weights = weights(q_norm);
      const DeviceData k_weights = weights(k_norm);
      DeviceData sums(stream(), {rows, 2}, DType::kF32);
      WideNorm norm = {.qkv = qkv.view(),
                       .q_width = c.q_width,
                       .k_width = c.k_width,
                       .q_norm = q_weights.as<float>(),
                       .k_norm = k_weights.as<float>(),
                       .eps = kEps,
                       .sums = sums.view()};
      expect_capturable([&] { ops_->wide_norm(norm); }, qkv, [&] { qkv.set(x); });
      // The two kernels between which several ranks exchange the sums.
      const std::vector<std::byte> at_once = qkv.bytes();
      qkv.set(x);
      const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
      cuda::run_wide_norm(context, norm, cuda::WideNormPart::kSums, 1);
      cuda::run_wide_norm(context, norm, cuda::WideNormPart::kScaling, 1);
      EXPECT_EQ(qkv.bytes(), at_once) << c.q_width;

      norm.qkv = host_view(x, rows);
      norm.q_norm = q_norm.data();
      norm.k_norm = k_norm.data();
      norm.sums = host_view(host_sums, rows);
      reference_.wide_norm(norm);
      expect_near_all(qkv.values(), x, tolerance(dtype()), "width " + std::to_string(c.q_width));
    }
  }
}

TEST_P(RowsTest, GatedMul) {
  for (const Activation activation :
       {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kClampedSwiglu}) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : kRowCounts) {
        std::vector<float> x = random(rows * 2 * width, 4, 4.0F);
        // Values for which exp() overflows F32.
        x[0] = -300.0F;
        x[1] = 300.0F;
        std::vector<float> expected(static_cast<size_t>(rows * width));
        reference_.gated_mul(activation, host_view(x, rows), host_view(expected, rows));
        const DeviceData input = device({rows, 2 * width}, x);
        DeviceData out = blank({rows, width});
        ops_->gated_mul(activation, input.view(), out.view());
        expect_near_all(out.values(), expected, tolerance(dtype()),
                        "width " + std::to_string(width));
      }
    }
  }
}

// Beyond the limits, and NaNs.
TEST_P(RowsTest, GatedMulKeepsNaNsAndLimitsTheRest) {
  std::vector<float> x = {NAN,  1.0F, 7.5F, INFINITY, -6e4F, 2.0F,  7.0F,  1.0F,  // gates
                          1.0F, NAN,  8.0F, -9.0F,    1.0F,  -7.5F, -7.0F, -1.0F};
  std::vector<float> expected(8);
  reference_.gated_mul(Activation::kClampedSwiglu, host_view(x, 1), host_view(expected, 1));
  x = rounded(x, dtype());
  const DeviceData input = device({1, 16}, x);
  DeviceData out = blank({1, 8});
  ops_->gated_mul(Activation::kClampedSwiglu, input.view(), out.view());
  const std::vector<float> got = out.values();
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(std::isnan(got[i]), i < 2) << i;
    if (i < 2) continue;
    EXPECT_NEAR(got[i], expected[i], tolerance(dtype()) * (1 + std::abs(expected[i]))) << i;
  }
}

TEST_P(RowsTest, GatedMulOfColumns) {
  constexpr int64_t kUpWidth = 100;
  for (const int64_t width : {16, 19}) {
    for (const int64_t first : {0, 32, 7}) {
      for (const int64_t rows : kRowCounts) {
        std::vector<float> gate = random(rows * width, 4);
        std::vector<float> up = random(rows * kUpWidth, 5);
        std::vector<float> expected(static_cast<size_t>(rows * width));
        reference_.gated_mul_columns(Activation::kGeluTanh, host_view(gate, rows),
                                     host_view(up, rows), first, host_view(expected, rows));
        const DeviceData gates = device({rows, width}, gate);
        const DeviceData ups = device({rows, kUpWidth}, up);
        DeviceData out = blank({rows, width});
        ops_->gated_mul_columns(Activation::kGeluTanh, gates.view(), ups.view(), first, out.view());
        expect_near_all(out.values(), expected, tolerance(dtype()),
                        "width " + std::to_string(width));
      }
    }
  }
}

// Gemma 4: a number of the layer multiplies the sum.
TEST_P(RowsTest, ResidualNormScalesTheSum) {
  const DeviceData scale(stream(), {1}, DType::kF32, std::vector<float>{0.37F});
  const float host_scale = 0.37F;
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRowCounts) {
      for (const bool has_weight : {false, true}) {
        const Shape shape = {rows, width};
        std::vector<float> sum = random(rows * width, 1);
        std::vector<float> delta = random(rows * width, 2);
        const std::vector<float> weight = random_floats(width, 3);
        DeviceData residual = device(shape, sum);
        const DeviceData change = device(shape, delta);
        const DeviceData weights(stream(), {width}, DType::kF32, weight);
        DeviceData out = blank(shape);
        ops_->residual_norm({.residual = residual.view(),
                             .delta = change.view(),
                             .weight = has_weight ? weights.as<float>() : nullptr,
                             .eps = kEps,
                             .scale = scale.as<float>()},
                            out.view());
        std::vector<float> expected(sum.size());
        reference_.residual_norm({.residual = host_view(sum, rows),
                                  .delta = host_view(delta, rows),
                                  .weight = has_weight ? weight.data() : nullptr,
                                  .eps = kEps,
                                  .scale = &host_scale},
                                 host_view(expected, rows));
        expect_near_all(residual.values(), sum, tolerance(dtype()), "residual");
        expect_near_all(out.values(), expected, 2 * tolerance(dtype()), "norm");
      }
    }
  }
}

// One gate per row, per head and per element; the gates of a router are F32.
TEST_P(RowsTest, Gate) {
  for (const GateFunction function :
       {GateFunction::kIdentity, GateFunction::kSigmoid, GateFunction::kSoftplus}) {
    for (const int64_t num_gates : {1, 6, 128 * 6, 13}) {
      const int64_t width = num_gates == 13 ? 13 * 5 : 128 * 6;
      for (const int64_t rows : kRowCounts) {
        std::vector<float> gates = random(rows * num_gates, 5, 4.0F);
        gates[0] = function == GateFunction::kIdentity ? 2.0F : 200.0F;
        std::vector<float> x = random(rows * width, 6);
        DeviceData values = device({rows, width}, x);
        const DeviceData input = device({rows, num_gates}, gates);
        const DeviceData wide(stream(), {rows, num_gates}, DType::kF32, gates);
        DeviceData again = device({rows, width}, x);
        ops_->gate({.x = values.view(), .gates = input.view(), .function = function});
        ops_->gate({.x = again.view(), .gates = wide.view(), .function = function});
        reference_.gate(
            {.x = host_view(x, rows), .gates = host_view(gates, rows), .function = function});
        expect_near_all(values.values(), x, tolerance(dtype()),
                        "gates " + std::to_string(num_gates));
        EXPECT_EQ(again.bytes(), values.bytes()) << num_gates;
      }
    }
  }
}

TEST_P(RowsTest, SoftCap) {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRowCounts) {
      std::vector<float> x = random_floats(rows * width, 4, 40.0F);
      x[0] = -1e30F;
      x[1] = 1e-4F;
      DeviceData logits(stream(), {rows, width}, DType::kF32, x);
      reference_.soft_cap(30.0F, host_view(x, rows));
      ops_->soft_cap(30.0F, logits.view());
      expect_near_all(logits.values(), x, 1e-5F, "width " + std::to_string(width));
    }
  }
}

TEST_P(RowsTest, GatherAndEmbedCopyRows) {
  const std::vector<int32_t> ids = {4, 0, 4, 16};
  for (const int64_t width : kWidths) {
    std::vector<float> table = random(17 * width, 5);
    std::vector<float> expected(ids.size() * static_cast<size_t>(width));
    reference_.gather_rows(host_view(table, 17), ids.data(), host_view(expected, 4));
    const DeviceData rows = DeviceData::of_ints(stream(), ids);
    const DeviceData input = device({17, width}, table);
    DeviceData out = blank({4, width});
    ops_->gather_rows(input.view(), rows.as<int32_t>(), out.view());
    EXPECT_EQ(out.values(), expected) << width;

    const WeightView block = host_view(table, 17);
    const auto linear =
        ops_->weights().make_linear({.numbers = StoredMatrices{{&block, 1}}}).value();
    out.poison();
    ops_->embed(*linear, rows.as<int32_t>(), 1.0F, out.view());
    EXPECT_EQ(out.values(), expected) << width;
    out.poison();
    ops_->embed(*linear, rows.as<int32_t>(), 1.7F, out.view());
    for (float& value : expected) value *= 1.7F;
    EXPECT_EQ(out.values(), rounded(expected, dtype())) << width << ", scaled";
  }
}

TEST_P(RowsTest, WriteColumnsKeepsTheOtherColumns) {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t first : {int64_t{0}, int64_t{3}, 2 * width}) {
        std::vector<float> x = random(rows * width, 7);
        std::vector<float> expected = random(rows * 3 * width, 8);
        const DeviceData input = device({rows, width}, x);
        DeviceData out = device({rows, 3 * width}, expected);
        reference_.write_columns(host_view(x, rows), host_view(expected, rows), first);
        ops_->write_columns(input.view(), out.view(), first);
        EXPECT_EQ(out.values(), expected) << "width " << width << ", column " << first;
      }
    }
  }
}

TEST_P(RowsTest, AnglesOfFarPositions) {
  const std::vector<int32_t> positions = {0, 1, 17, 131071, 1000000};
  for (const int64_t half : {3, 64, 128}) {
    std::vector<float> inv_freq;
    for (int64_t i = 0; i < half; ++i) {
      inv_freq.push_back(static_cast<float>(
          std::pow(500000.0, -static_cast<double>(i) / static_cast<double>(half))));
    }
    std::vector<float> expected(positions.size() * 2 * static_cast<size_t>(half));
    reference_.rope_angles(inv_freq.data(), 1.3F, positions.data(), host_view(expected, 5));
    const DeviceData frequencies = weights(inv_freq);
    const DeviceData where = DeviceData::of_ints(stream(), positions);
    DeviceData out(stream(), {5, 2 * half}, DType::kF32);
    ops_->rope_angles(frequencies.as<float>(), 1.3F, where.as<int32_t>(), out.view());
    expect_near_all(out.values(), expected, 1e-6F, "half " + std::to_string(half));
  }
}

TEST_P(RowsTest, ScalesOfFarPositions) {
  const std::vector<int32_t> positions = {0, 8190, 8191, 8192, 16383, 1000000};
  const DeviceData where = DeviceData::of_ints(stream(), positions);
  for (const float offset : {0.0F, 1.0F}) {
    const PositionScale scale = {.beta = 0.1F, .period = 8192.0F, .offset = offset};
    std::vector<float> expected(positions.size());
    reference_.position_scales(scale, positions.data(), {expected.data(), DType::kF32, {6}});
    DeviceData out(stream(), {6}, DType::kF32);
    ops_->position_scales(scale, where.as<int32_t>(), out.view());
    expect_near_all(out.values(), expected, 1e-7F, "offset " + std::to_string(offset));
  }
}

TEST_P(RowsTest, CanBeCaptured) {
  const int64_t rows = 6;
  const int64_t width = 264;
  const std::vector<float> x = random(rows * 2 * width, 6);
  const std::vector<float> half(x.begin(), x.begin() + rows * width);
  const DeviceData wide = device({rows, 2 * width}, x);
  const DeviceData narrow = device({rows, width}, half);
  const DeviceData scale = weights(random_floats(width, 2));
  const DeviceData ids = DeviceData::of_ints<int32_t>(stream(), {5, 4, 3, 2, 1, 0});
  DeviceData residual = device({rows, width}, half);
  DeviceData out = blank({rows, width});
  DeviceData angles(stream(), {rows, 32}, DType::kF32);
  const auto poison = [&] { out.poison(); };
  expect_capturable(
      [&] {
        ops_->residual_norm({.residual = narrow.view(), .weight = scale.as<float>(), .eps = kEps},
                            out.view());
      },
      out, poison);
  expect_capturable([&] { ops_->gated_mul(Activation::kGeluTanh, wide.view(), out.view()); }, out,
                    poison);
  expect_capturable([&] { ops_->gather_rows(narrow.view(), ids.as<int32_t>(), out.view()); }, out,
                    poison);
  DeviceData both = blank({rows, 2 * width});
  expect_capturable(
      [&] {
        ops_->write_columns(narrow.view(), both.view(), 0);
        ops_->write_columns(narrow.view(), both.view(), width);
      },
      both, [&] { both.poison(); });
  // In a chain each kernel starts while the previous one runs.
  expect_capturable(
      [&] {
        for (int i = 0; i < 20; ++i) {
          ops_->residual_norm({.residual = residual.view(),
                               .delta = narrow.view(),
                               .weight = scale.as<float>(),
                               .eps = kEps},
                              out.view());
          ops_->residual_norm({.residual = residual.view(),
                               .delta = out.view(),
                               .weight = scale.as<float>(),
                               .eps = kEps},
                              out.view());
        }
      },
      out,
      [&] {
        residual.set(half);
        out.poison();
      });
  expect_capturable(
      [&] { ops_->rope_angles(scale.as<float>(), 1.0F, ids.as<int32_t>(), angles.view()); }, angles,
      [&] { angles.poison(); });
}

INSTANTIATE_TEST_SUITE_P(Types, RowsTest, ::testing::Values(DType::kBF16, DType::kF16, DType::kF32),
                         dtype_of_test);

TEST_P(RowsTest, LaunchGateHoldsTheStream) {
  cuda::LaunchGate gate = value_of(cuda::LaunchGate::create());
  cuda::CudaEvent event = value_of(cuda::CudaEvent::create());
  for (int turn = 0; turn < 3; ++turn) {
    const Status held = gate.hold(stream(), [&]() -> Status {
      event.record(stream());
      EXPECT_FALSE(event.has_passed()) << turn;
      return {};
    });
    EXPECT_EQ(held.message(), "");
    EXPECT_EQ(stream().synchronize().message(), "");
    EXPECT_TRUE(event.has_passed()) << turn;
  }
  // A wait for the held stream ends, too.
  EXPECT_EQ(gate.hold(stream(), [&] { return stream().synchronize(); }).message(), "");
}

}  // namespace
}  // namespace quire::testing

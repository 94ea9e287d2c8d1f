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

TEST_P(RowsTest, GatedMul) {
  for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
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

}  // namespace
}  // namespace quire::testing

// Compares the operations of multi-head latent attention with their definitions in double, on every
// target.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/latent_ops.h"
#include "ops_fixture.h"
#include "support/reference_ops.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

constexpr float kUntouched = 77.0F;

// One matrix per head, of random numbers.
class HeadMatrices {
 public:
  HeadMatrices(int num_heads, int64_t num_out, int64_t num_in, DType dtype) {
    const auto count = static_cast<size_t>(num_out * num_in);
    for (int h = 0; h < num_heads; ++h) {
      const std::vector<float> numbers = random_floats(
          count, static_cast<uint32_t>(h), 1.0F / std::sqrt(static_cast<float>(num_in)));
      std::vector<std::byte>& bytes = memory_.emplace_back(count * dtype_bytes(dtype));
      for (size_t i = 0; i < count; ++i) {
        if (dtype == DType::kF32) {
          std::memcpy(bytes.data() + i * sizeof(float), &numbers[i], sizeof(float));
        } else {
          const uint16_t half =
              dtype == DType::kF16 ? f32_to_f16(numbers[i]) : f32_to_bf16(numbers[i]);
          std::memcpy(bytes.data() + i * sizeof(half), &half, sizeof(half));
        }
      }
    }
    for (std::vector<std::byte>& bytes : memory_) {
      views.push_back({bytes.data(), dtype, {num_out, num_in}});
    }
  }

  std::vector<TensorView> views;

 private:
  std::vector<std::vector<std::byte>> memory_;
};

struct HeadCase {
  int num_heads;
  int64_t num_in;
  int64_t num_out;
  int64_t x_width;  // elements per head
  int64_t out_width;
};

std::vector<float> run_per_head_linear(Ops& ops, const PerHeadLinear& w, const HeadCase& shape,
                                       std::vector<float> x, int64_t num_tokens) {
  std::vector<float> out(static_cast<size_t>(num_tokens * shape.num_heads * shape.out_width),
                         kUntouched);
  ops.latents()->per_head_linear(
      w, {x.data(), DType::kF32, {num_tokens, shape.num_heads, shape.x_width}},
      {out.data(), DType::kF32, {num_tokens, shape.num_heads, shape.out_width}});
  return out;
}

const HeadCase kHeadCases[] = {
    {1, 16, 32, 16, 32},      {3, 24, 17, 40, 20},  {16, 128, 512, 192, 576},
    {20, 512, 128, 512, 128}, {40, 33, 64, 33, 70},
};

TEST(PerHeadLinear, AgreesWithTheDefinition) {
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    ReferenceOps reference;
    for (const HeadCase& shape : kHeadCases) {
      for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
        // AMX omits the product of the second terms of an F16 weight and an activation.
        const double bound = uses_amx(variant) && dtype == DType::kF16 ? 1e-4 : 3e-5;
        const HeadMatrices matrices(shape.num_heads, shape.num_out, shape.num_in, dtype);
        const auto w = ops->weights().make_per_head_linear(matrices.views).value();
        const auto exact = reference.make_per_head_linear(matrices.views).value();
        EXPECT_EQ(w->num_heads(), shape.num_heads);
        for (const int64_t num_tokens : {1, 5, 16, 17}) {
          const std::vector<float> x =
              random_floats(static_cast<size_t>(num_tokens * shape.num_heads * shape.x_width), 9);
          const auto got = run_per_head_linear(*ops, *w, shape, x, num_tokens);
          const auto want = run_per_head_linear(reference, *exact, shape, x, num_tokens);
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_NEAR(got[i], want[i], bound)
                << variant.name << " " << dtype_name(dtype) << " heads " << shape.num_heads
                << " tokens " << num_tokens << " at " << i;
          }
        }
      }
    }
  }
}

// 300 tokens are more than one block of rows.
TEST(PerHeadLinear, RowsDoNotDependOnTheirBatch) {
  constexpr int64_t kTokens = 300;
  const HeadCase shape = {3, 40, 72, 48, 80};
  const auto x_row = static_cast<size_t>(shape.num_heads * shape.x_width);
  const auto out_row = static_cast<size_t>(shape.num_heads * shape.out_width);
  const std::vector<float> x = random_floats(kTokens * x_row, 4);
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    const HeadMatrices matrices(shape.num_heads, shape.num_out, shape.num_in, DType::kBF16);
    const auto w = ops->weights().make_per_head_linear(matrices.views).value();
    const std::vector<float> all = run_per_head_linear(*ops, *w, shape, x, kTokens);
    for (const size_t t : {size_t{0}, size_t{17}, size_t{255}, size_t{256}, size_t{299}}) {
      const auto at = x.begin() + static_cast<int64_t>(t * x_row);
      const std::vector<float> one =
          run_per_head_linear(*ops, *w, shape, {at, at + static_cast<int64_t>(x_row)}, 1);
      EXPECT_TRUE(
          std::equal(one.begin(), one.end(), all.begin() + static_cast<int64_t>(t * out_row)))
          << variant.name << " token " << t;
    }
  }
}

struct LatentCase {
  int num_heads;
  int64_t nope_dim;
  int64_t rope_dim;
  int64_t latent_dim;
  RotaryPairs pairs = RotaryPairs::kNeighbours;
};

// The inputs of one call, and its output after run().
struct LatentRun {
  static constexpr int64_t kTokens = 5;
  static constexpr int kPageSize = 16;
  static constexpr int kPages = 4;

  LatentRun(const LatentCase& shape, DType dtype) {
    const int64_t width = shape.latent_dim + shape.rope_dim;
    const int64_t q_dim = shape.nope_dim + shape.rope_dim;
    const auto count = [&](int64_t per_token) { return static_cast<size_t>(kTokens * per_token); };
    q = random_floats(count(shape.num_heads * q_dim), 1);
    latent = random_floats(count(width), 2, 3.0F);
    cos_sin = random_floats(count(shape.rope_dim), 3);
    norm = random_floats(static_cast<size_t>(shape.latent_dim), 4);
    q_out.assign(count(shape.num_heads * width), kUntouched);
    layout = {.page_size = kPageSize,
              .num_kv_heads = 1,
              .head_dim = static_cast<int>(width),
              .head_dim_v = static_cast<int>(shape.latent_dim),
              .is_latent = true,
              .dtype = dtype};
    cache.assign(static_cast<size_t>(layout.page_bytes() * kPages), std::byte{0x11});
    args = {.q = {q.data(), DType::kF32, {kTokens, shape.num_heads, q_dim}},
            .q_out = {q_out.data(), DType::kF32, {kTokens, shape.num_heads, width}},
            .latent = {latent.data(), DType::kF32, {kTokens, width}},
            .cos_sin = {cos_sin.data(), DType::kF32, {kTokens, shape.rope_dim}},
            .pairs = shape.pairs,
            .norm = norm.data(),
            .norm_eps = 1e-6F,
            .page_size = kPageSize,
            .kv = kv_cache_view(layout, cache.data()),
            .kv_slots = kv_slots};
  }

  std::vector<float> cached() const {
    std::vector<float> numbers;
    for (size_t i = 0; i < cache.size() / dtype_bytes(layout.dtype); ++i) {
      numbers.push_back(element_as_f32({const_cast<std::byte*>(cache.data()), layout.dtype, {}},
                                       static_cast<int64_t>(i)));
    }
    return numbers;
  }

  std::vector<float> q, latent, cos_sin, norm, q_out;
  std::vector<std::byte> cache;
  KvLayout layout;
  const int64_t kv_slots[kTokens] = {17, -1, 0, 63, 18};
  const float q_scale[kTokens] = {1.0F, 1.5F, 0.25F, 2.0F, 1.25F};
  LatentRopeAndCache args;
};

TEST(LatentRopeAndCache, AgreesWithTheDefinition) {
  const LatentCase cases[] = {
      {16, 128, 64, 512}, {3, 16, 8, 24}, {1, 0, 2, 8}, {5, 20, 22, 40, RotaryPairs::kHalves}};
  ReferenceOps reference;
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const LatentCase& shape : cases) {
      const std::pair<DType, float> precisions[] = {
          {DType::kF32, 1e-5F}, {DType::kF16, 5e-3F}, {DType::kBF16, 4e-2F}};
      for (const auto& [dtype, tolerance] : precisions) {
        LatentRun got(shape, dtype);
        LatentRun want(shape, dtype);
        ops->latents()->latent_rope_and_cache(got.args);
        reference.latent_rope_and_cache(want.args);
        for (size_t i = 0; i < got.q_out.size(); ++i) {
          ASSERT_NEAR(got.q_out[i], want.q_out[i], 1e-5) << variant.name << " at " << i;
        }
        const std::vector<float> got_cache = got.cached();
        const std::vector<float> want_cache = want.cached();
        for (size_t i = 0; i < got_cache.size(); ++i) {
          ASSERT_NEAR(got_cache[i], want_cache[i], tolerance)
              << variant.name << " " << dtype_name(dtype) << " at " << i;
        }
      }
    }
  }
}

// The scale multiplies whole heads of q_out, also the elements that the caller has written. With q
// as q_out, these are those of q.
TEST(LatentRopeAndCache, ScalesWholeQueries) {
  const LatentCase shape = {3, 24, 8, 24};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    for (const bool is_in_place : {false, true}) {
      LatentRun plain(shape, DType::kF32);
      LatentRun scaled(shape, DType::kF32);
      scaled.args.q_scale = scaled.q_scale;
      if (is_in_place) {
        plain.args.q_out = plain.args.q;
        scaled.args.q_out = scaled.args.q;
      }
      ops->latents()->latent_rope_and_cache(plain.args);
      ops->latents()->latent_rope_and_cache(scaled.args);
      const int64_t width = plain.args.q_out.shape[1] * plain.args.q_out.shape[2];
      for (int64_t i = 0; i < LatentRun::kTokens * width; ++i) {
        ASSERT_EQ(scaled.args.q_out.as<float>()[i],
                  plain.args.q_out.as<float>()[i] * scaled.q_scale[i / width])
            << variant.name << " at " << i;
      }
      EXPECT_EQ(scaled.cached(), plain.cached()) << variant.name;
    }
  }
}

TEST(LatentRopeAndCache, ScalesFp8) {
  const LatentCase shape = {2, 8, 8, 16};
  const float scale = 0.5F;
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    LatentRun exact(shape, DType::kF32);
    LatentRun scaled(shape, DType::kF8E4M3);
    const float other_scale = 3.0F;
    scaled.args.kv.k_scale = &scale;
    scaled.args.kv.v_scale = &other_scale;  // of no use: the values are a part of the keys
    ops->latents()->latent_rope_and_cache(exact.args);
    ops->latents()->latent_rope_and_cache(scaled.args);
    const int64_t width = shape.latent_dim + shape.rope_dim;
    const std::vector<float> values = exact.cached();
    for (const int64_t slot : {17, 0, 63, 18}) {
      for (int64_t i = slot * width; i < (slot + 1) * width; ++i) {
        const float value = values[static_cast<size_t>(i)];
        EXPECT_EQ(std::to_integer<uint8_t>(scaled.cache[static_cast<size_t>(i)]),
                  f32_to_e4m3(value / scale))
            << variant.name << " at " << i;
      }
    }
  }
}

// The normalized part and the rotated part of a latent vector in 8-bit integers have one scale
// each.
TEST(LatentRopeAndCache, ScalesEachPartOfAVectorOfIntegers) {
  const LatentCase shape = {2, 8, 8, 24};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    LatentRun exact(shape, DType::kF32);
    LatentRun stored(shape, DType::kI8);
    ops->latents()->latent_rope_and_cache(exact.args);
    ops->latents()->latent_rope_and_cache(stored.args);
    const KvCacheView& view = stored.args.kv;
    const int64_t width = shape.latent_dim + shape.rope_dim;
    const std::vector<float> values = exact.cached();
    for (const int64_t slot : {17, 0, 63, 18}) {
      const int8_t* page = static_cast<const int8_t*>(view.k) + slot / 16 * view.page_stride_k;
      const auto* scales = reinterpret_cast<const float*>(page + view.scale_offset_k);
      for (const bool rotated : {false, true}) {
        const int64_t first = rotated ? shape.latent_dim : 0;
        const int64_t end = rotated ? width : shape.latent_dim;
        const float scale = scales[slot % 16 + (rotated ? LatentRun::kPageSize : 0)];
        float largest = 0.0F;
        for (int64_t i = first; i < end; ++i) {
          largest = std::max(largest, std::fabs(values[static_cast<size_t>(slot * width + i)]));
        }
        EXPECT_EQ(scale, i8_scale(largest)) << variant.name;
        for (int64_t i = first; i < end; ++i) {
          EXPECT_EQ(page[slot % 16 * view.token_stride_k + i],
                    f32_to_i8(values[static_cast<size_t>(slot * width + i)], scale))
              << variant.name << " at " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire::testing

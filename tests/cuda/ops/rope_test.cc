#include "device_data.h"

namespace quire::testing {
namespace {

struct RopeCase {
  int head_dim;
  int rope_dim;
  bool norm = false;
  int64_t stride_padding = 0;  // elements between tokens of the cache
  RotaryPairs pairs = RotaryPairs::kHalves;
  bool norms_after = false;
  bool has_q_scale = false;
  int value_dim = 0;  // 0: head_dim
  float value_scale = 1.0F;
  bool norms_values = false;
  bool k_is_v = false;

  int num_value_elements() const { return value_dim > 0 ? value_dim : head_dim; }
};

constexpr int kNumHeads = 5;
constexpr int kNumKvHeads = 2;
constexpr int kPageSize = 16;
constexpr int64_t kNumPages = 4;

class RopeTest : public CudaOpsTest {
 protected:
  // Keys and values are in separate pools, so that their strides differ.
  KvCacheView cache_view(const RopeCase& spec, DType kv, void* k, void* v) const {
    KvCacheView view;
    view.k = k;
    view.v = v;
    view.dtype = kv;
    view.token_stride_k = spec.head_dim + spec.stride_padding;
    view.head_stride_k = kPageSize * view.token_stride_k;
    view.page_stride_k = kNumKvHeads * view.head_stride_k;
    view.head_stride_v = spec.head_dim + spec.stride_padding;
    view.token_stride_v = kNumKvHeads * view.head_stride_v;
    view.page_stride_v = kPageSize * view.token_stride_v;
    return view;
  }

  void check(const RopeCase& spec, DType kv);

  // KV slots: padding, the first and last one, and others.
  const std::vector<int64_t> kv_slots_ = {3, -1, 0, kNumPages* kPageSize - 1, -1, 16, 31};
};

void RopeTest::check(const RopeCase& spec, DType kv) {
  const std::string what = "head_dim " + std::to_string(spec.head_dim) + ", rope_dim " +
                           std::to_string(spec.rope_dim) + ", kv " + std::string(dtype_name(kv));
  const auto num_tokens = static_cast<int64_t>(kv_slots_.size());
  const int64_t q_width = int64_t{kNumHeads} * spec.head_dim;
  const int64_t width =
      q_width +
      int64_t{kNumKvHeads} * (spec.head_dim + (spec.k_is_v ? 0 : spec.num_value_elements()));
  const int64_t cache_size =
      kNumPages * kPageSize * kNumKvHeads * (spec.head_dim + spec.stride_padding);
  std::vector<float> qkv = random(num_tokens * width, 1, 2.0F);
  std::vector<float> angles = random_floats(num_tokens * spec.rope_dim, 2);
  const std::vector<float> q_norm = random_floats(spec.head_dim, 3);
  const std::vector<float> k_norm = random_floats(spec.head_dim, 4);
  const std::vector<float> v_norm = random_floats(spec.num_value_elements(), 6);
  const std::vector<float> q_scale = random_floats(num_tokens, 5);
  // The scale of values makes some of them saturate.
  const float k_scale = kv == DType::kF8E4M3 ? 0.25F : 1.0F;
  const float v_scale = kv == DType::kF8E4M3 ? 0.01F : 1.0F;

  std::vector<float> expected_q(static_cast<size_t>(num_tokens * q_width));
  std::vector<float> expected_k(static_cast<size_t>(cache_size), NAN);
  std::vector<float> expected_v(static_cast<size_t>(cache_size), NAN);
  std::vector<float> scratch = qkv;
  RopeAndCache args;
  args.qkv = host_view(scratch, num_tokens);
  args.q_out = host_view(expected_q, num_tokens);
  args.cos_sin = host_view(angles, num_tokens);
  args.pairs = spec.pairs;
  args.q_norm = spec.norm ? q_norm.data() : nullptr;
  args.k_norm = spec.norm ? k_norm.data() : nullptr;
  args.v_norm = spec.norms_values ? v_norm.data() : nullptr;
  args.k_is_v = spec.k_is_v;
  args.norm_eps = 1e-6F;
  args.norms_after_rotation = spec.norms_after;
  args.q_scale = spec.has_q_scale ? q_scale.data() : nullptr;
  args.num_heads = kNumHeads;
  args.num_kv_heads = kNumKvHeads;
  args.head_dim = spec.head_dim;
  args.head_dim_v = spec.value_dim;
  args.value_scale = spec.value_scale;
  args.page_size = kPageSize;
  args.kv = cache_view(spec, DType::kF32, expected_k.data(), expected_v.data());
  args.kv_slots = kv_slots_.data();
  reference_.rope_and_cache(args);

  const DeviceData input = device({num_tokens, width}, qkv);
  const DeviceData cos_sin(stream(), {num_tokens, spec.rope_dim}, DType::kF32, angles);
  const DeviceData norms_q(stream(), {spec.head_dim}, DType::kF32, q_norm);
  const DeviceData norms_k(stream(), {spec.head_dim}, DType::kF32, k_norm);
  const DeviceData norms_v(stream(), {spec.num_value_elements()}, DType::kF32, v_norm);
  const DeviceData q_scales(stream(), {num_tokens}, DType::kF32, q_scale);
  const DeviceData scales(stream(), {2}, DType::kF32, std::vector<float>{k_scale, v_scale});
  const DeviceData kv_slots = DeviceData::of_ints(stream(), kv_slots_);
  DeviceData q_out = blank({num_tokens, kNumHeads, spec.head_dim});
  DeviceData k_cache(stream(), {cache_size}, kv);
  DeviceData v_cache(stream(), {cache_size}, kv);
  args.qkv = input.view();
  args.q_out = q_out.view();
  args.cos_sin = cos_sin.view();
  args.q_norm = spec.norm ? norms_q.as<float>() : nullptr;
  args.k_norm = spec.norm ? norms_k.as<float>() : nullptr;
  args.v_norm = spec.norms_values ? norms_v.as<float>() : nullptr;
  args.q_scale = spec.has_q_scale ? q_scales.as<float>() : nullptr;
  args.kv = cache_view(spec, kv, k_cache.view().data, v_cache.view().data);
  args.kv.k_scale = scales.as<float>();
  args.kv.v_scale = scales.as<float>() + 1;
  args.kv_slots = kv_slots.as<int64_t>();
  const auto poison = [&] {
    q_out.poison();
    k_cache.poison();
    v_cache.poison();
  };
  const auto run = [&] { ops_->rope_and_cache(args); };
  expect_capturable(run, k_cache, poison);
  expect_capturable(run, v_cache, poison);
  expect_capturable(run, q_out, poison);

  expect_near_all(q_out.values(), expected_q, tolerance(dtype()), what + ", q");
  const float kv_tolerance =
      std::max(tolerance(dtype()), kv == DType::kF8E4M3 ? 0.07F : tolerance(kv));
  const auto expect_cache = [&](DeviceData& cache, const std::vector<float>& expected, float scale,
                                int head_elements, const std::string& name) {
    const std::vector<float> actual = cache.values();
    std::vector<float> written;
    std::vector<float> wanted;
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << name << " " << i;
      if (std::isnan(expected[i])) continue;
      const float stored = expected[i] / scale;
      written.push_back(actual[i]);
      wanted.push_back(kv == DType::kF8E4M3 ? std::clamp(stored, -448.0F, 448.0F) : stored);
    }
    EXPECT_EQ(written.size(), 5U * kNumKvHeads * static_cast<size_t>(head_elements));
    expect_near_all(written, wanted, kv_tolerance, name);
  };
  expect_cache(k_cache, expected_k, k_scale, spec.head_dim, what + ", k");
  expect_cache(v_cache, expected_v, v_scale, spec.num_value_elements(), what + ", v");
}

TEST_P(RopeTest, EveryHeadAndCacheType) {
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF32, DType::kF8E4M3}) {
    check({128, 128}, kv);
    check({64, 64, true}, kv);
    check({256, 256, true}, kv);
    check({80, 80, true}, kv);
  }
}

TEST_P(RopeTest, OddSizes) {
  check({8, 8}, dtype());
  check({16, 16, true}, dtype());
  check({36, 36, true}, dtype());
  check({128, 64, true}, dtype());
  check({96, 10}, dtype());
  check({128, 128, true, 1}, dtype());
  check({128, 128, false, 8}, dtype());
  check({128, 128, false, 4}, DType::kF8E4M3);
}

TEST_P(RopeTest, NeighboursAsPairs) {
  for (const RopeCase& spec : {RopeCase{128, 128}, RopeCase{64, 64, true}, RopeCase{256, 256, true},
                               RopeCase{8, 8}, RopeCase{36, 36, true}, RopeCase{128, 64, true},
                               RopeCase{96, 10}, RopeCase{128, 128, true, 1}}) {
    RopeCase neighbours = spec;
    neighbours.pairs = RotaryPairs::kNeighbours;
    check(neighbours, dtype());
    check(neighbours, DType::kF8E4M3);
  }
}

// GLM-4, Phi-4-mini and MiniMax-M2, and a part that is not divisible into vectors.
TEST_P(RopeTest, PartsOfHeads) {
  for (const DType kv : {dtype(), DType::kF8E4M3}) {
    for (const bool norm : {false, true}) {
      check({128, 64, norm, 0, RotaryPairs::kNeighbours}, kv);
      check({128, 96, norm}, kv);
      check({128, 64, norm}, kv);
      check({256, 16, norm}, kv);
      check({128, 40, norm}, kv);
    }
  }
}

TEST_P(RopeTest, NormsAfterTheRotation) {
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kNeighbours}) {
    for (const RopeCase& spec : {RopeCase{128, 128, true}, RopeCase{128, 64, true},
                                 RopeCase{80, 80, true}, RopeCase{36, 10, true}}) {
      RopeCase after = spec;
      after.pairs = pairs;
      after.norms_after = true;
      check(after, dtype());
      after.has_q_scale = true;
      check(after, DType::kF8E4M3);
    }
  }
}

// MiMo-V2.
TEST_P(RopeTest, ScalesValuesOfAnotherWidth) {
  for (const DType kv : {dtype(), DType::kF8E4M3}) {
    for (const RopeCase& spec : {RopeCase{192, 64}, RopeCase{128, 128, true}, RopeCase{80, 80}}) {
      RopeCase scaled = spec;
      scaled.value_scale = 0.707F;
      check(scaled, kv);
      scaled.value_dim = 64;
      check(scaled, kv);
    }
  }
}

// Gemma 4: with 512 elements a head is wider than the vectors of a warp in F32.
TEST_P(RopeTest, NormsValuesThatMayBeTheKeys) {
  for (const DType kv : {dtype(), DType::kF8E4M3}) {
    for (const RopeCase& spec : {RopeCase{256, 256, true}, RopeCase{512, 512, true},
                                 RopeCase{80, 80, true}, RopeCase{36, 10}}) {
      RopeCase normed = spec;
      normed.norms_values = true;
      check(normed, kv);
      normed.k_is_v = true;
      check(normed, kv);
    }
  }
}

TEST_P(RopeTest, ScalesQueries) {
  for (const bool norm : {false, true}) {
    check({128, 128, norm, 0, RotaryPairs::kHalves, false, true}, dtype());
    check({64, 32, norm, 0, RotaryPairs::kNeighbours, false, true}, dtype());
    check({80, 80, norm, 0, RotaryPairs::kHalves, false, true}, dtype());
  }
}

// A layer without rotation has frequencies of 0.
TEST_P(RopeTest, KeepsTheNumbersWithoutRotation) {
  for (const int64_t head_dim : {64, 80}) {
    for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kNeighbours}) {
      const std::vector<float> qkv = random(2 * 3 * head_dim, 9);
      const DeviceData input = device({2, 3 * head_dim}, qkv);
      const DeviceData frequencies(stream(), {head_dim / 2}, DType::kF32,
                                   std::vector<float>(static_cast<size_t>(head_dim / 2), 0.0F));
      const DeviceData positions = DeviceData::of_ints<int32_t>(stream(), {7, 1000000});
      const DeviceData kv_slots = DeviceData::of_ints<int64_t>(stream(), {0, 1});
      DeviceData cos_sin(stream(), {2, head_dim}, DType::kF32);
      DeviceData q_out = blank({2, 1, head_dim});
      DeviceData cache = blank({2 * kPageSize * head_dim});
      ops_->rope_angles(frequencies.as<float>(), 1.0F, positions.as<int32_t>(), cos_sin.view());
      RopeAndCache args;
      args.qkv = input.view();
      args.q_out = q_out.view();
      args.cos_sin = cos_sin.view();
      args.pairs = pairs;
      args.num_heads = args.num_kv_heads = 1;
      args.head_dim = static_cast<int>(head_dim);
      args.page_size = kPageSize;
      args.kv = kv_cache_view({.page_size = kPageSize,
                               .num_kv_heads = 1,
                               .head_dim = static_cast<int>(head_dim),
                               .head_dim_v = static_cast<int>(head_dim),
                               .dtype = dtype()},
                              cache.view().data);
      args.kv_slots = kv_slots.as<int64_t>();
      ops_->rope_and_cache(args);
      const std::vector<float> queries = q_out.values();
      const std::vector<float> keys = cache.values();
      for (int64_t i = 0; i < 2 * head_dim; ++i) {
        const int64_t from = i / head_dim * 3 * head_dim + i % head_dim;
        EXPECT_EQ(queries[static_cast<size_t>(i)], qkv[static_cast<size_t>(from)]);
        EXPECT_EQ(keys[static_cast<size_t>(i)], qkv[static_cast<size_t>(from + head_dim)]);
      }
    }
  }
}

// stored = x / scale with saturation, exact because there is neither rotation nor norm.
TEST_P(RopeTest, ValuesInF8AreTheQuotientRounded) {
  const int64_t head_dim = 64;
  const std::vector<float> qkv = random(3 * head_dim, 9, 30.0F);
  const DeviceData input = device({1, 3 * head_dim}, qkv);
  const DeviceData cos_sin(stream(), {1, head_dim}, DType::kF32, random_floats(head_dim, 1));
  const DeviceData scale(stream(), {1}, DType::kF32, std::vector<float>{0.3F});
  const DeviceData kv_slot = DeviceData::of_ints<int64_t>(stream(), {0});
  DeviceData q_out = blank({1, 1, head_dim});
  DeviceData cache(stream(), {2 * kPageSize * head_dim}, DType::kF8E4M3);
  RopeAndCache args;
  args.qkv = input.view();
  args.q_out = q_out.view();
  args.cos_sin = cos_sin.view();
  args.num_heads = args.num_kv_heads = 1;
  args.head_dim = head_dim;
  args.page_size = kPageSize;
  args.kv = kv_cache_view({.page_size = kPageSize,
                           .num_kv_heads = 1,
                           .head_dim = head_dim,
                           .head_dim_v = head_dim,
                           .dtype = DType::kF8E4M3},
                          cache.view().data);
  args.kv.k_scale = args.kv.v_scale = scale.as<float>();
  args.kv_slots = kv_slot.as<int64_t>();
  ops_->rope_and_cache(args);
  const std::vector<std::byte> bytes = cache.bytes();
  for (int64_t d = 0; d < head_dim; ++d) {
    const auto at = static_cast<size_t>(kPageSize * head_dim + d);
    const float x = qkv[static_cast<size_t>(2 * head_dim + d)];
    EXPECT_EQ(bytes[at], std::byte{f32_to_e4m3(x / 0.3F)}) << x;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RopeTest, ::testing::Values(DType::kBF16, DType::kF16, DType::kF32),
                         dtype_of_test);

}  // namespace
}  // namespace quire::testing

// The operations of multi-head latent attention: matrices by head, and the rotation and cache write
// of latent vectors.
#include "cuda/gemm/dense/dense_kernels.h"
#include "cuda/ops/device_data.h"

namespace quire::testing {
namespace {

struct PerHeadLinearCase {
  int64_t num_heads;
  int64_t n;
  int64_t k;
  int64_t x_width = 0;    // 0: k
  int64_t out_width = 0;  // 0: n
};

class PerHeadLinearTest : public CudaOpsTest {
 protected:
  void make(const PerHeadLinearCase& spec) {
    spec_ = spec;
    if (spec_.x_width == 0) spec_.x_width = spec.k;
    if (spec_.out_width == 0) spec_.out_width = spec.n;
    weights_ = random(spec.num_heads * spec.n * spec.k, 1);
    std::vector<TensorView> matrices;
    for (int64_t h = 0; h < spec.num_heads; ++h) {
      matrices.push_back({weights_.data() + h * spec.n * spec.k, DType::kF32, {spec.n, spec.k}});
    }
    linear_ = ops_->weights().make_per_head_linear(matrices).value();
    expected_linear_ = reference_.make_per_head_linear(matrices).value();
  }

  // Elements after the first k of a head of x are NaN, so a read of them shows in the output.
  std::vector<float> inputs(int64_t num_rows) const {
    std::vector<float> x = random(num_rows * spec_.num_heads * spec_.x_width, 7,
                                  1.0F / std::sqrt(static_cast<float>(spec_.k)));
    for (size_t i = 0; i < x.size(); ++i) {
      if (static_cast<int64_t>(i) % spec_.x_width >= spec_.k) x[i] = NAN;
    }
    return x;
  }

  std::vector<float> expected(std::vector<float> x, int64_t num_rows) {
    std::vector<float> out(static_cast<size_t>(num_rows * spec_.num_heads * spec_.out_width), NAN);
    reference_.per_head_linear(
        *expected_linear_, {x.data(), DType::kF32, {num_rows, spec_.num_heads, spec_.x_width}},
        {out.data(), DType::kF32, {num_rows, spec_.num_heads, spec_.out_width}});
    return out;
  }

  // `out` was poisoned before, and the elements after the first n of a head must still be.
  void expect_out(DeviceData& out, const std::vector<float>& wanted, const std::string& what) {
    const std::vector<float> actual = out.values();
    std::vector<float> written;
    std::vector<float> wanted_written;
    for (size_t i = 0; i < actual.size(); ++i) {
      if (static_cast<int64_t>(i) % spec_.out_width < spec_.n) {
        written.push_back(actual[i]);
        wanted_written.push_back(wanted[i]);
      } else {
        EXPECT_TRUE(std::isnan(actual[i])) << what << ": element " << i << " was overwritten";
      }
    }
    expect_near_all(written, wanted_written, tolerance(dtype()), what);
  }

  Shape x_shape(int64_t num_rows) const { return {num_rows, spec_.num_heads, spec_.x_width}; }
  Shape out_shape(int64_t num_rows) const { return {num_rows, spec_.num_heads, spec_.out_width}; }

  void check(int64_t num_rows) {
    const std::vector<float> x = inputs(num_rows);
    const DeviceData input = device(x_shape(num_rows), x);
    DeviceData out = blank(out_shape(num_rows));
    ops_->latents()->per_head_linear(*linear_, input.view(), out.view());
    expect_out(out, expected(x, num_rows),
               std::to_string(num_rows) + " rows of " + std::to_string(spec_.num_heads) +
                   " heads, " + std::to_string(spec_.k) + " to " + std::to_string(spec_.n));
  }

  PerHeadLinearCase spec_ = {};
  std::vector<float> weights_;
  std::unique_ptr<PerHeadLinear> linear_;
  std::unique_ptr<PerHeadLinear> expected_linear_;
};

// Both matrices of DeepSeek's heads, a tiny model's, widths that no vector divides, and both of
// GLM-4.7-Flash.
constexpr PerHeadLinearCase kCases[] = {
    {16, 512, 128, 192, 576}, {16, 128, 512},    {3, 32, 16, 24, 40}, {5, 24, 40},
    {2, 17, 256, 264, 18},    {4, 7, 11, 13, 9}, {1, 64, 64, 72, 80}, {20, 512, 192, 256, 576},
    {20, 256, 512},
};

TEST_P(PerHeadLinearTest, AllSizes) {
  for (const PerHeadLinearCase& spec : kCases) {
    make(spec);
    EXPECT_EQ(linear_->num_heads(), spec.num_heads);
    EXPECT_EQ(linear_->in_features(), spec.k);
    EXPECT_EQ(linear_->out_features(), spec.n);
    EXPECT_EQ(linear_->num_bytes(), weights_.size() * dtype_bytes(dtype()));
    for (const int64_t num_rows : {1, 2, 5, 8, 9, 16, 17, 100}) check(num_rows);
  }
}

TEST_P(PerHeadLinearTest, EveryHeadOfALargeModel) {
  make({128, 512, 128, 192, 576});
  for (const int64_t num_rows : {1, 8, 33}) check(num_rows);
  make({128, 128, 512});
  for (const int64_t num_rows : {1, 8, 33}) check(num_rows);
}

// The kernels for few rows, whichever of them Ops chooses.
TEST_P(PerHeadLinearTest, EveryKernelAgrees) {
  const cuda::LaunchContext context = {.stream = &stream(), .overlap_start = true};
  for (const PerHeadLinearCase& spec : kCases) {
    make(spec);
    const DeviceData w = device({spec_.num_heads, spec_.n, spec_.k}, weights_);
    for (const int64_t num_rows : {1, 7, 8, 9, 16}) {
      const std::vector<float> x = inputs(num_rows);
      const std::vector<float> wanted = expected(x, num_rows);
      const DeviceData input = device(x_shape(num_rows), x);
      DeviceData out = blank(out_shape(num_rows));
      const cuda::PerHeadGemmCall call = {input.view(), w.view(), out.view()};
      cuda::run_generic_gemm(context, call);
      expect_out(out, wanted, "generic");
      if (!cuda::skinny_takes(call)) continue;
      out.poison();
      cuda::run_skinny_gemm(context, call);
      expect_out(out, wanted, "skinny");
    }
  }
}

TEST_P(PerHeadLinearTest, TunedForEveryRowCount) {
  for (const PerHeadLinearCase& spec : {kCases[0], kCases[2], kCases[5]}) {
    make(spec);
    const DeviceData x = device(x_shape(200), inputs(200));
    const DeviceData out = blank(out_shape(200));
    const int row_counts[] = {1, 2, 8, 16, 24, 128, 500};
    const Status tuned = ops_->tune_linears(row_counts, [&] {
      ops_->latents()->per_head_linear(*linear_, x.view(), out.view());
      return Status();
    });
    ASSERT_EQ(tuned.message(), "");
    for (const int64_t num_rows : {1, 3, 8, 11, 16, 20, 90, 128, 200}) check(num_rows);
  }
}

TEST_P(PerHeadLinearTest, CanBeCaptured) {
  make(kCases[0]);
  for (const int64_t num_rows : {1, 8, 64}) {
    const DeviceData x = device(x_shape(num_rows), inputs(num_rows));
    DeviceData out = blank(out_shape(num_rows));
    expect_capturable([&] { ops_->latents()->per_head_linear(*linear_, x.view(), out.view()); },
                      out, [&] { out.poison(); });
  }
}

TEST_P(PerHeadLinearTest, EmptyBatchDoesNothing) {
  make(kCases[0]);
  const DeviceData x = device(x_shape(1), inputs(1));
  DeviceData out = blank(out_shape(1));  // poisoned, as is the memory after it
  const std::vector<std::byte> poison = out.bytes();
  ops_->latents()->per_head_linear(*linear_, x.view().rows(0, 0), out.view().rows(0, 0));
  EXPECT_EQ(out.bytes(), poison);
}

// One input for all heads, with the matrices as they are and transposed. The rows and the rest of
// each output head stay poisoned.
TEST_P(PerHeadLinearTest, OfASharedInput) {
  for (const PerHeadLinearCase& spec :
       {PerHeadLinearCase{16, 512, 128}, {16, 128, 512}, {128, 32, 64}, {3, 32, 16}, {1, 64, 64}}) {
    make(spec);
    for (const bool transposed : {false, true}) {
      const int64_t in = transposed ? spec.n : spec.k;
      const int64_t out_features = transposed ? spec.k : spec.n;
      for (const int64_t gap : {0, 64}) {
        for (const int64_t num_rows : {0, 1, 200}) {
          const int64_t width = out_features + gap;
          const std::vector<float> x =
              random(num_rows * in, 7, 1.0F / std::sqrt(static_cast<float>(in)));
          const DeviceData input = device({num_rows, in}, x);
          DeviceData out = blank({num_rows, spec.num_heads, width});
          if (transposed) {
            ops_->latents()->shared_linear_transposed(*linear_, input.view(), out.view());
          } else {
            ops_->latents()->shared_linear(*linear_, input.view(), out.view());
          }
          std::vector<float> wanted(static_cast<size_t>(num_rows * spec.num_heads * width), NAN);
          for (int64_t t = 0; t < num_rows; ++t) {
            for (int64_t h = 0; h < spec.num_heads; ++h) {
              const float* const w = weights_.data() + h * spec.n * spec.k;
              std::vector<double> sums(static_cast<size_t>(out_features));
              for (int64_t n = 0; n < spec.n; ++n) {
                for (int64_t k = 0; k < spec.k; ++k) {
                  sums[static_cast<size_t>(transposed ? k : n)] +=
                      double{x[static_cast<size_t>(t * in + (transposed ? n : k))]} *
                      double{w[n * spec.k + k]};
                }
              }
              std::ranges::copy(sums, wanted.begin() + (t * spec.num_heads + h) * width);
            }
          }
          spec_.n = out_features;
          spec_.out_width = width;
          expect_out(out, wanted,
                     std::to_string(spec.num_heads) + " heads of " + std::to_string(spec.n) +
                         " x " + std::to_string(spec.k) + (transposed ? ", transposed" : ""));
          spec_.n = spec.n;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PerHeadLinearTest,
                         ::testing::Values(DType::kBF16, DType::kF16, DType::kF32), dtype_of_test);

struct LatentRopeCase {
  int num_heads;
  int nope_dim;  // of a query, before its rotated end
  int latent_dim;
  int rope_dim;
  RotaryPairs pairs = RotaryPairs::kNeighbours;
  int64_t stride_padding = 0;  // elements between tokens of the cache
};

constexpr int kPageSize = 16;
constexpr int64_t kNumPages = 4;

class LatentRopeTest : public CudaOpsTest {
 protected:
  static KvCacheView cache_view(const LatentRopeCase& spec, DType kv, void* k) {
    KvCacheView view;
    view.k = view.v = k;
    view.dtype = kv;
    view.token_stride_k = view.token_stride_v =
        spec.latent_dim + spec.rope_dim + spec.stride_padding;
    view.head_stride_k = view.head_stride_v = kPageSize * view.token_stride_k;
    view.page_stride_k = view.page_stride_v = view.head_stride_k;
    return view;
  }

  void check(const LatentRopeCase& spec, DType kv);

  // KV slots: padding, the first and last one, and others.
  const std::vector<int64_t> kv_slots_ = {3, -1, 0, kNumPages* kPageSize - 1, -1, 16, 31};
};

void LatentRopeTest::check(const LatentRopeCase& spec, DType kv) {
  const std::string what = std::to_string(spec.num_heads) + " heads, latent " +
                           std::to_string(spec.latent_dim) + " + " + std::to_string(spec.rope_dim) +
                           ", kv " + std::string(dtype_name(kv));
  const auto num_tokens = static_cast<int64_t>(kv_slots_.size());
  const int64_t width = spec.latent_dim + spec.rope_dim;
  const int64_t q_width = spec.nope_dim + spec.rope_dim;
  const int64_t cache_size = kNumPages * kPageSize * (width + spec.stride_padding);
  const Shape q_shape = {num_tokens, spec.num_heads, q_width};
  const Shape q_out_shape = {num_tokens, spec.num_heads, width};
  std::vector<float> q = random(q_shape.num_elements(), 1, 2.0F);
  std::vector<float> latent = random(num_tokens * width, 5, 2.0F);
  std::vector<float> angles = random_floats(num_tokens * spec.rope_dim, 2);
  const std::vector<float> norm = random_floats(spec.latent_dim, 3);
  const float scale = kv == DType::kF8E4M3 ? 0.02F : 1.0F;  // some elements saturate

  std::vector<float> expected_q(static_cast<size_t>(q_out_shape.num_elements()), NAN);
  std::vector<float> expected_cache(static_cast<size_t>(cache_size), NAN);
  LatentRopeAndCache args;
  args.q = {q.data(), DType::kF32, q_shape};
  args.q_out = {expected_q.data(), DType::kF32, q_out_shape};
  args.latent = host_view(latent, num_tokens);
  args.cos_sin = host_view(angles, num_tokens);
  args.pairs = spec.pairs;
  args.norm = norm.data();
  args.norm_eps = 1e-6F;
  args.page_size = kPageSize;
  args.kv = cache_view(spec, DType::kF32, expected_cache.data());
  args.kv_slots = kv_slots_.data();
  reference_.latent_rope_and_cache(args);

  const DeviceData q_in = device(q_shape, q);
  const DeviceData latent_in = device({num_tokens, width}, latent);
  const DeviceData cos_sin(stream(), {num_tokens, spec.rope_dim}, DType::kF32, angles);
  const DeviceData norms(stream(), {spec.latent_dim}, DType::kF32, norm);
  const DeviceData k_scale(stream(), {1}, DType::kF32, std::vector<float>{scale});
  const DeviceData kv_slots = DeviceData::of_ints(stream(), kv_slots_);
  DeviceData q_out = blank(q_out_shape);
  DeviceData cache(stream(), {cache_size}, kv);
  args.q = q_in.view();
  args.q_out = q_out.view();
  args.latent = latent_in.view();
  args.cos_sin = cos_sin.view();
  args.norm = norms.as<float>();
  args.kv = cache_view(spec, kv, cache.view().data);
  args.kv.k_scale = k_scale.as<float>();
  args.kv_slots = kv_slots.as<int64_t>();
  const auto poison = [&] {
    q_out.poison();
    cache.poison();
  };
  const auto run = [&] { ops_->latents()->latent_rope_and_cache(args); };
  expect_capturable(run, cache, poison);
  expect_capturable(run, q_out, poison);

  // Only the rotated ends of the queries, and the slots of the tokens, are written.
  const auto expect_written = [&](DeviceData& data, const std::vector<float>& expected,
                                  float divisor, float limit, float close, size_t num_written,
                                  const std::string& name) {
    const std::vector<float> actual = data.values();
    std::vector<float> written;
    std::vector<float> wanted;
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << name << " " << i;
      if (std::isnan(expected[i])) continue;
      written.push_back(actual[i]);
      wanted.push_back(std::clamp(expected[i] / divisor, -limit, limit));
    }
    EXPECT_EQ(written.size(), num_written) << name;
    expect_near_all(written, wanted, close, name);
  };
  // Queries may be rotated in place.
  DeviceData in_place = device(q_shape, q);
  args.q = args.q_out = in_place.view();
  run();
  const std::vector<float> apart = q_out.values();
  const std::vector<float> rotated = in_place.values();
  for (size_t i = 0; i < rotated.size(); ++i) {
    const auto column = static_cast<int64_t>(i) % q_width;
    const int64_t row = static_cast<int64_t>(i) / q_width;
    const float wanted =
        column < spec.nope_dim
            ? q[i]
            : apart[static_cast<size_t>(row * width + spec.latent_dim + column - spec.nope_dim)];
    EXPECT_EQ(rotated[i], wanted) << what << ", query element " << i << " in place";
  }
  const float kv_tolerance =
      std::max(tolerance(dtype()), kv == DType::kF8E4M3 ? 0.07F : tolerance(kv));
  expect_written(q_out, expected_q, 1.0F, INFINITY, tolerance(dtype()),
                 static_cast<size_t>(num_tokens * spec.num_heads * spec.rope_dim), what + ", q");
  expect_written(cache, expected_cache, scale, kv == DType::kF8E4M3 ? 448.0F : INFINITY,
                 kv_tolerance, 5U * static_cast<size_t>(width), what + ", cache");
}

TEST_P(LatentRopeTest, EveryHeadAndCacheType) {
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF32, DType::kF8E4M3}) {
    check({16, 128, 512, 64}, kv);
    check({128, 128, 512, 64, RotaryPairs::kHalves}, kv);
  }
}

// The scale multiplies whole heads of q_out, also the elements that the caller has written.
TEST_P(LatentRopeTest, ScalesWholeQueries) {
  const LatentRopeCase spec = {5, 40, 64, 16};
  const auto num_tokens = static_cast<int64_t>(kv_slots_.size());
  const int64_t width = spec.latent_dim + spec.rope_dim;
  const Shape q_shape = {num_tokens, spec.num_heads, spec.nope_dim + spec.rope_dim};
  const Shape q_out_shape = {num_tokens, spec.num_heads, width};
  std::vector<float> q = random(q_shape.num_elements(), 1);
  std::vector<float> q_out = random(q_out_shape.num_elements(), 2);
  std::vector<float> latent = random(num_tokens * width, 3);
  std::vector<float> angles = random_floats(num_tokens * spec.rope_dim, 4);
  const std::vector<float> norm = random_floats(spec.latent_dim, 5);
  const std::vector<float> q_scale = random_floats(num_tokens, 6);
  std::vector<float> cache(static_cast<size_t>(kNumPages * kPageSize * width));

  const DeviceData latent_in = device({num_tokens, width}, latent);
  const DeviceData cos_sin(stream(), {num_tokens, spec.rope_dim}, DType::kF32, angles);
  const DeviceData norms(stream(), {spec.latent_dim}, DType::kF32, norm);
  const DeviceData scales(stream(), {num_tokens}, DType::kF32, q_scale);
  const DeviceData kv_slots = DeviceData::of_ints(stream(), kv_slots_);
  DeviceData device_cache = blank({std::ssize(cache)});
  for (const bool is_in_place : {false, true}) {
    std::vector<float>& written = is_in_place ? q : q_out;
    const Shape& shape = is_in_place ? q_shape : q_out_shape;
    const DeviceData in = device(q_shape, q);
    DeviceData out = device(shape, written);
    LatentRopeAndCache args;
    args.q = is_in_place ? out.view() : in.view();
    args.q_out = out.view();
    args.latent = latent_in.view();
    args.cos_sin = cos_sin.view();
    args.norm = norms.as<float>();
    args.norm_eps = 1e-6F;
    args.q_scale = scales.as<float>();
    args.page_size = kPageSize;
    args.kv = cache_view(spec, dtype(), device_cache.view().data);
    args.kv_slots = kv_slots.as<int64_t>();
    ops_->latents()->latent_rope_and_cache(args);

    args.q = {q.data(), DType::kF32, q_shape};
    args.q_out = {written.data(), DType::kF32, shape};
    args.latent = host_view(latent, num_tokens);
    args.cos_sin = host_view(angles, num_tokens);
    args.norm = norm.data();
    args.q_scale = q_scale.data();
    args.kv = cache_view(spec, DType::kF32, cache.data());
    args.kv_slots = kv_slots_.data();
    reference_.latent_rope_and_cache(args);
    expect_near_all(out.values(), written, tolerance(dtype()), is_in_place ? "in place" : "apart");
  }
}

TEST_P(LatentRopeTest, OddSizes) {
  for (const RotaryPairs pairs : {RotaryPairs::kNeighbours, RotaryPairs::kHalves}) {
    check({3, 16, 32, 8, pairs}, dtype());
    check({1, 7, 45, 10, pairs}, dtype());
    check({5, 0, 40, 70, pairs, 3}, dtype());
    check({5, 24, 40, 8, pairs, 8}, DType::kF8E4M3);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LatentRopeTest,
                         ::testing::Values(DType::kBF16, DType::kF16, DType::kF32), dtype_of_test);

}  // namespace
}  // namespace quire::testing

#include "cpu/attention/simd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>

#include "cpu/attention/reference.h"
#include "cpu/attention/simd_plan.h"
#include "support/attention_cases.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// The tolerance is the same for every cache dtype, because both sides read the same stored numbers.
constexpr float kTolerance = 1e-5F;

void expect_equals_reference(const AttentionCase& spec) {
  ThreadPool pool(2);
  const AttentionProblem problem(spec);
  const AttentionResult expected = problem.run(*make_reference_attention());
  const AttentionResult actual = problem.run(*make_cpu_attention(pool));
  expect_close(actual.out, expected.out, kTolerance);
}

class CpuAttentionTest : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CpuAttentionTest, EqualsReference) {
  expect_equals_reference(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuAttentionTest, ::testing::ValuesIn(attention_cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Int8Cases, CpuAttentionTest, ::testing::ValuesIn(i8_attention_cases()),
                         [](const auto& test) { return test.param.name; });

// Restores the choice of the best target when a test ends.
struct TargetScope {
  explicit TargetScope(int64_t target) { hwy::SetSupportedTargetsForTest(target); }
  ~TargetScope() { hwy::SetSupportedTargetsForTest(0); }
};

TEST(CpuAttentionTargets, EachEqualsReference) {
  // Instruction sets that simd_kernels.cc compiles and this machine has.
  std::vector<AttentionCase> cases;
  for (const auto& all : {attention_cases(), i8_attention_cases()}) {
    for (const AttentionCase& spec : all) {
      if (spec.name.starts_with("mixed_phases") || spec.name.starts_with("head_dim_40") ||
          spec.name.starts_with("latent_24") || spec.name.starts_with("one_head") ||
          spec.name.starts_with("softcap_sinks_window")) {
        cases.push_back(spec);
      }
    }
  }
  ASSERT_EQ(cases.size(), 23U);
  int num_targets = 0;
  for (const int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if ((hwy::SupportedTargets() & target) == 0) continue;
    const TargetScope scope(target);
    ++num_targets;
    for (const AttentionCase& spec : cases) {
      SCOPED_TRACE(std::string(hwy::TargetName(target)) + " " + spec.name);
      expect_equals_reference(spec);
    }
  }
  EXPECT_GE(num_targets, 1);
}

// Each feature must change the result by far more than the tolerance of its test.
TEST(CpuAttentionFeatures, AreNeverIgnored) {
  AttentionCase plain{.name = "plain",
                      .shape = make_attention_shape(4, 2, 64, 16, DType::kF8E4M3),
                      .reqs = {{1, 300, 1}, {9, 200, 2}},
                      .k_scale = 0.02F,
                      .v_scale = 0.01F};
  std::vector<AttentionCase> variants(6, plain);
  variants[0].shape.softcap = 2.0F;
  variants[1].shape.window = 50;
  variants[2].shape.sinks = true;
  variants[3].shape.causal = false;
  variants[4].shape.scale *= 2.0F;
  variants[5].shape.num_kv_heads = 4;
  ThreadPool pool(2);
  const auto backend = make_cpu_attention(pool);
  const AttentionResult without = run_attention(plain, *backend);
  for (size_t i = 0; i < variants.size(); ++i) {
    const AttentionResult with = run_attention(variants[i], *backend);
    EXPECT_GE(max_difference(with.out, without.out), 10 * kTolerance) << "variant " << i;
  }
}

TEST(CpuAttentionFeatures, ScalesOfAnUnquantizedCacheAreIgnored) {
  AttentionCase spec{.name = "bf16",
                     .shape = make_attention_shape(2, 1, 64, 16, DType::kBF16),
                     .reqs = {{1, 100, 1}}};
  ThreadPool pool(1);
  const auto backend = make_cpu_attention(pool);
  const AttentionResult without = run_attention(spec, *backend);
  spec.k_scale = spec.v_scale = 3.0F;
  EXPECT_EQ(run_attention(spec, *backend).out, without.out);
}

TEST(CpuAttentionFeatures, PaddingGivesZeros) {
  AttentionCase spec{.name = "padding",
                     .shape = make_attention_shape(2, 1, 64, 16, DType::kF16),
                     .reqs = {{1, 0, 1}, {1, 0, 2}, {3, 0, 3}}};
  spec.shape.sinks = true;
  ThreadPool pool(2);
  for (const auto& backend : {make_reference_attention(), make_cpu_attention(pool)}) {
    const AttentionResult result = run_attention(spec, *backend);
    EXPECT_THAT(result.out, Each(0.0F));
  }
}

// A NaN in one key shows in every output that attends to it, and in no other.
TEST(CpuAttentionFeatures, ABrokenKeyShows) {
  const AttentionCase spec{.name = "broken_key",
                           .shape = make_attention_shape(4, 2, 64, 16, DType::kF32),
                           .reqs = {{1, 700, 1}, {9, 200, 2}}};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int position : {0, 17, 699}) {
    ThreadPool pool(2);
    const AttentionProblem problem(spec);
    const KvCacheView& cache = problem.cache();
    static_cast<float*>(cache.k)[problem.batch().block_table[position / 16] * cache.page_stride_k +
                                 position % 16 * cache.token_stride_k] = kNan;
    const AttentionResult expected = problem.run(*make_reference_attention());
    for (const int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
      if ((hwy::SupportedTargets() & target) == 0) continue;
      const TargetScope scope(target);
      const AttentionResult actual = problem.run(*make_cpu_attention(pool));
      ASSERT_EQ(actual.out.size(), expected.out.size());
      for (size_t i = 0; i < actual.out.size(); ++i) {
        const bool is_broken = i < size_t{2} * 64;  // the query heads of KV head 0, one token
        EXPECT_EQ(std::isnan(expected.out[i]), is_broken) << i;
        EXPECT_EQ(std::isnan(actual.out[i]), is_broken) << hwy::TargetName(target) << ' ' << i;
      }
    }
  }
}

// Reads all 256 codes of E4M3 through the kernel: the output of a single token is its value.
TEST(CpuAttentionFeatures, ReadsEveryFp8CodeExactly) {
  AttentionCase spec{.name = "codes",
                     .shape = make_attention_shape(1, 1, 256, 16, DType::kF8E4M3),
                     .reqs = {{1, 1, 1}}};
  for (const int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if ((hwy::SupportedTargets() & target) == 0) continue;
    const TargetScope scope(target);
    ThreadPool pool(1);
    const AttentionProblem problem(spec);
    auto* v = static_cast<uint8_t*>(problem.cache().v) +
              problem.batch().block_table[0] * problem.cache().page_stride_v;
    for (int code = 0; code < 256; ++code) v[code] = static_cast<uint8_t>(code);
    const AttentionResult result = problem.run(*make_cpu_attention(pool));
    for (int code = 0; code < 256; ++code) {
      const float expected = e4m3_to_f32(static_cast<uint8_t>(code));
      const float actual = result.out[static_cast<size_t>(code)];
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(actual) : actual == expected) << code;
    }
  }
}

// Reads all integers from -127 to 127 through the kernel: the output of a single token is the
// integer times the scale of its vector.
TEST(CpuAttentionFeatures, ReadsEveryIntegerExactly) {
  constexpr float kScale = 0.37F;
  AttentionCase spec{.name = "integers",
                     .shape = make_attention_shape(1, 1, 256, 16, DType::kI8),
                     .reqs = {{1, 1, 1}}};
  for (const int num_heads : {1, 4}) {  // read directly, and from a converted block
    spec.shape.num_heads = num_heads;
    for (const int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
      if ((hwy::SupportedTargets() & target) == 0) continue;
      const TargetScope scope(target);
      ThreadPool pool(1);
      const AttentionProblem problem(spec);
      const KvCacheView& cache = problem.cache();
      auto* const v =
          static_cast<int8_t*>(cache.v) + problem.batch().block_table[0] * cache.page_stride_v;
      for (int i = 0; i < 255; ++i) v[i] = static_cast<int8_t>(i - 127);
      *reinterpret_cast<float*>(v + cache.scale_offset_v) = kScale;
      const AttentionResult result = problem.run(*make_cpu_attention(pool));
      for (int i = 0; i < 255 * num_heads; ++i) {
        const float actual = result.out[static_cast<size_t>(i / 255 * 256 + i % 255)];
        EXPECT_EQ(actual, static_cast<float>(i % 255 - 127) * kScale) << i;
      }
    }
  }
}

// The scale of a vector that is not finite is a NaN. It shows in every output that attends to the
// vector, and in no other.
TEST(CpuAttentionFeatures, AVectorOfIntegersWithoutAScaleShows) {
  const AttentionCase spec{.name = "broken_scale",
                           .shape = make_attention_shape(4, 2, 64, 16, DType::kI8),
                           .reqs = {{1, 700, 1}, {9, 200, 2}}};
  for (const bool is_key : {true, false}) {
    for (const int position : {0, 17, 699}) {
      ThreadPool pool(2);
      const AttentionProblem problem(spec);
      const KvCacheView& cache = problem.cache();
      const int64_t page = problem.batch().block_table[position / 16] * cache.page_stride_k;
      auto* const scales = static_cast<int8_t*>(is_key ? cache.k : cache.v) + page +
                           (is_key ? cache.scale_offset_k : cache.scale_offset_v);
      reinterpret_cast<float*>(scales)[position % 16] = std::numeric_limits<float>::quiet_NaN();
      for (const auto& backend : {make_reference_attention(), make_cpu_attention(pool)}) {
        const AttentionResult result = problem.run(*backend);
        for (size_t i = 0; i < result.out.size(); ++i) {
          const bool is_broken = i < size_t{2} * 64;  // the query heads of KV head 0, one token
          EXPECT_EQ(std::isnan(result.out[i]), is_broken) << backend->name() << ' ' << i;
        }
      }
    }
  }
}

TEST(CpuAttentionPools, PastTwoToTheThirtyOneElements) {
  AttentionCase spec{.name = "huge",
                     .shape = make_attention_shape(2, 1, 64, 64, DType::kF8E4M3),
                     .reqs = {{1, 300, 1}, {5, 70, 2}}};
  spec.num_unused_pages = (int64_t{1} << 31) / (2 * 64 * 64) + 10;  // lazily mapped
  expect_equals_reference(spec);
}

TEST(CpuAttentionSupport, NamesEveryReason) {
  AttentionShape shape = make_attention_shape(6, 4, 44, 24, DType::kI32);
  shape.head_dim_v = 1032;
  shape.q = DType::kBF16;
  shape.softcap = -1.0F;
  ThreadPool pool(1);
  const Device device{.kind = DeviceKind::kCuda, .name = "H200"};
  for (const auto& backend : {make_reference_attention(), make_cpu_attention(pool)}) {
    EXPECT_THAT(backend->supports(shape, {}, device).reasons,
                ElementsAre("num_heads is 6; it must be a multiple of num_kv_heads, which is 4.",
                            "page_size is 24; it must be 16, 32 or 64.",
                            "softcap is -1; it must be 0 (off) or positive.",
                            "device is H200; it must be a CPU.",
                            "head_dim is 44; it must be a multiple of 8 from 8 to 1024.",
                            "head_dim_v is 1032; it must be a multiple of 8 from 8 to 1024.",
                            "q is bf16; it must be f32.",
                            "kv is i32; it must be f32, f16, bf16, fp8_e4m3 or int8."));
    const AttentionShape good = make_attention_shape(6, 3, 48, 16, DType::kF8E4M3);
    EXPECT_TRUE(backend->supports(good, {.phase = Phase::kPrefill}, Device()).ok());
  }
}

TEST(CpuAttentionPlan, SplitsOnlyLongContextsWithinTheBounds) {
  const AttentionShape shape = make_attention_shape(8, 2, 64, 16, DType::kF16);
  const int num_threads = 4;
  const cpu::WorkSplitter split(shape, num_threads);
  AttentionCase spec{.name = "plan", .shape = shape};
  spec.reqs = {{1, 5000, 1}, {1, 100, 2}, {1, 513, 3}, {1, 2500, 4}, {1, 0, 5}};
  const AttentionProblem problem(spec);
  cpu::PhasePlan plan;
  split.plan(problem.batch(), problem.batch().decode, plan);
  EXPECT_TRUE(plan.uses_threads);
  EXPECT_LE(plan.num_partials, split.max_partials(5000));
  std::vector<int> num_items(5, 0);
  for (const cpu::WorkItem& item : plan.items) {
    ++num_items[static_cast<size_t>(item.req)];
    EXPECT_EQ(item.num_queries, 1);
  }
  EXPECT_THAT(num_items, ElementsAre(11, 1, 1, 6, 1));
  // 513 positions are two partitions, but too few to split among more threads. With one thread
  // nothing is split.
  cpu::WorkSplitter(shape, 1).plan(problem.batch(), problem.batch().decode, plan);
  EXPECT_EQ(plan.items.size(), 5U);
  EXPECT_EQ(plan.num_partials, 0);
}

TEST(CpuAttentionPlan, RunsInNoLessMemoryAndNoLongerContextsThanItWasMadeFor) {
  AttentionCase spec{.name = "limits",
                     .shape = make_attention_shape(2, 1, 64, 16, DType::kF16),
                     .reqs = {{1, 16000, 1}}};
  const AttentionProblem problem(spec);
  ThreadPool pool(2);
  const auto plan = value_of(
      make_cpu_attention(pool)->make_plan(problem.shape(), problem.limits(Phase::kDecode)));
  Stream stream;
  ASSERT_TRUE(plan->update(problem.batch(), stream).ok());
  std::vector<std::byte> small(plan->workspace_bytes() - 1);
  const AttentionCall call{
      .q = {}, .out = {}, .kv = problem.cache(), .sinks = nullptr, .workspace = small};
  EXPECT_DEATH((void)plan->run(call, stream), "smaller than workspace_bytes");
  PlanLimits shorter = problem.limits(Phase::kDecode);
  shorter.max_kv_len = 600;
  const auto small_plan = value_of(make_cpu_attention(pool)->make_plan(problem.shape(), shorter));
  EXPECT_DEATH((void)small_plan->update(problem.batch(), stream),
               "longer than the plan.s max_kv_len");
}

}  // namespace
}  // namespace quire::testing

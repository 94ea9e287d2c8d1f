#include "cuda/tune/attention_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

constexpr AttentionShape kShape = {.num_heads = 8,
                                   .num_kv_heads = 2,
                                   .head_dim = 128,
                                   .head_dim_v = 128,
                                   .page_size = 16,
                                   .q = DType::kBF16,
                                   .kv = DType::kBF16,
                                   .out = DType::kBF16,
                                   .scale = 0.1F};

// Every backend of the GPU gets times for every kind of batch; a longer batch takes longer.
TEST(MeasureAttention, TimesEveryBackend) {
  const auto platform = make_cuda_platform({.activation_dtype = DType::kBF16});
  if (!platform.ok()) GTEST_SKIP() << platform.status().message();
  DeviceContext& context = *(*platform)->contexts().front();
  for (const DType kv : {DType::kBF16, DType::kF8E4M3}) {
    MeasureConfig config{.shape = kShape, .num_warmups = 1, .num_trials = 3};
    config.shape.kv = kv;
    config.workloads = {full_workload(Phase::kDecode, 1, 1, 64), ragged_workload(7, 1, 1000, 1),
                        full_workload(Phase::kDecode, 256, 1, 8192),
                        full_workload(Phase::kPrefill, 1, 100, 100)};
    config.workloads[1].pool_pages = 100;
    const auto decode =
        context.attention().supporting(config.shape, {.in_graph = true}, context.device());
    ASSERT_FALSE(decode.empty());
    std::vector<MeasuredWorkload> all;
    const Status status =
        measure_attention(context, decode, config, [&](size_t i, const MeasuredWorkload& measured) {
          EXPECT_EQ(i, all.size());
          all.push_back(measured);
          return true;
        });
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(all[0].times.size(), decode.size());
    for (const MeasuredWorkload& measured : all) {
      EXPECT_FALSE(measured.repeats_pages);
      for (const AttentionTimes& times : measured.times) {
        ASSERT_TRUE(times.status.ok()) << times.backend << ": " << times.status.message();
        EXPECT_GT(times.graph_us, 0.1);
        EXPECT_EQ(times.event_us.size(), 3U);
      }
    }
    for (size_t i = 0; i < decode.size(); ++i) {
      EXPECT_GT(all[2].times[i].graph_us, 3 * all[0].times[i].graph_us) << decode[i]->name();
    }
  }
}

// An F32 model is measured with F32 attention.
TEST(MeasureAttention, TimesF32) {
  const auto platform = make_cuda_platform({.activation_dtype = DType::kF32});
  if (!platform.ok()) GTEST_SKIP() << platform.status().message();
  DeviceContext& context = *(*platform)->contexts().front();
  MeasureConfig config{.shape = kShape};
  config.shape.q = config.shape.kv = config.shape.out = DType::kF32;
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    config.workloads = {full_workload(phase, 4, phase == Phase::kDecode ? 1 : 100, 1000)};
    const auto backends =
        context.attention().supporting(config.shape, use_of(config.workloads[0]), context.device());
    ASSERT_FALSE(backends.empty());
    const Status status =
        measure_attention(context, backends, config, [&](size_t, const MeasuredWorkload& measured) {
          EXPECT_EQ(measured.times.size(), backends.size());
          for (const AttentionTimes& times : measured.times) {
            EXPECT_TRUE(times.status.ok()) << times.backend << ": " << times.status.message();
            EXPECT_GT(times.graph_us, 0.1);
          }
          return true;
        });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(MeasureAttention, EndsWhenCancelled) {
  const auto platform = make_cuda_platform({.activation_dtype = DType::kBF16});
  if (!platform.ok()) GTEST_SKIP() << platform.status().message();
  DeviceContext& context = *(*platform)->contexts().front();
  MeasureConfig config{.shape = kShape};
  config.workloads.assign(3, full_workload(Phase::kDecode, 1, 1, 64));
  const auto backends =
      context.attention().supporting(kShape, {.in_graph = true}, context.device());
  int num_measured = 0;
  const Status status =
      measure_attention(context, backends, config,
                        [&](size_t, const MeasuredWorkload&) { return ++num_measured < 2; });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(num_measured, 2);
}

}  // namespace
}  // namespace quire

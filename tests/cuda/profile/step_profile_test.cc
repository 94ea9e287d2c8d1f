#include "cuda/profile/step_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::cuda {
namespace {

constexpr uint64_t kMicrosecond = 1000;

DeviceRecord kernel(uint64_t start_us, uint64_t end_us, WorkKind kind, int32_t name,
                    bool in_graph = true) {
  return {.start = start_us * kMicrosecond,
          .end = end_us * kMicrosecond,
          .kind = kind,
          .name = name,
          .in_graph = in_graph};
}

DeviceRecord copy(uint64_t start_us, uint64_t end_us, bool to_host) {
  return {.start = start_us * kMicrosecond,
          .end = end_us * kMicrosecond,
          .kind = WorkKind::kCopy,
          .to_host = to_host};
}

DeviceRecords records_of(std::vector<DeviceRecord> records, uint64_t start_us, uint64_t end_us) {
  return {.names = {"product", "attention", "pick"},
          .records = std::move(records),
          .start = start_us * kMicrosecond,
          .end = end_us * kMicrosecond};
}

double us_of(const std::vector<ProfileShare>& shares, std::string_view name) {
  for (const ProfileShare& share : shares) {
    if (share.name == name) return share.seconds * 1e6;
  }
  ADD_FAILURE() << "no share " << name;
  return -1;
}

TEST(KindOfKernel, ClassifiesLibrariesAndOurKernels) {
  EXPECT_EQ(kind_of_kernel("nvjet_tst_128x64_64x8_2x1_v_bz_TNN"), WorkKind::kGemm);
  EXPECT_EQ(kind_of_kernel("_ZN8cublasLt19splitKreduce_kernelILi32EEEv"), WorkKind::kGemm);
  EXPECT_EQ(kind_of_kernel("_ZN5quire4cuda48_GLOBAL__N__0_14_skinny_gemm_cu_113skinny_kernelE"),
            WorkKind::kGemm);
  EXPECT_EQ(kind_of_kernel("_ZN18BF16_BF16_128_1_1610kernel_mhaEjjfPKf"), WorkKind::kAttention);
  EXPECT_EQ(kind_of_kernel("_ZN10flashinfer33BatchPrefillWithPagedKVCacheKernelE"),
            WorkKind::kAttention);
  EXPECT_EQ(kind_of_kernel("cudnn_generated_fort_native_sdpa_sm90_flash_fprop"),
            WorkKind::kAttention);
  EXPECT_EQ(kind_of_kernel("_ZN5quire4cuda6native13rows16_kernelINS1_6ConfigE"),
            WorkKind::kAttention);
  EXPECT_EQ(kind_of_kernel("quire::cuda::(anonymous namespace)::one_pass_kernel<true>"),
            WorkKind::kSampling);
  EXPECT_EQ(kind_of_kernel("_ZN5quire4cuda47_GLOBAL__N__4_14_row_kernels_cu_515rms_norm_kernelI"),
            WorkKind::kRest);
}

TEST(ShortKernelName, KeepsTheFunctionAlone) {
  EXPECT_EQ(short_kernel_name("_ZN5quire4cuda6native11tile_kernelINS1_6ConfigI6__half13__nv_fp8_"
                              "e4m3Li64EEEEEvNS1_6ParamsE"),
            "tile_kernel");
  EXPECT_EQ(short_kernel_name("_ZN5quire4cuda12_GLOBAL__N_113forbid_kernelENS0_9RowTablesE"),
            "forbid_kernel");
  EXPECT_EQ(short_kernel_name("nvjet_tst_128x64_64x8_2x1_v_bz_TNN"),
            "nvjet_tst_128x64_64x8_2x1_v_bz_TNN");
}

TEST(SummarizeRecords, CountsOverlapsOnceForTheEarlierAndAddsUp) {
  const DeviceProfile profile = summarize_records(
      records_of({kernel(14, 20, WorkKind::kAttention, 1), kernel(10, 16, WorkKind::kGemm, 0),
                  kernel(12, 15, WorkKind::kRest, 2), kernel(25, 40, WorkKind::kGemm, 0)},
                 0, 30));
  EXPECT_NEAR(profile.elapsed_s, 30e-6, 1e-12);
  EXPECT_NEAR(us_of(profile.shares, "matrix products"), 6 + 5, 1e-6);  // the last is cut off
  EXPECT_NEAR(us_of(profile.shares, "attention"), 4, 1e-6);
  EXPECT_NEAR(us_of(profile.shares, "rest"), 0, 1e-6);
  EXPECT_NEAR(us_of(profile.shares, "idle"), 10 + 5, 1e-6);
  double sum = 0;
  for (const ProfileShare& share : profile.shares) sum += share.seconds;
  EXPECT_NEAR(sum, profile.elapsed_s, 1e-12);
  ASSERT_EQ(profile.kernels.size(), 3U);
  EXPECT_EQ(profile.kernels[0].name, "product");
  EXPECT_EQ(profile.kernels[0].count, 2);
}

TEST(SummarizeRecords, TellsIdlenessBetweenStepsFromThatWithin) {
  const auto step = [](uint64_t at, bool in_graph) -> std::vector<DeviceRecord> {
    return {copy(at + 3, at + 4, false), kernel(at + 6, at + 50, WorkKind::kGemm, 0, in_graph),
            kernel(at + 55, at + 90, WorkKind::kSampling, 2, false), copy(at + 92, at + 95, true)};
  };
  std::vector<DeviceRecord> all;
  for (const auto& [at, in_graph] :
       {std::pair<uint64_t, bool>{0, true}, {100, false}, {200, true}, {300, true}}) {
    const auto of_step = step(at, in_graph);
    all.insert(all.end(), of_step.begin(), of_step.end());
  }
  const DecodeProfile decode = summarize_records(records_of(all, 0, 400)).decode;
  EXPECT_EQ(decode.num_steps, 2);  // without the first, whose start is unknown, and the eager one
  EXPECT_NEAR(decode.seconds * 1e6, 200, 1e-6);
  EXPECT_NEAR(decode.idle_between_seconds * 1e6, 2 * (8 + 2 + 2), 1e-6);
  EXPECT_NEAR(decode.idle_within_seconds * 1e6, 2 * 5, 1e-6);
}

TEST(SummarizeRecords, NothingIsAllIdle) {
  const DeviceProfile profile = summarize_records(records_of({}, 5, 15));
  EXPECT_NEAR(us_of(profile.shares, "idle"), 10, 1e-6);
  EXPECT_TRUE(profile.kernels.empty());
  EXPECT_EQ(profile.decode.num_steps, 0);
}

}  // namespace
}  // namespace quire::cuda

#include <gtest/gtest.h>

#include <limits>

#include "cuda/sample/sampler_rig.h"
#include "sample/sampler.h"

namespace quire::cuda {
namespace {

// The results of the targets under their rows of logits.
std::vector<LogprobsResult> run(SamplerRig& rig, const std::vector<float>& logits,
                                const std::vector<int32_t>& targets, int num_top) {
  const auto num_rows = static_cast<int>(targets.size());
  std::vector<LogprobsResult> results(targets.size());
  const size_t num_bytes = results.size() * sizeof(LogprobsResult);
  auto device = device_memory(num_bytes);
  EXPECT_EQ(device.status().message(), "");
  if (!device.ok()) return results;
  CudaStream& stream = rig.stream();
  stream.copy_to_device(rig.logits(), logits.data(), logits.size() * sizeof(float));
  stream.copy_to_device(rig.slots(), targets.data(), targets.size() * sizeof(int32_t));
  rig.sampler().prompt_logprobs(rig.logits_view(num_rows), rig.slots(), num_rows, num_top,
                                static_cast<LogprobsResult*>(device->data()), stream);
  stream.copy_to_host(results.data(), device->data(), num_bytes);
  EXPECT_EQ(stream.synchronize().message(), "");
  return results;
}

TEST(PromptLogprobs, AreThoseOfTheCpu) {
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  constexpr int kRows = 6;
  std::mt19937 random(11);
  for (const int vocab : {17, 1000, 32001, 128256}) {
    auto created = SamplerRig::create({1, 1, kRows, vocab, 64});
    ASSERT_TRUE(created.ok());
    SamplerRig& rig = **created;
    for (const int num_top : {0, 1, 5, 20}) {
      const std::vector<float> logits = random_logits(kRows * vocab, 3.0F, num_top, random);
      std::vector<int32_t> targets(kRows);
      for (int32_t& id : targets) id = static_cast<int32_t>(random() % vocab);
      targets[3] = -1;
      const std::vector<LogprobsResult> results = run(rig, logits, targets, num_top);
      for (size_t i = 0; i < kRows; ++i) {
        const PositionLogprobs got = to_position_logprobs(results[i]);
        EXPECT_EQ(results[i].status, targets[i] < 0 ? RowStatus::kPadding : RowStatus::kOk);
        if (targets[i] < 0) {
          EXPECT_TRUE(got.empty());
          continue;
        }
        const std::span row(logits.data() + i * static_cast<size_t>(vocab),
                            static_cast<size_t>(vocab));
        const PositionLogprobs want = compute_logprobs(row, targets[i], num_top);
        ASSERT_EQ(got.size(), want.size());
        for (size_t k = 0; k < want.size(); ++k) {
          EXPECT_EQ(got[k].token_id, want[k].token_id) << vocab << " " << num_top << " " << k;
          EXPECT_EQ(got[k].rank, want[k].rank);
          EXPECT_NEAR(got[k].logprob, want[k].logprob, 2e-6F * (1 + std::abs(want[k].logprob)));
        }
      }
    }
  }
}

// Invalid logits at a prompt's position give the same error as where a token is sampled.
TEST(PromptLogprobs, ReportBrokenLogits) {
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  constexpr int kRows = 4;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const int vocab : {17, 32001}) {
    auto created = SamplerRig::create({1, 1, kRows, vocab, 64});
    ASSERT_TRUE(created.ok());
    SamplerRig& rig = **created;
    std::mt19937 random(11);
    const auto row_size = static_cast<size_t>(vocab);
    std::vector<float> logits = random_logits(kRows * vocab, 3.0F, 0, random);
    logits[row_size - 1] = logits[row_size - 2] = std::numeric_limits<float>::quiet_NaN();
    logits[row_size + 3] = kInf;
    std::fill_n(logits.begin() + 2 * vocab, vocab, -kInf);
    const std::vector<LogprobsResult> results = run(rig, logits, {1, 2, 3, 4}, 2);
    EXPECT_EQ(to_status(results[0].status, 9, results[0].detail).message(),
              nan_logit(9, vocab - 2).message());
    EXPECT_EQ(results[1].status, RowStatus::kInfinite);
    EXPECT_EQ(results[2].status, RowStatus::kNoneFinite);
    EXPECT_EQ(results[3].status, RowStatus::kOk);
  }
}

}  // namespace
}  // namespace quire::cuda

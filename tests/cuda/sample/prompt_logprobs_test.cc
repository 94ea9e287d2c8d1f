#include <gtest/gtest.h>

#include "cuda/sample/sampler_rig.h"

namespace quire::cuda {
namespace {

TEST(PromptLogprobs, AreThoseOfTheCpu) {
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  constexpr int kRows = 6;
  std::mt19937 random(11);
  for (const int vocab : {17, 1000, 32001, 128256}) {
    auto created = SamplerRig::create({1, kRows, vocab, 64});
    ASSERT_TRUE(created.ok());
    SamplerRig& rig = **created;
    for (const int num_top : {0, 1, 5, 20}) {
      const std::vector<float> logits = random_logits(kRows * vocab, 3.0F, num_top, random);
      std::vector<int32_t> targets(kRows);
      for (int32_t& id : targets) id = static_cast<int32_t>(random() % vocab);
      targets[3] = -1;
      auto device = device_memory(kRows * sizeof(LogprobsResult));
      ASSERT_TRUE(device.ok());
      std::vector<LogprobsResult> results(kRows);
      CudaStream& stream = rig.stream();
      stream.copy_to_device(rig.logits(), logits.data(), logits.size() * sizeof(float));
      stream.copy_to_device(rig.row_ids(), targets.data(), targets.size() * sizeof(int32_t));
      rig.sampler().prompt_logprobs(rig.logits_view(kRows), rig.row_ids(), kRows, num_top,
                                    static_cast<LogprobsResult*>(device->data()), stream);
      stream.copy_to_host(results.data(), device->data(), kRows * sizeof(LogprobsResult));
      ASSERT_TRUE(stream.synchronize().ok());
      for (size_t i = 0; i < kRows; ++i) {
        const PositionLogprobs got = to_position_logprobs(results[i]);
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

}  // namespace
}  // namespace quire::cuda

#include "cuda/sample/rough_gumbel.h"

#include <gtest/gtest.h>

#include "cuda/base/memory.h"
#include "cuda/sample/sampler_rig.h"

namespace quire::cuda {
namespace {

struct Span {
  uint64_t first, count;
};

void expect_bounded(const Span& span, float logit, float temperature) {
  auto stream = CudaStream::create();
  ASSERT_TRUE(stream.ok());
  auto device = device_memory(sizeof(RoughGumbelErrors));
  ASSERT_TRUE(device.ok());
  RoughGumbelErrors errors = {.count = 0, .first_bits = UINT32_MAX};
  (*stream)->copy_to_device(device->data(), &errors, sizeof errors);
  launch_check_bits(span.first, span.count, logit, temperature,
                    static_cast<RoughGumbelErrors*>(device->data()), **stream);
  (*stream)->copy_to_host(&errors, device->data(), sizeof errors);
  const Status status = (*stream)->synchronize();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(errors.count, 0U) << "logit " << logit << " temperature " << temperature
                              << ", the first at bits " << errors.first_bits;
}

TEST(RoughGumbel, BoundsTheExactScoreNearTheEnds) {
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  for (const uint64_t bits : {0U, 127U, 128U, 1000U, 4252017623U, 4252017624U, UINT32_MAX}) {
    for (const float temperature : {0.1F, 1.0F, 10.0F}) expect_bounded({bits, 1}, 1, temperature);
  }
}

TEST(RoughGumbel, BoundsTheExactScoreOfAllRandomBits) {
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  for (const float logit : {0.0F, 23.5F, -300.0F}) {
    expect_bounded({0, uint64_t{1} << 32}, logit, 0.7F);
  }
}

}  // namespace
}  // namespace quire::cuda

#include "server/transit_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::server {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(TransitMemory, IsTheSumOfItsLimits) {
  http::Limits limits;
  limits.max_connections = 100;
  limits.max_body_bytes = 4 * kMiB;
  limits.max_total_body_bytes = 64 * kMiB;
  limits.max_total_response_bytes = 32 * kMiB;
  limits.max_header_bytes = 16 << 10;
  ServiceConfig config;
  config.num_workers = 3;
  const TransitMemory memory = plan_transit_memory(limits, config);
  EXPECT_EQ(memory.bodies, 64 * kMiB);
  EXPECT_EQ(memory.parsing, 4 * (18 * 4 + 100) * kMiB);
  EXPECT_EQ(memory.connections, int64_t{100} * (176 << 10));
  EXPECT_THAT(describe(memory),
              HasSubstr("at most 1826 MiB of host memory: bodies 64, parsing 688, unread responses "
                        "32, grammars 1024, connections 18"));
  config.stored_responses.max_responses = 1;
  EXPECT_EQ(plan_transit_memory(limits, config).parsing, memory.parsing + 3 * 18 * 32 * kMiB);
}

class TrimScheduleTest : public ::testing::Test {
 protected:
  bool is_due(int64_t num_bytes, bool is_idle) {
    now_ += seconds(1);
    return schedule_.is_due(num_bytes, is_idle, now_);
  }
  TrimSchedule schedule_;
  TrimSchedule::Clock::time_point now_ = TrimSchedule::Clock::now();
};

TEST_F(TrimScheduleTest, TrimsOnceAfterTraffic) {
  EXPECT_FALSE(is_due(0, true));
  EXPECT_FALSE(is_due(500 * kMiB, false)) << "bodies arrive";
  EXPECT_FALSE(is_due(500 * kMiB, false)) << "and wait";
  EXPECT_TRUE(is_due(500 * kMiB, true)) << "their clients have left";
  EXPECT_FALSE(is_due(500 * kMiB, true));
}

TEST_F(TrimScheduleTest, WaitsForASecondWithoutTraffic) {
  EXPECT_FALSE(is_due(2 * kMiB, true)) << "between two requests";
  EXPECT_FALSE(is_due(4 * kMiB, true));
  EXPECT_TRUE(is_due(4 * kMiB + 200, true)) << "a probe is no traffic";
}

TEST_F(TrimScheduleTest, IgnoresALittleTraffic) {
  for (int64_t i = 0; i < 100; ++i) EXPECT_FALSE(is_due(i * 1000, true));
}

TEST_F(TrimScheduleTest, TrimsUnderContinuousTrafficFromTimeToTime) {
  int num_trims = 0;
  for (int64_t i = 1; i <= 300; ++i) num_trims += is_due(i * 10 * kMiB, false) ? 1 : 0;
  EXPECT_EQ(num_trims, 10);
}

}  // namespace
}  // namespace quire::server

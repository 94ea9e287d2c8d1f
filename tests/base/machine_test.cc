#include "base/machine.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(FreeCgroupBytes, IsTheLimitMinusTheUse) {
  EXPECT_EQ(free_cgroup_bytes("1000\n", "300\n", ""), 700);
  EXPECT_EQ(free_cgroup_bytes("1000", "1200", ""), 0) << "over the limit";
}

TEST(FreeCgroupBytes, CountsFilesInMemoryAsFree) {
  constexpr const char* kStat = "anon 100\nfile 600\ninactive_file 400\nactive_file 150\nslab 9\n";
  EXPECT_EQ(free_cgroup_bytes("1000", "700", kStat), 850);
  EXPECT_EQ(free_cgroup_bytes("500", "100", kStat), 500) << "never more than the limit";
}

TEST(FreeCgroupBytes, HasNoneWithoutALimit) {
  EXPECT_EQ(free_cgroup_bytes("max\n", "300\n", ""), std::nullopt);
  EXPECT_EQ(free_cgroup_bytes("", "", ""), std::nullopt) << "no control group";
}

TEST(Machine, HasACoreAndMemory) {
  EXPECT_GE(num_usable_cores(), 1);
  EXPECT_GT(free_memory_bytes(), 0);
}

TEST(Machine, ThisProcessUsesResources) {
  const ProcessUse use = process_use();
  EXPECT_GT(use.cpu_seconds, 0);
  EXPECT_GT(use.resident_bytes, 1 << 20);
  EXPECT_GT(use.virtual_bytes, use.resident_bytes);
  EXPECT_GE(use.num_open_fds, 1);
  EXPECT_GT(use.max_fds, use.num_open_fds);
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(use.started_at, now + 1);
  EXPECT_GT(use.started_at, now - 3600);
}

}  // namespace
}  // namespace quire

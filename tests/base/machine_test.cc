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

}  // namespace
}  // namespace quire

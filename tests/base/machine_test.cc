#include "base/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/scratch_directory.h"

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

TEST(CpuQuota, IsRoundedUp) {
  EXPECT_EQ(cpu_quota("400000 100000\n", "", ""), 4);
  EXPECT_EQ(cpu_quota("150000 100000\n", "", ""), 2);
  EXPECT_EQ(cpu_quota("10000 100000\n", "", ""), 1);
  EXPECT_EQ(cpu_quota("", "250000\n", "100000\n"), 3) << "version 1";
}

TEST(CpuQuota, HasNoneWithoutALimit) {
  EXPECT_EQ(cpu_quota("max 100000\n", "", ""), std::nullopt);
  EXPECT_EQ(cpu_quota("", "-1\n", "100000\n"), std::nullopt) << "version 1";
  EXPECT_EQ(cpu_quota("", "", ""), std::nullopt) << "no control group";
  for (const char* malformed : {"5", "5 0", " ", "0 100000", "-5 100000", "5 x", "x"}) {
    EXPECT_EQ(cpu_quota(malformed, "", ""), std::nullopt) << malformed;
  }
}

TEST(CpuQuota, IsTheLowestOfTheGroupsAboveTheProcess) {
  const testing::ScratchDirectory root;
  std::filesystem::create_directories(root.path() / "system.slice" / "quire.service");
  constexpr const char* kGroup = "1:cpu:/other\n0::/system.slice/quire.service\n";
  EXPECT_EQ(cpu_quota(root.path(), kGroup), std::nullopt);
  root.write("system.slice/quire.service/cpu.max", "800000 100000\n");
  EXPECT_EQ(cpu_quota(root.path(), kGroup), 8);
  root.write("system.slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpu_quota(root.path(), kGroup), 3);
  EXPECT_EQ(cpu_quota(root.path(), "0::/\n"), std::nullopt);
  root.write("cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota(root.path(), "0::/\n"), 2) << "a container's own group is its root";
  EXPECT_EQ(cpu_quota(root.path(), ""), 2);
  EXPECT_EQ(cpu_quota(root.path(), "0::/../..\n"), 2);
  EXPECT_EQ(cpu_quota(root.path(), "0:://x\n"), 2);
}

TEST(CpuQuota, OfVersion1IsTheLowestOfTheGroupsAboveTheProcess) {
  const testing::ScratchDirectory root;
  std::filesystem::create_directories(root.path() / "cpu" / "outer" / "inner");
  constexpr const char* kGroup = "4:cpuset:/\n3:cpu,cpuacct:/outer/inner\n1:name=systemd:/x\n";
  const auto set_quota = [&](const std::string& group, const std::string& quota_us) {
    root.write("cpu/" + group + "cpu.cfs_quota_us", quota_us);
    root.write("cpu/" + group + "cpu.cfs_period_us", "100000\n");
  };
  set_quota("", "-1\n");
  EXPECT_EQ(cpu_quota(root.path(), kGroup), std::nullopt);
  set_quota("outer/inner/", "800000\n");
  EXPECT_EQ(cpu_quota(root.path(), kGroup), 8);
  set_quota("outer/", "300000\n");
  EXPECT_EQ(cpu_quota(root.path(), kGroup), 3);
  EXPECT_EQ(cpu_quota(root.path(), "3:cpu:/of/the/host\n"), std::nullopt);
  set_quota("", "200000\n");
  EXPECT_EQ(cpu_quota(root.path(), "3:cpu:/of/the/host\n"), 2)
      << "a container's own group is its root";
  root.write("cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_quota(root.path(), kGroup), 1) << "both versions";
  EXPECT_EQ(cpu_quota(root.path(), "3:cpu\n:\n\n"), 1) << "malformed";
}

TEST(Machine, HasACoreAndMemory) {
  EXPECT_GE(num_usable_cpus(), 1);
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

TEST(Machine, AProcessHasStartTicksUntilItIsGone) {
  EXPECT_GT(start_ticks_of("self"), 0);
  EXPECT_EQ(start_ticks_of(std::to_string(::getpid())), start_ticks_of("self"));
  EXPECT_EQ(start_ticks_of("0"), 0);
}

}  // namespace
}  // namespace quire

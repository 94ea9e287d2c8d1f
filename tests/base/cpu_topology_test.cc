#include "base/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "fake_cpus.h"
#include "support/value_of.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ParseCpuList, ReadsNumbersAndRanges) {
  EXPECT_THAT(*parse_cpu_list("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(*parse_cpu_list("5,1"), ElementsAre(1, 5));
  EXPECT_THAT(*parse_cpu_list(""), IsEmpty());
}

TEST(ParseCpuList, RefusesEverythingElse) {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1,", ",", "0-99999999", "1 2", "0x3",
                           "99999999999999999999", "1--2", "-"}) {
    const auto list = parse_cpu_list(text);
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_THAT(list.status().message(), HasSubstr("expected a list such as 0-3,8")) << text;
  }
}

TEST(CpuTopology, OfTwoSocketsHasNodesAndSiblings) {
  const testing::FakeCpus tree;
  tree.add_two_sockets(4);
  const auto cpus = testing::value_of(read_cpu_topology(tree.root()));
  ASSERT_EQ(cpus.size(), 16U);
  EXPECT_EQ(cpus[0], (LogicalCpu{.id = 0, .core = 0, .node = 0}));
  EXPECT_EQ(cpus[5], (LogicalCpu{.id = 5, .core = 5, .node = 1}));
  EXPECT_EQ(cpus[13], (LogicalCpu{.id = 13, .core = 5, .node = 1})) << "the sibling of 5";
}

TEST(CpuTopology, OfAHybridProcessorHasEfficiencyCores) {
  const testing::FakeCpus tree;
  tree.add_hybrid(2, 4);
  const auto cpus = testing::value_of(read_cpu_topology(tree.root()));
  ASSERT_EQ(cpus.size(), 8U);
  for (const LogicalCpu& cpu : cpus) EXPECT_EQ(cpu.on_efficiency_core, cpu.id >= 4) << cpu.id;
  EXPECT_EQ(cpus[1].core, 0);
  EXPECT_EQ(cpus[5].core, 5);
}

TEST(CpuTopology, OfArmKnowsSlowCoresByTheirCapacity) {
  const testing::FakeCpus tree;
  for (int cpu = 0; cpu < 6; ++cpu) tree.add_core({cpu});
  tree.write_online(6);
  const int capacities[] = {430, 430, 530, 850, 850, 1024};
  for (int cpu = 0; cpu < 6; ++cpu) tree.write_capacity(cpu, std::to_string(capacities[cpu]));
  const auto cpus = testing::value_of(read_cpu_topology(tree.root()));
  for (const LogicalCpu& cpu : cpus) EXPECT_EQ(cpu.on_efficiency_core, cpu.id < 3) << cpu.id;
}

TEST(CpuTopology, LeavesOutCpusThatAreOffline) {
  const testing::FakeCpus tree;
  tree.add_two_sockets(2);
  tree.write("system/cpu/online", "0-2,5\n");
  const auto cpus = testing::value_of(read_cpu_topology(tree.root()));
  ASSERT_EQ(cpus.size(), 4U);
  EXPECT_EQ(cpus.back(), (LogicalCpu{.id = 5, .core = 1, .node = 0}));
}

TEST(CpuTopology, WithoutNodesIsOfNode0) {
  const testing::FakeCpus tree;
  tree.add_core({0, 1});
  tree.write_online(2);
  const auto cpus = testing::value_of(read_cpu_topology(tree.root()));
  EXPECT_EQ(cpus[1], (LogicalCpu{.id = 1, .core = 0, .node = 0}));
}

TEST(CpuTopology, NamesTheFileThatIsMissingOrMalformed) {
  const testing::FakeCpus nothing;
  EXPECT_THAT(read_cpu_topology(nothing.root()).status().message(), HasSubstr("online"));

  struct Case {
    const char* file;
    const char* text;  // null: the file is missing
  };
  for (const Case& c :
       {Case{"system/cpu/online", "garbage"}, Case{"system/cpu/online", "\n"},
        Case{"system/cpu/cpu3/topology/thread_siblings_list", nullptr},
        Case{"system/cpu/cpu3/topology/thread_siblings_list", "7-4"},
        Case{"system/cpu/cpu3/topology/thread_siblings_list", "1,2"},
        Case{"system/node/node1/cpulist", "4-"}, Case{"system/node/node1/cpulist", nullptr},
        Case{"cpu_core/cpus", "\x01\xff"}}) {
    const testing::FakeCpus tree;
    tree.add_two_sockets(2);
    c.text == nullptr ? tree.remove(c.file) : tree.write(c.file, c.text);
    const auto cpus = read_cpu_topology(tree.root());
    ASSERT_FALSE(cpus.ok()) << c.file;
    EXPECT_THAT(cpus.status().message(), HasSubstr(tree.root().string())) << c.file;
    EXPECT_EQ(cpus.status().message().find('\n'), std::string::npos) << c.file;
  }
}

TEST(CpuTopology, RefusesACapacityThatIsNotANumber) {
  const testing::FakeCpus tree;
  tree.add_core({0});
  tree.write_online(1);
  tree.write_capacity(0, "fast");
  EXPECT_THAT(read_cpu_topology(tree.root()).status().message(),
              HasSubstr("got 'fast', expected a number of 1 to 65536"));
}

TEST(ThreadAffinity, IsSetAndRead) {
  const std::vector<int> before = thread_affinity();
  ASSERT_THAT(before, ::testing::Not(IsEmpty()));
  std::thread([&] {
    ASSERT_TRUE(set_thread_affinity({&before.back(), 1}).ok());
    EXPECT_THAT(thread_affinity(), ElementsAre(before.back()));
    const std::vector<int> absent = {60'000};
    EXPECT_FALSE(set_thread_affinity(absent).ok());
    EXPECT_FALSE(set_thread_affinity({}).ok());
  }).join();
  EXPECT_EQ(thread_affinity(), before) << "other threads are not affected";
}

TEST(InterleavePages, SetsThePolicyOfTheMemory) {
  constexpr size_t kNumBytes = size_t{1} << 20;
  void* const data =
      ::mmap(nullptr, kNumBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  const std::vector<int> node = {0};
  const Status status = interleave_pages(data, kNumBytes, node);
  if (status.ok()) {
    int policy = -1;
    ASSERT_EQ(::syscall(SYS_get_mempolicy, &policy, nullptr, 0, data, MPOL_F_ADDR), 0);
    EXPECT_EQ(policy, MPOL_INTERLEAVE);
  }
  const std::vector<int> absent = {100'000};
  EXPECT_FALSE(interleave_pages(data, kNumBytes, absent).ok());
  std::memset(data, 1, kNumBytes);
  ::munmap(data, kNumBytes);
  if (!status.ok()) GTEST_SKIP() << status.message();
}

}  // namespace
}  // namespace quire

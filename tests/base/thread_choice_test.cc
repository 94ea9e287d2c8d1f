#include "base/thread_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "fake_cpus.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeCpus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<int> first_cpus(int count) {
  std::vector<int> cpus(static_cast<size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

CpuTopology topology_of(const FakeCpus& tree) {
  return read_cpu_topology(tree.root()).value();
}

CpuTopology two_sockets(int num_cores) {
  const FakeCpus tree;
  tree.add_two_sockets(num_cores);
  return topology_of(tree);
}

CpuTopology hybrid() {
  const FakeCpus tree;
  tree.add_hybrid(2, 4);
  return topology_of(tree);
}

int count_threads(std::span<const ThreadPlace> places, int node) {
  return static_cast<int>(std::ranges::count(places, node, &ThreadPlace::node));
}

bool is_pinned(const ThreadChoice& choice) {
  return std::ranges::none_of(choice.places, &std::vector<int>::empty, &ThreadPlace::cpus);
}

TEST(ChooseThreads, GivesEachPhysicalCoreAThread) {
  const ThreadChoice choice = choose_threads(two_sockets(4), {.affinity = first_cpus(16)}, {});
  EXPECT_EQ(choice.num_cores, 8);
  EXPECT_EQ(choice.num_cpus, 16);
  ASSERT_EQ(choice.places.size(), 8U);
  std::set<int> cpus;
  for (const ThreadPlace& place : choice.places) {
    ASSERT_EQ(place.cpus.size(), 2U) << "both CPUs of the core";
    EXPECT_EQ(place.cpus[1], place.cpus[0] + 8);
    EXPECT_EQ(place.node, place.cpus[0] / 4);
    cpus.insert(place.cpus.begin(), place.cpus.end());
  }
  EXPECT_EQ(cpus.size(), 16U) << "no core twice";
  EXPECT_THAT(describe(choice),
              AllOf(HasSubstr("8 on 8 physical cores (16 logical CPUs on 2 nodes); node 0: 4, "
                              "node 1: 4; pinning each thread to a core"),
                    ::testing::Not(HasSubstr("efficiency"))));
}

TEST(ChooseThreads, EachPrefixIsSpreadOverTheNodes) {
  const ThreadChoice choice = choose_threads(two_sockets(4), {.affinity = first_cpus(16)}, {});
  for (size_t n = 1; n <= choice.places.size(); ++n) {
    const std::span prefix = std::span(choice.places).first(n);
    EXPECT_LE(std::abs(count_threads(prefix, 0) - count_threads(prefix, 1)), 1) << n;
  }
}

TEST(ChooseThreads, SpreadsOverUnequalNodesInProportion) {
  // 6 of 8 cores of node 0, and 2 of node 1.
  const ThreadChoice choice =
      choose_threads(two_sockets(8), {.affinity = {0, 1, 2, 3, 4, 5, 8, 9}}, {});
  ASSERT_EQ(choice.places.size(), 8U);
  EXPECT_EQ(count_threads(choice.places, 0), 6);
  EXPECT_EQ(count_threads(std::span(choice.places).first(4), 0), 3);
  for (const ThreadPlace& place : choice.places) {
    EXPECT_EQ(place.cpus.size(), 1U) << "the siblings are not in the affinity";
  }
}

TEST(ChooseThreads, FewThreadsStayOnFewNodes) {
  const CpuTopology topology = two_sockets(4);
  const CpuLimits limits = {.affinity = first_cpus(16)};
  const ThreadChoice four = choose_threads(topology, limits, {.num_threads = 4});
  ASSERT_EQ(four.places.size(), 4U);
  EXPECT_EQ(count_threads(four.places, 0), 4);
  EXPECT_THAT(four.places[0].cpus, ElementsAre(0, 1, 2, 3, 8, 9, 10, 11)) << "all of the node";
  EXPECT_THAT(four.pinning, StartsWith("each thread to the cores of its node"));

  const ThreadChoice six = choose_threads(topology, limits, {.num_threads = 6});
  EXPECT_EQ(count_threads(six.places, 0), 3);
  EXPECT_EQ(count_threads(six.places, 1), 3);
}

TEST(ChooseThreads, MoreThreadsThanCoresTakeTheSecondCpus) {
  const ThreadChoice choice =
      choose_threads(two_sockets(4), {.affinity = first_cpus(16)}, {.num_threads = 12});
  ASSERT_EQ(choice.places.size(), 12U);
  std::set<int> cpus;
  for (size_t i = 0; i < 12; ++i) {
    ASSERT_EQ(choice.places[i].cpus.size(), 1U);
    cpus.insert(choice.places[i].cpus[0]);
    EXPECT_EQ(choice.places[i].cpus[0] >= 8, i >= 8) << "first one CPU of each core";
  }
  EXPECT_EQ(cpus.size(), 12U);
  EXPECT_THAT(choice.pinning, StartsWith("each thread to a logical CPU, because"));
}

TEST(ChooseThreads, FillsUnequalNodesToTheLastCpu) {
  const CpuTopology topology = two_sockets(4);
  const CpuLimits limits = {.affinity = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const ThreadChoice choice = choose_threads(topology, limits, {.num_threads = 13});
  std::set<int> cpus;
  for (const ThreadPlace& place : choice.places) cpus.insert(place.cpus.at(0));
  EXPECT_EQ(cpus.size(), 13U);
  EXPECT_FALSE(is_pinned(choose_threads(topology, limits, {.num_threads = 14})));
  EXPECT_EQ(choose_threads(two_sockets(4), {.affinity = {0}}, {.num_threads = 2}).pinning,
            "off: 2 threads share 1 logical CPU");
}

TEST(ChooseThreads, LeavesOutEfficiencyCores) {
  const CpuLimits limits = {.affinity = first_cpus(8)};
  const ThreadChoice choice = choose_threads(hybrid(), limits, {});
  ASSERT_EQ(choice.places.size(), 2U);
  EXPECT_THAT(choice.places[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(choice.places[1].cpus, ElementsAre(2, 3));
  EXPECT_EQ(choice.left_out, "4 left out; --cpu-cores all uses them");

  const ThreadChoice one = choose_threads(hybrid(), limits, {.num_threads = 1});
  EXPECT_THAT(one.places[0].cpus, ElementsAre(0, 1, 2, 3)) << "bound to the performance cores";

  const ThreadChoice all = choose_threads(hybrid(), limits, {.cores = CpuCores::kAll});
  EXPECT_EQ(all.places.size(), 6U);
  EXPECT_THAT(all.left_out, IsEmpty());
}

TEST(ChooseThreads, UsesEfficiencyCoresIfThereAreNoOthers) {
  const ThreadChoice choice = choose_threads(hybrid(), {.affinity = {5, 6}}, {});
  EXPECT_EQ(choice.places.size(), 2U);
  EXPECT_THAT(choice.left_out, IsEmpty());
}

TEST(ChooseThreads, AQuotaLimitsTheThreadsAndTurnsPinningOff) {
  const CpuTopology topology = two_sockets(4);
  const CpuLimits limits = {.affinity = first_cpus(16), .quota = 3};
  const ThreadChoice choice = choose_threads(topology, limits, {});
  EXPECT_EQ(choice.places, std::vector<ThreadPlace>(3)) << "not pinned, and on one node";
  EXPECT_THAT(choice.pinning,
              StartsWith("off: the quota of 3 CPUs is less than the 16 CPUs that the process"));
  EXPECT_EQ(choice.quota, "the control group has the time of 3 CPUs");
  const CpuLimits one = {.affinity = first_cpus(16), .quota = 1};
  EXPECT_EQ(choose_threads(topology, one, {}).quota, "the control group has the time of 1 CPU");
  EXPECT_TRUE(is_pinned(choose_threads(topology, limits, {.pinning = CpuPinning::kOn})));

  const CpuLimits mask = {.affinity = {0, 1, 8}, .quota = 3};
  EXPECT_TRUE(is_pinned(choose_threads(topology, mask, {}))) << "the quota does not limit the mask";
}

TEST(ChooseThreads, FollowsTheFlagOfPinning) {
  const CpuTopology topology = two_sockets(4);
  const CpuLimits limits = {.affinity = first_cpus(16)};
  const ThreadChoice off = choose_threads(topology, limits, {.pinning = CpuPinning::kOff});
  EXPECT_EQ(off.places, std::vector<ThreadPlace>(8));
  const ThreadChoice on =
      choose_threads(topology, limits, {.num_threads = 2, .pinning = CpuPinning::kOn});
  EXPECT_THAT(on.places[0].cpus, ElementsAre(0, 8));
  EXPECT_THAT(on.places[1].cpus, ElementsAre(1, 9));
}

// The first CPUs of one socket's cores.
TEST(ChooseThreads, CoresOfOneNodeWithOneCpuEachAreNotPinned) {
  const CpuLimits limits = {.affinity = first_cpus(4)};
  const ThreadChoice choice = choose_threads(two_sockets(4), limits, {});
  EXPECT_EQ(choice.places.size(), 4U);
  EXPECT_FALSE(is_pinned(choice));
  EXPECT_THAT(choice.pinning, StartsWith("off: all cores are of one node"));
  EXPECT_TRUE(is_pinned(choose_threads(two_sockets(4), limits, {.pinning = CpuPinning::kOn})));
}

TEST(ChooseThreads, APartOfOneNodeIsNotPinned) {
  const ThreadChoice choice =
      choose_threads(two_sockets(4), {.affinity = {0, 1, 2, 3}}, {.num_threads = 2});
  EXPECT_EQ(choice.places, std::vector<ThreadPlace>(2));
  EXPECT_THAT(choice.pinning, StartsWith("off: 2 threads on 4 cores"));
}

TEST(ChooseThreads, KeepsTheNodesOfAProcessorWithSeveral) {
  const FakeCpus tree;
  tree.add_four_nodes(2);
  const ThreadChoice choice = choose_threads(topology_of(tree), {.affinity = first_cpus(8)}, {});
  std::vector<int> nodes;
  for (const ThreadPlace& place : choice.places) nodes.push_back(place.node);
  EXPECT_THAT(nodes, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(ChooseThreads, WithoutATopologyCountsTheCpus) {
  const CpuLimits limits = {.affinity = first_cpus(6), .quota = 4};
  const ThreadChoice choice = choose_without_topology(limits, {}, "no files");
  EXPECT_EQ(choice.places, std::vector<ThreadPlace>(4));
  EXPECT_EQ(choice.pinning, "off: no files");
  // The kernel did not tell the affinity.
  const size_t num_cpus = std::max(1U, std::thread::hardware_concurrency());
  EXPECT_EQ(choose_without_topology({}, {}, "").places.size(), num_cpus);
  EXPECT_EQ(choose_threads(hybrid(), {}, {}).places, std::vector<ThreadPlace>(num_cpus));
  EXPECT_EQ(choose_without_topology(limits, {.num_threads = 9}, "").places.size(), 9U);
  // A mask of CPUs that the kernel does not describe.
  EXPECT_EQ(choose_threads(hybrid(), {.affinity = {100, 101}}, {}).places,
            std::vector<ThreadPlace>(2));
}

TEST(ChooseThreads, FindsThreadsForThisMachine) {
  const ThreadChoice choice = choose_threads({});
  EXPECT_GE(choice.places.size(), 1U);
  const std::vector<int> affinity = thread_affinity();
  for (const ThreadPlace& place : choice.places) {
    for (const int cpu : place.cpus) EXPECT_TRUE(std::ranges::binary_search(affinity, cpu));
  }
}

}  // namespace
}  // namespace quire

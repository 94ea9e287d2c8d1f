// Ranks that wait for each other, and one that fails.
#include "base/rank_join.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace quire {
namespace {

constexpr int kNumRanks = 3;

void on_every_rank(const std::function<void(int rank)>& run) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kNumRanks; ++rank) threads.emplace_back(run, rank);
}

TEST(RankJoin, GivesAllRanksTheBytesOfTheFirst) {
  RankJoin ranks(kNumRanks, [](const Status&) {});
  on_every_rank([&](int rank) {
    for (int round = 0; round < 500; ++round) {
      const std::string first = round % 3 == 0 ? "" : std::to_string(round);
      EXPECT_EQ(ranks.broadcast(rank == 0 ? first : "").value(), first);
      EXPECT_TRUE(ranks.join({}).ok());
    }
  });
}

TEST(RankJoin, GivesAllProcessesTheSameBytes) {
  RankJoin ranks(
      kNumRanks, [](const Status&) {},
      [](const std::string& bytes) -> Result<std::string> {
        EXPECT_EQ(bytes, "own");
        return std::string("of process 0");
      });
  on_every_rank([&](int rank) {
    EXPECT_EQ(ranks.broadcast(rank == 0 ? "own" : "").value(), "of process 0");
  });
}

TEST(RankJoin, AgreesIfEveryRankDoes) {
  RankJoin ranks(kNumRanks, [](const Status&) {});
  on_every_rank([&](int rank) {
    for (int round = 0; round < 50; ++round) {
      const int dissenter = round % (kNumRanks + 1);  // kNumRanks: none
      EXPECT_EQ(ranks.all_agree(rank != dissenter).value(), dissenter == kNumRanks) << round;
    }
  });
}

TEST(RankJoin, AnErrorReleasesThoseThatWait) {
  int num_failures = 0;
  RankJoin ranks(kNumRanks, [&](const Status&) { ++num_failures; });
  on_every_rank([&](int rank) {
    if (rank == 1) {
      EXPECT_FALSE(ranks.join(internal_error("broken")).ok());
    } else {
      EXPECT_EQ(ranks.broadcast("").status().message(), "broken");
    }
  });
  EXPECT_EQ(num_failures, 1);
  EXPECT_TRUE(ranks.has_failed());
  EXPECT_EQ(ranks.broadcast("").status().message(), "broken");
}

TEST(RankJoin, AnErrorOfAnotherProcessIsThatOfAllRanks) {
  RankJoin ranks(
      kNumRanks, [](const Status&) {},
      [](const std::string&) -> Result<std::string> { return unavailable("another has ended"); });
  on_every_rank([&](int) { EXPECT_EQ(ranks.join({}).message(), "another has ended"); });
}

}  // namespace
}  // namespace quire

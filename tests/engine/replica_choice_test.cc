// The choice of a replica, by examples and by properties under random loads.
#include "engine/replica_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace quire {
namespace {

using Candidates = std::vector<ReplicaCandidate>;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;

TEST(ReplicaChoice, TakesTheLeastLoadedWithoutAPrefix) {
  EXPECT_EQ(choose_replica(Candidates{{0, 0}}), 0);
  EXPECT_EQ(choose_replica(Candidates{{5, 0}, {3, 0}, {4, 0}}), 1);
  EXPECT_EQ(choose_replica(Candidates{{3, 0}, {3, 0}}), 0) << "the first of equal ones";
  EXPECT_EQ(choose_replica(Candidates{{3, 64}, {2, 64}}), 1) << "a prefix that all know";
}

TEST(ReplicaChoice, PrefersTheLongestPrefixUnlessItsLoadIsClearlyLarger) {
  EXPECT_EQ(choose_replica(Candidates{{0, 0}, {0, 64}}), 1);
  EXPECT_EQ(choose_replica(Candidates{{0, 0}, {64, 64}}), 1);
  EXPECT_EQ(choose_replica(Candidates{{0, 0}, {65, 64}}), 0) << "more load than it saves";
  EXPECT_EQ(choose_replica(Candidates{{8000, 0}, {9064, 64}}), 1) << "an eighth, and the prefix";
  EXPECT_EQ(choose_replica(Candidates{{8000, 0}, {9065, 64}}), 0);
  EXPECT_EQ(choose_replica(Candidates{{0, 1000}, {1000, 1064}}), 0) << "the least one knows most";
  EXPECT_EQ(choose_replica(Candidates{{90, 640}, {0, 0}, {80, 640}}), 2) << "of two that know it";
}

// Random candidates, often with equal loads and prefixes.
Candidates random_candidates(std::mt19937& rng) {
  const auto below = [&](uint32_t bound) { return static_cast<int64_t>(rng() % bound); };
  const bool is_small = below(2) == 0;
  Candidates replicas(1 + static_cast<size_t>(below(8)));
  for (ReplicaCandidate& replica : replicas) {
    replica.num_outstanding_tokens = below(is_small ? 4 : 100'000);
    replica.num_known_tokens = 64 * below(is_small ? 2 : 200);
  }
  return replicas;
}

TEST(ReplicaChoice, HoldsItsRulesForAnyLoad) {
  std::mt19937 rng(11);
  for (int round = 0; round < 20'000; ++round) {
    const Candidates all = random_candidates(rng);
    const size_t chosen = choose_replica(all);
    ASSERT_LT(chosen, all.size());
    const ReplicaCandidate& taken = all[chosen];
    int64_t smallest = INT64_MAX;
    int64_t longest = 0;
    for (const ReplicaCandidate& one : all) {
      smallest = std::min(smallest, one.num_outstanding_tokens);
      longest = std::max(longest, one.num_known_tokens);
    }
    const int64_t bound = smallest + smallest / 8;
    EXPECT_LE(taken.num_outstanding_tokens, bound + taken.num_known_tokens);
    EXPECT_TRUE(taken.num_outstanding_tokens == smallest || taken.num_known_tokens == longest);
    for (const ReplicaCandidate& one : all) {
      const bool is_better = one.num_outstanding_tokens < taken.num_outstanding_tokens &&
                             one.num_known_tokens >= taken.num_known_tokens;
      EXPECT_FALSE(is_better);
    }
    // A replica with the longest prefix and no more than a permitted load is taken.
    for (const ReplicaCandidate& one : all) {
      if (one.num_known_tokens == longest && one.num_outstanding_tokens <= bound) {
        EXPECT_EQ(taken.num_known_tokens, longest);
      }
    }
  }
}

TEST(ReplicaChoice, BalancesEqualRequests) {
  Candidates replicas(3);
  for (int i = 0; i < 100; ++i) replicas[choose_replica(replicas)].num_outstanding_tokens += 70;
  const auto [least, most] = std::ranges::minmax(
      replicas, {}, [](const ReplicaCandidate& one) { return one.num_outstanding_tokens; });
  EXPECT_LE(most.num_outstanding_tokens - least.num_outstanding_tokens, 70);
}

std::vector<int32_t> prompt(int length, int32_t salt = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < length; ++i) ids.push_back(i * 31 + salt);
  return ids;
}

std::vector<uint64_t> hashes(const std::vector<int32_t>& ids, std::string_view salt = "") {
  return PrefixIndex::hash_blocks(ids, salt);
}

Candidates known(PrefixIndex& index, const std::vector<uint64_t>& of) {
  Candidates all(3, {.num_outstanding_tokens = 0, .num_known_tokens = 77});
  index.look_up(of, all);
  return all;
}

TEST(PrefixIndex, FindsTheLongestPrefixPerReplica) {
  PrefixIndex index(1000);
  std::vector<int32_t> longer = prompt(200);
  index.add(hashes(longer), 1);
  index.add(hashes(prompt(64)), 2);
  const auto is = [](int64_t count) { return Field(&ReplicaCandidate::num_known_tokens, count); };
  EXPECT_THAT(known(index, hashes(prompt(63))), Each(is(0))) << "no full block";
  EXPECT_THAT(known(index, hashes(longer)), ElementsAre(is(0), is(192), is(64)));
  EXPECT_THAT(known(index, hashes(prompt(1000))), ElementsAre(is(0), is(192), is(64)));
  EXPECT_THAT(known(index, hashes(prompt(200, 1))), Each(is(0)));
  EXPECT_THAT(known(index, hashes(longer, "salt")), Each(is(0))) << "caches are separate by salt";
  longer[0] += 1;
  EXPECT_THAT(known(index, hashes(longer)), Each(is(0))) << "a hash covers the blocks before it";
}

TEST(PrefixIndex, IsBoundedAndForgetsTheOldest) {
  constexpr int kBlock = PrefixIndex::kBlockSize;
  PrefixIndex index(100);
  const auto first = hashes(prompt(kBlock, -1));
  const auto used = hashes(prompt(kBlock, -2));
  index.add(first, 0);
  index.add(used, 0);
  for (int32_t i = 0; i < 1000; ++i) {
    index.add(hashes(prompt(kBlock, i)), 1);
    ASSERT_LE(index.size(), 200);
    ASSERT_EQ(known(index, used)[0].num_known_tokens, kBlock) << "it is used all the time";
    if (i >= 40) {  // since then, at most 81 hashes were used
      ASSERT_EQ(known(index, hashes(prompt(kBlock, i - 40)))[1].num_known_tokens, kBlock) << i;
    }
  }
  EXPECT_EQ(known(index, first)[0].num_known_tokens, 0);
}

}  // namespace
}  // namespace quire

// The exchange between the ranks of a CPU: results, their bits, and ranks that fail.
#include "cpu/ops/rank_group.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace quire {
namespace {

// Calls body(rank, pool) on one thread per rank.
void on_ranks(int size, const std::function<void(int rank, ThreadPool& pool)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadPool pool(1 + rank % 2);
      body(rank, pool);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> random_numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1.0F, 1.0F);
  std::vector<float> numbers(count);
  for (float& value : numbers) value = number(random);
  return numbers;
}

TensorView view_of(std::vector<float>& numbers, int64_t num_rows) {
  return {numbers.data(), DType::kF32, {num_rows, std::ssize(numbers) / num_rows}};
}

TEST(RankGroup, AddsInTheOrderOfTheRanks) {
  for (const int size : {1, 2, 3, 4}) {
    for (const size_t count : {1U, 3U, 4096U, 4097U, 50001U}) {
      std::vector<std::vector<float>> x;
      for (int rank = 0; rank < size; ++rank) x.push_back(random_numbers(count, 7U + rank));
      std::vector<float> expected = x.front();
      for (int rank = 1; rank < size; ++rank) {
        for (size_t i = 0; i < count; ++i) expected[i] += x[rank][i];
      }
      RankGroup group(size);
      on_ranks(size, [&](int rank, ThreadPool& pool) {
        group.all_reduce(rank, view_of(x[rank], 1), pool);
      });
      for (const std::vector<float>& sum : x) ASSERT_EQ(sum, expected) << size << " " << count;
    }
  }
}

TEST(RankGroup, GathersPartsOfUnequalWidth) {
  std::vector<std::vector<float>> parts = {{0, 1, 2, 10, 11, 12}, {3, 4, 5, 13, 14, 15}, {6, 16}};
  std::vector<std::vector<float>> wholes(3, std::vector<float>(14));
  RankGroup group(3);
  on_ranks(3, [&](int rank, ThreadPool& pool) {
    group.all_gather_columns(rank, view_of(parts[rank], 2), view_of(wholes[rank], 2), pool);
  });
  for (const std::vector<float>& whole : wholes) {
    EXPECT_EQ(whole, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16}));
  }
}

TEST(RankGroup, GathersBytes) {
  std::vector<std::vector<double>> parts = {{1, 2}, {3, 4}, {5, 6}};
  std::vector<std::vector<double>> wholes(3, std::vector<double>(6));
  RankGroup group(3);
  on_ranks(3, [&](int rank, ThreadPool&) {
    group.all_gather(rank, std::as_writable_bytes(std::span(parts[rank])),
                     std::as_writable_bytes(std::span(wholes[rank])));
  });
  for (const std::vector<double>& whole : wholes) {
    EXPECT_EQ(whole, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  }
}

TEST(RankGroup, GivesAllTheValuesOfRank0) {
  std::vector<std::vector<int32_t>> values = {{5, 6}, {1, 1}, {2, 2}};
  RankGroup group(3);
  on_ranks(3, [&](int rank, ThreadPool&) { group.broadcast(rank, values[rank]); });
  for (const std::vector<int32_t>& of_rank : values) {
    EXPECT_EQ(of_rank, (std::vector<int32_t>{5, 6}));
  }
}

// Many short exchanges in a row, so that a rank may be one ahead of another.
TEST(RankGroup, KeepsExchangesApart) {
  constexpr int kSize = 3;
  RankGroup group(kSize);
  on_ranks(kSize, [&](int rank, ThreadPool& pool) {
    for (int i = 0; i < 2000; ++i) {
      std::vector<float> x(1 + i % 5, static_cast<float>(i * (rank + 1)));
      group.all_reduce(rank, view_of(x, 1), pool);
      for (const float sum : x) ASSERT_EQ(sum, static_cast<float>(i * 6));
      if (i % 10 == 0) {
        ASSERT_TRUE(group.join({}).ok());
      }
    }
  });
}

TEST(RankGroup, ARankThatFailsReleasesTheOthers) {
  for (int num_before = 0; num_before < 4; ++num_before) {
    RankGroup group(3);
    std::vector<Status> joined(3);
    on_ranks(3, [&](int rank, ThreadPool& pool) {
      std::vector<float> x(10, 1.0F);
      for (int i = 0; i < 5; ++i) {
        if (rank == 1 && i == num_before) {
          joined[rank] = group.join(resource_exhausted("no memory"));
          return;
        }
        group.all_reduce(rank, view_of(x, 1), pool);
      }
      joined[rank] = group.join({});
    });
    for (const Status& status : joined) EXPECT_EQ(status.message(), "no memory");
    // Later calls do not wait either.
    std::vector<float> x(10);
    ThreadPool pool(1);
    group.all_reduce(0, view_of(x, 1), pool);
    EXPECT_FALSE(group.join({}).ok());
  }
}

}  // namespace
}  // namespace quire

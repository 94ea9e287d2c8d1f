// A compilation that throws fails all calls that wait for it, and leaves no entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "grammar/compile_spec.h"
#include "support/eventually.h"

namespace quire::grammar {
namespace {

using ::testing::HasSubstr;

constexpr int kNumWaiters = 6;
constexpr size_t kMaxBytes = 1 << 20;

CompileOutcome refusal() {
  return {.result = invalid_argument("[grammar] refused")};
}

// Several threads ask for one key; the compilation goes on once all the others wait for it, and
// then throws.
void expect_all_are_answered(const std::function<void()>& throw_it) {
  CompileCache cache(kMaxBytes);
  std::atomic<int> num_failed = 0;
  const auto compile = [&]() -> CompileOutcome {
    EXPECT_TRUE(testing::eventually([&] { return cache.stats().num_hits >= kNumWaiters; }));
    throw_it();
    return refusal();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kNumWaiters + 1; ++i) {
    threads.emplace_back([&] {
      const CompileResult result = cache.get("key", compile);
      EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
      EXPECT_THAT(result.status().message(), HasSubstr("try again later"));
      ++num_failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_failed, kNumWaiters + 1);
  EXPECT_EQ(cache.stats().num_compiled, 1);
  EXPECT_EQ(cache.stats().cache_bytes, 0U);
  EXPECT_FALSE(cache.find("key"));

  // The next call compiles again, and its result is kept.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cache.get("key", refusal).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(cache.stats().num_compiled, 2);
  EXPECT_TRUE(cache.find("key"));
}

TEST(CompileCache, BadAllocFailsAllWaiters) {
  expect_all_are_answered([] { throw std::bad_alloc(); });
}

TEST(CompileCache, RuntimeErrorFailsAllWaiters) {
  expect_all_are_answered([] { throw std::runtime_error("unforeseen"); });
}

TEST(CompileCache, NonStandardExceptionFailsAllWaiters) {
  expect_all_are_answered([] { throw 7; });
}

TEST(CompileCache, DropsTheLeastRecentlyUsed) {
  CompileCache cache(/*max_bytes=*/6000);  // two refusals of some 2,600 bytes
  for (const char* key : {"a", "b", "a", "c"}) (void)cache.get(key, refusal);
  EXPECT_EQ(cache.stats().num_compiled, 3);
  EXPECT_TRUE(cache.find("a") && cache.find("c"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_LE(cache.stats().cache_bytes, 6000U);
}

TEST(BigStack, ThrowsOnToTheCaller) {
  EXPECT_THROW(run_on_big_stack([] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_THROW(run_on_big_stack([] { throw 7; }), int);
  int value = 0;
  EXPECT_TRUE(run_on_big_stack([&] { value = 1; }));
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace quire::grammar

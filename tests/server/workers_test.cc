#include "server/workers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <new>
#include <system_error>

namespace quire::server {
namespace {

TEST(WorkerPool, RunsTasksAndDropsTheRestWhenStopped) {
  WorkerPool pool(1);
  std::promise<int> done;
  pool.post([&] { done.set_value(7); });
  EXPECT_EQ(done.get_future().get(), 7);
  pool.stop();
  pool.post([] { ADD_FAILURE() << "after the stop"; });
  EXPECT_EQ(pool.load().num_waiting, 0U);
}

TEST(WorkerPool, AnExceptionOfATaskFailsThatTaskAlone) {
  WorkerPool pool(1);
  std::promise<int> done;
  pool.post([] { throw 7; });
  pool.post([] { throw std::bad_alloc(); });
  pool.post([&] { done.set_value(7); });
  EXPECT_EQ(done.get_future().get(), 7);
}

// Runs in a process whose address space has room for the stacks of only a few more threads. Exits
// with 0 if a large pool reports that it cannot start, and a small one still starts.
[[noreturn]] void start_more_threads_than_fit() {
  const rlimit limit{.rlim_cur = size_t{512} << 20, .rlim_max = size_t{512} << 20};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::exit(1);
  try {
    const WorkerPool many(1024);
  } catch (const std::system_error&) {
    const WorkerPool few(1);
    std::fprintf(stderr, "said so\n");
    std::exit(0);
  }
  std::exit(2);
}

// Sanitizers reserve address space, so they cannot run with a limit on it.
#ifdef __has_feature
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

TEST(WorkerPool, SaysThatTheSystemHasNoMoreThreads) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer cannot run with a limit on address space";
  EXPECT_EXIT(start_more_threads_than_fit(), ::testing::ExitedWithCode(0), "said so");
}

}  // namespace
}  // namespace quire::server

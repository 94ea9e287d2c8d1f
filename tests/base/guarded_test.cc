#include "base/guarded.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <system_error>

namespace quire {
namespace {

TEST(Guarded, ReturnsWhetherItRan) {
  int num_runs = 0;
  EXPECT_TRUE(run_guarded("[test] a run", [&] { ++num_runs; }));
  EXPECT_FALSE(run_guarded("[test] a run", [] { throw std::runtime_error("a fault"); }));
  EXPECT_FALSE(run_guarded("[test] a run", [] { throw 7; }));
  EXPECT_EQ(num_runs, 1);
}

template <typename Thrown>
Status status_of(const Thrown& thrown, bool has_memory = true) {
  try {
    throw thrown;
  } catch (...) {
    return make_exception_status([&](const char* text) {
      if (!has_memory) throw std::bad_alloc();
      return internal_error(std::string("[test] ") + text);
    });
  }
}

TEST(Guarded, AnExceptionBecomesAStatus) {
  EXPECT_EQ(status_of(std::runtime_error("a fault")).message(), "[test] a fault");
  EXPECT_EQ(status_of(std::system_error(EAGAIN, std::generic_category())).message(),
            std::string("[test] ") + kNoThread);
  EXPECT_EQ(status_of(7).message(), "[test] an exception that is not a std::exception");
  EXPECT_EQ(status_of(7, false).message(), "out of memory");
  EXPECT_EQ(status_of(7, false).code(), StatusCode::kResourceExhausted);
}

TEST(Guarded, AFunctionThatThrowsHasAStatus) {
  EXPECT_TRUE(guarded_status("[test] a run failed", [] { return Status(); }).ok());
  const auto refuse = [] { return invalid_argument("[test] refused"); };
  EXPECT_EQ(guarded_status("[test] a run failed", refuse).message(), "[test] refused");
  const Status thrown = guarded_status("[test] a run failed",
                                       []() -> Status { throw std::runtime_error("a fault"); });
  EXPECT_EQ(thrown.message(), "[test] a run failed; a fault");
  EXPECT_EQ(thrown.code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace quire

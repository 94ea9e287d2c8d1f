// The main function of every test program. If all tests were skipped, reports the program as
// skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // SKIP_RETURN_CODE in cmake/quire_targets.cmake
  ::testing::InitGoogleMock(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  const ::testing::UnitTest& tests = *::testing::UnitTest::GetInstance();
  const bool ran_any = tests.successful_test_count() > 0 || tests.skipped_test_count() == 0;
  return failed != 0 || ran_any ? failed : kSkipped;
}

#include "base/find_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/cpu_time.h"

namespace quire {
namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(FindText, FindsTheFirstAndTheLast) {
  EXPECT_EQ(find_text("abcabc", "bc"), 1U);
  EXPECT_EQ(find_text("abcabc", "bc", 2), 4U);
  EXPECT_EQ(find_text("abcabc", "bc", 5), kNone);
  EXPECT_EQ(find_text("abc", "c", 9), kNone);
  EXPECT_EQ(find_text("abc", "", 2), 2U);
  EXPECT_EQ(rfind_text("abcabc", "bc"), 4U);
  EXPECT_EQ(rfind_text("abcabc", "cb"), kNone);
  EXPECT_EQ(rfind_text("ab", "abc"), kNone);
  EXPECT_EQ(rfind_text("abc", ""), 3U);
  EXPECT_EQ(rfind_text(std::string_view("a\0b\0b", 5), std::string_view("\0b", 2)), 3U);
}

// Few letters make near matches frequent.
TEST(FindText, AgreesWithTheStandardLibrary) {
  std::mt19937 random(7);
  const auto any_text = [&](size_t max_size) {
    std::string text(random() % (max_size + 1), 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = any_text(40);
    const std::string part = any_text(6);
    const size_t from = random() % 45;
    ASSERT_EQ(find_text(text, part, from), text.find(part, from)) << text << ' ' << part;
    ASSERT_EQ(rfind_text(text, part), text.rfind(part)) << text << ' ' << part;
  }
}

// A search that compares the part at each place takes some 30 s of a core for each of these.
TEST(FindText, IsLinearWhateverTheTextsAre) {
  const std::string text(2'000'000, 'a');
  const std::string run(1'000'000, 'a');
  constexpr int64_t kMaxNs = 2'000'000'000;
  for (const std::string& part : {run + 'b', 'b' + run, run + 'b' + run}) {
    EXPECT_LT(cpu_ns_of([&] { EXPECT_EQ(find_text(text, part), kNone); }), kMaxNs);
    EXPECT_LT(cpu_ns_of([&] { EXPECT_EQ(rfind_text(text, part), kNone); }), kMaxNs);
  }
}

}  // namespace
}  // namespace quire

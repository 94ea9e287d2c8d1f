#include "base/marked_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace quire {
namespace {

// One flag per byte: whether it is in a range.
std::vector<bool> flags(const ByteSpans& spans, size_t size) {
  std::vector<bool> result(size);
  for (size_t i = 0; i < spans.count(); ++i) {
    for (size_t at = spans[i].begin; at < spans[i].end; ++at) result.at(at) = true;
  }
  return result;
}

TEST(ByteSpans, EqualOneFlagPerByte) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 2000; ++round) {
    ByteSpans spans;
    size_t size = 0;
    while (below(6) != 0) {
      const size_t begin = size + below(3);
      size = begin + below(3);
      spans.add(begin, size);
    }
    size += below(3) + 1;
    const std::vector<bool> expected = flags(spans, size);
    for (size_t i = 1; i < spans.count(); ++i) EXPECT_LT(spans[i - 1].end, spans[i].begin);
    const size_t begin = below(size);
    const size_t end = begin + below(size - begin + 1);
    bool any = false;
    for (size_t at = begin; at < end; ++at) any = any || expected[at];
    EXPECT_EQ(spans.intersects(begin, end), any);
    ByteSpans part;
    part.add_part(spans, begin, end, 5);
    const std::vector<bool> shifted = flags(part, end - begin + 5);
    for (size_t at = begin; at < end; ++at) EXPECT_EQ(shifted[at - begin + 5], expected[at]);
  }
}

TEST(MarkedText, KeepsMarksWhenTextsAreJoined) {
  MarkedText text = {"<", {}};
  text.append_untrusted("ab");
  text.append({">", {}});
  MarkedText twice = text;
  twice.append(text, std::string_view(text.text).substr(1, 2));
  twice.append(text, "");
  EXPECT_EQ(twice.text, "<ab>ab");
  EXPECT_EQ(flags(twice.untrusted, 6), (std::vector<bool>{false, true, true, false, true, true}));
  EXPECT_TRUE(twice.is_untrusted(std::string_view(twice.text).substr(3, 2)));
  EXPECT_FALSE(twice.is_untrusted(std::string_view(twice.text).substr(3, 1)));
  EXPECT_EQ(derived(twice, "xyz").untrusted, ByteSpans::whole(3));
  EXPECT_TRUE(derived({"a", {}}, "xyz").untrusted.empty());
}

TEST(MarkedText, MarksOfDifferentOwnersStayApart) {
  MarkedText text;
  text.append_untrusted("ab", 1);
  text.append_untrusted("cd", 2);
  text.append_untrusted("ef", 2);
  ASSERT_EQ(text.untrusted.count(), 2U);
  EXPECT_EQ(text.untrusted[1], (ByteSpans::Span{2, 6, 2}));
  EXPECT_EQ(copy_part(text, std::string_view(text.text).substr(1, 3)).untrusted[1],
            (ByteSpans::Span{1, 3, 2}));
  EXPECT_EQ(derived(text, "xyz").untrusted[0], (ByteSpans::Span{0, 1, 1}));
  EXPECT_EQ(derived(text, "xyz").untrusted[1], (ByteSpans::Span{1, 3, 2}));
}

}  // namespace
}  // namespace quire

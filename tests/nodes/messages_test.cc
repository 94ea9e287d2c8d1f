// Messages between nodes: fields that are read from any bytes are bounded and printable.
#include "nodes/messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/text.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

Hello hello() {
  return {.nonce = std::string(kNonceBytes, 'n'),
          .node = 3,
          .num_nodes = 4,
          .host = "gpu-3",
          .settings = {{"version", "1"}, {"model", "abc"}}};
}

TEST(Messages, AreReadAsTheyWereWritten) {
  const auto read = read_hello(hello_bytes(hello()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->nonce, hello().nonce);
  EXPECT_EQ(read->node, 3);
  EXPECT_EQ(read->num_nodes, 4);
  EXPECT_EQ(read->host, "gpu-3");
  EXPECT_EQ(read->settings, hello().settings);
  const auto verdict = read_verdict(verdict_bytes({.answer = Answer::kWaiting, .text = "why"}));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->answer, Answer::kWaiting);
  EXPECT_EQ(verdict->text, "why");
  const auto head = read_head(head_bytes({.kind = FrameKind::kGather, .num_bytes = 77}));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->kind, FrameKind::kGather);
  EXPECT_EQ(head->num_bytes, 77U);
  const auto error =
      read_error(error_bytes(resource_exhausted("[cuda] no memory"), false), "node 1 (b)");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(error->message(), "[nodes] node 1 (b) has failed: [cuda] no memory");
}

// Truncated and changed bytes, as an attacker would send.
std::vector<std::string> mutations_of(const std::string& bytes) {
  std::mt19937 random(7);
  std::vector<std::string> all;
  for (size_t size = 0; size < bytes.size(); ++size) all.push_back(bytes.substr(0, size));
  for (int i = 0; i < 20'000; ++i) {
    std::string mutated = bytes;
    for (int change = 0; change < 3; ++change) {
      mutated[random() % mutated.size()] = static_cast<char>(random());
    }
    if (i % 4 == 0) mutated.insert(random() % mutated.size(), random() % 9, '\x1b');
    all.push_back(std::move(mutated));
  }
  return all;
}

void expect_printable(const std::string& text, size_t max_bytes) {
  EXPECT_LE(text.size(), max_bytes);
  EXPECT_EQ(one_line(text), text);
}

TEST(Messages, ThatAreReadAreBoundedAndPrintable) {
  for (const std::string& bytes : mutations_of(hello_bytes(hello()))) {
    const auto read = read_hello(bytes);
    if (!read) continue;
    expect_printable(read->host, 255);
    for (const auto& [name, value] : read->settings) {
      expect_printable(name, 64);
      expect_printable(value, 320);
    }
    EXPECT_EQ(hello_bytes(*read), bytes);
  }
  const Verdict refusal = {.answer = Answer::kRefused, .text = "[nodes] node 1 differs"};
  for (const std::string& bytes : mutations_of(verdict_bytes(refusal))) {
    if (const auto read = read_verdict(bytes)) expect_printable(read->text, 1536);
  }
  for (const std::string& bytes : mutations_of(error_bytes(internal_error("text"), true))) {
    if (const auto read = read_error(bytes, "node 1")) expect_printable(read->message(), 2048);
  }
}

TEST(Messages, CutLongTexts) {
  Hello long_one = hello();
  long_one.host = std::string(10'000, 'h') + "\n";
  long_one.settings = {{"model", std::string(10'000, 'x')}, {"other", "a\nb\x1b[31m"}};
  const auto read = read_hello(hello_bytes(long_one));
  ASSERT_TRUE(read);
  expect_printable(read->host, 255);
  expect_printable(read->settings[0].second, 320);
  EXPECT_EQ(read->settings[1].second, "a\\nb\\x1b[31m");
  EXPECT_FALSE(first_difference(read->settings, long_one.settings));
  // They differ after the cut.
  long_one.settings[0].second.back() = 'y';
  EXPECT_TRUE(first_difference(read->settings, long_one.settings));
  const std::string error = error_bytes(internal_error(std::string(1'000'000, 'e')), false);
  ASSERT_TRUE(read_head(
      head_bytes({.kind = FrameKind::kError, .num_bytes = static_cast<uint32_t>(error.size())})));
  expect_printable(read_error(error, "node 1")->message(), 2048);
}

TEST(Messages, HaveNoMoreBytesThanTheirKindNeeds) {
  const auto is_read = [](FrameKind kind, uint32_t num_bytes) {
    return read_head(head_bytes({.kind = kind, .num_bytes = num_bytes})).has_value();
  };
  EXPECT_TRUE(is_read(FrameKind::kAlive, 0));
  EXPECT_FALSE(is_read(FrameKind::kAlive, 1));
  EXPECT_FALSE(is_read(FrameKind::kEnd, 1));
  EXPECT_FALSE(is_read(FrameKind::kError, 1 << 20));
  EXPECT_TRUE(is_read(FrameKind::kMessage, 1 << 30));
  EXPECT_FALSE(is_read(FrameKind::kGather, (1 << 30) + 1));
}

TEST(Messages, AreSignedForOneReceiver) {
  const std::string whole = signed_bytes("text", "secret", "node 0", "nonce");
  ASSERT_EQ(signed_size(whole), 4 + kCodeBytes);
  const std::string_view bytes = std::string_view(whole).substr(kLengthBytes);
  EXPECT_EQ(check_signed(bytes, "secret", "node 0", "nonce"), "text");
  EXPECT_FALSE(check_signed(bytes, "guess", "node 0", "nonce"));
  EXPECT_FALSE(check_signed(bytes, "secret", "node", "nonce"));
  EXPECT_FALSE(check_signed(bytes, "secret", "node 0", "other"));
  EXPECT_FALSE(check_signed("", "secret", "node 0", "nonce"));
  EXPECT_FALSE(check_signed(std::string_view(unsigned_answer()).substr(kLengthBytes), "", "node 0",
                            "nonce"));
  EXPECT_FALSE(signed_size(std::string("\xff\xff\xff\xff", 4)));
}

TEST(Messages, NameTheFirstDifference) {
  const NodeSettings expected = {{"version", "1"}, {"block_size", "16"}};
  const auto text_of = [&](const NodeSettings& got) {
    const auto difference = first_difference(got, expected);
    if (!difference) return std::string();
    return fmt::format("{}; {}", describe(*difference), remedy_of(*difference));
  };
  EXPECT_EQ(text_of(expected), "");
  EXPECT_EQ(text_of({{"version", "1"}, {"block_size", "32"}}),
            "differs from node 0 in `block_size`: got 32, expected 16; start all nodes with the "
            "same flags");
  EXPECT_THAT(text_of({{"version", "2"}, {"block_size", "32"}}),
              HasSubstr("`version`: got 2, expected 1; run the same build of Quire on all nodes"));
  EXPECT_THAT(text_of({{"version", "1"}}),
              HasSubstr("`block_size`: got no such setting, expected 16"));
  EXPECT_THAT(text_of({{"version", "1"}, {"block_size", "16"}, {"new\n", "5"}}),
              HasSubstr("`new\\n`: got 5, expected no such setting"));
}

}  // namespace
}  // namespace quire

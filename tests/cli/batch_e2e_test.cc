// Tests `quire batch` from outside: the responses of the embedded model, interrupts and kills.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/text_input.h"
#include "support/eventually.h"
#include "support/process.h"
#include "support/scratch_directory.h"

namespace quire::cli {
namespace {

using quire::testing::eventually;
using quire::testing::expect_exit;
using quire::testing::Process;
using quire::testing::ScratchDirectory;
using quire::testing::SpawnResult;
using quire::testing::Words;
using ::testing::HasSubstr;

std::string text_of(const std::string& path) {
  return std::filesystem::exists(path) ? read_file(path, 64 << 20).value() : std::string();
}

std::string chat_line(std::string_view id, std::string_view question, int max_tokens = 24) {
  return fmt::format(
      R"({{"custom_id":"{}","method":"POST","url":"/v1/chat/completions","body":{{"model":"embedded",)"
      R"("messages":[{{"role":"user","content":"{}"}}],"temperature":0,"max_tokens":{}}}}})"
      "\n",
      id, question, max_tokens);
}

// 60 requests of different lengths.
std::string many_lines() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += chat_line(fmt::format("q{}", i), fmt::format("What is {} + 4?", i), 4 + 20 * (i % 3));
  }
  return text;
}

// The ids of a batch's lines, and the texts of their answers.
struct Lines {
  std::vector<std::string> ids;
  std::vector<std::string> answers;
};

Lines parse_output(const std::string& path) {
  Lines lines;
  const std::string text = text_of(path);
  for (const Line& line : split_lines(text)) {
    const auto document = JsonDocument::parse(line.text, path);
    if (!document.ok()) {
      ADD_FAILURE() << line.text;
      continue;
    }
    std::string_view id;
    std::string_view answer;
    if (document->root()["custom_id"].get_string().get(id)) id = {};
    const auto content = document->root().at_pointer("/response/body/choices/0/message/content");
    if (content.get_string().get(answer)) answer = {};
    lines.ids.emplace_back(id);
    lines.answers.emplace_back(answer);
  }
  return lines;
}

Words batch(const std::string& input, const std::string& output) {
  return {"batch", input, output, "--model", "embedded"};
}

TEST(BatchE2e, AnswersEveryLineInOrder) {
  const ScratchDirectory directory;
  const std::string input = directory.write(
      "in.jsonl",
      chat_line("sum", "What is 3 + 4?") + "no request\n" + chat_line("other", "What is 5 + 4?") +
          R"({"custom_id":"wrong","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt","messages":[{"role":"user","content":"x"}]}})"
          "\n\n" +
          R"({"custom_id":"text","method":"POST","url":"/v1/completions","body":{"prompt":"Q","max_tokens":2}})"
          "\n");
  const std::string output = directory.path() / "out.jsonl";
  const SpawnResult result = expect_exit(1, batch(input, output));
  EXPECT_THAT(result.err, HasSubstr("2 of 5 requests failed; their lines in"));
  const Lines lines = parse_output(output);
  EXPECT_THAT(lines.ids, ::testing::ElementsAre("sum", "", "other", "wrong", "text"));
  EXPECT_THAT(lines.answers[0], HasSubstr("7"));
  EXPECT_THAT(lines.answers[2], HasSubstr("9"));
  EXPECT_THAT(text_of(output), HasSubstr("in.jsonl:2: got 'no request', expected an object"));
  EXPECT_THAT(text_of(output), HasSubstr(R"("status_code":404)"));
}

// Waits until the output has grown by a line. No event reports that.
void await_growth(const std::string& output, size_t num_bytes) {
  EXPECT_TRUE(eventually([&] { return text_of(output).size() > num_bytes + 200; }));
}

TEST(BatchE2e, SendsRequestsAgainThatFoundNoRoom) {
  const ScratchDirectory directory;
  std::string text;
  for (int i = 0; i < 200; ++i) {  // more than may wait for the tokenizer
    text += fmt::format(
        R"({{"custom_id":"{}","method":"POST","url":"/v1/messages/count_tokens","body":{{)"
        R"("model":"embedded","messages":[{{"role":"user","content":"a b c"}}]}}}})"
        "\n",
        i);
  }
  const std::string output = directory.path() / "out.jsonl";
  expect_exit(0, batch(directory.write("in.jsonl", text), output));
  EXPECT_EQ(parse_output(output).ids.size(), 200U);
}

TEST(BatchE2e, EndsCleanlyWithManyRunningRequests) {
  const ScratchDirectory directory;
  std::string text = chat_line("short", "What is 3 + 4?", 1);
  for (int i = 0; i < 300; ++i)
    text += chat_line(fmt::format("long{}", i), "Tell me a story.", 400);
  const std::string output = directory.path() / "out.jsonl";
  Process process(batch(directory.write("in.jsonl", text), output));
  await_growth(output, 0);
  process.kill(SIGINT);
  const std::string errors = process.read_err("no such text");
  EXPECT_EQ(process.wait(), 130) << errors;
  EXPECT_THAT(errors, HasSubstr("of 301 requests; the same command continues"));
}

TEST(BatchE2e, ContinuesAfterAnInterruptAndAKill) {
  const ScratchDirectory directory;
  const std::string input = directory.write("in.jsonl", many_lines());
  const std::string whole = directory.path() / "whole.jsonl";
  expect_exit(0, batch(input, whole));
  const Lines expected = parse_output(whole);
  ASSERT_EQ(expected.ids.size(), 60U);

  const std::string output = directory.path() / "out.jsonl";
  for (const int signal : {SIGINT, SIGKILL, SIGTERM}) {
    const size_t num_bytes = text_of(output).size();
    Process process(batch(input, output) + Words{"--max-num-seqs", "2"});
    await_growth(output, num_bytes);
    process.kill(signal);
    const std::string errors = process.read_err("no such text");
    const int exit_code = process.wait();
    if (signal == SIGKILL) continue;
    EXPECT_EQ(exit_code, 128 + signal) << errors;
    EXPECT_THAT(errors, HasSubstr("of 60 requests; the same command continues"));
  }
  const size_t num_lines = parse_output(output).ids.size();
  EXPECT_LT(num_lines, 60U) << "the batch was complete before it was continued";
  const SpawnResult result = expect_exit(0, batch(input, output));
  EXPECT_THAT(result.err, HasSubstr("of 60 responses"));
  EXPECT_EQ(parse_output(output).ids, expected.ids);
  EXPECT_EQ(parse_output(output).answers, expected.answers);

  // A complete batch needs no model.
  const SpawnResult again = expect_exit(0, {"batch", input, output, "--model", "/nowhere"});
  EXPECT_THAT(again.err, HasSubstr("has 60 of 60 responses"));
}

TEST(BatchE2e, RefusesFilesThatAreNoBatch) {
  const ScratchDirectory directory;
  const std::string input = directory.write("in.jsonl", chat_line("a", "What is 3 + 4?"));
  const std::string empty = directory.write("empty.jsonl", "\n");
  const std::string output = directory.path() / "out.jsonl";
  EXPECT_THAT(expect_exit(2, {"batch", input}).err,
              HasSubstr("expected INPUT OUTPUT: The file of requests"));
  EXPECT_THAT(expect_exit(2, {"batch", "embedded", input, output}).err,
              HasSubstr("the model is --model M here"));
  EXPECT_THAT(expect_exit(1, batch(empty, output)).err, HasSubstr("is empty"));
  EXPECT_THAT(expect_exit(1, batch("/nowhere.jsonl", output)).err, HasSubstr("/nowhere.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(output));
  EXPECT_THAT(expect_exit(1, batch(input, directory.path() / "no" / "folder.jsonl")).err,
              HasSubstr("cannot open"));
  EXPECT_THAT(expect_exit(1, batch(input, input)).err, HasSubstr("is the input too"));
  EXPECT_EQ(text_of(input), chat_line("a", "What is 3 + 4?"));
}

}  // namespace
}  // namespace quire::cli

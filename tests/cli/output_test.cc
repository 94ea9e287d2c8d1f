// Statistics, progress, JSON of completions, history, machine files, completion scripts.
#include "cli/output.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "cli/bench_run.h"
#include "cli/chat_history.h"
#include "cli/completion_json.h"
#include "cli/input.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/shell_completion.h"
#include "cli/statistics.h"

namespace quire::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Statistics, AgreeWithNumpy) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(mean(values), 2.5);
  EXPECT_DOUBLE_EQ(standard_deviation(values), 1.118033988749895);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 3.7);
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1.0);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 4.0);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0.0);
  EXPECT_EQ(percentiles(values).size(), 6U);
}

TEST(EscapeControls, LeavesNothingForATerminalToObey) {
  EXPECT_EQ(escape_controls("a\n\tb é"), "a\n\tb é");
  EXPECT_EQ(escape_controls("\x1b]0;x\x07\r"), "\\x1b]0;x\\x07\\r");
  EXPECT_EQ(escape_controls("\u009b2J\x7f"), "\\x9b2J\\x7f");
}

TEST(WriteOutputFile, SaysWhyItCannot) {
  EXPECT_THAT(write_output_file("/dev/full", "x").message(), HasSubstr("No space left"));
  EXPECT_THAT(write_output_file("/no/such/file", "x").message(), HasSubstr("No such file"));
}

TEST(Summarize, CountsTokensAndTimes) {
  Completion completion;
  completion.prompt_token_ids = {1, 2, 3};
  completion.submit_time = Clock::time_point(std::chrono::seconds(10));
  Answer answer;
  answer.token_ids = {4, 5, 6};
  answer.first_token_time = Clock::time_point(std::chrono::seconds(12));
  answer.last_token_time = Clock::time_point(std::chrono::seconds(16));
  completion.answers = {answer};
  const BenchResult result = summarize(std::vector{completion}, 4.0);
  EXPECT_EQ(result.num_prompt_tokens, 3);
  EXPECT_EQ(result.num_output_tokens, 3);
  EXPECT_THAT(result.first_token_s, ElementsAre(2.0));
  EXPECT_THAT(result.per_token_s, ElementsAre(2.0));
  EXPECT_DOUBLE_EQ(result.total_tokens_per_s(), 1.5);
}

TEST(CheckLengths, CountsPromptAndAnswer) {
  EXPECT_TRUE(check_lengths(3, 5, 8, "").ok());
  EXPECT_THAT(check_lengths(3, 5, 7, "--input-len").message(),
              AllOf(HasSubstr("3 + 5"), EndsWith("lower --input-len")));
  EXPECT_FALSE(check_lengths(INT32_MAX, INT32_MAX, INT32_MAX, "").ok());
}

TEST(SplitLines, KeepsNumbersAcrossBlankLines) {
  const auto lines = split_lines("a\n\n \t\r\nb");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].text, "b");
  EXPECT_EQ(line_source("f", lines[1]), "f:4");
  EXPECT_EQ(line_source("-", lines[0]), "standard input:1");
}

TEST(ProgressLine, ShowsItsShare) {
  EXPECT_EQ(progress_line("x", 5, 10, "note"),
            "x [###############---------------]  50% 5/10  note");
  EXPECT_THAT(progress_line("x", 0, 0, ""), HasSubstr("100%"));
}

Completion two_answers() {
  Completion completion;
  completion.prompt_token_ids = {7};
  completion.prompt_logprobs = {{}, {{3, -0.5F, 1}}};
  completion.answers.resize(2);
  completion.answers[0].token_ids = {1};
  completion.answers[0].text = "a\"b";
  completion.answers[0].finish_reason = FinishReason::kStop;
  completion.answers[0].logprobs = {{{1, -0.25F, 2}}};
  completion.answers[1].finish_reason = FinishReason::kLength;
  return completion;
}

TEST(CompletionLines, AreOneObjectAnAnswer) {
  const std::string text =
      completion_lines(3, two_answers(), [](int32_t id) { return "t" + std::to_string(id); });
  const auto lines = split_lines(text);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text,
            R"({"index":3,"answer_index":0,"prompt_token_ids":[7],"token_ids":[1],"text":"a\"b",)"
            R"("finish_reason":"stop","logprobs":[[{"token_id":1,"logprob":-0.25,"rank":2,)"
            R"("decoded_token":"t1"}]],"prompt_logprobs":[null,[{"token_id":3,"logprob":-0.5,)"
            R"("rank":1,"decoded_token":"t3"}]]})");
  EXPECT_THAT(std::string(lines[1].text), HasSubstr(R"({"index":3,"answer_index":1,)"));
  EXPECT_THAT(std::string(lines[1].text), HasSubstr(R"("finish_reason":"length")"));
}

TEST(CompletionLines, AnAnswersErrorStandsInItsOwnLine) {
  Completion completion = two_answers();
  completion.answers[1].finish_reason = FinishReason::kError;
  completion.answers[1].error = internal_error("[sample] row 3");
  const std::string text = completion_lines(0, completion, [](int32_t) { return ""; });
  const auto lines = split_lines(text);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(std::string(lines[0].text), Not(HasSubstr("\"error\":")));
  EXPECT_THAT(std::string(lines[1].text),
              HasSubstr(R"("finish_reason":"error","error":"[sample] row 3")"));
}

TEST(CompletionLines, OneAnswerHasThePromptsNumberAlone) {
  Completion completion = two_answers();
  completion.answers.resize(1);
  EXPECT_THAT(completion_lines(4, completion, [](int32_t) { return ""; }),
              AllOf(StartsWith(R"({"index":4,)"), Not(HasSubstr("answer_index"))));
  EXPECT_EQ(error_line(4, invalid_argument("no")), "{\"index\":4,\"error\":\"no\"}\n");
}

// A token a letter, and one for each message.
Result<int> count_letters(const std::vector<ChatMessage>& messages) {
  size_t count = 0;
  for (const ChatMessage& message : messages) count += message.content.size() + 1;
  return static_cast<int>(count);
}

std::vector<ChatMessage> conversation() {
  return {{"system", "s"}, {"user", "old"}, {"assistant", "yes"}, {"user", "new"}};
}

TEST(TrimHistory, DropsTheOldestExchange) {
  auto messages = conversation();
  EXPECT_EQ(*trim_history(messages, 14, count_letters), 0);
  EXPECT_EQ(*trim_history(messages, 13, count_letters), 2);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].content, "new");
}

TEST(TrimHistory, MakesRoomForMoreThanOneTurn) {
  std::vector<ChatMessage> messages = {{"system", "s"}};
  for (int turn = 0; turn < 10; ++turn) {
    messages.push_back({"user", "abcd"});
    messages.push_back({"assistant", "efgh"});
  }
  messages.push_back({"user", "last"});
  // 2 + 10 * 10 + 5 tokens; half of 106 is left by five exchanges, not by six.
  EXPECT_EQ(*trim_history(messages, 107, count_letters), 0);
  EXPECT_EQ(*trim_history(messages, 106, count_letters), 12);
  EXPECT_EQ(*count_letters(messages), 47);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].role, "user");
  EXPECT_EQ(messages.back().content, "last");
}

TEST(TrimHistory, AMessageThatFitsAloneIsEnough) {
  auto messages = conversation();
  messages.back().content = "a long question";
  EXPECT_EQ(*trim_history(messages, 20, count_letters), 2);  // 18 tokens: more than half
}

TEST(TrimHistory, RefusesAMessageThatNeverFits) {
  auto messages = conversation();
  EXPECT_FALSE(trim_history(messages, 3, count_letters).ok());
}

TEST(Machine, ReadsProcFiles) {
  const std::string cpuinfo =
      "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2\n";
  EXPECT_EQ(proc_field(cpuinfo, "model name"), "Some CPU @ 2 GHz");
  EXPECT_EQ(proc_field(cpuinfo, "absent"), "");
  EXPECT_EQ(kib_field_bytes("16 kB"), 16384);
  EXPECT_EQ(kib_field_bytes("16"), 0);
  EXPECT_EQ(kib_field_bytes(""), 0);
  EXPECT_EQ(bracketed("always [madvise] never"), "madvise");
  EXPECT_EQ(bracketed("]["), "");
}

TEST(Machine, IsReal) {
  const Machine machine = inspect_machine();
  EXPECT_GT(machine.total_bytes, 0);
  EXPECT_FALSE(machine.cpu.empty());
}

void for_each_flag(const Command& command, const std::function<void(const Flag&)>& visit) {
  for (const Flag& flag : command.flags.flags()) {
    if (!flag.hidden) visit(flag);
  }
  for (const Command& subcommand : command.subcommands) for_each_flag(subcommand, visit);
}

TEST(ShellCompletion, HasEveryCommandAndFlag) {
  const Command root = root_command();
  const std::string bash = bash_completion(root);
  const std::string zsh = zsh_completion(root);
  const std::string fish = fish_completion(root);
  int num_flags = 0;
  for_each_flag(root, [&](const Flag& flag) {
    ++num_flags;
    EXPECT_THAT(bash, HasSubstr(flag.name));
    EXPECT_THAT(zsh, HasSubstr(flag.name));
    EXPECT_THAT(fish, HasSubstr("-l " + flag.name.substr(2)));
  });
  EXPECT_GT(num_flags, 100);
  for (const Command& command : root.subcommands) EXPECT_THAT(bash, HasSubstr(command.name));
  EXPECT_THAT(bash, Not(HasSubstr("--quantization")));
}

TEST(Commands, EachHasAnExampleAndUniqueFlags) {
  const std::function<void(const Command&)> check = [&](const Command& command) {
    EXPECT_FALSE(command.example.empty()) << command.name;
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_TRUE(command.run || !command.subcommands.empty()) << command.name;
    for (const Flag& flag : command.flags.flags()) {
      EXPECT_EQ(command.flags.find(flag.name), &flag) << command.name << " " << flag.name;
    }
    for (const Command& subcommand : command.subcommands) check(subcommand);
  };
  check(root_command());
}

}  // namespace
}  // namespace quire::cli

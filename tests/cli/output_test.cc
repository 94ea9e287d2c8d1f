// Tests progress output, the JSON of results, machine files and completion scripts.
#include "cli/output.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "base/machine.h"
#include "base/text_input.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/generate.h"

namespace quire::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(EscapeControls, EscapesAllControlCharacters) {
  EXPECT_EQ(escape_controls("a\n\tb é"), "a\n\tb é");
  EXPECT_EQ(escape_controls("#### 5\n**b**"), "#### 5\n**b**");
  EXPECT_EQ(escape_controls("\x1b]0;x\x07\r"), "\\x1b]0;x\\x07\\r");
  EXPECT_EQ(escape_controls("\u009b2J\x7f"), "\\x9b2J\\x7f");
}

TEST(WriteOutputFile, SaysWhyItCannot) {
  EXPECT_THAT(write_output_file("/dev/full", "x").message(), HasSubstr("No space left"));
  EXPECT_THAT(write_output_file("/no/such/file", "x").message(), HasSubstr("No such file"));
}

TEST(ProgressLine, ShowsItsShare) {
  EXPECT_EQ(progress_line("x", 5, 10, "note"), "x [###############---------------]  50% 5/10 note");
  EXPECT_EQ(first_columns("abcdef", 4), "abc") << "the last column stays free";
  EXPECT_EQ(first_columns("äöü", 3), "äö");
  EXPECT_EQ(first_columns("ab", 80), "ab");
  EXPECT_THAT(progress_line("x", 0, 0, ""), HasSubstr("100%"));
}

RequestResult two_samples() {
  RequestResult result;
  result.prompt_token_ids = {7};
  result.prompt_logprobs = {{}, {{3, -0.5F, 1}}};
  result.samples.resize(2);
  result.samples[0].token_ids = {1};
  result.samples[0].text = "a\"b";
  result.samples[0].finish_reason = FinishReason::kStop;
  result.samples[0].logprobs = {{{1, -0.25F, 2}}};
  result.samples[1].finish_reason = FinishReason::kLength;
  return result;
}

TEST(ResultLines, AreOneObjectPerSample) {
  const std::string text =
      result_lines(3, two_samples(), [](int32_t id) { return "t" + std::to_string(id); });
  const auto lines = split_lines(text);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text,
            R"({"index":3,"sample_index":0,"prompt_token_ids":[7],"token_ids":[1],"text":"a\"b",)"
            R"("finish_reason":"stop","logprobs":[[{"token_id":1,"logprob":-0.25,"rank":2,)"
            R"("decoded_token":"t1"}]],"prompt_logprobs":[null,[{"token_id":3,"logprob":-0.5,)"
            R"("rank":1,"decoded_token":"t3"}]]})");
  EXPECT_THAT(std::string(lines[1].text), HasSubstr(R"({"index":3,"sample_index":1,)"));
  EXPECT_THAT(std::string(lines[1].text), HasSubstr(R"("finish_reason":"length")"));
}

TEST(ResultLines, ASamplesErrorIsInItsOwnLine) {
  RequestResult result = two_samples();
  result.samples[1].finish_reason = FinishReason::kError;
  result.samples[1].error = internal_error("[sample] row 3");
  const std::string text = result_lines(0, result, [](int32_t) { return ""; });
  const auto lines = split_lines(text);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(std::string(lines[0].text), Not(HasSubstr("\"error\":")));
  EXPECT_THAT(std::string(lines[1].text),
              HasSubstr(R"("finish_reason":"error","error":"[sample] row 3")"));
}

TEST(ResultLines, OneSampleHasOnlyThePromptsIndex) {
  RequestResult result = two_samples();
  result.samples.resize(1);
  EXPECT_THAT(result_lines(4, result, [](int32_t) { return ""; }),
              AllOf(StartsWith(R"({"index":4,)"), Not(HasSubstr("sample_index"))));
  EXPECT_EQ(error_line(4, invalid_argument("no")), "{\"index\":4,\"error\":\"no\"}\n");
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
  EXPECT_THAT(bash, Not(HasSubstr("--trust-remote-code")));
}

TEST(ShellCompletion, CompletesAsManyArgumentsAsTheCommandTakes) {
  Command command;
  command.name = "x";
  command.positional = {.name = "FILE", .help = "", .kind = ValueKind::kFile, .max_words = 2};
  EXPECT_THAT(zsh_completion(command),
              AllOf(HasSubstr("'1:FILE:_files'"), HasSubstr("'2:FILE:_files'"),
                    Not(HasSubstr("'3:FILE")), Not(HasSubstr("'*:FILE"))));
  command.positional->max_words = Positional::kAnyNumber;
  EXPECT_THAT(zsh_completion(command), HasSubstr("'*:FILE:_files'"));
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

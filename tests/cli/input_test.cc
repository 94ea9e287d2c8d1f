#include "cli/input.h"

#include <gmock/gmock.h>

#include "cli/sampling_flags.h"

namespace quire::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

Result<Request> parse(std::string_view line) {
  return parse_request(line, "f:7", {});
}

TEST(SplitLines, KeepsNumbersAcrossBlankLines) {
  const auto lines = split_lines("a\n\n \t\r\nb");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].text, "b");
  EXPECT_EQ(line_source("f", lines[1]), "f:4");
  EXPECT_EQ(line_source("-", lines[0]), "standard input:1");
}

TEST(ParseRequest, ReadsEverySamplingField) {
  const auto request = parse(R"({
    "prompt": "héllo", "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": -1,
    "min_p": 0.1, "seed": 18446744073709551615, "stop": "x", "stop_token_ids": [3, 4],
    "include_stop_str_in_output": true, "ignore_eos": true, "min_tokens": 2, "n": 3,
    "logprobs": 5, "prompt_logprobs": 0, "repetition_penalty": 1.1, "presence_penalty": -2,
    "frequency_penalty": 2, "logit_bias": {"17": -1.5}, "bad_words": ["a", "b"],
    "allowed_token_ids": [1], "skip_special_tokens": false, "priority": -3, "cache_salt": "s",
    "add_special_tokens": false})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  const SamplingParams& sampling = request->sampling;
  EXPECT_EQ(request->prompt, "héllo");
  EXPECT_EQ(request->priority, -3);
  EXPECT_EQ(request->cache_salt, "s");
  EXPECT_FALSE(request->add_special_tokens);
  EXPECT_EQ(sampling.max_tokens, 9);
  EXPECT_FLOAT_EQ(sampling.temperature, 0.5F);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.9F);
  EXPECT_EQ(sampling.top_k, -1);
  EXPECT_FLOAT_EQ(sampling.min_p, 0.1F);
  EXPECT_EQ(sampling.seed, UINT64_MAX);
  EXPECT_THAT(sampling.stop, ElementsAre("x"));
  EXPECT_THAT(sampling.stop_token_ids, ElementsAre(3, 4));
  EXPECT_TRUE(sampling.include_stop_str_in_output);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_EQ(sampling.min_tokens, 2);
  EXPECT_EQ(sampling.n, 3);
  EXPECT_EQ(sampling.logprobs, 5);
  EXPECT_EQ(sampling.prompt_logprobs, 0);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.1F);
  EXPECT_FLOAT_EQ(sampling.presence_penalty, -2.0F);
  EXPECT_FLOAT_EQ(sampling.frequency_penalty, 2.0F);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(Pair(17, -1.5F)));
  EXPECT_THAT(sampling.bad_words, ElementsAre("a", "b"));
  EXPECT_THAT(sampling.allowed_token_ids, ElementsAre(1));
  EXPECT_FALSE(sampling.skip_special_tokens);
}

TEST(ParseRequest, LaysALineOverTheDefaults) {
  Request defaults;
  defaults.sampling.temperature = 0.0F;
  defaults.sampling.stop = {"END"};
  const auto request = parse_request(R"({"prompt_token_ids": [1, 2], "stop": []})", "f", defaults);
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(request->prompt_token_ids, ElementsAre(1, 2));
  EXPECT_EQ(request->sampling.temperature, 0.0F);
  EXPECT_THAT(request->sampling.stop, IsEmpty());
}

TEST(ParseRequest, NamesLineFieldAndExpectation) {
  const auto message = [](std::string_view line) { return parse(line).status().message(); };
  EXPECT_THAT(message(R"({"prompt": "a", "top_p": 2})"),
              AllOf(HasSubstr("f:7"), HasSubstr("'top_p'"), HasSubstr("in (0, 1]")));
  EXPECT_THAT(message(R"({"prompt": "a", "max_token": 2})"),
              AllOf(HasSubstr("'max_token'"), HasSubstr("unknown")));
  EXPECT_THAT(message(R"({"prompt": 5})"), HasSubstr("expected a string"));
  EXPECT_THAT(message(R"({"prompt": "a", "stop": [1]})"), HasSubstr("list of strings"));
  EXPECT_THAT(message(R"({"prompt": "a", "logit_bias": {"x": 1}})"), HasSubstr("'logit_bias'"));
  EXPECT_THAT(message(R"({"prompt": "a", "seed": -1})"), HasSubstr("'seed'"));
  EXPECT_THAT(message(R"({"prompt": "a", "max_tokens": 1.5})"), HasSubstr("an integer"));
  EXPECT_THAT(message(R"({"prompt": "a", "max_tokens": 4294967297})"), HasSubstr("an integer"));
  EXPECT_THAT(message(R"({"prompt_token_ids": []})"), HasSubstr("at least one"));
  EXPECT_THAT(message(R"({"prompt_token_ids": [-1]})"), HasSubstr("at least 0"));
  EXPECT_THAT(message("{}"), HasSubstr("no prompt"));
  EXPECT_THAT(message(R"({"prompt": "a", "prompt_token_ids": [1]})"), HasSubstr("both"));
  EXPECT_THAT(message("[1]"), HasSubstr("JSON object"));
}

TEST(ParseRequest, RangesAreTheSamplers) {
  const auto message = [](std::string_view line) { return parse(line).status().message(); };
  EXPECT_TRUE(parse(R"({"prompt": "a", "n": 128, "logprobs": 20, "prompt_logprobs": 20})").ok());
  EXPECT_THAT(message(R"({"prompt": "a", "n": 129})"), HasSubstr("in [1, 128]"));
  EXPECT_THAT(message(R"({"prompt": "a", "logprobs": 21})"), HasSubstr("in [0, 20]"));
  EXPECT_THAT(message(R"({"prompt": "a", "prompt_logprobs": 21})"), HasSubstr("in [0, 20]"));
  EXPECT_THAT(message(R"({"prompt": "a", "logit_bias": {"1": 101}})"), HasSubstr("[-100, 100]"));
  EXPECT_THAT(message(R"({"prompt": "a", "temperature": 1e39})"), HasSubstr("32 bits"));
  // The value is not rounded to 0, which would mean greedy sampling.
  EXPECT_GT(parse(R"({"prompt": "a", "temperature": 1e-50})")->sampling.temperature, 0.0F);
  EXPECT_THAT(message(R"({"prompt": "a", "allowed_token_ids": []})"),
              AllOf(HasSubstr("'allowed_token_ids'"), HasSubstr("at least one")));
}

TEST(ParseRequest, RefusesAKeyThatIsThereTwice) {
  const auto message = [](std::string_view line) { return parse(line).status().message(); };
  EXPECT_EQ(message(R"({"prompt": "a", "top_p": 1, "top_p": 0.5})"),
            "[input] f:7: got the key top_p twice, expected it once");
  EXPECT_EQ(message(R"({"prompt": "a", "logit_bias": {"5": 100, "5": -100}})"),
            "[input] f:7: got the key logit_bias.5 twice, expected it once");
  EXPECT_FALSE(parse_text_line(R"({"a": 1, "a": 1})", "f").ok());
}

TEST(ParseRequest, RefusesHostileText) {
  EXPECT_FALSE(parse("{\"prompt\": \"\xff\xfe\"}").ok());
  EXPECT_FALSE(parse(R"({"prompt": ")").ok());
  EXPECT_FALSE(parse("").ok());
  const std::string deep = R"({"prompt": )" + std::string(5000, '[') + std::string(5000, ']') + "}";
  EXPECT_FALSE(parse(deep).ok());
}

TEST(PromptsFromLines, ABadLineCostsOnlyItself) {
  const auto prompts =
      prompts_from_lines("{\"prompt\": \"a\"}\n\nnonsense\n{\"prompt\": \"b\"}\r\n", "p.jsonl", {});
  ASSERT_EQ(prompts.size(), 3U);
  EXPECT_EQ(prompts[0].request.prompt, "a");
  EXPECT_THAT(prompts[1].error.message(),
              AllOf(HasSubstr("p.jsonl:3: got 'nonsense', expected a JSON object with prompt"),
                    Not(HasSubstr("[json]"))));
  EXPECT_EQ(prompts[2].request.prompt, "b");
  EXPECT_EQ(prompts[2].source, "p.jsonl:4");
}

TEST(SamplingFlags, OverrideDefaultsOnlyWhereGiven) {
  SamplingFlags sampling("the rest of the context");
  FlagSet flags;
  sampling.add_to(flags);
  ASSERT_TRUE(flags.find("--temperature")->set("0.5").ok());
  ASSERT_TRUE(flags.find("--stop")->set("a").ok());
  ASSERT_TRUE(flags.find("--stop")->set("b").ok());
  ASSERT_TRUE(flags.find("--ignore-eos")->set("").ok());
  ASSERT_TRUE(flags.find("--no-skip-special-tokens")->set("").ok());
  ASSERT_TRUE(flags.find("--logit-bias")->set("3:-1.5,4:2").ok());
  SamplingParams model;
  model.temperature = 0.9F;
  model.top_p = 0.8F;
  const SamplingParams params = sampling.applied_to(model);
  EXPECT_FLOAT_EQ(params.temperature, 0.5F);
  EXPECT_FLOAT_EQ(params.top_p, 0.8F);
  EXPECT_EQ(params.max_tokens, model.max_tokens);
  EXPECT_THAT(params.stop, ElementsAre("a", "b"));
  EXPECT_TRUE(params.ignore_eos);
  EXPECT_FALSE(params.skip_special_tokens);
  EXPECT_THAT(params.logit_bias, ElementsAre(Pair(3, -1.5F), Pair(4, 2.0F)));
  EXPECT_EQ(flags.find("--temperature")->default_text, "see --generation-config");
  EXPECT_EQ(flags.find("--repetition-penalty")->default_text, "the model's, else 1");
  EXPECT_EQ(flags.find("--max-tokens")->default_text, "the rest of the context");
  EXPECT_EQ(flags.find("--presence-penalty")->default_text, "0");
  EXPECT_EQ(flags.find("--logprobs")->default_text, "");
  EXPECT_FALSE(flags.find("--top-p")->set("0").ok());
  EXPECT_FALSE(flags.find("--logit-bias")->set("3").ok());
}

TEST(SamplingFlags, SayWhetherTheyReplaceADefault) {
  SamplingFlags sampling("16");
  FlagSet flags;
  sampling.add_to(flags);
  const SamplingDefaults defaults = {.params = {}, .source = "Quire"};
  ASSERT_TRUE(flags.find("--seed")->set("7").ok());
  EXPECT_EQ(sampling.applied_to(defaults).source, "Quire");
  ASSERT_TRUE(flags.find("--top-k")->set("5").ok());
  EXPECT_EQ(sampling.applied_to(defaults).source, "Quire and the command line");
  EXPECT_EQ(sampling.applied_to(defaults).params.top_k, 5);
}

TEST(SamplingFlags, QuoteTheRefusedValue) {
  SamplingFlags sampling("the rest of the context");
  FlagSet flags;
  sampling.add_to(flags);
  const auto message = [&](std::string_view flag, std::string_view value) {
    return flags.find(flag)->set(value).message();
  };
  EXPECT_EQ(message("--n", "129"), "got '129', expected an integer in [1, 128]");
  EXPECT_EQ(message("--logprobs", "21"), "got '21', expected an integer in [0, 20]");
  EXPECT_EQ(message("--prompt-logprobs", "21"), "got '21', expected an integer in [0, 20]");
  EXPECT_THAT(message("--temperature", "1e999"), HasSubstr("got '1e999', expected a number"));
  EXPECT_EQ(message("--temperature", "1e39"),
            "got '1e39', expected a number that 32 bits can hold");
  EXPECT_THAT(message("--logit-bias", "3:1e39"), HasSubstr("got '3:1e39'"));
  for (const char* flag : {"--stop", "--bad-words"}) {
    EXPECT_THAT(message(flag, "a\xff"), HasSubstr("valid UTF-8"));
    EXPECT_THAT(message(flag, ""), HasSubstr("got ''"));
  }
  EXPECT_FALSE(message("--allowed-token-ids", "").empty());
}

TEST(ParseLines, ReadTextsAndIds) {
  EXPECT_EQ(*parse_text_line("\"a\\n\\u00e9\"", "f"), "a\né");
  EXPECT_FALSE(parse_text_line("[1]", "f").ok());
  EXPECT_THAT(*parse_ids_line("[1, 0]", "f"), ElementsAre(1, 0));
  EXPECT_THAT(*parse_ids_line("[]", "f"), IsEmpty());
  EXPECT_FALSE(parse_ids_line("[1.5]", "f").ok());
  EXPECT_FALSE(parse_ids_line("\"x\"", "f").ok());
}

}  // namespace
}  // namespace quire::cli

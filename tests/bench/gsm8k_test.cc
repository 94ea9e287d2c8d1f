#include "bench/gsm8k.h"

#include <gmock/gmock.h>

#include "base/text_input.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(AnswerValue, IsTheLastNumber) {
  EXPECT_THAT(answer_value("She has 3 + 4 = 7 apples.\n#### 7"), Optional(std::string("7")));
  EXPECT_THAT(answer_value("#### 1,234,567"), Optional(std::string("1234567")));
  EXPECT_THAT(answer_value("-5"), Optional(std::string("5")));
  EXPECT_THAT(answer_value("a1b"), Optional(std::string("1")));
}

TEST(AnswerValue, HasDecimals) {
  EXPECT_THAT(answer_value("#### 61.01"), Optional(std::string("61.01")));
  EXPECT_THAT(answer_value("#### $1,061.50 in all."), Optional(std::string("1061.5")));
  EXPECT_THAT(answer_value("12.00"), Optional(std::string("12")));
  EXPECT_THAT(answer_value("It is 18. "), Optional(std::string("18")));
  EXPECT_THAT(answer_value("0.50"), Optional(std::string("0.5")));
  EXPECT_THAT(answer_value("00.0"), Optional(std::string("0")));
  EXPECT_THAT(answer_value("07.5"), Optional(std::string("7.5")));
  EXPECT_THAT(answer_value("1.2.30"), Optional(std::string("30")));  // a second point ends a number
  EXPECT_THAT(answer_value("100"), Optional(std::string("100")));
}

TEST(AnswerValue, IsNulloptIfPythonRefuses) {
  EXPECT_EQ(answer_value(""), std::nullopt);
  EXPECT_EQ(answer_value("none"), std::nullopt);
  EXPECT_EQ(answer_value("3 007"), std::nullopt);     // a leading zero is a syntax error
  EXPECT_EQ(answer_value("3 \u0663"), std::nullopt);  // an Arabic digit matches \d, and fails
  EXPECT_THAT(answer_value("00"), Optional(std::string("0")));
  EXPECT_THAT(answer_value("\xff 8 \xff"), Optional(std::string("8")));
}

TEST(Prompts, FollowSglang) {
  const WordProblem problem = {"How many?", "One.\n#### 1"};
  EXPECT_EQ(question_prompt(problem), "Question: How many?\nAnswer:");
  EXPECT_EQ(shots_prompt(std::vector{problem, problem}),
            "Question: How many?\nAnswer: One.\n#### 1\n\n"
            "Question: How many?\nAnswer: One.\n#### 1\n\n");
}

TEST(ScoreAnswers, CountsRightAndInvalid) {
  const std::vector<WordProblem> problems = {
      {"", "#### 1"}, {"", "#### 1,000"}, {"", "#### 3"}, {"", "#### 4"}};
  const std::vector<std::string> answers = {"1", "so 1000", "who knows", "5"};
  const Gsm8kScore score = score_answers(problems, answers);
  EXPECT_EQ(score.num_correct, 2);
  EXPECT_DOUBLE_EQ(score.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(score.invalid, 0.25);
}

TEST(ParseWordProblem, NeedsBothFields) {
  const auto problem =
      testing::value_of(parse_word_problem(R"({"question": "q", "answer": "a", "id": 1})", "f"));
  EXPECT_EQ(problem.question, "q");
  EXPECT_EQ(problem.source, "f");
  EXPECT_THAT(parse_word_problem(R"({"question": "q"})", "f:2").status().message(),
              HasSubstr("f:2: field 'answer'"));
  EXPECT_FALSE(parse_word_problem("[]", "f").ok());
}

TEST(ParseWordProblem, EveryLabelOfGsm8kHasAValue) {
  const auto path = quire::testing::shared_data_path("datasets/gsm8k/test.jsonl");
  QUIRE_REQUIRE_SHARED(path);
  const std::string text = *read_input(path.string());
  int num_problems = 0;
  for (const Line& line : split_lines(text)) {
    const auto problem = testing::value_of(parse_word_problem(line.text, "test.jsonl"));
    EXPECT_NE(answer_value(problem.answer), std::nullopt) << problem.answer;
    ++num_problems;
  }
  EXPECT_EQ(num_problems, 1319);
}

}  // namespace
}  // namespace quire::bench

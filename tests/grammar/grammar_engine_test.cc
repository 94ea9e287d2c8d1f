// The embedded model generates constrained outputs, in one batch with unconstrained requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/json.h"
#include "engine/tiny_engine.h"
#include "grammar/apples.h"
#include "grammar/grammar_compiler.h"
#include "grammar/schema_validator.h"
#include "grammar/walk.h"

namespace quire::testing {
namespace {

using Kind = GrammarSpec::Kind;

class GrammarEngine : public ::testing::Test {
 protected:
  GrammarEngine() : compiler_(*embedded_tokenizer(), std::array{kEmbeddedEosId}, ample_time()) {
    EngineConfig config;
    config.device = "cpu";
    config.num_threads = 2;
    engine_ = make_engine(config);
  }

  Request free_request(int number) const { return apples_question(*engine_, number, 48); }

  Request constrained(int number, const GrammarSpec& spec) {
    Request request = free_request(number);
    request.make_constraint = value_of(compiler_.compile(spec));
    request.sampling.max_tokens = 200;
    return request;
  }

  std::vector<Collected> run(const std::vector<Request>& requests) {
    return run_all(*engine_, requests);
  }

  GrammarCompiler compiler_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(GrammarEngine, EachKindInABatchWithFreeRequests) {
  const GrammarSpec schema = {.kind = Kind::kJsonSchema, .text = std::string(kApplesSchema)};
  const GrammarSpec object = {.kind = Kind::kJsonObject};
  const GrammarSpec choice = {.kind = Kind::kChoice, .text = "", .choices = {"few", "many apples"}};
  const GrammarSpec regex = {.kind = Kind::kRegex, .text = "\\d{2} apples( and \\d+)?\\."};
  const GrammarSpec ebnf = {.kind = Kind::kGrammar,
                            .text = "root ::= n \" + \" n \" = \" n\nn ::= [0-9]{1,3}"};
  std::vector<Request> free_requests;
  for (int i = 0; i < 4; ++i) free_requests.push_back(free_request(20 + i));
  std::vector<Collected> alone;
  for (const Request& request : free_requests) alone.push_back(run({request}).front());

  std::vector<Request> batch;
  for (int i = 0; i < 4; ++i) {
    batch.push_back(constrained(30 + i, schema));
    batch.push_back(free_requests[static_cast<size_t>(i)]);
    batch.push_back(constrained(40 + i, choice));
    batch.push_back(constrained(50 + i, regex));
    batch.push_back(constrained(60 + i, ebnf));
    batch.push_back(constrained(70 + i, object));
  }
  const std::vector<Collected> answers = run(batch);
  for (size_t i = 0; i < answers.size(); ++i) {
    const Collected& answer = answers[i];
    const std::string& text = answer.text;
    if (i % 6 == 1) {
      EXPECT_EQ(answer.token_ids, alone[i / 6].token_ids);
      continue;
    }
    // The regex allows, for example, one long string.
    if (i % 6 == 5 && answer.finish_reason == FinishReason::kLength) continue;
    ASSERT_EQ(answer.finish_reason, FinishReason::kStop) << text << answer.error.message();
    if (i % 6 == 0) {
      EXPECT_EQ(validate_json(text, kApplesSchema), "") << text;
    }
    if (i % 6 == 2) {
      EXPECT_TRUE(text == "few" || text == "many apples") << text;
    }
    if (i % 6 == 3) {
      EXPECT_TRUE(matches_regex(text, regex.text)) << text;
    }
    if (i % 6 == 4) {
      EXPECT_TRUE(matches_regex(text, "\\d{1,3} \\+ \\d{1,3} = \\d{1,3}")) << text;
    }
    if (i % 6 == 5) {
      EXPECT_EQ(validate_json(text, R"({"type": "object"})"), "") << text;
    }
  }
}

TEST_F(GrammarEngine, SeveralAnswersEachHaveTheirOwnState) {
  Request request = constrained(12, {.kind = Kind::kRegex, .text = "([a-f]{2}-){1,3}x"});
  request.sampling.n = 4;
  request.sampling.temperature = 1.0F;
  auto stream = value_of(engine_->submit(request));
  std::array<std::string, 4> texts;
  while (const auto output = stream->next()) {
    texts[static_cast<size_t>(output->index)] += output->text;
  }
  for (const std::string& text : texts) {
    EXPECT_TRUE(matches_regex(text, "([a-f]{2}-){1,3}x")) << text;
  }
}

TEST_F(GrammarEngine, ACostlyGrammarFailsAlone) {
  const Request free = free_request(22);
  const Collected alone = run({free}).front();
  GrammarLimits stingy;
  stingy.sequence_bytes = 2000;  // enough for a few tokens of its parse
  GrammarCompiler compiler(*embedded_tokenizer(), std::array{kEmbeddedEosId}, stingy);
  const auto factory = value_of(compiler.compile({.kind = Kind::kRegex, .text = "[a-z]{300}"}));
  Request costly = free_request(23);
  costly.make_constraint = factory;
  costly.sampling.max_tokens = 300;
  const auto answers =
      run({costly, free, constrained(24, {.kind = Kind::kRegex, .text = "[0-9]{3}"})});
  EXPECT_EQ(answers[0].finish_reason, FinishReason::kError);
  EXPECT_EQ(answers[0].error.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(answers[0].error.message(), ::testing::HasSubstr("takes more memory"));
  EXPECT_EQ(answers[1].token_ids, alone.token_ids);
  EXPECT_TRUE(matches_regex(answers[2].text, "[0-9]{3}")) << answers[2].text;
}

}  // namespace
}  // namespace quire::testing

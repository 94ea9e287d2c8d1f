#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sample/sampling_fields.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(void (*change)(SamplingParams&)) {
  SamplingParams params;
  change(params);
  const Status status = validate_sampling_params(params, 100, 50);
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument);
  return status.message();
}

TEST(SamplingParams, AcceptsTheValuesThatVllmAccepts) {
  EXPECT_EQ(refusal([](SamplingParams&) {}), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.temperature = 0; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.top_k = -1; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.top_k = 1000; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.min_p = p.top_p = 1; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.presence_penalty = p.frequency_penalty = -2; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.min_tokens = p.max_tokens; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.logprobs = 0, p.prompt_logprobs = 20; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.logit_bias = {{0, -100.F}, {99, 100.F}}; }), "");
  EXPECT_EQ(refusal([](SamplingParams& p) { p.max_tokens = 1 << 30; }), "")
      << "it is not bounded here";
}

TEST(SamplingParams, EachRefusalNamesItsField) {
  EXPECT_EQ(refusal([](SamplingParams& p) { p.n = 0; }), "[sampling] n; got 0, expected 1 to 128");
  EXPECT_THAT(refusal([](SamplingParams& p) { p.n = 129; }), HasSubstr("n; got 129"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.temperature = -0.1F; }), HasSubstr("temperature"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.temperature = NAN; }), HasSubstr("got nan"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.temperature = INFINITY; }), HasSubstr("got inf"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.top_p = 0; }), HasSubstr("top_p"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.top_p = 1.01F; }), HasSubstr("top_p"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.top_p = NAN; }), HasSubstr("top_p"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.top_k = -2; }), HasSubstr("top_k; got -2"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.min_p = -0.5F; }), HasSubstr("min_p"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.min_p = 1.5F; }), HasSubstr("min_p"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.repetition_penalty = 0; }),
              HasSubstr("repetition_penalty"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.repetition_penalty = 1e-30F; }),
              HasSubstr("repetition_penalty"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.repetition_penalty = INFINITY; }),
              HasSubstr("repetition_penalty"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.presence_penalty = 2.1F; }),
              HasSubstr("presence_penalty"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.frequency_penalty = -2.1F; }),
              HasSubstr("frequency_penalty"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.max_tokens = 0; }),
              HasSubstr("max_tokens; got 0, expected at least 1"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.min_tokens = p.max_tokens + 1; }),
              HasSubstr("min_tokens; got 17, expected 0 to 16"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.min_tokens = p.max_tokens = 50; }),
              HasSubstr("min_tokens; got 50, expected fewer than 50"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.logprobs = 21; }), HasSubstr("logprobs; got 21"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.prompt_logprobs = -1; }),
              HasSubstr("prompt_logprobs; got -1, expected 0 to 20"));
}

TEST(SamplingParams, IdsMustBeOfTheVocabulary) {
  EXPECT_THAT(refusal([](SamplingParams& p) {
                p.allowed_token_ids = {1, 100};
              }),
              HasSubstr("allowed_token_ids; got 100, expected 0 to 99"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.allowed_token_ids.assign(101, 1); }),
              HasSubstr("allowed_token_ids; got 101"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.stop_token_ids = {-1}; }),
              HasSubstr("stop_token_ids; got -1"));
  EXPECT_THAT(refusal([](SamplingParams& p) {
                p.logit_bias = {{100, 1.F}};
              }),
              HasSubstr("logit_bias; got token id 100"));
  EXPECT_THAT(refusal([](SamplingParams& p) {
                p.logit_bias = {{1, NAN}};
              }),
              AllOf(HasSubstr("logit_bias"), HasSubstr("-100 to 100")));
  EXPECT_THAT(refusal([](SamplingParams& p) {
                p.logit_bias = {{5, 100.F}, {1, 1.F}, {5, -100.F}};
              }),
              HasSubstr("logit_bias; got token id 5 twice, expected each id once"));
}

TEST(SamplingParams, StringsAreNeitherEmptyNorEndless) {
  EXPECT_THAT(refusal([](SamplingParams& p) { p.stop = {"a", ""}; }), HasSubstr("stop; got an e"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.bad_words = {""}; }), HasSubstr("bad_words"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.stop = {std::string(5000, 'x')}; }),
              HasSubstr("at most 4096 bytes"));
  EXPECT_THAT(refusal([](SamplingParams& p) { p.stop.assign(1025, "x"); }),
              HasSubstr("at most 1024 strings"));
}

}  // namespace
}  // namespace quire

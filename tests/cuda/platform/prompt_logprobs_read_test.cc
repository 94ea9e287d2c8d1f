// Reading of a step's results on the host: needs no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/platform/prompt_logprobs.h"

namespace quire::cuda {
namespace {

LogprobsResult result_of(int32_t token_id, RowStatus status = RowStatus::kOk, int32_t detail = 0) {
  LogprobsResult result = {};
  result.status = status;
  result.detail = detail;
  result.token_id = token_id;
  result.rank = 1;
  return result;
}

// The second chunk's logits are invalid. The request fails when its third chunk samples, with the
// first invalid position; its neighbour does not fail.
TEST(PromptLogprobsRead, BrokenLogitsFailTheRequest) {
  const auto prompt = std::make_shared<Prompt>();
  prompt->token_ids = {1, 2, 3, 4, 5, 6};
  prompt->logprobs.resize(1);
  const auto sound = std::make_shared<Prompt>();
  std::vector<LogprobsResult> results(8);
  std::vector<SpanResult> spans(2);
  const auto read = [&](int first, int count, int span_idx) {
    const PromptChunk chunk = {
        .prompt = prompt, .first = first, .first_token = 2, .count = count, .span_idx = span_idx};
    const PromptChunk other = {.prompt = sound, .count = 1, .span_idx = span_idx - 1};
    results[0] = result_of(9);
    PromptLogprobs::read(std::vector{other, chunk}, results.data(), spans);
  };
  results[2] = result_of(2);
  results[3] = result_of(3);
  read(0, 2, -1);
  results[2] = result_of(4, RowStatus::kNan, 77);
  results[3] = result_of(5, RowStatus::kInfinite);
  read(2, 2, -1);
  EXPECT_TRUE(spans[1].error.ok());
  results[2] = result_of(6);
  read(4, 1, 1);
  EXPECT_THAT(spans[1].error.message(), ::testing::HasSubstr("position 3; got NaN for token 77"));
  EXPECT_TRUE(spans[0].error.ok());
  EXPECT_FALSE(spans[0].prompt_logprobs.empty());
}

}  // namespace
}  // namespace quire::cuda

// With speculative decoding, the tokens (on a CPU also the bits) equal those of a run without
// drafts, for any drafts and any number of accepted drafts per step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/recorded_drafter.h"
#include "engine/tiny_engine.h"

namespace quire {
namespace {

using testing::Collected;
using testing::RecordedOutputs;
using testing::run_all;
using testing::stats_at_rest;
using testing::tiny_config;
using testing::tiny_prompt;

// Greedy and random requests, with and without rules. Some prompts share prefixes.
std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < 40; ++i) {
    Request request;
    request.prompt_token_ids = tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i % 10));
    request.sampling.max_tokens = 1 + (i * 7) % 60;
    request.sampling.ignore_eos = i % 4 != 0;
    request.sampling.logprobs = 1;
    request.sampling.temperature = i % 2 == 0 ? 0.0F : 1.0F;
    request.sampling.seed = 5;
    if (i % 3 == 0) request.sampling.repetition_penalty = 1.3F;
    if (i % 5 == 0) request.sampling.min_tokens = std::min(8, request.sampling.max_tokens);
    if (i % 7 == 0) request.sampling.top_p = 0.7F;
    if (i % 8 == 0) request.sampling.prompt_logprobs = 1;
    all.push_back(request);
  }
  return all;
}

const std::vector<Collected>& ordinary_outputs() {
  static const std::vector<Collected> outputs =
      run_all(*testing::make_engine(tiny_config()), requests());
  return outputs;
}

const RecordedOutputs& recorded_outputs() {
  static const RecordedOutputs recorded = [] {
    RecordedOutputs by_prompt;
    const std::vector<Request> all = requests();
    for (size_t i = 0; i < all.size(); ++i) {
      by_prompt[all[i].prompt_token_ids] = ordinary_outputs()[i].token_ids;
    }
    return by_prompt;
  }();
  return recorded;
}

std::unique_ptr<Engine> make_engine(const EngineConfig& config, int num_drafts) {
  auto engine = EngineInternals::create(
      config, {.num_drafts = num_drafts,
               .make_drafter = [](DeviceContext&,
                                  const DrafterLimits& limits) -> Result<std::unique_ptr<Drafter>> {
                 return testing::make_recorded_drafter(recorded_outputs(), limits);
               }});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(*engine);
}

void expect_same(const Collected& got, const Collected& expected) {
  EXPECT_TRUE(got.error.ok()) << got.error.message();
  EXPECT_EQ(got.token_ids, expected.token_ids);
  EXPECT_EQ(got.finish_reason, expected.finish_reason);
  EXPECT_EQ(got.stop_reason, expected.stop_reason);
  EXPECT_EQ(got.prompt_logprobs.size(), expected.prompt_logprobs.size());
  ASSERT_EQ(got.logprobs.size(), expected.logprobs.size());
  for (size_t i = 0; i < got.logprobs.size(); ++i) {
    EXPECT_EQ(got.logprobs[i][0].logprob, expected.logprobs[i][0].logprob) << "token " << i;
  }
}

void expect_ordinary_outputs(const std::vector<Collected>& outputs) {
  ASSERT_EQ(outputs.size(), ordinary_outputs().size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    expect_same(outputs[i], ordinary_outputs()[i]);
  }
}

class SpeculationTest : public ::testing::TestWithParam<int> {};

TEST_P(SpeculationTest, BringsTheBitsOfAnOrdinaryRun) {
  const auto engine = make_engine(tiny_config(), GetParam());
  expect_ordinary_outputs(run_all(*engine, requests()));
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_LT(stats.num_steps, stats.num_generated_tokens);
}

TEST_P(SpeculationTest, SurvivesPreemptionAndSmallSteps) {
  EngineConfig config = tiny_config();
  config.max_model_len = 256;
  config.max_num_batched_tokens = 64;
  config.kv_cache_memory = 16 * 8192;  // 16 blocks for all requests
  const auto engine = make_engine(config, GetParam());
  expect_ordinary_outputs(run_all(*engine, requests()));
  EXPECT_GT(stats_at_rest(*engine).num_preemptions, 0);
}

TEST_P(SpeculationTest, EndsWhereAStopTokenStandsInTheMiddleOfASpan) {
  const auto engine = make_engine(tiny_config(), GetParam());
  for (const size_t i : {2, 6, 22}) {
    Request request = requests()[i];
    const std::vector<int32_t>& tokens = ordinary_outputs()[i].token_ids;
    ASSERT_GT(tokens.size(), 8U);
    request.sampling.ignore_eos = true;
    request.sampling.min_tokens = 0;
    request.sampling.stop_token_ids = {tokens[7]};
    const auto first = std::ranges::find(tokens, tokens[7]) - tokens.begin();
    const Collected got = run_all(*engine, {request}).front();
    EXPECT_EQ(got.finish_reason, FinishReason::kStop);
    EXPECT_TRUE(std::ranges::equal(got.token_ids, std::span(tokens).first(first + 1)));
  }
}

TEST_P(SpeculationTest, CancellingInTheMiddleFreesEverything) {
  const auto engine = make_engine(tiny_config(), GetParam());
  std::vector<std::unique_ptr<RequestStream>> streams;
  for (const Request& request : requests()) streams.push_back(*engine->submit(request));
  for (size_t i = 0; i < streams.size(); ++i) {
    if (i % 2 == 0) streams[i]->next();
    streams[i]->cancel();
  }
  for (const auto& stream : streams) {
    while (stream->next()) {
    }
  }
  expect_ordinary_outputs(run_all(*engine, requests()));
  stats_at_rest(*engine);
}

INSTANTIATE_TEST_SUITE_P(NumDrafts, SpeculationTest, ::testing::Range(0, 9));

}  // namespace
}  // namespace quire

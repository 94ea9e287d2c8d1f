// With speculative decoding, the tokens (on a CPU also the bits of their log probabilities) equal
// those of a run without drafts, for any drafts and any number of accepted drafts per step.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "engine/recorded_drafter.h"
#include "engine/tiny_engine.h"

namespace quire {
namespace {

using testing::Collected;
using ::testing::HasSubstr;
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
  EXPECT_EQ(stats_at_rest(*engine).speculation.num_accepted > 0, GetParam() > 0);
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

// ---- The drafters that a configuration can name

std::unique_ptr<Engine> make_engine(EngineConfig config, std::string speculative_config) {
  config.speculative_config = std::move(speculative_config);
  return testing::make_engine(config);
}

class SpeculativeConfigTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SpeculativeConfigTest, BringsTheBitsOfAnOrdinaryRun) {
  const auto engine = make_engine(tiny_config(), GetParam());
  expect_ordinary_outputs(run_all(*engine, requests()));
  const EngineStats stats = stats_at_rest(*engine);
  const SpeculationStats& drafts = stats.speculation;
  EXPECT_GT(drafts.num_accepted, 0);
  EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
  EXPECT_LE(drafts.num_drafts, drafts.num_spans * engine->model_info().num_speculative_tokens);
  EXPECT_EQ(std::accumulate(drafts.accepted_by_position.begin(), drafts.accepted_by_position.end(),
                            int64_t{0}),
            drafts.num_accepted);
  EXPECT_TRUE(std::ranges::is_sorted(drafts.accepted_by_position, std::greater()));
}

TEST_P(SpeculativeConfigTest, SurvivesPreemptionAndSmallSteps) {
  EngineConfig config = tiny_config();
  config.max_model_len = 256;
  config.max_num_batched_tokens = 64;
  config.kv_cache_memory = 16 * 8192;  // 16 blocks for all requests
  const auto engine = make_engine(config, GetParam());
  expect_ordinary_outputs(run_all(*engine, requests()));
  EXPECT_GT(stats_at_rest(*engine).num_preemptions, 0);
}

TEST_P(SpeculativeConfigTest, NeedsFewerStepsForAnOutputThatRepeatsItself) {
  const auto engine = make_engine(tiny_config(), GetParam());
  // The output ends in a loop, which the drafter finds.
  Request request = testing::greedy(tiny_prompt(8, 3), 200);
  const Collected got = run_all(*engine, {request}).front();
  EXPECT_EQ(got.token_ids,
            run_all(*testing::make_engine(tiny_config()), {request}).front().token_ids);
  EXPECT_LT(stats_at_rest(*engine).num_steps, 200);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, SpeculativeConfigTest,
    ::testing::Values(R"({"method": "ngram", "num_speculative_tokens": 1, "prompt_lookup_max": 2})",
                      R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1,
                          "prompt_lookup_max": 3})",
                      R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 1,
                          "num_speculative_tokens_per_batch_size": [[1, 4, 5], [5, 12, 2],
                                                                    [13, 64, 0]]})",
                      R"({"method": "suffix"})",
                      R"({"method": "suffix", "num_speculative_tokens": 15})"),
    [](const auto& param) { return fmt::format("config_{}", param.index); });

TEST(ReadSpeculation, RefusesByName) {
  const auto message = [](std::string_view text) {
    return std::string(read_speculation(text).status().message());
  };
  EXPECT_THAT(message("{"), HasSubstr("`speculative_config` is not valid JSON"));
  EXPECT_THAT(message("4"), HasSubstr("got \"4\", expected an object such as"));
  EXPECT_THAT(message("{}"), HasSubstr("method; got nothing, expected ngram or suffix"));
  EXPECT_THAT(message(R"({"method": "medusa"})"),
              HasSubstr("method; got \"medusa\", expected ngram"));
  EXPECT_THAT(message(R"({"method": "eagle3", "model": "some/drafter"})"),
              HasSubstr("method; got \"eagle3\", expected ngram or suffix"));
  EXPECT_THAT(message(R"({"method": "ngram"})"), HasSubstr("num_speculative_tokens; got nothing"));
  EXPECT_THAT(
      message(R"({"method": "ngram", "num_speculative_tokens": 16})"),
      HasSubstr("num_speculative_tokens; got \"16\", expected a whole number from 1 to 15"));
  EXPECT_THAT(message(R"({"method": "suffix", "prompt_lookup_min": 2})"),
              HasSubstr("prompt_lookup_min; got it with method suffix"));
  EXPECT_THAT(message(R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 5,
                          "prompt_lookup_max": 4})"),
              HasSubstr("prompt_lookup_min; got 5, expected at most prompt_lookup_max, 4"));
  EXPECT_THAT(message(R"({"method": "suffix", "draft_model": "x"})"),
              HasSubstr("\"draft_model\"; got a key that is not served"));
  EXPECT_THAT(message(R"({"method": "suffix", "method": "ngram"})"), HasSubstr("it twice"));
  const auto ranges_message = [&](std::string_view ranges) {
    return message(fmt::format(
        R"({{"method": "suffix", "num_speculative_tokens_per_batch_size": {}}})", ranges));
  };
  EXPECT_THAT(ranges_message("[[1, 4]]"), HasSubstr("lists of 3 numbers"));
  EXPECT_THAT(ranges_message("[[1, 4, 9]]"), HasSubstr("got [1, 4, 9], expected ascending ranges"));
  EXPECT_THAT(ranges_message("[[1, 4, 2], [4, 9, 1]]"), HasSubstr("got [4, 9, 1]"));
  EXPECT_EQ(read_speculation("")->num_drafts, 0);
  EXPECT_EQ(read_speculation(R"({"method": "suffix"})")->num_drafts, 8);
}

}  // namespace
}  // namespace quire

// With speculative decoding, the tokens (on a CPU also the bits of their log probabilities) equal
// those of a run without drafts, for any drafts and any number of accepted drafts per step.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "engine/recorded_drafter.h"
#include "engine/tiny_engine.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Allows the tokens whose parity differs from the newest one's.
class AlternatesParity final : public TokenConstraint {
 public:
  explicit AlternatesParity(bool can_roll_back) : can_roll_back_(can_roll_back) {}
  std::vector<uint32_t> allowed_tokens() override {
    return std::vector<uint32_t>(3, next_ == 0 ? 0x55555555U : 0xAAAAAAAAU);
  }
  bool accept(int32_t token_id) override {
    if (token_id % 2 != next_) return false;
    next_ = 1 - next_;
    return true;
  }
  bool can_roll_back() const override { return can_roll_back_; }
  bool rollback(int num_tokens) override {
    next_ = (next_ + num_tokens) % 2;
    return true;
  }

 private:
  bool can_roll_back_;
  int next_ = 0;
};

// Greedy and random requests, with and without rules and constraints. Some prompts share prefixes.
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
    if (i % 11 == 9) {
      request.make_constraint = [i] { return std::make_unique<AlternatesParity>(i % 2 == 0); };
    }
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

std::unique_ptr<Engine> make_engine(const EngineConfig& config, int num_drafts,
                                    const NumProposals& num_proposals = {},
                                    const Verification& verification = {}) {
  auto engine = start_engine(
      config,
      {.num_drafts = num_drafts,
       .verification = verification,
       .make_drafter = [&](DeviceContext&,
                           const DrafterLimits& limits) -> Result<std::shared_ptr<Drafter>> {
         return make_recorded_drafter(recorded_outputs(), limits, num_proposals);
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

// ---- Spans of different lengths in one step

// 0 to k drafts, which differ between slots and steps.
NumProposals up_to(int k) {
  return [k](int slot, int num_computed) { return (slot * 7 + num_computed * 5) % (k + 1); };
}

NumProposals by_slot(std::vector<int> num_proposals) {
  return [all = std::move(num_proposals)](int slot, int /*num_computed*/) {
    return all[static_cast<size_t>(slot) % all.size()];
  };
}

class RaggedSpeculationTest : public ::testing::TestWithParam<int> {};

TEST_P(RaggedSpeculationTest, BringsTheBitsOfAnOrdinaryRun) {
  const auto engine = make_engine(tiny_config(), GetParam(), up_to(GetParam()));
  expect_ordinary_outputs(run_all(*engine, requests()));
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_accepted, 0);
  EXPECT_GE(drafts.num_drafts, drafts.num_spans);
  EXPECT_EQ(drafts.num_drafts<drafts.num_spans * GetParam(), GetParam()> 1);
}

TEST_P(RaggedSpeculationTest, SurvivesPreemptionAndSmallSteps) {
  EngineConfig config = tiny_config();
  config.max_model_len = 256;
  config.max_num_batched_tokens = 64;
  config.kv_cache_memory = 16 * 8192;  // 16 blocks for all requests
  const auto engine = make_engine(config, GetParam(), up_to(GetParam()));
  expect_ordinary_outputs(run_all(*engine, requests()));
  EXPECT_GT(stats_at_rest(*engine).num_preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(NumDrafts, RaggedSpeculationTest, ::testing::Range(1, 16));

TEST(RaggedSpeculation, VerifiesSpansOfFixedLengthsTogether) {
  const std::vector<std::vector<int>> patterns = {{4, 4, 0, 2}, {1, 0}, {0, 0, 15}};
  for (const std::vector<int>& pattern : patterns) {
    const int most = *std::ranges::max_element(pattern);
    SCOPED_TRACE(most);
    EngineConfig config = tiny_config();
    config.max_num_seqs = static_cast<int>(pattern.size());
    const auto engine = make_engine(config, most, by_slot(pattern));
    expect_ordinary_outputs(run_all(*engine, requests()));
    const SpeculationStats drafts = stats_at_rest(*engine).speculation;
    EXPECT_GT(drafts.num_spans, 0);
    if (most == 4) {
      EXPECT_GT(drafts.num_drafts, drafts.num_spans * 2);
      EXPECT_LT(drafts.num_drafts, drafts.num_spans * 4);
    } else {
      // A few drafts of constrained sequences are cut.
      EXPECT_LE(drafts.num_drafts, drafts.num_spans * most);
      EXPECT_GT(drafts.num_drafts * 20, drafts.num_spans * most * 19);
    }
  }
}

TEST(RaggedSpeculation, ADrafterWithoutProposalsVerifiesNothing) {
  const auto engine = make_engine(tiny_config(), 4, by_slot({0}));
  expect_ordinary_outputs(run_all(*engine, requests()));
  EXPECT_EQ(stats_at_rest(*engine).speculation.num_spans, 0);
}

// Which drafts are left out depends on the time that steps take.
TEST(AdaptiveSpeculation, BringsTheBitsOfAnOrdinaryRun) {
  for (const int k : {1, 4, 8}) {
    SCOPED_TRACE(k);
    const auto engine = make_engine(tiny_config(), k, up_to(k), {.is_adaptive = true});
    expect_ordinary_outputs(run_all(*engine, requests()));
    expect_ordinary_outputs(run_all(*engine, requests()));
    const SpeculationStats drafts = stats_at_rest(*engine).speculation;
    EXPECT_LE(drafts.num_drafts, drafts.num_spans * k);
  }
}

// ---- The drafters that a configuration can name

// Verifies all drafts, so that what is counted does not depend on the time that steps take.
std::unique_ptr<Engine> make_engine(EngineConfig config, std::string speculative_config) {
  config.speculative_config = std::move(speculative_config);
  config.speculative_config.insert(1, R"("enable_adaptive_verification": false, )");
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
  Request request = greedy(tiny_prompt(8, 3), 200);
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
  EXPECT_THAT(message("{"), StartsWith("got \"{\", expected a JSON object"));
  EXPECT_THAT(message("4"), StartsWith("got \"4\", expected a JSON object"));
  EXPECT_THAT(message("{}"),
              StartsWith("method; got nothing, expected auto, ngram, suffix, draft"));
  EXPECT_THAT(message(R"({"method": "medusa"})"),
              HasSubstr("method; got \"medusa\", expected auto, ngram"));
  EXPECT_THAT(
      message(R"({"method": "auto", "model": "some/drafter"})"),
      HasSubstr("model; got it with method auto, expected it only with method draft_model"));
  EXPECT_THAT(message(R"({"method": "auto", "draft_sample_method": "probabilistic"})"),
              HasSubstr("draft_sample_method; got probabilistic, expected greedy"));
  EXPECT_EQ(message(R"({"method": "mtp", "model": "a/drafter", "num_speculative_tokens": 3})"), "");
  EXPECT_THAT(message(R"({"method": "ngram"})"), HasSubstr("num_speculative_tokens; got nothing"));
  EXPECT_THAT(
      message(R"({"method": "ngram", "num_speculative_tokens": 16})"),
      HasSubstr("num_speculative_tokens; got \"16\", expected a whole number from 1 to 15"));
  EXPECT_THAT(message(R"({"method": "suffix", "enable_adaptive_verification": 1})"),
              HasSubstr("enable_adaptive_verification; got"));
  EXPECT_THAT(message(R"({"method": "suffix", "prompt_lookup_min": 2})"),
              HasSubstr("prompt_lookup_min; got it with method suffix"));
  EXPECT_THAT(message(R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 5,
                          "prompt_lookup_max": 4})"),
              HasSubstr("prompt_lookup_min; got 5, expected at most prompt_lookup_max, 4"));
  EXPECT_THAT(message(R"({"method": "suffix", "draft_model": "x"})"),
              HasSubstr("\"draft_model\"; got a key that is not served"));
  EXPECT_THAT(message(R"({"method": "suffix", "method": "ngram"})"), HasSubstr("it twice"));
  // Drafts of these methods are certain.
  const auto ngram = [&](std::string_view keys) {
    return message(fmt::format(R"({{"method": "ngram", "num_speculative_tokens": 2, {}}})", keys));
  };
  EXPECT_THAT(ngram(R"("draft_sample_method": "gumbel")"),
              HasSubstr("draft_sample_method; got \"gumbel\", expected one of greedy, prob"));
  EXPECT_THAT(ngram(R"("draft_sample_method": "probabilistic")"),
              HasSubstr("draft_sample_method; got probabilistic, expected greedy: drafts of "
                        "method ngram have no distribution"));
  EXPECT_THAT(ngram(R"("rejection_sample_method": "block")"),
              HasSubstr("rejection_sample_method; got block, expected standard: drafts of method "
                        "ngram have no distribution"));
  EXPECT_THAT(ngram(R"("rejection_sample_method": "typical")"),
              HasSubstr("rejection_sample_method; got \"typical\", expected one of standard, "
                        "block, synthetic"));
  const std::string synthetic = R"("rejection_sample_method": "synthetic")";
  EXPECT_THAT(ngram(synthetic),
              HasSubstr("got synthetic without a rate, expected either synthetic_acceptance_rates "
                        "or synthetic_acceptance_length"));
  EXPECT_THAT(ngram(synthetic + R"(, "synthetic_acceptance_length": 3.5)"),
              HasSubstr("synthetic_acceptance_length; got \"3.5\", expected a number from 1 to 3"));
  EXPECT_THAT(ngram(synthetic + R"(, "synthetic_acceptance_length": 2,
                                     "synthetic_acceptance_rates": [1, 0])"),
              HasSubstr("got synthetic with both rates and a length"));
  const auto rates = [&](std::string_view list) {
    return ngram(fmt::format(R"({}, "synthetic_acceptance_rates": {})", synthetic, list));
  };
  EXPECT_THAT(rates("[0.5]"), HasSubstr("synthetic_acceptance_rates; got [0.5], expected "
                                        "num_speculative_tokens, 2, rates that do not increase"));
  EXPECT_THAT(rates("[0.5, 0.6]"), HasSubstr("got [0.5, 0.6], expected"));
  EXPECT_THAT(rates("[1.5, 0.6]"), HasSubstr("got \"1.5\", expected a number from 0 to 1"));
  EXPECT_THAT(rates("0.5"), HasSubstr("expected a list of at most 15 numbers"));
  EXPECT_THAT(
      ngram(R"("synthetic_acceptance_length": 2)"),
      HasSubstr("synthetic_acceptance_length; got it with rejection_sample_method standard"));
  const auto ranges_message = [&](std::string_view ranges) {
    return message(fmt::format(
        R"({{"method": "suffix", "num_speculative_tokens_per_batch_size": {}}})", ranges));
  };
  EXPECT_THAT(ranges_message("[[1, 4]]"), HasSubstr("lists of 3 numbers"));
  EXPECT_THAT(ranges_message("[[1, 4, 9]]"), HasSubstr("got [1, 4, 9], expected ascending ranges"));
  EXPECT_THAT(ranges_message("[[1, 4, 2], [4, 9, 1]]"), HasSubstr("got [4, 9, 1]"));
  EngineConfig config = tiny_config();
  config.speculative_config = "{}";
  EXPECT_THAT(Engine::create(config).status().message(),
              StartsWith("[config] `speculative_config`: method; got nothing"));
  const auto accepted = read_speculation(
      R"({"method": "suffix", "num_speculative_tokens": 3, "draft_sample_method": "greedy",
          "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.5})");
  ASSERT_TRUE(accepted.ok()) << accepted.status().message();
  EXPECT_EQ(accepted->verification.method, RejectionMethod::kSynthetic);
  EXPECT_FALSE(accepted->verification.samples_drafts);
  EXPECT_THAT(accepted->verification.synthetic_rates, ::testing::ElementsAre(1.0, 0.5, 0.0));
  EXPECT_EQ(read_speculation("")->num_drafts, 0);
  EXPECT_EQ(read_speculation(R"({"method": "suffix"})")->num_drafts, 8);
}

}  // namespace
}  // namespace quire::testing

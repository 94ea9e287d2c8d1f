// The drafters that the binary contains for its embedded model, on its held-out problems.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/gsm8k.h"
#include "engine/tiny_engine.h"
#include "support/shared_data.h"

namespace quire {
namespace {

using testing::Collected;
using testing::run_all;

std::vector<Request> held_out_problems() {
  const auto data =
      bench::load_gsm8k({.data = testing::source_path("models/quire-abacus/heldout.jsonl"),
                         .shots = {},
                         .num_shots = 0,
                         .num_questions = 24});
  EXPECT_TRUE(data.ok()) << data.status().message();
  std::vector<Request> requests;
  for (const bench::WordProblem& problem : data->problems) {
    Request request;
    request.prompt = bench::question_prompt(problem);
    request.sampling.temperature = 0.0F;
    request.sampling.max_tokens = 120;
    request.sampling.stop = bench::gsm8k_stops();
    requests.push_back(request);
  }
  return requests;
}

EngineConfig embedded(std::string_view method, int num_drafts) {
  EngineConfig config;
  config.device = "cpu";
  config.max_model_len = 512;
  config.kv_cache_memory = int64_t{256} << 20;
  if (num_drafts > 0) {
    config.speculative_config = fmt::format(
        R"({{"method": "{}", "num_speculative_tokens": {}, "enable_adaptive_verification": false}})",
        method, num_drafts);
  }
  return config;
}

std::vector<Collected> outputs_without_drafts(const std::vector<Request>& requests) {
  return run_all(*testing::make_engine(embedded("", 0)), requests);
}

// The outputs equal those without drafts.
SpeculationStats drafts_of(const EngineConfig& config, const std::vector<Request>& requests) {
  const auto engine = testing::make_engine(config);
  if (engine == nullptr) return {};
  testing::expect_same(run_all(*engine, requests), outputs_without_drafts(requests));
  return testing::stats_at_rest(*engine).speculation;
}

// The mean accepted length.
double accepted_length(std::string_view method, int num_drafts) {
  const SpeculationStats stats = drafts_of(embedded(method, num_drafts), held_out_problems());
  return 1 + static_cast<double>(stats.num_accepted) / static_cast<double>(stats.num_spans);
}

TEST(EmbeddedDrafters, Eagle3AcceptsThreeTokensPerStep) {
  EXPECT_GE(accepted_length("eagle3", 4), 3.0);
}

TEST(EmbeddedDrafters, DFlashAcceptsFourTokensPerStep) {
  EXPECT_GE(accepted_length("dflash", 7), 4.0);
}

// The share of drafts that are accepted, where each problem is asked three times at once, and two
// of the outputs end in the middle. Outputs end after a given number of tokens: after a stop
// string, a step in flight may still verify drafts.
double accepted_share(const EngineConfig& config) {
  std::vector<Request> problems = held_out_problems();
  const std::vector<Collected> outputs = outputs_without_drafts(problems);
  const auto engine = testing::make_engine(config);
  if (engine == nullptr) return 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    problems[i].sampling.stop.clear();
    problems[i].sampling.max_tokens = static_cast<int>(outputs[i].token_ids.size());
    std::vector<Request> requests(3, problems[i]);
    for (size_t k = 1; k < 3; ++k) requests[k].sampling.max_tokens /= 2;
    EXPECT_EQ(run_all(*engine, requests)[0].token_ids, outputs[i].token_ids);
  }
  const SpeculationStats stats = testing::stats_at_rest(*engine).speculation;
  EXPECT_GT(stats.num_drafts, 300);
  return static_cast<double>(stats.num_accepted) / static_cast<double>(stats.num_drafts);
}

// While three sequences decode, no drafts are wanted, and the drafter only writes keys and values.
// Its drafts for the sequence that remains are as good as if it had always drafted.
TEST(EmbeddedDrafters, AcceptAsManyAfterStepsWithoutDrafts) {
  const std::pair<const char*, int> methods[] = {{"eagle3", 4}, {"dflash", 7}};
  for (const auto& [method, num_drafts] : methods) {
    SCOPED_TRACE(method);
    EngineConfig config = embedded(method, num_drafts);
    const double always = accepted_share(config);
    EXPECT_GT(always, 0.7);
    config.speculative_config.insert(
        1, R"("num_speculative_tokens_per_batch_size": [[3, 1024, 0]], )");
    const double late = accepted_share(config);
    EXPECT_GT(late, always - 0.05);
  }
}

}  // namespace
}  // namespace quire

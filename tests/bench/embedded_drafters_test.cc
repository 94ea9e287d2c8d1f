// The drafters that the binary contains for its embedded model, on its held-out problems.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "bench/gsm8k.h"
#include "engine/tiny_engine.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

std::vector<Request> held_out_problems() {
  const auto data = bench::load_gsm8k({.data = source_path("models/quire-abacus/heldout.jsonl"),
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
  return run_all(*make_engine(embedded("", 0)), requests);
}

// The outputs equal those without drafts.
SpeculationStats drafts_of(const EngineConfig& config, const std::vector<Request>& requests) {
  const auto engine = make_engine(config);
  expect_same(run_all(*engine, requests), outputs_without_drafts(requests));
  return stats_at_rest(*engine).speculation;
}

// The mean accepted length.
double accepted_length(std::string_view method, int num_drafts) {
  const SpeculationStats stats = drafts_of(embedded(method, num_drafts), held_out_problems());
  return 1 + static_cast<double>(stats.num_accepted) / static_cast<double>(stats.num_spans);
}

TEST(EmbeddedDrafters, Eagle3AcceptsFourTokensPerStep) {
  EXPECT_GE(accepted_length("eagle3", 4), 4.0);
}

TEST(EmbeddedDrafters, DFlashAcceptsSixTokensPerStep) {
  EXPECT_GE(accepted_length("dflash", 7), 6.0);
}

// A problem with half of its output as the prompt's end, for the other half.
Request second_half(const Engine& engine, const Request& problem, std::span<const int32_t> output) {
  Request request = problem;
  request.prompt_token_ids = engine.encode(problem.prompt, true).value();
  request.prompt.clear();
  const auto first = output.first(output.size() / 2);
  request.prompt_token_ids.insert(request.prompt_token_ids.end(), first.begin(), first.end());
  request.sampling.max_tokens = static_cast<int>(output.size() - first.size());
  return request;
}

// The share of drafts that are accepted in the second halves of the outputs. They come from prompts
// that end with the first half, or from whole outputs, of which two more end in the middle. Outputs
// end after a given number of tokens: after a stop string, a step in flight may still verify
// drafts.
double accepted_share(const EngineConfig& config, bool has_three_first_halves) {
  std::vector<Request> problems = held_out_problems();
  const std::vector<Collected> outputs = outputs_without_drafts(problems);
  const auto engine = make_engine(config);
  for (size_t i = 0; i < problems.size(); ++i) {
    problems[i].sampling.stop.clear();
    const std::span<const int32_t> expected = outputs[i].token_ids;
    std::vector<Request> requests(1, second_half(*engine, problems[i], expected));
    if (has_three_first_halves) {
      requests.assign(3, problems[i]);
      for (Request& request : requests) {
        request.sampling.max_tokens = static_cast<int>(expected.size() / 2);
      }
      requests[0].sampling.max_tokens = static_cast<int>(expected.size());
    }
    const std::vector<int32_t> got = run_all(*engine, requests)[0].token_ids;
    EXPECT_TRUE(std::ranges::equal(got, expected.last(got.size())));
  }
  const SpeculationStats stats = stats_at_rest(*engine).speculation;
  EXPECT_GT(stats.num_drafts, 300);
  return static_cast<double>(stats.num_accepted) / static_cast<double>(stats.num_drafts);
}

// While three sequences decode, no drafts are wanted, and the drafter only writes keys and values.
// Its drafts for the sequence that remains are as good as after a prompt with the same tokens.
TEST(EmbeddedDrafters, AcceptAsManyAfterStepsWithoutDrafts) {
  const std::pair<const char*, int> methods[] = {{"eagle3", 4}, {"dflash", 7}};
  for (const auto& [method, num_drafts] : methods) {
    SCOPED_TRACE(method);
    EngineConfig config = embedded(method, num_drafts);
    const double after_prompts = accepted_share(config, false);
    EXPECT_GT(after_prompts, 0.7);
    config.speculative_config.insert(
        1, R"("num_speculative_tokens_per_batch_size": [[3, 1024, 0]], )");
    const double late = accepted_share(config, true);
    EXPECT_GT(late, after_prompts - 0.05);
  }
}

}  // namespace
}  // namespace quire::testing

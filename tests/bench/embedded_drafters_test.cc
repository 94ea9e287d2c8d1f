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

// The outputs equal those without drafts.
SpeculationStats drafts_of(const EngineConfig& config) {
  static const std::vector<Collected> expected =
      run_all(*testing::make_engine(embedded("", 0)), held_out_problems());
  const auto engine = testing::make_engine(config);
  if (engine == nullptr) return {};
  testing::expect_same(run_all(*engine, held_out_problems()), expected);
  return testing::stats_at_rest(*engine).speculation;
}

// The mean accepted length.
double accepted_length(std::string_view method, int num_drafts) {
  const SpeculationStats stats = drafts_of(embedded(method, num_drafts));
  return 1 + static_cast<double>(stats.num_accepted) / static_cast<double>(stats.num_spans);
}

TEST(EmbeddedDrafters, Eagle3AcceptsThreeTokensPerStep) {
  EXPECT_GE(accepted_length("eagle3", 4), 3.0);
}

TEST(EmbeddedDrafters, DFlashAcceptsFourTokensPerStep) {
  EXPECT_GE(accepted_length("dflash", 7), 4.0);
}

// While many sequences decode, no drafts are wanted, and the drafter only writes keys and values.
// Those that remain are drafted for afterwards.
TEST(EmbeddedDrafters, AcceptAsManyAfterStepsWithoutDrafts) {
  const std::pair<const char*, int> methods[] = {{"eagle3", 4}, {"dflash", 7}};
  for (const auto& [method, num_drafts] : methods) {
    SCOPED_TRACE(method);
    EngineConfig config = embedded(method, num_drafts);
    config.speculative_config.insert(
        1, R"("num_speculative_tokens_per_batch_size": [[7, 1024, 0]], )");
    const SpeculationStats stats = drafts_of(config);
    EXPECT_GT(stats.num_drafts, 50);
    EXPECT_GT(static_cast<double>(stats.num_accepted),
              0.85 * static_cast<double>(stats.num_drafts));
  }
}

}  // namespace
}  // namespace quire

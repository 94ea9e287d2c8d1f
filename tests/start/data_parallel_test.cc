// Several replicas on one CPU give the bits of one engine, no matter which of them serves a
// request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_case.h"
#include "engine/quantized_models.h"
#include "engine/tiny_drafters.h"
#include "engine/tiny_engine.h"
#include "engine/tiny_families.h"
#include "start/platform_choice.h"
#include "start/replica_plan.h"
#include "start/start.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

EngineConfig with_replicas(EngineConfig config, int num_replicas, int num_ranks = 1) {
  config.device = "cpu";
  config.data_parallel_size = num_replicas;
  config.tensor_parallel_size = num_ranks;
  config.num_threads = num_replicas * num_ranks;
  config.kv_cache_memory = int64_t{8} << 20;
  return config;
}

std::vector<Request> requests() {
  std::vector<Request> all = sampled_requests();
  for (uint64_t i = 0; i < 12; ++i) {
    const int length = static_cast<int>(1 + 17 * i % 90);
    all.push_back(greedy(tiny_prompt(length, i % 5), 12));
    all.back().sampling.logprobs = 1;
  }
  return all;
}

void expect_same_as_one(const EngineConfig& config, int num_replicas, int num_ranks = 1) {
  const auto one = make_engine(with_replicas(config, 1, num_ranks));
  const auto several = make_engine(with_replicas(config, num_replicas, num_ranks));
  expect_same(run_all(*several, requests()), run_all(*one, requests()));
  int64_t num_tokens = 0;
  for (const ReplicaState& replica : several->replicas()) {
    EXPECT_TRUE(replica.health.ok());
    EXPECT_GT(replica.stats.num_steps, 0) << "each has served some";
  }
  const EngineStats total = stats_at_rest(*several);
  for (const ReplicaState& replica : several->replicas()) {
    num_tokens += replica.stats.num_generated_tokens;
  }
  EXPECT_EQ(total.num_generated_tokens, num_tokens);
  EXPECT_EQ(total.num_generated_tokens, stats_at_rest(*one).num_generated_tokens);
  EXPECT_EQ(total.num_outstanding_tokens, 0);
  EXPECT_EQ(several->model_info().data_parallel_size, num_replicas);
}

TEST(DataParallel, GivesTheBitsOfOneEngine) {
  expect_same_as_one(tiny_config(), 2);
  expect_same_as_one(tiny_windows_config(), 3);
}

TEST(DataParallel, WorksWithRanks) {
  expect_same_as_one(tiny_config(), 2, 2);
}

TEST(DataParallel, WorksWithQuantizedWeights) {
  for (const QuantizedModel& model : some_quantized_models()) {
    SCOPED_TRACE(model.name);
    const ScratchDirectory scratch;
    expect_same_as_one(write_quantized(model, scratch), 2);
  }
}

TEST(DataParallel, Embeds) {
  const auto one = make_engine(with_replicas(embedding_config(), 1));
  const auto two = make_engine(with_replicas(embedding_config(), 2));
  EXPECT_EQ(embed_prompts(*two), embed_prompts(*one));
  for (const ReplicaState& replica : two->replicas()) EXPECT_GT(replica.stats.num_steps, 0);
}

TEST(DataParallel, WorksWithADrafter) {
  EngineConfig config = tiny_config();
  config.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 3})";
  expect_same_as_one(config, 2);
}

TEST(DataParallel, WorksWithADraftModel) {
  const EngineConfig config = with_drafter(mimo_target(), "", 1, "mtp");
  const std::vector<Request> all = eagle_requests();
  const auto one = make_engine(with_replicas(config, 1));
  const auto two = make_engine(with_replicas(config, 2));
  expect_same(run_all(*two, all), run_all(*one, all));
  EXPECT_GT(stats_at_rest(*two).speculation.num_accepted, 0);
}

TEST(DataParallel, DividesAMachinesMemory) {
  EngineConfig config = with_replicas(tiny_config(), 2);
  config.kv_cache_memory = 0;
  const ModelFiles files = *open_model_files(config);
  std::vector<PlannedReplica> replicas;
  const Status planned = plan_replicas(config, {}, files, nullptr, replicas);
  ASSERT_TRUE(planned.ok()) << planned.message();
  ASSERT_EQ(replicas.size(), 2);
  const auto free_bytes = [](const PlannedReplica& replica) {
    return static_cast<double>(replica.plans.front().memory_request.budget.free_bytes);
  };
  const auto alone = make_platform(config, files);
  EXPECT_EQ((*alone)->contexts().front()->memory_budget()->owner, "machine");
  const auto all = static_cast<double>((*alone)->contexts().front()->memory_budget()->free_bytes);
  for (const PlannedReplica& replica : replicas) {
    EXPECT_NEAR(free_bytes(replica), all / 2, 0.1 * all) << "another process may take some";
    EXPECT_EQ(replica.platform->thread_choice()->places.size(), 1);
    EXPECT_EQ(replica.plans.front().memory_request.budget.owner, "rank's share of the machine");
  }
}

TEST(DataParallel, RefusesTooFewThreadsAndImpossibleSizes) {
  EngineConfig few_threads = with_replicas(tiny_config(), 4);
  few_threads.num_threads = 3;
  EXPECT_THAT(error_of(few_threads),
              HasSubstr("data_parallel_size: got 4 replicas with 4 ranks for 3"));
  for (const int size : {0, -1, 65}) {
    EngineConfig impossible = tiny_config();
    impossible.data_parallel_size = size;
    EXPECT_THAT(error_of(impossible), HasSubstr("data_parallel_size: must be 1 to 64"));
  }
}

TEST(DataParallel, IsRefusedOnSeveralNodes) {
  EngineConfig config = with_replicas(tiny_config(), 2, 2);
  config.nnodes = 2;
  config.node_rank = 0;
  config.master_addr = "127.0.0.1";
  EXPECT_THAT(error_of(config), HasSubstr("data_parallel_size: got 2 on 2 nodes, expected 1"));
}

// All replicas end their start before the error is reported.
TEST(DataParallel, ReportsAnErrorOfALoad) {
  const EngineConfig config = with_replicas(tiny_config(), 2);
  const auto make_drafter = [](DeviceContext&,
                               const DrafterLimits&) -> Result<std::shared_ptr<Drafter>> {
    return unavailable("[test] no drafter");
  };
  const auto engine = start_engine(config, {.num_drafts = 2, .make_drafter = make_drafter});
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("no drafter (in replica 0)"));
}

}  // namespace
}  // namespace quire::testing

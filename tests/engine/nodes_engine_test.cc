// An engine whose ranks are on several nodes, here in one process and connected by TCP, gives the
// bits of an engine with as many ranks on one node.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_case.h"
#include "engine/quantized_models.h"
#include "engine/tiny_drafters.h"
#include "engine/tiny_engine.h"
#include "engine/tiny_families.h"
#include "start/node_agreement.h"
#include "support/eventually.h"
#include "support/free_port.h"
#include "support/scratch_directory.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

EngineConfig with_ranks(const EngineConfig& config, int num_ranks) {
  EngineConfig ranks = testing::with_ranks(config, num_ranks);
  ranks.cpu_pinning = "off";
  ranks.kv_cache_dtype = config.kv_cache_dtype;
  return ranks;
}

EngineConfig on_node(EngineConfig config, int num_nodes, int node, int port) {
  config.num_threads /= num_nodes;
  config.nnodes = num_nodes;
  config.node_rank = node;
  config.master_addr = "127.0.0.1";
  config.master_port = port;
  return config;
}

// The nodes other than node 0, each on a thread.
class OtherNodes {
 public:
  OtherNodes(const EngineConfig& config, int num_nodes, int port,
             const LoadProgress& progress = {}) {
    for (int node = 1; node < num_nodes; ++node) {
      ends_.push_back(std::async(std::launch::async, [=, this] {
        return Engine::run_node(
            on_node(config, num_nodes, node, port), [this] { return stops_.load(); }, progress);
      }));
    }
  }
  void stop() { stops_ = true; }
  Status wait() {
    Status first;
    for (auto& end : ends_) {
      const Status status = end.get();
      if (first.ok()) first = status;
    }
    ends_.clear();
    return first;
  }

 private:
  std::atomic<bool> stops_ = false;
  std::vector<std::future<Status>> ends_;
};

// Node 0 refuses a node with this configuration, and waits on for one with its own.
void expect_refused(const EngineConfig& config, const EngineConfig& other,
                    const std::string& expected) {
  const int port = free_port();
  auto engine =
      std::async(std::launch::async, [&] { return Engine::create(on_node(config, 2, 0, port)); });
  EXPECT_THAT(OtherNodes(other, 2, port).wait().message(), HasSubstr(expected));
  OtherNodes others(config, 2, port);
  const Status created = engine.get().status();  // ends the engine, too
  EXPECT_TRUE(created.ok()) << created.message();
  EXPECT_TRUE(others.wait().ok());
}

std::vector<Request> requests() {
  std::vector<Request> all = sampled_requests();
  for (const int length : {1, 30, 64}) {
    all.push_back(greedy(tiny_prompt(length, 5), 12));
    all.back().sampling.logprobs = 1;
    all.back().sampling.prompt_logprobs = 1;
  }
  return all;
}

std::vector<Collected> run_nodes(const EngineConfig& config, int num_nodes,
                                 const std::vector<Request>& all) {
  const int port = free_port();
  OtherNodes others(config, num_nodes, port);
  std::vector<Collected> outputs;
  if (const auto engine = make_engine(on_node(config, num_nodes, 0, port))) {
    outputs = run_all(*engine, all);
    EXPECT_TRUE(engine->health().ok());
  }
  const Status ended = others.wait();
  EXPECT_TRUE(ended.ok()) << ended.message();
  return outputs;
}

void expect_nodes_agree(const EngineConfig& config, int num_nodes, int num_ranks,
                        const std::vector<Request>& all) {
  const EngineConfig ranks = with_ranks(config, num_ranks);
  const auto one = make_engine(ranks);
  expect_same(run_nodes(ranks, num_nodes, all), run_all(*one, all));
}

class NodesFamilies : public ::testing::TestWithParam<TinyFamily> {};

TEST_P(NodesFamilies, GiveTheBitsOfOneNode) {
  expect_nodes_agree(config_of(GetParam()), 2, 2, requests());
}

INSTANTIATE_TEST_SUITE_P(All, NodesFamilies, ::testing::ValuesIn(tiny_families()),
                         [](const auto& family) { return std::string(family.param.name); });

TEST(Nodes, OfSeveralRanksGiveTheBitsOfOneNode) {
  expect_nodes_agree(tiny_config(), 2, 4, requests());
}

TEST(Nodes, FourGiveTheBitsOfOneNode) {
  expect_nodes_agree(tiny_windows_config(), 4, 4, requests());
}

TEST(Nodes, CheckAQuantizedCacheTogether) {
  EngineConfig config = tiny_config();
  config.kv_cache_dtype = "int8";
  expect_nodes_agree(config, 2, 2, requests());
}

TEST(Nodes, DivideQuantizedWeights) {
  for (const QuantizedModel& model : some_quantized_models()) {
    SCOPED_TRACE(model.name);
    const ScratchDirectory scratch;
    expect_nodes_agree(write_quantized(model, scratch), 2, 2, requests());
  }
}

TEST(Nodes, Embed) {
  const EngineConfig config = with_ranks(embedding_config(), 2);
  const auto one = make_engine(config);
  const int port = free_port();
  OtherNodes others(config, 2, port);
  auto two = make_engine(on_node(config, 2, 0, port));
  EXPECT_EQ(embed_prompts(*two), embed_prompts(*one));
  two.reset();
  const Status ended = others.wait();
  EXPECT_TRUE(ended.ok()) << ended.message();
}

TEST(Nodes, DivideDraftersWithTheirTargets) {
  for (const EngineConfig& config : {with_drafter(eagle_target(), "", 3, "ngram"),
                                     with_drafter(eagle_target(), eagle_target().model, 3),
                                     with_drafter(eagle_target(), eagle_head(), 3, "eagle3")}) {
    SCOPED_TRACE(config.speculative_config);
    expect_nodes_agree(config, 2, 2, eagle_requests());
  }
}

// Node 0 measures its steps, and all nodes leave out the same drafts.
TEST(Nodes, LeaveOutTheSameDrafts) {
  EngineConfig config = with_ranks(eagle_target(), 2);
  config.speculative_config =
      R"({"method": "ngram", "num_speculative_tokens": 3, "enable_adaptive_verification": true})";
  for (const Collected& output : run_nodes(config, 2, eagle_requests())) {
    EXPECT_TRUE(output.error.ok()) << output.error.message();
    EXPECT_FALSE(output.token_ids.empty());
  }
}

// ---- Failures

// To load the rest of a large model would take minutes.
TEST(Nodes, LoadNoMoreOnceOneHasFailed) {
  const EngineConfig config = with_ranks(tiny_windows_config(), 2);
  for (const int failing : {0, 1}) {
    SCOPED_TRACE(failing);
    std::promise<void> begins;
    std::promise<void> fails;
    const LoadProgress fail = [&](int, int) {
      begins.get_future().wait();
      fails.set_value();
      throw std::bad_alloc();
    };
    std::atomic<int> num_loaded = 0;
    const LoadProgress load = [&](int, int num_layers) {
      EXPECT_EQ(num_layers, 4);
      if (num_loaded++ > 0) return;
      begins.set_value();
      fails.get_future().wait();
      // Nothing tells a rank that loads that the error has arrived.
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    };
    const int port = free_port();
    OtherNodes others(config, 2, port, failing == 1 ? fail : load);
    const Status first =
        Engine::create(on_node(config, 2, 0, port), failing == 0 ? fail : load).status();
    const Status other = others.wait();
    EXPECT_EQ(num_loaded, 1);
    EXPECT_THAT(first.message(), HasSubstr("a rank cannot start"));
    const std::string name = failing == 0 ? "[nodes] node 0 (" : "[nodes] node 1 (";
    EXPECT_THAT((failing == 0 ? other : first).message(), HasSubstr(name));
    EXPECT_THAT((failing == 0 ? other : first).message(), HasSubstr("has failed"));
  }
}

TEST(Nodes, ANodeThatStopsEndsTheEngine) {
  const EngineConfig config = with_ranks(tiny_config(), 2);
  const int port = free_port();
  OtherNodes others(config, 2, port);
  const auto engine = make_engine(on_node(config, 2, 0, port));
  EXPECT_TRUE(engine->health().ok());
  others.stop();
  EXPECT_THAT(others.wait().message(), HasSubstr("was stopped before node 0 had ended"));
  EXPECT_TRUE(eventually([&] { return !engine->health().ok(); }));
  EXPECT_THAT(engine->health().message(), HasSubstr("[nodes] node 1 ("));
  EXPECT_THAT(engine->health().message(), HasSubstr("was stopped before node 0 had ended"));
  const auto refused = engine->submit(greedy({1, 2, 3}, 4));
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
}

TEST(Nodes, RefuseOtherFlagsByName) {
  const EngineConfig config = with_ranks(tiny_config(), 2);
  EngineConfig other = config;
  other.block_size = 32;
  expect_refused(config, other, "differs from node 0 in `block_size`: got 32, expected 16");
}

TEST(Nodes, RefuseAnotherModel) {
  const EngineConfig config = with_ranks(tiny_config(), 2);
  const EngineConfig other = with_ranks(tiny_windows_config(), 2);
  expect_refused(config, other, "differs from node 0 in `model`");
}

// If one node has no memory for the context, all nodes report its error.
TEST(Nodes, ReportAnErrorOfAnyNodeOnAll) {
  EngineConfig config = with_ranks(tiny_config(), 2);
  config.kv_cache_memory = 1024;
  config.max_model_len = 512;
  const int port = free_port();
  OtherNodes others(config, 2, port);
  const auto engine = Engine::create(on_node(config, 2, 0, port));
  EXPECT_EQ(engine.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(others.wait().code(), StatusCode::kResourceExhausted);
}

TEST(Nodes, RefuseStepsBeyondAMessage) {
  EXPECT_TRUE(check_step_message(8192, 8192, 2).ok());
  EXPECT_THAT(check_step_message(16384, 8192, 2).message(),
              HasSubstr("`max_num_batched_tokens`: got 16384, expected less than 16384"));
  EXPECT_FALSE(check_step_message(8192, 8192, 4).ok());
}

// The nodes' files need not have the same paths.
TEST(Nodes, MayHaveTheDrafterElsewhere) {
  const EngineConfig config =
      with_ranks(with_drafter(eagle_target(), eagle_head(), 3, "eagle3"), 2);
  const ScratchDirectory scratch;
  const std::filesystem::path link = scratch.path() / "drafter";
  std::filesystem::create_directory_symlink(eagle_head(), link);
  const EngineConfig other =
      with_ranks(with_drafter(eagle_target(), link.string(), 3, "eagle3"), 2);
  ASSERT_NE(config.speculative_config, other.speculative_config);
  const int port = free_port();
  OtherNodes others(other, 2, port);
  make_engine(on_node(config, 2, 0, port));
  const Status ended = others.wait();
  EXPECT_TRUE(ended.ok()) << ended.message();
}

TEST(Nodes, RefuseAnotherNumberOfDrafts) {
  const EngineConfig config = with_ranks(with_drafter(eagle_target(), "", 3, "ngram"), 2);
  const EngineConfig other = with_ranks(with_drafter(eagle_target(), "", 4, "ngram"), 2);
  expect_refused(config, other, "differs from node 0 in `speculative_config`");
}

TEST(Nodes, NeedRanksThatTheyDivide) {
  const EngineConfig config = on_node(with_ranks(tiny_config(), 3), 2, 0, free_port());
  EXPECT_THAT(Engine::create(config).status().message(),
              HasSubstr("`tensor_parallel_size`: got 3 with 2 nodes"));
  const EngineConfig other = on_node(with_ranks(tiny_config(), 2), 2, 1, free_port());
  EXPECT_THAT(Engine::create(other).status().message(), HasSubstr("`node_rank`: got 1"));
}

// Otherwise node 0 would wait for the others first.
TEST(Nodes, NeedRanksThatDivideTheModel) {
  const EngineConfig config = on_node(with_ranks(tiny_config(), 6), 2, 0, free_port());
  EXPECT_THAT(Engine::create(config).status().message(),
              HasSubstr("`tensor_parallel_size` 6 does not divide num_attention_heads"));
}

TEST(Nodes, ATimeoutOfRanksNeedsSeveral) {
  EngineConfig config = with_ranks(tiny_config(), 1);
  config.rank_timeout = 5;
  EXPECT_THAT(Engine::create(config).status().message(),
              HasSubstr("`rank_timeout`: got it with one rank"));
  config = with_ranks(tiny_config(), 2);
  config.rank_timeout = 5;
  EXPECT_TRUE(Engine::create(config).ok());
}

// Otherwise it would be found after a wait of minutes for the other nodes.
TEST(Nodes, NeedAThreadPerRankBeforeTheyMeet) {
  EngineConfig config = on_node(with_ranks(tiny_config(), 4), 2, 0, free_port());
  config.num_threads = 1;
  EXPECT_THAT(Engine::create(config).status().message(), HasSubstr("got 2 ranks for 1 threads"));
}

TEST(Nodes, RefuseAnotherTimeout) {
  const EngineConfig config = with_ranks(tiny_config(), 2);
  EngineConfig other = config;
  other.rank_timeout = 5;
  expect_refused(config, other, "differs from node 0 in `rank_timeout`: got 5, expected 20");
}

// Shapes and sizes are the same.
TEST(Nodes, RefuseOtherWeightsAndAnotherConfiguration) {
  const ScratchDirectory scratch;
  const ScratchDirectory copies;
  const EngineConfig config = with_ranks(write_quantized(quantized_models().front(), scratch), 2);
  const std::filesystem::path copy = copies.path() / "copy";
  EngineConfig other = config;
  other.model = copy.string();
  const auto change_last_byte = [&](const std::string& extension) {
    std::filesystem::remove_all(copy);
    std::filesystem::copy(config.model, copy, std::filesystem::copy_options::recursive);
    for (const auto& entry : std::filesystem::directory_iterator(copy)) {
      if (!entry.path().string().ends_with(extension)) continue;
      std::filesystem::permissions(entry, std::filesystem::perms::owner_all);
      std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(-1, std::ios::end);
      file.put(' ');
    }
  };
  change_last_byte(".safetensors");
  expect_refused(config, other, "differs from node 0 in `model's weights`");
  change_last_byte("nothing");
  std::ofstream(copy / "config.json", std::ios::app) << "\n";
  expect_refused(config, other, "differs from node 0 in `model's config.json`");
}

TEST(Nodes, RefuseAnotherGgufFile) {
  const ScratchDirectory scratch;
  const EngineConfig config =
      with_ranks(write_quantized(some_quantized_models().back(), scratch), 2);
  EngineConfig other = config;
  other.model = (scratch.path() / "copy.gguf").string();
  std::filesystem::copy(config.model, other.model);
  std::fstream file(other.model, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-1, std::ios::end);
  const int last = file.get();
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
  file.close();
  expect_refused(config, other, "differs from node 0 in `model's weights`");
}

}  // namespace
}  // namespace quire::testing

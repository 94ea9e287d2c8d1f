// KV events of a whole engine, and the configuration that asks for them.
#include "start/kv_event_sources.h"

#include <gmock/gmock.h>

#include "engine/engine_internals.h"
#include "engine/tiny_engine.h"
#include "support/zmq_socket.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& config) {
  return read_kv_events_config(config).status().message();
}

TEST(KvEventsConfig, HasTheDefaultsOfVllm) {
  const KvEventsConfig off = value_of(read_kv_events_config("{}"));
  EXPECT_FALSE(off.publishes());
  const KvEventsConfig on = value_of(read_kv_events_config(R"({"enable_kv_cache_events": true})"));
  EXPECT_TRUE(on.publishes());
  EXPECT_EQ(on.endpoint, "tcp://*:5557");
  EXPECT_EQ(on.replay_endpoint, "");
  EXPECT_EQ(on.buffer_steps, 10000);
  EXPECT_EQ(on.hwm, 100000);
  EXPECT_EQ(on.max_queue_size, 100000);
  EXPECT_EQ(on.topic, "");
  EXPECT_FALSE(read_kv_events_config(R"({"enable_kv_cache_events": true, "publisher": "null"})")
                   ->publishes());
  EXPECT_FALSE(read_kv_events_config(R"({"publisher": "zmq"})")->publishes());
}

TEST(KvEventsConfig, RefusesOtherKeysAndTypes) {
  EXPECT_THAT(error_of("x"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of(R"({"publisher": "kafka"})"), HasSubstr("expected zmq or null"));
  EXPECT_THAT(error_of(R"({"end_point": "tcp://*:1"})"), HasSubstr("end_point"));
  EXPECT_THAT(error_of(R"({"max_queue_size": 0})"), HasSubstr("max_queue_size"));
  EXPECT_THAT(error_of(R"({"buffer_steps": -1})"), HasSubstr("buffer_steps"));
  EXPECT_THAT(error_of(R"({"enable_kv_cache_events": "yes"})"),
              HasSubstr("enable_kv_cache_events"));
  EXPECT_THAT(error_of(R"({"topic": "a", "topic": "b"})"), HasSubstr("topic"));
}

EngineConfig with_events(EngineConfig config) {
  config.kv_events_config =
      R"({"enable_kv_cache_events": true, "endpoint": "tcp://*:0", "replay_endpoint": "tcp://*:0"})";
  return config;
}

TEST(KvEvents, AnEngineThatCannotPublishDoesNotStart) {
  EngineConfig config = tiny_config();
  config.kv_events_config = R"({"enable_kv_cache_events": true, "endpoint": "tcp://*:x"})";
  EXPECT_THAT(Engine::create(config).status().message(), HasSubstr("endpoint: got tcp://*:x"));
  config.kv_events_config =
      R"({"enable_kv_cache_events": true, "endpoint": "tcp://*:7", "replay_endpoint": "tcp://*:7"})";
  EXPECT_THAT(Engine::create(config).status().message(), HasSubstr("the ports 7 and 7 overlap"));
  config.kv_events_config = "{";
  EXPECT_THAT(Engine::create(config).status().message(), HasSubstr("`kv_events_config`: got"));
}

// All payloads that the engine has published.
std::string published(const Engine& engine) {
  const std::vector<KvEventsConfig>& sources = EngineInternals::kv_event_sources(engine);
  EXPECT_EQ(sources.size(), 1U);
  ZmqSocket client(ZMQ_DEALER, reachable(sources.front().replay_endpoint));
  client.send({"", big_endian(0)});
  std::string all;
  while (true) {
    const std::vector<std::string> frames = client.receive();
    if (frames.size() != 4 || frames[2] == big_endian(UINT64_MAX)) return all;
    all += frames[3];
  }
}

TEST(KvEvents, NameTheBlocksOfAPromptByTheirHashes) {
  EngineConfig config = with_events(tiny_config());
  config.int_block_hashes = false;
  config.block_hash_seed = "42";
  const std::unique_ptr<Engine> engine = make_engine(config);
  const std::vector<int32_t> prompt = tiny_prompt(40, 1);
  run_all(*engine, {greedy(prompt, 2)});
  std::vector<BlockHash> hashes;
  extend_block_hashes("", {.root = none_hash("42")}, prompt, 2, hashes);
  const std::string all = published(*engine);
  for (const BlockHash& hash : hashes) {
    EXPECT_THAT(all, HasSubstr(std::string(reinterpret_cast<const char*>(hash.data()), 32)));
  }
  EXPECT_THAT(all, HasSubstr("full_attention"));
  EXPECT_THAT(all, HasSubstr("CPU"));
}

TEST(KvEvents, NameTheKindOfEachTable) {
  const std::unique_ptr<Engine> windows = make_engine(with_events(tiny_windows_config()));
  run_all(*windows, {greedy(tiny_prompt(40, 1), 2)});
  const std::string both = published(*windows);
  EXPECT_THAT(both, HasSubstr("full_attention"));
  EXPECT_THAT(both, HasSubstr("sliding_window"));
  const std::unique_ptr<Engine> latent = make_engine(with_events(tiny_deepseek_config()));
  run_all(*latent, {greedy(tiny_prompt(40, 1), 2)});
  EXPECT_THAT(published(*latent), HasSubstr("mla_attention"));
}

TEST(KvEvents, AreNotCollectedWithoutAPublisher) {
  const std::unique_ptr<Engine> engine = make_engine(tiny_config());
  EXPECT_TRUE(EngineInternals::kv_event_sources(*engine).empty());
}

TEST(KvEvents, OutputsSayWhyThePrefixMissed) {
  const std::unique_ptr<Engine> engine = make_engine(tiny_config());
  const auto miss_of = [&](const Request& request) {
    auto stream = value_of(engine->submit(request));
    const std::optional<Output> first = stream->next();
    while (stream->next()) {
    }
    return first->cache_miss;
  };
  EXPECT_EQ(miss_of(greedy(tiny_prompt(40, 1), 3)), CacheMiss::kFirstUse);
  EXPECT_EQ(miss_of(greedy(tiny_prompt(40, 1), 3)), CacheMiss::kNone);
  const CacheMissCounts counts = stats_at_rest(*engine).cache_misses;
  EXPECT_EQ(counts[static_cast<size_t>(CacheMiss::kFirstUse)], 1);
}

}  // namespace
}  // namespace quire::testing

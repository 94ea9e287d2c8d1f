// Tests of the whole engine through its public interface, with a tiny random model.
#include "quire/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "engine/tiny_engine.h"
#include "platform/platform.h"
#include "support/eventually.h"

namespace quire::testing {
namespace {

void expect_all_blocks_free(const Engine& engine) {
  EngineStats stats;
  EXPECT_TRUE(eventually([&] {
    stats = engine.stats();
    return stats.num_running == 0 && stats.num_waiting == 0;
  }));
  EXPECT_EQ(stats.num_free_blocks, stats.num_total_blocks);
}

TEST(Engine, GeneratesUpToMaxTokens) {
  const auto engine = make_engine(tiny_config());
  auto stream = value_of(engine->submit(greedy(tiny_prompt(10, 1), 7)));
  const Collected output = collect(*stream);
  EXPECT_EQ(output.token_ids.size(), 7U);
  EXPECT_EQ(output.finish_reason, FinishReason::kLength);
  expect_all_blocks_free(*engine);
}

// With two slots, an urgent request preempts a running one, which must lose no token.
TEST(Engine, PriorityPreemptsWhereAllSlotsAreTaken) {
  EngineConfig config = tiny_config();
  config.max_num_seqs = 2;
  const auto engine = make_engine(config);
  std::vector<Request> requests = {greedy(tiny_prompt(10, 1), 60), greedy(tiny_prompt(12, 2), 60)};
  const auto alone = run_all(*engine, requests);
  std::vector<Collected> outputs(requests.size());
  std::vector<int> ends;  // written by the engine's thread
  std::promise<void> both_run;
  std::promise<void> urgent_waits;
  std::promise<void> all_ended;
  int num_started = 0;
  const auto on_output = [&](int idx, Output&& output) {
    if (idx < 2) {
      std::vector<int32_t>& ids = outputs[static_cast<size_t>(idx)].token_ids;
      if (ids.empty() && ++num_started == 2) {
        both_run.set_value();
        urgent_waits.get_future().wait();
      }
      ids.insert(ids.end(), output.token_ids.begin(), output.token_ids.end());
    }
    if (output.finish_reason) ends.push_back(idx);
    if (ends.size() == 3) all_ended.set_value();
  };
  const auto submit = [&](int idx, Request request, int priority) {
    request.priority = priority;
    ASSERT_TRUE(engine
                    ->submit(std::move(request),
                             [&, idx](Output&& output) { on_output(idx, std::move(output)); })
                    .ok());
  };
  submit(0, requests[0], 10);
  submit(1, requests[1], 10);
  both_run.get_future().wait();
  submit(2, greedy(tiny_prompt(5, 3), 1), -5);
  urgent_waits.set_value();
  all_ended.get_future().wait();
  EXPECT_THAT(ends, ::testing::ElementsAre(2, 0, 1));
  EXPECT_EQ(outputs[0].token_ids, alone[0].token_ids);
  EXPECT_EQ(outputs[1].token_ids, alone[1].token_ids);
  expect_all_blocks_free(*engine);
  EXPECT_EQ(engine->stats().num_preemptions, 1);
}

TEST(Engine, StopIdEndsTheOutputAndStaysInItsIds) {
  const auto engine = make_engine(tiny_config());
  const auto free_run = run_all(*engine, {greedy(tiny_prompt(10, 1), 8)}).front();
  Request request = greedy(tiny_prompt(10, 1), 8);
  request.sampling.stop_token_ids = {free_run.token_ids[3]};
  const auto output = run_all(*engine, {request}).front();
  const auto first =
      std::find(free_run.token_ids.begin(), free_run.token_ids.end(), free_run.token_ids[3]);
  const std::vector<int32_t> expected(free_run.token_ids.begin(), first + 1);
  EXPECT_EQ(output.token_ids, expected);
  EXPECT_EQ(output.finish_reason, FinishReason::kStop);
  EXPECT_EQ(output.stop_reason, std::to_string(free_run.token_ids[3]));
}

TEST(Engine, ContextEndsTheOutput) {
  EngineConfig config = tiny_config();
  config.max_model_len = 32;
  const auto engine = make_engine(config);
  const auto output = run_all(*engine, {greedy(tiny_prompt(30, 1), 100)}).front();
  EXPECT_EQ(output.token_ids.size(), 2U);
  EXPECT_EQ(output.finish_reason, FinishReason::kLength);
}

TEST(Engine, SeededRequestIsTheSameAloneAndInAFullBatch) {
  const auto engine = make_engine(tiny_config());
  Request seeded = greedy(tiny_prompt(9, 5), 24);
  seeded.sampling.temperature = 1.3F;
  seeded.sampling.top_p = 0.95F;
  seeded.sampling.seed = 42;
  const auto alone = run_all(*engine, {seeded}).front();
  std::vector<Request> crowd;
  for (uint64_t i = 0; i < 40; ++i) {
    Request other = greedy(tiny_prompt(3 + static_cast<int>(i), 100 + i), 20);
    other.sampling.temperature = 1.0F;
    crowd.push_back(other);
  }
  crowd.insert(crowd.begin() + 17, seeded);
  EXPECT_EQ(run_all(*engine, crowd)[17].token_ids, alone.token_ids);
  Request other_seed = seeded;
  other_seed.sampling.seed = 43;
  EXPECT_NE(run_all(*engine, {other_seed}).front().token_ids, alone.token_ids);
}

TEST(Engine, SeveralSamplesOfOnePrompt) {
  const auto engine = make_engine(tiny_config());
  Request request = greedy(tiny_prompt(40, 5), 12);
  request.sampling.temperature = 1.5F;
  request.sampling.seed = 7;
  request.sampling.n = 3;
  auto stream = value_of(engine->submit(request));
  const auto outputs = collect_all(*stream);
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_NE(outputs[0].token_ids, outputs[1].token_ids);
  EXPECT_NE(outputs[1].token_ids, outputs[2].token_ids);
  request.sampling.n = 1;
  request.sampling.seed = 8;  // index 1 of the request above
  EXPECT_EQ(run_all(*engine, {request}).front().token_ids, outputs[1].token_ids);
}

TEST(Engine, LogprobsOfOutputAndPrompt) {
  const auto engine = make_engine(tiny_config());
  Request request = greedy(tiny_prompt(70, 5), 4);
  request.sampling.logprobs = 2;
  request.sampling.prompt_logprobs = 1;
  const auto output = run_all(*engine, {request}).front();
  ASSERT_EQ(output.logprobs.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(output.logprobs[i].size(), 3U);
    EXPECT_EQ(output.logprobs[i][0].token_id, output.token_ids[i]);
    EXPECT_EQ(output.logprobs[i][0].rank, 1);
    EXPECT_EQ(output.logprobs[i][1].token_id, output.token_ids[i]);
    EXPECT_LE(output.logprobs[i][2].logprob, output.logprobs[i][1].logprob);
  }
  ASSERT_EQ(output.prompt_logprobs.size(), 70U);
  EXPECT_TRUE(output.prompt_logprobs[0].empty());
  // Scoring prompt + output must give the output exactly the log probabilities with which it was
  // sampled, for any chunking.
  Request scored = request;
  scored.prompt_token_ids.insert(scored.prompt_token_ids.end(), output.token_ids.begin(),
                                 output.token_ids.end());
  const auto score = run_all(*engine, {scored}).front();
  ASSERT_EQ(score.prompt_logprobs.size(), 74U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(score.prompt_logprobs[70 + i][0].logprob, output.logprobs[i][0].logprob);
  }
}

TEST(Engine, RefusesInvalidRequests) {
  const auto engine = make_engine(tiny_config());
  const auto refusal = [&](const Request& request) {
    const auto stream = engine->submit(request);
    return stream.ok() ? std::string("accepted") : stream.status().message();
  };
  EXPECT_THAT(refusal(greedy({}, 4)), ::testing::HasSubstr("prompt_token_ids"));
  EXPECT_THAT(refusal(greedy({5, 96}, 4)), ::testing::HasSubstr("got 96, expected 0 to 95"));
  EXPECT_THAT(refusal(greedy({-1}, 4)), ::testing::HasSubstr("got -1"));
  EXPECT_THAT(refusal(greedy(tiny_prompt(512, 1), 4)), ::testing::HasSubstr("too long; got 512"));
  Request bad = greedy({5}, 4);
  bad.sampling.top_p = 0.0F;
  EXPECT_THAT(refusal(bad), ::testing::HasSubstr("top_p"));
}

TEST(Engine, RefusesBadConfigurations) {
  const auto refusal = [](auto change) {
    EngineConfig config = tiny_config();
    change(config);
    const auto engine = Engine::create(config);
    return engine.ok() ? std::string("accepted") : engine.status().message();
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal([](auto& c) { c.block_size = 8; }),
              HasSubstr("block_size: must be 16, 32 or 64, got 8"));
  EXPECT_THAT(refusal([](auto& c) { c.device = "tpu"; }),
              HasSubstr("device: must be auto, cpu or cuda, got tpu"));
  EXPECT_THAT(
      refusal([](auto& c) { c.cpu_activations = "int8"; }),
      HasSubstr("cpu_activations: got int8 for a model without matrices of quantized integers"));
  EXPECT_THAT(refusal([](auto& c) { c.cpu_activations = "f16"; }),
              HasSubstr("cpu_activations: must be f32, bf16 or int8, got f16"));
  if (!cuda_status().ok()) {
    EXPECT_THAT(refusal([](auto& c) { c.device = "cuda"; }), HasSubstr("set `device` to cpu"));
  }
  EXPECT_THAT(refusal([](auto& c) { c.attention_backend = "xqa"; }), HasSubstr("xqa"));
  EXPECT_THAT(refusal([](auto& c) { c.kv_cache_dtype = "int4"; }),
              HasSubstr("must be auto, f32, f16, bf16, fp8 or int8, got int4"));
  EXPECT_THAT(refusal([](auto& c) { c.max_model_len = 1000; }), HasSubstr("at most 512"));
  EXPECT_THAT(refusal([](auto& c) { c.max_num_seqs = -1; }),
              HasSubstr("max_num_seqs: must be 0 to"));
  EXPECT_THAT(refusal([](auto& c) { c.model = "/nonexistent"; }), HasSubstr("/nonexistent"));
  EXPECT_THAT(refusal([](auto& c) {
                c.max_model_len = 512;
                c.kv_cache_memory = 1024;
              }),
              HasSubstr("kv_cache_memory"));
}

TEST(Engine, PrefixCacheIsUsedAndSalted) {
  const auto engine = make_engine(tiny_config());
  Request request = greedy(tiny_prompt(100, 5), 4);
  EXPECT_EQ(run_all(*engine, {request}).front().num_cached_tokens, 0);
  EXPECT_EQ(run_all(*engine, {request}).front().num_cached_tokens, 96);
  request.cache_salt = "another tenant";
  EXPECT_EQ(run_all(*engine, {request}).front().num_cached_tokens, 0);
}

TEST(Engine, CancelledRequestsFreeEverything) {
  const auto engine = make_engine(tiny_config());
  for (int round = 0; round < 20; ++round) {
    auto stream =
        value_of(engine->submit(greedy(tiny_prompt(50, static_cast<uint64_t>(round)), 400)));
    if (round % 2 == 0) stream->next();
    stream->cancel();
    EXPECT_EQ(collect(*stream).finish_reason, FinishReason::kCancelled);
  }
  expect_all_blocks_free(*engine);
}

TEST(Engine, DroppedStreamsAreCancelled) {
  const auto engine = make_engine(tiny_config());
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(engine->submit(greedy(tiny_prompt(20, i), 400)).ok());
  }
  expect_all_blocks_free(*engine);
}

TEST(Engine, StreamsEndWithTheEngine) {
  auto engine = make_engine(tiny_config());
  auto stream = value_of(engine->submit(greedy(tiny_prompt(20, 1), 400)));
  engine.reset();
  EXPECT_EQ(collect(*stream).finish_reason, FinishReason::kCancelled);
}

TEST(Engine, ManyThreadsSubmitAndCancel) {
  const auto engine = make_engine(tiny_config());
  std::atomic<int> num_finished = 0;
  std::vector<std::thread> clients;
  for (uint64_t t = 0; t < 4; ++t) {
    clients.emplace_back([&, t] {
      for (uint64_t i = 0; i < 12; ++i) {
        auto stream = engine->submit(greedy(tiny_prompt(5 + static_cast<int>(i), t * 100 + i), 16));
        ASSERT_TRUE(stream.ok());
        if (i % 3 == 0) (*stream)->cancel();
        const Collected output = collect(**stream);
        ASSERT_TRUE(output.finish_reason);
        if (output.finish_reason == FinishReason::kLength) {
          EXPECT_EQ(output.token_ids.size(), 16U);
        }
        ++num_finished;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(num_finished, 48);
  expect_all_blocks_free(*engine);
}

// Allows the ids of a list one after the other, and then no token.
class OneByOne : public TokenConstraint {
 public:
  explicit OneByOne(std::vector<int32_t> ids) : ids_(std::move(ids)) {}
  std::vector<uint32_t> allowed_tokens() override {
    std::vector<uint32_t> mask(64, 0);
    if (next_ < ids_.size()) mask[ids_[next_] / 32] = 1U << (ids_[next_] % 32);
    return mask;
  }
  bool accept(int32_t token_id) override {
    return next_ < ids_.size() && ids_[next_++] == token_id;
  }

 private:
  std::vector<int32_t> ids_;
  size_t next_ = 0;
};

TEST(Engine, AConstrainedSampleKeepsToItsTokensAndChangesNoOtherRequest) {
  const auto engine = make_engine(tiny_config());
  const std::vector<int32_t> ids = {5, 40, 7, 5, 33, 9, 1, 2, 60};
  const Request free_request = greedy(tiny_prompt(10, 1), 40);
  const auto alone = run_all(*engine, {free_request}).front();
  Request constrained = greedy(tiny_prompt(12, 2), static_cast<int>(ids.size()));
  constrained.sampling.n = 2;
  constrained.make_constraint = [&] { return std::make_unique<OneByOne>(ids); };
  auto stream = value_of(engine->submit(constrained));
  EXPECT_EQ(run_all(*engine, {free_request}).front().token_ids, alone.token_ids);
  for (const Collected& output : collect_all(*stream)) {
    EXPECT_EQ(output.token_ids, ids);
    EXPECT_EQ(output.finish_reason, FinishReason::kLength);
  }
  expect_all_blocks_free(*engine);
}

// Allows the ids of a list as well, and then fails with a status.
class Failing final : public OneByOne {
 public:
  explicit Failing(std::vector<int32_t> ids) : OneByOne(ids), num_left_(ids.size()) {}
  bool accept(int32_t token_id) override { return num_left_-- > 0 && OneByOne::accept(token_id); }
  Status status() const override {
    return num_left_ > 0 ? Status() : invalid_argument("[test] it has become too much");
  }

 private:
  size_t num_left_;
};

TEST(Engine, AFailingConstraintReportsTheReason) {
  const auto engine = make_engine(tiny_config());
  Request constrained = greedy(tiny_prompt(12, 2), 10);
  constrained.make_constraint = [] { return std::make_unique<Failing>(std::vector{5, 7}); };
  const auto outputs = run_all(*engine, {constrained, greedy(tiny_prompt(10, 1), 10)});
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kError);
  EXPECT_EQ(outputs[0].error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(outputs[0].error.message(), "[test] it has become too much");
  EXPECT_EQ(outputs[0].token_ids, (std::vector{5, 7}));
  EXPECT_EQ(outputs[1].finish_reason, FinishReason::kLength);
  expect_all_blocks_free(*engine);
}

TEST(Engine, MinTokensGivesWayWhereAConstraintAllowsOnlyTheEnd) {
  const auto engine = make_engine(tiny_config());
  const int32_t eos_id = engine->model_info().eos_token_ids.front();
  for (const std::vector<int32_t>& ids : {std::vector{5, 7, eos_id}, std::vector{eos_id}}) {
    Request request = greedy(tiny_prompt(12, 2), 10);
    request.sampling.ignore_eos = false;
    request.sampling.min_tokens = 8;
    request.make_constraint = [ids] { return std::make_unique<OneByOne>(ids); };
    const auto outputs = run_all(*engine, {request, greedy(tiny_prompt(10, 1), 10)});
    EXPECT_EQ(outputs[0].finish_reason, FinishReason::kStop) << outputs[0].error.message();
    EXPECT_EQ(outputs[0].token_ids, std::vector(ids.begin(), ids.end() - 1));
    EXPECT_EQ(outputs[1].finish_reason, FinishReason::kLength);
  }
  expect_all_blocks_free(*engine);
}

TEST(Engine, AConstraintThatAllowsNothingFailsAlone) {
  const auto engine = make_engine(tiny_config());
  Request constrained = greedy(tiny_prompt(12, 2), 10);
  constrained.make_constraint = [] { return std::make_unique<OneByOne>(std::vector{5, 7}); };
  const auto outputs = run_all(*engine, {constrained, greedy(tiny_prompt(10, 1), 10)});
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::kError);
  EXPECT_EQ(outputs[0].error.code(), StatusCode::kInvalidArgument);  // the request's fault
  EXPECT_EQ(outputs[0].token_ids, (std::vector{5, 7}));
  EXPECT_EQ(outputs[1].finish_reason, FinishReason::kLength);
  expect_all_blocks_free(*engine);
}

}  // namespace
}  // namespace quire::testing

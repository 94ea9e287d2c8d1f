// Failures of a step, or of one sequence in it, injected by a fake runner.
#include "engine/engine_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "engine/fake_runner.h"
#include "engine/input_processor.h"
#include "support/value_of.h"
#include "support/zmq_socket.h"

namespace quire {
namespace {

using testing::FakeRunner;

class EngineCoreTest : public ::testing::Test {
 protected:
  void start(FakeRunner::Faults faults, int num_drafts = 0) {
    const SchedulerConfig config = {.max_num_seqs = 4,
                                    .max_num_batched_tokens = 64,
                                    .max_model_len = 64,
                                    .block_size = 16,
                                    .tables = {{.num_blocks = 32}},
                                    .num_drafts = num_drafts};
    core_ = std::make_unique<EngineCore>(config, std::make_unique<FakeRunner>(faults));
  }

  // Submits a request that generates 10 tokens.
  void submit(Engine::OutputCallback on_output, int n = 1) {
    Request request;
    request.prompt_token_ids = {1, 2, 3};
    request.sampling.max_tokens = 10;
    request.sampling.n = n;
    EXPECT_TRUE(
        core_->submit(testing::value_of(processor_.prepare(request, std::move(on_output)))).ok());
  }
  // Submits a request; the future is its last output.
  std::future<Output> submit() {
    auto last = std::make_shared<std::promise<Output>>();
    submit([last](Output&& output) {
      if (output.finish_reason) last->set_value(std::move(output));
    });
    return last->get_future();
  }
  // Submits a request whose first output blocks until `go`, so that requests submitted meanwhile
  // arrive together.
  std::future<Output> submit_waiting(std::shared_future<void> go) {
    auto last = std::make_shared<std::promise<Output>>();
    submit([last, go](Output&& output) {
      go.wait();
      if (output.finish_reason) last->set_value(std::move(output));
    });
    return last->get_future();
  }

  InputProcessor processor_{nullptr, {.vocab_size = 16, .max_model_len = 64, .eos_ids = {2}}};
  std::unique_ptr<EngineCore> core_;
};

TEST_F(EngineCoreTest, OneSequencesFaultCostsOnlyItsRequest) {
  start({.seq_fault = 2});
  auto first = submit();
  auto second = submit();
  auto third = submit();
  EXPECT_EQ(first.get().finish_reason, FinishReason::kLength);
  const Output failed = second.get();
  EXPECT_EQ(failed.finish_reason, FinishReason::kError);
  EXPECT_THAT(failed.error.message(), ::testing::HasSubstr("NaN"));
  EXPECT_EQ(third.get().finish_reason, FinishReason::kLength);
  EXPECT_TRUE(core_->health().ok());
}

TEST_F(EngineCoreTest, AStepVerifiesAsManyDraftsAsTheRunnerChooses) {
  start({}, 2);
  EXPECT_EQ(submit().get().finish_reason, FinishReason::kLength);
}

TEST_F(EngineCoreTest, ReportsWhenASampleWasFirstScheduled) {
  start({});
  const auto before = std::chrono::steady_clock::now();
  const Output output = submit().get();
  ASSERT_TRUE(output.first_scheduled);
  EXPECT_GE(*output.first_scheduled, before);
  EXPECT_LE(*output.first_scheduled, std::chrono::steady_clock::now());
}

TEST_F(EngineCoreTest, ADeviceFaultFailsAllAndIsRemembered) {
  start({.step_fault_after = 3});
  auto first = submit();
  auto second = submit();
  EXPECT_EQ(first.get().finish_reason, FinishReason::kError);
  EXPECT_EQ(second.get().finish_reason, FinishReason::kError);
  EXPECT_THAT(core_->health().message(), ::testing::HasSubstr("failed in step 3"));
  const Output refused = submit().get();
  EXPECT_EQ(refused.finish_reason, FinishReason::kError);
  EXPECT_EQ(refused.error.code(), StatusCode::kUnavailable);
  core_->stop();  // the step after the failed one has failed too
  EXPECT_THAT(core_->health().message(), ::testing::HasSubstr("failed in step 3"));
}

TEST_F(EngineCoreTest, LeavesTheLogLineOfAFailedNodeToTheNodes) {
  const auto log_with = [&](const char* error) {
    ::testing::internal::CaptureStderr();
    start({.step_fault_after = 0, .step_error = error});
    EXPECT_EQ(submit().get().finish_reason, FinishReason::kError);
    core_->stop();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_with("[device] launch failed in step "), ::testing::HasSubstr("launch failed"));
  EXPECT_EQ(log_with("[nodes] node 1 (b) has failed in step "), "");
}

TEST_F(EngineCoreTest, NoMemoryFailsAllAndEndsNothingElse) {
  start({.no_memory_in = 4});
  auto first = submit();
  auto second = submit();
  EXPECT_EQ(first.get().error.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(second.get().finish_reason, FinishReason::kError);
  EXPECT_EQ(core_->health().code(), StatusCode::kUnavailable)
      << "the error is permanent, so clients must not retry";
  EXPECT_THAT(core_->health().message(), ::testing::HasSubstr("a step failed"));
  EXPECT_EQ(submit().get().finish_reason, FinishReason::kError);
}

TEST_F(EngineCoreTest, ACallbackThatThrowsEndsItsRequestAlone) {
  start({});
  std::promise<void> go;
  auto first = submit_waiting(go.get_future().share());
  auto ends = std::make_shared<std::vector<Output>>();
  auto ended = std::make_shared<std::promise<void>>();
  submit(
      [=](Output&& output) {
        if (!output.finish_reason) throw std::runtime_error("a defect of the embedder");
        ends->push_back(std::move(output));
        if (ends->size() == 2) ended->set_value();
      },
      2);
  auto second = submit();
  go.set_value();
  EXPECT_EQ(first.get().finish_reason, FinishReason::kLength);
  EXPECT_EQ(second.get().finish_reason, FinishReason::kLength);
  ended->get_future().wait();
  EXPECT_NE((*ends)[0].index, (*ends)[1].index);
  for (const Output& end : *ends) {
    EXPECT_EQ(end.finish_reason, FinishReason::kError);
    EXPECT_THAT(end.error.message(), ::testing::HasSubstr("callback threw"));
  }
  core_->stop();
  EXPECT_TRUE(core_->health().ok());
  EXPECT_EQ(core_->stats().num_running, 0);
  EXPECT_EQ(core_->stats().num_waiting, 0);
  EXPECT_EQ(core_->stats().num_free_blocks, core_->stats().num_total_blocks);
}

TEST_F(EngineCoreTest, ACallbackThatThrowsAtItsEndGetsTheEndOnceMore) {
  start({});
  auto reasons = std::make_shared<std::vector<FinishReason>>();
  submit([=](Output&& output) {
    if (!output.finish_reason) return;
    reasons->push_back(*output.finish_reason);
    throw 42;  // not a std::exception
  });
  auto other = submit();
  EXPECT_EQ(other.get().finish_reason, FinishReason::kLength);
  core_->stop();
  EXPECT_THAT(*reasons, ::testing::ElementsAre(FinishReason::kLength, FinishReason::kError));
  EXPECT_TRUE(core_->health().ok());
}

TEST_F(EngineCoreTest, NoRequestIsLostWhereARefusalThrows) {
  start({.step_fault_after = 0});
  std::promise<void> go;
  auto first = submit_waiting(go.get_future().share());  // blocks in its callback until `go`
  submit([](Output&&) { throw std::bad_alloc(); }, 2);
  auto second = submit();
  auto third = submit();
  go.set_value();
  EXPECT_EQ(first.get().finish_reason, FinishReason::kError);
  EXPECT_EQ(second.get().finish_reason, FinishReason::kError);
  EXPECT_EQ(third.get().finish_reason, FinishReason::kError);
  EXPECT_EQ(core_->health().code(), StatusCode::kUnavailable);
}

TEST_F(EngineCoreTest, AFailureReachesAllRequestsEvenIfACallbackThrows) {
  start({.no_memory_in = 4});
  std::promise<void> go;
  auto first = submit_waiting(go.get_future().share());
  submit([](Output&& output) {
    if (output.finish_reason) throw std::bad_alloc();
  });
  auto second = submit();
  go.set_value();
  EXPECT_EQ(first.get().finish_reason, FinishReason::kError);
  EXPECT_EQ(second.get().finish_reason, FinishReason::kError);
  EXPECT_EQ(submit().get().error.code(), StatusCode::kUnavailable)
      << "the engine thread still runs";
}

TEST_F(EngineCoreTest, StopsWhereACallbackThrowsAtItsCancellation) {
  start({});
  std::promise<void> go;
  auto first = submit_waiting(go.get_future().share());
  submit([](Output&&) { throw std::runtime_error("always"); }, 3);
  auto second = submit();
  std::thread stopping([&] { core_->stop(); });
  go.set_value();
  stopping.join();
  EXPECT_TRUE(first.get().finish_reason);
  EXPECT_TRUE(second.get().finish_reason);
}

TEST_F(EngineCoreTest, RefusesRequestsOnceItStops) {
  start({});
  core_->stop();
  Request request;
  request.prompt_token_ids = {1};
  EXPECT_EQ(core_->submit(testing::value_of(processor_.prepare(request, [](Output&&) {}))).code(),
            StatusCode::kUnavailable);
}

TEST_F(EngineCoreTest, CountsDeliveredTokens) {
  start({});
  submit().get();
  core_->stop();  // stops after the last step is counted
  EXPECT_EQ(core_->stats().num_prompt_tokens, 3);
  EXPECT_EQ(core_->stats().num_generated_tokens, 10);
}

TEST_F(EngineCoreTest, AFailureClearsTheCacheForRouters) {
  auto publisher = testing::value_of(
      KvEventPublisher::open({.endpoint = "tcp://*:0", .replay_endpoint = "tcp://*:0"}, 0));
  publisher->start({.tables = {{"full_attention", 0}}});
  testing::ZmqSocket client(ZMQ_DEALER, testing::reachable(publisher->config().replay_endpoint));
  SchedulerConfig config = {.max_model_len = 64, .tables = {{.num_blocks = 32}}};
  config.collects_kv_events = true;
  core_ = std::make_unique<EngineCore>(
      config, std::make_unique<FakeRunner>(FakeRunner::Faults{.step_fault_after = 0}), 0,
      std::move(publisher));
  submit().wait();
  std::string batches;
  for (int i = 0; i < 1000 && batches.empty(); ++i) {  // the last output comes before the event
    client.send({"", testing::big_endian(0)});
    std::vector<std::string> frames = client.receive();
    for (; frames.size() == 4 && frames[2] != testing::big_endian(UINT64_MAX);
         frames = client.receive()) {
      batches += frames[3];
    }
  }
  EXPECT_THAT(batches, ::testing::HasSubstr("AllBlocksCleared"));
}

}  // namespace
}  // namespace quire

// Replicas over fake runners: where requests run, and what the fault of one of them costs.
#include "engine/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <numeric>
#include <optional>

#include "engine/fake_runner.h"
#include "engine/input_processor.h"

namespace quire {
namespace {

using testing::FakeRunner;
using ::testing::HasSubstr;

class ReplicasTest : public ::testing::Test {
 protected:
  void start(const std::vector<FakeRunner::Faults>& faults, int64_t num_prefix_tokens = 1 << 20) {
    const SchedulerConfig config = {.max_num_seqs = 4,
                                    .max_num_batched_tokens = 64,
                                    .max_model_len = 256,
                                    .block_size = 16,
                                    .tables = {{.num_blocks = 64}}};
    std::vector<std::unique_ptr<EngineCore>> cores;
    for (size_t r = 0; r < faults.size(); ++r) {
      cores.push_back(std::make_unique<EngineCore>(config, std::make_unique<FakeRunner>(faults[r]),
                                                   static_cast<int>(r)));
    }
    replicas_ = std::make_unique<Replicas>(std::move(cores), num_prefix_tokens);
    processor_ = std::make_unique<InputProcessor>(
        nullptr, InputProcessor::Limits{.vocab_size = 1000,
                                        .max_model_len = 256,
                                        .eos_ids = {},
                                        .num_replicas = static_cast<int>(faults.size())});
  }

  static Request request(int32_t first_id, int length = 100) {
    Request request;
    request.prompt_token_ids.resize(static_cast<size_t>(length));
    std::iota(request.prompt_token_ids.begin(), request.prompt_token_ids.end(), first_id);
    request.sampling.max_tokens = 10;
    return request;
  }
  static Request in_session(Request request, std::string id) {
    request.session_id = std::move(id);
    return request;
  }
  static Request pinned(Request request, int rank) {
    request.data_parallel_rank = rank;
    return request;
  }

  Result<std::future<Output>> try_submit(Request request) {
    auto last = std::make_shared<std::promise<Output>>();
    auto submission = processor_->prepare(std::move(request), [last](Output&& output) {
      if (output.finish_reason) last->set_value(std::move(output));
    });
    QUIRE_RETURN_IF_ERROR(submission.status());
    last_id_ = submission->id;
    QUIRE_RETURN_IF_ERROR(replicas_->submit(std::move(*submission)));
    return last->get_future();
  }
  // The last output of the request.
  Output run(const Request& request) { return try_submit(request)->get(); }
  int replica_of(const Request& request) { return run(request).data_parallel_rank; }

  std::unique_ptr<InputProcessor> processor_;
  std::unique_ptr<Replicas> replicas_;
  RequestId last_id_ = 0;
};

TEST_F(ReplicasTest, APinnedRequestRunsWhereItMust) {
  start({{}, {}, {}});
  for (const int rank : {2, 0, 1, 1}) {
    const Output output = run(pinned(request(1), rank));
    EXPECT_EQ(output.finish_reason, FinishReason::kLength);
    EXPECT_EQ(output.data_parallel_rank, rank);
  }
  for (const int rank : {-1, 3}) {
    EXPECT_THAT(std::string(try_submit(pinned(request(1), rank)).status().message()),
                HasSubstr("data_parallel_rank: got " + std::to_string(rank) + ", expected 0 to 2"));
  }
  start({{}});
  EXPECT_EQ(replica_of(pinned(request(1), 0)), 0);
  EXPECT_THAT(std::string(try_submit(pinned(request(1), 1)).status().message()),
              HasSubstr("one replica"));
}

TEST_F(ReplicasTest, ARequestFollowsItsPrefix) {
  start({{}, {}});
  ASSERT_EQ(replica_of(pinned(request(1), 1)), 1);
  EXPECT_EQ(replica_of(request(1, 120)), 1);
  EXPECT_EQ(replica_of(request(500)), 0) << "an unknown prompt goes to the first of equal loads";
  Request salted = request(1);
  salted.cache_salt = "x";
  EXPECT_EQ(replica_of(salted), 0) << "another cache";
}

TEST_F(ReplicasTest, WithoutAPrefixCacheOnlyLoadsCount) {
  start({{}, {}}, 0);
  ASSERT_EQ(replica_of(pinned(request(1), 1)), 1);
  EXPECT_EQ(replica_of(request(1)), 0);
}

TEST_F(ReplicasTest, ASessionStaysWhereItRanLast) {
  start({{}, {}, {}});
  EXPECT_EQ(replica_of(pinned(in_session(request(1), "a"), 2)), 2);
  EXPECT_EQ(replica_of(in_session(request(300), "a")), 2) << "a prompt that no replica knows";
  EXPECT_EQ(replica_of(in_session(request(500), "b")), 0);
  EXPECT_EQ(replica_of(pinned(in_session(request(600), "a"), 1)), 1);
  EXPECT_EQ(replica_of(in_session(request(700), "a")), 1) << "it has moved";
  Request of_another_key = in_session(request(800), "a");
  of_another_key.cache_salt = "key";
  EXPECT_EQ(replica_of(of_another_key), 0);
}

// The requests wait for the first one's callback, so that none ends before all are distributed.
TEST_F(ReplicasTest, DistributesRequestsByLoad) {
  start({{}, {}});
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  for (const int rank : {0, 1}) {
    auto held =
        processor_->prepare(pinned(request(rank, 20), rank), [gone](Output&&) { gone.wait(); });
    ASSERT_TRUE(replicas_->submit(std::move(*held)).ok());
  }
  std::vector<std::future<Output>> all;
  for (int i = 0; i < 20; ++i) all.push_back(*try_submit(request(40 * i, 30)));
  for (const ReplicaState& state : replicas_->states()) {
    EXPECT_NEAR(static_cast<double>(state.stats.num_outstanding_tokens), 30 + 10 * 40, 40);
  }
  EXPECT_NEAR(static_cast<double>(replicas_->stats().num_outstanding_tokens), 2 * (30 + 10 * 40),
              80);
  go.set_value();
  std::vector<int> counts(2);
  for (std::future<Output>& one : all) ++counts[static_cast<size_t>(one.get().data_parallel_rank)];
  EXPECT_NEAR(counts[0], 10, 1);
  replicas_->stop();
  EXPECT_EQ(replicas_->stats().num_outstanding_tokens, 0);
}

TEST_F(ReplicasTest, AFaultOfOneCostsItsRequestsAlone) {
  start({{}, {.step_fault_after = 3}});
  auto lost = try_submit(pinned(request(1), 1));
  auto kept = try_submit(pinned(request(1), 0));
  const Output failed = lost->get();
  EXPECT_EQ(failed.finish_reason, FinishReason::kError);
  EXPECT_EQ(failed.data_parallel_rank, 1);
  EXPECT_THAT(std::string(failed.error.message()), HasSubstr("failed in step 3"));
  EXPECT_EQ(kept->get().finish_reason, FinishReason::kLength);
  EXPECT_EQ(replicas_->health().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(replicas_->health().message()),
              HasSubstr("replica 1 has failed: [device]"));
  const std::vector<ReplicaState> states = replicas_->states();
  EXPECT_TRUE(states[0].health.ok());
  EXPECT_FALSE(states[1].health.ok());
  EXPECT_EQ(states[1].stats.num_outstanding_tokens, 0);
}

TEST_F(ReplicasTest, ACancelFindsItsReplica) {
  start({{}, {}, {}});
  for (const int rank : {0, 2}) {
    std::promise<void> go;
    auto last = std::make_shared<std::promise<Output>>();
    auto submission = processor_->prepare(pinned(request(1), rank),
                                          [last, gone = go.get_future().share()](Output&& output) {
                                            gone.wait();
                                            if (output.finish_reason)
                                              last->set_value(std::move(output));
                                          });
    const RequestId id = submission->id;
    ASSERT_TRUE(replicas_->submit(std::move(*submission)).ok());
    replicas_->cancel(id);
    go.set_value();
    EXPECT_EQ(last->get_future().get().finish_reason, FinishReason::kCancelled);
  }
  replicas_->stop();
  EXPECT_FALSE(try_submit(request(1)).ok()) << "all have stopped";
}

}  // namespace
}  // namespace quire

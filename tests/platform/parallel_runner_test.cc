// Several runners as one: what happens if one of them hangs or fails.
#include "platform/parallel_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/byte_archive.h"
#include "base/rank_join.h"
#include "platform/remote_ranks.h"
#include "support/eventually.h"

namespace quire {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using ::testing::HasSubstr;

// A context that only joins ranks.
class FakeContext final : public DeviceContext {
 public:
  FakeContext(RankJoin& join, std::atomic<int64_t>& progress) : join_(join), progress_(progress) {}

  Status bind_thread() override { return {}; }
  const Device& device() const override { return device_; }
  const BackendSet& attention() const override { return attention_; }
  Ops& ops() override { std::abort(); }
  Result<MemoryBudget> memory_budget() const override { return MemoryBudget(); }
  Result<std::unique_ptr<Runner>> make_runner(const RunnerParts&) override { return unused(); }
  Status copy_to_host(const TensorView&, void*) override { return unused(); }
  Status join_ranks(const Status& status) override { return join_.join(status); }
  int64_t num_collectives() const override { return progress_.load(); }

 private:
  static Status unused() { return internal_error("not used"); }
  Result<Buffer> allocate_workspace(size_t) override { return unused(); }

  RankJoin& join_;
  std::atomic<int64_t>& progress_;
  Device device_;
  BackendSet attention_;
};

// Its steps end when all ranks have begun to wait for them. One that hangs never arrives, until the
// join has failed.
class FakeRunner final : public Runner {
 public:
  FakeRunner(RankJoin& join, bool hangs, std::chrono::milliseconds step_time,
             std::atomic<int64_t>& progress)
      : join_(join), hangs_(hangs), step_time_(step_time), progress_(progress) {}

  void enqueue(std::shared_ptr<const BatchPlan>) override {}
  StepResult wait() override {
    for (auto time = 0ms; time < step_time_; time += 20ms) {
      std::this_thread::sleep_for(20ms);  // the time of a part of the step
      ++progress_;
    }
    EXPECT_TRUE(!hangs_ || eventually([this] { return join_.has_failed(); }));
    StepResult result;
    result.error = join_.join({});
    return result;
  }

 private:
  RankJoin& join_;
  const bool hangs_;
  const std::chrono::milliseconds step_time_;
  std::atomic<int64_t>& progress_;
};

struct Ranks {
  explicit Ranks(std::vector<bool> hangs, std::chrono::milliseconds step_time = 0ms)
      : join(static_cast<int>(hangs.size()), [this](const Status&) { ++num_failures; }) {
    std::vector<RankRunner> runners;
    for (const bool one : hangs) {
      contexts.push_back(std::make_unique<FakeContext>(join, progress));
      runners.push_back({.context = contexts.back().get(),
                         .runner = std::make_unique<FakeRunner>(join, one, step_time, progress)});
    }
    runner = make_parallel_runner(std::move(runners), {.nodes = nullptr, .step_timeout = 150ms});
  }
  StepResult step() {
    runner->enqueue(std::make_shared<const BatchPlan>());
    return runner->wait();
  }

  std::atomic<int> num_failures = 0;
  std::atomic<int64_t> progress = 0;
  RankJoin join;
  std::vector<std::unique_ptr<DeviceContext>> contexts;
  std::unique_ptr<Runner> runner;
};

TEST(ParallelRunner, AStepThatHangsFails) {
  for (const bool first_hangs : {false, true}) {
    Ranks ranks({first_hangs, !first_hangs});
    EXPECT_THAT(ranks.step().error.message(), HasSubstr("a step makes no progress for 0."));
    // The ranks are released before the failure is reported.
    EXPECT_TRUE(eventually([&] { return ranks.num_failures > 0; }));
    EXPECT_EQ(ranks.num_failures, 1);
    EXPECT_FALSE(ranks.step().error.ok());
  }
}

TEST(ParallelRunner, AStepThatMakesProgressMayTakeLong) {
  Ranks ranks({false, false}, 500ms);
  EXPECT_TRUE(ranks.step().error.ok());
}

// Has no memory to begin a step.
class FullRunner final : public Runner {
 public:
  void enqueue(std::shared_ptr<const BatchPlan>) override { throw std::bad_alloc(); }
  StepResult wait() override { return {}; }
};

TEST(ParallelRunner, AStepThatCannotBeginReleasesTheOtherRanks) {
  std::atomic<int> num_failures = 0;
  std::atomic<int64_t> progress = 0;
  RankJoin join(2, [&](const Status&) { ++num_failures; });
  FakeContext first(join, progress);
  FakeContext other(join, progress);
  std::vector<RankRunner> runners;
  runners.push_back({.context = &first, .runner = std::make_unique<FullRunner>()});
  runners.push_back(
      {.context = &other, .runner = std::make_unique<FakeRunner>(join, true, 0ms, progress)});
  const auto runner = make_parallel_runner(std::move(runners), {});
  EXPECT_THROW(runner->enqueue(std::make_shared<const BatchPlan>()), std::bad_alloc);
  EXPECT_EQ(num_failures, 1);
}

std::unique_ptr<Nodes> make_node(int node, int fd) {
  NodePlace place;
  place.num_nodes = 2;
  place.node = node;
  std::vector<ConnectedNode> connected;
  connected.push_back({.node = 1 - node, .host = "host", .socket = Socket(fd)});
  return std::make_unique<Nodes>(place, 20s, std::move(connected));
}

TEST(RemoteRanks, AStepThatCannotBeginFailsOnAllNodes) {
  int fds[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const std::shared_ptr<Nodes> first = make_node(0, fds[0]);
  const std::unique_ptr<Nodes> other = make_node(1, fds[1]);
  RemoteRanks ranks(first);
  ranks.enqueue(BatchPlan());
  FullRunner runner;
  const SchedulerConfig limits = {.max_num_seqs = 1,
                                  .max_num_batched_tokens = 1,
                                  .max_model_len = 16,
                                  .block_size = 16,
                                  .tables = {}};
  const Status served = serve_remote_ranks(*other, runner, limits, 1, [] { return false; });
  EXPECT_THAT(served.message(), HasSubstr("[runner] a step could not run; "));
  EXPECT_THAT(first->receive(1).status().message(),
              HasSubstr("node 1 (host) has failed: [runner] a step could not run; "));
}

TEST(ParallelRunner, AnIdleRunnerDoesNotFail) {
  Ranks ranks({false, false});
  EXPECT_TRUE(ranks.step().error.ok());
  std::this_thread::sleep_for(400ms);  // longer than the timeout
  EXPECT_EQ(ranks.num_failures, 0);
  EXPECT_TRUE(ranks.step().error.ok());
}

TEST(ParallelRunner, AStepThatHangsNamesTheNodesThatHaveNotEndedIt) {
  for (const bool first_hangs : {false, true}) {
    int fds[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    const std::shared_ptr<Nodes> first = make_node(0, fds[0]);
    const std::unique_ptr<Nodes> other = make_node(1, fds[1]);  // runs no step
    std::atomic<int64_t> progress = 0;
    RankJoin join(1, [&](const Status& error) { first->fail(error); });
    FakeContext context(join, progress);
    std::vector<RankRunner> runners;
    runners.push_back({.context = &context,
                       .runner = std::make_unique<FakeRunner>(join, first_hangs, 0ms, progress)});
    const auto runner =
        make_parallel_runner(std::move(runners), {.nodes = first, .step_timeout = 150ms});
    runner->enqueue(std::make_shared<const BatchPlan>());
    EXPECT_THAT(runner->wait().error.message(),
                HasSubstr(first_hangs ? "; node 0, node 1 (host) have not ended it"
                                      : "; node 0 has ended it, and waits for node 1 (host)"));
  }
}

// It would end the process as an interrupt does, or as if all had gone well.
TEST(RemoteRanks, AnEndWithStepsInFlightIsAnError) {
  int fds[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const std::shared_ptr<Nodes> first = make_node(0, fds[0]);
  const std::unique_ptr<Nodes> other = make_node(1, fds[1]);
  std::atomic<int64_t> progress = 0;
  RankJoin join(1, [](const Status&) {});
  FakeRunner runner(join, false, 0ms, progress);
  const SchedulerConfig limits = {.max_num_seqs = 1,
                                  .max_num_batched_tokens = 1,
                                  .max_model_len = 16,
                                  .block_size = 16,
                                  .tables = {}};
  {
    RemoteRanks ranks(first);
    ranks.enqueue(BatchPlan());
  }
  const Status served = serve_remote_ranks(*other, runner, limits, 1, [] { return false; });
  EXPECT_EQ(served.code(), StatusCode::kUnavailable);
  EXPECT_THAT(served.message(), HasSubstr("node 0 (host) has ended with 1 steps in flight"));
}

TEST(RemoteRanks, TextsOfNodesArePrintable) {
  int fds[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const std::shared_ptr<Nodes> first = make_node(0, fds[0]);
  const std::unique_ptr<Nodes> other = make_node(1, fds[1]);
  RemoteRanks ranks(first);
  ranks.begin_wait();
  ByteWriter writer;
  writer(static_cast<uint8_t>(StatusCode::kInternal), std::string("\x1b[31m\nforged"),
         std::vector<uint8_t>());
  other->send(0, writer.take());
  EXPECT_EQ(ranks.end_wait(StepResult()).message(),
            "[runner] a step has failed on node 1 (host): \\x1b[31m\\nforged");
}

}  // namespace
}  // namespace quire

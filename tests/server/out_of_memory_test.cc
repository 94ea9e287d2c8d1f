// Each allocation of a request fails in turn: its client always gets a response or a closed
// connection, and no state of the request remains.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "server/fake_engine.h"
#include "server/generation.h"
#include "server/structured_output.h"
#include "support/eventually.h"
#include "support/scarce_memory.h"

namespace quire::server {
namespace {

using testing::eventually;
using testing::FakeEngine;
using testing::ScarceMemory;

// Calls f, which may make `num_left` allocations. Returns whether it ran out of memory.
template <typename F>
bool runs_out(int num_left, F&& f) {
  const ScarceMemory scarce(num_left);
  try {
    f();
    return false;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

// Records the client's side of an exchange.
struct Client {
  std::atomic<int> status = 0;  // of the response
  std::atomic<bool> is_dropped = false;

  bool has_heard() const { return status != 0 || is_dropped; }
};

class WatchedExchange final : public http::Exchange {
 public:
  explicit WatchedExchange(std::shared_ptr<Client> client) : client_(std::move(client)) {}
  ~WatchedExchange() override { client_->is_dropped = true; }
  bool respond(http::Response response) override {
    client_->status = response.status;
    return true;
  }
  void start_stream(int, std::string, http::Headers) override {}
  void write(std::string) override {}
  void end_stream() override {}
  void on_closed(std::function<void()>) override {}

 private:
  const std::shared_ptr<Client> client_;
};

class PlainWriter final : public ResponseWriter {
 public:
  void add(int, Output&&, std::string&) override {}
  void finish(std::string& out) override { out += "done"; }
};

// Each number of allocations gets its own server.
struct Stage {
  FakeEngine engine;
  ServerMetrics metrics;
  Generations generations;
  AdmissionControl admission{{.max_num_seqs = 4}, 0};
  std::shared_ptr<Client> client = std::make_shared<Client>();
  WorkerPool workers{1};

  ~Stage() { workers.stop(); }

  // A request with two prompts.
  Generation::Parts call() {
    Generation::Parts parts;
    parts.requests.resize(2);
    for (Request& request : parts.requests) request.prompt_token_ids = {1};
    parts.writer = std::make_unique<PlainWriter>();
    parts.ticket = *admission.admit(-1, 2, 2);
    parts.exchange = std::make_shared<WatchedExchange>(client);
    return parts;
  }
  GenerationServices services() { return {engine, workers, metrics, generations}; }
  // Sends every request its last output, as an engine that stops does.
  bool leaves_nothing() {
    engine.end_all();
    return eventually([this] { return admission.num_admitted() == 0; });
  }
};

TEST(OutOfMemory, ACallThatCannotBeSubmittedWholeEndsAtOnce) {
  bool is_submitted = false;
  for (int num_left = 0; !is_submitted; ++num_left) {
    ASSERT_LT(num_left, 1000);
    Stage stage;
    Generation::Parts parts = stage.call();
    const GenerationServices services = stage.services();
    const bool is_out = runs_out(num_left, [&] { Generation::start(services, std::move(parts)); });
    is_submitted = !is_out && !stage.client->has_heard();
    if (is_submitted) {
      stage.engine.say(1, "a", FinishReason::kStop);
      stage.engine.say(2, "b", FinishReason::kStop);
      EXPECT_TRUE(eventually([&] { return stage.client->status == 200; }));
    }
    EXPECT_TRUE(stage.client->has_heard()) << num_left;
    EXPECT_TRUE(stage.leaves_nothing()) << num_left;
  }
}

TEST(OutOfMemory, ARequestWhoseOutputIsLostDoesNotWaitForItsOtherSamples) {
  bool is_whole = false;
  for (int num_left = 0; !is_whole; ++num_left) {
    ASSERT_LT(num_left, 1000);
    Stage stage;
    Generation::start(stage.services(), stage.call());
    Output output;
    output.token_ids = {1};
    const bool is_out = runs_out(num_left, [&] { stage.engine.send(1, std::move(output)); });
    if (is_out) {  // an engine ends such a request
      Output last;
      last.finish_reason = FinishReason::kError;
      last.error = internal_error("callback threw");
      stage.engine.send(1, std::move(last));
    } else if (!stage.client->has_heard()) {
      is_whole = true;
      stage.engine.say(1, "a", FinishReason::kStop);
      stage.engine.say(2, "b", FinishReason::kStop);
    }
    EXPECT_TRUE(eventually([&] { return stage.client->has_heard(); })) << num_left;
    EXPECT_EQ(stage.client->status == 200, is_whole) << num_left;
    EXPECT_TRUE(stage.leaves_nothing()) << num_left;
  }
}

// Pushes a request after `num_others` tasks of the workers. Returns whether there was memory for
// the request.
bool push_grammar(int num_others, int num_left) {
  std::promise<void> may_go;
  std::promise<void> done;
  WorkerPool workers(1);
  workers.post([&] { may_go.get_future().wait(); });
  for (int i = 0; i < num_others; ++i) workers.post([] {});
  GrammarQueue queue(workers, {});
  int num_run = 0;
  WorkerPool::Task task = [&] { ++num_run; };
  const bool is_out = runs_out(num_left, [&] { (void)queue.push(0, "a", 1, std::move(task)); });
  EXPECT_EQ(queue.num_waiting(), is_out ? 0 : 1);
  EXPECT_EQ(queue.remove("a"), !is_out);
  EXPECT_TRUE(queue.push(1, "b", 1, [&] { ++num_run; }).ok());
  workers.post([&] { done.set_value(); });
  may_go.set_value();
  done.get_future().wait();
  EXPECT_EQ(num_run, 1);
  EXPECT_EQ(queue.num_waiting(), 0);
  return !is_out;
}

TEST(OutOfMemory, AGrammarThatCannotBeQueuedLeavesNothingBehind) {
  // The length of the workers' queue determines whether it allocates.
  for (int num_others = 0; num_others < 40; ++num_others) {
    SCOPED_TRACE(num_others);
    int num_left = 0;
    while (!push_grammar(num_others, num_left)) ASSERT_LT(++num_left, 1000);
  }
}

}  // namespace
}  // namespace quire::server

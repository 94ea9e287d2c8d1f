#include "engine/run_requests.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

namespace quire {
namespace {

using ::testing::ElementsAre;

// Echoes each request's prompt as its output, one token per byte, from one thread per request.
// `stuck` requests end only when they are cancelled; the second sample of `half` fails.
class EchoEngine {
 public:
  ~EchoEngine() {
    for (std::thread& thread : threads_) thread.join();
  }

  EnginePort port() {
    return {
        .submit = [this](Request request, Engine::OutputCallback on_output) -> Result<RequestId> {
          return submit(std::move(request), std::move(on_output));
        },
        .cancel = [this](RequestId id) { cancel(id); }};
  }

  int max_running() const { return max_running_; }

 private:
  Result<RequestId> submit(Request request, Engine::OutputCallback on_output) {
    if (request.prompt == "bad") return invalid_argument("[request] bad");
    const std::lock_guard lock(mutex_);
    const RequestId id = next_id_++;
    max_running_ = std::max(max_running_, ++running_);
    if (request.prompt == "stuck") {
      stuck_[id] = std::move(on_output);
      return id;
    }
    threads_.emplace_back([this, request = std::move(request), on_output = std::move(on_output)] {
      echo(request, on_output);
    });
    return id;
  }

  void echo(const Request& request, const Engine::OutputCallback& on_output) {
    for (int index = 0; index < request.sampling.n; ++index) {
      for (size_t i = 0; i < request.prompt.size(); ++i) {
        Output output;
        output.index = index;
        if (index == 0 && i == 0) {
          output.prompt_token_ids = std::make_shared<const std::vector<int32_t>>(1, 1);
        }
        output.text = request.prompt.substr(i, 1);
        output.token_ids = {request.prompt[i]};
        const bool last = i + 1 == request.prompt.size();
        if (last) output.finish_reason = FinishReason::kStop;
        if (last && index == 1 && request.prompt == "half") {
          output.finish_reason = FinishReason::kError;
          output.error = internal_error("[sample] no token");
        }
        if (last && index + 1 == request.sampling.n) leave();
        on_output(std::move(output));
      }
    }
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    --running_;
  }

  void cancel(RequestId id) {
    const std::lock_guard lock(mutex_);
    if (!stuck_.contains(id)) return;
    Output output;
    output.finish_reason = FinishReason::kCancelled;
    stuck_[id](std::move(output));
    stuck_.erase(id);
  }

  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::map<RequestId, Engine::OutputCallback> stuck_;
  RequestId next_id_ = 1;
  int running_ = 0;
  int max_running_ = 0;
};

std::vector<Request> requests_of(const std::vector<std::string>& prompts) {
  std::vector<Request> requests;
  for (const std::string& prompt : prompts) {
    Request request;
    request.prompt = prompt;
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(RunRequests, GathersEachResultInOrder) {
  EchoEngine engine;
  const auto results = run_requests(engine.port(), requests_of({"ab", "c", "def"}), {});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].samples[0].text, "ab");
  EXPECT_EQ(results[2].samples[0].text, "def");
  EXPECT_THAT(results[0].samples[0].token_ids, ElementsAre('a', 'b'));
  EXPECT_THAT(results[0].prompt_token_ids, ElementsAre(1));
  EXPECT_EQ(results[2].num_output_tokens(), 3);
  EXPECT_LE(results[2].samples[0].first_token_time, results[2].samples[0].last_token_time);
}

TEST(RunRequests, KeepsTheSamplesApart) {
  EchoEngine engine;
  auto requests = requests_of({"xy"});
  requests[0].sampling.n = 3;
  const auto results = run_requests(engine.port(), std::move(requests), {});
  ASSERT_EQ(results[0].samples.size(), 3U);
  for (const SampleResult& sample : results[0].samples) EXPECT_EQ(sample.text, "xy");
}

TEST(RunRequests, ASamplesErrorIsItsOwn) {
  EchoEngine engine;
  auto requests = requests_of({"half"});
  requests[0].sampling.n = 3;
  const auto results = run_requests(engine.port(), std::move(requests), {});
  EXPECT_TRUE(results[0].error.ok());
  EXPECT_EQ(results[0].first_error().message(), "[sample] no token");
  for (const SampleResult& sample : results[0].samples) EXPECT_EQ(sample.text, "half");
  EXPECT_TRUE(results[0].samples[0].error.ok());
  EXPECT_FALSE(results[0].samples[1].error.ok());
  EXPECT_TRUE(results[0].samples[2].error.ok());
}

TEST(RunRequests, ARefusedRequestCostsOnlyItself) {
  EchoEngine engine;
  int num_done = 0;
  const RunOptions options = {.on_done = [&](size_t, const RequestResult&) { ++num_done; }};
  const auto results = run_requests(engine.port(), requests_of({"a", "bad", "b"}), options);
  EXPECT_EQ(results[0].samples[0].text, "a");
  EXPECT_EQ(results[1].error.message(), "[request] bad");
  EXPECT_EQ(results[2].samples[0].text, "b");
  EXPECT_EQ(num_done, 3);
}

TEST(RunRequests, KeepsToMaxInFlight) {
  EchoEngine engine;
  const auto results = run_requests(engine.port(), requests_of(std::vector<std::string>(40, "abc")),
                                    {.max_in_flight = 3});
  EXPECT_EQ(results.size(), 40U);
  EXPECT_LE(engine.max_running(), 3);
}

TEST(RunRequests, AnInterruptCancelsRunningRequestsAndSkipsTheRest) {
  EchoEngine engine;
  const auto results =
      run_requests(engine.port(), requests_of({"stuck", "stuck", "never"}),
                   {.max_in_flight = 2, .interrupted = [&] { return engine.max_running() == 2; }});
  EXPECT_EQ(results[0].samples[0].finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(results[1].samples[0].finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(results[2].error.code(), StatusCode::kCancelled);
}

TEST(RunRequests, StopsWhenTheReaderHasEnded) {
  EchoEngine engine;
  const auto results = run_requests(engine.port(), requests_of({"stuck", "a"}),
                                    {.on_output = [](size_t, const Output&) { return false; }});
  EXPECT_EQ(results[0].samples[0].finish_reason, FinishReason::kCancelled);
}

TEST(RunRequests, SeesAnInterruptBetweenTwoSubmissions) {
  EchoEngine engine;
  int num_submitted = 0;
  EnginePort port = engine.port();
  const EnginePort counting = {.submit =
                                   [&](Request request, Engine::OutputCallback on_output) {
                                     ++num_submitted;
                                     return port.submit(std::move(request), std::move(on_output));
                                   },
                               .cancel = port.cancel};
  const auto results = run_requests(counting, requests_of(std::vector<std::string>(50, "stuck")),
                                    {.interrupted = [&] { return num_submitted == 3; }});
  EXPECT_EQ(num_submitted, 3);
  EXPECT_EQ(results[49].error.code(), StatusCode::kCancelled);
}

TEST(RunRequests, HandsOutputsOnBetweenTwoSubmissions) {
  // Delivers the output before submit returns.
  int num_submitted = 0;
  const EnginePort port = {
      .submit = [&](Request, Engine::OutputCallback on_output) -> Result<RequestId> {
        Output output;
        output.finish_reason = FinishReason::kStop;
        on_output(std::move(output));
        return RequestId(++num_submitted);
      },
      .cancel = [](RequestId) {}};
  std::vector<int> submitted_when_done;
  run_requests(port, requests_of({"a", "b", "c"}), {.on_done = [&](size_t, const RequestResult&) {
                 submitted_when_done.push_back(num_submitted);
               }});
  EXPECT_THAT(submitted_when_done, ElementsAre(1, 2, 3));
}

TEST(RunRequests, CountsSamplesInFlight) {
  EchoEngine engine;
  auto requests = requests_of(std::vector<std::string>(12, "ab"));
  for (Request& request : requests) request.sampling.n = 4;
  requests[5].sampling.n = 20;
  const auto results = run_requests(engine.port(), std::move(requests), {.max_in_flight = 8});
  EXPECT_LE(engine.max_running(), 2);
  EXPECT_EQ(results[5].samples.size(), 20U);
}

TEST(RunRequests, FreesCompletedRequests) {
  EchoEngine engine;
  size_t num_seen = 0;
  const auto results =
      run_requests(engine.port(), requests_of({"ab", "bad", "c"}),
                   {.frees_done = true, .on_done = [&](size_t, const RequestResult& result) {
                      num_seen += result.samples.empty() ? 0 : result.samples[0].text.size();
                    }});
  EXPECT_EQ(num_seen, 3U);
  for (const RequestResult& result : results) {
    EXPECT_TRUE(result.done);
    EXPECT_TRUE(result.samples.empty());
  }
}

}  // namespace
}  // namespace quire

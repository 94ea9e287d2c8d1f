// Runs many requests through an engine and gathers their outputs on the calling thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "quire/engine.h"

namespace quire {

// The accumulated output of one of a request's n samples.
struct SampleResult {
  using TimePoint = std::chrono::steady_clock::time_point;

  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<PositionLogprobs> logprobs;
  std::optional<FinishReason> finish_reason;
  std::string stop_reason;
  Status error;  // the cause of FinishReason::kError
  TimePoint first_token_time;
  TimePoint last_token_time;
};

// The accumulated output of one request.
struct RequestResult {
  Status error;  // of the whole request: submit() failed, or it was not submitted (kCancelled)
  std::vector<int32_t> prompt_token_ids;
  std::vector<PositionLogprobs> prompt_logprobs;
  std::vector<SampleResult> samples;  // n of them
  int num_cached_tokens = 0;
  SampleResult::TimePoint submit_time;
  bool done = false;

  int num_output_tokens() const;
  // True if the request or one of its samples was cancelled.
  bool was_cancelled() const;
  // The request's error, otherwise the first error of its samples.
  Status first_error() const;
};

// The engine functions that run_requests() calls. Tests provide their own.
struct EnginePort {
  std::function<Result<RequestId>(Request request, Engine::OutputCallback on_output)> submit;
  std::function<void(RequestId id)> cancel;
};
EnginePort engine_port(Engine& engine);

struct RunOptions {
  // Upper bound of the samples in flight. A request counts as n samples. If its n exceeds the
  // bound, it is submitted when no other request is in flight.
  size_t max_in_flight = SIZE_MAX;
  // Frees a request's outputs after on_done, so that run_requests() returns empty results.
  bool frees_done = false;
  // Called with each output. Returning false cancels all requests, for example if stdout is closed.
  std::function<bool(size_t request_idx, const Output& output)> on_output = {};
  // Called once per request, when it has ended.
  std::function<void(size_t request_idx, const RequestResult& result)> on_done = {};
  // Polled a few times per second and between submissions. Returning true cancels all requests.
  std::function<bool()> interrupted = {};
};

// Returns when every request has ended, with one result per request in the same order.
std::vector<RequestResult> run_requests(const EnginePort& engine, std::vector<Request> requests,
                                        const RunOptions& options);

}  // namespace quire

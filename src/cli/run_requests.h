// Many requests through an engine at once, their outputs gathered on the calling thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "quire/engine.h"

namespace quire::cli {

using Clock = std::chrono::steady_clock;

// All of one answer.
struct Answer {
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<PositionLogprobs> logprobs;
  std::optional<FinishReason> finish_reason;
  std::string stop_reason;
  Status error;  // why it ended early, with FinishReason::kError
  Clock::time_point first_token_time;
  Clock::time_point last_token_time;
};

// All of one request.
struct Completion {
  Status error;  // of the whole request: refused, or not run (kCancelled)
  std::vector<int32_t> prompt_token_ids;
  std::vector<PositionLogprobs> prompt_logprobs;
  std::vector<Answer> answers;  // n of them
  int num_cached_tokens = 0;
  Clock::time_point submit_time;
  bool done = false;

  int num_output_tokens() const;
  // It did not come to its own end, or one of its answers did not.
  bool was_cancelled() const;
  // The request's error, or the first of its answers'.
  Status first_error() const;
};

// What an engine does for a batch; tests put their own behind it.
struct EnginePort {
  std::function<Result<RequestId>(Request request, Engine::OutputCallback on_output)> submit;
  std::function<void(RequestId id)> cancel;
};
EnginePort engine_port(Engine& engine);

struct RunOptions {
  // The most answers under way at once; a request has n of them, and one alone always goes in.
  size_t max_in_flight = SIZE_MAX;
  // An ended request's outputs are let go once on_done has seen them: what is returned is empty.
  bool forgets_done = false;
  // Each output as it comes; returns false to cancel everything (nobody reads any more).
  std::function<bool(size_t request_idx, const Output& output)> on_output = {};
  // Each request once, when it has ended.
  std::function<void(size_t request_idx, const Completion& completion)> on_done = {};
  // Polled a few times a second and between two submissions: true cancels whatever runs.
  std::function<bool()> interrupted = {};
};

// Returns once every request has ended, in the order of `requests`.
std::vector<Completion> run_requests(const EnginePort& engine, std::vector<Request> requests,
                                     const RunOptions& options);

}  // namespace quire::cli

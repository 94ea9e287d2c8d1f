#include "engine/run_requests.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/waiting_queue.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollInterval(50);

struct Event {
  size_t request_idx;
  Clock::time_point time;
  Output output;
};

// Carries events from the engine thread to the caller's thread. Shared, because a callback may
// outlive the run.
using EventQueue = WaitingQueue<Event>;

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void take_prompt(RequestResult& result, Output& output) {
  if (output.prompt_token_ids != nullptr) {
    if (result.prompt_token_ids.empty()) result.prompt_token_ids = *output.prompt_token_ids;
    result.num_cached_tokens = output.num_cached_tokens;
  }
  if (!output.prompt_logprobs.empty()) {
    result.prompt_logprobs = std::move(output.prompt_logprobs);
  }
}

void take_output(RequestResult& result, Output output, Clock::time_point time) {
  QUIRE_CHECK(output.index >= 0 && output.index < static_cast<int>(result.samples.size()),
              "[engine] an output of a sample that was not requested");
  take_prompt(result, output);
  SampleResult& sample = result.samples[static_cast<size_t>(output.index)];
  if (!output.token_ids.empty()) {
    if (sample.token_ids.empty()) sample.first_token_time = time;
    sample.last_token_time = time;
  }
  sample.text += output.text;
  append(sample.token_ids, std::move(output.token_ids));
  append(sample.logprobs, std::move(output.logprobs));
  if (!output.finish_reason) return;
  sample.finish_reason = output.finish_reason;
  sample.stop_reason = std::move(output.stop_reason);
  sample.error = std::move(output.error);
  result.done = std::ranges::all_of(
      result.samples, [](const SampleResult& one) { return one.finish_reason.has_value(); });
}

// The state of one call of run_requests().
class Run {
 public:
  Run(const EnginePort& engine, std::vector<Request> requests, const RunOptions& options)
      : engine_(engine),
        requests_(std::move(requests)),
        options_(options),
        ids_(requests_.size()),
        results_(requests_.size()) {}

  std::vector<RequestResult> run() {
    while (num_done_ < requests_.size()) {
      if (!stopping_ && options_.interrupted && options_.interrupted()) stop();
      // Handles outputs between submissions. A submission tokenizes its prompt, so outputs would
      // otherwise wait until the last prompt is tokenized.
      const bool submits = may_submit();
      if (submits) submit(next_++);
      auto event = events_->pop(submits ? std::chrono::milliseconds(0) : kPollInterval);
      for (; event; event = events_->pop(std::chrono::milliseconds(0))) handle(std::move(*event));
    }
    return std::move(results_);
  }

 private:
  static size_t num_samples(const Request& request) {
    return static_cast<size_t>(std::max(1, request.sampling.n));
  }

  bool may_submit() const {
    if (next_ == requests_.size()) return false;
    if (stopping_ || in_flight_ == 0) return true;
    return in_flight_ < options_.max_in_flight &&
           num_samples(requests_[next_]) <= options_.max_in_flight - in_flight_;
  }

  void submit(size_t idx) {
    RequestResult& result = results_[idx];
    if (stopping_) {
      result.error = cancelled("[engine] interrupted before it ran");
      return finish(idx);
    }
    result.submit_time = Clock::now();
    result.samples.resize(num_samples(requests_[idx]));
    auto id = engine_.submit(std::move(requests_[idx]), [events = events_, idx](Output&& output) {
      events->push({idx, Clock::now(), std::move(output)});
    });
    if (!id.ok()) {
      result.error = id.status();
      return finish(idx);
    }
    ids_[idx] = *id;
    in_flight_ += result.samples.size();
  }

  void handle(Event event) {
    RequestResult& result = results_[event.request_idx];
    const bool should_continue =
        !options_.on_output || options_.on_output(event.request_idx, event.output);
    take_output(result, std::move(event.output), event.time);
    if (result.done) {
      in_flight_ -= result.samples.size();
      finish(event.request_idx);
    }
    if (!should_continue && !stopping_) stop();
  }

  void finish(size_t idx) {
    results_[idx].done = true;
    ++num_done_;
    if (options_.on_done) options_.on_done(idx, results_[idx]);
    if (!options_.frees_done) return;
    results_[idx] = RequestResult();
    results_[idx].done = true;
  }

  void stop() {
    stopping_ = true;
    for (size_t i = 0; i < next_; ++i) {
      if (!results_[i].done) engine_.cancel(ids_[i]);
    }
  }

  const EnginePort& engine_;
  std::vector<Request> requests_;
  const RunOptions& options_;
  std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
  std::vector<RequestId> ids_;
  std::vector<RequestResult> results_;
  size_t next_ = 0;
  size_t in_flight_ = 0;
  size_t num_done_ = 0;
  bool stopping_ = false;
};

}  // namespace

int RequestResult::num_output_tokens() const {
  size_t count = 0;
  for (const SampleResult& sample : samples) count += sample.token_ids.size();
  return static_cast<int>(count);
}

bool RequestResult::was_cancelled() const {
  return error.code() == StatusCode::kCancelled ||
         std::ranges::find(samples, FinishReason::kCancelled, &SampleResult::finish_reason) !=
             samples.end();
}

Status RequestResult::first_error() const {
  if (!error.ok()) return error;
  for (const SampleResult& sample : samples) QUIRE_RETURN_IF_ERROR(sample.error);
  return {};
}

EnginePort engine_port(Engine& engine) {
  return {.submit =
              [&engine](Request request, Engine::OutputCallback on_output) {
                return engine.submit(std::move(request), std::move(on_output));
              },
          .cancel = [&engine](RequestId id) { engine.cancel(id); }};
}

std::vector<RequestResult> run_requests(const EnginePort& engine, std::vector<Request> requests,
                                        const RunOptions& options) {
  return Run(engine, std::move(requests), options).run();
}

}  // namespace quire

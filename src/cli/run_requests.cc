#include "cli/run_requests.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>

#include "base/check.h"

namespace quire::cli {
namespace {

constexpr std::chrono::milliseconds kPollInterval(50);

struct Event {
  size_t request_idx;
  Clock::time_point time;
  Output output;
};

// Carries events from the engine thread to the caller's thread. Shared, because a callback may
// outlive the run.
class EventQueue {
 public:
  void push(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    arrived_.notify_one();
  }

  std::optional<Event> pop(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, patience, [&] { return !events_.empty(); })) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
};

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void take_prompt(Completion& completion, Output& output) {
  if (output.prompt_token_ids != nullptr) {
    if (completion.prompt_token_ids.empty()) completion.prompt_token_ids = *output.prompt_token_ids;
    completion.num_cached_tokens = output.num_cached_tokens;
  }
  if (!output.prompt_logprobs.empty()) {
    completion.prompt_logprobs = std::move(output.prompt_logprobs);
  }
}

void take_output(Completion& completion, Output output, Clock::time_point time) {
  QUIRE_CHECK(output.index >= 0 && output.index < static_cast<int>(completion.answers.size()),
              "[cli] an output of an answer that was not asked for");
  take_prompt(completion, output);
  Answer& answer = completion.answers[static_cast<size_t>(output.index)];
  if (!output.token_ids.empty()) {
    if (answer.token_ids.empty()) answer.first_token_time = time;
    answer.last_token_time = time;
  }
  answer.text += output.text;
  append(answer.token_ids, std::move(output.token_ids));
  append(answer.logprobs, std::move(output.logprobs));
  if (!output.finish_reason) return;
  answer.finish_reason = output.finish_reason;
  answer.stop_reason = std::move(output.stop_reason);
  answer.error = std::move(output.error);
  completion.done = std::all_of(completion.answers.begin(), completion.answers.end(),
                                [](const Answer& a) { return a.finish_reason.has_value(); });
}

// The state of one call of run_requests().
class Run {
 public:
  Run(const EnginePort& engine, std::vector<Request> requests, const RunOptions& options)
      : engine_(engine),
        requests_(std::move(requests)),
        options_(options),
        ids_(requests_.size()),
        completions_(requests_.size()) {}

  std::vector<Completion> run() {
    while (num_done_ < requests_.size()) {
      if (!stopping_ && options_.interrupted && options_.interrupted()) stop();
      // Handles outputs between submissions. A submission tokenizes its prompt, so outputs would
      // otherwise wait until the last prompt is tokenized.
      const bool submits = may_submit();
      if (submits) submit(next_++);
      auto event = events_->pop(submits ? std::chrono::milliseconds(0) : kPollInterval);
      for (; event; event = events_->pop(std::chrono::milliseconds(0))) handle(std::move(*event));
    }
    return std::move(completions_);
  }

 private:
  static size_t num_answers(const Request& request) {
    return static_cast<size_t>(std::max(1, request.sampling.n));
  }

  bool may_submit() const {
    if (next_ == requests_.size()) return false;
    if (stopping_ || in_flight_ == 0) return true;
    return in_flight_ < options_.max_in_flight &&
           num_answers(requests_[next_]) <= options_.max_in_flight - in_flight_;
  }

  void submit(size_t idx) {
    Completion& completion = completions_[idx];
    if (stopping_) {
      completion.error = cancelled("[cli] interrupted before it ran");
      return finish(idx);
    }
    completion.submit_time = Clock::now();
    completion.answers.resize(num_answers(requests_[idx]));
    auto id = engine_.submit(std::move(requests_[idx]), [events = events_, idx](Output&& output) {
      events->push({idx, Clock::now(), std::move(output)});
    });
    if (!id.ok()) {
      completion.error = id.status();
      return finish(idx);
    }
    ids_[idx] = *id;
    in_flight_ += completion.answers.size();
  }

  void handle(Event event) {
    Completion& completion = completions_[event.request_idx];
    const bool go_on = !options_.on_output || options_.on_output(event.request_idx, event.output);
    take_output(completion, std::move(event.output), event.time);
    if (completion.done) {
      in_flight_ -= completion.answers.size();
      finish(event.request_idx);
    }
    if (!go_on && !stopping_) stop();
  }

  void finish(size_t idx) {
    completions_[idx].done = true;
    ++num_done_;
    if (options_.on_done) options_.on_done(idx, completions_[idx]);
    if (!options_.forgets_done) return;
    completions_[idx] = Completion();
    completions_[idx].done = true;
  }

  void stop() {
    stopping_ = true;
    for (size_t i = 0; i < next_; ++i) {
      if (!completions_[i].done) engine_.cancel(ids_[i]);
    }
  }

  const EnginePort& engine_;
  std::vector<Request> requests_;
  const RunOptions& options_;
  std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
  std::vector<RequestId> ids_;
  std::vector<Completion> completions_;
  size_t next_ = 0;
  size_t in_flight_ = 0;
  size_t num_done_ = 0;
  bool stopping_ = false;
};

}  // namespace

int Completion::num_output_tokens() const {
  size_t count = 0;
  for (const Answer& answer : answers) count += answer.token_ids.size();
  return static_cast<int>(count);
}

bool Completion::was_cancelled() const {
  return error.code() == StatusCode::kCancelled ||
         std::any_of(answers.begin(), answers.end(), [](const Answer& answer) {
           return answer.finish_reason == FinishReason::kCancelled;
         });
}

Status Completion::first_error() const {
  if (!error.ok()) return error;
  for (const Answer& answer : answers) QUIRE_RETURN_IF_ERROR(answer.error);
  return {};
}

EnginePort engine_port(Engine& engine) {
  return {.submit =
              [&engine](Request request, Engine::OutputCallback on_output) {
                return engine.submit(std::move(request), std::move(on_output));
              },
          .cancel = [&engine](RequestId id) { engine.cancel(id); }};
}

std::vector<Completion> run_requests(const EnginePort& engine, std::vector<Request> requests,
                                     const RunOptions& options) {
  return Run(engine, std::move(requests), options).run();
}

}  // namespace quire::cli

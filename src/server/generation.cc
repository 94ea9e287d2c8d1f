#include "server/generation.h"

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "server/error_response.h"
#include "server/health_watch.h"
#include "server/openai/api_error.h"

namespace quire::server {
namespace {

constexpr int kOk = 200;
constexpr int kClientGone = 499;
constexpr std::string_view kEventStream = "text/event-stream; charset=utf-8";

double seconds_between(RequestLog::Clock::time_point from, RequestLog::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Status shutting_down() {
  return unavailable("[server] the server is shutting down");
}

void Generations::cancel() {
  std::vector<std::shared_ptr<Generation>> all;
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const auto& [pointer, weak] : in_work_) {
      if (auto generation = weak.lock()) all.push_back(std::move(generation));
    }
  }
  for (const auto& generation : all) generation->shut_down();
}

bool Generations::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return is_cancelled_;
}

void Generations::add(const std::shared_ptr<Generation>& generation) {
  const std::lock_guard lock(mutex_);
  in_work_.emplace(generation.get(), generation);
  generation->is_shut_down_ = is_cancelled_;  // no other thread has the generation yet
}

void Generations::remove(const Generation* generation) {
  const std::lock_guard lock(mutex_);
  in_work_.erase(generation);
}

void Generation::start(const GenerationTools& tools, Parts parts) {
  const std::shared_ptr<Generation> generation(new Generation(tools, std::move(parts)));
  tools.generations.add(generation);
  generation->submit_all();
}

Generation::~Generation() {
  tools_.generations.remove(this);
}

Generation::Generation(const GenerationTools& tools, Parts parts)
    : tools_(tools), num_answers_(parts.requests.front().sampling.n), parts_(std::move(parts)) {
  num_unfinished_ = static_cast<int>(parts_.requests.size()) * num_answers_;
  times_.resize(static_cast<size_t>(num_unfinished_));
  ids_.reserve(parts_.requests.size());
  for (const Request& request : parts_.requests) {
    prompts_.push_back({.num_waiting_tokens = static_cast<int64_t>(request.prompt_token_ids.size()),
                        .num_unfinished = num_answers_,
                        .max_tokens = request.sampling.max_tokens});
  }
}

// No worker takes outputs before is_submitted_, so until then this thread may end the call.
void Generation::submit_all() {
  const bool is_done = run_guarded("[server] a call is given up", [this] { submit_requests(); });
  if (!is_done) give_up();
  std::unique_lock lock(mutex_);
  is_submitted_ = true;
  if (!arrivals_.empty()) wake(lock);
}

void Generation::submit_requests() {
  Status refused;
  for (size_t i = 0; i < parts_.requests.size() && refused.ok(); ++i) {
    const int first_choice = static_cast<int>(i) * num_answers_;
    const Result<RequestId> id = tools_.engine.submit(
        std::move(parts_.requests[i]), [self = shared_from_this(), first_choice](Output&& output) {
          self->on_output(first_choice + output.index, std::move(output));
        });
    if (id.ok()) {
      // ids_ was reserved, so this cannot throw: a request whose id is lost could not be cancelled.
      const std::lock_guard lock(mutex_);
      ids_.push_back(*id);
    } else {
      refused = id.status();
    }
  }
  bool is_idle = false;  // no output will come
  bool is_shut_down = false;
  {
    const std::lock_guard lock(mutex_);
    is_idle = ids_.empty();
    is_shut_down = is_shut_down_;
  }
  if (is_shut_down) cancel_all();
  if (!refused.ok() && is_idle) parts_.ticket = Ticket();  // before the response
  if (!refused.ok()) fail(refused, {});
  parts_.exchange->on_closed([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->tools_.metrics.num_cancelled.add();
      self->cancel_all();
    }
  });
}

void Generation::cancel_all() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    ids = ids_;
  }
  for (const RequestId id : ids) tools_.engine.cancel(id);
}

void Generation::shut_down() {
  {
    const std::lock_guard lock(mutex_);
    is_shut_down_ = true;
  }
  cancel_all();
}

void Generation::on_output(int choice_idx, Output&& output) {
  observe(choice_idx, output);
  std::unique_lock lock(mutex_);
  arrivals_.push_back({choice_idx, std::move(output)});
  if (is_submitted_ && !is_working_) wake(lock);
}

void Generation::observe(int choice_idx, const Output& output) {
  const Clock::time_point now = Clock::now();
  ChoiceTimes& times = times_[static_cast<size_t>(choice_idx)];
  ServerMetrics& metrics = tools_.metrics;
  int64_t& num_waiting =
      prompts_[static_cast<size_t>(choice_idx / num_answers_)].num_waiting_tokens;
  if (num_waiting > 0) parts_.ticket.begun(std::exchange(num_waiting, 0));
  if (!output.token_ids.empty()) {
    if (times.num_tokens == 0) {
      times.first_token = now;
      metrics.time_to_first_token.observe(seconds_between(parts_.log.arrived, now));
      const size_t num_prompt = output.prompt_token_ids ? output.prompt_token_ids->size() : 0;
      metrics.num_prompt_tokens.observe(static_cast<double>(num_prompt));
    } else {
      metrics.inter_token_latency.observe(seconds_between(times.last_token, now));
    }
    times.last_token = now;
    times.num_tokens += static_cast<int>(output.token_ids.size());
  }
  if (output.finish_reason) observe_end(choice_idx, output, now);
}

void Generation::observe_end(int choice_idx, const Output& output, Clock::time_point now) {
  const ChoiceTimes& times = times_[static_cast<size_t>(choice_idx)];
  ServerMetrics& metrics = tools_.metrics;
  metrics.finished(*output.finish_reason);
  metrics.num_generation_tokens.observe(times.num_tokens);
  metrics.e2e_request_latency.observe(seconds_between(parts_.log.arrived, now));
  if (output.first_scheduled && times.num_tokens > 0) {
    const Clock::time_point scheduled = *output.first_scheduled;
    metrics.queue_time.observe(seconds_between(parts_.log.arrived, scheduled));
    metrics.prefill_time.observe(seconds_between(scheduled, times.first_token));
    metrics.decode_time.observe(seconds_between(times.first_token, times.last_token));
    metrics.inference_time.observe(seconds_between(scheduled, times.last_token));
  }
  PromptState& prompt = prompts_[static_cast<size_t>(choice_idx / num_answers_)];
  prompt.longest = std::max(prompt.longest, times.num_tokens);
  if (--prompt.num_unfinished > 0) return;
  metrics.max_generation_tokens.observe(prompt.longest);
  metrics.params_n.observe(num_answers_);
  metrics.params_max_tokens.observe(prompt.max_tokens);
}

// is_working_ stays set for the worker that this call posts. If the post fails, this thread gives
// the call up; otherwise the client would wait for a response that no worker writes.
void Generation::wake(std::unique_lock<std::mutex>& lock) {
  is_working_ = true;
  lock.unlock();
  const bool is_posted = run_guarded("[server] no worker for a call, which is given up", [this] {
    tools_.workers.post([self = shared_from_this()] { self->work(); });
  });
  if (!is_posted) give_up();
}

void Generation::work() {
  if (!run_guarded("[server] a call is given up", [this] { work_off(); })) give_up();
}

// Dropping the exchange makes the connection respond by itself: with a 500, or by cutting the
// stream.
void Generation::give_up() noexcept {
  has_ended_ = true;
  parts_.exchange = nullptr;
  {
    const std::lock_guard lock(mutex_);
    arrivals_.clear();
    is_working_ = false;
  }
  run_guarded("[server] a call that was given up runs on", [this] { cancel_all(); });
}

void Generation::work_off() {
  while (true) {
    std::deque<Arrival> arrivals;
    {
      const std::lock_guard lock(mutex_);
      arrivals.swap(arrivals_);
      if (arrivals.empty()) is_working_ = false;
    }
    if (arrivals.empty()) return;
    std::string piece;  // one write for all outputs that have arrived
    for (Arrival& arrival : arrivals) take(std::move(arrival), piece);
    send(std::move(piece));
  }
}

void Generation::take(Arrival&& arrival, std::string& piece) {
  Output& output = arrival.output;
  const std::optional<FinishReason> reason = output.finish_reason;
  parts_.log.num_completion_tokens += static_cast<int>(output.token_ids.size());
  if (reason && --num_unfinished_ == 0) parts_.ticket = Ticket();  // before the response
  if (has_ended_) return;
  if (reason == FinishReason::kError) return fail(output.error, std::move(piece));
  if (reason == FinishReason::kCancelled) {
    if (tools_.generations.is_cancelled()) return fail(shutting_down(), std::move(piece));
    return end(kClientGone, "cancelled");
  }
  if (reason) parts_.log.outcome = finish_reason_name(*reason);
  parts_.writer->add(arrival.choice_idx, std::move(output), piece);
  if (num_unfinished_ == 0) parts_.writer->finish(piece);
}

// For a stream, `piece` is the new text. Otherwise it is empty until it is the whole body.
void Generation::send(std::string&& piece) {
  if (has_ended_ || piece.empty()) return;
  http::Exchange& exchange = *parts_.exchange;
  if (!parts_.is_stream) {
    if (exchange.respond({.headers = parts_.headers, .body = std::move(piece)})) {
      return end(kOk, parts_.log.outcome);
    }
    const ApiError error = answer_too_large();
    exchange.respond(error_response(error, parts_.headers));
    return end(error.http_status, error.message);
  }
  start_stream();
  exchange.write(std::move(piece));
  if (num_unfinished_ > 0) return;
  exchange.end_stream();
  end(kOk, parts_.log.outcome);
}

// Sends the response head with the first piece: before that, a failure can still set its own
// status.
void Generation::start_stream() {
  if (std::exchange(has_started_stream_, true)) return;
  http::Headers all = parts_.headers;
  all.emplace_back("cache-control", "no-cache");
  all.emplace_back("x-accel-buffering", "no");
  parts_.exchange->start_stream(kOk, std::string(kEventStream), std::move(all));
}

// `piece` is the text that came before the failure.
void Generation::fail(const Status& error, std::string&& piece) {
  // A failed engine is always reported as unavailable (503), since a 429 would invite the client to
  // try again at once.
  const bool is_out = !tools_.engine.health().ok();
  const ApiError call = api_error(is_out ? engine_is_out() : error);
  http::Exchange& exchange = *parts_.exchange;
  if (has_started_stream_ || (parts_.is_stream && !piece.empty())) {
    start_stream();
    exchange.write(std::move(piece) + sse_event(error_body(call)) + std::string(kSseDone));
    exchange.end_stream();
  } else {
    exchange.respond(error_response(call, parts_.headers));
  }
  parts_.log.write_failure(call);
  const ApiError fault = api_error(error);
  end(call.http_status, fault.http_status >= 500 ? error.message() : loggable(fault));
  cancel_all();
}

void Generation::end(int http_status, std::string_view outcome) {
  has_ended_ = true;
  parts_.log.outcome = outcome;
  parts_.log.write(http_status);
  tools_.metrics.answered(http_status);
}

}  // namespace quire::server

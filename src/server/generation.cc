#include "server/generation.h"

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "server/health_watch.h"

namespace quire::server {
namespace {

constexpr int kOk = 200;
constexpr int kInternalError = 500;
constexpr int kUnavailable = 503;

double seconds_between(RequestLog::Clock::time_point from, RequestLog::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

// --- Generations ---

void Generations::cancel() {
  std::vector<std::shared_ptr<Generation>> all;
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const auto& [pointer, weak] : running_) {
      if (auto generation = weak.lock()) all.push_back(std::move(generation));
    }
  }
  for (const auto& generation : all) generation->shut_down();
}

bool Generations::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return is_cancelled_;
}

int Generations::num_running() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(running_.size());
}

void Generations::add(const std::shared_ptr<Generation>& generation) {
  const std::lock_guard lock(mutex_);
  running_.emplace(generation.get(), generation);
  generation->is_shut_down_ = is_cancelled_;  // no other thread has the generation yet
}

void Generations::remove(const Generation* generation) {
  const std::lock_guard lock(mutex_);
  running_.erase(generation);
}

// --- Submission, on the request worker ---

void Generation::start(const GenerationServices& services, Parts parts) {
  const std::shared_ptr<Generation> generation(new Generation(services, std::move(parts)));
  services.generations.add(generation);
  generation->submit();
}

Generation::Generation(const GenerationServices& services, Parts parts)
    : services_(services),
      num_per_prompt_(parts.requests.front().sampling.n),
      parts_(std::move(parts)) {
  num_unfinished_ = static_cast<int>(parts_.requests.size()) * num_per_prompt_;
  timings_.resize(static_cast<size_t>(num_unfinished_));
  ids_.reserve(parts_.requests.size());
  for (const Request& request : parts_.requests) {
    prompts_.push_back({.num_queued_tokens = static_cast<int64_t>(request.prompt_token_ids.size()),
                        .num_unfinished = num_per_prompt_,
                        .max_tokens = request.embedding ? 0 : request.sampling.max_tokens});
  }
}

Generation::~Generation() {
  services_.generations.remove(this);
}

void Generation::submit() {
  if (!run_guarded("[server] aborting a request after an exception", [this] { submit_requests(); }))
    abort_request();
  std::unique_lock lock(mutex_);
  delivery_ = Delivery::kIdle;
  if (!arrivals_.empty()) post_drain(lock);
}

void Generation::submit_requests() {
  const Status status = submit_each();
  bool is_shut_down = false;
  {
    const std::lock_guard lock(mutex_);
    is_shut_down = is_shut_down_;
  }
  if (is_shut_down) cancel_all();
  if (!status.ok()) {
    // No request was submitted, so no output will arrive. The ticket is released before the
    // response, so that the client's next request finds its place free.
    if (!has_submitted()) parts_.ticket = AdmissionTicket();
    fail(status, {});
  }
  parts_.exchange->on_closed([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->services_.metrics.num_cancelled.add();
      self->cancel_all();
    }
  });
}

// Submits until the engine refuses one request.
Status Generation::submit_each() {
  for (size_t i = 0; i < parts_.requests.size(); ++i) {
    const int first_choice = static_cast<int>(i) * num_per_prompt_;
    QUIRE_ASSIGN_OR_RETURN(
        const RequestId id,
        services_.engine.submit(std::move(parts_.requests[i]),
                                [self = shared_from_this(), first_choice](Output&& output) {
                                  self->on_output(first_choice + output.index, std::move(output));
                                }));
    // push_back() cannot throw, because ids_ was reserved. Without its id, a request could not be
    // cancelled.
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
  }
  return {};
}

bool Generation::has_submitted() const {
  const std::lock_guard lock(mutex_);
  return !ids_.empty();
}

// --- Cancellation, on any thread ---

void Generation::cancel_all() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    ids = ids_;
  }
  for (const RequestId id : ids) services_.engine.cancel(id);
}

void Generation::shut_down() {
  {
    const std::lock_guard lock(mutex_);
    is_shut_down_ = true;  // submit_requests() cancels requests that are submitted later
  }
  cancel_all();
}

// --- Outputs, on the engine's thread ---

void Generation::on_output(int choice_idx, Output&& output) {
  observe(choice_idx, output);
  std::unique_lock lock(mutex_);
  arrivals_.push_back({choice_idx, std::move(output)});
  if (delivery_ == Delivery::kIdle) post_drain(lock);
}

// If the post fails, this thread aborts the request. Otherwise the client would wait for a response
// that no worker writes.
void Generation::post_drain(std::unique_lock<std::mutex>& lock) {
  delivery_ = Delivery::kDraining;
  lock.unlock();
  const bool is_posted = run_guarded(
      "[server] aborting a request: cannot queue its outputs for a worker",
      [this] { services_.writers.post([self = shared_from_this()] { self->drain(); }); });
  if (!is_posted) abort_request();
}

void Generation::observe(int choice_idx, const Output& output) {
  const Clock::time_point now = Clock::now();
  ChoiceTiming& timing = timings_[static_cast<size_t>(choice_idx)];
  EngineMetrics& metrics = services_.metrics.of(output.data_parallel_rank);
  int64_t& num_queued =
      prompts_[static_cast<size_t>(choice_idx / num_per_prompt_)].num_queued_tokens;
  if (num_queued > 0) parts_.ticket.start_prompt(std::exchange(num_queued, 0));
  if (!output.token_ids.empty()) {
    if (timing.num_tokens == 0) {
      timing.first_token = now;
      metrics.time_to_first_token.observe(seconds_between(parts_.log.arrived, now));
      observe_prompt(output);
    } else {
      metrics.inter_token_latency.observe(seconds_between(timing.last_token, now));
    }
    timing.last_token = now;
    timing.num_tokens += static_cast<int>(output.token_ids.size());
  }
  if (!output.embedding.empty()) {
    timing.first_token = timing.last_token = now;
    observe_prompt(output);
  }
  if (output.finish_reason) observe_end(choice_idx, output, now);
}

void Generation::observe_prompt(const Output& output) {
  const size_t num_prompt = output.prompt_token_ids ? output.prompt_token_ids->size() : 0;
  services_.metrics.of(output.data_parallel_rank)
      .num_prompt_tokens.observe(static_cast<double>(num_prompt));
}

void Generation::observe_end(int choice_idx, const Output& output, Clock::time_point now) {
  const ChoiceTiming& timing = timings_[static_cast<size_t>(choice_idx)];
  EngineMetrics& metrics = services_.metrics.of(output.data_parallel_rank);
  metrics.count_finish(*output.finish_reason);
  metrics.num_generation_tokens.observe(timing.num_tokens);
  metrics.e2e_request_latency.observe(seconds_between(parts_.log.arrived, now));
  if (output.first_scheduled && (timing.num_tokens > 0 || !output.embedding.empty())) {
    const Clock::time_point scheduled = *output.first_scheduled;
    metrics.queue_time.observe(seconds_between(parts_.log.arrived, scheduled));
    metrics.prefill_time.observe(seconds_between(scheduled, timing.first_token));
    metrics.decode_time.observe(seconds_between(timing.first_token, timing.last_token));
    metrics.inference_time.observe(seconds_between(scheduled, timing.last_token));
  }
  PromptState& prompt = prompts_[static_cast<size_t>(choice_idx / num_per_prompt_)];
  prompt.longest = std::max(prompt.longest, timing.num_tokens);
  if (--prompt.num_unfinished > 0) return;
  metrics.max_generation_tokens.observe(prompt.longest);
  metrics.params_n.observe(num_per_prompt_);
  metrics.params_max_tokens.observe(prompt.max_tokens);
}

// --- The response, on the writer worker ---

void Generation::drain() {
  if (!run_guarded("[server] aborting a request after an exception", [this] { drain_arrivals(); }))
    abort_request();
}

void Generation::drain_arrivals() {
  while (true) {
    std::deque<Arrival> arrivals;
    {
      const std::lock_guard lock(mutex_);
      arrivals.swap(arrivals_);
      if (arrivals.empty()) delivery_ = Delivery::kIdle;
    }
    if (arrivals.empty()) return;
    std::string piece;  // one write for all outputs that have arrived
    for (Arrival& arrival : arrivals) process_arrival(std::move(arrival), piece);
    send(std::move(piece));
  }
}

void Generation::process_arrival(Arrival&& arrival, std::string& piece) {
  Output& output = arrival.output;
  const std::optional<FinishReason> reason = output.finish_reason;
  parts_.log.num_completion_tokens += static_cast<int>(output.token_ids.size());
  if (reason && --num_unfinished_ == 0) parts_.ticket = AdmissionTicket();  // before the response
  if (response_ == ResponseState::kEnded) return;
  if (reason == FinishReason::kError) return fail(output.error, std::move(piece));
  if (reason == FinishReason::kCancelled) {
    if (services_.generations.is_cancelled()) return fail(shutting_down(), std::move(piece));
    return end(kClientGone, "cancelled");
  }
  if (reason) parts_.log.outcome = finish_reason_name(*reason);
  parts_.writer->add(arrival.choice_idx, std::move(output), piece);
  if (num_unfinished_ == 0) parts_.writer->finish(piece);
}

// In a stream, `piece` is the new text. Otherwise it is empty until it holds the complete body.
void Generation::send(std::string&& piece) {
  if (response_ == ResponseState::kEnded || piece.empty()) return;
  if (!parts_.is_stream) {
    const size_t num_bytes = piece.size();
    if (parts_.exchange->respond({.headers = parts_.headers, .body = std::move(piece)})) {
      parts_.log.num_response_bytes = num_bytes;
      return end(kOk, parts_.log.outcome);
    }
    const ApiError error = responses_too_large();
    respond_with(error);
    return end(error.http_status, error.message);
  }
  write(std::move(piece));
  if (num_unfinished_ > 0) return;
  parts_.exchange->end_stream();
  end(kOk, parts_.log.outcome);
}

// The response head is sent with the first piece, so that a failure before it can still set the
// status.
void Generation::start_stream() {
  if (response_ == ResponseState::kStreaming) return;
  response_ = ResponseState::kStreaming;
  http::Headers all = parts_.headers;
  all.emplace_back("cache-control", "no-cache");
  all.emplace_back("x-accel-buffering", "no");
  parts_.exchange->start_stream(kOk, std::string(parts_.writer->stream_type()), std::move(all));
}

void Generation::write(std::string&& piece) {
  start_stream();
  parts_.log.num_response_bytes += piece.size();
  parts_.exchange->write(std::move(piece));
}

void Generation::respond_with(const ApiError& error) {
  http::Response response = error_response(error, parts_.error_shape, parts_.headers);
  parts_.log.num_response_bytes = response.body.size();
  parts_.exchange->respond(std::move(response));
}

// `piece` is text from before the failure that is not sent yet.
void Generation::fail(const Status& error, std::string&& piece) {
  ApiError sent = api_error(error);
  if (!services_.engine.health().ok()) {
    // A request that the engine had accepted may have caused the engine's failure. It gets a 500,
    // because proxies retry requests that got a 503.
    const int status = has_submitted() ? kInternalError : kUnavailable;
    sent = make_api_error(status, engine_unavailable().message());
    sent.cause = error.message();
  }
  if (response_ == ResponseState::kStreaming || (parts_.is_stream && !piece.empty())) {
    parts_.writer->fail(sent, piece);
    write(std::move(piece));
    parts_.exchange->end_stream();
  } else {
    respond_with(sent);
  }
  parts_.log.write_failure(sent);
  const ApiError cause = api_error(error);
  end(sent.http_status, cause.http_status >= 500 ? error.message() : loggable(cause));
  cancel_all();
}

void Generation::end(int http_status, std::string_view outcome) {
  response_ = ResponseState::kEnded;
  parts_.log.outcome = outcome;
  parts_.log.write(http_status);
  services_.metrics.count_response(http_status);
}

// Dropping the exchange makes the connection respond by itself: with a 500, or by cutting the
// stream.
void Generation::abort_request() noexcept {
  response_ = ResponseState::kEnded;
  parts_.exchange = nullptr;
  {
    const std::lock_guard lock(mutex_);
    arrivals_.clear();
    if (delivery_ == Delivery::kDraining) delivery_ = Delivery::kIdle;
  }
  run_guarded("[server] could not cancel an aborted request; it runs to its end",
              [this] { cancel_all(); });
}

}  // namespace quire::server

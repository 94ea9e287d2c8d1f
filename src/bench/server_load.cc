#include "bench/server_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/machine.h"

namespace quire::bench {
namespace {

bool has_text(simdjson::dom::element object, std::string_view name) {
  std::string_view text;
  return !object[name].get_string().get(text) && !text.empty();
}

// Whether a completion's choice has text, or a chat's delta has content, reasoning or part of a
// tool call.
bool has_output(simdjson::dom::element choice) {
  if (has_text(choice, "text")) return true;
  simdjson::dom::element delta;
  if (choice["delta"].get(delta)) return false;
  simdjson::dom::array calls;
  return has_text(delta, "content") || has_text(delta, "reasoning_content") ||
         has_text(delta, "reasoning") || !delta["tool_calls"].get_array().get(calls);
}

using Clock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::milliseconds(50);
constexpr size_t kMaxErrorBytes = 2048;
// Bounds the memory of a response. A token arrives in a few events at most.
constexpr int64_t kMaxEventsPerToken = 4;
constexpr int64_t kMaxExtraEvents = 1000;  // roles, usage, empty choices
constexpr int64_t kMaxUsageTokens = INT32_MAX;

double cpu_seconds() {
  return 1e-9 * static_cast<double>(process_cpu_ns());
}

// Reads the response of one request: its stream, or the error body.
class ResponseReader final : public http_client::ResponseHandler {
 public:
  ResponseReader(ServedResponse& response, int output_len, std::function<void()> on_done)
      : response_(response),
        on_done_(std::move(on_done)),
        stream_(response, Clock::now(), output_len) {}

  void on_head(int status) override { status_ = status; }

  bool on_body(std::string_view piece) override {
    if (status_ == 200) return stream_.feed(piece, Clock::now());
    refusal_.append(piece.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, refusal_.size())));
    return true;
  }

  void on_end(const Status& status) override {
    if (status_ == 200 && status.ok()) {
      stream_.finish();
    } else if (response_.end != ServedResponse::End::kFailed) {
      response_.end = ServedResponse::End::kFailed;
      response_.error_kind = !status.ok() ? (status_ == 0 ? "no response" : "cut stream")
                                          : fmt::format("HTTP {}", status_);
      response_.error_message = status.ok() ? refusal_ : status.message();
    }
    on_done_();
  }

 private:
  ServedResponse& response_;
  std::function<void()> on_done_;
  StreamReader stream_;
  int status_ = 0;
  std::string refusal_;
};

class Load : public std::enable_shared_from_this<Load> {
 public:
  Load(http_client::Client& client, const std::vector<TimedRequest>& requests,
       const LoadConfig& config, const Hooks& hooks)
      : client_(client),
        requests_(requests),
        config_(config),
        hooks_(hooks),
        responses_(requests.size()) {}

  LoadResult run() {
    const double cpu_before = cpu_seconds();
    start_ = Clock::now();
    send_due();
    tick();
    if (num_done_ < requests_.size()) client_.run();
    is_done_ = true;
    LoadResult result;
    result.duration_s = seconds(Clock::now() - start_);
    result.cpu_s = cpu_seconds() - cpu_before;
    result.peak_concurrent = peak_;
    result.responses = responses_;  // a copy, because requests that still run write to the member
    return result;
  }

 private:
  bool has_capacity() const {
    return config_.max_concurrency == 0 || in_flight() < config_.max_concurrency;
  }
  int in_flight() const { return static_cast<int>(next_ - num_done_); }

  void send_due() {
    if (is_done_) return;
    while (next_ < requests_.size() && has_capacity()) {
      const Clock::time_point due =
          start_ + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(requests_[next_].due_s));
      if (due > Clock::now()) return wait_until(due);
      send(next_++);
    }
  }

  // Keeps at most one timer, which is set for the next request.
  void wait_until(Clock::time_point due) {
    if (is_waiting_) return;
    is_waiting_ = true;
    client_.call_at(due, [self = shared_from_this()] {
      self->is_waiting_ = false;
      self->send_due();
    });
  }

  void send(size_t idx) {
    peak_ = std::max(peak_, in_flight());
    responses_[idx].sent_s = seconds(Clock::now() - start_);
    client_.send(
        {.method = "POST", .target = config_.target, .body = requests_[idx].body},
        std::make_shared<ResponseReader>(responses_[idx], requests_[idx].output_len,
                                         [self = shared_from_this()] { self->on_done(); }));
  }

  void on_done() {
    if (is_done_) return;
    ++num_done_;
    hooks_.on_progress(num_done_, requests_.size(),
                       [this] { return fmt::format("{} running", in_flight()); });
    if (num_done_ == requests_.size()) return client_.stop();
    send_due();
  }

  void tick() {
    if (is_done_) return;
    if (hooks_.interrupted()) return client_.stop();
    client_.call_at(Clock::now() + kTick, [self = shared_from_this()] { self->tick(); });
  }

  http_client::Client& client_;
  const std::vector<TimedRequest>& requests_;
  const LoadConfig& config_;
  const Hooks& hooks_;
  // One per request. The list is never resized, because readers keep references to its elements.
  std::vector<ServedResponse> responses_;
  Clock::time_point start_;
  size_t next_ = 0;  // index of the next request to send
  size_t num_done_ = 0;
  int peak_ = 0;
  bool is_waiting_ = false;
  bool is_done_ = false;
};

}  // namespace

std::vector<double> arrival_times(const ArrivalConfig& config, int num_requests) {
  std::vector<double> times(static_cast<size_t>(num_requests), 0.0);
  if (std::isinf(config.request_rate) || times.empty()) return times;
  std::mt19937_64 random(config.seed);
  std::gamma_distribution<double> interval(config.burstiness,
                                           1.0 / (config.request_rate * config.burstiness));
  double now = 0.0;
  for (double& time : times) time = now += interval(random);
  const double stretch = num_requests / config.request_rate / now;
  if (std::isfinite(stretch)) {
    for (double& time : times) time *= stretch;
  }
  return times;
}

std::string request_body(const DatasetRequest& request, const RequestConfig& config) {
  JsonWriter json;
  json.begin_object();
  json.field("model", config.model);
  if (config.is_chat) {
    json.key("messages");
    json.begin_array();
    json.begin_object();
    json.field("role", "user");
    json.field("content", request.text);
    json.end_object();
    json.end_array();
    json.field("max_completion_tokens", request.output_len);
  } else {
    json.key("prompt");
    if (request.text.empty()) {
      json.ids(request.token_ids);
    } else {
      json.value(request.text);
    }
    json.field("max_tokens", request.output_len);
  }
  json.field("temperature", config.temperature);
  if (config.ignore_eos) json.field("ignore_eos", true);
  json.field("stream", true);
  json.key("stream_options");
  json.begin_object();
  json.field("include_usage", true);
  json.end_object();
  json.end_object();
  return json.text();
}

StreamReader::StreamReader(ServedResponse& response, TimePoint sent, int output_len)
    : response_(response),
      sent_(sent),
      output_len_(output_len),
      num_events_left_(output_len * kMaxEventsPerToken + kMaxExtraEvents),
      last_event_(sent) {}

bool StreamReader::feed(std::string_view piece, TimePoint now) {
  const double now_s = std::chrono::duration<double>(now - sent_).count();
  const bool fits = events_.feed(piece, [&](std::string_view data) {
    last_event_ = now;
    read_event(data, now_s);
  });
  if (!fits) fail("bad stream", "an event is too large");
  if (now - last_event_ > kMaxSilence) {
    fail("silent stream", fmt::format("got no event for {} minutes, only comments or parts of one",
                                      kMaxSilence.count()));
  }
  return response_.end != ServedResponse::End::kFailed;
}

void StreamReader::fail(std::string kind, std::string_view message) {
  if (response_.end == ServedResponse::End::kFailed) return;
  response_.end = ServedResponse::End::kFailed;
  response_.error_kind = std::move(kind);
  response_.error_message = message.substr(0, 300);
}

bool StreamReader::count_event() {
  if (num_events_left_-- > 0) return true;
  fail("endless stream",
       fmt::format("got more than {} events for {} requested tokens",
                   output_len_ * kMaxEventsPerToken + kMaxExtraEvents, output_len_));
  return false;
}

void StreamReader::read_event(std::string_view data, double now_s) {
  if (response_.end == ServedResponse::End::kFailed || !count_event()) return;
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  simdjson::dom::element event;
  if (parser_.parse(data.data(), data.size()).get(event)) return fail("bad stream", data);
  if (!event.is_object()) return fail("bad stream", data);
  simdjson::dom::element error;
  if (!event["error"].get(error) && !error.is_null()) return fail("error in the stream", data);
  simdjson::dom::array choices;
  if (!event["choices"].get_array().get(choices)) {
    for (const simdjson::dom::element choice : choices) read_choice(choice, now_s);
  }
  simdjson::dom::element usage;
  if (event["usage"].get(usage)) return;
  read_usage(usage, "completion_tokens", num_usage_tokens_);
  read_usage(usage, "prompt_tokens", response_.num_prompt_tokens);
  simdjson::dom::element details;
  if (usage["prompt_tokens_details"].get(details)) return;
  read_usage(details, "cached_tokens", response_.num_cached_tokens);
}

void StreamReader::read_usage(simdjson::dom::element usage, std::string_view field,
                              int64_t& count) {
  simdjson::dom::element got;
  if (usage[field].get(got) || got.is_null()) return;
  int64_t value = 0;
  if (got.get_int64().get(value) || value < 0 || value > kMaxUsageTokens) {
    return fail("bad stream", fmt::format("usage.{} is {}, expected an integer in [0, {}]", field,
                                          simdjson::minify(got), kMaxUsageTokens));
  }
  count = value;
}

void StreamReader::read_choice(simdjson::dom::element choice, double now_s) {
  std::string_view reason;
  const bool ends = !choice["finish_reason"].get_string().get(reason);
  has_finish_reason_ |= ends;
  const bool counts = has_output(choice);
  has_choice_ |= counts || ends;
  if (!counts && !ends) return;
  if (!count_event()) return;
  if (num_chunks_ == 0) {
    response_.first_token_s = now_s;  // without text: the time at which the response ended
  } else if (counts) {
    response_.inter_token_s.push_back(now_s - response_.latency_s);
  }
  num_chunks_ += counts ? 1 : 0;
  response_.latency_s = now_s;
}

void StreamReader::finish() {
  if (!has_finish_reason_ && !is_done_)
    fail("cut stream", "the stream ended without a finish reason");
  if (!has_choice_) fail("empty stream", "the stream ended without text and without a choice");
  if (response_.end == ServedResponse::End::kFailed) return;
  response_.end = ServedResponse::End::kOk;
  response_.num_output_tokens = num_usage_tokens_ >= 0 ? num_usage_tokens_ : num_chunks_;
}

LoadResult run_load(http_client::Client& client, const std::vector<TimedRequest>& requests,
                    const LoadConfig& config, const Hooks& hooks) {
  return std::make_shared<Load>(client, requests, config, hooks)->run();
}

}  // namespace quire::bench

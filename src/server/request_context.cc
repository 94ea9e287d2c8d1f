#include "server/request_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

constexpr size_t kMaxIdBytes = 128;
constexpr int kTooManyRequests = 429;
constexpr int kServerError = 500;
constexpr int kServiceUnavailable = 503;

bool is_id_character(char c) {
  return is_alphanumeric(c) || std::string_view("-_.:=+@~").find(c) != std::string_view::npos;
}

}  // namespace

std::string request_id(std::string_view wanted) {
  const bool is_usable = !wanted.empty() && wanted.size() <= kMaxIdBytes &&
                         std::ranges::all_of(wanted, is_id_character);
  return is_usable ? std::string(wanted) : random_id();
}

std::optional<int64_t> LogThrottle::take(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (now - second_began_ >= std::chrono::seconds(1)) {
    second_began_ = now;
    num_lines_ = 0;
  }
  if (num_lines_ == kMaxLinesPerSecond) {
    ++num_left_out_;
    return std::nullopt;
  }
  ++num_lines_;
  return std::exchange(num_left_out_, 0);
}

void RequestLog::write(int http_status) const {
  constexpr int kFirstError = 400;
  LogLevel level = http_status < kFirstError ? success_level : LogLevel::kInfo;
  if (http_status > kServerError) level = LogLevel::kWarning;  // write_failure() logs a 500
  if (!log_enabled(level)) return;
  const Clock::time_point now = Clock::now();
  const std::optional<int64_t> num_left_out = throttle == nullptr ? 0 : throttle->take(now);
  if (!num_left_out) return;
  const auto or_omitted = [](auto number) {
    return number > 0 ? LogValue(static_cast<int64_t>(number)) : LogValue("");
  };
  log_event(level, "[server] request",
            {{"request_id", id},
             {"peer", peer},
             {"method", method},
             {"path", path},
             {"status", http_status},
             {"ms", std::chrono::duration<double, std::milli>(now - arrived).count()},
             {"request_bytes", or_omitted(num_request_bytes)},
             {"response_bytes", or_omitted(num_response_bytes)},
             {"prompt_tokens", or_omitted(num_prompt_tokens)},
             {"completion_tokens", or_omitted(num_completion_tokens)},
             {"outcome", outcome},
             {"left_out", or_omitted(*num_left_out)}});
}

void RequestLog::write_failure(const ApiError& error) const {
  if (error.http_status != kServerError) return;
  log_event(LogLevel::kError, "[server] request failed",
            {{"request_id", id},
             {"method", method},
             {"path", path},
             {"cause", error.cause.empty() ? error.message : error.cause}});
}

http::Response error_response(const ApiError& error, ErrorShape shape, http::Headers headers) {
  http::Response response = {
      .status = error.http_status, .headers = std::move(headers), .body = error_body(error, shape)};
  if (error.http_status == kTooManyRequests || error.http_status == kServiceUnavailable) {
    // The time until there is capacity depends on how many tokens the running requests will
    // generate, which is not known.
    response.headers.emplace_back("retry-after", "1");
  }
  return response;
}

ApiError responses_too_large() {
  return make_api_error(kServiceUnavailable,
                        "[server] the memory for responses that clients have not read yet is "
                        "used up; try again later",
                        "", "responses_too_large");
}

RequestContext::RequestContext(const ServiceConfig& config, ServerMetrics& the_metrics,
                               http::Request&& the_request,
                               std::shared_ptr<http::Exchange>&& the_exchange)
    : metrics(&the_metrics),
      request(std::move(the_request)),
      exchange(std::move(the_exchange)),
      error_shape(server::error_shape(request.path, !request.header("anthropic-version").empty())) {
  log.id = request_id(request.header("x-request-id"));
  log.method = request.method;
  log.path = request.path;
  log.peer = request.peer;
  log.num_request_bytes = request.body.size();
  response_headers = cors_headers(config.allowed_origins, request);
  response_headers.emplace_back("x-request-id", log.id);
  // Anthropic's clients show this header.
  if (error_shape == ErrorShape::kAnthropic) response_headers.emplace_back("request-id", log.id);
}

void RequestContext::respond(std::string body, std::string content_type) {
  log.num_response_bytes = body.size();
  const bool is_sent = exchange->respond({.content_type = std::move(content_type),
                                          .headers = response_headers,
                                          .body = std::move(body)});
  if (!is_sent) return refuse(responses_too_large());
  record(200);
}

void RequestContext::refuse(const ApiError& error) {
  exchange->respond(refusal(error));
}

http::Response RequestContext::refusal(const ApiError& error) {
  if (log.outcome.empty()) log.outcome = loggable(error);
  log.write_failure(error);
  http::Response response = error_response(error, error_shape, std::move(response_headers));
  log.num_response_bytes = response.body.size();
  record(error.http_status);
  return response;
}

void RequestContext::record(int http_status) {
  metrics->count_response(http_status);
  log.write(http_status);
}

void RequestContext::record_cancelled() {
  metrics->num_cancelled.add();
  log.outcome = finish_reason_name(FinishReason::kCancelled);
  record(kClientGone);
}

}  // namespace quire::server

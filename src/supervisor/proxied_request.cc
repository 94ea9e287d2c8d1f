#include "supervisor/proxied_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "server/ollama_api/ollama_writer.h"

namespace quire::supervisor {
namespace {

using server::ApiError;
using server::ErrorShape;

// Fields that concern one connection only (RFC 9110, section 7.6.1), or that the supervisor sets
// itself.
constexpr std::array<std::string_view, 17> kOwnFields = {server::kLoadTimeField,
                                                         "authorization",
                                                         "connection",
                                                         "content-length",
                                                         "date",
                                                         "expect",
                                                         "host",
                                                         "keep-alive",
                                                         "proxy-authorization",
                                                         "proxy-connection",
                                                         "te",
                                                         "trailer",
                                                         "transfer-encoding",
                                                         "upgrade",
                                                         "x-api-key",
                                                         "x-forwarded-for",
                                                         "x-request-id"};

bool is_own_field(std::string_view name) {
  return std::ranges::find(kOwnFields, name) != kOwnFields.end();
}

// The inverse of the decoding in http::parse_target().
std::string encoded_path(std::string_view path) {
  constexpr std::string_view kPlain = "-._~!$&'()*+,;=:@/";
  std::string text;
  for (const char c : path) {
    if (is_alphanumeric(c) || kPlain.find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

// The event of an error in a stream of the Responses API.
std::string responses_error(const ApiError& error) {
  JsonWriter json;
  json.begin_object();
  json.field("type", "error");
  json.field("code", std::string_view(error.code));
  json.field("message", std::string_view(error.message));
  json.key("param");
  json.value_or_null(error.param);
  json.end_object();
  return json.take();
}

ApiError process_ended() {
  return server::make_api_error(502,
                                "[supervisor] the model's process ended before the end of the "
                                "response; the next request starts it "
                                "again",
                                "", "model_process_ended");
}

}  // namespace

ProxiedRequest::ProxiedRequest(ModelPool& pool, size_t model, server::RequestContext&& context,
                               std::string key, OnFirstPiece on_first_piece)
    : pool_(pool),
      model_(model),
      context_(std::move(context)),
      key_(std::move(key)),
      on_first_piece_(std::move(on_first_piece)) {}

void ProxiedRequest::submit() {
  context_.exchange->on_closed([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->client_left();
  });
  submitted_ = Clock::now();
  pool_.submit(model_, shared_from_this());
}

void ProxiedRequest::run(std::shared_ptr<Lease> lease) {
  http_client::Request request;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kWaiting) return;
    request = upstream_request();
    phase_ = Phase::kRunning;
    lease_ = lease;
  }
  Upstream& upstream = lease->upstream();
  upstream.send(std::move(request), shared_from_this());
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kDone) upstream.cancel(shared_from_this());
}

http_client::Request ProxiedRequest::upstream_request() {
  http::Request& from = context_.request;
  http_client::Request request = {
      .method = from.method == "HEAD" ? "GET" : from.method,  // the transport drops the body
      .target = encoded_path(from.path) + (from.query.empty() ? "" : "?" + from.query),
      .body = std::move(from.body)};
  for (const auto& [name, value] : from.headers) {
    if (!is_own_field(name)) request.headers.emplace_back(name, value);
  }
  request.headers.emplace_back("x-request-id", context_.log.id);
  request.headers.emplace_back("x-forwarded-for", from.peer);
  if (context_.error_shape == ErrorShape::kOllama) {
    const std::chrono::nanoseconds waited = Clock::now() - submitted_;
    request.headers.emplace_back(server::kLoadTimeField, fmt::format("{}", waited.count()));
  }
  if (!key_.empty()) request.headers.emplace_back("authorization", "Bearer " + key_);
  return request;
}

std::pair<ProxiedRequest::Phase, std::shared_ptr<Lease>> ProxiedRequest::finish() {
  const std::lock_guard lock(mutex_);
  return {std::exchange(phase_, Phase::kDone), std::move(lease_)};
}

void ProxiedRequest::client_left() {
  const auto [before, lease] = finish();
  if (before == Phase::kDone) return;
  if (before == Phase::kWaiting) context_.record_cancelled();  // otherwise the process logs it
  if (lease) {
    lease->upstream().cancel(shared_from_this());
  } else {
    pool_.leave(model_, *this);
  }
}

void ProxiedRequest::refuse(const PoolRefusal& refusal) {
  if (finish().first != Phase::kWaiting) return;
  const ApiError error = server::make_api_error(503, refusal.message, "", refusal.code);
  http::Response response = context_.refusal(error);
  std::erase_if(response.headers, [](const auto& field) { return field.first == "retry-after"; });
  response.headers.emplace_back("retry-after", fmt::format("{}", refusal.retry_after.count()));
  context_.exchange->respond(std::move(response));
}

void ProxiedRequest::cancel(const ApiError& error) {
  const auto [before, lease] = finish();
  fail(error, before);
  if (lease) lease->upstream().cancel(shared_from_this());
}

// --- The response ---

void ProxiedRequest::on_field(std::string_view name, std::string_view value) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), to_lower);
  if (lower == "content-length") has_length_ = true;
  if (lower == "content-type") {
    content_type_ = value;
  } else if (!is_own_field(lower)) {
    headers_.emplace_back(std::move(lower), value);
  }
}

void ProxiedRequest::on_head(int status) {
  status_ = status;
  context_.request.body_share.reset();  // the process has read the body
  headers_.insert(headers_.begin(), context_.response_headers.begin(),
                  context_.response_headers.end());
  if (has_length_) return;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kRunning) return;
    phase_ = Phase::kStreaming;
  }
  context_.exchange->start_stream(status, content_type_, headers_);
}

bool ProxiedRequest::on_body(std::string_view piece) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kDone) return false;
  }
  if (on_first_piece_) std::exchange(on_first_piece_, nullptr)(piece);
  if (has_length_) {
    body_ += piece;
    return true;
  }
  constexpr size_t kEventEnd = 2;
  stream_end_ += piece.substr(piece.size() - std::min(piece.size(), kEventEnd));
  stream_end_.erase(0, stream_end_.size() - std::min(stream_end_.size(), kEventEnd));
  context_.exchange->write(std::string(piece));
  return true;
}

void ProxiedRequest::on_end(const Status& status) {
  auto [before, lease] = finish();
  if (before == Phase::kDone) return;
  if (!status.ok()) return fail(process_ended(), before);
  lease.reset();  // so that a next request of the client counts as the later use
  context_.metrics->count_response(status_);
  if (before == Phase::kStreaming) return context_.exchange->end_stream();
  const bool is_sent = context_.exchange->respond({.status = status_,
                                                   .content_type = std::move(content_type_),
                                                   .headers = std::move(headers_),
                                                   .body = std::move(body_)});
  if (!is_sent) context_.refuse(server::responses_too_large());
}

void ProxiedRequest::fail(const ApiError& error, Phase before) {
  if (before == Phase::kDone) return;
  if (before != Phase::kStreaming) return context_.refuse(error);
  end_stream_with(error);
}

// Writes the error as the last event of a stream, in the form of the request's API.
void ProxiedRequest::end_stream_with(const ApiError& error) {
  context_.log.outcome = loggable(error);
  context_.record(error.http_status);
  std::string text = error_body(error, context_.error_shape);
  if (content_type_.starts_with("text/event-stream")) {
    const bool is_anthropic = context_.error_shape == ErrorShape::kAnthropic;
    const bool is_responses = context_.request.path.find("/responses") != std::string::npos;
    const bool is_named = is_anthropic || is_responses;
    if (is_responses) text = responses_error(error);
    text = fmt::format("{}{}data: {}\n\n{}", stream_end_ == "\n\n" ? "" : "\n\n",
                       is_named ? "event: error\n" : "", text, is_named ? "" : "data: [DONE]\n\n");
  } else {
    text = (stream_end_.ends_with('\n') ? "" : "\n") + text + "\n";
  }
  context_.exchange->write(std::move(text));
  context_.exchange->end_stream();
}

}  // namespace quire::supervisor

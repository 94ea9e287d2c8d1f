#include "server/entry_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "server/page/page.h"

namespace quire::server {
namespace {

// Returns whether a Content-Type names this media type, with or without parameters.
bool names_media_type(std::string_view content_type, std::string_view media_type) {
  const std::string_view rest =
      content_type.substr(std::min(media_type.size(), content_type.size()));
  return equals_ignoring_case(content_type.substr(0, media_type.size()), media_type) &&
         (rest.empty() || rest.front() == ';' || rest.front() == ' ');
}

// Returns whether the body may be read as JSON. Ollama's server does not look at the type, and its
// clients state curl's default, none, or another one; some clients of other APIs state none. A
// browser could send such a body from another site's page, but adds Origin to every POST.
bool may_be_json(const RequestContext& context) {
  const http::Request& request = context.request;
  const std::string_view type = request.header("content-type");
  if (names_media_type(type, "application/json")) return true;
  const bool is_from_page =
      !request.header("origin").empty() || !request.header("sec-fetch-site").empty();
  return !is_from_page && (type.empty() || context.error_shape == ErrorShape::kOllama);
}

}  // namespace

std::optional<ApiError> check_host(const ServiceConfig& config, RequestContext& context) {
  const std::string_view host = context.request.header("host");
  if (!config.checks_host || is_allowed_host(host, config.allowed_hosts)) return std::nullopt;
  ApiError error = make_api_error(
      403,
      fmt::format("the Host '{}' is not allowed; expected an IP address, localhost, or a name that "
                  "the server's operator allows",
                  host.substr(0, 200)),
      "", "host_not_allowed");
  context.log.outcome = error.message + "; --allowed-hosts allows names";
  return error;
}

std::optional<ApiError> authorize(const ServiceConfig& config, RequestContext& context) {
  if (config.keys.empty()) return std::nullopt;
  std::optional<int> key = config.keys.find(context.request.header("authorization"));
  if (!key) key = config.keys.find_key(context.request.header("x-api-key"));
  if (key) {
    context.key_idx = *key;
    return std::nullopt;
  }
  context.response_headers.emplace_back("www-authenticate", "Bearer");
  return make_api_error(
      401,
      "the API key is missing or wrong; expected the header Authorization: Bearer KEY, or "
      "x-api-key: KEY",
      "", "invalid_api_key");
}

std::optional<ApiError> check_body_type(const RequestContext& context) {
  if (context.request.method == "POST" && !may_be_json(context)) {
    return make_api_error(
        415,
        fmt::format("expected a body of Content-Type: application/json; got '{}'; for "
                    "curl, add -H 'Content-Type: application/json'",
                    context.request.header("content-type").substr(0, 200)),
        "", "unsupported_media_type");
  }
  const std::string_view coding = context.request.header("content-encoding");
  if (coding.empty() || equals_ignoring_case(coding, "identity")) return std::nullopt;
  return make_api_error(
      415, fmt::format("expected a body without Content-Encoding; got '{}'", coding.substr(0, 200)),
      "", "unsupported_media_type");
}

ApiError wrong_method(RequestContext& context, const std::string& allowed) {
  context.response_headers.emplace_back("allow", allowed);
  return make_api_error(405,
                        fmt::format("{} does not support {}; expected {}", context.request.path,
                                    context.request.method, allowed),
                        "", "method_not_allowed");
}

void respond_to_preflight(const ServiceConfig& config, RequestContext& context) {
  http::Response response = preflight_response(config.allowed_origins, context.request);
  response.headers.emplace_back("x-request-id", context.log.id);
  if (response.status == 403) {
    context.log.outcome =
        fmt::format("the Origin '{}' is not allowed; --allowed-origins allows origins",
                    context.request.header("origin").substr(0, 200));
  }
  context.record(response.status);
  context.exchange->respond(std::move(response));
}

void serve_page(const PageFile& file, RequestContext&& context) {
  http::Headers& headers = context.response_headers;
  headers.emplace_back("content-security-policy", page_security_policy());
  headers.emplace_back("x-content-type-options", "nosniff");
  headers.emplace_back("referrer-policy", "no-referrer");
  headers.emplace_back("cache-control", "no-cache");
  context.respond(std::string(file.body), std::string(file.content_type));
}

http::Hooks make_hooks(const ServiceConfig& config, ServerMetrics& metrics, LogThrottle& throttle,
                       HeadCheck check) {
  const auto check_head = [&config, &metrics, check = std::move(check)](
                              const http::Request& head) -> std::optional<http::Response> {
    if (is_preflight(head)) return std::nullopt;
    RequestContext context(config, metrics, http::Request(head), nullptr);
    if (const auto error = check(context)) return context.refusal(*error);
    return std::nullopt;
  };
  const auto context_of = [&config, &metrics](const http::Request& head) {
    RequestContext context(config, metrics, http::Request(head), nullptr);
    if (head.began != http::Request().began) context.log.arrived = head.began;
    return context;
  };
  const auto on_cut = [context_of](const http::Request& head) {
    context_of(head).record_cancelled();
  };
  const auto write_refusal = [&throttle, context_of](const http::Request& head,
                                                     const http::Refusal& refusal) {
    RequestContext context = context_of(head);
    if (head.path.empty()) {
      if (head.method.empty()) context.log.method = "-";
      context.log.path = "-";
      context.log.throttle = &throttle;
    }
    return context.refusal(make_api_error(refusal.status, std::string(refusal.message), "",
                                          std::string(refusal.code)));
  };
  return {.check_head = check_head, .write_refusal = write_refusal, .on_cut = on_cut};
}

}  // namespace quire::server

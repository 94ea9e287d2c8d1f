#include "server/openai/api_error.h"

#include "base/json_writer.h"

namespace quire::server {
namespace {

std::string_view error_type(int http_status) {
  if (http_status == 401) return "authentication_error";
  if (http_status == 429) return "rate_limit_error";
  return http_status >= 500 ? "server_error" : "invalid_request_error";
}

std::string_view anthropic_error_type(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return http_status >= 500 ? "api_error" : "invalid_request_error";
  }
}

// Returns "top_p" for `[sampling] top_p; got …`, or "" for other messages.
std::string field_of(std::string_view message) {
  for (const std::string_view prefix : {"[sampling] ", "[embedding] "}) {
    if (!message.starts_with(prefix)) continue;
    message.remove_prefix(prefix.size());
    return std::string(message.substr(0, message.find_first_of("; ")));
  }
  return "";
}

// Returns whether the path is `root` or below it.
bool is_below(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

void write_openai_error(const ApiError& error, JsonWriter& json) {
  json.begin_object();
  json.field("message", error.message);
  json.field("type", error.type);
  json.key("param");
  json.value_or_null(error.param);
  json.key("code");
  json.value_or_null(error.code);
  json.end_object();
}

}  // namespace

ApiError make_api_error(int http_status, std::string message, std::string param, std::string code) {
  return {.http_status = http_status,
          .type = std::string(error_type(http_status)),
          .message = std::move(message),
          .param = std::move(param),
          .code = std::move(code)};
}

ApiError api_error(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
    case StatusCode::kInternal: {
      ApiError error =
          make_api_error(500, "[server] internal error; the server's log has the details");
      error.cause = status.message();
      return error;
    }
    case StatusCode::kUnimplemented:  // the request asks for an unsupported feature
      return make_api_error(400, status.message());
    default:
      return make_api_error(http_status(status.code()), status.message(),
                            field_of(status.message()),
                            status.message().starts_with("[template] ") ? "template_error" : "");
  }
}

ErrorShape error_shape(std::string_view path, bool has_anthropic_version) {
  if (is_below(path, "/api")) return ErrorShape::kOllama;
  constexpr std::string_view kVersion = "/v1";
  if (path.starts_with(kVersion)) path.remove_prefix(kVersion.size());
  const bool is_anthropic =
      is_below(path, "/messages") || (has_anthropic_version && is_below(path, "/models"));
  return is_anthropic ? ErrorShape::kAnthropic : ErrorShape::kOpenAi;
}

std::string error_body(const ApiError& error, ErrorShape shape) {
  JsonWriter json;
  json.begin_object();
  switch (shape) {
    case ErrorShape::kOpenAi:
      json.key("error");
      write_openai_error(error, json);
      break;
    case ErrorShape::kAnthropic:
      json.field("type", "error");
      json.key("error");
      json.begin_object();
      json.field("type", anthropic_error_type(error.http_status));
      json.field("message", error.message);
      json.end_object();
      break;
    case ErrorShape::kOllama:
      json.field("error", error.message);
      break;
  }
  json.end_object();
  return json.take();
}

std::string loggable(const ApiError& error) {
  constexpr int kBadRequest = 400;
  constexpr int kNotFound = 404;
  if (error.http_status != kBadRequest && error.http_status != kNotFound) {
    return error.message;
  }
  std::string text = error.code.empty() ? error.type : error.code;
  if (!error.param.empty()) text += ' ' + error.param;
  return text;
}

}  // namespace quire::server

#include "server/openai/api_error.h"

#include "base/json_writer.h"

namespace quire::server {
namespace {

std::string_view error_type(int http_status) {
  if (http_status == 401) return "authentication_error";
  if (http_status == 429) return "rate_limit_error";
  return http_status >= 500 ? "server_error" : "invalid_request_error";
}

// Returns "top_p" for `[sampling] top_p; got …`, or "" for other messages.
std::string field_of(std::string_view message) {
  constexpr std::string_view kPrefix = "[sampling] ";
  if (!message.starts_with(kPrefix)) return "";
  message.remove_prefix(kPrefix.size());
  return std::string(message.substr(0, message.find_first_of("; ")));
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

std::string error_body(const ApiError& error) {
  JsonWriter json;
  json.begin_object();
  json.key("error");
  json.begin_object();
  json.field("message", error.message);
  json.field("type", error.type);
  json.key("param");
  json.value_or_null(error.param);
  json.key("code");
  json.value_or_null(error.code);
  json.end_object();
  json.end_object();
  return json.take();
}

std::string loggable(const ApiError& error) {
  constexpr int kBadRequest = 400;
  constexpr int kNotFound = 404;
  if (error.http_status != kBadRequest && error.http_status != kNotFound) return error.message;
  std::string text = error.code.empty() ? error.type : error.code;
  if (!error.param.empty()) text += ' ' + error.param;
  return text;
}

}  // namespace quire::server

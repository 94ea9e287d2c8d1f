#include "server/http/error_response.h"

#include "base/json.h"

namespace quire::http {

Response error_response(int status, std::string_view code, std::string_view message) {
  JsonWriter json;
  json.begin_object();
  json.key("error");
  json.begin_object();
  json.field("message", message);
  json.field("type", status < 500 ? "invalid_request_error" : "server_error");
  json.key("param");
  json.null();
  json.field("code", code);
  json.end_object();
  json.end_object();
  return {.status = status, .body = json.text()};
}

}  // namespace quire::http

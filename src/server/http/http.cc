#include "server/http/http.h"

namespace quire::http {

std::string_view Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Response refusal_response(const Hooks* hooks, const Request& head, const Refusal& refusal) {
  if (hooks != nullptr && hooks->write_refusal) return hooks->write_refusal(head, refusal);
  return {.status = refusal.status,
          .content_type = "text/plain; charset=utf-8",
          .body = std::string(refusal.message)};
}

}  // namespace quire::http

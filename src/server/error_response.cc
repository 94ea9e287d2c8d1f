#include "server/error_response.h"

#include <utility>

namespace quire::server {
namespace {

constexpr int kTooManyRequests = 429;
constexpr int kUnavailable = 503;

}  // namespace

http::Response error_response(const ApiError& error, http::Headers headers) {
  http::Response response = {
      .status = error.http_status, .headers = std::move(headers), .body = error_body(error)};
  if (error.http_status == kTooManyRequests || error.http_status == kUnavailable) {
    response.headers.emplace_back("retry-after", "1");
  }
  return response;
}

ApiError answer_too_large() {
  return make_api_error(kUnavailable,
                        "[server] the answers that wait to be read take as much memory as they "
                        "may; try again later",
                        "", "answers_too_large");
}

}  // namespace quire::server

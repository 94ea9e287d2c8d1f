#include "server/calls/call_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/cors.h"
#include "server/error_response.h"

namespace quire::server {

Call::Call(CallContext& the_context, http::Request&& the_request,
           std::shared_ptr<http::Exchange>&& the_exchange)
    : context(&the_context), request(std::move(the_request)), exchange(std::move(the_exchange)) {
  log.id = request_id(request.header("x-request-id"));
  log.method = request.method;
  log.path = request.path;
  log.peer = request.peer;
  response_headers.emplace_back("x-request-id", log.id);
  http::Headers cors = cors_headers(context->config.allowed_origins, request);
  response_headers.insert(response_headers.end(), cors.begin(), cors.end());
}

void Call::respond(std::string body, std::string content_type) {
  const bool has_room = exchange->respond({.content_type = std::move(content_type),
                                           .headers = response_headers,
                                           .body = std::move(body)});
  if (!has_room) return refuse(answer_too_large());
  context->metrics.answered(200);
}

void Call::refuse(const ApiError& error) {
  exchange->respond(refusal(error));
}

http::Response Call::refusal(const ApiError& error) {
  context->metrics.answered(error.http_status);
  log.outcome = loggable(error);
  log.write_failure(error);
  // A connection that was turned away has sent no request, so there is nothing to log.
  if (!log.method.empty()) log.write(error.http_status);
  return error_response(error, std::move(response_headers));
}

void Call::note_cancelled() {
  constexpr int kClientGone = 499;
  context->metrics.num_cancelled.add();
  context->metrics.answered(kClientGone);
  log.outcome = finish_reason_name(FinishReason::kCancelled);
  log.write(kClientGone);
}

bool refuse_unknown_model(Call& call, const std::string& model) {
  const ServiceConfig& config = call.context->config;
  const std::vector<std::string>& names = config.model_names;
  if (model.empty() || model == config.model_path) return false;
  if (std::ranges::find(names, model) != names.end()) return false;
  call.refuse(make_api_error(404,
                             fmt::format("the model '{}' is not served; expected '{}'",
                                         model.substr(0, 200), names.front()),
                             "model", "model_not_found"));
  return true;
}

}  // namespace quire::server

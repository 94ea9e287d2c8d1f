// POST /v1/messages and /v1/messages/count_tokens, Anthropic's Messages API.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "server/messages_api/messages_request.h"
#include "server/messages_api/messages_writer.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

// Refuses version 2023-01-01, whose streams have no typed events. Other values are accepted, and so
// is a request without the header.
std::optional<ApiError> check_version(const http::Request& request) {
  constexpr std::string_view kUntyped = "2023-01-01";
  if (request.header("anthropic-version") != kUntyped) return std::nullopt;
  return make_api_error(
      400,
      fmt::format("[request] the header anthropic-version; got '{}', expected 2023-06-01 or later",
                  kUntyped),
      "anthropic-version");
}

Parsed<ChatRequest> parse(const ServerState& state, const RequestContext& context,
                          MessagesUse use) {
  if (auto error = check_version(context.request)) return {.request = {}, .error = error};
  return parse_messages_request(context.request.body, request_defaults(state), use);
}

}  // namespace

void post_messages(ServerState& state, RequestContext&& context) {
  Parsed<ChatRequest> parsed = parse(state, context, MessagesUse::kGenerate);
  if (parsed.error) return context.refuse(*parsed.error);
  const std::string id = "msg_" + context.log.id;
  generate_chat(state, std::move(context), std::move(parsed.request), id,
                [](ChatRequest&& chat, ResponseInfo&& info) {
                  return make_messages_writer(std::move(chat), std::move(info));
                });
}

void post_count_tokens(ServerState& state, RequestContext&& context) {
  Parsed<ChatRequest> parsed = parse(state, context, MessagesUse::kCountTokens);
  if (parsed.error) return context.refuse(*parsed.error);
  report_ignored(context, parsed.request);
  if (refuse_unknown_model(state, context, parsed.request.model)) return;
  TokenizeRequest request;
  request.conversation = std::move(parsed.request.conversation);
  request.add_special_tokens = false;  // the template renders them
  std::vector<int32_t> ids;
  if (const auto error = tokenize(state, request, ids)) return context.refuse(*error);
  JsonWriter json;
  json.begin_object();
  json.field("input_tokens", ids.size());
  json.end_object();
  context.respond(json.take());
}

}  // namespace quire::server

// Routes that convert between text and tokens.
#include <fmt/format.h>

#include <utility>

#include "base/json_writer.h"
#include "server/conversation_prompt.h"
#include "server/openai/requests.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

// A text can have more tokens than bytes if the tokenizer adds tokens or normalizes one character
// to several. Conversely, a token can have no text.
size_t max_tokens(const ServerState& state) {
  return 2 * state.config.max_tokenize_bytes;
}

// The error for a text or token list, described by `got`, that exceeds the limits. The limits bound
// the time and memory of one request.
ApiError too_long(const ServerState& state, std::string field, std::string_view got) {
  return make_api_error(
      400,
      fmt::format(
          "[request] {}; got {}, expected at most {} bytes and {} tokens; send a shorter text",
          field, got, state.config.max_tokenize_bytes, max_tokens(state)),
      field);
}

// Reads the text of the conversation or the prompt. Checks its size before searching it.
std::optional<ApiError> read_text(const ServerState& state, TokenizeRequest& request,
                                  MarkedText& text) {
  const bool is_chat = request.conversation.has_value();
  MarkedText given = {std::move(request.prompt), {}};
  if (is_chat) {
    if (auto error =
            render_conversation(state.engine, state.history_form, *request.conversation, given)) {
      return error;
    }
  }
  if (given.text.size() > state.config.max_tokenize_bytes) {
    return too_long(
        state, is_chat ? "messages" : "prompt",
        fmt::format("{} of {} bytes", is_chat ? "a rendered prompt" : "a text", given.text.size()));
  }
  if (is_chat && request.conversation->continuation) {
    if (auto error = continue_from(*request.conversation->continuation, given)) return error;
  }
  text = std::move(given);
  return std::nullopt;
}

// With `has_texts`, each token's text is written by itself; a token that holds a part of a UTF-8
// character shows U+FFFD.
std::string tokens_body(const EngineApi& engine, const std::vector<int32_t>& ids, bool has_texts) {
  JsonWriter json;
  json.begin_object();
  json.field("count", ids.size());
  json.field("max_model_len", engine.model_info().max_model_len);
  json.key("tokens");
  json.ids(ids);
  json.key("token_strs");
  if (has_texts) {
    json.begin_array();
    for (const int32_t id : ids) json.value(engine.token_bytes(id));
    json.end_array();
  } else {
    json.null();
  }
  json.end_object();
  return json.take();
}

// Checks that all ids are in the vocabulary, and that neither their number nor the size of their
// text exceeds the limits.
std::optional<ApiError> check_ids(const ServerState& state, const std::vector<int32_t>& ids) {
  if (ids.size() > max_tokens(state)) {
    return too_long(state, "tokens", fmt::format("{} tokens", ids.size()));
  }
  const int vocab_size = state.engine.model_info().vocab_size;
  size_t num_bytes = 0;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return make_api_error(
          400,
          fmt::format("token id {} is not in the vocabulary; expected 0 to {}", id, vocab_size - 1),
          "tokens");
    }
    num_bytes += state.engine.token_bytes(id).size();
  }
  if (num_bytes <= state.config.max_tokenize_bytes) return std::nullopt;
  return too_long(state, "tokens", fmt::format("tokens of {} bytes", num_bytes));
}

}  // namespace

std::optional<ApiError> tokenize(const ServerState& state, TokenizeRequest& request,
                                 std::vector<int32_t>& ids) {
  MarkedText text;
  if (auto error = read_text(state, request, text)) return error;
  auto encoded = state.engine.encode(text.text, request.add_special_tokens, text.untrusted);
  if (!encoded.ok()) return api_error(encoded.status());
  ids = std::move(*encoded);
  if (ids.size() <= max_tokens(state)) return std::nullopt;
  const char* const field = request.conversation ? "messages" : "prompt";
  return too_long(state, field, fmt::format("{} tokens", ids.size()));
}

void post_tokenize(ServerState& state, RequestContext&& context) {
  Parsed<TokenizeRequest> parsed =
      parse_tokenize_request(context.request.body, request_defaults(state));
  if (parsed.error) return context.refuse(*parsed.error);
  TokenizeRequest& request = parsed.request;
  if (refuse_unknown_model(state, context, request.model)) return;
  std::vector<int32_t> ids;
  if (const auto error = tokenize(state, request, ids)) return context.refuse(*error);
  context.respond(tokens_body(state.engine, ids, request.return_token_strs));
}

void post_detokenize(ServerState& state, RequestContext&& context) {
  const Parsed<DetokenizeRequest> parsed =
      parse_detokenize_request(context.request.body, request_defaults(state));
  if (parsed.error) return context.refuse(*parsed.error);
  const std::vector<int32_t>& ids = parsed.request.tokens;
  if (refuse_unknown_model(state, context, parsed.request.model)) return;
  if (const auto error = check_ids(state, ids)) return context.refuse(*error);
  JsonWriter json;
  json.begin_object();
  json.field("prompt", state.engine.decode(ids, false));
  json.end_object();
  context.respond(json.take());
}

}  // namespace quire::server

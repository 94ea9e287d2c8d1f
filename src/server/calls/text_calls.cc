#include "server/calls/text_calls.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "server/calls/prompts.h"
#include "server/openai/parse.h"

namespace quire::server {
namespace {

// The conversation's or the prompt's text.
Result<std::string> text_of(const CallContext& context, const TokenizeCall& wanted) {
  if (wanted.template_variables.empty()) return wanted.prompt;
  QUIRE_ASSIGN_OR_RETURN(std::string text, context.engine.render_chat(wanted.template_variables));
  if (!wanted.continue_final_message) return text;
  return continue_from(std::move(text), wanted.final_content);
}

}  // namespace

void post_tokenize(CallContext& context, Call&& call) {
  const Parsed<TokenizeCall> parsed =
      parse_tokenize_call(call.request.body, call_defaults(context));
  if (parsed.error) return call.refuse(*parsed.error);
  const TokenizeCall& wanted = parsed.call;
  if (refuse_unknown_model(call, wanted.model)) return;
  const Result<std::string> text = text_of(context, wanted);
  if (!text.ok()) return call.refuse(call_error(text.status()));
  const auto ids = context.engine.encode(*text, wanted.add_special_tokens);
  if (!ids.ok()) return call.refuse(call_error(ids.status()));
  JsonWriter json;
  json.begin_object();
  json.field("count", ids->size());
  json.field("max_model_len", context.engine.model_info().max_model_len);
  json.key("tokens");
  json.ids(*ids);
  json.key("token_strs");
  if (wanted.return_token_strs) {
    json.begin_array();
    for (const int32_t id : *ids) json.value(context.engine.decode({id}, false));
    json.end_array();
  } else {
    json.null();
  }
  json.end_object();
  call.respond(json.text());
}

void post_detokenize(CallContext& context, Call&& call) {
  const Parsed<DetokenizeCall> parsed =
      parse_detokenize_call(call.request.body, call_defaults(context));
  if (parsed.error) return call.refuse(*parsed.error);
  if (refuse_unknown_model(call, parsed.call.model)) return;
  const int vocab_size = context.engine.model_info().vocab_size;
  for (const int32_t id : parsed.call.tokens) {
    if (id >= 0 && id < vocab_size) continue;
    return call.refuse(make_call_error(
        400,
        fmt::format("token id {} is not in the vocabulary; expected 0 to {}", id, vocab_size - 1),
        "tokens"));
  }
  JsonWriter json;
  json.begin_object();
  json.field("prompt", context.engine.decode(parsed.call.tokens, false));
  json.end_object();
  call.respond(json.text());
}

}  // namespace quire::server

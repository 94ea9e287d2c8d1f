#include "server/calls/generate_calls.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "server/answer_writer.h"
#include "server/calls/prompts.h"
#include "server/generation.h"
#include "server/openai/parse.h"

namespace quire::server {
namespace {

AnswerContext answer_context(const CallContext& context, const Call& call, const char* prefix) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  AnswerContext answer;
  answer.header = {.id = prefix + call.log.id,
                   .model = context.config.model_names.front(),
                   .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
  answer.decode = [engine = &context.engine](int32_t id) { return engine->token_bytes(id); };
  return answer;
}

int64_t num_prompt_tokens(const std::vector<Request>& requests) {
  int64_t count = 0;
  for (const Request& request : requests) {
    count += static_cast<int64_t>(request.prompt_token_ids.size());
  }
  return count;
}

// Requests of one key find only their own prefixes in the cache.
void salt(const CallContext& context, const Call& call, Request& request) {
  if (call.key_idx < 0) return;
  request.cache_salt = context.config.keys.cache_salt(call.key_idx) + request.cache_salt;
}

// Past the gate, if there is room, and on to the engine.
void generate(CallContext& context, Call&& call, std::vector<Request>&& requests,
              std::unique_ptr<AnswerWriter> writer, bool is_stream) {
  const int num_answers = static_cast<int>(requests.size()) * requests.front().sampling.n;
  const int64_t num_tokens = num_prompt_tokens(requests);
  Result<Ticket> ticket = context.gate.enter(call.key_idx, num_answers, num_tokens);
  if (!ticket.ok()) return call.refuse(call_error(ticket.status()));
  call.log.num_prompt_tokens = static_cast<int>(num_tokens);
  Generation::start({context.engine, context.workers, context.metrics},
                    {.requests = std::move(requests),
                     .writer = std::move(writer),
                     .is_stream = is_stream,
                     .ticket = std::move(*ticket),
                     .log = std::move(call.log),
                     .headers = std::move(call.response_headers),
                     .exchange = std::move(call.exchange)});
}

std::vector<std::string> prompt_texts(const CallContext& context,
                                      const std::vector<Request>& requests) {
  std::vector<std::string> texts;
  for (const Request& request : requests) {
    texts.push_back(request.prompt.empty() ? context.engine.decode(request.prompt_token_ids, false)
                                           : request.prompt);
  }
  return texts;
}

// What takes the model's answer to this call apart.
AnswerParserConfig parser_config(const CallContext& context, const ChatCall& wanted,
                                 const std::string& prompt) {
  AnswerParserConfig config;
  config.reasoning_parser = context.config.reasoning_parser;
  config.starts_in_reasoning = !config.reasoning_parser.empty() && prompt_opens_reasoning(prompt);
  if (wanted.tool_choice == ToolChoice::kNone) return config;
  config.tool_call_parser = context.config.tool_call_parser;
  config.single_call = !wanted.parallel_tool_calls;
  for (const Tool& tool : wanted.tools) config.tool_names.push_back(tool.name);
  if (wanted.tool_choice == ToolChoice::kRequired) config.forced = ForcedCall::kAny;
  if (wanted.tool_choice == ToolChoice::kNamed) {
    config.forced = ForcedCall::kNamed;
    config.tool_names = {wanted.named_tool};
  }
  return config;
}

bool is_forced(const ChatCall& wanted) {
  return wanted.tool_choice == ToolChoice::kRequired || wanted.tool_choice == ToolChoice::kNamed;
}

// The rendered conversation.
Result<std::string> render(const CallContext& context, const ChatCall& wanted) {
  QUIRE_ASSIGN_OR_RETURN(std::string prompt, context.engine.render_chat(wanted.template_variables));
  if (!wanted.continue_final_message) return prompt;
  return continue_from(std::move(prompt), wanted.final_content);
}

std::optional<CallError> prepare_chat(const CallContext& context, ChatCall& wanted) {
  Result<std::string> prompt = render(context, wanted);
  if (!prompt.ok()) return call_error(prompt.status());
  Request& request = wanted.request;
  request.prompt = std::move(*prompt);
  if (auto error = prepare_prompt(context, request)) return error;
  if (wanted.tool_choice == ToolChoice::kAuto &&
      needs_special_tokens(context.config.tool_call_parser)) {
    request.sampling.skip_special_tokens = false;
  }
  return constrain(context, is_forced(wanted) ? forced_call_schema(wanted) : wanted.structured,
                   request);
}

}  // namespace

void post_completions(CallContext& context, Call&& call) {
  Parsed<CompletionCall> parsed = parse_completion_call(call.request.body, call_defaults(context));
  if (parsed.error) return call.refuse(*parsed.error);
  CompletionCall& wanted = parsed.call;
  if (refuse_unknown_model(call, wanted.model)) return;
  salt(context, call, wanted.request);
  if (const auto error = constrain(context, wanted.structured, wanted.request)) {
    return call.refuse(*error);
  }
  std::vector<Request> requests;
  for (CompletionPrompt& prompt : wanted.prompts) {
    requests.push_back(wanted.request);
    requests.back().prompt = std::move(prompt.text);
    requests.back().prompt_token_ids = std::move(prompt.token_ids);
    if (const auto error = prepare_prompt(context, requests.back())) return call.refuse(*error);
  }
  AnswerContext answer = answer_context(context, call, "cmpl-");
  answer.num_prompt_tokens = static_cast<int>(num_prompt_tokens(requests));
  if (wanted.echo) answer.prompt_texts = prompt_texts(context, requests);
  const bool is_stream = wanted.streaming.stream;
  generate(context, std::move(call), std::move(requests),
           make_answer_writer(std::move(wanted), std::move(answer)), is_stream);
}

void post_chat_completions(CallContext& context, Call&& call) {
  Parsed<ChatCall> parsed = parse_chat_call(call.request.body, call_defaults(context));
  if (parsed.error) return call.refuse(*parsed.error);
  ChatCall& wanted = parsed.call;
  if (refuse_unknown_model(call, wanted.model)) return;
  if (const auto error = prepare_chat(context, wanted)) return call.refuse(*error);
  salt(context, call, wanted.request);
  std::vector<Request> requests = {wanted.request};
  AnswerContext answer = answer_context(context, call, "chatcmpl-");
  answer.num_prompt_tokens = static_cast<int>(num_prompt_tokens(requests));
  answer.parser = parser_config(context, wanted, wanted.request.prompt);
  const bool is_stream = wanted.streaming.stream;
  Result<std::unique_ptr<AnswerWriter>> writer =
      make_answer_writer(std::move(wanted), std::move(answer));
  if (!writer.ok()) return call.refuse(call_error(writer.status()));
  generate(context, std::move(call), std::move(requests), std::move(*writer), is_stream);
}

}  // namespace quire::server

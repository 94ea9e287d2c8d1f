#include "server/calls/generate_calls.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "server/answer_writer.h"
#include "server/calls/prompts.h"
#include "server/generation.h"
#include "server/openai/requests.h"
#include "server/structured_output.h"

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

// Isolates the requests of different keys: prefixes are cached per key, and a call's priority is
// ignored unless the operator allows it.
void set_apart(const CallContext& context, const Call& call, Request& request) {
  if (!context.config.allow_request_priority) request.priority = 0;
  if (call.key_idx < 0) return;
  request.cache_salt = context.config.keys.cache_salt(call.key_idx) + request.cache_salt;
}

// A parsed and validated call.
struct Understood {
  std::vector<Request> requests = {};
  std::unique_ptr<AnswerWriter> writer = nullptr;
  bool is_stream = false;
  std::optional<Restriction> restriction = {};
  bool reasons_first = false;  // the restriction applies after the prompt's reasoning block
};

// An admitted call that waits for its grammar.
struct Waiting {
  Call call;
  Understood understood;
  Ticket ticket;
  std::atomic<bool> has_left = false;  // whether its client has disconnected
};

void start(CallContext& context, Call&& call, Understood&& understood, Ticket&& ticket) {
  Generation::start({context.engine, context.writers, context.metrics, context.generations},
                    {.requests = std::move(understood.requests),
                     .writer = std::move(understood.writer),
                     .is_stream = understood.is_stream,
                     .ticket = std::move(ticket),
                     .log = std::move(call.log),
                     .headers = std::move(call.response_headers),
                     .exchange = std::move(call.exchange)});
}

void start_constrained(CallContext& context, Waiting& waiting,
                       Result<ConstraintFactory> constraint) {
  Understood& understood = waiting.understood;
  if (!constraint.ok()) {
    ApiError error = api_error(constraint.status());
    if (error.param.empty()) error.param = understood.restriction->field;
    waiting.ticket = Ticket();  // before the response
    return waiting.call.refuse(error);
  }
  if (understood.reasons_first) {
    *constraint = after_reasoning(std::move(*constraint), context.engine);
  }
  for (Request& request : understood.requests) request.make_constraint = *constraint;
  start(context, std::move(waiting.call), std::move(understood), std::move(waiting.ticket));
}

void refuse_at_shutdown(Waiting& waiting) {
  waiting.ticket = Ticket();  // before the response
  waiting.call.refuse(api_error(shutting_down()));
}

void compile_and_start(CallContext& context, Waiting& waiting) {
  if (waiting.has_left) return waiting.call.note_cancelled();
  if (context.generations.is_cancelled()) return refuse_at_shutdown(waiting);
  Result<ConstraintFactory> constraint =
      context.config.constraints.compile(waiting.understood.restriction->grammar);
  // A shutdown stops the compilation; that is no error of the call's grammar.
  if (context.generations.is_cancelled()) return refuse_at_shutdown(waiting);
  start_constrained(context, waiting, std::move(constraint));
}

// Queues the call for its grammar. If the client disconnects, the call's queue entry and ticket are
// released at once.
void wait_for_grammar(CallContext& context, const std::shared_ptr<Waiting>& waiting,
                      int num_answers) {
  waiting->call.exchange->on_closed([&context, weak = std::weak_ptr(waiting)] {
    const auto waits = weak.lock();
    if (waits == nullptr) return;
    waits->has_left = true;
    if (!context.grammars.remove(waits.get())) return;
    waits->ticket = Ticket();
    waits->call.note_cancelled();
  });
  const Status queued =
      context.grammars.push(waiting->call.key_idx, waiting.get(), num_answers,
                            [&context, waiting] { compile_and_start(context, *waiting); });
  if (queued.ok()) return;
  waiting->ticket = Ticket();  // before the response
  waiting->call.refuse(api_error(queued));
}

// Admits the call through the gate and submits it to the engine, after its grammar is compiled if
// it has one.
void generate(CallContext& context, Call&& call, Understood&& understood) {
  const std::vector<Request>& requests = understood.requests;
  const int num_answers = static_cast<int>(requests.size()) * requests.front().sampling.n;
  const int64_t num_tokens = num_prompt_tokens(requests);
  Result<Ticket> ticket = context.gate.enter(call.key_idx, num_answers, num_tokens);
  if (!ticket.ok()) return call.refuse(api_error(ticket.status()));
  call.log.num_prompt_tokens = static_cast<int>(num_tokens);
  if (!understood.restriction) {
    return start(context, std::move(call), std::move(understood), std::move(*ticket));
  }
  call.request = {};  // its body is no longer needed
  const std::shared_ptr<Waiting> waiting(
      new Waiting{std::move(call), std::move(understood), std::move(*ticket)});
  // A call with a cached grammar does not wait in the queue.
  const GrammarSpec& grammar = waiting->understood.restriction->grammar;
  if (auto known = context.config.constraints.find(grammar)) {
    return start_constrained(context, *waiting, std::move(*known));
  }
  wait_for_grammar(context, waiting, num_answers);
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

bool is_forced(const ChatRequest& wanted) {
  return wanted.tool_choice == ToolChoice::kRequired || wanted.tool_choice == ToolChoice::kNamed;
}

// Returns the configuration of the parser that splits the model's output into reasoning, content
// and tool calls.
OutputParserConfig parser_config(const CallContext& context, const ChatRequest& wanted,
                                 const std::string& prompt) {
  OutputParserConfig config;
  config.starts_in_reasoning =
      !context.config.reasoning_parser.empty() && prompt_opens_reasoning(prompt);
  // A sequence whose text is restricted from its first token on cannot contain reasoning.
  const bool is_formed = is_forced(wanted) || wanted.restriction.has_value();
  if (!is_formed || config.starts_in_reasoning) {
    config.reasoning_parser = context.config.reasoning_parser;
  }
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

std::optional<ApiError> prepare_chat(const CallContext& context, ChatRequest& wanted) {
  Result<std::string> prompt = context.engine.render_chat(wanted.conversation.variables);
  if (!prompt.ok()) return api_error(prompt.status());
  if (auto error = check_prompt_bytes(context, prompt->size())) return error;
  if (const auto& continuation = wanted.conversation.continuation) {
    if (auto error = continue_from(*continuation, *prompt)) return error;
  }
  wanted.conversation = {};  // its memory is no longer needed
  Request& request = wanted.engine_request;
  request.prompt = *std::move(prompt);
  if (auto error = prepare_prompt(context, request)) return error;
  if (wanted.tool_choice == ToolChoice::kAuto &&
      needs_special_tokens(context.config.tool_call_parser)) {
    request.sampling.skip_special_tokens = false;
  }
  return std::nullopt;
}

}  // namespace

void post_completions(CallContext& context, Call&& call) {
  Parsed<CompletionRequest> parsed =
      parse_completion_request(call.request.body, request_defaults(context));
  if (parsed.error) return call.refuse(*parsed.error);
  CompletionRequest& wanted = parsed.request;
  if (refuse_unknown_model(call, wanted.model)) return;
  // Refuses the call before tokenizing if there is no capacity.
  const int num_answers =
      static_cast<int>(wanted.prompts.size()) * wanted.engine_request.sampling.n;
  const Status room = context.gate.check_room(call.key_idx, num_answers);
  if (!room.ok()) return call.refuse(api_error(room));
  set_apart(context, call, wanted.engine_request);
  Understood understood = {.is_stream = wanted.streaming.stream, .restriction = wanted.restriction};
  std::vector<Request>& requests = understood.requests;
  for (CompletionPrompt& prompt : wanted.prompts) {
    requests.push_back(wanted.engine_request);
    requests.back().prompt = std::move(prompt.text);
    requests.back().prompt_token_ids = std::move(prompt.token_ids);
    if (const auto error = prepare_prompt(context, requests.back())) return call.refuse(*error);
  }
  AnswerContext answer = answer_context(context, call, "cmpl-");
  answer.num_prompt_tokens = static_cast<int>(num_prompt_tokens(requests));
  if (wanted.echo) answer.prompt_texts = prompt_texts(context, requests);
  understood.writer = make_answer_writer(std::move(wanted), std::move(answer));
  generate(context, std::move(call), std::move(understood));
}

void post_chat_completions(CallContext& context, Call&& call) {
  Parsed<ChatRequest> parsed = parse_chat_request(call.request.body, request_defaults(context));
  if (parsed.error) return call.refuse(*parsed.error);
  ChatRequest& wanted = parsed.request;
  if (refuse_unknown_model(call, wanted.model)) return;
  // Refuses the call before rendering and tokenizing if there is no capacity.
  const Status room = context.gate.check_room(call.key_idx, wanted.engine_request.sampling.n);
  if (!room.ok()) return call.refuse(api_error(room));
  if (const auto error = prepare_chat(context, wanted)) return call.refuse(*error);
  set_apart(context, call, wanted.engine_request);
  Understood understood = {
      .is_stream = wanted.streaming.stream,
      .restriction = is_forced(wanted) ? forced_call_schema(wanted) : wanted.restriction};
  understood.requests.push_back(wanted.engine_request);
  AnswerContext answer = answer_context(context, call, "chatcmpl-");
  answer.num_prompt_tokens = static_cast<int>(num_prompt_tokens(understood.requests));
  answer.parser = parser_config(context, wanted, wanted.engine_request.prompt);
  understood.reasons_first = answer.parser.starts_in_reasoning;
  Result<std::unique_ptr<AnswerWriter>> writer =
      make_answer_writer(std::move(wanted), std::move(answer));
  if (!writer.ok()) return call.refuse(api_error(writer.status()));
  understood.writer = std::move(*writer);
  generate(context, std::move(call), std::move(understood));
}

}  // namespace quire::server

// POST /v1/completions and /v1/chat/completions, and the common part of all routes that generate
// text. Each request becomes a PreparedGeneration, which is admitted, waits for its grammar if it
// has one, and starts as a Generation.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "server/call_grammar/call_grammar.h"
#include "server/conversation_prompt.h"
#include "server/openai/response_writer.h"
#include "server/routes/routes.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

// --- From the start to the engine ---

// An admitted request that waits for its grammar.
struct WaitingRequest {
  RequestContext context;
  PreparedGeneration generation;
  AdmissionTicket ticket;
  std::atomic<bool> is_client_gone = false;

  // The ticket is released before the response, so that the client's next request finds capacity.
  void refuse(const ApiError& error) {
    ticket = AdmissionTicket();
    context.refuse(error);
  }
};

int64_t num_prompt_tokens(const std::vector<Request>& requests) {
  int64_t count = 0;
  for (const Request& request : requests) {
    count += static_cast<int64_t>(request.prompt_token_ids.size());
  }
  return count;
}

void start(ServerState& state, RequestContext&& context, PreparedGeneration&& generation,
           AdmissionTicket&& ticket) {
  Generation::start({state.engine, state.writers, state.metrics, state.generations},
                    {.requests = std::move(generation.requests),
                     .writer = std::move(generation.writer),
                     .is_stream = generation.is_stream,
                     .ticket = std::move(ticket),
                     .log = std::move(context.log),
                     .headers = std::move(context.response_headers),
                     .error_shape = context.error_shape,
                     .exchange = std::move(context.exchange)});
}

// Returns the token of a marker; none if the marker is text.
std::optional<int32_t> token_of(const ServerState& state, std::string_view marker) {
  const auto found = std::ranges::find(state.token_markers, marker, &TokenMarker::text);
  return found == state.token_markers.end() ? std::nullopt : std::optional(found->token_id);
}

void start_constrained(ServerState& state, WaitingRequest& waiting,
                       Result<ConstraintFactory> constraint) {
  PreparedGeneration& generation = waiting.generation;
  if (!constraint.ok()) {
    ApiError error = api_error(constraint.status());
    if (error.param.empty()) error.param = generation.restriction->field;
    return waiting.refuse(error);
  }
  if (generation.may_call) {
    std::call_once(state.call_opening_once, [&] {
      state.call_opening = std::make_shared<const CallOpening>(
          state.engine, call_opening(state.calls), state.token_markers);
    });
    *constraint = call_or_text(std::move(*constraint), state.call_opening, state.engine);
  }
  const auto after = [&](std::string_view marker) {
    return after_marker(std::move(*constraint), state.engine, marker, token_of(state, marker));
  };
  if (generation.binds_calls) *constraint = after(call_opening(state.calls));
  if (generation.reasons_first) *constraint = after(reasoning_end(*state.reasoning));
  for (Request& request : generation.requests) request.make_constraint = *constraint;
  start(state, std::move(waiting.context), std::move(generation), std::move(waiting.ticket));
}

void compile_and_start(ServerState& state, WaitingRequest& waiting) {
  if (waiting.is_client_gone) return waiting.context.record_cancelled();
  if (state.generations.is_cancelled()) return waiting.refuse(api_error(shutting_down()));
  Result<ConstraintFactory> constraint =
      state.config.constraints.compile(waiting.generation.restriction->grammar);
  // A shutdown has stopped the compilation, so the error is not the grammar's.
  if (state.generations.is_cancelled()) return waiting.refuse(api_error(shutting_down()));
  start_constrained(state, waiting, std::move(constraint));
}

// Queues the request for its grammar. If the client disconnects, the queue entry and the ticket are
// released at once.
void wait_for_grammar(ServerState& state, const std::shared_ptr<WaitingRequest>& waiting,
                      int num_sequences) {
  waiting->context.exchange->on_closed([&state, weak = std::weak_ptr(waiting)] {
    const auto gone = weak.lock();
    if (gone == nullptr) return;
    gone->is_client_gone = true;
    if (!state.grammars.remove(gone.get())) return;
    gone->ticket = AdmissionTicket();
    gone->context.record_cancelled();
  });
  const Status queued =
      state.grammars.push(waiting->context.key_idx, waiting.get(), num_sequences,
                          [&state, waiting] { compile_and_start(state, *waiting); });
  if (!queued.ok()) waiting->refuse(api_error(queued));
}

// --- From the body to a PreparedGeneration ---

// Returns the longest prompt in tokens. Except for embedding models, one token is left for the
// output.
int longest_prompt(const ModelInfo& model) {
  return model.max_model_len - (model.embedding_size > 0 ? 0 : 1);
}

std::optional<ApiError> check_ids(const std::vector<int32_t>& ids, const ModelInfo& model) {
  const auto unknown =
      std::ranges::find_if(ids, [&](int32_t id) { return id >= model.vocab_size; });
  if (unknown == ids.end()) return std::nullopt;
  return make_api_error(400,
                        fmt::format("the prompt has the token id {}, which is not in the model's "
                                    "vocabulary; expected 0 to {}",
                                    *unknown, model.vocab_size - 1),
                        "prompt");
}

// Some clients recognise this error by its words: litellm by "this model's maximum context length
// is", langchain's ChatAnthropic by "prompt is too long".
ApiError too_long(const std::string& size, const ModelInfo& model) {
  return make_api_error(
      400,
      fmt::format("the prompt is too long: got {}; this model's maximum context length is {} "
                  "tokens, a prompt of at most {}{}",
                  size, model.max_model_len, longest_prompt(model),
                  model.embedding_size > 0 ? "" : " and one generated token"),
      "prompt", "context_length_exceeded");
}

// Returns an error if a text of this size cannot fit the model's context. Call it before searching
// or tokenizing the text.
std::optional<ApiError> check_prompt_bytes(const ServerState& state, size_t num_bytes) {
  if (num_bytes <= state.max_prompt_bytes) return std::nullopt;
  return too_long(fmt::format("{} bytes", num_bytes), state.engine.model_info());
}

std::vector<std::string> prompt_texts(const ServerState& state,
                                      const std::vector<Request>& requests) {
  std::vector<std::string> texts;
  for (const Request& request : requests) {
    texts.push_back(request.prompt.empty() ? state.engine.decode(request.prompt_token_ids, false)
                                           : request.prompt);
  }
  return texts;
}

// Returns the configuration of the parser that splits the model's output into reasoning, content
// and tool calls.
OutputParserConfig parser_config(const ServerState& state, const ChatRequest& chat,
                                 const std::string& prompt) {
  OutputParserConfig config;
  config.token_markers = state.token_markers;
  if (!chat.engine_request.sampling.skip_special_tokens) {
    for (TokenMarker& marker : config.token_markers) marker.is_hidden = false;
  }
  config.starts_in_reasoning =
      state.reasoning != nullptr && prompt_opens_reasoning(prompt, *state.reasoning);
  // A sequence whose text is restricted from its first token on cannot contain reasoning. The
  // grammar of a dialect's calls allows it.
  const bool is_restricted =
      is_forced(chat) ? state.calls == nullptr : chat.restriction.has_value();
  if (!is_restricted || config.starts_in_reasoning) {
    config.reasoning_parser = state.config.reasoning_parser;
    config.reasoning_template = state.config.reasoning_template;
  }
  if (chat.tool_choice == ToolChoice::kNone) return config;
  config.tool_call_parser = state.config.tool_call_parser;
  config.call_template = state.config.call_template;
  config.keeps_first_call_only = !chat.parallel_tool_calls;
  for (const Tool& tool : chat.tools) {
    if (!may_call(chat, tool)) continue;
    config.tool_names.push_back(tool.name);
    config.tool_schemas.push_back(tool.parameters);
  }
  if (is_forced(chat) && state.calls == nullptr) {
    config.forced = chat.tool_choice == ToolChoice::kNamed ? ForcedCall::kNamed : ForcedCall::kAny;
  }
  return config;
}

// Joins the first names, and counts the others; clients and proxies limit the size of headers.
std::string listed(const std::vector<std::string>& names, size_t num_unnamed = 0) {
  constexpr size_t kMaxListed = 20;
  const size_t num_listed = std::min(names.size(), kMaxListed);
  std::string list = fmt::format("{}", fmt::join(std::span(names).first(num_listed), ", "));
  const size_t num_more = names.size() - num_listed + num_unnamed;
  if (num_listed == 0) return fmt::format("unknown fields: {}", num_more);
  if (num_more > 0) list += fmt::format(" and {} more", num_more);
  return list;
}

// Returns the grammar of the calls that a request allows.
Result<Restriction> calls_in_dialect(const ServerState& state, const ChatRequest& chat,
                                     std::string_view prompt) {
  std::vector<Tool> tools;
  std::ranges::copy_if(chat.tools, std::back_inserter(tools),
                       [&](const Tool& tool) { return may_call(chat, tool); });
  const bool is_forced_now = is_forced(chat);
  const bool may_reason = is_forced_now && state.reasoning != nullptr &&
                          !prompt_opens_reasoning(prompt, *state.reasoning) &&
                          !prompt_closes_reasoning(prompt, *state.reasoning);
  QUIRE_ASSIGN_OR_RETURN(
      GrammarSpec grammar,
      call_grammar({.calls = *state.calls,
                    .reasoning = may_reason ? state.reasoning : nullptr,
                    .tools = tools,
                    .several = chat.tool_choice != ToolChoice::kNamed && chat.parallel_tool_calls,
                    .markers = state.token_markers,
                    .end_ids = state.engine.model_info().eos_token_ids,
                    .opened = is_forced_now ? std::string_view() : call_opening(state.calls)}));
  return Restriction{.grammar = std::move(grammar), .field = "tools"};
}

// Returns whether the request wants the calls that the model may choose to be bound.
bool wants_bound_choice(const ChatRequest& chat) {
  return chat.tool_choice == ToolChoice::kAuto && std::ranges::any_of(chat.tools, &Tool::is_strict);
}

// Returns whether they can be bound. That needs a marker which is one token: otherwise the token
// that completes the opening could have bytes of the call.
bool can_bind_choice(const ServerState& state, const ChatRequest& chat) {
  return !chat.restriction && token_of(state, call_opening(state.calls)).has_value();
}

}  // namespace

std::optional<ApiError> prepare_chat(const ServerState& state, ChatRequest& chat) {
  MarkedText prompt;
  if (auto error =
          render_conversation(state.engine, state.history_form, chat.conversation, prompt)) {
    return error;
  }
  if (auto error = check_prompt_bytes(state, prompt.text.size())) return error;
  if (const auto& continuation = chat.conversation.continuation) {
    if (auto error = continue_from(*continuation, prompt)) return error;
  }
  chat.conversation = {};  // its memory is no longer needed
  Request& request = chat.engine_request;
  request.prompt = std::move(prompt.text);
  return prepare_prompt(state, request, prompt.untrusted);
}

void generate(ServerState& state, RequestContext&& context, PreparedGeneration&& generation) {
  std::vector<Request>& requests = generation.requests;
  for (Request& request : requests) {
    request.data_parallel_rank = context.data_parallel_rank;
    request.session_id = context.session_id;
  }
  const int num_sequences = static_cast<int>(requests.size()) * requests.front().sampling.n;
  const int64_t num_tokens = num_prompt_tokens(requests);
  Result<AdmissionTicket> ticket =
      state.admission.admit(context.key_idx, num_sequences, num_tokens);
  if (!ticket.ok()) return context.refuse(api_error(ticket.status()));
  context.log.num_prompt_tokens = static_cast<int>(num_tokens);
  if (!generation.restriction) {
    return start(state, std::move(context), std::move(generation), std::move(*ticket));
  }
  (void)std::exchange(context.request, {});  // frees its body; an assignment would keep the memory
  const std::shared_ptr<WaitingRequest> waiting(
      new WaitingRequest{std::move(context), std::move(generation), std::move(*ticket)});
  // A request with a cached grammar does not wait in the queue.
  const GrammarSpec& grammar = waiting->generation.restriction->grammar;
  if (auto known = state.config.constraints.find(grammar)) {
    return start_constrained(state, *waiting, std::move(*known));
  }
  wait_for_grammar(state, waiting, num_sequences);
}

namespace {

// Returns the number of tokens that end before the last message of a rendered conversation; 0: its
// messages are not known. Tokens are counted from the end, because the last message is short.
int num_history_tokens(const EngineApi& engine, const Request& request,
                       const ByteSpans& untrusted) {
  uint32_t last_owner = 0;
  size_t begin = 0;  // of the message's first byte in the prompt
  for (size_t i = 0; i < untrusted.count(); ++i) {
    if (untrusted[i].owner <= last_owner) continue;
    last_owner = untrusted[i].owner;
    begin = untrusted[i].begin;
  }
  if (last_owner == 0) return 0;
  const std::vector<int32_t>& ids = request.prompt_token_ids;
  size_t num_before = ids.size();
  size_t num_left = request.prompt.size() - begin;  // bytes from the message on
  while (num_before > 0 && num_left > 0) {
    num_left -= std::min(num_left, engine.token_bytes(ids[--num_before]).size());
  }
  return static_cast<int>(num_before);
}

}  // namespace

std::optional<ApiError> prepare_prompt(const ServerState& state, Request& request,
                                       const ByteSpans& untrusted) {
  const ModelInfo& model = state.engine.model_info();
  std::vector<int32_t>& ids = request.prompt_token_ids;
  if (ids.empty()) {
    if (auto error = check_prompt_bytes(state, request.prompt.size())) return error;
    auto encoded = state.engine.encode(request.prompt, request.add_special_tokens, untrusted);
    if (!encoded.ok()) return api_error(encoded.status());
    ids = std::move(*encoded);
    if (model.has_states) {
      request.num_history_tokens = num_history_tokens(state.engine, request, untrusted);
    }
  } else if (auto error = check_ids(ids, model)) {
    return error;
  }
  if (ids.empty()) return make_api_error(400, "the prompt is empty", "prompt");
  if (ids.size() > static_cast<size_t>(longest_prompt(model))) {
    return too_long(fmt::format("{} tokens", ids.size()), model);
  }
  const int num_left = model.max_model_len - static_cast<int>(ids.size());
  if (request.sampling.max_tokens == 0) request.sampling.max_tokens = num_left;
  return std::nullopt;
}

ApiError with_prompt(ApiError error, std::string_view field, size_t idx, size_t count) {
  const bool is_about_prompt =
      error.http_status == 400 && (error.param == "prompt" || error.param.empty());
  if (!is_about_prompt || (count == 1 && field == "prompt")) return error;
  error.param = count == 1 ? std::string(field) : fmt::format("{}[{}]", field, idx);
  error.message = fmt::format("{}: {}", error.param, error.message);
  return error;
}

std::optional<ApiError> prepare_prompts(const ServerState& state, CompletionRequest& completion,
                                        std::vector<Request>& requests) {
  for (CompletionPrompt& prompt : completion.prompts) {
    requests.push_back(completion.engine_request);
    requests.back().prompt = std::move(prompt.text);
    requests.back().prompt_token_ids = std::move(prompt.token_ids);
    if (auto error = prepare_prompt(state, requests.back(), {})) {
      return with_prompt(std::move(*error), "prompt", requests.size() - 1,
                         completion.prompts.size());
    }
  }
  return std::nullopt;
}

void isolate_by_key(const ServerState& state, const RequestContext& context, Request& request) {
  if (!state.config.allow_request_priority) request.priority = 0;
  if (context.key_idx < 0) return;
  request.cache_salt = state.config.keys.cache_salt(context.key_idx) + request.cache_salt;
}

ResponseInfo response_info(const ServerState& state, const std::string& response_id,
                           const std::vector<Request>& requests) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  ResponseInfo response;
  response.header = {.id = response_id,
                     .model = state.config.model_names.front(),
                     .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                     .system_fingerprint = state.system_fingerprint};
  response.decode = [engine = &state.engine](int32_t id) { return engine->token_bytes(id); };
  response.num_prompt_tokens = static_cast<int>(num_prompt_tokens(requests));
  return response;
}

void generate_completion(ServerState& state, RequestContext&& context,
                         CompletionRequest&& completion, const std::string& response_id,
                         const MakeCompletionWriter& make_writer) {
  if (refuse_unknown_model(state, context, completion.model)) return;
  // Refuses the request before tokenizing if there is no capacity.
  const int num_sequences =
      static_cast<int>(completion.prompts.size()) * completion.engine_request.sampling.n;
  const Status capacity = state.admission.check_capacity(context.key_idx, num_sequences);
  if (!capacity.ok()) return context.refuse(api_error(capacity));
  isolate_by_key(state, context, completion.engine_request);
  PreparedGeneration generation = {.is_stream = completion.streaming.stream,
                                   .restriction = completion.restriction};
  std::vector<Request>& requests = generation.requests;
  if (const auto error = prepare_prompts(state, completion, requests)) {
    return context.refuse(*error);
  }
  ResponseInfo response = response_info(state, response_id, requests);
  if (completion.echo) response.prompt_texts = prompt_texts(state, requests);
  Result<std::unique_ptr<ResponseWriter>> writer =
      make_writer(std::move(completion), std::move(response));
  if (!writer.ok()) return context.refuse(api_error(writer.status()));
  generation.writer = std::move(*writer);
  generate(state, std::move(context), std::move(generation));
}

void post_completions(ServerState& state, RequestContext&& context) {
  Parsed<CompletionRequest> parsed =
      parse_completion_request(context.request.body, request_defaults(state));
  if (parsed.error) return context.refuse(*parsed.error);
  report_ignored(context, parsed.request);
  const std::string id = "cmpl-" + context.log.id;
  generate_completion(state, std::move(context), std::move(parsed.request), id,
                      [](CompletionRequest&& completion, ResponseInfo&& info) {
                        return make_response_writer(std::move(completion), std::move(info));
                      });
}

void report_ignored(RequestContext& context, const GenerationRequest& request) {
  if (request.ignored.empty() && request.num_unnamed_ignored == 0) return;
  const std::string list = listed(request.ignored, request.num_unnamed_ignored);
  log_info("[server] request {}: parts without effect: {}", context.log.id, list);
  context.response_headers.emplace_back("x-quire-ignored", list);
}

void generate_chat(ServerState& state, RequestContext&& context, ChatRequest&& chat,
                   const std::string& response_id, const MakeChatWriter& make_writer) {
  const bool wants_bound = wants_bound_choice(chat);
  const bool binds_choice = wants_bound && can_bind_choice(state, chat);
  if (wants_bound && !binds_choice) chat.ignored.emplace_back("tools.strict");
  report_ignored(context, chat);
  if (!chat.conversation.unread_arguments.empty()) {
    log_info("[server] request {}: arguments that are no JSON object are content: {}",
             context.log.id, listed(chat.conversation.unread_arguments));
  }
  if (refuse_unknown_model(state, context, chat.model)) return;
  // Refuses the request before rendering and tokenizing if there is no capacity.
  const Status capacity =
      state.admission.check_capacity(context.key_idx, chat.engine_request.sampling.n);
  if (!capacity.ok()) return context.refuse(api_error(capacity));
  if (const auto error = prepare_chat(state, chat)) return context.refuse(*error);
  isolate_by_key(state, context, chat.engine_request);
  PreparedGeneration generation = {.is_stream = chat.streaming.stream,
                                   .restriction = chat.restriction};
  generation.binds_calls = binds_choice;
  if (is_forced(chat) && state.calls == nullptr) {
    generation.restriction = forced_call_schema(chat);
  } else if (is_forced(chat) || generation.binds_calls) {
    Result<Restriction> calls = calls_in_dialect(state, chat, chat.engine_request.prompt);
    if (!calls.ok()) {
      ApiError error = api_error(calls.status());
      if (error.param.empty()) error.param = "tools";
      return context.refuse(error);
    }
    generation.restriction = std::move(*calls);
  }
  generation.may_call = chat.restriction.has_value() && chat.tool_choice == ToolChoice::kAuto &&
                        !call_opening(state.calls).empty();
  generation.requests.push_back(chat.engine_request);
  ResponseInfo response = response_info(state, response_id, generation.requests);
  response.parser = parser_config(state, chat, chat.engine_request.prompt);
  // Frees the schemas, which are no longer needed; an assignment would keep their memory.
  for (Tool& tool : chat.tools) std::string().swap(tool.parameters);
  generation.reasons_first = response.parser.starts_in_reasoning;
  Result<std::unique_ptr<ResponseWriter>> writer =
      make_writer(std::move(chat), std::move(response));
  if (!writer.ok()) return context.refuse(api_error(writer.status()));
  generation.writer = std::move(*writer);
  generate(state, std::move(context), std::move(generation));
}

void post_chat_completions(ServerState& state, RequestContext&& context) {
  Parsed<ChatRequest> parsed = parse_chat_request(context.request.body, request_defaults(state));
  if (parsed.error) return context.refuse(*parsed.error);
  const std::string id = "chatcmpl-" + context.log.id;
  generate_chat(state, std::move(context), std::move(parsed.request), id,
                [](ChatRequest&& chat, ResponseInfo&& info) {
                  return make_response_writer(std::move(chat), std::move(info));
                });
}

}  // namespace quire::server

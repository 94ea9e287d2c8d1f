#include "server/openai/responses.h"

#include "base/json_writer.h"
#include "server/openai/response_fields.h"
#include "server/openai/tool_kinds.h"

namespace quire::server {
namespace {

constexpr std::string_view kCompletion = "text_completion";
constexpr std::string_view kChat = "chat.completion";
constexpr std::string_view kChatChunk = "chat.completion.chunk";

// One choice of a completion, or a chunk's part of one. If prompt_ids is null, the part has no
// prompt.
struct CompletionPart {
  int index = 0;
  std::string_view prompt_text;
  std::string_view text;
  const std::vector<int32_t>* prompt_ids = nullptr;  // only in the part that includes the prompt
  const std::vector<PositionLogprobs>* prompt_logprobs = nullptr;
  const std::vector<int32_t>* ids = nullptr;
  const std::vector<PositionLogprobs>* logprobs = nullptr;
  std::string_view finish_reason;
  std::string_view stop_reason;
};

// Writes two texts as one string. Copies only if both have text.
void write_joined(std::string_view first, std::string_view second, JsonWriter& json) {
  if (first.empty()) return json.value(second);
  json.value(std::string(first) += second);
}

void write_logprobs(const CompletionRequest& request, const CompletionPart& part,
                    const DecodeToken& decode, int64_t& text_offset, JsonWriter& json) {
  const SamplingParams& sampling = request.engine_request.sampling;
  json.key("logprobs");
  if (!sampling.logprobs) return json.null();
  std::vector<ScoredToken> tokens;
  if (request.echo && part.prompt_ids != nullptr) {
    append_scored(*part.prompt_ids, *part.prompt_logprobs, tokens);
  }
  if (!request.echo_only) append_scored(*part.ids, *part.logprobs, tokens);
  const LogprobsStyle style = {*sampling.logprobs, request.return_tokens_as_token_ids, decode};
  write_completion_logprobs(tokens, style, text_offset, json);
}

void write_choice(const CompletionRequest& request, const CompletionPart& part,
                  const DecodeToken& decode, int64_t& text_offset, JsonWriter& json) {
  json.begin_object();
  json.field("index", part.index);
  json.key("text");
  write_joined(request.echo ? part.prompt_text : std::string_view(),
               request.echo_only ? std::string_view() : part.text, json);
  write_logprobs(request, part, decode, text_offset, json);
  write_finish(part.finish_reason, part.stop_reason, request.engine_request.sampling, json);
  if (request.return_prompt_logprobs && part.prompt_ids != nullptr) {
    json.key("prompt_logprobs");
    write_prompt_logprobs(*part.prompt_logprobs, {0, request.return_tokens_as_token_ids, decode},
                          json);
  }
  static const std::vector<int32_t> no_ids;
  write_token_ids(request, "token_ids", request.echo_only ? no_ids : *part.ids, json);
  if (part.prompt_ids != nullptr) {
    write_token_ids(request, "prompt_token_ids", *part.prompt_ids, json);
  }
  json.end_object();
}

// Returns OpenAI's finish reason: "tool_calls" if the sequence stopped by itself after tool calls,
// which are whole. A named call keeps "stop", as in OpenAI's API.
std::string_view chat_finish_reason(const ChatRequest& request, FinishReason reason,
                                    bool has_tool_calls, bool has_cut_call) {
  const bool is_for_tools = has_tool_calls && !has_cut_call && reason == FinishReason::kStop &&
                            request.tool_choice != ToolChoice::kNamed;
  return is_for_tools ? "tool_calls" : openai_finish_reason(reason);
}

void write_logprobs(const ChatRequest& request, const std::vector<int32_t>& ids,
                    const std::vector<PositionLogprobs>& positions, const DecodeToken& decode,
                    JsonWriter& json) {
  const SamplingParams& sampling = request.engine_request.sampling;
  json.key("logprobs");
  if (!sampling.logprobs || positions.empty()) return json.null();
  std::vector<ScoredToken> tokens;
  append_scored(ids, positions, tokens);
  write_chat_logprobs(tokens, {*sampling.logprobs, request.return_tokens_as_token_ids, decode},
                      json);
}

// Writes a call or a piece of one. The calls of custom tools are always whole, see hold_calls().
void write_tool_call(const ChatRequest& request, std::string_view id, std::string_view name,
                     std::string_view arguments, JsonWriter& json) {
  if (is_custom_tool(request, name)) {
    json.field("id", id);
    json.field("type", "custom");
    json.key("custom");
    json.begin_object();
    json.field("name", name);
    json.field("input", custom_input(arguments));
    return json.end_object();
  }
  if (!id.empty()) {
    json.field("id", id);
    json.field("type", "function");
  }
  json.key("function");
  json.begin_object();
  if (!name.empty()) json.field("name", name);
  json.field("arguments", arguments);
  json.end_object();
}

// Writes the reasoning under two names, because clients read one or the other.
void write_reasoning(std::string_view reasoning, JsonWriter& json) {
  if (reasoning.empty()) return;
  json.field("reasoning_content", reasoning);
  json.field("reasoning", reasoning);
}

void write_message(const ChatRequest& request, const ParsedMessage& message, JsonWriter& json) {
  json.key("message");
  json.begin_object();
  json.field("role", "assistant");
  json.key("content");
  if (message.content.empty() && request.echoed_message.empty() && !message.tool_calls.empty()) {
    json.null();
  } else {
    write_joined(request.echoed_message, message.content, json);
  }
  json.key("refusal");
  json.null();
  if (request.include_reasoning) write_reasoning(message.reasoning, json);
  if (!message.tool_calls.empty()) {
    json.key("tool_calls");
    json.begin_array();
    for (const ToolCall& call : message.tool_calls) {
      json.begin_object();
      write_tool_call(request, call.id, call.name, call.arguments, json);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

void write_delta(const ChatRequest& request, const MessageDelta& delta, JsonWriter& json) {
  json.key("delta");
  json.begin_object();
  if (request.include_reasoning) write_reasoning(delta.reasoning, json);
  if (!delta.content.empty()) json.field("content", delta.content);
  if (!delta.tool_calls.empty()) {
    json.key("tool_calls");
    json.begin_array();
    for (const ToolCallDelta& piece : delta.tool_calls) {
      json.begin_object();
      json.field("index", piece.index);
      write_tool_call(request, piece.id, piece.name, piece.arguments, json);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

// Writes the prompt's fields, which follow the choices.
void write_prompt_parts(const ChatRequest& request, const std::vector<PositionLogprobs>& logprobs,
                        const SharedTokenIds& ids, const DecodeToken& decode, JsonWriter& json) {
  if (request.return_prompt_logprobs) {
    json.key("prompt_logprobs");
    write_prompt_logprobs(logprobs, {0, request.return_tokens_as_token_ids, decode}, json);
  }
  if (ids != nullptr) write_token_ids(request, "prompt_token_ids", *ids, json);
}

std::string chunk_head(const ResponseHeader& header, std::string_view object) {
  JsonWriter json;
  begin_response(header, object, json);
  return json.take();
}

}  // namespace

std::string completion_body(const ResponseHeader& header, const CompletionRequest& request,
                            const std::vector<Choice>& choices, const Usage& usage,
                            const DecodeToken& decode) {
  JsonWriter json;
  begin_response(header, kCompletion, json);
  for (const Choice& choice : choices) {
    int64_t text_offset = 0;
    write_choice(request,
                 {.index = choice.index,
                  .prompt_text = choice.prompt_text,
                  .text = choice.text,
                  .prompt_ids = choice.prompt_token_ids.get(),
                  .prompt_logprobs = &choice.prompt_logprobs,
                  .ids = &choice.token_ids,
                  .logprobs = &choice.logprobs,
                  .finish_reason = openai_finish_reason(choice.finish_reason),
                  .stop_reason = choice.stop_reason},
                 decode, text_offset, json);
  }
  end_choices({}, &usage, json);
  json.end_object();
  return json.take();
}

std::string completion_chunk_head(const ResponseHeader& header) {
  return chunk_head(header, kCompletion);
}

std::string chat_chunk_head(const ResponseHeader& header) {
  return chunk_head(header, kChatChunk);
}

void completion_chunk(std::string_view head, const CompletionRequest& request, ChoiceStream& choice,
                      const Output& output, const Usage* usage, const DecodeToken& decode,
                      std::string& out) {
  CompletionPart part = {.index = choice.index,
                         .prompt_text = choice.prompt_text,
                         .text = output.text,
                         .ids = &output.token_ids,
                         .logprobs = &output.logprobs,
                         .finish_reason = {},
                         .stop_reason = output.stop_reason};
  if (output.finish_reason) part.finish_reason = openai_finish_reason(*output.finish_reason);
  if (!choice.has_started) {
    part.prompt_ids = choice.prompt_token_ids.get();
    part.prompt_logprobs = &choice.prompt_logprobs;
  }
  JsonWriter json(out += head);
  write_choice(request, part, decode, choice.text_offset, json);
  end_choices(request.streaming, usage, json);
  json.end_object();
  if (choice.has_started) return;
  choice.has_started = true;
  choice.prompt_text = {};
  choice.prompt_token_ids = {};
  choice.prompt_logprobs = {};
}

std::string chat_body(const ResponseHeader& header, const ChatRequest& request,
                      const std::vector<Choice>& choices, const Usage& usage,
                      const DecodeToken& decode) {
  JsonWriter json;
  begin_response(header, kChat, json);
  for (const Choice& choice : choices) {
    const bool has_tool_calls = !choice.message.tool_calls.empty();
    json.begin_object();
    json.field("index", choice.index);
    write_message(request, choice.message, json);
    write_logprobs(request, choice.token_ids, choice.logprobs, decode, json);
    write_finish(chat_finish_reason(request, choice.finish_reason, has_tool_calls,
                                    choice.message.has_cut_call),
                 choice.stop_reason, request.engine_request.sampling, json);
    write_token_ids(request, "token_ids", choice.token_ids, json);
    json.end_object();
  }
  end_choices({}, &usage, json);
  if (!choices.empty()) {
    write_prompt_parts(request, choices[0].prompt_logprobs, choices[0].prompt_token_ids, decode,
                       json);
  }
  json.end_object();
  return json.take();
}

void chat_role_chunk(std::string_view head, const ChatRequest& request, ChoiceStream& choice,
                     const Usage* usage, const DecodeToken& decode, std::string& out) {
  JsonWriter json(out += head);
  json.begin_object();
  json.field("index", choice.index);
  json.key("delta");
  json.begin_object();
  json.field("role", "assistant");
  json.field("content", request.echoed_message);
  json.end_object();
  json.key("logprobs");
  json.null();
  write_finish("", "", request.engine_request.sampling, json);
  json.end_object();
  end_choices(request.streaming, usage, json);
  write_prompt_parts(request, choice.prompt_logprobs, choice.prompt_token_ids, decode, json);
  json.end_object();
  choice.has_started = true;
  choice.prompt_token_ids = {};
  choice.prompt_logprobs = {};
}

bool needs_chat_chunk(const ChatRequest& request, const MessageDelta& delta, const Output& output) {
  if (output.finish_reason || !delta.content.empty() || !delta.tool_calls.empty()) return true;
  if (request.include_reasoning && !delta.reasoning.empty()) return true;
  if (request.engine_request.sampling.logprobs && !output.logprobs.empty()) return true;
  return request.return_token_ids && !output.token_ids.empty();
}

void chat_chunk(std::string_view head, const ChatRequest& request, ChoiceStream& choice,
                const MessageDelta& delta, const Output& output, const Usage* usage,
                const DecodeToken& decode, std::string& out) {
  choice.has_tool_calls |= !delta.tool_calls.empty();
  choice.has_cut_call |= delta.cut != CutCall::kNone;
  JsonWriter json(out += head);
  json.begin_object();
  json.field("index", choice.index);
  write_delta(request, delta, json);
  write_logprobs(request, output.token_ids, output.logprobs, decode, json);
  const std::string_view finish_reason =
      output.finish_reason ? chat_finish_reason(request, *output.finish_reason,
                                                choice.has_tool_calls, choice.has_cut_call)
                           : "";
  write_finish(finish_reason, output.stop_reason, request.engine_request.sampling, json);
  write_token_ids(request, "token_ids", output.token_ids, json);
  json.end_object();
  end_choices(request.streaming, usage, json);
  json.end_object();
}

void usage_chunk(std::string_view head, const Usage& usage, std::string& out) {
  JsonWriter json(out += head);
  end_choices({}, &usage, json);
  json.end_object();
}

std::string sse_event(std::string_view json) {
  std::string event(kSsePrefix);
  event += json;
  event += kSseSuffix;
  return event;
}

}  // namespace quire::server

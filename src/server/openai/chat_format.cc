#include "server/openai/body_parts.h"
#include "server/openai/json_text.h"
#include "server/openai/logprobs_json.h"
#include "server/openai/responses.h"

namespace quire::server {
namespace {

constexpr std::string_view kObject = "chat.completion";
constexpr std::string_view kChunkObject = "chat.completion.chunk";

// Returns OpenAI's finish reason: "tool_calls" if the sequence stopped by itself after tool calls.
// A named call keeps "stop", as in OpenAI's API.
std::string_view chat_finish_reason(const ChatRequest& call, FinishReason reason, bool has_calls) {
  const bool is_for_tools =
      has_calls && reason == FinishReason::kStop && call.tool_choice != ToolChoice::kNamed;
  return is_for_tools ? "tool_calls" : openai_finish_reason(reason);
}

void append_logprobs(const ChatRequest& call, const std::vector<int32_t>& ids,
                     const std::vector<PositionLogprobs>& positions, const DecodeToken& decode,
                     std::string& out) {
  out += ",\"logprobs\":";
  const SamplingParams& sampling = call.engine_request.sampling;
  if (!sampling.logprobs || positions.empty()) {
    out += "null";
    return;
  }
  std::vector<ScoredToken> tokens;
  append_scored(ids, positions, tokens);
  append_chat_logprobs(tokens, {*sampling.logprobs, call.return_tokens_as_token_ids, decode}, out);
}

void append_call(std::string_view id, std::string_view name, std::string_view arguments,
                 std::string& out) {
  if (!id.empty()) {
    out += "\"id\":";
    append_string(id, out);
    out += ",\"type\":\"function\",";
  }
  out += "\"function\":{";
  if (!name.empty()) {
    out += "\"name\":";
    append_string(name, out);
    out += ',';
  }
  out += "\"arguments\":";
  append_string(arguments, out);
  out += "}}";
}

void append_message(const ChatRequest& call, const ParsedMessage& message, std::string& out) {
  out += "\"message\":{\"role\":\"assistant\",\"content\":";
  if (message.content.empty() && call.echo_text.empty() && !message.tool_calls.empty()) {
    out += "null";
  } else {
    out += '"';
    append_escaped(call.echo_text, out);
    append_escaped(message.content, out);
    out += '"';
  }
  out += ",\"refusal\":null";
  if (call.include_reasoning && !message.reasoning.empty()) {
    out += ",\"reasoning_content\":";
    append_string(message.reasoning, out);
  }
  for (const ToolCall& tool_call : message.tool_calls) {
    out += &tool_call == message.tool_calls.data() ? ",\"tool_calls\":[{" : ",{";
    append_call(tool_call.id, tool_call.name, tool_call.arguments, out);
  }
  if (!message.tool_calls.empty()) out += ']';
  out += '}';
}

void append_delta(const ChatRequest& call, const MessageDelta& delta, std::string& out) {
  const size_t start = out.size();
  const auto key = [&](std::string_view name) {
    if (out.size() > start) out += ',';
    out += name;
  };
  if (call.include_reasoning && !delta.reasoning.empty()) {
    key("\"reasoning_content\":");
    append_string(delta.reasoning, out);
  }
  if (!delta.content.empty()) {
    key("\"content\":");
    append_string(delta.content, out);
  }
  if (delta.tool_calls.empty()) return;
  key("\"tool_calls\":[");
  for (const ToolCallDelta& piece : delta.tool_calls) {
    out += &piece == delta.tool_calls.data() ? "{\"index\":" : ",{\"index\":";
    append_int(piece.index, out);
    out += ',';
    append_call(piece.id, piece.name, piece.arguments, out);
  }
  out += ']';
}

// Appends the prompt's fields, which follow the choices.
void append_prompt_parts(const ChatRequest& call, const std::vector<PositionLogprobs>& logprobs,
                         const SharedTokenIds& ids, const DecodeToken& decode, std::string& out) {
  if (call.return_prompt_logprobs) {
    out += ",\"prompt_logprobs\":";
    append_prompt_logprobs(logprobs, {0, call.return_tokens_as_token_ids, decode}, out);
  }
  if (ids != nullptr) append_token_ids(call, "prompt_token_ids", *ids, out);
}

}  // namespace

std::string chat_body(const ResponseHeader& header, const ChatRequest& call,
                      const std::vector<Choice>& choices, const Usage& usage,
                      const DecodeToken& decode) {
  std::string out;
  begin_body(header, kObject, out);
  for (const Choice& choice : choices) {
    out += &choice == choices.data() ? "{\"index\":" : ",{\"index\":";
    append_int(choice.index, out);
    out += ',';
    append_message(call, choice.message, out);
    append_logprobs(call, choice.token_ids, choice.logprobs, decode, out);
    out += ',';
    append_finish(
        chat_finish_reason(call, choice.finish_reason, !choice.message.tool_calls.empty()),
        choice.stop_reason, call.engine_request.sampling, out);
    append_token_ids(call, "token_ids", choice.token_ids, out);
    out += '}';
  }
  end_choices({}, &usage, out);
  if (!choices.empty()) {
    append_prompt_parts(call, choices[0].prompt_logprobs, choices[0].prompt_token_ids, decode, out);
  }
  out += '}';
  return out;
}

void chat_role_chunk(const ResponseHeader& header, const ChatRequest& call, ChoiceStream& choice,
                     const Usage* usage, const DecodeToken& decode, std::string& out) {
  begin_body(header, kChunkObject, out);
  out += "{\"index\":";
  append_int(choice.index, out);
  out += ",\"delta\":{\"role\":\"assistant\",\"content\":";
  append_string(call.echo_text, out);
  out += "},\"logprobs\":null,";
  append_finish("", "", call.engine_request.sampling, out);
  out += '}';
  end_choices(call.streaming, usage, out);
  append_prompt_parts(call, choice.prompt_logprobs, choice.prompt_token_ids, decode, out);
  out += '}';
  choice.has_started = true;
  choice.prompt_token_ids = {};
  choice.prompt_logprobs = {};
}

bool chat_chunk_has_news(const ChatRequest& call, const MessageDelta& delta, const Output& output) {
  if (output.finish_reason || !delta.content.empty() || !delta.tool_calls.empty()) return true;
  if (call.include_reasoning && !delta.reasoning.empty()) return true;
  if (call.engine_request.sampling.logprobs && !output.logprobs.empty()) return true;
  return call.return_token_ids && !output.token_ids.empty();
}

void chat_chunk(const ResponseHeader& header, const ChatRequest& call, ChoiceStream& choice,
                const MessageDelta& delta, const Output& output, const Usage* usage,
                const DecodeToken& decode, std::string& out) {
  choice.has_tool_calls |= !delta.tool_calls.empty();
  begin_body(header, kChunkObject, out);
  out += "{\"index\":";
  append_int(choice.index, out);
  out += ",\"delta\":{";
  append_delta(call, delta, out);
  out += '}';
  append_logprobs(call, output.token_ids, output.logprobs, decode, out);
  out += ',';
  const std::string_view finish_reason =
      output.finish_reason ? chat_finish_reason(call, *output.finish_reason, choice.has_tool_calls)
                           : "";
  append_finish(finish_reason, output.stop_reason, call.engine_request.sampling, out);
  append_token_ids(call, "token_ids", output.token_ids, out);
  out += '}';
  end_choices(call.streaming, usage, out);
  out += '}';
}

void chat_usage_chunk(const ResponseHeader& header, const Usage& usage, std::string& out) {
  begin_body(header, kChunkObject, out);
  end_choices({}, &usage, out);
  out += '}';
}

}  // namespace quire::server

// The parsed bodies of OpenAI's requests, as plain data, and the functions that parse them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/marked_text.h"
#include "grammar/grammar_compiler.h"
#include "jinja/value.h"
#include "quire/request.h"
#include "server/openai/api_error.h"

namespace quire::server {

// A restriction on the text of a sequence.
struct Restriction {
  GrammarSpec grammar;
  std::string field;  // the field that asks for it: "structured_outputs.regex"
};

struct StreamOptions {
  bool stream = false;
  bool include_usage = false;           // a last chunk with only the usage
  bool continuous_usage_stats = false;  // usage in every chunk
};

// The fields that completions and chats share.
struct GenerationRequest {
  std::string model;                       // empty: any served model
  std::optional<Restriction> restriction;  // absent: any text
  StreamOptions streaming;
  bool return_prompt_logprobs = false;      // set by prompt_logprobs, not by echo
  bool return_token_ids = false;            // vLLM's field: ids in addition to the text
  bool return_tokens_as_token_ids = false;  // vLLM's field: "token_id:123" in logprobs
  // The parts of the request that have no effect here although clients expect one, by their path:
  // "tools.web_search". They are named in the header x-quire-ignored and in the log.
  std::vector<std::string> ignored;
  size_t num_unnamed_ignored = 0;  // further such fields, which `ignored` does not name
};

inline constexpr size_t kMaxIgnored = 256;  // bounds the search for duplicates

// Adds a part of a request (a tool, an item of a history, or a field) to the ignored ones, unless
// it is among them already.
inline void ignore_part(std::string name, std::vector<std::string>& ignored) {
  if (ignored.size() == kMaxIgnored || std::ranges::find(ignored, name) != ignored.end()) return;
  ignored.push_back(std::move(name));
}

// A prompt as text, or as token ids if these are not empty.
struct CompletionPrompt {
  std::string text;
  std::vector<int32_t> token_ids;
};

// POST /v1/completions. Each prompt gets `engine_request.sampling.n` sequences.
struct CompletionRequest : GenerationRequest {
  Request engine_request;  // common to all prompts; has no prompt itself
  std::vector<CompletionPrompt> prompts;
  bool echo = false;
  // max_tokens is 0 with echo: the response is the prompt alone. The engine still generates one
  // token (sampling.max_tokens is 1), which is not shown.
  bool echo_only = false;
};

enum class ToolChoice { kNone, kAuto, kRequired, kNamed };

struct Tool {
  std::string name;
  std::string parameters;  // JSON schema; "{}" if the request gives none
  bool is_custom = false;  // its input is free text, see tool_kinds.h
  bool is_strict = false;  // the schema also restricts calls that the model chooses
};

// The last message of a request with continue_final_message. continue_from() cuts the rendered
// prompt after its text.
struct Continuation {
  std::string content = {};  // of the last message
  std::string marker = {};   // random text at the end of `content` in the template's variables
  // The remedy in errors: how a request of this API asks for a new message instead.
  std::string_view alternative = "leave out continue_final_message";
};

// A conversation for the chat template.
struct TemplateInput {
  jinja::Value variables = {};  // a dict: messages, tools, add_generation_prompt, …
  std::optional<Continuation> continuation = {};
  // The places of the messages in the request, "input[2]", by their index in the template's list;
  // empty: "messages[INDEX]".
  std::vector<std::string> sources = {};
  // The places of calls' arguments that are not a JSON object, for example because a token limit
  // cut them. The template gets their text in the message's content.
  std::vector<std::string> unread_arguments = {};
  // The indexes of the messages with such calls in the template's list, in ascending order.
  std::vector<size_t> messages_with_unread = {};
};

// POST /v1/chat/completions.
struct ChatRequest : GenerationRequest {
  TemplateInput conversation;
  // Has no prompt; the template renders it later. A sampling.max_tokens of 0 means the rest of the
  // context.
  Request engine_request;
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::kNone;
  std::string named_tool;           // only for kNamed
  bool parallel_tool_calls = true;  // false: at most one tool call
  bool include_reasoning = true;
  std::string echoed_message;  // with echo: the last message's text, if the assistant's
};

// Returns whether the output must be tool calls.
inline bool is_forced(const ChatRequest& request) {
  return request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed;
}

// Returns whether the output may call the tool.
inline bool may_call(const ChatRequest& request, const Tool& tool) {
  return request.tool_choice != ToolChoice::kNone &&
         (request.tool_choice != ToolChoice::kNamed || tool.name == request.named_tool);
}

// POST /tokenize and /detokenize.
struct TokenizeRequest {
  std::string model;
  std::string prompt;
  std::optional<TemplateInput> conversation;  // absent: `prompt` is the text
  bool add_special_tokens = true;
  bool return_token_strs = false;
};
struct DetokenizeRequest {
  std::string model;
  std::vector<int32_t> tokens;
};

// Fixed limits that protect a public server against hostile requests; no flag changes them.
struct RequestLimits {
  int max_sequences = 128;  // n
  int max_logprobs = 20;
  int max_stops = 16;
  int max_biases = 1024;
  int max_prompts = 1024;
  int max_embedding_inputs = 2048;  // as in OpenAI's API
  // Bytes of text in all prompts of a score request; each prompt repeats the query.
  size_t max_scored_bytes = size_t{8} << 20;
  int max_messages = 4096;
  int max_tools = 128;
  size_t max_listed_ids = size_t{1} << 20;  // allowed and stop ids, times the number of prompts
  size_t max_json_depth = 64;
  size_t max_template_values = size_t{1} << 19;       // JSON values and keys of a conversation
  size_t max_stored_conversation = size_t{32} << 20;  // bytes; a longer one is not continued
  GrammarLimits grammar;  // only its sizes are checked here; the grammar compiler checks the rest
};

inline constexpr RequestLimits kRequestLimits = {};

// Either a request or an error.
template <typename Body>
struct Parsed {
  Body request;
  std::optional<ApiError> error;
};

struct RequestDefaults {
  SamplingParams sampling;         // for conversations and texts
  SamplingParams sampling_of_ids;  // for prompts that are token ids, which a program made
  int completion_max_tokens = 16;
  int chat_max_tokens = 0;         // 0: the rest of the context
  std::string_view chat_template;  // source text; empty: unknown
  bool lacks_dialect = false;      // the format of the model's tool calls is not known
  bool has_generic_tools = false;  // the server writes the tools that the template ignores
  RequestLimits limits;
};

// Parse the bodies of requests. They read or refuse every field that OpenAI's clients or vLLM's
// send, ignore unknown fields, and treat null as absent. They refuse a wrong type, with the field's
// name, and a key that occurs twice in any object of the body.
Parsed<CompletionRequest> parse_completion_request(std::string_view body,
                                                   const RequestDefaults& defaults);
Parsed<ChatRequest> parse_chat_request(std::string_view body, const RequestDefaults& defaults);
Parsed<TokenizeRequest> parse_tokenize_request(std::string_view body,
                                               const RequestDefaults& defaults);
Parsed<DetokenizeRequest> parse_detokenize_request(std::string_view body,
                                                   const RequestDefaults& defaults);

// Cuts a rendered conversation after the text of the last message. A template that does not write
// this text exactly once and unchanged, except for white space around it, is an error. The time is
// linear in the texts.
//
// A search for the text alone could find it elsewhere, for example "end" in the template's
// <|im_end|>. So the text is rendered with a random marker at its end, and the prompt is cut there.
std::optional<ApiError> continue_from(const Continuation& continuation, MarkedText& rendered);

// Returns the schema of a forced call's text: the named tool's parameters, or an array of {"name",
// "parameters"} for kRequired, with exactly one element if parallel_tool_calls is false. Its
// grammar names the tools, for errors.
Restriction forced_call_schema(const ChatRequest& request);

// Returns the descriptions of these bodies.
struct ObjectSchema;
std::vector<ObjectSchema> openai_schemas();

}  // namespace quire::server

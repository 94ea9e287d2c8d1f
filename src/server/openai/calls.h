// The parsed bodies of OpenAI's calls, as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar_compiler.h"
#include "quire/request.h"

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

// The fields that both kinds of generation calls share.
struct AnswerCall {
  std::string model;                       // empty: any served model
  std::optional<Restriction> restriction;  // absent: any text
  StreamOptions streaming;
  bool return_prompt_logprobs = false;      // set by prompt_logprobs, not by echo
  bool return_token_ids = false;            // vLLM's field: ids in addition to the text
  bool return_tokens_as_token_ids = false;  // vLLM's field: "token_id:123" in logprobs
};

// A prompt as text, or as token ids if these are not empty.
struct CompletionPrompt {
  std::string text;
  std::vector<int32_t> token_ids;
};

// POST /v1/completions. Each prompt gets `request.sampling.n` sequences.
struct CompletionCall : AnswerCall {
  Request request;  // common to all prompts; has no prompt itself
  std::vector<CompletionPrompt> prompts;
  bool echo = false;
  // max_tokens is 0 with echo: the response is the prompt alone. The engine still generates one
  // token (sampling.max_tokens is 1), which is not shown.
  bool echo_only = false;
};

enum class ToolChoice { kNone, kAuto, kRequired, kNamed };

struct Tool {
  std::string name;
  std::string parameters;  // JSON schema; "{}" if the call gives none
};

// The last message of a call with continue_final_message. continue_from() cuts the rendered prompt
// after its text.
struct Continuation {
  std::string content;  // of the last message
  std::string marker;   // random text at the end of `content` in the template's variables
};

// A conversation for the chat template.
struct TemplateInput {
  std::string template_variables;  // a JSON object: messages, tools, add_generation_prompt, …
  std::optional<Continuation> continuation;
};

// POST /v1/chat/completions.
struct ChatCall : AnswerCall, TemplateInput {
  // Has no prompt; the template renders it later. A sampling.max_tokens of 0 means the rest of the
  // context.
  Request request;
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::kNone;
  std::string named_tool;           // only for kNamed
  bool parallel_tool_calls = true;  // false: at most one tool call
  bool include_reasoning = true;
  std::string echo_text;  // with echo: the last message's text, if the assistant's
};

// POST /tokenize and /detokenize.
struct TokenizeCall : TemplateInput {  // `prompt` is the text if template_variables is empty
  std::string model;
  std::string prompt;
  bool add_special_tokens = true;
  bool return_token_strs = false;
};
struct DetokenizeCall {
  std::string model;
  std::vector<int32_t> tokens;
};

}  // namespace quire::server

// What the bodies of OpenAI's calls ask for, as plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quire/request.h"

namespace quire::server {

// How an answer's text is restricted.
struct StructuredOutput {
  enum class Kind { kNone, kJsonObject, kJsonSchema, kChoice, kRegex, kGrammar };
  Kind kind = Kind::kNone;
  std::string text;                  // the schema as JSON, the pattern, the EBNF
  std::vector<std::string> choices;  // of kChoice
};

struct StreamOptions {
  bool stream = false;
  bool include_usage = false;           // a last chunk with the usage alone
  bool continuous_usage_stats = false;  // and usage in every chunk
};

// POST /v1/completions. One request a prompt; each has `sampling.n` answers.
struct CompletionCall {
  std::string model;
  std::vector<Request> requests;
  bool echo = false;
  StructuredOutput structured;
  StreamOptions streaming;
};

enum class ToolChoice { kNone, kAuto, kRequired, kNamed };

struct Tool {
  std::string name;
  std::string parameters;  // JSON schema; "{}" where none was given
};

// POST /v1/chat/completions.
struct ChatCall {
  std::string model;
  std::string template_variables;  // a JSON object: messages, tools, add_generation_prompt, …
  Request request;                 // without its prompt, which the template makes
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::kNone;
  std::string named_tool;           // of kNamed
  bool parallel_tool_calls = true;  // false: at most one
  bool include_reasoning = true;
  StructuredOutput structured;
  StreamOptions streaming;
};

// POST /tokenize and /detokenize.
struct TokenizeCall {
  std::string model;
  std::string prompt;
  std::string template_variables;  // instead of `prompt`: a conversation
  bool add_special_tokens = true;
  bool return_token_strs = false;
};
struct DetokenizeCall {
  std::string model;
  std::vector<int32_t> tokens;
};

}  // namespace quire::server

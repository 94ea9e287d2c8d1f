// What the bodies of OpenAI's calls ask for, as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar_spec.h"
#include "quire/request.h"

namespace quire::server {

// How an answer's text is restricted.
struct Restriction {
  GrammarSpec grammar;
  std::string field;  // that asks for it: "structured_outputs.regex"
};

struct StreamOptions {
  bool stream = false;
  bool include_usage = false;           // a last chunk with the usage alone
  bool continuous_usage_stats = false;  // and usage in every chunk
};

// What both calls for an answer have.
struct AnswerCall {
  std::string model;                       // empty: whichever is served
  std::optional<Restriction> restriction;  // none: any text
  StreamOptions streaming;
  bool return_prompt_logprobs = false;      // asked for by name, not only for the echo
  bool return_token_ids = false;            // vLLM's: ids beside the text
  bool return_tokens_as_token_ids = false;  // vLLM's: "token_id:123" in log probabilities
};

// Text, or ids where there are any.
struct CompletionPrompt {
  std::string text;
  std::vector<int32_t> token_ids;
};

// POST /v1/completions. `request.sampling.n` answers to each prompt.
struct CompletionCall : AnswerCall {
  Request request;  // of every prompt, without it
  std::vector<CompletionPrompt> prompts;
  bool echo = false;
  // max_tokens 0 with echo: the prompt is all of the answer. The engine makes one token even so
  // (sampling.max_tokens is 1), which is not shown.
  bool echo_only = false;
};

enum class ToolChoice { kNone, kAuto, kRequired, kNamed };

struct Tool {
  std::string name;
  std::string parameters;  // JSON schema; "{}" where none was given
};

// The last message of a call with continue_final_message: continue_from() cuts the rendered prompt
// behind its text.
struct Continuation {
  std::string content;  // of the last message
  std::string marker;   // random; stands at the end of this text in the template's variables
};

// A conversation for the chat template.
struct TemplateInput {
  std::string template_variables;  // a JSON object: messages, tools, add_generation_prompt, …
  std::optional<Continuation> continuation;
};

// POST /v1/chat/completions.
struct ChatCall : AnswerCall, TemplateInput {
  // Without its prompt, which the template makes. sampling.max_tokens 0: what the context leaves.
  Request request;
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::kNone;
  std::string named_tool;           // of kNamed
  bool parallel_tool_calls = true;  // false: at most one
  bool include_reasoning = true;
  std::string echo_text;  // with echo: what the last message said, if the assistant's
};

// POST /tokenize and /detokenize.
struct TokenizeCall : TemplateInput {  // without template_variables: `prompt` is the text
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

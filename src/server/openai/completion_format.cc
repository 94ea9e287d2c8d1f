#include "server/openai/body_parts.h"
#include "server/openai/json_text.h"
#include "server/openai/logprobs_json.h"
#include "server/openai/responses.h"

namespace quire::server {
namespace {

constexpr std::string_view kObject = "text_completion";

// One choice, or a chunk's part of one. A null field is omitted.
struct Part {
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

void append_logprobs(const CompletionRequest& call, const Part& part, const DecodeToken& decode,
                     int64_t& text_offset, std::string& out) {
  const SamplingParams& sampling = call.engine_request.sampling;
  out += ",\"logprobs\":";
  if (!sampling.logprobs) {
    out += "null";
    return;
  }
  std::vector<ScoredToken> tokens;
  if (call.echo && part.prompt_ids != nullptr) {
    append_scored(*part.prompt_ids, *part.prompt_logprobs, tokens);
  }
  if (!call.echo_only) append_scored(*part.ids, *part.logprobs, tokens);
  append_completion_logprobs(tokens, {*sampling.logprobs, call.return_tokens_as_token_ids, decode},
                             text_offset, out);
}

void append_choice(const CompletionRequest& call, const Part& part, const DecodeToken& decode,
                   int64_t& text_offset, std::string& out) {
  out += "{\"index\":";
  append_int(part.index, out);
  out += ",\"text\":\"";
  if (call.echo) append_escaped(part.prompt_text, out);
  if (!call.echo_only) append_escaped(part.text, out);
  out += '"';
  append_logprobs(call, part, decode, text_offset, out);
  out += ',';
  append_finish(part.finish_reason, part.stop_reason, call.engine_request.sampling, out);
  if (call.return_prompt_logprobs && part.prompt_ids != nullptr) {
    const LogprobsStyle style = {0, call.return_tokens_as_token_ids, decode};
    out += ",\"prompt_logprobs\":";
    append_prompt_logprobs(*part.prompt_logprobs, style, out);
  }
  static const std::vector<int32_t> no_ids;
  append_token_ids(call, "token_ids", call.echo_only ? no_ids : *part.ids, out);
  if (part.prompt_ids != nullptr) append_token_ids(call, "prompt_token_ids", *part.prompt_ids, out);
  out += '}';
}

}  // namespace

std::string completion_body(const ResponseHeader& header, const CompletionRequest& call,
                            const std::vector<Choice>& choices, const Usage& usage,
                            const DecodeToken& decode) {
  std::string out;
  begin_body(header, kObject, out);
  for (const Choice& choice : choices) {
    if (&choice != choices.data()) out += ',';
    int64_t text_offset = 0;
    append_choice(call,
                  {.index = choice.index,
                   .prompt_text = choice.prompt_text,
                   .text = choice.text,
                   .prompt_ids = choice.prompt_token_ids.get(),
                   .prompt_logprobs = &choice.prompt_logprobs,
                   .ids = &choice.token_ids,
                   .logprobs = &choice.logprobs,
                   .finish_reason = openai_finish_reason(choice.finish_reason),
                   .stop_reason = choice.stop_reason},
                  decode, text_offset, out);
  }
  end_choices({}, &usage, out);
  out += '}';
  return out;
}

void completion_chunk(const ResponseHeader& header, const CompletionRequest& call,
                      ChoiceStream& choice, const Output& output, const Usage* usage,
                      const DecodeToken& decode, std::string& out) {
  Part part = {.index = choice.index,
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
  begin_body(header, kObject, out);
  append_choice(call, part, decode, choice.text_offset, out);
  end_choices(call.streaming, usage, out);
  out += '}';
  if (choice.has_started) return;
  choice.has_started = true;
  choice.prompt_text = {};
  choice.prompt_token_ids = {};
  choice.prompt_logprobs = {};
}

void completion_usage_chunk(const ResponseHeader& header, const Usage& usage, std::string& out) {
  begin_body(header, kObject, out);
  end_choices({}, &usage, out);
  out += '}';
}

}  // namespace quire::server

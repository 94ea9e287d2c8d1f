#include "cli/completion_json.h"

#include "base/json.h"

namespace quire::cli {
namespace {

void write_position(JsonWriter& json, const PositionLogprobs& position, const DecodeToken& decode) {
  if (position.empty()) return json.null();
  json.begin_array();
  for (const TokenLogprob& token : position) {
    json.begin_object();
    json.field("token_id", token.token_id);
    json.field("logprob", double{token.logprob});
    json.field("rank", token.rank);
    json.field("decoded_token", decode(token.token_id));
    json.end_object();
  }
  json.end_array();
}

void write_logprobs(JsonWriter& json, std::string_view name,
                    const std::vector<PositionLogprobs>& positions, const DecodeToken& decode) {
  if (positions.empty()) return;
  json.key(name);
  json.begin_array();
  for (const PositionLogprobs& position : positions) write_position(json, position, decode);
  json.end_array();
}

std::string answer_line(size_t prompt_idx, const Completion& completion, size_t idx,
                        const DecodeToken& decode) {
  const Answer& answer = completion.answers[idx];
  JsonWriter json;
  json.begin_object();
  json.field("index", prompt_idx);
  if (completion.answers.size() > 1) json.field("answer_index", idx);
  json.key("prompt_token_ids");
  json.ids(completion.prompt_token_ids);
  json.key("token_ids");
  json.ids(answer.token_ids);
  json.field("text", answer.text);
  json.key("finish_reason");
  if (answer.finish_reason) {
    json.value(finish_reason_name(*answer.finish_reason));
  } else {
    json.null();
  }
  if (!answer.error.ok()) json.field("error", answer.error.message());
  if (!answer.stop_reason.empty()) json.field("stop_reason", answer.stop_reason);
  write_logprobs(json, "logprobs", answer.logprobs, decode);
  write_logprobs(json, "prompt_logprobs", completion.prompt_logprobs, decode);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace

std::string completion_lines(size_t prompt_idx, const Completion& completion,
                             const DecodeToken& decode) {
  std::string lines;
  for (size_t i = 0; i < completion.answers.size(); ++i) {
    lines += answer_line(prompt_idx, completion, i, decode);
  }
  return lines;
}

std::string error_line(size_t prompt_idx, const Status& error) {
  JsonWriter json;
  json.begin_object();
  json.field("index", prompt_idx);
  json.field("error", error.message());
  json.end_object();
  return json.text() + "\n";
}

}  // namespace quire::cli

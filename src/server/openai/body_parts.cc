#include "server/openai/body_parts.h"

#include <algorithm>

#include "server/openai/json_text.h"

namespace quire::server {

void begin_body(const ResponseHeader& header, std::string_view object, std::string& out) {
  out += "{\"id\":";
  append_string(header.id, out);
  out += ",\"object\":\"";
  out += object;
  out += "\",\"created\":";
  append_int(header.created, out);
  out += ",\"model\":";
  append_string(header.model, out);
  out += ",\"choices\":[";
}

void append_usage(const Usage& usage, std::string& out) {
  out += "{\"prompt_tokens\":";
  append_int(usage.num_prompt_tokens, out);
  out += ",\"completion_tokens\":";
  append_int(usage.num_completion_tokens, out);
  out += ",\"total_tokens\":";
  append_int(int64_t{usage.num_prompt_tokens} + usage.num_completion_tokens, out);
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
  append_int(usage.num_cached_tokens, out);
  out += "},\"completion_tokens_details\":{\"reasoning_tokens\":";
  append_int(usage.num_reasoning_tokens, out);
  out += "}}";
}

void end_choices(const StreamOptions& streaming, const Usage* usage, std::string& out) {
  out += ']';
  if (usage != nullptr) {
    out += ",\"usage\":";
    append_usage(*usage, out);
  } else if (streaming.include_usage) {
    out += ",\"usage\":null";
  }
}

std::string_view openai_finish_reason(FinishReason reason) {
  return reason == FinishReason::kCancelled ? "abort" : finish_reason_name(reason);
}

void append_finish(std::string_view finish_reason, std::string_view stop_reason,
                   const SamplingParams& sampling, std::string& out) {
  out += "\"finish_reason\":";
  if (finish_reason.empty()) {
    out += "null";
  } else {
    append_string(finish_reason, out);
  }
  out += ",\"stop_reason\":";
  const bool is_text =
      std::find(sampling.stop.begin(), sampling.stop.end(), stop_reason) != sampling.stop.end();
  const bool is_id = std::all_of(stop_reason.begin(), stop_reason.end(),
                                 [](char c) { return c >= '0' && c <= '9'; });
  if (stop_reason.empty()) {
    out += "null";
  } else if (is_id && !is_text) {
    out += stop_reason;
  } else {
    append_string(stop_reason, out);
  }
}

void append_token_ids(const GenerationRequest& call, std::string_view name,
                      const std::vector<int32_t>& ids, std::string& out) {
  if (!call.return_token_ids) return;
  out += ",\"";
  out += name;
  out += "\":";
  append_ids(ids, out);
}

std::string sse_event(std::string_view json) {
  std::string event;
  event.reserve(kSsePrefix.size() + json.size() + kSseSuffix.size());
  event += kSsePrefix;
  event += json;
  event += kSseSuffix;
  return event;
}

}  // namespace quire::server

#include "cli/bench_serve_stream.h"

namespace quire::cli {
namespace {

bool has_text(simdjson::dom::element object, std::string_view name) {
  std::string_view text;
  return !object[name].get_string().get(text) && !text.empty();
}

// Whether a completion's choice has text, or a chat's delta has content, reasoning or part of a
// tool call.
bool has_output(simdjson::dom::element choice) {
  if (has_text(choice, "text")) return true;
  simdjson::dom::element delta;
  if (choice["delta"].get(delta)) return false;
  simdjson::dom::array calls;
  return has_text(delta, "content") || has_text(delta, "reasoning_content") ||
         has_text(delta, "reasoning") || !delta["tool_calls"].get_array().get(calls);
}

}  // namespace

bool StreamReader::feed(std::string_view piece, TimePoint now) {
  const double now_s = std::chrono::duration<double>(now - sent_).count();
  const bool fits = events_.feed(piece, [&](std::string_view data) { read_event(data, now_s); });
  if (!fits) fail("bad stream", "an event is too large");
  return answer_.end != ServedAnswer::End::kFailed;
}

void StreamReader::fail(std::string kind, std::string_view message) {
  if (answer_.end == ServedAnswer::End::kFailed) return;
  answer_.end = ServedAnswer::End::kFailed;
  answer_.error_kind = std::move(kind);
  answer_.error_message = message.substr(0, 300);
}

void StreamReader::read_event(std::string_view data, double now_s) {
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  simdjson::dom::element event;
  if (parser_.parse(data.data(), data.size()).get(event)) return fail("bad stream", data);
  if (!event.is_object()) return fail("bad stream", data);
  simdjson::dom::element error;
  if (!event["error"].get(error) && !error.is_null()) return fail("error in the stream", data);
  simdjson::dom::array choices;
  if (!event["choices"].get_array().get(choices)) {
    for (const simdjson::dom::element choice : choices) read_choice(choice, now_s);
  }
  int64_t count = 0;
  if (!event["usage"]["completion_tokens"].get_int64().get(count)) num_usage_tokens_ = count;
  if (!event["usage"]["prompt_tokens"].get_int64().get(count)) answer_.num_prompt_tokens = count;
}

void StreamReader::read_choice(simdjson::dom::element choice, double now_s) {
  std::string_view reason;
  const bool ends = !choice["finish_reason"].get_string().get(reason);
  has_finish_reason_ |= ends;
  const bool counts = has_output(choice);
  if (!counts && !ends) return;
  if (num_chunks_ == 0) {
    answer_.first_token_s = now_s;  // without text: the time at which the response ended
  } else if (counts) {
    answer_.inter_token_s.push_back(now_s - answer_.latency_s);
  }
  num_chunks_ += counts ? 1 : 0;
  answer_.latency_s = now_s;
}

void StreamReader::finish() {
  if (!has_finish_reason_ && !is_done_) fail("cut stream", "it ended without a finish reason");
  if (answer_.end == ServedAnswer::End::kFailed) return;
  answer_.end = ServedAnswer::End::kOk;
  answer_.num_output_tokens = num_usage_tokens_ >= 0 ? num_usage_tokens_ : num_chunks_;
}

}  // namespace quire::cli

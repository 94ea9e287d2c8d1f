// One streamed answer as a client sees it, by vLLM's definitions.
#pragma once

#include <simdjson.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "http_client/sse.h"

namespace quire::cli {

// Times are seconds; those of a request count from its sending.
struct ServedAnswer {
  enum class End { kNone, kOk, kFailed };  // kNone: the benchmark was over before it

  End end = End::kNone;
  double sent_s = 0.0;         // from the benchmark's start
  double first_token_s = 0.0;  // TTFT
  double latency_s = 0.0;      // E2EL: to the last chunk of text, or the one with the finish reason
  std::vector<double> inter_token_s;  // ITL: between chunks of text
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;  // as the server says (usage), else the chunks of text
  std::string error_kind;         // with kFailed: "HTTP 429", "no connection", …
  std::string error_message;
};

// Reads the body of a streamed completion or chat. Chunks with text count as tokens; a chat's first
// one that only names the role does not, so that it makes no time to first token.
class StreamReader {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  StreamReader(ServedAnswer& answer, TimePoint sent) : answer_(answer), sent_(sent) {}

  // False: the stream is no answer, and the answer says why.
  bool feed(std::string_view piece, TimePoint now);
  // The body has ended.
  void finish();

 private:
  void read_event(std::string_view data, double now_s);
  void read_choice(simdjson::dom::element choice, double now_s);
  void fail(std::string kind, std::string_view message);

  ServedAnswer& answer_;
  TimePoint sent_;
  http_client::SseReader events_;
  simdjson::dom::parser parser_;
  int64_t num_chunks_ = 0;
  int64_t num_usage_tokens_ = -1;  // < 0: the server does not say
  bool has_finish_reason_ = false;
  bool is_done_ = false;
};

}  // namespace quire::cli

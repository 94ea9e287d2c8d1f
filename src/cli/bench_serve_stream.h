// One streamed answer as a client sees it, by vLLM's definitions.
#pragma once

#include <simdjson.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "http_client/sse.h"

namespace quire::cli {

// Times are in seconds. Latencies are measured from the moment the request was sent.
struct ServedAnswer {
  enum class End { kNone, kOk, kFailed };  // kNone: the benchmark ended before the request did

  End end = End::kNone;
  double sent_s = 0.0;                // from the benchmark's start
  double first_token_s = 0.0;         // TTFT
  double latency_s = 0.0;             // E2EL: until the last chunk with text or a finish reason
  std::vector<double> inter_token_s;  // ITL: between chunks of text
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;  // from the server's usage, else the number of chunks with text
  std::string error_kind;         // with kFailed: "HTTP 429", "no connection", …
  std::string error_message;
};

// Reads the body of a streaming completion or chat. Each chunk with text counts as one token. The
// first chunk of a chat, which only names the role, does not count, so it does not set TTFT.
class StreamReader {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  StreamReader(ServedAnswer& answer, TimePoint sent) : answer_(answer), sent_(sent) {}

  // Returns false if the stream is malformed; the ServedAnswer then holds the reason.
  bool feed(std::string_view piece, TimePoint now);
  // To be called when the body has ended.
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
  int64_t num_usage_tokens_ = -1;  // < 0: the server did not report it
  bool has_finish_reason_ = false;
  bool is_done_ = false;
};

}  // namespace quire::cli

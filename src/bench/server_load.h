// Puts load on a server: sends streaming requests when they are due and times each response as
// vLLM's benchmark does.
#pragma once

#include <simdjson.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/dataset.h"
#include "bench/measurement.h"
#include "http_client/client.h"

namespace quire::bench {

struct ArrivalConfig {
  double request_rate = 0.0;  // requests per second, or infinity: all at once
  double burstiness = 1.0;    // shape of the gamma distribution: 1 is Poisson, smaller is burstier
  uint64_t seed = 0;
};

// The times in seconds from the start at which requests are due, in ascending order. As in vLLM,
// intervals are drawn from a gamma distribution with mean 1 / request_rate, then scaled so that the
// last request is due at num_requests / request_rate.
std::vector<double> arrival_times(const ArrivalConfig& config, int num_requests);

struct RequestConfig {
  std::string model;
  bool is_chat = false;
  bool ignore_eos = false;
  double temperature = 0.0;
};
// The body of a streaming request whose last chunk reports the usage.
std::string request_body(const DatasetRequest& request, const RequestConfig& config);

// One streamed response, measured at the client by vLLM's definitions. Times are in seconds.
// Latencies are measured from the moment the request was sent.
struct ServedResponse {
  enum class End { kNone, kOk, kFailed };  // kNone: the benchmark ended before the request did

  End end = End::kNone;
  double sent_s = 0.0;                // from the benchmark's start
  double first_token_s = 0.0;         // TTFT
  double latency_s = 0.0;             // E2EL: until the last chunk with text or a finish reason
  std::vector<double> inter_token_s;  // ITL: between chunks of text
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;  // of the prompt, if the server's usage has them
  // From the server's usage; without it, the number of chunks with text.
  int64_t num_output_tokens = 0;
  std::string error_kind;  // with kFailed: "HTTP 429", "no response", …
  std::string error_message;
};

// Reads the body of a streaming completion or chat. Each chunk with text counts as one token. The
// first chunk of a chat, which only names the role, does not count, so it does not set TTFT.
class StreamReader {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A stream of many more events than the `output_len` requested tokens fails, so that a server
  // that never ends its stream cannot fill the memory. A stream without an event for longer than
  // kMaxSilence also fails, even if comments keep the connection alive.
  static constexpr std::chrono::minutes kMaxSilence{10};
  StreamReader(ServedResponse& response, TimePoint sent, int output_len);

  // Returns false if the stream is malformed; the ServedResponse then holds the reason.
  bool feed(std::string_view piece, TimePoint now);
  // Call it when the body has ended.
  void finish();

 private:
  void read_event(std::string_view data, double now_s);
  void read_choice(simdjson::dom::element choice, double now_s);
  // Fails the stream if the server reports a count that no response can have.
  void read_usage(simdjson::dom::element usage, std::string_view field, int64_t& count);
  // Counts an event or a choice. Returns false, and fails the stream, beyond the bound.
  bool count_event();
  void fail(std::string kind, std::string_view message);

  ServedResponse& response_;
  TimePoint sent_;
  int output_len_;
  int64_t num_events_left_;
  TimePoint last_event_;  // before the first event, the time at which the request was sent
  http_client::SseReader events_;
  simdjson::dom::parser parser_;
  int64_t num_chunks_ = 0;
  int64_t num_usage_tokens_ = -1;  // < 0: the server did not report it
  bool has_finish_reason_ = false;
  bool has_choice_ = false;
  bool is_done_ = false;
};

struct LoadConfig {
  std::string target;       // "/v1/completions"
  int max_concurrency = 0;  // 0: no limit. As in vLLM, no latency includes the wait for this limit
};

// A request as the client sends it: its HTTP body, and the time at which it is due.
struct TimedRequest {
  std::string body;
  double due_s = 0.0;  // seconds after the start; ascending in a list
  int output_len = 0;  // tokens that the body asks for
};

struct LoadResult {
  std::vector<ServedResponse> responses;  // one per request
  double duration_s = 0.0;
  int peak_concurrent = 0;
  double cpu_s = 0.0;  // CPU time of this process
};

// Blocks until every request has ended or hooks.interrupted() returns true.
LoadResult run_load(http_client::Client& client, const std::vector<TimedRequest>& requests,
                    const LoadConfig& config, const Hooks& hooks);

}  // namespace quire::bench

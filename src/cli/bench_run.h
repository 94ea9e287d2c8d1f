// Shared by the benchmarks: runs a batch of requests to its end and measures it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/dataset.h"
#include "cli/run_requests.h"

namespace quire::cli {

struct BenchResult {
  Status end;  // kCancelled after Ctrl-C; the other fields then cover finished requests
  double elapsed_s = 0.0;
  int64_t num_requests = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  std::vector<double> first_token_s;  // per request: from submission to its first token
  std::vector<double> per_token_s;    // per request of two or more tokens: mean time between them

  double requests_per_s() const { return static_cast<double>(num_requests) / elapsed_s; }
  double output_tokens_per_s() const { return static_cast<double>(num_output_tokens) / elapsed_s; }
  double total_tokens_per_s() const {
    return static_cast<double>(num_prompt_tokens + num_output_tokens) / elapsed_s;
  }
};

BenchResult summarize(std::span<const Completion> completions, double elapsed_s);

// Sampling as in vLLM's benchmarks: temperature 1, end-of-sequence ignored, output_len tokens.
std::vector<Request> to_requests(std::span<const BenchRequest> requests);

// Fails if the longest prompt plus output exceeds the model's context. The error names `flags` as
// those to lower.
Status check_lengths(int64_t prompt_len, int64_t output_len, int max_model_len,
                     std::string_view flags);

// Submits all requests at once and waits for them. If a request fails, its error is the result.
// `progress` is the label of the progress bar; empty: no bar.
Result<BenchResult> run_bench(Engine& engine, std::vector<Request> requests, std::string progress);

// Prints a note above a report that covers only the requests finished before Ctrl-C.
void print_partial(const Status& end);

// Report lines for first_token_s and per_token_s, and the same as JSON.
void print_token_times(const BenchResult& result);
void write_token_times(JsonWriter& json, const BenchResult& result);

}  // namespace quire::cli

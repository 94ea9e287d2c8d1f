// What the benchmarks share: a batch run to its end, and what it took.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/dataset.h"
#include "cli/run_requests.h"

namespace quire::cli {

struct BenchResult {
  Status end;  // kCancelled after Ctrl-C: the rest is of the requests that were finished before it
  double elapsed_s = 0.0;
  int64_t num_requests = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  std::vector<double> first_token_s;  // one a request: from its submission to its first token
  std::vector<double> per_token_s;    // one a request of two tokens or more: mean time between them

  double requests_per_s() const { return static_cast<double>(num_requests) / elapsed_s; }
  double output_tokens_per_s() const { return static_cast<double>(num_output_tokens) / elapsed_s; }
  double total_tokens_per_s() const {
    return static_cast<double>(num_prompt_tokens + num_output_tokens) / elapsed_s;
  }
};

BenchResult summarize(std::span<const Completion> completions, double elapsed_s);

// As vLLM's benchmarks: temperature 1, end-of-sequence ignored, exactly output_len tokens.
std::vector<Request> to_requests(std::span<const BenchRequest> requests);

// The longest prompt with the longest answer must fit the model's context. `flags`: which to lower.
Status check_lengths(int64_t prompt_len, int64_t output_len, int max_model_len,
                     std::string_view flags);

// Submits everything at once and waits. A request's failure is the result.
// `progress`: the bar's label; empty: no bar.
Result<BenchResult> run_bench(Engine& engine, std::vector<Request> requests, std::string progress);

// Above the report of what was finished before Ctrl-C.
void print_partial(const Status& end);

// The report's lines for first_token_s and per_token_s, and their JSON.
void print_token_times(const BenchResult& result);
void write_token_times(JsonWriter& json, const BenchResult& result);

}  // namespace quire::cli

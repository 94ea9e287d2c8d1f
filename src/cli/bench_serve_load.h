// Sends calls to a server when they are due and records the outcome of each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench_serve_stream.h"
#include "http_client/client.h"

namespace quire::cli {

struct LoadConfig {
  std::string target;       // "/v1/completions"
  int max_concurrency = 0;  // 0: no limit. As in vLLM, time spent waiting here is unmeasured
  std::string progress;     // the bar's label; empty: no bar
  std::function<bool()> interrupted;
};

struct TimedCall {
  std::string body;
  double due_s = 0.0;  // ascending
};

struct LoadResult {
  std::vector<ServedAnswer> answers;  // one per call
  double duration_s = 0.0;
  int peak_concurrent = 0;
  double cpu_s = 0.0;  // CPU time of this process
};

// Blocks until every call has ended or interrupted() returns true.
LoadResult run_load(http_client::Client& client, const std::vector<TimedCall>& calls,
                    const LoadConfig& config);

}  // namespace quire::cli

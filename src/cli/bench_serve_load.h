// Sends calls to a server when they are due and keeps what each came to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench_serve_stream.h"
#include "http_client/client.h"

namespace quire::cli {

struct LoadConfig {
  std::string target;       // "/v1/completions"
  int max_concurrency = 0;  // 0: no bound. A call waits its turn beyond it, unmeasured, as in vLLM
  std::string progress;     // the bar's label; empty: no bar
  std::function<bool()> interrupted;
};

struct TimedCall {
  std::string body;
  double due_s = 0.0;  // rising
};

struct LoadResult {
  std::vector<ServedAnswer> answers;  // one a call
  double duration_s = 0.0;
  int peak_concurrent = 0;
  double cpu_s = 0.0;  // of this process
};

// Blocks until every call has ended, or interrupted() says so.
LoadResult run_load(http_client::Client& client, const std::vector<TimedCall>& calls,
                    const LoadConfig& config);

}  // namespace quire::cli

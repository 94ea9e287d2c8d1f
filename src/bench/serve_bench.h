// Measures a server that speaks OpenAI's API: `quire bench serve`.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "bench/serve_report.h"
#include "bench/server_load.h"

namespace quire::bench {

struct ServeBenchOptions {
  std::string base_url;  // empty: host and port
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string uds;
  std::string endpoint = "/v1/completions";
  std::string model;    // empty: the first that the server lists
  std::string api_key;  // one line; empty: none
  bool insecure = false;

  ServeDatasetConfig dataset;
  std::string random_prompts = "ids";  // or "words"
  int vocab_size = 0;                  // 0: the server's
  bool ignore_eos = false;
  double temperature = 0.0;

  // A finite rate replaces a trace's own times.
  ArrivalConfig arrivals{.request_rate = std::numeric_limits<double>::infinity()};
  int max_concurrency = 0;
  int num_warmups = 0;

  ReportConfig report{{std::begin(kLatencyKinds), std::end(kLatencyKinds)}, {99}};
  std::vector<Goodput> goodput;
};

struct ServeBenchResult {
  Status end;  // kCancelled after an interrupt; the result then covers finished requests
  std::string model;
  ServeResult result;
  // One line each: failed requests, and reasons to doubt the numbers.
  std::vector<std::string> remarks;
};

// Refuses options that contradict each other, a malformed URL, and a key of several lines.
Status check_server(const ServeBenchOptions& options);
Result<ServeBenchResult> measure_server(const ServeBenchOptions& options, const Hooks& hooks);
std::string to_json(const ServeBenchResult& result, const ServeBenchOptions& options);

}  // namespace quire::bench

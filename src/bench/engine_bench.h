// Measures an engine in this process: the throughput of many requests, the latency of one batch.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/dataset.h"
#include "bench/measurement.h"
#include "bench/speculation_report.h"
#include "engine/run_requests.h"
#include "platform/platform.h"

namespace quire::bench {

struct EngineBenchResult {
  Status end;  // kCancelled after an interrupt; the other fields then cover finished requests
  double elapsed_s = 0.0;
  int64_t num_requests = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  std::vector<double> first_token_s;  // per request: from submission to its first token
  std::vector<double> per_token_s;    // per request of two or more tokens: mean time between them
  MeasuredSpeculation speculation = {};

  double requests_per_s() const { return static_cast<double>(num_requests) / elapsed_s; }
  double output_tokens_per_s() const { return static_cast<double>(num_output_tokens) / elapsed_s; }
  double total_tokens_per_s() const {
    return static_cast<double>(num_prompt_tokens + num_output_tokens) / elapsed_s;
  }
};
EngineBenchResult summarize(std::span<const RequestResult> results, double elapsed_s);

// Fails if the longest prompt plus output exceeds the model's context. The error tells the user to
// lower `fields`.
Status check_lengths(int64_t prompt_len, int64_t output_len, int max_model_len,
                     std::string_view fields);

// Options of a measurement that submits all requests at once.
struct ThroughputOptions {
  std::string dataset_name = "random";
  std::string dataset_path = {};
  int input_len = 1024;
  int output_len = 0;  // 0: 128 for random prompts, a dialogue's own answer for ShareGPT
  double random_range_ratio = 0.0;
  int num_prompts = 1000;
  uint64_t seed = 0;
};

struct ThroughputResult {
  EngineBenchResult requests;
  std::optional<DeviceProfile> profile;
};

// Profiles the measurement if `profiler` is not null.
Result<ThroughputResult> measure_throughput(Engine& engine, const ThroughputOptions& options,
                                            DeviceProfiler* profiler, const Hooks& hooks);
std::string to_text(const ThroughputResult& result);
// Fields that vLLM also reports have vLLM's names.
std::string to_json(const ThroughputResult& result);

// Options of a measurement that runs one batch in every iteration.
struct LatencyOptions {
  int input_len = 32;
  int output_len = 128;
  int batch_size = 8;
  int num_iters_warmup = 10;
  int num_iters = 30;
  uint64_t seed = 0;
};

struct LatencyResult {
  std::vector<double> latencies_s;  // one per iteration
  EngineBenchResult requests;       // of all iterations; has only `end` and the times of tokens
};

Result<LatencyResult> measure_latency(Engine& engine, const LatencyOptions& options,
                                      const Hooks& hooks);
std::string to_text(const LatencyResult& result);
std::string to_json(const LatencyResult& result);

}  // namespace quire::bench

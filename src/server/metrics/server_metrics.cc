#include "server/metrics/server_metrics.h"

#include <string_view>

namespace quire::server {
namespace {

constexpr double kFirstToken[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                  1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
constexpr double kInterToken[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075,
                                  0.1,    0.15,  0.2,    0.3,   0.4,  0.5,   0.75, 1,
                                  2.5,    5,     7.5,    10,    20,   40,    80};
constexpr double kRequest[] = {0.05, 0.1, 0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,
                               15,   20,  30,  40,  50,  60, 120, 240, 480, 960, 1920};
constexpr double kTokens[] = {1,    2,    5,    10,  20,  50,  100, 200, 500,
                              1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 2e5};
constexpr double kAnswers[] = {1, 2, 5, 10, 20};
constexpr std::string_view kReasons[] = {"stop", "length", "abort", "error"};

}  // namespace

ServerMetrics::ServerMetrics()
    : time_to_first_token(kFirstToken),
      inter_token_latency(kInterToken),
      e2e_request_latency(kRequest),
      queue_time(kRequest),
      prefill_time(kRequest),
      decode_time(kRequest),
      inference_time(kRequest),
      num_prompt_tokens(kTokens),
      num_generation_tokens(kTokens),
      max_generation_tokens(kTokens),
      params_n(kAnswers),
      params_max_tokens(kTokens) {}

void ServerMetrics::answered(int http_status) {
  if (http_status >= 0 && http_status < static_cast<int>(answers_.size())) {
    answers_[static_cast<size_t>(http_status)].add();
  }
}

std::string ServerMetrics::text(std::string_view model_name, const EngineStats& engine,
                                const http::ServerStats& http, const WaitingStats& waiting) const {
  MetricsText out(model_name);
  out.gauge("vllm:num_requests_running", "Answers in the running batch.", engine.num_running);
  out.gauge("vllm:num_requests_waiting", "Answers that wait for a place.", engine.num_waiting);
  out.gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 1 is all.",
            engine.kv_cache_usage);
  out.counter("vllm:num_preemptions_total", "Answers put back to be computed anew.",
              engine.num_preemptions);
  out.counter("vllm:prompt_tokens_total", "Prompt tokens processed.", engine.num_prompt_tokens);
  out.counter("vllm:generation_tokens_total", "Tokens generated.", engine.num_generated_tokens);
  out.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
              engine.prefix_cache_queries);
  out.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
              engine.prefix_cache_hits);
  out.family("vllm:request_success_total", "counter", "Answers that ended, by reason.");
  for (size_t i = 0; i < success_.size(); ++i) {
    out.sample(static_cast<double>(success_[i].value()), {{"finished_reason", kReasons[i]}});
  }
  out.histogram("vllm:time_to_first_token_seconds", "From a request's arrival to its first token.",
                time_to_first_token);
  out.histogram("vllm:inter_token_latency_seconds", "Between two tokens of an answer.",
                inter_token_latency);
  out.histogram("vllm:e2e_request_latency_seconds", "From a request's arrival to its last token.",
                e2e_request_latency);
  out.histogram("vllm:request_queue_time_seconds", "From a request's arrival to its first step.",
                queue_time);
  out.histogram("vllm:request_prefill_time_seconds",
                "From an answer's first step to its first token.", prefill_time);
  out.histogram("vllm:request_decode_time_seconds", "From an answer's first token to its last.",
                decode_time);
  out.histogram("vllm:request_inference_time_seconds",
                "From an answer's first step to its last token.", inference_time);
  out.histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", num_prompt_tokens);
  out.histogram("vllm:request_generation_tokens", "Generated tokens of an answer.",
                num_generation_tokens);
  out.histogram("vllm:request_max_num_generation_tokens",
                "Generated tokens of the longest of a request's answers.", max_generation_tokens);
  out.histogram("vllm:request_params_n", "Answers that a request asks for.", params_n);
  out.histogram("vllm:request_params_max_tokens", "Tokens of an answer that a request allows.",
                params_max_tokens);

  out.counter("quire:steps_total", "Steps of the engine.", engine.num_steps);
  out.counter("quire:device_to_host_copies_total", "Copies from the device: one a step on a GPU.",
              engine.num_device_to_host_copies);
  out.counter("quire:device_waits_total", "Waits for the device.", engine.num_device_waits);
  out.gauge("quire:kv_blocks", "Blocks of the KV cache.", engine.num_total_blocks);
  out.gauge("quire:kv_blocks_free", "Those of them that nobody uses.", engine.num_free_blocks);
  out.counter("quire:requests_cancelled_total", "Requests whose client went away.",
              num_cancelled.value());
  out.gauge("quire:grammar_queue", "Requests that wait for their grammar to be compiled.",
            waiting.num_for_grammars);
  out.gauge("quire:worker_queue", "Tasks that wait for a thread: requests and their answers.",
            static_cast<double>(waiting.num_for_workers));
  const GrammarStats& grammars = waiting.grammars;
  out.counter("quire:grammars_compiled_total", "Grammars compiled, refused ones too.",
              grammars.num_compiled);
  out.counter("quire:grammar_cache_hits_total", "Requests whose grammar was compiled already.",
              grammars.num_hits);
  out.gauge("quire:grammar_bytes", "Memory of compiled grammars and of answers that follow them.",
            static_cast<double>(grammars.held_bytes));
  out.gauge("quire:http_connections", "Open connections.", http.num_open);
  out.counter("quire:http_connections_total", "Connections accepted.", http.num_accepted);
  out.counter("quire:http_connections_refused_total", "Connections beyond the limit.",
              http.num_refused);
  out.counter("quire:http_timeouts_total", "Connections closed for taking too long.",
              http.num_timeouts);
  out.counter("quire:http_slow_readers_total", "Streams closed because nobody read them.",
              http.num_slow_readers);
  out.counter("quire:http_bad_requests_total", "Requests that were no HTTP or broke a limit.",
              http.num_bad_requests);
  out.family("quire:http_responses_total", "counter", "Answers by HTTP status.");
  for (size_t status = 0; status < answers_.size(); ++status) {
    const int64_t count = answers_[status].value();
    if (count == 0) continue;
    out.sample(static_cast<double>(count), {{"code", std::to_string(status)}});
  }
  return out.take();
}

}  // namespace quire::server

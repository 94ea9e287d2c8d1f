#include "bench/engine_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "base/json_writer.h"

namespace quire::bench {
namespace {

using Clock = std::chrono::steady_clock;

void add_times(const RequestResult& request, EngineBenchResult& result) {
  for (const SampleResult& sample : request.samples) {
    if (sample.token_ids.empty()) continue;
    result.first_token_s.push_back(seconds(sample.first_token_time - request.submit_time));
    if (sample.token_ids.size() < 2) continue;
    result.per_token_s.push_back(seconds(sample.last_token_time - sample.first_token_time) /
                                 static_cast<double>(sample.token_ids.size() - 1));
  }
}

// Sampling as in vLLM's benchmarks: temperature 1 (the default of Request), and end-of-sequence is
// ignored.
std::vector<Request> to_requests(std::span<const DatasetRequest> requests) {
  std::vector<Request> all;
  for (const DatasetRequest& bench : requests) {
    Request request;
    request.prompt_token_ids = bench.token_ids;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = bench.output_len;
    all.push_back(std::move(request));
  }
  return all;
}

// Submits all requests at once and waits for them. Returns the error of the first request that
// fails. After an interrupt, the result covers the finished requests.
Result<EngineBenchResult> run_batch(Engine& engine, std::span<const DatasetRequest> requests,
                                    const Hooks& hooks) {
  const SpeculationStats drafted_before = engine.stats().speculation;
  const Clock::time_point start = Clock::now();
  size_t num_done = 0;
  int64_t num_tokens = 0;
  const Hooks::Note rate = [&] {
    const double elapsed_s = seconds(Clock::now() - start);
    return fmt::format("{:.0f} output tokens/s", static_cast<double>(num_tokens) / elapsed_s);
  };
  const RunOptions options = {
      .on_output =
          [&](size_t, const Output& output) {
            num_tokens += static_cast<int64_t>(output.token_ids.size());
            hooks.on_progress(num_done, requests.size(), rate);
            return true;
          },
      .on_done = [&](size_t,
                     const RequestResult& request) { num_done += request.was_cancelled() ? 0 : 1; },
      .interrupted = hooks.interrupted};
  auto results = run_requests(engine_port(engine), to_requests(requests), options);
  const double elapsed_s = seconds(Clock::now() - start);
  // An interrupt after the last request does not change the result.
  const bool interrupted = hooks.interrupted() && num_done < requests.size();
  if (interrupted) std::erase_if(results, [](const auto& one) { return one.was_cancelled(); });
  for (const RequestResult& request : results) QUIRE_RETURN_IF_ERROR(request.first_error());
  EngineBenchResult result = summarize(results, elapsed_s);
  result.speculation = {engine.stats().speculation, engine.model_info().has_synthetic_acceptance};
  add(result.speculation.stats, drafted_before, -1);
  if (interrupted) {
    result.end = cancelled(
        fmt::format("[bench] interrupted after {} of {} requests", num_done, requests.size()));
  }
  return result;
}

Result<std::vector<DatasetRequest>> sharegpt_requests(const ThroughputOptions& options,
                                                      const Engine& engine) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load(options.dataset_path));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Dialogue> dialogues,
                         parse_sharegpt(document, options.dataset_path));
  ShareGptDataset dataset = {
      .num_prompts = options.num_prompts, .output_len = options.output_len, .seed = options.seed};
  dataset.max_total_len = std::min(dataset.max_total_len, engine.model_info().max_model_len);
  dataset.count_tokens = [&](std::string_view text) -> Result<int> {
    QUIRE_ASSIGN_OR_RETURN(const auto ids, engine.encode(text, /*add_special_tokens=*/true));
    return static_cast<int>(ids.size());
  };
  QUIRE_ASSIGN_OR_RETURN(auto requests, dataset.sample(std::move(dialogues)));
  for (DatasetRequest& request : requests) {
    QUIRE_ASSIGN_OR_RETURN(request.token_ids,
                           engine.encode(request.text, /*add_special_tokens=*/true));
  }
  return requests;
}

Result<std::vector<DatasetRequest>> sample_requests(const ThroughputOptions& options,
                                                    const Engine& engine) {
  if (options.dataset_name == "sharegpt") return sharegpt_requests(options, engine);
  const RandomDataset dataset = {.input_len = options.input_len,
                                 .output_len = options.output_len > 0 ? options.output_len : 128,
                                 .range_ratio = options.random_range_ratio,
                                 .num_prompts = options.num_prompts,
                                 .seed = options.seed,
                                 .vocab_size = engine.model_info().vocab_size};
  QUIRE_RETURN_IF_ERROR(check_lengths(dataset.max_prompt_len(), dataset.max_output_len(),
                                      engine.model_info().max_model_len,
                                      "`input_len`, `output_len` or `random_range_ratio`"));
  return dataset.sample();
}

// Runs a few short prompts that are not measured, so that weights, cache and code are in memory.
// Their tokens are reversed, so that they share no prefix with the measured prompts.
Status warm_up(Engine& engine, std::span<const DatasetRequest> requests, const Hooks& hooks) {
  std::vector<DatasetRequest> few;
  for (const DatasetRequest& request : requests.first(std::min<size_t>(requests.size(), 4))) {
    DatasetRequest warm = request;
    std::ranges::reverse(warm.token_ids);
    warm.token_ids.resize(std::min<size_t>(warm.token_ids.size(), 64));
    warm.output_len = std::min(warm.output_len, 8);
    few.push_back(std::move(warm));
  }
  QUIRE_ASSIGN_OR_RETURN(const EngineBenchResult result,
                         run_batch(engine, few, {.interrupted = hooks.interrupted}));
  return result.end.ok() ? Status() : cancelled("[bench] interrupted during the warm-up");
}

// Token ids are below 10000, as in vLLM.
std::vector<DatasetRequest> batch_of_prompts(const LatencyOptions& options, int vocab_size) {
  std::mt19937_64 random(options.seed);
  const auto bound = static_cast<uint64_t>(std::min(vocab_size, 10000));
  std::vector<DatasetRequest> requests(static_cast<size_t>(options.batch_size));
  for (DatasetRequest& request : requests) {
    request.output_len = options.output_len;
    for (int i = 0; i < options.input_len; ++i) {
      request.token_ids.push_back(static_cast<int32_t>(uniform_below(random, bound)));
    }
  }
  return requests;
}

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string times_line(const char* name, std::span<const double> values) {
  std::string text = fmt::format("{}: mean {:.2f} ms", name, mean(values) * 1e3);
  for (const int percent : {50, 90, 99}) {
    text += fmt::format(", p{} {:.2f} ms", percent, percentile(values, percent) * 1e3);
  }
  return text + "\n";
}

// The first line of an interrupted measurement's report, which covers the part that has finished.
std::string partial_line(const EngineBenchResult& result) {
  return result.end.ok() ? "" : fmt::format("Partial: {}\n", result.end.message());
}

std::string token_times(const EngineBenchResult& result) {
  return times_line("Time to first token", result.first_token_s) +
         times_line("Time per output token", result.per_token_s);
}

void write_token_times(JsonWriter& json, const EngineBenchResult& result) {
  write_summary(json, "time_to_first_token_s", result.first_token_s);
  write_summary(json, "time_per_output_token_s", result.per_token_s);
}

std::string share_line(const ProfileShare& share, double elapsed_s) {
  return fmt::format("  {:5.1f} %  {:10.3f} ms  {:8}  {}\n", share.seconds / elapsed_s * 100,
                     share.seconds * 1e3, share.count, share.name);
}

std::string to_text(const DeviceProfile& profile) {
  constexpr size_t kMostKernels = 12;
  std::string text = fmt::format("Profiled time: {:.3f} s\n", profile.elapsed_s);
  for (const ProfileShare& share : profile.shares) {
    text += share_line(share, profile.elapsed_s);
  }
  const size_t num_shown = std::min(kMostKernels, profile.kernels.size());
  text += fmt::format("Kernels ({} of {}, by time):\n", num_shown, profile.kernels.size());
  for (size_t i = 0; i < num_shown; ++i) {
    text += share_line(profile.kernels[i], profile.elapsed_s);
  }
  const DecodeProfile& decode = profile.decode;
  if (decode.num_steps == 0) return text;
  const double us_per_step = 1e6 / static_cast<double>(decode.num_steps);
  return text + fmt::format(
                    "Decode steps: {} of {:.1f} us; idle {:.1f} us ({:.2f} %) between steps, "
                    "{:.1f} us ({:.2f} %) within\n",
                    decode.num_steps, decode.seconds * us_per_step,
                    decode.idle_between_seconds * us_per_step,
                    decode.idle_between_seconds / decode.seconds * 100,
                    decode.idle_within_seconds * us_per_step,
                    decode.idle_within_seconds / decode.seconds * 100);
}

void write_shares(JsonWriter& json, const char* name, const std::vector<ProfileShare>& shares) {
  json.key(name);
  json.begin_array();
  for (const ProfileShare& share : shares) {
    json.begin_object();
    json.field("name", share.name);
    json.field("count", share.count);
    json.field("seconds", share.seconds);
    json.end_object();
  }
  json.end_array();
}

void write_profile(JsonWriter& json, const DeviceProfile& profile) {
  json.key("profile");
  json.begin_object();
  json.field("elapsed_s", profile.elapsed_s);
  write_shares(json, "shares", profile.shares);
  write_shares(json, "kernels", profile.kernels);
  json.field("num_decode_steps", profile.decode.num_steps);
  json.field("decode_s", profile.decode.seconds);
  json.field("decode_idle_between_s", profile.decode.idle_between_seconds);
  json.field("decode_idle_within_s", profile.decode.idle_within_seconds);
  json.end_object();
}

}  // namespace

EngineBenchResult summarize(std::span<const RequestResult> results, double elapsed_s) {
  EngineBenchResult summary;
  summary.elapsed_s = elapsed_s;
  summary.num_requests = static_cast<int64_t>(results.size());
  for (const RequestResult& request : results) {
    summary.num_prompt_tokens += static_cast<int64_t>(request.prompt_token_ids.size());
    summary.num_output_tokens += request.num_output_tokens();
    add_times(request, summary);
  }
  return summary;
}

Status check_lengths(int64_t prompt_len, int64_t output_len, int max_model_len,
                     std::string_view fields) {
  if (prompt_len + output_len <= max_model_len) return {};
  return invalid_argument(fmt::format(
      "[bench] a request does not fit the context; got {} + {} tokens, expected at most {}; "
      "lower {}",
      prompt_len, output_len, max_model_len, fields));
}

Result<ThroughputResult> measure_throughput(Engine& engine, const ThroughputOptions& options,
                                            DeviceProfiler* profiler, const Hooks& hooks) {
  QUIRE_ASSIGN_OR_RETURN(const auto requests, sample_requests(options, engine));
  QUIRE_RETURN_IF_ERROR(warm_up(engine, requests, hooks));
  if (profiler != nullptr) QUIRE_RETURN_IF_ERROR(profiler->start());
  ThroughputResult result;
  QUIRE_ASSIGN_OR_RETURN(result.requests, run_batch(engine, requests, hooks));
  if (profiler != nullptr && result.requests.end.ok()) {
    QUIRE_ASSIGN_OR_RETURN(result.profile, profiler->stop());
  }
  return result;
}

std::string to_text(const ThroughputResult& result) {
  const EngineBenchResult& all = result.requests;
  return partial_line(all) +
         fmt::format(
             "Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n"
             "Total num prompt tokens:  {}\n"
             "Total num output tokens:  {}\n",
             all.requests_per_s(), all.total_tokens_per_s(), all.output_tokens_per_s(),
             all.num_prompt_tokens, all.num_output_tokens) +
         token_times(all) + draft_line(all.speculation) +
         (result.profile ? to_text(*result.profile) : "");
}

std::string to_json(const ThroughputResult& result) {
  const EngineBenchResult& all = result.requests;
  JsonWriter json;
  json.begin_object();
  json.field("elapsed_time", all.elapsed_s);
  json.field("num_requests", all.num_requests);
  json.field("total_num_tokens", all.num_prompt_tokens + all.num_output_tokens);
  json.field("requests_per_second", all.requests_per_s());
  json.field("tokens_per_second", all.total_tokens_per_s());
  json.field("output_tokens_per_second", all.output_tokens_per_s());
  json.field("total_prompt_tokens", all.num_prompt_tokens);
  json.field("total_output_tokens", all.num_output_tokens);
  write_token_times(json, all);
  write_speculation(json, all.speculation);
  if (result.profile) write_profile(json, *result.profile);
  json.end_object();
  return json.text() + "\n";
}

Result<LatencyResult> measure_latency(Engine& engine, const LatencyOptions& options,
                                      const Hooks& hooks) {
  const ModelInfo& model = engine.model_info();
  QUIRE_RETURN_IF_ERROR(check_lengths(options.input_len, options.output_len, model.max_model_len,
                                      "`input_len` or `output_len`"));
  const auto requests = batch_of_prompts(options, model.vocab_size);
  LatencyResult result;
  result.requests.speculation.has_synthetic_acceptance = model.has_synthetic_acceptance;
  const int num_total = options.num_iters_warmup + options.num_iters;
  for (int i = 0; i < num_total; ++i) {
    hooks.on_progress(static_cast<size_t>(i), static_cast<size_t>(num_total),
                      [&] { return i < options.num_iters_warmup ? "warming up" : ""; });
    QUIRE_ASSIGN_OR_RETURN(const EngineBenchResult batch,
                           run_batch(engine, requests, {.interrupted = hooks.interrupted}));
    if (!batch.end.ok()) {
      result.requests.end = cancelled(fmt::format(
          "[bench] interrupted after {} of {} batches, warm-up included", i, num_total));
      break;
    }
    if (i < options.num_iters_warmup) continue;
    result.latencies_s.push_back(batch.elapsed_s);
    append(result.requests.first_token_s, batch.first_token_s);
    append(result.requests.per_token_s, batch.per_token_s);
    add(result.requests.speculation.stats, batch.speculation.stats, 1);
  }
  return result;
}

std::string to_text(const LatencyResult& result) {
  std::string text = partial_line(result.requests);
  text += fmt::format("Avg latency: {:.6f} seconds\n", mean(result.latencies_s));
  text += fmt::format("Std latency: {:.6f} seconds\n", standard_deviation(result.latencies_s));
  for (const auto& [percent, value] : percentiles(result.latencies_s)) {
    text += fmt::format("{}% percentile latency: {:.6f} seconds\n", percent, value);
  }
  return text + token_times(result.requests) + draft_line(result.requests.speculation);
}

std::string to_json(const LatencyResult& result) {
  JsonWriter json;
  json.begin_object();
  json.field("avg_latency", mean(result.latencies_s));
  json.field("std_latency", standard_deviation(result.latencies_s));
  json.key("latencies");
  json.begin_array();
  for (const double latency : result.latencies_s) json.value(latency);
  json.end_array();
  write_percentiles(json, result.latencies_s);
  write_token_times(json, result.requests);
  write_speculation(json, result.requests.speculation);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace quire::bench

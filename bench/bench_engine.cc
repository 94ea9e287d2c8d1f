// Times whole engine steps (scheduling, model, attention, sampling) for bench/peers/:
//   bench_engine --model DIR_OR_CONFIG [--dtype f16|bf16|f32] [--threads N] [--max-model-len N]
//   bench_engine --model FILE.gguf [--cpu-activations f32|int8] [--threads N] [--max-model-len N]
// Weights are dummy, or those of the GGUF file. It prints one line of JSON about the model, then
// one per line of input:
//   run NUM_SEQS PROMPT_LEN OUTPUT_LEN SEED   → {"prefill_s", "decode_tokens", "decode_s"}
//   read                                      → {"read_s"}: as many bytes as the weights have
// Prompts depend on the seed alone, so only a repeated seed can hit the prefix cache.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <latch>
#include <random>
#include <sstream>

#include "bench_gemm_probes.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "quire/engine.h"
#include "tensor/tensor.h"

namespace quire::bench {
namespace {

using Clock = std::chrono::steady_clock;
using TokenTimes = std::vector<Clock::time_point>;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

struct Workload {
  int num_seqs = 1;
  int prompt_len = 1;
  int output_len = 1;
  uint64_t seed = 0;
};

Request random_request(const Workload& workload, int vocab_size, std::mt19937_64& random) {
  Request request;
  const auto bound = static_cast<uint64_t>(vocab_size);
  for (int i = 0; i < workload.prompt_len; ++i) {
    request.prompt_token_ids.push_back(static_cast<int32_t>(random() % bound));
  }
  request.sampling.temperature = 0.0F;
  request.sampling.ignore_eos = true;
  request.sampling.detokenize = false;
  request.sampling.max_tokens = workload.output_len;
  return request;
}

struct Timing {
  double prefill_s = 0.0;  // from the first submission to the last sequence's first token
  int64_t decode_tokens = 0;
  double decode_s = 0.0;  // while all sequences decode together
};

Timing time_decode(const std::vector<TokenTimes>& times, Clock::time_point start) {
  Clock::time_point first = times[0].front();
  Clock::time_point last = times[0].back();
  for (const TokenTimes& seq : times) first = std::max(first, seq.front());
  for (const TokenTimes& seq : times) last = std::min(last, seq.back());
  Timing timing = {.prefill_s = seconds(first - start)};
  if (last <= first) return timing;
  timing.decode_s = seconds(last - first);
  for (const TokenTimes& seq : times) {
    timing.decode_tokens +=
        std::count_if(seq.begin(), seq.end(), [&](auto at) { return at > first && at <= last; });
  }
  return timing;
}

Result<Timing> run(Engine& engine, const Workload& workload) {
  std::mt19937_64 random(workload.seed);
  std::vector<Request> requests;
  for (int i = 0; i < workload.num_seqs; ++i) {
    requests.push_back(random_request(workload, engine.model_info().vocab_size, random));
  }
  std::vector<TokenTimes> times(requests.size());
  std::latch ended(workload.num_seqs);
  const Clock::time_point start = Clock::now();
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto on_output = [&seq = times[i], &ended](Output&& output) {
      seq.insert(seq.end(), output.token_ids.size(), Clock::now());
      if (output.finish_reason) ended.count_down();
    };
    QUIRE_RETURN_IF_ERROR(engine.submit(std::move(requests[i]), on_output).status());
  }
  ended.wait();
  for (const TokenTimes& seq : times) {
    if (seq.size() != static_cast<size_t>(workload.output_len)) {
      return internal_error(
          fmt::format("[bench] an answer was cut short; got {} tokens, expected {}", seq.size(),
                      workload.output_len));
    }
  }
  return time_decode(times, start);
}

// Reads memory of the same kind as the weights, as many bytes as they have. A buffer that no cache
// holds stands for larger weights. All pages are written before, so that they exist.
class PlainRead {
 public:
  PlainRead(int64_t num_bytes, int num_threads)
      : pool_(num_threads),
        num_bytes_(static_cast<size_t>(num_bytes)),
        buffer_(Buffer::host(std::min(num_bytes_, kMaxBufferBytes)).value()) {
    std::memset(buffer_.data(), 1, buffer_.num_bytes());
  }
  double time() {
    const Clock::time_point start = Clock::now();
    for (size_t left = num_bytes_; left > 0;) {
      const size_t count = std::min(left, buffer_.num_bytes());
      read_all(buffer_.data(), count, pool_);
      left -= count;
    }
    return seconds(Clock::now() - start);
  }

 private:
  static constexpr size_t kMaxBufferBytes = size_t{3} << 30;

  ThreadPool pool_;
  size_t num_bytes_;
  Buffer buffer_;
};

Status answer(const std::string& line, Engine& engine, PlainRead& plain_read) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "read") {
    fmt::print("{{\"read_s\": {:.9f}}}\n", plain_read.time());
    return {};
  }
  Workload workload;
  words >> workload.num_seqs >> workload.prompt_len >> workload.output_len >> workload.seed;
  if (verb != "run" || !words || workload.num_seqs < 1) {
    return invalid_argument(fmt::format("[bench] unknown command; got \"{}\"", line));
  }
  QUIRE_ASSIGN_OR_RETURN(const Timing timing, run(engine, workload));
  fmt::print("{{\"prefill_s\": {:.9f}, \"decode_tokens\": {}, \"decode_s\": {:.9f}}}\n",
             timing.prefill_s, timing.decode_tokens, timing.decode_s);
  return {};
}

bool is_gguf(const std::string& model) {
  return model.ends_with(".gguf");
}

Status serve(const EngineConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, Engine::create(config));
  const ModelInfo& info = engine->model_info();
  const int64_t weight_bytes = is_gguf(config.model)
                                   ? static_cast<int64_t>(std::filesystem::file_size(config.model))
                                   : info.num_parameters * (config.dtype == "f32" ? 4 : 2);
  PlainRead plain_read(weight_bytes, config.num_threads);
  fmt::print("{{\"num_parameters\": {}, \"weight_bytes\": {}, \"kv_cache_dtype\": \"{}\"}}\n",
             info.num_parameters, weight_bytes, info.kv_cache_dtype);
  for (std::string line; std::fflush(stdout), std::getline(std::cin, line);) {
    QUIRE_RETURN_IF_ERROR(answer(line, *engine, plain_read));
  }
  return {};
}

}  // namespace
}  // namespace quire::bench

int main(int argc, char** argv) {
  using quire::cli::add_setting;
  quire::EngineConfig config;
  config.num_threads = 2;
  config.allow_long_max_model_len = true;
  config.packed_weights = "off";  // writing them would take time from the measurement
  quire::cli::Command command;
  command.name = "bench_engine";
  command.summary = "Times whole engine steps.";
  for (const char* name : {"model", "dtype", "cpu_activations", "num_threads", "max_model_len"}) {
    add_setting(command.flags, &config, name);
  }
  command.check = [&](quire::cli::Complaints& complaints) {
    if (config.model.empty()) complaints.add("--model: expected the model whose steps are timed");
    if (config.num_threads == 0) complaints.add("--threads: expected at least 1");
  };
  command.run = [&]() -> quire::Result<int> {
    if (!quire::bench::is_gguf(config.model)) {
      config.load_format = "dummy";
      if (config.dtype == "auto") config.dtype = "bf16";
    }
    QUIRE_RETURN_IF_ERROR(quire::bench::serve(config));
    return quire::cli::kExitOk;
  };
  return quire::cli::run_program(command, argc, argv);
}

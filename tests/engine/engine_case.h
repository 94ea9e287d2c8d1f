// A test through the whole engine on the CPU: the files of a model, requests, and how far outputs
// are apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tiny_engine.h"
#include "support/reference_layer.h"
#include "support/scratch_directory.h"

namespace quire::testing {

// The KV cache is F32: a narrower one would round a small difference to a large one.
EngineConfig cpu_config(const std::filesystem::path& model, int num_threads = 2);
// Ranks with one thread each.
EngineConfig with_ranks(EngineConfig config, int num_ranks);

// Writes config.json and model.safetensors, and returns the cpu_config() of their directory.
EngineConfig write_checkpoint(const ScratchDirectory& directory, std::string_view config,
                              std::span<const std::byte> weights);
EngineConfig write_checkpoint(const ScratchDirectory& directory, std::string_view config,
                              std::string_view weights);
EngineConfig write_checkpoint(const ScratchDirectory& directory, std::string_view config,
                              const StoredTensors& weights);

// Greedy requests with the log probabilities of their prompts, which have these lengths and ids of
// 3 to 62, and of their outputs.
std::vector<Request> logprob_requests(std::initializer_list<int> lengths = {1, 7, 30},
                                      int max_tokens = 8);

// Greedy requests with log probabilities for the embedded model, with words of its chats.
std::vector<Request> abacus_questions();

struct Outcome {
  std::vector<Collected> outputs;
  int64_t weight_bytes = 0;
  std::string weight_dtype;
};

Outcome run(const EngineConfig& config, const std::vector<Request>& requests = logprob_requests());
std::vector<Collected> outputs_of(const EngineConfig& config, const std::vector<Request>& requests);

// The error of an engine's start; empty: it starts.
std::string error_of(const EngineConfig& config);

// The largest difference of log probabilities. The comparison of a request ends at the first token
// that differs, because what follows has another context.
double largest_difference(const std::vector<Collected>& got,
                          const std::vector<Collected>& expected);

// Expects the same tokens, and log probabilities that differ by less than the bound.
void expect_close(const std::vector<Collected>& got, const std::vector<Collected>& expected,
                  double bound);

}  // namespace quire::testing

// Engines on a GPU that are small enough for tests to start many of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/tiny_engine.h"
#include "platform/platform.h"

namespace quire::testing {

// Skips its tests if there is no GPU.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

// The tiny random model in F32: the results of a GPU and a CPU differ only by the order of sums.
EngineConfig tiny_f32(const std::string& device);

// The embedded model, in its own BF16.
EngineConfig embedded(const std::string& device);

// The GPU backends that serve a phase of the configuration's model on this machine.
std::vector<std::string> served_backends(const EngineConfig& config);
// The GPU backends that serve the given phase.
std::vector<std::string> served_backends(const EngineConfig& config, Phase phase);

// A named change of an engine's configuration; tests use the name.
struct Variant {
  const char* name;
  void (*change)(EngineConfig&);
};
std::string name_of(const ::testing::TestParamInfo<Variant>& variant);

// Configurations that must give the same outputs: with graphs, eager, with chunked prompts, one
// request after another, and with preemption.
const std::vector<Variant>& common_variants();

// The outputs of a CPU for the tiny model.
std::vector<Collected> cpu_answers(const std::vector<Request>& requests);

// Word problems whose answers the embedded model gives with high probability.
inline constexpr int kNumQuestions = 20;
std::vector<Request> questions(const Engine& engine, int max_tokens = 20);

// Prompts of 1 to 160 tokens, so that steps have few tokens and many. Prompts i and i +
// num_beginnings begin alike.
inline constexpr int kNumPrompts = 24;
std::vector<Request> mixed_requests(int num_beginnings = kNumPrompts);

// The outputs of an engine with this configuration for questions().
std::vector<Collected> answers_to_questions(const EngineConfig& config, int prompt_logprobs);

// Two of the tiny model's random logits may be nearly equal, and then rounding decides: this many
// outputs may differ from a CPU's.
inline constexpr int kMaxTies = 2;

// The number of outputs with different tokens.
int count_differences(const std::vector<Collected>& got, const std::vector<Collected>& expected);

}  // namespace quire::testing

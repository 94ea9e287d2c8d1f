// Two engines in one process, and two models on one device.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_parts.h"
#include "engine/tiny_engine.h"

namespace quire::testing {

// The path of a config.json that differs from the tiny model's in every size: 3 layers, hidden 96,
// 6 heads of 16 on 3 KV heads with a sliding window of 48, vocabulary 128, context 512.
std::string other_config_path();

// Greedy requests with log probabilities: prompts of 1 to 160 tokens, some with a common prefix.
std::vector<Request> two_model_requests(int num_requests);

// The answers of each engine when both run at once, each submitted to from a thread of its own.
std::array<std::vector<Collected>, 2> run_both(Engine& first, Engine& second,
                                               const std::vector<Request>& requests);

// Destroys `first` while it and `second` run, makes another of `config` while `second` still runs,
// and returns the answers of both.
std::array<std::vector<Collected>, 2> run_over_a_restart(std::unique_ptr<Engine> first,
                                                         const EngineConfig& config, Engine& second,
                                                         const std::vector<Request>& requests);

// A model with a runner of its own, on a device that it shares with others, and a few greedy
// sequences that it decodes. One thread drives all of them.
class SteppedModel {
 public:
  static constexpr int kNumSteps = 40;
  using Answer = std::vector<SampledToken>;

  // No step may be in flight on the device.
  static Result<std::unique_ptr<SteppedModel>> load(const EngineConfig& config,
                                                    DeviceContext& context,
                                                    const Platform& platform);

  // Enqueues one step. Waits for an older one if too many are in flight.
  void step();
  bool has_steps() const { return num_enqueued_ < kNumSteps; }
  // Waits for the steps in flight. By sequence.
  const std::vector<Answer>& finish();

 private:
  explicit SteppedModel(EnginePlan plan) : plan_(std::move(plan)) {}

  BatchPlan first_plan() const;
  BatchPlan decode_plan() const;
  void wait();

  EnginePlan plan_;
  LoadedModel model_;
  std::unique_ptr<Runner> runner_;
  int num_enqueued_ = 0;
  int num_waited_ = 0;
  std::vector<Answer> answers_;
};

// The answers of a model that has a platform to itself.
std::vector<SteppedModel::Answer> step_alone(const EngineConfig& config);

// The answers of two models whose runners share a platform and take turns. The first is destroyed
// with a step in flight when both are half way, and is loaded and run again once the second has
// ended; its answers are those of the second run.
std::array<std::vector<SteppedModel::Answer>, 2> step_together(const EngineConfig& first,
                                                               const EngineConfig& second);

}  // namespace quire::testing

// Helpers for tests of two engines in one process, and of two models on one device.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/tiny_engine.h"
#include "start/load.h"

namespace quire::testing {

// The path of a config.json that differs from the tiny model's in every size: 3 layers, hidden size
// 96, 6 heads of 16 on 3 KV heads with a sliding window of 48, vocabulary 128, context 512.
std::string other_config_path();

// Greedy requests with log probabilities. Prompts have 1 to 160 tokens; some share a prefix.
std::vector<Request> two_model_requests(int num_requests);

// Runs both engines at once, each with its own submitting thread, and returns their outputs.
std::array<std::vector<Collected>, 2> run_both(Engine& first, Engine& second,
                                               const std::vector<Request>& requests);

// Destroys `first` while both engines run, creates another engine from `config` while `second`
// still runs, and returns the outputs of the new engine and of `second`.
std::array<std::vector<Collected>, 2> run_over_a_restart(std::unique_ptr<Engine> first,
                                                         const EngineConfig& config, Engine& second,
                                                         const std::vector<Request>& requests);

// A model with its own runner on a shared device, and a few greedy sequences that it decodes. One
// thread drives all such models.
class SteppedModel {
 public:
  static constexpr int kNumSteps = 40;
  using SampledTokens = std::vector<SampledToken>;

  // Call it while no step is in flight on the device.
  static Result<std::unique_ptr<SteppedModel>> load(const EngineConfig& config,
                                                    DeviceContext& context,
                                                    const Platform& platform);

  // Enqueues one step. If too many are in flight, waits for an older one.
  void step();
  bool has_steps() const { return num_enqueued_ < kNumSteps; }
  // Waits for the steps in flight and returns the tokens of each sequence.
  const std::vector<SampledTokens>& finish();

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
  std::vector<SampledTokens> outputs_;
};

// The outputs of a model that is the only one on its platform.
std::vector<SteppedModel::SampledTokens> step_alone(const EngineConfig& config);
std::vector<SteppedModel::SampledTokens> step_alone(const EngineConfig& config,
                                                    const Platform& platform);

// The outputs of two models whose runners share a platform and take turns. The first model is
// destroyed halfway, with a step in flight. It is loaded and run again after the second has ended,
// and its outputs are those of the second run.
std::array<std::vector<SteppedModel::SampledTokens>, 2> step_together(const EngineConfig& first,
                                                                      const EngineConfig& second);

}  // namespace quire::testing

#include "engine/two_models.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/numbers.h"
#include "start/platform_choice.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

constexpr std::array kPromptLengths = {5, 40, 90};

Request greedy_with_logprobs(std::vector<int32_t> prompt, int max_tokens) {
  Request request = greedy(std::move(prompt), max_tokens);
  request.sampling.logprobs = 1;
  return request;
}

std::vector<int32_t> prompt_of(size_t i) {
  return tiny_prompt(kPromptLengths[i], 100 + i);
}

int blocks_of(size_t i, int page_size) {
  return ceil_div(kPromptLengths[i] + SteppedModel::kNumSteps, page_size);
}

std::unique_ptr<Platform> platform_for(const EngineConfig& config) {
  return value_of(make_platform(config, value_of(open_model_files(config))));
}

}  // namespace

std::string other_config_path() {
  static const std::string path = write_config(
      "quire_other", R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral",
      "hidden_size": 96, "intermediate_size": 160, "num_hidden_layers": 3,
      "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 16, "vocab_size": 128,
      "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
      "sliding_window": 48, "hidden_act": "silu", "tie_word_embeddings": false,
      "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"})");
  return path;
}

std::vector<Request> two_model_requests(int num_requests) {
  std::vector<Request> all;
  for (int i = 0; i < num_requests; ++i) {
    all.push_back(greedy_with_logprobs(
        tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i % 7)), 12 + i % 9));
  }
  return all;
}

std::array<std::vector<Collected>, 2> run_both(Engine& first, Engine& second,
                                               const std::vector<Request>& requests) {
  std::array<std::vector<Collected>, 2> outputs;
  std::thread other([&] { outputs[1] = run_all(second, requests); });
  outputs[0] = run_all(first, requests);
  other.join();
  return outputs;
}

std::array<std::vector<Collected>, 2> run_over_a_restart(std::unique_ptr<Engine> first,
                                                         const EngineConfig& config, Engine& second,
                                                         const std::vector<Request>& requests) {
  std::array<std::vector<Collected>, 2> outputs;
  std::thread other([&] { outputs[1] = run_all(second, requests); });
  const auto stream = value_of(first->submit(greedy_with_logprobs(tiny_prompt(9, 1), 400)));
  EXPECT_TRUE(stream->next().has_value());
  first.reset();
  EXPECT_EQ(collect(*stream).finish_reason, FinishReason::kCancelled);
  first = make_engine(config);
  if (first != nullptr) outputs[0] = run_all(*first, requests);
  other.join();
  return outputs;
}

Result<std::unique_ptr<SteppedModel>> SteppedModel::load(const EngineConfig& config,
                                                         DeviceContext& context,
                                                         const Platform& platform) {
  QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(config));
  QUIRE_ASSIGN_OR_RETURN(EnginePlan plan, plan_engine(config, files, platform));
  std::unique_ptr<SteppedModel> model(new SteppedModel(std::move(plan)));
  QUIRE_ASSIGN_OR_RETURN(model->model_, load_onto(context, files, model->plan_));
  QUIRE_ASSIGN_OR_RETURN(model->runner_, make_runner(context, model->model_, model->plan_, {}));
  model->outputs_.resize(kPromptLengths.size());
  return model;
}

void SteppedModel::step() {
  runner_->enqueue(
      std::make_shared<const BatchPlan>(num_enqueued_ == 0 ? first_plan() : decode_plan()));
  ++num_enqueued_;
  if (num_enqueued_ - num_waited_ == kMaxStepsInFlight) wait();
}

const std::vector<SteppedModel::SampledTokens>& SteppedModel::finish() {
  while (num_waited_ < num_enqueued_) wait();
  return outputs_;
}

// A plan that starts all prompts at once. Each slot gets all of its blocks; block 0 is padding.
BatchPlan SteppedModel::first_plan() const {
  SamplingParams params;
  params.temperature = 0.0F;
  params.logprobs = 1;
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params)});
  BatchPlan plan;
  int32_t next_block = 1;
  for (size_t i = 0; i < kPromptLengths.size(); ++i) {
    const int slot = static_cast<int>(i);
    const std::vector<int32_t> prompt = prompt_of(i);
    const int num_tokens = static_cast<int>(prompt.size());
    const int num_blocks = blocks_of(i, plan_.sizes.limits.page_size);
    plan.slots_added.push_back({.slot = slot,
                                .seq_id = i + 1,
                                .token_ids = prompt,
                                .num_prompt_tokens = num_tokens,
                                .sampling = spec});
    BlockTableAppend append = {.slot = slot, .block_ids = {}};
    for (int b = 0; b < num_blocks; ++b) append.block_ids.push_back(next_block++);
    plan.block_appends.push_back(std::move(append));
    plan.spans.push_back({.seq_id = i + 1,
                          .slot = slot,
                          .num_tokens = num_tokens,
                          .first_token = plan.num_tokens(),
                          .num_blocks = num_blocks,
                          .samples = true});
    plan.token_ids.insert(plan.token_ids.end(), prompt.begin(), prompt.end());
  }
  EXPECT_LE(next_block, plan_.memory_plan.num_blocks[0]);
  return plan;
}

BatchPlan SteppedModel::decode_plan() const {
  BatchPlan plan;
  plan.step_id = static_cast<uint64_t>(num_enqueued_);
  for (size_t i = 0; i < kPromptLengths.size(); ++i) {
    const int slot = static_cast<int>(i);
    plan.spans.push_back({.seq_id = i + 1,
                          .slot = slot,
                          .decodes = true,
                          .num_computed = kPromptLengths[i] + num_enqueued_ - 1,
                          .num_tokens = 1,
                          .first_token = slot,
                          .num_blocks = blocks_of(i, plan_.sizes.limits.page_size),
                          .samples = true});
    plan.token_ids.push_back(kPlaceholderToken);
  }
  plan.num_decode = static_cast<int>(plan.spans.size());
  return plan;
}

void SteppedModel::wait() {
  StepResult result = runner_->wait();
  ++num_waited_;
  EXPECT_TRUE(result.error.ok()) << result.error.message();
  for (SpanResult& span : result.spans) {
    EXPECT_TRUE(span.error.ok()) << span.error.message();
    SampledTokens& output = outputs_[span.seq_id - 1];
    for (SampledToken& token : span.tokens) output.push_back(std::move(token));
  }
}

std::vector<SteppedModel::SampledTokens> step_alone(const EngineConfig& config) {
  return step_alone(config, *platform_for(config));
}

std::vector<SteppedModel::SampledTokens> step_alone(const EngineConfig& config,
                                                    const Platform& platform) {
  const auto model = value_of(SteppedModel::load(config, *platform.contexts().front(), platform));
  while (model->has_steps()) model->step();
  return model->finish();
}

std::array<std::vector<SteppedModel::SampledTokens>, 2> step_together(const EngineConfig& first,
                                                                      const EngineConfig& second) {
  const std::unique_ptr<Platform> platform = platform_for(first);
  DeviceContext& context = *platform->contexts().front();
  auto a = value_of(SteppedModel::load(first, context, *platform));
  const auto b = value_of(SteppedModel::load(second, context, *platform));
  constexpr int kLead = 7;  // keeps the lengths of the two models' sequences different
  for (int i = 0; i < kLead; ++i) b->step();
  for (int i = 0; i < SteppedModel::kNumSteps; ++i) {
    if (a != nullptr) a->step();
    if (b->has_steps()) b->step();
    if (i == SteppedModel::kNumSteps / 2) a.reset();
  }
  std::array<std::vector<SteppedModel::SampledTokens>, 2> outputs;
  outputs[1] = b->finish();
  a = value_of(SteppedModel::load(first, context, *platform));
  while (a->has_steps()) a->step();
  outputs[0] = a->finish();
  return outputs;
}

}  // namespace quire::testing

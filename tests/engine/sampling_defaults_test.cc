#include "engine/sampling_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

std::string chat(const GenerationConfig& model) {
  return describe(choose_sampling_defaults(model, SamplingFallback::kChat));
}
std::string plain(const GenerationConfig& model) {
  return describe(choose_sampling_defaults(model, SamplingFallback::kNone));
}

TEST(SamplingDefaults, AModelThatStatesNoneGetsTheFallback) {
  GenerationConfig model;
  EXPECT_EQ(chat(model),
            "temperature 0.8, top_p 0.95, top_k 40, min_p 0.05, repetition_penalty 1; from Quire");
  EXPECT_EQ(plain(model),
            "temperature 1, top_p 1, top_k 0, min_p 0, repetition_penalty 1; from Quire");
  model.do_sample = true;  // says only that sampling is on
  EXPECT_EQ(chat(model), chat({}));
}

TEST(SamplingDefaults, AModelsValuesAreASet) {
  GenerationConfig model;
  model.do_sample = true;
  model.temperature = 0.6F;
  model.top_p = 0.9F;
  EXPECT_EQ(chat(model),
            "temperature 0.6, top_p 0.9, top_k 0, min_p 0, repetition_penalty 1; from "
            "generation_config.json");
  EXPECT_EQ(plain(model), chat(model));
  GenerationConfig gguf;
  gguf.source = "general.sampling.*";
  gguf.top_k = 20;
  EXPECT_EQ(chat(gguf),
            "temperature 1, top_p 1, top_k 20, min_p 0, repetition_penalty 1; from "
            "general.sampling.*");
}

TEST(SamplingDefaults, WithoutSamplingTheModelIsGreedy) {
  GenerationConfig model;
  model.do_sample = false;
  model.temperature = 0.7F;
  const SamplingDefaults defaults = choose_sampling_defaults(model, SamplingFallback::kChat);
  EXPECT_EQ(defaults.params.temperature, 0.0F);
  EXPECT_EQ(defaults.source, "generation_config.json");
}

TEST(SamplingDefaults, ARepetitionPenaltyAloneKeepsTheFallback) {
  GenerationConfig model;
  model.repetition_penalty = 1.1F;
  EXPECT_EQ(chat(model),
            "temperature 0.8, top_p 0.95, top_k 40, min_p 0.05, repetition_penalty 1.1; from "
            "Quire, repetition_penalty from generation_config.json");
}

}  // namespace
}  // namespace quire

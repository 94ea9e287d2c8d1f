// Everything that lies in a model's directory, or in the binary, opened and checked.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/chat_format.h"
#include "model/config.h"
#include "quire/config.h"
#include "quire/status.h"
#include "tensor/weight_source.h"
#include "tokenizer/tokenizer.h"

namespace quire {

struct ModelFiles {
  std::string name;
  ModelConfig config;
  GenerationConfig generation;
  std::shared_ptr<const Tokenizer> tokenizer;  // null: prompts are token ids and text stays empty
  std::optional<ChatFormat> chat;              // absent: chat_error says why
  Status chat_error;
  std::unique_ptr<WeightSource> weights;
};

// engine.model: a directory, with dummy weights also a config.json alone; empty: the embedded
// model.
Result<ModelFiles> open_model_files(const EngineConfig& engine);

}  // namespace quire

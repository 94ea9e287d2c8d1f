// The files of a model that turn requests into tokens and tokens into text.
#pragma once

#include <memory>
#include <optional>

#include "engine/chat_format.h"
#include "model/config.h"
#include "quire/status.h"
#include "tokenizer/tokenizer.h"

namespace quire {

struct ModelText {
  std::shared_ptr<const Tokenizer> tokenizer;  // null: prompts are token ids, no text
  std::optional<ChatFormat> chat;              // absent: chat_error gives the reason
  Status chat_error;                           // for clients: names no files
  Status template_fault;  // for operators, if the model has a template that cannot be used
  GenerationConfig generation;
};

}  // namespace quire

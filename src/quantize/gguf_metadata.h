// The metadata of a GGUF file: a model's configuration and tokenizer under llama.cpp's keys.
#pragma once

#include <string_view>

#include "model/config.h"
#include "quantize/source.h"
#include "quire/status.h"
#include "tensor/gguf_writer.h"

namespace quire {

// llama.cpp's name of the model's architecture. Fails if llama.cpp has none.
Result<std::string_view> gguf_architecture_of(const ModelConfig& config);

// Writes the sizes, the rotation and the windows of a dense decoder. Writes the divisors of Llama
// 3's rotation as the file's first tensor. Fails, naming the field of config.json, for a
// configuration that llama.cpp does not support.
Status write_gguf_config(const ModelConfig& config, GgufWriter& writer);

// Writes the vocabulary, the chat template and the tokens that end a text.
Status write_gguf_tokenizer(const QuantizeSource& source, GgufWriter& writer);

}  // namespace quire

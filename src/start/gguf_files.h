// Opens a GGUF file as a model: configuration, tokenizer and chat template come from its metadata.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/config.h"
#include "quire/status.h"
#include "tensor/gguf.h"
#include "tokenizer/tokenizer.h"

namespace quire {

// Also finds the tokens that end a reply, by their names in chat formats: a file states only one
// end token, usually that of a text.
Result<ModelConfig> read_gguf_config(const GgufModel& gguf);

// Whether the metadata has a tokenizer: files for tests may have none.
bool has_gguf_tokenizer(const GgufModel& gguf);

// The tokenizer of the metadata, which has one.
Result<std::shared_ptr<const Tokenizer>> read_gguf_tokenizer(const GgufModel& gguf);

// The chat template and the special tokens in the fields of tokenizer_config.json.
Result<std::string> gguf_tokenizer_config(const GgufModel& gguf);

// The sampling values (general.sampling.*) in the fields of generation_config.json.
Result<std::string> gguf_generation_config(const GgufModel& gguf);

}  // namespace quire

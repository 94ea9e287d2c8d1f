// Reads a model's configuration, tokenizer, chat template and sampling values from the metadata of
// an open GGUF file.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/config.h"
#include "quire/status.h"
#include "tensor/gguf.h"
#include "tokenizer/tokenizer.h"

namespace quire {

// Returns the model's configuration. Adds the tokens that end a message in known chat formats to
// its eos_token_ids, found by their spelling, because a file states only one end token, usually the
// end of a document.
Result<ModelConfig> read_gguf_config(const GgufModel& gguf);

// Returns the name of the mixture of block types that the file states, for example "Q4_K_M"; empty
// if the file states no mixture, or one without a name in Quire.
std::string gguf_mixture_name(const GgufModel& gguf);

// Whether the metadata has a tokenizer: tokenizer.ggml.model is present, and neither "none" nor
// "no_vocab".
bool has_gguf_tokenizer(const GgufModel& gguf);

// Reads the tokenizer of the metadata. Call it only if has_gguf_tokenizer().
Result<std::shared_ptr<const Tokenizer>> read_gguf_tokenizer(const GgufModel& gguf);

// Returns the JSON of a tokenizer_config.json: the chat template and the special tokens.
Result<std::string> gguf_tokenizer_config(const GgufModel& gguf);

// Returns the JSON of a generation_config.json: the sampling values (general.sampling.*).
Result<std::string> gguf_generation_config(const GgufModel& gguf);

}  // namespace quire

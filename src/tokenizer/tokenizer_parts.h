// The components of a tokenizer. They have pointers to each other, so the struct must not be moved.
#pragma once

#include <memory>

#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_model.h"
#include "tokenizer/vocab.h"

namespace quire {

struct TokenizerParts {
  Vocab vocab;
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const TokenModel> model;
  PostProcessor post_processor;
  Decoder decoder;
};

// Handling of several tokens of a BPE vocabulary with the same text.
enum class RepeatedTexts {
  kRefused,
  kLastIsEncoded,  // encodes as the last one; the others are only decoded (Gemma 4's GGUF files)
};
Result<std::unique_ptr<TokenizerParts>> parts_from_json(
    std::string_view json, std::string_view source,
    RepeatedTexts repeated = RepeatedTexts::kRefused);
Result<std::unique_ptr<TokenizerParts>> parts_from_sentencepiece(std::string_view bytes);
// Applies a tokenizer_config.json.
Status apply_tokenizer_config(JsonElement config, bool is_sentencepiece, TokenizerParts& parts);

}  // namespace quire

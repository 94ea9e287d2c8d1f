// Vocabularies of byte strings in the order of merging: Mistral's tekken.json, and tiktoken.model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/token_model.h"
#include "tokenizer/tokenizer_parts.h"

namespace quire {

struct RankedVocabulary {
  struct Token {
    std::string bytes;
    int64_t id;
  };
  std::string pattern = {};        // its matches are encoded separately
  std::vector<Token> tokens = {};  // a lower id merges first
  std::vector<AddedTokens::WithId> added = {};
  bool adds_bos = false;  // <s> before a text
};

// Reads the contents of `file`, which is tekken.json or tiktoken.model. `config` is the
// tokenizer_config.json, which a tiktoken.model requires. Errors do not name the file.
Result<RankedVocabulary> read_ranked_vocabulary(std::string_view file, std::string_view contents,
                                                std::optional<JsonElement> config);

struct RankedParts {
  std::unique_ptr<TokenizerParts> parts;
  std::vector<Bpe::Pair> merges;  // in the order of merging
};
Result<RankedParts> parts_from_ranks(const RankedVocabulary& vocabulary);

}  // namespace quire

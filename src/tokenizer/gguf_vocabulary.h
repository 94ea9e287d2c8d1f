// Converts the vocabulary of a checkpoint's tokenizer to the metadata of a GGUF file: the inverse
// of tokenizer_gguf.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_gguf.h"

namespace quire {

// The contents of a checkpoint's files.
struct TokenizerTexts {
  std::string_view file;      // the name of the file with the vocabulary: one of kTokenizerFiles
  std::string_view contents;  // its contents
  std::string_view config;    // tokenizer_config.json; empty: there is none
};

// The properties of the model that uses the vocabulary.
struct VocabularyUse {
  int num_tokens = 0;  // the number of rows of its embedding, and of tokens in the result
  // Used if tokenizer_config.json does not name the token.
  std::optional<int> bos_id = {};
  std::optional<int> eos_id = {};
};

// A GgufVocabulary that owns its strings.
struct OwnedGgufVocabulary {
  std::string model;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> eos_id;
  std::optional<int32_t> unk_id;
  std::optional<int32_t> pad_id;
  bool add_bos = false;
  bool add_eos = false;
  std::optional<bool> add_space_prefix;

  GgufVocabulary view() const;
};

// `tokenizer` must have been read from these files. Fails, and names the part, if GGUF files cannot
// express the tokenizer: checks that the result encodes the text of every token, and of every two
// tokens with adjacent ids, to the same ids. `source` names the files in errors.
Result<OwnedGgufVocabulary> gguf_vocabulary(const TokenizerTexts& texts, const Tokenizer& tokenizer,
                                            const VocabularyUse& use, std::string_view source);

}  // namespace quire

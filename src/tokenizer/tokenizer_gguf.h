// Builds a tokenizer from the vocabulary in the metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/tokenizer.h"

namespace quire {

// The values of the keys that begin with "tokenizer.ggml."; absent lists are empty.
struct GgufVocabulary {
  std::string_view model = {};                // "gpt2", "llama", "gemma4"
  std::string_view pre = {};                  // "llama-bpe", "qwen2", …; empty: none
  std::vector<std::string_view> tokens = {};  // by id
  std::vector<int64_t> types = {};  // per token, with the numbers of SentencePiece's piece types
  std::vector<double> scores = {};  // per token; only for "llama"
  std::vector<std::string_view> merges = {};  // "left right"; not for "llama"
  std::optional<int64_t> bos_id = {};
  std::optional<int64_t> eos_id = {};
  std::optional<int64_t> unk_id = {};
  std::optional<bool> add_bos = {};
  std::optional<bool> add_eos = {};
  std::optional<bool> add_space_prefix = {};
};

// The numbers in GgufVocabulary::types.
enum GgufTokenType : int64_t {
  kGgufNormal = 1,
  kGgufUnknown = 2,
  kGgufControl = 3,
  kGgufUserDefined = 4,
  kGgufUnused = 5,
  kGgufByte = 6,
};

// A pre-tokenizer that GGUF files name.
struct GgufPreRule {
  std::string_view name;
  bool nfc;  // tokenizer_from_gguf applies NFC to the text first
};
// Returns the pre-tokenizer that splits a text by these regexes, one after another.
// `ignore_merges`: a word that is itself a token becomes that token, without merges.
std::optional<GgufPreRule> find_gguf_pre_rule(std::span<const std::string> regexes,
                                              bool ignore_merges);
// The regexes of ByteLevel with use_regex, and of Digits with individual_digits.
extern const std::string_view kByteLevelRegex;
extern const std::string_view kDigitRegex;

// Whether models end their replies with a token of this spelling. Old converters gave some of these
// tokens the type of text, but they are control tokens regardless of the type in the file.
bool ends_gguf_replies(std::string_view token);
// The ids of the tokens that end replies of a model with these tokens.
std::vector<int> gguf_reply_ends(std::span<const std::string_view> tokens);

// Errors name the key but not the file; the caller adds the file.
Result<std::shared_ptr<const Tokenizer>> tokenizer_from_gguf(const GgufVocabulary& vocabulary);

}  // namespace quire

// Converts text to token ids and back, exactly like the checkpoint's own tokenizer: a Hugging Face
// tokenizer.json or a SentencePiece tokenizer.model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "quire/status.h"

namespace quire {

struct TokenizerParts;
class DecoderStream;

// Immutable after loading, and thread-safe.
class Tokenizer {
 public:
  // Loads `dir`/tokenizer.json, or else `dir`/tokenizer.model. `dir`/tokenizer_config.json adds the
  // BOS and EOS settings and added tokens.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& dir);
  // `source_name` names the text in errors.
  static Result<std::shared_ptr<const Tokenizer>> from_json(std::string_view tokenizer_json,
                                                            std::string_view source_name);
  static Result<std::shared_ptr<const Tokenizer>> from_sentencepiece(std::string_view model_bytes,
                                                                     std::string_view source_name);
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  ~Tokenizer();

  // Encodes any bytes; each invalid sequence is treated as U+FFFD. Added tokens in the text are
  // recognized, except control tokens (added_tokens.h) with an untrusted byte, which are encoded
  // like ordinary text. `add_special_tokens` adds the tokens that the checkpoint requires around a
  // text (BOS, EOS). Fails only if the checkpoint's rules would take too long on this text.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens,
                                      const ByteSpans& untrusted = {}) const;
  // The result is valid UTF-8. Ids without a token add nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // The highest id plus 1. The model's embedding may have more rows.
  int vocab_size() const;
  std::optional<int32_t> token_to_id(std::string_view token) const;
  // The token in the vocabulary's spelling; empty if there is none. Valid as long as the tokenizer
  // exists.
  std::string_view id_to_token(int32_t id) const;
  bool is_added(int32_t id) const;
  bool is_special(int32_t id) const;
  bool is_control(int32_t id) const;
  // The raw bytes that this token adds in the middle of a text, possibly a part of a character.
  std::string token_bytes(int32_t id) const;

 private:
  friend class IncrementalDetokenizer;

  // The token in the form that the decoder requires; nullopt if it adds no text.
  std::optional<std::string_view> decodable(int32_t id, bool skip_special_tokens) const;

  std::unique_ptr<const TokenizerParts> parts_;
};

// The BOS that the tokenizer adds before a text; nullopt if it adds none.
Result<std::optional<int32_t>> find_bos(const Tokenizer& tokenizer);

// The text of one growing sequence. All results of push() and finish() together equal
// Tokenizer::decode of the whole sequence without the text of the primed prompt. Amortized time is
// linear in the size of the tokens' text.
class IncrementalDetokenizer {
 public:
  // `tokenizer` must outlive this object.
  IncrementalDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);
  // Copies the state, so that n samples of a request share one primed prompt.
  IncrementalDetokenizer(const IncrementalDetokenizer& other);
  IncrementalDetokenizer(IncrementalDetokenizer&&) noexcept;
  IncrementalDetokenizer& operator=(IncrementalDetokenizer&&) noexcept;
  ~IncrementalDetokenizer();

  // Sets the prompt tokens, so that output tokens are decoded as their continuation. Characters of
  // the prompt are never returned. A character that begins in the prompt and ends in the output is
  // returned whole. Must be called before push().
  void prime(std::span<const int32_t> prompt_ids);
  // Returns the text that later tokens cannot change. It never splits characters or loses bytes.
  std::string push(int32_t id);
  // The whole characters of the output that is still held back, so that a caller can search for a
  // stop string immediately. In a byte-fallback vocabulary, a run of <0xNN> is held until it ends,
  // because one invalid byte turns every byte of the run into U+FFFD. So this text may still change
  // until push() or finish() returns it. Usually empty; the time is linear in the held text.
  std::string pending() const;
  // Returns the text that is still held back, with U+FFFD for invalid bytes. Must be the last call.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::unique_ptr<DecoderStream> stream_;
};

}  // namespace quire

// Converts text to token ids and back exactly as the checkpoint's own tokenizer, which is a Hugging
// Face tokenizer.json or a SentencePiece tokenizer.model.
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
  // Loads `dir`/tokenizer.json, otherwise `dir`/tokenizer.model. `dir`/tokenizer_config.json adds
  // the BOS and EOS settings and added tokens.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& dir);
  // `source_name` names the text in errors.
  static Result<std::shared_ptr<const Tokenizer>> from_json(std::string_view tokenizer_json,
                                                            std::string_view source_name);
  static Result<std::shared_ptr<const Tokenizer>> from_sentencepiece(std::string_view model_bytes,
                                                                     std::string_view source_name);
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  ~Tokenizer();

  // Encodes any bytes; each invalid sequence counts as U+FFFD. Added tokens in the text are
  // recognised, except control tokens (added_tokens.h) with an untrusted byte: these are encoded as
  // if the tokenizer did not have them. `add_special_tokens` adds the tokens that the checkpoint
  // puts around a text (BOS, EOS). Fails only if the checkpoint's rules would take too long on this
  // text.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens,
                                      const ByteSpans& untrusted = {}) const;
  // The result is valid UTF-8. Ids without a token add nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // The highest id + 1. The model's embedding may have more rows.
  int vocab_size() const;
  std::optional<int32_t> token_to_id(std::string_view token) const;
  // The token as spelled in the vocabulary; empty if none. Valid while the tokenizer lives.
  std::string_view id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;
  bool is_control(int32_t id) const;
  // The raw bytes that this token adds in the middle of a text, possibly half of a character.
  std::string token_bytes(int32_t id) const;

 private:
  friend class IncrementalDetokenizer;

  // The token in the form that the decoder takes; nullopt if it adds nothing.
  std::optional<std::string_view> decodable(int32_t id, bool skip_special_tokens) const;

  std::unique_ptr<const TokenizerParts> parts_;
};

// The BOS that the tokenizer puts before a text; nullopt: it puts none.
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

  // Sets the tokens before the first push(), so that output tokens decode as their continuation.
  // The prompt's own characters are never returned; a character that begins in the prompt and ends
  // in the output is returned whole. Must be called before push().
  void prime(std::span<const int32_t> prompt_ids);
  // Returns the text that later tokens cannot change. Characters are never split and no byte is
  // lost.
  std::string push(int32_t id);
  // The held-back output that consists of whole characters, so that a caller can look for a stop
  // string at once. In a byte-fallback vocabulary, a run of <0xNN> is held until it ends, because
  // one invalid byte turns every byte of the run into U+FFFD. So this text may still change until
  // push() or finish() returns it. Usually empty; the time is linear in the held text.
  std::string pending() const;
  // Returns the text still held back, with invalid bytes as U+FFFD. Must be the last call.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::unique_ptr<DecoderStream> stream_;
};

}  // namespace quire

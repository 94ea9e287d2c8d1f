// Text to token ids and back, as the checkpoint's own tokenizer does it: a Hugging Face
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

#include "quire/status.h"

namespace quire {

struct TokenizerParts;
class DecoderStream;

// Immutable once loaded; any number of threads may use it.
class Tokenizer {
 public:
  // `dir`/tokenizer.json, or else `dir`/tokenizer.model; with what `dir`/tokenizer_config.json says
  // about the first and last token and about added tokens.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& dir);
  // `source_name` names the text in errors.
  static Result<std::shared_ptr<const Tokenizer>> from_json(std::string_view tokenizer_json,
                                                            std::string_view source_name);
  static Result<std::shared_ptr<const Tokenizer>> from_sentencepiece(std::string_view model_bytes,
                                                                     std::string_view source_name);
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  ~Tokenizer();

  // Any bytes; each invalid sequence counts as U+FFFD. Special tokens in the text are recognised;
  // `add_special_tokens` puts those around it that the checkpoint wants (BOS, EOS). Fails only
  // where the checkpoint's own regex would take too long.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens) const;
  // Always valid UTF-8. Ids without a token add nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // The highest id + 1; a model may have more rows in its embedding.
  int vocab_size() const;
  std::optional<int32_t> token_to_id(std::string_view token) const;
  // The vocabulary's own spelling; empty if there is none. Valid while the tokenizer lives.
  std::string_view id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;
  // The raw bytes that this token adds in the midst of a text; they may be half a character.
  std::string token_bytes(int32_t id) const;

 private:
  friend class IncrementalDetokenizer;

  // The token as the decoder wants it; nothing if it adds nothing.
  std::optional<std::string_view> decodable(int32_t id, bool skip_special_tokens) const;

  std::unique_ptr<const TokenizerParts> parts_;
};

// The text of one growing sequence. What all pushes and the finish return together is what
// Tokenizer::decode gives for the whole, without the text of the prompt that it was primed with.
// Amortized time is linear in the tokens' text.
class IncrementalDetokenizer {
 public:
  // `tokenizer` must outlive it.
  IncrementalDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);
  // Copies the state, so that n answers share one primed prompt.
  IncrementalDetokenizer(const IncrementalDetokenizer& other);
  IncrementalDetokenizer(IncrementalDetokenizer&&) noexcept;
  IncrementalDetokenizer& operator=(IncrementalDetokenizer&&) noexcept;
  ~IncrementalDetokenizer();

  // What precedes the first push: the pieces then read as its continuation, and none of its own
  // characters is ever returned. A character that the prompt begins and the output completes is the
  // output's, whole. Comes first.
  void prime(std::span<const int32_t> prompt_ids);
  // The text that is certain now: never half a character, and no byte is lost.
  std::string push(int32_t id);
  // The whole characters of the output that are held back: with them a caller need not wait to look
  // for a stop string. In byte-fallback vocabularies a run of <0xNN> is held until it ends, for one
  // invalid byte makes each byte of the run U+FFFD: until push or finish returns it, this text may
  // still turn to that. Usually empty; time linear in what is held.
  std::string pending() const;
  // What is still held back, invalid bytes as U+FFFD. Comes last.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::unique_ptr<DecoderStream> stream_;
};

}  // namespace quire

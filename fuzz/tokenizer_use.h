// The calls that the fuzzers of tokenizers make to a loaded tokenizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "tokenizer/tokenizer.h"

namespace quire {

// Marks every other part of a text, by its bytes, as untrusted.
inline ByteSpans some_bytes(std::string_view text) {
  ByteSpans spans;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end =
        std::min(begin + 1 + static_cast<unsigned char>(text[begin]) % 8, text.size());
    spans.add(begin, end);
    begin = end + 1 + static_cast<unsigned char>(text[end - 1]) % 8;
  }
  return spans;
}

// Encodes a text with untrusted bytes. If the vocabulary has no control tokens, untrusted bytes
// change no id.
inline void check_marks(const Tokenizer& tokenizer, std::string_view text) {
  constexpr int kMaxVocab = 10'000;  // the largest vocabulary that is searched for control tokens
  if (tokenizer.vocab_size() > kMaxVocab) return;
  bool has_control = false;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    has_control = has_control || tokenizer.is_control(id);
  }
  const auto plain = tokenizer.encode(text, false);
  for (const ByteSpans& untrusted : {some_bytes(text), ByteSpans::whole(text.size())}) {
    const auto marked = tokenizer.encode(text, false, untrusted);
    QUIRE_CHECK(has_control || marked.ok() == plain.ok(), "marks take no time");
    if (has_control || !plain.ok()) continue;
    QUIRE_CHECK(*marked == *plain, "marks change only control tokens");
  }
}

// Encodes any text, decodes any ids, and checks properties that hold for every tokenizer.
inline void use_tokenizer(const Tokenizer& tokenizer, std::string_view text) {
  auto encoded = tokenizer.encode(text, true);
  std::vector<int32_t> ids;
  if (encoded.ok()) ids = std::move(*encoded);
  for (const int32_t id : ids) QUIRE_CHECK(id >= 0, "an id is not negative");
  check_marks(tokenizer, text);
  // Decodes ids that no text encodes to.
  for (const char c : text) {
    ids.push_back(static_cast<unsigned char>(c) % (tokenizer.vocab_size() + 2) - 1);
  }
  for (const bool skip : {false, true}) {
    const std::string whole = tokenizer.decode(ids, skip);
    QUIRE_CHECK(is_valid_utf8(whole), "decoded text is valid UTF-8");
    IncrementalDetokenizer detokenizer(tokenizer, skip);
    std::string streamed;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.push(id);
      QUIRE_CHECK(is_valid_utf8(piece), "a piece is whole characters");
      streamed += piece;
    }
    streamed += detokenizer.finish();
    QUIRE_CHECK(streamed == whole, "streamed text is the whole text");
  }
  for (const int32_t id : ids) {
    tokenizer.token_bytes(id);
    tokenizer.id_to_token(id);
    tokenizer.is_special(id);
  }
}

}  // namespace quire

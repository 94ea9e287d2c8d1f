// The calls that the tokenizer fuzzers make on a tokenizer that loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "tokenizer/tokenizer.h"

namespace quire {

// Encodes any text, decodes any ids, and checks properties that hold for every tokenizer.
inline void use_tokenizer(const Tokenizer& tokenizer, std::string_view text) {
  auto encoded = tokenizer.encode(text, true);
  std::vector<int32_t> ids;
  if (encoded.ok()) ids = std::move(*encoded);
  for (const int32_t id : ids) QUIRE_CHECK(id >= 0, "an id is not negative");
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

// GPT-2's spelling of raw bytes as printable characters, which byte-level vocabularies are written
// in (openai/gpt-2, src/encoder.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire {

// Each byte as its character.
std::string spell_bytes(std::string_view bytes);
// The bytes that a spelling stands for; nothing if a character in it stands for no byte.
std::optional<std::string> unspell_bytes(std::string_view spelling);
// The same, appended to `out`; false (and `out` as it was) if a character stands for no byte.
bool append_unspelled(std::string_view spelling, std::string& out);

}  // namespace quire

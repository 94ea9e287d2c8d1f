// GPT-2's spelling of raw bytes as printable characters (openai/gpt-2, src/encoder.py). Byte-level
// vocabularies use this spelling.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire {

// Replaces each byte by the character that stands for it.
std::string spell_bytes(std::string_view bytes);
// Returns the bytes for which a spelling stands; nullopt if one of its characters does not stand
// for a byte.
std::optional<std::string> unspell_bytes(std::string_view spelling);
// Appends the bytes to `out`. Returns false and does not change `out` if a character does not stand
// for a byte.
bool append_unspelled(std::string_view spelling, std::string& out);

}  // namespace quire

// GPT-2's spelling of raw bytes as printable characters (openai/gpt-2, src/encoder.py). Byte-level
// vocabularies use this spelling.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire {

// Replaces each byte by the character that stands for it.
std::string spell_bytes(std::string_view bytes);
// Returns the bytes that a spelling stands for; nullopt if one of its characters stands for no
// byte.
std::optional<std::string> unspell_bytes(std::string_view spelling);
// Appends the bytes to `out`. Returns false and does not change `out` if a character stands for no
// byte.
bool append_unspelled(std::string_view spelling, std::string& out);

}  // namespace quire

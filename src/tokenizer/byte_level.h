// GPT-2's spelling of raw bytes as printable characters, in which byte-level vocabularies are
// written (openai/gpt-2, src/encoder.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire {

// Spells each byte as its character.
std::string spell_bytes(std::string_view bytes);
// The bytes that a spelling stands for; nullopt if one of its characters stands for no byte.
std::optional<std::string> unspell_bytes(std::string_view spelling);
// Appends the bytes to `out`. Returns false, with `out` unchanged, if a character stands for no
// byte.
bool append_unspelled(std::string_view spelling, std::string& out);

}  // namespace quire

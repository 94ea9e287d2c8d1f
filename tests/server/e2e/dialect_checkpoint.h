// A model that repeats a text of its prompt in any dialect of tool calls.
#pragma once

#include <filesystem>
#include <string_view>

namespace quire::testing {

inline constexpr int kDialectPeriod = 512;  // the period of its copies
inline constexpr std::string_view kDialectEosText = "<|endoftext|>";

// The tokenizer of GPT-2 that this model extends; it may be absent.
std::filesystem::path dialect_tokenizer();

// Writes the model with the markers of all dialects as special tokens. Its template is the content
// of the last message.
void write_dialect_checkpoint(const std::filesystem::path& dir);

}  // namespace quire::testing

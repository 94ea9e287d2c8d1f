// Hand-written matchers for the regexes that split nearly all byte-level vocabularies. Each
// receives the non-empty rest [p, end) of a valid UTF-8 text, and returns the end of the match at
// `p`, or nullptr. The time is linear in the size of the match plus one run of white space.
#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/pattern.h"

namespace quire::scan {

inline constexpr std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* gpt2(const char* p, const char* end);

// The regex of cl100k and vocabularies derived from it. Qwen2's regex differs only in that it
// matches one digit per piece.
inline constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
template <int kMaxDigits>
const char* llama3(const char* p, const char* end);

// The regexes of tekken, o200k and Kimi cut a word before an upper-case letter that follows a
// lower-case one. The regexes of o200k and Kimi add contractions to a word. Kimi's separates Han
// characters.
inline constexpr std::string_view kTekkenRegex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kO200kRegex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kKimiRegex =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* tekken(const char* p, const char* end);
const char* o200k(const char* p, const char* end);
const char* kimi(const char* p, const char* end);

// The last of DeepSeek-V3's three regexes.
inline constexpr std::string_view kDeepSeekV3Regex =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* deepseek_v3(const char* p, const char* end);

// The regex of the pre-tokenizer "Whitespace".
inline constexpr std::string_view kWordsRegex = R"(\w+|[^\w\s]+)";
const char* words(const char* p, const char* end);

// A regex of DeepSeek-LLM; $ matches at line ends. A regex engine needs quadratic time for it on
// long runs of spaces inside a line.
inline constexpr std::string_view kTrailingSpaceRegex = R"(\s+$)";
std::optional<Match> find_trailing_space(std::string_view text, size_t from);

}  // namespace quire::scan

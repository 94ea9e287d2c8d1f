// Helps with words that Quire does not have: flags and commands of other engines, and mistyped
// ones.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace quire::cli {

// A flag of vLLM, SGLang or llama.cpp that Quire does not have.
struct ForeignFlag {
  enum class Answer {
    kNamed,    // `text` is the flag to use instead
    kRefused,  // `text` is the reason and the remedy: "is not supported; …"
    kIgnored,  // the flag changes nothing here; `text` is the reason: "has no effect: …"
  };
  std::string_view name;
  Answer answer;
  std::string_view text;
  bool takes_value = true;
  std::string_view other = {};  // with kNamed: the flag instead in commands that have it
};

std::span<const ForeignFlag> foreign_flags();

// The remedy for a command of Ollama, vLLM or llama.cpp, for example "is quire doctor MODEL
// here" for "show". Empty for an unknown word.
std::string_view foreign_command_remedy(std::string_view word);

// Returns whether a flag's name, also a mistyped one, says that its value is a secret: "--api_key",
// "--apikey=…", "--hf-token". Errors must not show such a value, because they end in logs.
bool is_secret_flag(std::string_view flag);

// The least number of letters inserted, deleted, replaced, or swapped with their neighbour.
size_t edit_distance(std::string_view from, std::string_view to);

// The candidate closest to `word`, if at most one letter differs (two in a word of more than four
// letters, without the dashes of a flag), otherwise the first flag that begins with `word`. Empty:
// no candidate is close enough, or `word` is itself a candidate.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace quire::cli

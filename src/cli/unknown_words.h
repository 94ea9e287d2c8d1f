// Remedies for flags and commands that Quire does not have: those of other engines, and mistyped
// ones.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace quire::cli {

// A flag of vLLM, SGLang or llama.cpp that Quire does not have.
struct ForeignFlag {
  enum class Kind {
    kNamed,    // `text` is the flag to use instead
    kRefused,  // `text` is the reason and the remedy: "is part of the model's name here: …"
    kIgnored,  // the flag changes nothing here; `text` is the reason: "has no effect: …"
  };
  std::string_view name;
  Kind kind;
  std::string_view text;
  bool takes_value = true;
  std::string_view preferred = {};  // with kNamed: replaces `text` in commands with this flag
};

std::span<const ForeignFlag> foreign_flags();

// The remedy for a command of Ollama, vLLM or llama.cpp, which follows its name in a message: for
// example "is quire doctor MODEL here" for "show". Empty for an unknown command.
std::string_view foreign_command_remedy(std::string_view word);

// Returns whether a word of a flag's name is "key", "token", "password" or the like: "--api_key",
// "--apikey=…", "--hf-token". Errors must not show the value of such a flag, because it is a secret
// and errors end in logs.
bool is_secret_flag(std::string_view flag);

// The least number of letters inserted, deleted, replaced, or swapped with their neighbour.
size_t edit_distance(std::string_view from, std::string_view to);

// The candidate with the least edit distance to `word`, at most 1, or at most 2 if `word` has more
// than four letters besides leading dashes. Otherwise the first candidate that begins with `word`,
// if this is "--" and at least three letters. Empty: there is none, or `word` is a candidate.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace quire::cli

// Remedies for flags and commands that Quire does not have: those of other engines, and mistyped
// ones.
#pragma once

#include <span>
#include <string_view>

namespace quire::cli {

// A flag of vLLM, SGLang, llama.cpp or Ollama that Quire does not have.
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

}  // namespace quire::cli

// Remedies for flags and commands of other engines that Quire does not have.
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

// Returns the remedy for a command of Ollama, vLLM or llama.cpp, such as "is quire doctor MODEL
// here" for "show". Messages put the remedy after the command's name. Empty for an unknown command.
std::string_view foreign_command_remedy(std::string_view word);

// Returns whether a word of a flag's name is "key", "token", "password" or the like: "--api_key",
// "--apikey=…", "--hf-token". Errors must not show the value of such a flag, because it is a secret
// and errors may be logged.
bool is_secret_flag(std::string_view flag);

}  // namespace quire::cli

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "cli/command.h"
#include "cli/output.h"

namespace quire::cli {
namespace {

// Calls visit(command, "quire bench throughput") for the command and all its subcommands.
using Visit = std::function<void(const Command& command, const std::string& path)>;
void walk(const Command& command, const std::string& path, const Visit& visit) {
  visit(command, path);
  for (const Command& subcommand : command.subcommands) {
    walk(subcommand, path + " " + subcommand.name, visit);
  }
}

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

std::vector<std::string> flag_names(const Flag& flag) {
  if (flag.alias.empty()) return {flag.name};
  return {flag.name, flag.alias};
}

// Returns the choices of the command's argument.
std::vector<std::string> choices_of(const Command& command) {
  return command.positional ? command.positional->choices : std::vector<std::string>();
}

// Returns the subcommands, choices and flags that the command accepts.
std::vector<std::string> words_of(const Command& command) {
  std::vector<std::string> words;
  for (const Command& subcommand : command.subcommands) words.push_back(subcommand.name);
  const std::vector<std::string> choices = choices_of(command);
  words.insert(words.end(), choices.begin(), choices.end());
  for (const Flag& flag : command.flags.flags()) {
    if (flag.hidden) continue;
    for (const std::string& name : flag_names(flag)) words.push_back(name);
  }
  words.emplace_back("--help");
  return words;
}

// Quotes the text for a shell, in single quotes.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash_value(const Flag& flag) {
  if (!flag.choices.empty()) {
    return fmt::format("COMPREPLY=($(compgen -W {} -- \"$cur\"))",
                       shell_quoted(joined(flag.choices)));
  }
  if (flag.kind == ValueKind::kFile) {
    return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
  }
  if (flag.kind == ValueKind::kDirectory) {
    return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
  }
  return ":";
}

std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(ValueKind kind) {
  if (kind == ValueKind::kFile) return "_files";
  return kind == ValueKind::kDirectory ? "_files -/" : "";
}

std::string zsh_value(const Flag& flag) {
  if (flag.kind == ValueKind::kNone) return "";
  std::string action = zsh_action(flag.kind);
  if (!flag.choices.empty()) action = fmt::format("({})", joined(flag.choices));
  return fmt::format(":{}:{}", zsh_escaped(flag.value_name), action);
}

std::string zsh_function_name(std::string path) {
  for (char& c : path) c = c == ' ' ? '_' : c;
  return "_" + path;
}

std::string zsh_arguments(const Command& command) {
  std::string arguments = " '(-)--help[Show this help]'";
  for (const Flag& flag : command.flags.flags()) {
    if (flag.hidden) continue;
    for (const std::string& name : flag_names(flag)) {
      arguments += fmt::format(
          " \\\n    {}", shell_quoted(fmt::format("{}{}[{}]{}", flag.repeatable ? "*" : "", name,
                                                  zsh_escaped(flag.help), zsh_value(flag))));
    }
  }
  if (command.positional) {
    const Positional& positional = *command.positional;
    const std::string action = positional.choices.empty()
                                   ? zsh_action(positional.kind)
                                   : fmt::format("({})", joined(positional.choices));
    const auto add = [&](std::string_view place) {
      arguments += fmt::format(
          " \\\n    {}", shell_quoted(fmt::format("{}:{}:{}", place, positional.name, action)));
    };
    if (positional.max_words == Positional::kAnyNumber) {
      add("*");
    } else {
      for (size_t i = 1; i <= positional.max_words; ++i) add(std::to_string(i));
    }
  }
  return arguments;
}

std::string zsh_function(const Command& command, const std::string& path) {
  const std::string name = zsh_function_name(path);
  if (command.subcommands.empty()) {
    return fmt::format("{}() {{\n  _arguments{}\n}}\n", name, zsh_arguments(command));
  }
  std::string list;
  std::string cases;
  for (const Command& subcommand : command.subcommands) {
    list += "    " + shell_quoted(zsh_escaped(subcommand.name) + ":" + subcommand.summary) + "\n";
    cases += fmt::format("        {}) {}_{} ;;\n", subcommand.name, name, subcommand.name);
  }
  return fmt::format(
      "{0}() {{\n"
      "  local line state\n"
      "  local -a commands=(\n{1}  )\n"
      "  _arguments -C{2} \\\n    '1: :->command' '*:: :->rest'\n"
      "  case $state in\n"
      "    command) _describe command commands ;;\n"
      "    rest)\n      case $line[1] in\n{3}      esac ;;\n"
      "  esac\n"
      "}}\n",
      name, list, zsh_arguments(command), cases);
}

// Returns a fish condition that is true while the words so far name exactly this command.
std::string fish_condition(const Command& command, const std::string& path) {
  const size_t space = path.find(' ');
  if (space == std::string::npos) return "__fish_use_subcommand";
  std::string condition;
  std::string_view rest = std::string_view(path).substr(space + 1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                             rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::vector<std::string> below;
  for (const Command& subcommand : command.subcommands) below.push_back(subcommand.name);
  if (!below.empty()) condition += "; and not __fish_seen_subcommand_from " + joined(below);
  return condition;
}

std::string fish_flag(const Flag& flag, const std::string& start) {
  std::string line = start;
  for (const std::string& name : flag_names(flag)) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -o " + name.substr(1);
  }
  if (!flag.choices.empty()) {
    line += " -x -a " + shell_quoted(joined(flag.choices));
  } else if (flag.kind == ValueKind::kDirectory) {
    line += " -x -a '(__fish_complete_directories)'";
  } else if (flag.kind == ValueKind::kFile) {
    line += " -r -F";
  } else if (flag.kind == ValueKind::kText) {
    line += " -x";
  }
  return line + " -d " + shell_quoted(flag.help) + "\n";
}

}  // namespace

std::string bash_completion(const Command& root) {
  std::string paths;
  std::string values;
  std::string words;
  walk(root, root.name, [&](const Command& command, const std::string& path) {
    if (path != root.name) paths += (paths.empty() ? "" : "|") + fmt::format("\"{}\"", path);
    for (const Flag& flag : command.flags.flags()) {
      if (flag.kind == ValueKind::kNone || flag.hidden) continue;
      for (const std::string& name : flag_names(flag)) {
        values += fmt::format("    \"{} {}\") {}; return ;;\n", path, name, bash_value(flag));
      }
    }
    const bool is_folder = command.positional && command.positional->kind == ValueKind::kDirectory;
    words += fmt::format(
        "    \"{}\") {}$(compgen -W {} -- \"$cur\")) ;;\n", path,
        is_folder ? "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\") "
                  : "COMPREPLY=(",
        shell_quoted(joined(words_of(command))));
  });
  return fmt::format(
      "_{0}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local path={0} i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$path ${{COMP_WORDS[i]}}\" in\n"
      "    {1}) path=\"$path ${{COMP_WORDS[i]}}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$path $prev\" in\n{2}  esac\n"
      "  case \"$path\" in\n{3}  esac\n"
      "}}\n"
      "complete -F _{0} {0}\n",
      root.name, paths, values, words);
}

std::string zsh_completion(const Command& root) {
  std::string script = fmt::format("#compdef {}\n", root.name);
  walk(root, root.name, [&](const Command& command, const std::string& path) {
    script += zsh_function(command, path);
  });
  // The script works when sourced, and as a file in $fpath, where it is the body of the function.
  return script + fmt::format(
                      "if [ \"$funcstack[1]\" = \"_{0}\" ]; then _{0} \"$@\"; else compdef _{0} "
                      "{0}; fi\n",
                      root.name);
}

std::string fish_completion(const Command& root) {
  std::string script = fmt::format("complete -c {} -f\n", root.name);
  walk(root, root.name, [&](const Command& command, const std::string& path) {
    const std::string start =
        fmt::format("complete -c {} -n {}", root.name, shell_quoted(fish_condition(command, path)));
    for (const Command& subcommand : command.subcommands) {
      script +=
          fmt::format("{} -a {} -d {}\n", start, subcommand.name, shell_quoted(subcommand.summary));
    }
    if (const auto choices = choices_of(command); !choices.empty()) {
      script += fmt::format("{} -a {}\n", start, shell_quoted(joined(choices)));
    }
    if (command.positional && command.positional->kind == ValueKind::kDirectory) {
      script += start + " -a '(__fish_complete_directories)'\n";
    }
    for (const Flag& flag : command.flags.flags()) {
      if (!flag.hidden) script += fish_flag(flag, start);
    }
    script += start + " -l help -d 'Show this help'\n";
  });
  return script;
}

Command completion_command() {
  const auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.summary = "Print a shell's completion script";
  command.example =
      "  quire completion bash > ~/.local/share/bash-completion/completions/quire\n"
      "  quire completion zsh > \"${fpath[1]}/_quire\"\n"
      "  quire completion fish > ~/.config/fish/completions/quire.fish";
  command.positional = {.name = "SHELL",
                        .help = "bash, zsh or fish",
                        .choices = {"bash", "zsh", "fish"},
                        .min_words = 1,
                        .set = [shell](std::string_view word) {
                          *shell = word;
                          return Status();
                        }};
  command.run = [shell]() -> Result<int> {
    const Command root = root_command();
    const std::string script = *shell == "bash"  ? bash_completion(root)
                               : *shell == "zsh" ? zsh_completion(root)
                                                 : fish_completion(root);
    return write_stdout(script) ? kExitOk : kExitFailure;
  };
  return command;
}

}  // namespace quire::cli

// The text that --help prints.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/command_line.h"

namespace quire::cli {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kHelpColumn = 30;

// Returns one entry: its name, and its description from kHelpColumn on, wrapped between words.
std::string entry(const std::string& name, std::string_view description) {
  std::string text = "  " + name;
  size_t column = text.size();
  const auto begin_line = [&] {
    text += '\n' + std::string(kHelpColumn, ' ');
    column = kHelpColumn;
  };
  if (column + 1 > kHelpColumn) {
    begin_line();
  } else {
    text.append(kHelpColumn - column, ' ');
    column = kHelpColumn;
  }
  while (!description.empty()) {
    const size_t size = std::min(description.find(' '), description.size());
    if (column > kHelpColumn && column + 1 + size > kWidth) begin_line();
    if (column > kHelpColumn) text += ' ';
    text += description.substr(0, size);
    column += size + 1;
    description.remove_prefix(std::min(size + 1, description.size()));
  }
  return text + '\n';
}

std::string flag_name(const Flag& flag) {
  const std::string names = flag.alias.empty() ? flag.name : flag.name + ", " + flag.alias;
  if (flag.kind == ValueKind::kNone) return names;
  return fmt::format("{} {}{}", names, flag.value_name, flag.takes_several ? " ..." : "");
}

std::string flag_help(const Flag& flag) {
  return flag.default_text.empty() ? flag.help
                                   : fmt::format("{} [{}]", flag.help, flag.default_text);
}

std::string usage(const Command& command, const std::string& path) {
  std::string text = fmt::format("Usage: {}", path);
  if (!command.subcommands.empty()) text += " COMMAND";
  if (command.positional) {
    const Positional& positional = *command.positional;
    const bool is_list = positional.max_words == Positional::kAnyNumber;
    const std::string words = positional.name + (is_list ? " ..." : "");
    text += positional.min_words > 0 ? " " + words : fmt::format(" [{}]", words);
  }
  return text + (command.flags.flags().empty() ? "\n" : " [FLAGS]\n");
}

std::string flag_groups(const Command& command) {
  std::vector<std::string> groups;
  for (const Flag& flag : command.flags.flags()) {
    const bool is_new = std::ranges::find(groups, flag.group) == groups.end();
    if (!flag.hidden && is_new) groups.push_back(flag.group);
  }
  std::string text;
  for (const std::string& group : groups) {
    text += fmt::format("\n{}:\n", group);
    for (const Flag& flag : command.flags.flags()) {
      if (!flag.hidden && flag.group == group) text += entry(flag_name(flag), flag_help(flag));
    }
  }
  return text;
}

}  // namespace

std::string help_text(const Command& command, const std::string& path) {
  std::string text = fmt::format("{}\n\n{}", command.summary, usage(command, path));
  if (command.positional) {
    text += "\nArgument:\n" + entry(command.positional->name, command.positional->help);
  }
  if (!command.subcommands.empty()) text += "\nCommands:\n";
  for (const Command& subcommand : command.subcommands) {
    text += entry(subcommand.name, subcommand.summary);
  }
  text += flag_groups(command);
  text += "\nHelp:\n" + entry("-h, --help", "Show this help");
  const bool is_root = path == command.name;
  if (is_root) text += entry("-v, --version", "Show the version");
  if (!command.details.empty()) text += "\n" + command.details;
  if (text.back() != '\n') text += '\n';
  return text + fmt::format("\nExample:\n{}\n", command.example);
}

}  // namespace quire::cli

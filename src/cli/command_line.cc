#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/nearest_word.h"
#include "base/text.h"
#include "cli/unknown_words.h"

namespace quire::cli {
namespace {

// Returns "--max-tokens" for "--max-tokens=5".
std::string_view name_of(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

// Returns whether the argument is dashes and a name, such as "--a.b". "-", "--", "-5+3" and
// "- a list" are words.
bool is_flag(std::string_view argument) {
  const std::string_view name = name_of(argument);
  const size_t begin = name.find_first_not_of('-');
  if (begin == 0 || begin == std::string_view::npos) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return is_letter(name[begin]) && std::ranges::all_of(name.substr(begin), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
         });
}

// Finds a flag also under vLLM's spelling with underscores, --max_tokens.
const Flag* find_flag(const Command& command, std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  return command.flags.find(dashed);
}

// Returns which of the flag's two names the user typed.
std::string spelling(const Flag& flag, std::string_view name) {
  const bool is_alias =
      !flag.alias.empty() && name.size() == flag.alias.size() &&
      std::ranges::equal(name, flag.alias, {}, [](char c) { return c == '_' ? '-' : c; });
  return is_alias ? flag.alias : flag.name;
}

// Returns the paths of the commands that have the flag, among `command` and all below it.
std::vector<std::string> commands_with(const Command& command, const std::string& path,
                                       std::string_view flag) {
  std::vector<std::string> paths;
  const Flag* found = find_flag(command, flag);
  if (found != nullptr && !found->hidden) paths.push_back(path);
  for (const Command& subcommand : command.subcommands) {
    const auto below = commands_with(subcommand, path + " " + subcommand.name, flag);
    paths.insert(paths.end(), below.begin(), below.end());
  }
  return paths;
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

class Reader {
 public:
  Reader(const Command& root, std::span<const char* const> arguments)
      : root_(root), rest_(arguments) {
    line_.command = &root;
    line_.path = root.name;
  }

  CommandLine read() {
    if (!rest_.empty() && rest_.front() == std::string_view("help")) return read_help();
    while (!rest_.empty() && line_.action == CommandLine::Action::kRun) read_next();
    if (line_.action == CommandLine::Action::kRun) finish();
    return std::move(line_);
  }

 private:
  std::string_view take() {
    const std::string_view first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }

  // `quire help bench latency` is `quire bench latency --help`.
  CommandLine read_help() {
    line_.action = CommandLine::Action::kHelp;
    take();
    while (!rest_.empty()) read_word(take());
    return std::move(line_);
  }

  void read_next() {
    const std::string_view argument = take();
    if (argument == "--" && !only_words_) {
      only_words_ = true;
    } else if (!only_words_ && is_flag(argument)) {
      read_flag(argument);
    } else {
      read_word(argument);
    }
  }

  void read_flag(std::string_view argument) {
    const std::string_view name = name_of(argument);
    std::optional<std::string_view> value;
    if (name.size() < argument.size()) value = argument.substr(name.size() + 1);
    if (name == "--help" || name == "-h") {
      line_.action = CommandLine::Action::kHelp;
      line_.complaints = {};
    } else if (line_.command == &root_ && (name == "--version" || name == "-v")) {
      line_.action = CommandLine::Action::kVersion;
    } else if (const Flag* flag = find_flag(*line_.command, name)) {
      flag_name_ = spelling(*flag, name);
      read_values(*flag, value);
    } else {
      read_unknown_flag(name, value.has_value());
    }
  }

  void read_values(const Flag& flag, std::optional<std::string_view> value) {
    if (flag.kind == ValueKind::kNone) return set_toggle(flag, value.value_or("true"));
    if (!value) value = take_value(flag);
    if (!value) return;
    set(flag, *value);
    while (flag.takes_several && has_next_value()) set(flag, take());
  }

  // Returns whether a word follows that is neither a flag nor "--".
  bool has_next_value() const {
    return !rest_.empty() && rest_.front() != std::string_view("--") && !is_flag(rest_.front());
  }

  std::optional<std::string_view> take_value(const Flag& flag) {
    if (rest_.empty()) {
      add_value_complaint(flag_name_,
                          fmt::format("expected a value: {} {}", flag_name_, flag.value_name));
      return std::nullopt;
    }
    const std::string_view next = rest_.front();
    if (is_flag(next) && find_flag(*line_.command, name_of(next)) != nullptr) {
      add_value_complaint(flag_name_, fmt::format("expected a value, got the flag {}; {}={} is for "
                                                  "a value that begins with a dash",
                                                  name_of(next), flag_name_, name_of(next)));
      return std::nullopt;
    }
    return take();
  }

  void set_toggle(const Flag& flag, std::string_view value) {
    if (value == "true" || value == "false") return set(flag, value);
    add_value_complaint(flag_name_, unexpected(value, "true or false").message());
  }

  void set(const Flag& flag, std::string_view value) {
    const Status status = flag.set(value);
    if (!status.ok()) add_value_complaint(flag_name_, status.message());
  }

  void read_unknown_flag(std::string_view name, bool has_value) {
    const auto found = std::ranges::find(foreign_flags(), name, &ForeignFlag::name);
    const ForeignFlag* foreign = found == foreign_flags().end() ? nullptr : &*found;
    // Skips the flag's value, which is not a word of the command. A complaint must not print it,
    // because it may be a secret.
    const bool takes_value = foreign == nullptr || foreign->takes_value;
    if (takes_value && !has_value && has_next_value()) take();
    if (foreign != nullptr && foreign->kind == ForeignFlag::Kind::kIgnored) {
      line_.warnings.push_back(fmt::format("{} {}", name, foreign->text));
      return;
    }
    line_.complaints.add(fmt::format("{}: {}", name, remedy(name, foreign)));
  }

  std::string remedy(std::string_view name, const ForeignFlag* foreign) const {
    if (foreign != nullptr && foreign->kind == ForeignFlag::Kind::kRefused) {
      return std::string(foreign->text);
    }
    if (foreign != nullptr) {
      if (!foreign->preferred.empty() && find_flag(*line_.command, foreign->preferred) != nullptr) {
        return fmt::format("is {} here", foreign->preferred);
      }
      const bool is_here = find_flag(*line_.command, foreign->text) != nullptr;
      const std::string where = is_here ? "" : owners(foreign->text);
      return fmt::format("is {}{} here", foreign->text, where.empty() ? "" : " of " + where);
    }
    const std::string elsewhere = owners(name);
    if (!elsewhere.empty()) return "is a flag of " + elsewhere;
    std::vector<std::string> known = {"--help"};
    for (const Flag& flag : line_.command->flags.flags()) known.push_back(flag.name);
    const std::string meant = nearest_flag(name, known);
    return meant.empty() ? "is no flag of this command"
                         : fmt::format("is no flag of this command; did you mean {}?", meant);
  }

  // Returns the commands that have the flag, such as "quire chat and quire generate"; empty: none.
  std::string owners(std::string_view flag) const {
    constexpr size_t kMostNamed = 3;
    std::vector<std::string> paths = commands_with(root_, root_.name, flag);
    if (paths.empty()) return "";
    if (paths.size() > kMostNamed) return fmt::format("{} and others", paths.front());
    return fmt::format("{}", fmt::join(paths, " and "));
  }

  void read_word(std::string_view word) {
    const Command& command = *line_.command;
    if (command.subcommands.empty()) {
      words_.push_back(word);
      return;
    }
    if (&command == &root_ && word == "version") {
      rest_ = {};
      line_.action = CommandLine::Action::kVersion;
      return;
    }
    const auto found = std::ranges::find(command.subcommands, word, &Command::name);
    if (found != command.subcommands.end()) {
      line_.command = &*found;
      line_.path += " " + found->name;
      return;
    }
    rest_ = {};  // the rest belongs to an unknown command
    line_.complaints.add(unknown_command(word));
  }

  std::string unknown_command(std::string_view word) const {
    const bool is_root = line_.command == &root_;
    const std::string_view remedy = is_root ? foreign_command_remedy(word) : "";
    if (!remedy.empty()) return fmt::format("{} {}", word, remedy);
    const std::vector<std::string> known = names_of(line_.command->subcommands);
    const std::string meant = nearest_word(word, known);
    return fmt::format("'{}' is no command; {}", clipped(word),
                       meant.empty() ? fmt::format("expected one of {}", fmt::join(known, ", "))
                                     : fmt::format("did you mean {}?", meant));
  }

  void finish() {
    if (!line_.command->subcommands.empty() && line_.command != &root_ &&
        line_.complaints.empty()) {
      const std::vector<std::string> names = names_of(line_.command->subcommands);
      return line_.complaints.add(fmt::format("expected one of {}", fmt::join(names, ", ")));
    }
    set_words();
    if (!values_are_valid_) return;
    line_.command->flags.check(line_.complaints);
    if (line_.command->check) line_.command->check(line_.complaints);
  }

  void set_words() {
    const std::optional<Positional>& positional = line_.command->positional;
    if (!positional) {
      for (const std::string_view word : words_) {
        line_.complaints.add(fmt::format("got '{}', expected flags only", clipped(word)));
      }
      return;
    }
    if (words_.size() < positional->min_words) {
      return line_.complaints.add(
          fmt::format("expected {}: {}", positional->name, positional->help));
    }
    for (size_t i = 0; i < words_.size(); ++i) set_word(*positional, words_[i], i);
  }

  void set_word(const Positional& positional, std::string_view word, size_t idx) {
    if (idx >= positional.max_words) {
      return line_.complaints.add(
          fmt::format("got '{}' as well, expected {}{}{}{}", clipped(word),
                      positional.max_words == 1 ? "one " : "", positional.name,
                      positional.excess.empty() ? "" : "; ", positional.excess));
    }
    const auto& choices = positional.choices;
    const bool is_choice = choices.empty() || std::ranges::find(choices, word) != choices.end();
    const Status status =
        word.empty() || !is_choice ? unexpected(word, described(positional)) : positional.set(word);
    if (!status.ok()) add_value_complaint(positional.name, status.message());
  }

  static std::string described(const Positional& positional) {
    return positional.choices.empty()
               ? "a text that is not empty"
               : fmt::format("one of {}", fmt::join(positional.choices, ", "));
  }

  void add_value_complaint(std::string_view name, std::string_view message) {
    values_are_valid_ = false;
    line_.complaints.add(fmt::format("{}: {}", name, message));
  }

  const Command& root_;
  std::span<const char* const> rest_;
  std::vector<std::string_view> words_;
  CommandLine line_;
  std::string flag_name_;  // of the flag that is being read, for complaints
  bool only_words_ = false;
  bool values_are_valid_ = true;
};

}  // namespace

CommandLine read_command_line(const Command& root, std::span<const char* const> arguments) {
  return Reader(root, arguments).read();
}

}  // namespace quire::cli

#include <memory>

#include "base/log.h"
#include "cli/command.h"

namespace quire::cli {
namespace {

struct NamedLevel {
  std::string_view name;
  LogLevel level;
};
constexpr NamedLevel kLevels[] = {{"debug", LogLevel::kDebug},
                                  {"info", LogLevel::kInfo},
                                  {"warning", LogLevel::kWarning},
                                  {"error", LogLevel::kError},
                                  {"off", LogLevel::kOff}};

Status set_log_level_by_name(std::string_view name) {
  for (const NamedLevel& named : kLevels) {
    if (name == named.name) return set_log_level(named.level), Status();
  }
  return unexpected(name, "one of debug, info, warning, error, off");
}

Status set_log_format_by_name(std::string_view name) {
  if (name != "text" && name != "json") return unexpected(name, "text or json");
  set_log_format(name == "json" ? LogFormat::kJson : LogFormat::kText);
  return {};
}

void add_log_flags(Command& command) {
  for (Command& subcommand : command.subcommands) add_log_flags(subcommand);
  if (!command.run) return;
  std::vector<std::string> names;
  for (const NamedLevel& named : kLevels) names.emplace_back(named.name);
  const auto given = std::make_shared<bool>(false);
  command.flags.begin_group("Logging");
  command.flags.add({.name = "--log-format",
                     .value_name = "text|json",
                     .help = "How lines on standard error are written",
                     .default_text = "text",
                     .choices = {"text", "json"},
                     .set = set_log_format_by_name});
  command.flags.add({.name = "--log-level",
                     .value_name = "LEVEL",
                     .help = "Least important lines to log on standard error",
                     .default_text = command.log_level,
                     .choices = std::move(names),
                     .set = [given](std::string_view name) {
                       *given = true;
                       return set_log_level_by_name(name);
                     }});
  command.run = [given, level = command.log_level, run = std::move(command.run)]() -> Result<int> {
    if (!*given) QUIRE_RETURN_IF_ERROR(set_log_level_by_name(level));
    return run();
  };
}

}  // namespace

Command root_command() {
  Command root;
  root.name = "quire";
  root.summary = "Quire serves large language models from one native binary.";
  root.example =
      "  quire generate                 the embedded model solves a word problem\n"
      "  quire chat --model DIR         talk with a Hugging Face checkpoint\n"
      "  quire help bench latency       what a command does, and its flags";
  root.subcommands = {generate_command(), chat_command(),       serve_command(),
                      tokenize_command(), detokenize_command(), template_command(),
                      bench_command(),    eval_command(),       tune_command(),
                      doctor_command(),   completion_command()};
  add_log_flags(root);
  return root;
}

}  // namespace quire::cli

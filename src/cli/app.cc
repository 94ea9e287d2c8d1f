// The root command, and the execution of a command line.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>

#include "base/build_info.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "quire/log_level.h"

namespace quire::cli {
namespace {

void apply(const LogOptions& options) {
  const bool is_json = options.format == "json";
  set_log_format(is_json ? LogFormat::kJson : LogFormat::kText);
  log_messages(is_json);
  (void)set_log_level(options.level);  // the flag accepts only valid levels
}

void add_log_flags(Command& command) {
  for (Command& subcommand : command.subcommands) add_log_flags(subcommand);
  if (!command.run) return;
  command.flags.begin_group("Logging");
  command.flags.choice("--log-format", {"text", "json"}, &command.log->format,
                       "Format of the lines on standard error");
  command.flags.choice("--log-level", {"debug", "info", "warning", "error", "off"},
                       &command.log->level, "Least important lines to log on standard error",
                       {{"warn", "warning"}});
}

// Writes an error to standard error, as a line of the log if the log is in JSON.
void report_error(const std::string& message) {
  if (logs_messages()) return log_line(LogLevel::kError, message);
  print_stderr("{}\n", message);
}

// Writes one line per mistake. The last line names the command's --help.
int usage_error(const CommandLine& line) {
  apply(*line.command->log);
  const std::vector<std::string>& messages = line.complaints.messages();
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool is_last = i + 1 == messages.size();
    report_error(
        fmt::format("{}: {}{}", line.path, one_line(line.command->flags.name_flags(messages[i])),
                    !is_last                     ? ""
                    : messages[i].ends_with('?') ? fmt::format(" See {} --help", line.path)
                                                 : fmt::format("; see {} --help", line.path)));
  }
  return kExitUsage;
}

// Returns exceptions as errors. Libraries may throw, for example without memory or threads.
Result<int> run_catching(const Command& command) {
  try {
    return command.run();
  } catch (const std::exception& error) {
    return resource_exhausted(fmt::format("[cli] unexpected failure; {}", text_of(error)));
  }
}

int run_command(const CommandLine& line) {
  const Command& command = *line.command;
  apply(*command.log);
  for (const std::string& warning : line.warnings) log_warning("[cli] {}", warning);
  const Result<int> code = run_catching(command);
  if (code.ok()) return *code;
  report_error(fmt::format("{}: {}", line.path,
                           one_line(command.flags.name_flags(code.status().message()))));
  return code.status().code() == StatusCode::kCancelled ? CancelScope::exit_code() : kExitFailure;
}

int run_line(const CommandLine& line) {
  const Command& command = *line.command;
  if (!line.complaints.empty()) return usage_error(line);
  switch (line.action) {
    case CommandLine::Action::kHelp:
      append_stdout(help_text(command, line.path));
      return kExitOk;
    case CommandLine::Action::kVersion:
      print_stdout("quire {}\n", version());
      return kExitOk;
    case CommandLine::Action::kRun:
      break;
  }
  if (command.run) return run_command(line);
  write_stderr(help_text(command, line.path));  // `quire` alone
  return kExitUsage;
}

// Reports output that could not be written. A closed pipe (EPIPE) is silent, because the reader
// closed it on purpose.
int finish(int exit_code) {
  const int error = finish_stdout();
  if (error == 0) return exit_code;
  if (error != EPIPE) {
    report_error(
        fmt::format("quire: [output] cannot write standard output; {}", std::strerror(error)));
  }
  return exit_code == kExitOk ? kExitFailure : exit_code;
}

}  // namespace

Command root_command() {
  Command root;
  root.name = "quire";
  root.summary = "Quire serves large language models from one native binary.";
  root.example =
      "  quire generate                 the embedded model solves a word problem\n"
      "  quire pull smollm2             download a small model\n"
      "  quire chat smollm2             talk with it\n"
      "  quire help bench latency       what a command does, and its flags";
  root.subcommands = {
      generate_command(), chat_command(),       serve_command(),    batch_command(),
      tokenize_command(), detokenize_command(), template_command(), bench_command(),
      eval_command(),     tune_command(),       pull_command(),     list_command(),
      rm_command(),       quantize_command(),   doctor_command(),   completion_command()};
  add_log_flags(root);
  return root;
}

int run_program(const Command& root, int argc, const char* const* argv) {
  spells_settings_as_flags = true;
  const std::span<const char* const> words(argv, static_cast<size_t>(argc));
  return finish(run_line(read_command_line(root, words.subspan(words.empty() ? 0 : 1))));
}

}  // namespace quire::cli

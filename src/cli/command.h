// The commands of the program: their names, flags and arguments, and functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "quire/status.h"

namespace quire::cli {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;  // at run time, or a flag does not fit the files or the machine
constexpr int kExitUsage = 2;    // the command line itself is wrong

struct Command {
  std::string name;
  std::string summary;  // one line
  std::string example;  // shown by --help
  std::string details;  // printed above the example; complete lines, or empty
  std::vector<Command> subcommands;

  FlagSet flags;
  // The name of a positional argument, such as "SHELL". With choices it is required and must be one
  // of them. Without choices it is optional: a directory, unless its kind says otherwise. Empty:
  // the command has no argument.
  std::string positional_name;
  ValueKind positional_kind = ValueKind::kDirectory;
  std::vector<std::string> positional_choices;
  std::string positional_help;
  std::string* positional = nullptr;

  // Checks combinations of flags; a failure is a usage error. May be empty.
  std::function<Status()> check;
  // Returns the exit code or an error. Empty if a subcommand is required.
  std::function<Result<int>()> run;
  // The default of --log-level.
  std::string log_level = "info";
};

Command generate_command();
Command chat_command();
Command serve_command();
Command tokenize_command();
Command detokenize_command();
Command template_command();
Command bench_command();
Command bench_throughput_command();
Command bench_latency_command();
Command bench_serve_command();
Command bench_attention_command();
Command eval_command();
Command pull_command();
Command doctor_command();
Command tune_command();
Command completion_command();

// The root command, with all others below it.
Command root_command();

// Scripts that complete all commands, flags and choices of `root`.
std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

// Parses the command line, runs the command and returns the exit code.
int run_app(int argc, const char* const* argv);

std::string_view version();     // "0.1.0"
std::string_view compiler();    // "GCC 12.2.0"
std::string_view build_type();  // "Release"

}  // namespace quire::cli

// A command of the program: what it is called, takes and does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "quire/status.h"

namespace quire::cli {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;  // at run time, or a flag does not fit the files or the machine
constexpr int kExitUsage = 2;    // the command line is wrong by itself

struct Command {
  std::string name;
  std::string summary;  // one line
  std::string example;  // shown by --help
  std::string details;  // shown above it: whole lines, or nothing
  std::vector<Command> subcommands;

  FlagSet flags;
  // The name of a positional argument ("SHELL") with its choices, of which one must be given;
  // without choices it is a directory, and may be left out. Empty: the command takes none.
  std::string positional_name;
  std::vector<std::string> positional_choices;
  std::string positional_help;
  std::string* positional = nullptr;

  // What no single flag can know: combinations. A failure is wrong usage. May be empty.
  std::function<Status()> check;
  // The exit code, or why it could not be done. Empty where a subcommand is needed.
  std::function<Result<int>()> run;
  // Of --log-level, unless it is given.
  std::string log_level = "info";
};

// One a file.
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
Command doctor_command();
Command tune_command();
Command completion_command();

// The whole program.
Command root_command();

}  // namespace quire::cli

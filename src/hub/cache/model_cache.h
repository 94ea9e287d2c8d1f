// Finds models by name: in the model folder (model_folder.h), and in the cache that huggingface_hub
// and `quire pull` share. Reads the file system only. A model's folder in the cache:
//   models--ORG--NAME/blobs/HASH            the content of a file
//                     refs/REVISION         the commit of a branch or tag
//                     snapshots/COMMIT/FILE a link to a blob
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::hub {

inline constexpr std::string_view kMainRevision = "main";

// Names the model in the binary, even if a file or folder has this name.
inline constexpr std::string_view kEmbeddedModel = "embedded";

// Returns an environment variable; empty if it is not set.
std::string variable(const char* name);
// Replaces a leading ~, which shells do not expand behind "=" in some settings.
std::filesystem::path expanded(const std::string& path);

// A model on the hub: "ORG/NAME" or "NAME", and a branch, tag or commit of it.
struct ModelName {
  std::string repository;
  std::string revision = std::string(kMainRevision);

  std::string text() const;  // "ORG/NAME", or "ORG/NAME@REVISION" if it is not main
};

// Parses NAME[@REVISION]. Returns nullopt if the hub does not allow such a name; the text can then
// only be a path.
std::optional<ModelName> parse_model_name(std::string_view text);

// Returns whether the text has 40 hexadecimal digits.
bool is_commit(std::string_view revision);

// HF_HOME, or `huggingface` in XDG_CACHE_HOME or ~/.cache. Fails if none of the variables is set.
Result<std::filesystem::path> hub_home();
// The folder of the models' folders: HF_HUB_CACHE, or `hub` in hub_home().
Result<std::filesystem::path> cache_directory();

// The model's folder in the cache.
std::filesystem::path model_folder(const std::filesystem::path& cache, const ModelName& name);

// The part of a model that a caller is about to read.
enum class Needs { kTokenizer, kConfig, kWeights };

struct FoundModel {
  std::filesystem::path directory;  // or a file
  std::string name;                 // "ORG/NAME" or "NAME"; empty if the user gave a path
};

// Returns the path itself if a file or folder of this name exists. Otherwise returns the GGUF file
// of a model in the model folder, or the snapshot in the cache, if it has all files of `needs`. The
// error distinguishes a path that does not exist, a model that is not in the cache, and a model
// that is only partly in the cache. It names the command that downloads the model.
Result<FoundModel> find_model(const std::string& model, Needs needs);

// Like find_model(), but only for a name, in this cache.
Result<std::filesystem::path> find_in_cache(const ModelName& name,
                                            const std::filesystem::path& cache, Needs needs);

// A model's folder in the cache.
struct CachedModel {
  std::string repository;
  std::filesystem::path directory;
};
std::vector<CachedModel> list_cached_models(const std::filesystem::path& cache);

}  // namespace quire::hub

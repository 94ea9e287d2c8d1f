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
#include <utility>
#include <vector>

#include "quire/status.h"

namespace quire::hub {

inline constexpr std::string_view kMainRevision = "main";

// Names the model in the binary, even if a file or folder has this name.
inline constexpr std::string_view kEmbeddedModel = "embedded";

// Returns an environment variable; empty if it is not set.
std::string variable(const char* name);
// Replaces a leading ~, which shells do not expand after "=" in some settings.
std::filesystem::path expanded(const std::string& path);

// A model on the hub: "ORG/NAME" or "NAME", a branch, tag or commit of it, and the tag of one of
// its GGUF models (see choose_gguf()).
struct ModelName {
  std::string repository;
  std::string revision = std::string(kMainRevision);
  std::string gguf_tag = {};  // such as "Q4_K_M"; empty: safetensors, or the default GGUF model

  // "ORG/NAME", and "@REVISION" if it is not main, and ":TAG" if there is one.
  std::string text() const;
};

// Parses NAME[@REVISION], or ORG/NAME[@REVISION][:TAG]; "[https://]hf.co/" or
// "[https://]huggingface.co/" may precede ORG/NAME. As in Ollama, the tag "latest" means no tag.
// Returns nullopt if the hub does not allow such a name; the text can then only be a path.
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
  std::filesystem::path directory;  // or a GGUF file, the first of its shards
  std::string name;  // "NAME", "ORG/NAME" or "ORG/NAME:TAG"; empty if the user gave a path
};

// Finds the files of a model on this machine; no other function does. Returns the path itself if a
// file or folder of this name exists. Otherwise returns the GGUF file of a model in the model
// folder, the snapshot in the cache if it has all files of `needs`, or a GGUF file in the snapshot
// with all its shards. The error distinguishes a path that does not exist, a model that is not in
// the cache, and a model that is only partly in the cache. It names the command that downloads the
// model. Downloads nothing.
Result<FoundModel> find_model(const std::string& model, Needs needs);

// Like find_model(), but only for a name, in this cache.
Result<std::filesystem::path> find_in_cache(const ModelName& name,
                                            const std::filesystem::path& cache, Needs needs);

// The repositories in the cache and their folders, in the order of the folders' names.
std::vector<std::pair<std::string, std::filesystem::path>> list_repositories(
    const std::filesystem::path& cache);

// The snapshot of a revision. Fails if the cache does not have it.
Result<std::filesystem::path> find_snapshot(const ModelName& name,
                                            const std::filesystem::path& cache, Needs needs);

// The GGUF files of a snapshot, as paths in the repository. Links without a blob are left out.
std::vector<std::string> gguf_files_of(const std::filesystem::path& snapshot);

}  // namespace quire::hub

// The models in the hub's cache, for `quire list` and `quire rm`. Other programs share the cache. A
// blob to which another file of a snapshot links is not removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/cache/model_cache.h"
#include "hub/pull/hub_client.h"
#include "quire/status.h"

namespace quire::hub {

struct CachedModel {
  std::string repository;
  std::string name;                 // "ORG/NAME", or "ORG/NAME:TAG" for a GGUF model
  std::filesystem::path directory;  // the repository's folder
  bool is_complete = false;
  int64_t num_bytes = 0;
  int64_t last_use_s = 0;  // see last_use_of()
};

// The models of each repository in the order of their names: one per complete GGUF model of the
// revision main, and one for all other files if there are safetensors, no GGUF model, or files of a
// download that did not finish.
std::vector<CachedModel> list_cached_models(const std::filesystem::path& cache);

// The time of the last read access as the file system records it (often once per day), in seconds
// since 1970; 0: the file does not exist.
int64_t last_use_of(const std::filesystem::path& file);

// Removes a repository with all its revisions, or the GGUF model of the name's tag from all its
// snapshots. Returns the bytes that were freed. Follows no links.
Result<int64_t> remove_cached_model(const std::filesystem::path& cache, const ModelName& name,
                                    const PullState& state);

}  // namespace quire::hub

#include "hub/pull/cached_models.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/text.h"
#include "hub/cache/gguf_sets.h"
#include "hub/cache/model_folder.h"
#include "hub/pull/local_files.h"
#include "tensor/checkpoint.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartialEnd = ".incomplete";

// Returns the entries of a folder and, with `deep`, of the folders below it. Follows no links.
std::vector<fs::directory_entry> entries_of(const fs::path& folder, bool deep) {
  std::vector<fs::directory_entry> found;
  std::error_code error;
  if (fs::is_symlink(folder, error)) return found;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    found.push_back(*it);
    if (!deep) it.disable_recursion_pending();
  }
  return found;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return !entry.is_symlink(error) && entry.is_directory(error);
}

std::vector<fs::path> snapshots_of(const fs::path& folder) {
  std::vector<fs::path> snapshots;
  for (const fs::directory_entry& entry : entries_of(folder / "snapshots", false)) {
    if (is_folder(entry)) snapshots.push_back(entry.path());
  }
  return snapshots;
}

// The files and links of a snapshot.
std::vector<fs::path> files_of(const fs::path& snapshot) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : entries_of(snapshot, true)) {
    if (!is_folder(entry)) files.push_back(entry.path());
  }
  return files;
}

int64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

bool has_partial_blob(const fs::path& folder) {
  return std::ranges::any_of(entries_of(folder / "blobs", false), [](const auto& entry) {
    return entry.path().extension() == kPartialEnd;
  });
}

CachedModel describe_gguf(const CachedModel& repository, const GgufSet& set,
                          const fs::path& snapshot) {
  CachedModel model = repository;
  model.name = ModelName{.repository = repository.repository, .gguf_tag = set.tag}.text();
  model.is_complete = true;
  for (const std::string& file : set.files) {
    model.num_bytes += size_of(snapshot / file);
    model.last_use_s = std::max(model.last_use_s, last_use_of(snapshot / file));
  }
  return model;
}

void list_repository(const fs::path& cache, const std::string& repository, const fs::path& folder,
                     std::vector<CachedModel>& models) {
  CachedModel rest = {.repository = repository, .name = repository, .directory = folder};
  const ModelName name = {.repository = repository};
  const Result<fs::path> found = find_in_cache(name, cache, Needs::kWeights);
  const Result<fs::path> snapshot = find_snapshot(name, cache, Needs::kWeights);
  rest.is_complete = found.ok() && *found == *snapshot;
  rest.num_bytes = tree_bytes(folder);
  bool has_gguf = false;
  if (snapshot.ok()) {
    for (const GgufSet& set : group_gguf_files(gguf_files_of(*snapshot))) {
      if (!set.is_complete()) continue;
      has_gguf = true;
      models.push_back(describe_gguf({.repository = repository, .name = {}, .directory = folder},
                                     set, *snapshot));
      rest.num_bytes = std::max<int64_t>(rest.num_bytes - models.back().num_bytes, 0);
    }
    for (const fs::path& file : files_of(*snapshot)) {
      const bool is_other = file.extension() != ".gguf" && file.filename() != kWeightsIndexFile;
      if (is_other) rest.last_use_s = std::max(rest.last_use_s, last_use_of(file));
    }
  }
  if (rest.is_complete || !has_gguf || has_partial_blob(folder)) models.push_back(std::move(rest));
}

// Returns the name of the blob to which a file of a snapshot links; empty for any other file.
std::string blob_of(const fs::path& file, const fs::path& blobs) {
  std::error_code error;
  const fs::path target = fs::read_symlink(file, error);
  if (error) return "";
  const fs::path blob = (file.parent_path() / target).lexically_normal();
  return blob.parent_path() == blobs.lexically_normal() ? blob.filename().string() : "";
}

std::set<std::string> linked_blobs(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::path& snapshot : snapshots_of(folder)) {
    for (const fs::path& file : files_of(snapshot)) names.insert(blob_of(file, folder / "blobs"));
  }
  return names;
}

// Removes the repository's folder and its locks.
Result<int64_t> remove_repository(const fs::path& folder) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_bytes, remove_tree(folder));
  const fs::path locks = folder.parent_path() / ".locks" / folder.filename();
  QUIRE_RETURN_IF_ERROR(remove_tree(locks).status());
  return num_bytes;
}

// Removes a blob under its lock, so that no download continues a removed file.
Result<int64_t> remove_blob(const fs::path& folder, const std::string& name,
                            const PullState& state) {
  const fs::path locks = folder.parent_path() / ".locks" / folder.filename();
  QUIRE_RETURN_IF_ERROR(make_folder(locks, kCacheVariable));
  const fs::path lock_path = locks / (name + ".lock");
  QUIRE_ASSIGN_OR_RETURN(const Descriptor lock,
                         lock_file(lock_path, kCacheVariable, state, "the file to remove"));
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_bytes, remove_tree(folder / "blobs" / name));
  QUIRE_RETURN_IF_ERROR(remove_tree(lock_path).status());
  return num_bytes;
}

void remove_empty_folders(fs::path folder, const fs::path& end) {
  std::error_code error;
  for (; folder != end && fs::is_empty(folder, error) && !error; folder = folder.parent_path()) {
    if (!fs::remove(folder, error)) return;
  }
}

// Returns the files of the tag in a snapshot, including links without a blob.
std::vector<fs::path> files_of_tag(const fs::path& snapshot, std::string_view tag,
                                   std::vector<GgufSet>& others) {
  std::vector<std::string> names;
  for (const fs::path& file : files_of(snapshot)) {
    names.push_back(file.lexically_relative(snapshot).generic_string());
  }
  std::vector<fs::path> files;
  for (GgufSet& set : group_gguf_files(std::move(names))) {
    if (!set.has_name(tag)) {
      others.push_back(std::move(set));
      continue;
    }
    for (const std::string& file : set.files) files.push_back(snapshot / file);
  }
  return files;
}

// Fails if a folder is a link, because files outside the cache would be removed.
Status check_has_no_links(const fs::path& folder, const ModelName& name) {
  for (const fs::path& path : {folder, folder / "blobs", folder / "snapshots"}) {
    std::error_code error;
    if (!fs::is_symlink(path, error)) continue;
    return invalid_argument(fmt::format(
        "[hub] {} is a link, so nothing was removed; expected a folder; `quire rm {}` removes the "
        "link, and not its target",
        path.string(), name.repository));
  }
  return {};
}

Result<int64_t> remove_gguf(const fs::path& folder, const ModelName& name, const PullState& state) {
  QUIRE_RETURN_IF_ERROR(check_has_no_links(folder, name));
  std::vector<fs::path> files;
  std::vector<GgufSet> others;
  for (const fs::path& snapshot : snapshots_of(folder)) {
    for (fs::path& file : files_of_tag(snapshot, name.gguf_tag, others)) {
      files.push_back(std::move(file));
    }
  }
  if (files.empty()) {
    return not_found(fmt::format(
        "[hub] the hub's cache has no {}; expected {}", name.text(),
        others.empty() ? "a model that quire list shows" : "one of " + list_of_tags(others)));
  }
  int64_t num_bytes = 0;
  std::set<std::string> blobs;
  for (const fs::path& file : files) {
    blobs.insert(blob_of(file, folder / "blobs"));
    QUIRE_ASSIGN_OR_RETURN(const int64_t num, remove_tree(file));  // a link has no bytes
    num_bytes += num;
    remove_empty_folders(file.parent_path(), folder / "snapshots");
  }
  const std::set<std::string> linked = linked_blobs(folder);
  for (const std::string& blob : blobs) {
    if (blob.empty() || linked.contains(blob)) continue;
    QUIRE_ASSIGN_OR_RETURN(const int64_t num, remove_blob(folder, blob, state));
    num_bytes += num;
  }
  if (!linked.empty() || has_partial_blob(folder)) return num_bytes;
  QUIRE_ASSIGN_OR_RETURN(const int64_t rest, remove_repository(folder));
  return num_bytes + rest;
}

}  // namespace

int64_t last_use_of(const fs::path& file) {
  struct stat info = {};
  return ::stat(file.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_atim.tv_sec) : 0;
}

std::vector<CachedModel> list_cached_models(const fs::path& cache) {
  std::vector<CachedModel> models;
  for (const auto& [repository, folder] : list_repositories(cache)) {
    list_repository(cache, repository, folder, models);
  }
  return models;
}

Result<int64_t> remove_cached_model(const fs::path& cache, const ModelName& name,
                                    const PullState& state) {
  const fs::path folder = model_folder(cache, name);
  return name.gguf_tag.empty() ? remove_repository(folder) : remove_gguf(folder, name, state);
}

}  // namespace quire::hub

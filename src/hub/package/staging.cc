#include "hub/package/staging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <system_error>

#include "base/text.h"
#include "hub/cache/model_folder.h"
#include "hub/pull/repository_list.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLockEnd = ".lock";

fs::path incomplete_folder(const fs::path& models) {
  return models / ".incomplete";
}

fs::path lock_path(const fs::path& models, const std::string& name) {
  return incomplete_folder(models) / (name + std::string(kLockEnd));
}

// Returns whether the path exists, even as a link without a target.
bool is_taken(const fs::path& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0;
}

// Opens a folder, but not a link to one: only files in the model folder may be deleted below it.
Descriptor open_folder(const fs::path& path) {
  return Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Status make_incomplete_folder(const fs::path& path) {
  if (!is_taken(path)) QUIRE_RETURN_IF_ERROR(make_folder(path, kModelsVariable));
  if (open_folder(path).get() >= 0) return {};
  const int error = errno;
  if (error != ENOTDIR && error != ELOOP) return write_error(path, kModelsVariable, error);
  return invalid_argument(fmt::format(
      "[hub] {} is a link or a file; expected a folder, in which models are prepared; remove it",
      path.string()));
}

// Copies a file, a link or a folder. Uses hard links if the file system supports them.
std::error_code copy_tree(const fs::path& from, const fs::path& to) {
  constexpr auto kOptions = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
  std::error_code error;
  fs::copy(from, to, kOptions | fs::copy_options::create_hard_links, error);
  if (!error) return error;
  std::error_code ignored;
  fs::remove_all(to, ignored);
  error.clear();
  fs::copy(from, to, kOptions, error);
  return error;
}

}  // namespace

Staging::Staging(const fs::path& models, const std::string& name, Descriptor lock)
    : installed_(models / name), path_(incomplete_folder(models) / name), lock_(std::move(lock)) {}

Staging::~Staging() {
  if (lock_.get() < 0) return;
  (void)clean();
  ::unlink((path_.string() + std::string(kLockEnd)).c_str());
}

Result<Staging> Staging::create(const fs::path& models, const std::string& name,
                                const PullState& state) {
  QUIRE_RETURN_IF_ERROR(make_incomplete_folder(incomplete_folder(models)));
  QUIRE_ASSIGN_OR_RETURN(Descriptor lock,
                         lock_file(lock_path(models, name), kModelsVariable, state, name));
  Staging staging(models, name, std::move(lock));
  QUIRE_RETURN_IF_ERROR(staging.clean());
  return staging;
}

std::optional<Staging> Staging::try_create(const fs::path& models, const std::string& name) {
  std::optional<Descriptor> lock = try_lock_file(lock_path(models, name));
  if (!lock) return std::nullopt;
  Staging staging(models, name, std::move(*lock));
  if (!staging.clean().ok()) return std::nullopt;
  return staging;
}

Status Staging::make_folders() const {
  for (const fs::path& path : {wheels(), temporary(), model()}) {
    QUIRE_RETURN_IF_ERROR(make_folder(path, kModelsVariable));
  }
  return {};
}

// Undoes the first half of an update that was killed between its two renames. A folder that `quire
// rm` moved here has no folder `wheels`, so a folder `old` in it is not mistaken for the replaced
// model.
Status Staging::restore_old() const {
  if (is_taken(installed_) || !is_taken(wheels()) || !is_taken(old())) return {};
  if (::rename(old().c_str(), installed_.c_str()) == 0) return {};
  return write_error(installed_, kModelsVariable, errno);
}

Status Staging::clean() {
  QUIRE_RETURN_IF_ERROR(restore_old());
  QUIRE_ASSIGN_OR_RETURN(num_left_bytes_, remove_tree(path_));
  return {};
}

Result<std::vector<std::string>> Staging::keep_other_files() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(installed_, error), end; !error && it != end;
       it.increment(error)) {
    const fs::path name = it->path().filename();
    if (is_taken(model() / name)) continue;
    if (const std::error_code failed = copy_tree(it->path(), model() / name)) {
      return unavailable(
          fmt::format("[hub] {} cannot be kept: {}; nothing was changed; move it away",
                      it->path().string(), failed.message()));
    }
    names.push_back(one_line(name.string()));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return unavailable(
        fmt::format("[hub] cannot read {}: {}", installed_.string(), error.message()));
  }
  return names;
}

Status Staging::install() const {
  // Exchanges the two folders in one step, so that a kill at any time leaves one of the two models
  // in its place.
  const bool is_exchanged =
      ::renameat2(AT_FDCWD, model().c_str(), AT_FDCWD, installed_.c_str(), RENAME_EXCHANGE) == 0;
  if (is_exchanged) return {};
  // There is no model yet, or the file system cannot exchange two names (EINVAL).
  const bool had_old = ::rename(installed_.c_str(), old().c_str()) == 0;
  if (::rename(model().c_str(), installed_.c_str()) == 0) return {};
  const int error = errno;
  if (had_old) (void)restore_old();
  return write_error(installed_, kModelsVariable, error);
}

Result<int64_t> Staging::remove_installed() const {
  if (!is_taken(installed_)) return int64_t{0};
  if (::rename(installed_.c_str(), path_.c_str()) != 0) {
    return unavailable(fmt::format(
        "[hub] cannot remove {}: {}; nothing was removed; make it and the model folder writable, "
        "and run the same command again",
        installed_.string(), std::strerror(errno)));
  }
  return remove_tree(path_);
}

void clean_incomplete(const fs::path& models,
                      const std::function<void(const std::string& line)>& note) {
  const fs::path folder = incomplete_folder(models);
  if (open_folder(folder).get() < 0) return;
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(kLockEnd)) name.resize(name.size() - kLockEnd.size());
    if (can_name_local_model(name)) names.insert(std::move(name));
  }
  for (const std::string& name : names) {
    const std::optional<Staging> staging = Staging::try_create(models, name);
    if (!staging || staging->num_left_bytes() == 0) continue;
    note(fmt::format("removed what an interrupted command left of {}: {}", name,
                     bytes_text(staging->num_left_bytes())));
  }
}

fs::path find_incomplete(const fs::path& models, std::string_view name) {
  const fs::path path = incomplete_folder(models) / name;
  return can_name_local_model(name) && open_folder(path).get() >= 0 ? path : fs::path();
}

Result<int64_t> remove_model(const fs::path& models, const std::string& name,
                             const PullState& state) {
  QUIRE_ASSIGN_OR_RETURN(const Staging staging, Staging::create(models, name, state));
  QUIRE_ASSIGN_OR_RETURN(const int64_t num_bytes, staging.remove_installed());
  return num_bytes + staging.num_left_bytes();
}

}  // namespace quire::hub

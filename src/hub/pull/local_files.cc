#include "hub/pull/local_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "hub/pull/repository_list.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0666;  // reduced by the umask

// Returns whether the path still names the open file: another program may have deleted it.
bool is_at(const Descriptor& file, const fs::path& path) {
  struct stat opened = {};
  struct stat named = {};
  return ::fstat(file.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Descriptor> open_for_update(const fs::path& path, std::string_view variable) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (file.get() < 0) return write_error(path, variable, errno);
  return file;
}

Status write_bytes(const Descriptor& file, std::string_view bytes, const fs::path& path,
                   std::string_view variable) {
  while (!bytes.empty()) {
    const ssize_t num = ::write(file.get(), bytes.data(), bytes.size());
    if (num < 0 && errno == EINTR) continue;
    if (num < 0) return write_error(path, variable, errno);
    bytes.remove_prefix(static_cast<size_t>(num));
  }
  return {};
}

Result<Descriptor> lock_file(const fs::path& path, std::string_view variable,
                             const PullState& state, std::string_view what) {
  constexpr std::chrono::milliseconds kPause{100};
  for (bool is_first = true;; is_first = false) {
    QUIRE_ASSIGN_OR_RETURN(Descriptor lock, open_for_update(path, variable));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_at(lock, path)) return lock;
      continue;
    }
    const int error = errno;
    if (error != EWOULDBLOCK && error != EINTR) {
      return unavailable(
          fmt::format("[hub] {} cannot be locked: {}; expected a file system with locks ({} names "
                      "another folder)",
                      path.string(), std::strerror(error), variable));
    }
    if (is_first) state.note(fmt::format("waiting for another download of {}", what));
    wait_interruptibly(kPause, state.interrupted);
    if (state.interrupted()) return cancelled("[hub] interrupted");
  }
}

std::optional<Descriptor> try_lock_file(const fs::path& path) {
  Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  const bool is_locked =
      lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 && is_at(lock, path);
  return is_locked ? std::optional(std::move(lock)) : std::nullopt;
}

Status make_folder(const fs::path& path, std::string_view variable) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? write_error(path, variable, error.value()) : Status();
}

Status check_disk(int64_t needed, const fs::path& folder, std::string_view variable) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || needed < 0 || static_cast<uintmax_t>(needed) <= space.available) return {};
  return unavailable(fmt::format(
      "[hub] the disk of {} has {} free, and the download needs {}; free some space, or set {} to "
      "a folder on another disk",
      folder.string(), bytes_text(static_cast<int64_t>(space.available)), bytes_text(needed),
      variable));
}

Status write_error(const fs::path& path, std::string_view variable, int error_number) {
  if (error_number == ENOSPC || error_number == EDQUOT) {
    return unavailable(fmt::format(
        "[hub] the disk is full: cannot write {}; free some space and run the same command again, "
        "or set {} to a folder on another disk",
        path.string(), variable));
  }
  return unavailable(fmt::format("[hub] cannot write {}: {} ({} names another folder)",
                                 path.string(), std::strerror(error_number), variable));
}

}  // namespace quire::hub

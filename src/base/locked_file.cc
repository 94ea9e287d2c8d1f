#include "base/locked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace quire {
namespace {

namespace fs = std::filesystem;

Status failed_to(std::string_view action, const fs::path& path, std::string_view area) {
  const int code = errno;
  return {StatusCode::kInternal,
          fmt::format("[{}] cannot {} {}; {}; expected a file that may be written, or a folder in "
                      "which files can be created and locked: choose another output",
                      area, action, path.string(), std::strerror(code))};
}

// Fails unless the path is a file, or a directory if one is wanted. Also fails for links, because
// writing the file would change a file with another name.
Status check_kind(const struct stat& info, const fs::path& path, bool wants_directory,
                  std::string_view area) {
  const bool is_directory = S_ISDIR(info.st_mode);
  if (is_directory != wants_directory && (is_directory || S_ISREG(info.st_mode))) {
    return invalid_argument(fmt::format(
        "[{}] {} is a {}; expected none, or a {}: choose another output, or remove it if an "
        "interrupted run has left it",
        area, path.string(), is_directory ? "directory" : "file",
        wants_directory ? "directory" : "file"));
  }
  std::string kind;
  if (S_ISLNK(info.st_mode)) {
    kind = "is a symbolic link";
  } else if (S_ISREG(info.st_mode) && info.st_nlink > 1) {
    kind = fmt::format("has {} names (hard links)", info.st_nlink);
  } else if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    kind = "is a FIFO, a socket or a device";
  } else {
    return {};
  }
  return invalid_argument(fmt::format(
      "[{}] {} {}; expected none, or a file or directory of its own, which is written: remove or "
      "rename it, or choose another output",
      area, path.string(), kind));
}

Status lock(int fd, const fs::path& path, std::string_view area) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return failed_to("lock", path, area);
  return unavailable(fmt::format(
      "[{}] {} is being written by another process; expected none: wait for it, or choose another "
      "output",
      area, path.string()));
}

}  // namespace

LockedFile::LockedFile(LockedFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

LockedFile& LockedFile::operator=(LockedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

LockedFile::~LockedFile() {
  if (fd_ >= 0) ::close(fd_);
}

// Between the opening and the lock, the process that had the lock may have given the file another
// name. The file is then its complete output.
Result<LockedFile> LockedFile::open(const fs::path& path, int flags, std::string_view area) {
  const bool wants_directory = (flags & O_DIRECTORY) != 0;
  struct stat found = {};
  if (::lstat(path.c_str(), &found) == 0) {
    QUIRE_RETURN_IF_ERROR(check_kind(found, path, wants_directory, area));
  }
  for (;;) {
    LockedFile file;
    file.fd_ = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file.fd_ < 0) return failed_to("open", path, area);
    QUIRE_RETURN_IF_ERROR(lock(file.fd_, path, area));
    struct stat own = {};
    struct stat named = {};
    if (::fstat(file.fd_, &own) != 0) return failed_to("read", path, area);
    const bool is_named = ::lstat(path.c_str(), &named) == 0;
    if (!is_named || own.st_dev != named.st_dev || own.st_ino != named.st_ino) continue;
    QUIRE_RETURN_IF_ERROR(check_kind(own, path, wants_directory, area));
    return file;
  }
}

}  // namespace quire

#include "cli/socket_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace quire::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::string_view kFolderPrefix = "quire-serve-";
constexpr std::string_view kRandomPart = "XXXXXX";  // mkdtemp() replaces it

// Returns whether a server can have made the folder: its name and mode fit, and it has only sockets
// and the file of keys. Other folders with a similar name must not be removed.
bool is_of_server(const fs::path& path) {
  std::error_code error;
  if (path.filename().string().size() != kFolderPrefix.size() + kRandomPart.size()) return false;
  if (fs::status(path, error).permissions() != fs::perms::owner_all) return false;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_socket(error) && entry->path().filename() != kKeysFile) return false;
  }
  return !error;
}

}  // namespace

SocketFolder::Lock::Lock(const fs::path& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
  struct stat facts = {};
  is_held_ = fd_ >= 0 && ::fstat(fd_, &facts) == 0 && facts.st_uid == ::geteuid() &&
             ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
}

SocketFolder::Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

// Removes the folders of killed servers. Skips young folders, because a server may have created its
// folder without having locked it yet.
void SocketFolder::remove_stale(const fs::path& parent) {
  constexpr auto kLeastAge = 1min;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (!path.filename().string().starts_with(kFolderPrefix)) continue;
    std::error_code ignored;
    const fs::file_time_type time = fs::last_write_time(path, ignored);
    if (ignored || fs::file_time_type::clock::now() - time < kLeastAge) continue;
    const Lock lock(path);
    if (lock.is_held() && is_of_server(path)) fs::remove_all(path, ignored);
  }
}

Result<std::unique_ptr<SocketFolder>> SocketFolder::create() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  const fs::path parent = runtime != nullptr && fs::is_directory(runtime, error)
                              ? fs::path(runtime)
                              : fs::temp_directory_path(error);
  remove_stale(parent);
  std::string path = parent / fmt::format("{}{}", kFolderPrefix, kRandomPart);
  if (::mkdtemp(path.data()) == nullptr) {
    return unavailable(
        fmt::format("[supervisor] cannot create {}: {}; expected a folder that may be written "
                    "(TMPDIR)",
                    path, std::strerror(errno)));
  }
  return std::unique_ptr<SocketFolder>(new SocketFolder(path));
}

SocketFolder::SocketFolder(fs::path path) : path_(std::move(path)), lock_(path_) {}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace quire::cli

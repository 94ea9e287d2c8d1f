#include "base/socket_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace quire {

std::optional<sockaddr_un> unix_address(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  path.copy(address.sun_path, path.size());
  return address;
}

SocketFile socket_file_at(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return SocketFile::kAbsent;
  if (!S_ISSOCK(info.st_mode)) return SocketFile::kOther;
  const std::optional<sockaddr_un> address = unix_address(path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || !address) {
    if (fd >= 0) ::close(fd);
    return SocketFile::kInUse;  // unknown: keep the file
  }
  const int rc = ::connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address));
  const bool is_refused = rc != 0 && errno == ECONNREFUSED;
  ::close(fd);
  return is_refused ? SocketFile::kStale : SocketFile::kInUse;
}

}  // namespace quire

// The file at the path of a Unix socket, before a server binds to it.
#pragma once

#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

namespace quire {

enum class SocketFile {
  kAbsent,  // or unknown: bind() then reports the error
  kStale,   // left by a server that has ended; it may be removed
  kInUse,
  kOther,  // not a socket
};

// nullopt: the path is too long.
std::optional<sockaddr_un> unix_address(std::string_view path);
// unix_address(path) must have a value.
SocketFile socket_file_at(const std::string& path);

}  // namespace quire

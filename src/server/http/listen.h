// Opens the listening sockets of the configuration.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "quire/status.h"
#include "server/http/server.h"

namespace quire::http {

// The number of connections that the kernel completes before accept(). The kernel limits it to
// net.core.somaxconn.
inline constexpr int kBacklog = 4096;

// A bound socket; start_listening() makes it accept clients. The destructor closes it and removes a
// Unix socket's file.
class ListeningSocket {
 public:
  ListeningSocket(int fd, int family) : fd_(fd), family_(family) {}
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_; }
  int family() const { return family_; }
  int port() const;  // 0 for a Unix socket
  // Returns whether only this machine can reach the socket: a loopback address or a Unix socket.
  bool is_local() const;
  int release();  // gives the descriptor to the caller; the file stays with this object
  void own_file(std::string path);
  // Returns whether the file of own_file() was removed or replaced.
  bool has_lost_file() const;

 private:
  sockaddr_storage address() const;

  int fd_;
  int family_;
  std::string path_;
  dev_t device_ = 0;  // device and inode identify the socket's file, which can be replaced
  ino_t inode_ = 0;
};

bool are_local(const std::vector<ListeningSocket>& sockets);

// Returns one socket per address of the host name. The sockets reserve the port: until
// start_listening(), other servers cannot bind to it, and clients are refused. The path of a Unix
// socket is not reserved, because another server cannot distinguish its file from the file of a
// crashed server.
Result<std::vector<ListeningSocket>> bind_to(const ServerConfig& config);
Status start_listening(const ServerConfig& config, const std::vector<ListeningSocket>& sockets);
// Calls bind_to() and start_listening().
Result<std::vector<ListeningSocket>> listen_on(const ServerConfig& config);

}  // namespace quire::http

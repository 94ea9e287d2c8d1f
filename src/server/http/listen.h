// Sockets that listen where the configuration says.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "quire/status.h"
#include "server/http/server.h"

namespace quire::http {

// Closed, and a Unix socket's file removed, when it goes.
class ListeningSocket {
 public:
  ListeningSocket(int fd, int family) : fd_(fd), family_(family) {}
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_; }
  int family() const { return family_; }
  int port() const;  // 0 for a Unix socket
  // Whether this machine alone can reach it: a loopback address, a Unix socket.
  bool is_local() const;
  int release();  // the descriptor is the caller's from now on; the file stays ours
  void own_file(std::string path);

 private:
  sockaddr_storage address() const;

  int fd_;
  int family_;
  std::string path_;
  dev_t device_ = 0;  // which file was ours: another server may have replaced it since
  ino_t inode_ = 0;
};

bool are_local(const std::vector<ListeningSocket>& sockets);

// One for each address that the host's name has.
Result<std::vector<ListeningSocket>> listen_on(const ServerConfig& config);

}  // namespace quire::http

// A TCP port of the loopback interface that was free a moment ago.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace quire::testing {

inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = static_cast<sockaddr*>(static_cast<void*>(&address));
  EXPECT_EQ(::bind(fd, any, size), 0);
  EXPECT_EQ(::getsockname(fd, any, &size), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace quire::testing

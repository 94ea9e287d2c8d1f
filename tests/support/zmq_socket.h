// A client of the KV events' sockets.
#pragma once

#include <gtest/gtest.h>
#include <zmq.h>

#include <cstdint>
#include <string>
#include <vector>

namespace quire::testing {

class ZmqSocket {
 public:
  ZmqSocket(int type, const std::string& endpoint) : context_(zmq_ctx_new()) {
    socket_ = zmq_socket(context_, type);
    set(ZMQ_LINGER, 0);
    set(ZMQ_RCVTIMEO, 5000);
    if (type == ZMQ_SUB) zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0);
    EXPECT_EQ(zmq_connect(socket_, endpoint.c_str()), 0) << endpoint;
  }
  ~ZmqSocket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  void set(int option, int value) { zmq_setsockopt(socket_, option, &value, sizeof value); }
  void send(const std::vector<std::string>& frames) { EXPECT_TRUE(try_send(frames)); }
  // Returns false if the message does not fit in the socket's queue within ZMQ_SNDTIMEO.
  bool try_send(const std::vector<std::string>& frames) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      if (zmq_send(socket_, frames[i].data(), frames[i].size(), more) < 0) return false;
    }
    return true;
  }
  // Empty after 5 s without a message.
  std::vector<std::string> receive() {
    std::vector<std::string> frames;
    int more = 1;
    while (more != 0) {
      zmq_msg_t message;
      zmq_msg_init(&message);
      if (zmq_msg_recv(&message, socket_, 0) < 0) return {};
      frames.emplace_back(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
      more = zmq_msg_more(&message);
      zmq_msg_close(&message);
    }
    return frames;
  }

 private:
  void* context_;
  void* socket_;
};

inline std::string big_endian(uint64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// The address at which a client on this machine reaches an endpoint with a wildcard.
inline std::string reachable(std::string endpoint) {
  return endpoint.replace(endpoint.find('*'), 1, "127.0.0.1");
}

}  // namespace quire::testing

#include "server/http/asio_stream.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>

namespace quire::http {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using std::chrono::steady_clock;

// TCP_NODELAY sends each token without waiting for the next one. TCP_NOTSENT_LOWAT keeps the data
// of slow readers in the server, where it is counted, instead of in the kernel.
void set_tcp_options(Socket& socket) {
  const int on = 1;
  const int max_unsent_bytes = 128 << 10;
  const int fd = socket.native_handle();
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &max_unsent_bytes, sizeof(max_unsent_bytes));
}

// Returns whether OpenSSL reports that a plain HTTP request came to the TLS port.
bool is_plain_http(const ErrorCode& error) {
  return error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
}

auto read_handler(std::shared_ptr<StreamUser> user) {
  return [user = std::move(user)](const ErrorCode& error, size_t num_bytes) {
    user->on_read(error ? 0 : num_bytes);
  };
}

auto write_handler(std::shared_ptr<StreamUser> user) {
  return [user = std::move(user)](const ErrorCode& error, size_t num_bytes) {
    user->on_written(error ? 0 : num_bytes);
  };
}

// Memory for one handler that is posted repeatedly, at most once at a time. It is reserved in
// advance, so that a wake-up does not fail when memory is exhausted.
using WakeMemory = std::array<std::byte, 128>;
template <typename T>
class WakeAllocator {
 public:
  using value_type = T;
  explicit WakeAllocator(WakeMemory& memory) : memory_(&memory) {}
  template <typename U>
  explicit WakeAllocator(const WakeAllocator<U>& other) : memory_(other.memory_) {}

  T* allocate(size_t /*always 1*/) {
    static_assert(sizeof(T) <= sizeof(WakeMemory) && alignof(T) <= alignof(std::max_align_t));
    return reinterpret_cast<T*>(memory_->data());
  }
  void deallocate(T* /*memory*/, size_t /*count*/) {}
  bool operator==(const WakeAllocator&) const = default;

 private:
  template <typename U>
  friend class WakeAllocator;
  WakeMemory* memory_;
};

struct WakeHandler {
  std::shared_ptr<StreamUser> user;  // keeps the stream alive, whose members the references name
  std::atomic<bool>& is_waking;
  WakeMemory& memory;

  using allocator_type = WakeAllocator<std::byte>;
  allocator_type get_allocator() const noexcept { return allocator_type(memory); }
  void operator()() const {
    is_waking = false;
    user->on_wake();
  }
};

class PlainStream : public Stream {
 public:
  PlainStream(asio::io_context& context, Socket socket)
      : context_(context),
        socket_(std::move(socket)),
        fd_(socket_.native_handle()),
        timer_(context),
        peer_(peer_name(socket_)) {
    if (peer_ != "unix") set_tcp_options(socket_);
  }

  void open(std::shared_ptr<StreamUser> user) override {
    hold(std::move(user));
    asio::post(context_, [user = user_] { user->on_open(OpenResult::kDone); });
  }

  void read_some(char* to, size_t size) override {
    socket_.async_read_some(asio::buffer(to, size), read_handler(user_));
  }
  void write_some(std::string_view bytes) override {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), write_handler(user_));
  }

  void shut_down() override {
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

  bool watch_reset() override {
    socket_.async_wait(Socket::wait_error, [user = user_](const ErrorCode& error) {
      if (!error) user->on_reset();
    });
    return true;
  }

  void close() override {
    ErrorCode ignored;
    {
      const std::lock_guard lock(send_mutex_);
      fd_ = -1;
      socket_.close(ignored);
    }
    timer_.cancel();
    user_.reset();
  }

  // Rearms the timer only for an earlier deadline: a busy connection changes its deadline several
  // times per request, and most deadlines never expire.
  void set_deadline(TimePoint when) override {
    deadline_ = when;
    if (when < armed_for_) arm();
  }

  // At most one wake-up is in flight, because a second one would find the same response. Its
  // handler is stored in the stream, and Asio releases that memory before it calls the handler.
  void wake() noexcept override {
    if (is_waking_.exchange(true)) return;
    asio::post(context_, WakeHandler{user_, is_waking_, wake_memory_});
  }

  // Ignores errors here: the next write on the stream's thread fails with the same error and
  // reports it.
  size_t send_now(std::string_view bytes) override {
    const std::lock_guard lock(send_mutex_);
    if (fd_ < 0) return 0;
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > 0 ? static_cast<size_t>(sent) : 0;
  }

  std::string peer() const override { return peer_; }

 protected:
  Socket& socket() { return socket_; }
  const std::shared_ptr<StreamUser>& user() const { return user_; }
  void hold(std::shared_ptr<StreamUser> user) { user_ = std::move(user); }

 private:
  // Returns false if the timer cannot be armed; the caller then treats the deadline as expired.
  bool arm_again() noexcept {
    try {
      arm();
      return true;
    } catch (const std::exception&) {
      armed_for_ = TimePoint::max();
      return false;
    }
  }

  void arm() {
    armed_for_ = deadline_;
    timer_.expires_at(armed_for_);
    timer_.async_wait([this, user = user_](const ErrorCode& error) {
      if (error || !user_) return;  // the user holds this stream
      armed_for_ = TimePoint::max();
      if (deadline_ == TimePoint::max()) return;
      if (steady_clock::now() < deadline_ && arm_again()) return;
      deadline_ = TimePoint::max();
      user->on_deadline();
    });
  }

  asio::io_context& context_;
  Socket socket_;
  alignas(std::max_align_t) WakeMemory wake_memory_;
  std::atomic<bool> is_waking_ = false;
  std::mutex send_mutex_;  // guards fd_: the system can reuse a closed descriptor at once
  int fd_;
  asio::steady_timer timer_;
  const std::string peer_;
  std::shared_ptr<StreamUser> user_;
  TimePoint deadline_ = TimePoint::max();
  TimePoint armed_for_ = TimePoint::max();
};

class TlsStream final : public PlainStream {
 public:
  TlsStream(asio::io_context& context, Socket plain, asio::ssl::context& tls)
      : PlainStream(context, std::move(plain)), tls_(socket(), tls) {}

  void open(std::shared_ptr<StreamUser> user) override {
    hold(std::move(user));
    tls_.async_handshake(asio::ssl::stream_base::server,
                         [user = this->user()](const ErrorCode& error) {
                           user->on_open(is_plain_http(error) ? OpenResult::kPlainHttp
                                         : error              ? OpenResult::kFailed
                                                              : OpenResult::kDone);
                         });
  }
  void read_some(char* to, size_t size) override {
    tls_.async_read_some(asio::buffer(to, size), read_handler(user()));
  }
  void write_some(std::string_view bytes) override {
    tls_.async_write_some(asio::buffer(bytes.data(), bytes.size()), write_handler(user()));
  }
  size_t send_now(std::string_view) override { return 0; }  // not thread-safe with OpenSSL
  // TLS has no half-closed connections: a client that closes its side gets no further data.
  bool watch_reset() override { return false; }
  // Reads the pending input first: if the socket is closed with unread bytes, the kernel resets the
  // connection and the response is lost.
  void end_unencrypted(std::string_view bytes) override {
    char rest[4096];
    const int fd = socket().native_handle();
    for (int i = 0; i < 8 && ::recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0;) ++i;
    PlainStream::send_now(bytes);
    PlainStream::shut_down();
  }
  // Sends TLS's close_notify, so that the client can tell an end from a truncation.
  void shut_down() override {
    tls_.async_shutdown([this, user = user()](const ErrorCode&) {
      if (socket().is_open()) PlainStream::shut_down();
    });
  }

 private:
  asio::ssl::stream<Socket&> tls_;
};

}  // namespace

std::string peer_name(const Socket& socket) {
  ErrorCode error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return "unknown";
  const sockaddr* address = endpoint.data();
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    return fmt::format("{}:{}", text, ntohs(v4->sin_port));
  }
  if (address->sa_family != AF_INET6) return "unix";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {  // an IPv4 client of "::"
    ::inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof(text));
    return fmt::format("{}:{}", text, ntohs(v6->sin6_port));
  }
  ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  return fmt::format("[{}]:{}", text, ntohs(v6->sin6_port));
}

std::unique_ptr<Stream> make_stream(asio::io_context& context, Socket socket,
                                    const std::shared_ptr<asio::ssl::context>& tls) {
  if (tls) return std::make_unique<TlsStream>(context, std::move(socket), *tls);
  return std::make_unique<PlainStream>(context, std::move(socket));
}

}  // namespace quire::http

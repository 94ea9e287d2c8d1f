#include "support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>

namespace quire::testing {
namespace {

long now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool wait_for(int fd, short events, long deadline_ms) {
  pollfd poll{.fd = fd, .events = events, .revents = 0};
  const long left = std::max(0L, deadline_ms - now_ms());
  return ::poll(&poll, 1, static_cast<int>(left)) > 0;
}

int connect_to(const sockaddr* address, socklen_t size, int receive_bytes) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_bytes > 0) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  }
  if (fd >= 0 && ::connect(fd, address, size) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

HttpAnswer parse_head(std::string_view head) {
  HttpAnswer answer;
  size_t line_end = head.find("\r\n");
  if (head.starts_with("HTTP/1.1 "))
    answer.status = std::atoi(std::string(head.substr(9, 3)).c_str());
  while (line_end + 2 < head.size()) {
    const std::string_view rest = head.substr(line_end + 2);
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    line_end += 2 + line.size();
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) break;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    answer.headers.emplace_back(std::move(name), value);
  }
  return answer;
}

}  // namespace

std::string HttpAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

struct HttpClient::Connection {
  int fd = -1;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;

  ~Connection() { close(); }

  void close() {
    if (ssl != nullptr) ::SSL_free(std::exchange(ssl, nullptr));
    if (context != nullptr) ::SSL_CTX_free(std::exchange(context, nullptr));
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
};

HttpClient::HttpClient(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

HttpClient HttpClient::tcp(int port, const std::string& host, int receive_bytes) {
  auto connection = std::make_unique<Connection>();
  const auto net_port = htons(static_cast<uint16_t>(port));
  if (host.find(':') == std::string::npos) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = net_port;
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    connection->fd =
        connect_to(reinterpret_cast<sockaddr*>(&address), sizeof(address), receive_bytes);
  } else {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = net_port;
    ::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr);
    connection->fd =
        connect_to(reinterpret_cast<sockaddr*>(&address), sizeof(address), receive_bytes);
  }
  return HttpClient(std::move(connection));
}

HttpClient HttpClient::unix_socket(const std::string& path) {
  auto connection = std::make_unique<Connection>();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  connection->fd = connect_to(reinterpret_cast<sockaddr*>(&address), sizeof(address), 0);
  return HttpClient(std::move(connection));
}

HttpClient HttpClient::tls(int port) {
  HttpClient client = tcp(port);
  Connection& connection = *client.connection_;
  if (connection.fd < 0) return client;
  const timeval limit{.tv_sec = kTimeoutMs / 1000, .tv_usec = 0};
  ::setsockopt(connection.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  connection.context = ::SSL_CTX_new(::TLS_client_method());
  connection.ssl = ::SSL_new(connection.context);
  ::SSL_set_fd(connection.ssl, connection.fd);
  if (::SSL_connect(connection.ssl) != 1) connection.close();
  return client;
}

bool HttpClient::is_open() const {
  return connection_->fd >= 0;
}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        connection_->ssl != nullptr
            ? ::SSL_write(connection_->ssl, bytes.data(), static_cast<int>(bytes.size()))
            : ::send(connection_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// Receives the next bytes. Returns false when the connection ends or the deadline passes.
bool HttpClient::fill(long deadline_ms) {
  char piece[16384];
  SSL* ssl = connection_->ssl;
  const bool is_there = ssl != nullptr && ::SSL_pending(ssl) > 0;
  if (!is_there && !wait_for(connection_->fd, POLLIN, deadline_ms)) return false;
  const ssize_t got = ssl != nullptr ? ::SSL_read(ssl, piece, sizeof(piece))
                                     : ::recv(connection_->fd, piece, sizeof(piece), 0);
  if (got <= 0) return false;
  buffer_.append(piece, static_cast<size_t>(got));
  return true;
}

std::optional<HttpAnswer> HttpClient::receive_head(int timeout_ms) {
  const long deadline = now_ms() + timeout_ms;
  size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill(deadline)) return std::nullopt;
  }
  HttpAnswer answer = parse_head(std::string_view(buffer_).substr(0, end + 2));
  buffer_.erase(0, end + 4);
  return answer;
}

std::string HttpClient::receive_until(std::string_view mark, int timeout_ms) {
  const long deadline = now_ms() + timeout_ms;
  size_t at;
  while ((at = buffer_.find(mark)) == std::string::npos) {
    if (!fill(deadline)) return "";
  }
  std::string text = buffer_.substr(0, at + mark.size());
  buffer_.erase(0, at + mark.size());
  return text;
}

std::optional<std::string> HttpClient::receive_rest(int timeout_ms) {
  const long deadline = now_ms() + timeout_ms;
  while (fill(deadline)) {
  }
  if (now_ms() >= deadline) return std::nullopt;
  return std::exchange(buffer_, {});
}

HttpAnswer HttpClient::receive(bool to_head, int timeout_ms) {
  const long deadline = now_ms() + timeout_ms;
  const auto left = [&] { return static_cast<int>(std::max(0L, deadline - now_ms())); };
  HttpAnswer answer = receive_head(timeout_ms).value_or(HttpAnswer{});
  if (answer.status == 0) return answer;
  if (to_head || answer.status < 200 || answer.status == 204 || answer.status == 304) {
    answer.is_whole = true;
    return answer;
  }
  if (answer.header("transfer-encoding") == "chunked") {
    for (;;) {
      const std::string line = receive_until("\r\n", left());
      if (line.empty()) return answer;
      const size_t size = std::strtoul(line.c_str(), nullptr, 16);
      while (buffer_.size() < size + 2) {
        if (!fill(deadline)) return answer;
      }
      answer.body += buffer_.substr(0, size);
      buffer_.erase(0, size + 2);
      if (size == 0) break;
    }
    answer.is_whole = true;
    return answer;
  }
  const std::string length = answer.header("content-length");
  if (length.empty()) {  // the body ends with the connection
    std::optional<std::string> rest = receive_rest(left());
    answer.is_whole = rest.has_value();
    answer.body = std::move(rest).value_or("");
    return answer;
  }
  const size_t size = std::strtoul(length.c_str(), nullptr, 10);
  while (buffer_.size() < size && fill(deadline)) {
  }
  answer.is_whole = buffer_.size() >= size;
  answer.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return answer;
}

HttpAnswer HttpClient::get(const std::string& path) {
  send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return receive();
}

HttpAnswer HttpClient::post(const std::string& path, std::string_view body,
                            const std::string& more_headers) {
  send("POST " + path + " HTTP/1.1\r\nHost: test\r\ncontent-type: application/json\r\n" +
       more_headers + "content-length: " + std::to_string(body.size()) + "\r\n\r\n");
  send(body);
  return receive();
}

void HttpClient::half_close() {
  ::shutdown(connection_->fd, SHUT_WR);
}
void HttpClient::close() {
  connection_->close();
}

void HttpClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(connection_->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close();
}

std::string HttpClient::peer_certificate() const {
  X509* certificate = ::SSL_get1_peer_certificate(connection_->ssl);
  if (certificate == nullptr) return "";
  char name[256] = "";
  ::X509_NAME_get_text_by_NID(::X509_get_subject_name(certificate), NID_commonName, name,
                              sizeof(name));
  ::X509_free(certificate);
  return name;
}

}  // namespace quire::testing

// A small blocking HTTP client over TCP, TLS and Unix sockets. It sends raw bytes, so it can also
// violate the protocol. Every wait ends after `timeout_ms`.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::testing {

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;                                          // after removing chunked framing
  bool is_whole = false;                                     // received completely

  std::string header(std::string_view name) const;
};

class HttpClient {
 public:
  static constexpr int kTimeoutMs = 20'000;

  // If no server listens, the client is not connected (is_open() is false).
  static HttpClient tcp(int port, const std::string& host = "127.0.0.1", int receive_bytes = 0);
  static HttpClient unix_socket(const std::string& path);
  static HttpClient tls(int port);  // accepts any certificate; see peer_certificate()

  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  bool is_open() const;

  bool send(std::string_view bytes);
  // Receives one response; `to_head`: the response to a HEAD request. If the connection ends or the
  // time is over before its end, is_whole is false.
  HttpAnswer receive(bool to_head = false, int timeout_ms = kTimeoutMs);
  // receive_head() returns the head of a response, or nullopt. receive_until() then returns the
  // bytes of the body up to and including `mark`, or nothing if `mark` does not arrive in time.
  std::optional<HttpAnswer> receive_head(int timeout_ms = kTimeoutMs);
  std::string receive_until(std::string_view mark, int timeout_ms = kTimeoutMs);
  // Everything until the server closes the connection; nullopt if it does not close in time.
  std::optional<std::string> receive_rest(int timeout_ms = kTimeoutMs);

  // Sends a request and receives its response.
  HttpAnswer get(const std::string& path);
  HttpAnswer post(const std::string& path, std::string_view body,
                  const std::string& more_headers = "");

  void half_close();  // announces that nothing more will be sent
  void close();
  void reset();  // RST instead of FIN

  std::string peer_certificate() const;  // TLS: the subject's common name

 private:
  struct Connection;

  explicit HttpClient(std::unique_ptr<Connection> connection);
  bool fill(long deadline_ms);

  std::unique_ptr<Connection> connection_;
  std::string buffer_;  // received, but not consumed
};

}  // namespace quire::testing

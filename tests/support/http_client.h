// A small blocking HTTP client that can also misbehave: raw bytes out, answers in, over TCP, TLS
// and Unix sockets. Every wait ends after `timeout_ms`.
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
  std::string body;                                          // without the framing of chunks
  bool is_whole = false;                                     // its end has come

  std::string header(std::string_view name) const;
};

class HttpClient {
 public:
  static constexpr int kTimeoutMs = 20'000;

  // Not connected (is_open() is false) where nobody listens.
  static HttpClient tcp(int port, const std::string& host = "127.0.0.1", int receive_bytes = 0);
  static HttpClient unix_socket(const std::string& path);
  static HttpClient tls(int port);  // any certificate will do; peer_certificate() tells

  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  bool is_open() const;

  bool send(std::string_view bytes);
  // One answer; where `to_head` is set, an answer to HEAD. Not whole where the connection ended or
  // the time was over before.
  HttpAnswer receive(bool to_head = false, int timeout_ms = kTimeoutMs);
  // What comes of a body's pieces until `mark` is in it (a stream's head must have been read by
  // receive_head()); empty where it did not come.
  std::optional<HttpAnswer> receive_head(int timeout_ms = kTimeoutMs);
  std::string receive_until(std::string_view mark, int timeout_ms = kTimeoutMs);
  // Everything until the server closes; nothing where it did not in time.
  std::optional<std::string> receive_rest(int timeout_ms = kTimeoutMs);

  // A whole exchange.
  HttpAnswer get(const std::string& path);
  HttpAnswer post(const std::string& path, std::string_view body,
                  const std::string& more_headers = "");

  void half_close();  // nothing more to send
  void close();
  void reset();  // RST instead of FIN

  std::string peer_certificate() const;  // TLS: the subject's common name

 private:
  struct Connection;

  explicit HttpClient(std::unique_ptr<Connection> connection);
  bool fill(long deadline_ms);

  std::unique_ptr<Connection> connection_;
  std::string buffer_;  // received and not yet taken
};

}  // namespace quire::testing

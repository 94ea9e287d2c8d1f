// The real binary as a server, and calls to it that run at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/http_client.h"
#include "support/process.h"

namespace quire::testing {

struct JsonCall {
  std::string path;
  std::string body;
};

// Listens at a Unix socket of its own; ends with the object.
class Served {
 public:
  explicit Served(std::vector<std::string> flags = {});

  // Waits until it takes requests; false where it does not.
  bool is_up();
  HttpClient connect() const { return HttpClient::unix_socket(socket_); }
  HttpAnswer get(const std::string& path) const { return connect().get(path); }
  HttpAnswer post(const JsonCall& call) const { return connect().post(call.path, call.body); }
  // All are sent before the first answer is awaited; each on a connection of its own.
  std::vector<HttpAnswer> post_all(const std::vector<JsonCall>& calls) const;
  int stop();  // by SIGTERM; the exit code

 private:
  std::string socket_;
  Process process_;
};

// The string at this JSON pointer, "/choices/0/text"; "" where there is none.
std::string string_at(std::string_view json, std::string_view pointer);
// Joins the strings at this pointer in all events of a stream.
std::string streamed_at(std::string_view events, std::string_view pointer);

}  // namespace quire::testing

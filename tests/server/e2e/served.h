// Runs the real binary as a server, and sends it requests at the same time.
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

// Listens at its own Unix socket. The destructor ends the process.
class Served {
 public:
  explicit Served(const Words& flags = {});

  // Waits until the server takes requests. Returns false if it does not start.
  bool is_up();
  HttpClient connect() const { return HttpClient::unix_socket(socket_); }
  HttpAnswer get(const std::string& path) const { return connect().get(path); }
  HttpAnswer post(const JsonCall& call) const { return connect().post(call.path, call.body); }
  // Sends all requests before it waits for a response; each has its own connection.
  std::vector<HttpAnswer> post_all(const std::vector<JsonCall>& calls) const;
  int pid() const { return process_.pid(); }
  int stop();  // sends SIGTERM and returns the exit code

 private:
  std::string socket_;
  Process process_;
};

// Returns the string at this JSON pointer ("/choices/0/text"), or "" if there is none.
std::string string_at(std::string_view json, std::string_view pointer);
// Joins the strings at this pointer in all events of a stream.
std::string streamed_at(std::string_view events, std::string_view pointer);

}  // namespace quire::testing

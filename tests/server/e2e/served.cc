#include "server/e2e/served.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/scratch_directory.h"

namespace quire::testing {
namespace {

std::string new_socket_path() {
  static const ScratchDirectory scratch;
  static int num_sockets = 0;
  return scratch.path() / (std::to_string(num_sockets++) + ".sock");
}

std::string post_text(const JsonCall& call) {
  return "POST " + call.path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(call.body.size()) + "\r\n\r\n" + call.body;
}

}  // namespace

Served::Served(const Words& flags)
    : socket_(new_socket_path()),
      process_(Words{"serve", "--uds", socket_, "--log-level", "error"} + flags) {}

bool Served::is_up() {
  return process_.read_out("\n").find("serving") != std::string::npos;
}

std::vector<HttpAnswer> Served::post_all(const std::vector<JsonCall>& calls) const {
  std::vector<HttpClient> clients;
  for (const JsonCall& call : calls) {
    clients.push_back(connect());
    clients.back().send(post_text(call));
  }
  std::vector<HttpAnswer> answers;
  constexpr int kPatienceMs = 60'000;
  for (HttpClient& client : clients) answers.push_back(client.receive(false, kPatienceMs));
  return answers;
}

int Served::stop() {
  process_.kill(SIGTERM);
  return process_.wait();
}

std::string string_at(std::string_view json, std::string_view pointer) {
  const auto document = JsonDocument::parse(json, "answer");
  std::string_view text;
  if (!document.ok() || document->root().at_pointer(pointer).get(text) != simdjson::SUCCESS) {
    return "";
  }
  return std::string(text);
}

std::string streamed_at(std::string_view events, std::string_view pointer) {
  constexpr std::string_view kPrefix = "data: ";
  std::string all;
  while (!events.empty()) {
    const size_t end = std::min(events.find("\n\n"), events.size());
    const std::string_view event = events.substr(0, end);
    if (event.starts_with(kPrefix)) all += string_at(event.substr(kPrefix.size()), pointer);
    events.remove_prefix(std::min(end + 2, events.size()));
  }
  return all;
}

}  // namespace quire::testing

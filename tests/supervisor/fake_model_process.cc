// Stands in for `quire serve` with one model, for the tests of the supervisor. Flags choose its
// faults:
//   --plan-bytes=N           the planned memory
//   --plan-short-while=FILE  too little memory for a plan as long as this file exists
//   --plan-least-free=N      too little memory for a plan that counts less memory of others as free
//   --plan-states-least=N    a plan states that it needs this free memory
//   --plan-log=FILE          a plan adds a line to FILE.log, which is no file of the model
//   --plan-hangs             a plan does not end
//   --plan-fails-while=FILE  a plan fails as long as this file exists
//   --waits=FILE             makes this file before it waits for memory
//   --needs=FILE             fails if this file does not exist when it has memory
//   --ends-after=FILE        ends when this file exists, after at most 10 s
//   --ended=FILE             makes this file when it ends
//   --start-ms=N             time to start
//   --fails=TEXT             ends with this message instead of serving
//   --fails-while=FILE       ends as long as this file exists
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "server/http/server.h"

namespace {

using namespace quire::http;

struct Flags {
  explicit Flags(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const size_t equals = word.find('=');
      values.emplace(word.substr(0, equals),
                     equals == std::string::npos ? "" : word.substr(equals + 1));
    }
  }
  bool has(const std::string& name) const { return values.contains(name); }
  std::string get(const std::string& name) const { return has(name) ? values.at(name) : ""; }

  std::map<std::string, std::string> values;  // the first value of a repeated flag
};

std::atomic<int> num_left = 0;     // clients that closed their connections
std::atomic<int> num_started = 0;  // requests
std::atomic<bool> hangs = false;   // responds to no probe any more

int number_after(const std::string& body, const std::string& key) {
  const size_t at = body.find("\"" + key + "\":");
  return at == std::string::npos ? 0 : std::atoi(body.c_str() + at + key.size() + 3);
}

void handle(const std::string& name, Request&& request, const std::shared_ptr<Exchange>& exchange) {
  if (hangs && (request.path == "/health" || request.path == "/metrics")) {
    std::thread([exchange] { std::this_thread::sleep_for(std::chrono::minutes(5)); }).detach();
    return;
  }
  if (request.path == "/v1/models") {
    exchange->respond({.body = R"({"data":[{"id":"x","max_model_len":77,"task":"generate"}]})"});
    return;
  }
  if (request.path == "/api/ps") {
    exchange->respond({.body = R"({"models":[{"digest":"d1","details":{"family":"fake"}}]})"});
    return;
  }
  if (request.path == "/metrics") {
    exchange->respond(
        {.content_type = "text/plain",
         .body = "# HELP fake_total Requests.\n# TYPE fake_total counter\nfake_total " +
                 std::to_string(num_started) + "\n"});
    return;
  }
  if (request.path == "/health") {
    exchange->respond({.body = R"({"status":"ok of )" + name + "\"}"});
    return;
  }
  if (request.path == "/v1/loads") {
    exchange->respond({.body = "{\"left\":" + std::to_string(num_left) + "}"});
    return;
  }
  ++num_started;
  exchange->on_closed([] { ++num_left; });
  if (request.body.find("\"hang\":true") != std::string::npos) hangs = true;
  if (request.body.find("\"crash\":true") != std::string::npos) ::raise(SIGKILL);
  if (request.body.find("\"stream\":true") != std::string::npos) {
    exchange->start_stream(200, "text/event-stream", {{"x-fake", "yes"}});
    exchange->write("data: {\"text\":\"first\"}\n\n");
    const int num_events = number_after(request.body, "events");
    std::thread([exchange, num_events] {
      for (int i = 0; i < num_events; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        exchange->write("data: {\"text\":\"" + std::to_string(i) + "\"}\n\n");
      }
      if (num_events > 0) exchange->end_stream();
      if (num_events == 0) std::this_thread::sleep_for(std::chrono::minutes(5));
    }).detach();
    return;
  }
  std::string body = "{\"by\":\"" + name + "\",\"path\":\"" + request.path + "\",\"id\":\"" +
                     std::string(request.header("x-request-id")) + "\",\"authorization\":\"" +
                     std::string(request.header("authorization")) + "\",\"x_api_key\":\"" +
                     std::string(request.header("x-api-key")) + "\",\"custom\":\"" +
                     std::string(request.header("x-custom")) + "\",\"load_ns\":\"" +
                     std::string(request.header("x-quire-load-ns")) +
                     "\",\"body_bytes\":" + std::to_string(request.body.size()) + ",\"pad\":\"" +
                     std::string(static_cast<size_t>(number_after(request.body, "pad")), 'p') +
                     "\"}";
  const int sleep_ms = number_after(request.body, "sleep_ms");
  std::thread([exchange, sleep_ms, body = std::move(body)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
    exchange->respond({.headers = {{"x-fake", "yes"}}, .body = body});
  }).detach();
}

std::string ends_after;
std::string ended;

void touch(const std::string& path) {
  if (!path.empty()) ::close(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

void end(int /*signal*/) {
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < 10'000 && !ends_after.empty(); ++i) {
    if (::access(ends_after.c_str(), F_OK) == 0) break;
    ::nanosleep(&kPause, nullptr);
  }
  touch(ended);
  ::_exit(0);
}

int fail(const std::string& message) {
  std::fprintf(stderr, "quire serve: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags(argc, argv);
  ends_after = flags.get("--ends-after");
  ended = flags.get("--ended");
  ::signal(SIGTERM, end);
  if (flags.has("--plan-only")) {
    if (flags.has("--plan-log"))
      std::ofstream(flags.get("--plan-log") + ".log", std::ios::app) << "plan\n";
    while (flags.has("--plan-hangs")) ::pause();
    if (std::filesystem::exists(flags.get("--plan-fails-while"))) return fail("[fake] no file");
    const bool is_short = std::atol(flags.get("--plan-freed-bytes").c_str()) <
                          std::atol(flags.get("--plan-least-free").c_str());
    if (is_short || std::filesystem::exists(flags.get("--plan-short-while"))) {
      std::puts(R"({"too_little_memory":"[memory] the machine is too small"})");
      return 1;
    }
    const std::string num_bytes = flags.has("--plan-bytes") ? flags.get("--plan-bytes") : "1";
    const std::string least =
        flags.has("--plan-states-least") ? flags.get("--plan-states-least") : "1";
    std::printf(
        "{\"is_on_gpu\":false,\"num_bytes\":%s,\"least_free_bytes\":%s,\"free_bytes\":1000}\n",
        num_bytes.c_str(), least.c_str());
    return 0;
  }
  touch(flags.get("--waits"));
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
  if (flags.has("--needs") && ::access(flags.get("--needs").c_str(), F_OK) != 0) {
    return fail("[fake] another process has the memory");
  }
  if (flags.has("--fails")) return fail(flags.get("--fails"));
  if (std::filesystem::exists(flags.get("--fails-while"))) return fail("[fake] not yet");
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::atoi(flags.get("--start-ms").c_str())));
  ServerConfig config;
  config.uds = flags.get("--uds");
  const std::string name = flags.get("--served-model-name");
  auto server = Server::start(config, [&](Request&& request, std::shared_ptr<Exchange> exchange) {
    handle(name, std::move(request), exchange);
  });
  if (!server.ok()) return fail(server.status().message());
  std::printf("serving %s at unix:%s\n", name.c_str(), config.uds.c_str());
  std::fflush(stdout);
  while (true) ::pause();
}

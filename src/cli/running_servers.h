// Records by which `quire chat` finds the servers of the same user: one JSON file of mode 0600 per
// `quire serve`, PID.json in $XDG_RUNTIME_DIR/quire or, without that variable, in `servers` of the
// cache's folder. A record has the address and the models, but no key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::cli {

struct ServerAddress {
  std::string url;            // "http://127.0.0.1:8000"
  std::string unix_socket;    // a path; replaces the host and the port of the URL
  bool verifies_peer = true;  // TLS: checks the certificate

  std::string text() const { return unix_socket.empty() ? url : "unix:" + unix_socket; }
};

// "http[s]://HOST[:PORT][/PATH]" or "unix:PATH".
Result<ServerAddress> parse_server_address(std::string_view text);

struct ServedModel {
  std::string name;
  std::string path;  // see model_path()
};

struct ServerRecord {
  int pid = 0;
  // These distinguish the process from a later one with the same pid.
  int64_t start_ticks = 0;  // from the machine's start to the process's; 0: not known
  std::string boot_id;      // of the machine's start
  ServerAddress address;
  std::vector<ServedModel> models;
};

// Returns a text that is equal for two names of one model: the canonical path of its files, or
// "embedded". Empty if the model is not found.
std::string model_path(const std::string& model);

// Returns the folder of the records; empty if the environment names neither folder.
std::filesystem::path server_records_directory();

std::string server_record_json(const ServerRecord& record);
Result<ServerRecord> parse_server_record(std::string_view json, std::string_view source);

// Writes the record of a server, and removes it in the destructor. Sets start_ticks and boot_id by
// the pid. An error is only logged, because the server works without a record.
class PublishedServer {
 public:
  explicit PublishedServer(ServerRecord record);
  ~PublishedServer();
  PublishedServer(const PublishedServer&) = delete;
  PublishedServer& operator=(const PublishedServer&) = delete;

 private:
  std::filesystem::path file_;
};

// Returns the records of servers whose process runs. Removes records of other processes, because
// the port of a server that has ended may belong to another program, which must not get the user's
// key. Skips files of other users and files that are not records.
std::vector<ServerRecord> running_servers();

}  // namespace quire::cli

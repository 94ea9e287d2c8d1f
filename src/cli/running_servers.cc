#include "cli/running_servers.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/cache_directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "http_client/parsers.h"
#include "hub/cache/model_cache.h"
#include "start/embedded.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRecordBytes = size_t{1} << 20;
constexpr std::string_view kUnixPrefix = "unix:";

std::string boot_id() {
  constexpr size_t kMaxBytes = 256;
  const auto text = read_file("/proc/sys/kernel/random/boot_id", kMaxBytes);
  return text.ok() ? std::string(trimmed(*text)) : "";
}

// Returns whether the record's process runs. kill() fails if the process belongs to another user.
bool is_running(const ServerRecord& record) {
  return ::kill(record.pid, 0) == 0 && record.start_ticks != 0 &&
         record.start_ticks == start_ticks_of(std::to_string(record.pid)) &&
         record.boot_id == boot_id();
}

// Returns whether this user owns the file, so that no other user can have written the record.
bool is_own_file(const fs::path& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
}

Status malformed_record(std::string_view source) {
  return invalid_argument(fmt::format("[chat] {}: not the record of a server", source));
}

}  // namespace

Result<ServerAddress> parse_server_address(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) {
    const std::string_view path = text.substr(kUnixPrefix.size());
    if (path.empty()) return invalid_argument("expected the path of a socket after unix:");
    return ServerAddress{.url = "http://localhost", .unix_socket = std::string(path)};
  }
  QUIRE_RETURN_IF_ERROR(http_client::parse_url(text).status());
  return ServerAddress{.url = std::string(text), .unix_socket = {}};
}

std::string model_path(const std::string& model) {
  if (is_embedded(model)) return std::string(hub::kEmbeddedModel);
  const auto found = hub::find_model(model, hub::Needs::kWeights);
  return found.ok() ? canonical_path(found->directory).string() : "";
}

fs::path server_records_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return fs::path(runtime) / "quire";
  const fs::path cache = own_cache_directory();
  return cache.empty() ? cache : cache / "servers";
}

std::string server_record_json(const ServerRecord& record) {
  JsonWriter json;
  json.begin_object();
  json.field("pid", record.pid);
  json.field("start_ticks", record.start_ticks);
  json.field("boot_id", std::string_view(record.boot_id));
  json.field("url", record.address.text());
  json.key("models");
  json.begin_array();
  for (const ServedModel& model : record.models) {
    json.begin_object();
    json.field("name", std::string_view(model.name));
    json.field("path", std::string_view(model.path));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text() + "\n";
}

Result<ServerRecord> parse_server_record(std::string_view text, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(text, source, {.max_bytes = kMaxRecordBytes}));
  const simdjson::dom::element root = document.root();
  int64_t pid = 0;
  std::string_view url;
  simdjson::dom::array models;
  if (root["pid"].get_int64().get(pid) || pid <= 0 || pid > INT32_MAX ||
      root["url"].get_string().get(url) || root["models"].get_array().get(models)) {
    return malformed_record(source);
  }
  ServerRecord record;
  record.pid = static_cast<int>(pid);
  std::string_view boot;
  // Without these fields, is_running() rejects the record.
  if (!root["start_ticks"].get_int64().get(record.start_ticks) &&
      !root["boot_id"].get_string().get(boot)) {
    record.boot_id = boot;
  }
  QUIRE_ASSIGN_OR_RETURN(record.address, parse_server_address(url));
  for (const simdjson::dom::element model : models) {
    std::string_view name;
    std::string_view path;
    if (model["name"].get_string().get(name) || model["path"].get_string().get(path)) {
      return malformed_record(source);
    }
    record.models.push_back({std::string(name), std::string(path)});
  }
  return record;
}

PublishedServer::PublishedServer(ServerRecord record) {
  record.start_ticks = start_ticks_of(std::to_string(record.pid));
  record.boot_id = boot_id();
  const fs::path directory = server_records_directory();
  if (directory.empty()) return;
  file_ = directory / fmt::format("{}.json", record.pid);
  const Status written = replace_file(file_, server_record_json(record));
  std::error_code ignored;
  fs::permissions(directory, fs::perms::owner_all, ignored);
  if (written.ok()) return;
  log_info("[server] quire chat will not find this server: {}", written.message());
  file_.clear();
}

PublishedServer::~PublishedServer() {
  std::error_code ignored;
  if (!file_.empty()) fs::remove(file_, ignored);
}

std::vector<ServerRecord> running_servers() {
  std::vector<ServerRecord> records;
  std::error_code error;
  for (fs::directory_iterator entry(server_records_directory(), error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() != ".json" || !is_own_file(path)) continue;
    const auto text = read_file(path, kMaxRecordBytes);
    if (!text.ok()) continue;
    auto record = parse_server_record(*text, path.string());
    if (!record.ok() || path.stem() != std::to_string(record->pid)) continue;
    if (is_running(*record)) {
      records.push_back(std::move(*record));
    } else {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  }
  return records;
}

}  // namespace quire::cli

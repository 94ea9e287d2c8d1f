#include "cli/serve_models.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/models_file.h"
#include "cli/output.h"
#include "cli/running_servers.h"
#include "cli/serve_steps.h"
#include "cli/socket_folder.h"
#include "server/tools/output_parser.h"
#include "supervisor/supervisor.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::chrono::seconds kKillMargin{5};  // after the drain timeout of a process

// Returns the models for the server's record, whether loaded or not, because a request loads them.
std::vector<ServedModel> served_models(const std::vector<supervisor::ModelEntry>& models) {
  constexpr std::string_view kModelFlag = "--model=";  // begins the first argument
  std::vector<ServedModel> served;
  for (const supervisor::ModelEntry& model : models) {
    const std::string path = model_path(model.arguments.front().substr(kModelFlag.size()));
    served.push_back({model.name, path});
    for (const std::string& alias : model.aliases) served.push_back({alias, path});
  }
  return served;
}

// Makes one key for the processes per key of the supervisor, and writes them to a file that the
// processes read.
Result<std::vector<std::string>> make_process_keys(int num_keys, const fs::path& file) {
  std::vector<std::string> keys;
  std::string text;
  for (int i = 0; i < num_keys; ++i) {
    keys.push_back(server::random_id());
    text += keys.back() + "\n";
  }
  if (keys.empty()) return keys;
  QUIRE_RETURN_IF_ERROR(replace_file(file, text));
  if (::chmod(file.c_str(), S_IRUSR | S_IWUSR) == 0) return keys;
  return unavailable(
      fmt::format("[supervisor] cannot protect {}: {}", file.string(), std::strerror(errno)));
}

Result<supervisor::SupervisorConfig> supervisor_config(const ServeOptions& options,
                                                       const ModelsOptions& given,
                                                       const LogOptions& log,
                                                       std::vector<supervisor::ModelEntry> models,
                                                       OpenPort& port, const fs::path& folder) {
  supervisor::SupervisorConfig config;
  config.service = options.service;
  set_access(options, std::move(port.keys), port.is_local, config.service);
  const fs::path key_file = folder / kKeysFile;
  QUIRE_ASSIGN_OR_RETURN(config.process_keys,
                         make_process_keys(config.service.keys.size(), key_file));
  supervisor::PoolConfig& pool = config.pool;
  pool.models = std::move(models);
  pool.arguments = {"--log-format=" + log.format, "--log-level=" + log.level};
  if (!config.process_keys.empty()) {
    pool.arguments.push_back("--api-key-file=" + key_file.string());
    pool.process_key = config.process_keys.front();
  }
  pool.directory = folder;
  pool.max_loaded = given.max_loaded_models;
  pool.start_timeout = std::chrono::seconds(given.model_start_timeout);
  pool.sleep_idle = std::chrono::seconds(given.sleep_idle_seconds);
  pool.stop_timeout = std::chrono::seconds(options.drain_timeout) + kKillMargin;
  pool.logs_json = log.format == "json";
  pool.free_host_bytes = free_memory_bytes;
  return config;
}

}  // namespace

void add_models_flags(FlagSet& flags, ModelsOptions* options) {
  flags.begin_group("Several models");
  flags.directory("--models-dir", &options->models_dir,
                  "Serve each *.gguf file and each model's folder in this folder, by its name");
  flags.file("--models", &options->models_file,
             "Serve the models of this INI file: a section [NAME] per model, with flags as keys");
  flags.number("--max-loaded-models", &options->max_loaded_models, {.min = 0, .max = 1 << 20},
               "Most models that are loaded at a time; 0: as many as the memory holds");
  flags.number("--model-start-timeout", &options->model_start_timeout, {.min = 1, .max = 86400},
               "Seconds that a request waits for its model to start, before it gets 503");
  flags.number("--sleep-idle-seconds", &options->sleep_idle_seconds, {.min = 0, .max = 1 << 30},
               "Unload a model after this time without requests; 0: never");
}

void check_models_flags(const ServeOptions& options, const ModelsOptions& given,
                        Complaints& complaints) {
  const ModelsOptions unset;
  if (!given.is_set()) {
    const bool has_flag = given.max_loaded_models != unset.max_loaded_models ||
                          given.model_start_timeout != unset.model_start_timeout ||
                          given.sleep_idle_seconds != unset.sleep_idle_seconds;
    if (has_flag) {
      complaints.add(
          "--max-loaded-models, --model-start-timeout, --sleep-idle-seconds: expected --models-dir "
          "or --models with them");
    }
    return;
  }
  if (!given.models_dir.empty() && !given.models_file.empty()) {
    complaints.add("expected --models-dir or --models, not both");
  }
  if (!options.engine.model.empty()) {
    complaints.add(fmt::format("expected --models-dir or --models, or one model, got {} as well",
                               clipped(options.engine.model)));
  }
  for (const std::string_view flag :
       {"--served-model-name", "--headless", "--plan-only", "--plan-freed-bytes"}) {
    const bool is_given =
        std::ranges::any_of(given.given, [&](const auto& one) { return one.first == flag; });
    if (is_given) {
      complaints.add(
          fmt::format("{}: expected it with one model, not with --models-dir or --models", flag));
    }
  }
}

Result<int> run_supervisor(const ServeOptions& options, const ModelsOptions& models_options,
                           const LogOptions& log) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<supervisor::ModelEntry> models, read_models(models_options));
  QUIRE_ASSIGN_OR_RETURN(OpenPort port, open_port(options));
  const CancelScope scope;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SocketFolder> folder, SocketFolder::create());
  const size_t num_models = models.size();
  std::vector<ServedModel> served = served_models(models);
  QUIRE_ASSIGN_OR_RETURN(
      supervisor::SupervisorConfig config,
      supervisor_config(options, models_options, log, std::move(models), port, folder->path()));
  warn_of_open_access(options, config.service, port.is_local);
  warn_of_ollamas_variables();
  ::setenv(kSupervised, "1", 1);  // the processes inherit it; no other thread runs yet
  supervisor::Supervisor supervisor(std::move(config));
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<http::Server> transport,
                         start_transport(options, port, supervisor));
  supervisor.set_transport(transport.get());
  const std::string url = address(options.transport, *transport);
  if (logs_messages()) {
    log_event(LogLevel::kInfo, "[server] serving",
              {{"models", static_cast<int64_t>(num_models)}, {"url", url}});
  } else {
    write_stdout(
        fmt::format("serving {} model{} at {}\n", num_models, num_models == 1 ? "" : "s", url));
  }
  ServerRecord record = server_record(options, *transport);
  record.models = std::move(served);
  std::optional<PublishedServer> published(record);
  while (!CancelScope::wait(1s)) {
  }
  published.reset();
  drain(options, supervisor, *transport);
  supervisor.stop();
  transport.reset();
  return kExitOk;
}

}  // namespace quire::cli

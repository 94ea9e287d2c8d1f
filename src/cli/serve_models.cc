#include "cli/serve_models.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/nearest_word.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/running_servers.h"
#include "cli/serve_steps.h"
#include "cli/unknown_words.h"
#include "hub/cache/model_cache.h"
#include "server/tools/output_parser.h"
#include "supervisor/supervisor.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kSupervisorTick = 100ms;
constexpr std::chrono::seconds kKillMargin{5};  // beyond the drain timeout of a process

// Flags that concern the address or the callers, which only the supervisor has.
constexpr std::array<std::string_view, 20> kFlagsOfSupervisor = {"--allowed-hosts",
                                                                 "--allowed-origins",
                                                                 "--api-key",
                                                                 "--api-key-file",
                                                                 "--headless",
                                                                 "--host",
                                                                 "--log-format",
                                                                 "--log-level",
                                                                 "--max-connections",
                                                                 "--max-connections-per-peer",
                                                                 "--model",
                                                                 "--num-io-threads",
                                                                 "--plan-freed-bytes",
                                                                 "--plan-only",
                                                                 "--port",
                                                                 "--served-model-name",
                                                                 "--ssl-certfile",
                                                                 "--ssl-keyfile",
                                                                 "--trusted-proxies",
                                                                 "--uds"};

bool is_of_supervisor(std::string_view flag) {
  return std::ranges::find(kFlagsOfSupervisor, flag) != kFlagsOfSupervisor.end();
}

// A flag of a model, and where it comes from.
struct GivenFlag {
  std::string name;
  std::string value;
  std::string origin;  // "models.ini:12: section [x], key 'y'"
};

// The flags of the command line that all models get.
std::vector<GivenFlag> flags_for_all(const ModelsOptions& options) {
  std::vector<GivenFlag> flags;
  for (const auto& [name, value] : options.given) {
    if (!is_of_supervisor(name)) flags.push_back({name, value, name});
  }
  return flags;
}

// Adds a flag, or replaces its value from a source of lower precedence.
void put(GivenFlag flag, std::vector<GivenFlag>& flags) {
  std::erase_if(flags, [&](const GivenFlag& old) { return old.name == flag.name; });
  flags.push_back(std::move(flag));
}

// Parses the flags as the process of the model will, so that a mistake ends the supervisor's start.
Status check_flags(const std::vector<GivenFlag>& flags, const std::string& model,
                   const ModelsOptions& given, const std::string& source) {
  ServeOptions options;
  // A limit per key needs keys, which the supervisor gives to the processes.
  if (std::ranges::any_of(given.given,
                          [](const auto& flag) { return flag.first.starts_with("--api-key"); })) {
    options.api_keys = {"key"};
  }
  FlagSet known;
  add_serve_flags(known, &options);
  options.engine.model = model;
  for (const GivenFlag& flag : flags) {
    const Status status = known.find(flag.name)->set(flag.value);
    if (!status.ok()) {
      return invalid_argument(fmt::format("[supervisor] {}: {}", flag.origin, status.message()));
    }
  }
  Complaints complaints;
  known.check(complaints);
  check(options, complaints);
  if (complaints.empty()) return {};
  return invalid_argument(fmt::format("[supervisor] {}: model '{}': {}", source, clipped(model),
                                      known.name_flags(complaints.messages().front())));
}

Result<bool> read_switch(const supervisor::IniValue& value, const std::string& origin) {
  if (value.value == "true" || value.value == "1") return true;
  if (value.value == "false" || value.value == "0") return false;
  return invalid_argument(fmt::format("[supervisor] {}: got '{}', expected true or false", origin,
                                      clipped(value.value)));
}

// A flag of another engine by the key that it has in that engine's file or environment: "ctx-size",
// "c" or "LLAMA_ARG_CTX_SIZE". Null: it is none.
const ForeignFlag* foreign_flag(std::string_view key) {
  constexpr std::string_view kVariable = "LLAMA_ARG_";
  if (key.starts_with(kVariable)) key.remove_prefix(kVariable.size());
  std::string name(key);
  std::ranges::transform(name, name.begin(), [](char c) { return c == '_' ? '-' : to_lower(c); });
  for (const ForeignFlag& flag : foreign_flags()) {
    if (flag.name == "--" + name || flag.name == "-" + name) return &flag;
  }
  return nullptr;
}

// Paths in the file are relative to its folder, so that they do not depend on the folder in which
// the server was started. A value that is no path there may be a model's name.
std::string resolved_path(const std::string& value, const fs::path& folder) {
  const char* const home = std::getenv("HOME");
  if (value.starts_with("~/") && home != nullptr) return home + value.substr(1);
  std::error_code error;
  const fs::path path = folder / value;
  const bool is_path = value.starts_with("./") || value.starts_with("../") ||
                       value.ends_with(".gguf") || fs::exists(path, error);
  const bool is_name_of_file = value.find(':') != std::string::npos;  // ORG/NAME:FILE.gguf
  return is_path && (!is_name_of_file || fs::exists(path, error)) ? path.string() : value;
}

std::vector<std::string> read_aliases(std::string_view text) {
  std::vector<std::string> aliases;
  for (const std::string_view part : split_list(text)) aliases.emplace_back(trimmed(part));
  return aliases;
}

// Reads one section; `all` has the values of the section [*]. The mistakes in its keys are added to
// the complaints.
class SectionReader {
 public:
  SectionReader(const ModelsOptions& options, const FlagSet& known, Complaints& complaints)
      : options_(options), known_(known), complaints_(complaints) {}

  Result<supervisor::ModelEntry> read(const supervisor::IniSection* all,
                                      const supervisor::IniSection& section) {
    const size_t num_known = complaints_.messages().size();
    if (all != nullptr) read_values(*all);
    read_values(section);
    if (complaints_.messages().size() > num_known) return std::move(entry_);
    for (GivenFlag& flag : flags_for_all(options_)) put(std::move(flag), flags_);
    entry_.name = section.name;
    if (model_.empty()) model_ = resolved(section.name);
    add(check_flags(flags_, model_, options_, options_.models_file));
    entry_.arguments.push_back("--model=" + model_);
    for (const GivenFlag& flag : flags_) {
      entry_.arguments.push_back(flag.name + "=" + flag.value);
    }
    const Result<hub::FoundModel> found = hub::find_model(model_, hub::Needs::kWeights);
    if (found.ok()) entry_.files = found->directory;
    if (!found.ok() && model_ != hub::kEmbeddedModel) {
      log_warning("[supervisor] {}: section [{}] cannot start: {}", options_.models_file,
                  section.name, found.status().message());
    }
    return std::move(entry_);
  }

 private:
  void read_values(const supervisor::IniSection& section) {
    for (const supervisor::IniValue& value : section.values) {
      add(read_value(section, value));
    }
  }

  // The section [*] is read once per model, and its mistakes are reported once.
  void add(const Status& status) {
    const std::vector<std::string>& known = complaints_.messages();
    if (std::ranges::find(known, status.message()) == known.end()) complaints_.add(status);
  }

  std::string resolved(const std::string& value) const {
    return resolved_path(value, fs::path(options_.models_file).parent_path());
  }

  Status read_value(const supervisor::IniSection& section, const supervisor::IniValue& value) {
    const std::string origin = fmt::format("{}:{}: section [{}], key '{}'", options_.models_file,
                                           value.line, clipped(section.name), clipped(value.key));
    const bool is_for_all = section.name == supervisor::kEverySection;
    if (!is_for_all && value.key == "alias") {
      entry_.aliases = read_aliases(value.value);
      return {};
    }
    if (!is_for_all && value.key == "default") {
      QUIRE_ASSIGN_OR_RETURN(entry_.is_default, read_switch(value, origin));
      return {};
    }
    if (value.key == "load-on-startup") {
      QUIRE_ASSIGN_OR_RETURN(entry_.loads_at_start, read_switch(value, origin));
      return {};
    }
    if (!is_for_all && value.key == "model") {
      if (value.value.empty()) return fail(origin, "got no value, expected a model");
      model_ = resolved(value.value);
      return {};
    }
    return read_flag(value, origin);
  }

  Status read_flag(const supervisor::IniValue& value, const std::string& origin) {
    std::string name = "--" + value.key;
    std::ranges::replace(name, '_', '-');
    const Flag* flag = known_.find(name);
    if (flag != nullptr && is_of_supervisor(flag->name)) {
      return fail(
          origin,
          "is a flag of the supervisor, expected a flag of a model; give it to quire serve");
    }
    const ForeignFlag* const foreign = flag == nullptr ? foreign_flag(value.key) : nullptr;
    if (foreign != nullptr && foreign->kind == ForeignFlag::Kind::kIgnored) {
      log_warning("[supervisor] {} {}", origin, foreign->text);
      return {};
    }
    if (foreign != nullptr && foreign->kind == ForeignFlag::Kind::kRefused) {
      return fail(origin, foreign->text);
    }
    if (foreign != nullptr) {
      return fail(origin, known_.find(foreign->text) != nullptr
                              ? fmt::format("is {} here", foreign->text.substr(2))
                              : fmt::format("is {} in other commands, and no flag of quire serve",
                                            foreign->text));
    }
    if (flag == nullptr) {
      std::vector<std::string> names = {"alias", "default", "load-on-startup", "model"};
      for (const Flag& one : known_.flags()) names.push_back(one.name.substr(2));
      const std::string meant = nearest_word(value.key, names);
      return fail(origin, meant.empty()
                              ? "is no flag of quire serve; quire serve --help lists them"
                              : fmt::format("is no flag of quire serve; did you mean {}?", meant));
    }
    if (flag->kind == ValueKind::kNone && value.value != "true" && value.value != "false") {
      return fail(origin, fmt::format("got '{}', expected true or false", clipped(value.value)));
    }
    const bool is_path = flag->kind == ValueKind::kFile || flag->kind == ValueKind::kDirectory;
    put({flag->name, is_path ? resolved(value.value) : value.value, origin}, flags_);
    return {};
  }

  static Status fail(const std::string& origin, std::string_view what) {
    return invalid_argument(fmt::format("[supervisor] {}: {}", origin, what));
  }

  const ModelsOptions& options_;
  const FlagSet& known_;
  Complaints& complaints_;
  std::vector<GivenFlag> flags_;
  std::string model_;
  supervisor::ModelEntry entry_;
};

Result<std::vector<supervisor::ModelEntry>> read_models_file(const ModelsOptions& options) {
  const Result<std::string> text = read_file(options.models_file, supervisor::kMaxIniBytes);
  if (!text.ok()) {
    return Status(text.status().code(),
                  text.status().message() +
                      "; --models takes an INI file with a section [NAME] per model, --models-dir "
                      "DIR serves the models in a folder, and quire serve MODEL one model");
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<supervisor::IniSection> sections,
                         supervisor::parse_ini(*text, options.models_file));
  const auto all =
      std::ranges::find(sections, supervisor::kEverySection, &supervisor::IniSection::name);
  ServeOptions unused;
  FlagSet known;
  add_serve_flags(known, &unused);
  Complaints complaints;
  std::vector<supervisor::ModelEntry> models;
  for (const supervisor::IniSection& section : sections) {
    if (section.name == supervisor::kEverySection) continue;
    QUIRE_ASSIGN_OR_RETURN(supervisor::ModelEntry entry,
                           SectionReader(options, known, complaints)
                               .read(all == sections.end() ? nullptr : &*all, section));
    models.push_back(std::move(entry));
  }
  if (!complaints.empty()) {
    const std::vector<std::string>& messages = complaints.messages();
    for (size_t i = 0; i + 1 < messages.size(); ++i) print_stderr("quire serve: {}\n", messages[i]);
    return invalid_argument(messages.back());
  }
  if (!models.empty()) return models;
  return invalid_argument(fmt::format(
      "[supervisor] {}: got no section, expected one [NAME] per model", options.models_file));
}

Result<std::vector<supervisor::ModelEntry>> read_models_directory(const ModelsOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<supervisor::ModelEntry> models,
                         supervisor::list_models_directory(options.models_dir));
  const std::vector<GivenFlag> flags = flags_for_all(options);
  QUIRE_RETURN_IF_ERROR(check_flags(flags, models.front().name, options, options.models_dir));
  for (supervisor::ModelEntry& model : models) {
    for (const GivenFlag& flag : flags) model.arguments.push_back(flag.name + "=" + flag.value);
  }
  return models;
}

constexpr std::string_view kFolderPrefix = "quire-serve-";

// The lock of a folder of this user. It ends with the process, however that ends.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    struct stat facts = {};
    is_held_ = fd_ >= 0 && ::fstat(fd_, &facts) == 0 && facts.st_uid == ::geteuid() &&
               ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  }
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  const int fd_;
  bool is_held_ = false;
};

// Removes the folders of servers that were killed. A server that has just created its folder may
// not have locked it yet, so young folders stay.
void remove_stale_folders(const fs::path& parent) {
  constexpr auto kLeastAge = 1min;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (!path.filename().string().starts_with(kFolderPrefix)) continue;
    std::error_code ignored;
    const fs::file_time_type time = fs::last_write_time(path, ignored);
    if (ignored || fs::file_time_type::clock::now() - time < kLeastAge) continue;
    const FolderLock lock(path);
    if (lock.is_held()) fs::remove_all(path, ignored);
  }
}

// The folder of the sockets, which only this user may enter. The destructor deletes it.
class SocketFolder {
 public:
  static Result<std::unique_ptr<SocketFolder>> create() {
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    std::error_code error;
    const fs::path parent = runtime != nullptr && fs::is_directory(runtime, error)
                                ? fs::path(runtime)
                                : fs::temp_directory_path(error);
    remove_stale_folders(parent);
    std::string path = parent / fmt::format("{}XXXXXX", kFolderPrefix);
    if (::mkdtemp(path.data()) == nullptr) {
      return unavailable(fmt::format(
          "[supervisor] cannot create {}: {}; expected a folder that may be written (TMPDIR)", path,
          std::strerror(errno)));
    }
    return std::unique_ptr<SocketFolder>(new SocketFolder(path));
  }
  ~SocketFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  explicit SocketFolder(fs::path path) : path_(std::move(path)), lock_(path_) {}

  const fs::path path_;
  const FolderLock lock_;
};

// The models of the server's record, also those that are not loaded: a request loads them.
std::vector<ServedModel> served_models(const std::vector<supervisor::ModelEntry>& models) {
  constexpr std::string_view kModelFlag = "--model=";  // the first argument
  std::vector<ServedModel> served;
  for (const supervisor::ModelEntry& model : models) {
    const std::string path = model_path(model.arguments.front().substr(kModelFlag.size()));
    served.push_back({model.name, path});
    for (const std::string& alias : model.aliases) served.push_back({alias, path});
  }
  return served;
}

// Makes a key of the processes per key of the supervisor, and writes them to a file for the
// processes.
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
  const fs::path key_file = folder / "keys";
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

void check(const ServeOptions& options, const ModelsOptions& given, Complaints& complaints) {
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
  for (const std::string_view flag : {"--served-model-name", "--headless", "--plan-only"}) {
    const bool is_given =
        std::ranges::any_of(given.given, [&](const auto& one) { return one.first == flag; });
    if (is_given) {
      complaints.add(
          fmt::format("{}: expected it with one model, not with --models-dir or --models", flag));
    }
  }
}

Result<std::vector<supervisor::ModelEntry>> read_models(const ModelsOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(
      std::vector<supervisor::ModelEntry> models,
      options.models_file.empty() ? read_models_directory(options) : read_models_file(options));
  QUIRE_RETURN_IF_ERROR(supervisor::check_models(models));
  return models;
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
  ::setenv(kSupervised, "1", 1);  // for the processes; this one has no other threads yet
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
  while (!CancelScope::interrupted()) std::this_thread::sleep_for(kSupervisorTick);
  published.reset();
  drain(options, supervisor, *transport);
  supervisor.stop();
  transport.reset();
  return kExitOk;
}

}  // namespace quire::cli

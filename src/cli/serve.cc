#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/heap.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/model_service.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/running_servers.h"
#include "cli/serve_flags.h"
#include "cli/serve_models.h"
#include "cli/serve_steps.h"
#include "engine/sampling_defaults.h"
#include "server/http/server.h"
#include "server/service.h"
#include "server/transit_memory.h"
#include "start/memory_need.h"
#include "start/node_setup.h"
#include "start/platform_choice.h"

namespace quire::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kProgressCheck = 1s;  // the time between two checks whether the engine works

// Applies the environment variables with which vLLM chooses the hashes in its KV events.
Result<EngineConfig> with_block_hashes_of_environment(EngineConfig config) {
  if (const char* seed = std::getenv("PYTHONHASHSEED")) config.block_hash_seed = seed;
  constexpr char kInts[] = "VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES";
  const std::string_view ints = std::getenv(kInts) == nullptr ? "1" : std::getenv(kInts);
  if (ints != "0" && ints != "1") return unexpected(ints, fmt::format("{} to be 0 or 1", kInts));
  config.int_block_hashes = ints == "1";
  return config;
}

// Returns whether a supervisor started this process. A supervisor waits for the line with the
// address, and clients reach the model only through the supervisor.
bool is_supervised() {
  return std::getenv(kSupervised) != nullptr;
}

// The server of several models starts this process while the models before it end, and ends the
// input when there is memory for the model.
void wait_for_memory() {
  struct stat input = {};
  if (::fstat(STDIN_FILENO, &input) != 0 || !S_ISFIFO(input.st_mode)) return;
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR) errno = 0;
}

void announce(const ServeOptions& options, const server::ServiceConfig& config,
              const http::Server& transport, bool is_local) {
  log_info("[server] API keys: {}",
           config.keys.empty() ? "none" : std::to_string(config.keys.size()));
  log_info("[server] {}", describe(plan_transit_memory(transport_limits(options), config)));
  warn_of_open_access(options, config, is_local);
  if (!is_supervised()) warn_of_ollamas_variables();
  const std::string& name = config.model_names.front();
  const std::string url = address(options.transport, transport);
  if (logs_messages() && !is_supervised()) {
    log_event(LogLevel::kInfo, "[server] serving", {{"model", name}, {"url", url}});
  } else {
    write_stdout(fmt::format("serving {} at {}\n", name, url));
  }
}

void warn_of_missing_template(const Engine& engine) {
  // Without a tokenizer the server handles no text at all; a line of the log states this already.
  if (!engine.has_tokenizer() || !engine.chat_template().empty()) return;
  if (engine.model_info().embedding_size > 0) return;  // it does not generate
  log_warning(
      "[server] the model has no usable chat template: /v1/chat/completions returns 400; set "
      "--chat-template FILE");
}

void trim_heap_if_due(const server::Service& service, const http::Server& transport,
                      server::TrimSchedule& schedule) {
  const http::ServerStats stats = transport.stats();
  const bool is_idle =
      service.num_running() == 0 && stats.body_bytes == 0 && stats.response_bytes == 0;
  if (schedule.is_due(stats.received_bytes + stats.sent_bytes, is_idle,
                      server::TrimSchedule::Clock::now())) {
    trim_heap();
  }
}

void wait_for_interrupt(server::Service& service, const http::Server& transport) {
  server::TrimSchedule schedule;
  while (!CancelScope::wait(kProgressCheck)) {
    service.check_progress();
    trim_heap_if_due(service, transport, schedule);
  }
}

// Runs the ranks of a node other than node 0. An interrupt often reaches all nodes at once, so this
// node waits for node 0 to finish its requests. Until the nodes are connected and the model is
// loaded, should_stop() is not called, and an interrupt ends the program at once.
Result<int> run_node(const ServeOptions& options) {
  std::optional<CancelScope> scope;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  const auto should_stop = [&] {
    if (!scope) scope.emplace();
    if (!CancelScope::interrupted()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!deadline) {
      log_info("[server] shutting down; waiting at most {} s for node 0 to end",
               options.drain_timeout);
      deadline = now + std::chrono::seconds(options.drain_timeout);
    }
    return now >= *deadline;
  };
  QUIRE_RETURN_IF_ERROR(run_engine_node(options.engine, should_stop));
  log_info("[server] node 0 has ended");
  return kExitOk;
}

Result<int> run(const ServeOptions& options) {
  map_large_allocations();
  QUIRE_ASSIGN_OR_RETURN(const EngineConfig placed, place_node(options.engine));
  if (placed.node_rank > 0) return run_node(options);
  if (options.headless) {
    return invalid_argument(
        "--headless: got it for node 0, which serves, expected --node-rank of at least 1");
  }
  QUIRE_ASSIGN_OR_RETURN(OpenPort port, open_port(options));
  if (is_supervised()) {
    // Starts a GPU, which takes 0.2 s. load_engine() tries again, with the memory.
    if (const Status started = check_devices(placed); !started.ok()) {
      log_info("[server] before the memory was free: {}", started.message());
    }
    wait_for_memory();
  }
  QUIRE_ASSIGN_OR_RETURN(const EngineConfig engine_config,
                         with_block_hashes_of_environment(options.engine));
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, load_engine(engine_config));
  // The scope begins here, so that a signal ends the program at once while it reads keys, connects
  // nodes or loads the model, which may block.
  const CancelScope scope;
  server::ServiceConfig config = model_service_config(options, *engine);
  set_access(options, std::move(port.keys), port.is_local, config);
  warn_of_missing_template(*engine);
  if (engine->model_info().embedding_size == 0) {
    log_info("[server] sampling defaults: {}",
             describe(engine->sampling_defaults(SamplingFallback::kChat)));
  }
  const std::unique_ptr<server::EngineApi> api = server::make_engine_api(*engine);
  server::Service service(*api, config);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<http::Server> transport,
                         start_transport(options, port, service));
  service.set_transport(transport.get());
  std::optional<PublishedServer> published;
  if (engine->model_info().embedding_size == 0 && !is_supervised()) {
    ServerRecord record = server_record(options, *transport);
    const std::string path = model_path(options.engine.model);
    for (const std::string& name : config.model_names) record.models.push_back({name, path});
    published.emplace(record);
  }
  announce(options, config, *transport, port.is_local);
  wait_for_interrupt(service, *transport);

  published.reset();
  drain(options, service, *transport);
  service.stop();  // before the transport is destroyed, because workers read it for /metrics
  transport.reset();
  engine.reset();
  return kExitOk;
}

// Prints the memory that the model would take.
Result<int> print_plan(const ServeOptions& options, int64_t freed_bytes) {
  const Result<MemoryNeed> need = plan_memory_need(options.engine, freed_bytes);
  const bool is_short = need.status().code() == StatusCode::kResourceExhausted;
  if (!need.ok() && !is_short) return need.status();
  JsonWriter json;
  json.begin_object();
  if (is_short) {
    json.field("too_little_memory", std::string_view(engine_message(need.status())));
  } else {
    json.field("is_on_gpu", need->is_on_gpu);
    json.field("num_bytes", need->num_bytes);
    json.field("least_free_bytes", need->least_free_bytes);
    json.field("free_bytes", need->free_bytes);
  }
  json.end_object();
  write_stdout(json.text() + "\n");
  return is_short ? kExitFailure : kExitOk;
}

}  // namespace

Command serve_command() {
  const auto options = std::make_shared<ServeOptions>();
  const auto models = std::make_shared<ModelsOptions>();
  const auto plan_only = std::make_shared<bool>(false);
  const auto plan_freed_bytes = std::make_shared<int64_t>(0);
  Command command;
  command.name = "serve";
  command.summary = "Serve models over HTTP with the APIs of OpenAI, Anthropic and Ollama";
  command.example =
      "  quire serve ~/models/llama --api-key-file keys.txt\n"
      "  quire serve --models-dir ~/models --sleep-idle-seconds 600\n"
      "  curl http://127.0.0.1:8000/v1/models";
  add_serve_flags(command.flags, options.get());
  command.flags.toggle("--plan-only", plan_only.get(),
                       "Print the memory that the model would take, as JSON, and exit");
  command.flags.bytes("--plan-freed-bytes", plan_freed_bytes.get(),
                      "With --plan-only: count this memory of other programs as free");
  command.flags.observe([models](const std::string& name, std::string_view value) {
    models->given.emplace_back(name, value);
  });
  add_models_flags(command.flags, models.get());
  command.positional = model_argument(&options->engine, MissingModel::kIsPulled);
  command.positional->excess = "--models-dir DIR or --models FILE serves several";
  command.check = [options, models, plan_only, plan_freed_bytes](Complaints& complaints) {
    check_serve(*options, complaints);
    check_models_flags(*options, *models, complaints);
    if (*plan_freed_bytes != 0 && !*plan_only) {
      complaints.add("--plan-freed-bytes: expected --plan-only with it");
    }
  };
  command.run = [options, models, plan_only, plan_freed_bytes, log = command.log]() -> Result<int> {
    if (models->is_set()) return run_supervisor(*options, *models, *log);
    if (options->engine.model.empty()) {
      DefaultModel chosen = default_model();
      log_info("[server] {}", chosen.note);
      options->engine.model = std::move(chosen.model);
    }
    if (*plan_only) return print_plan(*options, *plan_freed_bytes);
    QUIRE_RETURN_IF_ERROR(pull_missing_model(options->engine));
    return run(*options);
  };
  return command;
}

}  // namespace quire::cli

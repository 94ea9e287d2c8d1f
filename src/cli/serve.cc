#include "cli/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/build_info.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/machine.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/running_servers.h"
#include "cli/serve_models.h"
#include "engine/engine_internals.h"
#include "engine/sampling_defaults.h"
#include "hub/cache/model_cache.h"
#include "server/access_control.h"
#include "server/conversation_prompt.h"
#include "server/http/client_address.h"
#include "server/http/listen.h"
#include "server/http/server.h"
#include "server/openai/conversation.h"
#include "server/service.h"
#include "server/structured_output.h"
#include "server/tools/dialect_choice.h"
#include "server/tools/output_parser.h"
#include "server/transit_memory.h"
#include "start/embedded.h"
#include "start/gguf_files.h"
#include "start/kv_event_sources.h"
#include "start/memory_need.h"
#include "start/model_files.h"
#include "start/node_setup.h"

namespace quire::cli {
namespace {

// Embeddings take one step or a few, and clients send 1,000 texts or more at once.
constexpr int kMaxQueuedGenerations = 512;
constexpr int kMaxQueuedEmbeddings = 4096;

// Rejects a directory among the names: --served-model-name takes several values, as in vLLM, so a
// model directory after it would be taken as a name.
Status check_model_names(const ServeOptions& options) {
  const std::vector<std::string>& names = options.service.model_names;
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name->empty()) {
      return invalid_argument("--served-model-name: expected a name, got an empty one");
    }
    if (std::find(names.begin(), name, *name) != name) {
      return invalid_argument(fmt::format(
          "--served-model-name: got {} twice, expected a different name each time", *name));
    }
  }
  if (!options.engine.model.empty()) return {};
  for (const std::string& name : names) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) continue;
    return invalid_argument(
        fmt::format("--served-model-name: got the directory {}, expected a name; to serve that "
                    "directory put it first: quire serve {} …",
                    name, name));
  }
  return {};
}

void check_names(const ServeOptions& options, Complaints& complaints) {
  for (const std::string& origin : options.service.allowed_origins) {
    if (server::can_be_origin(origin)) continue;
    complaints.add(
        fmt::format("--allowed-origins: got '{}', expected '*' or an origin in lower case without "
                    "a path, such as https://example.com",
                    origin));
  }
  for (const std::string& host : options.service.allowed_hosts) {
    if (server::can_be_host(host)) continue;
    complaints.add(
        fmt::format("--allowed-hosts: got '{}', expected '*' or a name without scheme and port, "
                    "such as example.com",
                    host));
  }
}

void check_sizes(const ServeOptions& options, Complaints& complaints) {
  if (options.max_request_bytes < 1) {
    complaints.add("--max-request-bytes: got 0, expected at least 1");
  }
  if (options.max_tokenize_bytes < 1) {
    complaints.add("--max-tokenize-bytes: got 0, expected at least 1");
  }
  const bool sets_stored_bytes = options.max_stored_response_bytes !=
                                 static_cast<int64_t>(server::ResponseStoreLimits().max_bytes);
  if (sets_stored_bytes && options.service.stored_responses.max_responses == 0) {
    complaints.add("--max-stored-response-bytes: expected --max-stored-responses with it");
  }
  if (options.max_total_request_bytes < options.max_request_bytes) {
    complaints.add("expected --max-total-request-bytes to be at least --max-request-bytes");
  }
}

void check_address(const http::ServerConfig& transport, Complaints& complaints) {
  if (transport.host.empty()) {
    complaints.add("--host: got '', expected an address; 0.0.0.0 listens on all interfaces");
  }
  if (transport.ssl_certfile.empty() != transport.ssl_keyfile.empty()) {
    complaints.add("expected --ssl-certfile and --ssl-keyfile together");
  }
  const Result<http::Proxies> proxies = http::Proxies::create(transport.trusted_proxies);
  if (!proxies.ok()) complaints.add(proxies.status());
  if (transport.uds.empty()) return;
  const bool knows_clients = proxies.ok() && proxies->trusts("unix");
  if (transport.limits.max_connections_per_peer > 0 && !knows_clients) {
    complaints.add(
        "expected --uds or --max-connections-per-peer, not both: a Unix socket's clients have no "
        "address, unless --trusted-proxies unix names one");
  }
  const http::ServerConfig unset;
  if (transport.host != unset.host || transport.port != unset.port) {
    complaints.add("expected --uds, or --host and --port, not both");
  }
}

std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.insert(names.begin(), {"auto", "none"});
  return names;
}

void add_network_flags(FlagSet& flags, ServeOptions* options) {
  http::ServerConfig& transport = options->transport;
  flags.begin_group("Network");
  flags.text("--host", "ADDRESS", &transport.host, "Address to listen on");
  flags.number("--port", &transport.port, {.min = 0, .max = 65535}, "Port; 0: any free one");
  flags.file("--uds", &transport.uds, "Listen on this Unix socket instead of --host and --port");
  flags.file("--ssl-certfile", &transport.ssl_certfile,
             "TLS certificate (PEM); read again when it changes");
  flags.file("--ssl-keyfile", &transport.ssl_keyfile, "Private key of the TLS certificate (PEM)");
  flags.number("--max-connections", &transport.limits.max_connections, {.min = 1, .max = 1 << 20},
               "Most open connections");
  flags.number("--max-connections-per-peer", &transport.limits.max_connections_per_peer,
               {.min = 0, .max = 1 << 20}, "Most open connections from one address; 0: no limit");
  flags.texts("--trusted-proxies", "CIDR", &transport.trusted_proxies,
              "Proxies whose X-Forwarded-For names the client: addresses, networks or 'unix'; "
              "separated by commas, or repeated");
  flags.bytes("--max-request-bytes", &options->max_request_bytes, "Largest request body");
  flags.bytes("--max-total-request-bytes", &options->max_total_request_bytes,
              "Largest sum of request bodies that are not parsed yet");
  flags.texts("--allowed-origins", "ORIGIN", &options->service.allowed_origins,
              "Web origins whose pages may send requests (CORS); '*': all; may be repeated");
  flags.texts("--allowed-hosts", "NAME", &options->service.allowed_hosts,
              "Names allowed in the Host field, besides addresses and localhost; '*': all; may be "
              "repeated");
  add_setting(flags, &options->engine, "kv_events_config");
}

void add_access_flags(FlagSet& flags, ServeOptions* options) {
  server::AdmissionConfig& admission = options->service.admission;
  flags.begin_group("Access");
  flags.texts("--api-key", "KEY", &options->api_keys,
              "Key that every route but /health, /ready and /ping needs; may be repeated");
  flags.file("--api-key-file", &options->api_key_file, "File with more keys, one per line");
  flags.number("--max-num-queued-reqs", &options->max_num_queued_reqs, {.min = 0, .max = 1 << 20},
               "Most sequences that may wait to run; further requests get 429");
  flags.last().default_text =
      fmt::format("{}; {} for a model that embeds", kMaxQueuedGenerations, kMaxQueuedEmbeddings);
  flags.number("--max-num-queued-tokens", &options->max_num_queued_tokens,
               {.min = 0, .max = 1 << 30}, "Most prompt tokens that may wait; 0: no limit");
  flags.bytes("--max-tokenize-bytes", &options->max_tokenize_bytes,
              "Largest text of /tokenize and /detokenize");
  server::ResponseStoreLimits& stored = options->service.stored_responses;
  flags.number("--max-stored-responses", &stored.max_responses, {.min = 0, .max = 1 << 20},
               "Responses of /v1/responses to keep for later requests; 0: none");
  flags.bytes("--max-stored-response-bytes", &options->max_stored_response_bytes,
              "Most memory of stored responses");
  flags.number("--max-concurrency-per-key", &admission.max_concurrency_per_key,
               {.min = 0, .max = 1 << 20},
               "Most sequences that run or wait for one key; 0: no limit");
  flags.toggle("--allow-request-priority", &options->service.allow_request_priority,
               "Use the priority field of requests, which is otherwise ignored");
  flags.number("--drain-timeout", &options->drain_timeout, {.min = 0, .max = 86400},
               "Seconds that running requests get when the server stops");
}

void add_response_flags(FlagSet& flags, ServeOptions* options) {
  flags.begin_group("Responses");
  flags.texts("--served-model-name", "NAME", &options->service.model_names,
              "Name or names of the model in requests and responses; without it, the directory's");
  flags.last().takes_several = true;
  add_chat_flags(flags, &options->engine);
  add_setting(flags, &options->engine, "generation_config");
  flags.choice("--tool-call-parser", with_auto(server::tool_call_parser_names()),
               &options->tool_call_parser, "Format of the model's tool calls");
  flags.choice("--reasoning-parser", with_auto(server::reasoning_parser_names()),
               &options->reasoning_parser, "Format of the model's reasoning");
  flags.toggle("--generic-tools", &options->generic_tools,
               "Write tools into the prompt if the model's chat template has no place for them");
  flags.number("--num-workers", &options->service.num_workers, {.min = 1, .max = 1024},
               "Threads that parse and tokenize, and as many that write responses");
  flags.number("--num-grammar-threads", &options->service.num_grammar_threads,
               {.min = 1, .max = 1024}, "Threads that compile grammars");
  flags.number("--num-io-threads", &options->transport.num_threads, {.min = 1, .max = 256},
               "Threads that read and write sockets");
}

using namespace std::chrono_literals;

// The main thread checks every kTick whether to stop, and every kTicksPerCheck ticks whether the
// engine makes progress.
constexpr auto kTick = 100ms;
constexpr int kTicksPerCheck = 10;
// Time for clients to receive the notice that their requests were cancelled.
constexpr auto kCancelNoticeTimeout = 2s;

// Sets the dialects in which the model writes its tool calls and its reasoning, and logs them.
void choose_dialects(const ServeOptions& options, const Engine& engine,
                     server::ServiceConfig& config) {
  server::DialectChoices chosen =
      server::choose_dialects(options.tool_call_parser, options.reasoning_parser,
                              engine.chat_template(), EngineInternals::response_template(engine));
  server::RequestDefaults defaults;
  defaults.chat_template = engine.chat_template();
  const bool ignores_tools = server::template_ignores(defaults, "tools");
  config.has_generic_tools = options.generic_tools && ignores_tools;
  if (options.generic_tools && !ignores_tools) {
    log_warning("[server] --generic-tools has no effect: {}",
                defaults.chat_template.empty() ? "the model has no chat template"
                                               : "the chat template has its own tools");
  }
  if (config.has_generic_tools && options.tool_call_parser == "auto") {
    chosen.calls = {.name = std::string(server::kGenericDialect), .reason = "--generic-tools"};
  }
  log_info("[server] tool calls: {}; reasoning: {}", chosen.calls.description(),
           chosen.reasoning.description());
  config.lacks_dialect = options.tool_call_parser == "auto" && chosen.calls.is_none() &&
                         !defaults.chat_template.empty() && !ignores_tools;
  if (config.lacks_dialect) {
    log_warning(
        "[server] the chat template has tools, but the format of its calls is not known: requests "
        "with tools are refused; --tool-call-parser NAME names the format");
  }
  config.tool_call_parser = std::move(chosen.calls.name);
  config.call_template = std::move(chosen.calls.checkpoint_template);
  config.reasoning_parser = std::move(chosen.reasoning.name);
  config.reasoning_template = std::move(chosen.reasoning.checkpoint_template);
}

// The name of a GGUF file's mixture of types, for Ollama's clients; empty for other models.
std::string quantization_level(const std::string& model) {
  if (is_embedded(model)) return "";
  const auto found = hub::find_model(model, hub::Needs::kWeights);
  if (!found.ok() || !is_gguf_file(found->directory)) return "";
  const auto gguf = GgufModel::open(found->directory);
  return gguf.ok() ? gguf_mixture_name(*gguf) : "";
}

// Takes the environment variables by which a vLLM chooses the hashes in its KV events.
Result<EngineConfig> with_block_hashes_of_environment(EngineConfig config) {
  if (const char* seed = std::getenv("PYTHONHASHSEED")) config.block_hash_seed = seed;
  constexpr char kInts[] = "VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES";
  const std::string_view ints = std::getenv(kInts) == nullptr ? "1" : std::getenv(kInts);
  if (ints != "0" && ints != "1") return unexpected(ints, fmt::format("{} to be 0 or 1", kInts));
  config.int_block_hashes = ints == "1";
  return config;
}

// `is_local`: only this machine can reach the server.
server::ServiceConfig service_config(const ServeOptions& options, server::ApiKeys keys,
                                     const Engine& engine, bool is_local) {
  server::ServiceConfig config = options.service;
  if (config.model_names.empty()) {
    config.model_names = {engine.model_info().name};
    config.model_path = options.engine.model;  // clients of other servers send the path as the name
  }
  set_access(options, std::move(keys), is_local, config);
  config.admission.max_num_seqs = engine.model_info().max_num_running();
  if (options.max_num_queued_reqs >= 0) {
    config.admission.max_num_queued_reqs = options.max_num_queued_reqs;
  } else {
    config.admission.max_num_queued_reqs =
        engine.model_info().embedding_size > 0 ? kMaxQueuedEmbeddings : kMaxQueuedGenerations;
  }
  config.admission.max_num_queued_tokens = options.max_num_queued_tokens;
  config.quantization_level = quantization_level(options.engine.model);
  config.max_tokenize_bytes = static_cast<size_t>(options.max_tokenize_bytes);
  config.stored_responses.max_bytes = static_cast<size_t>(options.max_stored_response_bytes);
  choose_dialects(options, engine, config);
  config.constraints = server::make_constraint_compiler(engine);
  config.tensor_parallel_size = options.engine.tensor_parallel_size;
  config.kv_event_sources = EngineInternals::kv_event_sources(engine);
  return config;
}

http::Limits transport_limits(const ServeOptions& options) {
  http::Limits limits = options.transport.limits;
  limits.max_body_bytes = static_cast<size_t>(options.max_request_bytes);
  limits.max_total_body_bytes = static_cast<size_t>(options.max_total_request_bytes);
  return limits;
}

// Whether a server of several models started this process. It waits for the line with the address,
// and clients reach the model only through it.
bool is_supervised() {
  return std::getenv(kSupervised) != nullptr;
}

// The record by which `quire chat` finds this server.
ServerRecord server_record(const ServeOptions& options, const server::ServiceConfig& config,
                           const http::Server& transport) {
  ServerRecord record;
  record.pid = ::getpid();
  http::ServerConfig reached = options.transport;
  if (reached.host == "0.0.0.0") reached.host = "127.0.0.1";
  if (reached.host == "::") reached.host = "::1";
  if (reached.uds.empty()) {
    record.address.url = address(reached, transport);
  } else {
    record.address.unix_socket = canonical_path(reached.uds).string();
  }
  const std::string path = model_path(options.engine.model);
  for (const std::string& name : config.model_names) record.models.push_back({name, path});
  return record;
}

void announce(const ServeOptions& options, const server::ServiceConfig& config,
              const http::Server& transport, bool is_local) {
  log_info("[server] API keys: {}",
           config.keys.empty() ? "none" : std::to_string(config.keys.size()));
  log_info("[server] {}", describe(plan_transit_memory(transport_limits(options), config)));
  warn_of_open_access(options, config, is_local);
  const std::string& name = config.model_names.front();
  const std::string url = address(options.transport, transport);
  if (logs_messages() && !is_supervised()) {
    log_event(LogLevel::kInfo, "[server] serving", {{"model", name}, {"url", url}});
  } else {
    write_stdout(fmt::format("serving {} at {}\n", name, url));
  }
}

void warn_of_missing_template(const Engine& engine) {
  // Without a tokenizer the server handles no text at all, which the log already says.
  if (!engine.has_tokenizer() || !engine.chat_template().empty()) return;
  if (engine.model_info().embedding_size > 0) return;  // it does not generate
  log_warning(
      "[server] the model has no usable chat template: /v1/chat/completions returns 400; set "
      "--chat-template FILE");
}

void warn_of_readable_keys(const ServeOptions& options) {
  for (const std::string& path : {options.api_key_file, options.transport.ssl_keyfile}) {
    if (!server::others_may_read(path)) continue;
    log_warning("[server] every user of this machine may read the keys in {0}; run chmod 600 {0}",
                path);
  }
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

// Fails before the model is read if the server could not even start its event loops.
Status check_descriptor_limit() {
  constexpr int64_t kLeast = 64;
  const int64_t limit = raise_descriptor_limit();
  if (limit >= kLeast) return {};
  return unavailable(
      fmt::format("[server] the limit of open files is {} (ulimit -n), expected at least {}; raise "
                  "it (systemd: LimitNOFILE, docker: --ulimit nofile)",
                  limit, kLeast));
}

void wait_for_interrupt(server::Service& service, const http::Server& transport) {
  server::TrimSchedule schedule;
  for (int tick = 1; !CancelScope::interrupted(); ++tick) {
    std::this_thread::sleep_for(kTick);
    if (tick % kTicksPerCheck != 0) continue;
    service.check_progress();
    trim_heap_if_due(service, transport, schedule);
  }
}

// Runs the ranks of a node that does not serve. An interrupt often reaches all nodes at once, so
// node 0 gets the time to finish its requests. Until the nodes have met and loaded, should_stop is
// not called, and an interrupt ends the program at once.
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
  QUIRE_ASSIGN_OR_RETURN(const EngineConfig engine_config,
                         with_block_hashes_of_environment(options.engine));
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, load_engine(engine_config));
  // Up to here a signal ends the program at once: reading keys, connecting nodes and loading may
  // block.
  const CancelScope scope;
  const server::ServiceConfig config =
      service_config(options, std::move(port.keys), *engine, port.is_local);
  warn_of_missing_template(*engine);
  if (engine->model_info().embedding_size == 0) {
    log_info("[server] sampling defaults: {}",
             describe(engine->sampling_defaults(SamplingFallback::kChat)));
  }
  const std::unique_ptr<server::EngineApi> api = server::make_engine_api(*engine);
  server::Service service(*api, config);
  QUIRE_RETURN_IF_ERROR(http::start_listening(options.transport, port.sockets));
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<http::Server> transport,
      http::Server::start(
          transport_config(options), std::move(port.sockets),
          [&](http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
            service.handle(std::move(request), std::move(exchange));
          },
          service.hooks()));
  service.set_transport(transport.get());
  std::optional<PublishedServer> published;
  if (engine->model_info().embedding_size == 0 && !is_supervised()) {
    published.emplace(server_record(options, config, *transport));
  }
  announce(options, config, *transport, port.is_local);
  wait_for_interrupt(service, *transport);

  published.reset();
  service.close();
  const int num_running = service.num_running();
  log_info("[server] shutting down{}",
           num_running == 0 ? ""
                            : fmt::format("; waiting at most {} s for {} running requests",
                                          options.drain_timeout, num_running));
  if (!transport->drain(std::chrono::seconds(options.drain_timeout))) {
    if (const int num_left = service.num_running(); num_left > 0) {
      log_warning("[server] drain timeout reached; cancelling {} running requests", num_left);
    }
    service.cancel();
    transport->drain(kCancelNoticeTimeout);
  }
  service.stop();  // before the transport is destroyed: /metrics reads it on a worker thread
  transport.reset();
  engine.reset();
  return kExitOk;
}

// Prints the memory that the model would take.
Result<int> print_plan(const ServeOptions& options) {
  const Result<MemoryNeed> need = plan_memory_need(options.engine);
  const bool is_short = need.status().code() == StatusCode::kResourceExhausted;
  if (!need.ok() && !is_short) return need.status();
  JsonWriter json;
  json.begin_object();
  if (is_short) {
    json.field("too_little_memory", std::string_view(engine_message(need.status())));
  } else {
    json.field("is_on_gpu", need->is_on_gpu);
    json.field("num_bytes", need->num_bytes);
    json.field("free_bytes", need->free_bytes);
  }
  json.end_object();
  write_stdout(json.text() + "\n");
  return is_short ? kExitFailure : kExitOk;
}

}  // namespace

void add_serve_flags(FlagSet& flags, ServeOptions* options) {
  add_network_flags(flags, options);
  add_access_flags(flags, options);
  add_response_flags(flags, options);
  add_engine_flags(flags, &options->engine, SeedFlag::kOfEngine);
  flags.toggle("--headless", &options->headless,
               "Refuse to be node 0; vLLM starts the other nodes with it");
}

Result<OpenPort> open_port(const ServeOptions& options) {
  OpenPort port;
  QUIRE_ASSIGN_OR_RETURN(port.keys,
                         server::ApiKeys::create(options.api_keys, options.api_key_file));
  QUIRE_RETURN_IF_ERROR(http::Server::check(options.transport));
  QUIRE_RETURN_IF_ERROR(check_descriptor_limit());
  warn_of_readable_keys(options);
  QUIRE_ASSIGN_OR_RETURN(port.sockets, http::bind_to(options.transport));
  port.is_local = http::are_local(port.sockets);
  return port;
}

void set_access(const ServeOptions& options, server::ApiKeys keys, bool is_local,
                server::ServiceConfig& config) {
  config.keys = std::move(keys);
  const bool is_loopback = is_local && options.transport.uds.empty();
  config.checks_host = !config.allowed_hosts.empty() || (config.keys.empty() && is_loopback);
  config.version = version();
  config.build = fmt::format("{} {}", version(), compiler());
  config.started_at = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
}

http::ServerConfig transport_config(const ServeOptions& options) {
  http::ServerConfig config = options.transport;
  config.limits = transport_limits(options);
  return config;
}

std::string address(const http::ServerConfig& config, const http::Server& transport) {
  if (!config.uds.empty()) return "unix:" + config.uds;
  const bool is_ipv6 = config.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", config.ssl_certfile.empty() ? "http" : "https",
                     is_ipv6 ? "[" + config.host + "]" : config.host, transport.port());
}

void warn_of_open_access(const ServeOptions& options, const server::ServiceConfig& config,
                         bool is_local) {
  if (config.keys.empty() && std::getenv("VLLM_API_KEY") != nullptr) {
    log_warning(
        "[server] VLLM_API_KEY is ignored, so requests need no key; --api-key-file sets keys");
  }
  if (config.keys.empty() && !is_local) {
    log_warning(
        "[server] --host {} accepts other machines, and requests need no key; --api-key-file sets "
        "keys",
        options.transport.host);
  }
}

void check(const ServeOptions& options, Complaints& complaints) {
  complaints.add(check_model_names(options));
  complaints.add(server::ApiKeys::create(options.api_keys, "").status());
  if (options.service.admission.max_concurrency_per_key > 0 && options.api_keys.empty() &&
      options.api_key_file.empty()) {
    complaints.add("--max-concurrency-per-key: expected --api-key or --api-key-file with it");
  }
  if (!options.engine.enable_prefix_caching && !options.engine.kv_events_config.empty()) {
    complaints.add(
        "--kv-events-config needs the prefix cache; leave out --no-enable-prefix-caching");
  }
  check_sizes(options, complaints);
  check_address(options.transport, complaints);
  check_names(options, complaints);
}

Command serve_command() {
  const auto options = std::make_shared<ServeOptions>();
  const auto models = std::make_shared<ModelsOptions>();
  const auto plan_only = std::make_shared<bool>(false);
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
  command.flags.observe([models](const std::string& name, std::string_view value) {
    models->given.emplace_back(name, value);
  });
  add_models_flags(command.flags, models.get());
  command.positional = model_argument(&options->engine, MissingModel::kIsPulled);
  command.check = [options, models](Complaints& complaints) {
    check(*options, complaints);
    check(*options, *models, complaints);
  };
  command.run = [options, models, plan_only, log = command.log]() -> Result<int> {
    if (models->is_set()) return run_supervisor(*options, *models, *log);
    if (options->engine.model.empty()) {
      DefaultModel chosen = default_model();
      log_info("[server] {}", chosen.note);
      options->engine.model = std::move(chosen.model);
    }
    if (*plan_only) return print_plan(*options);
    QUIRE_RETURN_IF_ERROR(pull_missing_model(options->engine));
    return run(*options);
  };
  return command;
}

}  // namespace quire::cli

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "base/log.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/load_engine.h"
#include "cli/output.h"
#include "cli/version.h"
#include "server/cors.h"
#include "server/hosts.h"
#include "server/http/listen.h"
#include "server/http/server.h"
#include "server/service.h"
#include "server/structured_output.h"
#include "server/tools/answer_parser.h"

namespace quire::cli {
namespace {

using namespace std::chrono_literals;

// How often the main thread looks whether it is to stop, and whether the engine makes progress.
constexpr auto kTick = 100ms;
constexpr int kTicksPerCheck = 10;
// For clients to hear that their answers were cancelled.
constexpr auto kLastWords = 2s;

struct Options {
  EngineConfig engine;
  std::string model_dir;  // the same as engine.model, named without a flag
  http::ServerConfig transport;
  server::ServiceConfig service;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::string tool_call_parser = "auto";
  std::string reasoning_parser = "auto";
  int max_num_queued_tokens = static_cast<int>(server::GateConfig().max_num_queued_tokens);
  int64_t max_request_bytes = 32 << 20;
  int64_t max_total_request_bytes = 512 << 20;
  int drain_timeout = 30;  // seconds
};

Status take_model_dir(Options& options) {
  std::string& model = options.engine.model;
  if (options.model_dir.empty()) return {};
  if (!model.empty() && model != options.model_dir) {
    return invalid_argument(
        fmt::format("expected one model, got {} and --model {}", options.model_dir, model));
  }
  model = options.model_dir;
  return {};
}

// As in vLLM, a directory behind the names is one of them.
Status check_model_names(const Options& options) {
  if (std::ranges::find(options.service.model_names, "") != options.service.model_names.end()) {
    return invalid_argument("--served-model-name: expected a name, got an empty one");
  }
  if (!options.engine.model.empty()) return {};
  for (const std::string& name : options.service.model_names) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) continue;
    return invalid_argument(
        fmt::format("--served-model-name: {} is taken for a name and is a directory; where it is "
                    "the model, expected it first: quire serve {} …",
                    name, name));
  }
  return {};
}

// Flags that could never do anything.
Status check_effect(const Options& options) {
  const server::ServiceConfig& service = options.service;
  if (options.max_request_bytes < 1) {
    return invalid_argument("--max-request-bytes: expected at least 1; got 0: no call has a body");
  }
  if (service.gate.max_concurrency_per_key > 0 && options.api_keys.empty() &&
      options.api_key_file.empty()) {
    return invalid_argument(
        "expected --api-key or --api-key-file beside --max-concurrency-per-key");
  }
  if (!options.transport.unix_socket_path.empty() &&
      options.transport.limits.max_connections_per_peer > 0) {
    return invalid_argument(
        "expected --uds or --max-connections-per-peer, not both: a Unix socket's peers have no "
        "address");
  }
  for (const std::string& origin : service.allowed_origins) {
    if (server::can_be_origin(origin)) continue;
    return invalid_argument(fmt::format(
        "--allowed-origins: got '{}', expected '*' or what a browser says, in lower case and "
        "without a path: https://example.com",
        origin));
  }
  for (const std::string& host : service.allowed_hosts) {
    if (server::can_be_host(host)) continue;
    return invalid_argument(fmt::format(
        "--allowed-hosts: got '{}', expected '*' or a name without scheme and port: example.com",
        host));
  }
  return {};
}

Status check(const Options& options) {
  QUIRE_RETURN_IF_ERROR(check_model_names(options));
  QUIRE_RETURN_IF_ERROR(check_effect(options));
  QUIRE_RETURN_IF_ERROR(server::ApiKeys::create(options.api_keys, "").status());
  const http::ServerConfig& transport = options.transport;
  if (transport.host.empty()) {
    return invalid_argument("expected --host to name an address; 0.0.0.0 is all of this machine");
  }
  if (transport.tls_certificate.empty() != transport.tls_key.empty()) {
    return invalid_argument("expected --ssl-certfile and --ssl-keyfile together");
  }
  if (options.max_total_request_bytes < options.max_request_bytes) {
    return invalid_argument(
        "expected --max-total-request-bytes to be no less than --max-request-bytes");
  }
  const bool is_elsewhere =
      transport.host != http::ServerConfig().host || transport.port != http::ServerConfig().port;
  if (!transport.unix_socket_path.empty() && is_elsewhere) {
    return invalid_argument("expected --uds, or --host and --port, not both");
  }
  return {};
}

// "auto" is what fits the model's chat template, "none" is none.
std::string resolve_parser(const std::string& wanted, const std::string& fitting) {
  if (wanted == "none") return "";
  return wanted == "auto" ? fitting : wanted;
}

// `is_local`: only this machine can reach the server.
server::ServiceConfig service_config(const Options& options, server::ApiKeys keys,
                                     const Engine& engine, bool is_local) {
  server::ServiceConfig config = options.service;
  if (config.model_names.empty()) {
    config.model_names = {engine.model_info().name};
    config.model_path = options.engine.model;  // what clients of other servers say
  }
  config.keys = std::move(keys);
  const bool is_loopback = is_local && options.transport.unix_socket_path.empty();
  config.checks_host = !config.allowed_hosts.empty() || (config.keys.empty() && is_loopback);
  config.gate.max_num_seqs = engine.model_info().max_num_seqs;
  config.gate.max_num_queued_tokens = options.max_num_queued_tokens;
  config.tool_call_parser = resolve_parser(options.tool_call_parser,
                                           server::detect_tool_call_parser(engine.chat_template()));
  config.reasoning_parser = resolve_parser(options.reasoning_parser,
                                           server::detect_reasoning_parser(engine.chat_template()));
  config.constraints = server::make_constraint_compiler(engine);
  config.version = version();
  config.started_at = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  return config;
}

std::string address(const http::ServerConfig& config, const http::Server& transport) {
  if (!config.unix_socket_path.empty()) return "unix:" + config.unix_socket_path;
  const bool is_ipv6 = config.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", config.tls_certificate.empty() ? "http" : "https",
                     is_ipv6 ? "[" + config.host + "]" : config.host, transport.port());
}

void announce(const Options& options, const server::ServiceConfig& config,
              const http::Server& transport, bool is_local) {
  const auto or_none = [](const std::string& name) { return name.empty() ? "none" : name; };
  log_info("[server] tool calls: {}; reasoning: {}; keys: {}", or_none(config.tool_call_parser),
           or_none(config.reasoning_parser), config.keys.size());
  if (config.keys.empty() && std::getenv("VLLM_API_KEY") != nullptr) {
    log_warning("[server] VLLM_API_KEY is not read, calls need no key: --api-key-file sets some");
  }
  if (config.keys.empty() && !is_local) {
    log_warning("[server] {} may be reached from elsewhere and no --api-key is set",
                options.transport.host);
  }
  write_stdout(fmt::format("serving {} at {}\n", config.model_names.front(),
                           address(options.transport, transport)));
}

void warn_of_missing_template(const Engine& engine) {
  // Without a tokenizer there is no text at all, which the log has said.
  if (engine.tokenizer() == nullptr || !engine.chat_template().empty()) return;
  log_warning(
      "[server] the model has no usable chat template: /v1/chat/completions answers 400; "
      "--chat-template FILE gives one");
}

void wait_for_interrupt(server::Service& service) {
  for (int tick = 1; !CancelScope::interrupted(); ++tick) {
    std::this_thread::sleep_for(kTick);
    if (tick % kTicksPerCheck == 0) service.check_progress();
  }
}

Result<int> run(const Options& options) {
  const CancelScope scope;
  QUIRE_ASSIGN_OR_RETURN(server::ApiKeys keys,
                         server::ApiKeys::create(options.api_keys, options.api_key_file));
  QUIRE_RETURN_IF_ERROR(http::Server::check(options.transport));
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, load_engine(options.engine));
  QUIRE_ASSIGN_OR_RETURN(std::vector<http::ListeningSocket> sockets,
                         http::listen_on(options.transport));
  const bool is_local = http::are_local(sockets);
  const server::ServiceConfig config = service_config(options, std::move(keys), *engine, is_local);
  warn_of_missing_template(*engine);
  const std::unique_ptr<server::EngineApi> api = server::make_engine_api(*engine);
  server::Service service(*api, config);
  http::ServerConfig transport_config = options.transport;
  transport_config.limits.max_body_bytes = static_cast<size_t>(options.max_request_bytes);
  transport_config.limits.max_total_body_bytes =
      static_cast<size_t>(options.max_total_request_bytes);
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<http::Server> transport,
      http::Server::start(
          transport_config, std::move(sockets),
          [&](http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
            service.handle(std::move(request), std::move(exchange));
          },
          service.hooks()));
  service.watch(transport.get());
  announce(options, config, *transport, is_local);
  wait_for_interrupt(service);

  log_info("[server] finishing what is in work, for at most {} s", options.drain_timeout);
  service.close();
  if (!transport->drain(std::chrono::seconds(options.drain_timeout))) {
    log_warning("[server] the time is over: what is still in work is cancelled");
    service.cancel();
    transport->drain(kLastWords);
  }
  service.stop();  // before the transport goes: /metrics asks it, on a worker
  transport.reset();
  engine.reset();
  return kExitOk;
}

std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.insert(names.begin(), {"auto", "none"});
  return names;
}

void add_network_flags(FlagSet& flags, Options* options) {
  http::ServerConfig& transport = options->transport;
  flags.begin_group("Network");
  flags.text("--host", "ADDRESS", &transport.host, "Address to listen at");
  flags.number("--port", &transport.port, {.min = 0, .max = 65535}, "Port; 0: any free one");
  flags.file("--uds", &transport.unix_socket_path,
             "Listen at this Unix socket instead of --host and --port");
  flags.file("--ssl-certfile", &transport.tls_certificate,
             "TLS certificate (PEM); read again when it changes");
  flags.file("--ssl-keyfile", &transport.tls_key, "Private key of the TLS certificate (PEM)");
  flags.number("--max-connections", &transport.limits.max_connections, {.min = 1, .max = 1 << 20},
               "Open connections");
  flags.number("--max-connections-per-peer", &transport.limits.max_connections_per_peer,
               {.min = 0, .max = 1 << 20}, "Open connections from one address; 0: no bound");
  flags.bytes("--max-request-bytes", &options->max_request_bytes, "Largest body of a request");
  flags.bytes("--max-total-request-bytes", &options->max_total_request_bytes,
              "Bodies of all requests that are not parsed yet");
  flags.texts("--allowed-origins", "ORIGIN", &options->service.allowed_origins,
              "Other sites whose pages may call (CORS); '*': all; may be repeated");
  flags.texts("--allowed-hosts", "NAME", &options->service.allowed_hosts,
              "Names in calls' Host, beside addresses and localhost; '*': all; may be repeated");
}

void add_access_flags(FlagSet& flags, Options* options) {
  server::GateConfig& gate = options->service.gate;
  flags.begin_group("Access");
  flags.texts("--api-key", "KEY", &options->api_keys,
              "Key that every route but /health and /ready needs; may be repeated");
  flags.file("--api-key-file", &options->api_key_file, "File with more keys, one a line");
  flags.number("--max-num-queued-reqs", &gate.max_num_queued_reqs, {.min = 0, .max = 1 << 20},
               "Answers that may wait for a place; beyond it: 429");
  flags.number("--max-num-queued-tokens", &options->max_num_queued_tokens,
               {.min = 0, .max = 1 << 30}, "Prompt tokens that may wait; 0: no bound");
  flags.number("--max-concurrency-per-key", &gate.max_concurrency_per_key,
               {.min = 0, .max = 1 << 20}, "Answers in work for one key; 0: no bound");
  flags.toggle("--allow-request-priority", &options->service.allow_request_priority,
               "Heed the priority that calls ask for; else it is ignored");
  flags.number("--drain-timeout", &options->drain_timeout, {.min = 0, .max = 86400},
               "Seconds for what is in work when the server is to stop");
}

void add_answer_flags(FlagSet& flags, Options* options) {
  flags.begin_group("Answers");
  flags.texts("--served-model-name", "NAME", &options->service.model_names,
              "The model's name in calls and answers, or several; without it, the directory's");
  flags.takes_several();
  add_chat_template_flag(flags, &options->engine);
  flags.choice("--tool-call-parser", with_auto(server::tool_call_parser_names()),
               &options->tool_call_parser, "How the model writes tool calls");
  flags.choice("--reasoning-parser", with_auto(server::reasoning_parser_names()),
               &options->reasoning_parser, "How the model marks its reasoning");
  flags.number("--num-workers", &options->service.num_workers, {.min = 1, .max = 1024},
               "Threads that parse and tokenize, and as many that write answers");
  flags.number("--num-grammar-threads", &options->service.num_grammar_threads,
               {.min = 1, .max = 1024}, "Threads that compile grammars");
  flags.number("--num-io-threads", &options->transport.num_threads, {.min = 1, .max = 256},
               "Threads that read and write sockets");
}

}  // namespace

Command serve_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "serve";
  command.summary = "Serve a model over HTTP, as OpenAI's API";
  command.example =
      "  quire serve ~/models/llama --api-key-file keys.txt\n"
      "  curl http://127.0.0.1:8000/v1/models";
  add_network_flags(command.flags, options.get());
  add_access_flags(command.flags, options.get());
  add_answer_flags(command.flags, options.get());
  add_engine_flags(command.flags, &options->engine, SeedFlag::kOfEngine);
  command.positional_name = "DIR";
  command.positional_help = "The model, as --model DIR";
  command.positional = &options->model_dir;
  command.check = [options]() -> Status {
    QUIRE_RETURN_IF_ERROR(take_model_dir(*options));
    return check(*options);
  };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli

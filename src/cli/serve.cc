#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "base/log.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/load_engine.h"
#include "cli/output.h"
#include "cli/serve_options.h"
#include "cli/version.h"
#include "server/http/listen.h"
#include "server/http/server.h"
#include "server/service.h"
#include "server/structured_output.h"
#include "server/tools/output_parser.h"

namespace quire::cli {
namespace {

using namespace std::chrono_literals;

// The main thread checks every kTick whether to stop, and every kTicksPerCheck ticks whether the
// engine makes progress.
constexpr auto kTick = 100ms;
constexpr int kTicksPerCheck = 10;
// Time for clients to receive the notice that their requests were cancelled.
constexpr auto kCancelNoticeTimeout = 2s;

// Resolves "auto" to the parser that fits the model's chat template, and "none" to empty.
std::string resolve_parser(const std::string& wanted, const std::string& fitting) {
  if (wanted == "none") return "";
  return wanted == "auto" ? fitting : wanted;
}

// `is_local`: only this machine can reach the server.
server::ServiceConfig service_config(const ServeOptions& options, server::ApiKeys keys,
                                     const Engine& engine, bool is_local) {
  server::ServiceConfig config = options.service;
  if (config.model_names.empty()) {
    config.model_names = {engine.model_info().name};
    config.model_path = options.engine.model;  // clients of other servers send the path as the name
  }
  config.keys = std::move(keys);
  const bool is_loopback = is_local && options.transport.unix_socket_path.empty();
  config.checks_host = !config.allowed_hosts.empty() || (config.keys.empty() && is_loopback);
  config.admission.max_num_seqs = engine.model_info().max_num_seqs;
  config.admission.max_num_queued_tokens = options.max_num_queued_tokens;
  config.max_tokenize_bytes = static_cast<size_t>(options.max_tokenize_bytes);
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

void announce(const ServeOptions& options, const server::ServiceConfig& config,
              const http::Server& transport, bool is_local) {
  const auto or_none = [](const std::string& name) { return name.empty() ? "none" : name; };
  log_info("[server] tool calls: {}; reasoning: {}; keys: {}", or_none(config.tool_call_parser),
           or_none(config.reasoning_parser), config.keys.size());
  if (config.keys.empty() && std::getenv("VLLM_API_KEY") != nullptr) {
    log_warning("[server] VLLM_API_KEY is ignored, so requests need no key; --api-key-file sets keys");
  }
  if (config.keys.empty() && !is_local) {
    log_warning("[server] --host {} accepts other machines, and requests need no key; "
                "--api-key-file sets keys",
                options.transport.host);
  }
  write_stdout(fmt::format("serving {} at {}\n", config.model_names.front(),
                           address(options.transport, transport)));
}

void warn_of_missing_template(const Engine& engine) {
  // Without a tokenizer the server handles no text at all, which the log already says.
  if (!engine.has_tokenizer() || !engine.chat_template().empty()) return;
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

Result<int> run(const ServeOptions& options) {
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
  service.set_transport(transport.get());
  announce(options, config, *transport, is_local);
  wait_for_interrupt(service);

  service.close();
  log_info("[server] shutting down; waiting at most {} s for {} running requests",
           options.drain_timeout, service.num_running());
  if (!transport->drain(std::chrono::seconds(options.drain_timeout))) {
    log_warning("[server] drain timeout reached; cancelling {} running requests",
                service.num_running());
    service.cancel();
    transport->drain(kCancelNoticeTimeout);
  }
  service.stop();  // before the transport is destroyed: /metrics reads it on a worker thread
  transport.reset();
  engine.reset();
  return kExitOk;
}

}  // namespace

Command serve_command() {
  const auto options = std::make_shared<ServeOptions>();
  Command command;
  command.name = "serve";
  command.summary = "Serve a model over HTTP, as OpenAI's API";
  command.example =
      "  quire serve ~/models/llama --api-key-file keys.txt\n"
      "  curl http://127.0.0.1:8000/v1/models";
  add_serve_flags(command.flags, options.get());
  command.positional_name = "DIR";
  command.positional_help = "The model, as --model DIR";
  command.positional = &options->model_dir;
  command.check = [options] { return settle(*options); };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli

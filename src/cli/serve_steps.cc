#include "cli/serve_steps.h"

#include <unistd.h>

#include <cstdlib>

#include "base/build_info.h"
#include "base/file.h"
#include "base/machine.h"

namespace quire::cli {
namespace {

void warn_of_readable_keys(const ServeOptions& options) {
  for (const std::string& path : {options.api_key_file, options.transport.ssl_keyfile}) {
    if (!server::others_may_read(path)) continue;
    log_warning("[server] every user of this machine may read the keys in {0}; run chmod 600 {0}",
                path);
  }
}

// Fails, before the model is read, if the server could not start its event loops.
Status check_descriptor_limit() {
  constexpr int64_t kLeast = 64;
  const int64_t limit = raise_descriptor_limit();
  if (limit >= kLeast) return {};
  return unavailable(
      fmt::format("[server] the limit of open files is {} (ulimit -n), expected at least {}; raise "
                  "it (systemd: LimitNOFILE, docker: --ulimit nofile)",
                  limit, kLeast));
}

}  // namespace

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

http::Limits transport_limits(const ServeOptions& options) {
  http::Limits limits = options.transport.limits;
  limits.max_body_bytes = static_cast<size_t>(options.max_request_bytes);
  limits.max_total_body_bytes = static_cast<size_t>(options.max_total_request_bytes);
  return limits;
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

ServerRecord server_record(const ServeOptions& options, const http::Server& transport) {
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
  return record;
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

void warn_of_ollamas_variables() {
  struct Variable {
    const char* name;
    std::string_view remedy;
  };
  constexpr Variable kVariables[] = {
      {"OLLAMA_HOST", "--host and --port set the address"},
      {"OLLAMA_KEEP_ALIVE", "with --models-dir or --models, --sleep-idle-seconds unloads models"},
      {"OLLAMA_MODELS", "QUIRE_MODELS or --models-dir names the folder of the models"},
  };
  for (const auto& [name, remedy] : kVariables) {
    if (std::getenv(name) != nullptr) log_warning("[server] {} is ignored; {}", name, remedy);
  }
}

}  // namespace quire::cli

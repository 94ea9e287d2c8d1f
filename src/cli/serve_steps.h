// The steps of `quire serve` that are common to a server of one model and to a supervisor.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cli/running_servers.h"
#include "cli/serve_flags.h"
#include "quire/status.h"
#include "server/access_control.h"
#include "server/http/listen.h"
#include "server/http/server.h"
#include "server/service.h"

namespace quire::cli {

struct OpenPort {
  server::ApiKeys keys;
  std::vector<http::ListeningSocket> sockets;  // refuse connections until start_listening()
  bool is_local = false;                       // only this machine can reach them
};
// Checks the keys, TLS files and limits, warns of readable key files, and binds the address.
Result<OpenPort> open_port(const ServeOptions& options);
// Sets the keys, the version, the start time, and whether Host headers are checked.
void set_access(const ServeOptions& options, server::ApiKeys keys, bool is_local,
                server::ServiceConfig& config);
http::Limits transport_limits(const ServeOptions& options);
http::ServerConfig transport_config(const ServeOptions& options);
std::string address(const http::ServerConfig& config, const http::Server& transport);
// Returns the record by which `quire chat` finds this server, without its models.
ServerRecord server_record(const ServeOptions& options, const http::Server& transport);
void warn_of_open_access(const ServeOptions& options, const server::ServiceConfig& config,
                         bool is_local);
// Warns of variables that configure Ollama's server.
void warn_of_ollamas_variables();

// Starts to accept requests, which `service` handles. The service must outlive the result.
template <class Service>
Result<std::unique_ptr<http::Server>> start_transport(const ServeOptions& options, OpenPort& port,
                                                      Service& service) {
  QUIRE_RETURN_IF_ERROR(http::start_listening(options.transport, port.sockets));
  return http::Server::start(
      transport_config(options), std::move(port.sockets),
      [&service](http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
        service.handle(std::move(request), std::move(exchange));
      },
      service.hooks());
}

// Refuses further requests, and waits for those that run; cancels them after the drain timeout.
template <class Service>
void drain(const ServeOptions& options, Service& service, http::Server& transport) {
  // The time in which clients receive the notice that their requests were cancelled.
  constexpr std::chrono::seconds kNoticeTimeout(2);
  service.close();
  const int num_running = service.num_running();
  log_info("[server] shutting down{}",
           num_running == 0 ? ""
                            : fmt::format("; waiting at most {} s for {} running requests",
                                          options.drain_timeout, num_running));
  if (transport.drain(std::chrono::seconds(options.drain_timeout))) return;
  if (const int num_left = service.num_running(); num_left > 0) {
    log_warning("[server] drain timeout reached; cancelling {} running requests", num_left);
  }
  service.cancel();
  transport.drain(kNoticeTimeout);
}

}  // namespace quire::cli

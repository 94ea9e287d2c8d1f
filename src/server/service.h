// The server's routes on top of an engine: authorization, admission control and handlers.
// Independent of sockets: the transport passes whole requests.
#pragma once

#include <memory>

#include "server/engine_api.h"
#include "server/http/server.h"
#include "server/service_config.h"

namespace quire::server {

class Service {
 public:
  // The engine must outlive stop(). Before the service is destroyed, the engine must have ended or
  // must have delivered its last output.
  Service(EngineApi& engine, ServiceConfig config);
  ~Service();

  void handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange);
  // Hooks for the transport, which check keys before a body is read and write the transport's own
  // refusals as OpenAI errors with the usual headers.
  http::Hooks hooks();
  // Sets the transport whose counters /metrics shows. It must outlive stop().
  void watch(const http::Server* transport);

  // Refuses all later generation requests with 503, and /ready reports it.
  void close();
  // Cancels all running generations: their clients get a 503, and streams end with an error. Takes
  // one engine step, and the time until the clients have received it.
  void cancel();
  // Stops all worker pools. Call it before the engine is destroyed.
  void stop();
  // Logs a stall once, and its end. Call it periodically.
  void check_progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::server

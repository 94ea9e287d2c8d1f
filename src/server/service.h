// The server's routes over an engine: who may call, what is let in, and what answers. Knows
// nothing of sockets: the transport hands it whole requests.
#pragma once

#include <memory>

#include "server/engine_api.h"
#include "server/http/server.h"
#include "server/service_config.h"

namespace quire::server {

class Service {
 public:
  // The engine outlives the service's stop(), and has ended, or has no more to say, before the
  // service is destroyed.
  Service(EngineApi& engine, ServiceConfig config);
  ~Service();

  void handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange);
  // For the transport: keys are checked before a body is read, and its own refusals are written as
  // OpenAI's errors, with the same headers as all answers.
  http::Hooks hooks();
  // For /metrics; set once the transport stands, which must outlive stop().
  void watch(const http::Server* transport);

  // From now on no call for an answer is let in (503), and /ready says so.
  void close();
  // What is still in work is cancelled: answers become 503, streams end in an error. Takes a step
  // of the engine, and until the clients have it.
  void cancel();
  // Nothing is worked on any more. Before the engine is destroyed.
  void stop();
  // Logs a time without progress, once; to be called now and then.
  void check_progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::server

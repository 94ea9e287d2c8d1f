// Whether the engine makes progress: work waits, and no step has ended for too long.
#pragma once

#include <chrono>
#include <mutex>

#include "quire/engine.h"

namespace quire::server {

// What callers are told of an engine that has failed or stands still: whose it is, has no key, and
// needs no more. The log has the details.
Status engine_is_out();

class HealthWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HealthWatch(std::chrono::seconds patience) : patience_(patience) {}

  // unavailable: what the engine says of itself, or that it stands still, with its state. Cheap:
  // asked by every probe, and now and then by the server itself, so that a time without progress
  // is known also where nobody probes.
  Status check(const Status& engine, const EngineStats& stats, Clock::time_point now);

 private:
  const std::chrono::seconds patience_;
  std::mutex mutex_;
  int64_t num_steps_ = -1;
  Clock::time_point last_progress_;
};

}  // namespace quire::server

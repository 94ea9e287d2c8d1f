// Whether there is progress: not where work waits and no step has ended for too long, nor where
// the tasks of a pool of threads do not end.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "quire/engine.h"
#include "server/workers.h"

namespace quire::server {

// The answer where the engine has failed or stands still. It gives no reason, since the caller may
// be anyone, with or without a key; the reason is in the server's log.
Status engine_is_out();

class HealthWatch {
 public:
  using Clock = std::chrono::steady_clock;

  struct NamedPool {
    std::string name;
    const WorkerPool* workers = nullptr;  // outlives this
  };

  explicit HealthWatch(std::chrono::seconds patience, std::vector<NamedPool> pools = {});

  // unavailable: what the engine says of itself, or that it or a pool stands still, with its state.
  // Cheap: asked by every probe, and now and then by the server itself, so that a time without
  // progress is known also where nobody probes.
  Status check(const Status& engine, const EngineStats& stats, Clock::time_point now);

 private:
  struct Progress {
    int64_t num_done = -1;
    Clock::time_point last;
  };
  struct Pool {
    NamedPool named;
    Progress progress;
  };

  Status check_pools(Clock::time_point now);
  // For how long nothing was done, where that is too long.
  std::optional<std::chrono::seconds> stall(Progress& progress, bool has_work, int64_t num_done,
                                            Clock::time_point now) const;

  const std::chrono::seconds patience_;
  std::mutex mutex_;
  Progress steps_;
  std::vector<Pool> pools_;
};

}  // namespace quire::server

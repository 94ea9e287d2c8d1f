// Watches for progress: reports a stall if the engine has requests but has ended no step for too
// long, or if a thread pool has tasks and finishes none. Also measures the rate of generated
// tokens.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quire/engine.h"
#include "server/workers.h"

namespace quire::server {

// The error for clients if the engine, or one of its replicas, has failed or makes no progress. It
// contains no reason, because clients without a key can read it; the server's log has the reason.
Status engine_unavailable(std::optional<size_t> replica = {});

class HealthWatch {
 public:
  using Clock = std::chrono::steady_clock;

  struct Progress {
    int64_t num_done = -1;
    Clock::time_point last;
  };
  struct NamedPool {
    std::string name;
    const WorkerPool* workers = nullptr;  // outlives this
    Progress progress = {};
  };

  explicit HealthWatch(std::chrono::seconds stall_timeout, std::vector<NamedPool> pools = {})
      : stall_timeout_(stall_timeout), pools_(std::move(pools)) {}

  struct Report {
    Status status;       // with the reason, for the log
    Status for_clients;  // engine_unavailable() if `status` is not ok
  };
  // Returns the error of a failed replica, or unavailable with the counters of a replica or pool
  // that makes no progress. Called on every probe, and periodically by the server itself, so that a
  // stall is found even without probes.
  Report check(std::span<const ReplicaState> replicas, Clock::time_point now);

 private:
  Status check_replica(const ReplicaState& replica, Progress& steps, Clock::time_point now) const;
  Status check_pools(Clock::time_point now);
  // Returns the time without progress, if it is at least `stall_timeout_`.
  std::optional<std::chrono::seconds> stall(Progress& progress, bool has_work, int64_t num_done,
                                            Clock::time_point now) const;

  const std::chrono::seconds stall_timeout_;
  std::mutex mutex_;
  std::vector<Progress> steps_;  // by replica
  std::vector<NamedPool> pools_;
};

// Generated tokens per second, between the two latest samples. One thread calls sample(); any
// thread may call per_second().
class TokenRate {
 public:
  using Clock = std::chrono::steady_clock;
  void sample(int64_t num_generated_tokens, Clock::time_point now);
  double per_second() const { return per_second_; }

 private:
  std::optional<Clock::time_point> sampled_at_;  // used only by sample()
  int64_t num_tokens_ = 0;
  std::atomic<double> per_second_ = 0;
};

}  // namespace quire::server

#include "server/health_watch.h"

#include <fmt/format.h>

namespace quire::server {

Status engine_unavailable(std::optional<size_t> replica) {
  return unavailable(
      fmt::format("[server] {} has failed or makes no progress; the server's log has the details",
                  replica ? fmt::format("replica {} of the engine", *replica) : "the engine"));
}

HealthWatch::Report HealthWatch::check(std::span<const ReplicaState> replicas,
                                       Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  steps_.resize(replicas.size());
  Report report;
  // No early return: every timer must be updated.
  if (Status pools = check_pools(now); !pools.ok()) {
    report = {.status = std::move(pools), .for_clients = engine_unavailable()};
  }
  for (size_t r = replicas.size(); r-- > 0;) {  // in reverse: the first failure is reported
    const Status status = check_replica(replicas[r], steps_[r], now);
    if (status.ok()) continue;
    const bool is_only = replicas.size() == 1;
    report.status = is_only ? status
                            : Status(status.code(),
                                     fmt::format("[server] replica {}: {}", r, status.message()));
    report.for_clients = is_only ? engine_unavailable() : engine_unavailable(r);
  }
  return report;
}

Status HealthWatch::check_replica(const ReplicaState& replica, Progress& steps,
                                  Clock::time_point now) const {
  if (!replica.health.ok()) return replica.health;
  const EngineStats& stats = replica.stats;
  const bool has_work = stats.num_running + stats.num_waiting > 0;
  const auto time = stall(steps, has_work, stats.num_steps, now);
  if (!time) return {};
  return unavailable(fmt::format(
      "[server] the engine has ended no step for {} s; {} sequences run, {} wait, {} of {} KV "
      "blocks are free, {} steps were done",
      time->count(), stats.num_running, stats.num_waiting, stats.num_free_blocks,
      stats.num_total_blocks, stats.num_steps));
}

Status HealthWatch::check_pools(Clock::time_point now) {
  Status status;
  for (NamedPool& pool : pools_) {  // no early return: every pool's timer must be updated
    const WorkerPool::Load load = pool.workers->load();
    const auto time = stall(pool.progress, load.num_unfinished > 0, load.num_finished, now);
    if (!time) continue;
    status = unavailable(
        fmt::format("[server] the {} threads have ended no task for {} s; {} tasks are unfinished, "
                    "{} were done",
                    pool.name, time->count(), load.num_unfinished, load.num_finished));
  }
  return status;
}

std::optional<std::chrono::seconds> HealthWatch::stall(Progress& progress, bool has_work,
                                                       int64_t num_done,
                                                       Clock::time_point now) const {
  if (!has_work || num_done != progress.num_done) progress = {.num_done = num_done, .last = now};
  if (now - progress.last < stall_timeout_) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::seconds>(now - progress.last);
}

void TokenRate::sample(int64_t num_generated_tokens, Clock::time_point now) {
  if (sampled_at_ && now > *sampled_at_) {
    const double seconds = std::chrono::duration<double>(now - *sampled_at_).count();
    per_second_ = static_cast<double>(num_generated_tokens - num_tokens_) / seconds;
  }
  sampled_at_ = now;
  num_tokens_ = num_generated_tokens;
}

}  // namespace quire::server

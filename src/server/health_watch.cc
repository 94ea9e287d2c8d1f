#include "server/health_watch.h"

#include <fmt/format.h>

#include <utility>

namespace quire::server {

Status engine_is_out() {
  return unavailable("[server] the engine does not answer; the server's log has the details");
}

HealthWatch::HealthWatch(std::chrono::seconds patience, std::vector<NamedPool> pools)
    : patience_(patience) {
  for (NamedPool& pool : pools) pools_.push_back({.named = std::move(pool), .progress = {}});
}

Status HealthWatch::check(const Status& engine, const EngineStats& stats, Clock::time_point now) {
  if (!engine.ok()) return engine;
  const std::lock_guard lock(mutex_);
  const Status pools = check_pools(now);
  const bool has_work = stats.num_running + stats.num_waiting > 0;
  if (const auto time = stall(steps_, has_work, stats.num_steps, now)) {
    return unavailable(fmt::format(
        "[server] no step has ended for {} s; {} answers run, {} wait, {} of {} KV blocks are "
        "free, {} steps were done",
        time->count(), stats.num_running, stats.num_waiting, stats.num_free_blocks,
        stats.num_total_blocks, stats.num_steps));
  }
  return pools;
}

Status HealthWatch::check_pools(Clock::time_point now) {
  Status status;
  for (Pool& each : pools_) {  // no early return: every pool's timer must be updated
    const WorkerPool::Load load = each.named.workers->load();
    const auto time = stall(each.progress, load.num_unfinished > 0, load.num_finished, now);
    if (!time) continue;
    status = unavailable(
        fmt::format("[server] no task of the {} threads has ended for {} s; {} are unfinished, {} "
                    "were done",
                    each.named.name, time->count(), load.num_unfinished, load.num_finished));
  }
  return status;
}

std::optional<std::chrono::seconds> HealthWatch::stall(Progress& progress, bool has_work,
                                                       int64_t num_done,
                                                       Clock::time_point now) const {
  if (!has_work || num_done != progress.num_done) progress = {.num_done = num_done, .last = now};
  if (now - progress.last < patience_) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::seconds>(now - progress.last);
}

}  // namespace quire::server

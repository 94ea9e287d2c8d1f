#include "server/health_watch.h"

#include <fmt/format.h>

namespace quire::server {

Status engine_is_out() {
  return unavailable("[server] the engine does not answer; the server's log has the details");
}

Status HealthWatch::check(const Status& engine, const EngineStats& stats, Clock::time_point now) {
  if (!engine.ok()) return engine;
  const std::lock_guard lock(mutex_);
  const bool has_work = stats.num_running + stats.num_waiting > 0;
  if (!has_work || stats.num_steps != num_steps_) {
    num_steps_ = stats.num_steps;
    last_progress_ = now;
    return {};
  }
  if (now - last_progress_ < patience_) return {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - last_progress_);
  return unavailable(fmt::format(
      "[server] no step has ended for {} s; {} answers run, {} wait, {} of {} KV blocks are free, "
      "{} steps were done",
      seconds.count(), stats.num_running, stats.num_waiting, stats.num_free_blocks,
      stats.num_total_blocks, stats.num_steps));
}

}  // namespace quire::server

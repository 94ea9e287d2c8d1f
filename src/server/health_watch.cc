#include "server/health_watch.h"

#include <fmt/format.h>

namespace quire::server {

Status engine_unavailable() {
  return unavailable(
      "[server] the engine has failed or makes no progress; the server's log has the details");
}

Status HealthWatch::check(const Status& engine, const EngineStats& stats, Clock::time_point now) {
  if (!engine.ok()) return engine;
  const std::lock_guard lock(mutex_);
  const Status pools = check_pools(now);
  const bool has_work = stats.num_running + stats.num_waiting > 0;
  if (const auto time = stall(steps_, has_work, stats.num_steps, now)) {
    return unavailable(fmt::format(
        "[server] the engine has ended no step for {} s; {} sequences run, {} wait, {} of {} KV "
        "blocks are free, {} steps were done",
        time->count(), stats.num_running, stats.num_waiting, stats.num_free_blocks,
        stats.num_total_blocks, stats.num_steps));
  }
  return pools;
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

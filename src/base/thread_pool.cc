#include "base/thread_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/cpu_topology.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "cpu_relax.h"

namespace quire {
namespace {

// A worker polls for about 50 µs before it sleeps: longer than the gap between two operations of a
// step, and too short to load an idle machine noticeably.
constexpr unsigned kSpins = 2000;

}  // namespace

BoundThread::BoundThread(std::span<const int> cpus) noexcept {
  if (cpus.empty()) return;
  try {
    std::vector<int> before = thread_affinity();
    // The destructor needs the previous affinity.
    const Status bound =
        before.empty()
            ? unavailable("[threads] the kernel does not report the affinity of a thread")
            : set_thread_affinity(cpus);
    if (bound.ok()) {
      before_ = std::move(before);
      return;
    }
    static std::atomic<bool> is_logged = false;  // all threads fail for the same reason
    if (is_logged.exchange(true)) return;
    log_warning("{}; threads are not pinned ({} off does not try)", bound.message(),
                SettingName{"cpu_pinning"});
  } catch (...) {  // no memory
    log_lost_line();
  }
}

BoundThread::~BoundThread() {
  if (before_.empty()) return;
  try {
    const Status restored = set_thread_affinity(before_);
    if (!restored.ok()) log_warning("{}", restored.message());
  } catch (...) {  // no memory
    log_lost_line();
  }
}

ThreadPool::ThreadPool(std::vector<ThreadPlace> places) : places_(std::move(places)) {
  if (places_.empty()) places_.emplace_back();
  QUIRE_CHECK(places_.size() <= kMaxThreads, "[threads] a pool has too many threads");
  for (const ThreadPlace& place : places_) {
    if (std::ranges::find(nodes_, place.node) == nodes_.end()) nodes_.push_back(place.node);
    const auto node = std::ranges::find(nodes_, place.node) - nodes_.begin();
    node_of_.push_back(static_cast<int>(node));
  }
  first_thread_.push_back(0);
  for (size_t node = 0; node < nodes_.size(); ++node) {
    first_thread_.push_back(first_thread_.back() +
                            std::ranges::count(node_of_, static_cast<int>(node)));
  }
  counters_ = std::make_unique<Counter[]>(nodes_.size());
  state_ = places_.size() << kUsedShift;
  // Starting a thread may throw std::system_error or std::bad_alloc. If the exception left the
  // constructor, running threads would be destroyed, which ends the process.
  const int num_threads = static_cast<int>(places_.size());
  try {
    for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
  } catch (const std::exception& error) {
    log_warning("[threads] only {} of {} threads could be started; {}", workers_.size() + 1,
                num_threads, text_of(error));
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  {
    const std::lock_guard lock(mutex_);
    state_.fetch_add(kRegion);
  }
  wake_.notify_all();
  use_more_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::is_used(int thread_idx) const {
  const uint64_t num_used = (state_.load(std::memory_order_seq_cst) & kUsed) >> kUsedShift;
  return static_cast<uint64_t>(thread_idx) < num_used;
}

void ThreadPool::use_threads(int num_threads) {
  const auto wanted = static_cast<uint64_t>(std::clamp(num_threads, 1, this->num_threads()));
  const uint64_t state = state_.load(std::memory_order_relaxed);
  if ((state & kUsed) == wanted << kUsedShift) return;
  {
    const std::lock_guard lock(mutex_);
    state_.store((state & ~kUsed) | wanted << kUsedShift, std::memory_order_seq_cst);
  }
  // Also wakes the threads that are no longer used, so that they move from wake_ to use_more_,
  // where the start of a region does not wake them.
  wake_.notify_all();
  use_more_.notify_all();
}

ThreadPool::Share ThreadPool::share(int node, int64_t count) const {
  if (nodes_.size() == 1) return {0, count};
  const auto idx = static_cast<size_t>(node);
  const int64_t num_threads = first_thread_.back();
  return {count * first_thread_[idx] / num_threads, count * first_thread_[idx + 1] / num_threads};
}

void ThreadPool::run(const std::function<void(int)>& task) {
  const uint64_t before = state_.load(std::memory_order_relaxed);
  const uint64_t used = before & kUsed;
  if (workers_.empty() || used == uint64_t{1} << kUsedShift) return task(0);
  task_ = &task;
  num_ended_.store(0, std::memory_order_relaxed);
  const uint64_t region = before / kRegion + 1;
  state_.store(region * kRegion + kOpen + used, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) {
    // Locking the mutex once orders this wake-up after the sleeping thread's own check.
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  call_task(0);
  const uint64_t num_joined = state_.fetch_and(~kOpen, std::memory_order_acq_rel) & kJoined;
  for (unsigned spins = 0; num_ended_.load(std::memory_order_acquire) < num_joined; ++spins) {
    // With fewer cores than threads the worker needs this core to finish.
    spins % kSpins == kSpins - 1 ? std::this_thread::yield() : cpu_relax();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// No exception may leave a thread while others still use the caller's stack.
void ThreadPool::call_task(int thread_idx) {
  try {
    (*task_)(thread_idx);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadPool::parallel_for(int64_t count, const std::function<void(int64_t)>& body) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  run([&](int) {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
  });
}

void ThreadPool::parallel_for_by_node(int64_t count, const std::function<void(int64_t)>& body) {
  NodeTasks tasks(*this);
  run([&](int thread_idx) { tasks.run(thread_idx, count, body); });
}

// Waits until this thread is in use and a region other than number `seen` has begun, and returns
// the number of that region. nullopt: the pool ends.
std::optional<uint64_t> ThreadPool::wait_for_region(int thread_idx, uint64_t seen) {
  const auto region = [&] { return state_.load(std::memory_order_seq_cst) / kRegion; };
  for (unsigned spins = 0; spins < kSpins; ++spins) {
    if (stopping_) return std::nullopt;
    if (region() != seen && is_used(thread_idx)) return region();
    cpu_relax();
  }
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!is_used(thread_idx)) {
      use_more_.wait(lock, [&] { return stopping_ || is_used(thread_idx); });
      continue;
    }
    num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [&] { return region() != seen || !is_used(thread_idx); });
    num_sleeping_.fetch_sub(1, std::memory_order_relaxed);
    if (region() != seen && is_used(thread_idx)) return region();
  }
  return std::nullopt;
}

// Joins the open region if it uses this thread, and returns its number.
std::optional<uint64_t> ThreadPool::join_region(int thread_idx) {
  uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & kOpen) != 0 &&
         static_cast<uint64_t>(thread_idx) < (state & kUsed) >> kUsedShift) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      return state / kRegion;
    }
  }
  return std::nullopt;
}

void ThreadPool::worker_loop(int thread_idx) {
  const BoundThread bound(places_[static_cast<size_t>(thread_idx)].cpus);
  uint64_t seen = 0;
  while (const std::optional<uint64_t> region = wait_for_region(thread_idx, seen)) {
    seen = *region;
    const std::optional<uint64_t> joined = join_region(thread_idx);
    if (!joined) continue;
    seen = *joined;
    call_task(thread_idx);
    num_ended_.fetch_add(1, std::memory_order_release);
  }
}

NodeTasks::NodeTasks(ThreadPool& pool) : pool_(pool) {
  for (size_t node = 0; node < pool.nodes_.size(); ++node) {
    pool.counters_[node].next.store(0, std::memory_order_relaxed);
  }
}

}  // namespace quire

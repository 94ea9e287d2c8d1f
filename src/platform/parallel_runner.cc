#include "platform/parallel_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/guarded.h"
#include "platform/remote_ranks.h"

namespace quire {
namespace {

// A rank whose step fails releases the other ranks, whose steps wait for it.
StepResult wait_on_rank(const RankRunner& rank) {
  StepResult result;
  const Status thrown = guarded_status("[runner] a step's results are lost", [&] {
    result = rank.runner->wait();
    return Status();
  });
  if (!thrown.ok()) result.error = thrown;
  if (!result.error.ok()) (void)rank.context->join_ranks(result.error);
  return result;
}

// A rank other than 0. Its runner is used by its thread alone.
class RankThread {
 public:
  explicit RankThread(RankRunner rank) : rank_(std::move(rank)) {
    thread_ = std::thread([this] { loop(); });
  }
  ~RankThread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  RankThread(const RankThread&) = delete;
  RankThread& operator=(const RankThread&) = delete;

  int rank() const { return rank_.context->parallel().rank; }

  // None of these functions allocates memory.
  void enqueue(std::shared_ptr<const BatchPlan> plan) {
    {
      const std::lock_guard lock(mutex_);
      QUIRE_CHECK(num_planned_ - num_enqueued_ < plans_.size(),
                  "[runner] too many steps in flight");
      plans_[num_planned_++ % plans_.size()] = std::move(plan);
    }
    changed_.notify_all();
  }
  // Lets the thread wait for the rank's oldest step, whose result take() returns.
  void begin_wait() {
    {
      const std::lock_guard lock(mutex_);
      ++num_wanted_;
    }
    changed_.notify_all();
  }
  StepResult take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return result_.has_value(); });
    return *std::exchange(result_, std::nullopt);
  }

 private:
  void loop() {
    const Status bound = rank_.context->bind_thread();
    if (!bound.ok()) (void)rank_.context->join_ranks(bound);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || has_plan() || must_wait(); });
      if (has_plan()) {
        enqueue_next(lock);
      } else if (must_wait()) {
        wait_next(lock);
      } else {
        return;
      }
    }
  }

  bool has_plan() const { return num_enqueued_ < num_planned_; }
  bool must_wait() const { return num_waited_ < num_wanted_ && num_waited_ < num_enqueued_; }

  void enqueue_next(std::unique_lock<std::mutex>& lock) {
    std::shared_ptr<const BatchPlan> plan = std::move(plans_[num_enqueued_ % plans_.size()]);
    lock.unlock();
    Status error = guarded_status("[runner] a rank could not begin a step", [&] {
      rank_.runner->enqueue(std::move(plan));
      return Status();
    });
    if (!error.ok()) (void)rank_.context->join_ranks(error);
    lock.lock();
    ++num_enqueued_;
    if (!error.ok()) error_ = std::move(error);
  }

  // After a failure, the runner may have been given fewer steps than were planned.
  void wait_next(std::unique_lock<std::mutex>& lock) {
    StepResult result;
    if (error_.ok()) {
      lock.unlock();
      result = wait_on_rank(rank_);
      lock.lock();
    } else {
      result.error = error_;
    }
    ++num_waited_;
    result_ = std::move(result);
    changed_.notify_all();
  }

  RankRunner rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::shared_ptr<const BatchPlan>, kMaxStepsInFlight> plans_;
  uint64_t num_planned_ = 0;
  uint64_t num_enqueued_ = 0;
  uint64_t num_wanted_ = 0;  // steps whose results are wanted
  uint64_t num_waited_ = 0;
  std::optional<StepResult> result_;
  Status error_;
  bool stopping_ = false;
  std::thread thread_;  // last member, because it uses the others
};

// Fails unless both steps sampled the same tokens.
Status compare(const StepResult& first, const StepResult& other, int rank) {
  const auto same_tokens = [](const SpanResult& a, const SpanResult& b) {
    return std::ranges::equal(a.tokens, b.tokens, {}, &SampledToken::token_id,
                              &SampledToken::token_id);
  };
  if (std::ranges::equal(first.spans, other.spans, same_tokens)) return {};
  return internal_error(fmt::format(
      "[runner] rank {} sampled other tokens than the first rank in a step of {} sequences", rank,
      first.spans.size()));
}

// Finds a step in flight that makes no progress.
class StepWatch {
 public:
  // `progress` changes while a step makes progress. `on_stall` is called once, with the time
  // without progress.
  StepWatch(std::chrono::milliseconds timeout, std::function<int64_t()> progress,
            std::function<void(std::chrono::milliseconds)> on_stall)
      : timeout_(timeout), progress_(std::move(progress)), on_stall_(std::move(on_stall)) {
    if (timeout_.count() > 0) thread_ = std::thread([this] { loop(); });
  }
  ~StepWatch() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stopped_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

  void begin_step() { ++num_begun_; }
  void end_step() { ++num_ended_; }

 private:
  using Clock = std::chrono::steady_clock;

  void loop() {
    std::array<int64_t, 3> last_seen = {};
    Clock::time_point last_change = Clock::now();
    Clock::time_point last_look = last_change;
    std::unique_lock lock(mutex_);
    const auto period = std::min<std::chrono::milliseconds>(timeout_ / 8, std::chrono::seconds(1));
    while (!stopped_.wait_for(lock, period, [&] { return stopping_; })) {
      const std::array<int64_t, 3> seen = {num_begun_.load(), num_ended_.load(), progress_()};
      const Clock::time_point now = Clock::now();
      // Does not count the time for which this process was stopped.
      if (const auto late = now - last_look - period; late > timeout_ / 4) {
        last_change = std::min(now, last_change + late);
      }
      last_look = now;
      if (seen != last_seen || seen[0] == seen[1]) last_change = now;
      last_seen = seen;
      if (now - last_change < timeout_) continue;
      lock.unlock();
      run_guarded("[runner] a stalled step cannot be ended", [&] {
        on_stall_(std::chrono::duration_cast<std::chrono::milliseconds>(now - last_change));
      });
      return;
    }
  }

  const std::chrono::milliseconds timeout_;
  const std::function<int64_t()> progress_;
  const std::function<void(std::chrono::milliseconds)> on_stall_;
  std::atomic<int64_t> num_begun_ = 0;
  std::atomic<int64_t> num_ended_ = 0;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

class ParallelRunner final : public Runner {
 public:
  ParallelRunner(std::vector<RankRunner> ranks, const ParallelRunnerOptions& options)
      : first_(std::move(ranks.front())),
        watch_(
            options.step_timeout, [this] { return first_.context->num_collectives(); },
            [this](std::chrono::milliseconds time) { end_stalled_step(time); }) {
    if (options.nodes != nullptr) remote_.emplace(options.nodes);
    for (size_t rank = 1; rank < ranks.size(); ++rank) {
      others_.push_back(std::make_unique<RankThread>(std::move(ranks[rank])));
    }
  }

  // If a step cannot begin on a rank, the others must not wait for that rank.
  void enqueue(std::shared_ptr<const BatchPlan> plan) override {
    watch_.begin_step();
    try {
      if (remote_) remote_->enqueue(*plan);
      for (const auto& other : others_) other->enqueue(plan);
      first_.runner->enqueue(std::move(plan));
    } catch (...) {
      watch_.end_step();
      (void)first_.context->join_ranks(out_of_memory());
      throw;
    }
  }

  // Waits for all ranks at the same time, because a rank that fails must release rank 0.
  StepResult wait() override {
    for (const auto& other : others_) other->begin_wait();
    if (remote_) remote_->begin_wait();
    StepResult result = wait_on_rank(first_);
    first_ended_ = true;
    for (size_t i = 0; i < others_.size(); ++i) {
      const StepResult other = others_[i]->take();
      if (result.error.ok()) result.error = other.error;
      if (result.error.ok()) result.error = compare(result, other, others_[i]->rank());
    }
    local_ended_ = true;
    if (remote_) {
      const Status other = remote_->end_wait(result);
      if (result.error.ok()) result.error = other;
    }
    first_ended_ = false;
    local_ended_ = false;
    watch_.end_step();
    if (result.error.ok()) result.error = stalled();
    return result;
  }

  int drafts_worth(int num_decoding, int max_drafts) const override {
    return first_.runner->drafts_worth(num_decoding, max_drafts);
  }
  DeviceTraffic traffic() const override { return first_.runner->traffic(); }

 private:
  // Releases the ranks from the collective in which they wait. On a GPU their steps then end
  // without an error of their own.
  void end_stalled_step(std::chrono::milliseconds time) {
    const auto describe_ranks = [&] {
      return first_ended_ ? "rank 0 has ended it, and another rank hangs"
                          : "rank 0 hangs, or waits for another rank that hangs";
    };
    const Status error = unavailable(fmt::format(
        "[runner] a step makes no progress for {:.1f} s, expected at most `rank_timeout`; {}",
        std::chrono::duration<double>(time).count(),
        remote_ ? remote_->describe_wait(local_ended_) : describe_ranks()));
    {
      const std::lock_guard lock(stalled_mutex_);
      stalled_ = error;
    }
    (void)first_.context->join_ranks(error);
  }
  Status stalled() const {
    const std::lock_guard lock(stalled_mutex_);
    return stalled_;
  }

  RankRunner first_;
  std::atomic<bool> first_ended_ = false;  // rank 0 has ended the step that is waited for
  std::atomic<bool> local_ended_ = false;  // all ranks of this process have ended it
  std::optional<RemoteRanks> remote_;
  std::vector<std::unique_ptr<RankThread>> others_;
  mutable std::mutex stalled_mutex_;
  Status stalled_;   // the error of a step that made no progress
  StepWatch watch_;  // last member, because it uses the others
};

}  // namespace

std::unique_ptr<Runner> make_parallel_runner(std::vector<RankRunner> ranks,
                                             const ParallelRunnerOptions& options) {
  QUIRE_CHECK(ranks.size() > 1 || options.nodes != nullptr,
              "[runner] one rank needs no parallel runner");
  return std::make_unique<ParallelRunner>(std::move(ranks), options);
}

}  // namespace quire

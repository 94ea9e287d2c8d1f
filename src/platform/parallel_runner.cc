#include "platform/parallel_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/guarded.h"

namespace quire {
namespace {

// A rank that fails releases the others, whose steps wait for its own.
StepResult wait_on_rank(const RankRunner& rank) {
  StepResult result;
  try {
    result = rank.runner->wait();
  } catch (...) {  // most likely std::bad_alloc
    result.error = make_exception_status([](const char* reason) {
      return resource_exhausted(fmt::format("[runner] a step's results are lost; {}", reason));
    });
  }
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

  // None of these allocates.
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
    Status error;
    try {
      rank_.runner->enqueue(std::move(plan));
    } catch (...) {  // most likely std::bad_alloc
      error = make_exception_status([](const char* reason) {
        return resource_exhausted(
            fmt::format("[runner] a rank could not begin a step; {}", reason));
      });
      (void)rank_.context->join_ranks(error);
    }
    lock.lock();
    ++num_enqueued_;
    if (!error.ok()) error_ = std::move(error);
  }

  // After a failure the runner may have fewer steps than were planned.
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
  std::thread thread_;  // last member: it uses those above
};

// Ok if both sampled the same tokens.
Status compare(const StepResult& first, const StepResult& other, size_t rank) {
  const auto same_tokens = [](const SpanResult& a, const SpanResult& b) {
    return std::ranges::equal(a.tokens, b.tokens, {}, &SampledToken::token_id,
                              &SampledToken::token_id);
  };
  if (std::ranges::equal(first.spans, other.spans, same_tokens)) return {};
  return internal_error(
      fmt::format("[runner] rank {} sampled other tokens than rank 0 in a step of {} sequences",
                  rank, first.spans.size()));
}

class ParallelRunner final : public Runner {
 public:
  explicit ParallelRunner(std::vector<RankRunner> ranks) : first_(std::move(ranks.front())) {
    for (size_t rank = 1; rank < ranks.size(); ++rank) {
      others_.push_back(std::make_unique<RankThread>(std::move(ranks[rank])));
    }
  }

  // If rank 0 cannot begin the step, the others must not wait for it.
  void enqueue(std::shared_ptr<const BatchPlan> plan) override {
    for (const auto& other : others_) other->enqueue(plan);
    try {
      first_.runner->enqueue(std::move(plan));
    } catch (...) {
      (void)first_.context->join_ranks(out_of_memory());
      throw;
    }
  }

  // All ranks are waited for at the same time: one that fails releases rank 0.
  StepResult wait() override {
    for (const auto& other : others_) other->begin_wait();
    StepResult result = wait_on_rank(first_);
    for (size_t i = 0; i < others_.size(); ++i) {
      const StepResult other = others_[i]->take();
      if (result.error.ok()) result.error = other.error;
      if (result.error.ok()) result.error = compare(result, other, i + 1);
    }
    return result;
  }

  int drafts_worth(int num_decoding, int max_drafts) const override {
    return first_.runner->drafts_worth(num_decoding, max_drafts);
  }
  DeviceTraffic traffic() const override { return first_.runner->traffic(); }

 private:
  RankRunner first_;
  std::vector<std::unique_ptr<RankThread>> others_;
};

}  // namespace

std::unique_ptr<Runner> make_parallel_runner(std::vector<RankRunner> ranks) {
  QUIRE_CHECK(ranks.size() > 1, "[runner] one rank needs no parallel runner");
  return std::make_unique<ParallelRunner>(std::move(ranks));
}

}  // namespace quire

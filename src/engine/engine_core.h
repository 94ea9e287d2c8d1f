// The engine thread: schedule, run, postprocess.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/sample_output.h"
#include "kv_events/publisher.h"
#include "platform/runner.h"
#include "quire/engine.h"
#include "sched/scheduler.h"

namespace quire {

// A checked request that is ready to be scheduled, with one sequence and one SampleOutput per
// sample. Its sequences have the ids id, id + 1, …, which no other request uses.
struct Submission {
  RequestId id = 0;
  std::vector<std::unique_ptr<Sequence>> seqs;
  std::vector<SampleOutput> sample_outputs;
  Engine::OutputCallback on_output;
  std::optional<int> replica = {};  // Request::data_parallel_rank
  std::string session_id = {};
  int64_t num_known_tokens = 0;  // prompt tokens that are probably in the prefix cache
};

class EngineCore {
 public:
  // `replica` is the index among the engine's replicas. `kv_events` gets the changes of the prefix
  // cache, if the configuration collects them.
  EngineCore(const SchedulerConfig& config, std::unique_ptr<Runner> runner, int replica = 0,
             std::unique_ptr<KvEventPublisher> kv_events = nullptr);
  ~EngineCore();

  // Cancels all requests and releases the runner. Later calls have no effect.
  void stop();

  // Fails once stop() has begun.
  Status submit(Submission submission);
  void cancel(RequestId id);  // no effect if the request is unknown
  EngineStats stats() const;
  // EngineStats::num_outstanding_tokens, which includes a request once submit() returns.
  int64_t num_outstanding_tokens() const { return num_outstanding_tokens_; }
  Status health() const;

 private:
  struct ActiveSample {
    SampleOutput sample_output;
    RequestId request_id;
    std::shared_ptr<const Engine::OutputCallback> on_output;
    int64_t num_outstanding_tokens = 0;
    std::optional<std::chrono::steady_clock::time_point> first_scheduled = {};
  };
  // By sequence id; the samples of one request are adjacent.
  using ActiveSamples = std::map<SeqId, ActiveSample>;

  // A submission in the form that the engine thread needs: it only links the samples into active_.
  struct Arrival {
    std::vector<std::unique_ptr<Sequence>> seqs;
    ActiveSamples samples;
    int num_constrained = 0;
  };

  void loop();
  bool wait_for_work();
  void step();
  bool schedule_and_run();
  bool invoke_callback(const ActiveSample& sample, Output&& output) noexcept;
  void set_outstanding(ActiveSample& sample, int64_t num_tokens);
  void record_first_scheduled(const BatchPlan& plan);
  // Adds the masks of the constrained samples that sample in this step, and cuts their drafts.
  void fill_masks(BatchPlan& plan);
  void postprocess(const BatchPlan& plan, StepResult result);
  void wait_for_all();
  void fail(const Status& error) noexcept;
  void deliver(const Scheduler::Progress& progress, SpanResult&& span);
  ActiveSamples::iterator first_of(RequestId id);
  // Ends a sample with its last output, then frees its sequence. Returns false if its callback
  // threw.
  bool retire(ActiveSamples::iterator found, Output&& last);
  bool end_sample(ActiveSamples::iterator found, FinishReason reason, const Status& error);
  void end_request(RequestId id, FinishReason reason, const Status& error);
  void end_all(FinishReason reason, const Status& error) noexcept;

  void take_inbox();
  void enqueue(std::unique_ptr<Sequence> seq);
  void publish_stats();
  void publish_kv_events();

  const int replica_;

  // Used only by the engine thread.
  Scheduler scheduler_;
  std::unique_ptr<Runner> runner_;
  const std::unique_ptr<KvEventPublisher> kv_events_;  // null: no events
  std::deque<std::shared_ptr<const BatchPlan>> in_flight_;
  ActiveSamples active_;
  int num_constrained_ = 0;  // number of constrained samples in active_
  EngineStats counts_;       // running totals, copied to stats_ for callers

  // Shared with callers.
  mutable std::mutex mutex_;
  std::condition_variable inbox_changed_;
  std::vector<Arrival> arrivals_;
  std::vector<RequestId> cancels_;
  bool stopping_ = false;
  EngineStats stats_;
  Status health_;
  std::atomic<int64_t> num_outstanding_tokens_ = 0;

  std::thread thread_;
};

}  // namespace quire

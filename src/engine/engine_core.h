// The engine thread: schedule, run, postprocess.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/answer.h"
#include "platform/runner.h"
#include "quire/engine.h"
#include "sched/scheduler.h"

namespace quire {

// A checked request, ready to be scheduled: one sequence and one answer for each of n.
struct Submission {
  RequestId id = 0;
  std::vector<std::unique_ptr<Sequence>> seqs;
  std::vector<Answer> answers;
  Engine::OutputCallback on_output;
};

class EngineCore {
 public:
  EngineCore(const SchedulerConfig& config, std::unique_ptr<Runner> runner);
  ~EngineCore();

  // Cancels whatever runs, and lets go of the runner. Later calls have no effect.
  void stop();

  // Refused once stop() has begun.
  Status submit(Submission submission);
  void cancel(RequestId id);
  EngineStats stats() const;
  Status health() const;

 private:
  struct ActiveAnswer {
    Answer answer;
    RequestId request_id;
    std::shared_ptr<const Engine::OutputCallback> on_output;
    std::optional<std::chrono::steady_clock::time_point> first_scheduled = {};
  };

  void loop();
  void step();
  bool schedule_and_run();
  void note_first_scheduled(const BatchPlan& plan);
  // Says what constrained answers may go on with.
  void fill_masks(BatchPlan& plan);
  void postprocess(const BatchPlan& plan, StepResult result);
  void wait_for_all();
  void fail(const Status& error);
  void deliver(Sequence* seq, SampledToken&& sampled);
  void end_answer(SeqId id, FinishReason reason, const Status& error);
  // Forgets an answer that has ended, and frees what it holds.
  ActiveAnswer retire(SeqId id);
  void end_all(FinishReason reason, const Status& error);

  void take_inbox();
  void admit(Submission submission);
  void cancel_now(RequestId id);
  void publish_stats();

  // The engine thread's own.
  Scheduler scheduler_;
  std::unique_ptr<Runner> runner_;
  std::deque<std::shared_ptr<const BatchPlan>> in_flight_;
  std::unordered_map<SeqId, ActiveAnswer> active_;
  std::unordered_map<RequestId, std::vector<SeqId>> requests_;
  int num_constrained_ = 0;  // of active_
  EngineStats counts_;       // the running totals; stats_ is what callers see

  // Shared with callers.
  mutable std::mutex mutex_;
  std::condition_variable inbox_changed_;
  std::deque<Submission> submissions_;
  std::vector<RequestId> cancels_;
  bool stopping_ = false;
  EngineStats stats_;
  Status health_;

  std::thread thread_;
};

}  // namespace quire

#include "engine/engine_core.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace quire {

EngineCore::EngineCore(const SchedulerConfig& config, std::unique_ptr<Runner> runner)
    : scheduler_(config), runner_(std::move(runner)) {
  publish_stats();
  thread_ = std::thread([this] { loop(); });
}

EngineCore::~EngineCore() {
  stop();
}

void EngineCore::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  inbox_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  runner_.reset();
}

Status EngineCore::submit(Submission submission) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return unavailable("[engine] the engine is stopping");
    submissions_.push_back(std::move(submission));
  }
  inbox_changed_.notify_all();
  return {};
}

void EngineCore::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    cancels_.push_back(id);
  }
  inbox_changed_.notify_all();
}

EngineStats EngineCore::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats now = stats_;
  now.num_waiting += static_cast<int>(submissions_.size());
  return now;
}

Status EngineCore::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void EngineCore::loop() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      inbox_changed_.wait(lock, [&] {
        return stopping_ || !submissions_.empty() || !cancels_.empty() || !in_flight_.empty() ||
               scheduler_.has_work();
      });
      if (stopping_) break;
    }
    try {
      take_inbox();
      step();
    } catch (const std::exception& error) {  // no memory: what a step had begun is lost
      fail(resource_exhausted(fmt::format("[engine] a step could not be made; {}", error.what())));
    }
  }
  wait_for_all();
  take_inbox();
  end_all(FinishReason::kCancelled, {});
}

void EngineCore::wait_for_all() {
  while (!in_flight_.empty()) {
    runner_->wait();
    in_flight_.pop_front();
  }
}

// For good: what the device and the scheduler hold is unknown from here on.
void EngineCore::fail(const Status& error) {
  log_error("{}", error.message());
  {
    const std::lock_guard lock(mutex_);
    if (health_.ok()) health_ = unavailable(error.message());  // what comes after is a consequence
  }
  wait_for_all();
  end_all(FinishReason::kError, error);
  publish_stats();
}

void EngineCore::step() {
  // As long as there is room, plan further ahead before waiting for anything.
  if (in_flight_.size() < kMaxStepsInFlight && schedule_and_run() &&
      in_flight_.size() < kMaxStepsInFlight) {
    return;
  }
  if (in_flight_.empty()) {
    QUIRE_CHECK(!scheduler_.has_work(), "[engine] sequences wait and none can ever be scheduled");
    return;
  }
  StepResult result = runner_->wait();
  const std::shared_ptr<const BatchPlan> plan = std::move(in_flight_.front());
  in_flight_.pop_front();
  postprocess(*plan, std::move(result));
}

bool EngineCore::schedule_and_run() {
  auto plan = std::make_shared<BatchPlan>(scheduler_.schedule());
  if (plan->empty()) return false;
  if (!plan->rows_added.empty()) note_first_scheduled(*plan);
  if (num_constrained_ > 0) fill_masks(*plan);
  runner_->enqueue(plan);
  in_flight_.push_back(std::move(plan));
  return true;
}

// An answer that was put back is added again: its first time counts.
void EngineCore::note_first_scheduled(const BatchPlan& plan) {
  const auto now = std::chrono::steady_clock::now();
  for (const RowAdded& row : plan.rows_added) {
    ActiveAnswer& active = active_.at(row.seq_id);
    if (!active.first_scheduled) active.first_scheduled = now;
  }
}

void EngineCore::fill_masks(BatchPlan& plan) {
  for (SeqSlice& slice : plan.slices) {
    Answer& answer = active_.at(slice.seq_id).answer;
    if (!slice.samples || !answer.is_constrained()) continue;
    slice.mask_idx = static_cast<int>(plan.token_masks.size());
    plan.token_masks.push_back(answer.allowed_tokens());
  }
}

void EngineCore::postprocess(const BatchPlan& plan, StepResult result) {
  if (!result.error.ok()) return fail(result.error);
  const std::vector<Sequence*> seqs = scheduler_.complete(plan, result.sampled);
  for (size_t i = 0; i < seqs.size(); ++i) {
    if (seqs[i] == nullptr) continue;
    counts_.num_generated_tokens += 1;
    if (seqs[i]->num_output_tokens() == 1) counts_.num_prompt_tokens += seqs[i]->num_prompt_tokens;
    deliver(seqs[i], std::move(result.sampled[i]));
  }
  counts_.num_steps += 1;
  publish_stats();
}

void EngineCore::deliver(Sequence* seq, SampledToken&& sampled) {
  const SeqId id = seq->id;
  ActiveAnswer& active = active_.at(id);
  if (!sampled.error.ok() && !active.answer.forced_end()) {
    return end_answer(id, FinishReason::kError, sampled.error);
  }
  const bool at_max_length = static_cast<int>(seq->token_ids.size()) >= seq->max_total_tokens;
  Output output = active.answer.accept(std::move(sampled), seq->num_cached_tokens, at_max_length);
  output.first_scheduled = active.first_scheduled;
  const auto on_output = active.on_output;
  if (output.finish_reason) retire(id);
  (*on_output)(std::move(output));
}

void EngineCore::end_answer(SeqId id, FinishReason reason, const Status& error) {
  if (!active_.contains(id)) return;
  ActiveAnswer active = retire(id);
  Output output = active.answer.end(reason, error);
  output.first_scheduled = active.first_scheduled;
  (*active.on_output)(std::move(output));
}

EngineCore::ActiveAnswer EngineCore::retire(SeqId id) {
  const auto found = active_.find(id);
  ActiveAnswer active = std::move(found->second);
  active_.erase(found);
  if (active.answer.is_constrained()) --num_constrained_;
  scheduler_.finish(id);
  std::vector<SeqId>& seq_ids = requests_.at(active.request_id);
  std::erase(seq_ids, id);
  if (seq_ids.empty()) requests_.erase(active.request_id);
  return active;
}

void EngineCore::end_all(FinishReason reason, const Status& error) {
  while (!active_.empty()) end_answer(active_.begin()->first, reason, error);
}

void EngineCore::take_inbox() {
  std::deque<Submission> submissions;
  std::vector<RequestId> cancels;
  {
    const std::lock_guard lock(mutex_);
    submissions.swap(submissions_);
    cancels.swap(cancels_);
    // A request is waiting from the moment it is submitted: no reader may see it nowhere.
    stats_.num_waiting += static_cast<int>(submissions.size());
  }
  for (Submission& submission : submissions) admit(std::move(submission));
  for (const RequestId id : cancels) cancel_now(id);
  if (!submissions.empty() || !cancels.empty()) publish_stats();
}

void EngineCore::admit(Submission submission) {
  const auto on_output =
      std::make_shared<const Engine::OutputCallback>(std::move(submission.on_output));
  for (size_t i = 0; i < submission.seqs.size(); ++i) {
    const SeqId id = submission.seqs[i]->id;
    requests_[submission.id].push_back(id);
    if (submission.answers[i].is_constrained()) ++num_constrained_;
    active_.emplace(id, ActiveAnswer{std::move(submission.answers[i]), submission.id, on_output});
    Status added = health_.ok() ? scheduler_.add(std::move(submission.seqs[i])) : health_;
    if (!added.ok()) end_answer(id, FinishReason::kError, added);
  }
}

void EngineCore::cancel_now(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  const std::vector<SeqId> seq_ids = found->second;
  for (const SeqId seq_id : seq_ids) end_answer(seq_id, FinishReason::kCancelled, {});
}

void EngineCore::publish_stats() {
  const SchedulerStats now = scheduler_.stats();
  const DeviceTraffic traffic = runner_->traffic();
  const std::lock_guard lock(mutex_);
  stats_ = counts_;
  stats_.num_device_to_host_copies = traffic.num_copies;
  stats_.num_device_waits = traffic.num_waits;
  stats_.num_total_blocks = now.num_total_blocks;
  stats_.num_running = now.num_running;
  stats_.num_waiting = now.num_waiting;
  stats_.num_free_blocks = now.num_free_blocks;
  stats_.num_preemptions = now.num_preemptions;
  stats_.prefix_cache_queries = now.prefix_cache_queries;
  stats_.prefix_cache_hits = now.prefix_cache_hits;
}

}  // namespace quire

#include "engine/engine_core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/guarded.h"
#include "base/log.h"
#include "sched/policy.h"

namespace quire {
namespace {

// Runs f and logs an exception that it throws, so that the code after the call always runs.
template <typename F>
void run_nothrow(F&& f) noexcept {
  run_guarded("[engine] could not end all requests", std::forward<F>(f));
}

// Short enough for std::string not to allocate, because most callbacks throw for lack of memory.
constexpr char kCallbackThrew[] = "callback threw";
static_assert(sizeof kCallbackThrew <= 16);

Status callback_threw() {
  return internal_error(kCallbackThrew);
}

Output failed_output(int index, Status error) noexcept {
  Output output;
  output.index = index;
  output.finish_reason = FinishReason::kError;
  output.error = std::move(error);
  return output;
}

// The last output of a sample that ends without a token, by a cancellation or an error.
Output last_output(SampleOutput& sample, FinishReason reason, const Status& error) noexcept {
  try {
    return sample.end(reason, error);
  } catch (...) {
    return failed_output(sample.index(), out_of_memory());
  }
}

void count_drafts(int num_drafts, size_t num_accepted, SpeculationStats& stats) {
  static_assert(SpeculationStats::kMaxPositions == kMaxDrafts);
  stats.num_spans += 1;
  stats.num_drafts += num_drafts;
  stats.num_accepted += static_cast<int64_t>(num_accepted);
  for (size_t i = 0; i < num_accepted; ++i) ++stats.accepted_by_position[i];
}

// Estimates how many more tokens a sequence with `num_output` output tokens will get. The estimate
// is capped, because few sequences use up a large max_tokens.
int64_t expected_tokens(const Sequence& seq, int num_output) {
  constexpr int kMaxExpected = 1024;
  const int most = seq.max_total_tokens - seq.num_prompt_tokens;
  return std::max(std::min(most, kMaxExpected) - num_output, 1);
}

}  // namespace

EngineCore::EngineCore(const SchedulerConfig& config, std::unique_ptr<Runner> runner, int replica,
                       std::unique_ptr<KvEventPublisher> kv_events)
    : replica_(replica),
      scheduler_(config),
      runner_(std::move(runner)),
      kv_events_(std::move(kv_events)) {
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

// Allocates everything on the caller's thread, so that the engine thread only links nodes.
Status EngineCore::submit(Submission submission) {
  Arrival arrival;
  const auto on_output =
      std::make_shared<const Engine::OutputCallback>(std::move(submission.on_output));
  int64_t num_outstanding = 0;
  for (size_t i = 0; i < submission.seqs.size(); ++i) {
    const Sequence& seq = *submission.seqs[i];
    SampleOutput& sample = submission.sample_outputs[i];
    if (sample.is_constrained()) ++arrival.num_constrained;
    // The samples of a request share the computation of its prompt.
    const int64_t num_prompt = i == 0 ? seq.num_prompt_tokens - submission.num_known_tokens : 0;
    const int64_t num_tokens = num_prompt + expected_tokens(seq, 0);
    num_outstanding += num_tokens;
    arrival.samples.emplace(seq.id,
                            ActiveSample{std::move(sample), submission.id, on_output, num_tokens});
  }
  arrival.seqs = std::move(submission.seqs);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return unavailable("[engine] the engine is stopping");
    arrivals_.push_back(std::move(arrival));
    num_outstanding_tokens_ += num_outstanding;
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
  now.num_waiting += static_cast<int>(arrivals_.size());
  now.num_outstanding_tokens = num_outstanding_tokens_;
  return now;
}

Status EngineCore::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void EngineCore::loop() {
  while (wait_for_work()) {
    const Status status = guarded_status("[engine] a step failed", [&] {
      take_inbox();
      if (health_.ok()) step();
      return Status();
    });
    if (!status.ok()) fail(status);  // this step's results are lost
  }
  run_nothrow([&] { wait_for_all(); });
  run_nothrow([&] { take_inbox(); });
  end_all(FinishReason::kCancelled, {});
}

// Returns false when the engine is stopping. After a failure, the engine only ends the requests
// that still arrive.
bool EngineCore::wait_for_work() {
  std::unique_lock lock(mutex_);
  inbox_changed_.wait(lock, [&] {
    const bool may_step = health_.ok() && (!in_flight_.empty() || scheduler_.has_work());
    return stopping_ || !arrivals_.empty() || !cancels_.empty() || may_step;
  });
  return !stopping_;
}

void EngineCore::wait_for_all() {
  while (!in_flight_.empty()) {
    runner_->wait();
    in_flight_.pop_front();
  }
}

// A failure is final, because the state of the device and of the scheduler is then unknown.
void EngineCore::fail(const Status& error) noexcept {
  // The nodes have logged their errors (Nodes::fail()).
  if (!error.message().starts_with("[nodes] ")) log_error("{}", error.message());
  Status health = out_of_memory();
  run_nothrow([&] { health = unavailable(error.message()); });
  {
    const std::lock_guard lock(mutex_);
    if (health_.ok()) health_ = std::move(health);  // later failures follow from the first
  }
  run_nothrow([&] { wait_for_all(); });
  end_all(FinishReason::kError, error);
  run_nothrow([&] {
    if (kv_events_ != nullptr) kv_events_->publish({AllBlocksCleared()});
  });
  run_nothrow([&] { publish_stats(); });
}

void EngineCore::step() {
  // Enqueues up to kMaxStepsInFlight steps before it waits for the oldest.
  if (in_flight_.size() < kMaxStepsInFlight && schedule_and_run() &&
      in_flight_.size() < kMaxStepsInFlight) {
    return;
  }
  if (in_flight_.empty()) {
    QUIRE_CHECK(!scheduler_.has_work(), "[engine] sequences wait but none can ever be scheduled");
    return;
  }
  StepResult result = runner_->wait();
  const std::shared_ptr<const BatchPlan> plan = std::move(in_flight_.front());
  in_flight_.pop_front();
  postprocess(*plan, std::move(result));
}

bool EngineCore::schedule_and_run() {
  const int num_decoding = scheduler_.num_decoding();
  const int max_drafts = num_step_drafts(scheduler_.config(), num_decoding);
  auto plan = std::make_shared<BatchPlan>(
      scheduler_.schedule(runner_->drafts_worth(num_decoding, max_drafts)));
  const bool is_empty = plan->empty();
  if (!is_empty) {
    if (!plan->slots_added.empty()) record_first_scheduled(*plan);
    if (num_constrained_ > 0) fill_masks(*plan);
    runner_->enqueue(plan);
    in_flight_.push_back(std::move(plan));
  }
  publish_kv_events();  // while the device computes
  return !is_empty;
}

void EngineCore::publish_kv_events() {
  if (kv_events_ == nullptr) return;
  std::vector<KvEvent> events = scheduler_.take_kv_events();
  if (!events.empty()) kv_events_->publish(std::move(events));
}

// A preempted sample is added again; only the first time counts.
void EngineCore::record_first_scheduled(const BatchPlan& plan) {
  const auto now = std::chrono::steady_clock::now();
  for (const SlotAdded& added : plan.slots_added) {
    ActiveSample& active = active_.at(added.seq_id);
    if (!active.first_scheduled) active.first_scheduled = now;
  }
}

void EngineCore::fill_masks(BatchPlan& plan) {
  for (SeqSpan& span : plan.spans) {
    SampleOutput& sample = active_.at(span.seq_id).sample_output;
    if (!span.samples || !sample.is_constrained()) continue;
    const std::span drafts =
        std::span(plan.token_ids)
            .subspan(static_cast<size_t>(span.first_token))
            .subspan(span.decodes ? 1 : 0, static_cast<size_t>(span.num_drafts));
    span.mask_idx = static_cast<int>(plan.token_masks.size());
    span.num_drafts = sample.add_masks(drafts, plan.token_masks);
    span.reports_drafts = sample.can_have_drafts();
  }
}

void EngineCore::postprocess(const BatchPlan& plan, StepResult result) {
  if (!result.error.ok()) return fail(result.error);
  const std::vector<Scheduler::Progress> progress = scheduler_.complete(plan, result.spans);
  for (size_t i = 0; i < progress.size(); ++i) {
    if (progress[i].seq == nullptr) continue;
    if (progress[i].num_drafts > 0) {
      count_drafts(progress[i].num_drafts, result.spans[i].tokens.size() - 1, counts_.speculation);
    }
    deliver(progress[i], std::move(result.spans[i]));
  }
  counts_.speculation.verify_seconds += result.verify_seconds;
  counts_.speculation.draft_seconds += result.draft_seconds;
  counts_.num_steps += 1;
  publish_stats();
}

void EngineCore::deliver(const Scheduler::Progress& progress, SpanResult&& span) {
  const Sequence& seq = *progress.seq;
  const auto found = active_.find(seq.id);
  if (found == active_.end()) return;  // its request was ended earlier in this step
  ActiveSample& active = found->second;
  const RequestId request_id = active.request_id;
  const bool is_first = seq.num_output_tokens() == progress.num_tokens;
  if (is_first) {
    counts_.num_prompt_tokens += seq.num_prompt_tokens;
  }
  bool succeeded = false;
  if (!span.error.ok() && !active.sample_output.must_end_now()) {
    succeeded = end_sample(found, FinishReason::kError, span.error);
  } else {
    span.tokens.resize(static_cast<size_t>(progress.num_tokens));
    const bool at_max_length = static_cast<int>(seq.token_ids.size()) >= seq.max_total_tokens;
    Output output =
        active.sample_output.accept(std::move(span), seq.num_cached_tokens, at_max_length);
    counts_.num_generated_tokens += static_cast<int64_t>(output.token_ids.size());
    output.first_scheduled = active.first_scheduled;
    if (is_first) output.cache_miss = seq.cache_miss;
    set_outstanding(active, expected_tokens(seq, seq.num_output_tokens()));
    succeeded = output.finish_reason ? retire(found, std::move(output))
                                     : invoke_callback(active, std::move(output));
  }
  if (!succeeded) end_request(request_id, FinishReason::kError, callback_threw());
}

EngineCore::ActiveSamples::iterator EngineCore::first_of(RequestId id) {
  const auto found = active_.lower_bound(id);
  return found != active_.end() && found->second.request_id == id ? found : active_.end();
}

// Returns whether the callback succeeded. An embedder's exception must not end the engine.
bool EngineCore::invoke_callback(const ActiveSample& sample, Output&& output) noexcept {
  output.data_parallel_rank = replica_;
  return run_guarded("[engine] a request's output callback threw",
                     [&] { (*sample.on_output)(std::move(output)); });
}

void EngineCore::set_outstanding(ActiveSample& sample, int64_t num_tokens) {
  num_outstanding_tokens_ += num_tokens - sample.num_outstanding_tokens;
  sample.num_outstanding_tokens = num_tokens;
}

// Calls the callback before any code that can throw.
bool EngineCore::retire(ActiveSamples::iterator found, Output&& last) {
  auto ended = active_.extract(found);
  ActiveSample& sample = ended.mapped();
  if (sample.sample_output.is_constrained()) --num_constrained_;
  set_outstanding(sample, 0);  // before the callback, whose owner may submit the next request
  const bool succeeded = invoke_callback(sample, std::move(last));
  // The lost output was the last, so the callback gets another one with kError; otherwise its
  // caller would wait forever.
  if (!succeeded) {
    invoke_callback(sample, failed_output(sample.sample_output.index(), callback_threw()));
  }
  scheduler_.finish(ended.key(), sample.sample_output.num_output_tokens());
  return succeeded;
}

bool EngineCore::end_sample(ActiveSamples::iterator found, FinishReason reason,
                            const Status& error) {
  Output last = last_output(found->second.sample_output, reason, error);
  last.first_scheduled = found->second.first_scheduled;
  return retire(found, std::move(last));
}

void EngineCore::end_request(RequestId id, FinishReason reason, const Status& error) {
  for (auto found = first_of(id); found != active_.end(); found = first_of(id)) {
    end_sample(found, reason, error);
  }
}

void EngineCore::end_all(FinishReason reason, const Status& error) noexcept {
  while (!active_.empty()) {
    run_nothrow([&] { end_sample(active_.begin(), reason, error); });
  }
}

// All samples become active before any code that can throw, so that fail() can end them.
void EngineCore::take_inbox() {
  std::vector<Arrival> arrivals;
  std::vector<RequestId> cancels;
  {
    const std::lock_guard lock(mutex_);
    arrivals.swap(arrivals_);
    cancels.swap(cancels_);
    // A request counts as waiting from its submission on, so that the stats never miss it.
    stats_.num_waiting += static_cast<int>(arrivals.size());
  }
  for (Arrival& arrival : arrivals) {
    num_constrained_ += arrival.num_constrained;
    active_.merge(arrival.samples);
  }
  for (Arrival& arrival : arrivals) {
    for (std::unique_ptr<Sequence>& seq : arrival.seqs) enqueue(std::move(seq));
  }
  for (const RequestId id : cancels) end_request(id, FinishReason::kCancelled, {});
  if (!arrivals.empty() || !cancels.empty()) publish_stats();
}

void EngineCore::enqueue(std::unique_ptr<Sequence> seq) {
  const auto found = active_.find(seq->id);
  if (found == active_.end()) return;  // an earlier sample ended the request
  const Status added = health_.ok() ? scheduler_.add(std::move(seq)) : health_;
  if (!added.ok()) end_request(found->second.request_id, FinishReason::kError, added);
}

void EngineCore::publish_stats() {
  const SchedulerStats now = scheduler_.stats();
  const DeviceTraffic traffic = runner_->traffic();
  const std::lock_guard lock(mutex_);
  stats_ = counts_;
  stats_.num_device_to_host_copies = traffic.num_copies;
  stats_.num_device_waits = traffic.num_waits;
  stats_.num_total_blocks = now.num_total_blocks;
  stats_.kv_cache_usage = now.kv_cache_usage;
  stats_.num_running = now.num_running;
  stats_.num_waiting = now.num_waiting;
  stats_.num_free_blocks = now.num_free_blocks;
  stats_.num_preemptions = now.num_preemptions;
  stats_.prefix_cache_queries = now.prefix_cache_queries;
  stats_.prefix_cache_hits = now.prefix_cache_hits;
  stats_.cache_misses = now.cache_misses;
  if (kv_events_ != nullptr) stats_.num_kv_batches_dropped = kv_events_->num_dropped();
}

}  // namespace quire

#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "kv/kv_layout.h"
#include "sched/block_tables.h"
#include "sched/policy.h"
#include "sched/sequence.h"

namespace quire {
namespace {

// The set of free slots in the device's state, numbered from 0. A freed slot may be reused in the
// same plan, because a plan lists removed slots before added ones.
class SlotSet {
 public:
  explicit SlotSet(int num_slots) {
    for (int slot = num_slots - 1; slot >= 0; --slot) free_.push_back(slot);
  }

  bool has_free() const { return !free_.empty(); }
  int take() {
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void release(int slot) {
    free_.push_back(slot);
    unsent_.push_back(slot);
  }
  std::vector<int> take_unsent() { return std::exchange(unsent_, {}); }

 private:
  std::vector<int> free_;    // a stack with low slots on top
  std::vector<int> unsent_;  // freed, but not yet removed by a plan
};

struct RanksBefore {
  bool operator()(const SeqRecord* a, const SeqRecord* b) const {
    return ranks_before(*a->seq, *b->seq);
  }
};

const SchedulerConfig& checked(const SchedulerConfig& config) {
  const Status status = validate_scheduler_config(config);
  QUIRE_CHECK(status.ok(), status.message());
  return config;
}

}  // namespace

Status validate_scheduler_config(const SchedulerConfig& config) {
  const auto refuse = [](const char* field, int got, std::string_view expected) {
    return invalid_argument(fmt::format("[sched] {}: must be {}, got {}", field, expected, got));
  };
  const int block_size = config.block_size;
  if (block_size != 16 && block_size != 32 && block_size != 64) {
    return refuse("block_size", block_size, "16, 32 or 64");
  }
  if (config.max_num_seqs < 1) return refuse("max_num_seqs", config.max_num_seqs, "at least 1");
  if (config.max_num_rule_seqs < 1) {
    return refuse("max_num_rule_seqs", config.max_num_rule_seqs, "at least 1");
  }
  if (config.num_drafts < 0 || config.num_drafts > kMaxDrafts) {
    return refuse("draft tokens per step", config.num_drafts, fmt::format("0 to {}", kMaxDrafts));
  }
  for (const DraftRange& range : config.draft_ranges) {
    if (range.num_drafts >= 0 && range.num_drafts <= config.num_drafts) continue;
    return refuse("draft tokens of a range", range.num_drafts,
                  fmt::format("0 to {}", config.num_drafts));
  }
  if (config.num_draft_kv_slots < 0 || config.num_draft_kv_slots > kMaxDraftKvSlots) {
    return refuse("KV slots of drafts", config.num_draft_kv_slots,
                  fmt::format("0 to {}", kMaxDraftKvSlots));
  }
  if (config.num_tokens_ahead < 0 || config.num_tokens_ahead > 1) {
    return refuse("tokens ahead of a block", config.num_tokens_ahead, "0 or 1");
  }
  if (config.max_num_batched_tokens <= config.num_drafts) {
    return refuse("max_num_batched_tokens", config.max_num_batched_tokens,
                  fmt::format("at least {}", config.num_drafts + 1));
  }
  if (config.max_model_len < 2) {
    return refuse("max_model_len", config.max_model_len, "at least 2");
  }
  if (config.tables.empty()) return refuse("block tables", 0, "at least 1");
  for (const KvTableConfig& table : config.tables) {
    if (table.num_blocks < 2) return refuse("KV cache blocks", table.num_blocks, "at least 2");
    const bool is_last = &table == &config.tables.back() && config.tables.size() > 1;
    if (table.holds_states && (!is_last || table.window != state_window(config.block_size))) {
      return refuse(
          "the window of states", table.window,
          fmt::format("{}, in the last of several tables", state_window(config.block_size)));
    }
  }
  return {};
}

struct Scheduler::Impl {
  explicit Impl(const SchedulerConfig& cfg)
      : config(checked(cfg)),
        tables(cfg),
        // With this many slots, every running sequence can decode in every step, and a running
        // prompt gets at least the tokens of a decode.
        slots(std::min(cfg.max_num_seqs, cfg.max_num_batched_tokens / (1 + cfg.num_drafts))) {}

  void schedule_decodes();
  void schedule_prefills();
  bool schedule_running(SeqRecord& rec);
  bool try_start(SeqRecord& rec);
  bool awaits_state(const SeqRecord& rec) const;
  SeqRecord* first_startable();
  void commit(SeqRecord& rec);

  bool has_free_rule_table(const SeqRecord& rec) const;
  bool can_get_rule_table(const SeqRecord& rec) const;
  SeqRecord* last_with_rules() const;  // requires that all rule tables are in use
  bool has_blocks(const SeqRecord& rec, std::span<SeqRecord* const> victims) const;
  bool can_make_room(const SeqRecord& rec, int num_tokens) const;
  bool make_room(const SeqRecord& rec, int num_tokens);
  void unschedule(SeqRecord& rec);
  void preempt(SeqRecord& rec);
  void leave_running(SeqRecord& rec);

  int num_due(const SeqRecord& rec) const { return num_tokens_due(*rec.seq, step_drafts); }
  // The part of a prompt's due tokens that this step computes.
  int chunk_of(int num_due) const {
    const int limit = config.long_prefill_token_threshold == 0
                          ? budget_left
                          : std::min(config.long_prefill_token_threshold, budget_left);
    return std::min(num_due, limit);
  }
  Progress apply_result(const SeqSpan& span, const SpanResult& result);
  void reconcile(SeqRecord& rec, const SeqSpan& span, int num_sampled);

  const SchedulerConfig config;
  BlockTables tables;
  SlotSet slots;
  int num_rule_seqs = 0;  // running sequences that hold a rule table
  std::unordered_map<SeqId, std::unique_ptr<SeqRecord>> records;
  std::vector<SeqRecord*> running;  // in order of rank; the last is preempted first
  std::set<SeqRecord*, RanksBefore> waiting;
  std::vector<std::unique_ptr<SeqRecord>> finished;  // readable until the next call
  CachedPrefix prefix;                               // scratch of try_start
  int budget_left = 0;
  int step_drafts = 0;  // drafts that the step being planned verifies per decoding sequence
  uint64_t next_step_id = 1;
  uint64_t last_completed_step_id = 0;
  SchedulerStats stats;
};

Scheduler::Scheduler(const SchedulerConfig& config) : impl_(std::make_unique<Impl>(config)) {}
Scheduler::~Scheduler() = default;

Status Scheduler::add(std::unique_ptr<Sequence> seq) {
  QUIRE_RETURN_IF_ERROR(check_servable(*seq, config()));
  auto record = std::make_unique<SeqRecord>();
  record->has_rules = has_rules(*seq->sampling);
  record->seq = std::move(seq);
  const SeqId id = record->seq->id;
  const auto [entry, inserted] = impl_->records.try_emplace(id, std::move(record));
  if (!inserted) {
    return invalid_argument(fmt::format("[sched] sequence id {} is already in use", id));
  }
  impl_->waiting.insert(entry->second.get());
  return {};
}

int Scheduler::num_decoding() const {
  return static_cast<int>(std::ranges::count_if(
      impl_->running, [](const SeqRecord* rec) { return rec->seq->decodes(); }));
}

// Plans one step. Every running sequence that decodes gets its tokens first; the rest of the budget
// goes to running and waiting prompts in order of rank.
BatchPlan Scheduler::schedule(int max_drafts) {
  impl_->finished.clear();
  impl_->budget_left = config().max_num_batched_tokens;
  impl_->step_drafts = std::min(max_drafts, num_step_drafts(config(), num_decoding()));
  impl_->schedule_decodes();
  impl_->schedule_prefills();
  // Decodes are committed only now, because a prompt of higher rank may have taken the tokens of a
  // decode.
  for (SeqRecord* rec : impl_->running) {
    if (rec->step_tokens > 0 && !rec->step_committed) impl_->commit(*rec);
  }
  BatchPlan plan = build_plan(impl_->next_step_id, config(), impl_->step_drafts, impl_->running);
  if (plan.empty()) return plan;  // removed slots stay pending until a plan runs
  plan.slots_removed = impl_->slots.take_unsent();
  ++impl_->next_step_id;
  return plan;
}

void Scheduler::Impl::schedule_decodes() {
  for (size_t i = 0; i < running.size(); ++i) {
    if (running[i]->seq->decodes()) schedule_running(*running[i]);
  }
}

// Merges running prompts and waiting sequences by rank. After the first waiting sequence that
// cannot start, none starts in this step, so that none overtakes it. A sequence that lacks only a
// rule table does not block others, because sequences without rules do not need one.
//
// The loop runs at least once even when the decodes have taken the whole budget: every slot then
// decodes, and a waiting sequence can start only with the slot and the tokens of a sequence that
// ranks after it.
void Scheduler::Impl::schedule_prefills() {
  bool may_start = true;
  size_t i = 0;
  do {
    while (i < running.size() && running[i]->seq->decodes()) ++i;
    SeqRecord* head = may_start ? first_startable() : nullptr;
    const bool has_running = i < running.size();
    if (head != nullptr && (!has_running || ranks_before(*head->seq, *running[i]->seq))) {
      may_start = try_start(*head);
      if (may_start) ++i;  // it ranks before running[i], and is now before it in `running`
    } else if (has_running) {
      if (schedule_running(*running[i])) commit(*running[i++]);
    } else {
      return;
    }
  } while (budget_left > 0);
}

// When blocks run out, the sequence that is last in rank is preempted, possibly `rec` itself.
// Sequences after `rec` have not been committed in this step, so no planned span is unscheduled.
bool Scheduler::Impl::schedule_running(SeqRecord& rec) {
  const int num_due = this->num_due(rec);
  // All decodes of a step have one length, so a decode is never shortened.
  const int num_decoded = num_due > budget_left ? 0 : num_due;
  const int num_tokens = rec.seq->decodes() ? num_decoded : chunk_of(num_due);
  if (num_tokens == 0) return false;
  tables.free_outside_window(rec);
  while (!tables.has_room(rec, num_tokens)) {
    const bool is_victim = running.back() == &rec;
    preempt(*running.back());
    if (is_victim) return false;
  }
  tables.grow(rec, num_tokens);
  rec.step_tokens = num_tokens;
  budget_left -= num_tokens;
  return true;
}

// Returns whether the sequence waits for the state at the end of its prompt, which another sample
// of its request is computing. Otherwise it would compute the whole prompt again.
bool Scheduler::Impl::awaits_state(const SeqRecord& rec) const {
  const Sequence& seq = *rec.seq;
  const int num_wanted = (seq.num_prompt_tokens - 1) / config.block_size;
  if (!config.tables.back().holds_states || seq.prompt_hashes == nullptr || num_wanted == 0 ||
      !tables.looks_up(seq)) {
    return false;
  }
  return std::ranges::any_of(running, [&](const SeqRecord* other) {
    return other->seq->prompt_hashes == seq.prompt_hashes &&
           other->seq->tables.back().num_registered < num_wanted;
  });
}

// Skips sequences that only wait for tokens in flight, for a state or for a rule table.
SeqRecord* Scheduler::Impl::first_startable() {
  // False after the first sequence that cannot get a rule table: later ones rank after it.
  bool may_have_rules = true;
  for (SeqRecord* rec : waiting) {
    if (num_due(*rec) == 0 || (rec->has_rules && !may_have_rules) || awaits_state(*rec)) continue;
    if (can_get_rule_table(*rec)) return rec;
    may_have_rules = false;
  }
  return nullptr;
}

// Returns whether a rule table is free or not needed.
bool Scheduler::Impl::has_free_rule_table(const SeqRecord& rec) const {
  return !rec.has_rules || num_rule_seqs < config.max_num_rule_seqs;
}

// Returns whether a rule table is free, not needed, or held by a sequence that ranks after `rec`.
bool Scheduler::Impl::can_get_rule_table(const SeqRecord& rec) const {
  return has_free_rule_table(rec) || ranks_before(*rec.seq, *last_with_rules()->seq);
}

SeqRecord* Scheduler::Impl::last_with_rules() const {
  return *std::find_if(running.rbegin(), running.rend(),
                       [](const SeqRecord* rec) { return rec->has_rules; });
}

bool Scheduler::Impl::try_start(SeqRecord& rec) {
  Sequence& seq = *rec.seq;
  // A new slot sends all of its tokens to the device, so the host must have received them first.
  if (seq.num_in_flight > 0) return false;
  // This check precedes the prefix lookup, which is slow for a long prompt and would otherwise be
  // repeated in every step that the prompt waits.
  const bool may_preempt = !running.empty() && ranks_before(seq, *running.back()->seq);
  if (!may_preempt && (!slots.has_free() || budget_left == 0)) return false;
  tables.match_prefix(rec, prefix);
  const int num_known = static_cast<int>(seq.token_ids.size());
  const int num_cached = prefix.num_blocks * config.block_size;
  const int num_due = num_known - num_cached;
  // Without chunked prefill, only a preempted sequence can have grown beyond the budget.
  const bool may_cut = config.enable_chunked_prefill || num_due > config.max_num_batched_tokens;
  if (!make_room(rec, may_cut ? 1 : num_due)) return false;
  const int num_tokens = chunk_of(num_due);

  const CacheMiss miss = tables.cache_miss(rec, prefix);  // before its own blocks evict others

  waiting.erase(&rec);
  tables.adopt_prefix(rec, prefix);
  tables.grow(rec, num_tokens);
  running.insert(std::ranges::upper_bound(running, &rec, RanksBefore()), &rec);
  seq.state = SeqState::kRunning;
  seq.num_prefill = num_known;
  seq.slot = slots.take();
  num_rule_seqs += rec.has_rules ? 1 : 0;
  if (seq.num_preemptions == 0) {
    seq.num_cached_tokens = num_cached;
    seq.cache_miss = miss;
    ++stats.cache_misses[static_cast<size_t>(miss)];
  }
  stats.prefix_cache_hits += num_cached;
  if (tables.looks_up(seq)) stats.prefix_cache_queries += num_known;
  rec.added_in_step = true;
  rec.step_tokens = num_tokens;
  budget_left -= num_tokens;
  commit(rec);
  return true;
}

// Marks the span as final: it stays in the plan, so its full blocks may be shared.
void Scheduler::Impl::commit(SeqRecord& rec) {
  Sequence& seq = *rec.seq;
  seq.num_scheduled += rec.step_tokens;
  rec.step_samples = seq.decodes();
  if (rec.step_samples) ++seq.num_in_flight;
  rec.step_committed = true;
  tables.register_full_blocks(rec);
}

// A preempted sequence starts again only if each sequence that runs beside it could also grow by
// one block. Otherwise it would soon be preempted again, and its recomputation would be wasted.
bool Scheduler::Impl::has_blocks(const SeqRecord& rec, std::span<SeqRecord* const> victims) const {
  const size_t num_beside = running.size() - victims.size();
  const int num_spare = rec.seq->num_preemptions > 0 ? static_cast<int>(num_beside) : 0;
  return tables.can_start(rec, prefix, num_spare, victims);
}

// Returns whether `rec` would fit if every sequence that ranks after it gave up its slot, its
// blocks and its tokens of this step. Otherwise no sequence is preempted for it.
bool Scheduler::Impl::can_make_room(const SeqRecord& rec, int num_tokens) const {
  const auto first_after = std::ranges::upper_bound(running, &rec, RanksBefore());
  const std::span<SeqRecord* const> after(first_after, running.end());
  int num_tokens_free = budget_left;
  for (const SeqRecord* other : after) num_tokens_free += other->step_tokens;
  return (slots.has_free() || !after.empty()) && num_tokens <= num_tokens_free &&
         has_blocks(rec, after);
}

// Frees the rule table, slot, blocks and num_tokens of this step that `rec` lacks, by taking them
// from sequences that rank after it. Requires can_get_rule_table(rec). Rule tables, slots and
// blocks are freed by preemption. Tokens are taken without preemption: the sequence that loses them
// skips this step and keeps its blocks.
bool Scheduler::Impl::make_room(const SeqRecord& rec, int num_tokens) {
  const auto fits = [&] {
    return has_free_rule_table(rec) && slots.has_free() && has_blocks(rec, {});
  };
  if (fits() && num_tokens <= budget_left) return true;
  if (!can_make_room(rec, num_tokens)) return false;
  if (!has_free_rule_table(rec)) preempt(*last_with_rules());
  while (!fits()) preempt(*running.back());
  for (auto last = running.rbegin(); budget_left < num_tokens; ++last) {
    unschedule(**last);
    tables.free_unscheduled_blocks(**last);
  }
  return true;
}

void Scheduler::Impl::unschedule(SeqRecord& rec) {
  QUIRE_CHECK(!rec.step_committed, "[sched] a committed span was removed from its plan");
  budget_left += std::exchange(rec.step_tokens, 0);
}

// Preempts by recomputation: the sequence loses its blocks, but keeps its tokens and its arrival
// number, and therefore its rank.
void Scheduler::Impl::preempt(SeqRecord& rec) {
  unschedule(rec);
  leave_running(rec);
  rec.seq->state = SeqState::kWaiting;
  ++rec.seq->num_preemptions;
  ++stats.num_preemptions;
  waiting.insert(&rec);
}

void Scheduler::Impl::leave_running(SeqRecord& rec) {
  running.erase(std::ranges::lower_bound(running, &rec, RanksBefore()));
  tables.release(rec);
  slots.release(std::exchange(rec.seq->slot, -1));
  num_rule_seqs -= rec.has_rules ? 1 : 0;
}

std::vector<Scheduler::Progress> Scheduler::complete(const BatchPlan& plan,
                                                     std::span<const SpanResult> results) {
  impl_->finished.clear();
  QUIRE_CHECK(plan.step_id > std::exchange(impl_->last_completed_step_id, plan.step_id),
              "[sched] steps were not completed in the order of their planning");
  std::vector<Progress> progress;
  progress.reserve(results.size());
  auto span = plan.spans.begin();
  for (const SpanResult& result : results) {
    while (span != plan.spans.end() && span->seq_id != result.seq_id) ++span;
    QUIRE_CHECK(span != plan.spans.end(), "[sched] a result belongs to none of the plan's spans");
    progress.push_back(impl_->apply_result(*span, result));
  }
  return progress;
}

Scheduler::Progress Scheduler::Impl::apply_result(const SeqSpan& span, const SpanResult& result) {
  const auto found = records.find(result.seq_id);
  if (found == records.end()) return {};
  SeqRecord& rec = *found->second;
  Sequence& seq = *rec.seq;
  if (!span.samples) return {&seq, 0};
  QUIRE_CHECK(seq.num_in_flight > 0, "[sched] a result belongs to no step in flight");
  --seq.num_in_flight;
  if (!result.error.ok() || !result.hidden_state.empty()) return {&seq, 0};
  const int num_sampled = static_cast<int>(result.tokens.size());
  QUIRE_CHECK(num_sampled >= 1 && num_sampled <= 1 + result.num_drafts &&
                  result.num_drafts <= span.num_drafts,
              "[sched] a result has no tokens, or more than its drafts and one");
  const int num_left = seq.max_total_tokens - static_cast<int>(seq.token_ids.size());
  const int num_taken = std::min(num_sampled, num_left);
  for (int i = 0; i < num_taken; ++i) seq.token_ids.push_back(result.tokens[i].token_id);
  if (seq.is_constrained) seq.next_drafts = result.next_drafts;
  if (seq.state == SeqState::kRunning) reconcile(rec, span, num_sampled);
  return {&seq, num_taken, result.num_drafts};
}

// A sequence starts again only when none of its steps is in flight, so the span belongs to the
// sequence's current slot.
void Scheduler::Impl::reconcile(SeqRecord& rec, const SeqSpan& span, int num_sampled) {
  if (span.decodes && num_sampled < span.num_tokens) {
    rec.seq->num_scheduled -= span.num_tokens - num_sampled;
    tables.free_unscheduled_blocks(rec);
  }
  // A block that decoded tokens fill is registered only after the host has received all of these
  // tokens.
  tables.register_full_blocks(rec);
  tables.register_states(rec);
}

void Scheduler::finish(SeqId id, int num_output_tokens) {
  const auto found = impl_->records.find(id);
  if (found == impl_->records.end()) return;
  SeqRecord& rec = *found->second;
  rec.num_delivered_tokens =
      rec.seq->num_prompt_tokens + std::min(num_output_tokens, rec.seq->num_output_tokens());
  if (rec.seq->state == SeqState::kRunning) {
    impl_->leave_running(rec);
  } else {
    impl_->waiting.erase(&rec);
  }
  rec.seq->state = SeqState::kFinished;
  impl_->finished.push_back(std::move(found->second));
  impl_->records.erase(found);
}

std::vector<KvEvent> Scheduler::take_kv_events() {
  return impl_->tables.take_events();
}

std::vector<BlockHash> Scheduler::cached_hashes(size_t table) const {
  return impl_->tables.cached_hashes(table);
}

bool Scheduler::has_work() const {
  return !impl_->records.empty();
}

Sequence* Scheduler::find(SeqId id) {
  const auto found = impl_->records.find(id);
  return found == impl_->records.end() ? nullptr : found->second->seq.get();
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = impl_->stats;
  stats.num_running = static_cast<int>(impl_->running.size());
  stats.num_waiting = static_cast<int>(impl_->waiting.size());
  stats.num_free_blocks = impl_->tables.num_free();
  stats.num_total_blocks = impl_->tables.num_total();
  stats.kv_cache_usage = impl_->tables.usage();
  return stats;
}

const SchedulerConfig& Scheduler::config() const {
  return impl_->config;
}

void Scheduler::check_invariants() const {
  std::vector<const SeqRecord*> records;
  for (const auto& [id, rec] : impl_->records) records.push_back(rec.get());
  impl_->tables.check_invariants(records);
  QUIRE_CHECK(impl_->running.size() + impl_->waiting.size() == records.size(),
              "[sched] a sequence neither waits nor runs");
  const auto num_rule_seqs =
      std::ranges::count_if(impl_->running, [](const SeqRecord* rec) { return rec->has_rules; });
  QUIRE_CHECK(num_rule_seqs == impl_->num_rule_seqs && num_rule_seqs <= config().max_num_rule_seqs,
              "[sched] running sequences with rules are counted wrongly");
  QUIRE_CHECK(std::ranges::is_sorted(impl_->running, RanksBefore()),
              "[sched] running sequences are out of order");
  for (const SeqRecord* rec : impl_->waiting) {
    QUIRE_CHECK(
        rec->seq->state == SeqState::kWaiting && rec->seq->tables.empty() && rec->seq->slot == -1,
        "[sched] a waiting sequence holds a slot or blocks");
  }
}

}  // namespace quire

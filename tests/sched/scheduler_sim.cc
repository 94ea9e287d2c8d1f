#include "sched/scheduler_sim.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sched/policy.h"

namespace quire::testing {
namespace {

constexpr int32_t kStopToken = 60;
constexpr size_t kMaxLive = 16;  // more would only make a scenario slower

std::shared_ptr<const SamplingSpec> make_spec(const SimRequest& request) {
  SamplingParams params;
  if (request.prompt_logprobs) params.prompt_logprobs = 1;
  if (request.has_rules) params.frequency_penalty = 0.5F;
  SamplingSpec spec;
  spec.params = std::make_shared<const SamplingParams>(params);
  spec.seed = request.seed;
  return std::make_shared<const SamplingSpec>(spec);
}

SimRequest random_request(const Choices& below) {
  SimRequest request;
  const int num_shared = static_cast<int>(below(5) * 13);
  const auto family = static_cast<int32_t>(below(2));
  for (int i = 0; i < num_shared; ++i) request.prompt.push_back(family * 40 + i % 40);
  const auto variant = static_cast<int32_t>(below(3));
  const int num_own = 1 + static_cast<int>(below(40));
  for (int i = 0; i < num_own; ++i) request.prompt.push_back(100 + variant * 7 + i % 5);
  request.max_tokens = 1 + static_cast<int>(below(40));
  request.priority = below(3) == 0 ? static_cast<int>(below(5)) - 2 : 0;
  request.seed = below(2);
  request.salt = below(5) == 0 ? "salt" : "";
  request.prompt_logprobs = below(8) == 0;
  request.is_constrained = below(4) == 3;
  request.has_rules = below(3) == 2;
  return request;
}

SchedulerConfig random_config(const Choices& below) {
  SchedulerConfig config;
  config.block_size = below(3) == 0 ? 32 : 16;
  config.max_num_seqs = 1 + static_cast<int>(below(below(2) == 0 ? 8 : 3));
  config.max_num_rule_seqs = 1 + static_cast<int>(below(4));
  config.num_drafts = below(2) == 0 ? 0 : static_cast<int>(below(9));
  for (int first = 0; config.num_drafts > 0 && below(3) == 0; first += 2) {
    const auto num_drafts = static_cast<int>(below(static_cast<uint32_t>(config.num_drafts + 1)));
    config.draft_ranges.push_back({.first = first, .last = first + 1, .num_drafts = num_drafts});
  }
  config.max_num_batched_tokens = 1 + config.num_drafts + static_cast<int>(below(96));
  config.max_model_len = 64 + static_cast<int>(below(96));
  config.tables = {{.num_blocks = 2 + static_cast<int>(below(24))}};
  for (uint32_t i = below(6); i > 3; --i) {
    config.tables.push_back(
        {.num_blocks = 4 + static_cast<int>(below(16)), .window = 1 + static_cast<int>(below(60))});
  }
  if (below(5) == 4) std::swap(config.tables.front(), config.tables.back());
  if (below(3) == 0) {
    config.tables.push_back({.num_blocks = 1 + kMaxStatesHeld + static_cast<int>(below(16)),
                             .window = config.block_size + 1,
                             .holds_states = true});
    config.tokens_between_states = 2 * config.block_size;
  }
  const bool has_full_table =
      std::ranges::find(config.tables, 0, &KvTableConfig::window) != config.tables.end();
  if (config.num_drafts > 0 && has_full_table && below(2) == 0) {
    config.num_tokens_ahead = static_cast<int>(below(2));
    config.num_draft_kv_slots = config.num_drafts;
  }
  config.enable_prefix_caching = below(4) != 0;
  config.enable_chunked_prefill = below(4) != 0;
  if (config.enable_chunked_prefill && below(3) == 0) {
    config.long_prefill_token_threshold = 1 + static_cast<int>(below(40));
  }
  return config;
}

SchedulerConfig with_kv_events(SchedulerConfig config) {
  config.collects_kv_events = true;
  return config;
}

// The hashes of the blocks of an event, from what it says about them.
std::vector<BlockHash> rehashed(const BlocksStored& event, const HashedBlocks& blocks) {
  const auto size = static_cast<size_t>(blocks.size);
  const auto num_ahead = static_cast<size_t>(blocks.num_tokens_ahead);
  std::vector<BlockHash> hashes;
  BlockHash parent = event.parent.value_or(blocks.root);
  for (size_t i = 0; i < event.hashes.size(); ++i) {
    parent = block_hash(parent, std::span(event.token_ids).subspan(i * size, size),
                        std::span(event.ahead).subspan(i * num_ahead, num_ahead),
                        i == 0 ? std::string_view(event.salt) : std::string_view());
    hashes.push_back(parent);
  }
  return hashes;
}

}  // namespace

std::vector<int32_t> output_alone(const SimRequest& request) {
  std::vector<int32_t> tokens = request.prompt;
  Content content = root_content(request.salt);
  for (const int32_t token_id : tokens) content = next_content(content, token_id);
  for (int i = 0; i < request.max_tokens; ++i) {
    tokens.push_back(fake_sample(content, request.seed));
    if (tokens.back() == kStopToken) break;
    content = next_content(content, tokens.back());
  }
  return tokens;
}

SchedulerSim::SchedulerSim(const SchedulerConfig& config, int max_steps_in_flight,
                           bool varies_drafts)
    : config_(with_kv_events(config)),
      scheduler_(config_),
      device_(config),
      max_steps_in_flight_(static_cast<size_t>(max_steps_in_flight)),
      varies_drafts_(varies_drafts),
      caches_(config.tables.size()) {}

std::optional<SeqId> SchedulerSim::add(const SimRequest& request) {
  auto seq = std::make_unique<Sequence>();
  const SeqId id = next_id_++;
  seq->id = seq->arrival = id;
  seq->priority = request.priority;
  seq->cache_salt = request.salt;
  seq->sampling = make_spec(request);
  seq->is_constrained = request.is_constrained;
  seq->token_ids = request.prompt;
  seq->num_prompt_tokens = static_cast<int>(request.prompt.size());
  seq->max_total_tokens = seq->num_prompt_tokens + request.max_tokens;
  if (!scheduler_.add(std::move(seq)).ok()) return std::nullopt;
  live_[id] = {request, output_alone(request)};
  salts_[id] = request.salt;
  scheduler_.check_invariants();
  return id;
}

bool SchedulerSim::schedule() {
  if (in_flight_.size() >= max_steps_in_flight_) return true;
  const int max_drafts = choose_max_drafts();
  const int num_drafts = std::min(max_drafts, num_step_drafts(config_, scheduler_.num_decoding()));
  BatchPlan plan = scheduler_.schedule(max_drafts);
  scheduler_.check_invariants();
  check_kv_events();
  if (plan.empty()) {
    QUIRE_CHECK(
        plan.slots_removed.empty() && plan.slots_added.empty() && plan.block_appends.empty(),
        "[sim] an empty plan says something");
    QUIRE_CHECK(!in_flight_.empty() || !scheduler_.has_work(), "[sim] sequences wait for nothing");
    return false;
  }
  check_plan(plan, num_drafts);
  check_rule_tables(plan);
  check_no_overtaking(plan);
  check_priority_was_kept(plan);
  constrain(plan);
  in_flight_.push_back(std::move(plan));
  return true;
}

void SchedulerSim::check_kv_events() {
  const HashedBlocks hashed = {.root = none_hash(config_.block_hash_seed),
                               .size = config_.block_size,
                               .num_tokens_ahead = config_.num_tokens_ahead};
  for (const KvEvent& event : scheduler_.take_kv_events()) {
    if (const auto* stored = std::get_if<BlocksStored>(&event)) {
      std::set<BlockHash>& cache = caches_.at(static_cast<size_t>(stored->table));
      for (const BlockHash& hash : stored->hashes) {
        QUIRE_CHECK(cache.insert(hash).second, "[sim] a cached block was stored again");
      }
      QUIRE_CHECK(rehashed(*stored, hashed) == stored->hashes,
                  "[sim] the hashes of an event are not those of its tokens");
    } else {
      const auto& removed = std::get<BlocksRemoved>(event);
      std::set<BlockHash>& cache = caches_.at(static_cast<size_t>(removed.table));
      for (const BlockHash& hash : removed.hashes) {
        QUIRE_CHECK(cache.erase(hash) == 1, "[sim] a block was removed that was not stored");
      }
    }
  }
  for (size_t t = 0; t < caches_.size(); ++t) {
    if (config_.tables[t].holds_states) continue;  // no event tells of them
    const std::vector<BlockHash> cached = scheduler_.cached_hashes(t);
    QUIRE_CHECK(std::set<BlockHash>(cached.begin(), cached.end()) == caches_[t],
                "[sim] the events tell of another cache");
  }
}

void SchedulerSim::constrain(BatchPlan& plan) {
  for (SeqSpan& span : plan.spans) {
    if (!span.samples || !scheduler_.find(span.seq_id)->is_constrained) continue;
    span.mask_idx = 0;
    const Content luck = next_content(span.seq_id, static_cast<int32_t>(plan.step_id));
    span.reports_drafts = span.seq_id % 5 != 0;
    if (luck % 4 != 0) continue;
    span.num_drafts = static_cast<int>(luck / 4 % static_cast<uint64_t>(span.num_drafts + 1));
  }
}

int SchedulerSim::num_drafts_of(const SeqSpan& span, bool is_constrained) const {
  if (!span.decodes) return 0;
  const int num_drafts = span.num_tokens - 1;
  return is_constrained ? std::min(num_drafts, num_reported_.at(span.seq_id)) : num_drafts;
}

int SchedulerSim::choose_max_drafts() const {
  const Content luck = next_content(last_step_id_, 3);
  if (!varies_drafts_ || luck % 4 == 0) return kMaxDrafts;
  return static_cast<int>(luck / 4 % static_cast<uint64_t>(config_.num_drafts + 1));
}

void SchedulerSim::check_plan(const BatchPlan& plan, int num_drafts) {
  QUIRE_CHECK(plan.step_id > std::exchange(last_step_id_, plan.step_id), "[sim] step id");
  QUIRE_CHECK(plan.num_tokens() <= config_.max_num_batched_tokens, "[sim] over the budget");
  QUIRE_CHECK(plan.decode_q_len == 1 + num_drafts, "[sim] the drafts of a step");
  if (std::exchange(num_step_drafts_, num_drafts) != num_drafts) ++num_draft_changes_;
  const auto num_sampling = std::ranges::count(plan.spans, true, &SeqSpan::samples);
  QUIRE_CHECK(plan.max_next_drafts == num_step_drafts(config_, static_cast<int>(num_sampling)),
              "[sim] the drafts of the next step");
  int num_tokens = 0;
  std::vector<SeqId> ids;
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const SeqSpan& span = plan.spans[i];
    QUIRE_CHECK(span.num_tokens >= 1 && span.first_token == num_tokens, "[sim] spans' tokens");
    QUIRE_CHECK((span.num_tokens == plan.decode_q_len) == (static_cast<int>(i) < plan.num_decode),
                "[sim] short queries of one length come first");
    num_tokens += span.num_tokens;
    ids.push_back(span.seq_id);
    const Sequence* seq = scheduler_.find(span.seq_id);
    QUIRE_CHECK(seq != nullptr && seq->state == SeqState::kRunning && seq->slot == span.slot,
                "[sim] a span of a sequence that does not run");
    QUIRE_CHECK(!seq->is_constrained || seq->num_in_flight <= 1,
                "[sim] a mask would be wanted before the token that it follows");
    QUIRE_CHECK(span.kv_len_bound() < seq->max_total_tokens || config_.num_drafts > 0,
                "[sim] beyond max_total_tokens");
    QUIRE_CHECK(span.num_blocks == static_cast<int>(seq->tables[0].ids.size()) &&
                    span.num_blocks * config_.block_size >=
                        max_kv_slots(config_, *seq, span.kv_len_bound()),
                "[sim] a span lacks blocks");
    QUIRE_CHECK(!span.decodes || span.num_tokens == plan.decode_q_len, "[sim] a decode's length");
    QUIRE_CHECK(span.decodes || config_.long_prefill_token_threshold == 0 ||
                    span.num_tokens <= config_.long_prefill_token_threshold,
                "[sim] a chunk's length");
    QUIRE_CHECK(span.num_drafts == num_drafts_of(span, seq->is_constrained), "[sim] drafts");
    const bool wants_logprobs = span.num_computed < seq->num_prompt_tokens &&
                                seq->num_output_tokens() == 0 &&
                                seq->sampling->params->prompt_logprobs.has_value();
    QUIRE_CHECK((span.num_prompt_logprobs == 1) == wants_logprobs, "[sim] prompt logprobs");
  }
  std::ranges::sort(ids);
  QUIRE_CHECK(std::ranges::adjacent_find(ids) == ids.end(), "[sim] two spans of one sequence");
  QUIRE_CHECK(num_tokens == plan.num_tokens(), "[sim] tokens of no span");
}

void SchedulerSim::check_rule_tables(const BatchPlan& plan) {
  for (const int slot : plan.slots_removed) device_slots_.erase(slot);
  for (const SlotAdded& added : plan.slots_added) {
    QUIRE_CHECK(!device_slots_.contains(added.slot), "[sim] a slot is added before it was removed");
    device_slots_[added.slot] = has_rules(*added.sampling);
  }
  const auto count =
      std::ranges::count_if(device_slots_, [](const auto& slot) { return slot.second; });
  QUIRE_CHECK(count <= config_.max_num_rule_seqs, "[sim] more rule tables than the device has");
}

void SchedulerSim::check_no_overtaking(const BatchPlan& plan) {
  for (const SlotAdded& added : plan.slots_added) {
    const Sequence& seq = *scheduler_.find(added.seq_id);
    QUIRE_CHECK(seq.num_preemptions > 0 || added.token_ids.get() == live_.at(seq.id).request.prompt,
                "[sim] a new slot lacks tokens");
    for (const auto& [id, expected] : live_) {
      const Sequence& other = *scheduler_.find(id);
      QUIRE_CHECK(other.state == SeqState::kRunning ||
                      num_tokens_due(other, config_.num_drafts) == 0 || ranks_before(seq, other) ||
                      !can_have_table(other),
                  "[sim] a sequence was overtaken");
    }
  }
}

bool SchedulerSim::can_have_table(const Sequence& seq) {
  if (!has_rules(*seq.sampling)) return true;
  int num_held = 0;
  for (const auto& [id, expected] : live_) {
    const Sequence& other = *scheduler_.find(id);
    const bool is_held = other.state == SeqState::kRunning && has_rules(*other.sampling);
    if (is_held && ranks_before(other, seq)) ++num_held;
  }
  return num_held < config_.max_num_rule_seqs;
}

const Sequence* SchedulerSim::first_waiting() {
  const Sequence* first = nullptr;
  for (const auto& [id, expected] : live_) {
    const Sequence* seq = scheduler_.find(id);
    if (seq->state == SeqState::kRunning || num_tokens_due(*seq, config_.num_drafts) == 0) continue;
    if (!can_have_table(*seq)) continue;
    if (first == nullptr || ranks_before(*seq, *first)) first = seq;
  }
  return first;
}

// The blocks of a table that would stay in use if all ranks after `seq` were preempted.
int SchedulerSim::num_blocks_of_higher_ranks(const Sequence& seq, size_t table) {
  std::set<int32_t> block_ids;
  for (const auto& [id, expected] : live_) {
    const Sequence& other = *scheduler_.find(id);
    if (!ranks_before(other, seq) || other.tables.empty()) continue;
    const SeqBlocks& blocks = other.tables[table];
    block_ids.insert(blocks.ids.begin() + blocks.first, blocks.ids.end());
  }
  block_ids.erase(0);  // a block without a state
  return static_cast<int>(block_ids.size());
}

bool SchedulerSim::has_blocks_of_lower_ranks(const Sequence& seq, int num_higher) {
  const int num_kv_slots = max_kv_slots(config_, seq, static_cast<int>(seq.token_ids.size()));
  const int num_spare = seq.num_preemptions > 0 ? num_higher : 0;
  for (size_t t = 0; t < config_.tables.size(); ++t) {
    const int num_blocks = max_blocks_held(config_, config_.tables[t], num_kv_slots) + num_spare +
                           num_blocks_of_higher_ranks(seq, t);
    if (num_blocks > config_.tables[t].num_blocks - 1) return false;
  }
  return true;
}

void SchedulerSim::check_priority_was_kept(const BatchPlan& plan) {
  const Sequence* waiting = first_waiting();
  // It waits only for its own tokens in flight, not for another sequence.
  if (waiting == nullptr || waiting->num_in_flight > 0) return;
  int num_higher = 0;
  for (const auto& [id, expected] : live_) {
    const Sequence& other = *scheduler_.find(id);
    if (other.state != SeqState::kRunning) continue;
    if (ranks_before(other, *waiting)) ++num_higher;
  }
  const int num_rows =
      std::min(config_.max_num_seqs, config_.max_num_batched_tokens / (1 + config_.num_drafts));
  if (num_higher == num_rows) return;
  const int num_known = static_cast<int>(waiting->token_ids.size());
  const int num_tokens =
      config_.enable_chunked_prefill ? 1 : std::min(num_known, config_.max_num_batched_tokens);
  int num_tokens_left = config_.max_num_batched_tokens;
  bool had_prompt = false;
  for (const SeqSpan& span : plan.spans) {
    const Sequence& other = *scheduler_.find(span.seq_id);
    if (!ranks_before(other, *waiting)) continue;
    num_tokens_left -= span.num_tokens;
    had_prompt |= !span.decodes;
  }
  // Prompts of higher rank may fill a whole step, beside the decodes of all ranks.
  if (had_prompt && plan.num_tokens() == config_.max_num_batched_tokens) return;
  QUIRE_CHECK(!has_blocks_of_lower_ranks(*waiting, num_higher) || num_tokens_left < num_tokens,
              "[sim] a sequence waits for one of lower rank");
}

void SchedulerSim::complete(bool fail) {
  if (in_flight_.empty()) return;
  const BatchPlan plan = std::move(in_flight_.front());
  in_flight_.pop_front();
  std::vector<SpanResult> spans = device_.run(plan, [&](SeqId id) { return salts_.at(id); });
  if (fail && !spans.empty()) spans.front().error = internal_error("[sim] NaN");
  const std::vector<Scheduler::Progress> progress = scheduler_.complete(plan, spans);
  QUIRE_CHECK(progress.size() == spans.size(), "[sim] one entry per span");
  for (const SpanResult& span : spans) {
    num_reported_[span.seq_id] = static_cast<int>(span.next_drafts.size());
  }
  for (size_t i = 0; i < progress.size(); ++i) {
    const Sequence* seq = progress[i].seq;
    QUIRE_CHECK((seq != nullptr) == live_.contains(spans[i].seq_id), "[sim] dropped tokens");
    if (seq == nullptr) continue;
    QUIRE_CHECK(seq->id == spans[i].seq_id, "[sim] another sequence's token");
    if (spans[i].error.ok()) {
      take(*seq);
    } else {
      cancel(seq->id);
    }
  }
  scheduler_.check_invariants();
}

void SchedulerSim::take(const Sequence& seq) {
  const Expected& expected = live_.at(seq.id);
  // A span may continue after the stop token, so only the common length is compared.
  const auto num_compared =
      static_cast<std::ptrdiff_t>(std::min(seq.token_ids.size(), expected.tokens.size()));
  QUIRE_CHECK(std::equal(seq.token_ids.begin(), seq.token_ids.begin() + num_compared,
                         expected.tokens.begin()),
              "[sim] the tokens differ from those of a run alone");
  QUIRE_CHECK(static_cast<int>(seq.token_ids.size()) <= seq.max_total_tokens,
              "[sim] a sequence took more tokens than it may");
  if (seq.token_ids.size() < expected.tokens.size()) return;
  ++num_answered_;
  cancel(seq.id);
  QUIRE_CHECK(seq.state == SeqState::kFinished, "[sim] a finished sequence is still readable");
}

void SchedulerSim::cancel(SeqId id) {
  live_.erase(id);
  scheduler_.finish(id);
  QUIRE_CHECK(scheduler_.find(id) == nullptr, "[sim] a finished sequence is still known");
  scheduler_.check_invariants();
}

void SchedulerSim::drain() {
  // The first sequence in rank gets a token at least every max_steps_in_flight + 1 steps. Each
  // sequence has at most max_model_len tokens, which are computed again after at most one
  // preemption per sequence that ranks before it.
  const size_t bound =
      64 + 8 * live_.size() * live_.size() * static_cast<size_t>(config_.max_model_len);
  size_t num_steps = 0;
  while (scheduler_.has_work() || !in_flight_.empty()) {
    QUIRE_CHECK(++num_steps < bound, "[sim] the requests do not end");
    if (!schedule() || in_flight_.size() >= max_steps_in_flight_) complete();
  }
  const SchedulerStats stats = scheduler_.stats();
  QUIRE_CHECK(live_.empty() && stats.num_running == 0 && stats.num_waiting == 0, "[sim] leftovers");
  QUIRE_CHECK(stats.num_free_blocks == stats.num_total_blocks, "[sim] blocks leaked");
  QUIRE_CHECK(stats.kv_cache_usage == 0, "[sim] an empty cache is in use");
}

ScenarioResult run_scenario(const Choices& below, int num_ops) {
  const SchedulerConfig config = random_config(below);
  const int max_steps_in_flight = 1 + static_cast<int>(below(3));
  SchedulerSim sim(config, max_steps_in_flight, below(2) == 1);
  for (int i = 0; i < num_ops; ++i) {
    const uint32_t op = below(16);  // an exhausted fuzzer input reads as zeros, which only plan
    if (op < 5) {
      sim.schedule();
    } else if (op < 11) {
      sim.complete(below(32) == 31);
    } else if (op < 15 && sim.num_live() < kMaxLive) {
      const SimRequest request = random_request(below);
      const uint32_t num_copies = below(6) == 5 ? 3 : 1;  // as with n > 1
      for (uint32_t copy = 0; copy < num_copies; ++copy) sim.add(request);
    } else if (op == 15 && sim.num_live() > 0) {
      sim.cancel(sim.live_id(below(static_cast<uint32_t>(sim.num_live()))));
    }
  }
  sim.drain();
  return {.stats = sim.scheduler().stats(),
          .num_answered = sim.num_answered(),
          .num_shared_tokens = sim.device().num_shared_tokens(),
          .num_accepted_drafts = sim.device().num_accepted_drafts(),
          .num_rejected_drafts = sim.device().num_rejected_drafts(),
          .num_accepted_reported = sim.device().num_accepted_reported(),
          .num_draft_changes = sim.num_draft_changes()};
}

}  // namespace quire::testing

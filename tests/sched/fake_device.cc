#include "sched/fake_device.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/numbers.h"
#include "kv/kv_layout.h"
#include "sched/policy.h"

namespace quire::testing {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

Content root_content(std::string_view salt) {
  Content content = 0x9E3779B97F4A7C15ULL;
  for (const char c : salt) content = next_content(content, c);
  return content;
}

Content next_content(Content previous, int32_t token_id) {
  return mix(previous + 0x9E3779B97F4A7C15ULL * (static_cast<uint64_t>(token_id) + 2));
}

int32_t fake_sample(Content prefix, uint64_t seed) {
  return static_cast<int32_t>(mix(prefix ^ (seed * 0xD6E8FEB86659FD93ULL)) % 61);
}

FakeDevice::FakeDevice(const SchedulerConfig& config)
    : block_size_(config.block_size),
      num_drafts_(config.num_drafts),
      num_draft_kv_slots_(config.num_draft_kv_slots),
      num_tokens_ahead_(config.num_tokens_ahead),
      slots_(static_cast<size_t>(config.max_num_seqs)) {
  for (const KvTableConfig& table : config.tables) {
    const auto num_blocks = static_cast<size_t>(table.num_blocks);
    tables_.push_back(
        {.window = table.window,
         .cache = std::vector<Content>(num_blocks * static_cast<size_t>(block_size_)),
         .num_old_holders = std::vector<int>(num_blocks),
         .states = std::vector<std::vector<Content>>(table.holds_states ? num_blocks : 0,
                                                     std::vector<Content>(num_state_rows()))});
  }
  if (num_draft_kv_slots_ == 0) return;
  draft_table_ = static_cast<size_t>(std::ranges::find(config.tables, 0, &KvTableConfig::window) -
                                     config.tables.begin());
  draft_cache_.resize(tables_.at(draft_table_).cache.size());
}

std::vector<SpanResult> FakeDevice::run(const BatchPlan& plan,
                                        const std::function<std::string(SeqId)>& salt_of) {
  for (const int slot : plan.slots_removed) remove_slot(slot);
  count_old_holders();
  for (const SlotAdded& added : plan.slots_added) {
    add_slot(added, root_content(salt_of(added.seq_id)));
  }
  for (const BlockTableAppend& append : plan.block_appends) append_blocks(append);
  for (const SeqSpan& span : plan.spans) read_state(span);
  // The whole batch writes before any sequence reads, as in a layer.
  for (const SeqSpan& span : plan.spans) write(plan, span);
  for (const SeqSpan& span : plan.spans) check_reads(span);
  std::vector<SpanResult> spans;
  for (const SeqSpan& span : plan.spans) {
    if (span.samples) spans.push_back(sample(span));
  }
  if (num_draft_kv_slots_ > 0) draft(plan);
  return spans;
}

void FakeDevice::remove_slot(int slot_idx) {
  Slot& slot = slots_.at(static_cast<size_t>(slot_idx));
  QUIRE_CHECK(slot.active, "[sim] a slot is removed that was not there");
  slot = Slot();
}

// Blocks after a slot's tokens or before its window do not count, because the scheduler may have
// given them to another sequence.
bool FakeDevice::is_old(const Slot& slot, size_t table, int block_idx) const {
  const int end = std::min(ceil_div(slot.num_old, block_size_), slot.num_blocks);
  return block_idx >= first_page_read(slot.num_old, tables_[table].window, block_size_) &&
         block_idx < end;
}

void FakeDevice::count_old_holders() {
  for (Slot& slot : slots_) slot.num_old = slot.num_computed;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].holds_states()) continue;
    std::vector<int>& counts = tables_[t].num_old_holders;
    std::ranges::fill(counts, 0);
    for (const Slot& slot : slots_) {
      for (int i = 0; i < slot.num_blocks; ++i) {
        if (!is_old(slot, t, i)) continue;
        ++counts[static_cast<size_t>(slot.block_ids[t][static_cast<size_t>(i)])];
      }
    }
  }
}

void FakeDevice::add_slot(const SlotAdded& added, Content root) {
  Slot& slot = slots_.at(static_cast<size_t>(added.slot));
  QUIRE_CHECK(!slot.active, "[sim] a slot is added that is still there");
  slot.active = slot.fresh = true;
  slot.seq_id = added.seq_id;
  slot.seed = added.sampling->seed;
  slot.block_ids.resize(tables_.size());
  for (const int32_t token_id : added.token_ids) {
    slot.contents.push_back(
        next_content(slot.contents.empty() ? root : slot.contents.back(), token_id));
    slot.token_ids.push_back(token_id);
  }
}

void FakeDevice::append_blocks(const BlockTableAppend& append) {
  Slot& slot = slots_.at(static_cast<size_t>(append.slot));
  const auto table = static_cast<size_t>(append.table);
  std::vector<int32_t>& block_ids = slot.block_ids.at(table);
  const bool has_gap = slot.fresh ? tables_[table].window == 0 && append.first > 0
                                  : append.first > static_cast<int>(block_ids.size());
  QUIRE_CHECK(slot.active && !has_gap && !is_old(slot, table, append.first),
              "[sim] a block table has a gap, or loses a block that holds tokens");
  block_ids.resize(static_cast<size_t>(append.first));
  for (const int32_t block_id : append.block_ids) {
    QUIRE_CHECK(block_id > 0 || tables_[table].holds_states(),
                "[sim] the padding page was handed out");
    block_ids.push_back(block_id);
  }
}

size_t FakeDevice::kv_slot(const Slot& slot, size_t table, int position) const {
  const auto block_id =
      static_cast<size_t>(slot.block_ids[table].at(static_cast<size_t>(position / block_size_)));
  QUIRE_CHECK(block_id > 0, "[sim] a step uses a block that its window has left behind");
  return block_id * static_cast<size_t>(block_size_) + static_cast<size_t>(position % block_size_);
}

void FakeDevice::write(const BatchPlan& plan, const SeqSpan& span) {
  Slot& slot = slots_.at(static_cast<size_t>(span.slot));
  QUIRE_CHECK(slot.active && slot.seq_id == span.seq_id, "[sim] a span's slot is another's");
  for (const std::vector<int32_t>& block_ids : slot.block_ids) {
    QUIRE_CHECK(span.num_blocks <= static_cast<int>(block_ids.size()),
                "[sim] a span counts blocks that the device does not have");
  }
  slot.num_blocks = span.num_blocks;
  if (span.decodes) {
    write_next_tokens(plan, span, slot);
  } else {
    write_chunk(plan, span, slot);
  }
}

void FakeDevice::write_chunk(const BatchPlan& plan, const SeqSpan& span, Slot& slot) {
  if (slot.fresh) {
    QUIRE_CHECK(span.num_computed % block_size_ == 0, "[sim] only full blocks are shared");
    slot.num_computed = span.num_computed;
    num_shared_tokens_ += span.num_computed;
    slot.fresh = false;
  }
  QUIRE_CHECK(span.num_computed == slot.num_computed, "[sim] a token is computed twice or never");
  slot.step_begin = slot.num_computed;
  const int end = span.num_computed + span.num_tokens;
  QUIRE_CHECK(end <= static_cast<int>(slot.token_ids.size()),
              "[sim] a span goes beyond the tokens");
  QUIRE_CHECK(span.samples == (end == static_cast<int>(slot.token_ids.size())),
              "[sim] a span samples exactly when it ends the sequence");
  QUIRE_CHECK(span.num_drafts == 0, "[sim] a chunk has no drafts");
  for (int i = 0; i < span.num_tokens; ++i) {
    const auto position = static_cast<size_t>(span.num_computed + i);
    QUIRE_CHECK(
        plan.token_ids.at(static_cast<size_t>(span.first_token + i)) == slot.token_ids[position],
        "[sim] the plan feeds a wrong token");
    write_kv(slot, static_cast<int>(position), slot.contents[position]);
  }
  slot.num_computed = end;
  num_computed_tokens_ += span.num_tokens;
}

// Writes the newest token, then one draft per further token of the span. A pseudo-random number of
// leading drafts, or the reported number, equals the tokens that the model would sample.
void FakeDevice::write_next_tokens(const BatchPlan& plan, const SeqSpan& span, Slot& slot) {
  QUIRE_CHECK(!slot.fresh && slot.num_computed + 1 == static_cast<int>(slot.token_ids.size()),
              "[sim] a slot decodes before its known tokens are computed");
  QUIRE_CHECK(span.samples && span.num_computed >=
                                  std::min(slot.num_computed, span.num_blocks * block_size_ - 1),
              "[sim] a slot is longer than its upper bound");
  slot.step_begin = slot.num_computed;
  const uint64_t luck = mix(slot.contents.back() + 17);
  const bool is_constrained = span.mask_idx >= 0;
  slot.num_accepted = is_constrained
                          ? std::min(slot.num_right, span.num_drafts)
                          : static_cast<int>(luck % static_cast<uint64_t>(span.num_drafts + 1));
  const int capacity = span.num_blocks * block_size_;
  for (int i = 0; i < span.num_tokens; ++i) {
    const int32_t planned = plan.token_ids.at(static_cast<size_t>(span.first_token + i));
    const bool is_reported = is_constrained && i > 0 && i <= span.num_drafts;
    QUIRE_CHECK(is_reported ? planned == slot.reported.at(static_cast<size_t>(i - 1))
                            : planned == kPlaceholderToken || is_constrained,
                "[sim] the host claims to know a token of the device, or knows a wrong one");
    const bool is_right = i <= slot.num_accepted;
    if (i > 0 && is_right) append_sampled(slot);
    const int position = slot.num_computed + i;
    if (position >= capacity) continue;
    const Content wrong = luck + static_cast<Content>(i);
    write_kv(slot, position, is_right ? slot.contents[static_cast<size_t>(position)] : wrong);
  }
  slot.num_computed += 1 + slot.num_accepted;
  num_computed_tokens_ += 1 + slot.num_accepted;
  num_accepted_drafts_ += slot.num_accepted;
  num_rejected_drafts_ += span.num_drafts - slot.num_accepted;
  num_accepted_reported_ += is_constrained ? slot.num_accepted : 0;
}

// A slot may write a shared block only if the slots that share it were added in this plan.
void FakeDevice::write_kv(Slot& slot, int position, Content content) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].holds_states()) {
      const auto block = static_cast<size_t>(position / block_size_);
      slot.state[static_cast<size_t>(position) % num_state_rows()] = content;
      const int32_t page = slot.block_ids[t].at(block);
      if (page != 0) tables_[t].states.at(static_cast<size_t>(page)) = slot.state;
      continue;
    }
    const size_t at = kv_slot(slot, t, position);
    const int num_expected = is_old(slot, t, position / block_size_) ? 1 : 0;
    QUIRE_CHECK(tables_[t].num_old_holders[at / static_cast<size_t>(block_size_)] == num_expected,
                "[sim] a shared block is written");
    tables_[t].cache[at] = content;
  }
}

void FakeDevice::read_state(const SeqSpan& span) {
  Slot& slot = slots_.at(static_cast<size_t>(span.slot));
  slot.state.assign(num_state_rows(), 0);
  const int begin = slot.fresh ? span.num_computed : slot.num_computed;
  // A sequence that has ended may have computed tokens beyond its blocks.
  if (begin == 0 || begin > span.num_blocks * block_size_) return;
  const auto newest = static_cast<size_t>(begin - 1);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!tables_[t].holds_states()) continue;
    const int32_t page = slot.block_ids[t].at(newest / static_cast<size_t>(block_size_));
    QUIRE_CHECK(page != 0, "[sim] a sequence continues without its state");
    slot.state = tables_[t].states.at(static_cast<size_t>(page));
    QUIRE_CHECK(slot.state[newest % num_state_rows()] == slot.contents[newest],
                "[sim] the state is of other tokens than the sequence's");
  }
}

// Checks the reads of the span's first query, whose window begins earliest.
void FakeDevice::check_reads(const SeqSpan& span) const {
  const Slot& slot = slots_[static_cast<size_t>(span.slot)];
  const int end = std::min(slot.num_computed, span.num_blocks * block_size_);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].holds_states()) continue;
    const int window = tables_[t].window;
    const int first = window == 0 ? 0 : std::max(0, slot.step_begin - window + 1);
    for (int position = first; position < end; ++position) {
      QUIRE_CHECK(tables_[t].cache[kv_slot(slot, t, position)] ==
                      slot.contents[static_cast<size_t>(position)],
                  "[sim] the cache holds other tokens than the sequence");
    }
  }
}

Content FakeDevice::draft_content(const Slot& slot, int position) const {
  return slot.contents[static_cast<size_t>(position + num_tokens_ahead_)];
}

// Writes the drafter's content of the tokens that the step has computed, and of no token in the KV
// slots after them. As in the step, the whole batch writes before any sequence reads.
void FakeDevice::draft(const BatchPlan& plan) {
  const auto at = [&](const Slot& slot, int position) -> Content& {
    return draft_cache_[kv_slot(slot, draft_table_, position)];
  };
  for (const SeqSpan& span : plan.spans) {
    const Slot& slot = slots_[static_cast<size_t>(span.slot)];
    const int capacity = span.num_blocks * block_size_;
    for (int p = slot.step_begin; p < std::min(slot.num_computed, capacity); ++p) {
      at(slot, p) = draft_content(slot, p);
    }
    if (!span.samples) continue;
    for (int p = slot.num_computed; p < slot.num_computed + num_draft_kv_slots_; ++p) {
      const Content wrong = slot.contents.back() + static_cast<Content>(p);
      if (p < capacity) at(slot, p) = wrong;
    }
  }
  for (const SeqSpan& span : plan.spans) {
    const Slot& slot = slots_[static_cast<size_t>(span.slot)];
    const int end = std::min(slot.num_computed, span.num_blocks * block_size_);
    for (int p = 0; p < end; ++p) {
      QUIRE_CHECK(at(slot, p) == draft_content(slot, p),
                  "[sim] the drafter's cache holds other tokens than the sequence");
    }
  }
}

SpanResult FakeDevice::sample(const SeqSpan& span) {
  Slot& slot = slots_[static_cast<size_t>(span.slot)];
  append_sampled(slot);
  SpanResult sampled;
  sampled.seq_id = span.seq_id;
  sampled.num_drafts = span.num_drafts;
  const int num_tokens = 1 + (span.decodes ? slot.num_accepted : 0);
  for (auto id = slot.token_ids.end() - num_tokens; id != slot.token_ids.end(); ++id) {
    sampled.tokens.push_back({.token_id = *id, .logprobs = {}});
  }
  slot.reported.clear();
  if (span.reports_drafts) propose(slot);
  sampled.next_drafts = slot.reported;
  return sampled;
}

void FakeDevice::propose(Slot& slot) const {
  const uint64_t luck = mix(slot.contents.back() + 23);
  const auto count = static_cast<int>(luck % static_cast<uint64_t>(num_drafts_ + 1));
  slot.num_right = static_cast<int>(mix(luck) % static_cast<uint64_t>(count + 1));
  Content content = slot.contents.back();
  for (int i = 0; i < count; ++i) {
    const int32_t right = fake_sample(content, slot.seed);
    content = next_content(content, right);
    slot.reported.push_back(i < slot.num_right ? right : right + 1);
  }
}

void FakeDevice::append_sampled(Slot& slot) {
  slot.token_ids.push_back(fake_sample(slot.contents.back(), slot.seed));
  slot.contents.push_back(next_content(slot.contents.back(), slot.token_ids.back()));
}

}  // namespace quire::testing

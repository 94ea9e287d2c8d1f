#include "sched/fake_device.h"

#include <algorithm>
#include <string>

#include "base/check.h"
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
    : block_size_(config.block_size), rows_(static_cast<size_t>(config.max_num_seqs)) {
  for (const KvTableConfig& table : config.tables) {
    const auto num_blocks = static_cast<size_t>(table.num_blocks);
    tables_.push_back({.window = table.window,
                       .cache = std::vector<Content>(num_blocks * static_cast<size_t>(block_size_)),
                       .num_old_holders = std::vector<int>(num_blocks)});
  }
}

std::vector<SampledSpan> FakeDevice::run(const BatchPlan& plan,
                                         const std::function<std::string(SeqId)>& salt_of) {
  for (const int row : plan.rows_removed) remove_row(row);
  count_old_holders();
  for (const RowAdded& added : plan.rows_added) {
    add_row(added, root_content(salt_of(added.seq_id)));
  }
  for (const BlockTableAppend& append : plan.block_appends) append_blocks(append);
  // As in a layer, the whole batch writes before any sequence reads.
  for (const SeqSlice& slice : plan.slices) write(plan, slice);
  for (const SeqSlice& slice : plan.slices) check_reads(slice);
  std::vector<SampledSpan> spans;
  for (const SeqSlice& slice : plan.slices) {
    if (slice.samples) spans.push_back(sample(slice));
  }
  return spans;
}

void FakeDevice::remove_row(int row_idx) {
  Row& row = rows_.at(static_cast<size_t>(row_idx));
  QUIRE_CHECK(row.active, "[sim] a row is removed that was not there");
  row = Row();
}

// Blocks after a row's tokens or before its window do not count, because the scheduler may have
// given them to another sequence.
bool FakeDevice::is_old(const Row& row, size_t table, int block_idx) const {
  const int end = std::min((row.num_old + block_size_ - 1) / block_size_, row.num_blocks);
  return block_idx >= first_page_read(row.num_old, tables_[table].window, block_size_) &&
         block_idx < end;
}

void FakeDevice::count_old_holders() {
  for (Row& row : rows_) row.num_old = row.num_computed;
  for (size_t t = 0; t < tables_.size(); ++t) {
    std::vector<int>& counts = tables_[t].num_old_holders;
    std::ranges::fill(counts, 0);
    for (const Row& row : rows_) {
      for (int i = 0; i < row.num_blocks; ++i) {
        if (!is_old(row, t, i)) continue;
        ++counts[static_cast<size_t>(row.block_ids[t][static_cast<size_t>(i)])];
      }
    }
  }
}

void FakeDevice::add_row(const RowAdded& added, Content root) {
  Row& row = rows_.at(static_cast<size_t>(added.row));
  QUIRE_CHECK(!row.active, "[sim] a row is added that is still there");
  row.active = row.fresh = true;
  row.seq_id = added.seq_id;
  row.seed = added.sampling->seed;
  row.block_ids.resize(tables_.size());
  for (const int32_t token_id : added.token_ids) {
    row.contents.push_back(
        next_content(row.contents.empty() ? root : row.contents.back(), token_id));
    row.token_ids.push_back(token_id);
  }
}

void FakeDevice::append_blocks(const BlockTableAppend& append) {
  Row& row = rows_.at(static_cast<size_t>(append.row));
  const auto table = static_cast<size_t>(append.table);
  std::vector<int32_t>& block_ids = row.block_ids.at(table);
  const bool has_gap = row.fresh ? tables_[table].window == 0 && append.first > 0
                                 : append.first > static_cast<int>(block_ids.size());
  QUIRE_CHECK(row.active && !has_gap && !is_old(row, table, append.first),
              "[sim] a block table has a gap, or loses a block that holds tokens");
  block_ids.resize(static_cast<size_t>(append.first));
  for (const int32_t block_id : append.block_ids) {
    QUIRE_CHECK(block_id > 0, "[sim] the padding page was handed out");
    block_ids.push_back(block_id);
  }
}

size_t FakeDevice::slot(const Row& row, size_t table, int position) const {
  const auto block_id =
      static_cast<size_t>(row.block_ids[table].at(static_cast<size_t>(position / block_size_)));
  QUIRE_CHECK(block_id > 0, "[sim] a step uses a block that its window has left behind");
  return block_id * static_cast<size_t>(block_size_) + static_cast<size_t>(position % block_size_);
}

void FakeDevice::write(const BatchPlan& plan, const SeqSlice& slice) {
  Row& row = rows_.at(static_cast<size_t>(slice.row));
  QUIRE_CHECK(row.active && row.seq_id == slice.seq_id, "[sim] a slice's row is another's");
  for (const std::vector<int32_t>& block_ids : row.block_ids) {
    QUIRE_CHECK(slice.num_blocks <= static_cast<int>(block_ids.size()),
                "[sim] a slice counts blocks that the device does not have");
  }
  row.num_blocks = slice.num_blocks;
  if (slice.decodes) {
    write_next_tokens(plan, slice, row);
  } else {
    write_chunk(plan, slice, row);
  }
}

void FakeDevice::write_chunk(const BatchPlan& plan, const SeqSlice& slice, Row& row) {
  if (row.fresh) {
    QUIRE_CHECK(slice.num_computed % block_size_ == 0, "[sim] only full blocks are shared");
    row.num_computed = slice.num_computed;
    num_shared_tokens_ += slice.num_computed;
    row.fresh = false;
  }
  QUIRE_CHECK(slice.num_computed == row.num_computed, "[sim] a token is computed twice or never");
  row.step_begin = row.num_computed;
  const int end = slice.num_computed + slice.num_tokens;
  QUIRE_CHECK(end <= static_cast<int>(row.token_ids.size()),
              "[sim] a slice goes beyond the tokens");
  QUIRE_CHECK(slice.samples == (end == static_cast<int>(row.token_ids.size())),
              "[sim] a slice samples exactly when it ends the sequence");
  QUIRE_CHECK(slice.num_drafts == 0, "[sim] a chunk has no drafts");
  for (int i = 0; i < slice.num_tokens; ++i) {
    const auto position = static_cast<size_t>(slice.num_computed + i);
    QUIRE_CHECK(
        plan.token_ids.at(static_cast<size_t>(slice.first_token + i)) == row.token_ids[position],
        "[sim] the plan feeds a wrong token");
    write_slots(row, static_cast<int>(position), row.contents[position]);
  }
  row.num_computed = end;
  num_computed_tokens_ += slice.num_tokens;
}

// Writes the newest token, then as many drafts as the slice has further tokens. A pseudo-random
// number of leading drafts is what the model would sample.
void FakeDevice::write_next_tokens(const BatchPlan& plan, const SeqSlice& slice, Row& row) {
  QUIRE_CHECK(!row.fresh && row.num_computed + 1 == static_cast<int>(row.token_ids.size()),
              "[sim] a row decodes before its known tokens are computed");
  QUIRE_CHECK(slice.samples && slice.num_computed >=
                                   std::min(row.num_computed, slice.num_blocks * block_size_ - 1),
              "[sim] a row is longer than its upper bound");
  row.step_begin = row.num_computed;
  const uint64_t luck = mix(row.contents.back() + 17);
  row.num_accepted = static_cast<int>(luck % static_cast<uint64_t>(slice.num_drafts + 1));
  const int capacity = slice.num_blocks * block_size_;
  for (int i = 0; i < slice.num_tokens; ++i) {
    QUIRE_CHECK(plan.token_ids.at(static_cast<size_t>(slice.first_token + i)) == kPlaceholderToken,
                "[sim] the host claims to know a token of the device");
    const bool is_right = i <= row.num_accepted;
    if (i > 0 && is_right) append_sampled(row);
    const int position = row.num_computed + i;
    if (position >= capacity) continue;
    const Content wrong = luck + static_cast<Content>(i);
    write_slots(row, position, is_right ? row.contents[static_cast<size_t>(position)] : wrong);
  }
  row.num_computed += 1 + row.num_accepted;
  num_computed_tokens_ += 1 + row.num_accepted;
  num_accepted_drafts_ += row.num_accepted;
  num_rejected_drafts_ += slice.num_drafts - row.num_accepted;
}

// A row may write a shared block only if the rows that share it were added in this plan.
void FakeDevice::write_slots(const Row& row, int position, Content content) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const size_t at = slot(row, t, position);
    const int num_expected = is_old(row, t, position / block_size_) ? 1 : 0;
    QUIRE_CHECK(tables_[t].num_old_holders[at / static_cast<size_t>(block_size_)] == num_expected,
                "[sim] a shared block is written");
    tables_[t].cache[at] = content;
  }
}

// Checks the reads of the slice's first query, whose window begins earliest.
void FakeDevice::check_reads(const SeqSlice& slice) const {
  const Row& row = rows_[static_cast<size_t>(slice.row)];
  const int end = std::min(row.num_computed, slice.num_blocks * block_size_);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const int window = tables_[t].window;
    const int first = window == 0 ? 0 : std::max(0, row.step_begin - window + 1);
    for (int position = first; position < end; ++position) {
      QUIRE_CHECK(
          tables_[t].cache[slot(row, t, position)] == row.contents[static_cast<size_t>(position)],
          "[sim] the cache holds other tokens than the sequence");
    }
  }
}

SampledSpan FakeDevice::sample(const SeqSlice& slice) {
  Row& row = rows_[static_cast<size_t>(slice.row)];
  append_sampled(row);
  SampledSpan span;
  span.seq_id = slice.seq_id;
  const int num_tokens = 1 + (slice.decodes ? row.num_accepted : 0);
  for (auto id = row.token_ids.end() - num_tokens; id != row.token_ids.end(); ++id) {
    span.tokens.push_back({.token_id = *id, .logprobs = {}});
  }
  return span;
}

void FakeDevice::append_sampled(Row& row) {
  row.token_ids.push_back(fake_sample(row.contents.back(), row.seed));
  row.contents.push_back(next_content(row.contents.back(), row.token_ids.back()));
}

}  // namespace quire::testing

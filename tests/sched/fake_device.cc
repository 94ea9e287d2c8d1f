#include "sched/fake_device.h"

#include <string>

#include "base/check.h"

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

FakeDevice::FakeDevice(int num_rows, int num_blocks, int block_size)
    : block_size_(block_size),
      rows_(static_cast<size_t>(num_rows)),
      cache_(static_cast<size_t>(num_blocks) * static_cast<size_t>(block_size)),
      num_holders_(static_cast<size_t>(num_blocks)) {}

std::vector<SampledToken> FakeDevice::run(const BatchPlan& plan,
                                          const std::function<std::string(SeqId)>& salt_of) {
  for (const int row : plan.rows_removed) remove_row(row);
  num_old_holders_ = num_holders_;
  for (Row& row : rows_) row.num_old_blocks = static_cast<int>(row.block_ids.size());
  for (const RowAdded& added : plan.rows_added) {
    add_row(added, root_content(salt_of(added.seq_id)));
  }
  for (const BlockTableAppend& append : plan.block_appends) append_blocks(append);
  // As in a layer: the whole batch writes before anyone reads.
  for (const SeqSlice& slice : plan.slices) write(plan, slice);
  for (const SeqSlice& slice : plan.slices) check_reads(slice);
  std::vector<SampledToken> sampled;
  for (const SeqSlice& slice : plan.slices) {
    if (slice.samples) sampled.push_back(sample(slice));
  }
  return sampled;
}

void FakeDevice::remove_row(int row_idx) {
  Row& row = rows_.at(static_cast<size_t>(row_idx));
  QUIRE_CHECK(row.active, "[sim] a row is removed that was not there");
  for (const int32_t block_id : row.block_ids) --num_holders_[static_cast<size_t>(block_id)];
  row = Row();
}

void FakeDevice::add_row(const RowAdded& added, Content root) {
  Row& row = rows_.at(static_cast<size_t>(added.row));
  QUIRE_CHECK(!row.active, "[sim] a row is added that is still there");
  row.active = row.fresh = true;
  row.seq_id = added.seq_id;
  row.seed = added.sampling->seed;
  for (const int32_t token_id : added.token_ids) {
    row.contents.push_back(
        next_content(row.contents.empty() ? root : row.contents.back(), token_id));
    row.token_ids.push_back(token_id);
  }
}

void FakeDevice::append_blocks(const BlockTableAppend& append) {
  Row& row = rows_.at(static_cast<size_t>(append.row));
  QUIRE_CHECK(row.active && append.first == static_cast<int>(row.block_ids.size()),
              "[sim] a block table does not grow at its end");
  for (const int32_t block_id : append.block_ids) {
    QUIRE_CHECK(block_id > 0, "[sim] the padding page was handed out");
    ++num_holders_.at(static_cast<size_t>(block_id));
    row.block_ids.push_back(block_id);
  }
}

size_t FakeDevice::slot(const Row& row, int position) const {
  const auto block_id =
      static_cast<size_t>(row.block_ids.at(static_cast<size_t>(position / block_size_)));
  return block_id * static_cast<size_t>(block_size_) + static_cast<size_t>(position % block_size_);
}

void FakeDevice::write(const BatchPlan& plan, const SeqSlice& slice) {
  Row& row = rows_.at(static_cast<size_t>(slice.row));
  QUIRE_CHECK(row.active && row.seq_id == slice.seq_id, "[sim] a slice's row is another's");
  if (row.fresh) {
    QUIRE_CHECK(slice.num_computed % block_size_ == 0, "[sim] only full blocks are shared");
    row.num_computed = slice.num_computed;
    num_shared_tokens_ += slice.num_computed;
    row.fresh = false;
  }
  QUIRE_CHECK(slice.num_computed == row.num_computed, "[sim] a token is computed twice or never");
  const int end = slice.num_computed + slice.num_tokens;
  QUIRE_CHECK(end <= static_cast<int>(row.token_ids.size()),
              "[sim] a slice goes beyond the tokens");
  QUIRE_CHECK(slice.samples == (end == static_cast<int>(row.token_ids.size())),
              "[sim] a slice samples exactly when it ends the sequence");
  for (int i = 0; i < slice.num_tokens; ++i) {
    const auto position = static_cast<size_t>(slice.num_computed + i);
    const int32_t token_id = plan.token_ids.at(static_cast<size_t>(slice.first_token + i));
    const bool is_last = position + 1 == row.token_ids.size();
    QUIRE_CHECK(token_id == row.token_ids[position] || (token_id == kPlaceholderToken && is_last),
                "[sim] the plan feeds a wrong token");
    const size_t at = slot(row, static_cast<int>(position));
    // Only those that join in this very plan may share a block that it writes.
    const bool is_old = static_cast<int>(position) / block_size_ < row.num_old_blocks;
    QUIRE_CHECK(num_old_holders_[at / static_cast<size_t>(block_size_)] == (is_old ? 1 : 0),
                "[sim] a shared block is written");
    cache_[at] = row.contents[position];
  }
  row.num_computed = end;
  num_computed_tokens_ += slice.num_tokens;
}

void FakeDevice::check_reads(const SeqSlice& slice) const {
  const Row& row = rows_[static_cast<size_t>(slice.row)];
  for (int position = 0; position < slice.num_computed + slice.num_tokens; ++position) {
    QUIRE_CHECK(cache_[slot(row, position)] == row.contents[static_cast<size_t>(position)],
                "[sim] the cache holds other tokens than the sequence");
  }
}

SampledToken FakeDevice::sample(const SeqSlice& slice) {
  Row& row = rows_[static_cast<size_t>(slice.row)];
  SampledToken sampled;
  sampled.seq_id = slice.seq_id;
  sampled.token_id = fake_sample(row.contents.back(), row.seed);
  row.contents.push_back(next_content(row.contents.back(), sampled.token_id));
  row.token_ids.push_back(sampled.token_id);
  return sampled;
}

}  // namespace quire::testing

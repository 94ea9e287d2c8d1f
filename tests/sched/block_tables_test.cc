#include "sched/block_tables.h"

#include <gtest/gtest.h>

#include <numeric>

namespace quire {
namespace {

constexpr int kBlockSize = 16;

SchedulerConfig small_config() {
  SchedulerConfig config;
  config.block_size = kBlockSize;
  config.tables = {{.num_blocks = 33}};
  return config;
}

SeqRecord record_of(const TokenIds& prompt, std::shared_ptr<std::vector<BlockHash>> hashes) {
  SamplingSpec spec;
  spec.params = std::make_shared<const SamplingParams>();
  SeqRecord rec;
  rec.seq = std::make_unique<Sequence>();
  rec.seq->sampling = std::make_shared<const SamplingSpec>(spec);
  rec.seq->token_ids = prompt;
  rec.seq->num_prompt_tokens = static_cast<int>(prompt.size());
  rec.seq->prompt_hashes = std::move(hashes);
  return rec;
}

std::vector<int32_t> ids_from(int32_t first, int count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(BlockTables, TheSequencesOfARequestHashItsPromptOnce) {
  const BlockTables tables(small_config());
  const TokenIds prompt = std::make_shared<const std::vector<int32_t>>(ids_from(1, 70));
  const auto hashes = std::make_shared<std::vector<BlockHash>>();
  SeqRecord first = record_of(prompt, hashes);
  SeqRecord second = record_of(prompt, hashes);
  CachedPrefix prefix;
  tables.match_prefix(first, prefix);
  ASSERT_EQ(hashes->size(), 4U);
  EXPECT_EQ(first.block_hashes, *hashes);
  // Marks the shared hashes, to see that the second sequence takes its hashes from them.
  hashes->back() = BlockHash{};
  tables.match_prefix(second, prefix);
  EXPECT_EQ(second.block_hashes, *hashes) << "the prompt is hashed per sequence";
}

TEST(BlockTables, ASequenceHashesItsOwnBlocksBehindThoseOfThePrompt) {
  const BlockTables tables(small_config());
  const auto hashes = std::make_shared<std::vector<BlockHash>>();
  for (const int32_t first_output : {100, 200}) {
    std::vector<int32_t> ids = ids_from(1, 40);
    SeqRecord rec = record_of(ids, hashes);
    for (const int32_t id : ids_from(first_output, 30)) {
      ids.push_back(id);
      rec.seq->token_ids.push_back(id);
    }
    CachedPrefix prefix;
    tables.match_prefix(rec, prefix);
    std::vector<BlockHash> expected;
    extend_block_hashes("", {.root = none_hash(kDefaultBlockHashSeed), .size = kBlockSize}, ids, 4,
                        expected);
    EXPECT_EQ(rec.block_hashes, expected);
    EXPECT_EQ(hashes->size(), 2U) << "only full blocks of the prompt are shared";
  }
}

}  // namespace
}  // namespace quire

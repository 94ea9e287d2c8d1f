// The passes of drafters, as the device derives them after a step, against the same values computed
// on the host from each sequence's length and pages.
#include "cuda/step/draft_inputs.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/device_info.h"
#include "kv/kv_layout.h"
#include "platform/batch_inputs.h"

namespace quire::cuda {
namespace {

using ::testing::Each;

constexpr int kMaxSeqs = 9;
constexpr int kPageSize = 16;
constexpr int kQLen = 4;  // of the target's steps
constexpr int kMaxKvLen = 160;
constexpr int kMask = 7777;
constexpr int kWindows[] = {0, 20};

// A sequence after the step. Its pages may end within its block, or before it: then it has ended in
// a step that the host has not read.
struct Seq {
  int slot = 0;
  int num_computed = 0;
  int num_pages = 0;
  bool samples = true;

  int first() const { return std::min(num_computed, num_pages * kPageSize - 1); }
};

int32_t page_of(const Seq& seq, size_t table, int page_idx) {
  return 1000 * (seq.slot + 1) + 100 * static_cast<int32_t>(table) + page_idx;
}

int32_t next_token(int slot, int i) {
  return 10 * slot + i;
}

// The passes of a drafter on the device after one step of the sequences.
class BlockPassTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static int block_len() { return std::get<0>(GetParam()); }
  static bool in_graph() { return std::get<1>(GetParam()); }
  int num_spans() const { return in_graph() ? kMaxSeqs : static_cast<int>(seqs_.size()); }

  void SetUp() override {
    const auto device = open_device(0);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    stream_ = std::move(*CudaStream::create());
    seqs_ = {{.slot = 4, .num_computed = 1, .num_pages = 1},
             {.slot = 0, .num_computed = 14, .num_pages = 3},
             {.slot = 2, .num_computed = 45, .num_pages = 3},
             {.slot = 7, .num_computed = 50, .num_pages = 3},
             {.slot = 1, .num_computed = 100, .num_pages = 9},
             {.slot = 3, .num_computed = 16, .num_pages = 4}};
    // Prompts never run in a graph. One that does not sample gets no drafts.
    if (!in_graph())
      seqs_.push_back({.slot = 5, .num_computed = 30, .num_pages = 2, .samples = false});
    run_step();
    run_pass();
  }

  // Derives the target's step.
  void run_step() {
    limits_ = {.max_num_seqs = kMaxSeqs,
               .max_num_tokens = 128,
               .max_num_logit_rows = kMaxSeqs * kQLen,
               .max_kv_len = kMaxKvLen,
               .page_size = kPageSize,
               .decode_q_len = kQLen,
               .windows = {std::begin(kWindows), std::end(kWindows)},
               .max_new_pages = 200};
    buffers_ = std::move(*StepBuffers::create(limits_, *stream_));
    upload_progress();
    const BatchPlan plan = make_plan();
    const GraphBatch batch = {.num_reqs = kMaxSeqs, .q_len = kQLen};
    const GraphBatch* graph = in_graph() ? &batch : nullptr;
    ASSERT_TRUE(buffers_.upload(plan, sample_ranges(plan, graph), graph, *stream_).ok());
    buffers_.derive(num_spans(), *stream_);
    attention_.describe(plan, buffers_.arrays());
    if (in_graph()) attention_.pad_to_graph(batch, kMaxKvLen);
  }

  void upload_progress() {
    std::vector<int32_t> words(kMaxSeqs * (1 + kQLen));
    for (const Seq& seq : seqs_) words[static_cast<size_t>(seq.slot)] = seq.num_computed;
    for (int slot = 0; slot < kMaxSeqs; ++slot) {
      for (int i = 0; i < kQLen; ++i) {
        words[static_cast<size_t>(kMaxSeqs + slot * kQLen + i)] = next_token(slot, i);
      }
    }
    progress_ = std::move(*device_memory(words.size() * sizeof(int32_t)));
    stream_->copy_to_device(progress_.data(), words.data(), words.size() * sizeof(int32_t));
    ASSERT_TRUE(stream_->synchronize().ok());
    buffers_.arrays().num_computed = static_cast<const int32_t*>(progress_.data());
    buffers_.arrays().next_tokens = buffers_.arrays().num_computed + kMaxSeqs;
  }

  BatchPlan make_plan() const {
    BatchPlan plan;
    for (const Seq& seq : seqs_) {
      for (int t = 0; t < 2; ++t) {
        std::vector<int32_t> ids;
        for (int i = 0; i < seq.num_pages; ++i) {
          ids.push_back(page_of(seq, static_cast<size_t>(t), i));
        }
        plan.block_appends.push_back(
            {.slot = seq.slot, .table = t, .first = 0, .block_ids = std::move(ids)});
      }
      const int num_tokens = seq.samples ? kQLen : seq.num_computed;
      plan.spans.push_back({.slot = seq.slot,
                            .decodes = seq.samples,
                            .num_computed = seq.samples ? seq.num_computed : 0,
                            .num_tokens = num_tokens,
                            .first_token = plan.num_tokens(),
                            .num_blocks = seq.num_pages,
                            .samples = seq.samples,
                            .num_drafts = seq.samples ? kQLen - 1 : 0});
      plan.token_ids.resize(plan.token_ids.size() + static_cast<size_t>(num_tokens),
                            seq.samples ? kPlaceholderToken : 1);
      plan.num_decode += seq.samples ? 1 : 0;
    }
    return plan;
  }

  void run_pass() {
    make_inputs({.step = limits_, .num_passes = 1, .q_len = block_len()});
    launch_block_pass(buffers_.arrays(), inputs_.arrays(), block(), num_spans(), *stream_);
  }

  void make_inputs(const DraftLimits& limits) {
    inputs_ = std::move(*DraftInputs::create(limits, *stream_));
    inputs_.arrays().num_computed = buffers_.arrays().num_computed;
    inputs_.arrays().next_tokens = buffers_.arrays().next_tokens;
    const GraphBatch batch = {.num_reqs = kMaxSeqs, .q_len = kQLen};
    inputs_.describe({.arrays = &buffers_.arrays(),
                      .batches = attention_.batches(),
                      .graph = in_graph() ? &batch : nullptr});
  }

  static BlockTokens block() {
    return {.mask_token_id = kMask, .num_before_drafts = 1, .num_drafts = block_len() - 1};
  }

  template <typename T>
  std::vector<T> read(const T* device, size_t count) {
    std::vector<T> host(count);
    stream_->copy_to_host(host.data(), device, count * sizeof(T));
    EXPECT_TRUE(stream_->synchronize().ok());
    return host;
  }

  // The part of an array per token that belongs to a span.
  template <typename T>
  std::vector<T> read_block(const T* device, int span_idx) {
    return read(device + span_idx * block_len(), static_cast<size_t>(block_len()));
  }

  void expect_block(const Seq& seq, int span_idx) {
    const DraftArrays& arrays = inputs_.arrays();
    const int num_places = seq.num_pages * kPageSize;
    std::vector<int32_t> tokens, positions;
    std::vector<int64_t> kv_slots[2];
    for (int i = 0; i < block_len(); ++i) {
      tokens.push_back(i == 0 ? next_token(seq.slot, 0) : kMask);
      positions.push_back(seq.first() + i);
      const int position = seq.num_computed + i;
      for (size_t t = 0; t < 2; ++t) {
        const int64_t page = page_of(seq, t, position / kPageSize);
        kv_slots[t].push_back(position < num_places ? page * kPageSize + position % kPageSize : -1);
      }
    }
    const int seq_len = std::min(seq.first() + block_len(), num_places);
    EXPECT_EQ(read_block(arrays.token_ids, span_idx), tokens);
    EXPECT_EQ(read_block(arrays.positions, span_idx), positions);
    EXPECT_EQ(read(arrays.seq_lens + span_idx, 1)[0], seq_len);
    EXPECT_GE(inputs_.batch().kv_len_bound[static_cast<size_t>(span_idx)], seq_len);
    for (size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(read_block(arrays.tables[t].kv_slots, span_idx), kv_slots[t]);
      expect_pages(seq, seq.first(), span_idx, t, seq_len);
    }
  }

  // `query`: the position of the first query.
  void expect_pages(const Seq& seq, int query, int span_idx, size_t table, int seq_len) {
    const int first_page = first_page_read(query, kWindows[table], kPageSize);
    std::vector<int32_t> pages;
    for (int i = 0; i < ceil_div(seq_len, kPageSize); ++i) {
      pages.push_back(i < first_page ? 0 : page_of(seq, table, i));
    }
    EXPECT_EQ(
        read(inputs_.arrays().tables[table].block_table + span_idx * buffers_.arrays().max_pages,
             pages.size()),
        pages);
  }

  void expect_padding(int span_idx) {
    const DraftArrays& arrays = inputs_.arrays();
    EXPECT_EQ(read(arrays.seq_lens + span_idx, 1)[0], 0);
    EXPECT_THAT(read_block(arrays.token_ids, span_idx), Each(0));
    EXPECT_THAT(read_block(arrays.positions, span_idx), Each(0));
    for (size_t t = 0; t < 2; ++t) {
      EXPECT_THAT(read_block(arrays.tables[t].kv_slots, span_idx), Each(-1));
    }
  }

  const Seq* seq_of(int span_idx) const {
    const auto idx = static_cast<size_t>(span_idx);
    return idx < seqs_.size() && seqs_[idx].samples ? &seqs_[idx] : nullptr;
  }

  std::unique_ptr<CudaStream> stream_;
  std::vector<Seq> seqs_;  // by span
  StepLimits limits_;
  StepBuffers buffers_;
  AttentionInputs attention_;
  Buffer progress_;  // device: num_computed, then next_tokens
  DraftInputs inputs_;
};

TEST_P(BlockPassTest, DerivesTheBlockOfEachSequence) {
  for (int i = 0; i < num_spans(); ++i) {
    SCOPED_TRACE(i);
    if (const Seq* seq = seq_of(i)) {
      expect_block(*seq, i);
    } else {
      expect_padding(i);
    }
  }
  const PhaseRange& range = inputs_.batch().decode;
  EXPECT_EQ(range.num_reqs, num_spans());
  EXPECT_EQ(range.num_tokens, num_spans() * block_len());
  EXPECT_EQ(range.max_q_len, block_len());
  EXPECT_EQ(inputs_.batch().prefill.num_reqs, 0);
  const auto starts = read(inputs_.arrays().query_start, static_cast<size_t>(num_spans() + 1));
  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(starts[i], static_cast<int>(i) * block_len());
    EXPECT_EQ(inputs_.batch().query_start.host[i], starts[i]);
  }
}

TEST_P(BlockPassTest, ListsTheLogitsOfOneDraftAfterTheOther) {
  const size_t num_rows = static_cast<size_t>(block().num_drafts * num_spans());
  const std::vector<int32_t> rows = read(inputs_.arrays().logit_tokens, num_rows);
  for (int draft = 0; draft < block().num_drafts; ++draft) {
    for (int span = 0; span < num_spans(); ++span) {
      EXPECT_EQ(rows[static_cast<size_t>(draft * num_spans() + span)],
                span * block_len() + 1 + draft);
    }
  }
}

TEST_P(BlockPassTest, ReadsTheTokenBeforeEachDraft) {
  for (int draft = 0; draft < kQLen - 1; ++draft) {
    launch_previous_tokens(buffers_.arrays(), inputs_.arrays(), draft, num_spans(), *stream_);
    const auto previous = read(inputs_.arrays().previous_tokens, static_cast<size_t>(num_spans()));
    for (int i = 0; i < num_spans(); ++i) {
      const Seq* seq = seq_of(i);
      EXPECT_EQ(previous[static_cast<size_t>(i)],
                seq == nullptr ? 0 : next_token(seq->slot, draft));
    }
  }
}

TEST_P(BlockPassTest, PassesOverTheTargetsCacheStayAtTheNewestToken) {
  make_inputs({.step = limits_, .num_passes = kQLen - 1, .reads_target_cache = true});
  launch_first_pass(buffers_.arrays(), inputs_.arrays(), num_spans(), *stream_);
  for (int pass = 0; pass < kQLen - 1; ++pass) {
    launch_draft_pass(buffers_.arrays(), inputs_.arrays(), pass, num_spans(), *stream_);
    const DraftArrays& arrays = inputs_.arrays();
    for (int i = 0; i < num_spans(); ++i) {
      const Seq* seq = seq_of(i);
      const int seq_len = seq == nullptr ? 0 : seq->first();
      EXPECT_EQ(read(arrays.token_ids + i, 1)[0], seq == nullptr ? 0 : next_token(seq->slot, pass));
      EXPECT_EQ(read(arrays.positions + i, 1)[0], seq_len);
      EXPECT_EQ(read(arrays.seq_lens + i, 1)[0], seq_len);
      for (size_t t = 0; t < 2; ++t) {
        EXPECT_EQ(read(arrays.tables[t].kv_slots + i, 1)[0], -1);
        if (seq != nullptr) expect_pages(*seq, seq_len - 1, i, t, seq_len);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, BlockPassTest,
                         ::testing::Combine(::testing::Values(2, 4, 8, 16), ::testing::Bool()));

}  // namespace
}  // namespace quire::cuda

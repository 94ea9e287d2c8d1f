// The metadata kernel against its plain definition, platform/batch_inputs.h, over the random steps
// of random sequences: pages appended as they grow, placeholders, chunks, padding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/step/step_buffers.h"
#include "platform/batch_inputs.h"

namespace quire::cuda {
namespace {

constexpr int kMaxSeqs = 24;
constexpr int kMaxModelLen = 700;
constexpr int kMaxTokens = 1024;

struct Seq {
  int row = 0;
  int num_computed = 0;
  std::vector<int32_t> pages = {};
};

// A device that the plans of random sequences are sent to, and what the host expects of it.
class MetadataTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto device = open_device(0);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    stream_ = std::move(*CudaStream::create());
    // So few pages inside the block that many steps send some ahead of it.
    limits_ = {.max_num_seqs = kMaxSeqs, .max_num_tokens = kMaxTokens, .max_new_pages = 12};
    buffers_ = std::move(*StepBuffers::create(limits_, kMaxModelLen, GetParam(), *stream_));
    last_tokens_.resize(kMaxSeqs);
    for (int32_t& token : last_tokens_) token = static_cast<int32_t>(random_() % 1000);
    last_tokens_memory_ = std::move(*device_memory(kMaxSeqs * sizeof(int32_t)));
    stream_->copy_to_device(last_tokens_memory_.data(), last_tokens_.data(),
                            kMaxSeqs * sizeof(int32_t));
    buffers_.arrays().last_tokens = static_cast<const int32_t*>(last_tokens_memory_.data());
    for (int row = 0; row < kMaxSeqs; ++row) seqs_.push_back({.row = row});
  }

  int uniform(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  // Adds one slice of q_len tokens, growing the sequence's pages.
  void add_slice(BatchPlan& plan, Seq& seq, int q_len) {
    const int kv_len = seq.num_computed + q_len;
    const size_t first = seq.pages.size();
    while (static_cast<int>(seq.pages.size()) * GetParam() < kv_len) {
      seq.pages.push_back(uniform(1, 100'000));
    }
    if (seq.pages.size() > first) {
      plan.block_appends.push_back(
          {.row = seq.row,
           .first = static_cast<int>(first),
           .block_ids = {seq.pages.begin() + static_cast<std::ptrdiff_t>(first), seq.pages.end()}});
    }
    plan.slices.push_back({.row = seq.row,
                           .num_computed = seq.num_computed,
                           .num_tokens = q_len,
                           .first_token = plan.num_tokens(),
                           .samples = uniform(0, 3) > 0});
    for (int i = 0; i < q_len; ++i) plan.token_ids.push_back(uniform(0, 999));
    if (uniform(0, 1) == 0) plan.token_ids.back() = kPlaceholderToken;
    seq.num_computed = kv_len;
  }

  BatchPlan random_plan(bool only_decode) {
    std::shuffle(seqs_.begin(), seqs_.end(), random_);
    BatchPlan plan;
    const int num_decode = uniform(only_decode ? 1 : 0, kMaxSeqs - 2);
    const int num_prefill = only_decode ? 0 : uniform(num_decode == 0 ? 1 : 0, 2);
    for (int i = 0; i < num_decode + num_prefill; ++i) {
      Seq& seq = seqs_[static_cast<size_t>(i)];
      const int q_len = i < num_decode ? 1 : uniform(2, 150);
      if (seq.num_computed + q_len > kMaxModelLen) seq = {.row = seq.row};
      add_slice(plan, seq, q_len);
    }
    plan.num_decode = num_decode;
    return plan;
  }

  BatchInputs expected_inputs(const BatchPlan& plan) {
    std::vector<RowView> rows;
    for (size_t i = 0; i < plan.slices.size(); ++i) {
      rows.push_back({seqs_[i].pages, last_tokens_[static_cast<size_t>(seqs_[i].row)]});
    }
    BatchInputs inputs;
    inputs.build(plan, rows, GetParam());
    return inputs;
  }

  template <typename T>
  std::vector<T> read(const T* device, size_t count) {
    std::vector<T> host(count);
    stream_->copy_to_host(host.data(), device, count * sizeof(T));
    EXPECT_TRUE(stream_->synchronize().ok());
    return host;
  }

  void expect_same(const BatchPlan& plan, const BatchInputs& expected) {
    const StepArrays& arrays = buffers_.arrays();
    const size_t num_tokens = expected.token_ids.size();
    const size_t num_reqs = plan.slices.size();
    EXPECT_EQ(read(arrays.token_ids, num_tokens), expected.token_ids);
    EXPECT_EQ(read(arrays.positions, num_tokens), expected.positions);
    EXPECT_EQ(read(arrays.slot_mapping, num_tokens), expected.slot_mapping);
    EXPECT_EQ(read(arrays.query_start, num_reqs + 1), expected.query_start);
    EXPECT_EQ(read(arrays.seq_lens, num_reqs), expected.seq_lens);
    for (size_t i = 0; i < num_reqs; ++i) {
      const int32_t* row = arrays.block_table + static_cast<int64_t>(i) * arrays.max_pages;
      const size_t num_pages =
          (static_cast<size_t>(expected.seq_lens[i]) + static_cast<size_t>(GetParam()) - 1) /
          static_cast<size_t>(GetParam());
      const auto begin = expected.block_table.begin() +
                         static_cast<std::ptrdiff_t>(i) * expected.attention.max_pages;
      EXPECT_EQ(read(row, num_pages),
                std::vector<int32_t>(begin, begin + static_cast<std::ptrdiff_t>(num_pages)));
    }
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  std::unique_ptr<CudaStream> stream_;
  StepLimits limits_;
  StepBuffers buffers_;
  Buffer last_tokens_memory_;
  std::vector<int32_t> last_tokens_;
  std::vector<Seq> seqs_;
};

TEST_P(MetadataTest, DerivesWhatTheHostWould) {
  for (int step = 0; step < 200 && !HasFailure(); ++step) {
    const BatchPlan plan = random_plan(false);
    const auto num_reqs = static_cast<int>(plan.slices.size());
    ASSERT_TRUE(buffers_.upload(plan, num_reqs, false, *stream_).ok());
    buffers_.derive(num_reqs, *stream_);
    expect_same(plan, expected_inputs(plan));
    size_t logit_idx = 0;
    for (const SeqSlice& slice : plan.slices) {
      if (!slice.samples) continue;
      EXPECT_EQ(read(buffers_.arrays().logit_rows + logit_idx, 1)[0],
                slice.first_token + slice.num_tokens - 1);
      EXPECT_EQ(read(buffers_.arrays().sample_rows + logit_idx, 1)[0], slice.row);
      ++logit_idx;
    }
  }
}

TEST_P(MetadataTest, PadsAGraphsBatchHarmlessly) {
  for (int step = 0; step < 50 && !HasFailure(); ++step) {
    const BatchPlan plan = random_plan(true);
    const size_t num_real = plan.slices.size();
    ASSERT_TRUE(buffers_.upload(plan, kMaxSeqs, true, *stream_).ok());
    buffers_.derive(kMaxSeqs, *stream_);
    expect_same(plan, expected_inputs(plan));
    const StepArrays& arrays = buffers_.arrays();
    const auto slots = read(arrays.slot_mapping, kMaxSeqs);
    const auto lens = read(arrays.seq_lens, kMaxSeqs);
    const auto rows = read(arrays.sample_rows, kMaxSeqs);
    const auto tokens = read(arrays.token_ids, kMaxSeqs);
    const auto starts = read(arrays.query_start, kMaxSeqs + 1);
    const auto logit_rows = read(arrays.logit_rows, kMaxSeqs);
    for (size_t i = 0; i < kMaxSeqs; ++i) {
      EXPECT_EQ(starts[i], static_cast<int32_t>(i));
      EXPECT_EQ(logit_rows[i], static_cast<int32_t>(i));
      if (i < num_real) {
        EXPECT_EQ(rows[i], plan.slices[i].samples ? plan.slices[i].row : -1);
        continue;
      }
      EXPECT_EQ(slots[i], -1);
      EXPECT_EQ(lens[i], 0);
      EXPECT_EQ(rows[i], -1);
      EXPECT_EQ(tokens[i], 0);
      EXPECT_EQ(read(arrays.block_table + static_cast<int64_t>(i) * arrays.max_pages, 1)[0], 0);
    }
  }
}

// A prefix hit of every row at once: more pieces than one copy takes, the last of each row partial.
TEST(PagesAhead, TravelInPiecesBeforeTheStep) {
  const auto device = open_device(0);
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  constexpr int kPageSize = 16;
  constexpr int kNumPages = 45 * PagePiece::kMaxPages + 5;
  constexpr int kKvLen = kNumPages * kPageSize;
  const StepLimits limits = {
      .max_num_seqs = kMaxSeqs, .max_num_tokens = kMaxSeqs, .max_new_pages = kNumPages + 7};
  const auto stream = std::move(*CudaStream::create());
  StepBuffers buffers = std::move(*StepBuffers::create(limits, kKvLen, kPageSize, *stream));
  std::mt19937 random(1);
  BatchPlan plan;
  for (int row = kMaxSeqs - 1; row >= 0; --row) {
    std::vector<int32_t> pages(kNumPages);
    for (int32_t& page : pages) page = 1 + static_cast<int32_t>(random() % 100'000);
    plan.block_appends.push_back({.row = row, .first = 0, .block_ids = std::move(pages)});
    plan.slices.push_back({.row = row,
                           .num_computed = kKvLen - 1,
                           .num_tokens = 1,
                           .first_token = plan.num_tokens(),
                           .samples = true});
    plan.token_ids.push_back(row);
  }
  plan.num_decode = kMaxSeqs;
  const std::vector<PagePiece> pieces = pages_ahead(plan, limits);
  EXPECT_EQ(pieces.size(), size_t{kMaxSeqs - 1} * 46);  // the first row's go inside
  EXPECT_GT(pieces.size(), size_t{StepBuffers::kMaxPieces});
  for (int step = 0; step < 3; ++step) {  // the second finds the ring's slots in use
    ASSERT_TRUE(buffers.upload(plan, kMaxSeqs, false, *stream).ok());
    buffers.derive(kMaxSeqs, *stream);
  }
  std::vector<int32_t> table(size_t{kMaxSeqs} * kNumPages);
  stream->copy_to_host(table.data(), buffers.arrays().block_table, table.size() * sizeof(int32_t));
  ASSERT_TRUE(stream->synchronize().ok());
  for (size_t i = 0; i < kMaxSeqs; ++i) {
    const std::span<const int32_t> row = std::span(table).subspan(i * kNumPages, kNumPages);
    EXPECT_TRUE(std::ranges::equal(row, plan.block_appends[i].block_ids)) << "slice " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(PageSizes, MetadataTest, ::testing::Values(16, 32, 64));

}  // namespace
}  // namespace quire::cuda

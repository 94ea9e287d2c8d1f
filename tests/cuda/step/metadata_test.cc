// Compares the metadata kernel with its reference implementation, platform/batch_inputs.h, over
// random steps of random sequences: pages appended and freed, spans of 1 to 9 tokens whose lengths
// only the device has, spans with fewer drafts than their slots, drafts beyond a sequence's pages,
// prefill chunks, padding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/numbers.h"
#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/step/step_inputs.h"
#include "kv/kv_layout.h"
#include "platform/batch_inputs.h"
#include "sched/policy.h"

namespace quire::cuda {
namespace {

constexpr int kMaxSeqs = 24;
constexpr int kMaxModelLen = 700;
constexpr int kMaxTokens = 1024;

struct Seq {
  int slot = 0;
  int num_computed = 0;
  std::vector<std::vector<int32_t>> pages = {};  // per block table
  std::vector<int32_t> next_tokens = {};
};

struct Shape {
  int page_size = 16;
  int q_len = 1;     // of spans that decode
  int num_left = 0;  // drafts of each slot that the steps do not verify
};

// Sends the plans of random sequences to a device, and keeps a copy of its state on the host.
class MetadataTest : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    const auto device = open_device(0);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    stream_ = std::move(*CudaStream::create());
    // Few pages fit into the packed step, so that many steps upload some ahead of it.
    limits_ = {.max_num_seqs = kMaxSeqs,
               .max_num_tokens = kMaxTokens,
               .max_num_logit_rows = kMaxSeqs * q_len(),
               .max_kv_len = kMaxModelLen + q_len() - 1,
               .page_size = page_size(),
               .decode_q_len = max_q_len(),
               .windows = {0, 100},
               .max_new_pages = 12};
    buffers_ = std::move(*StepBuffers::create(limits_, *stream_));
    const auto num_words = static_cast<size_t>(kMaxSeqs * (1 + max_q_len()));
    progress_ = std::move(*device_memory(num_words * sizeof(int32_t)));
    buffers_.arrays().num_computed = static_cast<const int32_t*>(progress_.data());
    buffers_.arrays().next_tokens = buffers_.arrays().num_computed + kMaxSeqs;
    for (int slot = 0; slot < kMaxSeqs; ++slot) seqs_.push_back({.slot = slot});
  }

  static int page_size() { return GetParam().page_size; }
  static int q_len() { return GetParam().q_len; }
  static int max_q_len() { return GetParam().q_len + GetParam().num_left; }
  int uniform(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  // Resizes the sequence's pages to `kv_len` tokens, and frees the others. Pages before a window
  // may never have been appended.
  void resize_pages(BatchPlan& plan, Seq& seq, int kv_len) {
    const auto num_pages = static_cast<size_t>(ceil_div(kv_len, page_size()));
    seq.pages.resize(limits_.windows.size());
    for (size_t t = 0; t < seq.pages.size(); ++t) {
      std::vector<int32_t>& pages = seq.pages[t];
      const int read = first_page_read(seq.num_computed, limits_.windows[t], page_size());
      const auto first = std::max(std::min(pages.size(), num_pages),
                                  std::min(static_cast<size_t>(read), num_pages));
      pages.resize(first);
      while (pages.size() < num_pages) pages.push_back(uniform(1, 100'000));
      if (first == num_pages) continue;
      plan.block_appends.push_back(
          {.slot = seq.slot,
           .table = static_cast<int>(t),
           .first = static_cast<int>(first),
           .block_ids = {pages.begin() + static_cast<std::ptrdiff_t>(first), pages.end()}});
    }
  }

  // Adds a prefill chunk of the sequence's known tokens.
  void add_chunk(BatchPlan& plan, Seq& seq, int num_tokens) {
    resize_pages(plan, seq, seq.num_computed + num_tokens);
    plan.spans.push_back({.slot = seq.slot,
                          .num_computed = seq.num_computed,
                          .num_tokens = num_tokens,
                          .first_token = plan.num_tokens(),
                          .num_blocks = static_cast<int>(seq.pages[0].size()),
                          .samples = uniform(0, 3) > 0});
    for (int i = 0; i < num_tokens; ++i) plan.token_ids.push_back(uniform(0, 999));
  }

  // Adds the sequence's next tokens. The host only has an upper bound of its length. If the
  // sequence is about to end, its pages do not hold all drafts.
  void add_decode(BatchPlan& plan, Seq& seq) {
    const int bound = seq.num_computed + uniform(0, 2 * q_len());
    const int num_needed = seq.num_computed + uniform(1, q_len());
    resize_pages(plan, seq, uniform(0, 3) == 0 ? num_needed : bound + q_len());
    plan.spans.push_back({.slot = seq.slot,
                          .decodes = true,
                          .num_computed = bound,
                          .num_tokens = q_len(),
                          .first_token = plan.num_tokens(),
                          .num_blocks = static_cast<int>(seq.pages[0].size()),
                          .samples = true,
                          .num_drafts = uniform(0, q_len() - 1)});
    plan.token_ids.resize(plan.token_ids.size() + static_cast<size_t>(q_len()), kPlaceholderToken);
  }

  BatchPlan random_plan(bool only_decode) {
    std::shuffle(seqs_.begin(), seqs_.end(), random_);
    BatchPlan plan;
    const int num_decode = uniform(only_decode ? 1 : 0, kMaxSeqs - 2);
    const int num_prefill = only_decode ? 0 : uniform(num_decode == 0 ? 1 : 0, 2);
    for (int i = 0; i < num_decode + num_prefill; ++i) {
      Seq& seq = seqs_[static_cast<size_t>(i)];
      const bool is_short = i < num_decode;
      const int num_tokens = is_short ? q_len() : uniform(q_len() + 1, 150);
      if (seq.num_computed + 3 * num_tokens > kMaxModelLen) seq = {.slot = seq.slot};
      if (is_short && uniform(0, 3) > 0 && seq.num_computed > 0) {
        add_decode(plan, seq);
      } else {
        add_chunk(plan, seq, num_tokens);
      }
    }
    plan.num_decode = num_decode;
    return plan;
  }

  // Uploads the progress of every slot, including slots whose sequences have ended.
  void upload_progress() {
    std::vector<int32_t> words(static_cast<size_t>(kMaxSeqs * (1 + max_q_len())));
    for (Seq& seq : seqs_) {
      seq.next_tokens.resize(static_cast<size_t>(max_q_len()));
      for (int32_t& token : seq.next_tokens) token = uniform(0, 999);
      words[static_cast<size_t>(seq.slot)] = seq.num_computed;
      std::ranges::copy(seq.next_tokens, words.begin() + kMaxSeqs + seq.slot * max_q_len());
    }
    stream_->copy_to_device(progress_.data(), words.data(), words.size() * sizeof(int32_t));
    ASSERT_TRUE(stream_->synchronize().ok());
  }

  // Advances the sequences as sampling does: some drafts are accepted.
  void advance(const BatchPlan& plan) {
    for (size_t i = 0; i < plan.spans.size(); ++i) {
      const SeqSpan& span = plan.spans[i];
      const int end = static_cast<int>(seqs_[i].pages[0].size()) * page_size();
      const int count = span.decodes ? 1 + uniform(0, span.num_drafts) : span.num_tokens;
      seqs_[i].num_computed = std::min(seqs_[i].num_computed + count, end);
    }
  }

  BatchInputs expected_inputs(const BatchPlan& plan) {
    std::vector<SlotView> slots;
    for (size_t i = 0; i < plan.spans.size(); ++i) {
      slots.push_back({seqs_[i].pages, seqs_[i].num_computed, seqs_[i].next_tokens});
    }
    BatchInputs inputs;
    inputs.build(plan, plan.spans, slots, page_size(), limits_.windows);
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
    const size_t num_reqs = plan.spans.size();
    EXPECT_EQ(read(arrays.token_ids, num_tokens), expected.token_ids);
    EXPECT_EQ(read(arrays.positions, num_tokens), expected.positions);
    EXPECT_EQ(read(arrays.query_start, num_reqs + 1), expected.query_start);
    EXPECT_EQ(read(arrays.seq_lens, num_reqs), expected.seq_lens);
    // Only tokens before a decoding span are known to be complete when the step starts.
    std::vector<int32_t> settled_lens;
    for (size_t i = 0; i < num_reqs; ++i) {
      const SeqSpan& span = plan.spans[i];
      settled_lens.push_back(span.decodes ? expected.seq_lens[i] - span.num_tokens : 0);
    }
    EXPECT_EQ(read(arrays.settled_lens, num_reqs), settled_lens);
    for (size_t t = 0; t < expected.tables.size(); ++t) {
      const TableInputs& table = expected.tables[t];
      EXPECT_EQ(read(arrays.tables[t].kv_slots, num_tokens), table.kv_slots);
      for (size_t i = 0; i < num_reqs; ++i) {
        const int32_t* pages =
            arrays.tables[t].block_table + static_cast<int64_t>(i) * arrays.max_pages;
        const auto num_pages = static_cast<size_t>(ceil_div(expected.seq_lens[i], page_size()));
        const auto begin =
            table.block_table.begin() + static_cast<std::ptrdiff_t>(i) * table.attention.max_pages;
        EXPECT_EQ(read(pages, num_pages),
                  std::vector<int32_t>(begin, begin + static_cast<std::ptrdiff_t>(num_pages)));
      }
    }
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam().page_size + GetParam().q_len)};
  std::unique_ptr<CudaStream> stream_;
  StepLimits limits_;
  StepBuffers buffers_;
  Buffer progress_;  // device: num_computed, then next_tokens
  std::vector<Seq> seqs_;
};

TEST_P(MetadataTest, DerivesTheHostsValues) {
  for (int step = 0; step < 200 && !HasFailure(); ++step) {
    const BatchPlan plan = random_plan(false);
    const auto num_reqs = static_cast<int>(plan.spans.size());
    upload_progress();
    ASSERT_TRUE(buffers_.upload(plan, sample_ranges(plan, nullptr), nullptr, *stream_).ok());
    buffers_.derive(num_reqs, *stream_);
    expect_same(plan, expected_inputs(plan));
    const StepArrays& arrays = buffers_.arrays();
    size_t logits_row = 0;
    for (size_t i = 0; i < plan.spans.size(); ++i) {
      const SeqSpan& span = plan.spans[i];
      EXPECT_EQ(read(arrays.span_slots + i, 1)[0], span.samples ? span.slot : -1);
      const int first = span.first_token + (span.decodes ? 0 : span.num_tokens - 1);
      for (int offset = 0; offset < span.max_sampled(); ++offset, ++logits_row) {
        EXPECT_EQ(read(arrays.logit_tokens + logits_row, 1)[0], first + offset);
        EXPECT_EQ(read(arrays.sample_slots + logits_row, 1)[0], span.slot);
        EXPECT_EQ(read(arrays.sample_offsets + logits_row, 1)[0], offset);
      }
    }
    advance(plan);
  }
}

TEST_P(MetadataTest, PadsAGraphsBatchHarmlessly) {
  const GraphBatch graph = {.num_reqs = kMaxSeqs, .q_len = q_len()};
  const auto num_tokens = static_cast<size_t>(kMaxSeqs * q_len());
  for (int step = 0; step < 50 && !HasFailure(); ++step) {
    const BatchPlan plan = random_plan(true);
    const size_t num_real = plan.spans.size();
    upload_progress();
    const std::vector<SampleRange> ranges = sample_ranges(plan, &graph);
    ASSERT_TRUE(buffers_.upload(plan, ranges, &graph, *stream_).ok());
    buffers_.derive(kMaxSeqs, *stream_);
    expect_same(plan, expected_inputs(plan));
    const StepArrays& arrays = buffers_.arrays();
    const auto kv_slots = read(arrays.tables[1].kv_slots, num_tokens);
    const auto lens = read(arrays.seq_lens, kMaxSeqs);
    const auto slots = read(arrays.sample_slots, num_tokens);
    const auto offsets = read(arrays.sample_offsets, num_tokens);
    const auto tokens = read(arrays.token_ids, num_tokens);
    const auto starts = read(arrays.query_start, kMaxSeqs + 1);
    const auto logit_tokens = read(arrays.logit_tokens, num_tokens);
    const auto span_slots = read(arrays.span_slots, kMaxSeqs);
    std::vector<int32_t> expected_slots(num_tokens, -1), expected_offsets(num_tokens, 0);
    for (const SampleRange& range : ranges) {
      for (int i = 0; i < range.num_rows; ++i) {
        const auto at = static_cast<size_t>(range.first_row + i);
        expected_slots[at] = plan.spans[range.span_idx].slot;
        expected_offsets[at] = i;
      }
    }
    EXPECT_EQ(slots, expected_slots);
    EXPECT_EQ(offsets, expected_offsets);
    for (size_t i = 0; i < num_tokens; ++i) EXPECT_EQ(logit_tokens[i], static_cast<int32_t>(i));
    for (size_t i = 0; i < kMaxSeqs; ++i) {
      EXPECT_EQ(starts[i], static_cast<int32_t>(i) * q_len());
      if (i < num_real) continue;
      EXPECT_EQ(lens[i], 0);
      EXPECT_EQ(span_slots[i], -1);
      EXPECT_EQ(
          read(arrays.tables[1].block_table + static_cast<int64_t>(i) * arrays.max_pages, 1)[0], 0);
    }
    for (size_t i = num_real * static_cast<size_t>(q_len()); i < num_tokens; ++i) {
      EXPECT_EQ(kv_slots[i], -1);
      EXPECT_EQ(tokens[i], 0);
    }
    advance(plan);
  }
}

// The start times such steps.
TEST_P(MetadataTest, PadsWithGivenTokens) {
  const GraphBatch graph = {.num_reqs = kMaxSeqs, .q_len = q_len()};
  const auto num_tokens = static_cast<size_t>(kMaxSeqs * q_len());
  BatchPlan plan;
  plan.token_ids = {7, 8, 9};
  ASSERT_TRUE(buffers_.upload(plan, {}, &graph, *stream_).ok());
  buffers_.derive(kMaxSeqs, *stream_);
  std::vector<int32_t> expected = plan.token_ids;
  expected.resize(num_tokens, 0);
  EXPECT_EQ(read(buffers_.arrays().token_ids, num_tokens), expected);
  EXPECT_EQ(read(buffers_.arrays().seq_lens, kMaxSeqs), std::vector<int32_t>(kMaxSeqs, 0));
}

// Every slot has a prefix hit at once: more pages than one copy holds, the last part of each slot
// partial.
TEST(OverflowPages, AreUploadedBeforeTheStep) {
  const auto device = open_device(0);
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  constexpr int kPageSize = 16;
  constexpr int kNumPages = 45 * OverflowPages::kMaxPages + 5;
  constexpr int kKvLen = kNumPages * kPageSize;
  const StepLimits limits = {.max_num_seqs = kMaxSeqs,
                             .max_num_tokens = kMaxSeqs,
                             .max_num_logit_rows = kMaxSeqs,
                             .max_kv_len = kKvLen,
                             .page_size = kPageSize,
                             .max_new_pages = kNumPages + 7};
  const auto stream = std::move(*CudaStream::create());
  StepBuffers buffers = std::move(*StepBuffers::create(limits, *stream));
  std::mt19937 random(1);
  BatchPlan plan;
  for (int slot = kMaxSeqs - 1; slot >= 0; --slot) {
    std::vector<int32_t> pages(kNumPages);
    for (int32_t& page : pages) page = 1 + static_cast<int32_t>(random() % 100'000);
    plan.block_appends.push_back({.slot = slot, .first = 0, .block_ids = std::move(pages)});
    plan.spans.push_back({.slot = slot,
                          .num_computed = kKvLen - 1,
                          .num_tokens = 1,
                          .first_token = plan.num_tokens(),
                          .num_blocks = kNumPages,
                          .samples = true});
    plan.token_ids.push_back(slot);
  }
  plan.num_decode = kMaxSeqs;
  const std::vector<OverflowPages> overflow = overflow_pages(plan, limits);
  EXPECT_EQ(overflow.size(),
            size_t{kMaxSeqs - 1} * 46);  // 60 pages each; the first slot's are in the packed step
  EXPECT_GT(overflow.size(), size_t{StepBuffers::kMaxOverflow});
  for (int step = 0; step < 3; ++step) {  // from the second step on the ring wraps around
    ASSERT_TRUE(buffers.upload(plan, sample_ranges(plan, nullptr), nullptr, *stream).ok());
    buffers.derive(kMaxSeqs, *stream);
  }
  std::vector<int32_t> table(size_t{kMaxSeqs} * kNumPages);
  stream->copy_to_host(table.data(), buffers.arrays().tables[0].block_table,
                       table.size() * sizeof(int32_t));
  ASSERT_TRUE(stream->synchronize().ok());
  for (size_t i = 0; i < kMaxSeqs; ++i) {
    const std::span<const int32_t> pages = std::span(table).subspan(i * kNumPages, kNumPages);
    EXPECT_TRUE(std::ranges::equal(pages, plan.block_appends[i].block_ids)) << "span " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MetadataTest,
                         ::testing::Values(Shape{16, 1}, Shape{32, 1}, Shape{64, 1}, Shape{16, 2},
                                           Shape{16, 5}, Shape{32, 9}, Shape{16, 9},
                                           Shape{16, 1, 4}, Shape{32, 3, 2}));

}  // namespace
}  // namespace quire::cuda

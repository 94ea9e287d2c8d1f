// The parts of cuDNN's prefill that need no GPU, and its plans' strides on one.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <vector>

#include "base/numbers.h"
#include "cuda/attention/cudnn/inputs.h"
#include "cuda/attention/cudnn/prefill_parts.h"
#include "cuda/attention/cudnn/sdpa.h"
#include "cuda/base/memory.h"
#include "cuda_attention_cases.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using cuda::cudnn::PrefillCutter;
using cuda::cudnn::PrefillPart;
using cuda::cudnn::PrefillRequests;
using cuda::cudnn::PrefillSize;
using ::testing::ElementsAre;

std::vector<int32_t> starts_of(const std::vector<int32_t>& q_lens) {
  std::vector<int32_t> starts = {100};  // decode tokens come first
  for (const int32_t q_len : q_lens) starts.push_back(starts.back() + q_len);
  return starts;
}

// The cut of prompts of these lengths, as sizes.
std::vector<PrefillSize> sizes_for(int max_num_reqs, const std::vector<int32_t>& q_lens) {
  PrefillCutter cutter(max_num_reqs, 8192);
  std::vector<PrefillSize> sizes;
  const std::vector<int32_t> starts = starts_of(q_lens);
  for (const PrefillPart& part : cutter.cut(starts)) sizes.push_back(cutter.sizes()[part.size_idx]);
  return sizes;
}

TEST(CudnnVersion, HasThreeNumbers) {
  EXPECT_EQ(cuda::cudnn::version_name(91'100), "9.11.0");
  EXPECT_EQ(cuda::cudnn::version_name(91'801), "9.18.1");
}

TEST(CudnnPrefillCutter, MakesFewSizes) {
  for (const int max_num_tokens : {1, 256, 257, 1024, 2048, 8192, 131'072}) {
    for (const int max_num_reqs : {1, 2, 5, 64, 1024}) {
      const auto sizes = cuda::cudnn::prefill_sizes(max_num_reqs, max_num_tokens);
      EXPECT_LE(sizes.size(), 8U);
      EXPECT_GE(std::ranges::max(sizes, {}, &PrefillSize::q_len).q_len, max_num_tokens);
    }
  }
  EXPECT_THAT(cuda::cudnn::prefill_sizes(1, 100), ElementsAre(PrefillSize{4, 256}));
}

TEST(CudnnPrefillCutter, ChoosesTheSizeWithTheLeastWaste) {
  EXPECT_THAT(sizes_for(256, {8192}), ElementsAre(PrefillSize{1, 8192}));
  EXPECT_THAT(sizes_for(256, {700}), ElementsAre(PrefillSize{1, 1024}));
  EXPECT_THAT(sizes_for(256, {2000, 2000, 2000}), ElementsAre(PrefillSize{4, 8192}));
  EXPECT_THAT(sizes_for(256, std::vector<int32_t>(64, 128)), ElementsAre(PrefillSize{64, 256}));
  // Short prompts do not pay for the thread blocks of a long one.
  EXPECT_THAT(sizes_for(256, {10, 20, 6000, 10, 10}),
              ElementsAre(PrefillSize{4, 256}, PrefillSize{1, 8192}, PrefillSize{4, 256}));
}

TEST(CudnnPrefillCutter, CoversEveryBatch) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int32_t> q_lens(1 + random() % 256);
    const uint32_t longest = 1U << (random() % 14);
    for (int32_t& q_len : q_lens) q_len = static_cast<int32_t>(random() % (longest + 1));
    const std::vector<int32_t> starts = starts_of(q_lens);
    PrefillCutter cutter(256, 8192);
    int next = 0;
    int64_t num_lens = 0;
    for (const PrefillPart& part : cutter.cut(starts)) {
      const PrefillSize& size = cutter.sizes()[part.size_idx];
      ASSERT_EQ(part.first_req, next);
      ASSERT_GT(part.num_reqs, 0);
      ASSERT_LE(part.num_reqs, size.num_reqs);
      next += part.num_reqs;
      const auto begin = q_lens.begin() + part.first_req;
      ASSERT_LE(*std::max_element(begin, begin + part.num_reqs), size.q_len);
      num_lens += round_up(size.num_reqs + 1, 4);
    }
    EXPECT_EQ(next, static_cast<int>(q_lens.size()));
    EXPECT_LE(num_lens, 8 * next);  // the memory that the plan allocates for them
  }
}

// A group of six requests, of which the last three are a part: one of length 0, one without query
// tokens, and one of 40 tokens after a prefix.
constexpr int32_t kStarts[] = {100, 103, 108, 113, 120, 120, 160};
constexpr int32_t kLens[] = {3, 256, 257, 0, 70, 315};
constexpr PrefillRequests kPart = {
    .query_start = kStarts, .seq_lens = kLens, .first_req = 3, .num_reqs = 3};

TEST(CudnnPrefillInputs, RequestsWithoutTokensAreHarmless) {
  for (const int req : {0, 1, 3, 63}) {  // the two, and padding
    EXPECT_EQ(prefill_q_len(kPart, req), 0);
    EXPECT_EQ(prefill_kv_len(kPart, req), 1);
  }
  EXPECT_EQ(prefill_q_len(kPart, 2), 40);
  EXPECT_EQ(prefill_kv_len(kPart, 2), 315);
}

TEST(CudnnPrefillInputs, OffsetsFollowThePart) {
  EXPECT_EQ(prefill_token(kPart, 0), 0);
  EXPECT_EQ(prefill_token(kPart, 1), 7);
  EXPECT_EQ(prefill_token(kPart, 2), 7);
  EXPECT_EQ(prefill_token(kPart, 3), 47);
  EXPECT_EQ(prefill_token(kPart, 63), 47);
  // Earlier parts take 1, 1 and 2 tiles of 256 positions.
  for (const int req : {0, 1, 2}) EXPECT_EQ(scratch_start(kPart, req), 1024);
  for (const int req : {3, 63}) EXPECT_EQ(scratch_start(kPart, req), 1024 + 512);
}

// The host groups by upper bounds; the device places by lengths, in tiles that no two requests
// share.
TEST(CudnnPrefillInputs, GroupsFitIntoTheScratch) {
  constexpr int kScratch = 4096;
  std::mt19937 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<int32_t> lens, starts = {100};
    std::vector<int64_t> bounds;
    for (int req = 0; req < 40; ++req) {
      const auto q_len = static_cast<int32_t>(random() % 4 * 10);
      lens.push_back(static_cast<int32_t>(random() % 5 == 0 ? 0 : random() % (kScratch - 64)));
      starts.push_back(starts.back() + q_len);
      const auto bound = lens.back() + static_cast<int32_t>(random() % 64);
      bounds.push_back(cuda::gathered_tokens(q_len, bound, cuda::cudnn::kPrefillTile));
    }
    std::vector<cuda::GatherGroup> groups;
    cuda::pack_groups(bounds, kScratch, groups);
    int next = 0;
    for (const cuda::GatherGroup& group : groups) {
      ASSERT_EQ(group.first_req, next);
      ASSERT_LE(group.num_tokens, kScratch);
      next += group.num_reqs;
      const PrefillRequests reqs = {.query_start = &starts[static_cast<size_t>(group.first_req)],
                                    .seq_lens = &lens[static_cast<size_t>(group.first_req)],
                                    .num_reqs = group.num_reqs};
      int end = 0;
      for (int req = 0; req < group.num_reqs; ++req) {
        ASSERT_EQ(scratch_start(reqs, req), end);
        ASSERT_EQ(end % cuda::cudnn::kPrefillTile, 0);
        if (is_computed(reqs, req)) end += round_up(prefill_kv_len(reqs, req), 256);
      }
      ASSERT_LE(end, group.num_tokens);
    }
    EXPECT_EQ(next, 40);
  }
}

// Keys and values of a page are beside each other, so a page is twice as far from the next one as
// its keys are long.
TEST(CudnnStrides, AreThoseOfTheCache) {
  const AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  const cuda::cudnn::SdpaKey key = cuda::cudnn::sdpa_key(shape);
  EXPECT_EQ(key.page_stride, 2 * 8 * 16 * 128);
  const KvCacheView kv = kv_cache_view(kv_layout(shape), nullptr);
  EXPECT_TRUE(has_strides(key, kv));
  for (int64_t KvCacheView::*stride :
       {&KvCacheView::page_stride_k, &KvCacheView::head_stride_k, &KvCacheView::token_stride_k,
        &KvCacheView::page_stride_v, &KvCacheView::head_stride_v, &KvCacheView::token_stride_v}) {
    KvCacheView other = kv;
    other.*stride /= 2;
    EXPECT_FALSE(has_strides(key, other));
  }
}

// The last tokens of one request on the device, for plans that are built directly: decode over
// pages, and a chunk of a prompt over contiguous keys and values that begin after others.
class SdpaProblem {
 public:
  static constexpr int kNumHeads = 4, kNumKvHeads = 2, kHeadDim = 64, kPageSize = 16;
  static constexpr int kQLen = 5, kKvLen = 40;
  static constexpr int32_t kTable[] = {3, 1, 2};
  static constexpr int kFirstQuery = 3, kFirstKey = 32, kScratchTokens = 32 + 256;
  static constexpr int kRow = kNumHeads * kHeadDim, kKvRow = kNumKvHeads * kHeadDim;

  SdpaProblem() : q_(kQLen * kRow), cached_(2 * kKvLen * kKvRow) {
    std::mt19937 random(3);
    for (std::vector<uint16_t>* values : {&q_, &cached_}) {
      for (uint16_t& x : *values) {
        x = f32_to_f16(static_cast<float>(random() % 2048) / 1024.0F - 1.0F);
      }
    }
  }

  static cuda::cudnn::SdpaKey decode_key() {
    AttentionShape shape =
        make_attention_shape(kNumHeads, kNumKvHeads, kHeadDim, kPageSize, DType::kF16);
    shape.q = shape.out = DType::kF16;
    shape.scale = 1.0F;
    cuda::cudnn::SdpaKey key = cuda::cudnn::sdpa_key(shape);
    key.num_reqs = 1;
    key.num_pages = key.table_stride = std::size(kTable);
    return key;
  }
  static cuda::cudnn::SdpaKey prompt_key() {
    cuda::cudnn::SdpaKey key = decode_key();
    key.max_q_len = 256;
    key.max_kv_len = 256;
    key.head_stride = kHeadDim;
    key.token_stride = kKvRow;
    return key;
  }

  std::vector<float> expected(const cuda::cudnn::SdpaKey& key) const {
    std::vector<float> out;
    for (int token = kQLen - num_tokens(key); token < kQLen; ++token) {
      for (int head = 0; head < kNumHeads; ++head) add_row(token, head, out);
    }
    return out;
  }

  // Runs a plan for the key; an error fails the test.
  std::vector<float> run(cuda::cudnn::Library& library, const cuda::cudnn::SdpaKey& key) const {
    const auto plan = value_of(library.build(key));
    const bool is_decode = key.max_q_len == 1;
    const int num_queries = num_tokens(key);
    const int first_row = is_decode ? 0 : kFirstQuery;
    std::vector<uint16_t> rows(static_cast<size_t>((first_row + num_queries) * kRow), kNan);
    std::copy(q_.end() - num_queries * kRow, q_.end(), rows.end() - num_queries * kRow);
    const Buffer q = upload(rows);
    const Buffer out = upload(rows);
    const Buffer k = upload(is_decode ? pages() : scratch(0));
    const Buffer v = upload(is_decode ? pages() : scratch(1));
    const Buffer table = upload(std::vector<int32_t>(std::begin(kTable), std::end(kTable)));
    const Buffer q_lens = upload(std::vector<int32_t>{num_queries});
    const Buffer kv_lens = upload(std::vector<int32_t>{kKvLen});
    const Buffer q_offsets =
        upload(std::vector<int32_t>{kFirstQuery * kRow, (kFirstQuery + kQLen) * kRow});
    const Buffer kv_offsets =
        upload(std::vector<int32_t>{kFirstKey * kKvRow, (kFirstKey + kKvLen) * kKvRow});
    const Buffer workspace = upload(std::vector<char>(plan->workspace_bytes() + 1));
    const auto ints = [](const Buffer& buffer) {
      return static_cast<const int32_t*>(buffer.data());
    };
    const Status status = plan->execute(
        {.q = q.data(),
         .out = out.data(),
         .k = k.data(),
         .v = static_cast<const uint16_t*>(v.data()) + (is_decode ? kPageSize * kKvRow : 0),
         .block_table = ints(table),
         .q_lens = ints(q_lens),
         .seq_lens = ints(kv_lens),
         .q_offsets = ints(q_offsets),
         .kv_offsets = ints(kv_offsets),
         .workspace = workspace.data()},
        nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> values = download(out, rows.size());
    values.erase(values.begin(), values.begin() + first_row * kRow);
    return values;
  }

 private:
  static constexpr uint16_t kNan = 0x7FFF;

  static int num_tokens(const cuda::cudnn::SdpaKey& key) { return key.max_q_len == 1 ? 1 : kQLen; }

  template <typename T>
  static Buffer upload(const std::vector<T>& values) {
    Buffer buffer = value_of(cuda::device_memory(values.size() * sizeof(T)));
    EXPECT_EQ(
        cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the copy may end after cudaMemcpy() returns
    return buffer;
  }
  static std::vector<float> download(const Buffer& out, size_t count) {
    std::vector<uint16_t> halves(count);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(halves.data(), out.data(), halves.size() * sizeof(uint16_t),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    std::vector<float> values(halves.size());
    std::ranges::transform(halves, values.begin(), f16_to_f32);
    return values;
  }

  // is_value: 0 for the key, 1 for the value of a position.
  uint16_t cached(int position, int is_value, int head, int d) const {
    return cached_[static_cast<size_t>(
        ((is_value * kKvLen + position) * kNumKvHeads + head) * kHeadDim + d)];
  }
  // [num_pages, 2, num_kv_heads, page_size, head_dim]; slots without a token are 0.
  std::vector<uint16_t> pages() const {
    std::vector<uint16_t> pool((1 + std::size(kTable)) * 2 * kPageSize * kKvRow);
    for_each([&](int position, int is_value, int head, int d) {
      const int page = kTable[position / kPageSize];
      const int vector =
          ((page * 2 + is_value) * kNumKvHeads + head) * kPageSize + position % kPageSize;
      pool[static_cast<size_t>(vector * kHeadDim + d)] = cached(position, is_value, head, d);
    });
    return pool;
  }
  // [tokens, num_kv_heads, head_dim], with NaN before the first key, and 0 after the last.
  std::vector<uint16_t> scratch(int which) const {
    std::vector<uint16_t> copies(static_cast<size_t>(kScratchTokens * kKvRow));
    std::fill_n(copies.begin(), kFirstKey * kKvRow, kNan);
    for_each([&](int position, int is_value, int head, int d) {
      const int at = (kFirstKey + position) * kKvRow + head * kHeadDim + d;
      if (is_value == which) copies[static_cast<size_t>(at)] = cached(position, is_value, head, d);
    });
    return copies;
  }
  template <typename Function>
  static void for_each(const Function& function) {
    for (int position = 0; position < kKvLen; ++position) {
      for (const int is_value : {0, 1}) {
        for (int head = 0; head < kNumKvHeads; ++head) {
          for (int d = 0; d < kHeadDim; ++d) function(position, is_value, head, d);
        }
      }
    }
  }
  void add_row(int token, int head, std::vector<float>& out) const {
    const int num_visible = kKvLen - kQLen + token + 1;
    const int kv_head = head * kNumKvHeads / kNumHeads;
    std::vector<double> row(kHeadDim);
    double sum = 0;
    for (int position = 0; position < num_visible; ++position) {
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d) {
        const auto at = static_cast<size_t>(token * kRow + head * kHeadDim + d);
        score += double{f16_to_f32(q_[at])} * f16_to_f32(cached(position, 0, kv_head, d));
      }
      const double weight = std::exp(score);
      sum += weight;
      for (int d = 0; d < kHeadDim; ++d) {
        row[static_cast<size_t>(d)] += weight * f16_to_f32(cached(position, 1, kv_head, d));
      }
    }
    for (const double x : row) out.push_back(static_cast<float>(x / sum));
  }

  std::vector<uint16_t> q_;       // [kQLen, num_heads, head_dim], F16
  std::vector<uint16_t> cached_;  // [2, kKvLen, num_kv_heads, head_dim]
};

// Checks a key, and that with another stride it reads other keys, without an error.
void check_stride(const cuda::cudnn::SdpaKey& key, int64_t cuda::cudnn::SdpaKey::*stride,
                  int64_t other) {
  if (const auto device = test_device(); !device.ok()) GTEST_SKIP() << device.status().message();
  const auto library = cuda::cudnn::Library::open();
  if (!library.ok()) GTEST_SKIP() << library.status().message();
  const SdpaProblem problem;
  expect_close(problem.run(**library, key), problem.expected(key), 3e-3F);
  cuda::cudnn::SdpaKey changed = key;
  changed.*stride = other;
  EXPECT_GT(max_difference(problem.run(**library, changed), problem.expected(key)), 0.1F);
}

TEST(CudnnStrides, HalfThePageStrideGivesOtherResults) {
  const cuda::cudnn::SdpaKey key = SdpaProblem::decode_key();
  check_stride(key, &cuda::cudnn::SdpaKey::page_stride, key.page_stride / 2);
}

TEST(CudnnStrides, HalfTheTokenStrideOfAPromptGivesOtherResults) {
  const cuda::cudnn::SdpaKey key = SdpaProblem::prompt_key();
  check_stride(key, &cuda::cudnn::SdpaKey::token_stride, key.token_stride / 2);
}

TEST(CudnnStrides, TwiceTheHeadStrideOfAPromptGivesOtherResults) {
  const cuda::cudnn::SdpaKey key = SdpaProblem::prompt_key();
  check_stride(key, &cuda::cudnn::SdpaKey::head_stride, 2 * key.head_stride);
}

}  // namespace
}  // namespace quire::testing

// The parts of cuDNN's prefill that need no GPU, and its plans' strides on one.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "base/numbers.h"
#include "cuda/attention/cudnn/prefill_inputs.h"
#include "cuda/attention/cudnn/prefill_parts.h"
#include "cuda/attention/cudnn/sdpa.h"
#include "cuda/base/memory.h"
#include "cuda_attention_cases.h"
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

// Requests whose last pages are full, nearly full and nearly empty, one of length 0, and poison in
// every slot that holds no token.
AttentionProblem poisoned_problem(int page_size) {
  return AttentionProblem({.name = "poisoned",
                           .shape = make_attention_shape(4, 2, 16, page_size, DType::kF32),
                           .reqs = {{3, 3, 1},
                                    {5, page_size, 2},
                                    {5, page_size + 1, 3},
                                    {7, 0, 4},
                                    {40, 300 + page_size - 1, 5}},
                           .max_decode_q_len = 0});
}

PrefillRequests requests_of(const AttentionProblem& problem) {
  const AttentionBatch& batch = problem.batch();
  return {.query_start = batch.query_start.host,
          .seq_lens = batch.seq_lens,
          .block_table = batch.block_table,
          .max_pages = batch.max_pages,
          .num_reqs = batch.prefill.num_reqs,
          .page_size = problem.shape().page_size};
}

float* slot_of(const KvCacheView& kv, void* values, int64_t page, int head, int slot) {
  return static_cast<float*>(values) + page * kv.page_stride_k + head * kv.head_stride_k +
         slot * kv.token_stride_k;
}

// The positions up to the end of the tile that holds the request's last token.
constexpr int kLargestTile = 256;

int num_nan(const AttentionProblem& problem, int req) {
  const PrefillRequests reqs = requests_of(problem);
  const KvCacheView& kv = problem.cache();
  int count = 0;
  for (int position = 0; position < round_up(prefill_kv_len(reqs, req), kLargestTile); ++position) {
    const int64_t page = prefill_page(reqs, req, position / reqs.page_size);
    EXPECT_LT(page, problem.num_pages());
    for (int head = 0; head < problem.shape().num_kv_heads; ++head) {
      for (void* values : {kv.k, kv.v}) {
        const float* slot = slot_of(kv, values, page, head, position % reqs.page_size);
        count += static_cast<int>(std::count_if(slot, slot + problem.shape().head_dim,
                                                [](float x) { return std::isnan(x); }));
      }
    }
  }
  return count;
}

// The same slots as the kernel.
void zero_unused_slots(const AttentionProblem& problem, int req) {
  const PrefillRequests reqs = requests_of(problem);
  const KvCacheView& kv = problem.cache();
  if (reqs.seq_lens[req] == 0) return;
  const cuda::cudnn::UnusedSlots unused =
      cuda::cudnn::unused_slots(reqs.seq_lens[req], reqs.page_size);
  const int64_t page = reqs.block_table[req * reqs.max_pages + unused.page];
  for (int head = 0; head < problem.shape().num_kv_heads; ++head) {
    for (void* values : {kv.k, kv.v}) {
      std::fill(slot_of(kv, values, page, head, unused.first_slot),
                slot_of(kv, values, page, head, reqs.page_size), 0.0F);
    }
  }
}

TEST(CudnnPrefillInputs, TilesBehindARequestAreFinite) {
  for (const int page_size : {16, 32, 64}) {
    const AttentionProblem problem = poisoned_problem(page_size);
    const AttentionBatch& batch = problem.batch();
    for (int req = 0; req < batch.prefill.num_reqs; ++req) {
      SCOPED_TRACE(fmt::format("request {}, pages of {}", req, page_size));
      const int len = batch.seq_lens[req];
      EXPECT_EQ(num_nan(problem, req) > 0, len % page_size != 0);
      zero_unused_slots(problem, req);
      EXPECT_EQ(num_nan(problem, req), 0);
    }
    // No token was zeroed.
    for (int req = 0; req < batch.prefill.num_reqs; ++req) {
      for (int position = 0; position < batch.seq_lens[req]; ++position) {
        EXPECT_NE(problem.key(req, position, 1, 3), 0.0F);
        EXPECT_NE(problem.value(req, position, 1, 3), 0.0F);
      }
    }
  }
}

TEST(CudnnPrefillInputs, RequestsWithoutTokensAreHarmless) {
  const AttentionProblem problem = poisoned_problem(16);
  const PrefillRequests reqs = requests_of(problem);
  for (const int req : {3, 5, 63}) {  // of length 0, and padding
    EXPECT_EQ(prefill_q_len(reqs, req), 0);
    EXPECT_EQ(prefill_kv_len(reqs, req), 1);
    EXPECT_EQ(prefill_page(reqs, req, 0), 0);
    EXPECT_EQ(prefill_page(reqs, req, 20), 0);
  }
  EXPECT_EQ(prefill_q_len(reqs, 4), 40);
  EXPECT_EQ(prefill_offset(reqs, 0, 64), 0);
  EXPECT_EQ(prefill_offset(reqs, 4, 64), 20 * 64);
  EXPECT_EQ(prefill_offset(reqs, 5, 64), 60 * 64);
  EXPECT_EQ(prefill_offset(reqs, 64, 64), 60 * 64);
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

// One chunk of a prompt on the device, for plans that are built directly.
class SdpaProblem {
 public:
  static constexpr int kNumHeads = 2, kHeadDim = 64, kPageSize = 16, kNumPages = 3;
  static constexpr int kQLen = 5, kKvLen = 40;
  static constexpr int32_t kTable[] = {3, 1, 2};

  SdpaProblem() : q_(kQLen * kNumHeads * kHeadDim), pool_((kNumPages + 1) * page_stride()) {
    std::mt19937 random(3);
    for (std::vector<uint16_t>* values : {&q_, &pool_}) {
      for (uint16_t& x : *values) {
        x = f32_to_f16(static_cast<float>(random() % 2048) / 1024.0F - 1.0F);
      }
    }
  }

  // [num_pages, 2, 1 KV head, page_size, head_dim]
  static int64_t page_stride() { return 2 * kPageSize * kHeadDim; }
  static cuda::cudnn::SdpaKey key() {
    AttentionShape shape = make_attention_shape(kNumHeads, 1, kHeadDim, kPageSize, DType::kF16);
    shape.q = shape.out = DType::kF16;
    shape.scale = 1.0F;
    cuda::cudnn::SdpaKey key = cuda::cudnn::sdpa_key(shape);
    key.num_reqs = 1;
    key.max_q_len = 256;
    key.num_pages = key.table_stride = kNumPages;
    return key;
  }

  std::vector<float> expected() const {
    std::vector<float> out;
    for (int token = 0; token < kQLen; ++token) {
      for (int head = 0; head < kNumHeads; ++head) add_row(token, head, out);
    }
    return out;
  }

  // Runs a plan for the key; an error fails the test.
  std::vector<float> run(cuda::cudnn::Library& library, const cuda::cudnn::SdpaKey& key) const {
    const auto plan = library.build(key);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok()) return {};
    const Buffer q = upload(q_);
    const Buffer pool = upload(pool_);
    const Buffer out = upload(q_);
    const Buffer table = upload(std::vector<int32_t>(std::begin(kTable), std::end(kTable)));
    const Buffer q_lens = upload(std::vector<int32_t>{kQLen});
    const Buffer kv_lens = upload(std::vector<int32_t>{kKvLen});
    const Buffer offsets = upload(std::vector<int32_t>{0, kQLen * kNumHeads * kHeadDim});
    const Buffer workspace = upload(std::vector<char>((*plan)->workspace_bytes() + 1));
    const Status status =
        (*plan)->execute({.q = q.data(),
                          .out = out.data(),
                          .k = pool.data(),
                          .v = static_cast<const uint16_t*>(pool.data()) + kPageSize * kHeadDim,
                          .block_table = static_cast<const int32_t*>(table.data()),
                          .q_lens = static_cast<const int32_t*>(q_lens.data()),
                          .q_offsets = static_cast<const int32_t*>(offsets.data()),
                          .seq_lens = static_cast<const int32_t*>(kv_lens.data()),
                          .workspace = workspace.data()},
                         nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    return download(out);
  }

 private:
  template <typename T>
  static Buffer upload(const std::vector<T>& values) {
    Result<Buffer> buffer = cuda::device_memory(values.size() * sizeof(T));
    EXPECT_TRUE(buffer.ok()) << buffer.status().message();
    EXPECT_EQ(cudaMemcpy(buffer->data(), values.data(), values.size() * sizeof(T),
                         cudaMemcpyHostToDevice),
              cudaSuccess);
    return std::move(*buffer);
  }
  std::vector<float> download(const Buffer& out) const {
    std::vector<uint16_t> halves(q_.size());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(halves.data(), out.data(), halves.size() * sizeof(uint16_t),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    std::vector<float> values(halves.size());
    std::ranges::transform(halves, values.begin(), f16_to_f32);
    return values;
  }

  // is_value: 0 for the key, 1 for the value of a position.
  float cached(int position, int is_value, int d) const {
    const int64_t at = kTable[position / kPageSize] * page_stride() +
                       (is_value * kPageSize + position % kPageSize) * kHeadDim + d;
    return f16_to_f32(pool_[static_cast<size_t>(at)]);
  }
  void add_row(int token, int head, std::vector<float>& out) const {
    const int num_visible = kKvLen - kQLen + token + 1;
    std::vector<double> row(kHeadDim);
    double sum = 0;
    for (int position = 0; position < num_visible; ++position) {
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d) {
        const auto at = static_cast<size_t>((token * kNumHeads + head) * kHeadDim + d);
        score += double{f16_to_f32(q_[at])} * cached(position, 0, d);
      }
      const double weight = std::exp(score);
      sum += weight;
      for (int d = 0; d < kHeadDim; ++d) {
        row[static_cast<size_t>(d)] += weight * cached(position, 1, d);
      }
    }
    for (const double x : row) out.push_back(static_cast<float>(x / sum));
  }

  std::vector<uint16_t> q_, pool_;  // F16
};

// A plan whose page stride leaves out the values reads other keys, without an error.
TEST(CudnnStrides, HalfThePageStrideGivesOtherResults) {
  if (const auto device = test_device(); !device.ok()) GTEST_SKIP() << device.status().message();
  const auto library = cuda::cudnn::Library::open();
  if (!library.ok()) GTEST_SKIP() << library.status().message();
  const SdpaProblem problem;
  cuda::cudnn::SdpaKey key = SdpaProblem::key();
  expect_close(problem.run(**library, key), problem.expected(), 3e-3F);
  key.page_stride /= 2;
  EXPECT_GT(max_difference(problem.run(**library, key), problem.expected()), 0.1F);
}

}  // namespace
}  // namespace quire::testing

// The copies of contexts that prefill kernels read, element by element.
#include "cuda/attention/gather/gather.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda_attention_cases.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {

// The library of the shared tests, of which this program needs only the problems.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaAttentionTest);

namespace {

struct GatherCase {
  DType cache = DType::kBF16;
  int head_dim = 128;
  int page_size = 16;
  int tile = cuda::kGatherTile;
  bool apply_scales = false;
  bool by_head = false;  // the copies' layout: [heads, tokens, head_dim], else [tokens, heads, ..]
};

Buffer upload(const void* data, size_t num_bytes) {
  Buffer buffer = value_of(cuda::device_memory(num_bytes));
  EXPECT_EQ(cudaMemcpy(buffer.data(), data, num_bytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the copy may end after cudaMemcpy() returns
  return buffer;
}

// Contexts that end around a page's and a tile's ends; one of length 0 and one without query tokens
// take no tiles. Unused slots are NaN, and dead entries of the block table huge.
class GatheredProblem {
 public:
  static constexpr int kNumKvHeads = 2;
  static constexpr int kSpareTokens = 256;  // of the scratch, which are not written

  explicit GatheredProblem(const GatherCase& spec)
      : spec_(spec),
        problem_({.name = "gathered",
                  .shape = make_attention_shape(4, kNumKvHeads, spec.head_dim, spec.page_size,
                                                spec.cache),
                  .reqs = {{1, 1, 1},
                           {2, spec.tile, 2},
                           {3, spec.tile + 1, 3},
                           {4, 0, 4},
                           {0, 90, 5},
                           {5, 3 * spec.tile - 1, 6},
                           {6, spec.page_size, 7}},
                  .max_decode_q_len = 0,
                  .k_scale = spec.apply_scales ? 0.3F : 1.0F,
                  .v_scale = spec.apply_scales ? 0.7F : 1.0F}) {
    for (const AttentionRequest& req : problem_.spec().reqs) {
      starts_.push_back(num_tokens_);
      num_tokens_ += static_cast<int>(cuda::gathered_tokens(req.q_len, req.kv_len, spec.tile));
    }
  }

  void check() {
    run();
    for (size_t req = 0; req < starts_.size(); ++req) {
      const AttentionRequest& request = problem_.spec().reqs[req];
      const auto tokens = cuda::gathered_tokens(request.q_len, request.kv_len, spec_.tile);
      for (int position = 0; position < tokens; ++position) {
        check_position(static_cast<int>(req), position, position < request.kv_len);
      }
    }
    // Neither the tiles after an upper bound of the contexts nor the spare ones are written.
    for (int token = num_tokens_; token < capacity(); ++token) {
      for (int head = 0; head < kNumKvHeads; ++head) {
        ASSERT_EQ(k_[at(token, head, 0)], kPoison);
        ASSERT_EQ(v_[at(token, head, spec_.head_dim - 1)], kPoison);
      }
    }
  }

 private:
  static constexpr uint16_t kPoison = 0xFFFF;

  int capacity() const { return num_tokens_ + spec_.tile + kSpareTokens; }
  int64_t head_stride() const {
    return spec_.by_head ? int64_t{capacity()} * spec_.head_dim : spec_.head_dim;
  }
  int64_t token_stride() const {
    return spec_.by_head ? spec_.head_dim : kNumKvHeads * spec_.head_dim;
  }
  size_t at(int token, int head, int d) const {
    return static_cast<size_t>(head * head_stride() + token * token_stride() + d);
  }

  void run() {
    k_.assign(static_cast<size_t>(capacity()) * kNumKvHeads * static_cast<size_t>(spec_.head_dim),
              kPoison);
    v_ = k_;
    const AttentionBatch& batch = problem_.batch();
    const size_t num_reqs = starts_.size();
    const Buffer cache =
        upload(problem_.cache_memory().data(), problem_.cache_memory().num_bytes());
    const float scales[2] = {problem_.spec().k_scale, problem_.spec().v_scale};
    const Buffer scale_memory = upload(scales, sizeof(scales));
    const Buffer lens = upload(batch.seq_lens, num_reqs * sizeof(int32_t));
    const Buffer table =
        upload(batch.block_table, num_reqs * static_cast<size_t>(batch.max_pages) * 4);
    const Buffer starts = upload(starts_.data(), num_reqs * sizeof(int32_t));
    const Buffer k = upload(k_.data(), k_.size() * 2);
    const Buffer v = upload(v_.data(), v_.size() * 2);
    KvCacheView kv = kv_cache_view(kv_layout(problem_.shape()), cache.data());
    kv.k_scale = static_cast<const float*>(scale_memory.data());
    kv.v_scale = kv.k_scale + 1;
    const auto stream = value_of(cuda::CudaStream::create());
    cuda::launch_gather({.kv = kv,
                         .apply_scales = spec_.apply_scales,
                         .k = k.data(),
                         .v = v.data(),
                         .head_stride = head_stride(),
                         .token_stride = token_stride(),
                         .seq_lens = static_cast<const int32_t*>(lens.data()),
                         .block_table = static_cast<const int32_t*>(table.data()),
                         .max_pages = batch.max_pages,
                         .scratch_start = static_cast<const int32_t*>(starts.data()),
                         .num_reqs = static_cast<int>(num_reqs),
                         .num_tokens = num_tokens_ + spec_.tile,  // an upper bound
                         .tile = spec_.tile,
                         .num_kv_heads = kNumKvHeads,
                         .head_dim = spec_.head_dim,
                         .page_size = spec_.page_size},
                        *stream);
    const Status status = stream->synchronize();
    ASSERT_TRUE(status.ok()) << status.message();
    for (const auto& [to, from] : {std::pair{&k_, &k}, std::pair{&v_, &v}}) {
      ASSERT_EQ(cudaMemcpy(to->data(), from->data(), to->size() * 2, cudaMemcpyDeviceToHost),
                cudaSuccess);
    }
  }

  // The bits of a copied element.
  uint16_t expected(float x) const {
    return spec_.cache == DType::kF16 ? f32_to_f16(x) : f32_to_bf16(x);
  }
  void check_position(int req, int position, bool has_token) const {
    const int token = starts_[static_cast<size_t>(req)] + position;
    for (int head = 0; head < kNumKvHeads; ++head) {
      for (int d = 0; d < spec_.head_dim; ++d) {
        const float key = has_token ? problem_.key(req, position, head, d) : 0.0F;
        const float value = has_token ? problem_.value(req, position, head, d) : 0.0F;
        ASSERT_EQ(k_[at(token, head, d)], expected(key)) << req << ", " << position << ", " << d;
        ASSERT_EQ(v_[at(token, head, d)], expected(value)) << req << ", " << position << ", " << d;
      }
    }
  }

  const GatherCase spec_;
  const AttentionProblem problem_;
  std::vector<int32_t> starts_;
  int num_tokens_ = 0;
  std::vector<uint16_t> k_, v_;
};

TEST(Gather, CopiesEveryElement) {
  if (const auto device = test_device(); !device.ok()) GTEST_SKIP() << device.status().message();
  for (const DType cache : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    for (const int head_dim : {8, 64, 80, 96, 128, 256}) {
      for (const int page_size : {16, 32, 64}) {
        SCOPED_TRACE(
            fmt::format("{}, head_dim {}, pages of {}", dtype_name(cache), head_dim, page_size));
        GatheredProblem({.cache = cache, .head_dim = head_dim, .page_size = page_size}).check();
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The readers' layouts and tiles.
TEST(Gather, FillsTheReadersTiles) {
  if (const auto device = test_device(); !device.ok()) GTEST_SKIP() << device.status().message();
  for (const int tile : {128, 256}) {
    for (const bool by_head : {false, true}) {
      SCOPED_TRACE(fmt::format("tile {}, by_head {}", tile, by_head));
      GatheredProblem({.tile = tile, .by_head = by_head}).check();
      if (HasFatalFailure()) return;
    }
  }
}

// Once as they are, which is exact, and once multiplied and rounded.
TEST(Gather, AppliesTheScalesOfAnFp8Cache) {
  if (const auto device = test_device(); !device.ok()) GTEST_SKIP() << device.status().message();
  for (const int head_dim : {64, 80, 128}) {
    GatheredProblem(
        {.cache = DType::kF8E4M3, .head_dim = head_dim, .tile = 256, .apply_scales = true})
        .check();
    if (HasFatalFailure()) return;
  }
}

TEST(Gather, BoundsTheScratch) {
  AttentionShape shape = make_attention_shape(64, 8, 128, 16, DType::kBF16);
  shape.q = DType::kBF16;
  const auto tokens = [&](int max_num_reqs, int max_num_tokens, int max_kv_len) {
    return cuda::scratch_tokens(shape,
                                {.use = {.phase = Phase::kPrefill},
                                 .max_num_reqs = max_num_reqs,
                                 .max_num_tokens = max_num_tokens,
                                 .max_kv_len = max_kv_len},
                                256);
  };
  EXPECT_EQ(tokens(8, 8192, 4000), 8192);
  EXPECT_EQ(tokens(1, 8192, 4000), 4096);
  EXPECT_EQ(tokens(8, 2048, 32769), 32768 + 256);
  EXPECT_EQ(tokens(8, 8192, 1 << 20) * cuda::gathered_token_bytes(shape), cuda::kMaxScratchBytes);
}

TEST(Gather, PacksRequestsInOrder) {
  std::vector<cuda::GatherGroup> groups;
  cuda::pack_groups(std::vector<int64_t>{128, 256, 0, 128, 512, 128, 0}, 512, groups);
  const std::vector<cuda::GatherGroup> expected = {
      {.first_req = 0, .num_reqs = 4, .num_tokens = 512},
      {.first_req = 4, .num_reqs = 1, .num_tokens = 512},
      {.first_req = 5, .num_reqs = 2, .num_tokens = 128}};
  EXPECT_EQ(groups, expected);
}

}  // namespace
}  // namespace quire::testing

#include "kv/kv_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire {
namespace {

TEST(KvLayout, KeysAndValuesLieSideBySideInAPage) {
  const KvLayout layout = {
      .page_size = 16, .num_kv_heads = 2, .head_dim = 8, .head_dim_v = 4, .dtype = DType::kF32};
  EXPECT_EQ(layout.page_stride(), 2 * 16 * (8 + 4));
  EXPECT_EQ(layout.value_offset(), 2 * 16 * 8);
  std::vector<float> memory(static_cast<size_t>(3 * layout.page_stride()));
  const KvCacheView view = kv_cache_view(layout, memory.data());
  const int64_t last_v = 2 * view.page_stride_v + view.head_stride_v + 15 * view.token_stride_v + 3;
  EXPECT_EQ(static_cast<float*>(view.v) + last_v, &memory.back());
}

// Multi-head latent attention: 576 elements per token, of which the first 512 are the value.
TEST(KvLayout, ALatentVectorIsKeyAndValue) {
  const KvLayout layout = {.page_size = 64,
                           .num_kv_heads = 1,
                           .head_dim = 576,
                           .head_dim_v = 512,
                           .is_latent = true,
                           .dtype = DType::kBF16};
  EXPECT_EQ(layout.page_bytes(), 64 * 576 * 2);
  std::vector<std::byte> memory(static_cast<size_t>(2 * layout.page_bytes()));
  const KvCacheView view = kv_cache_view(layout, memory.data());
  EXPECT_EQ(view.v, view.k);
  EXPECT_EQ(view.page_stride_v, view.page_stride_k);
  EXPECT_EQ(view.head_stride_v, view.head_stride_k);
  EXPECT_EQ(view.token_stride_v, view.token_stride_k);
}

// The scales of a head's vectors follow them in the page; a latent vector has two.
TEST(KvLayout, VectorsOfIntegersHaveScales) {
  KvLayout layout = {
      .page_size = 16, .num_kv_heads = 3, .head_dim = 64, .head_dim_v = 40, .dtype = DType::kI8};
  EXPECT_EQ(layout.page_bytes(), 3 * 16 * ((64 + 4) + (40 + 4)));
  std::vector<std::byte> memory(static_cast<size_t>(2 * layout.page_bytes()));
  const KvCacheView view = kv_cache_view(layout, memory.data());
  EXPECT_EQ(view.scale_offset_k, 16 * 64);
  EXPECT_EQ(view.head_stride_k, 16 * 64 + 16 * 4) << "a head ends with its 16 scales";
  const int64_t last = view.page_stride_v + 2 * view.head_stride_v + view.scale_offset_v + 16 * 4;
  EXPECT_EQ(static_cast<std::byte*>(view.v) + last, memory.data() + memory.size());

  layout = {.page_size = 64,
            .num_kv_heads = 1,
            .head_dim = 576,
            .head_dim_v = 512,
            .is_latent = true,
            .dtype = DType::kI8};
  EXPECT_EQ(layout.page_bytes(), 64 * (576 + 2 * 4));
  EXPECT_EQ(kv_cache_view(layout, memory.data()).scale_offset_v, 64 * 576);
}

}  // namespace
}  // namespace quire

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

}  // namespace
}  // namespace quire

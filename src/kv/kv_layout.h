// The memory layout of keys and values in the paged cache, for all attention backends.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace quire {

// The logical layout per layer is [num_pages, 2, num_kv_heads, page_size, head_dim] (HND). A page
// is the unit that the block pool allocates. A KV slot is the place of one token:
// page_id * page_size + offset.
//
// A cache in 8-bit integers holds a key or value as head_dim integers and an F32 scale; an element
// is integer * scale. The scales of one head in one page follow its page_size vectors, so that
// vectors are aligned and a kernel loads the scales of adjacent tokens at once. A latent vector has
// two scales, because its normalized part and its rotated part differ in magnitude: after the
// page's vectors, one array of scales for the first head_dim_v elements, then one for the others.
struct KvLayout {
  int page_size = 16;  // 16, 32 or 64 tokens
  int num_kv_heads = 0;
  int head_dim = 0;    // of keys
  int head_dim_v = 0;  // of values
  // If true, a value is the first head_dim_v elements of its key: the cache holds one latent vector
  // per token, as in multi-head latent attention.
  bool is_latent = false;
  DType dtype = DType::kBF16;

  // Bytes of a vector's scales, and also elements: only caches of 1-byte elements have scales.
  constexpr int64_t scale_bytes() const {
    if (dtype != DType::kI8) return 0;
    return static_cast<int64_t>(sizeof(float)) * (is_latent ? 2 : 1);
  }

  // Strides in elements. They are int64 because pools exceed 2^31 elements.
  int64_t token_stride_k() const { return head_dim; }
  int64_t token_stride_v() const { return is_latent ? head_dim : head_dim_v; }
  int64_t head_stride_k() const { return page_size * (token_stride_k() + scale_bytes()); }
  int64_t head_stride_v() const { return page_size * (token_stride_v() + scale_bytes()); }
  // Offsets in elements from a head's first vector in a page to its scales.
  int64_t scale_offset_k() const { return page_size * token_stride_k(); }
  int64_t scale_offset_v() const { return page_size * token_stride_v(); }
  int64_t page_stride() const {
    return num_kv_heads * (head_stride_k() + (is_latent ? 0 : head_stride_v()));
  }
  // Offset in elements from a page's first key to its first value.
  int64_t value_offset() const { return is_latent ? 0 : num_kv_heads * head_stride_k(); }
  int64_t page_bytes() const { return page_stride() * static_cast<int64_t>(dtype_bytes(dtype)); }
};

// The first page that queries at `position` and after it read; 0 without a window. Host and device
// code call it.
constexpr int first_page_read(int position, int window, int page_size) {
  const int first = position - window + 1;
  return window == 0 || first < 0 ? 0 : first / page_size;
}

// The window of the block table of recurrent states. A step reads the state after the token before
// its first token. One more block is kept, so that the newest full block always has its state.
constexpr int state_window(int block_size) {
  return block_size + 1;
}

// One layer's cache, in the form that kernels receive. K and V have separate strides so that any
// layout fits.
struct KvCacheView {
  void* k = nullptr;
  void* v = nullptr;
  DType dtype = DType::kBF16;
  int64_t page_stride_k = 0, head_stride_k = 0, token_stride_k = 0;
  int64_t page_stride_v = 0, head_stride_v = 0, token_stride_v = 0;
  // FP8 only: stored = x / scale. Device scalars, so that a graph does not capture their values;
  // null: 1.
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;
  // kI8 only: KvLayout::scale_offset_k() and scale_offset_v().
  int64_t scale_offset_k = 0, scale_offset_v = 0;
};

inline KvCacheView kv_cache_view(const KvLayout& layout, void* base) {
  KvCacheView view;
  view.dtype = layout.dtype;
  view.k = base;
  view.v = static_cast<char*>(base) +
           layout.value_offset() * static_cast<int64_t>(dtype_bytes(layout.dtype));
  view.page_stride_k = view.page_stride_v = layout.page_stride();
  view.head_stride_k = layout.head_stride_k();
  view.head_stride_v = layout.head_stride_v();
  view.token_stride_k = layout.token_stride_k();
  view.token_stride_v = layout.token_stride_v();
  view.scale_offset_k = layout.scale_offset_k();
  view.scale_offset_v = layout.scale_offset_v();
  return view;
}

}  // namespace quire

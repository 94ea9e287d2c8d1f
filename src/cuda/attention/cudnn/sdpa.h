// Wraps cuDNN: the library, and execution plans of its attention. Only sdpa.cc includes cuDNN's
// headers. It catches all exceptions.
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "attn/backend.h"
#include "quire/status.h"

namespace quire::cuda::cudnn {

// The problem that a plan is built for. Building takes 30 ms, or 0.5 s if cuDNN has to generate a
// kernel.
struct SdpaKey {
  int num_reqs = 0;
  // 1: decode over pages. Above 1: prompts of up to this many query tokens, over contiguous keys
  // and values. A request's queries and keys may begin at any offset. The causal mask ends at the
  // request's last key.
  int max_q_len = 1;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int page_size = 0;         // decode
  int64_t num_pages = 0;     // decode: of the longest request
  int64_t table_stride = 0;  // decode: between rows of the block table; at least num_pages
  int64_t max_kv_len = 0;    // prompts: of the longest request
  // In elements; keys and values have the same strides. Prompts have no page_stride.
  int64_t page_stride = 0, head_stride = 0, token_stride = 0;
  DType dtype = DType::kBF16;
  float scale = 1.0F;
};

// A key with the fields that the shape determines, among them the strides of the pages. The other
// fields keep their defaults.
inline SdpaKey sdpa_key(const AttentionShape& shape) {
  const KvLayout layout = kv_layout(shape);
  return {.num_heads = shape.num_heads,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .page_size = shape.page_size,
          .page_stride = layout.page_stride(),
          .head_stride = layout.head_stride_k(),
          .token_stride = layout.token_stride_k(),
          .dtype = shape.q,
          .scale = shape.scale};
}

// Whether a plan for the key reads this cache correctly.
inline bool has_strides(const SdpaKey& key, const KvCacheView& kv) {
  const auto matches = [&](int64_t page, int64_t head, int64_t token) {
    return page == key.page_stride && head == key.head_stride && token == key.token_stride;
  };
  return matches(kv.page_stride_k, kv.head_stride_k, kv.token_stride_k) &&
         matches(kv.page_stride_v, kv.head_stride_v, kv.token_stride_v);
}

// Device pointers.
struct SdpaMemory {
  const void* q = nullptr;  // [num_tokens, num_heads, head_dim]
  void* out = nullptr;      // like q
  const void* k = nullptr;
  const void* v = nullptr;
  const int32_t* block_table = nullptr;  // decode: [num_reqs, table_stride]
  const int32_t* q_lens = nullptr;       // [num_reqs]; decode: all 1
  const int32_t* seq_lens = nullptr;     // [num_reqs]
  // Prompts: [num_reqs + 1], each request's first element in `q` and `out`, and in `k` and `v`.
  const int32_t* q_offsets = nullptr;
  const int32_t* kv_offsets = nullptr;
  void* workspace = nullptr;
};

class SdpaPlan {
 public:
  virtual ~SdpaPlan() = default;
  virtual size_t workspace_bytes() const = 0;
  // Enqueues; capturable.
  virtual Status execute(const SdpaMemory& memory, cudaStream_t stream) = 0;
};

// Returns "9.11.0" for 91100.
inline std::string version_name(size_t version) {
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

// Building the first plan loads most of cuDNN; the library that open() loads is small.
class Library {
 public:
  // Fails with kUnavailable if there is no cuDNN, or one older than 9.11.
  static Result<std::unique_ptr<Library>> open();
  virtual ~Library() = default;
  virtual size_t version() const = 0;  // of cuDNN, the argument of version_name()
  // Fails with kUnimplemented if this cuDNN has no kernel for the problem.
  virtual Result<std::unique_ptr<SdpaPlan>> build(const SdpaKey& key) = 0;
};

// Plans that this process has built so far; a step builds none.
int64_t num_builds();

}  // namespace quire::cuda::cudnn

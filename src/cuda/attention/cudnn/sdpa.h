// The door to cuDNN: the library, and execution plans of its attention. Nothing else sees cuDNN's
// headers, and none of its exceptions passes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda::cudnn {

// The problem that a plan is built for, of one query token per request. Building takes 30 ms, or
// 0.5 s where cuDNN has to generate a kernel.
struct SdpaKey {
  int num_reqs = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int page_size = 0;
  int64_t num_pages = 0;     // of the longest request
  int64_t table_stride = 0;  // of the block table's rows, at least num_pages
  // In elements, of keys and values alike.
  int64_t page_stride = 0, head_stride = 0, token_stride = 0;
  DType dtype = DType::kBF16;
  float scale = 1.0F;
};

// All on the device.
struct SdpaMemory {
  const void* q = nullptr;  // [num_reqs, num_heads, head_dim]
  void* out = nullptr;      // like q
  const void* k = nullptr;
  const void* v = nullptr;
  const int32_t* block_table = nullptr;  // [num_reqs, table_stride]
  const int32_t* q_lens = nullptr;       // [num_reqs], all 1
  const int32_t* seq_lens = nullptr;     // [num_reqs]
  void* workspace = nullptr;
};

class SdpaPlan {
 public:
  virtual ~SdpaPlan() = default;
  virtual size_t workspace_bytes() const = 0;
  // Enqueues; can be captured.
  virtual Status execute(const SdpaMemory& memory, cudaStream_t stream) = 0;
};

// What cuDNN loads beyond its small front library, it loads with the first plan.
class Library {
 public:
  // kUnavailable where there is no cuDNN, or an older one than 9.11.
  static Result<std::unique_ptr<Library>> open();
  virtual ~Library() = default;
  // kUnimplemented where this cuDNN has no kernel for it.
  virtual Result<std::unique_ptr<SdpaPlan>> build(const SdpaKey& key) = 0;
};

}  // namespace quire::cuda::cudnn

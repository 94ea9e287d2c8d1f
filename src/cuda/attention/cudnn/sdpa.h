// Wraps cuDNN: the library, and execution plans of its attention. Only sdpa.cc includes cuDNN's
// headers, and it lets no exceptions out. padding.cu supplements cuDNN: zeros in the rows of
// padding, and an array of query lengths.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/base/stream.h"
#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda::cudnn {

// The problem that a plan is built for, with one query token per request. Building takes 30 ms, or
// 0.5 s if cuDNN has to generate a kernel.
struct SdpaKey {
  int num_reqs = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int page_size = 0;
  int64_t num_pages = 0;     // of the longest request
  int64_t table_stride = 0;  // between rows of the block table; at least num_pages
  // In elements; keys and values have the same strides.
  int64_t page_stride = 0, head_stride = 0, token_stride = 0;
  DType dtype = DType::kBF16;
  float scale = 1.0F;
};

// Device pointers.
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
  // Enqueues; capturable.
  virtual Status execute(const SdpaMemory& memory, cudaStream_t stream) = 0;
};

// Building the first plan loads the parts of cuDNN beyond its small front library.
class Library {
 public:
  // Fails with kUnavailable if there is no cuDNN, or one older than 9.11.
  static Result<std::unique_ptr<Library>> open();
  virtual ~Library() = default;
  // Fails with kUnimplemented if this cuDNN has no kernel for the problem.
  virtual Result<std::unique_ptr<SdpaPlan>> build(const SdpaKey& key) = 0;
};

inline constexpr int kMaxReqs = 1024;

// Zeroes the output rows of requests of length 0. row_bytes is a multiple of 16.
void zero_padding(const int32_t* seq_lens, int num_reqs, void* out, size_t row_bytes,
                  CudaStream& stream);

// Query lengths on the device, [kMaxReqs], all 1. The first call loads them and cannot be captured.
Result<const int32_t*> single_q_lens();

}  // namespace quire::cuda::cudnn

// A batch of random queries, keys and values in device memory, for measurements.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/workload.h"
#include "base/numbers.h"
#include "cuda/base/memory.h"

namespace quire::cuda {

// Allocates keys and values of num_pages pages, and page 0, which is never read.
Result<Buffer> random_pages(const AttentionShape& shape, int64_t num_pages);
int64_t page_bytes(const AttentionShape& shape);
// The number of distinct pages that the workload uses.
int64_t wanted_pages(const AttentionWorkload& workload, const AttentionShape& shape);

class DeviceBatch {
 public:
  DeviceBatch(const AttentionShape& shape, const AttentionWorkload& workload)
      : shape_(shape), workload_(workload) {}
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;

  // Chooses the batch's pages among the num_pages of `pages`; they repeat if the batch needs more.
  Status fill(const Buffer& pages, int64_t num_pages);

  const AttentionShape& shape() const { return shape_; }
  const AttentionBatch& batch() const { return batch_; }
  PlanLimits limits() const;
  AttentionCall call(std::span<std::byte> workspace) const;

 private:
  int num_tokens() const { return workload_.num_reqs() * workload_.q_len; }
  std::vector<int32_t> block_table(int64_t num_pages) const;
  int max_pages() const { return ceil_div(workload_.longest(), shape_.page_size); }
  void describe();

  const AttentionShape& shape_;
  const AttentionWorkload& workload_;
  std::vector<int32_t> query_start_;
  Buffer device_block_table_, device_seq_lens_, device_query_start_, q_, out_;
  KvCacheView kv_;
  AttentionBatch batch_;
};

}  // namespace quire::cuda

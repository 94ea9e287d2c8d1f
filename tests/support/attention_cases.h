// Random paged-attention problems that every backend runs against the reference. Memory that must
// not be read is poisoned: NaN in slots that hold no token, huge page ids behind a request's last
// page. Pages are shuffled; requests of one content may share the pages of their common prefix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "tensor/tensor.h"

namespace quire::testing {

struct AttentionRequest {
  int q_len = 1;
  int kv_len = 1;        // 0: padding
  uint64_t content = 0;  // requests of equal content have equal tokens at equal positions
};

struct AttentionCase {
  std::string name;
  AttentionShape shape;
  std::vector<AttentionRequest> reqs = {};  // in batch order: see max_decode_q_len
  int max_decode_q_len = 1;                 // leading requests of one length up to this are decode
  bool share_pages = false;
  float k_scale = 1.0F;  // FP8 only
  float v_scale = 1.0F;
  int64_t num_unused_pages = 7;  // the pool is this much larger than what is used
  // The first head's identity: a problem of heads 4 to 5 has the content of those heads elsewhere.
  int first_head = 0;
  int first_kv_head = 0;
};

// The result of attention: [num_tokens, num_heads, head_dim_v].
struct AttentionResult {
  std::vector<float> out;
};

// A case laid out in host memory.
class AttentionProblem {
 public:
  explicit AttentionProblem(const AttentionCase& spec);

  const AttentionCase& spec() const { return spec_; }
  const AttentionShape& shape() const { return spec_.shape; }
  const AttentionBatch& batch() const { return batch_; }
  const KvCacheView& cache() const { return cache_; }
  const Buffer& cache_memory() const { return cache_memory_; }
  const std::vector<float>& queries() const { return queries_; }
  const std::vector<float>& sinks() const { return sinks_; }
  int64_t num_pages() const { return num_pages_; }
  int num_tokens() const { return static_cast<int>(query_start_.back()); }
  // Limits of an eager plan for this batch.
  PlanLimits limits(Phase phase) const;
  // Never below the true lengths; a test may raise them to what a host would know.
  std::vector<int32_t>& kv_len_bound() { return kv_len_bound_; }

  // The number as it is stored, after rounding and its scale.
  float key(int req, int position, int kv_head, int d) const;
  float value(int req, int position, int kv_head, int d) const;

  // Both phases on a backend of this host; fails the test on a Status. The workspace is exactly as
  // large as the plans asked for, poisoned.
  AttentionResult run(AttentionBackend& backend) const;

 private:
  void number_tokens();
  void place_pages();
  void fill_cache();
  void write_token(int req, int position);
  int64_t page_of(int req, int position) const;

  AttentionCase spec_;
  std::vector<int32_t> query_start_, seq_lens_, kv_len_bound_, block_table_;
  std::vector<int64_t> slot_mapping_;
  std::vector<float> queries_, sinks_;
  int64_t max_pages_ = 0;
  int64_t num_pages_ = 0;
  Buffer cache_memory_;
  KvCacheView cache_;
  AttentionBatch batch_;
};

AttentionResult run_attention(const AttentionCase& spec, AttentionBackend& backend);

// The same with a plan for each problem and phase, all of which are updated before the first runs.
std::vector<AttentionResult> run_interleaved(const std::vector<const AttentionProblem*>& problems,
                                             AttentionBackend& backend);

// The cases every backend is to pass: head shapes, dtypes, page sizes, lengths around a page's,
// ragged and uniform batches, window, soft cap, sinks, sharing, padding.
std::vector<AttentionCase> attention_cases();

// A shape with what tests rarely vary filled in: softmax scale 1/sqrt(head_dim), causal, F32.
AttentionShape make_attention_shape(int num_heads, int num_kv_heads, int head_dim, int page_size,
                                    DType kv);

// |actual - expected| ≤ tolerance * (1 + |expected|), infinities equal; reports the worst element.
void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                  float tolerance);
float max_difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace quire::testing

// Random paged-attention problems that every backend runs against the reference. Memory that must
// not be read is poisoned: NaN in KV slots without a token, and huge page ids after a request's
// last page. Pages are shuffled. Requests with equal content may share the pages of their common
// prefix.
#pragma once

#include <cstdint>
#include <span>
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
  float query_scale = 3.0F;      // queries are in [-query_scale, query_scale)
  int64_t num_unused_pages = 7;  // pages in the pool beyond those in use
  int bound_excess = 0;          // of kv_len_bound over the lengths, up to two pages
  // Index of the first head in a larger problem: heads 4 and 5 there have the same content here.
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
  // The limits of an eager plan for this batch.
  PlanLimits limits(Phase phase) const;
  // Upper bounds of the lengths. A test may raise them to what a host would know.
  std::vector<int32_t>& kv_len_bound() { return kv_len_bound_; }

  // The number as stored in the cache, after scaling and rounding.
  float key(int req, int position, int kv_head, int d) const;
  float value(int req, int position, int kv_head, int d) const;

  // Runs both phases on a backend of this host. An error fails the test. The workspace is poisoned
  // and has exactly the size that the plans require.
  AttentionResult run(AttentionBackend& backend) const;

 private:
  void number_tokens();
  void place_pages();
  void fill_cache();
  void write_token(int req, int position);
  // The position of a vector in the cache, in elements, and of its scale in a cache of 8-bit
  // integers.
  struct VectorPlace {
    void* data;
    int64_t vector;
    int64_t scale;
  };
  VectorPlace key_place(int64_t page, int head, int offset) const;
  VectorPlace value_place(int64_t page, int head, int offset) const;
  float* i8_scale_at(const VectorPlace& place, int d) const;
  void write_vector(const VectorPlace& place, std::span<const float> x, float fp8_scale);
  float read_element(const VectorPlace& place, int d, float fp8_scale) const;
  int64_t page_of(int req, int position) const;

  AttentionCase spec_;
  std::vector<int32_t> query_start_, seq_lens_, kv_len_bound_, block_table_;
  std::vector<int64_t> kv_slots_;
  std::vector<float> queries_, sinks_;
  int64_t max_pages_ = 0;
  int64_t num_pages_ = 0;
  Buffer cache_memory_;
  KvCacheView cache_;
  AttentionBatch batch_;
};

AttentionResult run_attention(const AttentionCase& spec, AttentionBackend& backend);

// Runs several problems: plans all problems and phases and updates all plans before the first runs.
std::vector<AttentionResult> run_interleaved(const std::vector<const AttentionProblem*>& problems,
                                             AttentionBackend& backend);

// The cases that every backend must pass: head shapes, dtypes, page sizes, lengths around the page
// size, ragged and uniform batches, window, chunks, soft cap, sinks, shared pages and padding.
std::vector<AttentionCase> attention_cases();
// These cases with a cache in 8-bit integers, which the backends of CPUs must pass, too.
std::vector<AttentionCase> i8_attention_cases();

// A shape with the common defaults: softmax scale 1/sqrt(head_dim), causal, F32.
AttentionShape make_attention_shape(int num_heads, int num_kv_heads, int head_dim, int page_size,
                                    DType kv);

// Expects |actual - expected| ≤ tolerance * (1 + |expected|), with equal infinities. Reports the
// worst element.
void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                  float tolerance);
float max_difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace quire::testing

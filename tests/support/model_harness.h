// Drives Model::forward with a paged cache laid out by hand: no scheduler, no engine.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "model/model.h"
#include "ops/ops.h"

namespace quire::testing {

// The next tokens of one sequence.
struct HarnessChunk {
  int seq = 0;
  std::vector<int32_t> token_ids;
};

// Hands out pages of one pool in a shuffled order, for every KV group on its own. Slots that were
// never written hold NaN and dead block-table entries a page that does not exist, so that whoever
// reads them is found out.
class ModelHarness {
 public:
  static constexpr int kMaxSeqs = 8;

  // All three outlive the harness. `limits` is what the model was loaded with.
  ModelHarness(Model& model, AttentionBackend& attention, const ModelLimits& limits,
               uint64_t seed = 0);

  // One step. One-token chunks go first, as decode; returns each chunk's logits
  // [num_tokens, vocab_size] in the order in which the chunks were given.
  Result<std::vector<std::vector<float>>> step(const std::vector<HarnessChunk>& chunks);

 private:
  struct GroupCache {
    std::vector<Tensor> buffers;  // one a layer
    std::vector<KvCacheView> views;
    std::vector<int32_t> free_pages;
    std::vector<int32_t> block_table;  // [kMaxSeqs, max_pages]
    std::vector<int> num_pages;        // [kMaxSeqs]
  };
  struct Batch;

  void add_group(const KvGroup& group, int num_pages, std::mt19937_64& random);
  Batch order_chunks(const std::vector<HarnessChunk>& chunks) const;
  void fill_group(const Batch& batch, GroupCache& cache, std::vector<int32_t>& block_table,
                  std::vector<int64_t>& slots);
  Status run_forward(Batch& batch);
  Result<std::vector<float>> all_logits(const Batch& batch);

  Model& model_;
  AttentionBackend& attention_;
  ModelLimits limits_;
  int64_t max_pages_ = 0;  // of one sequence
  std::vector<GroupCache> caches_;
  std::vector<int> lengths_;  // [kMaxSeqs] tokens in the cache
};

// The greedy continuation: `num_tokens` ids in all, starting with `first`.
Result<std::vector<int32_t>> greedy(ModelHarness& harness, int seq, int32_t first, int num_tokens);

}  // namespace quire::testing

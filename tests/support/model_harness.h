// Runs Model::forward with a paged cache, without a scheduler or an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  std::vector<float> hidden = {};  // [num_tokens, hidden_size], only for a TapReader
};

// Allocates pages of one pool in shuffled order, separately for every KV group. Slots never written
// hold NaN, and unused block-table entries hold a page that does not exist, so that reading them
// shows in the result.
class ModelHarness {
 public:
  static constexpr int kMaxSeqs = 8;

  // `model`, `attention` and `limits` must outlive the harness. `limits` are those of the model's
  // load.
  ModelHarness(Model& model, AttentionBackend& attention, const ModelLimits& limits,
               uint64_t seed = 0);

  // Runs one step. A sequence has a state for each of its blocks. Chunks of one token run first, as
  // decode. Returns the logits of each chunk, [num_tokens, vocab_size], in the order of `chunks`.
  Result<std::vector<std::vector<float>>> step(const std::vector<HarnessChunk>& chunks);
  // Calls write_context() of `reader`, a part of the model, with the chunks' hidden states.
  Status write_context(TapReader& reader, const std::vector<HarnessChunk>& chunks);
  // Forgets the tokens of a sequence from `length` on; their keys and values stay in the pages.
  void cut(int seq, int length) { lengths_[static_cast<size_t>(seq)] = length; }

 private:
  struct GroupCache {
    std::vector<Tensor> buffers;  // one per layer
    std::vector<KvCacheView> views;
    std::vector<int32_t> free_pages;
    std::vector<int32_t> block_table;  // [kMaxSeqs, max_pages]
    std::vector<int> num_pages;        // [kMaxSeqs]
  };
  struct Batch;
  // The states of the model's layers; no views.
  struct StateCache {
    GroupCache cache;
    std::vector<std::byte*> pages;
  };

  void add_pages(int64_t page_bytes, size_t num_layers, int num_pages, std::mt19937_64& random,
                 GroupCache& cache) const;
  void add_group(const KvGroup& group, int num_pages, std::mt19937_64& random);
  Batch order_chunks(const std::vector<HarnessChunk>& chunks) const;
  void fill_group(const Batch& batch, GroupCache& cache, std::vector<int32_t>& block_table,
                  std::vector<int64_t>& kv_slots);
  // Calls forward(), or write_context() of `reader` if it is not null.
  Status run_model(Batch& batch, TapReader* reader);
  void keep_lengths(const Batch& batch);
  Result<std::vector<float>> all_logits(const Batch& batch);

  Model& model_;
  AttentionBackend& attention_;
  ModelLimits limits_;
  int64_t max_pages_ = 0;  // per sequence
  std::vector<GroupCache> caches_;
  std::optional<StateCache> states_;  // absent: the model has none
  std::vector<int> lengths_;          // [kMaxSeqs], tokens in the cache
};

// Decodes greedily. Returns `num_tokens` ids, of which `first` is the first.
Result<std::vector<int32_t>> greedy(ModelHarness& harness, int seq, int32_t first, int num_tokens);

}  // namespace quire::testing

#include "cuda/step/decode_graphs.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/log.h"
#include "base/wall_timer.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {
namespace {

DecodeGraph graph_for(const DecodeKey& key, std::span<const AttentionSelector> selectors) {
  DecodeGraph graph;
  graph.batch = {.num_reqs = key.num_reqs, .q_len = key.q_len};
  for (const AttentionSelector& selector : selectors) {
    graph.attention.push_back(selector.decode(key));
  }
  return graph;
}

}  // namespace

std::vector<int> graph_buckets(int max_num_seqs) {
  std::vector<int> buckets;
  const auto add_steps = [&](int first, int last, int step) {
    for (int size = first; size <= std::min(last, max_num_seqs); size += step) {
      buckets.push_back(size);
    }
  };
  for (const int size : {1, 2, 4}) add_steps(size, size, 1);
  add_steps(8, 256, 8);
  add_steps(272, max_num_seqs, 16);
  if (buckets.back() != max_num_seqs) buckets.push_back(max_num_seqs);
  return buckets;
}

std::vector<int> context_buckets(int max_model_len) {
  std::vector<int> buckets;
  for (int64_t length = 256; length < max_model_len; length *= 2) {
    buckets.push_back(static_cast<int>(length));
  }
  buckets.push_back(max_model_len);
  return buckets;
}

int bucket_index(std::span<const int> buckets, int size) {
  const auto found = std::lower_bound(buckets.begin(), buckets.end(), size);
  return found == buckets.end() ? -1 : static_cast<int>(found - buckets.begin());
}

std::vector<int> decode_q_lens(int num_drafts, bool is_adaptive) {
  const int longest = 1 + num_drafts;
  std::vector<int> q_lens;
  for (const int q_len : {1, 2, 3, 4, 6, 8, 12}) {
    if (is_adaptive && q_len < longest) q_lens.push_back(q_len);
  }
  q_lens.push_back(longest);
  return q_lens;
}

std::vector<DecodeKey> graph_keys(int max_num_seqs, int max_model_len,
                                  std::span<const int> q_lens) {
  std::vector<DecodeKey> keys;
  for (const int q_len : q_lens) {
    for (const int max_kv_len : context_buckets(max_model_len)) {
      for (const bool ragged : {false, true}) {
        for (const int num_reqs : graph_buckets(max_num_seqs)) {
          keys.push_back(
              {.num_reqs = num_reqs, .max_kv_len = max_kv_len, .ragged = ragged, .q_len = q_len});
        }
      }
    }
  }
  return keys;
}

DecodeGraphs::DecodeGraphs(std::span<const AttentionSelector> selectors, int max_num_seqs,
                           int max_model_len, std::span<const int> q_lens)
    : q_lens_(q_lens.begin(), q_lens.end()),
      contexts_(context_buckets(max_model_len)),
      batch_sizes_(graph_buckets(max_num_seqs)) {
  for (const DecodeKey& key : graph_keys(max_num_seqs, max_model_len, q_lens)) {
    graph_of_key_.push_back(find_or_add(graph_for(key, selectors)));
  }
}

size_t DecodeGraphs::find_or_add(DecodeGraph graph) {
  const auto found = std::find_if(graphs_.begin(), graphs_.end(), [&](const DecodeGraph& other) {
    return graph.batch == other.batch && graph.attention == other.attention;
  });
  const auto at = static_cast<size_t>(found - graphs_.begin());
  if (found == graphs_.end()) graphs_.push_back(std::move(graph));
  return at;
}

std::vector<const DecodeGraph*> DecodeGraphs::one_of_each_choice() const {
  std::vector<const DecodeGraph*> found;
  for (const DecodeGraph& graph : graphs_) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const DecodeGraph* other) {
      return other->batch.q_len == graph.batch.q_len && other->attention == graph.attention;
    });
    if (same == found.end()) {
      found.push_back(&graph);
    } else if ((*same)->batch.num_reqs < graph.batch.num_reqs) {
      *same = &graph;
    }
  }
  return found;
}

Status DecodeGraphs::capture(int device,
                             const std::function<Result<CudaGraph>(const DecodeGraph&)>& capture) {
  const WallTimer timer;
  QUIRE_ASSIGN_OR_RETURN(const int64_t free_before, free_device_bytes(device));
  // Captures the largest graph first, so that the other graphs reuse the memory that a library
  // allocates for it.
  for (size_t i = graphs_.size(); i-- > 0;) {
    QUIRE_ASSIGN_OR_RETURN(graphs_[i].graph, capture(graphs_[i]));
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t free_after, free_device_bytes(device));
  log_info(
      "[cuda] captured {} graphs for decode steps of up to {} sequences and contexts of up to {} "
      "tokens in {:.2f} s; they take {:.1f} MiB",
      graphs_.size(), batch_sizes_.back(), contexts_.back(), timer.seconds(),
      static_cast<double>(free_before - free_after) / double{1 << 20});
  return {};
}

const DecodeGraph* DecodeGraphs::find(const DecodeKey& key) const {
  const int batch = bucket_index(batch_sizes_, key.num_reqs);
  const int context = bucket_index(contexts_, key.max_kv_len);
  const auto q_len = std::ranges::find(q_lens_, key.q_len);
  if (batch < 0 || context < 0 || q_len == q_lens_.end()) return nullptr;
  // The index of the key in graph_keys().
  const size_t context_idx = static_cast<size_t>(q_len - q_lens_.begin()) * contexts_.size() +
                             static_cast<size_t>(context);
  const size_t raggedness_idx = context_idx * 2 + (key.ragged ? 1 : 0);
  const size_t key_idx = raggedness_idx * batch_sizes_.size() + static_cast<size_t>(batch);
  return &graphs_[graph_of_key_[key_idx]];
}

}  // namespace quire::cuda

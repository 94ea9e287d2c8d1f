// The graphs of decode steps: which there are, who serves each, and which one a step takes.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cuda/step/graph.h"
#include "platform/step_attention.h"

namespace quire::cuda {

// Every kind of step that selection tells apart: the buckets of the longest context, each of full
// and of ragged lengths, each of the buckets of requests, ascending.
std::vector<DecodeKey> decode_keys(int max_num_seqs, int max_model_len);

// What picks kernels is in here, known when the graph is captured, and never read from live
// lengths. Every graph is captured for the longest context there may be: graphs for shorter ones,
// with fewer splits, were no faster on an H200 at any batch.
struct DecodeGraph {
  int num_reqs = 0;
  std::vector<AttentionChoice> attention;  // one a KV group
  CudaGraph graph;
};

class DecodeGraphs {
 public:
  // Those that the selectors' choices for all keys need: keys with one answer share a graph. None
  // is captured yet.
  DecodeGraphs(std::span<const AttentionSelector> selectors, int max_num_seqs, int max_model_len);

  // Ascending.
  std::span<const int> batch_sizes() const { return batch_sizes_; }
  // Of the largest batch, for the longest context.
  const DecodeGraph& largest() const { return graphs_[graph_of_key_.back()]; }
  // Of each combination of backends, the largest of its graphs.
  std::vector<const DecodeGraph*> one_of_each_choice() const;
  std::span<const DecodeGraph> all() const { return graphs_; }

  Status capture(const std::function<Result<CudaGraph>(const DecodeGraph&)>& capture);
  // The graph for the smallest buckets that hold the step; none: null.
  const DecodeGraph* find(const DecodeKey& key) const;

 private:
  size_t find_or_add(DecodeGraph graph);

  std::vector<int> batch_sizes_;
  std::vector<int> contexts_;
  std::vector<DecodeGraph> graphs_;
  std::vector<size_t> graph_of_key_;  // in the order of decode_keys()
};

}  // namespace quire::cuda

// The step sizes for which decode graphs are captured, and the choice of a graph for a step.
#pragma once

#include <span>
#include <vector>

#include "cuda/base/graph.h"
#include "cuda/step/step_inputs.h"
#include "platform/runner.h"

namespace quire::cuda {

// The numbers of requests for which graphs are captured, ascending: 1, 2, 4, then multiples of 8 up
// to 256, then multiples of 16. The last number is always max_num_seqs.
std::vector<int> graph_buckets(int max_num_seqs);

// Buckets of a step's longest context, ascending: 256, 512 and so on in powers of two. The last
// bucket is always max_model_len.
std::vector<int> context_buckets(int max_model_len);

// Returns the index of the smallest bucket that is at least `size`, or -1.
int bucket_index(std::span<const int> buckets, int size);

// The query lengths of decode steps, ascending. Each length is captured for every number of
// requests. To limit the number of graphs, an adaptive runner has only some of the lengths up to 1
// + num_drafts: 1, 2, 3, 4, 6, 8, 12, and 1 + num_drafts. With one choice of backends and 256
// sequences, num_drafts = 4 takes 175 graphs, and 15 takes 280; a graph of 32 layers takes about 1
// MiB on an H200 and 10 ms to capture. A runner that is not adaptive verifies num_drafts in each
// step, with 35 graphs.
std::vector<int> decode_q_lens(int num_drafts, bool is_adaptive);

// Every kind of decode step that backend selection distinguishes: each query length with each
// bucket of the longest context, full and ragged lengths, and each bucket of requests; all
// ascending.
std::vector<DecodeKey> graph_keys(int max_num_seqs, int max_model_len, std::span<const int> q_lens);

// The CUDA graph of a decode step with one batch shape and one choice of attention backends. The
// kernels are selected at capture and never depend on current lengths. Every graph is captured for
// the longest possible context: on an H200, graphs for shorter contexts, with fewer splits, were
// not faster at any batch size.
struct DecodeGraph {
  GraphBatch batch;
  std::vector<AttentionBackend*> attention;  // one per KV group
  CudaGraph graph;
};

class DecodeGraphs {
 public:
  // Lists one graph per distinct (requests, query length, backends), without capturing it. Keys
  // with the same choice share a graph. q_lens must be ascending.
  DecodeGraphs(std::span<const AttentionSelector> selectors, int max_num_seqs, int max_model_len,
               std::span<const int> q_lens);

  // The graph of the largest batch with the longest queries and context.
  const DecodeGraph& largest() const { return graphs_[graph_of_key_.back()]; }
  // The largest graph of each query length and combination of backends.
  std::vector<const DecodeGraph*> one_of_each_choice() const;
  std::span<const DecodeGraph> all() const { return graphs_; }
  std::span<const int> q_lens() const { return q_lens_; }
  std::span<const int> batch_sizes() const { return batch_sizes_; }
  int max_model_len() const { return contexts_.back(); }

  // Captures all graphs. `device`: the index of the device on which they are captured.
  Status capture(int device, const std::function<Result<CudaGraph>(const DecodeGraph&)>& capture);
  // Returns the graph of the step's query length for the smallest buckets that hold the step, or
  // null.
  const DecodeGraph* find(const DecodeKey& key) const;

 private:
  size_t find_or_add(DecodeGraph graph);

  std::vector<int> q_lens_;
  std::vector<int> contexts_;
  std::vector<int> batch_sizes_;
  std::vector<DecodeGraph> graphs_;
  std::vector<size_t> graph_of_key_;  // in the order of graph_keys()
};

}  // namespace quire::cuda

// The batches that `quire tune` and `quire bench attention` measure. They are the same on every
// machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "platform/tune.h"

namespace quire::bench {

// Bytes of the keys and values that the queries attend to: the minimum that a decode step must
// read.
double num_kv_bytes(const AttentionShape& shape, const AttentionWorkload& workload);
// Floating-point operations of the two matrix products of attention, with a causal mask.
double num_operations(const AttentionShape& shape, const AttentionWorkload& workload);

constexpr uint64_t kWorkloadSeed = 0;
// Each length after 2 is one more than a power of two, because there the packed query rows of a
// request need one more tile of a kernel.
inline constexpr int kTuningQLens[] = {1, 2, 3, 5, 9};

// The batches that `quire tune` measures: full and ragged decode of each query length and, if
// q_lens contains 1, prompts. To save time, queries of several tokens are measured at fewer context
// lengths, but at all batch sizes: on an H200, the fastest backend for 5 tokens depends on the
// number of sequences, and the second fastest is up to 48 % slower. Ragged batches draw their pages
// as BenchGrid::kSeed does. On an H200, FlashInfer finds shared pages in the L2 cache and is up to
// 13 % faster because of them. A choice made with shared pages costs at most 2.4 % when all pages
// are distinct, except in one cell of 56 (7.5 %, 256 sequences of up to 2,048 tokens). `quick`
// measures fewer sizes. If `q_lens` has 5, it also skips the other query lengths above 1.
std::vector<AttentionWorkload> tuning_grid(bool quick, std::span<const int> q_lens = kTuningQLens);

// The tables of `quire bench attention`.
enum class BenchGrid {
  kSeed,     // ragged, pages drawn with replacement from 16,000: vLLM's decode benchmark
  kStrict,   // full lengths, distinct pages
  kOutlier,  // one full length, the others 1/32 of it, distinct pages
  kPrefill,  // prompts, alone or after a cached prefix
};
struct BenchGridConfig {
  BenchGrid grid = BenchGrid::kSeed;
  std::vector<int> num_seqs = {};  // empty: the grid's default
  std::vector<int> kv_lens = {};
  std::vector<int> q_lens = {1};       // decode only
  std::vector<int> prefix_lens = {0};  // prefill only: cached tokens before each prompt
  uint64_t seed = kWorkloadSeed;
};
// Returns decode batches ordered by query length, then by context length, then by number of
// sequences, without contexts that are shorter than the query. Prompts whose sizes `config` gives
// are ordered by length, then by prefix.
std::vector<AttentionWorkload> bench_grid(const BenchGridConfig& config);

}  // namespace quire::bench

// The batches that attention is measured with: plain data, the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/selector.h"
#include "attn/tuning_table.h"

namespace quire {

struct AttentionWorkload {
  Phase phase = Phase::kDecode;
  int q_len = 1;                 // query tokens of every request, the last of its context
  int max_kv_len = 0;            // what the lengths were drawn from; the longest may be below it
  bool ragged = false;           // as the tuning table says it
  std::vector<int32_t> kv_lens;  // [num_reqs], from q_len to max_kv_len
  // Pages are drawn with replacement from so many. 0: all are distinct and shuffled, as far as the
  // memory goes.
  int64_t pool_pages = 0;

  int num_reqs() const { return static_cast<int>(kv_lens.size()); }
  int longest() const;  // what a backend is told that a context may reach
};

// Every request at the full length.
AttentionWorkload full_workload(Phase phase, int num_reqs, int q_len, int kv_len);
// Lengths uniform in [q_len, max_kv_len], by the seed and the two sizes alone.
AttentionWorkload ragged_workload(int num_reqs, int q_len, int max_kv_len, uint64_t seed);

int64_t num_pages(const AttentionWorkload& workload, int page_size);
// Of keys and values that the queries see: what a decode step cannot but read.
double num_kv_bytes(const AttentionShape& shape, const AttentionWorkload& workload);
// Of both products, causal.
double num_operations(const AttentionShape& shape, const AttentionWorkload& workload);

TuningPoint tuning_point(const AttentionShape& shape, const AttentionWorkload& workload);
// The key of a decode step of these lengths.
DecodeKey decode_key(const AttentionWorkload& workload);
// As the engine serves it: decode in graphs, prompts eagerly.
AttentionUse use_of(const AttentionWorkload& workload);

// The batches that `quire tune` measures: decode of each of the query lengths, full and ragged, and
// prompts, if one query token is among them. Longer queries are measured at fewer sizes, since only
// some backends serve them: on an H200 tuning takes about 1.5 times as long with all of
// kTuningQLens as with 1 alone. Ragged batches draw their pages as kSeed does. On an H200
// FlashInfer finds shared pages in the L2 and is up to 13 % the faster by them; what is chosen with
// them costs at most 2.4 % where all pages are distinct, but for one cell of 56 (7.5 %, 256
// sequences of up to 2,048).
constexpr uint64_t kWorkloadSeed = 0;
// One more than a power of two: where the packed rows of a request outgrow a kernel's tile.
inline constexpr int kTuningQLens[] = {1, 2, 3, 5, 9};
// Fewer sizes with `quick`, and of the longer queries those of 5 tokens alone.
std::vector<AttentionWorkload> tuning_grid(bool quick, std::span<const int> q_lens = kTuningQLens);

// The tables of `quire bench attention`.
enum class BenchGrid {
  kSeed,     // ragged, pages drawn with replacement from 16,000: vLLM's decode benchmark
  kStrict,   // full lengths, distinct pages
  kPrefill,  // whole prompts
};
struct BenchGridConfig {
  BenchGrid grid = BenchGrid::kSeed;
  std::vector<int> num_seqs = {};  // empty: the grid's own
  std::vector<int> kv_lens = {};
  std::vector<int> q_lens = {1};  // of decode
  uint64_t seed = kWorkloadSeed;
};
// By query length, then by length, then by number of sequences. Lengths below the queries are left
// out.
std::vector<AttentionWorkload> bench_grid(const BenchGridConfig& config);

}  // namespace quire

// The view of a step that every attention backend receives: plain data that owns nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quire {

enum class Phase { kDecode, kPrefill };

constexpr std::string_view phase_name(Phase phase) {
  return phase == Phase::kDecode ? "decode" : "prefill";
}

// One array in host and device memory; on a CPU both pointers are the same.
template <typename T>
struct HostDev {
  const T* host = nullptr;
  const T* device = nullptr;
};

// A run of consecutive requests of one phase, after reordering.
struct PhaseRange {
  int first_req = 0;
  int num_reqs = 0;
  int first_token = 0;
  int num_tokens = 0;
  int max_q_len = 0;   // decode: the query tokens of every request
  int max_kv_len = 0;  // upper bound; in a graph's batch the longest possible context
};

// There is one batch per step and KV group, shared by all layers of the group. Query token t of
// request r attends to positions [0, seq_lens[r] - q_len(r) + (t - query_start[r])] (causal, itself
// included).
struct AttentionBatch {
  PhaseRange decode;                      // uniform short queries: first in the batch
  PhaseRange prefill;                     // all others
  HostDev<int32_t> query_start;           // [num_reqs + 1], index of each request's first token
  const int32_t* seq_lens = nullptr;      // device, [num_reqs], exact, including this step's tokens
  std::span<const int32_t> kv_len_bound;  // host, [num_reqs], never below seq_lens
  const int32_t* block_table = nullptr;   // device, [num_reqs, max_pages] page ids
  int64_t max_pages = 0;                  // row stride of block_table
  const int64_t* kv_slots = nullptr;      // device, [num_tokens]; < 0: do not write

  const PhaseRange& range(Phase phase) const { return phase == Phase::kDecode ? decode : prefill; }
};

}  // namespace quire

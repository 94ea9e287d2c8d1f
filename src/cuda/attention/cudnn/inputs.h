// The inputs of cuDNN's attention besides queries, keys and values. The inputs for prompts are
// computed on the device, one element at a time, with the functions below. A test calls these
// functions on the host.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/attention/gather/gather.h"
#include "cuda/base/stream.h"
#include "quire/status.h"

namespace quire::cuda::cudnn {

inline constexpr int kMaxReqs = 1024;  // of one decode call

// Query lengths of a decode call on the device, [kMaxReqs], all 1. The first call loads them and
// cannot be captured.
Result<const int32_t*> single_q_lens();

// cuDNN reads keys and values in tiles of up to this many tokens. Keys and values of a tile that
// are beyond a request's end are multiplied by a probability of 0, so they must be finite.
inline constexpr int kPrefillTile = 256;

// Consecutive requests that one call of cuDNN computes. They belong to a group, whose requests are
// gathered together.
struct PrefillRequests {
  const int32_t* query_start = nullptr;  // from the group's first request on, like seq_lens
  const int32_t* seq_lens = nullptr;
  int first_req = 0;  // of the part, within the group
  int num_reqs = 0;   // of the part
};

// Query tokens of a request of the group.
constexpr int32_t group_q_len(const PrefillRequests& reqs, int group_req) {
  return reqs.query_start[group_req + 1] - reqs.query_start[group_req];
}

// Before version 9.25 cuDNN's result for a request without keys is NaN. Therefore a request without
// tokens gets no query tokens and one key, which is not gathered. Requests of the plan beyond the
// part get the same. `req` counts from the part's first request.
constexpr bool is_computed(const PrefillRequests& reqs, int req) {
  return req < reqs.num_reqs && reqs.seq_lens[reqs.first_req + req] > 0 &&
         group_q_len(reqs, reqs.first_req + req) > 0;
}

constexpr int32_t prefill_q_len(const PrefillRequests& reqs, int req) {
  return is_computed(reqs, req) ? group_q_len(reqs, reqs.first_req + req) : 0;
}

constexpr int32_t prefill_kv_len(const PrefillRequests& reqs, int req) {
  return is_computed(reqs, req) ? reqs.seq_lens[reqs.first_req + req] : 1;
}

// A request's first query token, relative to the part's first token. Requests beyond the part begin
// at the end of its last request.
constexpr int32_t prefill_token(const PrefillRequests& reqs, int req) {
  return reqs.query_start[reqs.first_req + std::min(req, reqs.num_reqs)] -
         reqs.query_start[reqs.first_req];
}

// A request's first position in the scratch memory. Requests beyond the part begin at the end of
// its last request. The host groups requests by upper bounds of their lengths, so the positions
// computed from the true lengths also fit into the scratch memory.
constexpr int32_t scratch_start(const PrefillRequests& reqs, int req) {
  int64_t start = 0;
  for (int i = 0; i < reqs.first_req + std::min(req, reqs.num_reqs); ++i) {
    start += gathered_tokens(group_q_len(reqs, i), reqs.seq_lens[i], kPrefillTile);
  }
  return static_cast<int32_t>(start);
}

// Device arrays of a call for prompts. num_reqs is the plan's number of requests, which may exceed
// the part's.
struct PrefillInputs {
  int32_t* q_lens = nullptr;         // [num_reqs]
  int32_t* kv_lens = nullptr;        // [num_reqs]
  int32_t* q_offsets = nullptr;      // [num_reqs + 1], in elements
  int32_t* kv_offsets = nullptr;     // [num_reqs + 1], in elements of the scratch
  int32_t* scratch_start = nullptr;  // [requests of the part], in positions
};

// Computes the inputs of a call for num_reqs requests from the requests of the part. row_size and
// kv_row_size: elements of a token's queries and of its keys.
void derive_prefill_inputs(const PrefillRequests& reqs, const PrefillInputs& inputs, int num_reqs,
                           int row_size, int kv_row_size, CudaStream& stream);

}  // namespace quire::cuda::cudnn

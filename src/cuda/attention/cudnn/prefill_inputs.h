// The inputs of cuDNN's attention for prompts beside queries, keys and values. padding.cu derives
// them on the device, element by element with these functions, which a test calls on the host.
//
// cuDNN reads keys and values in tiles of up to 256 tokens: those of a tile that lie behind a
// request's end are multiplied by a probability of 0, which makes the result NaN if they are NaN.
// They are in the unused slots of the last page, and in pages that the block table names behind it.
// Therefore the unused slots are zeroed before each call, and cuDNN gets a copy of the block table
// that repeats the last page.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quire::cuda::cudnn {

// Consecutive requests of a batch: pointers to the first one's elements.
struct PrefillRequests {
  const int32_t* query_start = nullptr;  // [num_reqs + 1]
  const int32_t* seq_lens = nullptr;     // [num_reqs]
  const int32_t* block_table = nullptr;  // [num_reqs, max_pages]
  int64_t max_pages = 0;
  int num_reqs = 0;
  int page_size = 0;
};

// Before version 9.25 cuDNN's result for a request without keys is NaN. Therefore requests of
// length 0, and those after the last, have no query tokens and one key, in page 0.
constexpr bool is_computed(const PrefillRequests& reqs, int req) {
  return req < reqs.num_reqs && reqs.seq_lens[req] > 0;
}

constexpr int32_t prefill_q_len(const PrefillRequests& reqs, int req) {
  return is_computed(reqs, req) ? reqs.query_start[req + 1] - reqs.query_start[req] : 0;
}

constexpr int32_t prefill_kv_len(const PrefillRequests& reqs, int req) {
  return is_computed(reqs, req) ? reqs.seq_lens[req] : 1;
}

// The offset of the request's first query in elements, from the first request's; row_size: elements
// of one token. Requests after the last begin where the last one ends.
constexpr int32_t prefill_offset(const PrefillRequests& reqs, int req, int row_size) {
  return (reqs.query_start[std::min(req, reqs.num_reqs)] - reqs.query_start[0]) * row_size;
}

constexpr int32_t prefill_page(const PrefillRequests& reqs, int req, int64_t page) {
  if (!is_computed(reqs, req)) return 0;
  const int64_t last = (reqs.seq_lens[req] - 1) / reqs.page_size;
  return reqs.block_table[req * reqs.max_pages + std::min(page, last)];
}

// The slots of a request's last page that hold no token: [first_slot, page_size). No other request
// uses them, because only full pages are shared; a later step writes them before it reads them.
struct UnusedSlots {
  int64_t page = 0;  // index into the request's row of the block table
  int first_slot = 0;
};

constexpr UnusedSlots unused_slots(int seq_len, int page_size) {
  const int last = seq_len - 1;
  return {last / page_size, last % page_size + 1};
}

}  // namespace quire::cuda::cudnn

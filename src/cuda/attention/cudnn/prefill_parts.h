// Splits a batch's prompts into calls of cuDNN, because each of its plans is built for one size.
// Host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quire::cuda::cudnn {

// The largest part of a batch that one SdpaPlan serves. A smaller part is padded with requests
// that have no query tokens; thread blocks for missing tokens exit at once.
struct PrefillSize {
  int num_reqs = 0;
  int q_len = 0;  // of the longest request

  friend bool operator==(const PrefillSize&, const PrefillSize&) = default;
};

// The sizes for which plans are built at start. They serve every batch within the limits, and there
// are at most 8 of them.
std::vector<PrefillSize> prefill_sizes(int max_num_reqs, int max_num_tokens);

// Consecutive requests that one call computes.
struct PrefillPart {
  int first_req = 0;
  int num_reqs = 0;
  size_t size_idx = 0;  // of the plan that serves them

  friend bool operator==(const PrefillPart&, const PrefillPart&) = default;
};

// Splits batches into parts such that the total cost of launches and idle thread blocks is
// smallest.
class PrefillCutter {
 public:
  PrefillCutter(int max_num_reqs, int max_num_tokens);

  std::span<const PrefillSize> sizes() const { return sizes_; }
  // query_start: [num_reqs + 1]. The result is valid until the next call.
  std::span<const PrefillPart> cut(std::span<const int32_t> query_start);

 private:
  // The cheapest way to compute a request and all requests after it.
  struct Tail {
    int64_t cost = 0;
    PrefillPart first;
  };

  void find_tail(std::span<const int32_t> query_start, size_t req);

  const std::vector<PrefillSize> sizes_;
  std::vector<Tail> tails_;      // [num_reqs + 1]
  std::vector<int> short_reqs_;  // per size: how many requests, from the current one on, fit
  std::vector<PrefillPart> parts_;
};

}  // namespace quire::cuda::cudnn

#include "cuda/attention/cudnn/prefill_parts.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "base/check.h"
#include "base/numbers.h"

namespace quire::cuda::cudnn {
namespace {

constexpr int kShort = 256;
constexpr int kMedium = 1024;
constexpr int kTileTokens = 128;  // query tokens per thread block
// A launch costs as much as this many query tokens of padding: each is estimated to take about 10
// us on an H200 with 32 heads.
constexpr int64_t kLaunchTokens = 8192;

}  // namespace

// cuDNN uses different kernels for up to 128 query tokens, so the shortest size exceeds that.
std::vector<PrefillSize> prefill_sizes(int max_num_reqs, int max_num_tokens) {
  std::vector<PrefillSize> sizes;
  const auto add = [&](int q_len, std::initializer_list<int> counts) {
    int smaller = 0;
    for (const int num_reqs : counts) {
      if (smaller < max_num_reqs) sizes.push_back({num_reqs, q_len});
      smaller = num_reqs;
    }
  };
  add(kShort, {4, 16, 64});
  if (max_num_tokens > kShort) add(kMedium, {1, 4, 16});
  if (max_num_tokens > kMedium) add(round_up(max_num_tokens, kTileTokens), {1, 4});
  return sizes;
}

PrefillCutter::PrefillCutter(int max_num_reqs, int max_num_tokens)
    : sizes_(prefill_sizes(max_num_reqs, max_num_tokens)),
      tails_(static_cast<size_t>(max_num_reqs) + 1),
      short_reqs_(sizes_.size()) {
  parts_.reserve(static_cast<size_t>(max_num_reqs));
}

std::span<const PrefillPart> PrefillCutter::cut(std::span<const int32_t> query_start) {
  const size_t num_reqs = query_start.size() - 1;
  QUIRE_CHECK(num_reqs < tails_.size(), "[cudnn] a batch has more prompts than planned");
  tails_[num_reqs] = {};
  std::ranges::fill(short_reqs_, 0);
  for (size_t req = num_reqs; req-- > 0;) find_tail(query_start, req);
  parts_.clear();
  for (size_t req = 0; req < num_reqs; req += static_cast<size_t>(parts_.back().num_reqs)) {
    parts_.push_back(tails_[req].first);
  }
  return parts_;
}

// For each size, the longest possible part is best, because fewer remaining requests never cost
// more.
void PrefillCutter::find_tail(std::span<const int32_t> query_start, size_t req) {
  const int32_t q_len = query_start[req + 1] - query_start[req];
  Tail best{.cost = std::numeric_limits<int64_t>::max(), .first = {}};
  for (size_t i = 0; i < sizes_.size(); ++i) {
    short_reqs_[i] = q_len <= sizes_[i].q_len ? short_reqs_[i] + 1 : 0;
    if (short_reqs_[i] == 0) continue;
    const int num_reqs = std::min(sizes_[i].num_reqs, short_reqs_[i]);
    const int64_t cost = kLaunchTokens + int64_t{sizes_[i].num_reqs} * sizes_[i].q_len +
                         tails_[req + static_cast<size_t>(num_reqs)].cost;
    if (cost < best.cost) best = {cost, {static_cast<int>(req), num_reqs, i}};
  }
  QUIRE_CHECK(best.first.num_reqs > 0, "[cudnn] a prompt has more query tokens than planned");
  tails_[req] = best;
}

}  // namespace quire::cuda::cudnn

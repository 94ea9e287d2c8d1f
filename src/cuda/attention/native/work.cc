#include "cuda/attention/native/work.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/check.h"
#include "base/numbers.h"

namespace quire::cuda::native {
namespace {

// A plan is kept while each length differs from the planned length by at most kKeptTokens tokens,
// or 1 / kKeptFraction of the planned length if that is more.
constexpr int32_t kKeptTokens = 64;
constexpr int32_t kKeptFraction = 16;
// An even batch needs neither merges nor second starts. It is kept while its slowest thread block
// has at most kEvenEnough times the mean work, or no plan takes at most kMinGain of its time.
constexpr double kEvenEnough = 1.25;
constexpr double kMinGain = 0.9;
constexpr int kSearchSteps = 10;

// Returns about the smallest value in (low, high] that fits, by at most kSearchSteps bisections.
// `high` must fit, and so must all values above one that fits.
template <class Fits>
int64_t smallest_fitting(int64_t low, int64_t high, Fits fits) {
  for (int step = 0; step < kSearchSteps && high - low > 1; ++step) {
    const int64_t middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

void WorkPlanner::reserve(int num_reqs, int num_clusters) {
  lens_.reserve(static_cast<size_t>(num_reqs));
  longest_first_.reserve(static_cast<size_t>(num_reqs));
  more_reqs_.reserve(static_cast<size_t>(num_reqs));
  clusters_.reserve(static_cast<size_t>(num_clusters));
}

bool WorkPlanner::plan(std::span<const int32_t> lens, const WorkLimits& limits) {
  if (is_like_last(lens, limits)) return false;
  const bool was_even = is_even_ && lens.size() == lens_.size() && limits == limits_;
  limits_ = limits;
  lens_.assign(lens.begin(), lens.end());
  const int64_t most_tokens = find_most_tokens();
  is_even_ = most_tokens == 0;
  if (is_even_ && was_even) return false;
  is_even_ ? make_even() : share(most_tokens);
  return true;
}

void WorkPlanner::forget() {
  lens_.clear();
  limits_ = {.num_parts = 0};
}

bool WorkPlanner::is_like_last(std::span<const int32_t> lens, const WorkLimits& limits) const {
  return limits == limits_ && std::equal(lens.begin(), lens.end(), lens_.begin(), lens_.end(),
                                         [](int32_t len, int32_t planned) {
                                           return std::abs(len - planned) <=
                                                  std::max(kKeptTokens, planned / kKeptFraction);
                                         });
}

// Returns the positions of the slowest cluster of the best plan, or 0 if the batch is even enough.
int64_t WorkPlanner::find_most_tokens() {
  const int64_t total = std::accumulate(lens_.begin(), lens_.end(), int64_t{0});
  const int64_t longest = lens_.empty() ? 0 : *std::ranges::max_element(lens_);
  const auto num_clusters = static_cast<int64_t>(lens_.size()) * limits_.num_parts;
  // Clusters beyond those that run at once start when others end, so their work need not be equal.
  const int64_t num_shares = std::min<int64_t>(num_clusters, limits_.clusters_at_once);
  const int64_t extra = limits_.extra_tokens;
  const int64_t least = std::max(num_shares == 0 ? 0 : ceil_div(total, num_shares), 4 * extra);
  const int64_t of_even =
      ceil_div(longest, int64_t{limits_.num_parts}) + (limits_.num_parts > 1 ? extra : 0);
  if (static_cast<double>(of_even) <= kEvenEnough * static_cast<double>(least)) return 0;
  longest_first_.resize(lens_.size());
  std::iota(longest_first_.begin(), longest_first_.end(), 0);
  std::ranges::sort(longest_first_, [&](int32_t a, int32_t b) {
    const int32_t len_a = lens_[static_cast<size_t>(a)];
    const int32_t len_b = lens_[static_cast<size_t>(b)];
    return len_a != len_b ? len_a > len_b : a < b;
  });
  const int64_t most =
      smallest_fitting(least - 1, of_even, [&](int64_t tokens) { return fits(tokens); });
  return static_cast<double>(most) > kMinGain * static_cast<double>(of_even) ? 0 : most;
}

// The number of clusters among which a request of this length is split; 1 if it need not be.
int WorkPlanner::split_count(int32_t len, int64_t most_tokens) const {
  if (len <= most_tokens) return 1;
  return static_cast<int>(ceil_div(int64_t{len}, most_tokens - limits_.extra_tokens));
}

// Packs the whole requests longest_first_[first] and later into clusters: each takes the longest
// request left, and the shortest ones that fit beside it. Calls visit(request, whether it is its
// cluster's first). Returns the number of clusters.
template <class Visit>
int WorkPlanner::pack_short(size_t first, int64_t most_tokens, const Visit& visit) const {
  const auto len_of = [&](size_t i) {
    return int64_t{lens_[static_cast<size_t>(longest_first_[i])]};
  };
  int count = 0;
  for (size_t end = longest_first_.size(); first < end; ++count) {
    int64_t tokens = len_of(first);
    visit(longest_first_[first++], true);
    while (first < end && tokens + len_of(end - 1) + limits_.extra_tokens <= most_tokens) {
      tokens += len_of(--end) + limits_.extra_tokens;
      visit(longest_first_[end], false);
    }
  }
  return count;
}

int WorkPlanner::num_short_clusters(size_t first, int64_t most_tokens) const {
  return pack_short(first, most_tokens, [](int32_t /*req*/, bool /*is_first*/) {});
}

bool WorkPlanner::fits(int64_t most_tokens) const {
  size_t num_split = 0;
  int64_t num_parts = 0;
  for (; num_split < longest_first_.size(); ++num_split) {
    const int count =
        split_count(lens_[static_cast<size_t>(longest_first_[num_split])], most_tokens);
    if (count == 1) break;
    num_parts += count;
  }
  const auto num_clusters = static_cast<int64_t>(lens_.size()) * limits_.num_parts;
  return num_parts <= limits_.max_split &&
         num_parts + num_short_clusters(num_split, most_tokens) <= num_clusters;
}

void WorkPlanner::make_even() {
  more_reqs_.clear();
  clusters_.clear();
  for (size_t req = 0; req < lens_.size(); ++req) {
    for (int part = 0; part < limits_.num_parts; ++part) {
      clusters_.push_back({.req = static_cast<int32_t>(req),
                           .part = static_cast<uint16_t>(part),
                           .num_parts = static_cast<uint16_t>(limits_.num_parts)});
    }
  }
}

// The longest requests come first, because thread blocks start in this order.
void WorkPlanner::share(int64_t most_tokens) {
  more_reqs_.clear();
  clusters_.clear();
  size_t first = 0;
  for (; first < longest_first_.size(); ++first) {
    const int32_t req = longest_first_[first];
    const int count = split_count(lens_[static_cast<size_t>(req)], most_tokens);
    if (count == 1) break;
    for (int part = 0; part < count; ++part) {
      clusters_.push_back({.req = req,
                           .part = static_cast<uint16_t>(part),
                           .num_parts = static_cast<uint16_t>(count)});
    }
  }
  // Whole requests share clusters only as much as the number of clusters left requires.
  const size_t num_clusters = lens_.size() * static_cast<size_t>(limits_.num_parts);
  const auto num_left = static_cast<int>(num_clusters - clusters_.size());
  const int64_t most_shared = smallest_fitting(-1, most_tokens, [&](int64_t tokens) {
    return num_short_clusters(first, tokens) <= num_left;
  });
  pack_short(first, most_shared, [&](int32_t req, bool is_first) {
    if (is_first) {
      clusters_.push_back(
          {.req = req, .num_parts = 1, .first_more = static_cast<int32_t>(more_reqs_.size())});
    } else {
      more_reqs_.push_back(req);
      ++clusters_.back().num_more;
    }
  });
  QUIRE_CHECK(clusters_.size() <= num_clusters, "[native] a plan has too many clusters");
  clusters_.resize(num_clusters);  // the others have no work
}

}  // namespace quire::cuda::native

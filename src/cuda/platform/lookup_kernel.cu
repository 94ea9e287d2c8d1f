// Grid: one thread block per span. Each warp searches one part of the sequence for the longest
// matches, the newest first, without waiting for the other warps. Then one warp takes the newest of
// all longest matches and lets them vote. A search reads each token of the sequence once, plus the
// tokens of matches.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/platform/lookup_kernel.h"

namespace quire::cuda {
namespace {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFU;
// One lane per warp reads the warp's list in merge_matches().
constexpr int kWarps = kWarpSize;
constexpr int kThreads = kWarps * kWarpSize;
// Tokens that a lane loads before it uses the first one, so that the loads overlap.
constexpr int kLoads = 8;
constexpr int kVotesPerLane = kMaxLookupVotes / kWarpSize;
constexpr int32_t kNoToken = -1;

// A slot's tokens. There is at least one, because a step appends to an empty slot.
struct Sequence {
  const int32_t* tokens;
  int length;

  __device__ int32_t newest() const { return tokens[length - 1]; }
};

// The longest matches in one part of a sequence.
struct Matches {
  int match_length;
  int count;
  int32_t ends[kMaxLookupVotes];  // the token after each match, the newest first
};

__device__ int lane_idx() {
  return static_cast<int>(threadIdx.x) % kWarpSize;
}

// Does the same as SlotTokens::append_sampled (cpu/platform/slot_tokens.h). A sequence that has
// ended may still sample in the steps in flight: tokens beyond its row are dropped. Returns the new
// length.
__device__ int append_sampled(const LookupSlots& slots, int slot, const LookupCall& call,
                              const int32_t* next_tokens, int num_drafts) {
  int32_t* tokens = slots.tokens + static_cast<int64_t>(slot) * slots.max_tokens;
  int length = slots.lengths[slot];
  const int num_computed = call.num_computed[slot];
  if (num_computed < length) return length;
  const int num_accepted = min(num_computed - length, num_drafts);
  for (int i = 1; i <= num_accepted && length < slots.max_tokens; ++i) {
    tokens[length++] = next_tokens[i];
  }
  if (length < slots.max_tokens) tokens[length++] = next_tokens[0];
  slots.lengths[slot] = length;
  return length;
}

// The number of tokens before `end` that equal the last tokens of the sequence, at most `most`.
// Token end - 1 is known to be equal.
__device__ int match_length(const Sequence& sequence, int end, int most) {
  const int limit = min(end, most);
  int length = 1;
  while (length < limit &&
         sequence.tokens[end - 1 - length] == sequence.tokens[sequence.length - 1 - length]) {
    ++length;
  }
  return length;
}

// A warp's list while it searches. All lanes have the same values.
struct Search {
  Matches* found;
  int match_length;
  int count;

  // Adds each lane's match that ends at `end`, of the given length; 0: none. A lower lane's match
  // is newer. Returns whether the list is complete.
  __device__ bool add(const LookupRules& rules, int length, int end) {
    const int longest = __reduce_max_sync(kAllLanes, length);
    if (longest < match_length) return false;
    if (longest > match_length) {
      match_length = longest;
      count = 0;
      __syncwarp();  // other lanes wrote the places that are written again
    }
    const unsigned longest_lanes = __ballot_sync(kAllLanes, length == longest);
    const unsigned lower_lanes = (1U << lane_idx()) - 1;
    const int place = count + __popc(longest_lanes & lower_lanes);
    if (length == longest && place < rules.num_votes) found->ends[place] = end;
    count = min(count + __popc(longest_lanes), rules.num_votes);
    return match_length == rules.max_match && count == rules.num_votes;
  }
};

// Finds the matches with ends in (first, last].
__device__ void find_matches(const Sequence& sequence, const LookupRules& rules, int first,
                             int last, Matches& found) {
  Search search = {.found = &found, .match_length = rules.min_match, .count = 0};
  const int32_t newest = sequence.newest();
  bool is_complete = false;
  for (int tile = last; tile > first && !is_complete; tile -= kLoads * kWarpSize) {
    bool matches[kLoads];
    bool has_match = false;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int end = tile - i * kWarpSize - lane_idx();
      matches[i] = end > first && sequence.tokens[end - 1] == newest;
      has_match |= matches[i];
    }
    if (!__any_sync(kAllLanes, has_match)) continue;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (is_complete || !__any_sync(kAllLanes, matches[i])) continue;
      const int end = tile - i * kWarpSize - lane_idx();
      const int length = matches[i] ? match_length(sequence, end, rules.max_match) : 0;
      is_complete = search.add(rules, length, end);
    }
  }
  if (lane_idx() == 0) {
    found.match_length = search.match_length;
    found.count = search.count;
  }
}

// Writes the ends of the newest of all longest matches, which one warp collects from the lists of
// all warps. The first warp's list is the newest. Returns the number of matches.
__device__ int merge_matches(const Matches* found, const LookupRules& rules, int32_t* ends) {
  const Matches& mine = found[lane_idx()];
  const int length = mine.count > 0 ? mine.match_length : 0;
  const int longest = __reduce_max_sync(kAllLanes, length);
  if (longest == 0) return 0;
  int count = 0;
  for (unsigned warps = __ballot_sync(kAllLanes, length == longest);
       warps != 0 && count < rules.num_votes; warps &= warps - 1) {
    const Matches& list = found[__ffs(static_cast<int>(warps)) - 1];
    const int num_taken = min(list.count, rules.num_votes - count);
    for (int i = lane_idx(); i < num_taken; i += kWarpSize) ends[count + i] = list.ends[i];
    count += num_taken;
  }
  __syncwarp();
  return count;
}

// The most frequent of `count` tokens; the earliest one if several are. kNoToken does not vote; at
// least one token is not kNoToken.
__device__ int32_t most_frequent(const int32_t* tokens, int count) {
  int best = 0;
  for (int i = lane_idx(); i < count; i += kWarpSize) {
    if (tokens[i] == kNoToken) continue;
    int num_votes = 0;
    for (int k = 0; k < count; ++k) num_votes += tokens[k] == tokens[i] ? 1 : 0;
    best = max(best, num_votes * kMaxLookupVotes + kMaxLookupVotes - 1 - i);
  }
  best = __reduce_max_sync(kAllLanes, best);
  return tokens[kMaxLookupVotes - 1 - best % kMaxLookupVotes];
}

// Writes the drafts on which the matches vote. `next` has room for one token per match.
__device__ void vote(const Sequence& sequence, const int32_t* ends, int count, int num_drafts,
                     int32_t* next, int32_t* drafts) {
  bool votes[kVotesPerLane];
#pragma unroll
  for (int j = 0; j < kVotesPerLane; ++j) votes[j] = lane_idx() + j * kWarpSize < count;
  for (int i = 0; i < num_drafts; ++i) {
#pragma unroll
    for (int j = 0; j < kVotesPerLane; ++j) {
      const int match = lane_idx() + j * kWarpSize;
      if (match >= count) continue;
      const int at = ends[match] + i;
      // A match that reaches the sequence's end continues with the drafts.
      const int32_t token =
          at < sequence.length ? sequence.tokens[at] : drafts[at - sequence.length];
      next[match] = votes[j] ? token : kNoToken;
    }
    __syncwarp();
    const int32_t draft = most_frequent(next, count);
#pragma unroll
    for (int j = 0; j < kVotesPerLane; ++j) {
      const int match = lane_idx() + j * kWarpSize;
      votes[j] = votes[j] && next[match] == draft;
    }
    if (lane_idx() == 0) drafts[i] = draft;
    __syncwarp();
  }
}

__global__ void __launch_bounds__(kThreads)
    lookup_kernel(LookupSlots slots, LookupRules rules, LookupCall call) {
  __shared__ int length;
  __shared__ Matches found[kWarps];
  __shared__ int32_t ends[kMaxLookupVotes];
  __shared__ int32_t next[kMaxLookupVotes];
  __shared__ int32_t drafts[kMaxLookupDrafts];
  const int slot = call.slots[blockIdx.x];
  if (slot < 0) return;
  int32_t* next_tokens = call.next_tokens + static_cast<int64_t>(slot) * (1 + rules.max_drafts);
  if (threadIdx.x == 0) {
    length = append_sampled(slots, slot, call, next_tokens, rules.max_drafts);
  }
  if (call.num_drafts == 0) return;
  __syncthreads();
  const Sequence sequence = {slots.tokens + static_cast<int64_t>(slot) * slots.max_tokens, length};
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int num_ends = sequence.length - 1;
  const int per_warp = round_up(ceil_div(num_ends, kWarps), kWarpSize);
  const int last = num_ends - warp * per_warp;
  find_matches(sequence, rules, max(last - per_warp, 0), last, found[warp]);
  __syncthreads();
  if (warp != 0) return;
  const int count = merge_matches(found, rules, ends);
  if (count > 0) vote(sequence, ends, count, call.num_drafts, next, drafts);
  for (int i = lane_idx(); i < call.num_drafts; i += kWarpSize) {
    next_tokens[1 + i] = count > 0 ? drafts[i] : sequence.newest();
  }
}

}  // namespace

void launch_lookup(const LookupSlots& slots, const LookupRules& rules, const LookupCall& call,
                   CudaStream& stream) {
  QUIRE_LAUNCH(stream, lookup_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(call.num_spans), .block = kThreads}),
               slots, rules, call);
}

}  // namespace quire::cuda

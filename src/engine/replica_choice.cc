#include "engine/replica_choice.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/numbers.h"

namespace quire {

size_t choose_replica(std::span<const ReplicaCandidate> replicas) {
  QUIRE_CHECK(!replicas.empty(), "[engine] there is no replica to choose");
  const auto least =
      std::ranges::min_element(replicas, {}, &ReplicaCandidate::num_outstanding_tokens);
  const auto longest =
      std::ranges::min_element(replicas, [](const ReplicaCandidate& a, const ReplicaCandidate& b) {
        if (a.num_known_tokens != b.num_known_tokens)
          return a.num_known_tokens > b.num_known_tokens;
        return a.num_outstanding_tokens < b.num_outstanding_tokens;
      });
  const int64_t smallest = least->num_outstanding_tokens;
  const int64_t num_saved = longest->num_known_tokens - least->num_known_tokens;
  const int64_t max_load = smallest + smallest / 8 + num_saved;
  const bool is_worth_it = num_saved > 0 && longest->num_outstanding_tokens <= max_load;
  return static_cast<size_t>((is_worth_it ? longest : least) - replicas.begin());
}

std::vector<uint64_t> PrefixIndex::hash_blocks(std::span<const int32_t> prompt,
                                               std::string_view salt) {
  std::vector<uint64_t> hashes;
  hashes.reserve(prompt.size() / kBlockSize);
  uint64_t hash = mix(std::hash<std::string_view>()(salt));
  for (; prompt.size() >= kBlockSize; prompt = prompt.subspan(kBlockSize)) {
    for (const int32_t id : prompt.first(kBlockSize)) hash = mix(hash ^ static_cast<uint32_t>(id));
    hashes.push_back(hash);
  }
  return hashes;
}

void PrefixIndex::look_up(std::span<const uint64_t> hashes,
                          std::span<ReplicaCandidate> candidates) {
  for (ReplicaCandidate& candidate : candidates) candidate.num_known_tokens = 0;
  uint64_t holders = ~uint64_t{0};  // the replicas that have all blocks so far
  for (const uint64_t hash : hashes) {
    const uint64_t* found = replicas_.find(hash);
    holders &= found == nullptr ? 0 : *found;
    if (holders == 0) return;
    for (size_t r = 0; r < candidates.size(); ++r) {
      if ((holders >> r & 1) != 0) candidates[r].num_known_tokens += kBlockSize;
    }
  }
}

void PrefixIndex::add(std::span<const uint64_t> hashes, size_t replica) {
  for (const uint64_t hash : hashes) replicas_[hash] |= uint64_t{1} << replica;
}

}  // namespace quire

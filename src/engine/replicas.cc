#include "engine/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/numbers.h"

namespace quire {
namespace {

// An AgingMap holds up to twice these numbers of keys.
constexpr size_t kMaxSessions = 100'000;
constexpr int64_t kMaxIndexBlocks = 1 << 20;

// 0: the submission belongs to no session.
uint64_t session_key(const Submission& submission) {
  if (submission.session_id.empty()) return 0;
  const std::hash<std::string_view> hash;
  return mix(hash(submission.session_id) ^ mix(hash(submission.seqs.front()->cache_salt))) | 1;
}

void add(const EngineStats& one, EngineStats& total) {
  total.num_running += one.num_running;
  total.num_waiting += one.num_waiting;
  total.num_free_blocks += one.num_free_blocks;
  total.num_total_blocks += one.num_total_blocks;
  total.kv_cache_usage += one.kv_cache_usage;
  total.num_steps += one.num_steps;
  total.num_device_to_host_copies += one.num_device_to_host_copies;
  total.num_device_waits += one.num_device_waits;
  total.num_prompt_tokens += one.num_prompt_tokens;
  total.num_generated_tokens += one.num_generated_tokens;
  total.num_outstanding_tokens += one.num_outstanding_tokens;
  total.num_preemptions += one.num_preemptions;
  total.prefix_cache_queries += one.prefix_cache_queries;
  total.prefix_cache_hits += one.prefix_cache_hits;
  std::ranges::transform(total.cache_misses, one.cache_misses, total.cache_misses.begin(),
                         std::plus());
  total.num_kv_batches_dropped += one.num_kv_batches_dropped;
  const SpeculationStats& drafts = one.speculation;
  total.speculation.num_spans += drafts.num_spans;
  total.speculation.num_drafts += drafts.num_drafts;
  total.speculation.num_accepted += drafts.num_accepted;
  std::ranges::transform(total.speculation.accepted_by_position, drafts.accepted_by_position,
                         total.speculation.accepted_by_position.begin(), std::plus());
  total.speculation.verify_seconds += drafts.verify_seconds;
  total.speculation.draft_seconds += drafts.draft_seconds;
}

}  // namespace

Replicas::Replicas(std::vector<std::unique_ptr<EngineCore>> cores, int64_t num_prefix_tokens)
    : cores_(std::move(cores)),
      keeps_prefixes_(num_prefix_tokens > 0),
      prefixes_(static_cast<size_t>(
          std::clamp<int64_t>(num_prefix_tokens / PrefixIndex::kBlockSize, 1, kMaxIndexBlocks))),
      sessions_(kMaxSessions) {}

Status Replicas::submit(Submission submission) {
  if (cores_.size() == 1) return cores_.front()->submit(std::move(submission));
  const Sequence& seq = *submission.seqs.front();
  const std::vector<uint64_t> hashes = keeps_prefixes_
                                           ? PrefixIndex::hash_blocks(seq.token_ids, seq.cache_salt)
                                           : std::vector<uint64_t>();
  std::vector<ReplicaCandidate> candidates(cores_.size());
  const std::lock_guard lock(mutex_);
  const size_t chosen = choose(submission, hashes, candidates);
  submission.num_known_tokens = candidates[chosen].num_known_tokens;
  prefixes_.add(hashes, chosen);  // may throw, so it precedes the submission
  return cores_[chosen]->submit(std::move(submission));
}

size_t Replicas::choose(const Submission& submission, std::span<const uint64_t> hashes,
                        std::span<ReplicaCandidate> candidates) {
  prefixes_.look_up(hashes, candidates);
  const uint64_t session = session_key(submission);
  size_t chosen = 0;
  if (submission.replica) {
    chosen = static_cast<size_t>(*submission.replica);
  } else {
    std::vector<ReplicaCandidate> preferred(candidates.begin(), candidates.end());
    for (size_t r = 0; r < cores_.size(); ++r) {
      preferred[r].num_outstanding_tokens = cores_[r]->num_outstanding_tokens();
    }
    // A session's prompt counts as known to the replica of its last request.
    if (const size_t* last = session == 0 ? nullptr : sessions_.find(session)) {
      preferred[*last].num_known_tokens = submission.seqs.front()->num_prompt_tokens;
    }
    chosen = choose_replica(preferred);
  }
  if (session != 0) sessions_[session] = chosen;
  return chosen;
}

// The replicas without the request ignore its id.
void Replicas::cancel(RequestId id) {
  for (const auto& core : cores_) core->cancel(id);
}

void Replicas::stop() {
  for (const auto& core : cores_) core->stop();
}

std::vector<ReplicaState> Replicas::states() const {
  std::vector<ReplicaState> states;
  for (const auto& core : cores_) states.push_back({core->stats(), core->health()});
  return states;
}

EngineStats Replicas::stats() const {
  EngineStats total;
  for (const auto& core : cores_) add(core->stats(), total);
  total.kv_cache_usage /= static_cast<double>(cores_.size());
  return total;
}

Status Replicas::health() const {
  if (cores_.size() == 1) return cores_.front()->health();
  for (size_t r = 0; r < cores_.size(); ++r) {
    const Status health = cores_[r]->health();
    if (health.ok()) continue;
    return Status(health.code(),
                  fmt::format("[engine] replica {} has failed: {}", r, health.message()));
  }
  return {};
}

}  // namespace quire

// The replicas of an engine: each request runs on one of them, until its end.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/engine_core.h"
#include "engine/replica_choice.h"

namespace quire {

// The cores do not depend on each other: if one fails, the others complete their requests.
class Replicas {
 public:
  // `num_prefix_tokens`: the tokens of prefixes that the caches of all replicas can hold together;
  // 0: they keep no prefixes.
  Replicas(std::vector<std::unique_ptr<EngineCore>> cores, int64_t num_prefix_tokens);

  // Chooses a replica, unless the submission names one, and submits to it.
  Status submit(Submission submission);
  void cancel(RequestId id);
  // Cancels all requests and releases the runners. Later calls have no effect.
  void stop();

  std::vector<ReplicaState> states() const;
  EngineStats stats() const;
  Status health() const;

 private:
  // Sets the known tokens of all candidates, one per replica.
  size_t choose(const Submission& submission, std::span<const uint64_t> hashes,
                std::span<ReplicaCandidate> candidates);

  const std::vector<std::unique_ptr<EngineCore>> cores_;
  const bool keeps_prefixes_;

  std::mutex mutex_;  // makes each choice include the load of the choices before it
  PrefixIndex prefixes_;
  AgingMap<size_t> sessions_;  // the replica of a session, by its hash
};

}  // namespace quire

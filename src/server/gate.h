// Admission control. Bounds the sequences that run or wait, the prompt tokens that wait, and the
// sequences per API key. A request beyond a bound is refused at once, so that queues stay short.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "quire/status.h"

namespace quire::server {

struct GateConfig {
  int max_num_seqs = 64;                    // of the engine: sequences that run at once
  int max_num_queued_reqs = 512;            // sequences that may wait in addition
  int64_t max_num_queued_tokens = 1 << 22;  // prompt tokens of waiting requests; 0: no bound
  int max_concurrency_per_key = 0;          // sequences; 0: no bound
};

class Gate;

// The capacity that one admitted call holds. The destructor returns it to the gate.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket();

  // Stops counting `num_tokens` of the call's prompt tokens as waiting, because one of its prompts
  // has started.
  void begun(int64_t num_tokens);

 private:
  friend class Gate;
  Ticket(Gate* gate, int key_idx, int num_answers, int64_t num_tokens)
      : gate_(gate),
        key_idx_(key_idx),
        num_answers_(num_answers),
        num_waiting_tokens_(num_tokens) {}

  Gate* gate_ = nullptr;  // outlives its tickets
  int key_idx_ = -1;
  int num_answers_ = 0;
  int64_t num_waiting_tokens_ = 0;
};

class Gate {
 public:
  Gate(const GateConfig& config, int num_keys);

  // Admits `num_answers` sequences for prompts of `num_tokens` tokens in all. `key_idx` is -1 if
  // the server has no keys. Errors: resource_exhausted (try again later), unavailable (draining),
  // invalid_argument (never fits).
  Result<Ticket> enter(int key_idx, int num_answers, int64_t num_tokens);

  // Returns the error that enter() would return now for `num_answers` sequences, without a check of
  // prompt tokens.
  Status check_room(int key_idx, int num_answers = 1) const;

  // Refuses all later calls.
  void close();
  bool is_closed() const;
  int num_inside() const;  // sequences

 private:
  friend class Ticket;
  Status check(int key_idx, int num_answers, int64_t num_tokens) const;
  void leave(const Ticket& ticket);
  void begin(int64_t num_tokens);

  const GateConfig config_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  int num_inside_ = 0;
  int64_t num_waiting_tokens_ = 0;
  std::vector<int> num_inside_by_key_;
};

}  // namespace quire::server

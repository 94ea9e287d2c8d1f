// Who is let in: a bounded number of answers in work or in the queue, a bound on the prompts that
// wait, a bound for each key. What does not fit is refused at once, so that nothing piles up.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "quire/status.h"

namespace quire::server {

struct GateConfig {
  int max_num_seqs = 64;                    // of the engine: so many run at once
  int max_num_queued_reqs = 512;            // and so many may wait
  int64_t max_num_queued_tokens = 1 << 22;  // of prompts that wait; 0: no bound
  int max_concurrency_per_key = 0;          // answers; 0: no bound
};

class Gate;

// A call's seat. Gives it back when destroyed.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket();

  // So many tokens of the call's prompts wait no more: one of them has begun.
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

  // For num_answers answers to prompts of num_tokens together. key_idx: whose; -1: nobody's.
  // resource_exhausted: try again later; unavailable: draining; invalid_argument: never.
  Result<Ticket> enter(int key_idx, int num_answers, int64_t num_tokens);

  // Whether so many answers would be let in now, whatever their prompts.
  Status check_room(int key_idx, int num_answers = 1) const;

  // From now on nobody is let in.
  void close();
  bool is_closed() const;
  int num_inside() const;  // answers

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

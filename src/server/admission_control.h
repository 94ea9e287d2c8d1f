// Admission control. Bounds the running and queued sequences, the queued prompt tokens, and the
// sequences per API key. A request beyond a bound is refused at once, so that queues stay short.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "quire/status.h"

namespace quire::server {

struct AdmissionConfig {
  int max_num_seqs = 64;                    // sequences that the engine runs at once
  int max_num_queued_reqs = 512;            // sequences that wait in addition to these
  int64_t max_num_queued_tokens = 1 << 22;  // prompt tokens of queued sequences; 0: no bound
  int max_concurrency_per_key = 0;          // sequences; 0: no bound
};

// The error of requests that a shutdown refuses or cancels.
Status shutting_down();

class AdmissionControl;

// The capacity that one admitted request holds. The destructor releases it.
class AdmissionTicket {
 public:
  AdmissionTicket() = default;
  AdmissionTicket(AdmissionTicket&& other) noexcept { swap(other); }
  AdmissionTicket& operator=(AdmissionTicket&& other) noexcept {
    swap(other);
    return *this;
  }
  ~AdmissionTicket();

  // Stops counting `num_tokens` of the request's prompt tokens as queued, because one of its
  // prompts has started.
  void start_prompt(int64_t num_tokens);

 private:
  friend class AdmissionControl;
  void swap(AdmissionTicket& other) noexcept;

  AdmissionControl* admission_ = nullptr;  // outlives its tickets
  int key_idx_ = -1;
  int num_sequences_ = 0;
  int64_t num_queued_tokens_ = 0;
};

class AdmissionControl {
 public:
  AdmissionControl(const AdmissionConfig& config, int num_keys);

  // Admits `num_sequences` sequences for prompts of `num_tokens` tokens in all. `key_idx` is -1 if
  // the server has no keys. Errors: resource_exhausted (try again later), unavailable (draining),
  // invalid_argument (never fits).
  Result<AdmissionTicket> admit(int key_idx, int num_sequences, int64_t num_tokens);

  // Returns the error that admit() would return now for `num_sequences` sequences with empty
  // prompts.
  Status check_capacity(int key_idx, int num_sequences = 1) const;

  // Refuses all later requests.
  void close();
  bool is_closed() const;
  int num_admitted() const;           // sequences
  int64_t num_queued_tokens() const;  // prompt tokens that have not started

 private:
  friend class AdmissionTicket;
  Status check(int key_idx, int num_sequences, int64_t num_tokens) const;
  void release(const AdmissionTicket& ticket);
  void start_prompt(int64_t num_tokens);

  const AdmissionConfig config_;
  mutable std::mutex mutex_;
  bool is_closed_ = false;
  int num_admitted_ = 0;
  int64_t num_queued_tokens_ = 0;
  std::vector<int> num_admitted_by_key_;
};

}  // namespace quire::server

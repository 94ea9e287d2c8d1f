#include "server/admission_control.h"

#include <fmt/format.h>

#include <utility>

namespace quire::server {

Status shutting_down() {
  return unavailable("[server] the server is shutting down");
}

void AdmissionTicket::swap(AdmissionTicket& other) noexcept {
  std::swap(admission_, other.admission_);
  std::swap(key_idx_, other.key_idx_);
  std::swap(num_sequences_, other.num_sequences_);
  std::swap(num_queued_tokens_, other.num_queued_tokens_);
}

AdmissionTicket::~AdmissionTicket() {
  if (admission_ != nullptr) admission_->release(*this);
}

void AdmissionTicket::start_prompt(int64_t num_tokens) {
  if (admission_ == nullptr) return;
  num_queued_tokens_ -= num_tokens;
  admission_->start_prompt(num_tokens);
}

AdmissionControl::AdmissionControl(const AdmissionConfig& config, int num_keys)
    : config_(config), num_admitted_by_key_(static_cast<size_t>(num_keys)) {}

Result<AdmissionTicket> AdmissionControl::admit(int key_idx, int num_sequences,
                                                int64_t num_tokens) {
  const std::lock_guard lock(mutex_);
  QUIRE_RETURN_IF_ERROR(check(key_idx, num_sequences, num_tokens));
  num_admitted_ += num_sequences;
  num_queued_tokens_ += num_tokens;
  if (key_idx >= 0) num_admitted_by_key_[static_cast<size_t>(key_idx)] += num_sequences;
  AdmissionTicket ticket;
  ticket.admission_ = this;
  ticket.key_idx_ = key_idx;
  ticket.num_sequences_ = num_sequences;
  ticket.num_queued_tokens_ = num_tokens;
  return ticket;
}

Status AdmissionControl::check(int key_idx, int num_sequences, int64_t num_tokens) const {
  if (is_closed_) return shutting_down();
  const int max_sequences = config_.max_num_seqs + config_.max_num_queued_reqs;
  if (num_sequences > max_sequences) {
    return invalid_argument(
        fmt::format("[server] too many sequences (prompts x n) in one request; got {}, expected at "
                    "most {}",
                    num_sequences, max_sequences));
  }
  if (num_admitted_ + num_sequences > max_sequences) {
    return resource_exhausted(
        fmt::format("[server] {} of at most {} sequences are running or queued; try again later",
                    num_admitted_, max_sequences));
  }
  // An empty queue admits prompts of any size, so that none is refused forever. Prompts that do not
  // fit the model were refused before.
  const int64_t max_tokens = config_.max_num_queued_tokens;
  if (max_tokens > 0 && num_queued_tokens_ > 0 && num_queued_tokens_ + num_tokens > max_tokens) {
    return resource_exhausted(
        fmt::format("[server] {} of at most {} prompt tokens are queued; try again later",
                    num_queued_tokens_, max_tokens));
  }
  const int max_per_key = config_.max_concurrency_per_key;
  if (max_per_key > 0 && key_idx >= 0) {
    const int num_admitted = num_admitted_by_key_[static_cast<size_t>(key_idx)];
    if (num_sequences > max_per_key) {
      return invalid_argument(
          fmt::format("[server] too many sequences (prompts x n) in one request; got {}, expected "
                      "at most {} per API key",
                      num_sequences, max_per_key));
    }
    if (num_admitted + num_sequences > max_per_key) {
      return resource_exhausted(fmt::format(
          "[server] {} of at most {} sequences of this API key are running or queued; try again "
          "later",
          num_admitted, max_per_key));
    }
  }
  return {};
}

Status AdmissionControl::check_capacity(int key_idx, int num_sequences) const {
  const std::lock_guard lock(mutex_);
  return check(key_idx, num_sequences, 0);
}

void AdmissionControl::release(const AdmissionTicket& ticket) {
  const std::lock_guard lock(mutex_);
  num_admitted_ -= ticket.num_sequences_;
  num_queued_tokens_ -= ticket.num_queued_tokens_;
  if (ticket.key_idx_ >= 0) {
    num_admitted_by_key_[static_cast<size_t>(ticket.key_idx_)] -= ticket.num_sequences_;
  }
}

void AdmissionControl::start_prompt(int64_t num_tokens) {
  const std::lock_guard lock(mutex_);
  num_queued_tokens_ -= num_tokens;
}

void AdmissionControl::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

bool AdmissionControl::is_closed() const {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

int64_t AdmissionControl::num_queued_tokens() const {
  const std::lock_guard lock(mutex_);
  return num_queued_tokens_;
}

int AdmissionControl::num_admitted() const {
  const std::lock_guard lock(mutex_);
  return num_admitted_;
}

}  // namespace quire::server

#include "server/gate.h"

#include <fmt/format.h>

#include <utility>

namespace quire::server {

Ticket::Ticket(Ticket&& other) noexcept
    : gate_(std::exchange(other.gate_, nullptr)),
      key_idx_(other.key_idx_),
      num_answers_(other.num_answers_),
      num_waiting_tokens_(other.num_waiting_tokens_) {}

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  std::swap(gate_, other.gate_);
  std::swap(key_idx_, other.key_idx_);
  std::swap(num_answers_, other.num_answers_);
  std::swap(num_waiting_tokens_, other.num_waiting_tokens_);
  return *this;
}

Ticket::~Ticket() {
  if (gate_ != nullptr) gate_->leave(*this);
}

void Ticket::begun(int64_t num_tokens) {
  if (gate_ == nullptr) return;
  num_waiting_tokens_ -= num_tokens;
  gate_->begin(num_tokens);
}

Gate::Gate(const GateConfig& config, int num_keys)
    : config_(config), num_inside_by_key_(static_cast<size_t>(num_keys)) {}

Result<Ticket> Gate::enter(int key_idx, int num_answers, int64_t num_tokens) {
  const std::lock_guard lock(mutex_);
  QUIRE_RETURN_IF_ERROR(check(key_idx, num_answers, num_tokens));
  num_inside_ += num_answers;
  num_waiting_tokens_ += num_tokens;
  if (key_idx >= 0) num_inside_by_key_[static_cast<size_t>(key_idx)] += num_answers;
  return Ticket(this, key_idx, num_answers, num_tokens);
}

Status Gate::check(int key_idx, int num_answers, int64_t num_tokens) const {
  if (closed_) return unavailable("[server] the server is shutting down");
  const int seats = config_.max_num_seqs + config_.max_num_queued_reqs;
  if (num_answers > seats) {
    return invalid_argument(fmt::format(
        "[server] too many answers in one call; got {}, expected at most {}", num_answers, seats));
  }
  if (num_inside_ + num_answers > seats) {
    return resource_exhausted(
        fmt::format("[server] {} answers are in work or queued of at most {}; try again later",
                    num_inside_, seats));
  }
  // While no prompt tokens wait, a call is admitted whatever the size of its prompts: prompts that
  // do not fit the model were refused before.
  const int64_t max_tokens = config_.max_num_queued_tokens;
  if (max_tokens > 0 && num_waiting_tokens_ > 0 && num_waiting_tokens_ + num_tokens > max_tokens) {
    return resource_exhausted(
        fmt::format("[server] {} tokens of prompts are queued of at most {}; try again later",
                    num_waiting_tokens_, max_tokens));
  }
  const int per_key = config_.max_concurrency_per_key;
  if (per_key > 0 && key_idx >= 0) {
    const int inside = num_inside_by_key_[static_cast<size_t>(key_idx)];
    if (num_answers > per_key) {
      return invalid_argument(fmt::format(
          "[server] too many answers in one call; got {}, expected at most {} for one key",
          num_answers, per_key));
    }
    if (inside + num_answers > per_key) {
      return resource_exhausted(
          fmt::format("[server] this key has {} answers in work of at most {}; try again later",
                      inside, per_key));
    }
  }
  return {};
}

Status Gate::check_room(int key_idx, int num_answers) const {
  const std::lock_guard lock(mutex_);
  return check(key_idx, num_answers, 0);
}

void Gate::leave(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  num_inside_ -= ticket.num_answers_;
  num_waiting_tokens_ -= ticket.num_waiting_tokens_;
  if (ticket.key_idx_ >= 0) {
    num_inside_by_key_[static_cast<size_t>(ticket.key_idx_)] -= ticket.num_answers_;
  }
}

void Gate::begin(int64_t num_tokens) {
  const std::lock_guard lock(mutex_);
  num_waiting_tokens_ -= num_tokens;
}

void Gate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool Gate::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

int Gate::num_inside() const {
  const std::lock_guard lock(mutex_);
  return num_inside_;
}

}  // namespace quire::server

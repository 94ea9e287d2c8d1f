#include <dlpack/dlpack.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/guarded.h"
#include "base/log.h"
#include "base/text.h"
#include "grammar/compile_spec.h"

namespace quire::grammar {
namespace {

// rollback() undoes at most this many tokens; a step has fewer drafts.
constexpr size_t kMaxRollback = 64;

// Adapts XGrammar's matcher to TokenConstraint. If the matcher throws, only this sequence fails: no
// token is allowed any more.
class GrammarConstraint : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<const Compiled> compiled, std::shared_ptr<ByteBudget> memory,
                    std::shared_ptr<SharedTime> time)
      : compiled_(std::move(compiled)),
        held_(std::move(memory)),
        time_left_ns_(compiled_->limits.sequence_burst_ns),
        bytes_left_(compiled_->limits.sequence_bytes) {
    run_in_budget(SIZE_MAX, [&] {
      matcher_.emplace(compiled_->grammar);
      completed_ = matcher_->IsCompleted();
    });
    shared_time_ = std::move(time);  // the work above runs outside the engine's thread
  }

  std::vector<uint32_t> allowed_tokens() override {
    const TokenTable& tokens = compiled_->vocabulary->tokens;
    std::vector<uint32_t> mask(compiled_->may_be_allowed.size());
    if (failure_.ok() && !ended_) run_in_budget(SIZE_MAX, [&] { fill(mask); });
    if (!failure_.ok()) {
      std::ranges::fill(mask, 0U);
    } else if (ended_ || completed_) {
      for (const int32_t id : tokens.end_ids) set_bit(mask, id);
    }
    return mask;
  }

  bool accept(int32_t token_id) override {
    if (!failure_.ok()) return false;
    const Before before = {.time_left_ns = time_left_ns_,
                           .spent_ns = spent_ns_,
                           .bytes_left = bytes_left_,
                           .completed = completed_,
                           .ended = ended_};
    const auto& end_ids = compiled_->vocabulary->tokens.end_ids;
    if (std::ranges::binary_search(end_ids, token_id)) {
      ended_ = ended_ || completed_;
      if (ended_) remember(before);
      return ended_;
    }
    if (ended_ || token_id < 0 || !has_bit(compiled_->may_be_allowed, token_id)) return false;
    bool accepted = false;
    const size_t bytes_left = run_in_budget(bytes_left_, [&] {
      accepted = matcher_->AcceptToken(token_id);
      completed_ = matcher_->IsCompleted();
    });
    hold(bytes_left_ - bytes_left);
    bytes_left_ = bytes_left;
    if (!accepted || !failure_.ok()) return false;
    remember(before);
    newest_.back().in_matcher = true;
    return true;
  }

  // Drafts get only half of each allowance, because the sequence itself needs the rest: a request
  // must not fail by its drafts.
  bool can_roll_back() const override {
    const GrammarLimits& limits = compiled_->limits;
    return failure_.ok() && time_left_ns_ >= limits.sequence_burst_ns / 2 &&
           bytes_left_ >= limits.sequence_bytes / 2 &&
           (!shared_time_ ||
            shared_time_->refill(SharedTime::Clock::now()) >= limits.shared_burst_ns / 2);
  }

  bool rollback(int num_tokens) override {
    const auto count = static_cast<size_t>(num_tokens);
    if (!failure_.ok() || count > newest_.size()) return false;
    if (count == 0) return true;
    const auto first = newest_.end() - num_tokens;
    const auto in_matcher = std::ranges::count(first, newest_.end(), true, &Before::in_matcher);
    run_in_budget(SIZE_MAX, [&] { matcher_->Rollback(static_cast<int>(in_matcher)); });
    // Removes the allowance that these tokens added; the time that they took stays spent.
    time_left_ns_ = first->time_left_ns - (spent_ns_ - first->spent_ns);
    held_.shrink(first->bytes_left - bytes_left_);
    bytes_left_ = first->bytes_left;
    completed_ = first->completed;
    ended_ = first->ended;
    newest_.erase(first, newest_.end());
    return failure_.ok();
  }

  Status status() const override { return failure_; }

 private:
  // The state before a token was accepted.
  struct Before {
    int64_t time_left_ns = 0;
    int64_t spent_ns = 0;
    size_t bytes_left = 0;
    bool completed = false;
    bool ended = false;
    bool in_matcher = false;  // whether the matcher has the token
  };

  void remember(const Before& before) {
    if (newest_.size() == kMaxRollback) newest_.pop_front();
    newest_.push_back(before);
  }

  // Fills the mask without the end tokens, which allowed_tokens() adds.
  void fill(std::vector<uint32_t>& mask) {
    int64_t shape = static_cast<int64_t>(mask.size());
    DLTensor tensor = {.data = mask.data(),
                       .device = {.device_type = kDLCPU, .device_id = 0},
                       .ndim = 1,
                       .dtype = xgrammar::GetBitmaskDLType(),
                       .shape = &shape,
                       .strides = nullptr,
                       .byte_offset = 0};
    // A result of false means that every token is allowed, and the mask was not written.
    if (!matcher_->FillNextTokenBitmask(&tensor)) std::ranges::fill(mask, ~0U);
    // Removes end tokens, and special tokens that the grammar does not name.
    const auto& may_be_allowed = compiled_->may_be_allowed;
    for (size_t i = 0; i < mask.size(); ++i) mask[i] &= may_be_allowed[i];
  }

  void hold(size_t num_bytes) {
    if (num_bytes == 0 || held_.grow(num_bytes) || !failure_.ok()) return;
    failure_ = make_status([this] {
      return resource_exhausted(fmt::format(
          "[grammar] compiled grammars and parses have reached their limit of {} MiB; try again "
          "later",
          compiled_->limits.shared_bytes >> 20));
    });
    log_warning("{}", failure_.message());
  }

  // Runs `work` within the CPU time that this sequence may still take. Returns the rest of
  // `state_bytes`. Catches all exceptions, because the time spent counts in any case.
  template <typename Work>
  size_t run_in_budget(size_t state_bytes, const Work& work) noexcept {
    const GrammarLimits& limits = compiled_->limits;
    time_left_ns_ =
        std::min(time_left_ns_ + limits.sequence_token_ns / 2, limits.sequence_burst_ns);
    const int64_t shared_ns =
        shared_time_ ? shared_time_->refill(SharedTime::Clock::now()) : time_left_ns_;
    const int64_t allowed_ns = std::min(time_left_ns_, limits.sequence_floor_ns + shared_ns);
    const WorkBudget budget({.cpu_ns = allowed_ns, .state_bytes = state_bytes});
    try {
      work();
    } catch (const BudgetExceeded& error) {
      const bool is_shared = allowed_ns < time_left_ns_ && budget.left_ns() <= 0;
      failure_ = make_status([&] { return too_costly(error, is_shared); });
    } catch (...) {
      failure_ = make_exception_status(applying_failed);
    }
    if (!failure_.ok()) log_warning("{}", failure_.message());
    const int64_t spent_ns = allowed_ns - budget.left_ns();
    time_left_ns_ -= spent_ns;
    spent_ns_ += spent_ns;
    if (shared_time_)
      shared_time_->spend(std::max(spent_ns - limits.sequence_floor_ns, int64_t{0}));
    return budget.left_state_bytes();
  }

  static Status applying_failed(const char* reason) {
    return internal_error(
        fmt::format("[grammar] applying the grammar failed; {}", one_line(reason)));
  }

  // `is_shared`: the time shared by all sequences is spent, not the sequence's own.
  Status too_costly(const BudgetExceeded& error, bool is_shared) const {
    const GrammarLimits& limits = compiled_->limits;
    if (is_shared) {
      return resource_exhausted(
          "[grammar] the grammars of all requests together take more than half of the engine's "
          "time; use a simpler grammar, or send fewer such requests at once");
    }
    return invalid_argument(fmt::format(
        "[grammar] applying the grammar takes more {} than allowed ({} ms and {} ms per token, {} "
        "MiB); use a simpler grammar",
        error.what(), limits.sequence_burst_ns / 1'000'000, limits.sequence_token_ns / 1'000'000,
        limits.sequence_bytes >> 20));
  }

  std::shared_ptr<const Compiled> compiled_;
  ByteShare held_;                           // memory of the parse
  std::shared_ptr<SharedTime> shared_time_;  // null: no time is shared yet
  std::optional<xgrammar::GrammarMatcher> matcher_;
  int64_t time_left_ns_;
  int64_t spent_ns_ = 0;  // in all calls
  size_t bytes_left_;
  bool completed_ = false;  // the text may end here
  bool ended_ = false;      // an end token was accepted
  Status failure_;
  std::deque<Before> newest_;  // of the newest accepted tokens
};

}  // namespace

std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<const Compiled> compiled,
                                                         std::shared_ptr<ByteBudget> memory,
                                                         std::shared_ptr<SharedTime> time) {
  return std::make_unique<GrammarConstraint>(std::move(compiled), std::move(memory),
                                             std::move(time));
}

}  // namespace quire::grammar

#include <dlpack/dlpack.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/one_line.h"
#include "grammar/work_budget.h"
#include "grammar/xgrammar_door.h"

namespace quire::grammar {
namespace {

// XGrammar's matcher behind Quire's interface. Whatever it throws ends this answer alone: from then
// on nothing is allowed.
class GrammarConstraint : public TokenConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<const Compiled> compiled)
      : compiled_(std::move(compiled)),
        time_left_ns_(compiled_->limits.answer_burst_ns),
        bytes_left_(compiled_->limits.answer_bytes) {
    guarded(SIZE_MAX, [&] {
      matcher_.emplace(compiled_->grammar);
      completed_ = matcher_->IsCompleted();
    });
  }

  std::vector<uint32_t> allowed_tokens() override {
    const TokenTable& tokens = compiled_->vocabulary->tokens;
    std::vector<uint32_t> mask(tokens.may_be_allowed.size());
    if (failure_.ok() && !ended_) guarded(SIZE_MAX, [&] { fill(mask); });
    if (!failure_.ok()) {
      std::ranges::fill(mask, 0U);
    } else if (ended_ || completed_) {
      for (const int32_t id : tokens.end_ids) set_bit(mask, id);
    }
    return mask;
  }

  bool accept(int32_t token_id) override {
    if (!failure_.ok()) return false;
    const auto& end_ids = compiled_->vocabulary->tokens.end_ids;
    if (std::ranges::binary_search(end_ids, token_id)) {
      ended_ = ended_ || completed_;
      return ended_;
    }
    if (ended_) return false;
    bool accepted = false;
    bytes_left_ = guarded(bytes_left_, [&] {
      accepted = matcher_->AcceptToken(token_id);
      completed_ = matcher_->IsCompleted();
    });
    return accepted && failure_.ok();
  }

  Status status() const override { return failure_; }

 private:
  // Without the ends, which allowed_tokens() adds.
  void fill(std::vector<uint32_t>& mask) {
    int64_t shape = static_cast<int64_t>(mask.size());
    DLTensor tensor = {.data = mask.data(),
                       .device = {.device_type = kDLCPU, .device_id = 0},
                       .ndim = 1,
                       .dtype = xgrammar::GetBitmaskDLType(),
                       .shape = &shape,
                       .strides = nullptr,
                       .byte_offset = 0};
    // False: every token, and the mask is left as it was.
    if (!matcher_->FillNextTokenBitmask(&tensor)) std::ranges::fill(mask, ~0U);
    // A grammar cannot bring in special tokens, nor an end before its own.
    const auto& may_be_allowed = compiled_->vocabulary->tokens.may_be_allowed;
    for (size_t i = 0; i < mask.size(); ++i) mask[i] &= may_be_allowed[i];
  }

  // In what this answer may yet take of the engine's time; what it leaves of `state_bytes`.
  template <typename Work>
  size_t guarded(size_t state_bytes, const Work& work) {
    const GrammarLimits& limits = compiled_->limits;
    time_left_ns_ = std::min(time_left_ns_ + limits.answer_token_ns / 2, limits.answer_burst_ns);
    const WorkBudget budget({.cpu_ns = time_left_ns_, .state_bytes = state_bytes});
    try {
      work();
    } catch (const BudgetExceeded& error) {
      failure_ = invalid_argument(fmt::format(
          "[grammar] the answer's grammar takes more {} to follow than an answer may ({} ms and {} "
          "ms a token, {} MiB); expected a simpler one",
          error.what(), limits.answer_burst_ns / 1'000'000, limits.answer_token_ns / 1'000'000,
          limits.answer_bytes >> 20));
    } catch (const std::exception& error) {
      failure_ = internal_error(fmt::format("[grammar] the answer's grammar cannot be followed; {}",
                                            one_line(error.what())));
    }
    if (!failure_.ok()) log_warning("{}", failure_.message());
    time_left_ns_ = budget.left_ns();
    return budget.left_state_bytes();
  }

  std::shared_ptr<const Compiled> compiled_;
  std::optional<xgrammar::GrammarMatcher> matcher_;
  int64_t time_left_ns_;
  size_t bytes_left_;
  bool completed_ = false;  // the end may come now
  bool ended_ = false;      // it has come
  Status failure_;
};

}  // namespace

std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<const Compiled> compiled) {
  return std::make_unique<GrammarConstraint>(std::move(compiled));
}

}  // namespace quire::grammar

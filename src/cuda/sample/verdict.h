// Decides how many drafts of a span are accepted, as verify_drafts() does, from a few values that
// the thread blocks compute per logits row. The functions are constexpr, so that kernels and CPU
// tests call the same code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sample/rejection.h"

namespace quire::cuda {

// One logits row of a span, and the draft at its position.
struct VerifiedRow {
  double total = 0;          // of the target's weights
  double ratio = 0;          // the target's probability of the draft, divided by the drafter's
  double mass = 0;           // of the residual; only for block verification
  bool has_target = false;   // whether the target's distribution exists
  bool is_drawable = false;  // whether there is a draft, and its distribution may be compared
};

// Where the token after the accepted drafts comes from.
enum class NextToken : int32_t {
  kNone,      // the row has no distribution
  kTarget,    // the target's distribution
  kResidual,  // `survival` times the target's distribution minus the draft's
};

struct SpanVerdict {
  int num_accepted = 0;
  NextToken next = NextToken::kNone;
  double survival = 1;  // with kResidual
};

// rows: the rows of the span; the last row has no draft.
constexpr SpanVerdict decide_standard(const VerifiedRow* rows, const DraftNoise& noise) {
  for (int i = 0;; ++i) {
    if (!rows[i].has_target) return {i, NextToken::kNone, 1};
    if (!rows[i].is_drawable) return {i, NextToken::kTarget, 1};
    if (noise.acceptance(static_cast<size_t>(i)) < rows[i].ratio) continue;
    return {i, NextToken::kResidual, 1};
  }
}

// The probability that the first `num_drafts` drafts are accepted if no more drafts follow. 0: they
// are rejected, or the rows after them do not matter.
constexpr double survival_of(const VerifiedRow* rows, int num_drafts) {
  double survival = 1;
  for (int i = 0; i < num_drafts; ++i) {
    if (!rows[i].has_target || !rows[i].is_drawable) return 0;
    survival = std::min(1.0, survival * rows[i].ratio);
  }
  return survival;
}

constexpr SpanVerdict decide_block(const VerifiedRow* rows, const DraftNoise& noise) {
  SpanVerdict verdict = {0, NextToken::kResidual, 1};
  double survival = 1;
  for (int i = 0; survival > 0; ++i) {
    // The random number that decides about the first i drafts.
    const double coin = i == 0 ? 0 : noise.acceptance(static_cast<size_t>(i) - 1);
    const VerifiedRow& row = rows[i];
    if (!row.has_target || !row.is_drawable) {
      if (coin > survival) break;
      return {i, row.has_target ? NextToken::kTarget : NextToken::kNone, 1};
    }
    if (coin * (row.mass + 1 - survival) <= row.mass) verdict = {i, NextToken::kResidual, survival};
    survival = std::min(1.0, survival * row.ratio);
  }
  return verdict;
}

}  // namespace quire::cuda

// A drafter for tests: it knows the answers of an ordinary run, and spoils a pseudo-random number
// of its drafts, so that every length of accepted span occurs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/speculation.h"

namespace quire::testing {

// By prompt: the tokens that follow it. Sequences of one prompt must have one answer.
using RecordedAnswers = std::map<std::vector<int32_t>, std::vector<int32_t>>;

// Drafts for the positions behind `num_computed`, of which `known` has the true tokens as far as it
// reaches: the first few are right, and the next is wrong.
void draft_tokens(std::span<const int32_t> known, uint64_t seed, int num_computed, int vocab_size,
                  std::span<int32_t> drafts);

// A drafter for the CPU; `answers` outlive it.
std::unique_ptr<Drafter> make_recorded_drafter(const RecordedAnswers& answers,
                                               const DrafterLimits& limits);

}  // namespace quire::testing

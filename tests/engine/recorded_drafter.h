// A drafter for tests. It replays the output of an ordinary run, and makes a pseudo-random number
// of drafts wrong, so that accepted spans of every length occur.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "start/start.h"

namespace quire::testing {

// The output tokens by prompt. Sequences with the same prompt must have the same output.
using RecordedOutputs = std::map<std::vector<int32_t>, std::vector<int32_t>>;

// Drafts the positions after `num_computed`. `known` holds the true tokens as far as it reaches. A
// pseudo-random number of leading drafts is right, and the next one is wrong.
void draft_tokens(std::span<const int32_t> known, uint64_t seed, int num_computed, int vocab_size,
                  std::span<int32_t> drafts);

// The drafts to propose for a slot that has num_computed tokens.
using NumProposals = std::function<int(int slot, int num_computed)>;

// Creates a drafter for the CPU. `outputs` must outlive it. It proposes as many drafts as are
// wanted, or fewer where `num_proposals` says so; the entries after them are invalid token ids.
std::shared_ptr<Drafter> make_recorded_drafter(const RecordedOutputs& outputs,
                                               const DrafterLimits& limits,
                                               NumProposals num_proposals = {});

}  // namespace quire::testing

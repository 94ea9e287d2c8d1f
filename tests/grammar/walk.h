// Draws token sequences at random from the tokens that a constraint allows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "grammar/grammar_compiler.h"
#include "quire/request.h"
#include "tokenizer/tokenizer.h"

namespace quire::testing {

std::shared_ptr<const Tokenizer> embedded_tokenizer();
inline constexpr int32_t kEmbeddedEosId = 2;

// The server's limits, without those on time: a test computes one mask after the other, where an
// engine runs the model in between, and other programs or a sanitizer may slow it down.
GrammarLimits ample_time();

// The ids that `mask` allows.
std::vector<int32_t> allowed_ids(const std::vector<uint32_t>& mask, int vocab_size);

struct Walk {
  std::vector<int32_t> token_ids;  // without the end
  std::string text;
  bool ended = false;     // with an end-of-sequence token
  bool dead_end = false;  // nothing was allowed
  std::string complaint;  // the first contradiction in the results; empty: none
};

// Draws evenly for `num_free` tokens, then prefers tokens that soon end a JSON text. Stops at the
// end or after `max_tokens`.
Walk random_walk(TokenConstraint& constraint, const Tokenizer& tokenizer,
                 std::span<const int32_t> eos_ids, uint64_t seed, int num_free, int max_tokens);

}  // namespace quire::testing

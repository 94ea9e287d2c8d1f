// A tokenizer's vocabulary as a grammar sees it: the bytes that each token adds to a text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace quire::grammar {

struct TokenTable {
  // By id; empty: a special token, an id without a token, or one that adds nothing.
  std::vector<std::string> bytes;
  std::vector<int32_t> end_ids;          // sorted; of the vocabulary
  std::vector<uint32_t> may_be_allowed;  // as TokenConstraint::allowed_tokens: those with bytes
};

// The bytes come from the tokenizer's own decoder, so byte-level and byte-fallback vocabularies are
// alike here.
TokenTable make_token_table(const Tokenizer& tokenizer, std::span<const int32_t> end_ids);

inline void set_bit(std::span<uint32_t> mask, int32_t id) {
  mask[static_cast<size_t>(id) / 32] |= 1U << (id % 32);
}

}  // namespace quire::grammar

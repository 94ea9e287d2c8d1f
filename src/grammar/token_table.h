// A tokenizer's vocabulary for grammars: the bytes that each token adds to a text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace quire::grammar {

struct TokenTable {
  // Indexed by id. Empty: a special token, an id without a token, or a token that adds nothing.
  std::vector<std::string> bytes;
  std::vector<int32_t> end_ids;          // sorted; only ids of the vocabulary
  std::vector<uint32_t> may_be_allowed;  // tokens with bytes, as a mask of one bit per id
};

// Takes the bytes from the tokenizer's decoder, so that byte-level and byte-fallback vocabularies
// need no distinction.
TokenTable make_token_table(const Tokenizer& tokenizer, std::span<const int32_t> end_ids);

inline void set_bit(std::span<uint32_t> mask, int32_t id) {
  mask[static_cast<size_t>(id) / 32] |= 1U << (id % 32);
}

}  // namespace quire::grammar

// The tokenization model: turns one piece of text into ids.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/search_budget.h"

namespace quire {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a non-empty piece. They are invalid if the budget is spent. Thread-safe.
  virtual void encode(std::string_view piece, SearchBudget& budget,
                      std::vector<int32_t>& ids) const = 0;
};

}  // namespace quire

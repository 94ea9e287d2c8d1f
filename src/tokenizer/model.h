// The statistical part of a tokenizer: ids for one piece of text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/search_budget.h"

namespace quire {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a non-empty piece; once the budget is spent, they are invalid. Safe to call
  // from several threads.
  virtual void encode(std::string_view piece, SearchBudget& budget,
                      std::vector<int32_t>& ids) const = 0;
};

}  // namespace quire

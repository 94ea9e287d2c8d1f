#include "grammar/token_table.h"

#include <algorithm>

#include "base/numbers.h"

namespace quire::grammar {

TokenTable make_token_table(const Tokenizer& tokenizer, std::span<const int32_t> end_ids) {
  TokenTable table;
  const int32_t vocab_size = tokenizer.vocab_size();
  table.bytes.resize(static_cast<size_t>(vocab_size));
  table.may_be_allowed.resize(ceil_div(static_cast<size_t>(vocab_size), 32));
  for (const int32_t id : end_ids) {
    if (id >= 0 && id < vocab_size) table.end_ids.push_back(id);
  }
  std::ranges::sort(table.end_ids);
  table.end_ids.erase(std::unique(table.end_ids.begin(), table.end_ids.end()), table.end_ids.end());
  for (int32_t id = 0; id < vocab_size; ++id) {
    if (tokenizer.is_special(id) || std::ranges::binary_search(table.end_ids, id)) continue;
    std::string& bytes = table.bytes[static_cast<size_t>(id)];
    bytes = tokenizer.token_bytes(id);
    if (!bytes.empty()) set_bit(table.may_be_allowed, id);
  }
  return table;
}

}  // namespace quire::grammar

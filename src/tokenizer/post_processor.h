// Adds the special tokens around an encoded text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "quire/status.h"
#include "tokenizer/json_fields.h"

namespace quire {

class PostProcessor {
 public:
  // Reads the "post_processor" of a tokenizer.json. Without one, the result adds no tokens.
  static Result<PostProcessor> from_json(std::optional<JsonElement> json);
  // Adds `bos` before the text and `eos` after it, if they have values.
  static PostProcessor around(std::optional<int32_t> bos, std::optional<int32_t> eos);

  const std::vector<int32_t>& prefix() const { return prefix_; }
  const std::vector<int32_t>& suffix() const { return suffix_; }

 private:
  Status add_json(JsonElement json, int depth);
  Status add_template(JsonElement json);
  Status add_pair(JsonElement json);

  std::vector<int32_t> prefix_;
  std::vector<int32_t> suffix_;
};

}  // namespace quire

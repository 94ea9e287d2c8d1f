// Added tokens: texts that are matched literally, before the model tokenizes the rest.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/function_ref.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/string_map.h"
#include "tokenizer/vocab.h"

namespace quire {

struct AddedToken {
  std::string content;
  bool single_word = false;  // matches only where no word character is adjacent
  bool lstrip = false;       // includes the white space on its left
  bool rstrip = false;
  bool normalized = true;  // its normalized form is matched in the normalized text
  bool special = false;    // omitted when decoding with skip_special_tokens
};

class AddedTokens {
 public:
  static constexpr size_t kMaxTokenBytes = 1024;
  static constexpr size_t kMaxTokens = size_t{1} << 20;

  // Uses the vocabulary's id of that text, otherwise `id`, otherwise the next free id.
  Status add(AddedToken token, std::optional<int64_t> id, const Vocab& vocab,
             const Normalizer& normalizer);
  static Result<AddedToken> from_json(JsonElement json);

  // Selects the tokens that are matched in raw text or those matched in normalized text.
  enum class Stage { kRaw, kNormalized };
  // Called as visit(text, id) for consecutive parts: id of an added token, or -1 for other text.
  using Visit = FunctionRef<void(std::string_view text, int32_t id)>;
  // Stops when the budget is spent.
  void split(std::string_view text, Stage stage, SearchBudget& budget, Visit visit) const;

  const AddedToken* find(int32_t id) const {
    if (id < lowest_id_ || id >= num_ids_) return nullptr;
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : &it->second.token;
  }
  std::optional<int32_t> find(std::string_view content) const {
    const auto it = by_content_.find(std::string(content));
    if (it == by_content_.end()) return std::nullopt;
    return it->second;
  }
  // The token's text when decoded. It is the normalized form if the token is matched in that form.
  const std::string& decoded_form(int32_t id) const { return by_id_.at(id).pattern; }
  // The highest id + 1.
  int32_t num_ids() const { return num_ids_; }

 private:
  struct Entry {
    AddedToken token;
    std::string pattern;
  };
  struct Matcher {
    ByteTrie trie;
    std::bitset<256> first_bytes;
    char only_first_byte = 0;  // valid if first_bytes has exactly one member
    size_t find_candidate(std::string_view text, size_t from) const;
  };

  std::unordered_map<int32_t, Entry> by_id_;
  std::unordered_map<std::string, int32_t> by_content_;
  Matcher raw_;
  Matcher normalized_;
  int32_t lowest_id_ = INT32_MAX;
  int32_t num_ids_ = 0;
};

}  // namespace quire
